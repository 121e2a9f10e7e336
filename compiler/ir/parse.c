/* Reading the IR text: Triton's TTIR of one inlined kernel, as tlc or Triton prints it.
 *
 * Locations (loc(…)) are skipped, unknown attributes too. Layouts are not read: placement computes them anew. */
#include <ctype.h>
#include <stdlib.h>

#include "ir/text.h"

struct reader {
	struct ir_context *ctx;
	struct diags *diags;
	const struct source *src;
	u16 file;
	u32 at, line, line_at;
	bool failed;
	struct map values; /* interned name → value, or the first of several results */
	int depth;
};

/* --- characters and words ------------------------------------------------------------------------------------ */

static struct loc here(const struct reader *r, u32 len)
{
	return (struct loc){r->line, (u16)MIN(r->at - r->line_at + 1, 65535u), (u16)len, r->file};
}

static const char *cur(const struct reader *r)
{
	return r->src->text + r->at;
}

static void bump(struct reader *r, u32 n)
{
	for (; n && r->at < r->src->len; n--)
		if (r->src->text[r->at++] == '\n') {
			r->line++;
			r->line_at = r->at;
		}
}

static void skip_space(struct reader *r)
{
	for (;;) {
		while (isspace((unsigned char)*cur(r)))
			bump(r, 1);
		if (strncmp(cur(r), "//", 2))
			return;
		while (*cur(r) && *cur(r) != '\n')
			bump(r, 1);
	}
}

static void fail_at(struct reader *r, struct loc at, const char *what)
{
	if (!r->failed)
		diag(r->diags, E_IR_SYNTAX, at, what);
	r->failed = true;
}

static void fail(struct reader *r, const char *what)
{
	fail_at(r, here(r, 1), what);
}

static bool accept(struct reader *r, const char *word)
{
	size_t n = strlen(word);
	skip_space(r);
	if (strncmp(cur(r), word, n))
		return false;
	char last = word[n - 1], next = cur(r)[n];
	if ((isalnum((unsigned char)last) || last == '_') && (isalnum((unsigned char)next) || next == '_' || next == '.'))
		return false;
	bump(r, (u32)n);
	return true;
}

static void expect(struct reader *r, const char *word)
{
	if (!r->failed && !accept(r, word))
		fail(r, arena_printf(r->ctx->arena, "expected '%s'", word));
}

/* letters, digits, '_', '.', '$' and '-' inside names such as %c-1_i32 */
static const char *read_word(struct reader *r, bool dash)
{
	skip_space(r);
	u32 start = r->at;
	while (isalnum((unsigned char)*cur(r)) || (*cur(r) && strchr("_.$", *cur(r))) || (dash && *cur(r) == '-'))
		bump(r, 1);
	return intern(r->ctx->names, r->src->text + start, r->at - start);
}

static const char *read_string(struct reader *r)
{
	struct strbuf sb = {.arena = r->ctx->arena};
	expect(r, "\"");
	struct loc start = here(r, 1);
	start.col -= start.col > 1;
	sb_puts(&sb, "");
	while (!r->failed && *cur(r) != '"') {
		const char *s = cur(r);
		if (!*s) {
			fail_at(r, start, "this string is never closed");
		} else if (*s == '\\' && isxdigit((unsigned char)s[1]) && isxdigit((unsigned char)s[2])) {
			char hex[3] = {s[1], s[2], 0}, c = (char)strtol(hex, NULL, 16);
			sb_add(&sb, &c, 1);
			bump(r, 3);
		} else {
			bump(r, *s == '\\' && s[1] ? 1 : 0);
			sb_add(&sb, cur(r), 1);
			bump(r, 1);
		}
	}
	bump(r, 1);
	return intern_str(r->ctx->names, sb.at);
}

static i64 read_int(struct reader *r)
{
	skip_space(r);
	char *end;
	i64 v = *cur(r) == '-' ? strtoll(cur(r), &end, 0) : (i64)strtoull(cur(r), &end, 0);
	if (end == cur(r))
		fail(r, "expected a number");
	bump(r, (u32)(end - cur(r)));
	return v;
}

/* Skips over balanced brackets that start here. */
static void skip_brackets(struct reader *r)
{
	int depth = 0;
	do {
		char c = *cur(r);
		if (!c)
			return;
		if (c == '"') {
			read_string(r);
			continue;
		}
		depth += (strchr("([{<", c) != NULL) - (strchr(")]}>", c) != NULL && r->src->text[r->at - 1] != '-');
		bump(r, 1);
	} while (depth > 0);
}

static void skip_loc(struct reader *r)
{
	while (accept(r, "loc")) {
		skip_space(r);
		skip_brackets(r);
	}
}

/* --- types --------------------------------------------------------------------------------------------------- */

static const struct type *read_type(struct reader *r)
{
	const struct type *i32_type = type_scalar(r->ctx, DT_I32);
	if (r->failed)
		return i32_type;
	if (accept(r, "!tt.ptr")) {
		expect(r, "<");
		const struct type *elem = ++r->depth < 8 ? read_type(r) : (fail(r, "nested too deeply"), i32_type);
		r->depth--;
		expect(r, ">");
		return type_ptr(r->ctx, elem);
	}
	if (accept(r, "tensor")) {
		i32 shape[MAX_RANK];
		int rank = 0;
		i64 numel = 1;
		expect(r, "<");
		skip_space(r);
		while (!r->failed && isdigit((unsigned char)*cur(r))) {
			i64 n = 0;
			for (; isdigit((unsigned char)*cur(r)) && n < IR_MAX_NUMEL; bump(r, 1))
				n = n * 10 + *cur(r) - '0';
			numel *= n;
			if (rank == MAX_RANK || !is_pow2(n) || numel > IR_MAX_NUMEL)
				fail(r, "a tile has at most 5 dimensions, each a power of two, and 1048576 elements");
			else
				shape[rank++] = (i32)n;
			if (*cur(r) != 'x')
				fail(r, "expected 'x'");
			bump(r, 1);
		}
		if (!rank)
			fail(r, "a tensor needs at least one dimension");
		const struct type *elem = read_type(r);
		skip_space(r);
		if (*cur(r) == ',')
			fail(r, "this kernel has been placed (TTGIR); only TTIR, without layouts, is read");
		expect(r, ">");
		return r->failed || type_is_tensor(elem) ? (fail(r, "expected an element type"), i32_type)
							 : type_tensor(r->ctx, elem, rank, shape);
	}
	skip_space(r);
	struct loc at = here(r, 1);
	const char *word = read_word(r, false);
	for (int d = 0; d < DT_COUNT; d++)
		if (!strcmp(dtype_ir_name((enum dtype)d), word))
			return type_scalar(r->ctx, (enum dtype)d);
	at.len = (u16)MIN(MAX(strlen(word), 1u), 1000u);
	fail_at(r, at, "expected a type, such as i32, f16, !tt.ptr<f32> or tensor<16xf32>");
	return i32_type;
}

/* --- values -------------------------------------------------------------------------------------------------- */

static const char *read_name(struct reader *r)
{
	expect(r, "%");
	return read_word(r, true);
}

static struct value *read_value(struct reader *r)
{
	skip_space(r);
	struct loc at = here(r, 1);
	const char *name = read_name(r);
	struct value *v = r->failed ? NULL : map_get(&r->values, name);
	i64 index = 0;
	at.len = (u16)MIN(strlen(name) + 1, 1000u);
	if (*cur(r) == '#') {
		bump(r, 1);
		index = read_int(r);
	}
	if (!r->failed && (!v || index < 0 || (index && (!v->def || index >= v->def->nresults)))) {
		fail_at(r, at, arena_printf(r->ctx->arena, "'%%%s' is not defined here", name));
		v = NULL;
	}
	return v && index ? &v->def->results[index] : v;
}

static void define(struct reader *r, const char *name, struct value *v)
{
	if (!isdigit((unsigned char)*name))
		v->name = name;
	map_put(&r->values, name, v);
}

typedef VEC(struct value *) value_vec;

static void read_values(struct reader *r, value_vec *out)
{
	do {
		skip_space(r);
		if (*cur(r) != '%' && out->len)
			return; /* a keyword follows the comma */
		struct value *v = read_value(r);
		if (v)
			vec_push(r->ctx->arena, out, v);
	} while (!r->failed && accept(r, ","));
}

/* --- attributes ---------------------------------------------------------------------------------------------- */

static u64 read_scalar_bits(struct reader *r, enum dtype d)
{
	skip_space(r);
	if (accept(r, "true"))
		return 1;
	if (accept(r, "false"))
		return 0;
	if (dtype_is_int(d) || !strncmp(cur(r), "0x", 2))
		return (u64)read_int(r) & (dtype_bits(d) == 64 ? ~0ull : (1ull << dtype_bits(d)) - 1);
	char *end;
	double x = strtod(cur(r), &end);
	if (end == cur(r))
		fail(r, "expected a number");
	bump(r, (u32)(end - cur(r)));
	return dtype_encode_float(d, x);
}

static i64 read_enum(struct reader *r, const char *const *values)
{
	struct strbuf known = {.arena = r->ctx->arena};
	skip_space(r);
	struct loc at = here(r, 1);
	const char *word = read_word(r, false);
	for (int i = 0; values[i]; i++) {
		if (!strcmp(values[i], word))
			return i;
		if (*values[i])
			sb_printf(&known, " %s", values[i]);
	}
	at.len = (u16)MIN(MAX(strlen(word), 1u), 1000u);
	fail_at(r, at, arena_printf(r->ctx->arena, "'%s' is not a value of this attribute; it takes%s", word, known.at));
	return 0;
}

static i64 read_perm(struct reader *r)
{
	int perm[MAX_RANK], n = 0;
	expect(r, "array<i32:");
	do {
		i64 v = read_int(r);
		if (n == MAX_RANK || v < 0 || v >= MAX_RANK)
			fail(r, "not a permutation");
		else
			perm[n++] = (int)v;
	} while (!r->failed && accept(r, ","));
	expect(r, ">");
	return perm_pack(perm, n);
}

struct attrs {
	i64 slot[IR_MAX_ATTRS];
	const char *text;
	struct hints *hints;
};

static void read_attr_value(struct reader *r, enum opcode code, int slot, struct attrs *out)
{
	struct attr_spec spec;
	attr_spec_at(code, (u32)slot, &spec);
	const char *const *values = attr_enum(spec.kind, spec.kind_len);
	if (values)
		out->slot[slot] = read_enum(r, values);
	else if (!strncmp(spec.kind, "str", 3))
		out->text = read_string(r);
	else if (!strncmp(spec.kind, "perm", 4))
		out->slot[slot] = read_perm(r);
	else if (!strncmp(spec.kind, "bool", 4))
		out->slot[slot] = (i64)read_scalar_bits(r, DT_I1);
	else
		out->slot[slot] = read_int(r);
}

/* tt.divisibility = dense<[16, 1]> : tensor<2xi32>, or = 16 : i32 */
static void read_hint(struct reader *r, const char *name, struct attrs *out)
{
	if (!out->hints)
		out->hints = arena_new(r->ctx->arena, struct hints);
	i32 *v = !strcmp(name, "tt.divisibility") ? out->hints->divisibility
		: !strcmp(name, "tt.contiguity") ? out->hints->contiguity
						 : out->hints->constancy;
	bool dense = accept(r, "dense<"), list = accept(r, "[");
	int n = 0;
	do {
		i32 x = (i32)read_int(r);
		if (n < MAX_RANK)
			v[n++] = x;
	} while (!r->failed && accept(r, ","));
	if (list)
		expect(r, "]");
	for (; !list && n < MAX_RANK; n++)
		v[n] = v[0];
	if (dense)
		expect(r, ">");
}

static void read_dict(struct reader *r, enum opcode code, struct attrs *out)
{
	if (!accept(r, "{"))
		return;
	while (!r->failed && !accept(r, "}")) {
		skip_space(r);
		const char *name = *cur(r) == '"' ? read_string(r) : read_word(r, false);
		if (!*name)
			fail(r, "expected an attribute's name");
		int slot = attr_slot(code, name, strlen(name));
		if (!accept(r, "=")) {
			if (slot >= 0)
				out->slot[slot] = 1;
		} else if (slot >= 0) {
			read_attr_value(r, code, slot, out);
		} else if (!strcmp(name, "tt.divisibility") || !strcmp(name, "tt.contiguity") || !strcmp(name, "tt.constancy")) {
			read_hint(r, name, out);
		} else {
			skip_space(r);
			if (*cur(r) == '"')
				read_string(r);
			else if (isalnum((unsigned char)*cur(r)) || *cur(r) == '-' || *cur(r) == '#')
				bump(r, 1), read_word(r, false);
			if (*cur(r) && strchr("<[{(", *cur(r)))
				skip_brackets(r);
		}
		if (accept(r, ":"))
			read_type(r);
		accept(r, ",");
	}
}

/* --- operations ---------------------------------------------------------------------------------------------- */

static void read_block(struct reader *r, struct block *b);

struct parsed {
	value_vec operands;
	VEC(const struct type *) results;
	struct attrs attrs;
};

static const struct type *infer_type(struct reader *r, enum opcode code, const value_vec *v)
{
	const struct type *t = v->at[0]->type;
	switch (op_info[code].rule) {
	case R_CMPI:
	case R_CMPF: return type_with_dtype(r->ctx, t, DT_I1);
	case R_LOAD: return type_is_ptr(t) ? type_with_elem(r->ctx, t, type_elem(t)->elem) : t;
	case R_UNSPLAT: return type_elem(t);
	default: return t;
	}
}

static void read_types(struct reader *r, bool parens)
{
	if (parens)
		expect(r, "(");
	if (!(parens && accept(r, ")"))) {
		do
			read_type(r);
		while (!r->failed && accept(r, ","));
		if (parens)
			expect(r, ")");
	}
}

static void read_format(struct reader *r, enum opcode code, struct parsed *out)
{
	const char *at = op_info[code].format;
	struct attr_spec spec;
	while (!r->failed) {
		struct format_token t = format_next(code, &at);
		switch (t.kind) {
		case FMT_END: return;
		case FMT_SPACE: break;
		case FMT_OPERAND: {
			struct value *v = read_value(r);
			if (v)
				vec_push(r->ctx->arena, &out->operands, v);
			break;
		}
		case FMT_OPTIONAL:
			if (accept(r, ",")) {
				struct value *v = read_value(r);
				if (v)
					vec_push(r->ctx->arena, &out->operands, v);
			}
			break;
		case FMT_ALL: read_values(r, &out->operands); break;
		case FMT_ATTR:
		case FMT_KEYED_ATTR:
			attr_spec_at(code, (u32)t.index, &spec);
			if (t.kind == FMT_KEYED_ATTR || !strncmp(spec.kind, "unit", 4)) {
				if (!accept(r, arena_printf(r->ctx->arena, "%.*s", (int)spec.name_len, spec.name)))
					break;
				if (t.kind == FMT_ATTR) {
					out->attrs.slot[t.index] = 1;
					break;
				}
				expect(r, "=");
			}
			read_attr_value(r, code, t.index, &out->attrs);
			break;
		case FMT_DICT: read_dict(r, code, &out->attrs); break;
		case FMT_TYPE: read_type(r); break;
		case FMT_RESULT: vec_push(r->ctx->arena, &out->results, read_type(r)); break;
		case FMT_TYPES: read_types(r, true); break;
		case FMT_BARE_TYPES: read_types(r, false); break;
		case FMT_LITERAL: expect(r, arena_printf(r->ctx->arena, "%.*s", (int)t.len, t.text)); break;
		}
	}
}

static struct op *make(struct reader *r, struct builder *b, enum opcode code, struct parsed *p, u32 nblocks)
{
	struct op *o = build(b, code, p->operands.at, p->operands.len, p->results.at, p->results.len, nblocks);
	memcpy(o->attr, p->attrs.slot, sizeof o->attr);
	o->text = p->attrs.text;
	o->hints = p->attrs.hints;
	(void)r;
	return o;
}

static void read_result_list(struct reader *r, struct parsed *p)
{
	bool parens = accept(r, "(");
	if (parens && accept(r, ")"))
		return;
	do
		vec_push(r->ctx->arena, &p->results, read_type(r));
	while (!r->failed && accept(r, ","));
	if (parens)
		expect(r, ")");
}

/* A region's operations up to its '}'; a missing scf.yield is added. */
static void read_region(struct reader *r, struct block *b, bool yields)
{
	expect(r, "{");
	read_block(r, b);
	if (yields && !r->failed && (!b->last || b->last->code != IR_YIELD)) {
		struct builder at = builder_at_end(r->ctx, b);
		build(&at, IR_YIELD, NULL, 0, NULL, 0, 0);
	}
}

static struct op *read_for(struct reader *r, struct builder *b)
{
	struct parsed p = {0};
	VEC(const char *) args = {0};
	accept(r, "unsigned");
	const char *iv = read_name(r);
	static const char *const words[] = {"=", "to", "step"};
	for (int i = 0; i < 3; i++) {
		expect(r, words[i]);
		struct value *v = read_value(r);
		if (v)
			vec_push(r->ctx->arena, &p.operands, v);
	}
	if (accept(r, "iter_args")) {
		expect(r, "(");
		do {
			vec_push(r->ctx->arena, &args, read_name(r));
			expect(r, "=");
			struct value *v = read_value(r);
			if (v)
				vec_push(r->ctx->arena, &p.operands, v);
		} while (!r->failed && accept(r, ","));
		expect(r, ")");
		expect(r, "->");
		read_result_list(r, &p);
	}
	const struct type *iv_type = accept(r, ":") ? read_type(r) : type_scalar(r->ctx, DT_I32);
	if (!r->failed && (p.operands.len != 3 + args.len || p.results.len != args.len))
		fail(r, "the numbers of iter_args and of result types differ");
	if (r->failed)
		return NULL;
	struct op *o = make(r, b, IR_FOR, &p, 1);
	define(r, iv, block_add_arg(r->ctx, o->blocks[0], iv_type));
	for (u32 i = 0; i < args.len; i++)
		define(r, args.at[i], block_add_arg(r->ctx, o->blocks[0], p.results.at[i]));
	read_region(r, o->blocks[0], true);
	read_dict(r, IR_FOR, &p.attrs);
	memcpy(o->attr, p.attrs.slot, sizeof o->attr);
	return o;
}

static struct op *read_if(struct reader *r, struct builder *b)
{
	struct parsed p = {0};
	struct value *cond = read_value(r);
	if (cond)
		vec_push(r->ctx->arena, &p.operands, cond);
	if (accept(r, "->"))
		read_result_list(r, &p);
	if (r->failed)
		return NULL;
	struct op *o = make(r, b, IR_IF, &p, 2);
	read_region(r, o->blocks[0], true);
	if (accept(r, "else")) {
		read_region(r, o->blocks[1], true);
	} else {
		struct builder at = builder_at_end(r->ctx, o->blocks[1]);
		build(&at, IR_YIELD, NULL, 0, NULL, 0, 0);
	}
	return o;
}

static void read_block_args(struct reader *r, struct block *b)
{
	expect(r, "^");
	read_word(r, false);
	expect(r, "(");
	if (!accept(r, ")")) {
		do {
			const char *name = read_name(r);
			expect(r, ":");
			const struct type *t = read_type(r);
			skip_loc(r);
			if (!r->failed)
				define(r, name, block_add_arg(r->ctx, b, t));
		} while (!r->failed && accept(r, ","));
		expect(r, ")");
	}
	expect(r, ":");
}

static struct op *read_while(struct reader *r, struct builder *b)
{
	struct parsed p = {0};
	VEC(const char *) args = {0};
	expect(r, "(");
	if (!accept(r, ")")) {
		do {
			vec_push(r->ctx->arena, &args, read_name(r));
			expect(r, "=");
			struct value *v = read_value(r);
			if (v)
				vec_push(r->ctx->arena, &p.operands, v);
		} while (!r->failed && accept(r, ","));
		expect(r, ")");
	}
	expect(r, ":");
	read_types(r, true);
	expect(r, "->");
	read_result_list(r, &p);
	if (r->failed)
		return NULL;
	struct op *o = make(r, b, IR_WHILE, &p, 2);
	for (u32 i = 0; i < args.len; i++)
		define(r, args.at[i], block_add_arg(r->ctx, o->blocks[0], p.operands.at[i]->type));
	read_region(r, o->blocks[0], false);
	expect(r, "do");
	expect(r, "{");
	skip_space(r);
	if (*cur(r) == '^')
		read_block_args(r, o->blocks[1]);
	read_block(r, o->blocks[1]);
	return o;
}

/* "tt.reduce"(%a, %b) <{axis = 0 : i32}> ({ ^bb0(…): … }) {…} : (types) -> types */
static struct op *read_generic(struct reader *r, struct builder *b, enum opcode code)
{
	struct parsed p = {0};
	expect(r, "(");
	read_values(r, &p.operands);
	expect(r, ")");
	if (accept(r, "<"))
		read_dict(r, code, &p.attrs), expect(r, ">");
	expect(r, "(");
	expect(r, "{");
	if (r->failed)
		return NULL;
	struct op *o = make(r, b, code, &p, 1);
	read_block_args(r, o->blocks[0]);
	read_block(r, o->blocks[0]);
	expect(r, ")");
	read_dict(r, code, &p.attrs);
	expect(r, ":");
	read_types(r, true);
	expect(r, "->");
	read_result_list(r, &p);
	memcpy(o->attr, p.attrs.slot, sizeof o->attr);
	op_set_results(r->ctx, o, p.results.at, p.results.len);
	return o;
}

static struct op *read_constant(struct reader *r, struct builder *b)
{
	struct parsed p = {0};
	bool dense = accept(r, "dense<");
	skip_space(r);
	u32 at = r->at, line = r->line, line_at = r->line_at;
	bool boolean = !dense && (accept(r, "true") || accept(r, "false"));
	if (boolean) {
		p.attrs.slot[ATTR_VALUE] = r->src->text[at] == 't';
		vec_push(r->ctx->arena, &p.results, type_scalar(r->ctx, DT_I1));
	} else {
		/* the type comes after the value that needs it: read twice */
		while (*cur(r) && *cur(r) != '>' && *cur(r) != ':')
			bump(r, 1);
		if (dense)
			expect(r, ">");
		expect(r, ":");
		const struct type *t = read_type(r);
		u32 end = r->at, end_line = r->line, end_line_at = r->line_at;
		r->at = at, r->line = line, r->line_at = line_at;
		if (!r->failed && type_is_ptr(t))
			fail(r, "a constant cannot be a pointer");
		if (!r->failed)
			p.attrs.slot[ATTR_VALUE] = (i64)read_scalar_bits(r, type_dtype(t));
		r->at = end, r->line = end_line, r->line_at = end_line_at;
		vec_push(r->ctx->arena, &p.results, t);
	}
	return r->failed ? NULL : make(r, b, IR_CONSTANT, &p, 0);
}

static struct op *read_dot(struct reader *r, struct builder *b)
{
	struct parsed p = {0};
	read_values(r, &p.operands); /* stops at the comma before a keyword, if there is one */
	for (;;) {
		if (accept(r, "inputPrecision")) {
			expect(r, "=");
			p.attrs.slot[ATTR_PRECISION] = read_enum(r, attr_enum("precision", 9));
		} else if (!accept(r, ",")) {
			break;
		}
	}
	read_dict(r, IR_DOT, &p.attrs);
	expect(r, ":");
	read_type(r);
	expect(r, "*");
	read_type(r);
	expect(r, "->");
	vec_push(r->ctx->arena, &p.results, read_type(r));
	return r->failed ? NULL : make(r, b, IR_DOT, &p, 0);
}

static struct op *read_special(struct reader *r, struct builder *b, enum opcode code)
{
	struct parsed p = {0};
	switch (code) {
	case IR_CONSTANT: return read_constant(r, b);
	case IR_FOR: return read_for(r, b);
	case IR_WHILE: return read_while(r, b);
	case IR_IF: return read_if(r, b);
	case IR_REDUCE:
	case IR_SCAN: return read_generic(r, b, code);
	case IR_DOT: return read_dot(r, b);
	case IR_PRINT:
		p.attrs.text = read_string(r);
		expect(r, "{");
		while (!r->failed && !accept(r, "}")) {
			if (accept(r, "hex =")) {
				p.attrs.slot[ATTR_HEX] = (i64)read_scalar_bits(r, DT_I1);
			} else if (accept(r, "isSigned = array<i32")) {
				for (int i = 0; !accept(r, ">") && !r->failed; i++) {
					accept(r, i ? "," : ":");
					p.attrs.slot[ATTR_SIGNED] |= (read_int(r) & 1) << (i & 31);
				}
			} else {
				expect(r, "}");
			}
			accept(r, ",");
		}
		if (accept(r, ":")) {
			read_values(r, &p.operands);
			expect(r, ":");
			read_types(r, false);
		}
		break;
	case IR_SELECT:
		read_values(r, &p.operands);
		expect(r, ":");
		vec_push(r->ctx->arena, &p.results, read_type(r));
		if (accept(r, ","))
			p.results.at[0] = read_type(r);
		break;
	case IR_FP_TO_FP: {
		struct value *v = read_value(r);
		if (v)
			vec_push(r->ctx->arena, &p.operands, v);
		if (accept(r, ",")) {
			expect(r, "rounding");
			expect(r, "=");
			p.attrs.slot[ATTR_ROUNDING] = read_enum(r, attr_enum("rounding", 8));
		}
		expect(r, ":");
		read_type(r);
		expect(r, "->");
		vec_push(r->ctx->arena, &p.results, read_type(r));
		break;
	}
	case IR_CONDITION: {
		expect(r, "(");
		struct value *v = read_value(r);
		if (v)
			vec_push(r->ctx->arena, &p.operands, v);
		expect(r, ")");
		skip_space(r);
		if (*cur(r) == '%') {
			read_values(r, &p.operands);
			expect(r, ":");
			read_types(r, false);
		}
		break;
	}
	default: fail(r, "this operation of a placed kernel cannot be read back"); break;
	}
	return r->failed ? NULL : make(r, b, code, &p, 0);
}

static void read_op(struct reader *r, struct builder *b)
{
	const char *names[8] = {0}; /* %a, %b = …; or %a:2 = …, where one name stands for all */
	i64 nnames = 0, nresults = 0;
	skip_space(r);
	if (*cur(r) == '%') {
		do
			names[nnames++] = read_name(r);
		while (nnames < (i64)ARRAY_LEN(names) && accept(r, ","));
		nresults = nnames;
		if (*cur(r) == ':') {
			bump(r, 1);
			nresults = read_int(r);
		}
		expect(r, "=");
	}
	skip_space(r);
	b->loc = here(r, 1);
	u32 start = r->at;
	const char *word = *cur(r) == '"' ? read_string(r) : read_word(r, false);
	int code = -1;
	for (int i = 0; i < IR_OPCODES && code < 0; i++)
		if (!strcmp(op_info[i].name, word))
			code = i;
	if (code < 0) {
		r->at = start;
		b->loc.len = (u16)MIN(MAX(strlen(word), 1u), 1000u);
		fail_at(r, b->loc, arena_printf(r->ctx->arena, "unknown operation '%s'", word));
		return;
	}
	b->loc.len = (u16)MIN(strlen(word), 1000u);
	struct op *o;
	if (op_info[code].format[0] == '!') {
		o = read_special(r, b, (enum opcode)code);
	} else {
		struct parsed p = {0};
		read_format(r, (enum opcode)code, &p);
		if (r->failed)
			return;
		if (op_info[code].results == 2 && p.results.len == 1)
			vec_push(r->ctx->arena, &p.results, p.results.at[0]);
		if (op_info[code].results == 1 && !p.results.len && p.operands.len)
			vec_push(r->ctx->arena, &p.results, infer_type(r, (enum opcode)code, &p.operands));
		o = make(r, b, (enum opcode)code, &p, 0);
	}
	if (!o)
		return;
	skip_loc(r);
	if (o->nresults != nresults && !r->failed && (nresults || op_info[code].results >= 0))
		fail_at(r, b->loc, arena_printf(r->ctx->arena, "'%s' has %d result%s, and this names %lld", word, o->nresults,
						o->nresults == 1 ? "" : "s", (long long)nresults));
	for (i64 i = 0; i < nnames && !r->failed; i++)
		define(r, names[i], &o->results[i]);
}

/* Operations up to the closing '}', which is consumed. */
static void read_block(struct reader *r, struct block *b)
{
	struct builder at = builder_at_end(r->ctx, b);
	if (++r->depth > 250)
		fail(r, "nested too deeply");
	while (!r->failed && !accept(r, "}")) {
		if (!*cur(r))
			fail(r, "the file ends inside a block");
		else if (b->last && op_has(b->last, END))
			fail(r, "nothing may follow the end of a block");
		else
			read_op(r, &at);
	}
	r->depth--;
}

static struct kernel *read_kernel(struct reader *r)
{
	accept(r, "public");
	expect(r, "@");
	struct loc loc = here(r, 1);
	struct kernel *k = kernel_new(r->ctx, read_word(r, false));
	VEC(struct kernel_param) params = {0};
	k->loc = loc;
	k->loc.len = (u16)MIN(strlen(k->name), 1000u);
	expect(r, "(");
	if (!accept(r, ")")) {
		do {
			struct kernel_param q = {.name = read_name(r)};
			struct attrs attrs = {0};
			expect(r, ":");
			const struct type *t = read_type(r);
			read_dict(r, IR_ADDI, &attrs);
			skip_loc(r);
			if (r->failed)
				return NULL;
			q.value = block_add_arg(r->ctx, k->body, t);
			q.divisibility = attrs.hints ? attrs.hints->divisibility[0] : 0;
			define(r, q.name, q.value);
			q.value->name = q.name;
			vec_push(r->ctx->arena, &params, q);
		} while (accept(r, ","));
		expect(r, ")");
	}
	k->params = params.at;
	k->nparams = params.len;
	struct attrs ignored = {0};
	if (accept(r, "attributes"))
		read_dict(r, IR_ADDI, &ignored);
	expect(r, "{");
	read_block(r, k->body);
	skip_loc(r);
	if (!r->failed && (!k->body->last || k->body->last->code != IR_RETURN))
		fail(r, "a kernel ends with tt.return");
	return r->failed ? NULL : k;
}

struct kernel *kernel_parse(struct ir_context *c, u16 file)
{
	struct reader r = {.ctx = c, .diags = c->diags, .src = c->diags->sources.at[file], .file = file, .line = 1};
	r.values.arena = c->arena;
	struct kernel *k = NULL;
	skip_space(&r);
	while (*cur(&r) == '#') { /* #loc and layout aliases */
		while (*cur(&r) && *cur(&r) != '\n')
			bump(&r, 1);
		skip_space(&r);
	}
	struct attrs ignored = {0};
	bool module = accept(&r, "module");
	if (module) {
		if (accept(&r, "attributes"))
			read_dict(&r, IR_ADDI, &ignored);
		expect(&r, "{");
	}
	if (accept(&r, "tt.func"))
		k = read_kernel(&r);
	else
		fail(&r, "expected 'tt.func'");
	if (module && !r.failed && accept(&r, "tt.func"))
		fail(&r, "only one function is read: inline the others first");
	if (module)
		expect(&r, "}");
	return r.failed || !kernel_verify(k, "reading", c->diags) ? NULL : k;
}
