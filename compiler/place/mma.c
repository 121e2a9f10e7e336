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

/* --- wgmma --------------------------------------------------------------------------------------------------- */

static const struct wgmma wgmma_table[] = {
	{DT_F16, DT_F16, DT_F32, "f32.f16.f16", 16, true},
	{DT_F16, DT_F16, DT_F16, "f16.f16.f16", 16, true},
	{DT_BF16, DT_BF16, DT_F32, "f32.bf16.bf16", 16, true},
	{DT_F32, DT_F32, DT_F32, "f32.tf32.tf32", 8, false},
	{DT_I8, DT_I8, DT_I32, "s32.s8.s8", 32, false},
	{DT_E4M3, DT_E4M3, DT_F32, "f32.e4m3.e4m3", 32, false},
	{DT_E4M3, DT_E5M2, DT_F32, "f32.e4m3.e5m2", 32, false},
	{DT_E5M2, DT_E4M3, DT_F32, "f32.e5m2.e4m3", 32, false},
	{DT_E5M2, DT_E5M2, DT_F32, "f32.e5m2.e5m2", 32, false},
};

void wgmma_warps(int num_warps, const struct type *t, int *warps)
{
	int groups = num_warps / 4, down = MIN(groups, t->shape[0] / 64);
	warps[0] = 4 * down;
	warps[1] = groups / down;
}

int wgmma_n(const struct type *t, const int *warps)
{
	return MIN(t->shape[1] / warps[1], 256);
}

const struct wgmma *wgmma_of_dot(const struct pass_state *s, const struct op *dot)
{
	const struct type *t = result(dot)->type, *a = operand(dot, 0)->type, *b = operand(dot, 1)->type;
	int warps[2];
	if (s->sm != 90 || !s->arch_specific || s->num_warps % 4 || t->rank != 2 || t->shape[0] < 64)
		return NULL;
	wgmma_warps(s->num_warps, t, warps);
	/* rows of shared memory have at least 32 bytes */
	if (t->shape[1] / warps[1] < 16 || a->shape[1] * dtype_bits(type_dtype(a)) < 256)
		return NULL;
	for (u32 i = 0; i < ARRAY_LEN(wgmma_table); i++) {
		const struct wgmma *w = &wgmma_table[i];
		bool tf32 = w->a != DT_F32 || dot->attr[ATTR_PRECISION] == PRECISION_TF32;
		if (w->a == type_dtype(a) && w->b == type_dtype(b) && w->acc == type_dtype(t) && tf32)
			return w;
	}
	return NULL;
}
