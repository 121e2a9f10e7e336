#include "driver/launch_metadata.h"

/* Element types of tensor maps as Triton's metadata numbers them, as on the device. The numbers of fp64 and bf16 differ
 * from those of cuTensorMapEncodeTiled. */
static int element_type(enum dtype d, bool is_unsigned)
{
	switch (dtype_bits(d)) {
	case 16: return d == DT_F16 ? 6 : d == DT_BF16 ? 10 : 1;
	case 32: return d == DT_F32 ? 7 : is_unsigned ? 2 : 3;
	case 64: return d == DT_F64 ? 9 : is_unsigned ? 4 : 5;
	default: return 0;
	}
}

static void print_map(struct strbuf *out, const struct kernel *k, const struct abi_param *p)
{
	const struct kernel_param *base = &k->params[p->param];
	enum dtype d = base->value->type->elem->dtype;
	sb_printf(out, "{\"swizzle\": %d, \"elem_size\": %d, \"elem_type\": %d, \"block_size\": [",
		  p->swizzle ? ilog2((u64)p->swizzle) - 4 : 0, dtype_bytes(d), element_type(d, base->is_unsigned));
	for (u32 i = 0; i < p->rank; i++)
		sb_printf(out, "%s%d", i ? ", " : "", p->block[i]);
	sb_puts(out, "], \"fp4_padded\": false, \"is_im2col\": false}");
}

const char *launch_metadata(struct arena *a, const struct kernel *k, const struct codegen_options *o)
{
	struct strbuf out = {.arena = a};
	const char *before = "";
	sb_puts(&out, "{\"name\": ");
	sb_json(&out, k->name);
	sb_printf(&out,
		  ", \"num_warps\": %d, \"num_ctas\": %d, \"cluster_dims\": [%d, 1, 1], \"shared\": %d, "
		  "\"tmem_size\": 0, \"num_stages\": %d, \"enable_fp_fusion\": %s, "
		  "\"enable_reflect_ftz\": %s, \"maxnreg\": ",
		  warps_of_block(k), k->cuda.cluster, k->cuda.cluster, k->shared_bytes, o->num_stages,
		  o->fp_fusion == FP_FUSION_OFF ? "false" : "true", o->ftz == FTZ_OFF ? "false" : "true");
	sb_printf(&out, o->maxnreg ? "%d" : "null", o->maxnreg);
	sb_printf(&out,
		  ", \"target\": {\"backend\": \"cuda\", \"arch\": %s, \"warp_size\": 32}, \"tensordesc_meta\": [",
		  strchr(k->target, ':') + 1);
	for (u32 i = 0; i < k->abi.len; i++) {
		if (k->abi.at[i].kind != ABI_MAP)
			continue;
		sb_puts(&out, before);
		print_map(&out, k, &k->abi.at[i]);
		before = ", ";
	}
	sb_puts(&out, "], \"global_scratch_size\": 0, \"global_scratch_align\": 1, \"profile_scratch_size\": 0, "
		      "\"profile_scratch_align\": 1, \"launch_cooperative_grid\": false, \"launch_pdl\": false}\n");
	return out.at;
}
