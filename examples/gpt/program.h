/* Declarations shared by the program's commands. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "gpt.h"

#include <stdbool.h>

/* 0 or NULL: not given. */
struct options {
	const char *file, *device, *kernels, *out, *from, *tokenizer, *type, *precision, *prompt;
	int layers, heads, channels, context, batch, accumulate, steps, warmup, save_every, log_every, seed;
	int tokens, top_k, repeat;
	double rate, decay, clip, temperature;
};

int train(const struct options *o);
int sample(const struct options *o);
int bench(const struct options *o);
int export(const struct options *o); /* npy.c */

/* The processes of a training. */
struct team {
	int rank, size;
	int local, beside; /* rank among the processes of this machine, and their number */
};

void team_begin(struct team *t);
void team_end(struct team *t);
/* The device of this process, if each of several processes uses a separate device; `name`: the device of the
 * options. */
const char *team_device(const struct team *t, const char *name);
/* Joins the team with a model on that device, before the first sum. */
void team_join(const struct team *t, struct gpt *g);
/* Replaces the values by their sums over all processes. */
void team_add(const struct team *t, double *values, int n);
/* The `reduce` function of gpt_loss: sums gradients over all processes while other gradients are computed. */
void team_reduce(void *gpt, size_t first, size_t len);

/* NCCL, for processes with a GPU each. The first process makes an id of NCCL_ID bytes, which is sent to the others, and
 * all processes join. Sums are asynchronous; launches after nccl_finish are ordered after them. */
enum { NCCL_ID = 128 };
bool nccl_is_here(void); /* True if the library is installed. */
void nccl_begin(void *id);
void nccl_join(struct gpt *g, const void *id, int rank, int size);
void nccl_add(struct gpt *g, size_t first, size_t len);
void nccl_finish(void);
void nccl_end(void);

double seconds(void);
/* Creates a model with the options' settings. */
void create(struct gpt *g, const struct options *o, const struct config *c, int batch, bool training);
/* The options' sizes, with `usual` for sizes that are not given. */
struct config config_of(const struct options *o, const struct config *usual);

#endif
