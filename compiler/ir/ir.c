/* Types, and building and changing operations. */
#include "ir/ir.h"

#include "ir/text.h"

const struct op_info op_info[IR_OPCODES] = {
#define OP(code, name, lo, hi, results, traits, rule, format, ...) \
	[IR_##code] = {name, lo, hi, results, traits, rule, format, {__VA_ARGS__}},
#include "ir/ops.def"
};

/* --- types --------------------------------------------------------------------------------------------------- */

void ir_context_init(struct ir_context *c, struct arena *arena, struct interner *names, struct diags *diags)
{
	*c = (struct ir_context){.arena = arena, .names = names, .diags = diags, .layouts = {.arena = arena}};
}

static const struct type *type_intern(struct ir_context *c, const struct type *t)
{
	if ((c->ntypes + 1) * 4 > c->cap_types * 3) {
		u32 cap = c->cap_types ? c->cap_types * 2 : 64;
		const struct type **at = arena_array(c->arena, const struct type *, cap);
		for (u32 i = 0; i < c->cap_types; i++)
			if (c->types[i]) {
				u32 h = (u32)hash_bytes(c->types[i], sizeof *t, 0) & (cap - 1);
				while (at[h])
					h = (h + 1) & (cap - 1);
				at[h] = c->types[i];
			}
		c->types = at;
		c->cap_types = cap;
	}
	u32 h = (u32)hash_bytes(t, sizeof *t, 0) & (c->cap_types - 1);
	for (; c->types[h]; h = (h + 1) & (c->cap_types - 1))
		if (!memcmp(c->types[h], t, sizeof *t))
			return c->types[h];
	c->ntypes++;
	return c->types[h] = arena_dup(c->arena, t, sizeof *t);
}

static struct type blank(enum type_kind kind)
{
	return (struct type){.kind = kind};
}

const struct type *type_scalar(struct ir_context *c, enum dtype d)
{
	struct type t = blank(TY_SCALAR);
	t.dtype = dtype_signless(d);
	return type_intern(c, &t);
}

const struct type *type_ptr(struct ir_context *c, const struct type *pointee)
{
	struct type t = blank(TY_PTR);
	t.elem = pointee;
	return type_intern(c, &t);
}

const struct type *type_tensor(struct ir_context *c, const struct type *elem, int rank, const i32 *shape)
{
	struct type t = blank(TY_TENSOR);
	tl_assert(rank > 0 && rank <= MAX_RANK && !type_is_tensor(elem));
	t.elem = elem;
	t.rank = rank;
	memcpy(t.shape, shape, (size_t)rank * sizeof *shape);
	return type_intern(c, &t);
}

const struct type *type_memdesc(struct ir_context *c, const struct type *elem, int rank, const i32 *shape,
				const struct layout *layout, int nbuf)
{
	struct type t = blank(TY_MEMDESC);
	t.elem = elem;
	t.rank = rank;
	memcpy(t.shape, shape, (size_t)rank * sizeof *shape);
	t.layout = layout;
	t.nbuf = nbuf;
	return type_intern(c, &t);
}

const struct type *type_token(struct ir_context *c)
{
	struct type t = blank(TY_TOKEN);
	return type_intern(c, &t);
}

const struct type *type_with_elem(struct ir_context *c, const struct type *t, const struct type *elem)
{
	if (!type_is_tensor(t))
		return elem;
	struct type n = *t;
	n.elem = elem;
	return type_intern(c, &n);
}

const struct type *type_with_dtype(struct ir_context *c, const struct type *t, enum dtype d)
{
	return type_with_elem(c, t, type_scalar(c, d));
}

const struct type *type_with_layout(struct ir_context *c, const struct type *t, const struct layout *l)
{
	struct type n = *t;
	n.layout = l;
	return type_intern(c, &n);
}

const struct type *type_elem(const struct type *t)
{
	return t->kind == TY_TENSOR || t->kind == TY_MEMDESC ? t->elem : t;
}

enum dtype type_dtype(const struct type *t)
{
	t = type_elem(t);
	return t->kind == TY_PTR ? DT_I64 : t->dtype;
}

i64 type_numel(const struct type *t)
{
	i64 n = 1;
	for (int i = 0; i < t->rank; i++)
		n *= t->shape[i];
	return n;
}

int type_elem_bits(const struct type *t)
{
	return dtype_bits(type_dtype(t));
}

i64 perm_pack(const int *perm, int n)
{
	i64 p = 0;
	for (int i = 0; i < n; i++)
		p |= (i64)perm[i] << (4 * i);
	return p;
}

i64 dims_pack(const int *dims, int n)
{
	i64 p = 0;
	for (int i = 0; i < n; i++)
		p |= (i64)dims[i] << (16 * i);
	return p;
}

/* --- building ------------------------------------------------------------------------------------------------ */

static struct block *block_new(struct ir_context *c, struct op *parent)
{
	struct block *b = arena_new(c->arena, struct block);
	b->parent = parent;
	return b;
}

struct kernel *kernel_new(struct ir_context *c, const char *name)
{
	struct kernel *k = arena_new(c->arena, struct kernel);
	k->ctx = c;
	k->name = arena_ascii(c->arena, name);
	k->body = block_new(c, NULL);
	return k;
}

struct value *block_add_arg(struct ir_context *c, struct block *b, const struct type *t)
{
	struct value *v = arena_new(c->arena, struct value);
	v->type = t;
	v->block = b;
	v->index = b->nargs;
	if (b->nargs == b->cap_args)
		b->args = vec_grow(c->arena, b->args, b->nargs, &b->cap_args, sizeof *b->args);
	b->args[b->nargs++] = v;
	return v;
}

void block_remove_arg(struct block *b, u32 index)
{
	tl_assert(value_unused(b->args[index]));
	for (u32 i = index + 1; i < b->nargs; i++) {
		b->args[i - 1] = b->args[i];
		b->args[i - 1]->index = i - 1;
	}
	b->nargs--;
}

struct builder builder_at_end(struct ir_context *c, struct block *b)
{
	return (struct builder){.ctx = c, .block = b};
}

struct builder builder_before(struct ir_context *c, struct op *o)
{
	return (struct builder){.ctx = c, .block = o->block, .before = o, .loc = o->loc};
}

struct builder builder_after(struct ir_context *c, struct op *o)
{
	return (struct builder){.ctx = c, .block = o->block, .before = o->next, .loc = o->loc};
}

static void link_op(struct op *o, struct block *b, struct op *before)
{
	o->block = b;
	o->next = before;
	o->prev = before ? before->prev : b->last;
	*(o->prev ? &o->prev->next : &b->first) = o;
	*(before ? &before->prev : &b->last) = o;
}

static void use_link(struct use *u, struct value *v)
{
	u->value = v;
	u->next = v->uses;
	u->link = &v->uses;
	if (u->next)
		u->next->link = &u->next;
	v->uses = u;
}

static void use_unlink(struct use *u)
{
	*u->link = u->next;
	if (u->next)
		u->next->link = u->link;
	u->value = NULL;
}

void op_set_results(struct ir_context *c, struct op *o, const struct type *const *types, u32 n)
{
	tl_assert(!o->nresults);
	o->nresults = n;
	o->results = arena_array(c->arena, struct value, n);
	for (u32 i = 0; i < n; i++)
		o->results[i] = (struct value){.type = types[i], .def = o, .index = i};
}

struct op *build(struct builder *b, enum opcode code, struct value *const *operands, u32 noperands,
		 const struct type *const *results, u32 nresults, u32 nblocks)
{
	struct arena *a = b->ctx->arena;
	struct op *o = arena_new(a, struct op);
	o->code = code;
	o->loc = b->loc;
	o->scratch_offset = -1;
	o->noperands = noperands;
	o->operands = arena_array(a, struct use, noperands);
	for (u32 i = 0; i < noperands; i++) {
		tl_assert(operands[i]);
		o->operands[i].user = o;
		use_link(&o->operands[i], operands[i]);
	}
	op_set_results(b->ctx, o, results, nresults);
	o->nblocks = nblocks;
	o->blocks = arena_array(a, struct block *, nblocks);
	for (u32 i = 0; i < nblocks; i++)
		o->blocks[i] = block_new(b->ctx, o);
	link_op(o, b->block, b->before);
	b->count++;
	return o;
}

struct value *build1(struct builder *b, enum opcode code, const struct type *t, struct value *x)
{
	return build3(b, code, t, x, NULL, NULL);
}

struct value *build2(struct builder *b, enum opcode code, const struct type *t, struct value *x, struct value *y)
{
	return build3(b, code, t, x, y, NULL);
}

struct value *build3(struct builder *b, enum opcode code, const struct type *t, struct value *x, struct value *y,
		     struct value *z)
{
	struct value *v[] = {x, y, z};
	u32 n = z ? 3 : y ? 2 : x ? 1 : 0;
	return result(build(b, code, v, n, &t, 1, 0));
}

struct value *build_constant(struct builder *b, const struct type *t, u64 bits)
{
	struct op *o = build(b, IR_CONSTANT, NULL, 0, &t, 1, 0);
	o->attr[ATTR_VALUE] = (i64)bits;
	return result(o);
}

struct value *build_int(struct builder *b, const struct type *t, i64 x)
{
	return build_constant(b, t, dtype_encode_int(type_dtype(t), x));
}

struct value *build_i32(struct builder *b, i64 x)
{
	return build_int(b, type_scalar(b->ctx, DT_I32), x);
}

struct value *build_i64(struct builder *b, struct value *v)
{
	const struct type *t = type_scalar(b->ctx, DT_I64);
	return v->type == t ? v : build1(b, IR_EXTSI, t, v);
}

struct value *build_cmpi(struct builder *b, enum cmpi_predicate p, struct value *x, struct value *y)
{
	struct value *v = build2(b, IR_CMPI, type_with_dtype(b->ctx, x->type, DT_I1), x, y);
	v->def->attr[ATTR_PREDICATE] = p;
	return v;
}

struct value *build_moved_by_half(struct builder *b, struct value *x)
{
	u64 half = 1ull << (type_elem_bits(x->type) - 1);
	return build2(b, IR_ADDI, x->type, x, build_constant(b, x->type, half));
}

static struct hints *both_hints(struct arena *a, const struct hints *x, const struct hints *y)
{
	struct hints *h = arena_dup(a, x, sizeof *x);
	for (int d = 0; y && d < MAX_RANK; d++) {
		h->divisibility[d] = MAX(h->divisibility[d], y->divisibility[d]);
		h->contiguity[d] = MAX(h->contiguity[d], y->contiguity[d]);
		h->constancy[d] = MAX(h->constancy[d], y->constancy[d]);
	}
	return h;
}

struct value *value_with_hints(struct builder *b, struct value *v, const struct hints *h)
{
	struct op *o = v->def;
	u64 bits;
	if (value_const_bits(v, &bits))
		return v;
	if (!o || o->block != b->block || o->nresults != 1 || o->nblocks || !always_reaches(b->block, o, b->before)) {
		v = build1(b, IR_BITCAST, v->type, v);
		o = v->def;
	}
	o->hints = both_hints(b->ctx->arena, h, o->hints);
	return v;
}

struct value *build_splat(struct builder *b, struct value *scalar, int rank, const i32 *shape)
{
	return build1(b, IR_SPLAT, type_tensor(b->ctx, scalar->type, rank, shape), scalar);
}

/* --- changing ------------------------------------------------------------------------------------------------ */

void op_set_operand(struct op *o, u32 i, struct value *v)
{
	use_unlink(&o->operands[i]);
	use_link(&o->operands[i], v);
}

void op_add_operand(struct ir_context *c, struct op *o, struct value *v)
{
	struct use *more = arena_array(c->arena, struct use, o->noperands + 1);
	for (u32 i = 0; i < o->noperands; i++) {
		struct value *old = operand(o, i);
		use_unlink(&o->operands[i]);
		more[i].user = o;
		use_link(&more[i], old);
	}
	more[o->noperands].user = o;
	use_link(&more[o->noperands], v);
	o->operands = more;
	o->noperands++;
}

void op_remove_operand(struct op *o, u32 index)
{
	for (u32 i = index; i + 1 < o->noperands; i++)
		op_set_operand(o, i, operand(o, i + 1));
	use_unlink(&o->operands[--o->noperands]);
}

void for_remove_carried(struct op *loop, u32 i)
{
	op_remove_operand(loop->blocks[0]->last, i);
	op_remove_operand(loop, FOR_INITS + i);
	block_remove_arg(loop->blocks[0], 1 + i);
	op_remove_result(loop, i);
}

void op_remove_result(struct op *o, u32 index)
{
	tl_assert(value_unused(&o->results[index]));
	for (u32 i = index; i + 1 < o->nresults; i++) {
		struct value *to = &o->results[i], *from = &o->results[i + 1];
		*to = *from;
		to->index = i;
		to->uses = NULL;
		replace_uses(from, to);
	}
	o->nresults--;
}

static void op_unlink(struct op *o)
{
	*(o->prev ? &o->prev->next : &o->block->first) = o->next;
	*(o->next ? &o->next->prev : &o->block->last) = o->prev;
	o->prev = o->next = NULL;
	o->block = NULL;
}

void op_insert_before(struct op *o, struct op *at)
{
	op_unlink(o);
	link_op(o, at->block, at);
}

static void drop_uses(struct op *o)
{
	for (u32 i = 0; i < o->noperands; i++)
		if (o->operands[i].value)
			use_unlink(&o->operands[i]);
	for (u32 i = 0; i < o->nblocks; i++)
		for (struct op *in = o->blocks[i]->first; in; in = in->next)
			drop_uses(in);
}

void op_erase(struct op *o)
{
	drop_uses(o);
	for (u32 i = 0; i < o->nresults; i++)
		tl_assert(value_unused(&o->results[i]));
	op_unlink(o);
}

void block_erase_unused(struct block *b)
{
	for (struct op *o = b->last, *before; o; o = before) {
		bool used = !op_has(o, PURE) || !o->nresults;
		before = o->prev;
		for (u32 i = 0; i < o->nresults; i++)
			used |= !value_unused(&o->results[i]);
		if (!used)
			op_erase(o);
	}
}

void replace_uses(struct value *from, struct value *to)
{
	tl_assert(from != to);
	while (from->uses) {
		struct use *u = from->uses;
		use_unlink(u);
		use_link(u, to);
	}
}

bool value_has_one_use(const struct value *v)
{
	return v->uses && !v->uses->next;
}

struct value *mapped(const struct map *map, struct value *v)
{
	struct value *to = map_get(map, v);
	return to ? to : v;
}

struct op *op_clone(struct builder *b, const struct op *o, struct map *map)
{
	struct arena *a = b->ctx->arena;
	struct value **v = arena_array(a, struct value *, o->noperands);
	const struct type **t = arena_array(a, const struct type *, o->nresults);
	for (u32 i = 0; i < o->noperands; i++)
		v[i] = mapped(map, operand(o, i));
	for (u32 i = 0; i < o->nresults; i++)
		t[i] = o->results[i].type;
	struct loc loc = b->loc;
	b->loc = o->loc;
	struct op *n = build(b, o->code, v, o->noperands, t, o->nresults, o->nblocks);
	b->loc = loc;
	memcpy(n->attr, o->attr, sizeof n->attr);
	n->text = o->text;
	n->hints = o->hints;
	for (u32 i = 0; i < o->nresults; i++) {
		n->results[i].name = o->results[i].name;
		map_put(map, &o->results[i], &n->results[i]);
	}
	for (u32 k = 0; k < o->nblocks; k++) {
		for (u32 i = 0; i < o->blocks[k]->nargs; i++) {
			struct value *from = o->blocks[k]->args[i],
				     *to = block_add_arg(b->ctx, n->blocks[k], from->type);
			to->name = from->name;
			map_put(map, from, to);
		}
		struct builder in = builder_at_end(b->ctx, n->blocks[k]);
		for (struct op *p = o->blocks[k]->first; p; p = p->next)
			op_clone(&in, p, map);
	}
	return n;
}

/* --- queries ------------------------------------------------------------------------------------------------- */

bool value_const_bits(const struct value *v, u64 *bits)
{
	while (v->def && (v->def->code == IR_SPLAT || v->def->code == IR_BROADCAST || v->def->code == IR_EXPAND_DIMS))
		v = operand(v->def, 0);
	if (!def_if(v, IR_CONSTANT))
		return false;
	*bits = (u64)v->def->attr[ATTR_VALUE];
	return true;
}

bool value_const_int(const struct value *v, i64 *x)
{
	u64 bits;
	if (!dtype_is_int(type_dtype(v->type)) || !value_const_bits(v, &bits))
		return false;
	*x = dtype_decode_int(type_dtype(v->type), bits);
	return true;
}

bool value_is_int(const struct value *v, i64 x)
{
	i64 c;
	return value_const_int(v, &c) && c == x;
}

bool equal_values(const struct value *x, const struct value *y)
{
	i64 c;
	return x == y || (x && y && value_const_int(x, &c) && value_is_int(y, c));
}

enum cmpi_predicate mirrored_predicate(enum cmpi_predicate p)
{
	static const enum cmpi_predicate mirrored[] = {
		[CMPI_EQ] = CMPI_EQ,   [CMPI_NE] = CMPI_NE,   [CMPI_SLT] = CMPI_SGT, [CMPI_SLE] = CMPI_SGE,
		[CMPI_SGT] = CMPI_SLT, [CMPI_SGE] = CMPI_SLE, [CMPI_ULT] = CMPI_UGT, [CMPI_ULE] = CMPI_UGE,
		[CMPI_UGT] = CMPI_ULT, [CMPI_UGE] = CMPI_ULE};
	return mirrored[p];
}

bool comes_behind(const struct op *o, const struct op *first)
{
	while (o && o->block != first->block)
		o = o->block->parent;
	while (o && o != first)
		o = o->prev;
	return o != NULL;
}

bool block_contains(const struct block *outer, const struct block *inner)
{
	while (inner != outer) {
		if (!inner->parent)
			return false;
		inner = inner->parent->block;
	}
	return true;
}

bool value_defined_outside(const struct value *v, const struct block *b)
{
	return !block_contains(b, v->def ? v->def->block : v->block);
}

bool block_has(const struct block *b, bool (*test)(const struct op *))
{
	for (const struct op *o = b->first; o; o = o->next) {
		if (test(o))
			return true;
		for (u32 i = 0; i < o->nblocks; i++)
			if (block_has(o->blocks[i], test))
				return true;
	}
	return false;
}

struct value *mask_of(const struct op *o)
{
	bool has = o->code == IR_LOAD || o->code == IR_STORE || o->code == IR_ATOMIC_RMW || o->code == IR_ASYNC_COPY;
	u32 i = o->code == IR_LOAD ? 1 : 2;
	return has && o->noperands > i ? operand(o, i) : NULL;
}

enum mem_sem memory_order_of(const struct op *o)
{
	return o->code == IR_ATOMIC_RMW || o->code == IR_ATOMIC_CAS ? (enum mem_sem)o->attr[ATTR_SEM] : SEM_RELAXED;
}

bool region_is_elementwise(const struct block *b)
{
	for (const struct op *o = b->first; !op_has(o, END); o = o->next)
		if ((!op_has(o, ELEM) && o->code != IR_CONSTANT) || type_is_tensor(result(o)->type))
			return false;
	return true;
}

i32 param_number(const struct kernel *k, const struct value *v)
{
	for (u32 i = 0; i < k->nparams; i++)
		if (k->params[i].value == v)
			return (i32)i;
	return -1;
}

struct op *build_for(struct builder *b, struct value *lower, struct value *upper, struct value *step,
		     struct value *const *inits, u32 n)
{
	struct value **ops = arena_array(b->ctx->arena, struct value *, FOR_INITS + n);
	const struct type **types = arena_array(b->ctx->arena, const struct type *, n);
	ops[FOR_LOWER] = lower;
	ops[FOR_UPPER] = upper;
	ops[FOR_STEP] = step;
	for (u32 i = 0; i < n; i++) {
		ops[FOR_INITS + i] = inits[i];
		types[i] = inits[i]->type;
	}
	struct op *loop = build(b, IR_FOR, ops, FOR_INITS + n, types, n, 1);
	block_add_arg(b->ctx, loop->blocks[0], step->type);
	for (u32 i = 0; i < n; i++)
		block_add_arg(b->ctx, loop->blocks[0], types[i]);
	return loop;
}

struct op *extend_loop(struct ir_context *ctx, struct arena *scratch, struct op *old, const value_vec *inits)
{
	struct block *from = old->blocks[0];
	value_vec all = {0};
	for (u32 i = 0; i < old->nresults; i++)
		vec_push(scratch, &all, for_init(old, i));
	for (u32 i = 0; i < inits->len; i++)
		vec_push(scratch, &all, inits->at[i]);
	struct builder b = builder_before(ctx, old);
	struct op *loop = build_for(&b, for_lower(old), for_upper(old), for_step(old), all.at, all.len);
	struct block *to = loop->blocks[0];
	memcpy(loop->attr, old->attr, sizeof loop->attr);
	for (u32 i = 0; i < from->nargs; i++) {
		to->args[i]->name = from->args[i]->name;
		replace_uses(from->args[i], to->args[i]);
	}
	for (struct op *o = from->first, *next; o; o = next) {
		next = o->next;
		op_unlink(o);
		o->block = to;
		o->prev = to->last;
		*(to->last ? &to->last->next : &to->first) = o;
		to->last = o;
	}
	for (u32 i = 0; i < old->nresults; i++) {
		loop->results[i].name = old->results[i].name;
		replace_uses(&old->results[i], &loop->results[i]);
	}
	struct builder in = builder_at_end(ctx, from); /* the loop, now empty, is erased as a whole */
	build(&in, IR_YIELD, NULL, 0, NULL, 0, 0);
	op_erase(old);
	return loop;
}

int operand_dim(const struct op *o, int d)
{
	switch (o->code) {
	case IR_EXPAND_DIMS: return d == o->attr[ATTR_AXIS] ? -1 : d - (d > o->attr[ATTR_AXIS]);
	case IR_TRANS: return perm_get(o->attr[ATTR_ORDER], d);
	case IR_BROADCAST: return operand(o, 0)->type->shape[d] == result(o)->type->shape[d] ? d : -1;
	default: return -1;
	}
}

int result_dim(const struct op *o, int d)
{
	for (int k = 0; k < result(o)->type->rank; k++)
		if (operand_dim(o, k) == d)
			return k;
	return -1;
}

bool load_fills_zero(const struct op *load)
{
	u64 bits;
	return load->noperands < 3 || (value_const_bits(operand(load, 2), &bits) && !bits);
}

bool op_may_trap(const struct op *o)
{
	i64 d;
	switch (o->code) {
	case IR_DIVSI:
	case IR_DIVUI:
	case IR_REMSI:
	case IR_REMUI: return !value_const_int(operand(o, 1), &d) || d == 0 || d == -1;
	default: return false;
	}
}

bool op_reports_inside(const struct op *o)
{
	return op_runs_on_elements(o) && block_has(o->blocks[0], op_is_report);
}

/* True if the program may end or loop forever inside o, so that the operations after o are not always reached. */
static bool op_may_not_return(const struct op *o)
{
	if (o->code == IR_WHILE || o->code == IR_ASSERT || o->code == IR_INLINE_ASM)
		return true;
	for (u32 i = 0; i < o->nblocks; i++)
		if (block_has(o->blocks[i], op_may_not_return))
			return true;
	return false;
}

bool always_reaches(const struct block *b, const struct op *from, const struct op *to)
{
	const struct op *o = to ? to->prev : b->last;
	while (o && o != from && !op_may_not_return(o))
		o = o->prev;
	return o == from;
}

i64 for_iterations(const struct op *loop)
{
	i64 from, to, step, length;
	if (!value_const_int(for_lower(loop), &from) || !value_const_int(for_upper(loop), &to) ||
	    !value_const_int(for_step(loop), &step) || step <= 0 || __builtin_sub_overflow(to, from, &length))
		return -1;
	return length <= 0 ? 0 : (length - 1) / step + 1;
}

u32 number_ops(struct block *b, u32 first)
{
	for (struct op *o = b->first; o; o = o->next) {
		o->mark = first++;
		for (u32 i = 0; i < o->nblocks; i++)
			first = number_ops(o->blocks[i], first);
	}
	return first;
}

u32 last_mark(const struct op *o)
{
	u32 last = o->mark;
	for (u32 i = 0; i < o->nblocks; i++)
		if (o->blocks[i]->last)
			last = MAX(last, last_mark(o->blocks[i]->last));
	return last;
}

void walk(struct block *b, void (*f)(struct op *o, void *arg), void *arg)
{
	for (struct op *o = b->first, *next; o; o = next) {
		next = o->next;
		f(o, arg);
		if (o->block == b) /* not erased yet */
			for (u32 i = 0; i < o->nblocks; i++)
				walk(o->blocks[i], f, arg);
	}
}
