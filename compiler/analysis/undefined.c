#include "analysis/undefined.h"

#include "support/thresholds.h"
#include "analysis/axis.h"
#include "analysis/comparison.h"

/* The elements of a load that are undefined because a condition of its mask is false. */
struct gap {
	const struct op *load;
	const struct value *condition;
	u32 along; /* bit set of the dimensions along which the condition changes */
};

enum { MAX_GAPS = 16 }; /* limit for each value; further gaps get no warning */

/* Facts about the elements of a value. */
struct elements {
	u32 changes; /* bit set of the dimensions along which the elements may differ */
	/* Bit sets of the dimensions along which some elements may have been set to 0, or to another constant such as
	 * -inf before a maximum, by the `other` of a load or by a select. */
	u32 zeros, others;
	u32 ngaps;
	struct gap gaps[MAX_GAPS];
};

struct walker {
	const struct kernel *k;
	struct diags *diags;
	struct arena scratch;
	struct map of; /* value → struct elements */
	bool follows;  /* computes gaps too; else only changes, zeros and others */
	bool tells;    /* reports uses */
	u32 walk, parts; /* the walk over the mask of a load, and the parts visited */
	struct ranges *ranges;
	const struct axis_analysis *axis;
};

/* Number of walks over the kernel for changes, and of walks for gaps. Each walk propagates loop-carried values by one
 * iteration. */
enum { ROUNDS = 3 };

static const struct elements *elements_of(const struct walker *w, const struct value *v)
{
	static const struct elements scalar;
	const struct elements *e = map_get(&w->of, v);
	return e ? e : &scalar;
}

/* The size of an entry in the map, which has no space for further gaps. */
static size_t size_of(const struct elements *e)
{
	return offsetof(struct elements, gaps) + e->ngaps * sizeof e->gaps[0];
}

static struct elements copy_of(const struct elements *e)
{
	struct elements copy;
	memcpy(&copy, e, size_of(e));
	return copy;
}

static void put(struct walker *w, const struct value *v, const struct elements *e)
{
	size_t size = size_of(e);
	struct elements *old = map_get(&w->of, v);
	if (old && old->ngaps >= e->ngaps)
		memcpy(old, e, size);
	else if (old || e->changes || e->ngaps)
		map_put(&w->of, v, arena_dup(&w->scratch, e, size));
}

static void add_gap(struct elements *e, struct gap g)
{
	for (u32 i = 0; i < e->ngaps; i++)
		if (e->gaps[i].load == g.load && e->gaps[i].condition == g.condition && e->gaps[i].along == g.along)
			return;
	if (e->ngaps < MAX_GAPS)
		e->gaps[e->ngaps++] = g;
}

static void add_elements(struct elements *to, const struct elements *e)
{
	to->changes |= e->changes;
	to->zeros |= e->zeros;
	to->others |= e->others;
	for (u32 i = 0; i < e->ngaps; i++)
		add_gap(to, e->gaps[i]);
}

/* Bit set of the dimensions in [first, end) that have more than one element. */
static u32 wide_dimensions(const struct type *t, int first, int end)
{
	u32 wide = 0;
	for (int d = 0; d < MAX_RANK; d++)
		if (d >= first && d < end && t->shape[d] > 1)
			wide |= 1u << d;
	return wide;
}

static u32 all_dimensions(const struct type *t)
{
	return type_is_tensor(t) ? wide_dimensions(t, 0, t->rank) : 0;
}

/* --- dimensions of results ------------------------------------------------------------------------------------- */

static u32 drop_dimension(u32 set, i64 axis)
{
	u32 below = (1u << axis) - 1;
	return (set & below) | (set >> 1 & ~below);
}

/* The dimensions of the reshaped tile. Dimensions that are merged map to the merged dimension. UNKNOWN if a dimension
 * in the set is split. */
enum { UNKNOWN = 1u << 31 };
static u32 reshape_dimensions(const struct type *from, const struct type *to, u32 set)
{
	u32 out = 0;
	int i = 0, j = 0;
	while (i < from->rank || j < to->rank) {
		i64 a = i < from->rank ? from->shape[i] : 1, b = j < to->rank ? to->shape[j] : 1;
		int first_i = i++, first_j = j++, wide = b > 1;
		while (a != b) {
			if (a < b) {
				a *= from->shape[i++];
			} else {
				wide += to->shape[j] > 1;
				b *= to->shape[j++];
			}
		}
		u32 group = ((1u << MIN(i, from->rank)) - 1) & ~((1u << first_i) - 1);
		if (!(set & group))
			continue;
		if (wide > 1)
			return UNKNOWN;
		out |= wide_dimensions(to, first_j, MIN(j, to->rank));
	}
	return out;
}

/* The dimensions of the result of shape operation o that come from the dimensions `set` of its operand. */
static u32 moved(const struct op *o, u32 set)
{
	u32 out = 0;
	const struct type *from = operand(o, 0)->type;
	if (o->code == IR_RESHAPE)
		return reshape_dimensions(from, result(o)->type, set);
	for (int d = 0; d < from->rank; d++)
		if (set >> d & 1 && result_dim(o, d) >= 0)
			out |= 1u << result_dim(o, d);
	return out;
}

static void move_elements(struct elements *e, const struct op *o)
{
	u32 n = e->ngaps, *sets[] = {&e->changes, &e->zeros, &e->others};
	for (u32 i = 0; i < ARRAY_LEN(sets); i++) {
		u32 set = moved(o, *sets[i]);
		*sets[i] = set == UNKNOWN ? all_dimensions(result(o)->type) : set;
	}
	e->ngaps = 0;
	for (u32 i = 0; i < n; i++) {
		e->gaps[i].along = moved(o, e->gaps[i].along);
		if (e->gaps[i].along != UNKNOWN)
			e->gaps[e->ngaps++] = e->gaps[i];
	}
}

/* --- masks ----------------------------------------------------------------------------------------------------- */

/* True if the elements have a gap from the same load. They then say nothing about the position of the gap. */
static bool has_gap(const struct elements *e, const struct gap *g)
{
	for (u32 i = 0; i < e->ngaps; i++)
		if (e->gaps[i].load == g->load)
			return true;
	return false;
}

/* True if a mask or a select condition with these elements, which changes along the dimensions `along`, may leave the
 * gap out. */
static bool may_leave_out(const struct elements *by, u32 along, const struct gap *g)
{
	return !has_gap(by, g) && (!g->along || (g->along & along));
}

static void leave_out(struct elements *e, const struct elements *by, u32 along)
{
	u32 n = e->ngaps;
	e->ngaps = 0;
	for (u32 i = 0; i < n; i++)
		if (!may_leave_out(by, along, &e->gaps[i]))
			e->gaps[e->ngaps++] = e->gaps[i];
}

/* The dimensions along which the condition is not known to be constant. */
static u32 dimensions_of(const struct walker *w, const struct value *condition)
{
	u32 along = elements_of(w, condition)->changes;
	const struct type *t = condition->type;
	for (int d = 0; type_is_tensor(t) && d < t->rank; d++)
		if (axis_of(w->axis, condition)->constancy[d] >= t->shape[d])
			along &= ~(1u << d);
	return along;
}

/* Adds a gap for each condition of v, the mask of the load or a part of it. */
static void add_conditions(struct walker *w, struct elements *e, const struct op *load, const struct value *v)
{
	const struct op *o = v->def;
	struct elements part = {0};
	u64 bits;
	if (!first_visit(v, w->walk) || value_const_bits(v, &bits) || ++w->parts > MAX_INDEX_OPERATIONS)
		return;
	if (o && o->code == IR_ANDI) {
		for (u32 i = 2; i--;)
			add_conditions(w, e, load, operand(o, i));
	} else if (o && (op_is_shape(o) || o->code == IR_SPLAT)) {
		add_conditions(w, &part, load, operand(o, 0));
		move_elements(&part, o);
		add_elements(e, &part);
	} else {
		add_gap(e, (struct gap){load, v, dimensions_of(w, v)});
	}
}

/* --- uses ------------------------------------------------------------------------------------------------------ */

/* True if v is computed from a constant by unary operations. */
static bool is_constant(const struct value *v, bool *zero)
{
	u64 bits = 1;
	while (!value_const_bits(v, &bits) && v->def && v->def->noperands == 1 && op_has(v->def, PURE))
		v = operand(v->def, 0);
	bool constant = value_const_bits(v, &bits);
	*zero = constant && !bits;
	return constant;
}

/* Records that elements become the constant v, if v is a constant, at positions that change along the dimensions
 * `along`. */
static void fill(struct elements *e, const struct value *v, u32 along)
{
	bool zero;
	if (is_constant(v, &zero))
		*(zero ? &e->zeros : &e->others) |= along;
}

/* True if v is a comparison that holds for all elements. */
static bool always_holds(struct walker *w, const struct value *v)
{
	struct less l;
	if (!v->def || v->def->code != IR_CMPI || !as_less(v->def, &l))
		return false;
	struct affine f = excess(NULL, w->ranges, v->def, &l);
	return f.known && never_positive(w->ranges, &f, v->def);
}

/* True if `use` is in a branch, or in a loop that may have no iteration, and the load is not. The condition of the
 * branch may imply that the mask is true. */
static bool is_conditional(const struct op *load, const struct op *use)
{
	const struct block *b = use->block;
	while (b != load->block && b->parent) {
		if (b->parent->code == IR_IF || b->parent->code == IR_WHILE)
			return !block_contains(b, load->block);
		b = b->parent->block;
	}
	return false;
}

static void tell(struct walker *w, const struct gap *g, const struct op *use, const char *what)
{
	if (!w->tells || is_conditional(g->load, use) || always_holds(w, g->condition))
		return;
	diag(w->diags, W_UNDEFINED_ELEMENTS, g->load->loc, what);
	diag(w->diags, N_UNDEFINED_USED, use->loc, what);
}

/* Reports the undefined elements (gaps) of e along the dimensions `along`, along which `use` combines elements. */
static void use_elements(struct walker *w, const struct elements *e, u32 along, const struct op *use, const char *what)
{
	for (u32 i = 0; i < e->ngaps; i++)
		if (e->gaps[i].along & along)
			tell(w, &e->gaps[i], use, what);
}

static void use_all(struct walker *w, const struct elements *e, const struct op *use, const char *what)
{
	for (u32 i = 0; i < e->ngaps; i++)
		tell(w, &e->gaps[i], use, what);
}

/* Reports undefined elements that a store or atomic writes, or uses as pointers, where its mask may be true. */
static void use_written(struct walker *w, const struct op *o, u32 nwritten, const char *what)
{
	const struct elements *mask = o->noperands > nwritten ? elements_of(w, operand(o, nwritten)) : NULL;
	for (u32 i = 0; i < nwritten; i++) {
		struct elements e = {0};
		add_elements(&e, elements_of(w, operand(o, i)));
		if (mask)
			leave_out(&e, mask, mask->changes);
		use_all(w, &e, o, what);
	}
	if (mask)
		use_all(w, mask, o, what);
}

/* --- operations ------------------------------------------------------------------------------------------------ */

static struct elements merged_operands(const struct walker *w, const struct op *o, u32 from, u32 to)
{
	struct elements e = {0};
	for (u32 i = from; i < to; i++)
		add_elements(&e, elements_of(w, operand(o, i)));
	return e;
}

static struct elements visit_load(struct walker *w, const struct op *o)
{
	const struct elements *mask = o->noperands > 1 ? elements_of(w, operand(o, 1)) : NULL;
	struct elements e = {0};
	add_elements(&e, elements_of(w, operand(o, 0)));
	if (mask) {
		leave_out(&e, mask, mask->changes);
		add_elements(&e, mask);
	}
	e.zeros = e.others = 0;
	if (o->noperands > 2) {
		e.changes |= elements_of(w, operand(o, 2))->changes;
		fill(&e, operand(o, 2), mask->changes);
	} else if (mask && w->follows) {
		w->walk = begin_walk(w->k->ctx);
		w->parts = 0;
		add_conditions(w, &e, o, operand(o, 1));
	}
	return e;
}

/* The dimensions along which y may neutralise elements of x * y, x & y or x + y: by a zero in a product, or a summand
 * of -inf. */
static u32 decides(const struct op *o, const struct elements *y)
{
	switch (o->code) {
	case IR_ANDI:
	case IR_ORI: return type_elem_bits(result(o)->type) == 1 ? y->changes : y->zeros | y->others;
	case IR_MULI:
	case IR_MULF: return y->zeros;
	case IR_ADDF:
	case IR_SUBF: return y->others;
	default: return 0;
	}
}

static struct elements visit_binary(const struct walker *w, const struct op *o)
{
	const struct elements *of[] = {elements_of(w, operand(o, 0)), elements_of(w, operand(o, 1))};
	struct elements e = {0};
	for (u32 i = 0; i < 2; i++) {
		struct elements one = copy_of(of[i]);
		leave_out(&one, of[1 - i], decides(o, of[1 - i]));
		add_elements(&e, &one);
	}
	if (o->code == IR_DIVF)
		e.zeros = of[0]->zeros;
	else if (o->code != IR_MULI && o->code != IR_MULF && o->code != IR_ANDI)
		e.zeros = of[0]->zeros & of[1]->zeros;
	return e;
}

static struct elements visit_select(const struct walker *w, const struct op *o)
{
	const struct elements *choice = elements_of(w, operand(o, 0));
	struct elements e = merged_operands(w, o, 1, 3);
	leave_out(&e, choice, choice->changes);
	add_elements(&e, choice);
	fill(&e, operand(o, 1), choice->changes);
	fill(&e, operand(o, 2), choice->changes);
	return e;
}

/* A boolean is zero where it is false, and exp(-inf) is zero. */
static struct elements visit_unary(const struct walker *w, const struct op *o)
{
	struct elements e = copy_of(elements_of(w, operand(o, 0)));
	if (o->code == IR_EXP || o->code == IR_EXP2)
		e.zeros |= e.others;
	else if (type_elem_bits(operand(o, 0)->type) == 1)
		e.zeros = e.changes;
	if (op_is_shape(o))
		move_elements(&e, o);
	return e;
}

static struct elements visit_dot(struct walker *w, const struct op *o)
{
	struct elements e = copy_of(elements_of(w, operand(o, 2)));
	for (u32 i = 0; i < 2; i++) {
		const struct elements *x = elements_of(w, operand(o, i)), *y = elements_of(w, operand(o, 1 - i));
		int rank = result(o)->type->rank;
		u32 inner = 1u << (i ? rank - 2 : rank - 1), of_other = 1u << (i ? rank - 1 : rank - 2);
		bool zero;
		if (!(y->zeros & of_other) && !(is_constant(operand(o, 1 - i), &zero) && zero))
			use_elements(w, x, inner, o, "a dot uses them");
		e.changes |= x->changes & ~inner;
		for (u32 g = 0; g < x->ngaps; g++)
			if (!(x->gaps[g].along & inner))
				add_gap(&e, x->gaps[g]);
	}
	return e;
}

/* True if another operand may be a weight that is zero where elements are masked off. */
static bool has_filled(const struct walker *w, const struct op *o, const struct gap *g, u32 along)
{
	for (u32 i = 0; i < o->noperands; i++) {
		const struct elements *e = elements_of(w, operand(o, i));
		if (((e->zeros | e->others) & along) && !has_gap(e, g))
			return true;
	}
	return false;
}

static struct elements visit_reduce(struct walker *w, const struct op *o)
{
	struct elements e = merged_operands(w, o, 0, o->noperands);
	i64 axis = o->attr[ATTR_AXIS];
	u32 along = 1u << axis, n = e.ngaps;
	e.ngaps = 0;
	for (u32 i = 0; i < n; i++) {
		struct gap g = e.gaps[i];
		if ((g.along & along) && !has_filled(w, o, &g, along))
			tell(w, &g, o, "a reduction uses them");
		if (g.along & along)
			continue;
		g.along = drop_dimension(g.along, axis);
		e.gaps[e.ngaps++] = g;
	}
	e.changes = drop_dimension(e.changes & ~along, axis);
	e.zeros = drop_dimension(e.zeros & ~along, axis);
	e.others = drop_dimension(e.others & ~along, axis);
	return e;
}

/* The index may select defined elements only, so gaps along the axis are dropped. */
static struct elements visit_gather(const struct walker *w, const struct op *o)
{
	struct elements e = {.changes = all_dimensions(result(o)->type)};
	const struct elements *source = elements_of(w, operand(o, 0)), *index = elements_of(w, operand(o, 1));
	for (u32 i = 0; i < source->ngaps; i++)
		if (!(source->gaps[i].along & 1u << o->attr[ATTR_AXIS]))
			add_gap(&e, source->gaps[i]);
	for (u32 i = 0; i < index->ngaps; i++)
		add_gap(&e, index->gaps[i]);
	return e;
}

static struct elements visit_histogram(struct walker *w, const struct op *o)
{
	struct elements e = copy_of(elements_of(w, operand(o, 0)));
	if (o->noperands > 1)
		leave_out(&e, elements_of(w, operand(o, 1)), elements_of(w, operand(o, 1))->changes);
	use_elements(w, &e, 1, o, "a histogram counts them");
	return (struct elements){.changes = 1};
}

/* The facts about the elements of each result of o. They are the same for all results. */
static struct elements visit_plain(struct walker *w, const struct op *o)
{
	switch (o->code) {
	case IR_MAKE_RANGE: return (struct elements){.changes = all_dimensions(result(o)->type)};
	case IR_LOAD: return visit_load(w, o);
	case IR_SELECT: return visit_select(w, o);
	case IR_DOT: return visit_dot(w, o);
	case IR_REDUCE: return visit_reduce(w, o);
	case IR_GATHER: return visit_gather(w, o);
	case IR_HISTOGRAM: return visit_histogram(w, o);
	case IR_STORE: use_written(w, o, 2, "a store writes them"); return (struct elements){0};
	case IR_ATOMIC_RMW:
	case IR_ATOMIC_CAS:
		use_written(w, o, o->code == IR_ATOMIC_CAS ? 3 : 2, "an atomic operation writes them");
		return (struct elements){.changes = all_dimensions(result(o)->type)};
	default: break;
	}
	if (o->noperands == 1)
		return visit_unary(w, o);
	if (o->noperands == 2 && op_has(o, ELEM))
		return visit_binary(w, o);
	struct elements e = merged_operands(w, o, 0, o->noperands);
	if (o->code == IR_JOIN)
		e.changes |= 1u << (result(o)->type->rank - 1);
	return e;
}

/* Merges the facts about the values that a control operation passes to v. */
static void merge_into(struct walker *w, const struct value *v)
{
	struct use *from[2];
	u32 n = operands_passed_to(v, from);
	struct elements e = copy_of(elements_of(w, from[0]->value));
	if (n > 1)
		add_elements(&e, elements_of(w, from[1]->value));
	put(w, v, &e);
}

static void visit_block(struct walker *w, const struct block *b);

static void visit_loop(struct walker *w, const struct op *o)
{
	if (o->code == IR_FOR) {
		for (u32 i = 0; i < o->nresults; i++)
			merge_into(w, for_arg(o, i));
		visit_block(w, o->blocks[0]);
		for (u32 i = 0; i < o->nresults; i++)
			merge_into(w, &o->results[i]);
		return;
	}
	const struct block *before = o->blocks[0], *after = o->blocks[1];
	for (u32 i = 0; i < before->nargs; i++)
		merge_into(w, before->args[i]);
	visit_block(w, before);
	for (u32 i = 0; i < o->nresults; i++) {
		merge_into(w, after->args[i]);
		merge_into(w, &o->results[i]);
	}
	visit_block(w, after);
}

static void visit(struct walker *w, const struct op *o)
{
	if (op_is_loop(o)) {
		visit_loop(w, o);
	} else if (o->code == IR_IF) {
		for (u32 i = 0; i < 2; i++)
			visit_block(w, o->blocks[i]);
		for (u32 i = 0; i < o->nresults; i++)
			merge_into(w, &o->results[i]);
	} else {
		struct elements e = visit_plain(w, o);
		for (u32 i = 0; i < o->nresults; i++)
			put(w, &o->results[i], &e);
	}
}

static void visit_block(struct walker *w, const struct block *b)
{
	for (const struct op *o = b->first; o; o = o->next)
		visit(w, o);
}

static bool leaves_gaps(const struct op *o)
{
	u64 bits;
	return o->code == IR_LOAD && o->noperands == 2 && !value_const_bits(operand(o, 1), &bits);
}

void warn_of_undefined(const struct kernel *k, struct diags *d)
{
	if (!block_has(k->body, leaves_gaps))
		return;
	struct kernel copy = *k; /* on a copy: the analysis adds launch bounds to the kernel, and only passes may do
				  * that */
	struct walker w = {.k = k, .diags = d, .ranges = ranges_analyze(k)};
	w.axis = axis_analyze(&copy, w.ranges);
	w.of.arena = &w.scratch;
	for (int round = 0; round < 2 * ROUNDS; round++) {
		w.follows = round >= ROUNDS;
		w.tells = round == 2 * ROUNDS - 1;
		visit_block(&w, k->body);
	}
	arena_free(&w.scratch);
}
