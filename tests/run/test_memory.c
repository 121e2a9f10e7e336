/* Loads and stores: types, strides, masks, alignment, options. */
#include <sys/mman.h>

#include "themes.h"

static const char file[] = "memory.tl";

static void copy_number(struct array *to, size_t i, const struct array *from, size_t k)
{
	if (is_float(from->dtype))
		want_number(to, i, value(from, k));
	else
		want_int(to, i, value_int(from, k));
}

/* --- one axis ------------------------------------------------------------------------------------------------ */

enum masking { PLAIN, MASKED, OTHER };

static void copy1d(struct suite *s, tl_dtype t, int n, int block, int warps, int stride_x, int stride_o, int shift,
		   enum masking how)
{
	static const char *const names[] = {"", " masked", " other"};
	if (!case_begin(s, file, "copy1d %s n=%d block=%d warps=%d strides=%d,%d shift=%d%s", tl_dtype_name(t), n,
			block, warps, stride_x, stride_o, shift, names[how]))
		return;
	int programs = (n + block - 1) / block, all = how == MASKED ? n : programs * block;
	struct array *x = in_at(s, "x", t, (size_t)((how == PLAIN ? all : n) - 1) * (size_t)stride_x + 1, shift),
		     *o = out_at(s, "o", t, (size_t)(all - 1) * (size_t)stride_o + 1, shift ? shift + 1 : 0);
	for (int i = 0; i < all; i++)
		if (i < n || how == PLAIN)
			copy_number(o, (size_t)i * (size_t)stride_o, x, (size_t)i * (size_t)stride_x);
		else
			want_int(o, (size_t)i * (size_t)stride_o, 1);
	LAUNCH(s, "copy1d", CONFIG(.grid = {(uint32_t)programs}, .num_warps = warps), ptr(x), ptr(o), tl_int(n),
	       tl_int(stride_x), tl_int(stride_o), how == OTHER ? tl_int(1) : tl_none(), tl_bool(how == MASKED),
	       tl_int(block));
	case_end(s);
}

static void one_axis(struct suite *s)
{
	static const int sizes[][3] = {{1, 1, 1},       {2, 2, 4},       {7, 8, 1},       {32, 32, 2},     {100, 64, 1},
				       {1000, 1024, 4}, {4096, 4096, 8}, {5000, 512, 32}, {16384, 8192, 4}};
	for (int t = 0; t < DTYPES; t++) {
		for (int k = 0; k < COUNT(sizes); k++) {
			int n = sizes[k][0], block = sizes[k][1], warps = sizes[k][2];
			copy1d(s, (tl_dtype)t, n, block, warps, 1, 1, 0, n % block ? MASKED : PLAIN);
			if (k % 2)
				copy1d(s, (tl_dtype)t, n, block, warps, 1, 1, 0, OTHER);
		}
		copy1d(s, (tl_dtype)t, 768, 256, 4, 1, 1, 0, PLAIN);
		copy1d(s, (tl_dtype)t, 1024, 256, 4, 1, 1, 0, MASKED); /* the mask is never false */
		for (int shift = 1; shift < 16; shift += shift < 4 ? 1 : 3)
			copy1d(s, (tl_dtype)t, 500, 256, 2, 1, 1, shift, shift % 2 ? MASKED : PLAIN);
		copy1d(s, (tl_dtype)t, 200, 128, 4, 3, 1, 0, MASKED);
		copy1d(s, (tl_dtype)t, 200, 128, 4, 1, 2, 0, OTHER);
		copy1d(s, (tl_dtype)t, 256, 128, 4, 16, 48, 0, PLAIN);
		/* n is a multiple of 16: vectors survive the mask */
		copy1d(s, (tl_dtype)t, 240, 128, 4, 1, 1, 0, OTHER);
	}
}

/* --- two and three axes -------------------------------------------------------------------------------------- */

struct strides {
	int m, n;
};

static void copy2d(struct suite *s, tl_dtype t, int m, int n, int bm, int bn, struct strides x, struct strides o,
		   int warps)
{
	bool masked = m % bm || n % bn;
	if (!case_begin(s, file, "copy2d %s %dx%d block=%dx%d strides=%d,%d to %d,%d warps=%d", tl_dtype_name(t), m, n,
			bm, bn, x.m,
			x.n, o.m, o.n, warps))
		return;
	struct array *a = in(s, "x", t, (size_t)((m - 1) * x.m + (n - 1) * x.n + 1)),
		     *b = out(s, "o", t, (size_t)((m - 1) * o.m + (n - 1) * o.n + 1));
	for (int i = 0; i < m; i++)
		for (int j = 0; j < n; j++)
			copy_number(b, (size_t)(i * o.m + j * o.n), a, (size_t)(i * x.m + j * x.n));
	LAUNCH(s, "copy2d",
	       CONFIG(.grid = {(uint32_t)((m + bm - 1) / bm), (uint32_t)((n + bn - 1) / bn)}, .num_warps = warps),
	       ptr(a), ptr(b), tl_int(m), tl_int(n), tl_int(x.m), tl_int(x.n), tl_int(o.m), tl_int(o.n),
	       tl_bool(masked), tl_int(bm), tl_int(bn));
	case_end(s);
}

static void two_axes(struct suite *s)
{
	static const int shapes[][5] = { /* m, n, block, warps */
		{1, 1, 1, 1, 1}, {16, 16, 16, 16, 1}, {64, 64, 32, 64, 4}, {33, 65, 32, 32, 2}, {100, 7, 64, 8, 4},
			{7, 100, 8, 64, 8},
		{128, 128, 128, 64, 8}, {256, 4, 256, 4, 4}, {4, 256, 4, 256, 16}, {40, 48, 16, 64, 32},
	};
	static const tl_dtype types[] = {TL_I1, TL_I8, TL_F8E5M2, TL_F16, TL_F32, TL_I64};
	for (int k = 0; k < COUNT(shapes); k++)
		for (int t = 0; t < COUNT(types); t++) {
			int m = shapes[k][0], n = shapes[k][1], bm = shapes[k][2], bn = shapes[k][3], w = shapes[k][4];
			struct strides row = {n, 1}, col = {1, m}, padded = {(n + 31) / 16 * 16, 1},
				       odd = {2 * n + 1, 2};
			copy2d(s, types[t], m, n, bm, bn, row, row, w);
			copy2d(s, types[t], m, n, bm, bn, row, col, w);
			copy2d(s, types[t], m, n, bm, bn, col, row, w);
			if ((k + t) % 2)
				copy2d(s, types[t], m, n, bm, bn, padded, odd, w);
			else
				copy2d(s, types[t], m, n, bm, bn, col, padded, w);
		}
}

/* `order`: which axis is innermost, then the next. */
static void copy3d(struct suite *s, tl_dtype t, const int *shape, const int *block, int order, int warps)
{
	static const int perms[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
	int x[3], o[3] = {shape[1] * shape[2], shape[2], 1}, n = 1;
	if (!case_begin(s, file, "copy3d %s %dx%dx%d block=%dx%dx%d order=%d%d%d warps=%d", tl_dtype_name(t), shape[0],
			shape[1], shape[2], block[0], block[1], block[2], perms[order][0], perms[order][1],
			perms[order][2], warps))
		return;
	for (int k = 2; k >= 0; k--) {
		x[perms[order][k]] = n;
		n *= shape[perms[order][k]];
	}
	struct array *a = in(s, "x", t, (size_t)n), *b = out(s, "o", t, (size_t)n);
	shaped(b, 3, shape);
	for (int i = 0; i < shape[0]; i++)
		for (int j = 0; j < shape[1]; j++)
			for (int k = 0; k < shape[2]; k++)
				copy_number(b, (size_t)(i * o[0] + j * o[1] + k * o[2]), a,
					    (size_t)(i * x[0] + j * x[1] + k * x[2]));
	tl_config cfg = {.num_warps = warps};
	for (int k = 0; k < 3; k++)
		cfg.grid[k] = (uint32_t)((shape[k] + block[k] - 1) / block[k]);
	LAUNCH(s, "copy3d", &cfg, ptr(a), ptr(b), tl_int(shape[0]), tl_int(shape[1]), tl_int(shape[2]), tl_int(x[0]),
	       tl_int(x[1]), tl_int(x[2]), tl_int(o[0]), tl_int(o[1]), tl_int(o[2]), tl_int(block[0]), tl_int(block[1]),
	       tl_int(block[2]));
	case_end(s);
}

static void three_axes(struct suite *s)
{
	static const tl_dtype types[] = {TL_I8, TL_BF16, TL_F32, TL_F64};
	for (int order = 0; order < 6; order++)
		for (int t = 0; t < COUNT(types); t++) {
			copy3d(s, types[t], (int[]){4, 16, 32}, (int[]){4, 16, 32}, order, 4);
			copy3d(s, types[t], (int[]){5, 9, 20}, (int[]){2, 8, 16}, order, 1 << order % 4);
		}
	copy3d(s, TL_F16, (int[]){1, 1, 64}, (int[]){1, 1, 64}, 0, 4);
	copy3d(s, TL_F16, (int[]){64, 1, 1}, (int[]){64, 1, 1}, 3, 2);
}

/* --- masks, broadcasts, indices ------------------------------------------------------------------------------ */

static void masks(struct suite *s, tl_dtype t, int m, int n, int warps)
{
	if (!case_begin(s, file, "masks %s %dx%d warps=%d", tl_dtype_name(t), m, n, warps))
		return;
	size_t len = (size_t)(m * n), w = (size_t)n;
	struct array *x = in(s, "x", t, len), *mask = in(s, "mask", TL_I1, len), *o = out(s, "o", t, len),
		*row = out(s, "row", t, len),
		     *col = out(s, "col", t, len);
	for (size_t i = 0; i < len; i++) {
		bool some = value_int(mask, i), in_row = value_int(mask, i / w),
		     in_col = i % w && value_int(mask, i % w);
		if (some) {
			copy_number(o, i, x, i);
			if (in_row)
				copy_number(row, i, x, i);
		} else if (in_row) {
			want_int(o, i, 1);
			want_int(row, i, 1);
		}
		if (in_col)
			copy_number(col, i, x, i);
	}
	LAUNCH(s, "masks", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(mask), ptr(o), ptr(row), ptr(col),
	       tl_int(1), tl_int(m), tl_int(n));
	case_end(s);
}

static void spread(struct suite *s, tl_dtype t, int m, int n, int warps)
{
	if (!case_begin(s, file, "spread %s %dx%d warps=%d", tl_dtype_name(t), m, n, warps))
		return;
	int len = m * n;
	struct array *x = in(s, "x", t, (size_t)len), *o = out(s, "o", t, (size_t)(7 * len));
	shaped(o, 3, (int[]){7, m, n});
	for (int i = 0; i < len; i++) {
		int from[] = {i % n, i / n, 0, 1, i >> 2, i ^ 5, len - 1 - i};
		for (int k = 0; k < 7; k++)
			copy_number(o, (size_t)(k * len + i), x, (size_t)from[k]);
	}
	LAUNCH(s, "spread", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), tl_int(m), tl_int(n));
	case_end(s);
}

static void indexed(struct suite *s, tl_dtype t, tl_dtype index, bool scatter)
{
	enum { N = 700 };
	if (!case_begin(s, file, "%s %s by %s", scatter ? "scatter" : "gather", tl_dtype_name(t), tl_dtype_name(index)))
		return;
	struct array *x = in(s, "x", t, N), *at = in(s, "at", index, N), *o = out(s, "o", t, N);
	for (size_t i = 0; i < N; i++)
		set_int(at, i, scatter ? (int64_t)(i * 129 % N) : random_int(0, bits_of(index) == 8 ? 127 : N - 1));
	for (size_t i = 0; i < N; i++)
		if (scatter)
			copy_number(o, (size_t)value_int(at, i), x, i);
		else
			copy_number(o, i, x, (size_t)value_int(at, i));
	LAUNCH(s, scatter ? "scatter" : "gather", CONFIG(.grid = {3}), ptr(x), ptr(at), ptr(o), tl_int(N), tl_int(256));
	case_end(s);
}

static void masks_and_indices(struct suite *s)
{
	for (int t = 0; t < DTYPES; t++) {
		masks(s, (tl_dtype)t, 16, 32, 4);
		spread(s, (tl_dtype)t, 32, 16, 2);
		indexed(s, (tl_dtype)t, TL_I32, false);
		indexed(s, (tl_dtype)t, TL_I64, true);
	}
	masks(s, TL_F32, 8, 8, 8), masks(s, TL_F16, 4, 256, 1), masks(s, TL_I8, 64, 64, 8);
	spread(s, TL_F32, 8, 64, 8), spread(s, TL_F16, 128, 8, 4), spread(s, TL_I8, 64, 64, 1);
	indexed(s, TL_F16, TL_I16, false), indexed(s, TL_F32, TL_U8, false), indexed(s, TL_F32, TL_U32, true);
	indexed(s, TL_F32, TL_U64, false);
}

/* --- scalars and options ------------------------------------------------------------------------------------- */

static void scalars(struct suite *s, tl_dtype t)
{
	if (!case_begin(s, file, "scalars %s", tl_dtype_name(t)))
		return;
	struct array *x = in(s, "x", t, 10), *o = out(s, "o", t, 6);
	copy_number(o, 0, x, 0);
	copy_number(o, 1, x, 9);
	want_int(o, 2, 1);
	copy_number(o, 3, x, 2);
	want_int(o, 5, 1);
	LAUNCH(s, "scalars", CONFIG(.grid = {1}), ptr(x), ptr(o), tl_int(9));
	case_end(s);
}

static void options(struct suite *s, tl_dtype t, bool load, const char *cache, const char *evict, bool is_volatile)
{
	enum { N = 512 };
	if (!case_begin(s, file, "%s %s '%s' '%s'%s", load ? "load" : "store", tl_dtype_name(t), cache, evict,
			is_volatile ? " volatile" : ""))
		return;
	struct array *x = in(s, "x", t, N), *o = out(s, "o", t, 2 * N + 1);
	int n = 400;
	for (size_t i = 0; i < N; i++) {
		copy_number(o, i, x, i);
		if ((int)i < n)
			copy_number(o, N + i, x, i);
		else if (load)
			want_int(o, N + i, 0);
	}
	copy_number(o, 2 * N, x, load ? (size_t)n - 1 : 0);
	if (load)
		LAUNCH(s, "load_options", CONFIG(.grid = {1}), ptr(x), ptr(o), tl_int(n), tl_str(cache), tl_str(evict),
		       tl_bool(is_volatile), tl_int(N));
	else
		LAUNCH(s, "store_options", CONFIG(.grid = {1}), ptr(x), ptr(o), tl_int(n), tl_str(cache), tl_str(evict),
		       tl_int(N));
	case_end(s);
}

static void all_options(struct suite *s)
{
	static const char *const caches[] = {"", ".ca", ".cg", ".cs", ".cv"},
		*const store_caches[] = {"", ".wb", ".cg", ".cs", ".wt"},
				 *const evictions[] = {"", "evict_first", "evict_last"};
	static const tl_dtype types[] = {TL_F32, TL_F16, TL_I8, TL_F64, TL_I1};
	for (int t = 0; t < DTYPES; t++)
		scalars(s, (tl_dtype)t);
	for (int t = 0; t < COUNT(types); t++) {
		for (int c = 0; c < COUNT(caches); c++)
			options(s, types[t], true, caches[c], evictions[(c + t) % 3], false);
		for (int c = 0; c < COUNT(store_caches); c++)
			options(s, types[t], false, store_caches[c], evictions[(c + t) % 3], false);
		options(s, types[t], true, "", "", true);
	}
}

/* --- addresses ----------------------------------------------------------------------------------------------- */

/* The pointers handed over lie far from the arrays: only the whole sum is an address. */
static void far(struct suite *s, tl_dtype t, int64_t base)
{
	enum { N = 600 };
	int64_t bytes = base * (int64_t)tl_dtype_size(t);
	if (!case_begin(s, file, "far %s base=%lld", tl_dtype_name(t), (long long)base))
		return;
	struct array *x = in(s, "x", t, N), *o = out(s, "o", t, N);
	for (size_t i = 0; i < N; i++)
		copy_number(o, i, x, i);
	LAUNCH(s, "far", CONFIG(.grid = {3}), tl_ptr(t, (const char *)address(x) - bytes),
	       tl_ptr(t, (const char *)address(o) - bytes), tl_int(N), tl_int(base), tl_int(256));
	case_end(s);
}

static void unsigned_offset(struct suite *s)
{
	const int64_t offset = 0xC0000010;
	if (!case_begin(s, file, "unsigned offset"))
		return;
	struct array *x = in(s, "x", TL_F32, 64), *o = out(s, "o", TL_F32, 64);
	for (size_t i = 0; i < 64; i++)
		copy_number(o, i, x, i);
	LAUNCH(s, "unsigned_offset", CONFIG(.grid = {1}), tl_ptr(TL_F32, (const char *)address(x) - 4 * offset), ptr(o),
	       tl_int_typed(TL_U32, offset), tl_int(64));
	case_end(s);
}

static void table(struct suite *s)
{
	enum { ROWS = 5, N = 33 };
	if (!case_begin(s, file, "table of pointers"))
		return;
	struct array *rows[ROWS], *at = in(s, "table", TL_I64, ROWS), *o = out(s, "o", TL_F16, ROWS * N);
	for (size_t r = 0; r < ROWS; r++) {
		rows[r] = in(s, "row", TL_F16, N);
		set_int(at, r, (int64_t)(uintptr_t)address(rows[r]));
		for (size_t i = 0; i < N; i++)
			copy_number(o, r * N + i, rows[r], i);
	}
	LAUNCH(s, "through_table", CONFIG(.grid = {ROWS}), ptr(at), ptr(o), tl_int(N), tl_int(64));
	case_end(s);
}

static void walk(struct suite *s, tl_dtype t, int stride)
{
	enum { ROWS = 6, N = 128 };
	if (!case_begin(s, file, "walk %s stride=%d", tl_dtype_name(t), stride))
		return;
	struct array *x = in(s, "x", t, (size_t)(ROWS * abs(stride) + N)), *o = out(s, "o", t, ROWS * N);
	for (int r = 0; r < ROWS; r++)
		for (int i = 0; i < N; i++)
			copy_number(o, (size_t)(r * N + i), x, (size_t)((stride < 0 ? r - ROWS + 1 : r) * stride + i));
	LAUNCH(s, "walk", CONFIG(.grid = {1}), ptr(x), ptr(o), tl_int(stride), tl_int(ROWS), tl_int(N));
	case_end(s);
}

static void in_place(struct suite *s, int n, int warps)
{
	if (!case_begin(s, file, "reverse in place n=%d warps=%d", n, warps))
		return;
	struct array *x = inout(s, "x", TL_I32, (size_t)n);
	fill(x, -1000, 1000);
	for (int i = 0; i < n; i++)
		want_int(x, (size_t)i, 2 * (value_int(x, (size_t)(n - 1 - (i ^ 1))) + 1));
	LAUNCH(s, "reverse_in_place", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), tl_int(n));
	case_end(s);
}

static void around_zero(struct suite *s, tl_dtype t, int m, int n, int by, int warps)
{
	if (!case_begin(s, file, "around zero %s %dx%d by=%d warps=%d", tl_dtype_name(t), m, n, by, warps))
		return;
	struct array *x = in(s, "x", t, (size_t)(m * n)), *o = out(s, "o", t, (size_t)(5 * m * n));
	fill(x, 0, 100);
	for (int i = 0; i < m; i++)
		for (int j = 0; j < n; j++) {
			int k = j - n / 2, places[] = {k / 4 + n / 2, k % 8 + n / 2, k / 4 + n / 2, k % by + n / 2, j};
			for (int kind = 0; kind < 5; kind++)
				want(o, (size_t)((kind * m + i) * n + j),
				     kind == 4 && k / 4 >= 0 ? -1 : value(x, (size_t)(i * n + places[kind])));
		}
	LAUNCH(s, "around_zero", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), tl_int(-n / 2), tl_int(by),
	       tl_int(m), tl_int(n));
	case_end(s);
}

static void small_ones(struct suite *s, tl_dtype t)
{
	if (!case_begin(s, file, "fill %s", tl_dtype_name(t)))
		return;
	struct array *o = out(s, "o", t, 100);
	for (size_t i = 0; i < 100; i++)
		want_int(o, i, 1);
	LAUNCH(s, "fill", CONFIG(.grid = {1}), ptr(o), tl_int(100), tl_int(1), tl_int(256));
	case_end(s);
}

static void optional(struct suite *s, bool given)
{
	if (!case_begin(s, file, "optional pointer, %s", given ? "given" : "None"))
		return;
	struct array *x = in(s, "x", TL_I32, 50), *y = in(s, "y", TL_I32, 50), *o = out(s, "o", TL_I32, 50);
	for (size_t i = 0; i < 50; i++)
		want_int(o, i, wrap(TL_I32, value_int(x, i) + (given ? value_int(y, i) : 0)));
	LAUNCH(s, "optional", CONFIG(.grid = {1}), ptr(x), given ? ptr(y) : tl_none(), ptr(o), tl_int(50), tl_int(64));
	case_end(s);
}

static void hinted(struct suite *s, tl_dtype t)
{
	if (!case_begin(s, file, "hints %s", tl_dtype_name(t)))
		return;
	struct array *x = in(s, "x", t, 1000), *o = out(s, "o", t, 1000);
	fill(x, -100, 100);
	for (size_t i = 0; i < 1000; i++)
		want(o, i, is_float(t) ? value(x, i) + 1 : (double)wrap(t, value_int(x, i) + 1));
	LAUNCH(s, "hinted", CONFIG(.grid = {4}), ptr(x), ptr(o), tl_int(1000), tl_int(256));
	case_end(s);
}

static void promised_behind(struct suite *s, tl_dtype t, int first, int block, int warps)
{
	if (!case_begin(s, file, "promised behind %d %s block=%d warps=%d", first, tl_dtype_name(t), block, warps))
		return;
	size_t n = (size_t)block;
	struct array *x = in(s, "x", t, n), *o = out(s, "o", t, 2 * n);
	fill(x, -100, 100);
	for (size_t i = 0; i < n; i++) {
		bool there = i >= (size_t)first;
		if (there)
			copy_number(o, i, x, i);
		want(o, n + i, there ? value(x, i) : -1);
	}
	LAUNCH(s, "promised_behind", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), tl_int(first),
	       tl_int(block));
	case_end(s);
}

static void promised(struct suite *s, tl_dtype t, int n, int steps, int block, int warps)
{
	if (!case_begin(s, file, "promised %s n=%d steps=%d block=%d warps=%d", tl_dtype_name(t), n, steps, block,
			warps))
		return;
	struct array *x = in(s, "x", t, (size_t)(2 * n)), *o = out(s, "o", TL_F32, (size_t)n);
	for (int i = 0; i < 2 * n; i++)
		set(x, (size_t)i, (double)random_int(-50, 50));
	for (int i = 0; i < n; i++)
		want(o, (size_t)i, 2 * ((steps + 1) / 2 * value(x, (size_t)i) + steps / 2 * value(x, (size_t)(i + n))));
	LAUNCH(s, "promised", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), tl_int(n), tl_int(steps),
	       tl_int(block));
	case_end(s);
}

static void repeated_both_ways(struct suite *s, tl_dtype t, int n, int step)
{
	if (!case_begin(s, file, "repeated both ways %s n=%d step=%d", tl_dtype_name(t), n, step))
		return;
	struct array *x = in(s, "x", t, (size_t)(2 * n * n)), *o = out(s, "o", t, (size_t)(n * n));
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			copy_number(o, (size_t)(i * n + j), x, (size_t)((i / step + j / step) * (n + 1)));
	LAUNCH(s, "repeated_both_ways", CONFIG(.grid = {1}), ptr(x), ptr(o), tl_int(n), tl_int(step));
	case_end(s);
}

static void clamped(struct suite *s, tl_dtype t, int n, int steps, int rows, int columns, int warps)
{
	if (!case_begin(s, file, "clamped %s n=%d steps=%d %dx%d warps=%d", tl_dtype_name(t), n, steps, rows, columns,
			warps))
		return;
	struct array *x = in(s, "x", t, (size_t)(steps * rows * n)), *o = out(s, "o", TL_F32, (size_t)(16 * n));
	for (size_t i = 0; i < x->len; i++)
		set(x, i, (double)random_int(-9, 9));
	for (int i = 0; i < 16 * n; i++) {
		double sum = 0;
		for (int k = 0; k < steps * rows; k++)
			sum += value(x, (size_t)(k * n + i % n));
		want(o, (size_t)i, sum);
	}
	LAUNCH(s, "clamped", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), tl_int(n), tl_int(steps),
	       tl_int(rows), tl_int(columns));
	case_end(s);
}

/* --- memory that 32-bit offsets do not reach --------------------------------------------------------------------- */

enum { LAST = 1 << 14 }; /* bytes at the end, all that is touched */

static void check_last(struct suite *s, tl_buffer *b, size_t from, const unsigned char *before, size_t count)
{
	static unsigned char after[LAST];
	size_t size = tl_buffer_size(b);
	if (tl_buffer_read(b, size - LAST, after, LAST))
		case_fail(s, "the end cannot be read");
	for (size_t i = 0; i < LAST; i++) {
		bool is_set = size - LAST + i >= from && size - LAST + i < from + count;
		if (after[i] != (before[i] | (is_set ? 64 : 0))) {
			case_fail(s, "byte %zu from the end is %d and was %d", LAST - i, after[i], before[i]);
			return;
		}
	}
}

/* Of a host only what is touched. */
static tl_buffer *large_buffer(struct suite *s, size_t bytes, void **map)
{
	tl_buffer *b;
	*map = MAP_FAILED;
	if (on_device(s, "cuda"))
		return tl_buffer_create(context(s), bytes, &b) ? NULL : b;
	*map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return *map == MAP_FAILED || tl_buffer_wrap(context(s), *map, bytes, &b) ? NULL : b;
}

static void large(struct suite *s, size_t bytes, int columns)
{
	if (!case_begin(s, file, "large bytes=%zu columns=%d", bytes, columns))
		return;
	unsigned char before[LAST];
	size_t rows = columns ? bytes / (size_t)columns : 0, first = columns ? rows - 24 : bytes / 1024 - 11,
	       from = columns ? first * (size_t)columns : first * 1024;
	void *map;
	tl_buffer *b = large_buffer(s, bytes, &map);
	for (int i = 0; i < LAST; i++)
		before[i] = (unsigned char)random_bits();
	if (!b) {
		case_skip(s, "there is not so much memory");
	} else {
		if (tl_buffer_write(b, bytes - LAST, before, LAST))
			case_fail(s, "the end cannot be written");
		else if (columns)
			LAUNCH(s, "large", CONFIG(.grid = {2}), tl_buf(TL_I8, b), tl_int((int64_t)rows),
			       tl_int(columns), tl_int((int64_t)first), tl_int(16), tl_int(64));
		else
			LAUNCH(s, "large_flat", CONFIG(.grid = {12}), tl_buf(TL_I8, b), tl_int((int64_t)bytes),
			       tl_int((int64_t)first), tl_int(1024));
		check_last(s, b, from, before, columns ? 24 * (size_t)columns : bytes - from);
		tl_buffer_destroy(b);
	}
	if (map != MAP_FAILED)
		munmap(map, bytes);
	case_end(s);
}

void theme_memory(struct suite *s)
{
	large(s, INT32_MAX - 100, 0), large(s, ((size_t)1 << 31) + 5000, 0), large(s, ((size_t)1 << 32) + 3000, 0);
	large(s, ((size_t)1 << 31) + 9100, 300), large(s, ((size_t)1 << 31) - 7, 500);

	static const int lengths[] = {2, 32, 64, 256, 1024, 4096};
	one_axis(s);
	two_axes(s);
	three_axes(s);
	masks_and_indices(s);
	all_options(s);
	for (int t = 0; t < DTYPES; t++) {
		far(s, (tl_dtype)t, 1ll << 33);
		small_ones(s, (tl_dtype)t);
	}
	far(s, TL_F32, (1ll << 31) - 8), far(s, TL_I8, -0x123456789), far(s, TL_F16, 0x7FFFFFFF);
	unsigned_offset(s);
	table(s);
	walk(s, TL_F32, 128), walk(s, TL_F16, 200), walk(s, TL_I8, 129), walk(s, TL_F64, 1), walk(s, TL_F32, 0),
		walk(s, TL_F32, -128);
	for (int k = 0; k < COUNT(lengths); k++)
		in_place(s, lengths[k], 1 << k % 4);
	around_zero(s, TL_F32, 1, 128, 16, 1), around_zero(s, TL_F16, 8, 64, 32, 4),
		around_zero(s, TL_I8, 4, 256, 64, 2), around_zero(s, TL_I32, 16, 32, 16, 8);
	optional(s, true), optional(s, false);
	hinted(s, TL_F32), hinted(s, TL_F16), hinted(s, TL_I64), hinted(s, TL_I16);
	repeated_both_ways(s, TL_F32, 32, 4), repeated_both_ways(s, TL_F16, 64, 2);
	for (int first = 0; first < 40; first += 3)
		promised_behind(s, first % 2 ? TL_F32 : TL_F16, first, 32 << first % 4, 1 << first % 4);
	promised(s, TL_F32, 64, 3, 1024, 1), promised(s, TL_F16, 16, 4, 512, 1), promised(s, TL_I8, 48, 5, 2048, 2);
	clamped(s, TL_F16, 90, 3, 64, 256, 8), clamped(s, TL_F16, 91, 2, 64, 128, 4),
		clamped(s, TL_F8E5M2, 91, 2, 64, 256, 4),
		clamped(s, TL_BF16, 96, 3, 64, 128, 8), clamped(s, TL_F32, 33, 3, 32, 64, 4);
}
