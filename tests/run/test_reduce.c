/* Reductions. The data are small integers wherever a sum of floats is compared: every order of summation gives the
 * same. */
#include "themes.h"

static const char file[] = "reduce.tl";
static const tl_dtype all_types[] = {TL_I32, TL_F32, TL_F16, TL_I64, TL_BF16, TL_I8,
				     TL_F64, TL_U8,  TL_I16, TL_U32, TL_U16,  TL_U64};
static const tl_dtype whole_types[] = {TL_I32, TL_I64, TL_I8, TL_U8, TL_I16, TL_U32, TL_U16, TL_U64};
enum { NONE = 99 }; /* no axis: all of them */

void tile_walk(struct tile_walk *w, int rank, const int *shape, int axis)
{
	int n = 1;
	*w = (struct tile_walk){.outer = 1, .inner = 1};
	for (int d = 0; d < rank; d++)
		n *= shape[d];
	if (axis == NONE) {
		w->length = n;
		return;
	}
	axis += axis < 0 ? rank : 0;
	for (int d = 0; d < rank; d++)
		*(d < axis ? &w->outer : d > axis ? &w->inner : &w->length) *= d == axis ? 1 : shape[d];
	w->length = shape[axis];
}

const char *tile_name(char *text, int rank, const int *shape, int axis)
{
	int n = 0;
	for (int d = 0; d < rank; d++)
		n += sprintf(text + n, d ? "x%d" : "%d", shape[d]);
	if (axis == NONE)
		sprintf(text + n, " all");
	else
		sprintf(text + n, " axis=%d", axis);
	return text;
}

/* --- one value ----------------------------------------------------------------------------------------------- */

static tl_dtype result_type(const char *op, tl_dtype t)
{
	bool small = bits_of(t) < 32;
	if (!strncmp(op, "arg", 3))
		return TL_I32;
	if (!strncmp(op, "sum", 3))
		return is_float(t) || !small ? t : is_signed(t) ? TL_I32 : TL_U32;
	if (!strcmp(op, "max") || !strcmp(op, "min"))
		return !small ? t : is_float(t) ? TL_F32 : TL_I32;
	return t;
}

static bool less_int(tl_dtype t, int64_t a, int64_t b) { return is_signed(t) ? a < b : (uint64_t)a < (uint64_t)b; }

/* Of n elements, `stride` apart. */
static int64_t reduce_ints(const char *op, const struct array *x, size_t at, size_t n, size_t stride)
{
	bool max = strstr(op, "max"), arg = !strncmp(op, "arg", 3);
	uint64_t r = (uint64_t)value_int(x, at), best = 0;
	for (size_t i = 1; i < n; i++) {
		int64_t v = value_int(x, at + i * stride);
		if (!strncmp(op, "sum", 3))
			r += (uint64_t)v;
		else if (!strcmp(op, "xor_sum"))
			r ^= (uint64_t)v;
		else if (!strcmp(op, "reduce_or"))
			r |= (uint64_t)v;
		else if (!strcmp(op, "product"))
			r *= (uint64_t)v;
		else if (less_int(x->dtype, max ? (int64_t)r : v, max ? v : (int64_t)r)) {
			r = (uint64_t)v;
			best = i;
		}
	}
	return (int64_t)(arg ? best : r);
}

static double reduce_floats(const char *op, const struct array *x, size_t at, size_t n, size_t stride)
{
	bool max = strstr(op, "max"), arg = !strncmp(op, "arg", 3);
	double r = value(x, at);
	size_t best = 0;
	for (size_t i = 1; i < n; i++) {
		double v = value(x, at + i * stride);
		if (!strncmp(op, "sum", 3))
			r += v;
		else if (!strcmp(op, "product"))
			r *= v;
		else if (isnan(r) || (max ? v > r : v < r)) { /* max ignores NaN */
			r = v;
			best = i;
		}
	}
	return arg ? (double)best : r;
}

/* Integers: few values for argmax, so that there are ties. Floats: integers whose sums stay exact in fp16 and bf16. */
static void reduce_data(struct array *x, const char *op)
{
	if (!strncmp(op, "arg", 3))
		fill(x, is_float(x->dtype) || is_signed(x->dtype) ? -2 : 0, 2);
	for (size_t i = 0; is_float(x->dtype) && i < x->len; i++) {
		double v = strncmp(op, "sum", 3) ? uniform(-4, 4)
						 : (double)random_int(-1, 1) * (x->dtype == TL_BF16 ? 1 : 2);
		if (!strncmp(op, "arg", 3))
			v = (double)random_int(-2, 2);
		else if (!strcmp(op, "product"))
			v = i % 7 ? (random_bits() & 1 ? 1 : -1) : 2; /* powers of two, not too many */
		else if ((!strcmp(op, "max") || !strcmp(op, "min")) && random_bits() % 5 == 0)
			v = NAN;
		set(x, i, v);
	}
}

/* What the reference has, with the axis kept (and broadcast) or not. */
static void want_reduced(struct array *o, const struct array *x, const char *op, const struct tile_walk *w, bool keep)
{
	for (int a = 0; a < w->outer; a++)
		for (int c = 0; c < w->inner; c++) {
			size_t at = (size_t)(a * w->length * w->inner + c), n = (size_t)w->length,
			       stride = (size_t)w->inner;
			for (int b = 0; b < (keep ? w->length : 1); b++) {
				size_t to = keep ? at + (size_t)(b * w->inner) : (size_t)(a * w->inner + c);
				if (x->f)
					want(o, to, reduce_floats(op, x, at, n, stride));
				else
					want_int(o, to, reduce_ints(op, x, at, n, stride));
			}
		}
}

static void reduce(struct suite *s, const char *op, tl_dtype t, int rank, const int *shape, int axis, bool keep,
		   int warps)
{
	struct tile_walk w;
	char tile[80];
	tile_walk(&w, rank, shape, axis);
	if (!case_begin(s, file, "%s %s %s%s warps=%d", op, tl_dtype_name(t), tile_name(tile, rank, shape, axis),
			keep ? " keep_dims" : "",
			warps))
		return;
	int n = w.outer * w.inner;
	struct array *x = in(s, "x", t, (size_t)(n * w.length)),
		*o = out(s, "o", result_type(op, t), (size_t)(keep ? n * w.length : n));
	reduce_data(x, op);
	want_reduced(o, x, op, &w, keep);
	int full[3] = {1, 1, 1};
	memcpy(full + 3 - rank, shape, (size_t)rank * sizeof *shape);
	LAUNCH(s, "reduce", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), tl_str(op), tl_int(full[0]),
	       tl_int(full[1]), tl_int(full[2]), tl_int(rank), axis == NONE ? tl_none() : tl_int(axis), tl_bool(keep));
	case_end(s);
}

static void one_axis(struct suite *s)
{
	static const char *const ops[] = {"sum", "max", "min", "argmax", "argmin", "product", "sum_method"};
	int k = 0;
	for (int n = 1; n <= 8192; n *= 2)
		for (int i = 0; i < COUNT(ops); i++, k++)
			reduce(s, ops[i], all_types[k % COUNT(all_types)], 1, &n,
			       i % 2 || !strncmp(ops[i], "arg", 3) ? 0 : NONE, n < 64 && k % 3 == 0, 1 << k % 4);
	for (int n = 1; n <= 4096; n *= 4)
		for (int i = 0; i < 2; i++, k++)
			reduce(s, i ? "xor_sum" : "reduce_or", whole_types[k % COUNT(whole_types)], 1, &n, 0, false,
			       1 << k % 6);
	for (int t = 0; t < COUNT(all_types); t++) /* every type, enough elements for all stages of the ladder */
		for (int i = 0; i < 6; i++)
			reduce(s, ops[i], all_types[t], 1, (int[]){2048}, 0, false, 8);
	reduce(s, "sum", TL_I1, 1, (int[]){512}, 0, false, 4);
	reduce(s, "max", TL_I1, 1, (int[]){64}, 0, false, 4);
	reduce(s, "reduce_or", TL_I1, 1, (int[]){128}, 0, false, 4);
	reduce(s, "xor_sum", TL_I1, 1, (int[]){1024}, 0, false, 4);
}

/* More than the registers of a block hold: on sm_90 by the blocks of a cluster. */
static void wide(struct suite *s)
{
	static const char *const ops[] = {"sum", "max", "argmax", "min", "argmin"};
	static const tl_dtype types[] = {TL_F32, TL_F16, TL_I32, TL_F64, TL_I8, TL_I64};
	int k = 0;
	for (int t = 0; t < COUNT(types); t++)
		for (int i = 0; i < COUNT(ops); i++, k++)
			reduce(s, ops[i], types[t], 1, (int[]){t % 2 ? 131072 : 65536 << k % 2}, 0, false,
			       1 << (2 + k % 3));
}

static void more_axes(struct suite *s)
{
	static const char *const ops[] = {"sum", "max", "argmin", "min", "argmax", "product"};
	static const int two[][2] = {{1, 1},   {1, 64},    {64, 1},  {2, 2},   {16, 16},  {32, 64},
				     {64, 32}, {128, 128}, {4, 512}, {512, 4}, {8, 1024}, {2048, 2}},
			 three[][3] = {{1, 1, 1},   {2, 2, 2},   {4, 8, 16}, {16, 8, 4},  {8, 32, 8},
				       {2, 64, 32}, {32, 1, 32}, {64, 4, 1}, {1, 16, 64}, {16, 16, 16}};
	int k = 0;
	for (int i = 0; i < COUNT(two); i++)
		for (int axis = -2; axis <= 2; axis++)
			for (int keep = 0; keep < 2; keep++, k++)
				reduce(s, axis == 2 ? ops[k % 2] : ops[(k + i) % COUNT(ops)],
				       all_types[(k + k / 12) % COUNT(all_types)], 2, two[i], axis == 2 ? NONE : axis,
				       keep, 1 << k % 5);
	for (int i = 0; i < COUNT(three); i++)
		for (int axis = 0; axis <= 3; axis++)
			for (int keep = 0; keep < 2; keep++, k++)
				reduce(s, axis == 3 ? ops[k % 2] : ops[(k + i) % COUNT(ops)],
				       all_types[(k + k / 12) % COUNT(all_types)], 3, three[i], axis == 3 ? NONE : axis,
				       keep, 1 << k % 4);
}

static void strided(struct suite *s, const char *op, tl_dtype t, int b, int c, int axis, int warps)
{
	struct tile_walk w;
	char tile[80];
	int shape[] = {b, c};
	tile_walk(&w, 2, shape, axis);
	if (!case_begin(s, file, "column-major %s %s %s warps=%d", op, tl_dtype_name(t),
			tile_name(tile, 2, shape, axis), warps))
		return;
	struct array *x = in(s, "x", t, (size_t)(b * c)),
		*o = out(s, "o", result_type(op, t), (size_t)(w.outer * w.inner));
	reduce_data(x, op);
	struct array *turned = in(s, "turned", t, (size_t)(b * c)); /* what the kernel reads */
	for (int i = 0; i < b; i++)
		for (int j = 0; j < c; j++)
			if (x->f)
				set(turned, (size_t)(j * b + i), value(x, (size_t)(i * c + j)));
			else
				set_int(turned, (size_t)(j * b + i), value_int(x, (size_t)(i * c + j)));
	want_reduced(o, x, op, &w, false);
	LAUNCH(s, "reduce_strided", CONFIG(.grid = {1}, .num_warps = warps), ptr(turned), ptr(o), tl_int(1), tl_int(b),
	       tl_str(op), tl_int(b), tl_int(c), tl_int(axis), tl_bool(false));
	case_end(s);
}

static void sum_as(struct suite *s, tl_dtype t, tl_dtype as)
{
	if (!case_begin(s, file, "sum of %s as %s", tl_dtype_name(t), tl_dtype_name(as)))
		return;
	struct array *x = in(s, "x", t, 1024), *o = out(s, "o", as, 1);
	if (!is_float(t) && is_float(as))
		fill(x, -1000, 1000);
	reduce_data(x, "sum");
	if (x->f)
		want(o, 0, reduce_floats("sum", x, 0, 1024, 1));
	else
		want_int(o, 0, reduce_ints("sum", x, 0, 1024, 1));
	LAUNCH(s, "reduce_sum_as", CONFIG(.grid = {1}), ptr(x), ptr(o), tl_int(1024), tl_type(as));
	case_end(s);
}

/* --- several values ------------------------------------------------------------------------------------------ */

static void extremum(struct suite *s, tl_dtype t, bool max, bool left, int b, int c, int warps)
{
	if (!case_begin(s, file, "%s with index %s %dx%d ties %s warps=%d", max ? "max" : "min", tl_dtype_name(t), b, c,
			left ? "left" : "any", warps))
		return;
	struct array *x = in(s, "x", t, (size_t)(b * c)), *v = out(s, "value", t == TL_BF16 ? TL_F32 : t, (size_t)b),
		     *index = out(s, "index", TL_I32, (size_t)b), *at = out(s, "at", t, (size_t)b);
	reduce_data(x, "argmax");
	for (size_t i = 0; i < (size_t)b; i++) {
		const char *op = max ? "argmax" : "argmin";
		size_t row = i * (size_t)c, k = x->f ? (size_t)reduce_floats(op, x, row, (size_t)c, 1)
						     : (size_t)reduce_ints(op, x, row, (size_t)c, 1);
		want(v, i, value(x, row + k));
		want(at, i, value(x, row + k));
		if (left)
			want_int(index, i, (int64_t)k);
	}
	LAUNCH(s, "extremum_and_index", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(v), ptr(index), ptr(at),
	       tl_bool(max), tl_bool(left), tl_int(b), tl_int(c));
	case_end(s);
}

static void moments(struct suite *s, tl_dtype t, int b, int c, int axis, int warps)
{
	struct tile_walk w;
	if (!case_begin(s, file, "mean and variance %s %dx%d axis=%d warps=%d", tl_dtype_name(t), b, c, axis, warps))
		return;
	tile_walk(&w, 2, (int[]){b, c}, axis);
	struct array *x = in(s, "x", t, (size_t)(b * c)), *mean = out(s, "mean", t, (size_t)(w.outer * w.inner)),
		     *var = out(s, "var", t, mean->len);
	for (int i = 0; i < w.outer * w.inner; i++) {
		double sum = 0, squares = 0;
		size_t at = (size_t)(w.inner == 1 ? i * w.length : i), n = (size_t)w.length, stride = (size_t)w.inner;
		for (size_t k = 0; k < n; k++)
			sum += value(x, at + k * stride) / (double)n;
		for (size_t k = 0; k < n; k++)
			squares += pow(value(x, at + k * stride) - sum, 2) / (double)n;
		want(mean, (size_t)i, sum);
		want(var, (size_t)i, squares);
	}
	/* a dozen combinations deep, each with a few roundings of numbers below 1 */
	tolerance(mean, 40 * unit_roundoff(t), 0);
	tolerance(var, 40 * unit_roundoff(t), 0);
	LAUNCH(s, "moments", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(mean), ptr(var), tl_int(b), tl_int(c),
	       tl_int(axis));
	case_end(s);
}

static void tally(struct suite *s, tl_dtype t, int b, int c, int axis, int warps)
{
	struct tile_walk w;
	if (!case_begin(s, file, "tally %s %dx%d axis=%d warps=%d", tl_dtype_name(t), b, c, axis, warps))
		return;
	tile_walk(&w, 2, (int[]){b, c}, axis);
	struct array *x = in(s, "x", t, (size_t)(b * c)), *v = out(s, "value", t, (size_t)(w.outer * w.inner)),
		     *index = out(s, "index", TL_I64, v->len), *count = out(s, "count", TL_I16, v->len);
	reduce_data(x, "argmax");
	for (size_t i = 0; i < v->len; i++) {
		size_t at = w.inner == 1 ? i * (size_t)w.length : i, best = at;
		int n = 0;
		for (size_t k = 0; k < (size_t)w.length; k++)
			best = value(x, at + k * (size_t)w.inner) > value(x, best) ? at + k * (size_t)w.inner : best;
		for (size_t k = 0; k < (size_t)w.length; k++)
			n += value(x, at + k * (size_t)w.inner) == value(x, best);
		want(v, i, value(x, best));
		want_int(index, i, (int64_t)best);
		want_int(count, i, n);
	}
	LAUNCH(s, "tally", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(v), ptr(index), ptr(count), tl_int(b),
	       tl_int(c), tl_int(axis));
	case_end(s);
}

/* Sum, least, greatest, xor, and, or, product, sum of 64 bits: of all, or of each element and those before it. */
static void eight(struct suite *s, int n, bool scan, int warps)
{
	if (!case_begin(s, file, "eight %s n=%d warps=%d", scan ? "scan" : "reduce", n, warps))
		return;
	struct array *x = in(s, "x", TL_I32, (size_t)n), *o = out(s, "o", TL_I32, (size_t)(scan ? 7 * n : 7)),
		     *wide = out(s, "wide", TL_I64, (size_t)(scan ? n : 1));
	int64_t r[8] = {0, INT32_MAX, INT32_MIN, 0, -1, 0, 1, 0};
	for (int i = 0; i < n; i++) {
		int64_t v = value_int(x, (size_t)i);
		r[0] = wrap(TL_I32, r[0] + v);
		r[1] = v < r[1] ? v : r[1];
		r[2] = v > r[2] ? v : r[2];
		r[3] ^= v, r[4] &= v, r[5] |= v;
		r[6] = wrap(TL_I32, r[6] * v);
		r[7] += v;
		for (int k = 0; k < 7 && (scan || i == n - 1); k++)
			want_int(o, (size_t)(scan ? k * n + i : k), r[k]);
		if (scan || i == n - 1)
			want_int(wide, (size_t)(scan ? i : 0), r[7]);
	}
	LAUNCH(s, "eight", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), ptr(wide), tl_int(n), tl_int(scan));
	case_end(s);
}

static void several_values(struct suite *s)
{
	for (int k = 0; k < 6; k++)
		eight(s, 64 << 2 * (k / 2), k % 2, 1 << k % 4);
	static const int shapes[][3] = {{1, 1, 1}, {1, 128, 4}, {16, 16, 2}, {32, 64, 8}, {4, 1024, 4}, {128, 8, 1}};
	for (int k = 0; k < COUNT(shapes); k++) {
		int b = shapes[k][0], c = shapes[k][1], warps = shapes[k][2];
		for (int i = 0; i < 4; i++)
			extremum(s, all_types[(k * 4 + i) % COUNT(all_types)], i & 1, i & 2, b, c, warps);
		for (int axis = 0; axis < 2; axis++) {
			moments(s, k % 3 == 2 ? TL_F64 : TL_F32, b, c, axis, warps);
			tally(s, k % 2 ? TL_F16 : TL_I32, b, c, axis, warps);
		}
	}
	extremum(s, TL_F16, true, true, 8, 256, 4), extremum(s, TL_BF16, false, true, 8, 256, 4),
		extremum(s, TL_I64, true, true, 8, 256, 4);
}

/* --- softmax, chains ----------------------------------------------------------------------------------------- */

void want_softmax(struct array *o, const struct array *x, size_t at, size_t n, size_t stride)
{
	double sum = 0, max = -INFINITY;
	for (size_t i = 0; i < n; i++)
		max = fmax(max, value(x, at + i * stride));
	for (size_t i = 0; i < n; i++)
		sum += exp(value(x, at + i * stride) - max);
	for (size_t i = 0; i < n; i++)
		want(o, at + i * stride, exp(value(x, at + i * stride) - max) / sum);
}

static void softmax(struct suite *s, tl_dtype t, int rows, int n, const char *form, int warps)
{
	int block = 1, stride = n + 3;
	while (block < n)
		block *= 2;
	if (!case_begin(s, file, "softmax %s %s %dx%d warps=%d", form, tl_dtype_name(t), rows, n, warps))
		return;
	struct array *x = in(s, "x", t, (size_t)(rows * stride)), *o = out(s, "o", t, (size_t)(rows * stride));
	fill(x, -10, 10);
	for (int r = 0; r < rows; r++)
		want_softmax(o, x, (size_t)(r * stride), (size_t)n, 1);
	tolerance(o, 0, 20 * 0x1p-23); /* in fp32: exp of at most 20, a sum of positive numbers, a division */
	LAUNCH(s, "softmax", CONFIG(.grid = {(uint32_t)rows}, .num_warps = warps), ptr(x), ptr(o), tl_int(stride),
	       tl_int(n), tl_str(form), tl_int(block));
	case_end(s);
}

static void softmax2d(struct suite *s, int b, int c, int axis, int warps)
{
	if (!case_begin(s, file, "softmax %dx%d axis=%d warps=%d", b, c, axis, warps))
		return;
	struct array *x = in(s, "x", TL_F32, (size_t)(b * c)), *o = out(s, "o", TL_F32, (size_t)(b * c));
	fill(x, -5, 5);
	for (int i = 0; i < (axis ? b : c); i++)
		want_softmax(o, x, (size_t)(axis ? i * c : i), (size_t)(axis ? c : b), axis ? 1 : (size_t)c);
	tolerance(o, 0, 20 * 0x1p-23);
	LAUNCH(s, "softmax2d", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), tl_int(b), tl_int(c),
	       tl_int(axis));
	case_end(s);
}

static void want_chain(struct array *o, const struct array *x, int A, int B, int C)
{
	int64_t over_c[32][32] = {{0}}, over_bc[32], over_a[32][32], over_ab[32] = {0}, most = INT64_MIN;
#define X(a, b, c) value_int(x, (size_t)(((a) * B + (b)) * C + (c)))
	for (int a = 0; a < A; a++)
		for (int b = 0; b < B; b++)
			for (int c = 0; c < C; c++) {
				over_c[a][b] += X(a, b, c);
				over_ab[c] += X(a, b, c);
				over_a[b][c] = !a || X(a, b, c) < over_a[b][c] ? X(a, b, c) : over_a[b][c];
			}
	for (int a = 0; a < A; a++)
		for (int b = 0; b < B; b++)
			over_bc[a] = !b || over_c[a][b] > over_bc[a] ? over_c[a][b] : over_bc[a];
	for (int c = 0; c < C; c++)
		most = over_ab[c] > most ? over_ab[c] : most;
	for (int a = 0; a < A; a++)
		for (int b = 0; b < B; b++)
			for (int c = 0; c < C; c++) {
				int64_t sum = 0;
				for (int k = 0; k < C; k++)
					sum += over_a[b][k];
				want_int(o, (size_t)((a * B + b) * C + c),
					 X(a, b, c) - over_c[a][b] + 3 * over_bc[a] + over_a[b][c] - sum + most -
						 over_ab[c]);
			}
#undef X
}

static void chain(struct suite *s, int A, int B, int C, int warps)
{
	if (!case_begin(s, file, "chain %dx%dx%d warps=%d", A, B, C, warps))
		return;
	struct array *x = in(s, "x", TL_I32, (size_t)(A * B * C)), *o = out(s, "o", TL_I32, x->len);
	shaped(o, 3, (int[]){A, B, C});
	fill(x, -1000, 1000);
	want_chain(o, x, A, B, C);
	LAUNCH(s, "chain", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), tl_int(A), tl_int(B), tl_int(C));
	case_end(s);
}

static void of_broadcast(struct suite *s, int b, int c, int warps)
{
	if (!case_begin(s, file, "sum of a broadcast %dx%d warps=%d", b, c, warps))
		return;
	struct array *x = in(s, "x", TL_I32, (size_t)b), *o = out(s, "o", TL_I32, 6);
	int64_t sum = 0, xor = 0;
	for (size_t i = 0; i < (size_t)b; i++) {
		sum += value_int(x, i);
		xor ^= c > 1 ? 0 : value_int(x, i);
	}
	int64_t wanted[] = {sum * c, sum * c, 3 * b * c, b * (b - 1) / 2 * c, (b - 1) * (c * (c - 1) / 2), xor};
	for (size_t i = 0; i < 6; i++)
		want_int(o, i, wanted[i]);
	LAUNCH(s, "of_broadcast", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), tl_int(b), tl_int(c));
	case_end(s);
}

void theme_reduce(struct suite *s)
{
	static const int widths[] = {1, 2, 31, 64, 100, 777, 1024, 4000};
	static const int chains[][4] = {{1, 1, 1, 1},    {2, 4, 8, 1},   {8, 4, 2, 4},
					{16, 16, 16, 4}, {32, 4, 32, 8}, {4, 32, 8, 2}};
	static const int flat[][3] = {{1, 1, 1},   {1, 64, 4},   {64, 1, 4}, {2, 32, 1},
				      {16, 16, 8}, {128, 64, 4}, {4, 4, 8}};
	static const char *const ops[] = {"sum", "max", "argmax", "min"};
	one_axis(s);
	wide(s);
	more_axes(s);
	for (int k = 0; k < 24; k++)
		strided(s, ops[k % 4], all_types[k % COUNT(all_types)], 8 << k % 5, 128 >> k % 5, k / 2 % 2,
			1 << k % 4);
	sum_as(s, TL_I8, TL_I64), sum_as(s, TL_F16, TL_F32), sum_as(s, TL_F32, TL_F64), sum_as(s, TL_I32, TL_F32),
		sum_as(s, TL_U8, TL_U8);
	several_values(s);
	for (int k = 0; k < COUNT(widths); k++) {
		softmax(s, TL_F32, 3, widths[k], "builtin", 1 << k % 4);
		softmax(s, k % 2 ? TL_F16 : TL_BF16, 3, widths[k], "by hand", 1 << (k + 2) % 4);
	}
	softmax(s, TL_F32, 2, 16384, "by hand", 16);
	for (int axis = 0; axis < 2; axis++)
		softmax2d(s, 16, 64, axis, 4), softmax2d(s, 128, 8, axis, 2), softmax2d(s, 1, 32, axis, 1);
	for (int k = 0; k < COUNT(chains); k++)
		chain(s, chains[k][0], chains[k][1], chains[k][2], chains[k][3]);
	for (int k = 0; k < COUNT(flat); k++)
		of_broadcast(s, flat[k][0], flat[k][1], flat[k][2]);
}
