/* The reference interpreter as a device: host memory, checked.
 *
 * A launch runs on the calling thread (the interpreter adds its own) and has finished when it returns. Every buffer
 * is known to the interpreter, so that an access outside is reported with the parameter it was meant for. Each buffer
 * has unused address space on both sides: a small overrun does not land in the next buffer and pass for correct. */
#include <pthread.h>
#include <stdlib.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "interp/interp.h"
#include "runtime/device.h"
#include "runtime/error.h"

/* The gap costs address space only: it is never touched. ALIGN is what cuMemAlloc gives, so that the same variants
 * are used. */
enum { ALIGN = 256, GAP = 64 * 1024, POISON = 0xA5 };

struct interp {
	struct device device; /* first */
	pthread_mutex_t lock;
	struct mem_range *ranges; /* the live buffers, by address */
	u32 nranges, cap;
};

struct interp_kernel {
	const struct kernel *kernel;
	const struct interp_program *program;
};

/* --- opening ------------------------------------------------------------------------------------------------- */

static tl_status interp_open(int ordinal, struct device **out)
{
	(void)ordinal;
	struct interp *d = calloc(1, sizeof *d);
	if (!d)
		return failed(TL_ERR_MEMORY, "out of host memory");
	d->device.ops = &interp_ops;
	pthread_mutex_init(&d->lock, NULL);
	*out = &d->device;
	return TL_OK;
}

static void interp_close(struct device *device)
{
	struct interp *d = (struct interp *)device;
	pthread_mutex_destroy(&d->lock);
	free(d->ranges);
	free(d);
}

static void cpu_name(char *out, size_t size)
{
	snprintf(out, size, "CPU");
	FILE *f = fopen("/proc/cpuinfo", "r");
	char line[256];
	while (f && fgets(line, sizeof line, f)) {
		const char *value = strchr(line, ':');
		if (strncmp(line, "model name", 10) || !value)
			continue;
		snprintf(out, size, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
		break;
	}
	if (f)
		fclose(f);
}

static size_t memory_size(void)
{
	return (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
}

static void interp_info(struct device *device, tl_device_info *out)
{
	(void)device;
	cpu_name(out->name, sizeof out->name);
	snprintf(out->target, sizeof out->target, "cpu");
	cpu_set_t cpus;
	out->num_sms = sched_getaffinity(0, sizeof cpus, &cpus) ? 1 : CPU_COUNT(&cpus);
	out->memory_bytes = memory_size();
}

/* --- memory -------------------------------------------------------------------------------------------------- */

/* The first range that starts above p. */
static u32 range_above(const struct mem_range *r, u32 n, const char *p)
{
	u32 lo = 0, hi = n;
	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;
		if (r[mid].base > p)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

static bool add_range(struct interp *d, char *base, size_t size)
{
	if (d->nranges == d->cap) {
		u32 cap = d->cap ? d->cap * 2 : 16;
		struct mem_range *more = realloc(d->ranges, cap * sizeof *more);
		if (!more)
			return false;
		d->ranges = more;
		d->cap = cap;
	}
	u32 at = range_above(d->ranges, d->nranges, base);
	memmove(d->ranges + at + 1, d->ranges + at, (d->nranges - at) * sizeof *d->ranges);
	d->ranges[at] = (struct mem_range){.base = base, .size = size};
	d->nranges++;
	return true;
}

static tl_status interp_alloc(struct device *device, size_t size, void **out)
{
	struct interp *d = (struct interp *)device;
	char *p = NULL;
	if (size <= memory_size()) /* the system might promise more, and kill us when it is filled */
		p = aligned_alloc(ALIGN, (size + 2 * GAP + ALIGN) / ALIGN * ALIGN);
	if (!p)
		return failed(TL_ERR_MEMORY, "out of memory allocating %zu bytes", size);
	memset(p + GAP, POISON, size);
	pthread_mutex_lock(&d->lock);
	bool added = add_range(d, p + GAP, size);
	pthread_mutex_unlock(&d->lock);
	if (!added) {
		free(p);
		return failed(TL_ERR_MEMORY, "out of host memory");
	}
	*out = p + GAP;
	return TL_OK;
}

static void interp_free(struct device *device, void *p)
{
	struct interp *d = (struct interp *)device;
	pthread_mutex_lock(&d->lock);
	u32 at = range_above(d->ranges, d->nranges, p) - 1;
	memmove(d->ranges + at, d->ranges + at + 1, (d->nranges - at - 1) * sizeof *d->ranges);
	d->nranges--;
	pthread_mutex_unlock(&d->lock);
	free((char *)p - GAP);
}

static tl_status interp_copy(struct device *device, void *dst, const void *src, size_t size)
{
	(void)device;
	memcpy(dst, src, size);
	return TL_OK;
}

static tl_status interp_fill(struct device *device, void *dst, uint8_t byte, size_t size)
{
	(void)device;
	memset(dst, byte, size);
	return TL_OK;
}

static tl_status interp_synchronize(struct device *device)
{
	(void)device;
	return TL_OK;
}

/* --- kernels ------------------------------------------------------------------------------------------------- */

static bool interp_compile(struct device *device, const struct build *b, struct compiled *out)
{
	(void)device;
	out->kernel = compile_ir(b->unit, b->func, b->args);
	if (out->kernel && b->stage) {
		struct strbuf sb = {.arena = &b->unit->arena};
		kernel_print(out->kernel, &sb);
		out->ttir = sb.at;
	}
	return out->kernel;
}

static tl_status interp_load(struct device *device, struct unit *u, const struct compiled *c, void **out)
{
	(void)device;
	struct interp_kernel *k = arena_new(&u->arena, struct interp_kernel);
	k->kernel = c->kernel;
	k->program = interp_prepare(&u->arena, c->kernel);
	*out = k;
	return TL_OK;
}

static void interp_unload(struct device *device, void *kernel)
{
	(void)device; /* it lives in the unit */
	(void)kernel;
}

/* Names the ranges that pointer arguments fall in. True when one is the caller's own memory, which is not known. NULL
 * is nobody's: using it is an error. */
static bool name_ranges(const struct interp_kernel *k, const u64 *args, struct mem_range *r, u32 n)
{
	bool open = false;
	for (u32 i = 0; i < k->kernel->nparams; i++) {
		char *p = (char *)(uintptr_t)args[i];
		if (k->kernel->params[i].value->type->kind != TY_PTR || !p)
			continue;
		u32 above = range_above(r, n, p);
		struct mem_range *in = above ? &r[above - 1] : NULL;
		if (!in || (size_t)(p - in->base) > in->size) /* the end of a buffer belongs to it: an empty slice */
			open = true;
		else if (!in->name)
			in->name = k->kernel->params[i].name;
	}
	return open;
}

static tl_status interp_launch(struct device *device, const struct device_launch *l)
{
	struct interp *d = (struct interp *)device;
	const struct interp_kernel *k = l->kernel;
	struct arena a = {0};
	pthread_mutex_lock(&d->lock);
	u32 n = d->nranges;
	struct mem_range *ranges = arena_dup(&a, d->ranges, n * sizeof *ranges); /* names are this launch's */
	pthread_mutex_unlock(&d->lock);
	struct interp_launch launch = {.args = l->args, .ranges = ranges, .nranges = n};
	memcpy(launch.grid, l->grid, sizeof launch.grid);
	launch.open = name_ranges(k, l->args, ranges, n);
	struct strbuf error = {.arena = &a};
	tl_status s = TL_OK;
	if (!interp_run(k->program, &launch, &error))
		s = failed_text(TL_ERR_KERNEL, error.at ? error.at : "the kernel failed");
	arena_free(&a);
	return s;
}

static double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static tl_status interp_time(struct device *device, const struct device_launch *l, int warmup, int repeats,
			     double *median_ms)
{
	double *ms = calloc((size_t)repeats, sizeof *ms);
	if (!ms)
		return failed(TL_ERR_MEMORY, "out of host memory");
	tl_status s = TL_OK;
	for (int i = -warmup; i < repeats && !s; i++) {
		double start = now_ms();
		s = interp_launch(device, l);
		if (i >= 0)
			ms[i] = now_ms() - start;
	}
	if (!s)
		*median_ms = median(ms, repeats);
	free(ms);
	return s;
}

const struct device_ops interp_ops = {
	.name = "interp",
	.stages = " ttir ",
	.keeps_unit = true,
	.open = interp_open,
	.close = interp_close,
	.info = interp_info,
	.alloc = interp_alloc,
	.free = interp_free,
	.write = interp_copy,
	.read = interp_copy,
	.fill = interp_fill,
	.compile = interp_compile,
	.load = interp_load,
	.unload = interp_unload,
	.launch = interp_launch,
	.time = interp_time,
	.synchronize = interp_synchronize,
};
