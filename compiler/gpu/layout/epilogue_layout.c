/* Layout assignment: epilogue layouts, in which results of dots are stored, and layouts in which operands from outside
 * a loop are loaded.
 *
 * A store would rather have rows spread over all lanes and then all warps, but the tensor cores leave a dot's result in
 * other warps. If each warp stores the rows that it holds, the conversion stays within the warp: no warp waits for
 * another at the end of a tile, and warpgroups need not end it together. So stores take their warps from the dot, and
 * lanes and registers from the order of memory. On an H100, a GEMM of 8192 × 8192 × 512 gains 3 %, and one of 4096³
 * about 1 %.
 *
 * Likewise, an operand that all iterations of a loop multiply, such as the queries of an attention, is loaded by the
 * warps that multiply its rows: no warpgroup reads data that the other one has stored in shared memory. */
#include "gpu/layout/assign_layouts.h"

/* The dot from which v is computed by elementwise operations, loops and branches; NULL: none. */
static const struct op *dot_behind(struct ir_context *ctx, const struct value *v)
{
	struct value_walk w = {.id = begin_walk(ctx)};
	visit_later(&w, v);
	while ((v = visit_next(&w))) {
		const struct op *o = v->def;
		if (!o)
			continue;
		if (o->code == IR_DOT) {
			end_walk(&w, true);
			return o;
		}
		if (o->code == IR_FOR || o->code == IR_IF)
			visit_later(&w, operand(o->blocks[0]->last, v->index));
		else if (op_has(o, ELEM))
			visit_operands(&w, o);
	}
	return NULL;
}

/* A layout like l, which is blocked in this order, but with the warps of `to`: a conversion between it and `to` stays
 * within each warp. NULL if a warp would then access pieces of less than a sector, or a row. */
static const struct layout *with_warps_of(struct placer *p, const struct layout *l, const struct layout *to,
					  const int *order, int elem_bytes)
{
	enum { SECTOR = 32 }; /* bytes that memory transfers at once: whole lines are no faster */
	struct layout r = *l;
	u32 bits[LAYOUT_MAX_BITS], taken = 0;
	int n = 0, vec = 0, run = 0, shift = layout_dim_shift(l, order[0]);
	for (int i = 0; i < to->bits[LL_WARP]; i++) {
		if (!is_pow2(to->basis[LL_WARP][i]) || taken & to->basis[LL_WARP][i])
			return NULL;
		taken |= to->basis[LL_WARP][i];
	}
	for (int k = 0; k < l->rank; k++)
		for (int i = 0; i < l->log2_size[order[k]]; i++)
			if (!(taken >> (layout_dim_shift(l, order[k]) + i) & 1))
				bits[n++] = 1u << (layout_dim_shift(l, order[k]) + i);
	while (vec < l->bits[LL_REG] && elem_bytes << vec < 16 && l->basis[LL_REG][vec] == 1u << (shift + vec))
		vec++;
	while (run < n && run < l->log2_size[order[0]] && bits[run] == 1u << (shift + run))
		run++;
	if (to->bits[LL_WARP] != l->bits[LL_WARP] || n != l->bits[LL_REG] + l->bits[LL_LANE] || run < vec ||
	    (elem_bytes << run < SECTOR && run < l->log2_size[order[0]]))
		return NULL;
	memcpy(r.basis[LL_REG], bits, (size_t)vec * sizeof *bits);
	memcpy(r.basis[LL_LANE], bits + vec, l->bits[LL_LANE] * sizeof *bits);
	memcpy(r.basis[LL_REG] + vec, bits + vec + l->bits[LL_LANE],
	       (size_t)(n - vec - l->bits[LL_LANE]) * sizeof *bits);
	memcpy(r.basis[LL_WARP], to->basis[LL_WARP], to->bits[LL_WARP] * sizeof *bits);
	return layout_intern(p->pool, &r);
}

struct replaced {
	struct placer *p;
	const struct layout *from, *to;
};

static void replace_layout(struct op *o, void *arg)
{
	const struct replaced *r = arg;
	if (map_get(&r->p->memory, o) == r->from && (o->code != IR_LOAD || !feeds_dot(r->p, o, false)))
		map_put(&r->p->memory, o, (void *)r->to);
}

/* Chooses the layout of a store, or of an atomic with an unused result. Other accesses that had the same layout change
 * with it, except loads that feed a dot. */
static void place_result(struct op *o, void *arg)
{
	struct placer *p = arg;
	bool adds = o->code == IR_ATOMIC_RMW && value_unused(result(o));
	const struct layout *l = o->code == IR_STORE || adds ? map_get(&p->memory, o) : NULL;
	const struct op *dot = l ? dot_behind(p->ctx, operand(o, 1)) : NULL;
	int order[MAX_RANK] = {0};
	if (!dot || result(dot)->type->rank != operand(o, 1)->type->rank)
		return;
	const struct dot_plan *plan = map_get(&p->dots, dot);
	memory_order(p, o, order);
	struct replaced r = {p, l,
			     with_warps_of(p, l, plan->acc, order, MAX(type_elem_bits(operand(o, 1)->type) / 8, 1))};
	if (r.to && r.to != l)
		walk(p->s->k->body, replace_layout, &r);
}

/* The load from which v is computed elementwise; NULL if there is none, or more than one. */
static struct op *load_behind(const struct value *v)
{
	while (v->def && op_has(v->def, ELEM) && v->def->code != IR_LOAD) {
		const struct value *next = NULL;
		for (u32 i = 0; i < v->def->noperands; i++) {
			const struct value *x = operand(v->def, i);
			if (def_if(x, IR_SPLAT) || def_if(x, IR_CONSTANT))
				continue;
			if (next)
				return NULL;
			next = x;
		}
		if (!next)
			return NULL;
		v = next;
	}
	return def_if(v, IR_LOAD);
}

/* Chooses the layout of a load in another block than the wgmma that has it as its first operand. */
static void place_operand(struct op *o, void *arg)
{
	struct placer *p = arg;
	const struct dot_plan *plan = o->code == IR_DOT ? map_get(&p->dots, o) : NULL;
	struct op *load =
		plan && plan->wgmma && !plan->fetched && !plan->transposed ? load_behind(operand(o, 0)) : NULL;
	const struct layout *l = load && load->block != o->block ? map_get(&p->memory, load) : NULL;
	int order[MAX_RANK] = {0};
	if (!l)
		return;
	struct layout rows = *l;
	rows.bits[LL_WARP] = plan->acc->bits[LL_WARP];
	for (int i = 0; i < rows.bits[LL_WARP]; i++) {
		u32 bit = plan->acc->basis[LL_WARP][i] & layout_dim_mask(plan->acc, 0);
		rows.basis[LL_WARP][i] = bit >> layout_dim_shift(plan->acc, 0) << layout_dim_shift(l, 0);
	}
	memory_order(p, load, order);
	const struct layout *to = with_warps_of(p, l, &rows, order, MAX(type_elem_bits(operand(o, 0)->type) / 8, 1));
	if (to)
		map_put(&p->memory, load, (void *)to);
}

void place_results(struct placer *p)
{
	walk(p->s->k->body, place_operand, p);
	walk(p->s->k->body, place_result, p);
}
