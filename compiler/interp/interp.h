/* The reference interpreter of the tile IR. It defines the meaning of every operation.
 *
 * The interpreter is simple and exact rather than fast. It operates on whole tiles and runs the programs of a grid in
 * parallel, so that a kernel of ordinary size takes seconds. Every memory access is checked.
 *
 * Choices that a kernel must not rely on:
 * - Elements of a load (or atomic) that are masked off without `other` are poison: NaN in every float format, otherwise
 *   a large odd integer, 0x5A…5A5B (true for i1).
 * - Integer division by zero gives 0, since masked-off lanes commonly divide by garbage; INT_MIN / -1 wraps; a shift by
 *   the width or more shifts everything out.
 * - Reductions combine element i with element i + n/2, then halve, with operands in order of their index. Scans and
 *   dots proceed in order of index. A dot rounds product and sum separately, in float (double for f64, modulo 2^32 for
 *   integers), starting from the accumulator.
 * - Programs run in any order, several at once. Atomics are atomic between programs and sequentially consistent. When a
 *   program waits in a loop for another program's stores, further programs are started, up to 1024 at once. */
#ifndef TLC_INTERP_INTERP_H
#define TLC_INTERP_INTERP_H

#include "support/map.h"
#include "support/index_range.h"
#include "ir/ir.h"

struct asm_call;
struct axis_analysis;
struct source_place;
struct ranges;

struct interp_launch {
	const u64 *args;                /* the bits of each kernel parameter: an address, an integer, a float */
	u32 grid[3];
	const struct mem_range *ranges; /* sorted by base, not overlapping */
	u32 nranges;
	/* addresses farther than `guard` from all ranges belong to the caller: only null and misaligned addresses are
	 * errors */
	bool open;
	u64 guard;
	/* For each parameter, the range in which accesses through the pointer must stay; &any_memory if the pointer is
	 * to memory of the caller; NULL if it points to no memory. If the array itself is NULL, an access may be to any
	 * range, regardless of the pointer from which its address is computed. */
	const struct mem_range *const *homes;
	int threads;                    /* 0: one per hardware thread */
	bool quiet;                     /* device_print has no output */
	/* receives the output of device_print; NULL: standard output */
	void (*print)(void *arg, const char *text, size_t len);
	void *print_arg;
	/* runs inline assembly (runtime/device/inline_asm_run.h); NULL: every such operation fails */
	const char *(*assembly)(struct arena *a, const struct asm_call *c, char *const *tiles,
				const struct mem_range *ranges, u32 nranges, u64 guard);
	struct source_place *place; /* receives the location of a failure; may be NULL */
};

struct interp_program;

/* Translates a kernel (before layout assignment: without ttg operations) once, into `a`. The kernel may be changed
 * afterwards. The types and sources of its context must outlive the program. */
struct interp_program *interp_prepare(struct arena *a, const struct kernel *k);

/* Optional checks of a program. */
struct interp_checks {
	/* Facts about this kernel without its hints. Each value that occurs is compared with both analyses. NULL: no
	 * comparison. */
	const struct axis_analysis *facts;
	const struct ranges *ranges;
	/* Facts that include the hints, or NULL. They are compared only with the addresses that loads and stores use,
	 * since hints say nothing about masked-off elements. */
	const struct axis_analysis *promised;
	/* multiply-adds round their product, and dots add the accumulator last, so that passes that contract products
	 * and sums do not change any bit */
	bool apart;
};
struct interp_program *interp_prepare_checked(struct arena *a, const struct kernel *k, const struct interp_checks *c);

/* Runs every program of the grid. Several threads may call it at once. False if a program failed: an access outside
 * every range, a misaligned or null pointer, a device_assert, a false assumption, a loop step that is not positive, and
 * in a checked program a false fact or hint. The message, with source line, program and element, is then appended to
 * *error. No other thread may use the arena of *error during the call. Of several failures, the one of the program with
 * the lowest number is reported. Memory holds all data stored before the failure. */
bool interp_run(const struct interp_program *p, const struct interp_launch *l, struct strbuf *error);

#endif
