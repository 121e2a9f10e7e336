/* The devices of libtlrt. */
#include "runtime/device/inline_asm_run.h"
#include "runtime/device/device.h"

const struct device_ops *const devices[] = {&cuda_ops, &cpu_ops};
const u32 ndevices = ARRAY_LEN(devices);

const char *assembly_run(struct arena *a, const struct asm_call *c, char *const *tiles, const struct mem_range *ranges,
			 u32 nranges, u64 guard)
{
	(void)a, (void)c, (void)tiles, (void)ranges, (void)nranges, (void)guard;
	return "libtl runs it on the CPU with its simulator, which libtlrt does not contain: launch on cuda";
}
