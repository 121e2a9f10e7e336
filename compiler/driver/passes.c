/* The passes over the IR, in the order in which they run. */
#include "driver/compile.h"
#include "driver/passes.h"

#include "gpu/gpu_passes.h"
#include "gpu/pipeline/pipeline.h"
#include "gpu/smem/model_checker.h"

/* A CPU runs a program on a single thread. Passes that widen accesses across threads, or overlap loads with other work,
 * gain nothing there. Code for debuggers gets only the passes that change results or were requested, so that operations
 * stay in their source order. */
enum { GPU = PASSES_GPU, CPU = PASSES_CPU, DEBUG = PASSES_DEBUG, TTGIR = PASSES_TTGIR };
#define PASS(pass, groups_of, function, text, ...)                                                                     \
	{.name = pass, .groups = groups_of, .run = function, .what = text, __VA_ARGS__}

const struct pass passes[] = {
	PASS("canonicalize", GPU | CPU, pass_canonicalize, "fold constants, shrink index arithmetic, remove dead code"),
	PASS("cse", GPU | CPU, pass_cse, "merge equal operations"),
	PASS("swizzle-pids", CPU | DEBUG, pass_swizzle_pids, "remap a two-dimensional grid in groups (on request)"),
	PASS("licm", GPU | CPU, pass_licm, "move loop-invariant operations out of loops"),
	PASS("counted-loops", GPU | CPU, pass_counted_loops,
	     "convert counting while loops to for loops", .needs = ANALYSIS_RANGES),
	PASS("unflatten", GPU, pass_unflatten,
	     "split a loop over all slices into a loop over tiles and a loop over their slices",
	     .needs = ANALYSIS_RANGES),
	PASS("if-conversion", GPU, pass_if_conversion,
	     "convert branches that compute addresses in a loop of dots to selects"),
	PASS("strength-reduction", GPU | CPU, pass_strength_reduction,
	     "iterate on an offset instead of pointers or tiles"),
	PASS("uniform-offsets", GPU, pass_uniform_offsets,
	     "add the uniform part of offset tiles to the base pointers", .needs = ANALYSIS_RANGES),
	PASS("versioning", GPU, pass_versioning,
	     "add a fast path for programs away from the edge of a matrix", .needs = ANALYSIS_AXIS),
	PASS("mask-elimination", GPU | CPU, pass_mask_elimination,
	     "remove masks that are provably true", .needs = ANALYSIS_RANGES),
	PASS("modulo-to-mask", GPU | CPU, pass_modulo_to_mask,
	     "replace the modulo of row indices by a mask where the wrapped rows are not demanded",
	     .needs = ANALYSIS_AXIS),
	PASS("index-set-splitting", GPU | CPU, pass_index_set_splitting,
	     "split a loop into a main loop without a mask and a tail", .needs = ANALYSIS_AXIS),
	PASS("unroll", GPU, pass_unroll, "unroll loops that have an unroll factor", .needs = ANALYSIS_RANGES),
	PASS("cse2", GPU | CPU, pass_cse, "merge equal operations"),
	PASS("licm2", GPU, pass_licm, "move loop-invariant operations out of loops"),
	PASS("induction-divisions", GPU, pass_induction_divisions,
	     "carry the quotients and remainders of induction variables", .needs = ANALYSIS_RANGES),
	PASS("narrow-loads", GPU, pass_narrow_loads, "load repeated elements of a tile once", .needs = ANALYSIS_AXIS),
	PASS("contract-fma", GPU | CPU | DEBUG, pass_contract_fma,
	     "contract multiplications and additions to fused multiply-adds"),

	PASS("legalize-dots", TTGIR, pass_legalize_dots,
	     "convert dots to the operand types of the target's tensor cores"),
	PASS("cluster", TTGIR, pass_cluster,
	     "run programs whose tiles do not fit a block's registers on a cluster of blocks",
	     .needs = ANALYSIS_AXIS, .keeps_analyses = true),
	PASS("strip-mine", TTGIR, pass_strip_mine,
	     "convert operations on tiles with many elements a thread to loops over parts of the tiles",
	     .needs = ANALYSIS_AXIS),
	PASS("layouts", TTGIR, pass_layouts,
	     "assign a layout to every tile", .needs = ANALYSIS_AXIS, .stage = GPU_LAID_OUT),
	PASS("pipeline", TTGIR, pass_pipeline,
	     "pipeline loops: issue their loads iterations ahead", .needs = ANALYSIS_AXIS),
	PASS("early-loads", TTGIR, pass_early_loads,
	     "issue loads and copies before operations in which threads wait for one another", .keeps_analyses = true),
	PASS("multiply-adds", TTGIR, pass_multiply_adds,
	     "move operands of dots without tensor cores to shared memory",
	     .keeps_analyses = true, .stage = GPU_FMA_OPERANDS),
	PASS("vectorize", TTGIR, pass_vectorize,
	     "choose the vector width of each load, store and copy",
	     .needs = ANALYSIS_AXIS, .keeps_analyses = true, .stage = GPU_VECTORIZED),
	PASS("allocate", TTGIR, pass_allocate,
	     "allocate shared memory", .keeps_analyses = true, .stage = GPU_ALLOCATED),
	PASS("barriers", TTGIR, pass_barriers,
	     "insert barriers for shared memory",
	     .needs = ANALYSIS_AXIS, .keeps_analyses = true, .stage = GPU_SYNCHRONIZED),
	PASS("prove-buffers", TTGIR, pass_prove_buffers,
	     "prove that buffers are synchronised, else compile again with less pipelining",
	     .keeps_analyses = true),
	PASS("remarks", TTGIR, pass_remarks,
	     "report how memory is accessed (on request)", .needs = ANALYSIS_AXIS, .keeps_analyses = true),
};
const u32 npasses = ARRAY_LEN(passes);

int pass_index(u32 groups, const char *name)
{
	for (u32 i = 0; i < npasses; i++)
		if (passes[i].groups & groups && !strcmp(passes[i].name, name))
			return (int)i;
	return -1;
}

u32 tile_passes(const struct target *target)
{
	return target->lines ? PASSES_DEBUG : target->kind == TARGET_CUDA ? PASSES_GPU : PASSES_CPU;
}

u32 gpu_passes(const struct target *target)
{
	return target->kind == TARGET_CUDA && !target->lines ? PASSES_TTGIR : 0;
}

enum gpu_stage pass_stage(u32 i)
{
	while (i && !passes[i].stage)
		i--;
	return passes[i].stage;
}

bool compile_has_step(const char *name)
{
	return pass_index(PASSES_ALL, name) >= 0 || !strcmp(name, "eval") || !strcmp(name, "lower") ||
	       !strcmp(name, "llvm");
}

void compile_list_passes(FILE *out)
{
	fprintf(out, "  %-20s %s\n", "eval", "the tile IR as evaluated, before any pass");
	for (u32 i = 0; i < npasses; i++)
		fprintf(out, "  %-20s %s%s\n", passes[i].name, passes[i].what,
			passes[i].groups & (PASSES_GPU | PASSES_TTGIR) ? "" : " (CPU only; on GPUs part of pipeline)");
}
