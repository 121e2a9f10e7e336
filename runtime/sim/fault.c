/* Reports of faults and deadlocks: the instruction, the lanes, the state of each warp. */
#include "runtime/sim/cluster.h"
#include "runtime/sim/mbarrier.h"

#include <string.h>

static void print_lanes(struct strbuf *out, u32 lanes)
{
	if (lanes == ALL_LANES) {
		sb_puts(out, "all lanes");
		return;
	}
	sb_puts(out, lanes & (lanes - 1) ? "lanes" : "lane");
	for (u32 l = 0; l < LANES; l++) {
		u32 last = l;
		while (last + 1 < LANES && lanes >> l & 1 && lanes >> (last + 1) & 1)
			last++;
		if (lanes >> l & 1)
			sb_printf(out, last > l + 1 ? " %u–%u" : " %u", l, last);
		if (last > l + 1)
			l = last;
	}
}

/* The name as PTX may have it: a file of the current folder as ./name. */
static const char *file_name(const char *name)
{
	return strncmp(name, "./", 2) ? name : name + 2;
}

struct source_place place_of(const struct launch *l, const struct instr *i, const struct source **text)
{
	const char *file = l->module && i->src_file < l->module->nfiles ? l->module->files[i->src_file] : NULL;
	const struct source *found = NULL;
	for (u32 n = 0; file && i->src_line && n < l->sources.len; n++) {
		const struct source *s = l->sources.at[n];
		/* of two parts of a file that share a line, the second begins there with another line put before it */
		if (s && !strcmp(file_name(s->name), file_name(file)) && source_line(s, i->src_line) &&
		    (!found || s->first_line < found->first_line))
			found = s;
	}
	if (text)
		*text = found;
	if (!file || !i->src_line)
		return (struct source_place){0};
	return (struct source_place){found ? found->name : file, i->src_line, 0};
}

void print_place(struct strbuf *out, const struct launch *l, const struct instr *i)
{
	const struct source *s;
	const struct source_place place = place_of(l, i, &s);
	if (place.file)
		sb_printf(out, "%s:%u, ", place.file, place.line);
	sb_printf(out, "PTX line %u (%s)", i->line, i->opcode);
	if (!s)
		return;
	const char *line = source_line(s, place.line);
	line += strspn(line, " \t");
	sb_printf(out, ": %.*s", (int)MIN(strcspn(line, "\r\n"), 200u), line);
}

static void add_instruction(struct report *r, const struct warp *w, const struct instr *i, u32 lanes)
{
	const struct cta *b = w->block;
	struct strbuf *out = &r->text;
	r->at = i;
	sb_puts(out, "\n  at ");
	print_place(out, b->launch, i);
	sb_printf(out, "\n  block (%u, %u, %u), warp %u, ", b->id[0], b->id[1], b->id[2], w->id);
	print_lanes(out, lanes);
}

bool fault(struct warp *w, const struct instr *i, u32 lanes, const char *format, ...)
{
	struct cta *b = w->block;
	if (b->failed)
		return false;
	b->failed = true;
	va_list ap;
	va_start(ap, format);
	sb_vprintf(&b->error.text, format, ap);
	va_end(ap);
	add_instruction(&b->error, w, i, lanes);
	return false;
}

bool needs_warp(struct warp *w, const struct instr *i, u32 mask)
{
	return mask == ALL_LANES || fault(w, i, ~mask, "needs all lanes of the warp, and these are not active");
}

bool needs_warpgroup(struct warp *w, const struct instr *i, u32 mask)
{
	bool whole = (w->id | (GROUP_WARPS - 1)) < w->block->nwarps;
	return needs_warp(w, i, mask) &&
	       (whole || fault(w, i, mask, "needs four warps, and the block has %u", w->block->nwarps));
}

void blocks_race(struct warp *w, const struct instr *i, u32 lanes, const char *text)
{
	struct report *r = &w->block->race;
	if (r->text.len)
		return;
	sb_puts(&r->text, text);
	add_instruction(r, w, i, lanes);
}

static void print_position(const struct warp *w, struct strbuf *out)
{
	const struct cta *b = w->block;
	const struct barrier *k = &b->barriers[w->barrier];
	if (b->cluster->nblocks > 1)
		sb_printf(out, "\n  block (%u, %u, %u), warp %u ", b->id[0], b->id[1], b->id[2], w->id);
	else
		sb_printf(out, "\n  warp %u ", w->id);
	if (w->state == WARP_DONE) {
		sb_puts(out, "has ended");
		return;
	}
	if (w->state == WARP_AT_BARRIER)
		sb_printf(out, "waits at barrier %u, where %u of %u warps have arrived: ", w->barrier, k->arrived,
			  k->expected ? k->expected : b->nwarps);
	else if (w->state == WARP_ASLEEP) {
		sb_puts(out, "waits");
		mbarrier_print(b, w->id, out);
		sb_puts(out, ": ");
	} else if (w->state == WARP_AT_CLUSTER)
		sb_printf(out, "waits at the cluster's barrier, where %u of %u warps have arrived: ",
			  cluster_arrived(b->cluster), b->cluster->nblocks * b->nwarps);
	else
		sb_puts(out, "is at ");
	print_place(out, b->launch, w->at);
}

void print_positions(const struct cluster *c, struct strbuf *out)
{
	EACH_WARP(w, c)
		print_position(w, out);
	for (u32 k = 0; k < c->nblocks; k++)
		mbarrier_print_all(&c->blocks[k], out);
}

void report_deadlock(struct cluster *c)
{
	struct cta *b = &c->blocks[0];
	b->failed = true;
	sb_printf(&b->error.text, "deadlock in %s (%u, %u, %u): no warp can continue",
		  c->nblocks > 1 ? "the cluster from block" : "block", b->id[0], b->id[1], b->id[2]);
	print_positions(c, &b->error.text);
}
