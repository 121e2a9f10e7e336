/* Devices with host memory. They record allocations, so that every access can be checked. */
#include "runtime/device/host_memory.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "support/byte_map.h"
#include "runtime/image/error.h"

/* Each buffer has a gap on both sides, so that a small overrun does not land in the next buffer unnoticed. The gap
 * costs address space only, because it is never touched. On the device cpu, which checks no access, touching the gap
 * ends the process. ALIGN is the alignment of cuMemAlloc, so that the same variants are compiled. */
enum { ALIGN = 256, GAP = HOST_GUARD, PAGE = 4096, POISON = 0xA5, LARGE = 8 << 20 };
_Static_assert(GAP % PAGE == 0, "a gap is whole pages");

void host_init(struct host_device *d, const struct device_ops *ops, bool tracks_writes)
{
	*d = (struct host_device){.device.ops = ops, .tracks_writes = tracks_writes};
	pthread_mutex_init(&d->lock, NULL);
}

tl_status host_open(const struct device_ops *ops, bool tracks_writes, struct device **out)
{
	struct host_device *d = calloc(1, sizeof *d);
	if (!d)
		return failed(TL_ERR_MEMORY, "out of host memory");
	host_init(d, ops, tracks_writes);
	*out = &d->device;
	return TL_OK;
}

void host_close(struct device *device)
{
	struct host_device *d = (struct host_device *)device;
	pthread_mutex_destroy(&d->lock);
	free(d->ranges);
	free(d->written);
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

void host_info(struct device *device, tl_device_info *out)
{
	cpu_name(out->name, sizeof out->name);
	snprintf(out->target, sizeof out->target, "cpu");
	snprintf(out->spec, sizeof out->spec, "%s", device->ops->name);
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

struct mem_range *range_of(struct mem_range *r, u32 n, const char *p)
{
	u32 above = range_above(r, n, p);
	return above && (size_t)(p - r[above - 1].base) <= r[above - 1].size ? &r[above - 1] : NULL;
}

struct mem_range *host_ranges(struct host_device *d, struct arena *a, u32 *n, u8 *const **written)
{
	struct held h;
	lock_hold(&h, &d->lock);
	*n = d->nranges;
	struct mem_range *ranges = arena_dup(a, d->ranges, *n * sizeof *ranges);
	if (written)
		*written = arena_dup(a, d->written, *n * sizeof *d->written);
	lock_release(&h);
	return ranges;
}

bool host_name_ranges(const struct image *im, const u64 *args, struct mem_range *r, u32 n,
		      const struct mem_range **homes)
{
	bool open = false;
	for (u32 i = 0; i < im->nslots; i++) {
		char *p = (char *)(uintptr_t)args[i];
		if (homes)
			homes[i] = NULL;
		if (!im->slots[i].pointers || !p)
			continue;
		struct mem_range *in = range_of(r, n, p);
		if (!in)
			open = true;
		else if (!in->name)
			in->name = im->slots[i].name;
		if (homes)
			homes[i] = in ? in : &any_memory;
	}
	return open;
}

static bool grow(struct host_device *d)
{
	u32 cap = d->cap ? d->cap * 2 : 16;
	struct mem_range *ranges = realloc(d->ranges, cap * sizeof *ranges);
	if (ranges)
		d->ranges = ranges;
	u8 **written = realloc(d->written, cap * sizeof *written);
	if (written)
		d->written = written;
	if (!ranges || !written)
		return false;
	d->cap = cap;
	return true;
}

static bool add_range(struct host_device *d, char *base, size_t size)
{
	u8 *bits = d->tracks_writes ? calloc(1, size / 8 + 1) : NULL;
	if ((d->tracks_writes && !bits) || (d->nranges == d->cap && !grow(d))) {
		free(bits);
		return false;
	}
	u32 at = range_above(d->ranges, d->nranges, base), behind = d->nranges - at;
	memmove(d->ranges + at + 1, d->ranges + at, behind * sizeof *d->ranges);
	memmove(d->written + at + 1, d->written + at, behind * sizeof *d->written);
	d->ranges[at] = (struct mem_range){.base = base, .size = size};
	d->written[at] = bits;
	d->nranges++;
	return true;
}

void host_mark_written(struct device *device, const char *p, size_t size)
{
	struct host_device *d = (struct host_device *)device;
	if (!d->tracks_writes)
		return;
	pthread_mutex_lock(&d->lock);
	u32 above = range_above(d->ranges, d->nranges, p);
	u8 *bits = above ? d->written[above - 1] : NULL;
	size_t i = bits ? (size_t)(p - d->ranges[above - 1].base) : 0,
	       end = bits ? MIN(i + size, d->ranges[above - 1].size) : 0; /* p may be in memory of the caller's own */
	while (i < end)
		if (i % 8 == 0 && end - i >= 8) {
			bits[i / 8] = 0xFF;
			i += 8;
		} else {
			bits[i / 8] |= (u8)(1u << i % 8);
			i++;
		}
	pthread_mutex_unlock(&d->lock);
}

u64 host_unwritten(struct host_device *d, const char *p, size_t size, u64 *first)
{
	u64 n = 0;
	pthread_mutex_lock(&d->lock);
	u32 above = range_above(d->ranges, d->nranges, p);
	const u8 *bits = above ? d->written[above - 1] : NULL;
	u64 from = bits ? (u64)(p - d->ranges[above - 1].base) : 0;
	if (bits && !bits_all(bits, from, size)) {
		*first = bits_first_clear(bits, from) - from;
		for (u64 i = from + *first; i < from + size; i++)
			n += !(bits[i / 8] >> i % 8 & 1);
	}
	pthread_mutex_unlock(&d->lock);
	return n;
}

/* An empty range counts as one byte, because its address is looked up. */
static bool overlaps(const struct host_device *d, const char *p, size_t size)
{
	u32 above = range_above(d->ranges, d->nranges, p);
	return (above < d->nranges && (size_t)(d->ranges[above].base - p) < size) ||
	       (above && (size_t)(p - d->ranges[above - 1].base) < MAX(d->ranges[above - 1].size, 1));
}

tl_status host_wrap(struct device *device, void *p, size_t size, bool fresh)
{
	struct host_device *d = (struct host_device *)device;
	pthread_mutex_lock(&d->lock);
	bool taken = overlaps(d, p, size), added = !taken && add_range(d, p, size);
	pthread_mutex_unlock(&d->lock);
	if (!added)
		return taken ? failed(TL_ERR_ARGUMENT, "this memory overlaps a buffer of the context")
			     : failed(TL_ERR_MEMORY, "out of host memory");
	if (fresh)
		memset(p, POISON, size);
	else
		host_mark_written(device, p, size);
	return TL_OK;
}

static size_t round_up(size_t size, size_t to)
{
	return (size + to - 1) / to * to;
}

/* A buffer ends at the end of its last page, less the alignment of its start. */
tl_status host_alloc(struct device *device, size_t size, void **out)
{
	size_t pages = round_up(size, PAGE);
	char *map = MAP_FAILED;
	if (size <= memory_size()) /* an overcommitting system would kill the process when the memory is filled */
		map = mmap(NULL, pages + 2 * GAP, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return failed(TL_ERR_MEMORY, "out of memory allocating %zu bytes", size);
	/* The number of a process's mappings is limited. Beyond it the gaps are accessible like the buffers. */
	bool open = !mprotect(map + GAP, pages, PROT_READ | PROT_WRITE) ||
		    !mprotect(map, pages + 2 * GAP, PROT_READ | PROT_WRITE);
	if (size >= LARGE)
		madvise(map + GAP, pages, MADV_HUGEPAGE); /* fewer page faults while it is filled */
	char *p = map + GAP + pages - round_up(size, ALIGN);
	tl_status s = open ? host_wrap(device, p, size, true)
			   : failed(TL_ERR_MEMORY, "out of memory allocating %zu bytes", size);
	if (s)
		munmap(map, pages + 2 * GAP);
	else
		*out = p;
	return s;
}

/* Removes a range and returns its size. */
static size_t remove_range(struct host_device *d, const char *p)
{
	pthread_mutex_lock(&d->lock);
	u32 at = range_above(d->ranges, d->nranges, p) - 1;
	size_t size = d->ranges[at].size;
	free(d->written[at]);
	d->nranges--;
	memmove(d->ranges + at, d->ranges + at + 1, (d->nranges - at) * sizeof *d->ranges);
	memmove(d->written + at, d->written + at + 1, (d->nranges - at) * sizeof *d->written);
	pthread_mutex_unlock(&d->lock);
	return size;
}

void host_unwrap(struct device *device, void *p)
{
	remove_range((struct host_device *)device, p);
}

void host_free(struct device *device, void *p)
{
	size_t size = remove_range((struct host_device *)device, p), pages = round_up(size, PAGE);
	munmap((char *)p + round_up(size, ALIGN) - pages - GAP, pages + 2 * GAP);
}

tl_status host_synchronize(struct device *device)
{
	(void)device;
	return TL_OK;
}

bool host_allocation(struct device *device, const void *p, void **base, size_t *size)
{
	struct host_device *d = (struct host_device *)device;
	pthread_mutex_lock(&d->lock);
	const struct mem_range *r = range_of(d->ranges, d->nranges, p);
	if (r) {
		*base = r->base;
		*size = r->size;
	}
	pthread_mutex_unlock(&d->lock);
	return r;
}

void host_log(const struct device *d, tl_log_kind kind, const char *text, size_t len)
{
	if (d->log)
		d->log(d->log_user, kind, text, len);
	else
		fwrite(text, 1, len, kind == TL_LOG_PRINT ? stdout : stderr);
}

void cpu_print(void *device, const char *text, size_t len)
{
	host_log(device, TL_LOG_PRINT, text, len);
}

double host_now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

tl_status host_check(const struct device_launch *l)
{
	if (!l->cooperative || (u64)l->grid[0] * l->grid[1] * l->grid[2] == 1)
		return TL_OK;
	return failed(TL_ERR_ARGUMENT,
		      "a cooperative grid of more than one program, all running at the same time, needs a GPU");
}

tl_status host_time(struct device *device, const struct device_launch *l, int warmup, int repeats, double *ms)
{
	tl_status s = TL_OK;
	for (int i = -warmup; i < repeats && !s; i++) {
		double start = host_now_ms();
		s = device->ops->launch(device, l);
		if (i >= 0)
			ms[i] = host_now_ms() - start;
	}
	return s;
}
