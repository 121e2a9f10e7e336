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
		{NS_TL, "target_info", NS_TARGET},
	};
	for (u32 i = 0; i < ARRAY_LEN(table); i++)
		if (table[i].in == s && !strcmp(table[i].name, name))
			return (struct val){.kind = V_NAMESPACE, .namespace_ = table[i].out};
	return val_error();
}

/* True for names of Triton that kernels use although they begin with '_'. */
static bool is_open(const char *name)
{
	static const char *const names[] = {"_log2", "_is_power_of_two", "_experimental_make_tensor_descriptor"};
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

/* --- builtins ------------------------------------------------------------------------------------------------ */

/* One parameter of a signature string: "name", "name=default", "*name" or "**name". */
struct formal {
	const char *name;
	u32 len;
	bool star, optional;
	bool rest; /* "**name": receives the remaining keywords as a dict */
	struct val value;
};

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

static u32 parse_signature(const char *s, struct formal *out)
{
	u32 n = 0;
	while (*s) {
		struct formal f = {0};
		while (*s == ' ' || *s == ',')
			s++;
		f.rest = !strncmp(s, "**", 2);
		f.star = *s == '*' && !f.rest;
		s += f.rest ? 2 : f.star;
		f.name = s;
		f.len = (u32)strcspn(s, ",=");
		s += f.len;
		if (*s == '=') {
			size_t len = strcspn(++s, ",");
			f.optional = true;
			f.value = default_value(s, len);
			s += len;
		}
		tl_assert(n < MAX_ARGS);
		out[n++] = f;
	}
	return n;
}

static const char *formal_name(struct eval *e, const struct formal *f)
{
	return arena_str(e->arena, f->name, f->len);
}

static struct val unknown_keyword(struct eval *e, const char *callee, const struct named_val *nv,
				  const char *const *names, u32 n)
{
	struct val v = eval_error(e, E_UNKNOWN_KEYWORD, nv->loc, callee, nv->name);
	const char *like = did_you_mean(nv->name, names, n);
	if (like) {
		diag_hint(e->diags, "did you mean '%s'?", like);
	} else if (n) {
		struct strbuf sb = {.arena = e->arena};
		for (u32 i = 0; i < n; i++)
			sb_printf(&sb, "%s%s", i ? ", " : "", names[i]);
		diag_hint(e->diags, "it takes: %s", sb.at);
	}
	return v;
}

static struct val missing_argument(struct eval *e, const char *callee, const char *name, struct loc at)
{
	struct val v = eval_error(e, E_MISSING_ARG, at, callee, name);
	advise_call(e, callee);
	return v;
}

static struct val call_builtin(struct eval *e, const struct builtin *b, const struct val *pos,
			       const struct loc *pos_loc, u32 npos, const struct named_val *named, u32 nnamed,
			       struct loc at)
{
	struct formal f[MAX_ARGS];
	struct val bound[MAX_ARGS];
	struct loc locs[MAX_ARGS];
	bool given[MAX_ARGS] = {false};
	u32 n = parse_signature(b->signature, f), taken = 0;
	for (u32 i = 0; i < n; i++) {
		locs[i] = at;
		bound[i] = f[i].value;
		if (taken >= npos)
			continue;
		given[i] = true;
		locs[i] = pos_loc[taken];
		if (f[i].rest) {
			given[i] = false;
		} else if (f[i].star) {
			bool spread = b->namespace_ != NS_PYTHON; /* f((a, b)) is the same as f(a, b) */
			bound[i] = spread && npos - taken == 1 && pos[taken].kind == V_TUPLE
					   ? pos[taken]
					   : val_tuple(pos + taken, npos - taken);
			taken = npos;
		} else {
			bound[i] = pos[taken++];
		}
	}
	if (taken < npos)
		return eval_error(e, E_TOO_MANY_ARGS, pos_loc[taken], b->name, n, npos);
	struct formal *rest = n && f[n - 1].rest ? &f[n - 1] : NULL;
	struct val *others = rest ? arena_array(e->arena, struct val, 2 * nnamed) : NULL;
	if (rest) {
		given[n - 1] = true;
		bound[n - 1] = (struct val){.kind = V_DICT, .items = others};
	}
	for (u32 k = 0; k < nnamed; k++) {
		const char *names[MAX_ARGS];
		u32 i = 0;
		for (; i < n; i++)
			if (strlen(named[k].name) == f[i].len && !memcmp(named[k].name, f[i].name, f[i].len))
				break;
		if (i == n && rest) {
			others[bound[n - 1].nitems++] = val_str(named[k].name, (u32)strlen(named[k].name));
			others[bound[n - 1].nitems++] = named[k].val;
			continue;
		}
		if (i == n) {
			for (u32 j = 0; j < n; j++)
				names[j] = formal_name(e, &f[j]);
			return unknown_keyword(e, b->name, &named[k], names, n);
		}
		if (given[i])
			return eval_error(e, E_REPEATED_ARG, named[k].loc, named[k].name);
		given[i] = true;
		bound[i] = named[k].val;
		locs[i] = named[k].loc;
	}
	for (u32 i = 0; i < n; i++) {
		if (!given[i] && f[i].star)
			bound[i] = val_tuple(NULL, 0);
		else if (!given[i] && !f[i].optional)
			return missing_argument(e, b->name, formal_name(e, &f[i]), at);
		if (bound[i].kind == V_ERROR)
			return val_error();
	}
	tell_builtin_call(e, b, bound, given);
	e->b.loc = user_loc(e, at);
	struct args a = {.b = b, .at = bound, .loc = locs, .n = n};
	return b->run(e, &a);
}

/* --- functions ----------------------------------------------------------------------------------------------- */

static struct val call_func_at(struct eval *e, const struct func *f, const struct val *pos, const struct loc *pos_loc,
			       u32 npos, const struct named_val *named, u32 nnamed, struct loc at)
{
	if (f->broken) {
		report_broken(e->arena, e->ctx->names, e->diags, f);
		return val_error();
	}
	struct frame *caller = e->frame;
	struct frame frame = {.caller = caller, .call = at, .func = f, .depth = caller->depth + 1};
	if (frame.depth > MAX_CALL_DEPTH) {
		e->stopped = true;
		return eval_error(e, E_RECURSION, at, f->name);
	}
	struct val *bound = arena_array(e->arena, struct val, f->nparams);
	bool *given = arena_array(e->arena, bool, f->nparams);
	u32 star = 0, rest = 0; /* indices of *name and **name, or nparams */
	while (star < f->nparams && !f->params[star].star)
		star++;
	while (rest < f->nparams && !f->params[rest].rest)
		rest++;
	if (npos > MIN(star, rest) && star == f->nparams)
		return eval_error(e, E_TOO_MANY_ARGS, pos_loc ? pos_loc[rest] : at, f->name, rest, npos);
	struct val *others = rest < f->nparams ? arena_array(e->arena, struct val, 2 * nnamed) : NULL;
	if (others) {
		bound[rest] = (struct val){.kind = V_DICT, .items = others};
		given[rest] = true;
	}
	for (u32 i = 0; i < MIN(npos, star); i++) {
		bound[i] = pos[i];
		given[i] = true;
	}
	if (star < f->nparams) {
		u32 n = npos > star ? npos - star : 0;
		bound[star] = val_tuple(n ? arena_dup(e->arena, pos + star, n * sizeof *pos) : NULL, n);
		given[star] = true;
	}
	for (u32 k = 0; k < nnamed; k++) {
		u32 i = 0;
		while (i < f->nparams && (f->params[i].name != named[k].name || f->params[i].star || f->params[i].rest))
			i++;
		if (i == f->nparams && others) {
			others[bound[rest].nitems++] = val_str(named[k].name, (u32)strlen(named[k].name));
			others[bound[rest].nitems++] = named[k].val;
			continue;
		}
		if (i == f->nparams) {
			const char **names = arena_array(e->arena, const char *, f->nparams);
			for (u32 j = 0; j < f->nparams; j++)
				names[j] = f->params[j].name;
			return unknown_keyword(e, f->name, &named[k], names, f->nparams);
		}
		if (given[i])
			return eval_error(e, E_REPEATED_ARG, named[k].loc, named[k].name);
		bound[i] = named[k].val;
		given[i] = true;
	}
	tell_library_call(e, f, bound, given);
	e->frame = &frame;
	for (u32 i = 0; i < f->nparams; i++) {
		const struct param *p = &f->params[i];
		if (!given[i] && p->value)
			bound[i] = eval_in_module(e, f, p->value);
		e->frame = caller;
		if (!given[i] && !p->value)
			bound[i] = missing_argument(e, f->name, p->name, at);
		e->frame = &frame;
		keep_value(e, &bound[i], at);
		vec_push(e->arena, &frame.vars,
			 ((struct binding){.name = p->name, .val = part_of(bound[i]), .region = e->region}));
	}
	u32 len = e->diags->text.len, errors = e->diags->nerrors;
	e->host += f->host;
	mark_call(e);
	struct val returned = exec_function(e, &f->body);
	mark_return(e);
	e->host -= f->host;
	if (f->host)
		returned = host_function_result(e, f, returned, len, errors);
	e->frame = caller;
	e->b.loc = user_loc(e, at);
	return e->stopped ? val_error() : returned;
}

struct val call_func(struct eval *e, const struct func *f, const struct val *args, u32 nargs,
		     const struct named_val *named, u32 nnamed)
{
	return call_func_at(e, f, args, NULL, nargs, named, nnamed, e->b.loc);
}

static struct val call_val(struct eval *e, struct val callee, const struct val *pos, const struct loc *pos_loc,
			   u32 npos, const struct named_val *named, u32 nnamed, struct loc at)
{
	switch (callee.kind) {
	case V_ERROR: return callee;
	case V_BUILTIN: return call_builtin(e, callee.builtin, pos, pos_loc, npos, named, nnamed, at);
	case V_FUNC: return call_func_at(e, callee.func, pos, pos_loc, npos, named, nnamed, at);
	case V_HOST: return host_call(e, callee, pos, npos, named, nnamed, at);
	case V_CLASS: return make_object(e, callee.class, &(struct call){pos, pos_loc, npos, named, nnamed, at});
	case V_OBJECT: {
		struct val method = find_special(e, callee, "__call__", at);
		if (method.kind == V_ERROR)
			return eval_error(e, E_NOT_CALLABLE, at, describe(e, &callee));
		return call_val(e, method, pos, pos_loc, npos, named, nnamed, at);
	}
	case V_CONSTEXPR:
		if (npos == 1 && !nnamed && known_number(pos[0]).kind != V_TENSOR)
			return known_numbers(e, pos[0]);
		return eval_error(e, E_CONSTEXPR_CALL, at);
	case V_METHOD: {
		struct val *all = arena_array(e->arena, struct val, npos + 1);
		struct loc *locs = arena_array(e->arena, struct loc, npos + 1);
		all[0] = *callee.self;
		locs[0] = at;
		for (u32 i = 0; i < npos; i++) {
			all[i + 1] = pos[i];
			locs[i + 1] = pos_loc[i];
		}
		return call_val(e, *callee.callee, all, locs, npos + 1, named, nnamed, at);
	}
	default: return eval_error(e, E_NOT_CALLABLE, at, describe(e, &callee));
	}
}

struct val call_value(struct eval *e, struct val callee, const struct call *c)
{
	return call_val(e, callee, c->pos, c->pos_loc, c->npos, c->named, c->nnamed, c->at);
}

struct val call_std(struct eval *e, const char *name, const struct val *args, u32 nargs)
{
	struct loc locs[MAX_ARGS];
	for (u32 i = 0; i < nargs; i++)
		locs[i] = e->b.loc;
	name = intern_str(e->ctx->names, name);
	const struct func *own = library_function(e, name);
	struct val f = own ? (struct val){.kind = V_FUNC, .func = own} : namespace_lookup(e, NS_TL, name);
	if (f.kind == V_ERROR)
		f = namespace_lookup(e, NS_LIBDEVICE, name);
	tl_assert(f.kind != V_ERROR);
	return call_val(e, f, args, locs, nargs, NULL, 0, e->b.loc);
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
	struct val r = call_val(e, callee, pos.at, locs.at, pos.len, named.at, named.len, x->loc);
	if (!object || r.kind != V_OBJECT)
		return r;
	struct binding *self = find_var(e->frame, object);
	if (!may_change(e, self, "super().__init__", x->loc))
		return val_error();
	self->val = r;
	return val_none();
}
