/* Text that describes values, for messages and static_print. */
#include <math.h>

#include "frontend/frontend_internal.h"

static void print_int(struct strbuf *out, i128 v)
{
	struct expr e = {.kind = EX_INT, .integer = v};
	ast_print_expr(&e, out);
}

static void print_type_words(struct strbuf *out, const struct type *t, const struct val *v)
{
	for (int i = 0; i < v->pointers; i++)
		sb_puts(out, "*");
	sb_printf(out, "%s%s", v->is_const ? "k" : "", dtype_name(v->dtype));
	if (!t || !type_is_tensor(t))
		return;
	for (int i = 0; i < t->rank; i++)
		sb_printf(out, i ? ", %d" : "[%d", t->shape[i]);
	sb_puts(out, "]");
}

/* For a block pointer or descriptor, prints the block's type too. */
static void print_object(struct strbuf *out, const struct val *v)
{
	int base = class_field(v->class, "base"), block = class_field(v->class, "block_shape"),
	    padding = class_field(v->class, "pads_with_nan");
	sb_puts(out, v->class->name);
	if (v->class->def || base < 0 || block < 0)
		return;
	const struct val *shape = &v->items[block], *pad = padding < 0 ? NULL : &v->items[padding];
	sb_printf(out, " of %s[", dtype_name(v->items[base].dtype));
	for (u32 i = 0; i < shape->nitems; i++) {
		sb_puts(out, i ? ", " : "");
		print_val(out, &shape->items[i]);
	}
	sb_puts(out, pad && pad->kind == V_BOOL && pad->boolean ? "] padded with nan" : "]");
}

void print_val(struct strbuf *out, const struct val *v)
{
	switch (v->kind) {
	case V_ERROR: sb_puts(out, "<error>"); break;
	case V_UNSET: sb_puts(out, "<unset>"); break;
	case V_NONE: sb_puts(out, "None"); break;
	case V_BOOL: sb_puts(out, v->boolean ? "True" : "False"); break;
	case V_INT: print_int(out, v->integer); break;
	case V_FLOAT:
		if (isinf(v->real))
			sb_puts(out, v->real < 0 ? "-inf" : "inf");
		else
			sb_printf(out, v->real == trunc(v->real) && fabs(v->real) < 1e15 ? "%.1f" : "%.9g", v->real);
		break;
	case V_STR: sb_add(out, v->text, v->len); break;
	case V_TYPE:
		print_type_words(out, NULL, v);
		if (v->nitems) {
			struct val shape = val_tuple(v->items, v->nitems);
			print_val(out, &shape);
		}
		break;
	case V_CONSTEXPR_TYPE:
		sb_puts(out, "constexpr_type[");
		print_val(out, v->self);
		sb_puts(out, "]");
		break;
	case V_TUPLE_TYPE:
		sb_puts(out, "tuple_type");
		/* fall through */
	case V_TUPLE:
		sb_puts(out, "(");
		for (u32 i = 0; i < v->nitems; i++) {
			sb_puts(out, i ? ", " : "");
			print_val(out, &v->items[i]);
		}
		sb_puts(out, v->nitems == 1 ? ",)" : ")");
		break;
	case V_OBJECT: print_object(out, v); break;
	case V_DICT:
		sb_puts(out, "{");
		for (u32 i = 0; i < v->nitems; i++) {
			sb_puts(out, !i ? "" : i % 2 ? ": " : ", ");
			print_val(out, &v->items[i]);
		}
		sb_puts(out, "}");
		break;
	case V_SLICE: sb_puts(out, ":"); break;
	case V_ELLIPSIS: sb_puts(out, "..."); break;
	case V_TENSOR: print_type_words(out, v->ssa->type, v); break;
	case V_FUNC: sb_printf(out, "<function %s>", v->func->name); break;
	case V_BUILTIN: {
		bool python = builtin_find(NS_PYTHON, v->builtin->name, strlen(v->builtin->name)) == v->builtin;
		sb_printf(out, python ? "<%s>" : "<tl.%s>", v->builtin->name);
		break;
	}
	case V_METHOD: print_val(out, v->callee); break;
	case V_NAMESPACE:
	case V_MODULE: sb_puts(out, "<module>"); break;
	case V_HOST: sb_puts(out, v->text); break;
	case V_CLASS: sb_printf(out, "'%s'", v->class->name); break;
	case V_CONSTEXPR: sb_puts(out, "tl.constexpr"); break;
	case V_RANGE: sb_puts(out, "<range>"); break;
	case V_CONTEXT: sb_puts(out, "<context>"); break;
	}
}

const char *describe(struct eval *e, const struct val *v)
{
	static const char *const what[] = {
		[V_ERROR] = "an error", [V_UNSET] = "an unset variable", [V_NONE] = "None", [V_BOOL] = "the constant",
		[V_INT] = "the constant", [V_FLOAT] = "the constant", [V_STR] = "the string", [V_TYPE] = "the type",
		[V_CONSTEXPR_TYPE] = "the type", [V_TUPLE_TYPE] = "the type",
		[V_TUPLE] = "the tuple", [V_DICT] = "the dict", [V_OBJECT] = "the",
		[V_SLICE] = "a slice", [V_ELLIPSIS] = "'...'", [V_TENSOR] = "a value of type",
		[V_FUNC] = "", [V_BUILTIN] = "the function", [V_METHOD] = "the method", [V_NAMESPACE] = "a module",
		[V_MODULE] = "a module", [V_HOST] = "host Python's",
		[V_CLASS] = "the class", [V_CONSTEXPR] = "", [V_RANGE] = "a range",
		[V_CONTEXT] = "a context manager",
	};
	struct strbuf sb = {.arena = e->arena};
	if (v->kind == V_TENSOR && type_is_tensor(v->ssa->type))
		sb_puts(&sb, "a tile of type");
	else if (v->kind == V_OBJECT && v->class->def)
		sb_puts(&sb, "an object of the class");
	else
		sb_puts(&sb, what[v->kind]);
	if (v->kind <= V_NONE || v->kind == V_SLICE || v->kind == V_ELLIPSIS || v->kind == V_NAMESPACE ||
	    v->kind == V_MODULE || v->kind == V_RANGE || v->kind == V_CONTEXT)
		return sb.at;
	if (sb.len)
		sb_puts(&sb, " ");
	bool quoted = v->kind == V_STR || (v->kind == V_OBJECT && v->class->def);
	sb_puts(&sb, quoted ? "'" : "");
	print_val(&sb, v);
	sb_puts(&sb, quoted ? "'" : "");
	return sb.at;
}

const char *describe_type(struct eval *e, const struct val *v)
{
	struct strbuf sb = {.arena = e->arena};
	if (v->kind == V_TENSOR || v->kind == V_TYPE || val_is_number(v))
		print_val(&sb, v);
	else
		return describe(e, v);
	return sb.at;
}

const char *source_text(struct eval *e, struct loc at)
{
	const struct source *s = at.file < e->diags->sources.len ? e->diags->sources.at[at.file] : NULL;
	const char *line = s && at.col ? source_line(s, at.line) : NULL;
	if (!line)
		return "this condition is false";
	size_t start = (size_t)(line - s->text) + source_column(s, at.col);
	return arena_str(e->arena, s->text + start, MIN(at.len, s->len - start));
}

/* True if the tuple type `types` of constexpr types equals the constexpr type t of a tuple. */
static bool is_type_of_constants(const struct val *types, const struct val *t)
{
	if (t->self->kind != V_TUPLE || t->self->nitems != types->nitems)
		return false;
	for (u32 i = 0; i < types->nitems; i++) {
		struct val item = {.kind = V_CONSTEXPR_TYPE, .self = &t->self->items[i]};
		if (!val_equal(&types->items[i], &item))
			return false;
	}
	return true;
}

bool val_equal(const struct val *a, const struct val *b)
{
	if (val_is_number(a) && val_is_number(b)) {
		bool integers = a->kind != V_FLOAT && b->kind != V_FLOAT;
		return integers ? int_of(a) == int_of(b) : double_of(a) == double_of(b);
	}
	if (a->kind == V_TUPLE_TYPE && b->kind == V_CONSTEXPR_TYPE)
		return is_type_of_constants(a, b);
	if (a->kind == V_CONSTEXPR_TYPE && b->kind == V_TUPLE_TYPE)
		return is_type_of_constants(b, a);
	if (a->kind != b->kind)
		return false;
	switch (a->kind) {
	case V_STR: return a->len == b->len && !memcmp(a->text, b->text, a->len);
	case V_CONSTEXPR_TYPE: return val_equal(a->self, b->self);
	case V_TYPE:
		if (a->dtype != b->dtype || a->pointers != b->pointers || a->is_const != b->is_const ||
		    a->to_block != b->to_block)
			return false;
		/* fall through */
	case V_TUPLE_TYPE:
	case V_DICT:
	case V_OBJECT:
	case V_TUPLE:
		/* the names of the fields of a named tuple are not compared */
		if ((a->kind == V_OBJECT && a->class != b->class) || a->nitems != b->nitems)
			return false;
		for (u32 i = 0; i < a->nitems; i++)
			if (!val_equal(&a->items[i], &b->items[i]))
				return false;
		return true;
	case V_TENSOR: return a->ssa == b->ssa && a->dtype == b->dtype && a->is_const == b->is_const;
	case V_FUNC: return a->func == b->func;
	case V_BUILTIN: return a->builtin == b->builtin;
	case V_METHOD: return val_equal(a->self, b->self) && val_equal(a->callee, b->callee);
	case V_NAMESPACE: return a->namespace_ == b->namespace_;
	case V_MODULE: return a->module == b->module;
	case V_CLASS: return a->class == b->class;
	case V_RANGE: return a->range == b->range;
	case V_UNSET: return a->reason == b->reason;
	default: return true;
	}
}
