/* Block pointers and tensor descriptors: shapes, strides, padding; blocks that lie partly or wholly outside. */
#include <math.h>

#include "themes.h"

static const char file[] = "blocks.tl";

/* Element (m, n) of x, an M × N tensor, into o[i]; padding outside. */
static void want_element(struct array *o, size_t i, const struct array *x, int m, int n, int M, int N, int stride,
			 bool nan)
{
	if (m >= 0 && m < M && n >= 0 && n < N) {
		size_t k = (size_t)m * (size_t)stride + (size_t)n;
		if (is_float(o->dtype))
			want_number(o, i, value(x, k));
		else
			want_int(o, i, value_int(x, k));
	} else if (is_float(o->dtype)) {
		want_number(o, i, nan ? NAN : 0);
	} else {
		want_int(o, i, 0);
	}
}

/* Small integers, of which sums are exact. */
static void small(struct array *x)
{
	for (size_t i = 0; i < x->len; i++)
		set_int(x, i, random_int(-50, 50));
}

static void copy_rows(struct suite *s, tl_dtype t, int M, int N, int stride, int row, int column, int bm, int bn,
		      int steps, bool nan, int warps)
{
	if (!case_begin(s, file, "rows %s %dx%d/%d at %d,%d blocks %dx%d steps=%d%s warps=%d", tl_dtype_name(t), M, N,
			stride, row, column, bm, bn, steps, nan ? " nan" : "", warps))
		return;
	bool rows = row < 0 || row + bm * steps > M, columns = column < 0 || column + bn > N;
	struct array *x = in(s, "x", t, (size_t)(M - 1) * (size_t)stride + (size_t)N),
		     *o = out(s, "o", t, (size_t)(bm * bn * steps));
	for (int m = 0; m < bm * steps; m++)
		for (int n = 0; n < bn; n++)
			want_element(o, (size_t)(m * bn + n), x, row + m, column + n, M, N, stride, nan);
	LAUNCH(s, "copy_rows", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), tl_int(M), tl_int(N),
	       tl_int(stride), tl_int(1), tl_int(bn), tl_int(row), tl_int(column), tl_int(steps), tl_bool(rows),
	       tl_bool(columns), tl_bool(nan), tl_int(bm), tl_int(bn));
	case_end(s);
}

static void store_rows(struct suite *s, tl_dtype t, int M, int N, int stride, int row, int column, int turns, int bm,
		       int bn)
{
	if (!case_begin(s, file, "stores %s %dx%d/%d at %d,%d turns=%d blocks %dx%d", tl_dtype_name(t), M, N, stride,
			row, column, turns, bm, bn))
		return;
	struct array *x = in(s, "x", t, (size_t)(bm * bn)), *o = out(s, "o", t, (size_t)M * (size_t)stride);
	small(x);
	int c = column + (turns % 2 ? bn : -bn);
	for (int turn = 0; turn <= turns; turn += turns ? turns : 1)
		for (int m = 0; m < bm; m++)
			for (int n = 0; n < bn; n++) {
				int at = row + turn * bm + m;
				if (at < 0 || at >= M || c + n < 0 || c + n >= N)
					continue;
				size_t i = (size_t)at * (size_t)stride + (size_t)(c + n);
				want_int(o, i, value_int(x, (size_t)(m * bn + n)) + turn);
			}
	LAUNCH(s, "store_rows", CONFIG(.grid = {1}), ptr(x), ptr(o), tl_int(M), tl_int(N), tl_int(stride), tl_int(row),
	       tl_int(column), tl_int(turns), tl_int(bm), tl_int(bn));
	case_end(s);
}

static void copy_dims(struct suite *s, tl_dtype t, int rank, const int *size, const int *at, const int *block)
{
	if (!case_begin(s, file, "rank %d %s %dx%dx%d at %d,%d,%d blocks %dx%dx%d", rank, tl_dtype_name(t), size[0],
			size[1], size[2], at[0], at[1], at[2], block[0], block[1], block[2]))
		return;
	struct array *x = in(s, "x", t, (size_t)(size[0] * size[1] * size[2])),
		     *o = out(s, "o", t, (size_t)(rank == 1 ? block[2] : block[0] * block[1] * block[2]));
	for (int i = 0; i < (int)o->len; i++) {
		int a = rank == 1 ? 0 : at[0] + i / block[2] / block[1],
		    b = rank == 1 ? 0 : at[1] + i / block[2] % block[1];
		bool inside = a >= 0 && a < size[0] && b >= 0 && b < size[1];
		want_element(o, (size_t)i, x, inside ? a * size[1] + b : -1, at[2] + i % block[2], size[0] * size[1],
			     size[2], size[2], false);
	}
	LAUNCH(s, "copy_dims", CONFIG(.grid = {1}), ptr(x), ptr(o), tl_int(size[0]), tl_int(size[1]), tl_int(size[2]),
	       tl_int(size[1] * size[2]), tl_int(size[2]), tl_int(at[0]), tl_int(at[1]), tl_int(at[2]), tl_int(rank),
	       tl_int(block[0]), tl_int(block[1]), tl_int(block[2]));
	case_end(s);
}

static void descriptors(struct suite *s, tl_dtype t, int M, int N, int row, int column, int bm, int bn, int steps,
			bool nan)
{
	if (!case_begin(s, file, "descriptors %s %dx%d at %d,%d blocks %dx%d steps=%d%s", tl_dtype_name(t), M, N, row,
			column, bm, bn, steps, nan ? " nan" : ""))
		return;
	struct array *x = in(s, "x", t, (size_t)(M * N)), *o = out(s, "o", t, (size_t)(bm * bn * steps));
	for (int m = 0; m < bm * steps; m++)
		for (int n = 0; n < bn; n++)
			want_element(o, (size_t)(m * bn + n), x, row + m, column + n, M, N, N, nan);
	LAUNCH(s, "descriptors", CONFIG(.grid = {1}), ptr(x), ptr(o), tl_int(M), tl_int(N), tl_int(N), tl_int(bn),
	       tl_int(row), tl_int(column), tl_int(steps), tl_bool(nan), tl_int(bm), tl_int(bn));
	case_end(s);
}

static void descriptor_rows(struct suite *s, tl_dtype t, int M, int N, int column, int rows, int bn)
{
	if (!case_begin(s, file, "gather and scatter %s %dx%d column %d, %d rows of %d", tl_dtype_name(t), M, N, column,
			rows, bn))
		return;
	struct array *x = in(s, "x", t, (size_t)(M * N)), *o = out(s, "o", t, (size_t)(M * N)),
		     *at = in(s, "rows", TL_I32, (size_t)rows);
	small(x);
	for (int r = 0; r < rows; r++) { /* each once, and some outside */
		int m = (r * 7 + 3) % (M + 2) - 1;
		set_int(at, (size_t)r, m);
		for (int n = column; n < column + bn && m >= 0 && m < M; n++)
			if (n >= 0 && n < N)
				want_int(o, (size_t)(m * N + n), value_int(x, (size_t)(m * N + n)) + 1);
	}
	LAUNCH(s, "descriptor_rows", CONFIG(.grid = {1}), ptr(x), ptr(o), ptr(at), tl_int(M), tl_int(N), tl_int(N),
	       tl_int(column), tl_int(rows), tl_int(bn));
	case_end(s);
}

static void descriptor_atomics(struct suite *s, tl_dtype t, int kind, int M, int N, int row, int column, int bm, int bn)
{
	if (!case_begin(s, file, "atomics %d %s %dx%d at %d,%d blocks %dx%d", kind, tl_dtype_name(t), M, N, row, column,
			bm, bn))
		return;
	struct array *x = in(s, "x", t, (size_t)(bm * bn)), *o = inout(s, "o", t, (size_t)(M * N));
	small(x);
	for (int i = 0; i < M * N; i++) {
		int64_t old = random_int(-50, 50), m = i / N - row, n = i % N - column;
		bool hit = m >= 0 && m < bm && n >= 0 && n < bn;
		int64_t v = hit ? value_int(x, (size_t)(m * bn + n)) : 0;
		bool less = t == TL_U64 ? (uint64_t)old < (uint64_t)v : old < v;
		set_int(o, (size_t)i, old);
		want_int(o, (size_t)i,
			 !hit        ? old
			 : kind == 0 ? old + v
			 : kind == 1 ? (less ? v : old)
			 : kind == 2 ? (less ? old : v)
			 : kind == 3 ? (old & v)
			 : kind == 4 ? (old | v)
				     : (old ^ v));
	}
	LAUNCH(s, "descriptor_atomics", CONFIG(.grid = {1}), ptr(x), ptr(o), tl_int(M), tl_int(N), tl_int(row),
	       tl_int(column), tl_int(kind), tl_int(bm), tl_int(bn));
	case_end(s);
}

struct product {
	tl_dtype type;
	int kind, M, N, K, pad; /* elements between rows */
	int row, column, start;
	int bm, bn, bk, programs, warps, stages;
	int ctas; /* that run the programs; 0: one each */
};

static void product(struct suite *s, const struct product *p)
{
	int rows = p->bm * p->programs, columns = p->bn * 2, sa = p->K + p->pad,
	    sb = (p->kind == 2 ? p->K : p->N) + p->pad;
	bool turned = p->kind == 2;
	if (!case_begin(
		    s, file,
		    "product %d %s %dx%dx%d+%d from %d,%d,%d blocks %dx%dx%d programs=%d ctas=%d warps=%d stages=%d",
		    p->kind, tl_dtype_name(p->type), p->M, p->N, p->K, p->pad, p->row, p->column, p->start, p->bm,
		    p->bn, p->bk, p->programs, p->ctas, p->warps, p->stages))
		return;
	struct array *a = in(s, "a", p->type, (size_t)p->M * (size_t)sa),
		     *b = in(s, "b", p->type, (size_t)(turned ? p->N : p->K) * (size_t)sb),
		     *c = out(s, "c", p->type == TL_I8 ? TL_I32 : TL_F32, (size_t)rows * (size_t)columns);
	for (size_t i = 0; i < a->len; i++)
		set_int(a, i, random_int(-4, 4));
	for (size_t i = 0; i < b->len; i++)
		set_int(b, i, random_int(-4, 4));
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < columns; j++) {
			int m = p->row + i, n = p->column + j;
			int64_t sum = 0;
			for (int k = p->start < 0 ? 0 : p->start; k < p->K && m >= 0 && m < p->M && n >= 0 && n < p->N;
			     k++)
				sum += value_int(a, (size_t)m * (size_t)sa + (size_t)k) *
				       value_int(b, turned ? (size_t)n * (size_t)sb + (size_t)k
							   : (size_t)k * (size_t)sb + (size_t)n);
			want_int(c, (size_t)i * (size_t)columns + (size_t)j, sum);
		}
	LAUNCH(s, "product",
	       CONFIG(.grid = {(unsigned)p->programs, 2}, .num_warps = p->warps, .num_stages = p->stages,
		      .max_ctas = p->ctas),
	       ptr(a), ptr(b), ptr(c), tl_int(p->M), tl_int(p->N), tl_int(p->K), tl_int(sa), tl_int(sb), tl_int(p->row),
	       tl_int(p->column), tl_int(p->start), tl_int(p->kind), tl_int(p->bm), tl_int(p->bn), tl_int(p->bk));
	case_end(s);
}

/* Loads of blocks in loops of dots, which sm_90a copies by TMA: tensors of any size, and rows that no tensor map can
 * describe. */
static void products(struct suite *s)
{
	static const tl_dtype types[] = {TL_F16, TL_BF16, TL_F32, TL_I8, TL_F16, TL_F8E4M3};
	for (int k = 0; k < 48; k++) {
		int bytes = (int)tl_dtype_size(types[k % COUNT(types)]), whole = 16 / bytes;
		struct product p = {.type = types[k % COUNT(types)],
				    .kind = k / 2 % 4,
				    .M = (int)random_int(1, 150),
				    .N = (int)random_int(1, 20) * whole,
				    .K = (int)random_int(1, 20) * whole,
				    .pad = k % 9 == 4 ? whole / 2 : (int)random_int(0, 2) * whole,
				    .bm = 64 << k % 2,
				    .bn = 64 << k / 3 % 2,
				    .bk = (k % 5 ? 64 : 128) / bytes,
				    .programs = (int)random_int(1, 2),
				    .warps = 4 << k % 2,
				    .stages = (int)random_int(1, 4)};
		if (k % 4 == 1) {
			p.programs = 3;
			p.ctas = 2;
		}
		if (k % 3) {
			p.row = (int)random_int(-80, 80);
			p.column = (int)random_int(-80, 80);
			p.start = (int)random_int(-60, 60);
		}
		product(s, &p);
	}
}

void theme_blocks(struct suite *s)
{
	static const tl_dtype reduced[] = {TL_I32, TL_U64, TL_F16, TL_BF16};
	static const tl_dtype types[] = {TL_F32, TL_F16, TL_BF16, TL_I32, TL_I8, TL_I64, TL_F64, TL_U16};
	static const int places[][2] = {{0, 0}, {3, 5}, {-7, 0}, {0, -9}, {60, 90}, {-40, -40}, {1000, 0}};
	products(s);
	for (int t = 0; t < COUNT(types); t++)
		for (int k = 0; k < COUNT(places); k++) {
			int row = places[k][0], column = places[k][1];
			copy_rows(s, types[t], 70, 96, t % 2 ? 96 : 101, row, column, 16 << k % 2, 32, 1 + k % 3,
				  is_float(types[t]) && k % 2, 1 << k % 3);
			descriptors(s, types[t], 70, 96, row, column, 16, 32, 1 + k % 4, is_float(types[t]) && k % 2);
		}
	copy_rows(s, TL_F16, 256, 128, 128, 0, 0, 64, 128, 4, false, 4);
	copy_rows(s, TL_F32, 64, 64, 64, 16, 32, 16, 32, 2, false, 4);
	for (int turns = 2; turns < 6; turns++)
		for (int k = 0; k < COUNT(places); k++)
			store_rows(s, types[turns % 4], 40, 72, 80, places[k][0], places[k][1], turns, 16, 32);
	for (int k = 0; k < 12; k++) {
		int size[] = {(int)random_int(1, 9), (int)random_int(1, 20), (int)random_int(1, 70)},
		    at[] = {(int)random_int(-3, 6), (int)random_int(-5, 12), (int)random_int(-20, 50)};
		copy_dims(s, types[k % COUNT(types)], k % 3 ? 3 : 1, size, at, (int[]){1 << k % 4, 8, 16 << k % 2});
	}
	for (int k = 0; k < 6; k++)
		descriptor_rows(s, types[k % 4], 20 + k, 64, k * 16 - 16, 8, 32);
	for (int kind = 0; kind < 6; kind++)
		for (int k = 0; k < 3; k++)
			for (int t = 0; t < (kind < 3 ? COUNT(reduced) : 2); t++)
				descriptor_atomics(s, reduced[t], kind, 30, 44, places[k + 1][0], places[k + 1][1], 16,
						   32);
}
