/* Warp specialization: an additional warp, the producer, issues the TMA copies of a GEMM loop.
 *
 * The other warps, the consumers, only wait for full buffers and release them after the last read. They compute no
 * addresses, and no barrier in the loop makes warpgroups wait for each other. The producer runs ahead as far as there
 * are buffers, also across iterations of the outer loops. It runs a copy of the same loops, reduced to bounds and
 * addresses.
 *
 *     producer {                          for tile
 *       for tile                            for k
 *         for k                               wait for "full"
 *           wait for "empty"                  dots;  wait for iteration k - 1's dots;  release its buffer
 *           issue TMA copies                  advance the pipeline state
 *           advance the pipeline state      wait for the dots;  release the last buffer
 *     }                                     epilogue
 *
 * On an H100, GEMM gains 1 to 5 % over cp.async by all threads where a multiprocessor holds one block. */
#include "support/thresholds.h"
#include "transform/program_order.h"
#include "gpu/layout/memory_access.h"
#include "gpu/pipeline/expand.h"
#include "gpu/pipeline/persistent.h"

/* True if the producer's warps may execute o too. (All warps execute what precedes the partition.) */
static bool all_warps_may(const struct op *o)
{
	bool scalar = o->code == IR_LOAD && !type_is_tensor(result(o)->type);
	return (op_has(o, PURE) || scalar) && !op_has(o, SYNC) && !o->nblocks;
}

/* The IR block at whose start the partition is inserted: the kernel's body or, after early exits, the block with the
 * rest of it. */
static const struct block *block_of_partition(const struct kernel *k)
{
	const struct block *b = k->body;
	for (const struct op *o = b->first; all_warps_may(o) || op_ends_early(o);)
		if (op_ends_early(o)) {
			b = o->blocks[block_is_empty(o->blocks[0])];
			o = b->first;
		} else {
			o = o->next;
		}
	return b;
}

/* Text for a remark on why no producer is possible; NULL: one is. Fills p->producer. */
static const char *why_not(struct plan *p)
{
	const struct op *around;
	if (p->s->num_warps > MAX_WARPS_BESIDE_PRODUCER)
		return "with more than 8 warps, the producer warp has too few registers";
	if (!p->tma)
		return "a load is not a TMA tile, or its mask is not a bound of the tensor";
	const struct block *top = block_of_partition(p->s->k);
	bool apart = find_loop_nest(p, p->producer, top, 1);
	around = p->producer->path.at[0];
	if (p->s->k->cuda.more_warps || around->block != top)
		return "the loop is not the kernel's only GEMM, or is under a condition";
	if (talks_until(around) || !apart)
		return "the copies may depend on results of this program or of other programs";
	if (around != p->loop && !multibuffers_fit(p, around))
		return "the buffers do not fit in shared memory together with the outer loop's other buffers";
	return NULL;
}

/* True if the loop or an outer loop has the warp_specialize attribute. Clears the attribute. */
static bool take_attribute(struct op *loop)
{
	bool yes = false;
	for (; loop; loop = loop->block->parent)
		if (loop->code == IR_FOR && loop->attr[ATTR_WARP_SPECIALIZE]) {
			yes = true;
			loop->attr[ATTR_WARP_SPECIALIZE] = false;
		}
	return yes;
}

/* True if only the dot reads the buffer or a transposed view of it. */
static bool is_read_alone(const struct value *buffer, const struct op *dot, const struct op *store)
{
	bool yes = true;
	for (const struct use *u = buffer->uses; u && yes; u = u->next)
		yes = u->user == dot || u->user == store ||
		      (u->user->code == IR_MEMDESC_TRANS && is_read_alone(result(u->user), dot, store));
	return yes;
}

/* True if the last dot of an iteration has a deferred wait, and only that dot reads the buffers that it reads. These
 * buffers are released one iteration later, after the wait. If an earlier dot of the iteration also reads them, it
 * waits for the late refill. On an H200, the forward pass of attention gains 3 to 25 % from a producer. Its gradients
 * of keys and of queries, whose first and last dots read the same tile, lose 5 to 28 %. */
static bool defers_last_dot_alone(const struct plan *p)
{
	bool any = false, alone = true;
	for (u32 i = 0; i < p->loads.len && p->deferred; i++) {
		const struct op *store = load_consumer(p->loads.at[i]);
		if (is_read_late(p, p->loads.at[i])) {
			any = true;
			alone &= is_read_alone(operand(store, 1), p->deferred, store);
		}
	}
	return any && alone;
}

/* A producer is used where the warp_specialize attribute requests it. Without the attribute: where a multiprocessor
 * holds one block, and either the dots are independent, or defers_last_dot_alone holds and no other loop follows. */
void decide_producer(struct plan *p)
{
	const struct block *body = p->loop->blocks[0];
	bool dots = first_dot(body), independent = dots && dots_are_independent(p->ctx, body),
	     deferred = defers_last_dot_alone(p) && !next_loop(p->loop);
	bool possible = p->s->target->has_tensor_copy && !p->s->options.no_tma && dots && !p->joint_producer;
	bool asked = possible && take_attribute(p->loop);
	if (!asked && (!possible || (!independent && !deferred) || !one_block_per_multiprocessor(p)))
		return;
	p->producer = arena_new(&p->scratch, struct loop_nest);
	const char *reason = why_not(p);
	if (reason)
		p->producer = NULL;
	if (reason && asked && p->s->remarks)
		diag(p->s->diags, R_NOT_SPECIALIZED, p->loop->loc, reason);
	else
		p->no_producer = reason;
}

void decide_joint_producer(struct plan *p, struct plan *q)
{
	struct plan *loops[] = {p, q};
	u32 n = q ? 2 : 1;
	bool can = one_block_per_multiprocessor(p);
	for (u32 i = 0; i < n && can; i++)
		can = defers_last_dot_alone(loops[i]);
	for (u32 i = 0; i < n && can; i++)
		loops[i]->producer = arena_new(&loops[i]->scratch, struct loop_nest);
	for (u32 i = 0; i < n && can; i++)
		can = !why_not(loops[i]);
	for (u32 i = 0; i < n; i++)
		if (can)
			decide_pingpong(loops[i]);
		else
			loops[i]->producer = NULL;
}

/* --- the producer -------------------------------------------------------------------------------------------- */

/* Clones the loop path.at[level] into the producer, and the operations of loop_nest.needed that precede it in its
 * block. state: the producer's pipeline state before the loop. Returns the state after the loop. */
static struct pipeline_state build_producer_loop(struct plan *p, u32 level, struct builder *b, struct map *map,
						 struct pipeline_state state)
{
	struct loop_nest *nest = p->producer;
	struct op *loop = nest->path.at[level];
	bool innermost = loop == p->loop;
	u32 nargs = innermost ? p->args.len : 0;
	value_vec inits = {0};
	for (struct op *o = loop->block->first; o != loop; o = o->next)
		if (map_get(&nest->needed, o))
			op_clone(b, o, map);
	for (u32 i = 0; i < nargs; i++)
		vec_push(&p->scratch, &inits, mapped(map, for_init(loop, p->args.at[i])));
	if (innermost && p->code->in_pair)
		compare_tensor_maps(p, b, map);
	vec_push(&p->scratch, &inits, state.slot);
	vec_push(&p->scratch, &inits, state.phase);
	struct op *copy = build_for(b, mapped(map, innermost ? p->start : for_lower(loop)),
				    mapped(map, innermost ? p->end : for_upper(loop)), mapped(map, for_step(loop)),
				    inits.at, inits.len);
	map_put(map, for_index(loop), for_index(copy));
	for (u32 i = 0; i < nargs; i++)
		map_put(map, for_arg(loop, p->args.at[i]), for_arg(copy, i));
	state = (struct pipeline_state){for_arg(copy, nargs), for_arg(copy, nargs + 1)};
	struct builder in = builder_at_end(p->ctx, copy->blocks[0]);
	struct op *yield = build(&in, IR_YIELD, NULL, 0, NULL, 0, 0);
	in = builder_before(p->ctx, yield);
	in.loc = loop->loc;
	if (innermost) {
		for (u32 i = 0; i < p->slice.len; i++)
			op_clone(&in, p->slice.at[i], map);
		issue_tma_copies(p, &in, copy, map, state, build_int(&in, type_scalar(p->ctx, DT_I1), 1));
		for (u32 i = 0; i < nargs; i++)
			op_add_operand(p->ctx, yield, mapped(map, for_yielded(loop, p->args.at[i])));
		state = pipeline_state_at(p, &in, state, 1);
	} else {
		state = build_producer_loop(p, level + 1, &in, map, state);
	}
	op_add_operand(p->ctx, yield, state.slot);
	op_add_operand(p->ctx, yield, state.phase);
	return (struct pipeline_state){&copy->results[nargs], &copy->results[nargs + 1]};
}

/* The producer's partition is the first operation of its block. */
static void begin_producer(struct plan *p)
{
	struct loop_nest *q = p->producer;
	struct op *first = q->path.at[0]->block->first;
	value_vec inits = {0};
	decide_pair(p, first);
	make_buffers(p, first);
	struct builder b = builder_before(p->ctx, first);
	b.loc = p->loop->loc;
	struct pipeline_state state = first_pipeline_state(p, &b);
	vec_push(&p->scratch, &inits, state.slot);
	vec_push(&p->scratch, &inits, state.phase);
	struct op *partition = build(&b, IR_PARTITION, NULL, 0, NULL, 0, 1);
	partition->attr[ATTR_MORE_WARPS] = p->s->k->cuda.more_warps = PRODUCER_WARPS;
	i32 *most = &p->s->k->cuda.maxnreg;
	if (p->s->num_warps == 8 && (!*most || *most >= CONSUMER_REGISTERS)) { /* fewer warps have enough registers */
		partition->attr[ATTR_REGISTERS] = PRODUCER_REGISTERS;
		partition->attr[ATTR_OTHER_REGISTERS] = CONSUMER_REGISTERS;
		*most = 0; /* no thread has more registers; .maxnreg would apply to all warps when the block begins */
	}
	struct builder in = builder_at_end(p->ctx, partition->blocks[0]);
	build(&in, IR_YIELD, NULL, 0, NULL, 0, 0);
	struct map map = {.arena = &p->scratch};
	in = builder_before(p->ctx, partition->blocks[0]->last);
	in.loc = p->loop->loc;
	build_producer_loop(p, 0, &in, &map, state);
	for (u32 i = 0; i + 1 < q->path.len; i++)
		q->path.at[i] = carry_through(p, q->path.at[i], &inits);
	carry_pipeline_state(p, (struct pipeline_state){inits.at[0], inits.at[1]});
}

/* Yields the pipeline state from the outer loops too. Returns the outermost loop, or p's if there is none around it. */
static struct op *yield_to_outer_loops(struct plan *p)
{
	struct loop_nest *q = p->producer;
	struct op *loop = p->loop;
	u32 turn = p->code->first + p->code->state;
	for (u32 i = q->path.len - 1; i--;) {
		struct op *around = q->path.at[i];
		for (u32 k = 0; k < 2; k++)
			op_add_operand(p->ctx, around->blocks[0]->last, &loop->results[turn + k]);
		turn = around->nresults - 2;
		loop = around;
	}
	return loop;
}

/* After the loop. If the mbarriers are invalidated in the same basic block in which the last dots end, that is done
 * between the wait and the copy of the pinned accumulators to LLVM values: invalidation makes new basic blocks, and
 * LLVM takes a quarter longer if so many values pass between basic blocks. */
static void end_producer(struct plan *p, struct builder *b)
{
	struct op *outermost = p->next_chained ? p->loop : yield_to_outer_loops(p);
	struct builder behind = builder_after(p->ctx, outermost);
	bool again = !p->next_chained && uses_shared_after(p, outermost),
	     here = again && p->schedule->released_late && outermost == p->loop;
	end_pingpong(p, b); /* before any block-wide barrier */
	if (here)
		wait_dots(p, b);
	else
		finish_dots(p, b);
	for (u32 k = 0; k < p->schedule->parts.len; k++)
		if (p->schedule->parts.at[k].released_late)
			release_buffer(p, b, k, carried_last(p, p->code->state + 2));
	if (again)
		invalidate_barriers(p, outermost == p->loop ? b : &behind);
	else if (p->code->in_pair)
		end_pair(p);
	if (here)
		finish_dots(p, b);
}

const struct stream stream_producer = {begin_producer, NULL, end_producer};
