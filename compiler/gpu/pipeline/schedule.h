/* The schedule of a pipelined loop: the data structure that the files of the software pipeliner share.
 *
 * Planning: which loads are issued ahead, and how
 *   plan.c              the pass: chooses how each loop is pipelined
 *   loads.c             the loads that can be issued ahead, and the slice of index arithmetic that they need
 *   async_dots.c        dots outstanding across iterations, the deferred wait, ping-pong scheduling
 *   shared_budget.c     the shared-memory budget for the multi-buffers
 *   loop_nest.c         whether the copies of a loop can run ahead across its outer loops:
 *   warp_specialize.c     issued by a producer warp
 *   flatten_loops.c       issued by the loop's own threads, across tiles
 *   persistent.c          across programs of a persistent block
 *   cta_pair.c          CTA pair with multicast: two blocks of a cluster share TMA tiles
 *   chain_loops.c       the next loop continues with the multi-buffers of this loop
 *
 * Scheduling and code generation
 *   schedule.c          the order of the steps of the body, and the synchronisation that follows from it
 *   print_schedule.c    the schedule as text
 *   expand.c            code before the loop, in it, and after it
 *   outstanding_dots.c  tokens of outstanding dots, and the waits for them
 *   hoist_sink.c        code before the loop that moves after the first copies, or after the loop
 *   direct_to_shared.c  cp.async for loads that no loop issues ahead
 *
 * Words of these files: "ahead", the prefetch distance: the loads of iteration i + ahead are issued in iteration i.
 * Slot: the index of a buffer in a multi-buffer. Slice: the index arithmetic that addresses and masks of these loads
 * depend on. Copy: a load that is issued ahead and writes to a buffer (cp.async or TMA). Part: loads with common
 * mbarriers (struct buffer_part). Tile, of a loop over tiles: the part of the result that one iteration of the outer
 * loop computes. */
#ifndef TLC_GPU_PIPELINE_SCHEDULE_H
#define TLC_GPU_PIPELINE_SCHEDULE_H

#include "gpu/tma/tma_tile.h"

/* The loops across which the copies of a pipelined loop run ahead, issued by a producer warp or across tiles. */
struct loop_nest {
	VEC(struct op *) path;   /* the loops, outermost first, the pipelined loop last */
	const struct block *top; /* the IR block of the outermost loop; values defined outside it are available */
	struct map needed;       /* operation of `top` or of the loops that computes bounds or addresses → itself */
	/* across tiles: the loop over tiles, and the values computed in it that the pipelined loop's copies use */
	struct op *outer;
	value_vec tile;
};

/* A value that the pipeliner adds to the loop's iter args: the initial value, and the value yielded. */
struct loop_carried {
	struct value *init, *next;
};

/* Pipeline state, as CUTLASS's PipelineState: the index of a buffer, and the parity of its mbarriers' phase, which
 * flips each time the index wraps around. */
struct pipeline_state {
	struct value *slot, *phase;
};

/* The steps of a loop's body: see schedule.c. */
enum schedule_step_kind {
	STEP_OP,         /* an operation of the body */
	STEP_COPY,       /* issues the copies of an iteration */
	STEP_AWAIT,      /* waits for an iteration's copies; without mbarriers, each thread for those it issued */
	STEP_TURN,       /* advances the pipeline state by one iteration */
	STEP_FINISH,     /* waits for the dots of the preceding iteration */
	STEP_RESULT,     /* waits for the result of an overlapped dot (schedule.beside) of this iteration */
	STEP_RELEASE,    /* this warp arrives at the "empty" mbarrier of the iteration's buffers */
	STEP_BARRIER,    /* barrier of all threads of the block */
	STEP_FENCE,      /* proxy fence: orders stores before reads by the tensor cores */
	STEP_HOLD,       /* a barrier of each warp: ptxas moves no load from after it to before it */
	STEP_PINGPONG_WAIT, /* waits until the other warpgroup has released the tensor cores */
	STEP_PINGPONG_ARRIVE,  /* releases the tensor cores to the other warpgroup */
};

/* The warps that run a step. */
enum partition {
	ALL_WARPS,
	PRODUCER, /* the additional warp that issues the TMA copies */
};

struct schedule_step {
	enum schedule_step_kind kind;
	enum partition partition;
	int stage;      /* the step belongs to iteration i + ahead - stage while the body runs for iteration i */
	struct op *op;  /* STEP_OP */
	struct op *dot; /* STEP_RESULT: the dot */
	u32 part;       /* STEP_AWAIT, STEP_RELEASE: index in schedule.parts */
};

/* Loads with common mbarriers: their buffers are filled and released together. With a producer, the loads with buffers
 * released one iteration later form a second part, so that the buffers of the other loads are released sooner. */
struct buffer_part {
	VEC(u32) loads;  /* indices in schedule.loads */
	bool lags;       /* released one iteration later, when the outstanding dots that read the buffers are done */
	u32 begin, end;  /* the range of steps that reads the buffers */
	int barriers;    /* the index of the part's first mbarrier */
};

struct schedule;

/* Code generation for the copies of a pipelined loop, by the warps that issue them and the loops across which they
 * run. */
struct stream {
	/* Before the loop: allocates the multi-buffers, issues the first copies, and adds the iter args for the
	 * copies' slice and the pipeline state. */
	void (*begin)(struct schedule *p);
	/* STEP_COPY, in the loop. NULL: the loop's own threads issue no copies. */
	void (*copy)(struct schedule *p, struct builder *b);
	/* After the loop. */
	void (*end)(struct schedule *p, struct builder *b);
};

struct schedule {
	struct pass_state *s;
	struct ir_context *ctx;
	struct arena scratch;
	struct op *loop;

	/* loads issued ahead: */
	VEC(struct op *) loads;
	struct map in_slice;     /* operation or iter arg that addresses and masks of `loads` depend on → itself */
	VEC(struct op *) slice;  /* the operations of in_slice, in program order */
	VEC(u32) args;           /* the iter args of in_slice, by index */
	bool few_buffers;        /* no shared memory for loads that are combined with results of dots */
	/* load that a preceding register prefetch has issued ahead → the loop that this prefetch has rebuilt. The slice
	 * may contain these loads, and no other loads. */
	struct map few_loads;

	/* method: */
	int stages, ahead;       /* buffers of each load; prefetch distance in iterations */
	bool async, ring;        /* copied by cp.async or TMA; multi-buffers, from copies or from registers */
	bool few;                /* register prefetch of small loads; then async and `ring` are false */
	const struct op *behind; /* few: operation of the body after which loads are issued; NULL: at its begin */
	bool tma;                /* async by TMA */
	VEC(struct tma_tile) boxes;   /* with tma: the TMA tile of each load */
	u32 rows;                /* with tma: number of loads, at the end of `loads`, moved by bulk copies */
	bool fetches;            /* one of `dots` takes its A operand from registers, loaded from shared memory */
	VEC(struct op *) dots;   /* dots outstanding when the next iteration begins, in program order */
	struct op *late;         /* the dot with deferred wait: in the next iteration, with its first dot's; or NULL */
	bool turns;              /* ping-pong scheduling of two warpgroups */
	/* overlapped asynchronous dots: further dots are issued before the wait for their results */
	VEC(struct op *) beside;

	/* the range of the copies: */
	/* first index and end of the iterations whose loads are issued: the loop's; with a follower, to its end */
	struct value *start, *end;
	/* chained loops: the next loop, which uses the buffers of this one and has its first loads issued here; and the
	 * preceding loop of which this one is the follower; or NULL */
	const struct schedule *follower, *before;
	bool second;             /* the loop after an attention's first loop: gets no separate producer */
	struct loop_nest *flat;       /* copies run ahead across the outer loop's iterations; or NULL */
	struct loop_nest *producer;   /* a producer warp issues the TMA copies; or NULL */
	struct op *asks;         /* the IR_PARTITION operation that holds the producer's code */
	struct value *pair;      /* i1: the CTA is half of a CTA pair; NULL: it never is */
	struct value **shared;   /* i1 of each load: both CTAs read the same TMA tile; NULL: they never do */
	const struct stream *stream;
	const char *no_producer; /* why there is no producer although it would be faster */

	/* order: */
	VEC(struct schedule_step) steps;
	VEC(struct buffer_part) parts;
	bool lags;               /* one of the parts is released one iteration later */

	/* code generation: */
	value_vec buffers;       /* the multi-buffer of each load */
	struct value *barriers;  /* mbarriers: for each part, "full" of each buffer, then "empty" of each buffer */
	struct map firsts;       /* tile of pointers → its first pointer, if code for that has been built */
	/* The iter args that the pipeliner adds after the loop's own `first`: the slice's iter args, or the copy state
	 * of flatten_loops.c; from `turn` on the pipeline state (with a producer and a part released one iteration
	 * later, then the slot to release); from `copies` on the tokens of the commit groups, oldest first; from
	 * `registers` on the prefetched values; from `flights` on the tokens of outstanding dots. */
	VEC(struct loop_carried) carried;
	u32 first, turn, copies, registers, flights;
	struct pipeline_state now, next, fill; /* of this iteration, of the next, and of the copies being issued */
	value_vec loaded;            /* register prefetch: the results of the loads that STEP_COPY has issued */
	struct value *issued;        /* the token of the last cp.async commit group */
};

/* --- loads.c ------------------------------------------------------------------------------------------------- */

/* Fills p->loads and p->in_slice, and sets p->async. asked: the loop has the num_stages attribute; plain: it has
 * neither the attribute nor dots; far: the prefetch distance is more than one iteration. */
void find_loads(struct schedule *p, bool asked, bool plain, bool far);
/* Clears p->loads, and sets p->few_buffers, so that a further find_loads leaves out loads that are combined with
 * results of dots, to save shared memory. Returns false, and changes nothing, if there are no such loads. */
bool leave_out_results(struct schedule *p);
/* True if the load is a contiguous, aligned, unmasked vector, which a bulk copy can move (cp.async.bulk). */
bool is_row_of_numbers(const struct schedule *p, const struct op *load);
/* Adds to p->loads the vectors that bulk copies move together with the TMA tiles; counts them in p->rows. */
void find_rows(struct schedule *p);
/* Removes these again. */
void leave_out_rows(struct schedule *p);
/* Adds a load to p->loads, and what its address and mask depend on to the slice. False, and nothing added: they depend
 * on more than index arithmetic. */
bool add_load(struct schedule *p, struct op *load);
/* Fills p->slice from p->in_slice, in program order. */
void collect_slice(struct schedule *p);
/* cp.async copies to a buffer only loads with a load_consumer, which the read of the buffer then replaces. Loads from
 * which a dot's operand is computed elementwise have none. So this inserts one for these loads (with `all`, for every
 * load): a layout conversion to the load's own layout, which changes nothing and is removed if the load is not
 * copied. */
void keep_distributed(struct schedule *p, bool all);
/* True if the load is an operand of a dot, but cp.async cannot copy it to the operand's buffer. */
bool needs_registers(const struct schedule *p, const struct op *load);
/* True if the block may write memory at addresses of this base, or synchronise with another writer. */
bool may_conflict(struct pass_state *s, const struct block *b, const struct value *base);
/* True if each iteration reduces (tt.reduce) a tile computed from a loop-carried tile. */
bool is_recurrence(struct ir_context *ctx, const struct block *body);
/* The only user of the load, if it is a layout conversion or a store into a buffer, in the same block; or NULL. */
struct op *load_consumer(const struct op *load);
/* True if the use, of the result of a load_consumer, is a layout conversion through shared memory. With multi-buffers
 * it is replaced by another read of the load's buffer. */
bool is_read_again(const struct use *u);
/* The layout of the load's buffers, which avoids bank conflicts of copies and of readers. */
const struct layout *multibuffer_layout(const struct schedule *p, const struct op *load);
/* True if cp.async can copy the tile to where load_consumer puts it. */
bool can_copy_async(const struct schedule *p, const struct op *load);
/* The size of the loaded tile, in bytes. */
i64 load_bytes(const struct op *load);

/* --- async_dots.c -------------------------------------------------------------------------------------------- */

struct op *first_dot(const struct block *body);
struct op *last_dot(const struct block *body);
/* True if all dots are wgmma, and no operand depends on the result of another dot of the same iteration. */
bool dots_are_apart(struct ir_context *ctx, const struct block *body);
/* True if o is a dot, or contains one in a branch. */
bool has_dot(const struct op *o);
/* The dot that takes its A operand from registers, as elementwise and shape operations compute it from the result of
 * `o`, a load's consumer or a load of a buffer; or NULL. */
struct op *dot_fetching(struct op *o);
/* dot_fetching of a load of a buffer, which NVPTX code generation then emits with the dot; NULL for other
 * operations. */
struct op *dot_that_loads(struct op *o);
/* Sets p->dots and p->fetches. Moves the operations that compute an operand in registers to its dot. */
void find_dots(struct schedule *p);
/* Sets p->late. */
void find_late(struct schedule *p);
/* Fills p->beside, the overlapped dots. */
void find_beside(struct schedule *p);
/* Decides on ping-pong scheduling. */
void find_turns(struct schedule *p);
/* The first operation of the body that uses the result of a dot, or contains a use; or the body's terminator. */
const struct op *first_need(const struct value *sum, const struct block *body);
/* The iter arg that holds the accumulator of the dot with deferred wait. */
struct value *late_sum(const struct schedule *p);
bool runs_beside(const struct schedule *p, const struct op *dot);
/* True if the dot is outstanding when the next iteration begins. */
bool stays_in_flight(const struct schedule *p, const struct op *dot);

/* --- shared_budget.c ----------------------------------------------------------------------------------------- */

/* Bytes of `stages` buffers for each load. */
i64 multibuffer_bytes(const struct schedule *p, int stages);
/* The largest number of stages, at most `stages`, that fits together with the buffers that the loop reads and with the
 * scratch memory that it and the operations before it use for layout conversions; at least 1. */
int stages_that_fit(struct schedule *p, int stages);
/* True if the multi-buffers fit together with the other shared memory of `around`, a loop around p's. */
bool pipeline_fits(const struct schedule *p, const struct op *around);
/* True if shared memory or registers allow one block per multiprocessor only. */
bool pipeline_is_alone(const struct schedule *p);

/* --- copies across loops ------------------------------------------------------------------------------------- */

/* Fills n with the loops from those in the IR block `top` down to p's loop. True if their bounds and the copies'
 * addresses can be computed separately, by another warp or at another time. Of each load, only the first
 * `load_operands` operands must be computable (1: not the mask). */
bool nest_find(struct schedule *p, struct loop_nest *n, const struct block *top, u32 load_operands);
/* Sets p->producer, if a producer warp is possible, and is either requested or faster. */
void pipeline_find_producer(struct schedule *p);
/* Sets the producer of an attention's first loop p and of its follower q (NULL: there is none). */
void pipeline_share_producer(struct schedule *p, struct schedule *q);
/* Sets p->flat, so that copies run ahead across the outer loop's iterations, if that loop has the flatten attribute and
 * it is possible. */
void pipeline_flatten(struct schedule *p);
/* The innermost loop after this one, if only pure operations stand between them; or NULL. */
struct op *next_loop(const struct op *loop);
/* q: the schedule of the next loop after p's. Makes it p's follower if its iterations continue p's, with the same
 * loads. Called before either loop is rewritten. */
void pipeline_join(struct schedule *p, struct schedule *q);

/* --- cta_pair.c ---------------------------------------------------------------------------------------------- */

/* Sets p->pair and builds its computation before `at`, if two CTAs may share TMA tiles and that is faster. Called when
 * p's producer is about to be built. */
void find_pair(struct schedule *p, struct op *at);
/* Sets p->shared and builds its computation in the producer, before the producer's clone of p's loop. `map`: value →
 * its clone in the producer. */
void compare_tensor_maps(struct schedule *p, struct builder *b, struct map *map);
/* At the kernel's end: a cluster barrier, so that the CTA exits only when the pair's other CTA sends it no more copies
 * and arrivals. */
void end_pair(struct schedule *p);

/* --- schedule.c, print_schedule.c ---------------------------------------------------------------------------- */

/* Fills p->steps and p->parts from the plan in *p. */
void schedule_steps(struct schedule *p);
/* Prints the schedule as a table. `file`: the name of the source. */
void print_schedule(struct schedule *p, const char *file, struct strbuf *out);

/* --- hoist_sink.c, direct_to_shared.c ------------------------------------------------------------------------ */

/* Moves the loads that precede the loop, and the operations that wait for them, to after the first copies (the
 * operations from `last` to the loop). */
void pipeline_issue_first(struct schedule *p, struct op *last);
/* Sinks operations past loops with dots, in the block and in nested blocks, if only later operations use them: their
 * results hold no registers during the loop, and are computed while the last dots run. */
void pipeline_defer(struct block *b);
/* Replaces loads that no loop issues ahead and that are only stored for a dot with cp.async, which takes no
 * registers. */
void copy_directly(struct pass_state *s);

/* --- expand.c ------------------------------------------------------------------------------------------------ */

/* Rewrites the loop by its schedule. */
void pipeline_rewrite(struct schedule *p);

extern const struct stream stream_ahead, stream_flat, stream_producer;

/* index + n·step. */
struct value *step_index(struct builder *b, const struct op *loop, struct value *index, int n);
/* i1: index + n·step < end. Computed at b. */
struct value *is_below(struct builder *b, const struct op *loop, struct value *end, struct value *index, int n);
/* Adds an iter arg to p->carried; returns its index there. */
u32 carry(struct schedule *p, struct value *init);
/* Adds iter args for the tokens of the p->ahead commit groups that are outstanding when an iteration begins. */
void carry_copies(struct schedule *p, struct value *const *tokens);
/* Removes the first of the p->ahead tokens, and appends that of the last commit group, p->issued. */
void add_token(struct schedule *p, struct value **tokens);
/* Adds iter args for the pipeline state; without a phase if init.phase is NULL. */
void carry_state(struct schedule *p, struct pipeline_state init);
/* The loop's iter arg for p->carried.at[i], and the loop's result for it. */
struct value *carried_now(const struct schedule *p, u32 i);
struct value *carried_last(const struct schedule *p, u32 i);
/* The pipeline state `by` iterations later; by <= p->stages. */
struct pipeline_state pipeline_state_at(struct schedule *p, struct builder *b, struct pipeline_state at, int by);
/* Allocates the multi-buffer of each load and their mbarriers, before `at`. */
void make_buffers(struct schedule *p, struct op *at);
/* Lets p use the buffers and mbarriers of p->before. */
void take_buffers(struct schedule *p);
/* Builds the copies for one iteration into buffer `slot`, with the predicate `inside` (i1). `map`: the loop's index and
 * iter args → their values in that iteration; the clones of the slice's operations are added to it. */
void pipeline_copy(struct schedule *p, struct builder *b, struct map *map, struct value *slot, struct value *inside);
/* Builds the TMA copies for one iteration of `loop` (p's or a clone of it), into buffer to.slot, if `inside` (i1).
 * `map`: values of the loop → their values in that iteration. to.phase NULL: the buffer has not been used yet, so there
 * is no wait for "empty". */
void pipeline_ask(struct schedule *p, struct builder *b, struct op *loop, const struct map *map,
		  struct pipeline_state to, struct value *inside);
/* Waits for the thread's own cp.async copies, then for all threads: the copies are visible to the whole block. */
void wait_copies(struct builder *b);
/* This warp arrives at the "empty" mbarrier of the part's buffer `slot`. If the part is released one iteration later,
 * each iteration releases the buffer of the preceding iteration, and the first iteration a buffer that is not in use
 * yet, so that fills and releases of each buffer alternate. */
void release_buffer(struct schedule *p, struct builder *b, u32 part, struct value *slot);
/* Invalidates the mbarriers, after all threads have stopped using them. */
void end_barriers(struct schedule *p, struct builder *b);
/* After the loop: the arrivals and waits that ping-pong scheduling needs so that both warpgroups have made equally
 * many. */
void end_turns(struct schedule *p, struct builder *b);
/* True if an operation after o may use shared memory: it does, or o is in a loop or branch, so that operations of the
 * next iteration or after the branch may. */
bool needs_memory_behind(const struct schedule *p, const struct op *o);

/* --- outstanding_dots.c -------------------------------------------------------------------------------------- */

/* Makes these dots asynchronous, with tokens: the dots that stay outstanding, the overlapped dots and, if the last dot
 * has a deferred wait, the last and the first dot. */
void let_dots_run_on(struct schedule *p);
/* Adds iter args for the tokens of the dots that stay outstanding: p->dots, to which it appends p->late. */
void carry_flights(struct schedule *p);
/* Yields the tokens of this iteration's dots. */
void next_flights(struct schedule *p);
/* STEP_RESULT: waits for the dot of the step. */
void await_result(struct schedule *p, struct builder *b, const struct schedule_step *s);
/* STEP_FINISH: waits for the dots of the preceding iteration. */
void finish_earlier_dots(struct schedule *p, struct builder *b);
/* After the loop: waits for the outstanding dots. */
void wait_dots(struct schedule *p, struct builder *b);
/* wait_dots whose results replace the accumulators of these dots, so that no use of them moves before the wait. */
void finish_dots(struct schedule *p, struct builder *b);

#endif
