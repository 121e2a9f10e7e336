/* The output of `tlc bench`: a sentence, a table, JSON or a plot, and the progress of the measurement. */
#include <stdlib.h>
#include <unistd.h>

#include "cli/cmd_bench.h"

bool is_simulated(const struct contender *x)
{
	return !strcmp(x->session.device.kind, "sim");
}

/* --- text ---------------------------------------------------------------------------------------------------- */

static const char *type_name(const struct rates *r)
{
	return r->dtype == TL_F32 ? "tf32" : tl_dtype_name(r->dtype);
}

static double percent(double x, double of)
{
	return of ? 100 * x / of : 0;
}

static void print_sentence(const struct command *c, const struct contender *x)
{
	const struct rates *r = x->rates;
	printf("%s on %s: %.4g ms", x->session.kernel_name, x->session.device.name, x->ms);
	if (is_simulated(x)) {
		printf(" of this computer's time, which say nothing about a GPU%s\n",
		       c->bytes || c->flops ? ": rates are left out" : "");
		return;
	}
	if (c->bytes)
		printf("  %.4g GB/s", x->gbps);
	if (r->copy)
		printf(" (%.3g %% of the %.4g of a copy)", percent(x->gbps, r->copy), r->copy);
	if (c->flops)
		printf("  %.4g TFLOPS", x->tflops);
	if (r->dots)
		printf(" (%.3g %% of the %.4g of %s dots)", percent(x->tflops, r->dots), r->dots, type_name(r));
	printf("; of %d launches 60 %% took %.4g to %.4g ms\n", x->launches, x->low, x->high);
}

/* A cell of a table; 0: unknown. */
static void cell(double x)
{
	if (x)
		printf(" %.4g |", x);
	else
		printf(" – |");
}

static void print_row(const struct command *c, const struct sweep *s, i64 v, const struct contender *x, bool several)
{
	printf("|");
	if (s->len)
		printf(" %lld |", (long long)v);
	if (several)
		printf(" %s |", x->label);
	printf(" %.4g | %.4g | %.4g |", x->ms, x->low, x->high);
	if (several)
		cell(x->speedup);
	if (c->bytes) {
		cell(x->gbps);
		cell(percent(x->gbps, x->rates->copy));
	}
	if (c->flops) {
		cell(x->tflops);
		cell(percent(x->tflops, x->rates->dots));
	}
	printf("\n");
}

/* The rates that the percentages refer to, once for each device. */
static void print_rates(const struct contender *at, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		bool before = false;
		for (u32 k = 0; k < i; k++)
			before |= at[k].rates == at[i].rates;
		const struct rates *r = at[i].rates;
		if (before || (!r->copy && !r->dots))
			continue;
		printf("%s (%s):", r->device, at[i].session.device.name);
		if (r->copy)
			printf(" copy %.4g GB/s", r->copy);
		if (r->dots)
			printf("%s %s dots %.4g TFLOPS", r->copy ? "," : "", type_name(r), r->dots);
		printf("\n");
	}
}

static void print_head(const struct command *c, const struct sweep *s, const struct contender *at, u32 n)
{
	int columns = 3 + (s->len != 0) + 2 * (n > 1) + 2 * (c->bytes != NULL) + 2 * (c->flops != NULL);
	for (u32 i = 0; i < n; i++)
		if (is_simulated(&at[i])) {
			fputs("tlc: note: times of the simulator are this computer's, which say nothing about a GPU\n",
			      stderr);
			break;
		}
	print_rates(at, n);
	printf("|");
	if (s->len)
		printf(" %.*s |", (int)s->len, s->name);
	printf("%s ms | 20 %% | 80 %% |%s%s%s\n|", n > 1 ? " case |" : "", n > 1 ? " speedup |" : "",
	       c->bytes ? " GB/s | % of copy |" : "", c->flops ? " TFLOPS | % of dots |" : "");
	while (columns--)
		printf("---|");
	printf("\n");
}

static void print_json(const struct command *c, const struct sweep *s, i64 v, const struct contender *x, bool several)
{
	struct arena a = {0};
	struct strbuf out = {.arena = &a};
	sb_puts(&out, "{\"kernel\": ");
	sb_json(&out, x->session.kernel_name);
	sb_puts(&out, ", \"device\": ");
	sb_json(&out, x->session.device.name);
	if (several) {
		sb_puts(&out, ", \"label\": ");
		sb_json(&out, x->label);
	}
	if (s->len)
		sb_printf(&out, ", \"%.*s\": %lld", (int)s->len, s->name, (long long)v);
	sb_printf(&out, ", \"launches\": %d, \"ms\": %.9g, \"ms_20\": %.9g, \"ms_80\": %.9g", x->launches, x->ms,
		  x->low, x->high);
	if (several && x->speedup)
		sb_printf(&out, ", \"speedup\": %.9g", x->speedup);
	if (c->bytes && !is_simulated(x))
		sb_printf(&out, ", \"gbps\": %.9g", x->gbps);
	if (x->rates->copy)
		sb_printf(&out, ", \"copy_gbps\": %.9g", x->rates->copy);
	if (c->flops && !is_simulated(x))
		sb_printf(&out, ", \"tflops\": %.9g", x->tflops);
	if (x->rates->dots)
		sb_printf(&out, ", \"dots_tflops\": %.9g, \"dots_type\": \"%s\"", x->rates->dots, type_name(x->rates));
	sb_puts(&out, "}");
	fputs(out.at, stdout);
	arena_free(&a);
}

void show_measured(const struct command *c, const struct sweep *s, i64 v, const struct contender *at, u32 n, bool first)
{
	bool table = s->len || n > 1;
	if (first && table && !c->json)
		print_head(c, s, at, n);
	for (u32 i = 0; i < n; i++) {
		if (c->json) {
			printf("%s", first && !i ? "" : ",\n ");
			print_json(c, s, v, &at[i], n > 1);
		} else if (table) {
			print_row(c, s, v, &at[i], n > 1);
		} else {
			print_sentence(c, &at[i]);
		}
	}
	fflush(stdout);
}

/* --- progress ------------------------------------------------------------------------------------------------ */

void show_progress(u32 done, u32 total)
{
	enum { WIDTH = 30 };
	static const char marks[WIDTH + 1] = "##############################",
					dots[WIDTH + 1] = "..............................";
	if (!isatty(STDERR_FILENO))
		return;
	int full = total ? (int)((u64)WIDTH * done / total) : 0;
	if (total)
		fprintf(stderr, "\r[%.*s%.*s] %u/%u", full, marks, WIDTH - full, dots, done, total);
	else
		fputs("\r\033[K", stderr);
	fflush(stderr);
}

/* --- curves -------------------------------------------------------------------------------------------------- */

bool can_plot(const struct command *c, const struct sweep *s)
{
	bool good = s->len && c->plot && (ends_in(c->plot, ".svg") || ends_in(c->plot, ".png"));
	if (!c->plot)
		return true;
	if (!s->len)
		refuse("--plot: there is no range to draw, as in n=1024..32768:x2");
	else if (!good)
		refuse("--plot: '%s' ends neither in .svg nor in .png", c->plot);
	return good;
}

void add_points(struct command *c, struct points *p, i64 v, const struct contender *at, u32 n)
{
	vec_push(&c->arena, &p->x, (double)v);
	for (u32 i = 0; i < n; i++)
		vec_push(&c->arena, &p->y, c->bytes ? at[i].gbps : c->flops ? at[i].tflops : at[i].ms);
}

/* A string in gnuplot's single quotes, which are doubled inside. */
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

int plot(const struct command *c, const struct sweep *s, const struct points *p, const char *const *labels, u32 n)
{
	FILE *f = popen("gnuplot", "w");
	if (!f)
		return complain(EXIT_ENVIRONMENT, "--plot: gnuplot cannot be started");
	fprintf(f, "set terminal %s size 800,500 noenhanced\nset output ", ends_in(c->plot, ".svg") ? "svg" : "png");
	put_quoted(f, c->plot, strlen(c->plot));
	fprintf(f, "\nset grid\nset key left top\nset yrange [0:*]\n%sset xlabel ",
		s->multiplies ? "set logscale x 2\n" : "");
	put_quoted(f, s->name, s->len);
	fprintf(f, "\nset ylabel '%s'\nplot", c->bytes ? "GB/s" : c->flops ? "TFLOPS" : "ms");
	for (u32 i = 0; i < n; i++) {
		fprintf(f, "%s '-' with linespoints title ", i ? "," : "");
		put_quoted(f, labels[i], strlen(labels[i]));
	}
	fprintf(f, "\n");
	for (u32 i = 0; i < n; i++) {
		for (u32 k = 0; k < p->x.len; k++)
			fprintf(f, "%.17g %.17g\n", p->x.at[k], p->y.at[k * n + i]);
		fprintf(f, "e\n");
	}
	return pclose(f) ? complain(EXIT_ENVIRONMENT, "--plot: gnuplot has not drawn '%s': is it installed?", c->plot)
			 : EXIT_DONE;
}
