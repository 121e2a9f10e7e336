/* Faults of CPU kernels that access unmapped memory. */
#ifndef TLC_CLI_CRASH_H
#define TLC_CLI_CRASH_H

#include <stdbool.h>

struct command;

/* A memory fault between the two calls is the kernel's. `tlc run` then runs the same command on the interpreter, which
 * checks every access and reports the place. Other commands end with a message. */
void crash_watch(struct command *c);
void crash_end_watch(void);
/* True in the second run: the kernel must fail there. */
bool crash_is_second(void);

#endif
