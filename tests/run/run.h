/* The harness of tests/run: cases that launch kernels and compare their results with a plain C reference.
 *
 *   void theme_example(struct suite *s)
 *   {
 *       if (!case_begin(s, "example.tl", "double n=%d", n))
 *           return;
 *       struct array *x = in(s, "x", TL_F32, n), *o = out(s, "o", TL_F32, n);
 *       for (int i = 0; i < n; i++)
 *           want(o, i, 2 * value(x, i));
 *       LAUNCH(s, "double", CONFIG(.grid = {1}), ptr(x), ptr(o), tl_int(n));
 *       case_end(s);
 *   }
 *
 * case_end reads every array back. An element with a `want` must equal it, exactly or within the array's tolerance;
 * every other byte, of inputs, of elements without an expected value and of the guard zones around outputs, must be as
 * uploaded. Outputs start as random bytes, so an element that is not written does not pass by chance.
 *
 * Numbers are double for floating-point arrays and int64_t for integers (uint64 as its bit pattern); conversions to
 * the device's formats are number.c's, not the library's. */
#ifndef TESTS_RUN_H
#define TESTS_RUN_H

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tl.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* --- numbers ------------------------------------------------------------------------------------------------- */

enum { DTYPES = TL_F8E4B15 + 1 };
extern const tl_dtype float_types[], int_types[]; /* fp16 bf16 fp32 fp64; every integer but int1, unsigned ones last */
enum { FLOAT_TYPES = 4, INT_TYPES = 8 };

bool is_float(tl_dtype t);
bool is_signed(tl_dtype t); /* of integers; int1 is unsigned */
bool is_fp8(tl_dtype t);
int bits_of(tl_dtype t); /* 1 for int1 */

/* To the nearest number of the format, ties to even; past the largest number infinity, but fp8 saturates. */
double round_to(tl_dtype t, double v);
double round_toward_zero(tl_dtype t, double v);
double tf32(double v);             /* 10 mantissa bits, toward zero */
double ulp(tl_dtype t, double v);  /* distance of neighbours at v */
double unit_roundoff(tl_dtype t);  /* largest relative error of round_to, normal numbers */
int64_t wrap(tl_dtype t, int64_t v);
double int_value(tl_dtype t, int64_t v); /* as a real number: unsigned where the type is */
int64_t least(tl_dtype t);               /* of an integer type; `most` of uint64 is -1 */
int64_t most(tl_dtype t);
uint64_t encode(tl_dtype t, double v); /* v is a number of the format */
double decode(tl_dtype t, uint64_t bits);

/* --- random numbers ------------------------------------------------------------------------------------------ */

uint64_t random_bits(void);
void random_seed(uint64_t seed);
double uniform(double lo, double hi);
int64_t random_int(int64_t lo, int64_t hi); /* both ends included */

/* --- arrays -------------------------------------------------------------------------------------------------- */

struct suite;
enum { SCHEDULES = 8 }; /* at most */

struct array {
	struct array *next;
	const char *name;
	tl_dtype dtype;
	int rank, shape[4]; /* for messages; 1-D unless shaped() */
	size_t len, before, bytes; /* elements; guard bytes before them; size of the whole buffer */
	double absolute, relative; /* tolerance; besides, half an ulp for rounding the result. 0: exact */
	double ulps;               /* instead, rounding included */
	tl_buffer *buffer;
	unsigned char *raw; /* the buffer as uploaded */
	unsigned char *left[SCHEDULES]; /* its contents under the other schedules; NULL: as uploaded */
	double *f;          /* the numbers uploaded: one of f and i */
	int64_t *i;
	double *want_f;
	int64_t *want_i;
	unsigned char *wanted;
	int holds; /* the schedule under which the buffer's contents came about; -1: not uploaded yet */
};

/* They live until case_end. in: random numbers, floats in [-1, 1), integers over the type's whole range. */
struct array *in(struct suite *s, const char *name, tl_dtype t, size_t len);
struct array *out(struct suite *s, const char *name, tl_dtype t, size_t len);
/* An output with initial values, which are to be set. */
struct array *inout(struct suite *s, const char *name, tl_dtype t, size_t len);
/* The same, with the first element `elements` past an address divisible by 256. */
struct array *in_at(struct suite *s, const char *name, tl_dtype t, size_t len, int elements);
struct array *out_at(struct suite *s, const char *name, tl_dtype t, size_t len, int elements);
void shaped(struct array *a, int rank, const int *shape);
void fill(struct array *a, double lo, double hi); /* uniform; integers with both ends */
void fill_whole(struct array *a, int most);       /* integers from -most to most, below it in integer arrays */
void fill_bits(struct array *a);                  /* any bit pattern, infinities and NaNs included */
void set(struct array *a, size_t i, double v);    /* rounds or wraps; no values after the launch */
void set_int(struct array *a, size_t i, int64_t v);
double value(const struct array *a, size_t i);    /* as uploaded; exact but for 64-bit integers */
int64_t value_int(const struct array *a, size_t i);
void want(struct array *a, size_t i, double v);   /* floats: not yet rounded. Integers: must fit */
void want_number(struct array *a, size_t i, double v); /* a number of the format: no saturation */
void want_signed(struct array *a, size_t i, double v); /* the same; a zero has the sign of v */
void want_int(struct array *a, size_t i, int64_t v);
void tolerance(struct array *a, double absolute, double relative);
void tolerance_ulps(struct array *a, double ulps); /* of the exact result, at most so many */
tl_arg ptr(const struct array *a);
const void *address(const struct array *a);

/* --- cases --------------------------------------------------------------------------------------------------- */

/* Counts a case; false when it is not to run (filter, shard, or done before a restart). `file` may be NULL: then
 * launch_text gives the source. */
bool case_begin(struct suite *s, const char *file, const char *name, ...) __attribute__((format(printf, 3, 4)));
void case_end(struct suite *s);
void case_fail(struct suite *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Instead of the rest of the case; case_end still follows. */
void case_skip(struct suite *s, const char *why);
bool on_device(const struct suite *s, const char *kind);
/* The cases that follow get other schedules of the simulator than those with another variation. */
void vary_schedules(struct suite *s, int variation);
tl_context *context(const struct suite *s);

tl_status launch(struct suite *s, const char *kernel, const tl_config *cfg, const tl_arg *args, size_t nargs);
/* A launch that must fail with this status and a text that contains `part`. */
void launch_fails(struct suite *s, tl_status status, const char *part, const char *kernel, const tl_config *cfg,
		  const tl_arg *args, size_t nargs);
tl_status launch_text(struct suite *s, const char *text, const char *kernel, const tl_config *cfg, const tl_arg *args,
		      size_t nargs);
#define CONFIG(...) (&(tl_config){__VA_ARGS__})
#define ARGS(...) (tl_arg[]){__VA_ARGS__}, sizeof((tl_arg[]){__VA_ARGS__}) / sizeof(tl_arg)
#define LAUNCH(s, kernel, cfg, ...) launch(s, kernel, cfg, ARGS(__VA_ARGS__))

/* --- the program --------------------------------------------------------------------------------------------- */

struct theme {
	const char *name;
	void (*run)(struct suite *s);
};
/* Runs the themes on each device; what main returns. */
int run_themes(int argc, char **argv, const struct theme *themes, int n);

/* sources.c: the command line of tlc that compiles the same variant. */
void write_command(FILE *out, const char *path, const char *text, const char *kernel, const tl_config *cfg,
		   const tl_arg *args, size_t nargs);
/* Which of the kernel's parameters are compile-time values. */
void constant_parameters(const char *text, const char *kernel, const tl_arg *args, bool *constant, size_t nargs);

#endif
