/* Calls: binding arguments to the parameters of builtins and jit functions, and name lookup in namespaces. */
#include <stdlib.h>

#include "support/suggest.h"
#include "frontend/frontend_internal.h"

enum { MAX_ARGS = 32 };

/* --- names --------------------------------------------------------------------------------------------------- */

static struct val builtin_val(const struct builtin *b)
{
	return (struct val){.kind = V_BUILTIN, .builtin = b};
}

static struct val nested_namespace(enum namespace_ s, const char *name)
{
	static const struct {
		enum namespace_ in;
		const char *name;
		enum namespace_ out;
	} table[] = {
		{NS_TRITON, "language", NS_TL}, {NS_TL, "math", NS_MATH}, {NS_TL, "extra", NS_EXTRA},
		{NS_TL, "libdevice", NS_LIBDEVICE}, {NS_EXTRA, "cuda", NS_EXTRA},
			{NS_EXTRA, "hip", NS_EXTRA},
		{NS_EXTRA, "libdevice", NS_LIBDEVICE}, {NS_TL, "core", NS_TL},
			{NS_TL, "standard", NS_TL},
			{NS_TL, "random", NS_TL},
		{NS_TL, "PropagateNan", NS_PROPAGATE_NAN}, {NS_PROFILER, "language", NS_PROFILER},
		{NS_TL, "target_info", NS_TARGET}, {NS_INDUCTOR, "libdevice", NS_LIBDEVICE},
		{NS_INDUCTOR, "math", NS_MATH},
	};
	for (u32 i = 0; i < ARRAY_LEN(table); i++)
		if (table[i].in == s && !strcmp(table[i].name, name))
			return (struct val){.kind = V_NAMESPACE, .namespace_ = table[i].out};
	return val_error();
}

/* True for names of Triton that kernels use although they begin with '_'. */
static bool is_open(const char *name)
{
	static const char *const names[] = {"_log2", "_is_power_of_two", "_unwrap_if_constexpr",
					    "_experimental_make_tensor_descriptor"};
	for (u32 i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

struct val namespace_lookup(struct eval *e, enum namespace_ s, const char *name)
{
	struct val v = nested_namespace(s, name);
	if (v.kind != V_ERROR)
		return v;
	if (s == NS_TRITON && !strcmp(name, "__version__"))
		return val_str("3.6.0", 5);
	if (s == NS_PROPAGATE_NAN && (!strcmp(name, "ALL") || !strcmp(name, "NONE")))
		return val_bool(*name == 'A');
	if (s == NS_TL) {
		if (!strcmp(name, "constexpr"))
			return (struct val){.kind = V_CONSTEXPR};
		for (int d = 0; d < DT_COUNT; d++)
			if (!strcmp(dtype_tl_name((enum dtype)d), name))
				return val_dtype((enum dtype)d);
		if (!strcmp(name, "CONSTEXPR_0"))
			return val_int(0);
		if (!strcmp(name, "TRITON_MAX_TENSOR_NUMEL"))
			return val_int(IR_MAX_NUMEL);
		if (!strcmp(name, "pi32_t"))
			return (struct val){.kind = V_TYPE, .dtype = DT_I32, .pointers = 1};
	}
	if (s == NS_PYMATH) {
		static const struct {
			const char *name;
			double value;
		} constants[] = {{"pi", 3.14159265358979323846},
				 {"e", 2.7182818284590452354},
				 {"tau", 6.28318530717958647692},
				 {"inf", __builtin_inf()},
				 {"nan", __builtin_nan("")}};
		for (u32 i = 0; i < ARRAY_LEN(constants); i++)
			if (!strcmp(constants[i].name, name))
				return val_float(constants[i].value);
	}
	bool hidden = *name == '_' && strncmp(name, "__", 2) != 0 && !e->frame->func->module->is_library &&
		      !is_open(name); /* internal to the library */
	const struct builtin *b = hidden ? NULL : builtin_find(s, name, strlen(name));
	if (!b && s == NS_MATH && !hidden)
		b = builtin_find(NS_LIBDEVICE, name, strlen(name));
	if (b)
		return builtin_val(b);
	bool has_std = s == NS_TL || s == NS_MATH || s == NS_TRITON, has_libdevice = s == NS_LIBDEVICE || s == NS_MATH;
	const struct func *f = has_std && !hidden ? library_function(e, name) : NULL;
	const char *prefix = has_libdevice      ? LIBDEVICE_PREFIX
			     : s == NS_EXTRA    ? CUDA_PREFIX
			     : s == NS_INDUCTOR ? INDUCTOR_PREFIX
						: NULL;
	if (!f && prefix && !hidden) {
		name = intern_str(e->ctx->names, arena_printf(e->arena, "%s%s", prefix, name));
		f = library_function(e, name);
	}
	if (f)
		return (struct val){.kind = V_FUNC, .func = f};
	return val_error();
}

/* --- parameters ---------------------------------------------------------------------------------------------- */

static const char *formal_name(struct eval *e, const struct formal *f)
{
	return arena_str(e->arena, f->name, f->len);
}

static struct loc location_of(const struct call *c, u32 i)
{
	return c->pos_loc ? c->pos_loc[i] : c->at;
}

/* The arguments from number `from` on. */
static struct val remaining(struct eval *e, const struct call *c, u32 from, bool spreads)
{
	u32 n = c->npos - from;
	if (spreads && n == 1 && c->pos[from].kind == V_TUPLE)
		return c->pos[from];
	return val_tuple(arena_dup(e->arena, c->pos + from, n * sizeof *c->pos), n);
}

static void unknown_keyword(struct eval *e, const char *callee, const struct named_val *nv, const struct formal *f,
			    u32 n)
{
	const char **names = arena_array(e->arena, const char *, n);
	for (u32 i = 0; i < n; i++)
		names[i] = formal_name(e, &f[i]);
	eval_error(e, E_UNKNOWN_KEYWORD, nv->loc, callee, nv->name);
	const char *like = did_you_mean(nv->name, names, n);
	if (like) {
		diag_hint(e->diags, "did you mean '%s'?", like);
	} else if (n) {
		struct strbuf sb = {.arena = e->arena};
		for (u32 i = 0; i < n; i++)
			sb_printf(&sb, "%s%s", i ? ", " : "", names[i]);
		diag_hint(e->diags, "it takes: %s", sb.at);
	}
}

struct val missing_argument(struct eval *e, const char *callee, const char *name, struct loc at)
{
	struct val v = eval_error(e, E_MISSING_ARG, at, callee, name);
	advise_call(e, callee);
	return v;
}

static bool bind_positional(struct eval *e, const char *callee, const struct formal *f, u32 n, const struct call *c,
			    struct bound *b)
{
	u32 taken = 0, takes = 0;
	for (u32 i = 0; i < n; i++) {
		takes += !f[i].rest;
		b->loc[i] = c->at;
		if (taken >= c->npos || f[i].rest)
			continue;
		b->given[i] = true;
		b->loc[i] = location_of(c, taken);
		b->at[i] = f[i].star ? remaining(e, c, taken, f[i].spreads) : c->pos[taken];
		taken = f[i].star ? c->npos : taken + 1;
	}
	if (taken < c->npos)
		eval_error(e, E_TOO_MANY_ARGS, location_of(c, taken), callee, takes, c->npos);
	return taken == c->npos;
}

static bool bind_keywords(struct eval *e, const char *callee, const struct formal *f, u32 n, const struct call *c,
			  struct bound *b)
{
	bool has_rest = n && f[n - 1].rest;
	struct val *others = has_rest ? arena_array(e->arena, struct val, 2 * c->nnamed) : NULL;
	if (has_rest) {
		b->given[n - 1] = true;
		b->at[n - 1] = (struct val){.kind = V_DICT, .items = others};
	}
	for (const struct named_val *k = c->named, *end = k + c->nnamed; k < end; k++) {
		u32 i = 0, len = (u32)strlen(k->name);
		while (i < n && !(f[i].by_name && f[i].len == len && !memcmp(k->name, f[i].name, len)))
			i++;
		if (i == n && has_rest) {
			others[b->at[n - 1].nitems++] = val_str(k->name, len);
			others[b->at[n - 1].nitems++] = k->val;
			continue;
		}
		if (i == n) {
			unknown_keyword(e, callee, k, f, n);
			return false;
		}
		if (b->given[i]) {
			eval_error(e, E_REPEATED_ARG, k->loc, k->name);
			return false;
		}
		b->given[i] = true;
		b->at[i] = k->val;
		b->loc[i] = k->loc;
	}
	return true;
}

bool bind_arguments(struct eval *e, const char *callee, const struct formal *f, u32 n, const struct call *c,
		    struct bound *b)
{
	*b = (struct bound){arena_array(e->arena, struct val, n), arena_array(e->arena, struct loc, n),
			    arena_array(e->arena, bool, n)};
	if (!bind_positional(e, callee, f, n, c, b) || !bind_keywords(e, callee, f, n, c, b))
		return false;
	for (u32 i = 0; i < n; i++)
		if (f[i].star && !b->given[i])
			b->at[i] = val_tuple(NULL, 0);
	return true;
}

/* --- builtins ------------------------------------------------------------------------------------------------ */

static struct val default_value(const char *s, size_t len)
{
	if (len == 4 && !memcmp(s, "None", 4))
		return val_none();
	if (len == 4 && !memcmp(s, "True", 4))
		return val_bool(true);
	if (len == 5 && !memcmp(s, "False", 5))
		return val_bool(false);
	if (len == 2 && !memcmp(s, "()", 2))
		return val_tuple(NULL, 0);
	if (len == 2 && !memcmp(s, "''", 2)) /* strings are NUL-terminated */
		return val_str("", 0);
	if (*s == '\'')
		return val_str(s + 1, (u32)len - 2);
	return val_int(strtol(s, NULL, 10));
}

/* Reads a signature: parameters of the form "name", "name=default", "*name" or "**name". values: their defaults;
 * V_UNSET if there is none. */
static u32 parse_signature(const struct builtin *b, struct formal *out, struct val *values)
{
	u32 n = 0;
	for (const char *s = b->signature; *s; n++) {
		struct formal f = {.by_name = true, .spreads = b->namespace_ != NS_PYTHON};
		tl_assert(n < MAX_ARGS);
		while (*s == ' ' || *s == ',')
			s++;
		f.rest = !strncmp(s, "**", 2);
		f.star = *s == '*' && !f.rest;
		s += f.rest ? 2 : f.star;
		f.name = s;
		f.len = (u32)strcspn(s, ",=");
		s += f.len;
		values[n] = (struct val){.kind = V_UNSET};
		if (*s == '=') {
			size_t len = strcspn(++s, ",");
			values[n] = default_value(s, len);
			s += len;
		}
		out[n] = f;
	}
	return n;
}

static struct val call_builtin(struct eval *e, const struct builtin *b, const struct call *c)
{
	struct formal f[MAX_ARGS] = {{.len = 0}};
	struct val values[MAX_ARGS];
	struct bound bound;
	u32 n = parse_signature(b, f, values);
	if (!bind_arguments(e, b->name, f, n, c, &bound))
		return val_error();
	for (u32 i = 0; i < n; i++) {
		if (!bound.given[i] && !f[i].star)
			bound.at[i] = values[i];
		if (bound.at[i].kind == V_UNSET && !bound.given[i])
			return missing_argument(e, b->name, formal_name(e, &f[i]), c->at);
		if (bound.at[i].kind == V_ERROR)
			return val_error();
	}
	tell_builtin_call(e, b, bound.at, bound.given);
	e->b.loc = user_loc(e, c->at);
	struct args a = {.b = b, .at = bound.at, .loc = bound.loc, .n = n};
	return b->run(e, &a);
}

/* --- functions ----------------------------------------------------------------------------------------------- */

static const struct formal *formals_of(struct eval *e, const struct func *f)
{
	struct formal *out = arena_array(e->arena, struct formal, f->nparams);
	for (u32 i = 0; i < f->nparams; i++) {
		const struct param *p = &f->params[i];
		out[i] = (struct formal){.name = p->name,
					 .len = (u32)strlen(p->name),
					 .star = p->star,
					 .rest = p->rest,
					 .by_name = !p->star && !p->rest};
	}
	return out;
}

/* Makes the arguments variables of the function's frame. */
static void bind_variables(struct eval *e, const struct func *f, struct frame *frame, const struct bound *b,
			   struct loc at)
{
	e->frame = frame;
	for (u32 i = 0; i < f->nparams; i++) {
		const struct param *p = &f->params[i];
		bool given = b->given[i] || p->star;
		if (!given && p->value)
			b->at[i] = eval_in_module(e, f, p->value);
		e->frame = frame->caller;
		if (!given && !p->value)
			b->at[i] = missing_argument(e, f->name, p->name, at);
		e->frame = frame;
		keep_value(e, &b->at[i], at);
		vec_push(e->arena, &frame->vars,
			 ((struct binding){.name = p->name, .val = part_of(b->at[i]), .region = e->region}));
	}
}

static struct val call_function(struct eval *e, const struct func *f, const struct call *c)
{
	if (f->broken) {
		report_broken(e->arena, e->ctx->names, e->diags, f);
		return val_error();
	}
	struct frame *caller = e->frame;
	struct frame frame = {.caller = caller, .call = c->at, .func = f, .depth = caller->depth + 1};
	if (frame.depth > MAX_CALL_DEPTH) {
		e->stopped = true;
		return eval_error(e, E_RECURSION, c->at, f->name);
	}
	struct bound bound;
	if (!bind_arguments(e, f->name, formals_of(e, f), f->nparams, c, &bound))
		return val_error();
	tell_library_call(e, f, bound.at, bound.given);
	bind_variables(e, f, &frame, &bound, c->at);
	struct diags_point before = diags_point(e->diags);
	e->host += f->host;
	mark_call(e);
	struct val returned = exec_function(e, &f->body);
	mark_return(e);
	e->host -= f->host;
	if (f->host)
		returned = host_function_result(e, f, returned, before);
	e->frame = caller;
	e->b.loc = user_loc(e, c->at);
	return e->stopped ? val_error() : returned;
}

struct val call_func(struct eval *e, const struct func *f, const struct val *args, u32 nargs,
		     const struct named_val *named, u32 nnamed)
{
	return call_function(e, f, &(struct call){args, NULL, nargs, named, nnamed, e->b.loc});
}

struct val call_value(struct eval *e, struct val callee, const struct call *c)
{
	switch (callee.kind) {
	case V_ERROR: return callee;
	case V_BUILTIN: return call_builtin(e, callee.builtin, c);
	case V_FUNC: return call_function(e, callee.func, c);
	case V_HOST: return host_call(e, callee, c);
	case V_CLASS: return make_object(e, callee.class, c);
	case V_OBJECT: {
		struct val method = find_special(e, callee, "__call__", c->at);
		if (method.kind == V_ERROR)
			return eval_error(e, E_NOT_CALLABLE, c->at, describe(e, &callee));
		return call_value(e, method, c);
	}
	case V_CONSTEXPR:
		if (c->npos == 1 && !c->nnamed && known_number(c->pos[0]).kind != V_TENSOR)
			return known_numbers(e, c->pos[0]);
		return eval_error(e, E_CONSTEXPR_CALL, c->at);
	case V_METHOD: {
		struct val *all = arena_array(e->arena, struct val, c->npos + 1);
		struct loc *locs = arena_array(e->arena, struct loc, c->npos + 1);
		struct call with_self = *c;
		all[0] = *callee.self;
		locs[0] = c->at;
		for (u32 i = 0; i < c->npos; i++) {
			all[i + 1] = c->pos[i];
			locs[i + 1] = location_of(c, i);
		}
		with_self.pos = all;
		with_self.pos_loc = locs;
		with_self.npos++;
		return call_value(e, *callee.callee, &with_self);
	}
	default: return eval_error(e, E_NOT_CALLABLE, c->at, describe(e, &callee));
	}
}

struct val call_std(struct eval *e, const char *name, const struct val *args, u32 nargs)
{
	name = intern_str(e->ctx->names, name);
	const struct func *own = library_function(e, name);
	struct val f = own ? (struct val){.kind = V_FUNC, .func = own} : namespace_lookup(e, NS_TL, name);
	if (f.kind == V_ERROR)
		f = namespace_lookup(e, NS_LIBDEVICE, name);
	tl_assert(f.kind != V_ERROR);
	return call_value(e, f, &(struct call){.pos = args, .npos = nargs, .at = e->b.loc});
}

struct val eval_call(struct eval *e, const struct expr *x)
{
	struct val changed;
	if (change_list(e, x, &changed))
		return changed;
	const char *object = NULL;
	struct val callee;
	if (!super_method(e, x->a, &callee, &object))
		callee = eval_expr(e, x->a);
	VEC(struct val) pos = {0};
	VEC(struct loc) locs = {0};
	bool failed = callee.kind == V_ERROR;
	for (u32 i = 0; i < x->nitems; i++) {
		const struct expr *item = x->items[i];
		struct val v = eval_expr(e, item->kind == EX_STAR ? item->a : item);
		if (item->kind == EX_STAR && v.kind != V_TUPLE && v.kind != V_ERROR)
			v = eval_error(e, E_STAR, item->loc);
		failed |= v.kind == V_ERROR;
		if (item->kind != EX_STAR) {
			vec_push(e->arena, &pos, v);
			vec_push(e->arena, &locs, item->loc);
			continue;
		}
		for (u32 k = 0; v.kind == V_TUPLE && k < v.nitems; k++) {
			vec_push(e->arena, &pos, part_of(v.items[k]));
			vec_push(e->arena, &locs, item->loc);
		}
	}
	VEC(struct named_val) named = {0};
	for (u32 i = 0; i < x->nkeywords; i++) {
		const struct keyword *k = &x->keywords[i];
		if (k->name && (!strcmp(k->name, "_semantic") || !strcmp(k->name, "_builder") ||
				!strcmp(k->name, "_generator")))
			continue; /* internal Triton objects, which methods without a decorator pass on */
		struct val v = eval_expr(e, k->value);
		failed |= v.kind == V_ERROR || (!k->name && v.kind != V_DICT);
		if (!k->name && v.kind != V_DICT && v.kind != V_ERROR)
			eval_error(e, E_STAR, k->loc);
		for (u32 j = 0; !k->name && v.kind == V_DICT && j + 1 < v.nitems; j += 2)
			if (v.items[j].kind == V_STR)
				vec_push(e->arena, &named,
					 ((struct named_val){intern_str(e->ctx->names, v.items[j].text),
							     v.items[j + 1], k->loc}));
		if (k->name)
			vec_push(e->arena, &named, ((struct named_val){k->name, v, k->loc}));
	}
	if (failed)
		return val_error();
	if (x->a->kind == EX_ATTR && (callee.kind == V_TENSOR || callee.kind == V_TYPE || callee.kind == V_TUPLE)) {
		eval_error(e, E_NOT_CALLABLE, x->loc, describe(e, &callee));
		if (callee.kind == V_TYPE && pos.len == 1)
			diag_hint(e->diags, "x.to(%s) converts", source_text(e, x->a->loc));
		else
			diag_hint(e->diags, "'%s' is an attribute: leave out the parentheses", x->a->name);
		return val_error();
	}
	struct val r = call_value(e, callee,
				  &(struct call){pos.at, locs.at, pos.len, named.at, named.len, x->loc});
	if (!object || r.kind != V_OBJECT)
		return r;
	struct binding *self = find_var(e->frame, object);
	if (!may_change(e, self, "super().__init__", x->loc))
		return val_error();
	self->val = r;
	return val_none();
}
