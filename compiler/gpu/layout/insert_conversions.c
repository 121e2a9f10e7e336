/* Layout assignment, second half: rewrites the kernel so that every tile has its layout.
 *
 * Walks in program order. An operation with an assigned layout requests its operands in the layouts that it needs. A
 * request for a value in another layout than the assigned one creates a conversion right after the value's definition.
 * Rematerializable values and shape operations are computed again in the requested layout. Values that only served to
 * be computed again become dead. */
#include "support/thresholds.h"
#include "gpu/layout/access_cost.h"
#include "gpu/layout/memory_access.h"
#include "layout/conversion.h"
#include "gpu/layout/assign_layouts.h"

#include <limits.h>

struct version {
	const struct layout *layout;
	struct value *value;
	struct version *next;
};

static struct value *find_version(struct placer *p, const struct value *v, const struct layout *l)
{
	for (struct version *at = map_get(&p->made, v); at; at = at->next)
		if (at->layout == l)
			return at->value;
	return NULL;
}

static struct value *add_version(struct placer *p, struct value *v, const struct layout *l, struct value *made)
{
	struct version *at = arena_new(&p->scratch, struct version);
	*at = (struct version){l, made, map_get(&p->made, v)};
	map_put(&p->made, v, at);
	map_put(&p->originals, made, v);
	made->name = v->name;
	return made;
}

/* The value of which v is a version, or v: operations that have their layouts take versions as operands. */
static struct value *original(const struct placer *p, struct value *v)
{
	struct value *of = map_get(&p->originals, v);
	return of ? of : v;
}

/* The place of new operations for v: right after its definition. */
static struct builder after_definition(struct placer *p, struct value *v)
{
	if (v->def)
		return builder_after(p->ctx, v->def);
	return builder_before(p->ctx, v->block->first);
}

/* True if o, a load of elements that several threads each need, takes less time in layout l than a conversion of its
 * result from the assigned layout. Conversions by shuffles have no barrier and are kept. */
static bool is_cheap_in(const struct placer *p, const struct op *o, const struct layout *l, i64 copies)
{
	const struct layout *from = assigned_layout(p, result(o));
	if (copies >= MIN_COPIES_LOADED_AGAIN && layout_num_regs(l) <= MAX_LOADED_AGAIN)
		return true;
	return copies > 1 && from && !is_in_pipelined_loop(p, o) && !feeds_dot(p, o, true) &&
	       plan_conversion(from, l).kind == CONVERSION_MEMORY &&
	       load_cost(p->s->axis, operand(o, 0), mask_of(o), l) <
		       conversion_cost(from, l, dtype_bytes(type_dtype(result(o)->type)));
}

/* True if v is loaded again in layout l rather than converted. Few elements that many threads need, such as a scale for
 * each column, come faster from memory again than from other threads, which would have to be waited for. No operation
 * may write that memory meanwhile. */
static bool loads_again(struct placer *p, const struct value *v, const struct layout *l)
{
	const struct op *o = def_if(v, IR_LOAD);
	bool yes = o && !o->attr[ATTR_VOLATILE] &&
		   is_cheap_in(p, o, l, (i64)32 * p->s->num_warps * layout_num_regs(l) / type_numel(v->type)) &&
		   !may_be_written(p->s, p->s->k->body, pointer_base(operand(o, 0))) && !map_get(&p->copied, o);
	for (u32 i = 0; yes && i < o->noperands; i++)
		yes = is_free(p, operand(o, i));
	return yes;
}

/* True if v is loaded again, or computed elementwise by at most *left operations from loads that are. This includes the
 * rows of a gather: row numbers, and whether the rows exist. */
static bool made_of_loads_again(struct placer *p, const struct value *v, const struct layout *l, int *left)
{
	const struct op *o = v->def;
	if (def_if(v, IR_LOAD))
		return loads_again(p, v, l);
	bool yes = o && op_has(o, ELEM) && op_has(o, PURE) && !o->nblocks && --*left >= 0 && !is_free(p, v);
	for (u32 i = 0; yes && i < o->noperands; i++)
		yes = is_free(p, operand(o, i)) || made_of_loads_again(p, operand(o, i), l, left);
	return yes;
}

/* The source of v, which is computed by shape operations, and its layout if v has layout l. */
static struct value *shaped_source(struct placer *p, struct value *v, const struct layout **l)
{
	for (; v->def && op_is_shape(v->def); v = original(p, operand(v->def, 0)))
		*l = operand_layout(p, v->def, *l);
	return v;
}

/* True if the load may be copied to shared memory, by copies as wide as cp.async needs. */
static bool may_be_buffered(struct placer *p, const struct op *load)
{
	enum { LEAST = 32 /* bits that cp.async copies at once */ };
	int order[MAX_RANK], bits = type_elem_bits(result(load)->type);
	return may_be_copied(p, load, 2) && memory_order(p, load, order) &&
	       bits * axis_vector_width(p->s->axis, operand(load, 0), mask_of(load), order[0]) >= LEAST;
}

/* The additional instructions of a thread if v comes from a buffer, or from a conversion, in layout l instead of
 * `before`. LLONG_MAX: v is neither loaded to a buffer, nor made of values that others need too. */
static i64 cost_of_source(struct placer *p, struct value *v, const struct layout *before, const struct layout *l)
{
	int bits = MAX(type_elem_bits(v->type), 8);
	struct value *source = shaped_source(p, v, &before);
	shaped_source(p, v, &l);
	const struct layout *from = assigned_layout(p, source);
	if (is_free(p, source) || from == l)
		return 0;
	if (!from || (source == v && !(def_if(v, IR_LOAD) && value_has_one_use(v) && may_be_buffered(p, v->def))))
		return LLONG_MAX;
	if (source != v)
		return conversion_instructions(p->pool, from, l, bits) -
		       conversion_instructions(p->pool, from, before, bits);
	/* a tile in the layout of a dot's result is read from swizzled rows, by vectors of two elements or more */
	int reads = strength_of(p, l) ? layout_num_regs(l) / 2 : buffer_reads(p->pool, from, l, bits);
	return reads < 0 ? LLONG_MAX : reads - buffer_reads(p->pool, from, from, bits);
}

/* True if v is computed from tiles that a pipelined loop loads to buffers, and it takes fewer instructions to read
 * these in layout l, and to compute v from them, than to convert v. All values computed on the way are noted in
 * of_load, since they have more uses in the meantime. */
static bool is_made_of_loads(struct placer *p, struct value *v, const struct layout *l)
{
	const struct layout *from = assigned_layout(p, v);
	value_vec values = {0};
	i64 more = 0, loads = 0;
	if (map_get(&p->of_load, v))
		return map_get(&p->of_load, v) == l;
	if (!p->s->target->has_tensor_copy || !from || v->type->rank != 2 ||
	    type_numel(v->type) <= (i64)32 * p->s->num_warps)
		return false;
	vec_push(&p->scratch, &values, v);
	for (u32 at = 0; at < values.len; at++) {
		const struct op *o = values.at[at]->def;
		if (!o || !op_has(o, ELEM) || !op_has(o, PURE) || o->nblocks || values.len > MAX_COMPUTED_AGAIN ||
		    !value_has_one_use(values.at[at]) || !assigned_layout(p, values.at[at]))
			return false;
		more += layout_num_regs(l) - layout_num_regs(from);
		for (u32 i = 0; i < o->noperands; i++) {
			struct value *x = original(p, operand(o, i));
			bool computed = x->def && op_has(x->def, ELEM) && x->def->code != IR_LOAD && !is_free(p, x);
			i64 cost = computed ? 0 : cost_of_source(p, x, from, l);
			if (computed)
				vec_push(&p->scratch, &values, x);
			if (cost == LLONG_MAX)
				return false;
			loads += def_if(x, IR_LOAD) != NULL;
			more += cost;
		}
	}
	if (!loads || more >= conversion_instructions(p->pool, from, l, MAX(type_elem_bits(v->type), 8)))
		return false;
	for (u32 i = 0; i < values.len; i++)
		map_put(&p->of_load, values.at[i], (void *)l);
	return true;
}

static bool is_made_again(struct placer *p, struct value *v, const struct layout *l)
{
	const struct layout *assigned = assigned_layout(p, v);
	if (!v->def)
		return false;
	bool again = is_free(p, v) || op_is_shape(v->def) || (op_has(v->def, ELEM) && !assigned);
	int most = MAX_COMPUTED_AGAIN;
	return again || (assigned != l && (made_of_loads_again(p, v, l, &most) || is_made_of_loads(p, v, l)));
}

/* v in layout l if that exists, otherwise NULL. */
static struct value *known_version(struct placer *p, struct value *v, const struct layout *l)
{
	struct value *known = type_is_tensor(v->type) ? find_version(p, v, l) : v;
	return !known && assigned_layout(p, v) == l && !is_made_again(p, v, l) ? v : known;
}

static const struct layout *layout_of_operands(struct placer *p, const struct op *o, const struct layout *l)
{
	return op_is_shape(o) ? operand_layout(p, o, l) : l;
}

/* Computes v again, in layout l. Its operands exist in the layouts needed. */
static struct value *remake(struct placer *p, struct value *v, const struct layout *l)
{
	struct op *o = v->def;
	struct value *ops[8];
	const struct layout *in = layout_of_operands(p, o, l);
	tl_assert(o->noperands <= ARRAY_LEN(ops));
	for (u32 i = 0; i < o->noperands; i++)
		ops[i] = known_version(p, original(p, operand(o, i)), in);
	struct builder b = after_definition(p, v);
	const struct type *t = type_with_layout(p->ctx, v->type, l);
	struct op *n = build(&b, o->code, ops, o->noperands, &t, 1, 0);
	memcpy(n->attr, o->attr, sizeof n->attr);
	n->hints = o->hints;
	n->loc = o->loc;
	axis_copy(p->s->axis, result(n), v);
	return result(n);
}

/* The first operand that is needed to compute v again in a layout, and does not exist yet. */
static bool find_missing_operand(void *arg, struct demand d, struct demand *first)
{
	struct placer *p = arg;
	const struct layout *l = (const struct layout *)d.aspect;
	if (!is_made_again(p, d.v, l))
		return false;
	const struct layout *in = layout_of_operands(p, d.v->def, l);
	for (u32 i = 0; i < d.v->def->noperands; i++) {
		struct value *v = original(p, operand(d.v->def, i));
		if (!known_version(p, v, in)) {
			*first = (struct demand){v, (intptr_t)in};
			return true;
		}
	}
	return false;
}

static void make_version(void *arg, struct demand d)
{
	struct placer *p = arg;
	const struct layout *l = (const struct layout *)d.aspect;
	struct value *made;
	if (is_made_again(p, d.v, l)) {
		made = remake(p, d.v, l);
	} else {
		tl_assert(assigned_layout(p, d.v));
		struct builder b = after_definition(p, d.v);
		made = build1(&b, IR_CONVERT_LAYOUT, type_with_layout(p->ctx, d.v->type, l), d.v);
	}
	add_version(p, d.v, l, made);
}

/* v in layout l, created if necessary. */
static struct value *request(struct placer *p, struct value *v, const struct layout *l)
{
	v = original(p, v);
	if (!known_version(p, v, l))
		meet_demand((struct demand){v, (intptr_t)l}, find_missing_operand, make_version, p);
	return known_version(p, v, l);
}

static void request_operand(struct placer *p, struct op *o, u32 i, const struct layout *l)
{
	struct value *v = operand(o, i), *n = request(p, v, l);
	if (n != v)
		op_set_operand(o, i, n);
}

static void request_all(struct placer *p, struct op *o, const struct layout *l)
{
	for (u32 i = 0; i < o->noperands; i++)
		request_operand(p, o, i, l);
}

static void set_layout(struct placer *p, struct value *v, const struct layout *l)
{
	if (type_is_tensor(v->type))
		v->type = type_with_layout(p->ctx, v->type, l);
}

/* Sets the layout of a result that follows from the operands' layouts. The operands may have been assigned other
 * layouts after the result was. */
static void set_result(struct placer *p, struct value *v, const struct layout *l)
{
	set_layout(p, v, l);
	if (type_is_tensor(v->type))
		map_put(&p->assigned, v, (void *)l);
}

static void set_results(struct placer *p, struct op *o, const struct layout *l)
{
	for (u32 i = 0; i < o->nresults; i++)
		set_result(p, &o->results[i], l);
}

/* The layout in which a store, print or assert without a preference takes its operands. */
static const struct layout *assigned_or_default(struct placer *p, const struct value *v)
{
	const struct layout *l = assigned_layout(p, v);
	return l ? l : default_layout(p, v->type);
}

static void materialize_block(struct placer *p, struct block *b);

static void request_passed(struct placer *p, struct op *o)
{
	for (u32 i = 0; i < o->noperands; i++) {
		const struct value *to = value_passed_to(o, i);
		if (to)
			request_operand(p, o, i, assigned_layout(p, to));
	}
}

static void place_control(struct placer *p, struct op *o)
{
	request_passed(p, o);
	for (u32 i = 0; i < o->nresults; i++)
		set_result(p, &o->results[i], assigned_layout(p, result_passed_by(o, i)));
	for (u32 k = 0; k < o->nblocks; k++)
		for (u32 i = 0; i < o->blocks[k]->nargs; i++)
			set_layout(p, o->blocks[k]->args[i], assigned_layout(p, o->blocks[k]->args[i]));
	for (u32 k = 0; k < o->nblocks; k++) {
		materialize_block(p, o->blocks[k]);
		request_passed(p, o->blocks[k]->last);
	}
}

/* The contiguous dimension of an operand in shared memory: for 16-bit data, the dimension along which a thread's
 * elements of layout l run; otherwise k. */
static int contiguous_dim(const struct layout *l, const struct wgmma *w, int k_dim)
{
	u32 first = l->bits[LL_REG] ? l->basis[LL_REG][0] : 0;
	return w->any_major && first & layout_dim_mask(l, 1 - k_dim) ? 1 - k_dim : k_dim;
}

/* v in shared memory, in a layout for operands of wgmma; `across`: MN-major, for an operand that is loaded into
 * registers or transposed in place. A transposition is only another view of the buffer. */
static struct value *request_memory(struct placer *p, struct value *v, const struct wgmma *w, int k_dim, bool across)
{
	const struct type *t = v->type;
	if (def_if(v, IR_TRANS)) {
		struct value *base = request_memory(p, operand(v->def, 0), w, 1 - k_dim, across);
		const struct layout *transposed = layout_trans(p->pool, base->type->layout, (int[]){1, 0});
		struct value *known = find_version(p, v, transposed);
		struct builder b = builder_after(p->ctx, base->def);
		if (known)
			return known;
		while (b.before && (b.before->code == IR_LOCAL_STORE || b.before->code == IR_FENCE_ASYNC))
			b = builder_after(p->ctx, b.before);
		known = build1(&b, IR_MEMDESC_TRANS, type_memdesc(p->ctx, t->elem, 2, t->shape, transposed, 0), base);
		known->def->attr[ATTR_ORDER] = v->def->attr[ATTR_ORDER];
		return add_version(p, v, transposed, known);
	}
	const struct layout *from = assigned_layout(p, v) ? assigned_layout(p, v) : default_layout(p, t);
	const struct layout *mem = layout_swizzled(
		p->pool, 2, t->shape, across ? 1 - k_dim : contiguous_dim(from, w, k_dim), type_elem_bits(t));
	struct value *known = find_version(p, v, mem), *src = request(p, v, from);
	if (known)
		return known;
	struct builder b = after_definition(p, src);
	struct value *buffer = store_shared(&b, src, mem);
	build(&b, IR_FENCE_ASYNC, NULL, 0, NULL, 0, 0);
	return add_version(p, v, mem, buffer);
}

/* True if a pipelined loop loads v, or its transpose, into buffers. */
static bool is_buffered(const struct placer *p, const struct value *v)
{
	while (def_if(v, IR_TRANS))
		v = operand(v->def, 0);
	return def_if(v, IR_LOAD) && is_in_pipelined_loop(p, v->def);
}

/* True if wgmma takes A from registers: A has the layout of a dot's result, and its conversion exchanges no data
 * between warps; or it has 4-byte elements and is computed from buffers, which are read in any layout. If shared memory
 * is short (few_operands), also if no loop loads A into buffers. */
static bool comes_in_registers(struct placer *p, const struct op *dot, const struct dot_plan *plan)
{
	int row_dim = plan->split.row_dim;
	const struct value *v = operand(dot, (u32)row_dim);
	const struct layout *assigned = assigned_layout(p, v);
	if (p->s->cuda.limits.few_operands && !is_buffered(p, v))
		return true;
	return row_dim == 0 && assigned && strength_of(p, assigned) &&
	       (!plan->wgmma->any_major ||
		plan_conversion(assigned, wgmma_operand(p->pool, v->type, &plan->split, 0)).kind != CONVERSION_MEMORY);
}

/* Rewrites o as wgmma. A comes from registers or shared memory, B from shared memory. */
static void place_wgmma(struct placer *p, struct op *o, const struct dot_plan *plan)
{
	int row_dim = plan->split.row_dim;
	for (int i = 0; i < 2; i++) {
		struct value *v = operand(o, (u32)i);
		const struct layout *rows = plan->computed ? plan->a : NULL;
		if (i == row_dim && !plan->fetched && !rows && comes_in_registers(p, o, plan))
			rows = wgmma_operand(p->pool, v->type, &plan->split, 0);
		if (i == row_dim && rows) {
			request_operand(p, o, (u32)i, rows);
			continue;
		}
		bool fetched = i == row_dim && plan->fetched, across = i == row_dim ? fetched : plan->transposed;
		const struct type *held = fetched ? type_with_layout(p->ctx, v->type, plan->a) : NULL;
		v = request_memory(p, v, plan->wgmma, 1 - i, across);
		struct builder b = builder_before(p->ctx, o);
		op_set_operand(o, (u32)i, fetched ? build1(&b, IR_LOCAL_LOAD, held, v) : v);
	}
	o->code = IR_WARP_GROUP_DOT;
	wgmma_set(o, plan->wgmma, &plan->split,
		  plan->computed  ? COMPUTED_A_GROUPS
		  : plan->fetched ? LOADED_A_GROUPS
				  : 0);
	o->attr[ATTR_TRANSPOSED] = plan->transposed;
}

/* The layout of operand i of a dot by multiply-adds, which read their operands from shared memory (fma_dots.c). A load
 * takes the layout of these reads, on its way to shared memory. A computed value does not, because in that layout many
 * threads have the same elements. */
static const struct layout *fma_operand(struct placer *p, const struct op *o, u32 i, const struct dot_plan *plan)
{
	const struct value *v = operand(o, i);
	const struct type *t = v->type;
	while (def_if(v, IR_TRANS))
		v = operand(v->def, 0);
	return def_if(v, IR_LOAD) ? layout_fma_operand(p->pool, plan->acc, t->shape, (int)i) : default_layout(p, t);
}

static void place_dot(struct placer *p, struct op *o)
{
	const struct dot_plan *plan = map_get(&p->dots, o);
	if (plan->wgmma) {
		place_wgmma(p, o, plan);
	} else {
		request_operand(p, o, 0, plan->mma ? plan->a : fma_operand(p, o, 0, plan));
		request_operand(p, o, 1, plan->mma ? plan->b : fma_operand(p, o, 1, plan));
		o->attr[ATTR_INSTR] = plan->mma ? mma_shape(plan->mma) : 0;
		o->attr[ATTR_WARPS] = plan->mma ? dims_pack(plan->warps, result(o)->type->rank) : 0;
	}
	request_operand(p, o, 2, plan->acc);
	set_layout(p, result(o), plan->acc);
}

/* Places a load with a layout `copy` for its copy to shared memory that differs from the layout l of its result. The
 * pipeline replaces the conversion by a read of the buffer in layout l. */
static void place_copied_load(struct placer *p, struct op *load, const struct layout *copy, const struct layout *l)
{
	struct value *v = result(load);
	request_all(p, load, copy);
	set_result(p, v, copy);
	struct builder b = builder_after(p->ctx, load);
	add_version(p, v, l, build1(&b, IR_CONVERT_LAYOUT, type_with_layout(p->ctx, v->type, l), v));
}

/* The layout of a store: the value's layout if the pointers are scattered, otherwise the pointers' layout. */
static const struct layout *store_layout(struct placer *p, const struct op *o)
{
	const struct layout *l = map_get(&p->memory, o);
	return l ? l : assigned_or_default(p, operand(o, 1));
}

static void place_op(struct placer *p, struct op *o)
{
	const struct layout *l =
		o->nresults && type_is_tensor(o->results[0].type) ? assigned_layout(p, &o->results[0]) : NULL;
	bool tensor_operand = o->noperands && type_is_tensor(operand(o, 0)->type);
	switch (o->code) {
	case IR_FOR:
	case IR_WHILE:
	case IR_IF: place_control(p, o); return;
	case IR_DOT: place_dot(p, o); return;
	case IR_REDUCE:
	case IR_SCAN:
	case IR_SPLIT: {
		const struct layout *in = input_layout(p, o);
		request_all(p, o, in);
		set_results(p, o, output_layout(p, o, in));
		return;
	}
	case IR_GATHER:
		request_operand(p, o, 0, assigned_or_default(p, operand(o, 0)));
		request_operand(p, o, 1, l);
		set_layout(p, result(o), l);
		return;
	case IR_HISTOGRAM:
		request_all(p, o, assigned_or_default(p, operand(o, 0)));
		set_layout(p, result(o), l);
		return;
	case IR_JOIN:
		request_all(p, o, layout_slice(p->pool, l, result(o)->type->rank - 1));
		set_layout(p, result(o), l);
		return;
	case IR_MAP:
	case IR_INLINE_ASM:
	case IR_PURE_ASM:
		if (l) {
			request_all(p, o, l);
			set_results(p, o, l);
		}
		return;
	case IR_STORE:
		if (tensor_operand)
			request_all(p, o, store_layout(p, o));
		return;
	case IR_UNSPLAT:
	case IR_ASSERT:
	case IR_PRINT:
	case IR_ASSUME:
		for (u32 i = 0; i < o->noperands; i++)
			if (type_is_tensor(operand(o, i)->type))
				request_operand(p, o, i, assigned_or_default(p, operand(o, i)));
		return;
	case IR_LOAD:
		if (l && map_get(&p->copies, o)) {
			place_copied_load(p, o, map_get(&p->copies, o), l);
			return;
		}
		break;
	default: break;
	}
	if (!l || op_is_shape(o) || is_free(p, result(o)))
		return;
	request_all(p, o, l);
	set_layout(p, result(o), l);
}

static void materialize_block(struct placer *p, struct block *b)
{
	for (struct op *o = b->first, *next; o; o = next) {
		next = o->next; /* new operations for o go before `next` */
		place_op(p, o);
	}
}

void materialize(struct placer *p)
{
	materialize_block(p, p->s->k->body);
}
