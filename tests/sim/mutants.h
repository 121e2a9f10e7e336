/* Kernels with faults planted in their PTX, for the simulator to find. */
#ifndef TESTS_SIM_MUTANTS_H
#define TESTS_SIM_MUTANTS_H

#include "driver/compile.h"
#include "runtime/sim/sim.h"

/* --- faults ------------------------------------------------------------------------------------------------------ */

enum kind {
	BARRIER,
	WAIT,
	COMMIT,
	PRODUCT_WAIT,
	PRODUCT_FENCE,
	PROXY_FENCE,
	PRODUCT_COMMIT,
	DESCRIPTOR,
	SHARED,
	SWIZZLE,
	GLOBAL,
	GUARD,
	SHUFFLE,
	TRANS,
	ACCUMULATE,
	PHASE,
	ARRIVAL,
	BYTES,
	INITIAL,
	TURN,
	KINDS
};
enum { ALL_KINDS = (1 << KINDS) - 1 };
/* What engines that copy and multiply on their own are kept in order by. */
enum {
	ASYNC_KINDS = 1 << BARRIER | 1 << PROXY_FENCE | 1 << PRODUCT_WAIT | 1 << PHASE | 1 << ARRIVAL | 1 << BYTES |
		      1 << INITIAL | 1 << TURN
};

/* Those, and what keeps copies and products in order. */
enum { FLOW_KINDS = ASYNC_KINDS | 1 << WAIT | 1 << COMMIT | 1 << PRODUCT_FENCE | 1 << PRODUCT_COMMIT | 1 << GUARD };

/* --- workloads (mutants_kernels.c) ------------------------------------------------------------------------------ */

/* Global memory: `want` is what an output must hold after the run, NULL for an input, which must stay as it is. */
struct buffer {
	const char *name;
	u32 elem, len; /* bytes of an element: 1 is f8e4m3, 2 is f16, 4 is f32 */
	void *initial; /* poison for outputs */
	double *want;
	double absolute, relative;
};

struct launch_param {
	bool is_buffer;
	u64 bits; /* or the buffer's index */
};

struct problem {
	u32 grid[3];
	struct buffer buffers[8];
	u32 nbuffers;
	struct launch_param params[24]; /* of the PTX, in order */
	u32 nparams;
};

struct workload {
	const char *name, *file, *source, *func; /* source: instead of the file's */
	struct {
		int sm;
		bool arch_specific;
	} target;
	int num_warps;
	struct arg_spec args[24];
	u32 nproblems;
	void (*make)(struct arena *a, struct problem *p, u32 n);
	u32 kinds; /* of the faults to plant: a mask */
};
extern const struct workload workloads[];
extern const u32 nworkloads;

/* --- mutants (mutants_text.c) ------------------------------------------------------------------------------------ */

extern const char *const kind_names[KINDS];

struct mutant {
	enum kind kind;
	u32 index;        /* among those of its kind */
	u32 line;         /* of the text, from 1 */
	const char *with; /* the line instead */
	const char *what; /* was done */
	u32 other_line;   /* 0, or of another line that is changed too */
	const char *other_with;
};
typedef VEC(struct mutant) mutant_vec;

/* Every mutant there is, of instructions that run. */
void list_mutants(struct arena *a, const char *text, const struct ptx_kernel *k, const struct counters *counters,
		  mutant_vec *out);
/* The text with the mutant's lines; their numbers stay. */
const char *mutated(struct arena *a, const char *text, const struct mutant *m);

#endif
