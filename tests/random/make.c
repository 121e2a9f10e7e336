/* Makes a random kernel, statement by statement; a maker that finds no fitting operands gives up, and another is
 * drawn. */
#include "random.h"

int add_node(struct maker *m, enum op op, tl_dtype t, int rank, const int *shape)
{
	struct program *p = m->p;
	if (p->n == NODES)
		return -1;
	struct node *v = &p->node[p->n];
	*v = (struct node){.op = op, .dtype = t, .rank = rank, .size = 1, .in = {-1, -1, -1}};
	for (int d = 0; d < rank; d++)
		v->size *= v->shape[d] = shape[d];
	return p->n++;
}

int reveal(struct maker *m, int node)
{
	if (node >= 0)
		m->visible[m->nvisible++] = node;
	return node;
}

struct number number_node(struct maker *m, int64_t value)
{
	struct number n = {value, -1};
	if (chance(50) || m->p->nparams >= PARAMS - MEMORIES)
		return n;
	n.param = m->p->nparams++;
	m->p->param[n.param] = (struct param){chance(70) ? INTEGER : CONSTANT, value};
	return n;
}

static int class_of(const struct node *v)
{
	return is_fp8(v->dtype)      ? 0
	       : v->dtype == TL_I1   ? BOOLS
	       : !is_float(v->dtype) ? INTS
	       : v->inexact          ? INEXACTS
				     : EXACTS;
}

bool class_is(const struct node *v, int classes)
{
	return class_of(v) & classes;
}

/* Recent ones rather than old ones. */
int pick(struct maker *m, int classes, int least_rank, int most_rank)
{
	for (int tries = 0; tries < 12 && m->nvisible; tries++) {
		int recent = m->nvisible < 6 || chance(40) ? m->nvisible : 6,
		    k = m->visible[m->nvisible - 1 - random_below(recent)];
		const struct node *v = &m->p->node[k];
		if ((class_of(v) & classes) && v->rank >= least_rank && v->rank <= most_rank)
			return k;
	}
	return -1;
}

bool broadcasts(const struct node *a, int rank, const int *shape)
{
	for (int d = 0; d < a->rank; d++)
		if (a->rank > rank || (a->shape[d] != 1 && a->shape[d] != shape[rank - a->rank + d]))
			return false;
	return true;
}

/* The shape of a and b together. */
static bool joint(const struct node *a, const struct node *b, int *rank, int *shape)
{
	int size = 1;
	*rank = a->rank > b->rank ? a->rank : b->rank;
	for (int d = 0; d < *rank; d++) {
		int x = d + a->rank - *rank, y = d + b->rank - *rank, s = x < 0 ? 1 : a->shape[x],
		    t = y < 0 ? 1 : b->shape[y];
		if (s != t && s != 1 && t != 1)
			return false;
		size *= shape[d] = s > t ? s : t;
	}
	return size <= LARGEST;
}

int pick_beside(struct maker *m, const struct node *a, int classes)
{
	int rank, shape[RANK];
	for (int tries = 0; tries < 8; tries++) {
		int b = pick(m, classes, 0, RANK);
		if (b >= 0 && joint(a, &m->p->node[b], &rank, shape))
			return b;
	}
	return -1;
}

static int random_shape(struct maker *m, int *shape)
{
	int rank = random_below(10) < 1 ? 0 : 1 + random_below(3), d[RANK], turn = random_below(3);
	for (int k = 0; k < RANK; k++)
		d[k] = m->dims[(k + turn) % RANK];
	shape[0] = d[0], shape[1] = d[1], shape[2] = d[2];
	if (rank == 1)
		shape[0] = chance(30) ? d[0] : chance(50) ? d[0] * d[1] : d[0] * d[1] * d[2];
	else if (rank == 2 && chance(30))
		shape[random_below(2)] *= d[2];
	if (rank > 1 && chance(15))
		shape[random_below(rank)] = 1;
	int size = 1;
	for (int k = 0; k < rank; k++)
		size *= shape[k];
	return size <= LARGEST ? rank : random_shape(m, shape);
}

static tl_dtype random_type(void)
{
	return chance(55)   ? int_types[random_below(INT_TYPES)]
	       : chance(45) ? TL_F32
			    : float_types[random_below(FLOAT_TYPES)];
}

bool set_bound(struct maker *m, int k, double bound, bool inexact)
{
	struct node *v = &m->p->node[k];
	v->bound = bound;
	v->inexact = inexact;
	return bound <= (inexact ? MOST_INEXACT : exact_limit(v->dtype));
}

/* A node like `in`, of another type. */
int like(struct maker *m, enum op op, tl_dtype t, int in)
{
	const struct node *a = &m->p->node[in];
	int k = add_node(m, op, t, a->rank, a->shape);
	if (k < 0)
		return -1;
	m->p->node[k].in[0] = in;
	set_bound(m, k, a->bound, a->inexact);
	return k;
}

int undo(struct maker *m, int k)
{
	m->p->n = k;
	return -1;
}

int convert(struct maker *m, int in, tl_dtype t)
{
	const struct node *a = &m->p->node[in];
	if (a->dtype == t)
		return in;
	int k = like(m, CAST, t, in);
	if (k < 0)
		return -1;
	bool from = is_float(a->dtype), to = is_float(t), exact = !a->inexact;
	if (from && to)
		return set_bound(m, k, a->bound, a->inexact) ? reveal(m, k) : undo(m, k);
	if (to) /* of an integer its low bits */
		return m->p->node[k].bound = a->dtype == TL_I1 ? 1 : 7, reveal(m, k);
	if (from && (!exact || t == TL_I1 || a->bound > int_value(t, most(t))))
		return undo(m, k);
	return reveal(m, k);
}

/* --- elementwise --------------------------------------------------------------------------------------------- */

static bool make_range(struct maker *m)
{
	int shape[RANK], rank = random_shape(m, shape);
	if (!rank)
		return false;
	int axis = random_below(rank);
	for (int d = 0; d < rank; d++)
		shape[d] = d == axis ? shape[d] : 1;
	int k = add_node(m, RANGE, TL_I32, rank, shape);
	m->p->node[k].attr[0] = axis;
	m->p->node[k].attr[1] = chance(70) ? 0 : random_below(40);
	return reveal(m, k) >= 0;
}

static bool make_full(struct maker *m)
{
	int shape[RANK], rank = random_shape(m, shape),
			 k = add_node(m, FULL, random_type(), rank ? rank : 1, rank ? shape : (int[]){1});
	m->p->node[k].attr[0] = chance(50) ? 0 : random_below(8);
	set_bound(m, k, 7, false);
	return reveal(m, k) >= 0;
}

static bool make_scalar(struct maker *m)
{
	int k = add_node(m, chance(30) ? PID : SCALAR, TL_I32, 0, NULL);
	m->p->node[k].from = number_node(m, 2 + random_below(30));
	return reveal(m, k) >= 0;
}

static bool make_input(struct maker *m)
{
	int shape[RANK], rank = random_shape(m, shape);
	tl_dtype t = chance(8) ? TL_I1 : random_type();
	return make_load(m, t, rank, shape, (int[]){1, 3, 15}[random_below(3)], is_float(t) && chance(30)) >= 0;
}

static bool make_unary(struct maker *m)
{
	int in = pick(m, ANYTHING, 0, RANK);
	if (in < 0)
		return false;
	struct node *a = &m->p->node[in];
	if (!is_float(a->dtype)) {
		if (a->dtype != TL_I1 && chance(20))
			return reveal(m, like(m, BITCAST,
					      is_signed(a->dtype) ? a->dtype - TL_I8 + TL_U8 : a->dtype - TL_U8 + TL_I8,
					      in)) >= 0;
		return reveal(m, like(m, a->dtype == TL_I1 ? NOT : NEG + random_below(3), a->dtype, in)) >= 0;
	}
	if (a->dtype != TL_F32 || chance(40))
		return reveal(m, like(m, chance(50) ? NEG : ABS, a->dtype, in)) >= 0;
	static const double bounds[] = {[EXP] = 7.5, [SQRT] = 23, [SIN] = 1, [SIGMOID] = 1, [LOG] = 7};
	if (a->bound > MOST_INEXACT)
		return false;
	int k = like(m, EXP + random_below(5), a->dtype, in);
	set_bound(m, k, bounds[m->p->node[k].op], true);
	return reveal(m, k) >= 0;
}

static tl_dtype promoted(tl_dtype a, tl_dtype b)
{
	if (is_signed(a) == is_signed(b))
		return bits_of(a) > bits_of(b) ? a : b;
	tl_dtype u = is_signed(a) ? b : a, s = is_signed(a) ? a : b;
	return bits_of(u) >= bits_of(s) ? u : s;
}

/* The bound of a result; negative: not an operation of floats. */
static double float_bound(enum op op, double a, double b)
{
	switch (op) {
	case ADD:
	case SUB: return a + b;
	case MUL: return a * b;
	case MIN:
	case MAX: return a > b ? a : b;
	case FDIV:
	case REM: return a;
	default: return -1;
	}
}

static bool make_binary(struct maker *m)
{
	int x = pick(m, ANYTHING, 0, RANK), rank, shape[RANK], k;
	if (x < 0)
		return false;
	struct node *a = &m->p->node[x];
	bool literal = a->dtype != TL_I1 && chance(25), floats = is_float(a->dtype);
	int y = literal ? x : pick_beside(m, a, floats ? NUMBERS : a->dtype == TL_I1 ? BOOLS : INTS);
	static const enum op on_bools[] = {AND, OR, XOR}, on_floats[] = {ADD, SUB, MUL, MIN, MAX, FDIV, REM};
	enum op op = floats              ? on_floats[random_below(COUNT(on_floats))]
		     : a->dtype == TL_I1 ? on_bools[random_below(3)]
					 : (enum op)(ADD + random_below(UMULHI - ADD + 1));
	if (y < 0)
		return false;
	bool mixed = !floats && op != DIV && op != REM && op != SHL && op != SHR && op != UMULHI && chance(30);
	if (!mixed && (y = convert(m, y, a->dtype)) < 0)
		return false;
	struct node *b = &m->p->node[y];
	bool inexact = a->inexact || b->inexact || op == FDIV;
	tl_dtype t = mixed ? promoted(a->dtype, b->dtype) : a->dtype;
	if ((op == UMULHI && (bits_of(t) < 32 || literal)) || (op == FDIV && (!floats || a->bound > MOST_INEXACT)) ||
	    (op == REM && floats && (inexact || bits_of(t) < 32)) || !joint(a, b, &rank, shape))
		return false;
	if ((k = add_node(m, op, t, rank, shape)) < 0)
		return false;
	struct node *v = &m->p->node[k];
	v->in[0] = x;
	v->in[1] = literal ? -1 : y;
	v->flag = literal;
	v->attr[0] = op == SHL || op == SHR                 ? random_below(bits_of(t))
		     : op == DIV || op == REM || op == FDIV ? 1 << random_below(5) | random_below(2)
							    : random_below(101);
	v->attr[1] = is_signed(t) && chance(40); /* a negative divisor */
	if (floats && !set_bound(m, k, float_bound(op, a->bound, literal ? v->attr[0] % 8 : b->bound), inexact))
		return undo(m, k) >= 0;
	if (floats && op != FDIV && op != REM)
		v->attr[0] %= 8;
	return reveal(m, k) >= 0;
}

static bool make_compare(struct maker *m)
{
	int x = pick(m, INTS | EXACTS, 0, RANK), rank, shape[RANK];
	int y = x < 0 ? -1 : pick_beside(m, &m->p->node[x], INTS | EXACTS);
	bool literal = chance(40);
	if (y < 0 || (!literal && (y = convert(m, y, m->p->node[x].dtype)) < 0))
		return false;
	const struct node *a = &m->p->node[x], *b = literal ? a : &m->p->node[y];
	int k = joint(a, b, &rank, shape) ? add_node(m, LT + random_below(6), TL_I1, rank, shape) : -1;
	if (k < 0)
		return false;
	struct node *v = &m->p->node[k];
	v->in[0] = x;
	v->in[1] = literal ? -1 : y;
	v->flag = literal;
	v->attr[0] = random_below(101);
	return reveal(m, k) >= 0;
}

/* where, fma and clamp. */
static bool make_ternary(struct maker *m)
{
	int x = pick(m, NUMBERS, 0, RANK), y = x < 0 ? -1 : pick_beside(m, &m->p->node[x], NUMBERS), rank, shape[RANK],
	    all, k;
	if (y < 0 || (y = convert(m, y, m->p->node[x].dtype)) < 0)
		return false;
	struct node *a = &m->p->node[x], *b = &m->p->node[y];
	struct node both = {0};
	if (!joint(a, b, &both.rank, both.shape))
		return false;
	bool floats = is_float(a->dtype);
	enum op op = floats && chance(40) ? (chance(50) ? FMA : CLAMP) : WHERE;
	int c = op == CLAMP ? x : op == FMA ? x : pick_beside(m, &both, BOOLS);
	if (c < 0 || !joint(&both, &m->p->node[c], &rank, shape))
		return false;
	all = op == CLAMP ? 0 : 1;
	if ((k = all ? add_node(m, op, a->dtype, rank, shape) : like(m, op, a->dtype, x)) < 0)
		return false;
	struct node *v = &m->p->node[k];
	memcpy(v->in, op == WHERE ? (int[]){c, x, y} : op == FMA ? (int[]){x, y, c} : (int[]){x, -1, -1}, sizeof v->in);
	double bound = op == WHERE ? fmax(a->bound, b->bound) : op == FMA ? a->bound * b->bound + a->bound : 3;
	if (floats && !set_bound(m, k, bound, a->inexact || (op != CLAMP && b->inexact)))
		return undo(m, k) >= 0;
	return reveal(m, k) >= 0;
}

/* Nothing but conversions and dots takes fp8. */
static bool make_cast(struct maker *m)
{
	bool fp8 = chance(15);
	int in = pick(m, fp8 ? EXACTS : ANYTHING, 0, RANK);
	if (in >= 0 && fp8) {
		bool small = m->p->moves && in >= 0 && m->p->node[in].bound <= 1 && chance(60);
		in = convert(m, in, small ? TL_F8E4B15 : chance(50) ? TL_F8E4M3 : TL_F8E5M2);
		return in >= 0 && convert(m, in, float_types[random_below(FLOAT_TYPES - 1)]) >= 0;
	}
	return in >= 0 && convert(m, in, chance(10) ? TL_I1 : random_type()) >= 0;
}

/* --- statements ---------------------------------------------------------------------------------------------- */

static const struct recipe {
	bool (*make)(struct maker *);
	int weight;
} recipes[] = {
	{make_range, 3},   {make_full, 2},    {make_scalar, 2},  {make_input, 5},  {make_unary, 5},
	{make_binary, 12}, {make_compare, 4}, {make_ternary, 4}, {make_cast, 4},   {make_shape, 9},
	{make_reduce, 5},  {make_scan, 2},    {make_dot, 6},     {make_output, 2}, {make_atomic, 1},
	{make_assign, 4},  {make_block, 3},   {make_move, 16},   {make_atomic, 4}, /* of the kind "moves" only */
};

void make_statement(struct maker *m)
{
	int total = 0;
	for (int i = 0; i < COUNT(recipes) - (m->p->moves ? 0 : 2); i++)
		total += recipes[i].weight;
	for (int tries = 0; tries < 20; tries++) {
		int at = random_below(total), i = 0;
		while ((at -= recipes[i].weight) >= 0)
			i++;
		if (recipes[i].make(m))
			return;
	}
}
