/* Running small kernels in the simulator: two buffers, launches, the faults to expect. Included by tests only. */
#ifndef TL_TEST_SIM_RIG_H
#define TL_TEST_SIM_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "runtime/sim/sim.h"
#include "tests/unit/random_bits.h"

/* --- running kernels ------------------------------------------------------------------------------------------- */

enum { SIZE = 1 << 14 };

/* Two buffers, `a` written and `b` not, given as the first two parameters; the third is a number. */
struct rig {
	struct arena arena;
	char *a, *b;
	u8 *written[2];
	struct mem_range ranges[2];
	u64 number;
	u32 blocks, warps, rows; /* rows: of blocks; 0: one */
	enum async_timing timing;
	u64 max_steps;
	const char *head; /* NULL: HEAD */
	u32 cluster[3];
	bool count;
	struct counters *counters;
	const struct ptx_kernel *kernel;
	const char *error;
};

static inline struct rig *rig_new(void)
{
	struct rig *r = calloc(1, sizeof *r);
	char *both = aligned_alloc(256, 3 * SIZE);
	*r = (struct rig){.a = both, .b = both + 2 * SIZE, .blocks = 1, .warps = 1};
	for (u32 k = 0; k < SIZE; k++) {
		r->a[k] = (char)random_bits();
		r->b[k] = (char)0xEE;
	}
	for (u32 k = 0; k < 2; k++)
		r->written[k] = calloc(1, SIZE / 8);
	memset(r->written[0], 0xFF, SIZE / 8);
	r->ranges[0] = (struct mem_range){"a", r->a, SIZE};
	r->ranges[1] = (struct mem_range){"b", r->b, SIZE};
	return r;
}

static inline void rig_free(struct rig *r)
{
	arena_free(&r->arena);
	free(r->a);
	free(r->written[0]);
	free(r->written[1]);
	free(r->counters);
	free(r);
}

#define HEAD_OF(limits)                                                                                                \
	".version 8.0\n.target sm_90a\n.address_size 64\n"                                                             \
	".const .align 4 .b32 table[4] = {11, 22, 33, 44};\n"                                                          \
	".global .align 8 .b32 cell[4] = {5, 6, 7, 8};\n"                                                              \
	".visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pn)\n" limits "{\n"                             \
	".reg .pred %p<8>; .reg .b16 %rs<16>; .reg .b32 %r<40>; .reg .b64 %rd<40>; "                                   \
	".reg .f32 %f<16>; .reg .f64 %fd<8>;\n"                                                                        \
	".shared .align 128 .b8 sh[4096];\n.local .align 16 .b8 lo[64];\n"                                             \
	"ld.param.u64 %rd1, [pa];\nld.param.u64 %rd2, [pb];\nmov.u32 %r1, %tid.x;\n"                                   \
	"mov.u32 %r2, %ctaid.x;\nmov.u64 %rd9, sh;\n"
#define HEAD HEAD_OF("")

/* The text with each $ replaced by the next of the strings behind. */
static inline const char *fill(struct rig *r, const char *text, ...)
{
	struct strbuf s = {.arena = &r->arena};
	va_list ap;
	va_start(ap, text);
	for (; *text; text++)
		if (*text == '$')
			sb_puts(&s, va_arg(ap, const char *));
		else
			sb_add(&s, text, 1);
	va_end(ap);
	return s.at;
}

/* Decodes the body; NULL with the error in r->error. */
static inline struct ptx_module *read_kernel(struct rig *r, const char *body)
{
	const char *text = arena_printf(&r->arena, "%s%s\nret;\n}\n", r->head ? r->head : HEAD, body);
	struct ptx_module *m = ptx_read(&r->arena, text, strlen(text), &r->error);
	return m && sim_decode(&r->arena, m, &r->error) ? m : NULL;
}

/* The fault's text, or "". */
static inline const char *run(struct rig *r, const char *body)
{
	struct ptx_module *m = read_kernel(r, body);
	if (!m)
		return arena_printf(&r->arena, "decoding: %s", r->error);
	r->kernel = &m->kernels[0];
	free(r->counters);
	r->counters = calloc(r->kernel->ncode, sizeof *r->counters);
	u64 params[] = {(u64)(uintptr_t)r->a, (u64)(uintptr_t)r->b, r->number};
	struct launch l = {.module = m,
			   .kernel = r->kernel,
			   .grid = {r->blocks, MAX(r->rows, 1u), 1},
			   .num_warps = r->warps,
			   .params = (const char *)params,
			   .ranges = r->ranges,
			   .written = r->written,
			   .nranges = 2,
			   .seed = random_bits(),
			   .timing = r->timing,
			   .max_steps = r->max_steps,
			   .cluster = {r->cluster[0], r->cluster[1], r->cluster[2]},
			   .counters = r->count ? r->counters : NULL};
	struct strbuf error = {.arena = &r->arena};
	bool ok = sim_run(&l, &error) == SIM_OK;
	assert_int_equal(ok, !error.len);
	return ok ? "" : error.at;
}

static inline void expect_ok(struct rig *r, const char *body)
{
	const char *e = run(r, body);
	if (*e)
		fail_msg("%s\n%s", e, body);
}

static inline void expect_fault(struct rig *r, const char *body, const char *text)
{
	const char *e = run(r, body);
	if (!strstr(e, text))
		fail_msg("want '%s', got '%s'\n%s", text, e, body);
}

static inline u64 extended(const char *at, u32 bytes, bool is_signed)
{
	u64 v = 0;
	memcpy(&v, at, bytes);
	if (is_signed && bytes < 8 && v >> (bytes * 8 - 1))
		v |= ~(u64)0 << bytes * 8;
	return v;
}

#endif
