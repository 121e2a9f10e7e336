/* Software pipelining of the loops of a placed kernel: see plan.c. */
#ifndef TLC_PIPELINE_PIPELINE_H
#define TLC_PIPELINE_PIPELINE_H

#include "opt/pass.h"

void pass_pipeline(struct pass_state *s);

#endif
