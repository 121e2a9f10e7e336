#include "runtime/tune/trials.h"

#include <stdlib.h>

static tl_status launch_once(struct trials *r, const struct device_launch *l, int limit_ms, double *cost)
{
	const struct device_ops *ops = r->dev->ops;
	if (ops->cost)
		return ops->cost(r->dev, l, cost);
	if (ops->try)
		return ops->try(r->dev, l, limit_ms, &r->ended);
	tl_status s = ops->launch(r->dev, l);
	return s ? s : ops->synchronize(r->dev);
}

static tl_status time_launches(struct trials *r, const struct device_launch *l, int warmup, int repeats, double *cost)
{
	double *ms = calloc((size_t)repeats, sizeof *ms);
	if (!ms)
		return failed(TL_ERR_MEMORY, "out of host memory");
	struct cleanup c;
	cleanup_push(&c, free, ms);
	tl_status s = r->dev->ops->time(r->dev, l, warmup, repeats, ms);
	*cost = s ? 0 : median(ms, repeats);
	cleanup_run(&c);
	return s;
}

static tl_status launch(struct trials *r, const struct trial *t, double *cost)
{
	struct launch l;
	u32 grid[3];
	grid_of(&t->config, grid);
	if (!grid[0] || !grid[1] || !grid[2])
		return TL_OK;
	memcpy(l.bits, t->bits, sizeof t->bits);
	struct map_memo memos[MAX_TENSOR_MAPS] = {0};
	const struct loaded k = {.code = t->code, .image = t->image, .memos = memos};
	tl_status s = loaded_fill(r->dev, &k, &t->config, grid, t->config.stream, &l);
	if (s)
		return s;
	return t->repeats ? time_launches(r, &l.device, t->warmup, t->repeats, cost)
			  : launch_once(r, &l.device, t->limit_ms, cost);
}

static tl_status compare_result(struct trials *r, double tolerance)
{
	const char *difference = NULL;
	if (!r->has_result) {
		r->has_result = true;
		return memory_keep_result(&r->memory);
	}
	tl_status s = memory_compare(&r->memory, tolerance, &difference);
	return difference ? failed(TL_ERR_KERNEL, "its results differ: %s", difference) : s;
}

tl_status trial_run(struct trials *r, const struct trial *t, double *cost)
{
	*cost = 0;
	r->ended = true;
	tl_status s = t->renews ? memory_renew(&r->memory) : TL_OK;
	if (!s)
		s = launch(r, t, cost);
	return !s && t->compares ? compare_result(r, t->tolerance) : s;
}

bool trials_broken(const struct trials *r)
{
	char text[300];
	if (!r->ended)
		return true;
	snprintf(text, sizeof text, "%s", tl_error(NULL));
	tl_status s = r->dev->ops->synchronize(r->dev);
	failed_text(TL_OK, text);
	return s;
}
