/* Operations that create and rearrange tiles. Operations that keep the row-major order of elements (expand_dims,
 * reshape, unsplat) need no code: their result shares the storage of their operand (see prepare.c). */
#include "interp/interp_internal.h"

#define FILL(T)                                      \
	do {                                         \
		T *to = dst, v = *(const T *)elem;   \
		for (i64 i = 0; i < n; i++)          \
			to[i] = v;                   \
	} while (0)

void fill(void *dst, const void *elem, u32 bytes, i64 n)
{
	switch (bytes) {
	case 1: memset(dst, *(const mem8 *)elem, (size_t)n); break;
	case 2: FILL(mem16); break;
	case 4: FILL(mem32); break;
	default: FILL(mem64); break;
	}
}

#define GATHER(T)                                         \
	do {                                              \
		T *to = dst;                              \
		const T *from = src;                      \
		for (i64 i = 0; i < n; i++)               \
			to[i] = from[i * stride];         \
	} while (0)

/* Copies a row of n elements that are `stride` apart in the source. */
static void copy_row(void *dst, const void *src, i64 n, i64 stride, u32 bytes)
{
	if (stride == 1) {
		memcpy(dst, src, (size_t)n * bytes);
		return;
	}
	if (stride == 0) {
		fill(dst, src, bytes, n);
		return;
	}
	switch (bytes) {
	case 1: GATHER(mem8); break;
	case 2: GATHER(mem16); break;
	case 4: GATHER(mem32); break;
	default: GATHER(mem64); break;
	}
}

void copy_strided(void *dst, const void *src, int rank, const i32 *shape, const i64 *stride, u32 bytes)
{
	if (rank == 0) {
		memcpy(dst, src, bytes);
		return;
	}
	if (rank == 1) {
		copy_row(dst, src, shape[0], stride[0], bytes);
		return;
	}
	i64 block = bytes;
	for (int k = 1; k < rank; k++)
		block *= shape[k];
	for (i64 i = 0; i < shape[0]; i++) {
		char *to = (char *)dst + i * block;
		const char *from = (const char *)src + i * stride[0] * bytes;
		if (i && stride[0] == 0)
			memcpy(to, dst, (size_t)block);
		else
			copy_strided(to, from, rank - 1, shape + 1, stride + 1, bytes);
	}
}

/* Plan of broadcast and trans: the strides of the source, in the order of the result's dimensions. */
struct shape_plan {
	i64 stride[MAX_RANK];
};

static bool run_copy_strided(struct env *e, const struct inst *i)
{
	const struct shape_plan *w = i->plan;
	copy_strided(e->at[i->out[0]], e->at[i->in[0]], i->type->rank, i->type->shape, w->stride, elem_bytes(i->type));
	return true;
}

bool run_splat(struct env *e, const struct inst *i)
{
	fill(e->at[i->out[0]], e->at[i->in[0]], elem_bytes(i->type), inst_lanes(e, i));
	return true;
}

#define INTERLEAVE(T)                              \
	do {                                       \
		const T *a = x, *b = y;            \
		T *to = d;                         \
		for (i64 k = 0; k < n; k++) {      \
			to[2 * k] = a[k];          \
			to[2 * k + 1] = b[k];      \
		}                                  \
	} while (0)

static bool run_join(struct env *e, const struct inst *i)
{
	const void *x = e->at[i->in[0]], *y = e->at[i->in[1]];
	void *d = e->at[i->out[0]];
	i64 n = i->n / 2;
	switch (elem_bytes(i->type)) {
	case 1: INTERLEAVE(mem8); break;
	case 2: INTERLEAVE(mem16); break;
	case 4: INTERLEAVE(mem32); break;
	default: INTERLEAVE(mem64); break;
	}
	return true;
}

static bool run_split(struct env *e, const struct inst *i)
{
	u32 bytes = elem_bytes(i->type);
	const char *from = e->at[i->in[0]];
	copy_row(e->at[i->out[0]], from, i->n, 2, bytes);
	copy_row(e->at[i->out[1]], from + bytes, i->n, 2, bytes);
	return true;
}

static void strides_of(const struct type *t, i64 *out)
{
	i64 n = 1;
	for (int k = t->rank - 1; k >= 0; k--) {
		out[k] = n;
		n *= t->shape[k];
	}
}

void plan_shape(struct planner *p, const struct op *o, struct inst *i)
{
	struct shape_plan *w = plan_alloc(p, sizeof *w);
	const struct type *from = operand(o, 0)->type, *to = o->results[0].type;
	i64 stride[MAX_RANK] = {0};
	i->plan = w;
	switch (o->code) {
	case IR_SPLAT: i->run = run_splat; return;
	case IR_JOIN: i->run = run_join; return;
	case IR_SPLIT: i->run = run_split; return;
	case IR_BROADCAST:
	case IR_TRANS: break;
	default: tl_unreachable("shape operation");
	}
	strides_of(from, stride);
	for (int k = 0; k < to->rank; k++) {
		int source = o->code == IR_TRANS ? perm_get(o->attr[ATTR_ORDER], k) : k;
		w->stride[k] = from->shape[source] == 1 ? 0 : stride[source];
	}
	i->run = run_copy_strided;
}
