/* tt.dot: D = C + A·B, for tiles of rank 2, or of rank 3 with a leading batch dimension.
 *
 * Operands are converted to panels of the accumulation type: float for every float format up to f32 (products of
 * formats smaller than f32 are exact in float), double for f64, and integers modulo 2^32 or 2^64. Each element is
 * summed in order of k, starting from the accumulator, and product and sum are rounded separately. Blocks of 4 × 8
 * elements are kept in vector registers during the sum, which does not change the order. A result smaller than f32 is
 * rounded once, at the end. */
#include "interp/interp_internal.h"

#pragma STDC FP_CONTRACT OFF

enum { ROWS = 4, COLUMNS = 8 };

typedef void multiply_fn(const void *a, const void *b, const void *c, void *d, i32 m, i32 n, i32 k);

#define DEFINE_MULTIPLY(T)                                                                                            \
	typedef T block_##T __attribute__((vector_size(COLUMNS * sizeof(T)), aligned(sizeof(T)), may_alias));         \
	/* `rows` rows by COLUMNS columns */                                                                          \
	static inline __attribute__((always_inline)) void block_rows_##T(const T *a, const T *b, const T *c, T *d,    \
									 i32 n, i32 k, int rows)                      \
	{                                                                                                             \
		block_##T sum[ROWS];                                                                                  \
		for (int r = 0; r < rows; r++)                                                                        \
			sum[r] = *(const block_##T *)(c + (i64)r * n);                                                \
		for (i32 x = 0; x < k; x++) {                                                                         \
			block_##T v = *(const block_##T *)(b + (i64)x * n);                                           \
			for (int r = 0; r < rows; r++)                                                                \
				sum[r] += a[(i64)r * k + x] * v;                                                      \
		}                                                                                                     \
		for (int r = 0; r < rows; r++)                                                                        \
			*(block_##T *)(d + (i64)r * n) = sum[r];                                                      \
	}                                                                                                             \
	static void multiply_narrow_##T(const T *a, const T *b, const T *c, T *d, i32 m, i32 n, i32 k)                \
	{                                                                                                             \
		for (i32 i = 0; i < m; i++)                                                                           \
			for (i32 j = 0; j < n; j++) {                                                                 \
				T sum = c[i * n + j];                                                                 \
				for (i32 x = 0; x < k; x++)                                                           \
					sum += a[i * k + x] * b[x * n + j];                                           \
				d[i * n + j] = sum;                                                                   \
			}                                                                                             \
	}                                                                                                             \
	static void multiply_##T(const void *av, const void *bv, const void *cv, void *dv, i32 m, i32 n, i32 k)       \
	{                                                                                                             \
		const T *a = av, *b = bv, *c = cv;                                                                    \
		T *d = dv;                                                                                            \
		if (n < COLUMNS) {                                                                                    \
			multiply_narrow_##T(a, b, c, d, m, n, k);                                                     \
			return;                                                                                       \
		}                                                                                                     \
		for (i32 j = 0; j < n; j += COLUMNS) {                                                                \
			i64 i = 0;                                                                                    \
			for (; i + ROWS <= m; i += ROWS)                                                              \
				block_rows_##T(a + i * k, b + j, c + i * n + j, d + i * n + j, n, k, ROWS);           \
			for (; i < m; i++)                                                                            \
				block_rows_##T(a + i * k, b + j, c + i * n + j, d + i * n + j, n, k, 1);              \
		}                                                                                                     \
	}
DEFINE_MULTIPLY(memf32)
DEFINE_MULTIPLY(memf64)
DEFINE_MULTIPLY(mem32)
DEFINE_MULTIPLY(mem64)

/* --- panels -------------------------------------------------------------------------------------------------- */

static void truncate_tf32(void *d, const void *x, const void *y, const void *z, i64 n)
{
	memf32 *r = d;
	const memf32 *p = x;
	(void)y, (void)z;
	for (i64 i = 0; i < n; i++)
		r[i] = fp_truncate_tf32(p[i]);
}

/* The conversion of a tile to a panel: none, one loop, or two loops with floats as intermediate values. */
struct panel {
	elem_loop *convert, *then;
	u32 middle, slot; /* slots of the intermediate values and of the converted elements */
};

struct dot_plan {
	multiply_fn *multiply;
	struct panel a, b, c;
	elem_loop *round; /* conversion of the panel of c to the result, or NULL */
	i32 batch, m, n, k;
	u32 bytes; /* size of an element of a panel */
};

static const void *make_panel(struct env *e, const struct panel *p, u32 slot, i64 n)
{
	const void *tile = e->at[slot];
	if (!p->convert)
		return tile;
	void *out = e->at[p->slot];
	p->convert(p->then ? e->at[p->middle] : out, tile, NULL, NULL, n);
	if (p->then)
		p->then(out, e->at[p->middle], NULL, NULL, n);
	return out;
}

static bool run_dot(struct env *e, const struct inst *i)
{
	const struct dot_plan *w = i->plan;
	i64 size_a = (i64)w->m * w->k, size_b = (i64)w->k * w->n, size_c = (i64)w->m * w->n;
	const char *a = make_panel(e, &w->a, i->in[0], w->batch * size_a);
	const char *b = make_panel(e, &w->b, i->in[1], w->batch * size_b);
	const char *c = make_panel(e, &w->c, i->in[2], w->batch * size_c);
	char *d = w->round ? (char *)c : e->at[i->out[0]];
	for (i32 x = 0; x < w->batch; x++) {
		i64 at_a = x * size_a * w->bytes, at_b = x * size_b * w->bytes, at_c = x * size_c * w->bytes;
		w->multiply(a + at_a, b + at_b, c + at_c, d + at_c, w->m, w->n, w->k);
	}
	if (w->round)
		w->round(e->at[i->out[0]], d, NULL, NULL, w->batch * size_c);
	return true;
}

static void plan_panel(struct planner *p, const struct type *t, enum dtype to, bool tf32, struct panel *out)
{
	enum dtype d = type_dtype(t);
	if (dtype_is_int(d)) {
		enum opcode code = d > to ? IR_TRUNCI : d == DT_I1 ? IR_EXTUI : IR_EXTSI;
		out->convert = d == to ? NULL : find_int_to_int(code, d, to);
	} else {
		elem_loop *steps[3] = {find_decode(d), d == DT_F32 && tf32 ? truncate_tf32 : NULL,
				       d != to && to == DT_F64 ? find_encode(DT_F32, DT_F64, false) : NULL};
		for (u32 k = 0; k < ARRAY_LEN(steps); k++)
			if (steps[k])
				*(out->convert ? &out->then : &out->convert) = steps[k];
	}
	if (out->then)
		out->middle = plan_scratch(p, (size_t)type_numel(t) * sizeof(float));
	if (out->convert)
		out->slot = plan_scratch(p, (size_t)type_numel(t) * (size_t)dtype_bytes(to));
}

void plan_dot(struct planner *p, const struct op *o, struct inst *i)
{
	struct dot_plan *w = plan_alloc(p, sizeof *w);
	const struct type *a = operand(o, 0)->type, *b = operand(o, 1)->type, *c = operand(o, 2)->type;
	enum dtype result = type_dtype(c), sum;
	int r = a->rank;
	bool tf32 = o->attr[ATTR_PRECISION] == PRECISION_TF32;
	if (dtype_is_int(result)) {
		sum = result == DT_I64 ? DT_I64 : DT_I32;
		w->multiply = sum == DT_I64 ? multiply_mem64 : multiply_mem32;
		w->round = result == sum ? NULL : find_int_to_int(IR_TRUNCI, sum, result);
	} else {
		sum = result == DT_F64 || type_dtype(a) == DT_F64 ? DT_F64 : DT_F32;
		w->multiply = sum == DT_F64 ? multiply_memf64 : multiply_memf32;
		w->round = result == sum ? NULL : find_encode(sum, result, false);
	}
	w->bytes = (u32)dtype_bytes(sum);
	w->batch = r == 3 ? a->shape[0] : 1;
	w->m = a->shape[r - 2];
	w->k = a->shape[r - 1];
	w->n = b->shape[r - 1];
	plan_panel(p, a, sum, tf32, &w->a);
	plan_panel(p, b, sum, tf32, &w->b);
	plan_panel(p, c, sum, false, &w->c);
	i->plan = w;
	i->run = run_dot;
}
