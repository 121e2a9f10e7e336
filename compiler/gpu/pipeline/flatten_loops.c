/* Loops over tiles (`flatten=True`): the copies of the inner, pipelined loop run ahead across tiles.
 *
 * Without this, no copies would be in progress while the outer loop's body ends and begins again. So both loops carry,
 * separately from the computation, the copy state (`fill`), which says which copies are issued next: the tile, i.e. the
 * index of the outer loop; whether there is such a tile; the index of the inner loop; the iter args of the slice (the
 * index arithmetic of the copies' addresses); and the values of the tile that the addresses use. When a tile's last
 * copies have been issued, the copy state is computed for the next tile, while the tensor cores work on this one.
 *
 *     for tile                        fill = first tile, first index
 *       addresses                     `ahead` times:  copies of fill;  fill = the next
 *       first copies                  for tile
 *       for k                           for k
 *         copies ahead; work              copies of fill;  fill = the next;  work
 *       epilogue                        epilogue
 *
 * The multi-buffers and the copy state stay live during the epilogue, in addition to its own memory and registers.
 * Where the inner loop's bounds depend on the tile, the copy state skips tiles without iterations. */
#include "gpu/layout/memory_access.h"
#include "gpu/pipeline/expand.h"
#include "gpu/gpu_passes.h"
#include "gpu/pipeline/persistent.h"

/* The copy state, as indices in `fill`: the outer loop's index; i1: there is such a tile; the inner loop's index; from
 * ARGS on the iter args of the slice, then the values of loop_nest.tile. */
enum { TILE, MORE, INDEX, ARGS };

static u32 copy_state_size(const struct plan *p)
{
	return ARGS + p->args.len + p->flattened->tile.len;
}

/* --- what can be flattened ----------------------------------------------------------------------------------- */

/* Adds v, which the copies use, to loop_nest.tile if the outer loop's body computes it. */
static void add_tile_value(struct plan *p, struct value *v)
{
	struct loop_nest *f = p->flattened;
	bool known = v == for_index(f->outer) || value_defined_outside(v, f->top) ||
		     !value_defined_outside(v, p->loop->blocks[0]);
	for (u32 i = 0; i < f->tile.len; i++)
		known |= f->tile.at[i] == v;
	if (!known)
		vec_push(&p->scratch, &f->tile, v);
}

static void add_tile_values(struct plan *p, const struct op *o)
{
	for (u32 i = 0; i < o->noperands; i++)
		add_tile_value(p, operand(o, i));
}

static bool find_slice(struct plan *p)
{
	if (!find_loop_nest(p, p->flattened, p->loop->block, UINT32_MAX))
		return false;
	p->flattened->outer = p->loop->block->parent;
	for (u32 i = 0; i < p->loads.len; i++)
		add_tile_values(p, p->loads.at[i]);
	for (u32 i = 0; i < p->slice.len; i++)
		add_tile_values(p, p->slice.at[i]);
	add_tile_value(p, for_upper(p->loop));
	return true;
}

static const char *why_not(struct plan *p)
{
	const struct op *outer = p->loop->block->parent;
	bool programs = is_program_loop(p->s, outer);
	if (programs && !one_block_per_multiprocessor(p))
		return "several blocks fit a multiprocessor, and the others compute while one ends";
	if (programs && !p->outstanding.len)
		return "the loop has no asynchronous dot that stays in flight";
	if (programs && p->prefetched.len)
		return "loads that are issued ahead into registers begin anew with each program";
	if (!p->async || p->tma || !p->multi_buffered)
		return "it contains no loop whose copies cp.async issues ahead";
	if (!value_defined_outside(for_step(p->loop), outer->blocks[0]) || !find_slice(p))
		return "the next iteration's copies may depend on results of this iteration";
	if (!multibuffers_fit(p, outer))
		return "the buffers do not fit in shared memory together with the loop's other buffers";
	return NULL;
}

static void tell(struct pass_state *s, bool programs, struct loc loc, const char *why_not)
{
	if (programs && why_not)
		diag(s->diags, R_NOT_PERSISTENT, s->k->loc, why_not);
	else if (programs)
		diag(s->diags, R_PERSISTENT, s->k->loc);
	else if (why_not)
		diag(s->diags, R_NOT_FLATTENED, loc, why_not);
	else
		diag(s->diags, R_FLATTENED, loc);
}

void decide_flattening(struct plan *p)
{
	struct op *outer = p->loop->block->parent;
	if (!outer || outer->code != IR_FOR || !outer->attr[ATTR_FLATTEN])
		return;
	bool programs = is_program_loop(p->s, outer);
	outer->attr[ATTR_FLATTEN] = false; /* taken up */
	const char *reason = NULL;
	if (!p->producer) {
		p->flattened = arena_new(&p->scratch, struct loop_nest);
		reason = why_not(p);
	}
	if (reason)
		p->flattened = NULL;
	if (programs && reason)
		remove_program_loop(p->s);
	else if (programs)
		p->s->cuda.programs = NULL; /* the loop over programs stays */
	if (p->s->remarks)
		tell(p->s, programs, outer->loc, reason);
}

/* --- the copy state ------------------------------------------------------------------------------------------ */

/* Clones the operations of the outer loop's body that the copies of a tile depend on, for outer index `tile`. Returns
 * the map from values to clones. */
static struct map compute_tile(struct plan *p, struct builder *b, struct value *tile)
{
	struct loop_nest *f = p->flattened;
	struct map map = {.arena = &p->scratch};
	map_put(&map, for_index(f->outer), tile);
	for (struct op *o = f->outer->blocks[0]->first; o; o = o->next)
		if (map_get(&f->needed, o))
			op_clone(b, o, &map);
	return map;
}

static struct value *any_iteration(struct plan *p, struct builder *b, const struct map *map)
{
	return build_cmpi(b, CMPI_SLT, mapped(map, for_lower(p->loop)), mapped(map, for_upper(p->loop)));
}

/* Advances *tile to the next tile. After the last tile, *tile does not change, so that its addresses can be computed,
 * and *more becomes false. */
static void advance_tile(struct plan *p, struct builder *b, struct value **tile, struct value **more)
{
	struct op *outer = p->flattened->outer;
	struct value *another = is_below(b, outer, for_upper(outer), *tile, 1);
	*tile = build3(b, IR_SELECT, (*tile)->type, another, advance_index(b, outer, *tile, 1), *tile);
	*more = build2(b, IR_ANDI, another->type, *more, another);
}

/* Advances *tile to the first tile, from *tile on, in which the inner loop has iterations; *more: there is one. */
static void skip_empty(struct plan *p, struct builder *b, struct value **tile, struct value **more)
{
	struct value *inits[] = {*tile, *more}, *next[2];
	const struct type *types[] = {(*tile)->type, (*more)->type};
	struct op *loop = build(b, IR_WHILE, inits, 2, types, 2, 2);
	for (u32 i = 0; i < 4; i++)
		next[i % 2] = block_add_arg(p->ctx, loop->blocks[i / 2], types[i % 2]);
	struct builder test = builder_at_end(p->ctx, loop->blocks[0]), step = builder_at_end(p->ctx, loop->blocks[1]);
	struct value **now = loop->blocks[0]->args;
	struct map map = compute_tile(p, &test, now[0]);
	struct value *some = any_iteration(p, &test, &map),
		     *empty = build2(&test, IR_XORI, some->type, some, build_int(&test, some->type, 1));
	struct value *condition[] = {build2(&test, IR_ANDI, some->type, now[1], empty), now[0], now[1]};
	build(&test, IR_CONDITION, condition, 3, NULL, 0, 0);
	advance_tile(p, &step, &next[0], &next[1]);
	build(&step, IR_YIELD, next, 2, NULL, 0, 0);
	*tile = &loop->results[0];
	*more = &loop->results[1];
}

/* Sets the copy state `fill` to the first copies of `tile`, or of the first tile after it that has copies. more (i1):
 * there is a tile `tile`. */
static void begin_tile(struct plan *p, struct builder *b, struct value *tile, struct value *more, struct value **fill)
{
	struct loop_nest *f = p->flattened;
	struct block *body = f->outer->blocks[0];
	if (value_defined_outside(for_lower(p->loop), body) && value_defined_outside(for_upper(p->loop), body)) {
		struct map none = {.arena = &p->scratch};
		struct value *some = any_iteration(p, b, &none);
		more = build2(b, IR_ANDI, some->type, more, some);
	} else {
		skip_empty(p, b, &tile, &more);
	}
	struct map map = compute_tile(p, b, tile);
	fill[TILE] = tile;
	fill[MORE] = more;
	fill[INDEX] = mapped(&map, for_lower(p->loop));
	for (u32 i = 0; i < p->args.len; i++)
		fill[ARGS + i] = mapped(&map, for_init(p->loop, p->args.at[i]));
	for (u32 i = 0; i < f->tile.len; i++)
		fill[ARGS + p->args.len + i] = mapped(&map, f->tile.at[i]);
}

/* Issues the copies that the copy state `fill` describes, into buffer `slot`, and advances `fill` by one iteration of
 * the inner loop, or to the next tile. */
static void copy_and_step(struct plan *p, struct builder *b, struct value **fill, struct value *slot)
{
	struct loop_nest *f = p->flattened;
	struct op *outer = f->outer;
	struct map map = {.arena = &p->scratch};
	map_put(&map, for_index(outer), fill[TILE]);
	map_put(&map, for_index(p->loop), fill[INDEX]);
	for (u32 i = 0; i < p->args.len; i++)
		map_put(&map, for_arg(p->loop, p->args.at[i]), fill[ARGS + i]);
	for (u32 i = 0; i < f->tile.len; i++)
		map_put(&map, f->tile.at[i], fill[ARGS + p->args.len + i]);
	issue_copies(p, b, &map, slot, fill[MORE]);

	u32 n = copy_state_size(p);
	const struct type **types = arena_array(&p->scratch, const struct type *, n);
	for (u32 i = 0; i < n; i++)
		types[i] = fill[i]->type;
	struct value *inside = is_below(b, p->loop, mapped(&map, for_upper(p->loop)), fill[INDEX], 1);
	struct op *branch = build(b, IR_IF, &inside, 1, types, n, 2);
	struct builder stay = builder_at_end(p->ctx, branch->blocks[0]), go = builder_at_end(p->ctx, branch->blocks[1]);
	struct value **next = arena_dup(&p->scratch, fill, n * sizeof *fill);
	next[INDEX] = advance_index(&stay, p->loop, fill[INDEX], 1);
	for (u32 i = 0; i < p->args.len; i++)
		next[ARGS + i] = mapped(&map, for_yielded(p->loop, p->args.at[i]));
	build(&stay, IR_YIELD, next, n, NULL, 0, 0);

	struct value *tile = fill[TILE], *more = fill[MORE];
	advance_tile(p, &go, &tile, &more);
	begin_tile(p, &go, tile, more, next);
	build(&go, IR_YIELD, next, n, NULL, 0, 0);
	for (u32 i = 0; i < n; i++)
		fill[i] = &branch->results[i];
}

/* Wraps the outer loop in a branch that runs if the loop has iterations, so that a first tile exists. */
static void guard_empty_loop(struct plan *p)
{
	struct op *outer = p->flattened->outer;
	VEC(const struct type *) types = {0};
	value_vec inits = {0}, results = {0};
	for (u32 i = 0; i < outer->nresults; i++) {
		vec_push(&p->scratch, &types, outer->results[i].type);
		vec_push(&p->scratch, &inits, for_init(outer, i));
		vec_push(&p->scratch, &results, &outer->results[i]);
	}
	struct builder b = builder_before(p->ctx, outer);
	struct value *any = build_cmpi(&b, CMPI_SLT, for_lower(outer), for_upper(outer));
	struct op *branch = build(&b, IR_IF, &any, 1, types.at, types.len, 2);
	for (u32 i = 0; i < outer->nresults; i++)
		replace_uses(&outer->results[i], &branch->results[i]);
	struct builder yes = builder_at_end(p->ctx, branch->blocks[0]), no = builder_at_end(p->ctx, branch->blocks[1]);
	op_insert_before(outer, build(&yes, IR_YIELD, results.at, results.len, NULL, 0, 0));
	build(&no, IR_YIELD, inits.at, inits.len, NULL, 0, 0);
}

static void begin_flat(struct plan *p)
{
	struct loop_nest *f = p->flattened;
	u32 n = copy_state_size(p), all = n + (u32)p->ahead; /* with the tokens of commit groups */
	value_vec inits = {0};
	make_buffers(p, f->outer);
	guard_empty_loop(p);
	struct builder b = builder_before(p->ctx, f->outer);
	struct value **fill = arena_array(&p->scratch, struct value *, all);
	begin_tile(p, &b, for_lower(f->outer), build_int(&b, type_scalar(p->ctx, DT_I1), 1), fill);
	struct value *zero = build_i32(&b, 0), *ahead = build_i32(&b, p->ahead), *one = build_i32(&b, 1);
	for (u32 i = n; i < all; i++)
		fill[i] = build1(&b, IR_DONE, type_token(p->ctx), NULL);
	struct op *loop = build_for(&b, zero, ahead, one, fill, all);
	struct block *body = loop->blocks[0];
	struct builder in = builder_at_end(p->ctx, body);
	memcpy(fill, body->args + 1, all * sizeof *fill);
	build(&in, IR_YIELD, NULL, 0, NULL, 0, 0); /* the slice's operations are inserted before it */
	in = builder_before(p->ctx, body->last);
	copy_and_step(p, &in, fill, for_index(loop));
	add_token(p, fill + n);
	for (u32 i = 0; i < all; i++) {
		op_add_operand(p->ctx, body->last, fill[i]);
		vec_push(&p->scratch, &inits, &loop->results[i]);
	}
	vec_push(&p->scratch, &inits, zero); /* the slot of the pipeline state */
	f->outer = carry_through(p, f->outer, &inits);
	for (u32 i = 0; i < n; i++)
		carry(p, inits.at[i]);
	carry_copy_tokens(p, inits.at + n);
	carry_pipeline_state(p, (struct pipeline_state){inits.at[all], NULL});
	struct builder after = builder_after(p->ctx, f->outer);
	wait_copies(&after); /* copies past the last tile write zeros to buffers that are not read */
}

static void copy_flat(struct plan *p, struct builder *b)
{
	u32 n = copy_state_size(p);
	struct value **fill = arena_array(&p->scratch, struct value *, n);
	for (u32 i = 0; i < n; i++)
		fill[i] = carried_now(p, i);
	copy_and_step(p, b, fill, p->code->fill.slot);
	for (u32 i = 0; i < n; i++)
		p->code->carried.at[i].next = fill[i];
}

static void end_flat(struct plan *p, struct builder *b)
{
	for (u32 i = 0; i <= p->code->state; i++)
		op_add_operand(p->ctx, p->flattened->outer->blocks[0]->last, carried_last(p, i));
	finish_dots(p, b);
}

const struct stream stream_flat = {begin_flat, copy_flat, end_flat};
