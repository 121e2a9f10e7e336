/* Functions and operators, element by element, for every type that has them. test_cast.c has the conversions. */
#include "themes.h"

static const char file[] = "elementwise.tl";
enum { N = 1000, BLOCK = 256 };
#define GRID_1D CONFIG(.grid = {(N + BLOCK - 1) / BLOCK})

/* --- functions ----------------------------------------------------------------------------------------------- */

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double rsqrt(double x) { return 1 / sqrt(x); }
static double negate(double x) { return -x; }
static double identity(double x) { return x; }

/* Tolerances, relative (and absolute, near zeros of the function), for the approximations that Triton uses for fp32:
 * ex2.approx and rsqrt.approx 2^-22, sqrt.approx and div.full 2^-22 (PTX ISA, "Floating Point Instructions"). exp(x)
 * is 2^(x·log2 e), whose product is rounded, so its error grows with |x|: 20 · 2^-24 more. log, log2, sin, cos, erf
 * and tanh: 2 ulp; accuracy() asks more. */
static const struct {
	const char *name;
	double (*f)(double);
	double lo, hi, relative, absolute;
} functions[] = {
	{"exp", exp, -20, 20, 0x1p-22 + 20 * 0x1p-24, 0},
	{"fast_expf", exp, -20, 20, 0x1p-22 + 20 * 0x1p-24, 0},
	{"math_exp", exp, -20, 20, 0x1p-22 + 20 * 0x1p-24, 0},
	{"exp2", exp2, -30, 30, 0x1p-22, 0},
	{"log", log, 1e-6, 100, 2 * 0x1p-23, 0},
	{"log2", log2, 1e-6, 100, 2 * 0x1p-23, 0},
	{"sqrt", sqrt, 0, 1e6, 0x1p-22, 0},
	{"rsqrt", rsqrt, 1e-6, 1e6, 0x1p-22, 0},
	{"sin", sin, -100, 100, 2 * 0x1p-23, 0},
	{"cos", cos, -100, 100, 2 * 0x1p-23, 0},
	{"erf", erf, -4, 4, 2 * 0x1p-23, 0},
	{"tanh", tanh, -10, 10, 2 * 0x1p-23, 0},
	{"sigmoid", sigmoid, -20, 20, 0x1p-21 + 20 * 0x1p-24, 0},
	{"sqrt_rn", sqrt, 0, 1e6, 0, 0},
	{"floor", floor, -100, 100, 0, 0},
	{"ceil", ceil, -100, 100, 0, 0},
	{"fabs", fabs, -100, 100, 0, 0},
	{"abs", fabs, -100, 100, 0, 0},
	{"method", fabs, -100, 100, 0, 0},
	{"neg", negate, -100, 100, 0, 0},
	{"pos", identity, -100, 100, 0, 0},
};

static const double specials[] = {0.0,  -0.0,  1,     -1,  0.5,  2,   INFINITY, -INFINITY, NAN,
				  1e30, -1e30, 1e-30, 3.5, -2.5, 1e5, 80,       -80};

static void function(struct suite *s, int k, tl_dtype t, bool special)
{
	bool any_float = k >= COUNT(functions) - 4; /* abs, neg and + take every type */
	if (!any_float && t != TL_F32 && t != TL_F64)
		return;
	if (!case_begin(s, file, "%s %s%s", functions[k].name, tl_dtype_name(t), special ? " special values" : ""))
		return;
	struct array *x = in(s, "x", t, N), *o = out(s, "o", t, N);
	fill(x, functions[k].lo, functions[k].hi);
	for (size_t i = 0; special && i < N; i++)
		set(x, i, specials[i % COUNT(specials)]);
	for (size_t i = 0; i < N; i++)
		want(o, i, functions[k].f(value(x, i)));
	/* fp64 functions are libclc's and glibc's: a few ulps of each. The error of |x| near 80 in exp is 80 ·
	 * 2^-24. */
	double r = functions[k].relative;
	if (r)
		tolerance(o, t == TL_F64 ? 1e-16 : functions[k].absolute + (special ? 1e-37 : 0),
			  t == TL_F64 ? 1e-14 : special ? r + 80 * 0x1p-24 : r);
	LAUNCH(s, "unary", GRID_1D, ptr(x), ptr(o), tl_int(N), tl_str(functions[k].name), tl_int(BLOCK));
	case_end(s);
}

static void int_function(struct suite *s, const char *op, tl_dtype t)
{
	if (!case_begin(s, file, "%s %s", op, tl_dtype_name(t)))
		return;
	struct array *x = in(s, "x", t, N), *o = out(s, "o", t, N);
	set_int(x, 0, least(t));
	set_int(x, 1, most(t));
	for (size_t i = 0; i < N; i++) {
		int64_t v = value_int(x, i);
		if (!strcmp(op, "neg"))
			v = (int64_t)(0 - (uint64_t)v);
		else if (!strcmp(op, "abs"))
			v = is_signed(t) && v < 0 ? (int64_t)(0 - (uint64_t)v) : v;
		else if (!strcmp(op, "invert"))
			v = ~v;
		want_int(o, i, v);
	}
	LAUNCH(s, "unary", GRID_1D, ptr(x), ptr(o), tl_int(N), tl_str(op), tl_int(BLOCK));
	case_end(s);
}

static void functions_of_all_types(struct suite *s)
{
	static const char *const int_ops[] = {"neg", "pos", "abs", "invert"};
	for (int k = 0; k < COUNT(functions); k++)
		for (int t = 0; t < FLOAT_TYPES; t++) {
			function(s, k, float_types[t], false);
			function(s, k, float_types[t], true);
		}
	for (int k = 0; k < COUNT(int_ops); k++)
		for (int t = 0; t < INT_TYPES; t++)
			int_function(s, int_ops[k], int_types[t]);
	int_function(s, "invert", TL_I1);
}

/* --- accuracy ------------------------------------------------------------------------------------------------ */

/* fp32 functions that the compiler builds of polynomials, and how many ulps they may be off, whatever the argument; on
 * a processor without multiply-adds, whose products are rounded, twice as many. */
static const struct {
	const char *name;
	double (*f)(double);
	double ulps;
} accurate[] = {{"log", log, 1}, {"log2", log2, 1}, {"sin", sin, 1.6}, {"cos", cos, 1.6}, {"erf", erf, 1.5},
		{"tanh", tanh, 2}};

static double ulps_of(struct suite *s, int f)
{
	tl_device_info info;
	bool rounds = !tl_device(context(s), &info) && !strcmp(info.target, "cpu:baseline");
	return accurate[f].ulps * (rounds ? 2 : 1);
}

static double near_one(void) { return 1 + ldexp(uniform(-1, 1), -(int)random_int(0, 23)); }
static double moderate(void) { return uniform(-5, 5); }
static double any_exponent(void) { return ldexp(uniform(-2, 2), (int)random_int(-150, 127)); }
static double many_turns(void) { return ldexp(uniform(-2, 2), (int)random_int(10, 22)); }
/* a multiple of π/2, where sin or cos has nothing but what the reduction leaves */
static double near_zeros(void) { return (double)random_int(-(1 << 20), 1 << 20) * (acos(-1) / 2); }
/* one large number, now and then: others of its thread are not */
static double few_large(void) { return random_int(0, 15) ? uniform(-1000, 1000) : uniform(-3e38, 3e38); }

static const struct {
	const char *name;
	double (*argument)(void); /* NULL: any bits */
} domains[] = {{"any bits", NULL}, {"near 1", near_one}, {"moderate", moderate}, {"any exponent", any_exponent},
	       {"many turns", many_turns},
	       {"near zeros", near_zeros}, {"few large", few_large}};

static void accuracy(struct suite *s, int f, int domain)
{
	enum { MANY = 10000, LONG_BLOCK = 1024 };
	if (!case_begin(s, file, "%s to %g ulp, %s", accurate[f].name, ulps_of(s, f), domains[domain].name))
		return;
	struct array *x = in(s, "x", TL_F32, MANY), *o = out(s, "o", TL_F32, MANY);
	if (!domains[domain].argument)
		fill_bits(x);
	for (size_t i = 0; domains[domain].argument && i < MANY; i++)
		set(x, i, domains[domain].argument());
	for (size_t i = 0; i < MANY; i++)
		want(o, i, accurate[f].f(value(x, i)));
	tolerance_ulps(o, ulps_of(s, f));
	LAUNCH(s, "unary", CONFIG(.grid = {(MANY + LONG_BLOCK - 1) / LONG_BLOCK}), ptr(x), ptr(o), tl_int(MANY),
	       tl_str(accurate[f].name), tl_int(LONG_BLOCK));
	case_end(s);
}

/* Their limits, and both sides of where one formula takes over from another; one element a thread. */
static void edges(struct suite *s, int f)
{
	static const double at[] = {0,
				    0x1p-149,
				    0x1.8p-140,
				    0x1p-127,
				    0x1p-126,
				    0x1p-125,
				    1e-30,
				    1e-6,
				    0.5,
				    0x1.6a09e6p-1,
				    0.8,
				    0.9,
				    1,
				    1.1,
				    0x1.6a09e6p0,
				    2,
				    3.9,
				    4,
				    9,
				    15,
				    1e5,
				    0x1p17,
				    1e6,
				    1e7,
				    1e10,
				    1e20,
				    3e38,
				    0x1.fffffep127,
				    INFINITY,
				    NAN};
	enum { EACH = 6, EDGES = COUNT(at) * EACH };
	if (!case_begin(s, file, "%s to %g ulp, edges", accurate[f].name, ulps_of(s, f)))
		return;
	struct array *x = in(s, "x", TL_F32, EDGES), *o = out(s, "o", TL_F32, EDGES);
	for (size_t i = 0; i < EDGES; i++) {
		double v = at[i / EACH];
		v += isfinite(v) ? ((double)(i % EACH / 2) - 1) * ulp(TL_F32, v) : 0;
		set(x, i, i % 2 ? -v : v);
		want(o, i, accurate[f].f(value(x, i)));
	}
	tolerance_ulps(o, ulps_of(s, f));
	LAUNCH(s, "unary", CONFIG(.grid = {(EDGES + 31) / 32}, .num_warps = 1), ptr(x), ptr(o), tl_int(EDGES),
	       tl_str(accurate[f].name), tl_int(32));
	case_end(s);
}

/* Zeros have signs, which == does not see. */
static void signs_of_zeros(struct suite *s, int f)
{
	static const double at[] = {0.0, -0.0, 0x1p-149, -0x1p-149, 1, INFINITY, -INFINITY};
	if (!case_begin(s, file, "%s to the sign of 0", accurate[f].name))
		return;
	struct array *x = in(s, "x", TL_F32, COUNT(at)), *o = out(s, "o", TL_I32, COUNT(at));
	for (size_t i = 0; i < COUNT(at); i++) {
		set(x, i, at[i]);
		double v = accurate[f].f(at[i]);
		if (fabs(v) == 0 || fabs(v) == 1 || isinf(v) || fabs(v) == 0x1p-149)
			want_int(o, i, (int32_t)encode(TL_F32, v));
		else
			set(x, i, 0), want_int(o, i, (int32_t)encode(TL_F32, accurate[f].f(0)));
	}
	LAUNCH(s, "unary_bits", CONFIG(.grid = {1}), ptr(x), ptr(o), tl_int(COUNT(at)), tl_str(accurate[f].name),
	       tl_int(8));
	case_end(s);
}

/* sin and cos branch: in a loop, and under an if of the program's. */
static void branches_in_loops(struct suite *s, const char *name, double (*f)(double))
{
	if (!case_begin(s, file, "%s in a loop", name))
		return;
	struct array *x = in(s, "x", TL_F32, N), *o = out(s, "o", TL_F32, N);
	fill(x, -10, 10);
	for (size_t i = 0; i < N; i++) {
		double sum = 0;
		if (i % 50 == 7)
			set(x, i, uniform(-1e30, 1e30));
		for (int k = 0; k < 5; k++)
			sum += k == 2 ? f(0.5) : f(round_to(TL_F32, value(x, i) * k));
		want(o, i, sum);
	}
	tolerance(o, 5 * 0x1p-22, 0);
	LAUNCH(s, "unary_sum", GRID_1D, ptr(x), ptr(o), tl_int(N), tl_int(5), tl_str(name), tl_int(BLOCK));
	case_end(s);
}

static void accuracy_of_all(struct suite *s)
{
	for (int f = 0; f < COUNT(accurate); f++) {
		for (int d = 0; d < COUNT(domains); d++)
			accuracy(s, f, d);
		edges(s, f);
		signs_of_zeros(s, f);
	}
	branches_in_loops(s, "sin", sin);
	branches_in_loops(s, "cos", cos);
}

/* --- operators ----------------------------------------------------------------------------------------------- */

enum kind { ARITHMETIC, DIVISION, INTEGER, COMPARISON, EXTREMUM };
static const struct {
	const char *name;
	enum kind kind;
} operators[] = {
	{"+", ARITHMETIC}, {"-", ARITHMETIC}, {"*", ARITHMETIC}, {"/", DIVISION}, {"//", DIVISION}, {"%", DIVISION},
	{"&", INTEGER}, {"|", INTEGER}, {"^", INTEGER}, {"<<", INTEGER}, {">>", INTEGER},
	{"<", COMPARISON}, {"<=", COMPARISON}, {">", COMPARISON}, {">=", COMPARISON}, {"==", COMPARISON},
		{"!=", COMPARISON},
	{"maximum", EXTREMUM}, {"minimum", EXTREMUM}, {"maximum_nan", EXTREMUM}, {"minimum_nan", EXTREMUM},
};

double apply_float(const char *op, double x, double y)
{
	bool lesser = !strncmp(op, "min", 3), all = strlen(op) > 7; /* …_nan */
	switch (op[0]) {
	case '+': return x + y;
	case '-': return x - y;
	case '*': return x * y;
	case '/': return x / y;
	case '%': return fmod(x, y);
	case '<': return op[1] ? x <= y : x < y;
	case '>': return op[1] ? x >= y : x > y;
	case '=': return x == y;
	case '!': return x != y;
	default: return all && (isnan(x) || isnan(y)) ? NAN : lesser ? fmin(x, y) : fmax(x, y);
	}
}

static int64_t compare_ints(const char *op, int64_t x, int64_t y, bool u)
{
	bool less = u ? (uint64_t)x < (uint64_t)y : x < y, equal = x == y;
	switch (op[0]) {
	case '<': return less || (op[1] && equal);
	case '>': return op[1] ? !less : !less && !equal;
	case '=': return equal;
	default: return !equal;
	}
}

int64_t apply_int(const char *op, tl_dtype t, int64_t x, int64_t y)
{
	bool u = !is_signed(t), shift = op[1] == op[0];
	uint64_t a = (uint64_t)x, b = (uint64_t)y;
	if ((strchr("<>", op[0]) && !shift) || op[0] == '=' || op[0] == '!')
		return compare_ints(op, x, y, u);
	switch (op[0]) {
	case '+': return wrap(t, (int64_t)(a + b));
	case '-': return wrap(t, (int64_t)(a - b));
	case '*': return wrap(t, (int64_t)(a * b));
	case '/': return u ? (int64_t)(a / b) : x / y;
	case '%': return u ? (int64_t)(a % b) : x % y;
	case '&': return x & y;
	case '|': return x | y;
	case '^': return x ^ y;
	case '<': return wrap(t, (int64_t)(a << y));
	case '>': return u ? (int64_t)(a >> y) : x >> y;
	default: break;
	}
	bool less = u ? a < b : x < y;
	return less == (op[1] == 'i') ? x : y;
}

/* Operands that have a result: no division by zero, no shift by the width or more. */
static void operands(struct array *x, struct array *y, const char *op)
{
	tl_dtype t = x->dtype;
	bool shift = op[0] == op[1] && strchr("<>", op[0]), divide = op[0] == '/' || op[0] == '%';
	if (is_float(t)) {
		fill(x, -8, 8), fill(y, -8, 8);
		for (size_t i = 0; i < N; i += 9) {
			set(x, i, specials[i / 9 % COUNT(specials)]);
			set(y, i, specials[i / 9 * 5 % COUNT(specials)]);
		}
		return;
	}
	for (size_t i = 0; i < N; i++) {
		if (shift)
			set_int(y, i, random_int(0, bits_of(t) - 1));
		else if (i % 3 == 0)
			set_int(y, i, random_int(-3, 3)); /* small ones, and equal ones */
		if (i % 6 == 0)
			set_int(x, i, random_int(-3, 3));
		if (i % 50 == 0)
			set_int(x, i, i % 100 ? most(t) : least(t));
		if (divide &&
		    (!value_int(y, i) || (is_signed(t) && value_int(y, i) == -1 && value_int(x, i) == least(t))))
			set_int(y, i, 3);
	}
}

static void operator(struct suite *s, const char *op, enum kind kind, tl_dtype t)
{
	tl_dtype r = t;
	bool f = is_float(t), half = t == TL_F16 || t == TL_BF16;
	if (f ? kind == INTEGER || !strcmp(op, "//") : kind == EXTREMUM && strlen(op) > 7)
		return;
	if (t == TL_I1 && (kind == DIVISION || op[0] == op[1] || (kind == ARITHMETIC && op[0] == '-')))
		return;
	if (kind == COMPARISON)
		r = TL_I1;
	else if ((kind == DIVISION && half) || (!strcmp(op, "/") && !f))
		r = TL_F32;
	if (!case_begin(s, file, "%s %s", op, tl_dtype_name(t)))
		return;
	struct array *x = in(s, "x", t, N), *y = in(s, "y", t, N), *o = out(s, "o", r, N);
	operands(x, y, op);
	for (size_t i = 0; i < N; i++)
		if (f)
			want(o, i, apply_float(op, value(x, i), value(y, i)));
		else if (r == TL_F32) /* both are rounded to fp32 first */
			want(o, i, (float)value(x, i) / (double)(float)value(y, i));
		else
			want_int(o, i, apply_int(op, t, value_int(x, i), value_int(y, i)));
	if (!strcmp(op, "/") && r == TL_F32)
		tolerance(o, 0x1p-126, 0x1p-22); /* div.full.f32: 2 ulp, and tiny quotients become 0 */
	LAUNCH(s, "binary", GRID_1D, ptr(x), ptr(y), ptr(o), tl_int(N), tl_str(op), tl_int(BLOCK));
	case_end(s);
}

static void exact_division(struct suite *s, const char *op, tl_dtype t)
{
	if (!case_begin(s, file, "%s %s", op, tl_dtype_name(t)))
		return;
	struct array *x = in(s, "x", t, N), *y = in(s, "y", t, N), *o = out(s, "o", t, N);
	operands(x, y, "/");
	for (size_t i = 0; i < N; i++)
		want(o, i, value(x, i) / value(y, i));
	if (!strcmp(op, "fdiv") && t == TL_F32)
		tolerance(o, 0x1p-126, 0x1p-22);
	LAUNCH(s, "binary", GRID_1D, ptr(x), ptr(y), ptr(o), tl_int(N), tl_str(op), tl_int(BLOCK));
	case_end(s);
}

static void umulhi(struct suite *s, tl_dtype t)
{
	if (!case_begin(s, file, "umulhi %s", tl_dtype_name(t)))
		return;
	struct array *x = in(s, "x", t, N), *y = in(s, "y", t, N), *o = out(s, "o", t, N);
	for (size_t i = 0; i < N; i++) {
		uint64_t mask = ~0ull >> (64 - bits_of(t));
		unsigned __int128 p =
			(unsigned __int128)((uint64_t)value_int(x, i) & mask) * ((uint64_t)value_int(y, i) & mask);
		want_int(o, i, (int64_t)(uint64_t)(p >> bits_of(t)));
	}
	LAUNCH(s, "binary", GRID_1D, ptr(x), ptr(y), ptr(o), tl_int(N), tl_str("umulhi"), tl_int(BLOCK));
	case_end(s);
}

static void operators_of_all_types(struct suite *s)
{
	for (int k = 0; k < COUNT(operators); k++) {
		operator(s, operators[k].name, operators[k].kind, TL_I1);
		for (int t = 0; t < INT_TYPES; t++)
			operator(s, operators[k].name, operators[k].kind, int_types[t]);
		for (int t = 0; t < FLOAT_TYPES; t++)
			operator(s, operators[k].name, operators[k].kind, float_types[t]);
	}
	for (int t = 2; t < FLOAT_TYPES; t++) {
		exact_division(s, "fdiv", float_types[t]);
		exact_division(s, "fdiv_ieee", float_types[t]);
		exact_division(s, "div_rn", float_types[t]);
	}
	umulhi(s, TL_I32), umulhi(s, TL_I64), umulhi(s, TL_U32), umulhi(s, TL_U64);
}

/* --- three operands ------------------------------------------------------------------------------------------ */

static double clamp(double x, double lo, double hi) { return fmin(fmax(x, lo), hi); }

static void ternary(struct suite *s, const char *op, tl_dtype t)
{
	if (!case_begin(s, file, "%s %s", op, tl_dtype_name(t)))
		return;
	struct array *x = in(s, "x", t, N), *y = in(s, "y", t, N), *z = in(s, "z", t, N), *o = out(s, "o", t, N);
	if (is_float(t))
		fill(x, -2, 2);
	for (size_t i = 0; i < N; i++) {
		if (is_float(t) && i % 7 == 0)
			set(x, i, NAN);
		double a = value(x, i), b = value(y, i), c = value(z, i);
		if (is_float(t) && (i % 7 || !strcmp(op, "clamp")) && b > c) { /* clamp's limits are in order */
			set(y, i, c), set(z, i, b);
			b = value(y, i), c = value(z, i);
		}
		int64_t ia = value_int(x, i), ib = value_int(y, i), ic = value_int(z, i);
		bool u = !is_float(t) && !is_signed(t);
		bool ab = is_float(t) ? a > b : compare_ints(">", ia, ib, u),
			bc = is_float(t) ? b > c : compare_ints(">", ib, ic, u);
		bool ac = is_float(t) ? a > c : compare_ints(">", ia, ic, u);
		if (!is_float(t) && !strcmp(op, "clamp") && bc) { /* as above */
			set_int(y, i, ic), set_int(z, i, ib);
			want_int(o, i, compare_ints(">", ic, ia, u) ? ic : compare_ints(">", ia, ib, u) ? ib : ia);
			continue;
		}
		int pick = !strcmp(op, "where") ? (ab ? 0 : 2) : ((ab && !bc) || ac ? 0 : 1);
		if (!strcmp(op, "fma"))
			want(o, i, t == TL_F64 ? fma(a, b, c) : a * b + c);
		else if (!strcmp(op, "clamp") && !is_float(t))
			want_int(o, i, compare_ints(">", ib, ia, u) ? ib : ac ? ic : ia);
		else if (!strcmp(op, "clamp"))
			want(o, i, isnan(a) ? b : clamp(a, b, c));
		else if (!strcmp(op, "clamp_nan"))
			want(o, i, isnan(a) ? NAN : clamp(a, b, c));
		else if (is_float(t))
			want(o, i, pick == 0 ? a : pick == 1 ? b : c);
		else
			want_int(o, i, pick == 0 ? ia : pick == 1 ? ib : ic);
	}
	if (!strcmp(op, "fma") && t == TL_F32)
		tolerance(o, 0, 0x1p-50); /* the reference's own double rounding may turn a tie */
	LAUNCH(s, "ternary", GRID_1D, ptr(x), ptr(y), ptr(z), ptr(o), tl_int(N), tl_str(op), tl_int(BLOCK));
	case_end(s);
}

/* --- shapes, scalars, constants ------------------------------------------------------------------------------ */

static void outer(struct suite *s, tl_dtype t, int m, int n, int warps)
{
	if (!case_begin(s, file, "outer %s %dx%d warps=%d", tl_dtype_name(t), m, n, warps))
		return;
	struct array *x = in(s, "x", t, (size_t)m), *y = in(s, "y", t, (size_t)n), *o = out(s, "o", t, (size_t)(m * n));
	fill(x, -8, 8), fill(y, -8, 8);
	shaped(o, 2, (int[]){m, n});
	for (int i = 0; i < m; i++)
		for (int j = 0; j < n; j++) {
			double a = value(x, (size_t)i), b = value(y, (size_t)j), c = value(x, 0);
			double r = (i + j) % 3 == 0 ? a * b : b - c;
			if (is_float(t))
				want(o, (size_t)(i * n + j), round_to(t, r) + a);
			else
				want_int(o, (size_t)(i * n + j), wrap(t, (int64_t)(r + a)));
		}
	if (is_float(t))
		tolerance(o, 100 * unit_roundoff(t), 0); /* a multiply-add may be fused or not; |a·b| ≤ 64 */
	LAUNCH(s, "outer", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(y), ptr(o), tl_int(m), tl_int(n));
	case_end(s);
}

static void scalar_operators(struct suite *s, tl_dtype t)
{
	if (!case_begin(s, file, "scalars %s", tl_dtype_name(t)))
		return;
	struct array *x = in(s, "x", t, 1), *y = in(s, "y", t, 1), *o = out(s, "o", t, 7);
	fill(x, -9, 9), fill(y, -9, 9);
	double a = value(x, 0), b = value(y, 0);
	double r[] = {a + b,
		      a * b,
		      fmax(a, b),
		      fmin(a, b),
		      fabs(round_to(is_float(t) ? t : TL_F64, a - b)),
		      a > b ? b - a : a,
		      b > 0 ? -a : a};
	for (size_t i = 0; i < 7; i++)
		if (is_float(t))
			want(o, i, r[i]);
		else
			want_int(o, i, (int64_t)r[i]);
	LAUNCH(s, "scalars", CONFIG(.grid = {1}, .num_warps = 2), ptr(x), ptr(y), ptr(o));
	case_end(s);
}

static void weak_constants(struct suite *s)
{
	if (!case_begin(s, file, "constants stay weak"))
		return;
	struct array *h = in(s, "h", TL_F16, 100), *b = in(s, "b", TL_BF16, 100), *k = in(s, "k", TL_I8, 100),
		     *o = out(s, "o", TL_F32, 100);
	for (size_t i = 0; i < 100; i++) {
		/* products are exact, so it is the same whether the sum is fused with them */
		set(h, i, (double)random_int(-64, 64) / 64);
		double x = round_to(TL_F16, value(h, i) * 3 + 1);
		x = round_to(TL_F16, x + round_to(TL_F16, value(b, i) * 2));
		x = round_to(TL_F16, x + (double)wrap(TL_I8, value_int(k, i) + 100));
		want(o, i, x + 0.75 * 2);
	}
	tolerance(o, 1e-4, 0); /* sums around 100 in fp32 */
	LAUNCH(s, "weak", CONFIG(.grid = {1}), ptr(h), ptr(b), ptr(k), ptr(o), tl_float(0.75), tl_int(100),
	       tl_int(128));
	case_end(s);
}

static int64_t smaller(int64_t x, int64_t y) { return x < y ? x : y; }
static int64_t larger(int64_t x, int64_t y) { return x > y ? x : y; }
static int64_t unsigned_smaller(int64_t x, int64_t y) { return (uint64_t)x < (uint64_t)y ? x : y; }
static int64_t unsigned_larger(int64_t x, int64_t y) { return (uint64_t)x > (uint64_t)y ? x : y; }

static void extremes_of_negations(struct suite *s, int form, tl_dtype t)
{
	if (!case_begin(s, file, "extremes of negations %d %s", form, tl_dtype_name(t)))
		return;
	int64_t (*min)(int64_t, int64_t) = is_signed(t) ? smaller : unsigned_smaller;
	int64_t (*max)(int64_t, int64_t) = is_signed(t) ? larger : unsigned_larger;
	struct array *xs = in(s, "x", t, N), *ys = in(s, "y", t, N), *zs = in(s, "z", t, N), *o = out(s, "o", t, N);
	for (size_t i = 0; i < N; i++) {
		if (i % 3) /* small numbers, whose negations decide */
			set_int(xs, i, random_int(0, 100)), set_int(ys, i, random_int(0, 100)),
				set_int(zs, i, random_int(0, 100));
		else if (i % 2)
			set_int(xs, i, least(t));
		int64_t x = value_int(xs, i), y = value_int(ys, i), z = value_int(zs, i);
		int64_t nx = wrap(t, (int64_t)(0 - (uint64_t)x)), ny = wrap(t, (int64_t)(0 - (uint64_t)y)),
			nz = wrap(t, (int64_t)(0 - (uint64_t)z));
		int64_t r = x;
		for (int k = 0; form == 10 && k < 3; k++)
			r = min(min(r, ny), wrap(t, (int64_t)((uint64_t)z - (uint64_t)r)));
		want_int(o, i,
			 form == 0 || form == 3 ? min(min(x, ny), z) :
			 form == 1 ? max(max(nx, y), z) :
			 form == 2 ? min(z, min(nx, ny)) :
			 form == 4 ? max(min(nx, y), min(nz, x)) :
			 form == 5 ? max(max(nx, y), max(z, ny)) :
			 form == 6 ? (is_signed(t) && x == least(t) ? y : z) :
			 form == 7 ? (is_signed(t) && x == least(t) ? y : is_signed(t) && x < 0 ? nx : x) :
			 form == 8 ? wrap(t, (int64_t)((is_signed(t) ? (uint64_t)(nx >> 2) : (uint64_t)nx >> 2) +
						       (uint64_t)(x & y))) :
			 form == 9 ? wrap(t, (int64_t)((uint64_t)nx * 77) >> 8) : r);
	}
	LAUNCH(s, "extremes_of_negations", GRID_1D, ptr(xs), ptr(ys), ptr(zs), ptr(o), tl_int(N), tl_int(form),
	       tl_int(BLOCK));
	case_end(s);
}

void theme_elementwise(struct suite *s)
{
	static const char *const three[] = {"fma", "clamp", "clamp_nan", "where", "logical"};
	static const int shapes[][2] = {{1, 1},   {1, 32},  {32, 1},  {2, 4},    {16, 16}, {64, 8},
					{8, 128}, {64, 64}, {256, 2}, {1, 4096}, {1024, 4}};
	functions_of_all_types(s);
	accuracy_of_all(s);
	operators_of_all_types(s);
	for (int k = 0; k < COUNT(three); k++)
		for (int t = 0; t < FLOAT_TYPES; t++)
			ternary(s, three[k], float_types[t]);
	for (int k = 1; k < COUNT(three); k += k == 1 ? 2 : 1) /* clamp_nan is the same of integers */
		for (int t = 0; t < INT_TYPES; t++)
			ternary(s, three[k], int_types[t]);
	for (int k = 0; k < COUNT(shapes); k++) {
		outer(s, TL_F32, shapes[k][0], shapes[k][1], 1 << k % 6);
		outer(s, k % 2 ? TL_F16 : TL_I8, shapes[k][0], shapes[k][1], 1 << (k + 3) % 5);
		outer(s, k % 2 ? TL_I64 : TL_BF16, shapes[k][0], shapes[k][1], 4);
	}
	for (int t = 0; t < FLOAT_TYPES; t++)
		scalar_operators(s, float_types[t]);
	for (int t = 0; t < 4; t++)
		scalar_operators(s, int_types[t]);
	weak_constants(s);
	for (int form = 0; form < 11; form++)
		for (int t = 0; t < INT_TYPES; t++)
			extremes_of_negations(s, form, int_types[t]);
}
