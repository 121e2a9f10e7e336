/* test-random --kind pipelines: random loops to be pipelined (pipelines.h). */
#include "pipelines.h"

/* --- making -------------------------------------------------------------------------------------------------- */

int pipe_tiles(const struct pipelines *d, const struct pipe_step *s)
{
	int n = s->of == OF_TILE ? d->tiles : s->of == OF_HALF ? (d->tiles + 1) / 2 : s->of == OF_REST ? 2 : 1;
	return n > 0 ? n : 1;
}

struct pipe_place pipe_place(const struct pipelines *d, const struct pipe_step *s)
{
	if (s->to < 0)
		return (struct pipe_place){0};
	const struct pipe_value *v = &d->value[s->to];
	struct pipe_place p = {.rows = s->turned ? v->columns : v->rows, .columns = s->turned ? v->rows : v->columns};
	int tiles = pipe_tiles(d, s), n = s->moves && pipe_iterations(d) ? pipe_iterations(d) : 1;
	p.all_rows = (int64_t)p.rows * (tiles * (s->wide ? 1 : n) + (s->shifts ? d->nsegments : 0));
	p.all_columns = (int64_t)p.columns * (s->wide ? n : 1);
	p.distance = p.all_columns + s->pad;
	return p;
}

static int some_dim(const struct pipelines *d)
{
	int least = bits_of(d->type) == 8 ? 32 : 16;
	int x = chance(50) ? 64 : chance(40) ? 32 : chance(50) ? 128 : 16;
	return x < least ? least : x;
}

static void choose_grid(struct pipelines *d)
{
	int what = random_below(100);
	d->outer = what < 45 ? GRID : what < 52 ? PLANE : what < 72 ? IN_TURN : PERSISTENT;
	d->writes = chance(13);
	if (d->writes) /* in an order that is known */
		d->outer = chance(30) ? GRID : IN_TURN;
	d->tiles = d->outer == GRID || d->outer == PLANE ? (int)random_int(1, 3) : random_below(5);
	d->split = d->outer == IN_TURN && chance(20) ? 1 + random_below(2) : 0;
	if (d->outer == PLANE || d->split == 2 || d->writes)
		d->tiles = 2 * (d->writes ? 1 + d->tiles % 2 : d->tiles % 3);
	if (d->writes && d->outer == GRID)
		d->tiles = 1;
	d->programs = d->outer == IN_TURN ? 1 : d->outer == PERSISTENT ? (int)random_int(1, 3) : d->tiles;
	d->counted = d->outer >= IN_TURN && !d->split && chance(12);
	d->fresh = d->outer < IN_TURN || chance(75);
	d->flatten = d->outer >= IN_TURN && chance(70);
	d->adds = chance(6);
	d->under = chance(7) ? random_below(d->tiles + 1) : -1;
	d->max_ctas = chance(60) ? (int)random_int(1, 3) : 0;
}

static void choose_numbers(struct pipelines *d)
{
	d->halved = chance(35);
	d->rooms = chance(12);
	d->early = (d->outer == GRID || d->outer == IN_TURN) && chance(15) ? (int)random_int(1, 2) : 0;
}

static void choose_loops(struct pipelines *d)
{
	d->nsegments = chance(d->pattern == ATTENTION ? 35 : d->pattern == MATMUL ? 85 : 70) ? 1 : chance(80) ? 2 : 3;
	for (int i = 0; i < d->nsegments; i++) {
		int least = !chance(15), most = d->nsegments > 1 ? 3 : chance(70) ? 5 : 10;
		d->bound[i + 1] = d->bound[i] + (int)random_int(least, most);
		if (i && chance(20)) /* none, and others have been done before */
			d->bound[i + 1] = random_below(d->bound[i] + 1);
	}
	if (chance(d->nsegments > 1 ? 12 : 4)) /* the first one begins further on, perhaps behind its end */
		d->bound[0] = random_below(d->bound[1] + 1 + 2 * (d->nsegments > 1));
	d->unit = chance(50) ? 1 : d->dims[random_below(3)];
	d->offset = chance(8) ? (int)random_int(-3, 40) : 0;
	d->step_by = chance(88) ? 1 : chance(50) ? 2 : -1;
	d->ends = chance(d->flatten ? 60 : 75) ? NO_ENDS : chance(50) ? ENDS_LOADED : ENDS_COMPUTED;
	d->end[0] = random_below(3), d->end[1] = random_below(4);
	d->shortens = d->ends == ENDS_LOADED && d->outer == IN_TURN && !d->split && chance(80);
	d->gap = d->nsegments > 1 && d->step_by > 0 && chance(12);
	d->multiplied = d->ends || (d->unit > 1 && chance(75));
	d->long_index = chance(6);
	d->literal = chance(50);
	d->asked = chance(25);
	d->whiles = chance(8);
	d->option = chance(85) ? 0 : random_below(4);
}

static void more_programs_than_blocks(struct pipelines *d)
{
	d->outer = chance(75) ? GRID : PLANE;
	d->split = 0;
	d->counted = false;
	d->max_ctas = (int)random_int(1, 3);
	d->tiles = d->programs = d->max_ctas + (int)random_int(1, 2);
	if (d->outer == PLANE) {
		d->tiles = d->programs = 2 * (int)random_int(1, 3);
		d->max_ctas = 1;
	}
	d->under = -1;
}

/* A product as large as tensor cores like, most often with buffers so large that a block has the multiprocessor for
 * itself. */
static void choose_product(struct pipelines *d)
{
	d->dims[0] = 64 << random_below(2);
	d->dims[1] = 64 << random_below(2);
	d->dims[2] = bits_of(d->type) == 32 ? 64 : 128;
	d->stages = chance(80) ? (int)random_int(4, 5) : 2;
	d->warps = d->dims[0] / 16;
	if (chance(65) && !d->writes)
		more_programs_than_blocks(d);
	if (chance(d->flatten ? 50 : 70)) {
		d->ends = NO_ENDS;
		d->shortens = false;
		d->multiplied = d->unit > 1;
		d->adds = false;
	}
	d->unit = d->unit > 1 ? d->dims[random_below(3)] : 1;
	d->fresh |= d->outer < IN_TURN;
	d->shortens &= d->outer == IN_TURN;
	d->flatten &= d->outer >= IN_TURN;
}

static void choose_attention(struct pipelines *d)
{
	d->warps = chance(40) ? 4 : 8;
	d->dims[0] = 16 * d->warps;
	d->dims[1] = d->dims[2] = 64;
	if (chance(25))
		d->dims[1 + random_below(2)] = 32;
	d->stages = chance(20) ? 2 : (int)random_int(3, 4);
	if (chance(35)) { /* buffers that leave no room for another block */
		d->warps = 8;
		d->dims[0] = d->dims[2] = 128;
		d->dims[1] = chance(75) ? 64 : 128;
		d->stages = d->dims[1] == 64 ? 4 : (int)random_int(2, 3);
		d->nsegments = chance(50) ? 1 : d->nsegments;
		if (chance(60) &&
		    !d->writes) { /* a producer goes on, and the queries of the next tile come meanwhile */
			more_programs_than_blocks(d);
			d->nsegments = chance(85) ? 1 : d->nsegments;
			d->bound[0] = 0;
			d->bound[1] = (int)random_int(1, 2);
			d->ends = chance(85) ? NO_ENDS : d->ends;
			d->shortens = d->flatten = false;
			d->fresh = true;
		}
	}
	d->unit = d->unit > 1 ? d->dims[1] : 1;
	d->step_by = chance(95) ? 1 : d->step_by;
	if (d->nsegments > 1 && chance(60)) { /* one can go on with the buffers of the other */
		d->offset = 0;
		d->literal = true;
		d->long_index = false;
		d->multiplied |= d->unit > 1;
		if (chance(20)) /* the first one has no iterations; or the second one */
			d->bound[0] = d->bound[1] + 1;
		else if (chance(20))
			d->bound[2] = random_below(d->bound[1] + 1);
	}
	if (d->nsegments > 1 && chance(40)) { /* the second loop begins in the midst of a step */
		d->step_by = 2, d->unit = 1, d->offset = 0;
		d->literal = true;
		d->multiplied = d->long_index = false;
		d->ends = NO_ENDS;
		d->shortens = false;
		d->bound[0] = 0;
		d->bound[1] |= 1;
		d->bound[2] = d->bound[2] > d->bound[1] ? d->bound[2] : d->bound[1] + 1;
	}
}

static void make_pipelines(struct pipelines *d)
{
	static const tl_dtype types[] = {TL_F16, TL_F16, TL_F16, TL_BF16, TL_BF16, TL_F8E4M3, TL_F8E5M2, TL_I8, TL_F32};
	d->pattern = chance(42) ? NO_PATTERN : chance(52) ? MATMUL : ATTENTION;
	d->type = types[d->pattern && chance(60) ? random_below(5) : random_below(COUNT(types))];
	d->sum = d->type == TL_I8 ? TL_I32 : TL_F32;
	d->precision = chance(65) ? 0 : random_below(4);
	for (int i = 0; i < 3; i++)
		d->dims[i] = some_dim(d);
	d->warps = chance(55) ? 4 : chance(65) ? 8 : 1 << random_below(2);
	if (chance(30))
		d->dims[0] = 16 * d->warps < 32 ? 32 : 16 * d->warps;
	d->stages = chance(88) ? (int)random_int(2, 6) : 1;
	d->style = chance(d->pattern ? 85 : 40) ? CLEAN : chance(70) ? MIXED : RAGGED;
	d->bounded = d->style == CLEAN && chance(40);
	choose_grid(d);
	choose_loops(d);
	if (d->pattern == MATMUL)
		choose_product(d);
	else if (d->pattern == ATTENTION)
		choose_attention(d);
	if (d->bounded) { /* from 0 on, as boxes of tensors want it */
		d->offset = d->bound[0] = 0;
		d->step_by = 1;
		d->literal = true;
		d->long_index = false;
		d->unit = chance(50) ? 1 : d->unit;
	}
	pipe_make_steps(d);
	choose_numbers(d);
	for (int k = 0; k < d->n; k++)
		if (d->step[k].kind == P_LOAD && d->step[k].through >= BY_BLOCK)
			d->long_index = false; /* their places have 32 bits */
}

/* Does it take too long, or more registers and memory than there are? */
static bool too_much(const struct pipelines *d)
{
	int64_t work = 0, registers = 0;
	int bytes = 0, arguments = 0;
	for (int k = 0; k < d->n; k++) {
		const struct pipe_step *s = &d->step[k];
		const struct pipe_value *a = s->a < 0 ? NULL : &d->value[s->a];
		if (s->kind == P_DOT || s->kind == P_SUM)
			work += (int64_t)a->rows * a->columns * d->value[s->b].columns;
		if (s->kind == P_LOAD)
			bytes += d->value[s->to].rows * d->value[s->to].columns * bits_of(d->type) / 8;
		arguments += 1 + 3 * (s->kind == P_LOAD);
	}
	for (int v = 0; v < d->nvalues; v++)
		if (d->value[v].kind == RESULT || d->value[v].kind == CARRIED)
			registers += d->value[v].rows * d->value[v].columns / (32 * d->warps);
	return work * d->tiles * pipe_iterations(d) > 20000000 || registers > 320 || bytes > 100000 ||
	       arguments + 24 > PIPE_ARGS;
}

/* --- leaving out --------------------------------------------------------------------------------------------- */

/* Numbers from PIPE_STEPS on: properties of the whole. */
enum {
	NOT_FLAT = PIPE_STEPS,
	NOT_UNDER,
	NOT_ENDED,
	NOT_ASKED,
	NO_OPTION,
	NOT_MULTIPLIED,
	PLAIN_SUMS,
	NOT_COUNTED,
	NO_GAP,
	NO_WHILES,
	NOT_HALVED,
	NO_ROOMS,
	NOT_EARLY,
	NO_MORE
};

static void drop_property(struct pipelines *d, int which)
{
	switch (which) {
	case NOT_FLAT: d->flatten = false; break;
	case NOT_UNDER: d->under = -1; break;
	case NOT_ENDED: d->ends = NO_ENDS, d->shortens = false; break;
	case NOT_ASKED: d->asked = false; break;
	case NO_OPTION: d->option = 0; break;
	case NOT_MULTIPLIED: d->multiplied = d->ends; break;
	case PLAIN_SUMS: d->adds = false; break;
	case NOT_COUNTED: d->counted = false; break;
	case NO_GAP: d->gap = 0; break;
	case NO_WHILES: d->whiles = false; break;
	case NOT_HALVED: d->halved = false; break;
	case NO_ROOMS: d->rooms = false; break;
	case NOT_EARLY: d->early = 0;
	}
}

static void drop(struct pipelines *d, const char *list)
{
	bool gone[PIPE_VALUES] = {false};
	for (const char *s = list + strspn(list, ","); *s; s += strcspn(s, ","), s += strspn(s, ","))
		if (atoi(s) < d->n)
			d->step[atoi(s)].dead = true;
		else
			drop_property(d, atoi(s));
	for (int i = 0; i < d->n; i++) {
		struct pipe_step *s = &d->step[i];
		bool writes = s->kind == P_WRITE || s->kind == P_AFTER;
		s->dead |= (s->a >= 0 && gone[s->a]) || (s->b >= 0 && (writes ? d->step[s->b].dead : gone[s->b]));
		int kind = s->to < 0 ? OPERAND : d->value[s->to].kind;
		if (s->dead && s->to >= 0 && s->to != s->a && kind != CARRIED && kind != CARRIED_ROW)
			gone[s->to] = true;
	}
}

int shrink_pipelines(const char *command)
{
	return shrink_list(command, NO_MORE);
}

/* --- a case -------------------------------------------------------------------------------------------------- */

static bool is_written(const struct pipelines *d, int k)
{
	for (int i = 0; i < d->n; i++)
		if ((d->step[i].kind == P_WRITE || d->step[i].kind == P_AFTER) && !d->step[i].dead && d->step[i].b == k)
			return true;
	return false;
}

static void fill_table(struct suite *s, const struct pipelines *d, struct pipe_step *x, const char *name)
{
	struct pipe_place p = pipe_place(d, x);
	size_t pages = (size_t)(p.all_rows / (x->through == BY_PAGE ? p.rows : 1));
	x->table = inout(s, name, TL_I32, pages);
	for (size_t i = 0; i < pages; i++)
		set_int(x->table, i, random_below((int)pages));
}

static void create_loaded(struct suite *s, struct pipelines *d, int k, const char *name, const char *table)
{
	struct pipe_step *x = &d->step[k];
	const struct pipe_value *v = &d->value[x->to];
	struct pipe_place p = pipe_place(d, x);
	int most = x->kind == P_LOAD ? 2 : 1;
	if (x->kind == P_LOAD) {
		size_t len = (size_t)((p.all_rows - 1) * p.distance + p.all_columns);
		x->array = is_written(d, k) ? inout(s, name, x->type, len) : in_at(s, name, x->type, len, x->skew);
	} else {
		int n = x->moves && pipe_iterations(d) ? pipe_iterations(d) : 1;
		x->array = in(s, name, d->sum, (size_t)(pipe_tiles(d, x) * n * v->rows));
	}
	for (size_t i = 0; i < x->array->len; i++)
		if (is_float(x->array->dtype))
			set(x->array, i, (double)random_int(-most, most));
		else
			set_int(x->array, i, random_int(-most, most));
	x->memory = calloc(x->array->len, sizeof *x->memory);
	if (x->kind == P_LOAD && (x->through == BY_PAGE || x->through == BY_PAGES))
		fill_table(s, d, x, table);
	if (x->kind == P_LOAD && x->through == BY_GIVEN) {
		int64_t shape[] = {x->bound[0], x->bound[1]}, stride[] = {p.distance, 1};
		int32_t block[] = {p.rows, p.columns};
		x->given = tl_describe(x->type, address(x->array), 2, shape, block);
		memcpy(x->given.strides, stride, sizeof stride);
	}
}

static void create_out(struct suite *s, struct pipelines *d, struct pipe_value *x, const char *name)
{
	size_t size = (size_t)(x->rows * x->columns), n = (size_t)(d->fresh ? d->tiles : d->programs);
	x->out = d->adds ? inout(s, name, d->sum, size * (n ? n : 1)) : out(s, name, d->sum, size * (n ? n : 1));
	for (size_t i = 0; i < x->out->len && d->adds; i++)
		if (is_float(d->sum))
			set(x->out, i, 0);
		else
			set_int(x->out, i, 0);
}

static void create_arrays(struct suite *s, struct pipelines *d)
{
	static char names[PIPE_STEPS + PIPE_VALUES][16], tables[PIPE_STEPS][16];
	int n = pipe_iterations(d);
	for (int k = 0; k < d->n; k++) {
		struct pipe_step *x = &d->step[k];
		snprintf(names[k], sizeof names[k], "p%d", k);
		snprintf(tables[k], sizeof tables[k], "t%d", k);
		if (x->dead)
			continue;
		if (x->kind == P_LOAD || x->kind == P_NUMBER || x->kind == P_LINE) {
			create_loaded(s, d, k, names[k], tables[k]);
		} else if (x->kind == P_STORE) {
			size_t size = (size_t)(d->value[x->a].rows * d->value[x->a].columns);
			x->array = out(s, names[k], d->sum, size * (size_t)(n && d->tiles ? n * d->tiles : 1));
		}
	}
	for (int v = 0; v < d->nvalues; v++) {
		struct pipe_value *x = &d->value[v];
		snprintf(names[PIPE_STEPS + v], sizeof *names, "o%d", v);
		x->at = calloc((size_t)(x->rows * x->columns), sizeof *x->at);
		if (x->kind == CARRIED || x->kind == CARRIED_ROW)
			create_out(s, d, x, names[PIPE_STEPS + v]);
	}
	if (d->rooms) {
		d->room = inout(s, "room", TL_I32, 2 * PIPE_STEPS);
		for (int k = 0; k < d->n; k++) {
			int64_t from = random_int(-1000, 1000);
			set_int(d->room, 2 * (size_t)k, from);
			set_int(d->room, 2 * (size_t)k + 1, from + d->step[k].bound[d->step[k].mask == UP_TO_COLUMN]);
		}
	}
	if (d->ends == ENDS_LOADED) {
		d->lengths = inout(s, "lengths", TL_I32, (size_t)(d->tiles ? d->tiles : 1));
		for (int i = 0; i < d->tiles; i++)
			set_int(d->lengths, (size_t)i, random_below(n + 1));
	}
}

static void launch_kernel(struct suite *s, struct pipelines *d)
{
	tl_arg args[PIPE_ARGS * 2];
	size_t nargs;
	char *text = pipe_text(d, args, &nargs);
	uint32_t x = (uint32_t)(d->outer == PLANE ? d->programs / 2 : d->programs);
	tl_config config = {.grid = {x + (uint32_t)d->early, d->outer == PLANE ? 2 : 1, 1},
			    .num_warps = d->warps,
			    .num_stages = d->stages,
			    .max_ctas = d->max_ctas};
	run_text(s, text, &config, args, nargs, "grid %u", x);
}

static void free_pipelines(struct pipelines *d)
{
	for (int v = 0; v < d->nvalues; v++)
		free(d->value[v].at);
	for (int k = 0; k < d->n; k++)
		free(d->step[k].memory);
	free(d);
}

static void pipelines_case(struct suite *s, int64_t seed, const char *left_out)
{
	if (!case_begin(s, NULL, "%lld.", (long long)seed))
		return;
	struct pipelines *d = calloc(1, sizeof *d);
	random_seed((uint64_t)seed);
	do {
		memset(d, 0, sizeof *d);
		make_pipelines(d);
	} while (too_much(d));
	if (left_out)
		drop(d, left_out);
	create_arrays(s, d);
	if (pipe_evaluate(d, false)) {
		pipe_evaluate(d, true);
		launch_kernel(s, d);
	} else {
		case_skip(s, "its numbers grow too large");
		case_end(s);
	}
	free_pipelines(d);
}

void theme_random_pipelines(struct suite *s)
{
	each_seed(s, "pipelines", 100, pipelines_case);
}
