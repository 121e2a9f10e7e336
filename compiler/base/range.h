#ifndef TLC_RANGE_H
#define TLC_RANGE_H

#include <stddef.h>

/* Memory that kernels may touch. */
struct mem_range {
	const char *name; /* for messages; may be NULL */
	char *base;
	size_t size;
};

#endif
