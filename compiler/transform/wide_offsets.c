#include "transform/wide_offsets.h"

#include "ir/graph.h"
#include "ir/pass.h"
#include "analysis/ranges.h"

struct widening {
	struct kernel *k;
	struct ranges *ranges;
	struct arena scratch;
	struct map wide;            /* value → the same value in 64 bits */
	VEC(struct use *) sources;  /* operands that are passed to arguments and results that are already wide */
	bool changed;
};

/* --- classification ------------------------------------------------------------------------------------------ */

static bool is_index(const struct value *v)
{
	return !type_is_ptr(v->type) && (type_dtype(v->type) == DT_I32 || type_dtype(v->type) == DT_I64);
}

/* True if o may wrap even if its operands do not. */
static bool op_grows(const struct op *o)
{
	return o->code == IR_ADDI || o->code == IR_SUBI || o->code == IR_MULI || o->code == IR_SHLI;
}

/* True if o is rebuilt with wide operands. */
static bool is_remade(const struct op *o)
{
	switch (o->code) {
	case IR_DIVSI:
	case IR_REMSI:
	case IR_MINSI:
	case IR_MAXSI:
	case IR_SELECT:
	case IR_SPLAT:
	case IR_UNSPLAT: return true;
	case IR_EXTSI: return is_index(operand(o, 0));                  /* from 32 to 64 bits */
	case IR_BITCAST: return operand(o, 0)->type == result(o)->type; /* a no-op that carries hints */
	default: return op_grows(o) || op_is_shape(o);
	}
}

/* True if a control operation passes values to v. */
static bool is_passed(const struct value *v)
{
	struct use *from[2];
	return operands_passed_to(v, from);
}

static bool same_value(const struct value *v, const struct value *wide)
{
	return wide == v || def_if(v, IR_CONSTANT) || (def_if(wide, IR_EXTSI) && operand(wide->def, 0) == v);
}

/* --- construction -------------------------------------------------------------------------------------------- */

static struct value *known_wide(const struct widening *w, const struct value *v)
{
	return map_get(&w->wide, v);
}

static const struct type *wide_type(const struct widening *w, const struct value *v)
{
	return type_with_dtype(w->k->ctx, v->type, DT_I64);
}

static struct builder behind(const struct widening *w, const struct value *v)
{
	return v->def ? builder_after(w->k->ctx, v->def) : builder_before(w->k->ctx, v->block->first);
}

/* Replaces uses of the 32-bit value v by the low half of `wide`, built at b. */
static void use_low_half(struct widening *w, struct builder *b, struct value *v, const struct type *narrow,
			 struct value *wide)
{
	struct value *low = build1(b, IR_TRUNCI, narrow, wide);
	low->name = v->name;
	replace_uses(v, low);
	op_set_operand(low->def, 0, wide);
	map_put(&w->wide, low, wide);
}

/* Widens v, an argument or a result of a control operation. */
static void widen_passed(struct widening *w, struct value *v)
{
	struct builder b = behind(w, v);
	const struct type *narrow = v->type;
	map_put(&w->wide, v, v);
	if (type_dtype(narrow) == DT_I64)
		return;
	v->type = wide_type(w, v);
	use_low_half(w, &b, v, narrow, v);
}

/* Widens v, an argument or result of a control operation, with the corresponding argument and result. */
static void widen_control(struct widening *w, struct value *v)
{
	struct op *o = v->def ? v->def : v->block->parent;
	struct use *from[2];
	u32 n = operands_passed_to(v, from);
	for (u32 i = 0; i < n; i++)
		vec_push(&w->scratch, &w->sources, from[i]);
	if (o->code == IR_WHILE && v->block == o->blocks[0]) { /* the condition region, which has no results */
		widen_passed(w, v);
		return;
	}
	u32 i = o->code == IR_FOR && !v->def ? for_arg_number(v) : v->index;
	struct value *arg = result_passed_by(o, i), *out = &o->results[i];
	widen_passed(w, arg);
	if (out != arg)
		widen_passed(w, out);
}

static bool find_narrow_operand(void *arg, struct demand d, struct demand *first)
{
	const struct widening *w = arg;
	const struct op *o = d.v->def;
	if (known_wide(w, d.v) || !o || !is_remade(o))
		return false;
	for (u32 i = 0; i < o->noperands; i++) {
		struct value *x = operand(o, i);
		if (is_index(x) && !known_wide(w, x)) {
			*first = (struct demand){x, 0};
			return true;
		}
	}
	return false;
}

/* v sign-extended to 64 bits. */
static struct value *extended(struct widening *w, struct value *v)
{
	struct builder b = behind(w, v);
	i64 c;
	if (type_dtype(v->type) == DT_I64)
		return v;
	if (def_if(v, IR_CONSTANT) && value_const_int(v, &c))
		return build_int(&b, wide_type(w, v), c);
	return build1(&b, IR_EXTSI, wide_type(w, v), v);
}

static struct value *remade(struct widening *w, struct value *v)
{
	struct op *o = v->def;
	struct value *in[3] = {0};
	bool same = true;
	for (u32 i = 0; i < o->noperands; i++) {
		struct value *x = operand(o, i);
		in[i] = is_index(x) ? known_wide(w, x) : x;
		same &= same_value(x, in[i]);
	}
	if (o->code == IR_EXTSI)
		return same ? v : in[0];
	bool wraps = op_grows(o) && type_dtype(v->type) == DT_I32 && value_range(w->ranges, v)->overflows;
	if (same && !wraps)
		return extended(w, v);
	struct builder b = behind(w, v);
	struct value *made = build3(&b, o->code, wide_type(w, v), in[0], in[1], in[2]);
	memcpy(made->def->attr, o->attr, sizeof o->attr);
	made->def->hints = o->hints;
	made->name = v->name;
	if (type_dtype(v->type) == DT_I32)
		use_low_half(w, &b, v, v->type, made);
	return made;
}

static void make_wide(void *arg, struct demand d)
{
	struct widening *w = arg;
	if (known_wide(w, d.v))
		return;
	if (is_passed(d.v))
		widen_control(w, d.v);
	else
		map_put(&w->wide, d.v, d.v->def && is_remade(d.v->def) ? remade(w, d.v) : extended(w, d.v));
}

static struct value *wide_of(struct widening *w, struct value *v)
{
	if (!known_wide(w, v))
		meet_demand((struct demand){v, 0}, find_narrow_operand, make_wide, w);
	while (w->sources.len) {
		const struct use *u = w->sources.at[--w->sources.len];
		if (!known_wide(w, u->value))
			meet_demand((struct demand){u->value, 0}, find_narrow_operand, make_wide, w);
		/* this may have replaced the operand */
		op_set_operand(u->user, (u32)(u - u->user->operands), known_wide(w, u->value));
	}
	return known_wide(w, v);
}

/* --- uses ---------------------------------------------------------------------------------------------------- */

static void widen_address(struct op *o, void *arg)
{
	if (o->code != IR_ADDPTR || !is_index(operand(o, 1)))
		return;
	struct value *offset = operand(o, 1), *wide = wide_of(arg, offset);
	if (!same_value(operand(o, 1), wide))
		op_set_operand(o, 1, wide);
}

/* True if the 64-bit version of v is more than an extension of v. */
static bool is_widened(const struct widening *w, const struct value *v)
{
	if (def_if(v, IR_EXTSI))
		v = operand(v->def, 0);
	const struct value *wide = known_wide(w, v);
	return wide && !same_value(v, wide);
}

static void widen_comparison(struct op *o, void *arg)
{
	struct widening *w = arg;
	if (o->code != IR_CMPI || !is_index(operand(o, 0)) || o->attr[ATTR_PREDICATE] >= CMPI_ULT)
		return;
	if (!is_widened(w, operand(o, 0)) && !is_widened(w, operand(o, 1)))
		return;
	struct value *x = wide_of(w, operand(o, 0)), *y = wide_of(w, operand(o, 1));
	w->changed |= x != operand(o, 0) || y != operand(o, 1);
	op_set_operand(o, 0, x);
	op_set_operand(o, 1, y);
}

void widen_offsets(struct kernel *k)
{
	pass_cse(&(struct pass_state){.k = k}); /* masks often recompute sums that addresses contain too */
	struct widening w = {.k = k, .ranges = ranges_analyze(k)};
	w.wide.arena = &w.scratch;
	walk(k->body, widen_address, &w);
	do {
		w.changed = false;
		walk(k->body, widen_comparison, &w);
	} while (w.changed);
	arena_free(&w.scratch);
	remove_dead_code(k);
}

/* --- detection ----------------------------------------------------------------------------------------------- */

static void add_offset(struct op *o, void *walk)
{
	if (o->code == IR_ADDPTR)
		visit_later(walk, operand(o, 1));
}

bool has_narrow_offsets(const struct kernel *k)
{
	struct value_walk w = {.id = begin_walk(k->ctx)};
	walk(k->body, add_offset, &w);
	for (const struct value *v; (v = visit_next(&w));) {
		if (type_dtype(v->type) == DT_I32 && (is_passed(v) || (v->def && op_grows(v->def))))
			return end_walk(&w, true);
		if (v->def && is_remade(v->def))
			visit_operands(&w, v->def);
	}
	return false;
}
