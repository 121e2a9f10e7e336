/* Passes: functions from IR to IR, listed once with what they need and what they break.
 *
 * The list itself is in compile.c, which reads like a table of contents. The manager computes an analysis when a pass
 * needs it and drops it when a pass breaks it. */
#ifndef TLC_IR_PASS_H
#define TLC_IR_PASS_H

#include "support/target.h"
#include "ir/ir.h"

struct axis_analysis;
struct ranges;

/* What the pipeliner may do. Where the proof of the buffers fails, the kernel is compiled again with less of it. */
enum pipelining {
	PIPELINE_ALL,
	PIPELINE_CP_ASYNC, /* copies by cp.async alone, for each loop by itself; no dot stays in flight */
	PIPELINE_NONE,
};

/* An operation that may not be synchronised with others, and why. */
struct unproved {
	const struct op *op; /* NULL: all are */
	const char *what;
};

/* The state of placement for CUDA beside the kernel. */
struct cuda_state {
	enum pipelining pipelining;
	struct unproved unproved;  /* found by prove-buffers */
	int stages;                /* the most buffers of a ring, so far */
	bool few_buffers;          /* for what dots take as it is loaded alone */
	bool few_operands;         /* wgmma takes A from registers, unless a loop loads it into buffers */
	bool no_warpgroups;        /* dots by mma.sync, which takes all operands from registers */
	bool too_large;            /* the kernel failed, since it needs more shared memory than there is */
	bool no_tma;    /* no copies by TMA */
	enum grid_kind grid;       /* of the launch: see gpu/pipeline/persistent.c and transform/program_order.c */
	struct programs *programs; /* the loop over them while it is tried, or NULL */
	struct strbuf *schedules;  /* the text of pipelined loops' schedules, if it is wanted, or NULL */
};

/* The state of a compilation's passes beside the kernel. */
struct pass_state {
	struct kernel *k;
	struct ir_context *ctx;
	struct diags *diags;
	bool remarks;
	const struct target *target;
	int num_warps, num_stages; /* num_warps: of all blocks of a program, like the kernel's */
	int most_stages;           /* of any loop, whatever its attribute says */
	int group_pids;       /* remap a two-dimensional grid in groups of this many rows; 0: leave it */
	bool debug;           /* keep device_assert */
	enum aliasing alias;  /* how the kernel's pointer parameters may alias */
	struct cuda_state cuda;     /* for placement with TARGET_CUDA: passes before it do not read it */
	struct ranges *ranges;      /* ranges and axis: valid in passes that need them (analysis/) */
	struct axis_analysis *axis;
	bool failed;          /* the user's kernel cannot be compiled; a diagnostic says why */
};

/* Pipeline stages: the loop's attribute, else the kernel's option. */
static inline int stages_of(const struct pass_state *s, const struct op *loop)
{
	return MIN(loop->attr[ATTR_STAGES] ? (int)loop->attr[ATTR_STAGES] : s->num_stages, s->most_stages);
}

/* The second includes the first. */
enum analysis { ANALYSIS_RANGES = 1, ANALYSIS_AXIS = 3 };

struct pass {
	const char *name, *what; /* for --print-after and its help */
	void (*run)(struct pass_state *s);
	u32 needs, breaks; /* sets of enum analysis */
};

/* opt/ */
void pass_canonicalize(struct pass_state *s);
void pass_cse(struct pass_state *s);
void pass_licm(struct pass_state *s);
void pass_counted_loops(struct pass_state *s);
void pass_unflatten(struct pass_state *s);
void pass_if_conversion(struct pass_state *s);
void pass_strength_reduction(struct pass_state *s);
void pass_uniform_offsets(struct pass_state *s);
void pass_modulo_to_mask(struct pass_state *s);
void pass_versioning(struct pass_state *s);
void pass_mask_elimination(struct pass_state *s);
void pass_index_set_splitting(struct pass_state *s);
void pass_unroll(struct pass_state *s);
void pass_induction_divisions(struct pass_state *s);
void pass_swizzle_pids(struct pass_state *s);
void pass_narrow_loads(struct pass_state *s);
void pass_hoist_loads(struct pass_state *s);
void pass_hoist_prologue_loads(struct pass_state *s);
void pass_contract_fma(struct pass_state *s);

/* Does n divide v, or all of a tile, by constants that it is made of and by what the launch promises of parameters? */
bool is_known_multiple(const struct kernel *k, const struct value *v, i64 n);
/* Makes offsets of 64 bits that the loop carries, in equal steps from 0 on, multiples of its index: two loops with the
 * same loads can go on with each other's buffers then. */
void name_offsets(struct pass_state *s, struct op *loop);
/* Removes induction variables that grow by the same step as another one of the loop and are read behind the loop only:
 * they are computed from the other one there. */
void merge_induction_variables(struct kernel *k, struct ir_context *ctx);
/* Does the loop only load and do cheap arithmetic? Loops with other work give warps time to overlap loads, or have
 * effects that forbid to move loads up. */
bool only_sums(const struct op *loop);
/* Removes operations and loop-carried values that nothing needs. */
void remove_dead_code(struct kernel *k);

#endif
