/* A name for mkdtemp or mkstemp in $TMPDIR, which run.sh removes: libFuzzer ends without running atexit functions. */
#ifndef TL_FUZZ_TEMPORARY_H
#define TL_FUZZ_TEMPORARY_H

#include <stdio.h>
#include <stdlib.h>

static inline void temporary(char *name, size_t size)
{
	const char *in = getenv("TMPDIR");
	snprintf(name, size, "%s/tlc-fuzz-XXXXXX", in && *in ? in : "/tmp");
}

#endif
