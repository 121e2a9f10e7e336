/* A mirror of a device: the same GPU in another process, with copies of some of the memory. If a kernel fails or does
 * not end, that process ends, and a new one is started.
 *
 * Callers pass addresses of the mirrored device. Memory that the mirror allocates itself has separate addresses. */
#ifndef TL_REMOTE_TUNER_CLIENT_H
#define TL_REMOTE_TUNER_CLIENT_H

#include "runtime/device/device.h"

/* Starts the process without waiting for it. The process must answer each call within `patience_ms`, else it is given
 * up. The caller keeps `command`. */
tl_status mirror_open(struct device *of, const char *const *command, int patience_ms, struct device **out);
/* Adds the memory that a kernel accesses through the pointer `a` to the memory that the next mirror_begin copies. */
tl_status mirror_add(struct device *mirror, const char *name, const tl_arg *a);
/* Copies the memory to the process, and discards results of earlier launches. If the process had ended, the mirror's
 * own allocations are lost. */
tl_status mirror_begin(struct device *mirror);
/* Loads the kernel of an image, which must stay valid. */
tl_status mirror_load(struct device *mirror, const struct image *im, void **out);
/* Ends the process; mirror_begin starts another. */
void mirror_end(struct device *mirror);
void mirror_close(struct device *mirror);

#endif
