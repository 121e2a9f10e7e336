/* The guard of the functions of tl.h: see runtime/launch/api_module.c. */
#ifndef TL_API_API_GUARD_H
#define TL_API_API_GUARD_H

#include "runtime/api/objects.h"

/* Begins a call: empties this thread's error message. False: an earlier internal error has made the context
 * unusable. */
bool begin_call(const tl_context *ctx);

/* A guarded call: the state of guard_begin and guard_caught. See runtime/launch/api_module.c. */
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

#define GUARDED(context, call)                                                                                         \
	struct guard g;                                                                                                \
	tl_status refused = guard_begin(&g, (context));                                                                \
	if (refused)                                                                                                   \
		return refused;                                                                                        \
	if (setjmp(g.recovery.to))                                                                                     \
		return guard_caught(&g);                                                                               \
	return guard_end(&g, (call))

/* The body of a function that destroys an object. A fault ends it silently, and the rest of the object is leaked. */
#define DESTROYED(context, call)                                             \
	struct guard g;                                                      \
	char text[64];                                                       \
	if (!destruction_begin(&g, (context), text, sizeof text))            \
		return;                                                      \
	if (!setjmp(g.recovery.to)) {                                        \
		call;                                                        \
		recovery_end(&g.recovery);                                   \
	}                                                                    \
	destruction_end(&g)

#endif
