/* Control flow: branches, loops, functions, and loops whose loads a compiler issues ahead of time. */
#include "themes.h"

static const char file[] = "control.tl";
enum { BLOCK = 32 };

/* --- if ------------------------------------------------------------------------------------------------------ */

static void branches(struct suite *s, tl_dtype t, int mode, int warps)
{
	if (!case_begin(s, file, "branches %s mode=%d warps=%d", tl_dtype_name(t), mode, warps))
		return;
	struct array *x = in(s, "x", t, BLOCK), *o = out(s, "o", t, 2 * BLOCK);
	double sum = 0;
	for (size_t i = 0; i < BLOCK; i++) {
		set(x, i, (double)random_int(-9, 9));
		sum += value(x, i);
	}
	for (size_t i = 0; i < BLOCK; i++) {
		double v = value(x, i);
		if (mode == 0)
			v += 1 + 7;
		else if (mode == 1)
			v = 2 * v + 20;
		else if (mode == -1)
			v -= 100;
		else if (mode < 0)
			v += (mode == -3 ? -1 : 7) - sum;
		else
			v = (i % 2 ? -v : v) + 7 + mode;
		want(o, mode > 1 ? BLOCK + i : i, v);
	}
	LAUNCH(s, "branches", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), tl_int(mode), tl_int(BLOCK));
	case_end(s);
}

static void effects(struct suite *s, int first, int n, bool flag)
{
	if (!case_begin(s, file, "effects first=%d n=%d flag=%d", first, n, flag))
		return;
	struct array *x = in(s, "x", TL_I32, BLOCK), *o = out(s, "o", TL_I32, 3 * BLOCK);
	fill(x, -99, 99);
	set(x, 0, first);
	for (size_t i = 0; i < BLOCK; i++) {
		if (flag && first > 0 && n != 5 && n != 6)
			want(o, i, value(x, i) * first);
		if (!flag || n == 6)
			want(o, BLOCK + i, (double)i);
		else if (n >= 1 && n < 4)
			want(o, 2 * BLOCK + i, (double)i + n);
	}
	LAUNCH(s, "branch_effects", CONFIG(.grid = {1}), ptr(x), ptr(o), tl_int(n), tl_bool(flag), tl_int(BLOCK));
	case_end(s);
}

static void ternaries(struct suite *s, int n, bool big)
{
	if (!case_begin(s, file, "ternaries n=%d big=%d", n, big))
		return;
	struct array *x = in(s, "x", TL_I32, BLOCK), *o = out(s, "o", TL_I32, 2 * BLOCK);
	fill(x, -999, 999);
	for (size_t i = 0; i < BLOCK; i++) {
		double v = value(x, i), b = n > 10 ? v : n > 5 ? 2 * v : -v;
		want(o, n % 2 ? BLOCK + i : i, b * abs(n) + (big ? 1000 : 1) + (n == 3));
	}
	LAUNCH(s, "ternaries", CONFIG(.grid = {1}), ptr(x), ptr(o), tl_int(n), tl_bool(big), tl_int(BLOCK));
	case_end(s);
}

static void early_returns(struct suite *s, int n, int limit)
{
	enum { PROGRAMS = 4 };
	if (!case_begin(s, file, "early returns n=%d limit=%d", n, limit))
		return;
	struct array *x = in(s, "x", TL_I32, PROGRAMS * BLOCK), *o = out(s, "o", TL_I32, PROGRAMS * BLOCK);
	fill(x, -999, 999);
	for (int i = 0; i < PROGRAMS * BLOCK && i / BLOCK < limit; i++) {
		double v = value(x, (size_t)i);
		if (n != 100 || i / BLOCK != 1) {
			v += n == 100 ? 5 : 0;
			v = n < 0 ? v - 1 : n == 0 ? 10 * v : n == 1 ? v + 100 : v + n + (n > 5 ? 1000 : 0);
		}
		want(o, (size_t)i, v);
	}
	LAUNCH(s, "early_returns", CONFIG(.grid = {PROGRAMS}), ptr(x), ptr(o), tl_int(n), tl_int(limit), tl_int(BLOCK));
	case_end(s);
}

/* --- while --------------------------------------------------------------------------------------------------- */

static void collatz(struct suite *s, int programs)
{
	if (!case_begin(s, file, "collatz programs=%d", programs))
		return;
	struct array *x = in(s, "x", TL_I32, (size_t)programs), *o = out(s, "o", TL_I32, (size_t)programs);
	fill(x, 1, 500);
	set(x, 0, 1); /* no iteration */
	for (size_t i = 0; i < x->len; i++) {
		int steps = 0;
		for (int64_t v = value_int(x, i); v != 1; steps++)
			v = v % 2 ? 3 * v + 1 : v / 2;
		want(o, i, steps);
	}
	LAUNCH(s, "collatz", CONFIG(.grid = {(uint32_t)programs}), ptr(x), ptr(o));
	case_end(s);
}

static void newton(struct suite *s, tl_dtype t, int most_value, int warps)
{
	if (!case_begin(s, file, "newton %s up to %d warps=%d", tl_dtype_name(t), most_value, warps))
		return;
	struct array *x = in(s, "x", t, 3 * BLOCK), *o = out(s, "o", t, 3 * BLOCK), *count = out(s, "count", TL_I32, 3);
	fill(x, 0, most_value);
	/* an element needs so many steps; the tile as many as its slowest, and one to see it */
	for (size_t p = 0; p < 3; p++) {
		int most = 0;
		bool any = false;
		for (size_t i = p * BLOCK; i < (p + 1) * BLOCK; i++) {
			int steps = 0;
			int64_t v = value_int(x, i), r = v;
			for (int64_t n; n = (r + v / (r ? r : 1)) / 2, n < r; r = n)
				steps++;
			want_int(o, i, r);
			most = steps > most ? steps : most;
			any |= v > 0;
		}
		want(count, p, any ? most + 1 : 0);
	}
	LAUNCH(s, "newton", CONFIG(.grid = {3}, .num_warps = warps), ptr(x), ptr(o), ptr(count), tl_int(BLOCK));
	case_end(s);
}

static void primes(struct suite *s, int n)
{
	if (!case_begin(s, file, "primes below %d", n))
		return;
	struct array *o = out(s, "o", TL_I32, 64);
	size_t found = 0;
	for (int p = 2; p < n; p++) {
		int divisors = 0;
		for (int d = 1; d <= p; d++)
			divisors += p % d == 0;
		if (divisors == 2)
			want(o, found++, p);
	}
	LAUNCH(s, "nested_while", CONFIG(.grid = {1}), ptr(o), tl_int(n));
	case_end(s);
}

/* --- for ----------------------------------------------------------------------------------------------------- */

static void visited(struct suite *s, const char *form, tl_arg start_arg, int start, int end, int step)
{
	if (!case_begin(s, file, "visited %s %s %d to %d by %d", form,
			start_arg.typed ? tl_dtype_name(start_arg.dtype) : "int", start, end, step))
		return;
	struct array *o = out(s, "o", TL_I64, 128), *count = out(s, "count", TL_I32, 1);
	size_t n = 0;
	if (!strcmp(form, "from 0"))
		start = 0, step = 1;
	if (!strcmp(form, "static"))
		start = 3, end = 3 + 5 * step;
	for (int i = start; step > 0 ? i < end : i > end; i += step)
		want(o, n++, i);
	want(count, 0, (double)n);
	LAUNCH(s, "visited", CONFIG(.grid = {1}), ptr(o), ptr(count), start_arg, tl_int(end), tl_int(step),
	       tl_str(form), tl_int(step));
	case_end(s);
}

static void fibonacci(struct suite *s, int n)
{
	if (!case_begin(s, file, "fibonacci %d", n))
		return;
	struct array *o = out(s, "o", TL_I32, 4);
	int a = 0, b = 1;
	for (int i = 0; i < n; i++) {
		int c = a + b;
		a = b, b = c;
	}
	want(o, 0, a), want(o, 1, a), want(o, 2, b), want(o, 3, 100 - n);
	LAUNCH(s, "fibonacci", CONFIG(.grid = {1}), ptr(o), tl_int(n));
	case_end(s);
}

static void exchange(int *x, int *y)
{
	int t = *x;
	*x = *y, *y = t;
}

static void exchanged(struct suite *s, int n, int warps)
{
	if (!case_begin(s, file, "exchanged tiles n=%d warps=%d", n, warps))
		return;
	struct array *x = in(s, "x", TL_I32, 3 * BLOCK), *o = out(s, "o", TL_I32, 3 * BLOCK);
	int at[3] = {0, 1, 2};
	for (int k = 0; k < n; k++)
		exchange(&at[1], &at[2]), exchange(&at[0], &at[1]);
	for (int k = 0; k < n; k++) {
		exchange(&at[0], &at[1]);
		if (k % 3 == 1)
			exchange(&at[1], &at[2]);
	}
	for (int k = n; k > 0; k -= 2)
		exchange(&at[0], &at[1]), exchange(&at[1], &at[2]);
	for (int i = 0; i < 3 * BLOCK; i++)
		want_int(o, (size_t)i, value_int(x, (size_t)(at[i / BLOCK] * BLOCK + i % BLOCK)));
	LAUNCH(s, "exchanged", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), tl_int(n), tl_int(BLOCK));
	case_end(s);
}

static void nested(struct suite *s, int n, int m, int warps)
{
	if (!case_begin(s, file, "nested loops %d by %d warps=%d", n, m, warps))
		return;
	struct array *x = in(s, "x", TL_I32, (size_t)((m + 1) * BLOCK + n)), *o = out(s, "o", TL_I32, 2 * BLOCK + 1);
	int64_t total[BLOCK] = {0}, largest[BLOCK], rows = 0;
	fill(x, -100, 100);
	for (int i = 0; i < BLOCK; i++)
		largest[i] = -1000;
	for (int r = 0; r < n; r++) {
		int64_t sum = 0;
		for (int i = 0; i < BLOCK; i++) {
			int64_t line = 0;
			for (int c = r % 2, k = 0; c < m; c++, k++) {
				int64_t v = value_int(x, (size_t)(r + i + k * BLOCK));
				line += (r + c) % 3 ? -2 * v : v;
				if ((r + c) % 3 && v > largest[i])
					largest[i] = v;
			}
			total[i] += line * (r + 1);
			sum += line;
		}
		rows += sum > 0;
	}
	for (size_t i = 0; i < BLOCK; i++) {
		want_int(o, i, total[i]);
		want_int(o, BLOCK + i, largest[i]);
	}
	want_int(o, 2 * BLOCK, rows);
	LAUNCH(s, "nested", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), tl_int(n), tl_int(m),
	       tl_int(BLOCK));
	case_end(s);
}

static void carried_types(struct suite *s, int n, int warps)
{
	enum { B = 16 };
	if (!case_begin(s, file, "carried types n=%d warps=%d", n, warps))
		return;
	struct array *o = out(s, "o", TL_I64, 5 * B + B * B);
	int64_t square[B][B], turned[B][B];
	for (int i = 0; i < B; i++) {
		int64_t small = i, flag = i % 2 == 0;
		for (int k = 0; k < n; k++) {
			small = wrap(TL_I8, small * 3);
			flag = !flag;
		}
		want_int(o, (size_t)i, flag);
		want_int(o, (size_t)(B + i), small);
		want_int(o, (size_t)(2 * B + i), ((int64_t)i << 33) + n);
		want_int(o, (size_t)(3 * B + i), n % 2 ? -i : i);
		want_int(o, (size_t)(4 * B + i), i + 1);
		for (int j = 0; j < B; j++)
			square[i][j] = i * B + j;
	}
	for (int k = 0; k < n; k++) {
		for (int i = 0; i < B * B; i++)
			turned[i / B][i % B] = square[i % B][i / B] + 1;
		memcpy(square, turned, sizeof square);
	}
	for (int i = 0; i < B * B; i++)
		want_int(o, (size_t)(5 * B + i), square[i / B][i % B]);
	LAUNCH(s, "carried_types", CONFIG(.grid = {1}, .num_warps = warps), ptr(o), tl_int(n), tl_int(B));
	case_end(s);
}

static void carried_in_place(struct suite *s, int n)
{
	enum { B = 16 };
	if (!case_begin(s, file, "carried in place n=%d", n))
		return;
	struct array *o = out(s, "o", TL_I64, (size_t)(n * B));
	for (int i = 0; i < B; i++) {
		int64_t x = 0;
		for (int k = 0; k < n; k++) {
			x = wrap(TL_I8, (uint64_t)((x < 0 ? x : 0) + 93) << (i & 7));
			if (wrap(TL_I8, (uint64_t)k << (x & 7)) >= 0)
				want_int(o, (size_t)(k * B + i), x);
		}
	}
	LAUNCH(s, "carried_in_place", CONFIG(.grid = {1}), ptr(o), tl_int(n));
	case_end(s);
}

/* --- loops whose loads are issued ahead ---------------------------------------------------------------------- */

static void row_sums(struct suite *s, tl_dtype t, const char *form, int n, int block, int stages, int warps)
{
	enum { ROWS = 3 };
	if (!case_begin(s, file, "row sums %s %s n=%d block=%d stages=%d warps=%d", form, tl_dtype_name(t), n, block,
			stages, warps))
		return;
	int stride = n + 16 - n % 16;
	struct array *x = in(s, "x", t, (size_t)(ROWS * stride)), *o = out(s, "o", TL_F32, ROWS);
	for (size_t i = 0; i < x->len; i++)
		set(x, i, (double)random_int(-50, 50));
	for (int r = 0; r < ROWS; r++) {
		double sum = 0;
		for (int i = 0; i < n; i++)
			sum += value(x, (size_t)(r * stride + i));
		want(o, (size_t)r, sum);
	}
	LAUNCH(s, "row_sums", CONFIG(.grid = {ROWS}, .num_stages = stages, .num_warps = warps), ptr(x), ptr(o),
	       tl_int(n), tl_int(stride), tl_int(block), tl_str(form));
	case_end(s);
}

static void copy_blocks(struct suite *s, int n, int block, int stages)
{
	if (!case_begin(s, file, "copy blocks n=%d block=%d stages=%d", n, block, stages))
		return;
	struct array *x = in(s, "x", TL_I32, (size_t)n), *y = in(s, "y", TL_I32, (size_t)n),
		*o = out(s, "o", TL_I32, (size_t)n);
	fill(x, -9, 9);
	for (size_t i = 0; i < x->len; i++)
		want_int(o, i, value_int(x, i) + (value_int(x, i) > 0 ? value_int(y, i) : -5));
	LAUNCH(s, "copy_blocks", CONFIG(.grid = {1}, .num_stages = stages), ptr(x), ptr(y), ptr(o), tl_int(n),
	       tl_int(block));
	case_end(s);
}

static void indirect(struct suite *s, int rows, int stages)
{
	if (!case_begin(s, file, "indirect rows=%d stages=%d", rows, stages))
		return;
	struct array *at = in(s, "at", TL_I32, (size_t)rows), *x = in(s, "x", TL_I32, 10 * BLOCK),
		*o = out(s, "o", TL_I32, BLOCK);
	fill(at, 0, 9);
	for (size_t i = 0; i < BLOCK; i++) {
		uint64_t acc = 0;
		for (size_t r = 0; r < at->len; r++)
			acc = acc * 3 + (uint64_t)value_int(x, (size_t)value_int(at, r) * BLOCK + i);
		want_int(o, i, (int64_t)acc);
	}
	LAUNCH(s, "indirect", CONFIG(.grid = {1}, .num_stages = stages), ptr(at), ptr(x), ptr(o), tl_int(rows),
	       tl_int(BLOCK));
	case_end(s);
}

static void chase(struct suite *s, int n, int stages)
{
	if (!case_begin(s, file, "chase n=%d stages=%d", n, stages))
		return;
	struct array *next = in(s, "next", TL_I32, 50), *o = out(s, "o", TL_I32, (size_t)n);
	fill(next, 0, 49);
	int64_t at = 17;
	for (int k = 0; k < n; k++)
		want_int(o, (size_t)k, at = value_int(next, (size_t)at));
	LAUNCH(s, "chase", CONFIG(.grid = {1}, .num_stages = stages), ptr(next), ptr(o), tl_int(17), tl_int(n));
	case_end(s);
}

static void in_order(struct suite *s, int n, int stages, int warps)
{
	if (!case_begin(s, file, "in order n=%d stages=%d warps=%d", n, stages, warps))
		return;
	struct array *x = inout(s, "x", TL_I32, (size_t)(n ? n : 1) * BLOCK);
	fill(x, -1000, 1000);
	for (int r = 1; r < n; r++)
		for (int i = 0; i < BLOCK; i++) { /* of row 0, moved by a place and increased in each step */
			size_t from = (size_t)((i + BLOCK - r % BLOCK) % BLOCK);
			want_int(x, (size_t)(r * BLOCK + i), value_int(x, from) + r * (r + 1) / 2);
		}
	LAUNCH(s, "in_order", CONFIG(.grid = {1}, .num_stages = stages, .num_warps = warps), ptr(x), tl_int(n),
	       tl_int(BLOCK));
	case_end(s);
}

static void ping_pong(struct suite *s, int n, int stages, int warps)
{
	if (!case_begin(s, file, "ping pong n=%d stages=%d warps=%d", n, stages, warps))
		return;
	struct array *xy[] = {inout(s, "x", TL_I32, BLOCK), inout(s, "y", TL_I32, BLOCK)};
	fill(xy[0], -1000, 1000), fill(xy[1], -1000, 1000);
	for (size_t i = 0; i < BLOCK; i++) {
		int64_t now[] = {value_int(xy[0], i), value_int(xy[1], i)};
		for (int k = 0; k < n; k++)
			now[1 - k % 2] = now[k % 2] * 2 + k;
		want_int(xy[0], i, now[0]), want_int(xy[1], i, now[1]);
	}
	LAUNCH(s, "ping_pong", CONFIG(.grid = {1}, .num_warps = warps), ptr(xy[0]), ptr(xy[1]), tl_int(n),
	       tl_int(stages), tl_int(BLOCK));
	case_end(s);
}

/* --- functions, assertions ----------------------------------------------------------------------------------- */

static void functions(struct suite *s, int base, const char *f)
{
	if (!case_begin(s, file, "functions %s base=%d", f, base))
		return;
	struct array *x = in(s, "x", TL_I32, BLOCK), *o = out(s, "o", TL_I32, 4 * BLOCK);
	fill(x, 0, 100000);
	for (size_t i = 0; i < BLOCK; i++) {
		int v = (int)value(x, i), b = base;
		want(o, i, v % 10 + v / 10 % 10 + v / 100 % 10);
		want(o, BLOCK + i, v % b + v / b % b + v / b / b % b);
		want(o, 2 * BLOCK + i, (!strcmp(f, "twice") ? 4 * v : v + 2) + v + 4);
		want(o, 3 * BLOCK + i, v / 3 + v / 7 * 10 + v % 7 * 100);
	}
	LAUNCH(s, "functions", CONFIG(.grid = {1}), ptr(x), ptr(o), tl_int(base), tl_func(f), tl_int(BLOCK));
	case_end(s);
}

/* The element that is wrong, or -1; what the message must say, or NULL where nothing is wrong. */
static void asserts(struct suite *s, int n, int at, int wrong, const char *message)
{
	if (!case_begin(s, file, "asserts n=%d x[%d]=%d", n, at, wrong))
		return;
	struct array *x = in(s, "x", TL_I32, (size_t)n), *o = out(s, "o", TL_I32, (size_t)n);
	fill(x, 0, 99);
	if (at >= 0)
		set(x, (size_t)at, wrong);
	/* other devices do not check unless asked to when compiling */
	bool holds = !message || !on_device(s, "interp");
	for (size_t i = 0; i < x->len && holds; i++)
		want(o, i, value(x, i));
	if (holds)
		LAUNCH(s, "asserts", CONFIG(.grid = {1}, .debug = !message), ptr(x), ptr(o), tl_int(n), tl_int(128));
	else
		launch_fails(s, TL_ERR_KERNEL, message, "asserts", CONFIG(.grid = {1}),
			     ARGS(ptr(x), ptr(o), tl_int(n), tl_int(128)));
	case_end(s);
}

static void all_loops(struct suite *s)
{
	static const char *const fors[] = {"step", "unroll by 5", "constant", "tl.range", "unroll", "static", "changed",
					   "from 0"};
	static const int bounds[][3] = {{0, 10, 1},   {0, 10, 3},  {5, 5, 1},   {7, 2, 1},   {-10, 10, 7},
					{3, 4, 100},  {10, 0, -1}, {10, 0, -3}, {0, 10, -2}, {5, -17, -4},
					{-3, -4, -1}, {0, 1, 1},   {0, 2, 1},   {1, 64, 16}};
	static const char *const sums[] = {"mask", "advance", "down", "stages", "unroll", "while"};
	static const int lengths[] = {0, 1, 16, 17, 32, 33, 48, 100, 200};
	static const tl_dtype types[] = {TL_F32, TL_F16, TL_I8};
	for (int f = 0; f < COUNT(fors); f++)
		for (int b = 0; b < COUNT(bounds); b++) {
			if (f < 2 && bounds[b][2] < 0) /* a step known only at run time counts up */
				continue;
			visited(s, fors[f], tl_int(bounds[b][0]), bounds[b][0], bounds[b][1], bounds[b][2]);
			visited(s, fors[f], tl_int_typed(TL_I64, bounds[b][0]), bounds[b][0], bounds[b][1],
				bounds[b][2]);
		}
	for (int k = 0, f = 0; f < COUNT(sums); f++)
		for (int i = 0; i < COUNT(lengths); i++)
			for (int t = 0; t < 3; t++, k++)
				row_sums(s, types[t], sums[f], lengths[i], k % 4 ? 16 : 64, 1 + k % 5, 1 << k % 4);
	static const int wide[] = {0, 5, 1023, 1024, 1040, 3072, 5000};
	for (int k = 0, f = 0; f < 3; f++)
		for (int i = 0; i < COUNT(wide); i++)
			for (int t = 0; t < 3; t++, k++) /* 8 to 64 registers of a thread: issued ahead */
				row_sums(s, types[t], sums[f], wide[i], 1024, 1 + k % 3,
					 types[t] == TL_I8 ? 1 : 1 << k % 2);
	for (int n = 0; n < 5; n++)
		for (int stages = 1; stages < 5; stages++) {
			copy_blocks(s, n * 50, 64, stages), indirect(s, n * n, stages), chase(s, 3 * n, stages),
				in_order(s, n * 3, stages, 1 << stages % 4);
			ping_pong(s, n * 2 + stages % 2, stages, 1 << stages % 4);
		}
	for (int n = 0; n < 7; n++) {
		fibonacci(s, n * 5), carried_types(s, n, 1 << n % 4), exchanged(s, n ? n + 1 : 0, 1 << n % 4);
		nested(s, n, 5 - n / 2, 1 << n % 4), nested(s, 4, n, 4);
	}
	collatz(s, 1), collatz(s, 50);
	newton(s, TL_I32, 0, 4), newton(s, TL_I32, 100, 1), newton(s, TL_I32, 2000000000, 8),
		newton(s, TL_I64, 2000000000, 2);
	primes(s, 0), primes(s, 3), primes(s, 100), primes(s, 300);
}

/* Random bounds, mostly near an end of the type, at most 40 iterations apart or in the wrong order. */
static void between(struct suite *s, tl_dtype t, int number, int unroll)
{
	static const int steps[] = {1, 2, 3, 7, 64};
	if (!case_begin(s, file, "between %s bounds %d unroll %d", tl_dtype_name(t), number, unroll))
		return;
	int step = steps[random_int(0, COUNT(steps) - 1)], bits = t == TL_I64 || t == TL_U64 ? 64 : 32;
	__int128 one = 1, least = is_signed(t) ? -(one << (bits - 1)) : 0, most = least + (one << bits) - 1;
	int64_t count = random_int(-5, 40), off = random_int(0, 200);
	__int128 hi = number % 3 == 0 ? most - off : number % 3 == 1 ? least + off : random_int(-100, 100);
	hi = hi < least ? least : hi > most ? most : hi;
	__int128 lo = hi - count * step + random_int(0, step - 1);
	lo = lo < least ? least : lo > most ? most : lo;
	struct array *o = out(s, "o", TL_I32, 2);
	uint32_t n = 0, mix = 0;
	for (__int128 i = lo; i < hi; i += step)
		n++, mix = mix * 31 + (uint32_t)((uint64_t)i & 1023);
	want_int(o, 0, (int32_t)n);
	want_int(o, 1, (int32_t)mix);
	LAUNCH(s, "between", CONFIG(.grid = {1}, .num_warps = 1), ptr(o),
	       is_signed(t) ? tl_int_typed(t, (int64_t)lo) : tl_uint_typed(t, (uint64_t)lo),
	       is_signed(t) ? tl_int_typed(t, (int64_t)hi) : tl_uint_typed(t, (uint64_t)hi), tl_int(step),
	       tl_int(unroll));
	case_end(s);
}

static void groups(struct suite *s, int by, int most)
{
	if (!case_begin(s, file, "groups of up to %d by %d", most, by))
		return;
	int step = (int)random_int(1, 3), lo = (int)random_int(0, 5), n = lo + (int)random_int(0, 40);
	int first = (int)random_int(0, 300), g = (int)random_int(1, most);
	struct array *o = out(s, "o", TL_I32, (size_t)(2 * n + 2));
	for (int i = lo; i < n; i += step) {
		want_int(o, (size_t)(2 * i), (i * by + first) / g);
		want_int(o, (size_t)(2 * i + 1), (i * by + first) % g * 10 + i % g);
	}
	LAUNCH(s, "groups", CONFIG(.grid = {1}, .num_warps = 1), ptr(o), tl_int(lo), tl_int(n), tl_int(first),
	       tl_int(g), tl_int(step), tl_int(by));
	case_end(s);
}

static void sums_ahead(struct suite *s, tl_dtype t, int rows, int stages, bool at_end)
{
	enum { LONG = 128 };
	if (!case_begin(s, file, "sums ahead %s rows=%d stages=%d%s", tl_dtype_name(t), rows, stages,
			at_end ? " at the end" : ""))
		return;
	struct array *x = in(s, "x", TL_F32, (size_t)(rows * LONG)), *o = out(s, "o", TL_F32, LONG);
	int64_t hi = at_end ? most(t) : rows;
	for (int i = 0; i < rows * LONG; i++)
		set(x, (size_t)i, (double)random_int(-4, 4));
	for (int i = 0; i < LONG; i++) {
		double sum = 0;
		for (int k = 0; k < rows; k++)
			sum += exp2(value(x, (size_t)(k * LONG + i)));
		want(o, (size_t)i, sum);
	}
	tolerance(o, 0, 1e-6);
	LAUNCH(s, "sums_ahead", CONFIG(.grid = {1}), ptr(x), ptr(o), tl_int_typed(t, hi - rows), tl_int_typed(t, hi),
	       tl_int(LONG), tl_int(stages));
	case_end(s);
}

static void flattened(struct suite *s, tl_dtype t, int sums, int k, int step, int stages)
{
	enum { B = 16 };
	if (!case_begin(s, file, "flattened %s sums=%d k=%d step=%d stages=%d", tl_dtype_name(t), sums, k, step,
			stages))
		return;
	struct array *a = in(s, "a", TL_F16, (size_t)(sums * k * B * B)),
		     *o = out(s, "o", TL_F32, (size_t)(sums * B * B));
	for (size_t i = 0; i < a->len; i++)
		set(a, i, (double)random_int(-2, 2));
	for (int n = 0; n < sums; n++)
		for (int i = 0; i < B; i++)
			for (int j = 0; j < B; j++) {
				double sum = 0;
				for (int m = 0; m < k * B; m++) {
					size_t tile = (size_t)((n * k + m / B) * B * B);
					sum += value(a, tile + (size_t)(i * B + m % B)) *
					       value(a, tile + (size_t)(m % B * B + j));
				}
				want(o, (size_t)((n * B + i) * B + j), sum);
			}
	LAUNCH(s, "flattened", CONFIG(.grid = {1}, .num_warps = 1, .num_stages = stages), ptr(a), ptr(o),
	       tl_int_typed(t, most(t) - 1 - (sums - 1) * step), tl_int_typed(t, most(t)), tl_int(k), tl_int(step),
	       tl_int(B));
	case_end(s);
}

/* --- loops that are left ------------------------------------------------------------------------------------- */

/* ends: where the first 2 or 3 stands, or n: there is none. */
static void until(struct suite *s, const char *form, int n, int step, int ends, int how, int warps)
{
	if (!case_begin(s, file, "until %s n=%d step=%d ends=%d by %d warps=%d", form, n, step, ends, how, warps))
		return;
	bool down = !strcmp(form, "down"), left = false;
	struct array *what = in(s, "what", TL_I32, (size_t)n + 1), *x = in(s, "x", TL_I32, (size_t)(n * BLOCK + 1)),
		     *o = out(s, "o", TL_I32, (size_t)((n + 1) * BLOCK));
	fill(x, -1000, 1000);
	for (int i = 0; i < n; i++)
		set(what, (size_t)i, (double)(i == ends ? how : i > ends ? random_int(0, 3) : random_int(0, 1)));
	int total = 0;
	for (int k = 0; k < n && !left; k += step) {
		int i = down ? n - 1 - k : k, w = (int)value(what, (size_t)i);
		left = w > 1;
		if (w == 3)
			total -= 107;
		if (w > 0)
			continue;
		total += i;
		for (size_t c = 0; c < BLOCK; c++)
			want(o, (size_t)((i + 1) * BLOCK) + c, value(x, (size_t)(i * BLOCK) + c));
	}
	for (size_t c = 0; c < BLOCK; c++)
		want(o, c, total + (left ? 100 : 200));
	LAUNCH(s, "until", CONFIG(.grid = {1}, .num_warps = warps), ptr(what), ptr(x), ptr(o), tl_int(n), tl_int(step),
	       tl_str(form), tl_int(BLOCK));
	case_end(s);
}

static void searches(struct suite *s, int rows, int columns, int r, int c)
{
	if (!case_begin(s, file, "search %dx%d at %d,%d", rows, columns, r, c))
		return;
	struct array *x = in(s, "x", TL_I32, (size_t)(rows * columns + 1)), *o = out(s, "o", TL_I32, BLOCK + 2);
	for (int i = 0; i < rows * columns; i++)
		set(x, (size_t)i, (double)(i % columns > c && random_int(0, 3) == 0 ? -1 : random_int(0, 6)));
	if (r < rows)
		set(x, (size_t)(r * columns + c), 7);
	for (size_t i = 0; i < BLOCK; i++)
		want(o, i, r >= rows ? (double)i : (int)i <= c ? value(x, (size_t)(r * columns) + i) : -1);
	want(o, BLOCK, r < rows ? r : rows);
	want(o, BLOCK + 1, r < rows ? c : -1);
	LAUNCH(s, "searches", CONFIG(.grid = {1}), ptr(x), ptr(o), tl_int(rows), tl_int(columns), tl_int(7),
	       tl_int(BLOCK));
	case_end(s);
}

/* Bounds at most 20 iterations apart, at an end of the type. */
static void near_ends(struct suite *s, tl_dtype t, const char *form, int step, bool top, int stop)
{
	if (!case_begin(s, file, "near ends %s %s by %d %s stop=%d", tl_dtype_name(t), form, step,
			top ? "top" : "bottom", stop))
		return;
	int bits = t == TL_I64 || t == TL_U64 ? 64 : 32;
	bool down = !strcmp(form, "down");
	__int128 one = 1, least = is_signed(t) ? -(one << (bits - 1)) : 0, most = least + (one << bits) - 1;
	__int128 lo = top ? most - random_int(0, 20 * step) : least, hi = top ? most : least + random_int(0, 20 * step);
	struct array *o = out(s, "o", TL_I32, 2);
	uint32_t n = 0, mix = 0;
	for (__int128 i = down ? hi : lo; (down ? i > lo : i < hi) && n != (uint32_t)stop; i += down ? -step : step) {
		n++;
		if (((uint64_t)i & 3) != 1)
			mix = mix * 31 + (uint32_t)((uint64_t)i & 1023);
	}
	want_int(o, 0, (int32_t)n);
	want_int(o, 1, (int32_t)mix);
	LAUNCH(s, "near_ends", CONFIG(.grid = {1}, .num_warps = 1), ptr(o),
	       is_signed(t) ? tl_int_typed(t, (int64_t)lo) : tl_uint_typed(t, (uint64_t)lo),
	       is_signed(t) ? tl_int_typed(t, (int64_t)hi) : tl_uint_typed(t, (uint64_t)hi), tl_int(step),
	       tl_int(stop), tl_str(form), tl_int(step));
	case_end(s);
}

static void product_until(struct suite *s, int k, double limit, int warps)
{
	enum { B = 32 };
	if (!case_begin(s, file, "product until %g k=%d warps=%d", limit, k, warps))
		return;
	struct array *a = in(s, "a", TL_F16, (size_t)(k * B * B)), *b = in(s, "b", TL_F16, (size_t)(k * B * B)),
		     *o = out(s, "o", TL_F32, B * B + 1);
	for (size_t i = 0; i < a->len; i++)
		set(a, i, (double)random_int(-2, 3)), set(b, i, (double)random_int(-2, 3));
	double sum[B * B] = {0}, largest = -1e30;
	int used = 0;
	while (used < k && !(used && largest >= limit)) {
		size_t tile = (size_t)(used++ * B * B);
		largest = -1e30;
		for (size_t i = 0; i < B * B; i++) {
			for (size_t m = 0; m < B; m++)
				sum[i] += value(a, tile + i / B * B + m) * value(b, tile + m * B + i % B);
			largest = sum[i] > largest ? sum[i] : largest;
		}
	}
	for (size_t i = 0; i < B * B; i++)
		want(o, i, sum[i]);
	want(o, B * B, used);
	LAUNCH(s, "product_until", CONFIG(.grid = {1}, .num_warps = warps), ptr(a), ptr(b), ptr(o), tl_int(k),
	       tl_float(limit), tl_int(B));
	case_end(s);
}

static void loops_left(struct suite *s)
{
	static const char *const forms[] = {"for", "down", "while", "named", "while True", "static", "tuple"};
	static const tl_dtype counters[] = {TL_I32, TL_U32, TL_I64, TL_U64};
	for (int f = 0; f < COUNT(forms); f++)
		for (int ends = 0; ends < 8; ends++) {
			int n = f < 5 ? 7 : 6;
			until(s, forms[f], n, 1, ends, 2 + ends % 2, 1 << ends % 4);
			until(s, forms[f], n, 1, ends, 3 - ends % 2, 4);
		}
	for (int n = 0; n < 9; n += 4)
		until(s, "for", n, 3, 6, 2, 1), until(s, "for", n, 2, 4, 3, 2), until(s, "while", n, 1, n, 2, 4);
	for (int r = 0; r < 5; r++)
		searches(s, 4, 9, r, r * 2), searches(s, 3, 32, r, 31 - r);
	static const char *const steps[] = {"constant", "step", "down"};
	for (int t = 0; t < COUNT(counters); t++)
		for (int step = 1; step < 8; step += 3)
			for (int k = 0; k < 6; k++)
				near_ends(s, counters[t], steps[k % 3], step, k % 2, 1000),
					near_ends(s, counters[t], steps[k % 3], step, k % 2, 5);
	for (int k = 1; k < 6; k += 2)
		product_until(s, k, 1, 4), product_until(s, k, 100, 2), product_until(s, k, 1e6, 4);
}

void theme_control(struct suite *s)
{
	static const tl_dtype counters[] = {TL_I32, TL_U32, TL_I64, TL_U64};
	static const tl_dtype types[] = {TL_I32, TL_F32, TL_F16, TL_I64};
	static const int ns[] = {-1, 0, 1, 5, 6, 100};
	for (int t = 0; t < COUNT(types); t++)
		for (int mode = -4; mode < 4; mode++)
			branches(s, types[t], mode, 1 << (t + mode + 4) % 4);
	for (int first = -1; first < 3; first++)
		for (int n = 0; n < 7; n++)
			effects(s, first, n, first % 2 || n > 2);
	for (int n = -4; n < 16; n++)
		ternaries(s, n, n % 3 == 0);
	for (int i = 0; i < COUNT(ns); i++)
		for (int limit = 0; limit < 5; limit += 2)
			early_returns(s, ns[i], limit);
	all_loops(s);
	for (int n = 1; n < 200; n *= 5)
		carried_in_place(s, n);
	loops_left(s);
	for (int t = 0; t < COUNT(counters); t++)
		for (int number = 0; number < 12; number++)
			between(s, counters[t], number, 1 + number % 4);
	for (int most = 2; most < 2000; most *= 5)
		for (int by = 1; by < 200; by *= 8)
			groups(s, by, most);
	for (int rows = 1; rows < 8; rows += 2)
		for (int stages = 2; stages < 5; stages++)
			sums_ahead(s, TL_I64, rows, stages, true), sums_ahead(s, TL_I32, rows, stages, true),
				sums_ahead(s, TL_I64, rows, stages, false);
	for (int stages = 2; stages < 5; stages++)
		for (int step = 1; step < 5; step += 3)
			flattened(s, TL_I64, 3, stages, step, stages), flattened(s, TL_I32, 4, 2, step, stages);
	functions(s, 10, "twice"), functions(s, 2, "next_of"), functions(s, 1, "twice"), functions(s, 16, "next_of");
	asserts(s, 40, -1, 0, NULL), asserts(s, 40, 30, 1000, NULL), asserts(s, 40, 7, -3, "x must not be negative");
	asserts(s, 40, 10, 1000, "x must be small"), asserts(s, 64, -1, 0, NULL),
		asserts(s, 65, -1, 0, "n is too large");
}
