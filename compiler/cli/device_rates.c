/* The device's rates of copies and dots, with which `tlc bench` compares its measurements. */
#include "runtime/device/device.h"
#include "cli/cmd_bench.h"

enum { ROWS = 128, COLUMNS = 256, WARPS = 8, RUNS = 10 };

static const char kernels[] = "@triton.jit\n"
			      "def copy(y, x, B: tl.constexpr):\n"
			      "    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)\n"
			      "    tl.store(y + i, tl.load(x + i))\n"
			      "\n"
			      "@triton.jit\n"
			      "def dots(out, n, T: tl.constexpr, K: tl.constexpr):\n"
			      "    i, j, k = tl.arange(0, 128), tl.arange(0, 256), tl.arange(0, K)\n"
			      "    a = ((i[:, None] * 5 + k[None, :] * 3) % 7 - 3).to(T)\n"
			      "    b = ((k[:, None] * 3 + j[None, :] * 5) % 7 - 3).to(T)\n"
			      "    acc = tl.zeros((128, 256), tl.int32 if T == tl.int8 else tl.float32)\n"
			      "    for _ in range(n):\n"
			      "        acc = tl.dot(a, b, acc)\n"
			      "    tl.store(out + tl.program_id(0) * 128 + i, tl.sum(acc, 1).to(tl.float32))\n";

/* The median rate of copies from one buffer to the other, in GB/s. */
static tl_status copies(tl_context *ctx, tl_buffer *to, tl_buffer *from, tl_event *begin, tl_event *end, double *out)
{
	double ms[RUNS];
	size_t bytes = tl_buffer_size(from);
	tl_status s = tl_buffer_fill(from, 1);
	for (int i = -2; i < RUNS && !s; i++) { /* two copies are not timed */
		if (!(s = tl_event_record(begin, NULL)) && !(s = tl_buffer_copy_async(to, 0, from, 0, bytes, NULL)) &&
		    !(s = tl_event_record(end, NULL)) && !(s = tl_event_synchronize(end)))
			s = tl_event_elapsed(begin, end, &ms[MAX(i, 0)]);
	}
	*out = s ? 0 : 2 * (double)bytes / median(ms, RUNS) * 1e-6;
	return s ? s : tl_synchronize(ctx);
}

static tl_status find_kernel(tl_context *ctx, const char *name, tl_kernel **out)
{
	tl_module *m;
	tl_status s = tl_module_load_source(ctx, "rates.tl", kernels, sizeof kernels - 1, &m);
	return s ? s : tl_module_kernel(m, name, out);
}

/* The faster of the driver's copy and a kernel's copy. The buffers have 256 MB on a GPU, 64 MB on other devices, or
 * less if memory is short. */
static tl_status measure_copy(tl_context *ctx, const tl_device_info *device, double *out)
{
	enum { BLOCK = 4096 };
	tl_buffer *to = NULL, *from = NULL;
	tl_event *begin = NULL, *end = NULL;
	tl_kernel *kernel;
	double ms;
	size_t bytes = (size_t)(!strcmp(device->kind, "cuda") ? 512 : 128) << 20;
	tl_status s = TL_ERR_MEMORY;
	while (s == TL_ERR_MEMORY && (bytes /= 2) >> 20)
		if (!(s = tl_buffer_create(ctx, bytes, &to)) && (s = tl_buffer_create(ctx, bytes, &from)))
			tl_buffer_destroy(to);
	if (s || (s = tl_event_create(ctx, &begin)) || (s = tl_event_create(ctx, &end)) ||
	    (s = copies(ctx, to, from, begin, end, out)) || !strcmp(device->kind, "interp") ||
	    (s = find_kernel(ctx, "copy", &kernel)))
		return s;
	const tl_arg args[] = {tl_buf(TL_I32, to), tl_buf(TL_I32, from), tl_int(BLOCK)};
	const tl_config config = {.grid = {(u32)(bytes / 4 / BLOCK)}};
	if (!(s = tl_time(kernel, &config, args, ARRAY_LEN(args), 2, RUNS, &ms)))
		*out = MAX(*out, 2 * (double)bytes / ms * 1e-6);
	return s;
}

/* TFLOPS of dots on tiles that fit the shared memory. */
static tl_status measure_dots(tl_context *ctx, const tl_device_info *device, tl_dtype t, double *out)
{
	bool gpu = !strcmp(device->kind, "cuda"), interp = !strcmp(device->kind, "interp");
	u32 programs = interp ? 1 : (u32)device->num_sms;
	i64 k = 128, n = gpu ? 2048 : interp ? 1 : 16;
	tl_kernel *kernel;
	tl_buffer *sums;
	double ms;
	while (gpu && k > 16 && (size_t)k * (ROWS + COLUMNS) * tl_dtype_size(t) > device->shared_bytes)
		k /= 2;
	tl_status s = find_kernel(ctx, "dots", &kernel);
	if (s || (s = tl_buffer_create(ctx, sizeof(float) * ROWS * programs, &sums)))
		return s;
	const tl_arg args[] = {tl_buf(TL_F32, sums), tl_int(n), tl_type(t), tl_int(k)};
	s = tl_time(kernel, &(tl_config){.grid = {programs}, .num_warps = WARPS}, args, ARRAY_LEN(args), interp ? 0 : 3,
		    interp ? 1 : RUNS, &ms);
	*out = s ? 0 : 2.0 * ROWS * COLUMNS * (double)k * (double)n * programs / ms * 1e-9;
	return s;
}

/* The element type of the kernel's first tensor that tensor cores multiply; fp32 as tf32. */
static tl_dtype type_of_dots(const struct session *s)
{
	for (u32 i = 0; i < s->nargs; i++)
		switch (s->args[i].tensor ? s->args[i].dtype : TL_I1) {
		case TL_I8:
		case TL_F8E4M3:
		case TL_F8E5M2:
		case TL_F16:
		case TL_BF16:
		case TL_F32: return s->args[i].dtype;
		default: break;
		}
	return TL_F16;
}

static void not_measured(const tl_context *ctx, const char *what)
{
	fprintf(stderr, "tlc: note: how fast the device %s has not been measured: %s\n", what, tl_error(ctx));
}

void measure_rates(struct command *c, const struct session *s, struct rates *out)
{
	tl_context *ctx;
	*out = (struct rates){.device = arena_str(&c->arena, s->device.spec, strlen(s->device.spec)),
			      .dtype = type_of_dots(s)};
	if (!strcmp(s->device.kind, "sim") || (!c->bytes && !c->flops))
		return;
	if (tl_context_create(s->c->device, &ctx)) {
		not_measured(NULL, "is");
		return;
	}
	if (c->bytes && measure_copy(ctx, &s->device, &out->copy))
		not_measured(ctx, "copies");
	if (c->flops && measure_dots(ctx, &s->device, out->dtype, &out->dots))
		not_measured(ctx, "multiplies");
	tl_context_destroy(ctx);
}
