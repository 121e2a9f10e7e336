/* Layout assignment, first half: the assigned layout of each value, in which it is computed.
 *
 * Anchors determine their layouts themselves: accesses to memory (access_layouts.c) and dots (dot_layouts.c). From
 * there, layouts spread forward. An elementwise operation takes the layout of its operands, the strongest one
 * first. The result of a reduction takes a slice of the operand's layout. A loop-carried value takes the layout of its
 * initial or its next value. Into a loop without dots, layouts of dots spread last: a tile that it takes from a dot is
 * converted once, before the loop, rather than each tile that it loads. Shape operations are computed in the layout
 * that each user needs. Index arithmetic is rematerializable: it is recomputed in each layout needed
 * (insert_conversions.c), so that conversions remain only where data really moves. */
#include "gpu/layout/assign_layouts.h"

#include "support/thresholds.h"
#include "gpu/layout/memory_access.h"

/* --- making layouts ------------------------------------------------------------------------------------------ */

void divide_among(const struct type *t, const int *order, int ndims, int n, int *covered, int *out)
{
	for (int i = 0; i < ndims; i++) {
		int d = order[i];
		out[d] = i == ndims - 1 ? n : MIN(MAX(t->shape[d] / covered[d], 1), n);
		covered[d] *= out[d];
		n /= out[d];
	}
}

const struct layout *blocked_layout(struct placer *p, const struct type *t, const int *order, int vec)
{
	int spt[MAX_RANK], covered[MAX_RANK], lanes[MAX_RANK], warps[MAX_RANK];
	for (int d = 0; d < t->rank; d++)
		covered[d] = spt[d] = d == order[0] ? MIN(vec, t->shape[d]) : 1;
	divide_among(t, order, t->rank, 32, covered, lanes);
	divide_among(t, order, t->rank, p->s->num_warps, covered, warps);
	return layout_blocked(p->pool, t->rank, t->shape, spt, lanes, warps, order);
}

void order_rows(const struct type *t, int *order)
{
	for (int i = 0; i < t->rank; i++)
		order[i] = t->rank - 1 - i;
}

int elements_per_thread(const struct placer *p, const struct type *t)
{
	return (int)MAX(type_numel(t) / (32 * p->s->num_warps), 1);
}

bool is_in_pipelined_loop(const struct placer *p, const struct op *o)
{
	const struct op *loop = o->block->parent;
	return loop && loop->code == IR_FOR && stages_of(p->s, loop) > 1;
}

const struct layout *default_layout(struct placer *p, const struct type *t)
{
	int order[MAX_RANK];
	if (p->common)
		return p->common;
	order_rows(t, order);
	return blocked_layout(p, t, order, MIN(elements_per_thread(p, t), 4));
}

const struct layout *scan_layout(struct placer *p, const struct op *o)
{
	enum { WIDEST = 16 }; /* bytes */
	const struct type *t = operand(o, 0)->type;
	int vector = WIDEST / dtype_bytes(type_dtype(t)), order[MAX_RANK], axis = (int)o->attr[ATTR_AXIS], n = 0,
	    w = p->s->num_warps, most = elements_per_thread(p, t);
	if (t->rank == 2 && axis == 0) {
		int vec = MIN(MIN(vector, most), t->shape[1]), across = MIN(t->shape[1] / vec, 32),
		    wide = MIN(t->shape[1] / (vec * across), w);
		int lanes[] = {32 / across, across}, warps[] = {w / wide, wide},
		    spt[] = {MAX(t->shape[0] / (lanes[0] * warps[0]), 1), vec};
		return layout_blocked(p->pool, 2, t->shape, spt, lanes, warps, (int[]){1, 0});
	}
	order[n++] = axis;
	for (int d = t->rank - 1; d >= 0; d--)
		if (d != axis)
			order[n++] = d;
	return blocked_layout(p, t, order, MAX(t->shape[axis] / (32 * w), MIN(vector, most)));
}

/* --- assigned layouts ------------------------------------------------------------------------------------------- */

const struct layout *assigned_layout(const struct placer *p, const struct value *v)
{
	return map_get(&p->assigned, v);
}

enum layout_strength strength_of(const struct placer *p, const struct layout *l)
{
	return (enum layout_strength)(uintptr_t)map_get(&p->strong, l);
}

void set_strength(struct placer *p, const struct layout *l, enum layout_strength strength)
{
	map_put(&p->strong, l, (void *)(uintptr_t)MAX(strength, strength_of(p, l)));
}

/* --- the worklist of layout inference --------------------------------------------------------------------------- */

static void push_part(struct arena *scratch, inference_queue *q, u32 part)
{
	vec_push(scratch, q, part);
	u32 i = q->len - 1;
	for (; i && q->at[(i - 1) / 2] > part; i = (i - 1) / 2)
		q->at[i] = q->at[(i - 1) / 2];
	q->at[i] = part;
}

static u32 pop_part(inference_queue *q)
{
	u32 least = q->at[0], last = q->at[--q->len], i = 0, k;
	while ((k = 2 * i + 1) < q->len) {
		k += k + 1 < q->len && q->at[k + 1] < q->at[k];
		if (last <= q->at[k])
			break;
		q->at[i] = q->at[k];
		i = k;
	}
	q->at[i] = last;
	return least;
}

/* A part after the running part runs in this sweep, other parts in the next sweep. */
static void queue_part(struct placer *p, u32 part)
{
	if (p->queued[part])
		return;
	p->queued[part] = true;
	push_part(&p->scratch, part > p->at ? &p->now : &p->next, part);
}

static void queue_all(struct placer *p)
{
	for (u32 i = 0; i < p->parts.len; i++)
		queue_part(p, i);
}

/* The number of the part (struct inference: one step of layout inference) for the first result of o. It follows the
 * parts of the terminator of o's last block. */
static u32 part_of_results(const struct op *o)
{
	const struct op *last = o->blocks[o->nblocks - 1]->last;
	return last->mark + last->noperands;
}

/* Operations inside reductions, scans and maps have no parts: nothing is inferred there. */
static bool has_parts(const struct op *o)
{
	return !o->block->parent || op_is_control(o->block->parent);
}

/* The assigned layout of v has changed: the parts that read it run again. */
static void queue_inferences(struct placer *p, const struct value *v)
{
	const struct op *around = v->def ? NULL : v->block->parent;
	if (!p->parts.len)
		return;
	if (v->def && !op_is_control(v->def))
		queue_part(p, v->def->mark);
	if (around && around->code == IR_FOR && v->index)
		queue_part(p, part_of_results(around) + for_arg_number(v));
	if (around && around->code == IR_WHILE && v->block == around->blocks[1])
		queue_part(p, part_of_results(around) + v->index);
	for (const struct use *u = v->uses; u; u = u->next) {
		const struct op *o = u->user;
		bool each = op_is_control(o) || op_has(o, END);
		if (has_parts(o))
			queue_part(p, o->mark + (each ? (u32)(u - o->operands) : 0));
	}
}

static void add_part(struct placer *p, struct op *o, u32 i, bool result)
{
	struct inference part = {o, i, result};
	vec_push(&p->scratch, &p->parts, part);
}

static void number_parts(struct placer *p, struct block *b)
{
	for (struct op *o = b->first; o; o = o->next) {
		bool control = op_is_control(o), each = control || op_has(o, END);
		o->mark = p->parts.len;
		for (u32 i = 0; i < (each ? o->noperands : 1); i++)
			add_part(p, o, i, false);
		for (u32 k = 0; control && k < o->nblocks; k++)
			number_parts(p, o->blocks[k]);
		for (u32 i = 0; control && i < o->nresults; i++)
			add_part(p, o, i, true);
	}
}

static void make_parts(struct placer *p)
{
	number_parts(p, p->s->k->body);
	p->queued = arena_array(&p->scratch, bool, p->parts.len);
	p->at = UINT32_MAX;
	queue_all(p);
}

/* --- inference ----------------------------------------------------------------------------------------------- */

/* A layout derived from a dot's layout is as strong. */
static const struct layout *derived(struct placer *p, const struct layout *from, const struct layout *to)
{
	if (strength_of(p, from) > strength_of(p, to)) {
		set_strength(p, to, strength_of(p, from));
		queue_all(p);
	}
	return to;
}

void assign_layout(struct placer *p, const struct value *v, const struct layout *l)
{
	const struct layout *old = assigned_layout(p, v);
	if (!l || !type_is_tensor(v->type) || old == l || (old && strength_of(p, old) >= strength_of(p, l)))
		return;
	map_put(&p->assigned, v, (void *)l);
	p->changed = true;
	queue_inferences(p, v);
}

static void set_homes(struct placer *p, const struct op *o, const struct layout *l)
{
	for (u32 i = 0; i < o->nresults; i++)
		assign_layout(p, &o->results[i], l);
}

/* Values computed from no data: FREE ones take at most MAX_REMATERIALIZED operations on each element, or are
 * addresses. */
enum { FREE = 1, NOT_FREE = 2, LONG_COMPUTATION = 3 };

/* FREE, NOT_FREE or LONG_COMPUTATION; 0: not known yet. */
static uintptr_t known_free(const struct placer *p, const struct value *v)
{
	if (!type_is_tensor(v->type) || !v->def)
		return type_is_tensor(v->type) ? NOT_FREE : FREE;
	return (uintptr_t)map_get(&p->free, v);
}

static bool find_unknown_free(void *arg, struct demand d, struct demand *first)
{
	const struct op *o = d.v->def;
	for (u32 i = 0; i < o->noperands; i++)
		if (!known_free(arg, operand(o, i))) {
			*first = (struct demand){operand(o, i), 0};
			return true;
		}
	return false;
}

/* True if more than MAX_REMATERIALIZED tiles as large as v take part in its computation. */
static bool takes_many_operations(const struct value *v)
{
	const struct value *seen[MAX_REMATERIALIZED + 1] = {v};
	u32 n = 1;
	for (u32 at = 0; at < n; at++) {
		const struct op *o = seen[at]->def;
		for (u32 i = 0; o && i < o->noperands; i++) {
			const struct value *x = operand(o, i);
			u32 k = 0;
			while (k < n && seen[k] != x)
				k++;
			if (k < n || !type_is_tensor(x->type) || type_numel(x->type) < type_numel(v->type))
				continue;
			if (n > MAX_REMATERIALIZED)
				return true;
			seen[n++] = x;
		}
	}
	return false;
}

static void note_free(void *arg, struct demand d)
{
	struct placer *p = arg;
	const struct op *o = d.v->def;
	bool yes = o->code == IR_CONSTANT || o->code == IR_MAKE_RANGE || o->code == IR_SPLAT || op_has(o, ELEM) ||
		   op_is_shape(o);
	for (u32 i = 0; yes && i < o->noperands; i++)
		yes = known_free(p, operand(o, i)) != NOT_FREE;
	bool is_long = yes && !type_is_ptr(d.v->type) && takes_many_operations(d.v);
	map_put(&p->free, d.v, (void *)(uintptr_t)(is_long ? LONG_COMPUTATION : yes ? FREE : NOT_FREE));
}

bool is_free(struct placer *p, const struct value *v)
{
	if (!known_free(p, v))
		meet_demand((struct demand){(struct value *)v, 0}, find_unknown_free, note_free, p);
	return known_free(p, v) == FREE;
}

static bool is_long_computation(struct placer *p, const struct value *v)
{
	return !is_free(p, v) && known_free(p, v) == LONG_COMPUTATION;
}

const struct layout *operand_layout(struct placer *p, const struct op *o, const struct layout *l)
{
	const struct type *t = operand(o, 0)->type;
	int inverse[MAX_RANK];
	switch (o->code) {
	case IR_EXPAND_DIMS: return derived(p, l, layout_drop_dim(p->pool, l, (int)o->attr[ATTR_AXIS]));
	case IR_BROADCAST: return derived(p, l, layout_unbroadcast(p->pool, l, t->shape));
	case IR_RESHAPE: return derived(p, l, layout_reshape(p->pool, l, t->rank, t->shape));
	case IR_TRANS:
		for (int i = 0; i < t->rank; i++)
			inverse[perm_get(o->attr[ATTR_ORDER], i)] = i;
		return derived(p, l, layout_trans(p->pool, l, inverse));
	default: tl_unreachable("not a shape operation");
	}
}

static const struct layout *forward_layout(struct placer *p, const struct op *o, const struct layout *l)
{
	const struct type *t = result(o)->type;
	switch (o->code) {
	case IR_EXPAND_DIMS: return derived(p, l, layout_add_dim(p->pool, l, (int)o->attr[ATTR_AXIS]));
	case IR_RESHAPE: return derived(p, l, layout_reshape(p->pool, l, t->rank, t->shape));
	case IR_TRANS: return derived(p, l, transposed(p->pool, o, l));
	default: return NULL; /* a broadcast does not determine the layout of the new elements */
	}
}

/* A layout with both elements of a pair in one thread: the last dimension is a register bit. */
static const struct layout *split_layout(struct placer *p, const struct op *o)
{
	const struct type *t = operand(o, 0)->type;
	const struct layout *l = assigned_layout(p, operand(o, 0));
	int order[MAX_RANK];
	if (l && layout_bits_in(l, LL_REG, 1))
		return l;
	order_rows(t, order);
	return blocked_layout(p, t, order, MAX(2, MIN(elements_per_thread(p, t), 4)));
}

const struct layout *input_layout(struct placer *p, const struct op *o)
{
	const struct layout *l = NULL;
	if (o->code != IR_REDUCE)
		return o->code == IR_SCAN ? scan_layout(p, o) : split_layout(p, o);
	for (u32 i = 0; i < o->noperands && !l; i++)
		l = assigned_layout(p, operand(o, i));
	return l;
}

const struct layout *output_layout(struct placer *p, const struct op *o, const struct layout *in)
{
	int axis = o->code == IR_REDUCE ? (int)o->attr[ATTR_AXIS] : operand(o, 0)->type->rank - 1;
	return o->code == IR_SCAN ? in : derived(p, in, layout_slice(p->pool, in, axis));
}

static const struct layout *join_layout(struct placer *p, const struct op *o, const struct layout *l)
{
	const struct type *t = result(o)->type;
	struct layout wide = *layout_add_dim(p->pool, l, t->rank - 1);
	wide.log2_size[t->rank - 1] = 1;
	for (int dim = 0; dim < LL_DIMS; dim++)
		for (int i = 0; i < wide.bits[dim]; i++)
			wide.basis[dim][i] <<= 1;
	for (int i = wide.bits[LL_REG]; i > 0; i--)
		wide.basis[LL_REG][i] = wide.basis[LL_REG][i - 1];
	wide.basis[LL_REG][0] = 1;
	wide.bits[LL_REG]++;
	return derived(p, l, layout_intern(p->pool, &wide));
}

static bool has_dot(const struct op *loop)
{
	bool found = false;
	for (u32 k = 0; k < loop->nblocks && !found; k++)
		for (const struct op *o = loop->blocks[k]->first; o && !found; o = o->next)
			found = o->code == IR_DOT || (op_is_control(o) && has_dot(o));
	return found;
}

static void find_loops_without_dots(struct placer *p, const struct block *b)
{
	for (struct op *o = b->first; o; o = o->next) {
		if (op_is_loop(o) && !has_dot(o))
			map_put(&p->dotless, o, o);
		for (u32 k = 0; op_is_control(o) && k < o->nblocks; k++)
			find_loops_without_dots(p, o->blocks[k]);
	}
}

/* True if a loop without dots is around o. */
static bool in_loop_without_dots(const struct placer *p, const struct op *o)
{
	for (const struct op *around = o->block->parent; around; around = around->block->parent)
		if (map_get(&p->dotless, around))
			return true;
	return false;
}

/* True if layout l is to be taken rather than `best` (NULL: none): the stronger one. In a loop without dots it is the
 * weaker one, and layouts of dots come last, in a second inference (p->enter). */
static bool is_better(const struct placer *p, const struct layout *l, const struct layout *best, bool without_dots)
{
	enum layout_strength strength = strength_of(p, l);
	if (without_dots && !p->enter && strength > OF_NO_DOT)
		return false;
	return !best || (without_dots ? strength < strength_of(p, best) : strength > strength_of(p, best));
}

/* The best layout of o's operands. */
static const struct layout *best_of_operands(struct placer *p, const struct op *o)
{
	const struct layout *best = NULL;
	bool without_dots = in_loop_without_dots(p, o);
	for (u32 i = 0; i < o->noperands; i++) {
		const struct layout *l = type_is_tensor(operand(o, i)->type) ? assigned_layout(p, operand(o, i)) : NULL;
		if (l && is_better(p, l, best, without_dots))
			best = l;
	}
	return best;
}

/* True if v takes the layout of its elementwise use: a load without a preferred layout, or a long computation from no
 * data, such as random numbers. */
static bool takes_layout_of_use(struct placer *p, const struct value *v)
{
	const struct op *load = def_if(v, IR_LOAD);
	return load ? !map_get(&p->memory, load) : is_long_computation(p, v);
}

/* An elementwise operation, or inline assembly, takes the best layout of its operands (is_better). If they have none
 * yet, its use determines the layout. */
static void infer_elementwise(struct placer *p, struct op *o)
{
	const struct layout *best = best_of_operands(p, o);
	if (!best)
		best = assigned_layout(p, &o->results[0]);
	set_homes(p, o, best);
	for (u32 i = 0; i < o->noperands; i++)
		if (takes_layout_of_use(p, operand(o, i)))
			assign_layout(p, operand(o, i), best);
}

/* The value that operand i of o is passed to takes the operand's layout. */
static void infer_passed(struct placer *p, const struct op *o, u32 i)
{
	struct value *to = value_passed_to(o, i);
	const struct layout *l = assigned_layout(p, operand(o, i));
	if (!to || (!op_has(o, END) && is_free(p, operand(o, i))))
		return;
	if (map_get(&p->dotless, o) && l && !is_better(p, l, assigned_layout(p, to), true))
		return;
	assign_layout(p, to, l);
}

static void infer_op(struct placer *p, struct op *o)
{
	const struct layout *l;
	if (!o->nresults || !o->noperands || !type_is_tensor(operand(o, 0)->type))
		if (!(o->nresults && type_is_tensor(o->results[0].type) && (op_has(o, ELEM) || op_is_asm(o))))
			return;
	switch (o->code) {
	case IR_LOAD:
	case IR_ATOMIC_RMW:
	case IR_ATOMIC_CAS: assign_layout(p, result(o), map_get(&p->memory, o)); return;
	case IR_DOT: assign_layout(p, result(o), ((struct dot_plan *)map_get(&p->dots, o))->acc); return;
	case IR_REDUCE:
	case IR_SCAN:
	case IR_SPLIT:
		l = input_layout(p, o);
		set_homes(p, o, l ? output_layout(p, o, l) : NULL);
		return;
	case IR_MAP: set_homes(p, o, best_of_operands(p, o)); return;
	case IR_GATHER: assign_layout(p, result(o), assigned_layout(p, operand(o, 1))); return;
	case IR_JOIN:
		l = assigned_layout(p, operand(o, 0)) ? assigned_layout(p, operand(o, 0))
						      : assigned_layout(p, operand(o, 1));
		if (l)
			assign_layout(p, result(o), join_layout(p, o, l));
		return;
	default: break;
	}
	if (is_free(p, &o->results[0]))
		return;
	if (op_is_shape(o)) {
		l = assigned_layout(p, operand(o, 0));
		assign_layout(p, result(o), l ? forward_layout(p, o, l) : NULL);
	} else if (op_has(o, ELEM) || op_is_asm(o)) {
		infer_elementwise(p, o);
	}
}

static void run_part(struct placer *p, const struct inference *part)
{
	struct op *o = part->op;
	if (part->result)
		assign_layout(p, &o->results[part->i], assigned_layout(p, result_passed_by(o, part->i)));
	else if (op_is_control(o) || op_has(o, END))
		infer_passed(p, o, part->i);
	else
		infer_op(p, o);
}

/* Sweeps through the kernel until no assigned layout changes. A value is assigned a layout once, and then an
 * stronger layout at most twice, so the sweeps end. A part runs only if a value that it reads has changed. */
void infer(struct placer *p)
{
	do {
		p->changed = false;
		inference_queue done = p->now;
		p->now = p->next;
		p->next = done;
		while (p->now.len) {
			p->at = pop_part(&p->now);
			p->queued[p->at] = false;
			run_part(p, &p->parts.at[p->at]);
		}
		p->at = UINT32_MAX;
	} while (p->changed);
}

void pass_layouts(struct pass_state *s)
{
	struct placer p = {.s = s, .ctx = s->ctx, .pool = &s->ctx->layouts};
	struct map *maps[] = {&p.assigned, &p.memory, &p.copies,    &p.dots,   &p.free,
			      &p.strong,   &p.made,   &p.originals, &p.copied, &p.of_load, &p.dotless};
	for (u32 i = 0; i < ARRAY_LEN(maps); i++)
		maps[i]->arena = &p.scratch;
	warn_of_spills(s);
	place_accesses(&p);
	place_dots(&p);
	place_results(&p);
	find_loops_without_dots(&p, s->k->body);
	make_parts(&p);
	infer(&p);
	p.enter = true;
	queue_all(&p);
	infer(&p);
	assign_fallback_block(&p, s->k->body);
	place_strided_loads(&p);
	materialize(&p);
	remove_dead_code(s->k);
	arena_free(&p.operands.scratch);
	arena_free(&p.shaped_operands.scratch);
	arena_free(&p.scratch);
}
