/* Conversion of small integers to floats without the conversion instruction, which has at most an eighth of the
 * throughput of an addition. The integer becomes the last bits of a float whose unit in the last place is 1 (fp16:
 * 1024, fp32: 2^23), and that float is subtracted. fp16 is computed two at a time, fp32 one at a time, bf16 by
 * conversion from fp32. The result is exact. */
#include "gpu/codegen/nvptx_internal.h"

#include "support/small_floats.h"
#include "ir/graph.h"
#include "analysis/ranges.h"

enum { ONES_F16 = 0x6400, ONES_F32 = 0x4B000000 };

struct integers {
	const struct value *v;
	int bits;   /* size of an integer */
	i64 lo, hi; /* range of v's elements (analysis/ranges.h) */
};

/* Whether v is computed by unpacking: by sums and differences of 8-bit values, and of ANDs with a constant mask. Only
 * for such values the method is known to be faster. */
static bool is_unpacked(struct lower *l, const struct value *v)
{
	struct value_walk w = {.id = begin_walk(l->k->ctx)};
	i64 c;
	visit_later(&w, v);
	while ((v = visit_next(&w))) {
		const struct op *o = v->def;
		if (type_elem_bits(v->type) <= 8 || value_const_int(v, &c))
			continue;
		switch (o ? o->code : IR_OPCODES) {
		case IR_EXTUI: break;
		case IR_ANDI:
			if (!value_const_int(operand(o, 1), &c))
				return end_walk(&w, false);
			break;
		case IR_EXPAND_DIMS:
		case IR_BROADCAST:
		case IR_RESHAPE:
		case IR_TRANS:
		case IR_CONVERT_LAYOUT:
		case IR_EXTSI:
		case IR_ADDI:
		case IR_SUBI: visit_operands(&w, o); break;
		default: return end_walk(&w, false);
		}
	}
	return true;
}

static LLVMValueRef permute(struct lower *l, LLVMValueRef x, u32 y, u32 selector)
{
	return permute_bytes(l, x, c_i32(l, (i32)y), c_i32(l, (i32)selector));
}

/* Four 8-bit elements, packed; if they are signed, each plus 128, so that bytes are unsigned. */
static LLVMValueRef bytes_of(struct lower *l, const struct integers *x, u32 word)
{
	LLVMValueRef w = word_of(l, x->v, word);
	return x->lo < 0 ? LLVMBuildXor(l->b, w, c_i32(l, (i32)0x80808080), "") : w;
}

/* The elements of registers r and r + 1 plus 1024 - lo, as two fp16 numbers in one word. */
static LLVMValueRef halves_of(struct lower *l, const struct integers *x, u32 r)
{
	if (x->bits == 8)
		return permute(l, bytes_of(l, x, r / 4), ONES_F16 * 0x10001u, r % 4 ? 0x5352 : 0x5150);
	LLVMValueRef low = elem(l, x->v, r), high = elem(l, x->v, r + 1);
	if (x->bits < 32) {
		low = LLVMBuildSExt(l->b, low, l->i32, "");
		high = LLVMBuildSExt(l->b, high, l->i32, "");
	}
	low = LLVMBuildAdd(l->b, low, c_i32(l, ONES_F16 * 0x10001 - x->lo), "");
	high = LLVMBuildSub(l->b, high, c_i32(l, x->lo), "");
	return LLVMBuildAdd(l->b, low, LLVMBuildShl(l->b, high, c_i32(l, 16), ""), "");
}

static LLVMValueRef two_halves(struct lower *l, const struct integers *x, u32 r)
{
	LLVMValueRef args[] = {halves_of(l, x, r), c_i32(l, (i64)fp_to_f16((float)(x->lo - 1024)) * 0x10001)};
	return inline_asm(l, "add.rn.f16x2 $0, $1, $2;", "=r,r,r", ASM_PURE, l->i32, args, 2);
}

static LLVMValueRef one_float(struct lower *l, const struct integers *x, u32 r)
{
	LLVMValueRef f =
		LLVMBuildBitCast(l->b, permute(l, bytes_of(l, x, r / 4), ONES_F32, 0x7440 | r % 4), l->f32, "");
	return LLVMBuildFAdd(l->b, f, LLVMConstReal(l->f32, -0x1p23 + (double)x->lo), "");
}

bool lower_small_integers(struct lower *l, const struct op *o)
{
	const struct value *v = result(o);
	u32 n = num_elems(v);
	enum dtype to = type_dtype(v->type);
	if ((o->code != IR_SITOFP && o->code != IR_UITOFP) || n % 4 || !l->s->target->has_pair_conversions)
		return false;
	struct integers x = {.v = operand(o, 0), .bits = type_elem_bits(operand(o, 0)->type)};
	if (x.bits == 8) {
		x.lo = o->code == IR_UITOFP ? 0 : -128;
		x.hi = x.lo + 255;
	} else if (x.bits < 8 || x.bits > 32 || to != DT_F16 || !is_unpacked(l, x.v)) {
		return false;
	} else {
		x.lo = value_range(l->s->ranges, x.v)->min;
		x.hi = value_range(l->s->ranges, x.v)->max;
	}
	bool wraps = o->code == IR_UITOFP && x.lo < 0, few = x.lo >= -1024 && x.hi < 1024 && x.hi - x.lo < 1024;
	if (wraps || !few || (to != DT_F16 && to != DT_F32 && to != DT_BF16))
		return false;
	LLVMValueRef *at = arena_array(&l->scratch, LLVMValueRef, n);
	if (to == DT_F32) {
		for (u32 r = 0; r < n; r++)
			at[r] = one_float(l, &x, r);
		set_tile(l, v, at, n);
		return true;
	}
	for (u32 r = 0; r < n; r += 2)
		if (to == DT_F16) {
			at[r / 2] = two_halves(l, &x, r);
		} else {
			LLVMValueRef second = one_float(l, &x, r + 1);
			at[r / 2] = cvt_f16x2(l, one_float(l, &x, r), second, to);
		}
	set_words(l, v, at, n / 2);
	return true;
}
