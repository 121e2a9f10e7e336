/* The devices of libtl, and the compilation for them. */
#include "runtime/device/device.h"
#include "runtime/emulate/build_checks.h"
#include "runtime/emulate/divisor_check.h"

const struct device_ops *const devices[] = {&cuda_ops, &cpu_ops, &interp_ops, &sim_ops};
const u32 ndevices = ARRAY_LEN(devices);

bool device_compile(const struct target *target, const struct build *b, struct compiled *out)
{
	const char *stage = b->stage ? b->stage : "";
	struct compile_options o = {
		.target = *target,
		.codegen = b->codegen,
		.want_ttir = !strcmp(stage, "ttir") || !strcmp(stage, "accesses"),
		.remarks = b->remarks || !strcmp(stage, "remarks"),
		.want_ttgir = !strcmp(stage, "ttgir") || !strcmp(stage, "remarks"),
		.want_llir = !strcmp(stage, "llir"),
		.want_asm = !strcmp(stage, "asm"),
		.want_code = (!b->stage && !b->launch) || !strcmp(stage, "ptx"),
		.want_metadata = !strcmp(stage, "metadata"),
		.want_calls = !strcmp(stage, "calls"),
		.want_schedules = !strcmp(stage, "schedule"),
		.launch = b->launch,
	};
	return compile(b->unit, b->func, b->args, &o, out);
}

bool device_build(struct device *d, const struct build *b, struct compiled *out)
{
	if (d->ops->compile)
		return d->ops->compile(d, b, out);
	const struct target target = d->ops->target(d);
	check_divisors(&target, b);
	check_estimates(&target, b);
	double begin = seconds_of_thread();
	bool good = device_compile(&target, b, out);
	check_time(begin);
	return good;
}

const char *device_default_target(struct arena *a)
{
	struct target t;
	if (!cuda_probe(&t))
		return "cuda:sm_90a";
	return target_name(a, &t);
}
