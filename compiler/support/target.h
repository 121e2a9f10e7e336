/* The description of a target: capabilities and limits. Passes ask it and compare no architecture numbers; passes
 * before placement read only fields that every kind of target has. */
#ifndef TLC_SUPPORT_TARGET_H
#define TLC_SUPPORT_TARGET_H

#include "support/arena.h"

enum target_kind {
	TARGET_CPU,  /* and the interpreter: programs run on one thread each */
	TARGET_CUDA,
};

/* What all processors of a level have: x86-64-v2, -v3, -v4 of the System V ABI; ARMv8-A. */
enum cpu_level { CPU_BASELINE, CPU_AVX2, CPU_AVX512, CPU_NEON };

/* Tensor cores for mma.sync: each generation has the instructions of those before it. */
enum mma_generation { MMA_NONE, MMA_TURING, MMA_AMPERE, MMA_ADA };

struct target {
	enum target_kind kind;
	int vector_bytes;       /* the widest access to memory */
	bool has_async_copy;    /* loads to shared memory that bypass registers and are waited for later (cp.async) */

	/* limits; of a device, its own */
	int multiprocessors;    /* 0: not known */
	int thread_registers;   /* 32-bit registers of a thread, at most */
	int registers;          /* of a multiprocessor */
	i32 shared_bytes;       /* for one block, at most */

	/* of TARGET_CUDA */
	int sm;                 /* 75, 80, 86, 87, 89, 90: the PTX that is made; a device may be a later one */
	bool arch_specific;     /* the 'a' of sm_90a */
	enum mma_generation mma;
	bool widens_fp8_mma;    /* mma.sync of fp8 is done as fp16 */
	bool has_wgmma;
	bool has_tensor_copy;   /* TMA and mbarriers */
	bool has_clusters;
	bool has_stmatrix;
	bool has_grid_dependencies; /* programmatic dependent launch */
	bool has_cache_policies; /* prefetches into L2 and policies of its lines */
	bool has_pair_conversions; /* of two floats at once, and of bf16 */
	bool has_fp8_conversions;
	bool has_bf16_atomics, has_vector_atomics;

	/* of TARGET_CPU */
	enum cpu_level level;
	u32 extensions;       /* beyond the level: see target.c */
	int vector_registers; /* of vector_bytes each */
	bool has_fma;
	bool has_f16c; /* conversions of vectors of fp16 */
	bool has_avx512;
	bool has_bf16;     /* conversions of vectors of bf16, and sums of products */
	bool has_fp16;     /* arithmetic */
	bool has_int8_dot; /* sums of four products of int8 */
	bool has_tiles;    /* registers of 16 rows of 64 bytes, and products of them, of bf16 and int8 (AMX) */
	bool lines;        /* the code is for debuggers (cpu/debug.c) */
	bool checks;       /* the code tells the runtime of each access to memory (cpu/cpu_abi.h) */
};

/* A GPU of compute capability 7.5, 8.0, 8.6, 8.7, 8.9 or 9.0 as NVIDIA's documents describe it; sm is ten times
 * that. */
struct target cuda_description(int sm, bool arch_specific);
/* The processor that this runs on; false: it is none of ours. Asks the system for the state of tile registers, which
 * it gives to a process for good. */
bool cpu_here(struct target *out);
/* What LLVM calls the level, and the extensions. */
const char *cpu_llvm_name(const struct target *d);
const char *cpu_llvm_features(struct arena *a, const struct target *d);

/* "cuda:sm_90a", "cuda:90", "sm_80"; "cpu:avx2", "cpu:avx512+bf16", "cpu" for the one here → a description. False
 * for other text. */
bool target_parse(const char *text, struct target *out);
/* What target_parse takes, for messages. */
extern const char target_names[];
/* What of it may follow "cpu:". */
extern const char cpu_names[];
/* "cuda:sm_90a"; "cpu:avx2" */
const char *target_name(struct arena *a, const struct target *d);
/* Does code for `of` run on `here`? Code for sm_80 runs on later GPUs, code for sm_90a on those of 9.0 only. */
bool target_runs(const struct target *here, const struct target *of);
/* The compute capability that kernels see: of an H100 where there is none. */
int target_capability(const struct target *d);

#endif
