/* Software pipelining: loads of a loop are issued iterations ahead of their use.
 *
 * What a load's address and mask depend on (the slice: index arithmetic on the loop's index and on carried values that
 * are themselves such arithmetic) is run ahead of the rest of the body, in carried copies of its own. Loads that feed a
 * dot go through a ring of S buffers in shared memory by cp.async, S - 1 iterations ahead; one barrier an iteration is
 * enough, since the buffer being filled was last read before the barrier. Other loads, and every load before sm_80,
 * are kept in registers one iteration ahead. Loads past the last iteration are predicated off, so there is no epilogue.
 * A few numbers beside what is copied are too, such as the numbers of pages that the copies come from.
 * So are, unasked, those of a loop that only sums what it loads: each register asks for the next element as soon as its
 * own has been added. And those of a recurrence, whose iterations cannot overlap.
 *
 * Where all of these loads are boxes, sm_90's copy engine (TMA) moves them: one thread asks for them, and no thread
 * computes addresses. Each buffer then has two mbarriers: "full" completes when its boxes have come, "empty" when all
 * warps have read them. No barrier holds all threads, so warps may be an iteration apart. Where two warpgroups make two
 * dots each with other work between them, they take turns: while one does the last dot of an iteration and the first of
 * the next, the other does the work (FlashAttention-3, Shah et al., 2024, "pingpong scheduling").
 *
 * A warpgroup's dot whose result only the next iteration's dot adds to is waited for when that one has been issued, so
 * that the tensor cores always have work; its buffer is filled after that, and a second barrier. So is the last dot of
 * an iteration that makes two, if nothing needs it before the first one of the next. If a dot's operands come through
 * registers, they are stored into a ring of two buffers while the dot before it still reads the other; the next ones
 * are loaded when it has been issued. */
#include "base/tuning.h"
#include "ir/graph.h"
#include "ir/inline_asm.h"
#include "layout/convert.h"
#include "place/access.h"
#include "place/schedule.h"
#include "place/programs.h"

static bool is_flat(const struct op *o)
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

/* --- what can be pipelined ----------------------------------------------------------------------------------- */

static bool in_body(const struct schedule *p, const struct value *v)
{
	return !value_defined_outside(v, p->loop->blocks[0]);
}

/* Adds what v depends on to the slice; false when that is more than index arithmetic. */
static bool add_slice(struct schedule *p, struct value *v)
{
	struct block *body = p->loop->blocks[0];
	value_vec work = {0};
	vec_push(&p->scratch, &work, v);
	while (work.len) {
		v = work.at[--work.len];
		struct op *o = v->def;
		if (!in_body(p, v) || (!o && v == for_index(p->loop)) || map_get(&p->in_slice, o ? (void *)o : v))
			continue;
		bool index = o && op_has(o, PURE) && !op_has(o, SYNC) && !o->nblocks;
		if ((o ? o->block : v->block) != body || (o && !index && !map_get(&p->few_loads, o)))
			return false;
		map_put(&p->in_slice, o ? (void *)o : v, o ? (void *)o : v);
		if (!o) {
			vec_push(&p->scratch, &p->args, for_arg_number(v));
			vec_push(&p->scratch, &work, for_yielded(p->loop, for_arg_number(v)));
		}
		for (u32 i = o ? o->noperands : 0; i--;)
			vec_push(&p->scratch, &work, operand(o, i));
	}
	return true;
}

static bool add_load(struct schedule *p, struct op *load)
{
	struct map saved = p->in_slice, copy = {.arena = &p->scratch};
	u32 nargs = p->args.len;
	for (u32 i = 0; i < saved.cap; i++)
		if (saved.keys[i])
			map_put(&copy, saved.keys[i], saved.vals[i]);
	p->in_slice = copy;
	bool ok = true;
	for (u32 i = 0; ok && i < load->noperands; i++)
		ok = add_slice(p, operand(load, i));
	if (ok) {
		vec_push(&p->scratch, &p->loads, load);
	} else {
		p->in_slice = saved;
		p->args.len = nargs;
	}
	return ok;
}

struct op *load_consumer(const struct op *load)
{
	const struct value *v = result(load);
	if (!value_has_one_use(v) || v->uses->user->block != load->block)
		return NULL;
	struct op *o = v->uses->user;
	return o->code == IR_CONVERT_LAYOUT || o->code == IR_LOCAL_STORE ? o : NULL;
}

/* What becomes an operand of a dot, by work that waits for none of the operations `behind` (or NULL). */
struct operands {
	struct value_set values;
	const struct map *behind;
};

static void note_operands(struct op *o, void *arg)
{
	struct operands *a = arg;
	struct value_set *set = &a->values;
	if (!op_is_dot(o) && o->code != IR_LOCAL_STORE)
		return;
	for (u32 i = 0; i < o->noperands; i++)
		vec_push(&set->scratch, &set->work, operand(o, i));
	while (set->work.len) {
		const struct value *v = set->work.at[--set->work.len];
		const struct op *def = v->def;
		if (!set_add(set, v) || !def || v->index || !op_has(def, PURE) ||
		    (a->behind && map_get(a->behind, def)))
			continue;
		for (u32 i = 0; i < def->noperands; i++)
			vec_push(&set->scratch, &set->work, operand(def, i));
	}
}

static struct access_vector accessed(const struct schedule *p, const struct op *load)
{
	return access_vector(p->s->axis, operand(load, 0), mask_of(load), NULL);
}

/* Is what is contiguous in global memory so in this layout of shared memory? */
static bool runs_in(const struct schedule *p, const struct op *load, const struct layout *mem)
{
	return access_vector(p->s->axis, operand(load, 0), mask_of(load), mem).bits == accessed(p, load).bits;
}

bool is_read_again(const struct use *u)
{
	const struct op *o = u->user;
	return o->code == IR_CONVERT_LAYOUT &&
	       plan_conversion(operand(o, 0)->type->layout, result(o)->type->layout).kind == CONVERT_SHARED;
}

const struct layout *ring_layout(const struct schedule *p, const struct op *load)
{
	const struct type *t = result(load)->type;
	const struct op *to = load_consumer(load);
	if (to->code == IR_LOCAL_STORE)
		return operand(to, 1)->type->layout;
	int bits = MAX(type_elem_bits(t), 8);
	const struct use *reader = result(to)->uses;
	while (reader && !is_read_again(reader))
		reader = reader->next;
	const struct layout *dst = result(reader ? reader->user : to)->type->layout;
	struct shared_plan plan = plan_shared(&p->ctx->layouts, t->layout, dst, bits, false);
	bool one_by_one = bits >= 32 || (!plan.load && !map_to_memory(dst, plan.mem, ilog2(128 / (u64)bits)).vec_bits);
	bool few = type_numel(t) <= 32 * p->s->num_warps; /* so it does not matter how they are read */
	return (one_by_one || few) && !runs_in(p, load, plan.mem)
		       ? plan_for_writers(&p->ctx->layouts, t->layout, dst, bits)
		       : plan.mem;
}

static bool runs_alike(const struct schedule *p, const struct op *load)
{
	return runs_in(p, load, ring_layout(p, load));
}

bool can_copy_async(const struct schedule *p, const struct op *load)
{
	if (!p->s->target->has_async_copy || !load_fills_zero(load) || !load_consumer(load))
		return false;
	return (type_elem_bits(result(load)->type) << accessed(p, load).bits) >= 32 && runs_alike(p, load);
}

struct op *first_dot(const struct block *body)
{
	struct op *o = body->first;
	while (o && !op_is_dot(o))
		o = o->next;
	return o;
}

struct op *last_dot(const struct block *body)
{
	struct op *o = body->last;
	while (o && !op_is_dot(o))
		o = o->prev;
	return o;
}

bool has_dot(const struct op *o)
{
	bool yes = op_is_dot(o);
	for (u32 i = 0; i < o->nblocks; i++)
		yes |= block_has(o->blocks[i], op_is_dot);
	return yes;
}

/* Can boxes be copied instead, and is it worth while? On an H100 attention gains up to 20 % where warpgroups have other
 * work than dots, since none waits for the others; where one is alone, it gains with two buffers, and loses with more.
 * Where dots stay in flight, the thread that asks for boxes would hold up its warpgroup: cp.async is faster by 2 to 10
 * %, unless a warp of its own asks. */
static void find_boxes(struct schedule *p)
{
	struct pass_state *s = p->s;
	p->tma = s->target->has_tensor_copy && !s->cuda.no_boxes && s->num_warps >= 4 &&
		 first_dot(p->loop->blocks[0]) && s->k->cuda.cluster == 1 &&
		 p->loads.len + s->k->cuda.nmaps <= MAX_TENSOR_MAPS;
	for (u32 i = 0; p->tma && i < p->loads.len; i++) {
		struct op *load = p->loads.at[i];
		struct box box = {0};
		const struct layout *ring = ring_layout(p, load);
		p->tma = !load->attr[ATTR_EVICT] &&
			 ((load->noperands == 1 && find_box(s, operand(load, 0), ring, &box)) ||
			  find_tensor_box(s, load, ring, &box));
		vec_push(&p->scratch, &p->boxes, box);
	}
	pipeline_find_producer(p);
	p->tma &= !p->dots.len || p->producer;
}

static bool is_buffer(const struct schedule *p, const struct value *v)
{
	const struct block *body = p->loop->blocks[0];
	while (v->def && v->def->code == IR_MEMDESC_TRANS)
		v = operand(v->def, 0);
	for (u32 i = 0; i < p->loads.len; i++) {
		const struct op *to = load_consumer(p->loads.at[i]);
		if (to->code == IR_LOCAL_STORE && operand(to, 1) == v)
			return true;
	}
	return value_defined_outside(v, body);
}

bool comes_behind(const struct op *o, const struct op *first)
{
	while (o->block != first->block)
		o = o->block->parent;
	while (o && o != first)
		o = o->prev;
	return o;
}

/* Is v in no register behind `last`? LLVM computes what has no effects as late as it likes. */
static bool is_gone(struct schedule *p, const struct value *v, const struct op *last)
{
	VEC(const struct value *) work = {0};
	struct map seen = {.arena = &p->scratch};
	bool yes = true;
	vec_push(&p->scratch, &work, v);
	while (yes && work.len) {
		const struct value *x = work.at[--work.len];
		for (const struct use *u = x->uses; u && yes; u = u->next) {
			const struct op *o = u->user;
			yes = o == last || (o->block == last->block && !comes_behind(o, last));
			bool follows = o != last && op_has(o, PURE) && !map_get(&seen, o);
			map_put(&seen, o, (void *)o);
			for (u32 i = 0; follows && i < o->nresults; i++)
				vec_push(&p->scratch, &work, &o->results[i]);
		}
	}
	return yes;
}

/* The last dot of an iteration, if its sum is needed behind the first one of the next: the tensor cores then do both
 * without a pause between them. Not if what both hold in registers meanwhile is too much, nor if the sum of the
 * iteration before may be needed behind the last dot, too: it would be in other registers, to which a sum in flight
 * cannot be copied. */
static void find_late(struct schedule *p)
{
	struct block *body = p->loop->blocks[0];
	struct op *first = first_dot(body), *last = last_dot(body);
	if (!last || last == first || first->code != IR_WARP_GROUP_DOT || last->code != IR_WARP_GROUP_DOT)
		return;
	for (u32 i = 0; i < p->dots.len; i++)
		if (p->dots.at[i] == last) /* it stays in flight as it is */
			return;
	const struct value *sum = result(last), *a = operand(last, 0);
	bool stays = is_buffer(p, operand(last, 1)) && (type_is_tensor(a->type) || is_buffer(p, a)) &&
		     value_has_one_use(sum) && sum->uses->user == body->last;
	const struct value *arg = stays ? for_arg(p->loop, (u32)(sum->uses - body->last->operands)) : NULL;
	stays &= arg && !value_unused(arg); /* else nothing keeps its registers in place until the wait */
	for (const struct use *u = arg ? arg->uses : NULL; u; u = u->next)
		stays &= u->user != first && comes_behind(u->user, first);
	stays = stays && is_gone(p, arg, last);
	if (stays && registers_of(sum) + registers_of(a) + registers_of(result(first)) <= MAX_LATE_REGISTERS)
		p->late = last;
}

/* Does a copy take the place of this store? */
static bool is_copied(const struct schedule *p, const struct op *store)
{
	for (u32 i = 0; i < p->loads.len; i++)
		if (load_consumer(p->loads.at[i]) == store)
			return true;
	return false;
}

/* No thread may wait for all others while its warpgroup has the turn. With two buffers the next one would come late. */
static void find_turns(struct schedule *p)
{
	u32 dots = 0;
	p->turns = p->tma && p->s->num_warps == 8 && p->stages > 2;
	for (struct op *o = p->loop->blocks[0]->first; o && p->turns; o = o->next) {
		dots += op_is_dot(o);
		p->turns = (!op_is_dot(o) || o->code == IR_WARP_GROUP_DOT) && !scratch_bytes(p->s, o) &&
			   (o->code != IR_LOCAL_STORE || is_copied(p, o)) && (!o->nblocks || o->code == IR_REDUCE);
	}
	p->turns &= dots == 2;
}

static bool is_barrier(const struct op *o)
{
	return o->code == IR_BARRIER || op_is_opaque(o);
}

/* A store in the loop might write what a load issued early reads: then order must be kept. Only kernels that read and
 * write through the same parameter are affected, or wait for others. */
static bool may_conflict(struct pass_state *s, const struct block *b, const struct value *base)
{
	return block_has(b, is_barrier) || may_be_written(s, b, base);
}

/* A dot's operand that cp.async cannot bring, since its rows begin at any element or are turned, is not left behind:
 * then all go through registers. A few numbers that work on one are. */
static bool needs_registers(const struct schedule *p, const struct op *load)
{
	int unit;
	const struct op *to = load_consumer(load);
	const struct value *ptr = operand(load, 0), *mask = mask_of(load);
	if (!to || (to->nresults && result(to)->type == result(load)->type &&
		    layout_num_regs(result(load)->type->layout) <= MAX_FEW_ELEMENTS))
		return false;
	return access_run(p->s->axis, ptr, mask, &unit).bits || (to->code == IR_LOCAL_STORE && !runs_alike(p, load));
}

static void mark_users(struct map *found, const struct value *v)
{
	VEC(const struct value *) work = {0};
	vec_push(found->arena, &work, v);
	while (work.len)
		for (const struct use *u = work.at[--work.len]->uses; u; u = u->next) {
			if (map_get(found, u->user))
				continue;
			map_put(found, u->user, u->user);
			for (u32 i = 0; i < u->user->nresults; i++)
				vec_push(found->arena, &work, &u->user->results[i]);
		}
}

/* Loads that become a dot's operand by some work, and all of a loop that asks, can come by cp.async too, if their
 * elements stay distributed as they are on the way through the buffer. A change of layout that changes nothing says so,
 * and is dropped later if the load is not chosen. */
static void keep_distributed(struct schedule *p, bool all)
{
	struct block *b = p->loop->blocks[0];
	struct map behind = {.arena = &p->scratch};
	for (struct op *o = b->first; o; o = o->next)
		if (op_is_dot(o))
			mark_users(&behind, result(o));
	struct operands worked = {.behind = &behind};
	walk(b, note_operands, &worked);
	for (struct op *o = b->first; o; o = o->next) {
		if (o->code != IR_LOAD || !type_is_tensor(result(o)->type) || load_consumer(o) ||
		    (!all && !set_has(&worked.values, result(o))))
			continue;
		struct value *v = result(o);
		struct builder at = builder_before(p->ctx, o->next);
		struct value *same = build1(&at, IR_CONVERT_LAYOUT, v->type, v);
		replace_uses(v, same);
		op_set_operand(same->def, 0, v);
	}
	arena_free(&worked.values.scratch);
}

static void collect_slice(struct schedule *p)
{
	for (struct op *o = p->loop->blocks[0]->first; o; o = o->next)
		if (map_get(&p->in_slice, o))
			vec_push(&p->scratch, &p->slice, o);
}

/* Does an iteration reduce a tile that the loop carries, worked on element by element, as recurrences do? Then it
 * cannot begin before the one before it has ended, and what it loads should be there by then. */
static bool is_recurrence(struct ir_context *ctx, const struct block *body)
{
	struct value_walk w = {.id = begin_walk(ctx)};
	for (const struct op *o = body->first; o; o = o->next)
		if (o->code == IR_REDUCE)
			visit_later(&w, operand(o, 0));
	for (const struct value *v; (v = visit_next(&w));) {
		if (!v->def && v->block == body && type_is_tensor(v->type))
			return end_walk(&w, true);
		if (v->def && v->def->block == body && op_has(v->def, ELEM))
			visit_operands(&w, v->def);
	}
	return false;
}

/* plain: a loop that nobody asked to pipeline, without dots; asked: one that did; far: by more than one iteration. */
static void find_loads(struct schedule *p, bool asked, bool plain, bool far)
{
	struct block *b = p->loop->blocks[0];
	bool numbers = plain && is_recurrence(p->ctx, b); /* too */
	int want_async = !plain;
	for (const struct op *o = b->first; o; o = o->next)
		if (o->code == IR_LOAD && type_is_tensor(result(o)->type) && needs_registers(p, o))
			want_async = 0;
	if (want_async && p->s->target->has_async_copy)
		keep_distributed(p, asked && far);
	struct operands fed = {.behind = NULL};
	if (!asked && !plain)
		walk(b, note_operands, &fed);
	for (; want_async >= 0 && !p->loads.len; want_async--) {
		p->async = want_async;
		for (struct op *o = b->first; o; o = o->next) {
			if (o->code != IR_LOAD || (!numbers && !type_is_tensor(result(o)->type)) ||
			    o->attr[ATTR_VOLATILE] || may_conflict(p->s, b, pointer_base(operand(o, 0))))
				continue;
			bool fits =
				want_async ? can_copy_async(p, o) : asked || plain || set_has(&fed.values, result(o));
			if (fits)
				add_load(p, o);
		}
	}
	arena_free(&fed.values.scratch);
	collect_slice(p);
}

/* Dots that nothing needs before the next iteration's, reading what stays until then. */
static void find_dots(struct schedule *p)
{
	struct block *body = p->loop->blocks[0];
	for (struct op *o = body->first; o; o = o->next) {
		if (o->code != IR_WARP_GROUP_DOT || !value_has_one_use(result(o)) ||
		    result(o)->uses->user != body->last)
			continue;
		const struct value *acc = operand(o, 2);
		u32 i = (u32)(result(o)->uses - body->last->operands);
		bool memory = operand(o, 0)->type->kind == TY_MEMDESC && is_buffer(p, operand(o, 0)) &&
			      is_buffer(p, operand(o, 1));
		if (memory && acc == for_arg(p->loop, i) && value_has_one_use(acc))
			vec_push(&p->scratch, &p->dots, o);
	}
}

/* --- choosing ------------------------------------------------------------------------------------------------ */

static i64 ring_bytes(const struct schedule *p, int stages)
{
	i64 total = 0;
	for (u32 i = 0; i < p->loads.len; i++)
		total += load_bytes(p->loads.at[i]) * stages;
	return total;
}

struct needs {
	const struct schedule *p;
	i64 buffers, scratch;
};

static void add_needs(struct op *o, void *arg)
{
	struct needs *n = arg;
	bool ours = false;
	for (u32 i = 0; i < n->p->loads.len; i++) {
		const struct op *to = load_consumer(n->p->loads.at[i]);
		ours |= to && (to == o || (to->code == IR_LOCAL_STORE && operand(to, 1)->def == o));
	}
	if (o->code == IR_LOCAL_ALLOC)
		n->buffers += ours ? 0
				   : type_numel(result(o)->type) * dtype_bytes(type_dtype(result(o)->type)) *
					      MAX(result(o)->type->nbuf, 1);
	else if (!ours)
		n->scratch = MAX(n->scratch, scratch_bytes(n->p->s, o));
}

/* Is what an operation of the block makes used in o or behind it, or in what o contains? */
static bool is_alive_at(const struct value *v, const struct op *o)
{
	bool yes = false;
	for (const struct use *u = v->uses; u && !yes; u = u->next)
		yes = u->user == o || comes_behind(u->user, o) ||
		      (u->user->code == IR_MEMDESC_TRANS && is_alive_at(result(u->user), o));
	return yes;
}

/* The most that is needed at once, ring and all, while the block runs. */
static i64 most_needed(const struct schedule *p, struct block *b)
{
	i64 most = 0;
	for (struct op *o = b->first; o; o = o->next) {
		struct needs n = {p, ring_bytes(p, p->stages), 0};
		for (struct op *before = b->first; before != o; before = before->next)
			if (before->code == IR_LOCAL_ALLOC && is_alive_at(result(before), o))
				add_needs(before, &n);
		add_needs(o, &n);
		for (u32 i = 0; i < o->nblocks; i++)
			walk(o->blocks[i], add_needs, &n);
		most = MAX(most, n.buffers + n.scratch);
	}
	return most;
}

bool pipeline_fits(const struct schedule *p, const struct op *around)
{
	return most_needed(p, around->blocks[0]) <= p->s->target->shared_bytes;
}

bool pipeline_is_alone(const struct schedule *p)
{
	i64 sums = 0;
	for (u32 i = 0; i < p->dots.len; i++)
		sums += registers_of(result(p->dots.at[i]));
	return 2 * ring_bytes(p, p->stages) > p->s->target->shared_bytes ||
	       2 * 32 * p->s->num_warps * sums >= p->s->target->registers;
}

static bool is_used_in(const struct value *v, const struct block *b)
{
	bool yes = false;
	for (const struct use *u = v->uses; u && !yes; u = u->next)
		yes = block_contains(b, u->user->block) ||
		      (u->user->code == IR_MEMDESC_TRANS && is_used_in(result(u->user), b));
	return yes;
}

/* As many stages as fit beside what the loop reads and what it and the operations before it use for changes of
 * layout. */
static int stages_that_fit(struct schedule *p, int stages)
{
	struct needs n = {p, 0, 0};
	walk(p->loop->blocks[0], add_needs, &n);
	for (struct op *o = p->loop->block->first; o != p->loop; o = o->next)
		if (o->code != IR_LOCAL_ALLOC || is_used_in(result(o), p->loop->blocks[0]))
			add_needs(o, &n);
	while (stages > 2 &&
	       ring_bytes(p, stages) + n.buffers + MAX(n.scratch, SHARED_BESIDE_RING) > p->s->target->shared_bytes)
		stages--;
	return stages;
}

/* Do all loads go to shared memory before the first dot, so that one barrier between is enough? */
static bool stores_come_first(const struct schedule *p)
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

static i64 loaded_registers(const struct schedule *p)
{
	i64 n = 0;
	for (u32 i = 0; i < p->loads.len; i++)
		n += registers_of(result(p->loads.at[i]));
	return n;
}

/* How the loop will be pipelined; false if it will not. */
static bool plan(struct schedule *p)
{
	struct pass_state *s = p->s;
	struct op *loop = p->loop;
	bool asked = loop->attr[ATTR_STAGES] > 0;
	int stages = stages_of(s, loop);
	bool plain = !asked && !block_has(loop->blocks[0], op_is_dot);
	bool recurs = plain && is_recurrence(s->ctx, loop->blocks[0]);
	i64 least = recurs ? 1 : MIN_SUM_REGISTERS, most = recurs ? MAX_RECURRENCE_REGISTERS : MAX_SUM_REGISTERS;
	if (plain ? !only_sums(loop) && !recurs : stages < 2)
		return false;
	p->in_slice.arena = p->firsts.arena = &p->scratch;
	find_loads(p, asked, plain, stages > 2);
	if (plain && (loaded_registers(p) < least || loaded_registers(p) > most))
		return false;
	if (p->async)
		stages = stages_that_fit(p, stages);
	p->stages = p->async ? stages : 2;
	if (p->async || stores_come_first(p))
		find_dots(p);
	if (p->async) {
		find_late(p);
		find_boxes(p);
		if (!p->producer || !p->dots.len)
			find_turns(p);
	}
	p->ahead = p->async ? stages - 1 : 1;
	p->end = for_upper(loop);
	bool fits = !p->async || ring_bytes(p, stages) <= s->target->shared_bytes - SHARED_BESIDE_RING;
	p->ring = p->async || (p->dots.len && ring_bytes(p, p->stages) <= s->target->shared_bytes - SHARED_BESIDE_RING);
	if (!p->ring)
		p->dots.len = 0;
	if (p->loads.len && fits)
		pipeline_flatten(p);
	else if (s->remarks)
		diag(s->diags, R_NOT_PIPELINED, loop->loc,
		     !p->loads.len ? "no load whose address is index arithmetic alone and that nothing in the loop may "
				     "overwrite"
				   : "its buffers do not fit in shared memory");
	return p->loads.len && fits;
}

/* Beside what is copied to shared memory, loops load a few numbers that cp.async cannot bring, or that are needed at
 * once: a scale, the number of the page that the copies come from. Those are loaded one iteration ahead, into
 * registers; since their masks end with the loop, they can then run further ahead, with the addresses that hang on
 * them. */
static void carry_few(struct schedule *p)
{
	struct pass_state *s = p->s;
	struct op *loop = p->loop;
	const struct op *around = loop->block->parent;
	struct schedule q = {
		.s = s, .ctx = s->ctx, .loop = loop, .few = true, .stages = 2, .ahead = 1, .end = for_upper(loop)};
	struct block *b = loop->blocks[0];
	bool copies = false, turned = false;
	bool programs = around && is_loop_of_programs(s, around);
	if (!s->target->has_async_copy || stages_of(s, loop) < 2 || !block_has(b, op_is_dot) ||
	    (around && is_flat(around) && !programs))
		return;
	q.in_slice.arena = &q.scratch;
	keep_distributed(&q, false);
	for (struct op *o = b->first; o; o = o->next)
		if (o->code == IR_LOAD && type_is_tensor(result(o)->type)) {
			copies |= can_copy_async(&q, o);
			turned |= needs_registers(&q, o);
		}
	for (struct op *o = b->first; o && copies && !turned; o = o->next) {
		if (o->code != IR_LOAD || o->attr[ATTR_VOLATILE] || may_conflict(s, b, pointer_base(operand(o, 0))))
			continue;
		const struct type *t = result(o)->type;
		if (!type_is_tensor(t) || (layout_num_regs(t->layout) <= MAX_FEW_ELEMENTS && !can_copy_async(&q, o)))
			add_load(&q, o);
	}
	collect_slice(&q);
	if (q.loads.len) {
		if (programs)
			part_programs(s);
		pipeline_rewrite(&q);
		p->loop = q.loop;
		for (u32 i = 0; i < q.loaded.len; i++)
			map_put(&p->few_loads, q.loaded.at[i]->def, q.loop);
		if (s->remarks)
			diag(s->diags, R_PIPELINED_REGISTERS, q.loop->loc, q.loads.len, PLURAL(q.loads.len), "");
	}
	arena_free(&q.scratch);
}

static void rewrite(struct schedule *p)
{
	struct pass_state *s = p->s;
	struct loc loc = p->loop->loc;
	if (p->tma)
		s->k->cuda.nmaps += p->loads.len; /* at most; how many differ is seen when they are collected */
	pipeline_rewrite(p);
	if (!s->remarks)
		return;
	if (p->before)
		diag(s->diags, R_GOES_ON, loc);
	else if (p->async)
		diag(s->diags, R_PIPELINED_ASYNC, loc, p->loads.len, PLURAL(p->loads.len), p->ahead, PLURAL(p->ahead),
		     p->tma ? "TMA" : "cp.async", p->stages, PLURAL(p->stages), (long long)ring_bytes(p, p->stages));
	else
		diag(s->diags, R_PIPELINED_REGISTERS, loc, p->loads.len, PLURAL(p->loads.len),
		     p->ring ? arena_printf(&p->scratch, ", then through 2 buffers (%lld bytes of shared memory)",
					    (long long)ring_bytes(p, p->stages))
			     : "");
	if (p->producer)
		diag(s->diags, R_PRODUCER, loc);
	else if (p->no_producer)
		diag(s->diags, R_NO_PRODUCER, loc, p->no_producer);
	if (p->turns)
		diag(s->diags, R_TURNS, loc);
}

/* --- loops of a block ------------------------------------------------------------------------------------------ */

/* The loop, and those behind it that might go on with its buffers. Returns the last of these. */
static struct op *pipeline_loop(struct schedule *p, bool planned)
{
	struct schedule q = {
		.s = p->s, .ctx = p->ctx, .loop = planned && p->tma && !p->producer ? next_loop(p->loop) : NULL};
	bool more = q.loop && plan(&q);
	if (more)
		pipeline_join(p, &q);
	if (planned)
		rewrite(p);
	else if (is_loop_of_programs(p->s, p->loop->block->parent))
		part_programs(p->s);
	struct op *last = q.loop ? pipeline_loop(&q, more) : p->loop;
	arena_free(&q.scratch);
	return last;
}

static void pipeline_block(struct pass_state *s, struct block *b)
{
	for (struct op *o = b->first, *next; o; o = next) {
		bool inner = is_inner_loop(o);
		next = o->next; /* o itself may be built anew */
		for (u32 i = 0; i < o->nblocks; i++)
			pipeline_block(s, o->blocks[i]);
		struct schedule p = {.s = s, .ctx = s->ctx, .loop = o};
		p.few_loads.arena = &p.scratch;
		if (inner) {
			carry_few(&p);
			next = pipeline_loop(&p, plan(&p))->next;
		}
		arena_free(&p.scratch);
	}
}

/* Those that no inner loop has seen to. */
static void not_seen_to(struct op *o, void *arg)
{
	const struct pass_state *s = arg;
	if (o->code == IR_FOR && o->attr[ATTR_WARP_SPECIALIZE] && s->remarks)
		diag(s->diags, R_NOT_SPECIALIZED, o->loc, "no loads of a loop with dots in it can go by TMA");
	if (is_flat(o) && s->remarks)
		diag(s->diags, R_NOT_FLATTENED, o->loc, "no loop in it has copies issued ahead by cp.async");
}

static void defer(struct op *o, void *arg)
{
	(void)arg;
	if (o->code == IR_FOR && block_has(o->blocks[0], op_is_dot))
		pipeline_defer(o);
}

void pass_pipeline(struct pass_state *s)
{
	s->k->cuda.may_persist = may_persist(s);
	if (s->cuda.persistent && s->k->cuda.may_persist)
		join_programs(s);
	if (block_has(s->k->body, is_flat))
		pass_licm(s); /* what is the same for all tiles is not carried */
	pipeline_block(s, s->k->body);
	if (s->cuda.programs)
		part_programs(s);
	copy_directly(s);
	walk(s->k->body, not_seen_to, s);
	pass_canonicalize(s);
	pass_cse(s);
	remove_dead_code(s->k);
	merge_induction_variables(s->k, s->ctx);
	walk(s->k->body, defer, NULL);
}
