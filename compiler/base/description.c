#include "base/description.h"

#include <stdlib.h>
#include <string.h>

/* CUDA C++ Programming Guide, "Technical Specifications per Compute Capability". */
static i32 shared_bytes(int sm)
{
	switch (sm) {
	case 75: return 64 * 1024;
	case 80:
	case 87: return 163 * 1024;
	case 86:
	case 89: return 99 * 1024;
	default: return 227 * 1024;
	}
}

/* PTX ISA, "Target ISA Notes" of each instruction. */
struct description cuda_description(int sm, bool arch_specific)
{
	return (struct description){
		.kind = TARGET_CUDA,
		.vector_bytes = 16,
		.has_async_copy = sm >= 80,
		.thread_registers = 255,
		.registers = 65536,
		.shared_bytes = shared_bytes(sm),
		.sm = sm,
		.arch_specific = arch_specific,
		.mma = sm >= 89 ? MMA_ADA : sm >= 80 ? MMA_AMPERE : MMA_TURING,
		.widens_fp8_mma = sm == 90,
		.has_wgmma = sm == 90 && arch_specific,
		.has_tensor_copy = sm >= 90,
		.has_clusters = sm >= 90,
		.has_stmatrix = sm >= 90,
		.has_grid_dependencies = sm >= 90,
		.has_cache_policies = sm >= 80,
		.has_pair_conversions = sm >= 80,
		.has_fp8_conversions = sm >= 89,
		.has_bf16_atomics = sm >= 90,
		.has_vector_atomics = sm >= 90,
	};
}

struct description cpu_description(void)
{
	return (struct description){.kind = TARGET_CPU, .vector_bytes = 16};
}

bool description_parse(const char *text, struct description *out)
{
	static const int known[] = {75, 80, 86, 87, 89, 90};
	if (!strcmp(text, "cpu")) {
		*out = cpu_description();
		return true;
	}
	if (!strncmp(text, "cuda:", 5))
		text += 5;
	if (!strncmp(text, "sm_", 3))
		text += 3;
	char *end;
	int sm = (int)strtol(text, &end, 10);
	bool specific = *end == 'a', ok = false;
	end += specific;
	for (u32 i = 0; i < ARRAY_LEN(known); i++)
		ok |= known[i] == sm;
	*out = cuda_description(sm, specific);
	return !*end && ok && (!specific || sm == 90);
}

const char *description_name(struct arena *a, const struct description *d)
{
	return d->kind == TARGET_CPU ? "cpu" : arena_printf(a, "sm_%d%s", d->sm, d->arch_specific ? "a" : "");
}
