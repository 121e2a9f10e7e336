/* What tests of the runtime share: a context and a module of it, for those that give each case its own, and checks of a
 * status and its text. */
#ifndef TEST_FIXTURE_H
#define TEST_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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

static inline void assert_error(tl_status is, tl_status expected, const char *part)
{
	if (is != expected || !strstr(tl_error(NULL), part))
		fail_msg("status '%s', text '%s'; expected '%s', '%s'", tl_status_name(is), tl_error(NULL),
			 tl_status_name(expected), part);
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
