/* Checks of the device cpu:check.
 *
 * Elements with neighbouring addresses are checked as one run. For each buffer that the kernel writes there is a word
 * for each element, the program that stored there last in this launch; another one that finds something else there than
 * it stores is an error, unless the kernel has means to order the two. */
#include "runtime/cpu_check.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/bits.h"

enum { LOCKS = 1021, PAGE = 4096 };

struct writers {
	u32 *program; /* + 1; 0: none. NULL: not watched. The lock of its page holds for it too */
	u32 shift;    /* of the bytes that a word stands for */
	size_t bytes;
};

struct checker {
	struct arena arena;
	struct mem_range *ranges;
	u32 nranges;
	u8 *const *written;
	struct writers *writers; /* of each range */
	const struct mem_range **homes;
	u32 nhomes;
	bool open;
	pthread_mutex_t locks[LOCKS]; /* of stores, by page */
};

static u32 element_shift(const struct slot *s)
{
	u32 shift = 0;
	while (s->pointers == 1 && (2 << shift) <= dtype_bytes(s->dtype))
		shift++;
	return s->pointers == 1 ? shift : 0;
}

static void watch(struct checker *c, const struct image *im)
{
	for (u32 i = 0; i < im->nslots; i++) {
		const struct slot *s = &im->slots[i];
		const struct mem_range *home = c->homes[i];
		if (!s->pointers || !home || home == &any_memory)
			continue;
		struct writers *w = &c->writers[home - c->ranges];
		u32 shift = element_shift(s);
		w->shift = w->bytes ? MIN(w->shift, shift) : shift;
		w->bytes = 1;
	}
	for (u32 i = 0; i < c->nranges; i++) {
		struct writers *w = &c->writers[i];
		if (!w->bytes)
			continue;
		w->bytes = ((c->ranges[i].size >> w->shift) + 1) * sizeof *w->program;
		void *p = mmap(NULL, w->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			       0);
		w->program = p == MAP_FAILED ? NULL : p;
		if (w->program)
			madvise(p, w->bytes, MADV_HUGEPAGE); /* faults would take most of the time */
	}
}

struct checker *checker_open(struct host_device *d, const struct device_launch *l, const struct image *im)
{
	struct checker *c = calloc(1, sizeof *c);
	if (!c)
		return NULL;
	c->ranges = host_ranges(d, &c->arena, &c->nranges, &c->written);
	c->nhomes = im->nslots;
	c->homes = arena_array(&c->arena, const struct mem_range *, im->nslots + 1u);
	c->open = host_name_ranges(im, l->args, c->ranges, c->nranges, c->homes);
	c->writers = arena_array(&c->arena, struct writers, c->nranges + 1u);
	memset(c->writers, 0, (c->nranges + 1u) * sizeof *c->writers);
	if (!im->waits)
		watch(c, im);
	for (u32 i = 0; i < LOCKS; i++)
		pthread_mutex_init(&c->locks[i], NULL);
	return c;
}

void checker_close(struct checker *c)
{
	for (u32 i = 0; i < c->nranges; i++)
		if (c->writers[i].program)
			munmap((void *)c->writers[i].program, c->writers[i].bytes);
	for (u32 i = 0; i < LOCKS; i++)
		pthread_mutex_destroy(&c->locks[i]);
	arena_free(&c->arena);
	free(c);
}

/* --- accesses ---------------------------------------------------------------------------------------------------- */

struct access {
	struct checker *checker;
	const struct host_site *site;
	const struct mem_range *home;
	u64 program;
	struct strbuf *out;
	u32 fault; /* the element at fault */
};

static const char *verb(const struct host_site *s)
{
	return s->kind == HOST_LOAD ? "load" : s->kind == HOST_STORE ? "store" : "atomic";
}

/* The range around these bytes that the access may touch. */
static const struct mem_range *range_around(const struct access *a, u64 address, u64 bytes)
{
	const struct checker *c = a->checker;
	if (a->home != &any_memory)
		return a->home && range_has(a->home, address, bytes) ? a->home : NULL;
	u32 below = ranges_below(c->ranges, c->nranges, address);
	return below && range_has(&c->ranges[below - 1], address, bytes) ? &c->ranges[below - 1] : NULL;
}

static const char *name_of(const struct mem_range *r)
{
	return r->name ? r->name : "a buffer";
}

static bool was_written(struct access *a, const struct mem_range *r, u64 address, u64 bytes, u32 first)
{
	const u8 *bits = a->checker->written[r - a->checker->ranges];
	u64 from = address - range_start(r);
	if (!bits || bits_all(bits, from, bytes))
		return true;
	u64 clear = bits_first_clear(bits, from);
	a->fault = first + (u32)((clear - from) / (u64)a->site->bytes);
	sb_printf(a->out, "%s of %d byte%s that nobody has written: byte %llu of '%s'", verb(a->site), a->site->bytes,
		  a->site->bytes == 1 ? "" : "s", (unsigned long long)clear, name_of(r));
	return false;
}

/* Notes that the program stores n elements. False: other programs have stored to some of them. */
static bool take(u32 *owner, u64 n, u32 me)
{
	u32 others = 0;
	for (u64 i = 0; i < n; i++)
		others |= owner[i] && owner[i] != me;
	for (u64 i = 0; i < n && !others; i++)
		owner[i] = me;
	return !others;
}

/* Is there something else than x, of another program of this launch? */
static bool differs(struct access *a, const struct mem_range *r, u64 address, const char *x)
{
	struct writers *w = &a->checker->writers[r - a->checker->ranges];
	u32 me = (u32)a->program + 1;
	u64 offset = address - range_start(r), first = offset >> w->shift,
	    last = (offset + (u64)a->site->bytes - 1) >> w->shift;
	bool other = memcmp((char *)(uintptr_t)address, x, (size_t)a->site->bytes);
	for (u64 i = first; i <= last; i++) {
		u32 before = w->program[i];
		w->program[i] = me;
		if (before && before != me && other) {
			sb_printf(a->out,
				  "store to byte %llu of '%s', where program number %u has stored another value, and "
				  "nothing orders the two",
				  (unsigned long long)offset, name_of(r), before - 1);
			return true;
		}
	}
	return false;
}

static pthread_mutex_t *lock_of(struct checker *c, u64 address)
{
	return &c->locks[address / PAGE % LOCKS];
}

/* Elements of one page. */
static bool store_some(struct access *a, const struct mem_range *r, u64 address, u64 n, u32 first, const char *data)
{
	u64 bytes = (u64)a->site->bytes;
	struct writers *w = r ? &a->checker->writers[r - a->checker->ranges] : NULL;
	bool good = true;
	if (!w || !w->program) {
		memcpy((char *)(uintptr_t)address, data, n * bytes);
		return true;
	}
	u64 offset = address - range_start(r);
	pthread_mutex_lock(lock_of(a->checker, address));
	if (bytes != 1u << w->shift || !take(w->program + (offset >> w->shift), n, (u32)a->program + 1))
		for (u64 i = 0; good && i < n; i++)
			if (differs(a, r, address + i * bytes, data + i * bytes)) {
				a->fault = first + (u32)i;
				good = false;
			}
	if (good)
		memcpy((char *)(uintptr_t)address, data, n * bytes);
	pthread_mutex_unlock(lock_of(a->checker, address));
	return good;
}

static bool store_run(struct access *a, const struct mem_range *r, u64 address, u64 n, u32 first, const char *data)
{
	u64 bytes = (u64)a->site->bytes;
	for (u64 done = 0; done < n;) {
		u64 here = address + done * bytes, some = MIN(n - done, (PAGE - here % PAGE) / bytes);
		if (!store_some(a, r, here, some, first + (u32)done, data + done * bytes))
			return false;
		done += some;
	}
	if (r && a->checker->written[r - a->checker->ranges])
		bits_set(a->checker->written[r - a->checker->ranges], address - range_start(r), n * bytes);
	return true;
}

static bool check_run(struct access *a, u64 address, u64 n, u32 first, const char *data)
{
	const struct checker *c = a->checker;
	u64 bytes = (u64)a->site->bytes;
	const struct mem_range *r = address % bytes ? NULL : range_around(a, address, n * bytes);
	if (!r && n > 1) { /* one by one, up to the one at fault */
		for (u32 i = 0; i < n; i++)
			if (!check_run(a, address + i * bytes, 1, first + i, data ? data + i * bytes : NULL))
				return false;
		return true;
	}
	if (!r && !(c->open && a->home == &any_memory && address >= NULL_PAGE && address % bytes == 0 &&
		    !ranges_touch(c->ranges, c->nranges, address, bytes, HOST_GUARD))) {
		a->fault = first;
		access_fault_text(a->out, verb(a->site), address, (u32)bytes, c->ranges, c->nranges, a->home);
		return false;
	}
	if (r && a->site->kind != HOST_STORE && !was_written(a, r, address, n * bytes, first))
		return false;
	return a->site->kind != HOST_STORE || store_run(a, r, address, n, first, data);
}

bool checker_quick(struct checker *c, u64 program, const struct host_site *site, const void *at, const void *data)
{
	u64 bytes = (u64)site->bytes, address = (u64)(uintptr_t)at, all = bytes * (u64)site->lanes;
	const struct mem_range *r = site->param >= 0 && (u32)site->param < c->nhomes ? c->homes[site->param] : NULL;
	if (!r || r == &any_memory || address % bytes || !range_has(r, address, all))
		return false;
	u64 offset = address - range_start(r);
	u8 *bits = c->written[r - c->ranges];
	if (site->kind != HOST_STORE)
		return !bits || bits_all(bits, offset, all);
	struct writers *w = &c->writers[r - c->ranges];
	if (address / PAGE != (address + all - 1) / PAGE || bytes != 1u << w->shift)
		return false;
	pthread_mutex_lock(lock_of(c, address));
	bool mine = !w->program || take(w->program + (offset >> w->shift), (u64)site->lanes, (u32)program + 1);
	if (mine)
		memcpy((char *)(uintptr_t)address, data, all);
	pthread_mutex_unlock(lock_of(c, address));
	if (mine && bits)
		bits_set(bits, offset, all);
	return mine;
}

bool checker_access(struct checker *c, u64 program, const struct host_site *site, i64 *element, const void *at,
		    const u8 *mask, const void *data, struct strbuf *out)
{
	struct access a = {.checker = c,
			   .site = site,
			   .home = site->param >= 0 && (u32)site->param < c->nhomes ? c->homes[site->param]
										    : &any_memory,
			   .program = program,
			   .out = out};
	const u64 *each = site->each ? at : NULL;
	u64 bytes = (u64)site->bytes, base = (u64)(uintptr_t)at;
	u32 n = (u32)site->lanes;
	for (u32 k = 0, end; k < n; k = end) {
		end = k + 1;
		if (mask && !mask[k])
			continue;
		while (end < n && (!mask || mask[end]) && (!each || each[end] - each[end - 1] == bytes))
			end++;
		u64 address = each ? each[k] : base + k * bytes;
		if (check_run(&a, address, end - k, k, data ? (const char *)data + k * bytes : NULL))
			continue;
		*element = *element < 0 ? -1 : *element + (i64)a.fault * site->step;
		return false;
	}
	return true;
}

/* --- what nobody writes ------------------------------------------------------------------------------------------ */

void outputs_note(struct outputs *o, struct host_device *d, const struct device_launch *l, const struct image *im)
{
	pthread_mutex_lock(&d->lock);
	for (u32 i = 0; i < im->nslots; i++) {
		const struct slot *s = &im->slots[i];
		if (!s->pointers || !s->writes)
			continue;
		struct output *out = &o->at[o->count++ % OUTPUTS];
		*out = (struct output){.address = (const char *)(uintptr_t)l->args[i],
				       .element = 1u << element_shift(s)};
		snprintf(out->name, sizeof out->name, "'%s' (kernel %s)", s->name, im->name);
	}
	pthread_mutex_unlock(&d->lock);
}

/* The output noted last that begins in these bytes. */
static const struct output *output_in(const struct outputs *o, const char *p, size_t size)
{
	for (u32 i = 0; i < MIN(o->count, OUTPUTS); i++) {
		const struct output *out = &o->at[(o->count - 1 - i) % OUTPUTS];
		if (out->address >= p && out->address < p + size)
			return out;
	}
	return NULL;
}

void outputs_read(const struct outputs *o, struct host_device *d, const char *p, size_t size)
{
	u64 first, n = host_unwritten(d, p, size, &first);
	if (!n)
		return;
	char text[OUTPUT_NAME + 200];
	pthread_mutex_lock(&d->lock);
	const struct output *out = output_in(o, p, size);
	u64 unit = out ? out->element : 1;
	int len = snprintf(
		text, sizeof text,
		"cpu:check: nobody has written %llu of the %llu %ss that the host reads%s%s; the first is %s %llu\n",
		(unsigned long long)((n + unit - 1) / unit), (unsigned long long)(size / unit),
		out ? "element" : "byte", out ? " of " : "", out ? out->name : "", out ? "element" : "byte",
		(unsigned long long)(first / unit));
	pthread_mutex_unlock(&d->lock);
	host_log(&d->device, TL_LOG_REPORT, text, (size_t)len);
}
