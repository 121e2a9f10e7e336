/* Kernels on the processor that access memory that is not there. */
#ifndef TLC_CLI_CRASH_H
#define TLC_CLI_CRASH_H

#include <stdbool.h>

struct command;

/* Between the two, a fault of memory is the kernel's: `tlc run` starts the same command again on the interpreter, which
 * checks every access and says where it is; others end with a message. */
void crash_watch(struct command *c);
void crash_end_watch(void);
/* Is this the second run? Then the kernel must not end well. */
bool crash_is_second(void);

#endif
