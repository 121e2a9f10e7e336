/* Products of tiles. Whole numbers are exact in any order of summation and must come out exactly; other numbers tell
 * the precisions apart. */
#include "themes.h"

static const char file[] = "dot.tl";

/* `whole`: the largest whole number in the operands, such that sums over 128 products are exact in `out`, and in the
 * 13 bits that fp8 instructions of sm_90 add in. */
struct kind {
	const char *name;
	tl_dtype a, b, out;
	const char *precision;
	int whole;
};

static const struct kind kinds[] = {
	{"fp16", TL_F16, TL_F16, TL_F32, "tf32", 100},
	{"fp16 to fp16", TL_F16, TL_F16, TL_F16, "tf32", 3},
	{"bf16", TL_BF16, TL_BF16, TL_F32, "tf32", 100},
	{"tf32", TL_F32, TL_F32, TL_F32, "tf32", 300},
	{"ieee", TL_F32, TL_F32, TL_F32, "ieee", 300},
	{"tf32x3", TL_F32, TL_F32, TL_F32, "tf32x3", 300},
	{"bf16x3", TL_F32, TL_F32, TL_F32, "bf16x3", 256},
	{"bf16x6", TL_F32, TL_F32, TL_F32, "bf16x6", 300},
	{"int8", TL_I8, TL_I8, TL_I32, "tf32", 128},
	{"e4m3", TL_F8E4M3, TL_F8E4M3, TL_F32, "tf32", 6},
	{"e5m2", TL_F8E5M2, TL_F8E5M2, TL_F32, "tf32", 6},
	{"e4m3 e5m2", TL_F8E4M3, TL_F8E5M2, TL_F32, "tf32", 6},
	{"e5m2 e4m3", TL_F8E5M2, TL_F8E4M3, TL_F32, "tf32", 6},
	{"e4m3 to fp16", TL_F8E4M3, TL_F8E4M3, TL_F16, "tf32", 3},
	{"fp64", TL_F64, TL_F64, TL_F64, "ieee", 1000000},
};

static int least_k(const struct kind *k) { return bits_of(k->a) == 8 ? 32 : 256 / bits_of(k->a); }

/* The number of the device's target; of the interpreter, which rounds like one, 80. */
static int device_sm(struct suite *s)
{
	tl_device_info d;
	int sm = 80;
	if (!tl_device(context(s), &d))
		sscanf(d.target, "cuda:sm_%d", &sm);
	return sm;
}

/* Are fp32 operands rounded to tf32 here? Tensor cores do so, from sm_80 on. */
static bool rounds_to_tf32(struct suite *s, const struct kind *k)
{
	return k->a == TL_F32 && !strcmp(k->precision, "tf32") && device_sm(s) >= 80;
}

/* Element (i, j) of a matrix with strides. */
struct view {
	const struct array *x;
	size_t at, row, col;
	bool tf32;
};

static double element(const struct view *v, size_t i, size_t j)
{
	double e = value(v->x, v->at + i * v->row + j * v->col);
	return v->tf32 ? tf32(e) : e;
}

static struct view in_form(const struct array *x, const char *form, int m, int n)
{
	bool rows = !strcmp(form, "rows") || !strcmp(form, "trans of columns");
	return (struct view){x, 0, rows ? (size_t)n : 1, rows ? 1 : (size_t)m, false};
}

/* o[i, j] = c[i, j] + Σ a[i, k] b[k, j], row-major from element `to` on; returns the largest Σ |a| |b| + |c|. */
static double want_product(struct array *o, size_t to, const struct view *a, const struct view *b,
			   const struct array *c, int m, int n, int k)
{
	double largest = 0, *row = malloc((size_t)k * sizeof *row),
	       *columns = malloc((size_t)(k * n) * sizeof *columns);
	for (int x = 0; x < k; x++)
		for (int j = 0; j < n; j++)
			columns[j * k + x] = element(b, (size_t)x, (size_t)j);
	for (int i = 0; i < m; i++) {
		for (int x = 0; x < k; x++)
			row[x] = element(a, (size_t)i, (size_t)x);
		for (int j = 0; j < n; j++) {
			size_t at = to + (size_t)(i * n + j);
			double sum = c ? value(c, at) : 0, size = fabs(sum);
			for (int x = 0; x < k; x++) {
				sum += row[x] * columns[j * k + x];
				size += fabs(row[x] * columns[j * k + x]);
			}
			largest = fmax(largest, size);
			if (o->f)
				want(o, at, sum);
			else
				want_int(o, at, (int64_t)sum);
		}
	}
	free(row), free(columns);
	return largest;
}

/* The error of products whose fp32 operands are taken apart, relative to the sum of their absolute values: what the
 * parts leave of an operand, and the products of parts that are left out. */
static double error_of_parts(const struct kind *k)
{
	return !strcmp(k->precision, "tf32x3")	 ? ldexp(1, -20)
	       : !strcmp(k->precision, "bf16x3") ? ldexp(1, -16)
	       : !strcmp(k->precision, "bf16x6") ? ldexp(1, -23)
						 : 0;
}

/* The error of n additions whose sum of absolute values is `size`. Tensor cores cut off bits instead of rounding, and
 * those of fp8 keep 13 of them. */
static double allowed(const struct kind *k, int n, double size)
{
	double unit = unit_roundoff(k->out == TL_F16 ? TL_F16 : k->out);
	if (is_fp8(k->a))
		return size * fmax(ldexp(1, -12), 2 * n * unit);
	return n * size * (strcmp(k->precision, "ieee") ? 4 * unit : unit) + size * error_of_parts(k);
}

static void product(struct suite *s, const struct kind *t, int m, int n, int k, const char *a_form, const char *b_form,
		    const char *acc, bool whole, int warps)
{
	k = k < least_k(t) ? least_k(t) : k;
	if (!case_begin(s, file, "%s %dx%dx%d a=%s b=%s acc=%s%s warps=%d", t->name, m, n, k, a_form, b_form, acc,
			whole ? " whole" : "",
			warps))
		return;
	struct array *a = in(s, "a", t->a, (size_t)(m * k)), *b = in(s, "b", t->b, (size_t)(k * n)),
		*c = in(s, "c", t->out, (size_t)(m * n)),
		     *o = out(s, "o", t->out, c->len);
	shaped(o, 2, (int[]){m, n});
	if (whole)
		fill_whole(a, t->whole), fill_whole(b, t->whole);
	if (whole && c->f)
		fill_whole(c, 100);
	struct view va = in_form(a, a_form, m, k), vb = in_form(b, b_form, k, n);
	va.tf32 = vb.tf32 = rounds_to_tf32(s, t);
	double size = want_product(o, 0, &va, &vb, strcmp(acc, "none") ? c : NULL, m, n, k);
	if (!whole && o->f) /* wgmma cuts off what is beyond tf32, instead of rounding */
		tolerance(o, allowed(t, k, size) + (va.tf32 && device_sm(s) == 90 ? ldexp(size, -10) : 0), 0);
	LAUNCH(s, "product", CONFIG(.grid = {1}, .num_warps = warps), ptr(a), ptr(b), ptr(c), ptr(o), tl_str(a_form),
	       tl_str(b_form), tl_str(acc), tl_str(t->precision), tl_type(t->out), tl_int(m), tl_int(n), tl_int(k));
	case_end(s);
}

static void products(struct suite *s)
{
	static const int shapes[][4] = {
		{16, 16, 16, 1},
		{16, 8, 16, 1},
		{32, 32, 32, 4},
		{64, 64, 64, 4},
		{128, 128, 64, 8},
		{128, 64, 32, 4},
		{64, 128, 16, 8},
		{16, 128, 128, 4},
		{128, 16, 64, 2},
		{128, 8, 128, 8},
		{16, 16, 64, 8},
		{32, 64, 128, 1},
		{64, 32, 16, 2},
		{8, 16, 32, 2},
		{1, 64, 32, 4},
		{64, 1, 16, 4},
		{2, 4, 64, 1},
		{16, 256, 32, 4},
		/* warpgroups side by side, above each other, and several instructions in each direction */
		{64, 256, 64, 4},
		{64, 128, 128, 8},
		{256, 32, 64, 8},
		{128, 64, 128, 16},
		{128, 128, 32, 4},
		/* the least k of each type, and tiles smaller than an instruction */
		{16, 16, 4, 1},
		{64, 64, 4, 4},
		{128, 32, 4, 8},
		{64, 128, 8, 4},
		{32, 16, 8, 2},
		{1, 1, 4, 1},
		{2, 32, 4, 4},
		{64, 2, 8, 4},
		{4, 1, 64, 2}};
	static const char *const forms[] = {"rows", "columns", "trans of rows", "trans of columns"};
	static const char *const accs[] = {"none", "argument", "+=", "sum"};
	int c = 0;
	for (int i = 0; i < COUNT(shapes); i++)
		for (int t = 0; t < COUNT(kinds); t++, c++)
			product(s, &kinds[t], shapes[i][0], shapes[i][1], shapes[i][2], forms[(c + i) % 4],
				forms[(c / 4 + t) % 4], accs[c / 3 % 4], c % 3 != 0, shapes[i][3]);
	for (int t = 0; t < COUNT(kinds); t++) /* every form of both operands, of every type */
		for (int i = 0; i < 16; i++)
			product(s, &kinds[t], 32, 64, 32, forms[i % 4], forms[i / 4], "argument", true, 4);
	static const int fetched[][4] = {{64, 64, 32, 4},   {16, 128, 64, 4},  {128, 32, 128, 8}, {64, 256, 32, 8},
					 {128, 128, 16, 8}, {32, 512, 16, 16}, {256, 64, 32, 4}};
	for (int i = 0; i < COUNT(fetched); i++) /* of four-byte elements wgmma has one operand in registers */
		for (int f = 0; f < 16; f++, c++)
			product(s, &kinds[3], fetched[i][0], fetched[i][1], fetched[i][2], forms[f % 4], forms[f / 4],
				accs[c % 4], c % 2, fetched[i][3]);
	for (int t = 0; t < COUNT(kinds); t++)
		for (int w = 1; w <= 16; w *= 2)
			product(s, &kinds[t], 64, 32, 32, "rows", "rows", "none", false, w);
	for (int t = 0; t < COUNT(kinds); t++)
		if (!error_of_parts(&kinds[t])) /* allow_tf32 has only two values */
			product(s, &kinds[t], 32, 32, 32, "rows", "columns", "keyword", false, 4);
}

/* Against double precision: much closer than one product of tf32 or bf16 comes. Some operands are infinite, or NaN. */
static void accuracy(struct suite *s, const struct kind *t, int m, int n, int k, int warps)
{
	if (!case_begin(s, file, "accuracy %s %dx%dx%d warps=%d", t->name, m, n, k, warps))
		return;
	struct array *a = in(s, "a", t->a, (size_t)(m * k)), *b = in(s, "b", t->b, (size_t)(k * n)),
		     *c = in(s, "c", t->out, (size_t)(m * n)), *o = out(s, "o", t->out, c->len);
	shaped(o, 2, (int[]){m, n});
	for (size_t i = 0; i < a->len; i++)
		set(a, i, ldexp(uniform(-1, 1), (int)random_int(-20, 20)));
	fill(c, 0, 0), fill(b, 0.5, 1);
	for (int i = 0; i < m; i++) { /* each row has its own size; the largest of it is 1 */
		double scale = 0;
		for (int x = 0; x < k; x++)
			scale = fmax(scale, fabs(value(a, (size_t)(i * k + x))));
		for (int x = 0; x < k; x++)
			set(a, (size_t)(i * k + x), value(a, (size_t)(i * k + x)) / scale);
	}
	set(a, 0, INFINITY), set(a, (size_t)k + 1, NAN);
	struct view va = in_form(a, "rows", m, k), vb = in_form(b, "rows", k, n);
	want_product(o, 0, &va, &vb, c, m, n, k);
	double size = 0;
	for (int i = 2; i < m; i++) {
		double sum = 0;
		for (int x = 0; x < k; x++)
			sum += fabs(value(a, (size_t)(i * k + x)));
		size = fmax(size, sum);
	}
	tolerance(o, size * (error_of_parts(t) + 4 * k * unit_roundoff(TL_F32)), 0);
	LAUNCH(s, "product", CONFIG(.grid = {1}, .num_warps = warps), ptr(a), ptr(b), ptr(c), ptr(o), tl_str("rows"),
	       tl_str("rows"), tl_str("argument"), tl_str(t->precision), tl_type(t->out), tl_int(m), tl_int(n),
	       tl_int(k));
	case_end(s);
}

/* --- rank 3 -------------------------------------------------------------------------------------------------- */

static void batches(struct suite *s, const struct kind *t, int z, int m, int n, int k, bool turned, int warps)
{
	k = k < least_k(t) ? least_k(t) : k;
	if (!case_begin(s, file, "batches %s %dx%dx%dx%d%s warps=%d", t->name, z, m, n, k, turned ? " turned" : "",
			warps))
		return;
	struct array *a = in(s, "a", t->a, (size_t)(z * m * k)), *b = in(s, "b", t->b, (size_t)(z * k * n)),
		     *c = in(s, "c", t->out, (size_t)(z * m * n)), *o = out(s, "o", t->out, c->len);
	shaped(o, 3, (int[]){z, m, n});
	fill_whole(a, t->whole), fill_whole(b, t->whole), fill_whole(c, 100);
	for (int x = 0; x < z; x++) {
		struct view va = {a, (size_t)(x * m * k), (size_t)k, 1, false},
			    vb = {b, (size_t)(x * k * n), turned ? 1 : (size_t)n, turned ? (size_t)k : 1, false};
		want_product(o, (size_t)(x * m * n), &va, &vb, c, m, n, k);
	}
	LAUNCH(s, "batches", CONFIG(.grid = {1}, .num_warps = warps), ptr(a), ptr(b), ptr(c), ptr(o),
	       tl_str(t->precision), tl_type(t->out), tl_bool(turned), tl_int(z), tl_int(m), tl_int(n), tl_int(k));
	case_end(s);
}

static void many_batches(struct suite *s, const struct kind *t, int rank, int m, int n, int k, bool turned, int warps)
{
	int z = 1 << (rank - 2);
	k = k < least_k(t) ? least_k(t) : k;
	if (!case_begin(s, file, "rank %d %s %dx%dx%dx%d%s warps=%d", rank, t->name, z, m, n, k,
			turned ? " turned" : "", warps))
		return;
	struct array *a = in(s, "a", t->a, (size_t)(z * m * k)), *b = in(s, "b", t->b, (size_t)(z * k * n)),
		     *c = in(s, "c", t->out, (size_t)(z * m * n)), *o = out(s, "o", t->out, c->len);
	fill_whole(a, t->whole), fill_whole(b, t->whole), fill_whole(c, 100);
	for (int x = 0; x < z; x++) {
		struct view va = {a, (size_t)(x * m * k), (size_t)k, 1, false},
			    vb = {b, (size_t)(x * k * n), turned ? 1 : (size_t)n, turned ? (size_t)k : 1, false};
		want_product(o, (size_t)(x * m * n), &va, &vb, c, m, n, k);
	}
	LAUNCH(s, "many_batches", CONFIG(.grid = {1}, .num_warps = warps), ptr(a), ptr(b), ptr(c), ptr(o),
	       tl_str(t->precision), tl_bool(turned), tl_int(rank), tl_int(m), tl_int(n), tl_int(k));
	case_end(s);
}

/* --- one after another --------------------------------------------------------------------------------------- */

/* Small numbers, so that the products are exact. */
static void several(struct suite *s, tl_dtype t, int m, int n, int k, int warps, int stages)
{
	enum { TILES = 3 };
	if (!case_begin(s, file, "several %s %dx%dx%d warps=%d stages=%d", tl_dtype_name(t), m, k, n, warps, stages))
		return;
	struct array *a = in(s, "a", t, (size_t)(TILES * m * k)), *b = in(s, "b", t, (size_t)(TILES * k * n)),
		     *c = in(s, "c", t, (size_t)(TILES * k * n)), *o = out(s, "o", TL_F32, (size_t)(TILES * m * n));
	shaped(o, 3, (int[]){TILES, m, n});
	fill_whole(a, 1), fill_whole(b, 1), fill_whole(c, 1);
	for (int tile = 0; tile < TILES; tile++)
		for (int i = 0; i < m; i++)
			for (int j = 0; j < n; j++) {
				double x = 0, y = 0;
				for (int z = 0; z < k; z++) {
					double of_a = value(a, (size_t)((tile * m + i) * k + z));
					x += of_a * value(b, (size_t)((tile * k + z) * n + j));
					y += of_a * value(c, (size_t)((tile * k + z) * n + j));
				}
				want(o, (size_t)((tile * m + i) * n + j), (tile % 2 ? 2 * x + y : x) * y);
			}
	LAUNCH(s, "several", CONFIG(.grid = {1}, .num_warps = warps, .num_stages = stages), ptr(a), ptr(b), ptr(c),
	       ptr(o), tl_int(TILES), tl_int(m), tl_int(n), tl_int(k));
	case_end(s);
}

/* Small numbers, so that the product in between is exact in the operands' type. */
static void chain(struct suite *s, tl_dtype t, const char *form, int m, int n, int k, int l, int warps)
{
	if (!case_begin(s, file, "chain %s %s %dx%dx%dx%d warps=%d", form, tl_dtype_name(t), m, k, n, l, warps))
		return;
	struct array *a = in(s, "a", t, (size_t)(m * k)), *b = in(s, "b", t, (size_t)(k * n)),
		*c = in(s, "c", t, (size_t)(n * l)),
		     *o = out(s, "o", TL_F32, (size_t)(m * l));
	shaped(o, 2, (int[]){m, l});
	fill_whole(a, 1), fill_whole(b, 1), fill_whole(c, 1);
	for (int i = 0; i < m; i++)
		for (int j = 0; j < l; j++) {
			double sum = 0;
			for (int x = 0; x < n; x++) {
				if (value(c, (size_t)(x * l + j)) == 0)
					continue;
				for (int y = 0; y < k; y++)
					sum += value(a, (size_t)(i * k + y)) * value(b, (size_t)(y * n + x)) *
					       value(c, (size_t)(x * l + j));
			}
			want(o, (size_t)(i * l + j), sum);
		}
	LAUNCH(s, "chain", CONFIG(.grid = {1}, .num_warps = warps), ptr(a), ptr(b), ptr(c), ptr(o), tl_str(form),
	       tl_int(m), tl_int(n), tl_int(k), tl_int(l));
	case_end(s);
}

static void gram(struct suite *s, const struct kind *t, int m, int k, int warps)
{
	if (!case_begin(s, file, "gram %s %dx%d warps=%d", t->name, m, k, warps))
		return;
	struct array *x = in(s, "x", t->a, (size_t)(m * k)), *o = out(s, "o", t->out, (size_t)(m * m)),
		*sum = out(s, "sum", t->out, (size_t)m + 1);
	fill_whole(x, t->whole > 100 ? 100 : t->whole);
	struct view v = {x, 0, (size_t)k, 1, false}, turned = {x, 0, 1, (size_t)k, false};
	want_product(o, 0, &v, &turned, NULL, m, m, k);
	double trace = 0;
	for (int j = 0; j < m; j++) {
		double column = 0;
		for (int i = 0; i < m; i++)
			column += o->f ? o->want_f[i * m + j] : (double)o->want_i[i * m + j];
		trace += o->f ? o->want_f[j * m + j] : (double)o->want_i[j * m + j];
		want(sum, (size_t)j, column);
	}
	want(sum, (size_t)m, trace);
	LAUNCH(s, "gram", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), ptr(sum), tl_int(m), tl_int(k));
	case_end(s);
}

static void mixed(struct suite *s, const struct kind *first, const struct kind *second, int m, int n, int k, int warps)
{
	if (!case_begin(s, file, "%s and %s %dx%dx%d warps=%d", first->name, second->name, m, n, k, warps))
		return;
	const struct kind *t[] = {first, second};
	struct array *a[2], *b[2], *o[2];
	for (int i = 0; i < 2; i++) {
		a[i] = in(s, i ? "x" : "a", t[i]->a, (size_t)(m * k));
		b[i] = in(s, i ? "y" : "b", t[i]->b, (size_t)(k * n));
		o[i] = out(s, i ? "p" : "o", t[i]->out, (size_t)(m * n));
		fill_whole(a[i], t[i]->whole), fill_whole(b[i], t[i]->whole);
		struct view left = in_form(a[i], "rows", m, k), right = in_form(b[i], "rows", k, n);
		want_product(o[i], 0, &left, &right, NULL, m, n, k);
	}
	LAUNCH(s, "mixed", CONFIG(.grid = {1}, .num_warps = warps), ptr(a[0]), ptr(b[0]), ptr(a[1]), ptr(b[1]),
	       ptr(o[0]), ptr(o[1]), tl_int(m), tl_int(n), tl_int(k));
	case_end(s);
}

static void computed(struct suite *s, tl_dtype t, int m, int n, int k, int warps)
{
	if (!case_begin(s, file, "computed operands %s %dx%dx%d warps=%d", tl_dtype_name(t), m, n, k, warps))
		return;
	struct array *w = in(s, "w", TL_I8, (size_t)(m * k)), *scale = in(s, "scale", t, (size_t)m),
		*x = in(s, "x", t, (size_t)(k * n)),
		     *o = out(s, "o", TL_F32, (size_t)(m * n)), *bias = in(s, "bias", TL_F32, (size_t)n);
	fill(w, -15, 15), fill_whole(x, 5), fill_whole(bias, 100);
	for (size_t i = 0; i < scale->len; i++)
		set(scale, i, ldexp(1, (int)random_int(-3, 3)));
	for (int i = 0; i < m; i++)
		for (int j = 0; j < n; j++) {
			double sum = value(bias, (size_t)j);
			for (int y = 0; y < k; y++)
				if (y % 3 != j % 3)
					sum += value(w, (size_t)(i * k + y)) * value(scale, (size_t)i) *
					       value(x, (size_t)(y + j * k));
			want(o, (size_t)(i * n + j), sum > 0 ? sum : 0);
		}
	LAUNCH(s, "computed", CONFIG(.grid = {1}, .num_warps = warps), ptr(w), ptr(scale), ptr(x), ptr(o), ptr(bias),
	       tl_int(m), tl_int(n), tl_int(k));
	case_end(s);
}

static void gated(struct suite *s, tl_dtype t, const int *dims, bool turned, bool wide, int warps, int stages)
{
	enum { LENGTH = 128 };
	int m = dims[0], n = dims[1], k = dims[2];
	if (!case_begin(s, file, "gated %s%s%s %dx%dx%d warps=%d stages=%d", tl_dtype_name(t), turned ? " turned" : "",
			wide ? " wide" : "", m, n, k, warps, stages))
		return;
	struct array *x = in(s, "q", t, (size_t)(m * LENGTH)), *y = in(s, "k", t, (size_t)(n * LENGTH)),
		     *g = in(s, "g", TL_F32, x->len), *h = in(s, "h", TL_F32, y->len),
		     *o = out(s, "o", TL_F32, (size_t)(m * n));
	fill_whole(x, 7), fill_whole(y, 7), fill_whole(g, 1), fill_whole(h, 1);
	for (int i = 0; i < m; i++)
		for (int j = 0; j < n; j++) {
			double sum = 0;
			for (int d = 0; d < LENGTH; d++) {
				size_t row = (size_t)(i * LENGTH + d),
				       column = (size_t)(turned ? d * n + j : j * LENGTH + d);
				sum += value(x, row) * value(y, column) * exp2(value(g, row) - value(h, column));
			}
			want(o, (size_t)(i * n + j), sum);
		}
	LAUNCH(s, "gated", CONFIG(.grid = {1}, .num_warps = warps, .num_stages = stages), ptr(x), ptr(y), ptr(g),
	       ptr(h), ptr(o), tl_int(LENGTH), tl_int(m), tl_int(n), tl_int(k), tl_int(turned), tl_int(wide));
	case_end(s);
}

static void powers(struct suite *s, tl_dtype t, int n, int m, int warps)
{
	if (!case_begin(s, file, "power %d %s %dx%d warps=%d", n + 1, tl_dtype_name(t), m, m, warps))
		return;
	struct array *x = in(s, "x", t, (size_t)(m * m)), *o = out(s, "o", t, x->len);
	int64_t y[64 * 64], z[64 * 64];
	for (size_t i = 0; i < x->len; i++) {
		set(x, i, (double)random_int(0, 6));
		y[i] = (int64_t)value(x, i);
	}
	for (int p = 0; p < n; p++) {
		for (int i = 0; i < m * m; i++) {
			z[i] = 0;
			for (int k = 0; k < m; k++)
				z[i] += y[i / m * m + k] * (int64_t)value(x, (size_t)(k * m + i % m));
		}
		for (int i = 0; i < m * m; i++)
			y[i] = z[i] % 7;
	}
	for (size_t i = 0; i < x->len; i++)
		want(o, i, (double)y[i]);
	LAUNCH(s, "powers", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), tl_int(n), tl_int(m));
	case_end(s);
}

static void chosen(struct suite *s, tl_dtype t, int which, int warps)
{
	enum { M = 32, N = 16, K = 32 };
	if (!case_begin(s, file, "branch %d %s warps=%d", which, tl_dtype_name(t), warps))
		return;
	struct array *a = in(s, "a", t, M * K), *b = in(s, "b", t, K * N), *o = out(s, "o", TL_F32, M * N);
	fill_whole(a, 5), fill_whole(b, 5);
	struct view va = {a, 0, K, 1, false}, vb = {b, 0, N, 1, false};
	want_product(o, 0, &va, &vb, NULL, M, N, K);
	for (int i = 0; i < M * N; i++)
		want(o, (size_t)i, o->want_f[i] * (which > 1 ? 3 : which > 0 ? 1 : -1));
	LAUNCH(s, "chosen", CONFIG(.grid = {1}, .num_warps = warps), ptr(a), ptr(b), ptr(o), tl_int(which), tl_int(M),
	       tl_int(N), tl_int(K));
	case_end(s);
}

static void sums_behind(struct suite *s, tl_dtype t, const char *form, int rows, int n, int stages)
{
	enum { K = 64 };
	bool negated = !strcmp(form, "negated"), scaled = !strcmp(form, "scaled");
	if (!case_begin(s, file, "sums behind %s %s rows=%d n=%d stages=%d", tl_dtype_name(t), form, rows, n, stages))
		return;
	tl_dtype sum = t == TL_I8 ? TL_I32 : TL_F32;
	struct array *x = in(s, "x", t, (size_t)(n * rows * K)), *y = in(s, "y", t, (size_t)(n * K * K)),
		     *o = out(s, "o", sum, K * K), *p = out(s, "p", sum, (size_t)(rows * K)),
		     *last = out(s, "rows", sum, (size_t)(n * rows));
	for (size_t i = 0; i < y->len; i++)
		set(y, i, (double)random_int(-2, 2));
	for (size_t i = 0; i < x->len; i++)
		set(x, i, (double)random_int(-2, 2));
	for (int e = 0; e < K * K; e++) {
		double v = 0;
		for (int i = 0; i < n * K; i++)
			v += value(y, (size_t)(i / K * K * K + e / K * K + i % K)) *
			     value(y, (size_t)(i / K * K * K + i % K * K + e % K));
		want(o, (size_t)e, v);
	}
	for (int r = 0; r < rows; r++) {
		double v[K] = {0};
		for (int k = 0; k < n; k++) {
			double total = 0;
			for (int c = 0; c < K; c++) {
				total += v[c];
				v[c] *= negated ? -1 : -2;
				for (int i = 0; i < K; i++)
					v[c] += value(x, (size_t)((k * rows + r) * K + i)) *
						value(y, (size_t)(i * K + c));
			}
			if (!negated && k < n - 1)
				want(last, (size_t)(k * rows + r), scaled ? total * (k - 1) : total);
		}
		for (int c = 0; c < K; c++)
			want(p, (size_t)(r * K + c), v[c]);
	}
	LAUNCH(s, "sums_behind", CONFIG(.grid = {1}, .num_stages = stages), ptr(x), ptr(y), ptr(o), ptr(p), ptr(last),
	       tl_int(n), tl_int(n - 1), tl_str(form), tl_int(rows));
	case_end(s);
}

static void across(struct suite *s, tl_dtype t, bool fixed, int rows, int n, int warps, int stages)
{
	enum { K = 64 };
	if (!case_begin(s, file, "across %s%s rows=%d n=%d warps=%d stages=%d", tl_dtype_name(t), fixed ? " fixed" : "",
			rows, n, warps, stages))
		return;
	tl_dtype sum = t == TL_I8 ? TL_I32 : TL_F32;
	size_t tall = (size_t)(rows * K);
	struct array *x = in(s, "x", t, (size_t)n * tall), *y = in(s, "y", t, (size_t)(n * K * K)),
		     *z = in(s, "z", t, (size_t)n * tall), *o = out(s, "o", sum, tall), *p = out(s, "p", sum, tall);
	fill_whole(x, 2), fill_whole(y, 2), fill_whole(z, 2);
	for (int r = 0; r < rows; r++)
		for (int c = 0; c < K; c++) {
			double first = 0, second = 0;
			for (int i = 0; i < n * K; i++) {
				double b = value(y, (size_t)(i * K + c));
				first += value(fixed ? z : x, (size_t)(fixed ? r * K + i % K : i * rows + r)) * b;
				second -= fixed ? 0 : value(z, (size_t)((i / K * rows + r) * K + i % K)) * b;
			}
			want(o, (size_t)(r * K + c), first);
			want(p, (size_t)(r * K + c), second);
		}
	LAUNCH(s, "across", CONFIG(.grid = {1}, .num_warps = warps, .num_stages = stages), ptr(x), ptr(y), ptr(z),
	       ptr(o), ptr(p), tl_int(n), tl_int(rows), tl_bool(fixed));
	case_end(s);
}

static double clamped(double x, double most)
{
	return fmax(fmin(x, most), -most);
}

static void turns_of_tiles(struct suite *s, bool turned, int tiles, int n, int block_n, int stages)
{
	enum { M = 128, D = 64 };
	if (!case_begin(s, file, "turns of %d%s tiles n=%d by %d stages=%d", tiles, turned ? " turned" : "", n, block_n,
			stages))
		return;
	struct array *q = inout(s, "q", TL_F16, (size_t)((tiles + 1) * M * D)),
		     *k = in(s, "k", TL_F16, (size_t)(n * D)), *v = in(s, "v", TL_F16, (size_t)(n * D));
	static double now[M][D], next[M][D];
	fill_whole(k, 2), fill_whole(v, 2);
	for (int i = 0; i < M; i++)
		for (int x = 0; x < D; x++) {
			now[i][x] = (double)random_int(-4, 4);
			size_t at = (size_t)(turned ? x * M + i : i * D + x);
			set(q, at, now[i][x]);
			want(q, at, now[i][x]);
		}
	for (int t = 1; t <= tiles; t++) {
		for (int i = 0; i < M; i++) {
			memset(next[i], 0, sizeof next[i]);
			for (int j = 0; j < n; j++) {
				double score[64], most = -INFINITY;
				for (int b = 0; b < block_n && j % block_n == 0; b++) {
					score[b] = 0;
					for (int x = 0; x < D; x++)
						score[b] += now[i][x] * value(k, (size_t)((j + b) * D + x));
					most = fmax(most, score[b]);
				}
				for (int b = 0; b < block_n && j % block_n == 0; b++)
					for (int x = 0; x < D; x++)
						next[i][x] = next[i][x] * (b == 0 && most > 40 ? -1 : 1) +
							     clamped(score[b], 2) * value(v, (size_t)((j + b) * D + x));
			}
		}
		for (int i = 0; i < M; i++)
			for (int x = 0; x < D; x++) {
				now[i][x] = clamped(next[i][x], 4);
				want(q, (size_t)(t * M * D + (turned ? x * M + i : i * D + x)), now[i][x]);
			}
	}
	LAUNCH(s, "turns_of_tiles", CONFIG(.grid = {1}, .num_warps = 8, .num_stages = stages), ptr(q), ptr(k), ptr(v),
	       tl_int(tiles), tl_int(n), tl_bool(turned), tl_int(M), tl_int(block_n), tl_int(D));
	case_end(s);
}

void theme_dot(struct suite *s)
{
	for (int i = 0; i < 4; i++)
		turns_of_tiles(s, i % 2, 2 + i / 2, 64 * (1 + i), i == 1 ? 32 : 64, 2 + i / 2);
	static const int batch[][5] = {{1, 16, 16, 16, 1}, {2, 16, 16, 32, 4}, {4, 32, 16, 16, 4},
				       {8, 16, 32, 32, 8}, {2, 64, 32, 16, 2}, {16, 8, 8, 16, 4}},
			 chains[][5] = {{16, 16, 16, 16, 1},
					{32, 64, 32, 16, 4},
					{64, 64, 64, 64, 4},
					{128, 32, 16, 64, 8},
					{16, 16, 128, 32, 2}};
	static const char *const forms[] = {"left first", "right first", "turned"};
	static const tl_dtype half[] = {TL_F16, TL_BF16, TL_F32};
	static const int gates[][3] = {{16, 16, 32}, {16, 16, 64}, {16, 64, 16}, {64, 16, 32}, {64, 64, 64}};
	products(s);
	dot_attention(s);
	for (int i = 0; i < COUNT(batch); i++)
		for (int t = 0; t < COUNT(kinds); t++)
			batches(s, &kinds[t], batch[i][0], batch[i][1], batch[i][2], batch[i][3], (i + t) % 2,
				batch[i][4]);
	for (int t = 0; t < COUNT(kinds); t++)
		if (error_of_parts(&kinds[t]) > 0)
			accuracy(s, &kinds[t], 64, 64, 16, 4), accuracy(s, &kinds[t], 16, 32, 8, 1),
				accuracy(s, &kinds[t], 128, 32, 32, 8), accuracy(s, &kinds[t], 8, 128, 16, 4);
	for (int rank = 3; rank <= 8; rank++) /* the accumulator says that the result is fp16 */
		for (int t = 0; t < COUNT(kinds); t++)
			many_batches(s, &kinds[t], rank, rank > 6 ? 8 : 8 << t % 3, 32 >> rank % 3, 8 << (t + rank) % 2,
				     (t + rank) % 2, 1 << (t + rank) % 4);
	static const int products[][4] = {
		{64, 64, 64, 1}, {64, 64, 64, 2}, {32, 32, 128, 1}, {16, 128, 64, 4}, {128, 64, 32, 2}};
	for (int i = 0; i < COUNT(products); i++)
		for (int f = 0; f < 4; f++)
			several(s, half[f / 2], products[i][0], products[i][1], products[i][2], products[i][3],
				f % 2 ? 3 : 1);
	for (int i = 0; i < COUNT(chains); i++)
		for (int f = 0; f < 9; f++)
			chain(s, half[f / 3], forms[f % 3], chains[i][0], chains[i][1], chains[i][2], chains[i][3],
			      chains[i][4]);
	for (int t = 0; t < 3; t++) {
		computed(s, half[t], 32, 64, 32, 4), computed(s, half[t], 128, 16, 64, 8),
			computed(s, half[t], 16, 16, 16, 1);
		for (int i = 0; i < 4 * COUNT(gates); i++)
			gated(s, half[t], gates[i / 4], i & 1, i & 2, 1 << i % 5 % 4, 1 + i % 3),
				gated(s, half[t], gates[i / 4], i & 1, i & 2, 1, 2 + i % 2);
		for (int n = 0; n < 4; n++)
			powers(s, half[t], n, 16 << n % 3, 1 << n);
		for (int which = 0; which < 3; which++)
			chosen(s, half[t], which, 1 << which);
	}
	for (int t = 0; t < 9; t++)
		if (kinds[t].out != TL_F16)
			gram(s, &kinds[t], 32, 64, 4), gram(s, &kinds[t], 16, 32, 1), gram(s, &kinds[t], 128, 32, 8);
	for (int t = 0; t < COUNT(kinds); t++)
		mixed(s, &kinds[t], &kinds[(t + 6) % COUNT(kinds)], 64, 64, 64, 4),
			mixed(s, &kinds[t], &kinds[(t + 7) % COUNT(kinds)], 32, 64, 32, 2);
	across(s, TL_F32, true, 64, 9, 4, 8), across(s, TL_I8, true, 128, 31, 8, 30);
	for (int stages = 3; stages <= 4; stages++) {
		for (int fixed = 0; fixed < 2; fixed++) {
			across(s, TL_I8, fixed, 64, 5, 4, stages), across(s, TL_F8E4M3, fixed, 128, 4, 8, stages);
			across(s, TL_F32, fixed, 64, 3, 4, stages), across(s, TL_F16, fixed, 64, 3, 4, stages);
		}
		sums_behind(s, TL_I8, "negated", 32, 5, stages), sums_behind(s, TL_F16, "negated", 64, 5, stages);
		sums_behind(s, TL_F16, "scaled", 64, 5, stages), sums_behind(s, TL_BF16, "plain", 64, 4, stages);
	}
}
