/* gpt train: sequences from a text, steps, the progress line, checkpoints. */
#include "program.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

/* The first Ctrl-C ends the training after the current step, with a checkpoint; the second ends the process. */
static void catch_signals(void)
{
	struct sigaction action = {.sa_handler = stop, .sa_flags = (int)SA_RESETHAND};
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

struct text {
	uint32_t *tokens;
	size_t n, training; /* the first `training` tokens are for training, the others for validation */
};

static struct text read_text(const struct options *o, const struct tokenizer *t, int context)
{
	size_t len;
	char *bytes = read_file(o->file, &len);
	struct text text = {0};
	text.tokens = tokenizer_encode(t, bytes, len, &text.n);
	free(bytes);
	text.training = text.n - text.n / 10;
	if (text.training <= (size_t)context)
		die("%s has %zu tokens, of which %zu are for training: a sequence takes %d\n"
		    "hint: --context says how long sequences are",
		    o->file, text.n, text.training, context + 1);
	return text;
}

/* The position of sequence i of a step in the text; it is the same in each run. */
static size_t place_in_text(uint64_t seed, int step, int i, size_t places)
{
	uint64_t state = seed * 0x9E3779B97F4A7C15u + ((uint64_t)step << 32 | (uint32_t)i);
	next_random(&state);
	return (size_t)(next_random(&state) % places);
}

struct trainer {
	const struct options *o;
	struct gpt gpt;
	struct text text;
	struct checkpoint checkpoint; /* its memory is reused for all checkpoints */
	const char *path;
	struct team team;
	int batch, parts, steps; /* sequences of a step; parts of a step in each process */
	int part_size;           /* sequences of a part */
	uint32_t *tokens;        /* of a part, and its targets */
};

/* Computes part i of a step: returns the loss, and adds the gradients of its share. */
static double part(struct trainer *t, int step, int part)
{
	int length = t->gpt.config.context, n = t->part_size, first = (t->team.rank * t->parts + part) * n;
	uint32_t *tokens = t->tokens, *targets = tokens + (size_t)(n * length);
	for (int i = 0; i < n; i++) {
		size_t at = place_in_text(t->checkpoint.seed, step, first + i, t->text.training - (size_t)length);
		memcpy(tokens + i * length, t->text.tokens + at, (size_t)length * sizeof *tokens);
		memcpy(targets + i * length, t->text.tokens + at + 1, (size_t)length * sizeof *tokens);
	}
	bool last = part == t->parts - 1 && t->team.size > 1;
	return gpt_loss(&t->gpt, tokens, targets, n, length, 1.0 / (t->parts * t->team.size), part > 0,
			last ? team_reduce : NULL, &t->gpt);
}

static double learning_rate(const struct trainer *t, int step)
{
	const struct options *o = t->o;
	double most = o->rate > 0 ? o->rate : 1e-3;
	int warmup = o->warmup ? o->warmup : t->steps / 20 + 1;
	if (step <= warmup)
		return most * step / warmup;
	double done = (double)(step - warmup) / (t->steps - warmup);
	return most * (0.1 + 0.45 * (1 + cos(M_PI * (done < 1 ? done : 1))));
}

/* The mean loss of sequences at equal distances in the validation text; NAN if the text is too short. */
static double validate(struct trainer *t)
{
	int length = t->gpt.config.context, n = t->part_size, rounds = 4;
	size_t rest = t->text.n - t->text.training, all = (size_t)(rounds * n * t->team.size);
	if (rest <= (size_t)length)
		return NAN;
	double loss = 0;
	for (int r = 0; r < rounds; r++) {
		uint32_t *targets = t->tokens + n * length;
		for (int i = 0; i < n; i++) {
			size_t index = (size_t)((r * t->team.size + t->team.rank) * n + i);
			size_t at = t->text.training + (rest - (size_t)length - 1) * index / all;
			memcpy(t->tokens + i * length, t->text.tokens + at, (size_t)length * sizeof *targets);
			memcpy(targets + i * length, t->text.tokens + at + 1, (size_t)length * sizeof *targets);
		}
		loss += gpt_loss(&t->gpt, t->tokens, targets, n, length, 0, false, NULL, NULL);
	}
	team_add(&t->team, &loss, 1);
	return loss / (rounds * t->team.size);
}

/* Writes a checkpoint. False, after a message, if it cannot be written; the last checkpoint is then unchanged. */
static bool save(struct trainer *t, int step)
{
	struct checkpoint *c = &t->checkpoint;
	if (t->team.rank)
		return true; /* only the first process writes it */
	c->step = step;
	gpt_get(&t->gpt, t->gpt.weights, c->weights);
	gpt_get(&t->gpt, t->gpt.moment1, c->moment1);
	gpt_get(&t->gpt, t->gpt.moment2, c->moment2);
	const char *error = checkpoint_write(c, t->path);
	if (error)
		fprintf(stderr, "gpt: error: no checkpoint of step %d: %s\n", step, error);
	return !error;
}

static bool same_config(const struct config *a, const struct config *b)
{
	return a->layers == b->layers && a->heads == b->heads && a->channels == b->channels && a->context == b->context;
}

/* Loads or makes the initial weights, and sets the model's sizes. */
static void begin(struct trainer *t)
{
	const struct options *o = t->o;
	struct checkpoint *c = &t->checkpoint;
	const char *from = !access(t->path, F_OK) ? t->path : o->from;
	if (from) {
		checkpoint_read(c, from, o->heads);
		struct config wanted = config_of(o, &c->config);
		if (!same_config(&wanted, &c->config))
			die("%s has %d layers, %d heads, %d channels, %d tokens of context, and the options say other "
			    "numbers\nhint: leave them out, or name another file with --out",
			    from, c->config.layers, c->config.heads, c->config.channels, c->config.context);
		if (o->seed && from == t->path && c->seed != (uint64_t)o->seed)
			die("%s was trained with --seed %d", from, (int)c->seed);
		if (from != t->path) { /* start a new training with another model's weights */
			c->step = 0;
			free(c->moment1);
			free(c->moment2);
			c->moment1 = c->moment2 = NULL;
		}
	} else {
		c->config = config_of(o, &(struct config){0, 256, 384, 6, 6});
	}
	if (!c->step)
		c->seed = o->seed ? (uint64_t)o->seed : 1;
	if (o->tokenizer && from && *c->tokenizer && strcmp(o->tokenizer, c->tokenizer))
		die("%s was trained with the tokenizer '%s'", from, c->tokenizer);
	if (!*c->tokenizer)
		snprintf(c->tokenizer, sizeof c->tokenizer, "%s", o->tokenizer ? o->tokenizer : "bytes");
	struct tokenizer *tokenizer = tokenizer_open(c->tokenizer);
	if (from && c->config.vocabulary < tokenizer_size(tokenizer))
		die("%s has %d tokens, the tokenizer %d\nhint: --tokenizer names the folder of its own", from,
		    c->config.vocabulary, tokenizer_size(tokenizer));
	if (!from)
		c->config.vocabulary = tokenizer_size(tokenizer);
	t->text = read_text(o, tokenizer, c->config.context);
	tokenizer_close(tokenizer);

	struct options own = *o;
	own.device = team_device(&t->team, o->device);
	create(&t->gpt, &own, &c->config, t->part_size, true);
	team_join(&t->team, &t->gpt);
	float **const arenas[] = {&c->weights, &c->moment1, &c->moment2};
	tl_buffer *const buffers[] = {t->gpt.weights, t->gpt.moment1, t->gpt.moment2};
	if (c->weights)
		gpt_set_weights(&t->gpt, c->weights);
	else
		gpt_random_weights(&t->gpt, c->seed);
	for (size_t i = 0; i < COUNT(arenas); i++) {
		if (*arenas[i] && i)
			must(tl_buffer_write(buffers[i], 0, *arenas[i], t->gpt.size * sizeof(float)));
		if (!*arenas[i])
			*arenas[i] = calloc(t->gpt.size, sizeof(float));
		if (!*arenas[i])
			die("out of memory");
	}
}

static void progress(const struct trainer *t, int step, double loss, double rate, double began, int first)
{
	if (t->team.rank)
		return;
	double passed = seconds() - began, left = passed / (step - first) * (t->steps - step);
	double speed = (double)(step - first) * t->batch * t->gpt.config.context / passed;
	bool terminal = isatty(STDOUT_FILENO), line = step % (t->o->log_every ? t->o->log_every : 10) == 0;
	if (line || step == t->steps || step == first + 1 || stopped || terminal)
		printf("%sstep %d/%d  loss %.4f  norm %.2f  rate %.2e  %.0f tokens/s  %dm%02ds left%s",
		       terminal ? "\r\033[K" : "", step, t->steps, loss, gpt_norm((struct gpt *)&t->gpt), rate, speed,
		       (int)left / 60, (int)left % 60, line || !terminal || step == t->steps ? "\n" : "");
	fflush(stdout);
}

int train(const struct options *o)
{
	struct trainer t = {.o = o,
			    .path = o->out ? o->out : "gpt.safetensors",
			    .batch = o->batch ? o->batch : 8,
			    .parts = o->accumulate ? o->accumulate : 1,
			    .steps = o->steps ? o->steps : 1000};
	bool saved = true;
	team_begin(&t.team);
	if (t.batch % (t.parts * t.team.size))
		die("%d parts of %d processes do not divide --batch %d", t.parts, t.team.size, t.batch);
	t.part_size = t.batch / t.parts / t.team.size;
	begin(&t);
	struct gpt *g = &t.gpt;
	int first = t.checkpoint.step, step = first;
	t.tokens = calloc(2 * (size_t)t.part_size * (size_t)g->config.context, sizeof *t.tokens);
	if (!t.tokens)
		die("out of memory");
	if (!t.team.rank)
		printf("%.2f M parameters in %zu MB on %s; %zu tokens of text, %d a step; %s %s\n",
		       (double)g->size / 1e6, g->bytes >> 20, g->device.name, t.text.training,
		       t.batch * g->config.context, first ? "goes on from" : "writes", t.path);
	catch_signals();
	double began = seconds();
	bool stop = false;
	while (step < t.steps && !stop) {
		step++;
		double loss = 0, rate = learning_rate(&t, step);
		for (int i = 0; i < t.parts; i++)
			loss += part(&t, step, i);
		gpt_update(g,
			   &(struct adamw){rate, 0.9, 0.95, 1e-8, o->decay >= 0 ? o->decay : 0.1,
					   o->clip > 0 ? o->clip : 1},
			   step);
		double values[] = {loss, stopped}; /* one process with `stopped` stops all */
		team_add(&t.team, values, COUNT(values));
		loss = values[0] / (t.parts * t.team.size);
		stop = values[1] > 0;
		if (!isfinite(loss))
			die("the loss of step %d is %g: %s is as it was\nhint: a smaller --rate", step, loss, t.path);
		progress(&t, step, loss, rate, began, first);
		if (step % (o->save_every ? o->save_every : 500) == 0 && step != t.steps)
			saved = save(&t, step);
	}
	if (step > first)
		saved = save(&t, step);
	double loss = validate(&t);
	if (isfinite(loss) && !t.team.rank)
		printf("%s after step %d; loss of text not trained on: %.4f\n", stop ? "stopped" : "done", step, loss);
	team_end(&t.team);
	gpt_destroy(g);
	checkpoint_free(&t.checkpoint);
	free(t.text.tokens);
	free(t.tokens);
	return saved ? 0 : 1;
}
