/* test-random --kind loops: random nests of loops (loops.h). */
#include "loops.h"
#include "../run/suite.h"

/* --- numbers ------------------------------------------------------------------------------------------------- */

static bool in_type(tl_dtype t, __int128 v)
{
	return v >= ideal(t, least(t)) && v <= ideal(t, most(t));
}

static __int128 clamped(tl_dtype t, __int128 v)
{
	__int128 low = ideal(t, least(t)), high = ideal(t, most(t));
	return v < low ? low : v > high ? high : v;
}

static int64_t up_to(tl_dtype t, int n)
{
	return random_int(is_signed(t) ? -n : 0, n);
}

/* An argument that is 1 is a constant, of no type: there is none. */
static enum stated choose_form(bool constant, int64_t value)
{
	enum stated form = constant ? (chance(60) ? LITERAL : TYPED) : (enum stated)random_int(ARGUMENT, STATED - 1);
	return form == ARGUMENT && value == 1 ? FROM_MEMORY : form;
}

static int new_number(struct loops *l, tl_dtype t, __int128 value, bool constant)
{
	struct loop_number *x = &l->number[l->nnumbers];
	*x = (struct loop_number){.t = t, .value = (int64_t)value};
	x->form = choose_form(constant, x->value);
	if (x->form == BETWEEN) {
		x->low = chance(30) ? least(t) : (int64_t)clamped(t, value - random_below(40));
		x->high = chance(30) ? most(t) : (int64_t)clamped(t, value + random_below(40));
	}
	if (x->form == SUM_OF_TWO) {
		x->high = up_to(t, 100);
		x->low = (int64_t)(value - x->high);
		if (!in_type(t, value - x->high) || x->low == 1)
			x->form = FROM_MEMORY;
	}
	return l->nnumbers++;
}

/* Mostly one where something wraps nearby. */
static __int128 anchor(tl_dtype t)
{
	__int128 low = ideal(t, least(t)), high = ideal(t, most(t));
	switch (random_below(6)) {
	case 0:
	case 1: return high - random_below(4);
	case 2: return low + random_below(4);
	case 3: return clamped(t, random_below(200) - 100);
	case 4: return high - random_below(100);
	default: return clamped(t, (__int128)(int64_t)random_bits());
	}
}

static __int128 some_step(tl_dtype t)
{
	static const int small[] = {1, 1, 1, 1, 2, 3, 4, 7, 16, 64};
	int bits = is_signed(t) ? bits_of(t) - 1 : bits_of(t);
	__int128 most_step = ((__int128)1 << bits) - 1;
	if (chance(75))
		return small[random_below(COUNT(small))];
	__int128 step =
		chance(50) ? most_step - random_below(3) : ((__int128)1 << random_below(bits)) + random_below(2);
	return step > most_step ? most_step : step;
}

/* --- loops --------------------------------------------------------------------------------------------------- */

/* The index's type, as the language has it. Constants without a type that it does not hold get one. */
static void find_type(struct loops *l, struct loop_nest *x, tl_dtype t)
{
	const int all[] = {x->lower, x->upper, x->step};
	for (int round = 0; round < 2; round++) {
		x->t = x->step < 0 ? TL_I32 : number_type(&l->number[x->step]);
		for (int i = 0; i < 2; i++)
			x->t = promoted(x->t, number_type(&l->number[all[i]]));
		for (int i = 0; i < 3; i++)
			if (all[i] >= 0 && !in_type(x->t, ideal(t, l->number[all[i]].value)))
				l->number[all[i]].form = TYPED;
	}
}

static int new_loop(struct loops *l, int parent, int most_iterations)
{
	struct loop_nest *x = &l->loop[l->nloops];
	tl_dtype t = chance(30) ? TL_I32 : int_types[random_below(INT_TYPES)];
	bool constant = chance(25), down = chance(20);
	__int128 step = some_step(t), at = anchor(t),
		 way = step * random_int(0, most_iterations) - random_below((int)(step > 64 ? 64 : step));
	__int128 lower = chance(50) ? at : clamped(t, at - way), upper = lower == at ? clamped(t, at + way) : at;
	if (chance(5)) {
		__int128 swapped = lower;
		lower = upper, upper = swapped;
	}
	*x = (struct loop_nest){.parent = parent, .down = down, .step = -1};
	x->iterations = upper > lower ? (int)((upper - lower + step - 1) / step) : 0;
	if (x->iterations > most_iterations) /* rounded up by the type's end */
		upper = lower + step * most_iterations, x->iterations = most_iterations;
	x->near = x->iterations == 0 || (x->iterations - 1) * step <= FARTHEST;
	x->lower = new_number(l, t, lower, constant || chance(25));
	x->upper = new_number(l, t, upper, constant || chance(10));
	if (step > 1 || down || chance(70))
		x->step = new_number(l, t, step, constant || down || chance(60));
	if (down) /* in the text, for the direction to be known */
		l->number[x->step].form = LITERAL;
	find_type(l, x, t);
	if (down && l->number[x->step].form != LITERAL)
		x->down = false;
	x->tl_range = chance(70);
	x->unroll = x->tl_range && chance(50) ? (int)random_int(1, 5) : 0;
	x->stages = x->tl_range && chance(50) ? (int)random_int(1, 4) : 0;
	x->flatten = x->tl_range && chance(20);
	return l->nloops++;
}

/* --- statements ---------------------------------------------------------------------------------------------- */

static struct loop_mask make_mask(struct loops *l, const struct loop_nest *x)
{
	static const int scales[] = {1, 1, 1, 1, 2, 3, 64};
	struct loop_mask m = {.scale = scales[random_below(COUNT(scales))], .op = (enum op)(LT + random_below(4))};
	const struct loop_number *upper = &l->number[x->upper];
	tl_dtype row = promoted(x->t, TL_I32);
	m.mirrored = chance(25);
	m.shift = chance(30) ? (int)up_to(x->t, 8) : 0;
	m.bound = chance(60) ? x->upper : chance(30) ? x->lower : random_below(l->nnumbers);
	if (chance(25) && l->nnumbers + 4 < LOOP_NUMBERS)
		m.bound = new_number(l, upper->t,
				     clamped(upper->t, ideal(upper->t, upper->value) + random_below(80) - 40),
				     chance(30));
	struct loop_number *bound = &l->number[m.bound];
	if (bound->form == LITERAL && !in_type(row, ideal(bound->t, bound->value)))
		m.bound = x->upper;
	bound = &l->number[m.bound];
	if (bound->form == LITERAL && !in_type(row, ideal(bound->t, bound->value)))
		exit(3);
	return m;
}

static bool has_addresses(const struct loops *l, int loop)
{
	bool yes = true;
	for (int k = loop; k >= 0; k = l->loop[k].parent)
		yes &= l->loop[k].near && bits_of(l->loop[k].t) >= 16;
	return yes;
}

static void make_statement_in(struct loops *l, int loop, enum loop_statement_kind kind)
{
	struct loop_statement *s = &l->statement[l->n++];
	const struct loop_nest *x = &l->loop[loop];
	*s = (struct loop_statement){.kind = kind, .loop = loop};
	s->constant = (int)random_int(1, 20);
	s->by_distance = has_addresses(l, loop) && chance(60);
	s->masked = s->kind == L_MASKS || chance(75);
	if (s->masked)
		s->mask = make_mask(l, x);
}

static enum loop_statement_kind any_kind(void)
{
	return (enum loop_statement_kind)random_int(L_COUNT, L_WHEN);
}

/* A loop with `flatten` around one of products, both from addresses that their indices give. */
static void make_flattened(struct loops *l)
{
	int nloops = l->nloops, nnumbers = l->nnumbers, outer, inner;
	do {
		l->nloops = nloops, l->nnumbers = nnumbers;
		outer = new_loop(l, -1, 6);
		inner = new_loop(l, outer, 12);
	} while (!has_addresses(l, inner));
	l->loop[outer].tl_range = l->loop[outer].flatten = true;
	l->loop[outer].stages = l->loop[outer].unroll = l->loop[inner].unroll = 0;
	l->statement[l->n++] = (struct loop_statement){.kind = L_FOR, .loop = outer};
	l->statement[l->n++] = (struct loop_statement){.kind = L_FOR, .loop = inner};
	for (int n = (int)random_int(1, 2); n > 0; n--) {
		make_statement_in(l, inner, L_DOT);
		l->statement[l->n - 1].by_distance = true;
	}
	l->statement[l->n++] = (struct loop_statement){.kind = L_END, .loop = inner};
	if (chance(50))
		make_statement_in(l, outer, any_kind());
	l->statement[l->n++] = (struct loop_statement){.kind = L_END, .loop = outer};
}

static void make_block_of(struct loops *l, int loop, int most_iterations, int depth)
{
	for (int n = (int)random_int(1, 4); n > 0 && l->n + 4 + 2 * depth < LOOP_STATEMENTS; n--) {
		if (loop >= 0 && !(depth < 2 && chance(25))) {
			make_statement_in(l, loop, any_kind());
			continue;
		}
		if (l->nloops == NESTS || l->nnumbers + 12 > LOOP_NUMBERS)
			return;
		int k = new_loop(l, loop, most_iterations > 24 ? 24 : most_iterations);
		l->statement[l->n++] = (struct loop_statement){.kind = L_FOR, .loop = k};
		make_statement_in(l, k, any_kind());
		int inner = most_iterations / (l->loop[k].iterations ? l->loop[k].iterations : 1);
		make_block_of(l, k, inner < 6 || depth ? inner : 6, depth + 1);
		l->statement[l->n++] = (struct loop_statement){.kind = L_END, .loop = k};
	}
}

static void make_loops(struct loops *l)
{
	if (chance(15))
		make_flattened(l);
	make_block_of(l, -1, MOST_ITERATIONS, 0);
	l->warps = 1 << random_below(3);
	l->stages = (int)random_int(1, 4);
}

/* By number: statements, and from LOOP_STATEMENTS on what stands in loops' tl.range. */
static void drop(struct loops *l, const char *list)
{
	for (const char *s = list + strspn(list, ","); *s; s += strcspn(s, ","), s += strspn(s, ",")) {
		int k = atoi(s), option = (k - LOOP_STATEMENTS) % 3;
		struct loop_nest *x = k < LOOP_STATEMENTS ? NULL : &l->loop[(k - LOOP_STATEMENTS) / 3];
		if (!x)
			l->statement[k].dead = true;
		else if (option == 0)
			x->unroll = 0;
		else if (option == 1)
			x->stages = 0;
		else
			x->flatten = false;
	}
}

/* --- a case -------------------------------------------------------------------------------------------------- */

static void create_arrays(struct suite *s, struct loops *l)
{
	static char names[LOOP_NUMBERS + LOOP_STATEMENTS][16];
	const size_t far = 3 * (FARTHEST + 1);
	for (int k = 0; k < l->nnumbers; k++) {
		struct loop_number *x = &l->number[k];
		snprintf(names[k], sizeof *names, "q%d", k);
		if (x->form != FROM_MEMORY && x->form != BETWEEN)
			continue;
		x->array = inout(s, names[k], x->t, 1);
		set_int(x->array, 0, x->value);
	}
	for (int k = 0; k < l->n; k++) {
		snprintf(names[LOOP_NUMBERS + k], sizeof *names, "o%d", k);
		if (l->statement[k].kind == L_STORE)
			l->statement[k].array = out(s, names[LOOP_NUMBERS + k], TL_I32, (MOST_ITERATIONS + 1) * LANES);
	}
	l->p = in(s, "p", TL_I32, far + (ROWS - 1) * 64 + LANES);
	l->a = in(s, "a", TL_F16, (far + SIDE) * SIDE);
	l->b = in(s, "b", TL_F16, (far + SIDE) * SIDE);
	for (size_t i = 0; i < l->a->len; i++)
		set(l->a, i, (double)random_int(-2, 2)), set(l->b, i, (double)random_int(-2, 2));
	l->out = out(s, "out", TL_I32, 3 + NESTS);
	l->wide = out(s, "wide", TL_I64, 1);
	l->own = out(s, "own", TL_I64, NESTS);
	l->acc = out(s, "acc", TL_I32, LANES);
	l->rows = out(s, "rows", TL_I32, ROWS * LANES);
	l->dots = out(s, "dots", TL_F32, SIDE * SIDE);
}

static size_t arguments(const struct loops *l, tl_arg *args)
{
	const struct array *const arrays[] = {l->p, l->a, l->b, l->out, l->wide, l->own, l->acc, l->rows, l->dots};
	size_t n = 0;
	for (int k = 0; k < l->nnumbers; k++) {
		const struct loop_number *x = &l->number[k];
		int64_t v = x->form == SUM_OF_TWO ? x->low : x->value;
		if (x->array)
			args[n++] = ptr(x->array);
		else if (x->form == ARGUMENT || x->form == SUM_OF_TWO)
			args[n++] = is_signed(x->t) ? tl_int_typed(x->t, v) : tl_uint_typed(x->t, (uint64_t)v);
	}
	for (int k = 0; k < l->n; k++)
		if (l->statement[k].array)
			args[n++] = ptr(l->statement[k].array);
	for (int k = 0; k < COUNT(arrays); k++)
		args[n++] = ptr(arrays[k]);
	return n;
}

static void print_case(const struct loops *l, const char *text)
{
	for (int k = 0; k < l->nnumbers; k++)
		printf(l->number[k].t == TL_U64 ? "# m%d: %s, %llu\n" : "# m%d: %s, %lld\n", k,
		       type_names[l->number[k].t], (long long)l->number[k].value);
	printf("# num_warps %d, num_stages %d\n%s", l->warps, l->stages, text);
}

static void loops_case(struct suite *s, int64_t seed, const char *left_out)
{
	if (!case_begin(s, NULL, "%lld.", (long long)seed))
		return;
	struct loops *l = calloc(1, sizeof *l);
	tl_arg args[LOOP_NUMBERS + LOOP_STATEMENTS + 9];
	random_seed((uint64_t)seed);
	make_loops(l);
	if (left_out)
		drop(l, left_out);
	create_arrays(s, l);
	loops_evaluate(l);
	char *text = loops_text(l);
	tl_config config = {.grid = {1}, .num_warps = l->warps, .num_stages = l->stages};
	launch_text(s, text, "kernel", &config, args, arguments(l, args));
	int failed = s->nfailed;
	case_end(s);
	if (s->nfailed > failed || getenv("RANDOM_TEXT"))
		print_case(l, text);
	free(text);
	free(l);
}

void theme_loops(struct suite *s)
{
	each_seed(s, "loops", 300, loops_case);
}

int shrink_loops(const char *command)
{
	return shrink_list(command, LOOP_STATEMENTS + 3 * NESTS);
}
