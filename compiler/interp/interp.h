/* The reference interpreter of the tile IR: the meaning of every operation.
 *
 * Plain and exact rather than fast, but it works on whole tiles at a time and runs the programs of a grid in parallel,
 * so that a kernel of ordinary size takes seconds. Every memory access is checked.
 *
 * Choices that a kernel must not rely on:
 * - Elements of a load (or atomic) that are masked off without `other` are poison: NaN in every float format, otherwise
 *   a large odd integer, 0x5A…5A5B (true for i1).
 * - Integer division by zero gives 0, since masked-off lanes commonly divide by garbage; INT_MIN / -1 wraps; a shift by
 *   the width or more shifts everything out.
 * - Reductions combine element i with element i + n/2, then halve, operands in order of their index. Scans and dots go
 *   in order of index; a dot rounds product and sum separately, in float (double for f64, modulo 2^32 for integers),
 *   starting from the accumulator.
 * - Programs run in any order, several at once; atomics are atomic between them, and sequentially consistent. A program
 *   that waits in a loop for another one's stores has further programs started, up to 1024 at once. */
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
	/* addresses further than `guard` from all ranges are the caller's own memory: only null and misaligned ones are
	 * errors */
	bool open;
	u64 guard;
	/* Of each parameter: the range that a pointer's accesses must stay in; &any_memory where the pointer is to
	 * memory of the caller's own; NULL where it points to none. NULL itself: accesses may hit every range, whatever
	 * they are computed from. */
	const struct mem_range *const *homes;
	int threads;                    /* 0: as many as the machine has */
	bool quiet;                     /* device_print prints nothing */
	/* takes what device_print prints; NULL: standard output does */
	void (*print)(void *arg, const char *text, size_t len);
	void *print_arg;
	/* runs inline assembly (runtime/device/inline_asm_run.h); NULL: every such operation fails */
	const char *(*assembly)(struct arena *a, const struct asm_call *c, char *const *tiles,
				const struct mem_range *ranges, u32 nranges, u64 guard);
	struct source_place *place; /* of the failure; or NULL */
};

struct interp_program;

/* Translates a kernel (as it is before placement: no ttg operations) once, into `a`. The kernel may be changed or
 * transformed afterwards; its context's types and sources must outlive the program. */
struct interp_program *interp_prepare(struct arena *a, const struct kernel *k);

/* The checks of a program, beside computing. */
struct interp_checks {
	/* Of this kernel without the promises in it (hints): both are compared with each value that occurs. NULL:
	 * nothing is. */
	const struct axis_analysis *facts;
	const struct ranges *ranges;
	/* With the promises: compared with the addresses that loads and stores use, as masked-off elements are promised
	 * nothing. Or NULL. */
	const struct axis_analysis *promised;
	/* multiply-adds round their product, and dots add the accumulator last: passes that contract products and sums
	 * then change no bit */
	bool apart;
};
struct interp_program *interp_prepare_checked(struct arena *a, const struct kernel *k, const struct interp_checks *c);

/* Runs every program of the grid; may be called from several threads at once. False when one failed: an access outside
 * every range, a misaligned or null pointer, a device_assert, a false assumption, a loop step that is not positive, in
 * a checked program a false fact or promise. The text, with source line, program and element, is then appended to
 * *error, whose arena no other thread may be using; of several failures it is that of the lowest program. Memory holds
 * what was stored until then. */
bool interp_run(const struct interp_program *p, const struct interp_launch *l, struct strbuf *error);

#endif
