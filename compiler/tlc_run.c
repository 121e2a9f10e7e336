/* `tlc run` and `tlc bench`: a kernel on a device, with arguments made up or read from .npy files. */
#include <math.h>
#include <stdlib.h>

#include "runtime/image.h"
#include "runtime/tune.h"
#include "tlc_value.h"

struct session {
	struct command *c;
	struct unit *unit; /* to know the kernel and its parameters */
	const struct func *func; /* NULL: IR text */
	const char *kernel_name;
	struct argument *args; /* one for each parameter */
	u32 nargs;
	tl_context *ctx;
	tl_module *module;
	tl_kernel *kernel;
	tl_tuner *tuner; /* or NULL */
	tl_config config;
	const struct expr *grid[3];
	bool grid_is_wrong; /* and that has been said */
	bool shows_notes; /* of the last diagnostic */
	int code;         /* to end with, when the arguments cannot be read */
};

/* --- arguments ----------------------------------------------------------------------------------------------- */

static struct argument *find_argument(struct session *s, const char *name)
{
	for (u32 i = 0; i < s->nargs; i++)
		if (!strcmp(s->args[i].name, name))
			return &s->args[i];
	return NULL;
}

/* NULL after a message. */
static struct argument *argument_named(struct session *s, const char *name, size_t len)
{
	struct argument *a = find_argument(s, arena_str(&s->c->arena, name, len));
	if (!a)
		complain(0, "'%s' has no parameter '%.*s'", s->kernel_name, (int)len, name);
	return a;
}

static bool read_arguments(struct session *s)
{
	struct command *c = s->c;
	struct value_reader r = {&c->arena, s->unit, EXIT_USER};
	for (u32 i = 0; i < c->args.len; i++) {
		const char *text = c->args.at[i], *eq = strchr(text, '=');
		struct argument *a = argument_named(s, text, (size_t)(eq - text));
		if (a && a->given) {
			complain(0, "'%s' is given twice", a->name);
			return false;
		}
		if (!a || !read_argument(&r, a, eq + 1)) {
			s->code = r.code;
			return false;
		}
	}
	for (u32 i = 0; i < c->defines.len; i++) {
		struct argument *a = argument_named(s, c->defines.at[i].name, strlen(c->defines.at[i].name));
		if (a && a->given) {
			complain(0, "'%s' is given twice", a->name);
			return false;
		}
		if (!a || !read_constant(&r, a, c->defines.at[i].value))
			return false;
	}
	return true;
}

/* --- expressions over the arguments ---------------------------------------------------------------------------- */

/* The arguments of a launch, in the order of the parameters. */
struct scope {
	const struct session *session;
	const tl_arg *args;
	size_t nargs;
};

static bool number_of(const tl_arg *a, double *out)
{
	switch (a->kind) {
	case TL_ARG_INT: *out = (double)a->i; return true;
	case TL_ARG_UINT: *out = (double)a->u; return true;
	case TL_ARG_FLOAT: *out = a->f; return true;
	case TL_ARG_BOOL: *out = a->i != 0; return true;
	default: return false;
	}
}

static bool evaluate(const struct scope *s, const struct expr *e, double *out);

/* cdiv(n, BLOCK), min(…), max(…), with the names that Triton has for them. */
static bool evaluate_call(const struct scope *s, const struct expr *e, double *out)
{
	const char *name = e->a->kind == EX_NAME || e->a->kind == EX_ATTR ? e->a->name : "";
	double x, y;
	if (e->nitems != 2 || e->nkeywords || !evaluate(s, e->items[0], &x) || !evaluate(s, e->items[1], &y))
		return false;
	if (!strcmp(name, "cdiv") && y)
		*out = ceil(x / y);
	else if (!strcmp(name, "min"))
		*out = fmin(x, y);
	else if (!strcmp(name, "max"))
		*out = fmax(x, y);
	else
		return false;
	return true;
}

static bool evaluate(const struct scope *s, const struct expr *e, double *out)
{
	double x, y;
	switch (e->kind) {
	case EX_INT: *out = (double)e->integer; return true;
	case EX_FLOAT: *out = e->real; return true;
	case EX_UNARY: return e->op == OP_NEG && evaluate(s, e->a, &x) && (*out = -x, true);
	case EX_CALL: return evaluate_call(s, e, out);
	case EX_NAME:
		for (u32 i = 0; i < s->session->nargs; i++)
			if (!strcmp(s->session->args[i].name, e->name)) {
				const tl_arg *a = argument(&s->session->kernel->params, s->args, s->nargs, i);
				return a && number_of(a, out);
			}
		return false;
	case EX_BINARY:
		if (!evaluate(s, e->a, &x) || !evaluate(s, e->b, &y))
			return false;
		switch (e->op) {
		case OP_ADD: *out = x + y; return true;
		case OP_SUB: *out = x - y; return true;
		case OP_MUL: *out = x * y; return true;
		case OP_DIV: *out = x / y; return true;
		case OP_FLOORDIV: *out = floor(x / y); return true;
		case OP_MOD: *out = x - y * floor(x / y); return true;
		case OP_POW: *out = pow(x, y); return true;
		default: return false;
		}
	default: return false;
	}
}

/* NULL after a message. */
static const struct expr *parse_option(const struct session *s, const char *option, const char *text, size_t len)
{
	const char *copy = arena_str(&s->c->arena, text, len);
	u16 file = diags_add_source(&s->unit->diags, option, copy, len);
	const struct expr *e = parse_expression(&s->unit->arena, &s->unit->names, &s->unit->diags, file, 0, (u32)len);
	if (!e)
		complain(0, "%s: '%s' is no expression", option, copy);
	return e;
}

/* Reads -g, whose expressions each launch evaluates with its arguments. */
static bool read_grid(struct session *s)
{
	const char *g = s->c->grid;
	if (!g) {
		complain(0, "the grid is missing: -g X[,Y[,Z]]");
		return false;
	}
	for (int i = 0;; i++) {
		size_t len = span_outside(g, ",");
		if (i == 3 || !len) {
			complain(0, "-g: '%s' is no grid; it is X, X,Y or X,Y,Z", s->c->grid);
			return false;
		}
		s->grid[i] = parse_option(s, "-g", g, len);
		if (!s->grid[i])
			return false;
		s->config.grid_dims = i + 1;
		if (!g[len])
			return true;
		g += len + 1;
	}
}

/* The grid of a launch with these arguments: a tl_plan_fn. */
static tl_status plan_grid(void *session, tl_config *cfg, tl_arg *args, size_t nargs)
{
	struct session *s = session;
	const struct scope scope = {s, args, nargs};
	for (int i = 0; i < s->config.grid_dims; i++) {
		double n;
		if (!evaluate(&scope, s->grid[i], &n) || !(n >= 0) || n > 0x7FFFFFFF || n != floor(n)) {
			if (!s->grid_is_wrong)
				complain(0,
					 "-g: '%s' is no grid; it is X, X,Y or X,Y,Z, each a whole number, or "
					 "arithmetic on the kernel's number arguments, as in 'cdiv(n, BLOCK)'",
					 s->c->grid);
			s->grid_is_wrong = true;
			return TL_ERR_ARGUMENT;
		}
		cfg->grid[i] = (uint32_t)n;
	}
	return TL_OK;
}

/* --- running ------------------------------------------------------------------------------------------------- */

static int upload(struct session *s, tl_arg *list, size_t *n)
{
	for (u32 i = 0; i < s->nargs; i++) {
		struct argument *a = &s->args[i];
		tl_status r = a->given ? value_upload(s->ctx, a) : TL_OK;
		if (r)
			return api_failed(s->ctx, r);
		list[i] = a->given ? a->arg : tl_open();
		*n = a->given ? i + 1 : *n;
	}
	return EXIT_DONE;
}

static int download(struct session *s)
{
	for (u32 i = 0; i < s->nargs; i++) {
		tl_status r = value_download(&s->args[i]);
		if (r)
			return api_failed(s->ctx, r);
	}
	return EXIT_DONE;
}

/* What the expression of an option is, a second. */
static bool rate(const struct scope *args, const char *option, const char *text, double ms, double scale, double *out)
{
	double amount;
	const struct expr *e = text ? parse_option(args->session, option, text, strlen(text)) : NULL;
	*out = 0;
	if (!text)
		return true;
	if (!e || !evaluate(args, e, &amount)) {
		complain(0, "%s: '%s' must be arithmetic on numbers and on the kernel's number arguments", option,
			 text);
		return false;
	}
	*out = amount / ms * scale;
	return true;
}

/* Launches for --rep milliseconds, or 50. */
static tl_status repeats_of(struct session *s, const tl_arg *args, size_t n, int *out)
{
	double ms;
	*out = 50;
	if (!s->c->rep_ms)
		return TL_OK;
	tl_status r = tl_time(s->kernel, &s->config, args, n, 1, 5, &ms);
	*out = (int)MIN(MAX(s->c->rep_ms / MAX(ms, 1e-4), 5), 10000);
	return r;
}

static int bench(struct session *s, const tl_arg *args, size_t n)
{
	struct measurement *m = &s->c->measured;
	const struct scope scope = {s, args, n};
	tl_device_info info;
	int repeats;
	tl_status r = repeats_of(s, args, n, &repeats);
	double *each = arena_array(&s->c->arena, double, (size_t)repeats);
	if (r || (r = tl_time_each(s->kernel, &s->config, args, n, 5, repeats, each)) || (r = tl_device(s->ctx, &info)))
		return api_failed(s->ctx, r);
	*m = (struct measurement){.kernel = arena_str(&s->c->arena, s->kernel_name, strlen(s->kernel_name)),
				  .device = arena_str(&s->c->arena, info.name, strlen(info.name)),
				  .simulated = !strcmp(info.kind, "sim"),
				  .wants_rates = s->c->bytes || s->c->flops,
				  .launches = repeats,
				  .ms = median(each, repeats)}; /* which sorts them */
	m->low = each[repeats / 5];
	m->high = each[repeats - 1 - repeats / 5];
	return m->simulated || (rate(&scope, "--bytes", s->c->bytes, m->ms, 1e-6, &m->bytes) &&
				rate(&scope, "--flops", s->c->flops, m->ms, 1e-9, &m->flops))
		       ? EXIT_DONE
		       : EXIT_USER;
}

/* --- tuning ---------------------------------------------------------------------------------------------------- */

/* Is it asked for, or do the kernel's configurations give parameters that are open, as far as they are known? */
static bool wants_tuning(struct session *s, const tl_arg *args, size_t n)
{
	struct tuning t;
	if (s->c->verb == VERB_TUNE || !s->func || !s->func->ndecorators)
		return s->c->verb == VERB_TUNE;
	unit_tuning(s->unit, s->func, NULL, 90, DECORATORS_KNOWN, &t);
	for (u32 i = 0; t.unknown.len && i < s->nargs; i++)
		if (!s->func->params[i].value && !is_given(args, n, i))
			return true; /* the tuner says what is wrong */
	for (u32 i = 0; i < t.configurations.len; i++)
		for (u32 k = 0; k < t.configurations.at[i].nvalues; k++) {
			const struct argument *a = find_argument(s, t.configurations.at[i].values[k].name);
			if (a && !is_given(args, n, (u32)(a - s->args)))
				return true;
		}
	return false;
}

/* Chooses a configuration, whose launch s->config and `args`, with room for all of them, become. */
static int tune(struct session *s, tl_arg *args, size_t *n)
{
	static const char *const helper[] = {"/proc/self/exe", "serve", NULL};
	const struct command *c = s->c;
	const tl_tuning options = {.helper = c->in_process ? NULL : helper,
				   .again = c->verb == VERB_TUNE,
				   .rep_ms = c->rep_ms,
				   .check = c->check,
				   .tolerance = c->check ? strtod(c->check, NULL) : 0};
	tl_arg *given = arena_dup(&s->c->arena, args, *n * sizeof *args);
	const struct request r = {&s->config, plan_grid, s, given, *n};
	struct tuned_choice *ch;
	tl_tuner *t = NULL;
	tl_status st = tl_tuner_create(s->kernel, &options, &t);
	if (!st && !(st = tl_tuner_choose(t, r.cfg, r.plan, r.user, r.args, r.nargs, NULL)))
		st = tuner_find(t, &r, &ch);
	s->tuner = t;
	if (st)
		return s->grid_is_wrong ? EXIT_USER : api_failed(s->ctx, st);
	tl_device_info info;
	tl_device(s->ctx, &info);
	if (c->json) {
		char *json;
		st = tl_tuner_report(t, &json);
		fputs(st ? "" : json, stdout);
		tl_free(json);
	} else if (c->verb == VERB_TUNE) {
		show_tuning(&s->c->arena, s->kernel_name, info.name, ch);
	} else {
		fprintf(stderr, "tlc: note: %s, %s\n", ch->best->text,
			ch->stored ? "as it was tuned before"
				   : arena_printf(&s->c->arena, "the best of %u that ran of %u configurations",
						  ch->tried, ch->n));
	}
	*n = s->nargs;
	return candidate_plan(t, &r, ch->best, &s->config, args) ? EXIT_USER : EXIT_DONE;
}

static int show_remarks(struct session *s, const tl_arg *args, size_t n)
{
	char *text;
	tl_status r = tl_kernel_dump(s->kernel, &s->config, args, n, "remarks", &text);
	if (r)
		return api_failed(s->ctx, r);
	fputs(text, stderr);
	tl_free(text);
	return EXIT_DONE;
}

/* Errors are those of calls, too. */
static void show_warning(void *session, const tl_diagnostic *d)
{
	struct session *s = session;
	if (d->severity != TL_SEVERITY_NOTE)
		s->shows_notes = d->severity == TL_SEVERITY_WARNING;
	if (s->shows_notes)
		fputs(d->shown, stderr);
}

/* The launch without a choice of configurations. */
static int plan(struct session *s, tl_arg **args, size_t *n)
{
	const tl_arg *all = *args;
	tl_arg *room = arena_array(&s->c->arena, tl_arg, MAX_KERNEL_PARAMS);
	tl_status r = s->kernel->decorated ? complete_arguments(s->kernel, &all, n, room) : TL_OK;
	if (r)
		return api_failed(s->ctx, r);
	if (all == room)
		*args = room;
	return plan_grid(s, &s->config, *args, *n) ? EXIT_USER : EXIT_DONE;
}

static int execute(struct session *s, const char *text, size_t len)
{
	tl_arg *list = arena_array(&s->c->arena, tl_arg, s->nargs + 1);
	size_t n = 0;
	if (s->c->sim_report)
		setenv("TL_SIM_REPORT", "1", true);
	tl_device_info info;
	tl_status r = tl_context_create(s->c->device, &s->ctx);
	if (r || (r = tl_device(s->ctx, &info)))
		return api_failed(s->ctx, r);
	if (!s->c->device && !strcmp(info.kind, "interp"))
		fputs("tlc: note: there is no GPU here, so this runs on the CPU, as with --device interp\n", stderr);
	if (!s->c->options.remarks) /* which come with the warnings */
		tl_context_diagnostics(s->ctx, show_warning, s, false);
	if (s->c->sim_report && strcmp(info.kind, "sim"))
		return complain(EXIT_USER, "--sim-report is for --device sim, and this is %s", info.kind);
	if (s->c->options.remarks && !strcmp(info.kind, "interp"))
		return complain(EXIT_USER, "--remarks is about code for a GPU, and this is interp, which runs none; "
					   "tlc FILE --remarks or --device sim tells it");
	if ((r = tl_module_load_source(s->ctx, s->c->file, text, len, &s->module)) ||
	    (r = tl_module_kernel(s->module, s->kernel_name, &s->kernel)))
		return api_failed(s->ctx, r);
	s->config.num_warps = s->c->options.num_warps;
	s->config.num_stages = s->c->options.num_stages;
	s->config.group_pids = s->c->options.group_pids;
	s->config.max_ctas = s->c->max_ctas;
	s->config.launch_cooperative_grid = s->c->cooperative;
	s->config.launch_pdl = s->c->pdl;
	s->config.debug = s->c->options.debug;
	int code = upload(s, list, &n);
	if (!code && wants_tuning(s, list, n))
		code = tune(s, list, &n);
	else if (!code)
		code = plan(s, &list, &n);
	if (code || s->c->verb == VERB_TUNE)
		return code;
	if (s->c->options.remarks)
		code = show_remarks(s, list, n);
	if (code)
		return code;
	if (s->c->verb == VERB_BENCH)
		return bench(s, list, n);
	if (!(r = tl_launch(s->kernel, &s->config, list, n)))
		r = tl_synchronize(s->ctx);
	if (r && r != TL_ERR_RACE)
		return api_failed(s->ctx, r);
	int raced = r ? api_failed(s->ctx, r) : 0;
	code = download(s);
	return code ? code : raced;
}

static void close_session(struct session *s)
{
	for (u32 i = 0; i < s->nargs; i++)
		value_free(&s->args[i]);
	tl_tuner_destroy(s->tuner);
	tl_context_destroy(s->ctx);
	unit_free(s->unit);
}

/* The kernel of an image and its parameters: those that are left at run time. */
static int open_image(struct session *s, const char *text, size_t len)
{
	struct command *c = s->c;
	struct image im;
	const char *why = image_read(&im, text, len);
	if (why)
		return complain(EXIT_USER, "'%s' cannot be run: %s", c->file, why);
	s->kernel_name = arena_str(&c->arena, im.name, strlen(im.name));
	s->nargs = im.nslots;
	s->args = arena_array(&c->arena, struct argument, s->nargs);
	for (u32 i = 0; i < s->nargs; i++)
		s->args[i].name = arena_str(&c->arena, im.slots[i].name, strlen(im.slots[i].name));
	image_free(&im);
	if (c->kernel && strcmp(c->kernel, s->kernel_name) != 0)
		return complain(EXIT_USER, "'%s' has no kernel '%s'; it has %s", c->file, c->kernel, s->kernel_name);
	return EXIT_DONE;
}

/* The kernel of the file and its parameters. */
static bool find_kernel(struct session *s)
{
	struct command *c = s->c;
	const struct kernel *parsed = s->unit->parsed;
	if (!check_request(c, s->unit) || (!parsed && !(s->func = pick_kernel(s->unit, c->kernel))))
		return false;
	s->kernel_name = parsed ? parsed->name : s->func->name;
	s->nargs = parsed ? parsed->nparams : s->func->nparams;
	s->args = arena_array(&c->arena, struct argument, s->nargs);
	for (u32 i = 0; i < s->nargs; i++)
		s->args[i].name = parsed ? parsed->params[i].name : s->func->params[i].name;
	return true;
}

int command_run(struct command *c)
{
	struct session s = {.c = c, .unit = arena_new(&c->arena, struct unit), .code = EXIT_USER};
	size_t len;
	char *text = read_file(&c->arena, c->file, &len);
	if (!text)
		return EXIT_ENVIRONMENT;
	bool image = image_is(text, len); /* without a source: the unit stays empty */
	if (!unit_open(s.unit, c->file, image ? "" : text, image ? 0 : len))
		show_diagnostics(s.unit);
	else if ((image ? !open_image(&s, text, len) : find_kernel(&s)) && read_grid(&s) && read_arguments(&s))
		s.code = execute(&s, text, len);
	close_session(&s);
	return s.code;
}
