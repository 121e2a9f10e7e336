/* Blocks of a grid, their warps, and the turns these take. */
#include "runtime/sim/bulk.h"
#include "runtime/sim/mbarrier.h"

#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

/* --- operands -------------------------------------------------------------------------------------------------- */

static const char *const specials[] = {
	"%tid.x", "%tid.y", "%tid.z", "%ntid.x", "%ntid.y", "%ntid.z", "%ctaid.x", "%ctaid.y", "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z",
	"%laneid", "%warpid", "%nwarpid", "%lanemask_eq", "%lanemask_le", "%lanemask_lt", "%lanemask_ge", "%lanemask_gt", "%smid", "%nsmid",
	"%gridid", "%clock", "%clock64", "%clock_hi", "%globaltimer", "%dynamic_smem_size", "%total_smem_size", "%cluster_ctaid.x", "%cluster_ctarank",
	"%cluster_nctaid.x", "%cluster_nctarank", "%is_explicit_cluster", "%clusterid.x", "%clusterid.y", "%clusterid.z", "%nclusterid.x",
	"%nclusterid.y", "%nclusterid.z",
};
enum special {
	S_TID, S_NTID = 3, S_CTAID = 6, S_NCTAID = 9, S_LANEID = 12, S_WARPID, S_NWARPID, S_EQ, S_LE, S_LT, S_GE, S_GT, S_SMID, S_NSMID, S_GRIDID,
	S_CLOCK, S_CLOCK64, S_CLOCK_HI, S_TIMER, S_DYNAMIC, S_TOTAL, S_CLUSTER_CTAID, S_CLUSTER_RANK, S_CLUSTER_NCTAID, S_CLUSTER_NRANK, S_EXPLICIT,
	S_CLUSTERID, S_NCLUSTERID = S_CLUSTERID + 3,
};

int special_register(const char *name)
{
	for (u32 i = 0; i < ARRAY_LEN(specials); i++)
		if (!strcmp(specials[i], name))
			return (int)i;
	return -1;
}

static u64 special_value(const struct warp *w, u64 which, u32 lane)
{
	const struct cta *b = w->block;
	const struct launch *l = b->launch;
	u32 bit = 1u << lane;
	switch (which) {
	case S_TID: return w->id % b->block_warps * LANES + lane;
	case S_NTID: return b->block_warps * LANES;
	case S_NTID + 1:
	case S_NTID + 2: return 1;
	case S_CLUSTER_CTAID:
	case S_CLUSTER_RANK: return w->rank;
	case S_CLUSTER_NCTAID:
	case S_CLUSTER_NRANK: return b->nblocks;
	case S_EXPLICIT: return l->kernel->cluster[0] != 0;
	case S_CLUSTERID: return b->id[0] / b->nblocks;
	case S_CLUSTERID + 1:
	case S_CLUSTERID + 2: return b->id[which - S_CLUSTERID];
	case S_NCLUSTERID: return l->grid[0] / b->nblocks;
	case S_NCLUSTERID + 1:
	case S_NCLUSTERID + 2: return l->grid[which - S_NCLUSTERID];
	case S_CTAID: return b->id[0] + w->rank;
	case S_CTAID + 1:
	case S_CTAID + 2: return b->id[which - S_CTAID];
	case S_NCTAID:
	case S_NCTAID + 1:
	case S_NCTAID + 2: return l->grid[which - S_NCTAID];
	case S_LANEID: return lane;
	case S_WARPID: return w->id % b->block_warps;
	case S_NWARPID: return b->block_warps;
	case S_EQ: return bit;
	case S_LT: return bit - 1;
	case S_LE: return bit | (bit - 1);
	case S_GE: return ~(u64)(bit - 1) & ALL_LANES;
	case S_GT: return ~(u64)(bit | (bit - 1)) & ALL_LANES;
	case S_NSMID: return 132;
	case S_SMID: return (b->id[0] + b->id[1] * l->grid[0]) % 132;
	case S_CLOCK:
	case S_CLOCK64:
	case S_TIMER: return b->steps;
	case S_DYNAMIC: return l->dynamic_shared;
	case S_TOTAL: return b->shared_bytes;
	default: return 0; /* coordinates that have one value only */
	}
}

static u64 cut(u64 v, int bits)
{
	return bits >= 64 ? v : v & (((u64)1 << bits) - 1);
}

static u64 float_bits(const struct operand *o, int bits)
{
	double d;
	float f;
	u32 f_bits = (u32)o->imm;
	if (o->wide == (bits == 64))
		return cut(o->imm, bits);
	if (o->wide) {
		memcpy(&d, &o->imm, 8);
		f = (float)d;
		memcpy(&f_bits, &f, 4);
		return f_bits;
	}
	memcpy(&f, &f_bits, 4);
	d = f;
	u64 r;
	memcpy(&r, &d, 8);
	return r;
}

u64 operand_value(const struct warp *w, const struct operand *o, u32 lane, int bits)
{
	switch (o->kind) {
	case O_REG: return cut(w->regs[(size_t)o->reg * LANES + lane], bits);
	case O_INT: return cut(o->imm, bits);
	case O_FLOAT: return float_bits(o, bits);
	case O_SPECIAL: return cut(special_value(w, o->imm, lane), bits);
	case O_SYMBOL: return o->var ? cut(o->var->offset + o->imm, bits) : 0;
	default: tl_unreachable("operand without a value");
	}
}

const u64 *operand_lanes(const struct warp *w, const struct operand *o, int bits, u64 space[LANES])
{
	if (o->kind == O_REG && ptx_bits(o->reg_type) <= bits)
		return &w->regs[(size_t)o->reg * LANES];
	if (o->kind == O_SPECIAL || o->kind == O_REG) {
		for (u32 l = 0; l < LANES; l++)
			space[l] = operand_value(w, o, l, bits);
		return space;
	}
	u64 v = operand_value(w, o, 0, bits);
	for (u32 l = 0; l < LANES; l++)
		space[l] = v;
	return space;
}

/* --- faults ---------------------------------------------------------------------------------------------------- */

static void print_lanes(struct strbuf *out, u32 lanes)
{
	if (lanes == ALL_LANES) {
		sb_puts(out, "all lanes");
		return;
	}
	sb_puts(out, lanes & (lanes - 1) ? "lanes" : "lane");
	for (u32 l = 0; l < LANES; l++) {
		u32 last = l;
		while (last + 1 < LANES && lanes >> l & 1 && lanes >> (last + 1) & 1)
			last++;
		if (lanes >> l & 1)
			sb_printf(out, last > l + 1 ? " %u–%u" : " %u", l, last);
		if (last > l + 1)
			l = last;
	}
}

void print_place(struct strbuf *out, const struct launch *l, const struct instr *i)
{
	const struct source *s = l->source;
	bool known = s && i->src_line && i->src_line <= s->nlines;
	if (known)
		sb_printf(out, "%s:%u, ", s->name, i->src_line);
	sb_printf(out, "PTX line %u (%s)", i->line, i->opcode);
	if (!known)
		return;
	const char *line = s->text + s->line_start[i->src_line - 1];
	line += strspn(line, " \t");
	sb_printf(out, ": %.*s", (int)MIN(strcspn(line, "\r\n"), 200u), line);
}

void fault(struct warp *w, const struct instr *i, u32 lanes, const char *format, ...)
{
	struct cta *b = w->block;
	if (b->failed)
		return;
	b->failed = true;
	va_list ap;
	va_start(ap, format);
	sb_vprintf(&b->error, format, ap);
	va_end(ap);
	sb_puts(&b->error, "\n  at ");
	print_place(&b->error, b->launch, i);
	sb_printf(&b->error, "\n  block (%u, %u, %u), warp %u, ", b->id[0] + w->rank, b->id[1], b->id[2], w->id % b->block_warps);
	print_lanes(&b->error, lanes);
}

static void deadlock(struct cta *b)
{
	b->failed = true;
	sb_printf(&b->error, "deadlock in block (%u, %u, %u): no warp can go on", b->id[0], b->id[1], b->id[2]);
	for (u32 n = 0; n < b->nwarps; n++) {
		const struct warp *w = &b->warps[n];
		sb_printf(&b->error, "\n  warp %u ", n);
		if (w->state == WARP_DONE) {
			sb_puts(&b->error, "has ended");
			continue;
		}
		sb_puts(&b->error, "waits");
		if (w->state == WARP_ASLEEP) {
			mbarrier_print(b, n, &b->error);
		} else if (w->barrier == NAMED_BARRIERS) {
			sb_printf(&b->error, " at the cluster's barrier, where %u of %u warps have come", b->cluster.arrived, b->nwarps);
		} else {
			const struct barrier *k = &b->barriers[w->rank * NAMED_BARRIERS + w->barrier];
			sb_printf(&b->error, " at barrier %u, where %u of %u warps have come", w->barrier, k->arrived,
				  k->expected ? k->expected : b->block_warps);
		}
		sb_puts(&b->error, ": ");
		print_place(&b->error, b->launch, w->at);
	}
	mbarrier_print_all(b, &b->error);
}

/* --- a warp's turn --------------------------------------------------------------------------------------------- */

/* The lanes at the lowest program counter, which they run, of those that do not wait; *join is the next one
 * where some are. */
static u32 lowest(const struct warp *w, u32 *pc, u32 *join)
{
	u32 least = UINT32_MAX, mask = 0, next = UINT32_MAX;
	EACH_LANE(l, w->alive & ~w->parked & ~w->asleep)
		least = MIN(least, w->pc[l]);
	EACH_LANE(l, w->alive & ~w->parked & ~w->asleep) {
		if (w->pc[l] == least)
			mask |= 1u << l;
		else
			next = MIN(next, w->pc[l]);
	}
	*pc = least;
	*join = next;
	return mask;
}

static u32 guarded(const struct warp *w, const struct instr *i, u32 mask)
{
	if (i->pred < 0)
		return mask;
	const u64 *p = &w->regs[(size_t)i->pred * LANES];
	u32 yes = 0;
	for (u32 l = 0; l < LANES; l++)
		yes |= (u32)(p[l] & 1) << l;
	return mask & (i->pred_negated ? ~yes : yes);
}

static void put_pc(struct warp *w, u32 mask, u32 pc)
{
	EACH_LANE(l, mask)
		w->pc[l] = pc;
}

/* The lanes that must run an instruction at once with `active`. */
static u32 needed(const struct warp *w, const struct instr *i, u32 active)
{
	if (i->is_sync)
		return w->alive;
	return i->members ? (u32)operand_value(w, &i->ops[i->members], (u32)__builtin_ctz(active), 32) & w->alive : active;
}

/* All lanes that go on have met at instructions that need more of them than have come: those of one must be complete now. */
static bool complete_one(struct warp *w, u32 *pc, u32 *mask)
{
	const struct instr *code = w->block->launch->kernel->code;
	EACH_LANE(l, w->parked) {
		u32 here = 0;
		EACH_LANE(m, w->parked)
			here |= (u32)(w->pc[m] == w->pc[l]) << m;
		const struct instr *i = &code[w->pc[l]];
		u32 active = guarded(w, i, here), want = needed(w, i, active);
		if ((want & ~active) == 0) {
			w->parked &= ~here;
			*pc = w->pc[l];
			*mask = here;
			return true;
		}
	}
	u32 first = (u32)__builtin_ctz(w->parked), here = 0;
	EACH_LANE(m, w->parked)
		here |= (u32)(w->pc[m] == w->pc[first]) << m;
	const struct instr *i = &code[w->pc[first]];
	fault(w, i, needed(w, i, here) & ~here, "all lanes of the warp must come here at once, and these do not come");
	return false;
}

static void end_warp(struct warp *w)
{
	w->state = WARP_DONE;
	w->block->expired = 0;
	async_end(w);
	wgmma_end(w);
	bulk_end(w);
	setmaxnreg_end(w);
	for (u32 n = 0; n < NAMED_BARRIERS; n++)
		barrier_check(w->block, &w->block->barriers[w->rank * NAMED_BARRIERS + n], w->rank);
	cluster_barrier_check(w->block);
}

/* Runs until the warp waits, ends, fails or has had `turns` instructions. */
static void run_warp(struct warp *w, u32 turns)
{
	struct cta *b = w->block;
	const struct ptx_kernel *k = b->launch->kernel;
	u32 pc, join, mask = lowest(w, &pc, &join);
	for (; turns && (mask || w->parked || w->asleep); turns--) {
		if (!mask && w->asleep) {
			w->state = WARP_ASLEEP;
			return;
		}
		if (!mask && !complete_one(w, &pc, &mask))
			return;
		if (pc >= k->ncode) {
			fault(w, w->at, mask, "runs past the end of the kernel");
			return;
		}
		const struct instr *i = &k->code[pc++];
		u32 active = guarded(w, i, mask);
		w->at = i;
		b->steps++;
		if (i->is_control)
			put_pc(w, mask, pc);
		if (active) {
			if (needed(w, i, active) & ~active) { /* the others may be on their way */
				put_pc(w, active, pc - 1);
				put_pc(w, mask & ~active, pc);
				w->parked |= active;
				mask = lowest(w, &pc, &join);
				continue;
			}
			if (b->counters)
				b->counters[i - k->code].executed++;
			i->run(w, i, active);
			if (b->failed)
				return;
		}
		if (i->is_control) {
			mask = lowest(w, &pc, &join);
		} else if (pc >= join || w->asleep & mask) {
			put_pc(w, mask, pc);
			mask = lowest(w, &pc, &join);
		}
		if (w->parked) { /* one instruction of those that met; then those that still wait have their chance again */
			w->parked = 0;
			put_pc(w, mask, pc);
			mask = lowest(w, &pc, &join);
		}
		if (w->state != WARP_READY)
			break;
	}
	if (!w->alive)
		end_warp(w);
	else
		put_pc(w, mask, pc);
}

/* --- a block --------------------------------------------------------------------------------------------------- */

static void run_block(struct cta *b)
{
	enum { MOST_TURNS = 256 };
	while (!b->failed) {
		u32 ready[MAX_WARPS], nready = 0, ended = 0;
		if (b->launch->max_steps && b->steps > b->launch->max_steps) {
			b->failed = true;
			sb_printf(&b->error, "block (%u, %u, %u) does not end: %llu instructions of its warps so far", b->id[0], b->id[1], b->id[2],
				  (unsigned long long)b->steps);
			return;
		}
		for (u32 n = 0; n < b->nwarps; n++) {
			if (b->warps[n].state == WARP_READY)
				ready[nready++] = n;
			ended += b->warps[n].state == WARP_DONE;
		}
		if (ended == b->nwarps) {
			engine_end(b);
			mbarrier_end(b);
			return;
		}
		if (!nready) {
			if (!engine_step(b) && !b->failed && !mbarrier_expire(b))
				deadlock(b);
			continue;
		}
		engine_perhaps_step(b);
		u64 r = sim_random(&b->random);
		/* now and then a short turn: a warp is overtaken in the middle of things */
		run_warp(&b->warps[ready[r % nready]], r >> 32 & 1 ? 1 + (u32)(r >> 40) % 8 : MOST_TURNS);
	}
}

static u32 cluster_size(const struct ptx_kernel *k)
{
	return MAX(k->cluster[0], 1);
}

/* What a CPU thread keeps from block to block. */
struct workspace {
	struct cta block;
	u64 *regs;
	char *shared, *local, *call;
};

static bool workspace_open(struct workspace *s, const struct launch *l)
{
	const struct ptx_kernel *k = l->kernel;
	u32 blocks = cluster_size(k), warps = l->num_warps * blocks;
	size_t lanes = (size_t)warps * LANES;
	u64 shared = l->dynamic_shared ? k->extern_offset + l->dynamic_shared : k->shared_bytes;
	u64 stride = (shared + 1151) / 1024 * 1024; /* whole atoms of a swizzle */
	*s = (struct workspace){.block = {.launch = l, .nwarps = warps, .nblocks = blocks, .block_warps = l->num_warps, .shared_bytes = shared,
					  .shared_stride = stride}};
	s->block.warps = calloc(warps, sizeof *s->block.warps);
	s->block.barriers = calloc((size_t)blocks * NAMED_BARRIERS, sizeof *s->block.barriers);
	s->regs = malloc(lanes * (k->nregs + 1) * sizeof(u64));
	s->shared = aligned_alloc(128, stride * blocks);
	s->local = calloc(lanes, k->local_bytes + 16);
	s->call = calloc(lanes, k->call_bytes + 16);
	s->block.counters = l->counters ? calloc(k->ncode + 1, sizeof *s->block.counters) : NULL;
	return s->block.warps && s->block.barriers && s->regs && s->shared && s->local && s->call && (s->block.counters || !l->counters);
}

/* Adds its counters to the launch's. */
static void workspace_count(const struct workspace *s, const struct launch *l)
{
	for (u32 i = 0; s->block.counters && i < l->kernel->ncode; i++) {
		const struct counters *from = &s->block.counters[i];
		struct counters *to = &l->counters[i];
		to->executed += from->executed;
		to->bytes += from->bytes;
		to->transactions += from->transactions;
		to->conflicts += from->conflicts;
	}
}

static void workspace_close(struct workspace *s)
{
	free(s->block.counters);
	arena_free(&s->block.arena);
	free(s->block.warps);
	free(s->block.barriers);
	free(s->regs);
	free(s->shared);
	free(s->local);
	free(s->call);
}

static void start_block(struct workspace *s, u64 index)
{
	struct cta *b = &s->block;
	const struct launch *l = b->launch;
	const struct ptx_kernel *k = l->kernel;
	arena_free(&b->arena);
	u32 across = l->grid[0] / b->nblocks;
	b->id[0] = (u32)(index % across) * b->nblocks; /* the cluster's first */
	b->id[1] = (u32)(index / across % l->grid[1]);
	b->id[2] = (u32)(index / across / l->grid[1]);
	b->random = l->seed ^ index * 0x9E3779B97F4A7C15u;
	b->steps = 0;
	b->failed = false;
	b->error = (struct strbuf){.arena = &b->arena};
	b->shared = s->shared;
	memset(b->shared, 0xA5, b->shared_stride * b->nblocks);
	b->shadow = shadow_new(&b->arena, b->shared_stride * b->nblocks);
	b->mbarriers = NULL;
	b->engine = NULL;
	b->expired = 0;
	memset(b->barriers, 0, b->nblocks * NAMED_BARRIERS * sizeof *b->barriers);
	b->cluster = (struct cluster_barrier){0};
	size_t per_warp = (size_t)k->nregs * LANES;
	memset(s->regs, 0x5A, b->nwarps * per_warp * sizeof *s->regs);
	for (u32 n = 0; n < b->nwarps; n++) {
		struct warp *w = &b->warps[n];
		u32 rank = n / b->block_warps;
		*w = (struct warp){.block = b, .id = n, .rank = rank, .shared_base = rank * b->shared_stride, .alive = ALL_LANES, .regs = s->regs + n * per_warp, .at = k->code};
		w->local = s->local + (size_t)n * LANES * k->local_bytes;
		w->call = s->call + (size_t)n * LANES * k->call_bytes;
		w->clock.at[n] = 1;
	}
	/* registers hold no bits above their width */
	for (u32 r = 0; r < k->nregs; r++)
		for (u32 n = 0; n < b->nwarps; n++)
			for (u32 l2 = 0; l2 < LANES; l2++) {
				u64 *v = &b->warps[n].regs[(size_t)r * LANES + l2];
				*v = cut(*v, ptx_bits(k->reg_types[r]));
			}
}

/* --- a grid ---------------------------------------------------------------------------------------------------- */

bool sim_run(const struct launch *l, struct strbuf *error)
{
	u32 together = cluster_size(l->kernel);
	if (l->grid[0] % together || l->num_warps * together > MAX_WARPS || together > MAX_CLUSTER || l->kernel->cluster[1] > 1 || l->kernel->cluster[2] > 1) {
		sb_printf(error, "the simulator has clusters along x of up to %u warps; here are %u blocks of %u warps, and the grid has %u blocks", MAX_WARPS,
			  together, l->num_warps, l->grid[0]);
		return false;
	}
	u64 blocks = (u64)l->grid[0] / together * l->grid[1] * l->grid[2], failed = UINT64_MAX;
	bool memory = true;
	struct strbuf report = *error;
#pragma omp parallel num_threads(MIN(blocks, (u64)omp_get_max_threads()))
	{
		struct workspace s;
		bool open = workspace_open(&s, l);
#pragma omp for schedule(dynamic)
		for (u64 index = 0; index < blocks; index++) {
			u64 first;
#pragma omp atomic read
			first = failed;
			if (index > first || !open)
				continue;
			start_block(&s, index);
			run_block(&s.block);
			if (s.block.failed) {
#pragma omp critical(tl_sim_failure)
				if (index < failed) {
#pragma omp atomic write
					failed = index;
					report.len = error->len;
					sb_add(&report, s.block.error.at, s.block.error.len);
				}
			}
		}
		if (!open) {
#pragma omp critical(tl_sim_failure)
			memory = false;
		}
#pragma omp critical(tl_sim_failure)
		workspace_count(&s, l);
		workspace_close(&s);
	}
	*error = report;
	if (!memory)
		sb_puts(error, "out of host memory");
	return memory && failed == UINT64_MAX;
}
