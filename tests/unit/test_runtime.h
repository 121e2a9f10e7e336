/* Shared by the tests of the runtime: a module of two kernels. */
#ifndef TEST_RUNTIME_H
#define TEST_RUNTIME_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fixture.h"
#include "runtime/api/objects.h"

#define ARGS(...) (tl_arg[]){__VA_ARGS__}, sizeof((tl_arg[]){__VA_ARGS__}) / sizeof(tl_arg)

static const char source[] =
	"import triton\nimport triton.language as tl\n\n"
	"@triton.jit\ndef relu(x):\n    return tl.maximum(x, 0.0)\n\n"
	"@triton.constexpr_function\ndef twice(x):\n    return 2 * x\n\n"
	"@triton.jit\ndef scale_kernel(x, n, s, BLOCK: tl.constexpr, ACT: tl.constexpr = None):\n"
	"    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
	"    v = tl.load(x + i, mask=i < n) * s\n"
	"    if ACT is not None:\n        v = ACT(v)\n"
	"    tl.store(x + i, v, mask=i < n)\n\n"
	"@triton.jit\ndef broken(x):\n    tl.store(x, undefined_name)\n";

/* a device address that 16 divides */
static void *const x16 = (void *)(uintptr_t)0x1000;

static inline tl_module *load(tl_context *ctx)
{
	tl_module *m;
	if (tl_module_load_source(ctx, "t.tl", source, sizeof source - 1, &m))
		fail_msg("%s", tl_error(ctx));
	return m;
}

#endif
