/* Clusters: the shape, access to shared memory of other blocks, the cluster barrier, mapa and getctarank. */
#include "runtime/sim/cluster.h"

#include <string.h>

#include "runtime/sim/engine.h"
#include "runtime/sim/memory.h"
#include "runtime/sim/sync.h"

/* --- shape ----------------------------------------------------------------------------------------------------- */

bool cluster_shape(const struct launch *l, u32 shape[3], struct strbuf *error)
{
	const u32 *k = l->kernel->cluster, *g = l->grid;
	bool given = l->cluster[0], fixed = k[0];
	for (u32 d = 0; d < 3; d++)
		shape[d] = given ? MAX(l->cluster[d], 1u) : fixed ? k[d] : 1;
	u64 blocks = (u64)shape[0] * shape[1] * shape[2];
	if (l->kernel->explicit_cluster && !given && !fixed)
		sb_puts(error, "the kernel runs in clusters (.explicitcluster), but the launch has no cluster size");
	else if (given && fixed && memcmp(shape, k, sizeof l->cluster) != 0)
		sb_printf(error,
			  "a launch in clusters of (%u, %u, %u) blocks, but the kernel is compiled for (%u, %u, %u)",
			  shape[0], shape[1], shape[2], k[0], k[1], k[2]);
	else if (blocks > MAX_CLUSTER || (l->kernel->max_cluster && blocks > l->kernel->max_cluster))
		sb_printf(error, "clusters of %llu blocks, but the limit is %u", (ull)blocks,
			  l->kernel->max_cluster ? MIN(l->kernel->max_cluster, (u32)MAX_CLUSTER) : MAX_CLUSTER);
	else if (g[0] % shape[0] || g[1] % shape[1] || g[2] % shape[2])
		sb_printf(error,
			  "the grid (%u, %u, %u) is not a multiple of the kernel's clusters of (%u, %u, %u) blocks\n   "
			  "   = hint: launch whole clusters along each axis",
			  g[0], g[1], g[2], shape[0], shape[1], shape[2]);
	else
		return true;
	return false;
}

/* --- shared memory of other blocks ----------------------------------------------------------------------------- */

struct cta *cluster_block(const struct cta *b, u64 address, u64 *within)
{
	const struct cluster *c = b->cluster;
	u64 rank = address >> WINDOW_LOG2;
	*within = address & (((u64)1 << WINDOW_LOG2) - 1);
	return !rank ? &c->blocks[b->rank] : rank <= c->nblocks ? &c->blocks[rank - 1] : NULL;
}

static bool has_ended(const struct cta *b)
{
	for (u32 n = 0; n < b->nwarps; n++)
		if (b->warps[n].state != WARP_DONE)
			return false;
	return true;
}

/* True if `owner` has begun for certain: a cluster barrier completed, or an action of `owner` happened before. */
static bool has_begun(const struct warp *w, const struct cta *owner)
{
	bool begun = w->block->met;
	for (u32 n = 0; !begun && n < owner->nwarps; n++)
		begun = sync_happened(w, owner->index, n, 1, false);
	return begun;
}

/* Last access by one warp of another block; cta.visits has one for each warp of the cluster. */
struct visit {
	u32 time, instr;
};

bool cluster_reaches(struct warp *w, const struct instr *i, u32 lane, const struct cta *owner)
{
	if (owner == w->block)
		return true;
	if (has_ended(owner))
		return fault(w, i, 1u << lane, "access to shared memory of block (%u, %u, %u), which has ended",
			     owner->id[0], owner->id[1], owner->id[2]);
	if (!has_begun(w, owner))
		return fault(w, i, 1u << lane,
			     "access to shared memory of block (%u, %u, %u), which may not have begun", owner->id[0],
			     owner->id[1], owner->id[2]);
	return true;
}

bool cluster_access(struct warp *w, const struct instr *i, u32 lane, struct cta *owner)
{
	struct cta *b = w->block;
	u32 nwarps = b->nwarps;
	if (!cluster_reaches(w, i, lane, owner))
		return false;
	if (!owner->visits)
		owner->visits = arena_array(&owner->arena, struct visit, b->cluster->nblocks * nwarps);
	owner->visits[b->rank * nwarps + w->id] =
		(struct visit){w->clock.at[w->id], (u32)(i - b->launch->kernel->code)};
	return true;
}

/* True if the access happened before for a warp of the block. Otherwise the block could end before the access. */
static bool came_before_end(const struct cta *b, const struct cta *by, u32 warp, u32 time)
{
	for (u32 n = 0; n < b->nwarps; n++)
		if (sync_happened(&b->warps[n], by->index, warp, time, false))
			return true;
	return false;
}

static void check_visits(struct warp *last)
{
	struct cta *b = last->block;
	for (u32 n = 0; b->visits && n < b->cluster->nblocks * b->nwarps; n++) {
		const struct visit *v = &b->visits[n];
		const struct cta *by = &b->cluster->blocks[n / b->nwarps];
		if (!v->time || came_before_end(b, by, n % b->nwarps, v->time))
			continue;
		struct strbuf text = {.arena = &b->arena};
		sb_printf(&text,
			  "block (%u, %u, %u) may end before its shared memory is accessed by block (%u, %u, %u), warp "
			  "%u, at ",
			  b->id[0], b->id[1], b->id[2], by->id[0], by->id[1], by->id[2], n % b->nwarps);
		print_place(&text, b->launch, &b->launch->kernel->code[v->instr]);
		fault(last, last->at, ALL_LANES, "%s", text.at);
		return;
	}
}

/* --- the barrier ----------------------------------------------------------------------------------------------- */

/* Completes the cluster barrier if all warps that have not ended have arrived, and wakes the waiting warps. */
static void complete(struct cluster *c)
{
	bool any = false;
	EACH_WARP(w, c) {
		if (w->state != WARP_DONE && w->meeting != HAS_ARRIVED)
			return;
		any |= w->meeting == HAS_ARRIVED;
	}
	if (!any)
		return;
	for (u32 k = 0; k < c->nblocks; k++) {
		struct cta *b = &c->blocks[k];
		clock_join(&b->arena, &b->came, &(struct clock){.known = c->came});
		b->passed = b->came;
		b->came = (struct clock){.known = NULL};
		for (u32 n = 0; n < b->nwarps; n++) {
			struct warp *w = &b->warps[n];
			bool waits = w->state == WARP_AT_CLUSTER;
			w->meeting = waits || w->meeting != HAS_ARRIVED ? HAS_LEFT : HAS_PASSED;
			if (waits) {
				b->met = true;
				w->state = WARP_READY;
				clock_join(&b->arena, &w->clock, &b->passed);
			}
		}
	}
	c->came = NULL;
}

u32 cluster_arrived(const struct cluster *c)
{
	u32 sum = 0;
	EACH_WARP(w, c)
		sum += w->meeting == HAS_ARRIVED;
	return sum;
}

void cluster_end_warp(struct warp *w)
{
	complete(w->block->cluster);
	if (!has_ended(w->block))
		return;
	engine_end_block(w);
	mbarrier_end_block(w);
	check_visits(w);
}

void run_cluster_wait(struct warp *w, const struct instr *i, u32 mask)
{
	struct cta *b = w->block;
	if (w->meeting == HAS_LEFT)
		fault(w, i, mask, "waits at the cluster's barrier without having arrived");
	else if (w->meeting == HAS_ARRIVED)
		w->state = WARP_AT_CLUSTER;
	else
		clock_join(&b->arena, &w->clock, &b->passed);
	b->met |= w->meeting == HAS_PASSED;
	w->meeting = w->meeting == HAS_PASSED ? HAS_LEFT : w->meeting;
}

void run_cluster_arrive(struct warp *w, const struct instr *i, u32 mask)
{
	struct cta *b = w->block;
	if (w->meeting != HAS_LEFT) {
		fault(w, i, mask, "arrives at the cluster's barrier again without having waited");
		return;
	}
	w->meeting = HAS_ARRIVED;
	sync_publish(w, i->mod[M_ORDER] == RELAXED, &b->came, &b->cluster->came);
	complete(b->cluster);
}

/* --- addresses ------------------------------------------------------------------------------------------------- */

/* Address of an operand in the window of shared::cluster; false after a fault. */
static bool window_address(struct warp *w, const struct instr *i, u32 lane, const struct operand *o, u64 *at)
{
	bool generic = i->space == SPACE_GENERIC;
	u64 within, base = generic ? SHARED_WINDOW : 0;
	u64 address = operand_value(w, o, lane, generic ? 64 : ptx_bits(i->type[0]));
	*at = address - base;
	struct cta *owner = *at >> 40 ? NULL : cluster_block(w->block, *at, &within);
	if (owner && within < owner->shared_bytes)
		return true;
	return fault(w, i, 1u << lane, "0x%llx is not a valid %saddress of shared memory of this cluster", (ull)address,
		     generic ? "generic " : "");
}

void run_mapa(struct warp *w, const struct instr *i, u32 mask)
{
	u32 nblocks = w->block->cluster->nblocks;
	EACH_LANE(l, mask)
	{
		u64 at, rank = operand_value(w, &i->ops[2], l, 32);
		if (!window_address(w, i, l, &i->ops[1], &at))
			return;
		if (rank >= nblocks) {
			fault(w, i, 1u << l, "block %llu does not exist in a cluster of %u", (ull)rank,
			      nblocks);
			return;
		}
		u64 within = at & (((u64)1 << WINDOW_LOG2) - 1);
		set_reg(w, &i->ops[0], l,
			cluster_address((u32)rank, within) + (i->space == SPACE_GENERIC ? SHARED_WINDOW : 0));
	}
}

void run_getctarank(struct warp *w, const struct instr *i, u32 mask)
{
	EACH_LANE(l, mask)
	{
		u64 at, within;
		if (!window_address(w, i, l, &i->ops[1], &at))
			return;
		set_reg(w, &i->ops[0], l, cluster_block(w->block, at, &within)->rank);
	}
}
