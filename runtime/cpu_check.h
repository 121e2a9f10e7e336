/* What checked code for the processor tells the runtime: does each access stay in the memory it is meant for, was what
 * it reads ever written, and do programs store different values to one place? */
#ifndef TL_CPU_CHECK_H
#define TL_CPU_CHECK_H

#include "host/abi.h"
#include "runtime/host.h"

struct checker;

/* For one launch; NULL: out of memory. */
struct checker *checker_open(struct host_device *d, const struct device_launch *l, const struct image *im);
void checker_close(struct checker *c);
/* See host_call.check. Text of an error, in `out`; false: there is one. *element: the one at fault. `program` is the
 * number of the program. Makes the store. From any thread. */
bool checker_access(struct checker *c, u64 program, const struct host_site *site, i64 *element, const void *at,
		    const u8 *mask, const void *data, struct strbuf *out);

/* The same for neighbours without a mask, as nearly all are: false where it takes a closer look. */
bool checker_quick(struct checker *c, u64 program, const struct host_site *site, const void *at, const void *data);

#endif
