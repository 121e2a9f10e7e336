/* The schedule of a pipelined loop, and between the parts of the pipeliner that make it and make code of it:
 *
 *   plan.c        how each loop is pipelined, by these:
 *   loads.c       what can be issued ahead
 *   async_dots.c        what stays in flight, and turns with the tensor cores
 *   shared_budget.c        shared memory for the ring
 *   loop_nest.c        whether the copies can go on by themselves through the loops around:
 *   warp_specialize.c  in a warp of their own
 *   flatten_loops.c     in the loop's own threads, from tile to tile
 *   persistent.c     or from program to program
 *   cta_pair.c        two blocks of a cluster share boxes
 *   chain_loops.c        the next loop goes on with the buffers
 *
 *   schedule.c    the order of the body's steps, and the synchronisation that follows from it
 *   print_schedule.c       the schedule as text
 *   expand.c      code in front of the loop, in it, and behind it
 *   outstanding_dots.c     tokens of dots in flight, and the waits for them
 *   hoist_sink.c      what stands in front of the loop and better stands elsewhere
 *   direct_to_shared.c      copies of what no loop loads ahead */
#ifndef TLC_GPU_PIPELINE_SCHEDULE_H
#define TLC_GPU_PIPELINE_SCHEDULE_H

#include "gpu/tma/tma_tile.h"

/* The loops through which the copies of a pipelined one go on by themselves: from tile to tile, or in a warp of their
 * own. */
struct loop_nest {
	VEC(struct op *) path;   /* outermost first, the pipelined one last */
	const struct block *top; /* what is defined outside of it is there */
	struct map needed;       /* operations in it, and in the loops, that bounds and addresses are computed by */
	/* from tile to tile: the loop over these, and values computed in it that the pipelined loop uses */
	struct op *outer;
	value_vec tile;
};

/* A value that the loop carries for the pipeliner: before the first iteration, and after each. */
struct loop_carried {
	struct value *init, *next;
};

/* A buffer, and how often the ring has been gone through before, modulo 2. */
struct pipeline_state {
	struct value *slot, *phase;
};

/* Of a loop's body: see schedule.c. */
enum schedule_step_kind {
	STEP_OP,         /* an operation of the body */
	STEP_COPY,       /* issues the copies of an iteration */
	STEP_AWAIT,      /* the iteration's copies are there; without mbarriers each thread's own */
	STEP_TURN,       /* computes which buffers come next */
	STEP_FINISH,     /* the dots of the iteration before are done */
	STEP_RESULT,     /* the result of a dot of this iteration is there */
	STEP_RELEASE,    /* this warp has read the iteration's buffers */
	STEP_BARRIER,    /* all threads meet */
	STEP_FENCE,      /* orders stores before reads by the tensor cores */
	STEP_HOLD,       /* ptxas moves no load in front of it */
	STEP_PINGPONG_WAIT, /* the other warpgroup has left the tensor cores */
	STEP_PINGPONG_ARRIVE,  /* it may have them */
};

/* Which warps run a step. */
enum partition {
	ALL_WARPS,
	PRODUCER, /* the warp beside them that asks for boxes */
};

struct schedule_step {
	enum schedule_step_kind kind;
	enum partition partition;
	int stage;
	struct op *op; /* STEP_OP */
	struct op *dot; /* STEP_RESULT */
	u32 part;      /* STEP_AWAIT, STEP_RELEASE */
};

/* Loads whose buffers are filled and released together. Where a producer asks for boxes, loads that are read until the
 * next iteration has begun are a part of their own, and the buffers of the others come back sooner. */
struct buffer_part {
	VEC(u32) loads;
	bool lags;       /* an iteration's buffers are read until the next one has begun */
	u32 begin, end;  /* where in the steps they are read */
	int barriers;    /* the number of their first mbarrier */
};

struct schedule;

/* The stream of copies of a pipelined loop: who issues them, and where they go on. */
struct stream {
	/* In front of the loop: makes the ring, issues what comes first, and lets the loop carry what tells which
	 * copies and buffers come next. */
	void (*begin)(struct schedule *p);
	/* The next copies, in the loop; NULL: none are issued there. */
	void (*copy)(struct schedule *p, struct builder *b);
	/* Behind the loop. */
	void (*end)(struct schedule *p, struct builder *b);
};

struct schedule {
	struct pass_state *s;
	struct ir_context *ctx;
	struct arena scratch;
	struct op *loop;

	/* what is issued ahead */
	VEC(struct op *) loads;
	struct map in_slice;     /* op or argument that addresses and masks are computed by → itself */
	VEC(struct op *) slice;  /* these in program order */
	VEC(u32) args;           /* carried values among them: their index among the iter args */
	bool few_buffers;        /* there is no room for what works on dots' results */
	struct map few_loads;    /* of a loop before: they may be in the slice → the yield */

	/* how: */
	int stages, ahead;       /* buffers of the ring; iterations between issue and use */
	bool async, ring;        /* by cp.async; into a ring of buffers, asynchronously or from registers */
	bool few;                /* a few registers beside what is copied; neither async nor ring */
	const struct op *behind; /* these are loaded behind this operation of the body, or NULL: first */
	bool tma;                /* async by boxes */
	VEC(struct tma_tile) boxes;   /* of each load then */
	u32 rows;                /* the last so many are rows of one dimension, which come as they lie */
	bool fetches;            /* does one of the dots fetch an operand into registers? */
	VEC(struct op *) dots;   /* that stay in flight into the next iteration; in program order */
	struct op *late;         /* a dot waited for together with the first one of the next iteration, or NULL */
	bool turns;              /* the warpgroups take turns with the tensor cores then */
	/* dots that run while the body goes on, with other dots among it, until something needs their results */
	VEC(struct op *) beside;

	/* where the copies go on: */
	/* of the index from which, and up to which loads are issued: the loop's, or those of it and the next one */
	struct value *start, *end;
	/* the next loop goes on with the buffers, and has its first loads issued here; and the loop that does so for
	 * this one; or NULL */
	const struct schedule *follower, *before;
	bool second;             /* behind an attention's loop, whose producer asks for its boxes too, or none does */
	struct loop_nest *flat;       /* from one iteration of the loop around it to the next; or NULL */
	struct loop_nest *producer;   /* in a warp that asks for the boxes; or NULL */
	struct op *asks;         /* that warp's code */
	struct value *pair;      /* do two blocks share boxes? NULL: no */
	struct value **shared;   /* of each load, whether the other one asks for the same box; NULL: it never does */
	const struct stream *stream;
	const char *no_producer; /* why not, if it would be faster */

	/* the order: */
	VEC(struct schedule_step) steps;
	VEC(struct buffer_part) parts;
	bool lags;               /* does one of them? */

	/* the code: */
	value_vec buffers;       /* of each load */
	struct value *barriers;  /* of each part's buffers: full; empty */
	struct map firsts;       /* tile → its first element */
	/* what the loop carries behind its own values, which are `first` in number: which copies come next, the turn,
	 * the tokens of copies, the oldest first, or the buffer that was read before; what has been loaded into
	 * registers; the tokens of dots that stay in flight */
	VEC(struct loop_carried) carried;
	u32 first, turn, copies, registers, flights;
	struct pipeline_state now, next, fill; /* of the step being built */
	value_vec loaded;            /* by registers */
	struct value *issued;        /* the token of the last copies */
};

/* --- loads.c ------------------------------------------------------------------------------------------------- */

/* Finds p->loads and their slice. plain: of a loop that nobody asked to pipeline, without dots; asked: of one that
 * somebody did; far: by more than one iteration. */
void find_loads(struct schedule *p, bool asked, bool plain, bool far);
/* Takes the loads back, for find_loads to find those alone that dots' results are not worked on with. False: no others
 * have been found. */
bool leave_out_results(struct schedule *p);
/* Can the copy engine bring the tile as it lies in memory: numbers in a row, none of which is masked? */
bool is_row_of_numbers(const struct schedule *p, const struct op *load);
/* Adds those that come with the boxes p->loads: rows of numbers. */
void find_rows(struct schedule *p);
void leave_out_rows(struct schedule *p);
/* Adds a load and what its address and mask depend on; false when that is more than index arithmetic. */
bool add_load(struct schedule *p, struct op *load);
/* The slice of the loads that have been added, in program order. */
void collect_slice(struct schedule *p);
/* Lets loads that become a dot's operand by some work, and all if `all`, come by cp.async too. */
void keep_distributed(struct schedule *p, bool all);
/* Is it a dot's operand that cp.async cannot bring? */
bool needs_registers(const struct schedule *p, const struct op *load);
/* May something in the block write what is loaded from addresses of this base, or tell that somebody else has? */
bool may_conflict(struct pass_state *s, const struct block *b, const struct value *base);
/* Does an iteration reduce a tile that the loop carries, worked on element by element? */
bool is_recurrence(struct ir_context *ctx, const struct block *body);
/* What takes the load to a dot, if nothing else uses it: a conversion or a store into an operand's buffer. */
struct op *load_consumer(const struct op *load);
/* Does a change of layout use what load_consumer gives, through shared memory? It reads the load's buffer instead. */
bool is_read_again(const struct use *u);
/* A layout of the buffer that both the copy and the dot can use without conflicts. */
const struct layout *multibuffer_layout(const struct schedule *p, const struct op *load);
/* Can cp.async bring what is loaded to where load_consumer takes it? */
bool can_copy_async(const struct schedule *p, const struct op *load);
/* Of the tile that a load fills. */
i64 load_bytes(const struct op *load);

/* --- async_dots.c --------------------------------------------------------------------------------------------------
 * */

struct op *first_dot(const struct block *body);
struct op *last_dot(const struct block *body);
/* Are all dots products of warpgroups, none of which takes what another one of the iteration has given? */
bool dots_are_apart(struct ir_context *ctx, const struct block *body);
/* Is it a dot, or one in a branch? */
bool has_dot(const struct op *o);
/* The dot that fetches into registers what a load's consumer, or a load of a buffer, brings; or NULL. */
struct op *dot_fetching(struct op *o);
/* The dot with which a load of a buffer is lowered, since it fetches what that brings; NULL: o is something else. */
struct op *dot_that_loads(struct op *o);
/* p->dots and p->fetches, p->late, p->beside, p->turns. What fetches an operand is moved to its dot. */
void find_dots(struct schedule *p);
void find_late(struct schedule *p);
void find_beside(struct schedule *p);
void find_turns(struct schedule *p);
/* The first operation of the body that needs the result of a dot there, or contains one that does; or its end. */
const struct op *first_need(const struct value *sum, const struct block *body);
/* The carried value that the late dot adds to. */
struct value *late_sum(const struct schedule *p);
bool runs_beside(const struct schedule *p, const struct op *dot);
/* Does the dot run on into the next iteration? */
bool stays_in_flight(const struct schedule *p, const struct op *dot);

/* --- shared_budget.c
 * -------------------------------------------------------------------------------------------------- */

/* Of so many buffers for each load. */
i64 multibuffer_bytes(const struct schedule *p, int stages);
/* As many stages as fit beside what the loop reads and what it and the operations before it use for changes of
 * layout, or 1. */
int stages_that_fit(struct schedule *p, int stages);
/* Does the ring fit beside what else a loop around p's needs? */
bool pipeline_fits(const struct schedule *p, const struct op *around);
/* Is there no room for another block on the multiprocessor? */
bool pipeline_is_alone(const struct schedule *p);

/* --- where the copies go on ---------------------------------------------------------------------------------- */

/* The nest from the block `top` down to p's loop: can bounds and addresses be computed apart from the rest? Those of a
 * load are its first so many operands. */
bool nest_find(struct schedule *p, struct loop_nest *n, const struct block *top, u32 load_operands);
/* Lets a warp of its own ask for the boxes, if that is possible and faster. */
void pipeline_find_producer(struct schedule *p);
/* The same for the first loop of an attention, and for q's that goes on with its buffers (NULL: none does). */
void pipeline_share_producer(struct schedule *p, struct schedule *q);
/* If the loop around p's asks for it and it is possible, lets the copies go on from one of its iterations to the
 * next. */
void pipeline_flatten(struct schedule *p);
/* The loop behind this one, if nothing is done between them. */
struct op *next_loop(const struct op *loop);
/* Lets q's loop, the next one behind p's, go on with p's buffers, if it takes the next steps with the same loads.
 * Before either is rewritten. */
void pipeline_join(struct schedule *p, struct schedule *q);

/* --- cta_pair.c -------------------------------------------------------------------------------------------------- */

/* p->pair, of a loop whose producer is about to be built, in front of `at`: may two blocks share boxes, and is that
 * faster? */
void find_pair(struct schedule *p, struct op *at);
/* p->shared, in the producer in front of its copy of p's loop: `map` says what stands for values there. */
void compare_tensor_maps(struct schedule *p, struct builder *b, struct map *map);
/* At the kernel's end: the other block of the pair asks for nothing more. */
void end_pair(struct schedule *p);

/* --- schedule.c, print_schedule.c
 * ------------------------------------------------------------------------------------- */

/* Orders the steps of the loop's body, as *p says. */
void schedule_steps(struct schedule *p);
/* The schedule of a loop in a file of this name, as a table. */
void print_schedule(struct schedule *p, const char *file, struct strbuf *out);

/* --- hoist_sink.c, direct_to_shared.c
 * -------------------------------------------------------------------------------------- */

/* Moves what waits for loads behind the first copies, which stand between `last` and the loop. */
void pipeline_issue_first(struct schedule *p, struct op *last);
/* Sinks operations past loops with dots, in the block and in nested blocks, if only later operations use them: their
 * results hold no registers during the loop, and are computed while the last dots run. */
void pipeline_defer(struct block *b);
/* Copies loads that are left without passing through registers, if only a dot reads them. */
void copy_directly(struct pass_state *s);

/* --- expand.c ------------------------------------------------------------------------------------------------ */

/* Makes code of the schedule. */
void pipeline_rewrite(struct schedule *p);

extern const struct stream stream_ahead, stream_flat, stream_producer;

/* index + n·step. */
struct value *step_index(struct builder *b, const struct op *loop, struct value *index, int n);
/* Is that below `end`? Computed where b is. */
struct value *is_below(struct builder *b, const struct op *loop, struct value *end, struct value *index, int n);
/* Lets the loop carry one more value; its number among those of the pipeliner. */
u32 carry(struct schedule *p, struct value *init);
/* And the tokens of as many groups of copies as are issued ahead. */
void carry_copies(struct schedule *p, struct value *const *tokens);
/* `tokens` of copies after one more group. */
void add_token(struct schedule *p, struct value **tokens);
/* The next buffer; without a phase if that is NULL. */
void carry_state(struct schedule *p, struct pipeline_state init);
/* Carried value i in the loop, and behind it. */
struct value *carried_now(const struct schedule *p, u32 i);
struct value *carried_last(const struct schedule *p, u32 i);
/* So many iterations later. */
struct pipeline_state pipeline_state_at(struct schedule *p, struct builder *b, struct pipeline_state at, int by);
/* The ring of buffers for each load, and their mbarriers, in front of `at`; or those of the loop before. */
void make_buffers(struct schedule *p, struct op *at);
void take_buffers(struct schedule *p);
/* Issues the copies for the iteration whose values `map` holds, which gets the rest of the slice. */
void pipeline_copy(struct schedule *p, struct builder *b, struct map *map, struct value *slot, struct value *inside);
/* Asks for all boxes for the iteration of `loop`, p's or a copy of it, whose values `map` holds. `to.phase` NULL:
 * nobody has read that buffer yet. */
void pipeline_ask(struct schedule *p, struct builder *b, struct op *loop, const struct map *map,
		  struct pipeline_state to, struct value *inside);
/* All copies are there for everybody. */
void wait_copies(struct builder *b);
/* This warp has read the buffer. If the last dot is late, every iteration releases that of the one before, the first
 * one of them a buffer that nobody has used yet: so each fill in the loop waits for as many releases of its buffer as
 * there have been fills. */
void release_buffer(struct schedule *p, struct builder *b, u32 part, struct value *slot);
/* No thread needs the mbarriers any more. */
void end_barriers(struct schedule *p, struct builder *b);
/* Nobody waits for a turn any more. */
void end_turns(struct schedule *p, struct builder *b);
/* Does anything behind o need shared memory, or what comes in the next iteration of a loop around it? */
bool needs_memory_behind(const struct schedule *p, const struct op *o);

/* --- outstanding_dots.c
 * ----------------------------------------------------------------------------------------------- */

/* Those that stay in flight, or run beside others, and the first one until the late one is finished, give tokens. */
void let_dots_run_on(struct schedule *p);
/* The loop carries the tokens of those that stay in flight: p->dots, with the late one from here on. */
void carry_flights(struct schedule *p);
/* And at its end those of this iteration's. */
void next_flights(struct schedule *p);
/* The result of the step's dot is there. */
void await_result(struct schedule *p, struct builder *b, const struct schedule_step *s);
/* The dots of the iteration before are done. */
void finish_earlier_dots(struct schedule *p, struct builder *b);
/* Behind the loop: the dots in flight are done. */
void wait_dots(struct schedule *p, struct builder *b);
/* And their results are there. */
void finish_dots(struct schedule *p, struct builder *b);

#endif
