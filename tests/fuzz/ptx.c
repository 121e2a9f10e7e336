/* Fuzzing the simulator's reader and decoder of PTX: any bytes in, and out comes a module whose instructions all have a
 * meaning, or a message. `make fuzz` builds it.
 *
 *   build-fuzz/fuzz-ptx -dict=tests/fuzz/ptx.dict CORPUS…      the corpus: what `tlc --emit ptx` writes */
#include <stdlib.h>
#include <string.h>

#include "runtime/sim/sim.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct arena a = {0};
	const char *error = NULL;
	/* a copy, so that reading past its end is seen */
	char *text = malloc(size + 1);
	memcpy(text, data, size);
	text[size] = 0;
	struct ptx_module *m = ptx_read(&a, text, size, &error);
	bool ok = m && sim_decode(&a, m, &error);
	if (!ok && (!error || !*error))
		abort();
	for (u32 k = 0; ok && k < m->nkernels; k++)
		for (u32 n = 0; n < m->kernels[k].ncode; n++)
			if (!m->kernels[k].code[n].run)
				abort();
	free(text);
	arena_free(&a);
	return 0;
}
