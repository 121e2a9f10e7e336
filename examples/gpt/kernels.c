/* The names of the kernels in gpt.tl. */
#include "gpt.h"

const char *const kernel_names[KERNELS] = {
	[PRODUCT] = "product_kernel",
	[COLUMN_SUM] = "column_sum_kernel",
	[EMBED] = "embed_kernel",
	[POSITION_GRADIENT] = "position_gradient_kernel",
	[TOKEN_GRADIENT] = "token_gradient_kernel",
	[LAYER_NORM] = "layer_norm_kernel",
	[LAYER_NORM_GRADIENT] = "layer_norm_gradient_kernel",
	[ATTENTION] = "attention_kernel",
	[ATTENTION_DELTA] = "attention_delta_kernel",
	[KEY_GRADIENT] = "key_gradient_kernel",
	[QUERY_GRADIENT] = "query_gradient_kernel",
	[CROSS_ENTROPY] = "cross_entropy_kernel",
	[SQUARE_SUM] = "square_sum_kernel",
	[ADAMW] = "adamw_kernel",
	[VECTOR_PRODUCT] = "vector_product_kernel",
	[VECTOR_ATTENTION] = "vector_attention_kernel",
	[SAMPLE] = "sample_kernel",
};
