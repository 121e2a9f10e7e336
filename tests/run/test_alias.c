/* Arguments that overlap, in part or in whole, by as many elements as the cases say: memory is what one operation after the other
 * leaves there, whatever the order of warps and copies. */
#include "themes.h"

static const char file[] = "alias.tl";
enum { MOST = 8192, SEEDS = 4 };

/* The memory that all arguments of a case point into, as the reference leaves it. */
struct memory {
	struct array *a;
	int64_t at[MOST];
};

static void begin(struct suite *s, struct memory *m, size_t len)
{
	m->a = inout(s, "m", TL_I32, len);
	fill(m->a, -99, 99);
	for (size_t i = 0; i < len; i++)
		m->at[i] = value_int(m->a, i);
}

static tl_arg at(const struct memory *m, int element) { return tl_ptr(TL_I32, (const int32_t *)address(m->a) + element); }

static void expect(const struct memory *m)
{
	for (size_t i = 0; i < m->a->len; i++)
		want_int(m->a, i, wrap(TL_I32, m->at[i]));
}

static void load(const struct memory *m, int from, int n, int64_t *to)
{
	memcpy(to, m->at + from, (size_t)n * sizeof *to);
}

static void store(struct memory *m, int to, int n, const int64_t *v)
{
	memcpy(m->at + to, v, (size_t)n * sizeof *v);
}

static void seed(int k)
{
	char text[8];
	snprintf(text, sizeof text, "%d", k);
	setenv("TL_SIM_SEED", text, 1);
}

static void add(struct suite *s, int x, int y, int n, int warps, int k)
{
	struct memory m;
	int64_t v[MOST];
	if (!case_begin(s, file, "add x=%d y=%d n=%d warps=%d seed=%d", x, y, n, warps, k))
		return;
	begin(s, &m, (size_t)n * 3);
	load(&m, x, n, v);
	for (int i = 0; i < n; i++)
		v[i]++;
	store(&m, y, n, v);
	expect(&m);
	LAUNCH(s, "add", CONFIG(.grid = {1}, .num_warps = warps), at(&m, x), at(&m, y), tl_int(n));
	case_end(s);
}

static void shift(struct suite *s, int x, int y, int n, int step, int block, int stages, int k)
{
	struct memory m;
	int64_t v[MOST];
	if (!case_begin(s, file, "shift x=%d y=%d n=%d step=%d block=%d stages=%d seed=%d", x, y, n, step, block, stages, k))
		return;
	begin(s, &m, (size_t)(n * step + 3 * block));
	for (int r = 0; r < n; r++) {
		load(&m, x + r * step, block, v);
		for (int i = 0; i < block; i++)
			v[i]++;
		store(&m, y + r * step, block, v);
	}
	expect(&m);
	LAUNCH(s, "shift", CONFIG(.grid = {1}), at(&m, x), at(&m, y), tl_int(n), tl_int(step), tl_int(block), tl_int(stages));
	case_end(s);
}

static void sums(struct suite *s, int x, int y, int n, int block, int k)
{
	struct memory m;
	int64_t v[MOST], total[MOST] = {0};
	if (!case_begin(s, file, "sums x=%d y=%d n=%d block=%d seed=%d", x, y, n, block, k))
		return;
	begin(s, &m, (size_t)((n + 2) * block));
	for (int r = 0; r < n; r++) {
		load(&m, x + r * block, block, v);
		for (int i = 0; i < block; i++)
			total[i] += v[i];
		store(&m, y + r * block, block, total);
	}
	expect(&m);
	LAUNCH(s, "sums", CONFIG(.grid = {1}), at(&m, x), at(&m, y), tl_int(n), tl_int(block));
	case_end(s);
}

static void turned(struct suite *s, int x, int y, int n, int k)
{
	struct memory m;
	int64_t v[MOST];
	if (!case_begin(s, file, "turned x=%d y=%d n=%d seed=%d", x, y, n, k))
		return;
	begin(s, &m, (size_t)(2 * n * n));
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < n * n; i++)
			v[i] = pass ? m.at[x + i % n * n + i / n] * 2 : m.at[x + i % n * n + i / n] + 1;
		store(&m, y, n * n, v);
	}
	expect(&m);
	LAUNCH(s, "turned", CONFIG(.grid = {1}), at(&m, x), at(&m, y), tl_int(n));
	case_end(s);
}

static void rows(struct suite *s, int x, int y, int n, int step, int block, int warps, int k)
{
	struct memory m;
	int64_t v[MOST];
	if (!case_begin(s, file, "rows x=%d y=%d n=%d step=%d block=%d warps=%d seed=%d", x, y, n, step, block, warps, k))
		return;
	begin(s, &m, (size_t)(n * step + 2 * block));
	for (int r = 0; r < n; r++) {
		int64_t top = INT64_MIN;
		load(&m, x + r * step, block, v);
		for (int i = 0; i < block; i++)
			top = v[i] > top ? v[i] : top;
		for (int i = 0; i < block; i++)
			v[i] -= top;
		store(&m, y + r * step, block, v);
	}
	expect(&m);
	LAUNCH(s, "rows", CONFIG(.grid = {1}, .num_warps = warps), at(&m, x), at(&m, y), tl_int(n), tl_int(step), tl_int(block));
	case_end(s);
}

static void scalars(struct suite *s, int x, int y, int n, int k)
{
	struct memory m;
	if (!case_begin(s, file, "scalars x=%d y=%d n=%d seed=%d", x, y, n, k))
		return;
	begin(s, &m, (size_t)(n + 8));
	for (int i = 0; i < n; i++)
		m.at[y + i] = wrap(TL_I32, m.at[x + i] + 2 * m.at[x]);
	expect(&m);
	LAUNCH(s, "scalars", CONFIG(.grid = {1}), at(&m, x), at(&m, y), tl_int(n));
	case_end(s);
}

static void early(struct suite *s, int x, int y, int w, int n, int k)
{
	struct memory m;
	int64_t v[MOST], total = 0;
	if (!case_begin(s, file, "early x=%d y=%d w=%d n=%d seed=%d", x, y, w, n, k))
		return;
	begin(s, &m, (size_t)(3 * n));
	for (int i = 0; i < n; i++)
		total += m.at[x + i];
	for (int i = 0; i < n; i++)
		m.at[y + i] = total + i;
	load(&m, w, n, v);
	total = 0;
	for (int i = 0; i < n; i++)
		total += v[i];
	for (int i = 0; i < n; i++)
		m.at[y + i] = v[i] + total;
	expect(&m);
	LAUNCH(s, "early", CONFIG(.grid = {1}), at(&m, x), at(&m, y), at(&m, w), tl_int(n));
	case_end(s);
}

static void counted(struct suite *s, int x, int y, int n, int k)
{
	struct memory m;
	int64_t old[MOST], new[MOST], sum = 0;
	if (!case_begin(s, file, "counted x=%d y=%d n=%d seed=%d", x, y, n, k))
		return;
	begin(s, &m, (size_t)(4 * n));
	load(&m, x, n, old);
	for (int i = 0; i < n; i++)
		m.at[y + i] += 3;
	load(&m, x, n, new);
	for (int i = 0; i < n; i++)
		sum += new[i] - old[i];
	m.at[y] = sum;
	for (int i = 0; i < n; i++)
		m.at[x + n + i] = new[i] + sum;
	expect(&m);
	LAUNCH(s, "counted", CONFIG(.grid = {1}), at(&m, x), at(&m, y), tl_int(n));
	case_end(s);
}

void theme_alias(struct suite *s)
{
	for (int k = 0; k < SEEDS; k++) {
		seed(k);
		add(s, 0, 0, 1024, 4, k), add(s, 0, 4, 1024, 4, k), add(s, 3, 0, 512, 8, k), add(s, 0, 1024, 1024, 4, k), add(s, 1, 0, 64, 1, k);
		shift(s, 0, 256, 6, 256, 256, 3, k), shift(s, 0, 0, 6, 256, 256, 3, k), shift(s, 0, 1, 5, 256, 256, 2, k);
		shift(s, 256, 0, 6, 256, 256, 4, k), shift(s, 0, 0, 9, 16, 256, 3, k), shift(s, 0, 0, 7, 512, 256, 1, k), shift(s, 16, 0, 6, 64, 128, 3, k);
		sums(s, 0, 256, 6, 256, k), sums(s, 0, 0, 6, 256, k), sums(s, 4, 0, 6, 256, k);
		turned(s, 0, 0, 32, k), turned(s, 0, 32, 32, k), turned(s, 1, 0, 64, k), turned(s, 0, 4096, 64, k);
		rows(s, 0, 0, 5, 256, 256, 4, k), rows(s, 0, 0, 5, 200, 256, 4, k), rows(s, 0, 256, 5, 256, 256, 2, k), rows(s, 8, 0, 4, 64, 64, 1, k);
		scalars(s, 0, 0, 5, k), scalars(s, 0, 1, 5, k), scalars(s, 1, 0, 5, k);
		early(s, 0, 256, 256, 256, k), early(s, 0, 0, 0, 256, k), early(s, 0, 256, 260, 256, k), early(s, 0, 512, 256, 256, k);
		counted(s, 0, 0, 256, k), counted(s, 0, 4, 256, k), counted(s, 0, 512, 256, k);
	}
	unsetenv("TL_SIM_SEED");
}
