/* The kernels, small problems for them, and their results in double precision. */
#include <math.h>

#include "support/small_floats.h"
#include "support/dtype.h"
#include "tests/sim/mutants.h"

static double random_unit(u64 *state) /* splitmix64 */
{
	u64 z = *state += 0x9E3779B97F4A7C15u;
	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return (double)((z ^ z >> 31) >> 11) * 0x1p-52 - 1;
}

/* The k-th buffer, of values around zero. */
static u32 add_input(struct arena *a, struct problem *p, const char *name, u32 elem, u32 len)
{
	struct buffer *b = &p->buffers[p->nbuffers];
	u64 state = p->nbuffers * 977 + len;
	*b = (struct buffer){.name = name, .elem = elem, .len = len, .initial = arena_alloc(a, (size_t)elem * len)};
	for (u32 k = 0; k < len; k++) {
		float v = (float)(2 * random_unit(&state));
		if (elem == 1)
			/* sums of which wgmma keeps exactly */
			((u8 *)b->initial)[k] = (u8)dtype_encode_float(DT_E4M3, rint((double)v));
		else if (elem == 2)
			((u16 *)b->initial)[k] = fp_to_f16(v);
		else
			((float *)b->initial)[k] = v;
	}
	return p->nbuffers++;
}

static double *add_output(struct arena *a, struct problem *p, const char *name, u32 elem, u32 len, double absolute,
			  double relative)
{
	struct buffer *b = &p->buffers[p->nbuffers++];
	*b = (struct buffer){name,     elem,    len, arena_alloc(a, (size_t)elem * len), arena_array(a, double, len),
			     absolute, relative};
	memset(b->initial, 0xFF, (size_t)elem * len);
	return b->want;
}

static double input(const struct problem *p, u32 buffer, u32 k)
{
	const struct buffer *b = &p->buffers[buffer];
	if (b->elem == 1)
		return dtype_decode_float(DT_E4M3, ((const u8 *)b->initial)[k]);
	return (double)(b->elem == 2 ? fp_from_f16(((const u16 *)b->initial)[k]) : ((const float *)b->initial)[k]);
}

static void set_params(struct problem *p, const u32 *values, u32 n)
{
	for (u32 k = 0; k < p->nbuffers; k++)
		p->params[k] = (struct launch_param){true, k};
	for (u32 k = 0; k < n; k++)
		p->params[p->nbuffers + k] = (struct launch_param){false, values[k]};
	p->nparams = p->nbuffers + n;
}
#define SET_PARAMS(p, ...) set_params(p, (u32[]){__VA_ARGS__}, ARRAY_LEN(((u32[]){__VA_ARGS__})))

/* --- matmul ------------------------------------------------------------------------------------------------------ */

/* Of fp8 (with results in fp16), fp16 or, where an element has 4 bytes, numbers that tf32 has too. */
static void matmul_problem(struct arena *a, struct problem *p, u32 elem, u32 m, u32 n, u32 k, bool a_transposed,
			   bool b_transposed)
{
	u32 x = add_input(a, p, "a", elem, m * k), y = add_input(a, p, "b", elem, k * n);
	for (u32 b = 0; b < 2 && elem == 4; b++)
		for (u32 i = 0; i < p->buffers[b].len; i++)
			((u32 *)p->buffers[b].initial)[i] &= ~(u32)0x1FFF;
	double *want = add_output(a, p, "c", MAX(elem, 2), m * n, 1e-4, 0x1.1p-11);
	for (u32 i = 0; i < m; i++)
		for (u32 j = 0; j < n; j++)
			for (u32 l = 0; l < k; l++)
				want[i * n + j] +=
					input(p, x, a_transposed ? l * m + i : i * k + l) *
					input(p, y, b_transposed ? j * k + l : l * n + j);
	SET_PARAMS(p, m, n, k, a_transposed ? m : k, b_transposed ? k : n, n);
}

/* With a last part of k that is masked, and without; too short for the pipeline; short of a tile, whole, and two of
 * them. */
static void make_matmul(struct arena *a, struct problem *p, u32 n)
{
	static const u32 sizes[][3] = {{48, 48, 184}, {64, 80, 160}, {64, 64, 56},
				       {64, 48, 24},  {16, 16, 8},   {16, 16, 72}};
	p->grid[0] = (sizes[n][1] + 63) / 64;
	matmul_problem(a, p, 2, sizes[n][0], sizes[n][1], sizes[n][2], false, false);
}

static void make_matmul_transposed(struct arena *a, struct problem *p, u32 n)
{
	static const u32 sizes[][3] = {{48, 32, 248}, {64, 48, 192}, {64, 32, 120},
				       {64, 32, 320}, {16, 16, 8},   {16, 16, 136}};
	p->grid[0] = (sizes[n][1] + 31) / 32;
	matmul_problem(a, p, 2, sizes[n][0], sizes[n][1], sizes[n][2], false, true);
}

/* Three programs, whose copies go on from tile to tile: one or two tiles each, three each, one and none, ragged
 * ones. */
static void make_matmul_persistent(struct arena *a, struct problem *p, u32 n)
{
	static const u32 sizes[][3] = {{128, 64, 96}, {192, 96, 64}, {64, 32, 160},
				       {80, 80, 72},  {80, 80, 40},  {112, 48, 40}};
	p->grid[0] = 3;
	matmul_problem(a, p, 2, sizes[n][0], sizes[n][1], sizes[n][2], false, false);
}

/* The same, where a warp of its own asks for boxes: two tiles or one each; three of one iteration each; one and none;
 * one without iterations. */
static void make_matmul_produced(struct arena *a, struct problem *p, u32 n)
{
	static const u32 sizes[][3] = {{128, 128, 768}, {576, 64, 256}, {64, 64, 1792}, {64, 64, 0}};
	p->grid[0] = 3;
	matmul_problem(a, p, 2, sizes[n][0], sizes[n][1], sizes[n][2], false, false);
}

/* B's bytes are fetched into registers as matrices that are transposed. */
static void make_matmul_bytes(struct arena *a, struct problem *p, u32 n)
{
	static const u32 sizes[][3] = {{48, 64, 208}, {64, 80, 128}, {64, 48, 48}, {16, 16, 16}};
	p->grid[0] = (sizes[n][1] + 63) / 64;
	matmul_problem(a, p, 1, sizes[n][0], sizes[n][1], sizes[n][2], false, false);
}

/* The same, and A's bytes are turned in shared memory. */
static void make_matmul_turned(struct arena *a, struct problem *p, u32 n)
{
	static const u32 sizes[][3] = {{48, 64, 208}, {64, 80, 128}, {64, 48, 48}, {16, 16, 16}};
	p->grid[0] = (sizes[n][1] + 63) / 64;
	matmul_problem(a, p, 1, sizes[n][0], sizes[n][1], sizes[n][2], true, false);
}

/* B's fragments are fetched into registers, while products of the iteration before run. */
static void make_matmul_fetched(struct arena *a, struct problem *p, u32 n)
{
	static const u32 sizes[][3] = {{16, 64, 188}, {16, 80, 160}, {16, 48, 56}, {16, 16, 24}, {16, 16, 4}};
	p->grid[0] = (sizes[n][1] + 63) / 64;
	matmul_problem(a, p, 4, sizes[n][0], sizes[n][1], sizes[n][2], false, false);
}

/* --- attention --------------------------------------------------------------------------------------------------- */

static double rounded(double x)
{
	return (double)fp_from_f16(fp_to_f16((float)x));
}

static void attend(const struct problem *p, double *want, u32 i, u32 keys, u32 dim, double scale)
{
	double score[512], largest = -INFINITY, total = 0;
	for (u32 j = 0; j < keys; j++) {
		score[j] = 0;
		for (u32 d = 0; d < dim; d++)
			score[j] += rounded(input(p, 0, i * dim + d) * scale) * input(p, 1, j * dim + d);
		largest = fmax(largest, score[j]);
	}
	for (u32 j = 0; j < keys; j++)
		total += score[j] = exp2(score[j] - largest);
	for (u32 d = 0; d < dim; d++)
		for (u32 j = 0; j < keys; j++)
			want[i * dim + d] += score[j] / total * input(p, 2, j * dim + d);
}

static void attention_problem(struct arena *a, struct problem *p, u32 ctx, u32 dim, u32 rows, bool causal)
{
	float scale = 0.25f;
	add_input(a, p, "q", 2, ctx * dim);
	add_input(a, p, "k", 2, ctx * dim);
	add_input(a, p, "v", 2, ctx * dim);
	double *want = add_output(a, p, "o", 2, ctx * dim, 4e-3, 2e-3);
	for (u32 i = 0; i < ctx; i++)
		attend(p, want, i, causal ? i + 1 : ctx, dim, (double)(scale * 1.44269504f));
	u32 z = ctx * dim;
	SET_PARAMS(p, fp_bits_f32(scale), z, z, dim, z, z, dim, z, z, dim, z, z, dim, 1, ctx);
	p->grid[0] = (ctx + rows - 1) / rows;
}

static void make_attention(struct arena *a, struct problem *p, u32 n)
{
	static const u32 sizes[] = {91, 128, 31, 59};
	attention_problem(a, p, sizes[n], 32, 64, false);
}

static void make_causal(struct arena *a, struct problem *p, u32 n)
{
	static const u32 sizes[] = {128, 155, 7, 59};
	attention_problem(a, p, sizes[n], 32, 64, true);
}

/* Keys and values come by TMA, through three buffers in turn, and two warpgroups take turns with the tensor cores. Long
 * enough for arrivals that are not waited for to add up to another phase. */
static void make_boxes(struct arena *a, struct problem *p, u32 n)
{
	static const u32 sizes[] = {512, 200};
	attention_problem(a, p, sizes[n], 32, 128, true);
}

/* --- rows -------------------------------------------------------------------------------------------------------- */

/* Each row but the last has a value whose exponential is not finite, at `large` of that row: the maximum must be
 * right. */
static void softmax_problem(struct arena *a, struct problem *p, u32 rows, u32 cols, const u32 *large)
{
	u32 stride = (cols + 15) / 16 * 16;
	add_input(a, p, "x", 4, (rows - 1) * stride + cols);
	double *y = add_output(a, p, "y", 4, (rows - 1) * stride + cols, 1e-9, 1e-5);
	for (u32 r = 0; r < rows; r++) {
		float *x = (float *)p->buffers[0].initial + r * stride;
		if (r + 1 < rows && large[r] < cols)
			x[large[r]] = 300;
		double total = 0, largest = 0;
		for (u32 c = 0; c < cols; c++)
			largest = fmax(largest, (double)x[c]);
		for (u32 c = 0; c < cols; c++)
			total += exp((double)x[c] - largest);
		for (u32 c = 0; c < stride && r * stride + c < p->buffers[1].len; c++)
			y[r * stride + c] = c < cols ? exp((double)x[c] - largest) / total : NAN;
	}
	SET_PARAMS(p, stride, stride, cols);
	p->grid[0] = rows;
}

static void make_softmax(struct arena *a, struct problem *p, u32 n)
{
	static const u32 sizes[] = {77, 200, 333, 500};
	softmax_problem(a, p, 5, sizes[n], (const u32[]){31, 63, 95, 127}); /* the ends of the warps */
}

/* A row on the two blocks of a cluster, whole but for a few vectors, and short of one. */
static void make_wide_softmax(struct arena *a, struct problem *p, u32 n)
{
	/* the last lanes of the first and of the last warp */
	softmax_problem(a, p, 3, n ? 1000 : 65504, (const u32[]){127, 8191});
}

static void make_layer_norm(struct arena *a, struct problem *p, u32 n)
{
	enum { ROWS = 2 };
	u32 cols = n ? 512 : 608;
	float eps = 1e-5f;
	add_input(a, p, "x", 2, ROWS * cols);
	double *y = add_output(a, p, "y", 2, ROWS * cols, 1e-5, 0x1.1p-11);
	u32 weight = add_input(a, p, "weight", 2, cols), bias = add_input(a, p, "bias", 2, cols);
	double *means = add_output(a, p, "mean", 4, ROWS, 1e-6, 1e-5),
		*rstds = add_output(a, p, "rstd", 4, ROWS, 1e-6, 1e-5);
	for (u32 r = 0; r < ROWS; r++) {
		double mean = 0, squares = 0;
		for (u32 c = 0; c < cols; c++)
			mean += input(p, 0, r * cols + c) / cols;
		for (u32 c = 0; c < cols; c++)
			squares += pow(input(p, 0, r * cols + c) - mean, 2);
		means[r] = mean;
		rstds[r] = 1 / sqrt(squares / cols + (double)eps);
		for (u32 c = 0; c < cols; c++)
			y[r * cols + c] =
				(input(p, 0, r * cols + c) - mean) * rstds[r] * input(p, weight, c) + input(p, bias, c);
	}
	SET_PARAMS(p, cols, cols, cols, fp_bits_f32(eps));
	p->grid[0] = ROWS;
}

/* --- between warps ----------------------------------------------------------------------------------------------- */

static const char scan_source[] = "import triton\nimport triton.language as tl\n\n"
				  "@triton.jit\n"
				  "def scan_kernel(x_ptr: '*fp32:16', y_ptr: '*fp32:16', N: tl.constexpr = 512):\n"
				  "    i = tl.arange(0, N)\n"
				  "    tl.store(y_ptr + i, tl.cumsum(tl.load(x_ptr + i), axis=0))\n";

static void make_scan(struct arena *a, struct problem *p, u32 n)
{
	enum { N = 512 };
	(void)n;
	add_input(a, p, "x", 4, N);
	double *y = add_output(a, p, "y", 4, N, 1e-4, 1e-6), sum = 0;
	for (u32 k = 0; k < N; k++)
		y[k] = sum += input(p, 0, k);
	SET_PARAMS(p, 0);
	p->nparams--;
	p->grid[0] = 1;
}

/* Column sums are taken twice, so that one pass over the scratch memory follows another. */
static const char columns_source[] =
	"import triton\nimport triton.language as tl\n\n"
	"@triton.jit\n"
	"def columns_kernel(x_ptr: '*fp32:16', sum_ptr: '*fp32:16', t_ptr: '*fp32:16', ROWS: tl.constexpr = "
	"64, COLS: tl.constexpr = 32):\n"
	"    i = tl.arange(0, ROWS)\n"
	"    j = tl.arange(0, COLS)\n"
	"    x = tl.load(x_ptr + i[:, None] * COLS + j[None, :])\n"
	"    mean = tl.sum(x, axis=0) / ROWS\n"
	"    x = x - mean[None, :]\n"
	"    tl.store(sum_ptr + j, tl.sum(x * x, axis=0))\n"
	"    tl.store(t_ptr + j[:, None] * ROWS + i[None, :], tl.trans(x))\n";

static void make_columns(struct arena *a, struct problem *p, u32 n)
{
	enum { ROWS = 64, COLS = 32 };
	(void)n;
	add_input(a, p, "x", 4, ROWS * COLS);
	double *sums = add_output(a, p, "sum", 4, COLS, 1e-4, 1e-5),
		*t = add_output(a, p, "t", 4, ROWS * COLS, 1e-5, 1e-5);
	for (u32 j = 0; j < COLS; j++) {
		double mean = 0;
		for (u32 i = 0; i < ROWS; i++)
			mean += input(p, 0, i * COLS + j) / ROWS;
		for (u32 i = 0; i < ROWS; i++) {
			t[j * ROWS + i] = input(p, 0, i * COLS + j) - mean;
			sums[j] += pow(t[j * ROWS + i], 2);
		}
	}
	SET_PARAMS(p, 0);
	p->nparams--;
	p->grid[0] = 1;
}

/* --- products of products ---------------------------------------------------------------------------------------- */

/* Attention, a block for several tiles: a producer asks for the boxes of all, and two warpgroups take turns from one
 * tile to the next, and meet each by itself. The scale is that of attention_problem, times log2(e). */
static const char tiles_source[] =
	"import triton\nimport triton.language as tl\n\n"
	"@triton.jit\n"
	"def tiles_kernel(q_ptr: '*fp16:16', k_ptr: '*fp16:16', v_ptr: '*fp16:16', o_ptr: '*fp16:16', scale: 'fp32',\n"
	"                 tiles: 'i32', keys: 'i32:64', D: tl.constexpr = 64, M: tl.constexpr = 128,\n"
	"                 N: tl.constexpr = 64):\n"
	"    n = tl.arange(0, N)\n"
	"    d = tl.arange(0, D)\n"
	"    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), warp_specialize=True):\n"
	"        at = (tile * M + tl.arange(0, M))[:, None] * D + d[None, :]\n"
	"        q = (tl.load(q_ptr + at) * scale).to(tl.float16)\n"
	"        acc = tl.zeros((M, D), tl.float32)\n"
	"        total = tl.zeros((M,), tl.float32)\n"
	"        most = tl.full((M,), -1e30, tl.float32)\n"
	"        for first in range(0, keys, N):\n"
	"            k = tl.load(k_ptr + (first + n)[None, :] * D + d[:, None])\n"
	"            v = tl.load(v_ptr + (first + n)[:, None] * D + d[None, :])\n"
	"            s = tl.dot(q, k)\n"
	"            now = tl.maximum(most, tl.max(s, 1))\n"
	"            p = tl.exp2(s - now[:, None])\n"
	"            shrink = tl.exp2(most - now)\n"
	"            total = total * shrink + tl.sum(p, 1)\n"
	"            acc = tl.dot(p.to(tl.float16), v, acc * shrink[:, None])\n"
	"            most = now\n"
	"        tl.store(o_ptr + at, (acc / total[:, None]).to(tl.float16))\n";

static void make_tiles(struct arena *a, struct problem *p, u32 n)
{
	static const u32 keys[] = {384, 256};
	attention_problem(a, p, keys[n], 64, 128, false);
	SET_PARAMS(p, fp_bits_f32(0.25f * 1.44269504f), keys[n] / 128, keys[n]);
	p->grid[0] = 1;
}

/* d = cᵀ c with c = a b in fp16: c reaches the second product by stmatrix, transposed through scratch memory, and as it
 * is. */
static const char gram_source[] =
	"import triton\nimport triton.language as tl\n\n"
	"@triton.jit\n"
	"def gram_kernel(a_ptr: '*fp16:16', b_ptr: '*fp16:16', d_ptr: '*fp32:16', N: tl.constexpr "
	"= 64, K: tl.constexpr = 16):\n"
	"    n = tl.arange(0, N)\n"
	"    k = tl.arange(0, K)\n"
	"    a = tl.load(a_ptr + n[:, None] * K + k[None, :])\n"
	"    b = tl.load(b_ptr + k[:, None] * N + n[None, :])\n"
	"    c = tl.dot(a, b).to(tl.float16)\n"
	"    tl.store(d_ptr + n[:, None] * N + n[None, :], tl.dot(c.T, c))\n";

static void make_gram(struct arena *a, struct problem *p, u32 n)
{
	enum { N = 64, K = 16 };
	(void)n;
	u32 x = add_input(a, p, "a", 2, N * K), y = add_input(a, p, "b", 2, K * N);
	double *want = add_output(a, p, "d", 4, N * N, 0.05, 1e-3), c[N][N] = {{0}};
	for (u32 i = 0; i < N; i++)
		for (u32 j = 0; j < N; j++) {
			for (u32 k = 0; k < K; k++)
				c[i][j] += input(p, x, i * K + k) * input(p, y, k * N + j);
			c[i][j] = rounded(c[i][j]);
		}
	for (u32 i = 0; i < N * N; i++)
		for (u32 k = 0; k < N; k++)
			want[i] += c[k][i / N] * c[k][i % N];
	SET_PARAMS(p, 0);
	p->nparams--;
	p->grid[0] = 1;
}

/* --- all of them ------------------------------------------------------------------------------------------------- */

const struct workload workloads[] = {
	{"matmul", "examples/matmul.tl", NULL, "matmul_kernel", {80, false}, 4,
	 {[5] = {.type = "i32:8"}, [6] = {.type = "i32:8"}, [12] = {.constant = "64"}, {.constant = "64"},
	  {.constant = "32"}}, 6, make_matmul, ALL_KINDS},
	{"matmul Bt 90a", "examples/matmul.tl", NULL, "matmul_kernel", {90, true}, 8,
	 {[5] = {.type = "i32:8"}, [6] = {.type = "i32:8"}, [8] = {.type = "i32:1"}, {.type = "i32:8"},
	  [12] = {.constant = "64"}, {.constant = "32"}, {.constant = "64"}},
	 6, make_matmul_transposed, ALL_KINDS},
	{"matmul tf32 90a", "examples/matmul.tl", NULL, "matmul_kernel", {90, true}, 4,
	 {{.type = "*fp32:16"}, {.type = "*fp32:16"}, {.type = "*fp32:16"}, [5] = {.type = "i32:4"}, {.type = "i32:4"},
	  [12] = {.constant = "16"}, {.constant = "64"}, {.constant = "32"}},
	 5, make_matmul_fetched, ALL_KINDS},
	{"matmul bytes 90a", "examples/matmul.tl", NULL, "matmul_kernel", {90, true}, 4,
	 {{.type = "*fp8e4nv:16"}, {.type = "*fp8e4nv:16"}, [12] = {.constant = "64"}, {.constant = "64"},
	  {.constant = "64"}}, 4, make_matmul_bytes,
	 FLOW_KINDS | 1 << SHARED | 1 << SWIZZLE},
	{"matmul turned 90a", "examples/matmul.tl", NULL, "matmul_kernel", {90, true}, 4,
	 {{.type = "*fp8e4nv:16"}, {.type = "*fp8e4nv:16"}, [6] = {.type = "i32:1"}, {.type = "i32:16"},
	  [12] = {.constant = "64"}, {.constant = "64"}, {.constant = "64"}}, 4, make_matmul_turned,
	 FLOW_KINDS | 1 << SHARED | 1 << SWIZZLE},
	{"matmul tail 90a", "examples/matmul.tl", NULL, "matmul_kernel", {90, true}, 8,
	 {[5] = {.type = "i32:4"}, [6] = {.type = "i32:8"}, [8] = {.type = "i32:1"}, {.type = "i32:8"},
	  [12] = {.constant = "64"}, {.constant = "32"}, {.constant = "64"}},
	 6, make_matmul_transposed, ALL_KINDS},
	{"matmul persistent 90a", "examples/matmul_persistent.tl", NULL, "matmul_persistent_kernel", {90, true}, 4,
	 {[5] = {.type = "i32:8"}, [6] = {.type = "i32:8"}, [12] = {.constant = "64"}, {.constant = "32"},
	  {.constant = "32"}}, 6, make_matmul_persistent, FLOW_KINDS},
	{"matmul produced 90a", "examples/matmul_persistent.tl", NULL, "matmul_persistent_kernel", {90, true}, 4,
	 {[3] = {.type = "i32:64"}, {.type = "i32:64"}, {.type = "i32:256"}, [12] = {.constant = "64"},
	  {.constant = "64"}, {.constant = "256"}}, 4, make_matmul_produced,
	 FLOW_KINDS},
	{"attention", "examples/attention.tl", NULL, "attention_kernel", {80, false}, 4,
	 {[19] = {.constant = "32"}, {.constant = "64"}, {.constant = "32"}}, 4, make_attention, ALL_KINDS},
	{"attention causal", "examples/attention.tl", NULL, "attention_kernel", {90, true}, 4,
	 {[19] = {.constant = "32"}, {.constant = "64"}, {.constant = "16"}, {.constant = "True"}}, 4, make_causal,
		 ALL_KINDS},
	{"attention boxes", "examples/attention.tl", NULL, "attention_kernel", {90, true}, 8,
	 {[19] = {.constant = "32"}, {.constant = "128"}, {.constant = "16"}, {.constant = "True"}}, 2, make_boxes,
		 ASYNC_KINDS},
	{"attention tiles", NULL, tiles_source, "tiles_kernel", {90, true}, 8, {{0}}, 2, make_tiles, ASYNC_KINDS},
	{"softmax", "examples/softmax.tl", NULL, "softmax_kernel", {80, false}, 4, {[5] = {.constant = "512"}}, 4,
	 make_softmax, ALL_KINDS},
	{"softmax cluster", "examples/softmax.tl", NULL, "softmax_kernel", {90, true}, 32,
	 {[4] = {.type = "i32:16"}, {.constant = "65536"}}, 2,
	 make_wide_softmax, ALL_KINDS},
	{"layer_norm", "examples/layer_norm.tl", NULL, "layer_norm_kernel", {80, false}, 4,
	 {[10] = {.constant = "256"}}, 2, make_layer_norm, ALL_KINDS},
	{"scan", NULL, scan_source, "scan_kernel", {80, false}, 4, {{0}}, 1, make_scan, ALL_KINDS},
	{"gram", NULL, gram_source, "gram_kernel", {90, true}, 4, {{0}}, 1, make_gram, ALL_KINDS},
	{"columns", NULL, columns_source, "columns_kernel", {90, true}, 8, {{0}}, 1, make_columns, ALL_KINDS},
};
const u32 nworkloads = ARRAY_LEN(workloads);
