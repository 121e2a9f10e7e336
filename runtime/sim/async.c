/* cp.async: copies from global to shared memory, which complete when a lane waits for them.
 *
 * Each lane has its own groups. For the shadow, the bytes of a copy are in flight from the instruction until a wait of
 * the issuing lane covers the copy, no matter when the data move. The data move at that wait (ASYNC_LATE: the contents
 * of global memory at that time, with poison in shared memory until then), at once (ASYNC_EARLY), or at either time, by
 * a random choice per lane (ASYNC_MIXED).
 *
 * A kernel may end with copies that no wait covers, as on the hardware. A read of their bytes is a fault. */
#include "runtime/sim/bulk.h"
#include "runtime/sim/engine.h"
#include "runtime/sim/memory.h"

#include <string.h>

enum { POISON = 0xFF }; /* a NaN in every format */

struct copy {
	const struct instr *i;
	u32 pending; /* lanes with an outstanding copy */
	u32 moved;   /* lanes that have moved their data */
	u32 group[LANES];
	u32 to[LANES];
	u64 from[LANES];
	u8 source[LANES]; /* bytes to read; the rest of the copy is filled with zeros */
};

struct async {
	VEC(struct copy) copies;
	u64 forgotten;   /* number of copies removed from `copies` */
	u32 first;       /* index of the first copy that may be outstanding */
	u32 open[LANES]; /* number of the group that is open */
	u64 random;
};

static struct async *async_of(struct warp *w)
{
	if (!w->async) {
		const struct cta *b = w->block;
		w->async = arena_new(&w->block->arena, struct async);
		u64 place = ((((u64)b->id[2] << 20) + b->id[1]) << 20) + b->id[0];
		w->async->random = b->launch->seed ^ (place * MAX_WARPS + w->id + 1) * 0x9E3779B97F4A7C15u;
	}
	return w->async;
}

static u32 some_lanes(struct async *a)
{
	return (u32)(sim_random(&a->random) >> 31);
}

static u32 size_of(const struct instr *i)
{
	return (u32)i->ops[2].imm;
}

static void move(struct warp *w, const struct copy *c, u32 lane)
{
	char *to = w->block->shared + c->to[lane];
	const char *from = (const char *)(uintptr_t)c->from[lane];
	u32 n = c->source[lane], size = size_of(c->i);
	if (n == 16) {
		memcpy(to, from, 16);
		return;
	}
	if (n)
		memcpy(to, from, n);
	memset(to + n, 0, size - n);
}

/* --- beginning ------------------------------------------------------------------------------------------------- */

/* Bytes that each lane reads. The operand after the size is a number of bytes, or a predicate that is true to read
 * nothing. */
static bool source_sizes(struct warp *w, const struct instr *i, u32 mask, u8 source[LANES])
{
	u32 size = size_of(i);
	const struct operand *o = i->nops > 3u + (i->mod[M_HINT] != 0) ? &i->ops[3] : NULL;
	EACH_LANE(l, mask)
	{
		u64 n = size;
		if (o && o->kind == O_REG && o->reg_type == PT_PRED)
			n = operand_value(w, o, l, 1) ? 0 : size;
		else if (o)
			n = operand_value(w, o, l, 32);
		if (n > size)
			return fault(w, i, 1u << l, "reads %llu bytes to copy %u", (ull)n, size);
		source[l] = (u8)n;
	}
	return true;
}

/* Keeps one of the lanes that copy the same bytes to the same address. Faults if two lanes copy different bytes
 * there. */
static bool drop_duplicates(struct warp *w, const struct instr *i, u32 *mask, const struct copy *c)
{
	enum { SLOTS = 64 };
	u8 slot[SLOTS] = {0};
	u32 size = size_of(i), keep = *mask;
	EACH_LANE(l, *mask)
	{
		u32 at = c->to[l] / size, s = (at * 0x9E3779B1u) >> 26;
		while (slot[s] && c->to[slot[s] - 1] != c->to[l])
			s = (s + 1) % SLOTS;
		u32 other = slot[s] - 1u;
		if (!slot[s]) {
			slot[s] = (u8)(l + 1);
			continue;
		}
		if (c->source[other] != c->source[l] || (c->source[l] && c->from[other] != c->from[l]))
			return fault(w, i, 1u << l | 1u << other,
				     "race: lanes %u and %u copy different data to shared bytes 0x%x–0x%x", other, l,
				     c->to[l], c->to[l] + size - 1);
		keep &= ~(1u << l);
	}
	*mask = keep;
	return true;
}

static bool check_sources(struct warp *w, const struct instr *i, u32 mask, const struct copy *c)
{
	u32 size = size_of(i), whole = 0;
	EACH_LANE(l, mask)
	{
		if (c->source[l] == size)
			whole |= 1u << l;
		else if (c->source[l] && !global_memory_at(w, i, l, c->from[l], c->source[l], size, false))
			return false;
	}
	struct places p = {.values = NULL};
	return !whole || find_places(w, i, whole, &i->ops[1], SPACE_GLOBAL, size, A_READ, &p);
}

static bool check_destinations(struct warp *w, const struct instr *i, u32 mask, const u64 to[LANES])
{
	struct cta *b = w->block;
	u32 size = size_of(i);
	EACH_LANE(l, mask)
	{
		if (to[l] % size)
			fault(w, i, 1u << l, "misaligned copy of %u bytes: shared address 0x%llx", size,
			      (ull)to[l]);
		else if (to[l] > b->shared_bytes || size > b->shared_bytes - to[l])
			fault(w, i, 1u << l,
			      "copy of %u bytes outside shared memory: address 0x%llx, which has %llu bytes", size,
			      (ull)to[l], (ull)b->shared_bytes);
		if (b->failed)
			return false;
	}
	return true;
}

static void poison(char *to, u32 size)
{
	if (size == 16)
		memset(to, POISON, 16);
	else
		memset(to, POISON, size);
}

static struct copy *new_copy(struct warp *w, struct async *a)
{
	if (a->first && a->first * 2 >= a->copies.len) {
		a->copies.len -= a->first;
		a->forgotten += a->first;
		memmove(a->copies.at, a->copies.at + a->first, a->copies.len * sizeof *a->copies.at);
		a->first = 0;
	}
	struct copy none = {0};
	vec_push(&w->block->arena, &a->copies, none);
	return &a->copies.at[a->copies.len - 1];
}

void run_copy(struct warp *w, const struct instr *i, u32 mask)
{
	struct async *a = async_of(w);
	struct copy *c = new_copy(w, a);
	u32 size = size_of(i);
	u64 to[LANES];
	lane_addresses(w, &i->ops[0], SPACE_SHARED, to);
	lane_addresses(w, &i->ops[1], SPACE_GLOBAL, c->from);
	c->i = i;
	for (u32 l = 0; l < LANES; l++)
		c->to[l] = (u32)to[l];
	memcpy(c->group, a->open, sizeof c->group);
	if (!source_sizes(w, i, mask, c->source) || !check_destinations(w, i, mask, to) ||
	    !check_sources(w, i, mask, c))
		return;
	if (w->block->counters)
		count_shared(w, i, mask, to, size, true);
	if (!drop_duplicates(w, i, &mask, c))
		return;
	shadow_lanes(w, i, mask, to, size, A_WRITE | A_FLIGHT);
	c->pending = mask;
	enum async_timing timing = w->block->launch->timing;
	c->moved = timing == ASYNC_EARLY ? mask : timing == ASYNC_LATE ? 0 : mask & some_lanes(a);
	EACH_LANE(l, mask)
	{
		if (c->moved >> l & 1)
			move(w, c, l);
		else
			poison(w->block->shared + to[l], size);
	}
}

/* --- waiting --------------------------------------------------------------------------------------------------- */

static void arrive(struct warp *w, struct copy *c, u32 lanes)
{
	EACH_LANE(l, lanes & ~c->moved)
	move(w, c, l);
	c->pending &= ~lanes;
}

static void complete(struct warp *w, struct copy *c, u32 lanes)
{
	u64 to[LANES];
	for (u32 l = 0; l < LANES; l++)
		to[l] = c->to[l];
	arrive(w, c, lanes);
	shadow_lanes(w, c->i, lanes, to, size_of(c->i), A_WRITE | A_COPIED);
}

/* Completes the copies of each lane in groups below limit[lane]. */
static void wait_below(struct warp *w, u32 mask, const u32 limit[LANES])
{
	struct async *a = w->async;
	bool all_before = true;
	for (u32 n = a->first; n < a->copies.len; n++) {
		struct copy *c = &a->copies.at[n];
		u32 done = 0;
		for (u32 l = 0; l < LANES; l++)
			done |= (u32)(c->group[l] < limit[l]) << l;
		done &= mask & c->pending;
		if (done)
			complete(w, c, done);
		all_before &= !c->pending;
		if (all_before)
			a->first = n + 1;
	}
}

void run_async_commit(struct warp *w, const struct instr *i, u32 mask)
{
	(void)i;
	struct async *a = async_of(w);
	EACH_LANE(l, mask)
	a->open[l]++;
}

void run_async_wait(struct warp *w, const struct instr *i, u32 mask)
{
	struct async *a = async_of(w);
	u32 limit[LANES] = {0}, left = (u32)i->ops[0].imm;
	EACH_LANE(l, mask)
	limit[l] = a->open[l] > left ? a->open[l] - left : 0;
	wait_below(w, mask, limit);
}

void run_async_wait_all(struct warp *w, const struct instr *i, u32 mask)
{
	struct async *a = async_of(w);
	run_async_commit(w, i, mask);
	wait_below(w, mask, a->open);
}

/* Copies without a wait stay outstanding for the warps that continue. */
void async_end(struct warp *w)
{
	w->async = NULL;
}

/* --- arrivals at mbarriers ------------------------------------------------------------------------------------- */

/* cp.async.mbarrier.arrive: an arrival triggered when all prior copies of the lane are complete. */
struct arrival {
	struct flight flight;
	struct async *async;
	struct mbarrier *at;
	u64 end;          /* number of the first copy not covered, counted from the first copy of the warp */
	struct clock clock; /* clock of the warp at the instruction */
};

static bool arrival_step(struct flight *f)
{
	struct arrival *r = (struct arrival *)f;
	struct async *a = r->async;
	struct warp *w = f->w;
	for (u32 n = 0; n < a->copies.len && a->forgotten + n < r->end; n++) {
		struct copy *c = &a->copies.at[n];
		if (!(c->pending >> f->lane & 1))
			continue;
		arrive(w, c, 1u << f->lane);
		shadow_arrive(w, c->i, f->lane, w->block, c->to[f->lane], size_of(c->i), w->id, r->clock.at[w->id]);
	}
	mbarrier_arrive(w, f->i, f->lane, r->at, 1, &r->clock);
	return true;
}

void run_async_arrive(struct warp *w, const struct instr *i, u32 mask)
{
	struct async *a = async_of(w);
	EACH_LANE(l, mask)
	{
		struct mbarrier *b = mbarrier_of(w, i, l, &i->ops[0], i->space);
		if (!b)
			return;
		if (!i->mod[M_NOINC] && b->pending++ == MBARRIER_MAX) {
			fault(w, i, 1u << l, "more than %d pending arrivals", MBARRIER_MAX);
			return;
		}
		struct arrival *r = arena_new(&w->block->arena, struct arrival);
		r->flight = (struct flight){.step = arrival_step, .w = w, .i = i, .lane = l};
		r->async = a;
		r->at = b;
		r->end = a->forgotten + a->copies.len;
		r->clock = w->clock;
		engine_add(&r->flight);
	}
	w->clock.at[w->id]++;
}

/* --- checks ---------------------------------------------------------------------------------------------------- */

bool check_copy(struct decoder *d)
{
	enum { ONLY_L2 = 2 }; /* .cg */
	const struct instr *i = d->i;
	u32 size = size_of(i);
	return size == 16 || (i->mod[M_COP] != ONLY_L2 && (size == 4 || size == 8)) ||
	       decode_fail(d, "'%s' cannot copy %u bytes", i->opcode, size);
}
