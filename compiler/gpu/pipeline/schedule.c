/* The schedule of a pipelined loop: the operations of its body in order, and between them the steps that the pipeliner
 * adds. The stage of a step tells the iteration that it belongs to: at stage 0 the copies of an iteration are issued,
 * at stage `ahead` the body of the same iteration runs, one stage later its outstanding dots are waited for.
 *
 * choose_steps places the steps that follow from the plan: copies, waits for copies, waits for outstanding and for
 * overlapped dots, ping-pong synchronisation. synchronise_multibuffer derives the other steps from the reads and writes
 * of the multi-buffers, their positions and their stages:
 *
 *   copies, then reads      a wait for the copies, then a block-wide barrier. With mbarriers: a wait for "full"
 *   stores, then dots       a proxy fence, and a block-wide barrier
 *   reads, then writes      of the same buffer, an iteration later: a block-wide barrier in between, unless another
 *                           step has one there. With mbarriers each warp releases the buffer after its last read */
#include "gpu/layout/mma.h"
#include "gpu/pipeline/schedule.h"

static void add_step(struct schedule *p, enum schedule_step_kind kind, int stage)
{
	vec_push(&p->scratch, &p->steps, ((struct schedule_step){.kind = kind, .stage = stage}));
}

static void add_op(struct schedule *p, struct op *o)
{
	vec_push(&p->scratch, &p->steps, ((struct schedule_step){.kind = STEP_OP, .stage = p->ahead, .op = o}));
}

static void insert_step(struct schedule *p, u32 at, struct schedule_step step)
{
	vec_push(&p->scratch, &p->steps, step);
	for (u32 i = p->steps.len - 1; i > at; i--)
		p->steps.at[i] = p->steps.at[i - 1];
	p->steps.at[at] = step;
	for (u32 k = 0; k < p->parts.len; k++) {
		p->parts.at[k].begin += p->parts.at[k].begin >= at;
		p->parts.at[k].end += p->parts.at[k].end > at;
	}
}

static struct schedule_step *find_step(const struct schedule *p, enum schedule_step_kind kind)
{
	for (u32 i = 0; i < p->steps.len; i++)
		if (p->steps.at[i].kind == kind)
			return &p->steps.at[i];
	return NULL;
}

/* --- the order of the steps ---------------------------------------------------------------------------------- */

/* The operation after which the body waits for the outstanding dots of the preceding iteration (STEP_FINISH). NULL:
 * before the first dot, because no dots are outstanding, or operands come through registers. The wait for a dot with
 * deferred wait is also that for the first dot of this iteration; it stands after the overlapped dots that are issued
 * before either result is needed. */
static const struct op *finish_behind(const struct schedule *p, const struct block *body)
{
	if (p->late) {
		const struct op *behind = first_dot(body), *o = behind,
				*need = first_need(result(first_dot(body)), body),
				*other = first_need(late_sum(p), body);
		while (o != need && o != other) {
			behind = runs_beside(p, o) ? o : behind;
			o = o->next;
		}
		return behind;
	}
	return p->async && p->dots.len ? p->dots.at[p->dots.len - 1] : NULL;
}

/* The operation after which the next copies are issued (STEP_COPY); NULL: at the start of the body. Copies follow the
 * last read of the buffer that they overwrite. With mbarriers other warps may not have released the buffer yet, so the
 * copies stand after a dot, which runs meanwhile. Loads into registers follow the stores that free their registers or,
 * with multi-buffers, the dots that run meanwhile. */
static const struct op *copy_behind(const struct schedule *p, const struct block *body)
{
	const struct op *behind = p->behind;
	if (p->late && p->ahead > 1) /* not urgent, and after finish_behind the warp would idle */
		return p->late;
	if (p->async)
		return p->tma && !p->late && !p->dots.len ? first_dot(body) : finish_behind(p, body);
	if (p->ring)
		return p->dots.at[p->dots.len - 1];
	for (const struct op *o = body->first; o && !p->few; o = o->next)
		if (o->code == IR_LOCAL_STORE)
			behind = o->next && o->next->code == IR_FENCE_ASYNC ? o->next : o;
	return behind;
}

/* Adds a wait (STEP_RESULT) before o for the overlapped dots whose results o is the first to use, or that have no user
 * before the end of the body, o. Waiting for a dot includes all earlier dots. *n: the number of p->beside already
 * waited for. */
static void add_results(struct schedule *p, const struct op *o, u32 *n)
{
	u32 end = *n;
	for (u32 i = *n; i < p->beside.len; i++)
		if (first_need(result(p->beside.at[i]), o->block) == o)
			end = i + 1;
	for (; *n < end; ++*n)
		vec_push(&p->scratch, &p->steps,
			 ((struct schedule_step){.kind = STEP_RESULT, .stage = p->ahead, .dot = p->beside.at[*n]}));
}

static void choose_steps(struct schedule *p)
{
	const struct block *body = p->loop->blocks[0];
	const struct op *finish = finish_behind(p, body), *copy = copy_behind(p, body), *first = first_dot(body),
			*last = last_dot(body);
	int work = p->ahead;
	u32 awaited = 0;
	bool through_registers = p->ring && !p->async, finished = !through_registers;
	if (p->producer)
		vec_push(&p->scratch, &p->steps, ((struct schedule_step){.kind = STEP_COPY, .partition = PRODUCER}));
	if (p->async) {
		add_step(p, STEP_AWAIT, work);
		add_step(p, STEP_TURN, work);
	}
	if (!copy && !p->producer)
		add_step(p, STEP_COPY, 0);
	for (struct op *o = body->first; o != body->last; o = o->next) {
		if (!finished && (has_dot(o) || dot_that_loads(o))) {
			add_step(p, STEP_FINISH, work + 1);
			finished = true;
		}
		if (p->turns && o == last)
			add_step(p, STEP_PINGPONG_WAIT, work);
		add_results(p, o, &awaited);
		add_op(p, o);
		if (p->turns && o == first)
			add_step(p, STEP_PINGPONG_ARRIVE, work);
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
	add_results(p, body->last, &awaited);
}

/* --- synchronisation ----------------------------------------------------------------------------------------- */

static void mark_in_body(const struct schedule *p, struct op *o)
{
	while (o->block != p->loop->blocks[0])
		o = o->block->parent;
	o->mark = 1;
}

/* Sets op.mark of the operations of the body that read the buffer, or contain such reads. If a read is a load that code
 * generation emits with a dot (dot_that_loads), the dot is marked too. */
static void note_readers(const struct schedule *p, const struct value *buffer)
{
	for (const struct use *u = buffer->uses; u; u = u->next) {
		struct op *o = u->user;
		if (o->code == IR_MEMDESC_TRANS) { /* a transposed view */
			note_readers(p, result(o));
			continue;
		}
		struct op *dot = dot_that_loads(o);
		mark_in_body(p, o);
		if (dot)
			mark_in_body(p, dot);
	}
}

/* The index after the step at which the dot of step i has certainly read its operands: its STEP_RESULT if it has one;
 * else step i. */
static u32 end_of_read(const struct schedule *p, u32 i)
{
	const struct op *o = p->steps.at[i].op;
	for (u32 k = i; k < p->steps.len; k++)
		if (p->steps.at[k].dot == o)
			return k + 1;
	return i + 1;
}

/* The range of steps that reads load i's buffer, as a part with `begin`, `end` and `lags`. If a dot reads it that stays
 * outstanding, the range ends with STEP_FINISH of the next iteration, and `lags` is true. */
static struct buffer_part reads_of(const struct schedule *p, u32 i)
{
	const struct schedule_step *finish = find_step(p, STEP_FINISH);
	u32 finished = finish ? (u32)(finish - p->steps.at) + 1 : 0;
	struct buffer_part reads = {.begin = p->steps.len};
	for (u32 k = 0; k < p->steps.len; k++)
		if (p->steps.at[k].op)
			p->steps.at[k].op->mark = 0;
	struct op *to = load_consumer(p->loads.at[i]);
	if (to->code == IR_LOCAL_STORE)
		note_readers(p, operand(to, 1));
	to->mark = !p->async || to->code != IR_LOCAL_STORE; /* a copy replaces the store */
	struct op *fetching = dot_fetching(to);
	if (fetching)
		fetching->mark = 1;
	for (u32 k = 0; k < p->steps.len; k++) {
		const struct op *o = p->steps.at[k].op;
		if (!o || !o->mark)
			continue;
		bool late = p->late && o == first_dot(p->loop->blocks[0]);
		reads.begin = MIN(reads.begin, k);
		reads.end = MAX(reads.end, late ? finished : end_of_read(p, k));
		reads.lags |= stays_in_flight(p, o);
	}
	if (reads.lags)
		reads.end = finished;
	return reads;
}

/* Distributes the loads to parts, in the order in which their buffers are read. `apart`: loads with buffers released
 * one iteration later form a separate part. */
static void share_out(struct schedule *p, bool apart)
{
	p->parts.len = 0;
	for (u32 i = 0; i < p->loads.len; i++) {
		struct buffer_part reads = reads_of(p, i);
		u32 k = 0;
		while (k < p->parts.len && apart && p->parts.at[k].lags != reads.lags)
			k++;
		if (k == p->parts.len)
			vec_push(&p->scratch, &p->parts, reads);
		struct buffer_part *part = &p->parts.at[k];
		part->begin = MIN(part->begin, reads.begin);
		part->end = part->lags == reads.lags ? MAX(part->end, reads.end) : part->lags ? part->end : reads.end;
		part->lags |= reads.lags;
		vec_push(&p->scratch, &part->loads, i);
		p->lags |= part->lags;
	}
	if (p->parts.len > 1 && p->parts.at[0].begin > p->parts.at[1].begin) {
		struct buffer_part first = p->parts.at[1];
		p->parts.at[1] = p->parts.at[0];
		p->parts.at[0] = first;
	}
}

/* Two parts are used with two buffers only: with more, no buffer is refilled late, and waiting for one part is faster,
 * on an H100 by 1 to 3 % for attention with three buffers. One part, too, if the buffers that are released one
 * iteration later are read first or released last: since the producer fills the parts in order, the other part's
 * buffers would not be refilled sooner. */
static void find_parts(struct schedule *p)
{
	share_out(p, p->producer && p->stages == 2);
	if (p->parts.len > 1 && (p->parts.at[0].lags || p->parts.at[0].end < p->parts.at[1].end))
		share_out(p, false);
}

/* The index of the first step that overwrites a buffer. *earlier: the number of iterations since the body that read
 * what the buffer holds. */
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

/* True if a block-wide barrier stands between the end of an iteration's reads and the write that overwrites its
 * buffer. */
static bool meet_before_write(const struct schedule *p)
{
	int earlier, read = p->lags;
	u32 from = p->parts.at[0].end, to = first_write(p, &earlier);
	bool met = false;
	for (u32 i = 0; i < p->steps.len; i++)
		if (p->steps.at[i].kind == STEP_BARRIER)
			met |= earlier == read ? i >= from && i < to : i >= from || i < to || earlier - read > 1;
	return met;
}

/* Inserts the steps that synchronise the multi-buffers. */
static void synchronise_multibuffer(struct schedule *p)
{
	int work = p->ahead;
	struct schedule_step *await = find_step(p, STEP_AWAIT);
	struct buffer_part *all = &p->parts.at[0];
	struct schedule_step barrier = {STEP_BARRIER, .stage = work};
	for (u32 k = 0; p->tma && k < p->parts.len; k++) {
		struct buffer_part *part = &p->parts.at[k];
		insert_step(p, part->end, (struct schedule_step){STEP_RELEASE, .stage = work + part->lags, .part = k});
		u32 at = part->begin;
		if (at && p->steps.at[at - 1].kind == STEP_PINGPONG_WAIT) /* no wait while it holds the tensor cores */
			at--;
		if (k)
			insert_step(p, at, (struct schedule_step){STEP_AWAIT, .stage = work, .part = k});
	}
	if (p->tma)
		return;
	if (await) {
		insert_step(p, (u32)(await - p->steps.at) + 1, barrier);
	} else {
		u32 stored = (u32)(find_step(p, STEP_FINISH) - p->steps.at) + 1; /* before the first dot */
		insert_step(p, stored, (struct schedule_step){STEP_FENCE, .stage = work});
		insert_step(p, stored + 1, barrier);
	}
	barrier.stage += all->lags;
	if (!meet_before_write(p))
		insert_step(p, all->end, barrier);
	tl_assert(meet_before_write(p));
}

void schedule_steps(struct schedule *p)
{
	choose_steps(p);
	if (p->ring)
		find_parts(p);
	if (p->ring)
		synchronise_multibuffer(p);
}
