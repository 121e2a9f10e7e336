/* What decorators say of a kernel: configurations and keys of triton.autotune, values of triton.heuristics, and those
 * of decorators of other libraries that have the same arguments. They are host Python, evaluated as far as that is
 * known; what is not leaves a reason. */
#include "eval/internal.h"

static const char *literal_of(struct eval *e, const struct val *v)
{
	struct strbuf sb = {.arena = e->arena};
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

/* The first message from offset `from` on, without the word "error". */
static const char *first_message(struct eval *e, u32 from)
{
	const char *text = e->diags->text.at + from, *at = strstr(text, " error: ");
	if (e->diags->text.len <= from || !at)
		return "it is not known";
	size_t len = strcspn(at + 8, "\n");
	return arena_printf(e->arena, "%s %s", arena_str(e->arena, text, (size_t)(at - text)),
			    arena_str(e->arena, at + 8, len));
}

/* V_ERROR after a reason in out->unknown. */
static struct val known(struct eval *e, const char *of, const struct expr *x, struct tuning *out)
{
	u32 len = e->diags->text.len, errors = e->diags->nerrors;
	struct val v = eval_expr(e, x);
	if (e->diags->nerrors == errors && v.kind != V_ERROR)
		return v;
	vec_push(e->arena, &out->unknown, arena_printf(e->arena, "%s: %s", of, first_message(e, len)));
	diags_cut(e->diags, len);
	e->diags->nerrors = errors;
	return val_error();
}

static const struct expr *argument(const struct expr *call, const char *name, u32 at)
{
	for (u32 i = 0; i < call->nkeywords; i++)
		if (call->keywords[i].name && !strcmp(call->keywords[i].name, name))
			return call->keywords[i].value;
	return at < call->nitems && call->items[at]->kind != EX_UNSUPPORTED ? call->items[at] : NULL;
}

static bool add_configuration(struct eval *e, const struct val *v, struct tuning *out)
{
	bool is_config = v->kind == V_TUPLE && v->nitems == 3 && v->items[0].kind == V_HOST &&
			 !strcmp(v->items[0].text, "triton.Config") && v->items[1].kind == V_DICT;
	if (!is_config)
		return false;
	const struct val *values = &v->items[1], *rest = &v->items[2];
	struct configuration c = {.values = arena_array(e->arena, struct tuned_value, values->nitems / 2)};
	for (u32 i = 0; i + 1 < values->nitems; i += 2)
		if (values->items[i].kind == V_STR)
			c.values[c.nvalues++] = tuned(e, &values->items[i], &values->items[i + 1]);
	for (u32 i = 0; i + 1 < rest->nitems; i += 2) {
		const struct val *n = &rest->items[i + 1];
		int number = n->kind == V_INT && n->integer > 0 && n->integer < 1 << 10 ? (int)n->integer : 0;
		if (!strcmp(rest->items[i].text, "num_warps"))
			c.num_warps = number;
		else if (!strcmp(rest->items[i].text, "num_stages"))
			c.num_stages = number;
	}
	vec_push(e->arena, &out->configurations, c);
	return true;
}

static void read_autotune(struct eval *e, const struct decorator *d, const struct expr *configs,
			  const struct expr *key, struct tuning *out)
{
	struct val v = known(e, arena_printf(e->arena, "configs of %s", d->name), configs, out);
	bool good = v.kind == V_TUPLE;
	for (u32 i = 0; good && i < v.nitems; i++)
		good = add_configuration(e, &v.items[i], out);
	if (!good && v.kind != V_ERROR) {
		out->configurations.len = 0;
		vec_push(e->arena, &out->unknown,
			 arena_printf(e->arena, "configs of %s: %s is no list of triton.Config", d->name,
				      describe(e, &v)));
	}
	v = key ? known(e, arena_printf(e->arena, "key of %s", d->name), key, out) : val_tuple(NULL, 0);
	for (u32 i = 0; v.kind == V_TUPLE && i < v.nitems; i++)
		if (v.items[i].kind == V_STR)
			vec_push(e->arena, &out->keys, v.items[i].text);
}

/* The kernel's arguments as host code sees them: constants, and what only a launch knows. */
static struct val arguments(struct eval *e, const struct eval_request *req, const struct tuning *t)
{
	const struct func *f = req->func;
	struct val *items = arena_array(e->arena, struct val, 2 * f->nparams);
	for (u32 i = 0; i < f->nparams; i++) {
		const char *name = f->params[i].name, *text = req->args[i].constant;
		const struct configuration *c = t->configurations.len ? t->configurations.at : NULL;
		for (u32 k = 0; !text && c && k < c->nvalues; k++)
			text = c->values[k].name == name ? c->values[k].literal : NULL;
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

static bool is_given(const struct eval_request *req, const char *name)
{
	for (u32 i = 0; i < req->func->nparams; i++)
		if (req->func->params[i].name == name)
			return req->args[i].constant != NULL;
	return true;
}

static void read_heuristics(struct eval *e, const struct eval_request *req, const struct decorator *d,
			    const struct expr *x, struct tuning *out)
{
	struct val v = known(e, arena_printf(e->arena, "values of %s", d->name), x, out);
	if (v.kind != V_DICT)
		return;
	for (u32 i = 0; i + 1 < v.nitems; i += 2) {
		if (v.items[i].kind != V_STR)
			continue;
		const char *name = intern_str(e->ctx->names, v.items[i].text);
		struct tuned_value value = {.name = name};
		if (req->args && v.items[i + 1].kind == V_FUNC && !is_given(req, name)) {
			u32 len = e->diags->text.len, errors = e->diags->nerrors;
			struct val args = arguments(e, req, out);
			struct val r = call_func(e, v.items[i + 1].func, &args, 1, NULL, 0);
			if (e->diags->nerrors == errors && r.kind != V_ERROR && r.kind != V_HOST)
				value = tuned(e, &v.items[i], &r);
			else
				vec_push(e->arena, &out->unknown,
					 arena_printf(e->arena, "'%s' of %s: %s", name, d->name,
						      first_message(e, len)));
			diags_cut(e->diags, len);
			e->diags->nerrors = errors;
		}
		vec_push(e->arena, &out->heuristics, value);
	}
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
	/* from the kernel outwards, as they apply: a configuration gives heuristics their arguments */
	for (u32 pass = 0; pass < 2; pass++)
		for (u32 i = 0; i < req->func->ndecorators; i++) {
			const struct decorator *d = &req->func->decorators[i];
			const char *dot = strrchr(d->name, '.'), *last = dot ? dot + 1 : d->name;
			u32 len = ctx->diags->text.len, errors = ctx->diags->nerrors;
			const struct expr *x = parse_expression(ctx->arena, ctx->names, ctx->diags,
								req->module->file, d->start, d->end);
			diags_cut(ctx->diags, len);
			ctx->diags->nerrors = errors;
			if (!x || x->kind != EX_CALL)
				continue;
			bool autotune = !strcmp(last, "autotune"), heuristics = !strcmp(last, "heuristics");
			const struct expr *configs = argument(x, "configs", autotune ? 0 : x->nitems),
					  *values = argument(x, "values", heuristics ? 0 : x->nitems);
			if (configs && pass == 0)
				read_autotune(&e, d, configs, argument(x, "key", autotune ? 1 : x->nitems), out);
			if (values && heuristics && pass == 1)
				read_heuristics(&e, req, d, values, out);
		}
}
