/* A kernel of tests/aot/composites.tl compiled ahead of time: its composites' elements are the launcher's parameters.
 */
#include "scaled.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 40, COLUMNS = 64, MOST = ROWS * COLUMNS };

static tl_context *ctx;

static void must(tl_status s)
{
	if (!s)
		return;
	fprintf(stderr, "%s: %s\n", tl_status_name(s), tl_error(ctx));
	exit(1);
}

static tl_buffer *new_buffer(const void *data, size_t bytes)
{
	tl_buffer *b;
	must(tl_buffer_create(ctx, bytes, &b));
	must(tl_buffer_write(b, 0, data, bytes));
	return b;
}

/* Of `rows` rows of as many columns; the output's elements lie `step` apart. */
static int launch(tl_compiled *kernel, int rows, int columns, int step)
{
	static float x[MOST], y[2 * MOST], is[2 * MOST];
	int32_t calls = 0;
	for (int i = 0; i < MOST; i++)
		x[i] = (float)(rand() % 1000);
	for (int i = 0; i < 2 * MOST; i++)
		y[i] = -1;
	tl_buffer *bx = new_buffer(x, sizeof x), *by = new_buffer(y, sizeof y), *bc = new_buffer(&calls, sizeof calls);
	tl_config cfg = {.grid = {(uint32_t)(rows + 15) / 16, (uint32_t)(columns + 31) / 32}};
	must(scaled(kernel, &cfg, tl_buffer_ptr(bx), rows, columns, COLUMNS, tl_buffer_ptr(by), 0.5f, step, rows,
		    columns, tl_buffer_ptr(bc)));
	must(tl_buffer_read(by, 0, is, sizeof is));
	must(tl_buffer_read(bc, 0, &calls, sizeof calls));
	for (int i = 0; i < rows; i++)
		for (int k = 0; k < columns; k++)
			y[(i * columns + k) * step] = (x[i * COLUMNS + k] + 3) * 0.5f;
	int wrong = memcmp(is, y, sizeof y) || calls != (int)(cfg.grid[0] * cfg.grid[1]);
	if (wrong)
		printf("%d rows, %d columns, step %d: wrong\n", rows, columns, step);
	/* a descriptor begins at a multiple of 16 bytes */
	if (scaled(kernel, &cfg, (float *)tl_buffer_ptr(bx) + 1, rows, columns, COLUMNS, tl_buffer_ptr(by), 0.5f, step,
		   rows, columns, tl_buffer_ptr(bc)) != TL_ERR_ARGUMENT) {
		printf("a descriptor at an odd address is taken\n");
		wrong = 1;
	}
	tl_buffer_destroy(bx);
	tl_buffer_destroy(by);
	tl_buffer_destroy(bc);
	return wrong;
}

int main(int argc, char **argv)
{
	tl_compiled *kernel;
	must(tl_context_create(argc > 1 ? argv[1] : "cuda", &ctx));
	must(scaled_load(ctx, &kernel));
	int wrong = launch(kernel, 32, 64, 1) + launch(kernel, 40, 48, 1) + launch(kernel, 33, 61, 1) +
		    launch(kernel, 7, 5, 2);
	tl_context_destroy(ctx);
	return wrong;
}
