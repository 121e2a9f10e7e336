/* Values known at compile time, and Python's forms around them. */
#include "themes.h"

static const char file[] = "values.tl";

static void returns(struct suite *s, int n, int low, int high)
{
	enum { WIDE = 64, NARROW = 16 };
	if (!case_begin(s, file, "returns n=%d in %d to %d", n, low, high))
		return;
	struct array *x = in(s, "x", TL_I32, WIDE), *o = out(s, "o", TL_I32, WIDE + NARROW);
	fill(x, -99, 99);
	for (size_t i = 0; i < WIDE; i++)
		want(o, i, value(x, i) * ((n > 0) - (n < 0)) + (n < low ? low : n > high ? high : n));
	for (size_t i = 0; i < NARROW; i++)
		want(o, WIDE + i, cdiv(100, NARROW));
	LAUNCH(s, "returns", CONFIG(.grid = {1}), ptr(x), ptr(o), tl_int(n), tl_int(low), tl_int(high));
	case_end(s);
}

static void known(struct suite *s, int rows, int size, int warps)
{
	enum { COLUMNS = 16 };
	if (!case_begin(s, file, "known rows=%d size=%d warps=%d", rows, size, warps))
		return;
	size_t n = (size_t)size * COLUMNS;
	struct array *x = in(s, "x", TL_I32, n * (size_t)rows + 1), *o = out(s, "o", TL_I32, n + (size_t)size);
	fill(x, -999, 999);
	for (size_t i = 0; i < (size_t)size; i++) {
		double line = 0;
		for (size_t k = i * COLUMNS; k < (i + 1) * COLUMNS; k++) {
			double sum = 0;
			for (size_t r = 0; r < (size_t)rows; r++)
				sum += value(x, r * n + k);
			want(o, k, sum);
			line += sum;
		}
		want(o, n + i, line);
	}
	LAUNCH(s, "known", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), tl_int(rows), tl_int(size));
	case_end(s);
}

static void forms(struct suite *s, int n, int order, int warps)
{
	enum { BLOCK = 64 };
	if (!case_begin(s, file, "forms n=%d order=%d warps=%d", n, order, warps))
		return;
	struct array *x = in(s, "x", TL_I32, (size_t)(BLOCK + order)), *o = out(s, "o", TL_I32, BLOCK + 5);
	fill(x, -99, 99);
	for (int i = 0; i < BLOCK; i++) {
		double sum = 0, binomial = 1;
		for (int k = 0; k <= order; k++) {
			sum += binomial * value(x, (size_t)(i + k));
			binomial = binomial * (order - k) / (k + 1);
		}
		want(o, (size_t)i, sum);
	}
	int steps = 0;
	for (int64_t v = n % 2 ? 3 * n + 1 : n / 2; v > 1; v = v % 2 ? 3 * v + 1 : v / 2) {
		steps++;
		if (v % 5 == 0)
			want(o, BLOCK + 1, (double)v);
		else
			want(o, v % 5 > 2 ? BLOCK + 2 : BLOCK + 3, (double)(v % 5));
	}
	want(o, BLOCK, steps);
	want(o, BLOCK + 4, value(x, 0) + 1);
	LAUNCH(s, "forms", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), tl_int(n), tl_int(order),
	       tl_int(BLOCK));
	case_end(s);
}

void theme_values(struct suite *s)
{
	for (int n = -40; n <= 40; n += 20)
		returns(s, n, -30, 20);
	returns(s, 7, 7, 7);
	for (int rows = 0; rows <= 5; rows += 5)
		known(s, rows, 8 << (rows / 5), rows ? 4 : 1);
	for (int n = 2; n < 30; n += 9)
		forms(s, n, n % 6, n % 2 ? 4 : 1);
}
