/* atom and red: read-modify-write of one word, atomic with respect to all other accesses by threads of the host.
 *
 * Lanes execute in ascending order. An f32 addition in global memory flushes subnormals, one in shared memory does not;
 * additions of 16-bit floats and of f64 keep them (PTX ISA, "atom"). */
#include "runtime/sim/alu.h"
#include "runtime/sim/memory.h"

#define APPLY(name, expr)                                                                                              \
	static u64 apply_##name(u64 old, u64 b, u64 c)                                                                 \
	{                                                                                                              \
		(void)old, (void)b, (void)c;                                                                           \
		return expr;                                                                                           \
	}

APPLY(and, old &b)
APPLY(or, old | b)
APPLY(xor, old ^ b)
APPLY(exch, b)
APPLY(cas, old == b ? c : old)
APPLY(add_32, (u32)(old + b))
APPLY(add_64, old + b)
APPLY(inc, old >= b ? 0 : old + 1)
APPLY(dec, !old || old > b ? b : old - 1)
APPLY(min_u, MIN(old, b))
APPLY(max_u, MAX(old, b))
APPLY(min_s32, (i32)old < (i32)b ? old : b)
APPLY(max_s32, (i32)old > (i32)b ? old : b)
APPLY(min_s64, (i64)old < (i64)b ? old : b)
APPLY(max_s64, (i64)old > (i64)b ? old : b)

static u64 sum_f64(u64 a, u64 b)
{
	double x = fp_f64_bits(a), y = fp_f64_bits(b);
	return x != x ? a : y != y ? b : fp_bits_f64(x + y);
}

APPLY(add_f32, put_f32(get_f32(old, 0) + get_f32(b, 0), 0))
APPLY(add_f32_flush, put_f32(get_f32(old, F_FTZ) + get_f32(b, F_FTZ), F_FTZ))
APPLY(add_f64, sum_f64(old, b))

/* Sum of two 16-bit floats. The first rounding, to float, does not change the result, because a float has more than
 * twice the digits. */
static u16 add_f16(u16 a, u16 b)
{
	return fp_to_f16(fp_from_f16(a) + fp_from_f16(b));
}

static u16 add_bf16(u16 a, u16 b)
{
	return fp_to_bf16(fp_from_bf16(a) + fp_from_bf16(b));
}

/* Minimum of two numbers, with -0 below +0 and a number preferred to a NaN. `inf` is the format's infinity. */
static u16 least(u16 a, u16 b, u16 inf)
{
	bool a_nan = (a & 0x7FFF) > inf, b_nan = (b & 0x7FFF) > inf;
	i32 x = a & 0x8000 ? -(a & 0x7FFF) - 1 : a, y = b & 0x8000 ? -(b & 0x7FFF) - 1 : b;
	if (a_nan || b_nan)
		return a_nan ? b_nan ? 0x7FFF : b : a;
	return x < y ? a : b;
}

static u16 greatest(u16 a, u16 b, u16 inf)
{
	u16 r = least(a ^ 0x8000, b ^ 0x8000, inf);
	return (r & 0x7FFF) > inf ? 0x7FFF : r ^ 0x8000;
}

enum { INF_F16 = 0x7C00, INF_BF16 = 0x7F80 };

#define APPLY_HALVES(name, expr)                                                                                       \
	static u16 half_##name(u16 old, u16 b)                                                                         \
	{                                                                                                              \
		return expr;                                                                                           \
	}                                                                                                              \
	APPLY(name, half_##name((u16)old, (u16)b))                                                                     \
	APPLY(name##x2, half_##name((u16)old, (u16)b) | (u64)half_##name((u16)(old >> 16), (u16)(b >> 16)) << 16)
APPLY_HALVES(add_f16, add_f16(old, b))
APPLY_HALVES(add_bf16, add_bf16(old, b))
APPLY_HALVES(min_f16, least(old, b, INF_F16))
APPLY_HALVES(max_f16, greatest(old, b, INF_F16))
APPLY_HALVES(min_bf16, least(old, b, INF_BF16))
APPLY_HALVES(max_bf16, greatest(old, b, INF_BF16))

/* Function of a floating-point operation; NULL if the instruction does not exist. */
static apply_fn *float_op(enum atomic_operation op, enum ptx_type t, bool in_shared)
{
	bool add = op == OP_ADD, min = op == OP_MIN;
	if (!add && !min && op != OP_MAX)
		return NULL;
	switch (t) {
	case PT_F16: return add ? apply_add_f16 : min ? apply_min_f16 : apply_max_f16;
	case PT_F16X2: return add ? apply_add_f16x2 : min ? apply_min_f16x2 : apply_max_f16x2;
	case PT_BF16: return add ? apply_add_bf16 : min ? apply_min_bf16 : apply_max_bf16;
	case PT_BF16X2: return add ? apply_add_bf16x2 : min ? apply_min_bf16x2 : apply_max_bf16x2;
	case PT_F32: return !add ? NULL : in_shared ? apply_add_f32 : apply_add_f32_flush;
	case PT_F64: return add ? apply_add_f64 : NULL;
	default: return NULL;
	}
}

static apply_fn *integer_op(enum atomic_operation op, enum ptx_type t)
{
	bool bits = t == PT_B32 || t == PT_B64, word = t == PT_U32 || t == PT_S32;
	bool is_unsigned = t == PT_U32 || t == PT_U64, is_signed = t == PT_S32 || t == PT_S64;
	switch (op) {
	case OP_AND: return bits ? apply_and : NULL;
	case OP_OR: return bits ? apply_or : NULL;
	case OP_XOR: return bits ? apply_xor : NULL;
	case OP_EXCH: return bits ? apply_exch : NULL;
	case OP_CAS: return bits || t == PT_B16 ? apply_cas : NULL;
	case OP_ADD: return word ? apply_add_32 : t == PT_U64 ? apply_add_64 : NULL;
	case OP_INC: return t == PT_U32 ? apply_inc : NULL;
	case OP_DEC: return t == PT_U32 ? apply_dec : NULL;
	case OP_MIN: return is_unsigned ? apply_min_u : !is_signed ? NULL : word ? apply_min_s32 : apply_min_s64;
	default: return is_unsigned ? apply_max_u : !is_signed ? NULL : word ? apply_max_s32 : apply_max_s64;
	}
}

static apply_fn *apply_of(enum atomic_operation op, enum ptx_type t, bool in_shared)
{
	return is_float(t) ? float_op(op, t, in_shared) : integer_op(op, t);
}

/* --- running --------------------------------------------------------------------------------------------------- */

#define EXCHANGE(T)                                                                                                    \
	static u64 exchange_##T(char *host, apply_fn *apply, u64 b, u64 c)                                             \
	{                                                                                                              \
		T *word = (T *)(void *)host, old = __atomic_load_n(word, __ATOMIC_RELAXED), new;                       \
		do                                                                                                     \
			new = (T)apply(old, b, c);                                                                     \
		while (!__atomic_compare_exchange_n(word, &old, new, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));       \
		return old;                                                                                            \
	}
EXCHANGE(u16)
EXCHANGE(u32)
EXCHANGE(u64)

apply_fn *reduction(enum atomic_operation op, enum ptx_type t, bool flushes)
{
	return op == OP_CAS || op == OP_EXCH ? NULL : apply_of(op, t, !flushes);
}

void reduce_words(char *to, const char *from, u32 bytes, u32 size, apply_fn *apply)
{
	for (u32 at = 0; at < bytes; at += size) {
		u64 b = 0;
		memcpy(&b, from + at, size);
		if (size == 2)
			exchange_u16(to + at, apply, b, 0);
		else if (size == 4)
			exchange_u32(to + at, apply, b, 0);
		else
			exchange_u64(to + at, apply, b, 0);
	}
}

static enum atomic_operation operation_of(const struct instr *i)
{
	return (enum atomic_operation)(i->mod[M_ATOM] - 1);
}

/* Executes one lane. Each element of a vector is a separate atomic. */
static void run_lane(struct warp *w, const struct instr *i, u32 l, char *host, apply_fn *apply)
{
	u32 n = vector_of(i);
	int bits = ptx_bits(i->type[0]);
	const struct operand *from = &i->ops[1 + i->has_result], *values = operand_items(from);
	u64 b[8], old[8];
	for (u32 k = 0; k < n; k++)
		b[k] = operand_value(w, &values[k], l, bits);
	u64 c = operation_of(i) == OP_CAS ? operand_value(w, from + 1, l, bits) : 0;
	for (u32 k = 0; k < n; k++) {
		char *word = host + k * (u32)bits / 8;
		old[k] = bits == 16   ? exchange_u16(word, apply, b[k], c)
			 : bits == 32 ? exchange_u32(word, apply, b[k], c)
				      : exchange_u64(word, apply, b[k], c);
	}
	for (u32 k = 0; i->has_result && k < n; k++)
		set_reg(w, &operand_items(&i->ops[0])[k], l, old[k]);
}

void run_atomic(struct warp *w, const struct instr *i, u32 mask)
{
	enum atomic_operation op = operation_of(i);
	apply_fn *in_global = apply_of(op, i->type[0], false), *in_shared = apply_of(op, i->type[0], true);
	struct places p = {.values = NULL};
	if (!find_places(w, i, mask, &i->ops[i->has_result], i->space, vector_of(i) * (u32)ptx_bits(i->type[0]) / 8,
			 A_READ | A_WRITE | A_STRONG, &p))
		return;
	bool lock = acquires(i) || releases(i) || w->block->launch->kernel->has_fences;
	u32 relaxed = (acquires(i) ? 0 : A_READ) | (releases(i) ? 0 : A_WRITE);
	if (lock)
		sync_lock(w);
	if (releases(i))
		sync_release(w, mask, &p, scope_of(i));
	sync_relaxed(w, mask, &p, relaxed);
	w->block->polls += i->has_result;
	EACH_LANE(l, mask)
	run_lane(w, i, l, p.host[l], p.in_shared >> l & 1 ? in_shared : in_global);
	if (acquires(i))
		sync_acquire(w, mask, &p, scope_of(i));
	if (lock)
		sync_unlock(w);
}

/* --- checks ---------------------------------------------------------------------------------------------------- */

/* Vectors: v2 and v4 of .f32, up to v8 of 16-bit floats, up to v4 of pairs; in global memory. */
static bool has_vector(const struct instr *i)
{
	enum ptx_type t = i->type[0];
	bool add = operation_of(i) == OP_ADD;
	if (!i->mod[M_VEC]) /* scalar 16-bit floats support add only */
		return add || !is_half(t);
	if (i->space != SPACE_GLOBAL && i->space != SPACE_GENERIC)
		return false;
	return (is_half(t) && (!is_packed(t) || vector_of(i) <= 4)) || (t == PT_F32 && vector_of(i) <= 4 && add);
}

bool check_atomic(struct decoder *d)
{
	const struct instr *i = d->i;
	bool exists = apply_of(operation_of(i), i->type[0], false) && is_half(i->type[0]) == (i->mod[M_NOFTZ] != 0);
	if (!exists || !has_vector(i))
		return decode_fail(d, "there is no '%s'", i->opcode);
	return need_sm(d, i->mod[M_VEC] || is_bf(i->type[0]) ? 90 : 0);
}
