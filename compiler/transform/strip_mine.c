/* Strip-mining: operations on tiles with many elements a thread become loops over parts of the tiles.
 *
 *     x = load(p + arange(0, 65536))         for i in range(0, 65536, 8192):
 *     store(q + arange(0, 65536), x * 2)         x = load(p + i + arange(0, 8192))
 *                                                store(q + i + arange(0, 8192), x * 2)
 *
 * The code of a tile operation has an instruction for each element of a thread, so that the registers do not hold the
 * tiles and ptxas takes seconds. A group of connected loads, stores, reductions and elementwise operations is divided
 * along one dimension. A reduction along that dimension accumulates the parts element by element, and reduces the
 * accumulators after the loop. The operations that depend on its result need another loop, which repeats the loads.
 * Loops are legal if the parts of loads and stores that change their order access different memory. */
#include <stdlib.h>

#include "support/thresholds.h"
#include "ir/graph.h"
#include "ir/scalar.h"
#include "analysis/alias.h"
#include "analysis/axis.h"
#include "analysis/same_addresses.h"
#include "ir/pass.h"

enum { MAX_LOOPS = 8 };

/* An operation outside the group that needs the results of loops, and their number. */
struct dependent {
	struct op *op;
	intptr_t loops;
};

/* A group of operations that is divided. */
struct strips {
	struct pass_state *s;
	struct block *block;
	struct arena scratch;
	struct map dims;   /* operation → 1 + the divided dimension: see add_op */
	struct map inside; /* operations that only the loops execute: loads, and operations that depend on them */
	struct map loops;  /* operation → bit mask of the loops that execute it */
	op_vec ops;        /* all operations, in program order after find_group */
	op_vec moved;      /* the operations `inside`, likewise */
	i32 parts;         /* the number of parts, and of iterations */
	i64 elements;      /* of a thread, of the largest tile */
	i64 instructions;  /* of a thread: the elements of all operations */
	i64 held;          /* registers of a thread for all loads and accumulators */
	/* of each loop: the last operation with an effect or a reduced result that it executes */
	struct op *last[MAX_LOOPS];
	u32 nloops;
	VEC(struct dependent) after; /* in program order */
};

/* --- the operations of a group --------------------------------------------------------------------------------- */

static int dim_of(const struct strips *p, const struct op *o)
{
	return (int)(intptr_t)map_get(&p->dims, o) - 1;
}

static bool is_divided(const struct value *v, int d)
{
	return type_is_tensor(v->type) && d >= 0 && v->type->shape[d] > 1;
}

/* The first dimension of size > 1: its parts are consecutive elements. */
static int outer_dim(const struct type *t)
{
	int d = 0;
	while (d < t->rank - 1 && t->shape[d] == 1)
		d++;
	return d;
}

/* True if only reductions of whole tiles use the result of o, so that the order of its elements does not matter. */
static bool is_only_reduced(const struct op *o)
{
	for (const struct use *u = result(o)->uses; u; u = u->next)
		if (u->user->code != IR_REDUCE || u->user->noperands > 1)
			return false;
	return result(o)->type->rank == 1;
}

/* The dimension of the result of a reshape that dimension d of its operand becomes; -1 if parts do not stay parts. */
static int reshaped_dim(const struct op *o, int d)
{
	return is_only_reduced(o) || d == outer_dim(operand(o, 0)->type) ? outer_dim(result(o)->type) : -1;
}

/* The divided dimension of operand i; -1 if the operand is not divided. */
static int operand_divided(const struct strips *p, const struct op *o, u32 i)
{
	if (o->code == IR_CONSTANT || o->code == IR_MAKE_RANGE || o->code == IR_SPLAT)
		return -1;
	int d = op_is_shape(o) && o->code != IR_RESHAPE ? operand_dim(o, dim_of(p, o)) : dim_of(p, o);
	return is_divided(operand(o, i), d) ? d : -1;
}

/* True for a reduction along the divided dimension. */
static bool accumulates(const struct strips *p, const struct op *o)
{
	return o->code == IR_REDUCE && o->attr[ATTR_AXIS] == dim_of(p, o);
}

/* The divided dimension of o's results. */
static int result_divided(const struct strips *p, const struct op *o)
{
	int d = dim_of(p, o);
	return o->code == IR_REDUCE    ? d - (o->attr[ATTR_AXIS] < d)
	       : o->code == IR_RESHAPE ? reshaped_dim(o, d)
				       : d;
}

static bool is_root(const struct strips *p, const struct op *o)
{
	return o->code == IR_STORE || accumulates(p, o);
}

static bool can_divide(const struct strips *p, const struct op *o)
{
	switch (o->code) {
	case IR_CONSTANT:
	case IR_MAKE_RANGE:
	case IR_SPLAT:
	case IR_EXPAND_DIMS:
	case IR_BROADCAST:
	case IR_RESHAPE:
	case IR_TRANS: return true;
	case IR_LOAD: return o->block == p->block && !o->attr[ATTR_VOLATILE];
	case IR_STORE: return o->block == p->block;
	case IR_REDUCE: return o->block == p->block && region_is_elementwise(o->blocks[0]);
	default: return op_has(o, ELEM) && op_has(o, PURE);
	}
}

static void move_inside(struct strips *p, struct op *o)
{
	if (map_get(&p->inside, o))
		return;
	map_put(&p->inside, o, o);
	vec_push(&p->scratch, &p->moved, o);
}

/* Adds o to the group. d: the divided dimension of its result, or of the operands of a store, reduction or reshape.
 * False if o cannot be divided so. */
static bool add_op(struct strips *p, struct op *o, int d)
{
	void *known = map_get(&p->dims, o), *now = (void *)(intptr_t)(d + 1);
	if (known)
		return known == now;
	if (d < 0 || p->ops.len == MAX_INDEX_OPERATIONS || !can_divide(p, o))
		return false;
	map_put(&p->dims, o, now);
	vec_push(&p->scratch, &p->ops, o);
	if (o->code == IR_LOAD || o->code == IR_STORE || o->code == IR_REDUCE)
		move_inside(p, o);
	return true;
}

/* Adds the operation that defines v, of which dimension d is divided. */
static bool add_def(struct strips *p, const struct value *v, int d)
{
	struct op *o = v->def;
	if (!o || dim_of(p, o) >= 0)
		return o && result_divided(p, o) == d;
	if (o->code == IR_REDUCE)
		d += o->attr[ATTR_AXIS] <= d;
	else if (o->code == IR_RESHAPE)
		d = d == outer_dim(v->type) ? outer_dim(operand(o, 0)->type) : -1;
	return add_op(p, o, d);
}

static bool add_operands(struct strips *p, const struct op *o)
{
	for (u32 i = 0; i < o->noperands; i++) {
		int d = operand_divided(p, o, i);
		if (d >= 0 && !add_def(p, operand(o, i), d))
			return false;
	}
	return true;
}

/* The dimension with which add_op adds a user of a tile that is divided along d. */
static int dim_of_user(const struct op *user, int d)
{
	if (user->code == IR_RESHAPE)
		return reshaped_dim(user, d) < 0 ? -1 : d;
	return op_is_shape(user) ? result_dim(user, d) : d;
}

/* Adds the users of the results of o, which exist in parts only. */
static bool add_users(struct strips *p, const struct op *o)
{
	int d = result_divided(p, o);
	for (u32 i = 0; i < o->nresults && !accumulates(p, o); i++)
		for (struct use *u = o->results[i].uses; u; u = u->next) {
			struct op *user = u->user;
			if (user->block != p->block || !is_divided(&o->results[i], d) ||
			    !add_op(p, user, dim_of_user(user, d)))
				return false;
			move_inside(p, user);
		}
	return true;
}

static int by_mark(const void *x, const void *y)
{
	u32 a = (*(struct op *const *)x)->mark, b = (*(struct op *const *)y)->mark;
	return (a > b) - (a < b);
}

/* Adds all operations that are connected with `seed`. */
static bool find_group(struct strips *p, struct op *seed, int d)
{
	if (!add_op(p, seed, d))
		return false;
	for (u32 i = 0, j = 0; i < p->ops.len || j < p->moved.len;)
		if (!(i < p->ops.len ? add_operands(p, p->ops.at[i++]) : add_users(p, p->moved.at[j++])))
			return false;
	qsort(p->ops.at, p->ops.len, sizeof *p->ops.at, by_mark);
	qsort(p->moved.at, p->moved.len, sizeof *p->moved.at, by_mark);
	return true;
}

/* --- costs ------------------------------------------------------------------------------------------------------ */

static const struct type *largest_tile(const struct op *o)
{
	const struct type *most = NULL;
	for (u32 i = 0; i < o->nresults + o->noperands; i++) {
		const struct type *t = i < o->nresults ? o->results[i].type : operand(o, i - o->nresults)->type;
		if (type_is_tensor(t) && (!most || type_numel(t) > type_numel(most)))
			most = t;
	}
	return most;
}

static i64 elements_of(const struct pass_state *s, const struct op *o)
{
	const struct type *t = largest_tile(o);
	return t ? type_numel(t) / (32 * s->num_warps) : 0;
}

static void add_costs(struct strips *p)
{
	for (u32 i = 0; i < p->ops.len; i++) {
		const struct op *o = p->ops.at[i];
		i64 n = elements_of(p->s, o);
		p->elements = MAX(p->elements, n);
		for (u32 k = 0; k < o->noperands && accumulates(p, o); k++)
			p->held += n * type_elem_bits(operand(o, k)->type) / 32;
		if (o->code == IR_LOAD)
			p->held += n * type_elem_bits(result(o)->type) / 32;
		if (o->code != IR_CONSTANT && o->code != IR_SPLAT && !op_is_shape(o))
			p->instructions += n;
	}
}

/* The size of a divided dimension of an operation. */
static i32 divided_size(const struct strips *p, const struct op *o)
{
	bool of_operand = o->code == IR_STORE || o->code == IR_REDUCE || o->code == IR_RESHAPE;
	return (of_operand ? operand(o, 0) : result(o))->type->shape[dim_of(p, o)];
}

/* True if all tiles can be divided into `parts` parts, and no part of a contiguous access is shorter than a sector. */
static bool has_parts(const struct strips *p)
{
	for (u32 i = 0; i < p->ops.len; i++) {
		const struct op *o = p->ops.at[i];
		i32 part = divided_size(p, o) / p->parts;
		if (!part ||
		    ((o->code == IR_LOAD || o->code == IR_STORE) &&
		     axis_of(p->s->axis, operand(o, 0))->contiguity[dim_of(p, o)] > 1 &&
		     part * (i64)pointee_bytes(operand(o, 0)->type) < SECTOR_BYTES))
			return false;
	}
	return true;
}

/* Chooses the size of a part. False if the tiles stay whole. */
static bool choose_part(struct strips *p)
{
	add_costs(p);
	if (p->elements <= MAX_ELEMENTS && p->instructions <= MAX_TILE_INSTRUCTIONS)
		return false;
	i64 n = MAX_STRIP_ELEMENTS;
	while (n > MIN_STRIP_ELEMENTS && (p->instructions * n > MAX_STRIP_INSTRUCTIONS * p->elements ||
					  p->held * n > MAX_STRIP_REGISTERS * p->elements))
		n /= 2;
	p->parts = (i32)(p->elements / n);
	return p->parts > 1 && has_parts(p);
}

/* --- the order of loops ---------------------------------------------------------------------------------------- */

/* The loops that execute o, as a bit mask. */
static u32 loops_of(const struct strips *p, const struct op *o)
{
	return (u32)(uintptr_t)map_get(&p->loops, o);
}

static int first_loop(u32 loops)
{
	return __builtin_ctz(loops);
}

static int last_loop(u32 loops)
{
	return 31 - __builtin_clz(loops);
}

struct wait {
	const struct map *made; /* value → the number of loops that it needs */
	intptr_t loops;
};

static void wait_for_operands(struct op *o, void *arg)
{
	struct wait *w = arg;
	for (u32 i = 0; i < o->noperands; i++)
		w->loops = MAX(w->loops, (intptr_t)map_get(w->made, operand(o, i)));
}

/* True for an operation that may stand between operations of the group. */
static bool is_neutral(const struct op *o)
{
	return o->code == IR_LOAD || o->code == IR_STORE || o->code == IR_ASSUME ||
	       (op_has(o, PURE) && (!o->nblocks || op_runs_on_elements(o)));
}

/* Assigns a loop to each store and each accumulating reduction, in their order. */
static bool assign_loops(struct strips *p)
{
	struct map made = {.arena = &p->scratch};
	intptr_t now = 0;
	for (struct op *o = p->moved.at[0], *end = p->moved.at[p->moved.len - 1]->next; o != end; o = o->next) {
		struct wait w = {&made, 0};
		wait_for_operands(o, &w);
		for (u32 k = 0; k < o->nblocks; k++)
			walk(o->blocks[k], wait_for_operands, &w);
		bool divided = dim_of(p, o) >= 0;
		if (!divided && !is_neutral(o))
			return false;
		if (w.loops && !map_get(&p->inside, o))
			vec_push(&p->scratch, &p->after, ((struct dependent){o, w.loops}));
		if (divided && is_root(p, o)) {
			now = MAX(now, w.loops);
			if (now == MAX_LOOPS)
				return false;
			map_put(&p->loops, o, (void *)((uintptr_t)1 << now));
			p->last[now] = o;
			w.loops = now + accumulates(p, o);
		}
		for (u32 i = 0; i < o->nresults && w.loops; i++)
			map_put(&made, &o->results[i], (void *)w.loops);
	}
	p->nloops = (u32)now + 1;
	return p->last[0];
}

/* Finds the loops that execute each operation. False if loads that are repeated cost more than registers. */
static bool find_loops(struct strips *p)
{
	bool repeats = false;
	for (u32 n = p->ops.len; n--;) {
		const struct op *o = p->ops.at[n];
		u32 loops = loops_of(p, o);
		repeats |= o->code == IR_LOAD && loops & (loops - 1);
		for (u32 i = 0; i < o->noperands; i++) {
			const struct op *def = operand(o, i)->def;
			if (operand_divided(p, o, i) >= 0)
				map_put(&p->loops, def, (void *)(uintptr_t)(loops_of(p, def) | loops));
		}
	}
	return !repeats || p->elements >= MIN_ELEMENTS_LOADED_AGAIN;
}

/* True if `a` and a later access b may change their order. `parts`: only different parts of them. */
static bool may_exchange(struct strips *p, const struct op *a, const struct op *b, bool parts)
{
	if (!writes_memory(a) && !writes_memory(b))
		return true;
	const struct value *x = operand(a, 0), *y = operand(b, 0), *base = pointer_base(x);
	bool same = parts && pointee_bytes(x->type) == pointee_bytes(y->type) && same_addresses(x, y) &&
		    are_each_once(p->s, x);
	return (x == y || (base && base == pointer_base(y))) ? same : !may_overlap(p->s, base, pointer_base(y), same);
}

static bool is_access(const struct op *o)
{
	return o->code == IR_LOAD || o->code == IR_STORE;
}

/* True if o, which the group may execute later than in program order, need not come before `later`. */
static bool may_pass(struct strips *p, const struct op *o, const struct op *later)
{
	u32 loops = loops_of(p, o), others = loops_of(p, later);
	if (!loops || later->mark > p->last[last_loop(loops)]->mark)
		return true;
	if (dim_of(p, later) < 0)
		return may_exchange(p, o, later, false);
	return !others || last_loop(loops) < first_loop(others) ||
	       may_exchange(p, o, later, last_loop(loops) == first_loop(others));
}

static bool is_legal(struct strips *p)
{
	for (u32 i = 0; i < p->moved.len; i++) {
		const struct op *o = p->moved.at[i];
		for (const struct op *q = o->next; is_access(o) && q->mark <= p->moved.at[p->moved.len - 1]->mark;
		     q = q->next)
			if (is_access(q) && !may_pass(p, o, q))
				return false;
	}
	for (u32 i = 0; i < p->after.len; i++) {
		struct dependent d = p->after.at[i];
		if (d.op->mark < p->last[d.loops - 1]->mark && !op_is_orderless(d.op))
			return false;
	}
	return true;
}

/* --- building --------------------------------------------------------------------------------------------------- */

static const struct type *part_of(const struct strips *p, const struct type *t, int d)
{
	i32 shape[MAX_RANK];
	memcpy(shape, t->shape, sizeof shape);
	shape[d] /= p->parts;
	return type_tensor(p->s->ctx, type_elem(t), t->rank, shape);
}

/* The hints of a part with `size` elements along d, which begins at any multiple of that. */
static struct hints *hints_of_part(const struct strips *p, const struct hints *h, int d, i32 size)
{
	struct hints *part = arena_new(p->s->ctx->arena, struct hints);
	*part = *h;
	if (h->divisibility[d] && (!h->contiguity[d] || h->contiguity[d] > size))
		part->divisibility[d] = MIN(h->divisibility[d] & -h->divisibility[d], size);
	part->contiguity[d] = MIN(h->contiguity[d], size);
	part->constancy[d] = MIN(h->constancy[d], size);
	return part;
}

/* Builds part `number` of o's results. */
static void build_part(struct strips *p, struct builder *b, const struct op *o, struct value *number, struct map *made)
{
	int d = result_divided(p, o);
	if (o->code == IR_MAKE_RANGE) {
		const struct type *t = part_of(p, result(o)->type, d);
		struct value *range = build1(b, IR_MAKE_RANGE, t, NULL);
		range->def->attr[ATTR_START] = o->attr[ATTR_START];
		range->def->attr[ATTR_END] = o->attr[ATTR_START] + t->shape[0];
		struct value *size = build_i32(b, t->shape[0]), *start = build2(b, IR_MULI, size->type, number, size);
		start = build_splat(b, start, 1, t->shape);
		map_put(made, result(o), build2(b, IR_ADDI, t, start, range));
		return;
	}
	struct op *part = op_clone(b, o, made);
	for (u32 i = 0; i < part->nresults; i++)
		part->results[i].type = part_of(p, part->results[i].type, d);
	if (part->hints)
		part->hints = hints_of_part(p, part->hints, d, result(part)->type->shape[d]);
}

/* Builds an iteration of a loop. Appends the parts of the operands of accumulating reductions to `parts`. */
static void build_iteration(struct strips *p, struct builder *b, int loop, struct value *number, value_vec *parts)
{
	struct map made = {.arena = &p->scratch};
	for (u32 n = 0; n < p->ops.len; n++) {
		const struct op *o = p->ops.at[n];
		if (!(loops_of(p, o) >> loop & 1))
			continue;
		if (!accumulates(p, o))
			build_part(p, b, o, number, &made);
		for (u32 i = 0; i < o->noperands && accumulates(p, o); i++)
			vec_push(&p->scratch, parts, mapped(&made, operand(o, i)));
	}
}

/* Builds the region of a reduction for tiles: `accumulated` and `parts` are its arguments. Appends the results. */
static void build_combination(struct strips *p, struct builder *b, const struct op *reduce,
			      struct value *const *accumulated, struct value *const *parts, value_vec *out)
{
	const struct block *region = reduce->blocks[0];
	const struct type *tile = accumulated[0]->type;
	u32 n = reduce->noperands;
	struct map map = {.arena = &p->scratch};
	for (u32 i = 0; i < 2 * n; i++)
		map_put(&map, region->args[i], i < n ? accumulated[i] : parts[i - n]);
	for (const struct op *o = region->first; o; o = o->next) {
		for (u32 i = 0; i < o->noperands; i++)
			if (!map_get(&map, operand(o, i)))
				map_put(&map, operand(o, i), build_splat(b, operand(o, i), tile->rank, tile->shape));
		for (u32 i = 0; i < o->noperands && op_has(o, END); i++)
			vec_push(&p->scratch, out, mapped(&map, operand(o, i)));
		if (!op_has(o, END)) {
			struct value *v = result(op_clone(b, o, &map));
			v->type = type_with_elem(b->ctx, tile, v->type);
		}
	}
}

static void build_reductions(struct strips *p, struct builder *b, int loop, struct op *made)
{
	u32 next = 0;
	for (u32 n = 0; n < p->ops.len; n++) {
		struct op *o = p->ops.at[n];
		if (!accumulates(p, o) || !(loops_of(p, o) >> loop & 1))
			continue;
		struct map map = {.arena = &p->scratch};
		for (u32 i = 0; i < o->noperands; i++)
			map_put(&map, operand(o, i), &made->results[next + i]);
		next += o->noperands;
		struct op *reduce = op_clone(b, o, &map);
		for (u32 i = 0; i < o->nresults; i++)
			replace_uses(&o->results[i], &reduce->results[i]);
	}
}

static bool has_accumulators(const struct strips *p, int loop)
{
	for (u32 n = 0; n < p->ops.len; n++)
		if (accumulates(p, p->ops.at[n]) && loops_of(p, p->ops.at[n]) >> loop & 1)
			return true;
	return false;
}

/* Builds a loop after its last operation. The iteration that initialises accumulators is before the loop. */
static void build_loop(struct strips *p, int loop)
{
	struct ir_context *c = p->s->ctx;
	struct builder b = builder_after(c, p->last[loop]);
	value_vec inits = {0}, parts = {0}, sums = {0};
	struct value *first = build_i32(&b, 0);
	if (has_accumulators(p, loop)) {
		build_iteration(p, &b, loop, first, &inits);
		first = build_i32(&b, 1);
	}
	struct value *end = build_i32(&b, p->parts), *step = build_i32(&b, 1);
	struct op *made = build_for(&b, first, end, step, inits.at, inits.len);
	struct builder in = builder_at_end(c, made->blocks[0]);
	build_iteration(p, &in, loop, for_index(made), &parts);
	for (u32 n = 0, next = 0; n < p->ops.len; n++) {
		const struct op *o = p->ops.at[n];
		if (!accumulates(p, o) || !(loops_of(p, o) >> loop & 1))
			continue;
		build_combination(p, &in, o, made->blocks[0]->args + 1 + next, parts.at + next, &sums);
		next += o->noperands;
	}
	build(&in, IR_YIELD, sums.at, sums.len, NULL, 0, 0);
	build_reductions(p, &b, loop, made);
}

static void build_loops(struct strips *p)
{
	struct op *behind[MAX_LOOPS];
	for (u32 i = 0; i < p->nloops; i++) {
		behind[i] = p->last[i]->next;
		build_loop(p, (int)i);
	}
	for (u32 i = 0; i < p->after.len; i++) {
		struct dependent d = p->after.at[i];
		if (d.op->mark < p->last[d.loops - 1]->mark)
			op_insert_before(d.op, behind[d.loops - 1]);
	}
	for (u32 n = p->moved.len; n--;)
		op_erase(p->moved.at[n]);
}

/* --- the pass --------------------------------------------------------------------------------------------------- */

/* Divides the operations that are connected with `seed` along dimension d. */
static bool strip_mine(struct pass_state *s, struct op *seed, int d)
{
	struct strips p = {.s = s, .block = seed->block};
	struct loc loc = seed->loc;
	p.dims.arena = p.inside.arena = p.loops.arena = &p.scratch;
	bool yes = find_group(&p, seed, d) && choose_part(&p) && assign_loops(&p) && find_loops(&p) && is_legal(&p);
	if (yes) {
		if (s->remarks)
			diag(s->diags, R_STRIPS, loc, (long long)p.elements, p.nloops, PLURAL(p.nloops),
			     (long long)(p.elements / p.parts));
		build_loops(&p);
	}
	arena_free(&p.scratch);
	return yes;
}

/* Tries the dimensions along which the accesses are not contiguous first: their parts are whole rows. */
static bool strip_mine_any(struct pass_state *s, struct op *seed)
{
	const struct value *v = seed->noperands ? operand(seed, 0) : NULL;
	for (int contiguous = 0; contiguous < 2; contiguous++)
		for (int d = 0; v && d < v->type->rank; d++)
			if ((axis_of(s->axis, v)->contiguity[d] > 1) == contiguous && is_divided(v, d) &&
			    strip_mine(s, seed, d))
				return true;
	return false;
}

/* The operations must be numbered (number_ops), and are when it returns. */
static bool strip_mine_block(struct pass_state *s, struct block *b, struct map *tried)
{
	bool changed = false;
	for (struct op *o = b->first, *next; o; o = next) {
		next = o->next;
		for (u32 i = 0; i < o->nblocks && op_is_control(o); i++)
			changed |= strip_mine_block(s, o->blocks[i], tried);
		bool is_seed = o->code == IR_LOAD || o->code == IR_STORE || o->code == IR_REDUCE;
		if (!is_seed || elements_of(s, o) < 2 * MIN_STRIP_ELEMENTS || map_get(tried, o))
			continue;
		map_put(tried, o, o);
		if (strip_mine_any(s, o)) {
			number_ops(s->k->body, 0);
			changed = true;
			next = b->first;
		}
	}
	return changed;
}

void pass_strip_mine(struct pass_state *s)
{
	struct arena scratch = {0};
	struct map tried = {.arena = &scratch};
	number_ops(s->k->body, 0);
	if (strip_mine_block(s, s->k->body, &tried)) {
		pass_canonicalize(s);
		pass_cse(s);
		pass_licm(s);
		pass_contract_fma(s);
	}
	arena_free(&scratch);
}
