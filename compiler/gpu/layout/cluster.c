/* Clusters: several blocks run one program if its tiles do not fit the registers of one block.
 *
 * A block has 64 K registers, so it cannot hold a row of 131,072 fp32 values. From sm_90 on, the blocks of a cluster
 * access each other's shared memory. The tiles of such a program are distributed over the warps of all its blocks, and
 * reductions exchange their partial results through the shared memory of all blocks. This is done for kernels in which
 * only reductions move data between threads: one-dimensional tiles of one size, accessed contiguously, so that all have
 * one layout. */
#include "support/thresholds.h"
#include "analysis/axis.h"
#include "analysis/register_pressure.h"
#include "gpu/layout/assign_layouts.h"

enum {
	MAX_BLOCKS = 8,          /* the largest cluster that every device supports without an attribute */
	MAX_CLUSTER_WARPS = 64,
};

struct survey {
	struct pass_state *s;
	const struct type *shape;  /* of the tiles */
	const struct op *widest;   /* the first operation on a tile */
	bool fits_pattern, has_dots; /* dots: dot_layouts.c checks whether accumulators fit */
};

static bool moves_nothing(const struct op *o)
{
	switch (o->code) {
	case IR_CONSTANT:
	case IR_MAKE_RANGE:
	case IR_SPLAT:
	case IR_PROGRAM_ID:
	case IR_NUM_PROGRAMS:
	case IR_ASSUME:
	case IR_BARRIER:
	case IR_STORE:
	case IR_REDUCE: return true;
	case IR_LOAD: return !o->attr[ATTR_VOLATILE];
	case IR_ATOMIC_RMW:
	case IR_ATOMIC_CAS: return value_unused(&o->results[0]);
	default: return op_has(o, ELEM) || op_has(o, END) || op_is_control(o);
	}
}

static void survey_type(struct survey *v, const struct type *t, const struct op *o)
{
	if (!type_is_tensor(t))
		return;
	if (!v->shape) {
		v->shape = t;
		v->widest = o;
	}
	v->fits_pattern &= t->rank == 1 && t->shape[0] == v->shape->shape[0];
}

static void survey_op(struct op *o, void *arg)
{
	struct survey *v = arg;
	v->fits_pattern &= moves_nothing(o);
	v->has_dots |= o->code == IR_DOT;
	for (u32 i = 0; i < o->noperands; i++)
		survey_type(v, operand(o, i)->type, o);
	for (u32 i = 0; i < o->nresults; i++)
		survey_type(v, o->results[i].type, o);
	if (is_memory_op(o) && type_is_tensor(operand(o, 0)->type))
		v->fits_pattern &= axis_of(v->s->axis, operand(o, 0))->contiguity[0] > 1;
}

/* --- register pressure ------------------------------------------------------------------------------------------ */

struct pressure {
	struct placer p; /* for is_free */
	i64 *change; /* change of the live bytes at each operation, in program order */
	bool *holds;  /* at each operation: all elements of the live tiles are in registers at the same time */
	bool across;  /* count only tiles that are live at such operations */
};

/* True if the only use of the tile is a reduction, perhaps through elementwise operations. Its elements are then
 * combined as they are loaded, and never all live. */
static bool consumed(const struct value *v)
{
	const struct op *o = v->def;
	while (o && v->uses) {
		const struct op *user = v->uses->user;
		for (const struct use *u = v->uses; u; u = u->next)
			if (u->user != user)
				return false;
		if (user->block != o->block)
			return false;
		if (user->code == IR_REDUCE)
			return true;
		if (!op_has(user, ELEM) || user->nresults != 1)
			return false;
		o = user;
		v = &user->results[0];
	}
	return false;
}

/* A tile is live from its definition to its last use, and through the whole of a loop that uses it. */
static void add_value(struct pressure *q, struct value *v, u32 begin, const struct block *assigned)
{
	if (!type_is_tensor(v->type) || is_free(&q->p, v) || consumed(v))
		return;
	i64 bytes = type_numel(v->type) * MAX(type_elem_bits(v->type) / 8, 1);
	q->change[begin] += bytes;
	q->change[last_use(v, assigned, begin)] -= bytes; /* the result of its last use may reuse its registers */
}

/* True if o waits for other threads, or repeats. Elementwise operations before and after it cannot be done element by
 * element across it, so that the tiles that are live there take all their registers. */
static bool needs_all_elements(const struct op *o)
{
	return op_has(o, SYNC) || op_is_loop(o);
}

static void add_block(struct pressure *q, struct block *b)
{
	for (u32 i = 0; i < b->nargs && b->first; i++)
		add_value(q, b->args[i], b->first->mark, b);
	for (struct op *o = b->first; o; o = o->next) {
		q->holds[o->mark] = !q->across || needs_all_elements(o);
		for (u32 i = 0; i < o->nresults; i++)
			add_value(q, &o->results[i], last_mark(o), b);
		for (u32 i = 0; i < o->nblocks; i++)
			if (o->code != IR_REDUCE)
				add_block(q, o->blocks[i]);
	}
}

/* The most bytes of tiles that are live at once, in program order; across: at an operation that needs all elements. */
static i64 tile_bytes(struct pass_state *s, bool across)
{
	struct pressure q = {.p = {.s = s}, .across = across};
	i64 now = 0, most = 0;
	q.p.free.arena = &q.p.scratch;
	u32 n = number_ops(s->k->body, 0);
	q.change = arena_array(&q.p.scratch, i64, n);
	q.holds = arena_array(&q.p.scratch, bool, n);
	add_block(&q, s->k->body);
	for (u32 i = 0; i < n; i++) {
		now += q.change[i];
		most = q.holds[i] ? MAX(most, now) : most;
	}
	arena_free(&q.p.scratch);
	return most;
}

/* True if `bytes` of tiles fit the registers of `blocks` blocks, with `together` blocks on a multiprocessor at once. */
static bool fits(const struct pass_state *s, i64 bytes, int num_warps, int blocks, int together)
{
	i64 most = registers_for_blocks(s->target, num_warps, together) - REGISTERS_BESIDE_ROW;
	return bytes <= 32 * num_warps * blocks * most * 4;
}

static bool can_double(const struct survey *v, int warps, int blocks)
{
	return blocks < MAX_BLOCKS && blocks * warps < MAX_CLUSTER_WARPS && v->shape->shape[0] > 32 * warps * blocks;
}

void pass_cluster(struct pass_state *s)
{
	struct survey v = {.s = s, .fits_pattern = true};
	int blocks = 1, warps = s->num_warps;
	walk(s->k->body, survey_op, &v);
	if (!v.shape || v.has_dots)
		return;
	i64 held = tile_bytes(s, true), live = tile_bytes(s, false);
	if (!held)
		held = live; /* the blocks of a cluster need not wait for each other, so that they cost nothing */
	/* while one block waits for the others of its cluster, another block should have work */
	if (v.fits_pattern && s->target->has_clusters && !fits(s, held, warps, 1, 1))
		while (!fits(s, held, warps, blocks, 2) && can_double(&v, warps, blocks))
			blocks *= 2;
	if (s->remarks && blocks > 1)
		diag(s->diags, R_CLUSTER, v.widest->loc, (long long)held, warps, blocks);
	s->k->cuda.cluster = blocks;
	s->k->num_warps = s->num_warps = warps * blocks;
}

void warn_of_spills(struct pass_state *s)
{
	struct survey v = {.s = s};
	int blocks = s->k->cuda.cluster;
	walk(s->k->body, survey_op, &v);
	if (!v.shape || v.has_dots)
		return;
	i64 live = tile_bytes(s, false);
	if (!fits(s, live, s->num_warps / blocks, blocks, 1))
		diag(s->diags, W_SPILLS, v.widest->loc, (long long)live, s->num_warps);
}
