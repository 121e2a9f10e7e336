/* Outstanding asynchronous operations of a block, and the engines that write their data. */
#include "runtime/sim/engine.h"
#include "runtime/sim/cluster.h"

#include <string.h>

enum { ENGINES = AGENTS - MAX_WARPS };

struct engine {
	VEC(struct flight *) flying;
	u64 random;
	u32 nengines, ticks[ENGINES];
};

static struct engine *engine_of(struct cta *k)
{
	if (!k->engine) {
		u64 place = ((((u64)k->id[2] << 20) + k->id[1]) << 20) + k->id[0];
		k->engine = arena_new(&k->arena, struct engine);
		k->engine->random = k->launch->seed ^ (place + 1) * 0xD1342543DE82EF95u;
	}
	return k->engine;
}

/* --- operations -------------------------------------------------------------------------------------------------- */

void engine_add(struct flight *f)
{
	struct cta *k = f->w->block;
	struct engine *e = engine_of(k);
	enum async_timing timing = k->launch->timing;
	while (!k->failed && (timing == ASYNC_EARLY || (timing == ASYNC_MIXED && sim_random(&e->random) & 1)))
		if (f->step(f))
			return;
	vec_push(&k->arena, &e->flying, f);
}

static void forget(struct engine *e, u32 n)
{
	e->flying.at[n] = e->flying.at[--e->flying.len];
}

void engine_finish(struct flight *f)
{
	struct engine *e = f->w->block->engine;
	while (!f->w->block->failed && !f->step(f))
		;
	for (u32 n = 0; n < e->flying.len; n++)
		if (e->flying.at[n] == f)
			forget(e, n);
}

bool engine_step(struct cta *k)
{
	struct engine *e = k->engine;
	if (!e || !e->flying.len)
		return false;
	u32 n = (u32)(sim_random(&e->random) % e->flying.len);
	if (e->flying.at[n]->step(e->flying.at[n]))
		forget(e, n);
	return true;
}

void engine_perhaps_step(struct cta *k)
{
	if (k->engine && k->launch->timing == ASYNC_MIXED && sim_random(&k->engine->random) % 4 == 0)
		engine_step(k);
}

void engine_end_block(const struct warp *last)
{
	const struct cluster *c = last->block->cluster;
	for (u32 k = 0; k < c->nblocks; k++) {
		const struct engine *e = c->blocks[k].engine;
		for (u32 n = 0; e && n < e->flying.len; n++)
			if (e->flying.at[n]->end_block)
				e->flying.at[n]->end_block(e->flying.at[n], last->block);
	}
}

void engine_end(struct cta *k)
{
	while (!k->failed && engine_step(k))
		;
}

/* --- transactions ------------------------------------------------------------------------------------------------ */

/* A block with more mbarriers than engines shares engines among them. A wait for a later copy of the same engine then
 * also counts as a wait for an earlier one, so that a missing wait may be overlooked. */
u32 engine_tick(struct mbarrier *b)
{
	struct engine *e = engine_of(b->block);
	if (!b->engine)
		b->engine = MAX_WARPS + e->nengines++ % ENGINES;
	return ++e->ticks[b->engine - MAX_WARPS];
}

bool engine_complete_tx(const struct flight *f, struct mbarrier *b, u32 when, u32 bytes)
{
	b->clock.at[b->engine] = b->clock.fenced[b->engine] = when;
	if (f->w->block != b->block) {
		b->came = f;
		b->came_when = when;
	}
	return mbarrier_transact(f->w, f->i, f->lane, b, -(i64)bytes);
}
