/* gpt train TEXT, gpt sample FILE, gpt bench: the command line. */
#include "program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct options options = {
	.kernels = "examples/gpt/gpt.tl", .type = "fp32", .precision = "ieee", .temperature = -1, .decay = -1};

enum { FOR_TRAIN = 1, FOR_SAMPLE = 2, FOR_BENCH = 4, FOR_ANY = 7, FOR_EXPORT = 8 };

static const struct option {
	int commands;
	const char *name, *value, *help;
	const char **text;
	int *number, least, most;
	double *real;
} table[] = {
	{FOR_ANY, "device", "D", "cuda, cpu, interp, sim …; the best one here", .text = &options.device},
	{FOR_ANY, "kernels", "FILE", "examples/gpt/gpt.tl", .text = &options.kernels},
	{FOR_ANY, "dtype", "T", "of activations: fp32 (the default) or bf16", .text = &options.type},
	{FOR_ANY, "precision", "P", "of products of fp32 on a GPU: ieee (the default) or tf32",
	 .text = &options.precision},
	{FOR_TRAIN | FOR_EXPORT, "out", "FILE",
	 "the checkpoint: gpt.safetensors; where it exists, training goes on from it; of export a folder: weights",
	 .text = &options.out},
	{FOR_TRAIN, "from", "FILE", "weights to begin with, as GPT-2's model.safetensors, or a folder of .npy files",
	 .text = &options.from},
	{FOR_TRAIN | FOR_SAMPLE, "tokenizer", "DIR", "a folder with GPT-2's vocab.json and merges.txt; without: bytes",
	 .text = &options.tokenizer},
	{FOR_TRAIN | FOR_BENCH, "layers", "N", "6", .number = &options.layers, .least = 1, .most = 1000},
	{FOR_ANY, "heads", "N", "6; of 16, 32, 64 or 128 channels", .number = &options.heads, .least = 1, .most = 1000},
	{FOR_TRAIN | FOR_BENCH, "channels", "N", "384", .number = &options.channels, .least = 16, .most = 16384},
	{FOR_TRAIN | FOR_BENCH, "context", "N", "tokens of a sequence: 256", .number = &options.context, .least = 1,
	 .most = 1 << 20},
	{FOR_TRAIN | FOR_BENCH, "batch", "N", "sequences of a step, of all processes together: 8",
	 .number = &options.batch, .least = 1, .most = 1 << 20},
	{FOR_TRAIN | FOR_BENCH, "accumulate", "N", "parts that a step's sequences are computed in: 1",
	 .number = &options.accumulate, .least = 1, .most = 1 << 20},
	{FOR_TRAIN, "steps", "N", "1000", .number = &options.steps, .least = 1, .most = 1 << 30},
	{FOR_TRAIN, "warmup", "N", "steps while the rate grows: steps / 20", .number = &options.warmup, .least = 1,
	 .most = 1 << 30},
	{FOR_TRAIN, "rate", "X", "the largest learning rate: 1e-3; it falls by a cosine to a tenth",
	 .real = &options.rate},
	{FOR_TRAIN, "decay", "X", "weight decay: 0.1", .real = &options.decay},
	{FOR_TRAIN, "clip", "X", "the largest norm of the gradients: 1", .real = &options.clip},
	{FOR_TRAIN, "save-every", "N", "steps between checkpoints: 500", .number = &options.save_every, .least = 1,
	 .most = 1 << 30},
	{FOR_TRAIN, "log-every", "N", "steps between lines of output: 10", .number = &options.log_every, .least = 1,
	 .most = 1 << 30},
	{FOR_TRAIN | FOR_SAMPLE, "seed", "N", "1", .number = &options.seed, .least = 0, .most = 1 << 30},
	{FOR_SAMPLE, "prompt", "TEXT", "a newline", .text = &options.prompt},
	{FOR_SAMPLE | FOR_BENCH, "tokens", "N", "to generate: 200", .number = &options.tokens, .least = 1,
	 .most = 1 << 30},
	{FOR_SAMPLE, "temperature", "X", "1; 0: always the likeliest", .real = &options.temperature},
	{FOR_SAMPLE, "top-k", "N", "draw from the N likeliest; all", .number = &options.top_k, .least = 1,
	 .most = 1 << 30},
	{FOR_BENCH, "repeat", "N", "training steps that are timed: 10", .number = &options.repeat, .least = 1,
	 .most = 1 << 30},
};

static void usage(FILE *f)
{
	fputs("gpt train TEXT [OPTION]…    trains a model on a text file\n"
	      "gpt sample FILE [OPTION]…   continues a prompt by the model in the file\n"
	      "gpt export FILE [OPTION]…   writes the weights of a model as files .npy\n"
	      "gpt bench [OPTION]…         times training and generation of an untrained model\n"
	      "\noptions, and their defaults:\n",
	      f);
	for (size_t i = 0; i < COUNT(table); i++)
		fprintf(f, "  --%s %s%*s %s\n", table[i].name, table[i].value,
			(int)(19 - strlen(table[i].name) - strlen(table[i].value)), "", table[i].help);
}

static void set(const char *name, const char *value, int command)
{
	const struct option *o = table;
	while (o < table + COUNT(table) && (strcmp(o->name, name) || !(o->commands & command)))
		o++;
	if (o == table + COUNT(table))
		die("no option --%s here\nhint: gpt --help lists them", name);
	if (!value)
		die("--%s needs a value: %s", name, o->help);
	char *end = NULL;
	errno = 0;
	if (o->text) {
		*o->text = value;
	} else if (o->number) {
		long n = strtol(value, &end, 10);
		if (end == value || *end || errno || n < o->least || n > o->most)
			die("--%s %s: not a number from %d to %d", name, value, o->least, o->most);
		*o->number = (int)n;
	} else {
		*o->real = strtod(value, &end);
		if (end == value || *end || !(*o->real >= 0 && *o->real <= 1e9))
			die("--%s %s: not a number of 0 or more", name, value);
	}
}

double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void create(struct gpt *g, const struct options *o, const struct config *c, int batch, bool training)
{
	if (strcmp(o->precision, "ieee") && strcmp(o->precision, "tf32"))
		die("--precision %s: neither ieee nor tf32", o->precision);
	if (strcmp(o->type, "fp32") && strcmp(o->type, "bf16"))
		die("--dtype %s: neither fp32 nor bf16", o->type);
	gpt_create(g, o->device, o->kernels, c, strcmp(o->type, "fp32") ? TL_BF16 : TL_F32, batch, c->context,
		   training);
	g->precision = o->precision;
}

struct config config_of(const struct options *o, const struct config *usual)
{
	struct config c = *usual;
	if (o->layers)
		c.layers = o->layers;
	if (o->channels)
		c.channels = o->channels;
	if (o->heads)
		c.heads = o->heads;
	else if (o->channels)
		c.heads = o->channels < 64 ? 1 : o->channels / 64;
	if (o->context)
		c.context = o->context;
	return c;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int bit;
		bool file;
		int (*run)(const struct options *);
	} commands[] = {{"train", FOR_TRAIN, true, train},
			{"sample", FOR_SAMPLE, true, sample},
			{"export", FOR_EXPORT, true, export},
			{"bench", FOR_BENCH, false, bench}};
	if (argc < 2 || !strcmp(argv[1], "--help")) {
		usage(argc < 2 ? stderr : stdout);
		return argc < 2 ? 2 : 0;
	}
	for (size_t c = 0; c < COUNT(commands); c++) {
		if (strcmp(argv[1], commands[c].name))
			continue;
		for (int i = 2; i < argc; i++) {
			if (!strncmp(argv[i], "--", 2)) {
				set(argv[i] + 2, argv[i + 1], commands[c].bit);
				i++;
			} else if (commands[c].file && !options.file) {
				options.file = argv[i];
			} else {
				die("'%s' is one argument too many", argv[i]);
			}
		}
		if (commands[c].file && !options.file)
			die("gpt %s needs a file\nhint: gpt --help", argv[1]);
		return commands[c].run(&options);
	}
	die("no command '%s'\nhint: gpt --help lists them", argv[1]);
}
