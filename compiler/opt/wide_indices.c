#include "opt/wide_indices.h"

#include "ir/graph.h"
#include "opt/pass.h"
#include "opt/ranges.h"

enum { LEAST_SIZES = 128 };

/* What is known of a value of an index: its node, and whether it is computed from something in 32 bits that may wrap.
 * Nodes count from 1: 0 in a map is nothing. */
struct entry {
	struct value *v;
	i32 node;
	bool may_wrap;
	struct value *wide; /* or NULL */
};

struct finder {
	struct kernel *k;
	const struct ranges *ranges;
	struct arena *arena;
	struct map entries;                   /* value → struct entry */
	VEC(struct entry *) order;            /* operands first */
	VEC(struct index_node) leaves, nodes; /* a and b of the latter as nodes of entries: see linked */
	VEC(struct value *) work;
	VEC(struct op *) pointers, loops, comparisons;
	struct value_walk masks;
};

/* --- values of indices --------------------------------------------------------------------------------------- */

static const struct entry *entry_of(const struct finder *f, const struct value *v)
{
	return map_get(&f->entries, v);
}

/* The operation that computes v as part of an index; NULL: v is a leaf. */
static struct op *index_op(const struct value *v)
{
	struct op *o = v->def;
	i64 c;
	if (!o || value_const_int(v, &c))
		return NULL;
	switch (o->code) {
	case IR_ADDI:
	case IR_SUBI:
	case IR_MULI:
	case IR_DIVSI:
	case IR_REMSI:
	case IR_MINSI:
	case IR_MAXSI:
	case IR_EXTSI: return type_elem_bits(v->type) >= 32 && type_elem_bits(operand(o, 0)->type) >= 32 ? o : NULL;
	case IR_SHLI:
		return type_elem_bits(v->type) >= 32 && value_const_int(operand(o, 1), &c) && c >= 0 && c < 31 ? o
													       : NULL;
	case IR_BITCAST: return type_elem_bits(v->type) >= 32 && operand(o, 0)->type == v->type ? o : NULL;
	case IR_SELECT:
	case IR_SPLAT:
	case IR_BROADCAST:
	case IR_EXPAND_DIMS:
	case IR_TRANS:
	case IR_RESHAPE: return type_elem_bits(v->type) >= 32 ? o : NULL;
	default: return NULL;
	}
}

/* The loop of which v is the index. */
static struct op *loop_of_index(const struct value *v)
{
	struct op *loop = v->def ? NULL : v->block->parent;
	return loop && loop->code == IR_FOR && v == for_index(loop) ? loop : NULL;
}

/* The values that v is computed from, at most two; SELECT: without its condition. */
static u32 sources(const struct value *v, struct value *out[2])
{
	struct op *o = index_op(v), *loop = loop_of_index(v);
	if (loop) {
		out[0] = for_lower(loop);
		out[1] = for_upper(loop);
		return 2;
	}
	if (!o)
		return 0;
	bool select = o->code == IR_SELECT;
	out[0] = operand(o, select);
	out[1] = o->noperands > 1 ? operand(o, 1 + select) : out[0];
	return o->noperands > 1 ? 2 : 1;
}

static bool is_ring(const struct op *o)
{
	return o->code == IR_ADDI || o->code == IR_SUBI || o->code == IR_MULI || o->code == IR_SHLI;
}

static i32 add_leaf(struct finder *f, enum index_op op, i32 a)
{
	for (u32 i = 0; i < f->leaves.len; i++)
		if (f->leaves.at[i].op == (i32)op && f->leaves.at[i].a == a)
			return -(i32)i - 1;
	vec_push(f->arena, &f->leaves, ((struct index_node){.op = op, .a = a}));
	return -(i32)f->leaves.len;
}

static i32 add_node(struct finder *f, struct index_node n)
{
	vec_push(f->arena, &f->nodes, n);
	return (i32)f->nodes.len;
}

static i32 leaf_node(struct finder *f, const struct value *v)
{
	const struct op *o = v->def;
	i32 param = param_number(f->k, v);
	i64 c;
	if (value_const_int(v, &c))
		return add_node(f, (struct index_node){.op = INDEX_CONSTANT, .min = c, .max = c});
	if (param >= 0 && v->type->kind == TY_SCALAR && dtype_is_int(v->type->dtype) &&
	    !f->k->params[param].is_unsigned)
		return add_leaf(f, INDEX_PARAM, param);
	switch (o ? o->code : IR_OPCODES) {
	case IR_PROGRAM_ID: return add_leaf(f, INDEX_PROGRAM, (i32)o->attr[ATTR_AXIS]);
	case IR_NUM_PROGRAMS: return add_leaf(f, INDEX_PROGRAMS, (i32)o->attr[ATTR_AXIS]);
	case IR_MAKE_RANGE:
		return add_node(f, (struct index_node){.op = INDEX_CONSTANT,
						       .min = o->attr[ATTR_START],
						       .max = o->attr[ATTR_END] - 1});
	default: return add_node(f, (struct index_node){.op = INDEX_ANY});
	}
}

static enum index_op op_of(const struct op *o)
{
	switch (o->code) {
	case IR_ADDI: return INDEX_ADD;
	case IR_SUBI: return INDEX_SUB;
	case IR_MULI:
	case IR_SHLI: return INDEX_MUL;
	case IR_DIVSI: return INDEX_DIV;
	case IR_REMSI: return INDEX_REM;
	case IR_MINSI: return INDEX_MIN;
	case IR_MAXSI: return INDEX_MAX;
	default: return INDEX_EITHER;
	}
}

static i32 inner_node(struct finder *f, const struct value *v, i32 x, i32 y)
{
	const struct op *o = v->def;
	i64 c;
	if (!o)
		return add_node(f, (struct index_node){.op = INDEX_LOOP, .a = x, .b = y});
	if (o->code == IR_SHLI && value_const_int(operand(o, 1), &c))
		y = add_node(f, (struct index_node){.op = INDEX_CONSTANT, .min = (i64)1 << c, .max = (i64)1 << c});
	return add_node(f, (struct index_node){.op = op_of(o),
					       .a = x,
					       .b = y,
					       .is_32_bits = is_ring(o) && type_elem_bits(v->type) == 32,
					       .line = o->loc.line,
					       .column = o->loc.col});
}

/* May o's result of 32 bits be another number than that of its operands, for some launch? */
static bool can_wrap(const struct finder *f, const struct op *o)
{
	const struct range *x = value_range(f->ranges, operand(o, 0)), *y = value_range(f->ranges, operand(o, 1));
	const struct index_node nodes[] = {{0}, {0}, {.op = op_of(o), .a = 0, .b = 1, .is_32_bits = 1}};
	struct index_interval at[] = {{x->min, x->max, true}, {y->min, y->max, true}, {0}};
	if (o->code == IR_SHLI)
		at[1] = (struct index_interval){(i64)1 << y->min, (i64)1 << y->max, true};
	return index_program_run(nodes, 2, 3, at) >= 0;
}

static void make_entry(struct finder *f, struct value *v)
{
	struct value *from[2];
	u32 n = sources(v, from);
	const struct entry *x = n ? entry_of(f, from[0]) : NULL, *y = n > 1 ? entry_of(f, from[1]) : x;
	struct entry *e = arena_new(f->arena, struct entry);
	*e = (struct entry){.v = v, .may_wrap = n && (x->may_wrap || y->may_wrap)};
	e->node = !n ? leaf_node(f, v) : n == 1 ? x->node : inner_node(f, v, x->node, y->node);
	if (v->def && n && is_ring(v->def) && type_elem_bits(v->type) == 32)
		e->may_wrap |= can_wrap(f, v->def);
	map_put(&f->entries, v, e);
	vec_push(f->arena, &f->order, e);
}

/* Makes the entries of v and of what it is computed from. A list in place of recursion: chains may be long. */
static void add_index(struct finder *f, struct value *v)
{
	vec_push(f->arena, &f->work, v);
	while (f->work.len) {
		struct value *from[2], *at = f->work.at[f->work.len - 1];
		u32 n = sources(at, from), todo = 0;
		for (u32 i = 0; i < n && !entry_of(f, at); i++)
			if (!entry_of(f, from[i])) {
				vec_push(f->arena, &f->work, from[i]);
				todo++;
			}
		if (todo)
			continue;
		f->work.len--;
		if (!entry_of(f, at))
			make_entry(f, at);
	}
}

static bool is_wide_comparison(const struct op *o)
{
	return o->code == IR_CMPI && o->attr[ATTR_PREDICATE] <= CMPI_SGE && type_elem_bits(operand(o, 0)->type) == 32;
}

static void find_roots(struct op *o, void *arg)
{
	struct finder *f = arg;
	if (o->code == IR_ADDPTR && type_elem_bits(operand(o, 1)->type) >= 32)
		vec_push(f->arena, &f->pointers, o);
	u32 mask = o->code == IR_LOAD ? 1 : 2;
	if ((o->code == IR_LOAD || o->code == IR_STORE || o->code == IR_ATOMIC_RMW) && o->noperands > mask)
		visit_later(&f->masks, operand(o, mask));
	if (o->code == IR_FOR && type_elem_bits(for_lower(o)->type) == 32)
		vec_push(f->arena, &f->loops, o);
	if (is_wide_comparison(o))
		vec_push(f->arena, &f->comparisons, o);
}

/* What the parts of masks compare. */
static void add_masks(struct finder *f)
{
	const struct value *v;
	while ((v = visit_next(&f->masks))) {
		struct op *o = v->def;
		if (o && is_wide_comparison(o)) {
			add_index(f, operand(o, 0));
			add_index(f, operand(o, 1));
		} else if (o && (op_is_shape(o) || o->code == IR_ANDI || o->code == IR_ORI || o->code == IR_SPLAT)) {
			visit_operands(&f->masks, o);
		}
	}
}

static void find_all(struct finder *f)
{
	f->ranges = ranges_analyze(f->k);
	f->masks.id = begin_walk(f->k->ctx);
	walk(f->k->body, find_roots, f);
	for (u32 i = 0; i < f->pointers.len; i++)
		add_index(f, operand(f->pointers.at[i], 1));
	for (u32 i = 0; i < f->loops.len; i++) {
		add_index(f, for_lower(f->loops.at[i]));
		add_index(f, for_upper(f->loops.at[i]));
	}
	add_masks(f);
}

/* --- the program --------------------------------------------------------------------------------------------- */

/* The leaves' intervals for sizes up to `most`. */
static void set_leaves(const struct finder *f, i64 most, struct index_interval *at)
{
	for (u32 i = 0; i < f->leaves.len; i++)
		switch (f->leaves.at[i].op) {
		case INDEX_PROGRAM: at[i] = (struct index_interval){0, most - 1, true}; break;
		case INDEX_PROGRAMS: at[i] = (struct index_interval){1, most, true}; break;
		default: at[i] = (struct index_interval){-most, most, true};
		}
}

/* In one list, leaves first. What is meant to wrap is not known. *n is 0 where there are too many. */
static struct index_node *linked(const struct finder *f, u32 *n)
{
	u32 nleaves = f->leaves.len;
	struct index_node *all = arena_array(f->arena, struct index_node, nleaves + f->nodes.len + 1);
	struct index_interval *at = arena_array(f->arena, struct index_interval, nleaves + f->nodes.len + 1);
	*n = nleaves + f->nodes.len;
	for (u32 i = 0; i < nleaves; i++)
		all[i] = f->leaves.at[i];
	set_leaves(f, LEAST_SIZES, at);
	for (u32 i = 0; i < f->nodes.len; i++) {
		struct index_node *x = &all[nleaves + i];
		*x = f->nodes.at[i];
		x->a = x->a < 0 ? -x->a - 1 : (i32)nleaves + x->a - 1;
		x->b = x->b < 0 ? -x->b - 1 : (i32)nleaves + x->b - 1;
		if (x->op == INDEX_CONSTANT || x->op == INDEX_ANY)
			x->a = x->b = 0;
		i32 wraps = index_program_run(all, nleaves + i, nleaves + i + 1, at);
		if (wraps >= 0) {
			*x = (struct index_node){.op = INDEX_ANY};
			at[nleaves + i].known = false;
		}
	}
	return all;
}

void find_indices(struct kernel *k)
{
	struct arena *a = k->ctx->arena;
	struct finder f = {.k = k, .arena = a, .entries = {.arena = a}};
	k->indices = (struct indices){0};
	find_all(&f);
	u32 n;
	struct index_node *all = linked(&f, &n);
	if (n > MAX_INDEX_NODES)
		return;
	struct index_interval *at = arena_array(a, struct index_interval, n + 1);
	i64 safe = LEAST_SIZES;
	for (; safe < (i64)1 << 32; safe *= 2) {
		set_leaves(&f, 2 * safe, at);
		if (index_program_run(all, f.leaves.len, n, at) >= 0)
			break;
	}
	if (safe < (i64)1 << 32)
		k->indices = (struct indices){all, n, f.leaves.len, safe};
}

/* --- 64 bits ------------------------------------------------------------------------------------------------- */

static const struct type *wide_type(struct kernel *k, const struct type *t)
{
	const struct type *i64_type = type_scalar(k->ctx, DT_I64);
	return type_is_tensor(t) ? type_tensor(k->ctx, i64_type, t->rank, t->shape) : i64_type;
}

static struct builder behind(struct kernel *k, struct value *v)
{
	struct builder b;
	if (v->def)
		b = builder_after(k->ctx, v->def);
	else
		b = v->block->first ? builder_before(k->ctx, v->block->first) : builder_at_end(k->ctx, v->block);
	b.loc = v->def ? v->def->loc : k->loc;
	return b;
}

/* v in 64 bits. */
static struct value *wide(struct finder *f, struct value *v)
{
	struct entry *e = map_get(&f->entries, v);
	i64 c;
	if (e && e->wide)
		return e->wide;
	struct builder b = behind(f->k, v);
	struct value *w = type_elem_bits(v->type) == 64 ? v
			  : value_const_int(v, &c)      ? build_int(&b, wide_type(f->k, v->type), c)
							: build1(&b, IR_EXTSI, wide_type(f->k, v->type), v);
	if (e)
		e->wide = w;
	return w;
}

/* The loop counts in 64 bits. */
static void widen_loop(struct finder *f, struct op *loop, struct entry *e)
{
	struct value *index = for_index(loop);
	struct builder b = builder_before(f->k->ctx, loop->blocks[0]->first);
	b.loc = loop->loc;
	for (u32 i = FOR_LOWER; i <= FOR_STEP; i++)
		op_set_operand(loop, i, wide(f, operand(loop, i)));
	const struct type *narrow = index->type;
	struct value *cut = NULL;
	index->type = wide_type(f->k, narrow);
	if (!value_unused(index)) {
		cut = build1(&b, IR_TRUNCI, narrow, index);
		replace_uses(index, cut);
		op_set_operand(cut->def, 0, index);
	}
	if (!e)
		return;
	e->wide = index;
	if (cut)
		map_put(&f->entries, cut, e);
}

static void widen_value(struct finder *f, struct entry *e)
{
	struct value *v = e->v, *operands[3] = {NULL, NULL, NULL};
	struct op *o = index_op(v);
	if (!o)
		return;
	struct builder b = behind(f->k, v);
	for (u32 i = 0; i < o->noperands; i++)
		operands[i] = o->code == IR_SELECT && !i ? operand(o, 0) : wide(f, operand(o, i));
	if (o->code == IR_EXTSI) {
		e->wide = operands[0];
		return;
	}
	struct op *w =
		build(&b, o->code, operands, o->noperands, (const struct type *[]){wide_type(f->k, v->type)}, 1, 0);
	memcpy(w->attr, o->attr, sizeof w->attr);
	w->hints = o->hints;
	e->wide = result(w);
}

void widen_indices(struct kernel *k)
{
	struct arena *a = k->ctx->arena;
	struct finder f = {.k = k, .arena = a, .entries = {.arena = a}};
	u32 n;
	find_all(&f);
	const struct index_node *all = linked(&f, &n);
	if (n > MAX_INDEX_NODES)
		return;
	for (u32 i = 0; i < f.order.len; i++) {
		struct entry *e = f.order.at[i];
		bool known = e->node < 0 || all[(i32)f.leaves.len + e->node - 1].op != INDEX_ANY;
		struct op *loop = loop_of_index(e->v);
		e->may_wrap &= known;
		if (e->may_wrap && loop)
			widen_loop(&f, loop, e);
		else if (e->may_wrap)
			widen_value(&f, e);
	}
	for (u32 i = 0; i < f.loops.len; i++) {
		struct op *o = f.loops.at[i];
		const struct entry *x = entry_of(&f, for_lower(o)), *y = entry_of(&f, for_upper(o));
		if (type_elem_bits(for_index(o)->type) == 32 && (x->may_wrap || y->may_wrap))
			widen_loop(&f, o, map_get(&f.entries, for_index(o)));
	}
	for (u32 i = 0; i < f.pointers.len; i++) {
		const struct entry *e = entry_of(&f, operand(f.pointers.at[i], 1));
		if (e->may_wrap)
			op_set_operand(f.pointers.at[i], 1, wide(&f, e->v));
	}
	for (u32 i = 0; i < f.comparisons.len; i++) {
		struct op *o = f.comparisons.at[i];
		const struct entry *x = entry_of(&f, operand(o, 0)), *y = entry_of(&f, operand(o, 1));
		if (!(x && x->may_wrap) && !(y && y->may_wrap))
			continue;
		struct value *l = wide(&f, operand(o, 0)), *r = wide(&f, operand(o, 1));
		op_set_operand(o, 0, l);
		op_set_operand(o, 1, r);
	}
}
