/* `tlc run` and `tlc bench`: a kernel on a device, with arguments made up or read from .npy files. */
#include <math.h>
#include <stdlib.h>

#include "runtime/image.h"
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
	tl_config config;
	bool shows_notes; /* of the last diagnostic */
	int code;         /* to end with, when the arguments cannot be read */
};

/* --- arguments ----------------------------------------------------------------------------------------------- */

static struct argument *find_argument(struct session *s, const char *name, size_t len)
{
	for (u32 i = 0; i < s->nargs; i++)
		if (strlen(s->args[i].name) == len && !memcmp(s->args[i].name, name, len))
			return &s->args[i];
	complain(0, "'%s' has no parameter '%.*s'", s->kernel_name, (int)len, name);
	return NULL;
}

/* The library takes arguments in order: constexprs in front of the last one given get their defaults here. */
static bool read_defaults(struct session *s)
{
	struct value_reader r = {&s->c->arena, s->unit, EXIT_USER};
	u32 n = s->nargs;
	while (n && !s->args[n - 1].given)
		n--;
	for (u32 i = 0; s->func && i < n; i++) {
		const struct param *p = &s->func->params[i];
		struct strbuf text = {.arena = &s->c->arena};
		if (s->args[i].given || !p->value || !is_constexpr(p))
			continue;
		/* as -D has it, without parentheses */
		bool negative = p->value->kind == EX_UNARY && p->value->op == OP_NEG;
		sb_puts(&text, negative ? "-" : "");
		ast_print_expr(negative ? p->value->a : p->value, &text);
		if (!read_constant(&r, &s->args[i], text.at))
			return false;
	}
	return true;
}

static bool read_arguments(struct session *s)
{
	struct command *c = s->c;
	struct value_reader r = {&c->arena, s->unit, EXIT_USER};
	for (u32 i = 0; i < c->args.len; i++) {
		const char *text = c->args.at[i], *eq = strchr(text, '=');
		struct argument *a = find_argument(s, text, (size_t)(eq - text));
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
		struct argument *a = find_argument(s, c->defines.at[i].name, strlen(c->defines.at[i].name));
		if (a && a->given) {
			complain(0, "'%s' is given twice", a->name);
			return false;
		}
		if (!a || !read_constant(&r, a, c->defines.at[i].value))
			return false;
	}
	return read_defaults(s);
}

static bool read_grid(struct session *s)
{
	const char *g = s->c->grid;
	if (!g) {
		complain(0, "the grid is missing: -g X[,Y[,Z]]");
		return false;
	}
	for (int i = 0;; i++) {
		char *end;
		unsigned long n = strtoul(g, &end, 10);
		if (i == 3 || end == g || (*end && *end != ',') || n > 0x7FFFFFFF) {
			complain(0, "-g: '%s' is no grid; it is X, X,Y or X,Y,Z", s->c->grid);
			return false;
		}
		s->config.grid[i] = (uint32_t)n;
		s->config.grid_dims = i + 1;
		if (!*end)
			return true;
		g = end + 1;
	}
}

/* --- running ------------------------------------------------------------------------------------------------- */

static int upload(struct session *s, tl_arg *list, size_t *n)
{
	for (u32 i = 0; i < s->nargs; i++) {
		struct argument *a = &s->args[i];
		if (!a->given)
			break; /* defaults, or an error from the library, which names the parameter */
		tl_status r = value_upload(s->ctx, a);
		if (r)
			return api_failed(s->ctx, r);
		list[(*n)++] = a->arg;
	}
	for (u32 i = (u32)*n; i < s->nargs; i++)
		if (s->args[i].given)
			return complain(EXIT_USER, "'%s': parameter '%s' needs a value, since '%s' has one",
					s->kernel_name, s->args[*n].name, s->args[i].name);
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

static bool number_of(const tl_arg *a, double *out)
{
	switch (a->kind) {
	case TL_ARG_INT: *out = (double)a->i; return true;
	case TL_ARG_UINT: *out = (double)a->u; return true;
	case TL_ARG_FLOAT: *out = a->f; return true;
	default: return false;
	}
}

/* The value of an expression over the arguments, for --bytes and --flops. */
static bool evaluate(const struct session *s, const struct expr *e, double *out)
{
	double x, y;
	switch (e->kind) {
	case EX_INT: *out = (double)e->integer; return true;
	case EX_FLOAT: *out = e->real; return true;
	case EX_UNARY: return e->op == OP_NEG && evaluate(s, e->a, &x) && (*out = -x, true);
	case EX_NAME:
		for (u32 i = 0; i < s->nargs; i++)
			if (!strcmp(s->args[i].name, e->name))
				return number_of(&s->args[i].arg, out);
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
		case OP_POW: *out = pow(x, y); return true;
		default: return false;
		}
	default: return false;
	}
}

static bool rate(struct session *s, const char *option, const char *text, double ms, const char *unit, double scale)
{
	double amount;
	u16 file = diags_add_source(&s->unit->diags, option, text, strlen(text));
	struct expr *e =
		parse_expression(&s->unit->arena, &s->unit->names, &s->unit->diags, file, 0, (u32)strlen(text));
	if (!e || !evaluate(s, e, &amount)) {
		complain(0, "%s: '%s' must be arithmetic on numbers and on the kernel's number arguments", option,
			 text);
		return false;
	}
	printf("  %.4g %s", amount / ms * scale, unit);
	return true;
}

static int bench(struct session *s, const tl_arg *args, size_t n)
{
	double ms;
	tl_status r = tl_time(s->kernel, &s->config, args, n, 5, 50, &ms);
	if (r)
		return api_failed(s->ctx, r);
	tl_device_info info;
	tl_device(s->ctx, &info);
	printf("%s on %s: %.4g ms", s->kernel_name, info.name, ms);
	if (!strcmp(info.kind, "sim")) {
		printf(" of this computer's time, which say nothing about a GPU%s\n",
		       s->c->bytes || s->c->flops ? ": rates are left out" : "");
		return EXIT_DONE;
	}
	if ((s->c->bytes && !rate(s, "--bytes", s->c->bytes, ms, "GB/s", 1e-6)) ||
	    (s->c->flops && !rate(s, "--flops", s->c->flops, ms, "TFLOPS", 1e-9)))
		return EXIT_USER;
	printf("\n");
	return EXIT_DONE;
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
	if (!code && s->c->options.remarks)
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
