/* What a random kernel computes: each statement over whole tiles, one element at a time. */
#include "moves.h"

struct machine {
	struct program *p;
	struct elements tile[NODES];
	int64_t iteration[NODES]; /* of loops */
	int pid;
};

bool is_statement(enum op op)
{
	return op >= ASSIGN;
}

/* --- tiles --------------------------------------------------------------------------------------------------- */

static void coordinates(const struct node *v, int k, int *c)
{
	for (int d = v->rank - 1; d >= 0; d--) {
		c[d] = k % v->shape[d];
		k /= v->shape[d];
	}
}

/* The element of `a` that stands at coordinates c of a tile of this rank. */
static int element(const struct node *a, int rank, const int *c)
{
	int k = 0;
	for (int d = 0; d < a->rank; d++)
		k = k * a->shape[d] + (a->shape[d] == 1 ? 0 : c[rank - a->rank + d]);
	return k;
}

static void copy(struct elements *to, int k, const struct elements *from, int j)
{
	to->i[k] = from->i[j];
	to->f[k] = from->f[j];
	to->error[k] = from->error[j];
}

static void convert_element(const struct node *v, struct elements *r, const struct node *a, const struct elements *x,
			    int k)
{
	bool from = is_float(a->dtype), to = is_float(v->dtype);
	if (from && to) {
		r->f[k] = x->f[k];
		r->error[k] = x->error[k] +
			      (v->inexact ? unit_roundoff(v->dtype) * fabs(x->f[k]) * 1.01 + ulp(v->dtype, 0) : 0);
	} else if (to) {
		r->f[k] = (double)(a->dtype == TL_I1 ? x->i[k] : x->i[k] & 7);
	} else if (from) {
		r->i[k] = (int64_t)(is_signed(v->dtype) ? x->f[k] : fabs(x->f[k]));
	} else {
		r->i[k] = v->dtype == TL_I1 ? x->i[k] != 0 : wrap(v->dtype, x->i[k]);
	}
}

static void elementwise(struct machine *m, int at)
{
	const struct node *v = &m->p->node[at], *in[3];
	struct elements *r = &m->tile[at], *x[3];
	for (int i = 0; i < 3; i++) {
		in[i] = v->in[i] < 0 ? NULL : &m->p->node[v->in[i]];
		x[i] = v->in[i] < 0 ? NULL : &m->tile[v->in[i]];
	}
	tl_dtype t = v->op >= LT && v->op <= NE ? in[0]->dtype : v->dtype;
	for (int k = 0; k < v->size; k++) {
		int c[RANK], e[3] = {0};
		coordinates(v, k, c);
		for (int i = 0; i < 3; i++)
			e[i] = in[i] ? element(in[i], v->rank, c) : 0;
		if (v->op == CAST || v->op == BITCAST) {
			convert_element(v, r, in[0], x[0], k);
		} else if (v->op == WHERE) {
			copy(r, k, x[0]->i[e[0]] ? x[1] : x[2], x[0]->i[e[0]] ? e[1] : e[2]);
		} else if (is_float(t)) {
			double a = x[0]->f[e[0]], b = x[1] ? x[1]->f[e[1]] : v->attr[0], z = x[2] ? x[2]->f[e[2]] : 0;
			if (x[1] && (v->op == FDIV || v->op == REM))
				b = fabs(b) + 1;
			double y = float_op(v->op, a, b, z);
			r->f[k] = y;
			r->i[k] = y != 0; /* of a comparison */
			r->error[k] = v->inexact
					      ? float_error(v->op, t, a, b, y, x[0]->error[e[0]],
							    x[1] ? x[1]->error[e[1]] : 0, x[2] ? x[2]->error[e[2]] : 0)
					      : 0;
		} else {
			int64_t a = wrap(t, x[0]->i[e[0]]), b = x[1] ? wrap(t, x[1]->i[e[1]]) : v->attr[0];
			if (x[1] && (v->op == SHL || v->op == SHR))
				b &= bits_of(t) - 1;
			if (x[1] && (v->op == DIV || v->op == REM))
				b = v->attr[1] ? (b & 7) - 9 : (b & 7) + 1;
			r->i[k] = wrap(v->dtype, int_op(v->op, t, a, b));
		}
	}
}

static void shape_op(struct machine *m, int at)
{
	const struct node *v = &m->p->node[at], *a = &m->p->node[v->in[0]];
	const struct elements *x = &m->tile[v->in[0]], *y = v->op == JOIN ? &m->tile[v->in[1]] : NULL;
	for (int k = 0; k < v->size; k++) {
		int c[RANK], old[RANK];
		coordinates(v, k, c);
		switch (v->op) {
		case BROADCAST: copy(&m->tile[at], k, x, element(a, v->rank, c)); break;
		case PERMUTE:
			for (int d = 0; d < v->rank; d++)
				old[v->attr[d]] = c[d];
			copy(&m->tile[at], k, x, element(a, v->rank, old));
			break;
		case JOIN: copy(&m->tile[at], k, k % 2 ? y : x, k / 2); break;
		case SPLIT: copy(&m->tile[at], k, x, 2 * k + v->attr[0]); break;
		default: copy(&m->tile[at], k, x, k); /* the order stays */
		}
	}
}

/* Puts element j after what r holds at k, for reductions and scans. */
static void combine(const struct node *v, struct elements *r, int k, const struct node *a, const struct elements *x,
		    int j, bool first)
{
	bool floats = is_float(a->dtype);
	enum reduction kind = v->attr[0];
	if (first) {
		copy(r, k, x, j);
		r->i[k] = wrap(v->dtype, r->i[k]);
	} else if (kind == LARGE || kind == SMALL) {
		bool less = floats ? x->f[j] < r->f[k] : below(a->dtype, x->i[j], r->i[k]),
		     same = floats ? x->f[j] == r->f[k] : x->i[j] == r->i[k];
		double error = fmax(r->error[k], x->error[j]);
		if (kind == SMALL ? less : !less && !same)
			copy(r, k, x, j);
		r->error[k] = error;
	} else if (floats) {
		r->f[k] += x->f[j];
		r->error[k] += x->error[j];
	} else {
		uint64_t p = (uint64_t)r->i[k], q = (uint64_t)x->i[j];
		r->i[k] = wrap(v->dtype, (int64_t)(kind == SUM ? p + q : kind == XOR_SUM ? p ^ q : p * q));
	}
}

static void reduce(struct machine *m, int at)
{
	const struct node *v = &m->p->node[at], *a = &m->p->node[v->in[0]];
	struct elements *r = &m->tile[at], *x = &m->tile[v->in[0]];
	int axis = v->attr[1], length = axis < 0 ? a->size : a->shape[axis], inner = 1;
	for (int d = axis + 1; axis >= 0 && d < a->rank; d++)
		inner *= a->shape[d];
	for (int k = 0; k < v->size; k++) {
		double total = 0;
		int best = 0, base = axis < 0 ? 0 : k / inner * inner * length + k % inner;
		for (int n = 0; n < length; n++) {
			int j = base + n * inner, b = base + best * inner;
			total += fabs(x->f[j]);
			if (v->attr[0] == ARGMAX || v->attr[0] == ARGMIN) {
				bool less = is_float(a->dtype) ? x->f[j] < x->f[b] : below(a->dtype, x->i[j], x->i[b]);
				bool more = is_float(a->dtype) ? x->f[b] < x->f[j] : below(a->dtype, x->i[b], x->i[j]);
				best = (v->attr[0] == ARGMAX ? more : less) ? n : best;
				r->i[k] = best;
			} else {
				combine(v, r, k, a, x, j, n == 0);
			}
		}
		if (v->inexact && v->attr[0] == SUM)
			r->error[k] += 2 * total * unit_roundoff(v->dtype) * (length + 1);
	}
}

static void scan(struct machine *m, int at)
{
	const struct node *v = &m->p->node[at], *a = &m->p->node[v->in[0]];
	struct elements *r = &m->tile[at], *x = &m->tile[v->in[0]];
	int length = a->shape[v->attr[1]], inner = 1;
	for (int d = v->attr[1] + 1; d < a->rank; d++)
		inner *= a->shape[d];
	for (int k = 0; k < v->size; k++) {
		int n = k / inner % length, from = v->flag ? n : 0, to = v->flag ? length - 1 : n, base = k - n * inner;
		double total = 0;
		for (int i = from; i <= to; i++) {
			combine(v, r, k, a, x, base + i * inner, i == from);
			total += fabs(x->f[base + i * inner]);
		}
		if (v->inexact && v->attr[0] == SUM)
			r->error[k] += 2 * total * unit_roundoff(v->dtype) * (length + 1);
	}
}

/* Adds a·b to r. */
static void multiply(struct machine *m, int to, int left, int right, bool zero)
{
	const struct node *v = &m->p->node[to], *a = &m->p->node[left], *b = &m->p->node[right];
	struct elements *r = &m->tile[to], *x = &m->tile[left], *y = &m->tile[right];
	int K = a->shape[a->rank - 1], M = a->shape[a->rank - 2], N = b->shape[b->rank - 1];
	for (int k = 0; k < v->size; k++) {
		int batch = k / (M * N), row = k / N % M, column = k % N;
		double sum = zero ? 0 : r->f[k];
		uint64_t isum = zero ? 0 : (uint64_t)r->i[k];
		for (int i = 0; i < K; i++) {
			int p = (batch * M + row) * K + i, q = (batch * K + i) * N + column;
			sum += x->f[p] * y->f[q];
			isum += (uint64_t)x->i[p] * (uint64_t)y->i[q];
		}
		r->f[k] = sum;
		r->i[k] = wrap(is_float(v->dtype) ? TL_I32 : v->dtype, (int64_t)isum);
		r->error[k] = 0;
	}
}

/* --- memory -------------------------------------------------------------------------------------------------- */

static int64_t address_of(struct machine *m, const struct node *v, const int *c, int k)
{
	const struct place *at = &v->place;
	int64_t a = at->base.value + at->program.value * m->pid;
	if (at->loop >= 0)
		a += at->step.value * (at->walks ? m->iteration[at->loop] : m->tile[at->loop].i[0]);
	if (at->index >= 0)
		return a + (m->tile[at->index].i[k] & (at->range - 1)) * at->stride[0].value;
	for (int d = 0; d < v->rank; d++) {
		int n = v->shape[d], by = at->by[d];
		int twisted[] = {c[d], n - 1 - c[d], c[d] ^ by, c[d] * by % n};
		a += twisted[at->twist[d]] * at->stride[d].value;
	}
	return a;
}

static bool enabled(struct machine *m, const struct node *v, const int *c)
{
	const struct place *at = &v->place;
	for (int d = 0; d < v->rank; d++)
		if (at->masked[d] &&
		    c[d] + (at->mask_loop[d] < 0 ? 0 : at->scale[d] * m->tile[at->mask_loop[d]].i[0]) >=
			    at->bound[d].value)
			return false;
	if (at->some_programs && m->pid >= at->programs.value)
		return false;
	return at->condition < 0 || m->tile[at->condition].i[element(&m->p->node[at->condition], v->rank, c)];
}

static void access(struct machine *m, int at)
{
	const struct node *v = &m->p->node[at];
	struct memory *a = &m->p->memory[v->place.memory];
	struct elements *r = v->op == LOAD ? &m->tile[at] : &m->tile[v->in[0]];
	for (int k = 0; k < v->size; k++) {
		int c[RANK];
		coordinates(v, k, c);
		bool on = enabled(m, v, c);
		int64_t i = address_of(m, v, c, k);
		if (on && (i < 0 || (size_t)i >= a->len)) {
			fprintf(stderr, "test-random: element %lld of %zu\n", (long long)i, a->len);
			exit(2);
		}
		if (v->op == LOAD && !on && v->in[0] >= 0) {
			copy(r, k, &m->tile[v->in[0]], element(&m->p->node[v->in[0]], v->rank, c));
		} else if (v->op == LOAD) {
			r->i[k] = on ? a->i[i] : v->attr[0];
			r->f[k] = on ? a->f[i] : v->attr[0];
			r->error[k] = 0;
		} else if (on) {
			a->touched[i] = 1;
			a->error[i] = r->error[k];
			a->f[i] = v->op == STORE    ? r->f[k]
				  : v->attr[0] == 0 ? a->f[i] + r->f[k]
				  : v->attr[0] == 1 ? fmax(a->f[i], r->f[k])
						    : fmin(a->f[i], r->f[k]);
			a->i[i] = v->op == STORE       ? wrap(a->dtype, r->i[k])
				  : is_float(a->dtype) ? 0
						       : update(v->attr[0], a->dtype, a->i[i], r->i[k]);
		}
	}
}

/* --- statements ---------------------------------------------------------------------------------------------- */

static int closing(const struct program *p, int block, enum op op)
{
	for (int k = block + 1; k < p->n; k++)
		if (p->node[k].op == op && p->node[k].opens == block)
			return k;
	return -1;
}

static void assign(struct machine *m, const struct node *v)
{
	const struct node *var = &m->p->node[v->in[0]];
	struct elements *r = &m->tile[v->in[0]], *x = &m->tile[v->in[1]];
	if (v->op == ACCUMULATE && v->flag) {
		multiply(m, v->in[0], v->in[1], v->in[2], false);
		return;
	}
	for (int k = 0; k < var->size; k++) {
		int c[RANK], j;
		coordinates(var, k, c);
		j = element(&m->p->node[v->in[1]], var->rank, c);
		if (v->op == ASSIGN) {
			copy(r, k, x, j);
			r->f[k] = fmax(-v->bound, fmin(r->f[k], v->bound));
		} else {
			r->i[k] = wrap(var->dtype, (int64_t)((uint64_t)r->i[k] + (uint64_t)x->i[j]));
			r->f[k] += x->f[j];
			r->error[k] = var->inexact
					      ? float_error(ADD, var->dtype, 0, 0, r->f[k], r->error[k], x->error[j], 0)
					      : 0;
		}
	}
}

static bool taken(struct machine *m, const struct node *v)
{
	if (v->in[0] < 0)
		return compare(v->attr[0], v->from.value < v->to.value, v->from.value == v->to.value);
	const struct node *a = &m->p->node[v->in[0]];
	double x = int_value(a->dtype, m->tile[v->in[0]].i[0]), y = (double)v->to.value;
	return a->dtype == TL_I1 ? x != 0 : compare(v->attr[0], x < y, x == y);
}

static void run(struct machine *m, int from, int to);

static void leaf(struct machine *m, int at)
{
	const struct node *v = &m->p->node[at];
	struct elements *r = &m->tile[at];
	for (int k = 0; k < v->size; k++) {
		r->i[k] = v->op == RANGE    ? v->attr[1] + k
			  : v->op == PID    ? m->pid
			  : v->op == SCALAR ? v->from.value
					    : v->attr[0];
		r->f[k] = v->attr[0];
		r->error[k] = 0;
	}
}

static int step(struct machine *m, int k)
{
	const struct node *v = &m->p->node[k];
	switch (v->op) {
	case FOR: {
		int end = closing(m->p, k, END);
		for (int i = 0; i < v->trips; i++) {
			m->iteration[k] = i;
			m->tile[k].i[0] = v->from.value + i * v->step.value;
			run(m, k + 1, end);
		}
		return end;
	}
	case IF: {
		int end = closing(m->p, k, END), other = closing(m->p, k, ELSE);
		if (taken(m, v))
			run(m, k + 1, other < 0 ? end : other);
		else if (other >= 0)
			run(m, other + 1, end);
		return end;
	}
	case RANGE:
	case FULL:
	case SCALAR:
	case PID: leaf(m, k); break;
	case LOAD:
	case STORE:
	case ATOMIC: access(m, k); break;
	case EXPAND:
	case BROADCAST:
	case PERMUTE:
	case RESHAPE:
	case JOIN:
	case SPLIT:
	case VAR: shape_op(m, k); break;
	case REDUCE: reduce(m, k); break;
	case SCAN: scan(m, k); break;
	case ASSIGN:
	case ACCUMULATE: assign(m, v); break;
	case DOT:
		for (int i = 0; v->in[2] >= 0 && i < v->size; i++)
			copy(&m->tile[k], i, &m->tile[v->in[2]], i);
		multiply(m, k, v->in[0], v->in[1], v->in[2] < 0);
		break;
	default:
		if (is_move(v->op))
			move_evaluate(m->p, k, m->tile);
		else
			elementwise(m, k);
	}
	return k;
}

static void run(struct machine *m, int from, int to)
{
	for (int k = from; k < to; k++)
		if (!m->p->node[k].dead)
			k = step(m, k);
}

void evaluate(struct program *p)
{
	struct machine *m = calloc(1, sizeof *m);
	m->p = p;
	for (int k = 0; k < p->n; k++) {
		size_t n = (size_t)p->node[k].size;
		m->tile[k] = (struct elements){calloc(n, sizeof(int64_t)), calloc(n, sizeof(double)),
					       calloc(n, sizeof(double))};
	}
	for (m->pid = 0; m->pid < programs(p); m->pid++)
		run(m, 0, p->n);
	for (int k = 0; k < p->n; k++)
		free(m->tile[k].i), free(m->tile[k].f), free(m->tile[k].error);
	free(m);
}
