#include "runtime/launch/manifest.h"

#include <stdlib.h>
#include <unistd.h>

#include "support/file.h"
#include "support/json.h"
#include "support/span.h"
#include "runtime/launch/composite.h"
#include "runtime/image/cache_folder.h"

enum { MAX_FILE_BYTES = 1 << 28, MOST_MEMBERS = 32, MOST_SOURCES = 4096 };

/* --- writing ---------------------------------------------------------------------------------------------------- */

static void print_string(struct strbuf *out, const char *key, const char *s)
{
	sb_printf(out, "%s\"%s\": ", out->at[out->len - 1] == '{' ? "" : ", ", key);
	sb_json(out, s);
}

/* Members of a line, in addition to codegen_numbers. */
struct member {
	const char *key;
	size_t at; /* in struct manifest_entry */
};
#define TARGET_AT(field) offsetof(struct manifest_entry, target.field)
#define AT(field) offsetof(struct manifest_entry, options.codegen.field)
static const struct member device_limits[] = { /* -1: not given */
	{"shared_bytes", TARGET_AT(shared_bytes)},
	{"registers", TARGET_AT(registers)},
	{"multiprocessors", TARGET_AT(multiprocessors)},
};
static const struct member flags[] = {
	{"debug", AT(debug)},
	{"wraps", AT(wraps)},
	{"no_boxes", AT(no_tma)},
};
/* Enumerated members. The first value is the default, and is omitted. */
enum { MOST_CHOICES = 4 };
static const struct choices {
	const char *key;
	size_t at; /* of an enum */
	const char *names[MOST_CHOICES];
} choices[] = {
	{"overlap", AT(alias), {[ALIAS_NONE] = "none", [ALIAS_EQUAL] = "equal", [ALIAS_ANY] = "any"}},
	{"sizes", AT(sizes), {[BOUNDS_LIMITED] = "limited", [BOUNDS_ANY] = "any", [BOUNDS_WIDE] = "wide"}},
	{"programs",
	 AT(grid),
	 {[GRID_FEW] = "few", [GRID_MANY] = "many", [GRID_WAVES] = "waves", [GRID_ROWS] = "rows"}},
};
_Static_assert(sizeof(enum aliasing) == sizeof(u32) && sizeof(enum launch_bounds) == sizeof(u32) &&
		       sizeof(enum grid_kind) == sizeof(u32),
	       "choices are read as numbers");
#undef TARGET_AT
#undef AT

static void print_number(struct strbuf *out, const char *key, int n, int usual)
{
	if (n != usual)
		sb_printf(out, ", \"%s\": %d", key, n);
}

static void print_codegen_number(struct strbuf *out, int number, int value)
{
	const struct codegen_number *n = &codegen_numbers[number];
	if (!n->words)
		print_number(out, n->name, value, n->usual);
	else if (value != n->usual)
		print_string(out, n->name, codegen_number_text(out->arena, number, value));
}

/* "sources": [{"name": "helpers", "file": "a.py", "first_line": 3, "indent": 0, "text": "…"}, …] */
static void print_sources(struct strbuf *out, const struct unit_source *s, u32 n)
{
	sb_puts(out, ", \"sources\": [");
	for (u32 i = 0; i < n; i++) {
		sb_puts(out, i ? ", {" : "{");
		if (s[i].name)
			print_string(out, "name", s[i].name);
		print_string(out, "file", s[i].file);
		sb_printf(out, ", \"first_line\": %u, \"indent\": %u", s[i].first_line, s[i].indent);
		print_string(out, "text", s[i].text);
		sb_puts(out, "}");
	}
	sb_puts(out, "]");
}

void manifest_print(struct strbuf *out, const struct manifest_entry *e)
{
	sb_puts(out, "{");
	print_string(out, "source", e->source);
	print_string(out, "hash", e->hash);
	print_string(out, "kernel", e->kernel);
	print_string(out, "arguments", e->arguments);
	print_string(out, "target", target_name(out->arena, &e->target));
	for (u32 i = 0; i < CODEGEN_NUMBERS; i++)
		print_codegen_number(out, (int)i, e->options.codegen.numbers[i]);
	for (u32 i = 0; i < ARRAY_LEN(device_limits); i++)
		print_number(out, device_limits[i].key, *(const i32 *)((const char *)e + device_limits[i].at), -1);
	for (u32 i = 0; i < ARRAY_LEN(flags); i++)
		print_number(out, flags[i].key, *((const bool *)e + flags[i].at), 0);
	for (u32 i = 0; i < ARRAY_LEN(choices); i++) {
		u32 chosen = *(const u32 *)((const char *)e + choices[i].at);
		if (chosen)
			print_string(out, choices[i].key, choices[i].names[chosen]);
	}
	if (e->path)
		print_string(out, "PYTHONPATH", e->path);
	if (e->text)
		print_string(out, "text", e->text);
	if (e->nsources)
		print_sources(out, e->sources, e->nsources);
	sb_puts(out, "}\n");
}

/* True if a file of that name may have the module's text. */
static bool is_whole_file(const tl_module *m)
{
	const struct unit_source *s = m->sources;
	return m->nsources == 1 && s->first_line == 1 && !s->indent && !s->name;
}

void manifest_describe(struct arena *a, const tl_kernel *k, const struct params *ps, const struct options *o,
		       const tl_arg *args, size_t nargs, struct manifest_entry *out)
{
	const tl_module *m = k->module;
	struct device *dev = m->ctx->dev;
	size_t len = 0;
	bool whole = is_whole_file(m);
	const char *there = whole ? file_read(a, m->name, MAX_FILE_BYTES, &len) : NULL;
	struct strbuf text = sb_empty(a);
	const struct arg_spec *specs = specialize_text(a, ps, args, nargs);
	for (u32 i = 0; i < k->params.len; i++) {
		if (!argument(&k->params, args, nargs, i)) /* the evaluator computes the default */
			continue;
		sb_printf(&text, "%s%s=", text.len ? ", " : "", k->params.at[i].name);
		print_arg_spec(&text, &specs[i]);
	}
	*out = (struct manifest_entry){.source = m->name,
				       .path = getenv("PYTHONPATH"),
				       .kernel = k->name,
				       .arguments = text.at,
				       .target = dev->ops->target(dev),
				       .options = *o};
	if (!whole) {
		out->sources = m->sources;
		out->nsources = m->nsources;
	} else if (!there || len != m->len || memcmp(there, m->text, len) != 0) {
		out->text = m->text;
	}
	out->hash = arena_printf(a, "%016llx", (unsigned long long)m->hash);
}

/* --- the file --------------------------------------------------------------------------------------------------- */

static bool has_line(struct arena *a, int fd, const char *line, size_t len)
{
	size_t all;
	int copy = dup(fd);
	const char *text = copy < 0 || lseek(copy, 0, SEEK_SET) ? NULL : file_read_open(a, copy, MAX_FILE_BYTES, &all);
	for (const char *at = text; at && (at = memmem(at, all - (size_t)(at - text), line, len)); at++)
		if (at == text || at[-1] == '\n')
			return true;
	return false;
}

static void close_file(void *fd)
{
	folder_unlock(*(int *)fd);
}

const char *manifest_add(struct arena *a, const char *path, const char *line, size_t len)
{
	struct cleanup c;
	const char *why;
	int fd = own_file(a, path, &why);
	if (fd < 0)
		return why ? arena_printf(a, "the manifest '%s' is not written: %s", path, why) : NULL;
	cleanup_push(&c, close_file, &fd);
	folder_lock(fd); /* without the lock the line may appear twice */
	if (!has_line(a, fd, line, len))
		add_line(fd, line, len);
	cleanup_run(&c);
	return NULL;
}

/* --- reading ---------------------------------------------------------------------------------------------------- */

static bool take_number(struct manifest_entry *e, const char *key, long n)
{
	for (u32 i = 0; i < CODEGEN_NUMBERS; i++)
		if (!strcmp(key, codegen_numbers[i].name) && !codegen_numbers[i].words) {
			e->options.codegen.numbers[i] = (int)n;
			return n == (int)n && codegen_options_wrong(&e->options.codegen) < 0;
		}
	for (u32 i = 0; i < ARRAY_LEN(device_limits); i++)
		if (!strcmp(key, device_limits[i].key)) {
			*(i32 *)((char *)e + device_limits[i].at) = (i32)n;
			return n >= 0 && n <= INT32_MAX;
		}
	for (u32 i = 0; i < ARRAY_LEN(flags); i++)
		if (!strcmp(key, flags[i].key)) {
			*((bool *)e + flags[i].at) = n != 0;
			return n == 0 || n == 1;
		}
	return false;
}

static bool take_string(struct manifest_entry *e, const char *key, const char *s)
{
	const struct {
		const char *key, **to;
	} strings[] = {{"source", &e->source}, {"hash", &e->hash},           {"kernel", &e->kernel},
		       {"text", &e->text},     {"arguments", &e->arguments}, {"PYTHONPATH", &e->path}};
	for (u32 i = 0; i < ARRAY_LEN(strings); i++)
		if (!strcmp(key, strings[i].key)) {
			*strings[i].to = s;
			return true;
		}
	for (int i = 0; i < CODEGEN_NUMBERS; i++)
		if (!strcmp(key, codegen_numbers[i].name)) {
			e->options.codegen.numbers[i] = codegen_number_of_word(i, s);
			return e->options.codegen.numbers[i] >= 0;
		}
	for (u32 i = 0; i < ARRAY_LEN(choices); i++)
		for (u32 k = 0; !strcmp(key, choices[i].key) && k < MOST_CHOICES && choices[i].names[k]; k++)
			if (!strcmp(s, choices[i].names[k])) {
				*(u32 *)((char *)e + choices[i].at) = k;
				return true;
			}
	struct target t;
	if (strcmp(key, "target") != 0 || !target_parse(s, &t))
		return false;
	/* the device's limits override the target's */
	t.shared_bytes = e->target.shared_bytes >= 0 ? e->target.shared_bytes : t.shared_bytes;
	t.registers = e->target.registers >= 0 ? e->target.registers : t.registers;
	t.multiprocessors = e->target.multiprocessors >= 0 ? e->target.multiprocessors : t.multiprocessors;
	e->target = t;
	return true;
}

static bool read_u32(const char *value, u32 *out)
{
	char *end;
	unsigned long n = value ? strtoul(value, &end, 10) : 0;
	*out = (u32)n;
	return value && *value >= '0' && *value <= '9' && !*end && n <= UINT32_MAX;
}

static bool take_sources(struct arena *a, struct manifest_entry *e, const char *value)
{
	const char *const *items = json_array(a, value, MOST_SOURCES, &e->nsources);
	struct unit_source *s = arena_array(a, struct unit_source, e->nsources + 1);
	for (u32 i = 0; items && i < e->nsources; i++) {
		struct json_member m[MOST_MEMBERS];
		u32 n;
		if (!json_read(a, items[i], strlen(items[i]), m, MOST_MEMBERS, &n))
			return false;
		const char *name = json_value(m, n, "name");
		s[i].name = json_text(a, name);
		s[i].file = json_text(a, json_value(m, n, "file"));
		s[i].text = json_text(a, json_value(m, n, "text"));
		if ((name && !s[i].name) || !s[i].file || !s[i].text ||
		    !read_u32(json_value(m, n, "first_line"), &s[i].first_line) ||
		    !read_u32(json_value(m, n, "indent"), &s[i].indent))
			return false;
		s[i].len = strlen(s[i].text);
	}
	e->sources = s;
	return e->nsources;
}

static bool take_member(struct arena *a, struct manifest_entry *e, const struct json_member *m)
{
	if (!strcmp(m->name, "sources"))
		return take_sources(a, e, m->value);
	const char *s = json_text(a, m->value);
	char *end;
	long n = s ? 0 : strtol(m->value, &end, 10);
	return s ? take_string(e, m->name, s) : end != m->value && !*end && take_number(e, m->name, n);
}

const char *manifest_read(struct arena *a, const char *line, size_t len, struct manifest_entry *out)
{
	struct json_member m[MOST_MEMBERS];
	u32 n;
	*out = (struct manifest_entry){.target = {.shared_bytes = -1, .registers = -1, .multiprocessors = -1}};
	out->options.codegen = codegen_options_complete(out->options.codegen);
	if (!json_read(a, line, len, m, MOST_MEMBERS, &n))
		return "it is not a JSON object";
	for (u32 i = 0; i < n; i++)
		if (!take_member(a, out, &m[i]))
			return arena_printf(a, "its value of \"%s\" is not valid", m[i].name);
	if (!out->source || !out->hash || !out->kernel || !out->arguments || !out->target.vector_bytes)
		return "one of source, hash, kernel, arguments and target is missing";
	out->options.codegen = codegen_options_complete(out->options.codegen);
	return NULL;
}

/* --- arguments -------------------------------------------------------------------------------------------------- */

/* A value or an address with exactly this divisor. */
static bool typed_argument(const char *text, tl_arg *out)
{
	struct sig_type t;
	if (!parse_sig_type(text, &t))
		return false;
	tl_dtype d = (tl_dtype)t.dtype;
	i64 by = t.divisibility > 1 ? t.divisibility : 0;
	if (t.pointers) {
		i64 element = t.pointers > 1 ? 8 : dtype_bytes(t.dtype), page = 4096 * MAX(by, 1);
		*out = tl_ptr(t.pointers > 1 ? TL_I64 : d, (void *)(uintptr_t)(page + (by ? by : element)));
	} else if (dtype_is_float(t.dtype)) {
		*out = tl_float_typed(d, 0);
	} else if (t.dtype == DT_I1) {
		*out = tl_bool(false);
	} else {
		i64 value = t.one ? 1 : by ? by : 2;
		bool fits = dtype_bytes(t.dtype) > 1 || value < 128;
		*out = tl_int_typed(d, fits ? value : 0); /* 0 has every divisor */
	}
	return true;
}

static bool make_argument(struct arena *a, const struct arg_spec *s, bool constant, tl_arg *out)
{
	if (s->shape == ARG_LEAF && constant)
		return argument_of_text(a, s->constant ? s->constant : s->type, out);
	if (s->shape == ARG_LEAF)
		return s->type ? typed_argument(s->type, out) : argument_of_text(a, s->constant, out);
	tl_arg *items = arena_array(a, tl_arg, s->nitems + 1);
	for (u32 i = 0; i < s->nitems; i++) {
		if (!make_argument(a, &s->items[i], constant, &items[i]))
			return false;
		const struct arg_spec *leaf = &s->items[i];
		/* a number in a tuple that is not tl.constexpr */
		items[i].constant = leaf->shape == ARG_LEAF && !leaf->type && !constant &&
				    items[i].kind != TL_ARG_NONE && items[i].kind != TL_ARG_FUNC;
	}
	if (s->shape == ARG_TUPLE) {
		tl_tuple *t = arena_new(a, tl_tuple);
		*t = (tl_tuple){s->nitems, items, s->fields};
		*out = tl_tuple_arg(t);
		return true;
	}
	tl_descriptor *d = arena_new(a, tl_descriptor);
	int rank = (int)descriptor_rank(s);
	*d = (tl_descriptor){.dtype = items[0].dtype,
			     .rank = rank,
			     .base = items[0].ptr,
			     .pads_with_nan = s->pads_with_nan,
			     .rounds_to_tf32 = s->rounds_to_tf32};
	for (int i = 0; i < rank; i++) {
		d->block_shape[i] = s->block_shape[i];
		d->shape[i] = items[1 + i].i;
		d->strides[i] = i + 1 < rank ? items[1 + rank + i].i : 1;
	}
	*out = tl_desc(d);
	return true;
}

bool manifest_arguments(struct arena *a, const struct params *ps, const char *text, tl_arg *out, size_t *n)
{
	*n = 0;
	for (struct argument_span one; next_argument(a, &text, &one); (*n)++) {
		struct arg_spec s;
		while (one.name && *n < ps->len && strcmp(one.name, ps->at[*n].name) != 0)
			out[(*n)++] = tl_open();
		if (!one.name || *n == ps->len)
			return false;
		const struct tl_param *p = &ps->at[*n];
		if (!parse_arg_spec(a, one.value, &s))
			s = (struct arg_spec){.constant = one.value};
		if (!make_argument(a, &s, p->constant, &out[*n]))
			return false;
		bool number = s.shape == ARG_LEAF && !s.type && out[*n].kind != TL_ARG_NONE;
		out[*n].constant = number && !p->constant && out[*n].kind != TL_ARG_FUNC;
	}
	return true;
}
