/* Arguments that are tuples, named tuples and tensor descriptors: what the kernel sees of them, and what is refused. */
#include <math.h>
#include <string.h>

#include "themes.h"

static const char file[] = "composite.tl";

enum { MAX_TENSORS = 4 };

static tl_arg number(tl_dtype t, double v)
{
	return t == TL_F32 ? tl_float(v) : t == TL_F64 ? tl_float_typed(t, v) : tl_int_typed(t, (int64_t)v);
}

static void combine(struct suite *s, tl_dtype t, int tensors, int n, const char *what, const char *function)
{
	if (!case_begin(s, file, "combine %d %s n=%d %s %s", tensors, tl_dtype_name(t), n, what,
			function ? function : "-"))
		return;
	struct array *x[MAX_TENSORS], *o = out(s, "o", TL_F32, (size_t)n);
	tl_arg pointers[MAX_TENSORS], weights[MAX_TENSORS];
	double w[MAX_TENSORS], first = (double)random_int(-9, 9);
	for (int k = 0; k < tensors; k++) {
		x[k] = in(s, (const char *[]){"a", "b", "c", "d"}[k], t, (size_t)n);
		for (int i = 0; i < n; i++)
			set_int(x[k], (size_t)i, random_int(-20, 20));
		pointers[k] = ptr(x[k]);
		w[k] = k == 1 ? 1 : (double)random_int(-7, 7); /* an integer that is 1 is a constant */
		weights[k] = k % 2 ? tl_int((int64_t)w[k]) : tl_float(w[k]);
	}
	for (int i = 0; i < n; i++) {
		double sum = 0;
		for (int k = 0; k < tensors; k++)
			sum += value(x[k], (size_t)i) * w[k];
		if (!strcmp(what, "negate"))
			sum = -sum;
		want(o, (size_t)i, (function ? sum * sum : sum) + first);
	}
	tl_tuple p = {(size_t)tensors, pointers, NULL}, q = {(size_t)tensors, weights, NULL}, empty = {0};
	tl_arg both[] = {tl_tuple_arg(&p), tl_tuple_arg(&q)},
	       rest[] = {tl_str(what), function ? tl_func(function) : tl_none(), number(TL_I32, first),
			 tl_tuple_arg(&empty)};
	tl_tuple parts = {2, both, NULL}, options = {4, rest, NULL};
	LAUNCH(s, "combine", CONFIG(.grid = {(uint32_t)cdiv(n, 64)}), ptr(o), tl_tuple_arg(&parts),
	       tl_tuple_arg(&options), tl_int(n), tl_int(64));
	case_end(s);
}

static void copy_tensor(struct suite *s, tl_dtype t, int M, int N, int stride)
{
	static const char *const names[] = {"ptr", "shape", "strides"};
	if (!case_begin(s, file, "named tuples %s %dx%d/%d", tl_dtype_name(t), M, N, stride))
		return;
	struct array *x = in(s, "x", t, (size_t)(M * stride)), *o = out(s, "o", t, (size_t)(M * N));
	for (int m = 0; m < M; m++)
		for (int n = 0; n < N; n++) { /* o is transposed */
			size_t from = (size_t)(m * stride + n), to = (size_t)(n * M + m);
			if (is_float(t))
				want_number(o, to, value(x, from));
			else
				want_int(o, to, value_int(x, from));
		}
	tl_arg shape[] = {tl_int(M), tl_int(N)}, x_strides[] = {tl_int(stride), tl_int(1)},
	       o_strides[] = {tl_int(1), tl_int(M)};
	tl_tuple size = {2, shape, NULL}, sx = {2, x_strides, NULL}, so = {2, o_strides, NULL};
	tl_arg xs[] = {ptr(x), tl_tuple_arg(&size), tl_tuple_arg(&sx)},
	       os[] = {ptr(o), tl_tuple_arg(&size), tl_tuple_arg(&so)};
	tl_tuple tx = {3, xs, names}, to = {3, os, names};
	LAUNCH(s, "copy_tensor", CONFIG(.grid = {1}), tl_tuple_arg(&tx), tl_tuple_arg(&to), tl_int(128));
	case_end(s);
}

/* Element (m, n) of x, an M × N tensor, or the padding, is what o[i] must be. */
static void want_element(struct array *o, size_t i, const struct array *x, int m, int n, int M, int N, int stride,
			 bool nan)
{
	bool inside = m >= 0 && m < M && n >= 0 && n < N;
	size_t k = inside ? (size_t)m * (size_t)stride + (size_t)n : 0;
	if (is_float(o->dtype))
		want_number(o, i, inside ? value(x, k) : nan ? NAN : 0);
	else
		want_int(o, i, inside ? value_int(x, k) : 0);
}

/* stride: in multiples of 16 bytes */
static void blocks(struct suite *s, tl_dtype t, int M, int N, int row, int column, int bm, int bn, int steps, bool nan)
{
	int by = 16 / (int)tl_dtype_size(t), stride = cdiv(N, by) * by + by;
	if (!case_begin(s, file, "blocks %s %dx%d/%d at %d,%d blocks %dx%d steps=%d%s", tl_dtype_name(t), M, N, stride,
			row, column, bm, bn, steps, nan ? " nan" : ""))
		return;
	struct array *x = in(s, "x", t, (size_t)(M * stride)), *o = out(s, "o", t, (size_t)(bm * bn * steps));
	for (int m = 0; m < bm * steps; m++)
		for (int n = 0; n < bn; n++)
			want_element(o, (size_t)(m * bn + n), x, row + m, column + n, M, N, stride, nan);
	tl_descriptor dx = {t, 2, ptr(x).ptr, {M, N}, {stride, 1}, {bm, bn}, nan, false},
		      d = tl_describe(t, ptr(o).ptr, 2, (int64_t[]){bm * steps, bn}, (int32_t[]){bm, bn});
	LAUNCH(s, "blocks", CONFIG(.grid = {1}), tl_desc(&dx), tl_desc(&d), tl_int(row), tl_int(column), tl_int(steps));
	case_end(s);
}

/* x, an fp32, with 11 bits of its mantissa, ties to even. */
static double nearest_tf32(double x)
{
	int exponent;
	double mantissa = frexp(x, &exponent);
	return isfinite(x) ? ldexp(nearbyint(ldexp(mantissa, 11)), exponent - 11) : x;
}

/* Flags of a descriptor: 1 pads with NaN, 2 rounds to tf32. */
static void chosen_block(struct suite *s, int first, int second, int way, int how)
{
	enum { M = 13, N = 22, STRIDE = 24, BM = 8, BN = 16, ROW = 9, COLUMN = -3 };
	if (!case_begin(s, file, "chosen block %d or %d, way=%d how=%d", first, second, way, how))
		return;
	struct array *x = in(s, "x", TL_F32, M * STRIDE), *y = in(s, "y", TL_F32, M * STRIDE),
		     *o = out(s, "o", TL_F32, BM * BN), *from = way > 0 ? y : x;
	int flags = way > 0 ? second : first;
	for (int m = 0; m < BM; m++)
		for (int n = 0; n < BN; n++) {
			int r = ROW + m, c = COLUMN + n;
			bool inside = r < M && c >= 0 && c < N;
			double v = inside ? value(from, (size_t)(r * STRIDE + c)) : 0;
			want_number(o, (size_t)(m * BN + n),
				    !inside ? (flags & 1 ? NAN : 0) : flags & 2 ? nearest_tf32(v) : v);
		}
	tl_descriptor a = {TL_F32, 2, ptr(x).ptr, {M, N}, {STRIDE, 1}, {BM, BN}, first & 1, first & 2}, b = a,
		      d = tl_describe(TL_F32, ptr(o).ptr, 2, (int64_t[]){BM, BN}, (int32_t[]){BM, BN});
	b.base = ptr(y).ptr, b.pads_with_nan = second & 1, b.rounds_to_tf32 = second & 2;
	LAUNCH(s, "chosen_block", CONFIG(.grid = {1}), tl_desc(&a), tl_desc(&b), tl_desc(&d), tl_int(ROW),
	       tl_int(COLUMN), tl_int(way), tl_constexpr(tl_int(how)));
	case_end(s);
}

static void any_rank(struct suite *s, tl_dtype t, int rank)
{
	if (!case_begin(s, file, "rank %d %s", rank, tl_dtype_name(t)))
		return;
	int by = 16 / (int)tl_dtype_size(t);
	tl_descriptor d = {.dtype = t, .rank = rank};
	int64_t at[TL_MAX_RANK], elements = 1;
	size_t numel = 1;
	tl_arg offsets[TL_MAX_RANK];
	for (int k = rank - 1; k >= 0; k--) {
		d.shape[k] = random_int(1, k == rank - 1 ? 40 : 6);
		d.block_shape[k] = k == rank - 1 ? by : 1 << random_int(0, 2);
		d.strides[k] = elements;
		at[k] = random_int(-3, d.shape[k]);
		offsets[k] = tl_int(at[k]);
		elements *= d.shape[k];
		elements = (elements + by - 1) / by * by;
		numel *= (size_t)d.block_shape[k];
	}
	struct array *x = in(s, "x", t, (size_t)elements), *o = out(s, "o", t, numel),
		     *f = out(s, "f", TL_I64, (size_t)(3 * rank));
	for (size_t i = 0; i < numel; i++) {
		size_t rest = i;
		int64_t from = 0;
		bool inside = true;
		for (int k = rank - 1; k >= 0; k--) {
			int64_t c = at[k] + (int64_t)(rest % (size_t)d.block_shape[k]);
			rest /= (size_t)d.block_shape[k];
			inside &= c >= 0 && c < d.shape[k];
			from += c * d.strides[k];
		}
		want_element(o, i, x, inside ? 0 : -1, (int)from, 1, (int)elements, 0, false);
	}
	for (int k = 0; k < rank; k++) {
		want_int(f, (size_t)(3 * k), d.shape[k]);
		want_int(f, (size_t)(3 * k + 1), d.strides[k]);
		want_int(f, (size_t)(3 * k + 2), d.block_shape[k]);
	}
	d.base = ptr(x).ptr;
	tl_tuple place = {(size_t)rank, offsets, NULL};
	LAUNCH(s, "block_of", CONFIG(.grid = {1}), tl_desc(&d), tl_tuple_arg(&place), ptr(o));
	LAUNCH(s, "facts", CONFIG(.grid = {1}), tl_desc(&d), ptr(f), tl_bool(true));
	case_end(s);
}

static void rows(struct suite *s, tl_dtype t, int M, int N, int column, int count, int bn)
{
	if (!case_begin(s, file, "rows %s %dx%d column %d, %d rows of %d", tl_dtype_name(t), M, N, column, count, bn))
		return;
	struct array *x = in(s, "x", t, (size_t)(M * N)), *o = out(s, "o", t, (size_t)(M * N)),
		     *at = in(s, "rows", TL_I32, (size_t)count);
	for (size_t i = 0; i < x->len; i++)
		set_int(x, i, random_int(-50, 50));
	for (int r = 0; r < count; r++) { /* each once, and some outside */
		int m = (r * 7 + 3) % (M + 2) - 1;
		set_int(at, (size_t)r, m);
		for (int n = column; n < column + bn && m >= 0 && m < M; n++)
			if (n >= 0 && n < N)
				want_int(o, (size_t)(m * N + n), value_int(x, (size_t)(m * N + n)) + 1);
	}
	tl_descriptor dx = tl_describe(t, ptr(x).ptr, 2, (int64_t[]){M, N}, (int32_t[]){1, bn}),
		      d = tl_describe(t, ptr(o).ptr, 2, (int64_t[]){M, N}, (int32_t[]){1, bn});
	LAUNCH(s, "rows", CONFIG(.grid = {1}), tl_desc(&dx), tl_desc(&d), ptr(at), tl_int(column), tl_int(count));
	case_end(s);
}

static void product(struct suite *s, tl_dtype t, int M, int N, int K, int bm, int bn, int bk, int warps)
{
	if (!case_begin(s, file, "product %s %dx%dx%d blocks %dx%dx%d warps=%d", tl_dtype_name(t), M, N, K, bm, bn, bk,
			warps))
		return;
	struct array *a = in(s, "a", t, (size_t)(M * K)), *b = in(s, "b", t, (size_t)(K * N)),
		     *c = out(s, "c", TL_F32, (size_t)(M * N));
	for (int m = 0; m < M; m++)
		for (int n = 0; n < N; n++) {
			double sum = 0;
			for (int k = 0; k < K; k++)
				sum += value(a, (size_t)(m * K + k)) * value(b, (size_t)(k * N + n));
			want(c, (size_t)(m * N + n), sum);
		}
	tolerance(c, 1e-4, 1e-4);
	tl_descriptor da = tl_describe(t, ptr(a).ptr, 2, (int64_t[]){M, K}, (int32_t[]){bm, bk}),
		      db = tl_describe(t, ptr(b).ptr, 2, (int64_t[]){K, N}, (int32_t[]){bk, bn}),
		      dc = tl_describe(TL_F32, ptr(c).ptr, 2, (int64_t[]){M, N}, (int32_t[]){bm, bn});
	tl_arg both[] = {tl_desc(&da), tl_desc(&db)};
	tl_tuple operands = {2, both, NULL};
	LAUNCH(s, "product", CONFIG(.grid = {(uint32_t)cdiv(M, bm), (uint32_t)cdiv(N, bn)}, .num_warps = warps),
	       tl_tuple_arg(&operands), tl_desc(&dc), tl_int(bk));
	case_end(s);
}

/* Objects and named tuples, through a loop and a branch. */
static void gather(struct suite *s, tl_dtype t, int rows, int columns, int skip, int block)
{
	if (!case_begin(s, file, "classes %s %dx%d skip=%d block=%d", tl_dtype_name(t), rows, columns, skip, block))
		return;
	struct array *x = in(s, "x", t, (size_t)(rows * columns)), *o = out(s, "o", t, (size_t)(3 * columns));
	for (size_t i = 0; i < x->len; i++)
		set_int(x, i, random_int(-50, 50));
	for (int n = 0; n < columns; n++) {
		double sum = 0, most = -100, least = 100;
		for (int r = 0; r < rows; r++) {
			double v = value(x, (size_t)(r * columns + n));
			sum += r && r % skip == 0 ? 2 * v : v;
			most = fmax(most, v);
			least = fmin(least, v);
		}
		want(o, (size_t)n, sum);
		want(o, (size_t)(columns + n), most);
		want(o, (size_t)(2 * columns + n), least);
	}
	LAUNCH(s, "gather", CONFIG(.grid = {1}), ptr(x), ptr(o), tl_int(rows), tl_int(columns), tl_int(columns),
	       tl_int(skip), tl_int(block));
	case_end(s);
}

static void refused(struct suite *s, const char *what, const char *part, tl_descriptor d)
{
	if (!case_begin(s, file, "refused: %s", what))
		return;
	struct array *x = in(s, "x", TL_F16, 64 * 64);
	d.base = (char *)ptr(x).ptr + (size_t)(uintptr_t)d.base;
	tl_arg in_tuple[] = {tl_int(0), tl_desc(&d)};
	tl_tuple t = {2, in_tuple, NULL};
	launch_fails(s, TL_ERR_ARGUMENT, part, "add_block", CONFIG(.grid = {1}), ARGS(tl_desc(&d), ptr(x)));
	launch_fails(s, TL_ERR_ARGUMENT, "argument 1, 'operands'[1]: the descriptor", "product", CONFIG(.grid = {1}),
		     ARGS(tl_tuple_arg(&t), tl_desc(&d), tl_int(16)));
	case_end(s);
}

static void all_refused(struct suite *s)
{
	const tl_descriptor good = {TL_F16, 2, NULL, {64, 64}, {64, 1}, {16, 16}, false, false};
	tl_descriptor d = good;
	d.base = (void *)(uintptr_t)8;
	refused(s, "base", "'o': the descriptor has a base that is not a multiple of 16", d);
	d = good, d.strides[0] = 65;
	refused(s, "stride", "a stride that is not a multiple of 16 bytes", d);
	d = good, d.strides[1] = 2;
	refused(s, "last stride", "its last stride must be 1", d);
	d = good, d.shape[0] = 0;
	refused(s, "shape", "a size that is not from 1", d);
	d = good, d.block_shape[0] = 24;
	refused(s, "block", "a block shape that is not a power of two", d);
	d = good, d.block_shape[1] = 4;
	refused(s, "small block", "less than 16 bytes along the last", d);
	d = good, d.block_shape[0] = 1 << 20;
	refused(s, "large block", "more than 2^20 elements", d);
	d = good, d.rank = 6;
	refused(s, "rank", "must have 1 to 5 dimensions", d);
	d = good, d.dtype = TL_I16, d.pads_with_nan = true;
	refused(s, "padding", "pads with NaN, but is not of a float type", d);
	d = good, d.rounds_to_tf32 = true;
	refused(s, "rounding", "rounds to tf32, but is not of type fp32", d);
}

void theme_composite(struct suite *s)
{
	static const tl_dtype types[] = {TL_F32, TL_F16, TL_BF16, TL_I32, TL_I8, TL_I64, TL_F64, TL_U16};
	static const int places[][2] = {{0, 0}, {3, 5}, {-7, 0}, {0, -9}, {60, 90}, {-40, -40}, {1000, 0}};
	for (int n = 1; n <= MAX_TENSORS; n++) {
		combine(s, types[n % 4], n, 50 * n + 14, n % 2 ? "negate" : "keep", n > 2 ? "square" : NULL);
		copy_tensor(s, types[n + 2], 3 + n, 20 * n, 20 * n + n % 2 * 12);
	}
	for (int t = 0; t < COUNT(types); t++)
		for (int k = t % 2; k < COUNT(places); k += 2)
			blocks(s, types[t], 70, 91, places[k][0], places[k][1], 16, 32, 1 + k % 4,
			       is_float(types[t]) && k % 3 == 0);
	for (int rank = 1; rank <= TL_MAX_RANK; rank++)
		for (int k = 0; k < 3; k++)
			any_rank(s, types[(rank + 3 * k) % COUNT(types)], rank);
	for (int k = 0; k < 4; k++)
		rows(s, types[k % 4], 20 + k, 64, k * 16 - 16, 8, 32);
	product(s, TL_F16, 128, 64, 96, 64, 32, 32, 4);
	product(s, TL_F16, 100, 72, 56, 64, 64, 32, 4);
	product(s, TL_BF16, 256, 256, 128, 64, 64, 64, 4);
	for (int k = 0; k < 6; k++)
		gather(s, k % 3 == 0 ? TL_F32 : k % 3 == 1 ? TL_I32 : TL_F64, 1 + 2 * k, 30 + 16 * k, 1 + k, 128);
	for (int k = 0; k < 16; k++)
		chosen_block(s, k % 4, k / 4, k % 3 == 1 ? 0 : 2 + k % 2, k % 3);
	all_refused(s);
}
