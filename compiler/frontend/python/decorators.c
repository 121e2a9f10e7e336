/* Decorators of a kernel: configurations and keys of triton.autotune, values of triton.heuristics, and decorators of
 * other libraries with the same arguments. They are host Python, evaluated as far as it is known. An unknown part
 * leaves a reason. */
#include <stdlib.h>

#include "support/suggest.h"
#include "frontend/frontend_internal.h"

static const char *literal_of(struct eval *e, const struct val *v)
{
	struct strbuf sb = {.arena = e->arena};
	if (v->kind == V_FLOAT && !__builtin_isfinite(v->real))
		return arena_printf(e->arena, "float('%s')",
				    __builtin_isnan(v->real) ? "nan"
				    : v->real < 0            ? "-inf"
							     : "inf");
	if (v->kind == V_FLOAT) { /* the shortest digits that read back as the same value */
		char text[40];
		for (int digits = 9; digits <= 17; digits += 8) {
			snprintf(text, sizeof text, "%.*g", digits, v->real);
			if (strtod(text, NULL) == v->real)
				break;
		}
		return arena_printf(e->arena, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
	}
	if (v->kind == V_FUNC)
		return v->func->name;
	sb_puts(&sb, v->kind == V_STR ? "\"" : "");
	print_val(&sb, v);
	sb_puts(&sb, v->kind == V_STR ? "\"" : "");
	return sb.at;
}

static const char *json_of(struct eval *e, const struct val *v)
{
	const char *literal = literal_of(e, v);
	switch (v->kind) {
	case V_NONE: return "null";
	case V_BOOL: return v->boolean ? "true" : "false";
	case V_INT:
	case V_STR: return literal;
	case V_FLOAT: return __builtin_isfinite(v->real) ? literal : arena_printf(e->arena, "\"%s\"", literal);
	default: return arena_printf(e->arena, "\"%s\"", literal);
	}
}

static struct tuned_value tuned(struct eval *e, const struct val *name, const struct val *v)
{
	return (struct tuned_value){intern_str(e->ctx->names, name->text), literal_of(e, v), json_of(e, v)};
}

/* The first message after offset `from`, without the word "error". */
static const char *first_message(struct eval *e, u32 from)
{
	const char *text = e->diags->text.at + from, *at = strstr(text, " error: ");
	if (e->diags->text.len <= from || !at)
		return "its value is not known";
	size_t len = strcspn(at + 8, "\n");
	return arena_printf(e->arena, "%s %s", arena_str(e->arena, text, (size_t)(at - text)),
			    arena_str(e->arena, at + 8, len));
}

/* The evaluation of one decorator of a kernel. */
struct reading {
	struct eval *e;
	const struct eval_request *req;
	const struct decorator *d;
	const struct expr *call;
	struct tuning *out;
};

/* v, or V_ERROR if there were errors since `before`. The errors become a reason, except for a launch, which reports
 * them. */
static struct val known(const struct reading *r, struct diags_point before, const char *of, struct val v)
{
	struct diags *d = r->e->diags;
	if (d->nerrors == before.errors && v.kind != V_ERROR)
		return v;
	if (r->req->of != DECORATORS_KNOWN)
		return val_error();
	vec_push(r->e->arena, &r->out->unknown,
		 arena_printf(r->e->arena, "%s of %s: %s", of, r->d->name, first_message(r->e, before.text)));
	diags_rewind(d, before);
	return val_error();
}

static const struct expr *argument(const struct expr *call, const char *name, u32 at)
{
	for (u32 i = 0; i < call->nkeywords; i++)
		if (call->keywords[i].name && !strcmp(call->keywords[i].name, name))
			return call->keywords[i].value;
	return at < call->nitems ? call->items[at] : NULL;
}

/* The value of the decorator's argument of that name; None if it is absent. */
static struct val evaluated(const struct reading *r, const char *name, const struct expr *x)
{
	struct diags_point before = diags_point(r->e->diags);
	return x ? known(r, before, name, eval_expr(r->e, x)) : val_none();
}

static struct val named_argument(const struct reading *r, const char *name)
{
	return evaluated(r, name, argument(r->call, name, r->call->nitems));
}

/* Notes a problem with the arguments of the decorator: a reason, or an error of the launch. */
static void complain(const struct reading *r, struct loc at, const char *text)
{
	struct diags_point before = diags_point(r->e->diags);
	diag(r->e->diags, E_DECORATOR, at, text);
	known(r, before, "arguments", val_error());
}

static bool is_parameter(const struct func *f, const char *name)
{
	for (u32 i = 0; i < f->nparams; i++)
		if (!strcmp(f->params[i].name, name))
			return true;
	return false;
}

/* True if `name` is a parameter. For a launch, another name is an error. */
static bool check_parameter(const struct reading *r, struct loc at, const char *of, const char *name)
{
	const struct func *f = r->req->func;
	if (r->req->of == DECORATORS_KNOWN || is_parameter(f, name))
		return true;
	const char **names = arena_array(r->e->arena, const char *, f->nparams + 1);
	for (u32 i = 0; i < f->nparams; i++)
		names[i] = f->params[i].name;
	diag(r->e->diags, E_DECORATOR_NAME, at, of, name, f->name);
	const char *like = did_you_mean(name, names, f->nparams);
	if (like)
		diag_hint(r->e->diags, "did you mean '%s'?", like);
	return false;
}

static void read_names(const struct reading *r, const char *what, const struct expr *x, name_list *to)
{
	struct val v = evaluated(r, what, x);
	for (u32 i = 0; v.kind == V_TUPLE && i < v.nitems; i++)
		if (v.items[i].kind == V_STR && check_parameter(r, x->loc, what, v.items[i].text))
			vec_push(r->e->arena, to, v.items[i].text);
}

/* --- configurations ------------------------------------------------------------------------------------------ */

static bool is_config(const struct val *v)
{
	return v->kind == V_TUPLE && v->class == &config_class && v->items[CONFIG_KWARGS].kind == V_DICT;
}

static int config_number(const struct val *config, int field)
{
	const struct val *n = &config->items[field];
	bool given = config->items[CONFIG_GIVEN].integer >> field & 1;
	return given && n->kind == V_INT && n->integer > 0 && n->integer < 1 << 10 ? (int)n->integer : 0;
}

/* True if the item of a configuration's dictionary is an option of the compiler, as Triton allows, and no parameter. */
static bool read_option(const struct reading *r, const char *name, const struct val *v, struct codegen_options *o)
{
	bool fusion = !strcmp(name, "enable_fp_fusion"), ftz = !strcmp(name, "enable_reflect_ftz");
	if ((!fusion && !ftz) || v->kind != V_BOOL || is_parameter(r->req->func, name))
		return false;
	if (fusion)
		o->fp_fusion = v->boolean ? FP_FUSION_ON : FP_FUSION_OFF;
	else
		o->ftz = v->boolean ? FTZ_ON : FTZ_OFF;
	return true;
}

static bool add_configuration(const struct reading *r, const struct expr *x, const struct val *v)
{
	struct eval *e = r->e;
	if (!is_config(v))
		return false;
	const struct val *values = &v->items[CONFIG_KWARGS];
	struct configuration c = {.values = arena_array(e->arena, struct tuned_value, values->nitems / 2),
				  .options = {.num_warps = config_number(v, CONFIG_WARPS),
					      .num_stages = config_number(v, CONFIG_STAGES),
					      .maxnreg = config_number(v, CONFIG_MAXNREG)},
				  .num_ctas = config_number(v, CONFIG_CTAS),
				  .has_hook = v->items[CONFIG_HOOK].kind != V_NONE};
	for (u32 i = 0; i + 1 < values->nitems; i += 2)
		if (values->items[i].kind == V_STR &&
		    !read_option(r, values->items[i].text, &values->items[i + 1], &c.options) &&
		    check_parameter(r, x->loc, "configs", values->items[i].text))
			c.values[c.nvalues++] = tuned(e, &values->items[i], &values->items[i + 1]);
	vec_push(e->arena, &r->out->configurations, c);
	return true;
}

/* The kernel's arguments as host code sees them: constants, and values that only a launch knows. */
static struct val arguments(struct eval *e, const struct eval_request *req, const struct tuning *t)
{
	const struct func *f = req->func;
	struct val *items = arena_array(e->arena, struct val, 2 * f->nparams);
	for (u32 i = 0; i < f->nparams; i++) {
		const char *name = f->params[i].name, *text = req->args[i].constant;
		const struct configuration *c = t->configurations.len ? t->configurations.at : NULL;
		for (u32 k = 0; !text && c && k < c->nvalues; k++)
			text = c->values[k].name == name ? c->values[k].literal : NULL;
		for (u32 k = 0; !text && k < t->heuristics.len; k++)
			text = t->heuristics.at[k].name == name ? t->heuristics.at[k].literal : NULL;
		items[2 * i] = val_str(name, (u32)strlen(name));
		items[2 * i + 1] = host_val(arena_printf(e->arena, ARGUMENT "%s", name));
		if (text)
			items[2 * i + 1] = constant_argument(e, name, text);
		else if (req->args[i].shape == ARG_LEAF && !req->args[i].type && f->params[i].value)
			items[2 * i + 1] = eval_in_module(e, f, f->params[i].value);
	}
	struct val v = val_tuple(items, 2 * f->nparams);
	v.kind = V_DICT;
	return v;
}

/* Collects, by name, the arguments of the launch, and the values and options of a configuration if there is one. */
static u32 keywords(struct eval *e, const struct val *args, const struct val *config, struct named_val *out)
{
	u32 n = 0;
	const struct val *kwargs = config ? &config->items[CONFIG_KWARGS] : NULL;
	for (u32 i = 0; i < args->nitems; i += 2)
		if (!kwargs || !dict_find(kwargs, &args->items[i]))
			out[n++] = (struct named_val){intern_str(e->ctx->names, args->items[i].text),
						      args->items[i + 1], e->b.loc};
	for (u32 i = 0; kwargs && i < kwargs->nitems; i += 2)
		out[n++] = (struct named_val){intern_str(e->ctx->names, kwargs->items[i].text), kwargs->items[i + 1],
					      e->b.loc};
	for (int i = CONFIG_WARPS; kwargs && i <= CONFIG_CTAS; i++)
		out[n++] = (struct named_val){intern_str(e->ctx->names, config_class.fields[i]), config->items[i],
					      e->b.loc};
	return n;
}

struct estimate {
	double time;
	u32 index;
};

static int by_time(const void *x, const void *y)
{
	const struct estimate *a = x, *b = y;
	return a->time != b->time ? (a->time < b->time ? -1 : 1) : (a->index > b->index) - (a->index < b->index);
}

/* The number of the n configurations to keep after the model; 0 after an error. */
static u32 how_many(const struct reading *r, const struct val *top_k, u32 n, struct loc at)
{
	if (!top_k)
		return n;
	if (top_k->kind == V_INT && top_k->integer > 0)
		return (u32)MIN(top_k->integer, (i128)n);
	if (top_k->kind == V_FLOAT && top_k->real > 0 && top_k->real <= 1)
		return MAX(1, (u32)(n * top_k->real));
	complain(r, at, "top_k must be a number of configurations, or a fraction of them, at most 1.0");
	return 0;
}

/* The configurations of `configs` with the shortest times by perf_model. */
static struct val best_by_model(const struct reading *r, const struct func *model, const struct val *configs, u32 most,
				const struct val *args, struct loc at)
{
	struct eval *e = r->e;
	struct estimate *times = arena_array(e->arena, struct estimate, configs->nitems);
	for (u32 i = 0; i < configs->nitems; i++) {
		const struct val *c = &configs->items[i];
		u32 room = args->nitems / 2 + c->items[CONFIG_KWARGS].nitems / 2 + CONFIG_FIELDS;
		struct named_val *named = arena_array(e->arena, struct named_val, room);
		struct val t = call_func(e, model, NULL, 0, named, keywords(e, args, c, named));
		if (t.kind == V_ERROR)
			return t;
		if (t.kind != V_INT && t.kind != V_FLOAT) {
			complain(r, at,
				 arena_printf(e->arena, "perf_model returns %s, which is not a time", describe(e, &t)));
			return val_error();
		}
		times[i] = (struct estimate){double_of(&t), i};
	}
	qsort(times, configs->nitems, sizeof *times, by_time);
	struct val *items = arena_array(e->arena, struct val, most);
	for (u32 i = 0; i < most; i++)
		items[i] = configs->items[times[i].index];
	return val_tuple(items, most);
}

static bool contains(const struct val *configs, const struct val *config)
{
	for (u32 i = 0; i < configs->nitems; i++)
		if (configs->items[i].items == config->items)
			return true;
	return false;
}

static bool all_configs(const struct val *v)
{
	bool all = v->kind == V_TUPLE;
	for (u32 i = 0; all && i < v->nitems; i++)
		all = is_config(&v->items[i]);
	return all;
}

/* Evaluates prune_configs_by: notes why it drops configurations, and adds configurations that it creates. */
static void prune(const struct reading *r, const struct val *configs)
{
	static const char *const names[] = {"early_config_prune", "perf_model", "top_k"};
	struct eval *e = r->e;
	const struct expr *x = argument(r->call, "prune_configs_by", r->call->nitems);
	struct val by = evaluated(r, "prune_configs_by", x), left = *configs;
	const struct val *found[ARRAY_LEN(names)];
	if (by.kind != V_DICT)
		return;
	for (u32 i = 0; i < ARRAY_LEN(names); i++) {
		struct val name = val_str(names[i], (u32)strlen(names[i]));
		found[i] = dict_find(&by, &name);
		if (found[i] && found[i]->kind == V_NONE)
			found[i] = NULL;
		if (found[i] && i < 2 && found[i]->kind != V_FUNC) {
			complain(r, x->loc,
				 arena_printf(e->arena, "%s is %s, which is not a function of this file", names[i],
					      describe(e, found[i])));
			return;
		}
	}
	struct val args = arguments(e, r->req, &(struct tuning){0}), both[] = {*configs, args};
	e->b.loc = x->loc;
	if (found[0]) {
		struct named_val *named = arena_array(e->arena, struct named_val, args.nitems / 2 + 1);
		const struct func *f = found[0]->func;
		bool rest = f->nparams && f->params[f->nparams - 1].rest;
		left = call_func(e, f, both, 2, named, rest ? keywords(e, &args, NULL, named) : 0);
		if (left.kind == V_ERROR)
			return;
		if (!all_configs(&left) || !left.nitems) {
			complain(r, x->loc,
				 arena_printf(e->arena,
					      "early_config_prune returns %s: it must return a list of at least one "
					      "configuration",
					      describe(e, &left)));
			return;
		}
	}
	struct val early = left;
	u32 most = how_many(r, found[2], left.nitems, x->loc);
	if (found[1] && most && most < left.nitems)
		left = best_by_model(r, found[1]->func, &left, most, &args, x->loc);
	if (left.kind == V_ERROR)
		return;
	for (u32 i = 0; i < configs->nitems; i++) {
		struct configuration *c = &r->out->configurations.at[i];
		if (!contains(&early, &configs->items[i]))
			c->pruned = "early_config_prune removes it";
		else if (!contains(&left, &configs->items[i]))
			c->pruned = "perf_model ranks it below the first top_k";
	}
	for (u32 i = 0; i < left.nitems; i++)
		if (!contains(configs, &left.items[i])) /* created by the pruning function */
			add_configuration(r, x, &left.items[i]);
}

static int milliseconds(const struct reading *r, const char *name)
{
	struct val v = named_argument(r, name);
	return v.kind == V_INT && v.integer > 0 && v.integer < 1 << 20 ? (int)v.integer : 0;
}

static void read_autotune(const struct reading *r, const struct expr *configs, const struct expr *key)
{
	struct val v = evaluated(r, "configs", configs);
	bool good = v.kind == V_TUPLE;
	for (u32 i = 0; good && i < v.nitems; i++)
		good = add_configuration(r, configs, &v.items[i]);
	if (!good && v.kind != V_ERROR) {
		r->out->configurations.len = 0;
		complain(r, configs->loc,
			 arena_printf(r->e->arena, "%s is not a list of triton.Config", describe(r->e, &v)));
	}
	if (key)
		read_names(r, "key", key, &r->out->keys);
	const struct expr *reset = argument(r->call, "reset_to_zero", r->call->nitems),
			  *restore = argument(r->call, "restore_value", r->call->nitems);
	if (reset)
		read_names(r, "reset_to_zero", reset, &r->out->reset);
	if (restore)
		read_names(r, "restore_value", restore, &r->out->restore);
	r->out->warmup_ms = milliseconds(r, "warmup");
	r->out->rep_ms = milliseconds(r, "rep");
	if (good && r->req->of == LAUNCH_CONFIGURATIONS)
		prune(r, &v);
}

/* --- heuristics ---------------------------------------------------------------------------------------------- */

static bool is_given(const struct eval_request *req, const char *name)
{
	for (u32 i = 0; i < req->func->nparams; i++)
		if (req->func->params[i].name == name)
			return req->args[i].constant != NULL;
	return true;
}

static void read_heuristics(const struct reading *r, const struct expr *x)
{
	struct eval *e = r->e;
	struct val v = evaluated(r, "values", x);
	if (v.kind != V_DICT)
		return;
	for (u32 i = 0; i + 1 < v.nitems; i += 2) {
		if (v.items[i].kind != V_STR || !check_parameter(r, x->loc, "values", v.items[i].text))
			continue;
		const char *name = intern_str(e->ctx->names, v.items[i].text);
		struct tuned_value value = {.name = name};
		if (r->req->args && v.items[i + 1].kind == V_FUNC && !is_given(r->req, name)) {
			struct diags_point before = diags_point(r->e->diags);
			struct val args = arguments(e, r->req, r->out);
			e->b.loc = x->loc;
			struct val is = call_func(e, v.items[i + 1].func, &args, 1, NULL, 0);
			if (is.kind == V_HOST)
				is = eval_error(e, E_HOST_VALUE, x->loc, is.text);
			is = known(r, before, arena_printf(e->arena, "'%s'", name), is);
			if (is.kind != V_ERROR)
				value = tuned(e, &v.items[i], &is);
		}
		vec_push(e->arena, &r->out->heuristics, value);
	}
}

/* --- parameters that are not specialised --------------------------------------------------------------------- */

/* Collects parameters that are given by name or index. */
static void read_parameters(const struct reading *r, const char *what, name_list *to)
{
	const struct func *f = r->req->func;
	struct val v = named_argument(r, what);
	bool known = v.kind == V_TUPLE || v.kind == V_NONE || v.kind == V_ERROR;
	for (u32 i = 0; v.kind == V_TUPLE && i < v.nitems; i++) {
		const struct val *x = &v.items[i];
		bool number = x->kind == V_INT && x->integer >= 0 && x->integer < f->nparams;
		const char *name = number ? f->params[x->integer].name : x->kind == V_STR ? x->text : "";
		known &= is_parameter(f, name);
		if (is_parameter(f, name))
			vec_push(r->e->arena, to, name);
	}
	if (!known)
		complain(r, r->d->loc,
			 arena_printf(r->e->arena, "%s is not a list of parameters of '%s'", what, f->name));
}

const struct expr *decorator_call(struct eval *e, const struct module *m, const struct decorator *d)
{
	struct ir_context *ctx = e->ctx;
	struct diags_point before = diags_point(ctx->diags);
	const struct expr *x = parse_expression(ctx->arena, ctx->names, ctx->diags, m->file, d->start, d->end);
	diags_rewind(ctx->diags, before);
	return x && x->kind == EX_CALL ? x : NULL;
}

static void read_jit(struct eval *e, const struct eval_request *req, struct tuning *out)
{
	const struct decorator *d = &req->func->jit;
	const struct expr *call = d->name ? decorator_call(e, req->func->module, d) : NULL;
	const struct reading r = {e, req, d, call, out};
	if (!call)
		return;
	read_parameters(&r, "do_not_specialize", &out->any_value);
	read_parameters(&r, "do_not_specialize_on_alignment", &out->any_alignment);
}

void eval_decorators(struct ir_context *ctx, const struct eval_request *req, struct tuning *out)
{
	struct eval e = eval_new(ctx, req);
	struct func host = {.kind = FUNC_CONSTEXPR, .name = "a decorator", .module = req->func->module, .host = true};
	struct frame f = {.func = &host};
	*out = (struct tuning){0};
	e.kernel = kernel_new(ctx, req->func->name);
	e.b = builder_at_end(ctx, e.kernel->body);
	e.frame = &f;
	e.host = 1;
	if (req->of == DECORATORS_KNOWN)
		read_jit(&e, req, out);
	/* a configuration provides arguments of heuristics, and each heuristic provides arguments of later ones */
	for (u32 pass = 0; pass < 2; pass++)
		for (u32 i = 0; i < req->func->ndecorators; i++) {
			const struct decorator *d = &req->func->decorators[i];
			const char *dot = strrchr(d->name, '.'), *last = dot ? dot + 1 : d->name;
			const struct expr *x = decorator_call(&e, req->func->module, d);
			if (!x)
				continue;
			bool autotune = !strcmp(last, "autotune"), heuristics = !strcmp(last, "heuristics");
			const struct expr *configs = argument(x, "configs", autotune ? 0 : x->nitems),
					  *values = argument(x, "values", heuristics ? 0 : x->nitems);
			const struct reading r = {&e, req, d, x, out};
			if (configs && pass == 0 && req->of != LAUNCH_HEURISTICS)
				read_autotune(&r, configs, argument(x, "key", autotune ? 1 : x->nitems));
			if (values && heuristics && pass == 1 && req->of != LAUNCH_CONFIGURATIONS)
				read_heuristics(&r, values);
		}
}
