/* The proof that buffers in shared memory are synchronised, of placed IR as a whole:
 *
 *   model_checker.c        a walk over all states that the kernel's buffers can be in, along its control flow
 *   model_checker_ops.c    what an operation asks of that state, and makes of it
 *   model_checker_prefetch.c  how many iterations are left where copies are issued ahead
 *
 * A state holds what is known of each buffer, and the numbers of the buffers that come next. */
#ifndef TLC_GPU_SMEM_MODEL_CHECKER_H
#define TLC_GPU_SMEM_MODEL_CHECKER_H

#include "gpu/smem/shared_access.h"

enum content {
	EMPTY,
	COPYING, /* by cp.async */
	COPIED,  /* each thread has what it copied */
	ASKED,   /* by TMA, which counts at an mbarrier */
	STORED,  /* by threads that have not met since */
	RUINED,  /* the same: what is there is of no use */
	READY,   /* for everybody */
};

/* A buffer, an mbarrier, or the scratch memory of an operation. */
struct slot {
	u64 released[2]; /* the mbarriers at which all have arrived since they have read it: a bit for each */
	u16 full;        /* ASKED: the slot of the mbarrier */
	u16 gate;        /* the mbarrier waited for before it was asked for, in a producer */
	u8 content;
	u8 age;    /* COPYING: groups ended since, its own too; ASKED: fills of its ring asked for since, its own too */
	u8 dot;    /* groups of dots begun since one reads it that is on its way, its own too; 0: none does */
	bool read; /* other threads may still be reading it, or waiting here */
	bool unfenced; /* written by threads, and no fence since */
	/* of an mbarrier: */
	u8 parity;    /* of the phase that has not been waited for */
	u8 arrivals;  /* of all warps, not waited for: 0, 1, or 2 for several */
	u8 count;     /* of a phase */
	bool dropped; /* nobody uses it any more */
	bool unborn;  /* the cluster's blocks have not met since it began */
	bool visited; /* nor since they may have arrived at each other's */
	u8 unused;
};
_Static_assert(sizeof(struct slot) == 32, "no padding: states compare as bytes");

/* A state is the slots, the values of scalars, and for each loop the iterations left. */
enum {
	GATE,
	FULL,
	BYTES,              /* of the thread that asks */
	TURNS,              /* that each of two warpgroups has been given and has not waited for */
	VALUES = TURNS + 2, /* then of scalars, by their marks */
};
enum { UNKNOWN = INT32_MIN, NOT_CHOSEN = UINT8_MAX, MAX_MBARRIERS = 128 };

/* An allocation, or an operation with scratch memory: `count` slots from `first` on. Its number + 1 is the mark of the
 * operation. */
struct area {
	const struct op *op;
	struct op *last;         /* the operation of its block that contains the last use of an allocation */
	u32 first, count;
	i32 bytes;               /* of each slot */
	bool apart;              /* each of two warpgroups has a half of its own: see find_halves */
	VEC(u32) over;           /* areas that share bytes with it */
	const struct area *next; /* whose last use is the same operation's */
};

/* The condition of an ask: more than n iterations are left of `loop` and of `next`, which goes on where that ends, or
 * NULL. */
struct ahead {
	const struct op *loop, *next;
	i64 n;
	bool known;
};

/* Of a loop: the values inside have these numbers. */
struct loop_note {
	u32 first, end, args; /* `args` of the first are the block's arguments */
	u32 left;             /* number among the loops whose iterations are counted, + 1; 0: it may end any time */
};

/* What a producer fills a slot with: the mbarrier that says so, the one that it waits for before, and when it does so
 * first. */
struct refill {
	u16 full, gate; /* + 1; 0: no producer */
	u8 order;
};

typedef VEC(struct slot *) states;
struct keyed_state {
	const struct slot *key;
	struct slot *state;
	struct keyed_state *next;
};
/* States that differ in more than what can be joined. */
struct state_set {
	struct map heads; /* hash of a key → the first of a chain */
	VEC(struct keyed_state *) at;
	states fresh;
};

struct model_checker {
	struct pass_state *s;
	const struct map *groups; /* operation that has memory → its group */
	const struct map *halves; /* see find_halves */
	const struct op *group;   /* that is looked at */
	struct arena scratch;
	struct map notes; /* loop → struct loop_note */
	struct map lasts; /* operation → the areas of which it is the last use, in the block of the allocation */
	struct map asks;  /* tlc.elect_one → struct ahead */
	VEC(struct area) areas;
	u32 *area_of; /* of each slot */
	u32 nslots, nmbarriers, nvalues, nleft;
	size_t size;      /* of a state */
	struct slot *key; /* as large */
	i64 most;         /* iterations left that are counted; as many stand for more, too */
	struct refill *refills;
	bool producing; /* the walk is in a producer */
	u64 work;
	const struct op *bad;
	const char *what;
};

static inline i32 *values_of(const struct model_checker *w, struct slot *at)
{
	return (i32 *)(at + w->nslots);
}
static inline u8 *left_of(const struct model_checker *w, struct slot *at)
{
	return (u8 *)(values_of(w, at) + w->nvalues);
}

/* The allocation that v is a part of, or NULL. */
const struct op *checker_allocation(const struct value *v);
/* The scalar, if the walk knows it, or UNKNOWN. */
i32 scalar_in(const struct model_checker *w, struct slot *at, const struct value *v);
/* Does o, in this state, what it does to buffers; NULL, or why it must not be there. */
const char *checker_step(struct model_checker *w, struct slot *at, const struct op *o);
/* What is there is of no more use. */
void checker_drop(struct slot *at, const struct area *a);
/* Two states in which the same may happen become the same. */
void checker_normalize(const struct model_checker *w, struct slot *at);
/* What is left to do for others, or is on its way: of two states that differ in that alone, the one in which all of it
 * is stands for both. `key`: a state without. */
void checker_make_key(const struct model_checker *w, struct slot *key);
bool checker_join(const struct model_checker *w, struct slot *to, struct slot *from); /* did `to` change? */
/* A producer has filled its buffers for the first time; or why it must not. */
const char *checker_fill_first(const struct model_checker *w, struct slot *at);
/* What the condition of the ask o says. */
struct ahead checker_ahead(const struct op *o);
/* Do the loops around the first ask of a producer, and around the first wait behind it, run equally often? */
bool checker_same_loops(const struct op *producer);

/* Behind pass_barriers, where buffers are filled asynchronously or in turn: is each read behind its copies, and each
 * fill behind the reads? The first operation for which that is not proved. */
struct unproved checker_prove(struct pass_state *s);
/* The same as a pass: s->failed, without a message, and s->cuda.unproved where it is not proved. */
void pass_prove_buffers(struct pass_state *s);

#endif
