/* Loads that no loop issues ahead, and that are only stored to shared memory for a dot: copied there by cp.async
 * instead, which takes no registers. An example is attention's keys after the last whole tile: the registers of this
 * rarely executed remainder would otherwise determine how many blocks fit on a multiprocessor.
 *
 * The wait for the copies stands before the first operation that reads a buffer, or that may write memory that the
 * copies still read. It waits for all cp.async copies, so while others are in progress for later iterations, loads
 * remain loads into registers. */
#include "gpu/layout/memory_access.h"
#include "gpu/pipeline/expand.h"

/* True if o is a load that is stored to a dot's buffer directly. */
static bool is_stored(const struct op *o)
{
	if (o->code != IR_LOAD || o->attr[ATTR_VOLATILE] || !type_is_tensor(result(o)->type))
		return false;
	const struct op *to = load_consumer(o), *between = o->next;
	while (between->code == IR_LOCAL_ALLOC)
		between = between->next;
	return between == to && to->code == IR_LOCAL_STORE;
}

static bool is_commit(const struct op *o) { return o->code == IR_ASYNC_COMMIT; }

/* True if other copies are issued between the load and the first operation that reads its buffer. */
static bool others_follow(const struct op *load)
{
	const struct value *buffer = operand(load_consumer(load), 1);
	bool found = false, read = false;
	for (const struct op *o = load_consumer(load)->next; o && !found && !read; o = o->next) {
		for (u32 i = 0; i < o->noperands && o->code != IR_MEMDESC_TRANS; i++)
			read |= operand(o, i) == buffer;
		found = is_commit(o);
		for (u32 i = 0; i < o->nblocks && !read; i++)
			found |= block_has(o->blocks[i], is_commit);
	}
	return found;
}

/* True if cp.async can copy all loads of the block for which is_stored holds. Otherwise copies would wait for the loads
 * into registers. */
static bool all_can_be_copied(const struct plan *p, const struct block *b)
{
	bool yes = true;
	for (const struct op *o = b->first; o && yes; o = o->next)
		yes = !is_stored(o) || can_copy_async(p, o);
	return yes;
}

/* True if mma.sync reads the buffer. Its store has no fence. */
static bool is_loaded_to_registers(const struct op *alloc)
{
	const struct use *u = result(alloc)->uses;
	while (u && u->user->code != IR_LOCAL_LOAD)
		u = u->next;
	return u;
}

/* Replaces the load, its store, and the fence of a store for wgmma with a copy. Returns the operation after them. */
static struct op *copy(struct plan *p, struct op *load)
{
	struct op *store = load_consumer(load), *alloc = operand(store, 1)->def, *next = store->next;
	struct builder b = builder_before(p->ctx, store);
	struct value *ops[] = {operand(load, 0), result(alloc), mask_of(load)};
	b.loc = load->loc;
	build(&b, IR_ASYNC_COPY, ops, ops[2] ? 3 : 2, NULL, 0, 0)->attr[ATTR_EVICT] = load->attr[ATTR_EVICT];
	if (next->code == IR_FENCE_ASYNC && !is_loaded_to_registers(alloc)) {
		next = next->next;
		op_erase(next->prev);
	}
	op_erase(store);
	op_erase(load);
	return next;
}

/* True if o may stand before the wait for the copies: it does not write memory, and reads no buffer. */
static bool may_precede_wait(const struct op *o)
{
	bool reads_buffer = false;
	for (u32 i = 0; i < o->noperands; i++)
		reads_buffer |= operand(o, i)->type->kind == TY_MEMDESC;
	switch (o->code) {
	case IR_LOAD: return !o->attr[ATTR_VOLATILE];
	case IR_LOCAL_ALLOC:
	case IR_MEMDESC_TRANS:
	case IR_MEMDESC_INDEX:
	case IR_ASYNC_COPY:
	case IR_LOCAL_STORE:
	case IR_FENCE_ASYNC: return true;
	default: return op_has(o, PURE) && !reads_buffer && !o->nblocks;
	}
}

/* others: copies of other groups are in progress where the block begins. Returns whether they are at its end. */
static bool visit(struct plan *p, struct block *b, bool others)
{
	bool pending = false, direct = all_can_be_copied(p, b);
	for (struct op *o = b->first, *next; o; o = next) {
		next = o->next;
		if (direct && !others && is_stored(o) && !others_follow(o)) {
			next = copy(p, o);
			pending = true;
			continue;
		}
		if (pending && !may_precede_wait(o)) {
			struct builder at = builder_before(p->ctx, o);
			build1(&at, IR_ASYNC_COMMIT, type_token(p->ctx), NULL);
			wait_copies(&at);
			pending = false;
		}
		if (o->code == IR_ASYNC_COMMIT)
			others = true;
		if (o->code == IR_ASYNC_WAIT && !o->noperands) /* for all groups */
			others = false;
		for (u32 i = 0; i < o->nblocks; i++)
			others |= visit(p, o->blocks[i], others || block_has(o->blocks[i], is_commit));
	}
	return others;
}

void copy_directly(struct pass_state *s)
{
	struct plan p = {.s = s, .ctx = s->ctx};
	visit(&p, s->k->body, false);
}
