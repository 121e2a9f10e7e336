/* Vector clocks, versions of blocks, and releases and acquires at addresses. */
#include "runtime/sim/sync.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/sim/cluster.h"
#include "runtime/sim/mbarrier.h"
#include "runtime/sim/memory.h"

enum { MOST_KNOWN = 512 };

struct version {
	u32 block, number;
	u32 fenced;  /* version up to which everything happened before for the async proxy */
	bool narrow; /* released at cluster scope only */
};
typedef VEC(struct version) version_vec;

struct known { /* one version per block, sorted by block; immutable */
	u32 n;
	struct version at[];
};
static const struct known knows_all;

/* Versions of a block. The clock of version v is at clocks[(v - 1) * 2 * nagents], followed by its clock for the async
 * proxy. Version v has learnt the first edges[v - 1] entries of `learnt`. */
struct history {
	VEC(u32) clocks, edges;
	version_vec learnt, knows; /* learnt: in order of time; knows: one version per block, sorted by block */
	u32 all_from;              /* first version that knew all blocks; 0: none yet */
};

struct sync {
	pthread_mutex_t lock;
	struct arena arena;
	u32 nagents;          /* agents of a block */
	struct map histories; /* block index + 1 → struct history */
	struct map records;   /* address → version_vec, sorted: the last release of each block there */
};

struct strong_read {
	const char *host;
	bool in_shared;
};

struct fence {
	struct clock clock;
	u32 version; /* version of the warp's block at the fence; 0: not visible to other blocks */
	bool narrow;
	VEC(struct strong_read) reads; /* relaxed reads since the last acquire fence */
};

struct sync *sync_new(u32 nagents)
{
	struct sync *s = calloc(1, sizeof *s);
	if (!s || pthread_mutex_init(&s->lock, NULL)) {
		free(s);
		return NULL;
	}
	s->nagents = nagents;
	s->histories.arena = s->records.arena = &s->arena;
	return s;
}

void sync_free(struct sync *s)
{
	if (!s)
		return;
	pthread_mutex_destroy(&s->lock);
	arena_free(&s->arena);
	free(s);
}

void sync_lock(struct warp *w)
{
	if (w->block->sync)
		lock_hold(&w->block->cluster->sync_held, &w->block->sync->lock);
}

void sync_unlock(struct warp *w)
{
	if (w->block->sync)
		lock_release(&w->block->cluster->sync_held);
}

static const void *key_of(u64 number)
{
	return (const void *)(uintptr_t)(number + 1);
}

/* --- knowledge of other blocks --------------------------------------------------------------------------------- */

/* Index of a block in a sorted array, or the index at which to insert it. */
static u32 position(const struct version *at, u32 n, u32 block)
{
	u32 lo = 0;
	while (lo < n) {
		u32 mid = lo + (n - lo) / 2;
		if (at[mid].block < block)
			lo = mid + 1;
		else
			n = mid;
	}
	return lo;
}

/* The known version of a block; number 0: none. */
static struct version known_version(const struct known *k, u32 block)
{
	u32 p = k ? position(k->at, k->n, block) : 0;
	return k && p < k->n && k->at[p].block == block ? k->at[p] : (struct version){.block = block};
}

static bool is_news(struct version v, struct version known)
{
	return known.number < v.number || known.fenced < v.fenced;
}

static const struct known *known_make(struct arena *a, const version_vec *v)
{
	if (v->len > MOST_KNOWN)
		return &knows_all;
	struct known *k = arena_alloc(a, sizeof *k + v->len * sizeof *k->at);
	k->n = v->len;
	for (u32 i = 0; i < v->len; i++)
		k->at[i] = v->at[i];
	return k;
}

static void insert(struct arena *a, version_vec *v, u32 at, struct version one)
{
	vec_push(a, v, one);
	memmove(v->at + at + 1, v->at + at, (v->len - 1 - at) * sizeof one);
	v->at[at] = one;
}

/* Adds version `one` to a sorted vector. True if it was not known. */
static bool learn(struct arena *a, version_vec *v, struct version one)
{
	u32 p = position(v->at, v->len, one.block);
	if (p < v->len && v->at[p].block == one.block) {
		bool news = is_news(one, v->at[p]);
		v->at[p].number = MAX(v->at[p].number, one.number);
		v->at[p].fenced = MAX(v->at[p].fenced, one.fenced);
		return news;
	}
	one.narrow = false;
	insert(a, v, p, one);
	return true;
}

static bool includes(const struct known *all, const struct known *some)
{
	for (u32 n = 0; n < some->n; n++)
		if (is_news(some->at[n], known_version(all, some->at[n].block)))
			return false;
	return true;
}

static const struct known *known_join(struct arena *a, const struct known *x, const struct known *y)
{
	if (!y || x == y || x == &knows_all)
		return x;
	if (!x || y == &knows_all || (y->n >= x->n && includes(y, x)))
		return y;
	if (includes(x, y))
		return x;
	version_vec v = {0};
	for (u32 n = 0; n < x->n; n++)
		vec_push(a, &v, x->at[n]);
	for (u32 n = 0; n < y->n; n++)
		learn(a, &v, y->at[n]);
	return known_make(a, &v);
}

void clock_join(struct arena *a, struct clock *into, const struct clock *from)
{
	for (u32 k = 0; k < AGENTS; k++) {
		into->at[k] = MAX(into->at[k], from->at[k]);
		into->fenced[k] = MAX(into->fenced[k], from->fenced[k]);
	}
	into->known = known_join(a, into->known, from->known);
}

/* --- versions -------------------------------------------------------------------------------------------------- */

static struct history *history_of(struct sync *s, u64 block)
{
	struct history *h = map_get(&s->histories, key_of(block));
	if (!h) {
		h = arena_new(&s->arena, struct history);
		map_put(&s->histories, key_of(block), h);
	}
	return h;
}

static u32 new_version(struct warp *w)
{
	struct sync *s = w->block->sync;
	struct history *h = history_of(s, w->block->index);
	const struct known *k = w->clock.known;
	for (u32 n = 0, before = h->clocks.len, all = 2 * s->nagents; n < all; n++) {
		u32 time = n < s->nagents ? w->clock.at[n] : w->clock.fenced[n - s->nagents];
		time = MAX(before ? h->clocks.at[before - all + n] : 0, time);
		vec_push(&s->arena, &h->clocks, time);
	}
	for (u32 n = 0; k && n < k->n; n++)
		if (learn(&s->arena, &h->knows, k->at[n]))
			vec_push(&s->arena, &h->learnt, k->at[n]);
	vec_push(&s->arena, &h->edges, h->learnt.len);
	if (k == &knows_all && !h->all_from)
		h->all_from = h->edges.len;
	return h->edges.len;
}

static bool same_cluster(const struct cta *b, u64 block)
{
	for (u32 k = 0; k < b->cluster->nblocks; k++)
		if (b->cluster->blocks[k].index == block)
			return true;
	return false;
}

/* The warp learns these versions and, transitively, the versions that their blocks knew. */
static void know(struct warp *w, const version_vec *given, bool narrow)
{
	struct cta *b = w->block;
	struct sync *s = b->sync;
	version_vec now = {0}, work = {0};
	if (w->clock.known == &knows_all)
		return;
	for (u32 n = 0; n < given->len; n++) {
		struct version v = given->at[n];
		bool heard = v.block != b->index && is_news(v, known_version(w->clock.known, v.block));
		if (heard && ((!v.narrow && !narrow) || same_cluster(b, v.block)))
			vec_push(&b->arena, &work, v);
		if (work.len > 2 * MOST_KNOWN) { /* `given` has at most two versions per block */
			w->clock.known = &knows_all;
			return;
		}
	}
	if (!work.len)
		return;
	for (u32 n = 0; w->clock.known && n < w->clock.known->n; n++)
		vec_push(&b->arena, &now, w->clock.known->at[n]);
	while (work.len && now.len <= MOST_KNOWN) {
		struct version v = work.at[--work.len];
		u32 p = position(now.at, now.len, v.block),
		    before = p < now.len && now.at[p].block == v.block ? now.at[p].number : 0;
		if (v.block == b->index || (before && !is_news(v, now.at[p])))
			continue;
		const struct history *h = history_of(s, v.block);
		if (h->all_from && v.number >= h->all_from)
			now.len = MOST_KNOWN + 1;
		else
			learn(&b->arena, &now, v);
		for (u32 e = before ? h->edges.at[before - 1] : 0; e < h->edges.at[v.number - 1]; e++)
			vec_push(&b->arena, &work, h->learnt.at[e]);
	}
	w->clock.known = known_make(&b->arena, &now);
}

/* Times of the agents in a version; `fenced`: for the async proxy. The lock is held. */
static const u32 *times_of(struct sync *s, u64 block, u32 number, bool fenced)
{
	return &history_of(s, block)->clocks.at[(2 * number - !fenced - 1) * s->nagents];
}

bool sync_happened(const struct warp *w, u64 block, u32 agent, u32 time, bool fenced)
{
	struct sync *s = w->block->sync;
	if (w->clock.known == &knows_all)
		return true;
	struct version v = known_version(w->clock.known, (u32)block);
	if (!v.number)
		return false;
	struct held h;
	lock_hold(&h, &s->lock);
	bool before = time <= times_of(s, block, v.number, fenced)[agent] ||
		      (fenced && v.fenced && time <= times_of(s, block, v.fenced, false)[agent]);
	lock_release(&h);
	return before;
}

const struct clock *sync_clock(const struct warp *w, const struct cta *block, struct clock *space)
{
	struct sync *s = w->block->sync;
	if (block == w->block)
		return &w->clock;
	struct version v = known_version(w->clock.known, (u32)block->index);
	*space = (struct clock){.known = NULL};
	if (w->clock.known == &knows_all) {
		memset(space->at, 0xFF, sizeof space->at);
		memset(space->fenced, 0xFF, sizeof space->fenced);
	}
	if (!v.number)
		return space;
	struct held h;
	lock_hold(&h, &s->lock);
	memcpy(space->fenced, times_of(s, block->index, v.number, true), sizeof space->fenced);
	if (v.fenced)
		memcpy(space->at, times_of(s, block->index, v.fenced, false), sizeof space->at);
	for (u32 k = 0; k < AGENTS; k++)
		space->fenced[k] = MAX(space->fenced[k], space->at[k]);
	memcpy(space->at, times_of(s, block->index, v.number, false), sizeof space->at);
	lock_release(&h);
	return space;
}

void clock_fence(struct warp *w)
{
	const struct known *known = w->clock.known;
	version_vec all = {0};
	bool news = false;
	for (u32 k = 0; k < AGENTS; k++)
		w->clock.fenced[k] = MAX(w->clock.fenced[k], w->clock.at[k]);
	/* only accesses within a cluster use the fenced versions of other blocks */
	if (w->block->cluster->nblocks == 1)
		return;
	for (u32 n = 0; known && n < known->n; n++) {
		struct version v = known->at[n];
		news |= v.fenced < v.number;
		v.fenced = v.number;
		vec_push(&w->block->arena, &all, v);
	}
	if (news)
		w->clock.known = known_make(&w->block->arena, &all);
}

void sync_publish(struct warp *w, bool of_fence, struct clock *own, const struct known **others)
{
	struct arena *a = &w->block->arena;
	const struct clock *c = of_fence ? w->fence ? &w->fence->clock : NULL : &w->clock;
	if (!c)
		return;
	if (own)
		clock_join(a, own, c);
	*others = known_join(a, *others, c->known);
	sync_lock(w);
	u32 number = !w->block->sync ? 0 : of_fence ? w->fence->version : new_version(w);
	sync_unlock(w);
	if (number) {
		struct version one = {.block = (u32)w->block->index, .number = number};
		*others = known_join(a, *others, known_make(a, &(version_vec){&one, 1, 1}));
	}
	if (!of_fence)
		w->clock.at[w->id]++;
}

/* --- at addresses ---------------------------------------------------------------------------------------------- */

/* Table of the releases for other blocks; NULL: no other block can acquire there. */
static struct map *records_of(struct cta *b, bool in_shared)
{
	if (!b->sync || (in_shared && b->cluster->nblocks == 1))
		return NULL;
	return in_shared ? &b->cluster->records : &b->sync->records;
}

/* Records a release at an address. Within the block the clocks released there are joined, because an atomic passes on
 * earlier releases at its address. */
static void leave(struct cta *b, const char *host, bool in_shared, const struct clock *clock, u32 version, bool narrow)
{
	struct clock *c = map_get(&b->releases, host);
	if (!c) {
		c = arena_new(&b->arena, struct clock);
		b->releases.arena = &b->arena;
		map_put(&b->releases, host, c);
	}
	clock_join(&b->arena, c, clock);
	struct map *records = version ? records_of(b, in_shared) : NULL;
	if (!records)
		return;
	version_vec *v = map_get(records, host);
	if (!v) {
		v = arena_new(records->arena, version_vec);
		map_put(records, host, v);
	}
	struct version one = {.block = (u32)b->index, .number = version, .narrow = narrow};
	u32 p = position(v->at, v->len, one.block);
	while (p < v->len && v->at[p].block == one.block && v->at[p].narrow != narrow)
		p++;
	if (p < v->len && v->at[p].block == one.block)
		v->at[p] = one;
	else
		insert(records->arena, v, p, one);
}

static void find(struct warp *w, const char *host, bool in_shared, enum scope scope)
{
	struct cta *b = w->block;
	const struct clock *c = map_get(&b->releases, host);
	struct map *records = scope == SCOPE_CTA ? NULL : records_of(b, in_shared);
	const version_vec *v = records ? map_get(records, host) : NULL;
	if (c)
		clock_join(&b->arena, &w->clock, c);
	if (v)
		know(w, v, scope == SCOPE_CLUSTER);
}

static bool reaches_others(const struct cta *b, enum scope scope)
{
	return b->sync && (scope == SCOPE_GPU || (scope == SCOPE_CLUSTER && b->cluster->nblocks > 1));
}

void sync_release(struct warp *w, u32 mask, const struct places *p, enum scope scope)
{
	u32 version = reaches_others(w->block, scope) ? new_version(w) : 0;
	EACH_LANE(l, mask)
	leave(w->block, p->host[l], p->in_shared >> l & 1, &w->clock, version, scope == SCOPE_CLUSTER);
	w->clock.at[w->id]++;
}

void sync_acquire(struct warp *w, u32 mask, const struct places *p, enum scope scope)
{
	EACH_LANE(l, mask)
	find(w, p->host[l], p->in_shared >> l & 1, scope);
}

/* --- fences ---------------------------------------------------------------------------------------------------- */

void sync_relaxed(struct warp *w, u32 mask, const struct places *p, u32 flags)
{
	enum { LOOK_BACK = 64 };
	struct cta *b = w->block;
	struct fence *f = w->fence;
	if (!b->launch->kernel->has_fences)
		return;
	if (!f)
		f = w->fence = arena_new(&b->arena, struct fence);
	EACH_LANE(l, mask)
	{
		struct strong_read r = {p->host[l], p->in_shared >> l & 1};
		u32 n = f->reads.len, stop = n > LOOK_BACK ? n - LOOK_BACK : 0;
		if (flags & A_WRITE)
			leave(b, r.host, r.in_shared, &f->clock, f->version, f->narrow);
		while (n > stop && f->reads.at[n - 1].host != r.host)
			n--;
		if (flags & A_READ && n == stop)
			vec_push(&b->arena, &f->reads, r);
	}
}

static void acquire_reads(struct warp *w, enum scope scope)
{
	struct fence *f = w->fence;
	for (u32 n = 0; n < f->reads.len; n++)
		find(w, f->reads.at[n].host, f->reads.at[n].in_shared, scope);
	f->reads.len = 0;
}

/* fence and membar, which has no order in its name and is sequentially consistent */
void run_fence(struct warp *w, const struct instr *i, u32 mask)
{
	struct cta *b = w->block;
	enum scope scope = scope_of(i);
	struct fence *f = w->fence;
	bool is_default = !i->mod[M_ORDER]; /* acquires and releases: membar, and a fence without an order */
	(void)mask;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	sync_lock(w);
	if (!f)
		f = w->fence = arena_new(&b->arena, struct fence);
	if (is_default || acquires(i))
		acquire_reads(w, scope);
	if (is_default || releases(i)) {
		f->clock = w->clock;
		f->version = reaches_others(b, scope) ? new_version(w) : f->version;
		f->narrow = scope == SCOPE_CLUSTER;
		w->clock.at[w->id]++;
	}
	sync_unlock(w);
}

void run_fence_mbarrier_init(struct warp *w, const struct instr *i, u32 mask)
{
	mbarrier_fence_init(w); /* before the release, so that the release covers it */
	run_fence(w, i, mask);
}

/* Of two versions of a block the later one stands for both. */
void fence_join(struct arena *a, struct fence **into, const struct fence *from)
{
	if (!from || *into == from)
		return;
	if (!*into)
		*into = arena_new(a, struct fence);
	clock_join(a, &(*into)->clock, &from->clock);
	if (from->version > (*into)->version) {
		(*into)->version = from->version;
		(*into)->narrow = from->narrow;
	}
}
