/* cp.async.bulk: copies by the async proxy.
 *
 * Copies into shared memory, of the issuing block or of other blocks of the cluster: the bytes are in flight from the
 * instruction until the engine writes them. Afterwards a warp may access them once it has waited for the phase of the
 * mbarrier that counts them. Copies from shared memory: writes to the source are faults until the thread has waited for
 * the bulk group to complete, or at least to be read. */
#include "runtime/sim/bulk.h"
#include "runtime/sim/cluster.h"

#include <string.h>

enum { POISON = 0xFF, UNIT = 16, TENSOR_ALIGN = 128 };

struct bulk {
	u32 open[LANES]; /* number of the group that is open */
	/* copies from shared memory that are not waited for or not completely written */
	VEC(struct transfer *) sources;
};

static struct bulk *bulk_of(struct warp *w)
{
	if (!w->bulk)
		w->bulk = arena_new(&w->block->arena, struct bulk);
	return w->bulk;
}

/* --- pieces ------------------------------------------------------------------------------------------------------ */

static bool global_pieces(struct transfer *t, piece_fn *f)
{
	return t->plan->rank ? tensor_pieces(t, f) : f(t, t->shared, t->global, t->bytes);
}

static bool source_pieces(struct transfer *t, piece_fn *f)
{
	u32 from = t->plan->kind == WITHIN_SHARED ? t->source : t->shared;
	return t->plan->rank && !t->whole ? tensor_pieces(t, f) : f(t, from, 0, t->bytes);
}

static bool check_piece(struct transfer *t, u32 shared, u64 global, u32 bytes)
{
	const struct flight *f = &t->flight;
	bool writes = t->plan->kind == FROM_SHARED, reads = !writes || t->apply;
	(void)shared;
	count_bytes(f->w, f->i, global, bytes);
	return (!reads || global_memory_at(f->w, f->i, f->lane, global, bytes, 1, false)) &&
	       (!writes || global_memory_at(f->w, f->i, f->lane, global, bytes, 1, true));
}

/* A TMA tile that lies entirely outside the tensor accesses the tensor's first element, as on an H200. */
static bool check_outside(const struct transfer *t)
{
	const struct flight *f = &t->flight;
	return !t->plan->rank || !tensor_is_outside(t) ||
	       global_memory_at(f->w, f->i, f->lane, t->map.base, (u32)t->map.strides[0], 1, false);
}

static u32 to_tf32(u32 v)
{
	return (v & 0x7FFFFFFF) > 0x7F800000 ? 0x7FFFE000 : (v + 0x0FFF + (v >> 13 & 1)) & ~(u32)0x1FFF;
}

static bool load_piece(struct transfer *t, u32 shared, u64 global, u32 bytes)
{
	char *to = t->to->shared + shared;
	memcpy(to, (const char *)(uintptr_t)global, bytes);
	bool rounds = t->plan->rank && (t->map.type == TENSOR_TFLOAT32 || t->map.type == TENSOR_TFLOAT32_FTZ);
	for (u32 at = 0; rounds && at < bytes; at += 4) {
		u32 v;
		memcpy(&v, to + at, 4);
		v = to_tf32(v);
		memcpy(to + at, &v, 4);
	}
	return true;
}

static bool store_piece(struct transfer *t, u32 shared, u64 global, u32 bytes)
{
	char *to = (char *)(uintptr_t)global;
	const char *from = t->data + (shared - t->shared);
	if (t->apply)
		reduce_words(to, from, bytes, t->element, t->apply);
	else
		memcpy(to, from, bytes);
	return true;
}

static bool read_source(struct transfer *t, u32 shared, u64 global, u32 bytes)
{
	(void)global;
	struct flight *f = &t->flight;
	shadow_range(f->w, f->i, f->lane, f->w->block, shared, bytes, A_READ | A_ASYNC);
	return !t->flight.w->block->failed;
}

static bool mark_source(struct transfer *t, u32 shared, u64 global, u32 bytes)
{
	(void)global;
	shadow_mark(t->flight.w->block, shared, bytes, MARK_SOURCE, true);
	return true;
}

static bool unmark_source(struct transfer *t, u32 shared, u64 global, u32 bytes)
{
	(void)global;
	shadow_mark(t->flight.w->block, shared, bytes, MARK_SOURCE, false);
	return true;
}

/* --- steps ------------------------------------------------------------------------------------------------------- */

/* Allows writes to the source, except where another outstanding copy reads it. */
static void release_source(struct transfer *t)
{
	struct cta *k = t->flight.w->block;
	t->released = true;
	source_pieces(t, unmark_source);
	for (u32 n = 0; n < k->nwarps; n++)
		for (u32 s = 0; k->warps[n].bulk && s < k->warps[n].bulk->sources.len; s++)
			if (!k->warps[n].bulk->sources.at[s]->released)
				source_pieces(k->warps[n].bulk->sources.at[s], mark_source);
}

static void arrive(struct transfer *t)
{
	const struct flight *f = &t->flight;
	u32 when = engine_tick(t->mbarrier);
	shadow_arrive(f->w, f->i, f->lane, t->to, t->shared, t->bytes, t->mbarrier->engine, when);
	t->mbarrier->flying--;
	engine_complete_tx(f, t->mbarrier, when, t->bytes);
}

static bool step_to_shared(struct flight *f)
{
	struct transfer *t = (struct transfer *)f;
	if (t->plan->rank && !t->whole)
		tensor_fill(t);
	global_pieces(t, load_piece);
	arrive(t);
	return true;
}

static void read_data(struct transfer *t, u32 from)
{
	struct cta *k = t->flight.w->block;
	t->data = arena_alloc(&k->arena, t->bytes);
	memcpy(t->data, k->shared + from, t->bytes);
}

static bool step_from_shared(struct flight *f)
{
	struct transfer *t = (struct transfer *)f;
	if (!t->data) {
		read_data(t, t->shared);
		return false;
	}
	global_pieces(t, store_piece);
	return t->written = true;
}

static bool step_within(struct flight *f)
{
	struct transfer *t = (struct transfer *)f;
	if (!t->data) {
		read_data(t, t->source);
		return false;
	}
	memcpy(t->to->shared + t->shared, t->data, t->bytes);
	release_source(t);
	arrive(t);
	return t->written = true;
}

static void left_in_flight(struct flight *f, const struct cta *ended)
{
	const struct transfer *t = (const struct transfer *)f;
	const u32 *id = ended->id;
	if (t->to == ended)
		fault(f->w, f->i, 1u << f->lane,
		      "block (%u, %u, %u) ends while this copy to its shared bytes 0x%x–0x%x is in flight", id[0],
		      id[1], id[2], t->shared, t->shared + t->bytes - 1);
	else if (f->w->block == ended && t->plan->kind == WITHIN_SHARED && !t->data)
		fault(f->w, f->i, 1u << f->lane,
		      "block (%u, %u, %u) ends before this copy has read its shared bytes 0x%x–0x%x", id[0], id[1],
		      id[2], t->source, t->source + t->bytes - 1);
}

/* --- beginning --------------------------------------------------------------------------------------------------- */

/* Resolves a shared-memory operand to its block and the address within it. NULL after a fault. */
static struct cta *shared_place(struct transfer *t, const struct operand *o, bool own_only, u32 *at)
{
	const struct flight *f = &t->flight;
	enum ptx_space space = SPACE_CLUSTER; /* a shared::cta address is also a valid shared::cluster address */
	u64 given = address_of(f->w, o, f->lane, &space), size = f->w->block->shared_bytes, address;
	struct cta *owner = cluster_block(f->w->block, given, &address);
	u32 align = t->plan->kind == FROM_REGISTERS ? t->bytes : t->plan->rank ? TENSOR_ALIGN : UNIT;
	if (!owner)
		fault(f->w, f->i, 1u << f->lane, "address 0x%llx is not in shared memory of a block of this cluster",
		      (ull)given);
	else if (own_only && owner != f->w->block)
		fault(f->w, f->i, 1u << f->lane,
		      "address 0x%llx is in shared memory of block (%u, %u, %u), but .shared::cta is that of the "
		      "warp's block",
		      (ull)given, owner->id[0], owner->id[1], owner->id[2]);
	else if (address % align)
		fault(f->w, f->i, 1u << f->lane, "misaligned copy: shared address 0x%llx is not a multiple of %u",
		      (ull)address, align);
	else if (address > size || size - address < t->bytes)
		fault(f->w, f->i, 1u << f->lane,
		      "copy of %u bytes outside shared memory: address 0x%llx, which has %llu bytes", t->bytes,
		      (ull)address, (ull)size);
	*at = (u32)address;
	return f->w->block->failed ? NULL : owner;
}

/* Mask of the destination blocks, by rank; *signal receives the address of the mbarrier within each. 0 after a
 * fault. */
static u32 destinations(struct transfer *t, u64 *signal)
{
	const struct flight *f = &t->flight;
	const struct transfer_plan *p = t->plan;
	u32 nblocks = f->w->block->cluster->nblocks;
	const struct cta *counts = mbarrier_place(f->w, f->i, f->lane, &f->i->ops[p->mbarrier], SPACE_CLUSTER, signal);
	const struct cta *to = counts ? shared_place(t, &f->i->ops[TRANSFER_TO], p->own_only, &t->shared) : NULL;
	if (!to)
		return 0;
	u32 mask = p->mask ? (u32)operand_value(f->w, &f->i->ops[p->mask], f->lane, 16) : 1u << to->rank;
	if (!mask)
		fault(f->w, f->i, 1u << f->lane, "the mask of blocks is 0");
	else if (mask >> nblocks)
		fault(f->w, f->i, 1u << f->lane, "the mask 0x%x names block %d of a cluster of %u", mask,
		      31 - __builtin_clz(mask), nblocks);
	else if (!p->mask && counts != to)
		fault(f->w, f->i, 1u << f->lane,
		      "copies to block (%u, %u, %u), but the mbarrier is in block (%u, %u, %u): they must be the same",
		      to->id[0], to->id[1], to->id[2], counts->id[0], counts->id[1], counts->id[2]);
	return f->w->block->failed ? 0 : mask;
}

/* Evaluates the size and addresses of a copy of consecutive bytes. False after a fault. */
static bool open_bytes(struct transfer *t)
{
	const struct flight *f = &t->flight;
	const struct transfer_plan *p = t->plan;
	u64 bytes = operand_value(f->w, &f->i->ops[TRANSFER_SIZE], f->lane, 32);
	if (!bytes || bytes % UNIT)
		return fault(f->w, f->i, 1u << f->lane, "copies %llu bytes, which must be a multiple of %d", (ull)bytes,
			     UNIT);
	t->bytes = (u32)bytes;
	if (p->kind == WITHIN_SHARED)
		return shared_place(t, &f->i->ops[TRANSFER_FROM], true, &t->source);
	enum ptx_space space = SPACE_GLOBAL;
	t->global = address_of(f->w, &f->i->ops[p->kind == TO_SHARED ? TRANSFER_FROM : TRANSFER_TO], f->lane, &space);
	if (t->global % UNIT)
		fault(f->w, f->i, 1u << f->lane, "misaligned copy: address 0x%llx is not a multiple of %d",
		      (ull)t->global, UNIT);
	return !f->w->block->failed;
}

static enum ptx_type word_of(u32 tensor_type, bool bits)
{
	switch (tensor_type) {
	case TENSOR_UINT32: return bits ? PT_B32 : PT_U32;
	case TENSOR_INT32: return bits ? PT_B32 : PT_S32;
	case TENSOR_UINT64: return bits ? PT_B64 : PT_U64;
	case TENSOR_INT64: return bits ? PT_NONE : PT_S64;
	case TENSOR_FLOAT16: return PT_F16;
	case TENSOR_BFLOAT16: return PT_BF16;
	case TENSOR_FLOAT32:
	case TENSOR_FLOAT32_FTZ: return PT_F32;
	case TENSOR_FLOAT64: return PT_F64;
	default: return PT_NONE;
	}
}

static bool open_reduction(struct transfer *t)
{
	const struct transfer_plan *p = t->plan;
	t->apply = p->apply;
	t->element = p->element;
	if (!p->reduces || !p->rank)
		return true;
	enum atomic_operation op = (enum atomic_operation)(t->flight.i->mod[M_ATOM] - 1);
	enum ptx_type type = word_of(t->map.type, op <= OP_XOR);
	t->apply = type ? reduction(op, type, t->map.type == TENSOR_FLOAT32_FTZ) : NULL;
	t->element = (u32)t->map.strides[0];
	if (!t->apply)
		fault(t->flight.w, t->flight.i, 1u << t->flight.lane,
		      "this reduction does not exist for the tensor's data type");
	return t->apply;
}

static bool begin_source(struct transfer *t)
{
	struct bulk *b = bulk_of(t->flight.w);
	t->group = b->open[t->flight.lane];
	if (!source_pieces(t, read_source))
		return false;
	source_pieces(t, mark_source);
	vec_push(&t->flight.w->block->arena, &b->sources, t);
	return true;
}

static struct transfer *keep(const struct transfer *t)
{
	struct transfer *kept = arena_new(&t->flight.w->block->arena, struct transfer);
	*kept = *t;
	return kept;
}

/* Starts a copy to block `to`, with the mbarrier at address `signal` there. */
static void begin_into(struct transfer *t, struct cta *to, u64 signal)
{
	struct flight *f = &t->flight;
	u32 proxy = t->plan->kind == FROM_REGISTERS ? 0 : A_ASYNC;
	t->to = to;
	f->end_block = left_in_flight;
	if (!cluster_reaches(f->w, f->i, f->lane, to))
		return;
	t->mbarrier = mbarrier_at(f->w, f->i, f->lane, to, signal);
	if (!t->mbarrier || (proxy && !mbarrier_is_fenced(f->w, f->i, f->lane, t->mbarrier)))
		return;
	shadow_range(f->w, f->i, f->lane, to, t->shared, t->bytes, A_WRITE | A_FLIGHT | proxy);
	if (f->w->block->failed || (t->plan->kind == WITHIN_SHARED && !begin_source(t)))
		return;
	memset(to->shared + t->shared, POISON, t->bytes);
	t->mbarrier->flying++;
	engine_add(f);
}

static void begin(const struct transfer *t, u32 mask, u64 signal)
{
	const struct cta *own = t->flight.w->block;
	EACH_LANE(rank, mask)
		if (!own->failed)
			begin_into(keep(t), &own->cluster->blocks[rank], signal);
}

static void run_lane(struct warp *w, const struct instr *i, u32 lane)
{
	static bool (*const steps[])(struct flight *) = {[TO_SHARED] = step_to_shared, [FROM_SHARED] = step_from_shared,
							  [WITHIN_SHARED] = step_within};
	const struct transfer_plan *p = i->plan;
	struct transfer t = {.flight = {.step = steps[p->kind], .w = w, .i = i, .lane = lane}, .plan = p};
	u64 signal;
	if (!(p->rank ? tensor_open(&t, w, i, lane) : open_bytes(&t)) || !open_reduction(&t))
		return;
	if (p->kind == FROM_SHARED) {
		if (!shared_place(&t, &i->ops[TRANSFER_FROM], true, &t.shared) || !global_pieces(&t, check_piece))
			return;
		struct transfer *kept = keep(&t);
		if (begin_source(kept))
			engine_add(&kept->flight);
		return;
	}
	u32 mask = destinations(&t, &signal);
	if (mask && (p->kind == WITHIN_SHARED || (global_pieces(&t, check_piece) && check_outside(&t))))
		begin(&t, mask, signal);
}

void run_transfer(struct warp *w, const struct instr *i, u32 mask)
{
	EACH_LANE(l, mask)
		if (!w->block->failed)
			run_lane(w, i, l);
}

/* --- st.async ---------------------------------------------------------------------------------------------------- */

static bool step_from_registers(struct flight *f)
{
	struct transfer *t = (struct transfer *)f;
	memcpy(t->to->shared + t->shared, t->data, t->bytes);
	arrive(t);
	return true;
}

static void store_lane(struct warp *w, const struct instr *i, u32 lane)
{
	const struct transfer_plan *p = i->plan;
	struct transfer t = {.flight = {.step = step_from_registers, .w = w, .i = i, .lane = lane}, .plan = p};
	u32 n = vector_of(i);
	u64 signal;
	const struct operand *values = operand_items(&i->ops[1]);
	t.bytes = n * p->element;
	u32 mask = destinations(&t, &signal);
	if (!mask)
		return;
	t.data = arena_alloc(&w->block->arena, t.bytes);
	for (u32 k = 0; k < n; k++) {
		u64 v = operand_value(w, &values[k], lane, (int)p->element * 8);
		memcpy(t.data + k * p->element, &v, p->element);
	}
	begin(&t, mask, signal);
}

void run_st_async(struct warp *w, const struct instr *i, u32 mask)
{
	EACH_LANE(l, mask)
		if (!w->block->failed)
			store_lane(w, i, l);
}

/* --- groups ------------------------------------------------------------------------------------------------------ */

void run_bulk_commit(struct warp *w, const struct instr *i, u32 mask)
{
	(void)i;
	EACH_LANE(l, mask)
		bulk_of(w)->open[l]++;
}

static void wait_for(struct transfer *t, bool only_read)
{
	if (!t->data)
		t->flight.step(&t->flight);
	if (!t->written && !only_read)
		engine_finish(&t->flight);
	if (t->released)
		return;
	release_source(t);
	source_pieces(t, read_source); /* the source must have stayed unchanged until the wait: check for races again */
}

void run_bulk_wait(struct warp *w, const struct instr *i, u32 mask)
{
	struct bulk *b = bulk_of(w);
	u32 left = (u32)i->ops[0].imm, kept = 0;
	for (u32 n = 0; n < b->sources.len && !w->block->failed; n++) {
		struct transfer *t = b->sources.at[n];
		bool mine = mask >> t->flight.lane & 1 && t->plan->kind == FROM_SHARED;
		if (mine && t->group + left < b->open[t->flight.lane])
			wait_for(t, i->mod[M_READ]);
		if (!t->written || !t->released)
			b->sources.at[kept++] = t;
	}
	b->sources.len = w->block->failed ? b->sources.len : kept;
}

void bulk_end(struct warp *w)
{
	for (u32 n = 0; w->bulk && n < w->bulk->sources.len; n++) {
		const struct transfer *t = w->bulk->sources.at[n];
		if (t->plan->kind == FROM_SHARED && !t->released)
			fault(w, t->flight.i, 1u << t->flight.lane,
			      "the warp ends without having waited for this copy to read shared memory");
	}
}

/* --- checks ------------------------------------------------------------------------------------------------------ */

/* Finds the operation of a reduction with its type in the opcode. */
static bool plan_reduction(struct decoder *d, struct transfer_plan *p)
{
	enum ptx_type t = d->i->type[0];
	enum atomic_operation op = (enum atomic_operation)(d->i->mod[M_ATOM] - 1);
	p->apply = reduction(op, t, false);
	p->element = (u32)ptx_bits(t) / 8;
	bool needs_noftz = is_half(t) && op == OP_ADD;
	return (p->apply && !is_packed(t) && needs_noftz == (d->i->mod[M_NOFTZ] != 0)) ||
	       decode_fail(d, "there is no '%s'", d->i->opcode);
}

bool check_transfer(struct decoder *d)
{
	struct instr *i = d->i;
	u32 rank = i->mod[M_DIM];
	u8 mbarrier = rank ? 2 : 3;
	struct transfer_plan *p = arena_new(d->arena, struct transfer_plan);
	*p = (struct transfer_plan){.kind = (enum transfer_kind)i->operation,
				    .rank = rank,
				    .reduces = i->mod[M_ATOM],
				    .mbarrier = mbarrier,
				    .mask = i->mod[M_MULTICAST] ? mbarrier + 1 : 0,
				    .own_only = i->space == SPACE_SHARED};
	i->plan = p;
	bool is_out = strstr(i->opcode, ".global.shared"); /* the destination is named first */
	return is_out == (p->kind == FROM_SHARED) && (!p->reduces || rank || plan_reduction(d, p));
}

bool refuse_modes(struct decoder *d)
{
	return decode_fail(d, "'%s': only tile mode is simulated", d->i->opcode);
}

bool check_st_async(struct decoder *d)
{
	struct transfer_plan *p = arena_new(d->arena, struct transfer_plan);
	u32 element = (u32)ptx_bits(d->i->type[0]) / 8;
	*p = (struct transfer_plan){.kind = FROM_REGISTERS, .mbarrier = 2, .element = element};
	d->i->plan = p;
	return vector_of(d->i) * element <= 16;
}
