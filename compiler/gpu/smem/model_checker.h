/* Shared-memory model checker: proves that buffers in shared memory are synchronised, for the laid-out GPU IR of a
 * whole kernel.
 *
 *   model_checker.c           exploration of all states of the kernel's buffers, along its control flow
 *   model_checker_ops.c       preconditions and effects of each operation on a state
 *   model_checker_prefetch.c  the number of iterations left where copies are issued ahead
 *
 * A state holds the known properties of each buffer, and the values of the scalars that select buffers and phases. */
#ifndef TLC_GPU_SMEM_MODEL_CHECKER_H
#define TLC_GPU_SMEM_MODEL_CHECKER_H

#include "gpu/smem/shared_access.h"

enum content {
	EMPTY,
	COPYING,     /* by cp.async, not waited for */
	COPIED,      /* each thread has waited for its own copies, no barrier since */
	FILLING,     /* by TMA, which signals an mbarrier */
	STORED,      /* by threads, no barrier since */
	OVERWRITTEN, /* like STORED, but the data is not read later */
	READY,       /* visible to all threads */
};

/* A buffer, an mbarrier, or the scratch memory of an operation. */
struct slot {
	u64 released[2]; /* mbarriers at which all warps have arrived since they read the slot: one bit each */
	u16 full;        /* FILLING: slot of the mbarrier that the copies signal */
	/* FILLING, in a producer: slot of the mbarrier that the issuing thread waited for before the copies */
	u16 gate;
	u8 content;
	/* COPYING: groups committed since, its own included; FILLING: fills of the same multi-buffer issued since, its
	 * own included */
	u8 age;
	u8 dot;    /* groups of dots issued since a dot in flight that reads it, its own included; 0: none reads it */
	bool read; /* other threads may still be reading the buffer, or waiting at the mbarrier */
	bool unfenced; /* written by threads, no async-proxy fence since */
	/* the rest is for mbarriers: */
	u8 parity;    /* of the phase that has not been waited for */
	u8 arrivals;  /* of all warps, not waited for: 0, 1, or 2 for several */
	u8 count;     /* arrivals that complete a phase */
	bool dropped; /* outside the live range of its allocation */
	bool unborn;  /* no cluster barrier since its initialisation */
	bool visited; /* a warp of the other block may have arrived at the mbarrier, no cluster barrier since */
	u8 unused;
};
_Static_assert(sizeof(struct slot) == 32, "no padding: states compare as bytes");

/* A state consists of the slots, the values of scalars, and for each counted loop the iterations left. The first values
 * describe the thread that issues TMA copies, and ping-pong scheduling. GATE and FULL are slots of mbarriers, or -1. */
enum {
	GATE,
	FULL,
	BYTES,              /* expected at FULL and not copied yet */
	PINGPONG,              /* ping-pong arrivals for each of two warpgroups, minus its waits */
	VALUES = PINGPONG + 2, /* index of the first tracked scalar; the mark of a scalar is its index */
};
enum { UNKNOWN = INT32_MIN, NOT_CHOSEN = UINT8_MAX, MAX_MBARRIERS = 128 };

/* An allocation, or an operation with scratch memory, with `count` slots from `first` on. The mark of the operation is
 * the area's number + 1. */
struct area {
	const struct op *op;
	struct op *last;         /* operation of the allocation's block that is, or contains, the last use */
	u32 first, count;
	i32 bytes;               /* of each slot */
	bool apart;              /* each of two warpgroups uses a separate half: see find_halves */
	VEC(u32) over;           /* areas that overlap it */
	const struct area *next; /* another area with the same `last` */
};

/* The condition under which TMA copies are issued: more than n iterations are left of `loop` and `next` together.
 * `next` is the loop that continues where `loop` ends, or NULL. */
struct issue_condition {
	const struct op *loop, *next;
	i64 n;
	bool known;
};

/* The values inside a loop, or another operation with blocks, have the numbers first … end - 1. */
struct loop_note {
	u32 first, end, args; /* the first `args` of them are block arguments */
	/* number + 1 of a loop with counted iterations; 0: the loop may end after any iteration */
	u32 left;
};

/* A producer's fills of a slot: the mbarrier that the copies signal, the mbarrier that the producer waits for before,
 * and the number of fills of other slots issued before the first one. */
struct refill {
	u16 full, gate; /* slot + 1; 0: no producer */
	u8 order;
};

typedef VEC(struct slot *) states;
struct keyed_state {
	const struct slot *key;
	struct slot *state;
	struct keyed_state *next;
};
/* States with different keys; states of equal key are joined. */
struct state_set {
	struct map heads; /* hash of a key → first state of its chain */
	VEC(struct keyed_state *) at;
	states fresh;
};

struct model_checker {
	struct pass_state *s;
	const struct map *groups; /* operation with memory → its group */
	const struct map *halves; /* see find_halves */
	const struct op *group;   /* the one being checked */
	struct arena scratch;
	struct map notes; /* loop → struct loop_note */
	struct map lasts; /* operation → list of the areas with this `last` */
	struct map conditions;  /* tlc.elect_one → struct issue_condition */
	VEC(struct area) areas;
	u32 *area_of; /* of each slot */
	u32 nslots, nmbarriers, nvalues, nleft;
	size_t size;      /* of a state, in bytes */
	struct slot *key; /* scratch key, as large */
	i64 most;         /* largest count of iterations left, which stands for all larger ones, too */
	struct refill *refills;
	bool producing; /* inside a producer */
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

/* The allocation that v is, or is a part of; or NULL. */
const struct op *checker_allocation(const struct value *v);
/* The value of the scalar in the state, or UNKNOWN. */
i32 scalar_in(const struct model_checker *w, struct slot *at, const struct value *v);
/* Applies the effects of o on buffers to the state. Returns NULL, or the reason why o is not allowed in the state. */
const char *checker_step(struct model_checker *w, struct slot *at, const struct op *o);
/* Ends the live range of the slots. */
void checker_drop(struct slot *at, const struct area *a);
/* Clears fields without effect in this state, so that equivalent states compare as equal. */
void checker_normalize(const struct model_checker *w, struct slot *at);
/* Clears the accesses that are pending in other threads or in flight. Among states that differ only in these, the state
 * with all of them stands for the others. */
void checker_make_key(const struct model_checker *w, struct slot *key);
bool checker_join(const struct model_checker *w, struct slot *to, struct slot *from); /* true if `to` has changed */
/* Applies a producer's first fill of each buffer. Returns NULL, or the reason why it is not allowed. */
const char *checker_fill_first(const struct model_checker *w, struct slot *at);
/* The condition of o, a tlc.elect_one that issues TMA copies. */
struct issue_condition checker_condition(const struct op *o);
/* True if the loops around a producer's first copies, and the loops around the first wait for these copies, have equal
 * trip counts. */
bool checker_same_loops(const struct op *producer);

/* Proves, after pass_barriers, that each read of a buffer comes after its copies, and each fill after the reads of the
 * previous data. Applies to buffers that are filled asynchronously, or multi-buffered. Returns the first operation
 * without a proof. */
struct unproved checker_prove(struct pass_state *s);
/* Runs checker_prove as a pass: without a proof, sets s->failed and s->cuda.unproved. Prints a message only on request
 * (`buffers` in support/compile_checks.h). */
void pass_prove_buffers(struct pass_state *s);

#endif
