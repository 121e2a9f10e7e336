/* The plan of a pipelined loop: which loads are issued ahead, how, and how asynchronous dots are waited for.
 *
 * Three structures describe a pipelined loop, each in its own header:
 *   struct plan       this file: the decisions
 *   struct schedule   schedule.h: the steps of the loop's body as rows, which follow from the plan
 *   struct expansion  expand.h: the values of the generated code
 *
 * README.md lists the files that make and use them.
 *
 * Terms: "ahead", the prefetch distance: the loads of iteration i + ahead are issued in iteration i.
 * Slot: the index of a buffer in a multi-buffer. Slice: the index arithmetic that addresses and masks of these loads
 * depend on. Copy: a load that is issued ahead and writes to a buffer (cp.async or TMA). Tile, of a loop over tiles:
 * the part of the result that one iteration of the outer loop computes. */
#ifndef TLC_GPU_PIPELINE_PLAN_H
#define TLC_GPU_PIPELINE_PLAN_H

#include "gpu/tma/tma_tile.h"

struct schedule;
struct expansion;

/* The loops across which the copies of a pipelined loop run ahead, issued by a producer warp or across tiles. */
struct loop_nest {
	VEC(struct op *) path;   /* the loops, outermost first, the pipelined loop last */
	const struct block *top; /* the IR block of the outermost loop; values defined outside it are available */
	struct map needed;       /* operation of `top` or of the loops that computes bounds or addresses → itself */
	/* across tiles: the loop over tiles, and the values computed in it that the pipelined loop's copies use */
	struct op *outer;
	value_vec tile;
};

struct plan {
	struct pass_state *s;
	struct ir_context *ctx;
	struct arena scratch;
	struct op *loop;

	/* loads issued ahead: */
	op_vec loads;
	struct map in_slice;     /* operation or iter arg that addresses and masks of `loads` depend on → itself */
	op_vec slice;            /* the operations of in_slice, in program order */
	VEC(u32) args;           /* the iter args of in_slice, by index */
	bool operands_only;      /* no shared memory for loads that are combined with results of dots */
	/* set of loads that a preceding register prefetch has issued ahead; the slice may contain no other loads */
	struct map prefetched;

	/* method: */
	int stages, ahead;       /* buffers of each load; prefetch distance in iterations */
	bool async;              /* copied by cp.async or TMA */
	bool multi_buffered;     /* through multi-buffers, from copies or from registers */
	bool register_prefetch;  /* of small loads; then neither async nor multi_buffered */
	/* register_prefetch: operation of the body after which loads are issued; NULL: at the body's begin */
	const struct op *issue_after;
	bool tma;                /* async by TMA */
	VEC(struct tma_tile) tiles; /* tma: the TMA tile of each load */
	u32 bulk_copies;         /* tma: number of loads, at the end of `loads`, moved by bulk copies */

	/* asynchronous dots: */
	op_vec outstanding;      /* dots outstanding when the next iteration begins, in program order */
	op_vec overlapped;       /* dots with results awaited after the issue of further dots */
	struct op *deferred;     /* dot with deferred wait: in the next iteration, with its first dot's; or NULL */
	bool register_a;         /* an outstanding dot takes A from registers, loaded from shared memory */
	bool pingpong;           /* ping-pong scheduling of two warpgroups */

	/* the range of the copies: */
	/* first index and end of the iterations with copies: the loop's; of chained loops, both loops' */
	struct value *start, *end;
	/* chained loops: the next loop uses the buffers of this loop, which issues the next loop's first copies; or
	 * NULL */
	const struct plan *next_chained, *prev_chained;
	bool joint_producer;     /* planned with the preceding loop: the two loops have one producer or none */
	struct loop_nest *flattened;  /* copies run ahead across the outer loop's iterations; or NULL */
	struct loop_nest *producer;   /* a producer warp issues the TMA copies; or NULL */
	const char *no_producer; /* why there is no producer although it would be faster */

	struct schedule *schedule;
	struct expansion *code;
};

/* Fills p->loads and p->in_slice, and sets p->async. asked: the loop has the num_stages attribute; plain: it has
 * neither the attribute nor dots; far: the prefetch distance is more than one iteration. */
void find_loads(struct plan *p, bool asked, bool plain, bool far);
/* Clears p->loads, and sets p->operands_only, so that a further find_loads leaves out loads that are combined with
 * results of dots, to save shared memory. Returns false, and changes nothing, if there are no such loads. */
bool restrict_to_operands(struct plan *p);
/* True if the load is a contiguous, aligned, unmasked vector, which a bulk copy can move (cp.async.bulk). */
bool is_contiguous_vector(const struct plan *p, const struct op *load);
/* Adds to p->loads the vectors that bulk copies move together with the TMA tiles; counts them in p->bulk_copies. */
void add_bulk_copies(struct plan *p);
/* Removes the bulk copies from p->loads. */
void remove_bulk_copies(struct plan *p);
/* Adds a load to p->loads, and what its address and mask depend on to the slice. False, and nothing added: they depend
 * on more than index arithmetic. */
bool add_load(struct plan *p, struct op *load);
/* Fills p->slice from p->in_slice, in program order. */
void collect_slice(struct plan *p);
/* cp.async copies to a buffer only loads with a load_consumer, which the read of the buffer then replaces. Loads from
 * which a dot's operand is computed elementwise have none. So this inserts one for these loads (with `all`, for every
 * load): a layout conversion to the load's own layout, which changes nothing and is removed if the load is not
 * copied. */
void insert_load_consumers(struct plan *p, bool all);
/* True if the load is an operand of a dot, but cp.async cannot copy it to the operand's buffer. */
bool needs_registers(const struct plan *p, const struct op *load);
/* True if the block may write memory at addresses of this base, or synchronise with another writer. */
bool may_conflict(struct pass_state *s, const struct block *b, const struct value *base);
/* True if iterations probably do not overlap, so that each waits for its loads: it reduces a tile (tt.reduce), for
 * which several warps wait for one another; or in one warp a tile that it computes from a loop-carried tile. */
bool loads_are_awaited(const struct plan *p);
/* The only user of the load, if it is a layout conversion or a store into a buffer, in the same block; or NULL. */
struct op *load_consumer(const struct op *load);
/* True if o is the load_consumer of one of p->loads. */
bool is_load_consumer(const struct plan *p, const struct op *o);
/* True if the use, of the result of a load_consumer, is a layout conversion through shared memory. With multi-buffers
 * it is replaced by another read of the load's buffer. */
bool is_second_read(const struct use *u);
/* The layout of the load's buffers, which avoids bank conflicts of copies and of readers. */
const struct layout *multibuffer_layout(const struct plan *p, const struct op *load);
/* True if cp.async can copy the tile to where load_consumer puts it. */
bool can_copy_async(const struct plan *p, const struct op *load);
/* The size of the loaded tile, in bytes. */
i64 load_bytes(const struct op *load);

/* --- async_dots.c -------------------------------------------------------------------------------------------- */

struct op *first_dot(const struct block *body);
struct op *last_dot(const struct block *body);
/* True if o is a dot of mma.sync, or by multiply-adds. */
bool is_synchronous_dot(const struct op *o);
/* True if all dots are wgmma, and no operand depends on the result of another dot of the same iteration. */
bool dots_are_independent(struct ir_context *ctx, const struct block *body);
/* True if o is a dot, or contains one in a branch. */
bool has_dot(const struct op *o);
/* The dot that takes its A operand from registers, as elementwise and shape operations compute it from the result of
 * `o`, a load's consumer or a load of a buffer; or NULL. */
struct op *dot_with_register_a(struct op *o);
/* dot_with_register_a of a load of a buffer, which NVPTX code generation then emits with the dot; NULL for other
 * operations. */
struct op *dot_of_local_load(struct op *o);
/* Sets p->outstanding and p->register_a. Moves the operations that compute an operand in registers to its dot. */
void find_outstanding_dots(struct plan *p);
/* Sets p->deferred. */
void find_deferred_dot(struct plan *p);
/* Fills p->overlapped, the overlapped dots. */
void find_overlapped_dots(struct plan *p);
/* Decides on ping-pong scheduling. */
void decide_pingpong(struct plan *p);
/* The first operation of the body that uses the result of a dot, or contains a use; or the body's terminator. */
const struct op *first_use(const struct value *sum, const struct block *body);
/* The iter arg that holds the accumulator of the dot with deferred wait. */
struct value *deferred_accumulator(const struct plan *p);
bool is_overlapped(const struct plan *p, const struct op *dot);
/* True if the dot is outstanding when the next iteration begins. */
bool is_outstanding(const struct plan *p, const struct op *dot);
/* True if an outstanding dot reads the buffer of the load, so that it is released one iteration later. */
bool is_read_late(const struct plan *p, const struct op *load);

/* --- shared_budget.c ----------------------------------------------------------------------------------------- */

/* Bytes of `stages` buffers for each load. */
i64 multibuffer_bytes(const struct plan *p, int stages);
/* The largest number of stages, at most `stages`, that fits together with the buffers that the loop reads and with the
 * scratch memory that it and the operations before it use for layout conversions; at least 1. */
int stages_that_fit(struct plan *p, int stages);
/* True if one buffer less for each load lets more blocks be resident on a multiprocessor, and they have few warps. */
bool is_short_of_memory(const struct plan *p);
/* True if with one buffer for each load enough blocks are resident for some to compute while others wait for copies,
 * and grids of GRID_WAVES and GRID_ROWS have enough programs for them. */
bool one_buffer_lets_blocks_overlap(const struct plan *p);
/* True if the multi-buffers fit together with the other shared memory of `around`, a loop around p's. */
bool multibuffers_fit(const struct plan *p, const struct op *around);
/* True if shared memory or registers allow one block per multiprocessor only. */
bool one_block_per_multiprocessor(const struct plan *p);

/* --- copies across loops ------------------------------------------------------------------------------------- */

/* Fills n with the loops from those in the IR block `top` down to p's loop. True if their bounds and the copies'
 * addresses can be computed separately, by another warp or at another time. Of each load, only the first
 * `load_operands` operands must be computable (1: not the mask). */
bool find_loop_nest(struct plan *p, struct loop_nest *n, const struct block *top, u32 load_operands);
/* Sets p->producer, if a producer warp is possible, and is either requested or faster. */
void decide_producer(struct plan *p);
/* Gives p's loop and the loop chained to it, q (NULL: none), one producer, if the last dot of both has a deferred wait
 * and reads its buffers alone. */
void decide_joint_producer(struct plan *p, struct plan *q);
/* Sets p->flattened, so that copies run ahead across the outer loop's iterations, if that loop has the flatten
 * attribute and it is possible. */
void decide_flattening(struct plan *p);
/* The innermost loop after this one, if only pure operations stand between them; or NULL. */
struct op *next_loop(const struct op *loop);
/* q: the plan of the next loop after p's. Chains the loops if q's iterations continue p's, with the same loads. Called
 * before either loop is rewritten. */
void chain_loops(struct plan *p, struct plan *q);

/* --- hoist_sink.c, operand_buffers.c, direct_to_shared.c ----------------------------------------------------- */

/* Moves the loads that precede the loop, and the operations that wait for them, to after the first copies (the
 * operations from `last` to the loop). */
void sink_past_first_copies(struct plan *p, struct op *last);
/* Sinks operations past loops with dots, in the block and in nested blocks, if only later operations use them: their
 * results hold no registers during the loop, and are computed while the last dots run. */
void sink_past_dot_loops(struct block *b);
/* Stores large operands of mma.sync in shared memory, instead of converting them well before their dots. */
void store_operands(struct pass_state *s);
/* Replaces loads that no loop issues ahead and that are only stored for a dot with cp.async, which takes no
 * registers. */
void copy_directly(struct pass_state *s);

#endif
