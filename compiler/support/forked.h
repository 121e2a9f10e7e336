/* What threads share, in the child of a fork: the child has the thread that called fork() and no other one. */
#ifndef TLC_SUPPORT_FORKED_H
#define TLC_SUPPORT_FORKED_H

#include <stdatomic.h>

#include "support/recover.h"

/* A number that a child has for itself: threads that were started under another number are not there. */
u32 fork_generation(void);

/* Calls in progress on an object, in the lower half; in the upper half the fork_generation they began in. */
typedef _Atomic u64 fork_calls;
/* False: other threads were in the midst of calls when the process was forked. What they held stays held. */
bool fork_enter(fork_calls *calls);
void fork_leave(fork_calls *calls);

/* fork() waits for the end of this section, which may take locks of the process and use LLVM. For a thread again and
 * again, one in the other; a fault ends it. */
struct fork_section {
	struct cleanup cleanup;
};
void fork_section_begin(struct fork_section *s);
void fork_section_end(struct fork_section *s);

#endif
