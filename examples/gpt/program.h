/* What the program's commands share. */
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

/* The processes that train together. */
struct team {
	int rank, size;
	int local, beside; /* among the processes of this machine, and how many they are */
};

void team_begin(struct team *t);
void team_end(struct team *t);
/* The device of this process, where several are to have one each; `name`: what the options say. */
const char *team_device(const struct team *t, const char *name);
/* With a model on that device, before the first sum. */
void team_join(const struct team *t, struct gpt *g);
/* Replaces the values by their sums over all processes. */
void team_add(const struct team *t, double *values, int n);
/* For gpt_loss: sums gradients over all processes while others are computed. */
void team_reduce(void *gpt, size_t first, size_t len);

/* NCCL, of processes that have a GPU each. The first makes an id of so many bytes, which the others are sent; all join.
 * Sums are queued; what is launched after nccl_finish comes after them. */
enum { NCCL_ID = 128 };
bool nccl_is_here(void); /* the library */
void nccl_begin(void *id);
void nccl_join(struct gpt *g, const void *id, int rank, int size);
void nccl_add(struct gpt *g, size_t first, size_t len);
void nccl_finish(void);
void nccl_end(void);

double seconds(void);
/* A model as the options say. */
void create(struct gpt *g, const struct options *o, const struct config *c, int batch, bool training);
/* The options' sizes where they are given, else `usual`. */
struct config config_of(const struct options *o, const struct config *usual);

#endif
