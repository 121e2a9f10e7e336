/* Shared by run.c and array.c. */
#ifndef TESTS_RUN_SUITE_H
#define TESTS_RUN_SUITE_H

#include "run.h"

struct suite {
	/* what is run */
	const char *device, *theme, *filter, *root;
	int shard, shards, resume;
	int pairs;             /* the seed of pairs_take; -1: all cases */
	struct pair_set *covered; /* of pairs_take */
	int schedules, schedule; /* of the simulator: under each a case is launched; the one at hand */
	int simulated;           /* how many there are on the simulator; 1 elsewhere */
	int seed, variation;     /* the environment's; the case's own: see seed_of() */
	bool verbose;
	tl_context *ctx;
	struct module {
		char file[64];
		tl_module *module;
		char *text;
		struct module *next;
	} *modules;

	/* the case at hand */
	int index; /* on this device */
	char name[256], file[64], kernel[64];
	struct array *arrays;
	bool failed, skipped, launched;
	bool lost; /* the device no longer answers: CUDA ends a process's context at the first fault */
	double start;

	int passed, nfailed, nskipped;
	const char *sources; /* folder for command lines, or NULL */
	FILE *commands;
	const char *texts; /* folder of texts to launch as well, or NULL: see texts.c */
	unsigned char **before; /* the arrays in front of a launch */
	int same, differ, notext; /* launches from texts: with the same bits; without a text */
	FILE *calls; /* of built-in functions, if they are wanted */
	uint64_t *seen; /* hashes of the command lines written */
	int nseen;
};

/* `for (int n = 0; enter_schedule(s, n); n++)`: each schedule, with the arrays as launches under it left them, unless
 * the case has failed. */
bool enter_schedule(struct suite *s, int n);
/* Gives the arrays' buffers what they held under the schedule at hand, at first what is uploaded. */
bool arrays_upload(struct suite *s);
/* Reads back and compares; fails the case at the first array that differs. */
void arrays_check(struct suite *s);
void arrays_free(struct suite *s);

/* pairs.c: is the case at hand, whose name is known, of the share in which all pairs of choices occur? Asked in the
 * order of the cases. */
bool pairs_take(struct suite *s);
void pairs_free(struct suite *s);

/* texts.c: around a launch, which is done again from the text `hash`. constant: the parameters that the text lacks. */
void text_before(struct suite *s);
void text_after(struct suite *s, unsigned long long hash, const char *kernel, const tl_config *cfg,
		const tl_arg *args, const bool *constant, size_t nargs);

#endif
