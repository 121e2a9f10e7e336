/* articles DIR [DEVICE]: runs the kernels that extract.sh left in DIR and compares each with a reference computed in
 * double precision. Two of them are wrong as published; `wrong` says why, and the test is that we can show it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tl.h"

static tl_context *ctx;
static const char *dir;
static int passed, failed;

static void need(tl_status s, const char *what)
{
	if (s == TL_OK)
		return;
	fprintf(stderr, "%s: %s\n", what, tl_error(ctx));
	exit(2);
}

static uint64_t state = 42;
/* Uniform in [-1, 1). */
static double uniform(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (double)(state >> 11) * 0x1p-52 - 1;
}

/* A host array of floats and its copy on the device as fp16 or fp32. fp16 values are rounded on the host too, so that
 * the reference reads what the kernel reads. */
struct array {
	tl_dtype dtype;
	size_t n;
	double *host;
	tl_buffer *dev;
};

static double round_to(tl_dtype t, double v) { return t == TL_F16 ? (double)(_Float16)v : (double)(float)v; }

static void upload(struct array *a)
{
	size_t size = tl_dtype_size(a->dtype);
	unsigned char *raw = malloc(a->n * size);
	for (size_t i = 0; i < a->n; i++) {
		float f = (float)a->host[i];
		_Float16 h = (_Float16)a->host[i];
		memcpy(raw + i * size, a->dtype == TL_F16 ? (void *)&h : (void *)&f, size);
	}
	need(tl_buffer_write(a->dev, 0, raw, a->n * size), "write");
	free(raw);
}

static struct array make(tl_dtype t, size_t n, bool poison)
{
	struct array a = {t, n, malloc(n * sizeof(double)), NULL};
	need(tl_buffer_create(ctx, n * tl_dtype_size(t), &a.dev), "allocate");
	for (size_t i = 0; i < n; i++)
		a.host[i] = round_to(t, uniform());
	upload(&a);
	if (poison)
		need(tl_buffer_fill(a.dev, 0xff), "poison"); /* NaN in every format */
	return a;
}

static struct array in(tl_dtype t, size_t n) { return make(t, n, false); }
static struct array out(tl_dtype t, size_t n) { return make(t, n, true); }

/* The largest |device - want|, relative to 1 + |want|; infinite where the device has a NaN. */
static double worst(const struct array *a, const double *want)
{
	size_t size = tl_dtype_size(a->dtype);
	unsigned char *raw = malloc(a->n * size);
	need(tl_buffer_read(a->dev, 0, raw, a->n * size), "read");
	double w = 0;
	for (size_t i = 0; i < a->n; i++) {
		float f;
		_Float16 h;
		memcpy(a->dtype == TL_F16 ? (void *)&h : (void *)&f, raw + i * size, size);
		double v = a->dtype == TL_F16 ? (double)h : (double)f, e = fabs(v - want[i]) / (1 + fabs(want[i]));
		w = e <= w ? w : isnan(e) ? INFINITY : e;
	}
	free(raw);
	return w;
}

static void drop(struct array *a)
{
	tl_buffer_destroy(a->dev);
	free(a->host);
}

static void verdict(const char *file, bool ok, double err, const char *note)
{
	printf("%-16s %-6s error %.2g%s%s\n", file, ok ? "ok" : "WRONG", err, *note ? ": " : "", note);
	*(ok ? &passed : &failed) += 1;
}

static tl_status launch(const char *file, const char *kernel, tl_config cfg, const tl_arg *args, size_t n)
{
	char path[512];
	snprintf(path, sizeof path, "%s/%s.py", dir, file);
	tl_module *m;
	tl_kernel *k;
	need(tl_module_load(ctx, path, &m), path);
	need(tl_module_kernel(m, kernel, &k), path);
	tl_status s = tl_launch(k, &cfg, args, n);
	if (s == TL_OK)
		s = tl_synchronize(ctx);
	tl_module_destroy(m);
	return s;
}
#define LAUNCH(file, kernel, cfg, ...) \
	launch(file, kernel, (tl_config)cfg, (tl_arg[]){__VA_ARGS__}, sizeof((tl_arg[]){__VA_ARGS__}) / sizeof(tl_arg))
#define GRID(...) {.grid = {__VA_ARGS__}}

static void add(const char *file, const char *kernel, int n, int block)
{
	struct array x = in(TL_F32, n), y = in(TL_F32, n), o = out(TL_F32, n);
	double *want = malloc(n * sizeof *want);
	for (int i = 0; i < n; i++)
		want[i] = x.host[i] + y.host[i];
	need(LAUNCH(file, kernel, GRID((n + block - 1) / block), tl_buf(TL_F32, x.dev), tl_buf(TL_F32, y.dev),
		    tl_buf(TL_F32, o.dev), tl_int(n), tl_int(block)), file);
	double e = worst(&o, want);
	verdict(file, e < 1e-7, e, "");
	drop(&x), drop(&y), drop(&o), free(want);
}

enum softmax_form { ROW, ROW_ONE_STRIDE, PERSISTENT };

static void softmax(const char *file, const char *kernel, enum softmax_form form, tl_dtype t, int rows, int cols,
		    int stride)
{
	struct array x = in(t, (size_t)rows * stride), o = out(t, (size_t)rows * stride);
	double *want = malloc(o.n * sizeof *want);
	memcpy(want, o.host, o.n * sizeof *want);
	upload(&o); /* the gaps between rows must survive; the rest is overwritten */
	for (int r = 0; r < rows; r++) {
		double sum = 0, *row = x.host + (size_t)r * stride;
		for (int c = 0; c < cols; c++)
			sum += exp(row[c]);
		for (int c = 0; c < cols; c++)
			want[(size_t)r * stride + c] = exp(row[c]) / sum;
	}
	int block = 1;
	while (block < cols)
		block *= 2;
	tl_arg X = tl_buf(t, x.dev), O = tl_buf(t, o.dev), S = tl_int(stride), N = tl_int(cols), B = tl_int(block);
	if (form == ROW)
		need(LAUNCH(file, kernel, GRID(rows), O, X, S, S, N, B), file);
	else if (form == ROW_ONE_STRIDE)
		need(LAUNCH(file, kernel, GRID(rows), X, O, N, S, B), file);
	else
		need(LAUNCH(file, kernel, GRID(7), X, O, S, S, tl_int(rows), N, B, tl_int(2)), file);
	double e = worst(&o, want);
	verdict(file, e < (t == TL_F16 ? 1e-3 : 1e-6), e, t == TL_F16 ? "fp16" : "fp32");
	drop(&x), drop(&o), free(want);
}

static void mean(const char *file, tl_dtype t, int M, int N, int K)
{
	struct array x = in(t, (size_t)M * N * K), o = out(t, (size_t)M * K);
	double *want = malloc(o.n * sizeof *want);
	for (int m = 0; m < M; m++)
		for (int k = 0; k < K; k++) {
			double s = 0;
			for (int n = 0; n < N; n++)
				s += x.host[((size_t)m * N + n) * K + k];
			want[m * K + k] = s / N;
		}
	need(LAUNCH(file, "mean_kernel", GRID((unsigned)(M * K)), tl_buf(t, x.dev), tl_buf(t, o.dev), tl_int(N * K),
		    tl_int(K), tl_int(1), tl_int(K), tl_int(1), tl_int(M), tl_int(N), tl_int(K), tl_int(1024)),
	     file);
	double e = worst(&o, want);
	verdict(file, e < (t == TL_F16 ? 1e-3 : 1e-6), e, t == TL_F16 ? "fp16" : "fp32");
	drop(&x), drop(&o), free(want);
}

static void layer_norm(const char *file, int M, int N)
{
	const double eps = 1e-5;
	struct array x = in(TL_F32, (size_t)M * N), w = in(TL_F32, N), b = in(TL_F32, N),
		     y = out(TL_F32, (size_t)M * N), mu = out(TL_F32, M), rs = out(TL_F32, M);
	double *want = malloc(y.n * sizeof *want), *want_mu = malloc(M * sizeof *want),
	       *want_rs = malloc(M * sizeof *want);
	for (int m = 0; m < M; m++) {
		double *row = x.host + (size_t)m * N, s = 0, v = 0;
		for (int n = 0; n < N; n++)
			s += row[n] / N;
		for (int n = 0; n < N; n++)
			v += (row[n] - s) * (row[n] - s) / N;
		want_mu[m] = s, want_rs[m] = 1 / sqrt(v + eps);
		for (int n = 0; n < N; n++)
			want[(size_t)m * N + n] = (row[n] - s) * want_rs[m] * w.host[n] + b.host[n];
	}
	need(LAUNCH(file, "layer_norm_kernel", GRID((unsigned)M), tl_buf(TL_F32, x.dev), tl_buf(TL_F32, y.dev),
		    tl_buf(TL_F32, w.dev), tl_buf(TL_F32, b.dev), tl_buf(TL_F32, mu.dev), tl_buf(TL_F32, rs.dev),
		    tl_int(N), tl_int(N), tl_float(eps), tl_int(1024)),
	     file);
	double e = fmax(worst(&y, want), fmax(worst(&mu, want_mu), worst(&rs, want_rs)));
	verdict(file, e < 1e-5, e, "");
	drop(&x), drop(&w), drop(&b), drop(&y), drop(&mu), drop(&rs), free(want), free(want_mu), free(want_rs);
}

/* `wrong`: the published kernel is at fault; the text says how. Then a right answer is the surprise. */
static void matmul(const char *file, const char *kernel, tl_dtype t, int M, int N, int K, int bm, int bn, int bk,
		   int group, const char *wrong)
{
	bool grid2d = group == 0;
	tl_dtype ct = grid2d ? TL_F32 : TL_F16;
	struct array a = in(t, (size_t)M * K), b = in(t, (size_t)K * N), c = out(ct, (size_t)M * N);
	double *want = calloc(c.n, sizeof *want);
	for (int i = 0; i < M; i++)
		for (int k = 0; k < K; k++)
			for (int j = 0; j < N; j++)
				want[(size_t)i * N + j] += a.host[(size_t)i * K + k] * b.host[(size_t)k * N + j];
	unsigned gm = (unsigned)((M + bm - 1) / bm), gn = (unsigned)((N + bn - 1) / bn);
	tl_arg args[] = {tl_buf(t, a.dev), tl_buf(t, b.dev), tl_buf(ct, c.dev), tl_int(M),    tl_int(N), tl_int(K),
			 tl_int(K),        tl_int(1),        tl_int(N),         tl_int(1),    tl_int(N), tl_int(1),
			 tl_int(bm),       tl_int(bn),       tl_int(bk),        tl_int(group)};
	tl_config cfg = grid2d ? (tl_config)GRID(gm, gn) : (tl_config)GRID(gm * gn);
	tl_status s = launch(file, kernel, cfg, args, grid2d ? 15 : 16);
	double e = s == TL_OK ? worst(&c, want) : INFINITY;
	char note[600];
	snprintf(note, sizeof note, "%dx%dx%d%s%s%.300s", M, N, K, wrong ? "; wrong as published: " : "",
		 wrong ? wrong : "",
		 s == TL_OK ? "" : tl_error(ctx));
	verdict(file, (e < 2e-3) == !wrong, e, note);
	drop(&a), drop(&b), drop(&c), free(want);
}

static void rel_attn(const char *file, int B, int H, int S, int D)
{
	size_t n = (size_t)B * H * S * D;
	struct array q = in(TL_F16, n), k = in(TL_F16, n), v = in(TL_F16, n), o = out(TL_F16, n),
		     bias = in(TL_F32, 2 * S - 1);
	double scale = 1 / sqrt(D), *want = calloc(n, sizeof *want), *p = malloc(S * sizeof *p);
	for (size_t bh = 0; bh < (size_t)(B * H); bh++)
		for (int i = 0; i < S; i++) {
			double max = -INFINITY, sum = 0, *qi = q.host + (bh * S + i) * D;
			for (int j = 0; j <= i; j++) {
				p[j] = 0;
				for (int d = 0; d < D; d++)
					p[j] += qi[d] * k.host[(bh * S + j) * D + d];
				p[j] = p[j] * scale + bias.host[i - j + S - 1];
				max = fmax(max, p[j]);
			}
			for (int j = 0; j <= i; j++)
				sum += p[j] = exp(p[j] - max);
			for (int j = 0; j <= i; j++)
				for (int d = 0; d < D; d++)
					want[(bh * S + i) * D + d] += p[j] / sum * v.host[(bh * S + j) * D + d];
		}
	tl_arg st[] = {tl_int(H * S * D), tl_int(S * D), tl_int(D), tl_int(1)};
	need(LAUNCH(file, "rel_attn_kernel", GRID((unsigned)((S + 63) / 64), (unsigned)(B * H)), tl_buf(TL_F16, q.dev),
		    tl_buf(TL_F16, k.dev), tl_buf(TL_F16, v.dev), tl_buf(TL_F32, bias.dev), tl_buf(TL_F16, o.dev),
		    st[0], st[1], st[2], st[3], st[0], st[1], st[2], st[3], st[0], st[1], st[2], st[3], st[0], st[1],
		    st[2], st[3], tl_int(B), tl_int(H), tl_int(S), tl_int(D), tl_float(scale), tl_int(64), tl_int(64),
		    tl_int(D)),
	     file);
	double e = worst(&o, want);
	verdict(file, e < 2e-3, e, "");
	drop(&q), drop(&k), drop(&v), drop(&o), drop(&bias), free(want), free(p);
}

static void doubled(const char *file, int n, int block)
{
	struct array x = in(TL_F32, n), o = out(TL_F32, n);
	double *want = malloc(n * sizeof *want);
	for (int i = 0; i < n; i++)
		want[i] = 2 * x.host[i];
	need(LAUNCH(file, "my_kernel", GRID((unsigned)((n + block - 1) / block)), tl_buf(TL_F32, x.dev),
		    tl_buf(TL_F32, o.dev), tl_int(n), tl_int(block)),
	     file);
	double e = worst(&o, want);
	verdict(file, e == 0, e, "");
	drop(&x), drop(&o), free(want);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: articles DIR [DEVICE]\n");
		return 1;
	}
	dir = argv[1];
	need(tl_context_create(argc > 2 ? argv[2] : NULL, &ctx), "device");
	add("000_add", "add_kernel", 5000, 1024);
	softmax("000_softmax", "softmax_kernel", PERSISTENT, TL_F32, 50, 200, 208);
	softmax("000_softmax", "softmax_kernel", PERSISTENT, TL_F16, 50, 333, 340);
	matmul("000_matmul", "matmul_kernel", TL_F16, 128, 64, 32, 64, 64, 32, 1, NULL);
	matmul("000_matmul", "matmul_kernel", TL_F16, 256, 256, 64, 64, 64, 32, 2,
	       "pid_m adds `pid % num_pid_in_group`, which reaches past the group; "
	       "it should be taken modulo group_size_m");
	matmul("000_matmul", "matmul_kernel", TL_F16, 64, 64, 72, 64, 64, 32, 1,
	       "the masks compare offs_k, which never advances, with K: the last step reads past the row");
	add("001_add", "add_kernel", 1022, 128);
	softmax("001_softmax", "softmax_kernel", ROW, TL_F32, 128, 512, 512);
	softmax("001_softmax", "softmax_kernel", ROW, TL_F16, 9, 777, 801);
	mean("001_mean", TL_F32, 4, 3000, 5);
	mean("001_mean", TL_F16, 3, 100, 7);
	add("002_add", "add_kernel", 1024, 256);
	matmul("002_matmul", "naive_matmul_k", TL_F32, 128, 64, 96, 32, 32, 32, 0, NULL);
	matmul("002_matmul", "naive_matmul_k", TL_F16, 128, 128, 64, 64, 64, 32, 0, NULL);
	softmax("002_softmax", "fused_softmax_k", ROW_ONE_STRIDE, TL_F32, 20, 100, 112);
	doubled("002_debug", 1000, 128);
	add("004_add", "add_triton", 3001, 512);
	softmax("004_softmax", "softmax_kernel", ROW, TL_F32, 32, 1000, 1000);
	layer_norm("004_layer_norm", 20, 1000);
	matmul("004_matmul", "matmul_kernel", TL_F16, 200, 264, 136, 64, 64, 32, 2, NULL);
	rel_attn("004_rel_attn", 1, 2, 200, 64);
	tl_context_destroy(ctx);
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
