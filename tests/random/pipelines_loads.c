/* How random pipelined loops get at memory, as text: places, masks and handles of loads. */
#include "pipelines_loads.h"

/* --- places -------------------------------------------------------------------------------------------------- */

void print_number(const struct writer *w, const char *name, int k, int64_t value)
{
	fprintf(w->f, w->d->halved && value % 2 == 0 ? "(%s%d * two)" : "%s%d", name, k);
}

static void print_limit_of(const struct writer *w, const struct pipe_step *s)
{
	int k = (int)(s - w->d->step);
	if (w->d->rooms)
		fprintf(w->f, "limit%d", k);
	else
		print_number(w, "limit", k, s->bound[s->mask == UP_TO_COLUMN]);
}

void print_iteration(const struct writer *w)
{
	const struct pipelines *d = w->d;
	fprintf(w->f, "%s%s%s", d->offset ? "(" : "", d->unit > 1 ? "(" : "", w->it);
	if (d->offset)
		fprintf(w->f, " - %d)", d->offset);
	if (d->unit > 1)
		fprintf(w->f, " // %d)", d->unit);
}

/* What tells apart tiles for s. */
static void print_which(const struct writer *w, const struct pipe_step *s)
{
	static const char *const rests[] = {"", "", " // 2", " % 2"};
	fprintf(w->f, "%s%s", s->of ? w->tile : "0", rests[s->of]);
}

/* The number of the tile in what memory holds, times `by`. */
void print_tile(const struct writer *w, const struct pipe_step *s, int by)
{
	const struct pipelines *d = w->d;
	bool elements = by > 1 && d->unit == by && !d->offset; /* the index counts those */
	fprintf(w->f, "(");
	if (!s->moves) {
		print_which(w, s);
	} else if (s->of) {
		fprintf(w->f, "(");
		print_which(w, s);
		fprintf(w->f, elements ? ") * n * %d + " : ") * n + ", by);
	}
	if (s->moves && elements)
		fprintf(w->f, "%s", w->it);
	else if (s->moves)
		print_iteration(w);
	if (s->shifts)
		fprintf(w->f, " + %d", (w->loop + 1) * (elements ? by : 1));
	fprintf(w->f, ")");
	if (by > 1 && !(s->moves && elements))
		fprintf(w->f, " * %d", by);
}

static void print_row(const struct writer *w, const struct pipe_step *s)
{
	struct pipe_place p = pipe_place(w->d, s);
	if (s->through == BY_PAGE) {
		fprintf(w->f, "page%d * %d", (int)(s - w->d->step), p.rows);
	} else if (s->wide) {
		fprintf(w->f, "(");
		print_which(w, s);
		fprintf(w->f, ") * %d", p.rows);
	} else {
		print_tile(w, s, p.rows);
	}
}

static void print_column(const struct writer *w, const struct pipe_step *s)
{
	struct pipe_place p = pipe_place(w->d, s);
	if (!s->wide) {
		fprintf(w->f, "0");
	} else if (w->d->unit == p.columns && !w->d->offset) {
		fprintf(w->f, "%s", w->it);
	} else {
		print_iteration(w);
		fprintf(w->f, " * %d", p.columns);
	}
}

static void print_distance(const struct writer *w, const struct pipe_step *s)
{
	int64_t distance = pipe_place(w->d, s).distance;
	if (s->stated)
		fprintf(w->f, "%lld", (long long)distance);
	else
		print_number(w, "ld", (int)(s - w->d->step), distance);
}

/* Is there a value that the loop carries from one load to the next? */
static bool is_carried(const struct pipe_step *s)
{
	return s->kind == P_LOAD && s->where && s->moves;
}

/* tl.arange along the rows of memory, or its columns. */
static void print_range(const struct writer *w, const struct pipe_step *s, bool down)
{
	struct pipe_place p = pipe_place(w->d, s);
	fprintf(w->f, down != s->turned ? "tl.arange(0, %d)[:, None]" : "tl.arange(0, %d)[None, :]",
		down ? p.rows : p.columns);
}

/* The rows or columns that the loop carries. */
static void print_run(const struct writer *w, const struct pipe_step *s, bool down)
{
	fprintf(w->f, down != s->turned ? "q%d[:, None]" : "q%d[None, :]", (int)(s - w->d->step));
}

void print_pointers(const struct writer *w, const struct pipe_step *s)
{
	FILE *f = w->f;
	int k = (int)(s - w->d->step);
	fprintf(f, "p%d + ", k);
	if (s->through == BY_RUN && is_carried(s)) {
		if (s->wide)
			fprintf(f, "(");
		if (s->wide)
			print_row(w, s);
		fprintf(f, s->wide ? " + " : "");
		(s->wide ? print_range : print_run)(w, s, true);
		fprintf(f, s->wide ? ") * " : " * ");
		print_distance(w, s);
		fprintf(f, " + ");
		(s->wide ? print_run : print_range)(w, s, false);
		return;
	}
	if (s->through == BY_PAGES) {
		fprintf(f, s->turned ? "rows%d[None, :] * " : "rows%d[:, None] * ", k);
		print_distance(w, s);
	} else if (s->apart) {
		print_row(w, s);
		fprintf(f, " * ");
		print_distance(w, s);
		fprintf(f, " + ");
		print_range(w, s, true);
		fprintf(f, " * ");
		print_distance(w, s);
	} else {
		fprintf(f, "(");
		print_row(w, s);
		fprintf(f, " + ");
		print_range(w, s, true);
		fprintf(f, ") * ");
		print_distance(w, s);
	}
	fprintf(f, s->apart ? " + " : " + (");
	print_column(w, s);
	fprintf(f, " + ");
	print_range(w, s, false);
	fprintf(f, s->apart ? "" : ")");
}

/* --- loads --------------------------------------------------------------------------------------------------- */

/* That the tile's rows or columns are there. */
static void print_limit(const struct writer *w, const struct pipe_step *s, bool down)
{
	FILE *f = w->f;
	int k = (int)(s - w->d->step);
	bool left = is_carried(s) && (s->through == BY_WALK || s->through == BY_BASE);
	if (s->through == BY_PAGES && down) {
		fprintf(f, s->turned ? "rows%d[None, :]" : "rows%d[:, None]", k);
	} else if (s->through == BY_RUN && is_carried(s) && down != s->wide) {
		print_run(w, s, down);
	} else {
		if (!left) {
			(down ? print_row : print_column)(w, s);
			fprintf(f, " + ");
		}
		print_range(w, s, down);
	}
	fprintf(f, " < ");
	if (s->swapped || (!down && s->mask == UP_TO_BOTH))
		fprintf(f, "%d", s->bound[!down]);
	else
		print_limit_of(w, s);
	if (left) { /* what is left */
		fprintf(f, " - (");
		(down ? print_row : print_column)(w, s);
		fprintf(f, ")");
	}
}

static void print_mask(const struct writer *w, const struct pipe_step *s)
{
	FILE *f = w->f;
	if (!s->mask)
		return;
	fprintf(f, ", mask=");
	switch (s->mask) {
	case UP_TO_ROW: print_limit(w, s, true); break;
	case UP_TO_COLUMN: print_limit(w, s, false); break;
	case UP_TO_BOTH:
		fprintf(f, "(");
		print_limit(w, s, true);
		fprintf(f, ") & (");
		print_limit(w, s, false);
		fprintf(f, ")");
		break;
	default:
		if (s->mask == SOME_ROWS)
			print_range(w, s, true);
		else
			print_iteration(w);
		fprintf(f, " < ");
		if (s->swapped)
			fprintf(f, "%d", s->bound[0]);
		else
			print_limit_of(w, s);
	}
	fprintf(f, ", other=%d", s->fill);
}

static void print_hint(const struct writer *w, const struct pipe_step *s)
{
	static const char *const hints[] = {"", ", eviction_policy=\"evict_first\"", ", eviction_policy=\"evict_last\"",
					    ", cache_modifier=\".cg\"", ", volatile=True"};
	fprintf(w->f, "%s", hints[s->hint]);
}

static void print_rows(const struct writer *w, const struct pipe_step *s)
{
	if (s->stated)
		fprintf(w->f, "%d", s->bound[0]);
	else
		print_limit_of(w, s);
}

/* A block pointer at the place of the index, or a descriptor. */
void print_tensor(const struct writer *w, const struct pipe_step *s)
{
	FILE *f = w->f;
	int k = (int)(s - w->d->step), columns = s->bound[1];
	struct pipe_place p = pipe_place(w->d, s);
	bool turned = s->turned && s->swapped;
	fprintf(f, s->through == BY_MADE ? "tl.make_tensor_descriptor(p%d, (" : "tl.make_block_ptr(p%d, (", k);
	if (turned && s->through != BY_MADE)
		fprintf(f, "%d, ", columns);
	print_rows(w, s);
	if (!turned || s->through == BY_MADE)
		fprintf(f, ", %d", columns);
	fprintf(f, turned && s->through != BY_MADE ? "), (1, " : "), (");
	print_distance(w, s);
	if (s->through == BY_MADE) {
		fprintf(f, ", 1), (%d, %d))", p.rows, p.columns);
		return;
	}
	fprintf(f, turned ? "), " : ", 1), ");
	fprintf(f, "(");
	(turned ? print_column : print_row)(w, s);
	fprintf(f, ", ");
	(turned ? print_row : print_column)(w, s);
	fprintf(f, turned ? "), (%d, %d), (0, 1))" : "), (%d, %d), (1, 0))", turned ? p.columns : p.rows,
		turned ? p.rows : p.columns);
}

/* What holds a handle; what is loaded from: itself or a part of that. */
static void print_holder(const struct writer *w, const struct pipe_step *s)
{
	static const char *const names[] = {"h", "pair", "object"};
	bool carried = s->through < BY_MADE;
	fprintf(w->f, "%s%d", carried && !s->held ? "q" : names[s->held], (int)(s - w->d->step));
}

static void print_handle(const struct writer *w, const struct pipe_step *s)
{
	print_holder(w, s);
	fprintf(w->f, "%s", s->held == IN_TUPLE ? "[0]" : s->held ? ".handle" : "");
}

/* Around the handle that is held: what comes before and behind it. */
void print_opening(const struct writer *w, const struct pipe_step *s, const char *indent)
{
	fprintf(w->f, "%s", indent);
	print_holder(w, s);
	fprintf(w->f, " = %s", s->held == IN_TUPLE ? "(" : !s->held ? "" : s->through < BY_MADE ? "Walk(" : "Held(");
}

void print_closing(const struct writer *w, const struct pipe_step *s, bool again)
{
	if (s->held && again) {
		fprintf(w->f, ", ");
		print_holder(w, s);
		fprintf(w->f, s->held == IN_TUPLE ? "[1] + 1" : ".count + 1");
	} else if (s->held) {
		fprintf(w->f, ", pid");
	}
	fprintf(w->f, s->held ? ")\n" : "\n");
}

static void print_pages(const struct writer *w, const struct pipe_step *s, const char *indent)
{
	int k = (int)(s - w->d->step), rows = pipe_place(w->d, s).rows;
	if (s->through == BY_PAGE) {
		fprintf(w->f, "page%d = tl.load(t%d + ", k, k);
		print_tile(w, s, 1);
		fprintf(w->f, ")\n%s", indent);
	} else if (s->through == BY_PAGES) {
		fprintf(w->f, "rows%d = tl.load(t%d + ", k, k);
		print_tile(w, s, rows);
		fprintf(w->f, " + tl.arange(0, %d))\n%s", rows, indent);
	}
}

void print_load(const struct writer *w, const struct pipe_step *s, const char *indent)
{
	FILE *f = w->f;
	int k = (int)(s - w->d->step);
	bool carried = is_carried(s);
	print_pages(w, s, indent);
	if (s->through == BY_BLOCK || (s->through == BY_ADVANCE && !carried)) {
		print_opening(w, s, "");
		print_tensor(w, s);
		print_closing(w, s, false);
		fprintf(f, "%s", indent);
	}
	if (s->through >= BY_MADE) {
		fprintf(f, "v%d = ", s->to);
		print_handle(w, s);
		fprintf(f, ".load([");
		print_row(w, s);
		fprintf(f, ", ");
		print_column(w, s);
		fprintf(f, "])%s", s->turned ? ".T" : "");
	} else if (s->through >= BY_BLOCK) {
		fprintf(f, "v%d = tl.load(", s->to);
		print_handle(w, s);
		fprintf(f, ", boundary_check=(0, 1), padding_option=\"zero\"");
		print_hint(w, s);
		fprintf(f, ")%s", s->turned && !s->swapped ? ".T" : "");
	} else {
		fprintf(f, "v%d = tl.load(", s->to);
		if (s->through == BY_WALK && carried) {
			fprintf(f, "q%d", k);
		} else if (s->through == BY_BASE && carried) {
			fprintf(f, "q%d + (", k);
			if (s->wide)
				print_row(w, s);
			fprintf(f, s->wide ? " + " : "");
			print_range(w, s, true);
			fprintf(f, ") * ");
			print_distance(w, s);
			fprintf(f, " + ");
			print_range(w, s, false);
		} else {
			print_pointers(w, s);
		}
		print_mask(w, s);
		print_hint(w, s);
		fprintf(f, ")");
	}
	if (s->type != w->d->type)
		fprintf(f, ".to(%s)", type_names[w->d->type]);
	fprintf(f, "\n");
}

/* In front of a loop, whose first index is w->it. */
void print_begin(const struct writer *w, const struct pipe_step *s, const char *indent)
{
	int k = (int)(s - w->d->step);
	struct pipe_place p = pipe_place(w->d, s);
	if (s->kind != P_LOAD || s->dead || !s->moves)
		return;
	if (s->through == BY_WALK) {
		fprintf(w->f, "%sq%d = ", indent, k);
		print_pointers(w, s);
		fprintf(w->f, "\n");
	} else if (s->through == BY_BASE) {
		fprintf(w->f, "%sq%d = p%d + ", indent, k, k);
		(s->wide ? print_column : print_row)(w, s);
		fprintf(w->f, s->wide ? "" : " * ");
		if (!s->wide)
			print_distance(w, s);
		fprintf(w->f, "\n");
	} else if (s->through == BY_RUN) {
		fprintf(w->f, "%sq%d = ", indent, k);
		(s->wide ? print_column : print_row)(w, s);
		fprintf(w->f, " + tl.arange(0, %d)\n", s->wide ? p.columns : p.rows);
	} else if (s->through == BY_ADVANCE) {
		print_opening(w, s, indent);
		print_tensor(w, s);
		print_closing(w, s, false);
	}
}

static void print_advance(const struct writer *w, const struct pipe_step *s)
{
	struct pipe_place p = pipe_place(w->d, s);
	bool first = s->wide == (s->turned && s->swapped);
	fprintf(w->f, "tl.advance(");
	print_handle(w, s);
	fprintf(w->f, first ? ", (%d, 0))" : ", (0, %d))", w->d->step_by * (s->wide ? p.columns : p.rows));
}

/* At the end of an iteration. */
void print_next(const struct writer *w, const struct pipe_step *s, const char *indent)
{
	int k = (int)(s - w->d->step), by = w->d->step_by;
	struct pipe_place p = pipe_place(w->d, s);
	if (s->kind != P_LOAD || s->dead)
		return;
	bool pointers = s->through == BY_WALK || s->through == BY_BASE;
	if ((pointers || s->through == BY_RUN) && s->moves && s->wide) {
		fprintf(w->f, "%sq%d += %d\n", indent, k, by * p.columns);
	} else if (s->through == BY_RUN && s->moves) {
		fprintf(w->f, "%sq%d += %d\n", indent, k, by * p.rows);
	} else if (pointers && s->moves) {
		fprintf(w->f, "%sq%d += %d * ", indent, k, by * p.rows);
		print_distance(w, s);
		fprintf(w->f, "\n");
	} else if (s->through == BY_ADVANCE && s->moves) {
		print_opening(w, s, indent);
		print_advance(w, s);
		print_closing(w, s, true);
	} else if (s->through >= BY_MADE && s->held && s->apart) { /* the same handle, in a new tuple or object */
		print_opening(w, s, indent);
		print_handle(w, s);
		print_closing(w, s, true);
	}
}
