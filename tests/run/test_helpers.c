/* triton_helpers of TorchInductor against plain C. */
#include "themes.h"

static const char file[] = "helpers.tl";

static int64_t floor_quotient(int64_t a, int64_t b)
{
	return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static void inductor(struct suite *s)
{
	enum { R = 4, C = 16, S = R * C };
	if (!case_begin(s, file, "inductor"))
		return;
	struct array *x = in(s, "x", TL_I32, S), *y = in(s, "y", TL_I32, S), *o = out(s, "o", TL_I32, 9 * S + 6 * R);
	for (size_t r = 0; r < R; r++) {
		int64_t less = 0, more = 0, product = 1, any = 0, less_at = 0, more_at = 0;
		for (size_t i = r * C; i < (r + 1) * C; i++) {
			set_int(x, i, random_int(-50, 50)), set_int(y, i, random_int(1, 9) * (i % 2 ? 1 : -1));
			int64_t a = value_int(x, i), b = value_int(y, i), q = floor_quotient(a, b), at = (int64_t)i;
			const int64_t each[] = {a, q, a - q * b, a < b ? a : b, a > b ? a : b,
						1000 * (a <= b ? a : b) + (a <= b ? at : at + 1),
						1000 * (a >= b ? a : b) + (a >= b ? at : at + 1), a, 1};
			for (size_t k = 0; k < COUNT(each); k++)
				want_int(o, k * S + i, each[k]);
			if (i == r * C || a < less)
				less = a, less_at = at;
			if (i == r * C || a > more)
				more = a, more_at = at;
			product = wrap(TL_I32, product * (a % 3));
			any |= a > 45;
		}
		const int64_t whole[] = {less, more, 1000 * less + less_at, 1000 * more + more_at, product, any};
		for (size_t k = 0; k < COUNT(whole); k++)
			want_int(o, 9 * S + k * R + r, whole[k]);
	}
	LAUNCH(s, "inductor", CONFIG(.grid = {1}), ptr(x), ptr(y), ptr(o), tl_int(R), tl_int(C));
	case_end(s);
}

static void welford(struct suite *s)
{
	enum { R = 4, C = 32 };
	if (!case_begin(s, file, "welford"))
		return;
	struct array *x = in(s, "x", TL_F32, 2 * R * C), *o = out(s, "o", TL_F32, 7 * R);
	tolerance(o, 1e-5, 1e-5);
	for (size_t r = 0; r < R; r++) {
		double sum = 0, squares = 0, most = -INFINITY, total = 0, part = 0, top = 0;
		for (size_t i = r * 2 * C; i < (r + 1) * 2 * C; i++)
			sum += value(x, i), most = fmax(most, value(x, i));
		for (size_t i = r * 2 * C; i < (r + 1) * 2 * C; i++) {
			squares += pow(value(x, i) - sum / (2 * C), 2);
			total += exp(value(x, i) - most);
		}
		for (size_t i = r * 2 * C; i < r * 2 * C + C; i++)
			top = fmax(top, value(x, i));
		for (size_t i = r * 2 * C; i < r * 2 * C + C; i++)
			part += value(x, i) > 0 ? exp(value(x, i) - top) : 0;
		want(o, r, sum / (2 * C));
		want(o, R + r, squares);
		want(o, 2 * R + r, sum / (2 * C) + 4 * C);
		want(o, 3 * R + r, total);
		want(o, 4 * R + r, exp(most));
		want(o, 5 * R + r, part * (1 + exp(-1)));
		want(o, 6 * R + r, total);
	}
	LAUNCH(s, "welford", CONFIG(.grid = {1}), ptr(x), ptr(o), tl_int(R), tl_int(C));
	case_end(s);
}

static void powers(struct suite *s, tl_dtype t)
{
	enum { N = 32 };
	if (!case_begin(s, file, "powers %s", tl_dtype_name(t)))
		return;
	struct array *x = in(s, "x", t, N), *n = in(s, "n", TL_I32, N), *o = out(s, "o", t, N);
	for (size_t i = 0; i < N; i++) {
		int64_t power = 1;
		set_int(x, i, random_int(-9, 9)), set_int(n, i, random_int(0, 40));
		for (int64_t k = 0; k < value_int(n, i); k++)
			power = wrap(t, (int64_t)((uint64_t)power * (uint64_t)value_int(x, i)));
		want_int(o, i, power);
	}
	LAUNCH(s, "powers", CONFIG(.grid = {1}), ptr(x), ptr(n), ptr(o), tl_int(N));
	case_end(s);
}

/* The number of type t after the finite number x in the direction of y. */
static double next_after(tl_dtype t, double x, double y)
{
	double next = x;
	if (t == TL_F64)
		return nextafter(x, y);
	if (t == TL_F32)
		return nextafterf((float)x, (float)y);
	if (x == y)
		return y;
	uint64_t bits = encode(t, x), sign = (uint64_t)1 << 15;
	bits = x == 0 ? (y < 0 ? sign : 0) | 1 : (x < y) == (x > 0) ? bits + 1 : bits - 1;
	next = decode(t, bits);
	return next;
}

static void parts(struct suite *s, tl_dtype t)
{
	enum { N = 64 };
	static const double special[] = {0, -0.0, INFINITY, -INFINITY, NAN, 1, -0.5, 65504, 1e-7, -6e-8};
	if (!case_begin(s, file, "parts %s", tl_dtype_name(t)))
		return;
	struct array *x = in(s, "x", t, N), *y = in(s, "y", t, N), *m = out(s, "m", t, N), *n = out(s, "n", TL_I32, N),
		     *next = out(s, "next", t, N);
	for (size_t i = 0; i < N; i++) {
		int power = 0, least = t == TL_F64 ? -1074 : t == TL_F16 ? -24 : -149;
		if (i < COUNT(special))
			set(x, i, special[i]);
		else if (i % 4 == 0) /* small and subnormal numbers */
			set(x, i, ldexp(uniform(-1, 1), least + (int)random_int(1, 12)));
		if (i % 8 == 5)
			set(y, i, value(x, i));
		double a = value(x, i), part = frexp(a, &power);
		want_number(m, i, part);
		want_int(n, i, isfinite(a) ? power : 0);
		want_number(next, i, isnan(a) ? a : next_after(t, a, value(y, i)));
	}
	LAUNCH(s, "parts", CONFIG(.grid = {1}), ptr(x), ptr(y), ptr(m), ptr(n), ptr(next), tl_int(N));
	case_end(s);
}

static void extrema(struct suite *s)
{
	enum { R = 4, C = 16 };
	if (!case_begin(s, file, "extrema"))
		return;
	struct array *x = in(s, "x", TL_F32, R * C), *o = out(s, "o", TL_F32, 7 * R);
	tolerance(o, 1e-6, 1e-6);
	fill_whole(x, 5);
	set(x, 5, NAN), set(x, 9, NAN), set(x, 2 * C + 3, NAN);
	for (size_t r = 0; r < R; r++) {
		double less = INFINITY, more = -INFINITY, product = 1;
		size_t first = 0, last = 0, unknown = 0;
		for (size_t i = r * C; i < (r + 1) * C; i++) {
			double v = value(x, i);
			unknown = isnan(v) && !unknown ? i : unknown;
			product *= isnan(v) ? 1 : 1 + v / C;
			first = v < less ? i : first, less = fmin(less, v);
			last = v > more ? i : last, more = fmax(more, v);
		}
		want_number(o, r, unknown ? NAN : less);
		want_number(o, R + r, unknown ? NAN : more);
		want(o, 2 * R + r, more);
		want(o, 3 * R + r, (double)(unknown ? unknown : first));
		want(o, 4 * R + r, (double)(unknown ? unknown : last));
		want_number(o, 5 * R + r, unknown ? NAN : fabs(more));
		want(o, 6 * R + r, product);
	}
	LAUNCH(s, "extrema", CONFIG(.grid = {1}), ptr(x), ptr(o), tl_int(R), tl_int(C));
	case_end(s);
}

static void chosen(struct suite *s, tl_dtype t, int columns)
{
	enum { R = 4 };
	if (!case_begin(s, file, "chosen %s of %d", tl_dtype_name(t), columns))
		return;
	struct array *x = in(s, "x", t, (size_t)(R * columns)), *o = out(s, "o", t, R);
	int k = (int)random_int(0, columns - 1);
	for (size_t r = 0; r < R; r++)
		if (is_float(t))
			want_number(o, r, value(x, r * (size_t)columns + (size_t)k));
		else
			want_int(o, r, value_int(x, r * (size_t)columns + (size_t)k));
	LAUNCH(s, "chosen", CONFIG(.grid = {1}), ptr(x), tl_int(k), ptr(o), tl_int(R), tl_int(columns));
	case_end(s);
}

static void buckets(struct suite *s, int n, int step, bool right, bool with_sorter, bool known)
{
	enum { N = 32 };
	if (!case_begin(s, file, "buckets of %d at %d%s%s%s", n, step, right ? " right" : "",
			with_sorter ? " sorter" : "", known ? " known" : ""))
		return;
	size_t row = (size_t)(n * step);
	struct array *x = in(s, "x", TL_F32, N), *b = in(s, "b", TL_F32, N * row), *at = in(s, "s", TL_I64, N * row),
		     *o = out(s, "o", with_sorter ? TL_I32 : TL_I64, N);
	fill_whole(x, 2 * n + 1);
	set(x, 3, NAN), set(x, 7, INFINITY), set(x, 8, -INFINITY);
	for (size_t i = 0; i < N; i++) {
		int64_t below = 0, turn = with_sorter ? random_int(0, n - 1) : 0;
		for (int k = 0; k < n; k++) { /* ascending from place `turn` on */
			size_t place = (size_t)((k + turn) % n);
			double bound = 2 * k + (double)(i % 2);
			set(b, i * row + place * (size_t)step, bound);
			set_int(at, i * row + (size_t)(k * step), (int64_t)place);
			below += isnan(value(x, i)) || (right ? bound <= value(x, i) : bound < value(x, i));
		}
		want_int(o, i, below);
	}
	LAUNCH(s, "buckets", CONFIG(.grid = {1}), ptr(x), ptr(b), with_sorter ? ptr(at) : tl_none(), ptr(o), tl_int(n),
	       tl_int(step), tl_int(N), tl_int(right), tl_int(known ? n : 0));
	case_end(s);
}

/* True if element a of x comes before element b. */
static bool sorts_before(const struct array *x, size_t a, size_t b, bool down)
{
	double v = value(x, a), w = value(x, b);
	if (isnan(v) || isnan(w))
		return down ? isnan(v) && !isnan(w) : isnan(w) && !isnan(v);
	return down ? v > w : v < w;
}

static void sorted_rows(struct suite *s, tl_dtype t, int columns, int n, bool stable, bool down)
{
	enum { R = 2, MOST = 64 };
	if (!case_begin(s, file, "sorted %d of %d %s%s%s", n, columns, tl_dtype_name(t), stable ? " stable" : "",
			down ? " down" : ""))
		return;
	size_t c = (size_t)columns;
	struct array *x = in(s, "x", t, R * c), *o = out(s, "o", t, R * c), *place = out(s, "place", TL_I32, R * c);
	for (size_t i = 0; i < R * c; i++) /* distinct numbers, or many equal ones */
		set(x, i, stable ? (double)random_int(-3, 3) : (double)(i * 37 % (R * c)) - 20);
	for (size_t i = 2; i < R * c && is_float(t); i += stable ? 5 : c)
		set(x, i, NAN);
	for (size_t r = 0; r < R; r++) {
		size_t order[MOST];
		for (size_t i = 0; i < c; i++) {
			size_t k = i;
			for (; i < (size_t)n && k > 0 && sorts_before(x, r * c + i, r * c + order[k - 1], down); k--)
				order[k] = order[k - 1];
			order[k] = i;
		}
		for (size_t i = 0; i < (size_t)n; i++) { /* the others are not stored */
			want_number(o, r * c + i, value(x, r * c + order[i]));
			want_int(place, r * c + i, (int64_t)order[i]);
		}
	}
	LAUNCH(s, "sorted_rows", CONFIG(.grid = {1}), ptr(x), ptr(o), ptr(place), tl_int(n), tl_int(R), tl_int(columns),
	       tl_int(stable), tl_int(down));
	case_end(s);
}

static void all_programs(struct suite *s, int programs)
{
	enum { N = 64 };
	if (!case_begin(s, file, "all %d programs", programs))
		return;
	size_t n = (size_t)programs;
	struct array *sem = inout(s, "sem", TL_U32, 1), *narrow = inout(s, "narrow", TL_U64, n),
		     *wide = inout(s, "wide", TL_U64, 3 * n), *x = in(s, "x", TL_I32, n * N),
		     *o = out(s, "o", TL_I64, 2 * n);
	int64_t before = 0, sums[8];
	fill(x, -1000, 1000);
	set_int(sem, 0, 0);
	want_int(sem, 0, (int64_t)1 << 31);
	for (size_t p = 0; p < n; p++) {
		int64_t total = 0;
		for (size_t i = 0; i < N; i++)
			total += value_int(x, p * N + i);
		sums[p] = before + before * (1 << 20);
		want_int(o, p, sums[p]);
		set_int(narrow, p, 0);
		want_int(narrow, p, (int64_t)((uint64_t)(before + total) << 32 | 2));
		for (size_t k = 0; k < 3; k++)
			set_int(wide, 3 * p + k, 0);
		want_int(wide, 3 * p, 2);
		want_int(wide, 3 * p + 1, p ? total * (1 << 20) : 0);
		want_int(wide, 3 * p + 2, (before + total) * (1 << 20));
		before += total;
	}
	for (size_t p = 0; p < n; p++)
		want_int(o, n + p, sums[(p + 1) % n]);
	LAUNCH(s, "all_programs", CONFIG(.grid = {(unsigned)programs}), ptr(sem), ptr(narrow), ptr(wide), ptr(x),
	       ptr(o), tl_int(N));
	case_end(s);
}

static void drawn(struct suite *s)
{
	enum { N = 64 };
	if (!case_begin(s, file, "drawn"))
		return;
	struct array *o = out(s, "o", TL_I32, 3 * N);
	for (size_t i = 0; i < 3 * N; i++)
		want_int(o, i, 1);
	LAUNCH(s, "drawn", CONFIG(.grid = {1}), ptr(o), tl_int(17), tl_int(N));
	case_end(s);
}

static void words_of(struct suite *s)
{
	enum { N = 16 };
	if (!case_begin(s, file, "words_of"))
		return;
	struct array *x = in(s, "x", TL_F32, N), *small = in(s, "small", TL_U8, N), *o = out(s, "o", TL_F32, 5 * N);
	for (size_t i = 0; i < N; i++) {
		set_int(small, i, i == 3 ? 0x7f : (int64_t)(i * 17 % 256));
		want(o, i, value(x, i));
		want(o, N + i, (double)i);
		want_number(o, 2 * N + i, decode(TL_F8E4M3, (uint64_t)value_int(small, i)));
		want(o, 3 * N + i, value(x, i));
		want(o, 4 * N + i, i < 3 ? 2 * value(x, i) : value(x, i));
	}
	LAUNCH(s, "words_of", CONFIG(.grid = {1}), ptr(x), ptr(small), ptr(o), tl_int(N));
	case_end(s);
}

void theme_helpers(struct suite *s)
{
	static const tl_dtype floats[] = {TL_F16, TL_BF16, TL_F32, TL_F64}, ints[] = {TL_I8, TL_I16, TL_I32, TL_I64};
	inductor(s);
	welford(s);
	extrema(s);
	for (int k = 0; k < 4; k++) {
		powers(s, ints[k]);
		parts(s, floats[k]);
		for (int columns = 8; columns <= 512; columns *= 8)
			chosen(s, floats[k], columns), chosen(s, ints[k], columns);
	}
	for (int k = 0; k < 16; k++) {
		buckets(s, k % 2 ? 100 : 7, 1 + k / 8, k & 2, k & 4, k & 8);
		int columns = k % 2 ? 16 : 64;
		sorted_rows(s, k & 4 ? ints[k / 4] : floats[k / 4], columns, k & 8 ? 13 : columns, k & 1, k & 2);
	}
	all_programs(s, 1);
	all_programs(s, 4);
	drawn(s);
	words_of(s);
}
