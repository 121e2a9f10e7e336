#include "moves.h"

/* Of GATHER … MAP: attr[0] is the axis, the number of bins, `descending`, or the size of a pack; of PAIR_REDUCE and
 * PAIR_SCAN attr[1] says how, attr[2] which of the two results. */
enum pairing { FARTHEST, ENDS, TOTALS, LINEAR };
enum { BITS = 63 /* of what is counted */ };

const char move_functions[] =
	"@triton.jit\ndef farthest(a, i, b, j):\n    left = (a > b) | ((a == b) & (i <= j))\n"
	"    return tl.where(left, a, b), tl.where(left, i, j)\n\n\n"
	"@triton.jit\ndef ends(a, b, c, d):\n    return tl.where(a < c, a, c), tl.where(b < d, d, b)\n\n\n"
	"@triton.jit\ndef totals(a, b, c, d):\n    return a + c, b ^ d\n\n\n"
	"@triton.jit\ndef linear(a, b, c, d):\n    return a * c, b * c + d\n\n\n"
	"@triton.jit\ndef steps(a, b):\n    r = b\n    if a > b:\n        for i in range(3):\n            r = r * 3 + "
	"(a >> i)\n"
	"    else:\n        while (r & 3) != 0:\n            r = r + 1\n        r = r - a\n    return r\n\n\n"
	"@triton.jit\ndef both(a, b, c, d):\n    return steps(a, c), steps(b, d)\n\n\n";

/* --- making -------------------------------------------------------------------------------------------------- */

static bool same_shape(const struct node *a, const struct node *b, int apart_from)
{
	bool same = a->rank == b->rank;
	for (int d = 0; same && d < a->rank; d++)
		same = d == apart_from || a->shape[d] == b->shape[d];
	return same;
}

/* One of these classes and of this shape, but for a dimension; or -1. */
static int companion(struct maker *m, int in, int classes, int apart_from)
{
	for (int tries = 0; tries < 10; tries++) {
		int k = pick(m, classes, 1, RANK);
		if (k >= 0 && same_shape(&m->p->node[in], &m->p->node[k], apart_from))
			return k;
	}
	return class_is(&m->p->node[in], classes) ? in : -1;
}

static int add_move(struct maker *m, enum op op, tl_dtype t, int a, int b, int rank, const int *shape)
{
	int k = add_node(m, op, t, rank, shape);
	if (k < 0)
		return -1;
	struct node *v = &m->p->node[k];
	const struct node *x = &m->p->node[a];
	v->in[0] = a;
	v->in[1] = b;
	bool two = b >= 0 && op != GATHER && op != HISTOGRAM;
	v->bound = two ? fmax(x->bound, m->p->node[b].bound) : x->bound;
	v->inexact = x->inexact || (two && m->p->node[b].inexact);
	return k;
}

static bool make_movement(struct maker *m, enum op op)
{
	bool sorts = op == SORT || op == TOPK;
	int in = pick(m, sorts ? INTS | EXACTS : NUMBERS, 1, op == CAT ? 1 : RANK), shape[RANK], other = -1, attr;
	if (in < 0)
		return false;
	const struct node *a = &m->p->node[in];
	int last = a->rank - 1;
	memcpy(shape, a->shape, sizeof shape);
	attr = random_below(a->rank);
	if (op == GATHER) {
		if ((other = companion(m, in, INTS, attr)) < 0)
			return false;
		memcpy(shape, m->p->node[other].shape, sizeof shape);
	} else if (op == CAT || op == INTERLEAVE) {
		other = companion(m, in, NUMBERS, -1);
		if (other < 0 || a->size * 2 > LARGEST || (other = convert(m, other, a->dtype)) < 0)
			return false;
		a = &m->p->node[in];
		shape[last] *= 2;
	} else if (sorts) {
		attr = random_below(2);
		if (a->shape[last] > 256)
			return false;
		if (op == TOPK)
			for (int n = random_below(4); n > 0 && shape[last] > 1; n--)
				shape[last] /= 2;
	}
	/* maxima have 32 bits at least, and there are none where all of several elements stay */
	bool maxima = sorts && (a->shape[last] == 1 || shape[last] < a->shape[last]);
	int k = add_move(m, op, maxima ? at_least_32(a->dtype) : a->dtype, in, other, a->rank, shape);
	if (k < 0)
		return false;
	m->p->node[k].attr[0] = attr;
	return reveal(m, k) >= 0;
}

static bool make_histogram(struct maker *m)
{
	int in = pick(m, INTS, 1, 1), bins = 2 << random_below(7);
	if (in < 0)
		return false;
	int mask = chance(60) ? companion(m, in, BOOLS, -1) : -1;
	int k = add_move(m, HISTOGRAM, TL_I32, in, mask, 1, &bins);
	return reveal(m, k) >= 0;
}

static bool make_pair(struct maker *m, bool scans)
{
	int a = pick(m, INTS | EXACTS, 1, RANK), b = a < 0 ? -1 : companion(m, a, INTS | EXACTS, -1), shape[RANK],
	    rank = 0;
	if (b < 0)
		return false;
	enum pairing how = random_below(scans ? 4 : 3);
	bool floats = is_float(m->p->node[a].dtype) || is_float(m->p->node[b].dtype);
	if (how == LINEAR && (b = convert(m, b, m->p->node[a].dtype)) < 0)
		return false;
	if (how >= TOTALS && floats)
		return false;
	const struct node *x = &m->p->node[a];
	int axis = random_below(x->rank), which = random_below(2);
	for (int d = 0; d < x->rank; d++)
		if (scans || d != axis)
			shape[rank++] = x->shape[d];
	int k = add_move(m, scans ? PAIR_SCAN : PAIR_REDUCE, m->p->node[which ? b : a].dtype, a, b, rank, shape);
	if (k < 0)
		return false;
	struct node *v = &m->p->node[k];
	v->bound = m->p->node[which ? b : a].bound;
	memcpy(v->attr, (int[]){axis, how, which}, sizeof v->attr);
	v->flag = scans && chance(40);
	return reveal(m, k) >= 0;
}

static bool make_map(struct maker *m)
{
	int a = pick(m, INTS, 1, RANK), b = a < 0 ? -1 : companion(m, a, INTS, -1);
	if (b < 0 || (a = convert(m, a, TL_I32)) < 0 || (b = convert(m, b, TL_I32)) < 0)
		return false;
	int k = add_move(m, MAP, TL_I32, a, b, m->p->node[a].rank, m->p->node[a].shape);
	if (k < 0)
		return false;
	m->p->node[k].attr[0] = m->p->node[a].size > 1 && chance(40) ? 2 : 1;
	return reveal(m, k) >= 0;
}

bool make_move(struct maker *m)
{
	enum op op = GATHER + random_below(MAP - GATHER + 1);
	return op == HISTOGRAM     ? make_histogram(m)
	       : op == PAIR_REDUCE ? make_pair(m, false)
	       : op == PAIR_SCAN   ? make_pair(m, true)
	       : op == MAP         ? make_map(m)
				   : make_movement(m, op);
}

/* --- text ---------------------------------------------------------------------------------------------------- */

void move_print(FILE *f, const struct program *p, int k)
{
	static const char *const how[] = {"farthest", "ends", "totals", "linear"};
	const struct node *v = &p->node[k], *x = &p->node[v->in[0]];
	int a = v->in[0], b = v->in[1];
	switch (v->op) {
	case GATHER:
		fprintf(f,
			k % 2 ? "tl.gather(v%d, v%d.to(tl.int32) & %d, %d)"
			      : "v%d.gather(v%d.to(tl.int32) & %d, axis=%d)",
			a, b, x->shape[v->attr[0]] - 1, v->attr[0]);
		break;
	case HISTOGRAM:
		fprintf(f, "tl.histogram(v%d.to(tl.int32) & %d, %d", a, BITS, v->shape[0]);
		if (b >= 0)
			fprintf(f, ", mask=v%d", b);
		fprintf(f, ")");
		break;
	case SORT: fprintf(f, v->attr[0] ? "tl.sort(v%d, descending=True)" : "tl.sort(v%d)", a); break;
	case TOPK:
		fprintf(f, v->attr[0] ? "tl.topk(v%d, %d)" : "tl.topk(v%d, %d, descending=False)", a,
			v->shape[v->rank - 1]);
		break;
	case FLIP: fprintf(f, "tl.flip(v%d, %d)", a, v->attr[0]); break;
	case CAT: fprintf(f, "tl.cat(v%d, v%d, can_reorder=False)", a, b); break;
	case INTERLEAVE: fprintf(f, "tl.interleave(v%d, v%d)", a, b); break;
	case MAP:
		if (v->attr[0] == 2)
			fprintf(f, "tl.map_elementwise(both, v%d, v%d, pack=2)[0]", a, b);
		else
			fprintf(f, "tl.map_elementwise(steps, v%d, v%d)", a, b);
		break;
	default:
		fprintf(f, "tl.%s((v%d, v%d), %d, %s", v->op == PAIR_SCAN ? "associative_scan" : "reduce", a, b,
			v->attr[0], how[v->attr[1]]);
		fprintf(f, v->flag ? ", reverse=True)[%d]" : ")[%d]", v->attr[2]);
	}
}

/* --- evaluation ---------------------------------------------------------------------------------------------- */

static void copy(struct elements *to, int k, const struct elements *from, int j)
{
	to->i[k] = from->i[j];
	to->f[k] = from->f[j];
	to->error[k] = from->error[j];
}

static int order(const struct node *v, const struct elements *x, int i, const struct elements *y, int j)
{
	if (is_float(v->dtype))
		return (x->f[i] > y->f[j]) - (x->f[i] < y->f[j]);
	return below(v->dtype, y->i[j], x->i[i]) - below(v->dtype, x->i[i], y->i[j]);
}

static void sort(const struct node *v, const struct node *a, struct elements *r, const struct elements *x)
{
	int n = a->shape[a->rank - 1], kept = v->shape[v->rank - 1], *at = calloc((size_t)n, sizeof *at);
	for (int row = 0; row < a->size / n; row++) {
		for (int i = 0; i < n; i++) {
			int k = i;
			for (; k > 0; k--) {
				int c = order(a, x, row * n + i, x, at[k - 1]);
				if (v->attr[0] ? c <= 0 : c >= 0)
					break;
				at[k] = at[k - 1];
			}
			at[k] = row * n + i;
		}
		for (int i = 0; i < kept; i++)
			copy(r, row * kept + i, x, at[i]);
	}
	free(at);
}

struct pair {
	struct elements of[2];
	int64_t i[2];
	double f[2], error[2];
};

/* Puts the element y of both tiles behind that of acc. */
static void combine(const struct node *v, const struct node *const *in, struct pair *acc, const struct pair *y)
{
	int c[2];
	for (int k = 0; k < 2; k++)
		c[k] = order(in[k], &acc->of[k], 0, &y->of[k], 0);
	uint64_t a = (uint64_t)acc->i[0], b = (uint64_t)acc->i[1], x = (uint64_t)y->i[0], z = (uint64_t)y->i[1];
	switch ((enum pairing)v->attr[1]) {
	case FARTHEST:
		if (c[0] < 0 || (c[0] == 0 && c[1] > 0))
			for (int k = 0; k < 2; k++)
				copy(&acc->of[k], 0, &y->of[k], 0);
		break;
	case ENDS:
		for (int k = 0; k < 2; k++)
			if (k ? c[k] < 0 : c[k] > 0)
				copy(&acc->of[k], 0, &y->of[k], 0);
		break;
	case TOTALS:
		acc->i[0] = wrap(in[0]->dtype, (int64_t)(a + x));
		acc->i[1] = wrap(in[1]->dtype, (int64_t)(b ^ z));
		break;
	case LINEAR:
		acc->i[0] = wrap(in[0]->dtype, (int64_t)(a * x));
		acc->i[1] = wrap(in[1]->dtype, (int64_t)(b * x + z));
	}
}

static void load_pair(struct pair *to, const struct elements *x, const struct elements *y, int j)
{
	for (int k = 0; k < 2; k++) {
		to->of[k] = (struct elements){&to->i[k], &to->f[k], &to->error[k]};
		copy(&to->of[k], 0, k ? y : x, j);
	}
}

static void pairs(const struct program *p, int at, struct elements *all)
{
	const struct node *v = &p->node[at], *in[2] = {&p->node[v->in[0]], &p->node[v->in[1]]};
	const struct elements *x = &all[v->in[0]], *y = &all[v->in[1]];
	int length = in[0]->shape[v->attr[0]], inner = 1;
	for (int d = v->attr[0] + 1; d < in[0]->rank; d++)
		inner *= in[0]->shape[d];
	for (int row = 0; row < in[0]->size / length; row++) {
		int base = row / inner * inner * length + row % inner;
		struct pair acc, next;
		for (int n = 0; n < length; n++) {
			int j = base + (v->flag ? length - 1 - n : n) * inner;
			load_pair(n ? &next : &acc, x, y, j);
			if (n)
				combine(v, in, &acc, &next);
			if (v->op == PAIR_SCAN)
				copy(&all[at], j, &acc.of[v->attr[2]], 0);
		}
		if (v->op == PAIR_REDUCE)
			copy(&all[at], row, &acc.of[v->attr[2]], 0);
	}
}

static int64_t steps(int64_t a, int64_t b)
{
	int64_t r = b;
	if (a > b) {
		for (int i = 0; i < 3; i++)
			r = wrap(TL_I32, r * 3 + (a >> i));
		return r;
	}
	while (r & 3)
		r = wrap(TL_I32, r + 1);
	return wrap(TL_I32, r - a);
}

/* Which element of the first operand, or of the second (from its size on), becomes element k. */
static int source(const struct node *v, const struct node *a, const struct elements *index, int k)
{
	int n = v->op == CAT || v->op == INTERLEAVE ? 0 : v->attr[0], inner = 1, last = v->shape[v->rank - 1];
	for (int d = n + 1; d < v->rank; d++)
		inner *= v->shape[d];
	int i = k / inner % v->shape[n], outer = k / inner / v->shape[n];
	switch (v->op) {
	case GATHER: i = (int)(index->i[k] & (a->shape[n] - 1)); break;
	case FLIP: i = v->shape[n] - 1 - i; break;
	case INTERLEAVE: return k / last * (last / 2) + k % last / 2 + (k % 2 ? a->size : 0);
	default: return k;
	}
	return (outer * a->shape[n] + i) * inner + k % inner;
}

void move_evaluate(const struct program *p, int at, struct elements *all)
{
	const struct node *v = &p->node[at], *a = &p->node[v->in[0]];
	struct elements *r = &all[at], *x = &all[v->in[0]], *y = v->in[1] < 0 ? NULL : &all[v->in[1]];
	switch (v->op) {
	case HISTOGRAM:
		memset(r->i, 0, (size_t)v->size * sizeof *r->i);
		for (int k = 0; k < a->size; k++)
			if ((x->i[k] & BITS) < v->size && (!y || y->i[k]))
				r->i[x->i[k] & BITS]++;
		break;
	case SORT:
	case TOPK: sort(v, a, r, x); break;
	case PAIR_REDUCE:
	case PAIR_SCAN: pairs(p, at, all); break;
	case MAP:
		for (int k = 0; k < v->size; k++)
			r->i[k] = steps(x->i[k], y->i[k]);
		break;
	default:
		for (int k = 0; k < v->size; k++) {
			int j = source(v, a, y, k);
			copy(r, k, j < a->size ? x : y, j < a->size ? j : j - a->size);
		}
	}
}
