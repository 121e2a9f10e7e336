/* Table of accesses. A cell covers a line of 128 bytes, a word of a line that was accessed in parts, or a byte of a
 * word that was accessed in parts. */
#include "runtime/sim/races.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "support/recover.h"
#include "runtime/sim/cluster.h"
#include "runtime/sim/memory.h"
#include "runtime/sim/sync.h"

enum { PAGE = 1024, LINE = 128, WORD = 4, PAGE_LINES = PAGE / LINE, LINE_WORDS = LINE / WORD };
enum { C_STRONG = 1, C_FORGOTTEN = 2, C_SPLIT = 4 };

struct touch {
	u32 block; /* block index + 1; 0: no access */
	u32 time, warps, instr;
};

struct cell {
	u32 block, time, instr; /* last write; `block` and `time` as in struct touch */
	/* C_FORGOTTEN: readers since the last write (or writers of the same value) were dropped */
	u8 warp, lane, flags;
	struct touch read[2];   /* last readers; last readers of another block */
	struct cell *parts;     /* with C_SPLIT: the words of a line, the bytes of a word */
};

struct page {
	u64 number;
	struct page *next;
	struct cell lines[PAGE_LINES];
};

struct stripe {
	struct page *pages; /* list of pages, the most recently used first */
	u8 taken;
};

struct races {
	struct stripe *stripes;
	u32 nstripes_log2;
	bool locks;
	struct arena arena;
	u8 arena_taken;
	u8 abandoned;
};

struct races *races_new(u64 bytes, bool locks)
{
	struct races *r = calloc(1, sizeof *r);
	u32 log2 = 6;
	while (log2 < 16 && bytes >> log2 > PAGE)
		log2++;
	if (r) {
		*r = (struct races){.stripes = calloc((size_t)1 << log2, sizeof *r->stripes),
				    .nstripes_log2 = log2,
				    .locks = locks};
		if (!r->stripes) {
			free(r);
			return NULL;
		}
	}
	return r;
}

void races_free(struct races *r)
{
	if (!r)
		return;
	arena_free(&r->arena);
	free(r->stripes);
	free(r);
}

/* --- locks ----------------------------------------------------------------------------------------------------- */

static void lock(const struct races *r, u8 *taken)
{
	if (r->locks)
		while (__atomic_exchange_n(taken, 1, __ATOMIC_ACQUIRE)) {
			/* the holder of the lock has left with a fault */
			if (__atomic_load_n(&r->abandoned, __ATOMIC_RELAXED))
				fault_raise(FAULT_MEMORY, "out of host memory");
			sched_yield();
		}
}

void races_abandon(struct races *r)
{
	if (r)
		__atomic_store_n(&r->abandoned, 1, __ATOMIC_RELAXED);
}

static void unlock(const struct races *r, u8 *taken)
{
	if (r->locks)
		__atomic_store_n(taken, 0, __ATOMIC_RELEASE);
}

static struct cell *new_cells(struct races *r, u32 n)
{
	lock(r, &r->arena_taken);
	struct cell *c = arena_array(&r->arena, struct cell, n);
	unlock(r, &r->arena_taken);
	return c;
}

static u32 stripe_of(const struct races *r, u64 page)
{
	return (u32)(page * 0x9E3779B97F4A7C15u >> (64 - r->nstripes_log2));
}

static struct page *page_of(struct races *r, u64 number)
{
	struct stripe *s = &r->stripes[stripe_of(r, number)];
	struct page **at = &s->pages, *p = *at;
	while (p && p->number != number) {
		at = &p->next;
		p = *at;
	}
	if (!p) {
		lock(r, &r->arena_taken);
		p = arena_new(&r->arena, struct page);
		unlock(r, &r->arena_taken);
		p->number = number;
	} else if (p == s->pages) {
		return p;
	} else {
		*at = p->next;
	}
	p->next = s->pages;
	return s->pages = p;
}

/* Locks the stripes of all lanes' addresses, in ascending order; an access does not cross pages. */
static void lock_all(struct races *r, u32 mask, const struct places *p, struct race_locks *k)
{
	k->races = r;
	k->n = 0;
	EACH_LANE(l, mask)
	{
		u32 s = stripe_of(r, (u64)(uintptr_t)p->host[l] / PAGE), n = k->n;
		while (n && k->at[n - 1] > s)
			n--;
		if (n && k->at[n - 1] == s)
			continue;
		memmove(k->at + n + 1, k->at + n, (k->n++ - n) * sizeof *k->at);
		k->at[n] = s;
	}
	for (u32 n = 0; n < k->n; n++)
		lock(r, &r->stripes[k->at[n]].taken);
}

void races_end(struct race_locks *k)
{
	struct races *r = k->races;
	if (!r)
		return;
	for (u32 n = 0; n < k->n; n++)
		unlock(r, &r->stripes[k->at[n]].taken);
	k->races = NULL;
}

/* --- one access ------------------------------------------------------------------------------------------------ */

struct who {
	struct races *races;
	struct warp *w;
	const struct instr *i;
	u32 block, now, bit, index; /* index of the instruction */
	u32 lowest;                 /* time up to which the actions of all other warps of the block happened before */
	u32 flags;
	bool is_async; /* by the async proxy */
	/* access to the block's own shared memory; shadow.c checks it against the block's other accesses */
	bool in_own;
	bool arrives;  /* delivery of a copy, which was checked when it was issued */
	bool holds;    /* races_access holds all locks of the access */
	struct cell written; /* the cell after a write by this access */
	struct places *places;
	u32 lanes; /* lanes of the current run of consecutive addresses */
	u32 size;  /* bytes of a lane's access */
	u32 first; /* from this lane on, the lanes access consecutive bytes: [from, end) in total */
	u64 from, end;
};

/* True if the action of an agent at a time happened before. `block` is a block index + 1. */
static bool ordered(const struct who *me, u32 block, u32 agent, u32 time)
{
	if (block == me->block)
		return happened_before(me->w, agent, time);
	return me->w->clock.known && sync_happened(me->w, block - 1, agent, time, false);
}

/* True if the last write happened before. For the async proxy a proxy fence must lie between. */
static bool after_write(const struct who *me, const struct cell *c)
{
	bool same_block = c->block == me->block;
	if (!me->is_async || (same_block && me->in_own))
		return ordered(me, c->block, c->warp, c->time);
	if (same_block)
		return c->time <= me->w->clock.fenced[c->warp];
	return me->w->clock.known && sync_happened(me->w, c->block - 1, c->warp, c->time, true);
}

/* Index of a warp with a read that did not happen before, or -1. */
static int unordered_reader(const struct who *me, const struct touch *t)
{
	if (!t->block || (t->block == me->block && (t->time <= me->lowest || !(t->warps & ~me->bit))))
		return -1;
	EACH_LANE(v, t->warps)
	if (!ordered(me, t->block, v, t->time))
		return (int)v;
	return -1;
}

static bool happened_all(const struct who *me, const struct touch *t)
{
	return unordered_reader(me, t) < 0;
}

/* True if the last write was read, or the same value stored, by this warp or in a read that happened before. */
static bool has_seen(const struct who *me, const struct cell *c)
{
	if (c->flags & C_FORGOTTEN)
		return true;
	for (u32 k = 0; k < 2; k++)
		EACH_LANE(v, c->read[k].block ? c->read[k].warps : 0)
		if (ordered(me, c->read[k].block, v, c->read[k].time))
			return true;
	return false;
}

static void add_reader(const struct who *me, struct cell *c)
{
	struct touch *t = &c->read[0], mine = {me->block, me->now, me->bit, me->index};
	if (t->block == me->block && t->time == me->now) {
		t->warps |= me->bit;
		t->instr = me->index;
		return;
	}
	if (t->block && t->block != me->block && !happened_all(me, t)) {
		if (c->read[1].block && c->block)
			c->flags |= C_FORGOTTEN;
		c->read[1] = *t;
	} else if (t->block == me->block && c->block && !happened_all(me, t)) {
		c->flags |= C_FORGOTTEN;
	}
	*t = mine;
}

/* --- reports --------------------------------------------------------------------------------------------------- */

/* Intersection of the access with the cell [at, at + n). */
static void clip(const struct who *me, u64 at, u32 n, u64 *from, u64 *to)
{
	*from = MAX(at, me->from);
	*to = MIN(at + n, me->end);
}

/* Prints "global bytes 0–3 of 'y'". */
static void print_bytes(const struct who *me, struct strbuf *out, u64 from, u64 to)
{
	const struct cta *b = me->w->block;
	const struct launch *l = b->launch;
	for (u32 k = 0; k < b->cluster->nblocks; k++) {
		const struct cta *o = &b->cluster->blocks[k];
		u64 base = (u64)(uintptr_t)o->shared;
		if (from - base < o->shared_bytes) {
			sb_printf(out, "shared bytes 0x%llx–0x%llx of block (%u, %u, %u)", (ull)(from - base),
				  (ull)(to - 1 - base), o->id[0], o->id[1], o->id[2]);
			return;
		}
	}
	for (u32 k = 0; k < l->nranges; k++) {
		u64 base = (u64)(uintptr_t)l->ranges[k].base;
		const char *name = l->ranges[k].name, *quote = name ? "'" : "";
		if (from - base < l->ranges[k].size) {
			sb_printf(out, "global bytes %llu–%llu of %s%s%s", (ull)(from - base), (ull)(to - 1 - base),
				  quote, name ? name : "a buffer", quote);
			return;
		}
	}
	sb_printf(out, "global bytes 0x%llx–0x%llx", (ull)from, (ull)(to - 1));
}

/* Name for messages of a write that is not ordered before the access. */
static const char *write_name(const struct who *me, const struct cell *c)
{
	bool unfenced = me->is_async && ordered(me, c->block, c->warp, c->time);
	return unfenced ? "write, without a fence.proxy.async in between," : "write";
}

static void report(const struct who *me, const char *other, u32 block, u32 warp, int lane, u32 instr, u64 from, u64 to)
{
	struct cta *b = me->w->block;
	const u32 *grid = b->launch->grid;
	u32 x = block - 1;
	struct strbuf text = {.arena = &b->arena};
	const char *mine = me->flags & A_READ ? me->flags & A_WRITE ? "atomic" : "read" : "write";
	sb_printf(&text, "race: %s of ", mine);
	print_bytes(me, &text, from, to);
	sb_printf(&text, "; the other %s is by ", other);
	if (block != me->block)
		sb_printf(&text, "block (%u, %u, %u), ", x % grid[0], x / grid[0] % grid[1], x / grid[0] / grid[1]);
	if (warp < MAX_WARPS)
		sb_printf(&text, "warp %u, ", warp);
	else
		sb_puts(&text, "an asynchronous copy, ");
	if (lane >= 0 && warp < MAX_WARPS)
		sb_printf(&text, "lane %d, ", lane);
	sb_puts(&text, "at ");
	print_place(&text, b->launch, &b->launch->kernel->code[instr]);
	u32 lanes = 0;
	EACH_LANE(l, me->lanes)
	{
		u64 at = (u64)(uintptr_t)me->places->host[l];
		lanes |= (u32)(at < to && from < at + me->size) << l;
	}
	if (me->places->may_be_stale && block == me->block) {
		me->places->stale |= lanes;
		me->places->what = text.at;
	} else if (me->races == b->races && block != me->block) {
		blocks_race(me->w, me->i, lanes, text.at);
	} else {
		fault(me->w, me->i, lanes, "%s", text.at);
	}
}

/* --- cells ----------------------------------------------------------------------------------------------------- */

/* True if the write stores the values that [from, to) already holds. */
static bool changes_nothing(const struct who *me, u64 from, u64 to)
{
	const struct places *p = me->places;
	if (!p->values && !p->rows)
		return false;
	for (u64 at = from; at < to;) {
		u32 lane = me->first + (u32)((at - me->from) / me->size), within = (u32)((at - me->from) % me->size);
		if (p->rows) {
			u32 n = MIN(me->size - within, (u32)(to - at));
			if (memcmp(p->rows + lane * me->size + within, (const char *)(uintptr_t)at, n) != 0)
				return false;
			at += n;
			continue;
		}
		u32 skip = within % p->step, n = MIN(p->step - skip, (u32)(to - at));
		u64 v = operand_value(me->w, &p->values[within / p->step], lane, (int)p->step * 8) >> skip * 8;
		if (memcmp(&v, (const char *)(uintptr_t)at, n) != 0)
			return false;
		at += n;
	}
	return true;
}

static void read_cell(const struct who *me, struct cell *c, u64 at, u32 n)
{
	u64 from, to;
	bool both_strong = me->flags & A_STRONG && c->flags & C_STRONG;
	if (c->block && !both_strong && !after_write(me, c) &&
	    ((me->is_async && c->block != me->block) || !has_seen(me, c))) {
		clip(me, at, n, &from, &to);
		report(me, write_name(me, c), c->block, c->warp, c->lane, c->instr, from, to);
	} else if (!(me->flags & A_STRONG)) {
		add_reader(me, c);
	}
}

static void write_cell(const struct who *me, struct cell *c, u64 at, u32 n)
{
	u64 from, to;
	bool both_strong = me->flags & A_STRONG && c->flags & C_STRONG;
	bool in_order = !c->block || both_strong || after_write(me, c);
	int who = -1;
	u32 slot = 0;
	for (; slot < 2 && who < 0; slot++)
		/* readers of the same block race only if they use the value, which stale.c decides */
		if (c->read[slot].block != me->block)
			who = unordered_reader(me, &c->read[slot]);
	clip(me, at, n, &from, &to);
	if ((!in_order || who >= 0) && changes_nothing(me, from, to)) {
		add_reader(me, c);
		return;
	}
	if (!in_order) {
		report(me, write_name(me, c), c->block, c->warp, c->lane, c->instr, from, to);
	} else if (who >= 0) {
		const struct touch *t = &c->read[slot - 1];
		report(me, "access", t->block, (u32)who, -1, t->instr, from, to);
	}
	*c = me->written;
	c->lane = (u8)(me->first + (u32)((from - me->from) / me->size));
}

static void touch_cell(const struct who *me, struct cell *c, u64 at, u32 n)
{
	if (me->arrives) {
		*c = me->written;
		return;
	}
	if (me->flags == A_READ) { /* common case: no write yet, or an ordered write of the same block */
		struct touch *t = &c->read[0];
		bool own = c->block == me->block && (c->time <= me->lowest || c->warp == me->w->id);
		if ((!c->block || own) && t->block == me->block && t->time == me->now) {
			t->warps |= me->bit;
			return;
		}
	}
	if (me->flags & A_READ)
		read_cell(me, c, at, n);
	if (me->flags & A_WRITE)
		write_cell(me, c, at, n);
}

static void split(struct races *r, struct cell *c, u32 nparts)
{
	struct cell *parts = c->parts ? c->parts : new_cells(r, nparts), whole = *c;
	whole.parts = NULL;
	for (u32 k = 0; k < nparts; k++) {
		struct cell *own = parts[k].parts; /* kept for reuse */
		parts[k] = whole;
		parts[k].parts = own;
	}
	c->parts = parts;
	c->flags |= C_SPLIT;
}

/* Checks and records the access for the cell of `n` bytes at `at`, which it overlaps in part or as a whole. */
static void touch(const struct who *me, struct cell *c, u64 at, u32 n)
{
	u32 part = n == LINE ? WORD : 1, nparts = n / part;
	bool whole = n == 1 || (me->from <= at && at + n <= me->end);
	if (whole && !(c->flags & C_SPLIT)) {
		struct cell *parts = c->parts;
		touch_cell(me, c, at, n);
		c->parts = parts;
		return;
	}
	if (!(c->flags & C_SPLIT))
		split(me->races, c, nparts);
	u64 from = MAX(at, me->from), to = MIN(at + n, me->end);
	bool same = whole && me->flags == A_WRITE;
	for (u64 k = (from - at) / part; at + k * part < to && !me->w->block->failed; k++) {
		touch(me, &c->parts[k], at + k * part, part);
		const struct cell *p = &c->parts[k];
		same = same && !(p->flags & C_SPLIT) && p->block == me->block && p->instr == me->index &&
		       !p->read[0].block;
	}
	if (same) { /* the access wrote all parts: one cell suffices again */
		struct cell *parts = c->parts;
		*c = me->written;
		c->lane = (u8)(me->first + (u32)((at - me->from) / me->size));
		c->parts = parts;
	}
}

static void touch_run(struct who *me)
{
	struct races *r = me->races;
	for (u64 at = me->from / LINE * LINE; at < me->end && !me->w->block->failed;) {
		u64 number = at / PAGE, end = MIN((number + 1) * PAGE, me->end);
		u8 *taken = &r->stripes[stripe_of(r, number)].taken;
		if (!me->holds)
			lock(r, taken);
		struct page *p = page_of(r, number);
		for (; at < end && !me->w->block->failed; at += LINE)
			touch(me, &p->lines[at % PAGE / LINE], at, LINE);
		if (!me->holds)
			unlock(r, taken);
	}
}

bool races_access(struct races *r, struct warp *w, const struct instr *i, u32 mask, struct places *p, u32 bytes,
		  u32 flags, struct race_locks *locks)
{
	struct cta *b = w->block;
	u32 index = (u32)(i - b->launch->kernel->code), now = w->clock.at[w->id], lowest = UINT32_MAX;
	for (u32 k = 0; k < b->nwarps; k++)
		lowest = k == w->id ? lowest : MIN(lowest, w->clock.at[k]);
	struct who me = {.races = r,
			 .w = w,
			 .i = i,
			 .block = (u32)b->index + 1,
			 .now = now,
			 .bit = 1u << w->id,
			 .index = index,
			 .lowest = lowest,
			 .flags = flags & ~(u32)A_ASYNC,
			 .is_async = flags & A_ASYNC,
			 .places = p,
			 .size = bytes};
	me.written = (struct cell){.block = me.block, .time = now, .instr = index, .warp = (u8)w->id,
				   .flags = flags & A_STRONG ? C_STRONG : 0};
	bool holds = me.holds = locks && flags == A_WRITE;
	if (holds)
		lock_all(r, mask, p, locks);
	me.in_own = mask && (u64)(uintptr_t)p->host[__builtin_ctz(mask)] - (u64)(uintptr_t)b->shared < b->shared_bytes;
	for (u32 left = mask; left;) {
		u32 l = (u32)__builtin_ctz(left);
		me.first = l;
		me.lanes = 0;
		me.from = (u64)(uintptr_t)p->host[l];
		me.end = me.from + bytes;
		for (; left >> l & 1; l++) { /* lanes that continue at the next address, or read the same bytes */
			u64 at = (u64)(uintptr_t)p->host[l];
			bool again = at == me.from && me.end == me.from + bytes && flags == A_READ;
			if (l != me.first && !again && at != me.end)
				break;
			if (l != me.first && !again)
				me.end = at + bytes;
			left &= ~(1u << l);
			me.lanes |= 1u << l;
			if (l == LANES - 1)
				break;
		}
		touch_run(&me);
	}
	if (b->failed && holds)
		races_end(locks);
	return !b->failed;
}

void races_arrive(struct races *r, struct warp *w, const struct instr *i, u32 lane, const struct cta *owner, u64 at,
		  u32 bytes, u32 agent, u32 when)
{
	u32 index = (u32)(i - w->block->launch->kernel->code), block = (u32)owner->index + 1;
	u64 from = (u64)(uintptr_t)owner->shared + at;
	struct who me = {.races = r,
			 .w = w,
			 .i = i,
			 .block = block,
			 .index = index,
			 .flags = A_WRITE,
			 .arrives = true,
			 .lanes = 1u << lane,
			 .first = lane,
			 .size = bytes,
			 .from = from,
			 .end = from + bytes};
	me.written = (struct cell){.block = block, .time = when, .instr = index, .warp = (u8)agent, .lane = (u8)lane};
	touch_run(&me);
}
