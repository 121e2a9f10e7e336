#include "gpu/smem/global_dependences.h"

#include "ir/graph.h"
#include "ir/inline_asm.h"
#include "layout/conversion.h"
#include "analysis/alias.h"
#include "analysis/axis.h"
#include "analysis/index_forms.h"
#include "analysis/ranges.h"
#include "analysis/same_addresses.h"
#include "ir/scalar.h"
#include "gpu/layout/memory_access.h"

bool touches_memory(const struct op *o)
{
	return o->code == IR_LOAD || o->code == IR_ASYNC_COPY || op_is_tensor_copy(o) || writes_memory(o);
}

bool may_write(const struct op *o)
{
	return !o || op_is_opaque(o) || writes_memory(o);
}

/* True if v is invariant in the loop (NULL: no loop). */
static bool is_outside(const struct value *v, const struct op *loop)
{
	bool yes = true;
	for (u32 k = 0; loop && k < loop->nblocks; k++)
		yes &= value_defined_outside(v, loop->blocks[k]);
	return yes;
}

/* --- threads of an access ---------------------------------------------------------------------------------------- */

static bool is_scalar(const struct op *o)
{
	return !type_is_tensor(operand(o, 0)->type);
}

/* True if several warps hold an element of the access: either all of them execute it, or one of them. */
static bool is_shared_by_warps(const struct pass_state *s, const struct op *o)
{
	u32 lanes = 0, warps = 0;
	if (s->num_warps == 1)
		return false;
	if (is_scalar(o))
		return true;
	layout_redundant(operand(o, 0)->type->layout, &lanes, &warps);
	return warps;
}

/* True if the same thread accesses an address in both operations, and no other thread does. A scalar is written by one
 * thread. */
static bool same_threads(struct pass_state *s, const struct op *a, const struct op *b)
{
	const struct value *x = operand(a, 0), *y = operand(b, 0);
	if (is_scalar(a) && is_scalar(b) && writes_memory(a) && writes_memory(b))
		return true;
	if (is_scalar(a) != is_scalar(b) || !same_addresses(x, y))
		return false;
	if (pointee_bytes(x->type) != pointee_bytes(y->type) ||
	    (!is_scalar(a) && (x->type->layout != y->type->layout || !are_each_once(s, x))))
		return false;
	return (writes_memory(a) && writes_memory(b)) || !is_shared_by_warps(s, a);
}

/* --- extents of accesses ---------------------------------------------------------------------------------------- */

/* Byte offsets from the base to the first and the last element of an access. */
struct extent {
	struct affine lo, hi;
	i64 bytes; /* of an element */
	bool known;
};

static bool add_offset(const struct pass_state *s, const struct value *offset, i64 bytes, struct extent *e)
{
	const struct range *r = value_range(s->ranges, offset);
	if (r->wraps || !r->lo->known || !r->hi->known)
		return false;
	struct affine lo = affine_scaled(r->lo, bytes), hi = affine_scaled(r->hi, bytes);
	e->lo = affine_sum(&e->lo, &lo);
	e->hi = affine_sum(&e->hi, &hi);
	return e->lo.known && e->hi.known;
}

static bool find_extent(const struct pass_state *s, const struct op *o, struct extent *e)
{
	const struct value *v = operand(o, 0);
	*e = (struct extent){affine_constant(0), affine_constant(0), (i64)pointee_bytes(v->type), false};
	for (; v->def; v = operand(v->def, 0))
		if (!keeps_elements(v->def) &&
		    (v->def->code != IR_ADDPTR || !add_offset(s, operand(v->def, 1), e->bytes, e)))
			return false;
	return !v->block->parent; /* a parameter; pointers that a loop carries may be anywhere */
}

static const struct extent *extent_of(struct access_order *w, const struct op *o)
{
	struct extent *e = map_get(&w->extents, o);
	if (e)
		return e;
	e = arena_new(w->extents.arena, struct extent);
	e->known = find_extent(w->s, o, e);
	map_put(&w->extents, o, e);
	return e;
}

/* True if every term is invariant in the loop. */
static bool is_fixed(const struct affine *a, const struct op *loop)
{
	for (i32 i = 0; i < a->n; i++)
		if (!is_outside(a->term[i].scalar, loop))
			return false;
	return true;
}

/* Least and greatest distance in bytes from an element of `a` to an element of `b`, in the same iteration of every loop
 * around both. False if unknown, or if the distance varies in `loop` (or NULL). */
static bool distances(struct pass_state *s, const struct extent *a, const struct extent *b, const struct op *loop,
		      i64 *least, i64 *most)
{
	struct affine lo = affine_difference(&b->lo, &a->hi), hi = affine_difference(&b->hi, &a->lo);
	if (!lo.known || !hi.known || !is_fixed(&lo, loop) || !is_fixed(&hi, loop))
		return false;
	i64 unused;
	return affine_interval(s->ranges, &lo, NULL, least, &unused) &&
	       affine_interval(s->ranges, &hi, NULL, &unused, most);
}

/* The bytes by which an iteration of the loop moves the access. False if not all elements move by the same amount. */
static bool find_step(const struct extent *e, const struct op *loop, i64 *step)
{
	struct affine lo = e->lo, hi = e->hi;
	const struct value *index = loop->code == IR_FOR ? for_index(loop) : NULL;
	i64 by;
	if (!index || !value_const_int(for_step(loop), &by))
		return false;
	*step = affine_take(&lo, index);
	return *step == affine_take(&hi, index) && is_fixed(&lo, loop) && is_fixed(&hi, loop) &&
	       !__builtin_mul_overflow(*step, by, step);
}

/* True if a, perhaps of an earlier iteration, and b never access the same byte. */
static bool are_apart(struct pass_state *s, const struct pending_access *t, const struct extent *a,
		      const struct extent *b)
{
	i64 least, most, step = 0, step_b = 0;
	if (t->loop && (!find_step(a, t->loop, &step) || !find_step(b, t->loop, &step_b) || step != step_b))
		return false;
	if (!distances(s, a, b, t->loop, &least, &most) || __builtin_add_overflow(least, MAX(step, 0), &least) ||
	    __builtin_add_overflow(most, MIN(step, 0), &most))
		return false;
	return (least >= a->bytes && step >= 0) || (most <= -b->bytes && step <= 0);
}

/* --- identical or disjoint tiles -------------------------------------------------------------------------------- */

/* The offsets of an address: an offset that varies, in the loop or between the two accesses, and a tile of invariant
 * offsets, or NULL. */
struct sum {
	const struct value *changes, *tile;
};

/* True if the address of o contains the offset. */
static bool adds_offset(const struct op *o, const struct value *offset)
{
	const struct value *v = operand(o, 0);
	while (v->def && v->def->noperands && (v->def->code != IR_ADDPTR || operand(v->def, 1) != offset))
		v = operand(v->def, 0);
	return def_if(v, IR_ADDPTR);
}

/* Splits the offsets of o's address. An offset that both accesses add is equal in both if it is invariant in the loop
 * (NULL: always). False if the address has another form. */
static bool find_sum(const struct op *o, const struct op *other, const struct op *loop, struct sum *out)
{
	*out = (struct sum){0};
	for (const struct value *v = operand(o, 0); v->def; v = operand(v->def, 0)) {
		if (keeps_elements(v->def))
			continue;
		if (v->def->code != IR_ADDPTR)
			return false;
		const struct value *offset = operand(v->def, 1), **part = &out->changes;
		bool same = adds_offset(other, offset) && is_outside(offset, loop);
		if (same && !type_is_tensor(offset->type))
			continue; /* moves both by the same amount */
		if (same)
			part = &out->tile;
		if (*part)
			return false;
		*part = offset;
	}
	return out->changes && type_is_tensor(out->changes->type) == !out->tile;
}

/* True if x and y differ by the same number in all elements. `loop`: x is from an earlier iteration. */
static bool same_pattern(const struct value *x, const struct value *y, const struct op *loop)
{
	struct pair_walk w = {0};
	struct value_pair at;
	visit_pair(&w, x, y);
	while (next_pair(&w, &at)) {
		const struct op *a = at.x->def, *b = at.y->def;
		if (at.x == at.y && is_outside(at.x, loop))
			continue;
		if (!a || !b || a->code != b->code || at.x->type != at.y->type ||
		    memcmp(a->attr, b->attr, sizeof a->attr))
			return end_pair_walk(&w, false);
		if (a->code == IR_SPLAT || a->code == IR_CONSTANT || a->code == IR_MAKE_RANGE)
			continue;
		if (a->code != IR_ADDI && !keeps_elements(a))
			return end_pair_walk(&w, false);
		for (u32 i = 0; i < a->noperands; i++)
			visit_pair(&w, operand(a, i), operand(b, i));
	}
	return true;
}

static bool is_multiple(const struct pass_state *s, const struct affine *a, i64 of)
{
	for (i32 i = 0; i < a->n; i++) {
		i64 product;
		if (__builtin_mul_overflow(a->term[i].coef, axis_of(s->axis, a->term[i].scalar)->divisibility[0],
					   &product) ||
		    product % of)
			return false;
	}
	return a->known;
}

/* True if the tile contains all numbers from its least to its greatest, each once. */
static bool is_whole(const struct pass_state *s, const struct value *v)
{
	const struct range *r = value_range(s->ranges, v);
	struct affine width = affine_difference(r->hi, r->lo);
	bool once = true;
	for (i32 d = 0; d < v->type->rank; d++)
		once &= v->type->shape[d] == 1 || axis_of(s->axis, v)->constancy[d] == 1;
	return once && width.known && !width.n && width.constant == type_numel(v->type) - 1;
}

/* True if both access tiles of memory that begin at multiples of their length and have the same layout. Then the tiles
 * are identical or disjoint, even if a sum wraps. */
static bool are_aligned(struct pass_state *s, const struct pending_access *t, const struct op *o)
{
	const struct value *p = operand(t->op, 0), *q = operand(o, 0);
	if (!type_is_tensor(p->type) || !type_is_tensor(q->type) || p->type->layout != q->type->layout ||
	    type_numel(p->type) != type_numel(q->type) || pointee_bytes(p->type) != pointee_bytes(q->type))
		return false;
	struct sum x, y;
	if (!find_sum(t->op, o, t->loop, &x) || !find_sum(o, t->op, t->loop, &y) ||
	    x.changes->type != y.changes->type || x.tile != y.tile)
		return false;
	if (x.tile ? type_numel(x.tile->type) != type_numel(p->type) || !is_whole(s, x.tile)
		   : type_numel(x.changes->type) != type_numel(p->type) ||
			     !same_pattern(x.changes, y.changes, t->loop) || !is_whole(s, x.changes) ||
			     !is_whole(s, y.changes))
		return false;
	i64 length = type_numel(p->type);
	const struct affine *a = value_range(s->ranges, x.changes)->lo, *b = value_range(s->ranges, y.changes)->lo;
	i64 shift = 0;
	return !__builtin_sub_overflow(a->constant, b->constant, &shift) && is_multiple(s, a, length) &&
	       is_multiple(s, b, length) && shift % length == 0;
}

/* --- earlier iterations ---------------------------------------------------------------------------------------- */

/* True if an address changes between iterations. Then the same operation in an earlier iteration has another
 * address. */
static bool moves(const struct pending_access *t, const struct op *o)
{
	return !is_outside(operand(t->op, 0), t->loop) || !is_outside(operand(o, 0), t->loop);
}

/* --- barriers ---------------------------------------------------------------------------------------------------- */

/* True if o is a release: it tells other programs that the accesses before it are done. */
static bool releases(const struct op *o)
{
	enum mem_sem sem = memory_order_of(o);
	return (sem == SEM_RELEASE || sem == SEM_ACQ_REL) && is_scalar(o);
}

/* True for atomic updates of one kind with unused results: they give the same in any order. */
static bool commute(const struct op *a, const struct op *b)
{
	return a->code == IR_ATOMIC_RMW && b->code == IR_ATOMIC_RMW && a->attr[ATTR_RMW] == b->attr[ATTR_RMW] &&
	       a->attr[ATTR_RMW] != RMW_EXCH && value_unused(result(a)) && value_unused(result(b));
}

/* True if the two accesses are ordered or disjoint, provided that their bases are the same address. */
static bool is_fine_if_equal(struct access_order *w, const struct pending_access *t, const struct op *o)
{
	const struct op *a = t->op;
	bool by_one = is_scalar(a) && is_scalar(o) && writes_memory(a) && writes_memory(o);
	if ((by_one || !moves(t, o)) && same_threads(w->s, a, o))
		return true;
	const struct extent *e = extent_of(w, a), *f = extent_of(w, o);
	if (e->known && f->known && are_apart(w->s, t, e, f))
		return true;
	return are_aligned(w->s, t, o) && ((writes_memory(a) && writes_memory(o)) || !is_shared_by_warps(w->s, a));
}

/* Tiles of a GEMM's result, which a loop over tiles stores, are assumed to be disjoint (docs/guide/language.md says
 * so). Row strides are known only at launch, and a barrier in each tile would stop all warps from starting the next
 * tile while one of them still stores. */
static bool are_tiles_of_products(const struct pending_access *t, const struct op *o)
{
	return t->of_products && t->op->code == IR_STORE && o->code == IR_STORE;
}

bool must_meet(struct access_order *w, const struct pending_access *before, const struct op *o)
{
	struct pass_state *s = w->s;
	const struct op *a = before->op;
	if (!a || op_is_opaque(a))
		return true;
	bool by_one = is_scalar(a) && writes_memory(a); /* by the thread that executes o, if o is a release */
	if (releases(o) && !by_one && s->num_warps > 1)
		return true;
	if ((!writes_memory(a) && !writes_memory(o)) || commute(a, o) || are_tiles_of_products(before, o))
		return false;
	const struct value *p = operand(a, 0), *q = operand(o, 0), *x = pointer_base(p), *y = pointer_base(q);
	bool by_hardware = op_is_tensor_copy(a) || op_is_tensor_copy(o);
	bool fine = !by_hardware && is_fine_if_equal(w, before, o);
	if ((p == q && !by_hardware) || (x && x == y))
		return !fine;
	return may_overlap(s, x, y, fine);
}
