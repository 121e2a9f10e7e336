/* Preconditions and effects of the operations on shared memory.
 *
 * All threads run the same operations, each at its own pace. An access that one thread has done may therefore still be
 * pending in other threads, until a barrier of all threads (gpu.barrier, or an operation with such a barrier inside),
 * or until the thread has waited for an mbarrier at which all warps arrived after the access. Asynchronous copies and
 * dots are complete after a wait for them. */
#include "ir/scalar.h"
#include "gpu/layout/mma.h"
#include "layout/conversion.h"
#include "gpu/smem/model_checker.h"

#define NEED(condition, what)                                                                                          \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			return what;                                                                                   \
	} while (0)
#define PASS_ON(call)                                                                                                  \
	do {                                                                                                           \
		const char *what_ = call;                                                                              \
		if (what_)                                                                                             \
			return what_;                                                                                  \
	} while (0)

i32 scalar_in(const struct model_checker *w, struct slot *at, const struct value *v)
{
	i64 x;
	if (!value_const_int(v, &x))
		return v->mark ? values_of(w, at)[v->mark] : UNKNOWN;
	return x > INT32_MIN && x <= INT32_MAX ? (i32)x : UNKNOWN;
}

/* The result of an operation on scalars, or UNKNOWN. */
static i32 compute(const struct model_checker *w, struct slot *at, const struct op *o)
{
	u64 in[3], out;
	i32 x[3] = {0};
	bool all = o->noperands <= ARRAY_LEN(in);
	for (u32 i = 0; i < o->noperands && all; i++) {
		x[i] = scalar_in(w, at, operand(o, i));
		in[i] = (u64)(i64)x[i];
		all &= x[i] != UNKNOWN || (o->code == IR_SELECT && i == 0);
	}
	if (all && o->code == IR_SELECT && x[0] == UNKNOWN)
		return x[1] == x[2] ? x[1] : UNKNOWN;
	if (!all || !scalar_eval(o, in, &out))
		return UNKNOWN;
	i64 v = dtype_decode_int(type_dtype(result(o)->type), out);
	return v > INT32_MIN && v <= INT32_MAX ? (i32)v : UNKNOWN;
}

/* --- slots ------------------------------------------------------------------------------------------------------- */

const struct op *checker_allocation(const struct value *v)
{
	while (v->def && (v->def->code == IR_MEMDESC_INDEX || v->def->code == IR_MEMDESC_TRANS))
		v = operand(v->def, 0);
	return v->def && v->def->code == IR_LOCAL_ALLOC ? v->def : NULL;
}

/* The slot of a buffer or mbarrier; -1: unknown. */
static i32 slot_of(const struct model_checker *w, struct slot *at, const struct value *v)
{
	i32 number = 0;
	const struct op *alloc = checker_allocation(v);
	for (; alloc && v->def != alloc; v = operand(v->def, 0))
		if (v->def->code == IR_MEMDESC_INDEX)
			number = scalar_in(w, at, operand(v->def, 1));
	const struct area *a = alloc && alloc->mark ? &w->areas.at[alloc->mark - 1] : NULL;
	return a && number >= 0 && (u32)number < a->count ? (i32)a->first + number : -1;
}

/* True if the buffer is in the current group, or its allocation is unknown. */
static bool is_followed(const struct value *v)
{
	const struct op *alloc = checker_allocation(v);
	return v->type->kind == TY_MEMDESC && (!alloc || alloc->mark);
}

static bool is_pending(const struct slot *s)
{
	return s->content != EMPTY && s->content != READY;
}

static u8 older(u8 age, i64 by)
{
	return (u8)MIN(age + by, UINT8_MAX);
}

/* Calls f for each slot of other areas that overlaps `slot`, until a call returns an error. */
static const char *each_over(const struct model_checker *w, struct slot *at, u32 slot,
			     const char *(*f)(struct slot *other, int arg), int arg)
{
	const struct area *a = &w->areas.at[w->area_of[slot]];
	i32 start = a->op->scratch_offset + (i32)(slot - a->first) * a->bytes;
	for (u32 i = 0; i < a->over.len; i++) {
		const struct area *b = &w->areas.at[a->over.at[i]];
		for (u32 k = 0; k < b->count; k++) {
			i32 other = b->op->scratch_offset + (i32)k * b->bytes;
			if (start < other + b->bytes && other < start + a->bytes)
				PASS_ON(f(&at[b->first + k], arg));
		}
	}
	return NULL;
}

/* Notes a read that this thread has done: other threads may still be reading. */
static void note_read(struct slot *s)
{
	s->read = true;
	memset(s->released, 0, sizeof s->released);
}

static const char *why_not_ready(const struct slot *s)
{
	switch (s->content) {
	case EMPTY: return "it reads a buffer that is not filled";
	case COPYING: return "it reads a buffer before a wait for the buffer's copies";
	case COPIED: return "it reads data that other threads copied, without a barrier after their waits";
	case FILLING: return "it reads a buffer before a wait for the mbarrier of the buffer's copies";
	case STORED: return "it reads data that other threads stored, without a barrier after the stores";
	case OVERWRITTEN: return "it reads a buffer whose bytes another buffer overwrote";
	default: return NULL;
	}
}

static const char *check_read_over(struct slot *other, int arg)
{
	(void)arg;
	NEED(!is_pending(other), "it reads a buffer whose bytes another buffer is overwriting");
	return NULL;
}

static const char *read_slot(const struct model_checker *w, struct slot *at, const struct value *v, bool by_dot)
{
	i32 i = slot_of(w, at, v);
	NEED(i >= 0, "the buffer that it reads is not known, or out of the multi-buffer's bounds");
	PASS_ON(why_not_ready(&at[i]));
	NEED(!by_dot || !at[i].unfenced, "it reads data that threads stored, without an async-proxy fence in between");
	PASS_ON(each_over(w, at, (u32)i, check_read_over, 0));
	if (by_dot)
		at[i].dot = 1;
	else
		note_read(&at[i]);
	return NULL;
}

static const char *check_write(struct slot *s, int kind)
{
	NEED(!s->dot, "it overwrites a buffer that an asynchronous dot may still be reading");
	NEED(!s->read, "it overwrites a buffer that other threads may still be reading");
	NEED(!is_pending(s), "it overwrites a buffer that is being filled, or that is not yet visible to all threads");
	NEED(kind != FILLING || !s->unfenced,
	     "a TMA copy overwrites data that threads stored, without an async-proxy fence in between");
	return NULL;
}

static const char *ruin(struct slot *other, int kind)
{
	PASS_ON(check_write(other, kind));
	other->content = EMPTY;
	return NULL;
}

static const char *write_slot(const struct model_checker *w, struct slot *at, u32 i, enum content kind)
{
	PASS_ON(check_write(&at[i], kind));
	PASS_ON(each_over(w, at, i, ruin, kind));
	at[i].content = kind;
	at[i].age = kind == FILLING;
	at[i].unfenced = kind == STORED;
	return NULL;
}

static const char *write_buffer(const struct model_checker *w, struct slot *at, const struct value *v,
				enum content kind)
{
	i32 i = slot_of(w, at, v);
	NEED(i >= 0, "the buffer that it writes is not known, or out of the multi-buffer's bounds");
	return write_slot(w, at, (u32)i, kind);
}

/* A barrier of all warps, or (`warpgroups`) one of each warpgroup, which is enough for memory of which each warpgroup
 * uses a separate half. */
static void meet(const struct model_checker *w, struct slot *at, bool warpgroups)
{
	for (u32 i = 0; i < w->nslots; i++) {
		struct slot *s = &at[i];
		if (warpgroups && !w->areas.at[w->area_of[i]].apart)
			continue;
		if (s->content == COPIED || s->content == STORED)
			s->content = READY;
		if (s->content == OVERWRITTEN)
			s->content = EMPTY;
		s->read = false;
		memset(s->released, 0, sizeof s->released);
	}
}

/* o writes and then reads its scratch memory, with a barrier of all threads in between unless each warp has a separate
 * part. */
static const char *use_scratch(const struct model_checker *w, struct slot *at, const struct op *o)
{
	bool apart = o->code == IR_CONVERT_LAYOUT && o->attr[ATTR_CONVERSION] == CONVERSION_WARP_MEMORY;
	struct slot *s = o->mark <= w->areas.len ? &at[w->areas.at[o->mark - 1].first] : NULL;
	if (s && apart)
		*s = (struct slot){0}; /* each warp reuses its part without a barrier */
	if (s)
		PASS_ON(write_slot(w, at, (u32)(s - at), OVERWRITTEN));
	if (!apart)
		meet(w, at, false);
	if (s) {
		s->unfenced = true;
		note_read(s);
	}
	return NULL;
}

/* --- dots -------------------------------------------------------------------------------------------------------- */

static void begin_dots(const struct model_checker *w, struct slot *at, i64 groups)
{
	for (u32 i = 0; i < w->nslots; i++)
		if (at[i].dot)
			at[i].dot = older(at[i].dot, groups);
}

static void wait_dots(const struct model_checker *w, struct slot *at, i64 pending)
{
	for (u32 i = 0; i < w->nslots; i++)
		if (at[i].dot > pending) {
			at[i].dot = 0;
			note_read(&at[i]);
		}
}

static const char *run_dot(const struct model_checker *w, struct slot *at, const struct op *o)
{
	bool async = o->attr[ATTR_ASYNC];
	if (o->attr[ATTR_TRANSPOSED]) { /* gpu/codegen/transpose_operand.c: read, barrier, write, barrier */
		const struct value *transposed = operand(o, !o->attr[ATTR_EXCHANGED]);
		if (is_followed(transposed))
			PASS_ON(read_slot(w, at, transposed, false));
		meet(w, at, false);
		if (is_followed(transposed)) {
			PASS_ON(write_buffer(w, at, transposed, STORED));
			at[slot_of(w, at, transposed)].unfenced = false;
		}
		meet(w, at, false);
	}
	if (o->attr[ATTR_REGISTER_GROUPS] && async) /* its code waits for all earlier dots (gpu/codegen/wgmma.c) */
		wait_dots(w, at, 0);
	begin_dots(w, at, wgmma_groups(o));
	for (u32 i = 0; i < 2; i++)
		if (is_followed(operand(o, i)))
			PASS_ON(read_slot(w, at, operand(o, i), true));
	if (!async)
		wait_dots(w, at, 0);
	return NULL;
}

/* --- mbarriers --------------------------------------------------------------------------------------------------- */

static const char *find_mbarrier(const struct model_checker *w, struct slot *at, const struct op *o, u32 *out)
{
	i32 i = slot_of(w, at, operand(o, 0));
	NEED(i >= 0, "its mbarrier is not known, or out of bounds");
	*out = (u32)i;
	return NULL;
}

static void set_released(struct slot *s, u32 mbarrier)
{
	if (s->read && !s->dot)
		s->released[mbarrier / 64] |= (u64)1 << mbarrier % 64;
}

/* All warps have arrived at the mbarrier: the reads before their arrivals are complete. */
static void take_released(const struct model_checker *w, struct slot *at, u32 mbarrier)
{
	for (u32 i = 0; i < w->nslots; i++)
		if (at[i].released[mbarrier / 64] >> mbarrier % 64 & 1) {
			at[i].read = false;
			memset(at[i].released, 0, sizeof at[i].released);
		}
}

/* True if no earlier fill of the same multi-buffer is still outstanding. */
static bool is_oldest(const struct model_checker *w, const struct slot *at, const struct slot *s)
{
	for (u32 i = 0; i < w->nslots; i++)
		if (at[i].content == FILLING && at[i].age > s->age && w->area_of[at[i].full] == w->area_of[s->full])
			return false;
	return true;
}

static const char *init_mbarrier(const struct model_checker *w, struct slot *at, const struct op *o)
{
	u32 i = 0;
	PASS_ON(find_mbarrier(w, at, o, &i));
	if (at[i].content == OVERWRITTEN) /* invalidated by the same thread */
		at[i].content = EMPTY;
	PASS_ON(write_slot(w, at, i, STORED));
	at[i].parity = at[i].arrivals = 0;
	at[i].unborn = true;
	at[i].count = (u8)MIN(o->attr[ATTR_COUNT], UINT8_MAX);
	return NULL;
}

static const char *end_mbarrier(const struct model_checker *w, struct slot *at, const struct op *o)
{
	u32 i = 0;
	PASS_ON(find_mbarrier(w, at, o, &i));
	NEED(at[i].content == READY, "its mbarrier is not initialised");
	NEED(!at[i].read, "other threads may still use the mbarrier");
	NEED(!at[i].visited, "the other block of the cluster may still arrive at the mbarrier");
	for (u32 k = 0; k < w->nslots; k++) {
		bool filled = at[k].content == FILLING && at[k].full == i;
		NEED(!filled || w->refills[k].full, "copies are in flight that no operation waits for");
		if (filled) /* its producer has ended */
			at[k].content = EMPTY;
	}
	at[i].content = OVERWRITTEN;
	return NULL;
}

/* The thread that issues copies waits until all warps have read the buffer. The wait for the parity that precedes the
 * first phase returns at once. */
static const char *wait_for_readers(const struct model_checker *w, struct slot *at, u32 i)
{
	if (w->producing) {
		for (u32 k = 0; k < w->nslots; k++)
			if (at[k].content == FILLING && at[k].gate == i) {
				NEED(is_oldest(w, at, &at[k]), "buffers are not filled in order");
				at[k].content = EMPTY;
			}
	} else {
		NEED(at[i].arrivals, "it waits for arrivals that never happen");
		NEED(at[i].arrivals == 1, "several phases are complete, and it waited for none of them");
		at[i].arrivals = 0;
		take_released(w, at, i);
	}
	at[i].parity ^= 1;
	return NULL;
}

static const char *wait_for_copies(const struct model_checker *w, struct slot *at, u32 i)
{
	bool issued = false;
	for (u32 k = 0; k < w->nslots; k++)
		if (at[k].content == FILLING && at[k].full == i) {
			NEED(is_oldest(w, at, &at[k]), "copies that were issued earlier have not been waited for");
			issued = true;
		}
	NEED(issued, "it waits for copies that are never issued");
	for (u32 k = 0; k < w->nslots; k++)
		if (at[k].content == FILLING && at[k].full == i) {
			at[k].content = READY;
			note_read(&at[k]); /* other threads may still be waiting */
		}
	at[i].parity ^= 1;
	return NULL;
}

static bool is_in_one_thread(const struct op *o)
{
	return o->block->parent && o->block->parent->code == IR_ONE_THREAD;
}

static const char *wait_mbarrier(const struct model_checker *w, struct slot *at, const struct op *o)
{
	u32 i = 0;
	PASS_ON(find_mbarrier(w, at, o, &i));
	i32 parity = scalar_in(w, at, operand(o, 1));
	NEED(at[i].content == READY, "its mbarrier is not visibly initialised for all threads");
	NEED(parity != UNKNOWN, "the parity that it waits for is not known");
	bool waits = (parity & 1) == at[i].parity;
	if (!is_in_one_thread(o)) {
		at[i].read = true;
		NEED(waits, "it waits for a phase that is already complete");
		return wait_for_copies(w, at, i);
	}
	values_of(w, at)[GATE] = (i32)i;
	return waits ? wait_for_readers(w, at, i) : NULL;
}

/* One thread sets the number of bytes that the mbarrier expects. */
static const char *expect(const struct model_checker *w, struct slot *at, u32 i)
{
	NEED(at[i].content == READY && at[i].count == 1,
	     "its mbarrier is not initialised, or has another arrival count");
	NEED(!at[i].unfenced, "the initialised mbarrier is not visible to TMA: a fence is missing");
	for (u32 k = 0; k < w->nslots; k++) {
		NEED(at[k].content != FILLING || at[k].full != i, "the preceding copies have not been waited for");
		if (at[k].content == FILLING && w->area_of[at[k].full] == w->area_of[i])
			at[k].age = older(at[k].age, 1);
	}
	return NULL;
}

static const char *fill_slot(struct model_checker *w, struct slot *at, u32 i, u32 full, i32 gate)
{
	if (!w->producing) {
		PASS_ON(write_slot(w, at, i, FILLING));
	} else {
		struct refill now = {.full = (u16)(full + 1), .gate = (u16)(gate + 1)}, *r = &w->refills[i];
		NEED(at[i].content == EMPTY, "it does not wait until all warps have read the buffer");
		for (u32 k = 0; k < w->nslots; k++)
			if (at[k].content == FILLING && at[k].full != full)
				now.order = MAX(now.order, at[k].age);
		if (!r->full)
			*r = now;
		NEED(r->full == now.full && r->gate == now.gate, "it fills one buffer with several mbarriers");
		at[i].content = FILLING;
		at[i].age = 1;
	}
	at[i].full = (u16)full;
	at[i].gate = (u16)gate;
	return NULL;
}

/* A multicast copy into both blocks of a CTA pair, each of which must have read its buffer before. */
static const char *copy_to_both(const struct model_checker *w, struct slot *at, i32 full)
{
	i32 gate = values_of(w, at)[GATE];
	NEED(gate >= 0 && at[gate].count == w->s->k->num_warps << 1,
	     "the other block's warps may still read its buffer");
	NEED(!at[gate].unborn && !at[full].unborn,
	     "the other block of the cluster may not have initialised its mbarrier yet");
	return NULL;
}

static const char *copy_tma_tile(struct model_checker *w, struct slot *at, const struct op *o)
{
	i32 *values = values_of(w, at), i = slot_of(w, at, operand(o, 1)), full = slot_of(w, at, operand(o, 2));
	NEED(i >= 0 && full >= 0, "the buffer that it fills is not known, or out of the multi-buffer's bounds");
	NEED(full == values[FULL], "its mbarrier does not expect its bytes");
	PASS_ON(o->attr[ATTR_COPY_PAIR] ? copy_to_both(w, at, full) : NULL);
	values[BYTES] -= w->areas.at[w->area_of[i]].bytes;
	return fill_slot(w, at, (u32)i, (u32)full, values[GATE]);
}

const char *checker_fill_first(const struct model_checker *w, struct slot *at)
{
	u8 last = 0;
	for (u32 i = 0; i < w->nslots; i++)
		last = MAX(last, w->refills[i].order);
	for (u32 i = 0; i < w->nslots; i++) {
		if (!w->refills[i].full)
			continue;
		PASS_ON(write_slot(w, at, i, FILLING));
		at[i].full = (u16)(w->refills[i].full - 1);
		at[i].age = (u8)(last - w->refills[i].order + 1);
	}
	return NULL;
}

/* Every warp arrives. A producer is assumed to fill the released buffers at once. */
static const char *arrive(struct model_checker *w, struct slot *at, const struct op *o)
{
	u32 i = 0, full = 0;
	PASS_ON(find_mbarrier(w, at, o, &i));
	NEED(at[i].content == READY, "its mbarrier is not visibly initialised for all threads");
	bool pair = o->noperands > 1;
	NEED(at[i].count == w->s->k->num_warps << pair, "its mbarrier's arrival count is not the number of warps");
	NEED(!pair || !at[i].unborn, "the other block of the cluster may not have initialised its mbarrier yet");
	at[i].visited |= pair;
	at[i].arrivals = (u8)MIN(at[i].arrivals + 1, 2);
	at[i].read = true;
	for (u32 k = 0; k < w->nslots; k++) {
		set_released(&at[k], i);
		if (w->refills[k].full && w->refills[k].gate == i + 1)
			full = w->refills[k].full;
	}
	if (!full)
		return NULL;
	PASS_ON(wait_for_readers(w, at, i));
	PASS_ON(expect(w, at, full - 1));
	for (u32 k = 0; k < w->nslots; k++)
		if (w->refills[k].full == full)
			PASS_ON(fill_slot(w, at, k, full - 1, (i32)i));
	return NULL;
}

void checker_drop(struct slot *at, const struct area *a)
{
	for (u32 i = 0; i < a->count; i++)
		at[a->first + i].dropped = true;
}

void checker_normalize(const struct model_checker *w, struct slot *at)
{
	for (u32 i = 0; i < w->nslots; i++) {
		struct slot *s = &at[i];
		if (s->dropped && s->content == READY)
			s->content = EMPTY;
		if (s->content != FILLING)
			s->full = s->gate = 0;
		if (s->content != FILLING && s->content != COPYING)
			s->age = 0;
		if (s->content == EMPTY || s->content == OVERWRITTEN)
			s->parity = s->arrivals = s->count = s->unborn = s->visited = 0;
	}
}

void checker_make_key(const struct model_checker *w, struct slot *key)
{
	for (u32 i = 0; i < w->nslots; i++) {
		memset(key[i].released, 0, sizeof key[i].released);
		key[i].dot = key[i].read = key[i].unfenced = key[i].visited = 0;
		if (key[i].content == OVERWRITTEN)
			key[i].content = EMPTY;
	}
}

/* The age of the dot that was issued later; 0: no dot. */
static u8 later(u8 a, u8 b)
{
	return a && b ? MIN(a, b) : MAX(a, b);
}

bool checker_join(const struct model_checker *w, struct slot *to, struct slot *from)
{
	bool changed = false;
	for (u32 i = 0; i < w->nslots; i++) {
		struct slot now = to[i];
		for (u32 k = 0; k < ARRAY_LEN(now.released); k++)
			now.released[k] = !now.read      ? from[i].released[k]
					  : from[i].read ? now.released[k] & from[i].released[k]
							 : now.released[k];
		now.content = from[i].content == OVERWRITTEN ? OVERWRITTEN : now.content;
		now.read |= from[i].read;
		now.unfenced |= from[i].unfenced;
		now.visited |= from[i].visited;
		now.dot = later(now.dot, from[i].dot);
		changed |= memcmp(&now, &to[i], sizeof now) != 0;
		to[i] = now;
	}
	return changed;
}

/* A ping-pong wait or arrive of two warpgroups. Both wait, except for the wait after all tiles (ATTR_FIRST), where only
 * the first warpgroup waits. Each arrives for the other one. With ATTR_ONLY, only that warpgroup arrives, without a
 * wait before. */
static const char *run_pingpong(const struct model_checker *w, struct slot *at, const struct op *o)
{
	i32 *arrivals = values_of(w, at) + PINGPONG;
	bool waits = o->code == IR_PINGPONG_WAIT;
	for (i64 group = 1; group <= 2; group++) {
		if (waits)
			arrivals[group - 1] -= group == 1 || !o->attr[ATTR_FIRST];
		else if (o->attr[ATTR_ONLY] != group) /* the other warpgroup arrives for this one */
			arrivals[group - 1]++;
		NEED(arrivals[group - 1] <= 1,
		     "a second ping-pong arrival for a warpgroup before it has waited for the first");
		NEED(arrivals[group - 1] >= -1, "a warpgroup waits for a ping-pong arrival that never happens");
	}
	return NULL;
}

/* Checks that no warpgroup is waiting for the other one, and with `end` that no ping-pong arrival is left over. */
static const char *check_pingpong(const struct model_checker *w, struct slot *at, bool end)
{
	const i32 *arrivals = values_of(w, at) + PINGPONG;
	NEED(arrivals[0] >= 0 && arrivals[1] >= 0,
	     "a warpgroup waits for a ping-pong arrival at a barrier of all threads");
	NEED(!end || (!arrivals[0] && !arrivals[1]), "a ping-pong arrival is left that no warpgroup waits for");
	return NULL;
}

/* --- all --------------------------------------------------------------------------------------------------------- */

static const char *end_kernel(const struct model_checker *w, const struct slot *at)
{
	for (u32 i = 0; i < w->nslots; i++) {
		NEED(at[i].content != COPYING, "the kernel ends while copies are in flight");
		NEED(at[i].content != FILLING || w->refills[i].full, "the kernel ends while copies are in flight");
		NEED(!at[i].visited,
		     "the other block of the cluster may still arrive at an mbarrier when this block ends");
	}
	return NULL;
}

const char *checker_step(struct model_checker *w, struct slot *at, const struct op *o)
{
	i64 pending = o->attr[ATTR_PENDING];
	u32 i = 0;
	switch (o->code) {
	case IR_LOCAL_ALLOC: /* the earlier contents are dead */
		checker_normalize(w, at);
		for (const struct area *a = &w->areas.at[o->mark - 1]; i < a->count; i++)
			at[a->first + i].dropped = false;
		return NULL;
	case IR_LOCAL_LOAD: return read_slot(w, at, operand(o, 0), false);
	case IR_LOCAL_STORE: return write_buffer(w, at, operand(o, 1), STORED);
	case IR_ASYNC_COPY: return write_buffer(w, at, operand(o, 1), COPYING);
	case IR_ASYNC_COMMIT:
		for (; i < w->nslots; i++)
			if (at[i].content == COPYING)
				at[i].age = older(at[i].age, 1);
		return NULL;
	case IR_ASYNC_WAIT:
		for (; i < w->nslots; i++)
			if (at[i].content == COPYING && at[i].age > pending)
				at[i].content = COPIED;
		return NULL;
	case IR_DOT:
		for (; i < 2; i++)
			if (is_followed(operand(o, i)))
				PASS_ON(read_slot(w, at, operand(o, i), false));
		return NULL;
	case IR_WARP_GROUP_DOT:
		if (o->attr[ATTR_TRANSPOSED])
			PASS_ON(check_pingpong(w, at, false));
		return run_dot(w, at, o);
	case IR_WARP_GROUP_WAIT: wait_dots(w, at, pending); return NULL;
	case IR_PINGPONG_WAIT: meet(w, at, true); return run_pingpong(w, at, o);
	case IR_PINGPONG_ARRIVE: return run_pingpong(w, at, o);
	case IR_BARRIER:
		for (; o->attr[ATTR_CLUSTER] && i < w->nslots; i++)
			at[i].unborn = at[i].visited = false;
		meet(w, at, o->attr[ATTR_WARPGROUP]);
		return o->attr[ATTR_WARPGROUP] ? NULL : check_pingpong(w, at, false);
	case IR_FENCE_ASYNC:
		for (; i < w->nslots; i++)
			at[i].unfenced = false;
		return NULL;
	case IR_INIT_BARRIER: return init_mbarrier(w, at, o);
	case IR_INVAL_BARRIER: return end_mbarrier(w, at, o);
	case IR_WAIT_BARRIER: return wait_mbarrier(w, at, o);
	case IR_ARRIVE_BARRIER: return arrive(w, at, o);
	case IR_BARRIER_EXPECT:
		PASS_ON(find_mbarrier(w, at, o, &i));
		values_of(w, at)[FULL] = (i32)i;
		values_of(w, at)[BYTES] = (i32)o->attr[ATTR_SIZE];
		return expect(w, at, i);
	case IR_TMA_COPY:
	case IR_TMA_TENSOR_COPY: return copy_tma_tile(w, at, o);
	case IR_RETURN: PASS_ON(check_pingpong(w, at, true)); return end_kernel(w, at);
	default: break;
	}
	if (o->scratch_size > 0)
		return use_scratch(w, at, o);
	if (o->nresults == 1 && o->results[0].type->kind == TY_SCALAR && o->results[0].mark)
		values_of(w, at)[o->results[0].mark] = compute(w, at, o);
	return NULL;
}
