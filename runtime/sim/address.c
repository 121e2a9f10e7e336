/* Address resolution: the memory of an address, the checks of an access, and its cost. */
#include "runtime/sim/memory.h"

#include <string.h>

#include "support/byte_map.h"
#include "runtime/sim/cluster.h"

typedef unsigned long long ull;

static const char *plural(u64 n)
{
	return n == 1 ? "" : "s";
}

static const char *verb(const struct instr *i, bool is_write)
{
	if (!strncmp(i->opcode, "atom", 4) || !strncmp(i->opcode, "red.", 4))
		return "atomic";
	if (!strncmp(i->opcode, "cp.", 3))
		return "copy";
	return is_write ? "store" : "load";
}

/* --- global memory --------------------------------------------------------------------------------------------- */

/* Allocation that contains these bytes, or NULL. */
static const struct mem_range *range_of(struct cta *b, u64 address, u64 bytes)
{
	const struct launch *l = b->launch;
	if (!l->nranges)
		return NULL;
	const struct mem_range *r = &l->ranges[MIN(b->last_range, l->nranges - 1)];
	if (range_has(r, address, bytes))
		return r;
	u32 below = ranges_below(l->ranges, l->nranges, address);
	if (!below || !range_has(&l->ranges[below - 1], address, bytes))
		return NULL;
	b->last_range = below - 1;
	return &l->ranges[below - 1];
}

static u8 *written_bits(const struct launch *l, const struct mem_range *r)
{
	return l->written ? l->written[r - l->ranges] : NULL;
}

/* True if the bytes lie in a module-scope variable of the state space. */
static bool in_variable(const struct launch *l, enum ptx_space space, u64 address, u64 bytes)
{
	for (u32 k = 0; k < l->module->nvars; k++) {
		const struct ptx_var *v = l->module->vars[k];
		if (v->space == space && bytes_within(v->offset, v->size, address, bytes))
			return true;
	}
	return false;
}

static void print_whereabouts(const struct launch *l, u64 address, struct strbuf *out)
{
	const struct mem_range *r = ranges_describe(l->ranges, l->nranges, address, ", ", out);
	if (r)
		sb_printf(out, " (%llu bytes)", (ull)r->size);
}

static void fault_unwritten(struct warp *w, const struct instr *i, u32 lane, const struct mem_range *r, u64 address,
			    u32 bytes)
{
	u64 from = bits_first_clear(written_bits(w->block->launch, r), address - range_start(r));
	const char *quote = r->name ? "'" : "";
	fault(w, i, 1u << lane,
	      "%s of %u byte%s of global memory that was never written: byte %llu of %s%s%s, address 0x%llx",
	      verb(i, false), bytes, plural(bytes), (ull)from, quote, r->name ? r->name : "a buffer", quote,
	      (ull)address);
}

char *global_memory_at(struct warp *w, const struct instr *i, u32 lane, u64 address, u32 bytes, u32 align,
		       bool is_write)
{
	const struct launch *l = w->block->launch;
	const char *what = verb(i, is_write);
	if (address < NULL_PAGE) {
		fault(w, i, 1u << lane, "%s of %u byte%s through a null pointer: address 0x%llx", what, bytes,
		      plural(bytes), (ull)address);
		return NULL;
	}
	if (align && address % align) {
		fault(w, i, 1u << lane, "misaligned %s of %u bytes: address 0x%llx is not a multiple of %u", what,
		      bytes, (ull)address, align);
		return NULL;
	}
	const struct mem_range *r = range_of(w->block, address, bytes);
	if (!r) {
		bool variable = in_variable(l, SPACE_GLOBAL, address, bytes) ||
				(!is_write && in_variable(l, SPACE_CONST, address, bytes));
		if (variable || (l->open && address + bytes > address &&
				 !ranges_touch(l->ranges, l->nranges, address, bytes, l->guard)))
			return (char *)(uintptr_t)address;
		struct strbuf text = sb_empty(&w->block->arena);
		print_whereabouts(l, address, &text);
		fault(w, i, 1u << lane, "%s of %u byte%s outside every buffer: address 0x%llx%s", what, bytes,
		      plural(bytes), (ull)address, text.at ? text.at : "");
		return NULL;
	}
	u8 *bits = written_bits(l, r);
	u64 offset = address - range_start(r);
	if (bits && is_write) {
		bits_set(bits, offset, bytes);
	} else if (bits && !bits_all(bits, offset, bytes)) {
		fault_unwritten(w, i, lane, r, address, bytes);
		return NULL;
	}
	return (char *)(uintptr_t)address;
}

/* Lowest and highest address of the lanes, and the bitwise or of all addresses. */
static void extent(const u64 at[LANES], u32 mask, u64 *lo, u64 *hi, u64 *any)
{
	u64 least = UINT64_MAX, most = 0, bits = 0;
	if (mask == ALL_LANES) {
		for (u32 l = 0; l < LANES; l++) {
			least = MIN(least, at[l]);
			most = MAX(most, at[l]);
			bits |= at[l];
		}
	} else {
		EACH_LANE(l, mask)
		{
			least = MIN(least, at[l]);
			most = MAX(most, at[l]);
			bits |= at[l];
		}
	}
	*lo = least;
	*hi = most;
	*any = bits;
}

static bool consecutive(const u64 at[LANES], u32 mask, u32 bytes)
{
	u64 off = 0;
	if (mask != ALL_LANES)
		return false;
	for (u32 l = 1; l < LANES; l++)
		off |= at[l] - at[l - 1] - bytes;
	return !off;
}

/* Checks an access to global memory, with one check for all lanes where possible. False after a fault. */
static bool global_lanes(struct warp *w, const struct instr *i, u32 mask, const u64 at[LANES], u32 bytes, u32 flags)
{
	u64 lo, hi, any;
	extent(at, mask, &lo, &hi, &any);
	const struct mem_range *r =
		any % bytes || hi - lo > UINT32_MAX ? NULL : range_of(w->block, lo, hi - lo + bytes);
	u8 *bits = r ? written_bits(w->block->launch, r) : NULL;
	if (r && !bits)
		return true;
	u64 from = r ? lo - range_start(r) : 0, span = hi - lo + bytes;
	bool compact = r && span <= 4 * LANES * bytes;
	if (compact && bits_all(bits, from, span))
		return true;
	if (compact && !(flags & A_READ) && consecutive(at, mask, bytes)) {
		bits_set(bits, from, span);
		return true;
	}
	EACH_LANE(l, mask)
	{
		bool ok = !(flags & A_READ) || global_memory_at(w, i, l, at[l], bytes, bytes, false);
		if (!ok || (flags & A_WRITE && !global_memory_at(w, i, l, at[l], bytes, bytes, true)))
			return false;
	}
	return true;
}

/* --- the other spaces ------------------------------------------------------------------------------------------ */

static bool check_small(struct warp *w, const struct instr *i, u32 lane, u64 at, u32 bytes, u32 align, bool is_write,
			u64 size, const char *space)
{
	if (align && at % align) {
		fault(w, i, 1u << lane, "misaligned %s of %u bytes: %s address 0x%llx is not a multiple of %u",
		      verb(i, is_write), bytes, space, (ull)at, align);
		return false;
	}
	if (bytes_within(0, size, at, bytes))
		return true;
	fault(w, i, 1u << lane, "%s of %u byte%s outside %s memory: address 0x%llx, which has %llu byte%s",
	      verb(i, is_write), bytes, plural(bytes), space, (ull)at, (ull)size, plural(size));
	return false;
}

static bool shared_lanes(struct warp *w, const struct instr *i, u32 mask, struct places *p, u32 bytes, u32 flags)
{
	struct cta *b = w->block;
	u64 lo, hi, any;
	extent(p->at, mask, &lo, &hi, &any);
	if (any % bytes || !bytes_within(0, b->shared_bytes, lo, 1) || !bytes_within(0, b->shared_bytes, hi, bytes)) {
		EACH_LANE(l, mask)
		if (!check_small(w, i, l, p->at[l], bytes, bytes, flags & A_WRITE, b->shared_bytes, "shared"))
			return false;
	}
	if (mask == ALL_LANES)
		for (u32 l = 0; l < LANES; l++)
			p->host[l] = b->shared + p->at[l];
	else
		EACH_LANE(l, mask)
		p->host[l] = b->shared + p->at[l];
	p->in_shared |= mask;
	shadow_places(w, i, mask, p, bytes, flags);
	return !b->failed;
}

/* As shared_lanes, for addresses in the window of the cluster: own and other blocks' shared memory. */
static bool cluster_lanes(struct warp *w, const struct instr *i, u32 mask, struct places *p, u32 bytes, u32 flags)
{
	struct cta *b = w->block;
	u32 own = 0;
	EACH_LANE(l, mask)
	{
		u64 within;
		struct cta *owner = cluster_block(b, p->at[l], &within);
		if (!owner) {
			fault(w, i, 1u << l, "address 0x%llx is not in shared memory of a block of this cluster",
			      (ull)p->at[l]);
			return false;
		}
		if (owner == b) {
			own |= 1u << l;
			p->at[l] = within;
			continue;
		}
		if (!check_small(w, i, l, within, bytes, bytes, flags & A_WRITE, owner->shared_bytes, "shared") ||
		    !cluster_access(w, i, l, owner))
			return false;
		shadow_visit(w, i, l, owner, within, bytes, flags);
		p->host[l] = owner->shared + within;
	}
	u32 others = mask & ~own;
	struct race_locks none;
	p->in_shared |= others;
	if (b->failed || (others && !races_access(b->cluster->races, w, i, others, p, bytes, flags, &none)))
		return false;
	return !own || shared_lanes(w, i, own, p, bytes, flags);
}

static bool local_lanes(struct warp *w, const struct instr *i, u32 mask, struct places *p, u32 bytes, bool is_write,
			bool is_call)
{
	const struct ptx_kernel *k = w->block->launch->kernel;
	u64 size = is_call ? k->call_bytes : k->local_bytes;
	EACH_LANE(l, mask)
	{
		if (!check_small(w, i, l, p->at[l], bytes, bytes, is_write, size,
				 is_call ? "a call's parameter" : "local"))
			return false;
		p->host[l] = (is_call ? w->call : w->local) + l * size + p->at[l];
	}
	return true;
}

static bool param_lanes(struct warp *w, const struct instr *i, u32 mask, struct places *p, u32 bytes, bool is_write)
{
	const struct launch *l = w->block->launch;
	EACH_LANE(n, mask)
	{
		if (is_write) {
			fault(w, i, 1u << n, "store to the kernel's parameters");
			return false;
		}
		if (!check_small(w, i, n, p->at[n], bytes, bytes, false, l->kernel->param_bytes, "parameter"))
			return false;
		p->host[n] = (char *)(uintptr_t)l->params + p->at[n];
	}
	return true;
}

static bool const_lanes(struct warp *w, const struct instr *i, u32 mask, struct places *p, u32 bytes)
{
	EACH_LANE(l, mask)
	{
		if (p->at[l] % bytes || !in_variable(w->block->launch, SPACE_CONST, p->at[l], bytes)) {
			fault(w, i, 1u << l,
			      "load of %u byte%s outside or misaligned in constant memory: address 0x%llx", bytes,
			      plural(bytes), (ull)p->at[l]);
			return false;
		}
		p->host[l] = (char *)(uintptr_t)p->at[l];
	}
	return true;
}

/* --- addresses ------------------------------------------------------------------------------------------------- */

static enum ptx_space window_of(u64 address, u64 *within)
{
	enum { SIZE_LOG2 = 52 };
	u64 window = address >> SIZE_LOG2 << SIZE_LOG2;
	*within = address - window;
	switch (window) {
	case SHARED_WINDOW: return *within >> WINDOW_LOG2 ? SPACE_CLUSTER : SPACE_SHARED;
	case LOCAL_WINDOW: return SPACE_LOCAL;
	case PARAM_WINDOW: return SPACE_PARAM;
	default: *within = address; return SPACE_GLOBAL;
	}
}

void lane_addresses(const struct warp *w, const struct operand *o, enum ptx_space space, u64 at[LANES])
{
	u64 base = o->imm + (o->var ? o->var->offset : 0);
	bool narrow = (space == SPACE_SHARED || space == SPACE_CLUSTER) && o->has_reg && ptx_bits(o->reg_type) == 32;
	u64 keep = narrow ? UINT32_MAX : UINT64_MAX;
	const u64 *from = &w->regs[(size_t)o->reg * LANES];
	if (o->has_reg)
		for (u32 l = 0; l < LANES; l++)
			at[l] = (from[l] + base) & keep;
	else
		for (u32 l = 0; l < LANES; l++)
			at[l] = base;
}

u64 address_of(const struct warp *w, const struct operand *o, u32 lane, enum ptx_space *space)
{
	u64 at = o->imm + (o->var ? o->var->offset : 0);
	if (o->has_reg)
		at += w->regs[(size_t)o->reg * LANES + lane];
	if (o->var)
		*space = o->var->space;
	else if (*space == SPACE_GENERIC)
		*space = window_of(at, &at);
	else if ((*space == SPACE_SHARED || *space == SPACE_CLUSTER) && o->has_reg && ptx_bits(o->reg_type) == 32)
		at = (u32)at;
	return at;
}

/* --- cost ------------------------------------------------------------------------------------------------------ */

static void add(u64 *counter, u64 n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

static struct counters *counters_of(struct warp *w, const struct instr *i)
{
	return w->block->counters ? &w->block->counters[i - w->block->launch->kernel->code] : NULL;
}

enum { SECTOR = 32 };

void count_bytes(struct warp *w, const struct instr *i, u64 at, u32 bytes)
{
	struct counters *c = counters_of(w, i);
	if (!c || !bytes)
		return;
	add(&c->bytes, bytes);
	add(&c->transactions, (at + bytes - 1) / SECTOR - at / SECTOR + 1);
}

void count_global(struct warp *w, const struct instr *i, u32 mask, const u64 at[LANES], u32 bytes)
{
	struct counters *c = counters_of(w, i);
	u64 seen[LANES];
	u32 nseen = 0;
	if (!c || !bytes)
		return;
	EACH_LANE(l, mask)
	{
		u64 sector = at[l] / SECTOR; /* an aligned access lies in one sector */
		u32 k = nseen;
		while (k && seen[k - 1] != sector)
			k--;
		if (!k)
			seen[nseen++] = sector;
	}
	add(&c->bytes, (u64)bytes * (u32)__builtin_popcount(mask));
	add(&c->transactions, nseen);
}

/* The number of wavefronts of an access is the maximum, over the banks, of the distinct words that the lanes access in
 * the bank. Measured on an H100 with loads of 4 to 16 bytes. */
void count_shared(struct warp *w, const struct instr *i, u32 mask, const u64 at[LANES], u32 bytes, bool conflicts_only)
{
	enum { BANKS = 32, MOST = 4 /* maximum words of a lane */ };
	struct counters *c = counters_of(w, i);
	u64 words[BANKS][LANES * MOST];
	u32 depth[BANKS] = {0}, most = 0, all = 0;
	if (!c)
		return;
	EACH_LANE(l, mask)
	for (u64 word = at[l] / 4; word <= (at[l] + bytes - 1) / 4; word++) {
		u32 bank = word % BANKS, k = depth[bank];
		while (k && words[bank][k - 1] != word)
			k--;
		if (k)
			continue;
		words[bank][depth[bank]++] = word;
		most = MAX(most, depth[bank]);
		all++;
	}
	if (!conflicts_only)
		add(&c->transactions, most);
	add(&c->conflicts, most - (all + BANKS - 1) / BANKS);
}

/* --- all together ---------------------------------------------------------------------------------------------- */

static bool find_in(struct warp *w, const struct instr *i, u32 mask, enum ptx_space space, u32 bytes, u32 flags,
		    bool is_call, struct places *p)
{
	switch (space) {
	case SPACE_GLOBAL:
		for (u32 l = 0; l < LANES; l++)
			p->host[l] = (char *)(uintptr_t)p->at[l];
		if (w->block->counters)
			count_global(w, i, mask, p->at, bytes);
		return global_lanes(w, i, mask, p->at, bytes, flags) &&
		       (!w->block->races ||
			races_access(w->block->races, w, i, mask, p, bytes, flags, p->values ? &p->locks : NULL));
	case SPACE_CLUSTER: return cluster_lanes(w, i, mask, p, bytes, flags);
	case SPACE_SHARED:
		if (w->block->counters)
			count_shared(w, i, mask, p->at, bytes, false);
		return shared_lanes(w, i, mask, p, bytes, flags);
	case SPACE_LOCAL:
		if (flags & A_READ && flags & A_WRITE) {
			fault(w, i, mask, "atomic on local memory");
			return false;
		}
		return local_lanes(w, i, mask, p, bytes, flags & A_WRITE, false);
	case SPACE_CONST: return const_lanes(w, i, mask, p, bytes);
	default:
		return is_call ? local_lanes(w, i, mask, p, bytes, flags & A_WRITE, true)
			       : param_lanes(w, i, mask, p, bytes, flags & A_WRITE);
	}
}

/* A generic access, with lanes in possibly different state spaces. */
static bool find_generic(struct warp *w, const struct instr *i, u32 mask, u32 bytes, u32 flags, struct places *p)
{
	u32 in[SPACE_CLUSTER + 1] = {0};
	EACH_LANE(l, mask)
	in[window_of(p->at[l], &p->at[l])] |= 1u << l;
	if (in[SPACE_GLOBAL] == mask)
		return find_in(w, i, mask, SPACE_GLOBAL, bytes, flags, false, p);
	struct places part = *p;
	for (u32 space = 0; space < ARRAY_LEN(in); space++) {
		if (!in[space])
			continue;
		if (!find_in(w, i, in[space], (enum ptx_space)space, bytes, flags, false, &part)) {
			races_end(&p->locks);
			return false;
		}
		p->locks = part.locks;
		p->stale |= part.stale;
		p->what = part.what;
		EACH_LANE(l, in[space])
		p->host[l] = part.host[l];
		p->in_shared |= part.in_shared;
	}
	return true;
}

bool find_places(struct warp *w, const struct instr *i, u32 mask, const struct operand *o, enum ptx_space space,
		 u32 bytes, u32 flags, struct places *p)
{
	if (o->var)
		space = o->var->space;
	p->in_shared = 0;
	p->locks.races = NULL;
	p->stale = 0;
	lane_addresses(w, o, space, p->at);
	if (space == SPACE_GENERIC)
		return find_generic(w, i, mask, bytes, flags, p);
	bool is_call = space == SPACE_PARAM && o->var && !o->var->is_kernel_param;
	return find_in(w, i, mask, space, bytes, flags, is_call, p);
}
