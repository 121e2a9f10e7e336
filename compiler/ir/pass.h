/* Passes: functions from IR to IR. The table in driver/passes.c lists them once, with the analyses that they need and
 * whether analyses stay valid. The pass manager computes an analysis when a pass needs it. */
#ifndef TLC_IR_PASS_H
#define TLC_IR_PASS_H

#include "support/target.h"
#include "ir/ir.h"

struct axis_analysis;
struct ranges;

/* Permissions of the pipeliner. If the shared-memory model checker cannot prove the buffers correct, the kernel is
 * compiled again with fewer permissions. */
enum pipelining {
	PIPELINE_ALL,
	PIPELINE_CP_ASYNC, /* only cp.async copies, each loop separately; no outstanding dots */
	PIPELINE_NONE,
};

/* Limits of an attempt to compile a kernel. They are tightened step by step after the model checker could not prove
 * that multi-buffers are synchronised, or the kernel did not fit shared memory. */
struct gpu_limits {
	enum pipelining pipelining;
	int most_stages;    /* for every loop, overrides the loop's attribute */
	bool few_buffers;   /* multi-buffer only loads that dots use directly */
	bool few_operands;  /* wgmma takes A from registers, unless a loop loads A into buffers */
	bool operands_in_place; /* the program determines where operands of dots are converted, copied and loaded */
	bool no_warpgroups; /* dots use mma.sync, which takes all operands from registers */
};

/* An operation for which the shared-memory model checker could not prove synchronisation, with the reason. */
struct unproved {
	const struct op *op; /* NULL: all operations */
	const char *what;
};

/* The state of layout assignment and later passes for CUDA, in addition to the kernel. */
struct cuda_state {
	struct gpu_limits limits;
	struct unproved unproved;  /* found by prove-buffers */
	int stages;                /* largest number of buffers of a multi-buffered load so far */
	u32 grids;                 /* the kinds of grids (enum grid_kind) for which the code so far is the same */
	bool operands_moved;       /* operands of dots are stored, copied or loaded elsewhere: buffers live longer */
	bool too_large;            /* the kernel failed because it exceeds the shared memory of the target */
	struct programs *programs; /* the persistent loop over programs while it is tried, or NULL */
	struct strbuf *schedules;  /* receives the schedules of pipelined loops as text; NULL: off */
};

/* The state of the passes of one compilation, in addition to the kernel. */
struct pass_state {
	struct kernel *k;
	struct ir_context *ctx;
	struct diags *diags;
	bool remarks;
	const struct target *target;
	struct codegen_options options;
	int num_warps; /* over all CTAs of a program, as in the kernel */
	struct cuda_state cuda;     /* for TARGET_CUDA; passes before layout assignment do not read it */
	struct ranges *ranges;      /* ranges and axis: valid in passes that need them (analysis/) */
	struct axis_analysis *axis;
	bool failed;          /* the user's kernel cannot be compiled; a diagnostic was reported */
};

/* The number of pipeline stages: from the loop's attribute, otherwise from the kernel's option. */
static inline int stages_of(const struct pass_state *s, const struct op *loop)
{
	int stages = loop->attr[ATTR_STAGES] ? (int)loop->attr[ATTR_STAGES] : s->options.num_stages;
	return MIN(stages, s->cuda.limits.most_stages);
}

/* ANALYSIS_AXIS includes ANALYSIS_RANGES. */
enum analysis { ANALYSIS_RANGES = 1, ANALYSIS_AXIS = 3 };

/* The stages of GPU IR. Each includes the ones before it. */
enum gpu_stage {
	GPU_NO_LAYOUTS,
	GPU_LAID_OUT,     /* each tile has a layout */
	GPU_FMA_OPERANDS, /* the operands of dots without tensor cores are in shared memory */
	GPU_VECTORIZED,   /* accesses to global memory have a vector width */
	GPU_ALLOCATED,    /* buffers have offsets in shared memory */
	GPU_SYNCHRONIZED, /* barriers order the accesses to shared memory */
};

struct pass {
	const char *name, *what; /* for --print-after and its help */
	u32 groups;              /* the sets of passes that it is in: driver/passes.h */
	void (*run)(struct pass_state *s);
	enum analysis needs;  /* valid while the pass runs */
	bool keeps_analyses;  /* values do not change: analyses stay valid */
	enum gpu_stage stage; /* the stage that the pass completes; 0: none */
};

/* Passes of compiler/transform. */
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
void pass_strip_mine(struct pass_state *s);
void pass_induction_divisions(struct pass_state *s);
void pass_swizzle_pids(struct pass_state *s);
void pass_narrow_loads(struct pass_state *s);
void pass_contract_fma(struct pass_state *s);

/* Rewrites 64-bit offsets that the loop carries, with constant steps from 0, as multiples of the loop index. Two loops
 * with the same loads then have the same addresses, and the second can continue with the buffers of the first. */
void name_offsets(struct pass_state *s, struct op *loop);
/* Removes an induction variable that has the same step as another induction variable of the loop and is read only after
 * the loop. It is computed from the other one after the loop. */
void merge_induction_variables(struct kernel *k, struct ir_context *ctx);
/* True if the loop only loads and does cheap arithmetic. Loops with other work give warps time to overlap loads, or
 * have effects that prevent moving loads up. */
bool only_sums(const struct op *loop);
/* Removes operations and loop-carried values that have no effect on the result. */
void remove_dead_code(struct kernel *k);

#endif
