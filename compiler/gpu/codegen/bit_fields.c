/* Conversion of bit fields to floats: ((word >> shift) & 15) - 8, a field of 1, 2 or 4 bits of a byte or a 32-bit word
 * (a packed weight), becomes fp16 without an integer-to-float conversion. prmt moves the bytes that hold two fields
 * into the two halves of a word. A mask then leaves each field as the last bits of the fp16 number 1024 + field * 2^s,
 * where s is the shift within a byte, and a multiply-add scales the number down and removes the 1024. The result is
 * exact. Two fields take three instructions. The prmt selector, mask and factors depend only on the shifts, so LLVM
 * computes them once for all words that are shifted alike.
 *
 *     x = a byte of each word                      prmt
 *     y = x & mask << s | 0x6400                   lop3
 *     y * 2^-s + (plus - 1024 * 2^-s)              fma */
#include "gpu/codegen/nvptx_internal.h"

#include "support/small_floats.h"
#include "ir/graph.h"
#include "ir/pass.h"
#include "analysis/index_forms.h"
#include "analysis/ranges.h"

struct field {
	const struct value *word, *shift;
	int bits;                 /* size of the field */
	i64 plus;                 /* constant added to the field */
	const struct value *less; /* tile subtracted from the field (zero points), or NULL */
};

/* Operations on a field between the mask and the conversion to float, last operation first. */
struct changes {
	const struct op *at[8];
	u32 n;
};

/* Follows the definition of v through additions, subtractions and integer casts, appends these to *to, and returns the
 * value before them. */
static const struct value *peel(const struct value *v, struct changes *to)
{
	for (const struct op *o; (o = v->def) && to->n < ARRAY_LEN(to->at); v = operand(o, 0)) {
		if (o->code != IR_ADDI && o->code != IR_SUBI && o->code != IR_EXTSI && o->code != IR_EXTUI &&
		    o->code != IR_TRUNCI)
			break;
		to->at[to->n++] = o;
	}
	return v;
}

/* Sets f->plus and f->less from the operations c. The field itself is 0 to `most`. False if the result may differ from
 * field + plus - less computed in fp16: an operation may wrap in its type, or a number may leave the range that fp16
 * represents exactly, or be less than `least`. */
static bool add_changes(struct lower *l, const struct changes *c, i64 most, i64 least, struct field *f)
{
	enum { EXACT = 1024 };
	i64 lo = 0, hi = most, x;
	bool ok = true;
	for (u32 i = c->n; i-- && ok;) {
		const struct op *o = c->at[i];
		int bits = type_elem_bits(result(o)->type);
		bool sum = o->code == IR_ADDI || o->code == IR_SUBI;
		if (sum && value_const_int(operand(o, 1), &x)) {
			x = o->code == IR_ADDI ? x : -x;
			ok = x > -EXACT && x < EXACT;
			f->plus += x, lo += x, hi += x;
		} else if (sum) {
			const struct range *r = value_range(l->s->ranges, operand(o, 1));
			ok = o->code == IR_SUBI && !f->less && r->min > -EXACT && r->max < EXACT;
			f->less = operand(o, 1);
			lo -= r->max, hi -= r->min;
		}
		ok &= lo > -EXACT && hi < EXACT && f->plus > -EXACT && f->plus + most < EXACT &&
		      (o->code != IR_EXTUI || lo >= 0) &&
		      (bits >= 16 || (lo >= -((i64)1 << (bits - 1)) && hi < (i64)1 << (bits - 1)));
	}
	return ok && lo >= least;
}

/* Whether o converts such a bit field to float. Fills in *f. */
static bool find_field(struct lower *l, const struct op *o, struct field *f)
{
	struct changes c = {0};
	i64 most;
	const struct op *mask = def_if(peel(operand(o, 0), &c), IR_ANDI), *shift = mask ? operand(mask, 0)->def : NULL;
	if (!shift || (shift->code != IR_SHRSI && shift->code != IR_SHRUI) ||
	    !value_const_int(operand(mask, 1), &most) || (most != 1 && most != 3 && most != 15))
		return false;
	*f = (struct field){.word = operand(shift, 0), .shift = operand(shift, 1), .bits = ilog2((u64)most + 1)};
	int bits = type_elem_bits(f->word->type);
	const struct range *r = value_range(l->s->ranges, f->shift);
	return (bits == 8 || bits == 32) && r->min >= 0 && r->max < bits &&
	       is_known_multiple(l->k, f->shift, f->bits) &&
	       add_changes(l, &c, most, o->code == IR_UITOFP ? 0 : INT64_MIN, f);
}

static LLVMValueRef both(struct lower *l, LLVMValueRef low, LLVMValueRef high, int by)
{
	return LLVMBuildOr(l->b, low, LLVMBuildShl(l->b, high, c_i32(l, by), ""), "");
}

/* The bytes that hold the fields of registers r and r + 1, in the two halves of a word (prmt). by: the shifts of the
 * two fields, in bits. */
static LLVMValueRef two_bytes(struct lower *l, const struct field *f, u32 r, LLVMValueRef *by)
{
	LLVMValueRef args[3];
	if (type_elem_bits(f->word->type) == 8) {
		u32 at[] = {r, r + 1};
		const struct value *v = before_renames(f->word, at, 2);
		if (num_elems(v) % 4) { /* v has no packed words */
			v = f->word;
			at[0] = r, at[1] = r + 1;
		}
		bool same = at[0] / 4 == at[1] / 4;
		args[0] = word_of(l, v, at[0] / 4);
		args[1] = word_of(l, v, at[1] / 4);
		args[2] = c_i32(l, at[0] % 4 | (at[1] % 4 | (same ? 0 : 4)) << 8);
	} else {
		args[0] = elem(l, f->word, r);
		args[1] = elem(l, f->word, r + 1);
		LLVMValueRef second = LLVMBuildLShr(l->b, by[1], c_i32(l, 3), "");
		args[2] = both(l, LLVMBuildLShr(l->b, by[0], c_i32(l, 3), ""), second, 8);
		args[2] = LLVMBuildOr(l->b, args[2], c_i32(l, 0x400), "");
	}
	return permute_bytes(l, args[0], args[1], args[2]);
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

/* Registers r and r + 1 of the integer tile v, as two fp16 numbers in one word. */
static LLVMValueRef two_halves_of(struct lower *l, const struct value *v, u32 r)
{
	LLVMValueRef half[2];
	for (u32 k = 0; k < 2; k++) {
		half[k] = LLVMBuildSIToFP(l->b, elem(l, v, r + k), LLVMHalfTypeInContext(l->ctx), "");
		half[k] = LLVMBuildZExt(l->b, LLVMBuildBitCast(l->b, half[k], l->i16, ""), l->i32, "");
	}
	return both(l, half[0], half[1], 16);
}

/* The fields of registers r and r + 1, as two fp16 numbers in one word. */
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
	LLVMValueRef bytes = two_bytes(l, f, r, by), args[] = {bytes, both(l, mask[0], mask[1], 16)};
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
		LLVMValueRef two = LLVMBuildBitCast(l->b, at[r / 2], LLVMVectorType(l->f16, 2), ""), one[2];
		for (u32 k = 0; k < 2; k++)
			one[k] = LLVMBuildFPExt(l->b, LLVMBuildExtractElement(l->b, two, c_i32(l, k), ""), l->f32, "");
		at[r / 2] = cvt_f16x2(l, one[0], one[1], to);
	}
	set_words(l, v, at, n / 2);
	return true;
}
