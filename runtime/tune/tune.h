/* Inside the tuner: configurations, what became of them, and the choice for a key. */
#ifndef TL_TUNE_TUNE_H
#define TL_TUNE_TUNE_H

#include "runtime/launch/decorated.h"

enum outcome {
	OUTCOME_OPEN,   /* to be tried */
	OUTCOME_PRUNED, /* not tried */
	OUTCOME_FAILED,
	OUTCOME_STOPPED, /* so slow that it was not timed to the end */
	OUTCOME_TIMED,
};

struct candidate {
	const char *text; /* "BLOCK=128 num_warps=8" */
	const char *json; /* {"BLOCK":128,"num_warps":8} */
	u32 *params;      /* which parameters it gives */
	tl_arg *values;
	u32 nvalues;
	tl_config options; /* 0: not set */
	enum outcome outcome;
	const char *why; /* or NULL */
	double cost;
	bool equal;   /* its time cannot be told from the best one's */
	double apart; /* then: they lie within this part of each other; < 0: not known */
	tl_resources resources;
	/* for the launch at hand */
	tl_config config;
	tl_arg *args; /* of all parameters */
	char *error;  /* malloc'ed */
	tl_status status;
};

/* What was found for one key. */
struct tuned_choice {
	struct tuned_choice *next;
	u64 hash, *words; /* the key */
	u32 nwords;
	struct arena arena;
	const char *key; /* in JSON */
	struct candidate *at, *best;
	u32 n, tried, failed;
	const char *unit; /* of costs */
	bool stored;
};

enum { TUNER_BUCKETS = 64 };
struct tl_tuner {
	tl_kernel *kernel;
	tl_tuning options; /* with texts of the arena */
	struct arena arena;
	bool *is_key, *resets, *restores; /* of each parameter */
	VEC(struct candidate) added;
	pthread_mutex_t lock;   /* of the choices */
	pthread_mutex_t tuning; /* held while configurations are tried */
	struct tuned_choice *buckets[TUNER_BUCKETS];
	VEC(struct tuned_choice *) choices;
};

/* A launch whose configuration is to be found. */
struct request {
	const tl_config *cfg;
	tl_plan_fn *plan;
	void *user;
	const tl_arg *args;
	size_t nargs;
};

/* Makes c->config and c->args of the request. */
tl_status candidate_plan(const tl_tuner *t, const struct request *r, const struct candidate *c, tl_config *config,
			 tl_arg *args);
/* Compiles the candidates that are open, and tries them; ch->best is the best one, or, where the device cannot be used
 * any more, the one at fault. */
tl_status choice_try(tl_tuner *t, struct tuned_choice *ch);
/* The choice for a launch that is well formed, made if it is new. */
tl_status tuner_find(tl_tuner *t, const struct request *r, struct tuned_choice **out);

#endif
