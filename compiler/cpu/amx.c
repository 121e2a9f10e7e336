/* Dots on the tile registers of x86 CPUs (AMX): eight registers of 16 rows of 64 bytes.
 *
 * A block of C, 32 x 32 accumulators, stays in four registers over all k. Each step of the loop over k multiplies 64
 * bytes of each row of A. Two registers hold 16 rows of A each, as in memory. Two registers hold 16 columns each of a
 * panel of B, with rows interleaved as for the dot-product instructions of the vector unit (pack_operands.c). The
 * program configures all registers once, in its entry block, with 16 rows of 64 bytes. */
#include "cpu/vector_ops.h"

enum {
	SIDE = 16,      /* rows of a tile register, and 32-bit accumulators of a row */
	ROW_BYTES = 64, /* of a tile register */
	ACROSS = 2,     /* a block of C is ACROSS x ACROSS registers, the first ones */
	FIRST_A = ACROSS * ACROSS,
	FIRST_B = FIRST_A + ACROSS,
};

static void configure(struct cpu_codegen *h)
{
	enum { PALETTE = 0, BYTES = 16, ROWS = 48 }; /* byte offsets; Intel SDM, "Tile configuration" */
	char config[64] = {[PALETTE] = 1};
	if (h->tiles)
		return;
	h->tiles = true;
	for (u32 i = 0; i < 8; i++) {
		config[BYTES + 2 * i] = ROW_BYTES;
		config[ROWS + i] = SIDE;
	}
	LLVMValueRef c = LLVMConstStringInContext2(h->ctx, config, sizeof config, true);
	LLVMValueRef at = add_constant(h->mod, c, ".tiles", LLVMPrivateLinkage, 0);
	call_intrinsic(h->entry, "llvm.x86.ldtilecfg", NULL, 0, &at, 1);
}

void cpu_tiles_end(struct cpu_codegen *h)
{
	for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(h->fn); b && h->tiles; b = LLVMGetNextBasicBlock(b)) {
		LLVMValueRef last = LLVMGetBasicBlockTerminator(b);
		if (last && LLVMGetInstructionOpcode(last) == LLVMRet) {
			LLVMPositionBuilderBefore(h->b, last);
			call_intrinsic(h->b, "llvm.x86.tilerelease", NULL, 0, NULL, 0);
		}
	}
}

static LLVMValueRef number(struct cpu_codegen *h, u32 tile)
{
	return LLVMConstInt(h->i8, tile, false);
}

static void load_tile(struct cpu_codegen *h, u32 tile, LLVMValueRef at, i64 stride)
{
	LLVMValueRef args[] = {number(h, tile), at, cpu_i64(h, stride)};
	call_intrinsic(h->b, "llvm.x86.tileloadd64", NULL, 0, args, 3);
}

static void store_tile(struct cpu_codegen *h, u32 tile, LLVMValueRef at, i64 stride)
{
	LLVMValueRef args[] = {number(h, tile), at, cpu_i64(h, stride)};
	call_intrinsic(h->b, "llvm.x86.tilestored64", NULL, 0, args, 3);
}

/* The part of C that tile register (i, j) of the block holds. at: its first element. memory: where the register is
 * loaded from and stored to, with a row stride of `stride` bytes. */
struct amx_part {
	struct at at;
	LLVMValueRef memory;
	i64 stride;
	bool apart; /* `memory` is not C's but h->tile_memory: C has another type or order of elements */
};

static struct amx_part part_of(struct cpu_codegen *h, const struct product *p, u32 i, u32 j)
{
	int r = p->type->rank;
	struct amx_part x = {.at = p->at, .stride = p->c->stride[r - 2] * dtype_bytes(p->sum)};
	x.at.i[r - 2] = LLVMBuildAdd(h->b, x.at.i[r - 2], cpu_i64(h, i * SIDE), "");
	x.at.i[r - 1] = LLVMBuildAdd(h->b, x.at.i[r - 1], cpu_i64(h, j * SIDE), "");
	x.apart = p->c->stride[r - 1] != 1 || p->result != p->sum;
	if (x.apart) {
		if (!h->tile_memory)
			h->tile_memory = cpu_scratch(h, (u64)SIDE * ROW_BYTES);
		x.memory = h->tile_memory;
		x.stride = ROW_BYTES;
	} else {
		x.memory = cpu_row_address(h, p->c, r, &x.at);
	}
	return x;
}

/* Converts the rows of a part with `apart`, from C to x->memory, or back. */
static void move_rows(struct cpu_codegen *h, const struct product *p, const struct amx_part *x, bool back)
{
	int r = p->type->rank;
	LLVMTypeRef elem = llvm_dtype(h->ctx, p->sum), row = LLVMVectorType(elem, SIDE);
	struct at at = x->at;
	struct cpu_loop l = cpu_loop(h, cpu_i64(h, 0), cpu_i64(h, SIDE), 1, false);
	LLVMValueRef memory = gep(h->b, x->memory, row, l.index);
	at.i[r - 2] = LLVMBuildAdd(h->b, at.i[r - 2], l.index, "");
	if (back) {
		LLVMValueRef sums = LLVMBuildLoad2(h->b, row, memory, "");
		buffer_store(h, p->c, p->type, &at, cpu_from_sum(h, sums, p));
	} else {
		LLVMValueRef c = buffer_load(h, p->c, p->type, &at);
		LLVMBuildStore(h->b, cpu_to_sum(h, c, p->result, elem), memory);
	}
	cpu_loop_end(h, &l);
}

static void load_sums(struct cpu_codegen *h, const struct product *p, u32 i, u32 j)
{
	struct amx_part x = part_of(h, p, i, j);
	if (x.apart)
		move_rows(h, p, &x, false);
	load_tile(h, i * ACROSS + j, x.memory, x.stride);
}

static void begin_sums(struct cpu_codegen *h, const struct product *p, u32 rows, u32 columns)
{
	/* clears the accumulators also if the branch then loads them: clearing costs nothing */
	for (u32 i = 0; p->zero && i < rows; i++)
		for (u32 j = 0; j < columns; j++) {
			LLVMValueRef tile = number(h, i * ACROSS + j);
			call_intrinsic(h->b, "llvm.x86.tilezero", NULL, 0, &tile, 1);
		}
	struct guarded g = begin_if(h->b, p->zero ? LLVMBuildNot(h->b, p->zero, "") : NULL);
	for (u32 i = 0; i < rows; i++)
		for (u32 j = 0; j < columns; j++)
			load_sums(h, p, i, j);
	end_if(h->b, &g);
}

static void store_sums(struct cpu_codegen *h, const struct product *p, u32 i, u32 j)
{
	struct amx_part x = part_of(h, p, i, j);
	store_tile(h, i * ACROSS + j, x.memory, x.stride);
	if (x.apart)
		move_rows(h, p, &x, true);
}

/* A block of C of rows x columns tile registers, whose first element is at p->at. */
static void emit_block_of_tiles(struct cpu_codegen *h, const struct product *p, u32 rows, u32 columns)
{
	const char *multiply = p->a->unit == DOT_TILES_BF16 ? "llvm.x86.tdpbf16ps" : "llvm.x86.tdpbssd";
	const struct dot_unit *unit = &cpu_dot_units[p->a->unit];
	int r = p->type->rank;
	struct at of_a = p->at, of_b = p->at;
	of_a.i[r - 1] = of_b.i[r - 2] = cpu_i64(h, 0);
	LLVMValueRef a = cpu_row_address(h, p->a, r, &of_a), b = cpu_row_address(h, p->b, r, &of_b);
	i64 bytes = unit->bits / 8, a_stride = p->a->stride[r - 2] * bytes,
	    b_stride = p->b->panel * unit->group * bytes;
	begin_sums(h, p, rows, columns);
	struct cpu_loop l = cpu_loop(h, cpu_i64(h, 0), p->all_k, unit->k, false);
	LLVMValueRef a_at = gep(h->b, a, p->a->elem, l.index),
		     b_at = gep(h->b, b, p->b->elem, LLVMBuildNSWMul(h->b, l.index, cpu_i64(h, p->b->panel), ""));
	for (u32 i = 0; i < rows; i++) {
		load_tile(h, FIRST_A + i, gep(h->b, a_at, h->i8, cpu_i64(h, i * SIDE * a_stride)), a_stride);
		for (u32 j = 0; j < columns; j++) {
			if (!i)
				load_tile(h, FIRST_B + j, gep(h->b, b_at, h->i8, cpu_i64(h, j * ROW_BYTES)), b_stride);
			LLVMValueRef args[] = {number(h, i * ACROSS + j), number(h, FIRST_A + i),
					       number(h, FIRST_B + j)};
			call_intrinsic(h->b, multiply, NULL, 0, args, 3);
		}
	}
	cpu_loop_end(h, &l);
	for (u32 i = 0; i < rows; i++)
		for (u32 j = 0; j < columns; j++)
			store_sums(h, p, i, j);
}

/* The blocks of C in rows `from` to `to` and columns 0 to `columns`; rows: tile registers of a block from top to
 * bottom. The loop over columns is the inner one, so that a block's rows of A stay in cache while all of B is read. */
static void emit_rows_of_tiles(struct cpu_codegen *h, struct product *p, LLVMValueRef from, LLVMValueRef to, u32 rows,
			       LLVMValueRef columns)
{
	int r = p->type->rank;
	struct cpu_loop i = cpu_loop(h, from, to, rows * SIDE, true);
	p->at.i[r - 2] = i.index;
	struct cpu_loop j = cpu_loop(h, cpu_i64(h, 0), columns, p->b->panel, true);
	p->at.i[r - 1] = j.index;
	emit_block_of_tiles(h, p, rows, (u32)p->b->panel / SIDE);
	cpu_loop_end(h, &j);
	cpu_loop_end(h, &i);
}

void cpu_dot_tiles(struct cpu_codegen *h, struct product *p, LLVMValueRef rows, LLVMValueRef columns)
{
	int r = p->type->rank;
	i64 block = SIDE * ACROSS;
	configure(h);
	p->at.along = r - 1;
	p->at.lanes = SIDE;
	if (!rows)
		rows = cpu_i64(h, p->type->shape[r - 2]);
	/* if at most SIDE rows remain after the blocks of ACROSS registers, the last block has one register's rows */
	LLVMValueRef whole =
		LLVMBuildAnd(h->b, LLVMBuildAdd(h->b, rows, cpu_i64(h, SIDE - 1), ""), cpu_i64(h, -block), "");
	emit_rows_of_tiles(h, p, cpu_i64(h, 0), whole, ACROSS, columns);
	emit_rows_of_tiles(h, p, whole, rows, 1, columns);
}
