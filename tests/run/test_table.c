/* The kernels of docs/notes/measurements.md as the benchmark runs them (tests/bench): their files, tiles, warps and
 * stages, on less data. */
#include "themes.h"

static int block_for(int n)
{
	int block = 1;
	while (block < n)
		block *= 2;
	return block;
}

/* --- bytes --------------------------------------------------------------------------------------------------- */

static void add(struct suite *s, int n, int block, int warps)
{
	if (!case_begin(s, "../../examples/vector_add.tl", "add n=%d block=%d warps=%d", n, block, warps))
		return;
	struct array *x = in(s, "x", TL_F32, (size_t)n), *y = in(s, "y", TL_F32, (size_t)n),
		*o = out(s, "out", TL_F32, (size_t)n);
	for (size_t i = 0; i < o->len; i++)
		want(o, i, value(x, i) + value(y, i));
	LAUNCH(s, "add_kernel", CONFIG(.grid = {(uint32_t)cdiv(n, block)}, .num_warps = warps), ptr(x), ptr(y), ptr(o),
	       tl_int(n), tl_int(block));
	case_end(s);
}

static void softmax(struct suite *s, int rows, int n, int warps)
{
	if (!case_begin(s, "../../examples/softmax.tl", "softmax %dx%d warps=%d", rows, n, warps))
		return;
	struct array *x = in(s, "x", TL_F32, (size_t)(rows * n)), *o = out(s, "out", TL_F32, (size_t)(rows * n));
	fill(x, -10, 10);
	for (int r = 0; r < rows; r++)
		want_softmax(o, x, (size_t)(r * n), (size_t)n, 1);
	tolerance(o, 0, 24 * 0x1p-23);
	LAUNCH(s, "softmax_kernel", CONFIG(.grid = {(uint32_t)rows}, .num_warps = warps), ptr(x), ptr(o), tl_int(n),
	       tl_int(n), tl_int(n), tl_int(block_for(n)));
	case_end(s);
}

static void layer_norm(struct suite *s, bool by_row, int rows, int n, int block, int warps)
{
	if (!case_begin(s, by_row ? "../bench/kernels.tl" : "../../examples/layer_norm.tl",
			"layer norm%s %dx%d block=%d warps=%d", by_row ? " by row" : "", rows,
			n, block, warps))
		return;
	size_t all = (size_t)(rows * n);
	struct array *x = in(s, "x", TL_F16, all), *o = out(s, "y", TL_F16, all),
		*w = in(s, "weight", TL_F16, (size_t)n), *b = in(s, "bias", TL_F16, (size_t)n),
		     *mean = out(s, "mean", TL_F32, (size_t)rows), *rstd = out(s, "rstd", TL_F32, (size_t)rows);
	for (int r = 0; r < rows; r++) {
		double sum = 0, squares = 0;
		for (int i = 0; i < n; i++)
			sum += value(x, (size_t)(r * n + i));
		for (int i = 0; i < n; i++)
			squares += pow(value(x, (size_t)(r * n + i)) - sum / n, 2);
		double scale = 1 / sqrt(squares / n + 1e-5);
		want(mean, (size_t)r, sum / n);
		want(rstd, (size_t)r, scale);
		for (int i = 0; i < n; i++)
			want(o, (size_t)(r * n + i),
			     (value(x, (size_t)(r * n + i)) - sum / n) * scale * value(w, (size_t)i) +
				     value(b, (size_t)i));
	}
	tolerance(o, 1e-5, 1e-5);
	tolerance(mean, 1e-6, 0);
	tolerance(rstd, 0, 1e-5);
	LAUNCH(s, by_row ? "layer_norm_row_kernel" : "layer_norm_kernel",
	       CONFIG(.grid = {(uint32_t)rows}, .num_warps = warps), ptr(x), ptr(o), ptr(w), ptr(b),
	       ptr(mean), ptr(rstd), tl_int(n), tl_int(n), tl_int(n), tl_float(1e-5), tl_int(block));
	case_end(s);
}

static void row_mean(struct suite *s, int rows, int n, int warps)
{
	if (!case_begin(s, "../bench/kernels.tl", "mean of rows %dx%d warps=%d", rows, n, warps))
		return;
	struct array *x = in(s, "x", TL_F32, (size_t)(rows * n)), *o = out(s, "out", TL_F32, (size_t)rows);
	for (int r = 0; r < rows; r++) {
		double sum = 0;
		for (int i = 0; i < n; i++)
			sum += value(x, (size_t)(r * n + i));
		want(o, (size_t)r, sum / n);
	}
	tolerance(o, 1e-6, 0);
	LAUNCH(s, "row_mean_kernel", CONFIG(.grid = {(uint32_t)rows}, .num_warps = warps), ptr(x), ptr(o), tl_int(n),
	       tl_int(n), tl_int(block_for(n)));
	case_end(s);
}

static void mean(struct suite *s, int m, int n, int k, int block_n, int block_k, int warps)
{
	if (!case_begin(s, "../../examples/mean.tl", "mean %dx%dx%d block=%d,%d warps=%d", m, n, k, block_n, block_k,
			warps))
		return;
	struct array *x = in(s, "x", TL_F32, (size_t)(m * n * k)), *o = out(s, "out", TL_F32, (size_t)(m * k));
	for (int i = 0; i < m * k; i++) {
		double sum = 0;
		for (int j = 0; j < n; j++)
			sum += value(x, (size_t)((i / k * n + j) * k + i % k));
		want(o, (size_t)i, sum / n);
	}
	tolerance(o, 1e-6, 0);
	LAUNCH(s, "mean_kernel", CONFIG(.grid = {(uint32_t)(m * cdiv(k, block_k))}, .num_warps = warps), ptr(x), ptr(o),
	       tl_int(m), tl_int(n), tl_int(k), tl_int(n * k), tl_int(k), tl_int(1), tl_int(block_n), tl_int(block_k));
	case_end(s);
}

static void rms_norm(struct suite *s, int rows, int n, int warps)
{
	if (!case_begin(s, "../bench/kernels.tl", "rms norm %dx%d warps=%d", rows, n, warps))
		return;
	struct array *x = in(s, "x", TL_F16, (size_t)(rows * n)), *w = in(s, "weight", TL_F16, (size_t)n),
		*o = out(s, "out", TL_F16, (size_t)(rows * n));
	for (int r = 0; r < rows; r++) {
		double squares = 0;
		for (int i = 0; i < n; i++)
			squares += pow(value(x, (size_t)(r * n + i)), 2);
		for (int i = 0; i < n; i++)
			want(o, (size_t)(r * n + i),
			     value(x, (size_t)(r * n + i)) / sqrt(squares / n + 1e-5) * value(w, (size_t)i));
	}
	tolerance(o, 0, 1e-5);
	LAUNCH(s, "rms_norm_kernel", CONFIG(.grid = {(uint32_t)rows}, .num_warps = warps), ptr(x), ptr(w), ptr(o),
	       tl_int(n), tl_int(n), tl_float(1e-5), tl_int(block_for(n)));
	case_end(s);
}

static void cross_entropy(struct suite *s, tl_dtype t, int rows, int n, int block, int warps)
{
	if (!case_begin(s, "../bench/kernels.tl", "cross entropy %s %dx%d block=%d warps=%d", tl_dtype_name(t), rows, n,
			block, warps))
		return;
	struct array *x = in(s, "logits", t, (size_t)(rows * n)), *label = in(s, "target", TL_I64, (size_t)rows),
		*o = out(s, "loss", TL_F32, (size_t)rows);
	fill(x, -8, 8);
	for (int r = 0; r < rows; r++) {
		double sum = 0;
		set_int(label, (size_t)r, random_int(0, n - 1));
		for (int i = 0; i < n; i++)
			sum += exp(value(x, (size_t)(r * n + i)));
		want(o, (size_t)r, log(sum) - value(x, (size_t)(r * n + value_int(label, (size_t)r))));
	}
	tolerance(o, 1e-5, 1e-6);
	LAUNCH(s, "cross_entropy_kernel", CONFIG(.grid = {(uint32_t)rows}, .num_warps = warps), ptr(x), ptr(label),
	       ptr(o), tl_int(n), tl_int(n), tl_int(block));
	case_end(s);
}

/* --- products ------------------------------------------------------------------------------------------------ */

struct tile {
	int m, n, k, warps, stages;
};

/* Four tiles: by a program each, by such programs on fewer blocks if that is faster, by fewer programs, or by several
 * programs each, which sum parts of K. */
enum share { EACH, BLOCKS, PROGRAMS, PARTS };
enum { MOST_PARTS = 3 };

/* The sums of the parts, as the kernel's programs leave them: of each tile, of each part, in rows. x: rows of A; y:
 * columns of B. */
static void want_parts(struct array *parts, const struct tile *tile, int m, int n, int k, const double *x,
		       const double *y)
{
	int group = cdiv(m, tile->m), steps = cdiv(cdiv(k, tile->k), MOST_PARTS);
	for (int i = 0; i < m * n; i++) /* all tiles are in the first group of rows, column by column */
		for (int part = 0; part < MOST_PARTS; part++) {
			int row = i / n, col = i % n, pid = col / tile->n * group + row / tile->m;
			double sum = 0;
			for (int j = part * steps * tile->k; j < (part + 1) * steps * tile->k && j < k; j++)
				sum += x[row * k + j] * y[col * k + j];
			int line = (pid * MOST_PARTS + part) * tile->m + row % tile->m;
			want(parts, (size_t)(line * tile->n + col % tile->n), sum);
		}
}

/* Whole numbers up to `most`, so that sums are exact. a and b: does the operand lie along its first dimension? `whole`:
 * sizes are multiples of 256, else they end within tiles. */
static void matmul(struct suite *s, tl_dtype t, tl_dtype to, int most, const struct tile *tile, bool a_turned,
		   bool b_turned, enum share share, bool whole)
{
	static const struct {
		const char *text, *file, *kernel;
	} ways[] = {{"", "../../examples/matmul.tl", "matmul_kernel"},
		    {"few blocks ", "../../examples/matmul.tl", "matmul_kernel"},
		    {"persistent ", "../../examples/matmul_persistent.tl", "matmul_persistent_kernel"},
		    {"split ", "../../examples/matmul_split_k.tl", "matmul_split_k_kernel"}};
	if (!case_begin(s, ways[share].file, "%smatmul %s%s%s%s by %dx%dx%d warps=%d stages=%d", ways[share].text,
			tl_dtype_name(t), a_turned ? ", A transposed" : "", b_turned ? ", B transposed" : "",
			whole ? ", whole tiles" : "", tile->m, tile->n, tile->k, tile->warps, tile->stages))
		return;
	int m = whole ? tile->m <= 128 ? 256 : 512 : tile->m + 16,
	    n = whole ? tile->n <= 128 ? 256 : 512 : tile->n + 16, k = whole ? 256 : 2 * tile->k + 16;
	struct array *a = in(s, "a", t, (size_t)(m * k)), *b = in(s, "b", t, (size_t)(k * n)),
		*c = out(s, "c", to, (size_t)(m * n));
	double *x = malloc(a->len * sizeof *x), *y = malloc(b->len * sizeof *y); /* rows of A, columns of B */
	for (int i = 0; i < m * k; i++) {
		size_t at = (size_t)(a_turned ? i % k * m + i / k : i);
		set(a, at, (double)random_int(-most, most - (t == TL_I8)));
		x[i] = value(a, at);
	}
	for (int i = 0; i < n * k; i++) {
		size_t at = (size_t)(b_turned ? i : i % k * n + i / k);
		set(b, at, (double)random_int(-most, most - (t == TL_I8)));
		y[i] = value(b, at);
	}
	for (int i = 0; i < m * n; i++) {
		double sum = 0;
		for (int j = 0; j < k; j++)
			sum += x[i / n * k + j] * y[i % n * k + j];
		want(c, (size_t)i, sum);
	}
	int tiles = cdiv(m, tile->m) * cdiv(n, tile->n), nparts = share == PARTS ? MOST_PARTS : 0;
	size_t in_parts = (size_t)(tiles * nparts * tile->m * tile->n);
	struct array *parts = out(s, "parts", t == TL_I8 ? TL_I32 : TL_F32, in_parts),
		     *arrived = inout(s, "arrived", TL_I32, (size_t)tiles);
	for (int i = 0; i < tiles; i++) {
		set_int(arrived, (size_t)i, 0);
		want_int(arrived, (size_t)i, 0);
	}
	if (nparts)
		want_parts(parts, tile, m, n, k, x, y);
	free(x);
	free(y);
	tl_config *config = CONFIG(.grid = {share == PROGRAMS ? 3 : (uint32_t)tiles, share == PARTS ? MOST_PARTS : 1},
				   .num_warps = tile->warps, .num_stages = tile->stages,
				   .max_ctas = share == BLOCKS ? 3 : -1);
	tl_arg args[] = {ptr(a),
			 ptr(b),
			 ptr(c),
			 ptr(parts),
			 ptr(arrived),
			 tl_int(m),
			 tl_int(n),
			 tl_int(k),
			 tl_int(a_turned ? 1 : k),
			 tl_int(a_turned ? m : 1),
			 tl_int(b_turned ? 1 : n),
			 tl_int(b_turned ? k : 1),
			 tl_int(n),
			 tl_int(1),
			 tl_int(tile->m),
			 tl_int(tile->n),
			 tl_int(tile->k),
			 tl_int(8),
			 share == PARTS ? tl_int(MOST_PARTS) : tl_none()};
	size_t nargs = COUNT(args);
	if (share != PARTS) { /* neither parts nor counters; the persistent kernel has no activation */
		nargs -= 2 + (share == PROGRAMS);
		memmove(args + 3, args + 5, (COUNT(args) - 5) * sizeof *args);
	}
	launch(s, ways[share].kernel, config, args, nargs);
	case_end(s);
}

/* blocks: that run all programs, if that is faster; 0: one each. */
static void attention(struct suite *s, int context, int d, bool causal, int block_m, int block_n, int warps, int stages,
		      int blocks)
{
	enum { MOST = 512 };
	int heads = blocks == 3 ? 5 : 2; /* 3 and 2 of these together */
	if (!case_begin(s, "../../examples/attention.tl", "%sattention n=%d d=%d %s by %dx%d warps=%d stages=%d",
			blocks ? "few blocks " : "", context, d, causal ? "causal" : "full", block_m, block_n, warps,
			stages))
		return;
	size_t len = (size_t)(heads * context * d);
	struct array *q = in(s, "q", TL_F16, len), *k = in(s, "k", TL_F16, len), *v = in(s, "v", TL_F16, len),
		     *o = out(s, "o", TL_F16, len);
	double scale = 1 / sqrt(d), p[MOST];
	for (int i = 0; i < heads * context; i++) {
		int first = i / context * context, seen = causal ? i - first + 1 : context;
		double total = 0;
		for (int j = 0; j < seen; j++) {
			double score = 0;
			for (int x = 0; x < d; x++)
				score += value(q, (size_t)(i * d + x)) * value(k, (size_t)((first + j) * d + x));
			total += p[j] = exp(score * scale);
		}
		for (int x = 0; x < d; x++) {
			double sum = 0;
			for (int j = 0; j < seen; j++)
				sum += p[j] * value(v, (size_t)((first + j) * d + x));
			want(o, (size_t)(i * d + x), sum / total);
		}
	}
	tolerance(o, 4 * unit_roundoff(TL_F16), 0); /* scaled queries and probabilities are rounded to fp16 */
	tl_arg strides[] = {tl_int(heads * context * d), tl_int(context * d), tl_int(d)};
#define STRIDES strides[0], strides[1], strides[2]
	LAUNCH(s, "attention_kernel",
	       CONFIG(.grid = {(uint32_t)cdiv(context, block_m), (uint32_t)heads}, .num_warps = warps,
		      .num_stages = stages, .max_ctas = blocks ? blocks : -1),
	       ptr(q), ptr(k), ptr(v), ptr(o), tl_float(scale), STRIDES, STRIDES, STRIDES, STRIDES, tl_int(heads),
	       tl_int(context), tl_int(d), tl_int(block_m), tl_int(block_n), tl_bool(causal));
	case_end(s);
}

/* --- the table ----------------------------------------------------------------------------------------------- */

static void bytes(struct suite *s)
{
	static const int widths[] = {512, 781, 1000, 1024, 2048, 4096, 5000, 8192, 12288, 16384, 32768, 65536, 131072},
			 norms[] = {1000, 1024, 2048, 4096, 8192, 16384}, logits[] = {4096, 32000, 50257};
	add(s, 4096 + 3, 1024, 4), add(s, 8192, 1024, 8), add(s, 6000, 2048, 8);
	for (int i = 0; i < COUNT(widths); i++)
		for (int k = 0; k < 2; k++)
			softmax(s, 2, widths[i],
				widths[i] <= 1024    ? 1 << (i % 2 + k * 2)
				: widths[i] <= 16384 ? 4 << (i % 2 + k)
						     : 4 << (k * 2));
	for (int i = 0; i < COUNT(norms); i++) {
		int block = block_for(norms[i]), warps = block <= 1024 ? 2 << i % 2 : 4 << i % 3;
		layer_norm(s, false, 2, norms[i], block >> i % 2, warps);
		layer_norm(s, true, 2, norms[i], block, warps);
		row_mean(s, 3, norms[i], warps);
		rms_norm(s, 2, norms[i], warps);
	}
	for (int i = 0; i < COUNT(logits); i++)
		cross_entropy(s, i ? TL_F32 : TL_F16, 2, logits[i], 2048 << i % 2, 4 << i);
	mean(s, 3, 128, 160, 32, 64, 4), mean(s, 3, 100, 96, 64, 32, 8), mean(s, 1, 300, 200, 128, 32, 4);
	/* several iterations at a time: some left over, none, all */
	mean(s, 2, 1000, 96, 64, 32, 8), mean(s, 1, 512, 64, 64, 32, 8), mean(s, 1, 1111, 40, 32, 32, 8),
		mean(s, 2, 90, 64, 32, 32, 8);
}

static void products(struct suite *s)
{
	static const struct tile tiles[] = {{128, 256, 64, 8, 3}, {128, 256, 64, 8, 4}, {256, 128, 64, 8, 4},
					    {128, 128, 64, 4, 3}, {128, 128, 64, 8, 4}, {64, 256, 64, 4, 4},
					    {128, 64, 64, 4, 4},  {64, 64, 64, 4, 5},   {64, 32, 64, 4, 5},
					    {64, 128, 32, 4, 4},  {128, 128, 32, 8, 3}, {16, 64, 128, 4, 4},
					    {16, 128, 64, 4, 5},  {16, 64, 256, 4, 3}},
				 wide[] = {{128, 256, 128, 8, 3},
					   {128, 128, 128, 4, 3},
					   {128, 128, 128, 8, 4},
					   {256, 128, 128, 8, 3},
					   {64, 256, 128, 4, 4}},
				 words[] = {{128, 128, 32, 4, 3}, {128, 256, 32, 8, 3}, {128, 256, 32, 8, 4},
					    {256, 128, 32, 8, 3}, {256, 128, 32, 8, 4}, {64, 128, 32, 4, 4}};
	for (int i = 0; i < COUNT(tiles); i++) {
		tl_dtype t = i % 3 == 2 ? TL_BF16 : TL_F16;
		matmul(s, t, t, t == TL_F16 ? 2 : 9, &tiles[i], false, false, EACH, false);
		if (i >= 5)
			continue;
		matmul(s, t, t, t == TL_F16 ? 2 : 9, &tiles[i], false, false, BLOCKS, false);
		matmul(s, TL_F16, TL_F16, 2, &tiles[i], false, false, PROGRAMS, false);
		matmul(s, TL_F16, TL_F16, 2, &tiles[i], false, i % 2, PARTS, i > 2);
	}
	for (int i = 0; i < COUNT(wide); i++) {
		matmul(s, TL_F8E4M3, TL_F16, 3, &wide[i], false, true, i % 2 ? PROGRAMS : EACH, false);
		matmul(s, TL_F8E4M3, TL_F16, 3, &wide[i], false, true, BLOCKS, false);
		matmul(s, TL_F8E4M3, TL_F16, 3, &wide[i], false, false, EACH, false);
		matmul(s, TL_I8, TL_I32, 128, &wide[i], false, i % 2, i % 2 ? BLOCKS : EACH, false);
	}
	for (int i = 0; i < COUNT(words); i++) {
		matmul(s, TL_F32, TL_F32, 60, &words[i], false, false, i % 2 ? PROGRAMS : EACH, false);
		matmul(s, TL_F32, TL_F32, 60, &words[i], false, false, BLOCKS, false);
		matmul(s, TL_F32, TL_F32, 60, &words[i], i % 2, !(i % 2), i % 4 ? BLOCKS : EACH, false);
	}
	for (int i = 0; i < 6; i++) { /* with a producer warp */
		enum share share = i % 3 == 0   ? EACH
				   : i % 3 == 1 ? BLOCKS
						: PROGRAMS,
			   next = i % 3 == 0   ? BLOCKS
				  : i % 3 == 1 ? PROGRAMS
					       : EACH;
		matmul(s, TL_F16, TL_F16, 2, &tiles[i], false, false, share, true);
		matmul(s, TL_BF16, TL_BF16, 9, &tiles[i], i % 2, !(i % 2), next, true);
		matmul(s, TL_F32, TL_F32, 60, &words[i], false, false, next, true);
		matmul(s, TL_F32, TL_F32, 60, &words[i], i % 2, true, share, true);
		if (i >= COUNT(wide))
			continue;
		matmul(s, TL_F8E4M3, TL_F16, 3, &wide[i], false, true, share, true);
		matmul(s, TL_I8, TL_I32, 128, &wide[i], i % 2, i % 2, next, true);
	}
	static const int attentions[][4] = {{128, 64, 4, 2},  {128, 64, 8, 3}, {64, 64, 4, 3},
					    {128, 128, 8, 3}, {64, 128, 4, 3}, {128, 64, 4, 3}};
	for (int i = 0; i < COUNT(attentions); i++)
		for (int k = 0; k < 2; k++) {
			const int *a = attentions[i];
			attention(s, 192, 64 << (i + k) % 2, k, a[0], a[1], a[2], a[3], 0);
		}
	attention(s, 512, 64, true, 64, 128, 4, 2, 0); /* on the diagonal a tile may be wider than high */
	attention(s, 384, 128, true, 64, 128, 8, 3, 0);
	for (int i = 0; i < 2; i++) { /* a producer warp for one loop or two */
		attention(s, 256, 256, i, 128, 64, 8, 2, 0);
		attention(s, 256, 128, i, 128, 128, 8, 3, 0);
		/* from program to program: queries come while the one before ends */
		attention(s, i ? 256 : 512, 128, false, 128, 128, 8, 2 + i, 1 + 2 * i);
		/* those that take longer first */
		attention(s, 256 + 256 * i, 128, true, 128, 128, 8, 3 - i, 3 - i);
		attention(s, 512, 128, true, 128, 64, 8, 4, 1 + 4 * i);
	}
}

void theme_table(struct suite *s)
{
	bytes(s);
	products(s);
}
