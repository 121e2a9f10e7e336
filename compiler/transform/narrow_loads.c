/* Narrowing of broadcast loads: a tile that contains each element of memory several times in a row is loaded once and
 * repeated in registers.
 *
 * Eight 4-bit weights packed in a word, or one scale for 128 columns, are addressed by `arange // 8`: 8 elements of the
 * tile have the same address. The narrow load reads every eighth element, and expand_dims, broadcast and reshape build
 * the whole tile from it. That is an eighth of the memory traffic, and the words can be unpacked in the layout of a dot
 * operand. If all elements of a tile have the same address, the load becomes a scalar load. */
#include "support/thresholds.h"
#include "ir/graph.h"
#include "analysis/axis.h"
#include "transform/first_element.h"
#include "ir/pass.h"

/* A sample of the operands of a load: every step-th element along a dimension. */
struct sample {
	struct pass_state *s;
	i32 step;
	struct arena scratch;
	struct map along;     /* value → 1 + the dimension along which it can be sampled */
	struct map made;      /* value → its sample */
	struct map quotients; /* value → its sample, divided by the step */
};

static const struct type *type_with_dim_size(struct ir_context *c, const struct type *t, int d, i32 size)
{
	i32 shape[MAX_RANK];
	memcpy(shape, t->shape, sizeof shape);
	shape[d] = size;
	return type_tensor(c, type_elem(t), t->rank, shape);
}

static const struct type *sampled(const struct sample *m, const struct type *t, int d)
{
	return type_with_dim_size(m->s->ctx, t, d, t->shape[d] / m->step);
}

/* The dimension along which an operand of o is sampled for a sample of the result along d. */
static int sampled_dim(const struct op *o, int d)
{
	return op_is_shape(o) ? operand_dim(o, d) : d;
}

static bool divides_evenly(const struct sample *m, const struct op *o)
{
	i64 by;
	return (o->code == IR_DIVSI || o->code == IR_DIVUI) && value_const_int(operand(o, 1), &by) && by > 0 &&
	       by % m->step == 0;
}

static bool is_multiple(const struct sample *m, const struct value *scalar)
{
	return axis_of(m->s->axis, scalar)->divisibility[0] % m->step == 0;
}

/* True if the sample of v can be divided by the step without a remainder by changing constants and scalars only. */
static bool can_divide(const struct sample *m, const struct value *v)
{
	struct value_walk w = {.id = begin_walk(m->s->ctx)};
	bool yes = true;
	u32 operations = 0;
	visit_later(&w, v);
	while (yes && (v = visit_next(&w))) {
		const struct op *o = ++operations > MAX_INDEX_OPERATIONS ? NULL : v->def;
		switch (o ? o->code : IR_OPCODES) {
		case IR_MAKE_RANGE: yes = o->attr[ATTR_START] % m->step == 0; break;
		case IR_SPLAT: yes = is_multiple(m, operand(o, 0)); break;
		case IR_ADDI: visit_operands(&w, o); break;
		default: yes = false;
		}
	}
	return end_walk(&w, yes);
}

/* True if a sample of o's result along dimension d needs a sample of operand i. */
static bool is_sampled(const struct op *o, u32 i, int d)
{
	const struct type *t = operand(o, i)->type;
	bool is_source = o->code == IR_CONSTANT || o->code == IR_MAKE_RANGE || o->code == IR_SPLAT;
	return !is_source && type_is_tensor(t) && !(o->code == IR_BROADCAST && t->shape[d] == 1);
}

static bool can_be_remade(const struct op *o)
{
	u64 bits;
	switch (o->code) {
	case IR_CONSTANT: return value_const_bits(result(o), &bits);
	case IR_MAKE_RANGE:
	case IR_SPLAT:
	case IR_BROADCAST:
	case IR_EXPAND_DIMS:
	case IR_TRANS: return true;
	default: return op_has(o, ELEM) && op_has(o, PURE) && !op_may_trap(o);
	}
}

/* True if v can be sampled along dimension d. Each value is sampled along one dimension only. */
static bool can_sample(struct sample *m, struct value *v, int d)
{
	VEC(struct demand) work = {0};
	vec_push(&m->scratch, &work, ((struct demand){v, d}));
	while (work.len) {
		struct demand at = work.at[--work.len];
		const struct op *o = at.v->def;
		void *known = map_get(&m->along, at.v), *now = (void *)(at.aspect + 1);
		if (known == now)
			continue;
		if (known || !o || m->along.len == MAX_INDEX_OPERATIONS || !type_is_tensor(at.v->type) || o->nblocks ||
		    !can_be_remade(o))
			return false;
		map_put(&m->along, at.v, now);
		d = (int)at.aspect;
		for (u32 i = 0; i < o->noperands; i++)
			if (is_sampled(o, i, d))
				vec_push(&m->scratch, &work, ((struct demand){operand(o, i), sampled_dim(o, d)}));
	}
	return true;
}

/* The sample of v divided by the step. */
static struct value *divided_by_step(struct sample *m, const struct value *v)
{
	struct op *o = v->def;
	struct builder b = builder_after(m->s->ctx, o);
	const struct type *t = sampled(m, v->type, 0);
	struct value *made = map_get(&m->quotients, v), *scalar = o->noperands ? operand(o, 0) : NULL;
	if (made)
		return made;
	if (o->code == IR_ADDI) {
		struct value *x = divided_by_step(m, operand(o, 0)), *y = divided_by_step(m, operand(o, 1));
		made = build2(&b, IR_ADDI, t, x, y);
	} else if (o->code == IR_SPLAT) {
		made = build2(&b, IR_DIVSI, scalar->type, scalar, build_int(&b, scalar->type, m->step));
		made = build1(&b, IR_SPLAT, t, made);
	} else {
		made = build1(&b, IR_MAKE_RANGE, t, NULL);
		made->def->attr[ATTR_START] = o->attr[ATTR_START] / m->step;
		made->def->attr[ATTR_END] = o->attr[ATTR_END] / m->step;
	}
	map_put(&m->quotients, v, made);
	return made;
}

/* True if o is a division and its sample can be computed from quotients of samples by the step. */
static bool is_divided(const struct sample *m, const struct op *o)
{
	return result(o)->type->rank == 1 && divides_evenly(m, o) && can_divide(m, operand(o, 0));
}

static struct value *make_sample(struct sample *m, struct value *v, int d);

/* The sample of v along dimension d. */
static struct value *sample(struct sample *m, struct value *v, int d)
{
	struct value *made = map_get(&m->made, v);
	if (!made) {
		made = make_sample(m, v, d);
		map_put(&m->made, v, made);
	}
	return made;
}

/* Builds the sample of v after v's definition, so that samples of loop-invariant values stay outside loops. */
static struct value *make_sample(struct sample *m, struct value *v, int d)
{
	struct op *o = v->def;
	struct builder b = builder_after(m->s->ctx, o);
	const struct type *t = sampled(m, v->type, d);
	u64 bits;
	i64 by;
	if (o->code == IR_CONSTANT && value_const_bits(v, &bits))
		return build_constant(&b, t, bits);
	if (o->code == IR_SPLAT)
		return build1(&b, IR_SPLAT, t, operand(o, 0));
	if (o->code == IR_MAKE_RANGE) {
		struct value *r = build1(&b, IR_MAKE_RANGE, t, NULL);
		r->def->attr[ATTR_END] = t->shape[0];
		r = build2(&b, IR_MULI, t, r, build_int(&b, t, m->step));
		return build2(&b, IR_ADDI, t, r, build_int(&b, t, o->attr[ATTR_START]));
	}
	if (is_divided(m, o) && value_const_int(operand(o, 1), &by)) {
		struct value *x = divided_by_step(m, operand(o, 0));
		return by == m->step ? x : build2(&b, o->code, t, x, build_int(&b, t, by / m->step));
	}
	struct map map = {.arena = &m->scratch};
	for (u32 i = 0; i < o->noperands; i++)
		if (is_sampled(o, i, d))
			map_put(&map, operand(o, i), sample(m, operand(o, i), sampled_dim(o, d)));
	struct op *made = op_clone(&b, o, &map);
	made->results[0].type = t;
	made->hints = NULL; /* of all elements */
	return result(made);
}

/* The tile of type t that repeats each element of x `step` times along dimension d. */
static struct value *repeat_elements(struct builder *b, struct value *x, const struct type *t, int d, i32 step)
{
	if (x->type->shape[d] == 1)
		return build1(b, IR_BROADCAST, t, x);
	i32 shape[MAX_RANK];
	for (int i = 0, from = 0; i <= t->rank; i++)
		shape[i] = i == d + 1 ? 1 : x->type->shape[from++];
	struct value *v = build1(b, IR_EXPAND_DIMS, type_tensor(b->ctx, type_elem(t), t->rank + 1, shape), x);
	v->def->attr[ATTR_AXIS] = d + 1;
	shape[d + 1] = step;
	v = build1(b, IR_BROADCAST, type_tensor(b->ctx, type_elem(t), t->rank + 1, shape), v);
	return build1(b, IR_RESHAPE, t, v);
}

/* True if every operand is uniform: a single scalar for all elements. */
static bool is_uniform(const struct pass_state *s, const struct op *load)
{
	bool yes = true;
	for (u32 i = 0; i < load->noperands; i++) {
		const struct value *v = operand(load, i);
		u64 bits;
		for (int d = 0; d < v->type->rank && !value_const_bits(v, &bits); d++)
			yes &= axis_of(s->axis, v)->constancy[d] >= v->type->shape[d];
		yes = yes && has_first_element(s->ctx, v);
	}
	return yes;
}

static void load_scalar(struct pass_state *s, struct op *o)
{
	struct arena scratch = {0};
	struct map made = {.arena = &scratch};
	struct builder b = builder_after(s->ctx, o);
	struct value *ops[3] = {0};
	const struct type *t = result(o)->type;
	for (u32 i = 0; i < o->noperands; i++)
		ops[i] = first_element(&b, NULL, &made, operand(o, i));
	struct value *scalar = build3(&b, IR_LOAD, type_elem(t), ops[0], ops[1], ops[2]);
	memcpy(scalar->def->attr, o->attr, sizeof o->attr);
	replace_uses(result(o), build1(&b, IR_SPLAT, t, scalar));
	op_erase(o);
	arena_free(&scratch);
}

static void visit(struct op *o, void *arg)
{
	struct pass_state *s = arg;
	if (o->code != IR_LOAD || !type_is_tensor(result(o)->type) || o->attr[ATTR_VOLATILE])
		return;
	const struct type *t = result(o)->type;
	if (is_uniform(s, o)) {
		load_scalar(s, o);
		return;
	}
	const struct axis_info *info = axis_of(s->axis, result(o));
	int d = 0;
	for (int i = 1; i < t->rank; i++)
		d = info->constancy[i] > info->constancy[d] ? i : d;
	struct sample m = {.s = s, .step = MIN(info->constancy[d], t->shape[d])};
	m.made.arena = m.along.arena = m.quotients.arena = &m.scratch;
	bool ok = t->rank > 1 && t->rank < MAX_RANK && m.step > 1;
	for (u32 i = 0; i < o->noperands && ok; i++)
		ok = can_sample(&m, operand(o, i), d);
	if (ok) {
		struct builder b = builder_after(s->ctx, o);
		struct map map = {.arena = &m.scratch};
		for (u32 i = 0; i < o->noperands; i++)
			map_put(&map, operand(o, i), sample(&m, operand(o, i), d));
		struct op *load = op_clone(&b, o, &map);
		load->results[0].type = sampled(&m, t, d);
		replace_uses(result(o), repeat_elements(&b, result(load), t, d, m.step));
		op_erase(o);
	}
	arena_free(&m.scratch);
}

void pass_narrow_loads(struct pass_state *s)
{
	walk(s->k->body, visit, s);
	remove_dead_code(s->k);
}
