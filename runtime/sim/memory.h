/* What the files of memory share: accesses of a whole warp, and what an access of shared memory leaves behind. */
#ifndef TL_SIM_MEMORY_H
#define TL_SIM_MEMORY_H

#include "runtime/sim/sim.h"

#define PARAM_WINDOW 0x7D0000000000000ull /* the kernel's parameters in the generic address space */

enum access_flags {
	A_READ = 1,
	A_WRITE = 2,
	A_STRONG = 4, /* volatile, relaxed or atomic: two of these do not race */
	A_FLIGHT = 8, /* a write that an asynchronous copy begins */
};

/* Where the lanes of one access go. */
struct places {
	u64 at[LANES]; /* within the space */
	char *host[LANES];
	u32 in_shared;                /* mask */
	const struct operand *values; /* that are stored, one behind the other, `step` bytes each; NULL: unknown */
	u32 step;
};

/* Addresses of all lanes (those outside the mask hold anything), checked and recorded. An access is aligned to its size.
 * False after a fault. */
bool find_places(struct warp *w, const struct instr *i, u32 mask, const struct operand *o, enum ptx_space space, u32 bytes,
		 u32 flags, struct places *p);
void lane_addresses(const struct warp *w, const struct operand *o, enum ptx_space space, u64 at[LANES]);

/* The shadow of one instruction's accesses in shared memory, in bounds. Writing what is there already is no race: several
 * warps may hold the same part of a tile and all store it. */
void shadow_places(struct warp *w, const struct instr *i, u32 mask, const struct places *p, u32 bytes, u32 flags);
void shadow_lanes(struct warp *w, const struct instr *i, u32 mask, const u64 at[LANES], u32 bytes, u32 flags);

/* Into the counters of the instruction, if they are wanted. */
void count_global(struct warp *w, const struct instr *i, u32 mask, const u64 at[LANES], u32 bytes);
void count_shared(struct warp *w, const struct instr *i, u32 mask, const u64 at[LANES], u32 bytes, bool conflicts_only);

/* Synchronisation by memory: what releases at an address passes to what acquires there later. */
void sync_release(struct warp *w, u64 address);
void sync_acquire(struct warp *w, u64 address);

/* The qualifiers that loads, stores and atomics have in common. */
bool take_space(struct decoder *d, enum ptx_space *space);
/* An optional operand `n` that ".L2::cache_hint" announces; else there are n operands. */
bool want_policy(struct decoder *d, u32 n);
/* Do `o` (a register, or a constant where that is read) and the type of memory fit? */
bool fits_type(const struct operand *o, enum ptx_type t, bool is_result);
bool is_float_type(enum ptx_type t);

bool decode_atom(struct decoder *d);
bool decode_red(struct decoder *d);

#endif
