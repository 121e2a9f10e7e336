/* Dots: C += A · B on the vector unit's multiply-adds.
 *
 * Operands lie in scratch memory in the type of the sum. B lies in panels of as many columns as two registers hold, its
 * rows one after the other. A block of ROWS rows of C by one panel stays in registers while k runs. */
#include "host/internal.h"

enum { PANEL_REGISTERS = 2, ROWS = 6, UNROLLED = 4 /* steps of k */ };

static enum dtype sum_dtype(const struct op *o)
{
	enum dtype c = type_dtype(operand(o, 2)->type), a = type_dtype(operand(o, 0)->type);
	if (dtype_is_int(c))
		return c == DT_I64 ? DT_I64 : DT_I32;
	return c == DT_F64 || a == DT_F64 ? DT_F64 : DT_F32;
}

static LLVMTypeRef llvm_dtype(struct host *h, enum dtype d)
{
	return d == DT_F32 ? h->f32 : d == DT_F64 ? h->f64 : d == DT_I64 ? h->i64 : h->i32;
}

LLVMValueRef host_to_sum(struct host *h, LLVMValueRef x, enum dtype from, LLVMTypeRef sum, u32 lanes)
{
	LLVMTypeRef t = host_vector_type(sum, lanes);
	if (dtype_is_int(from)) {
		u32 bits = (u32)dtype_bits(from), to = LLVMGetIntTypeWidth(sum);
		return bits == to  ? x
		       : bits > to ? LLVMBuildTrunc(h->b, x, t, "")
		       : bits == 1 ? LLVMBuildZExt(h->b, x, t, "")
				   : LLVMBuildSExt(h->b, x, t, "");
	}
	x = host_widen(h, x, from, lanes);
	return sum == h->f64 && from != DT_F64 ? LLVMBuildFPExt(h->b, x, t, "") : x;
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
LLVMValueRef host_round_tf32(struct host *h, LLVMValueRef x)
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

struct buffer *host_dot_buffer(struct host *h, const struct op *o, u32 which)
{
	const struct type *t = operand(o, which)->type;
	enum dtype sum = sum_dtype(o);
	struct buffer *b = arena_new(&h->scratch, struct buffer);
	*b = (struct buffer){.elem = llvm_dtype(h, sum), .widened = type_dtype(t)};
	b->tf32 = o->attr[ATTR_PRECISION] == PRECISION_TF32 && b->widened == DT_F32;
	i64 n = 1, bytes = dtype_bytes(sum);
	for (int d = t->rank - 1; d >= 0; n *= t->shape[d--])
		b->stride[d] = n;
	if (which) {
		i64 columns = t->shape[t->rank - 1];
		b->panel = MIN(PANEL_REGISTERS * h->s->target->vector_bytes / bytes, columns);
		b->panel_stride = b->panel * t->shape[t->rank - 2];
		b->stride[t->rank - 2] = b->panel;
	}
	b->bytes = (u64)(n * bytes);
	b->at = host_scratch(h, b->bytes);
	return b;
}

static bool is_operand(const struct buffer *b, u32 which)
{
	return b->widened != DT_COUNT && (b->panel > 0) == (which > 0);
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
	return b;
}

bool host_dot_takes(struct host *h, const struct value *v, const struct op **dot, u32 *which)
{
	const struct op *first = NULL;
	for (const struct use *u = v->uses; u; u = u->next) {
		const struct op *o = u->user;
		u32 k = (u32)(u - o->operands);
		if (o->code != IR_DOT || k > 1 ||
		    (first && (k != *which || sum_dtype(o) != sum_dtype(first) ||
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
	const struct op *o;
	const struct type *type; /* of C */
	struct buffer *a, *b, *c;
	enum dtype sum, result;
	i32 k;
	u32 panel, rows;
	struct at at; /* of C: the block's first row and column */
};

static LLVMValueRef multiply_add(struct host *h, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c, enum dtype sum)
{
	if (dtype_is_int(sum))
		return LLVMBuildAdd(h->b, c, LLVMBuildMul(h->b, a, b, ""), "");
	if (!h->s->target->has_fma)
		return LLVMBuildFAdd(h->b, c, LLVMBuildFMul(h->b, a, b, ""), "");
	LLVMTypeRef t = LLVMTypeOf(a);
	LLVMValueRef args[] = {a, b, c};
	return host_intrinsic(h, "llvm.fma", &t, 1, args, 3);
}

/* Address of a row's first element of the block, or of a step of k. */
static LLVMValueRef row_address(struct host *h, const struct buffer *b, int rank, const struct at *at)
{
	return host_gep(h, b->at, b->elem, host_offset(h, b, rank, at));
}

static void emit_block_of_c(struct host *h, const struct product *p)
{
	LLVMTypeRef elem = llvm_dtype(h, p->sum);
	LLVMValueRef acc[16], rows[16], phis[16];
	struct at at = p->at;
	int r = p->type->rank;
	LLVMTypeRef vt = LLVMVectorType(elem, p->panel);
	for (u32 i = 0; i < p->rows; i++) {
		at.i[r - 2] = LLVMBuildAdd(h->b, p->at.i[r - 2], host_i64(h, i), "");
		LLVMValueRef x = buffer_load(h, p->c, p->type, &at);
		acc[i] = host_to_sum(h, x, p->result, elem, p->panel);
		struct at of_a = at;
		of_a.i[r - 1] = host_i64(h, 0);
		rows[i] = row_address(h, p->a, r, &of_a);
	}
	struct at of_b = p->at;
	of_b.i[r - 2] = host_i64(h, 0);
	LLVMValueRef panel = row_address(h, p->b, r, &of_b);
	u32 unrolled = MIN(UNROLLED, (u32)p->k);
	LLVMBasicBlockRef before = LLVMGetInsertBlock(h->b);
	struct loop l = host_loop(h, host_i64(h, 0), host_i64(h, p->k), unrolled, false);
	for (u32 i = 0; i < p->rows; i++) {
		phis[i] = LLVMBuildPhi(h->b, vt, "");
		LLVMAddIncoming(phis[i], &acc[i], &before, 1);
		acc[i] = phis[i];
	}
	for (u32 s = 0; s < unrolled; s++) {
		LLVMValueRef k = LLVMBuildNSWAdd(h->b, l.index, host_i64(h, s), "");
		LLVMValueRef at_b = LLVMBuildNSWMul(h->b, k, host_i64(h, p->panel), "");
		LLVMValueRef b = LLVMBuildLoad2(h->b, vt, host_gep(h, panel, elem, at_b), "");
		LLVMSetAlignment(b, (u32)dtype_bytes(p->sum) * MIN(p->panel, 8));
		for (u32 i = 0; i < p->rows; i++) {
			LLVMValueRef a = LLVMBuildLoad2(h->b, elem, host_gep(h, rows[i], elem, k), "");
			acc[i] = multiply_add(h, host_spread(h, a, p->panel), b, acc[i], p->sum);
		}
	}
	LLVMBasicBlockRef last = LLVMGetInsertBlock(h->b);
	host_loop_end(h, &l);
	for (u32 i = 0; i < p->rows; i++) {
		LLVMAddIncoming(phis[i], &acc[i], &last, 1);
		at.i[r - 2] = LLVMBuildAdd(h->b, p->at.i[r - 2], host_i64(h, i), "");
		buffer_store(h, p->c, p->type, &at, from_sum(h, acc[i], p->result, p->sum, p->panel));
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
	struct product p = {.o = o, .type = t, .sum = sum_dtype(o), .result = type_dtype(t)};
	p.a = operand_memory(h, o, 0);
	p.b = operand_memory(h, o, 1);
	p.c = sum_memory(h, o);
	p.k = operand(o, 0)->type->shape[r - 1];
	p.panel = (u32)p.b->panel;
	p.rows = (u32)MIN(t->shape[r - 2], ROWS);
	p.at = (struct at){.along = r - 1, .lanes = p.panel};
	struct loop batch = {0};
	if (r == 3) {
		batch = host_loop(h, host_i64(h, 0), host_i64(h, t->shape[0]), 1, false);
		p.at.i[0] = batch.index;
	}
	struct loop columns = host_loop(h, host_i64(h, 0), host_i64(h, t->shape[r - 1]), p.panel, false);
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
