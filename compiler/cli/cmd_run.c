/* `tlc run`: runs a kernel on a device, with generated arguments or arguments from .npy files. */
#include "cli/cmd_run.h"

#include <math.h>
#include <stdlib.h>

#include "support/span.h"
#include "runtime/image/image.h"
#include "runtime/tune/tune.h"
#include "cli/crash.h"

/* --- arguments ----------------------------------------------------------------------------------------------- */

static struct argument *find_argument(struct session *s, const char *name)
{
	for (u32 i = 0; i < s->nargs; i++)
		if (!strcmp(s->args[i].name, name))
			return &s->args[i];
	return NULL;
}

/* Finds the argument to read; *out is NULL if only other compared kernels have it. False after a message. */
static bool find_named(struct session *s, const char *name, struct argument **out)
{
	struct command *c = s->c;
	*out = find_argument(s, name);
	if (!*out && c->compares_kernels)
		vec_push(&c->arena, &c->left_out, name);
	else if (!*out)
		refuse("'%s' has no parameter '%s'", s->kernel_name, name);
	else if ((*out)->given)
		refuse("'%s' is given twice", name);
	return *out ? !(*out)->given : c->compares_kernels;
}

static bool read_arguments(struct session *s)
{
	struct command *c = s->c;
	struct value_reader r = {&c->arena, s->unit, EXIT_USER};
	bool good = true;
	for (u32 i = 0; i < c->args.len && good; i++) {
		const char *text = c->args.at[i], *eq = strchr(text, '=');
		struct argument *a;
		good = find_named(s, arena_str(&c->arena, text, (size_t)(eq - text)), &a) &&
		       (!a || read_argument(&r, a, eq + 1));
	}
	if (!good)
		s->code = r.code;
	for (u32 i = 0; i < c->defines.len && good; i++) {
		struct argument *a;
		good = find_named(s, c->defines.at[i].name, &a) && (!a || read_constant(&r, a, c->defines.at[i].value));
	}
	return good;
}

/* --- expressions of arguments ---------------------------------------------------------------------------------- */

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

/* cdiv(n, BLOCK), min(…), max(…), with Triton's names. */
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

/* Parses an expression. NULL after a message. */
static const struct expr *parse_option(const struct session *s, const char *option, const char *text, size_t len)
{
	const char *copy = arena_str(&s->c->arena, text, len);
	u16 file = diags_add_source(&s->unit->diags, option, copy, len);
	const struct expr *e = parse_expression(&s->unit->arena, &s->unit->names, &s->unit->diags, file, 0, (u32)len);
	if (!e)
		refuse("%s: '%s' is no expression", option, copy);
	return e;
}

/* Reads -g. Each launch evaluates its expressions with the launch's arguments. */
static bool read_grid(struct session *s)
{
	const char *g = s->c->grid;
	if (!g)
		return refuse("the grid is missing: -g X[,Y[,Z]]");
	for (int i = 0;; i++) {
		size_t len = span_outside(g, ",");
		if (i == 3 || !len)
			return refuse("-g: '%s' is no grid; it is X, X,Y or X,Y,Z", s->c->grid);
		s->grid[i] = parse_option(s, "-g", g, len);
		if (!s->grid[i])
			return false;
		s->config.grid_dims = i + 1;
		if (!g[len])
			return true;
		g += len + 1;
	}
}

/* The names that a grid expression may use. */
static const char *numbers_of(const struct scope *s)
{
	struct strbuf sb = {.arena = &s->session->c->arena};
	double unused;
	u32 n = 0;
	for (u32 i = 0; i < s->session->nargs; i++) {
		const tl_arg *a = argument(&s->session->kernel->params, s->args, s->nargs, i);
		if (a && number_of(a, &unused))
			sb_printf(&sb, "%s'%s'", n++ ? ", " : "", s->session->args[i].name);
	}
	return n ? sb.at : "numbers, since the kernel has no number arguments";
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
				refuse("-g: '%s' is no grid; it is X, X,Y or X,Y,Z, each a whole number, or "
				       "arithmetic with cdiv, min and max on %s",
				       s->c->grid, numbers_of(&scope));
			s->grid_is_wrong = true;
			return TL_ERR_ARGUMENT;
		}
		cfg->grid[i] = (uint32_t)n;
	}
	return TL_OK;
}

/* --- running ------------------------------------------------------------------------------------------------- */

static int upload(struct session *s)
{
	s->launched = arena_array(&s->c->arena, tl_arg, s->nargs + 1);
	for (u32 i = 0; i < s->nargs; i++) {
		struct argument *a = &s->args[i];
		tl_status r = a->given ? value_upload(s->ctx, a) : TL_OK;
		if (r)
			return api_failed(s->ctx, r);
		s->launched[i] = a->given ? a->arg : tl_open();
		s->nlaunched = a->given ? i + 1 : s->nlaunched;
	}
	return EXIT_DONE;
}

/* Calls f for each argument, up to the first failure. */
static int each_argument(struct session *s, tl_status (*f)(struct argument *a))
{
	tl_status r = TL_OK;
	for (u32 i = 0; i < s->nargs && !r; i++)
		r = f(&s->args[i]);
	return r ? api_failed(s->ctx, r) : EXIT_DONE;
}

bool run_evaluate(struct session *s, const char *option, const char *text, double *out)
{
	const struct scope scope = {s, s->launched, s->nlaunched};
	const struct expr *e = parse_option(s, option, text, strlen(text));
	if (e && evaluate(&scope, e, out))
		return true;
	return refuse("%s: '%s' must be arithmetic on numbers and on the kernel's number arguments", option, text);
}

static tl_status launch(struct session *s)
{
	tl_status r = tl_launch(s->kernel, &s->config, s->launched, s->nlaunched);
	return r ? r : tl_synchronize(s->ctx);
}

int run_launch(struct session *s)
{
	tl_status r = launch(s);
	return r ? api_failed(s->ctx, r) : EXIT_DONE;
}

int run_read(struct session *s)
{
	return each_argument(s, value_read);
}

int run_time(struct session *s, int warmup, int n, double *ms)
{
	tl_status r = tl_time_each(s->kernel, &s->config, s->launched, s->nlaunched, warmup, n, ms);
	if (!r && *tl_error(s->ctx) && !s->noted) /* a note of a successful call */
		fprintf(stderr, "tlc: %s\n", tl_error(s->ctx));
	s->noted |= !r && *tl_error(s->ctx);
	return r ? api_failed(s->ctx, r) : EXIT_DONE;
}

/* --- tuning ---------------------------------------------------------------------------------------------------- */

/* True for `tlc tune`, and if the kernel's configurations set open parameters, as far as they are known. */
static bool wants_tuning(struct session *s)
{
	const tl_arg *args = s->launched;
	size_t n = s->nlaunched;
	struct tuning t;
	if (s->c->verb == VERB_TUNE || !s->func || !s->func->ndecorators)
		return s->c->verb == VERB_TUNE;
	unit_tuning(s->unit, s->func, NULL, 90, DECORATORS_KNOWN, &t);
	for (u32 i = 0; t.unknown.len && i < s->nargs; i++)
		if (!s->func->params[i].value && !is_given(args, n, i))
			return true; /* the tuner reports the error */
	for (u32 i = 0; i < t.configurations.len; i++)
		for (u32 k = 0; k < t.configurations.at[i].nvalues; k++) {
			const struct argument *a = find_argument(s, t.configurations.at[i].values[k].name);
			if (a && !is_given(args, n, (u32)(a - s->args)))
				return true;
		}
	return false;
}

bool read_tolerance(const struct command *c, double *out)
{
	char *end = NULL;
	*out = c->check ? strtod(c->check, &end) : 0;
	if (c->check && (end == c->check || *end || !(*out >= 0) || isinf(*out)))
		return refuse("--check: '%s' is no tolerance; 0 is equal, 0.01 one percent", c->check);
	return true;
}

/* Chooses a configuration, and sets s->config and s->launched to its launch. */
static int tune(struct session *s)
{
	static const char *const helper[] = {"/proc/self/exe", "serve", NULL};
	const struct command *c = s->c;
	tl_tuning options = {.helper = c->in_process ? NULL : helper,
			     .again = c->verb == VERB_TUNE,
			     .warmup_ms = c->warmup_ms,
			     .rep_ms = c->rep_ms,
			     .most = c->most,
			     .check = c->check};
	if (!read_tolerance(c, &options.tolerance))
		return EXIT_USER;
	tl_arg *given = arena_dup(&s->c->arena, s->launched, s->nlaunched * sizeof *given);
	const struct request r = {&s->config, plan_grid, s, given, s->nlaunched};
	struct tuned_choice *ch;
	tl_tuner *t = NULL;
	tl_status st = tl_tuner_create(s->kernel, &options, &t);
	if (!st && !(st = tl_tuner_choose(t, r.cfg, r.plan, r.user, r.args, r.nargs, NULL)))
		st = tuner_find(t, &r, &ch);
	s->tuner = t;
	if (st)
		return s->grid_is_wrong ? EXIT_USER : api_failed(s->ctx, st);
	if (c->json && c->verb == VERB_TUNE) {
		char *json;
		st = tl_tuner_report(t, &json);
		fputs(st ? "" : json, stdout);
		tl_free(json);
	} else if (c->verb == VERB_TUNE) {
		show_tuning(&s->c->arena, s->kernel_name, s->device.name, ch);
	} else {
		fprintf(stderr, "tlc: note: %s, %s\n", ch->best->text,
			ch->stored ? "as it was tuned before"
				   : arena_printf(&s->c->arena, "the best of %u that ran of %u configurations",
						  ch->tried, ch->n));
	}
	s->nlaunched = s->nargs;
	return candidate_plan(t, &r, ch->best, &s->config, s->launched) ? EXIT_USER : EXIT_DONE;
}

static int show_remarks(struct session *s)
{
	char *text;
	tl_status r = tl_kernel_dump(s->kernel, &s->config, s->launched, s->nlaunched, "remarks", &text);
	if (r)
		return api_failed(s->ctx, r);
	fputs(text, stderr);
	tl_free(text);
	return EXIT_DONE;
}

/* Shows warnings and the texts of static_print, which are the only remarks without --remarks. Errors are reported by
 * the calls. */
static void show_warning(void *session, const tl_diagnostic *d)
{
	struct session *s = session;
	if (d->severity != TL_SEVERITY_NOTE)
		s->shows_notes = d->severity == TL_SEVERITY_WARNING || d->severity == TL_SEVERITY_REMARK;
	if (s->shows_notes)
		fputs(d->shown, stderr);
}

/* Sets up the launch without tuning. */
static int plan(struct session *s)
{
	const tl_arg *all = s->launched;
	tl_arg *room = arena_array(&s->c->arena, tl_arg, MAX_KERNEL_PARAMS);
	tl_status r = s->kernel->decorated ? complete_arguments(s->kernel, &all, &s->nlaunched, room) : TL_OK;
	if (r)
		return api_failed(s->ctx, r);
	if (all == room)
		s->launched = room;
	return plan_grid(s, &s->config, s->launched, s->nlaunched) ? EXIT_USER : EXIT_DONE;
}

static int open_device(struct session *s)
{
	const struct command *c = s->c;
	if (c->sim_report)
		setenv("TL_SIM_REPORT", "1", true);
	tl_status r = tl_context_create(c->device, &s->ctx);
	if (r || (r = tl_device(s->ctx, &s->device)))
		return api_failed(s->ctx, r);
	if (!c->device && !strcmp(s->device.kind, "cpu"))
		fputs("tlc: note: there is no GPU here, so this runs on the processor, as with --device cpu\n", stderr);
	if (!c->options.remarks) /* remarks include the warnings */
		tl_context_diagnostics(s->ctx, show_warning, s, false);
	if (c->sim_report && strcmp(s->device.kind, "sim"))
		return complain(EXIT_USER, "--sim-report is for --device sim, and this is %s", s->device.kind);
	if (c->options.remarks && (!strcmp(s->device.kind, "interp") || !strcmp(s->device.kind, "cpu")))
		return complain(EXIT_USER,
				"--remarks is about code for a GPU, and this is %s, which runs none; "
				"tlc FILE --remarks or --device sim tells it",
				s->device.kind);
	return EXIT_DONE;
}

/* Sets up everything for the launch. */
static int prepare(struct session *s, const char *text, size_t len)
{
	const struct command *c = s->c;
	tl_status r;
	int code = open_device(s);
	if (code)
		return code;
	if ((r = tl_module_load_source(s->ctx, c->file, text, len, &s->module)) ||
	    (r = tl_module_kernel(s->module, s->kernel_name, &s->kernel)))
		return api_failed(s->ctx, r);
	set_options_of_config(&s->config, &c->options.codegen);
	code = upload(s);
	if (!code)
		code = wants_tuning(s) ? tune(s) : plan(s);
	return code || c->verb == VERB_TUNE || !c->options.remarks ? code : show_remarks(s);
}

void run_close(struct session *s)
{
	for (u32 i = 0; i < s->nargs; i++)
		value_free(&s->args[i]);
	tl_tuner_destroy(s->tuner);
	tl_context_destroy(s->ctx);
	unit_free(s->unit);
}

/* Opens the kernel of an image and its run-time parameters. */
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

int run_open(struct session *s, struct command *c)
{
	*s = (struct session){
		.c = c, .unit = arena_new(&c->arena, struct unit), .config = c->config, .code = EXIT_USER};
	bool known = c->input && !strcmp(c->file, "-");
	size_t len = c->input_len;
	char *text = known ? c->input : read_file(&c->arena, c->file, &len);
	if (!text)
		return EXIT_ENVIRONMENT;
	bool image = image_is(text, len); /* no source: the unit is empty */
	if (!unit_open(s->unit, c->file, image ? "" : text, image ? 0 : len))
		show_diagnostics(s->unit);
	else if ((image ? !open_image(s, text, len) : find_kernel(s)) && read_grid(s) && read_arguments(s))
		s->code = prepare(s, text, len);
	return s->code;
}

int command_run(struct command *c)
{
	if (c->gdb)
		return run_in_gdb(c);
	struct session s;
	int code = run_open(&s, c), raced = EXIT_DONE;
	if (!code && c->verb == VERB_RUN) {
		if (!strcmp(s.device.kind, "cpu"))
			crash_watch(c);
		tl_status r = launch(&s);
		crash_end_watch();
		if (!r && crash_is_second())
			code = complain(EXIT_BUG, "the interpreter finds nothing wrong: please report the kernel");
		if (r) /* after a race the buffers can be read */
			*(r == TL_ERR_RACE ? &raced : &code) = api_failed(s.ctx, r);
		if (!code)
			code = each_argument(&s, value_download);
	}
	run_close(&s);
	return code ? code : raced;
}
