/* The guard around the calls of tl.h: see runtime/api.c. */
#ifndef TL_GUARD_H
#define TL_GUARD_H

#include "runtime/internal.h"

#define GUARDED(context, call)                                                                                         \
	struct guard g;                                                                                                \
	if (!guard_begin(&g, (context)))                                                                               \
		return TL_ERR_INTERNAL;                                                                                \
	if (setjmp(g.recovery.to))                                                                                     \
		return guard_caught(&g);                                                                               \
	return guard_end(&g, (call))

/* Of calls that cannot say that they failed: what is left of the object is left alone. */
#define DESTROYED(call)                                                      \
	char text[64];                                                       \
	struct recovery r = {.text = text, .size = sizeof text};             \
	recovery_begin(&r);                                                  \
	if (setjmp(r.to))                                                    \
		return;                                                      \
	call;                                                                \
	recovery_end(&r)

#endif
