/* Arguments of `tlc run` and `tlc bench` as text: numbers, generated tensors and tensors from .npy files, and tuples
 * and descriptors of these. */
#include "cli/value.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "support/small_floats.h"
#include "support/span.h"

int api_failed(const tl_context *ctx, tl_status status)
{
	const char *text = tl_error(ctx);
	if (status == TL_ERR_INTERNAL)
		return fprintf(stderr, "tlc: %s\n", text), EXIT_BUG;
	bool by_kernel = status == TL_ERR_COMPILE || status == TL_ERR_KERNEL || status == TL_ERR_RACE;
	fprintf(stderr, by_kernel ? "%s\n" : "tlc: error: %s\n", text);
	return by_kernel || status == TL_ERR_ARGUMENT ? EXIT_USER : EXIT_ENVIRONMENT;
}

/* --- generated tensors -------------------------------------------------------------------------------------- */

/* SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014). */
static double uniform(u64 *state)
{
	u64 z = *state += 0x9E3779B97F4A7C15u;
	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static double normal(u64 *state)
{
	double u = uniform(state), v = uniform(state);
	return sqrt(-2 * log(u > 0 ? u : 0x1p-53)) * cos(6.283185307179586 * v);
}

static void store_number(void *data, tl_dtype t, size_t i, double x)
{
	enum dtype d = (enum dtype)t;
	u64 bits = dtype_is_float(d) ? dtype_encode_float(d, x) : dtype_encode_int(d, (i64)x);
	size_t n = tl_dtype_size(t);
	memcpy((char *)data + i * n, &bits, n);
}

/* Fills a tensor by "zeros", "ones", "arange", "rand:SEED" or "randn:SEED"; "empty" leaves it. Random integers are
 * small. */
static bool fill(struct argument *a, const char *how, size_t len)
{
	static const char *const known[] = {"zeros", "ones", "arange", "rand", "randn", "empty"};
	const char *colon = memchr(how, ':', len);
	size_t word = colon ? (size_t)(colon - how) : len;
	u64 seed = colon ? strtoull(colon + 1, NULL, 10) * 0x2545F4914F6CDD1Du + 1 : 1;
	u32 k = 0;
	while (k < ARRAY_LEN(known) && (strlen(known[k]) != word || memcmp(known[k], how, word)))
		k++;
	if (k == ARRAY_LEN(known))
		return refuse("%s: '%.*s' is none of zeros, ones, arange, rand:SEED, randn:SEED, empty", a->name,
			      (int)len, how);
	bool is_float = dtype_is_float((enum dtype)a->dtype);
	a->empty = k == 5;
	for (size_t i = 0; i < a->data.count && !a->empty; i++) {
		double x = k == 0 ? 0 : k == 1 ? 1 : k == 2 ? (double)i : k == 3 ? uniform(&seed) : normal(&seed);
		if (!is_float && k == 3)
			x = floor(x * 100);
		if (!is_float && k == 4)
			x = floor(x * 10);
		store_number(a->data.data, a->dtype, i, x);
	}
	return true;
}

/* The dtype of the text. Returns false after a message if values cannot have the dtype. */
static bool value_dtype(const struct argument *a, const char *text, size_t len, enum dtype *out)
{
	*out = dtype_parse(text, len);
	if (*out == DT_COUNT)
		refuse("%s: '%.*s' is no dtype", a->name, (int)len, text);
	else if (!dtype_has_values(*out))
		refuse("%s: type %s is not supported in this architecture", a->name, dtype_name(*out));
	return *out != DT_COUNT && dtype_has_values(*out);
}

/* fp16[128,64]:randn:0 */
static bool make_tensor(struct arena *arena, struct argument *a, const char *text, size_t len)
{
	const char *open = memchr(text, '[', len),
		   *close = open ? memchr(open, ']', len - (size_t)(open - text)) : NULL;
	enum dtype d = open ? dtype_parse(text, (size_t)(open - text)) : DT_COUNT;
	if (!close || d == DT_COUNT)
		return refuse("%s: '%.*s' is no value; a tensor is like fp16[128,64]:randn:0", a->name, (int)len, text);
	if (!value_dtype(a, text, (size_t)(open - text), &d))
		return false;
	VEC(size_t) shape = {0};
	size_t count = 1;
	for (const char *s = open + 1; s < close;) {
		char *end;
		unsigned long long n = strtoull(s, &end, 10);
		if (end == s || (*end != ',' && *end != ']') || n > (1ull << 40) ||
		    __builtin_mul_overflow(count, n, &count) || count > 1ull << 40)
			return refuse("%s: '%.*s' is no shape", a->name, (int)(close - open) + 1, open);
		vec_push(arena, &shape, (size_t)n);
		s = end + 1;
	}
	a->tensor = true;
	a->dtype = (tl_dtype)d;
	a->data = (struct npy){.dtype = a->dtype, .rank = shape.len, .count = count};
	a->data.shape = malloc((shape.len + 1) * sizeof(size_t));
	a->data.data = calloc(count ? count : 1, tl_dtype_size(a->dtype));
	if (!a->data.shape || !a->data.data)
		return refuse("%s: out of memory for %zu elements", a->name, count);
	if (shape.len)
		memcpy(a->data.shape, shape.at, shape.len * sizeof(size_t));
	size_t rest = len - (size_t)(close + 1 - text);
	if (!rest)
		return fill(a, "zeros", 5);
	if (close[1] != ':')
		return refuse("%s: expected ':' after the shape", a->name);
	return fill(a, close + 2, rest - 1);
}

/* @in.npy, or dtype@in.npy for the formats that NumPy lacks. */
static bool read_tensor(struct value_reader *r, struct argument *a, const char *text, size_t len)
{
	const char *at = memchr(text, '@', len);
	enum dtype d = DT_COUNT;
	if (at > text && !value_dtype(a, text, (size_t)(at - text), &d))
		return false;
	const char *path = arena_str(r->arena, at + 1, len - (size_t)(at + 1 - text));
	tl_status status = npy_read(path, &a->data);
	if (status) {
		r->code = api_failed(NULL, status);
		return false;
	}
	a->dtype = d == DT_COUNT ? a->data.dtype : (tl_dtype)d;
	a->tensor = true;
	if (tl_dtype_size(a->dtype) != tl_dtype_size(a->data.dtype))
		return refuse("%s: '%s' holds %s, which cannot be taken as %s", a->name, path,
			      tl_dtype_name(a->data.dtype), tl_dtype_name(a->dtype));
	return true;
}

/* --- values ----------------------------------------------------------------------------------------------- */

/* The number in Python's float('inf'), after an optional sign, in strtod's syntax; other texts are returned
 * unchanged. */
static const char *without_float_call(struct arena *a, const char *text)
{
	const char *call = text + (*text == '-' || *text == '+');
	size_t len = strlen(call);
	char quote = len > 9 ? call[6] : 0;
	if (strncmp(call, "float(", 6) != 0 || (quote != '\'' && quote != '"') || call[len - 2] != quote ||
	    call[len - 1] != ')')
		return text;
	const char *number = arena_str(a, call + 7, len - 9);
	return *text == '-' ? (*number == '-' ? number + 1 : arena_printf(a, "-%s", number)) : number;
}

/* 42, 0.5, True, inf, float('-inf'), i64:42, fp32:1 */
static bool read_scalar(struct arena *arena, struct argument *a, const char *text)
{
	text = without_float_call(arena, text);
	const char *colon = strchr(text, ':'), *number = colon ? colon + 1 : text;
	enum dtype d = DT_COUNT;
	char *end;
	if (colon && !value_dtype(a, text, (size_t)(colon - text), &d))
		return false;
	if (!strcmp(text, "True") || !strcmp(text, "False")) {
		a->arg = tl_bool(*text == 'T');
		return true;
	}
	errno = 0;
	long long i = strtoll(number, &end, 0);
	if (!*end && end > number && !errno) {
		a->arg = !colon              ? tl_int(i)
			 : dtype_is_float(d) ? tl_float_typed((tl_dtype)d, (double)i)
					     : tl_int_typed((tl_dtype)d, i);
		return true;
	}
	errno = 0;
	unsigned long long u = strtoull(number, &end, 0);
	if (!*end && end > number && !errno && !strchr(number, '-') && !(colon && dtype_is_float(d))) {
		a->arg = colon ? tl_uint_typed((tl_dtype)d, u) : tl_uint(u);
		return true;
	}
	bool whole = !*end && end > number;
	if (whole && !(colon && dtype_is_float(d)))
		return refuse("%s: '%s' does not fit 64 bits", a->name, number);
	double x = strtod(number, &end);
	if (*end || end == number || (colon && !dtype_is_float(d))) {
		bool word = text[strspn(text, "_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")] == 0;
		return refuse("%s: '%s' is no value%s", a->name, text,
			      word ? "; a string needs quotes, as in -D NAME='\"text\"'" : "; see tlc --help");
	}
	a->arg = colon ? tl_float_typed((tl_dtype)d, x) : tl_float(x);
	return true;
}

/* --- tuples and descriptors ---------------------------------------------------------------------------------- */

/* "name" of "name=value", or NULL. */
static const char *field_of(struct arena *a, const char **text)
{
	size_t len = span_outside(*text, "=");
	const char *s = *text;
	if (!s[len])
		return NULL;
	*text += len + 1;
	while (len && s[len - 1] == ' ')
		len--;
	return arena_str(a, s, len);
}

/* Reads the text after '(': values separated by commas, with or without names. */
static bool read_tuple(struct value_reader *r, struct argument *a, const char *text, bool constant)
{
	VEC(struct argument) items = {0};
	VEC(const char *) fields = {0};
	while (*text == ' ')
		text++;
	while (*text && *text != ')') {
		size_t len = span_outside(text, ",)");
		const char *part = arena_str(r->arena, text, len), *field = field_of(r->arena, &part);
		struct argument v = {.name = field ? arena_printf(r->arena, "%s.%s", a->name, field)
						   : arena_printf(r->arena, "%s[%u]", a->name, items.len)};
		size_t n = strlen(part);
		while (n && part[n - 1] == ' ')
			n--;
		part = arena_str(r->arena, part, n);
		while (*part == ' ')
			part++;
		bool is_value = !constant && (strpbrk(part, "[@(") || !strncmp(part, "None", 4));
		if (!(is_value ? read_argument(r, &v, part) : read_constant(r, &v, part))) {
			value_free(&v);
			return false;
		}
		if (field)
			vec_push(r->arena, &fields, field);
		vec_push(r->arena, &items, v);
		a->items = items.at;
		a->nitems = items.len;
		text += len + (text[len] == ',');
		while (*text == ' ')
			text++;
	}
	if (*text != ')' || text[1] || (fields.len && fields.len != items.len))
		return refuse("%s: %s", a->name,
			      *text != ')' ? "the tuple has no ')'"
			      : text[1]    ? "something is left over behind the tuple"
					   : "some fields of the tuple have names and some have none");
	a->fields = fields.at;
	a->is_tuple = true;
	return true;
}

/* Reads the text after "desc[": the block shape, and the tensor: desc[64,64]:fp16[128,256]:randn:0 */
static bool read_descriptor(struct value_reader *r, struct argument *a, const char *text)
{
	tl_descriptor *d = &a->descriptor;
	const char *s = text;
	int rank = 0;
	for (; *s != ']'; s += *s == ',') {
		char *end;
		size_t len = strcspn(s, ",]");
		if ((len == 3 && !memcmp(s, "nan", 3)) || (len == 4 && !memcmp(s, "tf32", 4))) {
			*(*s == 'n' ? &d->pads_with_nan : &d->rounds_to_tf32) = true;
			s += len;
			continue;
		}
		long n = strtol(s, &end, 10);
		if (end == s || n < 1 || n > INT32_MAX || rank == TL_MAX_RANK || (*end != ',' && *end != ']'))
			return refuse("%s: 'desc[%.*s' is no block shape", a->name, (int)strcspn(text, ":"), text);
		d->block_shape[rank++] = (int32_t)n;
		s = end;
	}
	if (*++s != ':')
		return refuse("%s: expected ':' and a tensor behind the block shape", a->name);
	if (!read_argument(r, a, s + 1))
		return false;
	if (!a->tensor || a->data.rank != (u32)rank)
		return refuse("%s: a block of %d dimension%s needs a tensor of as many", a->name, rank, PLURAL(rank));
	int64_t shape[TL_MAX_RANK];
	for (int i = 0; i < rank; i++)
		shape[i] = (int64_t)MIN(a->data.shape[i], (size_t)INT64_MAX);
	const tl_descriptor whole = tl_describe(a->dtype, NULL, rank, shape, d->block_shape);
	memcpy(d->shape, whole.shape, sizeof d->shape);
	memcpy(d->strides, whole.strides, sizeof d->strides);
	d->rank = rank;
	d->dtype = a->dtype;
	a->is_descriptor = true;
	return true;
}

bool read_constant(struct value_reader *r, struct argument *a, const char *value)
{
	size_t len = strlen(value);
	const char *name = !strncmp(value, "tl.", 3) ? value + 3 : value;
	enum dtype d = dtype_parse(name, strlen(name));
	a->given = true;
	if (*value == '(')
		return read_tuple(r, a, value + 1, true);
	if (len >= 2 && (*value == '"' || *value == '\'') && value[len - 1] == *value) {
		a->arg = tl_str(arena_str(r->arena, value + 1, len - 2));
		return true;
	}
	if (!strcmp(value, "None")) {
		a->arg = tl_none();
		return true;
	}
	if (r->unit->module && map_get(&r->unit->module->by_name, intern_str(&r->unit->names, value))) {
		a->arg = tl_func(value);
		return true;
	}
	if (d != DT_COUNT) {
		a->arg = tl_type((tl_dtype)d);
		return true;
	}
	return read_scalar(r->arena, a, value);
}

bool read_argument(struct value_reader *r, struct argument *a, const char *text)
{
	a->given = true;
	if (*text == '(')
		return read_tuple(r, a, text + 1, false);
	if (!strncmp(text, "desc[", 5))
		return read_descriptor(r, a, text + 5);
	const char *save = strstr(text, ":>");
	size_t len = save ? (size_t)(save - text) : strlen(text);
	a->save = save ? save + 2 : NULL;
	if (memchr(text, '@', len))
		return read_tensor(r, a, text, len);
	if (memchr(text, '[', len))
		return make_tensor(r->arena, a, text, len);
	if (save)
		return refuse("%s: only a tensor can be saved", a->name);
	if (!strcmp(text, "None")) {
		a->arg = tl_none();
		return true;
	}
	return read_scalar(r->arena, a, text);
}

/* --- on the device ------------------------------------------------------------------------------------------- */

tl_status value_upload(tl_context *ctx, struct argument *a)
{
	tl_status s = TL_OK;
	if (a->is_tuple) {
		tl_arg *items = calloc(a->nitems + 1, sizeof *items);
		for (u32 i = 0; i < a->nitems && !s; i++) {
			s = value_upload(ctx, &a->items[i]);
			items[i] = a->items[i].arg;
		}
		a->tuple = (tl_tuple){a->nitems, items, a->fields};
		a->arg = tl_tuple_arg(&a->tuple);
		return s;
	}
	if (!a->tensor)
		return TL_OK;
	size_t bytes = a->data.count * tl_dtype_size(a->dtype);
	s = tl_buffer_create(ctx, bytes, &a->buffer);
	if (!s && !a->empty)
		s = tl_buffer_write(a->buffer, 0, a->data.data, bytes);
	if (s)
		return s;
	a->descriptor.base = tl_buffer_ptr(a->buffer);
	a->arg = a->is_descriptor ? tl_desc(&a->descriptor) : tl_buf(a->dtype, a->buffer);
	return TL_OK;
}

static double load_number(const void *data, tl_dtype t, size_t i)
{
	u64 bits = 0;
	size_t n = tl_dtype_size(t);
	memcpy(&bits, (const char *)data + i * n, n);
	return dtype_decode_number((enum dtype)t, bits);
}

/* "out: fp32[4, 8] min -1.5 max 2.25: 0.5 1.25 …" */
static void summarize(const struct argument *a)
{
	double lo = INFINITY, hi = -INFINITY;
	size_t nans = 0;
	printf("%s: %s[", a->name, tl_dtype_name(a->dtype));
	for (uint32_t i = 0; i < a->data.rank; i++)
		printf("%s%zu", i ? ", " : "", a->data.shape[i]);
	printf("]");
	for (size_t i = 0; i < a->data.count; i++) {
		double x = load_number(a->data.data, a->dtype, i);
		nans += isnan(x);
		lo = x < lo ? x : lo;
		hi = x > hi ? x : hi;
	}
	if (nans < a->data.count)
		printf(" min %g max %g", lo, hi);
	if (nans)
		printf(" %zu NaN", nans);
	printf(":");
	for (size_t i = 0; i < a->data.count && i < 8; i++)
		printf(" %g", load_number(a->data.data, a->dtype, i));
	printf(a->data.count > 8 ? " ...\n" : "\n");
}

tl_status value_read(struct argument *a)
{
	tl_status s = TL_OK;
	for (u32 i = 0; i < a->nitems && !s; i++)
		s = value_read(&a->items[i]);
	return s || !a->buffer ? s
			       : tl_buffer_read(a->buffer, 0, a->data.data, a->data.count * tl_dtype_size(a->dtype));
}

char *value_difference(struct arena *arena, const struct argument *a, const struct argument *b, double tolerance)
{
	for (u32 i = 0; i < MIN(a->nitems, b->nitems); i++) {
		char *inside = value_difference(arena, &a->items[i], &b->items[i], tolerance);
		if (inside)
			return inside;
	}
	for (size_t i = 0; a->tensor && b->tensor && i < MIN(a->data.count, b->data.count); i++) {
		double x = load_number(a->data.data, a->dtype, i), y = load_number(b->data.data, b->dtype, i);
		if (x != y && !(isnan(x) && isnan(y)) && !(fabs(x - y) <= tolerance * (1 + fabs(y))))
			return arena_printf(arena, "element %zu of '%s' is %g, and %g", i, a->name, x, y);
	}
	return NULL;
}

tl_status value_download(struct argument *a)
{
	tl_status s = TL_OK;
	for (u32 i = 0; i < a->nitems && !s; i++)
		s = value_download(&a->items[i]);
	if (s || !a->buffer || (s = value_read(a)))
		return s;
	if (a->save) {
		struct npy out = a->data;
		if (tl_dtype_size(a->dtype) != tl_dtype_size(out.dtype) || dtype_is_fp8((enum dtype)a->dtype) ||
		    a->dtype == TL_BF16)
			out.dtype = tl_dtype_size(a->dtype) == 2 ? TL_U16 : TL_U8;
		else
			out.dtype = a->dtype;
		s = npy_write(a->save, &out);
	}
	if (!s && !a->save)
		summarize(a);
	return s;
}

void value_free(struct argument *a)
{
	for (u32 i = 0; i < a->nitems; i++)
		value_free(&a->items[i]);
	free((void *)a->tuple.items);
	if (a->buffer)
		tl_buffer_destroy(a->buffer);
	if (a->tensor)
		npy_free(&a->data);
}
