/* Chooses the instruction of each dot, the layouts of its operands and its result, and the way of each operand to
 * wgmma: from shared memory directly, transposed there, loaded into registers, or computed in registers. */
#include "support/thresholds.h"
#include "gpu/layout/assign_layouts.h"

#include "analysis/axis.h"
#include "analysis/register_pressure.h"
#include "gpu/layout/memory_access.h"

#include <limits.h>

struct dot_list {
	struct placer *p;
	VEC(struct op *) at;
	struct value_set made_by_dots; /* computed from a dot's result in the same block */
	struct map chained;            /* blocks in which an operand of a dot is such a value → themselves */
};

/* Finds blocks in which the result of one dot feeds an operand of another (attention). There, warps divide rows only,
 * so that per-row computations between the dots stay inside a warp. */
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
	if (chained) { /* with few rows columns, too: otherwise several warps would do the same work */
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

/* The number of warps along the columns of a tile for which a thread loads the fewest elements of rows and columns.
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

/* The layout of a result of multiply-adds: a square of results a thread, so that each operand element is used several
 * times. */
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

/* True if v is loaded contiguously along dimension d, or if that is unknown. */
static bool loaded_along(struct placer *p, const struct value *v, int d)
{
	while (v->def && v->def->code != IR_LOAD && (op_has(v->def, ELEM) || v->def->code == IR_TRANS)) {
		d = v->def->code == IR_TRANS ? 1 - d : d;
		v = operand(v->def, 0);
	}
	const struct layout *l = def_if(v, IR_LOAD) ? map_get(&p->memory, v->def) : NULL;
	return !l || !l->bits[LL_REG] || l->basis[LL_REG][0] & layout_dim_mask(l, d);
}

/* The value before the transpositions that give v. *dim: a dimension of v, replaced by the same dimension of it. */
static const struct value *before_transpositions(const struct value *v, int *dim)
{
	for (; def_if(v, IR_TRANS); *dim = 1 - *dim)
		v = operand(v->def, 0);
	return v;
}

/* The load with result v, or with v as its transposed result; or NULL. */
static const struct op *load_of(const struct value *v)
{
	int dim = 0;
	return def_if(before_transpositions(v, &dim), IR_LOAD);
}

/* The layout of a load for which wgmma needs the other dimension to be contiguous: each thread has a few rows, which it
 * transposes in registers before it stores them to shared memory. NULL if the tile is too small, or its rows are not
 * aligned. */
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
	/* 4-byte elements: lanes that store together have two adjacent columns, which fill all banks; 1-byte elements:
	 * see write_transposed */
	return layout_blocked(p->pool, 2, t->shape, spt, lanes, warps, size == 4 ? (int[]){k, d} : order);
}

/* True if the result has fewer rows than the instruction and B is a load, not computed in registers. Then the operands
 * are exchanged, so that the instruction's rows are columns of the result. */
static bool few_rows(const struct op *dot)
{
	return result(dot)->type->shape[0] < 64 && load_of(operand(dot, 1));
}

/* True if the operand has no other use than this dot, and is made anew each time the dot runs. Then it may be
 * transposed in place in shared memory. */
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

/* The layout of a tile that is stored with dimension k contiguous, and computed from tiles whose elements are adjacent
 * along the other dimension. A thread reads 4 bytes of a row of the computed tile's source, and stores 16 bytes of a
 * column. The 8 lanes that store together write to different banks of the swizzled buffer. */
static const struct layout *along_k_layout(struct placer *p, const struct type *t, int k, int source_bits)
{
	int d = 1 - k, spt[2], lanes[2], warps[2], covered[2], order[] = {k, d};
	spt[k] = MIN(4, t->shape[k]);
	spt[d] = MIN(MAX(32 / source_bits, 1), MAX(elements_per_thread(p, t) / spt[k], 1));
	lanes[k] = spt[d];
	lanes[d] = 32 / lanes[k];
	covered[k] = spt[k] * lanes[k], covered[d] = spt[d] * lanes[d];
	divide_among(t, (int[]){d, k}, 2, p->s->num_warps, covered, warps);
	return layout_blocked(p->pool, 2, t->shape, spt, lanes, warps, order);
}

/* The element size of the largest tile from which v is computed elementwise, if the loop around v loads such tiles into
 * buffers, from which they can be read in any layout; otherwise 0. */
static int buffered_source_bits(struct placer *p, const struct value *v)
{
	i64 most = 0;
	int bits = 0;
	if (p->s->cuda.limits.few_buffers || !v->def)
		return 0;
	const struct block *body = v->def->block;
	struct value_walk w = {.id = begin_walk(p->ctx)};
	visit_later(&w, v);
	while ((v = visit_next(&w))) {
		const struct op *load = load_of(v), *o = v->def;
		if (is_free(p, v) || (o && op_is_shape(o) && o->code != IR_TRANS))
			continue;
		if (load && load->block == body && may_be_copied(p, load, 2)) {
			bits = type_numel(v->type) >= most ? type_elem_bits(v->type) : bits;
			most = MAX(most, type_numel(v->type));
		} else if (!load && o && op_has(o, ELEM) && op_has(o, PURE)) {
			visit_operands(&w, o);
		} else {
			end_walk(&w, true);
			return 0;
		}
	}
	return bits;
}

/* Assigns layouts to v, which is stored along dimension k, and to the values from which it is computed elementwise. */
static void place_along_k(struct placer *p, const struct value *v, int k)
{
	v = before_transpositions(v, &k);
	int bits = buffered_source_bits(p, v);
	if (!bits)
		return;
	const struct layout *l = along_k_layout(p, v->type, k, bits);
	struct value_walk w = {.id = begin_walk(p->ctx)};
	set_strength(p, l, OF_TENSOR_CORES);
	visit_later(&w, v);
	while ((v = visit_next(&w))) {
		if (is_free(p, v) || !op_has(v->def, ELEM) || !op_has(v->def, PURE))
			continue;
		assign_layout(p, v, l);
		visit_operands(&w, v->def);
	}
}

/* If wgmma needs K-major operands in shared memory, one operand may be MN-major, because it can be loaded into
 * registers as the instruction's A: this can also be B, with exchanged operands. Chained dots do not exchange operands,
 * because values that pass from dot to dot stay in the rows of their warps. The other operand, if MN-major, is
 * transposed in place in shared memory or, if it is loaded, on its way there. With 4-byte elements, only A can be
 * transposed on its way. A computed operand with 4-byte elements is stored K-major if it comes from buffers, or if it
 * cannot be transposed in place; A from buffers is computed in registers instead (comes_in_registers). */
static bool choose_wgmma(struct placer *p, const struct op *dot, bool chained, struct dot_plan *plan)
{
	const struct wgmma *w = wgmma_for_dot(p->s, dot);
	const struct type *t = result(dot)->type;
	struct wgmma_split other;
	if (!w)
		return false;
	const struct layout *transposed[2];
	bool good[2], in_place[2], stored[2], exchanged = few_rows(dot);
	for (u32 i = 0; i < 2; i++) {
		int k = 1 - (int)i;
		const struct value *source = before_transpositions(operand(dot, i), &k);
		const struct op *load = def_if(source, IR_LOAD);
		bool along = w->any_major || loaded_along(p, operand(dot, i), 1 - (int)i),
		     computed = !along && !load && dtype_bytes(w->a) == 4;
		in_place[i] = !along && !(i == 0 ? chained : exchanged) && is_made_for(p, dot, i) &&
			      !(computed && buffered_source_bits(p, source));
		stored[i] = computed && !in_place[i];
		good[i] = along || stored[i];
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
		why = "one operand that is contiguous along k";
	else if (!good[1] && chained)
		why = "both operands contiguous along k if dots depend on each other";
	else if (!good[1] || !wgmma_split(p->s->num_warps, t, exchanged, &plan->split))
		why = "both operands contiguous along k if the result has fewer than 64 columns";
	for (u32 i = 0; i < 2 && !why; i++)
		if (transposed[i])
			map_put(&p->memory, load_of(operand(dot, i)), (void *)transposed[i]);
	if (!why && (transposed[0] || transposed[1] || plan->transposed) && p->s->remarks)
		diag(p->s->diags, R_DOT_TRANSPOSED, dot->loc, dtype_name(w->a),
		     plan->transposed ? "" : "registers on its way to ");
	if (why && p->s->remarks && wgmma_split(p->s->num_warps, t, 0, &other))
		diag(p->s->diags, R_DOT_NOT_ALONG_K, dot->loc, dtype_name(w->a), why);
	for (u32 i = 0; i < 2 && !why; i++)
		if (stored[i])
			place_along_k(p, operand(dot, i), 1 - (int)i);
	if (!why && plan->fetched)
		plan->a = wgmma_operand(p->pool, operand(dot, exchanged)->type, &plan->split, plan->bytes);
	plan->wgmma = why ? NULL : w;
	return !why;
}

/* The values from which the dot's block computes an operand, by elementwise and shape operations. Each value has one
 * use. */
struct computation {
	value_vec values;
	VEC(const struct layout *) layouts; /* in which the values are computed */
	int bits;                           /* element size of the largest tile that the block loads for the operand */
	i64 elements;
};

/* True if asynchronous copies can execute the load ahead, and its memory is contiguous along the dimension of the
 * instruction's rows (`rows`), or otherwise along k. Bits 2 to 4 of the lane count rows. */
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

/* Finds the computation of operand v in layout l, with loads contiguous along the instruction's rows (`rows`), or
 * otherwise along k. False: some of the values have other uses, or other sources. */
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

/* Plans wgmma with operand i computed in registers, if it is computed from tiles that the loop loads. Its rows, or its
 * columns if the operands are exchanged, are the instruction's rows. It is computed in the registers from which the
 * tensor cores take it: in shared memory it would be written once, and read by each warpgroup. */
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
	/* pairs adjacent along MN are loaded together, except 16-bit elements, which ldmatrix transposes */
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
		set_strength(p, c.layouts.at[k], OF_TENSOR_CORES);
		assign_layout(p, c.values.at[k], c.layouts.at[k]);
	}
	return true;
}

/* The elements along dimension d that a thread has next to each other in all loaded tiles from which v is computed
 * elementwise; 0: it is computed from other tiles, or loaded itself. */
static int run_along(struct placer *p, const struct value *v, int d)
{
	struct value_walk w = {.id = begin_walk(p->ctx)};
	int run = 0, n;
	v = before_transpositions(v, &d);
	if (v->type->rank != 2 || def_if(v, IR_LOAD))
		return 0;
	visit_later(&w, v);
	while ((v = visit_next(&w))) {
		const struct layout *l = def_if(v, IR_LOAD) ? map_get(&p->memory, v->def) : NULL;
		if (is_free(p, v) || (v->def && op_is_shape(v->def) && v->def->code != IR_TRANS))
			continue; /* the same in all columns, or rows */
		if (v->def && op_has(v->def, ELEM) && op_has(v->def, PURE)) {
			visit_operands(&w, v->def);
			continue;
		}
		if (!l) {
			end_walk(&w, true);
			return 0;
		}
		for (n = 0; n < l->bits[LL_REG] && l->basis[LL_REG][n] == 1u << (layout_dim_shift(l, d) + n);)
			n++;
		run = MIN(run ? run : 1 << n, 1 << n);
	}
	return run > 1 ? run : 0;
}

/* The elements along k that a thread has next to each other in both operands of an mma.sync, if an operand is computed
 * from tiles that are loaded along k, and one warp needs each element: the loads have the same layout, or their buffers
 * are read by vectors. 0: of no importance. */
static int common_run(struct placer *p, const struct op *dot, const int *warps)
{
	const struct type *a = operand(dot, 0)->type, *b = operand(dot, 1)->type;
	int k = a->shape[a->rank - 1], run = 0;
	for (int i = 0; i < 2; i++) {
		bool once = warps[a->rank - 1 - i] == 1;
		int of = once ? run_along(p, operand(dot, (u32)i), a->rank - 1 - i) : 0;
		run = run && of ? MIN(run, of) : MAX(run, of);
	}
	while (4 * run > k)
		run /= 2;
	bool useful = 4 * run == k || is_in_pipelined_loop(p, dot);
	return useful && type_elem_bits(a) == type_elem_bits(b) ? run : 0;
}

/* Warns if the registers cannot hold the accumulators, which are then read and written at each step. Refuses
 * accumulators so large that LLVM would take minutes for them, except for batched dots, which take less time. */
static void check_accumulator(struct placer *p, const struct op *dot, const struct layout *acc)
{
	enum { MAX_WARPS = 32 };
	int warps = p->s->num_warps, more = 2 * warps,
	    regs = layout_num_regs(acc) * MAX(type_elem_bits(result(dot)->type) / 32, 1);
	if (regs < registers_for_blocks(p->s->target, warps, 1))
		return;
	bool refused = regs > MAX_SUMS && result(dot)->type->rank == 2;
	p->s->failed |= refused;
	if (refused)
		diag(p->s->diags, E_ACCUMULATOR, dot->loc, regs, registers_for_blocks(p->s->target, warps, 1), warps);
	else
		diag(p->s->diags, W_ACCUMULATOR, dot->loc, regs, registers_for_blocks(p->s->target, warps, 1), warps);
	while (more <= MAX_WARPS && regs * warps / more >= registers_for_blocks(p->s->target, more, 1))
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
			int run = common_run(p, o, plan->warps);
			plan->a = mma_operand(p->pool, a, 0, plan->warps, plan->mma, run);
			plan->b = mma_operand(p->pool, b, 1, plan->warps, plan->mma, run);
		} else {
			plan->acc = fma_layout(p, t);
		}
		check_accumulator(p, o, plan->acc);
		set_strength(p, plan->acc, warpgroups || plan->mma ? OF_TENSOR_CORES : OF_MULTIPLY_ADDS);
		map_put(&p->dots, o, plan);
	}
	arena_free(&all.made_by_dots.scratch);
}
