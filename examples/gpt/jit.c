/* Kernels compiled at their first launch, and tuned on a GPU. */
#include "gpt.h"

#include <stdlib.h>
#include <string.h>

struct kernels {
	tl_kernel *kernel[KERNELS];
	tl_tuner *tuner[2]; /* of GEMMs, on tensor cores and by multiply-adds; NULL: launches set the tiles */
};

/* Tile sizes of a GEMM from which the tuners choose, for each shape. */
struct tiles {
	int m, n, k, warps, stages;
};
static const struct tiles choices[2][8] = {
	{{128, 256, 64, 8, 3},
	 {128, 128, 64, 8, 3},
	 {128, 128, 64, 4, 4},
	 {256, 128, 64, 8, 3},
	 {64, 128, 64, 4, 4},
	 {128, 64, 64, 4, 4},
	 {64, 64, 64, 4, 4},
	 {64, 64, 32, 4, 3}},
	{{128, 128, 16, 8, 3},
	 {128, 128, 8, 8, 4},
	 {128, 128, 32, 8, 2},
	 {128, 64, 16, 4, 3},
	 {64, 128, 16, 4, 3},
	 {64, 64, 16, 4, 3},
	 {64, 64, 32, 4, 2},
	 {128, 64, 32, 8, 3}},
};

/* True for fp32 in IEEE precision, which tensor cores do not support. */
static bool by_multiply_adds(const tl_arg *args)
{
	return args[0].dtype == TL_F32 && !strcmp(args[PRODUCT_PARAMETERS - 1].s, "ieee");
}

static tl_status plan(void *user, tl_config *config, tl_arg *args, size_t n)
{
	(void)user, (void)n;
	int64_t bm = args[PRODUCT_BLOCK_M].i, bn = args[PRODUCT_BLOCK_M + 1].i;
	config->grid[0] = (uint32_t)((args[PRODUCT_M].i + bm - 1) / bm * ((args[PRODUCT_M + 1].i + bn - 1) / bn));
	return TL_OK;
}

static tl_tuner *tuner_of(tl_kernel *product, const struct tiles *choices, size_t n)
{
	static const char *const keys[] = {"M", "N", "K", "stride_ak", "stride_bn"};
	tl_tuner *tuner;
	must(tl_tuner_create(product, &(tl_tuning){.keys = keys, .nkeys = COUNT(keys)}, &tuner));
	for (size_t i = 0; i < n; i++) {
		const struct tiles *t = &choices[i];
		tl_config config = {.num_warps = t->warps, .num_stages = t->stages};
		tl_named_arg values[] = {
			{"BLOCK_M", tl_int(t->m)}, {"BLOCK_N", tl_int(t->n)}, {"BLOCK_K", tl_int(t->k)}};
		must(tl_tuner_add(tuner, &config, values, COUNT(values)));
	}
	return tuner;
}

struct kernels *kernels_open(tl_context *ctx, const char *path)
{
	tl_device_info device;
	tl_module *module;
	struct kernels *k = calloc(1, sizeof *k);
	if (!k)
		die("out of memory");
	must(tl_device(ctx, &device));
	must(tl_module_load(ctx, path, &module));
	for (int i = 0; i < KERNELS; i++)
		must(tl_module_kernel(module, kernel_names[i], &k->kernel[i]));
	for (int i = 0; i < 2 && !strcmp(device.kind, "cuda"); i++)
		k->tuner[i] = tuner_of(k->kernel[PRODUCT], choices[i], COUNT(choices[i]));
	return k;
}

void kernels_close(struct kernels *k)
{
	tl_tuner_destroy(k->tuner[0]);
	tl_tuner_destroy(k->tuner[1]);
	free(k);
}

void kernels_launch(struct kernels *k, enum kernel kernel, const tl_config *config, const tl_arg *args, size_t n)
{
	if (kernel != PRODUCT || !k->tuner[0]) {
		must(tl_launch(k->kernel[kernel], config, args, n));
		return;
	}
	tl_arg open[PRODUCT_PARAMETERS];
	memcpy(open, args, sizeof open);
	for (int i = 0; i < 3; i++)
		open[PRODUCT_BLOCK_M + i] = tl_open();
	must(tl_tuner_launch(k->tuner[by_multiply_adds(args)], config, plan, NULL, open, n));
}
