/* Operations that move elements between positions, and so between threads. */
#include "themes.h"

static const char file[] = "shape.tl";
static const tl_dtype types[] = {TL_F32, TL_F16, TL_I8,  TL_I64,    TL_I32, TL_BF16,
				 TL_U8,  TL_I16, TL_F64, TL_F8E5M2, TL_I1,  TL_F8E4M3};
enum { MOVED = 9 }; /* the first of them can also be reduced */

static void move(struct array *to, size_t i, const struct array *from, size_t k)
{
	if (is_float(from->dtype))
		want_number(to, i, value(from, k));
	else
		want_int(to, i, value_int(from, k));
}

/* The type that tl.max gives. */
static tl_dtype max_type(tl_dtype t) { return bits_of(t) >= 32 ? t : is_float(t) ? TL_F32 : TL_I32; }

static void want_max(struct array *o, size_t i, const struct array *x, const size_t *at, int n)
{
	size_t best = at[0];
	for (int k = 1; k < n; k++)
		if (x->f                  ? value(x, at[k]) > value(x, best)
		    : is_signed(x->dtype) ? value_int(x, at[k]) > value_int(x, best)
					  : (uint64_t)value_int(x, at[k]) > (uint64_t)value_int(x, best))
			best = at[k];
	if (x->f)
		want(o, i, value(x, best));
	else
		want_int(o, i, value_int(x, best));
}

/* --- moves --------------------------------------------------------------------------------------------------- */

static void transpose(struct suite *s, tl_dtype t, const char *form, int m, int n, int warps)
{
	if (!case_begin(s, file, "%s %s %dx%d warps=%d", form, tl_dtype_name(t), m, n, warps))
		return;
	struct array *x = in(s, "x", t, (size_t)(m * n)), *o = out(s, "o", t, x->len),
		*most = out(s, "max", max_type(t), (size_t)n);
	shaped(o, 2, (int[]){n, m});
	size_t *at = calloc((size_t)m, sizeof *at);
	for (int j = 0; j < n; j++) {
		for (int i = 0; i < m; i++) {
			at[i] = (size_t)(i * n + j);
			move(o, (size_t)(j * m + i), x, at[i]);
		}
		want_max(most, (size_t)j, x, at, m);
	}
	free(at);
	LAUNCH(s, "transpose", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), ptr(most), tl_str(form),
	       tl_int(m), tl_int(n));
	case_end(s);
}

static void permute3(struct suite *s, tl_dtype t, const int *p, const int *shape, int warps)
{
	if (!case_begin(s, file, "permute %d%d%d %s %dx%dx%d warps=%d", p[0], p[1], p[2], tl_dtype_name(t), shape[0],
			shape[1], shape[2], warps))
		return;
	int a = shape[p[0]], b = shape[p[1]], c = shape[p[2]], stride[] = {shape[1] * shape[2], shape[2], 1};
	struct array *x = in(s, "x", t, (size_t)(a * b * c)), *o = out(s, "o", t, x->len),
		*most = out(s, "max", max_type(t), (size_t)(a * c));
	shaped(o, 3, (int[]){a, b, c});
	size_t *at = calloc((size_t)b, sizeof *at);
	for (int i = 0; i < a; i++)
		for (int k = 0; k < c; k++) {
			for (int j = 0; j < b; j++) {
				at[j] = (size_t)(i * stride[p[0]] + j * stride[p[1]] + k * stride[p[2]]);
				move(o, (size_t)((i * b + j) * c + k), x, at[j]);
			}
			want_max(most, (size_t)(i * c + k), x, at, b);
		}
	free(at);
	LAUNCH(s, "permute3", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), ptr(most), tl_int(p[0]),
	       tl_int(p[1]), tl_int(p[2]), tl_int(shape[0]), tl_int(shape[1]), tl_int(shape[2]));
	case_end(s);
}

static void reshape(struct suite *s, tl_dtype t, const char *form, const int *from_to, int warps)
{
	int m = from_to[0], n = from_to[1], p = from_to[2], q = from_to[3];
	if (!case_begin(s, file, "%s %s %dx%d to %dx%d warps=%d", form, tl_dtype_name(t), m, n, p, q, warps))
		return;
	struct array *x = in(s, "x", t, (size_t)(m * n)), *o = out(s, "o", t, x->len),
		*most = out(s, "max", max_type(t), (size_t)q);
	size_t *at = calloc((size_t)p, sizeof *at);
	for (int j = 0; j < q; j++) {
		for (int i = 0; i < p; i++) {
			at[i] = (size_t)(i * q + j);
			move(o, at[i], x, at[i]);
		}
		want_max(most, (size_t)j, x, at, p);
	}
	free(at);
	LAUNCH(s, "reshape", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), ptr(most), tl_str(form),
	       tl_int(m), tl_int(n), tl_int(p), tl_int(q));
	case_end(s);
}

static void reordered(struct suite *s, const int *from_to, int warps)
{
	if (!case_begin(s, file, "view %dx%d to %dx%d warps=%d", from_to[0], from_to[1], from_to[2], from_to[3], warps))
		return;
	struct array *x = in(s, "x", TL_I32, (size_t)(from_to[0] * from_to[1])), *o = out(s, "sum", TL_I32, 3);
	uint64_t sum = 0;
	for (size_t i = 0; i < x->len; i++)
		sum += (uint64_t)value_int(x, i);
	for (size_t i = 0; i < 3; i++)
		want_int(o, i, (int64_t)sum);
	LAUNCH(s, "reordered", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), tl_int(from_to[0]),
	       tl_int(from_to[1]), tl_int(from_to[2]), tl_int(from_to[3]));
	case_end(s);
}

static void reshape3(struct suite *s, tl_dtype t, int a, int b, int c, int warps)
{
	if (!case_begin(s, file, "reshape3 %s %dx%dx%d warps=%d", tl_dtype_name(t), a, b, c, warps))
		return;
	struct array *x = in(s, "x", t, (size_t)(a * b * c)), *o = out(s, "o", t, x->len),
		     *sum = out(s, "sum", t, (size_t)(b * c));
	fill(x, -9, 9);
	for (size_t i = 0; i < x->len; i++)
		set(x, i, rint(value(x, i))); /* sums of floats are exact */
	for (int k = 0; k < c; k++)
		for (int j = 0; j < b; j++) {
			double total = 0;
			for (int i = 0; i < a; i++) {
				size_t at = (size_t)((i * b + j) * c + k);
				total += value(x, at);
				move(o, (size_t)((k * a + i) * b + j), x, at);
			}
			want(sum, (size_t)(k * b + j), total);
		}
	LAUNCH(s, "reshape3", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), ptr(sum), tl_int(a), tl_int(b),
	       tl_int(c));
	case_end(s);
}

/* --- join and split ------------------------------------------------------------------------------------------ */

static void joined(struct suite *s, tl_dtype t, int n, int warps)
{
	if (!case_begin(s, file, "join %s n=%d warps=%d", tl_dtype_name(t), n, warps))
		return;
	size_t len = (size_t)n;
	struct array *x = in(s, "x", t, len), *y = in(s, "y", t, len), *j = out(s, "join", t, 2 * len),
		*f = out(s, "interleave", t, 2 * len),
		     *lo = out(s, "lo", t, len), *hi = out(s, "hi", t, len);
	for (size_t i = 0; i < 2 * len; i++) {
		move(j, i, i % 2 ? y : x, i / 2);
		move(f, i, i % 2 ? y : x, i / 2);
		move(i < len ? lo : hi, i % len, i % 2 ? y : x, i / 2);
	}
	LAUNCH(s, "joined", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(y), ptr(j), ptr(f), ptr(lo), ptr(hi),
	       tl_int(n));
	case_end(s);
}

static void split_pairs(struct suite *s, tl_dtype t, int m, int n, int warps)
{
	if (!case_begin(s, file, "split %s %dx%dx2 warps=%d", tl_dtype_name(t), m, n, warps))
		return;
	struct array *x = in(s, "x", t, (size_t)(2 * m * n)), *even = out(s, "even", t, (size_t)(m * n)),
		*odd = out(s, "odd", t, (size_t)(m * n));
	fill(x, 0, 60);
	for (size_t i = 0; i < even->len; i++) {
		move(even, i, x, 2 * i);
		if (is_float(t))
			want(odd, i, value(x, 2 * i + 1) - value(x, 2 * i));
		else
			want_int(odd, i, value_int(x, 2 * i + 1) - value_int(x, 2 * i));
	}
	LAUNCH(s, "split_pairs", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(even), ptr(odd), tl_int(m),
	       tl_int(n));
	case_end(s);
}

static void side_by_side(struct suite *s, tl_dtype t, int m, int n, int warps)
{
	if (!case_begin(s, file, "join2d %s %dx%d warps=%d", tl_dtype_name(t), m, n, warps))
		return;
	struct array *x = in(s, "x", t, (size_t)(m * n)), *y = in(s, "y", t, x->len), *o = out(s, "o", t, 2 * x->len);
	shaped(o, 2, (int[]){m, 2 * n});
	for (int i = 0; i < m; i++)
		for (int j = 0; j < 2 * n; j++)
			move(o, (size_t)(i * 2 * n + j), j < n ? x : y, (size_t)(i * n + j % n));
	LAUNCH(s, "join2d", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(y), ptr(o), tl_int(m), tl_int(n));
	case_end(s);
}

static void halves(struct suite *s, tl_dtype t, int m, int n, int warps)
{
	if (!case_begin(s, file, "swap halves %s %dx%d warps=%d", tl_dtype_name(t), m, n, warps))
		return;
	struct array *x = in(s, "x", t, (size_t)(m * n)), *o = out(s, "o", t, x->len);
	for (int i = 0; i < m * n; i++)
		move(o, (size_t)i, x, (size_t)(i / n * n + (i % n ^ n / 2)));
	LAUNCH(s, "flip_rows", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), tl_int(m), tl_int(n));
	case_end(s);
}

/* --- with arithmetic between --------------------------------------------------------------------------------- */

static void expand(struct suite *s, tl_dtype t, int m, int n, int warps)
{
	if (!case_begin(s, file, "expand %s %dx%d warps=%d", tl_dtype_name(t), m, n, warps))
		return;
	struct array *x = in(s, "x", t, (size_t)m), *y = in(s, "y", t, (size_t)n),
		*o = out(s, "o", t, (size_t)(5 * m * n));
	shaped(o, 3, (int[]){5, m, n});
	for (size_t i = 0; i < x->len; i++)
		set(x, i, (double)random_int(-9, 9));
	for (size_t i = 0; i < y->len; i++)
		set(y, i, (double)random_int(-9, 9));
	for (int i = 0; i < m; i++)
		for (int j = 0; j < n; j++) {
			double a = value(x, (size_t)i), b = value(y, (size_t)j),
			       r[] = {a + b, a - b, a * b, a + b, 4 * (a + b)};
			for (int k = 0; k < 5; k++)
				want(o, (size_t)((k * m + i) * n + j), r[k]);
		}
	LAUNCH(s, "expand", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(y), ptr(o), tl_int(m), tl_int(n));
	case_end(s);
}

static void moves(struct suite *s, int m, int n, int warps)
{
	if (!case_begin(s, file, "moves %dx%d warps=%d", m, n, warps))
		return;
	size_t len = (size_t)(m * n);
	struct array *x = in(s, "x", TL_I32, len), *o = out(s, "o", TL_I32, len),
		*row = out(s, "row", TL_I32, (size_t)n);
	shaped(o, 2, (int[]){m, n});
	fill(x, -1000, 1000);
	int64_t *y = calloc(len, sizeof *y), *z = calloc(len, sizeof *z);
	for (int i = 0; i < m; i++) {
		int64_t sum = 0;
		for (int j = 0; j < n; j++)
			sum += value_int(x, (size_t)(i * n + j));
		for (int j = 0; j < n; j++) { /* the scan runs down the column */
			y[i * n + j] = value_int(x, (size_t)(i * n + j)) - sum;
			for (int k = 0; k <= i; k++)
				y[i * n + j] += value_int(x, (size_t)(k * n + j));
		}
	}
	for (int p = 0; p < m; p++)
		for (int q = 0; q < n; q++) {
			int64_t max = INT64_MIN, min = INT64_MAX;
			for (int j = 0; j < n; j++)
				max = y[p * n + j] > max ? y[p * n + j] : max;
			for (int i = 0; i < m; i++)
				min = value_int(x, (size_t)(i * n + q)) < min ? value_int(x, (size_t)(i * n + q)) : min;
			z[p * n + q] = y[q * m + p] + max - min; /* y read as N × M, transposed */
		}
	for (int i = 0; i < m * n; i++)
		want_int(o, (size_t)i, z[i]);
	for (int j = 0; j < n; j++) {
		int64_t sum = 0;
		for (int i = 0; i < m; i++)
			sum += z[i * n + j];
		want_int(row, (size_t)j, sum);
	}
	free(y), free(z);
	LAUNCH(s, "pipeline_of_moves", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), ptr(row), tl_int(m),
	       tl_int(n));
	case_end(s);
}

static void column_major(struct suite *s, tl_dtype t, int m, int n, int warps)
{
	if (!case_begin(s, file, "rows and columns %s %dx%d warps=%d", tl_dtype_name(t), m, n, warps))
		return;
	struct array *x = in(s, "x", t, (size_t)(m * n)), *y = in(s, "y", t, x->len), *o = out(s, "o", t, x->len);
	fill(x, -30, 30), fill(y, -30, 30);
	for (int i = 0; i < m; i++)
		for (int j = 0; j < n; j++)
			want(o, (size_t)(j * m + i), value(x, (size_t)(i * n + j)) + value(y, (size_t)(j * m + i)));
	LAUNCH(s, "column_major", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(y), ptr(o), tl_int(m),
	       tl_int(n));
	case_end(s);
}

static void gathered(struct suite *s, int m, int n, int warps)
{
	if (!case_begin(s, file, "gathered %dx%d warps=%d", m, n, warps))
		return;
	int len = m * n;
	struct array *at = in(s, "at", TL_I32, (size_t)len), *x = in(s, "x", TL_I32, (size_t)len),
		*half = out(s, "half", TL_I32, 2 * (size_t)len),
		     *pair = out(s, "pair", TL_I32, (size_t)(2 * m + n));
	fill(at, 0, len - 1), fill(x, 0, 99);
#define GATHERED(i) value_int(x, (size_t)value_int(at, (size_t)(i)))
	for (int i = 0; i < 2 * len; i++)
		want_int(half, (size_t)i, i % 2 ? value_int(x, (size_t)i / 2) : GATHERED(i / 2));
	for (int k = 0; k < m + n; k++) { /* rows by what was gathered, columns by what was not */
		int64_t most = -1;
		for (int j = 0; j < (k < m ? n : m); j++) {
			int i = k < m ? k * n + j : j * n + k - m;
			int64_t y = value_int(x, (size_t)i),
				key = k < m ? GATHERED(i) * 1000 + y : y * 1000 + GATHERED(i);
			most = key > most ? key : most;
		}
		want_int(pair, (size_t)(k < m ? k : m + k), k < m ? most / 1000 : most);
		if (k < m)
			want_int(pair, (size_t)(m + k), most % 1000);
	}
#undef GATHERED
	LAUNCH(s, "gathered", CONFIG(.grid = {1}, .num_warps = warps), ptr(at), ptr(x), ptr(half), ptr(pair), tl_int(m),
	       tl_int(n));
	case_end(s);
}

static void ranges(struct suite *s, int start, int n, int warps)
{
	if (!case_begin(s, file, "ranges from %d n=%d warps=%d", start, n, warps))
		return;
	struct array *o = out(s, "o", TL_I32, (size_t)(3 * n + 4));
	int64_t sum[4] = {0}, total = 0;
	for (int i = 0; i < n; i++) {
		int v = start + i;
		want_int(o, (size_t)i, wrap(TL_I32, (int64_t)v * v));
		want_int(o, (size_t)(n + i % 4 * (n / 4) + i / 4), v + i % 4);
		sum[i % 4] += v;
	}
	for (int i = 0; i < 4; i++)
		want_int(o, (size_t)(2 * n + i), sum[i]);
	for (int i = 0; i < n; i++) { /* element i of the transposed */
		total += start + i % (n / 4) * 4 + i / (n / 4);
		want_int(o, (size_t)(2 * n + 4 + i), total);
	}
	LAUNCH(s, "ranges", CONFIG(.grid = {1}, .num_warps = warps), ptr(o), tl_int(start), tl_int(n));
	case_end(s);
}

static const int shapes[][3] = {{1, 1, 1},   {1, 32, 1},  {32, 1, 4},   {2, 2, 4},     {8, 16, 1},
				{16, 8, 8},  {32, 32, 4}, {64, 64, 8},  {128, 16, 4},  {16, 128, 2},
				{4, 512, 4}, {512, 4, 8}, {64, 128, 4}, {128, 128, 16}};

static void two_axes(struct suite *s)
{
	static const char *const forms[] = {"trans", "T", "method", "permute"};
	static const char *const reshapes[] = {"reshape", "method", "view of trans", "ravel"};
	static const int from_to[][4] = {{1, 1, 1, 1},    {1, 64, 64, 1},    {64, 1, 1, 64},   {16, 32, 32, 16},
					 {32, 16, 8, 64}, {64, 64, 16, 256}, {128, 8, 2, 512}, {4, 256, 256, 4},
					 {8, 8, 4, 16},   {2, 1024, 1024, 2}};
	int k = 0;
	for (int i = 0; i < COUNT(shapes); i++)
		for (int j = 0; j < 4; j++, k++)
			transpose(s, types[k % MOVED], forms[j], shapes[i][0], shapes[i][1], shapes[i][2]);
	for (int t = 0; t < MOVED; t++)
		transpose(s, types[t], "trans", 64, 32, 4), transpose(s, types[t], "trans", 16, 256, 2);
	for (int i = 0; i < COUNT(from_to); i++)
		for (int j = 0; j < 4; j++, k++)
			reshape(s, types[k % MOVED], reshapes[j], from_to[i], 1 << k % 5);
	for (int i = 0; i < COUNT(from_to); i++)
		reordered(s, from_to[i], 1 << i % 4);
}

static void three_axes(struct suite *s)
{
	static const int perms[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
	static const int three[][4] = {{2, 2, 2, 1},   {4, 8, 16, 4}, {16, 4, 8, 2}, {1, 32, 16, 4},
				       {32, 16, 1, 8}, {64, 2, 8, 4}, {8, 32, 32, 8}};
	int k = 0;
	for (int i = 0; i < COUNT(three); i++) {
		for (int p = 0; p < 6; p++, k++)
			permute3(s, types[(k + k / 9) % MOVED], perms[p], three[i], three[i][3]);
		reshape3(s, types[i % 5], three[i][0], three[i][1], three[i][2], three[i][3]);
	}
}

static void join_numbers(struct suite *s, int n, bool beside, int warps)
{
	if (!case_begin(s, file, "join of numbers n=%d%s warps=%d", n, beside ? " beside" : "", warps))
		return;
	struct array *o = out(s, "o", TL_I32, (size_t)(2 * n));
	for (int i = 0; i < n; i++) {
		want(o, (size_t)(beside ? 2 * i : i), i);
		want(o, (size_t)(beside ? 2 * i + 1 : n + i), 3 * i + 7);
	}
	LAUNCH(s, "join_numbers", CONFIG(.grid = {1}, .num_warps = warps), ptr(o), tl_int(beside ? 2 : 1),
	       tl_int(beside ? 1 : n), tl_int(n));
	case_end(s);
}

/* Dimensions of 2, or 1 and 2, and a last one. */
static void deep(struct suite *s, tl_dtype t, int rank, int last, int by, int axis, int warps)
{
	if (!case_begin(s, file, "%s of rank %d, last=%d rotated by %d, sums along %d warps=%d", tl_dtype_name(t), rank,
			last, by, axis, warps))
		return;
	int shape[12], stride[12], n = last, inner = 1;
	shape[rank - 1] = last, stride[rank - 1] = 1;
	for (int d = rank - 2; d >= 0; d--) {
		shape[d] = rank > 10 ? 1 + d % 2 : 2;
		stride[d] = n;
		n *= shape[d];
	}
	struct array *x = in(s, "x", t, (size_t)n), *o = out(s, "o", t, (size_t)n), *all = out(s, "all", t, 1);
	fill(x, -50, 50);
	for (int d = axis + 1; d < rank; d++)
		inner *= shape[(d + by) % rank];
	int length = shape[(axis + by) % rank];
	double total = 0, *y = malloc((size_t)n * sizeof *y);
	for (int i = 0; i < n; i++) { /* y: the rotated tile */
		int from = 0;
		for (int d = rank - 1, rest = i; d >= 0; rest /= shape[(d-- + by) % rank])
			from += rest % shape[(d + by) % rank] * stride[(d + by) % rank];
		y[i] = value(x, (size_t)from);
	}
	for (int i = 0; i < n; i++) {
		double sum = y[i];
		for (int k = 0; k < length; k++)
			sum += y[i - i / inner % length * inner + k * inner];
		want(o, (size_t)i, sum);
		total += sum;
	}
	want(all, 0, total);
	free(y);
	tolerance(o, 1e-3, 0), tolerance(all, 0.1, 0);
	LAUNCH(s, "deep", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), ptr(all), tl_int(n), tl_int(rank),
	       tl_int(last), tl_int(by), tl_int(axis));
	case_end(s);
}

void theme_shape(struct suite *s)
{
	two_axes(s);
	three_axes(s);
	for (int t = 0; t < COUNT(types); t++) {
		joined(s, types[t], 128, 4), joined(s, types[t], 1024, 1 << t % 4), joined(s, types[t], 1 << t % 6, 2);
		side_by_side(s, types[t], 16, 32, 4), side_by_side(s, types[t], 64 >> t % 4, 8, 1 << t % 4);
		halves(s, types[t], 32, 16, 4), halves(s, types[t], 4, 256, 2);
	}
	for (int t = 0; t < 5; t++) {
		split_pairs(s, types[t], 16, 32, 4), split_pairs(s, types[t], 1, 8, 2),
			split_pairs(s, types[t], 128, 4, 8);
		expand(s, types[t], 16, 32, 4), expand(s, types[t], 64, 8, 2), expand(s, types[t], 1, 16, 1),
			expand(s, types[t], 32, 1, 8);
		column_major(s, types[t], 64, 64, 4), column_major(s, types[t], 16, 128, 2),
			column_major(s, types[t], 128, 8, 8);
		column_major(s, types[t], 4, 4, 4);
	}
	for (int i = 0; i < COUNT(shapes); i++)
		moves(s, shapes[i][0], shapes[i][1], shapes[i][2]),
			gathered(s, shapes[i][0], shapes[i][1], shapes[i][2]);
	ranges(s, 0, 64, 4), ranges(s, -100, 256, 2), ranges(s, 1000, 4, 1), ranges(s, 7, 1024, 8);
	for (int i = 0; i < 12; i++)
		join_numbers(s, 1 << i, i % 2, 1 << i % 4), join_numbers(s, 1 << i, (i + 1) % 2, 4);
	for (int rank = 5; rank <= 12; rank++)
		for (int i = 0; i < 4; i++)
			deep(s, i % 2 ? TL_I32 : TL_F32, rank, 1 << (rank + 3 * i) % 5, i * 3 % rank,
			     (rank + 2 * i) % rank, 1 << (rank + i) % 4);
}
