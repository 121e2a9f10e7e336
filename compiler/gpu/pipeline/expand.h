/* Code generation for a pipelined loop: the values built so far, and the functions shared by expand.c,
 * outstanding_dots.c, flatten_loops.c, warp_specialize.c and cta_pair.c. */
#ifndef TLC_GPU_PIPELINE_EXPAND_H
#define TLC_GPU_PIPELINE_EXPAND_H

#include "gpu/pipeline/schedule.h"

/* A value that the pipeliner adds to the loop's iter args: the initial value, and the value yielded. */
struct loop_carried {
	struct value *init, *next;
};

/* Pipeline state, as CUTLASS's PipelineState: the index of a buffer, and the parity of its mbarriers' phase, which
 * flips each time the index wraps around. */
struct pipeline_state {
	struct value *slot, *phase;
};

/* Code generation for the copies of a pipelined loop, by the warps that issue them and the loops across which they
 * run. */
struct stream {
	/* Before the loop: allocates the multi-buffers, issues the first copies, and adds the iter args for the
	 * copies' slice and the pipeline state. */
	void (*begin)(struct plan *p);
	/* STEP_ISSUE_COPIES, in the loop. NULL: the loop's own threads issue no copies. */
	void (*copy)(struct plan *p, struct builder *b);
	/* After the loop. */
	void (*end)(struct plan *p, struct builder *b);
};

struct expansion {
	const struct stream *stream;
	value_vec buffers;            /* the multi-buffer of each load */
	struct value *barriers;       /* mbarriers: for each part, "full" of each buffer, then "empty" of each buffer */
	struct map first_elements;    /* tile of pointers → its first pointer, if code for that has been built */
	struct value *in_pair;        /* i1: the CTA is half of a CTA pair; NULL: it never is */
	struct value **same_tile;     /* i1 of each load: both CTAs read the same TMA tile; NULL: they never do */
	/* The iter args that the pipeliner adds after the loop's own `first`: the slice's iter args, or the copy state
	 * of flatten_loops.c; from `state` on the pipeline state (with a producer and a part released one iteration
	 * later, then the slot to release); from `copy_tokens` on the tokens of the commit groups, oldest first; from
	 * `register_values` on the prefetched values; from `dot_tokens` on the tokens of outstanding dots. */
	VEC(struct loop_carried) carried;
	u32 first, state, copy_tokens, register_values, dot_tokens;
	struct pipeline_state now, fill; /* of this iteration, and of the copies being issued */
	value_vec loaded;             /* register prefetch: results of the loads that STEP_ISSUE_COPIES has issued */
	struct value *last_group;     /* the token of the last cp.async commit group */
};

/* --- expand.c ------------------------------------------------------------------------------------------------ */

/* Rewrites the loop by its schedule. */
void expand_loop(struct plan *p);

extern const struct stream stream_ahead, stream_flat, stream_producer;

/* index + n·step. */
struct value *advance_index(struct builder *b, const struct op *loop, struct value *index, int n);
/* i1: index + n·step < end. Computed at b. */
struct value *is_below(struct builder *b, const struct op *loop, struct value *end, struct value *index, int n);
/* Adds an iter arg to p->code->carried. Returns its index there. */
u32 carry(struct plan *p, struct value *init);
/* Adds iter args for the tokens of the p->ahead commit groups that are outstanding when an iteration begins. */
void carry_copy_tokens(struct plan *p, struct value *const *tokens);
/* Removes the first of the p->ahead tokens, and appends that of the last commit group, p->code->last_group. */
void add_token(struct plan *p, struct value **tokens);
/* The pipeline state of the first iteration; without a phase if there are no mbarriers. */
struct pipeline_state first_pipeline_state(const struct plan *p, struct builder *b);
/* Adds iter args for the pipeline state; without a phase if init.phase is NULL. */
void carry_pipeline_state(struct plan *p, struct pipeline_state init);
/* Adds iter args to a loop around p's. Returns the new loop, and its iter args in *inits. The values to yield are added
 * after p's loop. */
struct op *carry_through(struct plan *p, struct op *loop, value_vec *inits);
/* The loop's iter arg for p->code->carried.at[i], and the loop's result for it. */
struct value *carried_now(const struct plan *p, u32 i);
struct value *carried_last(const struct plan *p, u32 i);
/* The pipeline state `by` iterations later; by <= p->stages. */
struct pipeline_state pipeline_state_at(struct plan *p, struct builder *b, struct pipeline_state at, int by);
/* Allocates the multi-buffer of each load and their mbarriers, before `at`. */
void make_buffers(struct plan *p, struct op *at);
/* Builds the copies for one iteration into buffer `slot`, with the predicate `inside` (i1). `map`: the loop's index and
 * iter args → their values in that iteration; the clones of the slice's operations are added to it. */
void issue_copies(struct plan *p, struct builder *b, struct map *map, struct value *slot, struct value *inside);
/* Builds the TMA copies for one iteration of `loop` (p's or a clone of it), into buffer to.slot, if `inside` (i1).
 * `map`: values of the loop → their values in that iteration. to.phase NULL: the buffer has not been used yet, so there
 * is no wait for "empty". */
void issue_tma_copies(struct plan *p, struct builder *b, struct op *loop, const struct map *map,
		      struct pipeline_state to, struct value *inside);
/* Waits for the thread's own cp.async copies, then for all threads: the copies are visible to the whole block. */
void wait_copies(struct builder *b);
/* This warp arrives at the "empty" mbarrier of the part's buffer `slot`. If the part is released one iteration later,
 * each iteration releases the buffer of the preceding iteration, and the first iteration a buffer that is not in use
 * yet, so that fills and releases of each buffer alternate. */
void release_buffer(struct plan *p, struct builder *b, u32 part, struct value *slot);
/* Invalidates the mbarriers, after all threads have stopped using them. */
void invalidate_barriers(struct plan *p, struct builder *b);
/* After the loop: the arrivals and waits that ping-pong scheduling needs so that both warpgroups have made equally
 * many. */
void end_pingpong(struct plan *p, struct builder *b);
/* True if an operation after o may use shared memory: it does, or o is in a loop or branch, so that operations of the
 * next iteration or after the branch may. */
bool uses_shared_after(const struct plan *p, const struct op *o);

/* --- outstanding_dots.c -------------------------------------------------------------------------------------- */

/* Makes these dots asynchronous, with tokens: the dots that stay outstanding, the overlapped dots and, if the last dot
 * has a deferred wait, the last and the first dot. */
void make_dots_async(struct plan *p);
/* Adds iter args for the tokens of the dots that stay outstanding: p->outstanding, to which this function appends
 * p->deferred. */
void carry_dot_tokens(struct plan *p);
/* Yields the tokens of this iteration's dots. */
void yield_dot_tokens(struct plan *p);
/* STEP_WAIT_DOT: waits for the dot of the step. */
void wait_for_dot(struct plan *p, struct builder *b, const struct schedule_step *s);
/* STEP_WAIT_PREVIOUS_DOTS: waits for the dots of the preceding iteration. */
void wait_for_previous_dots(struct plan *p, struct builder *b);
/* After the loop: waits for the outstanding dots. */
void wait_dots(struct plan *p, struct builder *b);
/* wait_dots whose results replace the accumulators of these dots, so that no use of them moves before the wait. */
void finish_dots(struct plan *p, struct builder *b);
/* --- cta_pair.c ---------------------------------------------------------------------------------------------- */

/* Sets p->code->in_pair and builds its computation before `at`, if two CTAs may share TMA tiles and that is faster.
 * Called before p's producer is built. */
void decide_pair(struct plan *p, struct op *at);
/* Sets p->code->same_tile and builds its computation in the producer, before the producer's clone of p's loop. `map`:
 * value → its clone in the producer. */
void compare_tensor_maps(struct plan *p, struct builder *b, struct map *map);
/* At the kernel's end: a cluster barrier, so that the CTA exits only when the pair's other CTA sends it no more copies
 * and arrivals. */
void end_pair(struct plan *p);

#endif
