/* Software pipelining of the loops of laid-out GPU IR: see plan.c. */
#ifndef TLC_GPU_PIPELINE_PIPELINE_H
#define TLC_GPU_PIPELINE_PIPELINE_H

#include "ir/pass.h"

void pass_pipeline(struct pass_state *s);
void pass_early_loads(struct pass_state *s);

#endif
