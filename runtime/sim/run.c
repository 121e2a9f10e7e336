/* Execution of a launch: clusters of the grid on CPU threads, and the scheduling of their warps. */
#include "support/program_threads.h"
#include "runtime/sim/bulk.h"
#include "runtime/sim/cluster.h"
#include "runtime/sim/mbarrier.h"
#include "runtime/sim/races.h"
#include "runtime/sim/sync.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* --- a block --------------------------------------------------------------------------------------------------- */

/* The first cluster with a report. */
struct first {
	_Atomic u64 cluster; /* index; UINT64_MAX: none */
	struct report report;
};

/* State of a launch that the CPU threads share. */
struct grid {
	const struct launch *launch;
	u32 shape[3];       /* of a cluster */
	struct sync *sync;
	struct races *races;
	pthread_mutex_t lock; /* protects the reports and the launch's counters */
	struct first failure, race;
	struct first_fault first_fault; /* internal fault of a thread: out of memory, or a bug */
	_Atomic u32 idle;   /* threads with blocks that have exceeded max_steps */
	u64 clusters;
	struct program_threads gang; /* gang.most: clusters resident on a GPU at once */
};

/* State of a CPU thread, reused from cluster to cluster. */
struct workspace {
	struct cluster cluster;
	bool too_long;
	u64 last; /* limit of steps once no other thread continues; 0: other threads continue */
	u64 patience; /* number of polls at which further clusters are started, since this one may wait for them */
	struct program_threads_waiter waiter;
	u64 *regs;
	char *shared, *local, *call;
	struct counters *counters;
};

static struct cta *failed_block(const struct cluster *c)
{
	for (u32 k = 0; k < c->nblocks; k++)
		if (c->blocks[k].failed)
			return &c->blocks[k];
	return NULL;
}

/* Blocks that exceed max_steps may be waiting for blocks with fewer steps. So the launch fails only when the blocks of
 * all threads have exceeded it. True if this cluster stops. */
static bool does_not_end(struct grid *g, struct workspace *s)
{
	enum { LAST_STEPS = 1 << 18, STEPS_ALONE = 64 /* per warp, to observe the last writes of other blocks */ };
	struct cluster *c = &s->cluster;
	struct cta *b = &c->blocks[0];
	u64 most = g->launch->max_steps * c->nblocks, steps = 0, failed = atomic_load(&g->failure.cluster);
	for (u32 k = 0; k < c->nblocks; k++)
		steps += c->blocks[k].steps;
	if (failed != UINT64_MAX && steps > LAST_STEPS) /* these blocks may be waiting for the failed cluster */
		return true;
	if (!most || steps <= most)
		return false;
	if (!s->too_long) {
		s->too_long = true;
		atomic_fetch_add(&g->idle, 1);
	}
	u32 alive = atomic_load(&g->gang.alive);
	if (atomic_load(&g->idle) < alive || failed != UINT64_MAX) {
		s->last = 0;
		sched_yield();
		return false;
	}
	if (!s->last)
		s->last = steps + STEPS_ALONE * (u64)g->launch->num_warps * c->nblocks;
	if (steps < s->last)
		return false;
	b->failed = true;
	sb_printf(&b->error.text, "block (%u, %u, %u) does not end: its %s run %llu instructions so far", b->id[0],
		  b->id[1], b->id[2], c->nblocks > 1 ? "cluster has" : "warps have", (ull)steps);
	u64 left = program_threads_left(&g->gang);
	if (left && alive >= g->gang.most)
		sb_printf(&b->error.text,
			  "; %llu of %llu blocks have not begun, because at most %u blocks of this kernel are resident "
			  "on an H100",
			  (ull)(left * c->nblocks), (ull)(g->clusters * c->nblocks),
			  g->gang.most * c->nblocks);
	print_positions(c, &b->error.text);
	return true;
}

/* A block that polls memory may wait for a block that no thread has started, so further threads are started. If the
 * wait never succeeds, the limit on steps ends it. */
static void let_others_run(struct grid *g, struct workspace *s)
{
	enum { PATIENCE = 512 };
	u64 polls = 0;
	if (g->launch->independent)
		return;
	for (u32 k = 0; k < s->cluster.nblocks; k++)
		polls += s->cluster.blocks[k].polls;
	if (polls < s->patience)
		return;
	s->patience = polls + PATIENCE;
	program_threads_wait(&g->gang, &s->waiter);
}

/* A random warp that is ready, or NULL. *ended: all warps have ended. */
static struct warp *choose(struct cluster *c, u64 random, bool *ended)
{
	struct warp *ready[MAX_CLUSTER * MAX_WARPS];
	u32 nready = 0;
	*ended = true;
	EACH_WARP(w, c) {
		*ended &= w->state == WARP_DONE;
		if (w->state == WARP_READY)
			ready[nready++] = w;
	}
	return nready ? ready[random % nready] : NULL;
}

static const struct cta *raced_block(const struct cluster *c)
{
	for (u32 k = 0; k < c->nblocks; k++)
		if (c->blocks[k].race.text.len)
			return &c->blocks[k];
	return NULL;
}

static bool step_engines(struct cluster *c)
{
	bool any = false;
	for (u32 k = 0; k < c->nblocks && !failed_block(c); k++)
		any |= engine_step(&c->blocks[k]);
	return any;
}

static bool expire_waits(struct cluster *c)
{
	bool any = false;
	for (u32 k = 0; k < c->nblocks; k++)
		any |= mbarrier_expire(&c->blocks[k]);
	return any;
}

static void run_blocks(struct grid *g, struct workspace *s)
{
	enum { MOST_TURNS = 256 };
	struct cluster *c = &s->cluster;
	bool ended = false;
	s->too_long = false;
	s->last = 0;
	s->patience = 512;
	while (!failed_block(c) && !does_not_end(g, s)) {
		let_others_run(g, s);
		u64 r = sim_random(&c->random);
		struct warp *w = choose(c, r, &ended);
		if (!w && ended)
			break;
		if (!w) {
			if (!step_engines(c) && !failed_block(c) && !expire_waits(c))
				report_deadlock(c);
			continue;
		}
		engine_perhaps_step(w->block);
		/* half of the time slices are short, so that a warp is preempted between any two instructions */
		run_warp(w, r >> 32 & 1 ? 1 + (u32)(r >> 40) % 8 : MOST_TURNS);
	}
	for (u32 k = 0; k < c->nblocks && ended && !failed_block(c); k++) {
		engine_end(&c->blocks[k]);
		mbarrier_end(&c->blocks[k]);
	}
	if (s->too_long)
		atomic_fetch_sub(&g->idle, 1);
}

static bool workspace_open(struct workspace *s, const struct grid *g)
{
	const struct launch *l = g->launch;
	const struct ptx_kernel *k = l->kernel;
	u32 nblocks = g->shape[0] * g->shape[1] * g->shape[2];
	size_t warps = (size_t)l->num_warps * nblocks, lanes = warps * LANES;
	u64 shared = l->dynamic_shared ? k->extern_offset + l->dynamic_shared : k->shared_bytes,
	    stride = (shared + 255) / 128 * 128;
	*s = (struct workspace){.cluster = {.nblocks = nblocks}};
	struct cluster *c = &s->cluster;
	memcpy(c->shape, g->shape, sizeof c->shape);
	c->blocks = calloc(nblocks, sizeof *c->blocks);
	struct warp *all = calloc(warps, sizeof *all);
	s->regs = malloc(lanes * (k->nregs + 1) * sizeof(u64));
	s->shared = aligned_alloc(128, stride * nblocks);
	s->local = calloc(lanes, k->local_bytes + 16);
	s->call = calloc(lanes, k->call_bytes + 16);
	s->counters = l->counters ? calloc(k->ncode + 1, sizeof *s->counters) : NULL;
	for (u32 n = 0; c->blocks && n < nblocks; n++)
		c->blocks[n] = (struct cta){.launch = l,
					    .cluster = c,
					    .rank = n,
					    .nwarps = l->num_warps,
					    .warps = all + n * l->num_warps,
					    .shared = s->shared + n * stride,
					    .shared_bytes = shared,
					    .sync = g->sync,
					    .races = g->races,
					    .counters = s->counters};
	if (!c->blocks)
		free(all);
	return c->blocks && all && s->regs && s->shared && s->local && s->call && (s->counters || !l->counters);
}

/* Adds the thread's counters to the launch's counters. */
static void workspace_count(const struct workspace *s, const struct launch *l)
{
	for (u32 i = 0; s->counters && i < l->kernel->ncode; i++) {
		const struct counters *from = &s->counters[i];
		struct counters *to = &l->counters[i];
		to->executed += from->executed;
		to->bytes += from->bytes;
		to->transactions += from->transactions;
		to->conflicts += from->conflicts;
	}
}

static void workspace_close(struct workspace *s)
{
	struct cluster *c = &s->cluster;
	for (u32 n = 0; c->blocks && n < c->nblocks; n++)
		arena_free(&c->blocks[n].arena);
	if (c->blocks)
		free(c->blocks[0].warps);
	free(c->blocks);
	races_free(c->races);
	free(s->counters);
	free(s->regs);
	free(s->shared);
	free(s->local);
	free(s->call);
}

static void start_warps(struct workspace *s, struct cta *b)
{
	const struct ptx_kernel *k = b->launch->kernel;
	size_t per_warp = (size_t)k->nregs * LANES;
	for (u32 n = 0; n < b->nwarps; n++) {
		struct warp *w = &b->warps[n];
		size_t nth = (size_t)b->rank * b->nwarps + n;
		*w = (struct warp){
			.block = b, .id = n, .alive = ALL_LANES, .regs = s->regs + nth * per_warp, .at = k->code};
		w->local = s->local + nth * LANES * k->local_bytes;
		w->call = s->call + nth * LANES * k->call_bytes;
		w->clock.at[n] = 1;
		for (u32 r = 0; r < k->nregs; r++) { /* no bits above the register's width */
			u64 v = low_bits(0x5A5A5A5A5A5A5A5A, ptx_bits(k->reg_types[r]));
			for (u32 l = 0; l < LANES; l++)
				w->regs[(size_t)r * LANES + l] = v;
		}
	}
}

/* Resets the workspace to cluster `index` of the grid. Clusters, and blocks in a cluster, are numbered x first. */
static void start_blocks(struct workspace *s, u64 index)
{
	struct cluster *c = &s->cluster;
	const struct launch *l = c->blocks[0].launch;
	const u32 *shape = c->shape, *grid = l->grid;
	u64 wide = grid[0] / shape[0], high = grid[1] / shape[1];
	u32 at[3] = {(u32)(index % wide), (u32)(index / wide % high), (u32)(index / wide / high)};
	for (u32 n = 0; n < c->nblocks; n++) {
		struct cta *b = &c->blocks[n];
		arena_free(&b->arena);
		b->id[0] = at[0] * shape[0] + n % shape[0];
		b->id[1] = at[1] * shape[1] + n / shape[0] % shape[1];
		b->id[2] = at[2] * shape[2] + n / shape[0] / shape[1];
		b->index = b->id[0] + (u64)grid[0] * (b->id[1] + (u64)grid[1] * b->id[2]);
		b->random = l->seed ^ b->index * 0x9E3779B97F4A7C15u;
		b->steps = b->polls = 0;
		b->failed = b->met = false;
		b->error = b->race = (struct report){.text.arena = &b->arena};
		memset(b->shared, 0xA5, b->shared_bytes);
		b->shadow = shadow_new(&b->arena, b->shared_bytes, b->nwarps);
		memset(b->barriers, 0, sizeof b->barriers);
		b->releases = (struct map){.arena = &b->arena};
		b->came = b->passed = (struct clock){.known = NULL};
		b->visits = NULL;
		b->mbarriers = (mbarrier_vec){0};
		b->engine = NULL;
		b->expired = 0;
		start_warps(s, b);
	}
	c->arena = &c->blocks[0].arena;
	c->random = c->blocks[0].random;
	c->came = NULL;
	c->records = (struct map){.arena = c->arena};
	races_free(c->races);
	c->races = NULL;
	if (c->nblocks > 1 && !(c->races = races_new(c->nblocks * c->blocks[0].shared_bytes, false)))
		tl_out_of_memory(c->nblocks * c->blocks[0].shared_bytes);
}

/* --- a grid ---------------------------------------------------------------------------------------------------- */

/* Argument of the functions that a thread runs under fault_catch(). */
struct worker {
	struct workspace space;
	struct grid *grid;
	u64 index;
};

static void open_worker(void *worker)
{
	struct worker *w = worker;
	if (!workspace_open(&w->space, w->grid))
		fault_raise(FAULT_MEMORY, "out of host memory");
}

static void keep_first(struct first *f, u64 cluster, const struct report *r)
{
	if (cluster >= atomic_load(&f->cluster))
		return;
	f->report.text.len = 0;
	sb_add(&f->report.text, r->text.at, r->text.len);
	f->report.at = r->at;
	atomic_store(&f->cluster, cluster);
}

static void run_index(void *worker)
{
	struct worker *w = worker;
	struct grid *g = w->grid;
	if (w->index > atomic_load(&g->failure.cluster))
		return;
	start_blocks(&w->space, w->index);
	run_blocks(g, &w->space);
	const struct cta *b = failed_block(&w->space.cluster), *racer = raced_block(&w->space.cluster);
	struct held h;
	lock_hold(&h, &g->lock);
	if (b)
		keep_first(&g->failure, w->index, &b->error);
	if (racer)
		keep_first(&g->race, w->index, &racer->race);
	lock_release(&h);
}

/* Thread function: runs one cluster after another while there are clusters that no thread has started. */
static void work(void *grid)
{
	struct grid *g = grid;
	struct worker w = {.grid = g};
	bool open = fault_catch(&g->first_fault, open_worker, &w);
	while (program_threads_next(&g->gang, &w.index)) {
		open = open && fault_catch(&g->first_fault, run_index, &w);
		if (!open) { /* stop the other threads */
			races_abandon(g->races);
			atomic_store(&g->failure.cluster, 0);
		}
	}
	pthread_mutex_lock(&g->lock);
	workspace_count(&w.space, g->launch);
	pthread_mutex_unlock(&g->lock);
	workspace_close(&w.space);
}

/* Clusters resident on an H100 at once, limited by its multiprocessors and by the warps, blocks and shared memory of
 * each. */
static u32 most_alive(const struct launch *l, u32 nblocks)
{
	enum { MULTIPROCESSORS = 132, WARPS = 64, BLOCKS = 32, SHARED = 228 * 1024, RESERVED = 1024 /* per block */ };
	u64 shared =
		(l->dynamic_shared ? l->kernel->extern_offset + l->dynamic_shared : l->kernel->shared_bytes) + RESERVED;
	u64 each = MIN(MIN(BLOCKS, WARPS / l->num_warps), SHARED / shared);
	return (u32)MAX(MULTIPROCESSORS * each / nblocks, 1u);
}

static void run_clusters(struct grid *g)
{
	g->gang = (struct program_threads){.total = g->clusters,
				.threads = g->launch->threads ? (u32)g->launch->threads : thread_team_most(),
				.most = most_alive(g->launch, g->shape[0] * g->shape[1] * g->shape[2]),
				.work = work,
				.arg = g,
				.crew = THREAD_TEAM_INIT};
	program_threads_run(&g->gang);
}

static void free_tables(void *grid)
{
	struct grid *g = grid;
	sync_free(g->sync);
	races_free(g->races);
}

/* Appends the report to the launch's error, if there is one. */
static bool tell(const struct launch *l, const struct first *f, struct strbuf *error)
{
	if (atomic_load(&f->cluster) == UINT64_MAX)
		return false;
	sb_add(error, f->report.text.at, f->report.text.len);
	if (l->place && f->report.at)
		*l->place = place_of(l, f->report.at, NULL);
	return true;
}

enum sim_result sim_run(const struct launch *l, struct strbuf *error)
{
	struct grid g = {.launch = l,
			 .failure = {.cluster = UINT64_MAX, .report.text.arena = error->arena},
			 .race = {.cluster = UINT64_MAX, .report.text.arena = error->arena},
			 .lock = PTHREAD_MUTEX_INITIALIZER,
			 .first_fault = FIRST_FAULT_NONE};
	struct cleanup c;
	u64 blocks = (u64)l->grid[0] * l->grid[1] * l->grid[2], bytes = 0;
	bool memory = true;
	if (!cluster_shape(l, g.shape, error))
		return SIM_FAULT;
	u64 clusters = g.clusters = blocks / (g.shape[0] * g.shape[1] * g.shape[2]);
	for (u32 k = 0; k < l->nranges; k++)
		bytes += l->ranges[k].size;
	if (blocks > 1) {
		g.sync = sync_new(clusters < blocks ? AGENTS : l->num_warps);
		memory &= g.sync != NULL;
	}
	if (blocks > 1 || l->num_warps > 1) {
		g.races = races_new(bytes, clusters > 1);
		memory &= g.races != NULL;
	}
	cleanup_push(&c, free_tables, &g);
	if (!memory)
		tl_out_of_memory(bytes);
	run_clusters(&g);
	fault_pass_on(&g.first_fault);
	cleanup_run(&c);
	if (tell(l, &g.failure, error))
		return SIM_FAULT;
	return tell(l, &g.race, error) ? SIM_RACED : SIM_OK;
}
