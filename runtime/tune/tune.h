/* Internals of the tuner: configurations, their outcomes, and the choice for a key. */
#ifndef TL_TUNE_TUNE_H
#define TL_TUNE_TUNE_H

#include "runtime/launch/decorated.h"

enum outcome {
	OUTCOME_OPEN,   /* not run yet */
	OUTCOME_PRUNED, /* excluded by the kernel's pruning */
	OUTCOME_FAILED,
	OUTCOME_STOPPED, /* so slow that its timing was cut short */
	OUTCOME_TIMED,
};

struct candidate {
	const char *text; /* "BLOCK=128 num_warps=8" */
	const char *json; /* {"BLOCK":128,"num_warps":8} */
	u32 *params;      /* the parameters that it sets */
	tl_arg *values;
	u32 nvalues;
	struct codegen_options options;
	int max_ctas; /* 0: not set */
	enum outcome outcome;
	const char *why; /* reason of the outcome, or NULL */
	double cost;
	bool equal;   /* its time cannot be distinguished from the best time */
	double apart; /* if equal: the times differ by at most this fraction; < 0: unknown */
	tl_resources resources;
	/* of the model, if it chooses the candidates that are tried: us is 0 without an estimate; rank 1 is expected to
	 * be the fastest, 0: not ranked */
	struct launch_estimate estimate;
	u32 rank;
	/* for the current launch */
	tl_config config;
	tl_arg *args; /* of all parameters */
	char *error;  /* malloc'ed */
	tl_status status;
};

/* The result of tuning for a key. */
struct tuned_choice {
	struct keyed keyed; /* first */
	struct arena arena;
	const char *key; /* in JSON */
	struct candidate *at, *best;
	u32 n, tried, failed;
	u32 most; /* candidates that are tried, by the model; 0: all */
	const char *unit; /* of costs */
	bool stored;
};

struct tl_tuner {
	tl_kernel *kernel;
	tl_tuning options; /* texts are in `arena` */
	struct arena arena;
	bool *is_key, *resets, *restores; /* by parameter */
	VEC(struct candidate) added;
	pthread_mutex_t lock;   /* of the choices */
	pthread_mutex_t tuning; /* held while configurations run */
	struct key_table table; /* of the choices */
	VEC(struct tuned_choice *) choices;
};

/* A launch that needs a configuration. */
struct request {
	const tl_config *cfg;
	tl_plan_fn *plan;
	void *user;
	const tl_arg *args;
	size_t nargs;
};

/* Makes the config and the arguments of a launch of the candidate. */
tl_status candidate_plan(const tl_tuner *t, const struct request *r, const struct candidate *c, tl_config *config,
			 tl_arg *args);
static inline bool candidate_open(const struct candidate *c) { return c->outcome == OUTCOME_OPEN; }
/* The first line of the text is the reason. */
void candidate_failed(struct candidate *c, struct arena *a, const char *text);
/* Compiles the open candidates. If ch->most is set, the model leaves so many open before; if none of these compiles, it
 * opens the next ones. */
void candidates_prepare(tl_tuner *t, struct tuned_choice *ch);
/* Compiles the open candidates and runs them. ch->best is the fastest. If the device becomes unusable, it is the
 * candidate that caused this. */
tl_status choice_try(tl_tuner *t, struct tuned_choice *ch);
/* The choice for a valid launch, made if it is new. */
tl_status tuner_find(tl_tuner *t, const struct request *r, struct tuned_choice **out);

#endif
