/* Reading and writing .npy files.
 *
 * A file has the magic "\x93NUMPY", a version, the length of the header, the header as a Python dictionary
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
 * and the elements. A small parser reads the header. It knows these literals only: keys in any order, either quote, any
 * spacing, as NumPy accepts them. Files are untrusted, so every length is checked before it is used. */
#include "cli/npy.h"

#include <errno.h>
#include <stdlib.h>

#include "support/dtype.h"
#include "runtime/image/error.h"

enum { MAX_RANK_NPY = 64, MAX_HEADER = 1 << 20 };

static const char magic[] = "\x93NUMPY";

static const struct {
	char descr[3];
	tl_dtype dtype;
} dtypes[] = {
	{"b1", TL_I1}, {"i1", TL_I8}, {"i2", TL_I16}, {"i4", TL_I32}, {"i8", TL_I64}, {"u1", TL_U8},
	{"u2", TL_U16}, {"u4", TL_U32}, {"u8", TL_U64}, {"f2", TL_F16}, {"f4", TL_F32}, {"f8", TL_F64},
};

/* --- the header ---------------------------------------------------------------------------------------------- */

struct header {
	const char *at, *end, *name; /* name: of the file */
	bool has_descr, has_order, has_shape;
	bool fortran;
	tl_dtype dtype;
	uint32_t rank;
	size_t shape[MAX_RANK_NPY];
};

static void skip_space(struct header *h)
{
	while (h->at < h->end && strchr(" \t\r\n\f", *h->at) && *h->at)
		h->at++;
}

static bool take_char(struct header *h, char c)
{
	skip_space(h);
	if (h->at == h->end || *h->at != c)
		return false;
	h->at++;
	return true;
}

static bool take_word(struct header *h, const char *word)
{
	skip_space(h);
	size_t n = strlen(word);
	if ((size_t)(h->end - h->at) < n || memcmp(h->at, word, n))
		return false;
	h->at += n;
	return true;
}

/* A quoted string without escapes, as in keys and types. */
static bool take_string(struct header *h, const char **s, size_t *len)
{
	skip_space(h);
	if (h->at == h->end || (*h->at != '\'' && *h->at != '"'))
		return false;
	char quote = *h->at++;
	*s = h->at;
	while (h->at < h->end && *h->at != quote && *h->at != '\\')
		h->at++;
	*len = (size_t)(h->at - *s);
	return take_char(h, quote);
}

static tl_status malformed(const struct header *h, const char *what)
{
	return failed(TL_ERR_FILE, "%s: not a valid .npy file: %s", h->name, what);
}

static tl_status read_descr(struct header *h)
{
	const char *s;
	size_t len;
	if (!take_string(h, &s, &len))
		return failed(TL_ERR_FILE, "%s: arrays of records are not supported, only of plain numbers", h->name);
	char order = len ? *s : 0;
	if (len && strchr("<>=|", order)) {
		s++;
		len--;
	}
	for (u32 i = 0; i < ARRAY_LEN(dtypes); i++) {
		if (!word_is(s, len, dtypes[i].descr) && !(dtypes[i].dtype == TL_I1 && word_is(s, len, "?")))
			continue;
		h->dtype = dtypes[i].dtype;
		if (order == '>' && tl_dtype_size(h->dtype) > 1)
			return failed(TL_ERR_FILE, "%s: its elements are big-endian; save it as '<%s'", h->name,
				      dtypes[i].descr);
		return TL_OK;
	}
	return failed(TL_ERR_FILE,
		      "%s: elements of type '%.*s' are not supported; there are b1, i1 to i8, u1 to u8, f2, f4, f8",
		      h->name, (int)(len < 40 ? len : 40), s);
}

static tl_status read_order(struct header *h)
{
	h->fortran = take_word(h, "True");
	return h->fortran || take_word(h, "False") ? TL_OK : malformed(h, "fortran_order is neither True nor False");
}

static bool take_size(struct header *h, size_t *out)
{
	skip_space(h);
	const char *start = h->at;
	*out = 0;
	for (; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++)
		if (__builtin_mul_overflow(*out, 10, out) || __builtin_add_overflow(*out, (size_t)(*h->at - '0'), out))
			return false;
	bool some = h->at > start;
	if (some && h->at < h->end && *h->at == 'L') /* suffix of long integers in Python 2 */
		h->at++;
	return some;
}

static tl_status read_shape(struct header *h)
{
	if (!take_char(h, '('))
		return malformed(h, "the shape is not a tuple");
	for (h->rank = 0; !take_char(h, ')');) {
		if (h->rank == MAX_RANK_NPY)
			return malformed(h, "more than 64 dimensions");
		if (!take_size(h, &h->shape[h->rank++]))
			return malformed(h, "a dimension is not a number of elements");
		if (!take_char(h, ',') && (h->rank == 1 || h->at == h->end || *h->at != ')'))
			return malformed(h, "the shape is not a tuple");
	}
	return TL_OK;
}

static tl_status read_header(struct header *h)
{
	if (!take_char(h, '{'))
		return malformed(h, "its header is not a dictionary");
	while (!take_char(h, '}')) {
		const char *key;
		size_t len;
		if (!take_string(h, &key, &len) || !take_char(h, ':'))
			return malformed(h, "its header is not a dictionary");
		bool *seen = word_is(key, len, "descr")           ? &h->has_descr
			     : word_is(key, len, "fortran_order") ? &h->has_order
			     : word_is(key, len, "shape")         ? &h->has_shape
								  : NULL;
		if (!seen || *seen)
			return malformed(h,
					 seen ? "a key of its header appears twice" : "an unknown key in its header");
		*seen = true;
		tl_status s = seen == &h->has_descr   ? read_descr(h)
			      : seen == &h->has_order ? read_order(h)
						      : read_shape(h);
		if (s)
			return s;
		if (!take_char(h, ',') && (skip_space(h), h->at == h->end || *h->at != '}'))
			return malformed(h, "its header is not a dictionary");
	}
	skip_space(h);
	if (h->at != h->end)
		return malformed(h, "something follows the dictionary of its header");
	return h->has_descr && h->has_order && h->has_shape
		       ? TL_OK
		       : malformed(h, "its header lacks descr, fortran_order or shape");
}

/* --- the elements -------------------------------------------------------------------------------------------- */

/* Converts column-major to row-major order. The source is read in order; `at` is the destination of its element. */
static void to_c_order(const struct npy *a, const char *src, size_t size)
{
	size_t index[MAX_RANK_NPY] = {0}, stride[MAX_RANK_NPY], at = 0;
	for (u32 i = a->rank, n = 0; i-- > 0; n++)
		stride[i] = n ? stride[i + 1] * a->shape[i + 1] : 1;
	for (size_t k = 0; k < a->count; k++) {
		memcpy((char *)a->data + at * size, src + k * size, size);
		for (u32 i = 0; i < a->rank; i++) {
			at += stride[i];
			if (++index[i] < a->shape[i])
				break;
			at -= stride[i] * a->shape[i];
			index[i] = 0;
		}
	}
}

static tl_status take_elements(const struct header *h, const char *data, size_t len, struct npy *out)
{
	size_t size = tl_dtype_size(h->dtype), bytes;
	out->dtype = h->dtype;
	out->rank = h->rank;
	out->count = 1;
	bool overflow = false, empty = false;
	for (u32 i = 0; i < h->rank; i++)
		empty |= !h->shape[i];
	for (u32 i = 0; i < h->rank && !empty; i++)
		overflow |= __builtin_mul_overflow(out->count, h->shape[i], &out->count);
	if (empty)
		out->count = 0;
	if (overflow || __builtin_mul_overflow(out->count, size, &bytes) || bytes > len)
		return failed(TL_ERR_FILE, "%s: the file ends before its array: %zu bytes are there", h->name, len);
	out->shape = h->rank ? malloc(h->rank * sizeof *out->shape) : NULL;
	out->data = calloc(bytes ? bytes : 1, 1);
	if (!out->data || (h->rank && !out->shape)) {
		npy_free(out);
		return failed(TL_ERR_MEMORY, "%s: no memory for an array of %zu bytes", h->name, bytes);
	}
	if (h->rank)
		memcpy(out->shape, h->shape, h->rank * sizeof *out->shape);
	if (h->fortran && h->rank > 1)
		to_c_order(out, data, size);
	else
		memcpy(out->data, data, bytes);
	if (h->dtype == TL_I1) /* kernels may rely on 0 and 1 */
		for (size_t i = 0; i < bytes; i++)
			((u8 *)out->data)[i] = ((u8 *)out->data)[i] != 0;
	return TL_OK;
}

tl_status npy_parse(const void *bytes, size_t len, const char *name, struct npy *out)
{
	const u8 *p = bytes;
	struct header h = {.name = name};
	*out = (struct npy){0};
	if (len < 10 || memcmp(p, magic, 6))
		return malformed(&h, "it does not start with \\x93NUMPY");
	if (p[6] < 1 || p[6] > 3 || p[7])
		return failed(TL_ERR_FILE, "%s: version %d.%d of the .npy format is not known", name, p[6], p[7]);
	size_t start = p[6] == 1 ? 10 : 12;
	size_t n = p[8] | (size_t)p[9] << 8;
	if (len >= 12 && p[6] > 1)
		n |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
	if (len < start || n > len - start || n > MAX_HEADER)
		return malformed(&h, "its header is cut off");
	h.at = (const char *)p + start;
	h.end = h.at + n;
	tl_status s = read_header(&h);
	return s ? s : take_elements(&h, h.end, len - start - n, out);
}

void npy_free(struct npy *a)
{
	free(a->shape);
	free(a->data);
	*a = (struct npy){0};
}

/* --- files --------------------------------------------------------------------------------------------------- */

static tl_status file_error(const char *what, const char *path)
{
	return failed(TL_ERR_FILE, "cannot %s '%s': %s", what, path, strerror(errno ? errno : EIO));
}

static char *read_all(FILE *f, size_t *len)
{
	size_t cap = 1 << 16;
	char *bytes = NULL;
	if (!fseeko(f, 0, SEEK_END)) {
		off_t end = ftello(f);
		if (end > 0 && end < PTRDIFF_MAX)
			cap = (size_t)end + 1;
		if (fseeko(f, 0, SEEK_SET))
			return NULL;
	}
	errno = 0;
	for (*len = 0;; cap *= 2) {
		char *more = realloc(bytes, cap);
		if (!more)
			break;
		bytes = more;
		*len += fread(bytes + *len, 1, cap - *len, f);
		if (ferror(f))
			break;
		if (feof(f))
			return bytes;
	}
	free(bytes);
	return NULL;
}

tl_status npy_read(const char *path, struct npy *out)
{
	*out = (struct npy){0};
	FILE *f = fopen(path, "rb");
	if (!f)
		return file_error("read", path);
	size_t len;
	char *bytes = read_all(f, &len);
	tl_status s = bytes ? npy_parse(bytes, len, path, out) : file_error("read", path);
	free(bytes);
	fclose(f);
	return s;
}

/* The whole header: magic, version, length, dictionary, padded so that the elements are aligned to 64 bytes. */
static char *make_header(const struct npy *a, const char *descr, size_t *len)
{
	char *out = malloc(192 + a->rank * 24), *dict = out + 10;
	if (!out)
		return NULL;
	int n = sprintf(dict, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
			tl_dtype_size(a->dtype) > 1 ? '<' : '|', descr);
	for (u32 i = 0; i < a->rank; i++)
		n += sprintf(dict + n, "%s%zu%s", i ? ", " : "", a->shape[i], a->rank == 1 ? "," : "");
	n += sprintf(dict + n, "), }");
	while ((10 + n + 1) % 64)
		dict[n++] = ' ';
	dict[n++] = '\n';
	memcpy(out, magic, 6);
	out[6] = 1;
	out[7] = 0;
	out[8] = (char)(n & 255);
	out[9] = (char)(n >> 8);
	*len = 10 + (size_t)n;
	return out;
}

tl_status npy_write(const char *path, const struct npy *a)
{
	const char *descr = NULL;
	for (u32 i = 0; i < ARRAY_LEN(dtypes); i++)
		if (dtypes[i].dtype == a->dtype)
			descr = dtypes[i].descr;
	if (!descr || a->rank > MAX_RANK_NPY)
		return failed(TL_ERR_ARGUMENT, "cannot write '%s': the .npy format has no type %s", path,
			      tl_dtype_name(a->dtype));
	size_t len;
	char *header = make_header(a, descr, &len);
	if (!header)
		return failed(TL_ERR_MEMORY, "out of host memory");
	FILE *f = fopen(path, "wb");
	if (!f) {
		free(header);
		return file_error("write", path);
	}
	errno = 0;
	bool good = fwrite(header, 1, len, f) == len &&
		    (!a->count || fwrite(a->data, tl_dtype_size(a->dtype), a->count, f) == a->count);
	good &= !fclose(f);
	free(header);
	return good ? TL_OK : file_error("write", path);
}
