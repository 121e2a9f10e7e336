/* The schedule of a pipelined loop: the operations of its body in order, and between them the steps that the pipeliner
 * adds. A step's stage tells the iteration that it belongs to: at stage 0 the copies of an iteration are issued, at
 * stage `ahead` the body of the same iteration runs, one stage later the dots that it left in flight are finished.
 *
 * choose_steps places the steps that the plan asks for: copies, the wait for them, the finish of dots in flight,
 * turns. synchronise derives the others from who writes and reads the ring of buffers, where, and at which stage:
 *
 *   copies, then reads      a wait leaves the groups of copies running that were issued later; then all threads meet.
 *                           With an mbarrier the wait is that for "full"
 *   stores, then dots       a fence between the proxies, and all threads meet
 *   reads, then writes      of the same buffer, an iteration later: all threads meet in between, unless a barrier
 * stands there anyway. With an mbarrier each warp releases the buffer behind its last read */
#include "place/mma.h"
#include "pipeline/schedule.h"

static void add_step(struct schedule *p, enum step_kind kind, int stage)
{
	vec_push(&p->scratch, &p->steps, ((struct step){.kind = kind, .stage = stage}));
}

static void add_op(struct schedule *p, struct op *o)
{
	vec_push(&p->scratch, &p->steps, ((struct step){.kind = STEP_OP, .stage = p->ahead, .op = o}));
}

static void insert_step(struct schedule *p, u32 at, enum step_kind kind, int stage)
{
	add_step(p, kind, stage);
	for (u32 i = p->steps.len - 1; i > at; i--)
		p->steps.at[i] = p->steps.at[i - 1];
	p->steps.at[at] = (struct step){.kind = kind, .stage = stage};
}

static struct step *find_step(const struct schedule *p, enum step_kind kind)
{
	for (u32 i = 0; i < p->steps.len; i++)
		if (p->steps.at[i].kind == kind)
			return &p->steps.at[i];
	return NULL;
}

/* --- the order of the steps ---------------------------------------------------------------------------------- */

/* Behind which operation the dots of the iteration before are finished; NULL if none is left in flight. With two
 * buffers through registers it is in front of the first dot. */
static const struct op *finish_behind(const struct schedule *p, const struct block *body)
{
	if (p->late)
		return first_dot(body);
	return p->async && p->dots.len ? p->dots.at[p->dots.len - 1] : NULL;
}

/* Behind which operation the next copies are issued; NULL: where the body begins. They follow the last read of what
 * they overwrite. Where others may still be reading it, there is work to do meanwhile. Loads go behind the stores that
 * free their registers or, with a ring, the dots that run meanwhile. */
static const struct op *copy_behind(const struct schedule *p, const struct block *body)
{
	const struct op *behind = NULL;
	if (p->late && p->ahead > 1) /* there is time, and nothing else to do there */
		return p->late;
	if (p->async)
		return p->tma && !p->dots.len ? first_dot(body) : finish_behind(p, body);
	if (p->ring)
		return p->dots.at[p->dots.len - 1];
	for (const struct op *o = body->first; o && !p->few; o = o->next)
		if (o->code == IR_LOCAL_STORE)
			behind = o->next && o->next->code == IR_FENCE_ASYNC ? o->next : o;
	return behind;
}

static void choose_steps(struct schedule *p)
{
	const struct block *body = p->loop->blocks[0];
	const struct op *finish = finish_behind(p, body), *copy = copy_behind(p, body), *first = first_dot(body),
			*last = last_dot(body);
	int work = p->ahead;
	bool through_registers = p->ring && !p->async, finished = !through_registers;
	if (p->producer)
		vec_push(&p->scratch, &p->steps, ((struct step){.kind = STEP_COPY, .partition = PRODUCER}));
	if (p->async) {
		add_step(p, STEP_AWAIT, work);
		add_step(p, STEP_TURN, work);
	}
	if (!copy && !p->producer)
		add_step(p, STEP_COPY, 0);
	for (struct op *o = body->first; o != body->last; o = o->next) {
		if (!finished && has_dot(o)) {
			add_step(p, STEP_FINISH, work + 1);
			finished = true;
		}
		if (p->turns && o == last)
			add_step(p, STEP_AWAIT_TURN, work);
		add_op(p, o);
		if (p->turns && o == first)
			add_step(p, STEP_PASS_TURN, work);
		if (o == finish)
			add_step(p, STEP_FINISH, work + 1);
		if (o != copy || p->producer)
			continue;
		if (through_registers) {
			add_step(p, STEP_HOLD, work);
			add_step(p, STEP_TURN, work);
		}
		add_step(p, STEP_COPY, 0);
	}
}

/* --- synchronisation ----------------------------------------------------------------------------------------- */

/* Groups of products that are issued in the body before step `at`, and may run on behind it. A dot that is not left in
 * flight is to be finished there. */
static i64 groups_before(const struct schedule *p, u32 at)
{
	enum { MAX_PENDING = 7 /* groups that a wait for dots leaves running */ };
	i64 groups = 0;
	for (u32 i = 0; i < at; i++) {
		const struct op *o = p->steps.at[i].op;
		if (o && op_is_dot(o))
			groups = stays_in_flight(p, o) ? groups + wgmma_groups(o) : 0;
	}
	return MIN(groups, MAX_PENDING);
}

/* Notes the operations of the body that read a buffer, or contain others that do. */
static void note_readers(const struct schedule *p, const struct value *buffer)
{
	for (const struct use *u = buffer->uses; u; u = u->next) {
		struct op *o = u->user;
		while (o->block != p->loop->blocks[0])
			o = o->block->parent;
		o->mark = 1;
		if (o->code == IR_MEMDESC_TRANS)
			note_readers(p, result(o));
	}
}

/* Where the last read of an iteration's buffers has ended: behind the finish of its dots, if these stay in flight, else
 * behind the last operation that reads one. */
static u32 end_of_reads(const struct schedule *p)
{
	const struct step *finish = find_step(p, STEP_FINISH);
	u32 end = 0;
	if (finish)
		return (u32)(finish - p->steps.at) + 1;
	for (u32 i = 0; i < p->steps.len; i++)
		if (p->steps.at[i].op)
			p->steps.at[i].op->mark = 0;
	for (u32 i = 0; i < p->loads.len; i++) {
		struct op *to = load_consumer(p->loads.at[i]);
		to->mark = 1; /* reads it, or is replaced by the copy */
		if (to->code == IR_LOCAL_STORE)
			note_readers(p, operand(to, 1));
	}
	for (u32 i = 0; i < p->steps.len; i++)
		if (p->steps.at[i].op && p->steps.at[i].op->mark)
			end = i + 1;
	return end;
}

/* The first step that overwrites the ring, and the iteration before whose buffer it overwrites. */
static u32 first_write(const struct schedule *p, int *earlier)
{
	u32 i = 0;
	*earlier = p->async ? p->stages - p->ahead : p->stages;
	if (p->async)
		return (u32)(find_step(p, STEP_COPY) - p->steps.at);
	while (!p->steps.at[i].op || p->steps.at[i].op->code != IR_LOCAL_STORE)
		i++;
	return i;
}

/* Do all threads meet between the end of an iteration's reads and the write that overwrites its buffer? */
static bool meet_before_write(const struct schedule *p)
{
	int earlier, read = p->lags;
	u32 from = end_of_reads(p), to = first_write(p, &earlier);
	bool met = false;
	for (u32 i = 0; i < p->steps.len; i++)
		if (p->steps.at[i].kind == STEP_BARRIER)
			met |= earlier == read ? i >= from && i < to : i >= from || i < to || earlier - read > 1;
	return met;
}

static void synchronise(struct schedule *p)
{
	int work = p->ahead, reads = work + p->lags;
	for (u32 i = 0; i < p->steps.len; i++) {
		struct step *s = &p->steps.at[i];
		if (s->kind == STEP_FINISH)
			s->pending = groups_before(p, i);
	}
	struct step *await = find_step(p, STEP_AWAIT);
	if (p->tma) {
		insert_step(p, end_of_reads(p), STEP_RELEASE, reads);
	} else if (await) {
		await->pending = p->ahead - (find_step(p, STEP_COPY) > await);
		insert_step(p, (u32)(await - p->steps.at) + 1, STEP_BARRIER, work);
	} else if (p->ring) {
		insert_step(p, end_of_reads(p), STEP_FENCE, work);
		insert_step(p, end_of_reads(p) + 1, STEP_BARRIER, work);
	}
	if (p->ring && !p->tma && !meet_before_write(p))
		insert_step(p, end_of_reads(p), STEP_BARRIER, reads);
	tl_assert(!p->ring || p->tma || meet_before_write(p));
}

void schedule_steps(struct schedule *p)
{
	choose_steps(p);
	p->lags = find_step(p, STEP_FINISH);
	synchronise(p);
}
