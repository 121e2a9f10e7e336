/* Arguments that overlap, in part or in whole, by as many elements as the cases say: memory is what one operation after
 * the other leaves there, whatever the order of warps and copies. */
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

static tl_arg at(const struct memory *m, int element)
{
	return tl_ptr(TL_I32, (const int32_t *)address(m->a) + element);
}

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
	if (!case_begin(s, file, "shift x=%d y=%d n=%d step=%d block=%d stages=%d seed=%d", x, y, n, step, block,
			stages, k))
		return;
	begin(s, &m, (size_t)(n * step + 3 * block));
	for (int r = 0; r < n; r++) {
		load(&m, x + r * step, block, v);
		for (int i = 0; i < block; i++)
			v[i]++;
		store(&m, y + r * step, block, v);
	}
	expect(&m);
	LAUNCH(s, "shift", CONFIG(.grid = {1}), at(&m, x), at(&m, y), tl_int(n), tl_int(step), tl_int(block),
	       tl_int(stages));
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
	if (!case_begin(s, file, "rows x=%d y=%d n=%d step=%d block=%d warps=%d seed=%d", x, y, n, step, block, warps,
			k))
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
	LAUNCH(s, "rows", CONFIG(.grid = {1}, .num_warps = warps), at(&m, x), at(&m, y), tl_int(n), tl_int(step),
	       tl_int(block));
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

/* --- random programs ----------------------------------------------------------------------------------------- */

enum { POINTERS = 3, VALUES = 3, STATEMENTS = 6, SPAN = 1024 };
enum action { LOAD, STORE, SUM, ADD_TO };

/* Value `value` and the elements of pointer `pointer` from `offset` on, `step` further in each iteration; reversed:
 * last first. */
struct statement {
	enum action action;
	int pointer, value, offset, step;
	bool reversed, in_loop;
};

struct random_program {
	struct statement at[STATEMENTS];
	int n, loops, block, warps, stages, start[POINTERS];
};

static void make_random(struct random_program *p)
{
	static const int units[] = {1, 4, 16, 64};
	int unit = units[random_int(0, 3)];
	p->block = 32 << random_int(0, 3);
	p->warps = 1 << random_int(0, 3);
	p->stages = (int)random_int(1, 4);
	p->loops = (int)random_int(0, 4);
	p->n = (int)random_int(2, STATEMENTS);
	for (int i = 0; i < POINTERS; i++)
		p->start[i] = random_int(0, 2) ? (int)random_int(0, SPAN / 2 / unit) * unit : 0;
	for (int i = 0; i < p->n; i++)
		p->at[i] = (struct statement){(enum action)random_int(0, 3),      (int)random_int(0, POINTERS - 1),
					      (int)random_int(0, VALUES - 1),     (int)random_int(0, 64 / unit) * unit,
					      random_int(0, 2) ? p->block : unit, !random_int(0, 4),
					      i > 0 && random_int(0, 3)};
	p->at[p->n - 1].action = STORE;
}

static void run_statement(struct memory *m, const struct random_program *p, const struct statement *x, int k,
			  int64_t v[VALUES][MOST])
{
	int64_t sum = 0, *to = v[x->value];
	for (int i = 0; i < p->block; i++)
		sum += to[i];
	for (int i = 0; i < p->block; i++) {
		int64_t *cell =
			&m->at[p->start[x->pointer] + x->offset + x->step * k + (x->reversed ? p->block - 1 - i : i)];
		switch (x->action) {
		case LOAD: to[i] = *cell; break;
		case STORE: *cell = to[i] = wrap(TL_I32, to[i] + i); break;
		case SUM: to[i] = wrap(TL_I32, to[i] - sum); break;
		case ADD_TO: *cell = wrap(TL_I32, *cell + to[i]); break;
		}
	}
}

static void print_statement(FILE *f, const struct random_program *p, const struct statement *x, bool in_loop)
{
	const char *tile = x->reversed ? "r" : "o", *indent = in_loop ? "        " : "    ";
	fprintf(f, "%s", indent);
	char at[80];
	snprintf(at, sizeof at, "p%d + %d + %s * %d + %s", x->pointer, x->offset, in_loop ? "k" : "0", x->step, tile);
	switch (x->action) {
	case LOAD: fprintf(f, "v%d = tl.load(%s)\n", x->value, at); break;
	case STORE: fprintf(f, "v%d = v%d + o\n%stl.store(%s, v%d)\n", x->value, x->value, indent, at, x->value); break;
	case SUM: fprintf(f, "v%d = v%d - tl.sum(v%d, 0)\n", x->value, x->value, x->value); break;
	case ADD_TO: fprintf(f, "tl.atomic_add(%s, v%d)\n", at, x->value); break;
	}
	(void)p;
}

static char *print_random(const struct random_program *p)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	bool in_loop = false;
	fprintf(f, "import triton\nimport triton.language as tl\n\n@triton.jit\n"
		"def kernel(p0, p1, p2, n):\n    o = tl.arange(0, %d)\n"
		   "    r = %d - o\n", p->block, p->block - 1);
	for (int i = 0; i < VALUES; i++)
		fprintf(f, "    v%d = o * %d\n", i, i + 1);
	for (int i = 0; i < p->n; i++) {
		if (p->at[i].in_loop && !in_loop)
			fprintf(f, "    for k in tl.range(0, n, num_stages=%d):\n", p->stages);
		in_loop = p->at[i].in_loop;
		print_statement(f, p, &p->at[i], in_loop);
	}
	fclose(f);
	return text;
}

static void random_program(struct suite *s, int number, int k)
{
	struct random_program p = {0};
	struct memory m;
	static int64_t v[VALUES][MOST];
	if (!case_begin(s, NULL, "random %d seed=%d", number, k))
		return;
	random_seed((uint64_t)number);
	make_random(&p);
	begin(s, &m, 3 * SPAN);
	for (int i = 0; i < VALUES; i++)
		for (int e = 0; e < p.block; e++)
			v[i][e] = e * (i + 1);
	for (int i = 0, end; i < p.n; i = end) { /* statements of one loop follow each other */
		for (end = i + 1; p.at[i].in_loop && end < p.n && p.at[end].in_loop;)
			end++;
		for (int turn = 0; turn < (p.at[i].in_loop ? p.loops : 1); turn++)
			for (int e = i; e < end; e++)
				run_statement(&m, &p, &p.at[e], p.at[i].in_loop ? turn : 0, v);
	}
	expect(&m);
	char *text = print_random(&p);
	launch_text(s, text, "kernel", CONFIG(.grid = {1}, .num_warps = p.warps, .num_stages = p.stages),
		    ARGS(at(&m, p.start[0]), at(&m, p.start[1]), at(&m, p.start[2]), tl_int(p.loops)));
	free(text);
	case_end(s);
}

/* A product, stored after its loop over rows of the first operand, `to` elements from its beginning. The loop's copies
 * have read all of it before. */
static void product(struct suite *s, int to, int warps, int stages, int seed)
{
	enum { B = 128, N = 256, K = 64 };
	if (!case_begin(s, file, "product to %d warps=%d stages=%d seed %d", to, warps, stages, seed))
		return;
	struct array *a = inout(s, "a", TL_F16, (size_t)(B * N + to)), *b = in(s, "b", TL_F16, (size_t)(N * B));
	fill_whole(a, 2), fill_whole(b, 1);
	for (size_t i = 0; i < a->len; i++)
		want(a, i, value(a, i));
	for (int i = 0; i < B; i++)
		for (int j = 0; j < B; j++) {
			double sum = 0;
			for (int k = 0; k < N; k++)
				sum += value(a, (size_t)(i * N + k)) * value(b, (size_t)(k * B + j));
			want(a, (size_t)(to + i * N + j), sum);
		}
	tl_arg c = tl_ptr(TL_F16, (const int16_t *)address(a) + to);
	LAUNCH(s, "product", CONFIG(.grid = {1}, .num_warps = warps, .num_stages = stages), ptr(a), ptr(b), c,
	       tl_int(N), tl_int(B), tl_int(K));
	case_end(s);
}

void theme_alias(struct suite *s)
{
	for (int n = 0; n < 150; n++) {
		vary_schedules(s, n % SEEDS);
		random_program(s, n, n % SEEDS);
	}
	for (int k = 0; k < SEEDS; k++) {
		vary_schedules(s, k);
		add(s, 0, 0, 1024, 4, k), add(s, 0, 4, 1024, 4, k), add(s, 3, 0, 512, 8, k),
			add(s, 0, 1024, 1024, 4, k), add(s, 1, 0, 64, 1, k);
		shift(s, 0, 256, 6, 256, 256, 3, k), shift(s, 0, 0, 6, 256, 256, 3, k),
			shift(s, 0, 1, 5, 256, 256, 2, k);
		shift(s, 256, 0, 6, 256, 256, 4, k), shift(s, 0, 0, 9, 16, 256, 3, k),
			shift(s, 0, 0, 7, 512, 256, 1, k), shift(s, 16, 0, 6, 64, 128, 3, k);
		sums(s, 0, 256, 6, 256, k), sums(s, 0, 0, 6, 256, k), sums(s, 4, 0, 6, 256, k);
		turned(s, 0, 0, 32, k), turned(s, 0, 32, 32, k), turned(s, 1, 0, 64, k), turned(s, 0, 4096, 64, k);
		rows(s, 0, 0, 5, 256, 256, 4, k), rows(s, 0, 0, 5, 200, 256, 4, k), rows(s, 0, 256, 5, 256, 256, 2, k),
			rows(s, 8, 0, 4, 64, 64, 1, k);
		scalars(s, 0, 0, 5, k), scalars(s, 0, 1, 5, k), scalars(s, 1, 0, 5, k);
		early(s, 0, 256, 256, 256, k), early(s, 0, 0, 0, 256, k), early(s, 0, 256, 260, 256, k),
			early(s, 0, 512, 256, 256, k);
		counted(s, 0, 0, 256, k), counted(s, 0, 4, 256, k), counted(s, 0, 512, 256, k);
		product(s, 0, 8, 4, k), product(s, 64, 8, 4, k), product(s, 128, 4, 3, k);
	}
}
