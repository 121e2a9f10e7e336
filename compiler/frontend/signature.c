/* Types of parameters as text, in Triton's signature notation. */
#include <stdlib.h>

#include "support/span.h"
#include "frontend/frontend_internal.h"

u32 arg_leaves(const struct arg_spec *a)
{
	u32 n = a->shape == ARG_LEAF;
	for (u32 i = 0; i < a->nitems; i++)
		n += arg_leaves(&a->items[i]);
	return n;
}

/* Reads a type and the spaces around it. NULL if there is no type. */
static const char *read_sig_type(const char *text, struct sig_type *out)
{
	*out = (struct sig_type){0};
	while (*text == ' ')
		text++;
	for (; *text == '*'; text++)
		out->pointers++;
	size_t len = strcspn(text, ": ");
	if (!out->pointers && len == 9 && !memcmp(text, "constexpr", 9)) {
		out->constant = true;
		return text + len;
	}
	if (len > 2 && !memcmp(text, "k", 1) && out->pointers) {
		text++, len--;
		out->is_const = true;
	}
	out->dtype = dtype_parse(text, len);
	text += len;
	if (out->dtype == DT_COUNT || out->pointers > 2)
		return NULL;
	if (*text == ':') {
		i64 n = 0;
		for (text++; *text >= '0' && *text <= '9' && n < 1 << 20; text++)
			n = n * 10 + *text - '0';
		if (n == 1 && !out->pointers && dtype_is_int(out->dtype))
			out->one = true;
		else if (is_pow2(n) && n > 1 && (out->pointers || dtype_is_int(out->dtype)))
			out->divisibility = (i32)n;
		else
			return NULL;
	}
	return text + strspn(text, " ");
}

bool parse_sig_type(const char *text, struct sig_type *out)
{
	const char *end = read_sig_type(text, out);
	return end && !*end;
}

_Static_assert(DT_COUNT < 64, "a set of element types has 64 bits");

bool parse_annotation(const char *text, struct sig_type *out, u64 *dtypes)
{
	const char *at = read_sig_type(text, out);
	*dtypes = at && !out->constant ? (u64)1 << out->dtype : 0;
	while (at && *at == '|') {
		struct sig_type t;
		at += 1 + strspn(at + 1, " ");
		if (out->pointers == 1 && !strcmp(at, "*")) {
			*dtypes = ~(u64)0;
			return true;
		}
		at = read_sig_type(at, &t);
		if (t.pointers != 1 || out->pointers != 1)
			return false;
		*dtypes |= (u64)1 << t.dtype;
	}
	return at && !*at;
}

/* --- composite types ----------------------------------------------------------------------------------------- */

struct reader {
	struct arena *arena;
	const char *at;
	u32 depth;
};

static bool accept(struct reader *r, const char *word)
{
	while (*r->at == ' ')
		r->at++;
	bool is = !strncmp(r->at, word, strlen(word));
	r->at += is ? strlen(word) : 0;
	return is;
}

/* The text up to a ',' or ')' outside brackets and quotes, without spaces at its ends. */
static const char *leaf_text(struct reader *r)
{
	r->at += strspn(r->at, " ");
	const char *start = r->at, *end = r->at += span_outside(start, ",)");
	while (end > start && end[-1] == ' ')
		end--;
	return arena_str(r->arena, start, (size_t)(end - start));
}

static bool read_tuple(struct reader *r, struct arg_spec *out);

/* Reads a descriptor type after "tensordesc": <fp16[64, 64]>, <fp16[64, 64]:16> (all sizes are divisible by 16),
 * <fp16[64, 64], nan> (padded with NaN), <fp32[64, 64], tf32>. An optional list (*fp16:16, i32:16, i32, i64:8) after it
 * gives the types of the base, the sizes and the strides. */
static bool read_descriptor(struct reader *r, struct arg_spec *out)
{
	if (!accept(r, "<"))
		return false;
	size_t len = strcspn(r->at, "[");
	enum dtype d = dtype_parse(r->at, len);
	r->at += len;
	if (d == DT_COUNT || !accept(r, "["))
		return false;
	u32 rank = 0;
	do {
		char *end;
		long n = strtol(r->at, &end, 10);
		if (end == r->at || n < 1 || n > IR_MAX_NUMEL || rank == MAX_DESCRIPTOR_RANK)
			return false;
		out->block_shape[rank++] = (i32)n;
		r->at = end;
	} while (accept(r, ","));
	if (!accept(r, "]"))
		return false;
	long divisor = accept(r, ":") ? strtol(r->at, (char **)&r->at, 10) : 1;
	if (divisor < 1 || divisor > 1 << 20 || !is_pow2((u64)divisor))
		return false;
	while (accept(r, ",")) {
		bool *option = accept(r, "nan") ? &out->pads_with_nan : accept(r, "tf32") ? &out->rounds_to_tf32 : NULL;
		if (option)
			*option = true;
		else if (!accept(r, "zero"))
			return false;
		out->padding_given = true;
	}
	if (out->rounds_to_tf32 && d != DT_F32)
		return false;
	if (!accept(r, ">"))
		return false;
	struct arg_spec *items = arena_array(r->arena, struct arg_spec, 2 * rank);
	int by = MAX(16 / dtype_bytes(d), 1);
	for (u32 i = 0; i < 2 * rank; i++)
		items[i].type = !i          ? arena_printf(r->arena, "*%s:16", dtype_name(d))
				: i <= rank ? (divisor > 1 ? arena_printf(r->arena, "i32:%ld", divisor) : "i32")
				: by > 1    ? arena_printf(r->arena, "i64:%d", by)
					    : "i64";
	struct arg_spec given = {.items = items, .nitems = 2 * rank};
	if (accept(r, "(") && (!read_tuple(r, &given) || given.nitems != 2 * rank || given.fields))
		return false;
	out->shape = ARG_DESCRIPTOR;
	out->items = given.items;
	out->nitems = given.nitems;
	return true;
}

/* The field name "name =" before an element; NULL if there is none. */
static const char *field_name(struct reader *r)
{
	while (*r->at == ' ')
		r->at++;
	size_t len = strspn(r->at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"),
	       space = strspn(r->at + len, " ");
	if (!len || (*r->at >= '0' && *r->at <= '9') || r->at[len + space] != '=')
		return NULL;
	const char *name = arena_str(r->arena, r->at, len);
	r->at += len + space + 1;
	return name;
}

static bool read_spec(struct reader *r, bool inside, struct arg_spec *out);

/* Reads the rest of a tuple after '('. */
static bool read_tuple(struct reader *r, struct arg_spec *out)
{
	VEC(struct arg_spec) items = {0};
	VEC(const char *) fields = {0};
	while (!accept(r, ")")) {
		struct arg_spec item;
		const char *name = field_name(r);
		if (name)
			vec_push(r->arena, &fields, name);
		if (!read_spec(r, true, &item))
			return false;
		vec_push(r->arena, &items, item);
		if (!accept(r, ",") && *r->at != ')')
			return false;
	}
	if (fields.len && fields.len != items.len)
		return false;
	out->shape = ARG_TUPLE;
	out->items = items.at;
	out->nitems = items.len;
	out->fields = fields.at;
	return true;
}

static bool read_spec(struct reader *r, bool inside, struct arg_spec *out)
{
	struct sig_type t;
	*out = (struct arg_spec){0};
	if (r->depth == MAX_CALL_DEPTH)
		return false;
	if (accept(r, "(")) {
		r->depth++;
		bool good = read_tuple(r, out);
		r->depth--;
		return good;
	}
	if (accept(r, "tensordesc"))
		return read_descriptor(r, out);
	const char *text = leaf_text(r);
	bool typed = parse_sig_type(text, &t) && !t.constant;
	out->type = typed || !inside ? text : NULL;
	out->constant = typed || !inside ? NULL : text;
	return typed || (inside && *text && strcmp(text, "constexpr") != 0);
}

bool parse_arg_spec(struct arena *a, const char *text, struct arg_spec *out)
{
	struct sig_type t;
	struct reader r = {.arena = a, .at = text};
	if (parse_sig_type(text, &t)) {
		*out = (struct arg_spec){.type = text};
		return true;
	}
	return read_spec(&r, false, out) && !*r.at;
}

static void print_items(struct strbuf *out, const struct arg_spec *a)
{
	sb_puts(out, "(");
	for (u32 i = 0; i < a->nitems; i++) {
		sb_printf(out, "%s%s%s", i ? ", " : "", a->fields ? a->fields[i] : "", a->fields ? "=" : "");
		print_arg_spec(out, &a->items[i]);
	}
	sb_puts(out, ")");
}

void print_arg_spec(struct strbuf *out, const struct arg_spec *a)
{
	if (a->shape == ARG_LEAF) {
		sb_puts(out, a->type ? a->type : a->constant);
		return;
	}
	if (a->shape == ARG_DESCRIPTOR) {
		const char *of = a->items[0].type + 1; /* skips the '*' of the pointer type */
		sb_printf(out, "tensordesc<%.*s[", (int)strcspn(of, ":"), of);
		for (u32 i = 0; i < descriptor_rank(a); i++)
			sb_printf(out, "%s%d", i ? ", " : "", a->block_shape[i]);
		sb_printf(out, "]%s%s>", a->pads_with_nan ? ", nan" : "", a->rounds_to_tf32 ? ", tf32" : "");
	}
	print_items(out, a);
}
