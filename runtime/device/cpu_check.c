/* Checks of the device cpu:check.
 *
 * Elements with consecutive addresses are checked as one run. Each buffer that the kernel writes has a word for each
 * element, with the program that last stored to the element in this launch, and the place in the source. A store of a
 * different value by another program is an error, unless the kernel can order the two. The words are reused by the next
 * launch, in which programs have other numbers, because allocating them took most of the time. */
#include "runtime/device/cpu_check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "support/byte_map.h"

enum { LOCKS = 1021, PAGE = 4096, MOST_KEPT = 1 << 28 /* bytes, for a buffer */ };

struct writer {
	u32 program; /* `first` of the launch + the program; a smaller number is of an earlier launch */
	i32 site;    /* byte offset from the checker's first site */
};

/* The words of a range. A word has the lock of its element's page. */
struct writers {
	struct writer *at; /* NULL: stores are not tracked */
	u32 first;
	u32 shift; /* log2 of the bytes of an element */
	size_t bytes;
};

struct checker {
	struct arena arena;
	struct mem_range *ranges;
	u32 nranges;
	u8 *const *written;
	struct writers *writers; /* by range */
	const struct mem_range **homes;
	u32 nhomes, nprograms, grid[2];
	_Atomic(const struct cpu_site *) first_site; /* the first site that stored */
	struct cpu_bytes *good; /* by parameter */
	bool open;
	struct kept_bytes *kept;
	const struct source_list *sources;
	pthread_mutex_t locks[LOCKS]; /* for stores, by page */
};

static u32 element_shift(const struct slot *s)
{
	u32 shift = 0;
	while (s->pointers == 1 && (2 << shift) <= dtype_bytes(s->dtype))
		shift++;
	return s->pointers == 1 ? shift : 0;
}

/* Takes words that no running launch uses. Their old values do not match any program of this launch. */
static void take_words(struct checker *c, struct writers *w)
{
	struct kept_bytes *k = c->kept;
	struct kept_words found = {0};
	pthread_mutex_lock(&k->lock);
	for (u32 i = 0; i < KEPT && !found.at; i++)
		if (k->words[i].at && k->words[i].bytes == w->bytes) {
			found = k->words[i];
			k->words[i].at = NULL;
		}
	pthread_mutex_unlock(&k->lock);
	if (found.at && found.next > ~c->nprograms) { /* program numbers would overflow: use new words, all 0 */
		munmap(found.at, found.bytes);
		found.at = NULL;
	}
	if (!found.at) {
		found = (struct kept_words){.bytes = w->bytes, .next = 1};
		void *p = mmap(NULL, w->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			       0);
		found.at = p == MAP_FAILED ? NULL : p;
		if (found.at)
			madvise(p, w->bytes, MADV_HUGEPAGE);
	}
	w->at = found.at;
	w->first = found.next;
}

/* Keeps the words for later launches, and replaces the least recently used words if all places are taken. */
static void keep_words(struct checker *c, const struct writers *w)
{
	struct kept_bytes *k = c->kept;
	u32 at = 0;
	if (w->bytes > MOST_KEPT) {
		munmap(w->at, w->bytes);
		return;
	}
	pthread_mutex_lock(&k->lock);
	for (u32 i = 0; i < KEPT; i++)
		if (!k->words[i].at || (k->words[at].at && k->words[i].used < k->words[at].used))
			at = i;
	struct kept_words old = k->words[at];
	k->words[at] = (struct kept_words){w->at, w->bytes, w->first + c->nprograms, ++k->used};
	pthread_mutex_unlock(&k->lock);
	if (old.at)
		munmap(old.at, old.bytes);
}

void kept_init(struct kept_bytes *k)
{
	pthread_mutex_init(&k->lock, NULL);
}

void kept_free(struct kept_bytes *k)
{
	for (u32 i = 0; i < KEPT; i++)
		if (k->words[i].at)
			munmap(k->words[i].at, k->words[i].bytes);
	pthread_mutex_destroy(&k->lock);
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
		w->bytes = ((c->ranges[i].size >> w->shift) + 1) * sizeof *w->at;
		take_words(c, w);
	}
}

/* Finds the buffers that were written completely before the launch: loads from them need a bounds check only. */
static void find_good(struct checker *c, const struct image *im)
{
	c->good = arena_array(&c->arena, struct cpu_bytes, im->nslots + 1u);
	for (u32 i = 0; i < im->nslots; i++) {
		const struct mem_range *r = im->slots[i].reads ? c->homes[i] : NULL;
		const u8 *bits = r && r != &any_memory ? c->written[r - c->ranges] : NULL;
		bool all = r && r != &any_memory && (!bits || bits_all(bits, 0, r->size));
		c->good[i] = all ? (struct cpu_bytes){range_start(r), r->size} : (struct cpu_bytes){0, 0};
	}
}

const struct cpu_bytes *checker_good(const struct checker *c)
{
	return c->good;
}

struct checker *checker_open(struct host_device *d, struct kept_bytes *kept, const struct device_launch *l,
			     const struct image *im, const struct source_list *sources)
{
	struct checker *c = calloc(1, sizeof *c);
	if (!c)
		return NULL;
	u64 programs = (u64)l->grid[0] * l->grid[1] * l->grid[2];
	c->kept = kept;
	c->sources = sources;
	c->nprograms = (u32)programs;
	memcpy(c->grid, l->grid, sizeof c->grid);
	c->ranges = host_ranges(d, &c->arena, &c->nranges, &c->written);
	c->nhomes = im->nslots;
	c->homes = arena_array(&c->arena, const struct mem_range *, im->nslots + 1u);
	c->open = host_name_ranges(im, l->args, c->ranges, c->nranges, c->homes);
	c->writers = arena_array(&c->arena, struct writers, c->nranges + 1u);
	memset(c->writers, 0, (c->nranges + 1u) * sizeof *c->writers);
	if (!im->waits && programs < 1ull << 31)
		watch(c, im);
	find_good(c, im);
	for (u32 i = 0; i < LOCKS; i++)
		pthread_mutex_init(&c->locks[i], NULL);
	return c;
}

void checker_close(struct checker *c)
{
	for (u32 i = 0; i < c->nranges; i++)
		if (c->writers[i].at)
			keep_words(c, &c->writers[i]);
	for (u32 i = 0; i < LOCKS; i++)
		pthread_mutex_destroy(&c->locks[i]);
	arena_free(&c->arena);
	free(c);
}

/* --- accesses ---------------------------------------------------------------------------------------------------- */

struct checked_access {
	struct checker *checker;
	const struct cpu_site *site;
	const struct mem_range *home;
	u64 program;
	struct strbuf *out;
	u32 fault; /* the element with the error */
};

static const char *verb(const struct cpu_site *s)
{
	return s->kind == HOST_LOAD ? "load" : s->kind == HOST_STORE ? "store" : "atomic";
}

/* The range that contains these bytes and that the access may touch; else NULL. */
static const struct mem_range *range_around(const struct checked_access *a, u64 address, u64 bytes)
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

static bool was_written(struct checked_access *a, const struct mem_range *r, u64 address, u64 bytes, u32 first)
{
	const u8 *bits = a->checker->written[r - a->checker->ranges];
	u64 from = address - range_start(r);
	if (!bits || bits_all(bits, from, bytes))
		return true;
	u64 clear = bits_first_clear(bits, from);
	a->fault = first + (u32)((clear - from) / (u64)a->site->bytes);
	sb_printf(a->out, "%s of %d byte%s that were never written: byte %llu of '%s'", verb(a->site), a->site->bytes,
		  a->site->bytes == 1 ? "" : "s", (unsigned long long)clear, name_of(r));
	return false;
}

static bool is_other(const struct checker *c, const struct writers *w, u32 word, u32 me)
{
	return word - w->first < c->nprograms && word != me;
}

/* Sites are constants of one object of less than 2 GB, so that their offsets fit 32 bits. */
static struct writer writer_of(struct checker *c, const struct writers *w, u64 program, const struct cpu_site *site)
{
	const struct cpu_site *first = NULL;
	if (atomic_compare_exchange_strong(&c->first_site, &first, site))
		first = site;
	return (struct writer){w->first + (u32)program, (i32)((const char *)site - (const char *)first)};
}

/* Records that the program stores n elements. False: other programs of this launch have stored to some of them. */
static bool take(struct checker *c, const struct writers *w, u64 element, u64 n, u64 program,
		 const struct cpu_site *site)
{
	u32 others = 0;
	struct writer me = writer_of(c, w, program, site), *at = w->at + element;
	for (u64 i = 0; i < n; i++)
		others |= is_other(c, w, at[i].program, me.program);
	for (u64 i = 0; !others && i < n; i++)
		at[i] = me;
	return !others;
}

static const char *file_name(const struct checker *c, u16 file)
{
	return file < c->sources->len && c->sources->at[file] ? c->sources->at[file]->name : NULL;
}

/* The name of a file in a message about a place in the file `here`: "" for the same one, which may have several
 * sources. */
static const char *of_file(const struct checker *c, u16 file, u16 here)
{
	const char *name = file_name(c, file), *other = file_name(c, here);
	if (file == here || (name && other && !strcmp(name, other)))
		return "";
	return name ? name : "another file";
}

static void tell_race(struct checked_access *a, const struct mem_range *r, u64 offset, u32 program, i32 site)
{
	const struct checker *c = a->checker;
	const struct cpu_site *other = (const void *)((const char *)c->first_site + site);
	struct loc at = cpu_place_loc(other->place), here = cpu_place_loc(a->site->place);
	const char *file = of_file(c, at.file, here.file);
	bool whole = offset % (u64)a->site->bytes == 0;
	sb_printf(a->out,
		  "store to %s %llu of '%s', where program (%u, %u, %u) has stored another value in line %u%s%s",
		  whole ? "element" : "byte", (unsigned long long)(whole ? offset / (u64)a->site->bytes : offset),
		  name_of(r), program % c->grid[0], program / c->grid[0] % c->grid[1],
		  program / c->grid[0] / c->grid[1], at.line, *file ? " of " : "", file);
	sb_puts(a->out, ", and the two stores are not ordered");
}

/* True if another program of this launch has stored a value other than x to the element. */
static bool differs(struct checked_access *a, const struct mem_range *r, u64 address, const char *x)
{
	struct writers *w = &a->checker->writers[r - a->checker->ranges];
	struct writer me = writer_of(a->checker, w, a->program, a->site);
	u64 offset = address - range_start(r), first = offset >> w->shift,
	    last = (offset + (u64)a->site->bytes - 1) >> w->shift;
	bool other = memcmp((char *)(uintptr_t)address, x, (size_t)a->site->bytes);
	for (u64 i = first; i <= last; i++) {
		struct writer before = w->at[i];
		w->at[i] = me;
		if (other && is_other(a->checker, w, before.program, me.program)) {
			tell_race(a, r, offset, before.program - w->first, before.site);
			return true;
		}
	}
	return false;
}

static pthread_mutex_t *lock_of(struct checker *c, u64 address)
{
	return &c->locks[address / PAGE % LOCKS];
}

/* Stores elements of one page. */
static bool store_some(struct checked_access *a, const struct mem_range *r, u64 address, u64 n, u32 first,
		       const char *data)
{
	u64 bytes = (u64)a->site->bytes;
	struct writers *w = r ? &a->checker->writers[r - a->checker->ranges] : NULL;
	bool good = true;
	if (!w || !w->at) {
		memcpy((char *)(uintptr_t)address, data, n * bytes);
		return true;
	}
	u64 offset = address - range_start(r);
	pthread_mutex_lock(lock_of(a->checker, address));
	if (bytes != 1u << w->shift || !take(a->checker, w, offset >> w->shift, n, a->program, a->site))
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

static bool store_run(struct checked_access *a, const struct mem_range *r, u64 address, u64 n, u32 first,
		      const char *data)
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

static bool check_run(struct checked_access *a, u64 address, u64 n, u32 first, const char *data)
{
	const struct checker *c = a->checker;
	u64 bytes = (u64)a->site->bytes;
	const struct mem_range *r = address % bytes ? NULL : range_around(a, address, n * bytes);
	if (!r && n > 1) { /* check single elements, up to the one with the error */
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

/* True if loads of single elements are all correct. */
static bool each_is_good(const struct mem_range *r, const u8 *bits, const struct cpu_site *site, const u64 *address,
			 u64 n)
{
	u64 bytes = (u64)site->bytes, start = range_start(r);
	u32 bad = 0, all = (1u << bytes) - 1;
	if (r->size < bytes)
		return false;
	for (u64 i = 0; i < n; i++)
		bad |= address[i] - start > r->size - bytes || (address[i] | (address[i] - start)) % bytes;
	for (u64 i = 0; bits && !bad && i < n; i++) {
		u64 offset = address[i] - start;
		bad |= ~(u32)bits[offset / 8] >> offset % 8 & all;
	}
	return !bad;
}

/* The number of active lanes if these are the first lanes; else -1. */
static i64 first_lanes(const u8 *mask, i32 lanes)
{
	const u8 *off = mask ? memchr(mask, 0, (size_t)lanes) : NULL;
	if (!off)
		return lanes;
	i64 n = off - mask;
	return memchr(off, 1, (size_t)(lanes - n)) ? -1 : n;
}

bool checker_quick(struct checker *c, u64 program, const struct cpu_site *site, const void *at, const u8 *mask,
		   const void *data)
{
	i64 lanes = first_lanes(mask, site->lanes);
	const struct mem_range *r = site->param >= 0 && (u32)site->param < c->nhomes ? c->homes[site->param] : NULL;
	if (lanes <= 0 || !r || r == &any_memory)
		return !lanes;
	u8 *bits = c->written[r - c->ranges];
	u64 n = (u64)lanes, bytes = (u64)site->bytes, address = (u64)(uintptr_t)at, all = bytes * n;
	if (site->each)
		return site->kind == HOST_LOAD && each_is_good(r, bits, site, at, n);
	if (address % bytes || !range_has(r, address, all))
		return false;
	u64 offset = address - range_start(r);
	if (site->kind != HOST_STORE)
		return !bits || bits_all(bits, offset, all);
	struct writers *w = &c->writers[r - c->ranges];
	if (address / PAGE != (address + all - 1) / PAGE || bytes != 1u << w->shift)
		return false;
	pthread_mutex_lock(lock_of(c, address));
	bool mine = !w->at || take(c, w, offset >> w->shift, n, program, site);
	if (mine)
		memcpy((char *)(uintptr_t)address, data, all);
	pthread_mutex_unlock(lock_of(c, address));
	if (mine && bits)
		bits_set(bits, offset, all);
	return mine;
}

bool checker_access(struct checker *c, u64 program, const struct cpu_site *site, i64 *element, const void *at,
		    const u8 *mask, const void *data, struct strbuf *out)
{
	struct checked_access a = {.checker = c,
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

/* --- memory that is read but never written ------------------------------------------------------------------------ */

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

/* The most recent output that begins in these bytes. */
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
		"cpu:check: %llu of the %llu %ss that the host reads%s%s were never written; the first is %s %llu\n",
		(unsigned long long)((n + unit - 1) / unit), (unsigned long long)(size / unit),
		out ? "element" : "byte", out ? " of " : "", out ? out->name : "", out ? "element" : "byte",
		(unsigned long long)(first / unit));
	pthread_mutex_unlock(&d->lock);
	host_log(&d->device, TL_LOG_REPORT, text, (size_t)len);
}
