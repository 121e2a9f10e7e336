/* .npy files: NumPy's format for one array, versions 1.0 to 3.0 (numpy.lib.format, "NEP 1"). */
#ifndef TLC_CLI_NPY_H
#define TLC_CLI_NPY_H

#include "runtime/tl.h"

struct npy {
	tl_dtype dtype; /* bool is TL_I1; bf16 and fp8 have no name in the format, and are read as uint16 and uint8 */
	uint32_t rank;
	size_t *shape; /* NULL for rank 0 */
	size_t count;  /* number of elements: the product of the shape, 1 for rank 0 */
	void *data;    /* in C order; never NULL */
};

/* Reads a file. Arrays in Fortran order are converted to C order. Free the array with npy_free. */
tl_status npy_read(const char *path, struct npy *out);
/* Reads from memory; `name` is for messages. `bytes` is untrusted. */
tl_status npy_parse(const void *bytes, size_t len, const char *name, struct npy *out);
tl_status npy_write(const char *path, const struct npy *a);
void npy_free(struct npy *a);

#endif
