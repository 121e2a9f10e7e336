/* The schedule of a pipelined loop: the steps of its body as rows of kind, operation, stage, partition and buffers, in
 * their order. schedule.c makes it from the plan, print_schedule.c prints it, and expand.c generates code from it. */
#ifndef TLC_GPU_PIPELINE_SCHEDULE_H
#define TLC_GPU_PIPELINE_SCHEDULE_H

#include "gpu/pipeline/plan.h"

enum schedule_step_kind {
	STEP_OP,                 /* an operation of the body */
	STEP_ISSUE_COPIES,       /* issues the copies of an iteration */
	STEP_WAIT_COPIES,        /* waits for an iteration's copies; without mbarriers, each thread for its own */
	STEP_ADVANCE,            /* advances the pipeline state by one iteration */
	STEP_WAIT_PREVIOUS_DOTS, /* waits for the dots of the preceding iteration */
	STEP_WAIT_DOT,           /* waits for the result of an overlapped dot of this iteration */
	STEP_RELEASE,            /* this warp arrives at the "empty" mbarrier of the iteration's buffers */
	STEP_BARRIER,            /* barrier of all threads of the block */
	STEP_FENCE,              /* proxy fence: orders stores before reads by the tensor cores */
	STEP_WARP_BARRIER,       /* a barrier of each warp: ptxas moves no load from after it to before it */
	STEP_PINGPONG_WAIT,      /* waits until the other warpgroup has released the tensor cores */
	STEP_PINGPONG_ARRIVE,    /* releases the tensor cores to the other warpgroup */
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
	struct op *op;  /* STEP_OP: the operation; STEP_WAIT_DOT: the dot */
	u32 part;       /* STEP_WAIT_COPIES, STEP_RELEASE: index in schedule.parts */
};

/* Loads with common mbarriers: their buffers are filled and released together. With a producer, the loads with buffers
 * released one iteration later form a second part, so that the buffers of the other loads are released sooner. */
struct buffer_part {
	VEC(u32) loads;     /* indices in plan.loads */
	bool released_late; /* released one iteration later, after the wait for the outstanding dots that read them */
	u32 begin, end;     /* the range of steps that reads the buffers */
	int barriers;       /* the index of the part's first mbarrier */
};

struct schedule {
	struct plan *plan;
	VEC(struct schedule_step) steps;
	VEC(struct buffer_part) parts;
	bool released_late; /* one of the parts is released one iteration later */
};

/* Makes p->schedule from the plan. */
void schedule_loop(struct plan *p);
/* Prints the schedule as a table. `file`: the name of the source. */
void print_schedule(struct plan *p, const char *file, struct strbuf *out);

#endif
