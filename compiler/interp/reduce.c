/* Reductions and scans with any combine region, and maps.
 *
 * The axis is first moved to the front (by a copy, unless it is the first dimension), so that slices are contiguous. A
 * reduction then runs the region on the lower and the upper half of all slices at once, until one slice is left:
 * element i is combined with element i + n/2. A scan proceeds slice by slice. */
#include "interp/interp_internal.h"

enum { MAX_OPERANDS = 8 };

struct reduce_plan {
	struct region region;
	u32 n;             /* number of operands */
	i32 extent;        /* length of the axis */
	i32 outer, inner;  /* product of the dimensions before and after the axis */
	bool reverse;
	u32 bytes[MAX_OPERANDS];
	u32 moved[MAX_OPERANDS];   /* slots of the operands with the axis in front */
	/* slots: of a reduction, the halves, alternately; of a scan, its slices (only the first row) */
	u32 stage[2][MAX_OPERANDS];
};

/* to[k][j] = region(x[k][j], y[k][j]) for each j < lanes. `to` may not overlap x and y. */
static bool combine(struct env *e, const struct reduce_plan *w, char *const *x, char *const *y, char *const *to,
		    i64 lanes)
{
	const struct region *r = &w->region;
	i64 outer_lanes = e->lanes, step = r->wide ? lanes : 1;
	e->lanes = step;
	for (i64 j = 0; j < lanes; j += step) {
		for (u32 k = 0; k < w->n; k++) {
			e->at[r->args[k]] = x[k] + j * w->bytes[k];
			e->at[r->args[w->n + k]] = y[k] + j * w->bytes[k];
		}
		if (!run_code(e, &r->code))
			return false;
		for (u32 k = 0; k < w->n; k++)
			memcpy(to[k] + j * w->bytes[k], e->at[r->results[k]], (size_t)step * w->bytes[k]);
	}
	e->lanes = outer_lanes;
	return true;
}

/* The operands with the axis in front, as [extent][outer][inner]. */
static void move_axis(struct env *e, const struct inst *i, char **out)
{
	const struct reduce_plan *w = i->plan;
	const i32 shape[] = {w->extent, w->outer, w->inner};
	const i64 stride[] = {w->inner, (i64)w->extent * w->inner, 1};
	for (u32 k = 0; k < w->n; k++) {
		out[k] = e->at[i->in[k]];
		if (w->outer == 1)
			continue;
		out[k] = e->at[w->moved[k]];
		copy_strided(out[k], e->at[i->in[k]], 3, shape, stride, w->bytes[k]);
	}
}

static bool run_reduce(struct env *e, const struct inst *i)
{
	const struct reduce_plan *w = i->plan;
	i64 slice = (i64)w->outer * w->inner;
	char *low[MAX_OPERANDS], *high[MAX_OPERANDS], *to[MAX_OPERANDS];
	move_axis(e, i, low);
	for (i32 left = w->extent / 2, turn = 0; left; left /= 2, turn ^= 1) {
		for (u32 k = 0; k < w->n; k++) {
			high[k] = low[k] + left * slice * w->bytes[k];
			to[k] = e->at[w->stage[turn][k]];
		}
		if (!combine(e, w, low, high, to, left * slice))
			return false;
		memcpy(low, to, sizeof low);
	}
	for (u32 k = 0; k < w->n; k++)
		memcpy(e->at[i->out[k]], low[k], (size_t)slice * w->bytes[k]);
	return true;
}

static bool run_scan(struct env *e, const struct inst *i)
{
	const struct reduce_plan *w = i->plan;
	i64 slice = (i64)w->outer * w->inner;
	char *from[MAX_OPERANDS], *base[MAX_OPERANDS], *before[MAX_OPERANDS], *now[MAX_OPERANDS], *to[MAX_OPERANDS];
	move_axis(e, i, from);
	for (u32 k = 0; k < w->n; k++)
		base[k] = e->at[w->outer == 1 ? i->out[k] : w->stage[0][k]];
	for (i32 step = 0; step < w->extent; step++) {
		i64 at = w->reverse ? w->extent - 1 - step : step;
		for (u32 k = 0; k < w->n; k++) {
			now[k] = from[k] + at * slice * w->bytes[k];
			to[k] = base[k] + at * slice * w->bytes[k];
			if (!step)
				memcpy(to[k], now[k], (size_t)slice * w->bytes[k]);
		}
		if (step && !combine(e, w, before, now, to, slice))
			return false;
		memcpy(before, to, sizeof before);
	}
	const i32 shape[] = {w->outer, w->extent, w->inner};
	const i64 stride[] = {w->inner, slice, 1};
	for (u32 k = 0; k < w->n && w->outer > 1; k++)
		copy_strided(e->at[i->out[k]], base[k], 3, shape, stride, w->bytes[k]);
	return true;
}

void plan_reduce(struct planner *p, const struct op *o, struct inst *i)
{
	struct reduce_plan *w = plan_alloc(p, sizeof *w);
	const struct type *t = operand(o, 0)->type;
	bool scan = o->code == IR_SCAN;
	int axis = (int)o->attr[ATTR_AXIS];
	tl_assert(o->noperands <= MAX_OPERANDS);
	w->n = o->noperands;
	w->reverse = scan && o->attr[ATTR_REVERSE];
	w->extent = t->shape[axis];
	w->outer = w->inner = 1;
	for (int k = 0; k < t->rank; k++)
		*(k < axis ? &w->outer : &w->inner) *= k == axis ? 1 : t->shape[k];
	i64 numel = type_numel(t), lanes = scan ? numel / w->extent : MAX(numel / 2, 1);
	for (u32 k = 0; k < w->n; k++) {
		w->bytes[k] = elem_bytes(operand(o, k)->type);
		if (w->outer > 1)
			w->moved[k] = plan_scratch(p, (size_t)numel * w->bytes[k]);
		if (!scan || w->outer > 1)
			w->stage[0][k] = plan_scratch(p, (size_t)(scan ? numel : lanes) * w->bytes[k]);
		if (!scan)
			w->stage[1][k] = plan_scratch(p, (size_t)MAX(lanes / 2, 1) * w->bytes[k]);
	}
	plan_region(p, o->blocks[0], lanes, &w->region);
	i->plan = w;
	i->run = scan ? run_scan : run_reduce;
}

/* --- maps ---------------------------------------------------------------------------------------------------- */

struct map_plan {
	struct region region;
	u32 *bytes; /* element sizes of the operands, then of the results */
};

static bool run_map(struct env *e, const struct inst *i)
{
	const struct map_plan *w = i->plan;
	const struct region *r = &w->region;
	i64 outer_lanes = e->lanes, step = r->wide ? i->n : 1;
	e->lanes = step;
	for (i64 j = 0; j < i->n; j += step) {
		for (u32 k = 0; k < i->nin; k++)
			e->at[r->args[k]] = (char *)e->at[i->in[k]] + j * w->bytes[k];
		if (!run_code(e, &r->code))
			return false;
		for (u32 k = 0; k < i->nout; k++) {
			u32 bytes = w->bytes[i->nin + k];
			memcpy((char *)e->at[i->out[k]] + j * bytes, e->at[r->results[k]], (size_t)step * bytes);
		}
	}
	e->lanes = outer_lanes;
	return true;
}

void plan_map(struct planner *p, const struct op *o, struct inst *i)
{
	struct map_plan *w = plan_alloc(p, sizeof *w);
	w->bytes = plan_alloc(p, (o->noperands + o->nresults) * sizeof *w->bytes);
	for (u32 k = 0; k < o->noperands; k++)
		w->bytes[k] = elem_bytes(operand(o, k)->type);
	for (u32 k = 0; k < o->nresults; k++)
		w->bytes[o->noperands + k] = elem_bytes(o->results[k].type);
	plan_region(p, o->blocks[0], i->n, &w->region);
	i->plan = w;
	i->run = run_map;
}
