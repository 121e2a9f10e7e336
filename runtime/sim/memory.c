/* Execution of loads, stores, address conversions and prefetches. */
#include "runtime/sim/alu.h"
#include "runtime/sim/bulk.h"
#include "runtime/sim/cluster.h"
#include "runtime/sim/sync.h"

#include <string.h>

/* --- checks ---------------------------------------------------------------------------------------------------- */

/* A .param variable has a fixed size, so an access beyond its end is a decoding error, not a fault. */
static bool within_param(struct decoder *d, const struct operand *o, u32 bytes)
{
	if (!o->var || o->var->space != SPACE_PARAM)
		return true;
	if (o->imm > o->var->size || bytes > o->var->size - o->imm)
		return decode_fail(d, "'%s' reaches past the end of '%s'", d->i->opcode, o->var->name);
	return (o->var->offset + o->imm) % bytes == 0 ||
	       decode_fail(d, "'%s' of '%s' is misaligned", d->i->opcode, o->var->name);
}

bool check_access(struct decoder *d)
{
	const struct instr *i = d->i;
	u32 n = vector_of(i), bytes = n * (u32)ptx_bits(i->type[0]) / 8;
	if (bytes > 32 || (n == 8 && bytes != 32) || (bytes == 32 && d->module->sm < 100))
		return decode_fail(d, "'%s' accesses too much at once", i->opcode);
	return within_param(d, &i->ops[i->has_result], bytes);
}

bool check_store(struct decoder *d)
{
	enum ptx_space space = d->i->space;
	const struct ptx_var *v = d->i->ops[0].var;
	if (space == SPACE_CONST || (space == SPACE_PARAM && (!v || v->is_kernel_param)))
		return decode_fail(d, "'%s' writes read-only memory", d->i->opcode);
	return check_access(d);
}

/* --- loads ----------------------------------------------------------------------------------------------------- */

typedef void load_fn(char *const host[LANES], u32 offset, u64 *to, u64 keep, u32 mask);

#define LOAD(name, T, W)                                                                                               \
	static void load_##name(char *const host[LANES], u32 offset, u64 *to, u64 keep, u32 mask)                      \
	{                                                                                                              \
		FOR_LANES(l, mask, {                                                                                   \
			T v;                                                                                           \
			memcpy(&v, host[l] + offset, sizeof v);                                                        \
			to[l] = (u64)(W)v & keep;                                                                      \
		});                                                                                                    \
	}                                                                                                              \
	static void load_strong_##name(char *const host[LANES], u32 offset, u64 *to, u64 keep, u32 mask)               \
	{                                                                                                              \
		EACH_LANE(l, mask)                                                                                     \
		to[l] = (u64)(W)__atomic_load_n((const T *)(void *)(host[l] + offset), __ATOMIC_RELAXED) & keep;       \
	}
LOAD(u8, u8, u64)
LOAD(u16, u16, u64)
LOAD(u32, u32, u64)
LOAD(u64, u64, u64)
LOAD(s8, i8, i64)
LOAD(s16, i16, i64)
LOAD(s32, i32, i64)

static load_fn *loader(enum ptx_type t, bool strong)
{
	bool is_signed = t >= PT_S8 && t <= PT_S64;
	switch (ptx_bits(t)) {
	case 8: return is_signed ? strong ? load_strong_s8 : load_s8 : strong ? load_strong_u8 : load_u8;
	case 16: return is_signed ? strong ? load_strong_s16 : load_s16 : strong ? load_strong_u16 : load_u16;
	case 32: return is_signed ? strong ? load_strong_s32 : load_s32 : strong ? load_strong_u32 : load_u32;
	default: return strong ? load_strong_u64 : load_u64;
	}
}

void run_ld(struct warp *w, const struct instr *i, u32 mask)
{
	u32 n = vector_of(i), step = (u32)ptx_bits(i->type[0]) / 8;
	bool strong = i->mod[M_ORDER];
	const struct operand *to = operand_items(&i->ops[0]), *from = &i->ops[1];
	struct places p;
	p.values = NULL;
	p.may_be_stale = !strong;
	if (!find_places(w, i, mask, from, i->space, n * step, A_READ | (strong ? A_STRONG : 0), &p))
		return;
	load_fn *load = loader(i->type[0], strong);
	for (u32 k = 0; k < n; k++) {
		if (to[k].kind != O_REG)
			continue;
		int bits = ptx_bits(to[k].reg_type);
		load(p.host, k * step, reg(w, &to[k]), ones((u32)bits), mask);
	}
	if (p.stale)
		stale_begin(w, i, p.stale, p.what);
	if (!strong)
		return;
	w->block->polls++;
	sync_lock(w);
	if (acquires(i)) {
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		sync_acquire(w, mask, &p, scope_of(i));
	} else {
		sync_relaxed(w, mask, &p, A_READ);
	}
	sync_unlock(w);
}

/* --- stores ---------------------------------------------------------------------------------------------------- */

typedef void store_fn(char *const host[LANES], u32 offset, const u64 *from, u32 mask);

#define STORE(T)                                                                                                       \
	static void store_##T(char *const host[LANES], u32 offset, const u64 *from, u32 mask)                          \
	{                                                                                                              \
		FOR_LANES(l, mask, {                                                                                   \
			T v = (T)from[l];                                                                              \
			memcpy(host[l] + offset, &v, sizeof v);                                                        \
		});                                                                                                    \
	}                                                                                                              \
	static void store_strong_##T(char *const host[LANES], u32 offset, const u64 *from, u32 mask)                   \
	{                                                                                                              \
		EACH_LANE(l, mask)                                                                                     \
		__atomic_store_n((T *)(void *)(host[l] + offset), (T)from[l], __ATOMIC_RELAXED);                       \
	}
STORE(u8)
STORE(u16)
STORE(u32)
STORE(u64)

static store_fn *storer(enum ptx_type t, bool strong)
{
	switch (ptx_bits(t)) {
	case 8: return strong ? store_strong_u8 : store_u8;
	case 16: return strong ? store_strong_u16 : store_u16;
	case 32: return strong ? store_strong_u32 : store_u32;
	default: return strong ? store_strong_u64 : store_u64;
	}
}

static bool may_overlap(const struct places *p, u32 mask, u32 bytes)
{
	const char *end = NULL;
	EACH_LANE(l, mask)
	{
		if (p->host[l] < end)
			return true;
		end = p->host[l] + bytes;
	}
	return false;
}

/* Checks that lanes that stored to the same bytes stored equal values: each lane must find its own value in memory. */
static bool check_overlaps(struct warp *w, const struct instr *i, u32 mask, const struct places *p, u32 n, u32 step)
{
	const struct operand *from = operand_items(&i->ops[1]);
	for (u32 k = 0; k < n; k++) {
		u64 space[LANES];
		const u64 *v = operand_lanes(w, &from[k], (int)step * 8, space);
		EACH_LANE(l, mask)
		{
			const char *mine = p->host[l] + k * step;
			u64 found = 0;
			memcpy(&found, mine, step);
			if (found == v[l])
				continue;
			u32 other = l;
			EACH_LANE(o, mask)
			if (o != l && p->host[o] < mine + step && mine < p->host[o] + n * step)
				other = o;
			const char *space = p->in_shared >> l & 1 ? "shared " : "",
				   *base = *space ? w->block->shared : NULL;
			return fault(w, i, 1u << l | 1u << other,
				     "race: lanes %u and %u write different values to %sbytes "
				     "0x%llx–0x%llx in one instruction", l, other, space, (ull)(mine - base),
				     (ull)(mine + step - 1 - base));
		}
	}
	return true;
}

void run_st(struct warp *w, const struct instr *i, u32 mask)
{
	u32 n = vector_of(i), step = (u32)ptx_bits(i->type[0]) / 8;
	bool strong = i->mod[M_ORDER];
	const struct operand *from = operand_items(&i->ops[1]);
	struct places p = {.values = from, .step = step};
	if (!find_places(w, i, mask, &i->ops[0], i->space, n * step, A_WRITE | (strong ? A_STRONG : 0), &p))
		return;
	if (strong) {
		sync_lock(w);
		if (releases(i))
			sync_release(w, mask, &p, scope_of(i));
		else
			sync_relaxed(w, mask, &p, A_WRITE);
		sync_unlock(w);
		__atomic_thread_fence(__ATOMIC_RELEASE);
	}
	store_fn *store = storer(i->type[0], strong);
	for (u32 k = 0; k < n; k++) {
		u64 space[LANES];
		store(p.host, k * step, operand_lanes(w, &from[k], (int)step * 8, space), mask);
	}
	if (!strong && may_overlap(&p, mask, n * step))
		check_overlaps(w, i, mask, &p, n, step);
	races_end(&p.locks);
}

/* --- addresses ------------------------------------------------------------------------------------------------- */

static u64 window_base(enum ptx_space space)
{
	return space == SPACE_SHARED || space == SPACE_CLUSTER ? SHARED_WINDOW
	       : space == SPACE_LOCAL ? LOCAL_WINDOW
	       : space == SPACE_PARAM ? PARAM_WINDOW
				      : 0;
}

static void add_base(struct warp *w, const struct instr *i, u32 mask, u64 base)
{
	SOURCE(from, 1, 64);
	RESULT(to, 0);
	ALL(l)
	to[l] = from[l] + base;
	FINISH(to, 0);
}

void run_cvta(struct warp *w, const struct instr *i, u32 mask)
{
	add_base(w, i, mask, window_base(i->space));
}

void run_cvta_to(struct warp *w, const struct instr *i, u32 mask)
{
	add_base(w, i, mask, 0 - window_base(i->space));
}

void run_isspacep(struct warp *w, const struct instr *i, u32 mask)
{
	EACH_LANE(l, mask)
	{
		u64 at = operand_value(w, &i->ops[1], l, 64), base = window_base(i->space);
		bool in = base ? at >> 52 == base >> 52 : at < PARAM_WINDOW;
		u64 within, rank = (at - base) >> WINDOW_LOG2;
		if (in && base == SHARED_WINDOW && rank)
			in = i->space == SPACE_CLUSTER ? cluster_block(w->block, at - base, &within) != NULL
						      : rank == w->block->rank + 1;
		set_reg(w, &i->ops[0], l, in);
	}
}

/* --- hints ----------------------------------------------------------------------------------------------------- */

void run_nothing(struct warp *w, const struct instr *i, u32 mask)
{
	(void)w, (void)i, (void)mask;
}

/* A cache policy is an opaque number that only cache hints use. */
void run_createpolicy(struct warp *w, const struct instr *i, u32 mask)
{
	EACH_LANE(l, mask)
	set_reg(w, &i->ops[0], l, 1);
}
