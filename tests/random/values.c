#include "values.h"
#include "../run/suite.h"

/* --- making -------------------------------------------------------------------------------------------------- */

static void make_types(struct values *d)
{
	d->type[0] = (struct value_type){.kind = NUMBER, .leaves = 1};
	d->type[1] = (struct value_type){.kind = TILE, .leaves = 1};
	for (d->ntypes = 2; d->ntypes < TYPES;) {
		struct value_type *t = &d->type[d->ntypes];
		*t = (struct value_type){.kind = (int)random_int(TUPLE, OBJECT), .n = (int)random_int(1, FIELDS)};
		for (int i = 0; i < t->n; i++) {
			t->field[i] = chance(55) ? random_below(2) : random_below(d->ntypes);
			if (t->kind == OBJECT && i == 0)
				t->field[i] = 0;
			t->at[i] = t->leaves;
			t->leaves += d->type[t->field[i]].leaves;
		}
		d->ntypes += t->leaves <= LEAVES;
	}
}

static int new_x(struct values *d, enum expression_kind kind, int type)
{
	if (d->nx == EXPRESSIONS)
		return 0;
	d->x[d->nx] = (struct expression){.kind = kind, .type = type, .flag = chance(50)};
	return d->nx++;
}

static int visible_of(const struct values *d, int type)
{
	for (int tries = 0; tries < 10 && d->nvisible; tries++) {
		int v = d->visible[random_below(d->nvisible)];
		if (d->var[v] == type)
			return v;
	}
	return -1;
}

/* A variable's field, or its field's …, of this type; -1. */
static int path_to(struct values *d, int type)
{
	for (int tries = 0; tries < 12 && d->nvisible; tries++) {
		int v = d->visible[random_below(d->nvisible)], at = d->var[v], fields[8], n = 0;
		while (d->type[at].kind >= TUPLE && n < 8 && (n == 0 || at != type)) {
			fields[n] = random_below(d->type[at].n);
			at = d->type[at].field[fields[n++]];
		}
		if (at != type || !n || d->nx + n + 1 > EXPRESSIONS)
			continue;
		int x = new_x(d, X_VARIABLE, d->var[v]);
		d->x[x].value = v;
		for (int i = 0; i < n; i++) {
			int y = new_x(d, X_FIELD, d->type[d->x[x].type].field[fields[i]]);
			d->x[y].in[0] = x;
			d->x[y].n = 1;
			d->x[y].value = fields[i];
			x = y;
		}
		return x;
	}
	return -1;
}

static int make_x(struct values *d, int type, int depth);

static int with(struct values *d, enum expression_kind kind, int type, int n, const int *types, int value, int depth)
{
	int in[FIELDS];
	for (int i = 0; i < n; i++)
		in[i] = types[i] < 0 ? -1 - types[i] : make_x(d, types[i], depth - 1);
	int x = new_x(d, kind, type);
	d->x[x].n = n;
	d->x[x].value = value;
	memcpy(d->x[x].in, in, sizeof in);
	return x;
}

static int make_condition(struct values *d, int depth)
{
	int what = random_below(10);
	if (depth > 0 && what < 2) {
		int a = make_condition(d, depth - 1), b = make_condition(d, depth - 1);
		return with(d, X_BOTH, 0, 2, (int[]){-1 - a, -1 - b}, random_below(2), depth);
	}
	if (depth > 0 && what == 2) {
		int a = make_condition(d, depth - 1);
		return with(d, X_NOT, 0, 1, (int[]){-1 - a}, 0, depth);
	}
	return with(d, X_COMPARE, 0, 2, (int[]){0, 0}, LT + random_below(6), depth);
}

static int add_call(struct values *d, int type, int depth)
{
	for (int f = random_below(FUNCTIONS), k = 0; k < FUNCTIONS; k++, f = (f + 1) % FUNCTIONS)
		if (f < d->current && d->f[f].result == type && d->f[d->current].calls + d->f[f].calls < CALLS) {
			int types[PARAMETERS];
			for (int i = 0; i < d->f[f].nparams; i++)
				types[i] = d->var[d->f[f].param[i]];
			d->f[d->current].calls += 1 + d->f[f].calls;
			return with(d, X_CALL, type, d->f[f].nparams, types, f, depth);
		}
	return -1;
}

/* Of leaves alone, all of one type where `same`. */
static bool is_flat(const struct values *d, int type, bool same)
{
	const struct value_type *t = &d->type[type];
	bool yes = t->kind == TUPLE;
	for (int i = 0; i < t->n; i++)
		yes &= t->field[i] < 2 && (!same || t->field[i] == t->field[0]);
	return yes;
}

static int make_leaf(struct values *d, int type, int depth)
{
	static const enum op ops[] = {ADD, SUB, MUL, AND, OR, XOR, MIN, MAX};
	int what = random_below(100), t = 2 + random_below(d->ntypes - 2);
	if (what < 45)
		return with(d, X_BINARY, type, 2, (int[]){type, type && chance(60) ? 1 : 0},
			    ops[random_below(COUNT(ops))], depth);
	if (what < 60 && !type) {
		int c = make_condition(d, 1);
		return with(d, X_CHOOSE, 0, 3, (int[]){-1 - c, 0, 0}, 0, depth);
	}
	if (what < 72 && !type && d->type[t].kind == OBJECT)
		return with(d, X_CAPPED, 0, 2, (int[]){t, 0}, 0, depth);
	if (what < 82 && is_flat(d, t, true) && d->type[t].field[0] == type)
		return with(d, X_TOTAL, type, 1, &t, 0, depth);
	if (what < 88 && !type)
		return with(d, X_SUM, 0, 1, (int[]){1}, 0, depth);
	return -1;
}

static int make_composite(struct values *d, int type, int depth)
{
	const struct value_type *t = &d->type[type];
	int what = random_below(100);
	if (what < 25 && t->kind == OBJECT)
		return with(d, X_PLUS, type, 2, (int[]){type, 0}, 0, depth);
	if (what < 40 && t->kind == OBJECT)
		return with(d, X_ADD, type, 2, (int[]){type, type}, 0, depth);
	if (what < 55 && t->kind == OBJECT) {
		int field = random_below(t->n);
		return with(d, X_REPLACE, type, 2, (int[]){type, t->field[field]}, field, depth);
	}
	if (what < 40 && is_flat(d, type, false))
		return with(d, X_EACH, type, 1, &type, (int)random_int(-3, 3), depth);
	return -1;
}

static int make_x(struct values *d, int type, int depth)
{
	int v = chance(45) || depth <= 0 ? visible_of(d, type) : -1, x = -1;
	if (v >= 0) {
		x = new_x(d, X_VARIABLE, type);
		d->x[x].value = v;
		return x;
	}
	if (d->nx > EXPRESSIONS - 100)
		depth = 0;
	if (chance(35) && (x = path_to(d, type)) >= 0)
		return x;
	if (depth > 0 && chance(35))
		x = add_call(d, type, depth);
	if (depth > 0 && x < 0)
		x = type < 2 ? make_leaf(d, type, depth) : make_composite(d, type, depth);
	if (x >= 0)
		return x;
	if (type >= 2)
		return with(d, X_MAKE, type, d->type[type].n, d->type[type].field, 0, depth);
	x = new_x(d, X_LITERAL, type);
	d->x[x].value = (int)random_int(-20, 20);
	return x;
}

static int new_var(struct values *d, int type, bool shown)
{
	if (d->nvars == VARIABLES)
		return 0;
	d->var[d->nvars] = type;
	if (shown)
		d->visible[d->nvisible++] = d->nvars;
	return d->nvars++;
}

static struct statement *new_s(struct values *d, enum statement_kind kind, int e)
{
	d->s[d->n] = (struct statement){.kind = kind, .e = e, .opens = -1};
	return &d->s[d->n++];
}

static void make_body(struct values *d, int count);

static void add_block(struct values *d)
{
	int at = d->n, visible = d->nvisible, breaks = d->breaks, t = 2 + random_below(d->ntypes - 2);
	enum statement_kind kind = V_FOR + random_below(V_IF - V_FOR + 1);
	if (d->depth == 3 || d->n > STATEMENTS - 30)
		return;
	if (kind == V_EACH && (!is_flat(d, t, true) || d->loops > 1))
		kind = V_IF;
	int e = kind == V_EACH  ? make_x(d, t, 2)
		: kind == V_IF  ? make_condition(d, 2)
		: kind == V_FOR ? make_x(d, 0, 1)
				: 0;
	struct statement *s = new_s(d, kind, e);
	s->trips = random_below(4);
	if (kind != V_IF)
		s->var[0] = new_var(d, kind == V_EACH ? d->type[t].field[0] : 0, kind != V_WHILE);
	d->depth++;
	d->loops += kind != V_IF;
	make_body(d, (int)random_int(1, 4));
	d->loops -= kind != V_IF;
	d->nvisible = visible;
	if (chance(kind == V_IF ? 50 : 20)) {
		new_s(d, V_ELSE, 0)->opens = at;
		make_body(d, (int)random_int(1, 3));
		d->nvisible = visible;
	}
	d->depth--;
	d->breaks = breaks;
	new_s(d, V_END, 0)->opens = at;
}

/* Ends the iteration, the loop or the function if a condition holds. */
static void make_jump(struct values *d)
{
	bool returns = d->current < FUNCTIONS - 1 && (d->loops == 0 || chance(30));
	if (d->depth == 0 || (!d->loops && !returns) || d->n > STATEMENTS - 20)
		return;
	int at = d->n;
	new_s(d, V_IF, make_condition(d, 1));
	if (returns)
		new_s(d, V_RETURN, make_x(d, d->f[d->current].result, 1));
	else
		new_s(d, chance(50) ? V_BREAK : V_CONTINUE, 0);
	new_s(d, V_END, 0)->opens = at;
}

static void make_statement_of(struct values *d)
{
	int what = random_below(100), t = random_below(d->ntypes);
	if (what < 35 && d->nvisible) {
		int v = d->visible[random_below(d->nvisible)], e = make_x(d, d->var[v], 3);
		new_s(d, V_SET, e)->var[0] = v;
	} else if (what < 60) {
		int e = make_x(d, t, 3);
		struct statement *s = new_s(d, V_NEW, e);
		s->var[0] = new_var(d, t, true);
	} else if (what < 70 && (d->type[t].kind == TUPLE || d->type[t].kind == NAMED)) {
		int e = make_x(d, t, 2);
		struct statement *s = new_s(d, V_UNPACK, e);
		s->n = d->type[t].n;
		for (int i = 0; i < s->n; i++)
			s->var[i] = new_var(d, d->type[t].field[i], true);
	} else if (what < 85) {
		add_block(d);
	} else {
		make_jump(d);
	}
}

static void make_body(struct values *d, int count)
{
	while (count-- > 0 && d->n < STATEMENTS - 12 && d->nvars < VARIABLES - 12)
		make_statement_of(d);
}

static void make_function(struct values *d, int k)
{
	struct function *f = &d->f[d->current = k];
	bool kernel = k == FUNCTIONS - 1;
	*f = (struct function){.result = random_below(d->ntypes),
			       .nparams = kernel ? 0 : (int)random_int(1, PARAMETERS)};
	d->nvisible = d->loops = d->depth = 0;
	for (int i = 0; i < f->nparams; i++)
		f->param[i] = new_var(d, random_below(d->ntypes), true);
	f->variadic = f->nparams && d->type[d->var[f->param[f->nparams - 1]]].kind == TUPLE && chance(60);
	for (int i = 0; kernel && i < GIVEN; i++) {
		int t = random_below(d->ntypes);
		bool fits = d->type[t].kind != TILE && d->type[t].kind != OBJECT;
		for (int j = 0; j < d->type[t].n; j++)
			fits &= d->type[t].field[j] == 0;
		if (fits)
			d->given[d->ngiven++] = new_var(d, t, true);
	}
	f->from = d->n;
	make_body(d, kernel ? (int)random_int(6, 12) : (int)random_int(1, 4));
	if (!kernel)
		new_s(d, V_RETURN, make_x(d, f->result, 2));
	f->to = d->n;
}

static void make_values(struct values *d)
{
	memset(d, 0, sizeof *d);
	new_x(d, X_ZERO, 0);
	d->warps = 1 << random_below(3);
	make_types(d);
	for (int k = 0; k < FUNCTIONS; k++)
		make_function(d, k);
	for (int i = 0; i < d->ngiven; i++)
		for (int k = 0; k < LEAVES; k++)
			d->argument[i][k] = chance(50) ? random_int(2, 60) : random_int(-60, 0);
}

/* --- leaving out --------------------------------------------------------------------------------------------- */

static int end_of(const struct values *d, int k, enum statement_kind kind)
{
	for (int i = k + 1; i < d->n; i++)
		if (d->s[i].kind == kind && d->s[i].opens == k)
			return i;
	return -1;
}

bool opens_block(enum statement_kind kind)
{
	return kind >= V_FOR && kind <= V_IF;
}

static void drop(struct values *d, const char *list)
{
	for (const char *s = list + strspn(list, ","); *s; s += strcspn(s, ","), s += strspn(s, ",")) {
		int k = atoi(s);
		if (k >= STATEMENTS && k - STATEMENTS < d->nx) {
			struct expression *x = &d->x[k - STATEMENTS];
			bool condition = x->kind >= X_COMPARE;
			*x = (struct expression){.kind = condition ? X_COMPARE : X_ZERO, .type = x->type, .value = EQ};
			x->n = condition ? 2 : 0; /* of expression 0, which is a number */
		} else if (k < d->n && opens_block(d->s[k].kind)) {
			for (int i = k; i <= end_of(d, k, V_END); i++)
				d->s[i].dead = true;
		} else if (k < d->n && d->s[k].kind < V_FOR) {
			if (d->s[k].kind == V_SET)
				d->s[k].dead = true;
		} else if (k < d->n && d->s[k].kind >= V_BREAK && d->s[k + 1].kind == V_END) {
			d->s[k].dead = true;
		}
	}
}

/* --- evaluation ---------------------------------------------------------------------------------------------- */

enum outcome { ON, BROKE, CONTINUED, RETURNED };

static enum outcome run(struct values *d, int from, int to);

static void each_lane(int64_t *to, int64_t v)
{
	for (int i = 0; i < LANES; i++)
		to[i] = v;
}

static void evaluate_x(struct values *d, int k, int64_t *to)
{
	const struct expression *x = &d->x[k];
	const struct value_type *t = &d->type[x->type];
	int size = t->leaves * LANES;
	int64_t in[FIELDS][LEAVES * LANES];
	if (x->kind == X_CHOOSE) {
		evaluate_x(d, x->in[0], in[0]);
		evaluate_x(d, x->in[in[0][0] ? 1 : 2], to);
		return;
	}
	for (int i = 0; i < x->n; i++)
		evaluate_x(d, x->in[i], in[i]);
	switch (x->kind) {
	case X_LITERAL: each_lane(to, x->value); break;
	case X_VARIABLE: memcpy(to, d->cell[x->value], (size_t)size * sizeof *to); break;
	case X_FIELD:
		memcpy(to, in[0] + d->type[d->x[x->in[0]].type].at[x->value] * LANES, (size_t)size * sizeof *to);
		break;
	case X_BINARY:
	case X_COMPARE:
		for (int i = 0; i < LANES; i++)
			to[i] = wrap(TL_I32, int_op(x->value, TL_I32, in[0][i], in[1][i]));
		break;
	case X_MAKE:
		for (int i = 0; i < x->n; i++)
			memcpy(to + t->at[i] * LANES, in[i],
			       (size_t)(d->type[t->field[i]].leaves * LANES) * sizeof *to);
		break;
	case X_CALL: {
		const struct function *f = &d->f[x->value];
		for (int i = 0; i < x->n; i++)
			memcpy(d->cell[f->param[i]], in[i], sizeof in[i]);
		run(d, f->from, f->to);
		memcpy(to, d->result, (size_t)size * sizeof *to);
		break;
	}
	case X_PLUS:
	case X_ADD:
		memcpy(to, in[x->kind == X_ADD], (size_t)size * sizeof *to);
		for (int i = 0; i < LANES; i++)
			to[i] = wrap(TL_I32, x->kind == X_ADD ? in[0][i] - in[1][i] : in[0][i] + in[1][i]);
		break;
	case X_CAPPED: each_lane(to, in[0][0] > in[1][0] ? in[1][0] : in[0][0]); break;
	case X_REPLACE:
		memcpy(to, in[0], (size_t)size * sizeof *to);
		memcpy(to + t->at[x->value] * LANES, in[1],
		       (size_t)(d->type[t->field[x->value]].leaves * LANES) * sizeof *to);
		break;
	case X_EACH:
		for (int i = 0; i < size; i++)
			to[i] = wrap(TL_I32, in[0][i] * x->value + 1);
		break;
	case X_TOTAL:
	case X_SUM: {
		bool sum = x->kind == X_SUM;
		int n = sum ? LANES : d->type[d->x[x->in[0]].type].n;
		for (int i = 0; i < LANES; i++) {
			to[i] = 0;
			for (int j = 0; j < n; j++)
				to[i] = wrap(TL_I32, to[i] + in[0][sum ? j : j * LANES + i]);
		}
		break;
	}
	case X_BOTH: each_lane(to, x->value ? in[0][0] && in[1][0] : in[0][0] || in[1][0]); break;
	case X_NOT: each_lane(to, !in[0][0]); break;
	default: memset(to, 0, (size_t)size * sizeof *to);
	}
}

static enum outcome run_loop(struct values *d, int k, int end, int other)
{
	const struct statement *s = &d->s[k];
	int64_t over[LEAVES * LANES];
	int trips = s->trips, size = LANES;
	if (s->kind == V_FOR) {
		evaluate_x(d, s->e, over);
		trips = (int)(over[0] & s->trips);
	} else if (s->kind == V_EACH) {
		evaluate_x(d, s->e, over);
		trips = d->type[d->x[s->e].type].n;
	}
	if (s->kind == V_WHILE)
		each_lane(d->cell[s->var[0]], 0);
	for (int64_t i = 0; s->kind == V_WHILE ? d->cell[s->var[0]][0] < trips : i < trips; i++) {
		if (s->kind == V_EACH)
			memcpy(d->cell[s->var[0]], over + i * size, (size_t)size * sizeof *over);
		else
			each_lane(d->cell[s->var[0]], s->kind == V_WHILE ? wrap(TL_I32, d->cell[s->var[0]][0] + 1) : i);
		enum outcome o = run(d, k + 1, other < 0 ? end : other);
		if (o == RETURNED)
			return o;
		if (o == BROKE)
			return ON;
	}
	return other < 0 ? ON : run(d, other + 1, end);
}

static enum outcome run(struct values *d, int from, int to)
{
	int64_t value[LEAVES * LANES];
	for (int k = from; k < to; k++) {
		const struct statement *s = &d->s[k];
		if (s->dead)
			continue;
		if (opens_block(s->kind)) {
			int end = end_of(d, k, V_END), other = end_of(d, k, V_ELSE);
			enum outcome o = ON;
			if (s->kind != V_IF) {
				o = run_loop(d, k, end, other);
			} else {
				evaluate_x(d, s->e, value);
				if (value[0])
					o = run(d, k + 1, other < 0 ? end : other);
				else if (other >= 0)
					o = run(d, other + 1, end);
			}
			if (o != ON)
				return o;
			k = end;
		} else if (s->kind == V_BREAK || s->kind == V_CONTINUE) {
			return s->kind == V_BREAK ? BROKE : CONTINUED;
		} else if (s->kind == V_RETURN) {
			evaluate_x(d, s->e, d->result);
			return RETURNED;
		} else if (s->kind != V_END && s->kind != V_ELSE) {
			evaluate_x(d, s->e, value);
			const struct value_type *t = &d->type[d->x[s->e].type];
			for (int i = 0; i < s->n; i++)
				memcpy(d->cell[s->var[i]], value + t->at[i] * LANES,
				       (size_t)(d->type[t->field[i]].leaves * LANES) * sizeof *value);
			if (!s->n)
				memcpy(d->cell[s->var[0]], value, (size_t)(t->leaves * LANES) * sizeof *value);
		}
	}
	return ON;
}

/* --- a case -------------------------------------------------------------------------------------------------- */

static void values_case(struct suite *s, int64_t seed, const char *left_out)
{
	static const char *const names[] = {"m0", "m1", "m2"};
	if (!case_begin(s, NULL, "%lld.", (long long)seed))
		return;
	struct values *d = calloc(1, sizeof *d);
	tl_arg args[GIVEN + 1], fields[GIVEN][FIELDS];
	tl_tuple tuples[GIVEN];
	random_seed((uint64_t)seed);
	make_values(d);
	if (left_out)
		drop(d, left_out);
	for (int i = 0; i < d->ngiven; i++) {
		const struct value_type *t = &d->type[d->var[d->given[i]]];
		for (int k = 0; k < t->leaves; k++) {
			each_lane(d->cell[d->given[i]] + k * LANES, d->argument[i][k]);
			fields[i][k] = tl_int(d->argument[i][k]);
		}
		tuples[i] = (tl_tuple){(size_t)t->n, fields[i], t->kind == NAMED ? names : NULL};
		args[i + 1] = t->kind == NUMBER ? fields[i][0] : tl_tuple_arg(&tuples[i]);
	}
	run(d, d->f[FUNCTIONS - 1].from, d->f[FUNCTIONS - 1].to);
	struct array *o = out(s, "out", TL_I32, VARIABLES * LEAVES * LANES);
	args[0] = ptr(o);
	for (int i = 0, leaf = 0; i < d->nvisible; i++) {
		int v = d->visible[i], kind[LEAVES], n = 0, stack[32], top = 0;
		stack[top++] = d->var[v];
		while (top) {
			int t = stack[--top];
			if (t < 2)
				kind[n++] = t;
			for (int k = d->type[t].n - 1; k >= 0; k--)
				stack[top++] = d->type[t].field[k];
		}
		for (int k = 0; k < n; k++, leaf++)
			for (int e = 0; e < (kind[k] ? LANES : 1); e++)
				want_int(o, (size_t)(leaf * LANES + e), d->cell[v][k * LANES + e]);
	}
	char *text = values_text(d);
	tl_config config = {.grid = {1}, .num_warps = d->warps};
	run_text(s, text, &config, args, (size_t)d->ngiven + 1, "%d arguments", d->ngiven);
	free(d);
}

void theme_random_values(struct suite *s)
{
	each_seed(s, "values", 100, values_case);
}

int shrink_values(const char *command)
{
	return shrink_list(command, STATEMENTS + EXPRESSIONS);
}
