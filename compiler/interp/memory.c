/* Loads, stores and atomics. Each access is checked.
 *
 * Neighbouring elements of a tile mostly have neighbouring addresses. So a tile is divided into runs of elements that
 * have consecutive addresses and are all active or all masked off. A run is checked and copied as a whole. Scattered
 * accesses are runs of a single element. */
#include "interp/interp_internal.h"
#include "ir/scalar_math.h"

struct memory_plan {
	u32 bytes;      /* element size */
	enum dtype dtype;
	i32 mask, other; /* number of the operand, or -1 */
	i32 base;        /* the parameter from which addresses are computed, or -1 if unknown */
	u64 poison;
	bool is_bool;
};

/* --- checking ------------------------------------------------------------------------------------------------ */

/* The range in which an access of `w` must stay: NULL for none, &any_memory for any range. */
static const struct mem_range *home_of(const struct env *e, const struct memory_plan *w)
{
	const struct interp_launch *l = e->run->launch;
	return l->homes && w->base >= 0 ? l->homes[w->base] : &any_memory;
}

/* True for memory of the caller: outside every range, and at least `guard` away from each. */
static bool is_open(const struct env *e, u64 address, u64 size)
{
	const struct interp_launch *l = e->run->launch;
	return l->open && address >= NULL_PAGE && address + size >= address &&
	       !ranges_touch(l->ranges, l->nranges, address, size, l->guard);
}

static bool reachable(struct env *e, const struct memory_plan *w, u64 address, u64 size)
{
	const struct interp_launch *l = e->run->launch;
	const struct mem_range *home = home_of(e, w);
	if (home != &any_memory)
		return home && range_has(home, address, size);
	if (range_has(e->range, address, size))
		return true;
	u32 below = ranges_below(l->ranges, l->nranges, address);
	if (below && range_has(&l->ranges[below - 1], address, size)) {
		e->range = &l->ranges[below - 1];
		return true;
	}
	return is_open(e, address, size);
}

static bool fail_access(struct env *e, const struct inst *i, i64 element, u64 address, u32 bytes)
{
	const char *what = i->code == IR_LOAD ? "load" : i->code == IR_STORE ? "store" : "atomic";
	const struct interp_launch *l = e->run->launch;
	struct arena a = {0};
	struct strbuf text = {.arena = &a};
	access_fault_text(&text, what, address, bytes, l->ranges, l->nranges, home_of(e, i->plan));
	fail(e, i, element, "%s", text.at);
	arena_free(&a);
	return false;
}

/* True if one element is accessible; otherwise reports a failure. */
static inline bool check(struct env *e, const struct inst *i, i64 element, u64 address, u32 bytes)
{
	if (!(address & (bytes - 1)) && reachable(e, i->plan, address, bytes))
		return true;
	return fail_access(e, i, element, address, bytes);
}

/* --- loads and stores ---------------------------------------------------------------------------------------- */

/* Copies an element in one access, since other programs may write it concurrently. */
static inline void copy_element(void *dst, const void *src, u32 bytes)
{
	switch (bytes) {
	case 1: *(volatile mem8 *)dst = *(const volatile mem8 *)src; break;
	case 2: *(volatile mem16 *)dst = *(const volatile mem16 *)src; break;
	case 4: *(volatile mem32 *)dst = *(const volatile mem32 *)src; break;
	default: *(volatile mem64 *)dst = *(const volatile mem64 *)src; break;
	}
}

static inline void copy(void *dst, const void *src, i64 n, u32 bytes)
{
	if (n == 1)
		copy_element(dst, src, bytes);
	else
		memmove(dst, src, (size_t)n * bytes);
}

static inline void transfer(char *elements, u64 address, i64 n, u32 bytes, bool is_store)
{
	char *memory = (char *)(uintptr_t)address;
	if (is_store)
		copy(memory, elements, n, bytes);
	else
		copy(elements, memory, n, bytes);
}

/* The end of the run that starts at element k: consecutive elements that are all masked out, or that are all active and
 * contiguous in memory. */
static inline i64 run_end(const mem64 *address, const mem8 *mask, i64 k, i64 n, u32 bytes)
{
	i64 end = k + 1;
	if (mask && !mask[k]) {
		while (end < n && !mask[end])
			end++;
		return end;
	}
	while (end < n && address[end] - address[end - 1] == bytes && (!mask || mask[end]))
		end++;
	return end;
}

/* Transfers a run that is not inside a single range, element by element up to the first invalid one. */
static bool transfer_each(struct env *e, const struct inst *i, const mem64 *address, char *tile, i64 k, i64 end)
{
	const struct memory_plan *w = i->plan;
	for (; k < end; k++) {
		if (!check(e, i, k, address[k], w->bytes))
			return false;
		transfer(tile + k * w->bytes, address[k], 1, w->bytes, i->code == IR_STORE);
	}
	return true;
}

static bool run_transfer(struct env *e, const struct inst *i)
{
	const struct memory_plan *w = i->plan;
	const mem64 *address = e->at[i->in[0]];
	const mem8 *mask = w->mask < 0 ? NULL : e->at[i->in[w->mask]];
	const char *other = w->other < 0 ? NULL : e->at[i->in[w->other]];
	bool is_store = i->code == IR_STORE;
	char *tile = e->at[is_store ? i->in[1] : i->out[0]];
	u32 bytes = w->bytes;
	for (i64 k = 0, end; k < i->n; k = end) {
		end = run_end(address, mask, k, i->n, bytes);
		char *elements = tile + k * bytes;
		if (!mask || mask[k]) {
			if (!(address[k] & (bytes - 1)) && reachable(e, w, address[k], (u64)(end - k) * bytes))
				transfer(elements, address[k], end - k, bytes, is_store);
			else if (!transfer_each(e, i, address, tile, k, end))
				return false;
		} else if (!is_store && other) {
			memmove(elements, other + k * bytes, (size_t)(end - k) * bytes);
		} else if (!is_store) {
			fill(elements, &w->poison, bytes, end - k);
		}
	}
	if (w->is_bool && !is_store) /* the byte in memory may have any value */
		for (i64 k = 0; k < i->n; k++)
			tile[k] = tile[k] != 0;
	return true;
}

/* --- atomics ------------------------------------------------------------------------------------------------- */

/* Combines two floats. The sum of two smaller floats is computed in double, which is exact enough to round it again. */
static u64 combine_floats(enum rmw_kind kind, enum dtype d, u64 old, u64 value)
{
	double a = dtype_decode_float(d, old), b = dtype_decode_float(d, value);
	return dtype_encode_float(d, kind == RMW_MAX ? maxnum_f64(a, b) : kind == RMW_MIN ? minnum_f64(a, b) : a + b);
}

/* The value that an atomic operation stores. */
static u64 combine(enum rmw_kind kind, enum dtype d, u64 old, u64 value)
{
	bool is_float = dtype_is_float(d);
	if (is_float && (kind == RMW_FADD || kind == RMW_ADD || kind == RMW_MAX || kind == RMW_MIN))
		return combine_floats(kind, d, old, value);
	i64 a = is_float ? 0 : dtype_decode_int(d, old), b = is_float ? 0 : dtype_decode_int(d, value);
	switch (kind) {
	case RMW_AND: return old & value;
	case RMW_OR: return old | value;
	case RMW_XOR: return old ^ value;
	case RMW_ADD:
	case RMW_FADD: return old + value;
	case RMW_MAX: return a > b ? old : value;
	case RMW_MIN: return a < b ? old : value;
	case RMW_UMAX: return old > value ? old : value;
	case RMW_UMIN: return old < value ? old : value;
	case RMW_EXCH: return value;
	}
	tl_unreachable("kind of atomic");
}

struct update {
	bool is_cas;
	enum rmw_kind kind;
	enum dtype dtype;
	u64 expected, value;
};

/* One compare-and-swap loop per width. Returns the old bits. */
#define DEFINE_UPDATE(T)                                                                                           \
	static u64 update_##T(T *at, const struct update *u)                                                       \
	{                                                                                                          \
		T old = __atomic_load_n(at, __ATOMIC_SEQ_CST), new;                                                \
		do {                                                                                               \
			if (u->is_cas && old != (T)u->expected)                                                    \
				return old;                                                                        \
			new = (T)(u->is_cas ? u->value : combine(u->kind, u->dtype, old, u->value));               \
		} while (!__atomic_compare_exchange_n(at, &old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));  \
		return old;                                                                                        \
	}
DEFINE_UPDATE(u8)
DEFINE_UPDATE(u16)
DEFINE_UPDATE(u32)
DEFINE_UPDATE(u64)

static u64 update(void *at, u32 bytes, const struct update *u)
{
	switch (bytes) {
	case 1: return update_u8(at, u);
	case 2: return update_u16(at, u);
	case 4: return update_u32(at, u);
	default: return update_u64(at, u);
	}
}

static u64 read_bits(const char *from, u32 bytes)
{
	u64 bits = 0;
	memcpy(&bits, from, bytes);
	return bits;
}

static bool run_atomic(struct env *e, const struct inst *i)
{
	const struct memory_plan *w = i->plan;
	struct update u = {i->code == IR_ATOMIC_CAS, (enum rmw_kind)i->attr[ATTR_RMW], w->dtype, 0, 0};
	const mem64 *address = e->at[i->in[0]];
	const mem8 *mask = w->mask < 0 ? NULL : e->at[i->in[w->mask]];
	const char *first = e->at[i->in[1]], *second = e->at[i->in[2]];
	char *out = e->at[i->out[0]];
	u32 bytes = w->bytes;
	for (i64 k = 0; k < i->n; k++) {
		u64 old = w->poison;
		if (!mask || mask[k]) {
			if (!check(e, i, k, address[k], bytes))
				return false;
			void *at = (void *)(uintptr_t)address[k];
			u.expected = read_bits(first + k * bytes, bytes);
			u.value = u.is_cas ? read_bits(second + k * bytes, bytes) : u.expected;
			old = update(at, bytes, &u);
		}
		memcpy(out + k * bytes, &old, bytes);
	}
	return true;
}

/* --- planning ------------------------------------------------------------------------------------------------ */

static u64 poison_of(enum dtype d)
{
	switch (d) {
	case DT_I1: return 1;
	case DT_E4M3:
	case DT_E5M2: return 0x7F;
	case DT_F16:
	case DT_BF16: return 0x7FFF;
	case DT_F32: return 0x7FC00000;
	case DT_F64: return 0x7FF8000000000000;
	default: return dtype_encode_int(d, 0x5A5A5A5A5A5A5A5B);
	}
}

void plan_memory(struct planner *p, const struct op *o, struct inst *i)
{
	struct memory_plan *w = plan_alloc(p, sizeof *w);
	w->dtype = type_dtype(type_elem(operand(o, 0)->type)->elem);
	w->bytes = (u32)dtype_bytes(w->dtype);
	w->poison = poison_of(w->dtype);
	w->is_bool = w->dtype == DT_I1;
	i32 mask = o->code == IR_LOAD ? 1 : o->code == IR_ATOMIC_CAS ? INT32_MAX : 2;
	w->mask = mask < (i32)o->noperands ? mask : -1;
	w->other = o->code == IR_LOAD && o->noperands > 2 ? 2 : -1;
	w->base = plan_param(p, pointer_base(operand(o, 0)));
	i->plan = w;
	i->run = o->code == IR_LOAD || o->code == IR_STORE ? run_transfer : run_atomic;
	i->type = operand(o, 0)->type; /* messages give elements by the shape of the pointer tile */
	i->n = type_numel(i->type);
}
