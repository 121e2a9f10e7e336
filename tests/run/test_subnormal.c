/* ftz off: math functions of fp32 whose arguments or results are subnormal numbers, on every device. */
#include "themes.h"

static double apply(const char *op, double x)
{
	return !strcmp(op, "exp2")    ? exp2(x)
	       : !strcmp(op, "sqrt")  ? sqrt(x)
	       : !strcmp(op, "rsqrt") ? 1 / sqrt(x)
				      : exp(x);
}

/* A function of fp32 with arguments from `from` to `to`, times 2^scale. */
static void function(struct suite *s, const char *op, double from, double to, int scale)
{
	enum { N = 777, BLOCK = 128 };
	if (!case_begin(s, "elementwise.tl", "unary %s of %g to %g", op, ldexp(from, scale), ldexp(to, scale)))
		return;
	struct array *x = in(s, "x", TL_F32, N), *o = out(s, "o", TL_F32, N);
	for (int i = 0; i < N; i++) {
		set(x, (size_t)i, ldexp(uniform(from, to), scale));
		want(o, (size_t)i, apply(op, value(x, (size_t)i)));
	}
	/* exp multiplies by log2(e) in fp32: an error of 2^-17 for arguments near -100 */
	tolerance(o, 0x1p-149, strstr(op, "exp") && strcmp(op, "exp2") ? 0x1p-15 : 0x1p-21);
	LAUNCH(s, "unary", CONFIG(.grid = {(N + BLOCK - 1) / BLOCK}, .ftz = TL_FTZ_OFF), ptr(x), ptr(o), tl_int(N),
	       tl_str(op), tl_int(BLOCK));
	case_end(s);
}

void theme_subnormal(struct suite *s)
{
	function(s, "exp2", -148, -126.5, 0);
	function(s, "exp", -102, -88, 0);
	function(s, "fast_expf", -102, -88, 0);
	function(s, "sqrt", 1, 1 << 23, -149);
	function(s, "rsqrt", 1, 1 << 23, -149);
}
