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
	SPIN_NS = 20000,  /* time that a thread spins for the next launch before it sleeps */
	ALONE_NS = 8000,  /* work that takes less is done before another thread has started */
	CHUNK_NS = 50000, /* work of a chunk, if there is enough for all threads; a chunk has neighbours in memory */
	CHUNKS = 8,       /* least number of chunks of each thread, so that all threads end at about the same time */
	WAKES = 2,        /* sleeping threads that a thread wakes: a tree of wake-ups has few steps */
	SPARES = 8,       /* kept scratch memory of callers and helpers */
	MOST_SHARES = 128,
	MOST_THREADS = 1024,
	ALIGN = 64,
};

struct worker {
	struct pool *pool;
	pthread_t thread;
	u32 number; /* from 1; callers are 0 */
	u32 seen;   /* the last launch that the thread has seen */
	struct scratch *scratch;
};

/* The header of scratch memory. */
struct scratch {
	_Alignas(ALIGN) size_t bytes;
};

/* The programs that one thread runs first. Threads take programs from other shares after their own. Launches with the
 * same data then find it in the caches of the core, or group of cores, that used it before. */
struct share {
	_Alignas(ALIGN) _Atomic u64 next;
	u64 end;
};

struct pool {
	pthread_mutex_t lock; /* one launch at a time uses the threads */
	u32 generation;       /* fork_generation of the process with the threads */
	struct worker *workers[MOST_THREADS];
	u32 nworkers;
	_Atomic(struct scratch *) spares[SPARES];
	/* The number of the last launch; sleeping threads wait for a change of it. */
	_Alignas(ALIGN) _Atomic u32 launch;
	_Atomic u32 asleep;
	/* The launch that threads may join, or 0 between launches, and the number of threads that have joined. */
	_Alignas(ALIGN) _Atomic u64 gate;
	_Atomic u32 waits; /* the caller sleeps until the joined threads have left */
	bool ends;
	/* the data of that launch */
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

/* s if it is large enough, else a new allocation; frees s then. */
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

/* Runs chunks that no thread has begun, first of thread `number`'s share. Returns the number of programs. */
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

/* Works for another thread's launch. Without scratch memory it does nothing, and other threads do the work. */
static void work_beside(struct pool *p, u32 number, struct scratch *s)
{
	if (s)
		work(p, number, (char *)(s + 1));
}

/* Joins a launch. False: the launch is over, or has enough threads. */
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
	/* the last thread has left, and no thread can join */
	if (atomic_fetch_sub(&p->gate, 1) == 1 && atomic_load(&p->waits))
		futex_wake(joined_word(p), 1);
}

/* Waits for the next launch and returns its number. */
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

/* Starts threads until there are n. If a thread cannot be started, the existing threads do the work. */
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

/* Starts a launch that threads can join. */
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

/* Stops threads from joining, and waits for the threads that have joined. */
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

/* Divides the programs from `from` on into shares. Short programs have a share for each thread. Long programs have one
 * share for all threads, because neighbouring programs use the same operands. */
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

/* For the child of a fork: its parent's threads do not exist, and no launch is in progress. */
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

/* Runs a short grid, which takes less time than to wake a thread, in this thread. Returns the number of programs that
 * ran: all, unless they take longer than in the last launch. */
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

/* --- launches with waiting programs --------------------------------------------------------------------------- */

/* A launch whose programs may wait has separate threads, because it may wait for a launch by another host thread. */
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

/* True if the launch takes less time than to wake a thread. */
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
	return !program_threads_left(&w.gang); /* if memory runs out, no program has begun */
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
