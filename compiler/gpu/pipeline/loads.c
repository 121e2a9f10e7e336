/* The loads of a loop that can be issued ahead: their addresses and masks depend on index arithmetic alone (the slice).
 * Also decides which of these loads cp.async can copy into multi-buffers. */
#include "support/thresholds.h"
#include "ir/graph.h"
#include "ir/inline_asm.h"
#include "layout/conversion.h"
#include "transform/first_element.h"
#include "gpu/layout/memory_access.h"
#include "gpu/pipeline/plan.h"

static bool in_body(const struct plan *p, const struct value *v)
{
	return !value_defined_outside(v, p->loop->blocks[0]);
}

/* Adds v and the operations of the body that it depends on to the slice. False: one of them is more than index
 * arithmetic. */
static bool add_slice(struct plan *p, struct value *v)
{
	struct block *body = p->loop->blocks[0];
	value_vec work = {0};
	vec_push(&p->scratch, &work, v);
	while (work.len) {
		v = work.at[--work.len];
		struct op *o = v->def;
		if (!in_body(p, v) || (!o && v == for_index(p->loop)) || map_get(&p->in_slice, o ? (void *)o : v))
			continue;
		bool index = o && op_is_orderless(o);
		if ((o ? o->block : v->block) != body || (o && !index && !map_get(&p->prefetched, o)))
			return false;
		map_put(&p->in_slice, o ? (void *)o : v, o ? (void *)o : v);
		if (!o) {
			vec_push(&p->scratch, &p->args, for_arg_number(v));
			vec_push(&p->scratch, &work, for_yielded(p->loop, for_arg_number(v)));
		}
		for (u32 i = o ? o->noperands : 0; i--;)
			vec_push(&p->scratch, &work, operand(o, i));
	}
	return true;
}

bool add_load(struct plan *p, struct op *load)
{
	struct map saved = p->in_slice, copy = {.arena = &p->scratch};
	u32 nargs = p->args.len;
	for (u32 i = 0; i < saved.cap; i++)
		if (saved.keys[i])
			map_put(&copy, saved.keys[i], saved.vals[i]);
	p->in_slice = copy;
	bool ok = true;
	for (u32 i = 0; ok && i < load->noperands; i++)
		ok = add_slice(p, operand(load, i));
	if (ok) {
		vec_push(&p->scratch, &p->loads, load);
	} else {
		p->in_slice = saved;
		p->args.len = nargs;
	}
	return ok;
}

struct op *load_consumer(const struct op *load)
{
	const struct value *v = result(load);
	if (!value_has_one_use(v) || v->uses->user->block != load->block)
		return NULL;
	struct op *o = v->uses->user;
	return o->code == IR_CONVERT_LAYOUT || o->code == IR_LOCAL_STORE ? o : NULL;
}

bool is_load_consumer(const struct plan *p, const struct op *o)
{
	bool yes = false;
	for (u32 i = 0; i < p->loads.len; i++)
		yes |= load_consumer(p->loads.at[i]) == o;
	return yes;
}

static bool is_pure(const struct op *o)
{
	return op_has(o, PURE);
}

static bool is_pure_and_not_marked(const struct op *o)
{
	return op_has(o, PURE) && !o->mark;
}

/* The operands of dots and of stores to shared memory, and the values from which they are computed, through operations
 * that satisfy `through`. */
struct dot_operands {
	struct value_set values;
	bool (*through)(const struct op *o);
};

static void add_dot_operands(struct op *o, void *arg)
{
	struct dot_operands *a = arg;
	for (u32 i = 0; i < o->noperands && (op_is_dot(o) || o->code == IR_LOCAL_STORE); i++)
		add_sources(&a->values, operand(o, i), a->through);
}

static struct access_vector accessed(const struct plan *p, const struct op *load)
{
	return access_vector(p->s->axis, operand(load, 0), mask_of(load), NULL);
}

/* True if the vectors that the load reads from global memory are contiguous in layout `mem` of shared memory too. */
static bool has_vectors_in(const struct plan *p, const struct op *load, const struct layout *mem)
{
	return access_vector(p->s->axis, operand(load, 0), mask_of(load), mem).bits == accessed(p, load).bits;
}

bool is_second_read(const struct use *u)
{
	const struct op *o = u->user;
	return o->code == IR_CONVERT_LAYOUT &&
	       plan_conversion(operand(o, 0)->type->layout, result(o)->type->layout).kind == CONVERSION_MEMORY;
}

/* Stores to `out` (`most` entries) the register layouts in which dots by multiply-adds read v from shared memory, also
 * after a transposition, expressed as layouts of v. Returns their number. */
static u32 multiply_add_readers(struct layout_pool *pool, const struct value *v, const struct layout **out, u32 most)
{
	u32 n = 0;
	for (const struct use *u = v->uses; u && n < most; u = u->next) {
		const struct op *o = u->user;
		u32 i = (u32)(u - o->operands);
		if (o->code == IR_DOT && !o->attr[ATTR_INSTR] && i < 2)
			out[n++] = layout_fma_operand(pool, result(o)->type->layout, v->type->shape, (int)i);
		if (o->code == IR_CONVERT_LAYOUT)
			n += multiply_add_readers(pool, result(o), out + n, most - n);
		if (o->code != IR_TRANS)
			continue;
		int back[MAX_RANK];
		for (int d = 0; d < v->type->rank; d++)
			back[perm_get(o->attr[ATTR_ORDER], d)] = d;
		for (u32 end = n + multiply_add_readers(pool, result(o), out + n, most - n); n < end; n++)
			out[n] = layout_trans(pool, out[n], back);
	}
	return n;
}

/* The number of shared-memory wavefronts in which a warp reads a tile in layout l from layout `mem`: for each access,
 * the largest number of different words that it reads from one bank. */
static u32 wavefronts(const struct layout *l, const struct layout *mem, int bits)
{
	enum { LANES = 32, BANKS = 32, MOST_WORDS = 4 };
	struct memory_map m = map_to_memory(l, mem, ilog2(128 / (u64)bits));
	u32 words[LANES * MOST_WORDS], n = 0, load[BANKS] = {0}, most = 0,
				       step = MAX((u32)bits << m.vec_bits, 32u) / 32;
	for (u32 lane = 0; lane < LANES; lane++) {
		u32 at = 0;
		for (u32 i = 0; i < m.bits[LL_LANE]; i++)
			at ^= lane >> i & 1 ? m.basis[LL_LANE][i] : 0;
		for (u32 w = 0; w < step; w++) {
			u32 word = at * (u32)bits / 32 + w, k = 0;
			while (k < n && words[k] != word)
				k++;
			if (k < n)
				continue;
			words[n++] = word;
			most = MAX(most, ++load[word % BANKS]);
		}
	}
	return most * (layout_num_regs(l) >> m.vec_bits);
}

/* If several FMA dots read the load: of the buffer layouts that suit one of them, the layout that the copy can write
 * and that all dots read in the fewest wavefronts. NULL: fewer than two dots read it, or there is no such layout. */
static const struct layout *layout_for_all(const struct plan *p, const struct op *load)
{
	enum { MOST_READERS = 8 };
	const struct layout *readers[MOST_READERS], *best = NULL;
	const struct type *t = result(load)->type;
	int bits = MAX(type_elem_bits(t), 8);
	u32 n = multiply_add_readers(&p->ctx->layouts, result(load_consumer(load)), readers, MOST_READERS), least = 0;
	for (u32 i = 0; i < n && n > 1; i++) {
		const struct layout *mem = plan_shared(&p->ctx->layouts, t->layout, readers[i], bits, false).mem;
		u32 all = 0;
		for (u32 k = 0; k < n; k++)
			all += wavefronts(readers[k], mem, bits);
		if (has_vectors_in(p, load, mem) && (!best || all < least)) {
			best = mem;
			least = all;
		}
	}
	return best;
}

/* True if v has the layout of the result of a tensor-core dot of the loop, and no dot takes it as A or B. Such a value
 * can be read from swizzled rows of shared memory without bank conflicts. */
static bool has_dot_result_layout(const struct plan *p, const struct value *v)
{
	bool yes = false;
	for (const struct op *o = p->loop->blocks[0]->first; o; o = o->next)
		yes |= op_is_dot(o) && o->attr[ATTR_INSTR] && result(o)->type->layout == v->type->layout;
	for (const struct use *u = v->uses; u && yes; u = u->next)
		yes = !op_is_dot(u->user) || u == u->user->operands + 2;
	return yes && v->type->rank == 2;
}

/* True if the load is read in the layout of a dot's result, to be combined with it. */
static bool is_combined_with_dot(const struct plan *p, const struct op *load)
{
	const struct op *to = load_consumer(load);
	return to && to->code == IR_CONVERT_LAYOUT && has_dot_result_layout(p, result(to));
}

const struct layout *multibuffer_layout(const struct plan *p, const struct op *load)
{
	const struct type *t = result(load)->type;
	struct op *to = load_consumer(load);
	if (to->code == IR_LOCAL_STORE)
		return operand(to, 1)->type->layout;
	const struct layout *all = layout_for_all(p, load);
	if (all)
		return all;
	if (p->tma && t->rank == 1) /* a vector of a bulk copy; TMA tiles have two dimensions */
		return layout_row_major(&p->ctx->layouts, 1, t->shape);
	int bits = MAX(type_elem_bits(t), 8);
	const struct use *reader = result(to)->uses;
	while (reader && !is_second_read(reader))
		reader = reader->next;
	const struct layout *dst = result(reader ? reader->user : to)->type->layout;
	int along = accessed(p, load).dim;
	bool held = has_dot_result_layout(p, result(reader ? reader->user : to)) ||
		    (t->rank == 2 && dot_with_register_a(to));
	if (held && t->shape[along] * bits >= 128)
		return layout_swizzled(&p->ctx->layouts, 2, t->shape, along, bits);
	struct shared_plan plan = plan_shared(&p->ctx->layouts, t->layout, dst, bits, false);
	bool one_by_one = bits >= 32 || (!plan.load && !map_to_memory(dst, plan.mem, ilog2(128 / (u64)bits)).vec_bits);
	bool few = type_numel(t) <= 32 * p->s->num_warps; /* one element per thread: bank conflicts hardly matter */
	return (one_by_one || few) && !has_vectors_in(p, load, plan.mem)
		       ? plan_for_writers(&p->ctx->layouts, t->layout, dst, bits)
		       : plan.mem;
}

static bool has_same_vectors(const struct plan *p, const struct op *load)
{
	return has_vectors_in(p, load, multibuffer_layout(p, load));
}

bool can_copy_async(const struct plan *p, const struct op *load)
{
	if (!p->s->target->has_async_copy || !load_fills_zero(load) || !load_consumer(load))
		return false;
	return (type_elem_bits(result(load)->type) << accessed(p, load).bits) >= 32 && has_same_vectors(p, load);
}

static bool is_barrier(const struct op *o)
{
	return o->code == IR_BARRIER || op_is_opaque(o);
}

/* A store in the loop might write memory that a load issued early reads: then the order must be kept. This affects only
 * kernels that read and write through the same parameter, or that wait for other writers. */
bool may_conflict(struct pass_state *s, const struct block *b, const struct value *base)
{
	return block_has(b, is_barrier) || may_be_written(s, b, base);
}

/* cp.async cannot copy an operand of a dot if its rows are unaligned, or if the buffer stores it transposed. All loads
 * of the loop then go through registers, rather than this one being loaded without prefetch. Small loads in their own
 * layout, such as scales of an operand, have no such effect. */
bool needs_registers(const struct plan *p, const struct op *load)
{
	int unit;
	const struct op *to = load_consumer(load);
	const struct value *ptr = operand(load, 0), *mask = mask_of(load);
	if (!to || (to->nresults && result(to)->type == result(load)->type &&
		    layout_num_regs(result(load)->type->layout) <= MAX_FEW_ELEMENTS))
		return false;
	return access_run(p->s->axis, ptr, mask, &unit).bits ||
	       (to->code == IR_LOCAL_STORE && !has_same_vectors(p, load));
}

/* Sets o->mark if o depends on the result of a dot of the block `body`. Called for all operations in it, in order. */
static void mark_dependent_on_dot(struct op *o, void *body)
{
	o->mark = false;
	for (u32 i = 0; i < o->noperands; i++) {
		const struct op *def = operand(o, i)->def;
		bool inside = def && block_contains(body, def->block);
		o->mark |= inside && (def->mark || (op_is_dot(def) && def->block == body));
	}
}

/* Inserts a layout conversion to the load's own layout, which changes nothing, before `at`, and makes it the load's
 * only user (its load_consumer). It is removed later if the load is not copied. */
static void insert_consumer(struct plan *p, struct op *load, struct op *at)
{
	struct value *v = result(load);
	struct builder b = builder_before(p->ctx, at);
	struct value *same = build1(&b, IR_CONVERT_LAYOUT, v->type, v);
	replace_uses(v, same);
	op_set_operand(same->def, 0, v);
}

void insert_load_consumers(struct plan *p, bool all)
{
	struct block *b = p->loop->blocks[0];
	struct dot_operands operands = {.through = is_pure_and_not_marked};
	if (p->s->cuda.limits.few_buffers)
		return;
	walk(b, mark_dependent_on_dot, b);
	walk(b, add_dot_operands, &operands);
	for (struct op *o = b->first; o; o = o->next) {
		if (o->code != IR_LOAD || !type_is_tensor(result(o)->type) || load_consumer(o) ||
		    (!all && !set_has(&operands.values, result(o))))
			continue;
		insert_consumer(p, o, o->next);
	}
	arena_free(&operands.values.scratch);
}

void collect_slice(struct plan *p)
{
	for (struct op *o = p->loop->blocks[0]->first; o; o = o->next)
		if (map_get(&p->in_slice, o))
			vec_push(&p->scratch, &p->slice, o);
}

/* True if an iteration reduces a tile that it computes from a loop-carried tile. Then it cannot begin before the
 * preceding one has ended. */
static bool is_recurrence(struct ir_context *ctx, const struct block *body)
{
	struct value_walk w = {.id = begin_walk(ctx)};
	for (const struct op *o = body->first; o; o = o->next)
		if (o->code == IR_REDUCE)
			visit_later(&w, operand(o, 0));
	for (const struct value *v; (v = visit_next(&w));) {
		if (!v->def && v->block == body && type_is_tensor(v->type))
			return end_walk(&w, true);
		if (v->def && v->def->block == body && op_has(v->def, ELEM))
			visit_operands(&w, v->def);
	}
	return false;
}

static bool is_reduction(const struct op *o)
{
	return o->code == IR_REDUCE;
}

bool loads_are_awaited(const struct plan *p)
{
	const struct block *body = p->loop->blocks[0];
	return p->s->num_warps > 1 ? block_has(body, is_reduction) : is_recurrence(p->ctx, body);
}

bool is_contiguous_vector(const struct plan *p, const struct op *load)
{
	enum { UNIT = 16 /* bytes: addresses and sizes of bulk copies are multiples of it */ };
	const struct value *ptr = operand(load, 0);
	const struct type *t = ptr->type;
	if (!type_is_tensor(t) || t->rank != 1 || type_elem(t)->elem->kind != TY_SCALAR || load->noperands > 1 ||
	    load->attr[ATTR_VOLATILE] || load->attr[ATTR_EVICT] || value_unused(result(load)))
		return false;
	return axis_proved(p->s->axis, ptr)->contiguity[0] >= t->shape[0] &&
	       axis_of(p->s->axis, ptr)->divisibility[0] >= UNIT && load_bytes(load) % UNIT == 0 &&
	       has_first_element(p->ctx, ptr);
}

/* The operation before which the vector of a bulk copy is read from its buffer. Reads while dots run would wait for the
 * tensor cores' reads of shared memory. A dot that takes a computed operand from registers waits for earlier dots
 * anyway. So the place is after the last such dot that precedes the vector's first use; without such a dot, the place
 * of the load, before all dots. */
static struct op *place_of_read(const struct plan *p, const struct op *load)
{
	struct op *at = (struct op *)first_use(result(load), p->loop->blocks[0]);
	while (at->prev != load && !(op_is_dot(at->prev) && type_is_tensor(operand(at->prev, 0)->type)))
		at = at->prev;
	return at;
}

void add_bulk_copies(struct plan *p)
{
	struct block *b = p->loop->blocks[0];
	for (struct op *o = b->first; o; o = o->next) {
		if (o->code != IR_LOAD || !is_contiguous_vector(p, o) ||
		    may_conflict(p->s, b, pointer_base(operand(o, 0))) || !add_load(p, o))
			continue;
		p->bulk_copies++;
		vec_push(&p->scratch, &p->tiles, ((struct tma_tile){0}));
		if (!load_consumer(o))
			insert_consumer(p, o, place_of_read(p, o));
	}
	p->slice.len = 0;
	collect_slice(p);
	if (p->bulk_copies && stages_that_fit(p, p->stages) < p->stages)
		remove_bulk_copies(p);
}

static void clear_loads(struct plan *p)
{
	p->loads.len = p->args.len = p->slice.len = 0;
	p->in_slice = (struct map){0};
}

void remove_bulk_copies(struct plan *p)
{
	u32 n = p->loads.len - p->bulk_copies;
	clear_loads(p);
	for (u32 i = 0; i < n; i++)
		add_load(p, p->loads.at[i]);
	p->tiles.len = n;
	p->bulk_copies = 0;
	collect_slice(p);
}

bool restrict_to_operands(struct plan *p)
{
	for (u32 i = 0; i < p->loads.len; i++)
		p->operands_only |= is_combined_with_dot(p, p->loads.at[i]);
	if (p->operands_only)
		clear_loads(p);
	return p->operands_only;
}

void find_loads(struct plan *p, bool asked, bool plain, bool far)
{
	struct block *b = p->loop->blocks[0];
	bool numbers = plain && loads_are_awaited(p); /* loads of scalars are issued ahead too */
	int want_async = !plain;
	for (const struct op *o = b->first; o; o = o->next)
		if (o->code == IR_LOAD && type_is_tensor(result(o)->type) && needs_registers(p, o))
			want_async = 0;
	if (want_async && p->s->target->has_async_copy)
		insert_load_consumers(p, asked && far);
	struct dot_operands operands = {.through = is_pure};
	if (!asked && !plain)
		walk(b, add_dot_operands, &operands);
	for (; want_async >= 0 && !p->loads.len; want_async--) {
		p->async = want_async;
		for (struct op *o = b->first; o; o = o->next) {
			if (o->code != IR_LOAD || (!numbers && !type_is_tensor(result(o)->type)) ||
			    o->attr[ATTR_VOLATILE] || may_conflict(p->s, b, pointer_base(operand(o, 0))))
				continue;
			bool fits = want_async
					    ? can_copy_async(p, o) && !(p->operands_only && is_combined_with_dot(p, o))
					    : asked || plain || set_has(&operands.values, result(o));
			if (fits)
				add_load(p, o);
		}
	}
	arena_free(&operands.values.scratch);
	collect_slice(p);
}
