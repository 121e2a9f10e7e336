/* Every pass against the one before: the check of the compiler that the interpreter makes on request.
 *
 * TL_INTERP_CHECK=passes   a launch runs the IR as evaluated, then, from the same memory, the IR after each pass before
 *                          placement that changed it. All must leave the same bits in every buffer. What passes join, a
 *                          product and a sum, a dot and a sum, is rounded apart in all of them.
 * TL_INTERP_CHECK=facts    what the analyses say of each IR that runs (analysis/axis.h, ranges.h, sizes.h), promises
  *                          of the
 * kernel (multiple_of …) apart, is compared with every value that occurs. TL_INTERP_CHECK=promises what the analysis
 * says with the kernel's promises is compared with the addresses that loads and stores use, and promises about scalars
 * with these. TL_INTERP_CHECK=print    a failure shows both IRs.
 *
 * They combine: TL_INTERP_CHECK=passes,facts. The passes work as for sm_90a, with the launch's own specialisation. A
 * launch with the caller's own memory is not checked, as nobody knows what to compare. */
#ifndef TL_EMULATE_EVERY_PASS_H
#define TL_EMULATE_EVERY_PASS_H

#include "interp/interp.h"
#include "runtime/device/device.h"

struct every_pass;

/* Does the environment ask for it? */
bool every_pass_wanted(void);
/* Runs the passes, and keeps a program for each IR in out->for_load. False after an error, which is in b->unit->diags.
 */
bool every_pass_compile(const struct build *b, struct compiled *out);
/* Like interp_run, whose results it leaves when all is well. */
bool every_pass_run(const struct every_pass *p, struct interp_launch *l, struct strbuf *error);

#endif
