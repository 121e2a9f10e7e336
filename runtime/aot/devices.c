/* The devices of libtlrt. */
#include "runtime/device.h"

const struct device_ops *const devices[] = {&cuda_ops, &cpu_ops};
const u32 ndevices = ARRAY_LEN(devices);
