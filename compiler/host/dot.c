/* Dots: C += A · B on the vector unit.
 *
 * Operands lie in scratch memory in the form that the instruction takes. B lies in panels of as many columns as two
 * registers of sums hold, its rows one after the other; where an instruction adds up several products, as many rows are
 * interleaved, so that the elements of a column that it takes are neighbours. A block of rows of C by one panel stays
 * in registers while k runs. */
#include "host/vector.h"

enum {
	PANEL_REGISTERS = 2,
	/* of a block: with two registers of B, and one more for A, they are 15 of 16, and 27 of 32 */
	ROWS16 = 6,
	ROWS32 = 8,
	UNROLLED = 4, /* steps of k */
};

/* What multiplies: the elements of a row of A that one step takes, the integer type that an operand's element lies in
 * (NULL: the type of the sum), and the fewest columns. */
static const struct dot_unit {
	u32 group, bits, columns;
} units[] = {
	[DOT_MULTIPLY_ADD] = {1, 0, 1},
	[DOT_BF16] = {2, 16, 4},  /* vdpbf16ps, which takes subnormal numbers for zero */
	[DOT_INT16] = {2, 16, 4}, /* pmaddwd: exact but for -2^15 · -2^15 twice, which wraps as the sum does */
	[DOT_INT8] = {4, 8, 4},   /* vpdpbusd: A without a sign, as a + 128 */
};

static enum dtype sum_dtype(const struct op *o)
{
	enum dtype c = type_dtype(operand(o, 2)->type), a = type_dtype(operand(o, 0)->type);
	if (dtype_is_int(c))
		return c == DT_I64 ? DT_I64 : DT_I32;
	return c == DT_F64 || a == DT_F64 ? DT_F64 : DT_F32;
}

static bool is_bf16(enum dtype d) /* or has no values that bf16 lacks */
{
	return d == DT_BF16 || dtype_is_fp8(d);
}

static enum dot_unit_kind unit_of(const struct host *h, const struct op *o)
{
	const struct description *target = h->s->target;
	const struct type *at = operand(o, 0)->type, *bt = operand(o, 1)->type;
	enum dtype a = type_dtype(at), b = type_dtype(bt), sum = sum_dtype(o);
	enum dot_unit_kind unit = DOT_MULTIPLY_ADD;
	if (target->level == CPU_NEON)
		return unit;
	if (sum == DT_F32 && is_bf16(a) && is_bf16(b) && target->has_bf16)
		unit = DOT_BF16;
	if (sum == DT_I32 && dtype_bits(a) <= 16 && dtype_bits(b) <= 16)
		unit = a == DT_I8 && b == DT_I8 && target->has_int8_dot ? DOT_INT8 : DOT_INT16;
	bool fits = at->shape[at->rank - 1] % (i32)units[unit].group == 0 &&
		    bt->shape[bt->rank - 1] >= (i32)units[unit].columns;
	return fits ? unit : DOT_MULTIPLY_ADD;
}

static LLVMTypeRef llvm_dtype(struct host *h, enum dtype d)
{
	return d == DT_F32 ? h->f32 : d == DT_F64 ? h->f64 : d == DT_I64 ? h->i64 : h->i32;
}

static LLVMValueRef to_int(struct host *h, LLVMValueRef x, LLVMTypeRef to, u32 lanes)
{
	u32 from = LLVMGetIntTypeWidth(elem_of(LLVMTypeOf(x))), bits = LLVMGetIntTypeWidth(to);
	LLVMTypeRef t = host_vector_type(to, lanes);
	return bits == from  ? x
	       : from > bits ? LLVMBuildTrunc(h->b, x, t, "")
	       : from == 1   ? LLVMBuildZExt(h->b, x, t, "")
			     : LLVMBuildSExt(h->b, x, t, "");
}

static LLVMValueRef to_sum(struct host *h, LLVMValueRef x, enum dtype from, LLVMTypeRef sum, u32 lanes)
{
	if (dtype_is_int(from))
		return to_int(h, x, sum, lanes);
	x = host_widen(h, x, from, lanes);
	return sum == h->f64 && from != DT_F64 ? LLVMBuildFPExt(h->b, x, host_vector_type(sum, lanes), "") : x;
}

static LLVMValueRef from_sum(struct host *h, LLVMValueRef x, enum dtype to, enum dtype sum, u32 lanes)
{
	if (to == sum)
		return x;
	if (dtype_is_int(to))
		return LLVMBuildTrunc(h->b, x,
				      host_vector_type(LLVMIntTypeInContext(h->ctx, (u32)dtype_bits(to)), lanes), "");
	return host_narrow(h, x, to, lanes);
}

/* To 10 bits of mantissa, ties away from zero (base/fp.h). */
static LLVMValueRef round_tf32(struct host *h, LLVMValueRef x)
{
	LLVMTypeRef t = host_vector_type(h->i32, lanes_of(x));
	LLVMValueRef exponent = host_spread(h, host_i32(h, 0x7F800000), lanes_of(x)),
		     half = host_spread(h, host_i32(h, 0x1000), lanes_of(x)),
		     kept = host_spread(h, host_i32(h, ~0x1FFF), lanes_of(x));
	LLVMValueRef bits = LLVMBuildBitCast(h->b, x, t, "");
	LLVMValueRef special = LLVMBuildICmp(h->b, LLVMIntEQ, LLVMBuildAnd(h->b, bits, exponent, ""), exponent, "");
	LLVMValueRef r = LLVMBuildAnd(h->b, LLVMBuildAdd(h->b, bits, half, ""), kept, "");
	return LLVMBuildSelect(h->b, special, x, LLVMBuildBitCast(h->b, r, LLVMTypeOf(x), ""), "");
}

/* --- operands ---------------------------------------------------------------------------------------------------- */

LLVMValueRef host_to_operand(struct host *h, LLVMValueRef x, const struct buffer *to, u32 lanes)
{
	switch (to->unit) {
	case DOT_BF16:
		return to->operand == DT_BF16 ? x
					      : host_narrow(h, host_widen(h, x, to->operand, lanes), DT_BF16, lanes);
	case DOT_INT16: return to_int(h, x, to->elem, lanes);
	case DOT_INT8:
		return to->panel ? x
				 : LLVMBuildXor(h->b, x, host_spread(h, LLVMConstInt(h->i8, 0x80, false), lanes), "");
	case DOT_MULTIPLY_ADD: break;
	}
	x = to_sum(h, x, to->operand, to->elem, lanes);
	return to->tf32 ? round_tf32(h, x) : x;
}

struct buffer *host_dot_buffer(struct host *h, const struct op *o, u32 which)
{
	const struct type *t = operand(o, which)->type;
	enum dtype sum = sum_dtype(o);
	struct buffer *b = arena_new(&h->scratch, struct buffer);
	*b = (struct buffer){.elem = llvm_dtype(h, sum), .operand = type_dtype(t), .unit = unit_of(h, o)};
	if (units[b->unit].bits)
		b->elem = LLVMIntTypeInContext(h->ctx, units[b->unit].bits);
	b->tf32 = o->attr[ATTR_PRECISION] == PRECISION_TF32 && b->operand == DT_F32;
	i64 n = 1, bytes = dtype_bytes(sum);
	for (int d = t->rank - 1; d >= 0; n *= t->shape[d--])
		b->stride[d] = n;
	if (which) {
		i64 columns = t->shape[t->rank - 1];
		b->panel = MIN(PANEL_REGISTERS * h->s->target->vector_bytes / bytes, columns);
		b->panel_stride = b->panel * t->shape[t->rank - 2];
		b->stride[t->rank - 2] = b->panel;
	}
	b->bytes = (u64)(n * (units[b->unit].bits ? units[b->unit].bits / 8 : bytes));
	b->at = host_scratch(h, b->bytes);
	return b;
}

static bool is_operand(const struct buffer *b, u32 which)
{
	return b->operand != DT_COUNT && (b->panel > 0) == (which > 0);
}

/* x0 y0 x1 y1 … */
static LLVMValueRef interleave(struct host *h, LLVMValueRef x, LLVMValueRef y)
{
	LLVMValueRef mask[512];
	u32 n = lanes_of(x);
	tl_assert(2 * n <= ARRAY_LEN(mask));
	for (u32 i = 0; i < n; i++) {
		mask[2 * i] = host_i32(h, i);
		mask[2 * i + 1] = host_i32(h, n + i);
	}
	return LLVMBuildShuffleVector(h->b, x, y, LLVMConstVector(mask, 2 * n), "");
}

/* As panels lie one behind the other, each group of rows of a panel is interleaved where it is. */
void host_dot_interleave(struct host *h, const struct buffer *b)
{
	u32 group = units[b->unit].group;
	if (group == 1 || !b->panel)
		return;
	i64 bytes = units[b->unit].bits / 8, step = b->panel * group;
	LLVMTypeRef row = LLVMVectorType(b->elem, (u32)b->panel);
	LLVMValueRef x[4];
	struct loop l = host_loop(h, host_i64(h, 0), host_i64(h, (i64)b->bytes / bytes), step, false);
	LLVMValueRef at = host_gep(h, b->at, b->elem, l.index);
	for (u32 i = 0; i < group; i++) {
		x[i] = LLVMBuildLoad2(h->b, row, host_gep(h, at, b->elem, host_i64(h, i * b->panel)), "");
		LLVMSetAlignment(x[i], (u32)bytes);
	}
	for (u32 n = group / 2; n; n /= 2)
		for (u32 i = 0; i < n; i++)
			x[i] = interleave(h, x[i], x[i + n]);
	LLVMSetAlignment(LLVMBuildStore(h->b, x[0], at), (u32)bytes);
	host_loop_end(h, &l);
}

/* Copies a tile that other operations need, too. */
static struct buffer *operand_memory(struct host *h, const struct op *o, u32 which)
{
	const struct value *v = operand(o, which);
	const struct info *i = info_of(h, v);
	if (i->made && is_operand(i->buffer, which))
		return i->buffer;
	struct buffer *b = host_dot_buffer(h, o, which);
	host_compute(h, v, b, b->panel ? (u32)b->panel : 0);
	host_dot_interleave(h, b);
	return b;
}

bool host_dot_takes(struct host *h, const struct value *v, const struct op **dot, u32 *which)
{
	const struct op *first = NULL;
	for (const struct use *u = v->uses; u; u = u->next) {
		const struct op *o = u->user;
		u32 k = (u32)(u - o->operands);
		if (o->code != IR_DOT || k > 1 ||
		    (first && (k != *which || sum_dtype(o) != sum_dtype(first) || unit_of(h, o) != unit_of(h, first) ||
			       o->attr[ATTR_PRECISION] != first->attr[ATTR_PRECISION])))
			return false;
		first = o;
		*which = k;
	}
	*dot = first;
	return first && info_of(h, v)->stored;
}

/* --- the product ---------------------------------------------------------------------------------------------------
 */

struct product {
	const struct type *type; /* of C */
	struct buffer *a, *b, *c;
	enum dtype sum, result;
	i32 k;
	u32 registers, lanes, rows; /* of the block: registers of `lanes` sums in a row */
	struct at at;               /* of C: the block's first row and column */
};

/* c + a · b, lane by lane; a unit's operands as integers of 32 bits. */
static LLVMValueRef dot_step(struct host *h, enum dot_unit_kind unit, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
	LLVMTypeRef t = LLVMTypeOf(c);
	u32 lanes = lanes_of(c);
	bool is_int = LLVMGetTypeKind(LLVMGetElementType(t)) == LLVMIntegerTypeKind;
	LLVMValueRef args[] = {a, b, c};
	const char *bits = lanes == 16 ? "512" : lanes == 8 ? "256" : "128";
	switch (unit) {
	case DOT_BF16: {
		LLVMTypeRef pairs = LLVMVectorType(LLVMBFloatTypeInContext(h->ctx), 2 * lanes);
		LLVMValueRef sum[] = {c, LLVMBuildBitCast(h->b, a, pairs, ""), LLVMBuildBitCast(h->b, b, pairs, "")};
		return host_intrinsic(h, arena_printf(&h->scratch, "llvm.x86.avx512bf16.dpbf16ps.%s", bits), NULL, 0,
				      sum, 3);
	}
	case DOT_INT16: {
		static const char *const names[] = {"llvm.x86.sse2.pmadd.wd", "llvm.x86.avx2.pmadd.wd",
						    "llvm.x86.avx512.pmaddw.d.512"};
		LLVMTypeRef pairs = LLVMVectorType(h->i16, 2 * lanes);
		LLVMValueRef in[] = {LLVMBuildBitCast(h->b, a, pairs, ""), LLVMBuildBitCast(h->b, b, pairs, "")};
		return LLVMBuildAdd(h->b, c, host_intrinsic(h, names[lanes / 8], NULL, 0, in, 2), "");
	}
	case DOT_INT8: {
		LLVMValueRef sum[] = {c, a, b};
		return host_intrinsic(h, arena_printf(&h->scratch, "llvm.x86.avx512.vpdpbusd.%s", bits), NULL, 0, sum,
				      3);
	}
	case DOT_MULTIPLY_ADD: break;
	}
	if (is_int)
		return LLVMBuildAdd(h->b, c, LLVMBuildMul(h->b, a, b, ""), "");
	if (!h->s->target->has_fma)
		return LLVMBuildFAdd(h->b, c, LLVMBuildFMul(h->b, a, b, ""), "");
	return host_intrinsic(h, "llvm.fma", &t, 1, args, 3);
}

/* Address of a row's first element of the block, or of a step of k. */
static LLVMValueRef row_address(struct host *h, const struct buffer *b, int rank, const struct at *at)
{
	return host_gep(h, b->at, b->elem, host_offset(h, b, rank, at));
}

static struct at block_at(struct host *h, const struct product *p, u32 row, u32 reg)
{
	struct at at = p->at;
	int r = p->type->rank;
	at.i[r - 2] = LLVMBuildAdd(h->b, at.i[r - 2], host_i64(h, row), "");
	at.i[r - 1] = LLVMBuildAdd(h->b, at.i[r - 1], host_i64(h, reg * p->lanes), "");
	return at;
}

static void emit_block_of_c(struct host *h, const struct product *p)
{
	enum dot_unit_kind unit = p->a->unit;
	LLVMTypeRef elem = llvm_dtype(h, p->sum), step = units[unit].bits ? h->i32 : elem;
	LLVMTypeRef vt = LLVMVectorType(elem, p->lanes), bt = LLVMVectorType(step, p->lanes);
	LLVMValueRef acc[ROWS32 + 1][PANEL_REGISTERS], rows[ROWS32 + 1], first[ROWS32 + 1][PANEL_REGISTERS];
	int r = p->type->rank;
	/* of a + 128, the products of 128 are to be subtracted: one row more */
	u32 all = p->rows + (unit == DOT_INT8);
	for (u32 i = 0; i < all; i++) {
		for (u32 g = 0; g < p->registers; g++) {
			struct at at = block_at(h, p, i, g);
			first[i][g] = i < p->rows
					      ? to_sum(h, buffer_load(h, p->c, p->type, &at), p->result, elem, p->lanes)
					      : LLVMConstNull(vt);
		}
		struct at of_a = block_at(h, p, i, 0);
		of_a.i[r - 1] = host_i64(h, 0);
		rows[i] = row_address(h, p->a, r, &of_a);
	}
	struct at of_b = p->at;
	of_b.i[r - 2] = host_i64(h, 0);
	LLVMValueRef panel = row_address(h, p->b, r, &of_b);
	i64 steps = p->k / (i64)units[unit].group, unrolled = MIN(UNROLLED, steps);
	LLVMBasicBlockRef before = LLVMGetInsertBlock(h->b);
	struct loop l = host_loop(h, host_i64(h, 0), host_i64(h, steps), unrolled, false);
	for (u32 i = 0; i < all; i++)
		for (u32 g = 0; g < p->registers; g++) {
			acc[i][g] = LLVMBuildPhi(h->b, vt, "");
			LLVMAddIncoming(acc[i][g], &first[i][g], &before, 1);
			first[i][g] = acc[i][g];
		}
	for (i64 s = 0; s < unrolled; s++) {
		LLVMValueRef k = LLVMBuildNSWAdd(h->b, l.index, host_i64(h, s), ""), b[PANEL_REGISTERS];
		for (u32 g = 0; g < p->registers; g++) {
			LLVMValueRef at = LLVMBuildNSWMul(h->b, k, host_i64(h, p->b->panel), "");
			at = LLVMBuildNSWAdd(h->b, at, host_i64(h, g * p->lanes), "");
			b[g] = LLVMBuildLoad2(h->b, bt, host_gep(h, panel, step, at), "");
			LLVMSetAlignment(b[g], (u32)dtype_bytes(p->sum) * MIN(p->lanes, 8));
		}
		for (u32 i = 0; i < all; i++) {
			LLVMValueRef a = i < p->rows ? LLVMBuildLoad2(h->b, step, host_gep(h, rows[i], step, k), "")
						     : host_i32(h, 0x80808080);
			for (u32 g = 0; g < p->registers; g++)
				acc[i][g] = dot_step(h, unit, host_spread(h, a, p->lanes), b[g], acc[i][g]);
		}
	}
	LLVMBasicBlockRef last = LLVMGetInsertBlock(h->b);
	host_loop_end(h, &l);
	for (u32 i = 0; i < all; i++)
		for (u32 g = 0; g < p->registers; g++)
			LLVMAddIncoming(first[i][g], &acc[i][g], &last, 1);
	for (u32 i = 0; i < p->rows; i++)
		for (u32 g = 0; g < p->registers; g++) {
			struct at at = block_at(h, p, i, g);
			if (all > p->rows)
				acc[i][g] = LLVMBuildSub(h->b, acc[i][g], acc[p->rows][g], "");
			buffer_store(h, p->c, p->type, &at, from_sum(h, acc[i][g], p->result, p->sum, p->lanes));
		}
}

/* The sum lies where the accumulator did if that has no other use. */
static struct buffer *sum_memory(struct host *h, const struct op *o)
{
	const struct value *acc = operand(o, 2);
	struct info *i = info_of(h, acc), *to = info_of(h, result(o));
	const struct block *home = acc->def ? acc->def->block : acc->block;
	if (!to->buffer && i->made && value_has_one_use(acc) && home == o->block)
		to->buffer = i->buffer;
	struct buffer *c = buffer_of(h, result(o));
	if (!i->made || i->buffer != c)
		host_store_tile(h, acc, c);
	return c;
}

void host_dot(struct host *h, const struct op *o)
{
	const struct type *t = result(o)->type;
	int r = t->rank;
	struct product p = {.type = t, .sum = sum_dtype(o), .result = type_dtype(t)};
	p.a = operand_memory(h, o, 0);
	p.b = operand_memory(h, o, 1);
	p.c = sum_memory(h, o);
	p.k = operand(o, 0)->type->shape[r - 1];
	p.lanes = (u32)MIN(p.b->panel, h->s->target->vector_bytes / dtype_bytes(p.sum));
	p.registers = (u32)p.b->panel / p.lanes;
	u32 most = h->s->target->vector_registers == 32 ? ROWS32 : ROWS16;
	p.rows = (u32)MIN(t->shape[r - 2], (i64)most);
	p.at = (struct at){.along = r - 1, .lanes = p.lanes};
	struct loop batch = {0};
	if (r == 3) {
		batch = host_loop(h, host_i64(h, 0), host_i64(h, t->shape[0]), 1, false);
		p.at.i[0] = batch.index;
	}
	struct loop columns = host_loop(h, host_i64(h, 0), host_i64(h, t->shape[r - 1]), p.b->panel, false);
	p.at.i[r - 1] = columns.index;
	i64 all = t->shape[r - 2], rest = all % p.rows;
	struct loop rows = host_loop(h, host_i64(h, 0), host_i64(h, all - rest), p.rows, false);
	p.at.i[r - 2] = rows.index;
	emit_block_of_c(h, &p);
	host_loop_end(h, &rows);
	if (rest) {
		p.rows = (u32)rest;
		p.at.i[r - 2] = host_i64(h, all - rest);
		emit_block_of_c(h, &p);
	}
	host_loop_end(h, &columns);
	if (r == 3)
		host_loop_end(h, &batch);
	info_of(h, result(o))->made = true;
}
