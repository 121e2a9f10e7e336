/* Attention as the benchmark times it besides examples/attention.tl (tests/bench/attention.tl), on less data. */
#include "themes.h"

static const char file[] = "../bench/attention.tl";

/* Heads of queries that share heads of keys, of sequences of one length, or of several in one tensor. */
struct heads {
	int batch, heads, share, d;
	bool causal, packed;
	tl_dtype type;
};

struct tiles {
	int m, n, warps, stages;
};

enum { LENGTH = 256, BATCH = 3 };

static const int starts[BATCH + 1] = {0, 100, 101, 101 + LENGTH};

static int rows(const struct heads *h)
{
	return h->packed ? starts[h->batch] : h->batch * LENGTH;
}

static int length_of(const struct heads *h, int b)
{
	return h->packed ? starts[b + 1] - starts[b] : LENGTH;
}

/* The row of a position in a tensor of `heads` heads. */
static size_t row(const struct heads *h, int heads, int b, int head, int i)
{
	return (size_t)(h->packed ? (starts[b] + i) * heads + head : (b * heads + head) * LENGTH + i);
}

static const char *heads_name(char *text, const struct heads *h, const struct tiles *t)
{
	sprintf(text, "%s d=%d %d/%d %s%s by %dx%d warps=%d stages=%d", tl_dtype_name(h->type), h->d, h->heads,
		h->share, h->causal ? "causal" : "full", h->packed ? " packed" : "", t->m, t->n, t->warps, t->stages);
	return text;
}

static tl_arg start_of(struct suite *s, const struct heads *h)
{
	if (!h->packed)
		return tl_none();
	struct array *start = in(s, "start", TL_I32, BATCH + 1);
	for (int i = 0; i <= BATCH; i++)
		set(start, (size_t)i, starts[i]);
	return ptr(start);
}

/* Row i's probabilities and the log of the sum of exponentials. */
static double probabilities(const struct heads *h, const struct array *q, const struct array *k, double scale, int b,
			    int head, int i, double *p)
{
	int n = h->causal ? i + 1 : length_of(h, b);
	size_t at = row(h, h->heads, b, head, i) * (size_t)h->d;
	double total = 0;
	for (int j = 0; j < n; j++) {
		size_t key = row(h, h->heads / h->share, b, head / h->share, j) * (size_t)h->d;
		double score = 0;
		for (int x = 0; x < h->d; x++)
			score += value(q, at + (size_t)x) * value(k, key + (size_t)x);
		total += p[j] = exp(score * scale);
	}
	for (int j = 0; j < n; j++)
		p[j] /= total;
	for (int j = n; j < length_of(h, b); j++)
		p[j] = 0;
	return log(total);
}

static void forward(struct suite *s, const struct heads *h, const struct tiles *t)
{
	char text[120];
	if (!case_begin(s, file, "shared %s", heads_name(text, h, t)))
		return;
	int kv = h->heads / h->share;
	struct array *q = in(s, "q", h->type, (size_t)(rows(h) * h->heads * h->d)),
		     *k = in(s, "k", h->type, (size_t)(rows(h) * kv * h->d)),
		     *v = in(s, "v", h->type, (size_t)(rows(h) * kv * h->d)),
		     *o = out(s, "o", h->type, (size_t)(rows(h) * h->heads * h->d));
	double scale = 1 / sqrt(h->d), p[LENGTH];
	fill(q, -3, 3), fill(k, -3, 3);
	for (int b = 0; b < h->batch; b++)
		for (int head = 0; head < h->heads; head++)
			for (int i = 0; i < length_of(h, b); i++) {
				probabilities(h, q, k, scale, b, head, i, p);
				for (int x = 0; x < h->d; x++) {
					double sum = 0;
					for (int j = 0; j < length_of(h, b); j++)
						sum += p[j] *
						       value(v, row(h, kv, b, head / h->share, j) * (size_t)h->d +
									(size_t)x);
					want(o, row(h, h->heads, b, head, i) * (size_t)h->d + (size_t)x, sum);
				}
			}
	tolerance(o, 4 * unit_roundoff(h->type), 0);
	LAUNCH(s, "shared_attention_kernel",
	       CONFIG(.grid = {(uint32_t)cdiv(LENGTH, t->m), (uint32_t)h->heads, (uint32_t)h->batch},
		      .num_warps = t->warps, .num_stages = t->stages),
	       ptr(q), ptr(k), ptr(v), ptr(o), start_of(s, h), tl_float(scale), tl_int(LENGTH), tl_int(h->heads),
	       tl_int(h->share), tl_int(h->d), tl_int(t->m), tl_int(t->n), tl_bool(h->causal));
	case_end(s);
}

/* Few keys have most of the weight, so results are as large as values; probabilities are rounded to 4 bits. */
static void fp8(struct suite *s, tl_dtype type, int d, bool causal, const struct tiles *t)
{
	char text[120];
	struct heads h = {1, 2, 1, d, causal, false, type};
	if (!case_begin(s, file, "%s", heads_name(text, &h, t)))
		return;
	size_t len = (size_t)(rows(&h) * h.heads * d);
	struct array *q = in(s, "q", type, len), *k = in(s, "k", type, len), *v = in(s, "v", type, len),
		     *o = out(s, "o", TL_F16, len);
	double scale = 3.5 / sqrt(d), p[LENGTH];
	fill(q, -2, 2), fill(k, -2, 2), fill(v, -2, 2);
	for (int head = 0; head < h.heads; head++)
		for (int i = 0; i < LENGTH; i++) {
			probabilities(&h, q, k, scale, 0, head, i, p);
			for (int x = 0; x < d; x++) {
				double sum = 0;
				for (int j = 0; j < LENGTH; j++)
					sum += p[j] * value(v, (size_t)((head * d + x) * LENGTH + j));
				want(o, (size_t)((head * LENGTH + i) * d + x), 0.5 * sum);
			}
		}
	tolerance(o, 0.05, 0);
	LAUNCH(s, "fp8_attention_kernel",
	       CONFIG(.grid = {(uint32_t)cdiv(LENGTH, t->m), (uint32_t)h.heads}, .num_warps = t->warps,
		      .num_stages = t->stages),
	       ptr(q), ptr(k), ptr(v), ptr(o), tl_float(scale), tl_float(0.5), tl_int(LENGTH), tl_int(d), tl_int(t->m),
	       tl_int(t->n), tl_bool(causal));
	case_end(s);
}

/* --- gradients ----------------------------------------------------------------------------------------------- */

static void delta(struct suite *s, tl_dtype type, int n, int d, int block, bool sums)
{
	if (!case_begin(s, file, "delta %s %dx%d by %d%s", tl_dtype_name(type), n, d, block, sums ? " sums" : ""))
		return;
	size_t len = (size_t)(n * d);
	struct array *o = in(s, "o", type, len), *g = in(s, "do", type, len), *to = out(s, "delta", TL_F32, (size_t)n),
		     *zeros = out(s, "sums", TL_F32, len);
	for (int i = 0; i < n; i++) {
		double sum = 0;
		for (int x = 0; x < d; x++)
			sum += value(o, (size_t)(i * d + x)) * value(g, (size_t)(i * d + x));
		want(to, (size_t)i, sum);
	}
	for (size_t i = 0; sums && i < len; i++)
		want(zeros, i, 0);
	tolerance(to, d * 0x1p-23, 0);
	LAUNCH(s, "delta_kernel", CONFIG(.grid = {(uint32_t)cdiv(n, block)}), ptr(o), ptr(g), ptr(to),
	       sums ? ptr(zeros) : tl_none(), tl_int(n), tl_int(d), tl_int(block));
	case_end(s);
}

static void scaled(struct suite *s, tl_dtype type, int n)
{
	if (!case_begin(s, file, "scaled %s %d", tl_dtype_name(type), n))
		return;
	struct array *x = in(s, "x", TL_F32, (size_t)n), *o = out(s, "out", type, (size_t)n);
	for (int i = 0; i < n; i++)
		want(o, (size_t)i, value(x, (size_t)i) * 0.125);
	LAUNCH(s, "scaled_kernel", CONFIG(.grid = {(uint32_t)cdiv(n, 1024)}), ptr(x), ptr(o), tl_float(0.125),
	       tl_int(n), tl_int(1024));
	case_end(s);
}

struct gradients {
	double *q, *k, *v;
	double most_q, most_k, most_v; /* of the sums of the terms' magnitudes */
};

static void add(double *to, double *terms, size_t at, double term)
{
	to[at] += term;
	terms[at] += fabs(term);
}

static double largest(const double *x, size_t len)
{
	double most = 0;
	for (size_t i = 0; i < len; i++)
		most = fmax(most, x[i]);
	return most;
}

/* Without the last factor of dq and dk, the scale. */
static struct gradients gradients(const struct heads *h, const struct array *q, const struct array *k,
				  const struct array *v, const struct array *g, struct array *lse, struct array *del)
{
	int kv = h->heads / h->share;
	size_t nq = (size_t)(rows(h) * h->heads * h->d), nk = (size_t)(rows(h) * kv * h->d);
	struct gradients r = {calloc(nq, 8), calloc(nk, 8), calloc(nk, 8), 0, 0, 0};
	double *tq = calloc(nq, 8), *tk = calloc(nk, 8), *tv = calloc(nk, 8), p[LENGTH], dp[LENGTH];
	for (int b = 0; b < h->batch; b++)
		for (int head = 0; head < h->heads; head++)
			for (int i = 0; i < length_of(h, b); i++) {
				size_t line = row(h, h->heads, b, head, i), at = line * (size_t)h->d;
				double sum = 0;
				set(lse, line, probabilities(h, q, k, 1 / sqrt(h->d), b, head, i, p));
				for (int j = 0; j < length_of(h, b); j++) {
					size_t key = row(h, kv, b, head / h->share, j) * (size_t)h->d;
					dp[j] = 0;
					for (int x = 0; x < h->d && p[j]; x++)
						dp[j] += value(g, at + (size_t)x) * value(v, key + (size_t)x);
					sum += p[j] * dp[j];
				}
				set(del, line, sum);
				for (int j = 0; j < length_of(h, b); j++) {
					size_t key = row(h, kv, b, head / h->share, j) * (size_t)h->d;
					for (int x = 0; x < h->d && p[j]; x++) {
						double ds = p[j] * (dp[j] - sum);
						add(r.v, tv, key + (size_t)x, p[j] * value(g, at + (size_t)x));
						add(r.k, tk, key + (size_t)x, ds * value(q, at + (size_t)x));
						add(r.q, tq, at + (size_t)x, ds * value(k, key + (size_t)x));
					}
				}
			}
	r.most_q = largest(tq, nq), r.most_k = largest(tk, nk), r.most_v = largest(tv, nk);
	free(tq), free(tk), free(tv);
	return r;
}

/* `keys`: dk and dv, and with `sums` those of dq; else dq. */
static void backward(struct suite *s, const struct heads *h, const struct tiles *t, bool keys, bool sums)
{
	char text[120];
	if (!case_begin(s, file, "gradient of %s%s %s", keys ? "keys" : "queries", sums ? " and sums" : "",
			heads_name(text, h, t)))
		return;
	int kv = h->heads / h->share;
	size_t nq = (size_t)(rows(h) * h->heads * h->d), nk = (size_t)(rows(h) * kv * h->d);
	struct array *q = in(s, "q", h->type, nq), *k = in(s, "k", h->type, nk), *v = in(s, "v", h->type, nk),
		     *g = in(s, "do", h->type, nq), *lse = in(s, "lse", TL_F32, nq / (size_t)h->d),
		     *del = in(s, "delta", TL_F32, nq / (size_t)h->d), *dq = out(s, "dq", h->type, nq),
		     *dk = out(s, "dk", h->type, nk), *dv = out(s, "dv", h->type, nk),
		     *sum = inout(s, "sums", TL_F32, nq);
	double scale = 1 / sqrt(h->d), unit = 4 * unit_roundoff(h->type);
	fill(q, -3, 3), fill(k, -3, 3), fill(sum, 0, 0);
	struct gradients r = gradients(h, q, k, v, g, lse, del);
	for (size_t i = 0; i < nk && keys; i++)
		want(dk, i, r.k[i] * scale), want(dv, i, r.v[i]);
	for (size_t i = 0; i < nq; i++)
		if (!keys)
			want(dq, i, r.q[i] * scale);
		else if (sums)
			want(sum, i, r.q[i]);
	tolerance(dq, unit * r.most_q * scale, 0), tolerance(dk, unit * r.most_k * scale, 0);
	tolerance(dv, unit * r.most_v, 0), tolerance(sum, unit * r.most_q, 0);
	free(r.q), free(r.k), free(r.v);
	tl_arg start = start_of(s, h);
	tl_config *config = CONFIG(.grid = {(uint32_t)cdiv(LENGTH, keys ? t->n : t->m),
					    (uint32_t)(keys ? kv : h->heads), (uint32_t)h->batch},
				   .num_warps = t->warps, .num_stages = t->stages);
#define SHAPE                                                                                                          \
	tl_float(scale), tl_int(LENGTH), tl_int(h->heads), tl_int(h->share), tl_int(h->d), tl_int(t->m), tl_int(t->n), \
		tl_bool(h->causal)
	if (keys)
		LAUNCH(s, "gradient_of_keys_kernel", config, ptr(q), ptr(k), ptr(v), ptr(g), ptr(lse), ptr(del),
		       ptr(dk), ptr(dv), sums ? ptr(sum) : tl_none(), start, SHAPE);
	else
		LAUNCH(s, "gradient_of_queries_kernel", config, ptr(q), ptr(k), ptr(v), ptr(g), ptr(lse), ptr(del),
		       ptr(dq), start, SHAPE);
	case_end(s);
}

/* --- decoding ------------------------------------------------------------------------------------------------ */

enum { SEQUENCES = 3, KV_HEADS = 2, PAGE = 64, MAX_PAGES = 6, PAGES = SEQUENCES * MAX_PAGES };

static const int lengths[SEQUENCES] = {17, 300, MAX_PAGES *PAGE};

struct decoding {
	struct array *q, *k, *v, *table, *o, *part, *state;
	int group, d, splits;
	double scale;
};

/* A sequence's query `member` of a group: what each program leaves, and the result. Members from `group` on are 0. */
static void decode_member(const struct decoding *c, int sequence, int head, int member)
{
	bool real = member < c->group;
	int pages = cdiv(lengths[sequence], PAGE), share = cdiv(pages, c->splits),
	    each = (sequence * KV_HEADS + head) * c->splits;
	size_t at = (size_t)((sequence * KV_HEADS * c->group + head * c->group + member) * c->d);
	double scores[MAX_PAGES * PAGE], most = -INFINITY, all = 0;
	size_t keys[MAX_PAGES * PAGE];
	for (int i = 0; i < lengths[sequence]; i++) {
		int64_t page = value_int(c->table, (size_t)(sequence * MAX_PAGES + i / PAGE));
		keys[i] = (size_t)((page * PAGE + i % PAGE) * KV_HEADS + head) * (size_t)c->d;
		scores[i] = 0;
		for (int x = 0; x < c->d && real; x++)
			scores[i] += value(c->q, at + (size_t)x) * value(c->k, keys[i] + (size_t)x) * c->scale / log(2);
		most = fmax(most, scores[i]);
	}
	for (int i = 0; i < lengths[sequence]; i++)
		all += exp2(scores[i] - most);
	for (int split = 0; split < c->splits && c->splits > 1; split++) {
		int first = split * share * PAGE, last = (int)fmin(first + share * PAGE, lengths[sequence]);
		double top = -INFINITY, total = 0;
		for (int i = first; i < last; i++)
			top = fmax(top, scores[i]);
		for (int i = first; i < last; i++)
			total += exp2(scores[i] - top);
		want(c->state, (size_t)((each + split) * 32 + member), top);
		want(c->state, (size_t)((each + split) * 32 + 16 + member), total);
		for (int x = 0; x < c->d && real; x++) {
			double sum = 0;
			for (int i = first; i < last; i++)
				sum += exp2(scores[i] - top) * value(c->v, keys[i] + (size_t)x);
			want(c->part, (size_t)(((each + split) * 16 + member) * c->d + x), sum);
		}
	}
	for (int x = 0; x < c->d && real; x++) {
		double sum = 0;
		for (int i = 0; i < lengths[sequence]; i++)
			sum += exp2(scores[i] - most) / all * value(c->v, keys[i] + (size_t)x);
		want(c->o, at + (size_t)x, sum);
	}
}

static void split_decode(struct suite *s, tl_dtype t, int d, int group, int splits, int warps, int stages)
{
	if (!case_begin(s, file, "split decode %s d=%d group=%d splits=%d warps=%d stages=%d", tl_dtype_name(t), d,
			group, splits, warps, stages))
		return;
	size_t nq = (size_t)(SEQUENCES * KV_HEADS * group * d), nk = (size_t)(PAGES * PAGE * KV_HEADS * d);
	int each = SEQUENCES * KV_HEADS * splits;
	struct array *q = in(s, "q", t, nq), *k = in(s, "k", t, nk), *v = in(s, "v", t, nk),
		     *table = in(s, "table", TL_I32, PAGES), *length = in(s, "length", TL_I32, SEQUENCES),
		     *o = out(s, "o", t, nq), *part = out(s, "part", TL_F32, (size_t)(each * 16 * d)),
		     *state = out(s, "state", TL_F32, (size_t)(each * 32)),
		     *count = inout(s, "count", TL_I32, SEQUENCES * KV_HEADS);
	fill(q, -3, 3), fill(k, -3, 3), fill(count, 0, 0);
	for (int i = 0; i < PAGES; i++)
		set(table, (size_t)i, i * 7 % PAGES); /* each once */
	for (int i = 0; i < SEQUENCES; i++)
		set(length, (size_t)i, lengths[i]);
	for (int i = 0; i < SEQUENCES * KV_HEADS; i++)
		want(count, (size_t)i, 0);
	struct decoding c = {q, k, v, table, o, part, state, group, d, splits, 1 / sqrt(d)};
	for (int i = 0; i < SEQUENCES * KV_HEADS * 16; i++)
		decode_member(&c, i / 16 / KV_HEADS, i / 16 % KV_HEADS, i % 16);
	tolerance(o, 4 * unit_roundoff(t), 0);
	tolerance(part, 32 * unit_roundoff(t), 0);
	tolerance(state, 1e-4, 1e-5);
	LAUNCH(s, "split_decode_kernel",
	       CONFIG(.grid = {SEQUENCES, KV_HEADS, (uint32_t)splits}, .num_warps = warps, .num_stages = stages),
	       ptr(q), ptr(k), ptr(v), ptr(table), ptr(length), ptr(o), ptr(part), ptr(state), ptr(count),
	       tl_float(c.scale), tl_int(KV_HEADS), tl_int(MAX_PAGES), tl_int(d), tl_int(group), tl_int(PAGE),
	       tl_int(splits));
	case_end(s);
}

void theme_attention(struct suite *s)
{
	static const struct heads all[] = {
		{1, 2, 1, 64, true, false, TL_F16},    {1, 2, 1, 128, false, false, TL_BF16},
		{2, 4, 2, 64, false, false, TL_F16},   {1, 4, 4, 128, true, false, TL_F16},
		{BATCH, 2, 2, 64, true, true, TL_F16}, {BATCH, 2, 1, 64, false, true, TL_BF16},
		{1, 1, 1, 256, true, false, TL_F16}};
	static const struct tiles wide[] = {{64, 64, 4, 2}, {128, 64, 8, 3}, {128, 128, 8, 2}, {128, 32, 4, 3}},
				  few[] = {{64, 32, 4, 2}, {128, 64, 8, 2}}, /* of 256 dimensions */
		keys[] = {{64, 64, 4, 2}, {32, 128, 8, 3}, {64, 128, 8, 2}, {128, 64, 4, 1}},
				  few_keys[] = {{32, 64, 8, 2}, {64, 64, 8, 1}},
				  few_queries[] = {{64, 32, 4, 2}, {128, 64, 8, 1}};
	for (int i = 0; i < COUNT(all); i++)
		for (int k = 0; k < 2; k++) {
			const struct heads *h = &all[i];
			forward(s, h, h->d > 128 ? &few[k] : &wide[(i + 2 * k) % COUNT(wide)]);
			backward(s, h, h->d > 128 ? &few_keys[k] : &keys[(i + 2 * k) % COUNT(keys)], true, (i + k) % 2);
			backward(s, h, h->d > 128 ? &few_queries[k] : &wide[(i + 1 + 2 * k) % COUNT(wide)], false,
				 false);
		}
	/* tiles that fill shared memory, and products beside each other */
	backward(s, &all[6], &(struct tiles){64, 64, 8, 2}, true, false);
	backward(s, &all[3], &(struct tiles){128, 64, 8, 2}, true, false);
	for (int sums = 0; sums < 2; sums++)
		backward(s, &all[1], &(struct tiles){64, 128, 8, 2}, true, sums);
	for (int k = 0; k < COUNT(wide); k++)
		fp8(s, k % 3 ? TL_F8E4M3 : TL_F8E5M2, 64 << k % 2, k / 2, &wide[k]);
	static const struct tiles wider = {64, 128, 4, 2}; /* than high, on the diagonal */
	forward(s, &all[0], &wider), forward(s, &all[4], &wider), forward(s, &all[3], &wider);
	backward(s, &all[0], &wider, false, false), backward(s, &all[4], &wider, false, false);
	fp8(s, TL_F8E4M3, 64, true, &wider);
	delta(s, TL_F16, 300, 64, 64, true), delta(s, TL_BF16, 33, 256, 16, false);
	scaled(s, TL_F16, 3000), scaled(s, TL_BF16, 1024);
	split_decode(s, TL_F16, 128, 8, 1, 4, 2), split_decode(s, TL_F16, 128, 8, 4, 4, 3),
		split_decode(s, TL_BF16, 64, 4, 8, 8, 2), split_decode(s, TL_F16, 64, 16, 2, 2, 3);
}
