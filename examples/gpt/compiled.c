/* Kernels compiled ahead of time from a manifest: tlc build MANIFEST -o gpt_kernels. */
#include "gpt.h"

#include "gpt_kernels.h"

#include <stdlib.h>

struct kernels {
	tl_library *library;
};

struct kernels *kernels_open(tl_context *ctx, const char *path)
{
	(void)path;
	struct kernels *k = malloc(sizeof *k);
	if (!k)
		die("out of memory");
	must(tl_library_create(ctx, gpt_kernels_table, gpt_kernels_table_len, &k->library));
	return k;
}

void kernels_close(struct kernels *k)
{
	tl_library_destroy(k->library);
	free(k);
}

void kernels_launch(struct kernels *k, enum kernel kernel, const tl_config *config, const tl_arg *args, size_t n)
{
	must(tl_library_launch(k->library, kernel_names[kernel], config, args, n));
}
