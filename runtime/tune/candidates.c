/* Configurations before they run: the model ranks them, and they are compiled, both in several threads. */
#include <stdlib.h>
#include <unistd.h>

#include "runtime/tune/tune.h"

enum { MOST_THREADS = 64 };

void candidate_failed(struct candidate *c, struct arena *a, const char *text)
{
	c->outcome = OUTCOME_FAILED;
	c->why = arena_str(a, text, strcspn(text, "\n"));
}

typedef void work_fn(const tl_tuner *t, struct candidate *c);

struct working {
	tl_tuner *tuner;
	struct tuned_choice *choice;
	work_fn *work;
	atomic_uint next;
};

static void *work_on_some(void *arg)
{
	struct working *all = arg;
	for (u32 i; (i = atomic_fetch_add(&all->next, 1)) < all->choice->n;)
		if (candidate_open(&all->choice->at[i]))
			all->work(all->tuner, &all->choice->at[i]);
	return NULL;
}

/* Calls `work` for each open candidate. */
static void work_on_all(tl_tuner *t, struct tuned_choice *ch, work_fn *work)
{
	struct working all = {.tuner = t, .choice = ch, .work = work};
	pthread_t threads[MOST_THREADS];
	long processors = t->options.threads > 0 ? t->options.threads : sysconf(_SC_NPROCESSORS_ONLN);
	u32 n = 0, most = (u32)MIN(MAX(processors, 1), MOST_THREADS), open = 0;
	for (u32 i = 0; i < ch->n; i++)
		open += candidate_open(&ch->at[i]);
	while (n + 1 < MIN(most, open) && !pthread_create(&threads[n], NULL, work_on_some, &all))
		n++;
	work_on_some(&all);
	while (n)
		pthread_join(threads[--n], NULL);
}

/* --- the model --------------------------------------------------------------------------------------------------- */

static void estimate_candidate(const tl_tuner *t, struct candidate *c)
{
	kernel_estimate(t->kernel, &c->config, c->args, t->kernel->params.len, &c->estimate);
}

/* By the expected time. Candidates without an estimate come last, those of one time in their order. */
static bool comes_before(const struct candidate *a, const struct candidate *b)
{
	double x = a->estimate.us, y = b->estimate.us;
	return x > 0 && y > 0 ? x < y || (x <= y && a < b) : x > 0 || (y <= 0 && a < b);
}

/* True if they differ in the number of stages only, and the estimates agree in all details: then it has no effect, as
 * in a kernel without loops. */
static bool is_same(const struct candidate *a, const struct candidate *b)
{
	struct codegen_options x = a->options, y = b->options;
	x.num_stages = y.num_stages = 0;
	return a->estimate.us > 0 && !memcmp(&a->estimate, &b->estimate, sizeof a->estimate) &&
	       !memcmp(&x, &y, sizeof x) && a->max_ctas == b->max_ctas && a->nvalues == b->nvalues &&
	       !memcmp(a->params, b->params, a->nvalues * sizeof *a->params) &&
	       !memcmp(a->values, b->values, a->nvalues * sizeof *a->values);
}

static void leave_out(struct candidate *c, const char *why)
{
	c->outcome = OUTCOME_PRUNED;
	c->why = why;
}

/* Leaves out all but the candidates that the model expects to be the fastest. */
static void keep_fastest(tl_tuner *t, struct tuned_choice *ch, u32 most)
{
	bool any = false;
	work_on_all(t, ch, estimate_candidate);
	for (u32 i = 0; i < ch->n; i++) {
		struct candidate *c = &ch->at[i];
		any |= c->estimate.us > 0;
		for (u32 k = 0; k < i && candidate_open(c); k++)
			if (candidate_open(&ch->at[k]) && is_same(c, &ch->at[k]))
				leave_out(c, arena_printf(&ch->arena, "the same as %s", ch->at[k].text));
	}
	if (!any)
		return; /* a device without a model */
	for (u32 i = 0; i < ch->n; i++)
		for (u32 k = 0; k < ch->n && candidate_open(&ch->at[i]); k++)
			ch->at[i].rank +=
				k == i || (candidate_open(&ch->at[k]) && comes_before(&ch->at[k], &ch->at[i]));
	for (u32 i = 0; i < ch->n; i++)
		if (ch->at[i].rank > most)
			leave_out(&ch->at[i], arena_printf(&ch->arena, "number %u by the model", ch->at[i].rank));
}

/* --- compiling --------------------------------------------------------------------------------------------------- */

static void compile_candidate(const tl_tuner *t, struct candidate *c)
{
	tl_kernel *k = t->kernel;
	c->status = tl_prepare(k, &c->config, c->args, k->params.len, NULL);
	if (!c->status)
		c->status = tl_kernel_resources(k, &c->config, c->args, k->params.len, &c->resources);
	if (c->status)
		c->error = strdup(tl_error(NULL));
}

/* Compiles the open candidates. False: none of them compiles. */
static bool compile_open(tl_tuner *t, struct tuned_choice *ch)
{
	bool any = false;
	work_on_all(t, ch, compile_candidate);
	for (u32 i = 0; i < ch->n; i++) {
		struct candidate *c = &ch->at[i];
		if (candidate_open(c) && c->status)
			candidate_failed(c, &ch->arena, c->error ? c->error : "out of host memory");
		any |= candidate_open(c);
	}
	return any;
}

/* Opens the candidates of the next ranks. False: there are none. */
static bool open_next(struct tuned_choice *ch, u32 ranks)
{
	bool any = false;
	for (u32 i = 0; i < ch->n; i++) {
		struct candidate *c = &ch->at[i];
		if (c->rank <= ranks || c->rank > ranks + ch->most)
			continue;
		c->outcome = OUTCOME_OPEN;
		c->why = NULL;
		any = true;
	}
	return any;
}

void candidates_prepare(tl_tuner *t, struct tuned_choice *ch)
{
	u32 ranks = ch->most;
	if (ch->most)
		keep_fastest(t, ch, ch->most);
	while (!compile_open(t, ch) && ch->most && open_next(ch, ranks))
		ranks += ch->most;
}
