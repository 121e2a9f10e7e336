/* What a random tree computes, for one program after another. */
#include "tree.h"

static void compute(struct tree *t, int k, int64_t *r);

/* The operands of an operation in the type it works in. */
static void operand(struct tree *t, const struct expr *x, int i, tl_dtype type, int n, int64_t *r)
{
	if (x->literal && i == 1) {
		for (int k = 0; k < n; k++)
			r[k] = wrap(type, x->value);
		return;
	}
	const struct expr *y = &t->expr[x->in[i]];
	compute(t, x->in[i], r);
	for (int k = 1; k < n && !y->tile; k++)
		r[k] = r[0];
}

static bool is_below(tl_dtype t, int op, int64_t a, int64_t b)
{
	return compare(op, below(t, a, b), a == b);
}

static int64_t element_of(const struct tree *t, const struct expr *x, tl_dtype it, int64_t index)
{
	const int64_t *from = t->in[type_index(x->t)];
	if (x->value == 0 || x->value == 2)
		return from[index & (LEN - 1)];
	bool inside = is_signed(it) ? index >= 0 && index < LEN : (uint64_t)index < LEN;
	return inside ? from[index] : 7;
}

static int64_t combined(int kind, tl_dtype t, int64_t a, int64_t b)
{
	static const int ops[] = {[SUM] = ADD, [LARGE] = MAX, [SMALL] = MIN, [XOR_SUM] = XOR, [PRODUCT] = MUL};
	return wrap(t, int_op(ops[kind], t, a, b));
}

static int64_t divisor(const struct expr *x, tl_dtype t, int64_t b)
{
	return x->literal ? b : wrap(t, is_signed(t) && x->in[1] % 2 ? (b & 7) - 9 : (b & 7) + 1);
}

static void leaf(const struct tree *t, const struct expr *x, int n, int64_t *r)
{
	for (int k = 0; k < n; k++)
		r[k] = x->dead          ? 0
		       : x->op == FULL  ? x->value
		       : x->op == RANGE ? k
		       : x->op == PID   ? t->pid
		       : x->op == VAR   ? t->value[x->value][k]
					: t->arg[x->value];
}

static void compute(struct tree *t, int e, int64_t *r)
{
	const struct expr *x = &t->expr[e];
	int n = x->tile ? t->lanes : 1;
	int64_t a[256], b[256], c[256];
	if (x->dead || x->op == FULL || x->op == RANGE || x->op == PID || x->op == SCALAR || x->op == VAR) {
		leaf(t, x, n, r);
		return;
	}
	const struct expr *y = &t->expr[x->in[0]];
	tl_dtype type = y->t;
	operand(t, x, 0, type, x->op == REDUCE ? t->lanes : n, a);
	if (x->in[1] >= 0 || x->literal)
		operand(t, x, 1, x->op == WHERE || x->op == CHOOSE ? x->t : type, n, b);
	if (x->in[2] >= 0)
		operand(t, x, 2, x->op == CHAIN ? type : x->t, n, c);
	if (x->op == REDUCE)
		r[0] = a[0];
	for (int k = 1; k < t->lanes && x->op == REDUCE; k++)
		r[0] = combined((int)x->value, type, r[0], a[k]);
	for (int k = 0; k < n && x->op != REDUCE; k++)
		switch (x->op) {
		case CAST: r[k] = x->t == TL_I1 ? a[k] != 0 : wrap(x->t, a[k]); break;
		case LOAD: r[k] = element_of(t, x, type, a[k]); break;
		case HINTED: r[k] = wrap(type, (a[0] & -16) + k); break;
		case WHERE:
		case CHOOSE: r[k] = a[k] ? b[k] : c[k]; break;
		case CHAIN:
			r[k] = is_below(type, LT + (int)x->value / 4, a[k], b[k]) &&
			       is_below(type, LT + (int)x->value % 4, b[k], c[k]);
			break;
		case SCAN: r[k] = k ? combined((int)x->value, type, r[k - 1], a[k]) : a[0]; break;
		case SHL:
		case SHR: r[k] = wrap(type, int_op(x->op, type, a[k], b[k] & (bits_of(type) - 1))); break;
		case DIV:
		case REM: r[k] = wrap(type, int_op(x->op, type, a[k], divisor(x, type, b[k]))); break;
		default:
			r[k] = x->op >= LT && x->op <= NE ? is_below(type, x->op, a[k], b[k])
							  : wrap(x->t, int_op(x->op, type, a[k], b[k]));
		}
}

static int64_t scalar(struct tree *t, int e)
{
	int64_t r[256];
	compute(t, e, r);
	return r[0];
}

/* --- statements ---------------------------------------------------------------------------------------------- */

static enum jump run(struct tree *t, int k);

static enum jump count(struct tree *t, const struct stmt *s)
{
	tl_dtype type = t->var[s->var].t;
	int64_t from = s->e[0] < 0 ? 0 : scalar(t, s->e[0]), step = s->form == 4                   ? -1
								    : s->form == 1 || s->form == 2 ? s->step
												   : 1;
	int64_t to = wrap(type, (int64_t)((uint64_t)from + (uint64_t)s->n));
	if (s->form == 4) {
		int64_t top = to;
		to = from, from = top;
	}
	if (s->declares)
		t->value[s->var][0] = 0; /* where it does not run */
	for (int64_t i = from; step > 0 ? i < to : i > to;) {
		t->value[s->var][0] = i;
		enum jump j = run(t, s->body);
		if (j >= OUT)
			return j == OUT ? NO_JUMP : j;
		if (__builtin_add_overflow(i, step, &i) || i != wrap(type, i))
			break;
	}
	return run(t, s->other);
}

static enum jump loop_while(struct tree *t, const struct stmt *s)
{
	int64_t *at = t->value[s->var];
	for (at[0] = 0; at[0] < s->n && scalar(t, s->e[0]);) {
		at[0]++;
		enum jump j = run(t, s->body);
		if (j >= OUT)
			return j == OUT ? NO_JUMP : j;
	}
	return run(t, s->other);
}

static void rounds(struct tree *t, const struct stmt *s)
{
	tl_dtype type = t->var[s->var].t;
	int64_t *a = t->value[s->var], *b = t->value[s->second];
	for (int k = 0; k < (t->var[s->var].tile ? t->lanes : 1); k++)
		for (int i = 0; i < s->n; i++) {
			int64_t x = wrap(type, int_op(ADD, type, int_op(SHL, type, b[k], 4), i));
			int64_t y = wrap(type, int_op(XOR, type, x, int_op(SHR, type, b[k], 5))),
				z = wrap(type, int_op(ADD, type, a[k], y));
			a[k] = b[k];
			b[k] = z;
		}
}

static void call(struct tree *t, const struct stmt *s)
{
	const struct helper *h = s->form < 0 ? NULL : &t->helper[s->form]; /* NULL: its results are its arguments */
	int64_t x[256], y[256];
	size_t bytes = (size_t)(t->var[s->var].tile ? t->lanes : 1) * sizeof *x;
	compute(t, s->e[0], x);
	compute(t, s->e[1], y);
	if (h) {
		memcpy(t->value[h->param[0]], x, bytes);
		memcpy(t->value[h->param[1]], y, bytes);
		bool early = run(t, h->body) == RETURN;
		for (int i = 0; i < 2; i++) {
			int64_t *r = i ? y : x;
			if (early)
				memcpy(r, t->returned[i], bytes);
			else
				compute(t, h->result[i], r);
		}
	}
	memcpy(t->value[s->var], x, bytes);
	memcpy(t->value[s->second], y, bytes);
}

static void write_out(struct tree *t, const struct stmt *s)
{
	int n = t->var[s->var].tile ? t->lanes : 1;
	int64_t mask[256];
	if (s->e[0] >= 0)
		compute(t, s->e[0], mask);
	for (int k = 0; k < n; k++)
		if (s->e[0] < 0 || mask[t->expr[s->e[0]].tile ? k : 0]) {
			t->out[s->form][t->pid * n + k] = t->value[s->var][k];
			t->touched[s->form][t->pid * n + k] = 1;
		}
}

static enum jump run(struct tree *t, int k)
{
	int64_t r[256];
	enum jump j;
	for (; k >= 0; k = t->stmt[k].next) {
		const struct stmt *s = &t->stmt[k];
		if (s->dead)
			continue;
		j = NO_JUMP;
		switch (s->kind) {
		case SET:
			compute(t, s->e[0], r);
			memcpy(t->value[s->var], r, (size_t)(t->var[s->var].tile ? t->lanes : 1) * sizeof *r);
			break;
		case CALL: call(t, s); break;
		case WHEN: j = run(t, scalar(t, s->e[0]) ? s->body : s->other); break;
		case COUNT_UP: j = count(t, s); break;
		case LOOP_WHILE: j = loop_while(t, s); break;
		case PROMISE:
			if (!(t->value[s->var][0] & (s->n - 1)))
				j = run(t, s->body);
			break;
		case ASSUME:
			if (scalar(t, s->e[0]))
				j = run(t, s->body);
			break;
		case ROUNDS: rounds(t, s); break;
		case WRITE: write_out(t, s); break;
		case JUMP:
			for (int i = 0; i < 2 && s->e[i] >= 0; i++)
				compute(t, s->e[i], t->returned[i]);
			j = s->form;
			break;
		}
		if (j != NO_JUMP)
			return j;
	}
	return NO_JUMP;
}

void tree_evaluate(struct tree *t)
{
	for (int k = 0; k < t->nvars; k++)
		t->value[k] = calloc((size_t)t->lanes, sizeof *t->value[k]);
	for (t->pid = 0; t->pid < t->programs; t->pid++)
		run(t, t->body);
	for (int k = 0; k < t->nvars; k++)
		free(t->value[k]);
}
