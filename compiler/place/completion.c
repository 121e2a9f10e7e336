/* The completion of what is asynchronous: how many groups a wait leaves running.
 *
 * Products in flight, and copies by cp.async, are issued in groups. Each kind is a queue: its groups complete in order,
 * and the instruction that waits names how many of the last ones it leaves running. In the IR a wait names what it is
 * for, by tokens: ttng.warp_group_dot gives one if it is asynchronous, ttg.async_commit_group always; loops carry them.
 * The result of a dot in flight stands for its completion as well, and nothing else may use it before.
 *
 * The age of a token at an operation is the least number of groups of its queue that have been issued behind its own,
 * over all paths there. A wait leaves as many groups running as the youngest of its tokens is old. */
#include "ir/graph.h"
#include "place/completion.h"
#include "place/mma.h"

enum queue { PRODUCTS, COPIES, QUEUES };
enum { DONE = UINT8_MAX, MOST_COPIES = 64 };
static const u8 most_pending[QUEUES] = {MAX_PENDING_DOTS, MOST_COPIES};

/* Where the kernel has come to. */
struct running {
	u8 groups[QUEUES]; /* that may be running, at most */
	u8 *age;           /* of each value that may stand for some of them; DONE: they are complete */
};

struct completion {
	struct arena scratch;
	struct map numbers; /* such a value → its number + 1 */
	VEC(u8) queues;     /* of each */
	bool sets;          /* what waits leave running */
	const struct op *bad;
	const char *what;
};

/* --- values in flight ---------------------------------------------------------------------------------------- */

static void refuse(struct completion *c, const struct op *o, const char *what)
{
	if (!c->bad)
		c->bad = o, c->what = what;
}

/* v, and what loops and branches make of it, stands for groups of the queue. */
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
				refuse(c, o, "it uses a result or a token of what is in flight, and is no wait for it");
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
	return n ? r->age[n - 1] : DONE;
}

static void set_age(const struct completion *c, struct running *r, const struct value *v, u8 age)
{
	uintptr_t n = (uintptr_t)map_get(&c->numbers, v);
	if (n)
		r->age[n - 1] = age;
}

static void issue(const struct completion *c, struct running *r, enum queue q, int groups)
{
	for (u32 i = 0; i < c->queues.len; i++)
		if (c->queues.at[i] == q && r->age[i] != DONE)
			r->age[i] = (u8)MIN(r->age[i] + groups, most_pending[q]);
	r->groups[q] = (u8)MIN(r->groups[q] + groups, most_pending[q]);
}

/* All but the last so many groups are complete. */
static void complete(const struct completion *c, struct running *r, enum queue q, i64 but)
{
	for (u32 i = 0; i < c->queues.len; i++)
		if (c->queues.at[i] == q && r->age[i] >= but)
			r->age[i] = DONE;
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
		o->mark = youngest == DONE && !o->nresults; /* nothing is left to wait for */
	} else if (o->attr[ATTR_PENDING] > youngest) {
		refuse(c, o, "it leaves groups running that it is for");
	}
	complete(c, r, q, o->attr[ATTR_PENDING]);
}

static struct running copy(struct completion *c, const struct running *r)
{
	struct running to = *r;
	to.age = arena_dup(&c->scratch, r->age, c->queues.len);
	return to;
}

/* Either way may have been taken. Does that say less than `to` has said? */
static bool merge(const struct completion *c, struct running *to, const struct running *from)
{
	bool less = false;
	for (u32 i = 0; i < c->queues.len; i++)
		if (from->age[i] < to->age[i])
			to->age[i] = from->age[i], less = true;
	for (int q = 0; q < QUEUES; q++)
		if (from->groups[q] > to->groups[q])
			to->groups[q] = from->groups[q], less = true;
	return less;
}

static void visit_block(struct completion *c, struct running *r, const struct block *b);

/* The n values at `to` are what `from` has been, all at once. */
static void pass_on(struct completion *c, struct running *r, struct value *const *to, const struct use *from, u32 n)
{
	u8 *ages = arena_array(&c->scratch, u8, n);
	for (u32 i = 0; i < n; i++)
		ages[i] = age_of(c, r, from[i].value);
	for (u32 i = 0; i < n; i++)
		set_age(c, r, to[i], ages[i]);
}

/* Until another iteration adds nothing. `end`: where the body has come to behind each. */
static void visit_for(struct completion *c, struct running *r, const struct op *o)
{
	const struct block *b = o->blocks[0];
	pass_on(c, r, b->args + 1, o->operands + FOR_INITS, o->nresults);
	for (bool more = true; more;) {
		struct running end = copy(c, r);
		visit_block(c, &end, b);
		pass_on(c, &end, b->args + 1, b->last->operands, o->nresults);
		more = merge(c, r, &end);
	}
	for (u32 i = 0; i < o->nresults; i++)
		set_age(c, r, &o->results[i], age_of(c, r, for_arg(o, i)));
}

/* A block that ends the kernel goes nowhere. */
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
			merge(c, r, &way);
		else
			*r = way;
		any = true;
	}
}

/* Its condition and its body, any number of times. */
static void visit_while(struct completion *c, struct running *r, const struct op *o)
{
	for (bool more = true; more;) {
		struct running end = copy(c, r);
		for (u32 k = 0; k < o->nblocks; k++)
			visit_block(c, &end, o->blocks[k]);
		more = merge(c, r, &end);
	}
}

static void visit_dot(const struct completion *c, struct running *r, const struct op *o)
{
	bool async = o->attr[ATTR_ASYNC];
	if (o->attr[ATTR_FETCHED] && async) /* as it goes, it waits for all before it (lower/wgmma.c) */
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
	struct running r = {.age = arena_array(&c->scratch, u8, c->queues.len)};
	memset(r.age, DONE, c->queues.len);
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
