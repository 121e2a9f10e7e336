/* Prefetches of rows that several rows of a tile share.
 *
 * Where several numbers are packed in an element, the rows N d to N d + N - 1 of the tile load the same elements.
 * Between two rows of memory there are so many instructions that the CPU has few loads under way at a time, and its own
 * prefetchers do not find the next row, which is in another page. So where a loop loads such a tile, each load also
 * prefetches a part of what the next iteration loads there. The distance is not analysed but measured: the tile's
 * first address minus that of the previous iteration. A prefetch of any address is harmless. */
#include "cpu/cpu_internal.h"

enum {
	LINE = 64,        /* bytes of a cache line */
	SECOND_CACHE = 2, /* locality of llvm.prefetch */
};

/* The dimension other than `along` along which N > 1 rows of addresses p are equal, or -1. Sets *n. */
static int shared_rows(struct cpu_codegen *h, const struct value *p, int along, i64 *n)
{
	for (int d = 0; d < p->type->rank; d++) {
		*n = MIN(axis_proved(h->s->axis, p)->constancy[d], p->type->shape[d]);
		if (d != along && *n > 1 && *n < p->type->shape[d])
			return d;
	}
	return -1;
}

/* Sets cpu_codegen.ahead of the nest's loads that prefetch. */
void cpu_prefetch_begin(struct cpu_codegen *h, const struct cpu_nest *n)
{
	i64 shared;
	for (u32 i = 0; i < n->loads.len; i++) {
		const struct op *load = n->loads.at[i], *loop = load->block->parent;
		struct at at = {.along = -1};
		if (!loop || loop->code != IR_FOR || h->debug || h->s->target->checks ||
		    result(load)->type->rank != n->rank || shared_rows(h, operand(load, 0), n->lane_dim, &shared) < 0)
			continue;
		for (int d = 0; d < n->rank; d++)
			at.i[d] = cpu_i64(h, 0);
		cpu_forget(h);
		LLVMValueRef now = LLVMBuildPtrToInt(h->b, cpu_eval(h, operand(load, 0), &at), h->i64, "");
		LLVMValueRef memory = cpu_scratch(h, sizeof(u64)), zero = cpu_i64(h, 0);
		LLVMBuildStore(h->entry, zero, memory);
		LLVMValueRef before = LLVMBuildLoad2(h->b, h->i64, memory, "");
		LLVMBuildStore(h->b, now, memory);
		LLVMValueRef step = LLVMBuildSub(h->b, now, before, "");
		step = LLVMBuildSelect(h->b, LLVMBuildICmp(h->b, LLVMIntEQ, before, zero, ""), zero, step, "");
		map_put(&h->ahead, load, step);
		cpu_forget(h);
	}
}

void cpu_prefetch(struct cpu_codegen *h, const struct op *load, const struct at *at, LLVMValueRef p, u32 bytes)
{
	LLVMValueRef step = map_get(&h->ahead, load);
	i64 shared, lines = MAX(bytes / LINE, 1);
	int d = step ? shared_rows(h, operand(load, 0), at->along, &shared) : -1;
	if (d < 0)
		return;
	/* this row's share of the lines */
	i64 share = (lines + shared - 1) / shared, last = lines - share;
	LLVMValueRef row = LLVMBuildAnd(h->b, at->i[d], cpu_i64(h, shared - 1), "");
	LLVMValueRef line = LLVMBuildMul(h->b, row, cpu_i64(h, share), ""), end = cpu_i64(h, last);
	line = LLVMBuildSelect(h->b, LLVMBuildICmp(h->b, LLVMIntSLT, line, end, ""), line, end, "");
	for (i64 k = 0; k < share; k++) {
		LLVMValueRef offset = LLVMBuildAdd(h->b, line, cpu_i64(h, k), "");
		offset = LLVMBuildAdd(h->b, LLVMBuildMul(h->b, offset, cpu_i64(h, LINE), ""), step, "");
		LLVMValueRef at_line = gep(h->b, p, h->i8, offset);
		LLVMValueRef args[] = {at_line, cpu_i32(h, 0), cpu_i32(h, SECOND_CACHE), cpu_i32(h, 1)};
		call_intrinsic(h->b, "llvm.prefetch", &h->ptr, 1, args, ARRAY_LEN(args));
	}
}
