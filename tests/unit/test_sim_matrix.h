/* Kernels as text for the simulator, around an instruction on registers that come from memory and go back there. */
#ifndef TEST_SIM_MATRIX_H
#define TEST_SIM_MATRIX_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/small_floats.h"
#include "runtime/sim/sim.h"
#include "tests/unit/random_bits.h"

enum { MAX_SLOTS = 400, MAX_THREADS = 128, IMAGE_BYTES = 131072 };

struct bench {
	struct arena arena;
	struct strbuf text;
	u32 threads;
	u64 slot[MAX_SLOTS][MAX_THREADS]; /* a register of each thread */
	u8 image[IMAGE_BYTES];            /* of shared memory, for those who copy it */
	u64 seed;
	enum async_timing timing;
	u64 dynamic_shared;
	struct strbuf error;
};

/* In [-1, 1). */
static double random_real(void)
{
	return (double)(random_bits() & 0xFFFFFF) / 0x800000 - 1;
}

static struct bench *bench_new(const char *target, u32 threads)
{
	struct bench *b = calloc(1, sizeof *b);
	b->threads = threads;
	b->text.arena = b->error.arena = &b->arena;
	sb_printf(&b->text,
		  ".version 8.4\n.target %s\n.address_size 64\n.extern .shared .align 1024 .b8 sh[];\n"
		  ".visible .entry k(.param .u64 p)\n{\n.reg .pred %%p<8>;\n.reg .b32 %%r<400>;\n.reg .b64 %%rd<64>;\n"
		  "ld.param.u64 %%rd60, [p];\nmov.u32 %%r399, %%tid.x;\n"
		  "mul.wide.u32 %%rd61, %%r399, 8;\nadd.s64 %%rd63, %%rd60, "
		  "%%rd61;\n",
		  target);
	for (u32 s = 0; s < MAX_SLOTS; s++)
		for (u32 t = 0; t < MAX_THREADS; t++)
			b->slot[s][t] = 0x5A5A5A5A5A5A5A5A;
	return b;
}

static void bench_free(struct bench *b)
{
	arena_free(&b->arena);
	free(b);
}

/* %r<reg> (or %rd<reg>) from or to a slot. */
static void load_slot(struct bench *b, int bits, u32 reg, u32 slot)
{
	sb_printf(&b->text, "ld.global.b%d %%r%s%u, [%%rd63+%zu];\n", bits, bits == 64 ? "d" : "", reg,
		  slot * sizeof b->slot[0]);
}
static void store_slot(struct bench *b, int bits, u32 reg, u32 slot)
{
	sb_printf(&b->text, "st.global.b%d [%%rd63+%zu], %%r%s%u;\n", bits, slot * sizeof b->slot[0],
		  bits == 64 ? "d" : "", reg);
}

/* "{%r4, %r5}" */
static void print_registers(struct strbuf *out, int bits, u32 first, u32 n)
{
	for (u32 k = 0; k < n; k++)
		sb_printf(out, "%s%%r%s%u", k ? ", " : "{", bits == 64 ? "d" : "", first + k);
	sb_puts(out, "}");
}

/* NULL, or the message of what went wrong. */
static const char *bench_run(struct bench *b)
{
	const char *error = NULL;
	sb_puts(&b->text, "ret;\n}\n");
	struct ptx_module *m = ptx_read(&b->arena, b->text.at, b->text.len, &error);
	if (!m || !sim_decode(&b->arena, m, &error))
		return error;
	u64(*p)[MAX_THREADS] = b->slot;
	struct launch l = {.module = m,
			   .kernel = &m->kernels[0],
			   .grid = {1, 1, 1},
			   .num_warps = b->threads / LANES,
			   .params = (const char *)&p,
			   .open = true,
			   .seed = b->seed,
			   .timing = b->timing,
			   .dynamic_shared = b->dynamic_shared};
	return sim_run(&l, &b->error) ? b->error.at : NULL;
}

static void expect_ok(struct bench *b)
{
	const char *error = bench_run(b);
	if (error)
		fail_msg("%s\n%s", error, b->text.at);
}

static void expect_fault(struct bench *b, const char *part)
{
	const char *error = bench_run(b);
	if (!error || !strstr(error, part))
		fail_msg("got '%s', want '%s'\n%s", error ? error : "nothing", part, b->text.at);
	bench_free(b);
}

/* --- types of elements ------------------------------------------------------------------------------------------- */

static inline int bits_of(enum ptx_type t)
{
	return t == PT_TF32 ? 32 : ptx_bits(t);
}

static double value_of(enum ptx_type t, u64 bits)
{
	switch (t) {
	case PT_F16: return fp_decode(FP_F16, (u32)bits);
	case PT_BF16: return fp_decode(FP_BF16, (u32)bits);
	case PT_E4M3: return fp_decode(FP_E4M3, (u32)bits);
	case PT_E5M2: return fp_decode(FP_E5M2, (u32)bits);
	case PT_TF32: return (double)fp_f32_bits((u32)bits & 0xFFFFE000);
	case PT_F32: return (double)fp_f32_bits((u32)bits);
	case PT_F64: return fp_f64_bits(bits);
	case PT_S8: return (i8)bits;
	case PT_U8: return (u8)bits;
	default: return (i32)bits;
	}
}

static u64 bits_from(enum ptx_type t, double x)
{
	switch (t) {
	case PT_F16: return fp_encode(FP_F16, x, false);
	case PT_BF16: return fp_encode(FP_BF16, x, false);
	case PT_E4M3: return fp_encode(FP_E4M3, x, false);
	case PT_E5M2: return fp_encode(FP_E5M2, x, false);
	case PT_TF32: return fp_bits_f32((float)x) ^ (random_bits() & 0x1FFF); /* which the hardware ignores */
	case PT_F32: return fp_bits_f32((float)x);
	case PT_F64: return fp_bits_f64(x);
	case PT_S8:
	case PT_U8: return (u8)(i32)x;
	default: return (u32)(i32)x;
	}
}

static inline bool is_integer(enum ptx_type t)
{
	return t == PT_S8 || t == PT_U8 || t == PT_S32;
}

/* Small whole numbers, whose sums are exact in every accumulator, or any reals. */
static u64 random_element(enum ptx_type t, bool whole)
{
	if (t == PT_S8 || t == PT_U8)
		return random_bits() & 0xFF;
	if (t == PT_S32)
		return random_bits() & 0xFFFFF;
	return bits_from(t, whole ? (double)(i64)(random_bits() % 9) - 4 : random_real());
}

/* How far a sum of products may be off. */
static double tolerance(enum ptx_type acc, bool whole, double magnitude)
{
	if (whole || is_integer(acc))
		return 0;
	return magnitude * (acc == PT_F64 ? 0x1p-50 : acc == PT_F32 ? 0x1p-21 : 0x1p-10);
}

#endif
