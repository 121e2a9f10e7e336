/* Random pipelined loops as text. */
#include "pipelines_loads.h"

static const char *const precisions[] = {"tf32", "ieee", "tf32x3", "bf16x3"};

static void parameter(struct writer *w, const char *name, int k, tl_arg a)
{
	if (k >= 0)
		fprintf(w->head, "%s%s%d", w->nargs ? ", " : "", name, k);
	else
		fprintf(w->head, "%s%s", w->nargs ? ", " : "", name);
	w->args[w->nargs++] = a;
}

/* --- steps --------------------------------------------------------------------------------------------------- */

static void print_stored(const struct writer *w, const struct pipe_step *s)
{
	const struct pipe_value *a = &w->d->value[s->a];
	fprintf(w->f, "tl.store(p%d + ", (int)(s - w->d->step));
	print_tile(w, s, a->rows * a->columns);
	if (a->kind == ROW || a->kind == CARRIED_ROW)
		fprintf(w->f, " + tl.arange(0, %d), v%d)\n", a->rows, s->a);
	else
		fprintf(w->f, " + tl.arange(0, %d)[:, None] * %d + tl.arange(0, %d)[None, :], v%d)\n", a->rows,
			a->columns, a->columns, s->a);
}

static void print_write(const struct writer *w, const struct pipe_step *s)
{
	struct writer then = *w;
	char it[32];
	snprintf(it, sizeof it, s->form ? "(%s + %d)" : "%s", w->it, w->d->unit);
	then.it = it;
	fprintf(w->f, "tl.store(");
	print_pointers(&then, &w->d->step[s->b]);
	fprintf(w->f, ", v%d", s->a);
	if (s->form) {
		fprintf(w->f, ", mask=");
		print_iteration(&then);
		fprintf(w->f, " < n");
	}
	fprintf(w->f, ")\n");
}

static void print_after(const struct writer *w, const struct pipe_step *s, const char *indent)
{
	struct writer then = *w;
	const struct pipe_step *to = &w->d->step[s->b];
	const struct pipe_value *v = &w->d->value[to->to];
	char it[24];
	snprintf(it, sizeof it, "%d", w->d->offset + w->d->unit * s->form);
	then.it = it;
	then.tile = "(tile + 1)";
	fprintf(w->f, "%stl.store(", indent);
	print_pointers(&then, to);
	fprintf(w->f, ", tl.full((%d, %d), 1, %s), mask=(tile + 1 < tiles) & (%d < n))\n", v->rows, v->columns,
		type_names[to->type], s->form);
}

static void print_product(const struct writer *w, const struct pipe_step *s, const char *acc)
{
	fprintf(w->f, "tl.dot(v%d, v%d", s->a, s->b);
	if (acc)
		fprintf(w->f, ", %sv%d", acc, s->to);
	if (w->d->type == TL_F32)
		fprintf(w->f, ", input_precision=\"%s\"", precisions[w->d->precision]);
	fprintf(w->f, ", out_dtype=%s)\n", type_names[w->d->sum]);
}

/* b of an operation, as a tile's shape needs it. */
static const char *spread(const struct pipe_value *b)
{
	return b->kind != ROW ? "" : b->across ? "[None, :]" : "[:, None]";
}

static void print_reduce(const struct writer *w, const struct pipe_step *s)
{
	static const char *const names[] = {"max", "sum", "min"};
	fprintf(w->f, "v%d = tl.%s(v%d, %d)\n", s->to, names[s->form], s->a, w->d->value[s->to].across ? 0 : 1);
}

static void print_where(const struct writer *w, const struct pipe_step *s)
{
	const struct pipe_value *a = &w->d->value[s->a];
	fprintf(w->f, "v%d = tl.where(tl.arange(0, %d)[:, None] + %d >= tl.arange(0, %d)[None, :] + ", s->a, a->rows,
		s->bound[0], a->columns);
	print_iteration(w);
	fprintf(w->f, " * %d, v%d, -1)\n", s->form + 1, s->a);
}

static void print_row_load(const struct writer *w, const struct pipe_step *s)
{
	fprintf(w->f, "v%d = tl.load(p%d + ", s->to, (int)(s - w->d->step));
	print_tile(w, s, w->d->value[s->to].rows);
	if (s->kind == P_LINE)
		fprintf(w->f, " + tl.arange(0, %d)", w->d->value[s->to].rows);
	fprintf(w->f, ")\n");
}

static void print_step(const struct writer *w, const struct pipe_step *s, const char *indent)
{
	const struct pipelines *d = w->d;
	FILE *f = w->f;
	char deeper[40];
	if (s->dead || s->kind == P_AFTER)
		return;
	fprintf(f, "%s", indent);
	snprintf(deeper, sizeof deeper, "%s%s", indent, s->parity < 0 ? "" : "    ");
	if (s->parity >= 0) {
		fprintf(f, "if ");
		print_iteration(w);
		fprintf(f, " %% 2 == %d:\n%s", s->parity, deeper);
	}
	switch (s->kind) {
	case P_LOAD: print_load(w, s, deeper); break;
	case P_NUMBER:
	case P_LINE: print_row_load(w, s); break;
	case P_TURN: fprintf(f, "v%d = tl.trans(v%d)\n", s->to, s->a); break;
	case P_NEGATE:
		fprintf(f, "v%d = (-v%d.to(%s)).to(%s)\n", s->to, s->a, type_names[d->sum], type_names[d->type]);
		break;
	case P_CLAMP:
		fprintf(f, "v%d = tl.minimum(tl.maximum(v%d, -2), 2).to(%s)\n", s->to, s->a, type_names[d->type]);
		break;
	case P_LIFT: fprintf(f, "v%d = v%d.to(%s)\n", s->to, s->a, type_names[d->sum]); break;
	case P_DOT:
	case P_SUM:
		fprintf(f, s->kind == P_SUM && s->form == PLUS ? "v%d += " : "v%d = ", s->to);
		print_product(w, s, s->kind == P_DOT || s->form == PLUS ? NULL : s->form == NEGATED ? "-" : "");
		break;
	case P_PLUS:
	case P_TIMES:
		fprintf(f, "v%d = v%d %c v%d%s\n", s->to, s->a, s->kind == P_PLUS ? '+' : '*', s->b,
			spread(&d->value[s->b]));
		break;
	case P_WHERE: print_where(w, s); break;
	case P_REDUCE: print_reduce(w, s); break;
	case P_ADD: fprintf(f, "v%d += v%d\n", s->to, s->a); break;
	case P_MOST: fprintf(f, "v%d = tl.maximum(v%d, v%d)\n", s->to, s->to, s->a); break;
	case P_RESCALE:
		fprintf(f, "v%d = v%d * tl.where(v%d > %d, -1, 1)%s\n", s->to, s->to, s->a, s->form * 3,
			spread(&d->value[s->a]));
		break;
	case P_KEEP: fprintf(f, "v%d = v%d\n", s->to, s->a); break;
	case P_PAST: fprintf(f, "v%d = v%d * 2\n", s->to, s->a); break;
	case P_STORE: print_stored(w, s); break;
	case P_WRITE: print_write(w, s); break;
	case P_AFTER: break;
	}
}

/* --- the kernel ---------------------------------------------------------------------------------------------- */

static void print_sums(const struct writer *w, const char *indent)
{
	const struct pipelines *d = w->d;
	for (int v = 0; v < d->nvalues; v++) {
		const struct pipe_value *x = &d->value[v];
		if (x->kind == CARRIED)
			fprintf(w->f, "%sv%d = tl.zeros((%d, %d), %s)\n", indent, v, x->rows, x->columns,
				type_names[d->sum]);
		else if (x->kind == CARRIED_ROW)
			fprintf(w->f, "%sv%d = tl.zeros((%d,), %s)\n", indent, v, x->rows, type_names[d->sum]);
	}
}

static void print_results(const struct writer *w, const char *indent)
{
	const struct pipelines *d = w->d;
	for (int v = 0; v < d->nvalues; v++) {
		const struct pipe_value *x = &d->value[v];
		if (!x->out)
			continue;
		fprintf(w->f, "%stl.%s(o%d + %s * %d + ", indent, d->adds ? "atomic_add" : "store", v,
			d->fresh ? "tile" : "pid", x->rows * x->columns);
		if (x->kind == CARRIED_ROW)
			fprintf(w->f, "tl.arange(0, %d), v%d)\n", x->rows, v);
		else
			fprintf(w->f, "tl.arange(0, %d)[:, None] * %d + tl.arange(0, %d)[None, :], v%d)\n", x->rows,
				x->columns, x->columns, v);
	}
}

/* e0, e1, …: between which indices the loops are. */
static void print_bounds(struct writer *w, const char *indent)
{
	const struct pipelines *d = w->d;
	FILE *f = w->f;
	char unit[40] = "", end[24] = "";
	if (d->multiplied)
		snprintf(unit, sizeof unit, " * %d", d->unit);
	if (d->multiplied && d->offset)
		snprintf(unit + strlen(unit), sizeof unit - strlen(unit), " + %d", d->offset);
	if (d->ends == ENDS_LOADED)
		fprintf(f, "%send = tl.load(lengths + tile)\n", indent);
	else if (d->ends == ENDS_COMPUTED)
		fprintf(f, "%send = tile * %d + %d\n", indent, d->end[0], d->end[1]);
	if (d->ends)
		snprintf(end, sizeof end, "tl.minimum(end, ");
	for (int i = 0; i <= d->nsegments; i++) {
		fprintf(f, d->long_index ? "%se%d = tl.cast(" : "%se%d = ", indent, i);
		if (!i && (d->literal || (!d->bound[i] && !d->offset && !d->ends)))
			fprintf(f, "%d", d->offset + d->unit * d->bound[i]);
		else
			fprintf(f, "%sb%d%s%s", end, i, *end ? ")" : "", unit);
		fprintf(f, d->long_index ? ", tl.int64)\n" : "\n");
	}
}

static void print_loop(struct writer *w, int loop, const char *indent)
{
	static const char *const options[] = {"", ", loop_unroll_factor=2", ", warp_specialize=True",
					      ", disallow_acc_multi_buffer=True"};
	const struct pipelines *d = w->d;
	FILE *f = w->f;
	char first[32], deeper[40];
	int by = d->step_by * d->unit, gap = loop == 1 ? d->gap * d->unit : 0;
	w->loop = loop;
	snprintf(deeper, sizeof deeper, "%s    ", indent);
	if (by < 0)
		snprintf(first, sizeof first, "(e%d - %d)", loop + 1, d->unit);
	else
		snprintf(first, sizeof first, gap ? "(e%d + %d)" : "e%d", loop, gap);
	w->it = first;
	for (int k = 0; k < d->n; k++)
		if (d->step[k].where >> loop & 1)
			print_begin(w, &d->step[k], indent);
	w->it = "it";
	bool whiles = d->whiles && by > 0;
	if (whiles)
		fprintf(f, "%sit = %s\n%swhile it < e%d", indent, first, indent, loop + 1);
	else if (by < 0)
		fprintf(f, "%sfor it in tl.range(%s, e%d - %d, %d", indent, first, loop, d->unit, by);
	else
		fprintf(f, "%sfor it in tl.range(%s, e%d, %d", indent, first, loop + 1, by);
	if (d->asked && !whiles)
		fprintf(f, ", num_stages=%d", d->stages);
	fprintf(f, "%s%s:\n%spass\n", whiles ? "" : options[d->option], whiles ? "" : ")", deeper);
	for (int k = 0; k < d->n; k++)
		if (d->step[k].where >> loop & 1)
			print_step(w, &d->step[k], deeper);
	for (int k = 0; k < d->n; k++)
		if (d->step[k].where >> loop & 1)
			print_next(w, &d->step[k], deeper);
	if (whiles)
		fprintf(f, "%sit += %d\n", deeper, by);
	w->it = NULL;
}

static void print_work(struct writer *w, const char *indent)
{
	const struct pipelines *d = w->d;
	char deeper[32];
	for (int k = 0; k < d->n; k++)
		if (!d->step[k].where)
			print_step(w, &d->step[k], indent);
	print_bounds(w, indent);
	snprintf(deeper, sizeof deeper, "%s%s", indent, d->under < 0 ? "" : "    ");
	if (d->under >= 0)
		fprintf(w->f, "%sif tile < under:\n", indent);
	for (int i = 0; i < d->nsegments; i++)
		print_loop(w, i, deeper);
	if (d->shortens)
		fprintf(w->f, "%stl.store(lengths + tile + 1, 1, mask=tile + 1 < tiles)\n", indent);
	for (int k = 0; k < d->n; k++)
		if (d->step[k].kind == P_AFTER && !d->step[k].dead)
			print_after(w, &d->step[k], indent);
}

static void number(struct writer *w, const char *name, int k, int64_t value)
{
	parameter(w, name, k, tl_int(w->d->halved && value % 2 == 0 ? value / 2 : value));
}

static void add_array(struct writer *w, int k)
{
	const struct pipe_step *s = &w->d->step[k];
	if (!s->array)
		return;
	parameter(w, "p", k, ptr(s->array));
	if (s->table)
		parameter(w, "t", k, ptr(s->table));
	if (s->kind != P_LOAD)
		return;
	if (s->through == BY_GIVEN)
		parameter(w, "h", k, tl_desc(&s->given));
	if (!s->stated)
		number(w, "ld", k, pipe_place(w->d, s).distance);
	if (pipe_has_limit(s) && !w->d->rooms)
		number(w, "limit", k, s->bound[s->mask == UP_TO_COLUMN]);
}

static void add_parameters(struct writer *w)
{
	struct pipelines *d = w->d;
	for (int k = 0; k < d->n; k++)
		add_array(w, k);
	for (int v = 0; v < d->nvalues; v++)
		if (d->value[v].out)
			parameter(w, "o", v, ptr(d->value[v].out));
	parameter(w, "n", -1, tl_int(pipe_iterations(d)));
	parameter(w, "tiles", -1, tl_int(d->tiles));
	parameter(w, "under", -1, tl_int(d->under));
	parameter(w, "programs", -1, tl_int(d->programs));
	parameter(w, "two", -1, tl_int(2));
	if (d->lengths)
		parameter(w, "lengths", -1, ptr(d->lengths));
	if (d->room)
		parameter(w, "room", -1, ptr(d->room));
	for (int i = 0; i <= d->nsegments; i++)
		parameter(w, "b", i, tl_int(d->multiplied ? d->bound[i] : d->offset + d->unit * d->bound[i]));
}

/* Those that memory tells. */
static void print_limits(const struct writer *w)
{
	for (int k = 0; k < w->d->n && w->d->room; k++)
		if (w->d->step[k].array && w->d->step[k].kind == P_LOAD && pipe_has_limit(&w->d->step[k]))
			fprintf(w->f, "    limit%d = tl.load(room + %d) - tl.load(room + %d)\n", k, 2 * k + 1, 2 * k);
}

/* Those that are made, and what holds them. */
static void print_descriptors(const struct writer *w)
{
	const struct pipelines *d = w->d;
	for (int k = 0; k < d->n; k++) {
		const struct pipe_step *s = &d->step[k];
		if (s->kind != P_LOAD || s->dead || (s->through != BY_MADE && !(s->through == BY_GIVEN && s->held)))
			continue;
		print_opening(w, s, "    ");
		if (s->through == BY_MADE)
			print_tensor(w, s);
		else
			fprintf(w->f, "h%d", k);
		print_closing(w, s, false);
	}
}

/* The loops over tiles, or the program's tile. */
static void print_outer(const struct writer *w)
{
	const struct pipelines *d = w->d;
	const char *flat = d->flatten ? ", flatten=True" : "", *tile = d->counted ? "number" : "tile";
	if (d->counted)
		fprintf(w->f, "    count = %s\n", d->outer == PERSISTENT ? "pid" : "0");
	switch (d->outer) {
	case GRID: fprintf(w->f, "    tile = pid\n"); break;
	case PLANE: fprintf(w->f, "    tile = pid + tl.program_id(1) * tl.num_programs(0)\n"); break;
	case PERSISTENT:
		fprintf(w->f, "    for %s in tl.range(pid, tiles, tl.num_programs(0)%s):\n", tile, flat);
		break;
	case IN_TURN:
		if (!d->split) {
			fprintf(w->f, "    for %s in tl.range(0, tiles%s):\n", tile, flat);
			break;
		}
		fprintf(w->f, "    for line in tl.range(0, tiles // %d):\n", d->split);
		fprintf(w->f, "        for column in tl.range(0, %d%s):\n", d->split, flat);
		fprintf(w->f, "            tile = line * %d + column\n", d->split);
	}
}

/* The classes of objects that hold handles. */
static void print_classes(FILE *f, const struct pipelines *d)
{
	static const char *const names[] = {"Walk", "Held"}, *const types[] = {"tensor", "tensor_descriptor"};
	bool there[2] = {false};
	for (int k = 0; k < d->n; k++)
		if (d->step[k].kind == P_LOAD && !d->step[k].dead && d->step[k].held == IN_OBJECT)
			there[d->step[k].through >= BY_MADE] = true;
	for (int i = 0; i < 2; i++)
		if (there[i])
			fprintf(f,
				"@triton.language.core._aggregate\nclass %s:\n    handle: tl.%s\n    count: "
				"tl.tensor\n\n\n",
				names[i], types[i]);
}

char *pipe_text(struct pipelines *d, tl_arg *args, size_t *nargs)
{
	char *head = NULL, *body = NULL, *text = NULL;
	size_t len;
	struct writer w = {.d = d, .args = args, .tile = "tile"};
	w.head = open_memstream(&head, &len);
	add_parameters(&w);
	fclose(w.head);
	w.f = open_memstream(&body, &len);
	bool loop = d->outer == IN_TURN || d->outer == PERSISTENT;
	fprintf(w.f, "    pid = tl.program_id(0)\n");
	if (d->early)
		fprintf(w.f, "    if pid >= programs:\n        return\n");
	print_limits(&w);
	print_descriptors(&w);
	if (!d->fresh)
		print_sums(&w, "    ");
	print_outer(&w);
	if (d->counted)
		fprintf(w.f, "        tile = count\n");
	const char *indent = d->split ? "            " : loop ? "        " : "    ";
	if (d->fresh)
		print_sums(&w, indent);
	print_work(&w, indent);
	if (d->fresh)
		print_results(&w, indent);
	if (d->counted)
		fprintf(w.f, "        count += %s\n", d->outer == PERSISTENT ? "tl.num_programs(0)" : "1");
	if (!d->fresh)
		print_results(&w, "    ");
	fclose(w.f);
	FILE *f = open_memstream(&text, &len);
	fprintf(f, "import triton\nimport triton.language as tl\n\n\n");
	print_classes(f, d);
	fprintf(f, "@triton.jit\ndef kernel(%s):\n%s", head, body);
	fclose(f);
	free(head), free(body);
	*nargs = w.nargs;
	return text;
}
