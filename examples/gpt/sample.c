/* gpt sample and gpt bench. */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Text and its state: the cache has the keys and values of the newest `position` tokens. */
struct generator {
	struct gpt gpt;
	uint32_t *tokens; /* all tokens, with capacity for the tokens to be generated */
	int n;            /* number of tokens; the newest is at `position` in the cache, or not in it yet */
	int position;
};

/* Fills the cache with the newest tokens: all of them, or half of the context if they are more than the context. */
static void refill(struct generator *g, int drawn)
{
	int context = g->gpt.config.context, keep = g->n <= context ? g->n : (context + 1) / 2;
	const uint32_t *kept = g->tokens + (g->n - keep);
	if (keep > 1)
		gpt_prefill(&g->gpt, kept, keep - 1);
	gpt_put(&g->gpt, kept[keep - 1], keep - 1, drawn);
	g->position = keep - 1;
}

static uint32_t next(struct generator *g, int drawn, double temperature, int top_k, int seed)
{
	if (!drawn || g->position == g->gpt.config.context)
		refill(g, drawn);
	uint32_t token = gpt_step(&g->gpt, temperature, top_k, seed);
	g->position++;
	return g->tokens[g->n++] = token;
}

int sample(const struct options *o)
{
	struct checkpoint c;
	struct generator g = {0};
	checkpoint_read(&c, o->file, o->heads);
	const char *folder = o->tokenizer ? o->tokenizer : c.tokenizer, *prompt = o->prompt ? o->prompt : "\n";
	struct tokenizer *t = tokenizer_open(folder);
	if (tokenizer_size(t) > c.config.vocabulary)
		die("%s has %d tokens, the tokenizer %d\nhint: --tokenizer names the folder of its own", o->file,
		    c.config.vocabulary, tokenizer_size(t));
	size_t n;
	int wanted = o->tokens ? o->tokens : 200;
	uint32_t *tokens = tokenizer_encode(t, prompt, strlen(prompt), &n);
	if (!n)
		die("the prompt is empty");
	g.tokens = realloc(tokens, (n + (size_t)wanted) * sizeof *tokens);
	if (!g.tokens)
		die("out of memory");
	g.n = (int)n;
	create(&g.gpt, o, &c.config, 1, false);
	gpt_set_weights(&g.gpt, c.weights);
	fputs(prompt, stdout);
	for (int i = 0; i < wanted; i++) {
		uint32_t token = next(&g, i, o->temperature >= 0 ? o->temperature : 1, o->top_k, o->seed ? o->seed : 1);
		size_t len;
		const char *bytes = tokenizer_decode(t, token, &len);
		fwrite(bytes, 1, len, stdout);
		fflush(stdout);
	}
	putchar('\n');
	bool written = !ferror(stdout);
	gpt_destroy(&g.gpt);
	checkpoint_free(&c);
	tokenizer_close(t);
	free(g.tokens);
	return written ? 0 : 1;
}

/* The peak memory of this process in MB; getrusage would include the parent process before the fork. */
static size_t resident(void)
{
	char line[128];
	size_t kb = 0;
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof line, f))
		sscanf(line, "VmHWM: %zu", &kb);
	if (f)
		fclose(f);
	return kb >> 10;
}

/* Times steps of training on random tokens, then the generation of tokens. */
int bench(const struct options *o)
{
	struct config c = config_of(o, &(struct config){50257, 256, 384, 6, 6});
	int batch = o->batch ? o->batch : 8, parts = o->accumulate ? o->accumulate : 1,
	    repeat = o->repeat ? o->repeat : 10;
	int wanted = o->tokens ? o->tokens : 200, part = batch / parts;
	size_t rows = (size_t)part * (size_t)c.context;
	uint64_t random = 1;
	struct gpt g;
	if (batch % parts)
		die("--accumulate %d does not divide --batch %d", parts, batch);
	create(&g, o, &c, part, true);
	gpt_random_weights(&g, 1);
	uint32_t *tokens = calloc(2 * rows, sizeof *tokens);
	if (!tokens)
		die("out of memory");
	for (size_t i = 0; i < 2 * rows; i++)
		tokens[i] = (uint32_t)(next_random(&random) % (uint64_t)c.vocabulary);
	double began = 0, loss = 0;
	int warm = 3;
	for (int step = 1; step <= warm + repeat; step++) {
		if (step == warm + 1) {
			must(tl_synchronize(g.ctx));
			began = seconds();
		}
		for (int i = 0; i < parts; i++)
			loss = gpt_loss(&g, tokens, tokens + rows, part, c.context, 1.0 / parts, i > 0, NULL, NULL);
		gpt_update(&g, &(struct adamw){1e-4, 0.9, 0.95, 1e-8, 0.1, 1}, step);
	}
	must(tl_synchronize(g.ctx));
	double training = (double)repeat * batch * c.context / (seconds() - began);
	size_t bytes = g.bytes;
	size_t parameters = g.size;
	gpt_destroy(&g);

	struct generator generator = {.n = 1, .tokens = calloc((size_t)wanted + 32, sizeof(uint32_t))};
	if (!generator.tokens)
		die("out of memory");
	create(&generator.gpt, o, &c, 1, false);
	gpt_random_weights(&generator.gpt, 1);
	for (int i = 0; i < wanted + 8; i++) {
		if (i == 8)
			began = seconds();
		next(&generator, i, 1, 0, 1);
	}
	double generation = wanted / (seconds() - began);
	printf("%.1f M parameters, %s, %s: training %.0f tokens/s, loss %.4f; generation %.1f tokens/s; %zu MB for "
	       "training (%zu MB of the process)\n",
	       (double)parameters / 1e6, o->type, generator.gpt.device.kind, training, loss, generation, bytes >> 20,
	       resident());
	gpt_destroy(&generator.gpt);
	free(generator.tokens);
	free(tokens);
	return 0;
}
