/* The output of `tlc tune`: the configurations of a kernel, the fastest first, and the reason why others did not
 * run. */
#include <stdlib.h>

#include "runtime/tune/tune.h"
#include "cli/cli.h"

static bool has_cost(const struct candidate *c)
{
	return c->outcome == OUTCOME_TIMED || c->outcome == OUTCOME_STOPPED;
}

static int by_cost(const void *x, const void *y)
{
	const struct candidate *a = *(const struct candidate *const *)x, *b = *(const struct candidate *const *)y;
	if (has_cost(a) != has_cost(b))
		return has_cost(a) ? -1 : 1;
	if (has_cost(a) && a->cost != b->cost)
		return a->cost < b->cost ? -1 : 1;
	if (a->rank != b->rank) /* 0 is last */
		return a->rank - 1 < b->rank - 1 ? -1 : 1;
	return (a > b) - (a < b);
}

/* A cell of the table; 0: unknown. */
static void cell(int width, size_t n)
{
	if (n)
		printf("%*zu", width, n);
	else
		printf("%*s", width, "-");
}

static void show_row(const struct tuned_choice *ch, const struct candidate *c)
{
	const char *before = "  ";
	if (has_cost(c) && ch->best->cost > 0)
		printf("%10.4g %8.2f", c->cost, c->cost / ch->best->cost);
	else
		printf("%10s %8s", "-", "-");
	if (ch->most && c->estimate.us > 0)
		printf("%10.4g", c->estimate.us);
	else if (ch->most)
		printf("%10s", "-");
	cell(10, (size_t)c->resources.registers);
	cell(8, c->resources.local_bytes);
	cell(8, c->resources.shared_bytes);
	printf("%s%s", before, c->text);
	if (c->outcome == OUTCOME_PRUNED)
		printf("; not tried");
	if (c->outcome == OUTCOME_FAILED)
		printf("; failed");
	if (c->outcome == OUTCOME_STOPPED)
		printf("; not timed to the end");
	if (c->why)
		printf(": %s", c->why);
	if (c->equal && c->apart >= 0)
		printf("; equal to the best within %.2g %%", 100 * c->apart);
	else if (c->equal)
		printf("; not told apart from the best in the time there is (--rep MS gives more)");
	putchar('\n');
}

void show_tuning(struct arena *a, const char *kernel, const char *device, const struct tuned_choice *ch)
{
	const struct candidate **rows = arena_array(a, const struct candidate *, ch->n);
	for (u32 i = 0; i < ch->n; i++)
		rows[i] = &ch->at[i];
	qsort(rows, ch->n, sizeof *rows, by_cost);
	printf("%s on %s, %s\n", kernel, device, ch->key);
	printf("%10s %8s%s%10s%8s%8s  configuration\n", ch->unit, "of best", ch->most ? "  model us" : "", "registers",
	       "local", "shared");
	for (u32 i = 0; i < ch->n; i++)
		show_row(ch, rows[i]);
}
