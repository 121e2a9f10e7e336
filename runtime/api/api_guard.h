/* The guard around the calls of tl.h: see runtime/launch/api_module.c. */
#ifndef TL_API_API_GUARD_H
#define TL_API_API_GUARD_H

#include "runtime/api/objects.h"

/* The text is empty from now on, as at the beginning of each call. False: the context is not usable any more. */
bool begin_call(const tl_context *ctx);

/* A call of the API: what guard_begin and guard_caught need. See runtime/launch/api_module.c. */
struct guard {
	struct recovery recovery;
	tl_context *ctx;
	struct store *store; /* the context's when the call began */
};
/* An error: the context is not usable any more. */
tl_status guard_begin(struct guard *g, tl_context *ctx);
/* The status of the fault that ended the call. */
tl_status guard_caught(struct guard *g);
/* The call's own; where it has succeeded in spite of an error inside, there is no text of that. */
tl_status guard_end(struct guard *g, tl_status s);

/* The same of a call that destroys, and has no status. False: nothing can be destroyed. `text`: for a fault's. */
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

/* Of calls that cannot say that they failed: what is left of the object is left alone. */
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
