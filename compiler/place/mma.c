#include "place/mma.h"

/* Best first: the first row that fits is taken. */
static const struct mma table[] = {
	{"mma_f16_f32", DT_F16, DT_F16, DT_F32, false, 16, 8, 16, 80},
	{"mma_f16_f16", DT_F16, DT_F16, DT_F16, false, 16, 8, 16, 80},
	{"mma_f16_f32_k8", DT_F16, DT_F16, DT_F32, false, 16, 8, 8, 75},
	{"mma_f16_f16_k8", DT_F16, DT_F16, DT_F16, false, 16, 8, 8, 75},
	{"mma_bf16_f32", DT_BF16, DT_BF16, DT_F32, false, 16, 8, 16, 80},
	{"mma_tf32_f32", DT_F32, DT_F32, DT_F32, true, 16, 8, 8, 80},
	{"mma_s8_s32", DT_I8, DT_I8, DT_I32, false, 16, 8, 32, 80},
	{"mma_s8_s32_m8", DT_I8, DT_I8, DT_I32, false, 8, 8, 16, 75},
	{"mma_e4m3_e4m3", DT_E4M3, DT_E4M3, DT_F32, false, 16, 8, 32, 89},
	{"mma_e4m3_e5m2", DT_E4M3, DT_E5M2, DT_F32, false, 16, 8, 32, 89},
	{"mma_e5m2_e4m3", DT_E5M2, DT_E4M3, DT_F32, false, 16, 8, 32, 89},
	{"mma_e5m2_e5m2", DT_E5M2, DT_E5M2, DT_F32, false, 16, 8, 32, 89},
	{"mma_f64_f64", DT_F64, DT_F64, DT_F64, false, 8, 8, 4, 80},
};

const struct mma *mma_select(int sm, enum dtype a, enum dtype b, enum dtype acc, enum dot_precision precision)
{
	for (u32 i = 0; i < ARRAY_LEN(table); i++) {
		const struct mma *m = &table[i];
		if (m->a == a && m->b == b && m->acc == acc && sm >= m->min_sm && (!m->tf32 || precision == PRECISION_TF32))
			return m;
	}
	return NULL;
}

const struct mma *mma_of_dot(int sm, const struct op *dot)
{
	return mma_select(sm, type_dtype(operand(dot, 0)->type), type_dtype(operand(dot, 1)->type), type_dtype(result(dot)->type),
			  (enum dot_precision)dot->attr[ATTR_PRECISION]);
}
