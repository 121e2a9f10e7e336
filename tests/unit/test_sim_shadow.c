/* The shadow of shared memory against a plain model: every access ever made, byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "runtime/sim/cluster.h"
#include "runtime/sim/memory.h"
#include "tests/unit/random_bits.h"

enum { BYTES = 24, NWARPS = 4, NINSTRS = 6 };

static u32 below(u32 n)
{
	return (u32)(random_bits() >> 33) % n;
}

struct event {
	u32 warp, time, flags;
};

/* What happened to a byte since it was written last, the write first. */
struct history {
	bool written, in_flight;
	u32 copier, copy; /* its warp and instruction */
	struct event events[512];
	u32 nevents;
};

/* A fence.proxy.async by a warp at its time, and what had happened before then. */
struct proxy_fence {
	u32 warp, time, before[NWARPS];
};

struct world {
	struct cluster cluster;
	struct cta block;
	struct warp warps[NWARPS];
	struct instr code[NINSTRS];
	struct ptx_kernel kernel;
	struct launch launch;
	struct history bytes[BYTES];
	struct proxy_fence fences[512];
	u32 nfences;
};

static struct world *world_new(void)
{
	struct world *x = calloc(1, sizeof *x);
	for (u32 k = 0; k < NINSTRS; k++)
		x->code[k] = (struct instr){.opcode = "st.shared.u8", .line = k + 1, .pred = -1};
	x->kernel = (struct ptx_kernel){.code = x->code, .ncode = NINSTRS};
	x->launch = (struct launch){.kernel = &x->kernel};
	x->block = (struct cta){.launch = &x->launch,
				.cluster = &x->cluster,
				.nwarps = NWARPS,
				.warps = x->warps,
				.shared_bytes = BYTES};
	x->cluster = (struct cluster){.blocks = &x->block, .nblocks = 1};
	x->block.error.text.arena = &x->block.arena;
	x->block.shadow = shadow_new(&x->block.arena, BYTES, NWARPS);
	for (u32 k = 0; k < NWARPS; k++) {
		x->warps[k] = (struct warp){.block = &x->block, .id = k};
		x->warps[k].clock.at[k] = 1;
	}
	return x;
}

static void world_free(struct world *x)
{
	arena_free(&x->block.arena);
	free(x);
}

static bool conflict(const struct warp *w, const struct event *e, u32 flags)
{
	bool writes = e->flags & A_WRITE || flags & A_WRITE, both_strong = e->flags & flags & A_STRONG;
	return writes && !both_strong && e->warp != w->id && e->time > w->clock.at[e->warp];
}

/* Does a fence lie between the event and what w does now? */
static bool is_fenced(const struct world *x, const struct event *e, const struct warp *w)
{
	for (u32 k = 0; k < x->nfences; k++) {
		const struct proxy_fence *f = &x->fences[k];
		bool before_now = f->warp == w->id || f->time <= w->clock.at[f->warp];
		if (f->before[e->warp] >= e->time && before_now)
			return true;
	}
	return false;
}

/* Is this access a fault? */
static bool model_faults(const struct world *x, const struct history *h, const struct warp *w, u32 instr, u32 flags)
{
	bool completes = h->in_flight && flags == A_WRITE && h->copier == w->id && h->copy == instr;
	if ((h->in_flight && !completes) || (flags & A_READ && !h->written))
		return true;
	for (u32 k = 0; k < h->nevents; k++)
		if (conflict(w, &h->events[k], flags) ||
		    (flags & A_ASYNC && h->events[k].flags & A_WRITE && !is_fenced(x, &h->events[k], w)))
			return true;
	return false;
}

/* It becomes part of the history. Strong reads are not remembered. */
static void model_access(struct history *h, const struct warp *w, u32 instr, u32 flags)
{
	if (flags & A_WRITE) {
		h->nevents = 0;
		h->written = true;
		h->in_flight = flags & A_FLIGHT;
		h->copier = w->id;
		h->copy = instr;
	} else if (flags & A_STRONG) {
		return;
	}
	h->events[h->nevents++] = (struct event){w->id, w->clock.at[w->id], flags};
}

static bool full(const struct world *x)
{
	for (u32 k = 0; k < BYTES; k++)
		if (x->bytes[k].nevents + 1 >= ARRAY_LEN(x->bytes[k].events))
			return true;
	return x->nfences + 1 >= ARRAY_LEN(x->fences);
}

static void fence(struct world *x, struct warp *w)
{
	struct proxy_fence *f = &x->fences[x->nfences++];
	f->warp = w->id;
	f->time = w->clock.at[w->id];
	memcpy(f->before, w->clock.at, sizeof f->before);
	clock_fence(w);
	w->clock.at[w->id]++;
}

static void synchronise(struct world *x)
{
	struct clock joined = {.known = NULL};
	u32 who = below(4) ? below(1 << NWARPS) : (1 << NWARPS) - 1;
	EACH_LANE(n, who)
	{
		clock_join(NULL, &joined, &x->warps[n].clock);
		x->warps[n].clock.at[n]++;
	}
	EACH_LANE(n, who)
	clock_join(NULL, &x->warps[n].clock, &joined);
}

/* Random accesses until one is at fault, in the model and in the shadow alike. Most that would be are left out. */
static void test_against_model(void **state)
{
	(void)state;
	static const u32 kinds[] = {A_READ,
				    A_READ,
				    A_READ,
				    A_WRITE,
				    A_WRITE,
				    A_READ | A_STRONG,
				    A_READ | A_WRITE | A_STRONG,
				    A_WRITE | A_FLIGHT,
				    A_READ | A_ASYNC,
				    A_READ | A_ASYNC};
	u64 steps = 0, faults = 0;
	for (u32 round = 0; round < 20000; round++) {
		struct world *x = world_new();
		u32 sync_every = 1 + below(12), daring = 1 + below(200);
		bool failed = false;
		for (u32 n = 0; n < 400 && !failed && !full(x); n++) {
			if (!below(sync_every))
				synchronise(x);
			if (!below(sync_every))
				fence(x, &x->warps[below(NWARPS)]);
			struct warp *w = &x->warps[below(NWARPS)];
			u32 size = 1u << below(4), instr = below(NINSTRS), flags = kinds[below(ARRAY_LEN(kinds))];
			u32 at = below(BYTES / size) * size;
			if (x->bytes[at].in_flight && below(8)) { /* mostly let copies complete */
				w = &x->warps[x->bytes[at].copier];
				instr = x->bytes[at].copy;
				flags = A_WRITE;
			}
			for (u32 k = at; k < at + size; k++)
				failed |= model_faults(x, &x->bytes[k], w, instr, flags);
			if (failed && below(daring)) {
				failed = false;
				continue;
			}
			for (u32 k = at; k < at + size; k++)
				model_access(&x->bytes[k], w, instr, flags);
			/* sometimes by several lanes in a row */
			u64 places[LANES] = {0};
			u32 nlanes = 1u << below((u32)ilog2(size) + 1);
			for (u32 k = 0; k < nlanes; k++)
				places[5 + k] = at + k * size / nlanes;
			shadow_lanes(w, &x->code[instr], ((1u << nlanes) - 1) << 5, places, size / nlanes, flags);
			if (x->block.failed != failed)
				fail_msg("round %u, step %u: %s", round, n,
					 failed ? "the shadow misses a fault" : x->block.error.text.at);
			steps++;
		}
		faults += failed;
		world_free(x);
	}
	assert_true(steps > 1000000);
	assert_true(faults > 4000);
}

/* Vectors of times are given back: many phases, little memory. */
static void test_memory(void **state)
{
	(void)state;
	struct world *x = world_new();
	x->warps[1].clock.at[1]++; /* its time differs from the others' for good */
	for (u32 n = 0; n < 100000; n++) {
		struct clock joined = {.known = NULL};
		shadow_access(&x->warps[n % 2], &x->code[0], 0, 0, 16, A_WRITE);
		for (u32 half = 0; half < 2; half++) {
			for (u32 k = 0; k < NWARPS; k++) {
				clock_join(NULL, &joined, &x->warps[k].clock);
				x->warps[k].clock.at[k]++;
			}
			for (u32 k = 0; k < NWARPS; k++) {
				clock_join(NULL, &x->warps[k].clock, &joined);
				if (!half)
					shadow_access(&x->warps[k], &x->code[1], 0, k % 2, 1, A_READ);
				if (!half)
					shadow_access(&x->warps[k], &x->code[1], 0, 8, 8, A_READ);
			}
		}
	}
	assert_false(x->block.failed);
	assert_true(x->block.arena.total < 1u << 20);
	world_free(x);
}

static void test_messages(void **state)
{
	(void)state;
	struct world *x = world_new();
	x->code[1].src_file = x->code[4].src_file = 1;
	x->code[1].src_line = 2;
	struct source source = {.name = "k.tl", .text = "def k():\n\tstore(p)\n", .line_start = (u32[]){0, 9, 19, 19},
				.nlines = 3, .first_line = 1};
	struct source *const texts[] = {NULL, &source};
	struct ptx_module module = {.files = (const char *const[]){NULL, "./k.tl"}, .nfiles = 2};
	x->launch.sources = (struct source_list){texts, 2};
	x->launch.module = &module;
	shadow_access(&x->warps[2], &x->code[1], 3, 8, 4, A_WRITE);
	shadow_access(&x->warps[0], &x->code[4], 9, 8, 2, A_READ);
	assert_true(x->block.failed);
	const char *e = x->block.error.text.at;
	assert_non_null(strstr(e, "race: read of shared bytes 0x8–0x9; "
			       "the other write is by warp 2, lane 3, at k.tl:2, PTX line 2 ("));
	assert_non_null(strstr(e, "): store(p)\n"));
	assert_non_null(strstr(e, "at PTX line 5"));
	assert_non_null(strstr(e, "warp 0, lane 9"));
	world_free(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_model),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_messages),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
