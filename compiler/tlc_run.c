/* `tlc run` and `tlc bench`: a kernel on a device, with arguments made up or read from .npy files. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/fp.h"
#include "ir/dtype.h"
#include "runtime/npy.h"
#include "runtime/tl.h"
#include "tlc.h"

struct argument {
	const char *name;
	tl_arg arg;
	bool given, tensor;
	struct npy data; /* of a tensor: its host copy; the dtype is that of the kernel */
	tl_dtype dtype;
	tl_buffer *buffer;
	const char *save; /* path, or NULL */
};

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

static int api_failed(const struct session *s, tl_status status)
{
	const char *text = tl_error(s->ctx);
	if (status == TL_ERR_INTERNAL)
		return fprintf(stderr, "tlc: %s\n", text), EXIT_BUG;
	bool by_kernel = status == TL_ERR_COMPILE || status == TL_ERR_KERNEL || status == TL_ERR_RACE;
	fprintf(stderr, by_kernel ? "%s\n" : "tlc: error: %s\n", text);
	return by_kernel || status == TL_ERR_ARGUMENT ? EXIT_USER : EXIT_ENVIRONMENT;
}

/* --- tensors made up ----------------------------------------------------------------------------------------- */

/* SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014). */
static double uniform(u64 *state)
{
	u64 z = *state += 0x9E3779B97F4A7C15u;
	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static double normal(u64 *state)
{
	double u = uniform(state), v = uniform(state);
	return sqrt(-2 * log(u > 0 ? u : 0x1p-53)) * cos(6.283185307179586 * v);
}

static void store_number(void *data, tl_dtype t, size_t i, double x)
{
	enum dtype d = (enum dtype)t;
	u64 bits = dtype_is_float(d) ? dtype_encode_float(d, x) : dtype_encode_int(d, (i64)x);
	size_t n = tl_dtype_size(t);
	memcpy((char *)data + i * n, &bits, n);
}

static double load_number(const void *data, tl_dtype t, size_t i)
{
	enum dtype d = (enum dtype)t;
	u64 bits = 0;
	size_t n = tl_dtype_size(t);
	memcpy(&bits, (const char *)data + i * n, n);
	return dtype_is_float(d) ? dtype_decode_float(d, bits)
	       : d == DT_U64     ? (double)bits
				 : (double)dtype_decode_int(d, bits);
}

/* Fills with "zeros", "ones", "arange", "rand:SEED" or "randn:SEED". Random integers are small. */
static bool fill(struct argument *a, const char *how, size_t len)
{
	static const char *const known[] = {"zeros", "ones", "arange", "rand", "randn"};
	const char *colon = memchr(how, ':', len);
	size_t word = colon ? (size_t)(colon - how) : len;
	u64 seed = colon ? strtoull(colon + 1, NULL, 10) * 0x2545F4914F6CDD1Du + 1 : 1;
	u32 k = 0;
	while (k < ARRAY_LEN(known) && (strlen(known[k]) != word || memcmp(known[k], how, word)))
		k++;
	if (k == ARRAY_LEN(known)) {
		complain(0, "%s: '%.*s' is none of zeros, ones, arange, rand:SEED, randn:SEED", a->name, (int)len, how);
		return false;
	}
	bool is_float = dtype_is_float((enum dtype)a->dtype);
	for (size_t i = 0; i < a->data.count; i++) {
		double x = k == 0 ? 0 : k == 1 ? 1 : k == 2 ? (double)i : k == 3 ? uniform(&seed) : normal(&seed);
		if (!is_float && k == 3)
			x = floor(x * 100);
		if (!is_float && k == 4)
			x = floor(x * 10);
		store_number(a->data.data, a->dtype, i, x);
	}
	return true;
}

/* fp16[128,64]:randn:0 */
static bool make_tensor(struct command *c, struct argument *a, const char *text, size_t len)
{
	const char *open = memchr(text, '[', len),
		   *close = open ? memchr(open, ']', len - (size_t)(open - text)) : NULL;
	enum dtype d = open ? dtype_parse(text, (size_t)(open - text)) : DT_COUNT;
	if (!close || d == DT_COUNT) {
		complain(0, "%s: '%.*s' is no value; a tensor is like fp16[128,64]:randn:0", a->name, (int)len, text);
		return false;
	}
	VEC(size_t) shape = {0};
	size_t count = 1;
	for (const char *s = open + 1; s < close;) {
		char *end;
		unsigned long long n = strtoull(s, &end, 10);
		if (end == s || (*end != ',' && *end != ']') || n > (1ull << 40) ||
		    __builtin_mul_overflow(count, n, &count) || count > 1ull << 40) {
			complain(0, "%s: '%.*s' is no shape", a->name, (int)(close - open) + 1, open);
			return false;
		}
		vec_push(&c->arena, &shape, (size_t)n);
		s = end + 1;
	}
	a->tensor = true;
	a->dtype = (tl_dtype)d;
	a->data = (struct npy){.dtype = a->dtype, .rank = shape.len, .count = count};
	a->data.shape = malloc((shape.len + 1) * sizeof(size_t));
	a->data.data = calloc(count ? count : 1, tl_dtype_size(a->dtype));
	if (!a->data.shape || !a->data.data) {
		complain(0, "%s: out of memory for %zu elements", a->name, count);
		return false;
	}
	if (shape.len)
		memcpy(a->data.shape, shape.at, shape.len * sizeof(size_t));
	size_t rest = len - (size_t)(close + 1 - text);
	if (!rest)
		return fill(a, "zeros", 5);
	if (close[1] != ':') {
		complain(0, "%s: expected ':' after the shape", a->name);
		return false;
	}
	return fill(a, close + 2, rest - 1);
}

/* @in.npy, or dtype@in.npy for the formats that NumPy does not have. */
static bool read_tensor(struct session *s, struct argument *a, const char *text, size_t len)
{
	const char *at = memchr(text, '@', len);
	enum dtype d = DT_COUNT;
	if (at > text && (d = dtype_parse(text, (size_t)(at - text))) == DT_COUNT) {
		complain(0, "%s: '%.*s' is no dtype", a->name, (int)(at - text), text);
		return false;
	}
	const char *path = arena_str(&s->c->arena, at + 1, len - (size_t)(at + 1 - text));
	tl_status status = npy_read(path, &a->data);
	if (status) {
		s->code = api_failed(s, status);
		return false;
	}
	a->dtype = d == DT_COUNT ? a->data.dtype : (tl_dtype)d;
	a->tensor = true;
	if (tl_dtype_size(a->dtype) != tl_dtype_size(a->data.dtype)) {
		complain(0, "%s: '%s' holds %s, which cannot be taken as %s", a->name, path,
			 tl_dtype_name(a->data.dtype), tl_dtype_name(a->dtype));
		return false;
	}
	return true;
}

/* --- arguments ----------------------------------------------------------------------------------------------- */

/* 42, 0.5, True, i64:42, fp32:1 */
static bool read_scalar(struct argument *a, const char *text)
{
	const char *colon = strchr(text, ':'), *number = colon ? colon + 1 : text;
	enum dtype d = colon ? dtype_parse(text, (size_t)(colon - text)) : DT_COUNT;
	char *end;
	if (colon && d == DT_COUNT) {
		complain(0, "%s: '%.*s' is no dtype", a->name, (int)(colon - text), text);
		return false;
	}
	if (!strcmp(text, "True") || !strcmp(text, "False")) {
		a->arg = tl_bool(*text == 'T');
		return true;
	}
	errno = 0;
	long long i = strtoll(number, &end, 0);
	if (!*end && end > number && !errno) {
		a->arg = !colon              ? tl_int(i)
			 : dtype_is_float(d) ? tl_float_typed((tl_dtype)d, (double)i)
					     : tl_int_typed((tl_dtype)d, i);
		return true;
	}
	errno = 0;
	unsigned long long u = strtoull(number, &end, 0);
	if (!*end && end > number && !errno && !strchr(number, '-') && !(colon && dtype_is_float(d))) {
		a->arg = colon ? tl_uint_typed((tl_dtype)d, u) : tl_uint(u);
		return true;
	}
	bool whole = !*end && end > number;
	if (whole && !(colon && dtype_is_float(d))) {
		complain(0, "%s: '%s' does not fit 64 bits", a->name, number);
		return false;
	}
	double x = strtod(number, &end);
	if (*end || end == number || (colon && !dtype_is_float(d))) {
		complain(0, "%s: '%s' is no value; see tlc --help", a->name, text);
		return false;
	}
	a->arg = colon ? tl_float_typed((tl_dtype)d, x) : tl_float(x);
	return true;
}

static bool read_value(struct session *s, struct argument *a, const char *text)
{
	const char *save = strstr(text, ":>");
	size_t len = save ? (size_t)(save - text) : strlen(text);
	a->save = save ? save + 2 : NULL;
	a->given = true;
	if (memchr(text, '@', len))
		return read_tensor(s, a, text, len);
	if (memchr(text, '[', len))
		return make_tensor(s->c, a, text, len);
	if (save) {
		complain(0, "%s: only a tensor can be saved", a->name);
		return false;
	}
	if (!strcmp(text, "None")) {
		a->arg = tl_none();
		return true;
	}
	return read_scalar(a, text);
}

/* -D NAME=VALUE as an argument: numbers, strings, dtypes, functions. */
static bool read_define(struct session *s, struct argument *a, const char *value)
{
	size_t len = strlen(value);
	const char *name = !strncmp(value, "tl.", 3) ? value + 3 : value;
	enum dtype d = dtype_parse(name, strlen(name));
	a->given = true;
	if (len >= 2 && (*value == '"' || *value == '\'') && value[len - 1] == *value) {
		a->arg = tl_str(arena_str(&s->c->arena, value + 1, len - 2));
		return true;
	}
	if (!strcmp(value, "None")) {
		a->arg = tl_none();
		return true;
	}
	if (s->unit->module && map_get(&s->unit->module->by_name, intern_str(&s->unit->names, value))) {
		a->arg = tl_func(value);
		return true;
	}
	if (d != DT_COUNT) {
		a->arg = tl_type((tl_dtype)d);
		return true;
	}
	return read_scalar(a, value);
}

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
		if (!read_define(s, &s->args[i], text.at))
			return false;
	}
	return true;
}

static bool read_arguments(struct session *s)
{
	struct command *c = s->c;
	for (u32 i = 0; i < c->args.len; i++) {
		const char *text = c->args.at[i], *eq = strchr(text, '=');
		struct argument *a = find_argument(s, text, (size_t)(eq - text));
		if (a && a->given) {
			complain(0, "'%s' is given twice", a->name);
			return false;
		}
		if (!a || !read_value(s, a, eq + 1))
			return false;
	}
	for (u32 i = 0; i < c->defines.len; i++) {
		struct argument *a = find_argument(s, c->defines.at[i].name, strlen(c->defines.at[i].name));
		if (a && a->given) {
			complain(0, "'%s' is given twice", a->name);
			return false;
		}
		if (!a || !read_define(s, a, c->defines.at[i].value))
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
		if (a->tensor) {
			size_t bytes = a->data.count * tl_dtype_size(a->dtype);
			tl_status r = tl_buffer_create(s->ctx, bytes, &a->buffer);
			if (!r)
				r = tl_buffer_write(a->buffer, 0, a->data.data, bytes);
			if (r)
				return api_failed(s, r);
			a->arg = tl_buf(a->dtype, a->buffer);
		}
		list[(*n)++] = a->arg;
	}
	for (u32 i = (u32)*n; i < s->nargs; i++)
		if (s->args[i].given)
			return complain(EXIT_USER, "'%s': parameter '%s' needs a value, since '%s' has one",
					s->kernel_name, s->args[*n].name, s->args[i].name);
	return EXIT_DONE;
}

/* "out: fp32[4, 8] min -1.5 max 2.25: 0.5 1.25 …" */
static void summarize(const struct argument *a)
{
	double lo = INFINITY, hi = -INFINITY;
	size_t nans = 0;
	printf("%s: %s[", a->name, tl_dtype_name(a->dtype));
	for (uint32_t i = 0; i < a->data.rank; i++)
		printf("%s%zu", i ? ", " : "", a->data.shape[i]);
	printf("]");
	for (size_t i = 0; i < a->data.count; i++) {
		double x = load_number(a->data.data, a->dtype, i);
		nans += isnan(x);
		lo = x < lo ? x : lo;
		hi = x > hi ? x : hi;
	}
	if (nans < a->data.count)
		printf(" min %g max %g", lo, hi);
	if (nans)
		printf(" %zu NaN", nans);
	printf(":");
	for (size_t i = 0; i < a->data.count && i < 8; i++)
		printf(" %g", load_number(a->data.data, a->dtype, i));
	printf(a->data.count > 8 ? " ...\n" : "\n");
}

static int download(struct session *s)
{
	for (u32 i = 0; i < s->nargs; i++) {
		struct argument *a = &s->args[i];
		if (!a->buffer)
			continue;
		tl_status r = tl_buffer_read(a->buffer, 0, a->data.data, a->data.count * tl_dtype_size(a->dtype));
		if (!r && a->save) {
			struct npy out = a->data;
			if (tl_dtype_size(a->dtype) != tl_dtype_size(out.dtype) || dtype_is_fp8((enum dtype)a->dtype) ||
			    a->dtype == TL_BF16)
				out.dtype = tl_dtype_size(a->dtype) == 2 ? TL_U16 : TL_U8;
			else
				out.dtype = a->dtype;
			r = npy_write(a->save, &out);
		}
		if (r)
			return api_failed(s, r);
		if (!a->save)
			summarize(a);
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
		return api_failed(s, r);
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
		return api_failed(s, r);
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
		return api_failed(s, r);
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
		return api_failed(s, r);
	s->config.num_warps = s->c->options.num_warps;
	s->config.num_stages = s->c->options.num_stages;
	s->config.group_pids = s->c->options.group_pids;
	s->config.max_ctas = s->c->max_ctas;
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
		return api_failed(s, r);
	int raced = r ? api_failed(s, r) : 0;
	code = download(s);
	return code ? code : raced;
}

static void close_session(struct session *s)
{
	for (u32 i = 0; i < s->nargs; i++) {
		if (s->args[i].buffer)
			tl_buffer_destroy(s->args[i].buffer);
		if (s->args[i].tensor)
			npy_free(&s->args[i].data);
	}
	tl_context_destroy(s->ctx);
	unit_free(s->unit);
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
	if (!unit_open(s.unit, c->file, text, len))
		show_diagnostics(s.unit);
	else if (find_kernel(&s) && read_grid(&s) && read_arguments(&s))
		s.code = execute(&s, text, len);
	close_session(&s);
	return s.code;
}
