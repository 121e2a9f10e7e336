/* Software pipelining: loads of a loop are issued iterations ahead of their use.
 *
 * The slice of a load is the index arithmetic that its address and mask depend on, over the loop's index and over iter
 * args that are such arithmetic themselves. It runs ahead of the rest of the body, in separate iter args. Loads that
 * feed a dot go through S buffers in shared memory (multi-buffering) by cp.async, S - 1 iterations ahead. One barrier
 * per iteration is enough, since the buffer being filled was last read before the barrier. Other loads, and every load
 * before sm_80, are held in registers one iteration ahead (register prefetch). Loads past the last iteration are
 * predicated off, so there is no epilogue.
 *
 * Register prefetch also serves small loads in a loop with copies, such as page numbers on which the copies' addresses
 * depend. Without a num_stages attribute it serves loops that only sum loaded tiles, where each register is reloaded as
 * soon as its element has been added, and loops whose iterations do not overlap: warps wait for one another for a
 * reduction, or each iteration needs the result of the preceding one.
 *
 * Where all loads of a loop on sm_90 are TMA tiles, one thread issues TMA copies, and no thread computes addresses.
 * Each buffer then has two mbarriers: "full" completes when the bytes have arrived, "empty" when all warps have read
 * them. Contiguous vectors come by bulk copies together with the tiles. No barrier holds all threads, so warps may be
 * an iteration apart. Where each of two warpgroups runs two dots with other work between them, they use ping-pong
 * scheduling: while one runs the last dot of an iteration and the first of the next, the other does the work between
 * (FlashAttention-3, Shah et al., 2024).
 *
 * If only the next iteration's dot uses the result of a wgmma, as its accumulator, the wait for the wgmma follows the
 * issue of that dot, so that the tensor cores always have work. The wgmma's buffer is filled after that wait and a
 * second barrier. The last dot of an iteration with several dots has such a deferred wait too, if nothing needs its
 * result before the first dot of the next iteration. Other dots are overlapped with the work until their results are
 * needed, if further dots are issued in between. If a dot's operands come through registers, they are stored into one
 * of two buffers while the preceding dot still reads the other buffer; the next operands are loaded when the dot has
 * been issued. An operand that the body computes from copied data, such as weights of few bits, needs no buffer: the
 * wgmma takes it from registers, where it is computed for a few steps of k at a time while other wgmmas run. */
#include "support/thresholds.h"
#include "ir/launch_abi.h"
#include "analysis/register_pressure.h"
#include "transform/program_order.h"
#include "gpu/layout/memory_access.h"
#include "gpu/smem/completion.h"
#include "gpu/pipeline/persistent.h"
#include "gpu/pipeline/pipeline.h"
#include "gpu/pipeline/expand.h"

static bool has_flatten(const struct op *o)
{
	return o->code == IR_FOR && o->attr[ATTR_FLATTEN];
}

static bool is_inner_loop(const struct op *o)
{
	return o->code == IR_FOR && !block_has(o->blocks[0], op_is_loop);
}

struct op *next_loop(const struct op *loop)
{
	struct op *o = loop->next;
	while (o && op_has(o, PURE) && !op_has(o, SYNC))
		o = o->next;
	return o && is_inner_loop(o) ? o : NULL;
}

/* --- choosing ------------------------------------------------------------------------------------------------ */

/* True if the launcher passes a tensor map for the tile. Triton's does for descriptors only. */
static bool has_map(const struct kernel *k, const struct tma_tile *box)
{
	return !is_foreign(k) || (!box->begin && abi_needs_map(k, box->tensor));
}

/* Sets p->tma if all loads are TMA tiles and TMA is faster than cp.async. On an H100, attention gains up to 20 % where
 * warpgroups have work other than dots, since no warpgroup waits for the others. A single warpgroup gains with two
 * buffers, and loses with more. Where dots stay outstanding across iterations, the thread that issues TMA copies would
 * delay its warpgroup: cp.async is then faster by 2 to 10 %, unless a producer warp issues the copies. */
static void find_tma_tiles(struct plan *p)
{
	struct pass_state *s = p->s;
	p->tma = s->target->has_tensor_copy && !s->options.no_tma && s->num_warps >= 4 &&
		 first_dot(p->loop->blocks[0]) && s->k->cuda.cluster == 1 &&
		 p->loads.len + s->k->cuda.nmaps <= MAX_TENSOR_MAPS;
	for (u32 i = 0; p->tma && i < p->loads.len; i++) {
		struct op *load = p->loads.at[i];
		struct tma_tile box = {0};
		const struct layout *ring = multibuffer_layout(p, load);
		p->tma = !load->attr[ATTR_EVICT] &&
			 ((p->register_a && is_contiguous_vector(p, load)) ||
			  (load->noperands == 1 && !is_foreign(s->k) &&
			   find_tma_tile(s, operand(load, 0), ring, &box)) ||
			  (find_bounded_tile(s, load, ring, &box) && has_map(s->k, &box)));
		vec_push(&p->scratch, &p->tiles, box);
	}
	if (p->tma && !p->outstanding.len)
		add_bulk_copies(p);
	decide_producer(p);
	/* Triton's launcher does not pass the base of a descriptor with a tensor map */
	p->tma &= !p->outstanding.len || p->producer || is_foreign(s->k);
}

/* True if all loads are stored to shared memory before the first dot, so that one barrier between is enough. */
static bool stores_come_first(const struct plan *p)
{
	bool seen = false, ok = true;
	for (const struct op *o = p->loop->blocks[0]->first; o; o = o->next) {
		seen |= has_dot(o);
		ok &= o->code != IR_LOCAL_STORE || !seen;
	}
	for (u32 i = 0; i < p->loads.len; i++) {
		const struct op *to = load_consumer(p->loads.at[i]);
		ok &= to && to->code == IR_LOCAL_STORE;
	}
	return ok;
}

static i64 loaded_registers(const struct plan *p)
{
	i64 n = 0;
	for (u32 i = 0; i < p->loads.len; i++)
		n += registers_of(p->s, result(p->loads.at[i]));
	return n;
}

/* The number of stages (buffers) that the loop can use, at most `stages`: its number of iterations, if that is a
 * constant and there is no outer loop across which copies could run ahead; at least 2. */
static int useful_stages(const struct op *loop, int stages)
{
	i64 iterations = for_iterations(loop);
	if (loop->block->parent || stages <= 2 || iterations < 0)
		return stages;
	return (int)MAX(MIN(iterations, stages), 2);
}

static bool is_too_long(const struct block *b)
{
	int n = 0;
	for (const struct op *o = b->first; o && n <= MAX_PIPELINED_OPS; o = o->next)
		n++;
	return n > MAX_PIPELINED_OPS;
}

/* Plans how the loop is pipelined. False: it is not. */
static bool make_plan(struct plan *p)
{
	struct pass_state *s = p->s;
	struct op *loop = p->loop;
	bool asked = loop->attr[ATTR_STAGES] > 0;
	int stages = useful_stages(loop, stages_of(s, loop));
	bool plain = !asked && !block_has(loop->blocks[0], op_is_dot);
	bool sums = plain && only_sums(loop), waits = plain && loads_are_awaited(p);
	i64 least = waits ? 1 : MIN_SUM_REGISTERS, most = waits ? MAX_AWAITED_REGISTERS : MAX_SUM_REGISTERS;
	if (plain ? !sums && !waits : stages < 2)
		return false;
	p->start = for_lower(loop);
	p->end = for_upper(loop);
	find_loads(p, asked, plain, stages > 2);
	if (plain && (loaded_registers(p) < least || loaded_registers(p) > most))
		return false;
	if (p->async && stages_that_fit(p, 2) < 2 && restrict_to_operands(p))
		find_loads(p, asked, plain, stages > 2);
	p->stages = p->async ? MAX(stages_that_fit(p, stages), 2) : 2;
	bool free = s->cuda.limits.pipelining == PIPELINE_ALL;
	if (free && (p->async || stores_come_first(p)))
		find_outstanding_dots(p);
	if (free && p->async) {
		find_deferred_dot(p);
		find_overlapped_dots(p);
		find_tma_tiles(p);
		if (!p->producer || !p->outstanding.len)
			decide_pingpong(p);
	}
	p->ahead = p->stages - 1;
	bool fits = !p->async || multibuffer_bytes(p, p->stages) <= s->target->shared_bytes - SHARED_BESIDE_MULTIBUFFER;
	p->multi_buffered =
		p->async || (p->outstanding.len &&
			     multibuffer_bytes(p, p->stages) <= s->target->shared_bytes - SHARED_BESIDE_MULTIBUFFER);
	if (!p->multi_buffered)
		p->outstanding.len = 0;
	if (s->remarks && (!p->loads.len || !fits))
		diag(s->diags, R_NOT_PIPELINED, loop->loc,
		     !p->loads.len ? "no load has an address that is only index arithmetic and reads memory that the "
				     "loop does not write"
				   : "its buffers do not fit shared memory");
	return p->loads.len && fits;
}

static struct plan register_prefetch_of(struct pass_state *s, struct op *loop)
{
	return (struct plan){.s = s,
			     .ctx = s->ctx,
			     .loop = loop,
			     .register_prefetch = true,
			     .stages = 2,
			     .ahead = 1,
			     .start = for_lower(loop),
			     .end = for_upper(loop)};
}

/* Issues the plan's loads one iteration ahead, into registers. */
static void prefetch(struct plan *p)
{
	collect_slice(p);
	if (!p->loads.len)
		return;
	expand_loop(p);
	if (p->s->remarks)
		diag(p->s->diags, R_PIPELINED_REGISTERS, p->loop->loc, p->loads.len, PLURAL(p->loads.len), "");
}

/* Register prefetch of small loads, in a loop with copies to shared memory: loads that cp.async cannot copy or that are
 * needed at once, such as a scale, or a page number of a paged key-value cache, from which the copies' addresses are
 * computed. They are loaded one iteration ahead. Their masks are false past the last iteration, so they can then run
 * further ahead, as part of the slice of the copies that depend on them. */
static void prefetch_small_loads(struct plan *p)
{
	struct pass_state *s = p->s;
	struct op *loop = p->loop;
	const struct op *around = loop->block->parent;
	struct plan q = register_prefetch_of(s, loop);
	struct block *b = loop->blocks[0];
	bool copies = false, transposed = false;
	bool programs = around && is_program_loop(s, around);
	if (!s->target->has_async_copy || stages_of(s, loop) < 2 || !block_has(b, op_is_dot) ||
	    (around && has_flatten(around) && !programs))
		return;
	insert_load_consumers(&q, false);
	for (struct op *o = b->first; o; o = o->next)
		if (o->code == IR_LOAD && type_is_tensor(result(o)->type)) {
			copies |= can_copy_async(&q, o);
			transposed |= needs_registers(&q, o);
		}
	for (struct op *o = b->first; o && copies && !transposed; o = o->next) {
		if (o->code != IR_LOAD || o->attr[ATTR_VOLATILE] || may_conflict(s, b, pointer_base(operand(o, 0))))
			continue;
		const struct type *t = result(o)->type;
		if (!type_is_tensor(t) || (layout_num_regs(t->layout) <= MAX_FEW_ELEMENTS && !can_copy_async(&q, o)))
			add_load(&q, o);
	}
	prefetch(&q);
	p->loop = q.loop;
	for (u32 i = 0; i < q.loads.len; i++)
		map_put(&p->prefetched, q.code->loaded.at[i]->def, q.loop);
	arena_free(&q.scratch);
}

/* True if all users of v stand before `o`, in o's block. */
static bool is_used_before(const struct value *v, const struct op *o)
{
	bool yes = true;
	for (const struct use *u = v->uses; u && yes; u = u->next)
		yes = u->user->block == o->block && comes_behind(o, u->user);
	return yes;
}

/* Where a producer runs ahead across tiles, all warps would wait for memory at the start of each tile for the tensors
 * that they load before the loop, such as an attention's queries. These loads are issued one tile ahead, after the loop
 * of the preceding tile. */
static void prefetch_tile_loads(struct plan *p)
{
	struct op *around = p->loop->block->parent;
	if (!p->producer || p->producer->path.len < 2 || p->next_chained)
		return;
	/* after the loop's PINGPONG_ARRIVE, if it has one: the other warpgroup must not wait for these loads */
	const struct op *last = p->loop->next->code == IR_PINGPONG_ARRIVE ? p->loop->next : p->loop;
	const struct op *first = p->prev_chained ? p->prev_chained->loop : p->loop;
	struct plan q = register_prefetch_of(p->s, around);
	struct block *body = around->blocks[0];
	i64 registers = 0;
	q.issue_after = last;
	for (struct op *o = body->first; o != first; o = o->next) {
		if (o->code != IR_LOAD || !type_is_tensor(result(o)->type) || o->attr[ATTR_VOLATILE] ||
		    !is_used_before(result(o), first) || may_be_written(p->s, body, pointer_base(operand(o, 0))))
			continue;
		i64 more = registers_of(p->s, result(o));
		if (registers + more <= MAX_TILE_REGISTERS && add_load(&q, o))
			registers += more;
	}
	prefetch(&q);
	arena_free(&q.scratch);
}

static void rewrite(struct plan *p)
{
	struct pass_state *s = p->s;
	struct loc loc = p->loop->loc;
	if (p->multi_buffered)
		s->cuda.stages = MAX(s->cuda.stages, p->stages);
	if (p->tma)
		s->k->cuda.nmaps += p->loads.len; /* an upper bound: code generation merges equal maps */
	expand_loop(p);
	if (!s->remarks)
		return;
	if (p->prev_chained)
		diag(s->diags, R_CHAINED, loc,
		     p->producer ? "and with its producer warp" : "which issues this loop's first loads");
	else if (p->async)
		diag(s->diags, R_PIPELINED_ASYNC, loc, p->loads.len, PLURAL(p->loads.len), p->ahead, PLURAL(p->ahead),
		     p->tma ? "TMA" : "cp.async", p->stages, PLURAL(p->stages),
		     (long long)multibuffer_bytes(p, p->stages));
	else
		diag(s->diags, R_PIPELINED_REGISTERS, loc, p->loads.len, PLURAL(p->loads.len),
		     p->multi_buffered
			     ? arena_printf(&p->scratch, ", then through 2 buffers (%lld bytes of shared memory)",
					    (long long)multibuffer_bytes(p, p->stages))
			     : "");
	if (p->producer)
		diag(s->diags, R_PRODUCER, loc);
	else if (p->no_producer)
		diag(s->diags, R_NO_PRODUCER, loc, p->no_producer);
	if (p->pingpong)
		diag(s->diags, R_PINGPONG, loc);
}

/* True if the loop gets one buffer for each load instead of two. If so, the kinds of grids without many programs need
 * other code, and otherwise the kinds with many programs: they are removed from s->cuda.grids. */
static bool has_one_buffer(struct plan *p)
{
	enum { MANY = 1 << GRID_WAVES | 1 << GRID_ROWS };
	if (!one_buffer_lets_blocks_overlap(p))
		return false;
	bool many = 1 << p->s->options.grid & MANY;
	p->s->cuda.grids &= many ? MANY : ~MANY;
	return many;
}

/* Lowers the number of stages to that of iterations where cp.async copies stay within one run of the loop: the loop
 * over programs, across which they might have run ahead, has been removed. Saves one more buffer of each load if more
 * blocks are then resident: copies refill the buffer of the running iteration after its last read, as far ahead as
 * before. The price is a barrier; with one buffer, also a wait for copies in each iteration. Dots that are not waited
 * for at once read the buffers until later. */
static void lower_stages(struct plan *p)
{
	if (!p->async || p->tma || p->flattened || p->next_chained || p->prev_chained || p->s->cuda.programs)
		return;
	p->stages = useful_stages(p->loop, p->stages);
	p->ahead = p->stages - 1;
	if (p->outstanding.len || p->overlapped.len || p->deferred || p->stages < 2 || !is_short_of_memory(p))
		return;
	if (p->stages > 2 || has_one_buffer(p))
		p->stages--;
}

/* --- loops of a block ------------------------------------------------------------------------------------------ */

/* Pipelines p's loop, and the next loop if it can be chained to it. Returns the last of these loops. planned:
 * make_plan(p) has succeeded. If the first loop has a dot with deferred wait, the two loops get a producer only after
 * they have been chained. Whether they get one decides whether the loop over programs around them stays. */
static struct op *pipeline_loop(struct plan *p, bool planned)
{
	struct plan q = {
		.s = p->s, .ctx = p->ctx, .loop = planned && p->tma && !p->producer ? next_loop(p->loop) : NULL};
	q.joint_producer = q.loop && p->deferred && !p->prev_chained;
	if (planned && !p->prev_chained && !q.joint_producer && p->s->cuda.limits.pipelining == PIPELINE_ALL)
		decide_flattening(p);
	bool more = q.loop && make_plan(&q);
	if (more)
		chain_loops(p, &q);
	if (q.joint_producer) {
		decide_joint_producer(p, q.prev_chained ? &q : NULL);
		decide_flattening(p);
	}
	if (planned) {
		lower_stages(p);
		rewrite(p);
		prefetch_tile_loads(p);
	} else if (is_program_loop(p->s, p->loop->block->parent)) {
		remove_program_loop(p->s);
	}
	struct op *last = q.loop ? pipeline_loop(&q, more) : p->loop;
	arena_free(&q.scratch);
	return last;
}

static void pipeline_block(struct pass_state *s, struct block *b)
{
	for (struct op *o = b->first, *next; o; o = next) {
		bool inner = is_inner_loop(o);
		next = o->next; /* o itself may be replaced */
		for (u32 i = 0; i < o->nblocks; i++)
			pipeline_block(s, o->blocks[i]);
		struct plan p = {.s = s, .ctx = s->ctx, .loop = o};
		p.prefetched.arena = &p.scratch;
		if (inner && is_too_long(o->blocks[0])) {
			if (s->remarks)
				diag(s->diags, R_NOT_PIPELINED, o->loc, "its body is too long");
		} else if (inner) {
			if (s->cuda.programs && !is_program_loop(s, b->parent))
				remove_program_loop(s); /* no copies run ahead across it */
			prefetch_small_loads(&p);
			next = pipeline_loop(&p, make_plan(&p))->next;
		}
		arena_free(&p.scratch);
	}
}

/* Emits a remark for each warp_specialize or flatten attribute that no plan of an inner loop has cleared. */
static void report_unused_attributes(struct op *o, void *arg)
{
	const struct pass_state *s = arg;
	if (o->code == IR_FOR && o->attr[ATTR_WARP_SPECIALIZE] && s->remarks)
		diag(s->diags, R_NOT_SPECIALIZED, o->loc, "it contains no loop with dots whose loads TMA can copy");
	if (has_flatten(o) && s->remarks)
		diag(s->diags, R_NOT_FLATTENED, o->loc, "it contains no loop whose copies cp.async issues ahead");
}

/* Sets the kinds of grid (enum grid_kind) for which the compiled code is the same, so that launches can share it. It
 * differs if there are persistent blocks for large grids (persist), programs in groups of rows (grouped), or another
 * number of buffers (s->cuda.grids). */
static void set_grids(struct pass_state *s, bool persist, bool grouped)
{
	enum { FEW = 1 << GRID_FEW, ROWS = 1 << GRID_ROWS };
	u32 same = s->cuda.grids & ~(persist ? s->options.grid == GRID_FEW ? ALL_GRIDS - FEW : FEW : 0) &
		   ~(grouped ? s->options.grid == GRID_ROWS ? ALL_GRIDS - ROWS : ROWS : 0);
	s->k->cuda.grids = same == ALL_GRIDS ? 0 : same;
}

void pass_pipeline(struct pass_state *s)
{
	i64 group = rows_in_group(s, s->options.grid == GRID_ROWS);
	bool grouped = rows_in_group(s, true) != rows_in_group(s, false);
	bool persist = s->cuda.limits.pipelining == PIPELINE_ALL && may_persist(s);
	bool many = s->options.grid != GRID_FEW, in_groups = many && persist && add_program_loop(s, group);
	if (block_has(s->k->body, has_flatten))
		pass_licm(s); /* loop-invariant values of the loop over tiles need no iter args */
	s->cuda.grids = ALL_GRIDS;
	if (s->cuda.limits.pipelining < PIPELINE_NONE) {
		pipeline_block(s, s->k->body);
		if (s->cuda.programs)
			remove_program_loop(s);
		store_operands(s);
		copy_directly(s);
	}
	walk(s->k->body, report_unused_attributes, s);
	if (!s->k->cuda.persistent)
		in_groups = group_programs(s, group);
	if (in_groups && s->remarks)
		diag(s->diags, R_GROUPED, s->k->loc, (int)group);
	set_grids(s, many ? s->k->cuda.persistent : persist, grouped);
	pass_canonicalize(s);
	pass_cse(s);
	remove_dead_code(s->k);
	merge_induction_variables(s->k, s->ctx);
	sink_past_dot_loops(s->k->body);
	count_pending(s);
}
