/* The simulator of GPU blocks that runs PTX, inside.
 *
 * A block is simulated by one CPU thread: its warps take turns in a seeded order. A warp holds 32 lanes; those at the
 * lowest program counter run together, which makes lanes that took different branches meet again. An instruction is a
 * function over all lanes of a mask. Registers hold bits, upper ones zero; a predicate is 0 or 1.
 *
 * Time within a block is a vector clock: warp w's own component counts its releases (barriers and the like). What is
 * ordered by it happened before; two accesses of shared memory of which one writes and neither happened before the
 * other are a race. What happened before in other blocks is in sync.h, races in memory that blocks share are in
 * races.h.
 *
 * The blocks of a cluster are simulated by one thread, their warps in turns; without clusters each block is one. */
#ifndef TL_SIM_SIM_H
#define TL_SIM_SIM_H

#include "support/diag.h"
#include "support/index_range.h"
#include "runtime/sim/ptx.h"

enum { LANES = 32, MAX_WARPS = 32, MAX_CLUSTER = 16 }; /* warps of a block, blocks of a cluster */
/* Who acts in a block: its warps, then engines that write what bulk copies bring (see engine.h). */
enum { AGENTS = 64 };
#define ALL_LANES 0xFFFFFFFFu

/* `for` over the lanes of a mask. */
#define EACH_LANE(l, mask) for (u32 l##_ = (mask), l; l##_ && (l = (u32)__builtin_ctz(l##_), true); l##_ &= l##_ - 1)

struct shadow;    /* of shared memory: what was written, by whom, when (shadow.c) */
struct async;     /* copies on their way (async.c) */
struct engine;    /* what happens by itself, sooner or later (engine.h) */
struct mbarriers; /* (mbarrier.h) */
struct cluster;   /* (cluster.h) */
struct sync;      /* order between blocks (sync.h) */
struct races;     /* accesses by blocks of memory that they share (races.h) */

struct clock {
	u32 at[AGENTS];            /* what each of the block's agents did until these times happened before */
	u32 fenced[AGENTS];        /* the same as the async proxy sees it: a proxy fence lies between */
	const struct known *known; /* the same of other blocks; NULL: nothing */
};

enum warp_state { WARP_READY, WARP_AT_BARRIER, WARP_AT_CLUSTER, WARP_ASLEEP, WARP_DONE };

struct warp {
	struct cta *block;
	u32 id;
	u32 alive;              /* lanes that have not exited */
	u32 pc[LANES];          /* index of the lane's next instruction */
	u32 parked;             /* lanes that wait for others at an instruction that needs them */
	u32 asleep;             /* lanes that go on when a phase of an mbarrier completes, or its wait expires */
	u64 *regs;              /* regs[r * LANES + lane] */
	char *local;            /* local memory of each lane in turn: kernel->local_bytes each */
	char *call;             /* .param variables of calls, of each lane in turn: kernel->call_bytes each */
	enum warp_state state;
	u32 barrier;            /* waiting at this one */
	struct clock clock;     /* what this warp has seen of the others; clock.at[id] is its own time */
	struct fence *fence;    /* the last one; NULL: none yet (sync.c) */
	struct stale *stale;    /* registers with values that must not be used; NULL: none yet (stale.c) */
	/* at the cluster's barrier: passed, but has not waited yet */
	enum { HAS_LEFT, HAS_ARRIVED, HAS_PASSED } meeting;
	struct async *async;    /* this warp's copies, oldest first */
	struct wgmma *wgmma;    /* this warp's products on their way (wgmma.c) */
	struct bulk *bulk;      /* this warp's bulk copies from shared memory (bulk.c) */
	u64 registers;          /* a hash of what its setmaxnreg said, and the last of them */
	const struct instr *setmaxnreg;
	const struct instr *at; /* the last instruction, for messages */
};

struct barrier { /* bar.sync id, count */
	u32 arrived;            /* warps */
	u32 expected;           /* 0: nobody has come yet */
	struct clock clock;     /* joined of those that came */
	struct fence *fence;    /* the same of their fences */
	const struct instr *by;
	u32 waiting;            /* mask of warps */
};

struct cta {
	const struct launch *launch;
	struct cluster *cluster;
	struct clock came, passed; /* at its barrier: joined of this block's warps; what those that wait get */
	bool met;               /* a warp of it has waited there: all blocks have begun */
	struct visit *visits;   /* by other blocks in its shared memory; NULL: none (cluster.c) */
	struct sync *sync;      /* NULL: no other block */
	struct races *races;    /* in global memory; NULL: nobody to race with */
	u64 index;              /* in the grid */
	u32 id[3], rank;        /* rank: in the cluster */
	u32 nwarps;
	struct warp *warps;
	char *shared;
	u64 shared_bytes;
	struct shadow *shadow;
	struct barrier barriers[16];
	struct mbarriers *mbarriers; /* NULL: none yet, as of the engine */
	struct engine *engine;
	u32 expired;            /* waits at mbarriers since something completed last */
	struct map releases;    /* at addresses, for this block (sync.c) */
	u64 random;             /* of the schedule */
	u64 steps;              /* warp instructions so far */
	u64 polls;              /* of these, looks at what other blocks may have written */
	struct arena arena;     /* what lives as long as the block */
	bool failed;
	u32 error_line, race_line; /* of the source; 0: unknown */
	struct strbuf error, race; /* race: the first one with another block in global memory, after which it goes on */
	struct counters *counters; /* per instruction of the kernel; NULL: not wanted */
	u32 last_range;         /* of launch->ranges: where global memory was accessed last */
};

struct counters {
	u64 executed;     /* warps that ran it */
	u64 bytes;        /* of global memory */
	u64 transactions; /* 32-byte sectors of global memory; wavefronts of shared memory */
	u64 conflicts;    /* wavefronts beyond the least possible */
};

enum async_timing { ASYNC_LATE, ASYNC_EARLY, ASYNC_MIXED };

struct launch {
	const struct ptx_module *module;
	const struct ptx_kernel *kernel;
	u32 grid[3], num_warps;
	u32 cluster[3];         /* blocks of a cluster; 0: as the kernel says */
	u64 dynamic_shared;
	const char *params;     /* kernel->param_bytes */
	const struct mem_range *ranges; /* the device's allocations, sorted */
	u8 *const *written;     /* one bit a byte of each range: was it ever written? NULL: unknown */
	u32 nranges;
	bool open;              /* addresses further than `guard` from all ranges are the caller's own memory */
	u64 guard;
	u64 seed;
	enum async_timing timing;
	bool strict_proxies;    /* wgmma needs a proxy fence behind cp.async too */
	u64 max_steps;          /* the launch does not end when every block that runs has had more; 0: any number */
	struct counters *counters;
	const struct source *source; /* the kernel's file, for messages; or NULL */
	struct source_place *place;  /* of the fault or race; or NULL */
	u32 threads;                 /* 0: as many as the machine has */
	bool independent;            /* no block waits for another one */
	/* takes what device_print prints; NULL: standard output does */
	void (*print)(void *arg, const char *text, size_t len);
	void *print_arg;
};

/* --- decoding -------------------------------------------------------------------------------------------------- */

/* An opcode being taken apart: "ld.global.v4.f32" is "ld" and the parts "global", "v4", "f32". A decoder takes those
 * that it knows in any order; whatever is left makes the instruction unknown. */
struct decoder {
	struct arena *arena;
	const struct ptx_module *module;
	const struct ptx_kernel *kernel;
	struct instr *i;
	const char *part[16];
	bool taken[16];
	u32 nparts;
	const char *error;      /* set by decode_fail */
};
bool take(struct decoder *d, const char *part);
/* The next part (from the left, of those not taken) that is a type; PT_NONE if there is none. */
enum ptx_type take_type(struct decoder *d);
/* The index of the one of `names` (between spaces, like "rn rz rm rp") that is among the parts, or -1. */
int take_one_of(struct decoder *d, const char *names);
/* Sets the error, for the caller to return false. */
bool decode_fail(struct decoder *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Checks the number of operands and sets the error. */
bool want_operands(struct decoder *d, u32 least, u32 most);

/* The opcodes of one file. A decoder sets run, type, mods and is_sync of d->i. */
struct isa_row {
	const char *name;       /* the first part */
	bool (*decode)(struct decoder *d);
};
extern const struct isa_row alu_opcodes[], convert_opcodes[], memory_opcodes[], async_opcodes[], mbarrier_opcodes[],
	matrix_opcodes[], warp_opcodes[], sync_opcodes[], cluster_opcodes[];
/* each ends in {0} */

bool decode_proxy_fence(struct decoder *d); /* fence.proxy */
bool decode_setmaxnreg(struct decoder *d);

/* The number of a special register ("%tid.x"), or -1. */
int special_register(const char *name);
bool special_is_predicate(u64 number);

/* Gives every instruction of the module its meaning. False when one is unknown, with "line 12: …". */
bool sim_decode(struct arena *a, struct ptx_module *m, const char **error);

/* --- running --------------------------------------------------------------------------------------------------- */

/* How many blocks a cluster has along each axis. False if the grid cannot be cut into clusters, or they are too
 * large. */
bool cluster_shape(const struct launch *l, u32 shape[3], struct strbuf *error);

enum sim_result { SIM_OK, SIM_RACED /* two blocks in global memory: the launch went on to its end */, SIM_FAULT };

/* Runs all blocks of the grid, several at once. Appends the report of the first block that raced or failed. */
enum sim_result sim_run(const struct launch *l, struct strbuf *error);

/* splitmix64 */
static inline u64 sim_random(u64 *state)
{
	u64 z = *state += 0x9E3779B97F4A7C15u;
	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return z ^ z >> 31;
}

/* Lets go of a barrier's warps if all have come. */
void barrier_check(struct cta *k, struct barrier *b);

/* A fault: the first of a block ends it. `lanes` is the mask of those at fault. */
void fault(struct warp *w, const struct instr *i, u32 lanes, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* A race with another block in global memory. The launch goes on, and reports the first race at its end. */
void blocks_race(struct warp *w, const struct instr *i, u32 lanes, const char *text);

/* "softmax.tl:17, PTX line 12 (st.shared.u32): tl.store(p, x)". */
void print_place(struct strbuf *out, const struct launch *l, const struct instr *i);
/* The position and state of each warp of the cluster, and of each mbarrier. */
void print_positions(const struct cluster *c, struct strbuf *out);
/* Fails the cluster's first block: no warp can go on. */
void report_deadlock(struct cluster *c);
/* Runs until the warp waits, ends, fails or has executed `turns` instructions. */
void run_warp(struct warp *w, u32 turns);

static inline u64 low_bits(u64 v, int bits)
{
	return bits >= 64 ? v : v & (((u64)1 << bits) - 1);
}
/* The value of a register, constant or special register, as `bits` bits, in one lane. */
u64 operand_value(const struct warp *w, const struct operand *o, u32 lane, int bits);
static inline u64 *reg(struct warp *w, const struct operand *o) { return &w->regs[(size_t)o->reg * LANES]; }
/* All lanes at once. The array is the register itself or `space`, filled. An f32 constant of a 32-bit operand, an f64
 * of a 64-bit one; integers are cut to `bits`. */
const u64 *operand_lanes(const struct warp *w, const struct operand *o, int bits, u64 space[LANES]);
/* Sets a register; O_SINK is allowed. `v` has no bits above the register's. */
static inline void set_reg(struct warp *w, const struct operand *o, u32 lane, u64 v)
{
	if (o->kind == O_REG)
		w->regs[(size_t)o->reg * LANES + lane] = v;
}

/* --- memory (memory.c, shadow.c, async.c) ---------------------------------------------------------------------- */

/* Address windows of the generic address space: shared memory of the running block, local memory of the lane. */
#define SHARED_WINDOW 0x7F0000000000000ull
#define LOCAL_WINDOW 0x7E0000000000000ull

struct shadow *shadow_new(struct arena *a, u64 bytes, u32 nwarps);
/* An access of one lane to shared memory, in order and out of bounds checked already. Faults on a race, on bytes that
 * an asynchronous copy has not delivered yet, and on reads of what nobody wrote. */
void shadow_read(struct warp *w, const struct instr *i, u32 lane, u64 at, u32 bytes);
void shadow_write(struct warp *w, const struct instr *i, u32 lane, u64 at, u32 bytes);

/* The host address of `bytes` bytes of global memory, checked: inside an allocation, aligned, written before if read.
 * NULL after a fault. */
char *global_memory_at(struct warp *w, const struct instr *i, u32 lane, u64 address, u32 bytes, u32 align,
		       bool is_write);

/* Address of an O_ADDRESS in a lane; *space says where a generic or variable-based one points. */
u64 address_of(const struct warp *w, const struct operand *o, u32 lane, enum ptx_space *space);

/* What a warp still has on its way when it ends; faults if a copy was never waited for. */
void async_end(struct warp *w);
/* The same of its wgmma products. */
void wgmma_end(struct warp *w);
/* Faults if a warp of its warpgroup ran setmaxnreg otherwise. */
void setmaxnreg_end(struct warp *w);

/* A load gave these lanes what another warp may be writing; `what` describes the race. */
void stale_begin(struct warp *w, const struct instr *i, u32 lanes, const char *what);
/* An instruction that `active` lanes run, of those in `mask` that come to it. False after a fault: such a value is
 * used. */
bool stale_step(struct warp *w, const struct instr *i, u32 mask, u32 active);

/* --- clocks ----------------------------------------------------------------------------------------------------- */

void clock_join(struct arena *a, struct clock *into, const struct clock *from); /* (sync.c) */
/* The async proxy sees what happened before now. */
void clock_fence(struct warp *w);
/* What w does now happens at its time w->clock.at[w->id], which begins at 1 and grows when w releases. Did what agent
 * `by` of the block did at its time `when` happen before? */
static inline bool happened_before(const struct warp *w, u32 by, u32 when)
{
	return by == w->id || when <= w->clock.at[by];
}

#endif
