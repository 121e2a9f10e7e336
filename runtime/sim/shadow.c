/* Race detection in the shared memory of a block: for each byte the last write, and the reads since.
 *
 * A cell covers a word of four bytes. A word that is accessed in parts has a cell for each byte, until it is written as
 * a whole, or read as a whole with its bytes alike. The cell keeps the last read of each warp, and only reads that did
 * not happen before another read. Usually all readers have the same time and a mask of warps suffices; otherwise the
 * cell has a vector of times.
 *
 * Accesses by lanes of one warp are ordered. Volatile, relaxed and atomic accesses do not race with each other. A store
 * of the value that is already there does not race either. Of unordered atomics only the last is remembered.
 *
 * Proxies (PTX ISA, "Proxy-preserved base causality order"): the async proxy may read or overwrite data that a warp
 * wrote through the generic proxy, cp.async included, only after a fence.proxy.async. The fence may be anywhere on the
 * chain of barriers: in the writer before the barrier, or in the issuer after it. Data that the async proxy wrote needs
 * no fence, only its mbarrier; generic reads before an asynchronous write need none either. wgmma needs a fence after
 * cp.async only with launch->strict_proxies: the memory model requires it, but compilers that omit it have been in use
 * for years. */
#include "runtime/sim/cluster.h"
#include "runtime/sim/memory.h"

#include <string.h>

enum { PAGE = 1024, PAGE_WORDS = PAGE / 4 };
enum { C_FLIGHT = 1, C_STRONG = 2, C_SPLIT = 4, C_VECTOR = 8, C_SOURCE = 16, C_MBARRIER = 32, C_COPIED = 128 };
enum { C_VISIT = 64 }; /* last written by another block of the cluster */

struct shadow_cell {
	u32 wtime, winstr; /* last write; wtime 0: none */
	u32 rtime, rinstr; /* time of the readers, or with C_VECTOR an index into `vectors` */
	u32 readers;       /* mask of warps */
	u8 writer, wlane, flags; /* writer: agent of the block */
};

struct shadow_page {
	struct shadow_cell words[PAGE_WORDS];
	struct shadow_cell *bytes; /* cells of the bytes of split words */
};

struct shadow {
	struct arena *arena;
	struct shadow_page **pages;
	u32 nwarps;
	VEC(u32) vectors;    /* vectors of read times, nwarps each */
	VEC(u32) unused;     /* indices of free vectors */
};

struct shadow *shadow_new(struct arena *a, u64 bytes, u32 nwarps)
{
	struct shadow *s = arena_new(a, struct shadow);
	*s = (struct shadow){
		.arena = a, .nwarps = nwarps, .pages = arena_array(a, struct shadow_page *, bytes / PAGE + 1)};
	return s;
}

/* --- reports --------------------------------------------------------------------------------------------------- */

struct shadow_reader {
	struct warp *w;
	struct cta *owner;         /* block that owns the memory */
	const struct clock *clock; /* what happened before in the owner */
	const struct instr *i;
	u32 lane, now, bit, index; /* index of the instruction */
	u32 lowest;                /* time up to which the actions of each other warp of the owner happened before */
	u32 flags;
	const u32 *seen;             /* per agent: time up to which its writes are ordered before this access */
	const u32 *seen_copied;      /* same for data written by cp.async */
	struct shadow_cell written;         /* the cell after a write by this access */
	u64 at, from;                /* from: address of the current word or byte */
	u32 bytes, size;             /* size: bytes of a lane's whole access; [at, at + bytes) may be a part of it */
	const struct places *places; /* NULL: the values are unknown */
};

static const char *access_name(u32 flags)
{
	if (flags & A_FLIGHT)
		return "asynchronous copy";
	if (flags & A_ASYNC)
		return "asynchronous read";
	return flags & A_READ ? flags & A_WRITE ? "atomic" : "read" : "write";
}

static void report(const struct shadow_reader *me, const char *how, const char *other, u32 warp, i64 lane, u32 instr)
{
	struct cta *b = me->w->block;
	if (b->failed)
		return;
	struct strbuf text = {.arena = &b->arena};
	sb_printf(&text, "%s: %s of shared bytes 0x%llx–0x%llx", how, access_name(me->flags),
		  (ull)me->at, (ull)(me->at + me->bytes - 1));
	if (me->owner != b)
		sb_printf(&text, " of block (%u, %u, %u)", me->owner->id[0], me->owner->id[1], me->owner->id[2]);
	if (other) {
		sb_printf(&text, "; the %s is", other);
		if (warp < MAX_WARPS)
			sb_printf(&text, " by %swarp %u", me->owner != b ? "its " : "", warp);
		if (lane >= 0 && warp < MAX_WARPS)
			sb_printf(&text, ", lane %u,", (u32)lane);
		sb_puts(&text, " at ");
		print_place(&text, b->launch, &b->launch->kernel->code[instr]);
	}
	fault(me->w, me->i, 1u << me->lane, "%s", text.at);
}

static void report_write(const struct shadow_reader *me, const struct shadow_cell *c)
{
	bool is_copy = c->flags & C_FLIGHT || c->writer >= MAX_WARPS, in_order = c->wtime <= me->clock->at[c->writer];
	const char *how = is_copy    ? "asynchronous copy not waited for"
			  : in_order ? "no fence.proxy.async between the generic and the async proxy"
				     : "race";
	report(me, how, is_copy ? "copy" : "other write", c->writer, c->wlane, c->winstr);
}

static void report_mark(const struct shadow_reader *me, const struct shadow_cell *c)
{
	if (c->flags & C_MBARRIER)
		report(me, "the bytes are an mbarrier", "mbarrier.init", c->writer, c->wlane, c->winstr);
	else
		report(me, "source of an asynchronous copy that was not waited for", "copy", MAX_WARPS, -1, c->rinstr);
}

/* --- cells ----------------------------------------------------------------------------------------------------- */

static u32 new_vector(struct shadow *s)
{
	if (s->unused.len)
		return s->unused.at[--s->unused.len];
	for (u32 w = 0; w < s->nwarps; w++)
		vec_push(s->arena, &s->vectors, 0);
	return s->vectors.len / s->nwarps - 1;
}

static inline u32 *vector_at(const struct shadow *s, u32 n)
{
	return &s->vectors.at[(size_t)n * s->nwarps];
}

static u32 read_time(const struct shadow *s, const struct shadow_cell *c, u32 warp)
{
	return c->flags & C_VECTOR ? vector_at(s, c->rtime)[warp] : c->rtime;
}

/* Mask of the other warps with reads that did not happen before now. */
static u32 unordered_readers(const struct shadow *s, const struct shadow_cell *c, const struct shadow_reader *me)
{
	u32 r = 0;
	EACH_LANE(v, c->readers & ~me->bit)
	if (read_time(s, c, v) > me->clock->at[v])
		r |= 1u << v;
	return r;
}

static void add_reader(struct shadow *s, struct shadow_cell *c, const struct shadow_reader *me)
{
	c->rinstr = c->flags & C_SOURCE ? c->rinstr : me->index;
	if (c->flags & C_VECTOR) {
		vector_at(s, c->rtime)[me->w->id] = me->now;
	} else if (c->readers && c->rtime != me->now && (c->readers & ~me->bit) && unordered_readers(s, c, me)) {
		u32 n = new_vector(s), *v = vector_at(s, n);
		EACH_LANE(k, c->readers)
		v[k] = c->rtime;
		v[me->w->id] = me->now;
		c->rtime = n;
		c->flags |= C_VECTOR;
	} else if (c->rtime != me->now) {
		c->rtime = me->now;
		c->readers = 0;
	}
	c->readers |= me->bit;
}

/* True if the last write was read, or the same value stored, by this warp or in a read that happened before. */
static bool has_seen(const struct shadow *s, const struct shadow_cell *c, const struct warp *w)
{
	EACH_LANE(v, c->readers)
	if (v == w->id || read_time(s, c, v) <= w->clock.at[v])
		return true;
	return false;
}

static void read_cell(struct shadow *s, struct shadow_cell *c, const struct shadow_reader *me)
{
	bool both_strong = me->flags & A_STRONG && c->flags & C_STRONG;
	bool seen = c->wtime <= (c->flags & C_COPIED ? me->seen_copied : me->seen)[c->writer] ||
		    (!(me->flags & A_ASYNC) && has_seen(s, c, me->w));
	if (c->flags & C_MBARRIER)
		report_mark(me, c);
	else if (c->flags & C_FLIGHT)
		report_write(me, c);
	else if (!c->wtime && !(c->flags & C_VISIT))
		report(me, "nothing was written here before", NULL, 0, 0, 0);
	else if (!seen && !both_strong)
		report_write(me, c);
	else if (!(me->flags & A_STRONG))
		add_reader(s, c, me);
}

/* True if the write stores the n bytes that are already there. */
static bool changes_nothing(const struct shadow_reader *me, u32 n)
{
	const struct places *p = me->places;
	if (!p || (!p->values && !p->rows) || me->flags & A_FLIGHT)
		return false;
	const char *now = me->w->block->shared + me->from;
	u64 offset = me->from - p->at[me->lane];
	for (u32 k = 0; k < n; k++, offset++) { /* several lanes may write parts of a word */
		u32 lane = me->lane + (u32)(offset / me->size), within = (u32)(offset % me->size);
		char to = p->rows ? p->rows[lane * me->size + within]
				  : (char)(operand_value(me->w, &p->values[within / p->step], lane, (int)p->step * 8) >>
					   within % p->step * 8);
		if (to != now[k])
			return false;
	}
	return true;
}

/* True if the write delivers the cp.async copy of this warp that is in flight to the cell. */
static inline bool completes(const struct shadow_cell *c, const struct shadow_reader *me)
{
	return c->flags & C_FLIGHT && c->winstr == me->index && c->writer == me->w->id && !(me->flags & A_FLIGHT);
}

/* False after a fault, or if the write is unordered but stores the same value; then it is recorded like a read. */
static bool check_write(struct shadow *s, struct shadow_cell *c, const struct shadow_reader *me, bool is_byte)
{
	if (c->flags & (C_SOURCE | C_MBARRIER)) {
		report_mark(me, c);
		return false;
	}
	if (c->flags & C_FLIGHT && !completes(c, me)) {
		report_write(me, c);
		return false;
	}
	bool both_strong = me->flags & A_STRONG && c->flags & C_STRONG;
	bool after_write = c->wtime <= me->seen[c->writer] || both_strong;
	u32 others = unordered_readers(s, c, me);
	if (!after_write || others) {
		if (changes_nothing(me, is_byte ? 1 : 4))
			add_reader(s, c, me);
		else if (!after_write)
			report_write(me, c);
		else
			report(me, "race", "other access", (u32)__builtin_ctz(others), -1, c->rinstr);
		return false;
	}
	if (c->flags & C_VECTOR)
		vec_push(s->arena, &s->unused, c->rtime);
	return true;
}

static void touch_cell(struct shadow *s, struct shadow_cell *c, const struct shadow_reader *me, bool is_byte)
{
	if (me->flags & A_READ)
		read_cell(s, c, me);
	if (me->flags & A_WRITE && check_write(s, c, me, is_byte)) {
		*c = me->written;
		c->wlane = (u8)me->lane;
	}
}

/* Fast paths of touch_cell for the common cells. False: the slow path must handle the access. */
static inline bool read_quickly(struct shadow *s, struct shadow_cell *c, const struct shadow_reader *me)
{
	bool ordered = c->wtime <= (c->flags & C_COPIED ? me->seen_copied : me->seen)[c->writer];
	if (c->flags & ~(C_COPIED | C_VECTOR) || !c->wtime || !ordered)
		return false;
	if (c->flags & C_VECTOR) {
		vector_at(s, c->rtime)[me->w->id] = me->now;
		c->rinstr = me->index;
	} else if (c->rtime != me->now) {
		if (c->rtime > me->lowest && c->readers & ~me->bit)
			return false;
		c->rtime = me->now;
		c->readers = 0;
		c->rinstr = me->index;
	}
	c->readers |= me->bit;
	return true;
}

static inline bool write_quickly(struct shadow *s, struct shadow_cell *c, const struct shadow_reader *me)
{
	(void)s;
	bool after_write = c->wtime <= me->seen[c->writer];
	bool after_reads = c->rtime <= me->lowest || !(c->readers & ~me->bit);
	u8 other = c->flags & ~(C_COPIED | (completes(c, me) ? C_FLIGHT : 0));
	if (other || !after_write || !after_reads)
		return false;
	*c = me->written;
	c->wlane = (u8)me->lane;
	return true;
}

/* --- words and their bytes ------------------------------------------------------------------------------------- */

static void split(struct shadow *s, struct shadow_page *p, u32 word)
{
	if (!p->bytes)
		p->bytes = arena_array(s->arena, struct shadow_cell, PAGE);
	struct shadow_cell *c = &p->words[word];
	for (u32 k = 0; k < 4; k++) {
		struct shadow_cell *to = &p->bytes[word * 4 + k];
		*to = *c;
		if (c->flags & C_VECTOR && k) {
			to->rtime = new_vector(s);
			memcpy(vector_at(s, to->rtime), vector_at(s, c->rtime), s->nwarps * sizeof(u32));
		}
	}
	c->flags = C_SPLIT;
}

static bool alike(const struct shadow_cell *a, const struct shadow_cell *b)
{
	return a->wtime == b->wtime && a->winstr == b->winstr && a->rtime == b->rtime && a->readers == b->readers &&
	       a->writer == b->writer && a->flags == b->flags;
}

/* An access to part of a word, or to a whole word that is split. */
static void touch_bytes(struct shadow *s, struct shadow_page *p, u32 from, u32 to, struct shadow_reader *me)
{
	u32 word = from / 4;
	struct shadow_cell *c = &p->words[word], *b = NULL;
	if (!(c->flags & C_SPLIT))
		split(s, p, word);
	b = &p->bytes[word * 4];
	for (u32 k = from % 4; k <= (to - 1) % 4; k++, me->from++)
		touch_cell(s, &b[k], me, true);
	if (to - from == 4 && !(b->flags & C_VECTOR) && alike(b, b + 1) && alike(b, b + 2) && alike(b, b + 3))
		*c = *b;
}

static inline struct shadow_page *page_at(struct shadow *s, u64 at)
{
	struct shadow_page *p = s->pages[at / PAGE];
	if (!p)
		p = s->pages[at / PAGE] = arena_new(s->arena, struct shadow_page);
	return p;
}

static void touch(struct shadow *s, struct shadow_reader *me)
{
	for (u64 at = me->at, end = at + me->bytes; at < end;) {
		struct shadow_page *p = page_at(s, at);
		u32 from = (u32)(at % PAGE), to = MIN((u32)MIN(end - at, PAGE) + from, (from | 3) + 1);
		struct shadow_cell *c = &p->words[from / 4];
		me->from = at;
		if (to - from == 4 && !(c->flags & C_SPLIT))
			touch_cell(s, c, me, false);
		else
			touch_bytes(s, p, from, to, me);
		at += to - from;
	}
}

/* Access by `w` to the memory of `owner`; `c` is the clock of what happened before in `owner`. */
static struct shadow_reader who_in(struct warp *w, const struct instr *i, struct cta *owner, const struct clock *c,
				   u32 bytes, u32 flags)
{
	bool own = owner == w->block;
	u32 lowest = UINT32_MAX, index = (u32)(i - w->block->launch->kernel->code), now = w->clock.at[w->id];
	for (u32 k = 0; k < owner->nwarps; k++)
		lowest = own && k == w->id ? lowest : MIN(lowest, c->at[k]);
	u8 cell_flags = (u8)((flags & A_FLIGHT ? C_FLIGHT : 0) | (flags & A_STRONG ? C_STRONG : 0) |
			     (flags & A_COPIED ? C_COPIED : 0));
	const u32 *seen = flags & A_ASYNC ? c->fenced : c->at;
	bool trusts_copies = flags & A_PRODUCT && !w->block->launch->strict_proxies;
	return (struct shadow_reader){.w = w,
			    .i = i,
			    .owner = owner,
			    .clock = c,
			    .now = now,
			    .bit = own ? 1u << w->id : 0,
			    .index = index,
			    .lowest = lowest,
			    .flags = flags,
			    .seen = seen,
			    .seen_copied = trusts_copies ? c->at : seen,
			    .bytes = bytes,
			    .size = bytes,
			    .written = {.wtime = now, .winstr = index, .writer = (u8)(own ? w->id : MAX_WARPS),
					.flags = cell_flags}};
}

static struct shadow_reader make_who(struct warp *w, const struct instr *i, u32 bytes, u32 flags)
{
	return who_in(w, i, w->block, &w->clock, bytes, flags);
}

/* Each lane accesses whole words, none across pages. */
#define EACH_WORD(quickly)                                                                                             \
	EACH_LANE (l, mask) {                                                                                          \
		struct shadow_page *p = page_at(s, at[l]);                                                             \
		struct shadow_cell *c = &p->words[at[l] % PAGE / 4];                                                   \
		me->lane = l;                                                                                          \
		for (u32 k = 0; k < bytes / 4; k++)                                                                    \
			if (!quickly(s, &c[k], me)) {                                                                  \
				me->at = at[l] + k * 4;                                                                \
				me->bytes = 4;                                                                         \
				touch(s, me);                                                                          \
			}                                                                                              \
	}

/* Consecutive lanes from `first` on access consecutive bytes [from, end): one check per word. */
static void touch_run(struct shadow *s, struct shadow_reader *me, u32 first, u64 from, u64 end)
{
	for (u64 at = from, stop; at < end; at = stop) {
		stop = MIN(end, (at | 3) + 1);
		struct shadow_cell *c = &page_at(s, at)->words[at % PAGE / 4];
		me->lane = first + (u32)((at - from) / me->size);
		bool done = stop - at == 4 && (me->flags == A_READ ? read_quickly(s, c, me)
								   : !(me->flags & A_READ) && write_quickly(s, c, me));
		if (done)
			continue;
		me->at = at;
		me->bytes = (u32)(stop - at);
		touch(s, me);
	}
}

static void touch_runs(struct shadow *s, struct shadow_reader *me, u32 mask, const u64 at[LANES])
{
	u32 first = 0, next = 0;
	u64 end = 0;
	EACH_LANE(l, mask)
	{
		if (end && (l != next || at[l] != end))
			touch_run(s, me, first, at[first], end);
		if (!end || l != next || at[l] != end)
			first = l;
		end = at[l] + me->size;
		next = l + 1;
	}
	touch_run(s, me, first, at[first], end);
}

static void touch_lanes(struct shadow_reader *me, u32 mask, const u64 at[LANES], u32 bytes)
{
	struct shadow *s = me->w->block->shadow;
	bool reads = !(me->flags & ~(A_READ | A_ASYNC | A_PRODUCT));
	if (bytes % 4 || bytes > PAGE) {
		touch_runs(s, me, mask, at);
	} else if (reads) {
		EACH_WORD(read_quickly)
	} else if (!(me->flags & A_READ)) {
		EACH_WORD(write_quickly)
	} else {
		EACH_LANE(l, mask)
		{
			me->lane = l;
			me->at = at[l];
			touch(s, me);
		}
	}
}

/* Checks for races with other blocks of the cluster; those within the block are already checked. */
static void share(struct shadow_reader *me, u32 mask, const u64 at[LANES], u32 bytes, const struct places *values)
{
	struct cta *b = me->w->block;
	struct races *r = b->cluster->races;
	struct places p = {.values = NULL};
	if (!r || b->failed)
		return;
	if (values)
		p = *values;
	EACH_LANE(l, mask)
	p.host[l] = me->owner->shared + at[l];
	races_access(r, me->w, me->i, mask, &p, bytes, me->flags & (A_READ | A_WRITE | A_STRONG | A_ASYNC), NULL);
}

static void share_one(struct shadow_reader *me, u64 at, u32 bytes)
{
	u64 places[LANES];
	places[me->lane] = at;
	share(me, 1u << me->lane, places, bytes, NULL);
}

void shadow_places(struct warp *w, const struct instr *i, u32 mask, const struct places *p, u32 bytes, u32 flags)
{
	struct shadow_reader me = make_who(w, i, bytes, flags);
	me.places = p;
	touch_lanes(&me, mask, p->at, bytes);
	share(&me, mask, p->at, bytes, p);
}

void shadow_lanes(struct warp *w, const struct instr *i, u32 mask, const u64 at[LANES], u32 bytes, u32 flags)
{
	struct shadow_reader me = make_who(w, i, bytes, flags);
	touch_lanes(&me, mask, at, bytes);
	share(&me, mask, at, bytes, NULL);
}

void shadow_visit(struct warp *w, const struct instr *i, u32 lane, struct cta *owner, u64 at, u32 bytes, u32 flags)
{
	struct shadow *s = owner->shadow;
	for (u64 k = at; k < at + bytes && !w->block->failed; k++) {
		struct shadow_page *p = page_at(s, k);
		u32 word = (u32)(k % PAGE / 4);
		struct shadow_cell *c = &p->words[word];
		bool whole = k % 4 == 0 && at + bytes - k >= 4;
		if (whole && !(c->flags & C_SPLIT)) {
			k += 3;
		} else {
			if (!(c->flags & C_SPLIT))
				split(s, p, word);
			c = &p->bytes[k % PAGE];
		}
		const char *what =
			c->flags & C_FLIGHT ? "asynchronous copy not waited for" : "nothing was written here before";
		bool unwritten = flags & A_READ && !c->wtime && !(c->flags & C_VISIT);
		bool marked = c->flags & C_MBARRIER || (c->flags & C_SOURCE && flags & A_WRITE);
		if (!(c->flags & C_FLIGHT) && marked)
			what = c->flags & C_MBARRIER ? "the bytes are an mbarrier"
						     : "source of an asynchronous copy that was not waited for";
		if (c->flags & C_FLIGHT || unwritten || marked)
			fault(w, i, 1u << lane, "%s: %s of shared bytes 0x%llx–0x%llx of block (%u, %u, %u)", what,
			      access_name(flags), (ull)at, (ull)(at + bytes - 1), owner->id[0], owner->id[1],
			      owner->id[2]);
		else if (flags & A_WRITE)
			c->flags |= C_VISIT;
	}
}

void shadow_access(struct warp *w, const struct instr *i, u32 lane, u64 at, u32 bytes, u32 flags)
{
	struct shadow_reader me = make_who(w, i, bytes, flags);
	me.lane = lane;
	me.at = at;
	touch(w->block->shadow, &me);
	share_one(&me, at, bytes);
}

void shadow_range(struct warp *w, const struct instr *i, u32 lane, struct cta *owner, u64 at, u32 bytes, u32 flags)
{
	struct clock space;
	struct shadow_reader me = who_in(w, i, owner, sync_clock(w, owner, &space), bytes, flags);
	struct shadow *s = owner->shadow;
	u64 first = at;
	me.lane = lane;
	for (u64 end = at + bytes, stop; at < end && !w->block->failed; at = stop) {
		stop = MIN(end, (at | 3) + 1);
		struct shadow_cell *c = &page_at(s, at)->words[at % PAGE / 4];
		if (stop - at == 4 && (flags & A_READ ? read_quickly(s, c, &me) : write_quickly(s, c, &me)))
			continue;
		me.at = at;
		me.bytes = (u32)(stop - at);
		touch(s, &me);
	}
	share_one(&me, first, bytes);
}

/* --- delivery and marks of copies ------------------------------------------------------------------------------ */

/* Called for each word of [at, at + bytes), or for each byte of a split word. */
typedef void cell_fn(struct shadow_cell *c, const void *data);

static void for_cells(struct shadow *s, u64 at, u32 bytes, cell_fn *f, const void *data)
{
	for (u64 end = at + bytes; at < end;) {
		struct shadow_page *p = page_at(s, at);
		u64 stop = MIN(end, (at | 3) + 1);
		struct shadow_cell *c = &p->words[at % PAGE / 4];
		if (stop - at < 4 && !(c->flags & C_SPLIT))
			split(s, p, (u32)(at % PAGE / 4));
		if (!(c->flags & C_SPLIT))
			f(c, data);
		else
			for (u64 b = at; b < stop; b++)
				f(&p->bytes[b % PAGE], data);
		at = stop;
	}
}

static void set_flag(struct shadow_cell *c, const void *flag)
{
	c->flags |= *(const u8 *)flag;
}

static void clear_flag(struct shadow_cell *c, const void *flag)
{
	c->flags &= (u8)~*(const u8 *)flag;
}

void shadow_mark(struct cta *k, u64 at, u32 bytes, enum shadow_mark mark, bool on)
{
	u8 flag = mark == MARK_MBARRIER ? C_MBARRIER : C_SOURCE;
	for_cells(k->shadow, at, bytes, on ? set_flag : clear_flag, &flag);
}

static void overwrite(struct shadow_cell *c, const void *with)
{
	*c = *(const struct shadow_cell *)with;
}

void shadow_arrive(struct warp *w, const struct instr *i, u32 lane, struct cta *owner, u64 at, u32 bytes, u32 agent,
		   u32 when)
{
	u32 index = (u32)(i - w->block->launch->kernel->code);
	struct shadow_cell c = {.wtime = when,
			 .winstr = index,
			 .writer = (u8)agent,
			 .wlane = (u8)lane,
			 .flags = agent < MAX_WARPS ? C_COPIED : 0};
	for_cells(owner->shadow, at, bytes, overwrite, &c);
	if (owner->cluster->races)
		races_arrive(owner->cluster->races, w, i, lane, owner, at, bytes, agent, when);
}
