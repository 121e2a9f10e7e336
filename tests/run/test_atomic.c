/* Atomic operations. What many threads do to one cell is compared where every order gives the same. */
#include "themes.h"

static const char file[] = "atomic.tl";
static const tl_dtype types[] = {TL_I32, TL_U32, TL_I64, TL_U64, TL_F32, TL_F16, TL_BF16, TL_F64, TL_I16, TL_U16};
enum { ADDED = 8 /* of these types, the first that have all operations of their kind */ };
static const char *const ops[] = {"add", "max", "min", "and", "or", "xor", "xchg"};
static const char *const sems[] = {NULL, "relaxed", "acquire", "release", "acq_rel"},
	*const scopes[] = {NULL, "gpu", "cta", "sys"};

static tl_arg choice(const char *name) { return name ? tl_str(name) : tl_none(); }

static int64_t combine(const char *op, tl_dtype t, int64_t old, int64_t v)
{
	bool less = is_signed(t) ? old < v : (uint64_t)old < (uint64_t)v;
	if (!strcmp(op, "add"))
		return (int64_t)((uint64_t)old + (uint64_t)v);
	if (!strcmp(op, "max") || !strcmp(op, "min"))
		return less == !strcmp(op, "max") ? v : old;
	return !strcmp(op, "and") ? old & v : !strcmp(op, "or") ? old | v : !strcmp(op, "xor") ? old ^ v : v;
}

static double combine_floats(const char *op, double old, double v)
{
	if (!strcmp(op, "max") || !strcmp(op, "min"))
		return (old < v) == !strcmp(op, "max") ? v : old;
	return !strcmp(op, "add") ? old + v : v;
}

static bool fits(const char *op, tl_dtype t) /* has the operation this type? */
{
	bool swaps = !strcmp(op, "xchg"), bitwise = !strcmp(op, "and") || !strcmp(op, "or") || !strcmp(op, "xor");
	return swaps || (is_float(t) ? !bitwise : bits_of(t) >= 32);
}

static void whole(struct array *x, int most)
{
	for (size_t i = 0; x->f && i < x->len; i++)
		set(x, i, (double)random_int(-most, most));
}

/* x[i] = op(x[i], v[i]); the old value goes to old[i] unless that is NULL. */
static void want_update(struct array *x, const struct array *v, struct array *old, const char *op, size_t i)
{
	if (x->f) {
		want(x, i, combine_floats(op, value(x, i), value(v, i)));
		if (old)
			want(old, i, value(x, i));
		return;
	}
	want_int(x, i, combine(op, x->dtype, value_int(x, i), value_int(v, i)));
	if (old)
		want_int(old, i, value_int(x, i));
}

static void distinct(struct suite *s, const char *op, tl_dtype t, int n, int block, bool keep, bool masked,
		     const char *sem, const char *scope, int warps)
{
	if (!case_begin(s, file, "%s %s n=%d block=%d%s%s sem=%s scope=%s warps=%d", op, tl_dtype_name(t), n, block,
			keep ? " keep" : "",
			masked ? " masked" : "", sem ? sem : "", scope ? scope : "", warps))
		return;
	int grid = (n + block - 1) / block;
	n = masked ? n : grid * block;
	struct array *x = inout(s, "x", t, (size_t)n), *v = in(s, "v", t, (size_t)n),
		*old = out(s, "old", t, (size_t)n);
	if (!x->f)
		fill_bits(x);
	whole(x, 100), whole(v, 100);
	for (int i = 0; i < n; i++)
		if (!masked || i % 3 != 1)
			want_update(x, v, keep ? old : NULL, op, (size_t)i);
	LAUNCH(s, "distinct", CONFIG(.grid = {(uint32_t)grid}, .num_warps = warps), ptr(x), ptr(v), ptr(old), tl_int(n),
	       tl_str(op), tl_bool(keep), tl_bool(masked), choice(sem), choice(scope), tl_int(block));
	case_end(s);
}

static void contended(struct suite *s, const char *op, tl_dtype t, int n, int block, int cells, const char *sem,
		      int warps)
{
	if (!case_begin(s, file, "contended %s %s n=%d block=%d cells=%d sem=%s warps=%d", op, tl_dtype_name(t), n,
			block, cells, sem ? sem : "",
			warps))
		return;
	struct array *x = inout(s, "x", t, (size_t)cells), *v = in(s, "v", t, (size_t)n);
	if (!x->f)
		fill_bits(x);
	whole(x, 10), whole(v, t == TL_F16 || t == TL_BF16 ? 1 : 100);
	for (int c = 0; c < cells; c++) {
		double f = value(x, (size_t)c);
		int64_t r = value_int(x, (size_t)c);
		for (int i = c; i < n; i += cells) {
			f = combine_floats(op, f, value(v, (size_t)i));
			r = combine(op, t, r, value_int(v, (size_t)i));
		}
		if (x->f)
			want(x, (size_t)c, f);
		else
			want_int(x, (size_t)c, r);
	}
	LAUNCH(s, "contended", CONFIG(.grid = {(uint32_t)((n + block - 1) / block)}, .num_warps = warps), ptr(x),
	       ptr(v), tl_int(n), tl_int(cells), tl_str(op), choice(sem), tl_int(block));
	case_end(s);
}

static void scalars(struct suite *s, const char *op, tl_dtype t, bool keep, bool masked, int warps)
{
	enum { N = 11 };
	if (!case_begin(s, file, "scalar %s %s%s%s warps=%d", op, tl_dtype_name(t), keep ? " keep" : "",
			masked ? " masked" : "", warps))
		return;
	struct array *x = inout(s, "x", t, N), *v = in(s, "v", t, N), *old = out(s, "old", t, N);
	if (!x->f)
		fill_bits(x);
	whole(x, 100), whole(v, 100);
	for (size_t i = 0; i < N; i++)
		if (!masked || i % 2 == 0)
			want_update(x, v, keep ? old : NULL, op, i);
	LAUNCH(s, "scalars", CONFIG(.grid = {N}, .num_warps = warps), ptr(x), ptr(v), ptr(old), tl_str(op),
	       tl_bool(keep), tl_bool(masked));
	case_end(s);
}

/* Zeros of both signs, infinities, subnormals: each against each, what is left and what was there by their bits. */
static void signs(struct suite *s, const char *op, tl_dtype t, tl_dtype bits, int warps)
{
	static const double some[] = {0.0, -0.0, 1, -1, INFINITY, -INFINITY, 0x1p-14, -0x1p-14};
	enum { N = COUNT(some) };
	if (!case_begin(s, file, "signs %s %s warps=%d", op, tl_dtype_name(t), warps))
		return;
	struct array *x = inout(s, "x", bits, N * N), *v = in(s, "v", bits, N * N), *old = out(s, "old", bits, N * N);
	for (size_t i = 0; i < N * N; i++) {
		double a = some[i % N], b = some[i / N];
		bool less = a < b || (a == b && signbit(a) && !signbit(b));
		set_int(x, i, (int64_t)encode(t, a)), set_int(v, i, (int64_t)encode(t, b));
		want_int(x, i, (int64_t)encode(t, less == !strcmp(op, "max") ? b : a));
		want_int(old, i, (int64_t)encode(t, a));
	}
	LAUNCH(s, "signs", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(v), ptr(old), tl_str(op), tl_type(t),
	       tl_int(N * N));
	case_end(s);
}

static void every_operation(struct suite *s)
{
	static const int sizes[][3] = {{1000, 256, 4}, {5, 8, 1}, {64, 64, 8}, {3000, 1024, 2}, {1, 1, 4}};
	int c = 0;
	for (int o = 0; o < COUNT(ops); o++)
		for (int t = 0; t < COUNT(types); t++) {
			tl_dtype type = types[t];
			if (!fits(ops[o], type))
				continue;
			for (int i = 0; i < COUNT(sizes); i++, c++)
				distinct(s, ops[o], type, sizes[i][0], sizes[i][1], c % 4 != 0, c % 3 != 0, sems[c % 5],
					 scopes[c / 5 % 4], sizes[i][2]);
			for (int i = 0; i < 4; i++)
				scalars(s, ops[o], type, i & 1, i & 2, 1 << (c + i) % 4);
			if (strcmp(ops[o], "xchg")) {
				contended(s, ops[o], type, 777, 256, 1, sems[c % 5], 4),
					contended(s, ops[o], type, 500, 64, 7, sems[(c + 2) % 5], 2);
				contended(s, ops[o], type, 2000, 1024, 100, "relaxed", 8),
					contended(s, ops[o], type, 40, 1, 3, NULL, 1);
			}
		}
	for (int i = 0; i < 2; i++) {
		signs(s, i ? "max" : "min", TL_F32, TL_I32, 4), signs(s, i ? "max" : "min", TL_F64, TL_I64, 2);
		signs(s, i ? "max" : "min", TL_F16, TL_I16, 1), signs(s, i ? "max" : "min", TL_BF16, TL_I16, 4);
	}
	for (int i = 0; i < 5; i++)
		for (int k = 0; k < 4; k++)
			distinct(s, "add", i % 2 ? TL_F32 : TL_I64, 512, 128, true, true, sems[i], scopes[k], 4);
}

/* --- addresses that repeat ----------------------------------------------------------------------------------- */

static void repeated(struct suite *s, tl_dtype t, int m, int n, int axis, int warps)
{
	if (!case_begin(s, file, "repeated addresses %s %dx%d axis=%d warps=%d", tl_dtype_name(t), m, n, axis, warps))
		return;
	struct array *x = inout(s, "x", t, (size_t)(axis ? m : n)), *v = in(s, "v", t, (size_t)(m * n));
	whole(x, 10), whole(v, t == TL_F16 || t == TL_BF16 ? 1 : 50);
	for (size_t k = 0; k < x->len; k++) {
		double f = value(x, k);
		int64_t sum = value_int(x, k);
		for (size_t j = 0; j < (size_t)(axis ? n : m); j++) {
			size_t i = axis ? k * (size_t)n + j : j * (size_t)n + k;
			f += value(v, i);
			sum = (int64_t)((uint64_t)sum + (uint64_t)value_int(v, i));
		}
		if (x->f)
			want(x, k, f);
		else
			want_int(x, k, sum);
	}
	LAUNCH(s, "rows_and_columns", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(v), tl_int(m), tl_int(n),
	       tl_int(axis));
	case_end(s);
}

static void broadcast_value(struct suite *s, int n, int programs, int warps)
{
	if (!case_begin(s, file, "broadcast value n=%d programs=%d warps=%d", n, programs, warps))
		return;
	struct array *x = inout(s, "x", TL_I32, (size_t)n + 2);
	fill(x, -100, 100);
	for (size_t i = 0; i < x->len; i++)
		want(x, i, value(x, i) + programs * ((int)i < n ? 12345 + 2 : (int)i == n ? 3 * n : 5));
	LAUNCH(s, "broadcast_value", CONFIG(.grid = {(uint32_t)programs}, .num_warps = warps), ptr(x), tl_int(12345),
	       tl_int(n));
	case_end(s);
}

static void tickets(struct suite *s, int n, int block, int warps)
{
	if (!case_begin(s, file, "tickets n=%d block=%d warps=%d", n, block, warps))
		return;
	struct array *count = inout(s, "count", TL_I32, 1), *o = out(s, "o", TL_I32, (size_t)n);
	want(count, 0, n);
	for (int i = 0; i < n; i++)
		want(o, (size_t)i, 2 * i);
	if (block)
		LAUNCH(s, "tile_tickets", CONFIG(.grid = {(uint32_t)((n + block - 1) / block)}, .num_warps = warps),
		       ptr(count), ptr(o), tl_int(n), tl_int(block));
	else
		LAUNCH(s, "tickets", CONFIG(.grid = {(uint32_t)n}, .num_warps = warps), ptr(count), ptr(o));
	case_end(s);
}

static void histogram(struct suite *s, int n, int bins, int block, int programs)
{
	if (!case_begin(s, file, "histogram n=%d bins=%d block=%d programs=%d", n, bins, block, programs))
		return;
	struct array *x = in(s, "x", TL_I32, (size_t)n), *count = inout(s, "count", TL_I64, (size_t)bins);
	int64_t *seen = calloc((size_t)bins, sizeof *seen);
	fill(x, -2, bins + 2);
	for (size_t i = 0; i < x->len; i++)
		if (value(x, i) >= 0 && value(x, i) < bins)
			seen[value_int(x, i)]++;
	for (int b = 0; b < bins; b++)
		want_int(count, (size_t)b, seen[b]);
	free(seen);
	LAUNCH(s, "histogram", CONFIG(.grid = {(uint32_t)programs}), ptr(x), ptr(count), tl_int(n), tl_int(bins),
	       tl_int(block));
	case_end(s);
}

static void exchange(struct suite *s, int programs, int block, int warps)
{
	if (!case_begin(s, file, "exchange programs=%d block=%d warps=%d", programs, block, warps))
		return;
	struct array *x = inout(s, "x", TL_I32, 1), *sum = inout(s, "sum", TL_I32, 1);
	int n = programs * block;
	set_int(x, 0, 1000);
	want_int(x, 0, -1);
	want_int(sum, 0, 1000 + (int64_t)n * (n + 1) / 2);
	LAUNCH(s, "exchange", CONFIG(.grid = {(uint32_t)programs}, .num_warps = warps), ptr(x), ptr(sum),
	       tl_int(block));
	LAUNCH(s, "empty_cell", CONFIG(.grid = {1}), ptr(x), ptr(sum));
	case_end(s);
}

/* --- compare and swap ---------------------------------------------------------------------------------------- */

static void compare(struct suite *s, tl_dtype t, int block, bool keep, const char *sem, const char *scope, int warps)
{
	if (!case_begin(s, file, "compare %s block=%d%s sem=%s scope=%s warps=%d", tl_dtype_name(t), block,
			keep ? " keep" : "", sem ? sem : "",
			scope ? scope : "", warps))
		return;
	size_t n = 3 * (size_t)block;
	struct array *x = inout(s, "x", t, n), *cmp = in(s, "cmp", t, n), *v = in(s, "v", t, n),
		*old = out(s, "old", t, n);
	fill(x, 0, 1), fill(cmp, 0, 1);
	for (size_t i = 0; i < n; i++) {
		if (x->f)
			set(x, i, rint(value(x, i))), set(cmp, i, rint(value(cmp, i)));
		struct array *from = value(x, i) == value(cmp, i) ? v : x;
		if (x->f)
			want(x, i, value(from, i));
		else
			want_int(x, i, value_int(from, i));
		if (keep)
			want(old, i, value(x, i));
	}
	LAUNCH(s, "compare", CONFIG(.grid = {3}, .num_warps = warps), ptr(x), ptr(cmp), ptr(v), ptr(old), tl_bool(keep),
	       choice(sem), choice(scope), tl_int(block));
	case_end(s);
}

static void add_by_compare(struct suite *s, tl_dtype t, int programs, int warps)
{
	if (!case_begin(s, file, "add by compare %s programs=%d warps=%d", tl_dtype_name(t), programs, warps))
		return;
	struct array *x = inout(s, "x", t, 1), *v = in(s, "v", t, (size_t)programs);
	double sum = 0;
	for (size_t i = 0; i < v->len; i++) {
		set(v, i, (double)random_int(1, 1000));
		sum += value(v, i);
	}
	want(x, 0, sum);
	LAUNCH(s, "add_by_compare", CONFIG(.grid = {(uint32_t)programs}, .num_warps = warps), ptr(x), ptr(v));
	case_end(s);
}

static void locked(struct suite *s, int programs, int n, int block, int warps)
{
	if (!case_begin(s, file, "locked programs=%d n=%d warps=%d", programs, n, warps))
		return;
	struct array *lock = inout(s, "lock", TL_I32, 1), *x = inout(s, "x", TL_F32, (size_t)n),
		*v = in(s, "v", TL_F32, (size_t)(programs * n));
	whole(x, 1000), whole(v, 1000);
	want(lock, 0, 0);
	for (int i = 0; i < n; i++) {
		double sum = value(x, (size_t)i);
		for (int p = 0; p < programs; p++)
			sum += value(v, (size_t)(p * n + i));
		want(x, (size_t)i, sum);
	}
	LAUNCH(s, "locked", CONFIG(.grid = {(uint32_t)programs}, .num_warps = warps), ptr(lock), ptr(x), ptr(v),
	       tl_int(n), tl_int(block));
	case_end(s);
}

static void last_one(struct suite *s, int n, int block, int warps)
{
	int programs = (n + block - 1) / block;
	if (!case_begin(s, file, "last one sums n=%d block=%d warps=%d", n, block, warps))
		return;
	struct array *x = in(s, "x", TL_F32, (size_t)n), *part = out(s, "part", TL_F32, (size_t)programs),
		*count = inout(s, "count", TL_I32, 1),
		     *o = out(s, "o", TL_F32, 1);
	double sum = 0, all = 0;
	whole(x, 100);
	for (int i = 0; i < n; i++) {
		sum = (i % block ? sum : 0) + value(x, (size_t)i);
		all += value(x, (size_t)i);
		want(part, (size_t)(i / block), sum);
	}
	want(count, 0, programs);
	want(o, 0, all);
	LAUNCH(s, "last_one_sums", CONFIG(.grid = {(uint32_t)programs}, .num_warps = warps), ptr(x), ptr(part),
	       ptr(count), ptr(o), tl_int(n), tl_int(block), tl_int(128));
	case_end(s);
}

/* Each program adds what its neighbour had in the round before. A GPU keeps all of them at once. */
static void in_turn(struct suite *s, int programs, int rounds, int n, int warps)
{
	enum { BLOCK = 64 };
	if (!case_begin(s, file, "in turn programs=%d rounds=%d n=%d warps=%d", programs, rounds, n, warps))
		return;
	struct array *count = inout(s, "count", TL_I32, 1), *x = inout(s, "x", TL_I32, (size_t)(programs * n)),
		     *o = out(s, "o", TL_I32, (size_t)(2 * programs * n));
	int64_t *v = calloc((size_t)(programs * n), sizeof *v), *old = calloc((size_t)(programs * n), sizeof *old);
	for (int i = 0; i < programs * n; i++)
		v[i] = random_int(-9, 9), set_int(x, (size_t)i, v[i]);
	set_int(count, 0, 0);
	want_int(count, 0, programs * rounds);
	for (int r = 0; r < rounds; r++) {
		memcpy(old, v, (size_t)(programs * n) * sizeof *v);
		for (int i = 0; i < programs * n; i++) {
			want_int(o, (size_t)(r % 2 * programs * n + i), old[i]);
			v[i] += old[(i + n) % (programs * n)];
		}
	}
	for (int i = 0; i < programs * n; i++)
		want_int(x, (size_t)i, v[i]);
	LAUNCH(s, "in_turn", CONFIG(.grid = {(uint32_t)programs}, .num_warps = warps), ptr(count), ptr(x), ptr(o),
	       tl_int(n), tl_int(rounds), tl_int(BLOCK));
	free(v), free(old);
	case_end(s);
}

void theme_atomic(struct suite *s)
{
	static const tl_dtype swapped[] = {TL_I32, TL_U32, TL_I64, TL_U64, TL_F32,
					   TL_F64, TL_I16, TL_U16, TL_F16, TL_BF16};
	every_operation(s);
	for (int t = 0; t < ADDED; t++)
		for (int axis = 0; axis < 2; axis++) {
			tl_dtype type = types[t];
			repeated(s, type, 16, 32, axis, 4), repeated(s, type, 4, 2, axis, 8),
				repeated(s, type, 1, 64, axis, 1), repeated(s, type, 64, 1, axis, 2);
		}
	for (int k = 0; k < 12; k++)
		broadcast_value(s, 1 << k, 1 + k % 5, 1 << k % 4);
	tickets(s, 1, 0, 1), tickets(s, 100, 0, 4), tickets(s, 333, 0, 8), tickets(s, 40, 0, 2);
	tickets(s, 1, 1, 4), tickets(s, 1000, 128, 4), tickets(s, 64, 64, 8), tickets(s, 2000, 1024, 2),
		tickets(s, 30, 4, 1);
	histogram(s, 5000, 10, 256, 8), histogram(s, 100, 1, 16, 3), histogram(s, 3000, 500, 1024, 1);
	exchange(s, 1, 1, 1), exchange(s, 20, 1, 4), exchange(s, 1, 256, 4), exchange(s, 12, 64, 2);
	for (int t = 0; t < COUNT(swapped); t++) {
		for (int i = 0; i < 10; i++)
			compare(s, swapped[t], 1 << (i * 3 + t) % 10, i % 3, sems[i % 5], scopes[(i + t) % 4],
				1 << (i + t) % 4);
		if (bits_of(swapped[t]) < 32)
			continue;
		add_by_compare(s, swapped[t], 1, 4), add_by_compare(s, swapped[t], 100, 1),
			add_by_compare(s, swapped[t], 37, 8);
	}
	locked(s, 1, 10, 16, 1), locked(s, 64, 100, 128, 4), locked(s, 20, 1000, 1024, 8), locked(s, 100, 1, 1, 2);
	in_turn(s, 1, 2, 10, 4), in_turn(s, 8, 3, 64, 4), in_turn(s, 40, 2, 30, 1), in_turn(s, 100, 4, 7, 2);
	last_one(s, 10, 16, 1), last_one(s, 1000, 64, 4), last_one(s, 5000, 256, 8), last_one(s, 100, 1, 2);
}
