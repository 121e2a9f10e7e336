/* ldmatrix, stmatrix, movmatrix of 8×8 matrices with 16-bit elements. For each matrix a lane holds two adjacent
 * elements of a row in one register, and four lanes hold a row; with .trans a column. The .b8 shapes of sm_100 are not
 * supported. */
#include "runtime/sim/fragment.h"
#include "runtime/sim/memory.h"

#include <string.h>

enum { ROWS = 8, ROW_BYTES = 16, MAX_MATRICES = 4 };
enum { COUNT = 7, TRANSPOSED = 8, SHARED_ADDRESS = 16 }; /* fields of mods */

/* Row, and byte within the row, of element e of lane l. */
static u32 row_of(u32 l, u32 e, bool transposed)
{
	return transposed ? l % 4 * 2 + e : l / 4;
}

static u32 byte_of(u32 l, u32 e, bool transposed)
{
	return 2 * (transposed ? l / 4 : l % 4 * 2 + e);
}

static bool all_here(struct warp *w, const struct instr *i, u32 mask)
{
	if (mask != ALL_LANES)
		fault(w, i, ~mask, "needs all lanes of the warp, and these are not active");
	return mask == ALL_LANES;
}

/* Computes the row addresses: lane r of the first 8n lanes holds the address of row r. False after a fault. */
static bool find_rows(struct warp *w, const struct instr *i, const struct operand *o, u32 flags, struct places *p)
{
	u32 rows = (i->mods & COUNT) * ROWS, mask = (u32)(((u64)1 << rows) - 1);
	enum ptx_space space = i->mods & SHARED_ADDRESS ? SPACE_SHARED : SPACE_GENERIC;
	if (!find_places(w, i, mask, o, space, ROW_BYTES, flags, p))
		return false;
	if (p->in_shared != mask)
		fault(w, i, mask & ~p->in_shared, "the rows of these lanes are not in shared memory");
	return p->in_shared == mask;
}

static void run_ldmatrix(struct warp *w, const struct instr *i, u32 mask)
{
	struct places p = {0};
	bool transposed = i->mods & TRANSPOSED;
	if (!all_here(w, i, mask) || !find_rows(w, i, &i->ops[1], A_READ, &p))
		return;
	const struct operand *dst = fragment_regs(&i->ops[0]);
	for (u32 m = 0; m < (i->mods & COUNT); m++)
		for (u32 l = 0; l < LANES; l++) {
			u16 e[2];
			for (u32 k = 0; k < 2; k++)
				memcpy(&e[k], p.host[m * ROWS + row_of(l, k, transposed)] + byte_of(l, k, transposed),
				       2);
			set_reg(w, &dst[m], l, e[0] | (u32)e[1] << 16);
		}
}

static void run_stmatrix(struct warp *w, const struct instr *i, u32 mask)
{
	char data[MAX_MATRICES * ROWS][ROW_BYTES];
	struct places p = {.rows = data[0]};
	bool transposed = i->mods & TRANSPOSED;
	if (!all_here(w, i, mask))
		return;
	const struct operand *src = fragment_regs(&i->ops[1]);
	u32 n = i->mods & COUNT;
	for (u32 m = 0; m < n; m++)
		for (u32 l = 0; l < LANES; l++)
			for (u32 k = 0; k < 2; k++) {
				u16 e = (u16)(reg(w, &src[m])[l] >> 16 * k);
				memcpy(&data[m * ROWS + row_of(l, k, transposed)][byte_of(l, k, transposed)], &e, 2);
			}
	if (!find_rows(w, i, &i->ops[0], A_WRITE, &p))
		return;
	for (u32 r = 0; r < n * ROWS; r++)
		memcpy(p.host[r], data[r], ROW_BYTES);
	for (u32 r = 0; r < n * ROWS; r++)
		if (memcmp(p.host[r], data[r], ROW_BYTES)) {
			fault(w, i, 1u << r,
			      "another row with the same address and other values is stored at the same time");
			return;
		}
}

static void run_movmatrix(struct warp *w, const struct instr *i, u32 mask)
{
	u16 matrix[ROWS][ROWS];
	if (!all_here(w, i, mask))
		return;
	const u64 *v = reg(w, &i->ops[1]);
	for (u32 l = 0; l < LANES; l++)
		for (u32 k = 0; k < 2; k++)
			matrix[row_of(l, k, false)][byte_of(l, k, false) / 2] = (u16)(v[l] >> 16 * k);
	for (u32 l = 0; l < LANES; l++) {
		u16 e[2];
		for (u32 k = 0; k < 2; k++)
			e[k] = matrix[row_of(l, k, true)][byte_of(l, k, true) / 2];
		set_reg(w, &i->ops[0], l, e[0] | (u32)e[1] << 16);
	}
}

static bool needs_sm(struct decoder *d, int sm)
{
	return d->module->sm >= sm || decode_fail(d, "'%s' needs sm_%d", d->i->opcode, sm);
}

/* Decodes the shape, the number of matrices and the flags of ldmatrix and stmatrix. */
static bool decode_rows(struct decoder *d, u32 regs, u32 address)
{
	struct instr *i = d->i;
	bool ok = take(d, "sync") && take(d, "aligned") && take(d, "m8n8") && take(d, "b16");
	int number = take_one_of(d, "x1 x2 x4");
	if (!ok || number < 0)
		return false;
	u32 n = 1u << number;
	i->mods = n | (take(d, "trans") ? TRANSPOSED : 0) |
		  (take(d, "shared") || take(d, "shared::cta") ? SHARED_ADDRESS : 0);
	i->is_sync = true;
	if (!want_operands(d, 2, 2))
		return false;
	if (!is_fragment(&i->ops[regs], n, 32, regs == 0) || i->ops[address].kind != O_ADDRESS)
		return decode_fail(d, "'%s' takes %u registers and an address", i->opcode, n);
	return true;
}

static bool decode_ldmatrix(struct decoder *d)
{
	d->i->run = run_ldmatrix;
	return needs_sm(d, 75) && decode_rows(d, 0, 1);
}

static bool decode_stmatrix(struct decoder *d)
{
	d->i->run = run_stmatrix;
	return needs_sm(d, 90) && decode_rows(d, 1, 0);
}

static bool decode_movmatrix(struct decoder *d)
{
	struct instr *i = d->i;
	i->run = run_movmatrix;
	i->is_sync = true;
	return needs_sm(d, 75) && take(d, "sync") && take(d, "aligned") && take(d, "m8n8") && take(d, "trans") &&
	       take(d, "b16") && want_operands(d, 2, 2) && is_fragment(&i->ops[0], 1, 32, true) &&
	       is_fragment(&i->ops[1], 1, 32, false);
}

const struct isa_row matrix_opcodes[] = {
	{"mma", decode_mma},           {"wgmma", decode_wgmma},         {"ldmatrix", decode_ldmatrix},
	{"stmatrix", decode_stmatrix}, {"movmatrix", decode_movmatrix}, {0}};
