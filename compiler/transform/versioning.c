/* Versioning: a fast path for programs in the interior of a matrix.
 *
 * Kernels keep rows and columns inside a matrix by `(start + arange) % n`, or by a mask `start + arange < n`. For an
 * arbitrary n, adjacent elements of such a tile may be far apart in memory, or masked, so a load along them accesses
 * one element at a time. But for all programs except those at the edge, x % n == x, and the mask is true. So the rest
 * of the block gets two versions. For 0 <= start and start + length <= n, the remainder is replaced by its operand and
 * the mask by true. Otherwise the original code runs. This is done only for elements smaller than a word. Wider ones
 * gain nothing. The elements are those of a dot operand that are contiguous along the tile, or those that a load or
 * store with a mask accesses, if the mask is in the kernel's body and the rest has no dots, loops or branches, so that
 * its copy costs little. */
#include "support/thresholds.h"
#include "ir/graph.h"
#include "analysis/axis.h"
#include "analysis/index_forms.h"
#include "ir/pass.h"

struct versioning {
	struct pass_state *s;
	struct value_set operands; /* operands of dots, and their elementwise sources */
	struct value_set rows;     /* index tiles in which adjacent elements address adjacent small elements of a dot
				    * operand */
	/* masks, or parts of them, that split contiguous runs of such an operand; vectors of other loads and stores of
	 * small elements */
	struct value_set dot_masks, access_masks;
};

static bool is_elementwise(const struct op *o)
{
	return op_has(o, ELEM) || o->code == IR_TRANS;
}

static void note_dot(struct op *o, void *set)
{
	for (u32 i = 0; i < 2 && o->code == IR_DOT; i++)
		add_sources(set, operand(o, i), is_elementwise);
}

static bool is_row_arithmetic(const struct op *o)
{
	return o->code == IR_ADDI || o->code == IR_ADDPTR || o->code == IR_EXTSI || o->code == IR_EXPAND_DIMS ||
	       o->code == IR_BROADCAST || o->code == IR_TRANS;
}

/* Adds the values that the pointers of an operand are computed from, including initial values of loop-carried
 * pointers. */
static void add_rows(struct value_set *rows, const struct value *v)
{
	vec_push(&rows->scratch, &rows->work, v);
	while (rows->work.len) {
		v = rows->work.at[--rows->work.len];
		const struct op *o = v->def, *loop = o ? NULL : v->block->parent;
		if (!set_add(rows, v))
			continue;
		if (loop && loop->code == IR_FOR && v->index)
			vec_push(&rows->scratch, &rows->work, for_init(loop, for_arg_number(v)));
		for (u32 i = 0; o && is_row_arithmetic(o) && i < o->noperands; i++)
			vec_push(&rows->scratch, &rows->work, operand(o, i));
	}
}

static bool is_wider_shape(const struct op *o)
{
	return o->code == IR_EXPAND_DIMS || o->code == IR_BROADCAST;
}

/* Adds the operands of the conjunction `mask` of an access, if their constancy is less than the contiguous runs of
 * `ptr`. of_dot: only runs that need unaligned vectors count, since a loop copies aligned rows to shared memory. */
static void add_masks(struct versioning *g, bool of_dot, const struct value *ptr, const struct value *mask)
{
	struct value_set *masks = of_dot ? &g->dot_masks : &g->access_masks;
	struct value_walk w = {.id = begin_walk(g->s->ctx)};
	const struct value *v;
	int unit;
	visit_later(&w, mask);
	while ((v = visit_next(&w))) {
		bool splits = false;
		for (int d = 0; d < ptr->type->rank; d++)
			splits |= MAX(axis_run_length(g->s->axis, ptr, NULL, d, &unit),
				      of_dot ? 0 : axis_vector_width(g->s->axis, ptr, NULL, d)) >
				  axis_of(g->s->axis, v)->constancy[d];
		if (splits)
			add_sources(masks, v, is_wider_shape);
		if (def_if(v, IR_ANDI))
			visit_operands(&w, v->def);
	}
}

static void note_access(struct op *o, void *arg)
{
	struct versioning *g = arg;
	u32 mask = o->code == IR_STORE ? 2 : 1;
	const struct value *ptr;
	if ((o->code != IR_LOAD && o->code != IR_STORE) || (ptr = operand(o, 0), !type_is_tensor(ptr->type)))
		return;
	const struct type *accessed = o->code == IR_LOAD ? result(o)->type : operand(o, 1)->type;
	bool of_dot = o->code == IR_LOAD && set_has(&g->operands, result(o));
	if (type_elem_bits(accessed) >= 32)
		return;
	if (of_dot)
		add_rows(&g->rows, ptr);
	if (o->noperands > mask)
		add_masks(g, of_dot, ptr, operand(o, mask));
}

/* True if the rest of the kernel from o on has no dots, loops or branches. */
static bool is_straight_line(const struct versioning *g, const struct op *o)
{
	bool straight = o->block == g->s->k->body;
	for (; o && straight; o = o->next)
		straight = !op_is_dot(o) && (!o->nblocks || op_runs_on_elements(o));
	return straight;
}

/* first: the first operation of the versions, NULL if there is none before o. */
static bool versioning_pays(const struct versioning *g, const struct op *o, const struct op *first)
{
	struct row r;
	bool compares = o->code == IR_CMPI && o->attr[ATTR_PREDICATE] == CMPI_SLT;
	if ((o->code != IR_REMSI && !compares) || !type_is_tensor(result(o)->type) ||
	    !def_if(operand(o, 1), IR_SPLAT) || !row_of(operand(o, 0), &r))
		return false;
	if (compares && set_has(&g->access_masks, result(o)) && r.start && is_straight_line(g, first ? first : o))
		return true;
	if (type_elem_bits(operand(o, 0)->type) != 32)
		return false;
	if (compares)
		return set_has(&g->dot_masks, result(o));
	return axis_of(g->s->axis, result(o))->contiguity[0] < 8 && r.last - r.first >= 8 &&
	       set_has(&g->rows, result(o));
}

/* The condition that all elements are inside: row < n, and for remainders 0 <= row. Computed in 64 bits, where it
 * cannot wrap if n is not negative. With a negative n of 64 bits the original code runs. */
static struct value *inside_condition(struct builder *b, const struct op *o)
{
	const struct type *t = type_scalar(b->ctx, DT_I64);
	struct row r;
	row_of(operand(o, 0), &r);
	struct value *start = r.start ? r.start : build_int(b, t, 0), *n = operand(operand(o, 1)->def, 0);
	struct value *zero = build_int(b, t, 0), *high;
	if (n->type == t) {
		high = build_cmpi(b, CMPI_SLT, start, build2(b, IR_SUBI, t, n, build_int(b, t, r.last)));
		high = build2(b, IR_ANDI, high->type, high, build_cmpi(b, CMPI_SGE, n, zero));
	} else {
		start = r.start ? build1(b, IR_EXTSI, t, start) : start;
		n = build1(b, IR_EXTSI, t, n);
		high = build_cmpi(b, CMPI_SLT, build2(b, IR_ADDI, t, start, build_int(b, t, r.last)), n);
	}
	if (o->code == IR_CMPI)
		return high;
	struct value *first = build2(b, IR_ADDI, t, start, build_int(b, t, r.first));
	struct value *low = build_cmpi(b, CMPI_SGE, first, zero);
	return build2(b, IR_ANDI, low->type, low, high);
}

/* True if v is defined before `at` in the same block, or outside the block. */
static bool is_defined_before(const struct value *v, const struct op *at)
{
	return !v->def || v->def->block != at->block || comes_behind(at, v->def);
}

/* Replaces the block from `first` on by an `if` with two versions of it. */
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

static void version_block(const struct versioning *g, struct block *b)
{
	struct pass_state *s = g->s;
	struct op *first = NULL;
	struct value *inside = NULL;
	struct map picked = {.arena = s->ctx->arena};
	for (struct op *o = b->first; o; o = o->next) {
		if (!first && versioning_pays(g, o, NULL) && count_ops(o, MAX_DUPLICATED_OPS) <= MAX_DUPLICATED_OPS)
			first = o;
		if (!first) {
			for (u32 i = 0; i < o->nblocks; i++)
				version_block(g, o->blocks[i]);
			continue;
		}
		/* the bounds must be defined before the `if` */
		struct row r;
		if (!versioning_pays(g, o, first) || !row_of(operand(o, 0), &r) ||
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
	struct versioning g = {.s = s};
	walk(s->k->body, note_dot, &g.operands);
	walk(s->k->body, note_access, &g);
	version_block(&g, s->k->body);
	arena_free(&g.operands.scratch);
	arena_free(&g.rows.scratch);
	arena_free(&g.dot_masks.scratch);
	arena_free(&g.access_masks.scratch);
	pass_canonicalize(s);
}
