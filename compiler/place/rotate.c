/* Rotation: a product of which only one operand is new in each iteration, and that only loaded (the scores of attention),
 * is computed an iteration ahead, so that the tensor cores work on the next one while this one's is being used.
 *
 *     for i: k = load(i); s = dot(q, k); …s…          s = dot(q, load(0)); for i: k = load(i+1); t = dot(q, k); …s…; s = t
 *
 * The last iteration's load is masked off, and its product not used. */
#include "place/loop.h"
#include "place/place.h"

struct rotation {
	struct ir_context *ctx;
	struct arena scratch;
	struct op *loop, *dot, *load, *alloc, *store;
	struct map in_slice;
	VEC(struct op *) slice; /* what the load's address and mask are computed from, in program order */
};

/* Adds what v depends on; false when that is more than index arithmetic on the loop's index and on carried scalars that
 * advance by a constant. */
static bool add_slice(struct rotation *r, const struct value *v)
{
	struct block *body = r->loop->blocks[0];
	if (value_defined_outside(v, body))
		return true;
	if (!v->def) {
		if (v->block != body || !v->index)
			return v->block == body;
		const struct op *next = operand(body->last, v->index - 1)->def;
		return next && (next->code == IR_ADDI || next->code == IR_ADDPTR) && operand(next, 0) == v &&
		       value_defined_outside(operand(next, 1), body);
	}
	const struct op *o = v->def;
	if (map_get(&r->in_slice, o))
		return true;
	if (o->block != body || !op_has(o, PURE) || op_has(o, SYNC) || o->nblocks)
		return false;
	for (u32 i = 0; i < o->noperands; i++)
		if (!add_slice(r, operand(o, i)))
			return false;
	map_put(&r->in_slice, o, (void *)o);
	return true;
}

static bool writes_global(const struct block *b)
{
	for (const struct op *o = b->first; o; o = o->next) {
		if (o->code == IR_STORE || o->code == IR_ATOMIC_RMW || o->code == IR_ATOMIC_CAS || o->code == IR_BARRIER || o->code == IR_WHILE)
			return true;
		for (u32 i = 0; i < o->nblocks; i++)
			if (writes_global(o->blocks[i]))
				return true;
	}
	return false;
}

/* The one operation of the body that uses v; NULL if there are more. */
static struct op *only_user(const struct value *v, const struct block *body)
{
	return value_has_one_use(v) && v->uses->user->block == body ? v->uses->user : NULL;
}

static bool uses_registers(const struct block *body)
{
	for (const struct op *o = body->first; o; o = o->next)
		if (o->code == IR_WARP_GROUP_DOT && operand(o, 0)->type->kind != TY_MEMDESC)
			return true;
	return false;
}

/* Is `dot` such a product? */
static bool matches(struct rotation *r, struct op *dot)
{
	struct block *body = r->loop->blocks[0];
	u64 bits;
	if (dot->code != IR_WARP_GROUP_DOT || !value_const_bits(operand(dot, 2), &bits) || bits || value_unused(result(dot)))
		return false;
	const struct value *a = operand(dot, 0), *b = operand(dot, 1);
	if (a->type->kind != TY_MEMDESC || !value_defined_outside(a, body))
		return false;
	for (const struct use *u = dot->results->uses; u; u = u->next)
		if (u->user == body->last)
			return false;
	while (b->def && b->def->code == IR_MEMDESC_TRANS && b->def->block == body && only_user(b, body))
		b = operand(b->def, 0);
	r->dot = dot;
	r->alloc = def_if(b, IR_LOCAL_ALLOC);
	if (!r->alloc || r->alloc->block != body || r->alloc->next->code != IR_LOCAL_STORE)
		return false;
	r->store = r->alloc->next;
	r->load = def_if(operand(r->store, 0), IR_LOAD);
	u32 uses = 0;
	for (const struct use *u = r->alloc->results->uses; u; u = u->next)
		uses++;
	if (uses != 2 || !r->load || only_user(result(r->load), body) != r->store || r->load->block != body || r->load->attr[ATTR_VOLATILE])
		return false;
	for (u32 i = 0; i < r->load->noperands; i++)
		if (!add_slice(r, operand(r->load, i)))
			return false;
	for (struct op *o = body->first; o; o = o->next)
		if (map_get(&r->in_slice, o))
			vec_push(&r->scratch, &r->slice, o);
	return true;
}

static void clone_slice(struct rotation *r, struct builder *b, struct map *map)
{
	for (u32 i = 0; i < r->slice.len; i++)
		op_clone(b, r->slice.at[i], map);
}

/* The load's operands as `map` has them, masked by `inside`. */
static u32 load_operands(struct rotation *r, struct builder *b, const struct map *map, struct value *inside, struct value **ops)
{
	const struct op *load = r->load;
	ops[0] = mapped(map, operand(load, 0));
	ops[1] = build1(b, IR_SPLAT, type_with_dtype(r->ctx, ops[0]->type, DT_I1), inside);
	if (load->noperands > 1)
		ops[1] = build2(b, IR_ANDI, ops[1]->type, mapped(map, operand(load, 1)), ops[1]);
	if (load->noperands > 2)
		ops[2] = mapped(map, operand(load, 2));
	return MAX(load->noperands, 2u);
}

/* The first product, in front of the loop. */
static struct value *first_product(struct rotation *r)
{
	struct op *loop = r->loop;
	struct block *body = loop->blocks[0];
	struct builder b = builder_before(r->ctx, loop);
	struct map map = {.arena = &r->scratch};
	struct value *ops[3];
	map_put(&map, body->args[0], operand(loop, 0));
	for (u32 i = 1; i < body->nargs; i++)
		map_put(&map, body->args[i], operand(loop, 2 + i));
	clone_slice(r, &b, &map);
	u32 n = load_operands(r, &b, &map, loop_inside(&b, loop, operand(loop, 0), 0), ops);
	const struct type *t = result(r->load)->type;
	b.loc = r->load->loc;
	struct op *load = build(&b, IR_LOAD, ops, n, &t, 1, 0);
	memcpy(load->attr, r->load->attr, sizeof load->attr);
	map_put(&map, result(r->load), result(load));
	for (struct op *o = r->alloc; o != r->dot->next; o = o->next)
		if (o == r->alloc || o == r->store || o == r->store->next || o == r->dot || o->code == IR_MEMDESC_TRANS)
			op_clone(&b, o, &map);
	return mapped(&map, result(r->dot));
}

/* Turns the body's load into that of the next iteration. */
static void advance_load(struct rotation *r)
{
	struct op *loop = r->loop;
	struct block *body = loop->blocks[0];
	struct builder b = builder_before(r->ctx, r->load);
	struct map map = {.arena = &r->scratch};
	struct value *ops[3];
	b.loc = r->load->loc;
	map_put(&map, body->args[0], loop_step(&b, loop, body->args[0], 1));
	for (u32 i = 1; i <= body->last->noperands; i++) {
		struct op *next = operand(body->last, i - 1)->def;
		struct value *arg = body->args[i];
		if (next && (next->code == IR_ADDI || next->code == IR_ADDPTR) && operand(next, 0) == arg)
			map_put(&map, arg, build2(&b, next->code, arg->type, arg, operand(next, 1)));
	}
	clone_slice(r, &b, &map);
	u32 n = load_operands(r, &b, &map, loop_inside(&b, loop, body->args[0], 1), ops);
	for (u32 i = 0; i < n; i++)
		if (i < r->load->noperands)
			op_set_operand(r->load, i, ops[i]);
		else
			op_add_operand(r->ctx, r->load, ops[i]);
}

static struct op *rotate(struct rotation *r)
{
	struct value *first = first_product(r);
	u32 carried = r->loop->nresults;
	r->loop = loop_extend(r->ctx, r->loop, &first, 1);
	struct block *body = r->loop->blocks[0];
	advance_load(r);
	struct value *next = result(r->dot), *now = body->args[1 + carried];
	now->name = next->name;
	replace_uses(next, now);
	op_add_operand(r->ctx, body->last, next);
	return r->loop;
}

/* A loop of one iteration has nothing to run ahead. */
static bool may_repeat(const struct op *loop)
{
	i64 from, to, step;
	return !value_const_int(operand(loop, 0), &from) || !value_const_int(operand(loop, 1), &to) || !value_const_int(operand(loop, 2), &step) ||
	       to - from > step;
}

static void visit(struct op *loop, void *arg)
{
	struct pass_state *s = arg;
	int stages = loop->code != IR_FOR ? 0 : loop->attr[ATTR_STAGES] > 0 ? (int)loop->attr[ATTR_STAGES] : s->num_stages;
	if (stages < 2 || !may_repeat(loop) || writes_global(loop->blocks[0]) || !uses_registers(loop->blocks[0]))
		return;
	for (struct op *o = loop->blocks[0]->first; o; o = o->next) {
		struct rotation r = {.ctx = s->ctx, .loop = loop};
		r.in_slice.arena = &r.scratch;
		bool found = matches(&r, o);
		if (found)
			rotate(&r);
		arena_free(&r.scratch);
		if (found)
			return;
	}
}

void pass_rotate(struct pass_state *s)
{
	walk(s->k->body, visit, s);
	remove_dead_code(s->k);
}
