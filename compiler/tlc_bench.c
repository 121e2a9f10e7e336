/* `tlc bench`: the time of a kernel, for one value of an argument or a range of them, as a line, a table or JSON. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "tlc.h"

/* "n=1024..32768:x2", of an argument or of -D: the name, from, to, and how to go on. */
struct sweep {
	const char *name;
	size_t len; /* of the name; 0: there is none */
	i64 first, last, step;
	bool multiplies;
};

/* False: the text is no range. */
static bool read_sweep(const char *text, struct sweep *s)
{
	const char *eq = strchr(text, '=');
	char *end;
	if (!eq || eq[1] < '0' || eq[1] > '9')
		return false;
	errno = 0;
	*s = (struct sweep){text, (size_t)(eq - text), .step = 2, .multiplies = true};
	s->first = strtoll(eq + 1, &end, 10);
	if (end[0] != '.' || end[1] != '.' || end[2] < '0' || end[2] > '9')
		return false;
	s->last = strtoll(end + 2, &end, 10);
	if (end[0] == ':' && (end[1] == 'x' || end[1] == '+') && end[2] >= '0' && end[2] <= '9') {
		s->multiplies = end[1] == 'x';
		s->step = strtoll(end + 2, &end, 10);
	}
	return !*end && !errno;
}

static bool next_value(const struct sweep *s, i64 *v)
{
	return !(s->multiplies ? __builtin_mul_overflow(*v, s->step, v) : __builtin_add_overflow(*v, s->step, v)) &&
	       *v <= s->last;
}

static bool is_part_of_name(char c)
{
	return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The argument for one value of the range: its own value, or shapes that name it. */
static const char *with_value(struct arena *a, const struct sweep *s, const char *text, i64 v)
{
	struct strbuf out = {.arena = a};
	struct sweep mine;
	if (read_sweep(text, &mine))
		return arena_printf(a, "%.*s=%lld", (int)s->len, s->name, (long long)v);
	int depth = 0;
	sb_puts(&out, "");
	for (const char *at = text; *at;) {
		size_t len = 0;
		while (is_part_of_name(at[len]))
			len++;
		if (depth && len == s->len && !memcmp(at, s->name, len)) {
			sb_printf(&out, "%lld", (long long)v);
		} else {
			depth += !len && *at == '[';
			depth -= !len && *at == ']';
			len = MAX(len, 1);
			sb_add(&out, at, len);
			at += len;
			continue;
		}
		at += len;
	}
	return out.at;
}

static bool goes_up(const struct sweep *s)
{
	return s->first <= s->last && s->step > s->multiplies && (s->first || !s->multiplies);
}

/* NAME=VALUE may be the command's range. False after a message. */
static bool take_sweep(const char *text, struct sweep *out)
{
	struct sweep s;
	if (!read_sweep(text, &s))
		return true;
	if (out->len)
		complain(0, "'%.*s' and '%.*s' are both ranges; one can be", (int)out->len, out->name, (int)s.len,
			 s.name);
	else if (!goes_up(&s))
		complain(0, "'%s' is no range that goes up: A..B:xN multiplies by N, A..B:+N adds it", text);
	if (out->len || !goes_up(&s))
		return false;
	*out = s;
	return true;
}

static bool find_sweep(struct command *c, struct sweep *out)
{
	bool good = true;
	*out = (struct sweep){.len = 0};
	for (u32 i = 0; i < c->args.len && good; i++)
		good = take_sweep(c->args.at[i], out);
	for (u32 i = 0; i < c->defines.len && good; i++)
		good = take_sweep(arena_printf(&c->arena, "%s=%s", c->defines.at[i].name, c->defines.at[i].value), out);
	return good;
}

/* The command for one value of the range, with memory of its own. */
static struct command command_for(struct command *c, const struct sweep *s, i64 v)
{
	struct command one = *c;
	struct sweep mine;
	one.arena = (struct arena){0};
	one.args.at = arena_array(&one.arena, const char *, c->args.len + 1);
	one.defines.at = arena_array(&one.arena, struct define, c->defines.len + 1);
	for (u32 i = 0; i < c->args.len; i++)
		one.args.at[i] = s->len ? with_value(&one.arena, s, c->args.at[i], v) : c->args.at[i];
	for (u32 i = 0; i < c->defines.len; i++) {
		struct define d = c->defines.at[i];
		if (read_sweep(arena_printf(&one.arena, "%s=%s", d.name, d.value), &mine))
			d.value = arena_printf(&one.arena, "%lld", (long long)v);
		one.defines.at[i] = d;
	}
	return one;
}

/* --- output -------------------------------------------------------------------------------------------------- */

static void print_rate(const char *before, double rate, const char *unit)
{
	if (rate)
		printf("%s%.4g%s", before, rate, unit);
}

static void print_sentence(const struct measurement *m)
{
	printf("%s on %s: %.4g ms", m->kernel, m->device, m->ms);
	if (m->simulated) {
		printf(" of this computer's time, which say nothing about a GPU%s\n",
		       m->wants_rates ? ": rates are left out" : "");
		return;
	}
	print_rate("  ", m->bytes, " GB/s");
	print_rate("  ", m->flops, " TFLOPS");
	printf("; of %d launches 60 %% took %.4g to %.4g ms\n", m->launches, m->low, m->high);
}

static void print_row(const struct command *c, const struct measurement *m, i64 v)
{
	printf("| %lld | %.4g | %.4g | %.4g |", (long long)v, m->ms, m->low, m->high);
	if (c->bytes)
		printf(m->simulated ? " – |" : " %.4g |", m->bytes);
	if (c->flops)
		printf(m->simulated ? " – |" : " %.4g |", m->flops);
	printf("\n");
	fflush(stdout);
}

static void print_head(const struct command *c, const struct sweep *s)
{
	printf("| %.*s | ms | 20 %% | 80 %% |%s%s\n|---|---|---|---|%s%s\n", (int)s->len, s->name,
	       c->bytes ? " GB/s |" : "", c->flops ? " TFLOPS |" : "", c->bytes ? "---|" : "", c->flops ? "---|" : "");
}

static void print_json(const struct command *c, const struct measurement *m, const struct sweep *s, i64 v)
{
	struct arena a = {0};
	struct strbuf out = {.arena = &a};
	sb_puts(&out, "{\"kernel\": ");
	sb_json(&out, m->kernel);
	sb_puts(&out, ", \"device\": ");
	sb_json(&out, m->device);
	if (s->len)
		sb_printf(&out, ", \"%.*s\": %lld", (int)s->len, s->name, (long long)v);
	sb_printf(&out, ", \"launches\": %d, \"ms\": %.9g, \"ms_20\": %.9g, \"ms_80\": %.9g", m->launches, m->ms,
		  m->low, m->high);
	if (c->bytes && !m->simulated)
		sb_printf(&out, ", \"gbps\": %.9g", m->bytes);
	if (c->flops && !m->simulated)
		sb_printf(&out, ", \"tflops\": %.9g", m->flops);
	sb_puts(&out, "}");
	fputs(out.at, stdout);
	arena_free(&a);
}

/* --- the curve ----------------------------------------------------------------------------------------------- */

struct points {
	VEC(double) x;
	VEC(double) y;
};

static bool ends_in(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);
	return n > m && !strcmp(s + n - m, end);
}

/* False after a message. */
static bool can_plot(const struct command *c, const struct sweep *s)
{
	if (!c->plot)
		return true;
	if (!s->len)
		complain(0, "--plot: there is no range to draw, as in n=1024..32768:x2");
	else if (!ends_in(c->plot, ".svg") && !ends_in(c->plot, ".png"))
		complain(0, "--plot: '%s' ends neither in .svg nor in .png", c->plot);
	return s->len && (ends_in(c->plot, ".svg") || ends_in(c->plot, ".png"));
}

/* Between quotes of gnuplot's, which are doubled inside. */
static void put_quoted(FILE *f, const char *s, size_t len)
{
	fputc('\'', f);
	for (size_t i = 0; i < len; i++) {
		if (s[i] == '\'')
			fputc('\'', f);
		fputc(s[i], f);
	}
	fputc('\'', f);
}

static int plot(const struct command *c, const struct sweep *s, const struct points *p)
{
	FILE *f = popen("gnuplot", "w");
	if (!f)
		return complain(EXIT_ENVIRONMENT, "--plot: gnuplot cannot be started");
	fprintf(f, "set terminal %s size 800,500\nset output ", ends_in(c->plot, ".svg") ? "svg" : "png");
	put_quoted(f, c->plot, strlen(c->plot));
	fprintf(f, "\nset grid\nset yrange [0:*]\n%sset xlabel ", s->multiplies ? "set logscale x 2\n" : "");
	put_quoted(f, s->name, s->len);
	fprintf(f, "\nset ylabel '%s'\nplot '-' with linespoints notitle\n",
		c->bytes   ? "GB/s"
		: c->flops ? "TFLOPS"
			   : "ms");
	for (u32 i = 0; i < p->x.len; i++)
		fprintf(f, "%.17g %.17g\n", p->x.at[i], p->y.at[i]);
	fprintf(f, "e\n");
	return pclose(f) ? complain(EXIT_ENVIRONMENT, "--plot: gnuplot has not drawn '%s': is it installed?", c->plot)
			 : EXIT_DONE;
}

int command_bench(struct command *c)
{
	struct sweep s;
	struct points points = {{0}, {0}};
	if (!find_sweep(c, &s) || !can_plot(c, &s))
		return EXIT_USER;
	if (c->json)
		printf("[");
	i64 v = s.first;
	int code = EXIT_DONE;
	do {
		struct command one = command_for(c, &s, v);
		code = command_run(&one);
		if (!code && c->json) {
			printf("%s", v == s.first ? "" : ",\n ");
			print_json(c, &one.measured, &s, v);
		} else if (!code && s.len) {
			if (v == s.first && one.measured.simulated)
				fputs("tlc: note: these are this computer's times, which say nothing about a GPU\n",
				      stderr);
			if (v == s.first)
				print_head(c, &s);
			print_row(c, &one.measured, v);
		} else if (!code) {
			print_sentence(&one.measured);
		}
		const struct measurement *m = &one.measured;
		vec_push(&c->arena, &points.x, (double)v);
		vec_push(&c->arena, &points.y, c->bytes ? m->bytes : c->flops ? m->flops : m->ms);
		arena_free(&one.arena);
	} while (!code && s.len && next_value(&s, &v));
	if (c->json)
		printf("]\n");
	return code || !c->plot ? code : plot(c, &s, &points);
}
