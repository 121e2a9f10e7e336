/* Loads whose lanes have addresses of a known pattern, which take whole vectors instead of one access for each lane.
 *
 * Repeated elements: along the lanes each address occurs N times, as in p + i / N, where several numbers are packed in
 * an element. The elements are loaded once and each is copied to its N lanes.
 *
 * Tables: the lanes have one base and indices that are known to be less than the elements of a few vector registers, as
 * in the codes of a quantized weight. The registers are loaded, and a permutation takes the elements that the indices
 * name. It also reads elements that no index names. These are readable if they lie in one page with the others. */
#include "cpu/cpu_internal.h"

enum {
	MOST_DEPTH = 16,       /* operations between a pointer and the division */
	LEAST_PAGE = 4096,     /* bytes of the smallest page */
	MOST_TABLE_REGISTERS = 2,
};

/* --- repeated elements ------------------------------------------------------------------------------------------- */

/* N for a quotient x / N, where x counts up along d from a multiple of N that is not negative (else the first N
 * elements need not be equal); or 0. */
static u32 quotient_repeats(struct cpu_codegen *h, const struct op *o, int d)
{
	i64 n;
	const struct value *x = operand(o, 0);
	const struct axis_info *a = axis_proved(h->s->axis, x), *q = axis_proved(h->s->axis, result(o));
	if (!value_const_int(operand(o, 1), &n) || n < 2 || n >= x->type->shape[d] || (n & (n - 1)))
		return 0;
	bool counts = a->contiguity[d] == x->type->shape[d] && a->divisibility[d] % n == 0 && q->constancy[d] == n;
	return counts ? (u32)n : 0;
}

static u32 repeats(struct cpu_codegen *h, const struct value *v, int d, u32 depth)
{
	const struct op *o = v->def;
	if (!o || depth == MOST_DEPTH || !type_is_tensor(v->type) || v->type->shape[d] == 1)
		return 0;
	switch (o->code) {
	case IR_DIVSI:
	case IR_DIVUI: return quotient_repeats(h, o, d);
	case IR_EXTSI: return repeats(h, operand(o, 0), d, depth + 1);
	case IR_BROADCAST:
	case IR_EXPAND_DIMS: {
		int k = operand_dim(o, d);
		return k < 0 ? 0 : repeats(h, operand(o, 0), k, depth + 1);
	}
	case IR_ADDI:
		if (value_range(h->s->ranges, v)->overflows)
			return 0;
		break;
	case IR_ADDPTR: break;
	default: return 0;
	}
	for (u32 k = 0; k < 2; k++)
		if (axis_proved(h->s->axis, operand(o, !k))->constancy[d] == v->type->shape[d])
			return repeats(h, operand(o, k), d, depth + 1);
	return 0;
}

u32 cpu_repeats(struct cpu_codegen *h, const struct value *p, int d)
{
	return repeats(h, p, d, 0);
}

LLVMValueRef cpu_repeat(struct cpu_codegen *h, LLVMValueRef x, u32 times)
{
	LLVMValueRef at[256];
	u32 n = lanes_of(x) * times;
	tl_assert(n <= ARRAY_LEN(at));
	for (u32 i = 0; i < n; i++)
		at[i] = cpu_i32(h, i / times);
	return LLVMBuildShuffleVector(h->b, x, LLVMGetPoison(LLVMTypeOf(x)), LLVMConstVector(at, n), "");
}

/* --- tables ------------------------------------------------------------------------------------------------------ */

bool cpu_find_table(struct cpu_codegen *h, const struct op *load, const struct at *at, struct table *t)
{
	const struct op *p = operand(load, 0)->def;
	const struct target *target = h->s->target;
	i64 bits = type_elem_bits(result(load)->type);
	u32 lanes = (u32)(8 * target->vector_bytes / bits);
	if (!p || p->code != IR_ADDPTR || target->checks || h->debug || target->level == CPU_NEON ||
	    target->level == CPU_BASELINE || (bits != 32 && !(bits == 16 && target->has_avx512)) || at->along < 0 ||
	    at->lanes % lanes || axis_proved(h->s->axis, operand(p, 0))->constancy[at->along] < (i32)at->lanes)
		return false;
	const struct range *r = value_range(h->s->ranges, operand(p, 1));
	if (r->min < 0 || r->max >= lanes * MOST_TABLE_REGISTERS)
		return false;
	*t = (struct table){.base = operand(p, 0), .index = operand(p, 1), .lanes = lanes,
			    .registers = r->max < lanes ? 1 : MOST_TABLE_REGISTERS};
	t->elem = LLVMIntTypeInContext(h->ctx, (u32)bits);
	return true;
}

LLVMValueRef cpu_table_is_readable(struct cpu_codegen *h, const struct table *t, LLVMValueRef p)
{
	i64 bytes = (i64)t->registers * h->s->target->vector_bytes;
	LLVMValueRef in_page = LLVMBuildPtrToInt(h->b, p, h->i64, "");
	in_page = LLVMBuildAnd(h->b, in_page, cpu_i64(h, LEAST_PAGE - 1), "");
	return LLVMBuildICmp(h->b, LLVMIntULE, in_page, cpu_i64(h, LEAST_PAGE - bytes), "");
}

/* The elements of the table that a register of indices names. */
static LLVMValueRef permute(struct cpu_codegen *h, const struct table *t, const LLVMValueRef *rows, LLVMValueRef index)
{
	bool wide = h->s->target->has_avx512;
	const char *name = !wide ? "llvm.x86.avx2.permd" : t->elem == h->i16 ? "llvm.x86.avx512.permvar.hi.512"
									     : "llvm.x86.avx512.permvar.si.512";
	LLVMValueRef x[MOST_TABLE_REGISTERS];
	if (wide && t->registers == 2) {
		LLVMValueRef args[] = {rows[0], index, rows[1]};
		name = t->elem == h->i16 ? "llvm.x86.avx512.vpermi2var.hi.512" : "llvm.x86.avx512.vpermi2var.d.512";
		return call_intrinsic(h->b, name, NULL, 0, args, 3);
	}
	for (u32 k = 0; k < t->registers; k++) {
		LLVMValueRef args[] = {rows[k], index};
		x[k] = call_intrinsic(h->b, name, NULL, 0, args, 2);
	}
	if (t->registers == 1)
		return x[0];
	LLVMValueRef second = LLVMBuildICmp(h->b, LLVMIntUGE, index, int_as(index, t->lanes), "");
	return LLVMBuildSelect(h->b, second, x[1], x[0], "");
}

LLVMValueRef cpu_look_up(struct cpu_codegen *h, const struct table *t, LLVMValueRef p, LLVMValueRef index,
			 LLVMTypeRef elem)
{
	LLVMTypeRef row = LLVMVectorType(t->elem, t->lanes);
	LLVMValueRef rows[MOST_TABLE_REGISTERS], parts[256];
	u32 n = lanes_of(index) / t->lanes;
	for (u32 k = 0; k < t->registers; k++) {
		rows[k] = LLVMBuildLoad2(h->b, row, gep(h->b, p, row, cpu_i64(h, k)), "");
		LLVMSetAlignment(rows[k], type_bits(t->elem) / 8);
	}
	LLVMTypeRef all = LLVMVectorType(t->elem, lanes_of(index));
	if (type_bits(LLVMTypeOf(index)) > type_bits(t->elem))
		index = LLVMBuildTrunc(h->b, index, all, "");
	else if (type_bits(LLVMTypeOf(index)) < type_bits(t->elem))
		index = LLVMBuildZExt(h->b, index, all, "");
	for (u32 k = 0; k < n; k++)
		parts[k] = permute(h, t, rows, cpu_lanes(h, index, k * t->lanes, t->lanes));
	return LLVMBuildBitCast(h->b, cpu_concat(h, parts, n), LLVMVectorType(elem, n * t->lanes), "");
}
