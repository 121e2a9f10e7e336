/* Instructions that involve several lanes: branches, barriers, shuffles, votes, calls. */
#include "runtime/sim/cluster.h"
#include "runtime/sim/sync.h"

#include <string.h>

/* --- control flow ---------------------------------------------------------------------------------------------- */

void run_branch(struct warp *w, const struct instr *i, u32 mask)
{
	EACH_LANE(l, mask)
		w->pc[l] = i->ops[0].target;
}

void run_exit(struct warp *w, const struct instr *i, u32 mask)
{
	(void)i;
	w->alive &= ~mask;
}

void run_trap(struct warp *w, const struct instr *i, u32 mask)
{
	fault(w, i, mask, "trap");
}

/* --- barriers -------------------------------------------------------------------------------------------------- */

static void arrive(struct warp *w, const struct instr *i, u32 mask, bool waits)
{
	struct cta *k = w->block;
	u64 id = i->nops ? operand_value(w, &i->ops[0], 0, 32) : 0;
	u64 threads = i->nops > 1 ? operand_value(w, &i->ops[1], 0, 32) : 0;
	EACH_LANE(l, mask)
		if ((i->nops && operand_value(w, &i->ops[0], l, 32) != id) ||
		    (i->nops > 1 && operand_value(w, &i->ops[1], l, 32) != threads))
			fault(w, i, 1u << l, "lanes of one warp name different barriers or counts");
	if (id >= ARRAY_LEN(k->barriers) || threads % LANES || threads / LANES > k->nwarps)
		fault(w, i, mask,
		      "barrier %llu with %llu threads: there are %u barriers, and the block has %u threads", (ull)id,
		      (ull)threads, (u32)ARRAY_LEN(k->barriers), k->nwarps * LANES);
	if (k->failed)
		return;
	struct barrier *b = &k->barriers[id];
	u32 expected = threads ? (u32)threads / LANES : 0;
	if (b->arrived && b->expected != expected) {
		fault(w, i, mask, "barrier %llu is used with different counts at once: the other is at line %u",
		      (ull)id, b->by->line);
		return;
	}
	b->arrived++;
	b->expected = expected;
	b->by = i;
	clock_join(&k->arena, &b->clock, &w->clock);
	fence_join(&k->arena, &b->fence, w->fence);
	w->clock.at[w->id]++;
	if (waits) {
		b->waiting |= 1u << w->id;
		w->state = WARP_AT_BARRIER;
		w->barrier = (u32)id;
	}
	barrier_check(k, b);
}

void run_barrier(struct warp *w, const struct instr *i, u32 mask)
{
	arrive(w, i, mask, true);
}

void run_barrier_arrive(struct warp *w, const struct instr *i, u32 mask)
{
	arrive(w, i, mask, false);
}

/* An ended warp counts as arrived at a barrier of the whole block. */
void barrier_check(struct cta *k, struct barrier *b)
{
	u32 ended = 0;
	for (u32 n = 0; n < k->nwarps; n++)
		ended += k->warps[n].state == WARP_DONE;
	if (!b->arrived || b->arrived < (b->expected ? b->expected : k->nwarps - ended))
		return;
	k->expired = 0;
	EACH_LANE(n, b->waiting) {
		k->warps[n].state = WARP_READY;
		clock_join(&k->arena, &k->warps[n].clock, &b->clock);
		fence_join(&k->arena, &k->warps[n].fence, b->fence);
	}
	*b = (struct barrier){0};
}

/* --- shuffles and votes ---------------------------------------------------------------------------------------- */

enum { SHFL_UP = 1, SHFL_DOWN, SHFL_BFLY, SHFL_IDX };

static int shuffle_source(u32 mode, int lane, u32 b, u32 c, bool *in_range)
{
	int segment = (int)(c >> 8 & 31), clamp = (int)(c & 31), delta = (int)(b & 31);
	int most = (lane & segment) | (clamp & ~segment), least = lane & segment;
	int j = mode == SHFL_UP     ? lane - delta
		: mode == SHFL_DOWN ? lane + delta
		: mode == SHFL_BFLY ? lane ^ delta
				    : least | (delta & ~segment);
	*in_range = mode == SHFL_UP ? j >= most : j <= most;
	return *in_range ? j : lane;
}

void run_shuffle(struct warp *w, const struct instr *i, u32 mask)
{
	const struct operand *dst = &i->ops[0], *value = dst, *pred = NULL;
	if (dst->kind == O_VECTOR) {
		value = &dst->items[0];
		pred = &dst->items[1];
	}
	u64 space[LANES], b_space[LANES], c_space[LANES], a[LANES];
	memcpy(a, operand_lanes(w, &i->ops[1], 32, space), sizeof a);
	const u64 *b = operand_lanes(w, &i->ops[2], 32, b_space), *c = operand_lanes(w, &i->ops[3], 32, c_space);
	u64 result[LANES];
	bool in_range[LANES];
	EACH_LANE(l, mask) {
		int from = shuffle_source(i->mod[M_SHFL], (int)l, (u32)b[l], (u32)c[l], &in_range[l]);
		if (!(mask >> from & 1)) {
			fault(w, i, 1u << l, "takes the value of lane %d, which is not active", from);
			return;
		}
		result[l] = a[from];
	}
	EACH_LANE(l, mask) {
		set_reg(w, value, l, result[l]);
		if (pred)
			set_reg(w, pred, l, in_range[l]);
	}
}

enum { VOTE_ALL = 1, VOTE_ANY, VOTE_UNI, VOTE_BALLOT };

void run_vote(struct warp *w, const struct instr *i, u32 mask)
{
	u32 yes = 0;
	EACH_LANE(l, mask)
		yes |= (u32)operand_value(w, &i->ops[1], l, 1) << l;
	u64 r = i->mod[M_VOTE] == VOTE_ALL   ? yes == mask
		: i->mod[M_VOTE] == VOTE_ANY ? yes != 0
		: i->mod[M_VOTE] == VOTE_UNI ? yes == 0 || yes == mask
				      : yes;
	EACH_LANE(l, mask)
		set_reg(w, &i->ops[0], l, r);
}

enum { REDUX_ADD = 1, REDUX_MIN, REDUX_MAX, REDUX_AND, REDUX_OR, REDUX_XOR };

void run_redux(struct warp *w, const struct instr *i, u32 mask)
{
	bool is_signed = i->type[0] == PT_S32, first = true;
	u32 r = 0;
	EACH_LANE(l, mask) {
		u32 v = (u32)operand_value(w, &i->ops[1], l, 32);
		bool less = is_signed ? (i32)v < (i32)r : v < r;
		if (first)
			r = v;
		else
			switch (i->mod[M_REDUX]) {
			case REDUX_ADD: r += v; break;
			case REDUX_MIN: r = less ? v : r; break;
			case REDUX_MAX: r = less ? r : v; break;
			case REDUX_AND: r &= v; break;
			case REDUX_OR: r |= v; break;
			default: r ^= v; break;
			}
		first = false;
	}
	EACH_LANE(l, mask)
		set_reg(w, &i->ops[0], l, r);
}

void run_activemask(struct warp *w, const struct instr *i, u32 mask)
{
	EACH_LANE(l, mask)
		set_reg(w, &i->ops[0], l, mask);
}

void run_elect(struct warp *w, const struct instr *i, u32 mask)
{
	u32 leader = (u32)__builtin_ctz(mask);
	EACH_LANE(l, mask) {
		set_reg(w, &i->ops[0].items[0], l, leader);
		set_reg(w, &i->ops[0].items[1], l, l == leader);
	}
}

/* --- calls of the system's functions --------------------------------------------------------------------------- */

/* Argument n of a call, read from its .param variable. */
static u64 argument(const struct warp *w, const struct operand *args, u32 n, u32 lane)
{
	const struct ptx_var *v = args->items[n].var;
	u64 bits = 0;
	memcpy(&bits, w->call + lane * w->block->launch->kernel->call_bytes + v->offset, MIN(v->size, 8));
	return bits;
}

/* Host address of a generic address: of a string or an argument list. */
static const char *host_address(struct warp *w, u32 lane, u64 at)
{
	if (at >= LOCAL_WINDOW && at < SHARED_WINDOW)
		return w->local + lane * w->block->launch->kernel->local_bytes + (at - LOCAL_WINDOW);
	return (const char *)(uintptr_t)at;
}

/* Prints one conversion of a printf format: its text in `spec`, its argument at *args, which advances. */
static void print_one(struct warp *w, u32 lane, const char *spec, size_t len, const char **args, struct strbuf *out)
{
	char one[32], last = spec[len - 1];
	if (len + 3 > sizeof one)
		return;
	memcpy(one, spec, len);
	one[len] = 0;
	bool wide = strstr(one, "ll") || strchr("feEgGaAps", last);
	uintptr_t at = ((uintptr_t)*args + (wide ? 7 : 3)) & ~(uintptr_t)(wide ? 7 : 3);
	*args = (const char *)at + (wide ? 8 : 4);
	u64 bits = 0;
	memcpy(&bits, (const void *)at, wide ? 8 : 4);
	double f;
	memcpy(&f, &bits, 8);
	if (strchr("feEgGaA", last))
		sb_printf(out, one, f);
	else if (last == 's')
		sb_printf(out, one, host_address(w, lane, bits));
	else if (last == 'p')
		sb_printf(out, one, (void *)(uintptr_t)bits);
	else if (wide)
		sb_printf(out, one, (ull)bits);
	else
		sb_printf(out, one, (u32)bits);
}

static void print_text(struct warp *w, u32 lane, const char *format, const char *args)
{
	struct strbuf out = {.arena = &w->block->arena};
	for (const char *at = format; *at;) {
		size_t plain = strcspn(at, "%");
		sb_add(&out, at, plain);
		at += plain;
		if (!*at)
			break;
		size_t len = 1 + strcspn(at + 1, "diuxXofeEgGaAcsp%");
		if (!at[len])
			break;
		if (at[len] == '%')
			sb_puts(&out, "%");
		else
			print_one(w, lane, at, len + 1, &args, &out);
		at += len + 1;
	}
	const struct launch *l = w->block->launch;
	if (out.len && l->print)
		l->print(l->print_arg, out.at, out.len);
	else if (out.len)
		fwrite(out.at, 1, out.len, stdout);
}

void run_printf(struct warp *w, const struct instr *i, u32 mask)
{
	const struct operand *args = &i->ops[i->nops - 1];
	EACH_LANE(l, mask)
		print_text(w, l, host_address(w, l, argument(w, args, 0, l)),
			   host_address(w, l, argument(w, args, 1, l)));
}

void run_assertfail(struct warp *w, const struct instr *i, u32 mask)
{
	const struct operand *args = &i->ops[i->nops - 1];
	u32 l = (u32)__builtin_ctz(mask);
	fault(w, i, mask, "device-side assertion failed: %s", host_address(w, l, argument(w, args, 0, l)));
}

bool check_callee(struct decoder *d)
{
	struct instr *i = d->i;
	if (i->nops < 2 || i->nops > 3)
		return false;
	const struct operand *f = &i->ops[i->nops - 2], *args = &i->ops[i->nops - 1];
	if (f->kind != O_SYMBOL || args->kind != O_VECTOR)
		return decode_fail(d, "an indirect call");
	for (u32 k = 0; k < args->nitems; k++)
		if (args->items[k].kind != O_SYMBOL || !args->items[k].var || args->items[k].var->space != SPACE_PARAM)
			return decode_fail(d, "arguments of calls are .param variables");
	if (!strcmp(f->name, "vprintf") && args->nitems == 2)
		i->run = run_printf;
	else if (!strcmp(f->name, "__assertfail") && args->nitems == 5)
		i->run = run_assertfail;
	else
		return decode_fail(d, "the function '%s' is not known", f->name);
	return true;
}
