/* The steps of a random pipelined loop. */
#include "pipelines.h"

static int new_value(struct pipelines *d, int kind, int rows, int columns)
{
	unsigned where = kind == CARRIED || kind == CARRIED_ROW ? ~0u : d->where;
	d->value[d->nvalues] = (struct pipe_value){.kind = kind, .rows = rows, .columns = columns, .where = where};
	return d->nvalues++;
}

static struct pipe_step *new_step(struct pipelines *d, enum pipe_kind kind, int to, int a, int b)
{
	struct pipe_step *s = &d->step[d->n++];
	*s = (struct pipe_step){.kind = kind, .to = to, .a = a, .b = b, .where = d->where, .parity = -1, .of = OF_TILE};
	s->moves = s->where;
	return s;
}

static bool has_room(const struct pipelines *d)
{
	return d->n + 6 < PIPE_STEPS && d->nvalues + 6 < PIPE_VALUES;
}

/* One of this kind and shape that is known in all loops at hand, or -1. 0 rows or columns: any. */
static int some_value(const struct pipelines *d, int kind, int rows, int columns)
{
	for (int tries = 0; tries < 16 && d->nvalues; tries++) {
		int v = random_below(d->nvalues);
		const struct pipe_value *x = &d->value[v];
		if ((int)x->kind == kind && (!rows || x->rows == rows) && (!columns || x->columns == columns) &&
		    (x->where & d->where) == d->where && (d->where || !x->where))
			return v;
	}
	return -1;
}

/* --- memory -------------------------------------------------------------------------------------------------- */

static void choose_conversion(const struct pipelines *d, struct pipe_step *s)
{
	static const int clean[] = {BY_POINTERS, BY_POINTERS, BY_POINTERS, BY_POINTERS, BY_WALK,  BY_BASE,
				    BY_RUN,      BY_RUN,      BY_MADE,     BY_MADE,     BY_GIVEN, BY_BLOCK},
			 bounded[] = {BY_POINTERS, BY_WALK, BY_WALK, BY_BASE, BY_BASE, BY_RUN},
			 mixed[] = {BY_POINTERS, BY_POINTERS, BY_POINTERS, BY_WALK,  BY_WALK, BY_BASE,    BY_RUN,
				    BY_PAGE,     BY_PAGE,     BY_PAGES,    BY_PAGES, BY_MADE, BY_ADVANCE, BY_BLOCK};
	s->through = d->bounded          ? bounded[random_below(COUNT(bounded))]
		     : d->style == CLEAN ? clean[random_below(COUNT(clean))]
					 : mixed[random_below(COUNT(mixed))];
	if (s->through == BY_PAGE || s->through == BY_PAGES)
		s->wide = false;
}

/* Rows and columns of memory that are there, for loads that compare with them. */
static void choose_bounds(const struct pipelines *d, struct pipe_step *s)
{
	struct pipe_place p = pipe_place(d, s);
	bool blocks = s->through >= BY_BLOCK;
	s->bound[0] = (int)p.all_rows, s->bound[1] = (int)p.all_columns;
	if (!blocks && chance(d->style == CLEAN ? 4 : 30))
		s->mask = 1 + random_below(d->where ? MASKS - 1 : MASKS - 2);
	if (!blocks && s->through < BY_PAGE && chance(d->bounded ? 95 : 10))
		s->mask = UP_TO_BOTH;
	bool both = s->mask == UP_TO_BOTH;
	if (s->mask == SOME_ROWS)
		s->bound[0] = (int)random_int(0, p.rows);
	else if (s->mask == SOME_ITERATIONS)
		s->bound[0] = (int)random_int(0, pipe_iterations(d));
	if (blocks || both ? chance(40) : s->mask == UP_TO_ROW)
		s->bound[0] -= random_below(p.rows + (s->bound[0] > p.rows));
	if (blocks || both ? chance(20) : s->mask == UP_TO_COLUMN)
		s->bound[1] -= random_below(p.columns);
	s->shifts = s->through == BY_POINTERS && s->moves && !s->wide && !s->mask && chance(d->nsegments > 1 ? 25 : 5);
	s->fill = s->mask && !blocks && d->style == RAGGED && chance(15);
}

static void choose_place(const struct pipelines *d, struct pipe_step *s)
{
	int bytes = bits_of(s->type) / 8, aligned = 16 / bytes;
	bool even = d->style == CLEAN || (d->style == MIXED && chance(80));
	s->turned = chance(35);
	if (bits_of(d->type) != 16 && d->side && chance(70)) /* wgmma wants k to be contiguous */
		s->turned = d->side == RIGHT;
	s->moves = d->where && chance(94);
	s->wide = s->moves && chance(d->bounded ? 65 : 40);
	s->of = chance(50) ? OF_TILE : random_below(OFS);
	choose_conversion(d, s);
	s->stated = chance(40);
	s->swapped = chance(50);
	s->apart = chance(40);
	s->pad = chance(75) ? 0 : d->style == CLEAN ? 16 * (int)random_int(1, 2) : aligned * (int)random_int(1, 2);
	if (!even && s->through < BY_MADE) {
		s->pad = random_below(4);
		s->skew = chance(30) ? random_below(4) : 0;
	}
	s->hint = chance(d->style == CLEAN ? 2 : 10) ? 1 + random_below(4) : 0;
	if (s->through >= BY_ADVANCE && chance(25))
		s->held = 1 + random_below(2);
	choose_bounds(d, s);
}

static tl_dtype stored_type(const struct pipelines *d)
{
	static const tl_dtype narrow[] = {TL_I8, TL_F8E4M3, TL_F8E5M2};
	if (chance(d->style == CLEAN ? 94 : 75))
		return d->type;
	if (d->type == TL_I8)
		return chance(50) ? TL_I32 : TL_I8;
	return chance(25) ? TL_F32 : chance(30) ? TL_F16 : narrow[random_below(COUNT(narrow))];
}

static int make_loaded(struct pipelines *d, int rows, int columns)
{
	struct pipe_step *s = new_step(d, P_LOAD, new_value(d, OPERAND, rows, columns), -1, -1);
	s->type = stored_type(d);
	choose_place(d, s);
	return s->to;
}

static int make_side(struct pipelines *d, int side, int rows, int columns)
{
	d->side = side;
	int v = make_loaded(d, rows, columns);
	d->side = ANY_SIDE;
	return v;
}

/* In front of the loops. */
static int make_early(struct pipelines *d, int rows, int columns)
{
	unsigned where = d->where;
	d->where = 0;
	int v = make_loaded(d, rows, columns);
	d->value[v].where = ~0u;
	d->where = where;
	return v;
}

/* --- operands ------------------------------------------------------------------------------------------------ */

static int make_operand(struct pipelines *d, int rows, int columns)
{
	int from = chance(25) ? some_value(d, OPERAND, rows, columns) : -1;
	if (from >= 0 || !has_room(d))
		return from;
	if (chance(15) && (from = some_value(d, RESULT, rows, columns)) >= 0)
		return new_step(d, P_CLAMP, new_value(d, OPERAND, rows, columns), from, -1)->to;
	if (chance(4) && (from = some_value(d, CARRIED, rows, columns)) >= 0)
		return new_step(d, P_CLAMP, new_value(d, OPERAND, rows, columns), from, -1)->to;
	if (chance(12) && (from = some_value(d, OPERAND, columns, rows)) >= 0)
		return new_step(d, P_TURN, new_value(d, OPERAND, rows, columns), from, -1)->to;
	if (chance(6) && (from = some_value(d, OPERAND, rows, columns)) >= 0)
		return new_step(d, P_NEGATE, new_value(d, OPERAND, rows, columns), from, -1)->to;
	return chance(12) ? make_early(d, rows, columns) : make_loaded(d, rows, columns);
}

static int make_row(struct pipelines *d, int rows, int columns, bool across)
{
	int v = some_value(d, ROW, across ? columns : rows, 1);
	if (v >= 0 && d->value[v].across == across && chance(60))
		return v;
	v = new_value(d, ROW, across ? columns : rows, 1);
	d->value[v].across = across;
	new_step(d, P_LINE, v, -1, -1)->of = random_below(OFS);
	return v;
}

/* Elements of result v beyond a diagonal that moves: in all iterations, or only from some on. */
static struct pipe_step *make_choice(struct pipelines *d, int v)
{
	struct pipe_step *s = new_step(d, P_WHERE, v, v, -1);
	s->form = random_below(3);
	s->bound[0] = chance(40) ? 4 : d->value[v].columns - 1 + random_below(4) * (s->form + 1);
	return s;
}

/* What else is done to result v; what it is then. */
static int make_work(struct pipelines *d, int v)
{
	const struct pipe_value x = d->value[v];
	int other = -1;
	if (!has_room(d))
		return v;
	switch (random_below(6)) {
	case 0:
		other = new_value(d, NUMBER, 1, 1);
		new_step(d, P_NUMBER, other, -1, -1)->of = random_below(OFS);
		break;
	case 1: other = make_row(d, x.rows, x.columns, chance(50)); break;
	case 2:
		other = make_loaded(d, x.rows, x.columns);
		other = new_step(d, P_LIFT, new_value(d, RESULT, x.rows, x.columns), other, -1)->to;
		break;
	case 3: make_choice(d, v); return v;
	default: return v;
	}
	enum pipe_kind kind = d->value[other].kind != RESULT && chance(60) ? P_TIMES : P_PLUS;
	return new_step(d, kind, new_value(d, RESULT, x.rows, x.columns), v, other)->to;
}

static int make_reduction(struct pipelines *d, int v, bool across)
{
	const struct pipe_value x = d->value[v];
	int row = new_value(d, ROW, across ? x.columns : x.rows, 1);
	d->value[row].across = across;
	new_step(d, P_REDUCE, row, v, -1)->form = random_below(3);
	return row;
}

static int some_sum(struct pipelines *d, int kind, int rows, int columns, bool across)
{
	int v = chance(40) ? some_value(d, kind, rows, columns) : -1;
	if (v >= 0 && d->value[v].across == across)
		return v;
	v = new_value(d, kind, rows, columns);
	d->value[v].across = across;
	return v;
}

static void rescale(struct pipelines *d, int sum, int v)
{
	const struct pipe_value x = d->value[sum];
	bool across = d->value[v].rows != x.rows || (d->value[v].columns == x.columns && chance(15));
	if ((across ? d->value[v].columns : d->value[v].rows) != (across ? x.columns : x.rows))
		return;
	new_step(d, P_RESCALE, sum, make_reduction(d, v, across), -1)->form = random_below(2);
}

/* What becomes of result v: at least one of the things that can. */
static void use_result(struct pipelines *d, int v)
{
	const struct pipe_value x = d->value[v];
	for (bool used = false; !used && has_room(d);) {
		if (chance(30)) {
			new_step(d, P_STORE, -1, v, -1)->parity = chance(20) ? random_below(2) : -1;
			used = true;
		}
		if (chance(35)) {
			int sum = some_sum(d, CARRIED, x.rows, x.columns, false);
			if (chance(20))
				rescale(d, sum, v);
			struct pipe_step *s = new_step(d, chance(80) ? P_ADD : P_KEEP, sum, v, -1);
			s->parity = chance(15) ? random_below(2) : -1;
			used = true;
		}
		if (chance(25)) {
			bool across = chance(25);
			int row = make_reduction(d, v, across);
			int most = some_sum(d, CARRIED_ROW, d->value[row].rows, 1, across);
			new_step(d, chance(50) ? P_MOST : P_ADD, most, row, -1);
			used = true;
		}
	}
}

/* --- patterns ------------------------------------------------------------------------------------------------ */

static int dot(struct pipelines *d, int a, int b)
{
	return new_step(d, P_DOT, new_value(d, RESULT, d->value[a].rows, d->value[b].columns), a, b)->to;
}

static void add_product(struct pipelines *d, int sum, int a, int b)
{
	struct pipe_step *s = new_step(d, P_SUM, sum, a, b);
	s->form = chance(12) ? NEGATED : random_below(2);
	s->parity = chance(7) ? random_below(2) : -1;
}

/* acc += a·b, perhaps acc2 += a·c too. */
static void make_matmul(struct pipelines *d)
{
	int m = d->dims[0], n = d->dims[1], k = d->dims[2], more = chance(d->pattern == MATMUL ? 12 : 25);
	int a = make_side(d, LEFT, m, k);
	for (int i = 0; i <= more; i++) {
		int b = make_side(d, RIGHT, k, n);
		if (chance(d->pattern == MATMUL ? 5 : 10) && has_room(d))
			use_result(d, make_work(d, dot(d, a, b)));
		else
			add_product(d, new_value(d, CARRIED, m, n), a, b);
	}
}

/* s = q·k, made to p; acc = acc * scale + p·v */
static void make_attention(struct pipelines *d)
{
	int m = d->dims[0], n = d->dims[1], k = d->dims[2];
	int q = chance(85) ? make_early(d, m, k) : make_loaded(d, m, k), keys;
	if (chance(50)) {
		keys = make_side(d, LEFT, n, k);
		keys = new_step(d, P_TURN, new_value(d, OPERAND, k, n), keys, -1)->to;
	} else {
		keys = make_side(d, RIGHT, k, n);
	}
	bool early = chance(40);
	int values = early ? make_side(d, RIGHT, n, k) : -1, s = dot(d, q, keys);
	if (chance(20))
		s = make_work(d, s);
	if (d->nsegments > 1 && d->where == (1u << d->nsegments) - 1 && chance(70)) {
		make_choice(d, s)->where = 1u << (d->nsegments - 1);
	} else if (chance(35)) {
		make_choice(d, s);
	}
	int sum = new_value(d, CARRIED, m, k);
	if (chance(60)) {
		int row = make_reduction(d, s, false), most = new_value(d, CARRIED_ROW, m, 1);
		if (chance(75))
			new_step(d, P_RESCALE, sum, row, -1)->form = random_below(2);
		new_step(d, chance(60) ? P_MOST : P_ADD, most, row, -1);
	}
	int p = new_step(d, P_CLAMP, new_value(d, OPERAND, m, n), s, -1)->to;
	if (!early)
		values = make_side(d, RIGHT, n, k);
	struct pipe_step *last = new_step(d, P_SUM, sum, p, values);
	last->form = random_below(2);
}

/* Products of any operands there are. */
static void make_products(struct pipelines *d)
{
	for (int i = (int)random_int(1, 4); i > 0 && has_room(d); i--) {
		int m = d->dims[random_below(3)], n = d->dims[random_below(3)], k = d->dims[random_below(3)];
		int a = make_operand(d, m, k), b = a < 0 || !has_room(d) ? -1 : make_operand(d, k, n);
		if (b < 0 || !has_room(d))
			continue;
		if (chance(55))
			add_product(d, some_sum(d, CARRIED, m, n, false), a, b);
		else
			use_result(d, make_work(d, dot(d, a, b)));
	}
}

/* Each product an operand of the next. */
static void make_chain(struct pipelines *d)
{
	int m = d->dims[0], k = d->dims[2], a = make_operand(d, m, k);
	for (int i = 0, n = (int)random_int(2, 3); i < n && a >= 0 && has_room(d); i++) {
		int to = d->dims[1 + i % 2], b = make_operand(d, k, to);
		if (b < 0 || !has_room(d))
			return;
		if (i == n - 1) {
			add_product(d, new_value(d, CARRIED, m, to), a, b);
			return;
		}
		int s = make_work(d, dot(d, a, b));
		if (chance(30) && has_room(d))
			use_result(d, s);
		a = new_step(d, P_CLAMP, new_value(d, OPERAND, m, to), s, -1)->to;
		k = to;
	}
}

/* Without a dot: what is loaded is summed, or stored, or makes up a recurrence. */
static void make_plain(struct pipelines *d)
{
	int m = d->dims[0], n = d->dims[1], sum = -1;
	for (int i = (int)random_int(1, 2); i > 0 && has_room(d); i--) {
		int v = new_step(d, P_LIFT, new_value(d, RESULT, m, n), make_loaded(d, m, n), -1)->to;
		if (chance(40)) {
			sum = new_value(d, CARRIED, m, n);
			new_step(d, P_ADD, sum, v, -1);
		} else {
			use_result(d, make_work(d, v));
		}
	}
	if (sum >= 0 && chance(60) && has_room(d)) {
		int row = make_reduction(d, sum, chance(50));
		new_step(d, P_STORE, -1, row, -1);
		if (chance(50))
			new_step(d, P_RESCALE, sum, row, -1)->form = random_below(2);
	}
}

/* --- one after another --------------------------------------------------------------------------------------- */

static void make_pattern(struct pipelines *d)
{
	int what = random_below(100);
	if (d->pattern == MATMUL || (!d->pattern && what < 25))
		make_matmul(d);
	else if (d->pattern == ATTENTION || what < 50)
		make_attention(d);
	else if (what < 75)
		make_products(d);
	else if (what < 88)
		make_chain(d);
	else
		make_plain(d);
}

/* A load becomes one of memory that the kernel writes too: a tile in place of what this or the next iteration reads, or
 * ones in place of what the next tile does. */
static void make_writes(struct pipelines *d)
{
	for (int k = 0, n = d->n; k < n && has_room(d); k++) {
		struct pipe_step *s = &d->step[k];
		if (s->kind != P_LOAD || !s->moves || s->type != d->type || !chance(70))
			continue;
		s->through = BY_POINTERS;
		s->mask = NO_MASK;
		s->held = BY_ITSELF;
		s->shifts = false;
		if (d->tiles > 1 || chance(30)) {
			d->where = 0;
			new_step(d, P_AFTER, -1, -1, k)->form = chance(60) ? 0 : random_below(pipe_iterations(d) + 1);
		} else {
			const struct pipe_value *v = &d->value[s->to];
			d->where = s->where;
			int a = new_step(d, P_NEGATE, new_value(d, OPERAND, v->rows, v->columns), s->to, -1)->to;
			new_step(d, P_WRITE, -1, a, k)->form = chance(75);
		}
		return;
	}
}

/* The loop `where` does the same as the first one, with operands from elsewhere. */
static void repeat_steps(struct pipelines *d, unsigned where)
{
	int to[PIPE_VALUES], values = d->nvalues;
	bool alike = chance(60); /* but for the arrays */
	for (int v = 0; v < values; v++) {
		struct pipe_value x = d->value[v];
		to[v] = v;
		if (x.where == 1) {
			to[v] = d->nvalues++;
			d->value[to[v]] = x;
			d->value[to[v]].where = where;
		}
	}
	for (int k = 0, n = d->n; k < n; k++) {
		struct pipe_step s = d->step[k];
		if (s.where != 1)
			continue;
		s.stated |= alike;
		d->step[k].stated = s.stated;
		s.where = where;
		s.to = s.to < 0 ? -1 : to[s.to];
		s.a = s.a < 0 ? -1 : to[s.a];
		s.b = s.b < 0 ? -1 : to[s.b];
		d->step[d->n++] = s;
	}
}

static bool has_room_twice(const struct pipelines *d)
{
	return 2 * d->n + 6 < PIPE_STEPS && 2 * d->nvalues + 6 < PIPE_VALUES;
}

void pipe_make_steps(struct pipelines *d)
{
	unsigned all = (1u << d->nsegments) - 1;
	if (d->nsegments > 1 && chance(30)) {
		bool repeats = chance(60);
		for (int i = 0; i < d->nsegments; i++) {
			d->where = 1u << i;
			if (i == 1 && repeats && has_room_twice(d))
				repeat_steps(d, d->where);
			else
				make_pattern(d);
		}
	} else {
		d->where = all;
		make_pattern(d);
	}
	int v = some_value(d, CARRIED, 0, 0);
	if (v >= 0 && chance(12) && has_room(d)) {
		int past = new_step(d, P_PAST, new_value(d, RESULT, d->value[v].rows, d->value[v].columns), v, -1)->to;
		new_step(d, P_STORE, -1, past, -1)->parity = chance(50) ? random_below(2) : -1;
	}
	if (chance(5) && has_room(d))
		make_loaded(d, d->dims[0], d->dims[1]); /* which nobody takes */
	if (d->writes)
		make_writes(d);
}
