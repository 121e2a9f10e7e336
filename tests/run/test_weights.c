/* Products of packed and scaled weights, and of rows found through a table. Whole numbers, so results are exact. */
#include "themes.h"

static const char file[] = "weights.tl";

static void fill_few(struct array *x, int most)
{
	for (size_t i = 0; i < x->len; i++)
		set(x, i, (double)random_int(-most, most));
}

struct shape {
	int m, n, k, bm, bn, bk;
};

static const char *shape_name(char *text, const struct shape *h)
{
	sprintf(text, "%dx%dx%d by %dx%dx%d", h->m, h->n, h->k, h->bm, h->bn, h->bk);
	return text;
}

#define GRID(h) {(uint32_t)cdiv((h)->m, (h)->bm), (uint32_t)cdiv((h)->n, (h)->bn)}
#define SIZES(h) tl_int((h)->m), tl_int((h)->n), tl_int((h)->k)
#define BLOCKS(h) tl_int((h)->bm), tl_int((h)->bn), tl_int((h)->bk)

static void packed(struct suite *s, tl_dtype t, tl_dtype word, int bits, const struct shape *h, int stages, int warps)
{
	char text[80];
	int per = bits_of(word) / bits, group = 64, rows = cdiv(h->k, per), mask = (1 << bits) - 1;
	if (!case_begin(s, file, "packed %d bits in %s, %s %s stages=%d warps=%d", bits, tl_dtype_name(word),
			tl_dtype_name(t), shape_name(text, h), stages, warps))
		return;
	struct array *x = in(s, "x", t, (size_t)(h->m * h->k)), *w = in(s, "w", word, (size_t)(rows * h->n));
	struct array *scale = in(s, "scale", t, (size_t)(cdiv(h->k, group) * h->n)),
		*o = out(s, "out", TL_F32, (size_t)(h->m * h->n));
	fill_few(x, 9), fill_few(scale, 3), fill_bits(w);
	for (int i = 0; i < h->m; i++)
		for (int j = 0; j < h->n; j++) {
			double sum = 0;
			for (int k = 0; k < h->k; k++) {
				int64_t v = value_int(w, (size_t)(k / per * h->n + j)) >> (k % per * bits) & mask;
				sum += value(x, (size_t)(i * h->k + k)) * (double)(v - (1 << (bits - 1))) *
				       value(scale, (size_t)(k / group * h->n + j));
			}
			want(o, (size_t)(i * h->n + j), sum);
		}
	LAUNCH(s, "packed", CONFIG(.grid = GRID(h), .num_warps = warps, .num_stages = stages), ptr(x), ptr(w),
	       ptr(scale), ptr(o), SIZES(h), tl_int(bits), tl_int(per), tl_int(group), BLOCKS(h), tl_int(stages));
	case_end(s);
}

static void bytes(struct suite *s, tl_dtype t, tl_dtype byte, const struct shape *h, int stages, int warps)
{
	char text[80];
	if (!case_begin(s, file, "%s times %s %s stages=%d warps=%d", tl_dtype_name(t), tl_dtype_name(byte),
			shape_name(text, h), stages, warps))
		return;
	struct array *x = in(s, "x", t, (size_t)(h->m * h->k)), *w = in(s, "w", byte, (size_t)(h->k * h->n));
	struct array *scale = in(s, "scale", TL_F32, (size_t)h->n), *o = out(s, "out", TL_F32, (size_t)(h->m * h->n));
	fill_few(x, 9), fill_few(scale, 3), fill_bits(w);
	for (int i = 0; i < h->m; i++)
		for (int j = 0; j < h->n; j++) {
			double sum = 0;
			for (int k = 0; k < h->k; k++)
				sum += value(x, (size_t)(i * h->k + k)) * (double)value_int(w, (size_t)(k * h->n + j));
			want(o, (size_t)(i * h->n + j), sum * value(scale, (size_t)j));
		}
	LAUNCH(s, "bytes", CONFIG(.grid = GRID(h), .num_warps = warps, .num_stages = stages), ptr(x), ptr(w),
	       ptr(scale), ptr(o), SIZES(h), BLOCKS(h), tl_int(stages));
	case_end(s);
}

/* The benchmark's product of few rows (tests/bench/workloads.tl), by several programs for each tile, the last of which
 * adds up. */
static void few_rows(struct suite *s, int bits, int m, int bn, int splits, int stages, int warps)
{
	enum { N = 256, K = 1024, BM = 16, BK = 128 };
	if (!case_begin(s, "../bench/workloads.tl", "few rows %d bits m=%d bn=%d splits=%d stages=%d warps=%d", bits, m,
			bn, splits, stages, warps))
		return;
	int per = bits == 8 ? 1 : 8;
	struct array *x = in(s, "x", TL_F16, (size_t)(m * K)),
		     *w = in(s, "w", bits == 8 ? TL_I8 : TL_I32, (size_t)(K / per * N)),
		     *scale = in(s, "scale", bits == 8 ? TL_F32 : TL_F16, (size_t)(bits == 8 ? N : K / BK * N)),
		     *o = out(s, "out", TL_F16, (size_t)(m * N)),
		     *part = out(s, "part", TL_F32, (size_t)(splits * BM * N)),
		     *count = inout(s, "count", TL_I32, (size_t)(N / bn));
	fill_few(x, 2), fill_few(scale, 3), fill(count, 0, 0);
	if (bits == 8)
		fill(w, -8, 7);
	for (int i = 0; i < N / bn; i++)
		want(count, (size_t)i, 0);
	for (int i = 0; i < m; i++)
		for (int j = 0; j < N; j++) {
			double sum = 0, share = 0;
			for (int k = 0; k < K; k++) {
				int64_t v = value_int(w, (size_t)(k / per * N + j));
				double f = bits == 8 ? (double)v
						     : (double)((v >> (k % 8 * 4) & 15) - 8) *
							       value(scale, (size_t)(k / BK * N + j));
				share += value(x, (size_t)(i * K + k)) * f;
				if ((k + 1) % (K / splits))
					continue;
				int at = ((j / bn * splits + k / (K / splits)) * BM + i) * bn + j % bn;
				if (splits > 1)
					want(part, (size_t)at, share);
				sum += share, share = 0;
			}
			want(o, (size_t)(i * N + j), bits == 8 ? sum * value(scale, (size_t)j) : sum);
		}
	LAUNCH(s, "few_rows_kernel",
	       CONFIG(.grid = {(uint32_t)(N / bn), (uint32_t)splits}, .num_warps = warps, .num_stages = stages), ptr(x),
	       ptr(w), ptr(scale), ptr(o), ptr(part), ptr(count), tl_int(m), tl_int(N), tl_int(K), tl_int(BM),
	       tl_int(bn), tl_int(BK), tl_int(bits), tl_int(splits));
	case_end(s);
}

/* The table ends where the loop does: what is loaded ahead of it must not go further. */
static void paged(struct suite *s, tl_dtype t, int length, int d, int page, int stages, int warps)
{
	if (!case_begin(s, file, "paged %s %d of %d by %d stages=%d warps=%d", tl_dtype_name(t), length, d, page,
			stages, warps))
		return;
	int n = cdiv(length, page), pages = n + 3;
	struct array *x = in(s, "x", t, (size_t)(16 * length)), *y = in(s, "page", t, (size_t)(pages * page * d));
	struct array *table = in(s, "table", TL_I32, (size_t)n), *scale = in(s, "scale", TL_F32, (size_t)n),
		*o = out(s, "out", TL_F32, (size_t)(16 * d));
	fill_few(x, 9), fill_few(y, 9), fill_few(scale, 3);
	for (int i = 0; i < n; i++)
		set(table, (size_t)i, (double)random_int(0, pages - 1));
	for (int i = 0; i < 16; i++)
		for (int j = 0; j < d; j++) {
			double sum = 0;
			for (int k = 0; k < length; k++) {
				int64_t row = value_int(table, (size_t)(k / page)) * page + k % page;
				sum += value(x, (size_t)(i * length + k)) * value(y, (size_t)(row * d + j)) *
				       value(scale, (size_t)(k / page));
			}
			want(o, (size_t)(i * d + j), sum);
		}
	LAUNCH(s, "paged", CONFIG(.grid = {1}, .num_warps = warps, .num_stages = stages), ptr(x), ptr(y), ptr(table),
	       ptr(scale), ptr(o), tl_int(length), tl_int(d), tl_int(page), tl_int(stages));
	case_end(s);
}

/* A program that loads the next number itself: that is not moved further ahead, where the table has ended. */
static void prefetched(struct suite *s, tl_dtype t, int n, int d, int stages, int warps)
{
	if (!case_begin(s, file, "prefetched %s %d of %d stages=%d warps=%d", tl_dtype_name(t), n, d, stages, warps))
		return;
	int pages = 5;
	struct array *table = in(s, "table", TL_I32, (size_t)(n + 1)), *y = in(s, "page", t, (size_t)(pages * d * d)),
		*o = out(s, "out", TL_F32, (size_t)(d * d));
	fill_few(y, 9);
	for (int i = 0; i <= n; i++)
		set(table, (size_t)i, (double)random_int(0, pages - 1));
	for (int a = 0; a < d; a++)
		for (int b = 0; b < d; b++) {
			double sum = 0;
			for (int i = 0; i < n; i++)
				for (int k = 0; k < d; k++)
					sum += value(y, (size_t)(value_int(table, (size_t)i) * d * d + a * d + k)) *
					       value(y, (size_t)(value_int(table, (size_t)i) * d * d + b * d + k));
			want(o, (size_t)(a * d + b), sum);
		}
	LAUNCH(s, "prefetched", CONFIG(.grid = {1}, .num_warps = warps, .num_stages = stages), ptr(table), ptr(y),
	       ptr(o), tl_int(n), tl_int(d), tl_int(stages));
	case_end(s);
}

/* Pages that two dots take, as they are and transposed; `known`: the distance of their rows is. */
static void both_ways(struct suite *s, tl_dtype t, int rows, int n, int d, int page, bool known, int stages, int warps)
{
	if (!case_begin(s, file, "both ways %s %dx%d times %d of %dx%d%s stages=%d warps=%d", tl_dtype_name(t), rows, d,
			n, page, d, known ? "" : " apart", stages, warps))
		return;
	enum { PAGES = 4 };
	struct array *q = in(s, "q", t, (size_t)(rows * d)), *p = in(s, "page", t, (size_t)(PAGES * page * d)),
		*table = in(s, "table", TL_I32, (size_t)n);
	struct array *o = out(s, "out", TL_F32, (size_t)(rows * d));
	fill_few(q, 1), fill_few(p, 1);
	for (int i = 0; i < n; i++)
		set(table, (size_t)i, (double)random_int(0, PAGES - 1));
	for (int i = 0; i < rows; i++) {
		double total[128] = {0};
		for (int k = 0; k < n * page; k++) {
			size_t row = (size_t)((int)value_int(table, (size_t)(k / page)) * page + k % page) * (size_t)d;
			double sum = 0;
			for (int j = 0; j < d; j++)
				sum += value(q, (size_t)(i * d + j)) * value(p, row + (size_t)j);
			for (int j = 0; j < d; j++)
				total[j] += sum * value(p, row + (size_t)j);
		}
		for (int j = 0; j < d; j++)
			want(o, (size_t)(i * d + j), total[j]);
	}
	LAUNCH(s, "both_ways", CONFIG(.grid = {1}, .num_warps = warps, .num_stages = stages), ptr(q), ptr(p),
	       ptr(table), ptr(o), tl_int(n), tl_int(2 * d), tl_int(rows), tl_int(d), tl_int(page), tl_int(known),
	       tl_int(stages));
	case_end(s);
}

static void recurrence(struct suite *s, int n, int d, int e, int warps)
{
	if (!case_begin(s, file, "recurrence %d steps of %dx%d warps=%d", n, d, e, warps))
		return;
	struct array *x = in(s, "x", TL_F32, (size_t)(n * d)), *y = in(s, "y", TL_F32, (size_t)(n * e)),
		*z = in(s, "z", TL_F32, (size_t)(n * d));
	struct array *decay = in(s, "decay", TL_F32, (size_t)n), *o = out(s, "out", TL_F32, (size_t)(n * e));
	fill_few(x, 3), fill_few(y, 3), fill_few(z, 3), fill_few(decay, 1);
	for (int k = 0; k < e; k++)
		for (int t = 0; t < n; t++) {
			double sum = 0;
			for (int i = 0; i < d; i++) {
				double state = 0;
				for (int past = 0; past <= t; past++)
					state = state * value(decay, (size_t)past) +
						value(x, (size_t)(past * d + i)) * value(y, (size_t)(past * e + k));
				sum += state * value(z, (size_t)(t * d + i));
			}
			want(o, (size_t)(t * e + k), sum);
		}
	LAUNCH(s, "recurrence", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(y), ptr(z), ptr(decay), ptr(o),
	       tl_int(n), tl_int(d), tl_int(e));
	case_end(s);
}

void theme_weights(struct suite *s)
{
	static const struct shape shapes[] = {{16, 64, 256, 16, 32, 64},
					      {5, 40, 192, 16, 16, 64},
					      {70, 136, 128, 64, 64, 64},
					      {128, 64, 192, 128, 64, 32}};
	static const tl_dtype types[] = {TL_F16, TL_BF16};
	int c = 0;
	for (int i = 0; i < COUNT(shapes); i++)
		for (int t = 0; t < COUNT(types); t++)
			for (int stages = 1; stages <= 4; stages++, c++) {
				int warps = 1 << (c + i) % 4;
				packed(s, types[t], TL_I32, 4, &shapes[i], stages, warps);
				packed(s, types[t], TL_U8, stages % 2 ? 2 : 4, &shapes[i], stages, warps);
				bytes(s, types[t], c % 3 ? TL_I8 : TL_U8, &shapes[i], stages, warps);
			}
	for (int stages = 1; stages <= 4; stages++)
		for (int i = 0; i < 4; i++, c++) {
			static const int lengths[] = {200, 64, 31, 0};
			paged(s, types[c % 2], lengths[i], 64 << c % 2, 32 << i % 2, stages, 1 << c % 4);
			prefetched(s, types[c % 2], i * 2, 64, stages, 4 << c % 2);
		}
	for (int stages = 1; stages <= 3; stages++)
		for (int i = 0; i < 12; i++, c++) {
			static const int rows[] = {8, 16, 32, 64};
			both_ways(s, types[c % 2], rows[(i + stages) % 4], i % 4 * 2, 64 << c / 2 % 2, 32 << i / 3 % 2,
				  i < 6, stages, 4 << i / 2 % 2);
		}
	for (int i = 0; i < 8; i++)
		few_rows(s, i % 2 ? 4 : 8, i % 3 ? 16 : 1, 32 << i % 3, 1 << i / 2, 2 + i % 3, 4);
	for (int i = 0; i < 8; i++)
		recurrence(s, i * 3, 32 << i % 3, 8 << i / 3, 1 << i / 2);
}
