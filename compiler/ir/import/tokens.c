#include "ir/import/import.h"

#include <ctype.h>
#include <stdlib.h>

/* --- characters and words ------------------------------------------------------------------------------------ */

struct loc rd_here(const struct reader *r, u32 len)
{
	return (struct loc){r->pos.line, (u16)MIN(r->pos.at - r->pos.line_at + 1 + r->src->indent, 65535u),
			    (u16)len, r->file};
}

const char *rd_cur(const struct reader *r)
{
	return r->src->text + r->pos.at;
}

void rd_bump(struct reader *r, u32 n)
{
	for (; n && r->pos.at < r->src->len; n--)
		if (r->src->text[r->pos.at++] == '\n') {
			r->pos.line++;
			r->pos.line_at = r->pos.at;
		}
}

void rd_skip_space(struct reader *r)
{
	for (;;) {
		while (isspace((unsigned char)*rd_cur(r)))
			rd_bump(r, 1);
		if (strncmp(rd_cur(r), "//", 2))
			return;
		while (*rd_cur(r) && *rd_cur(r) != '\n')
			rd_bump(r, 1);
	}
}

void rd_fail_at(struct reader *r, struct loc at, const char *what)
{
	if (!r->failed)
		diag(r->diags, E_IR_SYNTAX, at, what);
	r->failed = true;
}

void rd_fail(struct reader *r, const char *what)
{
	rd_fail_at(r, rd_here(r, 1), what);
}

bool rd_at(struct reader *r, char c)
{
	rd_skip_space(r);
	return *rd_cur(r) == c;
}

bool rd_accept(struct reader *r, const char *word)
{
	size_t n = strlen(word);
	rd_skip_space(r);
	if (strncmp(rd_cur(r), word, n))
		return false;
	char last = word[n - 1], next = rd_cur(r)[n];
	if ((isalnum((unsigned char)last) || last == '_') &&
	    (isalnum((unsigned char)next) || next == '_' || next == '.'))
		return false;
	rd_bump(r, (u32)n);
	return true;
}

void rd_expect(struct reader *r, const char *word)
{
	if (!r->failed && !rd_accept(r, word))
		rd_fail(r, arena_printf(r->ctx->arena, "expected '%s'", word));
}

/* Reads letters, digits, '_', '.', '$', and with `dash` '-', as in names such as %c-1_i32. */
const char *read_word(struct reader *r, bool dash)
{
	rd_skip_space(r);
	u32 start = r->pos.at;
	while (isalnum((unsigned char)*rd_cur(r)) || (*rd_cur(r) && strchr("_.$", *rd_cur(r))) ||
	       (dash && *rd_cur(r) == '-'))
		rd_bump(r, 1);
	return intern(r->ctx->names, r->src->text + start, r->pos.at - start);
}

u16 rd_loc_len(const char *word)
{
	return (u16)MIN(MAX(strlen(word), 1u), 1000u);
}

const char *read_word_at(struct reader *r, struct loc *at)
{
	rd_skip_space(r);
	*at = rd_here(r, 1);
	const char *word = read_word(r, false);
	at->len = rd_loc_len(word);
	return word;
}

const char *read_name_or_string(struct reader *r, struct loc *at)
{
	if (!rd_at(r, '"'))
		return read_word_at(r, at);
	*at = rd_here(r, 1);
	const char *name = read_string(r);
	at->len = rd_loc_len(name);
	return name;
}

const char *read_string(struct reader *r)
{
	struct strbuf sb = {.arena = r->ctx->arena};
	rd_expect(r, "\"");
	struct loc start = rd_here(r, 1);
	start.col -= start.col > 1;
	sb_puts(&sb, "");
	while (!r->failed && *rd_cur(r) != '"') {
		const char *s = rd_cur(r);
		if (!*s) {
			rd_fail_at(r, start, "this string is never closed");
		} else if (*s == '\\' && isxdigit((unsigned char)s[1]) && isxdigit((unsigned char)s[2])) {
			char hex[3] = {s[1], s[2], 0}, c = (char)strtol(hex, NULL, 16);
			sb_add(&sb, &c, 1);
			rd_bump(r, 3);
		} else {
			rd_bump(r, *s == '\\' && s[1] ? 1 : 0);
			sb_add(&sb, rd_cur(r), 1);
			rd_bump(r, 1);
		}
	}
	rd_bump(r, 1);
	return intern_str(r->ctx->names, sb.at);
}

i64 read_int(struct reader *r)
{
	rd_skip_space(r);
	char *end;
	i64 v = *rd_cur(r) == '-' ? strtoll(rd_cur(r), &end, 0) : (i64)strtoull(rd_cur(r), &end, 0);
	if (end == rd_cur(r))
		rd_fail(r, "expected a number");
	rd_bump(r, (u32)(end - rd_cur(r)));
	return v;
}

void rd_skip_brackets(struct reader *r)
{
	int depth = 0;
	do {
		char c = *rd_cur(r);
		if (!c)
			return;
		if (c == '"') {
			read_string(r);
			continue;
		}
		bool closes = strchr(")]}>", c) && r->src->text[r->pos.at - 1] != '-';
		depth += (strchr("([{<", c) != NULL) - closes;
		rd_bump(r, 1);
	} while (depth > 0);
}

void rd_skip_loc(struct reader *r)
{
	while (rd_accept(r, "loc")) {
		rd_skip_space(r);
		rd_skip_brackets(r);
	}
}

/* --- types --------------------------------------------------------------------------------------------------- */

/* Reads <16x32xf16>, <16x32xf16, #linear>, or for a buffer <3x16x32xf16, #shared, #smem, mutable>. */
static const struct type *read_tile(struct reader *r, bool memory)
{
	i32 shape[MAX_RANK + 1];
	int rank = 0;
	i64 numel = 1;
	const struct type *none = type_scalar(r->ctx, DT_I32), *t = none;
	rd_expect(r, "<");
	rd_skip_space(r);
	while (!r->failed && isdigit((unsigned char)*rd_cur(r))) {
		i64 n = 0;
		for (; isdigit((unsigned char)*rd_cur(r)) && n < IR_MAX_NUMEL; rd_bump(r, 1))
			n = n * 10 + *rd_cur(r) - '0';
		numel *= n;
		if (rank == MAX_RANK + memory || (!memory && !is_pow2(n)) || !n || numel > IR_MAX_NUMEL)
			rd_fail(r, "a tile has at most 5 dimensions, each a power of two, and 1048576 elements");
		else
			shape[rank++] = (i32)n;
		if (*rd_cur(r) != 'x')
			rd_fail(r, "expected 'x'");
		rd_bump(r, 1);
	}
	if (!rank)
		rd_fail(r, "a tensor needs at least one dimension");
	const struct type *elem = ++r->type_depth < 8 ? read_type(r) : (rd_fail(r, "nested too deeply"), none);
	r->type_depth--;
	if (elem->kind != TY_SCALAR && elem->kind != TY_PTR)
		rd_fail(r, "expected an element type");
	rd_skip_space(r);
	if (!r->failed && (memory || *rd_cur(r) == ','))
		t = read_placed_type(r, elem, rank, shape, memory);
	else if (!r->failed)
		t = type_tensor(r->ctx, elem, rank, shape);
	rd_expect(r, ">");
	return r->failed ? none : t;
}

const struct type *read_type(struct reader *r)
{
	const struct type *i32_type = type_scalar(r->ctx, DT_I32);
	if (r->failed)
		return i32_type;
	if (rd_accept(r, "!tt.ptr")) {
		rd_expect(r, "<");
		const struct type *elem = i32_type;
		if (++r->type_depth < 8)
			elem = read_type(r);
		else
			rd_fail(r, "nested too deeply");
		r->type_depth--;
		if (elem->kind == TY_TOKEN)
			rd_fail(r, "there are no pointers to tokens");
		rd_expect(r, ">");
		return type_ptr(r->ctx, elem);
	}
	if (rd_accept(r, "tensor"))
		return read_tile(r, false);
	if (rd_accept(r, "!ttg.memdesc"))
		return read_tile(r, true);
	if (rd_accept(r, "!ttg.async.token"))
		return type_token(r->ctx);
	if (rd_accept(r, "!tt.tensordesc")) { /* only in types that are skipped */
		rd_skip_space(r);
		rd_skip_brackets(r);
		return i32_type;
	}
	struct loc at;
	const char *word = read_word_at(r, &at);
	for (int d = 0; d < DT_COUNT; d++)
		if (!strcmp(dtype_ir_name((enum dtype)d), word))
			return type_scalar(r->ctx, (enum dtype)d);
	rd_fail_at(r, at, "expected a type, such as i32, f16, !tt.ptr<f32> or tensor<16xf32>");
	return i32_type;
}

void read_result_types(struct reader *r, struct type_vec *out)
{
	bool parens = rd_accept(r, "(");
	if (parens && rd_accept(r, ")"))
		return;
	do
		vec_push(r->ctx->arena, out, read_type(r));
	while (!r->failed && rd_accept(r, ","));
	if (parens)
		rd_expect(r, ")");
}

void read_function_type(struct reader *r, struct type_vec *out)
{
	rd_expect(r, ":");
	rd_skip_types(r);
	rd_expect(r, "->");
	read_result_types(r, out);
}

const struct type *read_only_result(struct reader *r)
{
	rd_expect(r, ":");
	rd_skip_types(r);
	rd_expect(r, "->");
	return read_type(r);
}

void rd_skip_types(struct reader *r)
{
	struct type_vec ignored = {0};
	read_result_types(r, &ignored);
}

/* --- values -------------------------------------------------------------------------------------------------- */

const char *read_name(struct reader *r)
{
	rd_expect(r, "%");
	return read_word(r, true);
}

/* The name of the i-th of several results of a call. */
static const char *result_name(struct reader *r, const char *name, i64 i)
{
	return intern_str(r->ctx->names, arena_printf(r->ctx->arena, "%s#%lld", name, (long long)i));
}

void rd_define_all(struct reader *r, const char *name, const value_vec *v)
{
	for (u32 i = 0; i < v->len; i++)
		map_put(&r->values, i ? result_name(r, name, i) : name, v->at[i]);
}

struct value *read_value(struct reader *r)
{
	rd_skip_space(r);
	struct loc at = rd_here(r, 1);
	const char *name = read_name(r);
	struct value *v = r->failed ? NULL : map_get(&r->values, name);
	i64 index = 0;
	at.len = rd_loc_len(name) + 1;
	if (*rd_cur(r) == '#') {
		rd_bump(r, 1);
		index = read_int(r);
		struct value *of_call = v ? map_get(&r->values, result_name(r, name, index)) : NULL;
		if (of_call)
			return of_call;
	}
	if (!r->failed && (!v || index < 0 || (index && (!v->def || index >= v->def->nresults)))) {
		const char *what = map_get(&r->descriptors, name) ? "is a descriptor, which cannot be passed on"
								  : "is not defined here";
		rd_fail_at(r, at, arena_printf(r->ctx->arena, "'%%%s' %s", name, what));
		v = NULL;
	}
	return v && index ? &v->def->results[index] : v;
}

static const struct block *home_of(const struct value *v)
{
	return v->def ? v->def->block : v->block;
}

void rd_define(struct reader *r, const char *name, struct value *v)
{
	const struct value *old = map_get(&r->values, name);
	if (old && block_contains(home_of(old), home_of(v)))
		rd_fail_at(r, v->def ? v->def->loc : rd_here(r, 1),
			   arena_printf(r->ctx->arena, "'%%%s' has been defined before", name));
	if (!isdigit((unsigned char)*name))
		v->name = name;
	map_put(&r->values, name, v);
}

void read_operand(struct reader *r, value_vec *out)
{
	struct value *v = read_value(r);
	if (v)
		vec_push(r->ctx->arena, out, v);
}

void read_typed_values(struct reader *r, value_vec *out)
{
	if (!rd_at(r, '%'))
		return;
	read_values(r, out);
	rd_expect(r, ":");
	rd_skip_types(r);
}

void read_values(struct reader *r, value_vec *out)
{
	do
		read_operand(r, out);
	while (!r->failed && rd_accept(r, ","));
}

/* --- attributes ---------------------------------------------------------------------------------------------- */

u64 read_scalar_bits(struct reader *r, enum dtype d)
{
	rd_skip_space(r);
	if (rd_accept(r, "true"))
		return 1;
	if (rd_accept(r, "false"))
		return 0;
	if (dtype_is_int(d) || !strncmp(rd_cur(r), "0x", 2))
		return dtype_encode_int(d, read_int(r));
	char *end;
	double x = strtod(rd_cur(r), &end);
	if (end == rd_cur(r))
		rd_fail(r, "expected a number");
	rd_bump(r, (u32)(end - rd_cur(r)));
	return dtype_encode_float(d, x);
}

i64 read_enum(struct reader *r, const char *const *values)
{
	struct strbuf known = {.arena = r->ctx->arena};
	struct loc at;
	const char *word = read_word_at(r, &at);
	for (int i = 0; values[i]; i++) {
		if (!strcmp(values[i], word))
			return i;
		if (*values[i])
			sb_printf(&known, " %s", values[i]);
	}
	rd_fail_at(
		r, at,
		arena_printf(r->ctx->arena, "'%s' is not a value of this attribute; its values are%s", word, known.at));
	return 0;
}

/* Reads array<i32: 1, 0> with at most `most` numbers in a range. */
static int read_list(struct reader *r, int most, int low, int high, const char *what, int *out)
{
	int n = 0;
	rd_expect(r, "array<i32:");
	do {
		i64 v = read_int(r);
		if (n == most || v < low || v > high)
			rd_fail(r, what);
		else
			out[n++] = (int)v;
	} while (!r->failed && rd_accept(r, ","));
	rd_expect(r, ">");
	return n;
}

static i64 read_perm(struct reader *r)
{
	int perm[MAX_RANK], n = read_list(r, MAX_RANK, 0, MAX_RANK - 1, "not a permutation", perm);
	return perm_pack(perm, n);
}

static i64 read_sizes(struct reader *r)
{
	int sizes[MAX_RANK], n = read_list(r, MAX_RANK, 1, 1 << 15, "expected up to twelve powers of two", sizes);
	for (int i = 0; i < n; i++) {
		if (!is_pow2(sizes[i]))
			rd_fail(r, "expected up to twelve powers of two");
		sizes[i] = ilog2((u64)sizes[i]);
	}
	return perm_pack(sizes, n);
}

static i64 read_dims(struct reader *r)
{
	int dims[MAX_DIMS], n = read_list(r, MAX_DIMS, 1, INT16_MAX, "expected up to four positive numbers", dims);
	return dims_pack(dims, n);
}

void read_attr_value(struct reader *r, const struct attr_info *a, struct attrs *out)
{
	i64 *to = &out->slot[a->slot];
	switch (a->kind) {
	case KIND_str: out->text = read_string(r); break;
	case KIND_name: *to = (i64)(uintptr_t)read_string(r); break;
	case KIND_perm: *to = read_perm(r); break;
	case KIND_sizes: *to = read_sizes(r); break;
	case KIND_dims: *to = read_dims(r); break;
	case KIND_bool: *to = (i64)read_scalar_bits(r, DT_I1); break;
	default: *to = attr_enum(a->kind) ? read_enum(r, attr_enum(a->kind)) : read_int(r); break;
	}
}

/* Reads tt.divisibility = dense<[16, 1]> : tensor<2xi32>, or = 16 : i32. */
static void read_hint(struct reader *r, const char *name, struct attrs *out)
{
	if (!out->hints)
		out->hints = arena_new(r->ctx->arena, struct hints);
	i32 *v = !strcmp(name, "tt.divisibility") ? out->hints->divisibility
		: !strcmp(name, "tt.contiguity") ? out->hints->contiguity
						 : out->hints->constancy;
	bool dense = rd_accept(r, "dense<"), list = rd_accept(r, "[");
	int n = 0;
	do {
		i64 x = read_int(r);
		if (!is_pow2(x) || x > INT32_MAX)
			rd_fail(r, "a hint must be a power of two");
		else if (n < MAX_RANK)
			v[n++] = (i32)x;
	} while (!r->failed && rd_accept(r, ","));
	if (list)
		rd_expect(r, "]");
	for (; !list && n < MAX_RANK; n++)
		v[n] = v[0];
	if (dense)
		rd_expect(r, ">");
}

/* Reads name = value. The value `none` means the default. */
static void read_policy(struct reader *r, const char *name, const char *none, const struct attr_info *a,
			struct attrs *out)
{
	rd_expect(r, name);
	rd_expect(r, "=");
	if (!a)
		read_word(r, false);
	else if (!rd_accept(r, none))
		read_attr_value(r, a, out);
}

/* Reads #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_last> of a load or store. */
static void read_cache_policy(struct reader *r, enum opcode code, struct attrs *out)
{
	rd_expect(r, "#tt.cache_policy<");
	read_policy(r, "cache_modifier", "none", attr_named(code, "cacheModifier", 13), out);
	rd_expect(r, ",");
	read_policy(r, "eviction_policy", "evict_normal", attr_named(code, "evictionPolicy", 14), out);
	rd_expect(r, ">");
}

/* Sets an attribute that is written without a value. */
static void set_unit(struct reader *r, const struct attr_info *a, struct attrs *out)
{
	if (a->kind != KIND_unit && a->kind != KIND_bool)
		rd_fail(r, "expected '=': this attribute has a value");
	out->slot[a->slot] = 1;
}

void rd_skip_dict(struct reader *r)
{
	struct attrs ignored = {0};
	read_dict(r, IR_ADDI, &ignored);
}

/* The present name of an attribute: texts of earlier versions of tlc have others. */
static const char *present_name(const char *name)
{
	static const char *const renamed[][2] = {
		{"tlc.way", "tlc.conversion"},
		{"tlc.fetched", "tlc.register_groups"},
		{"tlc.turned", "tlc.transposed"},
	};
	for (u32 i = 0; i < ARRAY_LEN(renamed); i++)
		if (!strcmp(name, renamed[i][0]))
			return renamed[i][1];
	return name;
}

void read_dict(struct reader *r, enum opcode code, struct attrs *out)
{
	if (!rd_accept(r, "{"))
		return;
	while (!r->failed && !rd_accept(r, "}")) {
		const char *name = present_name(rd_at(r, '"') ? read_string(r) : read_word(r, false));
		if (!*name)
			rd_fail(r, "expected an attribute's name");
		const struct attr_info *a = attr_named(code, name, strlen(name));
		if (!rd_accept(r, "=")) {
			if (a)
				set_unit(r, a, out);
		} else if (a) {
			read_attr_value(r, a, out);
		} else if (!strcmp(name, "cachePolicy")) {
			read_cache_policy(r, code, out);
		} else if (!strcmp(name, "allocation.offset")) {
			out->allocated = true;
			i64 x = read_int(r);
			if (x < 0 || x > INT32_MAX)
				rd_fail(r, "an offset in shared memory is out of range");
			out->scratch_offset = (i32)x;
		} else if (!strcmp(name, "tt.divisibility") || !strcmp(name, "tt.contiguity") ||
			   !strcmp(name, "tt.constancy")) {
			read_hint(r, name, out);
		} else {
			if (rd_at(r, '"'))
				read_string(r);
			else if (isalnum((unsigned char)*rd_cur(r)) || *rd_cur(r) == '-' || *rd_cur(r) == '#')
				rd_bump(r, 1), read_word(r, false);
			if (*rd_cur(r) && strchr("<[{(", *rd_cur(r)))
				rd_skip_brackets(r);
		}
		if (rd_accept(r, ":"))
			read_type(r);
		rd_accept(r, ",");
	}
}
