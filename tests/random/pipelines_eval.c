/* The evaluation of random pipelined loops, in double. */
#include "pipelines.h"

struct run {
	struct pipelines *d;
	bool wants;
	int program, tile, loop, k; /* k: the iteration, from 0 */
};

static int which(const struct pipe_step *s, int tile)
{
	switch (s->of) {
	case OF_TILE: return tile;
	case OF_HALF: return tile / 2;
	case OF_REST: return tile % 2;
	default: return 0;
	}
}

/* The number of the tile that s reads or writes, in what memory holds. */
static int64_t tile_of(const struct run *r, const struct pipe_step *s)
{
	int n = pipe_iterations(r->d);
	int shift = s->shifts ? r->loop + 1 : 0;
	return s->moves ? (int64_t)which(s, r->tile) * n + r->k + shift : which(s, r->tile);
}

static bool is_there(const struct run *r, const struct pipe_step *s, int i, int64_t row, int64_t column)
{
	if (s->through >= BY_BLOCK)
		return row < s->bound[0] && column < s->bound[1];
	switch (s->mask) {
	case SOME_ROWS: return i < s->bound[0];
	case UP_TO_ROW: return row < s->bound[0];
	case UP_TO_COLUMN: return column < s->bound[1];
	case UP_TO_BOTH: return row < s->bound[0] && column < s->bound[1];
	case SOME_ITERATIONS: return r->k < s->bound[0];
	default: return true;
	}
}

/* Where element (i, j) of the tile, as memory holds it, is. */
static size_t element(const struct run *r, const struct pipe_step *s, int i, int j, int64_t *row, int64_t *column)
{
	struct pipe_place p = pipe_place(r->d, s);
	int64_t tile = tile_of(r, s);
	*row = s->wide ? (int64_t)which(s, r->tile) * p.rows + i : tile * p.rows + i;
	*column = s->wide ? (int64_t)r->k * p.columns + j : j;
	if (s->through == BY_PAGE)
		*row = value_int(s->table, (size_t)tile) * p.rows + i;
	else if (s->through == BY_PAGES)
		*row = value_int(s->table, (size_t)*row);
	return (size_t)(*row * p.distance + *column);
}

static void load(const struct run *r, const struct pipe_step *s)
{
	struct pipe_value *to = &r->d->value[s->to];
	int64_t row, column;
	for (int i = 0; i < to->rows; i++)
		for (int j = 0; j < to->columns; j++) {
			int down = s->turned ? j : i, right = s->turned ? i : j;
			size_t at = element(r, s, down, right, &row, &column);
			to->at[i * to->columns + j] = is_there(r, s, down, row, column) ? s->memory[at] : s->fill;
		}
}

static void keep(const struct run *r, struct array *o, size_t at, double v)
{
	if (!r->wants)
		return;
	if (is_float(o->dtype))
		want(o, at, v);
	else
		want_int(o, at, (int64_t)v);
}

/* Writes a, or ones if that is NULL, to where load `number` reads in iteration k of a tile. */
static void write_back(const struct run *r, int number, int tile, int k, const struct pipe_value *a)
{
	struct pipe_step *to = &r->d->step[number];
	const struct pipe_value *v = &r->d->value[to->to];
	struct run then = *r;
	int64_t row, column;
	then.tile = tile, then.k = k;
	for (int i = 0; i < v->rows && k < pipe_iterations(r->d) && tile < r->d->tiles; i++)
		for (int j = 0; j < v->columns; j++) {
			size_t at = element(&then, to, to->turned ? j : i, to->turned ? i : j, &row, &column);
			to->memory[at] = a ? a->at[i * v->columns + j] : 1;
			keep(r, to->array, at, to->memory[at]);
		}
}

static void product(const struct pipelines *d, const struct pipe_step *s)
{
	const struct pipe_value *a = &d->value[s->a], *b = &d->value[s->b], *to = &d->value[s->to];
	double factor = s->kind == P_DOT ? 0 : s->form == NEGATED ? -1 : 1;
	for (int i = 0; i < to->rows * to->columns; i++)
		to->at[i] *= factor;
	for (int i = 0; i < to->rows; i++)
		for (int k = 0; k < a->columns; k++) {
			double x = a->at[i * a->columns + k];
			for (int j = 0; x != 0 && j < to->columns; j++)
				to->at[i * to->columns + j] += x * b->at[k * b->columns + j];
		}
}

static double reduced(const struct pipe_step *s, double so_far, double x, bool first)
{
	if (first)
		return x;
	return s->form == 0 ? fmax(so_far, x) : s->form == 1 ? so_far + x : fmin(so_far, x);
}

static void reduce(const struct pipelines *d, const struct pipe_step *s)
{
	const struct pipe_value *a = &d->value[s->a], *to = &d->value[s->to];
	for (int i = 0; i < a->rows; i++)
		for (int j = 0; j < a->columns; j++) {
			int at = to->across ? j : i;
			to->at[at] = reduced(s, to->at[at], a->at[i * a->columns + j], to->across ? i == 0 : j == 0);
		}
}

/* Element (i, j) of a tile, a row or a number. */
static double spread(const struct pipe_value *v, int i, int j)
{
	return v->kind == NUMBER ? v->at[0] : v->kind == ROW ? v->at[v->across ? j : i] : v->at[i * v->columns + j];
}

static void step_element(const struct run *r, const struct pipe_step *s, int i, int j)
{
	const struct pipelines *d = r->d;
	const struct pipe_value *a = &d->value[s->a], *to = s->to < 0 ? a : &d->value[s->to];
	int e = i * to->columns + j;
	switch (s->kind) {
	case P_TURN: to->at[e] = a->at[j * a->columns + i]; break;
	case P_NEGATE: to->at[e] = -a->at[e]; break;
	case P_CLAMP: to->at[e] = fmin(fmax(a->at[e], -2), 2); break;
	case P_PLUS: to->at[e] = a->at[e] + spread(&d->value[s->b], i, j); break;
	case P_TIMES: to->at[e] = a->at[e] * spread(&d->value[s->b], i, j); break;
	case P_WHERE:
		if (i + s->bound[0] < j + r->k * (s->form + 1))
			to->at[e] = -1;
		break;
	case P_ADD: to->at[e] += a->at[e]; break;
	case P_MOST: to->at[e] = fmax(to->at[e], a->at[e]); break;
	case P_RESCALE:
		if (spread(a, i, j) > s->form * 3)
			to->at[e] = -to->at[e];
		break;
	case P_PAST: to->at[e] = 2 * a->at[e]; break;
	case P_STORE:
		keep(r, s->array, (size_t)tile_of(r, s) * (size_t)(to->rows * to->columns) + (size_t)e, a->at[e]);
		break;
	default: to->at[e] = a->at[e];
	}
}

static void evaluate_step(const struct run *r, const struct pipe_step *s)
{
	const struct pipelines *d = r->d;
	if (s->dead || (s->parity >= 0 && r->k % 2 != s->parity))
		return;
	if (s->kind == P_AFTER) {
		write_back(r, s->b, r->tile + 1, s->form, NULL);
		return;
	}
	const struct pipe_value *to = &d->value[s->to < 0 ? s->a : s->to];
	switch (s->kind) {
	case P_LOAD: load(r, s); break;
	case P_NUMBER:
	case P_LINE:
		for (int i = 0; i < to->rows; i++)
			to->at[i] = s->memory[(size_t)tile_of(r, s) * (size_t)to->rows + (size_t)i];
		break;
	case P_DOT:
	case P_SUM: product(d, s); break;
	case P_REDUCE: reduce(d, s); break;
	case P_WRITE: write_back(r, s->b, r->tile, r->k + s->form, &d->value[s->a]); break;
	default:
		for (int i = 0; i < to->rows; i++)
			for (int j = 0; j < to->columns; j++)
				step_element(r, s, i, j);
	}
	for (int i = 0; i < to->rows * to->columns; i++)
		r->d->bad |= fabs(to->at[i]) > (1 << 23);
}

static void begin_sums(const struct pipelines *d)
{
	for (int v = 0; v < d->nvalues; v++)
		for (int i = 0; i < d->value[v].rows * d->value[v].columns; i++)
			if (d->value[v].kind == CARRIED || d->value[v].kind == CARRIED_ROW)
				d->value[v].at[i] = 0;
}

static void store_sums(const struct run *r)
{
	const struct pipelines *d = r->d;
	for (int v = 0; v < d->nvalues; v++) {
		const struct pipe_value *x = &d->value[v];
		size_t size = (size_t)(x->rows * x->columns), first = (size_t)(d->fresh ? r->tile : r->program) * size;
		for (size_t i = 0; i < size && (x->kind == CARRIED || x->kind == CARRIED_ROW); i++)
			if (x->out)
				keep(r, x->out, first + i, x->at[i]);
	}
}

int pipe_iterations(const struct pipelines *d)
{
	int n = 0;
	for (int i = 1; i <= d->nsegments; i++)
		n = d->bound[i] > n ? d->bound[i] : n;
	return n;
}

static int end_of(const struct pipelines *d, int tile)
{
	int end = pipe_iterations(d);
	if (d->shortens && tile > 0)
		end = 1;
	else if (d->ends == ENDS_LOADED)
		end = (int)value_int(d->lengths, (size_t)tile);
	else if (d->ends == ENDS_COMPUTED && d->end[0] * tile + d->end[1] < end)
		end = d->end[0] * tile + d->end[1];
	return end;
}

static void run_loop(struct run *r, int loop, int end)
{
	const struct pipelines *d = r->d;
	int first = d->bound[loop] < end ? d->bound[loop] : end,
	    last = d->bound[loop + 1] < end ? d->bound[loop + 1] : end;
	int by = d->step_by;
	r->loop = loop;
	first += loop == 1 ? d->gap : 0;
	for (r->k = by < 0 ? last - 1 : first; by < 0 ? r->k >= first : r->k < last; r->k += by)
		for (int i = 0; i < d->n; i++)
			if (d->step[i].where >> loop & 1)
				evaluate_step(r, &d->step[i]);
}

static void run_tile(struct run *r)
{
	const struct pipelines *d = r->d;
	if (d->fresh)
		begin_sums(d);
	r->k = 0;
	for (int i = 0; i < d->n; i++)
		if (!d->step[i].where && d->step[i].kind != P_AFTER)
			evaluate_step(r, &d->step[i]);
	for (int i = 0; i < d->nsegments && (d->under < 0 || r->tile < d->under); i++)
		run_loop(r, i, end_of(d, r->tile));
	r->k = 0;
	for (int i = 0; i < d->n; i++)
		if (d->step[i].kind == P_AFTER)
			evaluate_step(r, &d->step[i]);
	if (d->shortens && r->wants && r->tile > 0)
		want_int(d->lengths, (size_t)r->tile, 1);
	if (d->fresh)
		store_sums(r);
}

bool pipe_evaluate(struct pipelines *d, bool wants)
{
	struct run r = {.d = d, .wants = wants};
	bool all = d->outer == IN_TURN, one = d->outer == GRID || d->outer == PLANE;
	d->bad = false;
	for (int k = 0; k < d->n; k++)
		for (size_t i = 0; d->step[k].array && d->step[k].memory && i < d->step[k].array->len; i++)
			d->step[k].memory[i] = value(d->step[k].array, i);
	for (r.program = 0; r.program < d->programs; r.program++) {
		begin_sums(d);
		for (r.tile = all ? 0 : r.program; r.tile < d->tiles; r.tile += one ? d->tiles : all ? 1 : d->programs)
			run_tile(&r);
		if (!d->fresh)
			store_sums(&r);
	}
	return !d->bad;
}
