/* Random kernels: where loads and stores go. */
#include "random.h"

enum { FARTHEST = 200000 };

static int new_memory(struct maker *m, tl_dtype t)
{
	struct program *p = m->p;
	if (p->nmemories == MEMORIES || p->nparams == PARAMS)
		return -1;
	struct memory *a = &p->memory[p->nmemories];
	*a = (struct memory){.dtype = t, .param = p->nparams++, .skew = chance(15) ? random_below(9) : 0};
	p->param[a->param] = (struct param){POINTER, p->nmemories};
	return p->nmemories++;
}

/* Fills in the place of a tile and returns how many elements it spans. `once`: every element has its own address, in
 * all programs and iterations. */
static size_t make_place(struct maker *m, struct place *at, int rank, const int *shape, bool once)
{
	int order[RANK];
	int64_t span = 1, base = 0;
	*at = (struct place){.index = -1, .loop = -1, .condition = -1};
	for (int d = 0; d < rank; d++) {
		int e = random_below(d + 1);
		order[d] = order[e];
		order[e] = d;
	}
	if (chance(55)) /* the usual order */
		for (int d = 0; d < rank; d++)
			order[d] = rank - 1 - d;
	if (chance(12))
		span = 1 + random_below(3);
	bool one_address = !once && chance(8);
	for (int d = 0; d < rank; d++) {
		int axis = order[d], n = shape[axis];
		int64_t stride = one_address || (!once && chance(6)) ? 0 : span;
		at->stride[axis] = number_node(m, stride);
		at->twist[axis] = chance(80) || n < 4 ? PLAIN : REVERSED + random_below(3);
		at->by[axis] = at->twist[axis] == SHUFFLED ? 2 * random_below(n / 2) + 1 : random_below(n);
		span += stride * (n - 1);
		if (chance(15))
			span += random_below(9);
		if (stride && span < stride * n)
			span = stride * n;
	}
	base = chance(20) ? random_below(20) : 0;
	at->base = number_node(m, base);
	at->program = number_node(m, once || chance(60) ? span : 0);
	int64_t all = at->program.value * (programs(m->p) - 1) + span;
	at->step = (struct number){0, -1};
	if (m->loop >= 0 && chance(85)) {
		const struct node *l = &m->p->node[m->loop];
		at->loop = m->loop;
		at->walks = chance(35);
		at->step = number_node(m, all * l->hi > FARTHEST ? 0
					  : once                 ? all
					  : chance(70)           ? span
								 : 1 + random_below(64));
		all += at->step.value * (at->walks ? l->trips : l->hi);
	}
	at->wide = chance(15);
	return (size_t)(all + base);
}

static void make_mask(struct maker *m, struct place *at, int rank, const int *shape)
{
	for (int d = 0; d < rank; d++) {
		at->masked[d] = chance(60);
		at->mask_loop[d] = m->loop >= 0 && chance(60) ? m->loop : -1;
		int64_t most = shape[d] + 2;
		if (at->mask_loop[d] >= 0) { /* as for the last tile of an axis that is walked along */
			const struct node *l = &m->p->node[m->loop];
			at->scale[d] = l->step.value == 1 ? shape[d] : 1;
			most += (int64_t)at->scale[d] * l->hi;
		}
		if (at->masked[d])
			at->bound[d] =
				number_node(m, chance(60) ? most - 2 - random_below(shape[d]) : random_int(0, most));
	}
	int c = chance(50) ? pick(m, BOOLS, 0, rank) : -1;
	if (c >= 0 && (!m->p->node[c].rank || m->p->node[c].rank == rank) && broadcasts(&m->p->node[c], rank, shape))
		at->condition = c;
	at->some_programs = chance(15);
	if (at->some_programs)
		at->programs = number_node(m, random_below(programs(m->p) + 1));
}

static bool masked(const struct place *at)
{
	return at->condition >= 0 || at->some_programs || at->masked[0] || at->masked[1] || at->masked[2];
}

/* An index tile of this shape instead of coordinates; the size of what it points into. */
static size_t make_gather(struct maker *m, struct place *at, int rank, const int *shape)
{
	int k = pick(m, INTS, rank, rank);
	if (k < 0 || memcmp(m->p->node[k].shape, shape, (size_t)rank * sizeof *shape))
		return 0;
	int range = 8 << random_below(bits_of(m->p->node[k].dtype) == 8 ? 4 : 7);
	*at = (struct place){
		.index = k, .range = range, .program = {0, -1}, .step = {0, -1}, .loop = -1, .condition = -1};
	at->base = number_node(m, random_below(20));
	at->stride[0] = number_node(m, 1 + random_below(2));
	return (size_t)(at->base.value + at->stride[0].value * range);
}

/* A tile for elements that are masked off, or -1. */
static int make_other(struct maker *m, tl_dtype t, int rank, const int *shape, double bound, bool inexact)
{
	int classes = !is_float(t) ? (t == TL_I1 ? BOOLS : INTS) : inexact ? FLOATS : EXACTS;
	int k = is_fp8(t) ? -1 : pick(m, classes, 0, rank);
	if (k < 0 || !broadcasts(&m->p->node[k], rank, shape) || (is_float(t) && m->p->node[k].bound > bound))
		return -1;
	return convert(m, k, t);
}

int make_load(struct maker *m, tl_dtype t, int rank, const int *shape, double bound, bool inexact)
{
	struct place at;
	size_t len = rank && chance(15) ? make_gather(m, &at, rank, shape) : 0;
	if (!len)
		len = make_place(m, &at, rank, shape, false);
	if (chance(40))
		make_mask(m, &at, rank, shape);
	int other = masked(&at) && chance(30) ? make_other(m, t, rank, shape, bound, inexact) : -1;
	int memory = new_memory(m, t), k = memory < 0 ? -1 : add_node(m, LOAD, t, rank, shape);
	if (k < 0)
		return -1;
	struct node *v = &m->p->node[k];
	v->in[0] = other;
	v->place = at;
	v->place.memory = memory;
	v->flag = masked(&at);
	v->attr[0] = random_below((int)bound + 1); /* other */
	if (t == TL_I1)
		v->attr[0] &= 1;
	m->p->memory[memory].len = len;
	m->p->memory[memory].bound = inexact ? 1 : bound;
	m->p->memory[memory].inexact = inexact;
	set_bound(m, k, bound, inexact);
	return reveal(m, k);
}

int make_store(struct maker *m, int in)
{
	struct place at;
	const struct node *a = &m->p->node[in];
	tl_dtype t =
		a->dtype != TL_I1 && !is_float(a->dtype) && chance(15) ? int_types[random_below(INT_TYPES)] : a->dtype;
	int memory = new_memory(m, t);
	if (memory < 0)
		return -1;
	m->p->memory[memory].len = make_place(m, &at, a->rank, a->shape, true);
	m->p->memory[memory].written = true;
	m->p->memory[memory].inexact = a->inexact;
	if (chance(40))
		make_mask(m, &at, a->rank, a->shape);
	int k = add_node(m, STORE, t, a->rank, a->shape);
	if (k < 0)
		return -1;
	struct node *v = &m->p->node[k];
	v->in[0] = in;
	v->place = at;
	v->place.memory = memory;
	v->flag = masked(&at);
	return k;
}

bool make_atomic(struct maker *m)
{
	static const tl_dtype types[] = {TL_I32, TL_I64, TL_U32, TL_U64, TL_F32, TL_F64, TL_F16};
	int in = pick(m, INTS | EXACTS, 0, RANK);
	tl_dtype t = types[random_below(COUNT(types))];
	if (m->p->moves && chance(20))
		t = TL_BF16;
	if (in < 0 || (in = convert(m, in, t)) < 0)
		return false;
	const struct node *a = &m->p->node[in];
	int kind = m->p->moves && is_float(t) ? random_below(3) : 0; /* of floats: a sum, a maximum, a minimum */
	double bound = 3 + a->bound * (kind ? 1 : a->size * programs(m->p) * m->runs);
	if (is_float(t) && bound > exact_limit(t))
		return false;
	struct place at;
	size_t len = a->rank && chance(60) ? make_gather(m, &at, a->rank, a->shape) : 0;
	if (!len)
		len = make_place(m, &at, a->rank, a->shape, false);
	if (chance(50))
		make_mask(m, &at, a->rank, a->shape);
	int memory = new_memory(m, t), k = memory < 0 ? -1 : add_node(m, ATOMIC, t, a->rank, a->shape);
	if (k < 0)
		return false;
	m->p->memory[memory] = (struct memory){.dtype = t,
					       .param = m->p->memory[memory].param,
					       .len = len,
					       .written = true,
					       .updated = true,
					       .bound = 3};
	struct node *v = &m->p->node[k];
	v->in[0] = in;
	v->attr[0] = is_float(t) ? kind : random_below(6);
	v->place = at;
	v->place.memory = memory;
	v->flag = masked(&at);
	return true;
}
