/* Running a program: the grid in parallel, and control flow. */
#include <sched.h>
#include <stdlib.h>

#include "interp/internal.h"

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

/* Called after so many iterations of a loop in which the program looks at memory again and again. */
static bool let_others_run(struct env *e, const struct inst *i, u64 *ended, u32 *rounds);

bool run_while(struct env *e, const struct inst *i)
{
	enum { PATIENCE = 256 /* iterations */ };
	const struct while_plan *w = i->plan;
	u64 ended = 0;
	u32 n = 0, rounds = 0;
	for (do_moves(e, &w->enter);; do_moves(e, &w->next)) {
		if (must_stop(e, true) || !run_code(e, &w->before))
			return false;
		bool more = *(const u8 *)e->at[w->condition];
		do_moves(e, &w->decide);
		if (!more)
			return true;
		if (w->waits && ++n % PATIENCE == 0 && !let_others_run(e, i, &ended, &rounds))
			return false;
		if (!run_code(e, &w->after))
			return false;
	}
}

/* --- the grid ------------------------------------------------------------------------------------------------ */

static void *allocate(size_t size)
{
	size = (size + 63) & ~(size_t)63;
	void *p = aligned_alloc(64, size ? size : 64);
	if (!p)
		tl_out_of_memory(size);
	return p;
}

/* The work of a thread of the parallel region, in pieces: see fault_catch(). */
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

/* Runs programs that no thread has begun, until there are none. */
static void work(void *run)
{
	struct run *r = run;
	struct worker w = {.run = r};
	fault_catch(&r->first_fault, env_open, &w);
	while ((w.program = atomic_fetch_add(&r->next, 1)) < r->total) {
		w.open = w.open && fault_catch(&r->first_fault, run_one, &w);
		if (!w.open)
			atomic_store(&r->failed, 0); /* the others stop */
		atomic_fetch_add(&r->ended, 1);
	}
	env_close(&w.env);
	atomic_fetch_sub(&r->alive, 1);
}

/* --- programs that wait for others ----------------------------------------------------------------------------- */

static bool start_helper(struct run *r)
{
	atomic_fetch_add(&r->alive, 1);
	bool ok = crew_start(&r->crew, work, r);
	if (!ok)
		atomic_fetch_sub(&r->alive, 1);
	return ok;
}

/* The program may wait for one that no thread has begun, since each thread runs its program to the end. So another
 * thread begins one, until all programs run or there are too many threads; then, if no program ends any more, the wait
 * is in vain. */
static bool let_others_run(struct env *e, const struct inst *i, u64 *ended, u32 *rounds)
{
	enum { MOST_ALIVE = 1024 /* threads */, LAST_ROUNDS = 1 << 14 };
	struct run *r = e->run;
	u64 now = atomic_load(&r->ended);
	if (atomic_load(&r->next) < r->total && (atomic_load(&r->alive) >= MOST_ALIVE || !start_helper(r))) {
		*rounds = now == *ended ? *rounds + 1 : 0;
		*ended = now;
		if (*rounds > LAST_ROUNDS)
			return fail(e, i, -1,
				    "the program waits for others, of which %llu have not begun: %u run at once here, "
				    "and a GPU has its limit too",
				    (unsigned long long)(r->total - MIN(atomic_load(&r->next), r->total)),
				    atomic_load(&r->alive));
	}
	sched_yield();
	return true;
}

/* --- all of them ------------------------------------------------------------------------------------------------- */

static void begin_all(void *run, u32 threads)
{
	struct run *r = run;
	atomic_fetch_add(&r->alive, threads);
}

bool interp_run(const struct interp_program *p, const struct interp_launch *l, struct strbuf *error)
{
	struct run r = {.program = p, .launch = l, .failed = NOT_FAILED, .error = error, .error_start = error->len,
			.lock = PTHREAD_MUTEX_INITIALIZER, .first_fault = FIRST_FAULT_NONE, .crew = CREW_INIT};
	r.total = (u64)l->grid[0] * l->grid[1] * l->grid[2];
	u64 threads = l->threads > 0 ? (u64)l->threads : crew_most();
	crew_run((u32)MAX(MIN(r.total, threads), 1), begin_all, work, &r);
	crew_join(&r.crew);
	fault_pass_on(&r.first_fault);
	return atomic_load(&r.failed) == NOT_FAILED;
}
