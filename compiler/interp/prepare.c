/* Translation of a kernel to a program: a slot for every value, an instruction for every operation.
 *
 * The translation walks the kernel three times.
 * 1. Number the operations.
 * 2. Compute the lifetime of each value. Values that always hold the same bits share one `storage`: the result of an
 *    operation that keeps the row-major order of elements shares that of its operand, and the results of a loop share
 *    those of its iteration values. A value yielded to the next iteration is computed in place if this overwrites no
 *    live value, which avoids copies of accumulators. Constants are built once and belong to the program.
 * 3. Emit instructions, and allocate memory for each storage over its lifetime, first fit. */
#include "support/map.h"
#include "interp/interp_internal.h"

enum { ALIGNMENT = 64 };

/* The elements of one or more values, live at positions [start, end]. */
struct storage {
	u32 start, end;
	u32 last_inside;         /* for an iteration value: its last use in the body of the loop */
	size_t size;
	struct storage *same_as; /* the storage into which this one was merged */
	bool placed, forever;
	u32 slot;
	size_t offset;
};

struct span {
	u32 start, end;
};

/* A tile of equal elements, or of consecutive i32 numbers that start at `bits`. */
struct constant {
	bool range;
	u64 bits;
	u32 bytes;
	i64 n;
	u32 slot;
};

typedef VEC(struct inst) inst_vec;
typedef VEC(struct move) move_vec;

struct planner {
	const struct kernel *kernel;
	struct arena *arena;  /* arena of the program */
	struct arena temp;
	struct interp_program *program;
	struct map spans;     /* operation → struct span */
	struct map storages;  /* value → its storage */
	struct map captured;  /* value defined outside the wide region → a storage with one copy per lane */
	VEC(struct slot) slots;
	VEC(struct constant) constants;
	VEC(struct storage *) live; /* sorted by offset */
	inst_vec *code;       /* receives the emitted instructions */
	u32 now;              /* current position */
	struct span op;       /* span of the operation under planning */
	i64 lanes;            /* lanes of the current wide region, or 0 */
	const struct block *region;
	const struct interp_checks *checks;
};

void *plan_alloc(struct planner *p, size_t size)
{
	return arena_alloc(p->arena, size);
}

i32 plan_param(const struct planner *p, const struct value *v)
{
	return param_number(p->kernel, v);
}

u32 plan_threads(const struct planner *p)
{
	return p->region ? 1 : (u32)MAX(32 * p->kernel->num_warps, 1);
}

/* --- 1: positions -------------------------------------------------------------------------------------------- */

static void number_block(struct planner *p, const struct block *b)
{
	for (const struct op *o = b->first; o; o = o->next) {
		struct span *s = arena_new(&p->temp, struct span);
		s->start = ++p->now;
		for (u32 i = 0; i < o->nblocks; i++)
			number_block(p, o->blocks[i]);
		s->end = ++p->now;
		map_put(&p->spans, o, s);
	}
}

static struct span span_of(const struct planner *p, const struct op *o)
{
	return *(struct span *)map_get(&p->spans, o);
}

/* --- 2: lives ------------------------------------------------------------------------------------------------ */

/* True if the result consists of the operand's elements in the same order. */
static bool keeps_elements(const struct op *o)
{
	switch (o->code) {
	case IR_EXPAND_DIMS:
	case IR_RESHAPE:
	case IR_UNSPLAT:
	case IR_BITCAST:
	case IR_PTR_TO_INT:
	case IR_INT_TO_PTR:
	case IR_CONVERT_LAYOUT: return true;
	case IR_SPLAT:
	case IR_BROADCAST: return type_numel(operand(o, 0)->type) == type_numel(result(o)->type);
	default: return false;
	}
}

static const struct value *root(const struct value *v)
{
	while (v->def && keeps_elements(v->def))
		v = operand(v->def, 0);
	return v;
}

static bool is_constant(const struct value *v)
{
	u64 bits;
	return value_const_bits(v, &bits) || def_if(v, IR_MAKE_RANGE);
}

static struct storage *storage_of(const struct planner *p, const struct value *v)
{
	struct storage *s = map_get(&p->storages, v);
	while (s && s->same_as)
		s = s->same_as;
	return s;
}

static struct storage *new_storage(struct planner *p, size_t size, u32 start, u32 end)
{
	struct storage *s = arena_new(&p->temp, struct storage);
	*s = (struct storage){.start = start, .end = end, .size = size};
	return s;
}

static struct storage *add_storage(struct planner *p, const struct value *v, u32 start, u32 end)
{
	i64 n = p->lanes ? p->lanes : type_numel(v->type);
	struct storage *s = new_storage(p, (size_t)n * elem_bytes(v->type), start, end);
	s->forever = p->checks->facts && n == 1; /* facts about other values may refer to it */
	map_put(&p->storages, v, s);
	return s;
}

/* Extends the lifetime of operand v, which `user` reads: to the end of the outermost operation that contains the user
 * but not v's definition, since that operation may be a loop. */
static void extend(struct planner *p, const struct value *v, const struct op *user)
{
	while (!is_constant(v) && v->def && keeps_elements(v->def))
		v = operand(v->def, 0);
	struct storage *s = map_get(&p->storages, v);
	if (is_constant(v) || !s)
		return;
	const struct block *home = v->def ? v->def->block : v->block;
	const struct op *o = user;
	while (o->block != home)
		o = o->block->parent;
	bool whole = o != user || op_runs_on_elements(o); /* operations that read the operand while their region runs */
	u32 at = whole ? span_of(p, o).end : span_of(p, o).start;
	s->end = MAX(s->end, at);
	if (!v->def)
		s->last_inside = MAX(s->last_inside, at);
}

static void live_block(struct planner *p, const struct block *b);

static i64 region_lanes(const struct op *o)
{
	const struct type *t = operand(o, 0)->type;
	i64 n = type_numel(t);
	if (o->code == IR_MAP)
		return n;
	return o->code == IR_SCAN ? n / t->shape[o->attr[ATTR_AXIS]] : MAX(n / 2, 1);
}

static void live_op(struct planner *p, const struct op *o)
{
	struct span s = span_of(p, o);
	for (u32 i = 0; i < o->nresults; i++)
		add_storage(p, &o->results[i], s.start, s.start);
	if (o->code == IR_FOR) {
		add_storage(p, for_index(o), s.start, s.end);
		for (u32 i = 0; i < o->nresults; i++)
			map_put(&p->storages, for_arg(o, i), map_get(&p->storages, &o->results[i]));
	} else if (o->code == IR_WHILE) {
		for (u32 i = 0; i < o->noperands; i++)
			add_storage(p, o->blocks[0]->args[i], s.start, s.end);
		for (u32 i = 0; i < o->nresults; i++)
			map_put(&p->storages, o->blocks[1]->args[i], map_get(&p->storages, &o->results[i]));
	} else if (op_runs_on_elements(o)) {
		for (u32 i = 0; i < o->blocks[0]->nargs; i++) /* no memory is allocated: they will point at slices */
			add_storage(p, o->blocks[0]->args[i], s.start, s.end)->size = 0;
		p->lanes = region_is_elementwise(o->blocks[0]) ? region_lanes(o) : 0;
	}
	for (u32 i = 0; i < o->nblocks; i++)
		live_block(p, o->blocks[i]);
	for (u32 i = 0; i < o->nresults && o->nblocks; i++) {
		struct storage *r = map_get(&p->storages, &o->results[i]);
		r->end = MAX(r->end, s.end);
	}
	if (op_runs_on_elements(o))
		p->lanes = 0;
}

static void live_block(struct planner *p, const struct block *b)
{
	for (const struct op *o = b->first; o; o = o->next) {
		for (u32 i = 0; i < o->noperands; i++)
			extend(p, operand(o, i), o);
		live_op(p, o);
	}
}

/* True if `o` may write its result over operand v, element by element. */
static bool works_in_place(const struct planner *p, const struct op *o, const struct value *v)
{
	if (op_has(o, ELEM) || o->code == IR_FOR)
		return true;
	return o->code == IR_DOT && !p->checks->apart && root(operand(o, 0)) != v && root(operand(o, 1)) != v;
}

/* Merges a value that a loop yields with the iteration value that it becomes, if the iteration value is no longer read
 * at that position. */
static void merge_yields(const struct planner *p, const struct block *b)
{
	for (const struct op *o = b->first; o; o = o->next) {
		for (u32 i = 0; o->code == IR_FOR && i < o->nresults; i++) {
			const struct value *arg = for_arg(o, i), *v = root(for_yielded(o, i));
			struct storage *from = map_get(&p->storages, v), *to = map_get(&p->storages, arg);
			if (is_constant(v) || !v->def || v->def->block != o->blocks[0])
				continue;
			if (from->same_as || from->size != to->size || to->forever)
				continue;
			bool dead = to->last_inside < from->start;
			if (dead || (to->last_inside == from->start && works_in_place(p, v->def, arg)))
				from->same_as = to;
		}
		for (u32 i = 0; i < o->nblocks; i++)
			merge_yields(p, o->blocks[i]);
	}
}

/* --- memory -------------------------------------------------------------------------------------------------- */

static u32 new_slot(struct planner *p, size_t offset)
{
	struct slot s = {.offset = offset};
	vec_push(p->arena, &p->slots, s);
	return p->slots.len - 1;
}

/* Releases the storages that are no longer live at position p->now. */
static void release(struct planner *p)
{
	u32 kept = 0;
	for (u32 i = 0; i < p->live.len; i++)
		if (p->live.at[i]->forever || p->live.at[i]->end >= p->now)
			p->live.at[kept++] = p->live.at[i];
	p->live.len = kept;
}

/* Places a storage, first fit among the live storages, which are sorted by offset. */
static void place(struct planner *p, struct storage *s)
{
	if (s->placed)
		return;
	size_t offset = 0, size = (s->size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	u32 at = 0;
	for (; s->size && at < p->live.len; at++) {
		const struct storage *other = p->live.at[at];
		if (other->offset >= offset + size)
			break;
		offset = other->offset + ((other->size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1));
	}
	s->offset = offset;
	s->slot = new_slot(p, offset);
	s->placed = true;
	if (!s->size)
		return;
	vec_push(&p->temp, &p->live, s);
	memmove(p->live.at + at + 1, p->live.at + at, (p->live.len - 1 - at) * sizeof *p->live.at);
	p->live.at[at] = s;
	p->program->memory_size = MAX(p->program->memory_size, offset + size);
}

u32 plan_scratch(struct planner *p, size_t size)
{
	struct storage *s = new_storage(p, size, p->op.start, p->op.end);
	place(p, s);
	return s->slot;
}

static u32 constant_slot(struct planner *p, bool range, u64 bits, u32 bytes, i64 n)
{
	for (u32 i = 0; i < p->constants.len && n > 1; i++) {
		struct constant *c = &p->constants.at[i];
		if (c->n > 1 && c->range == range && c->bits == bits && c->bytes == bytes) {
			c->n = MAX(c->n, n);
			return c->slot;
		}
	}
	struct constant c = {range, bits, bytes, n, new_slot(p, 0)};
	vec_push(&p->temp, &p->constants, c);
	return c.slot;
}

static void make_constants(struct planner *p)
{
	for (u32 i = 0; i < p->constants.len; i++) {
		const struct constant *c = &p->constants.at[i];
		char *data = plan_alloc(p, (size_t)c->n * c->bytes + ALIGNMENT);
		data += -(uintptr_t)data & (ALIGNMENT - 1);
		if (!c->range)
			fill(data, &c->bits, c->bytes, c->n);
		for (i64 k = 0; k < c->n && c->range; k++)
			((mem32 *)data)[k] = (u32)c->bits + (u32)k;
		p->slots.at[c->slot].data = data;
	}
}

u32 plan_slot(struct planner *p, const struct value *v)
{
	i64 n = p->lanes ? p->lanes : type_numel(v->type);
	for (;; v = operand(v->def, 0)) {
		u64 bits;
		if (value_const_bits(v, &bits))
			return constant_slot(p, false, bits, elem_bytes(v->type), n);
		if (def_if(v, IR_MAKE_RANGE))
			return constant_slot(p, true, (u64)v->def->attr[ATTR_START], sizeof(i32), n);
		struct storage *many = p->lanes ? map_get(&p->captured, v) : NULL;
		if (many)
			return many->slot;
		if (!v->def || !keeps_elements(v->def))
			break;
	}
	struct storage *s = storage_of(p, v);
	tl_assert(s && s->placed);
	return s->slot;
}

/* --- 3: instructions ----------------------------------------------------------------------------------------- */

static void emit_block(struct planner *p, const struct block *b);

/* The instruction that compares the current elements of v with the results of the axis and range analyses. */
static struct inst facts_inst(struct planner *p, const struct value *v, struct loc loc)
{
	u32 *slots = plan_alloc(p, 3 * sizeof *slots);
	slots[0] = plan_slot(p, v);
	return (struct inst){.code = v->def ? v->def->code : IR_FOR,
			     .loc = loc,
			     .in = slots,
			     .nin = 1,
			     .type = v->type,
			     .n = type_numel(v->type)};
}

/* Emits a check of the facts about a newly defined value. Values in regions of reductions are not checked. */
static void emit_facts(struct planner *p, const struct value *v)
{
	if ((!p->checks->facts && !p->checks->promised) || p->region)
		return;
	struct inst i = facts_inst(p, v,
				   v->def             ? v->def->loc
				   : v->block->parent ? v->block->parent->loc
						      : p->kernel->loc);
	if (p->checks->facts && plan_facts(p, p->checks, v, &i))
		vec_push(p->arena, p->code, i);
	if (p->checks->promised && plan_promise(p, v, &i))
		vec_push(p->arena, p->code, i);
}

/* Emits a check of the addresses that a load or store uses against facts and hints. */
static void emit_access_facts(struct planner *p, const struct op *o)
{
	if (!p->checks->promised || (o->code != IR_LOAD && o->code != IR_STORE))
		return;
	struct inst i = facts_inst(p, operand(o, 0), o->loc);
	if (mask_of(o)) {
		((u32 *)i.in)[1] = plan_slot(p, mask_of(o));
		i.nin = 2;
	}
	if (plan_access_facts(p, p->checks, operand(o, 0), &i))
		vec_push(p->arena, p->code, i);
}

/* Emits a check of the facts about an operation and its operands, which are in `slots`. */
static void emit_operand_facts(struct planner *p, const struct op *o, const u32 *slots)
{
	if (!p->checks->facts || p->region || !o->noperands)
		return;
	const struct type *t = operand(o, 0)->type;
	struct inst i = {
		.code = o->code, .loc = o->loc, .in = slots, .nin = o->noperands, .type = t, .n = type_numel(t)};
	if (plan_operand_facts(p, p->checks, o, &i))
		vec_push(p->arena, p->code, i);
}

/* Emits a dot that starts from zero, and the addition of its accumulator. */
static void emit_dot_apart(struct planner *p, const struct op *o, struct inst *i)
{
	struct inst add = *i;
	const u32 slots[] = {i->in[0],  i->in[1], constant_slot(p, false, 0, elem_bytes(i->type), i->n),
			     i->out[0], i->in[2], i->out[0]};
	const u32 *kept = memcpy(plan_alloc(p, sizeof slots), slots, sizeof slots);
	i->in = kept;
	plan_dot(p, o, i);
	vec_push(p->arena, p->code, *i);
	add.nin = 2;
	add.in = kept + 3;
	plan_addition(p, type_dtype(i->type), &add);
	*i = add;
}

static struct code emit_code(struct planner *p, const struct block *b)
{
	inst_vec code = {0}, *outer = p->code;
	p->code = &code;
	for (u32 i = 0; i < b->nargs; i++)
		emit_facts(p, b->args[i]);
	emit_block(p, b);
	p->code = outer;
	return (struct code){code.at, code.len};
}

static void add_move(struct planner *p, move_vec *v, const struct value *from, const struct value *to)
{
	struct move m = {plan_slot(p, from), storage_of(p, to)->slot,
			 (size_t)type_numel(to->type) * elem_bytes(to->type)};
	if (m.from != m.to)
		vec_push(p->arena, v, m);
}

static void finish_moves(struct planner *p, const move_vec *v, struct moves *out)
{
	size_t bytes = 0;
	*out = (struct moves){.n = v->len, .at = v->at};
	for (u32 i = 0; i < v->len; i++) {
		bytes += (v->at[i].bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
		for (u32 k = 0; k < v->len; k++)
			out->staged |= v->at[i].from == v->at[k].to;
	}
	if (out->staged)
		out->staging = plan_scratch(p, bytes);
}

/* Plans moves from the operands of o, starting with `first`, to the block arguments (or results) `to`. */
static void plan_moves(struct planner *p, const struct op *o, u32 first, struct value *const *to, u32 n,
		       struct moves *out)
{
	move_vec v = {0};
	for (u32 i = 0; i < n; i++)
		add_move(p, &v, operand(o, first + i), to[i]);
	finish_moves(p, &v, out);
}

static void plan_for(struct planner *p, const struct op *o, struct inst *i)
{
	struct for_plan *w = plan_alloc(p, sizeof *w);
	const struct block *b = o->blocks[0];
	struct span span = p->op;
	place(p, storage_of(p, for_index(o)));
	w->index = storage_of(p, for_index(o))->slot;
	w->type = type_dtype(for_index(o)->type);
	plan_moves(p, o, FOR_INITS, b->args + 1, o->nresults, &w->enter);
	w->body = emit_code(p, b);
	p->op = span;
	plan_moves(p, b->last, 0, b->args + 1, o->nresults, &w->next);
	i->plan = w;
	i->run = run_for;
}

static void plan_if(struct planner *p, const struct op *o, struct inst *i)
{
	struct if_plan *w = plan_alloc(p, sizeof *w);
	struct span span = p->op;
	struct value **results = arena_array(&p->temp, struct value *, o->nresults);
	for (u32 k = 0; k < o->nresults; k++)
		results[k] = &o->results[k];
	for (u32 k = 0; k < 2; k++) {
		w->branch[k] = emit_code(p, o->blocks[k]);
		p->op = span;
		plan_moves(p, o->blocks[k]->last, 0, results, o->nresults, &w->leave[k]);
	}
	i->plan = w;
	i->run = run_if;
}

static void plan_while(struct planner *p, const struct op *o, struct inst *i)
{
	struct while_plan *w = plan_alloc(p, sizeof *w);
	const struct block *before = o->blocks[0], *after = o->blocks[1];
	struct span span = p->op;
	for (u32 k = 0; k < before->nargs; k++)
		place(p, storage_of(p, before->args[k]));
	plan_moves(p, o, 0, before->args, before->nargs, &w->enter);
	w->before = emit_code(p, before);
	w->condition = plan_slot(p, operand(before->last, 0));
	p->op = span;
	plan_moves(p, before->last, 1, after->args, after->nargs, &w->decide);
	w->after = emit_code(p, after);
	p->op = span;
	plan_moves(p, after->last, 0, before->args, before->nargs, &w->next);
	w->waits = op_may_wait(o);
	i->plan = w;
	i->run = run_while;
}

/* Copies outer scalars to all lanes when the region starts. */
static void capture(struct planner *p, const struct op *o)
{
	for (u32 k = 0; k < o->noperands; k++) {
		const struct value *v = operand(o, k);
		if (!value_defined_outside(v, p->region) || is_constant(v) || map_get(&p->captured, v))
			continue;
		i64 lanes = p->lanes;
		p->lanes = 0;
		u32 *slots = plan_alloc(p, 4 * sizeof *slots);
		slots[0] = plan_slot(p, v);
		p->lanes = lanes;
		struct storage *s = new_storage(p, (size_t)lanes * elem_bytes(v->type), p->op.start, p->op.end);
		place(p, s);
		map_put(&p->captured, v, s);
		slots[3] = s->slot;
		struct inst i = {
			.run = run_splat, .code = IR_SPLAT, .loc = o->loc, .type = v->type, .nin = 1, .nout = 1};
		i.in = slots;
		i.out = slots + 3;
		vec_push(p->arena, p->code, i);
	}
}

void plan_region(struct planner *p, const struct block *b, i64 max_lanes, struct region *out)
{
	u32 nargs = b->nargs, nresults = b->last->noperands, *slots = plan_alloc(p, (nargs + nresults) * sizeof *slots);
	struct span span = p->op;
	inst_vec code = {0}, *outer = p->code;
	const struct block *outer_region = p->region;
	out->wide = region_is_elementwise(b);
	p->lanes = out->wide ? max_lanes : 0;
	p->region = b;
	p->code = &code;
	for (u32 i = 0; i < nargs; i++) {
		place(p, storage_of(p, b->args[i]));
		slots[i] = storage_of(p, b->args[i])->slot;
	}
	for (const struct op *o = b->first; o && out->wide; o = o->next)
		capture(p, o);
	emit_block(p, b);
	for (u32 i = 0; i < nresults; i++)
		slots[nargs + i] = plan_slot(p, operand(b->last, i));
	out->code = (struct code){code.at, code.len};
	out->args = slots;
	out->results = slots + nargs;
	p->code = outer;
	p->op = span;
	p->lanes = 0;
	p->region = outer_region;
	p->captured = (struct map){.arena = &p->temp};
}

static void plan_op(struct planner *p, const struct op *o, struct inst *i)
{
	if (p->checks->apart && o->code == IR_FMA) {
		plan_multiply_add_apart(p, type_dtype(result(o)->type), i);
		return;
	}
	if (op_has(o, ELEM)) {
		plan_elementwise(p, o, i);
		return;
	}
	switch (o->code) {
	case IR_SPLAT:
	case IR_BROADCAST:
	case IR_TRANS:
	case IR_JOIN:
	case IR_SPLIT: plan_shape(p, o, i); break;
	case IR_LOAD:
	case IR_STORE:
	case IR_ATOMIC_RMW:
	case IR_ATOMIC_CAS: plan_memory(p, o, i); break;
	case IR_DOT:
		if (p->checks->apart && dtype_is_float(type_dtype(result(o)->type)))
			emit_dot_apart(p, o, i);
		else
			plan_dot(p, o, i);
		break;
	case IR_REDUCE:
	case IR_SCAN: plan_reduce(p, o, i); break;
	case IR_MAP: plan_map(p, o, i); break;
	case IR_HISTOGRAM:
	case IR_GATHER: plan_gather(p, o, i); break;
	case IR_FOR: plan_for(p, o, i); break;
	case IR_IF: plan_if(p, o, i); break;
	case IR_WHILE: plan_while(p, o, i); break;
	default: plan_environment(p, o, i); break;
	}
}

/* True if the operation needs an instruction at run time. */
static bool needs_code(const struct op *o)
{
	bool used = !op_has(o, PURE) || op_reports_inside(o);
	for (u32 i = 0; i < o->nresults; i++)
		used |= !value_unused(&o->results[i]);
	return used && !op_has(o, END) && !keeps_elements(o) && !(o->nresults == 1 && is_constant(result(o)));
}

static void emit_op(struct planner *p, const struct op *o)
{
	if (!needs_code(o)) { /* a constant, or the elements of another value, which exist already */
		for (u32 k = 0; k < o->nresults; k++)
			if (!value_unused(&o->results[k]))
				emit_facts(p, &o->results[k]);
		return;
	}
	const struct value *shown = o->nresults ? result(o) : o->noperands ? operand(o, 0) : NULL;
	struct inst i = {.code = o->code, .loc = o->loc, .nin = o->noperands, .nout = o->nresults, .text = o->text};
	u32 *slots = plan_alloc(p, (MAX(o->noperands, 3u) + o->nresults) * sizeof *slots);
	i.in = slots;
	i.out = slots + MAX(o->noperands, 3u);
	i.type = shown ? shown->type : NULL;
	i.n = p->lanes || !shown ? 0 : type_numel(shown->type);
	memcpy(i.attr, o->attr, sizeof i.attr);
	p->op = span_of(p, o);
	p->now = p->op.start;
	release(p);
	for (u32 k = 0; k < o->noperands; k++)
		slots[k] = plan_slot(p, operand(o, k));
	for (u32 k = 0; k < o->nresults; k++) {
		place(p, storage_of(p, &o->results[k]));
		slots[MAX(o->noperands, 3u) + k] = storage_of(p, &o->results[k])->slot;
	}
	emit_access_facts(p, o);
	emit_operand_facts(p, o, slots);
	plan_op(p, o, &i);
	vec_push(p->arena, p->code, i);
	for (u32 k = 0; k < o->nresults; k++)
		emit_facts(p, &o->results[k]);
}

static void emit_block(struct planner *p, const struct block *b)
{
	for (const struct op *o = b->first; o; o = o->next)
		emit_op(p, o);
}

struct interp_program *interp_prepare(struct arena *a, const struct kernel *k)
{
	return interp_prepare_checked(a, k, &(struct interp_checks){0});
}

struct interp_program *interp_prepare_checked(struct arena *a, const struct kernel *k, const struct interp_checks *c)
{
	struct interp_program *program = arena_new(a, struct interp_program);
	struct planner p = {.kernel = k, .arena = a, .program = program, .checks = c};
	p.spans.arena = p.storages.arena = p.captured.arena = &p.temp;
	program->diags = k->ctx->diags;
	program->nparams = k->nparams;
	program->params = arena_array(a, u32, k->nparams);
	program->param_types = arena_array(a, const struct type *, k->nparams);
	number_block(&p, k->body);
	for (u32 i = 0; i < k->nparams; i++)
		add_storage(&p, k->params[i].value, 0, 0)->forever = true;
	live_block(&p, k->body);
	merge_yields(&p, k->body);
	for (u32 i = 0; i < k->nparams; i++) {
		struct storage *s = storage_of(&p, k->params[i].value);
		place(&p, s);
		program->params[i] = s->slot;
		program->param_types[i] = k->params[i].value->type;
	}
	program->body = emit_code(&p, k->body);
	make_constants(&p);
	program->slots = p.slots.at;
	program->nslots = p.slots.len;
	arena_free(&p.temp);
	return program;
}
