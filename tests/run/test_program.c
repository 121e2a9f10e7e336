/* Grids, arguments of every kind, specialisation, numbers of warps, and launches that must be refused. */
#include "themes.h"

static const char file[] = "program.tl";

/* --- grids --------------------------------------------------------------------------------------------------- */

static void ids(struct suite *s, uint32_t x, uint32_t y, uint32_t z, int warps)
{
	if (!case_begin(s, file, "ids %ux%ux%u warps=%d", x, y, z, warps))
		return;
	/* axes behind the last one that is not 0 are not set; a 0 in front of it, or along x, is none of programs */
	uint32_t nx = x, ny = y || z ? y : 1, nz = z ? z : 1;
	struct array *o = out(s, "o", TL_I32, 6 * (size_t)nx * ny * nz), *count = inout(s, "count", TL_I32, 1);
	for (size_t i = 0; i < o->len / 6; i++) {
		size_t v[] = {i % nx, i / nx % ny, i / nx / ny, nx, ny, nz};
		for (size_t k = 0; k < 6; k++)
			want(o, 6 * i + k, (double)v[k]);
	}
	want(count, 0, (double)nx * ny * nz);
	LAUNCH(s, "ids", CONFIG(.grid = {x, y, z}, .num_warps = warps), ptr(o), ptr(count));
	case_end(s);
}

static void tiles_of_grid(struct suite *s, int rows, int columns, int bm, int bn, int group)
{
	if (!case_begin(s, file, "tiles %dx%d by %dx%d group_pids=%d", rows, columns, bm, bn, group))
		return;
	struct array *x = in(s, "x", TL_I32, (size_t)(rows * columns)), *o = inout(s, "o", TL_I32, x->len);
	fill(x, 1, 1000);
	for (size_t i = 0; i < x->len; i++)
		want(o, i, value(x, i));
	LAUNCH(s, "tiles_of_grid",
	       CONFIG(.grid = {(uint32_t)((rows + bm - 1) / bm), (uint32_t)((columns + bn - 1) / bn)},
		      .group_pids = group),
	       ptr(x), ptr(o), tl_int(rows), tl_int(columns), tl_int(bm), tl_int(bn));
	case_end(s);
}

/* Groups of rows; in each, column by column. */
static void order(struct suite *s, int rows, int columns, int group)
{
	if (!case_begin(s, file, "order %dx%d in groups of %d", rows, columns, group))
		return;
	struct array *o = out(s, "o", TL_I32, (size_t)(rows * columns));
	size_t n = 0;
	for (int first = 0; first < rows; first += group)
		for (int j = 0; j < columns; j++)
			for (int i = first; i < first + group && i < rows; i++)
				want(o, n++, i * 1000 + j);
	LAUNCH(s, "order", CONFIG(.grid = {(uint32_t)n}), ptr(o), tl_int(rows), tl_int(columns), tl_int(group));
	case_end(s);
}

static void divisions(struct suite *s, int programs, int first, int y, int z, int n, int most)
{
	if (!case_begin(s, file, "divisions of %d.. by %d, min(%d, %d) n=%d", first, y, z, most, n))
		return;
	size_t size = 4 * (size_t)n + 6;
	int least = z < most ? z : most;
	struct array *o = out(s, "o", TL_I32, size * (size_t)programs);
	for (int pid = 0; pid < programs; pid++) {
		int x = pid + first, scalars[] = {x % y, x / y, x / least, x % least, pid / y, pid % y};
		size_t at = size * (size_t)pid, len = (size_t)n;
		for (int i = 0; i < n; i++, at++) {
			want(o, at, (x * n + i) / y), want(o, at + len, (x * n + i) % y),
				want(o, at + 2 * len, (x + n + i) % y);
			want(o, at + 3 * len, (x * n + i) % least);
		}
		for (size_t i = 0; i < 6; i++)
			want(o, at + 3 * len + i, scalars[i]);
	}
	LAUNCH(s, "divisions", CONFIG(.grid = {(uint32_t)programs}), ptr(o), tl_int(first), tl_int(y), tl_int(z),
	       tl_int(n), tl_int(most));
	case_end(s);
}

/* Whatever the sizes, and whatever a variant for others takes for granted. */
static void wrapping(struct suite *s, int n, int block)
{
	enum { PROGRAMS = 20 };
	if (!case_begin(s, file, "wrapping n=%d block=%d", n, block))
		return;
	struct array *x = in(s, "x", TL_I32, 128), *o = out(s, "o", TL_I32, (size_t)(PROGRAMS * 4 * block));
	for (int pid = 0; pid < PROGRAMS; pid++)
		for (int j = 0; j < block; j++) {
			int32_t start = (int32_t)((uint32_t)pid * (uint32_t)n),
				at = (int32_t)((uint32_t)start + (uint32_t)j);
			int32_t later = (int32_t)((uint32_t)at + 8);
			int64_t back = ((int64_t)at - (int64_t)pid * n) % 64;
			int places[] = {at % 16, at / 16 % 32, later % 32, (int)back};
			for (int k = 0; k < 4; k++)
				want_int(o, (size_t)((pid * 4 + k) * block + j),
					 value_int(x, (size_t)(64 + places[k])));
		}
	LAUNCH(s, "wrapping", CONFIG(.grid = {PROGRAMS}), ptr(x), ptr(o), tl_int(n), tl_int(block));
	case_end(s);
}

static void grids(struct suite *s)
{
	static const int steps[] = {256, 1 << 28, -256, 3 << 28, 255, 0x7ffffff0, -(1 << 30), 0x7fffffff, -0x7fffff00};
	static const uint32_t dims[][3] = {{0, 0, 0}, {1, 1, 1},   {7, 0, 0},   {0, 5, 0},    {0, 0, 6},    {3, 4, 5},
					   {2, 1, 9}, {1, 300, 2}, {1, 2, 300}, {3000, 1, 1}, {66000, 1, 1}};
	for (int i = 0; i < COUNT(dims); i++)
		ids(s, dims[i][0], dims[i][1], dims[i][2], 1 << i % 4);
	for (int i = 0; i < COUNT(steps); i++)
		wrapping(s, steps[i], 16), wrapping(s, steps[i], 256);
	for (int group = 0; group < 10; group++) {
		tiles_of_grid(s, 64, 64, 16, 16, group), tiles_of_grid(s, 50, 70, 8, 16, group),
			tiles_of_grid(s, 100, 3, 8, 8, group);
		tiles_of_grid(s, 3, 100, 4, 4, group);
	}
	for (int group = 1; group < 6; group++)
		order(s, 1, 1, group), order(s, 7, 5, group), order(s, 16, 16, group), order(s, 1, 9, group),
			order(s, 9, 1, group);
	static const int divisors[] = {1, 2, 5, 16, 31, 64, 100, 1000, -1, -7, -64, INT32_MAX, INT32_MIN};
	for (int i = 0; i < COUNT(divisors); i++)
		for (int z = 1; z < 40; z += 7)
			divisions(s, 9, i % 3 ? i % 3 * -4 : 0, divisors[i], z, 1 << z % 7, 8),
				divisions(s, 5, 3, divisors[i], z % 2 ? z : -z, 32, 5);
}

/* --- specialisation ------------------------------------------------------------------------------------------ */

static void linear_copy(struct suite *s, tl_dtype t, int n, int sx, int so, int x_at, int o_at, int block)
{
	if (!case_begin(s, file, "copy %s n=%d strides %d %d from element %d to %d block=%d", tl_dtype_name(t), n, sx,
			so, x_at, o_at, block))
		return;
	struct array *x = in_at(s, "x", t, (size_t)(n * sx) + 1, x_at),
		*o = out_at(s, "o", t, (size_t)(n * so) + 1, o_at);
	for (size_t i = 0; i < (size_t)n; i++)
		if (x->f)
			want_number(o, i * (size_t)so, value(x, i * (size_t)sx));
		else
			want_int(o, i * (size_t)so, value_int(x, i * (size_t)sx));
	LAUNCH(s, "linear_copy", CONFIG(.grid = {(uint32_t)((n + block - 1) / block)}), ptr(x), ptr(o), tl_int(n),
	       tl_int(sx), tl_int(so), tl_int(block));
	case_end(s);
}

/* One kernel launched with one set of arguments after the other: each must get the code for its own. */
static void in_turn(struct suite *s)
{
	static const int sizes[] = {1, 16, 17, 1, 32, 2, 16, 0, 64, 1, 63};
	if (!case_begin(s, file, "copies in turn"))
		return;
	struct array *x = in(s, "x", TL_F32, 256);
	for (int i = 0; i < COUNT(sizes); i++) {
		int stride = 1 + i % 3 * 15 % 17;
		struct array *o = out_at(s, "o", TL_F32, (size_t)(64 * stride), i % 4);
		for (size_t k = 0; k < (size_t)sizes[i]; k++)
			want(o, k * (size_t)stride, value(x, k * 2));
		LAUNCH(s, "linear_copy", CONFIG(.grid = {1}), ptr(x), ptr(o), tl_int(sizes[i]), tl_int(2),
		       tl_int(stride), tl_int(64));
	}
	case_end(s);
}

static void specialised(struct suite *s)
{
	static const int sizes[] = {1, 2, 15, 16, 17, 32, 48, 100, 128, 1000};
	int c = 0;
	for (int t = 0; t < DTYPES; t++) {
		for (int i = 0; i < COUNT(sizes); i++, c++)
			linear_copy(s, (tl_dtype)t, sizes[i], 1, 1, c % 5, c / 5 % 5, 128);
		linear_copy(s, (tl_dtype)t, 64, 16, 1, 0, 0, 64), linear_copy(s, (tl_dtype)t, 64, 1, 16, 0, 0, 64);
		linear_copy(s, (tl_dtype)t, 33, 3, 2, 8, 0, 16), linear_copy(s, (tl_dtype)t, 48, 16, 32, 16, 1, 32);
		linear_copy(s, (tl_dtype)t, 1, 1, 1, 0, 0, 1), linear_copy(s, (tl_dtype)t, 256, 1, 1, 0, 0, 256);
	}
	in_turn(s);
}

/* --- arguments ----------------------------------------------------------------------------------------------- */

static void scalar(struct suite *s, tl_dtype t, int64_t v)
{
	if (!case_begin(s, file, "scalar %s %lld", tl_dtype_name(t), (long long)v))
		return;
	struct array *o = out(s, "o", t, 1);
	want_int(o, 0, v);
	LAUNCH(s, "typed_scalar", CONFIG(.grid = {1}), ptr(o), tl_int_typed(t, v));
	case_end(s);
}

static void float_scalar(struct suite *s, tl_dtype t, double v)
{
	if (!case_begin(s, file, "scalar %s %g", tl_dtype_name(t), v))
		return;
	struct array *o = out(s, "o", t, 1);
	want(o, 0, v);
	LAUNCH(s, "typed_scalar", CONFIG(.grid = {1}), ptr(o), tl_float_typed(t, v));
	case_end(s);
}

static void plain_int(struct suite *s, int64_t v)
{
	if (!case_begin(s, file, "integer %lld", (long long)v))
		return;
	/* of the arithmetic; 1 is a constant, whose type is int32 too */
	tl_dtype t = v == (int32_t)v ? TL_I32 : TL_I64;
	struct array *o = out(s, "o", TL_I64, 3);
	want_int(o, 0, wrap(t, (int64_t)(2 * (uint64_t)v)));
	want_int(o, 1, wrap(t, (int64_t)(65536 * (uint64_t)v)));
	want_int(o, 2, (v == 1) + 2 * (v % 16 == 0));
	LAUNCH(s, "sizes_of_scalar", CONFIG(.grid = {1}), ptr(o), tl_int(v));
	case_end(s);
}

static void constants(struct suite *s, int n, double scale, bool flag, const char *name, tl_dtype t, const char *f,
		      bool nothing, int given)
{
	if (!case_begin(s, file, "constants %d %g %d %s %s %s %d %d", n, scale, flag, name, tl_dtype_name(t),
			f ? f : "None", nothing, given))
		return;
	struct array *x = in(s, "x", TL_I32, (size_t)n), *o = out(s, "o", t, (size_t)n),
		*last = in(s, "last", t, (size_t)n);
	fill(x, -20, 20), fill(last, -20, 20);
	for (size_t i = 0; i < last->len; i++)
		set(last, i, rint(value(last, i)));
	for (size_t i = 0; i < x->len; i++) {
		double v = value(x, i) * scale + flag;
		v = !strcmp(name, "negate") ? -v : v;
		v = !f ? v : !strcmp(f, "relu") ? (v > 0 ? v : 0) : 2 * v;
		v += nothing ? given > 0 ? 11 : 5 : 0;
		want(o, i, v + (given > 1 ? value(last, i) : 0));
	}
	tl_arg a[] = {ptr(x),
		      ptr(o),
		      tl_int(n),
		      is_float(t) ? tl_float(scale) : tl_int((int64_t)scale),
		      tl_bool(flag),
		      tl_str(name),
		      tl_type(t),
		      f ? tl_func(f) : tl_none(),
		      nothing ? tl_none() : tl_int(1),
		      tl_int(11),
		      given > 1 ? ptr(last) : tl_none()};
	launch(s, "constants", CONFIG(.grid = {1}), a, 9 + (size_t)given); /* the rest have defaults */
	case_end(s);
}

static void annotated(struct suite *s, int64_t n, int k, double scale, bool flag)
{
	if (!case_begin(s, file, "annotated n=%d k=%d scale=%g flag=%d", (int)n, k, scale, flag))
		return;
	struct array *x = in(s, "x", TL_F32, 64), *o = out(s, "o", TL_F32, 64);
	for (size_t i = 0; i < (size_t)n; i++) {
		set(x, i, (double)random_int(-100, 100));
		double v = value(x, i) * scale + k;
		want(o, i, flag ? -v : v);
	}
	LAUNCH(s, "annotated", CONFIG(.grid = {1}), ptr(x), ptr(o), tl_int(n), tl_int(k),
	       scale == rint(scale) ? tl_int((int64_t)scale) : tl_float(scale), tl_bool(flag));
	case_end(s);
}

static void many(struct suite *s)
{
	if (!case_begin(s, file, "many arguments"))
		return;
	struct array *o = out(s, "o", TL_I64, 1);
	tl_arg a[21];
	double sum = 0;
	for (int i = 0; i < 20; i++) { /* ones, multiples of 16 and of neither, of three widths */
		int64_t v = i % 4 == 0 ? 1 : i % 4 == 1 ? 16 * random_int(1, 5) : random_int(2, 100);
		a[i] = i % 3 == 0 ? tl_int(v) : tl_int_typed(i % 3 == 1 ? TL_I16 : TL_I64, v);
		sum += (double)v * (i + 1);
	}
	a[20] = ptr(o);
	want(o, 0, sum);
	launch(s, "many", CONFIG(.grid = {1}), a, 21);
	case_end(s);
}

static void arguments(struct suite *s)
{
	static const int64_t plain[] = {
		0,         1,        -1,        2,         15,        16,        -16,
		17,        1 << 20,  INT32_MAX, INT32_MIN, 1ll << 31, 1ll << 33, (1ll << 40) + 1,
		INT64_MAX, INT64_MIN};
	static const double reals[] = {0, -0.0, 1, 0.1, -2.5, 1e-3, 65504, 1.0 / 3, 1e-40, INFINITY, -INFINITY, NAN};
	for (int t = 0; t < INT_TYPES; t++) {
		scalar(s, int_types[t], 0), scalar(s, int_types[t], 1), scalar(s, int_types[t], 16),
			scalar(s, int_types[t], 77);
		scalar(s, int_types[t], least(int_types[t]));
		if (int_types[t] != TL_U64) /* which an int64_t cannot hold */
			scalar(s, int_types[t], most(int_types[t]));
	}
	scalar(s, TL_I1, 0), scalar(s, TL_I1, 1);
	for (int t = 0; t < FLOAT_TYPES; t++)
		for (int i = 0; i < COUNT(reals); i++)
			float_scalar(s, float_types[t], reals[i]);
	for (int i = 0; i < COUNT(plain); i++)
		plain_int(s, plain[i]);
	for (int i = 0; i < 12; i++)
		constants(s, 16 << i % 3, 1 + i % 4, i % 2, i % 3 ? "negate" : "keep",
			  i % 4 < 2 ? TL_F32 : i % 4 < 3 ? TL_I32 : TL_F16,
			  i % 3 == 2 ? NULL : i % 3 ? "double" : "relu", i % 5 < 3, i % 3);
	constants(s, 16, 0.5, true, "keep", TL_F32, "double", true, 0);
	for (int i = 0; i < 8; i++)
		annotated(s, i * 9, i % 3 * 8 - 1, i % 2 ? 2 : 0.25, i % 3 == 0);
	annotated(s, 1, 1, 1, true), annotated(s, 16, 16, 16, false);
	many(s);
}

/* --- warps --------------------------------------------------------------------------------------------------- */

static void work(struct suite *s, int n, int warps)
{
	if (!case_begin(s, file, "work n=%d warps=%d", n, warps))
		return;
	struct array *x = in(s, "x", TL_I32, (size_t)n), *o = out(s, "o", TL_I32, (size_t)n),
		*sum = out(s, "sum", TL_I32, 2);
	fill(x, -1000, 1000);
	double total = 0, best = -INFINITY;
	for (int i = 0; i < n; i++) { /* element i of the transposed */
		total += value(x, (size_t)(i % (n / 4) * 4 + i / (n / 4)));
		want(o, (size_t)i, total);
	}
	for (int i = 0; i < n; i += 4) {
		double row = 0;
		for (int k = 0; k < 4; k++)
			row += value(x, (size_t)(i + k));
		best = fmax(best, row);
	}
	want(sum, 0, total), want(sum, 1, best);
	LAUNCH(s, "work", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), ptr(sum), tl_int(n));
	case_end(s);
}

static void idle(struct suite *s, int warps)
{
	if (!case_begin(s, file, "nothing to do, warps=%d", warps))
		return;
	launch(s, "nothing", CONFIG(.grid = {1000}, .num_warps = warps), NULL, 0);
	case_end(s);
}

/* --- refusals ------------------------------------------------------------------------------------------------ */

static void refused(struct suite *s)
{
	static const struct {
		const char *name;
		tl_config config;
		tl_status status;
		const char *part;
		int wrong; /* which argument is something else, or how many there are, below 0 */
	} rows[] = {
		{"three warps", {.num_warps = 3}, TL_ERR_ARGUMENT, "num_warps is 3", 99},
		{"64 warps", {.num_warps = 64}, TL_ERR_ARGUMENT, "num_warps is 64", 99},
		{"negative warps", {.num_warps = -4}, TL_ERR_ARGUMENT, "num_warps is -4", 99},
		{"negative stages", {.num_stages = -1}, TL_ERR_ARGUMENT, "num_stages is -1", 99},
		{"too many stages", {.num_stages = 65}, TL_ERR_ARGUMENT, "num_stages is 65", 99},
		{"fewer blocks than none", {.max_ctas = -2}, TL_ERR_ARGUMENT, "max_ctas is -2", 99},
		{"negative group", {.group_pids = -1}, TL_ERR_ARGUMENT, "group_pids is -1", 99},
		{"wide grid", {.grid = {1, 65536}}, TL_ERR_ARGUMENT, "65536 programs along axis 1", 99},
		{"deep grid", {.grid = {1, 1, 70000}}, TL_ERR_ARGUMENT, "70000 programs along axis 2", 99},
		{"long grid", {.grid = {1u << 31}}, TL_ERR_ARGUMENT, "along axis 0", 99},
		{"too few arguments", {.num_warps = 4}, TL_ERR_ARGUMENT, "'BLOCK', is missing", -5},
		{"no arguments", {.num_warps = 4}, TL_ERR_ARGUMENT, "'x_ptr', is missing", -1},
		{"too many arguments", {.num_warps = 4}, TL_ERR_ARGUMENT, "takes 6 arguments", -7},
		{"integer for a pointer", {.num_warps = 4}, TL_ERR_COMPILE, "pointer", 0},
		{"pointer for a constant", {.num_warps = 4}, TL_ERR_ARGUMENT, "'BLOCK'", 5},
		{"block of 100", {.num_warps = 4}, TL_ERR_COMPILE, "power of two", 6},
	};
	for (int i = 0; i < COUNT(rows); i++) {
		if (!case_begin(s, file, "refused: %s", rows[i].name))
			continue;
		struct array *x = in(s, "x", TL_F32, 64), *o = out(s, "o", TL_F32, 64); /* which must stay as it was */
		tl_arg a[] = {ptr(x),   ptr(o), tl_int(64), tl_int(1), tl_int(1), tl_int(rows[i].wrong == 6 ? 100 : 64),
			      tl_int(0)};
		if (rows[i].wrong == 0)
			a[0] = tl_int(3);
		if (rows[i].wrong == 5)
			a[5] = ptr(x);
		size_t n = rows[i].wrong < 0 ? (size_t)-rows[i].wrong : 6;
		launch_fails(s, rows[i].status, rows[i].part, "linear_copy", &rows[i].config, a, n == 1 ? 0 : n);
		case_end(s);
	}
	if (case_begin(s, file, "refused: unknown name")) {
		struct array *x = inout(s, "x", TL_F32, 16);
		launch_fails(s, TL_ERR_COMPILE, "'undefined_name' is not defined", "wrong", CONFIG(.grid = {1}),
			     ARGS(ptr(x), tl_int(16)));
		launch_fails(s, TL_ERR_ARGUMENT, "has no kernel 'idss'", "idss", CONFIG(.grid = {1}),
			     ARGS(ptr(x), tl_int(16)));
		case_end(s);
	}
	if (case_begin(s, file, "refused: annotated")) {
		struct array *x = in(s, "x", TL_F16, 64), *o = out(s, "o", TL_F32, 64);
		launch_fails(s, TL_ERR_ARGUMENT, "'x_ptr'", "annotated", CONFIG(.grid = {1}),
			     ARGS(ptr(x), ptr(o), tl_int(1), tl_int(1), tl_float(1), tl_bool(1)));
		launch_fails(s, TL_ERR_ARGUMENT, "'k'", "annotated", CONFIG(.grid = {1}),
			     ARGS(ptr(o), ptr(o), tl_int(1), tl_int(1ll << 40), tl_float(1), tl_bool(1)));
		case_end(s);
	}
}

/* Where the element is, of `n`; what the interpreter says. Other devices do not check. */
static void strays(struct suite *s)
{
	static const struct {
		int at, n;
		const char *part;
		bool null;
	} rows[] = {
		{1, 64, "load of 4 bytes outside every buffer", false},
			{-1, 64, "4 bytes before the start of 'x_ptr'", false},
		{64, 1, "0 bytes past the end of 'x_ptr'", false}, {0, 16, "null pointer", true},
	};
	for (int i = 0; i < COUNT(rows); i++) {
		if (!on_device(s, "interp") || !case_begin(s, file, "stray access at %d of %d%s", rows[i].at, rows[i].n,
							   rows[i].null ? " null" : ""))
			continue;
		struct array *x = in(s, "x", TL_F32, 64), *o = out(s, "o", TL_F32, 200);
		launch_fails(s, TL_ERR_KERNEL, rows[i].part, "first_of", CONFIG(.grid = {1}),
			     ARGS(rows[i].null ? tl_ptr(TL_F32, NULL) : ptr(x),
				  tl_ptr(TL_F32, (const char *)address(o) + 64), tl_int(rows[i].at),
				  tl_int(rows[i].n)));
		case_end(s);
	}
}

void theme_program(struct suite *s)
{
	grids(s);
	specialised(s);
	arguments(s);
	for (int warps = 1; warps <= 32; warps *= 2) {
		for (int n = 4; n <= 4096; n *= 4)
			work(s, n, warps);
		idle(s, warps);
	}
	refused(s);
	strays(s);
}
