/* Classes defined in the source. A call of a NamedTuple class makes a named tuple. A call of a class decorated with
 * @triton.language.core._aggregate makes an object. Objects are values: variables, loops and branches carry their
 * fields. An object's fields are set by its __init__. A class without an __init__ takes the fields in order, first the
 * fields of its base. */
#include "support/suggest.h"
#include "frontend/builtin_args.h"

/* --- class definitions --------------------------------------------------------------------------------------- */

static bool is_named_tuple(const struct expr *x)
{
	return (x->kind == EX_NAME || x->kind == EX_ATTR) && !strcmp(x->name, "NamedTuple");
}

/* Evaluates x in the scope of the module, outside any function. */
static struct val eval_beside(struct eval *e, struct module *m, const char *name, const struct expr *x)
{
	struct func nowhere = {.kind = FUNC_CONSTEXPR, .name = name, .module = m};
	return eval_in_module(e, arena_dup(e->arena, &nowhere, sizeof nowhere), x);
}

/* The class that x names; NULL without a message if x does not name a class. */
static const struct class *class_named(struct eval *e, const struct class_def *d, const struct expr *x)
{
	struct diags_point before = diags_point(e->diags);
	struct val v = eval_beside(e, d->module, d->name, x);
	if (e->diags->nerrors != before.errors)
		diags_rewind(e->diags, before);
	return v.kind == V_CLASS ? v.class : NULL;
}

/* Determines the base of c; false after an error. */
static bool read_bases(struct eval *e, struct class *c)
{
	const struct class_def *d = c->def;
	for (u32 i = 0; i < d->nbases; i++)
		c->makes_tuples |= is_named_tuple(d->bases[i]);
	/* other bases of a named tuple, such as Generic, have no effect */
	for (u32 i = 0; i < d->nbases && !c->makes_tuples; i++) {
		const struct class *base = class_named(e, d, d->bases[i]);
		if (base && !base->makes_tuples && !c->base) {
			c->base = base;
			continue;
		}
		struct strbuf text = {.arena = e->arena};
		ast_print_expr(d->bases[i], &text);
		eval_error(e, E_CLASS_BASE, d->bases[i]->loc, d->name, text.at);
		return false;
	}
	return true;
}

static void read_fields(struct eval *e, struct class *c)
{
	const struct class_def *d = c->def;
	u32 max = d->fields.len + (c->base ? c->base->nfields : 0);
	const char **names = arena_array(e->arena, const char *, max);
	c->declared = arena_array(e->arena, const struct field *, max);
	c->fields = names;
	for (; c->base && c->nfields < c->base->nfields; c->nfields++) {
		names[c->nfields] = c->base->fields[c->nfields];
		c->declared[c->nfields] = c->base->declared[c->nfields];
	}
	for (u32 i = 0; i < d->fields.len; i++) {
		if (!d->fields.at[i].annotation)
			continue;
		int again = class_field(c, d->fields.at[i].name);
		u32 at = again < 0 ? c->nfields++ : (u32)again;
		names[at] = d->fields.at[i].name;
		c->declared[at] = &d->fields.at[i];
	}
}

struct val class_value(struct eval *e, const struct module *m, const struct definition *d)
{
	struct val *known = map_get(&e->globals, d), failed = val_error();
	if (known)
		return *known;
	known = arena_dup(e->arena, &failed, sizeof failed);
	map_put(&e->globals, d, known);
	const struct class_def *def =
		parse_class(e->arena, e->ctx->names, e->diags, (struct module *)m, d->start, d->end);
	if (!def)
		return failed;
	struct class *c = arena_new(e->arena, struct class);
	*c = (struct class){.name = d->name, .def = def};
	if (!read_bases(e, c))
		return failed;
	read_fields(e, c);
	*known = (struct val){.kind = V_CLASS, .class = c};
	return *known;
}

struct val named_tuple_class(struct eval *e, const struct val *name, const struct val *fields)
{
	VEC(const char *) names = {0};
	if (name->kind != V_STR || (fields->kind != V_STR && fields->kind != V_TUPLE))
		return val_error();
	for (u32 i = 0; fields->kind == V_TUPLE && i < fields->nitems; i++) {
		const struct val *item = &fields->items[i];
		item = item->kind == V_TUPLE && item->nitems ? &item->items[0] : item;
		if (item->kind != V_STR)
			return val_error();
		vec_push(e->arena, &names, item->text);
	}
	for (const char *s = fields->kind == V_STR ? fields->text : ""; *s; s += strspn(s, ", ")) {
		size_t len = strcspn(s, ", ");
		if (len)
			vec_push(e->arena, &names, arena_str(e->arena, s, len));
		s += len;
	}
	struct class *c = arena_new(e->arena, struct class);
	*c = (struct class){.name = name->text, .fields = names.at, .nfields = names.len, .makes_tuples = true};
	return (struct val){.kind = V_CLASS, .class = c};
}

/* --- attributes ---------------------------------------------------------------------------------------------- */

u32 class_names(const struct class *c, const char **names, u32 max)
{
	u32 n = 0;
	for (u32 i = 0; i < c->nfields && n < max; i++)
		names[n++] = c->fields[i];
	for (; c && c->def; c = c->base)
		for (u32 i = 0; i < c->def->methods.len && n < max; i++)
			names[n++] = c->def->methods.at[i].func->name;
	return n;
}

static const struct method *find_method(const struct class *c, const char *name)
{
	for (; c && c->def; c = c->base)
		for (u32 i = c->def->methods.len; i-- > 0;)
			if (!strcmp(c->def->methods.at[i].func->name, name))
				return &c->def->methods.at[i];
	return NULL;
}

static struct val bound(struct eval *e, const struct method *m, struct val v, struct loc at)
{
	struct val f = {.kind = V_FUNC, .func = m->func}, owner = {.kind = V_CLASS, .class = v.class};
	switch (m->kind) {
	case METHOD_STATIC: return f;
	case METHOD_OF_CLASS: return bind_method(e, owner, f);
	case METHOD_PROPERTY:
	case METHOD: break;
	}
	if (v.kind == V_CLASS)
		return f;
	f = bind_method(e, v, f);
	return m->kind == METHOD_PROPERTY ? call_value(e, f, &(struct call){.at = at}) : f;
}

struct val class_attribute(struct eval *e, struct val v, const char *name, struct loc at)
{
	int field = class_field(v.class, name);
	if (field >= 0 && v.kind == V_OBJECT) {
		const struct val x = part_of(v.items[field]);
		return x.kind == V_UNSET ? eval_error(e, E_UNSET, at, name, x.reason) : x;
	}
	const struct method *m = find_method(v.class, name);
	if (m)
		return bound(e, m, v, at);
	if (v.kind == V_OBJECT && !strcmp(name, "type"))
		return type_of(e, &v);
	for (const struct class *c = v.class; c && c->def; c = c->base)
		for (u32 i = c->def->fields.len; i-- > 0;)
			if (!strcmp(c->def->fields.at[i].name, name) && c->def->fields.at[i].value)
				return eval_beside(e, c->def->module, c->name, c->def->fields.at[i].value);
	return unknown_attribute(e, &v, name, at);
}

struct val find_special(struct eval *e, struct val v, const char *name, struct loc at)
{
	const struct method *m = find_method(v.class, name);
	return m ? bound(e, m, v, at) : val_error();
}

bool class_has(const struct class *c, const char *name)
{
	return class_field(c, name) >= 0 || find_method(c, name);
}

/* x if it is super().name in a method, which denotes the base's method bound to the method's object. */
static const struct expr *super_of(const struct eval *e, const struct expr *x)
{
	const struct expr *of = x->kind == EX_ATTR ? x->a : NULL;
	bool is_super = of && of->kind == EX_CALL && !of->nitems && !of->nkeywords && of->a->kind == EX_NAME &&
			!strcmp(of->a->name, "super");
	return is_super && e->frame->func->nparams ? x : NULL;
}

bool super_method(struct eval *e, const struct expr *x, struct val *out, const char **object)
{
	const struct func *f = e->frame->func;
	const struct binding *self = super_of(e, x) ? find_var(e->frame, f->params[0].name) : NULL;
	const struct class *c = self && self->val.kind == V_OBJECT ? self->val.class : NULL;
	for (; c && c->def; c = c->base)
		for (u32 i = 0; i < c->def->methods.len; i++) {
			const struct method *m = c->def->methods.at[i].func == f ? find_method(c->base, x->name) : NULL;
			if (!m)
				continue;
			*object = m->func->is_init && f->is_init ? f->params[0].name : NULL;
			*out = bound(e, m, self->val, x->loc);
			return true;
		}
	return false;
}

/* --- fields -------------------------------------------------------------------------------------------------- */

bool is_object_of(const struct val *v, const struct class *c)
{
	const struct class *of = v->kind == V_OBJECT ? v->class : NULL;
	while (of && of != c)
		of = of->base;
	return of != NULL;
}

/* True if v fits the annotation of a field, or if the annotation is unknown. */
static bool fits(struct eval *e, const struct class *c, const struct expr *type, const struct val *v)
{
	const char *name = type->kind == EX_NAME || type->kind == EX_ATTR ? type->name : "";
	if (is_constexpr_annotation(type))
		return v->kind != V_TENSOR;
	if (!strcmp(name, "tensor"))
		return v->kind == V_TENSOR || is_block_pointer(v);
	if (!strcmp(name, "tuple"))
		return v->kind == V_TUPLE;
	if (!strcmp(name, "tensor_descriptor"))
		return v->kind == V_OBJECT && !strcmp(v->class->name, name);
	const struct definition *d = type->kind == EX_NAME ? map_get(&c->def->module->definitions, name) : NULL;
	if (!d || d->kind != DEF_CLASS)
		return true;
	struct val of = class_value(e, c->def->module, d);
	return of.kind != V_CLASS || (of.class->makes_tuples ? v->kind == V_TUPLE : is_object_of(v, of.class));
}

static bool check_field(struct eval *e, const struct class *c, u32 i, const struct val *v, struct loc at)
{
	const struct expr *type = c->makes_tuples || !c->declared ? NULL : c->declared[i]->annotation;
	if (v->kind == V_ERROR || !type || fits(e, c, type, v))
		return true;
	struct strbuf words = {.arena = e->arena};
	if (type->kind == EX_STR)
		sb_add(&words, type->text, type->text_len);
	else
		ast_print_expr(type, &words);
	eval_error(e, E_FIELD_TYPE, at, c->fields[i], c->name, words.at, describe(e, v));
	if (is_constexpr_annotation(type))
		diag_hint(e->diags,
			  "tl.constexpr is for values that are known at compile time, tl.tensor for run-time values");
	else if (val_is_number(v))
		diag_hint(e->diags, "assign it to a variable first, which makes it a run-time value");
	return false;
}

void assign_field(struct eval *e, const struct expr *target, struct val v)
{
	const struct func *f = e->frame->func;
	bool constructs = f->is_init && target->a->kind == EX_NAME && target->a->name == f->params[0].name;
	struct binding *self = constructs ? find_var(e->frame, target->a->name) : NULL;
	if (!self || self->val.kind != V_OBJECT) {
		struct val owner = eval_expr(e, target->a);
		if (owner.kind == V_OBJECT)
			eval_error(e, E_FIELD_FIXED, target->loc, target->name);
		else if (owner.kind == V_TUPLE)
			eval_error(e, E_FIELD_TUPLE, target->loc, target->name);
		else if (owner.kind != V_ERROR)
			eval_error(e, E_ASSIGN_TARGET, target->loc);
		return;
	}
	if (!may_change(e, self, target->name, target->loc))
		return;
	int i = class_field(self->val.class, target->name);
	if (i < 0) {
		eval_error(e, E_FIELD_UNKNOWN, target->loc, self->val.class->name, target->name);
		const char *like = did_you_mean(target->name, self->val.class->fields, self->val.class->nfields);
		if (like)
			diag_hint(e->diags, "did you mean '%s'?", like);
		return;
	}
	if (!check_field(e, self->val.class, (u32)i, &v, target->loc))
		v = val_error();
	struct val *items = arena_dup(e->arena, self->val.items, self->val.nitems * sizeof *items);
	items[i] = v;
	self->val.items = items;
}

/* --- construction of objects --------------------------------------------------------------------------------- */

/* The values of a call, one per field in the order of the fields; NULL after an error. */
static struct val *bind_fields(struct eval *e, const struct class *c, const struct call *call)
{
	struct formal *fields = arena_array(e->arena, struct formal, c->nfields);
	struct bound b;
	for (u32 i = 0; i < c->nfields; i++)
		fields[i] = (struct formal){.name = c->fields[i], .len = (u32)strlen(c->fields[i]), .by_name = true};
	if (!bind_arguments(e, c->name, fields, c->nfields, call, &b))
		return NULL;
	for (u32 i = 0; i < c->nfields; i++) {
		const struct expr *value = c->declared ? c->declared[i]->value : NULL;
		if (!b.given[i])
			b.at[i] = value ? eval_beside(e, c->def->module, c->name, value)
					: missing_argument(e, c->name, c->fields[i], call->at);
		if (b.at[i].kind == V_ERROR || !check_field(e, c, i, &b.at[i], b.loc[i]))
			return NULL;
	}
	return b.at;
}

/* Creates an object through the __init__ of its class. */
static struct val run_init(struct eval *e, const struct class *c, const struct func *init, const struct call *call)
{
	struct val *items = arena_array(e->arena, struct val, c->nfields);
	for (u32 i = 0; i < c->nfields; i++)
		items[i] = (struct val){.kind = V_UNSET, .reason = "'__init__' has not set it yet"};
	struct val v = {.kind = V_OBJECT, .class = c, .items = items, .nitems = c->nfields};
	u32 errors = e->diags->nerrors;
	v = call_value(e, bind_method(e, v, (struct val){.kind = V_FUNC, .func = init}), call);
	if (e->diags->nerrors != errors)
		return val_error();
	for (u32 i = 0; v.kind == V_OBJECT && i < c->nfields; i++) {
		if (v.items[i].kind == V_UNSET)
			return eval_error(e, E_FIELD_UNSET, call->at, c->name, c->fields[i]);
		if (v.items[i].kind == V_ERROR)
			return val_error();
	}
	return v;
}

struct val make_object(struct eval *e, const struct class *c, const struct call *call)
{
	for (u32 i = 0; !c->makes_tuples && i < c->def->methods.len; i++)
		if (c->def->methods.at[i].func->is_init)
			return run_init(e, c, c->def->methods.at[i].func, call);
	struct val *items = bind_fields(e, c, call);
	if (!items)
		return val_error();
	struct val v = {.kind = V_OBJECT, .class = c, .items = items, .nitems = c->nfields};
	if (c->makes_tuples) {
		v.kind = V_TUPLE;
		v.class = tuple_class(e, c->fields, c->nfields);
	}
	return v;
}

struct val bi_aggregate_replace(struct eval *e, const struct args *a)
{
	const struct val v = a->at[0], *changes = &a->at[1];
	if (v.kind != V_OBJECT || !v.class->def)
		return eval_error(e, E_REPLACE, a->loc[0], describe(e, &v));
	struct named_val *named = arena_array(e->arena, struct named_val, v.nitems);
	for (u32 i = 0; i < v.nitems; i++)
		named[i] = (struct named_val){v.class->fields[i], v.items[i], a->loc[0]};
	for (u32 i = 0; i < changes->nitems; i += 2) {
		int field = class_field(v.class, changes->items[i].text);
		if (field < 0)
			return eval_error(e, E_FIELD_UNKNOWN, a->loc[0], v.class->name, changes->items[i].text);
		named[field].val = changes->items[i + 1];
	}
	return make_object(e, v.class, &(struct call){.named = named, .nnamed = v.nitems, .at = a->loc[0]});
}

/* --- operators ----------------------------------------------------------------------------------------------- */

bool object_operator(struct eval *e, enum operator op, struct val a, struct val b, struct loc at, struct val *out)
{
	static const struct {
		enum operator op;
		const char *method, *reflected;
	} table[] = {
		{OP_ADD, "__add__", "__radd__"},
		{OP_SUB, "__sub__", "__rsub__"},
		{OP_MUL, "__mul__", "__rmul__"},
		{OP_DIV, "__truediv__", "__rtruediv__"},
		{OP_FLOORDIV, "__floordiv__", "__rfloordiv__"},
		{OP_MOD, "__mod__", "__rmod__"},
		{OP_POW, "__pow__", "__rpow__"},
		{OP_SHL, "__lshift__", "__rlshift__"},
		{OP_SHR, "__rshift__", "__rrshift__"},
		{OP_BITAND, "__and__", "__rand__"},
		{OP_BITOR, "__or__", "__ror__"},
		{OP_BITXOR, "__xor__", "__rxor__"},
		{OP_MATMUL, "__matmul__", "__rmatmul__"},
		{OP_LT, "__lt__", "__gt__"},
		{OP_LE, "__le__", "__ge__"},
		{OP_GT, "__gt__", "__lt__"},
		{OP_GE, "__ge__", "__le__"},
		{OP_EQ, "__eq__", "__eq__"},
		{OP_NE, "__ne__", "__ne__"},
	};
	struct val sides[] = {a, b};
	for (u32 i = 0; i < ARRAY_LEN(table); i++)
		for (u32 k = 0; k < 2 && table[i].op == op; k++) {
			const char *name = k ? table[i].reflected : table[i].method;
			bool is_object = sides[k].kind == V_OBJECT;
			const struct method *m = is_object ? find_method(sides[k].class, name) : NULL;
			if (!m)
				continue;
			*out = call_value(e, bound(e, m, sides[k], at),
					  &(struct call){.pos = &sides[!k], .pos_loc = &at, .npos = 1, .at = at});
			return true;
		}
	return false;
}
