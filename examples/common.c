#include "common.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 256 }; /* guard elements after a tensor */

static void usage(const char *program)
{
	fprintf(stderr, "usage: %s [--device D] [--kernels DIR] [--small | --large] [--no-header]\n", program);
	exit(2);
}

void demo_open(struct demo *d, int argc, char **argv)
{
	const char *device = NULL;
	bool header = true;
	int large = -1;
	*d = (struct demo){.kernels = "examples", .random = 42};
	for (int i = 1; i < argc; i++) {
		const char *option = argv[i];
		if (!strcmp(option, "--small") || !strcmp(option, "--large"))
			large = !strcmp(option, "--large");
		else if (!strcmp(option, "--no-header"))
			header = false;
		else if (i + 1 < argc && !strcmp(option, "--device"))
			device = argv[++i];
		else if (i + 1 < argc && !strcmp(option, "--kernels"))
			d->kernels = argv[++i];
		else
			usage(argv[0]);
	}
	must(tl_context_create(device, &d->ctx));
	must(tl_device(d->ctx, &d->device));
	bool gpu = !strcmp(d->device.kind, "cuda");
	d->large = large < 0 ? gpu : large;
	d->warmup = gpu ? 5 : 0;
	d->repeats = gpu ? 20 : 1;
	if (header)
		printf("%s: %s\n"
		       "error: the worst |result - x|, where x is the reference; "
		       "used: the worst as a part of what is allowed\n"
		       "%-18s %-34s %-6s %8s %18s %4s %12s %9s\n", d->device.kind, d->device.name, "kernel", "size",
		       "device", "error", "allowed", "used", "speed", "compared");
	fflush(stdout);
}

int demo_close(struct demo *d)
{
	tl_context_destroy(d->ctx);
	return d->wrong > 0;
}

void must(tl_status s)
{
	if (s) {
		fprintf(stderr, "%s: %s\n", tl_status_name(s), tl_error(NULL));
		exit(2);
	}
}

tl_kernel *load_kernel(struct demo *d, const char *file, const char *name)
{
	char path[1024];
	tl_module *module;
	tl_kernel *kernel;
	snprintf(path, sizeof path, "%s/%s", d->kernels, file);
	must(tl_module_load(d->ctx, path, &module));
	must(tl_module_kernel(module, name, &kernel));
	return kernel;
}

/* --- numbers ------------------------------------------------------------------------------------------------- */

/* SplitMix64 (Steele, Lea and Flood, 2014). */
static uint64_t next_random(struct demo *d)
{
	uint64_t z = d->random += 0x9E3779B97F4A7C15u;
	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return z ^ z >> 31;
}

static double uniform(struct demo *d) /* from 0 to 1 */
{
	return (double)(next_random(d) >> 11) * 0x1p-53;
}

/* The sum of four uniform numbers: approximately normal, and fast to compute. */
static double normal(struct demo *d)
{
	uint64_t z = next_random(d);
	double sum = (double)(z & 0xFFFF) + (double)(z >> 16 & 0xFFFF) + (double)(z >> 32 & 0xFFFF) + (double)(z >> 48);
	return (sum * 0x1p-16 - 2) * 1.7320508075688772;
}

static uint32_t float_bits(float x)
{
	uint32_t u;
	memcpy(&u, &x, sizeof u);
	return u;
}

static float float_of(uint32_t u)
{
	float x;
	memcpy(&x, &u, sizeof x);
	return x;
}

/* Rounds to nearest, ties to even. For numbers other than NaN. */
static uint16_t bf16_bits(float x)
{
	uint32_t u = float_bits(x);
	return (uint16_t)((u + 0x7FFF + (u >> 16 & 1)) >> 16);
}

static uint16_t fp16_bits(float x)
{
	uint32_t sign = float_bits(x) >> 16 & 0x8000, u = float_bits(fabsf(x));
	if (u < float_bits(0x1p-14f)) /* subnormal, or rounded up to the smallest normal number */
		return (uint16_t)(sign | (uint32_t)lrintf(float_of(u) * 0x1p24f));
	if (u >= float_bits(65520))
		return (uint16_t)(sign | 0x7C00);
	return (uint16_t)(sign | (((u + 0xFFF + (u >> 13 & 1)) >> 13) - (112 << 10)));
}

static float fp16_value(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = (uint32_t)(h & 0x7FFF) << 13;
	if (rest >= 0x1Fu << 23) /* infinite or NaN */
		return float_of(sign | rest | 0xFFu << 23);
	return float_of(sign | float_bits(float_of(rest) * 0x1p112f));
}

static void put(struct tensor *t, size_t i, double x)
{
	switch (t->dtype) {
	case TL_F16: ((uint16_t *)t->host)[i] = fp16_bits((float)x); return;
	case TL_BF16: ((uint16_t *)t->host)[i] = bf16_bits((float)x); return;
	case TL_F32: ((float *)t->host)[i] = (float)x; return;
	case TL_I8: ((int8_t *)t->host)[i] = (int8_t)x; return;
	case TL_I32: ((int32_t *)t->host)[i] = (int32_t)x; return;
	default: abort(); /* not used by the examples */
	}
}

double tensor_get(const struct tensor *t, size_t i)
{
	switch (t->dtype) {
	case TL_F16: return (double)fp16_value(((const uint16_t *)t->host)[i]);
	case TL_BF16: return (double)float_of((uint32_t)((const uint16_t *)t->host)[i] << 16);
	case TL_F32: return (double)((const float *)t->host)[i];
	case TL_I8: return ((const int8_t *)t->host)[i];
	case TL_I32: return ((const int32_t *)t->host)[i];
	default: abort();
	}
}

static bool is_float(tl_dtype t)
{
	return t >= TL_F8E4M3;
}

double unit_roundoff(tl_dtype t)
{
	return t == TL_F16 ? 0x1p-11 : t == TL_BF16 ? 0x1p-8 : t == TL_F32 ? 0x1p-24 : 0;
}

/* --- tensors ------------------------------------------------------------------------------------------------- */

static unsigned char poison(tl_dtype t)
{
	return is_float(t) ? 0xFF : 0x81; /* every byte 0xFF is a NaN */
}

static struct tensor new_tensor(struct demo *d, tl_dtype t, size_t len)
{
	struct tensor x = {.dtype = t, .len = len};
	size_t bytes = (len + GUARD) * tl_dtype_size(t);
	x.host = malloc(bytes);
	if (!x.host) {
		fprintf(stderr, "out of memory\n");
		exit(2);
	}
	memset(x.host, poison(t), bytes);
	must(tl_buffer_create(d->ctx, bytes, &x.buffer));
	return x;
}

struct tensor tensor_random(struct demo *d, tl_dtype t, size_t len, double mean, double scale)
{
	struct tensor x = new_tensor(d, t, len);
	for (size_t i = 0; i < len; i++)
		put(&x, i, is_float(t) ? mean + scale * normal(d) : floor(mean - scale + (2 * scale + 1) * uniform(d)));
	must(tl_buffer_write(x.buffer, 0, x.host, tl_buffer_size(x.buffer)));
	return x;
}

struct tensor tensor_output(struct demo *d, tl_dtype t, size_t len)
{
	struct tensor x = new_tensor(d, t, len);
	must(tl_buffer_write(x.buffer, 0, x.host, tl_buffer_size(x.buffer)));
	return x;
}

void tensor_free(struct tensor *t)
{
	tl_buffer_destroy(t->buffer);
	free(t->host);
}

/* --- results ------------------------------------------------------------------------------------------------- */

void check(struct result *r, tl_status s)
{
	if (!s)
		return;
	if (!r->failed)
		fprintf(stderr, "%s %s: %s: %s\n", r->kernel, r->what, tl_status_name(s), tl_error(NULL));
	r->failed = true;
}

void read_back(struct result *r, struct tensor *t)
{
	if (!r->failed)
		check(r, tl_buffer_read(t->buffer, 0, t->host, tl_buffer_size(t->buffer)));
}

/* The larger error; NaN is the largest. */
static double worse(double a, double b)
{
	return isnan(a) || a > b ? a : b;
}

void compare(struct result *r, struct tensor *out, size_t i, double want)
{
	double got = tensor_get(out, i), error = fabs(got - want);
	double share = error == 0 ? 0 : error / (r->absolute + r->relative * fabs(want));
	if (!(share <= 1) && !r->failed && !r->bad++) /* NaN is not <= 1 */
		fprintf(stderr, "%s %s: element %zu is %.9g instead of %.9g\n", r->kernel, r->what, i, got, want);
	r->error = worse(r->error, error);
	r->share = worse(r->share, share);
	r->compared++;
	size_t size = tl_dtype_size(out->dtype);
	memset((char *)out->host + i * size, poison(out->dtype), size);
}

void compare_rest(struct result *r, const struct tensor *out)
{
	size_t size = tl_dtype_size(out->dtype), start = r->samples ? out->len * size : 0;
	const unsigned char *bytes = out->host;
	for (size_t i = start; i < (out->len + GUARD) * size; i++)
		if (bytes[i] != poison(out->dtype) && !r->outside++)
			fprintf(stderr, "%s %s: element %zu was written and should not have been\n", r->kernel, r->what,
				i / size);
}

void report(struct demo *d, const struct result *r, double bytes, double flops)
{
	char allowed[48], error[48] = "-", used[48] = "-", speed[48] = "-", compared[48] = "all";
	double rate = (bytes + flops) / (r->ms * 1e-3);
	bool count = flops > 0, tera = count && rate >= 1e12, wrong = r->failed || r->bad || r->outside || !r->compared;
	snprintf(allowed, sizeof allowed, "%.2g + %.2g|x|", r->absolute, r->relative);
	if (!r->failed) {
		snprintf(error, sizeof error, "%.2g", r->error);
		snprintf(used, sizeof used, r->share < 100 ? "%.2f" : ">99", r->share);
		snprintf(speed, sizeof speed, "%.3g %s", rate / (tera ? 1e12 : 1e9),
			 !count ? "GB/s" : tera ? "TFLOPS" : "GFLOPS");
	}
	if (r->samples)
		snprintf(compared, sizeof compared, "%zu rows", r->samples);
	printf("%-18s %-34s %-6s %8s %18s %4s %12s %9s  %s\n", r->kernel, r->what, d->device.kind, error, allowed, used,
	       speed, compared, wrong ? "WRONG" : "right");
	fflush(stdout);
	d->wrong += wrong;
}
