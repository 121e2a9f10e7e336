#include "support/target.h"

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
struct target cuda_description(int sm, bool arch_specific)
{
	return (struct target){
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

/* --- CPUs ------------------------------------------------------------------------------------------------------ */

static const struct level {
	const char *name, *llvm;
	int vector_bytes, vector_registers;
} levels[] = {
	[CPU_BASELINE] = {"baseline", "x86-64-v2", 16, 16},
	[CPU_AVX2] = {"avx2", "x86-64-v3", 32, 16},
	[CPU_AVX512] = {"avx512", "x86-64-v4", 64, 32},
	[CPU_NEON] = {"neon", "generic", 16, 32},
};

/* Each extension belongs to one level. Some imply others, which the names of targets omit. */
enum extension {
	EXT_AVXVNNI,
	EXT_AVX512VNNI,
	EXT_AVX512BF16,
	EXT_AVX512FP16,
	EXT_AVX512VBMI,
	EXT_AMX,
	EXT_DOTPROD,
	EXT_FULLFP16,
	EXT_BF16,
};
static const struct {
	const char *name, *llvm;
	enum cpu_level of;
	u32 implies;
} extensions[] = {
	[EXT_AVXVNNI] = {"vnni", "avxvnni", CPU_AVX2},
	[EXT_AVX512VNNI] = {"vnni", "avx512vnni", CPU_AVX512},
	[EXT_AVX512BF16] = {"bf16", "avx512bf16", CPU_AVX512},
	[EXT_AVX512FP16] = {"fp16", "avx512fp16", CPU_AVX512},
	[EXT_AVX512VBMI] = {"vbmi", "avx512vbmi", CPU_AVX512},
	[EXT_AMX] = {"amx", "amx-tile,+amx-bf16,+amx-int8", CPU_AVX512,
		     1u << EXT_AVX512VNNI | 1u << EXT_AVX512BF16 | 1u << EXT_AVX512VBMI},
	[EXT_DOTPROD] = {"dot", "dotprod", CPU_NEON},
	[EXT_FULLFP16] = {"fp16", "fullfp16", CPU_NEON},
	[EXT_BF16] = {"bf16", "bf16", CPU_NEON},
};

static struct target cpu_description(enum cpu_level level, u32 ext)
{
	bool wide = level != CPU_BASELINE;
	for (u32 i = 0; i < ARRAY_LEN(extensions); i++)
		ext |= ext >> i & 1 ? extensions[i].implies : 0;
	return (struct target){
		.kind = TARGET_CPU,
		.vector_bytes = levels[level].vector_bytes,
		.level = level,
		.extensions = ext,
		.vector_registers = levels[level].vector_registers,
		.has_fma = wide,
		.has_f16c = wide,
		.has_avx512 = level == CPU_AVX512,
		.has_bf16 = ext & (1u << EXT_AVX512BF16 | 1u << EXT_BF16),
		.has_fp16 = ext & (1u << EXT_AVX512FP16 | 1u << EXT_FULLFP16),
		.has_int8_dot = ext & (1u << EXT_AVXVNNI | 1u << EXT_AVX512VNNI | 1u << EXT_DOTPROD),
		.has_tiles = ext & 1u << EXT_AMX,
	};
}

#if defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>

/* Requests the AMX tile state. Linux refuses if the CPU has no AMX. CPUs with AMX have AMX-BF16 and AMX-INT8. */
static bool have_tiles(void)
{
	enum { REQ_XCOMP_PERM = 0x1023, XTILEDATA = 18 };
	return !syscall(SYS_arch_prctl, REQ_XCOMP_PERM, XTILEDATA);
}

bool cpu_here(struct target *out)
{
	u32 ext = 0;
	__builtin_cpu_init();
	bool avx2 = __builtin_cpu_supports("x86-64-v3"), avx512 = __builtin_cpu_supports("x86-64-v4");
	if (avx512) {
		ext |= __builtin_cpu_supports("avx512vnni") ? 1u << EXT_AVX512VNNI : 0;
		ext |= __builtin_cpu_supports("avx512bf16") ? 1u << EXT_AVX512BF16 : 0;
		ext |= __builtin_cpu_supports("avx512fp16") ? 1u << EXT_AVX512FP16 : 0;
		ext |= __builtin_cpu_supports("avx512vbmi") ? 1u << EXT_AVX512VBMI : 0;
		u32 before = extensions[EXT_AMX].implies;
		ext |= (ext & before) == before && have_tiles() ? 1u << EXT_AMX : 0;
	} else if (avx2) {
		ext |= __builtin_cpu_supports("avxvnni") ? 1u << EXT_AVXVNNI : 0;
	}
	*out = cpu_description(avx512 ? CPU_AVX512 : avx2 ? CPU_AVX2 : CPU_BASELINE, ext);
	return __builtin_cpu_supports("x86-64-v2");
}
#elif defined(__aarch64__)
#include <sys/auxv.h>
bool cpu_here(struct target *out)
{
	enum { FPHP_ASIMDHP = 1 << 9 | 1 << 10, ASIMDDP = 1 << 20, BF16_2 = 1 << 14 }; /* HWCAP_*, HWCAP2_* */
	unsigned long caps = getauxval(AT_HWCAP), caps2 = getauxval(AT_HWCAP2);
	*out = cpu_description(CPU_NEON, (caps & ASIMDDP ? 1u << EXT_DOTPROD : 0) |
						 ((caps & FPHP_ASIMDHP) == FPHP_ASIMDHP ? 1u << EXT_FULLFP16 : 0) |
						 (caps2 & BF16_2 ? 1u << EXT_BF16 : 0));
	return true;
}
#else
bool cpu_here(struct target *out)
{
	*out = cpu_description(CPU_BASELINE, 0);
	return false;
}
#endif

const char *cpu_llvm_name(const struct target *d)
{
	return levels[d->level].llvm;
}

const char *cpu_llvm_features(struct arena *a, const struct target *d)
{
	struct strbuf out = sb_empty(a);
	for (u32 i = 0; i < ARRAY_LEN(extensions); i++)
		if (d->extensions >> i & 1)
			sb_printf(&out, "%s+%s", out.len ? "," : "", extensions[i].llvm);
	return out.at;
}

/* "avx512+bf16" */
static bool parse_cpu(const char *text, struct target *out)
{
	size_t len = strcspn(text, "+");
	u32 level = 0, ext = 0;
	bool checks = false, lines = false;
	if (word_is(text, len, "native"))
		return !text[len] && cpu_here(out);
	while (level < ARRAY_LEN(levels) && !word_is(text, len, levels[level].name))
		level++;
	if (level == ARRAY_LEN(levels))
		return false;
	for (text += len; *text; text += len) {
		u32 i = 0;
		len = strcspn(++text, "+");
		while (i < ARRAY_LEN(extensions) &&
		       (extensions[i].of != level || !word_is(text, len, extensions[i].name)))
			i++;
		if (i < ARRAY_LEN(extensions))
			ext |= 1u << i;
		else if (word_is(text, len, "check"))
			checks = true;
		else if (word_is(text, len, "lines"))
			lines = true;
		else
			return false;
	}
	*out = cpu_description((enum cpu_level)level, ext);
	out->checks = checks;
	out->lines = lines;
	return true;
}

/* --- text -------------------------------------------------------------------------------------------------------- */

#define LEVELS(p) p "baseline, " p "avx2[+vnni], " p "avx512[+vnni+bf16+fp16+vbmi+amx], " p "neon[+dot+fp16+bf16]"
const char cpu_names[] = LEVELS("") ", native";
const char target_names[] = "cuda:sm_75, sm_80, sm_86, sm_87, sm_89, sm_90, sm_90a, cpu, " LEVELS("cpu:");

bool target_parse(const char *text, struct target *out)
{
	static const int known[] = {75, 80, 86, 87, 89, 90};
	if (!strncmp(text, "cpu", 3) && (!text[3] || text[3] == ':'))
		return text[3] ? parse_cpu(text + 4, out) : cpu_here(out);
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

const char *target_name(struct arena *a, const struct target *d)
{
	if (d->kind == TARGET_CUDA)
		return arena_printf(a, "cuda:sm_%d%s", d->sm, d->arch_specific ? "a" : "");
	struct strbuf out = {.arena = a};
	sb_printf(&out, "cpu:%s", levels[d->level].name);
	u32 implied = 0;
	for (u32 i = 0; i < ARRAY_LEN(extensions); i++)
		implied |= d->extensions >> i & 1 ? extensions[i].implies : 0;
	for (u32 i = 0; i < ARRAY_LEN(extensions); i++)
		if ((d->extensions & ~implied) >> i & 1)
			sb_printf(&out, "+%s", extensions[i].name);
	if (d->checks)
		sb_puts(&out, "+check");
	if (d->lines)
		sb_puts(&out, "+lines");
	return out.at;
}

bool target_runs(const struct target *here, const struct target *of)
{
	if (here->kind != of->kind)
		return false;
	if (here->kind == TARGET_CUDA)
		return of->arch_specific ? of->sm == here->sm && here->arch_specific : of->sm <= here->sm;
	if (here->checks != of->checks)
		return false;
	if (here->level == of->level)
		return !(of->extensions & ~here->extensions);
	return here->level != CPU_NEON && of->level < here->level && !of->extensions;
}

int target_capability(const struct target *d)
{
	return d->kind == TARGET_CUDA ? d->sm : 90;
}

int registers_for_blocks(const struct target *t, int warps, int blocks)
{
	return MIN(t->registers / (32 * warps * blocks), t->thread_registers);
}

int blocks_for_memory(const struct target *t, i64 bytes)
{
	enum { RESERVED = 1024 }; /* by the hardware, for each block */
	return (int)((t->shared_bytes + RESERVED) / (bytes + RESERVED));
}
