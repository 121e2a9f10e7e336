/* What the examples share: tensors of random numbers, their comparison with a reference, and the table of results.
 * It is no part of libtl. */
#ifndef EXAMPLES_COMMON_H
#define EXAMPLES_COMMON_H

#include <tl.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

struct demo {
	tl_context *ctx;
	tl_device_info device;
	const char *kernels; /* the folder of the .tl files */
	bool large;          /* also sizes that only a GPU is fast enough for */
	int warmup, repeats; /* for tl_time */
	int wrong;           /* how many rows of the table were */
	uint64_t random;     /* the state of the generator */
};

/* Options: --device D, --kernels DIR, --small, --large, --no-header. The default is the best device, the folder
 * "examples", and large sizes on a GPU. Ends the program with status 2 where there is no device. */
void demo_open(struct demo *d, int argc, char **argv);
/* Frees it all; what main returns: 0, or 1 if a result was wrong. */
int demo_close(struct demo *d);
/* Of the program: what cannot fail for the kernel's sake. Ends the program with status 2 if it does. */
void must(tl_status s);
/* The kernel `name` of `file`. It lives as long as the context. */
tl_kernel *load_kernel(struct demo *d, const char *file, const char *name);

/* --- tensors ------------------------------------------------------------------------------------------------- */

/* `len` elements on the device, with a copy here. */
struct tensor {
	tl_dtype dtype;
	size_t len;
	void *host; /* and guard elements behind the last */
	tl_buffer *buffer;
};

/* Normally distributed around `mean`, rounded to the dtype; integers are uniform from mean - scale to mean + scale. */
struct tensor tensor_random(struct demo *d, tl_dtype t, size_t len, double mean, double scale);
/* Filled with poison (NaN for floats), as a kernel's output should be before the launch. */
struct tensor tensor_output(struct demo *d, tl_dtype t, size_t len);
void tensor_free(struct tensor *t);
double tensor_get(const struct tensor *t, size_t i);
static inline tl_arg tensor_arg(const struct tensor *t) { return tl_buf(t->dtype, t->buffer); }

/* The largest relative error of rounding to the dtype; 0 for integers. */
double unit_roundoff(tl_dtype t);

/* --- results ------------------------------------------------------------------------------------------------- */

/* A row of the table. An element is right when |got - want| <= absolute + relative * |want|. */
struct result {
	const char *kernel;
	double absolute, relative;
	char what[64];       /* size, dtype, layout */
	size_t samples;      /* how many rows were compared, of a result too large to compare whole; 0: all */
	double ms;           /* of one launch */
	bool failed;         /* a call of libtl did */
	size_t compared, bad, outside;
	double error, share; /* the worst error, and the worst as a part of what is allowed */
};

/* Notes that a call failed, and says why. */
void check(struct result *r, tl_status s);
/* After the launch: the tensor's elements from the device. */
void read_back(struct result *r, struct tensor *t);
/* Element i of a result. Each is compared once: poison takes its place. */
void compare(struct result *r, struct tensor *out, size_t i, double want);
/* What was not compared must still be poison: between rows, and behind the last. */
void compare_rest(struct result *r, const struct tensor *out);
/* Prints the row. A launch moves `bytes` or computes `flops`; the other is 0. */
void report(struct demo *d, const struct result *r, double bytes, double flops);

#endif
