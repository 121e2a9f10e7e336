/* A device that is not present: kernels are compiled for it, and nothing runs. For `tlc build`. */
#include <stdlib.h>

#include "runtime/device/device.h"
#include "runtime/image/error.h"

struct offline {
	struct device device; /* first */
	struct target target;
};

static const struct device_ops offline_ops;

tl_status offline_open(const struct target *target, struct device **out)
{
	struct offline *d = calloc(1, sizeof *d);
	if (!d)
		return failed(TL_ERR_MEMORY, "out of host memory");
	*d = (struct offline){{.ops = &offline_ops, .num_sms = (u32)target->multiprocessors}, *target};
	*out = &d->device;
	return TL_OK;
}

static void offline_close(struct device *device)
{
	free(device);
}

static tl_status offline_synchronize(struct device *device)
{
	(void)device;
	return TL_OK;
}

static struct target offline_target(const struct device *device)
{
	return ((const struct offline *)device)->target;
}

static tl_status offline_load(struct device *device, const struct device_load *l, void **out)
{
	(void)device;
	(void)l;
	*out = NULL;
	return TL_OK;
}

static const struct device_ops offline_ops = {
	.name = "offline",
	.stages = " ",
	.offline = true,
	.target = offline_target,
	.close = offline_close,
	.synchronize = offline_synchronize,
	.load = offline_load,
};
