/* "Did you mean …?": the valid name nearest to a misspelt name. */
#ifndef TLC_SUPPORT_SUGGEST_H
#define TLC_SUPPORT_SUGGEST_H

#include "support/base.h"

/* The nearest of n candidates to `name` by edit distance; NULL if all are far. */
const char *did_you_mean(const char *name, const char *const *candidates, u32 n);

#endif
