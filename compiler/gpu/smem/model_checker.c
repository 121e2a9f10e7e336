/* Shared-memory model checker: on every path, each read of a buffer must come after the copies of the data, and each
 * copy after the reads of the data that it overwrites.
 *
 * The pipeliner derives the synchronisation of one schedule at a time (gpu/pipeline/schedule.c), and pass_barriers does
 * not change it. The model checker takes the resulting kernel as a whole, with the loops around, before and after: on
 * every path through the kernel, each operation must find the buffers in a state in which it may use them.
 *
 * The states of a kernel are few, since loops use their buffers in rotation. The body of a loop is run for the states
 * at the loop's entry, and for each new state at the end of an iteration. A loop may end in any of these states, and a
 * branch may go both ways. Of states that differ only in accesses still pending in other threads, a state with all of
 * them stands for the others. The iterations left of a loop are counted, up to a small number, only where threads issue
 * TMA copies ahead on condition that an iteration for them follows. At the loop's entry any number of iterations may be
 * left. A producer is assumed to fill a buffer as soon as it may. Its waits before, and the order of its fills, are
 * checked in the producer alone.
 *
 * For other buffers, pass_barriers knows by itself which accesses must wait. They are included here for asynchronous
 * accesses, and because they share bytes with multi-buffers. */
#include <stdlib.h>

#include "support/compile_checks.h"
#include "support/recover.h"
#include "gpu/smem/model_checker.h"
#include "gpu/gpu_passes.h"

enum { MAX_WORK = 1 << 24 /* sum over all operations of the slots of their states */, MAX_COUNTED = 64 };

static void refuse(struct model_checker *w, const struct op *o, const char *what)
{
	if (!w->bad)
		w->bad = o, w->what = what;
}

static struct slot *copy_state(struct model_checker *w, const struct slot *at)
{
	return arena_dup(&w->scratch, at, w->size);
}

static void push(struct model_checker *w, states *to, struct slot *at)
{
	vec_push(&w->scratch, to, at);
}

/* The set's entry with the key of the state, created if there is none. */
static struct keyed_state *find_state(struct model_checker *w, struct state_set *set, struct slot *at)
{
	set->heads.arena = &w->scratch;
	memcpy(w->key, at, w->size);
	checker_make_key(w, w->key);
	const void *hash = (const void *)(uintptr_t)(hash_bytes(w->key, w->size, 0) | 1);
	struct keyed_state *head = map_get(&set->heads, hash), *k = head;
	while (k && memcmp(k->key, w->key, w->size))
		k = k->next;
	if (k)
		return k;
	k = arena_new(&w->scratch, struct keyed_state);
	*k = (struct keyed_state){copy_state(w, w->key), NULL, head};
	map_put(&set->heads, hash, k);
	vec_push(&w->scratch, &set->at, k);
	return k;
}

/* Adds the state to the set, or joins it with the state of the same key. A new or changed state is also added to
 * `fresh`. */
static void add_state(struct model_checker *w, struct state_set *set, struct slot *at)
{
	checker_normalize(w, at);
	struct keyed_state *k = find_state(w, set, at);
	if (k->state && !checker_join(w, k->state, at))
		return;
	k->state = k->state ? k->state : at;
	for (u32 i = 0; i < set->fresh.len; i++)
		if (set->fresh.at[i] == k->state)
			return;
	push(w, &set->fresh, k->state);
}

static states all_of(struct model_checker *w, const struct state_set *set)
{
	states all = {0};
	for (u32 i = 0; i < set->at.len; i++)
		push(w, &all, set->at.at[i]->state);
	return all;
}

/* Assigns the values `from` to `to`, in parallel. A value with mark 0 is not tracked. */
static void bind(struct model_checker *w, struct slot *at, struct value *const *to, const struct use *from, u32 n)
{
	i32 *values = values_of(w, at), *now = arena_array(&w->scratch, i32, n);
	for (u32 i = 0; i < n; i++)
		now[i] = to[i]->type->kind == TY_SCALAR && to[i]->mark ? scalar_in(w, at, from[i].value) : UNKNOWN;
	for (u32 i = 0; i < n; i++)
		if (to[i]->type->kind == TY_SCALAR && to[i]->mark)
			values[to[i]->mark] = now[i];
}

static void bind_results(struct model_checker *w, struct slot *at, const struct op *o, const struct use *from)
{
	struct value **to = arena_array(&w->scratch, struct value *, o->nresults);
	for (u32 i = 0; i < o->nresults; i++)
		to[i] = &o->results[i];
	bind(w, at, to, from, o->nresults);
}

/* Sets the values of a region to UNKNOWN, except for the numbers below `from`. */
static void forget(struct model_checker *w, struct slot *at, const struct loop_note *n, u32 from)
{
	for (u32 i = MAX(n->first, from); i < n->end; i++)
		values_of(w, at)[i] = UNKNOWN;
}

static void run_block(struct model_checker *w, const struct block *b, states *at);

/* --- loops --------------------------------------------------------------------------------------------------- */

/* Bounds of a loop's trip count. Between constants, the count is zero or at least one, whatever the step. Between other
 * bounds, it is at most the number of steps of the index type. */
struct trips {
	i128 least, most;
};
static struct trips count_trips(const struct op *loop)
{
	i64 lower = 0, upper = 0, step = 1;
	bool bounds = value_const_int(for_lower(loop), &lower) && value_const_int(for_upper(loop), &upper);
	i128 distance = bounds ? (i128)upper - lower : ((i128)1 << type_elem_bits(for_step(loop)->type)) - 1;
	if (distance <= 0)
		return (struct trips){0, 0};
	bool known = value_const_int(for_step(loop), &step) && step > 0;
	i128 most = known ? (distance + step - 1) / step : distance;
	return (struct trips){bounds && known ? most : bounds, most};
}

/* Replaces each state without a count of iterations left by states with each possible count. */
static void choose_left(struct model_checker *w, const struct op *loop, states *at)
{
	const struct loop_note *n = map_get(&w->notes, loop);
	struct state_set different = {0};
	for (u32 i = 0; i < at->len && n->left; i++)
		add_state(w, &different, at->at[i]);
	if (n->left)
		*at = all_of(w, &different);
	struct trips trips = count_trips(loop);
	for (u32 i = 0, len = at->len; n->left && i < len; i++) {
		u8 *left = &left_of(w, at->at[i])[n->left - 1];
		if (*left != NOT_CHOSEN)
			continue;
		*left = (u8)MIN(trips.least, w->most);
		for (i64 k = *left + 1; k <= MIN(trips.most, w->most); k++) {
			push(w, at, copy_state(w, at->at[i]));
			left_of(w, at->at[at->len - 1])[n->left - 1] = (u8)k;
		}
	}
}

/* True if the loop's index is tracked, and its bounds and step are constants with at most MAX_COUNTED iterations. */
static bool counts(const struct op *o, i64 *lower, i64 *upper, i64 *step)
{
	const i64 most = INT32_MAX / 2;
	return for_index(o)->mark && value_const_int(for_lower(o), lower) && value_const_int(for_upper(o), upper) &&
	       value_const_int(for_step(o), step) && *lower >= -most && *lower <= most && *upper >= -most &&
	       *upper <= most && *step > 0 && *step <= most && *upper - *lower <= MAX_COUNTED * *step;
}

static void next_iteration(struct model_checker *w, const struct op *o, struct slot *at, struct state_set *heads)
{
	const struct loop_note *n = map_get(&w->notes, o);
	const struct block *body = o->blocks[0];
	i64 lower, upper, step;
	i32 index = scalar_in(w, at, for_index(o));
	bind(w, at, body->args + 1, body->last->operands, body->nargs - 1);
	if (counts(o, &lower, &upper, &step))
		values_of(w, at)[for_index(o)->mark] = index + (i32)step;
	forget(w, at, n, n->first + n->args);
	if (n->left) {
		u8 *left = &left_of(w, at)[n->left - 1];
		if (*left == w->most && count_trips(o).most > w->most) /* w->most stands for larger counts, too */
			add_state(w, heads, copy_state(w, at));
		--*left;
	}
	add_state(w, heads, at);
}

/* Leaves the loop in a state at its head. */
static void end_loop(struct model_checker *w, const struct op *o, struct slot *at, struct state_set *ends)
{
	const struct loop_note *n = map_get(&w->notes, o);
	VEC(struct use) args = {0};
	for (u32 k = 0; k < o->nresults; k++)
		vec_push(&w->scratch, &args, (struct use){.value = for_arg(o, k)});
	bind_results(w, at, o, args.at);
	forget(w, at, n, 0);
	if (n->left)
		left_of(w, at)[n->left - 1] = NOT_CHOSEN;
	add_state(w, ends, at);
}

static void run_for(struct model_checker *w, const struct op *o, states *at)
{
	const struct loop_note *n = map_get(&w->notes, o);
	struct state_set heads = {0}, ends = {0};
	i64 lower, upper, step;
	bool counted = counts(o, &lower, &upper, &step);
	choose_left(w, o, at);
	for (u32 i = 0; i < at->len; i++) {
		bind(w, at->at[i], o->blocks[0]->args + 1, o->operands + FOR_INITS, o->nresults);
		if (counted)
			values_of(w, at->at[i])[for_index(o)->mark] = (i32)lower;
		add_state(w, &heads, at->at[i]);
	}
	while (heads.fresh.len && !w->bad) {
		states now = heads.fresh, body = {0};
		heads.fresh = (states){0};
		for (u32 i = 0; i < now.len; i++) {
			u8 *left = n->left ? &left_of(w, now.at[i])[n->left - 1] : NULL;
			bool inside = counted && scalar_in(w, now.at[i], for_index(o)) < upper;
			if (counted ? inside : !left || *left)
				push(w, &body, copy_state(w, now.at[i]));
			if (counted ? !inside : !left || !*left)
				end_loop(w, o, copy_state(w, now.at[i]), &ends);
		}
		run_block(w, o->blocks[0], &body);
		for (u32 i = 0; i < body.len; i++)
			next_iteration(w, o, body.at[i], &heads);
	}
	*at = all_of(w, &ends);
}

static void run_while(struct model_checker *w, const struct op *o, states *at)
{
	struct state_set heads = {0}, ends = {0};
	const struct loop_note *n = map_get(&w->notes, o);
	for (u32 i = 0; i < at->len; i++)
		add_state(w, &heads, at->at[i]);
	while (heads.fresh.len && !w->bad) {
		states now = {0};
		for (u32 i = 0; i < heads.fresh.len; i++)
			push(w, &now, copy_state(w, heads.fresh.at[i]));
		heads.fresh = (states){0};
		run_block(w, o->blocks[0], &now);
		for (u32 i = 0; i < now.len; i++) {
			forget(w, now.at[i], n, 0);
			add_state(w, &ends, copy_state(w, now.at[i]));
		}
		run_block(w, o->blocks[1], &now);
		for (u32 i = 0; i < now.len; i++) {
			forget(w, now.at[i], n, 0);
			add_state(w, &heads, now.at[i]);
		}
	}
	*at = all_of(w, &ends);
}

/* --- branches, single threads and producers -------------------------------------------------------------------- */

static void run_if(struct model_checker *w, const struct op *o, states *at)
{
	struct state_set ends = {0};
	for (u32 k = 0; k < o->nblocks; k++) {
		states way = {0};
		for (u32 i = 0; i < at->len; i++)
			push(w, &way, copy_state(w, at->at[i]));
		run_block(w, o->blocks[k], &way);
		for (u32 i = 0; i < way.len; i++) {
			if (o->blocks[k]->last)
				bind_results(w, way.at[i], o, o->blocks[k]->last->operands);
			forget(w, way.at[i], map_get(&w->notes, o), 0);
			add_state(w, &ends, way.at[i]);
		}
	}
	*at = all_of(w, &ends);
}

static void run_one_thread(struct model_checker *w, const struct op *o, states *at)
{
	const struct issue_condition *a = map_get(&w->conditions, o);
	states in = {0}, out = {0};
	if (a && !a->known) {
		refuse(w, o, "its condition is not that an iteration remains for its copies");
		return;
	}
	if (a)
		choose_left(w, a->loop, at);
	if (a && a->next)
		choose_left(w, a->next, at);
	for (u32 i = 0; i < at->len; i++) {
		i64 left = 0, constant = 0;
		const struct op *loops[] = {a ? a->loop : NULL, a ? a->next : NULL};
		for (u32 k = 0; k < 2 && loops[k]; k++) {
			const struct loop_note *n = map_get(&w->notes, loops[k]);
			left += left_of(w, at->at[i])[n->left - 1];
		}
		bool yes = a ? left > a->n : value_const_int(operand(o, 0), &constant) && constant;
		i32 *values = values_of(w, at->at[i]);
		values[GATE] = values[FULL] = -1;
		push(w, yes ? &in : &out, at->at[i]);
	}
	run_block(w, o->blocks[0], &in);
	for (u32 i = 0; i < in.len; i++) {
		if (values_of(w, in.at[i])[BYTES])
			refuse(w, o, "it copies more or fewer bytes than its mbarrier expects");
		push(w, &out, in.at[i]);
	}
	for (u32 i = 0; i < out.len; i++) {
		values_of(w, out.at[i])[GATE] = values_of(w, out.at[i])[FULL] = -1;
		forget(w, out.at[i], map_get(&w->notes, o), 0);
	}
	*at = out;
}

/* A producer runs concurrently with the other warps, on a separate copy of the states. The buffers that it fills, and
 * the mbarriers that it waits for, are the same in all states (w->refills). */
static void run_producer(struct model_checker *w, const struct op *o, states *at)
{
	states apart = {0};
	for (u32 i = 0; i < at->len; i++)
		push(w, &apart, copy_state(w, at->at[i]));
	w->producing = true;
	run_block(w, o->blocks[0], &apart);
	w->producing = false;
	if (!checker_same_loops(o))
		refuse(w, o, "its loops differ from those of the warps that wait for its copies");
	for (u32 i = 0; i < at->len && !w->bad; i++) {
		const char *what = checker_fill_first(w, at->at[i]);
		if (what)
			refuse(w, o, what);
	}
}

static void run_op(struct model_checker *w, const struct op *o, states *at)
{
	switch (o->code) {
	case IR_FOR: run_for(w, o, at); return;
	case IR_WHILE: run_while(w, o, at); return;
	case IR_IF: run_if(w, o, at); return;
	case IR_ONE_THREAD: run_one_thread(w, o, at); return;
	case IR_PARTITION: run_producer(w, o, at); return;
	default: break;
	}
	for (u32 i = 0; i < at->len && !w->bad; i++) {
		const char *what = checker_step(w, at->at[i], o);
		if (what)
			refuse(w, o, what);
	}
}

static void run_block(struct model_checker *w, const struct block *b, states *at)
{
	for (const struct op *o = b->first; o && !w->bad && at->len; o = o->next) {
		if (!o->mark)
			continue;
		w->work += (u64)at->len * (w->nslots + 1);
		if (w->work > MAX_WORK)
			refuse(w, o, "its buffers have more states than the model checker's limit");
		run_op(w, o, at);
		for (const struct area *a = map_get(&w->lasts, o); a; a = a->next)
			for (u32 i = 0; i < at->len; i++)
				checker_drop(at->at[i], a);
	}
}

/* --- tracked operations and values ------------------------------------------------------------------------------ */

static void add_area(struct model_checker *w, struct op *o, u32 count)
{
	struct area a = {.op = o, .last = o, .first = w->nslots, .count = count, .bytes = o->scratch_size / (i32)count};
	w->nslots += count;
	vec_push(&w->scratch, &w->areas, a);
	o->mark = w->areas.len;
}

static bool is_mbarrier(const struct op *alloc)
{
	const struct value *v = result(alloc);
	return v->type->rank == 1 && v->type->shape[0] == 1 && type_dtype(v->type) == DT_I64;
}

static u32 count_of(const struct op *alloc)
{
	return (u32)MAX(result(alloc)->type->nbuf, 1);
}

static bool share_bytes(const struct op *a, const struct op *b)
{
	return a->scratch_offset < b->scratch_offset + b->scratch_size &&
	       b->scratch_offset < a->scratch_offset + a->scratch_size;
}

static void clear(struct op *o, void *arg)
{
	(void)arg;
	o->mark = 0;
	for (u32 i = 0; i < o->nresults; i++)
		o->results[i].mark = 0;
	for (u32 k = 0; k < o->nblocks; k++)
		for (u32 i = 0; i < o->blocks[k]->nargs; i++)
			o->blocks[k]->args[i]->mark = 0;
}

static bool is_in_group(const struct model_checker *w, const struct op *o)
{
	return map_get(w->groups, o) == w->group;
}

static void add_mbarriers(struct op *o, void *arg)
{
	struct model_checker *w = arg;
	if (is_in_group(w, o) && o->code == IR_LOCAL_ALLOC && is_mbarrier(o))
		add_area(w, o, count_of(o));
}

static void add_others(struct op *o, void *arg)
{
	struct model_checker *w = arg;
	if (is_in_group(w, o) && !o->mark)
		add_area(w, o, o->code == IR_LOCAL_ALLOC ? count_of(o) : 1);
}

/* Notes o as the last use of its buffers. Operations are visited in program order, so the last call remains. */
static void note_use(struct op *o, void *arg)
{
	struct model_checker *w = arg;
	for (u32 i = 0; i < o->noperands; i++) {
		const struct op *alloc =
			operand(o, i)->type->kind == TY_MEMDESC ? checker_allocation(operand(o, i)) : NULL;
		if (!alloc || !alloc->mark)
			continue;
		struct op *user = o;
		while (user->block != alloc->block)
			user = user->block->parent;
		w->areas.at[alloc->mark - 1].last = user;
	}
}

/* Registers the area under its last use, after which its buffer is dropped. */
static void note_drop(struct model_checker *w, struct area *a)
{
	a->next = map_get(&w->lasts, a->last);
	map_put(&w->lasts, a->last, a);
	a->last->mark = a->last->mark ? a->last->mark : UINT32_MAX;
}

static void find_areas(struct model_checker *w)
{
	walk(w->s->k->body, add_mbarriers, w);
	w->nmbarriers = w->nslots;
	walk(w->s->k->body, add_others, w);
	walk(w->s->k->body, note_use, w);
	w->area_of = arena_array(&w->scratch, u32, w->nslots);
	w->refills = arena_array(&w->scratch, struct refill, w->nslots);
	memset(w->refills, 0, w->nslots * sizeof *w->refills);
	for (u32 i = 0; i < w->areas.len; i++) {
		struct area *a = &w->areas.at[i];
		a->apart = map_get(w->halves, a->op);
		for (u32 k = 0; k < a->count; k++)
			w->area_of[a->first + k] = i;
		if (a->op->code == IR_LOCAL_ALLOC)
			note_drop(w, a);
		for (u32 k = 0; k < w->areas.len; k++)
			if (k != i && share_bytes(a->op, w->areas.at[k].op))
				vec_push(&w->scratch, &a->over, k);
	}
}

/* Tracks v, which selects a buffer or a phase, and the values that v is computed from. */
static void follow(struct model_checker *w, struct value *v)
{
	value_vec work = {0};
	vec_push(&w->scratch, &work, v);
	while (work.len) {
		v = work.at[--work.len];
		const struct op *o = v->def ? v->def : v->block->parent;
		if (!o || v->mark || v->type->kind != TY_SCALAR || !dtype_is_int(v->type->dtype))
			continue;
		v->mark = 1;
		if (o->code == IR_FOR && v->def)
			vec_push(&w->scratch, &work, for_arg(o, v->index));
		struct use *from[2];
		u32 n = o->code == IR_WHILE ? 0 : operands_passed_to(v, from);
		for (u32 i = 0; i < n; i++)
			vec_push(&w->scratch, &work, from[i]->value);
		for (u32 i = 0; op_has(o, ELEM) && i < o->noperands; i++)
			vec_push(&w->scratch, &work, operand(o, i));
	}
}

static void count_left(struct model_checker *w, const struct op *loop)
{
	struct loop_note *n = map_get(&w->notes, loop);
	if (!n)
		map_put(&w->notes, loop, n = arena_new(&w->scratch, struct loop_note));
	if (!n->left)
		n->left = ++w->nleft;
}

/* Counts the iterations of a loop that issues no copies because all of them are issued before the loop: its step is so
 * large that it has few iterations. */
static void count_few(struct model_checker *w, const struct op *loop)
{
	enum { FEW = 8 };
	if (!loop || loop->code != IR_FOR || count_trips(loop).most > FEW)
		return;
	count_left(w, loop);
	w->most = MAX(w->most, (i64)count_trips(loop).most);
}

/* True if o, or an operation inside o, uses a buffer of the group. */
static bool uses_buffer(const struct op *o)
{
	bool yes = o->code == IR_LOCAL_ALLOC && o->mark;
	for (u32 i = 0; i < o->noperands && !yes; i++) {
		const struct op *alloc =
			operand(o, i)->type->kind == TY_MEMDESC ? checker_allocation(operand(o, i)) : NULL;
		yes = alloc && alloc->mark;
	}
	for (u32 k = 0; k < o->nblocks; k++)
		for (const struct op *in = o->blocks[k]->first; in && !yes; in = in->next)
			yes = uses_buffer(in);
	return yes;
}

static bool has_buffer(const struct op *o)
{
	for (u32 i = 0; i < o->noperands; i++)
		if (operand(o, i)->type->kind == TY_MEMDESC)
			return true;
	return o->nblocks || o->code == IR_LOCAL_ALLOC;
}

static void find_followed(struct op *o, void *arg)
{
	struct model_checker *w = arg;
	i64 constant;
	if ((o->code == IR_MEMDESC_INDEX || o->code == IR_WAIT_BARRIER) && uses_buffer(o))
		follow(w, operand(o, 1));
	if (o->code != IR_ONE_THREAD || !uses_buffer(o))
		return;
	if (value_const_int(operand(o, 0), &constant)) {
		if (!constant)
			count_few(w, o->block->parent);
		return;
	}
	struct issue_condition a = checker_condition(o);
	map_put(&w->conditions, o, arena_dup(&w->scratch, &a, sizeof a));
	if (a.known)
		count_left(w, a.loop);
	if (a.known && a.next)
		count_left(w, a.next);
	if (a.known)
		w->most = MAX(w->most, a.n + 1);
}

/* Numbers the tracked values, consecutively within a region, and marks the operations that the walk must visit. True if
 * the block contains any. */
static bool number_values(struct model_checker *w, struct block *b)
{
	bool any = false;
	for (struct op *o = b->first; o; o = o->next) {
		struct loop_note *n = map_get(&w->notes, o);
		bool stops = op_has(o, PLACED) && !op_has(o, PURE) && (!has_buffer(o) || uses_buffer(o));
		stops |= o->code == IR_WARP_GROUP_DOT || o->code == IR_RETURN ||
			 (o->scratch_size > 0 && o->code != IR_LOCAL_ALLOC) ||
			 (o->code == IR_BARRIER && !o->attr[ATTR_WARP]) || (o->code == IR_DOT && uses_buffer(o));
		for (u32 i = 0; i < o->nresults; i++)
			if (o->results[i].type->kind == TY_SCALAR && o->results[i].mark) {
				o->results[i].mark = w->nvalues++;
				stops = true;
			}
		if (o->nblocks && !n)
			map_put(&w->notes, o, n = arena_new(&w->scratch, struct loop_note));
		if (n)
			n->first = w->nvalues;
		for (u32 k = 0; k < o->nblocks; k++)
			for (u32 i = 0; i < o->blocks[k]->nargs; i++)
				if (o->blocks[k]->args[i]->type->kind == TY_SCALAR && o->blocks[k]->args[i]->mark)
					o->blocks[k]->args[i]->mark = w->nvalues++;
		if (n)
			n->args = w->nvalues - n->first;
		for (u32 k = 0; k < o->nblocks; k++)
			stops |= number_values(w, o->blocks[k]);
		if (n)
			n->end = w->nvalues;
		if (stops && !o->mark)
			o->mark = UINT32_MAX;
		any |= o->mark;
	}
	return any;
}

/* --- groups ------------------------------------------------------------------------------------------------------ */

/* Operations with shared memory: allocations, and operations with scratch memory that overlaps an allocation.
 * Operations that share bytes or mbarriers form a group. Each group is checked separately, because the states of
 * several groups together would be the product of the states of each. */
struct memory {
	struct arena *scratch;
	VEC(struct op *) at;
	u32 *same; /* union-find: another member of the same group, or itself */
};

static void add_memory(struct op *o, void *arg)
{
	struct memory *m = arg;
	if (o->code != IR_LOCAL_ALLOC && o->scratch_size <= 0)
		return;
	vec_push(m->scratch, &m->at, o);
	o->mark = m->at.len;
}

static u32 group_of(struct memory *m, u32 i)
{
	while (m->same[i] != i)
		i = m->same[i] = m->same[m->same[i]];
	return i;
}

static void unite(struct memory *m, u32 a, u32 b)
{
	m->same[group_of(m, a)] = group_of(m, b);
}

static void unite_operands(struct op *o, void *arg)
{
	const struct op *first = NULL;
	for (u32 i = 0; op_is_tensor_copy(o) && i < o->noperands; i++) {
		const struct op *alloc =
			operand(o, i)->type->kind == TY_MEMDESC ? checker_allocation(operand(o, i)) : NULL;
		if (alloc && first)
			unite(arg, first->mark - 1, alloc->mark - 1);
		first = first ? first : alloc;
	}
}

struct span {
	i32 begin, end;
	u32 of; /* the number of an allocation in the span */
};

static int by_begin(const void *a, const void *b)
{
	const struct span *x = a, *y = b;
	return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Unites operations that share bytes, if at least one is an allocation. A sweep in the order of offsets merges the
 * allocations into disjoint spans. Other operations are compared with the spans. */
static void unite_sharing(struct memory *m)
{
	struct span *spans = arena_array(m->scratch, struct span, m->at.len + 1);
	u32 n = 0, apart = 0;
	for (u32 i = 0; i < m->at.len; i++)
		if (m->at.at[i]->code == IR_LOCAL_ALLOC)
			spans[n++] = (struct span){m->at.at[i]->scratch_offset,
						   m->at.at[i]->scratch_offset + m->at.at[i]->scratch_size, i};
	qsort(spans, n, sizeof *spans, by_begin);
	for (u32 i = 0; i < n; i++) {
		if (apart && spans[i].begin < spans[apart - 1].end) {
			unite(m, spans[i].of, spans[apart - 1].of);
			spans[apart - 1].end = MAX(spans[apart - 1].end, spans[i].end);
		} else {
			spans[apart++] = spans[i];
		}
	}
	for (u32 i = 0; i < m->at.len; i++) {
		const struct op *o = m->at.at[i];
		for (u32 k = 0; k < apart && o->code != IR_LOCAL_ALLOC; k++)
			if (o->scratch_offset < spans[k].end && spans[k].begin < o->scratch_offset + o->scratch_size)
				unite(m, i, spans[k].of);
	}
}

/* Maps each operation with memory to its group, represented by one of the group's operations. */
static void find_groups(struct pass_state *s, struct memory *m, struct map *groups)
{
	walk(s->k->body, add_memory, m);
	m->same = arena_array(m->scratch, u32, m->at.len + 1);
	for (u32 i = 0; i < m->at.len; i++)
		m->same[i] = i;
	unite_sharing(m);
	walk(s->k->body, unite_operands, m);
	for (u32 i = 0; i < m->at.len; i++)
		map_put(groups, m->at.at[i], m->at.at[group_of(m, i)]);
}

static bool is_copied(const struct op *o)
{
	return o->code == IR_ASYNC_COPY || (o->code == IR_LOCAL_ALLOC && result(o)->type->nbuf);
}

static void clear_all(struct pass_state *s)
{
	walk(s->k->body, clear, NULL);
	for (u32 i = 0; i < s->k->body->nargs; i++)
		s->k->body->args[i]->mark = 0;
}

static void run_group(struct model_checker *w)
{
	struct pass_state *s = w->s;
	clear_all(s);
	w->nvalues = VALUES;
	w->notes.arena = w->conditions.arena = w->lasts.arena = &w->scratch;
	find_areas(w);
	walk(s->k->body, find_followed, w);
	number_values(w, s->k->body);
	w->size = w->nslots * sizeof(struct slot) + w->nvalues * sizeof(i32) + w->nleft;
	struct slot *first = arena_alloc(&w->scratch, w->size);
	w->key = arena_alloc(&w->scratch, w->size);
	memset(first, 0, w->size);
	for (u32 i = VALUES; i < w->nvalues; i++)
		values_of(w, first)[i] = UNKNOWN;
	memset(left_of(w, first), NOT_CHOSEN, w->nleft);
	for (u32 i = 0; i < w->nslots; i++)
		first[i].dropped = w->areas.at[w->area_of[i]].op->code == IR_LOCAL_ALLOC;
	states at = {0};
	push(w, &at, first);
	if (w->nmbarriers > MAX_MBARRIERS)
		refuse(w, s->k->body->first, "the kernel has more mbarriers than the model checker's limit");
	run_block(w, s->k->body, &at);
	arena_free(&w->scratch);
}

struct unproved checker_prove(struct pass_state *s)
{
	struct arena scratch = {0};
	struct memory m = {.scratch = &scratch};
	struct map groups = {.arena = &scratch}, done = {.arena = &scratch}, halves = {.arena = &scratch};
	struct model_checker w = {0};
	if (!block_has(s->k->body, is_copied))
		return (struct unproved){0};
	clear_all(s);
	find_groups(s, &m, &groups);
	find_halves(s, &halves);
	for (u32 i = 0; i < m.at.len && !w.bad; i++) {
		struct op *group = map_get(&groups, m.at.at[i]);
		if (m.at.at[i]->code != IR_LOCAL_ALLOC || map_get(&done, group))
			continue;
		map_put(&done, group, group);
		w = (struct model_checker){.s = s, .groups = &groups, .halves = &halves, .group = group};
		run_group(&w);
	}
	arena_free(&scratch);
	return (struct unproved){w.bad, w.what};
}

/* True if a test wants the proof to fail, so that the kernel is compiled again (support/compile_checks.h). */
static bool is_refused(const struct pass_state *s)
{
	return (s->cuda.limits.pipelining == PIPELINE_ALL && compile_check("unproved")) ||
	       (s->cuda.limits.pipelining <= PIPELINE_CP_ASYNC && compile_check("unproved-copies"));
}

void pass_prove_buffers(struct pass_state *s)
{
	struct unproved u = checker_prove(s);
	if (u.op && compile_check("buffers"))
		gpu_ir_report(s, "prove-buffers", NULL, u.op, u.what);
	if (!u.op && is_refused(s))
		u = (struct unproved){s->k->body->first, "TL_COMPILE_CHECK requests this"};
	s->cuda.unproved = u;
	s->failed |= u.op != NULL;
}
