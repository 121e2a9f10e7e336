/* Code shared by the examples: tensors of random numbers, their comparison with a reference, and the table of results.
 * It is not part of libtl. */
#ifndef EXAMPLES_COMMON_H
#define EXAMPLES_COMMON_H

#include <tl.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

struct demo {
	tl_context *ctx;
	tl_device_info device;
	const char *kernels; /* the folder of the .tl files */
	bool large;          /* run large sizes too, for which only a GPU is fast enough */
	int warmup, repeats; /* for tl_time */
	int wrong;           /* number of wrong rows of the table */
	uint64_t random;     /* the state of the generator */
};

/* Reads the options --device D, --kernels DIR, --small, --large, --no-header, and opens the device. Defaults: libtl's
 * default device, the folder "examples", and large sizes on a GPU. Ends the program with status 2 if there is no
 * device. */
void demo_open(struct demo *d, int argc, char **argv);
/* Frees everything and returns the exit status: 0, or 1 if a result was wrong. */
int demo_close(struct demo *d);
/* Ends the program with status 2 if a call fails that does not depend on the kernel. */
void must(tl_status s);
/* Loads the kernel `name` of `file`. It lives as long as the context. */
tl_kernel *load_kernel(struct demo *d, const char *file, const char *name);

/* --- tensors ------------------------------------------------------------------------------------------------- */

/* A tensor of `len` elements on the device, with a copy on the host. */
struct tensor {
	tl_dtype dtype;
	size_t len;
	void *host; /* with guard elements after the last element */
	tl_buffer *buffer;
};

/* A tensor of normally distributed numbers around `mean`, rounded to the dtype. Integers are uniform from mean - scale
 * to mean + scale. */
struct tensor tensor_random(struct demo *d, tl_dtype t, size_t len, double mean, double scale);
/* A tensor for a kernel's output, filled with poison: NaN for floats. */
struct tensor tensor_output(struct demo *d, tl_dtype t, size_t len);
void tensor_free(struct tensor *t);
double tensor_get(const struct tensor *t, size_t i);
static inline tl_arg tensor_arg(const struct tensor *t) { return tl_buf(t->dtype, t->buffer); }

/* The largest relative error of rounding to the dtype; 0 for integers. */
double unit_roundoff(tl_dtype t);

/* --- results ------------------------------------------------------------------------------------------------- */

/* A row of the table. An element is correct if |got - want| <= absolute + relative * |want|. */
struct result {
	const char *kernel;
	double absolute, relative;
	char what[64];       /* size, dtype, layout */
	size_t samples;      /* number of compared rows, if the result is too large to compare completely; 0: all */
	double ms;           /* of a launch */
	bool failed;         /* a call of libtl failed */
	size_t compared, bad, outside;
	double error, share; /* the worst error, and its largest ratio to the allowed error */
};

/* Records a failed call, and prints its error. */
void check(struct result *r, tl_status s);
/* Reads the tensor's elements from the device, after the launch. */
void read_back(struct result *r, struct tensor *t);
/* Compares element i of a result, and replaces it by poison. To be called once for each element. */
void compare(struct result *r, struct tensor *out, size_t i, double want);
/* Checks that all other elements are still poison: the gaps between rows, and the guard elements. */
void compare_rest(struct result *r, const struct tensor *out);
/* Prints the row. `bytes` is the memory traffic of a launch, `flops` its operations; one of them is 0. */
void report(struct demo *d, const struct result *r, double bytes, double flops);

#endif
