/* The printer of the IR, as Triton's TTIR, or as TTGIR once tiles have layouts. */
#include <math.h>
#include <stdlib.h>

#include "ir/text.h"

typedef VEC(const struct layout *) layout_vec;
struct printer {
	struct arena arena;
	struct strbuf *out;
	struct map names;   /* value → its name without % */
	struct interner taken;
	struct map counts;  /* interned name → number of uses so far */
	u32 next_number;
	layout_vec layouts; /* distributed layouts, in order of appearance: #linear, #linear1, … */
	layout_vec shared;
	int indent;
	bool placed;
};

/* --- types --------------------------------------------------------------------------------------------------- */

static void print_alias(struct printer *p, const struct layout *l, bool shared)
{
	const char *name = shared ? "shared" : "linear";
	layout_vec *all = shared ? &p->shared : &p->layouts;
	u32 i = 0;
	while (i < all->len && all->at[i] != l)
		i++;
	if (i == all->len)
		vec_push(&p->arena, all, l);
	sb_printf(p->out, i ? "#%s%u" : "#%s", name, i);
}

static void print_type(struct printer *p, const struct type *t)
{
	switch (t->kind) {
	case TY_SCALAR: sb_puts(p->out, dtype_ir_name(t->dtype)); break;
	case TY_PTR:
		sb_puts(p->out, "!tt.ptr<");
		print_type(p, t->elem);
		sb_puts(p->out, ">");
		break;
	case TY_TENSOR:
	case TY_MEMDESC:
		sb_puts(p->out, t->kind == TY_TENSOR ? "tensor<" : "!ttg.memdesc<");
		if (t->nbuf)
			sb_printf(p->out, "%dx", t->nbuf);
		for (int i = 0; i < t->rank; i++)
			sb_printf(p->out, "%dx", t->shape[i]);
		print_type(p, t->elem);
		if (t->layout) {
			sb_puts(p->out, ", ");
			print_alias(p, t->layout, t->kind == TY_MEMDESC);
		}
		sb_puts(p->out, t->kind == TY_TENSOR ? ">" : ", #smem, mutable>");
		break;
	case TY_TOKEN: sb_puts(p->out, "!ttg.async.token"); break;
	}
}

static void print_bases(struct printer *p, const struct layout *l, const char *name, enum layout_dim dim)
{
	sb_printf(p->out, "%s = [", name);
	for (int i = 0; i < l->bits[dim]; i++) {
		sb_puts(p->out, i ? ", [" : "[");
		for (int d = 0; d < l->rank; d++)
			sb_printf(p->out, "%s%u", d ? ", " : "",
				  (l->basis[dim][i] & layout_dim_mask(l, d)) >> layout_dim_shift(l, d));
		sb_puts(p->out, "]");
	}
	sb_puts(p->out, "]");
}

static void print_layouts(struct printer *p)
{
	for (u32 i = 0; i < p->layouts.len; i++) {
		sb_printf(p->out, i ? "#linear%u = #ttg.linear<{" : "#linear = #ttg.linear<{", i);
		print_bases(p, p->layouts.at[i], "register", LL_REG);
		print_bases(p, p->layouts.at[i], ", lane", LL_LANE);
		print_bases(p, p->layouts.at[i], ", warp", LL_WARP);
		sb_puts(p->out, ", block = []}>\n");
	}
	for (u32 i = 0; i < p->shared.len; i++) {
		sb_printf(p->out, i ? "#shared%u = #ttg.shared_linear<{" : "#shared = #ttg.shared_linear<{", i);
		print_bases(p, p->shared.at[i], "offset", LL_OFFSET);
		sb_puts(p->out, "}, alignment = 16>\n");
	}
	if (p->shared.len)
		sb_puts(p->out, "#smem = #ttg.shared_memory\n");
}

/* --- values -------------------------------------------------------------------------------------------------- */

static const char *unique(struct printer *p, const char *want)
{
	const char *name = intern_str(&p->taken, want);
	u32 n = (u32)(uintptr_t)map_get(&p->counts, name);
	map_put(&p->counts, name, (void *)(uintptr_t)(n + 1));
	if (!n)
		return name;
	return unique(p, arena_printf(&p->arena, "%s_%u", want, n - 1));
}

static void print_float(struct strbuf *out, enum dtype d, u64 bits)
{
	double x = dtype_decode_float(d, bits);
	char text[40];
	snprintf(text, sizeof text, "%.6e", x);
	if (isfinite(x) && dtype_encode_float(d, strtod(text, NULL)) != bits)
		snprintf(text, sizeof text, d == DT_F64 ? "%.17e" : "%.9e", x);
	if (isfinite(x))
		sb_puts(out, text);
	else
		sb_printf(out, "0x%0*llX", dtype_bits(d) / 4, (unsigned long long)bits);
}

static void print_scalar_bits(struct strbuf *out, enum dtype d, u64 bits)
{
	if (dtype_is_float(d))
		print_float(out, d, bits);
	else if (d == DT_I1)
		sb_puts(out, bits & 1 ? "true" : "false");
	else
		sb_printf(out, "%lld", (long long)dtype_decode_int(d, bits));
}

/* Names of constants as in MLIR: %c1024_i32, %true, %cst. */
static const char *constant_name(struct printer *p, const struct value *v)
{
	u64 bits = (u64)v->def->attr[ATTR_VALUE];
	if (type_is_tensor(v->type) || dtype_is_float(v->type->dtype))
		return "cst";
	if (v->type->dtype == DT_I1)
		return bits & 1 ? "true" : "false";
	return arena_printf(&p->arena, "c%lld_%s", (long long)dtype_decode_int(v->type->dtype, bits),
			    dtype_ir_name(v->type->dtype));
}

static const char *value_name(struct printer *p, const struct value *v)
{
	const char *name = map_get(&p->names, v);
	if (name)
		return name;
	if (v->name)
		name = unique(p, arena_ascii(&p->arena, v->name));
	else if (v->def && v->def->code == IR_CONSTANT)
		name = unique(p, constant_name(p, v));
	else if (!v->def)
		name = unique(p, arena_printf(&p->arena, "arg%u", v->index));
	else
		name = arena_printf(&p->arena, "%u", p->next_number++);
	map_put(&p->names, v, (void *)name);
	return name;
}

/* Prints a value. A result of an operation with several results is %name#i. */
static void print_value(struct printer *p, const struct value *v)
{
	if (v->def && v->def->nresults > 1)
		sb_printf(p->out, "%%%s#%u", value_name(p, &v->def->results[0]), v->index);
	else
		sb_printf(p->out, "%%%s", value_name(p, v));
}

static void print_values(struct printer *p, const struct op *o, u32 from)
{
	for (u32 i = from; i < o->noperands; i++) {
		sb_puts(p->out, i > from ? ", " : "");
		print_value(p, operand(o, i));
	}
}

static void print_operand_types(struct printer *p, const struct op *o, u32 from)
{
	for (u32 i = from; i < o->noperands; i++) {
		sb_puts(p->out, i > from ? ", " : "");
		print_type(p, operand(o, i)->type);
	}
}

/* Prints values and types, "%a, %b : i32, i32", if there are any. */
static void print_typed_values(struct printer *p, const struct op *o, u32 from)
{
	if (o->noperands <= from)
		return;
	print_values(p, o, from);
	sb_puts(p->out, " : ");
	print_operand_types(p, o, from);
}

static void print_result_types(struct printer *p, const struct op *o)
{
	for (u32 i = 0; i < o->nresults; i++) {
		sb_puts(p->out, i ? ", " : "");
		print_type(p, o->results[i].type);
	}
}

/* Prints (i32, i32) -> i32, or -> (i32, i32). */
static void print_function_type(struct printer *p, const struct op *o)
{
	sb_puts(p->out, "(");
	print_operand_types(p, o, 0);
	sb_puts(p->out, o->nresults == 1 ? ") -> " : ") -> (");
	print_result_types(p, o);
	sb_puts(p->out, o->nresults == 1 ? "" : ")");
}

/* --- attributes ---------------------------------------------------------------------------------------------- */

static void print_string(struct strbuf *out, const char *s)
{
	sb_puts(out, "\"");
	for (; s && *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (c == '"' || c == '\\' || c < 32 || c > 126)
			sb_printf(out, "\\%02X", c);
		else
			sb_add(out, s, 1);
	}
	sb_puts(out, "\"");
}

/* True if the attribute has its default value. Such attributes are not printed, except where the parser needs them. */
static bool attr_is_default(const struct op *o, const struct attr_info *a)
{
	const char *const *values = attr_enum(a->kind);
	bool zero = !o->attr[a->slot];
	if (values)
		return !*values[0] && zero;
	if (a->kind == KIND_bool)
		return zero && o->code != IR_SCAN && !op_is_asm(o);
	if (a->kind == KIND_str)
		return !o->text;
	return zero && (a->kind == KIND_unit || o->code == IR_FOR || o->code == IR_DOT || !strncmp(a->name, "tlc.", 4));
}

/* The i-th number of a list: a permutation, sizes or dims. */
static int list_item(enum attr_kind kind, i64 list, int i)
{
	return kind == KIND_dims ? dims_get(list, i) : kind == KIND_sizes ? 1 << perm_get(list, i) : perm_get(list, i);
}

static int list_length(const struct op *o, enum attr_kind kind, i64 list)
{
	int n = 0;
	if (kind != KIND_dims)
		return kind == KIND_perm ? o->results[0].type->rank : operand(o, 0)->type->rank;
	while (n < MAX_DIMS && dims_get(list, n))
		n++;
	return n;
}

static void print_attr_value(struct printer *p, const struct op *o, const struct attr_info *a, bool typed)
{
	i64 v = o->attr[a->slot];
	switch (a->kind) {
	case KIND_unit: sb_puts(p->out, a->name); break;
	case KIND_bool: sb_puts(p->out, v ? "true" : "false"); break;
	case KIND_str: print_string(p->out, o->text); break;
	case KIND_name: print_string(p->out, (const char *)(uintptr_t)v); break;
	case KIND_perm:
	case KIND_sizes:
	case KIND_dims:
		sb_puts(p->out, "array<i32: ");
		for (int i = 0; i < list_length(o, a->kind, v); i++)
			sb_printf(p->out, i ? ", %d" : "%d", list_item(a->kind, v, i));
		sb_puts(p->out, ">");
		break;
	case KIND_i32:
	case KIND_size:
	case KIND_count:
	case KIND_i64:
	case KIND_bits:
		sb_printf(p->out, "%lld", (long long)v);
		if (typed)
			sb_puts(p->out, a->kind == KIND_i64 ? " : i64" : " : i32");
		break;
	default: sb_puts(p->out, attr_enum(a->kind)[v]); break;
	}
}

static void print_hint(struct printer *p, const char *name, const i32 *v, const struct type *t, bool *first)
{
	int n = MAX(t->rank, 1);
	bool any = false, same = true;
	for (int i = 0; i < n; i++) {
		any |= v[i] != 0;
		same &= v[i] == v[0];
	}
	if (!any)
		return;
	sb_printf(p->out, "%stt.%s = dense<", *first ? "" : ", ", name);
	*first = false;
	for (int i = 0; i < n && !(same && i); i++)
		sb_printf(p->out, "%s%d", i ? ", " : same ? "" : "[", v[i]);
	sb_printf(p->out, "%s> : tensor<%dxi32>", same ? "" : "]", n);
}

/* Prints both attributes as one: cachePolicy = #tt.cache_policy<…>. */
static void print_cache_policy(struct printer *p, const struct op *o)
{
	i64 c = o->attr[ATTR_CACHE], e = o->attr[ATTR_EVICT];
	sb_printf(p->out, "cachePolicy = #tt.cache_policy<cache_modifier = %s, eviction_policy = %s>",
		  c ? attr_enum(KIND_cache)[c] : "none", e ? attr_enum(KIND_evict)[e] : "evict_normal");
}

/* Prints {name = value : type, …} for the attributes not in `shown`, a bit mask of slots; nothing if there are none. */
static void print_dict(struct printer *p, const struct op *o, u32 shown)
{
	const struct attr_info *a;
	struct strbuf *out = p->out;
	struct strbuf inner = {.arena = &p->arena};
	bool first = true;
	p->out = &inner;
	for (u32 i = 0; (a = attr_at(o->code, i)); i++) {
		/* omitted from TTIR, which is Triton's format: analyses recompute these attributes */
		bool hidden = !p->placed && !strncmp(a->name, "tlc.", 4);
		if (a->kind == KIND_cache) { /* with the next attribute, the eviction policy */
			if (o->attr[ATTR_CACHE] || o->attr[ATTR_EVICT]) {
				print_cache_policy(p, o);
				first = false;
			}
			i++;
			continue;
		}
		if (shown >> a->slot & 1 || hidden || attr_is_default(o, a))
			continue;
		sb_puts(&inner, first ? "" : ", ");
		first = false;
		if (a->kind != KIND_unit)
			sb_printf(&inner, "%s = ", a->name);
		print_attr_value(p, o, a, true);
	}
	if (o->hints && o->nresults) {
		print_hint(p, "divisibility", o->hints->divisibility, o->results[0].type, &first);
		print_hint(p, "contiguity", o->hints->contiguity, o->results[0].type, &first);
		print_hint(p, "constancy", o->hints->constancy, o->results[0].type, &first);
	}
	if (o->scratch_offset >= 0) {
		sb_printf(&inner, "%sallocation.offset = %d : i32", first ? "" : ", ", o->scratch_offset);
		first = false;
	}
	p->out = out;
	if (!first)
		sb_printf(out, "{%s}", inner.at);
}

/* --- operations ---------------------------------------------------------------------------------------------- */

static void print_block(struct printer *p, const struct block *b);

/* Prints the operations of a region and its closing bracket. */
static void print_body(struct printer *p, const struct block *b)
{
	p->indent += 2;
	print_block(p, b);
	p->indent -= 2;
	sb_printf(p->out, "%*s}", p->indent, "");
}

static void print_region(struct printer *p, const struct block *b)
{
	sb_puts(p->out, "{\n");
	print_body(p, b);
}

/* Prints a space between words, including around omitted parts of the format. */
static void space(struct printer *p)
{
	if (p->out->len && p->out->at[p->out->len - 1] != ' ')
		sb_puts(p->out, " ");
}

static void print_format(struct printer *p, const struct op *o)
{
	const char *at = op_info[o->code].format;
	u32 shown = 0;
	for (const char *s = at;;) {
		struct format_token t = format_next(&p->arena, o->code, &s);
		if (t.kind == FMT_END)
			break;
		if (t.kind == FMT_ATTR || t.kind == FMT_COMMA_ATTR)
			shown |= 1u << t.attr->slot;
	}
	if (*at)
		space(p);
	for (;;) {
		struct format_token t = format_next(&p->arena, o->code, &at);
		switch (t.kind) {
		case FMT_END: return;
		case FMT_SPACE: space(p); break;
		case FMT_OPERAND: print_value(p, operand(o, t.index)); break;
		case FMT_OPTIONAL:
			if (t.index < o->noperands) {
				p->out->len -= *t.text == ',' && p->out->at[p->out->len - 1] == ' ';
				sb_printf(p->out, "%s ", t.text);
				print_value(p, operand(o, t.index));
			}
			break;
		case FMT_COMMA_ATTR:
			if (o->attr[t.attr->slot]) {
				sb_printf(p->out, ", %s = ", t.attr->name);
				print_attr_value(p, o, t.attr, false);
			}
			break;
		case FMT_REGION: print_region(p, o->blocks[0]); break;
		case FMT_ALL:
			if (!o->noperands) { /* without operands there are no types */
				print_dict(p, o, shown);
				return;
			}
			print_values(p, o, 0);
			break;
		case FMT_ATTR:
			if (t.attr->kind != KIND_unit || o->attr[t.attr->slot])
				print_attr_value(p, o, t.attr, false);
			break;
		case FMT_KEYED_ATTR: break; /* printed in the dictionary */
		case FMT_DICT: print_dict(p, o, shown); break;
		case FMT_TYPE: print_type(p, operand(o, t.index)->type); break;
		case FMT_RESULT: print_type(p, o->results[0].type); break;
		case FMT_TYPES:
			sb_puts(p->out, "(");
			print_operand_types(p, o, 0);
			sb_puts(p->out, ")");
			break;
		case FMT_BARE_TYPES: print_operand_types(p, o, 0); break;
		case FMT_LITERAL: sb_puts(p->out, t.text); break;
		}
	}
}

static void print_block_args(struct printer *p, const struct block *b)
{
	sb_printf(p->out, "%*s^bb0(", p->indent, "");
	for (u32 i = 0; i < b->nargs; i++) {
		sb_puts(p->out, i ? ", " : "");
		print_value(p, b->args[i]);
		sb_puts(p->out, ": ");
		print_type(p, b->args[i]->type);
	}
	sb_puts(p->out, "):\n");
}

/* Prints (%a = %b, …) of a loop: block arguments and their initial values. */
static void print_inits(struct printer *p, const struct block *b, u32 skip, const struct op *o, u32 from)
{
	sb_puts(p->out, "(");
	for (u32 i = skip; i < b->nargs; i++) {
		sb_puts(p->out, i > skip ? ", " : "");
		print_value(p, b->args[i]);
		sb_puts(p->out, " = ");
		print_value(p, operand(o, from + i - skip));
	}
	sb_puts(p->out, ")");
}

static void print_for(struct printer *p, const struct op *o)
{
	const struct block *b = o->blocks[0];
	sb_puts(p->out, " ");
	print_value(p, for_index(o));
	sb_puts(p->out, " = ");
	print_value(p, for_lower(o));
	sb_puts(p->out, " to ");
	print_value(p, for_upper(o));
	sb_puts(p->out, " step ");
	print_value(p, for_step(o));
	if (o->nresults) {
		sb_puts(p->out, " iter_args");
		print_inits(p, b, 1, o, FOR_INITS);
		sb_puts(p->out, " -> (");
		print_result_types(p, o);
		sb_puts(p->out, ") ");
	}
	sb_puts(p->out, " : ");
	print_type(p, for_index(o)->type);
	sb_puts(p->out, " ");
	print_region(p, b);
	sb_puts(p->out, " ");
	print_dict(p, o, 0);
}

static void print_while(struct printer *p, const struct op *o)
{
	sb_puts(p->out, " ");
	print_inits(p, o->blocks[0], 0, o, 0);
	sb_puts(p->out, " : ");
	print_function_type(p, o);
	sb_puts(p->out, " ");
	print_region(p, o->blocks[0]);
	sb_puts(p->out, " do {\n");
	print_block_args(p, o->blocks[1]);
	print_body(p, o->blocks[1]);
}

static void print_if(struct printer *p, const struct op *o)
{
	sb_puts(p->out, " ");
	print_value(p, operand(o, 0));
	if (o->nresults) {
		sb_puts(p->out, " -> (");
		print_result_types(p, o);
		sb_puts(p->out, ")");
	}
	sb_puts(p->out, " ");
	print_region(p, o->blocks[0]);
	if (o->nresults || o->blocks[1]->first != o->blocks[1]->last) {
		sb_puts(p->out, " else ");
		print_region(p, o->blocks[1]);
	}
}

/* Prints an operation with a region on elements, in MLIR's generic form. */
static void print_generic_region(struct printer *p, const struct op *o)
{
	sb_puts(p->out, "(");
	print_values(p, o, 0);
	sb_printf(p->out, ") <{%s = %lld : i32", o->code == IR_MAP ? "pack" : "axis", (long long)o->attr[0]);
	if (o->code == IR_SCAN)
		sb_printf(p->out, ", reverse = %s", o->attr[ATTR_REVERSE] ? "true" : "false");
	sb_puts(p->out, "}> ({\n");
	print_block_args(p, o->blocks[0]);
	print_body(p, o->blocks[0]);
	sb_puts(p->out, ") ");
	print_dict(p, o, ~0u);
	space(p);
	sb_puts(p->out, ": ");
	print_function_type(p, o);
}

static void print_constant(struct printer *p, const struct op *o)
{
	const struct type *t = o->results[0].type;
	u64 bits = (u64)o->attr[ATTR_VALUE];
	sb_puts(p->out, type_is_tensor(t) ? " dense<" : " ");
	print_scalar_bits(p->out, type_dtype(t), bits);
	sb_puts(p->out, type_is_tensor(t) ? ">" : "");
	if (type_is_tensor(t) || t->dtype != DT_I1) {
		sb_puts(p->out, " : ");
		print_type(p, t);
	}
}

static void print_tt_print(struct printer *p, const struct op *o)
{
	sb_puts(p->out, " ");
	print_string(p->out, o->text);
	sb_printf(p->out, " {hex = %s, isSigned = array<i32", o->attr[ATTR_HEX] ? "true" : "false");
	for (u32 i = 0; i < o->noperands; i++)
		sb_printf(p->out, "%s%d", i ? ", " : ": ", (int)(o->attr[ATTR_SIGNED] >> i & 1));
	sb_puts(p->out, ">}");
	sb_puts(p->out, o->noperands ? " : " : "");
	print_typed_values(p, o, 0);
}

static void print_inline_asm(struct printer *p, const struct op *o)
{
	sb_puts(p->out, " ");
	print_string(p->out, o->text);
	sb_puts(p->out, " ");
	print_dict(p, o, 1u << ATTR_ASM);
	space(p);
	print_typed_values(p, o, 0);
	space(p);
	sb_puts(p->out, "-> ");
	print_result_types(p, o);
}

static void print_special(struct printer *p, const struct op *o)
{
	switch (o->code) {
	case IR_CONSTANT: print_constant(p, o); break;
	case IR_FOR: print_for(p, o); break;
	case IR_WHILE: print_while(p, o); break;
	case IR_IF: print_if(p, o); break;
	case IR_REDUCE:
	case IR_SCAN:
	case IR_MAP: print_generic_region(p, o); break;
	case IR_PRINT: print_tt_print(p, o); break;
	case IR_INLINE_ASM:
	case IR_PURE_ASM: print_inline_asm(p, o); break;
	case IR_SELECT:
		sb_puts(p->out, " ");
		print_values(p, o, 0);
		sb_puts(p->out, " ");
		print_dict(p, o, ~0u);
		space(p);
		sb_puts(p->out, ": ");
		if (type_is_tensor(operand(o, 0)->type)) {
			print_type(p, operand(o, 0)->type);
			sb_puts(p->out, ", ");
		}
		print_type(p, o->results[0].type);
		break;
	case IR_CONDITION:
		sb_puts(p->out, "(");
		print_value(p, operand(o, 0));
		sb_puts(p->out, ") ");
		print_typed_values(p, o, 1);
		break;
	default: tl_unreachable("operation without a printer");
	}
}

static void print_op(struct printer *p, const struct op *o)
{
	if (o->code == IR_YIELD && !o->noperands && o->block->parent->code != IR_WHILE)
		return;
	sb_printf(p->out, "%*s", p->indent, "");
	if (o->nresults) {
		sb_printf(p->out, "%%%s", value_name(p, &o->results[0]));
		if (o->nresults > 1)
			sb_printf(p->out, ":%u", o->nresults);
		sb_puts(p->out, " = ");
	}
	bool generic = op_runs_on_elements(o);
	sb_printf(p->out, generic ? "\"%s\"" : "%s", op_info[o->code].name);
	if (op_info[o->code].format[0] == '!')
		print_special(p, o);
	else
		print_format(p, o);
	while (p->out->len && p->out->at[p->out->len - 1] == ' ')
		p->out->at[--p->out->len] = 0;
	sb_puts(p->out, "\n");
}

static void print_block(struct printer *p, const struct block *b)
{
	for (const struct op *o = b->first; o; o = o->next)
		print_op(p, o);
}

static void print_signature(struct printer *p, const struct kernel *k)
{
	sb_printf(p->out, "  tt.func public @%s(", k->name);
	for (u32 i = 0; i < k->nparams; i++) {
		const struct kernel_param *q = &k->params[i];
		sb_puts(p->out, i ? ", " : "");
		print_value(p, q->value);
		sb_puts(p->out, ": ");
		print_type(p, q->value->type);
		if (q->divisibility > 1)
			sb_printf(p->out, " {tt.divisibility = %d : i32}", q->divisibility);
	}
	sb_puts(p->out, ") attributes {noinline = false} {\n");
}

void kernel_print(const struct kernel *k, struct strbuf *out)
{
	struct printer p = {.placed = k->target};
	p.names.arena = p.counts.arena = p.taken.arena = &p.arena;
	struct strbuf body = {.arena = &p.arena};
	p.out = &body;
	print_signature(&p, k);
	p.indent = 4;
	print_block(&p, k->body);
	sb_puts(&body, "  }\n}\n");
	p.out = out;
	print_layouts(&p);
	char maxnreg[40] = "", grids[40] = "";
	const char *persistent = k->cuda.persistent ? ", tlc.persistent" : "",
		   *pairs = k->cuda.pairs ? ", tlc.pairs" : "",
		   *fusion = k->cuda.no_fp_fusion ? ", tlc.no_fp_fusion" : "";
	if (k->cuda.grids)
		snprintf(grids, sizeof grids, ", tlc.grids = %u : i32", k->cuda.grids);
	if (k->cuda.maxnreg)
		snprintf(maxnreg, sizeof maxnreg, "ttg.maxnreg = %d : i32, ", k->cuda.maxnreg);
	if (k->target)
		sb_printf(out,
			  "module attributes {%s\"ttg.num-ctas\" = %d : i32, \"ttg.num-warps\" "
			  "= %d : i32, ttg.shared = %d : "
			  "i32, ttg.target = \"%s\", \"ttg.threads-per-warp\" = 32 : i32%s%s%s%s} {\n",
			  maxnreg, k->cuda.cluster, k->num_warps / k->cuda.cluster, k->shared_bytes, k->target, grids,
			  persistent, pairs, fusion);
	else
		sb_puts(out, "module {\n");
	sb_puts(out, body.at);
	arena_free(&p.arena);
}

void kernel_dump(const void *kernel, FILE *file)
{
	struct arena scratch = {0};
	struct strbuf out = {.arena = &scratch};
	kernel_print(kernel, &out);
	fputs(out.at, file);
	arena_free(&scratch);
}
