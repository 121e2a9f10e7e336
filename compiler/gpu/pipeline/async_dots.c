/* Asynchronous dots of a pipelined loop: dots outstanding across iterations, the deferred wait, overlapped dots, and
 * ping-pong scheduling of two warpgroups. */
#include "support/thresholds.h"
#include "ir/graph.h"
#include "analysis/register_pressure.h"
#include "gpu/pipeline/plan.h"
#include "gpu/layout/register_operand.h"

struct op *first_dot(const struct block *body)
{
	struct op *o = body->first;
	while (o && !op_is_dot(o))
		o = o->next;
	return o;
}

struct op *last_dot(const struct block *body)
{
	struct op *o = body->last;
	while (o && !op_is_dot(o))
		o = o->prev;
	return o;
}

bool is_synchronous_dot(const struct op *o)
{
	return o->code == IR_DOT;
}

bool dots_are_independent(struct ir_context *ctx, const struct block *body)
{
	return !block_has(body, is_synchronous_dot) && !chains_dots(ctx, body);
}

bool has_dot(const struct op *o)
{
	bool yes = op_is_dot(o);
	for (u32 i = 0; i < o->nblocks; i++)
		yes |= block_has(o->blocks[i], op_is_dot);
	return yes;
}

static bool is_buffer(const struct plan *p, const struct value *v)
{
	const struct block *body = p->loop->blocks[0];
	while (v->def && v->def->code == IR_MEMDESC_TRANS)
		v = operand(v->def, 0);
	for (u32 i = 0; i < p->loads.len; i++) {
		const struct op *to = load_consumer(p->loads.at[i]);
		if (to->code == IR_LOCAL_STORE && operand(to, 1) == v)
			return true;
	}
	return value_defined_outside(v, body);
}

/* True if v needs no registers after the operation `last`: its users precede it, and so do all pure operations that
 * depend on these, since LLVM may sink them and their operands. */
static bool is_dead_after(struct plan *p, const struct value *v, const struct op *last)
{
	struct value_walk w = {.id = begin_walk(p->ctx)};
	visit_later(&w, v);
	while ((v = visit_next(&w)))
		for (const struct use *u = v->uses; u; u = u->next) {
			const struct op *o = u->user;
			if (o != last && (o->block != last->block || comes_behind(o, last)))
				return end_walk(&w, false);
			for (u32 i = 0; i < o->nresults && o != last && op_has(o, PURE); i++)
				visit_later(&w, &o->results[i]);
		}
	return end_walk(&w, true);
}

/* True if o is a wgmma, and the only use of its result is as its own accumulator in the next iteration. */
static bool only_accumulates(const struct plan *p, const struct op *o)
{
	const struct block *body = p->loop->blocks[0];
	if (o->code != IR_WARP_GROUP_DOT || !value_has_one_use(result(o)) || result(o)->uses->user != body->last)
		return false;
	const struct value *acc = operand(o, 2);
	return acc == for_arg(p->loop, (u32)(result(o)->uses - body->last->operands)) && value_has_one_use(acc);
}

struct op *dot_with_register_a(struct op *to)
{
	while (to->nresults == 1 && value_has_one_use(result(to)) &&
	       (op_has(result(to)->uses->user, ELEM) || op_is_shape(result(to)->uses->user)))
		to = result(to)->uses->user;
	struct op *dot = to->nresults == 1 && value_has_one_use(result(to)) ? result(to)->uses->user : NULL;
	bool yes = dot && dot->code == IR_WARP_GROUP_DOT && dot->attr[ATTR_REGISTER_GROUPS] &&
		   result(to)->uses == dot->operands + dot->attr[ATTR_EXCHANGED];
	return yes ? dot : NULL;
}

struct op *dot_of_local_load(struct op *o)
{
	return o->code == IR_LOCAL_LOAD ? dot_with_register_a(o) : NULL;
}

/* True if o reads one of the loop's buffers, or is a conversion that becomes such a read. */
static bool reads_buffer(const struct plan *p, const struct op *o)
{
	return (o->code == IR_LOCAL_LOAD && is_buffer(p, operand(o, 0))) ||
	       (p->async && o->code == IR_CONVERT_LAYOUT && is_load_consumer(p, o));
}

/* True if the dot takes operand i from registers, computed from buffers of the loop and from loop-invariant values
 * only. (The code generated for the dot waits for earlier wgmmas that may still read these registers.) */
static bool is_register_operand(const struct plan *p, const struct op *dot, u32 i)
{
	struct value_walk w = {.id = begin_walk(p->ctx)};
	bool reads = false;
	if (!dot->attr[ATTR_REGISTER_GROUPS] || i != dot->attr[ATTR_EXCHANGED])
		return false;
	visit_later(&w, operand(dot, i));
	for (const struct value *v; (v = visit_next(&w));) {
		if (value_defined_outside(v, p->loop->blocks[0]))
			continue;
		bool read = v->def && reads_buffer(p, v->def);
		reads |= read;
		if (!read && (!v->def || v->def->block != dot->block || !op_is_orderless(v->def)))
			return end_walk(&w, false);
		if (!read)
			visit_operands(&w, v->def);
	}
	return end_walk(&w, reads);
}

/* Moves the operations that load and compute an operand in registers directly before the dot. */
static void move_operand_to_dot(struct plan *p, struct op *dot)
{
	op_vec run = {0};
	for (struct op *o = dot->prev, *first = dot, *prev; o; o = prev) {
		prev = o->prev;
		if ((!op_is_orderless(o) && !reads_buffer(p, o)) || !is_for_operand(o, dot, &run))
			continue;
		vec_push(&p->scratch, &run, o);
		op_insert_before(o, first);
		first = o;
	}
}

/* The operands must stay valid until the wait in the next iteration: they are in buffers of the loop, loop-invariant,
 * or in registers and computed from buffers. */
void find_outstanding_dots(struct plan *p)
{
	for (struct op *o = p->loop->blocks[0]->first; o; o = o->next) {
		bool all = only_accumulates(p, o), fetches = false;
		for (u32 i = 0; i < 2 && all; i++) {
			bool here = is_register_operand(p, o, i);
			all = here || is_buffer(p, operand(o, i));
			fetches |= here;
		}
		if (!all)
			continue;
		vec_push(&p->scratch, &p->outstanding, o);
		p->register_a |= fetches;
		if (fetches)
			move_operand_to_dot(p, o);
	}
}

/* The last dot of an iteration gets a deferred wait if its accumulator is needed only after the first dot of the next
 * iteration: the tensor cores then run both without a pause. Not if both together hold too many registers. Nor if the
 * preceding iteration's accumulator may be needed after the last dot too: it would be in other registers, to which an
 * outstanding accumulator cannot be copied. */
void find_deferred_dot(struct plan *p)
{
	struct block *body = p->loop->blocks[0];
	struct op *first = first_dot(body), *last = last_dot(body);
	if (!last || last == first || first->code != IR_WARP_GROUP_DOT || last->code != IR_WARP_GROUP_DOT ||
	    first->attr[ATTR_REGISTER_GROUPS] || last->attr[ATTR_REGISTER_GROUPS])
		return;
	if (is_outstanding(p, last))
		return;
	const struct value *sum = result(last), *a = operand(last, 0);
	bool stays = is_buffer(p, operand(last, 1)) && (type_is_tensor(a->type) || is_buffer(p, a)) &&
		     value_has_one_use(sum) && sum->uses->user == body->last;
	const struct value *arg = stays ? for_arg(p->loop, (u32)(sum->uses - body->last->operands)) : NULL;
	/* if the iter arg is unused, nothing keeps the registers of the accumulator in place until the wait */
	stays &= arg && !value_unused(arg);
	for (const struct use *u = arg ? arg->uses : NULL; u; u = u->next)
		stays &= u->user != first && comes_behind(u->user, first);
	stays = stays && is_dead_after(p, arg, last);
	i64 held = registers_of(p->s, sum) + registers_of(p->s, a) + registers_of(p->s, result(first));
	if (stays && held + REGISTERS_BESIDE_LATE <= registers_for_blocks(p->s->target, p->s->num_warps, 1))
		p->deferred = last;
}

struct value *deferred_accumulator(const struct plan *p)
{
	return for_arg(p->loop, (u32)(result(p->deferred)->uses - p->loop->blocks[0]->last->operands));
}

const struct op *first_use(const struct value *sum, const struct block *body)
{
	const struct op *first = body->last;
	for (const struct use *u = sum->uses; u; u = u->next) {
		const struct op *o = u->user;
		while (o->block != body)
			o = o->block->parent;
		if (comes_behind(first, o))
			first = o;
	}
	return first;
}

/* If the only use of the dot's result is a layout conversion in the same block: moves the conversion down to the first
 * use of its own result, so that the wait for the dot moves down too. */
static void sink_conversion(struct op *dot)
{
	struct op *change = value_has_one_use(result(dot)) ? result(dot)->uses->user : NULL;
	if (change && change->code == IR_CONVERT_LAYOUT && change->block == dot->block)
		op_insert_before(change, (struct op *)first_use(result(change), dot->block));
}

/* Overlapped dots: further dots are issued after them before their results are needed, so that the tensor cores are
 * busy while the results are worked on. Not where dots are short along k: ptxas interleaves them with the work
 * better. */
void find_overlapped_dots(struct plan *p)
{
	struct block *body = p->loop->blocks[0];
	const struct op *first = first_dot(body);
	if (!first || operand(first, 0)->type->shape[1] < MIN_K_BESIDE)
		return;
	for (struct op *o = body->first; o; o = o->next) {
		bool own = o->code == IR_WARP_GROUP_DOT && !o->attr[ATTR_REGISTER_GROUPS] && !o->attr[ATTR_TRANSPOSED];
		if (!own || is_outstanding(p, o) || (p->deferred && o == first))
			continue;
		sink_conversion(o);
		const struct op *need = first_use(result(o), body), *next = o->next;
		while (next != need && !op_is_dot(next))
			next = next->next;
		if (next != need)
			vec_push(&p->scratch, &p->overlapped, o);
	}
}

/* Ping-pong scheduling, for loops of two dots where work on the first dot's result gives the second dot's operand. With
 * independent dots it loses 14 to 16 % (an H100, scaled blocks of fp8). No thread may wait at a block-wide barrier
 * while its warpgroup holds the tensor cores. With two buffers the next copy would be late, unless a producer issues
 * it. */
void decide_pingpong(struct plan *p)
{
	u32 dots = 0;
	p->pingpong = p->tma && p->s->num_warps == 8 && (p->stages > 2 || p->producer);
	for (struct op *o = p->loop->blocks[0]->first; o && p->pingpong; o = o->next) {
		dots += op_is_dot(o);
		p->pingpong = (!op_is_dot(o) || (o->code == IR_WARP_GROUP_DOT && !o->attr[ATTR_TRANSPOSED])) &&
			      (is_load_consumer(p, o) /* a copy replaces it */ ||
			       (!scratch_bytes(p->s, o) && o->code != IR_LOCAL_STORE)) &&
			      (!o->nblocks || o->code == IR_REDUCE);
	}
	p->pingpong = p->pingpong && dots == 2 && !dots_are_independent(p->ctx, p->loop->blocks[0]);
}

static bool contains(const op_vec *dots, const struct op *dot)
{
	bool yes = false;
	for (u32 i = 0; i < dots->len; i++)
		yes |= dots->at[i] == dot;
	return yes;
}

bool is_overlapped(const struct plan *p, const struct op *dot)
{
	return contains(&p->overlapped, dot);
}

bool is_outstanding(const struct plan *p, const struct op *dot)
{
	return dot == p->deferred || contains(&p->outstanding, dot);
}

static bool has_outstanding_reader(const struct plan *p, const struct value *buffer)
{
	bool yes = false;
	for (const struct use *u = buffer->uses; u && !yes; u = u->next)
		yes = u->user->code == IR_MEMDESC_TRANS ? has_outstanding_reader(p, result(u->user))
							 : is_outstanding(p, u->user);
	return yes;
}

bool is_read_late(const struct plan *p, const struct op *load)
{
	const struct op *store = load_consumer(load);
	return store && store->code == IR_LOCAL_STORE && has_outstanding_reader(p, operand(store, 1));
}
