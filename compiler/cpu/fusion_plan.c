/* Loop fusion: decides which values are stored in memory, and which operations share a loop nest.
 *
 * A root is an operation that a nest is made for: a store, a reduction, or an operation whose value must be stored
 * in scratch memory because it is used in another order of elements, in an inner loop, or by an operation on whole
 * tiles. Consecutive roots of the
 * same shape share a nest unless a root needs a result that an earlier root completes with its last element. All other
 * operations (elementwise operations, loads) are computed inside the nests of the roots that need them. A value that
 * several nests compute is stored by the first nest, unless recomputing it is as cheap. */
#include "cpu/cpu_internal.h"
#include "analysis/alias.h"

/* Limit of info.depth: a value at a longer chain of operations is stored in memory. Bounds the recursion of
 * cpu_eval. */
enum { MOST_DEPTH = 200 };

struct info *info_of(struct cpu_codegen *h, const struct value *v)
{
	struct info *i = map_get(&h->info, v);
	if (!i) {
		i = arena_new(&h->scratch, struct info);
		*i = (struct info){0};
		map_put(&h->info, v, i);
	}
	return i;
}

/* --- kinds of operations ------------------------------------------------------------------------------------- */

bool cpu_is_inline(const struct op *o)
{
	switch (o->code) {
	case IR_CONSTANT:
	case IR_MAKE_RANGE:
	case IR_SPLAT: return true;
	case IR_LOAD: return !o->attr[ATTR_VOLATILE];
	default: return op_has(o, ELEM) || op_is_shape(o);
	}
}

static bool is_tile_op(const struct op *o)
{
	for (u32 i = 0; i < o->nresults; i++)
		if (type_is_tensor(o->results[i].type))
			return true;
	for (u32 i = 0; i < o->noperands; i++)
		if (type_is_tensor(operand(o, i)->type))
			return true;
	return false;
}

/* Whether o is an operation on whole tiles: it takes its tile operands from memory and is not part of a nest. */
bool is_whole_tile(const struct op *o)
{
	return is_tile_op(o) && !cpu_is_inline(o) && o->code != IR_STORE && o->code != IR_REDUCE &&
	       !op_is_control(o) && !op_has(o, END);
}

bool cpu_orders(const struct op *o)
{
	return memory_order_of(o) != SEM_RELAXED || o->code == IR_BARRIER || o->code == IR_INLINE_ASM ||
	       o->code == IR_GRID_WAIT;
}

/* Whether the load may not move past o: o, or an operation in a block of o, may write the memory that the load reads,
 * or is ordered with memory accesses (cpu_orders). */
static bool may_clobber(struct cpu_codegen *h, const struct op *o, const struct op *load)
{
	for (u32 i = 0; i < o->nblocks; i++)
		for (const struct op *p = o->blocks[i]->first; p; p = p->next)
			if (may_clobber(h, p, load))
				return true;
	return cpu_orders(o) || (writes_memory(o) && may_overlap(h->s, pointer_base(operand(o, 0)),
								  pointer_base(operand(load, 0)), false));
}

/* Whether o is a store to the addresses of `load`, which are successive and thus all different: storing element i does
 * not change what the load reads for another element. */
static bool same_row(struct cpu_codegen *h, const struct op *o, const struct op *load)
{
	const struct value *p = operand(o, 0);
	return o->code == IR_STORE && p == operand(load, 0) && p->type->rank == 1 &&
	       axis_proved(h->s->axis, p)->contiguity[0] >= p->type->shape[0];
}

/* --- values in memory ---------------------------------------------------------------------------------------- */

static void note_result(struct cpu_codegen *h, const struct op *o, const struct value *v)
{
	struct info *i = info_of(h, v);
	bool free = cpu_is_inline(o) && o->code != IR_LOAD;
	u32 depth = 0;
	for (u32 k = 0; k < o->noperands; k++) {
		const struct value *x = operand(o, k);
		if (!type_is_tensor(x->type))
			continue;
		const struct info *from = info_of(h, x);
		free &= from->free;
		depth = MAX(depth, from->stored ? 0 : from->depth);
	}
	if (op_has(o, ELEM) && dtype_is_float(type_dtype(v->type)) && !type_is_ptr(v->type))
		free = false;
	i->depth = depth + 1;
	i->free = free && i->depth < MOST_DEPTH;
	i->stored = i->depth >= MOST_DEPTH || !cpu_is_inline(o);
	if (h->debug && v->name) {
		i->free = false;
		i->stored = true;
	}
}

/* Sets info.stored of the operands that o reads from memory. */
static void note_uses(struct cpu_codegen *h, const struct op *o)
{
	bool whole = is_whole_tile(o) || op_is_control(o) || op_has(o, END) || op_is_shape(o);
	for (u32 k = 0; k < o->noperands; k++) {
		const struct value *v = operand(o, k);
		if (type_is_tensor(v->type) && o->code == IR_DEBUG_VALUE)
			info_of(h, v)->free = false, info_of(h, v)->stored = true;
		if (!type_is_tensor(v->type) || info_of(h, v)->free)
			continue;
		if (whole && !(op_is_shape(o) && v->def && op_is_shape(v->def)))
			info_of(h, v)->stored = true;
		if (!v->def || v->def->block != o->block)
			info_of(h, v)->stored = true;
	}
}

/* Sets info.depth, info.free and info.stored of the values in b. Visits definitions before uses. */
static void walk_forward(struct cpu_codegen *h, const struct block *b)
{
	for (u32 i = 0; i < b->nargs; i++)
		info_of(h, b->args[i])->stored = true;
	for (const struct op *o = b->first; o; o = o->next) {
		if (op_runs_on_elements(o)) {
			for (u32 i = 0; i < o->nresults; i++)
				info_of(h, &o->results[i])->stored = type_is_tensor(o->results[i].type);
		} else {
			for (u32 i = 0; i < o->nblocks; i++)
				walk_forward(h, o->blocks[i]);
			for (u32 i = 0; i < o->nresults; i++)
				if (type_is_tensor(o->results[i].type))
					note_result(h, o, &o->results[i]);
		}
		note_uses(h, o);
	}
}

/* Whether vectors of the load are at successive addresses, so that repeating the load is cheap. A load of single
 * elements costs more than storing its result. */
static bool is_contiguous(struct cpu_codegen *h, const struct op *load)
{
	const struct type *t = result(load)->type;
	const struct axis_info *a = axis_of(h->s->axis, operand(load, 0));
	for (int d = 0; d < t->rank; d++)
		if (a->contiguity[d] >= 4 || (t->shape[d] > 1 && a->contiguity[d] == t->shape[d]))
			return true;
	return false;
}

/* Sets info.last_root, and info.stored of loads that may not move down to there. */
static void last_roots(struct cpu_codegen *h, const struct block *b)
{
	for (const struct op *o = b->last; o; o = o->prev) {
		if (!op_runs_on_elements(o))
			for (u32 i = 0; i < o->nblocks; i++)
				last_roots(h, o->blocks[i]);
		if (o->nresults != 1 || !type_is_tensor(result(o)->type) || !cpu_is_inline(o))
			continue;
		struct info *i = info_of(h, result(o));
		u32 last = 0;
		for (const struct use *u = result(o)->uses; u; u = u->next) {
			const struct op *user = u->user;
			bool goes_on = user->block == b && cpu_is_inline(user) && !info_of(h, result(user))->stored;
			last = MAX(last, goes_on ? info_of(h, result(user))->last_root : user->mark);
		}
		i->last_root = last;
		if (o->code != IR_LOAD || i->stored)
			continue;
		for (const struct op *p = o->next; p && p->mark <= last && !i->stored; p = p->next)
			i->stored = may_clobber(h, p, o) && !(p->mark == last && same_row(h, p, o));
	}
}

/* Sets info.buffer of values that only dots use, to memory in the format of the dot's instruction (dot_unit). */
static void place_operands(struct cpu_codegen *h, const struct block *b)
{
	const struct op *dot;
	u32 which = 0;
	for (const struct op *o = b->first; o; o = o->next) {
		for (u32 i = 0; i < o->nblocks; i++)
			place_operands(h, o->blocks[i]);
		if (o->nresults == 1 && cpu_is_inline(o) && cpu_dot_takes(h, result(o), &dot, &which))
			info_of(h, result(o))->buffer = cpu_dot_buffer(h, dot, which);
	}
}

void plan_kernel(struct cpu_codegen *h)
{
	cpu_choose_inner(h);
	number_ops(h->k->body, 1);
	walk_forward(h, h->k->body);
	last_roots(h, h->k->body);
	place_operands(h, h->k->body);
}

bool plan_in_place(struct cpu_codegen *h, const struct value *arg, const struct value *yielded)
{
	const struct op *o = yielded->def;
	if (!o || o->block != arg->block || o->nresults != 1 || info_of(h, yielded)->buffer ||
	    !info_of(h, yielded)->stored)
		return false;
	if (o->code == IR_DOT) {
		const struct value *acc = operand(o, 2);
		if (!value_has_one_use(acc))
			return false;
		return acc == arg || plan_in_place(h, arg, acc);
	}
	if (!op_has(o, ELEM))
		return false;
	for (const struct use *u = arg->uses; u; u = u->next) {
		const struct op *user = u->user;
		if (user->block != o->block || op_is_shape(user))
			return false;
		u32 last = cpu_is_inline(user) && !info_of(h, result(user))->stored
				   ? info_of(h, result(user))->last_root
				   : user->mark;
		if (last > o->mark)
			return false;
	}
	return true;
}

/* --- nests ----------------------------------------------------------------------------------------------------- */

static const struct type *iteration_type(const struct op *o)
{
	return o->code == IR_STORE || o->code == IR_REDUCE ? operand(o, 0)->type : result(o)->type;
}

/* Search for what a root needs, to decide whether it can join `nest` (the open nest, or NULL). loads: the loads that
 * the root's nest executes for it. */
struct fusion_search {
	struct cpu_codegen *h;
	struct cpu_nest *nest;
	const struct op *root;
	u32 walk;
	bool clashes; /* the root needs a result that the nest completes later, or has in another order of elements */
	VEC(const struct op *) loads;
};

/* elsewhere: a shape operation is between the root and v, so v is needed at other indices than the root's. */
static void search_value(struct fusion_search *s, const struct value *v, bool elsewhere)
{
	struct cpu_codegen *h = s->h;
	if (!type_is_tensor(v->type)) {
		if (s->nest && v->def && v->def->code == IR_REDUCE && info_of(h, v)->nest == s->nest)
			s->clashes = true;
		/* other scalars: plan_block closes the nest before an operation that uses one of its results */
		return;
	}
	struct info *i = info_of(h, v);
	const struct op *o = v->def;
	if (i->stored) {
		bool here = s->nest && i->nest == s->nest;
		s->clashes |= here && (elsewhere || !cpu_is_inline(o));
		return;
	}
	if (!first_visit(v, s->walk))
		return;
	if (o->code == IR_LOAD)
		vec_push(&h->scratch, &s->loads, o);
	for (u32 k = 0; k < o->noperands; k++)
		search_value(s, operand(o, k), elsewhere || op_is_shape(o));
}

static bool stores_clash(struct cpu_codegen *h, const struct op *store, const struct op *other)
{
	if (operand(store, 0) == operand(other, 0) && (other->code == IR_STORE || same_row(h, store, other)))
		return false;
	return may_overlap(h->s, pointer_base(operand(store, 0)), pointer_base(operand(other, 0)), false);
}

static bool can_join(struct fusion_search *s, const struct type *t)
{
	struct cpu_nest *n = s->nest;
	if (!n || s->h->debug || n->rank != t->rank || memcmp(n->shape, t->shape, (size_t)t->rank * sizeof *t->shape) ||
	    s->clashes)
		return false;
	if (!nest_agrees(s->h, n, s->loads.at, s->loads.len))
		return false;
	bool is_store = s->root->code == IR_STORE;
	for (u32 i = 0; is_store && i < n->loads.len; i++)
		if (stores_clash(s->h, s->root, n->loads.at[i]))
			return false;
	for (u32 i = 0; i < n->roots.len; i++) {
		const struct op *w = n->roots.at[i].op;
		if (w->code != IR_STORE)
			continue;
		if (is_store && stores_clash(s->h, s->root, w))
			return false;
		for (u32 k = 0; k < s->loads.len; k++)
			if (stores_clash(s->h, w, s->loads.at[k]))
				return false;
	}
	return true;
}

/* Whether an operand of o is a result of nest n, so that o cannot move before n. */
static bool needs_nest(struct cpu_codegen *h, const struct op *o, const struct cpu_nest *n)
{
	for (u32 k = 0; n && k < o->noperands; k++) {
		const struct value *v = operand(o, k);
		if (info_of(h, v)->nest == n)
			return true;
	}
	return false;
}

static struct cpu_nest *nest_for(struct cpu_codegen *h, const struct type *t)
{
	struct cpu_nest *n = arena_new(&h->scratch, struct cpu_nest);
	*n = (struct cpu_nest){.rank = t->rank};
	memcpy(n->shape, t->shape, sizeof n->shape);
	return n;
}

static void add_root(struct cpu_codegen *h, struct cpu_nest *n, const struct op *o, const struct fusion_search *s)
{
	struct root r = {.op = o, .v = o->nresults ? result(o) : NULL};
	vec_push(&h->scratch, &n->roots, r);
	for (u32 i = 0; i < s->loads.len; i++)
		vec_push(&h->scratch, &n->loads, s->loads.at[i]);
	for (u32 i = 0; i < o->nresults; i++)
		info_of(h, &o->results[i])->nest = n;
}

static bool is_root(struct cpu_codegen *h, const struct op *o)
{
	if (o->code == IR_STORE)
		return type_is_tensor(operand(o, 0)->type);
	if (o->code == IR_REDUCE)
		return true;
	return o->nresults == 1 && type_is_tensor(result(o)->type) && cpu_is_inline(o) &&
	       info_of(h, result(o))->stored && !info_of(h, result(o))->free;
}

/* Called for all values that nest n computes, nests in order. A value that an earlier nest also computes becomes a root
 * of that nest, which stores it, unless recomputing it is as cheap. elsewhere: as in search_value. */
static void claim(struct cpu_codegen *h, struct cpu_nest *n, const struct value *v, bool elsewhere);

bool cpu_cheap_again(struct cpu_codegen *h, const struct value *v)
{
	const struct op *o = v->def;
	if (info_of(h, v)->free)
		return true;
	switch (o->code) {
	case IR_LOAD: return is_contiguous(h, o);
	case IR_EXTF:
	case IR_EXTSI:
	case IR_EXTUI:
	case IR_SITOFP: return !info_of(h, operand(o, 0))->stored && cpu_cheap_again(h, operand(o, 0));
	default: return op_is_shape(o);
	}
}

static void claim_operands(struct cpu_codegen *h, struct cpu_nest *n, const struct op *o, bool elsewhere)
{
	for (u32 k = 0; k < o->noperands; k++)
		claim(h, n, operand(o, k), elsewhere || op_is_shape(o));
}

static void claim(struct cpu_codegen *h, struct cpu_nest *n, const struct value *v, bool elsewhere)
{
	if (!type_is_tensor(v->type))
		return;
	struct info *i = info_of(h, v);
	if (i->stored || i->free)
		return;
	if (i->nest && i->nest != n && !cpu_cheap_again(h, v) && !elsewhere) {
		i->stored = true;
		struct root r = {.op = v->def, .v = v};
		vec_push(&h->scratch, &i->nest->roots, r);
		return;
	}
	if (i->nest == n)
		return;
	if (!i->nest)
		i->nest = n;
	claim_operands(h, n, v->def, elsewhere);
}

static void sort_roots(struct cpu_nest *n)
{
	for (u32 i = 1; i < n->roots.len; i++)
		for (u32 k = i; k && n->roots.at[k].op->mark < n->roots.at[k - 1].op->mark; k--) {
			struct root t = n->roots.at[k];
			n->roots.at[k] = n->roots.at[k - 1];
			n->roots.at[k - 1] = t;
		}
}

void plan_block(struct cpu_codegen *h, const struct block *b, step_vec *out)
{
	struct cpu_nest *open = NULL;
	for (const struct op *o = b->first; o; o = o->next) {
		if (cpu_dot_turns(h, o)) {
			open = NULL;
			vec_push(&h->scratch, out, (struct cpu_step){.op = o});
			continue;
		}
		if (is_root(h, o)) {
			struct fusion_search s = {.h = h, .nest = open, .root = o, .walk = begin_walk(h->k->ctx)};
			for (u32 k = 0; k < o->noperands; k++)
				search_value(&s, operand(o, k), false);
			if (o->code == IR_LOAD)
				vec_push(&h->scratch, &s.loads, o);
			if (!can_join(&s, iteration_type(o))) {
				open = nest_for(h, iteration_type(o));
				vec_push(&h->scratch, out, (struct cpu_step){.nest = open});
			}
			add_root(h, open, o, &s);
			continue;
		}
		if (o->nresults == 1 && type_is_tensor(result(o)->type) && cpu_is_inline(o))
			continue;
		/* An operation that is not part of a nest moves before the open nest if possible; otherwise no further
		 * root can join that nest. */
		bool pure = op_has(o, PURE) && !is_whole_tile(o) && !op_has(o, END);
		if (!pure || needs_nest(h, o, open))
			open = NULL;
		struct cpu_step step = {.op = o};
		if (open) {
			step = out->at[out->len - 1];
			out->at[out->len - 1] = (struct cpu_step){.op = o};
		}
		vec_push(&h->scratch, out, step);
	}
	for (u32 i = 0; i < out->len; i++) {
		struct cpu_nest *n = out->at[i].nest;
		for (u32 k = 0; n && k < n->roots.len; k++)
			claim_operands(h, n, n->roots.at[k].op, false);
	}
	for (u32 i = 0; i < out->len; i++)
		if (out->at[i].nest) {
			sort_roots(out->at[i].nest);
			nest_choose_lanes(h, out->at[i].nest);
		}
}
