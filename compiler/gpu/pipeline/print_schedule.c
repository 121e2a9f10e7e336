/* The schedule of a pipelined loop as text, for --emit schedule: one line for each step, with the iteration that it
 * belongs to while the body runs for iteration i. Consecutive operations other than loads, stores, dots, reductions,
 * layout conversions and branches are counted in one line. */
#include "gpu/pipeline/schedule.h"

static const char *iteration(struct plan *p, int stage)
{
	int ahead = p->ahead - stage;
	return ahead ? arena_printf(&p->scratch, "i %c %d", ahead > 0 ? '+' : '-', ahead > 0 ? ahead : -ahead) : "i";
}

static void print_line(struct plan *p, struct strbuf *out, int stage, enum partition warps, const char *text)
{
	static const char *const names[] = {[ALL_WARPS] = "all", [PRODUCER] = "producer"};
	sb_printf(out, "  %5d  %-8s  %-6s  %s\n", stage, names[warps], iteration(p, stage), text);
}

/* True if o has a separate line. */
static bool is_shown(const struct op *o)
{
	return o->nblocks || op_is_dot(o) || op_has(o, WRITE) || o->code == IR_LOAD || o->code == IR_REDUCE ||
	       o->code == IR_SCAN || o->code == IR_CONVERT_LAYOUT;
}

static const char *name_of(const struct op *o)
{
	return o->nresults && o->results[0].name ? o->results[0].name : NULL;
}

static void print_name(const struct plan *p, struct strbuf *text, u32 load, bool first)
{
	const char *name = name_of(p->loads.at[load]);
	sb_printf(text, "%s %s", first ? "" : ",", name ? name : "a tile");
}

static const char *copies(struct plan *p)
{
	struct strbuf text = {.arena = &p->scratch};
	sb_puts(&text, p->tma ? "issue TMA copies of" : p->async ? "copy" : "load");
	for (u32 i = 0; i < p->loads.len; i++)
		print_name(p, &text, i, !i);
	sb_puts(&text, p->async ? " to their buffers" : " into registers");
	return text.at;
}

/* The text `what`, followed by the names of the part's loads if there is more than one part. */
static const char *buffers(struct plan *p, const char *what, const struct buffer_part *part)
{
	struct strbuf text = {.arena = &p->scratch};
	sb_puts(&text, what);
	for (u32 i = 0; p->schedule->parts.len > 1 && i < part->loads.len; i++) {
		sb_puts(&text, i ? "" : " of");
		print_name(p, &text, part->loads.at[i], !i);
	}
	return text.at;
}

static const char *operation(struct plan *p, const struct op *o)
{
	const char *name = name_of(o), *where = "";
	if (op_is_dot(o))
		where = is_outstanding(p, o) ? ", in flight" : is_overlapped(p, o) ? ", overlapped" : "";
	return arena_printf(&p->scratch, "%s%s%s%s", op_info[o->code].name, name ? " " : "", name ? name : "", where);
}

static const char *dot_name(const struct op *dot)
{
	return name_of(dot) ? name_of(dot) : "the dot";
}

static const char *step_text(struct plan *p, const struct schedule_step *s)
{
	switch (s->kind) {
	case STEP_OP: return operation(p, s->op);
	case STEP_ISSUE_COPIES: return copies(p);
	case STEP_WAIT_COPIES:
		return p->tma ? buffers(p, "wait for full buffers", &p->schedule->parts.at[s->part])
			      : "wait for copies";
	case STEP_WAIT_PREVIOUS_DOTS: return "wait for dots";
	case STEP_WAIT_DOT: return arena_printf(&p->scratch, "wait for %s", dot_name(s->op));
	case STEP_RELEASE: return buffers(p, "release buffers", &p->schedule->parts.at[s->part]);
	case STEP_BARRIER: return "barrier";
	case STEP_FENCE: return "fence: stores before dots";
	case STEP_WARP_BARRIER: return "warp barrier: no load moves above it";
	case STEP_PINGPONG_WAIT: return "ping-pong wait";
	case STEP_PINGPONG_ARRIVE: return "ping-pong arrive";
	case STEP_ADVANCE: break;
	}
	return NULL;
}

/* True if o belongs to the copies: it is in the slice, a load issued ahead, or a store that a copy replaces. The line
 * of STEP_ISSUE_COPIES stands for it. */
static bool is_part_of_copies(const struct plan *p, const struct op *o)
{
	bool yes = map_get(&p->in_slice, o);
	for (u32 i = 0; i < p->loads.len; i++) {
		const struct op *load = p->loads.at[i], *to = p->multi_buffered ? load_consumer(load) : NULL;
		bool store = to && to->code == IR_LOCAL_STORE;
		yes |= o == load || (store && (o == to->next || o == operand(to, 1)->def)) || (p->async && o == to);
	}
	return yes;
}

static void print_counted(struct plan *p, struct strbuf *out, u32 *counted)
{
	if (*counted)
		print_line(p, out, p->ahead, ALL_WARPS,
			   arena_printf(&p->scratch, "%u operation%s", *counted, PLURAL(*counted)));
	*counted = 0;
}

void print_schedule(struct plan *p, const char *file, struct strbuf *out)
{
	u32 counted = 0;
	sb_printf(out, "%s:%u: loop, ", file, p->loop->loc.line);
	if (p->multi_buffered)
		sb_printf(out, "%d buffers, ", p->stages);
	sb_printf(out, "%s %d iteration%s ahead%s%s%s\n", p->async ? "copies" : "loads", p->ahead, PLURAL(p->ahead),
		  p->prev_chained ? ", continues with the buffers of the preceding loop" : "",
		  p->flattened ? ", flattened" : "", p->pingpong ? ", ping-pong scheduling" : "");
	sb_puts(out, "  stage  warps     iter.   step\n");
	for (u32 i = 0; i < p->schedule->steps.len; i++) {
		const struct schedule_step *s = &p->schedule->steps.at[i];
		const char *text = step_text(p, s);
		if (s->kind == STEP_OP && is_part_of_copies(p, s->op))
			continue;
		if (s->kind == STEP_OP && !is_shown(s->op)) {
			counted++;
			continue;
		}
		if (!text)
			continue;
		print_counted(p, out, &counted);
		print_line(p, out, s->stage, s->partition, text);
	}
	print_counted(p, out, &counted);
}
