/* Recovery: how the library survives faults without ending the program that uses it.
 *
 * A fault is the host's memory running out, a broken invariant (tl_assert), or a fatal error of LLVM. Code between the
 * place of a fault and the API does not check for it: fault_raise leaves all of it at once, for the innermost recovery
 * point of this thread.
 *
 * - protect(&r, body, arg) is a recovery point: it runs the body and reports how the body ended. The API puts one
 *   around each call and turns the fault into a tl_status (runtime/launch/api_module.c). Recovery points nest.
 * - cleanup_push(&c, run, arg) registers a release that the way out must not skip: of a lock, LLVM's objects, the
 *   locale, a half-made object. Memory of an arena that an outer frame frees needs none. fault_raise runs the cleanups
 *   of the frames that it leaves, innermost first, while these still stand; then it jumps. Without a fault,
 *   cleanup_drop forgets the cleanup and cleanup_run runs it.
 * - An arena in a frame that a fault leaves, such as the scratch memory of a pass, is freed without being asked: each
 *   of its chunks is noted at the recovery point when it is allocated (abandoned_add), if the arena lies between that
 *   point and the top of the stack.
 * - A thread of a gang (program_threads.h) has no recovery point of its own, and must not leave its work: there
 *   fault_catch() runs each piece of work under one and keeps the first fault, and fault_pass_on() raises it again
 *   when the gang has ended, in the calling thread.
 * - Without a recovery point (tlc itself, tests of the inside) a fault is printed, with what was being done
 *   (crash_enter) and the IR at hand, and abort() is called.
 *
 * Why this is sound: memory of a compilation or a launch belongs to the call and dies with it. State shared by threads
 * is changed under a lock, by code that allocates before it changes. A broken invariant under the lock leaves that
 * state in doubt; lock_hold notes this in recovery.in_doubt, and the context is then not used any more. */
#ifndef TLC_SUPPORT_RECOVER_H
#define TLC_SUPPORT_RECOVER_H

#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>

#include "support/arena.h"

enum fault { FAULT_NONE, FAULT_MEMORY, FAULT_BUG };

struct cleanup {
	void (*run)(void *arg);
	void *arg;
	/* not run when the fault came from inside LLVM, which may be in the middle of changing these objects */
	bool of_llvm;
	struct cleanup *outer;
};
void cleanup_push(struct cleanup *c, void (*run)(void *arg), void *arg);
void cleanup_drop(struct cleanup *c);
void cleanup_run(struct cleanup *c);
/* Frees an arena that other threads allocate from, too. */
void cleanup_arena(struct cleanup *c, struct arena *a);

/* A block of memory that a recovery point frees after a fault, in a list of its own. */
struct abandoned {
	struct abandoned *next, **at; /* at: what points here; NULL: in no list */
	void (*free)(struct abandoned *a);
};
/* Notes the block at the innermost recovery point outside of the owner's frame, if there is one. */
void abandoned_add(struct abandoned *a, const void *owner, void (*free)(struct abandoned *a));
void abandoned_remove(struct abandoned *a);

struct recovery {
	char *text; /* the caller's: what happened, cut to `size` */
	size_t size;
	enum fault fault;
	bool in_doubt; /* the thread found a bug while it changed state that threads share */
	/* the rest is recover.c's */
	bool from_llvm;
	struct recovery *outer;
	struct cleanup *cleanups;
	struct abandoned *abandoned;
	struct crash_scope *crash;
	jmp_buf to;
};
enum fault protect(struct recovery *r, void (*body)(void *arg), void *arg);
/* The two halves of protect, for callers without a function for the body:
 *   recovery_begin(&r); if (setjmp(r.to)) …a fault; else { …; recovery_end(&r); } */
void recovery_begin(struct recovery *r);
void recovery_end(struct recovery *r);
/* Is there a recovery point in this thread? */
bool recovery_here(void);

_Noreturn void fault_raise(enum fault fault, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same for an error that LLVM, or the C++ library under it, reports from inside. */
_Noreturn void fault_from_llvm(enum fault fault, const char *text);

/* A lock on state that threads share, released when a fault leaves the frame. */
struct held {
	struct cleanup cleanup;
	pthread_mutex_t *lock;
};
void lock_hold(struct held *h, pthread_mutex_t *lock);
void lock_release(struct held *h);

/* The first fault of several threads. */
struct first_fault {
	_Atomic(int) fault; /* enum fault */
	atomic_flag taken;
	char text[1024];
};
#define FIRST_FAULT_NONE {.taken = ATOMIC_FLAG_INIT}
/* False after a fault in the body, which is kept. */
bool fault_catch(struct first_fault *c, void (*body)(void *arg), void *arg);
void fault_pass_on(const struct first_fault *c);

/* pthread_once for a function that may fault: after a fault, the next call tries again. */
struct once {
	pthread_mutex_t lock;
	atomic_bool done;
};
#define ONCE_INIT {.lock = PTHREAD_MUTEX_INITIALIZER}
void once(struct once *o, void (*make)(void));

#endif
