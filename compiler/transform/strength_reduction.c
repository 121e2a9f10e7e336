/* Strength reduction: a loop that carries a pointer, or a tile of pointers or integers, and advances all elements by
 * the same amount, carries a scalar offset instead. The amount may differ between iterations for a tile. The value in
 * the loop is the initial value plus the offset. This takes one register instead of one or two for each element, gives
 * addresses that differ by constants, lets each use compute the tile in its own layout, and lets tensors begin at a
 * parameter's pointer. */
#include "ir/pass.h"
#include "analysis/index_forms.h"

/* The scalar that all elements of v equal, or v itself if it is a scalar defined outside the loop; NULL if none. */
static struct value *uniform_scalar(struct pass_state *s, struct op *loop, struct value *v)
{
	i64 constant;
	if (!type_is_tensor(v->type))
		return value_defined_outside(v, loop->blocks[0]) ? v : NULL;
	if (value_const_int(v, &constant)) {
		struct builder b = builder_before(s->ctx, loop);
		return build_int(&b, type_scalar(s->ctx, type_dtype(v->type)), constant);
	}
	return def_if(v, IR_SPLAT) ? operand(v->def, 0) : NULL;
}

static struct value *advanced(struct builder *b, struct value *v, struct value *by)
{
	struct value *all = by;
	if (type_is_tensor(v->type))
		all = build1(b, IR_SPLAT, type_with_dtype(b->ctx, v->type, type_dtype(by->type)), by);
	return build2(b, type_is_ptr(v->type) ? IR_ADDPTR : IR_ADDI, v->type, v, all);
}

/* Replaces uses of v, which becomes the offset, by init advanced by v. The operations built here keep v. */
static void replace_by_advanced(struct builder b, struct value *v, struct value *init)
{
	struct value *now = advanced(&b, init, v);
	bool is_tile = type_is_tensor(init->type);
	struct op *reader = is_tile ? operand(now->def, 1)->def : now->def;
	now->name = v->name;
	replace_uses(v, now);
	op_set_operand(reader, !is_tile, v);
}

static void carry_offset(struct pass_state *s, struct op *loop, u32 i)
{
	struct block *body = loop->blocks[0];
	struct value *arg = for_arg(loop, i), *next = for_yielded(loop, i), *init = for_init(loop, i),
		     *out = &loop->results[i], *by = increment_of(arg);
	struct value *step =
		by && (type_is_tensor(arg->type) || type_is_ptr(arg->type)) ? uniform_scalar(s, loop, by) : NULL;
	if (!step)
		return;
	const struct type *t = type_is_ptr(arg->type) ? type_scalar(s->ctx, DT_I64) : step->type;
	struct builder before = builder_before(s->ctx, loop), in = builder_before(s->ctx, body->first),
		       end = builder_before(s->ctx, body->last), after = builder_after(s->ctx, loop);
	before.loc = in.loc = end.loc = after.loc = next->def->loc;
	if (step->type != t)
		step = build1(value_defined_outside(step, body) ? &before : &end, IR_EXTSI, t, step);
	op_set_operand(loop, FOR_INITS + i, build_int(&before, t, 0));
	op_set_operand(body->last, i, build2(&end, IR_ADDI, t, arg, step));
	replace_by_advanced(in, arg, init);
	replace_by_advanced(after, out, init);
	op_set_operand(operand(body->last, i)->def, 0, arg);
	arg->type = out->type = t;
}

/* True if v is `from` plus a constant, which is stored in *by. */
static bool is_apart(const struct value *v, const struct value *from, i64 *by)
{
	const struct op *o = v->def;
	*by = 0;
	if (equal_values(v, from))
		return true;
	if (!o || (o->code != IR_ADDI && o->code != IR_SUBI) || !equal_values(operand(o, 0), from) ||
	    !value_const_int(operand(o, 1), by))
		return false;
	if (o->code == IR_SUBI)
		*by = (i64) - (u64)*by;
	return true;
}

/* The value in the loop of a carried number that begins as `first` and grows by `by`, computed from the index. NULL if
 * it is better carried. If it grows by the loop's step, its difference from the index is constant. If both begin at 0
 * and it grows by a multiple of the step, it is a multiple of the index. In loops around other loops, whose addresses
 * depend on it, it may also be a multiple plus `first`. */
static struct value *from_index(struct builder *b, const struct op *loop, struct value *first, struct value *by)
{
	struct value *index = for_index(loop), *factor = by;
	bool nest = block_has(loop->blocks[0], op_is_loop);
	i64 apart, begin = 1, from, step, moved;
	if (equal_values(by, for_step(loop)) && is_apart(first, for_lower(loop), &apart))
		return apart ? build2(b, IR_ADDI, by->type, index, build_int(b, by->type, apart)) : index;
	value_const_int(first, &begin);
	if (!value_const_int(for_lower(loop), &from) || from || !value_const_int(for_step(loop), &step) || step <= 0 ||
	    (begin && !nest))
		return NULL;
	if (value_const_int(by, &moved) && moved % step == 0)
		factor = build_int(b, by->type, moved / step);
	else if (!nest || step != 1 || !value_defined_outside(by, loop->blocks[0]))
		return NULL;
	struct value *grown = build2(b, IR_MULI, by->type, index, factor);
	return begin ? build2(b, IR_ADDI, by->type, grown, first) : grown;
}

/* Replaces carried value i by an expression of the index. True if the expression is a sum. */
static bool name_index(struct pass_state *s, struct op *loop, u32 i)
{
	struct value *arg = for_arg(loop, i), *by = increment_of(arg);
	bool nest = block_has(loop->blocks[0], op_is_loop);
	if (arg->type != for_index(loop)->type || !by ||
	    (!nest && value_has_one_use(arg) && !equal_values(by, for_step(loop))))
		return false;
	struct builder in = builder_before(s->ctx, loop->blocks[0]->first);
	in.loc = for_yielded(loop, i)->def->loc;
	struct value *now = from_index(&in, loop, for_init(loop, i), by);
	if (!now)
		return false;
	if (now != for_index(loop))
		now->name = arg->name;
	replace_uses(arg, now);
	return def_if(now, IR_ADDI) != NULL;
}

void name_offsets(struct pass_state *s, struct op *loop)
{
	i64 from, step, first;
	if (!value_const_int(for_lower(loop), &from) || from || !value_const_int(for_step(loop), &step) || step <= 0 ||
	    !is_pow2((u64)step))
		return;
	for (u32 i = 0; i < loop->nresults; i++) {
		struct value *arg = for_arg(loop, i), *by = increment_of(arg);
		if (!by || arg->type != type_scalar(s->ctx, DT_I64) || !value_const_int(for_init(loop, i), &first) ||
		    first)
			continue;
		const struct value *narrow = def_if(by, IR_EXTSI) ? operand(by->def, 0) : by;
		if (!value_defined_outside(by, loop->blocks[0]) || !is_known_multiple(s->k, narrow, step))
			continue;
		struct builder before = builder_before(s->ctx, loop),
			       in = builder_before(s->ctx, loop->blocks[0]->first);
		struct value *each = build2(&before, IR_DIVSI, by->type, by, build_int(&before, by->type, step));
		struct value *now = build2(&in, IR_MULI, by->type, build_i64(&in, for_index(loop)), each);
		now->name = arg->name;
		replace_uses(arg, now);
	}
}

struct reduction {
	struct pass_state *s;
	bool sums; /* carried numbers were replaced by sums with an index */
};

static void visit_loop(struct op *o, void *arg)
{
	struct reduction *r = arg;
	for (u32 i = 0; o->code == IR_FOR && i < o->nresults; i++) {
		carry_offset(r->s, o, i);
		r->sums |= name_index(r->s, o, i);
	}
}

void pass_strength_reduction(struct pass_state *s)
{
	struct reduction r = {.s = s};
	walk(s->k->body, visit_loop, &r);
	if (r.sums) { /* so that equal numbers become the same value */
		pass_canonicalize(s);
		pass_cse(s);
	}
	remove_dead_code(s->k);
}

/* The increment of carried number i in each iteration; NULL if it has none. */
static const struct value *increment(const struct op *loop, u32 i)
{
	const struct value *arg = for_arg(loop, i);
	return arg->type->kind == TY_SCALAR ? increment_of(arg) : NULL;
}

/* True if carried value i is read only after the loop. */
static bool only_result_used(const struct op *loop, u32 i)
{
	return !value_unused(&loop->results[i]) && value_has_one_use(for_arg(loop, i)) &&
	       value_has_one_use(for_yielded(loop, i));
}

/* The loop, or the last of the operations with effects directly after it, such as waits, that do not read v. */
static struct op *end_of_effects(struct op *loop, const struct value *v)
{
	struct op *last = loop;
	for (struct op *o = loop->next; !op_has(o, PURE) && !op_has(o, END) && !o->nblocks; o = o->next) {
		for (u32 i = 0; i < o->noperands; i++)
			if (operand(o, i) == v)
				return last;
		last = o;
	}
	return last;
}

static void merge_increments(struct op *loop, void *arg)
{
	struct ir_context *ctx = arg;
	for (u32 i = 0; loop->code == IR_FOR && i < loop->nresults; i++) {
		const struct value *step = increment(loop, i);
		if (!step || !only_result_used(loop, i))
			continue;
		for (u32 k = 0; k < loop->nresults; k++) {
			struct value *mine = &loop->results[i], *other = &loop->results[k];
			if (k == i || other->type != mine->type || only_result_used(loop, k) ||
			    !equal_values(step, increment(loop, k)))
				continue;
			struct builder after = builder_after(ctx, end_of_effects(loop, mine));
			struct value *ahead =
				build2(&after, IR_SUBI, mine->type, for_init(loop, k), for_init(loop, i));
			replace_uses(mine, build2(&after, IR_SUBI, mine->type, other, ahead));
			break;
		}
	}
}

void merge_induction_variables(struct kernel *k, struct ir_context *ctx)
{
	walk(k->body, merge_increments, ctx);
	remove_dead_code(k);
}
