#include "runtime/device/cpu_pool.h"

#include "support/forked.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	SPIN_NS = 20000,  /* that a thread looks for the next launch before it sleeps */
	ALONE_NS = 8000,  /* of work: less is done before another thread has begun */
	CHUNK_NS = 50000, /* of work that a thread takes at once, where there is enough for all: neighbours in memory */
	CHUNKS = 8,       /* that each thread takes at least, so that all end at about the same time */
	WAKES = 2,        /* threads that each wakes, so that waking many takes few steps */
	SPARES = 8,       /* of the callers and of helpers */
	MOST_SHARES = 128,
	MOST_THREADS = 1024,
	ALIGN = 64,
};

struct worker {
	struct pool *pool;
	pthread_t thread;
	u32 number; /* from 1 on; callers are 0 */
	u32 seen;   /* the last launch that it knows of */
	struct scratch *scratch;
};

/* Of scratch memory, in front of it. */
struct scratch {
	_Alignas(ALIGN) size_t bytes;
};

/* Programs that one thread runs first, and others when they have no more of their own: launches of the same data find
 * in the caches of a core, or of a group of cores, what it took before. */
struct share {
	_Alignas(ALIGN) _Atomic u64 next;
	u64 end;
};

struct pool {
	pthread_mutex_t lock; /* one launch at a time shares the threads */
	u32 generation;       /* fork_generation: the threads are not there in another one */
	struct worker *workers[MOST_THREADS];
	u32 nworkers;
	_Atomic(struct scratch *) spares[SPARES];
	/* the number of the launch that began last, which sleeping threads wait to change */
	_Alignas(ALIGN) _Atomic u32 launch;
	_Atomic u32 asleep;
	/* The launch that threads may join, 0 in between, and how many have. */
	_Alignas(ALIGN) _Atomic u64 gate;
	_Atomic u32 waits; /* the caller sleeps until they have left */
	bool ends;
	/* that launch */
	const struct pool_job *job;
	u64 chunk;
	_Atomic u32 most; /* threads that may join */
	u32 nshares;
	struct share shares[MOST_SHARES];
};

static u64 now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec;
}

static void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static void futex_wait(_Atomic u32 *word, u32 while_it_is)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, while_it_is, NULL, NULL, 0);
}

static void futex_wake(_Atomic u32 *word, int threads)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
}

/* --- scratch memory ------------------------------------------------------------------------------------------ */

/* s, or a new one in its place if it is too small. */
static struct scratch *scratch_fit(struct scratch *s, size_t bytes)
{
	if (s && s->bytes >= bytes)
		return s;
	free(s);
	s = aligned_alloc(ALIGN, sizeof *s + (bytes + ALIGN - 1) / ALIGN * ALIGN);
	if (s)
		s->bytes = bytes;
	return s;
}

static struct scratch *scratch_take(struct pool *p, size_t bytes)
{
	struct scratch *s = NULL;
	for (u32 i = 0; i < SPARES && !s; i++)
		s = atomic_exchange(&p->spares[i], NULL);
	return scratch_fit(s, bytes);
}

static void scratch_give(struct pool *p, struct scratch *s)
{
	for (u32 i = 0; i < SPARES && s; i++)
		s = atomic_exchange(&p->spares[i], s);
	free(s);
}

/* --- working ------------------------------------------------------------------------------------------------- */

/* Runs chunks that no thread has begun, those of thread `number`'s share first; how many programs. */
static u64 work(struct pool *p, u32 number, char *scratch)
{
	const struct pool_job *j = p->job;
	u64 ran = 0, from, to;
	for (u32 i = 0; i < p->nshares; i++) {
		struct share *s = &p->shares[(number + i) % p->nshares];
		while ((from = atomic_fetch_add_explicit(&s->next, p->chunk, memory_order_relaxed)) < s->end) {
			to = MIN(from + p->chunk, s->end);
			j->run(j->arg, from, to, scratch);
			ran += to - from;
		}
	}
	return ran;
}

/* Without memory the others do it. */
static void work_beside(struct pool *p, u32 number, struct scratch *s)
{
	if (s)
		work(p, number, (char *)(s + 1));
}

/* False: it is over, or has threads enough. */
static bool join(struct pool *p, u32 launch)
{
	u64 gate = atomic_load(&p->gate);
	u32 most;
	do {
		most = atomic_load(&p->most);
		if (gate >> 32 != launch || (u32)gate >= most)
			return false;
	} while (!atomic_compare_exchange_weak(&p->gate, &gate, gate + 1));
	if ((u32)gate + 1 < most && atomic_load(&p->asleep))
		futex_wake(&p->launch, WAKES);
	return true;
}

static _Atomic u32 *joined_word(struct pool *p)
{
	return (_Atomic u32 *)&p->gate + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

static void leave(struct pool *p)
{
	if (atomic_fetch_sub(&p->gate, 1) == 1 && atomic_load(&p->waits)) /* the last one, and nobody can join */
		futex_wake(joined_word(p), 1);
}

/* The number of the next launch. */
static u32 await_launch(struct pool *p, u32 seen)
{
	u32 launch;
	u64 end = now_ns() + SPIN_NS;
	do
		for (u32 i = 0; i < 32; i++, relax())
			if ((launch = atomic_load(&p->launch)) != seen)
				return launch;
	while (now_ns() < end);
	atomic_fetch_add(&p->asleep, 1);
	while ((launch = atomic_load(&p->launch)) == seen)
		futex_wait(&p->launch, seen);
	atomic_fetch_sub(&p->asleep, 1);
	return launch;
}

static void *run_worker(void *worker)
{
	struct worker *w = worker;
	struct pool *p = w->pool;
	for (;;) {
		w->seen = await_launch(p, w->seen);
		if (!join(p, w->seen))
			continue;
		if (p->ends)
			break;
		w->scratch = scratch_fit(w->scratch, p->job->scratch_bytes);
		work_beside(p, w->number, w->scratch);
		leave(p);
	}
	leave(p);
	return NULL;
}

/* --- launches ------------------------------------------------------------------------------------------------ */

/* Where there is no room for another thread, those that there are do. */
static void start_workers(struct pool *p, u32 n)
{
	while (p->nworkers < MIN(n, MOST_THREADS)) {
		struct worker *w = malloc(sizeof *w);
		if (!w)
			return;
		*w = (struct worker){.pool = p, .number = p->nworkers + 1, .seen = atomic_load(&p->launch)};
		if (pthread_create(&w->thread, NULL, run_worker, w)) {
			free(w);
			return;
		}
		p->workers[p->nworkers++] = w;
	}
}

/* Lets threads join. */
static void open_gate(struct pool *p, u32 threads)
{
	u32 launch = atomic_load(&p->launch) + 1;
	launch += !launch;
	atomic_store(&p->most, threads);
	atomic_store(&p->gate, (u64)launch << 32);
	atomic_store(&p->launch, launch);
	if (atomic_load(&p->asleep))
		futex_wake(&p->launch, (int)MIN(threads, WAKES));
}

/* Lets no more threads join, and waits for those that have. */
static void close_gate(struct pool *p)
{
	u32 joined = (u32)atomic_fetch_and(&p->gate, UINT32_MAX);
	u64 end = now_ns() + SPIN_NS;
	while (joined && now_ns() < end)
		for (u32 i = 0; i < 32 && joined; i++, relax())
			joined = (u32)atomic_load(&p->gate);
	atomic_store(&p->waits, 1);
	while ((joined = (u32)atomic_load(&p->gate)))
		futex_wait(joined_word(p), joined);
	atomic_store(&p->waits, 0);
}

/* Of programs from `from` on: one share for each thread if programs are short. Long ones, whose neighbours take the
 * same operands, all come from one. */
static void make_shares(struct pool *p, u64 from, u32 threads)
{
	p->nshares = p->chunk > 1 ? MIN(threads, MOST_SHARES) : 1;
	for (u32 i = 0; i < p->nshares; i++) {
		u64 chunks = (p->job->total - from + p->chunk - 1) / p->chunk / (p->nshares - i);
		struct share *s = &p->shares[i];
		s->end = i + 1 == p->nshares ? p->job->total : from + chunks * p->chunk;
		atomic_store(&s->next, from);
		from = s->end;
	}
}

/* In the child of a fork: no thread is there, and none is in the midst of a launch. */
static void forget_workers(struct pool *p)
{
	p->generation = fork_generation();
	for (u32 i = 0; i < p->nworkers; i++) {
		free(p->workers[i]->scratch);
		free(p->workers[i]);
	}
	p->nworkers = 0;
	atomic_store(&p->asleep, 0);
	atomic_store(&p->gate, 0);
}

static void run_shared(struct pool *p, const struct pool_job *j, u64 from, u32 cost, char *scratch)
{
	u64 left = j->total - from, even = left / ((u64)j->threads * CHUNKS), enough = CHUNK_NS * 16 / MAX(cost, 1u);
	pthread_mutex_lock(&p->lock);
	if (p->generation != fork_generation())
		forget_workers(p);
	p->job = j;
	p->chunk = MAX(MIN(even, MAX(enough, 1u)), 1u);
	u64 chunks = (left + p->chunk - 1) / p->chunk;
	u32 others = (u32)MIN(j->threads, chunks) - 1;
	make_shares(p, from, others + 1);
	start_workers(p, others);
	open_gate(p, others);
	u64 start = now_ns(), ran = work(p, 0, scratch);
	if (ran)
		atomic_store_explicit(j->cost, (u32)MIN((now_ns() - start) * 16 / ran + 1, UINT32_MAX),
				      memory_order_relaxed);
	close_gate(p);
	pthread_mutex_unlock(&p->lock);
}

/* A grid that takes no longer than a thread to wake up; the programs that ran: all, unless they take longer than they
 * did. */
static u64 run_alone(const struct pool_job *j, char *scratch)
{
	u64 start = now_ns(), spent = 0, at = 0;
	while (at < j->total && spent < 2 * ALONE_NS) {
		u64 to = MIN(at + MAX(j->total / 8, 1u), j->total);
		j->run(j->arg, at, to, scratch);
		at = to;
		spent = now_ns() - start;
	}
	atomic_store_explicit(j->cost, (u32)MIN(spent * 16 / at + 1, UINT32_MAX), memory_order_relaxed);
	return at;
}

/* --- launches whose programs may wait -------------------------------------------------------------------------- */

/* Such a launch has threads of its own: it may wait for a launch that another host thread makes meanwhile. */
struct waiting {
	struct program_threads gang;
	struct pool *pool;
	const struct pool_job *job;
};

static void work_alone(void *waiting)
{
	struct waiting *w = waiting;
	const struct pool_job *j = w->job;
	struct scratch *s = scratch_take(w->pool, j->scratch_bytes);
	for (u64 program; s && program_threads_next(&w->gang, &program);) {
		u64 start = program ? 0 : now_ns();
		j->run(j->arg, program, program + 1, (char *)(s + 1));
		if (!program)
			atomic_store_explicit(j->cost, (u32)MIN((now_ns() - start) * 16 + 1, UINT32_MAX),
					      memory_order_relaxed);
	}
	scratch_give(w->pool, s);
}

/* True: it takes no longer than a thread to wake up. */
static bool is_short(const struct pool_job *j, u32 cost)
{
	return cost && j->total < ALONE_NS && cost * j->total <= ALONE_NS * 16;
}

static bool run_waiting(struct pool *p, const struct pool_job *j)
{
	bool alone = is_short(j, atomic_load_explicit(j->cost, memory_order_relaxed));
	struct waiting w = {.gang = {.total = j->total,
				     .threads = alone ? 1 : j->threads,
				     .most = MOST_THREADS,
				     .work = work_alone,
				     .arg = &w,
				     .crew = THREAD_TEAM_INIT},
			    .pool = p,
			    .job = j};
	*j->gang = &w.gang;
	program_threads_run(&w.gang);
	return !program_threads_left(&w.gang); /* without memory no thread has begun any */
}

bool pool_run(struct pool *p, const struct pool_job *j)
{
	if (j->gang)
		return run_waiting(p, j);
	struct scratch *s = scratch_take(p, j->scratch_bytes);
	if (!s)
		return false;
	char *scratch = (char *)(s + 1);
	u32 cost = atomic_load_explicit(j->cost, memory_order_relaxed);
	u64 done = 0;
	if (j->total == 1 || j->threads == 1)
		j->run(j->arg, 0, done = j->total, scratch);
	else if (is_short(j, cost))
		done = run_alone(j, scratch);
	if (done < j->total)
		run_shared(p, j, done, cost, scratch);
	scratch_give(p, s);
	return true;
}

struct pool *pool_open(void)
{
	struct pool *p = aligned_alloc(_Alignof(struct pool), sizeof *p);
	if (!p)
		return NULL;
	*p = (struct pool){.lock = PTHREAD_MUTEX_INITIALIZER, .generation = fork_generation()};
	return p;
}

void pool_close(struct pool *p)
{
	if (p->generation != fork_generation())
		forget_workers(p);
	p->ends = true;
	open_gate(p, p->nworkers);
	futex_wake(&p->launch, INT_MAX);
	for (u32 i = 0; i < p->nworkers; i++) {
		pthread_join(p->workers[i]->thread, NULL);
		free(p->workers[i]->scratch);
		free(p->workers[i]);
	}
	for (u32 i = 0; i < SPARES; i++)
		free(atomic_load(&p->spares[i]));
	pthread_mutex_destroy(&p->lock);
	free(p);
}
