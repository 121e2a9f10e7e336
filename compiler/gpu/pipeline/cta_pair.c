/* CTA pairs with multicast: two neighbouring CTAs, launched as a cluster, share TMA tiles. "Block" below means CTA.
 *
 * Where neighbouring programs read the same TMA tile of an operand, each block issues the copy of one half of it, which
 * is multicast to both blocks: so the tile is read from L2 once. Each block computes from both programs' numbers
 * (program_id) whether both read the same TMA tile, anew for each tile of the result. If they do not, or if there is no
 * other block, the block copies its TMA tiles for itself.
 *
 *     producer                                           consumers
 *     same = both programs read the same TMA tile
 *     wait for "empty", of both blocks                   wait for "full"
 *     expect the bytes of whole TMA tiles                dots
 *     if same: copy half of the tile, multicast          arrive at "empty" of both blocks
 *     else: copy the whole tile
 *
 * Both blocks use the multi-buffers equally often: the loops' bounds are equal in all programs. Where a loop over tiles
 * begins with the program's number, two blocks are no pair if one has a tile less than the other. Neither block begins
 * before the other's mbarriers are initialized, nor ends before the other has arrived at them for the last time.
 *
 * Where rows of a TMA tile in memory begin in the middle of a 32-byte sector, 128 bytes of a row are in five sectors of
 * two cache lines. The bandwidth of L2 is the limit then, and halving the traffic of one operand gains. Where rows
 * begin at a sector boundary, pairs gain nothing, and are not used. */
#include "transform/program_order.h"
#include "gpu/pipeline/expand.h"

/* How a value depends on the program's number, along axis 0. */
enum relation {
	SAME,     /* does not depend on the number: equal for all programs */
	MOSTLY,   /* depends on quotients of the number only: equal for most neighbouring programs */
	OTHER,    /* differs from program to program */
	NOT_KNOWN /* another block cannot compute it */
};

struct pair {
	struct plan *p;
	const struct op
		*tile_loop;   /* the outermost loop, over tiles or programs, if it begins at program_id(0); or NULL */
	struct map relations; /* operation → enum relation + 1 */
	/* to clone a value's computation with program_id(0) + delta (NULL: + 0) instead of program_id(0): */
	struct builder *b;
	struct map *map, made;
	struct value *delta;
};

static bool is_block(const struct value *v)
{
	return v->def && v->def->code == IR_PROGRAM_ID && v->def->attr[ATTR_AXIS] == 0;
}

static struct pair pair_of(struct plan *p, struct builder *b, struct map *map)
{
	const struct op *outermost = p->producer->path.at[0];
	return (struct pair){.p = p,
			     .tile_loop = is_block(for_lower(outermost)) ? outermost : NULL,
			     .relations.arena = &p->scratch,
			     .b = b,
			     .map = map,
			     .made.arena = &p->scratch};
}

/* True if v is the index of a loop of the nest that the producer runs a copy of. */
static bool is_index(const struct plan *p, const struct value *v)
{
	bool yes = false;
	for (u32 i = 0; i < p->producer->path.len; i++)
		yes |= v == for_index(p->producer->path.at[i]);
	return yes;
}

static bool is_number(const struct pair *q, const struct value *v)
{
	return is_block(v) || (q->tile_loop && v == for_index(q->tile_loop));
}

static enum relation relation_of(struct pair *q, const struct value *v)
{
	const struct op *o = v->def;
	if (is_number(q, v))
		return OTHER;
	if (!o)
		return !v->block->parent || is_index(q->p, v) ? SAME : NOT_KNOWN;
	uintptr_t known = (uintptr_t)map_get(&q->relations, o);
	if (known)
		return (enum relation)(known - 1);
	enum relation r = op_has(o, PURE) && !o->nblocks ? SAME : NOT_KNOWN;
	for (u32 i = 0; i < o->noperands; i++) {
		enum relation of = relation_of(q, operand(o, i));
		bool quotient = o->code == IR_DIVSI || o->code == IR_DIVUI;
		r = MAX(r, quotient && of == OTHER ? MOSTLY : of);
	}
	map_put(&q->relations, o, (void *)(uintptr_t)(r + 1));
	return r;
}

static struct value *compute(struct pair *q, struct value *v)
{
	struct value *known = map_get(&q->made, v);
	if (known)
		return known;
	if (q->delta && is_number(q, v)) {
		known = build2(q->b, IR_ADDI, v->type, mapped(q->map, v), q->delta);
	} else if (!v->def || (q->delta && relation_of(q, v) == SAME)) {
		known = mapped(q->map, v);
	} else {
		struct map in = {.arena = &q->p->scratch};
		for (u32 i = 0; i < v->def->noperands; i++)
			map_put(&in, operand(v->def, i), compute(q, operand(v->def, i)));
		known = result(op_clone(q->b, v->def, &in));
	}
	map_put(&q->made, v, known);
	return known;
}

/* Stores to `out` the values that determine where the TMA tile begins, besides the loop's index. Returns their
 * number. */
static u32 starts_of(const struct tma_tile *box, struct value **out)
{
	u32 n = 0;
	for (int d = 0; d < 2; d++)
		if (box->start[d])
			out[n++] = tma_tile_start(box->start[d]);
	if (box->begin)
		out[n++] = box->begin;
	return n;
}

/* True if both blocks may read the same TMA tile i, and it can be split in halves. */
static bool may_share(struct pair *q, u32 i)
{
	const struct plan *p = q->p;
	const struct tma_tile *box = &p->tiles.at[i];
	const struct type *t = result(p->loads.at[i])->type;
	struct value *starts[3];
	u32 n = box->tensor ? starts_of(box, starts) : 0;
	bool may = box->tensor && t->shape[1 - box->along] >= 2 * SWIZZLE_ROWS;
	for (u32 k = 0; k < n && may; k++) {
		bool before = value_defined_outside(starts[k], p->loop->blocks[0]);
		may = relation_of(q, starts[k]) <= (before ? MOSTLY : SAME);
	}
	for (int d = 0; d < 2 && may; d++)
		may = !box->index[d] || relation_of(q, box->index[d]) == SAME;
	return may;
}

/* True if a row of TMA tile i may begin in the middle of a sector of memory. */
static bool begins_in_sector(const struct plan *p, u32 i)
{
	const struct tma_tile *box = &p->tiles.at[i];
	u64 bytes = (u64)box->distance.times;
	for (int k = 0; k < box->distance.nparams; k++)
		bytes *= (u64)MAX(p->s->k->params[box->distance.params[k]].divisibility, 1);
	return result(p->loads.at[i])->type->rank == 2 && bytes % SECTOR_BYTES;
}

/* True if all programs run the same iterations of all loops, except that a loop over tiles begins at the program's own
 * number. */
static bool run_in_step(struct pair *q)
{
	const struct plan *p = q->p;
	bool same = relation_of(q, p->start) == SAME && relation_of(q, p->end) == SAME;
	for (u32 i = 0; i < p->producer->path.len; i++)
		for (u32 k = q->tile_loop == p->producer->path.at[i]; k < FOR_INITS; k++)
			same = same && relation_of(q, operand(p->producer->path.at[i], k)) == SAME;
	return same;
}

static bool may_pair(struct pair *q)
{
	const struct plan *p = q->p;
	const struct kernel *k = p->s->k;
	/* false: group_programs (transform/program_order.c) will renumber the programs after this */
	bool numbered = k->cuda.persistent || !rows_in_group(p->s, p->s->options.grid == GRID_ROWS);
	bool gain = false, any = false;
	for (u32 i = 0; i < p->tiles.len; i++) {
		gain |= begins_in_sector(p, i);
		any = any || may_share(q, i);
	}
	return gain && any && numbered && !is_foreign(k) && p->producer->path.at[0]->block == k->body &&
	       !p->next_chained && run_in_step(q);
}

/* i1: both blocks of the pair run the same number of iterations of the loop q->tile_loop. Not so if a
 * last tile is left for the block with the even number only. */
static struct value *equally_many(struct pair *q)
{
	struct builder *b = q->b;
	const struct type *t = for_lower(q->tile_loop)->type;
	struct value *mask = build_i32(b, -2), *even = build2(b, IR_ANDI, t, compute(q, for_lower(q->tile_loop)), mask);
	struct value *one = build_i32(b, 1), *last = build2(b, IR_SUBI, t, compute(q, for_upper(q->tile_loop)), one);
	struct value *step = compute(q, for_step(q->tile_loop));
	struct value *left = build2(b, IR_REMSI, t, build2(b, IR_SUBI, t, last, even), step);
	return build_cmpi(b, CMPI_NE, left, build_i32(b, 0));
}

void decide_pair(struct plan *p, struct op *at)
{
	struct builder b = builder_before(p->ctx, at);
	struct map none = {.arena = &p->scratch};
	struct pair q = pair_of(p, &b, &none);
	if (!may_pair(&q))
		return;
	p->code->same_tile = arena_array(&p->scratch, struct value *, p->loads.len);
	struct value *size = build1(&b, IR_CLUSTER_SIZE, type_scalar(p->ctx, DT_I32), NULL);
	p->code->in_pair = build_cmpi(&b, CMPI_EQ, size, build_i32(&b, 2));
	if (q.tile_loop)
		p->code->in_pair = build2(&b, IR_ANDI, p->code->in_pair->type, p->code->in_pair, equally_many(&q));
	p->s->k->cuda.pairs = true;
}

/* v; if it is a pointer, its address as an integer. */
static struct value *build_number(struct builder *b, struct value *v)
{
	return v->type->kind == TY_PTR ? build1(b, IR_PTR_TO_INT, type_scalar(b->ctx, DT_I64), v) : v;
}

/* The other block's number minus this block's: 1 or -1; 0 if there is no other block. */
static struct value *delta_of(const struct plan *p, struct builder *b)
{
	const struct type *t = type_scalar(p->ctx, DT_I32);
	struct value *bit = build_i32(b, 1), *odd = build2(b, IR_ANDI, t, build1(b, IR_PROGRAM_ID, t, NULL), bit);
	struct value *twice = build2(b, IR_ADDI, t, odd, odd), *delta = build2(b, IR_SUBI, t, build_i32(b, 1), twice);
	return build3(b, IR_SELECT, t, p->code->in_pair, delta, build_i32(b, 0));
}

void compare_tensor_maps(struct plan *p, struct builder *b, struct map *map)
{
	struct pair q = pair_of(p, b, map);
	q.delta = delta_of(p, b);
	for (u32 i = 0; i < p->loads.len; i++) {
		struct value *starts[3];
		if (!may_share(&q, i))
			continue;
		p->code->same_tile[i] = p->code->in_pair;
		for (u32 k = 0, n = starts_of(&p->tiles.at[i], starts); k < n; k++) {
			if (relation_of(&q, starts[k]) == SAME)
				continue;
			struct value *other = build_number(b, compute(&q, starts[k]));
			struct value *same = build_cmpi(b, CMPI_EQ, build_number(b, mapped(map, starts[k])), other);
			p->code->same_tile[i] = build2(b, IR_ANDI, same->type, p->code->same_tile[i], same);
		}
	}
}

void end_pair(struct plan *p)
{
	struct builder b = builder_before(p->ctx, p->s->k->body->last);
	build(&b, IR_BARRIER, NULL, 0, NULL, 0, 0)->attr[ATTR_CLUSTER] = true;
}
