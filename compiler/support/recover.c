#include "support/recover.h"

#include <stdlib.h>

#include "support/forked.h"

/* State of this thread's calls. Nothing here outlives a call. Not static TLS (initial-exec): a program that loads the
 * library by dlopen may have no static TLS left. */
static _Thread_local struct {
	struct recovery *recovery;
	struct cleanup *cleanups;
	struct crash_scope *crash;
} thread;

/* --- work in progress ---------------------------------------------------------------------------------------- */

void crash_enter(struct crash_scope *s)
{
	s->outer = thread.crash;
	thread.crash = s;
}

void crash_leave(struct crash_scope *s)
{
	thread.crash = s->outer;
}

/* --- cleanups ------------------------------------------------------------------------------------------------ */

void cleanup_push(struct cleanup *c, void (*run)(void *arg), void *arg)
{
	*c = (struct cleanup){.run = run, .arg = arg, .outer = thread.cleanups};
	thread.cleanups = c;
}

void cleanup_drop(struct cleanup *c)
{
	struct cleanup **at = &thread.cleanups; /* locks are not always released in reverse order */
	while (*at != c)
		at = &(*at)->outer;
	*at = c->outer;
}

void cleanup_run(struct cleanup *c)
{
	cleanup_drop(c);
	c->run(c->arg);
}

static void free_arena(void *arena)
{
	arena_free(arena);
}

void cleanup_arena(struct cleanup *c, struct arena *a)
{
	cleanup_push(c, free_arena, a);
}

void abandoned_add(struct abandoned *a, const void *owner, void (*free)(struct abandoned *a))
{
	const char *top = __builtin_frame_address(0), *at = owner;
	struct recovery *r = at > top ? thread.recovery : NULL;
	while (r && at > (const char *)r) /* the stack grows downwards */
		r = r->outer;
	*a = (struct abandoned){.free = free};
	if (!r)
		return;
	a->next = r->abandoned;
	a->at = &r->abandoned;
	if (a->next)
		a->next->at = &a->next;
	r->abandoned = a;
}

void abandoned_remove(struct abandoned *a)
{
	if (!a->at)
		return;
	*a->at = a->next;
	if (a->next)
		a->next->at = a->at;
	a->at = NULL;
}

static void unlock_in_doubt(void *held)
{
	struct held *h = held;
	thread.recovery->in_doubt = true;
	pthread_mutex_unlock(h->lock);
}

void lock_hold(struct held *h, pthread_mutex_t *lock)
{
	h->lock = lock;
	pthread_mutex_lock(lock);
	cleanup_push(&h->cleanup, unlock_in_doubt, h);
}

void lock_release(struct held *h)
{
	cleanup_drop(&h->cleanup);
	pthread_mutex_unlock(h->lock);
}

/* --- recovery points ----------------------------------------------------------------------------------------- */

void recovery_begin(struct recovery *r)
{
	r->fault = FAULT_NONE;
	r->in_doubt = r->from_llvm = false;
	r->outer = thread.recovery;
	r->cleanups = thread.cleanups;
	r->crash = thread.crash;
	r->abandoned = NULL;
	thread.recovery = r;
}

void recovery_end(struct recovery *r)
{
	thread.recovery = r->outer;
	while (r->abandoned) /* another owner has taken the memory over */
		abandoned_remove(r->abandoned);
}

bool recovery_here(void)
{
	return thread.recovery;
}

enum fault protect(struct recovery *r, void (*body)(void *arg), void *arg)
{
	recovery_begin(r);
	if (setjmp(r->to)) {
		tl_assert(thread.recovery == r->outer);
		return r->fault;
	}
	body(arg);
	recovery_end(r);
	return FAULT_NONE;
}

/* --- faults -------------------------------------------------------------------------------------------------- */

struct crash_dump {
	const struct crash_scope *scope;
	FILE *out;
};

static void dump(void *arg)
{
	const struct crash_dump *d = arg;
	d->scope->dump(d->scope->arg, d->out);
}

/* The running passes, and the IR of the innermost pass that has a dump. A dump that raises a fault ends early. */
static void describe(const struct crash_scope *s, FILE *out)
{
	char text[64];
	struct recovery r = {.text = text, .size = sizeof text};
	for (; s; s = s->outer) {
		fprintf(out, "  while: %s\n", s->what);
		if (!s->dump)
			continue;
		struct crash_dump d = {s, out};
		protect(&r, dump, &d);
		break;
	}
	fputs("This is a bug in tlc; please report it with the input that caused it.", out);
}

static void describe_into(struct recovery *r, const struct crash_scope *s, const char *text)
{
	int n = snprintf(r->text, r->size, "%s\n", text);
	size_t len = (size_t)n < r->size ? (size_t)n : r->size;
	FILE *out = len < r->size ? fmemopen(r->text + len, r->size - len, "w") : NULL;
	if (out) {
		describe(s, out);
		fclose(out); /* adds a NUL, or has truncated the text */
	}
	r->text[r->size - 1] = 0;
}

_Noreturn static void raise_text(enum fault fault, bool from_llvm, const char *text)
{
	struct recovery *r = thread.recovery;
	struct crash_scope *scope = thread.crash;
	thread.crash = NULL; /* a fault in the description must not recurse */
	if (!r) {
		fprintf(stderr, "tlc: %s\n", text);
		if (fault == FAULT_BUG) {
			describe(scope, stderr);
			fputc('\n', stderr);
		}
		abort();
	}
	if (r->fault == FAULT_NONE) { /* otherwise a cleanup raised this fault: the first text stays */
		r->fault = fault;
		r->from_llvm = from_llvm;
		if (fault == FAULT_BUG)
			describe_into(r, scope, text);
		else
			snprintf(r->text, r->size, "%s", text);
	}
	while (thread.cleanups != r->cleanups) {
		struct cleanup *c = thread.cleanups;
		thread.cleanups = c->outer;
		if (!(c->of_llvm && r->from_llvm))
			c->run(c->arg);
	}
	while (r->abandoned) {
		struct abandoned *a = r->abandoned;
		abandoned_remove(a);
		a->free(a);
	}
	thread.crash = r->crash;
	thread.recovery = r->outer;
	longjmp(r->to, 1);
}

void fault_raise(enum fault fault, const char *format, ...)
{
	char text[1024];
	va_list ap;
	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	raise_text(fault, false, text);
}

void fault_from_llvm(enum fault fault, const char *text)
{
	raise_text(fault, true, text);
}

void tl_assert_failed(const char *file, int line, const char *what)
{
	fault_raise(FAULT_BUG, "internal error: %s:%d: %s", file, line, what);
}

void tl_out_of_memory(size_t size)
{
	fault_raise(FAULT_MEMORY, "out of host memory allocating %zu bytes", size);
}

void *tl_calloc(size_t size)
{
	void *p = calloc(1, size);
	if (!p)
		tl_out_of_memory(size);
	return p;
}

/* --- threads ------------------------------------------------------------------------------------------------- */

bool fault_catch(struct first_fault *c, void (*body)(void *arg), void *arg)
{
	char text[sizeof c->text];
	struct recovery r = {.text = text, .size = sizeof text};
	enum fault fault = protect(&r, body, arg);
	if (fault && !atomic_flag_test_and_set(&c->taken)) {
		memcpy(c->text, text, sizeof text);
		atomic_store(&c->fault, fault);
	}
	return !fault;
}

void fault_pass_on(const struct first_fault *c)
{
	int fault = atomic_load(&c->fault);
	if (fault)
		fault_raise((enum fault)fault, "%s", c->text);
}

static void unlock(void *lock)
{
	pthread_mutex_unlock(lock);
}

void once(struct once *o, void (*make)(void))
{
	if (atomic_load_explicit(&o->done, memory_order_acquire))
		return;
	struct cleanup c;
	struct fork_section s;
	fork_section_begin(&s);
	pthread_mutex_lock(&o->lock);
	cleanup_push(&c, unlock, &o->lock);
	if (!atomic_load(&o->done))
		make();
	atomic_store_explicit(&o->done, true, memory_order_release);
	cleanup_run(&c);
	fork_section_end(&s);
}
