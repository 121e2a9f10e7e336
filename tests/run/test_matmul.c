/* Matrix products in tiles, as the tutorials and inference engines write them. Whole numbers, so results are exact. */
#include "themes.h"

static const char file[] = "matmul.tl";

static const struct operand {
	tl_dtype in, acc, out;
	int most; /* whole numbers up to this stay exact over k ≤ 256 */
} types[] = {
	{TL_F16, TL_F32, TL_F32, 60}, {TL_BF16, TL_F32, TL_F32, 60}, {TL_F32, TL_F32, TL_F32, 60},
		{TL_I8, TL_I32, TL_I32, 128},
	{TL_F16, TL_F32, TL_F16, 2},  {TL_F8E4M3, TL_F32, TL_F32, 4}, {TL_F64, TL_F64, TL_F64, 9999},
		{TL_F8E5M2, TL_F32, TL_F16, 2},
	{TL_BF16, TL_F32, TL_BF16, 60}, /* rounded once, at the end */
};

/* How a matrix lies in memory: row-major, column-major, or with gaps on both axes. */
enum lie { ROWS, COLUMNS, GAPS };
static const char *const lies[] = {"rows", "columns", "gaps"};

struct matrix {
	struct array *x;
	int row, column, batch; /* elements from one to the next */
};

static void strides(enum lie lie, int m, int n, struct matrix *out)
{
	out->row = lie == COLUMNS ? 1 : lie == ROWS ? n : 2 * n + 5;
	out->column = lie == COLUMNS ? m : lie == ROWS ? 1 : 2;
}

static size_t extent(const struct matrix *x, int m, int n)
{
	return m && n ? (size_t)((m - 1) * x->row + (n - 1) * x->column + 1) : 1;
}

/* One behind the other. */
static struct matrix operands(struct suite *s, const char *name, tl_dtype t, enum lie lie, int batches, int m, int n,
			      int most)
{
	struct matrix r = {0};
	strides(lie, m, n, &r);
	r.batch = (int)extent(&r, m, n);
	r.x = in(s, name, t, (size_t)(batches * r.batch));
	fill_whole(r.x, most);
	return r;
}

static struct matrix operand(struct suite *s, const char *name, tl_dtype t, enum lie lie, int m, int n, int most)
{
	return operands(s, name, t, lie, 1, m, n, most);
}

static double at_in(int batch, const struct matrix *x, int i, int j)
{
	return value(x->x, (size_t)(batch * x->batch + i * x->row + j * x->column));
}

static double at(const struct matrix *x, int i, int j) { return at_in(0, x, i, j); }

static double dot_in(int batch, const struct matrix *a, const struct matrix *b, int i, int j, int k)
{
	double sum = 0;
	for (int x = 0; x < k; x++)
		sum += at_in(batch, a, i, x) * at_in(batch, b, x, j);
	return sum;
}

static double dot(const struct matrix *a, const struct matrix *b, int i, int j, int k)
{
	return dot_in(0, a, b, i, j, k);
}

struct shape {
	int m, n, k, bm, bn, bk;
};

/* Of each batch the product, `distance` elements behind that of the one before. */
static void want_products(struct array *c, int distance, const struct matrix *a, const struct matrix *b,
			  const struct shape *h, int batches)
{
	for (int z = 0; z < batches; z++)
		for (int i = 0; i < h->m * h->n; i++)
			want(c, (size_t)(z * distance + i), dot_in(z, a, b, i / h->n, i % h->n, h->k));
}

static const char *shape_name(char *text, const struct shape *h)
{
	sprintf(text, "%dx%dx%d by %dx%dx%d", h->m, h->n, h->k, h->bm, h->bn, h->bk);
	return text;
}

#define BLOCKS(h) tl_int((h)->bm), tl_int((h)->bn), tl_int((h)->bk)
#define SIZES(h) tl_int((h)->m), tl_int((h)->n), tl_int((h)->k)

static double activate(const char *name, double v) { return !name ? v : !strcmp(name, "add_one") ? v + 1 : v * v; }

static void matmul(struct suite *s, const struct operand *t, const struct shape *h, const char *form, const char *order,
		   enum lie la, enum lie lb, enum lie lc, int stages, int warps)
{
	char text[80];
	const char *act = h->k % 3 == 0 && t->most <= 60 && t->in != TL_BF16 ? h->m % 2 ? "add_one"
		: t->out == TL_F32 && t->most < 60 ? "square" : NULL : NULL;
	if (!case_begin(s, file, "%s to %s %s %s %s a=%s b=%s c=%s stages=%d warps=%d", tl_dtype_name(t->in),
			tl_dtype_name(t->out), shape_name(text, h), form, order, lies[la], lies[lb], lies[lc], stages,
			warps))
		return;
	struct matrix a = operand(s, "a", t->in, la, h->m, h->k, t->most),
		b = operand(s, "b", t->in, lb, h->k, h->n, t->most), c;
	strides(lc, h->m, h->n, &c);
	c.x = out(s, "c", t->out, extent(&c, h->m, h->n));
	for (int i = 0; i < h->m; i++)
		for (int j = 0; j < h->n; j++)
			want(c.x, (size_t)(i * c.row + j * c.column), activate(act, dot(&a, &b, i, j, h->k)));
	uint32_t grid = (uint32_t)(cdiv(h->m, h->bm) * cdiv(h->n, h->bn));
	LAUNCH(s, "matmul", CONFIG(.grid = {grid}, .num_warps = warps, .num_stages = stages), ptr(a.x), ptr(b.x),
	       ptr(c.x), SIZES(h), tl_int(a.row), tl_int(a.column), tl_int(b.row), tl_int(b.column), tl_int(c.row),
	       tl_int(c.column), BLOCKS(h), tl_str(form), tl_str(order), tl_int(3), tl_type(t->acc),
	       act ? tl_func(act) : tl_none());
	case_end(s);
}

/* Sizes that say more than there is: all rows of whole tiles, of a matrix that would reach behind offsets of 31 bits.
 */
static void more_rows(struct suite *s, const struct shape *h, const char *form)
{
	char text[80];
	if (!case_begin(s, file, "more rows than offsets reach %s %s", shape_name(text, h), form))
		return;
	struct matrix a = operand(s, "a", TL_F16, ROWS, h->m, h->k, 2),
		      b = operand(s, "b", TL_F16, ROWS, h->k, h->n, 2), c = {.row = h->n, .column = 1};
	c.x = out(s, "c", TL_F32, extent(&c, h->m, h->n));
	for (int i = 0; i < h->m; i++)
		for (int j = 0; j < h->n; j++)
			want(c.x, (size_t)(i * h->n + j), dot(&a, &b, i, j, h->k));
	uint32_t grid = (uint32_t)(h->m / h->bm * cdiv(h->n, h->bn));
	LAUNCH(s, "matmul", CONFIG(.grid = {grid}, .num_warps = 8, .num_stages = 4), ptr(a.x), ptr(b.x), ptr(c.x),
	       tl_int(1 << 24), tl_int(h->n), tl_int(h->k), tl_int(a.row), tl_int(a.column), tl_int(b.row),
	       tl_int(b.column), tl_int(c.row), tl_int(c.column), BLOCKS(h), tl_str(form), tl_str("rows"), tl_int(3),
	       tl_type(TL_F32), tl_none());
	case_end(s);
}

/* Operands whose rows (a) and rows or columns (b, along k) begin `shift` elements past an aligned address, then at
 * every other one: the gap between them is odd. Nothing lies behind their last elements. */
static void any_address(struct suite *s, const struct operand *t, const struct shape *h, const char *form, bool along_k,
			int shift, int warps, bool back)
{
	char text[80];
	if (!case_begin(s, file, "any address %s %s %s b=%s shift=%d warps=%d%s", tl_dtype_name(t->in),
			shape_name(text, h), form, along_k ? "columns" : "rows", shift, warps,
			back ? " backwards" : ""))
		return;
	struct matrix a = {.row = h->k | 1, .column = 1},
		      b = {.row = along_k ? 1 : h->n | 1, .column = along_k ? h->k | 1 : 1};
	a.x = in_at(s, "a", t->in, extent(&a, h->m, h->k), shift);
	b.x = in_at(s, "b", t->in, extent(&b, h->k, h->n), (shift * 3 + 1) % 16);
	fill_whole(a.x, t->most), fill_whole(b.x, t->most);
	struct array *c = out_at(s, "c", t->out, (size_t)(h->m * h->n), shift);
	for (int i = 0; i < h->m; i++)
		for (int j = 0; j < h->n; j++)
			want(c, (size_t)(i * h->n + j),
			     dot(&a, &b, back ? h->m - 1 - i : i, back ? h->n - 1 - j : j, h->k));
	uint32_t rows = (uint32_t)cdiv(h->m, h->bm), columns = (uint32_t)cdiv(h->n, h->bn);
	if (back)
		LAUNCH(s, "backwards", CONFIG(.grid = {rows, columns}, .num_warps = warps, .num_stages = 3), ptr(a.x),
		       ptr(b.x), ptr(c), SIZES(h), tl_int(a.row), tl_int(a.column), tl_int(b.row), tl_int(b.column),
		       BLOCKS(h), tl_str(form), tl_type(t->acc));
	else
		LAUNCH(s, "matmul", CONFIG(.grid = {rows * columns}, .num_warps = warps, .num_stages = 3), ptr(a.x),
		       ptr(b.x), ptr(c), SIZES(h), tl_int(a.row), tl_int(a.column), tl_int(b.row), tl_int(b.column),
		       tl_int(h->n), tl_int(1), BLOCKS(h), tl_str(form), tl_str("rows"), tl_int(3), tl_type(t->acc),
		       tl_none());
	case_end(s);
}

static void any_addresses(struct suite *s)
{
	static const struct shape shapes[] = {{65, 67, 100, 64, 64, 32},
					      {70, 133, 61, 64, 64, 32},
					      {17, 40, 33, 16, 32, 32},
					      {64, 64, 96, 64, 32, 32},
					      {130, 131, 99, 128, 128, 32}};
	static const char *const forms[] = {"wrap", "advance", "offsets"};
	for (int shift = 0; shift < 8; shift++)
		for (int t = 0; t < 2; t++)
			for (int f = 0; f < COUNT(forms); f++)
				any_address(s, &types[t], &shapes[(shift + t + f) % 4], forms[f], (shift + f) % 3 == 2,
					    shift, 4, false);
	for (int shift = 0; shift < 16; shift++) {
		any_address(s, &types[3], &shapes[shift % 3], forms[shift % 3], shift % 4 != 3, shift, 4, false);
		any_address(s, &types[5 + shift % 2 * 2], &shapes[(shift + 1) % 3], forms[(shift + 1) % 3],
			    shift % 4 != 2, shift, 2, false);
	}
	for (int i = 0; i < 6; i++) {
		any_address(s, &types[0], &shapes[4], forms[i % 3], i % 2, i, 4 << i % 2, false);
		any_address(s, &types[i % 2 ? 3 : 0], &shapes[i % 4], forms[i % 3], i / 2 % 2, i, 4, true);
	}
}

static void whole_tiles(struct suite *s, const struct operand *t, const struct shape *h, int group, int stages,
			int warps)
{
	char text[80];
	if (!case_begin(s, file, "whole tiles %s %s group_pids=%d stages=%d warps=%d", tl_dtype_name(t->in),
			shape_name(text, h), group, stages, warps))
		return;
	struct matrix a = operand(s, "a", t->in, ROWS, h->m, h->k, t->most),
		b = operand(s, "b", t->in, ROWS, h->k, h->n, t->most);
	struct array *c = out(s, "c", t->out, (size_t)(h->m * h->n));
	for (int i = 0; i < h->m * h->n; i++)
		want(c, (size_t)i, dot(&a, &b, i / h->n, i % h->n, h->k));
	LAUNCH(s, "whole_tiles",
	       CONFIG(.grid = {(uint32_t)(h->m / h->bm), (uint32_t)(h->n / h->bn)}, .num_warps = warps,
		      .num_stages = stages, .group_pids = group),
	       ptr(a.x), ptr(b.x), ptr(c), tl_int(h->n), tl_int(h->k), BLOCKS(h), tl_type(t->acc));
	case_end(s);
}

/* The order of the programs of each plane, and who runs them, change nothing. */
static void batched(struct suite *s, tl_dtype t, int batches, const struct shape *h, int stages, int group, int blocks)
{
	char text[80];
	if (!case_begin(s, file, "%d batches %s %s stages=%d group_pids=%d blocks=%d", batches, tl_dtype_name(t),
			shape_name(text, h), stages, group, blocks))
		return;
	int sa = h->m * h->k + 8, sb = h->k * h->n, sc = h->m * h->n + 3;
	struct matrix a = {in(s, "a", t, (size_t)(batches * sa)), h->k, 1, sa},
		      b = {in(s, "b", t, (size_t)(batches * sb)), h->n, 1, sb};
	struct array *c = out(s, "c", TL_F32, (size_t)(batches * sc));
	fill_whole(a.x, 20), fill_whole(b.x, 20);
	want_products(c, sc, &a, &b, h, batches);
	LAUNCH(s, "batched",
	       CONFIG(.grid = {(uint32_t)cdiv(h->m, h->bm), (uint32_t)cdiv(h->n, h->bn), (uint32_t)batches},
		      .num_stages = stages, .group_pids = group, .max_ctas = blocks),
	       ptr(a.x), ptr(b.x), ptr(c), SIZES(h), tl_int(sa), tl_int(sb), tl_int(sc), BLOCKS(h));
	case_end(s);
}

static void persistent(struct suite *s, tl_dtype t, int programs, const struct shape *h, int stages, bool flatten)
{
	char text[80];
	if (!case_begin(s, file, "persistent %s %s programs=%d stages=%d%s", tl_dtype_name(t), shape_name(text, h),
			programs, stages, flatten ? " flatten" : ""))
		return;
	struct matrix a = operand(s, "a", t, ROWS, h->m, h->k, 20), b = operand(s, "b", t, ROWS, h->k, h->n, 20);
	struct array *c = out(s, "c", TL_F32, (size_t)(h->m * h->n));
	for (int i = 0; i < h->m * h->n; i++)
		want(c, (size_t)i, dot(&a, &b, i / h->n, i % h->n, h->k));
	LAUNCH(s, "persistent", CONFIG(.grid = {(uint32_t)programs}, .num_stages = stages), ptr(a.x), ptr(b.x), ptr(c),
	       SIZES(h), BLOCKS(h), tl_bool(flatten));
	case_end(s);
}

/* An offset of 32 bits that wraps, by numbers that are the same in all its elements. */
static void around_the_integers(struct suite *s)
{
	enum { N = 16 };
	if (!case_begin(s, file, "offsets around the integers"))
		return;
	struct matrix a = operand(s, "a", TL_F16, ROWS, N, N, 2);
	struct array *c = out(s, "c", TL_F32, N * N);
	for (int i = 0; i < N * N; i++)
		want(c, (size_t)i, dot(&a, &a, i / N, i % N, N));
	LAUNCH(s, "around_the_integers", CONFIG(.grid = {1}), ptr(a.x), ptr(c), tl_int(INT32_MAX), tl_int(INT32_MAX));
	case_end(s);
}

/* Products of constant sizes, as the templates of PyTorch's compiler have them. */
static void templates(struct suite *s, int batches, const struct shape *h, int stages, int warps)
{
	char text[80];
	if (!case_begin(s, "../bench/templates.tl", "template %s batches=%d stages=%d warps=%d", shape_name(text, h),
			batches, stages, warps))
		return;
	int sc = h->m * h->n;
	struct matrix a = operands(s, "a", TL_F16, ROWS, batches, h->m, h->k, 2),
		      b = operands(s, "b", TL_F16, ROWS, batches, h->k, h->n, 2);
	struct array *c = out(s, "c", TL_F16, (size_t)(batches * sc));
	want_products(c, sc, &a, &b, h, batches);
	LAUNCH(s, batches > 1 ? "template_batched" : "template",
	       CONFIG(.grid = {(uint32_t)(cdiv(h->m, h->bm) * cdiv(h->n, h->bn)), (uint32_t)batches},
		      .num_stages = stages, .num_warps = warps),
	       ptr(a.x), ptr(b.x), ptr(c), SIZES(h), BLOCKS(h), tl_int(3));
	case_end(s);
}

/* Products whose operands lie where a table of addresses says. */
static void grouped(struct suite *s, tl_dtype t, int programs, int stages, int warps, bool descriptors)
{
	enum { PROBLEMS = 3, BM = 64, BN = 64, BK = 64 };
	if (!case_begin(s, file, "grouped %s programs=%d stages=%d warps=%d%s", tl_dtype_name(t), programs, stages,
			warps, descriptors ? " descriptors" : ""))
		return;
	static const char *const names[] = {"a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2", "c2"};
	struct array *table = in(s, "table", TL_I64, 3 * PROBLEMS), *sizes = in(s, "sizes", TL_I32, 3 * PROBLEMS);
	for (int p = 0; p < PROBLEMS; p++) {
		int n[] = {(int)random_int(1, 150), (int)random_int(1, 150), 16 * (int)random_int(0, 12)};
		struct matrix a = {.x = in(s, names[3 * p], t, (size_t)(n[0] * n[2] + 1)), .row = n[2], .column = 1};
		struct matrix b = {
			.x = in(s, names[3 * p + 1], t, (size_t)(n[1] * n[2] + 1)), .row = 1, .column = n[2]};
		struct array *c = out(s, names[3 * p + 2], TL_F32, (size_t)(n[0] * n[1]));
		fill_whole(a.x, 2), fill_whole(b.x, 2);
		for (int i = 0; i < n[0] * n[1]; i++)
			want(c, (size_t)i, dot(&a, &b, i / n[1], i % n[1], n[2]));
		const struct array *at[] = {a.x, b.x, c};
		for (int i = 0; i < 3; i++) {
			set_int(sizes, (size_t)(3 * p + i), n[i]);
			set_int(table, (size_t)(3 * p + i), (int64_t)(uintptr_t)address(at[i]));
		}
	}
	LAUNCH(s, "grouped", CONFIG(.grid = {(uint32_t)programs}, .num_stages = stages, .num_warps = warps), ptr(table),
	       ptr(sizes), tl_int(PROBLEMS), tl_int(BM), tl_int(BN), tl_int(BK), tl_bool(descriptors), tl_type(t));
	case_end(s);
}

/* Programs that work on several tiles each, as they are written for Triton. */
static void tiles(struct suite *s, const char *form, int programs, const struct shape *h, int stages, int warps)
{
	char text[80];
	if (!case_begin(s, "../bench/tiles.tl", "tiles %s %s programs=%d stages=%d warps=%d", form, shape_name(text, h),
			programs, stages, warps))
		return;
	bool along_k = strstr(form, "descriptors");
	struct matrix a = operand(s, "a", TL_F16, ROWS, h->m, h->k, 2),
		      b = operand(s, "b", TL_F16, along_k ? COLUMNS : ROWS, h->k, h->n, 2);
	struct array *c = out(s, "c", TL_F16, (size_t)(h->m * h->n));
	bool stores = h->k || *form == 'n'; /* one loop over no slices has no iterations */
	for (int i = 0; i < h->m * h->n && stores; i++)
		want(c, (size_t)i, dot(&a, &b, i / h->n, i % h->n, h->k));
	LAUNCH(s, form, CONFIG(.grid = {(uint32_t)programs}, .num_stages = stages, .num_warps = warps), ptr(a.x),
	       ptr(b.x), ptr(c), SIZES(h), BLOCKS(h), tl_int(3), tl_int(programs));
	case_end(s);
}

/* By one loop whose counter the branch of a tile's end sets back, and which ends where the program computes, or where
 * memory says, in the middle of a tile, too. */
static void tiles_of_loop(struct suite *s, bool loaded, int missing, int programs, const struct shape *h, int stages,
			  int warps)
{
	char text[80];
	if (!case_begin(s, "../bench/tiles.tl", "tiles flat_end %s programs=%d stages=%d warps=%d%s missing=%d",
			shape_name(text, h), programs, stages, warps, loaded ? " loaded" : "", missing))
		return;
	struct matrix a = operand(s, "a", TL_F16, ROWS, h->m, h->k, 2),
		      b = operand(s, "b", TL_F16, ROWS, h->k, h->n, 2);
	struct array *c = out(s, "c", TL_F16, (size_t)(h->m * h->n)), *steps = in(s, "steps", TL_I32, (size_t)programs);
	int slices = cdiv(h->k, h->bk), columns = cdiv(h->n, h->bn), rows = cdiv(h->m, h->bm);
	for (int p = 0; p < programs; p++) {
		int all = cdiv(rows * columns - p, programs) * slices;
		set_int(steps, (size_t)p, all > missing ? all - missing : 0);
	}
	for (int tile = 0; tile < rows * columns && slices; tile++) {
		int first = tile / (3 * columns) * 3, high = rows - first < 3 ? rows - first : 3;
		int row = (first + tile % high) * h->bm, column = tile % (3 * columns) / high * h->bn;
		bool ends = (tile / programs + 1) * slices <= value_int(steps, (size_t)(tile % programs));
		for (int i = row; i < row + h->bm && i < h->m && ends; i++)
			for (int k = column; k < column + h->bn && k < h->n; k++)
				want(c, (size_t)(i * h->n + k), dot(&a, &b, i, k, h->k));
	}
	LAUNCH(s, "flat_end", CONFIG(.grid = {(uint32_t)programs}, .num_stages = stages, .num_warps = warps), ptr(a.x),
	       ptr(b.x), ptr(c), loaded ? ptr(steps) : tl_none(), SIZES(h), BLOCKS(h), tl_int(3), tl_int(programs));
	case_end(s);
}

/* The same of several matrices, one behind the other. */
static void tiles_of_batches(struct suite *s, int batches, int programs, const struct shape *h, int stages, int warps)
{
	char text[80];
	if (!case_begin(s, "../bench/tiles.tl", "tiles of %d batches %s programs=%d stages=%d warps=%d", batches,
			shape_name(text, h), programs, stages, warps))
		return;
	int sc = h->m * h->n;
	struct matrix a = operands(s, "a", TL_F16, ROWS, batches, h->m, h->k, 2),
		      b = operands(s, "b", TL_F16, ROWS, batches, h->k, h->n, 2);
	struct array *c = out(s, "c", TL_F16, (size_t)(batches * sc));
	want_products(c, sc, &a, &b, h, batches);
	LAUNCH(s, "batched", CONFIG(.grid = {(uint32_t)programs}, .num_stages = stages, .num_warps = warps), ptr(a.x),
	       ptr(b.x), ptr(c), tl_int(batches), SIZES(h), tl_int(a.batch), tl_int(b.batch), tl_int(sc), BLOCKS(h),
	       tl_int(3), tl_int(programs));
	case_end(s);
}

/* Sums that go on from tile to tile. */
static void kept_sums(struct suite *s, tl_dtype t, const struct shape *h, int stages, int warps)
{
	char text[80];
	if (!case_begin(s, file, "kept sums %s %s stages=%d warps=%d", tl_dtype_name(t), shape_name(text, h), stages,
			warps))
		return;
	struct matrix a = operand(s, "a", t, ROWS, h->m, h->k, 2), b = operand(s, "b", t, ROWS, h->k, h->n, 2);
	struct array *c = out(s, "c", TL_F32, (size_t)(h->m * h->n));
	int tiles = cdiv(h->m, h->bm);
	for (int i = 0; i < h->bm; i++)
		for (int j = 0; j < h->n; j++) {
			double sum = 0;
			for (int row = (tiles - 1) * h->bm + i; row >= 0; row -= h->bm) {
				sum += dot(&a, &b, row < h->m ? row : 0, j, h->k);
				if (row < h->m)
					want(c, (size_t)(row * h->n + j), sum);
			}
		}
	LAUNCH(s, "kept_sums", CONFIG(.grid = {1}, .num_stages = stages, .num_warps = warps), ptr(a.x), ptr(b.x),
	       ptr(c), SIZES(h), tl_int(tiles), BLOCKS(h));
	case_end(s);
}

/* A loop over k written in other ways. The even ones have no mask along k: rows go on behind k, up to whole tiles. */
static void ways(struct suite *s, const char *way, const struct shape *h, int stages, int warps)
{
	char text[80], kernel[24];
	if (!case_begin(s, "../bench/ways.tl", "%s way %s stages=%d warps=%d", way, shape_name(text, h), stages, warps))
		return;
	struct shape whole = *h;
	if (!strncmp(way, "even", 4))
		whole.k = cdiv(h->k, h->bk) * h->bk;
	struct matrix a = {.x = in(s, "a", TL_F16, (size_t)(h->m * h->k + h->bk)), .row = h->k, .column = 1},
		      b = {.x = in(s, "b", TL_F16, (size_t)(whole.k * h->n)), .row = h->n, .column = 1};
	struct array *c = out(s, "c", TL_F16, (size_t)(h->m * h->n));
	fill_whole(a.x, 2), fill_whole(b.x, 2);
	want_products(c, h->m * h->n, &a, &b, &whole, 1);
	snprintf(kernel, sizeof kernel, "%s_kernel", way);
	LAUNCH(s, kernel,
	       CONFIG(.grid = {(uint32_t)(cdiv(h->m, h->bm) * cdiv(h->n, h->bn))}, .num_stages = stages,
		      .num_warps = warps),
	       ptr(a.x), ptr(b.x), ptr(c), SIZES(h), BLOCKS(h), tl_int(3));
	case_end(s);
}

/* Tiles that fill a multiprocessor, more of them than blocks: each of these runs several programs, the last ones
 * perhaps one less. The grid has one, two or three dimensions. */
static void few_blocks(struct suite *s, const struct operand *t, const struct shape *h, const char *form, int batches,
		       int stages, int warps, int blocks)
{
	char text[80];
	if (!case_begin(s, file, "few blocks %s %s %s batches=%d stages=%d warps=%d blocks=%d", tl_dtype_name(t->in),
			shape_name(text, h), form, batches,
			stages, warps, blocks))
		return;
	int sc = h->m * h->n;
	bool along_k = tl_dtype_size(t->in) == 1 || t->in == TL_F32;
	struct matrix a = operands(s, "a", t->in, ROWS, batches, h->m, h->k, t->most),
		      b = operands(s, "b", t->in, along_k ? COLUMNS : ROWS, batches, h->k, h->n, t->most);
	struct array *c = out(s, "c", t->out, (size_t)(batches * sc));
	want_products(c, sc, &a, &b, h, batches);
	uint32_t rows = (uint32_t)cdiv(h->m, h->bm), columns = (uint32_t)cdiv(h->n, h->bn);
	if (batches == 1)
		LAUNCH(s, "matmul",
		       CONFIG(.grid = {rows * columns}, .num_warps = warps, .num_stages = stages, .max_ctas = blocks),
		       ptr(a.x), ptr(b.x), ptr(c), SIZES(h), tl_int(a.row), tl_int(a.column), tl_int(b.row),
		       tl_int(b.column), tl_int(h->n), tl_int(1), BLOCKS(h), tl_str(form), tl_str("groups"), tl_int(3),
		       tl_type(t->acc), tl_none());
	else
		LAUNCH(s, "in_batches",
		       CONFIG(.grid = {rows, columns, (uint32_t)batches}, .num_warps = warps, .num_stages = stages,
			      .max_ctas = blocks),
		       ptr(a.x), ptr(b.x), ptr(c), SIZES(h), tl_int(b.row), tl_int(b.column), BLOCKS(h), tl_str(form),
		       tl_type(t->acc));
	case_end(s);
}

/* Tiles with more, fewer and no iterations over k, in a loop whose copies go on from one to the next. */
static void ragged(struct suite *s, tl_dtype t, int programs, int tiles, int stages, bool by_tile)
{
	enum { BM = 32, BN = 64, BK = 32, K = 160 };
	if (!case_begin(s, file, "ragged %s tiles=%d programs=%d stages=%d%s", tl_dtype_name(t), tiles, programs,
			stages, by_tile ? " by tile" : ""))
		return;
	struct matrix a = operand(s, "a", t, ROWS, tiles * BM, K, 20), b = operand(s, "b", t, ROWS, K, BN, 20);
	struct array *c = out(s, "c", TL_F32, (size_t)(tiles * BM * BN)), *from = in(s, "from", TL_I32, (size_t)tiles),
		*to = in(s, "to", TL_I32, (size_t)tiles);
	for (int i = 0; i < tiles; i++) {
		int first = by_tile ? 0 : BK * random_int(0, 3), end = by_tile ? i % 5 * BK : BK * random_int(0, 5);
		set(from, (size_t)i, first);
		set(to, (size_t)i, end);
		for (int j = 0; j < BM * BN; j++) {
			double sum = 0;
			for (int k = first; k < end; k++)
				sum += at(&a, i * BM + j / BN, k) * at(&b, k, j % BN);
			want(c, (size_t)(i * BM * BN + j), sum);
		}
	}
	LAUNCH(s, "ragged", CONFIG(.grid = {(uint32_t)programs}, .num_stages = stages), ptr(a.x), ptr(b.x), ptr(c),
	       ptr(from), ptr(to), tl_int(tiles), tl_int(K), tl_int(BN), tl_int(BM), tl_int(BN), tl_int(BK),
	       tl_bool(by_tile));
	case_end(s);
}

static void split_k(struct suite *s, tl_dtype t, int parts, const struct shape *h)
{
	char text[80];
	if (!case_begin(s, file, "split k %s %s parts=%d", tl_dtype_name(t), shape_name(text, h), parts))
		return;
	struct matrix a = operand(s, "a", t, ROWS, h->m, h->k, 20), b = operand(s, "b", t, ROWS, h->k, h->n, 20);
	struct array *c = inout(s, "c", TL_F32, (size_t)(h->m * h->n));
	fill_whole(c, 50);
	for (int i = 0; i < h->m * h->n; i++)
		want(c, (size_t)i, value(c, (size_t)i) + dot(&a, &b, i / h->n, i % h->n, h->k));
	uint32_t tiles = (uint32_t)(cdiv(h->m, h->bm) * cdiv(h->n, h->bn));
	LAUNCH(s, "split_k", CONFIG(.grid = {tiles, (uint32_t)parts}), ptr(a.x), ptr(b.x), ptr(c), SIZES(h), BLOCKS(h));
	case_end(s);
}

static void two_products(struct suite *s, tl_dtype t, const struct shape *h, int stages, int warps, int blocks)
{
	char text[80];
	if (!case_begin(s, file, "two products %s %s stages=%d warps=%d blocks=%d", tl_dtype_name(t),
			shape_name(text, h), stages, warps, blocks))
		return;
	struct matrix a = operand(s, "a", t, ROWS, h->m, h->k, 2), b = operand(s, "b", t, ROWS, h->k, h->n, 2),
		      c = operand(s, "c", t, ROWS, h->k, h->n, 2);
	struct array *o = out(s, "o", TL_F32, (size_t)(h->m * h->n));
	for (int i = 0; i < h->m * h->n; i++) {
		double left = dot(&a, &b, i / h->n, i % h->n, h->k);
		want(o, (size_t)i, (left > 0 ? left : 0) * dot(&a, &c, i / h->n, i % h->n, h->k));
	}
	LAUNCH(s, "two_products",
	       CONFIG(.grid = {(uint32_t)cdiv(h->m, h->bm), (uint32_t)cdiv(h->n, h->bn)}, .num_warps = warps,
		      .num_stages = stages, .max_ctas = blocks),
	       ptr(a.x), ptr(b.x), ptr(c.x), ptr(o), SIZES(h), BLOCKS(h));
	case_end(s);
}

/* A scale for each row of a and bk columns, and for each bk × bk of b, by which products are scaled one by one;
 * `sums` independent ones in an iteration. */
static void scaled(struct suite *s, tl_dtype t, const struct shape *h, int sums, int stages, int warps, int blocks)
{
	char text[80];
	if (!case_begin(s, file, "scaled %s %s sums=%d stages=%d warps=%d blocks=%d", tl_dtype_name(t),
			shape_name(text, h), sums, stages, warps, blocks))
		return;
	int steps = h->k / h->bk, rows = h->m * sums;
	struct matrix a = operand(s, "a", t, ROWS, rows, h->k, 2), b = operand(s, "b", t, COLUMNS, h->k, h->n, 2);
	struct array *of_a = in(s, "of_a", TL_F32, (size_t)(rows * steps)),
		     *of_b = in(s, "of_b", TL_F32, (size_t)(cdiv(h->n, h->bk) * steps)),
		     *o = out(s, "o", TL_F32, (size_t)(rows * h->n));
	for (size_t i = 0; i < of_a->len; i++)
		set(of_a, i, ldexp(1, (int)random_int(-2, 2)));
	for (size_t i = 0; i < of_b->len; i++)
		set(of_b, i, (double)random_int(-3, 3));
	for (int i = 0; i < rows * h->n; i++) {
		int row = i / h->n, column = i % h->n;
		double sum = 0;
		for (int k = 0; k < h->k; k++)
			sum += at(&a, row, k) * at(&b, k, column) * value(of_a, (size_t)(row * steps + k / h->bk)) *
			       value(of_b, (size_t)(column / h->bk * steps + k / h->bk));
		want(o, (size_t)i, sum);
	}
	LAUNCH(s, "scaled",
	       CONFIG(.grid = {(uint32_t)(h->m / h->bm), (uint32_t)(h->n / h->bn)}, .num_warps = warps,
		      .num_stages = stages, .max_ctas = blocks),
	       ptr(a.x), ptr(b.x), ptr(of_a), ptr(of_b), ptr(o), SIZES(h), BLOCKS(h), tl_int(sums));
	case_end(s);
}

static void dequantized(struct suite *s, tl_dtype t, const struct shape *h, int stages, int warps)
{
	char text[80];
	if (!case_begin(s, file, "dequantized %s %s stages=%d warps=%d", tl_dtype_name(t), shape_name(text, h), stages,
			warps))
		return;
	struct matrix a = operand(s, "a", t, ROWS, h->m, h->k, 3), b = operand(s, "b", TL_I8, ROWS, h->k, h->n, 128);
	struct array *scale = in(s, "scale", TL_F32, (size_t)(cdiv(h->k, h->bk) * h->n)),
		*o = out(s, "o", TL_F32, (size_t)(h->m * h->n));
	for (size_t i = 0; i < scale->len; i++)
		set(scale, i, ldexp(1, (int)random_int(-2, 2)));
	for (int i = 0; i < h->m * h->n; i++) {
		double sum = 0;
		for (int k = 0; k < h->k; k++)
			sum += at(&a, i / h->n, k) * at(&b, k, i % h->n) *
			       value(scale, (size_t)(k / h->bk * h->n + i % h->n));
		want(o, (size_t)i, sum);
	}
	LAUNCH(s, "dequantized",
	       CONFIG(.grid = {(uint32_t)cdiv(h->m, h->bm), (uint32_t)cdiv(h->n, h->bn)}, .num_warps = warps,
		      .num_stages = stages),
	       ptr(a.x), ptr(b.x), ptr(scale), ptr(o), SIZES(h), BLOCKS(h));
	case_end(s);
}

/* Rows of a beyond the last one are others, whose sums are not stored; b has four numbers to a byte along k. */
static void packed(struct suite *s, tl_dtype t, const struct shape *h, int stages, int warps, int blocks)
{
	char text[80];
	if (!case_begin(s, file, "packed %s %s stages=%d warps=%d blocks=%d", tl_dtype_name(t), shape_name(text, h),
			stages, warps, blocks))
		return;
	struct matrix a = operand(s, "a", t, ROWS, h->m, h->k, 3);
	struct array *b = in(s, "b", TL_U8, (size_t)(h->k / 4 * h->n)), *o = out(s, "o", TL_F32, (size_t)(h->m * h->n));
	fill(b, 0, 255);
	for (int i = 0; i < h->m * h->n; i++) {
		double sum = 0;
		for (int k = 0; k < h->k; k++)
			sum += at(&a, i / h->n, k) *
			       (((int)value(b, (size_t)(k / 4 * h->n + i % h->n)) >> (k % 4 * 2) & 3) - 1);
		want(o, (size_t)i, sum);
	}
	LAUNCH(s, "packed",
	       CONFIG(.grid = {(uint32_t)cdiv(h->m, h->bm), (uint32_t)cdiv(h->n, h->bn)}, .num_warps = warps,
		      .num_stages = stages, .max_ctas = blocks),
	       ptr(a.x), ptr(b), ptr(o), SIZES(h), BLOCKS(h));
	case_end(s);
}

void theme_matmul(struct suite *s)
{
	static const struct shape shapes[] = {
		{16, 16, 32, 16, 16, 32},   {1, 1, 1, 16, 16, 32},	{33, 17, 65, 16, 16, 32},
			{64, 64, 64, 32, 32, 32},
		{63, 127, 97, 32, 64, 32},  {100, 50, 75, 64, 32, 32},	{128, 96, 160, 64, 32, 64},
			{7, 200, 33, 16, 128, 32},
		{200, 9, 129, 128, 16, 32}, {65, 65, 31, 64, 64, 64},	{48, 80, 240, 32, 32, 32},
			{96, 112, 128, 32, 16, 64},
		{17, 33, 0, 16, 32, 32},    {129, 130, 64, 128, 128, 64},
	}, whole[] = {{64, 64, 64, 32, 32, 32}, {128, 128, 128, 64, 64, 32}, {96, 160, 64, 32, 32, 64},
		      {256, 128, 32, 128, 128, 32}, {32, 32, 256, 16, 16, 64}},
	   few[] = {{40, 50, 60, 16, 16, 16}, {64, 64, 96, 32, 32, 32}, {65, 33, 17, 32, 32, 16}};
	static const char *const forms[] = {"advance", "offsets", "wrap", "while", "num_stages"};
	static const char *const orders[] = {"rows", "columns", "swizzle2d", "groups"};
	int c = 0;
	for (int i = 0; i < COUNT(shapes); i++)
		for (int f = 0; f < COUNT(forms); f++)
			for (int t = 0; t < 3; t++, c++)
				matmul(s, &types[(c + i) % COUNT(types)], &shapes[i], forms[f], orders[(c + c / 4) % 4],
				       (enum lie)(c % 3), (enum lie)(c / 2 % 3), (enum lie)(c / 5 % 3), 1 + (c + f) % 4,
				       1 << (c + i) % 4);
	for (int t = 0; t < COUNT(types); t++) /* every type with every number of stages, row- and column-major */
		for (int stages = 1; stages <= 5; stages++, c++)
			matmul(s, &types[t], &shapes[6 + stages % 2], "advance", "groups", (enum lie)(c % 2),
			       (enum lie)(c / 2 % 2), ROWS, stages, 4);
	static const struct shape words[] = {{132, 200, 100, 64, 128, 32},
					     {64, 300, 164, 16, 256, 32},
					     {260, 68, 96, 128, 64, 16},
					     {128, 128, 256, 128, 128, 64},
					     {132, 260, 68, 128, 256, 32}};
	for (int i = 0; i < COUNT(words); i++) /* tf32, of whose operands wgmma takes one from registers */
		for (int lie = 0; lie < 4; lie++)
			for (int stages = 1; stages <= 4; stages++, c++)
				matmul(s, &types[2], &words[i], forms[c % COUNT(forms)], "groups",
				       lie % 2 ? COLUMNS : ROWS, lie / 2 ? COLUMNS : ROWS, c % 3 ? ROWS : COLUMNS,
				       stages, 4 << c % 3);
	for (int i = 0; i < COUNT(words); i++)
		for (int flatten = 0; flatten < 2; flatten++)
			persistent(s, TL_F32, 2 + i, &words[i], 3, flatten);
	/* copies that go on over several tiles: as many iterations of k as stages, fewer, none */
	static const struct shape shallow[] = {{100, 152, 0, 32, 32, 32},
					       {100, 152, 40, 32, 32, 64},
					       {130, 200, 64, 64, 32, 32},
					       {200, 72, 96, 64, 64, 32}};
	for (int i = 0; i < COUNT(shallow); i++)
		for (int stages = 2; stages <= 5; stages++, c++)
			persistent(s, types[c % 2].in, 1 + c % 5, &shallow[i], stages, true);
	static const char *const tile_forms[] = {"nest", "nest_descriptors", "flat", "flat_descriptors"};
	static const struct shape several[] = {{300, 520, 136, 128, 256, 64},
					       {200, 328, 72, 64, 128, 64},
					       {136, 136, 96, 32, 32, 32},
					       {264, 64, 0, 64, 64, 32}};
	for (int i = 0; i < 16; i++, c++)
		tiles(s, tile_forms[i % 4], 1 + c % 4, &several[i / 4], 1 + c % 4, i / 4 == 0 ? 8 : 4);
	for (int i = 0; i < 16; i++, c++)
		tiles_of_loop(s, i % 4 > 0, i % 4 > 1 ? i % 4 - 1 : 0, 1 + c % 4, &several[i / 4], 1 + c % 4,
			      i / 4 == 0 ? 8 : 4);
	for (int i = 0; i < 8; i++, c++)
		tiles_of_batches(s, 1 + i % 4, 1 + c % 5, &several[i % 4], 1 + c % 4, i % 4 == 0 ? 8 : 4);
	static const char *const way_forms[] = {"index",  "carried", "down", "while",    "pointer",
						"choice", "minimum", "even", "even_down"};
	static const struct shape way_shapes[] = {
		{200, 336, 208, 128, 256, 64}, {136, 80, 80, 64, 64, 32}, {72, 144, 112, 64, 128, 64}};
	for (int i = 0; i < 27; i++, c++)
		ways(s, way_forms[i % 9], &way_shapes[i / 9], 2 + c % 3, i / 9 == 0 ? 8 : 4);
	static const struct shape kept[] = {
		{200, 80, 80, 64, 128, 64}, {40, 32, 64, 32, 32, 32}, {300, 256, 128, 128, 256, 64}};
	for (int i = 0; i < 6; i++, c++)
		kept_sums(s, types[i % 2].in, &kept[i % 3], 1 + c % 4, i % 3 == 2 ? 8 : 4);
	around_the_integers(s);
	static const struct shape constant[] = {{200, 328, 136, 128, 256, 64},
						{200, 328, 128, 128, 256, 64},
						{256, 512, 128, 128, 256, 64},
						{136, 72, 104, 64, 64, 32},
						{72, 136, 96, 64, 64, 32}};
	for (int i = 0; i < 20; i++, c++)
		templates(s, i % 4 < 2 ? 1 : 1 + i % 4, &constant[i / 4], 1 + c % 4, i / 4 < 3 ? 8 : 4);
	for (int i = 0; i < 12; i++, c++)
		grouped(s, types[c % 2].in, 1 + c % 4, 1 + i % 4, 4 << c % 2, i % 3 == 0);
	for (int i = 0; i < 12; i++, c++)
		ragged(s, types[c % 2].in, 1 + i % 4, 1 + 3 * i, 2 + i % 4, i % 3 == 0);
	/* tiles that hang over the edges of matrices which the copy engine knows */
	static const struct shape edges[] = {{144, 272, 208, 128, 128, 64},
					     {272, 144, 80, 128, 256, 64},
					     {48, 16, 32, 128, 128, 64},
					     {272, 128, 160, 256, 128, 64}};
	static const char *const edge_forms[] = {"advance", "left",    "offsets", "wrap",
						 "while",   "carried", "pointer", "choice"};
	for (int i = 0; i < COUNT(edges); i++)
		for (int f = 0; f < COUNT(edge_forms); f++)
			for (int lie = 0; lie < 4; lie++, c++)
				matmul(s, &types[c % 2], &edges[i], edge_forms[f], orders[c / 2 % 4],
				       lie % 2 ? COLUMNS : ROWS, lie / 2 ? COLUMNS : ROWS, ROWS, 4, 8);
	for (int f = 0; f < 3; f++)
		more_rows(s, &(struct shape){256, 144, 208, 128, 128, 64}, edge_forms[f]);
	any_addresses(s);
	static const struct shape full[] = {{260, 400, 192, 128, 128, 64},
					    {130, 520, 64, 64, 256, 64},
					    {200, 300, 0, 128, 128, 64},
					    {384, 256, 256, 128, 128, 64}};
	for (int i = 0; i < COUNT(full); i++)
		for (int t = 0; t < COUNT(types); t++, c++)
			if (types[t].in != TL_F64)
				few_blocks(s, &types[t], &full[i], forms[c % 3], 1 + c % 3,
					   types[t].in == TL_F32             ? 2
					   : tl_dtype_size(types[t].in) == 1 ? 8
									     : 4,
					   4 << c % 2, c % 8 ? 1 + c % 4 : -1);
	static const struct shape multiples[] = {{256, 512, 256, 128, 256, 64},
						 {512, 256, 256, 256, 128, 64},
						 {256, 256, 512, 128, 128, 64},
						 {256, 256, 0, 128, 128, 64}};
	for (int i = 0; i < COUNT(multiples); i++)
		for (int t = 0; t < COUNT(types); t++, c++)
			if (types[t].in != TL_F64)
				few_blocks(s, &types[t], &multiples[i], "wrap", 1 + c % 2,
					   types[t].in == TL_F32             ? 2
					   : tl_dtype_size(types[t].in) == 1 ? 8
									     : 4,
					   i == 2 ? 4 : 8, c % 3 ? 1 + c % 4 : -1);
	for (int i = 0; i < COUNT(whole); i++)
		for (int g = 0; g < 4; g++, c++) {
			int t = c % 4; /* accumulators as the result */
			whole_tiles(s, &types[t], &whole[i], g == 3 ? 8 : g, 1 + c % 4, g % 2 ? 8 : 4);
		}
	static const struct shape rows[] = {
		{200, 256, 256, 128, 64, 128}, {70, 512, 512, 64, 128, 64}, {256, 256, 768, 128, 64, 64}};
	for (int i = 0; i < 12; i++)
		packed(s, types[i % 2].in, &rows[i % 3], 2 + i % 3, 4 << i / 6, i % 4 ? -1 : 2);
	static const struct shape large[] = {{256, 256, 512, 128, 128, 64},
					     {512, 256, 256, 128, 256, 128},
					     {256, 512, 256, 128, 128, 128},
					     {256, 256, 0, 128, 128, 64}};
	static const tl_dtype small[] = {TL_F16, TL_F8E4M3, TL_BF16};
	for (int i = 0; i < 24; i++) {
		int warps = 8 >> (i % 8 == 7), blocks = i % 5 ? 1 + i % 3 : -1;
		scaled(s, small[i % 3], &large[i % 4], 1 + i / 4 % 2, 2 + i % 3, warps, blocks);
		two_products(s, small[i % 3 & 2], &large[i % 4], 2 + i % 3, warps, blocks);
	}
	static const struct shape plane[] = {
		{37 * 16, 40, 32, 16, 16, 16}, {19 * 16, 64, 16, 16, 32, 16}, {60, 33 * 16, 32, 16, 16, 16}};
	for (int i = 0; i < 6; i++)
		batched(s, types[i % 3].in, 1 + i % 3, &plane[i % 3], 2, i / 3 * 5, 2);
	for (int i = 0; i < COUNT(few); i++)
		for (int t = 0; t < 3; t++, c++) {
			batched(s, types[t].in, 1 + c % 5, &few[i], 1 + t, c % 4, c % 3 ? 1 + c % 2 : -1);
			persistent(s, types[t].in, 1 + c % 7, &few[i], 3, c % 2);
			split_k(s, types[t].in, 1 + t * 2, &few[i]);
			two_products(s, types[t].in, &few[i], 1 + c % 4, 1 << c % 4, 0);
			dequantized(s, types[t].in, &few[i], 1 + c % 4, 1 << (c + 1) % 4);
		}
}
