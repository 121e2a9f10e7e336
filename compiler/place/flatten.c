/* Loops over tiles (`flatten=True`): the next tile's first copies fly while this tile's results are stored.
 *
 * The pipeliner puts the first copies of a loop in front of it. If that loop stands in another one, nothing is on its way while
 * the outer loop's body ends and begins anew. So these copies move: in front of the outer loop for its first iteration, and
 * behind the inner loop for the next one.
 *
 *     for tile                                if any
 *       addresses, copies of tile               addresses, copies of the first tile
 *       for k …                                 for tile
 *       results                                   addresses
 *                                                 for k …
 *                                                 addresses, copies of the next tile, if there is one
 *                                                 results
 *
 * The buffers are then in use all the time, also by the side of what the results need. Scalars that addresses are computed from
 * are carried to the next iteration; tiles are cheaper computed again than kept in registers. */
#include "place/pipeline.h"
#include "place/place.h"

struct flat {
	struct pass_state *s;
	struct arena scratch;
	struct op *outer, *inner;
	struct map in_slice;
	VEC(struct op *) slice, copies, buffers; /* what copies depend on in the outer loop's body; each in program order */
	value_vec carried;
};

static bool is_copy(const struct op *o)
{
	return o->code == IR_ASYNC_COPY || o->code == IR_ASYNC_COMMIT;
}

/* The first loop behind copies that belong to it. */
static struct op *pipelined_loop(const struct op *outer)
{
	bool copied = false;
	for (struct op *o = outer->blocks[0]->first; o; o = o->next) {
		copied |= is_copy(o);
		if (copied && o->code == IR_FOR)
			return o;
	}
	return NULL;
}

/* May v, and what it is computed from, be computed one iteration earlier? */
static bool slice_up(struct flat *f, struct value *v)
{
	struct block *body = f->outer->blocks[0];
	struct op *o = v->def;
	if (value_defined_outside(v, body) || v == body->args[0] || map_get(&f->in_slice, o ? (void *)o : v))
		return true;
	bool early = o && o->code == IR_LOAD && !o->attr[ATTR_VOLATILE] && !may_be_written(body, pointer_base(operand(o, 0)));
	if (!o || o->block != body || o->nblocks || (!op_has(o, PURE) && !early))
		return false;
	map_put(&f->in_slice, o, o);
	for (u32 i = 0; i < o->noperands; i++)
		if (!slice_up(f, operand(o, i)))
			return false;
	return true;
}

/* Finds what moves. */
static bool find_slice(struct flat *f)
{
	struct block *body = f->outer->blocks[0];
	f->in_slice.arena = &f->scratch;
	for (struct op *o = body->first; o != f->inner; o = o->next) {
		if (o->code == IR_LOCAL_ALLOC && !o->noperands && result(o)->type->nbuf) {
			vec_push(&f->scratch, &f->buffers, o);
			map_put(&f->in_slice, o, o);
		}
		if (o->code == IR_ASYNC_COPY && may_be_written(body, pointer_base(operand(o, 0))))
			return false;
		for (u32 i = 0; is_copy(o) && i < o->noperands; i++)
			if (!slice_up(f, operand(o, i)))
				return false;
	}
	for (struct op *o = body->first; o != f->inner; o = o->next) {
		if (is_copy(o))
			vec_push(&f->scratch, &f->copies, o);
		else if (map_get(&f->in_slice, o) && o->code != IR_LOCAL_ALLOC)
			vec_push(&f->scratch, &f->slice, o);
	}
	return true;
}

/* Moves the buffers out of the loop, if everything then still fits. */
static bool keep_buffers(struct flat *f)
{
	for (u32 i = 0; i < f->buffers.len; i++)
		op_insert_before(f->buffers.at[i], f->outer);
	bool fits = shared_needed(f->s) <= f->s->max_shared;
	for (u32 i = f->buffers.len; !fits && i--;)
		op_insert_before(f->buffers.at[i], f->outer->blocks[0]->first);
	return fits;
}

/* Scalars of the slice that tiles are made of. */
static void find_carried(struct flat *f)
{
	for (u32 i = 0; i < f->slice.len; i++) {
		struct value *v = result(f->slice.at[i]);
		bool used = false;
		for (const struct use *u = v->uses; u; u = u->next)
			used |= !map_get(&f->in_slice, u->user) || type_is_tensor(result(u->user)->type);
		if (used && v->type->kind == TY_SCALAR && op_has(v->def, PURE))
			vec_push(&f->scratch, &f->carried, v);
	}
}

/* What the copies of outer iteration number `index` need. */
static void slice_for(struct flat *f, struct builder *b, struct value *index, struct map *map)
{
	map_put(map, f->outer->blocks[0]->args[0], index);
	for (u32 i = 0; i < f->slice.len; i++)
		op_clone(b, f->slice.at[i], map);
}

/* The copies themselves; `more` NULL: there is such an iteration. */
static void copies_for(struct flat *f, struct builder *b, struct value *more, struct map *map)
{
	for (u32 i = 0; i < f->copies.len; i++) {
		struct op *copy = op_clone(b, f->copies.at[i], map);
		if (!more || copy->code != IR_ASYNC_COPY)
			continue;
		struct builder before = builder_before(b->ctx, copy);
		op_set_operand(copy, 2, guard(&before, operand(copy, 0), operand(copy, 2), more));
	}
}

/* Around the outer loop: if it runs at all. There, a first tile exists. */
static void only_if_any(struct flat *f)
{
	struct ir_context *ctx = f->s->ctx;
	struct op *outer = f->outer;
	VEC(const struct type *) types = {0};
	value_vec inits = {0}, results = {0};
	for (u32 i = 0; i < outer->nresults; i++) {
		vec_push(&f->scratch, &types, outer->results[i].type);
		vec_push(&f->scratch, &inits, operand(outer, 3 + i));
		vec_push(&f->scratch, &results, &outer->results[i]);
	}
	struct builder b = builder_before(ctx, outer);
	struct value *any = build_cmpi(&b, CMPI_SLT, operand(outer, 0), operand(outer, 1));
	struct op *branch = build(&b, IR_IF, &any, 1, types.at, types.len, 2);
	for (u32 i = 0; i < outer->nresults; i++)
		replace_uses(&outer->results[i], &branch->results[i]);
	struct builder yes = builder_at_end(ctx, branch->blocks[0]), no = builder_at_end(ctx, branch->blocks[1]);
	op_insert_before(outer, build(&yes, IR_YIELD, results.at, results.len, NULL, 0, 0));
	build(&no, IR_YIELD, inits.at, inits.len, NULL, 0, 0);
}

/* Behind the inner loop and what waits for its last dots and copies. */
static struct builder behind_waits(const struct flat *f)
{
	struct op *o = f->inner;
	while (o->next->code == IR_WARP_GROUP_WAIT || o->next->code == IR_ASYNC_WAIT || o->next->code == IR_BARRIER)
		o = o->next;
	return builder_after(f->s->ctx, o);
}

/* The scalars arrive with the iteration instead of being computed in it. */
static void use_carried(struct flat *f, struct value **args)
{
	for (u32 i = 0; i < f->carried.len; i++) {
		args[i]->name = f->carried.at[i]->name;
		replace_uses(f->carried.at[i], args[i]);
	}
	for (u32 i = f->copies.len; i--;)
		op_erase(f->copies.at[i]);
	for (u32 i = f->slice.len; i--;)
		if (value_unused(result(f->slice.at[i])))
			op_erase(f->slice.at[i]);
}

static void rotate(struct flat *f)
{
	struct ir_context *ctx = f->s->ctx;
	find_carried(f);
	only_if_any(f);
	struct builder before = builder_before(ctx, f->outer);
	struct map first = {.arena = &f->scratch}, next = {.arena = &f->scratch};
	slice_for(f, &before, operand(f->outer, 0), &first);
	copies_for(f, &before, NULL, &first);
	value_vec inits = {0};
	for (u32 i = 0; i < f->carried.len; i++)
		vec_push(&f->scratch, &inits, mapped(&first, f->carried.at[i]));
	u32 nargs = f->outer->blocks[0]->nargs;
	f->outer = extend_loop(ctx, &f->scratch, f->outer, &inits);
	struct block *body = f->outer->blocks[0];

	struct builder b = builder_after(ctx, f->inner), behind = behind_waits(f);
	struct value *more = still_inside(&b, f->outer, operand(f->outer, 1), body->args[0], 1);
	struct value *index = build3(&b, IR_SELECT, body->args[0]->type, more, step_index(&b, f->outer, body->args[0], 1), body->args[0]);
	slice_for(f, &b, index, &next); /* while the last dots run */
	copies_for(f, &behind, more, &next);
	for (u32 i = 0; i < f->carried.len; i++)
		op_add_operand(ctx, body->last, mapped(&next, f->carried.at[i]));
	use_carried(f, body->args + nargs);
}

static void flatten_loop(struct pass_state *s, struct op *loop)
{
	pass_licm(s); /* what is the same for all tiles need not move */
	struct flat f = {.s = s, .outer = loop, .inner = pipelined_loop(loop)};
	const char *why_not = NULL;
	if (!f.inner)
		why_not = "no loop in it has copies issued ahead by cp.async";
	else if (!find_slice(&f))
		why_not = "the next iteration's copies depend on what this one does";
	else if (!keep_buffers(&f))
		why_not = "the buffers do not fit in shared memory beside what else the loop needs";
	else
		rotate(&f);
	if (s->remarks && why_not)
		diag(s->diags, R_NOT_FLATTENED, loop->loc, why_not);
	else if (s->remarks)
		diag(s->diags, R_FLATTENED, f.outer->loc);
	arena_free(&f.scratch);
}

static void flatten_block(struct pass_state *s, struct block *b)
{
	for (struct op *o = b->first, *next; o; o = next) {
		next = o->next;
		for (u32 i = 0; i < o->nblocks; i++)
			flatten_block(s, o->blocks[i]);
		if (o->code == IR_FOR && o->attr[ATTR_FLATTEN])
			flatten_loop(s, o);
	}
}

void pass_flatten(struct pass_state *s)
{
	flatten_block(s, s->k->body);
}
