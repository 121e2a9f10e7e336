/* The mirror of a device: the same GPU in another process, with copies of some of the memory. A kernel that fails or
 * does not end takes that process with it, and another one is started.
 *
 * It is called with the addresses of the device that it mirrors; what it allocates itself has addresses of its own. */
#ifndef TL_REMOTE_TUNER_CLIENT_H
#define TL_REMOTE_TUNER_CLIENT_H

#include "runtime/device/device.h"

/* Starts the process, and does not wait for it. It answers each call within `patience_ms`, or is given up.
 * `command` stays the caller's. */
tl_status mirror_open(struct device *of, const char *const *command, int patience_ms, struct device **out);
/* What a kernel accesses through this pointer, so many bytes, is copied by the next mirror_begin. */
tl_status mirror_add(struct device *mirror, const char *name, const tl_arg *a);
/* Copies the memory: what was written there before is lost, and what was allocated, too if the process had ended. */
tl_status mirror_begin(struct device *mirror);
/* The kernel of an image, which must stay where it is. */
tl_status mirror_load(struct device *mirror, const struct image *im, void **out);
/* Ends the process; mirror_begin starts another. */
void mirror_end(struct device *mirror);
void mirror_close(struct device *mirror);

#endif
