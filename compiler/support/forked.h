/* State shared by threads, in the child of a fork. The child has only the thread that called fork(). */
#ifndef TLC_SUPPORT_FORKED_H
#define TLC_SUPPORT_FORKED_H

#include <stdatomic.h>

#include "support/recover.h"

/* A number that differs between a process and its forked children. Threads that were started under another number do
 * not exist in this process. */
u32 fork_generation(void);

/* Lower half: number of calls in progress on an object. Upper half: the fork_generation in which they began. */
typedef _Atomic u64 fork_calls;
/* False if other threads had calls in progress when the process was forked. Locks that they held stay locked. */
bool fork_enter(fork_calls *calls);
void fork_leave(fork_calls *calls);

/* A section during which fork() in another thread waits. The section may take locks of the process and use LLVM.
 * Sections of a thread may nest, and a fault ends them. */
struct fork_section {
	struct cleanup cleanup;
};
void fork_section_begin(struct fork_section *s);
void fork_section_end(struct fork_section *s);

#endif
