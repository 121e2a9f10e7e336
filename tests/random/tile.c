/* Random kernels: operations that move elements or combine them. */
#include "random.h"

/* --- shapes -------------------------------------------------------------------------------------------------- */

static void factor(int size, int rank, int *shape)
{
	for (int d = 0; d < rank; d++)
		shape[d] = 1;
	for (; size > 1; size /= 2)
		shape[random_below(rank)] *= 2;
}

bool make_shape(struct maker *m)
{
	enum op op = EXPAND + random_below(SPLIT - EXPAND + 1);
	int in = pick(m, ANYTHING,
		      op == EXPAND || op == JOIN ? 1
		      : op == PERMUTE            ? 2
						 : 1,
		      op == EXPAND || op == JOIN ? RANK - 1 : RANK);
	if (in < 0)
		return false;
	struct node *a = &m->p->node[in];
	int rank = a->rank, shape[RANK], attr[RANK] = {0}, other = -1;
	memcpy(shape, a->shape, sizeof shape);
	if (op == EXPAND) {
		attr[0] = random_below(++rank);
		for (int d = rank - 1; d > attr[0]; d--)
			shape[d] = shape[d - 1];
		shape[attr[0]] = 1;
	} else if (op == BROADCAST) {
		int d = random_below(rank);
		if (shape[d] != 1 || a->size * 8 > LARGEST)
			return false;
		shape[d] = 2 << random_below(3);
	} else if (op == PERMUTE) {
		for (int d = 0; d < rank; d++) {
			int e = random_below(d + 1);
			attr[d] = attr[e];
			attr[e] = d;
		}
		for (int d = 0; d < rank; d++)
			shape[d] = a->shape[attr[d]];
	} else if (op == RESHAPE) {
		factor(a->size, rank = 1 + random_below(RANK), shape);
	} else if (op == JOIN) {
		other = pick_beside(m, a, ANYTHING);
		if (a->size * 2 > LARGEST || other < 0 || m->p->node[other].rank != rank ||
		    m->p->node[other].size != a->size ||
		    memcmp(m->p->node[other].shape, shape, (size_t)rank * sizeof *shape) ||
		    (other = convert(m, other, a->dtype)) < 0)
			return false;
		shape[rank++] = 2;
	} else {
		attr[0] = random_below(2);
		if (shape[--rank] != 2)
			return false;
	}
	int k = add_node(m, op, a->dtype, rank, shape);
	if (k < 0)
		return false;
	struct node *v = &m->p->node[k];
	memcpy(v->attr, attr, sizeof attr);
	v->in[0] = in;
	v->in[1] = other;
	set_bound(m, k, fmax(a->bound, other < 0 ? 0 : m->p->node[other].bound),
		  a->inexact || (other >= 0 && m->p->node[other].inexact));
	return reveal(m, k) >= 0;
}

/* --- whole tiles --------------------------------------------------------------------------------------------- */

tl_dtype at_least_32(tl_dtype t)
{
	return bits_of(t) >= 32 ? t : is_float(t) ? TL_F32 : TL_I32;
}

static tl_dtype sum_type(tl_dtype t)
{
	return is_float(t) || bits_of(t) >= 32 ? t : is_signed(t) ? TL_I32 : TL_U32;
}

bool make_reduce(struct maker *m)
{
	int in = pick(m, NUMBERS, 1, RANK), shape[RANK], rank = 0;
	if (in < 0)
		return false;
	const struct node *a = &m->p->node[in];
	enum reduction kind = random_below(REDUCTIONS);
	bool floats = is_float(a->dtype), arg = kind == ARGMAX || kind == ARGMIN, keep = chance(30);
	if ((floats && kind > ARGMIN) || (arg && a->inexact))
		return false;
	int axis = !arg && kind != PRODUCT && chance(20) ? -1 : random_below(a->rank),
	    length = axis < 0 ? a->size : a->shape[axis];
	for (int d = 0; d < a->rank; d++)
		if (keep || (axis >= 0 && d != axis))
			shape[rank++] = axis < 0 || d == axis ? 1 : a->shape[d];
	tl_dtype t = kind == SUM                      ? sum_type(a->dtype)
		     : arg                            ? TL_I32
		     : kind == LARGE || kind == SMALL ? at_least_32(a->dtype)
						      : a->dtype;
	int k = add_node(m, REDUCE, t, rank, shape);
	if (k < 0)
		return false;
	struct node *v = &m->p->node[k];
	v->in[0] = in;
	v->attr[0] = kind;
	v->attr[1] = axis;
	v->flag = keep;
	if (is_float(t) && !set_bound(m, k, kind == SUM ? a->bound * length : a->bound, a->inexact))
		return undo(m, k) >= 0;
	return reveal(m, k) >= 0;
}

bool make_scan(struct maker *m)
{
	int in = pick(m, NUMBERS, 1, RANK);
	if (in < 0)
		return false;
	const struct node *a = &m->p->node[in];
	bool floats = is_float(a->dtype);
	enum reduction kind = chance(60) ? SUM : floats || chance(50) ? LARGE : PRODUCT;
	int k = like(m, SCAN, kind == LARGE ? a->dtype : a->dtype == TL_BF16 ? TL_F32 : sum_type(a->dtype), in);
	if (k < 0)
		return false;
	struct node *v = &m->p->node[k];
	v->attr[0] = kind;
	v->attr[1] = random_below(a->rank);
	v->flag = chance(30);
	if (floats && !set_bound(m, k, kind == SUM ? a->bound * a->shape[v->attr[1]] : a->bound, a->inexact))
		return undo(m, k) >= 0;
	return reveal(m, k) >= 0;
}

/* --- dots ---------------------------------------------------------------------------------------------------- */

/* A tile of this shape: one there is, converted, or a new one. */
static int operand(struct maker *m, tl_dtype t, int rank, const int *shape, double bound)
{
	for (int tries = 0; tries < 6; tries++) {
		int k = pick(m, INTS | EXACTS, rank, rank);
		if (k < 0 || memcmp(m->p->node[k].shape, shape, (size_t)rank * sizeof *shape))
			continue;
		if (is_float(t) && is_float(m->p->node[k].dtype) && m->p->node[k].bound > bound) {
			k = reveal(m, like(m, CLAMP, m->p->node[k].dtype, k));
			set_bound(m, k, 3, false);
		}
		if ((k = convert(m, k, t)) >= 0)
			return k;
	}
	return make_load(m, t, rank, shape, bound, false);
}

/* In a loop half of them add to a variable, as in a matrix product. */
bool make_dot(struct maker *m)
{
	static const tl_dtype types[] = {TL_F16, TL_F16, TL_BF16, TL_F32, TL_F32, TL_I8, TL_F64, TL_F8E5M2};
	tl_dtype t = types[random_below(COUNT(types))], r = t == TL_I8                  ? TL_I32
						   : t == TL_F64               ? TL_F64
						   : t == TL_F16 && chance(20) ? TL_F16
									       : TL_F32;
	int batch = chance(15) ? 2 << random_below(2) : 0, rank = batch ? 3 : 2, least = bits_of(t) == 8 ? 32 : 16;
	int M = m->dims[0], N = m->dims[1], K = m->dims[2], bound = r == TL_F16 || is_fp8(t) ? 3 : 15, acc = -1,
	    var = -1;
	if (M < 16 || N < 16 || K < least || (batch ? batch : 1) * M * N > LARGEST ||
	    (batch ? batch : 1) * K * (M > N ? M : N) > LARGEST)
		return false;
	int left[] = {batch, M, K}, right[] = {batch, K, N}, shape[] = {batch, M, N}, skip = 3 - rank;
	for (int i = 0; i < m->nvars && var < 0; i++) {
		const struct node *v = &m->p->node[m->vars[i]];
		if (v->flag && v->attr[0] >= m->runs && v->dtype == r && v->rank == rank && !v->inexact &&
		    !memcmp(v->shape, shape + skip, (size_t)rank * sizeof *shape))
			var = i;
	}
	int a = operand(m, t, rank, left + skip, bound), b = a < 0 ? -1 : operand(m, t, rank, right + skip, bound);
	if (b < 0)
		return false;
	double sum = m->p->node[a].bound * m->p->node[b].bound * K;
	if (var >= 0 && is_float(r) && sum > m->p->node[m->vars[var]].from.value)
		var = -1;
	if (var < 0 && chance(40)) {
		acc = pick(m, INTS | EXACTS, rank, rank);
		const struct node *c = acc < 0 ? NULL : &m->p->node[acc];
		if (!c || c->dtype != r || memcmp(c->shape, shape + skip, (size_t)rank * sizeof *shape))
			acc = -1;
		else
			sum += c->bound;
	}
	int k = add_node(m, DOT, r, rank, shape + skip);
	if (k < 0)
		return false;
	struct node *v = &m->p->node[k];
	v->in[0] = a;
	v->in[1] = b;
	v->in[2] = acc;
	v->attr[0] = t == TL_F32 ? random_below(4) : 0; /* input_precision */
	if (is_float(r) && !set_bound(m, k, sum, false))
		return undo(m, k) >= 0;
	if (var >= 0) { /* printed as the variable's own dot */
		v->op = ACCUMULATE;
		v->in[2] = b;
		v->in[1] = a;
		v->in[0] = m->vars[var];
		v->flag = true;
		m->vars[var] = m->vars[--m->nvars];
		return true;
	}
	return reveal(m, k) >= 0;
}
