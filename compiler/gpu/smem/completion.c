/* Completion of asynchronous operations: how many groups each wait leaves running.
 *
 * Asynchronous dots, and copies by cp.async, are issued in groups. Each kind is a queue: its groups complete in order,
 * and the wait instruction gives the number of last groups that it leaves running. In the IR, a wait names tokens
 * instead: ttng.warp_group_dot yields a token if it is asynchronous, ttg.async_commit_group always. Loops carry tokens.
 * The result of a dot in flight stands for its completion as well, and has no other use before the wait.
 *
 * The age of a token at an operation is the least number of groups of its queue that have been issued after the token's
 * group, over all paths to the operation. A wait leaves a number of groups running that is the age of its youngest
 * token. */
#include "ir/graph.h"
#include "gpu/smem/completion.h"
#include "gpu/layout/mma.h"

enum queue { PRODUCTS, COPIES, QUEUES };
enum { DONE = UINT8_MAX, MOST_COPIES = 64 };
static const u8 most_pending[QUEUES] = {MAX_PENDING_DOTS, MOST_COPIES};

/* The groups of asynchronous operations that may be running at a point of the kernel. */
struct running {
	u8 groups[QUEUES]; /* upper bound */
	u8 *ages;          /* of each numbered value; DONE: its group is complete */
	u32 begin, end;    /* all values outside this range are DONE */
};

struct completion {
	struct arena scratch;
	struct map numbers; /* token, or result in flight → its number + 1 */
	VEC(u8) queues;     /* of each numbered value */
	bool sets;          /* set the groups that waits leave running; otherwise verify them */
	const struct op *bad;
	const char *what;
};

/* --- values in flight ---------------------------------------------------------------------------------------- */

static void refuse(struct completion *c, const struct op *o, const char *what)
{
	if (!c->bad)
		c->bad = o, c->what = what;
}

/* Numbers v, and the values that loops and branches pass it on to, as values of the queue. */
static void follow(struct completion *c, struct value *v, enum queue q)
{
	value_vec work = {0};
	vec_push(&c->scratch, &work, v);
	while (work.len) {
		v = work.at[--work.len];
		if (map_get(&c->numbers, v))
			continue;
		vec_push(&c->scratch, &c->queues, (u8)q);
		map_put(&c->numbers, v, (void *)(uintptr_t)c->queues.len);
		for (const struct use *u = v->uses; u; u = u->next) {
			const struct op *o = u->user, *around = o->block->parent;
			u32 i = (u32)(u - o->operands);
			bool adds = o->code == IR_WARP_GROUP_DOT && i == 2;
			enum opcode wait = q == PRODUCTS ? IR_WARP_GROUP_WAIT : IR_ASYNC_WAIT;
			if (o->code == IR_FOR && i >= FOR_INITS) {
				vec_push(&c->scratch, &work, for_arg(o, i - FOR_INITS));
				vec_push(&c->scratch, &work, &((struct op *)o)->results[i - FOR_INITS]);
			} else if (o->code == IR_YIELD && (around->code == IR_FOR || around->code == IR_IF)) {
				vec_push(&c->scratch, &work, &((struct op *)around)->results[i]);
				if (around->code == IR_FOR)
					vec_push(&c->scratch, &work, for_arg(around, i));
			} else if (!adds && o->code != wait) {
				refuse(c, o,
				       "it uses the result or token of an asynchronous operation before a wait for it");
			}
		}
	}
}

static void find_in_flight(struct op *o, void *arg)
{
	struct completion *c = arg;
	bool dot = o->code == IR_WARP_GROUP_DOT && o->attr[ATTR_ASYNC];
	for (u32 i = 0; i < o->nresults && (dot || o->code == IR_ASYNC_COMMIT); i++)
		follow(c, &o->results[i], dot ? PRODUCTS : COPIES);
}

/* --- the walk ------------------------------------------------------------------------------------------------ */

static u8 age_of(const struct completion *c, const struct running *r, const struct value *v)
{
	uintptr_t n = (uintptr_t)map_get(&c->numbers, v);
	return n ? r->ages[n - 1] : DONE;
}

static void set_age(const struct completion *c, struct running *r, const struct value *v, u8 age)
{
	u32 n = (u32)(uintptr_t)map_get(&c->numbers, v);
	if (!n)
		return;
	r->ages[n - 1] = age;
	if (age != DONE) {
		r->begin = r->begin < r->end ? MIN(r->begin, n - 1) : n - 1;
		r->end = MAX(r->end, n);
	}
}

static void issue(const struct completion *c, struct running *r, enum queue q, int groups)
{
	for (u32 i = r->begin; i < r->end; i++)
		if (c->queues.at[i] == q && r->ages[i] != DONE)
			r->ages[i] = (u8)MIN(r->ages[i] + groups, most_pending[q]);
	r->groups[q] = (u8)MIN(r->groups[q] + groups, most_pending[q]);
}

/* All but the last `but` groups are complete. */
static void complete(const struct completion *c, struct running *r, enum queue q, i64 but)
{
	for (u32 i = r->begin; i < r->end; i++)
		if (c->queues.at[i] == q && r->ages[i] >= but)
			r->ages[i] = DONE;
	while (r->begin < r->end && r->ages[r->begin] == DONE)
		r->begin++;
	while (r->begin < r->end && r->ages[r->end - 1] == DONE)
		r->end--;
	r->groups[q] = (u8)MIN(r->groups[q], but);
}

static void wait(struct completion *c, struct running *r, struct op *o)
{
	enum queue q = o->code == IR_ASYNC_WAIT ? COPIES : PRODUCTS;
	u8 youngest = DONE;
	for (u32 i = 0; i < o->noperands; i++)
		youngest = MIN(youngest, age_of(c, r, operand(o, i)));
	if (c->sets && o->noperands) {
		o->attr[ATTR_PENDING] = MIN(youngest, r->groups[q]);
		o->mark = youngest == DONE && !o->nresults; /* all groups are complete */
	} else if (o->attr[ATTR_PENDING] > youngest) {
		refuse(c, o, "its number of pending groups leaves groups in flight that it waits for");
	}
	complete(c, r, q, o->attr[ATTR_PENDING]);
}

static struct running copy(struct completion *c, const struct running *r)
{
	struct running to = *r;
	to.ages = arena_dup(&c->scratch, r->ages, c->queues.len);
	return to;
}

/* Merges the states of two paths. True if more groups may be running than `to` had before. */
static bool merge(struct running *to, const struct running *from)
{
	bool more = false;
	for (u32 i = from->begin; i < from->end; i++) {
		more |= from->ages[i] < to->ages[i];
		to->ages[i] = MIN(to->ages[i], from->ages[i]);
	}
	if (from->begin < from->end) {
		to->begin = to->begin < to->end ? MIN(to->begin, from->begin) : from->begin;
		to->end = MAX(to->end, from->end);
	}
	for (int q = 0; q < QUEUES; q++) {
		more |= from->groups[q] > to->groups[q];
		to->groups[q] = MAX(to->groups[q], from->groups[q]);
	}
	return more;
}

static void visit_block(struct completion *c, struct running *r, const struct block *b);

/* Gives the n values `to` the ages of the values `from`, in parallel. */
static void pass_on(struct completion *c, struct running *r, struct value *const *to, const struct use *from, u32 n)
{
	u8 *ages = arena_array(&c->scratch, u8, n);
	for (u32 i = 0; i < n; i++)
		ages[i] = age_of(c, r, from[i].value);
	for (u32 i = 0; i < n; i++)
		set_age(c, r, to[i], ages[i]);
}

/* Runs the body until another iteration adds nothing. `end` is the state at the end of the body. */
static void visit_for(struct completion *c, struct running *r, const struct op *o)
{
	const struct block *b = o->blocks[0];
	pass_on(c, r, b->args + 1, o->operands + FOR_INITS, o->nresults);
	for (bool more = true; more;) {
		struct running end = copy(c, r);
		visit_block(c, &end, b);
		pass_on(c, &end, b->args + 1, b->last->operands, o->nresults);
		more = merge(r, &end);
	}
	for (u32 i = 0; i < o->nresults; i++)
		set_age(c, r, &o->results[i], age_of(c, r, for_arg(o, i)));
}

/* A block that ends the kernel has no successor. */
static void visit_if(struct completion *c, struct running *r, const struct op *o)
{
	struct running before = copy(c, r);
	bool any = false;
	for (u32 k = 0; k < o->nblocks; k++) {
		struct running way = copy(c, &before);
		const struct op *last = o->blocks[k]->last;
		visit_block(c, &way, o->blocks[k]);
		if (last->code != IR_YIELD)
			continue;
		for (u32 i = 0; i < o->nresults; i++)
			set_age(c, &way, &o->results[i], age_of(c, &way, operand(last, i)));
		if (any)
			merge(r, &way);
		else
			*r = way;
		any = true;
	}
}

/* Runs the condition and the body until another iteration adds nothing. */
static void visit_while(struct completion *c, struct running *r, const struct op *o)
{
	for (bool more = true; more;) {
		struct running end = copy(c, r);
		for (u32 k = 0; k < o->nblocks; k++)
			visit_block(c, &end, o->blocks[k]);
		more = merge(r, &end);
	}
}

static void visit_dot(struct completion *c, struct running *r, const struct op *o)
{
	bool async = o->attr[ATTR_ASYNC];
	if (o->attr[ATTR_REGISTER_GROUPS] && async) /* its code waits for all earlier dots (gpu/codegen/wgmma.c) */
		complete(c, r, PRODUCTS, 0);
	issue(c, r, PRODUCTS, wgmma_groups(o));
	if (!async)
		complete(c, r, PRODUCTS, 0);
	for (u32 i = 0; i < o->nresults && async; i++)
		set_age(c, r, &o->results[i], 0);
}

static void visit_block(struct completion *c, struct running *r, const struct block *b)
{
	for (struct op *o = b->first; o; o = o->next)
		switch (o->code) {
		case IR_WARP_GROUP_DOT: visit_dot(c, r, o); break;
		case IR_ASYNC_COMMIT:
			issue(c, r, COPIES, 1);
			set_age(c, r, result(o), 0);
			break;
		case IR_WARP_GROUP_WAIT:
		case IR_ASYNC_WAIT: wait(c, r, o); break;
		case IR_FOR: visit_for(c, r, o); break;
		case IR_IF: visit_if(c, r, o); break;
		case IR_WHILE: visit_while(c, r, o); break;
		default:
			for (u32 k = 0; k < o->nblocks; k++)
				visit_block(c, r, o->blocks[k]);
		}
}

static void visit_kernel(struct completion *c, struct kernel *k)
{
	c->numbers.arena = &c->scratch;
	walk(k->body, find_in_flight, c);
	if (!c->queues.len || c->bad)
		return;
	struct running r = {.ages = arena_array(&c->scratch, u8, c->queues.len)};
	memset(r.ages, DONE, c->queues.len);
	visit_block(c, &r, k->body);
}

static void remove_wait(struct op *o, void *arg)
{
	(void)arg;
	if ((o->code == IR_WARP_GROUP_WAIT || o->code == IR_ASYNC_WAIT) && o->noperands && o->mark)
		op_erase(o);
}

void count_pending(struct pass_state *s)
{
	struct completion c = {.sets = true};
	visit_kernel(&c, s->k);
	tl_assert(!c.bad);
	if (c.queues.len)
		walk(s->k->body, remove_wait, NULL);
	arena_free(&c.scratch);
}

const struct op *find_incomplete(struct kernel *k, const char **what)
{
	struct completion c = {0};
	visit_kernel(&c, k);
	*what = c.what;
	arena_free(&c.scratch);
	return c.bad;
}
