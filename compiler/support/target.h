/* The description of a target: capabilities and limits. Passes read these fields instead of comparing architecture
 * numbers. Passes before GPU layouts read only the fields that every kind of target has. */
#ifndef TLC_SUPPORT_TARGET_H
#define TLC_SUPPORT_TARGET_H

#include "support/arena.h"

enum target_kind {
	TARGET_CPU,  /* also for the interpreter: each program runs on one thread */
	TARGET_CUDA,
};

/* ISA level: x86-64-v2, -v3, -v4 of the System V ABI; ARMv8-A. */
enum cpu_level { CPU_BASELINE, CPU_AVX2, CPU_AVX512, CPU_NEON };

/* Tensor-core generation for mma.sync: each generation includes the instructions of the earlier ones. */
enum mma_generation { MMA_NONE, MMA_TURING, MMA_AMPERE, MMA_ADA };

struct target {
	enum target_kind kind;
	int vector_bytes;       /* widest memory access */
	bool has_async_copy;    /* asynchronous copies to shared memory that bypass registers (cp.async) */

	/* limits of the architecture, or of the device if it is known */
	int multiprocessors;    /* 0 if not known */
	int thread_registers;   /* limit of 32-bit registers for each thread */
	int registers;          /* 32-bit registers of a multiprocessor */
	i32 shared_bytes;       /* limit of shared memory for each block */

	/* TARGET_CUDA only */
	int sm;                 /* architecture of the PTX: 75, 80, 86, 87, 89, 90; the device may be later */
	bool arch_specific;     /* the 'a' of sm_90a */
	enum mma_generation mma;
	bool widens_fp8_mma;    /* mma.sync of fp8 operands is executed in fp16 */
	bool has_wgmma;
	bool has_tensor_copy;   /* TMA and mbarriers */
	bool has_clusters;
	bool has_stmatrix;
	bool has_grid_dependencies; /* programmatic dependent launch */
	bool has_cache_policies; /* L2 prefetches and cache eviction policies */
	bool has_pair_conversions; /* conversions of two floats at once, and of bf16 */
	bool has_fp8_conversions;
	bool has_bf16_atomics, has_vector_atomics;

	/* TARGET_CPU only */
	enum cpu_level level;
	u32 extensions;       /* bit set of extensions beyond the level: enum extension in target.c */
	int vector_registers; /* of vector_bytes each */
	bool has_fma;
	bool has_f16c; /* vector conversions of fp16 */
	bool has_avx512;
	bool has_bf16;     /* vector conversions and dot products of bf16 */
	bool has_fp16;     /* fp16 arithmetic */
	bool has_int8_dot; /* four-element dot products of int8 */
	bool has_tiles;    /* AMX: tile registers of 16 rows of 64 bytes, with multiplication of bf16 and int8 */
	bool lines;        /* the code has debug information (cpu/debug.c) */
	bool checks;       /* the code reports each memory access to the runtime (cpu/cpu_abi.h) */
};

/* The registers available to a thread if `blocks` blocks of `warps` warps share a multiprocessor. */
int registers_for_blocks(const struct target *t, int warps, int blocks);
/* The number of blocks that the shared memory of a multiprocessor suffices for, with `bytes` bytes each. */
int blocks_for_memory(const struct target *t, i64 bytes);

/* A GPU of compute capability 7.5, 8.0, 8.6, 8.7, 8.9 or 9.0 according to NVIDIA's documentation. sm is ten times the
 * compute capability. */
struct target cuda_description(int sm, bool arch_specific);
/* The CPU that this process runs on. False if it is not supported. Requests the AMX tile state from the system, which
 * the process then keeps. */
bool cpu_here(struct target *out);
/* LLVM's names of the level (-mcpu) and of the extensions (-mattr). */
const char *cpu_llvm_name(const struct target *d);
const char *cpu_llvm_features(struct arena *a, const struct target *d);

/* Parses "cuda:sm_90a", "cuda:90", "sm_80", "cpu:avx2", "cpu:avx512+bf16", or "cpu" for this machine's CPU. False for
 * other text. */
bool target_parse(const char *text, struct target *out);
/* The names that target_parse accepts, for messages. */
extern const char target_names[];
/* The names that may follow "cpu:". */
extern const char cpu_names[];
/* "cuda:sm_90a"; "cpu:avx2" */
const char *target_name(struct arena *a, const struct target *d);
/* True if code for `of` runs on `here`. Code for sm_80 runs on later GPUs, code for sm_90a only on GPUs of compute
 * capability 9.0. */
bool target_runs(const struct target *here, const struct target *of);
/* The compute capability that kernels see. CPUs report that of an H100. */
int target_capability(const struct target *d);

#endif
