/* Prefetches of what the next iteration of a loop loads.
 *
 * The rows of a tile are short pieces of the rows of a matrix, often in different pages, where the CPU's own
 * prefetchers do not find the next tile. There are two kinds:
 * - While a dot runs, it prefetches lines of the operands that the next iterations load directly. The CPU loads nothing
 *   else from far away then. Prefetches beside the loads that copy the operands were no use: the loads already take all
 *   of the CPU's buffers for lines under way.
 * - Where several numbers are packed in an element, the rows N d to N d + N - 1 of the tile load the same elements.
 *   Between two rows of memory there are so many instructions that few loads are under way at a time. So each load also
 *   prefetches a part of what the next iteration loads there.
 *
 * The distance is not analysed but measured: the tile's first address minus that of the previous iteration. A prefetch
 * of any address is harmless. */
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

/* The distance from address `now` to that of the next iteration, in bytes, if the last one was as far; else 0. This
 * code runs once in each iteration. */
static LLVMValueRef measured_step(struct cpu_codegen *h, LLVMValueRef now)
{
	LLVMValueRef memory = cpu_scratch(h, sizeof(u64)), zero = cpu_i64(h, 0);
	LLVMBuildStore(h->entry, zero, memory);
	LLVMValueRef before = LLVMBuildLoad2(h->b, h->i64, memory, ""), step = LLVMBuildSub(h->b, now, before, "");
	LLVMBuildStore(h->b, now, memory);
	return LLVMBuildSelect(h->b, LLVMBuildICmp(h->b, LLVMIntEQ, before, zero, ""), zero, step, "");
}

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
		map_put(&h->ahead, load, measured_step(h, now));
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

/* --- the next tiles of a dot ------------------------------------------------------------------------------------- */

static LLVMValueRef address_at(struct cpu_codegen *h, const struct value *p, int dim, i64 index)
{
	struct at at = {.along = -1};
	for (int d = 0; d < p->type->rank; d++)
		at.i[d] = cpu_i64(h, d == dim ? index : 0);
	return LLVMBuildPtrToInt(h->b, cpu_eval(h, p, &at), h->i64, "");
}

bool cpu_next_tile(struct cpu_codegen *h, const struct op *dot, u32 which, struct next_tile *t)
{
	const struct op *load = operand(dot, which)->def, *loop = dot->block->parent;
	if (!load || load->code != IR_LOAD || load->block != dot->block || !loop || loop->code != IR_FOR || h->debug ||
	    h->s->target->checks || result(load)->type->rank != 2)
		return false;
	const struct value *p = operand(load, 0);
	const struct type *type = result(load)->type;
	const struct axis_info *a = axis_of(h->s->axis, p);
	const struct deferred *deferred = cpu_deferred(h, loop);
	i64 slots = deferred ? deferred->slots : 1;
	int inner = a->contiguity[1] == type->shape[1] ? 1 : 0, k = which ? 0 : 1;
	if (a->contiguity[inner] < type->shape[inner])
		return false;
	i64 row = type->shape[inner] * dtype_bytes(type_dtype(type)), rows = type->shape[!inner];
	*(inner == k ? &row : &rows) *= slots;
	cpu_forget(h);
	LLVMValueRef now = address_at(h, p, !inner, 0);
	*t = (struct next_tile){.lines = MAX(row / LINE, 1)};
	t->pitch = LLVMBuildSub(h->b, address_at(h, p, !inner, 1), now, "");
	t->first = LLVMBuildAdd(h->b, now, measured_step(h, now), "");
	t->total = rows * t->lines;
	cpu_forget(h);
	return rows > 1;
}

void cpu_fetch_next(struct cpu_codegen *h, const struct next_tile *t, LLVMValueRef turn, i64 turns)
{
	i64 share = MAX(t->total / turns, 1), repeated = MAX(turns / t->total, 1);
	LLVMValueRef line = LLVMBuildUDiv(h->b, turn, cpu_i64(h, repeated), "");
	line = LLVMBuildMul(h->b, line, cpu_i64(h, share), "");
	for (i64 k = 0; k < share; k++) {
		LLVMValueRef n = LLVMBuildAdd(h->b, line, cpu_i64(h, k), "");
		LLVMValueRef row = LLVMBuildUDiv(h->b, n, cpu_i64(h, t->lines), "");
		LLVMValueRef column = LLVMBuildAnd(h->b, n, cpu_i64(h, t->lines - 1), "");
		LLVMValueRef at = LLVMBuildAdd(h->b, t->first, LLVMBuildMul(h->b, row, t->pitch, ""), "");
		at = LLVMBuildAdd(h->b, at, LLVMBuildMul(h->b, column, cpu_i64(h, LINE), ""), "");
		LLVMValueRef args[] = {LLVMBuildIntToPtr(h->b, at, h->ptr, ""), cpu_i32(h, 0), cpu_i32(h, SECOND_CACHE),
				       cpu_i32(h, 1)};
		call_intrinsic(h->b, "llvm.prefetch", &h->ptr, 1, args, ARRAY_LEN(args));
	}
}
