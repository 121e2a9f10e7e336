/* atom and red: read-modify-write of one word, atomic with respect to all other accesses by threads of the host.
 *
 * Lanes execute in ascending order. An f32 addition in global memory flushes subnormals, one in shared memory does not;
 * additions of 16-bit floats and of f64 keep them (PTX ISA, "atom"). */
#include "support/small_floats.h"
#include "runtime/sim/memory.h"

enum {
	A_ACQUIRES = 1,
	A_RELEASES = 2,
	A_RETURNS = 4,
	A_OP = 4,
	A_SPACE = 8,
	A_VEC = 12,
	A_SCOPE = 16
}; /* flags, then the shifts of four fields of four bits each */
enum op { OP_AND, OP_OR, OP_XOR, OP_CAS, OP_EXCH, OP_ADD, OP_INC, OP_DEC, OP_MIN, OP_MAX };

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

static u32 flush(u32 bits)
{
	return bits & 0x7F800000 ? bits : bits & 0x80000000;
}

static u32 sum_f32(u32 a, u32 b)
{
	float r = fp_f32_bits(a) + fp_f32_bits(b);
	return r != r ? 0x7FFFFFFF : fp_bits_f32(r);
}

static u64 sum_f64(u64 a, u64 b)
{
	double x = fp_f64_bits(a), y = fp_f64_bits(b);
	return x != x ? a : y != y ? b : fp_bits_f64(x + y);
}

APPLY(add_f32, sum_f32((u32)old, (u32)b))
APPLY(add_f32_flush, flush(sum_f32(flush((u32)old), flush((u32)b))))
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
static apply_fn *float_op(enum op op, enum ptx_type t, bool in_shared)
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

static apply_fn *integer_op(enum op op, enum ptx_type t)
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

static apply_fn *apply_of(enum op op, enum ptx_type t, bool in_shared)
{
	return is_float_type(t) ? float_op(op, t, in_shared) : integer_op(op, t);
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

apply_fn *reduction(int op, enum ptx_type t, bool flushes)
{
	return op == OP_CAS || op == OP_EXCH ? NULL : apply_of((enum op)op, t, !flushes);
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

static const struct operand *item(const struct operand *o, u32 n)
{
	return o->kind == O_VECTOR ? &o->items[n] : o;
}

/* Executes one lane. Each element of a vector is a separate atomic. */
static void run_lane(struct warp *w, const struct instr *i, u32 l, char *host, apply_fn *apply)
{
	u32 n = (u32)(i->mods >> A_VEC & 15), returns = i->mods & A_RETURNS ? 1 : 0;
	int bits = ptx_bits(i->type[0]);
	const struct operand *from = &i->ops[1 + returns], *more = from + 1;
	bool is_cas = (i->mods >> A_OP & 15) == OP_CAS;
	u64 b[8], old[8];
	for (u32 k = 0; k < n; k++)
		b[k] = operand_value(w, item(from, k), l, bits);
	u64 c = is_cas ? operand_value(w, more, l, bits) : 0;
	for (u32 k = 0; k < n; k++) {
		char *word = host + k * (u32)bits / 8;
		old[k] = bits == 16   ? exchange_u16(word, apply, b[k], c)
			 : bits == 32 ? exchange_u32(word, apply, b[k], c)
				      : exchange_u64(word, apply, b[k], c);
	}
	for (u32 k = 0; returns && k < n; k++)
		set_reg(w, item(&i->ops[0], k), l, old[k]);
}

static void run_atomic(struct warp *w, const struct instr *i, u32 mask)
{
	u32 n = (u32)(i->mods >> A_VEC & 15), bytes = n * (u32)ptx_bits(i->type[0]) / 8;
	enum op op = (enum op)(i->mods >> A_OP & 15);
	const struct operand *to = &i->ops[i->mods & A_RETURNS ? 1 : 0];
	apply_fn *in_global = apply_of(op, i->type[0], false), *in_shared = apply_of(op, i->type[0], true);
	struct places p = {.values = NULL};
	if (!find_places(w, i, mask, to, (enum ptx_space)(i->mods >> A_SPACE & 15), bytes, A_READ | A_WRITE | A_STRONG,
			 &p))
		return;
	enum scope scope = (enum scope)(i->mods >> A_SCOPE & 15);
	bool acquires = i->mods & A_ACQUIRES, releases = i->mods & A_RELEASES;
	bool lock = acquires || releases || w->block->launch->kernel->has_fences;
	u32 relaxed = (acquires ? 0 : A_READ) | (releases ? 0 : A_WRITE);
	if (lock)
		sync_lock(w);
	if (releases)
		sync_release(w, mask, &p, scope);
	sync_relaxed(w, mask, &p, relaxed);
	w->block->polls += i->mods & A_RETURNS ? 1 : 0;
	EACH_LANE(l, mask)
	run_lane(w, i, l, p.host[l], p.in_shared >> l & 1 ? in_shared : in_global);
	if (acquires)
		sync_acquire(w, mask, &p, scope);
	if (lock)
		sync_unlock(w);
}

/* --- decoding -------------------------------------------------------------------------------------------------- */

/* Takes the vector size. Valid: v2 and v4 of .f32, up to v8 of 16-bit floats, up to v4 of pairs; in global memory, from
 * sm_90 on. */
static bool take_vector(struct decoder *d, enum ptx_space space, enum op op, u32 *n)
{
	static const u32 counts[] = {1, 2, 4, 8};
	enum ptx_type t = d->i->type[0];
	int vec = take_one_of(d, "v2 v4 v8");
	*n = counts[vec + 1];
	bool half = t == PT_F16 || t == PT_BF16, pair = t == PT_F16X2 || t == PT_BF16X2;
	if (vec < 0) /* scalar 16-bit floats support add only */
		return op == OP_ADD || !(half || pair);
	if (d->module->sm < 90 || (space != SPACE_GLOBAL && space != SPACE_GENERIC))
		return false;
	return half || (pair && *n <= 4) || (t == PT_F32 && *n <= 4 && op == OP_ADD);
}

static bool fit_all(const struct operand *o, u32 n, enum ptx_type t, bool is_result)
{
	if ((o->kind == O_VECTOR) != (n > 1) || (n > 1 && o->nitems != n))
		return false;
	for (u32 k = 0; k < n; k++)
		if (!fits_type(item(o, k), t, is_result))
			return false;
	return true;
}

static bool decode_atomic(struct decoder *d, bool returns)
{
	struct instr *i = d->i;
	enum { RELAXED, ACQUIRE, RELEASE, ACQ_REL };
	int sem = take_one_of(d, "relaxed acquire release acq_rel");
	bool scoped;
	enum scope scope = take_scope(d, &scoped);
	enum ptx_space space;
	u32 n, first = returns ? 1 : 0;
	int op = take_one_of(d, ATOMIC_OPERATIONS);
	bool noftz = take(d, "noftz"), is_cas = op == OP_CAS;
	if (op < 0 || !take_space(d, &space) ||
	    (!returns && (is_cas || op == OP_EXCH || sem == ACQUIRE || sem == ACQ_REL)))
		return false;
	enum ptx_type t = i->type[0] = take_type(d);
	bool is_half = t == PT_F16 || t == PT_BF16 || t == PT_F16X2 || t == PT_BF16X2;
	if (!t || !apply_of((enum op)op, t, false) || noftz != is_half || !take_vector(d, space, (enum op)op, &n))
		return decode_fail(d, "there is no '%s'", i->opcode);
	if (space != SPACE_GLOBAL && space != SPACE_SHARED && space != SPACE_CLUSTER && space != SPACE_GENERIC)
		return decode_fail(d, "'%s': atomics are of global and shared memory", i->opcode);
	if (!want_policy(d, first + (is_cas ? 3 : 2)) || i->ops[first].kind != O_ADDRESS)
		return false;
	bool fit = (!returns || fit_all(&i->ops[0], n, t, true)) && fit_all(&i->ops[first + 1], n, t, false);
	if (!fit || (is_cas && !fits_type(&i->ops[first + 2], t, false)))
		return decode_fail(d, "'%s' with a register of another type", i->opcode);
	bool acquires = sem == ACQUIRE || sem == ACQ_REL, releases = sem == RELEASE || sem == ACQ_REL;
	i->mods = (acquires ? A_ACQUIRES : 0) | (releases ? A_RELEASES : 0) | (returns ? A_RETURNS : 0) |
		  (u64)op << A_OP | (u64)space << A_SPACE | (u64)n << A_VEC | (u64)scope << A_SCOPE;
	i->run = run_atomic;
	return true;
}

bool decode_atom(struct decoder *d)
{
	return decode_atomic(d, true);
}

bool decode_red(struct decoder *d)
{
	return decode_atomic(d, false);
}
