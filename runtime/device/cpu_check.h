/* Checks of the memory accesses of CPU code compiled for cpu:check: an access must stay in its parameter's buffer, must
 * not read memory that was never written, and programs must not store different values to the same element. */
#ifndef TL_DEVICE_CPU_CHECK_H
#define TL_DEVICE_CPU_CHECK_H

#include "cpu/cpu_abi.h"
#include "runtime/device/host_memory.h"

struct checker;

/* The kernels that wrote through recent pointers. */
enum { OUTPUTS = 64, OUTPUT_NAME = 128 };
struct outputs {
	u32 count; /* number of outputs so far */
	struct output {
		const char *address;
		u32 element; /* bytes */
		char name[OUTPUT_NAME];
	} at[OUTPUTS];
};
/* Records the outputs of a launch. */
void outputs_note(struct outputs *o, struct host_device *d, const struct device_launch *l, const struct image *im);
/* The host reads these bytes of a buffer. Logs a report if some of them were never written. */
void outputs_read(const struct outputs *o, struct host_device *d, const char *p, size_t size);

/* Memory that launches reuse: the words that record which program stored to an element. */
enum { KEPT = 16 };
struct kept_bytes {
	pthread_mutex_t lock;
	u64 used;
	struct kept_words {
		struct writer *at; /* NULL: a free entry */
		size_t bytes;
		u32 next; /* all words are less than this */
		u64 used;
	} words[KEPT];
};
void kept_init(struct kept_bytes *k);
void kept_free(struct kept_bytes *k);

/* A checker for one launch; NULL: out of memory. `sources`: of the kernel's module, for messages. */
struct checker *checker_open(struct host_device *d, struct kept_bytes *kept, const struct device_launch *l,
			     const struct image *im, const struct source_list *sources);
/* See cpu_call.good. */
const struct cpu_bytes *checker_good(const struct checker *c);
void checker_close(struct checker *c);
/* Checks an access, and makes its store: see cpu_call.check. False: an error, with its text in `out`. *element: the
 * element with the error. `program`: the program's linear number. Any thread may call it. */
bool checker_access(struct checker *c, u64 program, const struct cpu_site *site, i64 *element, const void *at,
		    const u8 *mask, const void *data, struct strbuf *out);

/* A fast check of consecutive elements, or of loads, if the first lanes are active, as in nearly all accesses. False:
 * checker_access is necessary. */
bool checker_quick(struct checker *c, u64 program, const struct cpu_site *site, const void *at, const u8 *mask,
		   const void *data);

#endif
