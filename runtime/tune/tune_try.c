/* Running configurations, which have been compiled, one after the other.
 *
 * An error of a configuration ends this configuration only, and is its reason. The device may become unusable, because
 * the driver has destroyed its context or a kernel does not end. If configurations run in a helper process, the others
 * then run in a new process. Else the tuning ends, with an error that names the configuration. */
#include <stdlib.h>
#include <unistd.h>

#include "runtime/tune/helper.h"
#include "runtime/tune/ranking.h"
#include "runtime/tune/tune.h"

enum { MOST_REPEATS = 200, MOST_WARMUPS = 100, FIRST_REPEATS = 3 };
/* In a round of the final ranking, each contender runs 1 / PARTS of the repeats with which a configuration is timed.
 * All rounds together take at most BUDGET * rep_ms for each contender, but there are at least LEAST_ROUNDS rounds. */
enum { PARTS = 3, BUDGET = 30, LEAST_ROUNDS = 3 };
enum { START_MS = 60000 }; /* time for the helper process to start and open its device */
/* A configuration is not timed further if its first time is more than `hopeless` times the best time. Configurations
 * within `close_by` times the best, and the second best, take part in the final ranking. */
static const double hopeless = 2, close_by = 1.5;

/* --- memory ---------------------------------------------------------------------------------------------------- */

struct adding {
	const tl_tuner *tuner;
	struct saved_memory *memory;
	tl_status status;
};

/* True if the parameter of the slot's name is marked in `of`. */
static bool named(const tl_kernel *k, const bool *of, const char *slot)
{
	for (u32 i = 0; i < k->params.len; i++)
		if (of[i] && !strcmp(k->params.at[i].name, slot))
			return true;
	return false;
}

static void add_pointer(void *arg, const struct slot *s, const tl_arg *a)
{
	struct adding *add = arg;
	const tl_tuner *t = add->tuner;
	struct touched touched = {.name = s->name,
				  .arg = a,
				  .reads = s->reads,
				  .writes = s->writes,
				  .reset = named(t->kernel, t->resets, s->name),
				  .restore = named(t->kernel, t->restores, s->name)};
	if (!add->status)
		add->status = memory_add(add->memory, &touched);
}

static tl_status add_memory(const tl_tuner *t, const struct tuned_choice *ch, struct saved_memory *m)
{
	struct adding add = {t, m, TL_OK};
	for (u32 i = 0; i < ch->n && !add.status; i++) {
		const struct candidate *c = &ch->at[i];
		tl_status s = candidate_open(c) ? kernel_pointers(t->kernel, &c->config, c->args, t->kernel->params.len,
							   add_pointer, &add)
					 : TL_OK;
		add.status = add.status ? add.status : s;
	}
	return add.status;
}

static void free_memory(void *m)
{
	memory_free(m);
}

/* --- running --------------------------------------------------------------------------------------------------- */

struct tuning_run {
	tl_tuner *tuner;
	struct tuned_choice *choice;
	struct candidate *candidate, *first; /* the current one; the first that did not fail, or NULL */
	struct helper *helper; /* runs the configurations, or NULL */
	struct trials *trials; /* runs them without a helper; its memory is saved here, or copied to the helper */
	double best;  /* the best time so far; 0: none */
	double again; /* the last time */
	tl_status status;
};

/* Runs the candidate. `how`: the trial; this function sets its config, image, code and bits. */
static tl_status run_trial(const struct tuning_run *r, const struct candidate *c, struct trial *how, double *cost)
{
	tl_kernel *k = r->tuner->kernel;
	*cost = 0;
	how->config = c->config;
	tl_status s = kernel_variant(k, &c->config, c->args, k->params.len, &how->image, &how->code, how->bits);
	if (s)
		return s;
	return r->helper ? helper_run(r->helper, how, cost) : trial_run(r->trials, how, cost);
}

static tl_status time_it(const struct tuning_run *r, int warmup, int repeats, double *ms)
{
	return run_trial(r, r->candidate, &(struct trial){.warmup = warmup, .repeats = repeats}, ms);
}

/* Runs the candidate once, and compares its result with the first candidate's if the options request this. */
static tl_status run_once(const struct tuning_run *r, const struct candidate *c, double *cost)
{
	const tl_tuning *o = &r->tuner->options;
	struct trial once = {
		.renews = true, .limit_ms = o->limit_ms, .compares = o->check, .tolerance = o->tolerance};
	return run_trial(r, c, &once, cost);
}

/* Starts a new process if the last configuration has ended the process. The process needs the first candidate's
 * result. */
static tl_status revive(const struct tuning_run *r)
{
	double cost;
	if (!r->helper || !helper_broken(r->helper))
		return TL_OK;
	tl_status s = helper_begin(r->helper, &r->trials->memory);
	return !s && r->first && r->tuner->options.check ? run_once(r, r->first, &cost) : s;
}

static int times(double ms, double one, int least, int most)
{
	double n = one > 0 ? ms / one : most;
	return n < least ? least : n > most ? most : (int)n;
}

static int repeats_of(const tl_tuner *t, double ms)
{
	return times(t->options.rep_ms, ms, FIRST_REPEATS, MOST_REPEATS);
}

static tl_status measure(struct tuning_run *r)
{
	const tl_tuner *t = r->tuner;
	struct candidate *c = r->candidate;
	tl_status s = time_it(r, 0, FIRST_REPEATS, &c->cost);
	if (s)
		return s;
	if (r->best && c->cost > hopeless * r->best) { /* the time may have been disturbed: measure again */
		double again = c->cost;
		s = time_it(r, 0, FIRST_REPEATS, &again);
		if (s)
			return s;
		c->cost = MIN(c->cost, again);
	}
	if (r->best && c->cost > hopeless * r->best) {
		c->outcome = OUTCOME_STOPPED;
		return TL_OK;
	}
	int warmup = times(t->options.warmup_ms, c->cost, 0, MOST_WARMUPS);
	c->outcome = OUTCOME_TIMED;
	return time_it(r, warmup, repeats_of(t, c->cost), &c->cost);
}

static void run_one(void *arg)
{
	struct tuning_run *r = arg;
	struct candidate *c = r->candidate;
	r->status = run_once(r, c, &c->cost);
	if (r->status)
		return;
	r->first = r->first ? r->first : c;
	if (r->tuner->kernel->module->ctx->dev->ops->cost)
		c->outcome = OUTCOME_TIMED;
	else
		r->status = measure(r);
}

/* Records the candidate's error. An error: no other candidate can run. */
static tl_status drop(struct tuning_run *r, tl_status why)
{
	struct candidate *c = r->candidate;
	candidate_failed(c, &r->choice->arena, tl_error(NULL));
	c->status = why;
	if (r->helper || !trials_broken(r->trials))
		return TL_OK;
	r->trials->memory.lost = true;
	r->choice->best = c; /* the caller records it */
	return failed(why,
		      "%s: the configuration %s left the device unusable: %s\n      = hint: tl_tuning.helper tries "
		      "configurations in a helper process, where this does not harm the program",
		      r->tuner->kernel->name, c->text, c->why);
}

static tl_status run_all(struct tuning_run *r)
{
	struct tuned_choice *ch = r->choice;
	tl_status s = TL_OK;
	for (u32 i = 0; i < ch->n && !s; i++) {
		struct candidate *c = r->candidate = &ch->at[i];
		if (!candidate_open(c))
			continue;
		if ((s = revive(r)))
			break;
		tl_status ran = caught(run_one, r);
		ran = ran ? ran : r->status;
		if (ran) {
			s = drop(r, ran);
		} else if (!r->best || c->cost < r->best) {
			r->best = c->cost;
			ch->best = c;
		}
		ch->failed += c->outcome == OUTCOME_FAILED;
		ch->tried += c->outcome != OUTCOME_FAILED;
	}
	return s;
}

static bool contends(const struct candidate *c, double best)
{
	return c->outcome == OUTCOME_TIMED && c->cost <= best * close_by;
}

static int repeats_of_round(const tl_tuner *t, const struct candidate *c)
{
	return MAX(repeats_of(t, c->cost) / PARTS, 1);
}

static void time_again(void *arg)
{
	struct tuning_run *r = arg;
	struct trial t = {.renews = true, .warmup = 1, .repeats = repeats_of_round(r->tuner, r->candidate)};
	r->status = revive(r);
	if (!r->status)
		r->status = run_trial(r, r->candidate, &t, &r->again);
}

struct contest {
	struct tuning_run *run;
	struct candidate **who;
};

static bool time_contender(void *arg, u32 i, double *ms)
{
	struct contest *c = arg;
	c->run->candidate = c->who[i];
	bool failed = caught(time_again, c->run) || c->run->status;
	*ms = c->run->again;
	return !failed;
}

static struct candidate *second_best(const struct tuned_choice *ch)
{
	struct candidate *second = NULL;
	for (u32 i = 0; i < ch->n; i++) {
		struct candidate *c = &ch->at[i];
		if (c != ch->best && c->outcome == OUTCOME_TIMED && (!second || c->cost < second->cost))
			second = c;
	}
	return second;
}

/* The final ranking: times the best two candidates, and candidates close to the best, in rounds until all others are
 * slower with confidence. */
static void decide(struct tuning_run *r)
{
	struct tuned_choice *ch = r->choice;
	struct candidate **who = arena_array(&ch->arena, struct candidate *, ch->n), *second = second_best(ch);
	u32 n = 0;
	double turn = 0; /* milliseconds of a round */
	for (u32 i = 0; i < ch->n; i++) {
		struct candidate *c = &ch->at[i];
		if (!contends(c, r->best) && c != second)
			continue;
		who[n++] = c;
		turn += c->cost * (1 + repeats_of_round(r->tuner, c));
	}
	if (n < 2)
		return;
	struct contender *results = arena_array(&ch->arena, struct contender, n);
	int rounds = times(BUDGET * r->tuner->options.rep_ms * n, turn, LEAST_ROUNDS, MOST_ROUNDS);
	i32 best = rank_times(results, n, (u32)rounds, time_contender, &(struct contest){r, who});
	if (best < 0)
		return;
	double slower = results[best].time / who[best]->cost; /* ratio of the clocks in the ranking and before */
	for (u32 i = 0; i < ch->n; i++)
		ch->at[i].cost *= slower;
	for (u32 i = 0; i < n; i++) {
		who[i]->cost = results[i].time;
		who[i]->equal = results[i].equal && (i32)i != best;
		who[i]->apart = results[i].apart;
	}
	ch->best = who[best];
}

/* The error when no candidate can run. */
static tl_status none_left(const tl_tuner *t, const struct tuned_choice *ch)
{
	for (u32 i = 0; i < ch->n; i++)
		if (ch->at[i].outcome == OUTCOME_FAILED)
			return failed(ch->at[i].status ? ch->at[i].status : TL_ERR_COMPILE,
				      "%s: none of its %u configurations can run; the first failure, %s: %s",
				      t->kernel->name, ch->n, ch->at[i].text,
				      ch->at[i].error ? ch->at[i].error : ch->at[i].why);
	return failed(TL_ERR_ARGUMENT, "%s: all of its %u configurations are excluded%s%s", t->kernel->name, ch->n,
		      ch->n ? ": " : "", ch->n && ch->at[0].why ? ch->at[0].why : "");
}

static struct candidate *only_one(const struct tuned_choice *ch)
{
	struct candidate *only = NULL;
	u32 n = 0;
	for (u32 i = 0; i < ch->n; i++)
		if (candidate_open(&ch->at[i])) {
			only = &ch->at[i];
			n++;
		}
	return n == 1 ? only : NULL;
}

static tl_status try_compiled(tl_tuner *t, struct tuned_choice *ch, struct helper *helper)
{
	struct device *dev = t->kernel->module->ctx->dev;
	struct trials here = {.dev = dev, .memory = {.dev = dev, .arena = &ch->arena, .reads = helper}, .ended = true};
	struct tuning_run r = {.tuner = t, .choice = ch, .helper = helper, .trials = &here};
	struct cleanup c;
	cleanup_push(&c, free_memory, &here.memory);
	tl_status s = dev->ops->synchronize(dev); /* earlier launches may be writing, on any stream */
	if (!s)
		s = add_memory(t, ch, &here.memory);
	if (!s)
		s = helper ? helper_begin(helper, &here.memory) : memory_save(&here.memory);
	if (!s)
		s = run_all(&r);
	if (!s && r.best && !dev->ops->cost)
		decide(&r);
	if (!s)
		s = memory_restore(&here.memory);
	cleanup_run(&c);
	return s;
}

static void free_errors(void *choice)
{
	struct tuned_choice *ch = choice;
	for (u32 i = 0; i < ch->n; i++) {
		free(ch->at[i].error);
		ch->at[i].error = NULL;
	}
}

static void close_helper(void *helper)
{
	if (helper)
		helper_close(helper);
}

/* Starts the helper process, which starts up while candidates are compiled. */
static tl_status open_helper(const tl_tuner *t, const struct tuned_choice *ch, struct helper **out)
{
	const tl_tuning *o = &t->options;
	struct device *dev = t->kernel->module->ctx->dev;
	if (!o->helper || !dev->ops->try || only_one(ch))
		return TL_OK;
	return helper_open(dev, o->helper, START_MS + 4 * o->limit_ms + 2 * (o->warmup_ms + o->rep_ms), out);
}

static tl_status try_all(tl_tuner *t, struct tuned_choice *ch)
{
	struct helper *helper = NULL;
	struct cleanup c;
	tl_status s = open_helper(t, ch, &helper);
	cleanup_push(&c, close_helper, helper);
	if (!s)
		candidates_prepare(t, ch);
	for (u32 i = 0; i < ch->n; i++)
		ch->failed += ch->at[i].outcome == OUTCOME_FAILED;
	ch->best = s ? NULL : only_one(ch); /* a single candidate needs no measurement */
	if (!s && !ch->best)
		s = try_compiled(t, ch, helper);
	if (!s && !ch->best)
		s = none_left(t, ch);
	cleanup_run(&c);
	return s;
}

tl_status choice_try(tl_tuner *t, struct tuned_choice *ch)
{
	struct cleanup c;
	cleanup_push(&c, free_errors, ch);
	ch->unit = t->kernel->module->ctx->dev->ops->cost ? "cycles" : "ms";
	tl_status s = try_all(t, ch);
	cleanup_run(&c);
	return s;
}
