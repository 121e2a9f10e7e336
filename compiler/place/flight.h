/* Dots by warpgroups of a loop that run on while others follow, and the waits for them. */
#ifndef TLC_PLACE_FLIGHT_H
#define TLC_PLACE_FLIGHT_H

#include "ir/ir.h"

enum flight_end {
	FLIGHT_CHAIN, /* its sum is only added to by the same dot of the next iteration: waited for after that was issued */
	FLIGHT_USE,   /* waited for in the next iteration, where its result is used first */
	FLIGHT_YIELD, /* waited for at the end of its own iteration, since the value before it is still needed */
};

struct flight {
	struct op *dot, *use; /* use: of FLIGHT_USE */
	u32 index;            /* of the loop's carried value that it yields */
	enum flight_end end;
};

struct flights {
	VEC(struct flight) at;
	u32 ndots;            /* of the loop's body, all of them */
};

/* Finds the dots of the loop's body whose result is only yielded and whose operands in shared memory stay until the next
 * iteration's barrier: `stays` tells. */
void flights_find(struct flights *f, struct arena *a, struct op *loop, bool (*stays)(void *arg, const struct value *memory), void *arg);
/* Makes them asynchronous and builds the waits in the body. Returns the last wait for dots of the iteration before, behind
 * which (and a barrier) what they read may be overwritten; NULL if there is none. */
struct op *flights_wait(struct ir_context *ctx, struct op *loop, struct flights *f);
/* The wait behind the loop. */
void flights_finish(struct builder *b, struct op *loop, const struct flights *f);

#endif
