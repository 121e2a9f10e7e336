/* mbarrier instructions. After a failed wait a lane sleeps until a phase of that mbarrier completes. If no warp can
 * continue, the wait expires, as on the hardware, and the lane may retry. */
#include "runtime/sim/mbarrier.h"
#include "runtime/sim/cluster.h"
#include "runtime/sim/engine.h"
#include "runtime/sim/memory.h"
#include "runtime/sim/sync.h"

#include <string.h>

enum { MOST_EXPIRED = 1000 }; /* consecutive expirations before a deadlock is reported */
enum { EXPECTS = 1, NO_COMPLETE }; /* choices of the modifier TX */

#define EACH_MBARRIER(b, k)                                                                                            \
	for (struct mbarrier **b##_at = (k)->mbarriers.at, *b;                                                         \
	     b##_at && b##_at < (k)->mbarriers.at + (k)->mbarriers.len && (b = *b##_at, true); b##_at++)

/* --- finding one ------------------------------------------------------------------------------------------------- */

static struct mbarrier *find(const struct cta *k, u64 at)
{
	EACH_MBARRIER(b, k)
		if (b->at == at)
			return b;
	return NULL;
}

struct cta *mbarrier_place(struct warp *w, const struct instr *i, u32 lane, const struct operand *o,
			   enum ptx_space space, u64 *at)
{
	struct cta *owner = w->block;
	*at = address_of(w, o, lane, &space);
	if (space == SPACE_CLUSTER)
		owner = cluster_block(w->block, *at, at);
	if (space != SPACE_SHARED && space != SPACE_CLUSTER)
		fault(w, i, 1u << lane, "the mbarrier's address is not in shared memory");
	else if (*at % MBARRIER_BYTES)
		fault(w, i, 1u << lane, "misaligned mbarrier: shared address 0x%llx is not a multiple of %u", (ull)*at,
		      MBARRIER_BYTES);
	else if (!owner || *at > owner->shared_bytes || owner->shared_bytes - *at < MBARRIER_BYTES)
		fault(w, i, 1u << lane, "mbarrier outside shared memory: address 0x%llx, which has %llu bytes",
		      (ull)*at, (ull)w->block->shared_bytes);
	return w->block->failed ? NULL : owner;
}

struct mbarrier *mbarrier_at(struct warp *w, const struct instr *i, u32 lane, const struct cta *owner, u64 at)
{
	struct mbarrier *b = find(owner, at);
	struct clock space;
	if (!b)
		fault(w, i, 1u << lane, "the mbarrier at shared address 0x%llx was not initialised", (ull)at);
	else if (sync_clock(w, owner, &space)->at[b->init_warp] < b->init_time)
		fault(w, i, 1u << lane,
		      "race: the mbarrier at shared address 0x%llx was initialised by warp %u at line %u, which is not "
		      "ordered before this",
		      (ull)at, b->init_warp, b->init->line);
	return w->block->failed ? NULL : b;
}

/* The mbarrier at the address in a lane of `o`, in any block of the cluster. NULL after a fault. */
static struct mbarrier *any_of(struct warp *w, const struct instr *i, u32 lane, const struct operand *o,
			       enum ptx_space space)
{
	u64 at;
	struct cta *owner = mbarrier_place(w, i, lane, o, space, &at);
	if (!owner || (owner != w->block && !cluster_access(w, i, lane, owner)))
		return NULL;
	struct mbarrier *b = mbarrier_at(w, i, lane, owner, at);
	if (b && owner == w->block)
		b->used[w->id] = w->clock.at[w->id];
	return b;
}

static bool is_own(struct warp *w, const struct instr *i, u32 lane, const struct cta *owner)
{
	if (owner && owner != w->block)
		fault(w, i, 1u << lane,
		      "the mbarrier is in block (%u, %u, %u): this instruction takes mbarriers of the warp's block "
		      "only",
		      owner->id[0], owner->id[1], owner->id[2]);
	return owner == w->block;
}

struct mbarrier *mbarrier_of(struct warp *w, const struct instr *i, u32 lane, const struct operand *o,
			     enum ptx_space space)
{
	struct mbarrier *b = any_of(w, i, lane, o, space);
	return b && is_own(w, i, lane, b->block) ? b : NULL;
}

bool mbarrier_is_fenced(struct warp *w, const struct instr *i, u32 lane, const struct mbarrier *b)
{
	struct clock space;
	const struct clock *c = sync_clock(w, b->block, &space);
	if (c->fenced[b->init_warp] >= b->init_time || (b->fence_time && c->at[b->fence_warp] >= b->fence_time))
		return true;
	return fault(w, i, 1u << lane,
		     "the initialisation of the mbarrier at shared address 0x%x may not be visible to the async proxy "
		     "yet: after mbarrier.init (line %u), fence.mbarrier_init or fence.proxy.async is missing", b->at,
		     b->init->line);
}

void mbarrier_fence_init(struct warp *w)
{
	EACH_MBARRIER(b, w->block)
		if (!b->fence_time && happened_before(w, b->init_warp, b->init_time)) {
			b->fence_warp = w->id;
			b->fence_time = w->clock.at[w->id];
		}
}

/* --- phases ------------------------------------------------------------------------------------------------------ */

static void wake(struct mbarrier *b)
{
	struct cta *k = b->block;
	EACH_LANE(n, b->waiting) {
		k->warps[n].asleep = 0;
		k->warps[n].state = k->warps[n].state == WARP_ASLEEP ? WARP_READY : k->warps[n].state;
	}
	b->waiting = 0;
}

static void complete_if_due(struct mbarrier *b)
{
	if (b->pending || b->tx)
		return;
	b->phase++;
	b->pending = b->expected;
	b->done = b->clock;
	b->block->expired = 0;
	wake(b);
}

bool mbarrier_arrive(struct warp *w, const struct instr *i, u32 lane, struct mbarrier *b, u32 count,
		     const struct clock *clock)
{
	if (count > b->pending)
		return fault(w, i, 1u << lane,
			     "more arrivals than expected at the mbarrier at shared address 0x%x: %u more, where "
			     "%u of %u are pending in phase %u", b->at, count, b->pending, b->expected, b->phase);
	if (clock)
		clock_join(&b->block->arena, &b->clock, clock);
	b->pending -= count;
	complete_if_due(b);
	return true;
}

bool mbarrier_transact(struct warp *w, const struct instr *i, u32 lane, struct mbarrier *b, i64 bytes)
{
	i64 tx = b->tx + bytes;
	if (tx > MBARRIER_MAX || tx < -MBARRIER_MAX)
		return fault(w, i, 1u << lane,
			     "the tx-count of the mbarrier at shared address 0x%x would become %lld, beyond ±%d", b->at,
			     (long long)tx, MBARRIER_MAX);
	b->tx = (i32)tx;
	complete_if_due(b);
	return true;
}

bool mbarrier_expire(struct cta *k)
{
	bool any = false;
	for (u32 n = 0; n < k->nwarps; n++)
		any |= k->warps[n].state == WARP_ASLEEP;
	if (!any || k->expired++ >= MOST_EXPIRED)
		return false;
	EACH_MBARRIER(b, k)
		wake(b);
	return true;
}

/* True if a warp of the block has waited for the last copy from another block. */
static bool waited_for(const struct mbarrier *b)
{
	for (u32 n = 0; n < b->block->nwarps; n++)
		if (b->block->warps[n].clock.at[b->engine] >= b->came_when)
			return true;
	return false;
}

void mbarrier_end_block(struct warp *last)
{
	EACH_MBARRIER(b, last->block) {
		if (!b->came || waited_for(b))
			continue;
		const struct cta *by = b->came->w->block;
		struct strbuf text = {.arena = &last->block->arena};
		sb_printf(&text,
			  "the block may end before the data that block (%u, %u, %u), warp %u, sends it arrives at the "
			  "mbarrier at shared address 0x%x: no warp waited for ",
			  by->id[0], by->id[1], by->id[2], b->came->w->id, b->at);
		print_place(&text, last->block->launch, b->came->i);
		fault(last, last->at, ALL_LANES, "%s", text.at);
	}
}

void mbarrier_end(struct cta *k)
{
	EACH_MBARRIER(b, k)
		if (b->tx)
			fault(&k->warps[b->init_warp], b->init, 1,
			      "the block ends while the mbarrier at shared address 0x%x, in phase "
			      "%u, %s %d bytes of transactions",
			      b->at, b->phase, b->tx > 0 ? "still expects" : "received more than it expected, by",
			      b->tx > 0 ? b->tx : -b->tx);
}

void mbarrier_print(const struct cta *k, u32 warp, struct strbuf *out)
{
	const char *between = " at the mbarrier ";
	EACH_MBARRIER(b, k)
		if (b->waiting >> warp & 1) {
			sb_printf(out, "%s0x%x", between, b->at);
			between = " and ";
		}
}

void mbarrier_print_all(const struct cta *k, struct strbuf *out)
{
	EACH_MBARRIER(b, k)
		sb_printf(out,
			  "\n  mbarrier 0x%x in phase %u, with %u of %u arrivals and %d bytes of transactions pending",
			  b->at, b->phase, b->pending, b->expected, b->tx);
}

/* --- init and inval ---------------------------------------------------------------------------------------------- */

static void init(struct warp *w, const struct instr *i, u32 lane)
{
	struct cta *k = w->block;
	u64 at, count = operand_value(w, &i->ops[1], lane, 32);
	if (!is_own(w, i, lane, mbarrier_place(w, i, lane, &i->ops[0], i->space, &at)))
		return;
	if (find(k, at))
		fault(w, i, 1u << lane,
		      "there is an mbarrier at shared address 0x%llx already: mbarrier.inval must precede", (ull)at);
	else if (!count || count > MBARRIER_MAX)
		fault(w, i, 1u << lane, "an mbarrier cannot expect %llu arrivals: 1 to %d", (ull)count, MBARRIER_MAX);
	else
		shadow_access(w, i, lane, at, MBARRIER_BYTES, A_WRITE);
	if (k->failed)
		return;
	struct mbarrier *b = arena_new(&k->arena, struct mbarrier);
	*b = (struct mbarrier){.block = k,
			       .at = (u32)at,
			       .expected = (u32)count,
			       .pending = (u32)count,
			       .init = i,
			       .init_warp = w->id,
			       .init_time = w->clock.at[w->id]};
	vec_push(&k->arena, &k->mbarriers, b);
	shadow_mark(k, at, MBARRIER_BYTES, MARK_MBARRIER, true);
	memset(k->shared + at, 0xB5, MBARRIER_BYTES); /* the contents are opaque */
}

static void invalidate(struct warp *w, const struct instr *i, u32 lane, struct mbarrier *b)
{
	mbarrier_vec *all = &b->block->mbarriers;
	if (b->waiting)
		fault(w, i, 1u << lane, "warp %u waits at this mbarrier", (u32)__builtin_ctz(b->waiting));
	else if (b->tx || b->flying)
		fault(w, i, 1u << lane,
		      "this mbarrier has %d bytes of transactions pending, and counts %u copies in flight", b->tx,
		      b->flying);
	for (u32 n = 0; n < b->block->nwarps; n++)
		if (!happened_before(w, n, b->used[n]))
			fault(w, i, 1u << lane, "race: warp %u used this mbarrier, which is not ordered before its end",
			      n);
	if (w->block->failed)
		return;
	for (u32 n = 0; n < all->len; n++)
		if (all->at[n] == b)
			all->at[n] = all->at[--all->len];
	shadow_mark(b->block, b->at, MBARRIER_BYTES, MARK_MBARRIER, false);
	shadow_access(w, i, lane, b->at, MBARRIER_BYTES, A_WRITE);
}

/* --- tokens ------------------------------------------------------------------------------------------------------ */

/* Fields of the token that an arrival returns: pending arrivals before it, place of the mbarrier, phase; widths in
 * bits. */
enum { TOKEN_PENDING = 20, TOKEN_PLACE = 20, TOKEN_PHASE = 24 };

static u64 token_of(const struct mbarrier *b)
{
	return (u64)b->pending | (u64)(b->at / MBARRIER_BYTES) << TOKEN_PENDING |
	       (u64)b->phase << (TOKEN_PENDING + TOKEN_PLACE);
}

/* True if the phase of the token has completed. False after a fault too. */
static bool token_done(struct warp *w, const struct instr *i, u32 lane, const struct mbarrier *b, u64 token)
{
	u32 place = (u32)(token >> TOKEN_PENDING) & ((1 << TOKEN_PLACE) - 1);
	u32 behind = (b->phase - (u32)(token >> (TOKEN_PENDING + TOKEN_PLACE))) & ((1 << TOKEN_PHASE) - 1);
	if (place != b->at / MBARRIER_BYTES)
		fault(w, i, 1u << lane, "the state 0x%llx does not belong to the mbarrier at shared address 0x%x",
		      (ull)token, b->at);
	else if (behind > 1)
		fault(w, i, 1u << lane,
		      "the state belongs neither to the current phase of the mbarrier at shared address 0x%x, %u, nor "
		      "to the preceding phase",
		      b->at, b->phase);
	return behind == 1;
}

/* --- running ----------------------------------------------------------------------------------------------------- */

static void arrive(struct warp *w, const struct instr *i, u32 lane, struct mbarrier *b, u32 extra)
{
	bool expects = i->mod[M_TX] == EXPECTS, drops = i->operation == MBARRIER_ARRIVE_DROP;
	u32 count = expects || i->nops < 3 ? 1 : extra;
	u64 token = token_of(b);
	if (!count || count > MBARRIER_MAX)
		fault(w, i, 1u << lane, "%u arrivals at once: 1 to %d", count, MBARRIER_MAX);
	else if (i->mod[M_TX] == NO_COMPLETE && count >= b->pending)
		fault(w, i, 1u << lane,
		      "this arrival has .noComplete, but completes the phase of the mbarrier at shared address 0x%x",
		      b->at);
	else if (expects)
		mbarrier_transact(w, i, lane, b, extra);
	if (w->block->failed)
		return;
	if (drops)
		b->expected -= MIN(count, b->expected);
	/* a clock holds agents of one block only, so versions carry the order to another block */
	struct clock away = {.known = NULL};
	bool releases = i->mod[M_ORDER] != RELAXED, own = b->block == w->block;
	if (releases && !own)
		sync_publish(w, false, NULL, &away.known);
	if (mbarrier_arrive(w, i, lane, b, count, !releases ? NULL : own ? &w->clock : &away) && own)
		set_reg(w, &i->ops[0], lane, token);
}

static bool is_done(struct warp *w, const struct instr *i, u32 lane, const struct mbarrier *b)
{
	if (!i->mod[M_PARITY])
		return token_done(w, i, lane, b, operand_value(w, &i->ops[2], lane, 64));
	u64 parity = operand_value(w, &i->ops[2], lane, 32);
	if (parity > 1)
		fault(w, i, 1u << lane, "the parity of a phase is 0 or 1, not %llu", (ull)parity);
	return (b->phase & 1) != parity;
}

void run_mbarrier_wait(struct warp *w, const struct instr *i, u32 mask)
{
	EACH_LANE(l, mask) {
		struct mbarrier *b = mbarrier_of(w, i, l, &i->ops[1], i->space);
		bool done = b && is_done(w, i, l, b);
		if (w->block->failed)
			return;
		set_reg(w, &i->ops[0], l, done);
		if (done && i->mod[M_ORDER] != RELAXED)
			clock_join(&w->block->arena, &w->clock, &b->done);
		if (!done) {
			w->asleep |= 1u << l;
			b->waiting |= 1u << w->id;
		}
	}
}

static void run_one(struct warp *w, const struct instr *i, u32 lane)
{
	enum mbarrier_operation op = (enum mbarrier_operation)i->operation;
	if (op == MBARRIER_INIT) {
		init(w, i, lane);
		return;
	}
	bool arrives = i->has_result;
	u32 extra = i->nops > 1u + arrives ? (u32)operand_value(w, &i->ops[1 + arrives], lane, 32) : 0;
	const struct operand *place = &i->ops[arrives];
	struct mbarrier *b = (op == MBARRIER_INVAL ? mbarrier_of : any_of)(w, i, lane, place, i->space);
	if (!b)
		return;
	if (op == MBARRIER_INVAL)
		invalidate(w, i, lane, b);
	else if (arrives)
		arrive(w, i, lane, b, extra);
	else
		mbarrier_transact(w, i, lane, b, op == MBARRIER_EXPECT_TX ? (i64)extra : -(i64)extra);
}

void run_mbarrier(struct warp *w, const struct instr *i, u32 mask)
{
	EACH_LANE(l, mask)
		if (!w->block->failed)
			run_one(w, i, l);
	w->clock.at[w->id]++; /* later actions are not released */
}

void run_pending_count(struct warp *w, const struct instr *i, u32 mask)
{
	EACH_LANE(l, mask)
		set_reg(w, &i->ops[0], l, operand_value(w, &i->ops[1], l, 64) & ((1 << TOKEN_PENDING) - 1));
}

/* --- checks ------------------------------------------------------------------------------------------------------ */

bool check_mbarrier(struct decoder *d)
{
	const struct instr *i = d->i;
	if (!i->mod[M_ORDER] != !i->mod[M_SCOPE])
		return decode_fail(d, "'%s' with an order or a scope alone", i->opcode);
	if (i->mod[M_ORDER] == RELAXED && !need_sm(d, 90))
		return false;
	return !i->has_result || i->space != SPACE_CLUSTER || i->ops[0].kind == O_SINK ||
	       decode_fail(d, "'%s': an arrival at another block's mbarrier has no state: write _", i->opcode);
}
