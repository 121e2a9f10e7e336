/* How random pipelined loops get at memory, as text: what pipelines_loads.c prints for pipelines_text.c.
 */
#ifndef TLC_TESTS_RANDOM_PIPELINES_LOADS_H
#define TLC_TESTS_RANDOM_PIPELINES_LOADS_H

#include "pipelines.h"

struct writer {
	FILE *f, *head; /* the body; the parameters */
	struct pipelines *d;
	tl_arg *args;
	size_t nargs;
	int loop;
	const char *it;   /* the index of the loop at hand; NULL: there is none */
	const char *tile; /* the tile at hand */
};

/* A number that is a parameter, or half of it is. */
void print_number(const struct writer *w, const char *name, int k, int64_t value);
/* The number of the iteration; of the tile in what memory holds for s, times `by`. */
void print_iteration(const struct writer *w);
void print_tile(const struct writer *w, const struct pipe_step *s, int by);
/* The pointers of a load's tile. */
void print_pointers(const struct writer *w, const struct pipe_step *s);
/* A block pointer at the place of the index, or a descriptor; around it what holds it. */
void print_tensor(const struct writer *w, const struct pipe_step *s);
void print_opening(const struct writer *w, const struct pipe_step *s, const char *indent);
void print_closing(const struct writer *w, const struct pipe_step *s, bool again);
/* A load; what is carried for it, in front of a loop whose first index is w->it; and at the end of an iteration. */
void print_load(const struct writer *w, const struct pipe_step *s, const char *indent);
void print_begin(const struct writer *w, const struct pipe_step *s, const char *indent);
void print_next(const struct writer *w, const struct pipe_step *s, const char *indent);

#endif
