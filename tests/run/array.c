/* Arrays: the memory that a kernel reads and writes, with the expected results. */
#include "suite.h"

enum { GUARD = 256 }; /* bytes on each side of an output: as much as keeps the alignment */

static void no_memory(void)
{
	fprintf(stderr, "test-run: out of memory\n");
	exit(2);
}

static void *zeroed(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);
	if (!p)
		no_memory();
	return p;
}

static struct array *make(struct suite *s, const char *name, tl_dtype t, size_t len, int elements, bool guarded)
{
	struct array *a = zeroed(1, sizeof *a);
	size_t size = tl_dtype_size(t);
	a->name = name;
	a->dtype = t;
	a->len = len;
	a->rank = 1;
	a->shape[0] = (int)len;
	a->before = (guarded ? GUARD : 0) + (size_t)elements * size;
	a->bytes = a->before + len * size + (guarded ? GUARD : 0);
	if (!a->bytes)
		a->bytes = 1;
	a->raw = zeroed(a->bytes, 1);
	for (size_t i = 0; i < a->bytes; i++)
		a->raw[i] = (unsigned char)(random_bits() >> 33);
	if (is_float(t))
		a->f = zeroed(len, sizeof *a->f);
	else
		a->i = zeroed(len, sizeof *a->i);
	a->wanted = zeroed(len, 1);
	if (is_float(t))
		a->want_f = zeroed(len, sizeof *a->want_f);
	else
		a->want_i = zeroed(len, sizeof *a->want_i);
	if (tl_buffer_create(s->ctx, a->bytes, &a->buffer))
		case_fail(s, "%s: no buffer: %s", name, tl_error(s->ctx));
	a->holds = -1;
	a->next = s->arrays;
	s->arrays = a;
	return a;
}

struct array *in_at(struct suite *s, const char *name, tl_dtype t, size_t len, int elements)
{
	struct array *a = make(s, name, t, len, elements, false);
	if (is_float(t))
		fill(a, -1, 1);
	else
		fill_bits(a);
	return a;
}

struct array *out_at(struct suite *s, const char *name, tl_dtype t, size_t len, int elements)
{
	return make(s, name, t, len, elements, true);
}

struct array *in(struct suite *s, const char *name, tl_dtype t, size_t len) { return in_at(s, name, t, len, 0); }
struct array *out(struct suite *s, const char *name, tl_dtype t, size_t len) { return out_at(s, name, t, len, 0); }

struct array *inout(struct suite *s, const char *name, tl_dtype t, size_t len)
{
	struct array *a = make(s, name, t, len, 0, true);
	for (size_t i = 0; i < len; i++)
		set(a, i, 0);
	return a;
}

void shaped(struct array *a, int rank, const int *shape)
{
	a->rank = rank;
	memcpy(a->shape, shape, (size_t)rank * sizeof *shape);
}

/* --- values -------------------------------------------------------------------------------------------------- */

/* Elements are little-endian, as all devices and hosts of the project are. */
static void put(struct array *a, size_t i, uint64_t bits)
{
	size_t size = tl_dtype_size(a->dtype);
	memcpy(a->raw + a->before + i * size, &bits, size);
}

static uint64_t get(const struct array *a, const unsigned char *raw, size_t i)
{
	uint64_t bits = 0;
	size_t size = tl_dtype_size(a->dtype);
	memcpy(&bits, raw + a->before + i * size, size);
	return bits;
}

void set(struct array *a, size_t i, double v)
{
	if (!a->f) {
		set_int(a, i, (int64_t)v);
		return;
	}
	a->f[i] = round_to(a->dtype, v);
	put(a, i, encode(a->dtype, a->f[i]));
}

void set_int(struct array *a, size_t i, int64_t v)
{
	if (a->f) {
		set(a, i, (double)v);
		return;
	}
	a->i[i] = wrap(a->dtype, v);
	put(a, i, (uint64_t)a->i[i]);
}

void fill(struct array *a, double lo, double hi)
{
	for (size_t i = 0; i < a->len; i++)
		if (a->f)
			set(a, i, uniform(lo, hi));
		else
			set_int(a, i, random_int((int64_t)lo, (int64_t)hi));
}

void fill_whole(struct array *a, int most)
{
	for (size_t i = 0; i < a->len; i++)
		set(a, i, (double)random_int(-most, most - (a->f == NULL)));
}

void fill_bits(struct array *a)
{
	for (size_t i = 0; i < a->len; i++) {
		uint64_t bits = random_bits();
		if (!a->f) {
			set_int(a, i, (int64_t)bits);
			continue;
		}
		if (bits_of(a->dtype) < 64)
			bits &= (1ull << bits_of(a->dtype)) - 1;
		a->f[i] = decode(a->dtype, bits);
		put(a, i, bits);
	}
}

double value(const struct array *a, size_t i) { return a->f ? a->f[i] : int_value(a->dtype, a->i[i]); }
int64_t value_int(const struct array *a, size_t i) { return a->f ? (int64_t)a->f[i] : a->i[i]; }

void want(struct array *a, size_t i, double v)
{
	if (a->want_f)
		a->want_f[i] = v;
	else
		a->want_i[i] = (int64_t)v;
	a->wanted[i] = 1;
}

void want_number(struct array *a, size_t i, double v)
{
	want(a, i, v);
	a->wanted[i] = 2;
}

void want_signed(struct array *a, size_t i, double v)
{
	want(a, i, v);
	a->wanted[i] = 3;
}

void want_int(struct array *a, size_t i, int64_t v)
{
	if (a->want_f)
		a->want_f[i] = (double)v;
	else
		a->want_i[i] = wrap(a->dtype, v);
	a->wanted[i] = 1;
}

void tolerance(struct array *a, double absolute, double relative)
{
	a->absolute = absolute;
	a->relative = relative;
}

void tolerance_ulps(struct array *a, double ulps)
{
	a->ulps = ulps;
}

const void *address(const struct array *a) { return (char *)tl_buffer_ptr(a->buffer) + a->before; }
tl_arg ptr(const struct array *a) { return tl_ptr(a->dtype, address(a)); }

/* --- comparison ---------------------------------------------------------------------------------------------- */

static bool close_enough(const struct array *a, size_t i, double got, double *allowed)
{
	double exact = a->want_f[i], rounded = a->wanted[i] > 1 ? exact : round_to(a->dtype, exact);
	*allowed = 0;
	if (isnan(exact) && a->dtype == TL_F8E4B15) /* has none */
		return fabs(got) == 1.75;
	if (a->wanted[i] == 3 && got == 0 && exact == 0)
		return signbit(got) == signbit(exact);
	if (got == rounded || (isnan(got) && isnan(exact)))
		return true;
	if (!(a->absolute || a->relative || a->ulps) || !isfinite(got) || !isfinite(exact))
		return false;
	*allowed = a->absolute + a->relative * fabs(exact);
	*allowed += ulp(a->dtype, fabs(exact) + *allowed) * (a->ulps ? a->ulps : 0.5);
	return fabs(got - exact) <= *allowed;
}

static void where_is(const struct array *a, size_t i, char *text, size_t size)
{
	int at[4] = {0}, n = 0;
	for (int d = a->rank - 1; d >= 0; d--) {
		at[d] = (int)(i % (size_t)(a->shape[d] ? a->shape[d] : 1));
		i /= (size_t)(a->shape[d] ? a->shape[d] : 1);
	}
	for (int d = 0; d < a->rank && n < (int)size; d++)
		n += snprintf(text + n, size - (size_t)n, d ? ",%d" : "%d", at[d]);
}

/* What an element holds and should hold, as text. */
static void show(const struct array *a, uint64_t bits, size_t i, char *got, char *wanted, size_t size)
{
	if (a->f) {
		snprintf(got, size, "%.9g", decode(a->dtype, bits));
		snprintf(wanted, size, "%.9g", a->want_f[i]);
	} else {
		int64_t v = wrap(a->dtype, (int64_t)bits);
		snprintf(got, size, a->dtype == TL_U64 ? "%llu" : "%lld", (long long)v);
		if (a->dtype == TL_I1 && bits > 1)
			snprintf(got, size, "byte %#llx", (unsigned long long)bits);
		snprintf(wanted, size, a->dtype == TL_U64 ? "%llu" : "%lld", (long long)a->want_i[i]);
	}
}

/* Bytes without an expected value must be as uploaded. */
static void check_rest(struct suite *s, const struct array *a, const unsigned char *raw)
{
	size_t size = tl_dtype_size(a->dtype), bad = 0, first = 0;
	for (size_t b = 0; b < a->bytes; b++) {
		size_t i = (b - a->before) / size;
		bool inside = b >= a->before && i < a->len;
		if ((inside && a->wanted[i]) || raw[b] == a->raw[b])
			continue;
		if (!bad++)
			first = b;
	}
	if (!bad)
		return;
	if (first < a->before || first >= a->before + a->len * size)
		case_fail(s, "%s: written outside: byte %lld from its start (of %zu elements); %zu bytes in all",
			  a->name,
			  (long long)first - (long long)a->before, a->len, bad);
	else
		case_fail(s, "%s: element %zu of %zu must stay as it was; %zu bytes differ", a->name,
			  (first - a->before) / size,
			  a->len, bad);
}

static void check_array(struct suite *s, const struct array *a, const unsigned char *raw)
{
	size_t bad = 0, first = 0, wanted = 0;
	double allowed = 0, first_allowed = 0;
	for (size_t i = 0; i < a->len; i++) {
		if (!a->wanted[i])
			continue;
		uint64_t bits = get(a, raw, i);
		bool same = a->f ? close_enough(a, i, decode(a->dtype, bits), &allowed)
				 : bits == (bits_of(a->dtype) == 64
						    ? (uint64_t)a->want_i[i]
						    : (uint64_t)a->want_i[i] & ((1ull << bits_of(a->dtype)) - 1));
		wanted++;
		if (same)
			continue;
		if (!bad++) {
			first = i;
			first_allowed = allowed;
		}
	}
	if (bad) {
		char at[64] = "", got[40], should[40];
		where_is(a, first, at, sizeof at);
		show(a, get(a, raw, first), first, got, should, sizeof got);
		case_fail(s, "%s %s[%s]: got %s, want %s (allowed %.3g); %zu of %zu wrong", tl_dtype_name(a->dtype),
			  a->name, at, got,
			  should, first_allowed, bad, wanted);
		return;
	}
	check_rest(s, a, raw);
}

static bool switch_schedule(struct suite *s, struct array *a)
{
	int to = s->schedule;
	if (a->holds == to)
		return true;
	if (a->holds >= 0 && !a->left[a->holds])
		a->left[a->holds] = zeroed(a->bytes, 1);
	if (a->holds >= 0 && tl_buffer_read(a->buffer, 0, a->left[a->holds], a->bytes))
		return false;
	a->holds = to;
	return !tl_buffer_write(a->buffer, 0, a->left[to] ? a->left[to] : a->raw, a->bytes);
}

bool arrays_upload(struct suite *s)
{
	for (struct array *a = s->arrays; a; a = a->next)
		if (!switch_schedule(s, a)) {
			case_fail(s, "%s: upload: %s", a->name, tl_error(s->ctx));
			return false;
		}
	return true;
}

static void check_arrays(struct suite *s)
{
	for (struct array *a = s->arrays; a && !s->failed; a = a->next) {
		unsigned char *raw = zeroed(a->bytes, 1);
		if (tl_buffer_read(a->buffer, 0, raw, a->bytes))
			case_fail(s, "%s: read back: %s", a->name, tl_error(s->ctx));
		else
			check_array(s, a, raw);
		free(raw);
	}
}

void arrays_check(struct suite *s)
{
	for (int n = 0; enter_schedule(s, n); n++)
		check_arrays(s);
}

void arrays_free(struct suite *s)
{
	while (s->arrays) {
		struct array *a = s->arrays;
		s->arrays = a->next;
		if (!s->lost)
			tl_buffer_destroy(a->buffer);
		for (int k = 0; k < SCHEDULES; k++)
			free(a->left[k]);
		free(a->raw), free(a->f), free(a->i), free(a->want_f), free(a->want_i), free(a->wanted), free(a);
	}
}
