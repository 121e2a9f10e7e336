/* The guard around the calls of tl.h: see runtime/api.c. */
#ifndef TL_GUARD_H
#define TL_GUARD_H

#include "runtime/internal.h"

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
