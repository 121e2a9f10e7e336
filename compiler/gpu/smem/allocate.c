/* Allocation of shared memory: which operations need it, how many bytes, and at which offset.
 *
 * A buffer is live from its allocation to its last use, and through the whole of a loop that uses it but does not
 * contain the allocation. The scratch of an operation is live while the operation runs. Small scratch stays live until
 * the scratch of the next operation has been written: the barrier inside that operation then also ensures that all
 * threads have read the earlier scratch, so that no other barrier is needed. Buffers and scratch are placed in order of
 * their start, at the lowest offset that nothing live at the same time covers. */
#include "layout/conversion.h"
#include "gpu/layout/memory_access.h"
#include "gpu/layout/mma.h"
#include "gpu/gpu_passes.h"
#include "gpu/smem/shared_access.h"

enum { LEAST_PIECE = 8192 /* bytes */ };

struct interval {
	struct op *op;
	u32 start, end;
	/* the loop body through which the scratch is live if `apart`, see is_between_turns and is_beside_dots; tile_end
	 * 0: none */
	u32 tile_start, tile_end;
	i32 size, offset;
};

struct allocator {
	struct pass_state *s;
	struct arena scratch;
	VEC(struct interval) at;
	i32 most; /* limit of the scratch of a conversion that can be done in pieces, in bytes */
	bool turns; /* the kernel has ping-pong scheduling */
	bool apart; /* scratch with a tile_end is live from tile_start to tile_end */
};

static i32 element_bytes(const struct value *v)
{
	return dtype_bytes(type_dtype(v->type));
}

/* One thread or lane executes the atomic, or the volatile load. Other threads that hold a copy of the element get the
 * result through shared memory, because another access might read a different value. */
static i32 shared_result_bytes(const struct op *o)
{
	u32 lanes = 1, warps = 1;
	if (value_unused(&o->results[0]))
		return 0;
	const struct type *t = o->results[0].type;
	if (type_is_tensor(t))
		layout_redundant(t->layout, &lanes, &warps);
	return lanes || warps ? (i32)(type_numel(t) * element_bytes(&o->results[0])) : 0;
}

void choose_conversion(const struct pass_state *s, struct op *o, i32 most)
{
	const struct layout *from = operand(o, 0)->type->layout, *to = result(o)->type->layout;
	enum conversion_kind kind = plan_conversion(from, to).kind;
	bool shared = kind == CONVERSION_MEMORY;
	o->attr[ATTR_CONVERSION] = shared && warps_apart(from, to) ? CONVERSION_WARP_MEMORY : kind;
	o->attr[ATTR_PIECES] =
		shared ? 1 << plan_pieces(&s->ctx->layouts, from, to, 8 * element_bytes(result(o)), most).bits : 0;
}

/* True if shuffles do this tt.gather: each warp holds all source elements that its lanes read, in so few registers that
 * shared memory is not faster. Each of these registers is shuffled, because the source lane does not know which one is
 * read. */
static bool gathers_in_warp(const struct op *o)
{
	enum { MOST_SHUFFLES = 4 /* per element; the way through shared memory is a store, a barrier and a load */ };
	const struct layout *from = operand(o, 0)->type->layout, *to = result(o)->type->layout;
	int axis = (int)o->attr[ATTR_AXIS];
	u32 along = layout_dim_mask(from, axis), fixed = 0;
	for (int i = 0; i < to->bits[LL_WARP] || i < from->bits[LL_WARP]; i++) {
		u32 a = i < from->bits[LL_WARP] ? from->basis[LL_WARP][i] : 0,
		    b = i < to->bits[LL_WARP] ? beside_axis(to, from, axis, to->basis[LL_WARP][i]) : 0;
		if (a != b || a & along)
			return false;
	}
	for (int i = 0; i < to->bits[LL_REG]; i++)
		fixed |= beside_axis(to, from, axis, to->basis[LL_REG][i]);
	int open = from->bits[LL_REG] - __builtin_popcount(layout_bits_in(from, LL_REG, fixed));
	return 1 << open <= MOST_SHUFFLES;
}

i32 scratch_bytes(const struct pass_state *s, const struct op *o)
{
	switch (o->code) {
	case IR_CONVERT_LAYOUT: {
		struct op chosen = *o;
		if (!chosen.attr[ATTR_CONVERSION])
			choose_conversion(s, &chosen, LEAST_PIECE);
		i64 bytes = type_numel(result(o)->type) * element_bytes(result(o)), pieces = chosen.attr[ATTR_PIECES];
		return pieces ? (i32)(bytes / pieces) : 0;
	}
	case IR_REDUCE:
	case IR_SCAN: return warps_along_axis(o) > 1 ? partial_bytes(o, o->noperands) : 0;
	case IR_HISTOGRAM: return (i32)type_numel(result(o)->type) * element_bytes(result(o));
	case IR_GATHER:
		if (gathers_in_warp(o))
			return 0;
		return (i32)type_numel(operand(o, 0)->type) * element_bytes(operand(o, 0));
	case IR_ATOMIC_RMW:
	case IR_ATOMIC_CAS: return shared_result_bytes(o);
	case IR_LOAD: return o->attr[ATTR_VOLATILE] ? shared_result_bytes(o) : 0;
	case IR_DOT:
		if (o->attr[ATTR_INSTR] || operand(o, 0)->type->kind == TY_MEMDESC)
			return 0;
		/* as much as fma_dots.c allocates */
		return (i32)(type_numel(operand(o, 0)->type) * element_bytes(operand(o, 0)) +
			     type_numel(operand(o, 1)->type) * element_bytes(operand(o, 1)));
	default: return 0;
	}
}

struct value *store_shared(struct builder *b, struct value *v, const struct layout *mem)
{
	const struct type *t = v->type, *desc = type_memdesc(b->ctx, t->elem, t->rank, t->shape, mem, 0);
	struct value *buffer = result(build(b, IR_LOCAL_ALLOC, NULL, 0, &desc, 1, 0)), *ops[] = {v, buffer};
	build(b, IR_LOCAL_STORE, ops, 2, NULL, 0, 0);
	return buffer;
}

u32 last_use(const struct value *v, const struct block *home, u32 begin)
{
	u32 end = begin;
	for (const struct use *u = v->uses; u; u = u->next) {
		const struct op *o = u->user;
		end = MAX(end, o->mark);
		if (o->code == IR_WARP_GROUP_DOT && o->attr[ATTR_ASYNC]) /* read until the wait for the dot */
			end = MAX(end, last_use(result(o), o->block, o->mark));
		if (o->code == IR_MEMDESC_INDEX || o->code == IR_MEMDESC_TRANS)
			end = last_use(result(o), home, end);
		while (o->block != home) { /* used inside a loop: live to its end */
			o = o->block->parent;
			end = MAX(end, last_mark(o));
		}
	}
	return end;
}

i32 own_bytes(const struct pass_state *s, const struct op *o)
{
	if (o->code != IR_LOCAL_ALLOC)
		return scratch_bytes(s, o);
	const struct type *t = result(o)->type;
	return (i32)(type_numel(t) * element_bytes(result(o)) * MAX(t->nbuf, 1));
}

static void measure(struct op *o, void *arg)
{
	if (o->scratch_offset >= 0)
		o->scratch_size = own_bytes(arg, o);
}

static void check_place(struct op *o, void *arg)
{
	struct pass_state *s = arg;
	i32 bytes = own_bytes(s, o);
	if (bytes && (o->scratch_offset < 0 || (i64)o->scratch_offset + bytes > s->k->shared_bytes)) {
		diag(s->diags, E_SHARED_PAST, o->loc, op_info[o->code].name, bytes, s->k->shared_bytes);
		s->failed = true;
	}
}

void measure_shared(struct pass_state *s, bool allocated)
{
	walk(s->k->body, measure, s);
	if (allocated)
		walk(s->k->body, check_place, s);
}

/* True if o converts a layout within warps, in a loop over tiles with ping-pong scheduling. If each of the two
 * warpgroups has separate scratch memory for the conversion, a warpgroup continues with the next tile without waiting
 * for the other warpgroup (barriers.c). */
static bool is_between_turns(const struct allocator *a, const struct op *o)
{
	return a->turns && o->code == IR_CONVERT_LAYOUT && o->attr[ATTR_CONVERSION] == CONVERSION_WARP_MEMORY &&
	       o->block->parent && has_turns(o->block);
}

/* True if the block has asynchronous dots, which run while later operations of the block execute. */
static bool has_dots_in_flight(const struct block *b)
{
	const struct op *o = b->first;
	while (o && !(o->code == IR_WARP_GROUP_DOT && o->attr[ATTR_ASYNC]))
		o = o->next;
	return o;
}

/* True if o converts a layout within warps in a loop body with asynchronous dots (`dots`: has_dots_in_flight of o's
 * block). With separate scratch, it waits for no other warp. */
static bool is_beside_dots(const struct op *o, bool dots)
{
	return dots && o->code == IR_CONVERT_LAYOUT && o->attr[ATTR_CONVERSION] == CONVERSION_WARP_MEMORY &&
	       o->block->parent && o->block->parent->code == IR_FOR;
}

static void collect(struct allocator *a, struct block *b)
{
	enum { BETWEEN_TURNS = 16384 /* bytes, as a 128-row panel of an operand, 64 16-bit elements a row */ };
	bool dots = has_dots_in_flight(b);
	for (struct op *o = b->first; o; o = o->next) {
		struct interval n = {.op = o, .start = o->mark, .end = o->mark};
		if (o->code == IR_CONVERT_LAYOUT)
			choose_conversion(a->s, o, a->most);
		bool turns = is_between_turns(a, o);
		if (turns)
			choose_conversion(a->s, o, MIN(a->most, BETWEEN_TURNS));
		if (turns || is_beside_dots(o, dots)) {
			n.tile_start = b->first->mark;
			n.tile_end = b->last->mark;
		}
		n.size = own_bytes(a->s, o);
		if (o->code == IR_LOCAL_ALLOC)
			n.end = last_use(result(o), b, o->mark);
		else
			tl_assert(!n.size || a->s->k->cuda.cluster == 1 || o->code == IR_REDUCE);
		if (n.size)
			vec_push(&a->scratch, &a->at, n);
		for (u32 i = 0; i < o->nblocks; i++)
			collect(a, o->blocks[i]);
	}
}

static u32 begin_of(const struct allocator *a, const struct interval *n)
{
	return a->apart && n->tile_end ? n->tile_start : n->start;
}

static u32 end_of(const struct allocator *a, const struct interval *n)
{
	return a->apart && n->tile_end ? n->tile_end : n->end;
}

static bool live_together(const struct allocator *a, const struct interval *n, const struct interval *m)
{
	return begin_of(a, m) <= end_of(a, n) && begin_of(a, n) <= end_of(a, m);
}

static i32 place_interval(struct allocator *a, u32 index)
{
	struct interval *n = &a->at.at[index];
	bool tile = n->op->code == IR_LOCAL_ALLOC && type_numel(result(n->op)->type) > 1;
	i32 align = tile || n->tile_end ? shared_align(a->s) : 16;
	n->offset = 0;
	for (bool moved = true; moved;) {
		moved = false;
		for (u32 i = 0; i < index; i++) {
			const struct interval *m = &a->at.at[i];
			if (live_together(a, n, m) && m->offset < n->offset + n->size &&
			    n->offset < m->offset + m->size) {
				n->offset = (m->offset + m->size + align - 1) & -align;
				moved = true;
			}
		}
	}
	n->op->scratch_offset = n->offset;
	n->op->scratch_size = n->size;
	return n->offset + n->size;
}

enum { SMALL_SCRATCH = 2048 };

/* Extends small scratch until the next operation with scratch, or (`extend` false) ends it at its own operation. */
static void extend_scratch(struct allocator *a, bool extend)
{
	struct interval *last = NULL;
	for (u32 i = 0; i < a->at.len; i++) {
		struct interval *n = &a->at.at[i];
		if (n->op->code == IR_LOCAL_ALLOC)
			continue;
		n->end = n->start;
		if (last && extend && last->size <= SMALL_SCRATCH)
			last->end = n->start;
		last = n;
	}
}

static i32 place_all(struct allocator *a)
{
	i32 total = 0;
	for (u32 i = 0; i < a->at.len; i++)
		total = MAX(total, place_interval(a, i));
	return total;
}

/* Places all, with separate memory for scratch that is used while dots run, unless fewer blocks then fit a
 * multiprocessor. With ping-pong scheduling there is one block anyway. */
static i32 place_apart(struct allocator *a)
{
	i32 all = a->s->target->shared_bytes, shared, apart;
	a->apart = false;
	shared = place_all(a);
	a->apart = true;
	apart = place_all(a);
	if (a->turns || !apart || all / apart >= all / shared)
		return apart;
	a->apart = false;
	return place_all(a);
}

static const char *what_for(struct allocator *a, const struct op *o)
{
	static const char *const names[IR_OPCODES] = {
		[IR_LOCAL_ALLOC] = "a tile in shared memory",
		[IR_CONVERT_LAYOUT] = "a layout conversion",
		[IR_REDUCE] = "a reduction",
		[IR_SCAN] = "a scan",
		[IR_HISTOGRAM] = "a histogram",
		[IR_GATHER] = "a gather",
	};
	if (o->code == IR_LOCAL_ALLOC && result(o)->type->nbuf)
		return arena_printf(&a->scratch, "%d buffers of a load in a pipelined loop", result(o)->type->nbuf);
	return names[o->code] ? names[o->code] : "the result of an operation";
}

/* Reports the bytes needed, and the large buffers that are live where most memory is in use. */
static void report_overflow(struct allocator *a, i32 total)
{
	enum { SMALL = 1024 };
	struct pass_state *s = a->s;
	const struct interval *highest = &a->at.at[0];
	diag(s->diags, E_OUT_OF_SHARED, s->k->loc, s->k->name, total, s->target->shared_bytes);
	u32 hint_at = s->diags->hint_at; /* hints are added later, and go before this list of buffers */
	for (u32 i = 0; i < a->at.len; i++)
		if (a->at.at[i].offset + a->at.at[i].size == total)
			highest = &a->at.at[i];
	for (u32 i = 0; i < a->at.len; i++) {
		const struct interval *n = &a->at.at[i];
		if (n->size >= SMALL && n->start <= highest->end && highest->start <= n->end)
			diag(s->diags, N_SHARED_BUFFER, n->op->loc, what_for(a, n->op), n->size);
	}
	s->diags->hint_at = hint_at;
	s->failed = s->cuda.too_large = true;
}

i32 shared_align(const struct pass_state *s)
{
	return s->target->has_tensor_copy ? 1024 : 128;
}

/* Places all, with large conversions in the fewest pieces that fit. */
static i32 allocate(struct allocator *a)
{
	struct pass_state *s = a->s;
	i32 total;
	number_ops(s->k->body, 1);
	a->turns = has_turns(s->k->body);
	for (a->most = MOST_SCRATCH;; a->most /= 2) {
		a->at.len = 0;
		collect(a, s->k->body);
		total = INT32_MAX;
		for (int least = 0; least < 3 && total > s->target->shared_bytes; least++) {
			a->apart = false;
			extend_scratch(a, least < 2);
			total = least < 1 ? place_apart(a) : place_all(a);
		}
		if (total <= s->target->shared_bytes || a->most <= LEAST_PIECE)
			return total;
	}
}

void pass_allocate(struct pass_state *s)
{
	struct allocator a = {.s = s};
	i32 total = allocate(&a);
	s->k->shared_bytes = total;
	if (total > s->target->shared_bytes)
		report_overflow(&a, total);
	arena_free(&a.scratch);
}
