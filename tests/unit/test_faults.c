/* Faults: what support/recover.h promises; what a bug in a device, in LLVM, or memory that runs out inside LLVM makes
 * of a call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "runtime/api/objects.h"
#include "llvm/emit_ptx.h"

static void assert_error(tl_status is, tl_status expected, const char *part)
{
	if (is != expected || !strstr(tl_error(NULL), part))
		fail_msg("status '%s', text '%s'; expected '%s', '%s'", tl_status_name(is), tl_error(NULL),
			 tl_status_name(expected), part);
}

/* --- recovery points ----------------------------------------------------------------------------------------- */

static char trail[64];

static void note(void *letter)
{
	strcat(trail, letter);
}

static void raise_inside(void *arg)
{
	struct cleanup a, b, c;
	struct arena scratch = {0};
	cleanup_push(&a, note, "a");
	cleanup_push(&b, note, "b");
	cleanup_push(&c, note, "c");
	cleanup_drop(&b); /* not the last one */
	arena_alloc(&scratch, 100000); /* freed all the same: the address sanitizer would tell */
	if (arg)
		fault_raise(FAULT_MEMORY, "no %s", (const char *)arg);
	arena_free(&scratch);
	cleanup_run(&c);
	cleanup_drop(&a);
}

static void points(void **state)
{
	(void)state;
	char text[64];
	struct recovery r = {.text = text, .size = sizeof text};
	trail[0] = 0;
	assert_int_equal(protect(&r, raise_inside, NULL), FAULT_NONE);
	assert_string_equal(trail, "c");
	trail[0] = 0;
	assert_int_equal(protect(&r, raise_inside, "luck"), FAULT_MEMORY);
	assert_string_equal(trail, "ca");
	assert_string_equal(text, "no luck");
	assert_false(recovery_here());
}

static void fault_again(void *unused)
{
	(void)unused;
	tl_assert(!"cleanups are sound");
}

static void with_bad_cleanup(void *unused)
{
	(void)unused;
	struct cleanup a, b;
	cleanup_push(&a, note, "a");
	cleanup_push(&b, fault_again, NULL);
	fault_raise(FAULT_MEMORY, "first");
}

static void nest(void *unused)
{
	(void)unused;
	char text[64];
	struct recovery r = {.text = text, .size = sizeof text};
	struct cleanup c;
	cleanup_push(&c, note, "outer ");
	assert_int_equal(protect(&r, raise_inside, "memory"), FAULT_MEMORY);
	fault_raise(FAULT_BUG, "second: %s", text);
}

/* A cleanup that faults does not keep the others from running; a fault reaches the innermost point, and no further. */
static void nested(void **state)
{
	(void)state;
	char text[200];
	struct recovery r = {.text = text, .size = sizeof text};
	trail[0] = 0;
	assert_int_equal(protect(&r, with_bad_cleanup, NULL), FAULT_MEMORY);
	assert_string_equal(trail, "a");
	assert_string_equal(text, "first");
	trail[0] = 0;
	assert_int_equal(protect(&r, nest, NULL), FAULT_BUG);
	assert_string_equal(trail, "caouter ");
	assert_non_null(strstr(text, "second: no memory"));
}

static struct once made = ONCE_INIT;
static int tries;

static void make_at_second_try(void)
{
	if (!tries++)
		fault_raise(FAULT_MEMORY, "not yet");
}

static void make(void *unused)
{
	(void)unused;
	once(&made, make_at_second_try);
}

static void once_again(void **state)
{
	(void)state;
	char text[64];
	struct recovery r = {.text = text, .size = sizeof text};
	assert_int_equal(protect(&r, make, NULL), FAULT_MEMORY);
	assert_int_equal(protect(&r, make, NULL), FAULT_NONE);
	assert_int_equal(protect(&r, make, NULL), FAULT_NONE);
	assert_int_equal(tries, 2);
}

static void describe_scope(const void *arg, FILE *out)
{
	fprintf(out, "the IR of %s", (const char *)arg);
}

static void fail_in_pass(void *unused)
{
	(void)unused;
	struct crash_scope pass = {.what = "licm", .dump = describe_scope, .arg = "kernel"};
	crash_enter(&pass);
	tl_assert(!"loops end");
}

static void descriptions(void **state)
{
	(void)state;
	char text[400], small[20];
	struct recovery r = {.text = text, .size = sizeof text};
	assert_int_equal(protect(&r, fail_in_pass, NULL), FAULT_BUG);
	assert_non_null(strstr(text, "internal error: tests/unit/test_faults.c:"));
	assert_non_null(strstr(text, "while: licm"));
	assert_non_null(strstr(text, "the IR of kernel"));
	r.text = small; /* cut */
	r.size = sizeof small;
	assert_int_equal(protect(&r, fail_in_pass, NULL), FAULT_BUG);
	assert_int_equal(strlen(small), sizeof small - 1);
}

/* --- the API on a device with a bug -------------------------------------------------------------------------- */

static enum { SOUND, BUG, BUG_IN_CHANGE } mode;

struct buggy {
	struct device device; /* first */
	tl_context *ctx;
	int closed, freed;
};

static void buggy_close(struct device *d)
{
	((struct buggy *)d)->closed++;
}
static tl_status buggy_alloc(struct device *d, size_t size, void **out)
{
	struct held h;
	(void)d, (void)size;
	if (mode == BUG_IN_CHANGE)
		lock_hold(&h, &((struct buggy *)d)->ctx->lock);
	tl_assert(mode == SOUND);
	*out = d;
	return TL_OK;
}
static void buggy_free(struct device *d, void *p)
{
	(void)p;
	((struct buggy *)d)->freed++;
}
static tl_status buggy_synchronize(struct device *d)
{
	(void)d;
	return TL_OK;
}
static const struct device_ops buggy_ops = {
	.name = "buggy",
	.close = buggy_close,
	.alloc = buggy_alloc,
	.free = buggy_free,
	.synchronize = buggy_synchronize,
};

static void contexts(void **state)
{
	(void)state;
	struct buggy d = {.device.ops = &buggy_ops};
	tl_buffer *b, *other;
	mode = SOUND;
	assert_int_equal(context_new(&d.device, &d.ctx), TL_OK);
	assert_int_equal(tl_buffer_create(d.ctx, 4, &b), TL_OK);
	mode = BUG;
	assert_error(tl_buffer_create(d.ctx, 4, &other), TL_ERR_INTERNAL, "internal error: tests/unit/test_faults.c:");
	mode = SOUND; /* nothing shared was being changed: the context goes on */
	assert_int_equal(tl_buffer_create(d.ctx, 4, &other), TL_OK);
	assert_string_equal(tl_error(d.ctx), "");
	mode = BUG_IN_CHANGE;
	assert_error(tl_buffer_create(d.ctx, 4, &other), TL_ERR_INTERNAL, "mode == SOUND");
	mode = SOUND;
	assert_error(tl_buffer_create(d.ctx, 4, &other), TL_ERR_INTERNAL,
		     "can only be destroyed, because an earlier call ended with an "
									  "internal error: tests/unit/test_faults.c");
	assert_error(tl_synchronize(d.ctx), TL_ERR_INTERNAL, "can only be destroyed");
	assert_error(tl_buffer_fill(b, 1), TL_ERR_INTERNAL, "can only be destroyed");
	tl_buffer_destroy(b); /* the lock was released */
	tl_context_destroy(d.ctx);
	assert_int_equal(d.freed, 2);
	assert_int_equal(d.closed, 1);
}

/* --- LLVM ---------------------------------------------------------------------------------------------------- */

static const char source[] = "import triton\nimport triton.language as tl\n\n@triton.jit\n"
			     "def k(x, n, B: tl.constexpr):\n    i = tl.arange(0, B)\n"
			     "    for j in range(0, n, B):\n        tl.store(x + i + j, tl.exp(tl.load(x + i + j, "
			     "mask=i + j < n)), mask=i + j < n)\n";

static tl_status prepare(tl_context *ctx, int block)
{
	static float x[4096];
	tl_module *m;
	tl_kernel *k;
	assert_int_equal(tl_module_load_source(ctx, "k.tl", source, sizeof source - 1, &m), TL_OK);
	assert_int_equal(tl_module_kernel(m, "k", &k), TL_OK);
	tl_arg args[] = {tl_ptr(TL_F32, x), tl_int(4000), tl_int(block)};
	tl_status s = tl_prepare(k, NULL, args, 3, NULL);
	char text[200];
	snprintf(text, sizeof text, "%s", tl_error(ctx));
	tl_module_destroy(m);
	if (s)
		failed_text(s, text);
	return s;
}

/* A function that stores what a call gives: of a function called `name`, or of inline assembly. */
static void emit_call(void *name)
{
	struct arena a = {0};
	struct session s;
	const char *error = NULL;
	size_t len;
	session_open(&s, &a, "m");
	LLVMTypeRef p = LLVMPointerTypeInContext(s.ctx, 0),
		    none = LLVMFunctionType(LLVMVoidTypeInContext(s.ctx), NULL, 0, false);
	LLVMTypeRef type = LLVMFunctionType(LLVMInt32TypeInContext(s.ctx), NULL, 0, false);
	LLVMValueRef f = LLVMAddFunction(s.mod, "f", none);
	LLVMValueRef callee = name ? LLVMAddFunction(s.mod, name, type)
				   : LLVMGetInlineAsm(type, "mov $0, 1;", 10, "={eax}", 6, true, false,
						      LLVMInlineAsmDialectATT, false);
	LLVMBuilderRef b = LLVMCreateBuilderInContext(s.ctx);
	LLVMPositionBuilderAtEnd(b, LLVMAppendBasicBlockInContext(s.ctx, f, ""));
	LLVMBuildStore(b, LLVMBuildCall2(b, type, callee, NULL, 0, ""), LLVMConstNull(p));
	LLVMBuildRetVoid(b);
	LLVMDisposeBuilder(b);
	const struct target sm_80 = cuda_description(80, false);
	const struct ptx_kernel k = {.threads = 128};
	assert_null(emit_ptx(&s, &sm_80, &k, NULL, &len, &error));
	snprintf(trail, sizeof trail, "%s", error);
	session_close(&s);
	arena_free(&a);
}

static void llvm_errors(void **state)
{
	(void)state;
	char text[400];
	struct recovery r = {.text = text, .size = sizeof text};
	tl_context *ctx;
	assert_int_equal(tl_context_create("sim:80", &ctx), TL_OK);
	enum fault f = protect(&r, emit_call, "llvm.amdgcn.workitem.id.x"); /* a fatal error */
	if (f != FAULT_BUG || !strstr(text, "internal error: LLVM: Cannot select"))
		fail_msg("fault %d: %s, %s", f, text, trail);
	assert_int_equal(protect(&r, emit_call, NULL), FAULT_NONE); /* a diagnostic */
	assert_string_equal(trail, "couldn't allocate output register for constraint '{eax}'");
	assert_int_equal(prepare(ctx, 64), TL_OK); /* LLVM goes on */
	tl_context_destroy(ctx);
}

/* operator new: the C++ library's protocol, with failures. */
typedef void handler(void);
extern handler *get_new_handler(void) __asm__("_ZSt15get_new_handlerv") __attribute__((weak));
static _Atomic long new_calls, new_fails;

#ifndef __SANITIZE_ADDRESS__ /* which has its own */
static void *new_bytes(size_t n)
{
	long call = ++new_calls;
	if (new_fails && call == new_fails && get_new_handler())
		get_new_handler()();
	return malloc(n ? n : 1);
}
TL_API void *_Znwm(size_t n);
void *_Znwm(size_t n)
{
	return new_bytes(n);
}
TL_API void *_Znam(size_t n);
void *_Znam(size_t n)
{
	return new_bytes(n);
}
#endif

static void llvm_memory(void **state)
{
	(void)state;
	tl_context *ctx;
	assert_int_equal(tl_context_create("sim:80", &ctx), TL_OK);
	assert_int_equal(prepare(ctx, 64), TL_OK); /* what LLVM does once */
	new_calls = 0;
	assert_int_equal(prepare(ctx, 128), TL_OK);
	long n = new_calls;
#ifdef __SANITIZE_ADDRESS__
	skip();
#endif
	assert_true(n > 1000);
	for (long k = 1; k < n; k += n / 60) {
		new_calls = 0;
		new_fails = k;
		assert_error(prepare(ctx, 128), TL_ERR_MEMORY, "out of host memory in LLVM");
		new_fails = 0;
		assert_int_equal(prepare(ctx, 128), TL_OK);
	}
	tl_context_destroy(ctx);
}

int main(void)
{
	setenv("TL_CACHE", "0", 1);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(points),       cmocka_unit_test(nested),   cmocka_unit_test(once_again),
		cmocka_unit_test(descriptions), cmocka_unit_test(contexts), cmocka_unit_test(llvm_errors),
		cmocka_unit_test(llvm_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
