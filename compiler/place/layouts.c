/* Layout assignment, first half: the home of each value, the layout it is computed in.
 *
 * Anchors have a layout of their own: loads, stores and atomics want their pointers' contiguous dimension across
 * adjacent threads in wide vectors (axis analysis tells); dots want the fragments of their instruction. From there
 * homes spread forward: an elementwise operation is computed where its operands live, fragments of tensor cores being
 * the strongest; a reduction's result lives in a slice; a loop-carried value where its initial or its next value lives.
 * Shape operations have no home: they follow whoever asks. Index arithmetic is free: it is recomputed wherever it is
 * wanted (materialize.c), so that conversions remain only where data really moves. */
#include "base/tuning.h"
#include "place/layouts.h"

#include "opt/axis.h"
#include "opt/pressure.h"
#include "place/access.h"

#include <limits.h>

/* --- making layouts ------------------------------------------------------------------------------------------ */

/* Divides n lanes or warps among dimensions, in this order, as far as each has elements that are not `covered`; the
 * last one takes the rest. */
static void divide_among(const struct type *t, const int *order, int ndims, int n, int *covered, int *out)
{
	for (int i = 0; i < ndims; i++) {
		int d = order[i];
		out[d] = i == ndims - 1 ? n : MIN(MAX(t->shape[d] / covered[d], 1), n);
		covered[d] *= out[d];
		n /= out[d];
	}
}

/* The usual distribution: `vec` elements a thread along order[0], then lanes, then warps, in order. */
static const struct layout *blocked(struct placer *p, const struct type *t, const int *order, int vec)
{
	int spt[MAX_RANK], covered[MAX_RANK], lanes[MAX_RANK], warps[MAX_RANK];
	for (int d = 0; d < t->rank; d++)
		covered[d] = spt[d] = d == order[0] ? MIN(vec, t->shape[d]) : 1;
	divide_among(t, order, t->rank, 32, covered, lanes);
	divide_among(t, order, t->rank, p->s->num_warps, covered, warps);
	return layout_blocked(p->pool, t->rank, t->shape, spt, lanes, warps, order);
}

/* The last dimension first. */
static void order_rows(const struct type *t, int *order)
{
	for (int i = 0; i < t->rank; i++)
		order[i] = t->rank - 1 - i;
}

static int elements_per_thread(const struct placer *p, const struct type *t)
{
	return (int)MAX(type_numel(t) / (32 * p->s->num_warps), 1);
}

const struct layout *default_layout(struct placer *p, const struct type *t)
{
	int order[MAX_RANK];
	if (p->common)
		return p->common;
	order_rows(t, order);
	return blocked(p, t, order, MIN(elements_per_thread(p, t), 4));
}

/* The axis runs through registers, then lanes, then warps, in order, so that a scan can go up the same ladder. Rows are
 * held as memory accesses hold them, whole vectors at a time, and columns by as few threads as there can be. */
static const struct layout *scan_layout(struct placer *p, const struct op *o)
{
	enum { WIDEST = 16 }; /* bytes */
	const struct type *t = operand(o, 0)->type;
	int vector = WIDEST / dtype_bytes(type_dtype(t)), order[MAX_RANK], axis = (int)o->attr[ATTR_AXIS], n = 0,
	    w = p->s->num_warps, most = elements_per_thread(p, t);
	if (t->rank == 2 && axis == 0) {
		int vec = MIN(MIN(vector, most), t->shape[1]), across = MIN(t->shape[1] / vec, 32),
		    wide = MIN(t->shape[1] / (vec * across), w);
		int lanes[] = {32 / across, across}, warps[] = {w / wide, wide},
		    spt[] = {MAX(t->shape[0] / (lanes[0] * warps[0]), 1), vec};
		return layout_blocked(p->pool, 2, t->shape, spt, lanes, warps, (int[]){1, 0});
	}
	order[n++] = axis;
	for (int d = t->rank - 1; d >= 0; d--)
		if (d != axis)
			order[n++] = d;
	return blocked(p, t, order, MAX(t->shape[axis] / (32 * w), MIN(vector, most)));
}

/* --- memory operations --------------------------------------------------------------------------------------- */

bool memory_order(const struct placer *p, const struct op *o, int *order)
{
	const struct value *ptr = operand(o, 0);
	const struct axis_info *a = axis_of(p->s->axis, ptr);
	int n = ptr->type->rank;
	order_rows(ptr->type, order);
	for (int i = 1; i < n; i++)
		for (int k = i; k > 0 && a->contiguity[order[k]] > a->contiguity[order[k - 1]]; k--) {
			int t = order[k];
			order[k] = order[k - 1];
			order[k - 1] = t;
		}
	return a->contiguity[order[0]] > 1;
}

bool is_memory_op(const struct op *o)
{
	return o->code == IR_LOAD || o->code == IR_STORE || o->code == IR_ATOMIC_RMW || o->code == IR_ATOMIC_CAS;
}

struct access {
	struct op *op;
	int order[MAX_RANK], vec;
	int run; /* elements of its runs: neighbours too, but of no interest to others */
};
struct accesses {
	struct placer *p;
	VEC(struct access) at;
	VEC(const struct op *) scans;
};

static bool is_elementwise(const struct op *o)
{
	return op_has(o, ELEM) || o->code == IR_TRANS;
}

static bool is_elementwise_or_shape(const struct op *o)
{
	return op_has(o, ELEM) || op_is_shape(o);
}

static void note_operands(struct op *o, void *arg)
{
	struct placer *p = arg;
	for (u32 i = 0; i < 2 && o->code == IR_DOT; i++) {
		add_sources(&p->operands, operand(o, i), is_elementwise);
		add_sources(&p->shaped_operands, operand(o, i), is_elementwise_or_shape);
	}
}

bool feeds_dot(const struct placer *p, const struct op *load, bool shapes)
{
	return load->code == IR_LOAD && set_has(shapes ? &p->shaped_operands : &p->operands, result(load));
}

/* Is o a load of a few numbers that work on a dot's operand in a loop, and that cp.async can bring as far ahead as what
 * they work on? Registers hold them one iteration ahead only, which is shorter than the way to memory. So many elements
 * at a time, or 0. */
static int copied_ahead(struct placer *p, const struct op *o, const int *order)
{
	enum { LEAST = 4, MOST = 16 }; /* bytes of a copy */
	const struct pass_state *s = p->s;
	const struct op *loop = o->block->parent;
	if (o->code != IR_LOAD)
		return 0;
	const struct type *t = result(o)->type;
	if (type_numel(t) > 32 * s->num_warps || o->attr[ATTR_VOLATILE] || !s->target->has_async_copy ||
	    s->k->cuda.cluster > 1)
		return 0;
	if (!loop || loop->code != IR_FOR || stages_of(s, loop) < 3 ||
	    may_be_written(p->s, o->block, pointer_base(operand(o, 0))) || !feeds_dot(p, o, true) ||
	    !load_fills_zero(o))
		return 0;
	for (u32 i = 0; i < o->noperands; i++)
		if (!is_free(p, operand(o, i)))
			return 0;
	int bytes = dtype_bytes(type_dtype(t)), width = axis_vector_width(s->axis, operand(o, 0), mask_of(o), order[0]);
	return width * bytes < LEAST ? 0 : MIN(width, MOST / bytes);
}

static void note_access(struct op *o, void *arg)
{
	struct accesses *all = arg;
	if (o->code == IR_SCAN)
		vec_push(&all->p->scratch, &all->scans, o);
	if (!is_memory_op(o) || !type_is_tensor(operand(o, 0)->type))
		return;
	struct access a = {.op = o};
	bool feeds = feeds_dot(all->p, o, false);
	if (!memory_order(all->p, o, a.order) && o->code == IR_LOAD && !feeds)
		return; /* scattered: any layout will do */
	int most = elements_per_thread(all->p, operand(o, 0)->type), copied = copied_ahead(all->p, o, a.order), unit;
	bool few = type_numel(operand(o, 0)->type) < 32 * all->p->s->num_warps && all->p->s->k->cuda.cluster == 1 &&
		   !copied;
	if (few && (o->code == IR_STORE || (o->code == IR_LOAD && !feeds)))
		return; /* a few accesses more cost less than a way through other threads */
	a.vec = axis_vector_width(all->p->s->axis, operand(o, 0), mask_of(o), a.order[0]);
	a.vec = copied ? copied : MIN(a.vec, most);
	if (copied)
		map_put(&all->p->copied, o, o);
	/* between memory and a dot, elements are packed anyway; others would have to be stored one by one */
	if (feeds)
		a.run = axis_run_length(all->p->s->axis, operand(o, 0), NULL, a.order[0], &unit);
	a.run = a.run <= most ? a.run : 0;
	vec_push(&all->p->scratch, &all->at, a);
}

static bool same_group(const struct access *a, const struct access *b)
{
	const struct type *s = operand(a->op, 0)->type, *t = operand(b->op, 0)->type;
	return s->rank == t->rank && !memcmp(s->shape, t->shape, sizeof s->shape) &&
	       !memcmp(a->order, b->order, sizeof a->order);
}

/* The layout of a scan of such a tile, if it suits the access as well as its own. */
static const struct layout *layout_of_scan(const struct accesses *all, const struct access *a, int vec)
{
	const struct type *t = operand(a->op, 0)->type;
	for (u32 i = 0; i < all->scans.len; i++) {
		const struct type *s = operand(all->scans.at[i], 0)->type;
		const struct layout *l = scan_layout(all->p, all->scans.at[i]);
		if (s->rank != 2 || t->rank != 2 || memcmp(s->shape, t->shape, sizeof s->shape) || a->order[0] != 1 ||
		    l->bits[LL_REG] < __builtin_ctz((u32)vec))
			continue;
		bool suits = true;
		for (int k = 0; 1 << k < vec; k++)
			suits &= l->basis[LL_REG][k] == 1u << (layout_dim_shift(l, 1) + k);
		if (suits)
			return l;
	}
	return NULL;
}

/* Accesses of one shape and order share the widest vector among them, so that values pass between them unmoved. */
static void place_accesses(struct placer *p)
{
	struct accesses all = {.p = p};
	walk(p->s->k->body, note_access, &all);
	for (u32 i = 0; i < all.at.len; i++) {
		int vec = MAX(all.at.at[i].run, 1);
		for (u32 k = 0; k < all.at.len; k++)
			if (same_group(&all.at.at[i], &all.at.at[k]))
				vec = MAX(vec, all.at.at[k].vec);
		const struct op *o = all.at.at[i].op;
		const struct layout *l = layout_of_scan(&all, &all.at.at[i], vec);
		if (!l)
			l = blocked(p, operand(o, 0)->type, all.at.at[i].order, vec);
		map_put(&p->memory, o, (void *)l);
		if (p->s->k->cuda.cluster > 1)
			p->common = l;
	}
}

/* --- dots ---------------------------------------------------------------------------------------------------- */

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
static const struct layout *turned_load(struct placer *p, const struct op *load)
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
	 * write_turned */
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
	const struct layout *turned[2];
	bool good[2], in_place[2], exchanged = few_rows(dot);
	for (u32 i = 0; i < 2; i++) {
		const struct op *load = load_of(operand(dot, i));
		good[i] = w->any_major || loaded_along(p, operand(dot, i), 1 - (int)i);
		in_place[i] = !good[i] && !(i == 0 ? chained : exchanged) && is_made_for(p, dot, i);
		bool may_turn = !good[i] && !in_place[i] && load && (dtype_bytes(w->a) == 1 || i == 0);
		turned[i] = may_turn ? turned_load(p, load) : NULL;
	}
	bool fetched_b = !good[1] && !chained && wgmma_split(p->s->num_warps, t, 1, &other),
	     fetched_a = !fetched_b && !good[0] && !exchanged && !(chained && turned[0]);
	exchanged |= fetched_b;
	plan->fetched = fetched_a || fetched_b;
	plan->bytes = plan->fetched ? dtype_bytes(w->a) : 0;
	if (plan->fetched) {
		in_place[fetched_b] = false;
		turned[fetched_b] = NULL;
		good[fetched_b] = true;
	}
	for (u32 i = 0; i < 2; i++)
		good[i] |= in_place[i] || turned[i];
	plan->turned = in_place[0] || in_place[1];
	const char *why = NULL;
	if (!good[0])
		why = "one of the operands contiguous along k";
	else if (!good[1] && chained)
		why = "both operands contiguous along k where another dot takes part";
	else if (!good[1] || !wgmma_split(p->s->num_warps, t, exchanged, &plan->split))
		why = "both operands contiguous along k where the result has fewer than 64 columns";
	for (u32 i = 0; i < 2 && !why; i++)
		if (turned[i])
			map_put(&p->memory, load_of(operand(dot, i)), (void *)turned[i]);
	if (!why && (turned[0] || turned[1] || plan->turned) && p->s->remarks)
		diag(p->s->diags, R_DOT_TURNED, dot->loc, dtype_name(w->a),
		     plan->turned ? "" : "registers on its way to ");
	if (why && p->s->remarks && wgmma_split(p->s->num_warps, t, 0, &other))
		diag(p->s->diags, R_DOT_NOT_ALONG_K, dot->loc, dtype_name(w->a), why);
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
		set_home(p, c.values.at[k], c.layouts.at[k]);
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

static void place_dots(struct placer *p)
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

/* --- homes --------------------------------------------------------------------------------------------------- */

const struct layout *home_of(const struct placer *p, const struct value *v)
{
	return map_get(&p->home, v);
}

bool is_strong(const struct placer *p, const struct layout *l)
{
	return map_get(&p->strong, l) != NULL;
}

/* A layout made from another keeps its strength. */
static const struct layout *derived(struct placer *p, const struct layout *from, const struct layout *to)
{
	if (is_strong(p, from) && !is_strong(p, to))
		map_put(&p->strong, to, p);
	return to;
}

void set_home(struct placer *p, const struct value *v, const struct layout *l)
{
	const struct layout *old = home_of(p, v);
	if (!l || !type_is_tensor(v->type) || old == l || (old && (is_strong(p, old) || !is_strong(p, l))))
		return;
	map_put(&p->home, v, (void *)l);
	p->changed = true;
}

static void set_homes(struct placer *p, const struct op *o, const struct layout *l)
{
	for (u32 i = 0; i < o->nresults; i++)
		set_home(p, &o->results[i], l);
}

enum { FREE = 1, NOT_FREE = 2 };

/* What is known of v; 0: nothing yet. */
static uintptr_t known_free(const struct placer *p, const struct value *v)
{
	if (!type_is_tensor(v->type) || !v->def)
		return type_is_tensor(v->type) ? NOT_FREE : FREE;
	return (uintptr_t)map_get(&p->free, v);
}

static bool find_unknown_free(void *arg, struct demand d, struct demand *first)
{
	const struct op *o = d.v->def;
	for (u32 i = 0; i < o->noperands; i++)
		if (!known_free(arg, operand(o, i))) {
			*first = (struct demand){operand(o, i), 0};
			return true;
		}
	return false;
}

static void note_free(void *arg, struct demand d)
{
	struct placer *p = arg;
	const struct op *o = d.v->def;
	bool yes = o->code == IR_CONSTANT || o->code == IR_MAKE_RANGE || o->code == IR_SPLAT || op_has(o, ELEM) ||
		   op_is_shape(o);
	for (u32 i = 0; yes && i < o->noperands; i++)
		yes = known_free(p, operand(o, i)) == FREE;
	map_put(&p->free, d.v, (void *)(uintptr_t)(yes ? FREE : NOT_FREE));
}

bool is_free(struct placer *p, const struct value *v)
{
	if (!known_free(p, v))
		meet_demand((struct demand){(struct value *)v, 0}, find_unknown_free, note_free, p);
	return known_free(p, v) == FREE;
}

const struct layout *operand_layout(struct placer *p, const struct op *o, const struct layout *l)
{
	const struct type *t = operand(o, 0)->type;
	int inverse[MAX_RANK];
	switch (o->code) {
	case IR_EXPAND_DIMS: return derived(p, l, layout_drop_dim(p->pool, l, (int)o->attr[ATTR_AXIS]));
	case IR_BROADCAST: return derived(p, l, layout_unbroadcast(p->pool, l, t->shape));
	case IR_RESHAPE: return derived(p, l, layout_reshape(p->pool, l, t->rank, t->shape));
	case IR_TRANS:
		for (int i = 0; i < t->rank; i++)
			inverse[perm_get(o->attr[ATTR_ORDER], i)] = i;
		return derived(p, l, layout_trans(p->pool, l, inverse));
	default: tl_unreachable("not a shape operation");
	}
}

static const struct layout *forward_layout(struct placer *p, const struct op *o, const struct layout *l)
{
	const struct type *t = result(o)->type;
	switch (o->code) {
	case IR_EXPAND_DIMS: return derived(p, l, layout_add_dim(p->pool, l, (int)o->attr[ATTR_AXIS]));
	case IR_RESHAPE: return derived(p, l, layout_reshape(p->pool, l, t->rank, t->shape));
	case IR_TRANS: return derived(p, l, transposed(p->pool, o, l));
	default: return NULL; /* a broadcast says nothing of the new elements */
	}
}

/* Both halves of a pair in one thread: the last dimension is a register bit. */
static const struct layout *split_layout(struct placer *p, const struct op *o)
{
	const struct type *t = operand(o, 0)->type;
	const struct layout *l = home_of(p, operand(o, 0));
	int order[MAX_RANK];
	if (l && layout_bits_in(l, LL_REG, 1))
		return l;
	order_rows(t, order);
	return blocked(p, t, order, MAX(2, MIN(elements_per_thread(p, t), 4)));
}

const struct layout *input_layout(struct placer *p, const struct op *o)
{
	const struct layout *l = NULL;
	if (o->code != IR_REDUCE)
		return o->code == IR_SCAN ? scan_layout(p, o) : split_layout(p, o);
	for (u32 i = 0; i < o->noperands && !l; i++)
		l = home_of(p, operand(o, i));
	return l;
}

const struct layout *output_layout(struct placer *p, const struct op *o, const struct layout *in)
{
	int axis = o->code == IR_REDUCE ? (int)o->attr[ATTR_AXIS] : operand(o, 0)->type->rank - 1;
	return o->code == IR_SCAN ? in : derived(p, in, layout_slice(p->pool, in, axis));
}

static const struct layout *join_layout(struct placer *p, const struct op *o, const struct layout *l)
{
	const struct type *t = result(o)->type;
	struct layout wide = *layout_add_dim(p->pool, l, t->rank - 1);
	wide.log2_size[t->rank - 1] = 1;
	for (int dim = 0; dim < LL_DIMS; dim++)
		for (int i = 0; i < wide.bits[dim]; i++)
			wide.basis[dim][i] <<= 1;
	for (int i = wide.bits[LL_REG]; i > 0; i--)
		wide.basis[LL_REG][i] = wide.basis[LL_REG][i - 1];
	wide.basis[LL_REG][0] = 1;
	wide.bits[LL_REG]++;
	return derived(p, l, layout_intern(p->pool, &wide));
}

static void infer_block(struct placer *p, struct block *b);

/* The strongest layout of o's operands. */
static const struct layout *strongest(struct placer *p, const struct op *o)
{
	const struct layout *best = NULL;
	for (u32 i = 0; i < o->noperands; i++) {
		const struct layout *l = type_is_tensor(operand(o, i)->type) ? home_of(p, operand(o, i)) : NULL;
		if (l && (!best || (is_strong(p, l) && !is_strong(p, best))))
			best = l;
	}
	return best;
}

/* An elementwise operation, assembly too, lives with its strongest operand, and loads that do not care move in with
 * it. */
static void infer_elementwise(struct placer *p, struct op *o)
{
	const struct layout *best = strongest(p, o);
	if (!best && op_is_asm(o))
		best = home_of(p, &o->results[0]);
	set_homes(p, o, best);
	for (u32 i = 0; i < o->noperands; i++)
		if (def_if(operand(o, i), IR_LOAD) && !map_get(&p->memory, operand(o, i)->def))
			set_home(p, operand(o, i), best);
}

/* What the operands of o pass on gets their homes. */
static void infer_passed(struct placer *p, const struct op *o)
{
	for (u32 i = 0; i < o->noperands; i++) {
		struct value *to = value_passed_to(o, i);
		if (to && (op_has(o, END) || !is_free(p, operand(o, i))))
			set_home(p, to, home_of(p, operand(o, i)));
	}
}

static void infer_control(struct placer *p, struct op *o)
{
	infer_passed(p, o);
	for (u32 k = 0; k < o->nblocks; k++) {
		infer_block(p, o->blocks[k]);
		infer_passed(p, o->blocks[k]->last);
	}
	for (u32 i = 0; i < o->nresults; i++)
		set_home(p, &o->results[i], home_of(p, result_passed_by(o, i)));
}

static void infer_op(struct placer *p, struct op *o)
{
	const struct layout *l;
	if (op_is_control(o)) {
		infer_control(p, o);
		return;
	}
	if (!o->nresults || !o->noperands || !type_is_tensor(operand(o, 0)->type))
		if (!(o->nresults && type_is_tensor(o->results[0].type) && (op_has(o, ELEM) || op_is_asm(o))))
			return;
	switch (o->code) {
	case IR_LOAD:
	case IR_ATOMIC_RMW:
	case IR_ATOMIC_CAS: set_home(p, result(o), map_get(&p->memory, o)); return;
	case IR_DOT: set_home(p, result(o), ((struct dot_plan *)map_get(&p->dots, o))->acc); return;
	case IR_REDUCE:
	case IR_SCAN:
	case IR_SPLIT:
		l = input_layout(p, o);
		set_homes(p, o, l ? output_layout(p, o, l) : NULL);
		return;
	case IR_MAP: set_homes(p, o, strongest(p, o)); return;
	case IR_GATHER: set_home(p, result(o), home_of(p, operand(o, 1))); return;
	case IR_JOIN:
		l = home_of(p, operand(o, 0)) ? home_of(p, operand(o, 0)) : home_of(p, operand(o, 1));
		if (l)
			set_home(p, result(o), join_layout(p, o, l));
		return;
	default: break;
	}
	if (is_free(p, &o->results[0]))
		return;
	if (op_is_shape(o)) {
		l = home_of(p, operand(o, 0));
		set_home(p, result(o), l ? forward_layout(p, o, l) : NULL);
	} else if (op_has(o, ELEM) || op_is_asm(o)) {
		infer_elementwise(p, o);
	}
}

static void infer_block(struct placer *p, struct block *b)
{
	for (struct op *o = b->first; o; o = o->next)
		infer_op(p, o);
}

static void infer(struct placer *p)
{
	do { /* a value gets a home, and perhaps a strong one in its place: there is an end */
		p->changed = false;
		infer_block(p, p->s->k->body);
	} while (p->changed);
}

void pass_layouts(struct pass_state *s)
{
	struct placer p = {.s = s, .ctx = s->ctx, .pool = &s->ctx->layouts};
	struct map *maps[] = {&p.home, &p.memory, &p.dots, &p.free, &p.strong, &p.made, &p.copied, &p.of_load};
	for (u32 i = 0; i < ARRAY_LEN(maps); i++)
		maps[i]->arena = &p.scratch;
	walk(s->k->body, note_operands, &p);
	place_accesses(&p);
	place_dots(&p);
	place_results(&p);
	do
		infer(&p);
	while (settle_block(&p, s->k->body));
	materialize(&p);
	remove_dead_code(s->k);
	arena_free(&p.operands.scratch);
	arena_free(&p.shaped_operands.scratch);
	arena_free(&p.scratch);
}
