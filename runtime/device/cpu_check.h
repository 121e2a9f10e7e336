/* What checked code for the processor tells the runtime: does each access stay in the memory it is meant for, was what
 * it reads ever written, and do programs store different values to one place? */
#ifndef TL_DEVICE_CPU_CHECK_H
#define TL_DEVICE_CPU_CHECK_H

#include "cpu/cpu_abi.h"
#include "runtime/device/host_memory.h"

struct checker;

/* Which kernel has stored last through a pointer, for the latest pointers. */
enum { OUTPUTS = 64, OUTPUT_NAME = 128 };
struct outputs {
	u32 count; /* so far */
	struct output {
		const char *address;
		u32 element; /* bytes */
		char name[OUTPUT_NAME];
	} at[OUTPUTS];
};
/* What the launch writes is an output now. */
void outputs_note(struct outputs *o, struct host_device *d, const struct device_launch *l, const struct image *im);
/* The host reads these bytes of a buffer: a report, if some have been written by nobody. */
void outputs_read(const struct outputs *o, struct host_device *d, const char *p, size_t size);

/* What launches leave to later ones: memory in which they note which programs store. */
enum { KEPT = 16 };
struct kept_bytes {
	pthread_mutex_t lock;
	u64 used;
	struct kept_words {
		struct writer *at; /* NULL: none */
		size_t bytes;
		u32 next; /* words are below it */
		u64 used;
	} words[KEPT];
};
void kept_init(struct kept_bytes *k);
void kept_free(struct kept_bytes *k);

/* For one launch; NULL: out of memory. */
struct checker *checker_open(struct host_device *d, struct kept_bytes *kept, const struct device_launch *l,
			     const struct image *im);
/* See cpu_call.good. */
const struct cpu_bytes *checker_good(const struct checker *c);
void checker_close(struct checker *c);
/* See cpu_call.check. Text of an error, in `out`; false: there is one. *element: the one at fault. `program` is the
 * number of the program. Makes the store. From any thread. */
bool checker_access(struct checker *c, u64 program, const struct cpu_site *site, i64 *element, const void *at,
		    const u8 *mask, const void *data, struct strbuf *out);

/* The same for neighbours, or loads, of the first lanes, as nearly all are: false where it takes a closer look. */
bool checker_quick(struct checker *c, u64 program, const struct cpu_site *site, const void *at, const u8 *mask,
		   const void *data);

#endif
