/* Products of matrices in microscaling formats: numbers and scales are decoded here from their bits, one by one. */
#include "themes.h"

static const char file[] = "scaled.tl";

struct format {
	const char *name;
	tl_dtype dtype; /* that it is passed as; of e2m1 a byte holds two */
	bool as_bytes;
};

static const struct format formats[] = {
	{"e2m1", TL_U8, true},     {"e4m3", TL_F8E4M3, false}, {"e5m2", TL_F8E5M2, false}, {"bf16", TL_BF16, false},
	{"fp16", TL_F16, false}, {"e4m3", TL_F8E4M3, true},  {"e5m2", TL_F8E5M2, true},
};

static bool is_packed(const struct format *f) { return f->dtype == TL_U8; }

static double from_e2m1(int bits)
{
	static const double magnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
	return bits & 8 ? -magnitudes[bits & 7] : magnitudes[bits & 7];
}

/* A matrix of rows × columns numbers, those of e2m1 packed along rows or columns; `batch` of them one after another. */
struct operand {
	const struct format *f;
	struct array *x, *scale; /* or NULL; a row for each row of the operand, or for each column of the second one */
	int rows, columns, group;
	bool along_rows; /* neighbours in a row share a byte, else those in a column */
	bool turned;     /* columns lie in memory one after another */
	bool second;     /* scales are along columns */
};

static double number(const struct operand *o, int z, int i, int j)
{
	bool pack = is_packed(o->f);
	int rows = o->rows / (pack && !o->along_rows ? 2 : 1), columns = o->columns / (pack && o->along_rows ? 2 : 1);
	int r = pack && !o->along_rows ? i / 2 : i, c = pack && o->along_rows ? j / 2 : j;
	size_t at = (size_t)(z * rows * columns + (o->turned ? c * rows + r : r * columns + c));
	if (pack)
		return from_e2m1((int)value_int(o->x, at) >> 4 * ((o->along_rows ? j : i) % 2) & 15);
	return o->f->as_bytes ? decode(o->f->dtype, (uint64_t)value_int(o->x, at)) : value(o->x, at);
}

static double scale_of(const struct operand *o, tl_dtype compute, bool fast, int z, int i, int j)
{
	if (!o->scale)
		return 1;
	int along = o->second ? i : j, other = o->second ? j : i, k = o->second ? o->rows : o->columns,
	    others = o->second ? o->columns : o->rows;
	size_t at = (size_t)((z * others + other) * (k / o->group) + along / o->group);
	if (o->scale->f)
		return value(o->scale, at);
	int e = (int)value_int(o->scale, at);
	if (e == 255)
		return fast ? INFINITY : NAN;
	return e ? round_to(compute, ldexp(1, e - 127)) : 0;
}

static double scaled(const struct operand *o, tl_dtype compute, bool fast, int z, int i, int j)
{
	double x = round_to(compute, number(o, z, i, j));
	return o->scale ? round_to(compute, x * scale_of(o, compute, fast, z, i, j)) : x;
}

static void fill_operand(const struct operand *o, int most)
{
	for (size_t i = 0; i < o->x->len; i++)
		if (o->x->f)
			set(o->x, i, uniform(-most, most));
		else if (is_packed(o->f))
			set_int(o->x, i, (int64_t)(random_bits() & 255));
		else
			set_int(o->x, i, (int64_t)encode(o->f->dtype, round_to(o->f->dtype, uniform(-most, most))));
	for (size_t i = 0; o->scale && i < o->scale->len; i++)
		if (o->scale->f)
			set(o->scale, i, uniform(0, 4));
		else
			set_int(o->scale, i, random_int(120, 131));
}

/* o = a·b + c of each batch, with the error of the tensor cores' sums. */
static void want_scaled(struct array *out, const struct operand *a, const struct operand *b, const struct array *c,
			bool fast, int batch)
{
	bool half = !strcmp(a->f->name, "fp16") || !strcmp(b->f->name, "fp16");
	tl_dtype compute = half ? TL_F16 : TL_BF16;
	int m = a->rows, n = b->columns, k = a->columns;
	double *x = malloc((size_t)(m * k) * sizeof *x), *y = malloc((size_t)(k * n) * sizeof *y), largest = 0;
	for (int z = 0; z < batch; z++) {
		for (int i = 0; i < m * k; i++)
			x[i] = scaled(a, compute, fast, z, i / k, i % k);
		for (int i = 0; i < k * n; i++)
			y[i] = scaled(b, compute, fast, z, i / n, i % n);
		for (int i = 0; i < m * n; i++) {
			size_t at = (size_t)(z * m * n + i);
			double sum = c ? value(c, at) : 0, size = fabs(sum);
			for (int e = 0; e < k; e++) {
				sum += x[i / n * k + e] * y[e * n + i % n];
				size += fabs(x[i / n * k + e] * y[e * n + i % n]);
			}
			if (isfinite(size))
				largest = fmax(largest, size);
			want(out, at, sum);
		}
	}
	tolerance(out, largest * k * 4 * unit_roundoff(TL_F32), 0);
	free(x), free(y);
}

struct options {
	bool a_along_k, b_along_k, turned, fast;
	int group, batch; /* batch: 0 for tiles of rank 2 */
	int scales;       /* 1: of a, 2: of b */
	bool fp8_scales, special;
};

static struct operand make_operand(struct suite *s, const char *name, const char *scale, const struct format *f,
				   int rows, int columns, const struct options *o, bool second)
{
	int batch = o->batch ? o->batch : 1;
	size_t len = (size_t)(batch * rows * columns);
	struct operand r = {.f = f, .rows = rows, .columns = columns, .group = o->group, .second = second};
	r.along_rows = second ? !o->b_along_k : o->a_along_k;
	r.turned = second && o->turned;
	r.x = in(s, name, f->as_bytes ? TL_U8 : f->dtype, is_packed(f) ? len / 2 : len);
	if (o->scales & (second ? 2 : 1))
		r.scale = in(s, scale, o->fp8_scales ? TL_F8E4M3 : TL_U8, len / (size_t)o->group);
	fill_operand(&r, 4);
	for (size_t i = 0; o->special && r.scale && !r.scale->f && i < r.scale->len; i += 7)
		set_int(r.scale, i, i % 2 ? 255 : 0);
	return r;
}

static void product(struct suite *s, const struct format *fa, const struct format *fb, const int *shape,
		    const struct options *o)
{
	int m = shape[0], n = shape[1], k = shape[2], warps = shape[3], batch = o->batch ? o->batch : 1;
	if (!case_begin(s, file, "%s%s %s%s %dx%dx%d batch=%d group=%d scales=%d%s%s packed=%d,%d%s%s warps=%d",
			fa->name, fa->as_bytes ? " bytes" : "", fb->name, fb->as_bytes ? " bytes" : "", m, n, k,
			o->batch, o->group, o->scales, o->fp8_scales ? " fp8" : "", o->special ? " 0 and 255" : "",
			o->a_along_k, o->b_along_k, o->turned ? " turned" : "", o->fast ? " fast" : "", warps))
		return;
	struct operand a = make_operand(s, "a", "a_scale", fa, m, k, o, false),
		       b = make_operand(s, "b", "b_scale", fb, k, n, o, true);
	struct array *c = in(s, "c", TL_F32, (size_t)(batch * m * n)), *out_ = out(s, "o", TL_F32, c->len);
	shaped(out_, 3, (int[]){batch, m, n});
	want_scaled(out_, &a, &b, c, o->fast, batch);
	LAUNCH(s, "product", CONFIG(.grid = {1}, .num_warps = warps), ptr(a.x), a.scale ? ptr(a.scale) : tl_none(),
	       ptr(b.x), b.scale ? ptr(b.scale) : tl_none(), ptr(c), ptr(out_), tl_str(fa->name), tl_str(fb->name),
	       tl_bool(o->a_along_k), tl_bool(o->b_along_k), tl_bool(o->turned), tl_bool(o->fast), tl_int(o->group),
	       o->batch ? tl_int(o->batch) : tl_none(), tl_int(m), tl_int(n), tl_int(k));
	case_end(s);
}

/* Of the matrices m × k and n × k: block gives M, N, K, warps and stages. */
static void blocks(struct suite *s, const struct format *fa, const struct format *fb, bool b_scales, int m, int n,
		   int k, const int *block)
{
	if (!case_begin(s, file, "blocks %s %s%s %dx%dx%d of %dx%dx%d warps=%d stages=%d", fa->name, fb->name,
			b_scales ? "" : " one scaled", m, n, k, block[0], block[1], block[2], block[3], block[4]))
		return;
	struct options o = {true, true, true, false, 32, 0, b_scales ? 3 : 1, false, false};
	struct operand a = make_operand(s, "a", "a_scale", fa, m, k, &o, false),
		       b = make_operand(s, "b", "b_scale", fb, k, n, &o, true);
	struct array *c = out(s, "o", TL_F32, (size_t)(m * n));
	shaped(c, 2, (int[]){m, n});
	want_scaled(c, &a, &b, NULL, false, 1);
	LAUNCH(s, "blocks", CONFIG(.grid = {(uint32_t)cdiv(m, block[0]), (uint32_t)cdiv(n, block[1])},
				   .num_warps = block[3], .num_stages = block[4]),
	       ptr(a.x), ptr(a.scale), ptr(b.x), b.scale ? ptr(b.scale) : tl_none(), ptr(c), tl_int(m), tl_int(n),
	       tl_int(k), tl_str(fa->name), tl_str(fb->name), tl_int(block[0]), tl_int(block[1]), tl_int(block[2]));
	case_end(s);
}

void theme_scaled(struct suite *s)
{
	static const int shapes[][4] = {{32, 32, 64, 4},   {64, 64, 64, 4}, {128, 64, 128, 8}, {16, 128, 32, 4},
					{64, 128, 64, 4}, {16, 16, 64, 1}, {128, 128, 32, 8}, {4, 32, 64, 2}};
	static const int of_blocks[][5] = {{64, 64, 64, 4, 3}, {128, 64, 64, 4, 2}, {32, 64, 128, 4, 4},
					   {64, 32, 32, 8, 1}, {16, 128, 64, 4, 3}};
	int c = 0;
	for (int a = 0; a < COUNT(formats); a++)
		for (int b = 0; b < COUNT(formats); b++, c++) {
			struct options o = {c % 3 || !is_packed(&formats[a]), c % 2 || !is_packed(&formats[b]),
					    c / 2 % 2, c % 5 == 0, c % 4 ? 32 : 16, c % 6 == 1 ? 1 << c % 3 : 0,
					    c % 4 == 2 ? c % 3 : 3, c % 4 == 0 && c % 3, false};
			product(s, &formats[a], &formats[b], shapes[c % COUNT(shapes)], &o);
		}
	for (int i = 0; i < COUNT(shapes); i++) { /* of e2m1 in every packing, and with scales that are no numbers */
		struct options o = {i % 2, i / 2 % 2, i / 4 % 2, false, 32, 0, 3, false, i < 4};
		product(s, &formats[0], &formats[0], shapes[i], &o);
		o.a_along_k = o.b_along_k = o.special = true;
		product(s, &formats[i % 2], &formats[3 + i % 2], shapes[i], &o);
		o.fast = true;
		product(s, &formats[3 + i / 2 % 2], &formats[i % 2], shapes[i], &o);
	}
	for (int i = 0; i < COUNT(of_blocks); i++) {
		blocks(s, &formats[0], &formats[0], true, 100, 72, 96 + 64 * i, of_blocks[i]);
		blocks(s, &formats[0], &formats[3 + i % 2], false, 64, 128, 32 + 96 * i, of_blocks[i]);
		blocks(s, &formats[1 + i % 2], &formats[1], true, 130, 64, 256, of_blocks[i]);
	}
}
