#include "llvm/session.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdlib.h>

/* Whether this thread is in a session. */
static _Thread_local bool inside;

/* --- fatal errors of LLVM ------------------------------------------------------------------------------------ */

static void on_fatal_error(const char *reason)
{
	char text[600];
	if (!inside) {
		/* returns to LLVM, which then exits, as without a handler */
		fprintf(stderr, "LLVM ERROR: %s\n", reason);
		return;
	}
	snprintf(text, sizeof text, "internal error: LLVM: %s", reason);
	fault_from_llvm(FAULT_BUG, text);
}

/* C++ functions under their mangled names. Weak: if they are missing, running out of memory stays fatal. */
typedef void new_handler(void);
extern new_handler *set_new_handler(new_handler *f) __asm__("_ZSt15set_new_handlerPFvvE") __attribute__((weak));
extern _Noreturn void throw_bad_alloc(void) __asm__("_ZSt17__throw_bad_allocv") __attribute__((weak));
typedef void bad_alloc_handler(void *arg, const char *reason, bool wants_report);
extern void install_bad_alloc_handler(bad_alloc_handler *f, void *arg)
	__asm__("_ZN4llvm31install_bad_alloc_error_handlerEPFvPvPKcbES0_") __attribute__((weak));

static new_handler *handler_before;

/* Called if operator new fails. */
static void on_new_failed(void)
{
	if (inside)
		fault_from_llvm(FAULT_MEMORY, "out of host memory in LLVM");
	if (handler_before)
		handler_before();
	else if (throw_bad_alloc)
		throw_bad_alloc();
	else
		abort();
}

/* Called if an allocation of LLVM's containers fails. */
static void on_bad_alloc(void *arg, const char *reason, bool wants_report)
{
	(void)arg, (void)wants_report;
	if (inside)
		fault_from_llvm(FAULT_MEMORY, "out of host memory in LLVM");
	fprintf(stderr, "LLVM ERROR: out of memory\n%s\n", reason);
	abort();
}

#define INITIALIZE(target)                                                                                             \
	do {                                                                                                           \
		LLVMInitialize##target##TargetInfo();                                                                  \
		LLVMInitialize##target##Target();                                                                      \
		LLVMInitialize##target##TargetMC();                                                                    \
		LLVMInitialize##target##AsmPrinter();                                                                  \
	} while (0)

static void initialize(void)
{
	INITIALIZE(NVPTX);
	INITIALIZE(X86);
	INITIALIZE(AArch64);
}

static void install_handlers(void)
{
	LLVMInstallFatalErrorHandler(on_fatal_error);
	if (set_new_handler)
		handler_before = set_new_handler(on_new_failed);
	if (install_bad_alloc_handler)
		install_bad_alloc_handler(on_bad_alloc, NULL);
}

/* Without a handler LLVM prints diagnostics, and exits after an error. The handler must not raise a fault through
 * LLVM's frames, so it allocates no memory. */
static void on_diagnostic(LLVMDiagnosticInfoRef info, void *session)
{
	struct session *s = session;
	LLVMDiagnosticSeverity severity = LLVMGetDiagInfoSeverity(info);
	char *to = severity == LLVMDSError ? s->error : severity == LLVMDSWarning ? s->warning : NULL;
	if (to && !*to) {
		char *text = LLVMGetDiagInfoDescription(info);
		snprintf(to, sizeof s->error, "%s", text);
		LLVMDisposeMessage(text);
	}
	s->nerrors += severity == LLVMDSError;
}

/* --- machines ------------------------------------------------------------------------------------------------ */

static struct {
	pthread_mutex_t lock;
	struct machine idle[8];
	u32 n;
} machines = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The oldest PTX version with the instructions emitted for the target: fp8 mma needs 8.4, predicates of cp.async
 * 7.5. */
static const char *ptx_version(int sm)
{
	return sm >= 89 ? "+ptx84" : "+ptx75";
}

static const char *triple_of(const struct target *d)
{
	return d->kind == TARGET_CUDA ? "nvptx64-nvidia-cuda"
	       : d->level == CPU_NEON ? "aarch64-unknown-linux-gnu"
				      : "x86_64-unknown-linux-gnu";
}

static bool make_machine(struct session *s, const struct target *d, bool quick, const char **error)
{
	LLVMTargetRef target;
	const char *triple = triple_of(d), *cpu, *features;
	if (LLVMGetTargetFromTriple(triple, &target, &s->text)) {
		*error = arena_printf(s->arena, "%s", s->text);
		return false;
	}
	if (d->kind == TARGET_CUDA) {
		cpu = arena_printf(s->arena, "sm_%d%s", d->sm, d->arch_specific ? "a" : "");
		features = ptx_version(d->sm);
	} else {
		cpu = cpu_llvm_name(d);
		features = cpu_llvm_features(s->arena, d);
	}
	/* The aggressive level would add two runs of GVN, which find nothing after EarlyCSE: the PTX is the same. */
	LLVMCodeGenOptLevel level = quick ? LLVMCodeGenLevelNone : LLVMCodeGenLevelDefault;
	s->machine = (struct machine){LLVMCreateTargetMachine(target, triple, cpu, features, level,
							      d->kind == TARGET_CUDA ? LLVMRelocDefault : LLVMRelocPIC,
							      LLVMCodeModelDefault),
				      *d, quick, 0};
	return true;
}

static bool same_machine(const struct target *x, const struct target *y)
{
	return x->kind == y->kind && x->sm == y->sm && x->arch_specific == y->arch_specific && x->level == y->level &&
	       x->extensions == y->extensions;
}

static bool take_machine(struct session *s, const struct target *target, bool quick)
{
	bool found = false;
	pthread_mutex_lock(&machines.lock);
	for (u32 i = machines.n; i-- && !found;) {
		found = machines.idle[i].quick == quick && same_machine(&machines.idle[i].target, target);
		if (found) {
			s->machine = machines.idle[i];
			machines.idle[i] = machines.idle[--machines.n];
		}
	}
	pthread_mutex_unlock(&machines.lock);
	return found;
}

static void give_back(struct machine *m)
{
	enum { MOST_USES = 1000 };
	pthread_mutex_lock(&machines.lock);
	bool keep = ++m->uses < MOST_USES && machines.n < ARRAY_LEN(machines.idle);
	if (keep)
		machines.idle[machines.n++] = *m;
	pthread_mutex_unlock(&machines.lock);
	if (!keep)
		LLVMDisposeTargetMachine(m->tm);
}

static bool find_machine(struct session *s, const struct target *target, bool quick, const char **error)
{
	return take_machine(s, target, quick) || make_machine(s, target, quick, error);
}

bool session_quick_machine(struct session *s, const struct target *target, const char **error)
{
	give_back(&s->machine);
	s->machine.tm = NULL;
	return find_machine(s, target, true, error);
}

/* Code for debuggers is compiled without optimizations. */
bool session_machine(struct session *s, const struct target *target, const char **error)
{
	if (!find_machine(s, target, target->lines, error))
		return false;
	s->data = LLVMCreateTargetDataLayout(s->machine.tm);
	s->layout = LLVMCopyStringRepOfTargetData(s->data);
	LLVMSetTarget(s->mod, triple_of(target));
	LLVMSetDataLayout(s->mod, s->layout);
	return true;
}

/* --- using LLVM ---------------------------------------------------------------------------------------------- */

static void go_outside(void *unused)
{
	(void)unused;
	inside = false;
}

void llvm_enter(struct llvm_use *u)
{
	static struct once installed = ONCE_INIT, started = ONCE_INIT;
	cleanup_push(&u->inside, go_outside, NULL);
	inside = true;
	once(&installed, install_handlers);
	once(&started, initialize);
}

void llvm_leave(struct llvm_use *u)
{
	cleanup_run(&u->inside);
}

/* --- sessions ------------------------------------------------------------------------------------------------ */

static void dispose(void *session)
{
	struct session *s = session;
	if (s->out)
		LLVMDisposeMemoryBuffer(s->out);
	if (s->text)
		LLVMDisposeMessage(s->text);
	if (s->layout)
		LLVMDisposeMessage(s->layout);
	if (s->data)
		LLVMDisposeTargetData(s->data);
	if (s->mod)
		LLVMDisposeModule(s->mod);
	if (s->ctx)
		LLVMContextDispose(s->ctx);
	if (s->machine.tm)
		give_back(&s->machine);
}

void session_open(struct session *s, struct arena *arena, const char *name)
{
	*s = (struct session){.arena = arena};
	llvm_enter(&s->use);
	cleanup_push(&s->objects, dispose, s);
	s->objects.of_llvm = true;
	s->ctx = LLVMContextCreate();
	LLVMContextSetDiagnosticHandler(s->ctx, on_diagnostic, s);
	s->mod = LLVMModuleCreateWithNameInContext(name, s->ctx);
}

void session_close(struct session *s)
{
	cleanup_run(&s->objects);
	llvm_leave(&s->use);
}

/* --- the module ---------------------------------------------------------------------------------------------- */

void session_verify(const struct session *s)
{
#ifndef NDEBUG
	char *invalid = NULL;
	if (LLVMVerifyModule(s->mod, LLVMReturnStatusAction, &invalid))
		fault_raise(FAULT_BUG, "internal error: invalid LLVM IR: %s", invalid);
	LLVMDisposeMessage(invalid);
#else
	(void)s;
#endif
}

bool session_passes(struct session *s, const char *passes, const char **error)
{
	LLVMPassBuilderOptionsRef o = LLVMCreatePassBuilderOptions();
	LLVMErrorRef e = LLVMRunPasses(s->mod, passes, s->machine.tm, o);
	LLVMDisposePassBuilderOptions(o);
	if (!e)
		return true;
	char *message = LLVMGetErrorMessage(e);
	*error = arena_printf(s->arena, "%s", message);
	LLVMDisposeErrorMessage(message);
	return false;
}

const char *session_text(struct session *s)
{
	s->text = LLVMPrintModuleToString(s->mod);
	const char *text = arena_printf(s->arena, "%s", s->text);
	LLVMDisposeMessage(s->text);
	s->text = NULL;
	return text;
}
