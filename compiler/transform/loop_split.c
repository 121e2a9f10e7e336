#include "transform/loop_split.h"

#include "analysis/ranges.h"

struct value *loop_end(struct builder *b, const struct op *loop)
{
	struct value *lower = build_i64(b, for_lower(loop)), *upper = build_i64(b, for_upper(loop));
	return build2(b, IR_MAXSI, lower->type, upper, lower);
}

struct value *count_iterations(struct builder *b, const struct op *loop, struct value *from, struct value *end)
{
	struct value *step = build_i64(b, for_step(loop)), *n = build2(b, IR_SUBI, end->type, end, from);
	i64 one;
	if (value_const_int(step, &one) && one == 1)
		return n;
	struct value *unit = build_int(b, n->type, 1);
	n = build2(b, IR_SUBI, n->type, build2(b, IR_ADDI, n->type, n, step), unit);
	return build2(b, IR_DIVSI, n->type, n, step);
}

static struct value *both(struct builder *b, struct value *x, struct value *y)
{
	return x ? build2(b, IR_ANDI, y->type, x, y) : y;
}

struct value *guard_range(struct pass_state *s, struct builder *b, struct value *guard, struct value *v, i64 min,
			  i64 max)
{
	if (value_range(s->ranges, v)->min < min)
		guard = both(b, guard, build_cmpi(b, CMPI_SGE, v, build_int(b, v->type, min)));
	if (value_range(s->ranges, v)->max > max)
		guard = both(b, guard, build_cmpi(b, CMPI_SLE, v, build_int(b, v->type, max)));
	return guard;
}

struct value *guarded_end(struct pass_state *s, struct builder *b, const struct op *loop, struct value *end,
			  struct value *fits)
{
	struct value *lower = for_lower(loop);
	const struct type *t = lower->type;
	fits = guard_range(s, b, fits, lower, -EXACT_BOUND, INT64_MAX);
	fits = guard_range(s, b, fits, for_upper(loop), INT64_MIN, EXACT_BOUND);
	fits = guard_range(s, b, fits, for_step(loop), INT64_MIN, EXACT_BOUND);
	if (end->type != t)
		end = build1(b, IR_TRUNCI, t, end);
	return fits ? build3(b, IR_SELECT, t, fits, end, lower) : end;
}

struct op *split_loop(struct pass_state *s, struct op *loop, struct value *end, struct map *map)
{
	struct builder b = builder_before(s->ctx, loop);
	struct op *main = op_clone(&b, loop, map);
	op_set_operand(main, FOR_UPPER, end);
	op_set_operand(loop, FOR_LOWER, end);
	for (u32 i = 0; i < loop->nresults; i++)
		op_set_operand(loop, FOR_INITS + i, &main->results[i]);
	loop->attr[ATTR_STAGES] = 1;
	loop->attr[ATTR_UNROLL] = 0;
	return main;
}
