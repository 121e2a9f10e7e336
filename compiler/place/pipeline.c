/* Software pipelining: loads of a loop are issued iterations ahead of their use.
 *
 * What a load's address and mask depend on (the slice: index arithmetic on the loop's index and on carried values that
 * are themselves such arithmetic) is run ahead of the rest of the body, in carried copies of its own. Loads that feed a
 * dot go through a ring of S buffers in shared memory by cp.async, S - 1 iterations ahead; one barrier an iteration is
 * enough, since the buffer being filled was last read before the barrier. Other loads, and every load before sm_80,
 * are kept in registers one iteration ahead. Loads past the last iteration are predicated off, so there is no epilogue.
 *
 * Where all of these loads are boxes, sm_90's copy engine (TMA) moves them: one thread asks for them, and no thread computes addresses.
 * Each buffer then has two mbarriers: "full" completes when its boxes have come, "empty" when all warps have read them. No barrier
 * holds all threads, so warps may be an iteration apart. Where two warpgroups make two dots each with other work between them, they
 * take turns: while one does the last dot of an iteration and the first of the next, the other does the work (FlashAttention-3, Shah
 * et al., 2024, "pingpong scheduling").
 *
 * A warpgroup's dot whose result only the next iteration's dot adds to is waited for when that one has been issued, so
 * that the tensor cores always have work; its buffer is filled after that, and a second barrier. If its operands come through
 * registers, they are stored into a ring of two buffers while the dot before it still reads the other; the next ones are loaded
 * when it has been issued. */
#include "layout/convert.h"
#include "place/access.h"
#include "place/boxes.h"

typedef VEC(struct value *) value_vec;

struct pipe {
	struct pass_state *s;
	struct ir_context *ctx;
	struct arena scratch;
	struct op *loop;
	VEC(struct op *) loads;
	bool async, ring;       /* by cp.async; into a ring of buffers, asynchronously or from registers */
	bool tma;               /* async by boxes */
	VEC(struct box) boxes;  /* of each load then */
	bool turns;             /* the warpgroups take turns with the tensor cores then */
	struct map firsts;      /* tile → its first element */
	struct value *barriers; /* of each buffer: full; empty */
	int stages, ahead;      /* buffers of the ring; iterations between issue and use */
	VEC(struct op *) dots;  /* that stay in flight into the next iteration; in program order */
	struct map in_slice;    /* op or argument → itself */
	VEC(struct op *) slice; /* in program order */
	VEC(u32) args;          /* carried values in the slice: their index among the iter args */
	value_vec buffers;      /* of each load */
};

/* --- what can be pipelined ----------------------------------------------------------------------------------- */

static bool in_body(const struct pipe *p, const struct value *v)
{
	return !value_defined_outside(v, p->loop->blocks[0]);
}

/* Adds what v depends on to the slice; false when that is more than index arithmetic. */
static bool add_slice(struct pipe *p, struct value *v)
{
	struct block *body = p->loop->blocks[0];
	if (!in_body(p, v))
		return true;
	if (!v->def) {
		if (v->block != body || v->index == 0)
			return v->block == body;
		if (map_get(&p->in_slice, v))
			return true;
		map_put(&p->in_slice, v, v);
		vec_push(&p->scratch, &p->args, v->index - 1);
		return add_slice(p, operand(body->last, v->index - 1));
	}
	struct op *o = v->def;
	if (map_get(&p->in_slice, o))
		return true;
	if (o->block != body || !op_has(o, PURE) || op_has(o, SYNC) || o->nblocks)
		return false;
	map_put(&p->in_slice, o, o);
	for (u32 i = 0; i < o->noperands; i++)
		if (!add_slice(p, operand(o, i)))
			return false;
	return true;
}

static bool add_load(struct pipe *p, struct op *load)
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

static bool is_zero_or_absent(const struct op *load)
{
	u64 bits;
	return load->noperands < 3 || (value_const_bits(operand(load, 2), &bits) && !bits);
}

/* What takes the load to a dot, if nothing else uses it: a conversion or a store into an operand's buffer. */
static struct op *consumer(const struct op *load)
{
	const struct value *v = result(load);
	if (!value_has_one_use(v) || v->uses->user->block != load->block)
		return NULL;
	struct op *o = v->uses->user;
	return o->code == IR_CONVERT_LAYOUT || o->code == IR_LOCAL_STORE ? o : NULL;
}

static bool is_dot(const struct op *o)
{
	return o->code == IR_DOT || o->code == IR_WARP_GROUP_DOT;
}

static bool reaches_dot(const struct value *v, int depth)
{
	for (const struct use *u = v->uses; u && depth < 6; u = u->next)
		if (is_dot(u->user) || u->user->code == IR_LOCAL_STORE || (u->user->nresults && op_has(u->user, PURE) && reaches_dot(result(u->user), depth + 1)))
			return true;
	return false;
}

/* A layout of the buffer that both the copy and the dot can use without conflicts. */
static const struct layout *buffer_layout(const struct pipe *p, const struct op *load)
{
	const struct type *t = result(load)->type;
	const struct op *to = consumer(load);
	if (to->code == IR_LOCAL_STORE)
		return operand(to, 1)->type->layout;
	return plan_shared(&p->ctx->layouts, t->layout, result(to)->type->layout, MAX(type_elem_bits(t), 8), false).mem;
}

static bool can_copy_async(const struct pipe *p, const struct op *load)
{
	if (p->s->sm < 80 || !is_zero_or_absent(load) || !consumer(load) || load->attr[ATTR_VOLATILE])
		return false;
	struct access_vector v = access_vector(p->s->axis, operand(load, 0), load->noperands > 1 ? operand(load, 1) : NULL);
	if ((type_elem_bits(result(load)->type) << v.bits) < 32)
		return false;
	/* what is contiguous in global memory must be so in the buffer */
	struct memory_map m = map_to_memory(result(load)->type->layout, buffer_layout(p, load), v.bits);
	return m.vec_bits == v.bits && !memcmp(m.vec_reg, v.reg, (size_t)v.bits);
}

static struct op *first_dot(const struct block *body)
{
	struct op *o = body->first;
	while (o && !is_dot(o))
		o = o->next;
	return o;
}

/* Can boxes be copied instead, and is it worth while? On an H100 attention gains up to 20 % where warpgroups have other work than
 * dots, since none waits for the others; where one is alone, it gains with two buffers, and loses with more. Where dots stay in
 * flight cp.async is faster by 2 to 10 %: the thread that asks for boxes holds up its warpgroup. */
static void find_boxes(struct pipe *p)
{
	struct pass_state *s = p->s;
	p->tma = s->sm >= 90 && !s->no_boxes && s->num_warps >= (p->stages == 2 ? 4 : 8) && first_dot(p->loop->blocks[0]) && !p->dots.len &&
		 s->k->cluster == 1 && p->loads.len + s->k->nmaps <= MAX_TENSOR_MAPS;
	for (u32 i = 0; p->tma && i < p->loads.len; i++) {
		struct op *load = p->loads.at[i];
		struct box box;
		p->tma = load->noperands == 1 && !load->attr[ATTR_EVICT] && find_box(s, operand(load, 0), buffer_layout(p, load), &box);
		vec_push(&p->scratch, &p->boxes, box);
	}
}

/* Does a copy take the place of this store? */
static bool is_copied(const struct pipe *p, const struct op *store)
{
	for (u32 i = 0; i < p->loads.len; i++)
		if (consumer(p->loads.at[i]) == store)
			return true;
	return false;
}

/* No thread may wait for all others while its warpgroup has the turn. With two buffers the next one would come late. */
static void find_turns(struct pipe *p)
{
	u32 dots = 0;
	p->turns = p->tma && p->s->num_warps == 8 && p->stages > 2;
	for (struct op *o = p->loop->blocks[0]->first; o && p->turns; o = o->next) {
		dots += is_dot(o);
		p->turns = (!is_dot(o) || o->code == IR_WARP_GROUP_DOT) && !scratch_bytes(p->s, o) && (o->code != IR_LOCAL_STORE || is_copied(p, o)) &&
			   (!o->nblocks || o->code == IR_REDUCE);
	}
	p->turns &= dots == 2;
}

static bool contains(const struct block *b, bool (*test)(const struct op *))
{
	for (const struct op *o = b->first; o; o = o->next) {
		if (test(o))
			return true;
		for (u32 i = 0; i < o->nblocks; i++)
			if (contains(o->blocks[i], test))
				return true;
	}
	return false;
}

/* A store in the loop might write what a load issued early reads: then order must be kept. Only kernels that read and
 * write through the same parameter are affected. */
static bool may_conflict(const struct block *b, const struct value *base)
{
	for (const struct op *o = b->first; o; o = o->next) {
		if (o->code == IR_BARRIER)
			return true;
		if ((o->code == IR_STORE || o->code == IR_ATOMIC_RMW || o->code == IR_ATOMIC_CAS)) {
			const struct value *other = pointer_base(operand(o, 0));
			if (!base || !other || other == base)
				return true;
		}
		for (u32 i = 0; i < o->nblocks; i++)
			if (may_conflict(o->blocks[i], base))
				return true;
	}
	return false;
}

/* A dot's operand that cp.async cannot bring, since its rows begin at any element, is not left behind: then all go through registers. */
static bool is_run(const struct pipe *p, const struct op *load)
{
	int unit;
	return consumer(load) && access_run(p->s->axis, operand(load, 0), load->noperands > 1 ? operand(load, 1) : NULL, &unit).bits;
}

static void find_loads(struct pipe *p, bool asked)
{
	struct block *b = p->loop->blocks[0];
	int want_async = 1;
	for (const struct op *o = b->first; o; o = o->next)
		if (o->code == IR_LOAD && type_is_tensor(result(o)->type) && is_run(p, o))
			want_async = 0;
	for (; want_async >= 0 && !p->loads.len; want_async--) {
		p->async = want_async;
		for (struct op *o = b->first; o; o = o->next) {
			if (o->code != IR_LOAD || !type_is_tensor(result(o)->type) || may_conflict(b, pointer_base(operand(o, 0))))
				continue;
			bool fits = want_async ? can_copy_async(p, o) : asked || reaches_dot(result(o), 0);
			if (fits)
				add_load(p, o);
		}
	}
	for (struct op *o = b->first; o; o = o->next)
		if (map_get(&p->in_slice, o))
			vec_push(&p->scratch, &p->slice, o);
}

static bool is_buffer(const struct pipe *p, const struct value *v)
{
	const struct block *body = p->loop->blocks[0];
	while (v->def && v->def->code == IR_MEMDESC_TRANS)
		v = operand(v->def, 0);
	for (u32 i = 0; i < p->loads.len; i++) {
		const struct op *to = consumer(p->loads.at[i]);
		if (to->code == IR_LOCAL_STORE && operand(to, 1) == v)
			return true;
	}
	return value_defined_outside(v, body);
}

/* Dots that nothing needs before the next iteration's, reading what stays until then. */
static void find_dots(struct pipe *p)
{
	struct block *body = p->loop->blocks[0];
	for (struct op *o = body->first; o; o = o->next) {
		if (o->code != IR_WARP_GROUP_DOT || !value_has_one_use(result(o)) || result(o)->uses->user != body->last)
			continue;
		const struct value *acc = operand(o, 2);
		u32 i = (u32)(result(o)->uses - body->last->operands);
		bool memory = operand(o, 0)->type->kind == TY_MEMDESC && is_buffer(p, operand(o, 0)) && is_buffer(p, operand(o, 1));
		if (memory && acc == body->args[1 + i] && value_has_one_use(acc))
			vec_push(&p->scratch, &p->dots, o);
	}
}

/* --- building ------------------------------------------------------------------------------------------------ */

/* The loop again, with more carried values: `inits` are their first values. The new values must be yielded later. */
static struct op *extend_loop(struct pipe *p, const value_vec *inits)
{
	struct op *old = p->loop;
	struct block *from = old->blocks[0];
	value_vec ops = {0};
	VEC(const struct type *) types = {0};
	for (u32 i = 0; i < old->noperands; i++)
		vec_push(&p->scratch, &ops, operand(old, i));
	for (u32 i = 0; i < inits->len; i++)
		vec_push(&p->scratch, &ops, inits->at[i]);
	for (u32 i = 3; i < ops.len; i++)
		vec_push(&p->scratch, &types, ops.at[i]->type);
	struct builder b = builder_before(p->ctx, old);
	struct op *loop = build(&b, IR_FOR, ops.at, ops.len, types.at, types.len, 1);
	struct block *to = loop->blocks[0];
	memcpy(loop->attr, old->attr, sizeof loop->attr);
	for (u32 i = 0; i < from->nargs; i++) {
		struct value *arg = block_add_arg(p->ctx, to, from->args[i]->type);
		arg->name = from->args[i]->name;
		replace_uses(from->args[i], arg);
	}
	for (u32 i = 0; i < inits->len; i++)
		block_add_arg(p->ctx, to, inits->at[i]->type);
	for (struct op *o = from->first, *next; o; o = next) {
		next = o->next;
		op_unlink(o);
		o->block = to;
		o->prev = to->last;
		*(to->last ? &to->last->next : &to->first) = o;
		to->last = o;
	}
	for (u32 i = 0; i < old->nresults; i++) {
		loop->results[i].name = old->results[i].name;
		replace_uses(&old->results[i], &loop->results[i]);
	}
	struct builder in = builder_at_end(p->ctx, from); /* the emptied loop is erased whole */
	build(&in, IR_YIELD, NULL, 0, NULL, 0, 0);
	op_erase(old);
	return p->loop = loop;
}

static struct value *to_i64(struct builder *b, struct value *v)
{
	const struct type *t = type_scalar(b->ctx, DT_I64);
	return v->type == t ? v : build1(b, IR_EXTSI, t, v);
}

/* Is index + n·step below the loop's end? Computed in 64 bits, where it cannot wrap. */
static struct value *still_inside(struct pipe *p, struct builder *b, struct value *index, int n)
{
	const struct type *t = type_scalar(p->ctx, DT_I64);
	struct value *by = build2(b, IR_MULI, t, to_i64(b, operand(p->loop, 2)), build_int(b, t, n));
	struct value *at = build2(b, IR_ADDI, t, to_i64(b, index), by);
	return build_cmpi(b, CMPI_SLT, at, to_i64(b, operand(p->loop, 1)));
}

static struct value *step_index(struct pipe *p, struct builder *b, struct value *index, int n)
{
	struct value *step = operand(p->loop, 2);
	return build2(b, IR_ADDI, index->type, index, build2(b, IR_MULI, step->type, step, build_int(b, step->type, n)));
}

/* The load's mask and the predicate (NULL: true), as a mask in the layout of its pointers. */
static struct value *guard(struct pipe *p, struct builder *b, const struct op *load, struct value *mask, struct value *inside)
{
	if (!inside)
		return mask;
	const struct type *t = type_with_dtype(p->ctx, operand(load, 0)->type, DT_I1);
	struct value *all = build1(b, IR_SPLAT, t, inside);
	return mask ? build2(b, IR_ANDI, t, mask, all) : all;
}

static struct value *index_ring(struct pipe *p, struct builder *b, struct value *ring, struct value *slot)
{
	const struct type *t = ring->type, *one = type_memdesc(p->ctx, t->elem, t->rank, t->shape, t->layout, 0);
	return build2(b, IR_MEMDESC_INDEX, one, ring, slot);
}

static struct value *buffer_at(struct pipe *p, struct builder *b, u32 i, struct value *slot)
{
	return index_ring(p, b, p->buffers.at[i], slot);
}

static struct value *barrier_at(struct pipe *p, struct builder *b, struct value *slot, bool empty)
{
	if (empty)
		slot = build2(b, IR_ADDI, slot->type, slot, build_int(b, slot->type, p->stages));
	return index_ring(p, b, p->barriers, slot);
}

static i64 bytes_of(const struct op *load)
{
	const struct type *t = result(load)->type;
	return type_numel(t) * dtype_bytes(type_dtype(t));
}

/* Tells the buffer's barrier how many bytes will come. */
static void expect(struct pipe *p, struct builder *b, struct value *slot)
{
	struct value *full = barrier_at(p, b, slot, false);
	struct op *o = build(b, IR_BARRIER_EXPECT, &full, 1, NULL, 0, 0);
	for (u32 i = 0; i < p->loads.len; i++)
		o->attr[ATTR_SIZE] += bytes_of(p->loads.at[i]);
}

/* Asks for box number i, from the address of its first element. */
static void issue_box(struct pipe *p, struct builder *b, u32 i, struct value *first, struct value *slot)
{
	const struct box *box = &p->boxes.at[i];
	struct value *ops[] = {first, buffer_at(p, b, i, slot), barrier_at(p, b, slot, false), box->stride};
	struct op *copy = build(b, IR_TMA_COPY, ops, box->stride ? 4 : 3, NULL, 0, 0);
	copy->attr[ATTR_ALONG] = box->along;
	copy->attr[ATTR_STRIDE] = box->factor;
	copy->loc = p->loads.at[i]->loc;
}

/* Issues load number i for the iteration whose values `map` holds; into `slot` of its ring, or into registers. */
static struct value *issue(struct pipe *p, struct builder *b, u32 i, const struct map *map, struct value *slot, struct value *inside)
{
	struct op *load = p->loads.at[i];
	struct value *ptr = mapped(map, operand(load, 0));
	struct value *mask = guard(p, b, load, load->noperands > 1 ? mapped(map, operand(load, 1)) : NULL, inside);
	if (!p->async) {
		struct value *other = load->noperands > 2 ? mapped(map, operand(load, 2)) : NULL;
		struct value *v = build3(b, IR_LOAD, result(load)->type, ptr, mask, other);
		memcpy(v->def->attr, load->attr, sizeof load->attr);
		v->def->loc = load->loc;
		return v;
	}
	struct value *ops[] = {ptr, buffer_at(p, b, i, slot), mask};
	struct op *copy = build(b, IR_ASYNC_COPY, ops, 3, NULL, 0, 0);
	copy->attr[ATTR_ASYNC_EVICT] = load->attr[ATTR_EVICT];
	copy->loc = load->loc;
	return NULL;
}

/* A buffer, and how often the ring has been gone through before, modulo 2. */
struct turn {
	struct value *slot, *phase;
};

/* All warps have read what the next boxes overwrite. */
static void await_readers(struct pipe *p, struct builder *b, struct turn next)
{
	struct value *one = build_int(b, next.phase->type, 1);
	struct value *ops[] = {barrier_at(p, b, next.slot, true), build2(b, IR_XORI, one->type, next.phase, one)};
	build(b, IR_WAIT_BARRIER, ops, 2, NULL, 0, 0);
}

/* All boxes for one iteration; `to.phase` NULL: nobody has read that buffer yet. */
static void issue_boxes(struct pipe *p, struct builder *b, const struct map *map, struct turn to, struct value *inside)
{
	value_vec firsts = {0};
	for (u32 i = 0; i < p->loads.len; i++)
		vec_push(&p->scratch, &firsts, first_element(b, p->loop, &p->firsts, mapped(map, operand(p->loads.at[i], 0))));
	struct builder in = builder_at_end(p->ctx, build(b, IR_ONE_THREAD, &inside, 1, NULL, 0, 1)->blocks[0]);
	if (to.phase)
		await_readers(p, &in, to);
	expect(p, &in, to.slot);
	for (u32 i = 0; i < p->loads.len; i++)
		issue_box(p, &in, i, firsts.at[i], to.slot);
	build(&in, IR_YIELD, NULL, 0, NULL, 0, 0);
}

/* All loads for one iteration. Those into registers are added to *loaded. */
static void issue_all(struct pipe *p, struct builder *b, const struct map *map, struct turn to, struct value *inside, value_vec *loaded)
{
	if (p->tma) {
		issue_boxes(p, b, map, to, inside);
		return;
	}
	for (u32 i = 0; i < p->loads.len; i++) {
		struct value *v = issue(p, b, i, map, to.slot, inside);
		if (v)
			vec_push(&p->scratch, loaded, v);
	}
	if (p->async)
		build(b, IR_ASYNC_COMMIT, NULL, 0, NULL, 0, 0);
}

static void clone_slice(struct pipe *p, struct builder *b, struct map *map)
{
	for (u32 i = 0; i < p->slice.len; i++)
		op_clone(b, p->slice.at[i], map);
}

/* The ring of buffers for each load. */
static void make_buffers(struct pipe *p)
{
	struct builder b = builder_before(p->ctx, p->loop);
	for (u32 i = 0; i < p->loads.len; i++) {
		struct op *load = p->loads.at[i];
		const struct type *t = result(load)->type;
		b.loc = load->loc;
		const struct type *ring = type_memdesc(p->ctx, t->elem, t->rank, t->shape, buffer_layout(p, load), p->stages);
		struct value *v = result(build(&b, IR_LOCAL_ALLOC, NULL, 0, &ring, 1, 0));
		v->name = load->results[0].name;
		vec_push(&p->scratch, &p->buffers, v);
	}
	if (!p->tma)
		return;
	static const i32 one[] = {1};
	struct layout l = layout_empty(1, one);
	const struct type *t = type_memdesc(p->ctx, type_scalar(p->ctx, DT_I64), 1, one, layout_intern(&p->ctx->layouts, &l), 2 * p->stages);
	p->barriers = result(build(&b, IR_LOCAL_ALLOC, NULL, 0, &t, 1, 0));
	for (int i = 0; i < p->stages; i++)
		for (int empty = 0; empty < 2; empty++) {
			struct value *at = barrier_at(p, &b, build_int(&b, type_scalar(p->ctx, DT_I32), i), empty);
			build(&b, IR_INIT_BARRIER, &at, 1, NULL, 0, 0)->attr[ATTR_COUNT] = empty ? p->s->num_warps : 1;
		}
	/* what was here before has been read and written, and the barriers are ready, also for the copy engine */
	build(&b, IR_FENCE_ASYNC, NULL, 0, NULL, 0, 0);
	build(&b, IR_BARRIER, NULL, 0, NULL, 0, 0);
}

static void invalidate_barriers(struct pipe *p, struct builder *b)
{
	for (int i = 0; i < p->stages; i++)
		for (int empty = 0; empty < 2; empty++) {
			struct value *at = barrier_at(p, b, build_int(b, type_scalar(p->ctx, DT_I32), i), empty);
			build(b, IR_INVAL_BARRIER, &at, 1, NULL, 0, 0);
		}
}

/* The first iterations' loads, in front of the loop. Leaves the slice's carried values for iteration `ahead` in *inits. */
static void build_prologue(struct pipe *p, value_vec *inits, value_vec *loaded)
{
	struct block *body = p->loop->blocks[0];
	struct builder b = builder_before(p->ctx, p->loop);
	struct map map = {.arena = &p->scratch};
	const struct type *i32_type = type_scalar(p->ctx, DT_I32);
	for (u32 k = 0; k < p->args.len; k++)
		map_put(&map, body->args[1 + p->args.at[k]], operand(p->loop, 3 + p->args.at[k]));
	for (int n = 0; n < p->ahead; n++) {
		map_put(&map, body->args[0], step_index(p, &b, operand(p->loop, 0), n));
		clone_slice(p, &b, &map);
		struct value *inside = still_inside(p, &b, operand(p->loop, 0), n);
		issue_all(p, &b, &map, (struct turn){p->async ? build_int(&b, i32_type, n) : NULL, NULL}, inside, loaded);
		value_vec next = {0};
		for (u32 k = 0; k < p->args.len; k++)
			vec_push(&p->scratch, &next, mapped(&map, operand(body->last, p->args.at[k])));
		for (u32 k = 0; k < p->args.len; k++)
			map_put(&map, body->args[1 + p->args.at[k]], next.at[k]);
	}
	for (u32 k = 0; k < p->args.len; k++)
		vec_push(&p->scratch, inits, mapped(&map, body->args[1 + p->args.at[k]]));
}

/* All but the last `pending` groups of copies are there for everybody. That includes wgmma: what cp.async has delivered needs
 * no fence between proxies, which would wait for everything else too. */
static void wait_copies(struct builder *b, int pending)
{
	build(b, IR_ASYNC_WAIT, NULL, 0, NULL, 0, 0)->attr[ATTR_PENDING] = pending;
	build(b, IR_BARRIER, NULL, 0, NULL, 0, 0);
}

/* Load i of this iteration is in its buffer, or is stored there, in place of what followed it. */
static void use_buffer(struct pipe *p, u32 i, struct value *slot)
{
	struct op *load = p->loads.at[i], *to = consumer(load);
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
		replace_uses(result(to), build1(&b, IR_LOCAL_LOAD, result(to)->type, view));
		op_erase(to);
	}
	op_erase(load);
}

/* So many iterations later. */
static struct turn turn(struct pipe *p, struct builder *b, struct turn at, int by)
{
	const struct type *t = at.slot->type;
	struct value *sum = build2(b, IR_ADDI, t, at.slot, build_int(b, t, by)), *all = build_int(b, t, p->stages);
	struct value *over = build_cmpi(b, CMPI_SGE, sum, all);
	at.slot = build3(b, IR_SELECT, t, over, build2(b, IR_SUBI, t, sum, all), sum);
	if (at.phase)
		at.phase = build3(b, IR_SELECT, t, over, build2(b, IR_XORI, t, at.phase, build_int(b, t, 1)), at.phase);
	return at;
}

/* Until the buffer of this iteration is filled. */
static void await_buffer(struct pipe *p, struct builder *b, struct turn now)
{
	if (!p->tma) {
		wait_copies(b, p->ahead - 1);
		return;
	}
	struct value *ops[] = {barrier_at(p, b, now.slot, false), now.phase};
	build(b, IR_WAIT_BARRIER, ops, 2, NULL, 0, 0);
}

/* This warp has read the buffer. */
static void release_buffer(struct pipe *p, struct builder *b, struct value *slot)
{
	struct value *empty = barrier_at(p, b, slot, true);
	build(b, IR_ARRIVE_BARRIER, &empty, 1, NULL, 0, 0);
}

/* The dots that stay in flight, and where those of the iteration before are done. */
static void delay_dots(struct pipe *p, struct builder *b)
{
	for (u32 i = 0; i < p->dots.len; i++)
		p->dots.at[i]->attr[ATTR_ASYNC] = true;
	*b = builder_after(p->ctx, p->dots.at[p->dots.len - 1]);
	build(b, IR_WARP_GROUP_WAIT, NULL, 0, NULL, 0, 0)->attr[ATTR_PENDING] = p->dots.len;
	build(b, IR_BARRIER, NULL, 0, NULL, 0, 0);
}


/* From the last dot to the first one of the next iteration, after which b is. */
static void take_turns(struct pipe *p, struct builder *b)
{
	struct op *last = p->loop->blocks[0]->last;
	while (!is_dot(last))
		last = last->prev;
	struct builder before = builder_before(p->ctx, p->loop), at = builder_before(p->ctx, last);
	build(&before, IR_AWAIT_TURN, NULL, 0, NULL, 0, 0)->attr[ATTR_ENDS] = true;
	build(b, IR_PASS_TURN, NULL, 0, NULL, 0, 0);
	build(&at, IR_AWAIT_TURN, NULL, 0, NULL, 0, 0);
}

/* Loads into registers whose addresses hang on numbers alone: in the last iteration they load again what that one uses, which is
 * cheaper than predicates and zeros for every register in all the others. */
static bool may_repeat(const struct pipe *p)
{
	bool unmasked = !p->async;
	for (u32 i = 0; i < p->loads.len; i++)
		unmasked &= p->loads.at[i]->noperands == 1 && !p->loads.at[i]->attr[ATTR_VOLATILE];
	for (u32 k = 0; k < p->args.len; k++)
		unmasked &= !type_is_tensor(p->loop->blocks[0]->args[1 + p->args.at[k]]->type);
	return unmasked;
}

static void wait_dots(struct builder *b, i64 pending)
{
	build(b, IR_WARP_GROUP_WAIT, NULL, 0, NULL, 0, 0)->attr[ATTR_PENDING] = pending;
}

/* Where loads into registers go, behind the stores of what they overwrite and, with a ring, the dots that run meanwhile. */
static struct builder place_register_loads(struct pipe *p)
{
	struct block *body = p->loop->blocks[0];
	struct builder b = builder_before(p->ctx, body->first);
	if (p->ring) { /* behind this barrier all dots of the iteration before have read their buffer, which the next one writes */
		b = builder_before(p->ctx, p->dots.at[0]);
		wait_dots(&b, 0);
		build(&b, IR_FENCE_ASYNC, NULL, 0, NULL, 0, 0);
		build(&b, IR_BARRIER, NULL, 0, NULL, 0, 0);
		for (u32 i = 0; i < p->dots.len; i++)
			p->dots.at[i]->attr[ATTR_ASYNC] = true;
		/* ptxas would start loading first, and would let the dots wait for it */
		b = builder_after(p->ctx, p->dots.at[p->dots.len - 1]);
		build(&b, IR_BARRIER, NULL, 0, NULL, 0, 0)->attr[ATTR_WARP] = true;
		return b;
	}
	for (struct op *o = body->first; o; o = o->next) /* into registers that these stores have freed */
		if (o->code == IR_LOCAL_STORE)
			b = builder_after(p->ctx, o->next && o->next->code == IR_FENCE_ASYNC ? o->next : o);
	return b;
}

static void build_body(struct pipe *p, u32 nargs_before)
{
	struct block *body = p->loop->blocks[0];
	struct builder b = p->async ? builder_before(p->ctx, body->first) : place_register_loads(p);
	struct map map = {.arena = &p->scratch};
	struct value **extra = body->args + 1 + nargs_before; /* slice's carried values, then the turn, then loaded values */
	struct turn now = {0}, next = {0}, fill = {0};
	if (p->ring)
		now = (struct turn){extra[p->args.len], p->tma ? extra[p->args.len + 1] : NULL};
	if (p->async) {
		await_buffer(p, &b, now);
		fill = turn(p, &b, now, p->ahead);
	}
	if (p->ring)
		next = turn(p, &b, now, 1);
	if (p->async) {
		if (p->dots.len)
			delay_dots(p, &b);
		else if (p->tma) /* the others may still be reading what it overwrites: there is work to do meanwhile */
			b = builder_after(p->ctx, first_dot(body));
		if (p->turns)
			take_turns(p, &b);
	}
	struct value *inside = still_inside(p, &b, body->args[0], p->ahead), *index = step_index(p, &b, body->args[0], p->ahead);
	bool repeat = may_repeat(p);
	map_put(&map, body->args[0], repeat ? build3(&b, IR_SELECT, index->type, inside, index, body->args[0]) : index);
	for (u32 k = 0; k < p->args.len; k++) {
		struct value *old = body->args[1 + p->args.at[k]];
		map_put(&map, old, repeat ? build3(&b, IR_SELECT, old->type, inside, extra[k], old) : extra[k]);
	}
	clone_slice(p, &b, &map);
	value_vec loaded = {0};
	issue_all(p, &b, &map, fill, repeat ? NULL : inside, &loaded);
	for (u32 k = 0; k < p->args.len; k++)
		op_add_operand(p->ctx, body->last, mapped(&map, operand(body->last, p->args.at[k])));
	if (p->ring)
		op_add_operand(p->ctx, body->last, next.slot);
	if (p->tma)
		op_add_operand(p->ctx, body->last, next.phase);
	for (u32 i = 0; i < p->loads.len; i++) {
		if (p->ring)
			use_buffer(p, i, now.slot);
		if (p->async)
			continue;
		op_add_operand(p->ctx, body->last, loaded.at[i]);
		replace_uses(result(p->loads.at[i]), extra[p->args.len + p->ring + i]);
		op_erase(p->loads.at[i]);
	}
	if (p->tma) {
		struct builder end = builder_before(p->ctx, body->last);
		release_buffer(p, &end, now.slot);
	}
}

/* After the loop: their results are there. */
static void finish_dots(struct pipe *p, struct builder *b)
{
	const struct block *body = p->loop->blocks[0];
	value_vec sums = {0};
	VEC(const struct type *) types = {0};
	for (u32 i = 0; i < p->dots.len; i++) {
		u32 n = (u32)(result(p->dots.at[i])->uses - body->last->operands);
		vec_push(&p->scratch, &sums, &p->loop->results[n]);
		vec_push(&p->scratch, &types, p->loop->results[n].type);
	}
	struct op *wait = build(b, IR_WARP_GROUP_WAIT, sums.at, sums.len, types.at, types.len, 0);
	for (u32 i = 0; i < sums.len; i++) {
		replace_uses(sums.at[i], &wait->results[i]);
		op_set_operand(wait, i, sums.at[i]);
	}
}

static void transform(struct pipe *p)
{
	u32 carried = p->loop->nresults;
	value_vec inits = {0}, loaded = {0};
	if (p->ring)
		make_buffers(p);
	build_prologue(p, &inits, &loaded);
	if (p->ring) {
		struct builder b = builder_before(p->ctx, p->loop);
		for (int i = 0; i < 1 + p->tma; i++) /* the turn */
			vec_push(&p->scratch, &inits, build_int(&b, type_scalar(p->ctx, DT_I32), 0));
	}
	for (u32 i = 0; i < loaded.len; i++)
		vec_push(&p->scratch, &inits, loaded.at[i]);
	extend_loop(p, &inits);
	build_body(p, carried);
	if (p->ring) {
		struct builder b = builder_after(p->ctx, p->loop);
		if (p->dots.len)
			finish_dots(p, &b);
		if (p->turns)
			build(&b, IR_PASS_TURN, NULL, 0, NULL, 0, 0)->attr[ATTR_ENDS] = true;
		if (p->tma) {
			build(&b, IR_BARRIER, NULL, 0, NULL, 0, 0);
			invalidate_barriers(p, &b);
		} else if (p->async) {
			wait_copies(&b, 0);
		} else {
			build(&b, IR_BARRIER, NULL, 0, NULL, 0, 0);
		}
	}
}

/* --- choosing ------------------------------------------------------------------------------------------------ */

static i64 ring_bytes(const struct pipe *p, int stages)
{
	i64 total = 0;
	for (u32 i = 0; i < p->loads.len; i++) {
		total += bytes_of(p->loads.at[i]) * stages;
	}
	return total;
}

/* Do all loads go to shared memory before the first dot, so that one barrier between is enough? */
static bool stores_come_first(const struct pipe *p)
{
	bool seen = false, ok = true;
	for (const struct op *o = p->loop->blocks[0]->first; o; o = o->next) {
		seen |= is_dot(o);
		ok &= o->code != IR_LOCAL_STORE || !seen;
	}
	for (u32 i = 0; i < p->loads.len; i++) {
		const struct op *to = consumer(p->loads.at[i]);
		ok &= to && to->code == IR_LOCAL_STORE;
	}
	return ok;
}

static void pipeline_loop(struct pass_state *s, struct op *loop)
{
	struct pipe p = {.s = s, .ctx = s->ctx, .loop = loop};
	bool asked = loop->attr[ATTR_STAGES] > 0;
	int stages = asked ? (int)loop->attr[ATTR_STAGES] : s->num_stages;
	if (stages < 2 || (!asked && !contains(loop->blocks[0], is_dot)))
		return;
	p.in_slice.arena = p.firsts.arena = &p.scratch;
	find_loads(&p, asked);
	while (p.async && stages > 2 && ring_bytes(&p, stages) > s->max_shared - 1024)
		stages--;
	p.stages = p.async ? stages : 2;
	if (p.async || stores_come_first(&p))
		find_dots(&p);
	if (p.async) {
		find_boxes(&p);
		find_turns(&p);
	}
	p.ahead = p.async ? stages - 1 : 1;
	bool fits = !p.async || ring_bytes(&p, stages) <= s->max_shared - 1024;
	p.ring = p.async || (p.dots.len && ring_bytes(&p, p.stages) <= s->max_shared - 1024);
	if (!p.ring)
		p.dots.len = 0;
	if (p.loads.len && fits)
		transform(&p);
	if (p.loads.len && fits && p.tma)
		s->k->nmaps += p.loads.len;
	if (s->remarks && p.loads.len && fits && p.async)
		diag(s->diags, R_PIPELINED_ASYNC, loop->loc, p.loads.len, PLURAL(p.loads.len), p.ahead, PLURAL(p.ahead), p.tma ? "TMA" : "cp.async", p.stages,
		     PLURAL(p.stages), (long long)ring_bytes(&p, p.stages));
	else if (s->remarks && p.loads.len && fits)
		diag(s->diags, R_PIPELINED_REGISTERS, loop->loc, p.loads.len, PLURAL(p.loads.len),
		     p.ring ? arena_printf(&p.scratch, ", then through 2 buffers (%lld bytes of shared memory)", (long long)ring_bytes(&p, p.stages)) : "");
	else if (s->remarks)
		diag(s->diags, R_NOT_PIPELINED, loop->loc,
		     !p.loads.len ? "no load whose address is index arithmetic alone and that nothing in the loop may overwrite"
				  : "its buffers do not fit in shared memory");
	arena_free(&p.scratch);
}

static void pipeline_block(struct pass_state *s, struct block *b)
{
	for (struct op *o = b->first, *next; o; o = next) {
		next = o->next;
		bool inner = true;
		for (u32 i = 0; i < o->nblocks; i++) {
			inner &= !contains(o->blocks[i], op_is_loop);
			pipeline_block(s, o->blocks[i]);
		}
		if (o->code == IR_FOR && inner)
			pipeline_loop(s, o);
	}
}

void pass_pipeline(struct pass_state *s)
{
	pipeline_block(s, s->k->body);
	pass_canonicalize(s);
	pass_cse(s);
	remove_dead_code(s->k);
}
