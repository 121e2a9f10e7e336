/* Early loads: loads from global memory are issued before the operations in which threads wait for one another.
 *
 * Threads exchange a tile through shared memory with barriers around the exchange, and neither ptxas nor the processor
 * moves a load across a barrier. In
 *
 *     b = load; b' = convert b; a = load; a' = convert a; dot a', b'
 *
 * the second load would be issued only when the first has arrived, and each load would add the latency of memory. The
 * pass moves each load, with the index arithmetic that it needs, before the first such operation of its block, but not
 * across writes to global memory, barriers, waits, loops and branches. The pipeliner issues loads across iterations.
 *
 * Two loads of tiles of one tensor, of the same shape, often read the same lines: the shifted rows of a convolution, or
 * one tile twice. The second then takes them from the L1 cache, if it is issued after the first has arrived. It stays.
 *
 * A copy by cp.async to a buffer that is allocated for it (direct_to_shared.c) takes no registers. It moves up with the
 * allocation, as far as it can, but not between a dot and the loads of its operands, and not if the block then needs so
 * much shared memory that fewer blocks are resident.
 *
 * A load that moves up occupies its registers for longer. It moves only as far as the kernel's data then takes no more
 * registers than elsewhere in the kernel, within the limits EARLY_LOAD_REGISTERS and MOST_EARLY_LOAD_REGISTERS. */
#include "gpu/gpu_passes.h"
#include "gpu/pipeline/resource_use.h"
#include "gpu/pipeline/pipeline.h"
#include "gpu/pipeline/plan.h"
#include "ir/graph.h"
#include "support/thresholds.h"

struct early_loads {
	struct pass_state *s;
	struct arena scratch;
	struct live_registers live;
	struct used_memory memory;
	i64 most_memory; /* bytes that a block may use of shared memory, without fewer resident blocks */
	i64 most; /* the registers that may hold data */
};

/* True if threads wait in o, for one another or for the data that they store to shared memory. No thread waits where a
 * wgmma is issued; nothing may stand between it and the load of its A operand from a buffer. */
static bool threads_wait(const struct op *o)
{
	return (op_has(o, SYNC) && o->code != IR_WARP_GROUP_DOT) || o->code == IR_LOCAL_STORE;
}

/* True if a copy must not be placed before o, because an operand of a dot is in registers there: a load from shared
 * memory directly before o is used by o or after it, or o stands between such a load and the wgmma for which the tile
 * is computed in registers. */
static bool takes_fragments(const struct op *o)
{
	enum { MOST_COMPUTED = 64 }; /* operations from a load to its wgmma */
	bool yes = false, direct = true;
	struct op *p = o->prev;
	for (u32 i = 0; i < MOST_COMPUTED && p && !yes && (p->code == IR_LOCAL_LOAD || op_has(p, PURE)); i++) {
		bool load = p->code == IR_LOCAL_LOAD;
		const struct op *dot = load ? dot_of_local_load(p) : NULL;
		direct &= load || p->code == IR_TRANS;
		yes = (direct && !value_unused(result(p)) && comes_behind(result(p)->uses->user, o)) ||
		      (dot && comes_behind(dot, o));
		p = p->prev;
	}
	return yes;
}

static bool is_stored_to(const struct value *buffer)
{
	const struct use *u = buffer->uses;
	while (u && u->user->code != IR_LOCAL_STORE)
		u = u->next;
	return u;
}

/* The allocation, in the same block, of the buffer that the copy alone fills; NULL: it fills a part of a
 * multi-buffer. */
static const struct op *buffer_of_copy(const struct op *copy)
{
	const struct op *alloc = def_if(operand(copy, 1), IR_LOCAL_ALLOC);
	return alloc && alloc->block == copy->block && !is_stored_to(result(alloc)) ? alloc : NULL;
}

/* True if no load moves across o. */
static bool is_end(const struct op *o)
{
	switch (o->code) {
	case IR_LOAD: return o->attr[ATTR_VOLATILE];
	case IR_LOCAL_ALLOC:
	case IR_LOCAL_STORE:
	case IR_ASYNC_COPY:
	case IR_FENCE_ASYNC:
	case IR_WARP_GROUP_DOT:
	case IR_WARP_GROUP_WAIT: return false;
	default: return !op_has(o, PURE) || op_reports_inside(o) || (o->nblocks && !op_runs_on_elements(o));
	}
}

/* True if n more registers can hold data from `first` to `last`. */
static bool has_room(const struct early_loads *e, i64 n, const struct op *first, const struct op *last)
{
	bool room = true;
	for (u32 i = first->mark; i <= last->mark && room; i++)
		room = e->live.at[i] + n <= e->most;
	return room;
}

/* Counts the memory in use, for the first copy that may move: most kernels have none. */
static void find_memory(struct early_loads *e)
{
	enum { MOST_WARPS = 64 }; /* that a multiprocessor holds */
	if (e->memory.at)
		return;
	e->memory = count_used_memory(e->s, &e->live, &e->scratch);
	i64 of_full = e->s->target->shared_bytes * e->s->num_warps / MOST_WARPS;
	e->most_memory = MAX(most_used(&e->memory, 0, e->live.n), of_full);
}

/* True if shared memory has room for the buffer from `first` to its allocation. */
static bool has_memory(struct early_loads *e, const struct op *alloc, const struct op *first)
{
	find_memory(e);
	return first->mark >= alloc->mark ||
	       most_used(&e->memory, first->mark, alloc->mark - 1) + own_bytes(e->s, alloc) <= e->most_memory;
}

/* True if o may read lines of memory that the load reads: a load of a tile of the same tensor, whose pointers are
 * computed from `base`. */
static bool may_share_lines(const struct op *o, const struct op *load, const struct value *base)
{
	return o->code == IR_LOAD && load->code == IR_LOAD && result(o)->type == result(load)->type &&
	       pointer_base(operand(o, 0)) == base;
}

/* The place of a copy that may move up to `top`, with the operations that compute `needed`; the copy itself if it gains
 * nothing. */
static struct op *place_of_copy(struct early_loads *e, struct op *top, struct op *copy, const struct op *alloc,
				const struct value_set *needed)
{
	struct op *first = top;
	bool meet = false;
	while (first != copy && (set_has_result(needed, first) || takes_fragments(first)))
		first = first->next;
	for (const struct op *o = first; o != copy && !meet; o = o->next)
		meet = op_has(o, SYNC);
	return meet && has_memory(e, alloc, first) ? first : copy;
}

/* Moves a load, or a copy into the buffer that `alloc` allocates. */
static void move_up(struct early_loads *e, struct op *load, const struct op *alloc)
{
	enum { MAX_DISTANCE = 512 }; /* bounds the compile time */
	struct value_set needed = {.scratch = {0}};
	struct op *first = load;
	const struct value *base = pointer_base(operand(load, 0));
	bool share = false;
	for (u32 i = 0; i < load->noperands; i++)
		set_add(&needed, operand(load, i));
	for (u32 i = 0; i < MAX_DISTANCE && first->prev && !share; i++) {
		if (is_end(first->prev) || (first->prev != alloc && !take_along(&needed, first->prev)))
			break;
		first = first->prev;
		share = may_share_lines(first, load, base);
	}
	i64 n = alloc ? 0 : data_registers(e->s, result(load));
	if (alloc)
		first = place_of_copy(e, first, load, alloc, &needed);
	while (!alloc && first != load && (share || !threads_wait(first) || !has_room(e, n, first, load)))
		first = first->next;
	if (first != load) {
		u32 at = first->mark;
		const struct op *end = load->next;
		for (u32 i = at; i <= load->mark; i++)
			e->live.at[i] += n;
		if (alloc && at < alloc->mark)
			use_memory(&e->memory, at, alloc->mark - 1, own_bytes(e->s, alloc));
		e->s->cuda.operands_moved |= alloc != NULL;
		for (struct op *o = first, *next; o != end; o = next) {
			next = o->next;
			if (o == load || set_has_result(&needed, o)) {
				op_insert_before(o, first);
				o->mark = at;
			}
		}
	}
	arena_free(&needed.scratch);
}

static void visit(struct early_loads *e, struct block *b)
{
	for (struct op *o = b->first, *next; o; o = next) {
		next = o->next;
		if (o->code == IR_LOAD && !o->attr[ATTR_VOLATILE])
			move_up(e, o, NULL);
		if (o->code == IR_ASYNC_COPY && !e->s->cuda.limits.operands_in_place && buffer_of_copy(o))
			move_up(e, o, buffer_of_copy(o));
		for (u32 i = 0; i < o->nblocks && !op_runs_on_elements(o); i++)
			visit(e, o->blocks[i]);
	}
}

void pass_early_loads(struct pass_state *s)
{
	struct early_loads e = {.s = s};
	e.live = count_live_registers(s, &e.scratch);
	e.most = MAX(MIN(e.live.most, MOST_EARLY_LOAD_REGISTERS), EARLY_LOAD_REGISTERS);
	visit(&e, s->k->body);
	arena_free(&e.scratch);
}
