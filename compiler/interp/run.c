/* Execution of a program: the grid in parallel, and control flow. */
#include <stdlib.h>

#include "interp/interp_internal.h"

bool run_code(struct env *e, const struct code *c)
{
	for (u32 k = 0; k < c->n; k++)
		if (!c->at[k].run(e, &c->at[k]))
			return false;
	return true;
}

/* --- control flow -------------------------------------------------------------------------------------------- */

static void do_moves(struct env *e, const struct moves *m)
{
	if (!m->staged) {
		for (u32 k = 0; k < m->n; k++)
			memcpy(e->at[m->at[k].to], e->at[m->at[k].from], m->at[k].bytes);
		return;
	}
	char *staging = e->at[m->staging];
	for (u32 k = 0; k < m->n; staging += m->at[k++].bytes)
		memcpy(staging, e->at[m->at[k].from], m->at[k].bytes);
	staging = e->at[m->staging];
	for (u32 k = 0; k < m->n; staging += m->at[k++].bytes)
		memcpy(e->at[m->at[k].to], staging, m->at[k].bytes);
}

static i64 read_int(const struct env *e, u32 slot, enum dtype d)
{
	u64 bits = 0;
	memcpy(&bits, e->at[slot], (size_t)dtype_bytes(d));
	return dtype_decode_int(d, bits);
}

bool run_for(struct env *e, const struct inst *i)
{
	const struct for_plan *w = i->plan;
	i64 from = read_int(e, i->in[0], w->type), to = read_int(e, i->in[1], w->type);
	i64 step = read_int(e, i->in[2], w->type);
	if (step <= 0)
		return fail(e, i, -1, "loop step is not positive: it is %lld", (long long)step);
	do_moves(e, &w->enter);
	while (from < to) {
		if (must_stop(e, false))
			return false;
		memcpy(e->at[w->index], &from, (size_t)dtype_bytes(w->type));
		if (!run_code(e, &w->body))
			return false;
		do_moves(e, &w->next);
		if (__builtin_add_overflow(from, step, &from))
			break;
	}
	return true;
}

bool run_if(struct env *e, const struct inst *i)
{
	const struct if_plan *w = i->plan;
	u32 k = *(const u8 *)e->at[i->in[0]] ? 0 : 1;
	if (!run_code(e, &w->branch[k]))
		return false;
	do_moves(e, &w->leave[k]);
	return true;
}

/* Called after every PATIENCE iterations of a loop that may wait. */
static bool let_others_run(struct env *e, const struct inst *i)
{
	struct program_threads *g = &e->run->gang;
	if (program_threads_wait(g, &e->waiter))
		return true;
	return fail(e, i, -1, GANG_VAIN, (unsigned long long)program_threads_left(g), atomic_load(&g->alive));
}

bool run_while(struct env *e, const struct inst *i)
{
	enum { PATIENCE = 256 /* iterations */ };
	const struct while_plan *w = i->plan;
	u32 n = 0;
	for (do_moves(e, &w->enter);; do_moves(e, &w->next)) {
		if (must_stop(e, true) || !run_code(e, &w->before))
			return false;
		bool more = *(const u8 *)e->at[w->condition];
		do_moves(e, &w->decide);
		if (!more)
			return true;
		if (w->waits && ++n % PATIENCE == 0 && !let_others_run(e, i))
			return false;
		if (!run_code(e, &w->after))
			return false;
	}
}

/* --- grid ---------------------------------------------------------------------------------------------------- */

static void *allocate(size_t size)
{
	size = (size + 63) & ~(size_t)63;
	void *p = aligned_alloc(64, size ? size : 64);
	if (!p)
		tl_out_of_memory(size);
	return p;
}

/* The work of one thread of the parallel region, divided into calls under fault_catch(). */
struct worker {
	struct env env;
	struct run *run;
	u64 program;
	bool open;
};

static void env_open(void *worker)
{
	static const struct mem_range nowhere;
	struct worker *w = worker;
	struct env *e = &w->env;
	struct run *r = w->run;
	const struct interp_program *p = r->program;
	*e = (struct env){.run = r, .range = &nowhere};
	e->memory = allocate(p->memory_size);
	e->at = allocate(p->nslots * sizeof(void *));
	for (u32 k = 0; k < p->nslots; k++)
		e->at[k] = p->slots[k].data ? (void *)p->slots[k].data : e->memory + p->slots[k].offset;
	for (u32 k = 0; k < p->nparams; k++)
		memcpy(e->at[p->params[k]], &r->launch->args[k], elem_bytes(p->param_types[k]));
	w->open = true;
}

static void env_close(struct env *e)
{
	free(e->memory);
	free(e->at);
}

static void run_one(void *worker)
{
	struct worker *w = worker;
	struct env *e = &w->env;
	const u32 *grid = e->run->launch->grid;
	u64 program = e->program = w->program;
	e->any_divisor = false;
	if (must_stop(e, false))
		return;
	e->pid[0] = (u32)(program % grid[0]);
	e->pid[1] = (u32)(program / grid[0] % grid[1]);
	e->pid[2] = (u32)(program / grid[0] / grid[1]);
	run_code(e, &e->run->program->body);
}

/* Runs programs that no thread has begun, until there are none left. */
static void work(void *run)
{
	struct run *r = run;
	struct worker w = {.run = r};
	fault_catch(&r->first_fault, env_open, &w);
	while (program_threads_next(&r->gang, &w.program)) {
		w.open = w.open && fault_catch(&r->first_fault, run_one, &w);
		if (!w.open)
			atomic_store(&r->failed, 0); /* stops the other threads */
	}
	env_close(&w.env);
}

/* --- dispatch ---------------------------------------------------------------------------------------------------- */

bool interp_run(const struct interp_program *p, const struct interp_launch *l, struct strbuf *error)
{
	enum { MOST_THREADS = 1024 };
	struct run r = {.program = p, .launch = l, .failed = NOT_FAILED, .error = error, .error_start = error->len,
			.lock = PTHREAD_MUTEX_INITIALIZER, .first_fault = FIRST_FAULT_NONE};
	r.gang = (struct program_threads){.total = (u64)l->grid[0] * l->grid[1] * l->grid[2],
			       .threads = l->threads > 0 ? (u32)l->threads : thread_team_most(),
			       .most = MOST_THREADS,
			       .work = work,
			       .arg = &r,
			       .crew = THREAD_TEAM_INIT};
	program_threads_run(&r.gang);
	fault_pass_on(&r.first_fault);
	return atomic_load(&r.failed) == NOT_FAILED;
}
