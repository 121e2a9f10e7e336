/* The guard of the functions of tl.h that can fail.
 *
 * The guard is a recovery point (support/recover.h). When memory runs out, an invariant is broken or LLVM reports a
 * fatal error, the call ends and the process continues. Memory that the call had allocated is freed. If an invariant is
 * broken during a change of data that threads share, the context is marked: all later calls on it fail, and it can only
 * be destroyed. */
#ifndef TL_API_API_GUARD_H
#define TL_API_API_GUARD_H

#include "runtime/api/objects.h"

/* Begins a call: empties this thread's error message. False: an earlier internal error has made the context
 * unusable. */
bool begin_call(const tl_context *ctx);

/* A guarded call: the state of guard_begin and guard_caught. */
struct guard {
	struct recovery recovery;
	tl_context *ctx;
	struct store *store; /* the context's store when the call began */
};
/* An error: the context is unusable. */
tl_status guard_begin(struct guard *g, tl_context *ctx);
/* The status of the fault that ended the call. */
tl_status guard_caught(struct guard *g);
/* Returns the call's status `s`. On success, removes the message of an error inside the call. */
tl_status guard_end(struct guard *g, tl_status s);

/* The guard of a function that destroys an object and returns no status. False: the object cannot be destroyed. `text`
 * receives a fault's message. */
bool destruction_begin(struct guard *g, const tl_context *ctx, char *text, size_t size);
void destruction_end(const struct guard *g);

/* Begins the definition of the function `name` of tl.h, whose body follows: it runs under a guard of the context.
 * `parameters` and `arguments` are the parameters and their names, in parentheses. The body is not inlined: a fault
 * frees the arenas in frames below the frame of the guard. */
#define API_FUNCTION(name, context, parameters, arguments)                                                             \
	static __attribute__((noinline)) tl_status name##_body parameters;                                             \
	tl_status name parameters                                                                                      \
	{                                                                                                              \
		struct guard g;                                                                                        \
		tl_status refused = guard_begin(&g, (context));                                                        \
		if (refused)                                                                                           \
			return refused;                                                                                \
		if (setjmp(g.recovery.to))                                                                             \
			return guard_caught(&g);                                                                       \
		return guard_end(&g, name##_body arguments);                                                           \
	}                                                                                                              \
	static tl_status name##_body parameters

/* Like API_FUNCTION, for a function that destroys an object. A fault ends it silently, and the rest of the object is
 * leaked. */
#define API_DESTRUCTOR(name, context, parameters, arguments)                                                           \
	static __attribute__((noinline)) void name##_body parameters;                                                  \
	void name parameters                                                                                           \
	{                                                                                                              \
		struct guard g;                                                                                        \
		char text[64];                                                                                         \
		if (!destruction_begin(&g, (context), text, sizeof text))                                              \
			return;                                                                                        \
		if (!setjmp(g.recovery.to)) {                                                                          \
			name##_body arguments;                                                                         \
			recovery_end(&g.recovery);                                                                     \
		}                                                                                                      \
		destruction_end(&g);                                                                                   \
	}                                                                                                              \
	static void name##_body parameters

#endif
