/* fp_fusion off: sums of products have the bits of separate multiplications and additions on every device, and tl.fma
 * rounds once. A third of the sums cancel but for the rounding of a product, so a contraction gives other numbers. */
#include "themes.h"

static const char file[] = "fusion.tl";
enum { RESULTS = 6 };

static double product(tl_dtype t, double x, double y) { return round_to(t, x * y); }

static double plus(tl_dtype t, double x, double y) { return round_to(t, x + y); }

/* Numbers for RESULTS expressions of x, y, z, u and v. */
static void cancelling(tl_dtype t, struct array *const *a, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		double p = product(t, value(a[0], i), value(a[1], i));
		if (i % 3 < 2)
			set(a[2], i, i % 3 ? p : -p);
		if (i % 3 == 0) {
			set(a[3], i, value(a[0], i));
			set(a[4], i, -value(a[1], i));
		}
		if (i % 3 == 1) /* the last of the expressions cancels */
			set(a[4], i, product(t, plus(t, p, value(a[2], i)), value(a[3], i)));
	}
}

static void want_results(struct array *o, struct array *const *a, size_t n)
{
	tl_dtype t = o->dtype;
	for (size_t i = 0; i < n; i++) {
		double x = value(a[0], i), y = value(a[1], i), z = value(a[2], i), u = value(a[3], i),
		       v = value(a[4], i), p = product(t, x, y);
		const double all[RESULTS] = {plus(t, p, z),
					     plus(t, p, -z),
					     plus(t, z, -p),
					     plus(t, -p, z),
					     plus(t, p, product(t, u, v)),
					     plus(t, product(t, plus(t, p, z), u), -v)};
		for (size_t k = 0; k < RESULTS; k++)
			want_number(o, k * n + i, all[k]);
	}
}

static void expressions(struct suite *s, tl_dtype t, int n, bool scalar, int warps)
{
	static const char *const names[] = {"x", "y", "z", "u", "v"};
	if (!case_begin(s, file, "%s %s n=%d warps=%d", scalar ? "scalars" : "tiles", tl_dtype_name(t), n, warps))
		return;
	struct array *a[COUNT(names)];
	for (int i = 0; i < COUNT(names); i++)
		a[i] = in(s, names[i], t, (size_t)n);
	cancelling(t, a, (size_t)n);
	struct array *o = out(s, "o", t, RESULTS * (size_t)n), *o1 = out(s, "contracted", t, RESULTS * (size_t)n);
	want_results(o, a, (size_t)n);
	want_results(o1, a, (size_t)n);
	/* three roundings of numbers below 2, or fewer */
	tolerance(o1, 6 * unit_roundoff(t), 0);
	unsigned grid = scalar ? (unsigned)n : 1;
	const char *kernel = scalar ? "scalars" : "tiles";
	for (int form = 0; form < RESULTS; form++)
		for (int off = 0; off < 2; off++)
			LAUNCH(s, kernel,
			       CONFIG(.grid = {grid}, .num_warps = warps,
				      .fp_fusion = off ? TL_FP_FUSION_OFF : TL_FP_FUSION_DEFAULT),
			       ptr(a[0]), ptr(a[1]), ptr(a[2]), ptr(a[3]), ptr(a[4]), ptr(off ? o : o1), tl_int(n),
			       tl_int(form));
	case_end(s);
}

static void fused(struct suite *s, tl_dtype t, int n)
{
	if (!case_begin(s, file, "fused %s n=%d", tl_dtype_name(t), n))
		return;
	struct array *x = in(s, "x", t, (size_t)n), *y = in(s, "y", t, (size_t)n), *z = in(s, "z", t, (size_t)n),
		     *o = out(s, "o", t, (size_t)n);
	for (size_t i = 0; i < z->len; i++) {
		double a = value(x, i), b = value(y, i);
		if (i % 3)
			set(z, i, -product(t, a, b));
		want_number(o, i, t == TL_F32 ? (double)fmaf((float)a, (float)b, (float)value(z, i))
					      : round_to(t, fma(a, b, value(z, i))));
	}
	LAUNCH(s, "fused", CONFIG(.grid = {1}, .fp_fusion = TL_FP_FUSION_OFF), ptr(x), ptr(y), ptr(z), ptr(o),
	       tl_int(n));
	case_end(s);
}

/* A sum that a loop carries. */
static void steps(struct suite *s, tl_dtype t, int rows, int n)
{
	if (!case_begin(s, file, "steps %s %dx%d", tl_dtype_name(t), rows, n))
		return;
	struct array *x = in(s, "x", t, (size_t)(rows * n)), *y = in(s, "y", t, (size_t)(rows * n)),
		     *o = out(s, "o", t, (size_t)n);
	for (size_t i = 0; i < o->len; i++) {
		double sum = value(x, i);
		for (size_t k = i; k < x->len; k += o->len)
			sum = plus(t, sum, product(t, value(x, k), value(y, k)));
		want_number(o, i, sum);
	}
	LAUNCH(s, "steps", CONFIG(.grid = {1}, .fp_fusion = TL_FP_FUSION_OFF), ptr(x), ptr(y), ptr(o), tl_int(rows),
	       tl_int(n));
	case_end(s);
}

/* ±(1 + a 2^-f) with a = 1, 2 or 3. The product of two, ±(1 + (a + b) 2^-f + a b 2^-2f), loses its last term by
 * rounding, so that sums of the rounded products are exact in any order, and sums of the products would not be. */
static void set_factor(struct array *x, size_t i)
{
	int fraction = x->dtype == TL_F64 ? 29 : 14;
	double magnitude = 1 + ldexp((double)random_int(1, 3), -fraction);
	set(x, i, random_bits() & 1 ? magnitude : -magnitude);
}

static void sums(struct suite *s, tl_dtype t, int rows, int cols, int axis, int warps)
{
	if (!case_begin(s, file, "sums %s %dx%d axis=%d warps=%d", tl_dtype_name(t), rows, cols, axis, warps))
		return;
	size_t lines = (size_t)(axis ? rows : cols), len = (size_t)(axis ? cols : rows);
	struct array *x = in(s, "x", t, (size_t)(rows * cols)), *y = in(s, "y", t, (size_t)(rows * cols)),
		     *o = out(s, "o", t, lines);
	for (size_t i = 0; i < x->len; i++) {
		set_factor(x, i);
		set_factor(y, i);
	}
	for (size_t i = 0; i < lines; i++) {
		double sum = 0;
		for (size_t k = 0; k < len; k++) {
			size_t at = axis ? i * (size_t)cols + k : k * (size_t)cols + i;
			sum += product(t, value(x, at), value(y, at));
		}
		want_number(o, i, sum);
	}
	LAUNCH(s, "sums", CONFIG(.grid = {1}, .num_warps = warps, .fp_fusion = TL_FP_FUSION_OFF), ptr(x), ptr(y),
	       ptr(o), tl_int(rows), tl_int(cols), tl_int(axis));
	case_end(s);
}

void theme_fusion(struct suite *s)
{
	for (int t = 0; t < FLOAT_TYPES; t++)
		for (int warps = 1; warps <= 4; warps *= 4) {
			expressions(s, float_types[t], 1024, false, warps);
			expressions(s, float_types[t], 48, true, warps);
		}
	for (int t = 0; t < FLOAT_TYPES; t++) {
		steps(s, float_types[t], 9, 256);
		if (bits_of(float_types[t]) >= 32)
			fused(s, float_types[t], 512);
	}
	for (int wide = 0; wide < 2; wide++)
		for (int axis = 0; axis < 2; axis++) {
			sums(s, wide ? TL_F64 : TL_F32, 4, 64, axis, 1);
			sums(s, wide ? TL_F64 : TL_F32, 128, 4, axis, 1);
			sums(s, wide ? TL_F64 : TL_F32, 8, 512, axis, 4);
		}
}
