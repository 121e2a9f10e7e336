/* Random kernels of gradients of attentions, made and evaluated. */
#include <math.h>

#include "gradients.h"
#include "../run/suite.h"

static void make_lengths(struct gradients *t)
{
	const struct blocks *b = t->blocks;
	int whole = b[0].still > 64 || b[1].still > 64 ? 128 : 64; /* a multiple of all tiles */
	t->m = (int)random_int(1, 3 * b[0].moving < 200 ? 3 * b[0].moving : 200);
	if (t->even_m)
		t->m = (t->m + whole - 1) / whole * whole;
	t->n = t->m + (chance(50) ? 0 : (int)random_int(0, 100));
	if (t->even_n)
		t->n = (t->n + whole - 1) / whole * whole;
	for (int h = 0; h < t->heads; h++) {
		t->lens[h] = t->packed ? (int)random_int(h == 1 ? 0 : 1, t->m) : t->n;
		t->start[h + 1] = t->start[h] + t->lens[h];
	}
}

static void make_gradients(struct gradients *t)
{
	static const char *const precisions[] = {"ieee", "tf32", "tf32x3"}, *const loops[] = {
										    "", ", warp_specialize=True",
										    ", num_stages=2", ", num_stages=3",
										    ", loop_unroll_factor=2"};
	memset(t, 0, sizeof *t);
	t->part = random_below(PARTS);
	t->keys = random_below(KEYS);
	t->operands = chance(50) ? P_POINTERS : random_below(OPERANDS);
	t->loop = chance(50) ? W_STARTS : random_below(WALKS);
	t->around = random_below(AROUND);
	t->type = chance(50) ? TL_F16 : chance(70) ? TL_BF16 : TL_F32;
	t->precision = t->type == TL_F32 && chance(70) ? precisions[random_below(3)] : NULL;
	t->result = chance(70) ? t->type : TL_F32;
	t->d = (chance(10) ? 32 : 16) << random_below(3);
	t->width = chance(80) ? t->d : t->d / 2 + 8 * (int)random_int(1, t->d / 16);
	for (int i = 0; i < 2; i++)
		t->blocks[i] = (struct blocks){(chance(10) ? 32 : 16) << random_below(3), 16 << random_below(3)};
	t->warps = chance(80) ? 4 << random_below(2) : 1 << random_below(3);
	t->stages = (int)random_int(1, 4);
	t->ctas = chance(80) ? 0 : (int)random_int(1, 3);
	t->packed = chance(20);
	t->share = t->packed || t->part == G_BOTH || chance(50) ? 1 : (int)random_int(2, MOST_HEADS);
	t->heads = t->packed ? MOST_HEADS : t->share * (int)random_int(1, MOST_HEADS / t->share);
	t->programs = t->part == G_COLUMNS || chance(80) ? 0 : (int)random_int(1, 4);
	t->rows = chance(30) && !t->packed;
	t->upright = chance(50);
	for (int i = 0; i < 2; i++)
		t->columns[i] = chance(40) && t->operands != P_DESCRIPTORS;
	t->base2 = chance(50);
	t->scores = chance(40);
	t->late = chance(60) && !sums_queries(t);
	t->early = chance(30) && !sums_queries(t);
	t->apart = chance(70);
	t->distance = chance(15);
	t->capped = chance(15);
	t->bias = chance(15) && !t->packed;
	t->segments = chance(15) && !t->packed;
	t->stored = chance(15) && !t->packed && t->part != G_BOTH;
	if ((t->loop == W_DOWN && t->operands != P_DESCRIPTORS) || is_one(t, false))
		t->operands = P_POINTERS;
	t->ahead = chance(20) && t->operands == P_POINTERS && t->loop != W_DOWN && !is_one(t, false);
	t->even_m = chance(30) && !t->packed;
	t->even_n = chance(30) && !t->packed;
	t->padded = chance(30) && !t->packed;
	t->infinite = chance(40) || t->distance; /* which may make the probabilities of no query too large for fp16 */
	t->own = chance(30);
	t->fine = chance(40);
	t->swapped = chance(40);
	t->literal = chance(15) && !t->packed;
	t->asked = loops[chance(50) ? 0 : random_below(COUNT(loops))];
	t->hints = chance(20);
	t->wide = chance(20);
	t->in = chance(20) && t->keys != K_ALL ? 3 : 2;
	t->window = (int)random_int(1, 100);
	make_lengths(t);
}

/* --- numbers ------------------------------------------------------------------------------------------------- */

static size_t row_of(const struct gradients *t, bool keys, int head, int i)
{
	int heads = keys ? t->heads / t->share : t->heads, length = keys ? t->n : t->m;
	head = keys ? head / t->share : head;
	if (t->packed)
		return (size_t)(t->start[head] + i) * (size_t)t->width;
	return (size_t)(t->rows ? i * heads + head : head * length + i) * (size_t)t->width;
}

static double product(const struct gradients *t, const struct array *a, size_t x, const struct array *b, size_t y)
{
	double sum = 0;
	for (size_t k = 0; k < (size_t)t->width; k++)
		sum += value(a, x + k) * value(b, y + k);
	return sum;
}

/* Of each element, and bounds of their errors. */
struct sums {
	double *value, *error;
};

static void add(const struct sums *to, size_t at, double term, double error)
{
	to->value[at] += term;
	to->error[at] += error;
}

/* A query's probabilities, 0 where a key is hidden, and the logarithm of the sum. */
static double probabilities(const struct gradients *t, int head, int i, double *p)
{
	int n = t->lens[head], last = t->packed ? i : i + t->n - t->m;
	double most = -INFINITY, total = 0;
	for (int j = 0; j < n; j++) {
		p[j] = product(t, t->q, row_of(t, false, head, i), t->k, row_of(t, true, head, j)) * scale;
		if (t->capped)
			p[j] = tanh(p[j] / cap) * cap;
		p[j] += (t->distance ? 0.125 * (j - i) : 0) + (t->bias ? value(t->biases, (size_t)(i * t->n + j)) : 0);
		if ((t->segments && value_int(t->segment_of, (size_t)last) != value_int(t->segment_of, (size_t)j)) ||
		    (t->keys != K_ALL && j > last) || (t->keys == K_WINDOW && last - j >= t->window))
			p[j] = -INFINITY;
		most = fmax(most, p[j]);
	}
	for (int j = 0; j < n; j++)
		total += p[j] = exp(p[j] - most);
	for (int j = 0; j < n; j++)
		p[j] /= total;
	return most + log(total);
}

/* The sum of a row of the output, which is stored, times its gradient. */
static double delta_of(const struct gradients *t, int head, int i, const double *p)
{
	size_t at = row_of(t, false, head, i);
	for (int x = 0; x < t->width; x++) {
		double sum = 0;
		for (int j = 0; j < t->lens[head]; j++)
			sum += p[j] * value(t->v, row_of(t, true, head, j) + (size_t)x);
		set(t->o, at + (size_t)x, sum);
	}
	return product(t, t->o, at, t->g, at);
}

/* The relative error of factors of products, which tf32 truncates. */
static double factor_error(const struct gradients *t)
{
	if (t->type != TL_F32)
		return unit_roundoff(t->type);
	return t->precision && strcmp(t->precision, "tf32") ? 0x1p-20 : 0x1p-10;
}

/* Probabilities are exact to `wide`: scores of up to 64 have 24 bits, and exp2 loses two. They and the gradients of
 * scores are rounded to factors of products. */
static void evaluate_row(const struct gradients *t, int head, int i, double *p, const struct sums *to, double *most)
{
	size_t at = row_of(t, false, head, i),
	       line = t->packed ? (size_t)(t->start[head] + i) : (size_t)(head * lse_size(t) + i);
	double unit = factor_error(t), wide = 0x1p-16;
	double lse = probabilities(t, head, i, p), delta = delta_of(t, head, i, p);
	set(t->lse, line, t->base2 ? lse / log(2) : lse);
	set(t->delta, line, delta);
	for (int j = 0; j < t->lens[head]; j++) {
		size_t key = row_of(t, true, head, j);
		double dp = product(t, t->g, at, t->v, key), ds = p[j] * (dp - delta) * scale;
		if (t->capped)
			ds *= 1 - pow(tanh(product(t, t->q, at, t->k, key) * scale / cap), 2);
		double error = unit * fabs(ds) + wide * p[j] * (fabs(dp) + fabs(delta)) * scale;
		if (t->stored) {
			want(t->ds, (size_t)((head * t->m + i) * t->n + j), t->late ? ds / scale : ds);
			*most = fmax(*most, t->late ? error / scale : error);
		}
		for (size_t x = 0; x < (size_t)t->width && p[j] > 0; x++) {
			double q = value(t->q, at + x), k = value(t->k, key + x), g = value(t->g, at + x);
			add(&to[0], at + x, ds * k, error * fabs(k));
			add(&to[1], key + x, ds * q, error * fabs(q));
			add(&to[2], key + x, p[j] * g, (unit + wide) * p[j] * fabs(g));
		}
	}
}

static void want_sums(struct array *a, struct sums *s, bool stored)
{
	double error = 0;
	for (size_t i = 0; i < a->len && stored; i++) {
		want(a, i, s->value[i]);
		error = fmax(error, s->error[i]);
	}
	tolerance(a, error, 0);
	free(s->value), free(s->error);
}

static void evaluate_gradients(const struct gradients *t)
{
	struct array *const to[] = {t->dq, t->dk, t->dv};
	struct sums sums[3];
	double *p = malloc(sizeof *p * (size_t)t->n), most = 0;
	for (int k = 0; k < 3; k++) {
		sums[k] = (struct sums){calloc(to[k]->len, sizeof(double)), calloc(to[k]->len, sizeof(double))};
		for (size_t i = 0; i < to[k]->len && sums_queries(t) && k == 0; i++)
			sums[k].value[i] = value(t->dq, i);
	}
	for (int h = 0; h < t->heads; h++)
		for (int i = 0; i < (t->packed ? t->lens[h] : t->m); i++)
			evaluate_row(t, h, i, p, sums, &most);
	tolerance(t->ds, most, 0);
	for (int k = 0; k < 3; k++)
		want_sums(to[k], &sums[k], k == 0 ? t->part != G_KEYS : t->part != G_QUERIES);
	free(p);
}

static void make_arrays(struct suite *s, struct gradients *t)
{
	int packed = t->start[t->heads], kv = t->heads / t->share;
	size_t queries = (size_t)((t->packed ? packed : t->heads * t->m) * t->width);
	size_t keys = (size_t)((t->packed ? packed : kv * t->n) * t->width);
	size_t lines = (size_t)(t->packed ? packed : t->heads * lse_size(t));
	t->q = in(s, "q", t->type, queries), t->k = in(s, "k", t->type, keys), t->v = in(s, "v", t->type, keys);
	t->g = in(s, "g", t->type, queries), t->o = in(s, "o", t->type, queries);
	fill_whole(t->q, 2), fill_whole(t->k, 2), fill_whole(t->v, 2), fill_whole(t->g, 2);
	t->lse = in(s, "lse", TL_F32, lines), t->delta = in(s, "delta", TL_F32, lines);
	for (size_t i = 0; i < lines; i++)
		set(t->lse, i, t->infinite ? INFINITY : 0), set(t->delta, i, 0);
	t->dk = out(s, "dk", t->result, keys), t->dv = out(s, "dv", t->result, keys);
	if (sums_queries(t)) {
		t->dq = inout(s, "dq", TL_F32, queries);
		fill_whole(t->dq, 2);
	} else {
		t->dq = out(s, "dq", t->result, queries);
	}
	t->biases = in(s, "bias", t->type, (size_t)(t->m * t->n));
	fill_whole(t->biases, 2);
	t->segment_of = in(s, "segments", TL_I32, (size_t)t->n);
	for (int i = 0, at = 0; i < t->n; i++)
		set_int(t->segment_of, (size_t)i, at += chance(3));
	t->ds = inout(s, "ds", t->type, t->stored ? (size_t)(t->heads * t->m * t->n) : 1);
	fill(t->ds, 0, 0);
	t->starts = in(s, "starts", TL_I32, MOST_HEADS + 1);
	for (int h = 0; h <= t->heads; h++)
		set_int(t->starts, (size_t)h, t->start[h]);
}

static void gradients_case(struct suite *s, int64_t seed, const char *left_out)
{
	(void)left_out; /* nothing is left out of these */
	if (!case_begin(s, NULL, "%lld.", (long long)seed))
		return;
	struct gradients made, *t = &made;
	random_seed((uint64_t)seed);
	make_gradients(t);
	make_arrays(s, t);
	evaluate_gradients(t);
	char *text = gradients_text(t);
	int m = t->packed ? 0 : t->m, n = t->packed ? 0 : t->n; /* packed ones have their own */
	tl_arg args[] = {ptr(t->q),
			 ptr(t->k),
			 ptr(t->v),
			 ptr(t->g),
			 ptr(t->o),
			 ptr(t->lse),
			 ptr(t->delta),
			 ptr(t->dq),
			 ptr(t->dk),
			 ptr(t->dv),
			 ptr(t->biases),
			 ptr(t->segment_of),
			 ptr(t->ds),
			 tl_int(0),
			 tl_float(scale),
			 tl_int(m),
			 tl_int(n),
			 tl_int(t->m * t->width),
			 tl_int(t->n * t->width),
			 tl_int(lse_size(t)),
			 tl_int(t->window),
			 ptr(t->starts),
			 tl_int(tiles_of(t))};
	uint32_t tiles = t->part == G_COLUMNS ? 1 : (uint32_t)tiles_of(t), programs = (uint32_t)t->programs;
	tl_config config = {.grid = {programs ? programs : tiles, programs ? 1 : (uint32_t)heads_of(t)},
			    .num_warps = t->warps,
			    .num_stages = t->stages,
			    .max_ctas = t->ctas};
	run_text(s, text, &config, args, COUNT(args), "max_ctas %d, %d heads, m = %d, n = %d, window = %d", t->ctas,
		 t->heads, t->m, t->n, t->window);
}

void theme_random_gradients(struct suite *s)
{
	each_seed(s, "gradients", 60, gradients_case);
}
