/* Induction divisions: a loop carries the quotient and the remainder of a number that grows by a constant in each
 * iteration, such as the index of a group of scales.
 *
 *     q = i * 128 // g             q += 128 // g;  r += 128 % g;  if r >= g: q += 1, r -= g
 *
 * A division takes about 30 instructions on a GPU, and the carried form 5. Two kinds of divisions are left alone.
 * Constant divisors: LLVM multiplies by their inverse. Divisions in loops around other loops: copies of the next tile
 * are issued ahead only if the tile's address depends on its number alone. The number and the divisor must not be
 * negative, which may add a launch bound if they depend on sizes. */
#include "ir/pass.h"
#include "analysis/launch_bounds.h"

static struct value *sum(struct builder *b, struct value *x, struct value *y)
{
	return build2(b, IR_ADDI, x->type, x, y);
}

/* True if v is the index, a multiple of it, or one of these plus a loop-invariant value. *by: its increment in each
 * iteration. If `b` is not NULL, *at is set to its value in the first iteration, built before the loop. */
static bool grows(const struct op *loop, struct value *v, i64 *by, struct builder *b, struct value **at)
{
	const struct op *o = v->def;
	i64 step, c;
	if (v == for_index(loop)) {
		*at = for_lower(loop);
		return value_const_int(for_step(loop), by);
	}
	for (u32 i = 0; o && o->code == IR_MULI && i < 2; i++)
		if (operand(o, i) == for_index(loop) && value_const_int(operand(o, 1 - i), &c) &&
		    value_const_int(for_step(loop), &step)) {
			if (b)
				*at = build2(b, IR_MULI, v->type, for_lower(loop), build_int(b, v->type, c));
			return !__builtin_mul_overflow(step, c, by);
		}
	for (u32 i = 0; o && o->code == IR_ADDI && i < 2; i++) {
		struct value *x = operand(o, i), *other = operand(o, 1 - i);
		bool product = x == for_index(loop) || def_if(x, IR_MULI);
		if (product && value_defined_outside(other, loop->blocks[0]) && grows(loop, x, by, b, at)) {
			if (b)
				*at = sum(b, *at, other);
			return true;
		}
	}
	return false;
}

static bool is_division(struct pass_state *s, const struct op *loop, const struct op *o, i64 *by)
{
	struct value *unused;
	i64 c;
	if ((o->code != IR_DIVSI && o->code != IR_REMSI) || type_is_tensor(result(o)->type) ||
	    type_elem_bits(result(o)->type) != 32)
		return false;
	struct value *divisor = operand(o, 1);
	return value_defined_outside(divisor, loop->blocks[0]) && !value_const_int(divisor, &c) &&
	       grows(loop, operand(o, 0), by, NULL, &unused) && *by > 0 && *by <= INT32_MAX &&
	       bounds_keep_within(s->k, s->ranges, operand(o, 0), INT32_MAX) &&
	       bounds_keep_within(s->k, s->ranges, divisor, INT32_MAX);
}

static bool divides_too(const struct op *o, struct value *number, struct value *divisor)
{
	return (o->code == IR_DIVSI || o->code == IR_REMSI) && operand(o, 0) == number && operand(o, 1) == divisor;
}

/* Replaces the divisions of `number` by `divisor` in the loop by carried values. Returns the loop that carries them. */
static struct op *carry_division(struct pass_state *s, struct op *loop, struct value *number, struct value *divisor,
				 i64 by)
{
	struct arena scratch = {0};
	struct builder b = builder_before(s->ctx, loop);
	const struct type *t = number->type;
	value_vec inits = {0};
	struct value *first = NULL, *one = build_int(&b, t, 1), *step = build_int(&b, t, by);
	grows(loop, number, &by, &b, &first);
	/* the divisor may be 0 if the loop has no iterations */
	struct value *d = build2(&b, IR_MAXSI, t, divisor, one);
	struct value *more = build2(&b, IR_DIVSI, t, step, d), *rest = build2(&b, IR_REMSI, t, step, d);
	struct value *room = build2(&b, IR_SUBI, t, d, rest); /* adding `rest` to a remainder of at least this value
							       * exceeds the divisor */
	vec_push(&scratch, &inits, build2(&b, IR_DIVSI, t, first, d));
	vec_push(&scratch, &inits, build2(&b, IR_REMSI, t, first, d));
	bool of_index = number == for_index(loop);
	struct op *made = extend_loop(s->ctx, &scratch, loop, &inits);
	struct block *body = made->blocks[0];
	number = of_index ? for_index(made) : number;
	struct value *q = body->args[body->nargs - 2], *r = body->args[body->nargs - 1];
	for (struct op *o = body->first, *next; o; o = next) {
		next = o->next;
		if (!divides_too(o, number, divisor))
			continue;
		replace_uses(result(o), o->code == IR_DIVSI ? q : r);
		op_erase(o);
	}
	struct builder in = builder_before(s->ctx, body->last);
	in.loc = loop->loc;
	struct value *over = build_cmpi(&in, CMPI_SGE, r, room);
	struct value *plus = build3(&in, IR_SELECT, t, over, sum(&in, more, one), more);
	struct value *below = build2(&in, IR_SUBI, t, r, room), *above = sum(&in, r, rest);
	op_add_operand(s->ctx, body->last, sum(&in, q, plus));
	op_add_operand(s->ctx, body->last, build3(&in, IR_SELECT, t, over, below, above));
	arena_free(&scratch);
	return made;
}

static void visit_block(struct pass_state *s, struct block *b)
{
	for (struct op *o = b->first; o; o = o->next) {
		for (u32 i = 0; i < o->nblocks; i++)
			visit_block(s, o->blocks[i]);
		i64 by;
		bool innermost = o->code == IR_FOR && !block_has(o->blocks[0], op_is_loop);
		for (struct op *in = innermost ? o->blocks[0]->first : NULL; in;)
			if (is_division(s, o, in, &by)) {
				o = carry_division(s, o, operand(in, 0), operand(in, 1), by);
				in = o->blocks[0]->first;
			} else {
				in = in->next;
			}
	}
}

void pass_induction_divisions(struct pass_state *s)
{
	visit_block(s, s->k->body);
}
