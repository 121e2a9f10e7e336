/* Random kernels: variables, loops and conditions; the program around them. */
#include "random.h"

enum { MOST_TRIPS = 5 };

/* --- variables ----------------------------------------------------------------------------------------------- */

static int make_var(struct maker *m, int in, bool sums, int runs)
{
	const struct node *a = &m->p->node[in];
	int k = like(m, VAR, a->dtype, in);
	if (k < 0)
		return -1;
	struct node *v = &m->p->node[k];
	v->flag = sums; /* only ACCUMULATE */
	v->attr[0] = runs;
	if (is_float(a->dtype)) {
		double limit = a->inexact ? MOST_INEXACT : exact_limit(a->dtype) / 8;
		double bound = sums ? fmax(a->bound, limit / 2) + limit / 2 : fmax(a->bound, 15);
		v->from.value = (int64_t)(limit / 2 / runs); /* what each time may add */
		if (!set_bound(m, k, bound, a->inexact))
			return undo(m, k);
	}
	m->vars[m->nvars++] = k;
	return reveal(m, k);
}

bool make_assign(struct maker *m)
{
	if (!m->nvars)
		return false;
	int at = random_below(m->nvars), var = m->vars[at];
	const struct node *v = &m->p->node[var];
	bool floats = is_float(v->dtype);
	if (v->flag && v->attr[0] < m->runs)
		return false;
	for (int tries = 0; tries < 10; tries++) {
		int in = pick(m, floats && v->inexact ? FLOATS : floats ? EXACTS : INTS, 0, RANK);
		if (in < 0 || in == var || !broadcasts(&m->p->node[in], v->rank, v->shape) ||
		    (!v->flag && m->p->node[in].size != v->size) || (!v->flag && m->p->node[in].rank != v->rank) ||
		    (in = convert(m, in, v->dtype)) < 0)
			continue;
		if (floats && v->flag && m->p->node[in].bound > (double)v->from.value)
			continue;
		int k = add_node(m, v->flag ? ACCUMULATE : ASSIGN, v->dtype, v->rank, v->shape);
		if (k < 0)
			return false;
		m->p->node[k].in[0] = var;
		m->p->node[k].in[1] = in;
		m->p->node[k].bound = v->bound;
		if (v->flag) /* once, or it would add more than was allowed for */
			m->vars[at] = m->vars[--m->nvars];
		return true;
	}
	return false;
}

/* --- blocks -------------------------------------------------------------------------------------------------- */

static void body(struct maker *m, int statements, int assignments)
{
	int visible = m->nvisible;
	m->depth++;
	if (m->loop >= 0 && chance(50))
		make_dot(m);
	for (int i = 0; i < statements && m->p->n < NODES - 80; i++)
		make_statement(m);
	while (assignments-- > 0)
		make_assign(m);
	m->depth--;
	m->nvisible = visible;
}

/* After a block: of the variables before it those that may still be assigned to. */
static void keep_variables(struct maker *m, const int *before, int n)
{
	int kept = 0, vars[NODES];
	for (int i = 0; i < n; i++)
		for (int j = 0; j < m->nvars; j++)
			if (before[i] == m->vars[j]) {
				vars[kept++] = before[i];
				break;
			}
	memcpy(m->vars, vars, (size_t)kept * sizeof *vars);
	m->nvars = kept;
}

static void loop_range(struct maker *m, struct node *v)
{
	enum loop form = v->attr[0];
	int trips = v->trips = random_below(MOST_TRIPS + 1),
	    start = form == RANGE_TO || form == STATIC_RANGE || form == WHILE ? 0 : random_below(5);
	int step = form == RANGE_STEP || form == TL_RANGE ? 1 << random_below(5) : 1,
	    ragged = step > 1 ? random_below(step) : 0;
	if (form == RANGE_DOWN) {
		v->from = number_node(m, start + trips);
		v->to = number_node(m, start);
		v->step = (struct number){-1, -1};
		v->lo = start + 1;
		v->hi = start + trips;
	} else {
		v->from = form == RANGE_TO || form == STATIC_RANGE || form == WHILE ? (struct number){0, -1}
										    : number_node(m, start);
		v->to = form == STATIC_RANGE ? (struct number){trips, -1}
					     : number_node(m, start + trips * step - (trips ? ragged : 0));
		v->step = step == 1 ? (struct number){1, -1} : number_node(m, step);
		v->lo = start;
		v->hi = start + (trips ? trips - 1 : 0) * step;
	}
	if (v->hi < v->lo)
		v->hi = v->lo;
	v->attr[1] = 1 + random_below(4); /* num_stages */
}

static bool make_loop(struct maker *m)
{
	int loop = m->loop, runs = m->runs, carried = 1 + random_below(3), nvars = m->nvars, vars[NODES];
	memcpy(vars, m->vars, sizeof vars);
	if (m->p->n > NODES - 120)
		return false;
	int k = add_node(m, FOR, TL_I32, 0, NULL); /* its place is kept until its variables are made */
	m->p->node[k].attr[0] = random_below(LOOPS);
	loop_range(m, &m->p->node[k]);
	struct node head = m->p->node[k];
	m->p->n = k;
	int trips = head.trips ? head.trips : 1, more = chance(40) ? MOST_TRIPS : 1; /* a loop inside may add to it */
	for (int i = 0; i < carried; i++) {
		int in = pick(m, NUMBERS, 0, RANK);
		if (i == 0 && m->dims[0] >= 16 && m->dims[1] >= 16 && m->dims[0] * m->dims[1] <= LARGEST &&
		    chance(70)) {
			in = add_node(m, FULL, chance(70) ? TL_F32 : TL_I32, 2, m->dims);
			make_var(m, in, true, m->runs * trips * more);
		} else if (in >= 0) {
			make_var(m, in, chance(50), m->runs * trips * more);
		}
	}
	int mine = m->nvisible;
	k = add_node(m, FOR, TL_I32, 0, NULL);
	head.used = true;
	m->p->node[k] = head;
	reveal(m, k);
	m->loop = k;
	m->runs *= trips;
	body(m, 3 + random_below(6), 4);
	m->loop = loop;
	m->runs = runs;
	int end = add_node(m, END, TL_I32, 0, NULL);
	m->p->node[end].opens = k;
	m->nvisible = mine;
	keep_variables(m, vars, nvars);
	return true;
}

/* If a scalar compares so with a number, run time or compile time. */
static bool make_if(struct maker *m)
{
	int in = chance(30) ? -1 : pick(m, INTS | BOOLS, 0, 0), nvars = m->nvars, vars[NODES];
	if (m->p->n > NODES - 120)
		return false;
	for (int i = 0; i < 2; i++) {
		int init = pick(m, NUMBERS, 0, RANK);
		if (init >= 0)
			make_var(m, init, false, m->runs);
	}
	int k = add_node(m, IF, TL_I1, 0, NULL);
	struct node *v = &m->p->node[k];
	v->in[0] = in;
	v->from = number_node(m, random_below(4));
	v->to = number_node(m, random_below(4));
	v->attr[0] = LT + random_below(6);
	memcpy(vars, m->vars, sizeof vars);
	body(m, 1 + random_below(4), 1);
	if (chance(60)) {
		m->p->node[add_node(m, ELSE, TL_I1, 0, NULL)].opens = k;
		body(m, 1 + random_below(4), 1);
	}
	m->p->node[add_node(m, END, TL_I1, 0, NULL)].opens = k;
	keep_variables(m, vars, nvars);
	return true;
}

bool make_block(struct maker *m)
{
	if (m->depth > 1)
		return false;
	return chance(60) ? make_loop(m) : make_if(m);
}

bool make_output(struct maker *m)
{
	int in = pick(m, ANYTHING, 0, RANK);
	return in >= 0 && make_store(m, in) >= 0;
}

/* --- the program --------------------------------------------------------------------------------------------- */

void make_program(struct program *p, bool moves)
{
	memset(p, 0, sizeof *p);
	p->moves = moves;
	struct maker m = {.p = p, .loop = -1, .runs = 1};
	bool dots = chance(35);
	for (int d = 0, left = 12; d < RANK; d++) {
		int e = dots ? 4 + random_below(3) : random_below(left < 6 ? left + 1 : 7);
		m.dims[d] = 1 << e;
		left -= dots ? 0 : e;
	}
	p->grid[0] = 1 + random_below(3);
	p->grid[1] = chance(25) ? 2 : 1;
	p->group = p->grid[1] > 1 && chance(40) ? 1 + random_below(3) : 0;
	p->warps = 1 << random_below(4);
	p->stages = 1 + random_below(4);
	for (int i = 2 + random_below(2); i > 0; i--) {
		int shape[] = {m.dims[0], m.dims[1] * (dots ? 1 : m.dims[2])};
		make_load(&m, chance(50) ? int_types[random_below(INT_TYPES)] : float_types[random_below(FLOAT_TYPES)],
			  2, shape, 15, chance(25));
	}
	for (int i = 6 + random_below(14); i > 0 && p->n < NODES - 80; i--)
		make_statement(&m);
	for (int i = 0; i < p->n; i++)
		for (int j = 0; j < 3; j++)
			if (p->node[i].in[j] >= 0)
				p->node[p->node[i].in[j]].used = true;
	for (int i = m.nvisible - 1, stored = 0; i >= 0 && stored < 8; i--)
		if (!p->node[m.visible[i]].used || p->node[m.visible[i]].op == VAR)
			stored += make_store(&m, m.visible[i]) >= 0;
}
