/* Numbers of few bits out of bytes and words, ((word >> shift) & 15) - 8, become halves where they are: the bytes that
 * hold two of them are permuted into two halves, of which a mask leaves the numbers' bits as the last of 1024 + number
 * * 2^s, where s is what the shift moves within a byte, and a multiply-add brings them down. Exact, and all but the
 * three instructions for two numbers is the same for all words that are shifted alike.
 *
 *     x = a byte of each word                      prmt
 *     y = x & mask << s | 0x6400                   lop3
 *     y * 2^-s + (plus - 1024 * 2^-s)              fma */
#include "lower/internal.h"

#include "base/fp.h"
#include "ir/graph.h"
#include "opt/ranges.h"

struct field {
	const struct value *word, *shift;
	int bits;
	i64 plus;                 /* is added to it */
	const struct value *less; /* is subtracted: zero points; or NULL */
};

static const struct value *without_shape(const struct value *v)
{
	while (v->def && (v->def->code == IR_EXPAND_DIMS || v->def->code == IR_BROADCAST ||
			  v->def->code == IR_CONVERT_LAYOUT || v->def->code == IR_SPLAT || v->def->code == IR_EXTUI ||
			  v->def->code == IR_EXTSI || v->def->code == IR_TRUNCI))
		v = operand(v->def, 0);
	return v;
}

/* Is it a multiple of n, a power of two, everywhere? */
static bool is_multiple(const struct value *v, i64 n)
{
	i64 c;
	v = without_shape(v);
	const struct op *o = v->def;
	if (value_const_int(v, &c))
		return c % n == 0;
	if (!o || o->noperands < 2 || !value_const_int(operand(o, 1), &c))
		return false;
	return (o->code == IR_SHLI && c < 8 && (i64)1 << c >= n) ||
	       ((o->code == IR_MULI || o->code == IR_ANDI) && c % n == 0);
}

static bool is_within(struct lower *l, const struct value *v, i64 lo, i64 hi)
{
	const struct range *r = value_range(l->s->ranges, v);
	return r->min >= lo && r->max <= hi;
}

/* Are it and sums of a few like it exact as halves? */
static bool is_small(i64 x)
{
	return x >= -512 && x <= 512;
}

/* Are the numbers that o makes floats of such fields? */
static bool find_field(struct lower *l, const struct op *o, struct field *f)
{
	const struct value *v = operand(o, 0);
	i64 c;
	*f = (struct field){0};
	for (const struct op *d; (d = v->def); v = operand(d, 0)) {
		bool sum = (d->code == IR_ADDI || d->code == IR_SUBI) && value_const_int(operand(d, 1), &c);
		if (sum)
			f->plus += d->code == IR_ADDI ? c : -c;
		else if (d->code == IR_SUBI && !f->less)
			f->less = operand(d, 1);
		else if (d->code != IR_EXTSI && d->code != IR_EXTUI && d->code != IR_TRUNCI)
			break;
	}
	const struct op *mask = def_if(v, IR_ANDI), *shift = mask ? operand(mask, 0)->def : NULL;
	if (!shift || (shift->code != IR_SHRSI && shift->code != IR_SHRUI) || !value_const_int(operand(mask, 1), &c) ||
	    (c != 1 && c != 3 && c != 15))
		return false;
	f->bits = ilog2((u64)c + 1);
	f->word = operand(shift, 0);
	f->shift = operand(shift, 1);
	int all = type_elem_bits(f->word->type);
	const struct range *less = f->less ? value_range(l->s->ranges, f->less) : &(struct range){0};
	i64 lo = f->plus - less->max, hi = f->plus + c - less->min;
	/* sums do not wrap in their types, nor is a negative one extended with zeros */
	return (all == 8 || all == 32) && is_small(f->plus) && is_small(less->min) && is_small(less->max) &&
	       is_within(l, operand(o, 0), lo, hi) && (o->code == IR_SITOFP || lo >= 0) &&
	       is_multiple(f->shift, f->bits) && is_within(l, f->shift, 0, all - 1);
}

static LLVMValueRef both(struct lower *l, LLVMValueRef low, LLVMValueRef high, int by)
{
	return LLVMBuildOr(l->b, low, LLVMBuildShl(l->b, high, c_i32(l, by), ""), "");
}

/* The bytes that hold elements r and r + 1, which are moved by so many bits. */
static LLVMValueRef two_bytes(struct lower *l, const struct field *f, u32 r, LLVMValueRef *by)
{
	LLVMValueRef args[3];
	if (type_elem_bits(f->word->type) == 8) {
		args[0] = args[1] = word_of(l, f->word, r / 4);
		args[2] = c_i32(l, r % 4 ? 0x302 : 0x100);
	} else {
		args[0] = elem(l, f->word, r);
		args[1] = elem(l, f->word, r + 1);
		args[2] = both(l, LLVMBuildLShr(l->b, by[0], c_i32(l, 3), ""),
			       LLVMBuildLShr(l->b, by[1], c_i32(l, 3), ""), 8);
		args[2] = LLVMBuildOr(l->b, args[2], c_i32(l, 0x400), "");
	}
	return intrinsic(l, "llvm.nvvm.prmt", l->i32, args, 3);
}

static LLVMValueRef multiply_add(struct lower *l, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z)
{
	return inline_asm(l, "fma.rn.f16x2 $0, $1, $2, $3;", "=r,r,r,r", ASM_PURE, l->i32, (LLVMValueRef[]){x, y, z},
			  3);
}

static LLVMValueRef two_of(struct lower *l, float x)
{
	return c_i32(l, (i64)fp_to_f16(x) * 0x10001);
}

/* Elements r and r + 1 of integers as halves. */
static LLVMValueRef two_halves_of(struct lower *l, const struct value *v, u32 r)
{
	LLVMValueRef half[2];
	for (u32 k = 0; k < 2; k++) {
		half[k] = LLVMBuildSIToFP(l->b, elem(l, v, r + k), LLVMHalfTypeInContext(l->ctx), "");
		half[k] = LLVMBuildZExt(l->b, LLVMBuildBitCast(l->b, half[k], l->i16, ""), l->i32, "");
	}
	return both(l, half[0], half[1], 16);
}

/* Elements r and r + 1 of the fields as halves. */
static LLVMValueRef two_fields(struct lower *l, const struct field *f, u32 r)
{
	LLVMValueRef by[2], in[2], mask[2], times[2];
	for (u32 k = 0; k < 2; k++) {
		by[k] = LLVMBuildIntCast2(l->b, elem(l, f->shift, r + k), l->i32, false, "");
		in[k] = LLVMBuildAnd(l->b, by[k], c_i32(l, 7), "");
		mask[k] = LLVMBuildShl(l->b, c_i32(l, (1 << f->bits) - 1), in[k], "");
		times[k] = LLVMBuildSub(l->b, c_i32(l, fp_to_f16(1)), LLVMBuildShl(l->b, in[k], c_i32(l, 10), ""), "");
	}
	LLVMValueRef scale = both(l, times[0], times[1], 16);
	LLVMValueRef plus = multiply_add(l, scale, two_of(l, -1024), two_of(l, (float)f->plus));
	LLVMValueRef args[] = {two_bytes(l, f, r, by), both(l, mask[0], mask[1], 16)};
	LLVMValueRef x = inline_asm(l, "lop3.b32 $0, $1, $2, 0x64006400, 0xEA;", "=r,r,r", ASM_PURE, l->i32, args, 2);
	x = multiply_add(l, x, scale, plus);
	return f->less ? multiply_add(l, two_halves_of(l, f->less, r), two_of(l, -1), x) : x;
}

bool lower_bit_fields(struct lower *l, const struct op *o)
{
	const struct value *v = result(o);
	u32 n = num_elems(v);
	enum dtype to = type_dtype(v->type);
	struct field f;
	if ((o->code != IR_SITOFP && o->code != IR_UITOFP) || n % 4 || !l->s->target->has_pair_conversions ||
	    (to != DT_F16 && to != DT_BF16) || !find_field(l, o, &f))
		return false;
	LLVMValueRef *at = arena_array(&l->scratch, LLVMValueRef, n / 2);
	for (u32 r = 0; r < n; r += 2) {
		at[r / 2] = two_fields(l, &f, r);
		if (to == DT_F16)
			continue;
		LLVMTypeRef half = LLVMHalfTypeInContext(l->ctx);
		LLVMValueRef two = LLVMBuildBitCast(l->b, at[r / 2], LLVMVectorType(half, 2), ""), one[2];
		for (u32 k = 0; k < 2; k++)
			one[k] = LLVMBuildFPExt(l->b, LLVMBuildExtractElement(l->b, two, c_i32(l, k), ""), l->f32, "");
		at[r / 2] = cvt_f16x2(l, one[0], one[1], to);
	}
	set_words(l, v, at, n / 2);
	return true;
}
