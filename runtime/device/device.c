/* Choosing a device by name. */
#include "runtime/device/device.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/image/error.h"

/* A driver or GPU that is present and fails is an error. */
static tl_status open_best(struct device **out)
{
	return devices[ndevices > 1 && cuda_absent()]->open(0, out);
}

static tl_status unknown(const char *spec)
{
	failed(TL_ERR_DEVICE, "unknown device '%s'; there are", spec);
	for (u32 i = 0; i < ndevices; i++) {
		const char *option = devices[i]->numbered ? "N" : devices[i]->option;
		failed_more("%s %s%s%s%s", i ? "," : "", devices[i]->name, option ? "[:" : "", option ? option : "",
			    option ? "]" : "");
	}
	return TL_ERR_DEVICE;
}

tl_status device_open(const char *spec, struct device **out)
{
	if (!spec)
		return open_best(out);
	size_t len = strcspn(spec, ":");
	for (u32 i = 0; i < ndevices; i++) {
		const struct device_ops *ops = devices[i];
		if (!word_is(spec, len, ops->name))
			continue;
		if (!spec[len])
			return ops->open(0, out);
		if (ops->option && !strcmp(spec + len + 1, ops->option))
			return ops->open(OPTION, out);
		char *end;
		errno = 0;
		long ordinal = strtol(spec + len + 1, &end, 10);
		if (!ops->numbered || *end || end == spec + len + 1 || errno || ordinal < 0 || ordinal > INT_MAX)
			return unknown(spec);
		return ops->open((int)ordinal, out);
	}
	return unknown(spec);
}

tl_status device_count(int *out)
{
	if (!out)
		return failed(TL_ERR_ARGUMENT, "tl_device_count: out is NULL");
	*out = 0;
	for (u32 i = 0; i < ndevices; i++) {
		int n;
		tl_status s = devices[i]->count(&n);
		if (s)
			return s;
		*out += n;
	}
	return TL_OK;
}

tl_status device_at(int index, tl_device_info *out)
{
	int before = 0;
	if (!out)
		return failed(TL_ERR_ARGUMENT, "tl_device_at: out is NULL");
	for (u32 i = 0; i < ndevices; i++) {
		int n;
		tl_status s = devices[i]->count(&n);
		if (s)
			return s;
		if (index >= before && index - before < n) {
			*out = (tl_device_info){0};
			snprintf(out->kind, sizeof out->kind, "%s", devices[i]->name);
			return devices[i]->at(index - before, out);
		}
		before += n;
	}
	return failed(TL_ERR_ARGUMENT, "tl_device_at: there is no device %d: there are %d", index, before);
}
