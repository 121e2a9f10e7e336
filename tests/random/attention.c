/* test-random --kind attention: attentions as kernels are found: how the loop over keys ends, which keys are hidden and
 * how, where lengths come from, how keys and values are loaded, what is added to scores.
 *
 * Queries, keys and values are small integers; results are compared with sums in double, within what probabilities are
 * rounded to. Every query has a key. */
#include <math.h>

#include "random.h"
#include "../run/suite.h"

enum { MOST_HEADS = 3 };

/* Which keys a query sees, and how far the loop goes. The last one is the query's own number, plus `behind`. */
enum keys {
	K_ALL,
	K_HIDDEN, /* up to the last one; the loop goes over all */
	K_BOUND,  /* the loop ends behind the tile's last query */
	K_SPLIT,  /* a loop over the keys that all of the tile's queries see, and one over the rest */
	K_CHOICE, /* keys are hidden under a condition */
	K_WINDOW, /* so many last ones; the loop goes over all */
	K_INSIDE, /* the same; it goes over the tiles with such keys */
	KEYS
};
enum lengths {
	L_ARGUMENTS,
	L_LOADED, /* each head has so many keys, which memory tells */
	L_PACKED, /* heads are sequences, one behind the other; memory tells where each begins */
	LENGTHS
};
enum added {
	A_NOTHING,
	A_BIAS,      /* a number for each query and key, of the type of queries */
	A_WIDE_BIAS, /* fp32 */
	A_BYTES,     /* int8: 0 hides a key */
	A_KEYS,      /* a number for each key */
	A_DISTANCE,  /* a slope times the distance */
	ADDED
};
enum loops { W_STARTS, W_NUMBERS, W_WHILE, WALKS };

struct attention {
	enum keys keys;
	enum lengths lengths;
	enum operands operands;
	enum added added;
	enum loops loop;
	tl_dtype type;
	int d, width; /* of a tile of heads, and of those */
	int bm, bn, warps, stages, blocks, heads, share;
	int m, n;                                                         /* of L_PACKED: of the longest */
	int queries[MOST_HEADS], lens[MOST_HEADS], start[MOST_HEADS + 1]; /* of each head */
	int window;
	bool rows;     /* a tensor's rows are positions, with all heads in each */
	bool turned;   /* keys are loaded as rows, and transposed */
	bool base2;    /* by exp2 */
	bool infinite; /* hidden keys have -inf, else -1e6 */
	bool sum;      /* hidden keys are so by a sum, else by a choice */
	bool apart;    /* the product is added by itself */
	bool even;     /* nothing masks keys: their number is a multiple of BN */
	bool asked;    /* for a producer */
	bool literal;  /* numbers of queries and keys */
	bool early;    /* scales queries */
	int programs;  /* that work on several tiles each; 0: a program has one */
	bool flatten;
	struct array *q, *k, *v, *out, *sums, *extra, *lengths_at;
};

static double scale_of(const struct attention *t)
{
	return t->d <= 32 ? 0.25 : 0.125;
}

static bool is_window(const struct attention *t)
{
	return t->keys >= K_WINDOW;
}

/* Behind a query's number, its last key. */
static int behind(const struct attention *t, int head)
{
	return t->lens[head] - t->queries[head];
}

static void make_attention(struct attention *t)
{
	memset(t, 0, sizeof *t);
	t->keys = random_below(KEYS);
	t->lengths = chance(50) ? L_ARGUMENTS : random_below(LENGTHS);
	t->operands = chance(50) ? P_POINTERS : random_below(OPERANDS);
	t->added = chance(50) ? A_NOTHING : random_below(ADDED);
	t->loop = chance(60) ? W_STARTS : random_below(WALKS);
	t->type = chance(60) ? TL_F16 : TL_BF16;
	t->d = 16 << random_below(4);
	t->width = chance(75) ? t->d : t->d - 8 * (int)random_int(0, t->d / 16 - 1) - 8 * chance(70);
	t->bm = 16 << random_below(4);
	t->bn = 16 << random_below(4);
	t->warps = chance(80) ? 4 << random_below(2) : 1 << random_below(3);
	if (t->warps == 8 && chance(60))
		t->bm = 128;
	t->stages = (int)random_int(1, 4);
	t->blocks = chance(70) ? 0 : (int)random_int(1, 3);
	t->share = (int)random_int(1, 2);
	t->heads = t->lengths == L_PACKED ? MOST_HEADS
					  : t->share * (chance(50) ? 1 : (int)random_int(1, MOST_HEADS / t->share));
	if (t->lengths == L_PACKED)
		t->share = 1;
	t->rows = chance(30) && t->lengths != L_PACKED;
	t->turned = chance(50) || t->operands >= P_BLOCKS;
	t->base2 = chance(50);
	t->sum = chance(30);
	t->apart = chance(40);
	t->even = chance(30) && t->lengths == L_ARGUMENTS;
	t->asked = chance(30);
	t->literal = chance(15) && t->lengths == L_ARGUMENTS;
	t->early = chance(30);
	t->programs = chance(75) || t->lengths == L_PACKED ? 0 : (int)random_int(1, 4);
	t->flatten = chance(50);
	t->m = (int)random_int(1, 3 * t->bm < 200 ? 3 * t->bm : 200);
	t->n = t->m + (chance(50) ? 0 : (int)random_int(0, 100));
	if (t->even)
		t->n = (t->n + t->bn - 1) / t->bn * t->bn;
	t->window = (int)random_int(1, 100);
	t->infinite = chance(50) && !is_window(t) && t->added != A_BYTES;
	for (int h = 0; h < t->heads; h++) {
		t->lens[h] = t->lengths == L_LOADED   ? (int)random_int(t->m, t->n)
			     : t->lengths == L_PACKED ? (int)random_int(h == 1 ? 0 : 1, t->m)
						      : t->n;
		t->queries[h] = t->lengths == L_PACKED ? t->lens[h] : t->m;
		t->start[h + 1] = t->start[h] + t->lens[h];
	}
}

/* --- text ---------------------------------------------------------------------------------------------------- */

static void print_lengths(FILE *f, const struct attention *t)
{
	if (t->literal)
		put_line(f, 1, "m = %d\n    n = %d", t->m, t->n);
	if (t->lengths == L_LOADED)
		put_line(f, 1, "n = tl.load(lengths_ptr + head)");
	if (t->lengths == L_PACKED) {
		put_line(f, 1, "first = tl.load(lengths_ptr + head)");
		put_line(f, 1, "n = tl.load(lengths_ptr + head + 1) - first");
		put_line(f, 1, "m = n");
		put_line(f, 1, "if tile * %d >= m:\n        return", t->bm);
		put_line(f, 1, "q_at = first * %d\n    k_at = first * %d", t->width, t->width);
	} else if (t->rows) {
		put_line(f, 1, "q_at = head * %d\n    k_at = head // %d * %d", t->width, t->share, t->width);
	} else {
		put_line(f, 1, "q_at = head * q_size\n    k_at = head // %d * k_size", t->share);
	}
}

static void print_handles(FILE *f, const struct attention *t, const char *lo)
{
	int step = t->rows ? t->heads / t->share * t->width : t->width;
	static const char names[] = {'k', 'v'};
	for (int i = 0; i < 2; i++) {
		char c = names[i];
		if (t->operands == P_DESCRIPTORS)
			put_line(f, 1, "%cs = tl.make_tensor_descriptor(%c_ptr + k_at, [n, %d], [%d, 1], [%d, %d])", c,
				 c, t->width, step, t->bn, t->d);
		else if (t->operands == P_BLOCKS)
			put_line(f, 1,
				 "%cs = tl.make_block_ptr(%c_ptr + k_at, shape=(n, %d), strides=(%d, 1), offsets=(%s, "
				 "0), "
				 "block_shape=(%d, %d), order=(1, 0))",
				 c, c, t->width, step, lo, t->bn, t->d);
		else if (t->operands == P_CARRIED && i == 0 && !t->turned)
			put_line(f, 1, "ks = k_ptr + k_at + (%s + block)[None, :] * %d + d[:, None]", lo, step);
		else if (t->operands == P_CARRIED)
			put_line(f, 1, "%cs = %c_ptr + k_at + (%s + block)[:, None] * %d + d[None, :]", c, c, lo, step);
	}
}

/* The tile of keys, or of values, with its transpose if `turned`. */
static void print_load(FILE *f, const struct attention *t, int depth, char c, bool whole)
{
	int step = t->rows ? t->heads / t->share * t->width : t->width;
	bool columns = c == 'k' && !t->turned;
	const char *turn = c == 'k' && t->turned ? t->base2 ? ".T" : ".trans()" : "";
	bool rows = !t->even && !whole, narrow = t->width < t->d;
	const char *row = columns ? "(j < n)[None, :]" : "(j < n)[:, None]";
	char within[40] = "", mask[100] = "";
	if (narrow)
		snprintf(within, sizeof within, "(d < %d)[%s]", t->width, columns ? ":, None" : "None, :");
	if (rows || narrow)
		snprintf(mask, sizeof mask, ", mask=%s%s%s, other=0.0", rows ? row : "", rows && narrow ? " & " : "",
			 within);
	if (t->operands == P_DESCRIPTORS)
		put_line(f, depth, "%c = %cs.load([start, 0])%s", c, c, turn);
	else if (t->operands == P_BLOCKS)
		put_line(f, depth, "%c = tl.load(%cs%s)%s", c, c,
			 narrow ? ", boundary_check=(0, 1), padding_option=\"zero\""
			 : rows ? ", boundary_check=(0,), padding_option=\"zero\""
				: "",
			 turn);
	else if (t->operands == P_CARRIED)
		put_line(f, depth, "%c = tl.load(%cs%s)%s", c, c, mask, turn);
	else if (columns)
		put_line(f, depth, "%c = tl.load(%c_ptr + k_at + j[None, :] * %d + d[:, None]%s)", c, c, step, mask);
	else
		put_line(f, depth, "%c = tl.load(%c_ptr + k_at + j[:, None] * %d + d[None, :]%s)%s", c, c, step, mask,
			 turn);
}

static void print_added(FILE *f, const struct attention *t, int depth)
{
	const char *to = "i[:, None] * most + j[None, :], mask=(i < m)[:, None] & (j < n)[None, :], other=0";
	switch (t->added) {
	case A_BIAS:
	case A_WIDE_BIAS: put_line(f, depth, "s += tl.load(extra_ptr + %s)", to); return;
	case A_BYTES: put_line(f, depth, "s = tl.where(tl.load(extra_ptr + %s) != 0, s, -1e6)", to); return;
	case A_KEYS: put_line(f, depth, "s += tl.load(extra_ptr + j, mask=j < n, other=0.0)[None, :]"); return;
	case A_DISTANCE: put_line(f, depth, "s += (j[None, :] - i[:, None]) * 0.125"); return;
	default: return;
	}
}

static void print_hidden(FILE *f, const struct attention *t, int depth, const char *seen)
{
	const char *value = t->infinite ? "float(\"-inf\")" : "-1e6";
	if (t->sum)
		put_line(f, depth, "s += tl.where(%s, 0.0, %s)", seen, value);
	else
		put_line(f, depth, "s = tl.where(%s, s, %s)", seen, value);
}

/* `whole`: a loop over keys that all of the tile's queries see. */
static void print_loop(FILE *f, const struct attention *t, const char *lo, const char *hi, bool whole)
{
	const char *asked = t->asked ? ", warp_specialize=True" : "", *e = t->base2 ? "tl.exp2" : "tl.exp";
	if (t->loop == W_STARTS) {
		put_line(f, 1, "for start in tl.range(%s, %s, %d%s):", lo, hi, t->bn, asked);
	} else if (t->loop == W_NUMBERS) {
		put_line(f, 1, "for number in tl.range(%s // %d, tl.cdiv(%s, %d)%s):", lo, t->bn, hi, t->bn, asked);
		put_line(f, 2, "start = number * %d", t->bn);
	} else {
		put_line(f, 1, "start = %s", lo);
		put_line(f, 1, "while start < %s:", hi);
	}
	put_line(f, 2, "j = start + block");
	print_load(f, t, 2, 'k', whole);
	put_line(f, 2, "s = tl.dot(q, k)%s", t->early ? "" : " * scale");
	print_added(f, t, 2);
	const char *causal = "j[None, :] <= i[:, None] + behind";
	if (!t->even && !whole && (t->keys == K_ALL || t->keys == K_CHOICE))
		print_hidden(f, t, 2, "(j < n)[None, :]");
	if (t->keys == K_CHOICE) {
		put_line(f, 2, "if start + %d > tile * %d + behind:", t->bn - 1, t->bm);
		print_hidden(f, t, 3, causal);
	} else if (is_window(t)) {
		print_hidden(f, t, 2,
			     "(j[None, :] <= i[:, None] + behind) & (i[:, None] + behind - j[None, :] < window)");
	} else if (t->keys != K_ALL && !whole) {
		print_hidden(f, t, 2, causal);
	}
	print_load(f, t, 2, 'v', whole);
	put_line(f, 2, "now = tl.maximum(largest, tl.max(s, 1))");
	put_line(f, 2, "p = %s(%s)", e, t->base2 ? "(s - now[:, None]) * 1.4426950408889634" : "s - now[:, None]");
	put_line(f, 2, "shrink = %s(%s)", e, t->base2 ? "(largest - now) * 1.4426950408889634" : "largest - now");
	put_line(f, 2, "total = total * shrink + tl.sum(p, 1)");
	put_line(f, 2,
		 t->apart ? "acc = acc * shrink[:, None] + tl.dot(p.to(v.dtype), v)"
			  : "acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])");
	put_line(f, 2, "largest = now");
	if (t->operands == P_BLOCKS)
		put_line(f, 2, "ks = tl.advance(ks, (%d, 0))\n        vs = tl.advance(vs, (%d, 0))", t->bn, t->bn);
	if (t->operands == P_CARRIED)
		for (int i = 0; i < 2; i++)
			put_line(f, 2, "%cs += %d", "kv"[i],
				 t -> bn *(t->rows ? t->heads / t->share * t->width : t->width));
	if (t->loop == W_WHILE)
		put_line(f, 2, "start += %d", t->bn);
}

static char *attention_text(const struct attention *t)
{
	char inside[64] = "(i < m)[:, None]";
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	int step = t->rows ? t->heads * t->width : t->width;
	static const char names[] = "q_ptr, k_ptr, v_ptr, out_ptr, sums_ptr, extra_ptr, lengths_ptr, scale, m, n, "
				    "q_size, k_size, most, window";
	fprintf(f, "import triton\nimport triton.language as tl\n\n@triton.jit\ndef %s%s):\n",
		t->programs ? "attend(tile, head, " : "kernel(", names);
	if (!t->programs)
		put_line(f, 1, "tile = tl.program_id(0)\n    head = tl.program_id(1)");
	print_lengths(f, t);
	put_line(f, 1, "behind = n - m");
	put_line(f, 1, "i = tile * %d + tl.arange(0, %d)\n    block = tl.arange(0, %d)\n    d = tl.arange(0, %d)",
		 t->bm, t->bm, t->bn, t->d);
	if (t->width < t->d)
		snprintf(inside, sizeof inside, "(i < m)[:, None] & (d < %d)[None, :]", t->width);
	put_line(f, 1, "q = tl.load(q_ptr + q_at + i[:, None] * %d + d[None, :], mask=%s, other=0.0)", step, inside);
	if (t->early)
		put_line(f, 1, "q = (q * scale).to(q.dtype)");
	put_line(f, 1, "largest = tl.full((%d,), float(\"-inf\"), tl.float32)", t->bm);
	put_line(f, 1, "total = tl.zeros((%d,), tl.float32)\n    acc = tl.zeros((%d, %d), tl.float32)", t->bm, t->bm,
		 t->d);
	const char *lo = "0";
	if (t->keys == K_INSIDE) {
		lo = "lo";
		put_line(f, 1, "lo = tl.maximum(tile * %d + behind - window + 1, 0) // %d * %d", t->bm, t->bn, t->bn);
	}
	print_handles(f, t, lo);
	bool bound = t->keys == K_BOUND || t->keys == K_SPLIT || t->keys == K_INSIDE;
	if (bound)
		put_line(f, 1, "hi = tl.minimum((tile + 1) * %d + behind, n)", t->bm);
	if (t->keys == K_SPLIT) {
		put_line(f, 1, "clear = (tile * %d + behind) // %d * %d", t->bm, t->bn, t->bn);
		print_loop(f, t, "0", "clear", true);
		lo = "clear";
	}
	print_loop(f, t, lo, bound ? "hi" : "n", false);
	put_line(f, 1,
		 "tl.store(out_ptr + q_at + i[:, None] * %d + d[None, :], (acc / total[:, None]).to(q.dtype), "
		 "mask=%s)",
		 step, inside);
	put_line(f, 1, "tl.store(sums_ptr + head * %d + i, largest + tl.log(total), mask=i < m)", t->m);
	if (t->programs) {
		fprintf(f, "\n@triton.jit\ndef kernel(%s):\n    tiles = tl.cdiv(m, %d)\n", names, t->bm);
		put_line(f, 1, "for number in tl.range(tl.program_id(0), tiles * %d, %d%s):", t->heads, t->programs,
			 t->flatten ? ", flatten=True" : "");
		put_line(f, 2, "attend(number %% tiles, number // tiles, %s)", names);
	}
	fclose(f);
	return text;
}

/* --- numbers ------------------------------------------------------------------------------------------------- */

static size_t row_of(const struct attention *t, bool keys, int head, int i)
{
	int heads = keys ? t->heads / t->share : t->heads, length = keys ? t->n : t->m;
	head = keys ? head / t->share : head;
	if (t->lengths == L_PACKED)
		return (size_t)(t->start[head] + i) * (size_t)t->width;
	return (size_t)(t->rows ? i * heads + head : head * length + i) * (size_t)t->width;
}

/* Minus infinity: hidden. */
static double score_of(const struct attention *t, int head, int i, int j)
{
	int last = i + behind(t, head);
	double sum = 0;
	for (int x = 0; x < t->width; x++)
		sum += value(t->q, row_of(t, false, head, i) + (size_t)x) *
		       value(t->k, row_of(t, true, head, j) + (size_t)x);
	sum *= scale_of(t);
	if ((t->keys != K_ALL && j > last) || (is_window(t) && last - j >= t->window))
		return -INFINITY;
	switch (t->added) {
	case A_BIAS:
	case A_WIDE_BIAS: return sum + value(t->extra, (size_t)(i * t->n + j));
	case A_BYTES: return value(t->extra, (size_t)(i * t->n + j)) != 0 ? sum : -INFINITY;
	case A_KEYS: return sum + value(t->extra, (size_t)j);
	case A_DISTANCE: return sum + 0.125 * (j - i);
	default: return sum;
	}
}

static void evaluate_row(const struct attention *t, int head, int i, double *p)
{
	double most = -INFINITY, total = 0;
	int n = t->lens[head];
	for (int j = 0; j < n; j++)
		most = fmax(most, p[j] = score_of(t, head, i, j));
	for (int j = 0; j < n; j++)
		total += p[j] = exp(p[j] - most);
	for (int x = 0; x < t->width; x++) {
		double sum = 0;
		for (int j = 0; j < n; j++)
			sum += p[j] * value(t->v, row_of(t, true, head, j) + (size_t)x);
		want(t->out, row_of(t, false, head, i) + (size_t)x, sum / total);
	}
	want(t->sums, (size_t)(head * t->m + i), most + log(total));
}

/* What hides keys, or is added to their scores. */
static struct array *make_extra(struct suite *s, const struct attention *t)
{
	size_t all = (size_t)t->m * (size_t)t->n;
	struct array *x = in(s, "extra", t->added == A_BIAS ? t->type : t->added == A_BYTES ? TL_I8 : TL_F32, all);
	fill_whole(x, 2);
	for (int i = 0; i < t->m && t->added == A_BYTES; i++)
		for (int h = 0; h < t->heads; h++) /* each query's last key is seen */
			if (i < t->queries[h])
				set(x, (size_t)(i * t->n + i + behind(t, h)), 1);
	return x;
}

static struct array *make_lengths(struct suite *s, const struct attention *t)
{
	struct array *x = in(s, "lengths", TL_I32, MOST_HEADS + 1);
	for (int h = 0; h <= t->heads; h++)
		set_int(x, (size_t)h, t->lengths == L_PACKED ? t->start[h] : t->lens[h < t->heads ? h : 0]);
	return x;
}

static void attention_case(struct suite *s, int64_t seed, const char *left_out)
{
	(void)left_out; /* nothing is left out of these */
	if (!case_begin(s, NULL, "%lld.", (long long)seed))
		return;
	struct attention made, *t = &made;
	random_seed((uint64_t)seed);
	make_attention(t);
	int kv = t->heads / t->share, packed = t->start[t->heads];
	size_t queries = (size_t)(t->lengths == L_PACKED ? packed : t->heads * t->m) * (size_t)t->width;
	size_t keys = (size_t)(t->lengths == L_PACKED ? packed : kv * t->n) * (size_t)t->width;
	t->q = in(s, "q", t->type, queries);
	t->k = in(s, "k", t->type, keys);
	t->v = in(s, "v", t->type, keys);
	t->out = out(s, "out", t->type, queries);
	t->sums = out(s, "sums", TL_F32, (size_t)(t->heads * t->m));
	fill_whole(t->q, 2), fill_whole(t->k, 2), fill_whole(t->v, 2);
	t->extra = make_extra(s, t);
	t->lengths_at = make_lengths(s, t);
	double *p = malloc(sizeof *p * (size_t)t->n);
	for (int h = 0; h < t->heads; h++)
		for (int i = 0; i < t->queries[h]; i++)
			evaluate_row(t, h, i, p);
	free(p);
	tolerance(t->out, 12 * unit_roundoff(t->type), 0);
	tolerance(t->sums, 0.002, 0);
	char *text = attention_text(t);
	tl_arg args[] = {ptr(t->q),
			 ptr(t->k),
			 ptr(t->v),
			 ptr(t->out),
			 ptr(t->sums),
			 ptr(t->extra),
			 ptr(t->lengths_at),
			 tl_float(scale_of(t)),
			 tl_int(t->m),
			 tl_int(t->n),
			 tl_int(t->m * t->width),
			 tl_int(t->n * t->width),
			 tl_int(t->n),
			 tl_int(t->window)};
	uint32_t tiles = (uint32_t)((t->m + t->bm - 1) / t->bm), programs = (uint32_t)t->programs;
	tl_config config = {.grid = {programs ? programs : tiles, programs ? 1 : (uint32_t)t->heads},
			    .num_warps = t->warps,
			    .num_stages = t->stages,
			    .max_ctas = t->blocks};
	run_text(s, text, &config, args, COUNT(args), "max_ctas %d, %d heads, m = %d, n = %d, window = %d", t->blocks,
		 t->heads, t->m, t->n, t->window);
}

void theme_random_attention(struct suite *s)
{
	each_seed(s, "attention", 60, attention_case);
}
