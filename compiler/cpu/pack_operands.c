/* Packing of dot operands in scratch memory, in the format that the dot's instruction (dot_unit) reads.
 *
 * Operand B (k rows by the dot's columns) is stored in panels: a panel is all rows of as many columns as two vector
 * registers have accumulators. Its rows lie one after another. If the instruction adds dot_unit.group products along k
 * to an accumulator, that number of rows is interleaved element by element, so that the elements of one column for one
 * instruction are successive. Operand A is row-major. Nests store operands row by row. Tiles that are contiguous along
 * the other dimension are transposed in registers, one square of `lanes` by `lanes` elements at a time. */
#include "cpu/vector_ops.h"

enum { PANEL_REGISTERS = HOST_PANEL_REGISTERS };

const struct dot_unit cpu_dot_units[] = {
	[DOT_MULTIPLY_ADD] = {1, 0, 1, 1, 1},
	[DOT_BF16] = {2, 16, 1, 4, 2},  /* vdpbf16ps; treats subnormals as zero */
	[DOT_INT16] = {2, 16, 1, 4, 2}, /* pmaddwd; the sum of two products wraps as i32 sums do */
	[DOT_INT8] = {4, 8, 1, 4, 4},   /* vpdpbusd; unsigned A, stored as a + 128 */
	[DOT_TILES_BF16] = {2, 16, 16, 16, 32}, /* tdpbf16ps; treats subnormals as zero */
	[DOT_TILES_INT8] = {4, 8, 16, 16, 64},  /* tdpbssd */
};

enum dtype cpu_sum_dtype(const struct op *o)
{
	enum dtype c = type_dtype(operand(o, 2)->type), a = type_dtype(operand(o, 0)->type);
	if (dtype_is_int(c))
		return c == DT_I64 ? DT_I64 : DT_I32;
	return c == DT_F64 || a == DT_F64 ? DT_F64 : DT_F32;
}

static bool is_bf16(enum dtype d) /* whether bf16 represents all numbers of the format */
{
	return d == DT_BF16 || dtype_is_fp8(d);
}

/* Whether the CPU has the instruction, and it takes operands a and b and accumulators `sum`. */
static bool multiplies(const struct target *target, enum dot_unit_kind unit, enum dtype a, enum dtype b,
		       enum dtype sum)
{
	bool bf16 = sum == DT_F32 && is_bf16(a) && is_bf16(b);
	bool int8 = sum == DT_I32 && a == DT_I8 && b == DT_I8;
	switch (unit) {
	case DOT_TILES_INT8: return int8 && target->has_tiles;
	case DOT_TILES_BF16: return bf16 && target->has_tiles;
	case DOT_INT8: return int8 && target->has_int8_dot;
	case DOT_INT16: return sum == DT_I32 && dtype_bits(a) <= 16 && dtype_bits(b) <= 16;
	case DOT_BF16: return bf16 && target->has_bf16;
	case DOT_MULTIPLY_ADD: break;
	}
	return true;
}

/* The last kind of the enumeration, in which faster ones come later, that the CPU has for the types and shape of dot
 * o. */
enum dot_unit_kind cpu_dot_unit(const struct cpu_codegen *h, const struct op *o)
{
	const struct type *a = operand(o, 0)->type, *b = operand(o, 1)->type;
	u32 unit = h->s->target->level == CPU_NEON ? DOT_MULTIPLY_ADD : DOT_TILES_INT8;
	for (; unit > DOT_MULTIPLY_ADD; unit--) {
		const struct dot_unit *u = &cpu_dot_units[unit];
		int r = a->rank;
		if (multiplies(h->s->target, unit, type_dtype(a), type_dtype(b), cpu_sum_dtype(o)) &&
		    a->shape[r - 2] % u->rows == 0 && b->shape[r - 1] % u->columns == 0 && a->shape[r - 1] % u->k == 0)
			break;
	}
	return (enum dot_unit_kind)unit;
}

static LLVMValueRef to_int(struct cpu_codegen *h, LLVMValueRef x, LLVMTypeRef to)
{
	int from = type_bits(LLVMTypeOf(x)), bits = type_bits(to);
	LLVMTypeRef t = type_as(x, to);
	return bits == from  ? x
	       : from > bits ? LLVMBuildTrunc(h->b, x, t, "")
	       : from == 1   ? LLVMBuildZExt(h->b, x, t, "")
			     : LLVMBuildSExt(h->b, x, t, "");
}

LLVMValueRef cpu_to_sum(struct cpu_codegen *h, LLVMValueRef x, enum dtype from, LLVMTypeRef sum)
{
	if (dtype_is_int(from))
		return to_int(h, x, sum);
	x = cpu_widen(h, x, from);
	return sum == h->f64 && from != DT_F64 ? LLVMBuildFPExt(h->b, x, type_as(x, sum), "") : x;
}

/* Truncates fp32 to TF32: 10 bits of mantissa, as tensor cores do (support/small_floats.h). */
static LLVMValueRef truncate_tf32(struct cpu_codegen *h, LLVMValueRef x)
{
	LLVMValueRef bits = to_bits(h->b, x);
	return from_bits(h->b, LLVMBuildAnd(h->b, bits, int_as(bits, ~0x1FFFu), ""), h->f32);
}

LLVMValueRef cpu_to_operand(struct cpu_codegen *h, LLVMValueRef x, const struct buffer *to)
{
	switch (to->unit) {
	case DOT_TILES_BF16:
	case DOT_BF16: return to->operand == DT_BF16 ? x : cpu_narrow(h, cpu_widen(h, x, to->operand), DT_BF16);
	case DOT_INT16: return to_int(h, x, to->elem);
	case DOT_INT8: return to->panel ? x : LLVMBuildXor(h->b, x, int_as(x, 0x80), "");
	case DOT_TILES_INT8: return x;
	case DOT_MULTIPLY_ADD: break;
	}
	x = cpu_to_sum(h, x, to->operand, to->elem);
	return to->tf32 ? truncate_tf32(h, x) : x;
}

struct buffer *cpu_dot_buffer(struct cpu_codegen *h, const struct op *o, u32 which)
{
	const struct type *t = operand(o, which)->type;
	enum dtype sum = cpu_sum_dtype(o);
	struct buffer *b = arena_new(&h->scratch, struct buffer);
	*b = (struct buffer){.elem = llvm_dtype(h->ctx, sum), .operand = type_dtype(t), .unit = cpu_dot_unit(h, o)};
	if (cpu_dot_units[b->unit].bits)
		b->elem = LLVMIntTypeInContext(h->ctx, (u32)cpu_dot_units[b->unit].bits);
	b->tf32 = o->attr[ATTR_PRECISION] == PRECISION_TF32 && b->operand == DT_F32;
	i64 n = 1, bytes = dtype_bytes(sum);
	const struct deferred *deferred = cpu_deferred(h, o->block->parent);
	i64 slots = deferred ? deferred->slots : 1, k = slots * t->shape[which ? t->rank - 2 : t->rank - 1];
	for (int d = t->rank - 1; d >= 0; d--) {
		b->stride[d] = n;
		n *= d == t->rank - 2 + !which ? k : t->shape[d];
	}
	b->slot_stride = t->shape[t->rank - 1];
	if (which) {
		i64 columns = t->shape[t->rank - 1];
		b->panel = MIN(PANEL_REGISTERS * h->s->target->vector_bytes / bytes, columns);
		b->panel_stride = b->panel * k;
		b->stride[t->rank - 2] = b->panel;
		b->slot_stride = b->panel * t->shape[t->rank - 2];
	}
	b->bytes = (u64)(n * (cpu_dot_units[b->unit].bits ? cpu_dot_units[b->unit].bits / 8 : bytes));
	b->at = b->first_slot = cpu_scratch(h, b->bytes);
	b->mark = cpu_new_mark(h);
	return b;
}

static bool is_operand(const struct buffer *b, u32 which)
{
	return b->operand != DT_COUNT && (b->panel > 0) == (which > 0);
}

/* The vector x0 y0 x1 y1 … */
static LLVMValueRef interleave(struct cpu_codegen *h, LLVMValueRef x, LLVMValueRef y)
{
	LLVMValueRef mask[512];
	u32 n = lanes_of(x);
	tl_assert(2 * n <= ARRAY_LEN(mask));
	for (u32 i = 0; i < n; i++) {
		mask[2 * i] = cpu_i32(h, i);
		mask[2 * i + 1] = cpu_i32(h, n + i);
	}
	return LLVMBuildShuffleVector(h->b, x, y, LLVMConstVector(mask, 2 * n), "");
}

/* A vector of the first elements of n vectors, then their second elements, and so on. n is a power of two. Overwrites
 * x. */
static LLVMValueRef interleave_all(struct cpu_codegen *h, LLVMValueRef *x, u32 n)
{
	for (n /= 2; n; n /= 2)
		for (u32 i = 0; i < n; i++)
			x[i] = interleave(h, x[i], x[i + n]);
	return x[0];
}

u32 cpu_dot_group(const struct buffer *b)
{
	return b && b->panel ? (u32)cpu_dot_units[b->unit].group : 1;
}

void cpu_dot_interleave(struct cpu_codegen *h, const struct type *t, const struct buffer *b, const struct at *first)
{
	u32 group = (u32)cpu_dot_units[b->unit].group;
	i64 bytes = cpu_dot_units[b->unit].bits / 8;
	int r = t->rank;
	LLVMTypeRef row = LLVMVectorType(b->elem, (u32)b->panel);
	struct at at = *first;
	LLVMValueRef x[4];
	struct cpu_loop l = cpu_loop(h, cpu_i64(h, 0), cpu_i64(h, t->shape[r - 1]), b->panel, false);
	at.i[r - 1] = l.index;
	LLVMValueRef to = cpu_row_address(h, b, r, &at);
	for (u32 i = 0; i < group; i++) {
		x[i] = LLVMBuildLoad2(h->b, row, gep(h->b, to, b->elem, cpu_i64(h, i * b->panel)), "");
		LLVMSetAlignment(x[i], (u32)bytes);
		cpu_mark(h, b, x[i]);
	}
	LLVMValueRef store = LLVMBuildStore(h->b, interleave_all(h, x, group), to);
	LLVMSetAlignment(store, (u32)bytes);
	cpu_mark(h, b, store);
	cpu_loop_end(h, &l);
}

void cpu_dot_interleave_all(struct cpu_codegen *h, const struct type *t, const struct buffer *b)
{
	int r = t->rank;
	struct at at = {.along = -1};
	struct cpu_loop l[2];
	if (cpu_dot_group(b) == 1)
		return;
	for (int d = 0; d < r - 1; d++) {
		l[d] = cpu_loop(h, cpu_i64(h, 0), cpu_i64(h, t->shape[d]), d == r - 2 ? cpu_dot_group(b) : 1,
				 false);
		at.i[d] = l[d].index;
	}
	cpu_dot_interleave(h, t, b, &at);
	for (int d = r - 2; d >= 0; d--)
		cpu_loop_end(h, &l[d]);
}

/* --- transposition of squares in registers ------------------------------------------------------------------- */

/* Splits a and b into groups of d lanes and takes the even groups (the odd ones if `second`), alternately from a and
 * b. */
static LLVMValueRef halves(struct cpu_codegen *h, LLVMValueRef a, LLVMValueRef b, u32 d, bool second)
{
	LLVMValueRef mask[64];
	u32 n = lanes_of(a);
	for (u32 l = 0; l < n; l++)
		mask[l] = cpu_i32(h, (l & ~d) + (second ? d : 0) + (l & d ? n : 0));
	return LLVMBuildShuffleVector(h->b, a, b, LLVMConstVector(mask, n), "");
}

/* For each four lanes: a0 b0 a1 b1, or a2 b2 a3 b3 if `second`. This is one instruction, where halves() takes two. */
static LLVMValueRef unpack(struct cpu_codegen *h, LLVMValueRef a, LLVMValueRef b, bool second)
{
	LLVMValueRef mask[64];
	u32 n = lanes_of(a);
	for (u32 l = 0; l < n; l++)
		mask[l] = cpu_i32(h, (l & ~3u) + (second ? 2 : 0) + (l & 2) / 2 + (l & 1 ? n : 0));
	return LLVMBuildShuffleVector(h->b, a, b, LLVMConstVector(mask, n), "");
}

/* Transposes the n x n square whose rows are the vectors x[0] … x[n - 1]. */
static void transpose_square(struct cpu_codegen *h, LLVMValueRef *x, u32 n)
{
	u32 d = 1;
	for (u32 i = 0; n >= 4 && i < n; i += 4) {
		LLVMValueRef y[4];
		for (u32 k = 0; k < 4; k++)
			y[k] = unpack(h, x[i + (k & 2)], x[i + (k & 2) + 1], k & 1);
		for (u32 k = 0; k < 4; k++)
			x[i + k] = halves(h, y[k / 2], y[k / 2 + 2], 2, k & 1);
		d = 4;
	}
	for (; d < n; d *= 2)
		for (u32 i = 0; i < n; i++)
			if (!(i & d)) {
				LLVMValueRef a = x[i], b = x[i + d];
				x[i] = halves(h, a, b, d, false);
				x[i + d] = halves(h, a, b, d, true);
			}
}

/* The type of a vector of `lanes` integers, each of which holds the dot_unit.group elements along k that one
 * instruction multiplies for one row or column. */
static LLVMTypeRef step_type(struct cpu_codegen *h, const struct buffer *b, u32 lanes)
{
	u32 bits = cpu_dot_units[b->unit].bits ? 32 : b->elem == h->f64 || b->elem == h->i64 ? 64 : 32;
	return LLVMVectorType(LLVMIntTypeInContext(h->ctx, bits), lanes);
}

static LLVMValueRef load_operand(struct cpu_codegen *h, const struct buffer *from, const struct buffer *to,
				 const struct type *t, struct at at, u32 lanes)
{
	at.along = t->rank - 2;
	at.lanes = lanes;
	return cpu_to_operand(h, buffer_load(h, from, t, &at), to);
}

/* Loads a square of B: x[i] holds `lanes` integers of step_type along k for column i, from index `at` on. */
static void load_columns(struct cpu_codegen *h, const struct buffer *from, const struct buffer *to,
			 const struct type *t, const struct at *at, u32 lanes, LLVMValueRef *x)
{
	struct at one = *at;
	for (u32 i = 0; i < lanes; i++) {
		one.i[t->rank - 1] = LLVMBuildAdd(h->b, at->i[t->rank - 1], cpu_i64(h, i), "");
		x[i] = load_operand(h, from, to, t, one, lanes * (u32)cpu_dot_units[to->unit].group);
		x[i] = LLVMBuildBitCast(h->b, x[i], step_type(h, to, lanes), "");
	}
}

/* Loads a square of A: x[i] holds integer i of step_type along k for `lanes` rows, from index `at` on. */
static void load_rows(struct cpu_codegen *h, const struct buffer *from, const struct buffer *to, const struct type *t,
		      const struct at *at, u32 lanes, LLVMValueRef *x)
{
	u32 group = (u32)cpu_dot_units[to->unit].group;
	struct at one = *at;
	for (u32 i = 0; i < lanes; i++) {
		LLVMValueRef part[4];
		for (u32 g = 0; g < group; g++) {
			one.i[t->rank - 1] = LLVMBuildAdd(h->b, at->i[t->rank - 1], cpu_i64(h, i * group + g), "");
			part[g] = load_operand(h, from, to, t, one, lanes);
		}
		x[i] = LLVMBuildBitCast(h->b, interleave_all(h, part, group), step_type(h, to, lanes), "");
	}
}

void cpu_dot_transpose(struct cpu_codegen *h, const struct type *t, const struct buffer *from, const struct buffer *to)
{
	int r = t->rank;
	u32 group = (u32)cpu_dot_units[to->unit].group;
	bool is_b = to->panel > 0;
	LLVMTypeRef step = LLVMGetElementType(step_type(h, to, 1));
	u32 square = (u32)h->s->target->vector_bytes * 8 / LLVMGetIntTypeWidth(step);
	i64 across = is_b ? to->panel : t->shape[r - 2], along = t->shape[r - (is_b ? 2 : 1)] / (i64)group;
	square = (u32)MIN((i64)square, MIN(across, along));
	struct at at = {.along = -1};
	struct cpu_loop batch = {0}, panels = {0};
	if (r == 3) {
		batch = cpu_loop(h, cpu_i64(h, 0), cpu_i64(h, t->shape[0]), 1, false);
		at.i[0] = batch.index;
	}
	if (is_b)
		panels = cpu_loop(h, cpu_i64(h, 0), cpu_i64(h, t->shape[r - 1]), across, false);
	struct cpu_loop outer = cpu_loop(h, cpu_i64(h, 0), cpu_i64(h, across), square, false);
	struct cpu_loop inner = cpu_loop(h, cpu_i64(h, 0), cpu_i64(h, along * group), (i64)square * group, false);
	LLVMValueRef x[64], target;
	cpu_forget(h);
	if (is_b) {
		at.i[r - 2] = inner.index;
		at.i[r - 1] = panels.index;
		LLVMValueRef offset = cpu_offset(h, to, r, &at);
		at.i[r - 1] = LLVMBuildAdd(h->b, panels.index, outer.index, "");
		load_columns(h, from, to, t, &at, square, x);
		target = LLVMBuildAdd(h->b, offset, LLVMBuildMul(h->b, outer.index, cpu_i64(h, group), ""), "");
	} else {
		at.i[r - 2] = outer.index;
		at.i[r - 1] = inner.index;
		load_rows(h, from, to, t, &at, square, x);
		target = cpu_offset(h, to, r, &at);
	}
	transpose_square(h, x, square);
	for (u32 i = 0; i < square; i++) {
		i64 apart = is_b ? to->panel * group : to->stride[r - 2];
		LLVMValueRef p = LLVMBuildAdd(h->b, target, cpu_i64(h, i * apart), "");
		LLVMValueRef store = LLVMBuildStore(h->b, x[i], gep(h->b, to->at, to->elem, p));
		LLVMSetAlignment(store, LLVMGetIntTypeWidth(step) / 8);
		cpu_mark(h, to, store);
	}
	cpu_loop_end(h, &inner);
	cpu_loop_end(h, &outer);
	if (is_b)
		cpu_loop_end(h, &panels);
	if (r == 3)
		cpu_loop_end(h, &batch);
	cpu_forget(h);
}

bool cpu_dot_turns(struct cpu_codegen *h, const struct op *o)
{
	if (o->code != IR_TRANS || !info_of(h, result(o))->buffer || info_of(h, result(o))->buffer->operand == DT_COUNT)
		return false;
	int r = result(o)->type->rank;
	const struct info *i = info_of(h, operand(o, 0));
	return i->stored && !i->free && perm_get(o->attr[ATTR_ORDER], r - 2) == cpu_inner(h, operand(o, 0));
}

void cpu_dot_turn(struct cpu_codegen *h, const struct op *o)
{
	const struct value *v = result(o);
	const struct buffer *from = info_of(h, operand(o, 0))->buffer;
	struct buffer view = *from;
	for (int d = 0; d < v->type->rank; d++)
		view.stride[d] = from->stride[perm_get(o->attr[ATTR_ORDER], d)];
	cpu_dot_transpose(h, v->type, &view, info_of(h, v)->buffer);
	info_of(h, v)->made = true;
}

/* --- selection of tiles -------------------------------------------------------------------------------------- */

bool cpu_dot_takes(struct cpu_codegen *h, const struct value *v, const struct op **dot, u32 *which)
{
	const struct op *first = NULL;
	for (const struct use *u = v->uses; u; u = u->next) {
		const struct op *o = u->user;
		u32 k = (u32)(u - o->operands);
		if (o->code != IR_DOT || k > 1 ||
		    (first && (k != *which || cpu_sum_dtype(o) != cpu_sum_dtype(first) ||
			       cpu_dot_unit(h, o) != cpu_dot_unit(h, first) ||
			       o->attr[ATTR_PRECISION] != first->attr[ATTR_PRECISION])))
			return false;
		first = o;
		*which = k;
	}
	*dot = first;
	return first && info_of(h, v)->stored;
}

struct buffer *cpu_dot_operand(struct cpu_codegen *h, const struct op *o, u32 which)
{
	const struct value *v = operand(o, which);
	const struct info *i = info_of(h, v);
	if (i->made && is_operand(i->buffer, which))
		return i->buffer;
	struct buffer *b = cpu_dot_buffer(h, o, which);
	cpu_compute(h, v, b, b->panel ? (u32)b->panel : 0);
	cpu_dot_interleave_all(h, v->type, b);
	return b;
}
