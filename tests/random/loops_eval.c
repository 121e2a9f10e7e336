/* Random nests of loops: the evaluation, with indices and bounds as integers without a width. */
#include "loops.h"

struct loop_state {
	struct loops *l;
	int64_t index[NESTS], own[NESTS], wide, mix, count, grow, acc[LANES], rows[ROWS][LANES];
	int counter[NESTS];
	double dots[SIDE][SIDE];
};

__int128 ideal(tl_dtype t, int64_t v)
{
	return t == TL_U64 ? (__int128)(uint64_t)v : v;
}

tl_dtype promoted(tl_dtype a, tl_dtype b)
{
	int m = bits_of(a), n = bits_of(b);
	if (is_signed(a) == is_signed(b))
		return m > n ? a : b;
	if (!is_signed(a))
		return m >= n ? a : b;
	return n >= m ? b : a;
}

tl_dtype number_type(const struct loop_number *x)
{
	__int128 v = ideal(x->t, x->value), one = 1;
	if (x->form != LITERAL)
		return x->t;
	return v >= -(one << 31) && v < one << 31 ? TL_I32
	       : v > 0 && v < one << 32           ? TL_U32
	       : v < one << 63                    ? TL_I64
						  : TL_U64;
}

static int64_t add(tl_dtype t, int64_t a, int64_t b)
{
	return wrap(t, (int64_t)((uint64_t)a + (uint64_t)b));
}

static int64_t multiply(tl_dtype t, int64_t a, int64_t b)
{
	return wrap(t, (int64_t)((uint64_t)a * (uint64_t)b));
}

/* Element `lane` of the mask. Literals take the type of the other side. */
static bool holds(const struct loop_state *e, const struct loop_statement *s, int lane)
{
	const struct loop_mask *m = &s->mask;
	const struct loop_number *bound = &e->l->number[m->bound];
	tl_dtype t = e->l->loop[s->loop].t, row = promoted(t, TL_I32);
	int64_t left = add(row, add(t, multiply(t, e->index[s->loop], m->scale), m->shift), lane);
	tl_dtype both = bound->form == LITERAL ? row : promoted(row, bound->t);
	left = wrap(both, left);
	int64_t right = wrap(both, bound->value);
	return compare(m->op, below(both, left, right), left == right);
}

static int offset(const struct loop_state *e, const struct loop_statement *s, int scale)
{
	const struct loops *l = e->l;
	int at = 0;
	if (!s->by_distance)
		return e->counter[s->loop] * scale;
	for (int k = s->loop; k >= 0; k = l->loop[k].parent) {
		const struct loop_nest *x = &l->loop[k];
		const struct loop_number *first = &l->number[x->down ? x->upper : x->lower];
		__int128 d = ideal(x->t, e->index[k]) - ideal(first->t, first->value);
		at += (int)(x->down ? -d : d) * scale;
	}
	return at;
}

static void load_row(struct loop_state *e, const struct loop_statement *s)
{
	int at = offset(e, s, 1);
	for (int j = 0; j < LANES; j++) {
		int64_t x = !s->masked || holds(e, s, j) ? value_int(e->l->p, (size_t)(at + j)) : s->constant;
		e->acc[j] = add(TL_I32, e->acc[j], x);
	}
}

static void load_rows(struct loop_state *e, const struct loop_statement *s)
{
	int at = offset(e, s, 1), rows = s->masked ? s->constant % (ROWS + 1) : ROWS;
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < LANES; j++)
			if (!s->masked || holds(e, s, j))
				e->rows[i][j] =
					add(TL_I32, e->rows[i][j], value_int(e->l->p, (size_t)(at + i * 64 + j)));
}

static void multiply_tiles(struct loop_state *e, const struct loop_statement *s)
{
	size_t at = (size_t)offset(e, s, SIDE);
	for (int k = 0; k < SIDE; k++)
		if (!s->masked || holds(e, s, k))
			for (int i = 0; i < SIDE; i++)
				for (int j = 0; j < SIDE; j++)
					e->dots[i][j] += value(e->l->a, at + (size_t)(i * SIDE + k)) *
							 value(e->l->b, at + (size_t)(k * SIDE + j));
}

static void add_nest(struct loop_state *e, const struct loop_statement *s)
{
	int outer = e->counter[s->loop] % 3, inner = e->counter[s->loop] % 4 + 1;
	for (int t = 0; t < outer; t++)
		for (int u = 0, sum = s->constant; u < inner; u++) {
			sum += u;
			for (int j = 0; j < LANES; j++)
				e->acc[j] = add(TL_I32, e->acc[j], sum);
		}
}

static void run_statement(struct loop_state *e, const struct loop_statement *s)
{
	int64_t i = e->index[s->loop];
	tl_dtype t = e->l->loop[s->loop].t;
	switch (s->kind) {
	case L_COUNT: e->count = add(TL_I32, e->count, s->constant); break;
	case L_MIX: e->mix = add(TL_I32, multiply(TL_I32, e->mix, 31), i); break;
	case L_WIDE: e->wide = (int64_t)((uint64_t)e->wide * 5 + (uint64_t)i); break;
	case L_OWN: e->own[s->loop] = add(t, e->own[s->loop] ^ i, i); break;
	case L_GROW:
		e->grow = add(TL_I32, e->grow, s->constant);
		e->mix ^= e->grow;
		break;
	case L_MASKS:
		for (int j = 0; j < LANES; j++)
			e->count = add(TL_I32, e->count, holds(e, s, j));
		break;
	case L_LOAD: load_row(e, s); break;
	case L_LOAD_ROWS: load_rows(e, s); break;
	case L_STORE:
		for (int j = 0; j < LANES; j++)
			if (!s->masked || holds(e, s, j))
				want_int(s->array, (size_t)(e->counter[s->loop] * LANES + j),
					 add(TL_I32, e->acc[j], e->mix));
		break;
	case L_DOT: multiply_tiles(e, s); break;
	case L_NEST: add_nest(e, s); break;
	default: e->mix = add(TL_I32, e->mix, i & 1 ? 0 : s->constant); break;
	}
}

/* Statements from k to the end of their block, whose number is returned. */
static int run_block(struct loop_state *e, int k)
{
	struct loops *l = e->l;
	for (; k < l->n && l->statement[k].kind != L_END; k++) {
		const struct loop_statement *s = &l->statement[k];
		if (s->kind != L_FOR) {
			if (!s->dead)
				run_statement(e, s);
			continue;
		}
		const struct loop_nest *x = &l->loop[s->loop];
		__int128 lower = ideal(l->number[x->lower].t, l->number[x->lower].value),
			 upper = ideal(l->number[x->upper].t, l->number[x->upper].value),
			 step = x->step < 0 ? 1 : ideal(l->number[x->step].t, l->number[x->step].value);
		__int128 i = x->down ? upper : lower;
		for (; !s->dead && (x->down ? i > lower : i < upper); i += x->down ? -step : step) {
			e->index[s->loop] = wrap(x->t, (int64_t)i);
			e->counter[s->loop]++;
			run_block(e, k + 1);
		}
		while (l->statement[k].kind != L_END || l->statement[k].loop != s->loop)
			k++;
	}
	return k;
}

void loops_evaluate(struct loops *l)
{
	struct loop_state *e = calloc(1, sizeof *e);
	e->l = l;
	e->mix = 1;
	e->grow = -3;
	for (int k = 0; k < l->nloops; k++)
		e->counter[k] = -1;
	run_block(e, 0);
	want_int(l->out, 0, e->count);
	want_int(l->out, 1, e->mix);
	want_int(l->out, 2, e->grow);
	want_int(l->wide, 0, e->wide);
	for (int k = 0; k < l->nloops; k++) {
		want_int(l->own, (size_t)k, e->own[k]);
		want_int(l->out, (size_t)(3 + k), e->counter[k]);
	}
	for (int j = 0; j < LANES; j++)
		want_int(l->acc, (size_t)j, e->acc[j]);
	for (int i = 0; i < ROWS * LANES; i++)
		want_int(l->rows, (size_t)i, e->rows[i / LANES][i % LANES]);
	for (int i = 0; i < SIDE * SIDE; i++)
		want(l->dots, (size_t)i, e->dots[i / SIDE][i % SIDE]);
	free(e);
}
