/* Unflattening: a loop over all slices of all tiles becomes a loop over tiles around a loop over the slices of a tile.
 *
 *     for _ in range(slices * tiles):              for t in range(tiles):
 *         k = where(k == slices - 1, 0, k + 1)         the next tile
 *         if k == 0:                                   for k in range(slices):
 *             the next tile                                work
 *         work                                         the tile's end
 *         if k == slices - 1:
 *             the tile's end
 *
 * Persistent GEMMs were written this way before compilers could overlap the copies of a tile with the end of the
 * preceding tile. Here the `flatten` attribute of the outer loop does that, and addresses of a tile are computed once.
 * The product may wrap. If it does, or if there are no slices, the original loop runs all iterations after the two
 * loops. If the bound is not such a product, the two loops run the whole tiles that it contains, and the original loop
 * runs the remaining slices. */
#include "ir/pass.h"
#include "analysis/ranges.h"

struct flat {
	struct pass_state *s;
	struct op *loop;
	struct value *slices, *tiles; /* number of slices of a tile, and of tiles; tiles is NULL if the upper bound is
				       * not a product */
	u32 counter;                  /* the number of the carried value that counts the slices of a tile */
	struct value *slice, *last;   /* the number of the slice in an iteration; slices - 1 */
	struct op *begin, *end;       /* the scf.if of the first slice, and of the last slice */
	struct arena scratch;
	struct map of_tile; /* carried values that only `begin` changes: argument → result of `begin`, and back */
};

/* --- recognition ------------------------------------------------------------------------------------------------- */

/* True if v is `of` - 1. */
static bool is_before(const struct value *v, const struct value *of)
{
	const struct op *o = v->def;
	i64 x, y;
	if (value_const_int(v, &x) && value_const_int(of, &y))
		return x == y - 1;
	if (!o || (o->code != IR_SUBI && o->code != IR_ADDI) || operand(o, 0) != of)
		return false;
	return value_is_int(operand(o, 1), o->code == IR_SUBI ? 1 : -1);
}

/* True if `next` is select(now == last, 0, now + 1). Sets *last. */
static bool counts_round(const struct value *next, const struct value *now, struct value **last)
{
	const struct op *choice = def_if(next, IR_SELECT), *test = choice ? def_if(operand(choice, 0), IR_CMPI) : NULL;
	const struct op *more = choice ? def_if(operand(choice, 2), IR_ADDI) : NULL;
	if (!test || !more || test->attr[ATTR_PREDICATE] != CMPI_EQ || operand(test, 0) != now ||
	    !value_is_int(operand(choice, 1), 0) || operand(more, 0) != now || !value_is_int(operand(more, 1), 1))
		return false;
	*last = operand(test, 1);
	return true;
}

/* Replaces a counter that a branch resets, `if k == last: k = 0; else: k += 1`, by a select. */
static void choose_next(struct ir_context *ctx, struct op *branch)
{
	struct op *test = branch->code == IR_IF ? def_if(operand(branch, 0), IR_CMPI) : NULL;
	struct op *ends[] = {test ? branch->blocks[0]->last : NULL, test ? branch->blocks[1]->last : NULL};
	for (u32 i = branch->nresults; test && i--;) {
		struct op *more = def_if(operand(ends[1], i), IR_ADDI);
		if (!value_is_int(operand(ends[0], i), 0) || !more || operand(more, 0) != operand(test, 0) ||
		    !value_is_int(operand(more, 1), 1))
			continue;
		struct builder b = builder_before(ctx, branch);
		struct value *zero = build_int(&b, result(more)->type, 0), *one = build_int(&b, result(more)->type, 1);
		struct value *next = build2(&b, IR_ADDI, result(more)->type, operand(more, 0), one);
		next = build3(&b, IR_SELECT, next->type, operand(branch, 0), zero, next);
		replace_uses(&branch->results[i], next);
		for (u32 k = 0; k < 2; k++)
			op_remove_operand(ends[k], i);
		op_remove_result(branch, i);
		if (value_unused(result(more)))
			op_erase(more);
	}
	if (test && !branch->nresults && block_is_empty(branch->blocks[0]) && block_is_empty(branch->blocks[1]))
		op_erase(branch);
}

/* True if v is used only to compute `next`. */
static bool only_counts(const struct value *v, const struct value *next)
{
	for (const struct use *u = v->uses; u; u = u->next)
		if ((u->user != operand(next->def, 0)->def && u->user != operand(next->def, 2)->def) ||
		    !value_has_one_use(result(u->user)))
			return false;
	return true;
}

/* True if the loop's carried value i is the number of the slice, or of the preceding slice. */
static bool is_counter(struct flat *f, u32 i)
{
	struct value *arg = for_arg(f->loop, i), *next = for_yielded(f->loop, i), *init = for_init(f->loop, i);
	if (arg->type != for_index(f->loop)->type || !counts_round(next, arg, &f->last) ||
	    !value_defined_outside(f->last, f->loop->blocks[0]))
		return false;
	f->counter = i;
	f->slice = value_is_int(init, 0) ? arg : next;
	return f->slice == arg ? value_has_one_use(next) : value_is_int(init, -1) && only_counts(arg, next);
}

/* The slice number for which the scf.if does something; NULL if o is not such an scf.if. */
static const struct value *slice_of(const struct flat *f, const struct op *o)
{
	const struct op *test = o->code == IR_IF ? def_if(operand(o, 0), IR_CMPI) : NULL;
	bool one = test && test->attr[ATTR_PREDICATE] == CMPI_EQ && operand(test, 0) == f->slice;
	return one && o->blocks[1]->first == o->blocks[1]->last ? operand(test, 1) : NULL;
}

/* True if v is used only in `begin`, or carried on unchanged. */
static bool only_begins(const struct flat *f, const struct value *v)
{
	for (const struct use *u = v->uses; u; u = u->next)
		if (!block_contains(f->begin->blocks[0], u->user->block) && u->user != f->begin->blocks[1]->last)
			return false;
	return true;
}

/* Finds the values of a tile. True if each result of `begin` is carried, and nothing else changes it. */
static bool find_values_of_tile(struct flat *f)
{
	u32 found = 0;
	for (u32 i = 0; i < f->loop->nresults; i++) {
		struct value *arg = for_arg(f->loop, i), *next = for_yielded(f->loop, i);
		if (next->def != f->begin || map_get(&f->of_tile, next) ||
		    operand(f->begin->blocks[1]->last, next->index) != arg || !only_begins(f, arg))
			continue;
		map_put(&f->of_tile, arg, next);
		map_put(&f->of_tile, next, arg);
		found++;
	}
	return found == f->begin->nresults;
}

static bool is_pure(const struct op *o)
{
	return op_has(o, PURE) && !o->nblocks;
}

static bool find_ends(struct flat *f)
{
	const struct block *body = f->loop->blocks[0];
	struct op *first = body->first, *last = body->last->prev;
	while (is_pure(first))
		first = first->next;
	while (last && is_pure(last))
		last = last->prev;
	if (!last || last == first || !slice_of(f, first) || !slice_of(f, last))
		return false;
	f->begin = first;
	f->end = last;
	return value_is_int(slice_of(f, first), 0) && equal_values(slice_of(f, last), f->last) &&
	       find_values_of_tile(f);
}

/* True if the loop over slices carries value i. */
static bool is_of_slice(const struct flat *f, u32 i)
{
	return i != f->counter && !map_get(&f->of_tile, for_arg(f->loop, i));
}

/* The value of carried value i after one iteration (slice) that is not the last of its tile, so that the scf.if
 * f->end does not change it. */
static struct value *behind_slice(const struct flat *f, u32 i)
{
	struct value *next = for_yielded(f->loop, i);
	return next->def == f->end ? operand(f->end->blocks[1]->last, next->index) : next;
}

enum { DEPTH = 16 /* limit on the depth of address computations */ };

/* Computes v, which `end` reads, after the last slice. `map` has the values that are available there. False if v can
 * not be computed. If b is NULL, only checks that. */
static bool compute_behind(const struct flat *f, struct builder *b, struct value *v, struct map *map, int depth)
{
	if (map_get(map, v) || value_defined_outside(v, f->loop->blocks[0]) ||
	    !value_defined_outside(v, f->end->blocks[0]))
		return true;
	if (!v->def || !is_pure(v->def) || !depth)
		return false;
	for (u32 i = 0; i < v->def->noperands; i++)
		if (!compute_behind(f, b, operand(v->def, i), map, depth - 1))
			return false;
	if (b)
		op_clone(b, v->def, map);
	return true;
}

/* compute_behind for all values that the block, of `end` or inside it, reads. */
static bool compute_for(const struct flat *f, struct builder *b, const struct block *block, struct map *map)
{
	for (const struct op *o = block->first; o; o = o->next) {
		for (u32 i = 0; i < o->noperands; i++)
			if (!compute_behind(f, b, operand(o, i), map, DEPTH))
				return false;
		for (u32 i = 0; i < o->nblocks; i++)
			if (!compute_for(f, b, o->blocks[i], map))
				return false;
	}
	return true;
}

/* True if everything that `end` reads is available, or can be computed, after the loop over the slices. */
static bool can_compute_end(struct flat *f)
{
	struct map known = {.arena = &f->scratch};
	map_put(&known, f->slice, f->slice);
	for (u32 i = 0; i < f->begin->nresults; i++)
		map_put(&known, &f->begin->results[i], f->slice);
	for (u32 i = 0; i < f->loop->nresults; i++)
		if (is_of_slice(f, i))
			map_put(&known, behind_slice(f, i), f->slice);
	return compute_for(f, NULL, f->end->blocks[0], &known);
}

/* True for a loop with dots from 0 in steps of 1 that does not use its index, so it may count slices by a carried
 * value. */
static bool may_be_flat(const struct op *loop)
{
	return loop->code == IR_FOR && type_elem_bits(for_index(loop)->type) == 32 && !for_index(loop)->uses &&
	       value_is_int(for_lower(loop), 0) && value_is_int(for_step(loop), 1) &&
	       block_has(loop->blocks[0], op_is_dot);
}

static bool is_flat(struct flat *f)
{
	bool counted = false;
	for (u32 i = 0; i < f->loop->nresults && !counted; i++)
		counted = is_counter(f, i);
	return counted && find_ends(f) && can_compute_end(f);
}

/* --- the two loops ----------------------------------------------------------------------------------------------- */

/* A loop from 0 to n with carried values that begin as `inits`. */
static struct op *begin_loop(struct builder *b, struct value *n, const value_vec *inits)
{
	struct value *zero = build_int(b, n->type, 0), *one = build_int(b, n->type, 1);
	struct op *loop = build_for(b, zero, n, one, inits->at, inits->len);
	for (u32 i = 0; i < inits->len; i++)
		for_arg(loop, i)->name = inits->at[i]->name;
	return loop;
}

/* Clones the operations of the block before `up_to`, except the terminator, `begin`, `end` and the slice counter. */
static void clone_block(const struct flat *f, struct builder *b, const struct block *of, const struct op *up_to,
			struct map *map)
{
	for (const struct op *o = of->first; o != up_to && o->next; o = o->next)
		if (o != f->begin && o != f->end && (!o->nresults || result(o) != f->slice))
			op_clone(b, o, map);
}

/* Builds the loop over a tile's slices. `map` has the values of the tile, and receives the values that are available
 * after the loop. */
static void build_inner(struct flat *f, struct builder *b, struct map *map)
{
	value_vec inits = {0}, next = {0};
	struct map in = {.arena = &f->scratch}, behind = {.arena = &f->scratch};
	for (u32 i = 0; i < f->loop->nresults; i++)
		if (is_of_slice(f, i))
			vec_push(&f->scratch, &inits, mapped(map, for_arg(f->loop, i)));
	struct op *inner = begin_loop(b, f->slices, &inits);
	memcpy(inner->attr, f->loop->attr, sizeof inner->attr);
	inner->attr[ATTR_FLATTEN] = false;
	for (u32 i = 0, k = 0; i < f->loop->nresults; i++) {
		struct value *arg = for_arg(f->loop, i), *of_begin = map_get(&f->of_tile, arg);
		map_put(&in, arg, of_begin || i == f->counter ? for_index(inner) : for_arg(inner, k++));
		if (of_begin) {
			map_put(&in, of_begin, mapped(map, of_begin));
			map_put(&behind, of_begin, mapped(map, of_begin));
		}
	}
	map_put(&in, f->slice, for_index(inner));
	map_put(&behind, f->slice, f->last);
	struct builder body = builder_at_end(b->ctx, inner->blocks[0]);
	clone_block(f, &body, f->loop->blocks[0], NULL, &in);
	for (u32 i = 0, k = 0; i < f->loop->nresults; i++) {
		if (!is_of_slice(f, i))
			continue;
		vec_push(&f->scratch, &next, mapped(&in, behind_slice(f, i)));
		map_put(&behind, behind_slice(f, i), &inner->results[k++]);
	}
	body.loc = f->loop->loc;
	build(&body, IR_YIELD, next.at, next.len, NULL, 0, 0);
	*map = behind;
}

/* Builds the loop over tiles. Its results correspond to the results of the flat loop. */
static struct op *build_outer(struct flat *f, struct builder *b, struct value *n)
{
	struct block *body = f->loop->blocks[0], *begin = f->begin->blocks[0], *end = f->end->blocks[0];
	struct map map = {.arena = &f->scratch};
	value_vec inits = {0}, next = {0};
	for (u32 i = 0; i < f->loop->nresults; i++)
		vec_push(&f->scratch, &inits, for_init(f->loop, i));
	struct op *outer = begin_loop(b, n, &inits);
	outer->attr[ATTR_FLATTEN] = true;
	for (u32 i = 0; i < f->loop->nresults; i++)
		map_put(&map, for_arg(f->loop, i), for_arg(outer, i));
	struct builder in = builder_at_end(b->ctx, outer->blocks[0]);
	in.loc = b->loc;
	map_put(&map, f->slice, build_int(&in, n->type, 0));
	clone_block(f, &in, body, f->begin, &map);
	clone_block(f, &in, begin, NULL, &map);
	for (u32 i = 0; i < f->begin->nresults; i++)
		map_put(&map, &f->begin->results[i], mapped(&map, operand(begin->last, i)));
	build_inner(f, &in, &map);
	compute_for(f, &in, end, &map);
	clone_block(f, &in, end, NULL, &map);
	for (u32 i = 0; i < f->end->nresults; i++)
		map_put(&map, &f->end->results[i], mapped(&map, operand(end->last, i)));
	for (u32 i = 0; i < f->loop->nresults; i++) {
		struct value *yielded = for_yielded(f->loop, i);
		if (i == f->counter)
			yielded = value_is_int(for_init(f->loop, i), 0) ? build_int(&in, n->type, 0) : f->last;
		vec_push(&f->scratch, &next, mapped(&map, yielded));
	}
	build(&in, IR_YIELD, next.at, next.len, NULL, 0, 0);
	return outer;
}

/* Finds the number of slices, and the number of tiles if the loop's bound is the product of both. */
static void find_factors(struct flat *f, struct builder *b)
{
	struct value *all = for_upper(f->loop);
	const struct op *product = def_if(all, IR_MULI);
	i64 n, last;
	f->slices = all;
	if (value_const_int(all, &n) && value_const_int(f->last, &last) && last > 0 && n % (last + 1) == 0) {
		f->slices = build_int(b, all->type, last + 1);
		f->tiles = build_int(b, all->type, n / (last + 1));
	} else if (is_before(f->last, all)) {
		f->tiles = build_int(b, all->type, 1);
	}
	for (u32 k = 0; product && k < 2 && !f->tiles; k++)
		if (is_before(f->last, operand(product, k))) {
			f->slices = operand(product, k);
			f->tiles = operand(product, 1 - k);
		}
	if (!f->tiles)
		f->slices = build2(b, IR_ADDI, all->type, f->last, build_int(b, all->type, 1));
}

/* A run-time condition: the product of slices and tiles does not wrap, and there are slices. NULL if always true. */
static struct value *build_guard(const struct flat *f, struct builder *b)
{
	const struct range *slices = value_range(f->s->ranges, f->slices), *tiles = value_range(f->s->ranges, f->tiles);
	i64 most = MAX(tiles->max, -tiles->min);
	if (slices->min > 0 && slices->max < INT32_MAX && most < INT32_MAX && slices->max * most <= INT32_MAX)
		return NULL;
	struct value *x = build_i64(b, f->slices), *y = build_i64(b, f->tiles);
	struct value *end = build_i64(b, for_upper(f->loop));
	struct value *same = build_cmpi(b, CMPI_EQ, build2(b, IR_MULI, x->type, x, y), end);
	return build2(b, IR_ANDI, same->type, same,
		      build_cmpi(b, CMPI_SGT, f->slices, build_int(b, f->slices->type, 0)));
}

/* True if the original loop after the two loops does not need carried value i: `begin` sets it there without reading
 * it. */
static bool begins_anew(const struct flat *f, u32 i)
{
	const struct value *arg = for_arg(f->loop, i);
	bool yes = map_get(&f->of_tile, arg) && value_unused(&f->loop->results[i]);
	for (const struct use *u = arg->uses; u && yes; u = u->next)
		yes = u->user == f->begin->blocks[1]->last;
	return yes;
}

/* The number of tiles for the two loops. *left: the iteration from which the original loop runs the rest. If the bound
 * is a product, the two loops run all its tiles, unless it wraps. Otherwise they run the whole tiles in the bound. */
static struct value *count_tiles(const struct flat *f, struct builder *b, struct value **left, const char **why)
{
	struct value *all = for_upper(f->loop), *zero = for_lower(f->loop), *one = build_int(b, all->type, 1);
	struct value *fits = f->tiles ? build_guard(f, b) : build_cmpi(b, CMPI_SGT, f->slices, zero);
	*left = all;
	*why = f->tiles ? ", followed by the original loop, in case the number of iterations overflows"
			: ", followed by the original loop for the remaining iterations";
	if (!fits) {
		*why = "";
		return f->tiles;
	}
	if (f->tiles) {
		*left = build3(b, IR_SELECT, all->type, fits, all, zero);
		return build3(b, IR_SELECT, all->type, fits, f->tiles, zero);
	}
	struct value *by = build3(b, IR_SELECT, all->type, fits, f->slices, one);
	struct value *n = build3(b, IR_SELECT, all->type, fits, build2(b, IR_DIVSI, all->type, all, by), zero);
	*left = build2(b, IR_MULI, all->type, n, f->slices);
	return n;
}

static void unflatten(struct flat *f)
{
	struct builder b = builder_before(f->s->ctx, f->loop);
	const char *why;
	find_factors(f, &b);
	struct value *left, *n = count_tiles(f, &b, &left, &why);
	struct op *outer = build_outer(f, &b, n);
	for (u32 i = 0; i < f->loop->nresults; i++)
		if (!begins_anew(f, i))
			op_set_operand(f->loop, FOR_INITS + i, &outer->results[i]);
	op_set_operand(f->loop, FOR_LOWER, left);
	if (f->s->remarks)
		diag(f->s->diags, R_UNFLATTENED, f->loop->loc, why);
	if (f->tiles) /* usually no iteration remains */
		f->loop->attr[ATTR_STAGES] = 1;
	f->loop->attr[ATTR_UNROLL] = 0;
	f->loop->attr[ATTR_FLATTEN] = false;
}

struct unflattening {
	struct pass_state *s;
	bool any;
};

static void visit(struct op *o, void *arg)
{
	struct unflattening *u = arg;
	struct flat f = {.s = u->s, .loop = o};
	f.of_tile.arena = &f.scratch;
	if (!may_be_flat(o))
		return;
	for (struct op *in = o->blocks[0]->first, *next; in; in = next) {
		next = in->next;
		choose_next(u->s->ctx, in);
	}
	if (is_flat(&f)) {
		unflatten(&f);
		u->any = true;
	}
	arena_free(&f.scratch);
}

void pass_unflatten(struct pass_state *s)
{
	struct unflattening u = {.s = s};
	walk(s->k->body, visit, &u);
	if (u.any) {
		pass_canonicalize(s);
		pass_cse(s);
		pass_licm(s);
	}
}
