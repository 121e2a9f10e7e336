/* What reaches down to the device: inline assembly, tl.extra.cuda, and checks while a kernel runs. */
#include "themes.h"

static const char file[] = "device.tl";

static const struct {
	const char *name;
	tl_dtype in, out;
} ones[] = {{"shf", TL_I32, TL_I32}, {"b64", TL_I64, TL_I64}, {"fma f32", TL_F32, TL_F32},
	    {"f64", TL_F64, TL_F64}, {"b16", TL_I16, TL_I16}, {"pred", TL_I32, TL_I32}};

static void one(struct suite *s, int kind, int n, int warps)
{
	if (!case_begin(s, file, "asm %s n=%d warps=%d", ones[kind].name, n, warps))
		return;
	struct array *x = in(s, "x", ones[kind].in, (size_t)n), *y = in(s, "y", ones[kind].in, (size_t)n),
		     *o = out(s, "o", ones[kind].out, (size_t)n);
	for (size_t i = 0; i < x->len; i++) {
		int64_t a = x->i ? value_int(x, i) : 0, b = x->i ? value_int(y, i) : 0;
		switch (kind) {
		case 0: want_int(o, i, (int32_t)((uint32_t)b << 17 | (uint32_t)a >> 15)); break;
		case 1: want_int(o, i, (int64_t)((uint64_t)a - (uint64_t)b) ^ b); break;
		case 2: want(o, i, fma(value(x, i), value(y, i), 0.5)); break;
		case 3: want(o, i, value(x, i) - value(y, i)); break;
		case 4: want_int(o, i, (int16_t)(a ^ b)); break;
		default: want_int(o, i, a > 0 && b > 0); break;
		}
	}
	LAUNCH(s, "one", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(y), ptr(o), tl_int(kind), tl_int(n));
	case_end(s);
}

static void packed(struct suite *s, int kind, int n, int warps)
{
	static const char *const names[] = {"u8 by 4", "u8 by 2", "fp16 by 2", "u8 alone", "u8 by 8"};
	if (!case_begin(s, file, "asm %s n=%d warps=%d", names[kind], n, warps))
		return;
	tl_dtype t = kind == 2 ? TL_F16 : TL_U8;
	struct array *x = in(s, "x", t, (size_t)n), *o = out(s, "o", t, (size_t)n);
	for (size_t i = 0; i < x->len; i++) {
		int64_t v = x->i ? value_int(x, i) : 0;
		switch (kind) {
		case 0: want_int(o, i, (v & 0x1F) << 3); break;
		case 1: want_int(o, i, v ^ (i % 2 ? 0xA5 : 0xC3)); break; /* neighbours, the lower byte first */
		case 2: want_number(o, i, -value(x, i)); break;
		case 3: want_int(o, i, (uint8_t)(v + 7)); break;
		default: want_int(o, i, (uint8_t)~v); break;
		}
	}
	LAUNCH(s, "packed", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), tl_int(kind), tl_int(n));
	case_end(s);
}

static void several(struct suite *s, int m, int n, int warps)
{
	if (!case_begin(s, file, "asm several results %dx%d warps=%d", m, n, warps))
		return;
	size_t len = (size_t)(m * n);
	struct array *a = in(s, "a", TL_U8, len), *b = in(s, "b", TL_F32, (size_t)n), *c = out(s, "c", TL_I32, len),
		     *d = out(s, "d", TL_F32, len);
	fill(b, -300, 300);
	for (size_t i = 0; i < len; i++) {
		want_int(c, i, value_int(a, i));
		want(d, i, fmax((double)value_int(a, i), value(b, i % (size_t)n)));
	}
	LAUNCH(s, "several", CONFIG(.grid = {1}, .num_warps = warps), ptr(a), ptr(b), ptr(c), ptr(d), tl_int(m),
	    tl_int(n));
	case_end(s);
}

static void through_memory(struct suite *s, int n, int warps)
{
	if (!case_begin(s, file, "asm through memory n=%d warps=%d", n, warps))
		return;
	struct array *x = in(s, "x", TL_I32, (size_t)n), *o = out(s, "o", TL_I32, 2 * (size_t)n);
	fill(x, -1000, 1000);
	for (size_t i = 0; i < x->len; i++) {
		want_int(o, i, value_int(x, i) + 5);
		want_int(o, x->len + i, value_int(x, i ^ (x->len / 2)) + 5);
	}
	LAUNCH(s, "through_memory", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), tl_int(n));
	case_end(s);
}

static void counted(struct suite *s, int times, int warps)
{
	enum { N = 256 };
	if (!case_begin(s, file, "asm in a loop, %d times, warps=%d", times, warps))
		return;
	struct array *o = inout(s, "o", TL_I32, (size_t)2 * N);
	for (size_t i = 0; i < N; i++) {
		set_int(o, i, (int64_t)i);
		set_int(o, N + i, -1);
		want_int(o, i, times);
		want_int(o, N + i, (int64_t)i + 2 * times);
	}
	LAUNCH(s, "counted", CONFIG(.grid = {1}, .num_warps = warps), ptr(o), tl_int(times), tl_int(N));
	case_end(s);
}

static void before_dot(struct suite *s, int k, int block, int stages)
{
	enum { BK = 32 };
	if (!case_begin(s, file, "asm before dot k=%d block=%d stages=%d", k, block, stages))
		return;
	size_t n = (size_t)block;
	struct array *a = in(s, "a", TL_I8, n * (size_t)k), *b = in(s, "b", TL_F16, n * (size_t)k),
		     *o = out(s, "o", TL_F32, n * n);
	for (size_t i = 0; i < n * n; i++) {
		double sum = 0;
		for (size_t q = 0; q < (size_t)k; q++)
			sum += (double)value_int(a, i / n * (size_t)k + q) * value(b, q * n + i % n);
		want(o, i, sum);
	}
	tolerance(o, 1e-2, 1e-4);
	LAUNCH(s, "before_dot", CONFIG(.grid = {1}, .num_stages = stages), ptr(a), ptr(b), ptr(o), tl_int(k),
	    tl_int(block), tl_int(BK));
	case_end(s);
}

static void scalars(struct suite *s, int x, int y)
{
	if (!case_begin(s, file, "asm of scalars %d %d", x, y))
		return;
	struct array *o = out(s, "o", TL_I32, 1);
	want_int(o, 0, (int64_t)y * 10 + x);
	LAUNCH(s, "scalars", CONFIG(.grid = {1}), ptr(o), tl_int(x), tl_int(y));
	case_end(s);
}

static void machine(struct suite *s, int warps)
{
	enum { TIMES = 5000 };
	if (!case_begin(s, file, "machine warps=%d", warps))
		return;
	struct array *o = inout(s, "o", TL_I32, 9);
	for (size_t i = 0; i < 9; i++)
		set_int(o, i, i >= 4 && i < 8);
	const int values[] = {1, 32 * warps, warps, 1};
	for (size_t i = 0; i < 4; i++)
		want_int(o, i, values[i]);
	want_int(o, 8, TIMES);
	LAUNCH(s, "machine", CONFIG(.grid = {1}, .num_warps = warps), ptr(o), tl_int(TIMES));
	case_end(s);
}

/* --- checks ---------------------------------------------------------------------------------------------------- */

static void overflow(struct suite *s, tl_dtype t, int kind, int64_t x, int64_t y, bool debug)
{
	static const char *const names[] = {"add", "sub", "mul"};
	enum { N = 64, AT = 37 };
	/* an assertion that fails ends the process's context on a GPU: tests/gpu.sh has one in a process of its own */
	if (on_device(s, "cuda") && debug)
		return;
	if (!case_begin(s, file, "overflow %s %s %lld %lld%s", tl_dtype_name(t), names[kind], (long long)x,
			(long long)y, debug ? " debug" : ""))
		return;
	struct array *a = in(s, "x", t, N), *b = in(s, "y", t, N), *o = out(s, "o", t, N);
	for (size_t i = 0; i < N; i++)
		set_int(a, i, i == AT ? x : 1), set_int(b, i, i == AT ? y : 1);
	x = value_int(a, AT), y = value_int(b, AT);
	const uint64_t left = (uint64_t)x, right = (uint64_t)y;
	int64_t exact = (int64_t)(kind == 0 ? left + right : kind == 1 ? left - right : left * right);
	bool fails = debug && bits_of(t) < 64 && exact != wrap(t, exact);
	for (size_t i = 0; i < N && !fails; i++)
		want_int(o, i, i == AT ? wrap(t, exact) : kind == 0 ? 2 : kind == 1 ? 0 : 1);
	const tl_config *c = CONFIG(.grid = {1}, .num_warps = 1, .debug = debug);
	char text[80];
	snprintf(text, sizeof text, "device-side assertion failed: int%d overflow detected for operation %s",
		 bits_of(t), names[kind]);
	if (fails)
		launch_fails(s, TL_ERR_KERNEL, text, "overflow", c,
			     ARGS(ptr(a), ptr(b), ptr(o), tl_int(kind), tl_int(N)));
	else
		LAUNCH(s, "overflow", c, ptr(a), ptr(b), ptr(o), tl_int(kind), tl_int(N));
	case_end(s);
}

static void told_inside(struct suite *s, bool scan, bool reverse, int axis, int a, int b, int warps)
{
	if (!case_begin(s, file, "assertions inside %s%s axis=%d %dx%d warps=%d", scan ? "scan" : "reduce",
			reverse ? " reverse" : "", axis, a, b, warps))
		return;
	size_t n = (size_t)(a * b), along = (size_t)(axis == 1 ? b : a), step = axis == 1 ? 1 : (size_t)b;
	struct array *x = in(s, "x", TL_I32, n), *o = out(s, "o", TL_I32, scan ? n : n / along);
	fill(x, 1, (int)(10000 / along));
	for (size_t i = 0; i < n; i++) {
		size_t at = i / step % along;
		if (scan)
			want_int(o, i, (int64_t)(reverse ? along - 1 - at : at));
		if (scan || at)
			continue;
		int64_t sum = 0;
		for (size_t k = 0; k < along; k++)
			sum += value_int(x, i + k * step);
		want_int(o, axis == 1 ? i / along : i, sum);
	}
	LAUNCH(s, "told_inside", CONFIG(.grid = {1}, .num_warps = warps, .debug = true), ptr(x), ptr(o), tl_bool(scan),
	       tl_bool(reverse), tl_int(axis), tl_int(a), tl_int(b));
	case_end(s);
}

static void checks(struct suite *s)
{
	static const tl_dtype types[] = {TL_I8, TL_I16, TL_I32, TL_I64, TL_U8, TL_U16, TL_U32};
	for (int t = 0; t < COUNT(types); t++)
		for (int kind = 0; kind < 3; kind++) {
			int64_t high = types[t] == TL_I64 ? INT64_MAX / 4 : most(types[t]);
			int64_t low = types[t] == TL_I64 ? INT64_MIN / 4 : least(types[t]);
			const int64_t pairs[][2] = {{high, 1}, {high, -1}, {low, 1}, {low, -1}, {low, 0}, {high, 2},
						    {0, 1},    {5, 7}};
			for (int p = 0; p < COUNT(pairs); p++)
				overflow(s, types[t], kind, pairs[p][0], pairs[p][1], p != 5 || kind != 2);
		}
	for (int axis = 0; axis < 2; axis++)
		for (int warps = 1; warps <= 8; warps *= 2) {
			told_inside(s, false, false, axis, 32, 16, warps);
			told_inside(s, false, false, axis, 4, 256, warps);
			told_inside(s, true, false, axis, 32, 16, warps);
			told_inside(s, true, true, axis, 4, 256, warps);
			told_inside(s, true, false, axis, 8, 128, warps);
		}
}

void theme_device(struct suite *s)
{
	for (int kind = 0; kind < COUNT(ones); kind++)
		for (int n = 16; n <= 1024; n *= 4)
			one(s, kind, n, 1 << kind % 3);
	for (int kind = 0; kind < 5; kind++)
		for (int n = kind == 1 ? 128 : 16; n <= 4096; n *= 4) /* so that a thread has neighbours */
			packed(s, kind, n, 1 << kind % 4);
	for (int warps = 1; warps <= 8; warps *= 2) {
		several(s, 8, 64, warps), several(s, 32, 16, warps);
		through_memory(s, 256, warps), through_memory(s, 1024, warps);
		counted(s, 3, warps), counted(s, 0, warps);
		machine(s, warps);
	}
	before_dot(s, 64, 64, 1), before_dot(s, 256, 32, 3);
	scalars(s, 3, 4), scalars(s, -7, 100);
	checks(s);
}
