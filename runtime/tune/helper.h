/* The tuner's helper process: runs configurations on the same GPU, with copies of some of the memory. If a
 * configuration fails or does not end, its process ends, and a new one is started.
 *
 * The process receives compiled kernels, argument bits and copies of memory. A command line, as of `tlc bench`, cannot
 * describe them: the contents of memory decide the work of a kernel, a C function of the caller completes each launch,
 * and the final ranking alternates configurations within one process. */
#ifndef TL_TUNE_HELPER_H
#define TL_TUNE_HELPER_H

#include "runtime/tune/trials.h"

struct helper;

/* Starts the process without waiting for it. The process must answer each call within `patience_ms`, else it is given
 * up. The caller keeps `command`. */
tl_status helper_open(struct device *dev, const char *const *command, int patience_ms, struct helper **out);
/* Starts the process again if it has ended or its device is unusable, and copies the memory. Call it after
 * helper_open, and again when helper_broken returns true. */
tl_status helper_begin(struct helper *h, const struct saved_memory *m);
/* Runs it like trial_run. The trial's `code` and stream are ignored, and its image must stay valid. */
tl_status helper_run(struct helper *h, const struct trial *t, double *cost);
/* True if the process has ended or its device has become unusable. Call it only after an error. */
bool helper_broken(const struct helper *h);
/* Ends the process, without waiting for its work. */
void helper_close(struct helper *h);

#endif
