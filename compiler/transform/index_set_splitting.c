/* Index-set splitting: a loop whose mask matters only at its end becomes a main loop without the mask and a tail.
 *
 * A comparison a·i + b <= 0 in a loop's index i, with a > 0, is true exactly for i <= floor(-b / a). The main loop runs
 * up to there with the comparison replaced by true. A second loop (the tail, usually one iteration or none) runs the
 * remaining iterations with the original mask. The bound is computed in 64 bits before the loop, and only comparisons
 * that cannot wrap in their width are split. So the split is correct for all values.
 *
 * A split costs the code of a second loop and the time to enter it. It is done where the mask costs more: in loops with
 * dots, where the mask prevents wide loads or stores, where the mask combines rows and columns, and where the bounds
 * are constants, so that often only one of the loops remains. It is not done if all masks belong to whole 16-byte
 * copies to shared memory: cp.async takes such a mask as an operand. */
#include "support/thresholds.h"
#include "ir/graph.h"
#include "ir/launch_product.h"
#include "analysis/axis.h"
#include "analysis/comparison.h"
#include "transform/loop_split.h"

struct split {
	struct op *cmp;
	bool chooses;         /* the comparison feeds a select, and no mask of a load or store */
	struct affine offset; /* offset of the excess a·i + offset */
	i64 a;
};
typedef VEC(struct split) split_vec;

static const struct value *access_mask(const struct op *o)
{
	return o->code == IR_LOAD || o->code == IR_STORE ? mask_of(o) : NULL;
}

static bool is_part_of_mask(const struct op *o)
{
	return o->code == IR_ANDI || o->code == IR_BROADCAST || o->code == IR_EXPAND_DIMS || o->code == IR_TRANS ||
	       o->code == IR_SPLAT;
}

/* Adds the parts of the mask of o to the set. */
static void note_mask(struct op *o, void *set)
{
	const struct value *mask = access_mask(o);
	if (mask)
		add_sources(set, mask, is_part_of_mask);
}

/* Adds the parts of the condition of a select on a matrix to the set. */
static void note_choice(struct op *o, void *set)
{
	if (o->code == IR_SELECT && type_is_tensor(result(o)->type) && result(o)->type->rank == 2)
		add_sources(set, operand(o, 0), is_part_of_mask);
}

/* True if the loop uses a dot's result for more than the accumulator of the next iteration. */
static bool works_on_results(const struct op *loop)
{
	bool sums = true;
	for (const struct op *o = loop->blocks[0]->first; o; o = o->next)
		sums &= o->code != IR_DOT || (value_has_one_use(result(o)) && result(o)->uses->user->code == IR_YIELD);
	return !sums;
}

/* The maximum of a term of a split point: a constant, or a product of a coefficient and a scalar. No sum of MOST_PARTS
 * such terms overflows. */
enum { MOST_PARTS = AFFINE_MAX_TERMS + 4 /* the constant, and the terms that rounding adds */ };
static const i64 most_of_part = INT64_MAX / MOST_PARTS;

/* True if the constants of the split point are small enough that terms with run-time values can be guarded. */
static bool is_computable(const struct split *sp)
{
	bool yes = sp->a <= most_of_part && sp->offset.constant <= most_of_part && sp->offset.constant >= -most_of_part;
	for (int i = 0; i < sp->offset.n; i++)
		yes &= sp->offset.term[i].coef <= most_of_part && sp->offset.term[i].coef >= -most_of_part;
	return yes;
}

/* The conjunction of `guard` and the condition under which the split point does not overflow. NULL if it never does. */
static struct value *guard_split_point(struct pass_state *s, struct builder *b, const struct split *sp,
				       struct value *guard)
{
	for (int i = 0; i < sp->offset.n; i++) {
		i64 coef = sp->offset.term[i].coef, most = most_of_part / (coef < 0 ? -coef : coef);
		guard = guard_range(s, b, guard, (struct value *)sp->offset.term[i].scalar, -most, most);
	}
	return guard;
}

/* Finds the comparisons in the loop's body that belong to masks of accesses and are true up to some index and false
 * afterwards. Comparisons of selects on the results of dots, such as the causal mask of attention, count too if the
 * tail can continue with the buffers of the main loop (TMA). */
static void find_splits(struct pass_state *s, struct op *loop, struct arena *a, split_vec *out)
{
	struct value_set masks = {0}, choices = {0};
	walk(loop->blocks[0], note_mask, &masks);
	if (s->target->has_tensor_copy && works_on_results(loop))
		walk(loop->blocks[0], note_choice, &choices);
	for (struct op *o = loop->blocks[0]->first; o; o = o->next) {
		struct less l;
		bool masks_access = o->code == IR_CMPI && set_has(&masks, result(o));
		bool chooses = o->code == IR_CMPI && !masks_access && set_has(&choices, result(o));
		if ((!masks_access && !chooses) || !as_less(o, &l))
			continue;
		struct affine f = excess(chooses ? s->k : NULL, s->ranges, o, &l);
		struct split sp = {.cmp = o, .chooses = chooses, .a = affine_take(&f, for_index(loop))};
		bool outside = f.known;
		for (int i = 0; i < f.n; i++)
			outside &= value_defined_outside(f.term[i].scalar, loop->blocks[0]);
		sp.offset = f;
		if (sp.a > 0 && outside && is_computable(&sp))
			vec_push(a, out, sp);
	}
	arena_free(&masks.scratch);
	arena_free(&choices.scratch);
}

/* ceil(x / a) for a constant a > 0, rounded toward plus infinity for negative x too. */
static struct value *ceil_div(struct builder *b, struct value *x, i64 a)
{
	const struct type *t = x->type;
	if (a == 1)
		return x;
	/* ceil(x/a) = floor((x + a - 1)/a); floor(y/a) = (y - mod(y, a))/a with mod in 0 … a-1 */
	struct value *y = build2(b, IR_ADDI, t, x, build_int(b, t, a - 1)), *d = build_int(b, t, a);
	struct value *m = build2(b, IR_REMSI, t, y, d);
	m = build2(b, IR_REMSI, t, build2(b, IR_ADDI, t, m, d), d);
	return build2(b, IR_DIVSI, t, build2(b, IR_SUBI, t, y, m), d);
}

/* The first index, in 64 bits, at which the comparison may be false. */
static struct value *split_point(struct builder *b, const struct split *sp)
{
	const struct type *t = type_scalar(b->ctx, DT_I64);
	struct value *x = build_int(b, t, -sp->offset.constant);
	for (int i = 0; i < sp->offset.n; i++) {
		struct value *v = build_i64(b, (struct value *)sp->offset.term[i].scalar);
		v = build2(b, IR_MULI, t, v, build_int(b, t, -sp->offset.term[i].coef));
		x = build2(b, IR_ADDI, t, x, v);
	}
	/* true while a·i + offset <= 0, so up to floor(-offset / a): the first false index is floor(-offset/a) + 1 */
	x = build2(b, IR_ADDI, t, x, build_int(b, t, 1));
	return ceil_div(b, x, sp->a);
}

static struct value *clamp(struct builder *b, struct value *x, struct value *lo, struct value *hi)
{
	return build2(b, IR_MINSI, x->type, build2(b, IR_MAXSI, x->type, x, lo), hi);
}

/* The first index value lower + n·step that is not less than `end`. */
static struct value *round_to_step(struct builder *b, const struct op *loop, struct value *lower, struct value *end)
{
	const struct type *t = end->type;
	i64 k;
	if (value_const_int(for_step(loop), &k) && k == 1)
		return end;
	struct value *n = count_iterations(b, loop, lower, end);
	return build2(b, IR_ADDI, t, lower, build2(b, IR_MULI, t, n, build_i64(b, for_step(loop))));
}

/* True if all comparisons are i + step - 1 < ub: tiles of `step` elements are compared with the loop's end. */
static bool only_part_of_a_step(const struct op *loop, const split_vec *splits)
{
	i64 lb, step;
	if (!value_const_int(for_lower(loop), &lb) || lb < 0 || !value_const_int(for_step(loop), &step))
		return false;
	for (u32 i = 0; i < splits->len; i++) {
		const struct split *sp = &splits->at[i];
		if (sp->a != 1 || sp->offset.constant != step || sp->offset.n != 1 ||
		    sp->offset.term[0].scalar != for_upper(loop) || sp->offset.term[0].coef != -1)
			return false;
	}
	return true;
}

/* The end of the main loop, an index value of the loop: lb <= end <= max(lb, ub). */
static struct value *end_of_main(struct pass_state *s, struct builder *b, const struct op *loop,
				 const split_vec *splits)
{
	const struct type *t = for_lower(loop)->type;
	if (only_part_of_a_step(loop, splits)) { /* the difference from the lower bound is not negative: nothing
						  * wraps */
		struct value *lb = for_lower(loop), *step = for_step(loop);
		struct value *n = build2(b, IR_SUBI, t, build2(b, IR_MAXSI, t, for_upper(loop), lb), lb);
		return build2(b, IR_ADDI, t, lb, build2(b, IR_MULI, t, build2(b, IR_DIVSI, t, n, step), step));
	}
	struct value *lower = build_i64(b, for_lower(loop)), *end = split_point(b, &splits->at[0]);
	struct value *guard = guard_split_point(s, b, &splits->at[0], NULL);
	for (u32 i = 1; i < splits->len; i++) {
		end = build2(b, IR_MINSI, end->type, end, split_point(b, &splits->at[i]));
		guard = guard_split_point(s, b, &splits->at[i], guard);
	}
	struct value *last = loop_end(b, loop);
	end = clamp(b, end, lower, last);
	/* an end rounded up beyond the last iteration leaves no tail */
	end = build2(b, IR_MINSI, end->type, round_to_step(b, loop, lower, end), last);
	return guarded_end(s, b, loop, end, guard);
}

static void split_at(struct pass_state *s, struct op *loop, const split_vec *splits)
{
	struct builder b = builder_before(s->ctx, loop);
	struct map map = {.arena = s->ctx->arena};
	i64 stages = loop->attr[ATTR_STAGES];
	bool chooses = false;
	for (u32 i = 0; i < splits->len; i++)
		chooses |= splits->at[i].chooses;
	if (chooses)
		name_offsets(s, loop);
	split_loop(s, loop, end_of_main(s, &b, loop, splits), &map);
	if (chooses) /* the tail may have several iterations, as on the diagonal of a causal attention */
		loop->attr[ATTR_STAGES] = stages;
	for (u32 i = 0; i < splits->len; i++) {
		struct value *cmp = mapped(&map, &splits->at[i].cmp->results[0]);
		struct builder at = builder_before(s->ctx, cmp->def);
		replace_uses(cmp, build_int(&at, cmp->type, 1));
	}
}

/* True if accesses would be wider without their masks, or if the block has a dot. */
static bool splitting_pays(const struct pass_state *s, const struct block *b)
{
	for (const struct op *o = b->first; o; o = o->next) {
		const struct value *mask = access_mask(o);
		if (o->code == IR_DOT)
			return true;
		if (mask && operand(o, 0)->type->rank > 1) /* the mask needs a predicate for each row */
			return true;
		for (int d = 0; mask && d < operand(o, 0)->type->rank; d++)
			if (axis_vector_width(s->axis, operand(o, 0), mask, d) <
			    axis_vector_width(s->axis, operand(o, 0), NULL, d))
				return true;
		for (u32 i = 0; i < o->nblocks; i++)
			if (!op_runs_on_elements(o) && splitting_pays(s, o->blocks[i]))
				return true;
	}
	return false;
}

/* True if all uses of v are operands A or B of dots, directly or transposed. */
static bool only_dots_use(const struct value *v)
{
	bool yes = !value_unused(v);
	for (const struct use *u = v->uses; u; u = u->next)
		yes &= (u->user->code == IR_DOT && u != u->user->operands + 2) ||
		       (u->user->code == IR_TRANS && v->def->code == IR_LOAD && only_dots_use(result(u->user)));
	return yes;
}

/* True if o loads an operand of dots and can be copied to shared memory by 16-byte copies in spite of its mask. */
static bool masked_copy(const struct pass_state *s, const struct op *o)
{
	if (o->code != IR_LOAD || !s->target->has_async_copy || o->attr[ATTR_VOLATILE] || !load_fills_zero(o))
		return false;
	const struct value *v = result(o);
	if (!only_dots_use(v))
		return false;
	for (int d = 0; d < operand(o, 0)->type->rank; d++)
		if (axis_vector_width(s->axis, operand(o, 0), operand(o, 1), d) * type_elem_bits(v->type) == 128)
			return true;
	return false;
}

static bool masks_only_copies(const struct pass_state *s, const split_vec *splits)
{
	struct value_walk w = {.id = begin_walk(s->ctx)};
	for (u32 i = 0; i < splits->len; i++)
		visit_later(&w, result(splits->at[i].cmp));
	for (const struct value *v; (v = visit_next(&w));)
		for (const struct use *u = v->uses; u; u = u->next) {
			if (is_part_of_mask(u->user))
				visit_later(&w, result(u->user));
			else if (access_mask(u->user) != v || !masked_copy(s, u->user))
				return end_walk(&w, false);
		}
	return true;
}

/* True if the host can compute the sizes that the masks compare with. Then a TMA tensor map can have these bounds
 * (gpu/tma/bounded_tiles.c). */
static bool host_knows_sizes(const struct pass_state *s, const split_vec *splits)
{
	bool yes = s->target->has_tensor_copy;
	for (u32 i = 0; i < splits->len; i++)
		for (int k = 0; k < splits->at[i].offset.n; k++)
			yes &= is_launch_product(s->k, (struct value *)splits->at[i].offset.term[k].scalar,
					       &(struct launch_product){0});
	return yes;
}

/* True if splitting gains nothing: the loop's copies are pipelined, and their masks do not slow them down. If a dot's
 * result is used for more than the accumulator of the next iteration, copies without masks may use TMA
 * (gpu/tma/tma_tile.c), and copies with masks only if the host knows the sizes. */
static bool masks_are_free(const struct pass_state *s, const struct op *loop, const split_vec *splits)
{
	if (stages_of(s, loop) < 2)
		return false;
	return (!works_on_results(loop) || host_knows_sizes(s, splits)) && masks_only_copies(s, splits);
}

/* True if a comparison is false in the first iteration already, so that there is no main loop. If such a loop runs at
 * most once, pipelining is disabled for it. */
static bool nothing_to_split(struct pass_state *s, struct op *loop, const split_vec *splits)
{
	struct affine first = lower_bound_of_rounded(s->ranges, for_lower(loop));
	bool nothing = false;
	i64 lo, hi, step;
	for (u32 i = 0; i < splits->len; i++) {
		struct affine at = affine_scaled(&first, splits->at[i].a);
		at = affine_sum(&at, &splits->at[i].offset);
		at = affine_without_indices(s->ranges, &at, NULL, false);
		nothing |= affine_interval(s->ranges, &at, loop, &lo, &hi) && lo > 0;
	}
	struct affine way = affine_difference(exact_hi(s->ranges, for_upper(loop)), &first);
	if (nothing && value_const_int(for_step(loop), &step) && affine_interval(s->ranges, &way, loop, &lo, &hi) &&
	    hi <= step)
		loop->attr[ATTR_STAGES] = 1;
	return nothing;
}

static bool is_counted(const struct op *loop)
{
	i64 k;
	return value_const_int(for_lower(loop), &k) && value_const_int(for_upper(loop), &k) &&
	       value_const_int(for_step(loop), &k);
}

static void split_loops(struct pass_state *s, struct block *b)
{
	for (struct op *o = b->first, *next; o; o = next) {
		next = o->next;
		for (u32 i = 0; i < o->nblocks; i++)
			split_loops(s, o->blocks[i]);
		if (o->code != IR_FOR || block_has(o->blocks[0], op_is_loop) ||
		    count_ops(o->blocks[0]->first, MAX_DUPLICATED_OPS) > MAX_DUPLICATED_OPS)
			continue;
		if (!is_counted(o) && !splitting_pays(s, o->blocks[0]))
			continue;
		struct arena scratch = {0};
		split_vec splits = {0};
		find_splits(s, o, &scratch, &splits);
		if (splits.len && !nothing_to_split(s, o, &splits) && !masks_are_free(s, o, &splits))
			split_at(s, o, &splits);
		arena_free(&scratch);
	}
}

void pass_index_set_splitting(struct pass_state *s)
{
	split_loops(s, s->k->body);
	pass_canonicalize(s);
}
