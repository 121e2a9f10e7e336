/* The schedule of a pipelined loop: the operations of its body in order, and between them the steps that the pipeliner
 * adds. The stage of a step tells the iteration that it belongs to: at stage 0 the copies of an iteration are issued,
 * at stage `ahead` the body of the same iteration runs, one stage later its outstanding dots are waited for.
 *
 * choose_steps places the steps that follow from the plan: copies, waits for copies, waits for outstanding and for
 * overlapped dots, ping-pong synchronisation. The other functions derive the other steps from the reads and writes of
 * the multi-buffers, their positions and their stages:
 *
 *   copies, then reads      a wait for the copies, then a block-wide barrier. With mbarriers: a wait for "full"
 *   stores, then dots       a proxy fence, and a block-wide barrier
 *   reads, then writes      of the same buffer, an iteration later, or in the same one if copies refill it at once: a
 *                           block-wide barrier in between, unless another step has one there. With mbarriers each
 *                           warp releases the buffer after its last read */
#include "gpu/layout/mma.h"
#include "gpu/pipeline/schedule.h"

/* True if copies refill the buffer of the running iteration, after its last read. Otherwise they fill the buffer of an
 * earlier iteration. */
static bool refills_at_once(const struct plan *p)
{
	return p->ahead == p->stages;
}

static void insert_step(struct schedule *s, u32 at, struct schedule_step step)
{
	vec_push(&s->plan->scratch, &s->steps, step);
	for (u32 i = s->steps.len - 1; i > at; i--)
		s->steps.at[i] = s->steps.at[i - 1];
	s->steps.at[at] = step;
	for (u32 k = 0; k < s->parts.len; k++) {
		s->parts.at[k].begin += s->parts.at[k].begin >= at;
		s->parts.at[k].end += s->parts.at[k].end > at;
	}
}

static void add_step(struct schedule *s, enum schedule_step_kind kind, int stage, struct op *o)
{
	vec_push(&s->plan->scratch, &s->steps, ((struct schedule_step){.kind = kind, .stage = stage, .op = o}));
}

/* The index of the first step of this kind; the number of steps if there is none. */
static u32 find_step(const struct schedule *s, enum schedule_step_kind kind)
{
	u32 i = 0;
	while (i < s->steps.len && s->steps.at[i].kind != kind)
		i++;
	return i;
}

/* --- the order of the steps ---------------------------------------------------------------------------------- */

/* The operation after which the body waits for the outstanding dots of the preceding iteration
 * (STEP_WAIT_PREVIOUS_DOTS). NULL: before the first dot, because no dots are outstanding, or operands come through
 * registers. The wait for a dot with deferred wait includes the first dot of this iteration. It stands after the
 * overlapped dots that are issued before either result is needed. */
static const struct op *previous_dots_wait_after(const struct plan *p)
{
	const struct block *body = p->loop->blocks[0];
	if (!p->deferred)
		return p->async && p->outstanding.len ? p->outstanding.at[p->outstanding.len - 1] : NULL;
	const struct op *after = first_dot(body), *use = first_use(result(after), body),
			*other_use = first_use(deferred_accumulator(p), body);
	for (const struct op *o = after; o != use && o != other_use; o = o->next)
		after = is_overlapped(p, o) ? o : after;
	return after;
}

/* The operation after which the next copies are issued (STEP_ISSUE_COPIES); NULL: at the start of the body. Copies
 * follow the last read of the buffer that they overwrite. With mbarriers other warps may not have released the buffer
 * yet, so the copies stand after a dot, which runs meanwhile. Loads into registers follow the stores that free their
 * registers or, with multi-buffers, the dots that run meanwhile. */
static const struct op *copies_after(const struct plan *p)
{
	const struct block *body = p->loop->blocks[0];
	const struct op *after = p->issue_after;
	if (p->deferred && p->ahead > 1) /* not urgent; after the wait for the preceding dots, the warp would idle */
		return p->deferred;
	if (p->tma && !p->deferred && !p->outstanding.len)
		return first_dot(body);
	if (p->async)
		return previous_dots_wait_after(p);
	if (p->multi_buffered)
		return p->outstanding.at[p->outstanding.len - 1];
	for (const struct op *o = body->first; o && !p->register_prefetch; o = o->next)
		if (o->code == IR_LOCAL_STORE)
			after = o->next && o->next->code == IR_FENCE_ASYNC ? o->next : o;
	return after;
}

/* Adds a wait (STEP_WAIT_DOT) before o for the overlapped dots whose results o is the first to use, or that have no
 * user before the end of the body, o. Waiting for a dot includes all earlier dots. *n: the number of plan.overlapped
 * already waited for. */
static void add_dot_waits(struct schedule *s, const struct op *o, u32 *n)
{
	const struct plan *p = s->plan;
	u32 end = *n;
	for (u32 i = *n; i < p->overlapped.len; i++)
		if (first_use(result(p->overlapped.at[i]), o->block) == o)
			end = i + 1;
	for (; *n < end; ++*n)
		add_step(s, STEP_WAIT_DOT, p->ahead, p->overlapped.at[*n]);
}

static void choose_steps(struct schedule *s)
{
	const struct plan *p = s->plan;
	const struct block *body = p->loop->blocks[0];
	const struct op *wait = previous_dots_wait_after(p), *copy = copies_after(p), *first = first_dot(body),
			*last = last_dot(body);
	int work = p->ahead;
	u32 waited = 0;
	bool through_registers = p->multi_buffered && !p->async, stores_wait = through_registers;
	if (p->producer) {
		add_step(s, STEP_ISSUE_COPIES, 0, NULL);
		s->steps.at[0].partition = PRODUCER;
	}
	if (p->async) {
		add_step(s, STEP_WAIT_COPIES, work, NULL);
		add_step(s, STEP_ADVANCE, work, NULL);
	}
	if (!copy && !p->producer && !refills_at_once(p))
		add_step(s, STEP_ISSUE_COPIES, 0, NULL);
	for (struct op *o = body->first; o != body->last; o = o->next) {
		if (stores_wait && (has_dot(o) || dot_of_local_load(o))) {
			add_step(s, STEP_WAIT_PREVIOUS_DOTS, work + 1, NULL);
			stores_wait = false;
		}
		if (p->pingpong && o == last)
			add_step(s, STEP_PINGPONG_WAIT, work, NULL);
		add_dot_waits(s, o, &waited);
		add_step(s, STEP_OP, work, o);
		if (p->pingpong && o == first)
			add_step(s, STEP_PINGPONG_ARRIVE, work, NULL);
		if (o == wait)
			add_step(s, STEP_WAIT_PREVIOUS_DOTS, work + 1, NULL);
		if (o != copy || p->producer)
			continue;
		if (through_registers) {
			add_step(s, STEP_WARP_BARRIER, work, NULL);
			add_step(s, STEP_ADVANCE, work, NULL);
		}
		add_step(s, STEP_ISSUE_COPIES, 0, NULL);
	}
	add_dot_waits(s, body->last, &waited);
}

/* --- synchronisation ----------------------------------------------------------------------------------------- */

static void mark_in_body(const struct plan *p, struct op *o)
{
	while (o->block != p->loop->blocks[0])
		o = o->block->parent;
	o->mark = 1;
}

/* Sets op.mark of the operations of the body that read the buffer, or contain such reads. If a read is a load that code
 * generation emits with a dot (dot_of_local_load), the dot is marked too. */
static void mark_readers(const struct plan *p, const struct value *buffer)
{
	for (const struct use *u = buffer->uses; u; u = u->next) {
		struct op *o = u->user;
		if (o->code == IR_MEMDESC_TRANS) { /* a transposed view */
			mark_readers(p, result(o));
			continue;
		}
		struct op *dot = dot_of_local_load(o);
		mark_in_body(p, o);
		if (dot)
			mark_in_body(p, dot);
	}
}

/* The range of steps that reads load i's buffer, as a part with `begin`, `end` and `released_late`. A dot reads until
 * the wait for it: in this iteration, or if it is outstanding, at STEP_WAIT_PREVIOUS_DOTS of the next iteration. */
static struct buffer_part reads_of(const struct schedule *s, u32 i)
{
	const struct plan *p = s->plan;
	u32 waited = find_step(s, STEP_WAIT_PREVIOUS_DOTS) + 1;
	struct buffer_part reads = {.begin = s->steps.len};
	for (u32 k = 0; k < s->steps.len; k++)
		if (s->steps.at[k].op)
			s->steps.at[k].op->mark = 0;
	struct op *to = load_consumer(p->loads.at[i]);
	if (to->code == IR_LOCAL_STORE)
		mark_readers(p, operand(to, 1));
	to->mark = !p->async || to->code != IR_LOCAL_STORE; /* a copy replaces the store */
	struct op *dot = dot_with_register_a(to);
	if (dot)
		dot->mark = 1;
	for (u32 k = 0; k < s->steps.len; k++) {
		const struct op *o = s->steps.at[k].op;
		if (!o || !o->mark)
			continue;
		bool with_deferred = p->deferred && o == first_dot(p->loop->blocks[0]);
		reads.begin = MIN(reads.begin, k);
		reads.end = MAX(reads.end, with_deferred ? waited : k + 1);
		reads.released_late |= is_outstanding(p, o);
	}
	if (reads.released_late)
		reads.end = waited;
	return reads;
}

/* The time at which iteration 0 has read the part's buffers. Step k of iteration i runs at time i·(number of steps)
 * + k. */
static u32 end_of_reads(const struct schedule *s, const struct buffer_part *part)
{
	return part->end + part->released_late * s->steps.len;
}

/* Distributes the loads to parts, in the order in which their buffers are read. `apart`: loads with buffers released
 * one iteration later form a separate part. */
static void distribute_loads(struct schedule *s, bool apart)
{
	s->parts.len = 0;
	for (u32 i = 0; i < s->plan->loads.len; i++) {
		struct buffer_part reads = reads_of(s, i);
		u32 k = 0;
		while (k < s->parts.len && apart && s->parts.at[k].released_late != reads.released_late)
			k++;
		if (k == s->parts.len)
			vec_push(&s->plan->scratch, &s->parts, reads);
		struct buffer_part *part = &s->parts.at[k];
		part->begin = MIN(part->begin, reads.begin);
		if (end_of_reads(s, &reads) > end_of_reads(s, part)) {
			part->end = reads.end;
			part->released_late = reads.released_late;
		}
		vec_push(&s->plan->scratch, &part->loads, i);
		s->released_late |= reads.released_late;
	}
	if (s->parts.len > 1 && s->parts.at[0].begin > s->parts.at[1].begin) {
		struct buffer_part first = s->parts.at[1];
		s->parts.at[1] = s->parts.at[0];
		s->parts.at[0] = first;
	}
}

/* Two parts are used with two buffers only: with more, no buffer is refilled late, and waiting for one part is faster,
 * on an H100 by 1 to 3 % for attention with three buffers. One part, too, if the buffers that are released one
 * iteration later are read first or released last: since the producer fills the parts in order, the other part's
 * buffers would not be refilled sooner. */
static void find_parts(struct schedule *s)
{
	distribute_loads(s, s->plan->producer && s->plan->stages == 2);
	if (s->parts.len > 1 && (s->parts.at[0].released_late || s->parts.at[0].end < s->parts.at[1].end))
		distribute_loads(s, false);
}

/* Adds the copies that refill the buffers of the running iteration: after the last dot, so that operands of dots need
 * not be in registers before. */
static void add_refill(struct schedule *s)
{
	u32 at = s->parts.at[0].end;
	for (u32 i = at; i < s->steps.len; i++)
		if (s->steps.at[i].op && has_dot(s->steps.at[i].op))
			at = i + 1;
	s->parts.at[0].end = at;
	insert_step(s, at, (struct schedule_step){STEP_ISSUE_COPIES, .stage = 0});
}

/* The time at which the buffer that iteration 0 reads is overwritten for the first time. */
static u32 time_of_overwrite(const struct schedule *s)
{
	const struct plan *p = s->plan;
	u32 i = 0, iterations = (u32)(p->async ? p->stages - p->ahead : p->stages);
	if (p->async)
		i = find_step(s, STEP_ISSUE_COPIES);
	while (!p->async && (!s->steps.at[i].op || s->steps.at[i].op->code != IR_LOCAL_STORE))
		i++;
	return iterations * s->steps.len + i;
}

/* True if a block-wide barrier stands between the end of an iteration's reads and the write that overwrites its
 * buffer. */
static bool is_synchronised_before_write(const struct schedule *s)
{
	u32 end = end_of_reads(s, &s->parts.at[0]), write = time_of_overwrite(s);
	bool yes = false;
	for (u32 i = 0; i < s->steps.len; i++) {
		u32 barrier = i;
		while (barrier < end)
			barrier += s->steps.len;
		yes |= s->steps.at[i].kind == STEP_BARRIER && barrier < write;
	}
	return yes;
}

/* Inserts the waits for "full" mbarriers, and the arrivals at "empty" mbarriers. */
static void add_mbarrier_steps(struct schedule *s)
{
	int work = s->plan->ahead;
	for (u32 k = 0; k < s->parts.len; k++) {
		struct buffer_part *part = &s->parts.at[k];
		insert_step(s, part->end,
			    (struct schedule_step){STEP_RELEASE, .stage = work + part->released_late, .part = k});
		u32 at = part->begin;
		if (at && s->steps.at[at - 1].kind == STEP_PINGPONG_WAIT) /* not while it holds the tensor cores */
			at--;
		if (k) /* the wait for the first part is at the start of the body */
			insert_step(s, at, (struct schedule_step){STEP_WAIT_COPIES, .stage = work, .part = k});
	}
}

/* Inserts the block-wide barriers after copies or stores, and between reads and the next write of a buffer. */
static void add_barriers(struct schedule *s)
{
	int work = s->plan->ahead;
	struct schedule_step barrier = {STEP_BARRIER, .stage = work}, fence = {STEP_FENCE, .stage = work};
	if (s->plan->async) {
		insert_step(s, find_step(s, STEP_WAIT_COPIES) + 1, barrier);
	} else {
		u32 stored = find_step(s, STEP_WAIT_PREVIOUS_DOTS) + 1; /* before the first dot */
		insert_step(s, stored, fence);
		insert_step(s, stored + 1, barrier);
	}
	barrier.stage += s->parts.at[0].released_late;
	if (!is_synchronised_before_write(s))
		insert_step(s, s->parts.at[0].end, barrier);
	tl_assert(is_synchronised_before_write(s));
}

void schedule_loop(struct plan *p)
{
	struct schedule *s = p->schedule = arena_new(&p->scratch, struct schedule);
	s->plan = p;
	choose_steps(s);
	if (p->multi_buffered)
		find_parts(s);
	if (refills_at_once(p))
		add_refill(s);
	if (p->tma)
		add_mbarrier_steps(s);
	else if (p->multi_buffered)
		add_barriers(s);
}
