/* A context and a module of it, for tests that give each case its own. */
#ifndef TEST_FIXTURE_H
#define TEST_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "runtime/tl.h"

struct fixture {
	tl_context *ctx;
	tl_module *module;
};

static inline void ok(tl_status s)
{
	if (s)
		fail_msg("%s: %s", tl_status_name(s), tl_error(NULL));
}

static inline int shut(void **state)
{
	struct fixture *f = *state;
	tl_context_destroy(f->ctx);
	free(f);
	return 0;
}

static inline tl_kernel *get(const struct fixture *f, const char *name)
{
	tl_kernel *k;
	ok(tl_module_kernel(f->module, name, &k));
	return k;
}

#endif
