/* The shared-memory budget for multi-buffers: the shared memory of a block, less that of the loop's other buffers and
 * scratch and of the operations around it. */
#include "support/thresholds.h"
#include "analysis/register_pressure.h"
#include "gpu/pipeline/plan.h"

i64 multibuffer_bytes(const struct plan *p, int stages)
{
	i64 total = 0;
	for (u32 i = 0; i < p->loads.len; i++)
		total += load_bytes(p->loads.at[i]) * stages;
	return total;
}

struct needs {
	const struct plan *p;
	i64 buffers, scratch;
};

/* True if the multi-buffers replace o: it stores one of p->loads to shared memory, or allocates the buffer of such a
 * store. Also for the loops chained to p's. */
static bool is_replaced(const struct plan *p, const struct op *o)
{
	bool yes = false;
	for (u32 i = 0; p && i < p->loads.len; i++) {
		const struct op *to = load_consumer(p->loads.at[i]);
		yes |= to && (to == o || (to->code == IR_LOCAL_STORE && operand(to, 1)->def == o));
	}
	return yes;
}

static void add_needs(struct op *o, void *arg)
{
	struct needs *n = arg;
	bool ours = is_replaced(n->p, o) || is_replaced(n->p->prev_chained, o) || is_replaced(n->p->next_chained, o);
	if (o->code == IR_LOCAL_ALLOC)
		n->buffers += ours ? 0 : own_bytes(n->p->s, o);
	else if (!ours)
		n->scratch = MAX(n->scratch, scratch_bytes(n->p->s, o));
}

/* True if buffer v is used by o, by an operation after o, or inside o. Uses of its transposed views (IR_MEMDESC_TRANS)
 * count. */
static bool is_alive_at(const struct value *v, const struct op *o)
{
	bool yes = false;
	for (const struct use *u = v->uses; u && !yes; u = u->next)
		yes = u->user == o || comes_behind(u->user, o) ||
		      (u->user->code == IR_MEMDESC_TRANS && is_alive_at(result(u->user), o));
	return yes;
}

/* The largest amount of shared memory in use at any time while the block runs, multi-buffers included. */
static i64 most_needed(const struct plan *p, struct block *b)
{
	i64 most = 0;
	for (struct op *o = b->first; o; o = o->next) {
		struct needs n = {p, multibuffer_bytes(p, p->stages), 0};
		for (struct op *before = b->first; before != o; before = before->next)
			if (before->code == IR_LOCAL_ALLOC && is_alive_at(result(before), o))
				add_needs(before, &n);
		add_needs(o, &n);
		for (u32 i = 0; i < o->nblocks; i++)
			walk(o->blocks[i], add_needs, &n);
		most = MAX(most, n.buffers + n.scratch);
	}
	return most;
}

bool multibuffers_fit(const struct plan *p, const struct op *around)
{
	return most_needed(p, around->blocks[0]) <= p->s->target->shared_bytes;
}

/* Lower bound of a thread's registers in the loop: the loop-carried tiles, and the largest result of a dot that is not
 * carried unchanged. */
static i64 registers_held(const struct plan *p)
{
	i64 carried = 0, most = 0;
	for (u32 i = 0; i < p->loop->nresults; i++)
		if (type_is_tensor(p->loop->results[i].type))
			carried += registers_of(p->s, &p->loop->results[i]);
	for (const struct op *o = p->loop->blocks[0]->first; o; o = o->next)
		if (op_is_dot(o) && (!value_has_one_use(result(o)) || result(o)->uses->user->code != IR_YIELD))
			most = MAX(most, registers_of(p->s, result(o)));
	return carried + most;
}

static bool is_used_in(const struct value *v, const struct block *b)
{
	bool yes = false;
	for (const struct use *u = v->uses; u && !yes; u = u->next)
		yes = block_contains(b, u->user->block) ||
		      (u->user->code == IR_MEMDESC_TRANS && is_used_in(result(u->user), b));
	return yes;
}

enum { FAR = 1024 /* number of operations before a loop that count in its budget; bounds compile time */ };

/* Bytes with `stages` buffers for each load: the multi-buffers, the other buffers that the loop reads, and the scratch
 * memory that it and the operations before it use for layout conversions. */
static i64 memory_needed(const struct plan *p, int stages)
{
	struct needs n = {p, 0, 0};
	walk(p->loop->blocks[0], add_needs, &n);
	int left = FAR;
	for (struct op *o = p->loop->prev; o && left--; o = o->prev)
		if (o->code != IR_LOCAL_ALLOC || is_used_in(result(o), p->loop->blocks[0]))
			add_needs(o, &n);
	return multibuffer_bytes(p, stages) + n.buffers + MAX(n.scratch, SHARED_BESIDE_MULTIBUFFER);
}

bool one_block_per_multiprocessor(const struct plan *p)
{
	return 2 * memory_needed(p, p->stages) > p->s->target->shared_bytes ||
	       registers_held(p) >= registers_for_blocks(p->s->target, p->s->num_warps, 2);
}

/* The blocks that a multiprocessor holds at the same time: each takes shared memory and registers. */
static int resident_blocks(const struct plan *p, int stages)
{
	const struct pass_state *s = p->s;
	i64 registers = registers_held(p) + WORKING_REGISTERS;
	int blocks = blocks_for_memory(s->target, memory_needed(p, stages));
	while (blocks > 1 && registers_for_blocks(s->target, s->num_warps, blocks) < registers)
		blocks--;
	return blocks;
}

bool is_short_of_memory(const struct plan *p)
{
	int now = resident_blocks(p, p->stages);
	return now * p->s->num_warps < ENOUGH_WARPS && resident_blocks(p, p->stages - 1) > now;
}

bool one_buffer_lets_blocks_overlap(const struct plan *p)
{
	/* the grids that are known to have more programs than are resident have more than MANY_WAVES for each
	 * multiprocessor */
	return resident_blocks(p, p->stages) < MANY_WAVES && resident_blocks(p, 1) >= ENOUGH_BLOCKS;
}

int stages_that_fit(struct plan *p, int stages)
{
	while (stages > 1 && memory_needed(p, stages) > p->s->target->shared_bytes)
		stages--;
	return stages;
}
