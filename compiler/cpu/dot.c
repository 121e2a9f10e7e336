/* Dots (C += A · B) on the vector unit; amx.c has those on tile registers. A block of C, some rows by the columns of
 * one panel of B (pack_operands.c), stays in vector registers during the loop over k. A step of that loop is one value
 * of k, or dot_unit.group values with a dot-product instruction. */
#include "cpu/vector_ops.h"

enum {
	PANEL_REGISTERS = HOST_PANEL_REGISTERS,
	/* Rows of a block on CPUs with 16 and 32 vector registers. A row has two registers of accumulators. With two
	 * registers of B and one of A, a block takes 15 of 16, or 19 of 32 registers. */
	ROWS16 = 6,
	ROWS32 = 8,
	UNROLLED = 4, /* steps of the loop over k that are unrolled */
	/* In a C of at most SMALL_TILE rows of which not all are demanded, up to SINGLE_ROWS rows after the last block
	 * are computed as blocks of one row by SINGLE_PANELS panels. */
	SMALL_TILE = 32,
	SINGLE_ROWS = 3,
	SINGLE_PANELS = 4,
	MOST_REGISTERS = SINGLE_PANELS * PANEL_REGISTERS,
};

LLVMValueRef cpu_from_sum(struct cpu_codegen *h, LLVMValueRef x, const struct product *p)
{
	enum dtype to = p->result;
	if (to == p->sum)
		return x;
	if (dtype_is_int(to))
		return LLVMBuildTrunc(h->b, x, ints_as(x, dtype_bits(to)), "");
	return cpu_narrow(h, x, to);
}

/* c + a · b, lane by lane. For dot-product instructions a lane of a and b is 32 bits: `group` elements of 8 or 16
 * bits. */
static LLVMValueRef dot_step(struct cpu_codegen *h, enum dot_unit_kind unit, LLVMValueRef a, LLVMValueRef b,
			     LLVMValueRef c)
{
	LLVMTypeRef t = LLVMTypeOf(c);
	u32 lanes = lanes_of(c);
	bool is_int = LLVMGetTypeKind(LLVMGetElementType(t)) == LLVMIntegerTypeKind;
	LLVMValueRef args[] = {a, b, c};
	const char *bits = lanes == 16 ? "512" : lanes == 8 ? "256" : "128";
	switch (unit) {
	case DOT_BF16: {
		LLVMTypeRef pairs = LLVMVectorType(LLVMBFloatTypeInContext(h->ctx), 2 * lanes);
		a = LLVMBuildBitCast(h->b, a, pairs, "");
		b = LLVMBuildBitCast(h->b, b, pairs, "");
		LLVMValueRef sum[] = {c, a, b};
		return call_intrinsic(h->b, arena_printf(&h->scratch, "llvm.x86.avx512bf16.dpbf16ps.%s", bits), NULL, 0,
				      sum, 3);
	}
	case DOT_INT16: {
		static const char *const names[] = {"llvm.x86.sse2.pmadd.wd", "llvm.x86.avx2.pmadd.wd",
						    "llvm.x86.avx512.pmaddw.d.512"};
		LLVMTypeRef pairs = LLVMVectorType(h->i16, 2 * lanes);
		a = LLVMBuildBitCast(h->b, a, pairs, "");
		b = LLVMBuildBitCast(h->b, b, pairs, "");
		LLVMValueRef in[] = {a, b};
		return LLVMBuildAdd(h->b, c, call_intrinsic(h->b, names[lanes / 8], NULL, 0, in, 2), "");
	}
	case DOT_INT8: {
		LLVMValueRef sum[] = {c, a, b};
		return call_intrinsic(h->b, arena_printf(&h->scratch, "llvm.x86.avx512.vpdpbusd.%s", bits), NULL, 0,
				      sum, 3);
	}
	case DOT_TILES_BF16:
	case DOT_TILES_INT8: tl_unreachable("not a step of vectors");
	case DOT_MULTIPLY_ADD: break;
	}
	if (is_int)
		return LLVMBuildAdd(h->b, c, LLVMBuildMul(h->b, a, b, ""), "");
	if (!h->s->target->has_fma)
		return LLVMBuildFAdd(h->b, c, LLVMBuildFMul(h->b, a, b, ""), "");
	return call_intrinsic(h->b, "llvm.fma", &t, 1, args, 3);
}

LLVMValueRef cpu_row_address(struct cpu_codegen *h, const struct buffer *b, int rank, const struct at *at)
{
	return gep(h->b, b->at, b->elem, cpu_offset(h, b, rank, at));
}

static struct at block_at(struct cpu_codegen *h, const struct product *p, u32 row, u32 reg)
{
	struct at at = p->at;
	int r = p->type->rank;
	at.i[r - 2] = LLVMBuildAdd(h->b, at.i[r - 2], cpu_i64(h, row), "");
	at.i[r - 1] = LLVMBuildAdd(h->b, at.i[r - 1], cpu_i64(h, reg * p->lanes), "");
	return at;
}

/* In the step from k = `index` on of a block of C, of `unrolled` steps: prefetches a share of the next operands. */
static void fetch_next(struct cpu_codegen *h, const struct product *p, LLVMValueRef index, i64 unrolled)
{
	const struct type *t = p->type;
	i64 down = t->shape[t->rank - 2] / p->rows, across = t->shape[t->rank - 1] / p->b->panel, turns = 1;
	i64 steps = p->a->stride[t->rank - 2] / cpu_dot_units[p->a->unit].group / unrolled;
	if (!p->nnext || p->rows == 1 || t->rank != 2 || !down)
		return;
	while (2 * turns <= down * across * steps)
		turns *= 2;
	LLVMValueRef i = LLVMBuildUDiv(h->b, p->at.i[0], cpu_i64(h, p->rows), "");
	LLVMValueRef j = LLVMBuildUDiv(h->b, p->at.i[1], cpu_i64(h, p->b->panel), "");
	LLVMValueRef turn = LLVMBuildAdd(h->b, LLVMBuildMul(h->b, j, cpu_i64(h, down), ""), i, "");
	turn = LLVMBuildMul(h->b, turn, cpu_i64(h, steps), "");
	turn = LLVMBuildAdd(h->b, turn, LLVMBuildUDiv(h->b, index, cpu_i64(h, unrolled), ""), "");
	turn = LLVMBuildAnd(h->b, turn, cpu_i64(h, turns - 1), "");
	for (u32 n = 0; n < p->nnext; n++)
		cpu_fetch_next(h, &p->next[n], turn, turns);
}

static void emit_block_of_c(struct cpu_codegen *h, const struct product *p)
{
	enum dot_unit_kind unit = p->a->unit;
	LLVMTypeRef elem = llvm_dtype(h->ctx, p->sum), step = cpu_dot_units[unit].bits ? h->i32 : elem;
	LLVMTypeRef vt = LLVMVectorType(elem, p->lanes), bt = LLVMVectorType(step, p->lanes);
	LLVMValueRef acc[ROWS32 + 1][MOST_REGISTERS], rows[ROWS32 + 1], first[ROWS32 + 1][MOST_REGISTERS];
	int r = p->type->rank;
	/* DOT_INT8 takes a + 128 as A (unsigned). So an additional row accumulates 128 · B, and is subtracted from each
	 * row at the end. */
	u32 all = p->rows + (unit == DOT_INT8);
	for (u32 i = 0; i < all; i++) {
		for (u32 g = 0; g < p->registers; g++) {
			struct at at = block_at(h, p, i, g);
			first[i][g] = i < p->rows ? cpu_to_sum(h, buffer_load(h, p->c, p->type, &at), p->result, elem)
						  : LLVMConstNull(vt);
		}
		struct at of_a = block_at(h, p, i, 0);
		of_a.i[r - 1] = cpu_i64(h, 0);
		rows[i] = cpu_row_address(h, p->a, r, &of_a);
	}
	struct at of_b = p->at;
	of_b.i[r - 2] = cpu_i64(h, 0);
	LLVMValueRef panel = cpu_row_address(h, p->b, r, &of_b);
	i64 group = cpu_dot_units[unit].group, unrolled = MIN(UNROLLED, p->k / group);
	LLVMValueRef steps = LLVMBuildUDiv(h->b, p->all_k, cpu_i64(h, group), "");
	LLVMBasicBlockRef before = LLVMGetInsertBlock(h->b);
	struct cpu_loop l = cpu_loop(h, cpu_i64(h, 0), steps, unrolled, false);
	for (u32 i = 0; i < all; i++)
		for (u32 g = 0; g < p->registers; g++) {
			acc[i][g] = LLVMBuildPhi(h->b, vt, "");
			LLVMAddIncoming(acc[i][g], &first[i][g], &before, 1);
			first[i][g] = acc[i][g];
		}
	for (i64 s = 0; s < unrolled; s++) {
		LLVMValueRef k = LLVMBuildNSWAdd(h->b, l.index, cpu_i64(h, s), ""), b[MOST_REGISTERS];
		if (!s)
			fetch_next(h, p, l.index, unrolled);
		for (u32 g = 0; g < p->registers; g++) {
			i64 column = g * p->lanes, skipped = column / p->b->panel * p->b->panel_stride / group;
			LLVMValueRef at = LLVMBuildNSWMul(h->b, k, cpu_i64(h, p->b->panel), "");
			at = LLVMBuildNSWAdd(h->b, at, cpu_i64(h, skipped + column % p->b->panel), "");
			b[g] = LLVMBuildLoad2(h->b, bt, gep(h->b, panel, step, at), "");
			LLVMSetAlignment(b[g], (u32)dtype_bytes(p->sum) * MIN(p->lanes, 8));
			cpu_mark(h, p->b, b[g]);
		}
		for (u32 i = 0; i < all; i++) {
			LLVMValueRef a = i < p->rows ? LLVMBuildLoad2(h->b, step, gep(h->b, rows[i], step, k), "")
						     : cpu_i32(h, 0x80808080);
			if (i < p->rows)
				cpu_mark(h, p->a, a);
			for (u32 g = 0; g < p->registers; g++)
				acc[i][g] = dot_step(h, unit, cpu_spread(h, a, p->lanes), b[g], acc[i][g]);
		}
	}
	LLVMBasicBlockRef last = LLVMGetInsertBlock(h->b);
	cpu_loop_end(h, &l);
	for (u32 i = 0; i < all; i++)
		for (u32 g = 0; g < p->registers; g++)
			LLVMAddIncoming(first[i][g], &acc[i][g], &last, 1);
	for (u32 i = 0; i < p->rows; i++)
		for (u32 g = 0; g < p->registers; g++) {
			struct at at = block_at(h, p, i, g);
			if (all > p->rows)
				acc[i][g] = LLVMBuildSub(h->b, acc[i][g], acc[p->rows][g], "");
			buffer_store(h, p->c, p->type, &at, cpu_from_sum(h, acc[i][g], p));
		}
}

/* The memory of the dot's result, initialized with operand C: the memory of operand C if it has no other use. */
static struct buffer *sum_memory(struct cpu_codegen *h, const struct op *o)
{
	const struct value *acc = operand(o, 2);
	struct info *i = info_of(h, acc), *to = info_of(h, result(o));
	if (!to->buffer && cpu_ends_at(h, acc, o))
		to->buffer = i->buffer;
	struct buffer *c = buffer_of(h, result(o));
	if (!i->made || i->buffer != c)
		cpu_store_tile(h, acc, c);
	return c;
}

/* The blocks of C, `rows` rows by `panels` panels, in rows `from` to `to` and columns 0 to `columns`. */
static void emit_blocks(struct cpu_codegen *h, struct product *p, LLVMValueRef from, LLVMValueRef to, u32 rows,
			u32 panels, LLVMValueRef columns)
{
	int r = p->type->rank;
	bool known = LLVMIsConstant(from) && LLVMIsConstant(to);
	if (known && LLVMConstIntGetSExtValue(from) >= LLVMConstIntGetSExtValue(to))
		return;
	panels = (u32)MIN((i64)panels, p->type->shape[r - 1] / p->b->panel);
	p->rows = rows;
	p->registers = panels * (u32)p->b->panel / p->lanes;
	struct cpu_loop j = cpu_loop(h, cpu_i64(h, 0), columns, panels * p->b->panel, !LLVMIsConstant(columns));
	p->at.i[r - 1] = j.index;
	struct cpu_loop i = cpu_loop(h, from, to, rows, !known);
	p->at.i[r - 2] = i.index;
	emit_block_of_c(h, p);
	cpu_loop_end(h, &i);
	cpu_loop_end(h, &j);
}

static LLVMValueRef least(struct cpu_codegen *h, LLVMValueRef a, LLVMValueRef b)
{
	return LLVMBuildSelect(h->b, LLVMBuildICmp(h->b, LLVMIntSLT, a, b, ""), a, b, "");
}

/* Emits the first `asked` rows of C (i64 at run time; NULL: all): blocks of ROWS16 or ROWS32 rows, one block of the
 * rest of the tile's rows, and single rows. */
static void emit_rows(struct cpu_codegen *h, struct product *p, LLVMValueRef asked, LLVMValueRef columns)
{
	i64 all = p->type->shape[p->type->rank - 2], most = h->s->target->vector_registers == 32 ? ROWS32 : ROWS16;
	most = MIN(most, all);
	i64 rest = all % most, whole = all - rest, single = all <= SMALL_TILE ? SINGLE_ROWS : 0;
	LLVMValueRef zero = cpu_i64(h, 0), end = cpu_i64(h, whole), last = cpu_i64(h, all);
	if (!asked || all <= SINGLE_ROWS) {
		emit_blocks(h, p, zero, end, (u32)most, 1, columns);
		if (rest)
			emit_blocks(h, p, end, last, (u32)rest, 1, columns);
		return;
	}
	LLVMValueRef by_blocks = LLVMBuildSub(h->b, asked, cpu_i64(h, single), "");
	LLVMValueRef n =
		least(h, end,
		      LLVMBuildSelect(h->b, LLVMBuildICmp(h->b, LLVMIntSGT, by_blocks, zero, ""), by_blocks, zero, ""));
	emit_blocks(h, p, zero, n, (u32)most, 1, columns);
	n = LLVMBuildUDiv(h->b, LLVMBuildAdd(h->b, n, cpu_i64(h, most - 1), ""), cpu_i64(h, most), "");
	LLVMValueRef done = LLVMBuildMul(h->b, n, cpu_i64(h, most), "");
	if (rest > single) {
		LLVMValueRef more = LLVMBuildICmp(h->b, LLVMIntSGT, by_blocks, end, "");
		LLVMValueRef to = LLVMBuildSelect(h->b, more, last, end, "");
		emit_blocks(h, p, end, to, (u32)rest, 1, columns);
		done = LLVMBuildSelect(h->b, more, last, done, "");
	}
	if (single)
		emit_blocks(h, p, done, asked, 1, SINGLE_PANELS, columns);
}

void cpu_dot(struct cpu_codegen *h, const struct op *o)
{
	const struct type *t = result(o)->type;
	int r = t->rank;
	const struct deferred *deferred = cpu_deferred(h, o->block->parent);
	struct product p = {.type = t, .sum = cpu_sum_dtype(o), .result = type_dtype(t)};
	struct buffer a = *cpu_dot_operand(h, o, 0), b = *cpu_dot_operand(h, o, 1);
	a.at = a.first_slot;
	b.at = b.first_slot;
	p.a = &a;
	p.b = &b;
	p.zero = info_of(h, operand(o, 2))->zero;
	p.c = sum_memory(h, o);
	p.k = operand(o, 0)->type->shape[r - 1];
	p.all_k = deferred ? LLVMBuildMul(h->b, deferred->filled, cpu_i64(h, p.k), "") : cpu_i64(h, p.k);
	p.lanes = (u32)MIN(p.b->panel, h->s->target->vector_bytes / dtype_bytes(p.sum));
	p.at = (struct at){.along = r - 1, .lanes = p.lanes};
	LLVMValueRef rows = cpu_demanded(h, result(o), r - 2, o->block),
		     columns = cpu_demanded(h, result(o), r - 1, o->block);
	columns = columns ? columns : cpu_i64(h, t->shape[r - 1]);
	struct cpu_loop batch = {0};
	for (u32 which = 0; which < 2 && cpu_dot_units[p.a->unit].rows == 1; which++)
		p.nnext += cpu_next_tile(h, o, which, &p.next[p.nnext]);
	struct guarded due = begin_if(h->b, deferred ? deferred->due : NULL);
	if (r == 3) {
		batch = cpu_loop(h, cpu_i64(h, 0), cpu_i64(h, t->shape[0]), 1, false);
		p.at.i[0] = batch.index;
	}
	if (cpu_dot_units[p.a->unit].rows > 1)
		cpu_dot_tiles(h, &p, rows, columns);
	else
		emit_rows(h, &p, rows, columns);
	if (r == 3)
		cpu_loop_end(h, &batch);
	end_if(h->b, &due);
	info_of(h, result(o))->made = true;
}

bool cpu_dot_clears(struct cpu_codegen *h, const struct use *u)
{
	const struct op *o = u->user;
	return o->code == IR_DOT && u == &o->operands[2] && cpu_dot_units[cpu_dot_unit(h, o)].rows > 1;
}
