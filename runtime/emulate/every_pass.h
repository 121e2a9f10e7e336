/* A check of the compiler by the interpreter: compares the IR after each pass with the IR before it.
 *
 * TL_INTERP_CHECK=passes: a launch runs the IR as evaluated, and then, from the same memory, the IR after each pass
 * before layout assignment that changed it. All must leave the same bits in every buffer. Operations that passes fuse,
 * a multiplication and an addition, or a dot and an addition, are rounded separately in all of them.
 *
 * TL_INTERP_CHECK=facts: for each IR that runs, the results of the analyses (analysis/axis.h, ranges.h, sizes.h),
 * without the kernel's hints (multiple_of …), are compared with every value that occurs.
 *
 * TL_INTERP_CHECK=promises: the results of the analyses with the kernel's hints are compared with the addresses of
 * loads and stores, and hints about scalars with the scalars.
 *
 * TL_INTERP_CHECK=print: a failure prints both IRs.
 *
 * They combine: TL_INTERP_CHECK=passes,facts. The passes run as for sm_90a, with the launch's specialisation. A launch
 * with the caller's own memory is not checked, because the extent of that memory is unknown. */
#ifndef TL_EMULATE_EVERY_PASS_H
#define TL_EMULATE_EVERY_PASS_H

#include "interp/interp.h"
#include "runtime/device/device.h"

struct every_pass;

/* True if the environment requests the check. */
bool every_pass_wanted(void);
/* Runs the passes, and keeps a program for each IR in out->for_load. False: an error, which is in b->unit->diags. */
bool every_pass_compile(const struct build *b, struct compiled *out);
/* Like interp_run. On success the buffers have interp_run's results. */
bool every_pass_run(const struct every_pass *p, struct interp_launch *l, struct strbuf *error);

#endif
