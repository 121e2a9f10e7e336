/* Which instruction each dot gets, in which layouts its operands and its result are held then, and which way an operand
 * takes to wgmma: from shared memory as it lies there, turned, through registers, or computed in them. */
#include "support/thresholds.h"
#include "gpu/layout/assign_layouts.h"

#include "analysis/axis.h"
#include "analysis/register_pressure.h"
#include "gpu/layout/memory_access.h"

#include <limits.h>

struct dot_list {
	struct placer *p;
	VEC(struct op *) at;
	struct value_set made_by_dots; /* computed from a dot's result without leaving its block */
	struct map chained;            /* blocks in which an operand of a dot is such a value → themselves */
};

/* One dot feeds another's operands (attention): warps then split rows only, so that what is computed per row between
 * them stays inside a warp. */
static void note_dot(struct op *o, void *arg)
{
	struct dot_list *l = arg;
	bool made = o->code == IR_DOT;
	for (u32 i = 0; i < o->noperands; i++) {
		const struct value *v = operand(o, i);
		if (!v->def || v->def->block != o->block || !set_has(&l->made_by_dots, v))
			continue;
		made = true;
		if (o->code == IR_DOT && i < 2)
			map_put(&l->chained, o->block, o->block);
	}
	for (u32 i = 0; i < o->nresults && made; i++)
		set_add(&l->made_by_dots, &o->results[i]);
	if (o->code == IR_DOT)
		vec_push(&l->p->scratch, &l->at, o);
}

static void split_warps(const struct placer *p, const struct type *t, const struct mma *m, bool chained, int *warps)
{
	int rows = t->rank - 2, cols = t->rank - 1, left = p->s->num_warps;
	int im = m ? m->m : 1, in = m ? m->n : 1;
	for (int i = 0; i < t->rank; i++)
		warps[i] = 1;
	for (int d = 0; d < rows && left > 1; d++) { /* batches first */
		warps[d] = MIN(left, t->shape[d]);
		left /= warps[d];
	}
	if (chained) { /* of few rows columns too: otherwise several warps would do the same */
		warps[rows] = MIN(left, MAX(t->shape[rows] / im, 1));
		warps[cols] = MIN(left / warps[rows], MAX(t->shape[cols] / in, 1));
		warps[rows] = left / warps[cols];
		return;
	}
	while (left > 1) {
		int tall = t->shape[rows] / (im * warps[rows]), wide = t->shape[cols] / (in * 2 * warps[cols]);
		bool by_rows = tall >= wide ? tall > 1 : wide <= 1 && tall > 1;
		warps[by_rows ? rows : cols] *= 2;
		left /= 2;
	}
}

/* How many of the warps share the columns of a tile, so that a thread loads the fewest elements of rows and columns;
 * `least`: columns of a warp. */
static int warps_across(const struct type *t, int warps, const int *lanes, int least)
{
	int cols = t->rank - 1, rows = t->rank - 2, best = 1, fewest = INT_MAX;
	for (int w = 1; w <= warps && w * least <= MAX(t->shape[cols], least); w *= 2) {
		int elems =
			MAX(t->shape[cols] / (lanes[cols] * w), 1) + MAX(t->shape[rows] / (lanes[rows] * warps / w), 1);
		if (elems <= fewest)
			best = w, fewest = elems;
	}
	return best;
}

/* Multiply-adds: a square of results a thread, so that each operand element is used several times. */
static const struct layout *fma_layout(struct placer *p, const struct type *t)
{
	int n = elements_per_thread(p, t), order[MAX_RANK], spt[MAX_RANK], covered[MAX_RANK], lanes[MAX_RANK],
	    warps[MAX_RANK], cols = t->rank - 1, rows = t->rank - 2;
	order_rows(t, order);
	for (int d = 0; d < t->rank; d++)
		spt[d] = d == cols   ? MIN(MIN(n, 4), t->shape[d])
			 : d == rows ? MIN(MIN(MAX(n / 4, 1), 4), t->shape[d])
				     : 1;
	memcpy(covered, spt, sizeof covered);
	lanes[cols] = MIN(MAX(t->shape[cols] / spt[cols], 1), 8);
	divide_among(t, order + 1, t->rank - 1, 32 / lanes[cols], covered, lanes);
	warps[cols] = warps_across(t, p->s->num_warps, lanes, spt[cols] * lanes[cols]);
	divide_among(t, order + 1, t->rank - 1, p->s->num_warps / warps[cols], covered, warps);
	return layout_blocked(p->pool, t->rank, t->shape, spt, lanes, warps, order);
}

/* Does v run along dimension d in memory, as far as one can tell: is it loaded so? */
static bool loaded_along(struct placer *p, const struct value *v, int d)
{
	while (v->def && v->def->code != IR_LOAD && (op_has(v->def, ELEM) || v->def->code == IR_TRANS)) {
		d = v->def->code == IR_TRANS ? 1 - d : d;
		v = operand(v->def, 0);
	}
	const struct layout *l = def_if(v, IR_LOAD) ? map_get(&p->memory, v->def) : NULL;
	return !l || !l->bits[LL_REG] || l->basis[LL_REG][0] & layout_dim_mask(l, d);
}

/* The load that brings v as it is, or transposed. */
static const struct op *load_of(const struct value *v)
{
	while (def_if(v, IR_TRANS))
		v = operand(v->def, 0);
	return def_if(v, IR_LOAD);
}

/* For a load that wgmma wants along the other dimension: each thread has a few rows, which it turns before it stores
 * them. NULL if the tile is too small, or its rows not aligned. */
static const struct layout *transposed_load(struct placer *p, const struct op *load)
{
	/* bytes of a column that are stored at once; of a row that are loaded at once */
	enum { COLUMN = 8, LINE = 128 };
	const struct type *t = operand(load, 0)->type;
	int order[MAX_RANK] = {0}, most = elements_per_thread(p, t), w = p->s->num_warps;
	if (p->common || t->rank != 2 || !memory_order(p, load, order))
		return NULL;
	int d = order[0], k = order[1], spt[2], lanes[2], warps[2], size = dtype_bytes(type_elem(t)->elem->dtype);
	spt[k] = MIN(MAX(COLUMN / size, 4), MIN(most / 4, t->shape[k]));
	spt[d] = MIN(axis_vector_width(p->s->axis, operand(load, 0), mask_of(load), d), most / MAX(spt[k], 1));
	if (spt[k] < 4 || spt[d] < 4)
		return NULL;
	lanes[d] = MIN(t->shape[d], LINE / size) / spt[d];
	lanes[k] = 32 / lanes[d];
	warps[k] = MIN(w, MAX(t->shape[k] / (spt[k] * lanes[k]), 1));
	warps[d] = w / warps[k];
	/* words: lanes that store together have columns of two neighbours, which fill all banks; bytes: see
	 * write_transposed */
	return layout_blocked(p->pool, 2, t->shape, spt, lanes, warps, size == 4 ? (int[]){k, d} : order);
}

/* Has the result fewer rows than the instruction? Its columns can take their place, if B is loaded as it is: from
 * registers it would not come so. */
static bool few_rows(const struct op *dot)
{
	return result(dot)->type->shape[0] < 64 && load_of(operand(dot, 1));
}

/* Is the operand made for this dot alone, and each time anew? Then it may be turned where it lies in shared memory. */
static bool is_made_for(const struct placer *p, const struct op *dot, u32 i)
{
	const struct value *v = operand(dot, i);
	bool alone = value_has_one_use(v);
	while (def_if(v, IR_TRANS)) {
		v = operand(v->def, 0);
		alone &= value_has_one_use(v);
	}
	return alone && v->def && v->def->block == dot->block && wgmma_turns(operand(dot, i)->type, i, p->s->num_warps);
}

/* Where wgmma wants its operands along k, one of them may lie otherwise, since registers can be its way to the tensor
 * cores: B too, if the operands are exchanged. But what goes from dot to dot stays in rows of its own warps. Another
 * operand is turned in shared memory, or, if it is loaded, on its way there, of four-byte elements A alone. */
static bool choose_wgmma(struct placer *p, const struct op *dot, bool chained, struct dot_plan *plan)
{
	const struct wgmma *w = wgmma_for_dot(p->s, dot);
	const struct type *t = result(dot)->type;
	struct wgmma_split other;
	if (!w)
		return false;
	const struct layout *transposed[2];
	bool good[2], in_place[2], exchanged = few_rows(dot);
	for (u32 i = 0; i < 2; i++) {
		const struct op *load = load_of(operand(dot, i));
		good[i] = w->any_major || loaded_along(p, operand(dot, i), 1 - (int)i);
		in_place[i] = !good[i] && !(i == 0 ? chained : exchanged) && is_made_for(p, dot, i);
		bool may_turn = !good[i] && !in_place[i] && load && (dtype_bytes(w->a) == 1 || i == 0);
		transposed[i] = may_turn ? transposed_load(p, load) : NULL;
	}
	bool fetched_b = !good[1] && !chained && wgmma_split(p->s->num_warps, t, 1, &other),
	     fetched_a = !fetched_b && !good[0] && !exchanged && !(chained && transposed[0]);
	exchanged |= fetched_b;
	plan->fetched = fetched_a || fetched_b;
	plan->bytes = plan->fetched ? dtype_bytes(w->a) : 0;
	if (plan->fetched) {
		in_place[fetched_b] = false;
		transposed[fetched_b] = NULL;
		good[fetched_b] = true;
	}
	for (u32 i = 0; i < 2; i++)
		good[i] |= in_place[i] || transposed[i];
	plan->transposed = in_place[0] || in_place[1];
	const char *why = NULL;
	if (!good[0])
		why = "one of the operands contiguous along k";
	else if (!good[1] && chained)
		why = "both operands contiguous along k where another dot takes part";
	else if (!good[1] || !wgmma_split(p->s->num_warps, t, exchanged, &plan->split))
		why = "both operands contiguous along k where the result has fewer than 64 columns";
	for (u32 i = 0; i < 2 && !why; i++)
		if (transposed[i])
			map_put(&p->memory, load_of(operand(dot, i)), (void *)transposed[i]);
	if (!why && (transposed[0] || transposed[1] || plan->transposed) && p->s->remarks)
		diag(p->s->diags, R_DOT_TRANSPOSED, dot->loc, dtype_name(w->a),
		     plan->transposed ? "" : "registers on its way to ");
	if (why && p->s->remarks && wgmma_split(p->s->num_warps, t, 0, &other))
		diag(p->s->diags, R_DOT_NOT_ALONG_K, dot->loc, dtype_name(w->a), why);
	if (!why && plan->fetched)
		plan->a = wgmma_operand(p->pool, operand(dot, exchanged)->type, &plan->split, plan->bytes);
	plan->wgmma = why ? NULL : w;
	return !why;
}

/* What an operand of a dot is computed of, element by element, or renamed from: values that the dot's block computes,
 * each for the next one alone. */
struct computation {
	value_vec values;
	VEC(const struct layout *) layouts; /* in which they are computed */
	int bits;                           /* of an element of the largest tile that the block loads for it */
	i64 elements;
};

/* Can a load come ahead by asynchronous copies, and does it run along the dimension in which the instruction's rows
 * follow each other, or else k? Bits 2 to 4 of the lane count rows. */
static bool runs_along(struct placer *p, const struct op *load, const struct layout *l, bool rows)
{
	enum { LEAST = 32 /* bits that cp.async copies at once */ };
	int bits = type_elem_bits(result(load)->type);
	bool yes = load_fills_zero(load) && !load->attr[ATTR_VOLATILE];
	for (int d = 0; d < l->rank && yes; d++) {
		bool is_rows = l->basis[LL_LANE][2] & layout_dim_mask(l, d);
		yes = is_rows != rows ||
		      (loaded_along(p, result(load), d) &&
		       bits * axis_vector_width(p->s->axis, operand(load, 0), mask_of(load), d) >= LEAST);
	}
	return yes;
}

/* Of an operand in layout l, whose loads run along the instruction's rows, or else k. False: some of it is shared, or
 * comes from elsewhere. */
static bool find_computation(struct placer *p, const struct op *dot, struct value *v, const struct layout *l, bool rows,
			     struct computation *c)
{
	u32 n = 0;
	bool ok = true;
	*c = (struct computation){0};
	vec_push(&p->scratch, &c->values, v);
	vec_push(&p->scratch, &c->layouts, l);
	for (u32 at = 0; at < c->values.len && ok; at++) {
		v = c->values.at[at], l = c->layouts.at[at];
		struct op *o = v->def;
		if (is_free(p, v) || (o ? o->block : v->block) != dot->block)
			continue;
		bool load = o && o->code == IR_LOAD, shape = o && op_is_shape(o);
		ok = o && value_has_one_use(v) && (load || shape || (op_has(o, ELEM) && op_has(o, PURE))) &&
		     (!load || v->type->rank < 2 || runs_along(p, o, l, rows));
		if (load && type_numel(v->type) > c->elements) {
			c->elements = type_numel(v->type);
			c->bits = type_elem_bits(v->type);
		}
		for (u32 k = 0; ok && !load && k < o->noperands; k++)
			if (type_is_tensor(operand(o, k)->type)) {
				vec_push(&p->scratch, &c->values, operand(o, k));
				vec_push(&p->scratch, &c->layouts, shape ? operand_layout(p, o, l) : l);
			}
		if (!load && !shape) {
			c->values.at[n] = v;
			c->layouts.at[n++] = l;
		}
	}
	c->values.len = c->layouts.len = n;
	return ok && c->elements;
}

/* Is operand i computed of what the loop loads? Then its rows, or columns if the operands are exchanged, are the
 * instruction's rows, and it is computed in the registers from which the tensor cores take it: through shared memory it
 * would be written once, and read by each warpgroup. */
static bool choose_computed(struct placer *p, const struct op *dot, int i, struct dot_plan *plan)
{
	const struct wgmma *w = wgmma_for_dot(p->s, dot);
	const struct op *loop = dot->block->parent;
	struct value *v = operand(dot, (u32)i);
	struct wgmma_split split;
	struct computation c;
	if (!w || !w->any_major || load_of(v) || !loop || loop->code != IR_FOR || stages_of(p->s, loop) < 2 ||
	    v->type->shape[i] < 16 * p->s->num_warps || !wgmma_split(p->s->num_warps, result(dot)->type, i, &split))
		return false;
	/* pairs of neighbours across k are fetched together, but of 16 bits, which ldmatrix turns */
	int bytes = 1;
	const struct layout *a = wgmma_operand(p->pool, v->type, &split, bytes);
	bool across = find_computation(p, dot, v, a, true, &c);
	if (!across || c.bits == 16) {
		bytes = 0;
		a = wgmma_operand(p->pool, v->type, &split, bytes);
		if (!find_computation(p, dot, v, a, across, &c))
			return false;
	}
	*plan = (struct dot_plan){.wgmma = w, .split = split, .bytes = bytes, .computed = true, .a = a};
	for (u32 k = 0; k < c.values.len; k++) {
		map_put(&p->strong, c.layouts.at[k], plan);
		assign_layout(p, c.values.at[k], c.layouts.at[k]);
	}
	return true;
}

/* Sums that the registers cannot hold are read and written at each step. So many that LLVM would take minutes for them
 * are refused; products of batches take less. */
static void check_accumulator(struct placer *p, const struct op *dot, const struct layout *acc)
{
	enum { MAX_WARPS = 32 };
	int warps = p->s->num_warps, more = 2 * warps,
	    regs = layout_num_regs(acc) * MAX(type_elem_bits(result(dot)->type) / 32, 1);
	if (regs < most_registers(p->s, warps, 1))
		return;
	bool refused = regs > MAX_SUMS && result(dot)->type->rank == 2;
	p->s->failed |= refused;
	if (refused)
		diag(p->s->diags, E_ACCUMULATOR, dot->loc, regs, most_registers(p->s, warps, 1), warps);
	else
		diag(p->s->diags, W_ACCUMULATOR, dot->loc, regs, most_registers(p->s, warps, 1), warps);
	while (more <= MAX_WARPS && regs * warps / more >= most_registers(p->s, more, 1))
		more *= 2;
	if (more <= MAX_WARPS)
		diag_hint(p->s->diags, "use num_warps=%d, or smaller tiles", more);
	else
		diag_hint(p->s->diags, "use smaller tiles");
}

void place_dots(struct placer *p)
{
	struct dot_list all = {.p = p, .chained = {.arena = &p->scratch}};
	walk(p->s->k->body, note_dot, &all);
	for (u32 i = 0; i < all.at.len; i++) {
		struct op *o = all.at.at[i];
		const struct type *t = result(o)->type, *a = operand(o, 0)->type, *b = operand(o, 1)->type;
		struct dot_plan *plan = arena_new(&p->scratch, struct dot_plan);
		bool chained = map_get(&all.chained, o->block),
		     computed = !chained && (choose_computed(p, o, 1, plan) || choose_computed(p, o, 0, plan)),
		     warpgroups = computed || choose_wgmma(p, o, chained, plan);
		plan->mma = warpgroups ? NULL : mma_for_dot(p->s->target, o);
		if (warpgroups) {
			plan->acc = wgmma_accumulator(p->pool, t, &plan->split, plan->bytes);
		} else if (plan->mma) {
			split_warps(p, t, plan->mma, chained, plan->warps);
			plan->acc = layout_mma(p->pool, t->rank, t->shape, plan->warps, plan->mma->m, 8);
			plan->a = layout_dot_operand(p->pool, a->rank, a->shape, 0, plan->warps, plan->mma->m,
						     type_elem_bits(a));
			plan->b = layout_dot_operand(p->pool, b->rank, b->shape, 1, plan->warps, plan->mma->m,
						     type_elem_bits(b));
		} else {
			plan->acc = fma_layout(p, t);
		}
		check_accumulator(p, o, plan->acc);
		map_put(&p->strong, plan->acc, plan);
		map_put(&p->dots, o, plan);
	}
	arena_free(&all.made_by_dots.scratch);
}
