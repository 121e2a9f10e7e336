/* What the files of memory share: accesses of a whole warp, and what an access of shared memory leaves behind. */
#ifndef TL_SIM_MEMORY_H
#define TL_SIM_MEMORY_H

#include "runtime/sim/races.h"
#include "runtime/sim/sim.h"
#include "runtime/sim/sync.h"

#define PARAM_WINDOW 0x7D0000000000000ull /* the kernel's parameters in the generic address space */

enum access_flags {
	A_READ = 1,
	A_WRITE = 2,
	A_STRONG = 4, /* volatile, relaxed or atomic: two of these do not race */
	A_FLIGHT = 8, /* a write that an asynchronous copy begins */
	A_ASYNC = 16, /* by the async proxy: a bulk copy, a tensor copy, wgmma */
	A_PRODUCT = 32, /* of these, wgmma */
	A_COPIED = 64,  /* what cp.async has brought */
};

/* Where the lanes of one access go. */
struct places {
	u64 at[LANES]; /* within the space */
	char *host[LANES];
	u32 in_shared;                /* mask */
	const struct operand *values; /* that are stored, one behind the other, `step` bytes each; NULL: unknown */
	u32 step;
	const char *rows;             /* in place of values: all bytes that are stored, lane behind lane; or NULL */
	bool may_be_stale;            /* a plain load: races within the block are for stale.c */
	u32 stale;                    /* mask: of lanes with one */
	const char *what;             /* it is */
	struct race_locks locks;      /* of plain stores with values: held until races_end, after the store */
};

/* Addresses of all lanes (those outside the mask hold anything), checked and recorded. An access is aligned to its
 * size. False after a fault. */
bool find_places(struct warp *w, const struct instr *i, u32 mask, const struct operand *o, enum ptx_space space,
		 u32 bytes, u32 flags, struct places *p);
void lane_addresses(const struct warp *w, const struct operand *o, enum ptx_space space, u64 at[LANES]);

/* The shadow of one instruction's accesses in shared memory, in bounds. Writing what is there already is no race:
 * several warps may hold the same part of a tile and all store it. */
void shadow_places(struct warp *w, const struct instr *i, u32 mask, const struct places *p, u32 bytes, u32 flags);
void shadow_lanes(struct warp *w, const struct instr *i, u32 mask, const u64 at[LANES], u32 bytes, u32 flags);

enum shadow_mark {
	MARK_MBARRIER = 1, /* the bytes are an mbarrier: nothing else may touch them */
	MARK_SOURCE,       /* a bulk copy reads them some time: nothing may write them */
};
void shadow_mark(struct cta *k, u64 at, u32 bytes, enum shadow_mark mark, bool on);
/* What was in flight to these bytes of a block has arrived, written by its `agent` at that one's time `when`. `w` began
 * the copy. */
void shadow_arrive(struct warp *w, const struct instr *i, u32 lane, struct cta *owner, u64 at, u32 bytes, u32 agent,
		   u32 when);
/* An access of any number of bytes, which reads or writes them; in another block of the cluster a copy that begins. */
void shadow_range(struct warp *w, const struct instr *i, u32 lane, struct cta *owner, u64 at, u32 bytes, u32 flags);

/* Into the counters of the instruction, if they are wanted. */
void count_global(struct warp *w, const struct instr *i, u32 mask, const u64 at[LANES], u32 bytes);
void count_shared(struct warp *w, const struct instr *i, u32 mask, const u64 at[LANES], u32 bytes, bool conflicts_only);

/* The same of a copy of consecutive bytes. */
void count_bytes(struct warp *w, const struct instr *i, u64 at, u32 bytes);

/* An access of another block of the cluster to shared memory, in bounds: reads what was written, writes what no copy is
 * on its way to or from. */
void shadow_visit(struct warp *w, const struct instr *i, u32 lane, struct cta *owner, u64 at, u32 bytes, u32 flags);

/* The qualifiers that loads, stores and atomics have in common. */
bool take_space(struct decoder *d, enum ptx_space *space);
enum scope take_scope(struct decoder *d, bool *given);
/* An optional operand `n` that ".L2::cache_hint" announces; else there are n operands. */
bool want_policy(struct decoder *d, u32 n);
/* Do `o` (a register, or a constant where that is read) and the type of memory fit? */
bool fits_type(const struct operand *o, enum ptx_type t, bool is_result);
bool is_float_type(enum ptx_type t);

/* The new value of a word from the old one and the operands. */
typedef u64 apply_fn(u64 old, u64 b, u64 c);
#define ATOMIC_OPERATIONS "and or xor cas exch add inc dec min max"
/* The one of these that combines a word of global memory with another; NULL: there is none. */
apply_fn *reduction(int op, enum ptx_type t, bool flushes);
/* Combines words of `size` bytes, each atomically. */
void reduce_words(char *to, const char *from, u32 bytes, u32 size, apply_fn *apply);

bool decode_atom(struct decoder *d);
bool decode_red(struct decoder *d);

#endif
