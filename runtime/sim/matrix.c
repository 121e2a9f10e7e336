/* ldmatrix, stmatrix, movmatrix of 8×8 matrices with 16-bit elements. For each matrix a lane holds two adjacent
 * elements of a row in one register, and four lanes hold a row; with .trans a column. The .b8 shapes of sm_100 are not
 * supported. */
#include "runtime/sim/fragment.h"
#include "runtime/sim/memory.h"

#include <string.h>

enum { ROWS = 8, ROW_BYTES = 16, MAX_MATRICES = 4 };

static u32 count_of(const struct instr *i)
{
	return 1u << (i->mod[M_NUM] - 1);
}

/* Row, and byte within the row, of element e of lane l. */
static u32 row_of(u32 l, u32 e, bool transposed)
{
	return transposed ? l % 4 * 2 + e : l / 4;
}

static u32 byte_of(u32 l, u32 e, bool transposed)
{
	return 2 * (transposed ? l / 4 : l % 4 * 2 + e);
}

/* Computes the row addresses: lane r of the first 8n lanes holds the address of row r. False after a fault. */
static bool find_rows(struct warp *w, const struct instr *i, const struct operand *o, u32 flags, struct places *p)
{
	u32 rows = count_of(i) * ROWS, mask = (u32)(((u64)1 << rows) - 1);
	if (!find_places(w, i, mask, o, i->space, ROW_BYTES, flags, p))
		return false;
	if (p->in_shared != mask)
		fault(w, i, mask & ~p->in_shared, "the rows of these lanes are not in shared memory");
	return p->in_shared == mask;
}

void run_ldmatrix(struct warp *w, const struct instr *i, u32 mask)
{
	struct places p = {0};
	bool transposed = i->mod[M_TRANS];
	if (!needs_warp(w, i, mask) || !find_rows(w, i, &i->ops[1], A_READ, &p))
		return;
	const struct operand *dst = operand_items(&i->ops[0]);
	for (u32 m = 0; m < count_of(i); m++)
		for (u32 l = 0; l < LANES; l++) {
			u16 e[2];
			for (u32 k = 0; k < 2; k++)
				memcpy(&e[k], p.host[m * ROWS + row_of(l, k, transposed)] + byte_of(l, k, transposed),
				       2);
			set_reg(w, &dst[m], l, e[0] | (u32)e[1] << 16);
		}
}

void run_stmatrix(struct warp *w, const struct instr *i, u32 mask)
{
	char data[MAX_MATRICES * ROWS][ROW_BYTES];
	struct places p = {.rows = data[0]};
	bool transposed = i->mod[M_TRANS];
	if (!needs_warp(w, i, mask))
		return;
	const struct operand *src = operand_items(&i->ops[1]);
	u32 n = count_of(i);
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

void run_movmatrix(struct warp *w, const struct instr *i, u32 mask)
{
	u16 matrix[ROWS][ROWS];
	if (!needs_warp(w, i, mask))
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

bool check_matrices(struct decoder *d)
{
	const struct instr *i = d->i;
	u32 n = count_of(i);
	if (!want_operands(d, 2))
		return false;
	if (!is_fragment(&i->ops[!i->has_result], n, 32, i->has_result) || i->ops[i->has_result].kind != O_ADDRESS)
		return decode_fail(d, "'%s' takes %u registers and an address", i->opcode, n);
	return true;
}
