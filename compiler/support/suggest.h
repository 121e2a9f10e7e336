/* "Did you mean …?": the valid name nearest to a misspelt one. */
#ifndef TLC_SUPPORT_SUGGEST_H
#define TLC_SUPPORT_SUGGEST_H

#include "support/base.h"

/* The name nearest to `name` among the n candidates, or NULL when none is near. */
const char *did_you_mean(const char *name, const char *const *candidates, u32 n);

#endif
