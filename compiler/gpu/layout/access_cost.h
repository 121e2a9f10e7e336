/* The costs of loads and conversions with given layouts. The unit is a wavefront of the L1 cache or of shared memory,
 * which moves up to 128 bytes for the lanes of a warp. */
#ifndef TLC_GPU_LAYOUT_ACCESS_COST_H
#define TLC_GPU_LAYOUT_ACCESS_COST_H

#include "analysis/axis.h"

enum { CACHE_LINE = 128 /* bytes */ };

/* The bytes from an element's address to the next element's along dimension d, if all elements along d are known to
 * have this distance, apart from wraps and remainders; otherwise -1. */
i64 address_step(const struct axis_analysis *a, const struct value *ptr, int d);
/* The wavefronts of a warp that loads through `ptr` under `mask` (or NULL) in layout l: one for each 128-byte line that
 * the lanes of an instruction access. */
i64 load_cost(const struct axis_analysis *a, const struct value *ptr, const struct value *mask, const struct layout *l);
/* The cost of a conversion of elements of `bytes` bytes. A barrier counts as several wavefronts. */
i64 conversion_cost(const struct layout *from, const struct layout *to, int bytes);
/* The instructions of a thread for a conversion of elements of `bits` bits. */
i64 conversion_instructions(struct layout_pool *p, const struct layout *from, const struct layout *to, int bits);

#endif
