/* test-random --kind dots: random loops of one to four dots, whose copies and products a compiler lets run ahead.
 * --kind products: the same, with operands through block pointers and tensor descriptors, which may end inside a tile,
 * with batches, and with fp64.
 *
 * A loop is a list of steps over tiles of P × Q, Q × P, P × P and Q × Q elements: loads, products, sums that are
 * carried, and what is made of one result for another product, also with numbers of rows and columns. All numbers are
 * small integers, so that every order of evaluation gives the same, and are evaluated here in double. */
#include "dots.h"

/* --- making -------------------------------------------------------------------------------------------------- */

static int new_value(struct dots *d, int kind, int rows, int columns)
{
	d->value[d->nvalues] = (struct dot_value){.rows = rows, .columns = columns, .kind = kind};
	return d->nvalues++;
}

static struct dot_step *new_step(struct dots *d, enum step_kind kind, int to, int a, int b)
{
	d->step[d->n] = (struct dot_step){.kind = kind, .to = to, .a = a, .b = b, .parity = -1};
	return &d->step[d->n++];
}

/* A value of this shape and one of these kinds, or -1. */
static int some_value(struct dots *d, int rows, int columns, bool operand)
{
	for (int tries = 0; tries < 12 && d->nvalues; tries++) {
		int v = random_below(d->nvalues);
		const struct dot_value *x = &d->value[v];
		if (x->rows == rows && x->columns == columns && (x->kind == OPERAND) == operand)
			return v;
	}
	return -1;
}

static bool has_room(const struct dots *d)
{
	return d->n + 4 < STEPS && d->nvalues + 4 < VALUES;
}

static int make_operand(struct dots *d, int rows, int columns)
{
	int from = chance(35) ? some_value(d, rows, columns, true) : -1;
	if (from >= 0 || !has_room(d))
		return from;
	if (chance(20) && (from = some_value(d, rows, columns, false)) >= 0)
		return new_step(d, S_OPERAND, new_value(d, OPERAND, rows, columns), from, -1)->to;
	if (chance(15) && (from = some_value(d, columns, rows, true)) >= 0)
		return new_step(d, S_TURN, new_value(d, OPERAND, rows, columns), from, -1)->to;
	if (chance(10) && (from = some_value(d, rows, columns, true)) >= 0)
		return new_step(d, S_NEGATE, new_value(d, OPERAND, rows, columns), from, -1)->to;
	struct dot_step *s = new_step(d, S_LOAD, new_value(d, OPERAND, rows, columns), -1, -1);
	s->early = chance(15);
	s->turned = chance(25);
	s->bound = chance(20) ? (int)random_int(1, rows) : 0;
	s->inner = s->turned ? rows : columns;
	s->last = s->turned ? columns : rows;
	if (d->more && chance(85)) {
		s->through = (int)random_int(BY_BLOCKS, LOADS - 1);
		s->bound = 0;
		s->inner = chance(70) ? s->inner : (int)random_int(1, s->inner);
		s->last = chance(60) ? s->last : (int)random_int(1, s->last);
	}
	return s->to;
}

/* What becomes of result v: at least one of the things that can. */
static void use_result(struct dots *d, int v)
{
	const struct dot_value x = d->value[v];
	for (bool used = false; !used && has_room(d);) {
		int carried = -1;
		for (int i = 0; i < d->nvalues && chance(50); i++)
			if (d->value[i].kind == CARRIED && d->value[i].rows == x.rows &&
			    d->value[i].columns == x.columns)
				carried = i;
		if (chance(40)) {
			struct dot_step *s = new_step(d, S_STORE, -1, v, -1);
			s->parity = chance(20) ? random_below(2) : -1;
			used = true;
		}
		if (chance(50)) {
			struct dot_step *s =
				new_step(d, chance(75) ? S_ADD : S_KEEP,
					 carried < 0 ? new_value(d, CARRIED, x.rows, x.columns) : carried, v, -1);
			s->parity = chance(15) ? random_below(2) : -1;
			used = true;
		}
	}
}

static void make_product(struct dots *d)
{
	int rows = d->dims[random_below(2)], columns = d->dims[random_below(2)], inner = d->dims[random_below(2)];
	int way = 0;
	int a = make_operand(d, rows, inner), b = a < 0 ? -1 : make_operand(d, inner, columns);
	if (b < 0 || !has_room(d))
		return;
	if (d->type == TL_F64)
		way = 0;
	else if (d->type == TL_F32 && chance(50))
		way = random_below(PRECISIONS);
	else if (d->type != TL_F32 && d->type != TL_I8 && inner >= 32 && d->batch == 1)
		way = chance(20);
	if (chance(60)) {
		int sum = -1;
		for (int i = 0; i < d->nvalues && chance(70); i++)
			if (d->value[i].kind == CARRIED && d->value[i].rows == rows && d->value[i].columns == columns &&
			    chance(40))
				sum = i;
		struct dot_step *s = new_step(d, S_SUM, sum < 0 ? new_value(d, CARRIED, rows, columns) : sum, a, b);
		s->form = chance(15) ? NEGATED : random_below(2);
		s->way = way;
		s->parity = chance(12) ? random_below(2) : -1;
	} else {
		struct dot_step *s = new_step(d, S_DOT, new_value(d, RESULT, rows, columns), a, b);
		s->way = way;
		use_result(d, s->to);
	}
}

/* A sum that is stored in the loop, or, behind its product, what was made of it before. */
static void make_past(struct dots *d)
{
	int rows = d->dims[random_below(2)], columns = d->dims[random_below(2)], inner = d->dims[random_below(2)];
	int a = make_operand(d, rows, inner), b = a < 0 ? -1 : make_operand(d, inner, columns);
	if (b < 0 || !has_room(d))
		return;
	int sum = new_value(d, CARRIED, rows, columns), kept = sum;
	if (chance(75))
		kept = new_step(d, S_PAST, new_value(d, RESULT, rows, columns), sum, -1)->to;
	new_step(d, S_SUM, sum, a, b)->form = random_below(FORMS);
	new_step(d, d->batch == 1 && chance(70) ? S_ROWS : S_STORE, -1, kept, -1)->parity =
		chance(50) ? random_below(2) : -1;
}

/* An operand behind the loop, of the sum v: as it is, or between -2 and 2. */
static int take_sum(struct dots *d, int v)
{
	if ((d->type == TL_F32 || d->type == TL_F64) && chance(75))
		return v;
	int to = new_value(d, OPERAND, d->value[v].rows, d->value[v].columns);
	new_step(d, S_OPERAND, to, v, -1)->behind = true;
	return to;
}

/* Behind the loop: a sum times another one, or times itself transposed. */
static void multiply_sums(struct dots *d)
{
	int v = -1, other = -1;
	for (int i = 0; i < d->nvalues; i++)
		if (d->value[i].kind == CARRIED && (v < 0 || chance(50)))
			v = i;
	if (v < 0 || d->n + 5 >= STEPS || d->nvalues + 5 >= VALUES)
		return;
	int rows = d->value[v].rows, inner = d->value[v].columns, columns = rows;
	for (int i = 0; i < d->nvalues; i++)
		if (d->value[i].kind == CARRIED && d->value[i].rows == inner && (other < 0 || chance(50)))
			other = i;
	int a = take_sum(d, v), b = other >= 0 && chance(80) ? take_sum(d, other) : -1;
	if (b < 0) {
		b = new_value(d, OPERAND, inner, rows);
		new_step(d, S_TURN, b, a, -1)->behind = true;
	}
	columns = d->value[b].columns;
	struct dot_step *dot = new_step(d, S_DOT, new_value(d, RESULT, rows, columns), a, b);
	dot->behind = true;
	dot->way = d->type == TL_F32 ? random_below(PRECISIONS) : 0;
	new_step(d, S_STORE, -1, dot->to, -1)->behind = true;
}

static int some_work(void)
{
	static const int works[] = {0, 0, ADDS, MULTIPLIES, MULTIPLIES};
	return works[random_below(COUNT(works))] + chance(25);
}

/* Behind step k. */
static struct dot_step *insert_step(struct dots *d, int k, enum step_kind kind, int a)
{
	memmove(&d->step[k + 2], &d->step[k + 1], (size_t)(d->n++ - k - 1) * sizeof *d->step);
	d->step[k + 1] = (struct dot_step){.kind = kind, .to = -1, .a = a, .b = -1, .parity = -1};
	return &d->step[k + 1];
}

/* What gradients do with products: numbers of a row or column work on them, and sums of them are in memory. */
static void work_on_results(struct dots *d)
{
	for (int k = 0; k < d->n; k++) {
		struct dot_step s = d->step[k];
		if (s.kind != S_DOT)
			continue;
		if (has_room(d) && chance(60))
			insert_step(d, k++, S_WORK, s.to)->form = some_work();
		if (has_room(d) && chance(25)) {
			int behind = k;
			while (behind + 1 < d->n && chance(70))
				behind++;
			insert_step(d, behind, S_ATOMIC, s.to);
		}
	}
}

static int load_tile(struct dots *d, int rows, int columns, bool early)
{
	struct dot_step *s = new_step(d, S_LOAD, new_value(d, OPERAND, rows, columns), -1, -1);
	s->early = early;
	s->inner = columns;
	s->last = rows;
	return s->to;
}

/* As an attention's gradients: two products of tiles that the loop loads with tiles that it does not, and two or three
 * of what becomes of their results, which are summed up in registers, or in memory. */
static void make_gradients(struct dots *d)
{
	static const tl_dtype types[] = {TL_F16, TL_F16, TL_BF16, TL_F32};
	int keys = 64 << random_below(2), queries = 32 << random_below(2), head = 64 << random_below(2), tile[2],
	    made[2];
	d->gradients = true;
	d->batch = 1;
	d->type = types[random_below(COUNT(types))];
	d->sum = TL_F32;
	d->trips = (int)random_int(0, 4);
	d->rounds = chance(20) ? (int)random_int(1, 2) : 0;
	d->warps = chance(50) ? 4 : 8;
	d->stages = chance(85) ? (int)random_int(2, 3) : 1;
	d->asked = chance(30);
	for (int i = 0; i < 2; i++) {
		int same = load_tile(d, keys, head, chance(85));
		tile[i] = load_tile(d, queries, head, false);
		int turned = new_step(d, S_TURN, new_value(d, OPERAND, head, queries), tile[i], -1)->to,
		    result = new_step(d, S_DOT, new_value(d, RESULT, keys, queries), same, turned)->to;
		if (chance(80))
			new_step(d, S_WORK, -1, result, -1)->form = some_work();
		if (chance(15))
			new_step(d, S_STORE, -1, result, -1);
		made[i] = new_step(d, S_OPERAND, new_value(d, OPERAND, keys, queries), result, -1)->to;
		if (i == 0 && chance(60)) /* else behind both */
			new_step(d, S_SUM, new_value(d, CARRIED, keys, head), made[0], tile[0])->form =
				random_below(FORMS);
	}
	bool sums = chance(60), later = chance(50);
	for (int i = 0; i < 2; i++) {
		if (i == later)
			new_step(d, S_SUM, new_value(d, CARRIED, keys, head), made[1], tile[i])->form = random_below(2);
		if (i != later && sums) {
			int turned = new_step(d, S_TURN, new_value(d, OPERAND, queries, keys), made[1], -1)->to,
			    other = load_tile(d, keys, head, true);
			new_step(d, S_DOT, new_value(d, RESULT, queries, head), turned, other);
		}
	}
	if (sums)
		new_step(d, chance(70) ? S_ATOMIC : S_STORE, -1,
			 d->step[d->n - 1].kind == S_DOT ? d->nvalues - 1 : d->nvalues - 2, -1);
}

static void make_dots(struct dots *d, bool more)
{
	static const tl_dtype types[] = {TL_F16, TL_F16, TL_F16, TL_BF16, TL_F8E4M3, TL_F8E5M2, TL_I8, TL_F32};
	if (!more && chance(30)) {
		make_gradients(d);
		return;
	}
	d->type = types[random_below(COUNT(types))];
	d->more = more;
	if (more && chance(6))
		d->type = TL_F64;
	d->batch = more && chance(15) ? 2 << random_below(2) : 1;
	d->sum = d->type == TL_I8 ? TL_I32 : d->type == TL_F64 ? TL_F64 : TL_F32;
	int least = bits_of(d->type) == 8 ? 5 : d->type == TL_F32 ? 3 : 4;
	if (d->type == TL_F64)
		least = 2;
	int most = d->batch > 1 || d->type == TL_F64 ? 5 : chance(3) ? 8 : d->type == TL_F32 ? 6 : 7;
	d->dims[0] = 1 << random_int(least, most);
	d->dims[1] = d->batch > 1 || d->type == TL_F64 ? 1 << random_int(least, 5)
		     : chance(50)                      ? 64
						       : 1 << random_int(least, 7);
	d->trips = (int)random_int(chance(90), d->dims[0] * d->dims[1] > 8192 ? 3 : TRIPS);
	d->rounds = chance(20) ? (int)random_int(1, 2) : 0;
	d->fresh = chance(50);
	d->warps = chance(60) ? 4 : 8;
	d->stages = (int)random_int(1, 5);
	d->asked = chance(30);
	if (more && d->batch == 1 && chance(60)) { /* as matrices are multiplied, by boxes where there are any */
		static const tl_dtype usual[] = {TL_F16, TL_BF16, TL_F16, TL_F8E5M2};
		d->type = usual[random_below(COUNT(usual))];
		d->sum = TL_F32;
		d->dims[0] = 64 << random_below(2);
		d->dims[1] = 64;
		d->trips = (int)random_int(1, TRIPS);
		d->stages = (int)random_int(2, 4);
	}
	bool past = more && chance(40); /* behind one product: then both may run ahead */
	for (int i = past ? 1 : (int)random_int(1, 4); i > 0; i--)
		make_product(d);
	if (past)
		make_past(d);
	if (chance(15) && has_room(d)) /* one that no dot takes */
		make_operand(d, d->dims[0], d->dims[1]);
	if (d->batch == 1 && chance(40))
		work_on_results(d);
	if (d->batch == 1 && chance(d->type == TL_F32 ? 70 : 20))
		multiply_sums(d);
	int all = chance(50) ? 1 : random_below(PRECISIONS);
	bool alike = d->type == TL_F32 && chance(50);
	for (int k = 0; k < d->n && alike; k++)
		if (d->step[k].kind == S_DOT || d->step[k].kind == S_SUM)
			d->step[k].way = all;
	if (chance(15)) {
		d->nest = 1 + random_below(NESTS - 1);
		d->trips = (int)random_int(1, 3);
		d->rounds = d->trips;
		for (int k = 0; k < d->n; k++) /* a walk begins at the first iteration of all */
			if (d->step[k].through == BY_WALK)
				d->step[k].through = BY_BLOCKS;
	}
}

/* --- leaving out --------------------------------------------------------------------------------------------- */

static void drop(struct dots *d, const char *list)
{
	bool gone[VALUES] = {false};
	for (const char *s = list + strspn(list, ","); *s; s += strcspn(s, ","), s += strspn(s, ","))
		if (atoi(s) < d->n)
			d->step[atoi(s)].dead = true;
	for (int i = 0; i < d->n; i++) {
		struct dot_step *s = &d->step[i];
		s->dead |= (s->a >= 0 && gone[s->a]) || (s->b >= 0 && gone[s->b]);
		if (s->dead && s->to >= 0 && d->value[s->to].kind != CARRIED)
			gone[s->to] = true;
	}
}

/* --- evaluation ---------------------------------------------------------------------------------------------- */

/* Are the sum's numbers so small that each precision, and each order of adding products of them, gives the same? */
static bool is_exact(const struct dots *d, const struct dot_step *s)
{
	const struct dot_value *v[] = {&d->value[s->a], &d->value[s->b]};
	double most[2] = {0};
	for (int k = 0; k < 2; k++)
		for (int i = 0; i < v[k]->rows * v[k]->columns; i++)
			most[k] = fmax(most[k], fabs(v[k]->at[i]));
	return most[0] <= 1024 && most[1] <= 1024 && most[0] * most[1] * v[0]->columns < 1 << 24;
}

static void product(const struct dots *d, const struct dot_step *s, double factor)
{
	const struct dot_value *a = &d->value[s->a], *b = &d->value[s->b], *to = &d->value[s->to];
	for (int i = 0; i < d->batch * to->rows; i++)
		for (int j = 0; j < to->columns; j++)
			to->at[i * to->columns + j] *= factor;
	for (int i = 0; i < d->batch * to->rows; i++)
		for (int k = 0; k < a->columns; k++)
			for (int j = 0; j < to->columns; j++)
				to->at[i * to->columns + j] += a->at[i * a->columns + k] *
							       b->at[(i / to->rows * a->columns + k) * to->columns + j];
}

/* Element (i, j) of what is loaded. */
static bool exists(const struct dots *d, const struct dot_step *s, int i, int j, size_t tile)
{
	size_t tiles = s->early ? 1 : (size_t)((d->rounds ? d->rounds : 1) * d->trips);
	int row = s->turned ? j : i, column = s->turned ? i : j;
	if (s->bound && i >= s->bound)
		return false;
	return !s->through || (column < s->inner && ((d->batch == 1 && tile + 1 < tiles) || row < s->last));
}

static void evaluate_step(const struct dots *d, const struct dot_step *s, int it, size_t tile)
{
	const struct dot_value *to = s->to < 0 ? &d->value[s->a] : &d->value[s->to],
			       *a = s->a < 0 ? NULL : &d->value[s->a];
	if (s->dead || (s->parity >= 0 && it % 2 != s->parity))
		return;
	if (s->kind == S_DOT || s->kind == S_SUM) {
		product(d, s, s->kind == S_DOT ? 0 : s->form == NEGATED ? -1 : 1);
		return;
	}
	int size = to->rows * to->columns;
	for (int i = 0; s->kind == S_ROWS && i < to->rows; i++) {
		double sum = 0;
		for (int j = 0; j < to->columns; j++)
			sum += a->at[i * to->columns + j];
		if (is_float(d->sum))
			want(s->array, tile * (size_t)to->rows + (size_t)i, sum);
		else
			want_int(s->array, tile * (size_t)to->rows + (size_t)i, (int64_t)sum);
	}
	if (s->kind == S_ROWS)
		return;
	if (s->kind == S_WORK || s->kind == S_ATOMIC)
		for (int e = 0; e < size; e++) {
			int i = e / to->columns, j = e % to->columns;
			bool rows = s->form & OF_ROWS;
			size_t n = (size_t)(rows ? to->rows : to->columns);
			double x = s->kind == S_WORK ? value(s->array, tile * n + (size_t)(rows ? i : j)) : 0;
			if (s->kind == S_ATOMIC)
				s->sums[e] += to->at[e];
			else if (s->form & ADDS)
				to->at[e] += x;
			else
				to->at[e] = s->form & MULTIPLIES ? to->at[e] * x : fmax(to->at[e], x);
		}
	if (s->kind == S_WORK || s->kind == S_ATOMIC)
		return;
	for (int batch = 0; batch < d->batch; batch++)
		for (int e = 0; e < size; e++) {
			int i = e / to->columns, j = e % to->columns, k = batch * size + e;
			int turned = batch * size + j * to->rows + i;
			size_t at = tile * (size_t)(d->batch * size) + (size_t)(s->turned ? turned : k);
			switch (s->kind) {
			case S_LOAD: to->at[k] = exists(d, s, i, j, tile) ? value(s->array, at) : 0; break;
			case S_TURN: to->at[k] = a->at[turned]; break;
			case S_NEGATE: to->at[k] = -a->at[k]; break;
			case S_OPERAND: to->at[k] = fmin(fmax(a->at[k], -2), 2); break;
			case S_ADD: to->at[k] += a->at[k]; break;
			case S_PAST: to->at[k] = 2 * a->at[k]; break;
			case S_KEEP: to->at[k] = a->at[k]; break;
			default:
				if (is_float(d->sum))
					want(s->array, at, a->at[k]);
				else
					want_int(s->array, at, (int64_t)a->at[k]);
			}
		}
}

static void evaluate_behind(struct dots *d, int round)
{
	for (int k = 0; k < d->n; k++) {
		struct dot_step *s = &d->step[k];
		if (s->behind && s->kind == S_DOT && !is_exact(d, s)) /* and its store, which is the next step */
			s->dead = d->step[k + 1].dead = true;
		if (s->behind)
			evaluate_step(d, s, 0, (size_t)round);
	}
}

static void evaluate_dots(struct dots *d)
{
	for (int k = 0; k < d->n; k++)
		if (d->step[k].early)
			evaluate_step(d, &d->step[k], 0, 0);
	for (int round = 0; round < (d->rounds ? d->rounds : 1); round++) {
		for (int v = 0; v < d->nvalues && d->fresh; v++)
			if (d->value[v].kind == CARRIED)
				memset(d->value[v].at, 0,
				       (size_t)(d->batch * d->value[v].rows * d->value[v].columns) * sizeof(double));
		for (int it = 0; it < d->trips; it++)
			for (int k = 0; k < d->n && is_in_round(d, round, it); k++)
				if (!d->step[k].early && !d->step[k].behind)
					evaluate_step(d, &d->step[k], it, (size_t)(round * d->trips + it));
		evaluate_behind(d, round);
	}
	for (int i = 0; i < d->n; i++)
		for (int k = 0; d->step[i].sums && k < d->value[d->step[i].a].rows * d->value[d->step[i].a].columns;
		     k++) {
			if (is_float(d->sum))
				want(d->step[i].array, (size_t)k, d->step[i].sums[k]);
			else
				want_int(d->step[i].array, (size_t)k, (int64_t)d->step[i].sums[k]);
		}
	for (int v = 0; v < d->nvalues; v++)
		for (int k = 0; d->value[v].out && k < d->batch * d->value[v].rows * d->value[v].columns; k++) {
			if (is_float(d->sum))
				want(d->value[v].out, (size_t)k, d->value[v].at[k]);
			else
				want_int(d->value[v].out, (size_t)k, (int64_t)d->value[v].at[k]);
		}
}

/* --- a case -------------------------------------------------------------------------------------------------- */

static void create_arrays(struct suite *s, struct dots *d)
{
	static char names[STEPS + VALUES][16];
	size_t tiles = (size_t)(d->rounds ? d->rounds : 1) * (size_t)d->trips;
	for (int k = 0; k < d->n; k++) {
		struct dot_step *x = &d->step[k];
		bool loads = x->kind == S_LOAD || x->kind == S_WORK, sums = x->kind == S_ATOMIC,
		     stores = x->kind == S_STORE || x->kind == S_ROWS;
		const struct dot_value *v = &d->value[x->kind == S_LOAD || x->a < 0 ? x->to : x->a];
		size_t len = (size_t)(d->batch * v->rows * v->columns);
		if (x->kind == S_ROWS || x->kind == S_WORK)
			len = (size_t)(x->kind == S_WORK && !(x->form & OF_ROWS) ? v->columns : v->rows);
		len *= x->behind ? (size_t)(d->rounds ? d->rounds : 1) : tiles && !x->early && !sums ? tiles : 1;
		snprintf(names[k], sizeof names[k], "p%d", k);
		if (x->dead || !(loads || sums || stores))
			continue;
		x->array = sums    ? inout(s, names[k], d->sum, len)
			   : loads ? in(s, names[k], x->kind == S_LOAD ? d->type : d->sum, len)
				   : out(s, names[k], d->sum, len);
		for (size_t i = 0; i < len && (loads || sums); i++)
			set(x->array, i, sums ? 0 : (double)random_int(-2, 2));
		x->sums = sums ? calloc(len, sizeof *x->sums) : NULL;
	}
	for (int v = 0; v < d->nvalues; v++) {
		struct dot_value *x = &d->value[v];
		snprintf(names[STEPS + v], sizeof *names, "o%d", v);
		x->at = calloc((size_t)(d->batch * x->rows * x->columns), sizeof *x->at);
		if (x->kind == CARRIED)
			x->out = out(s, names[STEPS + v], d->sum, (size_t)(d->batch * x->rows * x->columns));
	}
}

/* Tiles that no block has room for are no fault. */
static bool too_much(const struct dots *d)
{
	int bytes = 0;
	for (int v = 0; v < d->nvalues; v++)
		bytes += d->batch * d->value[v].rows * d->value[v].columns *
			 bits_of(d->value[v].kind == OPERAND ? d->type : d->sum) / 8;
	return bytes > 112 * 1024;
}

/* In the order of the text. */
static size_t arguments(struct dots *d, tl_arg *args)
{
	size_t n = 0;
	for (int k = 0; k < d->n; k++) {
		struct dot_step *s = &d->step[k];
		int64_t shape[3], stride[3];
		int32_t block[3];
		if (!s->array)
			continue;
		args[n++] = ptr(s->array);
		if (!s->through)
			continue;
		int rank = describe(d, s, shape, stride, block);
		if (s->through == BY_GIVEN) {
			s->given = tl_describe(d->type, address(s->array), rank, shape, block);
			memcpy(s->given.strides, stride, sizeof stride);
			args[n++] = tl_desc(&s->given);
		}
		for (int i = 0; i < rank; i++) {
			args[n++] = tl_int(shape[i]);
			args[n++] = tl_int(stride[i]);
		}
	}
	for (int v = 0; v < d->nvalues; v++)
		if (d->value[v].out)
			args[n++] = ptr(d->value[v].out);
	args[n++] = tl_int(d->trips);
	args[n++] = tl_int(d->rounds);
	return n;
}

static void dots_case(struct suite *s, int64_t seed, const char *left_out, bool more)
{
	if (!case_begin(s, NULL, "%lld.", (long long)seed))
		return;
	struct dots *d = calloc(1, sizeof *d);
	tl_arg args[STEPS * 8 + VALUES + 2];
	random_seed((uint64_t)seed);
	do {
		memset(d, 0, sizeof *d);
		make_dots(d, more);
	} while (!d->n || (!d->gradients && too_much(d)));
	if (left_out)
		drop(d, left_out);
	create_arrays(s, d);
	evaluate_dots(d);
	char *text = dots_text(d);
	tl_config config = {.grid = {1}, .num_warps = d->warps, .num_stages = d->stages};
	run_text(s, text, &config, args, arguments(d, args), "n = %d, rounds = %d", d->trips, d->rounds);
	for (int v = 0; v < d->nvalues; v++)
		free(d->value[v].at);
	for (int k = 0; k < d->n; k++)
		free(d->step[k].sums);
	free(d);
}

static void loop_of_dots(struct suite *s, int64_t seed, const char *left_out)
{
	dots_case(s, seed, left_out, false);
}

static void product_case(struct suite *s, int64_t seed, const char *left_out)
{
	dots_case(s, seed, left_out, true);
}

void theme_dots(struct suite *s)
{
	each_seed(s, "dots", 300, loop_of_dots);
}

void theme_products(struct suite *s)
{
	each_seed(s, "products", 100, product_case);
}

int shrink_dots(const char *command)
{
	return shrink_list(command, STEPS);
}
