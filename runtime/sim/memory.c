/* Decoding and execution of loads, stores, address conversions and prefetches. */
#include "runtime/sim/bulk.h"
#include "runtime/sim/cluster.h"
#include "runtime/sim/sync.h"

#include <string.h>

/* flags, then the shifts of three fields of four bits each */
enum { M_ACQUIRE = 1, M_RELEASE = 2, M_STRONG = 4, M_SPACE = 8, M_VEC = 12, M_SCOPE = 16 };

static enum ptx_space space_of(const struct instr *i)
{
	return (enum ptx_space)(i->mods >> M_SPACE & 15);
}

static enum scope scope_of(const struct instr *i)
{
	return (enum scope)(i->mods >> M_SCOPE & 15);
}

static u32 vector_of(const struct instr *i)
{
	return (u32)(i->mods >> M_VEC & 15);
}

#define FOR_LANES(l, mask, body)                                                                                       \
	do {                                                                                                           \
		if ((mask) == ALL_LANES) {                                                                             \
			for (u32 l = 0; l < LANES; l++)                                                                \
				body;                                                                                  \
		} else {                                                                                               \
			EACH_LANE(l, mask)                                                                             \
			body;                                                                                          \
		}                                                                                                      \
	} while (0)

/* --- qualifiers ------------------------------------------------------------------------------------------------ */

bool take_space(struct decoder *d, enum ptx_space *space)
{
	static const enum ptx_space spaces[] = {SPACE_GLOBAL, SPACE_SHARED, SPACE_SHARED, SPACE_CLUSTER,
						SPACE_PARAM,  SPACE_LOCAL,  SPACE_CONST};
	int k = take_one_of(d, "global shared shared::cta shared::cluster param local const");
	*space = k < 0 ? SPACE_GENERIC : spaces[k];
	if (*space == SPACE_CLUSTER && !needs_clusters(d))
		return false;
	enum ptx_space of_variable = *space == SPACE_CLUSTER ? SPACE_SHARED : *space;
	for (u32 n = 0; n < d->i->nops; n++) {
		const struct operand *o = &d->i->ops[n];
		if (o->kind == O_ADDRESS && o->var && k >= 0 && o->var->space != of_variable)
			return decode_fail(d, "'%s' is in another space", o->var->name);
	}
	return true;
}

bool want_policy(struct decoder *d, u32 n)
{
	if (!take(d, "L2::cache_hint"))
		return want_operands(d, n, n);
	if (!want_operands(d, n + 1, n + 1))
		return false;
	const struct operand *o = &d->i->ops[n];
	return (o->kind == O_REG && ptx_bits(o->reg_type) == 64) ||
	       decode_fail(d, "a cache policy is a register of 64 bits");
}

bool is_float_type(enum ptx_type t)
{
	return t >= PT_F16;
}

static bool is_integer_type(enum ptx_type t)
{
	return t >= PT_U8 && t <= PT_S64;
}

bool fits_type(const struct operand *o, enum ptx_type t, bool is_result)
{
	if (is_result && o->kind == O_SINK)
		return true;
	if (o->kind != O_REG)
		return !is_result && (o->kind == O_INT || (o->kind == O_FLOAT && !is_integer_type(t)));
	int have = ptx_bits(o->reg_type), want = ptx_bits(t);
	if (o->reg_type == PT_PRED || have < want || (is_float_type(t) && have != want))
		return false;
	return !(is_float_type(t) && is_integer_type(o->reg_type)) &&
	       !(is_integer_type(t) && is_float_type(o->reg_type));
}

/* Items of a vector operand, or the operand itself. */
static const struct operand *items_of(const struct operand *o)
{
	return o->kind == O_VECTOR ? o->items : o;
}

static bool take_memory_type(struct decoder *d, const struct operand *values, bool is_result)
{
	static const u32 counts[] = {2, 4, 8};
	struct instr *i = d->i;
	int vec = take_one_of(d, "v2 v4 v8");
	u32 n = vec < 0 ? 1 : counts[vec];
	enum ptx_type t = i->type[0] = take_type(d);
	bool known = (t >= PT_B8 && t <= PT_S64 && t != PT_B128) || t == PT_F32 || t == PT_F64;
	if (!known)
		return decode_fail(d, "'%s' with a type that memory does not have", i->opcode);
	u32 total = n * (u32)ptx_bits(t) / 8;
	if (total > 32 || (n == 8 && total != 32) || (total == 32 && d->module->sm < 100))
		return decode_fail(d, "'%s' accesses too much at once", i->opcode);
	if ((values->kind == O_VECTOR) != (n > 1) || (n > 1 && values->nitems != n))
		return decode_fail(d, "'%s' with another number of values", i->opcode);
	for (u32 k = 0; k < n; k++)
		if (!fits_type(&items_of(values)[k], t, is_result))
			return decode_fail(d, "'%s' with a register of another type", i->opcode);
	i->mods |= (u64)n << M_VEC;
	return true;
}

enum scope take_scope(struct decoder *d, bool *given)
{
	static const enum scope scopes[] = {SCOPE_CTA, SCOPE_CLUSTER, SCOPE_GPU, SCOPE_GPU};
	int k = take_one_of(d, "cta cluster gpu sys");
	*given = k >= 0;
	return k < 0 ? SCOPE_GPU : scopes[k];
}

/* Takes .weak, .volatile, .relaxed.scope or `sync`.scope, where `sync` is "acquire" or "release". */
static bool take_order(struct decoder *d, const char *sync, u64 sync_mod)
{
	bool weak = take(d, "weak"), vol = take(d, "volatile"), relaxed = take(d, "relaxed"), syncs = take(d, sync);
	bool scoped;
	enum scope scope = take_scope(d, &scoped);
	if (weak + vol + relaxed + syncs > 1 || scoped != (relaxed || syncs))
		return decode_fail(d, "'%s' with an order and scope that do not match", d->i->opcode);
	d->i->mods |= (vol || relaxed || syncs ? M_STRONG : 0) | (syncs ? sync_mod : 0) | (u64)scope << M_SCOPE;
	return true;
}

static bool take_hints(struct decoder *d, const char *operators)
{
	int cop = take_one_of(d, operators);
	int l1 = take_one_of(d, "L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate");
	int l2 = take_one_of(d, "L2::evict_normal L2::evict_first L2::evict_last");
	if (cop >= 0 && (l1 >= 0 || l2 >= 0 || d->i->mods & M_STRONG))
		return decode_fail(d, "'%s' with qualifiers that exclude each other", d->i->opcode);
	return true;
}

/* A .param variable has a fixed size, so an access beyond its end is a decoding error, not a fault. */
static bool within_param(struct decoder *d, const struct operand *o)
{
	u64 bytes = vector_of(d->i) * (u64)ptx_bits(d->i->type[0]) / 8;
	if (!o->var || o->var->space != SPACE_PARAM)
		return true;
	if (o->imm > o->var->size || bytes > o->var->size - o->imm)
		return decode_fail(d, "'%s' reaches past the end of '%s'", d->i->opcode, o->var->name);
	return (o->var->offset + o->imm) % bytes == 0 ||
	       decode_fail(d, "'%s' of '%s' is misaligned", d->i->opcode, o->var->name);
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

/* Load of a kernel parameter: all lanes read the same address. */
static bool load_param(struct warp *w, const struct instr *i, u32 mask)
{
	const struct operand *from = &i->ops[1], *to = items_of(&i->ops[0]);
	u32 n = vector_of(i), step = (u32)ptx_bits(i->type[0]) / 8;
	const char *host = w->block->launch->params + from->var->offset + from->imm;
	load_fn *load = loader(i->type[0], false);
	for (u32 k = 0; k < n; k++) {
		char *same[LANES] = {(char *)(uintptr_t)host};
		u64 v[LANES];
		int bits = to[k].kind == O_REG ? ptx_bits(to[k].reg_type) : 0;
		load(same, k * step, v, bits >= 64 ? UINT64_MAX : ((u64)1 << bits) - 1, 1);
		if (to[k].kind == O_REG) {
			u64 *r = reg(w, &to[k]);
			FOR_LANES(l, mask, { r[l] = v[0]; });
		}
	}
	return true;
}

static void run_ld(struct warp *w, const struct instr *i, u32 mask)
{
	u32 n = vector_of(i), step = (u32)ptx_bits(i->type[0]) / 8;
	bool strong = i->mods & M_STRONG;
	const struct operand *to = items_of(&i->ops[0]), *from = &i->ops[1];
	if (from->var && from->var->is_kernel_param && !from->has_reg) {
		load_param(w, i, mask);
		return;
	}
	struct places p;
	p.values = NULL;
	p.may_be_stale = !strong;
	if (!find_places(w, i, mask, from, space_of(i), n * step, A_READ | (strong ? A_STRONG : 0), &p))
		return;
	load_fn *load = loader(i->type[0], strong);
	for (u32 k = 0; k < n; k++) {
		if (to[k].kind != O_REG)
			continue;
		int bits = ptx_bits(to[k].reg_type);
		load(p.host, k * step, reg(w, &to[k]), bits >= 64 ? UINT64_MAX : ((u64)1 << bits) - 1, mask);
	}
	if (p.stale)
		stale_begin(w, i, p.stale, p.what);
	if (!strong)
		return;
	w->block->polls++;
	sync_lock(w);
	if (i->mods & M_ACQUIRE) {
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		sync_acquire(w, mask, &p, scope_of(i));
	} else {
		sync_relaxed(w, mask, &p, A_READ);
	}
	sync_unlock(w);
}

static bool decode_ld(struct decoder *d)
{
	struct instr *i = d->i;
	enum ptx_space space;
	if (i->nops < 2 || i->ops[1].kind != O_ADDRESS || !take_space(d, &space) ||
	    !take_order(d, "acquire", M_ACQUIRE))
		return false;
	bool nc = take(d, "nc");
	if (nc && (space != SPACE_GLOBAL || i->mods & M_STRONG))
		return decode_fail(d, "'%s': only weak loads of global memory can be non-coherent", i->opcode);
	if (!take_hints(d, "ca cg cs lu cv") || !take_memory_type(d, &i->ops[0], true))
		return false;
	take_one_of(d, "L2::64B L2::128B L2::256B");
	i->mods |= (u64)space << M_SPACE;
	i->run = run_ld;
	return within_param(d, &i->ops[1]) && want_policy(d, 2);
}

static bool decode_ldu(struct decoder *d)
{
	struct instr *i = d->i;
	enum ptx_space space;
	if (!want_operands(d, 2, 2) || i->ops[1].kind != O_ADDRESS || !take_space(d, &space))
		return false;
	if (space != SPACE_GLOBAL && space != SPACE_GENERIC)
		return decode_fail(d, "'%s' is of global memory", i->opcode);
	i->mods |= (u64)space << M_SPACE;
	i->run = run_ld;
	return take_memory_type(d, &i->ops[0], true);
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
	const struct operand *from = items_of(&i->ops[1]);
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
			fault(w, i, 1u << l | 1u << other,
			      "race: lanes %u and %u write different values to %sbytes "
			      "0x%llx–0x%llx in one instruction", l, other,
			      space, (unsigned long long)(mine - base), (unsigned long long)(mine + step - 1 - base));
			return false;
		}
	}
	return true;
}

static void run_st(struct warp *w, const struct instr *i, u32 mask)
{
	u32 n = vector_of(i), step = (u32)ptx_bits(i->type[0]) / 8;
	bool strong = i->mods & M_STRONG;
	const struct operand *from = items_of(&i->ops[1]);
	struct places p = {.values = from, .step = step};
	if (!find_places(w, i, mask, &i->ops[0], space_of(i), n * step, A_WRITE | (strong ? A_STRONG : 0), &p))
		return;
	if (strong) {
		sync_lock(w);
		if (i->mods & M_RELEASE)
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

static bool decode_st(struct decoder *d)
{
	struct instr *i = d->i;
	enum ptx_space space;
	if (take(d, "async"))
		return decode_st_async(d);
	if (i->nops < 2 || i->ops[0].kind != O_ADDRESS || !take_space(d, &space) ||
	    !take_order(d, "release", M_RELEASE))
		return false;
	const struct ptx_var *v = i->ops[0].var;
	if (space == SPACE_CONST || (space == SPACE_PARAM && (!v || v->is_kernel_param)))
		return decode_fail(d, "'%s' writes read-only memory", i->opcode);
	if (!take_hints(d, "wb cg cs wt") || !take_memory_type(d, &i->ops[1], false))
		return false;
	i->mods |= (u64)space << M_SPACE;
	i->run = run_st;
	return within_param(d, &i->ops[0]) && want_policy(d, 2);
}

/* --- addresses ------------------------------------------------------------------------------------------------- */

static u64 window_base(enum ptx_space space)
{
	return space == SPACE_SHARED || space == SPACE_CLUSTER ? SHARED_WINDOW
	       : space == SPACE_LOCAL ? LOCAL_WINDOW
	       : space == SPACE_PARAM ? PARAM_WINDOW
				      : 0;
}

/* mods is the offset to add. */
static void run_cvta(struct warp *w, const struct instr *i, u32 mask)
{
	u64 space[LANES], *to = reg(w, &i->ops[0]), offset = i->mods;
	const u64 *from = operand_lanes(w, &i->ops[1], 64, space);
	FOR_LANES(l, mask, { to[l] = from[l] + offset; });
}

static bool is_wide_register(const struct operand *o)
{
	return o->kind == O_REG && ptx_bits(o->reg_type) == 64;
}

static bool decode_cvta(struct decoder *d)
{
	struct instr *i = d->i;
	enum ptx_space space;
	bool to = take(d, "to");
	if (!want_operands(d, 2, 2) || !take_space(d, &space) || space == SPACE_GENERIC || !take(d, "u64"))
		return false;
	const struct operand *from = &i->ops[1];
	if (!is_wide_register(&i->ops[0]) ||
	    !(is_wide_register(from) || (!to && from->kind == O_SYMBOL && from->var && from->var->space == space)))
		return decode_fail(d, "'%s' converts another kind of address", i->opcode);
	i->mods = to ? 0 - window_base(space) : window_base(space);
	i->run = run_cvta;
	return true;
}

static void run_isspacep(struct warp *w, const struct instr *i, u32 mask)
{
	EACH_LANE(l, mask)
	{
		u64 at = operand_value(w, &i->ops[1], l, 64), base = window_base((enum ptx_space)i->mods);
		bool in = base ? at >> 52 == base >> 52 : at < PARAM_WINDOW;
		u64 within, rank = (at - base) >> WINDOW_LOG2;
		if (in && base == SHARED_WINDOW && rank)
			in = i->mods == SPACE_CLUSTER ? cluster_block(w->block, at - base, &within) != NULL
						      : rank == w->block->rank + 1;
		set_reg(w, &i->ops[0], l, in);
	}
}

static bool decode_isspacep(struct decoder *d)
{
	struct instr *i = d->i;
	enum ptx_space space;
	if (!want_operands(d, 2, 2) || !take_space(d, &space) || space == SPACE_GENERIC || space == SPACE_CONST)
		return false;
	i->mods = space;
	i->run = run_isspacep;
	return i->ops[0].kind == O_REG && i->ops[0].reg_type == PT_PRED && is_wide_register(&i->ops[1]);
}

/* --- hints ----------------------------------------------------------------------------------------------------- */

static void run_nothing(struct warp *w, const struct instr *i, u32 mask)
{
	(void)w, (void)i, (void)mask;
}

/* A prefetch has no effect, even at an invalid address. */
static bool decode_prefetch(struct decoder *d)
{
	enum ptx_space space;
	if (!want_operands(d, 1, 1) || d->i->ops[0].kind != O_ADDRESS || !take_space(d, &space))
		return false;
	if (take(d, "tensormap")) {
		d->i->run = run_nothing;
		return space == SPACE_GENERIC || space == SPACE_PARAM || space == SPACE_CONST;
	}
	int level = take_one_of(d, "L1 L2 L2::evict_last L2::evict_normal");
	bool evicts = level >= 2;
	d->i->run = run_nothing;
	return level >= 0 && (space == SPACE_GLOBAL || (!evicts && (space == SPACE_GENERIC || space == SPACE_LOCAL)));
}

static bool decode_prefetchu(struct decoder *d)
{
	d->i->run = run_nothing;
	return want_operands(d, 1, 1) && d->i->ops[0].kind == O_ADDRESS && take(d, "L1");
}

/* A cache policy is an opaque number that only cache hints use. */
static void run_createpolicy(struct warp *w, const struct instr *i, u32 mask)
{
	EACH_LANE(l, mask)
	set_reg(w, &i->ops[0], l, 1);
}

static bool decode_createpolicy(struct decoder *d)
{
	int way = take_one_of(d, "fractional range cvt");
	d->i->run = run_createpolicy;
	if (way == 2)
		return take(d, "L2") && take(d, "b64") && want_operands(d, 2, 2) && is_wide_register(&d->i->ops[0]);
	if (way < 0 || take_one_of(d, "L2::evict_last L2::evict_normal L2::evict_first L2::evict_unchanged") < 0)
		return false;
	take_one_of(d, "L2::evict_first L2::evict_unchanged");
	if (way == 1)
		take(d, "global");
	return take(d, "b64") && want_operands(d, way == 1 ? 4 : 1, way == 1 ? 4 : 2) &&
	       is_wide_register(&d->i->ops[0]);
}

const struct isa_row memory_opcodes[] = {
	{"ld", decode_ld},
	{"ldu", decode_ldu},
	{"st", decode_st},
	{"atom", decode_atom},
	{"red", decode_red},
	{"cvta", decode_cvta},
	{"isspacep", decode_isspacep},
	{"prefetch", decode_prefetch},
	{"prefetchu", decode_prefetchu},
	{"createpolicy", decode_createpolicy},
	{0},
};
