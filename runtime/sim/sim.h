/* Internal interface of the PTX simulator.
 *
 * One CPU thread simulates a block (CTA). A seeded random choice picks the warp that runs next. A warp has 32 lanes.
 * The lanes at the lowest program counter execute together, so that lanes that diverged at a branch reconverge. An
 * instruction is a function over a lane mask. A register holds bits, with the bits above its width zero; a predicate is
 * 0 or 1.
 *
 * Time within a block is a vector clock: the component of warp w counts the release operations of w (barriers and the
 * like). The clocks define which access happened before which. Two accesses to the same bytes of shared memory race if
 * at least one is a write and neither happened before the other. Order between blocks is in sync.h, races in memory
 * that blocks share are in races.h.
 *
 * One thread simulates all blocks of a cluster and interleaves their warps. Without clusters each block is a cluster of
 * one. */
#ifndef TL_SIM_SIM_H
#define TL_SIM_SIM_H

#include "support/diag.h"
#include "support/index_range.h"
#include "runtime/sim/ptx.h"

enum { LANES = 32, GROUP_WARPS = 4 }; /* lanes of a warp, warps of a warpgroup */
enum { MAX_WARPS = 32, MAX_CLUSTER = 16 };   /* limits: warps of a block, blocks of a cluster */
/* Agents of a block: its warps, then the engines that write the data of bulk copies (see engine.h). */
enum { AGENTS = 64 };
#define ALL_LANES 0xFFFFFFFFu

/* `for` over the lanes of a mask. */
#define EACH_LANE(l, mask) for (u32 l##_ = (mask), l; l##_ && (l = (u32)__builtin_ctz(l##_), true); l##_ &= l##_ - 1)

/* The same, faster for the whole warp. */
#define FOR_LANES(l, mask, body)                                                                                       \
	do {                                                                                                           \
		if ((mask) == ALL_LANES) {                                                                             \
			for (u32 l = 0; l < LANES; l++)                                                                \
				body;                                                                                  \
		} else {                                                                                               \
			EACH_LANE(l, mask)                                                                             \
			body;                                                                                          \
		}                                                                                                      \
	} while (0)

struct shadow;    /* last write and last reads of each byte of shared memory (shadow.c) */
struct async;     /* outstanding cp.async copies of a warp (async.c) */
struct engine;    /* asynchronous operations of a block (engine.h) */
struct mbarrier;  /* (mbarrier.h) */
struct cluster;   /* blocks simulated together (cluster.h) */
struct sync;      /* order between blocks (sync.h) */
struct races;     /* accesses of blocks to memory that they share (races.h) */

typedef VEC(struct mbarrier *) mbarrier_vec;

struct clock {
	u32 at[AGENTS];            /* per agent of the block: everything it did up to this time happened before */
	u32 fenced[AGENTS];        /* same for accesses by the async proxy: a proxy fence lies between */
	const struct known *known; /* same for other blocks, by version (sync.c); NULL: none */
};

enum warp_state { WARP_READY, WARP_AT_BARRIER, WARP_AT_CLUSTER, WARP_ASLEEP, WARP_DONE };

struct warp {
	struct cta *block;
	u32 id;
	u32 alive;              /* lanes that have not exited */
	u32 pc[LANES];          /* index of the lane's next instruction */
	u32 parked;             /* lanes that wait for other lanes at an instruction that needs them together */
	u32 asleep;             /* lanes that resume when a phase of an mbarrier completes or their wait expires */
	u64 *regs;              /* regs[r * LANES + lane] */
	char *local;            /* local memory, lane after lane: kernel->local_bytes each */
	char *call;             /* .param variables of calls, lane after lane: kernel->call_bytes each */
	enum warp_state state;
	u32 barrier;            /* the barrier that the warp waits at */
	struct clock clock;     /* what happened before for this warp; clock.at[id] is its own time */
	struct fence *fence;    /* last memory fence of the warp; NULL: none yet (sync.c) */
	struct stale *stale;    /* tainted registers, whose values must not be used; NULL: none yet (stale.c) */
	/* state at the cluster barrier; HAS_PASSED: the barrier completed, but the warp has not executed the wait
	 * yet */
	enum { HAS_LEFT, HAS_ARRIVED, HAS_PASSED } meeting;
	struct async *async;    /* outstanding cp.async copies, oldest first */
	struct wgmma *wgmma;    /* outstanding wgmma groups (wgmma.c) */
	struct bulk *bulk;      /* bulk copies from shared memory (bulk.c) */
	u64 registers;          /* hash of the setmaxnreg instructions executed; `setmaxnreg` is the last of them */
	const struct instr *setmaxnreg;
	const struct instr *at; /* last instruction, for messages */
};

struct barrier { /* bar.sync id, count */
	u32 arrived;            /* warps */
	u32 expected;           /* warps; 0: no warp has arrived yet, or a barrier of the whole block */
	struct clock clock;     /* join of the clocks of the arrived warps */
	struct fence *fence;    /* join of their fences */
	const struct instr *by;
	u32 waiting;            /* mask of the warps that wait */
};

struct report {
	struct strbuf text;
	const struct instr *at; /* NULL: no instruction */
};

struct cta {
	const struct launch *launch;
	struct cluster *cluster;
	/* at the cluster barrier: join over this block's arrived warps; the clock that waiting warps receive */
	struct clock came, passed;
	bool met;               /* a warp has waited at the cluster barrier, so that all blocks have begun */
	struct visit *visits;   /* accesses of other blocks to its shared memory; NULL: none (cluster.c) */
	struct sync *sync;      /* NULL: the grid has one block only */
	struct races *races;    /* in global memory; NULL: the launch has one warp only */
	u64 index;              /* in the grid */
	u32 id[3], rank;        /* rank: in the cluster */
	u32 nwarps;
	struct warp *warps;
	char *shared;
	u64 shared_bytes;
	struct shadow *shadow;
	struct barrier barriers[16];
	mbarrier_vec mbarriers;
	struct engine *engine;       /* NULL until the block's first asynchronous operation (engine.h) */
	/* expired mbarrier waits since the last completion of a phase or barrier or end of a warp */
	u32 expired;
	struct map releases;    /* clocks released at addresses, for acquires by this block (sync.c) */
	u64 random;             /* seed of the schedule */
	u64 steps;              /* warp instructions so far */
	u64 polls;              /* of these, strong loads and atomics, which may wait for other blocks */
	struct arena arena;     /* memory that lives as long as the block */
	bool failed;
	/* race: the first race with another block in global memory; the block continues after it */
	struct report error, race;
	struct counters *counters; /* per instruction of the kernel; NULL: not requested */
	u32 last_range;         /* index in launch->ranges of the last access to global memory */
};

struct counters {
	u64 executed;     /* executions by a warp */
	u64 bytes;        /* bytes of global memory accessed */
	u64 transactions; /* 32-byte sectors of global memory; wavefronts of shared memory */
	u64 conflicts;    /* wavefronts beyond the minimum */
};

enum async_timing { ASYNC_LATE, ASYNC_EARLY, ASYNC_MIXED };

struct launch {
	const struct ptx_module *module;
	const struct ptx_kernel *kernel;
	u32 grid[3], num_warps;
	u32 cluster[3];         /* blocks of a cluster; 0: as the kernel declares */
	u64 dynamic_shared;
	const char *params;     /* kernel->param_bytes */
	const struct mem_range *ranges; /* the device's allocations, sorted */
	u8 *const *written;     /* per range: one bit per byte, set once the byte is written; NULL: unknown */
	u32 nranges;
	bool open;              /* addresses further than `guard` from all ranges are the caller's own memory */
	u64 guard;
	u64 seed;
	enum async_timing timing;
	bool strict_proxies;    /* wgmma needs a proxy fence after cp.async too */
	u64 max_steps;          /* the launch fails once all running blocks have executed more steps; 0: no limit */
	struct counters *counters;
	struct source_list sources;     /* of the kernel's module, for messages */
	struct source_place *place;     /* of the fault or race; or NULL */
	u32 threads;                 /* CPU threads; 0: as many as the machine has */
	bool independent;            /* no block waits for another block */
	/* receives the output of device_print; NULL: it goes to standard output */
	void (*print)(void *arg, const char *text, size_t len);
	void *print_arg;
};

/* --- decoding -------------------------------------------------------------------------------------------------- */

typedef void run_fn(struct warp *w, const struct instr *i, u32 mask);

/* An opcode split into parts: "ld.global.v4.f32" is "ld" with the parts "global", "v4", "f32". */
struct decoder {
	struct arena *arena;
	const struct ptx_module *module;
	struct ptx_kernel *kernel;
	struct instr *i;
	const struct form_index *index;
	const char *part[16];
	enum ptx_type part_type[16]; /* PT_NONE: not a type */
	bool taken[16];
	u32 nparts, ntypes;     /* ntypes: types matched so far */
	u32 nfitting;           /* operands that fit the form */
	const char *error;      /* set by decode_fail */
	u32 error_nfitting;     /* nfitting at the error */
};
typedef bool check_fn(struct decoder *d);

/* A form of an instruction, a row of forms.def. */
struct ptx_form {
	const char *text, *operands;
	int sm;
	run_fn *run;
	/* Checks the other rules of the form, and may choose another function or make a plan. If it fails without an
	 * error, the instruction may have another form. */
	check_fn *check;
	int operation;
	u8 members;             /* as in struct instr */
	bool is_sync, is_control;
};
enum { SM_90A = 901 };

/* Sets the error, unless more operands fitted the form of the last error. Always returns false. */
bool decode_fail(struct decoder *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Checks the number of operands and sets the error. */
bool want_operands(struct decoder *d, u32 n);
/* Checks the architecture and sets the error. */
bool need_sm(struct decoder *d, int sm);
/* m, n and k of the shape in the opcode, such as m64n8k16. */
bool opcode_shape(const struct decoder *d, u32 shape[3]);

/* Values of a vector access. */
static inline u32 vector_of(const struct instr *i) { return 1u << i->mod[M_VEC]; }

/* Number of a special register ("%tid.x"), or -1 for an unknown name. */
int special_register(const char *name);
/* True if the low `bits` bits of a special register are a value; `wider`: also those of a register of 64 bits. */
bool special_fits(u64 number, int bits, bool wider);

/* Decodes all instructions of the module. False if one is unknown, with "line 12: …" in *error. */
bool sim_decode(struct arena *a, struct ptx_module *m, const char **error);

/* --- running --------------------------------------------------------------------------------------------------- */

/* Computes the blocks of a cluster along each axis. False, with an error, if the grid is not a multiple of the cluster
 * shape or the cluster is too large. */
bool cluster_shape(const struct launch *l, u32 shape[3], struct strbuf *error);

enum sim_result { SIM_OK, SIM_RACED /* race of two blocks in global memory; the launch ran to its end */, SIM_FAULT };

/* Runs all blocks of the grid, several in parallel. Appends the report of the first block that raced or failed. */
enum sim_result sim_run(const struct launch *l, struct strbuf *error);

/* splitmix64 */
static inline u64 sim_random(u64 *state)
{
	u64 z = *state += 0x9E3779B97F4A7C15u;
	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return z ^ z >> 31;
}

/* Completes a barrier and wakes its waiting warps if all expected warps have arrived. */
void barrier_check(struct cta *k, struct barrier *b);

/* Reports a fault at `i`; the first fault of a block ends the block. `lanes` is the mask of the faulting lanes. Always
 * returns false. */
bool fault(struct warp *w, const struct instr *i, u32 lanes, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Faults, and returns false, unless all lanes of the warp are active, or the block has all warps of its warpgroup. */
bool needs_warp(struct warp *w, const struct instr *i, u32 mask);
bool needs_warpgroup(struct warp *w, const struct instr *i, u32 mask);

/* Reports a race with another block in global memory. The launch continues and reports the first race at its end. */
void blocks_race(struct warp *w, const struct instr *i, u32 lanes, const char *text);

/* Prints the place of an instruction: "softmax.tl:17, PTX line 12 (st.shared.u32): tl.store(p, x)". */
void print_place(struct strbuf *out, const struct launch *l, const struct instr *i);
/* The place in the kernel's source; file is NULL if it is not known. *text, if text is not NULL: the text that has the
 * line, or NULL. */
struct source_place place_of(const struct launch *l, const struct instr *i, const struct source **text);
/* Prints the position and state of each warp of the cluster, and the state of each mbarrier. */
void print_positions(const struct cluster *c, struct strbuf *out);
/* Fails the first block of the cluster because no warp can continue. */
void report_deadlock(struct cluster *c);
/* Runs the warp until it waits, ends, faults or has executed `turns` instructions. */
void run_warp(struct warp *w, u32 turns);

/* Mask of the low n bits. */
static inline u64 ones(u32 n) { return n > 63 ? ~(u64)0 : ((u64)1 << (n & 63)) - 1; }
static inline u64 low_bits(u64 v, int bits) { return v & ones((u32)bits); }
/* Value of a register, constant or special register in one lane, as `bits` bits; 1 bit: a predicate. */
u64 operand_value(const struct warp *w, const struct operand *o, u32 lane, int bits);
/* Items of a vector operand, or the operand itself. */
static inline const struct operand *operand_items(const struct operand *o)
{
	return o->kind == O_VECTOR ? o->items : o;
}
static inline u64 *reg(struct warp *w, const struct operand *o) { return &w->regs[(size_t)o->reg * LANES]; }
/* Values of an operand in all lanes: a pointer to the register itself, or to `space` after filling it. A float constant
 * is read as f32 for 32 bits and as f64 for 64 bits; integers are truncated to `bits`. */
const u64 *operand_lanes(const struct warp *w, const struct operand *o, int bits, u64 space[LANES]);
/* Sets a register in one lane; does nothing for O_SINK. `v` has no bits above the register's width. */
static inline void set_reg(struct warp *w, const struct operand *o, u32 lane, u64 v)
{
	if (o->kind == O_REG)
		w->regs[(size_t)o->reg * LANES + lane] = v;
}

/* --- memory (memory.c, shadow.c, async.c) ---------------------------------------------------------------------- */

/* Windows of the generic address space: shared memory of the running block, local memory of the lane. */
#define SHARED_WINDOW 0x7F0000000000000ull
#define LOCAL_WINDOW 0x7E0000000000000ull

struct shadow *shadow_new(struct arena *a, u64 bytes, u32 nwarps);
/* Checks and records an access of one lane to shared memory; its bounds are already checked. Faults on a race, on bytes
 * that an asynchronous copy has not delivered yet, and on reads of uninitialized bytes. */
void shadow_access(struct warp *w, const struct instr *i, u32 lane, u64 at, u32 bytes, u32 flags);

/* Checks an access to `bytes` bytes of global memory: inside an allocation, aligned, and written before if it is read.
 * Returns the host address, or NULL after a fault. */
char *global_memory_at(struct warp *w, const struct instr *i, u32 lane, u64 address, u32 bytes, u32 align,
		       bool is_write);

/* Address of an O_ADDRESS operand in a lane; *space receives the state space of a generic or variable-based address. */
u64 address_of(const struct warp *w, const struct operand *o, u32 lane, enum ptx_space *space);

/* Called when a warp ends: drops its outstanding cp.async copies, which is allowed. */
void async_end(struct warp *w);
/* Called when a warp ends: faults if a wgmma was never waited for. */
void wgmma_end(struct warp *w);
/* Called when a warp ends: faults if an ended warp of its warpgroup executed different setmaxnreg instructions. */
void setmaxnreg_end(struct warp *w);

/* Taints the result of a load in `lanes`, which may have read bytes while another warp writes them; `what` describes
 * the race. */
void stale_begin(struct warp *w, const struct instr *i, u32 lanes, const char *what);
/* Propagates taint through an instruction that the lanes `mask` reach and the lanes `active` execute. False after a
 * fault, when a tainted value is used. */
bool stale_step(struct warp *w, const struct instr *i, u32 mask, u32 active);

/* --- clocks ----------------------------------------------------------------------------------------------------- */

/* into = componentwise maximum (sync.c) */
void clock_join(struct arena *a, struct clock *into, const struct clock *from);
/* Proxy fence: everything that happened before now happened before for the async proxy too. */
void clock_fence(struct warp *w);
/* The current actions of w have the time w->clock.at[w->id], which begins at 1 and grows with each release by w. True
 * if the action of agent `by` of the same block at its time `when` happened before. */
static inline bool happened_before(const struct warp *w, u32 by, u32 when)
{
	return by == w->id || when <= w->clock.at[by];
}

#endif
