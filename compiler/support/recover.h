/* Recovery: the library survives faults without ending the program that uses it.
 *
 * A fault is host memory running out, a failed assertion (tl_assert), or a fatal error of LLVM. Code between the fault
 * and the API does not check for faults: fault_raise unwinds to the innermost recovery point of this thread.
 *
 * - protect(&r, body, arg) is a recovery point: it runs the body and returns how the body ended. The API puts a
 *   recovery point around each call and turns the fault into a tl_status (runtime/api/api_guard.h). Recovery points
 *   nest.
 * - cleanup_push(&c, run, arg) registers a release that unwinding must not skip: of a lock, LLVM's objects, the locale,
 *   a half-made object. Memory of an arena that an outer frame frees needs no cleanup. fault_raise runs the cleanups of
 *   the unwound frames, innermost first, while these frames still exist, and then jumps. Without a fault, cleanup_drop
 *   removes the cleanup and cleanup_run removes and runs it.
 * - An arena in an unwound frame, such as the scratch memory of a pass, is freed automatically: each of its chunks is
 *   registered at the recovery point when it is allocated (abandoned_add), if the arena lies between that point and the
 *   top of the stack.
 * - A thread of program_threads.h has no recovery point and must not unwind out of its work. There, fault_catch() runs
 *   each piece of work under a recovery point and keeps the first fault. fault_pass_on() raises that fault again in the
 *   calling thread after the threads have ended.
 * - Without a recovery point (tlc itself, unit tests) a fault is printed with the work in progress (crash_enter) and
 *   the current IR, and abort() is called.
 *
 * Why this is sound: memory of a compilation or a launch belongs to the call and is freed with it. State shared by
 * threads is changed under a lock, by code that allocates before it changes. A failed assertion under the lock leaves
 * that state in doubt. lock_hold records this in recovery.in_doubt, and the context is then not used any more. */
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
	/* not run if the fault came from LLVM, which may have been changing these objects */
	bool of_llvm;
	struct cleanup *outer;
};
void cleanup_push(struct cleanup *c, void (*run)(void *arg), void *arg);
void cleanup_drop(struct cleanup *c);
void cleanup_run(struct cleanup *c);
/* Registers a cleanup that frees an arena, also one from which other threads allocate. */
void cleanup_arena(struct cleanup *c, struct arena *a);

/* A block of memory in the list of a recovery point, which frees it after a fault. */
struct abandoned {
	struct abandoned *next, **at; /* at: the pointer that points here; NULL if in no list */
	void (*free)(struct abandoned *a);
};
/* Adds the block to the innermost recovery point outside the owner's frame, if there is one. */
void abandoned_add(struct abandoned *a, const void *owner, void (*free)(struct abandoned *a));
void abandoned_remove(struct abandoned *a);

struct recovery {
	char *text; /* the caller's buffer for the description of the fault, truncated to `size` */
	size_t size;
	enum fault fault;
	bool in_doubt; /* an assertion failed while the thread changed state that threads share */
	/* the remaining fields are private to recover.c */
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
/* True if this thread has a recovery point. */
bool recovery_here(void);

_Noreturn void fault_raise(enum fault fault, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* fault_raise for an error reported inside LLVM or the C++ library. */
_Noreturn void fault_from_llvm(enum fault fault, const char *text);

/* A held lock on state that threads share. Released if a fault unwinds the frame. */
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
/* Runs the body. False after a fault in the body, which is kept if it is the first one. */
bool fault_catch(struct first_fault *c, void (*body)(void *arg), void *arg);
void fault_pass_on(const struct first_fault *c);

/* pthread_once for a function that may raise a fault: after a fault, the next call tries again. */
struct once {
	pthread_mutex_t lock;
	atomic_bool done;
};
#define ONCE_INIT {.lock = PTHREAD_MUTEX_INITIALIZER}
void once(struct once *o, void (*make)(void));

#endif
