/* Reading and checking the arguments of a builtin. */
#ifndef TLC_FRONTEND_BUILTIN_ARGS_H
#define TLC_FRONTEND_BUILTIN_ARGS_H

#include "frontend/frontend_internal.h"

/* The name of the i-th parameter of a builtin, for messages. */
const char *arg_name(struct eval *e, const struct args *a, u32 i);

/* Reports that argument i is not of the kind `wanted`: "an integer". */
struct val wrong_kind(struct eval *e, const struct args *a, u32 i, const char *wanted);

/* Each returns false after reporting an error. Functions that return a value set *out to an error value then. */
bool arg_int(struct eval *e, const struct args *a, u32 i, i64 *out);           /* a compile-time integer */
bool arg_bool(struct eval *e, const struct args *a, u32 i, bool *out);
bool arg_type(struct eval *e, const struct args *a, u32 i, struct val *out);   /* a dtype or pointer type */
/* a run-time value; numbers are converted */
bool arg_tensor(struct eval *e, const struct args *a, u32 i, struct val *out);
bool arg_tile(struct eval *e, const struct args *a, u32 i, struct val *out);   /* a tile */
bool arg_shape(struct eval *e, const struct args *a, u32 i, int *rank, i32 *shape);
bool arg_axis(struct eval *e, const struct args *a, u32 i, int rank, int *axis);
/* A mask as i1, or V_NONE if there is no mask. */
bool arg_mask(struct eval *e, const struct args *a, u32 i, struct val *out);
/* The index of a string among `names` (NULL-terminated). None and "" give 0. */
bool arg_choice(struct eval *e, const struct args *a, u32 i, const char *const *names, i64 *out);
/* tl.load and tl.store where the pointer is an object (a block pointer or descriptor). */
struct val load_block(struct eval *e, const struct args *a);
struct val store_block(struct eval *e, const struct args *a);
/* If remarks are enabled: reports that this argument is accepted for compatibility with Triton and has no effect. */
void remark_no_effect(struct eval *e, const struct args *a, u32 i);

#endif
