/* Attention of one block of queries, as two dependent products of tiles: tiles of keys and values of any number and
 * distance, in one loop or two. */
#include "themes.h"

static const char file[] = "dot.tl";

/* Rows of d elements. */
struct rows {
	const struct array *a;
	int first, distance;
};

static double row_element(const struct rows *r, int row, int x)
{
	return value(r->a, (size_t)(r->first + row * r->distance + x));
}

/* Row i of softmax(q kᵀ) v into `row`; returns the sum of the exponentials. */
static double attend_row(const struct array *q, struct rows k, struct rows v, int i, int n, int d, double *row)
{
	double *score = malloc((size_t)n * sizeof *score), most = -INFINITY, total = 0;
	for (int j = 0; j < n; j++) {
		score[j] = 0;
		for (int x = 0; x < d; x++)
			score[j] += value(q, (size_t)(i * d + x)) * row_element(&k, j, x);
		most = fmax(most, score[j]);
	}
	for (int x = 0; x < d; x++)
		row[x] = 0;
	for (int j = 0; j < n; j++) {
		double p = exp(score[j] - most);
		total += p;
		for (int x = 0; x < d; x++)
			row[x] += p * row_element(&v, j, x);
	}
	for (int x = 0; x < d; x++)
		row[x] /= total;
	free(score);
	return total;
}

/* `block` keys at a time, or all at once when 0; `ieee`: by multiply-adds. */
static void attend(struct suite *s, tl_dtype t, bool ieee, int m, int n, int d, int block, int stages, int warps)
{
	if (!case_begin(s, file, "attention %s%s m=%d n=%d d=%d block=%d stages=%d warps=%d", tl_dtype_name(t),
			ieee ? " ieee" : "", m, n, d, block, stages,
			warps))
		return;
	struct array *q = in(s, "q", t, (size_t)(m * d)), *k = in(s, "k", t, (size_t)(n * d)),
		*v = in(s, "v", t, (size_t)(n * d)),
		     *o = out(s, "o", TL_F32, (size_t)(m * d)), *sum = out(s, "sum", TL_F32, (size_t)m);
	shaped(o, 2, (int[]){m, d});
	double row[256];
	for (int i = 0; i < m; i++) {
		double total = attend_row(q, (struct rows){k, 0, d}, (struct rows){v, 0, d}, i, n, d, row);
		for (int x = 0; x < d; x++)
			want(o, (size_t)(i * d + x), row[x]);
		if (!block)
			want(sum, (size_t)i, total);
	}
	/* probabilities are rounded to the type of v, averages of numbers below 1; scores of fp32 have tf32's error
	 * times √d */
	double unit = ieee ? 0x1p-22 * sqrt(d) : t == TL_F32 ? 0x1p-11 * sqrt(d) : unit_roundoff(t);
	tolerance(o, 2 * unit, 0);
	tolerance(sum, 0, t == TL_F32 ? 2 * unit : 0x1p-16);
	tl_config *c = CONFIG(.grid = {1}, .num_warps = warps, .num_stages = stages);
	if (block)
		LAUNCH(s, ieee ? "attend_early" : "attend_blocks", c, ptr(q), ptr(k), ptr(v), ptr(o), tl_int(n),
		       tl_int(m), tl_int(block), tl_int(d));
	else
		LAUNCH(s, "attend", c, ptr(q), ptr(k), ptr(v), ptr(o), ptr(sum), tl_int(m), tl_int(n), tl_int(d));
	case_end(s);
}

static void attention(struct suite *s, tl_dtype t, int m, int n, int d, int block, int stages, int warps)
{
	attend(s, t, false, m, n, d, block, stages, warps);
}

/* Loops whose loads are boxes, entered several times. `distances` of rows of k and v in elements; negative: from the
 * end. */
static void attention_rows(struct suite *s, tl_dtype t, int m, int n, int d, int block, const int *distances,
			   int rounds, int stages, int warps)
{
	if (!case_begin(s, file, "attention %s m=%d n=%d d=%d block=%d, rows %d and %d "
			"apart, rounds=%d stages=%d warps=%d", tl_dtype_name(t), m, n, d, block,
			distances[0], distances[1], rounds, stages, warps))
		return;
	enum { BEFORE = 48 };
	int furthest = (int)fmax(abs(distances[0]), abs(distances[1])) * (n - 1),
	    first = BEFORE + (distances[0] < 0 || distances[1] < 0 ? furthest : 0);
	size_t len = (size_t)(first + furthest + d);
	struct array *q = in(s, "q", t, (size_t)(rounds * m * d)), *k = in(s, "k", t, len), *v = in(s, "v", t, len),
		     *o = out(s, "o", TL_F32, (size_t)(rounds * m * d));
	shaped(o, 2, (int[]){rounds * m, d});
	double row[256];
	for (int i = 0; i < rounds * m; i++) {
		attend_row(q, (struct rows){k, first, distances[0]}, (struct rows){v, first, distances[1]}, i, n, d,
			   row);
		for (int x = 0; x < d; x++)
			want(o, (size_t)(i * d + x), row[x]);
	}
	tolerance(o, 2 * (t == TL_F32 ? 0x1p-11 * sqrt(d) : unit_roundoff(t)), 0);
	LAUNCH(s, "attend_rows", CONFIG(.grid = {1}, .num_warps = warps, .num_stages = stages), ptr(q), ptr(k), ptr(v),
	       ptr(o), tl_int(n), tl_int(rounds), tl_int(first), tl_int(distances[0]), tl_int(distances[1]), tl_int(m),
	       tl_int(block), tl_int(d));
	case_end(s);
}

/* Two loops that meet at block `middle`, before key 0 or behind the last one too. */
static void attention_twice(struct suite *s, tl_dtype t, int m, int middle, int last, int d, int block, int stages,
			    int warps)
{
	if (!case_begin(s, file, "attention %s m=%d d=%d block=%d, loops to %d and %d, stages=%d warps=%d",
			tl_dtype_name(t), m, d, block, middle * block, last,
			stages, warps))
		return;
	enum { BEFORE = 48, STRIDE = 128 };
	int begin = middle < 0 ? middle * block : 0, n = (int)fmax(middle * block, last) - begin;
	int first = BEFORE - begin * STRIDE;
	size_t len = (size_t)(BEFORE + n * STRIDE);
	struct array *q = in(s, "q", t, (size_t)(m * d)), *k = in(s, "k", t, len), *v = in(s, "v", t, len),
		*o = out(s, "o", TL_F32, (size_t)(m * d));
	shaped(o, 2, (int[]){m, d});
	double row[256];
	for (int i = 0; i < m; i++) {
		attend_row(q, (struct rows){k, BEFORE, STRIDE}, (struct rows){v, BEFORE, STRIDE}, i, n, d, row);
		for (int x = 0; x < d; x++)
			want(o, (size_t)(i * d + x), row[x]);
	}
	tolerance(o, 2 * (t == TL_F32 ? 0x1p-11 * sqrt(d) : unit_roundoff(t)), 0);
	LAUNCH(s, "attend_twice", CONFIG(.grid = {1}, .num_warps = warps, .num_stages = stages), ptr(q), ptr(k), ptr(v),
	       ptr(o), tl_int(middle), tl_int(last), tl_int(first), tl_int(STRIDE), tl_int(m), tl_int(block),
	       tl_int(d));
	case_end(s);
}

static void attention_copied(struct suite *s, tl_dtype t, int m, int n, int d, int block, int stages, int warps)
{
	if (!case_begin(s, file, "attention %s m=%d n=%d d=%d block=%d of copied keys, stages=%d warps=%d",
			tl_dtype_name(t), m, n, d, block, stages, warps))
		return;
	struct array *q = in(s, "q", t, (size_t)(m * d)), *k = in(s, "k", t, (size_t)(n * d)),
		*v = in(s, "v", t, (size_t)(n * d)),
		     *copy = out(s, "copy", t, (size_t)(n * d)), *o = out(s, "o", TL_F32, (size_t)(m * d));
	shaped(o, 2, (int[]){m, d});
	fill(q, -1, 1), fill(k, -1, 1);
	double row[256];
	for (int i = 0; i < m; i++) {
		attend_row(q, (struct rows){k, 0, d}, (struct rows){v, 0, d}, i, n, d, row);
		for (int x = 0; x < d; x++)
			want(o, (size_t)(i * d + x), row[x]);
	}
	for (int i = 0; i < n * d; i++)
		want(copy, (size_t)i, value(k, (size_t)i));
	tolerance(o, 2 * unit_roundoff(t), 0);
	tolerance(copy, 0, 0);
	LAUNCH(s, "attend_copied", CONFIG(.grid = {1}, .num_warps = warps, .num_stages = stages), ptr(q), ptr(k),
	       ptr(v), ptr(copy), ptr(o), tl_int(n), tl_int(m), tl_int(block), tl_int(d));
	case_end(s);
}

void dot_attention(struct suite *s)
{
	static const tl_dtype half[] = {TL_F16, TL_BF16, TL_F32};
	static const int distances[][2] = {{32, 32},    {64, 80}, {128, 0},   {0, 40},    {64, 64},
					   {-128, 128}, {33, 32}, {4096, 64}, {144, 272}, {32, 64}};
	static const int meetings[][2] = {{0, 100}, {1, 64},  {2, 201}, {6, 250},  {3, 90},
					  {-1, 70}, {4, 128}, {-3, 31}, {-2, -33}, {5, 512}};
	for (int t = 0; t < COUNT(half); t++) {
		attention(s, half[t], 16, 16, 16, 0, 1, 1), attention(s, half[t], 64, 32, 64, 0, 2, 4),
			attention(s, half[t], 128, 64, 32, 0, 3, 8);
		attention(s, half[t], 64, 64, 64, 32, 2, 4), attention(s, half[t], 32, 77, 32, 16, 3, 2),
			attention(s, half[t], 128, 100, 64, 64, 1, 8);
		attention(s, half[t], 16, 5, 32, 16, 4, 1);
		for (int i = 0; i < COUNT(distances); i++)
			attention_rows(s, half[t], 128, 1 + 33 * i, 32 << i % 3, 16 << i % 3, distances[i], 1 + i % 3,
				       2 + i % 4, i == 4 ? 4 : 8);
		for (int i = 0; i < COUNT(meetings); i++)
			attention_twice(s, half[t], 64 << i % 2, meetings[i][0], meetings[i][1], 64, 32, 2 + i % 3,
					i % 2 ? 8 : 4);
		if (half[t] != TL_F32)
			attention_copied(s, half[t], 128, 128, 32, 32, 3, 8),
				attention_copied(s, half[t], 64, 160, 64, 32, 2, 4);
	}
	for (int stages = 1; stages <= 4; stages++)
		attend(s, TL_F32, true, 64, 200, 32, 32, stages, 4),
			attend(s, TL_F32, true, 32, 64, 64, 16, stages, 1 << stages);
}
