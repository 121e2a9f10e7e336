/* test-random --kind weights: products by weights that a loop makes operands of: numbers of 8 and 4 bytes that are
 * converted, 4 and 2 bits of words and bytes, with scales and zero points of groups; and the other operand, too.
 * Tiles are mostly so large that a block has a multiprocessor for itself.
 *
 * All numbers are small integers and powers of two; sums are exact in every order. */
#include "random.h"
#include "../run/suite.h"
#include "../run/themes.h"

enum storage {
	W_INT8,
	W_UINT8,
	W_FP8,
	W_FP32,
	W_SAME,
	W_WORDS, /* eight of 4 bits along k in an int32 */
	W_BYTES, /* two of 4 bits */
	W_PAIRS, /* four of 2 bits */
	STORAGES
};
enum scales { C_NONE, C_COLUMN /* of the sum */, C_ROW /* for each group of k that holds slices */, C_TILE, SCALES };
enum { LARGEST_PRODUCT = 1 << 23, MOST_SLICES = 8 };

struct weights {
	enum storage storage;
	enum scales scales;
	enum operands operands; /* P_POINTERS or P_CARRIED */
	tl_dtype type, w_type, x_type;
	int bm, bn, bk, m, n, k, group, warps, stages, blocks, programs;
	int sx, sw;  /* from row to row */
	bool turned; /* weights of a column lie in a row */
	bool raw; /* packed numbers are subtracted from in their own type, where they may wrap; zero points in 8 bits */
	bool points, second, wraps, even, asked, flatten, adds, loops;
	bool together; /* both tiles of weights are converted before the first product */
	bool same;     /* the other operand is the same for all slices */
	struct array *x, *w, *s, *z, *out;
};

static int packed(const struct weights *t)
{
	return t->storage == W_WORDS ? 8 : t->storage == W_BYTES ? 2 : t->storage == W_PAIRS ? 4 : 1;
}

static int code_bits(const struct weights *t)
{
	return t->storage == W_PAIRS ? 2 : 4;
}

static int make_size(int block, int most, int unit)
{
	int size = block * (int)random_int(1, most);
	return size - (chance(50) ? 0 : random_below(block / unit) * unit);
}

static void make_tile(struct weights *t)
{
	static const struct {
		int m, n, k, warps;
	} large[] = {{64, 64, 128, 4},  {64, 128, 128, 4}, {128, 64, 128, 4}, {128, 128, 64, 4},
		     {128, 128, 64, 8}, {128, 256, 64, 8}, {64, 256, 64, 4},  {128, 128, 128, 8}};
	int i = random_below(COUNT(large));
	bool small = chance(25);
	t->bm = small ? 16 << random_below(4) : large[i].m;
	t->bn = small ? 16 << random_below(4) : large[i].n;
	t->bk = small ? 32 << random_below(2) : large[i].k;
	t->warps = small ? 1 << random_below(4) : large[i].warps;
	t->stages = small ? (int)random_int(1, 4) : (int)random_int(3, 5);
}

static void make_weights(struct weights *t)
{
	static const tl_dtype stored[] = {TL_I8, TL_U8, TL_F8E4M3, TL_F32, TL_F16, TL_I32, TL_U8, TL_U8};
	memset(t, 0, sizeof *t);
	t->storage = random_below(STORAGES);
	t->scales = random_below(SCALES);
	t->operands = random_below(P_CARRIED + 1);
	t->type = chance(60) ? TL_F16 : TL_BF16;
	t->w_type = t->storage == W_SAME ? t->type : stored[t->storage];
	t->x_type = chance(75) ? t->type : chance(50) ? TL_I8 : TL_F32;
	make_tile(t);
	t->even = chance(50);
	t->m = make_size(t->bm, 2, 1);
	t->n = t->even ? t->bn * (int)random_int(1, 2) : make_size(t->bn, 2, 16);
	t->k = t->bk * random_below(MOST_SLICES + 1);
	while ((int64_t)t->m * t->n * t->k > LARGEST_PRODUCT)
		t->k -= t->bk;
	if (!t->even && t->k)
		t->k -= random_below(t->bk / 16) * 16;
	t->group = t->bk << random_below(2);
	if (t->scales == C_TILE && chance(50))
		t->group = 16;
	t->points = packed(t) > 1 && t->scales >= C_ROW && chance(50);
	t->raw = packed(t) > 1 && chance(30);
	t->turned = chance(30);
	t->second = chance(20);
	t->wraps = chance(50);
	t->asked = chance(40);
	t->flatten = chance(40);
	t->adds = chance(50);
	t->loops = chance(25);
	t->together = chance(50);
	t->same = chance(15) && t->k % t->bk == 0; /* beyond the end packed numbers are not 0 */
	t->blocks = chance(60) ? 0 : (int)random_int(1, 3);
	t->programs = t->loops ? (int)random_int(1, 3) : cdiv(t->m, t->bm) * cdiv(t->n, t->bn);
	t->sx = (t->k + 15) / 16 * 16 + 16 * random_below(2);
	t->sw = ((t->turned ? cdiv(t->k, packed(t)) : t->n) + 15) / 16 * 16 + 16 * random_below(2);
}

/* --- text ---------------------------------------------------------------------------------------------------- */

static const char *type_of(const struct weights *t)
{
	return t->type == TL_F16 ? "tl.float16" : "tl.bfloat16";
}

static void print_mask(FILE *f, const struct weights *t, const char *rows, bool turned)
{
	if (!t->even)
		fprintf(f,
			turned ? ", mask=(%s)[:, None] & (start + d < K)[None, :], other=0"
			       : ", mask=(start + d < K)[:, None] & (%s)[None, :], other=0",
			rows);
}

/* The weights at `name`, as they are stored. */
static void print_weights(FILE *f, const struct weights *t, int depth, char name)
{
	char at[64] = "";
	if (t->operands == P_POINTERS)
		snprintf(at, sizeof at, " + start // %d%s", packed(t), t->turned ? "" : " * sw");
	fprintf(f, "%*s%c = tl.load(%c_at%s", 4 * depth, "", name, name, at);
	print_mask(f, t, "j < N", t->turned);
	fprintf(f, ")\n");
}

/* A scale, or zero point, for each of the tile's weights. */
static void print_group(FILE *f, const struct weights *t, int depth, char name)
{
	const char *inside = t->even ? "" : ", mask=j < N, other=0";
	if (t->scales == C_ROW) {
		put_line(f, depth, "%c = tl.load(%c_ptr + start // %d * N + j%s)%s", name, name, t->group, inside,
			 t->turned ? "[:, None]" : "[None, :]");
		return;
	}
	fprintf(f, "%*s%c = tl.load(%c_ptr + ", 4 * depth, "", name, name);
	fprintf(f,
		t->turned ? "((start + d) // %d)[None, :] * N + j[:, None]"
			  : "((start + d) // %d)[:, None] * N + j[None, :]",
		t->group);
	print_mask(f, t, "j < N", t->turned);
	fprintf(f, ")\n");
}

/* An operand of the stored weights. */
static void print_operand(FILE *f, const struct weights *t, int depth, char name)
{
	const char *type = type_of(t);
	if (packed(t) > 1 && t->points)
		put_line(f, depth, "%c = (((%c >> shift) & %d).to(tl.%s) - z%s).to(%s)", name, name,
			 (1 << code_bits(t)) - 1, t->raw ? "int8" : "int32", t->raw ? " - 8" : "", type);
	else if (packed(t) > 1)
		put_line(f, depth, "%c = (((%c >> shift) & %d)%s - %d).to(%s)", name, name, (1 << code_bits(t)) - 1,
			 t->raw ? "" : ".to(tl.int32)", 1 << (code_bits(t) - 1), type);
	else if (t->storage == W_SAME)
		put_line(f, depth, "%c = tl.abs(%c)", name, name);
	else
		put_line(f, depth, "%c = %c.to(%s)", name, name, type);
	if (t->scales >= C_ROW)
		put_line(f, depth, "%c = %c * s.to(%s)", name, name, type);
	if (t->turned)
		put_line(f, depth, "%c = %c.T", name, name);
}

/* The other operand, of the slice that begins at `start`. */
static void print_other(FILE *f, const struct weights *t, int depth, const char *start)
{
	const char *at = t->operands == P_POINTERS || t->same ? start : "";
	if (t->even && !t->same)
		put_line(f, depth, "x = tl.load(x_at%s)", at);
	else
		put_line(f, depth, "x = tl.load(x_at%s, mask=(%s)[:, None] & (d%s < K)[None, :], other=0)", at,
			 t->wraps ? "i >= 0" : "i < M", start);
	if (t->x_type != t->type)
		put_line(f, depth, "x = x.to(%s)", type_of(t));
}

static void print_product(FILE *f, const struct weights *t, int depth, char name)
{
	const char *sum = name == 'w' ? "acc" : "more";
	if (t->adds)
		put_line(f, depth, "%s += tl.dot(x, %c)", sum, name);
	else
		put_line(f, depth, "%s = tl.dot(x, %c, %s)", sum, name, sum);
}

static void print_slice(FILE *f, const struct weights *t, int depth)
{
	const char *names = t->second ? "wv" : "w";
	if (!t->same)
		print_other(f, t, depth, " + start");
	if (t->scales >= C_ROW)
		print_group(f, t, depth, 's');
	if (t->points)
		print_group(f, t, depth, 'z');
	for (const char *name = names; *name; name++) {
		print_weights(f, t, depth, *name);
		print_operand(f, t, depth, *name);
		if (!t->together)
			print_product(f, t, depth, *name);
		if (t->operands == P_CARRIED)
			put_line(f, depth, "%c_at += %d%s", *name, t->bk / packed(t), t->turned ? "" : " * sw");
	}
	for (const char *name = names; t->together && *name; name++)
		print_product(f, t, depth, *name);
	if (t->operands == P_CARRIED && !t->same)
		put_line(f, depth, "x_at += %d", t->bk);
}

static void print_tile(FILE *f, const struct weights *t, int depth)
{
	put_line(f, depth, "i = tile // columns * %d + tl.arange(0, %d)", t->bm, t->bm);
	put_line(f, depth, "j = tile %% columns * %d + tl.arange(0, %d)", t->bn, t->bn);
	put_line(f, depth, "x_at = x_ptr + %s[:, None] * sx + d[None, :]", t->wraps || t->even ? "(i % M)" : "i");
	for (const char *name = t->second ? "wv" : "w"; *name; name++)
		put_line(f, depth,
			 t->turned ? "%c_at = %c_ptr + j[:, None] * sw + (d // %d)[None, :]"
				   : "%c_at = %c_ptr + j[None, :] + (d // %d)[:, None] * sw",
			 *name, *name, packed(t));
	put_line(f, depth, "acc = tl.zeros((%d, %d), tl.float32)", t->bm, t->bn);
	if (t->second)
		put_line(f, depth, "more = tl.zeros((%d, %d), tl.float32)", t->bm, t->bn);
	if (t->same)
		print_other(f, t, depth, "");
	put_line(f, depth, "for start in tl.range(0, K, %d%s):", t->bk, t->asked ? ", warp_specialize=True" : "");
	print_slice(f, t, depth + 1);
	if (t->second)
		put_line(f, depth, "acc = acc + more * 2");
	if (t->scales == C_COLUMN)
		put_line(f, depth, "acc = acc * tl.load(s_ptr + j, mask=j < N, other=0)[None, :]");
	put_line(f, depth,
		 "tl.store(out_ptr + i[:, None] * N + j[None, :], acc, mask=(i < M)[:, None] & (j < N)[None, :])");
}

static char *weights_text(const struct weights *t)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	fprintf(f, "import triton\nimport triton.language as tl\n\n@triton.jit\n"
		   "def kernel(x_ptr, w_ptr, v_ptr, s_ptr, z_ptr, out_ptr, M, N, K, sx, sw):\n");
	put_line(f, 1, "columns = tl.cdiv(N, %d)\n    d = tl.arange(0, %d)", t->bn, t->bk);
	if (packed(t) > 1)
		put_line(f, 1, "shift = (d %% %d * %d)%s%s", packed(t), code_bits(t),
			 t->turned ? "[None, :]" : "[:, None]", t->w_type == TL_U8 ? ".to(tl.uint8)" : "");
	if (t->loops)
		put_line(f, 1, "for tile in tl.range(tl.program_id(0), tl.cdiv(M, %d) * columns, %d%s):", t->bm,
			 t->programs, t->flatten ? ", flatten=True" : "");
	else
		put_line(f, 1, "tile = tl.program_id(0)");
	print_tile(f, t, t->loops ? 2 : 1);
	fclose(f);
	return text;
}

/* --- numbers ------------------------------------------------------------------------------------------------- */

static double weight_of(const struct weights *t, const struct array *w, int n, int k)
{
	int to = packed(t), row = k / to;
	size_t at = (size_t)(t->turned ? n * t->sw + row : row * t->sw + n), group = (size_t)(k / t->group * t->n + n);
	double v;
	if (to > 1) {
		int code = (int)(value_int(w, at) >> k % to * code_bits(t)) & ((1 << code_bits(t)) - 1);
		v = code - (t->points ? value(t->z, group) : 1 << (code_bits(t) - 1));
		if (t->raw && t->points)
			v = (double)wrap(TL_I8, (int64_t)v - 8);
		else if (t->raw && v < 0 && t->w_type == TL_U8)
			v += 256;
	} else {
		v = t->storage == W_SAME ? fabs(value(w, at)) : value(w, at);
	}
	return t->scales >= C_ROW ? v * value(t->s, group) : v;
}

static void evaluate_weights(const struct weights *t, const struct array *v)
{
	double *w = calloc((size_t)t->k + 1, sizeof *w);
	for (int j = 0; j < t->n; j++) {
		for (int d = 0; d < t->k; d++)
			w[d] = weight_of(t, t->w, j, d) + (t->second ? 2 * weight_of(t, v, j, d) : 0);
		for (int i = 0; i < t->m; i++) {
			double sum = 0;
			for (int d = 0; d < t->k; d++)
				sum += value(t->x, (size_t)(i * t->sx + (t->same ? d % t->bk : d))) * w[d];
			want(t->out, (size_t)(i * t->n + j),
			     t->scales == C_COLUMN ? sum * value(t->s, (size_t)j) : sum);
		}
	}
	free(w);
}

static struct array *stored(struct suite *s, const struct weights *t, const char *name)
{
	int rows = t->turned ? t->n : cdiv(t->k, packed(t));
	struct array *w = in(s, name, t->w_type, (size_t)(rows * t->sw) + 1);
	if (is_float(t->w_type))
		fill_whole(w, 4);
	return w;
}

static void weights_case(struct suite *s, int64_t seed, const char *left_out)
{
	(void)left_out; /* nothing is left out of these */
	if (!case_begin(s, NULL, "%lld.", (long long)seed))
		return;
	struct weights made, *t = &made;
	random_seed((uint64_t)seed);
	make_weights(t);
	t->x = in(s, "x", t->x_type, (size_t)(t->m * t->sx) + 1);
	if (is_float(t->x_type))
		fill_whole(t->x, 2);
	for (size_t i = 0; i < t->x->len && !is_float(t->x_type); i++)
		set_int(t->x, i, random_int(-2, 2));
	t->w = stored(s, t, "w");
	struct array *v = stored(s, t, "v");
	size_t groups = (size_t)(t->k / t->group + 1) * (size_t)t->n;
	t->s = in(s, "s", TL_F32, groups);
	t->z = in(s, "z", TL_I8, groups);
	for (size_t i = 0; i < groups; i++) {
		set(t->s, i, ldexp(1, (int)random_int(-1, 1)));
		set_int(t->z, i, t->raw ? random_int(-128, 127) : random_int(0, (1 << code_bits(t)) - 1));
	}
	t->out = out(s, "out", TL_F32, (size_t)(t->m * t->n));
	evaluate_weights(t, v);
	char *text = weights_text(t);
	tl_arg args[] = {ptr(t->x),    ptr(t->w),    ptr(v),       ptr(t->s),     ptr(t->z),    ptr(t->out),
			 tl_int(t->m), tl_int(t->n), tl_int(t->k), tl_int(t->sx), tl_int(t->sw)};
	tl_config config = {
		.grid = {(uint32_t)t->programs}, .num_warps = t->warps, .num_stages = t->stages, .max_ctas = t->blocks};
	run_text(s, text, &config, args, COUNT(args), "max_ctas %d, M = %d, N = %d, K = %d, rows of %d and %d",
		 t->blocks, t->m, t->n, t->k, t->sx, t->sw);
}

void theme_random_weights(struct suite *s)
{
	each_seed(s, "weights", 60, weights_case);
}
