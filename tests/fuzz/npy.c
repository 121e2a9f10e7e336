/* Fuzzing .npy files: any bytes in, and an array that is read is written, and read again. `make fuzz` builds it.
 *
 *   build-fuzz/fuzz-npy -dict=tests/fuzz/npy.dict CORPUS… */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/base.h"
#include "cli/npy.h"
#include "temporary.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static char path[200];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	temporary(path, sizeof path);
	return mkstemp(path) < 0;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct npy a, b;
	u8 *copy = malloc(size + !size);
	memcpy(copy, data, size);
	tl_status s = npy_parse(copy, size, "a.npy", &a);
	free(copy);
	if (s)
		return 0;
	size_t bytes = a.count * tl_dtype_size(a.dtype);
	if (bytes > size || npy_write(path, &a) || npy_read(path, &b))
		abort();
	if (a.dtype != b.dtype || a.rank != b.rank || a.count != b.count || memcmp(a.data, b.data, bytes) ||
	    (a.rank && memcmp(a.shape, b.shape, a.rank * sizeof *a.shape)))
		abort();
	npy_free(&a);
	npy_free(&b);
	return 0;
}
