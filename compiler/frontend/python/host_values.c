/* Host Python: values that are known without running it.
 *
 * A host value is a dotted path: torch.version.hip, triton.runtime.driver.active.get_current_target(). The values of
 * some paths are known, namely those on a machine with an NVIDIA GPU of the target's kind. Plain functions of source
 * files are evaluated like functions under @triton.constexpr_function, and may also contain `try` and `import`. The use
 * of an unknown value is an error. */
#include <stdlib.h>

#include "frontend/control_flow.h"

struct val host_val(const char *path)
{
	return (struct val){.kind = V_HOST, .text = path, .len = (u32)strlen(path)};
}

/* --- known values -------------------------------------------------------------------------------------------- */

/* A version as a tuple: "3.6.0" → (3, 6, 0). */
static struct val version_tuple(struct eval *e, const char *text)
{
	struct val *parts = arena_array(e->arena, struct val, 4);
	u32 n = 0;
	for (char *end; n < 4 && *text >= '0' && *text <= '9'; text = end + (*end == '.'))
		parts[n++] = val_int(strtol(text, &end, 10));
	return val_tuple(parts, n);
}

enum fact_kind {
	FACT_NONE, FACT_FALSE, FACT_TRUE, FACT_STRING, FACT_VERSION,
	FACT_PATH,       /* a host value with attributes */
	FACT_CAPABILITY, /* (9, 0) */
	FACT_ARCH, FACT_MAJOR, FACT_MINOR,
	FACT_INTEGER,
	FACT_BACKENDS, /* Triton's backends: only NVIDIA's */
};

#define BACKEND "triton.backends.nvidia"

static const struct fact {
	const char *path;
	enum fact_kind kind;
	const char *text;
} facts[] = {
	{"torch.version.hip", FACT_NONE, NULL},
	{"torch.version.xpu", FACT_NONE, NULL},
	{"torch.version.cuda", FACT_STRING, "13.0"},
	{"torch.__version__", FACT_STRING, "2.11.0"},
	{"triton.__version__", FACT_STRING, "3.6.0"},
	{"sys.platform", FACT_STRING, "linux"},
	{"sys.version_info", FACT_VERSION, "3.12.0"},
	{"os.name", FACT_STRING, "posix"},
	{"platform.system()", FACT_STRING, "Linux"},
	{"typing.TYPE_CHECKING", FACT_FALSE, NULL},
	{"torch.cuda.is_available()", FACT_TRUE, NULL},
	{"torch.utils._triton.has_triton()", FACT_TRUE, NULL},
	{"torch.cuda.is_bf16_supported()", FACT_TRUE, NULL},
	{"torch.cuda.current_device()", FACT_INTEGER, "0"},
	{"torch.cuda.get_device_capability()", FACT_CAPABILITY, NULL},
	{"torch.cuda.get_device_properties()", FACT_PATH, NULL},
	{"torch.cuda.get_device_properties().major", FACT_MAJOR, NULL},
	{"torch.cuda.get_device_properties().minor", FACT_MINOR, NULL},
	{"torch.cuda.get_device_properties().warp_size", FACT_INTEGER, "32"},
	{"triton.backends.backends.values()", FACT_BACKENDS, NULL},
	{"triton.backends.nvidia.driver.is_active()", FACT_TRUE, NULL},
	{"triton.runtime.driver.active.get_current_target()", FACT_PATH, NULL},
	{"triton.runtime.driver.active.get_current_target().backend", FACT_STRING, "cuda"},
	{"triton.runtime.driver.active.get_current_target().arch", FACT_ARCH, NULL},
	{"triton.runtime.driver.active.get_current_target().warp_size", FACT_INTEGER, "32"},
};

static struct val fact_value(struct eval *e, const struct fact *f)
{
	int major = e->capability / 10, minor = e->capability % 10;
	if (f->kind >= FACT_CAPABILITY && f->kind <= FACT_MINOR && !e->capability)
		return host_val(f->path);
	switch (f->kind) {
	case FACT_NONE: return val_none();
	case FACT_FALSE:
	case FACT_TRUE: return val_bool(f->kind == FACT_TRUE);
	case FACT_STRING: return val_str(f->text, (u32)strlen(f->text));
	case FACT_VERSION: return version_tuple(e, f->text);
	case FACT_PATH: return host_val(f->path);
	case FACT_CAPABILITY: {
		struct val *parts = arena_array(e->arena, struct val, 2);
		parts[0] = val_int(major);
		parts[1] = val_int(minor);
		return val_tuple(parts, 2);
	}
	case FACT_BACKENDS: {
		struct val *parts = arena_array(e->arena, struct val, 1);
		parts[0] = host_val(BACKEND);
		return val_tuple(parts, 1);
	}
	case FACT_ARCH: return val_int(e->capability);
	case FACT_MAJOR: return val_int(major);
	case FACT_MINOR: return val_int(minor);
	case FACT_INTEGER: return val_int(strtol(f->text, NULL, 10));
	}
	tl_unreachable("kind of fact");
}

static const struct fact *find_fact(const char *path)
{
	for (u32 i = 0; i < ARRAY_LEN(facts); i++)
		if (!strcmp(facts[i].path, path))
			return &facts[i];
	return NULL;
}

bool host_path(struct eval *e, const char *path, struct val *out)
{
	const struct fact *f = find_fact(path);
	size_t n = strlen(path);
	bool begins = f;
	for (u32 i = 0; i < ARRAY_LEN(facts) && !begins; i++)
		begins = !strncmp(facts[i].path, path, n) && strchr(".(", facts[i].path[n]);
	*out = f ? fact_value(e, f) : host_val(path);
	return begins;
}

struct val host_attribute(struct eval *e, struct val v, const char *name)
{
	const char *path = arena_printf(e->arena, "%s.%s", v.text, name);
	const struct fact *f = find_fact(path);
	struct val known;
	if (f)
		return fact_value(e, f);
	/* a module imported by name: importlib.import_module("triton").__version__, or a library lookup */
	bool named = !strncmp(path, "triton.", 7) && import_value(e, e->frame->func->module, path, false,
								  e->b.loc, &known);
	return named ? known : host_val(path);
}

/* Answers queries for a platform: 1 yes, 0 no, -1 not such a query. torch.cuda.is_available is true;
 * torch.npu.is_available is false, as for other devices. Functions of platform classes are recognised by their
 * names: is_hip(), current_platform.is_rocm(). */
static int asks_for_platform(const char *path)
{
	static const char *const no[] = {"hip", "rocm", "amd", "xpu", "hpu", "npu", "tpu", "cpu", "mps", "musa",
					 "ascend", "intel", "intel_gpu", "mlu", "hip_available", "npu_available",
					 "xpu_available", "hip_fnuz", "cdna", "rdna"},
				 *const yes[] = {"cuda", "nvidia", "cuda_alike", "cuda_available"};
	static const char *const devices[] = {"torch.xpu.", "torch.npu.", "torch.hpu.", "torch.mps.",
					      "torch.backends.mps.", "torch.musa.", "torch.mlu."};
	const char *dot = strrchr(path, '.'), *name = dot ? dot + 1 : path;
	for (u32 i = 0; i < ARRAY_LEN(devices) && dot; i++)
		if (!strncmp(path, devices[i], strlen(devices[i])) && !strcmp(name, "is_available"))
			return 0;
	name += *name == '_';
	if (strncmp(name, "is_", 3) != 0)
		return -1;
	for (u32 i = 0; i < ARRAY_LEN(no); i++)
		if (!strcmp(name + 3, no[i]))
			return 0;
	for (u32 i = 0; i < ARRAY_LEN(yes); i++)
		if (!strcmp(name + 3, yes[i]))
			return 1;
	return -1;
}

/* --- calls --------------------------------------------------------------------------------------------------- */

static bool is_path(const struct val *v, const char *const *paths, u32 n)
{
	for (u32 i = 0; i < n; i++)
		if (!strcmp(v->text, paths[i]))
			return true;
	return false;
}

static struct val environment(struct eval *e, const struct val *args, u32 n)
{
	const char *text = getenv(args[0].text);
	e->ctx->reads_environment = true;
	return text    ? val_str(arena_str(e->arena, text, strlen(text)), (u32)strlen(text))
	       : n > 1 ? args[1]
		       : val_none();
}

#define SPEC ".__spec__"

bool host_is_something(const struct val *v)
{
	return v->kind == V_HOST && (strstr(v->text, SPEC) || !strncmp(v->text, BACKEND, strlen(BACKEND)) ||
				     !strncmp(v->text, ARGUMENT, strlen(ARGUMENT)));
}

/* importlib.util.find_spec("a.b") or importlib.import_module("a.b"). If Python would not find the module, find_spec
 * returns None and import_module raises an exception. Otherwise find_spec returns the path a.b.__spec__, which
 * module_from_spec turns into a.b, and import_module returns the module. */
static struct val find_module(struct eval *e, const struct val *callee, const char *name, struct loc at)
{
	const struct module *m = e->frame->func->module;
	const struct tried t = {name, true, NULL};
	bool loads = !strcmp(callee->text, "importlib.import_module");
	struct val v;
	if (is_importable(e, m, &t)) {
		if (!loads)
			return host_val(arena_printf(e->arena, "%s%s", name, SPEC));
		import_value(e, m, name, true, at, &v);
		return v.kind == V_NAMESPACE && v.namespace_ == NS_TRITON ? host_val("triton") : v;
	}
	if (loads) {
		e->raised++;
		return eval_error(e, E_RAISED, at, arena_printf(e->arena, "No module named '%s'", name));
	}
	return val_none();
}

/* Functions of the module operator, such as operator.ge(a, b). */
static bool call_operator(struct eval *e, const char *path, const struct val *args, u32 n, struct loc at,
			  struct val *out)
{
	static const struct {
		const char *name;
		enum operator op;
	} all[] = {{"lt", OP_LT}, {"le", OP_LE}, {"gt", OP_GT}, {"ge", OP_GE}, {"eq", OP_EQ}, {"ne", OP_NE}};
	for (u32 i = 0; i < ARRAY_LEN(all) && n == 2; i++)
		if (!strncmp(path, "operator.", 9) && !strcmp(path + 9, all[i].name)) {
			*out = compare_values(e, all[i].op, args[0], args[1], at);
			return true;
		}
	return false;
}

static const char *const config_fields[] = {"kwargs", "num_warps", "num_stages", "num_ctas", "maxnreg", "pre_hook"};
const struct class config_class = {
	.name = "triton.Config", .fields = config_fields, .nfields = CONFIG_FIELDS, .makes_tuples = true};

/* triton.Config({…}, num_warps=4) is a named tuple of the fields and one more item, CONFIG_GIVEN: the bit set of the
 * fields that the call gives. */
static struct val call_config(struct eval *e, const struct call *c)
{
	const struct val initial[] = {{.kind = V_DICT}, val_int(4), val_int(3), val_int(1), val_none(), val_none()};
	struct val *parts = arena_array(e->arena, struct val, CONFIG_FIELDS + 1);
	i128 given = 0;
	for (u32 i = 0; i < CONFIG_FIELDS; i++) {
		parts[i] = i < c->npos ? c->pos[i] : initial[i];
		given |= i < c->npos ? (i128)1 << i : 0;
	}
	for (u32 k = 0; k < c->nnamed; k++) {
		int at = class_field(&config_class, c->named[k].name);
		if (at < 0)
			continue; /* keywords of other versions, such as ir_override */
		parts[at] = c->named[k].val;
		given |= (i128)1 << at;
	}
	parts[CONFIG_GIVEN] = val_int(given);
	struct val v = val_tuple(parts, CONFIG_FIELDS + 1);
	v.class = &config_class;
	return v;
}

/* itertools.product: all combinations of one item per tuple, in which the last tuple varies fastest. */
static struct val product(struct eval *e, const struct val *lists, u32 n, struct loc at)
{
	VEC(struct val) all = {0};
	u64 count = 1;
	for (u32 i = 0; i < n; i++)
		count = MIN(count * (lists[i].kind == V_TUPLE ? lists[i].nitems : 0), MAX_PARTS + 1ull);
	if (!count_made(e, count * MAX(n, 1), at))
		return val_error();
	for (u64 k = 0; k < count; k++) {
		struct val *one = arena_array(e->arena, struct val, n);
		u64 rest = k;
		for (u32 i = n; i--; rest /= lists[i].nitems)
			one[i] = lists[i].items[rest % lists[i].nitems];
		vec_push(e->arena, &all, val_tuple(one, n));
	}
	return val_tuple(all.at, all.len);
}

/* Calls Python's built-in functions and triton.Config. */
static bool call_python(struct eval *e, const char *path, const struct call *c, struct val *out)
{
	struct val *items = arena_array(e->arena, struct val, 2 * c->nnamed), dict;
	const char *dot = strrchr(path, '.');
	for (u32 i = 0; i < c->nnamed; i++) {
		items[2 * i] = val_str(c->named[i].name, (u32)strlen(c->named[i].name));
		items[2 * i + 1] = c->named[i].val;
	}
	dict = val_tuple(items, 2 * c->nnamed);
	dict.kind = V_DICT;
	if (!strcmp(dot ? dot + 1 : path, "Config"))
		*out = call_config(e, c);
	else if (!strcmp(path, "dict") && !c->npos)
		*out = dict;
	else if ((!strcmp(path, "list") || !strcmp(path, "tuple")) && c->npos == 1 && c->pos[0].kind == V_TUPLE)
		*out = c->pos[0];
	else if (!strcmp(path, "itertools.product"))
		*out = product(e, c->pos, c->npos, c->at);
	else
		return false;
	return true;
}

struct val host_call(struct eval *e, struct val callee, const struct call *c)
{
	static const char *const env[] = {"os.environ.get", "os.getenv"},
				 *const version[] = {"packaging.version.parse", "packaging.version.Version"},
				 *const find[] = {"importlib.util.find_spec", "importlib.import_module"},
				 *const named_tuples[] = {"collections.namedtuple", "typing.NamedTuple"},
				 *const made[] = {"importlib.util.module_from_spec"},
				 *const decorators[] = {"triton.jit", "triton.constexpr_function",
							"triton.runtime.jit.jit",
							"triton.runtime.jit.constexpr_function"};
	const struct val *args = c->pos;
	struct loc at = c->at;
	u32 n = c->npos;
	struct val result;
	const struct fact *f = find_fact(arena_printf(e->arena, "%s()", callee.text));
	if (f)
		return fact_value(e, f);
	bool text = n && args[0].kind == V_STR;
	if (text && is_path(&callee, env, ARRAY_LEN(env)))
		return environment(e, args, n);
	if (text && n == 1 && is_path(&callee, version, ARRAY_LEN(version)))
		return version_tuple(e, args[0].text);
	if (text && is_path(&callee, find, ARRAY_LEN(find)))
		return find_module(e, &callee, args[0].text, at);
	if (n == 1 && is_path(&callee, made, ARRAY_LEN(made)) && host_is_something(&args[0])) {
		size_t len = strlen(args[0].text) - strlen(SPEC);
		import_value(e, e->frame->func->module, arena_str(e->arena, args[0].text, len), true, at, &result);
		return result;
	}
	if (n == 1 && (args[0].kind == V_FUNC || args[0].kind == V_BUILTIN) &&
	    is_path(&callee, decorators, ARRAY_LEN(decorators)))
		return args[0];
	if (is_path(&callee, named_tuples, ARRAY_LEN(named_tuples)) && n == 2) {
		result = named_tuple_class(e, &args[0], &args[1]);
		if (result.kind == V_CLASS)
			return result;
	}
	if (!strncmp(callee.text, "str.", 4) || !strncmp(callee.text, "dict.", 5) || !strncmp(callee.text, "list.", 5))
		return call_python_method(e, callee.text, c);
	if (call_operator(e, callee.text, args, n, at, &result) || call_python(e, callee.text, c, &result))
		return result;
	int platform = asks_for_platform(callee.text);
	return platform < 0 ? eval_error(e, E_HOST_VALUE, at, callee.text) : val_bool(platform);
}

struct val host_function(struct eval *e, const struct module *m, const struct definition *d)
{
	struct func *f = map_get(&e->host_functions, d);
	if (!f) {
		struct diags_point before = diags_point(e->diags);
		f = parse_host_function(e->arena, e->ctx->names, e->diags, (struct module *)m, d->start);
		/* drop the messages: host Python that this parser rejects may be valid */
		diags_rewind(e->diags, before);
		if (!f)
			return host_val(d->name);
		map_put(&e->host_functions, d, f);
	}
	return (struct val){.kind = V_FUNC, .func = f};
}

struct val host_function_result(struct eval *e, const struct func *f, struct val v,
				struct diags_point before)
{
	static const char *const versions[] = {"Version", "parse_version", "version_parse"};
	int platform = asks_for_platform(f->name);
	const struct val *first = e->frame->vars.len ? &e->frame->vars.at[0].val : NULL;
	struct val known = val_bool(platform > 0);
	if (e->diags->nerrors == before.errors)
		return v;
	for (u32 i = 0; i < ARRAY_LEN(versions) && platform < 0; i++)
		if (!strcmp(f->name, versions[i]) && f->nparams == 1 && first->kind == V_STR) {
			known = version_tuple(e, first->text);
			platform = 1;
		}
	if (platform < 0)
		return val_error();
	diags_rewind(e->diags, before);
	return known;
}

/* --- statements ---------------------------------------------------------------------------------------------- */

static bool is_called(const struct body *b, u32 i, const char *what)
{
	return i < b->len && b->at[i]->kind == ST_UNSUPPORTED && !strcmp(b->at[i]->name, what);
}

/* Evaluates a `try` statement. It catches exceptions raised by the code itself. An error about an unknown value is not
 * such an exception. */
static u32 exec_try(struct eval *e, const struct body *b, u32 i, struct outcome *out)
{
	struct diags_point before = diags_point(e->diags);
	u32 raised = e->raised;
	*out = exec_body(e, &b->at[i]->body, 0, NULL);
	u32 failed = e->diags->nerrors - before.errors;
	bool caught = failed && failed == e->raised - raised && is_called(b, i + 1, "except");
	if (caught) {
		diags_rewind(e->diags, before);
		e->raised = raised;
		*out = exec_body(e, &b->at[i + 1]->body, 0, NULL);
	}
	for (i++; is_called(b, i, "except"); i++)
		;
	if (is_called(b, i, "finally") && out->ways == 1u << FLOW_NEXT)
		*out = exec_body(e, &b->at[i++]->body, 0, NULL);
	return i - 1;
}

static const char *dotted(struct eval *e, const struct expr *x)
{
	struct strbuf sb = sb_empty(e->arena);
	ast_print_expr(x, &sb);
	return intern_str(e->ctx->names, sb.at);
}

static void bind_import(struct eval *e, const struct stmt *s, const char *target, bool whole, const char *name)
{
	const struct module *m = e->frame->func->module;
	const struct tried t = {target, whole, NULL};
	struct val v;
	if (!is_importable(e, m, &t)) {
		e->raised++;
		eval_error(e, E_RAISED, s->loc, arena_printf(e->arena, "No module named '%s'", target));
		return;
	}
	import_value(e, m, target, whole, s->loc, &v);
	set_var(e, name, v);
}

static void exec_import(struct eval *e, const struct stmt *s)
{
	const char *base = dotted(e, s->value), *alias = s->target ? s->target->name : NULL;
	if (s->message) {
		bool several = s->message->kind == EX_TUPLE;
		struct expr *const *names = several ? s->message->items : (struct expr *const *)&s->message;
		for (u32 i = 0; i < (several ? s->message->nitems : 1); i++) {
			const char *name = dotted(e, names[i]);
			bind_import(e, s, arena_printf(e->arena, "%s.%s", base, name), false, alias ? alias : name);
		}
	} else if (alias) {
		bind_import(e, s, base, true, alias);
	} else {
		const char *first = intern(e->ctx->names, base, strcspn(base, "."));
		bind_import(e, s, first, true, first);
	}
}

u32 exec_host_stmt(struct eval *e, const struct body *body, u32 i, struct outcome *out)
{
	const struct stmt *s = body->at[i];
	*out = goes_on();
	if (!strcmp(s->name, "try"))
		return exec_try(e, body, i, out);
	if (!strcmp(s->name, "import") && (s->message || s->value))
		exec_import(e, s);
	else
		unsupported_syntax(e, s->name, s->loc);
	return i;
}
