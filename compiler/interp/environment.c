/* Operations on the program and its environment: ids, assertions, printing; and the text of a failure. */
#include <stdlib.h>
#include <time.h>

#include "interp/interp_internal.h"
#include "support/device_text.h"
#include "ir/inline_asm.h"

/* --- failures ------------------------------------------------------------------------------------------------ */

static void describe_failure(const struct env *e, const struct inst *i, i64 element, const char *format, va_list ap)
{
	const struct diags *d = e->run->program->diags;
	const struct program_failure f = {.source = i->loc.file < d->sources.len ? d->sources.at[i->loc.file] : NULL,
					  .loc = i->loc,
					  .pid = e->pid,
					  .shape = i->type ? i->type->shape : NULL,
					  .rank = i->type ? (i32)i->type->rank : 0,
					  .element = element};
	e->run->error->len = e->run->error_start;
	program_failure_text(e->run->error, &f, e->run->launch->place, format, ap);
}

bool fail(struct env *e, const struct inst *i, i64 element, const char *format, ...)
{
	struct held h;
	lock_hold(&h, &e->run->lock);
	if (e->program < atomic_load(&e->run->failed)) {
		va_list ap;
		va_start(ap, format);
		describe_failure(e, i, element, format, ap);
		va_end(ap);
		atomic_store(&e->run->failed, e->program);
	}
	lock_release(&h);
	return false;
}

static bool run_assert(struct env *e, const struct inst *i)
{
	const u8 *ok = e->at[i->in[0]];
	const u8 *bad = memchr(ok, 0, (size_t)i->n);
	if (!bad)
		return true;
	if (i->code == IR_ASSUME)
		return fail(e, i, bad - ok, "assumption is false");
	bool silent = !i->text || !*i->text;
	return fail(e, i, bad - ok, "device-side assertion failed%s%s", silent ? "" : ": ", silent ? "" : i->text);
}

/* --- printing ------------------------------------------------------------------------------------------------ */

struct print_operand {
	const struct type *type;
	bool is_signed;
};
struct print_plan {
	u32 threads; /* threads of a program on a GPU */
	struct print_operand at[];
};

static void print_tile(const struct env *e, const struct inst *i, u32 k, struct strbuf *out)
{
	const struct print_operand *p = &((const struct print_plan *)i->plan)->at[k];
	const struct printed_tile t = {.dtype = type_dtype(p->type),
				       .is_signed = p->is_signed,
				       .is_pointer = type_is_ptr(p->type),
				       .hex = i->attr[ATTR_HEX],
				       .rank = (i32)p->type->rank,
				       .shape = p->type->shape,
				       .data = e->at[i->in[k]]};
	printed_tile_text(out, &t, e->pid, i->text ? i->text : "", i->nin > 1 ? (i32)k : -1);
}

static bool run_print(struct env *e, const struct inst *i)
{
	const struct print_plan *w = i->plan;
	struct arena a = {0};
	struct strbuf out = {.arena = &a};
	if (e->run->launch->quiet)
		return true;
	/* as on a GPU, each thread of the program prints scalars; thread 0 prints all elements of tiles */
	for (u32 t = 0; t < w->threads; t++) {
		for (u32 k = 0; k < i->nin; k++)
			if (!t || !w->at[k].type->rank)
				print_tile(e, i, k, &out);
		if (!i->nin)
			sb_printf(&out, "pid (%u, %u, %u)%s\n", e->pid[0], e->pid[1], e->pid[2], i->text);
	}
	const struct interp_launch *l = e->run->launch;
	if (l->print)
		l->print(l->print_arg, out.at, out.len);
	else
		fwrite(out.at, 1, out.len, stdout); /* stdout is locked, so that the lines of a tile stay together */
	arena_free(&a);
	return true;
}

/* --- other operations ---------------------------------------------------------------------------------------- */

static bool run_program_id(struct env *e, const struct inst *i)
{
	u32 axis = (u32)i->attr[ATTR_AXIS];
	memcpy(e->at[i->out[0]], i->code == IR_PROGRAM_ID ? &e->pid[axis] : &e->run->launch->grid[axis], sizeof(u32));
	return true;
}

/* Assembly that reads a clock (in nanoseconds) or the number of the multiprocessor. The interpreter has one
 * multiprocessor. */
static bool run_source(struct env *e, const struct inst *i)
{
	struct timespec t = {0};
	if (i->plan)
		clock_gettime(CLOCK_MONOTONIC, &t);
	u64 ns = (u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec;
	u32 bytes = (u32)elem_bytes(i->type);
	for (i64 k = 0; k < MAX(i->n, 1); k++)
		memcpy((char *)e->at[i->out[0]] + k * bytes, &ns, bytes);
	return true;
}

struct asm_plan {
	struct asm_call call; /* the field n is set for each execution */
	u8 bits[];
};

static bool run_inline_asm(struct env *e, const struct inst *i)
{
	const struct interp_launch *l = e->run->launch;
	const struct asm_plan *p = i->plan;
	struct arena a = {0};
	struct asm_call c = p->call;
	char **tiles = arena_array(&a, char *, c.nresults + c.noperands);
	for (u32 k = 0; k < c.nresults; k++)
		tiles[k] = e->at[i->out[k]];
	for (u32 k = 0; k < c.noperands; k++)
		tiles[c.nresults + k] = e->at[i->in[k]];
	c.n = (u64)inst_lanes(e, i);
	const char *wrong = "there is no simulator";
	if (l->assembly)
		wrong = l->assembly(&a, &c, tiles, l->ranges, l->nranges, l->guard);
	bool good = !wrong || fail(e, i, -1, "inline assembly: %s", wrong);
	arena_free(&a);
	return good;
}

static void plan_inline_asm(struct planner *p, const struct op *o, struct inst *i)
{
	enum asm_source source = inline_asm_source(o);
	static const bool has_clock = true;
	if (source != ASM_UNKNOWN && o->nresults == 1) {
		i->run = run_source;
		i->plan = source == ASM_SM ? NULL : &has_clock;
		return;
	}
	struct asm_plan *w = plan_alloc(p, sizeof *w + o->nresults + o->noperands);
	for (u32 k = 0; k < o->nresults; k++)
		w->bits[k] = (u8)type_elem_bits(o->results[k].type);
	for (u32 k = 0; k < o->noperands; k++)
		w->bits[o->nresults + k] = (u8)type_elem_bits(operand(o, k)->type);
	w->call = (struct asm_call){.text = o->text,
				    .constraints = (const char *)(uintptr_t)o->attr[ATTR_CONSTRAINTS],
				    .pack = (u32)o->attr[ATTR_PACK],
				    .nresults = o->nresults,
				    .noperands = o->noperands,
				    .bits = w->bits};
	i->run = run_inline_asm;
	i->plan = w;
}

static bool run_nothing(struct env *e, const struct inst *i)
{
	(void)e, (void)i;
	return true;
}

void plan_environment(struct planner *p, const struct op *o, struct inst *i)
{
	switch (o->code) {
	case IR_PROGRAM_ID:
	case IR_NUM_PROGRAMS: i->run = run_program_id; break;
	case IR_ASSERT:
	case IR_ASSUME: i->run = run_assert; break;
	case IR_INLINE_ASM:
	case IR_PURE_ASM: plan_inline_asm(p, o, i); break;
	case IR_GRID_WAIT:
	case IR_DEBUG_LINE:
	case IR_DEBUG_VALUE:
	case IR_DEBUG_CALL:
	case IR_DEBUG_RETURN:
	case IR_GRID_LAUNCH: /* programs begin after all earlier launches have ended */
	/* each operation completes for the whole tile before the next one */
	case IR_BARRIER: i->run = run_nothing; break;
	case IR_PRINT: {
		struct print_plan *w = plan_alloc(p, sizeof *w + o->noperands * sizeof *w->at);
		w->threads = plan_threads(p);
		for (u32 k = 0; k < o->noperands; k++)
			w->at[k] = (struct print_operand){operand(o, k)->type, o->attr[ATTR_SIGNED] >> k & 1};
		i->run = run_print;
		i->plan = w;
		break;
	}
	default: tl_unreachable("operation of the environment");
	}
}
