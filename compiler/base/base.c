#include "base/base.h"

#include <stdlib.h>

/* The only thread-local state of the library: a stack of descriptions, read only on the way to abort(). */
static _Thread_local struct crash_scope *crash_top;

void crash_enter(struct crash_scope *s)
{
	s->outer = crash_top;
	crash_top = s;
}

void crash_leave(struct crash_scope *s)
{
	crash_top = s->outer;
}

void tl_assert_failed(const char *file, int line, const char *what)
{
	struct crash_scope *s = crash_top;
	crash_top = NULL; /* a dump that asserts must not recurse */
	fprintf(stderr, "tlc: internal error: %s:%d: %s\n", file, line, what);
	for (; s; s = s->outer) {
		fprintf(stderr, "  while: %s\n", s->what);
		if (s->dump) {
			s->dump(s->arg, stderr);
			break;
		}
	}
	fprintf(stderr, "This is a bug in tlc; please report it with the input that caused it.\n");
	abort();
}

void tl_out_of_memory(size_t size)
{
	fprintf(stderr, "tlc: out of memory allocating %zu bytes\n", size);
	abort();
}
