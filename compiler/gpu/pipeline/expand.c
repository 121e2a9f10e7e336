/* Code generation for a pipelined loop from its schedule: the prologue, the steps in the body, and the waits after the
 * loop. */
#include "transform/first_element.h"
#include "analysis/interval.h"
#include "gpu/layout/mma.h"
#include "gpu/pipeline/expand.h"

u32 carry(struct plan *p, struct value *init)
{
	vec_push(&p->scratch, &p->code->carried, ((struct loop_carried){init, NULL}));
	return p->code->carried.len - 1;
}

struct pipeline_state first_pipeline_state(const struct plan *p, struct builder *b)
{
	struct value *slot = build_i32(b, 0);
	return (struct pipeline_state){slot, p->tma ? build_i32(b, 0) : NULL};
}

void carry_pipeline_state(struct plan *p, struct pipeline_state init)
{
	p->code->state = carry(p, init.slot);
	if (init.phase)
		carry(p, init.phase);
}

struct op *carry_through(struct plan *p, struct op *loop, value_vec *inits)
{
	struct op *extended = extend_loop(p->ctx, &p->scratch, loop, inits);
	for (u32 i = 0; i < inits->len; i++)
		inits->at[i] = for_arg(extended, extended->nresults - inits->len + i);
	return extended;
}

struct value *carried_now(const struct plan *p, u32 i)
{
	return for_arg(p->loop, p->code->first + i);
}

struct value *carried_last(const struct plan *p, u32 i)
{
	return &p->loop->results[p->code->first + i];
}

/* i1: index + n·step < end, for 64-bit indices. The sum may wrap around; the distance end - index, as an unsigned
 * number, does not. */
static struct value *is_far_from(struct builder *b, const struct op *loop, struct value *end, struct value *index,
				 int n)
{
	const struct type *t = index->type;
	i64 most = n > 1 ? (i64)(UINT64_MAX / (u64)n) : INT64_MAX;
	struct value *step = for_step(loop), *by = build2(b, IR_MULI, t, step, build_int(b, t, n));
	struct value *below = build_cmpi(b, CMPI_SLT, index, end), *rest = build2(b, IR_SUBI, t, end, index);
	below = build2(b, IR_ANDI, below->type, below, build_cmpi(b, CMPI_ULT, by, rest));
	return build2(b, IR_ANDI, below->type, below, build_cmpi(b, CMPI_SLE, step, build_int(b, t, most)));
}

/* i1: index + n·step < end. Computed in 64 bits, where sums of narrower integers cannot wrap around. */
struct value *is_below(struct builder *b, const struct op *loop, struct value *end, struct value *index, int n)
{
	const struct type *t = type_scalar(b->ctx, DT_I64);
	if (index->type == t && n > 0)
		return is_far_from(b, loop, end, index, n);
	struct value *times = build_int(b, t, n), *by = build2(b, IR_MULI, t, build_i64(b, for_step(loop)), times);
	struct value *last = build_i64(b, end);
	return build_cmpi(b, CMPI_SLT, build2(b, IR_ADDI, t, build_i64(b, index), by), last);
}

/* is_below in the index's own type, where that cannot wrap around: the loop's lower bound is not negative, and lower
 * bound + n·step fits the type and 32 bits. The loop-invariant part is computed before the loop. */
static struct value *is_inside(struct builder *b, const struct op *loop, struct value *end, struct value *index, int n)
{
	const struct type *t = index->type;
	i64 first, step;
	i128 most = MIN(interval_of_type(t).hi, INT32_MAX);
	if (value_const_int(for_lower(loop), &first) && first >= 0 && value_const_int(for_step(loop), &step) &&
	    first + (i128)n * step <= most) {
		if (value_const_int(index, &first))
			return build_cmpi(b, CMPI_SLT, build_int(b, t, first + n * step), end);
		/* index >= 0 */
		struct builder before = builder_before(b->ctx, (struct op *)loop);
		end = build2(&before, IR_MAXSI, t, end, build_int(&before, t, 0));
		return build_cmpi(b, CMPI_SLT, index,
				  build2(&before, IR_SUBI, t, end, build_int(&before, t, n * step)));
	}
	return is_below(b, loop, end, index, n);
}

struct value *advance_index(struct builder *b, const struct op *loop, struct value *index, int n)
{
	struct value *step = for_step(loop);
	return build2(b, IR_ADDI, index->type, index,
		      build2(b, IR_MULI, step->type, step, build_int(b, step->type, n)));
}

/* The AND of the mask of a load through ptr and the i1 `inside` (either may be NULL: true), as a mask of the load. */
static struct value *guard(struct builder *b, const struct value *ptr, struct value *mask, struct value *inside)
{
	if (!inside)
		return mask;
	if (!type_is_tensor(ptr->type))
		return mask ? build2(b, IR_ANDI, mask->type, mask, inside) : inside;
	const struct type *t = type_with_dtype(b->ctx, ptr->type, DT_I1);
	struct value *all = build1(b, IR_SPLAT, t, inside);
	return mask ? build2(b, IR_ANDI, t, mask, all) : all;
}

static struct value *index_multibuffer(struct plan *p, struct builder *b, struct value *ring, struct value *slot)
{
	const struct type *t = ring->type, *one = type_memdesc(p->ctx, t->elem, t->rank, t->shape, t->layout, 0);
	return build2(b, IR_MEMDESC_INDEX, one, ring, slot);
}

static struct value *buffer_at(struct plan *p, struct builder *b, u32 i, struct value *slot)
{
	return index_multibuffer(p, b, p->code->buffers.at[i], slot);
}

static struct value *barrier_at(struct plan *p, struct builder *b, u32 part, struct value *slot, bool empty)
{
	tl_assert(slot);
	int first = p->schedule->parts.at[part].barriers + empty * p->stages;
	if (first)
		slot = build2(b, IR_ADDI, slot->type, slot, build_int(b, slot->type, first));
	return index_multibuffer(p, b, p->code->barriers, slot);
}

static struct value *other_phase(struct builder *b, struct value *phase)
{
	return build2(b, IR_XORI, phase->type, phase, build_int(b, phase->type, 1));
}

i64 load_bytes(const struct op *load)
{
	const struct type *t = result(load)->type;
	return type_numel(t) * dtype_bytes(type_dtype(t));
}

/* Builds the arrival at the part's "full" mbarrier that sets the number of bytes that it waits for. */
static void expect_bytes(struct plan *p, struct builder *b, const struct buffer_part *part, struct value *full)
{
	struct op *o = build(b, IR_BARRIER_EXPECT, &full, 1, NULL, 0, 0);
	for (u32 i = 0; i < part->loads.len; i++)
		o->attr[ATTR_SIZE] += load_bytes(p->loads.at[part->loads.at[i]]);
}

/* An i64 coordinate as an i32. Within launch bounds it fits; without (Triton's launcher), larger numbers become the
 * largest i32, which is outside every tensor too. */
static struct value *to_coordinate(struct builder *b, struct value *v)
{
	if (b->ctx->abi) {
		v = build2(b, IR_MINSI, v->type, v, build_int(b, v->type, INT32_MAX));
		v = build2(b, IR_MAXSI, v->type, v, build_int(b, v->type, INT32_MIN));
	}
	return build1(b, IR_TRUNCI, type_scalar(b->ctx, DT_I32), v);
}

/* The coordinate along dimension d at which the TMA tile begins (i32), for the iteration with the values in `map`. */
static struct value *tile_coordinate(struct builder *b, const struct tma_tile *box, int d, const struct map *map)
{
	const struct type *t = type_scalar(b->ctx, DT_I32);
	struct value *start = box->start[d] ? mapped(map, tma_tile_start(box->start[d])) : NULL,
		     *moved = box->index[d] ? mapped(map, box->index[d]) : NULL;
	if (start && type_elem_bits(start->type) == 64)
		start = to_coordinate(b, start);
	if (moved && box->times[d] != 1)
		moved = build2(b, IR_MULI, t, moved, build_int(b, t, box->times[d]));
	if (start && moved)
		return build2(b, IR_ADDI, t, start, moved);
	return start ? start : moved ? moved : build_int(b, t, 0);
}

/* The row stride as a product of kernel parameters, without its constant factor, which is an attribute of the copy. */
static struct value *row_stride(struct plan *p, const struct tma_tile *box)
{
	struct launch_product d = box->distance;
	d.times = 1;
	return build_product(p->s->k, &d);
}

/* Issues the TMA copy of load i, with bounds checked against its tensor, for the iteration with the values in `map`. */
static void issue_bounded_copy(struct plan *p, struct builder *b, u32 i, const struct map *map, struct value *slot,
			       struct value *full)
{
	const struct tma_tile *box = &p->tiles.at[i];
	u32 n = 8;
	struct value *ops[10] = {box->tensor, buffer_at(p, b, i, slot), full};
	for (int d = 0; d < 2; d++) {
		ops[3 + d] = tile_coordinate(b, box, d, map);
		ops[5 + d] = build_product(p->s->k, &box->size[d]);
	}
	ops[7] = row_stride(p, box);
	if (box->begin)
		ops[n++] = mapped(map, box->begin);
	if (p->code->in_pair && p->code->same_tile[i])
		ops[n++] = p->code->same_tile[i];
	struct op *copy = build(b, IR_TMA_TENSOR_COPY, ops, n, NULL, 0, 0);
	copy->attr[ATTR_COPY_PAIR] = p->code->in_pair && p->code->same_tile[i];
	copy->attr[ATTR_ALONG] = box->along;
	copy->attr[ATTR_STRIDE] = box->distance.times;
	copy->attr[ATTR_NARROW] = box->narrow;
	copy->loc = p->loads.at[i]->loc;
}

/* Issues the TMA copy of load i, addressed by the first element of its tile. */
static void issue_tma_copy(struct plan *p, struct builder *b, u32 i, struct value *first, struct value *slot,
			   struct value *full)
{
	const struct tma_tile *box = &p->tiles.at[i];
	struct value *to = buffer_at(p, b, i, slot), *ops[] = {first, to, full, row_stride(p, box)};
	struct op *copy = build(b, IR_TMA_COPY, ops, box->distance.nparams ? 4 : 3, NULL, 0, 0);
	copy->attr[ATTR_ALONG] = box->along;
	copy->attr[ATTR_STRIDE] = box->distance.times;
	copy->loc = p->loads.at[i]->loc;
}

/* Issues load i for the iteration with the values in `map`: a cp.async copy into buffer `slot` of its multi-buffer, or
 * a load into registers (the value returned). */
static struct value *issue_load(struct plan *p, struct builder *b, u32 i, const struct map *map, struct value *slot,
				struct value *inside)
{
	struct op *load = p->loads.at[i];
	struct value *ptr = mapped(map, operand(load, 0));
	struct value *mask = guard(b, ptr, load->noperands > 1 ? mapped(map, operand(load, 1)) : NULL, inside);
	if (!p->async) {
		struct value *other = load->noperands > 2 ? mapped(map, operand(load, 2)) : NULL;
		struct value *v = build3(b, IR_LOAD, result(load)->type, ptr, mask, other);
		memcpy(v->def->attr, load->attr, sizeof load->attr);
		v->def->loc = load->loc;
		return v;
	}
	struct value *ops[] = {ptr, buffer_at(p, b, i, slot), mask};
	struct op *copy = build(b, IR_ASYNC_COPY, ops, 3, NULL, 0, 0);
	copy->attr[ATTR_EVICT] = load->attr[ATTR_EVICT];
	copy->loc = load->loc;
	return NULL;
}

/* Waits at the "empty" mbarrier until all warps have released the part's buffer `next`, which the copies built next
 * overwrite. */
static void wait_for_release(struct plan *p, struct builder *b, u32 part, struct pipeline_state next)
{
	struct value *barrier = barrier_at(p, b, part, next.slot, true);
	struct value *ops[] = {barrier, other_phase(b, next.phase)};
	build(b, IR_WAIT_BARRIER, ops, 2, NULL, 0, 0);
}

void issue_tma_copies(struct plan *p, struct builder *b, struct op *loop, const struct map *map,
		      struct pipeline_state to, struct value *inside)
{
	struct value **firsts = arena_array(&p->scratch, struct value *, p->loads.len);
	for (u32 i = 0; i < p->loads.len; i++)
		if (!p->tiles.at[i].tensor)
			firsts[i] = first_element(b, loop, &p->code->first_elements,
						  mapped(map, operand(p->loads.at[i], 0)));
	struct builder in = builder_at_end(p->ctx, build(b, IR_ONE_THREAD, &inside, 1, NULL, 0, 1)->blocks[0]);
	for (u32 k = 0; k < p->schedule->parts.len; k++) {
		const struct buffer_part *part = &p->schedule->parts.at[k];
		if (to.phase)
			wait_for_release(p, &in, k, to);
		struct value *full = barrier_at(p, &in, k, to.slot, false);
		expect_bytes(p, &in, part, full);
		for (u32 n = 0; n < part->loads.len; n++) {
			u32 i = part->loads.at[n];
			if (p->tiles.at[i].tensor)
				issue_bounded_copy(p, &in, i, map, to.slot, full);
			else
				issue_tma_copy(p, &in, i, firsts[i], to.slot, full);
		}
	}
	build(&in, IR_YIELD, NULL, 0, NULL, 0, 0);
}

static void clone_slice(struct plan *p, struct builder *b, struct map *map)
{
	for (u32 i = 0; i < p->slice.len; i++)
		op_clone(b, p->slice.at[i], map);
}

/* Issues all loads of one iteration. Appends the values of loads into registers to *loaded. */
static void issue_loads(struct plan *p, struct builder *b, const struct map *map, struct pipeline_state to,
			struct value *inside, value_vec *loaded)
{
	if (p->tma) {
		issue_tma_copies(p, b, p->loop, map, to, inside);
		return;
	}
	for (u32 i = 0; i < p->loads.len; i++) {
		struct value *v = issue_load(p, b, i, map, to.slot, inside);
		if (v)
			vec_push(&p->scratch, loaded, v);
	}
	if (p->async)
		p->code->last_group = build1(b, IR_ASYNC_COMMIT, type_token(p->ctx), NULL);
}

void issue_copies(struct plan *p, struct builder *b, struct map *map, struct value *slot, struct value *inside)
{
	clone_slice(p, b, map);
	issue_loads(p, b, map, (struct pipeline_state){slot, NULL}, inside, NULL);
}

/* A "full" and an "empty" mbarrier for each buffer. With a producer, a part that is released one iteration later has
 * one more "empty" mbarrier, of no buffer: the first iteration releases it, since no buffer has been read yet. */
static int num_barriers(const struct plan *p, const struct buffer_part *part)
{
	return 2 * p->stages + (p->producer && part->released_late);
}

static int number_barriers(struct plan *p)
{
	int n = 0;
	for (u32 k = 0; k < p->schedule->parts.len; k++) {
		p->schedule->parts.at[k].barriers = n;
		n += num_barriers(p, &p->schedule->parts.at[k]);
	}
	return n;
}

/* Initializes or invalidates the mbarriers, by `code`. */
static void each_barrier(struct plan *p, struct builder *b, enum opcode code)
{
	struct value *always = build_int(b, type_scalar(p->ctx, DT_I1), 1);
	struct builder in = builder_at_end(p->ctx, build(b, IR_ONE_THREAD, &always, 1, NULL, 0, 1)->blocks[0]);
	in.loc = b->loc;
	for (u32 k = 0; k < p->schedule->parts.len; k++)
		for (int i = 0; i < num_barriers(p, &p->schedule->parts.at[k]); i++) {
			struct value *n = build_i32(&in, p->schedule->parts.at[k].barriers + i),
				     *at = index_multibuffer(p, &in, p->code->barriers, n);
			struct op *o = build(&in, code, &at, 1, NULL, 0, 0);
			if (code == IR_INIT_BARRIER)
				o->attr[ATTR_COUNT] = i < p->stages ? 1 : p->s->num_warps << (p->code->in_pair != NULL);
		}
	build(&in, IR_YIELD, NULL, 0, NULL, 0, 0);
}

static bool writes_global(const struct op *o)
{
	bool yes = o->code == IR_STORE || o->code == IR_ATOMIC_RMW || o->code == IR_ATOMIC_CAS;
	for (u32 i = 0; i < o->nblocks; i++)
		for (const struct op *in = o->blocks[i]->first; in && !yes; in = in->next)
			yes = writes_global(in);
	return yes;
}

/* True if the program may have written to global memory before it reaches o. */
static bool written_before(const struct op *o)
{
	for (; o; o = o->block->parent) {
		if (o->block->parent && op_is_loop(o->block->parent) && writes_global(o->block->parent))
			return true;
		for (const struct op *before = o->prev; before; before = before->prev)
			if (writes_global(before))
				return true;
	}
	return false;
}

/* Allocates the multi-buffer of each load, before `at`. */
void make_buffers(struct plan *p, struct op *at)
{
	struct builder b = builder_before(p->ctx, at);
	for (u32 i = 0; i < p->loads.len; i++) {
		struct op *load = p->loads.at[i];
		const struct type *t = result(load)->type;
		b.loc = load->loc;
		const struct type *ring =
			type_memdesc(p->ctx, t->elem, t->rank, t->shape, multibuffer_layout(p, load), p->stages);
		struct value *v = result(build(&b, IR_LOCAL_ALLOC, NULL, 0, &ring, 1, 0));
		v->name = load->results[0].name;
		vec_push(&p->scratch, &p->code->buffers, v);
	}
	if (!p->tma)
		return;
	static const i32 one[] = {1};
	struct layout l = layout_empty(1, one);
	const struct type *t = type_memdesc(p->ctx, type_scalar(p->ctx, DT_I64), 1, one,
					    layout_intern(&p->ctx->layouts, &l), number_barriers(p));
	p->code->barriers = result(build(&b, IR_LOCAL_ALLOC, NULL, 0, &t, 1, 0));
	each_barrier(p, &b, IR_INIT_BARRIER);
	/* Before any copy, earlier accesses to this memory must be complete,
	 * and the mbarriers must be initialized, also for the async proxy. */
	build(&b, IR_FENCE_ASYNC, NULL, 0, NULL, 0, 0)->attr[ATTR_GLOBAL] = !p->producer && written_before(p->loop);
	build(&b, IR_BARRIER, NULL, 0, NULL, 0, 0)->attr[ATTR_CLUSTER] = p->code->in_pair != NULL;
}

/* The second of two chained loops uses the buffers and mbarriers of the first, and continues with its pipeline state.
 */
static void reuse_buffers(struct plan *p)
{
	const struct plan *prev = p->prev_chained;
	u32 state = prev->code->state;
	p->code->buffers = prev->code->buffers;
	p->code->barriers = prev->code->barriers;
	number_barriers(p);
	for (u32 i = 0; p->producer && i + 1 < p->producer->path.len; i++)
		p->producer->path.at[i] = prev->producer->path.at[i];
	carry_pipeline_state(p, (struct pipeline_state){carried_last(prev, state), carried_last(prev, state + 1)});
}

/* The prologue: issues the loads of the first `ahead` iterations before the loop, and adds the slice's iter args. */
static void build_prologue(struct plan *p, value_vec *loaded, value_vec *tokens)
{
	struct builder b = builder_before(p->ctx, p->loop);
	struct map map = {.arena = &p->scratch};
	struct value *first = p->start;
	for (u32 k = 0; k < p->args.len; k++)
		map_put(&map, for_arg(p->loop, p->args.at[k]), for_init(p->loop, p->args.at[k]));
	for (int n = 0; n < p->ahead; n++) {
		map_put(&map, for_index(p->loop), advance_index(&b, p->loop, first, n));
		clone_slice(p, &b, &map);
		struct value *inside = p->next_chained ? is_below(&b, p->loop, p->end, first, n)
						       : is_inside(&b, p->loop, p->end, first, n);
		issue_loads(p, &b, &map, (struct pipeline_state){p->async ? build_i32(&b, n) : NULL, NULL}, inside,
			    loaded);
		vec_push(&p->scratch, tokens, p->code->last_group);
		value_vec next = {0};
		for (u32 k = 0; k < p->args.len; k++)
			vec_push(&p->scratch, &next, mapped(&map, for_yielded(p->loop, p->args.at[k])));
		for (u32 k = 0; k < p->args.len; k++)
			map_put(&map, for_arg(p->loop, p->args.at[k]), next.at[k]);
	}
	for (u32 k = 0; k < p->args.len; k++)
		carry(p, mapped(&map, for_arg(p->loop, p->args.at[k])));
}

/* The barrier suffices before wgmma too: data written by cp.async needs no proxy fence, which would wait for all other
 * accesses too. */
void wait_copies(struct builder *b)
{
	build(b, IR_ASYNC_WAIT, NULL, 0, NULL, 0, 0);
	build(b, IR_BARRIER, NULL, 0, NULL, 0, 0);
}

void carry_copy_tokens(struct plan *p, struct value *const *tokens)
{
	p->code->copy_tokens = p->code->carried.len;
	for (int i = 0; i < p->ahead; i++)
		carry(p, tokens[i]);
}

void add_token(struct plan *p, struct value **tokens)
{
	memmove(tokens, tokens + 1, (size_t)(p->ahead - 1) * sizeof *tokens);
	tokens[p->ahead - 1] = p->code->last_group;
}

/* Sets the yielded tokens of the commit groups: those of this iteration without the oldest, and that of the group
 * issued now. */
static void yield_copy_tokens(struct plan *p)
{
	for (u32 i = 0, n = (u32)p->ahead; i < n; i++)
		p->code->carried.at[p->code->copy_tokens + i].next =
			i + 1 < n ? carried_now(p, p->code->copy_tokens + i + 1) : p->code->last_group;
}

/* Replaces load i's consumer with reads of the buffer. With copies, the load and its store are removed; with loads into
 * registers, the store remains, and stores to the buffer. */
static void use_buffer(struct plan *p, u32 i, struct value *slot)
{
	struct op *load = p->loads.at[i], *to = load_consumer(load);
	struct op *alloc = to->code == IR_LOCAL_STORE ? operand(to, 1)->def : NULL;
	struct builder b = builder_before(p->ctx, alloc ? alloc : to);
	struct value *view = buffer_at(p, &b, i, slot);
	if (alloc) {
		tl_assert(to->next->code == IR_FENCE_ASYNC);
		op_erase(to->next);
		if (p->async)
			op_erase(to);
		replace_uses(result(alloc), view);
		op_erase(alloc);
		if (!p->async)
			return;
	} else {
		for (const struct use *u = result(to)->uses, *next; u; u = next) {
			next = u->next;
			struct op *again = u->user;
			if (is_second_read(u)) {
				replace_uses(result(again), build1(&b, IR_LOCAL_LOAD, result(again)->type, view));
				op_erase(again);
			}
		}
		if (result(to)->uses)
			replace_uses(result(to), build1(&b, IR_LOCAL_LOAD, result(to)->type, view));
		op_erase(to);
	}
	op_erase(load);
}

struct pipeline_state pipeline_state_at(struct plan *p, struct builder *b, struct pipeline_state at, int by)
{
	tl_assert(at.slot);
	const struct type *t = at.slot->type;
	struct value *sum = build2(b, IR_ADDI, t, at.slot, build_int(b, t, by)), *all = build_int(b, t, p->stages);
	struct value *over = build_cmpi(b, CMPI_SGE, sum, all);
	at.slot = build3(b, IR_SELECT, t, over, build2(b, IR_SUBI, t, sum, all), sum);
	if (at.phase)
		at.phase = build3(b, IR_SELECT, t, over, other_phase(b, at.phase), at.phase);
	return at;
}

/* Waits until this iteration's buffers are filled. */
static void wait_for_copies(struct plan *p, struct builder *b, const struct schedule_step *s)
{
	if (!p->tma) {
		struct value *token = carried_now(p, p->code->copy_tokens);
		build(b, IR_ASYNC_WAIT, &token, 1, NULL, 0, 0);
		return;
	}
	struct value *ops[] = {barrier_at(p, b, s->part, p->code->now.slot, false), p->code->now.phase};
	build(b, IR_WAIT_BARRIER, ops, 2, NULL, 0, 0);
}

void release_buffer(struct plan *p, struct builder *b, u32 part, struct value *slot)
{
	struct value *ops[] = {barrier_at(p, b, part, slot, true), p->code->in_pair};
	build(b, IR_ARRIVE_BARRIER, ops, p->code->in_pair ? 2 : 1, NULL, 0, 0);
}

/* True if the prefetches past the last iteration may repeat the last iteration's loads instead of being predicated off,
 * which is cheaper than a predicate and a zero for every register in all other iterations: unmasked loads into
 * registers, with no tiles among the slice's iter args. Not the register prefetch of small loads, which may become part
 * of the slice of copies with a larger prefetch distance. */
static bool may_repeat(const struct plan *p)
{
	bool unmasked = !p->async && !p->register_prefetch;
	for (u32 i = 0; i < p->loads.len; i++)
		unmasked &= p->loads.at[i]->noperands == 1;
	for (u32 k = 0; k < p->args.len; k++)
		unmasked &= !type_is_tensor(for_arg(p->loop, p->args.at[k])->type);
	return unmasked;
}

/* STEP_ISSUE_COPIES of stream_ahead: the loads of the iteration `ahead` iterations later. */
static void copy_ahead(struct plan *p, struct builder *b)
{
	struct map map = {.arena = &p->scratch};
	struct value *now = for_index(p->loop), *inside = is_inside(b, p->loop, p->end, now, p->ahead),
		     *index = advance_index(b, p->loop, now, p->ahead);
	bool repeat = may_repeat(p);
	map_put(&map, now, repeat ? build3(b, IR_SELECT, index->type, inside, index, now) : index);
	for (u32 k = 0; k < p->args.len; k++) {
		struct value *old = for_arg(p->loop, p->args.at[k]), *to = carried_now(p, k);
		map_put(&map, old, repeat ? build3(b, IR_SELECT, old->type, inside, to, old) : to);
	}
	clone_slice(p, b, &map);
	issue_loads(p, b, &map, p->code->fill, repeat ? NULL : inside, &p->code->loaded);
	for (u32 k = 0; k < p->args.len; k++)
		p->code->carried.at[k].next = mapped(&map, for_yielded(p->loop, p->args.at[k]));
}

static void yield_pipeline_state(struct plan *p, struct pipeline_state next)
{
	struct loop_carried *state = &p->code->carried.at[p->code->state];
	state[0].next = next.slot;
	if (p->tma)
		state[1].next = next.phase;
	if (p->producer && p->schedule->released_late)
		state[2].next = p->code->now.slot;
}

/* Releases the part's buffer of this iteration or, if the part is released one iteration later, of the preceding
 * iteration. Without a producer, that buffer is the one filled next. */
static void release_step(struct plan *p, struct builder *b, u32 part)
{
	struct expansion *x = p->code;
	bool late = p->schedule->parts.at[part].released_late;
	release_buffer(p, b, part, !late ? x->now.slot : p->producer ? carried_now(p, x->state + 2) : x->fill.slot);
	if (late && !p->producer)
		x->fill.phase = other_phase(b, x->now.phase);
}

static void expand_step(struct plan *p, struct builder *b, const struct schedule_step *s)
{
	switch (s->kind) {
	case STEP_OP: return;
	case STEP_WAIT_COPIES: wait_for_copies(p, b, s); return;
	case STEP_ADVANCE:
		if (p->async && p->code->stream->copy)
			p->code->fill = pipeline_state_at(p, b, p->code->now, p->ahead);
		yield_pipeline_state(p, pipeline_state_at(p, b, p->code->now, 1));
		return;
	case STEP_ISSUE_COPIES: p->code->stream->copy(p, b); return;
	case STEP_WAIT_PREVIOUS_DOTS: wait_for_previous_dots(p, b); return;
	case STEP_WAIT_DOT: wait_for_dot(p, b, s); return;
	case STEP_RELEASE: release_step(p, b, s->part); return;
	case STEP_BARRIER: build(b, IR_BARRIER, NULL, 0, NULL, 0, 0); return;
	case STEP_FENCE: build(b, IR_FENCE_ASYNC, NULL, 0, NULL, 0, 0); return;
	case STEP_WARP_BARRIER: build(b, IR_BARRIER, NULL, 0, NULL, 0, 0)->attr[ATTR_WARP] = true; return;
	case STEP_PINGPONG_WAIT: build(b, IR_PINGPONG_WAIT, NULL, 0, NULL, 0, 0); return;
	case STEP_PINGPONG_ARRIVE: build(b, IR_PINGPONG_ARRIVE, NULL, 0, NULL, 0, 0); return;
	}
}

static void count_dot_loop(struct op *o, void *n)
{
	*(u32 *)n += o->code == IR_FOR && first_dot(o->blocks[0]);
}

/* The loop that ping-pong scheduling spans: the loop over tiles around p's, if a producer runs ahead across it and it
 * contains no loops with dots other than p's and the loops chained to it, which may have ping-pong scheduling
 * themselves; else p's loop. */
static struct op *loop_of_pingpong(const struct plan *p)
{
	u32 loops = 0, chained = (p->prev_chained != NULL) + (p->next_chained != NULL);
	if (!p->producer || p->producer->path.len < 2)
		return p->loop;
	walk(p->producer->path.at[0]->blocks[0], count_dot_loop, &loops);
	return loops > 1 + chained ? p->loop : p->producer->path.at[0];
}

/* Before the loop: the first arrivals and waits of ping-pong scheduling. Over the loop, begin_pingpong and end_pingpong
 * included, both warpgroups arrive and wait equally often: otherwise the racecheck tool of compute-sanitizer loses
 * count. */
static void begin_pingpong(struct plan *p)
{
	struct op *all = loop_of_pingpong(p);
	struct builder before = builder_before(p->ctx, all), b = builder_before(p->ctx, p->loop);
	/* the second warpgroup arrives, so that the first can begin */
	if (all == p->loop || !p->prev_chained)
		build(&before, IR_PINGPONG_ARRIVE, NULL, 0, NULL, 0, 0)->attr[ATTR_ONLY] = 2;
	build(&b, IR_PINGPONG_WAIT, NULL, 0, NULL, 0, 0);
}

/* Replaces each load of the iteration with a read of its buffer, or with the registers loaded ahead. */
static void replace_loads(struct plan *p)
{
	for (u32 i = 0; i < p->loads.len; i++) {
		if (p->multi_buffered)
			use_buffer(p, i, p->code->now.slot);
		if (p->async)
			continue;
		p->code->carried.at[p->code->register_values + i].next = p->code->loaded.at[i];
		replace_uses(result(p->loads.at[i]), carried_now(p, p->code->register_values + i));
		op_erase(p->loads.at[i]);
	}
}

static void build_body(struct plan *p)
{
	struct block *body = p->loop->blocks[0];
	if (p->multi_buffered)
		p->code->now = (struct pipeline_state){carried_now(p, p->code->state),
						       p->tma ? carried_now(p, p->code->state + 1) : NULL};
	if (p->pingpong)
		begin_pingpong(p);
	struct op *next = body->first; /* the next of the body's own operations: steps are inserted before it */
	for (u32 i = 0; i < p->schedule->steps.len; i++) {
		const struct schedule_step *s = &p->schedule->steps.at[i];
		struct builder b = builder_before(p->ctx, next);
		if (s->partition == ALL_WARPS)
			expand_step(p, &b, s);
		next = s->kind == STEP_OP ? s->op->next : next;
	}
	if (p->async && !p->tma)
		yield_copy_tokens(p);
	yield_dot_tokens(p);
	replace_loads(p);
	for (u32 i = 0; i < p->code->carried.len; i++)
		op_add_operand(p->ctx, body->last, p->code->carried.at[i].next);
}

bool uses_shared_after(const struct plan *p, const struct op *o)
{
	bool yes = o->block->parent;
	while ((o = o->next) && !yes)
		yes = o->nblocks || o->code == IR_LOCAL_ALLOC || (o->code == IR_DOT && !o->attr[ATTR_INSTR]) ||
		      scratch_bytes(p->s, o);
	return yes;
}

void invalidate_barriers(struct plan *p, struct builder *b)
{
	build(b, IR_BARRIER, NULL, 0, NULL, 0, 0)->attr[ATTR_CLUSTER] = p->code->in_pair != NULL;
	each_barrier(p, b, IR_INVAL_BARRIER);
}

/* After the loop, the first warpgroup arrives once more, so that the second, which runs after it, can finish. If
 * ping-pong scheduling spans a loop over tiles, the second warpgroup arrives too, for the first warpgroup's next tile
 * or for the next chained loop; after the loop over tiles, the first warpgroup waits for the last of these arrivals. */
void end_pingpong(struct plan *p, struct builder *b)
{
	struct op *all = loop_of_pingpong(p);
	if (!p->pingpong)
		return;
	build(b, IR_PINGPONG_ARRIVE, NULL, 0, NULL, 0, 0)->attr[ATTR_ONLY] = all == p->loop;
	if (all == p->loop || p->next_chained)
		return;
	struct builder behind = builder_after(p->ctx, all);
	build(&behind, IR_PINGPONG_WAIT, NULL, 0, NULL, 0, 0)->attr[ATTR_FIRST] = true;
}

/* --- copies issued by the loop's own threads for later iterations of it or of the next chained loop ------------ */

static void begin_ahead(struct plan *p)
{
	struct op *last = p->loop->prev;
	value_vec loaded = {0}, tokens = {0};
	if (p->multi_buffered)
		make_buffers(p, p->loop);
	build_prologue(p, &loaded, &tokens);
	if (!p->register_prefetch)
		sink_past_first_copies(p, last);
	if (p->multi_buffered) {
		struct builder b = builder_before(p->ctx, p->loop);
		carry_pipeline_state(p, first_pipeline_state(p, &b));
	}
	if (p->async && !p->tma)
		carry_copy_tokens(p, tokens.at);
	p->code->register_values = p->code->carried.len;
	for (u32 i = 0; i < loaded.len; i++)
		carry(p, loaded.at[i]);
}

static void end_ahead(struct plan *p, struct builder *b)
{
	finish_dots(p, b);
	end_pingpong(p, b);
	if (p->next_chained || !p->multi_buffered)
		return;
	if (p->tma)
		invalidate_barriers(p, b);
	else if (p->async && uses_shared_after(p, p->loop))
		wait_copies(b);
	else
		build(b, p->async ? IR_ASYNC_WAIT : IR_BARRIER, NULL, 0, NULL, 0, 0);
}

const struct stream stream_ahead = {begin_ahead, copy_ahead, end_ahead};

/* Rebuilds the loop with the iter args of the pipeliner. A TMA tile that moves with the loop's index gets the new
 * loop's index. */
static void extend(struct plan *p, const value_vec *inits)
{
	const struct block *before = p->loop->blocks[0];
	p->loop = extend_loop(p->ctx, &p->scratch, p->loop, inits);
	for (u32 i = 0; i < p->tiles.len; i++)
		for (int d = 0; d < 2; d++) {
			struct value **index = &p->tiles.at[i].index[d];
			if (*index && (*index)->block == before)
				*index = for_index(p->loop);
		}
}

void expand_loop(struct plan *p)
{
	value_vec inits = {0};
	p->code = arena_new(&p->scratch, struct expansion);
	p->code->first_elements.arena = &p->scratch;
	p->code->first = p->loop->nresults;
	p->code->stream = p->producer ? &stream_producer : p->flattened ? &stream_flat : &stream_ahead;
	make_dots_async(p);
	schedule_loop(p);
	if (p->s->cuda.schedules)
		print_schedule(p, p->s->diags->sources.at[p->loop->loc.file]->name, p->s->cuda.schedules);
	if (p->prev_chained)
		reuse_buffers(p);
	else
		p->code->stream->begin(p);
	if (p->producer && p->schedule->released_late) { /* no buffer has been read before the first iteration */
		struct builder b = builder_before(p->ctx, p->producer->path.at[0]);
		carry(p, build_i32(&b, p->stages));
	}
	carry_dot_tokens(p);
	for (u32 i = 0; i < p->code->carried.len; i++)
		vec_push(&p->scratch, &inits, p->code->carried.at[i].init);
	extend(p, &inits);
	build_body(p);
	struct builder b = builder_after(p->ctx, p->loop);
	p->code->stream->end(p, &b);
}
