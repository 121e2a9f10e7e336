/* `tlc bench`: times one kernel, or several alternately, for one value of an argument or for a range. */
#include <stdlib.h>

#include "runtime/device/device.h"
#include "cli/cmd_bench.h"

enum { TURNS = 5, WARMUP = 5, LAUNCHES = 50, MOST_LAUNCHES = 10000 };

struct bench {
	struct command *c;
	struct sweep sweep;
	struct contender *at;
	u32 n, done, total;        /* done: measured rounds of all contenders, of `total` */
	double tolerance;          /* of --check */
	VEC(struct rates *) rates; /* by device */
};

/* --- contenders ---------------------------------------------------------------------------------------------- */

/* Appends a value to a contender's label: "--num-warps" and "8" as "num_warps=8"; for -k, -D, --device and FILE only
 * the value. */
static void add_label(struct strbuf *label, const char *option, const char *value)
{
	sb_printf(label, "%s", label->len ? " " : "");
	if (option && !strncmp(option, "--", 2) && strcmp(option, "--device") != 0) {
		for (const char *s = option + 2; *s; s++)
			sb_printf(label, "%c", *s == '-' ? '_' : *s);
		sb_puts(label, "=");
	}
	sb_puts(label, value);
}

/* Makes the contender for the i-th combination of the compared values; the values of the last option change first. */
static bool make_contender(struct bench *b, u32 i, i64 v, struct contender *x)
{
	struct command *c = b->c;
	*x = (struct contender){.command = command_for(c, &b->sweep, v)};
	struct strbuf label = sb_empty(&c->arena);
	u32 combinations = b->n;
	for (u32 k = 0; k < c->compared.len; k++) {
		const struct compared *by = &c->compared.at[k];
		combinations /= by->values.len;
		const char *value = by->values.at[i / combinations % by->values.len];
		add_label(&label, by->option, value);
		if (!choose_compared(&x->command, by->option, value))
			return false;
	}
	x->label = label.at;
	return true;
}

static void count_contenders(struct bench *b)
{
	struct command *c = b->c;
	if (c->against) {
		struct compared files = {.option = NULL};
		vec_push(&c->arena, &files.values, c->file);
		vec_push(&c->arena, &files.values, c->against);
		vec_push(&c->arena, &c->compared, files);
	}
	b->n = 1;
	for (u32 i = 0; i < c->compared.len; i++) {
		const char *option = c->compared.at[i].option;
		b->n *= c->compared.at[i].values.len;
		c->compares_kernels |= !option || !strcmp(option, "-k");
	}
	b->at = arena_array(&c->arena, struct contender, b->n);
}

/* A name that no kernel has as a parameter is an error. */
static int check_left_out(const struct bench *b)
{
	const struct command *first = &b->at[0].command;
	for (u32 i = 0; i < first->left_out.len; i++) {
		u32 lack = 0;
		for (u32 k = 0; k < b->n; k++)
			for (u32 j = 0; j < b->at[k].command.left_out.len; j++)
				lack += !strcmp(first->left_out.at[i], b->at[k].command.left_out.at[j]);
		if (lack == b->n)
			return complain(EXIT_USER, "none of the kernels has a parameter '%s'", first->left_out.at[i]);
	}
	return EXIT_DONE;
}

/* Reads back the results of both contenders and compares them. */
static int compare_results(struct contender *first, struct contender *x, double tolerance)
{
	for (u32 i = 0; i < x->session.nargs; i++) {
		struct argument *a = &x->session.args[i];
		for (u32 k = 0; k < first->session.nargs; k++) {
			struct argument *b = &first->session.args[k];
			char *difference;
			if (strcmp(a->name, b->name) != 0)
				continue;
			if ((difference = value_difference(&x->command.arena, a, b, tolerance)))
				return complain(EXIT_USER, "%s: %s with %s", x->label, difference, first->label);
		}
	}
	return EXIT_DONE;
}

/* Launches each contender once, and compares its results with the first contender's. */
static int check_results(struct bench *b)
{
	int code = EXIT_DONE;
	for (u32 i = 0; i < b->n && !code; i++) {
		code = run_launch(&b->at[i].session);
		if (!code)
			code = run_read(&b->at[i].session);
		if (!code && i)
			code = compare_results(&b->at[0], &b->at[i], b->tolerance);
	}
	return code;
}

/* --- measuring ----------------------------------------------------------------------------------------------- */

/* The numbers of launches for --warmup and --rep milliseconds; default 5 and 50. */
static int count_launches(struct contender *x)
{
	const struct command *c = &x->command;
	double ms[5];
	x->warmup = WARMUP;
	x->launches = LAUNCHES;
	if (!c->rep_ms && !c->warmup_ms)
		return EXIT_DONE;
	int code = run_time(&x->session, 1, ARRAY_LEN(ms), ms);
	double once = MAX(median(ms, ARRAY_LEN(ms)), 1e-4);
	if (c->rep_ms)
		x->launches = (int)MIN(MAX(c->rep_ms / once, 5), MOST_LAUNCHES);
	if (c->warmup_ms)
		x->warmup = (int)MIN(MAX(c->warmup_ms / once, 1), MOST_LAUNCHES);
	return code;
}

/* The rates of the contender's device, which are measured once. */
static void find_rates(struct bench *b, struct contender *x)
{
	struct rates *r = NULL;
	for (u32 i = 0; i < b->rates.len; i++)
		if (!strcmp(b->rates.at[i]->device, x->session.device.spec))
			r = b->rates.at[i];
	if (!r) {
		r = arena_new(&b->c->arena, struct rates);
		vec_push(&b->c->arena, &b->rates, r);
		measure_rates(b->c, &x->session, r);
	}
	x->rates = r;
}

/* Times all contenders in alternating rounds, so that a change of the device's speed affects all of them. */
static int take_turns(struct bench *b)
{
	int turns = b->n > 1 ? TURNS : 1, code = EXIT_DONE;
	for (u32 i = 0; i < b->n && !code; i++) {
		struct contender *x = &b->at[i];
		code = count_launches(x);
		x->launches = (x->launches + turns - 1) / turns * turns;
		x->each = arena_array(&x->command.arena, double, (size_t)x->launches);
	}
	for (int turn = 0; turn < turns; turn++)
		for (u32 i = 0; i < b->n && !code; i++) {
			struct contender *x = &b->at[i];
			int n = x->launches / turns;
			show_progress(b->done++, b->total);
			code = run_time(&x->session, turn ? 1 : x->warmup, n, x->each + turn * n);
		}
	return code;
}

static int evaluate_times(struct contender *first, struct contender *x)
{
	const struct command *c = &x->command;
	double amount;
	x->ms = median(x->each, x->launches); /* reorders `each` */
	x->low = x->each[x->launches / 5];
	x->high = x->each[x->launches - 1 - x->launches / 5];
	if (is_simulated(x))
		return EXIT_DONE;
	if (!is_simulated(first) && x->ms)
		x->speedup = first->ms / x->ms;
	if (c->bytes && !run_evaluate(&x->session, "--bytes", c->bytes, &amount))
		return EXIT_USER;
	x->gbps = c->bytes ? amount / x->ms * 1e-6 : 0;
	if (c->flops && !run_evaluate(&x->session, "--flops", c->flops, &amount))
		return EXIT_USER;
	x->tflops = c->flops ? amount / x->ms * 1e-9 : 0;
	return EXIT_DONE;
}

static int measure(struct bench *b)
{
	int code = check_left_out(b);
	for (u32 i = 0; i < b->n && !code; i++)
		find_rates(b, &b->at[i]);
	if (!code && b->c->check && b->n > 1)
		code = check_results(b);
	if (!code)
		code = take_turns(b);
	for (u32 i = 0; i < b->n && !code; i++)
		code = evaluate_times(&b->at[0], &b->at[i]);
	return code;
}

/* Measures all contenders for one value of the range. */
static int bench_value(struct bench *b, i64 v)
{
	u32 opened = 0;
	int code = EXIT_DONE;
	while (opened < b->n && !code) {
		struct contender *x = &b->at[opened++];
		code = make_contender(b, opened - 1, v, x) ? run_open(&x->session, &x->command) : EXIT_USER;
	}
	return code ? code : measure(b);
}

static void close_contenders(struct bench *b)
{
	for (u32 i = 0; i < b->n; i++) {
		if (b->at[i].session.c)
			run_close(&b->at[i].session);
		arena_free(&b->at[i].command.arena);
		b->at[i].session.c = NULL;
	}
}

int command_bench(struct command *c)
{
	struct bench b = {.c = c};
	struct points points = {{0}, {0}};
	if (!find_sweep(c, &b.sweep) || !can_plot(c, &b.sweep) || !read_tolerance(c, &b.tolerance))
		return EXIT_USER;
	if (!strcmp(c->file, "-") && !(c->input = read_file(&c->arena, c->file, &c->input_len)))
		return EXIT_ENVIRONMENT;
	count_contenders(&b);
	const char **labels = arena_array(&c->arena, const char *, b.n);
	i64 v = b.sweep.first;
	do
		b.total += b.n * (b.n > 1 ? TURNS : 1);
	while (b.sweep.len && next_value(&b.sweep, &v));
	int code;
	if (c->json)
		printf("[");
	v = b.sweep.first;
	do {
		code = bench_value(&b, v);
		show_progress(0, 0);
		if (!code) {
			show_measured(c, &b.sweep, v, b.at, b.n, v == b.sweep.first);
			add_points(c, &points, v, b.at, b.n);
		}
		for (u32 i = 0; i < b.n; i++)
			labels[i] = b.at[i].label;
		close_contenders(&b);
	} while (!code && b.sweep.len && next_value(&b.sweep, &v));
	if (c->json)
		printf("]\n");
	return code || !c->plot ? code : plot(c, &b.sweep, &points, labels, b.n);
}
