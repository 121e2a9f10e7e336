/* The themes, and what more than one of them uses. */
#ifndef TESTS_RUN_THEMES_H
#define TESTS_RUN_THEMES_H

#include "run.h"

void theme_elementwise(struct suite *s);
void theme_cast(struct suite *s);
void theme_memory(struct suite *s);
void theme_reduce(struct suite *s);
void theme_scan(struct suite *s);
void theme_shape(struct suite *s);
void theme_dot(struct suite *s);
void theme_matmul(struct suite *s);
void theme_weights(struct suite *s);
void theme_scaled(struct suite *s);
void theme_atomic(struct suite *s);
void theme_control(struct suite *s);
void theme_program(struct suite *s);
void theme_gather(struct suite *s);
void theme_table(struct suite *s);
void theme_attention(struct suite *s);
void theme_alias(struct suite *s);
void theme_blocks(struct suite *s);
void theme_values(struct suite *s);
void theme_composite(struct suite *s);
void theme_library(struct suite *s);
void theme_device(struct suite *s);
void theme_libdevice(struct suite *s);
void theme_reference(struct suite *s);
void theme_helpers(struct suite *s);
void theme_fusion(struct suite *s);
void theme_subnormal(struct suite *s);

/* test_elementwise.c: operators by name. `op` of apply_int must be defined for the operands. */
double apply_float(const char *op, double x, double y);
int64_t apply_int(const char *op, tl_dtype t, int64_t x, int64_t y);

/* test_dot_attention.c: the part of theme_dot that has softmax between two products. */
void dot_attention(struct suite *s);

static inline int cdiv(int a, int b) { return (a + b - 1) / b; }

/* test_reduce.c: o is the softmax of the n elements of x from `at` on, `stride` apart. */
void want_softmax(struct array *o, const struct array *x, size_t at, size_t n, size_t stride);

/* test_reduce.c: a row-major tile as outer × length × inner, where length is along the axis (99: all of them). */
struct tile_walk {
	int outer, length, inner;
};
void tile_walk(struct tile_walk *w, int rank, const int *shape, int axis);
const char *tile_name(char *text, int rank, const int *shape, int axis); /* "4x8 axis=1" */

#endif
