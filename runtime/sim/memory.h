/* Memory accesses of a whole warp, and the record that an access leaves in the shadow of shared memory. */
#ifndef TL_SIM_MEMORY_H
#define TL_SIM_MEMORY_H

#include "runtime/sim/races.h"
#include "runtime/sim/sim.h"
#include "runtime/sim/sync.h"

#define PARAM_WINDOW 0x7D0000000000000ull /* window of the kernel's parameters in the generic address space */

enum access_flags {
	A_READ = 1,
	A_WRITE = 2,
	A_STRONG = 4, /* volatile, relaxed or atomic: two such accesses do not race */
	A_FLIGHT = 8, /* the issue of an asynchronous copy: the bytes are in flight afterwards */
	A_ASYNC = 16, /* by the async proxy: a bulk copy, a tensor copy, wgmma */
	A_PRODUCT = 32, /* with A_ASYNC: by wgmma */
	A_COPIED = 64,  /* data delivered by cp.async */
};

/* Addresses of the lanes of one access. */
struct places {
	u64 at[LANES]; /* address within the state space */
	char *host[LANES];
	u32 in_shared;                /* mask */
	const struct operand *values; /* operands stored one after another, `step` bytes each; NULL: unknown */
	u32 step;
	const char *rows;             /* alternative to `values`: all bytes stored, lane after lane; or NULL */
	bool may_be_stale;            /* a plain load: stale.c handles its races within the block */
	u32 stale;                    /* mask of the lanes with such a race */
	const char *what;             /* description of that race */
	/* held by a plain store with values from the check until races_end, after the store */
	struct race_locks locks;
};

/* Computes, checks and records the addresses of all lanes in the mask; the others are undefined. An access is aligned
 * to its size. False after a fault. */
bool find_places(struct warp *w, const struct instr *i, u32 mask, const struct operand *o, enum ptx_space space,
		 u32 bytes, u32 flags, struct places *p);
void lane_addresses(const struct warp *w, const struct operand *o, enum ptx_space space, u64 at[LANES]);

/* Checks and records one instruction's accesses to shared memory, which are in bounds. A write of the value that is
 * already there is no race: several warps may hold the same part of a tile and all store it. shadow_lanes: the values
 * are unknown. */
void shadow_places(struct warp *w, const struct instr *i, u32 mask, const struct places *p, u32 bytes, u32 flags);
void shadow_lanes(struct warp *w, const struct instr *i, u32 mask, const u64 at[LANES], u32 bytes, u32 flags);

enum shadow_mark {
	MARK_MBARRIER = 1, /* the bytes are an mbarrier: no other access is allowed */
	MARK_SOURCE,       /* source of an outstanding bulk copy: writes are not allowed */
};
void shadow_mark(struct cta *k, u64 at, u32 bytes, enum shadow_mark mark, bool on);
/* Delivers a copy that `w` issued to these bytes of `owner`: they count as written by `agent` of that block at the
 * agent's time `when`. */
void shadow_arrive(struct warp *w, const struct instr *i, u32 lane, struct cta *owner, u64 at, u32 bytes, u32 agent,
		   u32 when);
/* Checks and records a read or a write of any number of bytes. In another block of the cluster it is the issue of a
 * copy. */
void shadow_range(struct warp *w, const struct instr *i, u32 lane, struct cta *owner, u64 at, u32 bytes, u32 flags);

/* Add an access to the counters of the instruction, if the launch has counters. count_bytes: a copy of consecutive
 * bytes. */
void count_global(struct warp *w, const struct instr *i, u32 mask, const u64 at[LANES], u32 bytes);
void count_shared(struct warp *w, const struct instr *i, u32 mask, const u64 at[LANES], u32 bytes, bool conflicts_only);

void count_bytes(struct warp *w, const struct instr *i, u64 at, u32 bytes);

/* Checks an access to shared memory of another block of the cluster, in bounds. Faults on a read of uninitialized
 * bytes, on bytes that an outstanding copy writes, on a write to bytes that a bulk copy reads, and on mbarriers. */
void shadow_visit(struct warp *w, const struct instr *i, u32 lane, struct cta *owner, u64 at, u32 bytes, u32 flags);

/* New value of a word, from the old value and the operands b and c. */
typedef u64 apply_fn(u64 old, u64 b, u64 c);
/* Operations of atomics, in the order of the modifier ATOM. */
enum atomic_operation { OP_AND, OP_OR, OP_XOR, OP_CAS, OP_EXCH, OP_ADD, OP_INC, OP_DEC, OP_MIN, OP_MAX };
/* Operation that combines a word of global memory with another word; NULL if it does
 * not exist for `t`. */
apply_fn *reduction(enum atomic_operation op, enum ptx_type t, bool flushes);
/* Combines `bytes` bytes, one word of `size` bytes at a time; each word is updated atomically. */
void reduce_words(char *to, const char *from, u32 bytes, u32 size, apply_fn *apply);

#endif
