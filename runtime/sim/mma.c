/* mma.sync. Not supported: m8n8k4 of f16, 4-bit and 1-bit integers, sparse and block-scaled forms. */
#include "support/small_floats.h"
#include "runtime/sim/fragment.h"

enum { N = 8, MAX_M = 16, MAX_K = 32 };

/* Plan of an instruction. */
struct plan {
	u32 m, k;
	const struct element *a, *b, *c;
	struct fragment_map a_map, b_map, c_map;
	bool by_halves;
	struct multiplier by;
};

union cells {
	float f[MAX_M * MAX_K];
	i32 i[MAX_M * MAX_K];
	double d[MAX_M * MAX_K / 2];
};

/* sm_90 executes an fp8 mma as two f16 mmas with half the k: of each four k, the lower two belong to the first. D is
 * added to their sum. */
static void multiply_by_halves(const struct plan *p, const union cells *a, const union cells *b, union cells *d)
{
	float x[MAX_M * MAX_K / 2], y[MAX_K / 2 * N], sum[MAX_M * N] = {0};
	u32 step = p->k / 2, cells = p->m * N;
	for (u32 half = 0; half < 2; half++) {
		for (u32 k = 0; k < step; k++) {
			u32 from = k / 2 * 4 + half * 2 + k % 2;
			for (u32 row = 0; row < p->m; row++)
				x[row * step + k] = a->f[row * p->k + from];
			memcpy(y + k * N, b->f + from * N, N * sizeof *y);
		}
		p->by.run(&p->by, x, y, sum, p->m, N, step);
		if (p->c->type == PT_F16)
			round_to_f16(sum, cells);
	}
	for (u32 c = 0; c < cells; c++)
		d->f[c] += sum[c];
}

void run_mma(struct warp *w, const struct instr *i, u32 mask)
{
	const struct plan *p = i->plan;
	union cells a, b, d;
	if (!needs_warp(w, i, mask))
		return;
	p->a->load(w, operand_items(&i->ops[1]), &p->a_map, &a);
	p->b->load(w, operand_items(&i->ops[2]), &p->b_map, &b);
	p->c->load(w, operand_items(&i->ops[3]), &p->c_map, &d);
	if (p->by_halves)
		multiply_by_halves(p, &a, &b, &d);
	else
		p->by.run(&p->by, &a, &b, &d, p->m, N, p->k);
	p->c->store(w, operand_items(&i->ops[0]), &p->c_map, &d);
}

static u32 registers(u32 elements, int bits)
{
	return elements * (u32)bits / LANES / (bits == 64 ? 64 : 32);
}

bool plan_mma(struct decoder *d)
{
	struct instr *i = d->i;
	struct plan *p = arena_new(d->arena, struct plan);
	u32 shape[3];
	bool in_order = strstr(i->opcode, ".row.col.") && i->type[0] == i->type[3];
	if (!in_order || !opcode_shape(d, shape) || !want_operands(d, 4))
		return false;
	*p = (struct plan){.m = shape[0],
			   .k = shape[2],
			   .a = element_of(i->type[1]),
			   .b = element_of(i->type[2]),
			   .c = element_of(i->type[0])};
	u32 a_regs = registers(p->m * p->k, p->a->bits), b_regs = registers(p->k * N, p->b->bits),
	    c_regs = registers(p->m * N, p->c->bits);
	int in_bits = p->a->bits == 64 ? 64 : 32, out_bits = p->c->bits == 64 ? 64 : 32;
	if (!is_fragment(&i->ops[0], c_regs, out_bits, true) || !is_fragment(&i->ops[1], a_regs, in_bits, false) ||
	    !is_fragment(&i->ops[2], b_regs, in_bits, false) || !is_fragment(&i->ops[3], c_regs, out_bits, false))
		return decode_fail(d, "'%s' takes %u, %u, %u and %u registers", i->opcode, c_regs, a_regs, b_regs,
				   c_regs);
	p->a_map = fragment_map_of(d->arena, fragment_a(p->a->bits), a_regs, p->k);
	p->b_map = fragment_map_of(d->arena, fragment_b(p->b->bits), b_regs, N);
	p->c_map = fragment_map_of(d->arena, fragment_c(p->c->bits), c_regs, N);
	p->by_halves = p->a->bits == 8 && p->c->type != PT_S32;
	p->by = multiplier_of(p->by_halves ? PT_F16 : i->type[1], p->by_halves ? PT_F16 : i->type[2], i->type[0],
			      i->mod[M_SATFINITE], false);
	i->plan = p;
	return true;
}
