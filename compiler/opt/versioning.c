/* Versioning: a fast path for programs in the interior of a matrix.
 *
 * Kernels keep rows and columns inside with `(start + arange) % n`, or a mask `start + arange < n`. Where n may be
 * anything, neighbours of such a tile may be far apart, or masked, and a load with them as columns of a row moves one
 * element at a time. But for all programs except those at the edge x % n == x, and the mask is true. So the rest of the
 * block gets two versions: for 0 <= start and start + length <= n, one with the remainder replaced by its operand and
 * the mask by true; else one as written. Only where elements of a dot's operand that are smaller than a word are
 * contiguous along the tile; wider elements gain nothing. */
#include "base/tuning.h"
#include "opt/axis.h"
#include "opt/ranges.h"
#include "opt/pass.h"

static bool feeds_dot(const struct value *v, u32 walk)
{
	for (const struct use *u = first_visit(v, walk) ? v->uses : NULL; u; u = u->next)
		if (u->user->code == IR_DOT
			    ? u - u->user->operands < 2
			    : (op_has(u->user, ELEM) || u->user->code == IR_TRANS) && feeds_dot(result(u->user), walk))
			return true;
	return false;
}

/* Do neighbours of v address neighbouring small elements of a dot's operand? */
static bool runs_along_operand(const struct pass_state *s, const struct value *v, u32 walk)
{
	for (const struct use *u = first_visit(v, walk) ? v->uses : NULL; u; u = u->next) {
		const struct op *o = u->user;
		u32 i = (u32)(u - o->operands);
		const struct value *next = NULL;
		switch (o->code) {
		case IR_LOAD:
			if (i == 0 && type_elem_bits(result(o)->type) < 32 && feeds_dot(result(o), begin_walk(s->ctx)))
				return true;
			break;
		case IR_ADDI:
		case IR_ADDPTR:
		case IR_EXTSI:
		case IR_EXPAND_DIMS:
		case IR_BROADCAST:
		case IR_TRANS: next = result(o); break;
		case IR_FOR: next = i >= FOR_INITS ? for_arg(o, i - FOR_INITS) : NULL; break;
		default: break;
		}
		if (next && runs_along_operand(s, next, walk))
			return true;
	}
	return false;
}

/* Does v, as (part of) a load's mask, split runs of a dot's operand that would be whole without it? `alone`: v before
 * its conjunction with other masks. */
static bool splits_runs(const struct pass_state *s, const struct value *v, const struct value *alone, u32 walk)
{
	for (const struct use *u = first_visit(v, walk) ? v->uses : NULL; u; u = u->next) {
		const struct op *o = u->user;
		int unit;
		if (o->code == IR_ANDI && splits_runs(s, result(o), alone ? alone : v, walk))
			return true;
		if ((o->code == IR_EXPAND_DIMS || o->code == IR_BROADCAST) && !alone &&
		    splits_runs(s, result(o), NULL, walk))
			return true;
		if (o->code != IR_LOAD || u - o->operands != 1 || type_elem_bits(result(o)->type) >= 32 ||
		    !feeds_dot(result(o), begin_walk(s->ctx)))
			continue;
		for (int d = 0; d < v->type->rank; d++)
			if (axis_run_length(s->axis, operand(o, 0), NULL, d, &unit) >
			    axis_of(s->axis, alone ? alone : v)->constancy[d])
				return true;
	}
	return false;
}

static bool versioning_pays(const struct pass_state *s, const struct op *o)
{
	struct row r;
	bool compares = o->code == IR_CMPI && o->attr[ATTR_PREDICATE] == CMPI_SLT;
	if ((o->code != IR_REMSI && !compares) || !type_is_tensor(result(o)->type) ||
	    type_elem_bits(operand(o, 0)->type) != 32 || !row_of(operand(o, 0), &r) || !def_if(operand(o, 1), IR_SPLAT))
		return false;
	if (compares)
		return splits_runs(s, result(o), NULL, begin_walk(s->ctx));
	return axis_of(s->axis, result(o))->contiguity[0] < 8 && r.last - r.first >= 8 &&
	       runs_along_operand(s, result(o), begin_walk(s->ctx));
}

/* 0 <= row (of remainders) and row < n, computed in 64 bits, where it cannot wrap. */
static struct value *inside_condition(struct builder *b, const struct op *o)
{
	const struct type *t = type_scalar(b->ctx, DT_I64);
	struct row r;
	row_of(operand(o, 0), &r);
	struct value *start = r.start ? build1(b, IR_EXTSI, t, r.start) : build_int(b, t, 0);
	struct value *n = build1(b, IR_EXTSI, t, operand(operand(o, 1)->def, 0));
	struct value *high = build_cmpi(b, CMPI_SLT, build2(b, IR_ADDI, t, start, build_int(b, t, r.last)), n);
	if (o->code == IR_CMPI)
		return high;
	struct value *low =
		build_cmpi(b, CMPI_SGE, build2(b, IR_ADDI, t, start, build_int(b, t, r.first)), build_int(b, t, 0));
	return build2(b, IR_ANDI, low->type, low, high);
}

/* Is v defined before `at`, in its block or outside? */
static bool is_defined_before(const struct value *v, const struct op *at)
{
	if (!v->def || v->def->block != at->block)
		return true;
	for (const struct op *o = at->prev; o; o = o->prev)
		if (o == v->def)
			return true;
	return false;
}

static u32 count_ops(const struct op *o)
{
	u32 n = 0;
	for (; o; o = o->next) {
		n++;
		for (u32 i = 0; i < o->nblocks; i++)
			n += count_ops(o->blocks[i]->first);
	}
	return n;
}

/* The block from `first` on becomes an `if`. */
static void split_block(struct pass_state *s, struct op *first, struct value *inside, const struct map *picked)
{
	struct op *end = first->block->last;
	struct arena *a = s->ctx->arena;
	struct builder b = builder_before(s->ctx, first);
	const struct type **types = arena_array(a, const struct type *, end->noperands + 1);
	struct value **values = arena_array(a, struct value *, end->noperands + 1),
		     **copies = arena_array(a, struct value *, end->noperands + 1);
	for (u32 i = 0; i < end->noperands; i++) {
		values[i] = operand(end, i);
		types[i] = values[i]->type;
	}
	struct op *branch = build(&b, IR_IF, &inside, 1, types, end->noperands, 2);
	struct builder yes = builder_at_end(s->ctx, branch->blocks[0]), no = builder_at_end(s->ctx, branch->blocks[1]);
	struct map map = {.arena = a};
	for (struct op *o = first; o != end; o = o->next) {
		if (map_get(picked, o))
			map_put(&map, result(o),
				o->code == IR_CMPI ? build_int(&yes, result(o)->type, 1) : mapped(&map, operand(o, 0)));
		else
			op_clone(&yes, o, &map);
	}
	for (u32 i = 0; i < end->noperands; i++)
		copies[i] = mapped(&map, values[i]);
	build(&yes, IR_YIELD, copies, end->noperands, NULL, 0, 0);
	struct op *last = build(&no, IR_YIELD, values, end->noperands, NULL, 0, 0);
	for (struct op *o = first, *next; o != end; o = next) {
		next = o->next;
		op_insert_before(o, last);
	}
	for (u32 i = 0; i < end->noperands; i++)
		op_set_operand(end, i, &branch->results[i]);
}

static void version_block(struct pass_state *s, struct block *b)
{
	struct op *first = NULL;
	struct value *inside = NULL;
	struct map picked = {.arena = s->ctx->arena};
	for (struct op *o = b->first; o; o = o->next) {
		if (!first && versioning_pays(s, o) && count_ops(o) <= MAX_DUPLICATED_OPS)
			first = o;
		if (!first) {
			for (u32 i = 0; i < o->nblocks; i++)
				version_block(s, o->blocks[i]);
			continue;
		}
		/* the ends must be defined in front of the `if` */
		struct row r;
		if (!versioning_pays(s, o) || !row_of(operand(o, 0), &r) ||
		    (r.start && !is_defined_before(r.start, first)) ||
		    !is_defined_before(operand(operand(o, 1)->def, 0), first))
			continue;
		struct builder at = builder_before(s->ctx, first);
		struct value *c = inside_condition(&at, o);
		inside = inside ? build2(&at, IR_ANDI, c->type, inside, c) : c;
		map_put(&picked, o, o);
	}
	if (!inside)
		return;
	if (s->remarks)
		diag(s->diags, R_VERSIONED, first->loc);
	split_block(s, first, inside, &picked);
}

void pass_versioning(struct pass_state *s)
{
	version_block(s, s->k->body);
	pass_canonicalize(s);
}
