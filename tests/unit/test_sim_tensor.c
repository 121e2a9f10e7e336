/* Tensor maps and tensor copies against loops over the elements of the box. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/small_floats.h"
#include "runtime/device/device.h"
#include "runtime/sim/sim.h"
#include "runtime/sim/tensormap.h"
#include "tests/unit/random_bits.h"

static u32 below(u32 n)
{
	return (u32)(random_bits() % n);
}

enum { MAX_BYTES = 65536, RANK = TENSOR_MAP_RANK };

struct params { /* of the kernel */
	char *image; /* of the box in shared memory */
	char *global_map;
	u32 at[RANK];
	_Alignas(64) char map[TENSOR_MAP_BYTES];
};

struct trial {
	struct arena arena;
	struct strbuf text, error;
	int type, swizzle, fill;
	u32 rank, element, box[RANK], steps[RANK], shared;
	u64 sizes[RANK], strides[RANK - 1];
	char *tensor, *base;  /* the allocation, and the tensor in it */
	u64 extent;           /* bytes from base to the end of the last element, and to a multiple of 16 */
	char *image;
	struct params params;
	enum async_timing timing;
	u32 blocks; /* of the cluster, which is the grid */
};

/* --- the tensor -------------------------------------------------------------------------------------------------- */

static const u32 element_bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4};

static struct trial *trial_new(int type)
{
	struct trial *t = aligned_alloc(64, sizeof *t);
	*t = (struct trial){0};
	t->text.arena = t->error.arena = &t->arena;
	t->type = type;
	t->element = element_bytes[type];
	t->swizzle = (int)below(4);
	t->fill = type >= TENSOR_FLOAT16 && below(2) ? TENSOR_FILL_NAN : TENSOR_FILL_ZERO;
	t->rank = 1 + below(RANK);
	t->blocks = 1;
	t->timing = (enum async_timing)below(3);
	u32 row = t->swizzle ? 16u << t->swizzle : 16 * (1 + below(12)), elements = 1;
	if (row / t->element > 256)
		row = 256;
	u64 stride = 0;
	for (u32 n = 0; n < t->rank; n++) {
		t->sizes[n] = 1 + below(n ? 9 : 300 / t->element);
		t->box[n] = n ? 1 + below(9) : row / t->element;
		t->steps[n] = 1 + (below(3) ? 0 : below(3));
		u32 length = n ? (t->box[n] + t->steps[n] - 1) / t->steps[n] : t->box[0];
		if (elements * length * t->element > 16384)
			t->box[n] = length = 1;
		elements *= length;
		stride = n ? t->strides[n - 1] * t->sizes[n] : t->sizes[0] * t->element;
		if (n + 1 < t->rank)
			t->strides[n] = (stride + 15) / 16 * 16 + 16 * below(3);
	}
	if (t->rank > 2 && below(2)) { /* dimensions in another order: a transposed tensor */
		u64 size = t->sizes[1], s = t->strides[0];
		t->sizes[1] = t->sizes[2];
		t->strides[0] = t->strides[1];
		t->sizes[2] = size;
		t->strides[1] = s;
	}
	t->extent = t->element;
	for (u32 n = 0; n < t->rank; n++)
		t->extent += (t->sizes[n] - 1) * (n ? t->strides[n - 1] : t->element);
	t->extent = (t->extent + 15) / 16 * 16; /* stores write whole 16 bytes */
	t->tensor = aligned_alloc(16, t->extent + 16);
	t->base = t->tensor + 16;
	t->image = malloc(MAX_BYTES);
	for (u64 k = 0; k < t->extent; k++)
		t->base[k] = (char)random_bits();
	for (u32 k = 0; k < MAX_BYTES; k++)
		t->image[k] = (char)random_bits();
	t->shared = 1024 + (below(2) ? 0 : 128 * below(8));
	t->params.image = t->image;
	t->params.global_map = t->params.map;
	for (u32 n = 0; n < t->rank; n++)
		t->params.at[n] =
			below(2) ? below((u32)t->sizes[n]) : below((u32)t->sizes[n] + 2 * t->box[n]) - t->box[n];
	t->params.at[0] &= ~(16 / t->element - 1); /* a multiple of 16 bytes */
	return t;
}

static void trial_free(struct trial *t)
{
	arena_free(&t->arena);
	free(t->tensor);
	free(t->image);
	free(t);
}

static void encode(struct trial *t)
{
	if (!tensor_map_encode(t->params.map, t->type, t->rank, t->base, t->sizes, t->strides, t->box, t->steps, 0,
			       t->swizzle, 2, t->fill, &t->error))
		fail_msg("%s", t->error.at);
}

static u32 box_length(const struct trial *t, u32 n)
{
	u32 step = n ? t->steps[n] : 1; /* ignored for the innermost dimension */
	return (t->box[n] + step - 1) / step;
}

static u32 box_bytes(const struct trial *t)
{
	u32 bytes = t->element;
	for (u32 n = 0; n < t->rank; n++)
		bytes *= box_length(t, n);
	return bytes;
}

/* Element e of the box, counted as it lies in shared memory without a swizzle: its byte there, and its address. False:
 * outside of the tensor, or of the `unit` elements that the end of its rows is among. */
static bool element_of(const struct trial *t, u32 e, u32 unit, u32 *shared, char **global)
{
	u32 row_bytes = t->box[0] * t->element, left = e;
	bool inside = true;
	*global = t->base;
	for (u32 n = 0; n < t->rank; n++) {
		i64 x = (i64)(i32)t->params.at[n] + (i64)(left % box_length(t, n)) * (n ? t->steps[n] : 1);
		inside &= x >= 0 && (n ? x : x / unit * unit) < (i64)t->sizes[n];
		*global += x * (i64)(n ? t->strides[n - 1] : t->element);
		left /= box_length(t, n);
	}
	u32 row = e / t->box[0], byte = e % t->box[0] * t->element;
	if (t->swizzle) { /* row_bytes is 32, 64 or 128 */
		u32 units = row_bytes / 16, per_line = 128 / row_bytes, line = (row + t->shared / row_bytes) / per_line;
		byte = (byte / 16 ^ line % units) * 16 + byte % 16;
	}
	*shared = row * row_bytes + byte;
	return inside;
}

/* --- running ----------------------------------------------------------------------------------------------------- */

static void begin(struct trial *t, bool map_in_global)
{
	sb_printf(&t->text,
		  ".version 8.4\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 sh[];\n"
		  ".visible .entry k(.param .u64 image, .param .u64 global_map, .param .u32 at0, .param .u32 at1, "
		  ".param .u32 at2, .param .u32 at3, .param .u32 at4, .param .align 64 .b8 map[128])\n{\n"
		  ".reg .pred %%p<8>;\n.reg .b32 %%r<40>;\n.reg .b64 %%rd<40>;\n"
		  "mov.u32 %%r1, %%tid.x; setp.eq.u32 %%p1, %%r1, 0; mov.u32 %%r20, sh; mov.u32 %%r21, sh;\n"
		  "ld.param.u64 %%rd1, [image]; mov.b64 %%rd2, map; cvta.param.u64 %%rd3, %%rd2;\n%s"
		  "ld.param.u32 %%r10, [at0]; ld.param.u32 %%r11, [at1]; ld.param.u32 %%r12, [at2]; "
		  "ld.param.u32 %%r13, [at3];\n"
		  "ld.param.u32 %%r14, [at4]; mul.wide.u32 %%rd5, %%r1, 4; "
		  "add.s64 %%rd6, %%rd1, %%rd5; shl.b32 %%r2, %%r1, 2;\n"
		  "add.s32 %%r3, %%r20, %%r2; mov.u32 %%r4, 0;\n"
		  "@%%p1 mbarrier.init.shared::cta.b64 [%%r21], 1; fence.proxy.async; bar.sync 0;\n",
		  map_in_global ? "ld.param.u64 %rd3, [global_map]; "
			  "fence.proxy.tensormap::generic.acquire.gpu [%rd3], 128;\n" :
				  "prefetch.tensormap [%rd3];\n");
}

/* Words of shared memory to the image, or back. */
static void copy_image(struct trial *t, bool out)
{
	sb_printf(&t->text,
		  "%s: add.s32 %%r6, %%r4, %%r2; setp.lt.u32 %%p4, %%r6, %u;\n", out ? "OUT" : "IN", box_bytes(t));
	if (out)
		sb_printf(&t->text, "@%%p4 ld.shared.b32 %%r5, [%%r3+%u]; @%%p4 st.global.b32 [%%rd6], %%r5;\n",
			  t->shared);
	else
		sb_printf(&t->text, "@%%p4 ld.global.b32 %%r5, [%%rd6]; @%%p4 st.shared.b32 [%%r3+%u], %%r5;\n",
			  t->shared);
	sb_printf(&t->text,
		  "add.s64 %%rd6, %%rd6, 128; add.s32 %%r3, %%r3, 128; add.s32 %%r4, %%r4, 128; "
		  "setp.lt.u32 %%p3, %%r4, %u;\n@%%p3 bra %s;\n",
		  box_bytes(t), out ? "OUT" : "IN");
}

static const char *coordinates(const struct trial *t)
{
	static const char *const all[] = {"", "{%r10}", "{%r10, %r11}", "{%r10, %r11, %r12}",
					  "{%r10, %r11, %r12, %r13}", "{%r10, %r11, %r12, %r13, %r14}"};
	return all[t->rank];
}

static const char *run(struct trial *t)
{
	const char *error = NULL;
	sb_puts(&t->text, "ret;\n}\n");
	struct ptx_module *m = ptx_read(&t->arena, t->text.at, t->text.len, &error);
	if (!m || !sim_decode(&t->arena, m, &error))
		return error;
	struct mem_range ranges[] = {{"tensor", t->base, t->extent}, {"image", t->image, MAX_BYTES},
				     {"map", t->params.map, TENSOR_MAP_BYTES}};
	for (u32 k = 1; k < 3; k++) /* by address */
		for (u32 n = k; n && ranges[n - 1].base > ranges[n].base; n--) {
			struct mem_range r = ranges[n];
			ranges[n] = ranges[n - 1];
			ranges[n - 1] = r;
		}
	struct launch l = {.module = m,
			   .kernel = &m->kernels[0],
			   .grid = {t->blocks, 1, 1},
			   .cluster = {t->blocks, 1, 1},
			   .num_warps = 1,
			   .params = (const char *)&t->params,
			   .ranges = ranges,
			   .nranges = 3,
			   .seed = random_bits(),
			   .timing = t->timing,
			   .dynamic_shared = MAX_BYTES};
	return sim_run(&l, &t->error) ? t->error.at : "";
}

static void write_load(struct trial *t, u32 bytes, const char *hint)
{
	sb_printf(&t->text,
		  "@%%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%r21], %u;\n"
		  "@%%p1 cp.async.bulk.tensor.%ud.shared::cluster.global%s.mbarrier::complete_tx::bytes%s "
		  "[%%r20+%u], [%%rd3, %s], [%%r21]%s;\n"
		  "AGAIN: mbarrier.try_wait.parity.shared::cta.b64 %%p2, [%%r21], 0;\n@!%%p2 bra AGAIN;\n",
		  bytes, t->rank, below(2) ? ".tile" : "", hint, t->shared, coordinates(t), *hint ? ", %rd7" : "");
}

/* Did a load bring the box? Returns how much of it is outside the tensor. */
static u32 check_image(const struct trial *t)
{
	u32 outside = 0;
	for (u32 k = 0; k < box_bytes(t) / t->element; k++) {
		u32 at;
		char *from;
		u64 want = 0, got = 0;
		if (element_of(t, k, 1, &at, &from)) {
			memcpy(&want, from, t->element);
		} else {
			outside++;
			for (u32 n = 0; t->fill == TENSOR_FILL_NAN && n < t->element; n += 2)
				want = want << 16 | 0x7FF7;
		}
		memcpy(&got, t->image + at, t->element);
		if (got != want)
			fail_msg("rank %u, type %d, swizzle %d: element %u is 0x%llx, not 0x%llx", t->rank, t->type,
				 t->swizzle, k,
				 (unsigned long long)got, (unsigned long long)want);
	}
	return outside;
}

static void test_loads(void **state)
{
	(void)state;
	u32 outside = 0;
	for (u32 n = 0; n < 1100; n++) {
		struct trial *t = trial_new((int)(n % 11));
		encode(t);
		begin(t, below(3) == 0);
		sb_puts(&t->text, "createpolicy.fractional.L2::evict_last.b64 %rd7, 1.0;\n");
		write_load(t, box_bytes(t), below(2) ? ".L2::cache_hint" : "");
		copy_image(t, true);
		const char *e = run(t);
		if (*e)
			fail_msg("%s\n%s", e, t->text.at);
		outside += check_image(t);
		trial_free(t);
	}
	assert_true(outside > 10000);
}

/* A block of a cluster loads a TMA tile for several blocks. Each block writes a separate image. */
static void test_multicasts(void **state)
{
	(void)state;
	enum { IMAGE_LOG2 = 14 };
	for (u32 n = 0; n < 550; n++) {
		struct trial *t = trial_new((int)(n % 11));
		char *image = t->image, *before = malloc(MAX_BYTES);
		bool other_address = below(2), hint = below(2), in_register = below(2);
		t->blocks = 1 + below(4);
		u32 mask = 1 + below((1u << t->blocks) - 1), bytes = box_bytes(t), rank = below(t->blocks);
		bool to_one = !(mask & (mask - 1)) && below(2); /* by its address */
		const char *mask_text = to_one ? "" : in_register ? ", %rs1" : arena_printf(&t->arena, ", %u", mask);
		if (to_one) {
			rank = (u32)__builtin_ctz(mask);
			other_address = true;
		}
		encode(t);
		begin(t, below(3) == 0);
		sb_printf(&t->text,
			  ".reg .b16 %%rs<4>; mov.u16 %%rs1, %u; "
			  "createpolicy.fractional.L2::evict_last.b64 %%rd7, 1.0;\n"
			  "mov.u32 %%r30, %%cluster_ctarank; shl.b32 %%r31, %%r30, %u; cvt.u64.u32 %%rd8, %%r31; "
			  "add.s64 %%rd6, %%rd6, %%rd8;\n"
			  "shr.b32 %%r32, %u, %%r30; and.b32 %%r32, %%r32, 1; "
			  "setp.eq.u32 %%p5, %%r32, 1; and.pred %%p6, %%p5, %%p1;\n"
			  "setp.eq.u32 %%p7, %%r30, %u; and.pred %%p7, %%p7, %%p1; "
			  "mov.u32 %%r33, %%r20; mov.u32 %%r34, %%r21;\n",
			  mask, IMAGE_LOG2, mask, below(t->blocks));
		if (other_address)
			sb_printf(&t->text, "mapa.shared::cluster.u32 %%r33, %%r20, %u; "
				  "mapa.shared::cluster.u32 %%r34, %%r21, %u;\n",
				  rank, to_one ? rank : below(t->blocks));
		sb_printf(&t->text,
			  "barrier.cluster.arrive; barrier.cluster.wait;\n"
			  "@%%p6 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%r21], %u;\n"
			  "@%%p7 cp.async.bulk.tensor.%ud.shared::cluster.global.tile.mbarrier::complete_tx::bytes%s%s "
			  "[%%r33+%u], "
			  "[%%rd3, %s], [%%r34]%s%s;\n@!%%p5 bra END;\n"
			  "AGAIN: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %%p2, [%%r21], 0;\n"
			  "@!%%p2 bra AGAIN;\n",
			  bytes, t->rank, to_one ? "" : ".multicast::cluster", hint ? ".L2::cache_hint" : "", t->shared,
				  coordinates(t),
			  mask_text, hint ? ", %rd7" : "");
		copy_image(t, true);
		sb_puts(&t->text, "END: barrier.cluster.arrive; barrier.cluster.wait;\n");
		memcpy(before, image, MAX_BYTES);
		const char *e = run(t);
		if (*e)
			fail_msg("%s\n%s", e, t->text.at);
		for (u32 b = 0; b < 4; b++) {
			t->image = image + (b << IMAGE_LOG2);
			if (mask >> b & 1)
				check_image(t);
			else
				assert_memory_equal(t->image, before + (b << IMAGE_LOG2), 1 << IMAGE_LOG2);
		}
		t->image = image;
		free(before);
		trial_free(t);
	}
}

static const char *const operations[] = {"add", "min", "max", "and", "or", "xor", "inc", "dec"};

/* What a reduction makes of an element; of floats, whole numbers only. */
static u64 combine(int type, const char *op, u64 old, u64 with)
{
	bool is_signed = type == TENSOR_INT32 || type == TENSOR_INT64, word = element_bytes[type] == 4;
	i64 a = word ? (i32)old : (i64)old, b = word ? (i32)with : (i64)with;
	switch (op[0] << 8 | op[2]) {
	case 'a' << 8 | 'd': return op[1] == 'n' ? old & with : word ? (u32)(old + with) : old + with;
	case 'm' << 8 | 'n': return (is_signed ? a < b : old < with) ? old : with;
	case 'm' << 8 | 'x': return (is_signed ? a < b : old < with) ? with : old;
	case 'o' << 8 | 0: return old | with;
	case 'x' << 8 | 'r': return old ^ with;
	case 'i' << 8 | 'c': return old >= with ? 0 : old + 1;
	default: return !old || old > with ? with : old - 1;
	}
}

static bool exists(int type, const char *op)
{
	bool word = type == TENSOR_UINT32 || type == TENSOR_INT32, wide = type == TENSOR_UINT64 || type == TENSOR_INT64;
	if (!strcmp(op, "inc") || !strcmp(op, "dec"))
		return type == TENSOR_UINT32;
	return word || type == TENSOR_UINT64 || (wide && *op == 'm'); /* of INT64 only min and max */
}

static double number_of_bits(int type, u64 bits)
{
	switch (type) {
	case TENSOR_FLOAT16: return fp_decode(FP_F16, (u32)bits);
	case TENSOR_BFLOAT16: return fp_decode(FP_BF16, (u32)bits);
	case TENSOR_FLOAT32: return fp_f32_bits((u32)bits);
	default: return fp_f64_bits(bits);
	}
}

static u64 bits_of_number(int type, double x)
{
	switch (type) {
	case TENSOR_FLOAT16: return fp_encode(FP_F16, x, false);
	case TENSOR_BFLOAT16: return fp_encode(FP_BF16, x, false);
	case TENSOR_FLOAT32: return fp_bits_f32((float)x);
	default: return fp_bits_f64(x);
	}
}

static void put_numbers(struct trial *t)
{
	for (u64 at = 0; at + t->element <= t->extent; at += t->element) {
		u64 v = bits_of_number(t->type, (double)below(64) - 32);
		memcpy(t->base + at, &v, t->element);
	}
	for (u32 at = 0; at < MAX_BYTES; at += t->element) {
		u64 v = bits_of_number(t->type, (double)below(64) - 32);
		memcpy(t->image + at, &v, t->element);
	}
}

/* Stores and reductions: the tensor afterwards, byte by byte. */
static void test_stores(void **state)
{
	(void)state;
	u32 reduced = 0;
	for (u32 n = 0; n < 900; n++) {
		struct trial *t = trial_new((int)(n % 10));
		bool is_float = t->type >= TENSOR_FLOAT16;
		for (u32 d = 0; d < t->rank; d++)
			t->params.at[d] = (i32)t->params.at[d] < 0 ? 0 : t->params.at[d];
		const char *op = below(2) ? operations[is_float ? 0 : below(8)] : NULL;
		if (op && !is_float && !exists(t->type, op))
			op = NULL;
		if (op && is_float)
			put_numbers(t);
		encode(t);
		begin(t, below(3) == 0);
		copy_image(t, false);
		sb_printf(&t->text,
			  "fence.proxy.async.shared::cta; bar.sync 0;\n"
			  "@%%p1 cp.%s.bulk.tensor.%ud.global.shared::cta%s%s.tile.bulk_group [%%rd3, %s], "
			  "[%%r20+%u];\n"
			  "@%%p1 cp.async.bulk.commit_group;\n@%%p1 cp.async.bulk.wait_group%s 0;\n",
			  op ? "reduce.async" : "async", t->rank, op ? "." : "", op ? op : "", coordinates(t),
				  t->shared, below(2) ? ".read" : "");
		char *want = malloc(t->extent);
		memcpy(want, t->base, t->extent);
		for (u32 k = 0; k < box_bytes(t) / t->element; k++) {
			u32 at;
			char *to;
			u64 old = 0, with = 0;
			if (!element_of(t, k, op ? 1 : 16 / t->element, &at, &to))
				continue;
			memcpy(&old, want + (to - t->base), t->element);
			memcpy(&with, t->image + at, t->element);
			if (op && is_float)
				with = bits_of_number(t->type,
						      number_of_bits(t->type, old) + number_of_bits(t->type, with));
			else if (op)
				with = combine(t->type, op, old, with);
			memcpy(want + (to - t->base), &with, t->element);
			reduced += op != NULL;
		}
		const char *e = run(t);
		if (*e)
			fail_msg("%s\n%s", e, t->text.at);
		for (u64 k = 0; k < t->extent; k++)
			if (t->base[k] != want[k])
				fail_msg("trial %u, rank %u, type %d, swizzle %d, %s: byte %llu is 0x%x, not 0x%x", n,
					 t->rank, t->type, t->swizzle,
					 op ? op : "store", (unsigned long long)k, (u8)t->base[k], (u8)want[k]);
		free(want);
		trial_free(t);
	}
	assert_true(reduced > 10000);
}

/* --- encoding ---------------------------------------------------------------------------------------------------- */

struct request {
	int type, interleave, swizzle, promotion, fill;
	u32 rank, box[RANK], steps[RANK];
	u64 base, sizes[RANK], strides[RANK];
	u32 offset; /* of the map */
};

static const char *encode_request(struct arena *a, const struct request *q)
{
	static _Alignas(64) char map[2 * TENSOR_MAP_BYTES];
	struct strbuf error = {.arena = a};
	bool ok = tensor_map_encode(map + q->offset, q->type, q->rank, (void *)(uintptr_t)q->base, q->sizes, q->strides,
				    q->box, q->steps, q->interleave, q->swizzle, q->promotion, q->fill, &error);
	assert_int_equal(ok, !error.len);
	return ok ? "" : error.at;
}

static void test_encoding(void **state)
{
	(void)state;
	static const struct request good = {.type = TENSOR_FLOAT16,
					    .swizzle = TENSOR_SWIZZLE_128B,
					    .rank = 2,
					    .box = {64, 256, 1, 1, 1},
					    .steps = {1, 1, 1, 1, 1},
					    .base = 0x10000,
					    .sizes = {1000, 1ull << 32, 1, 1, 1},
					    .strides = {2000, 16, 16, 16}};
	struct arena a = {0};
	assert_string_equal(encode_request(&a, &good), "");
	struct request q;
#define REFUSED(change, text)                                                                                          \
	q = good;                                                                                                      \
	change;                                                                                                        \
	if (!strstr(encode_request(&a, &q), text))                                                                     \
		fail_msg("%s: '%s'", #change, encode_request(&a, &q));
	REFUSED(q.offset = 32, "not a multiple of 64")
	REFUSED(q.rank = 0, "rank 0: 1 to 5")
	REFUSED(q.rank = 6, "rank 6: 1 to 5")
	REFUSED(q.base = 0x10008, "not a multiple of 16")
	REFUSED(q.type = 16, "no copies of data type 16")
	REFUSED(q.type = -1, "no copies of data type -1")
	REFUSED(q.interleave = 1, "interleaved")
	REFUSED(q.interleave = 3, "no interleave mode 3")
	REFUSED(q.swizzle = 4, "no swizzle mode 4")
	REFUSED(q.promotion = 4, "no L2 promotion 4")
	REFUSED(q.fill = 2, "no fill mode 2")
	REFUSED(q.fill = 1; q.type = TENSOR_UINT16, "UINT16 has no NaN")
	REFUSED(q.sizes[1] = 0, "size of dimension 1 is 0")
	REFUSED(q.sizes[0] = (1ull << 32) + 1, "size of dimension 0 is 4294967297")
	REFUSED(q.box[1] = 257, "257 elements of dimension 1")
	REFUSED(q.box[1] = 0, "0 elements of dimension 1")
	REFUSED(q.steps[1] = 9, "element stride of dimension 1 is 9")
	REFUSED(q.steps[0] = 0, "element stride of dimension 0 is 0")
	REFUSED(q.strides[0] = 2008, "stride of dimension 1 is 2008 bytes, not a multiple of 16")
	REFUSED(q.strides[0] = 1ull << 40, "less than 2^40")
	REFUSED(q.box[0] = 72, "144 bytes, more than the 128 of the swizzle")
	REFUSED(q.box[0] = 32, "64 bytes, less than the 128 of the swizzle")
	REFUSED(q.box[0] = 4; q.swizzle = 0, "8 bytes, not a multiple of 16")
	arena_free(&a);
}

/* Rows that begin within a sector of memory ask for a line at once, others for two. */
static void test_promotion(void **state)
{
	(void)state;
	struct tensor_map_shape b = {.dtype = DT_F16, .rank = 3, .base = (void *)0x10000, .strides = {8192, 1 << 20}};
	assert_int_equal(tensor_promotion(&b), TENSOR_PROMOTION_256B);
	b.strides[0] = 8160;
	assert_int_equal(tensor_promotion(&b), TENSOR_PROMOTION_256B);
	b.strides[0] = 8176;
	assert_int_equal(tensor_promotion(&b), TENSOR_PROMOTION_128B);
	b.strides[0] = 8192, b.strides[1] += 16;
	assert_int_equal(tensor_promotion(&b), TENSOR_PROMOTION_128B);
	b.rank = 2;
	assert_int_equal(tensor_promotion(&b), TENSOR_PROMOTION_256B);
	b.base = (void *)0x10010;
	assert_int_equal(tensor_promotion(&b), TENSOR_PROMOTION_128B);
}

/* --- the device -------------------------------------------------------------------------------------------------- */

/* A map as the device makes it, and a kernel that takes it as a parameter. */
static void run_on_device(struct device *d, struct trial *t)
{
	void *kernel, *tensor, *image;
	struct tensor_map_shape b = {
		.dtype = DT_F16, .rank = t->rank, .swizzle = t->swizzle ? 16u << t->swizzle : 0, .fills_nan = t->fill};
	assert_int_equal(d->ops->alloc(d, t->extent, &tensor), TL_OK);
	assert_int_equal(d->ops->alloc(d, MAX_BYTES, &image), TL_OK);
	assert_int_equal(device_write(d, tensor, t->base, t->extent), TL_OK);
	b.base = tensor;
	memcpy(b.sizes, t->sizes, sizeof b.sizes);
	memcpy(b.strides, t->strides, sizeof b.strides);
	memcpy(b.box, t->box, sizeof b.box);
	assert_int_equal(d->ops->tensor_map(d, &b, t->params.map), TL_OK);
	begin(t, false);
	write_load(t, box_bytes(t), "");
	copy_image(t, true);
	sb_puts(&t->text, "ret;\n}\n");
	struct slot slots[2 + RANK] = {{.pointers = 1, .dtype = DT_I32}, {.pointers = 1, .dtype = DT_I32}};
	u64 args[3 + RANK] = {(u64)(uintptr_t)image, 0};
	for (u32 k = 0; k < RANK; k++) {
		slots[2 + k] = (struct slot){.dtype = DT_I32};
		args[2 + k] = t->params.at[k];
	}
	args[2 + RANK] = (u64)(uintptr_t)t->params.map;
	struct image im = {.name = "k",
			   .slots = slots,
			   .nslots = 2 + RANK,
			   .nmaps = 1,
			   .code = t->text.at,
			   .code_bytes = (u32)t->text.len,
			   .shared_bytes = MAX_BYTES,
			   .num_warps = 1,
			   .cluster = 1};
	tl_status s = d->ops->load(d, &(struct device_load){.image = &im}, &kernel);
	struct device_launch l = {.kernel = kernel, .grid = {1, 1, 1}, .args = args, .nargs = 3 + RANK};
	if (s || d->ops->launch(d, &l))
		fail_msg("%s", tl_error(NULL));
	assert_int_equal(device_read(d, t->image, image, MAX_BYTES), TL_OK);
	check_image(t);
	d->ops->unload(d, kernel);
	b.swizzle = 48;
	assert_int_equal(d->ops->tensor_map(d, &b, t->params.map), TL_ERR_ARGUMENT);
	d->ops->free(d, tensor);
	d->ops->free(d, image);
}

static void test_device(void **state)
{
	(void)state;
	struct device *d;
	assert_int_equal(device_open("sim", &d), TL_OK);
	for (u32 n = 0; n < 50; n++) {
		struct trial *t = trial_new(TENSOR_FLOAT16);
		for (u32 k = 0; k < RANK; k++)
			t->steps[k] = 1;
		while (t->rank > 1 && box_bytes(t) > 32768)
			t->rank--;
		t->shared = 1024;
		run_on_device(d, t);
		trial_free(t);
	}
	d->ops->close(d);
	assert_int_equal(device_open("sim:80", &d), TL_OK);
	assert_int_equal(d->ops->tensor_map(d, &(struct tensor_map_shape){0}, NULL), TL_ERR_DEVICE);
	d->ops->close(d);
}

/* --- reports ----------------------------------------------------------------------------------------------------- */

static struct trial *plain(void)
{
	struct trial *t = trial_new(TENSOR_FLOAT16);
	t->swizzle = TENSOR_SWIZZLE_128B;
	t->fill = 0;
	t->rank = 2;
	t->shared = 1024;
	t->sizes[0] = t->box[0] = 64;
	t->sizes[1] = t->box[1] = 8;
	t->steps[0] = t->steps[1] = 1;
	t->strides[0] = 128;
	t->extent = 1024;
	t->params.at[0] = t->params.at[1] = 0;
	free(t->tensor);
	t->tensor = aligned_alloc(16, 2048);
	t->base = t->tensor + 16;
	encode(t);
	return t;
}

static void expect_fault(struct trial *t, const char *part)
{
	const char *e = run(t);
	if (!strstr(e, part))
		fail_msg("want '%s', got '%s'\n%s", part, e, t->text.at);
	trial_free(t);
}

static void test_faults(void **state)
{
	(void)state;
	struct trial *t = plain();
	begin(t, false);
	write_load(t, 1008, "");
	copy_image(t, true);
	expect_fault(t, "bytes of transactions");

	t = plain();
	t->params.map[100] ^= 1;
	begin(t, false);
	write_load(t, 1024, "");
	expect_fault(t, "there is no tensor map at address");

	t = plain();
	t->rank = 3;
	begin(t, false);
	write_load(t, 1024, "");
	expect_fault(t, "the tensor map has 2 dimensions, and the copy has 3");

	t = plain();
	t->shared = 1040;
	begin(t, false);
	write_load(t, 1024, "");
	expect_fault(t, "not a multiple of 128");

	t = plain();
	t->shared = MAX_BYTES - 512;
	begin(t, false);
	write_load(t, 1024, "");
	expect_fault(t, "outside shared memory");

	t = plain(); /* the tensor is said to be larger than it is */
	t->extent = 1000;
	begin(t, false);
	write_load(t, 1024, "");
	expect_fault(t, "of 'tensor' (1000 bytes)");

	t = plain(); /* of a box that lies outside as a whole the first element is touched */
	t->base -= 4096;
	encode(t);
	t->base += 4096;
	t->params.at[0] = 64;
	begin(t, false);
	write_load(t, 1024, "");
	expect_fault(t, "outside every buffer");

	t = plain();
	begin(t, false);
	sb_puts(&t->text, "add.s64 %rd3, %rd3, 32;\n");
	write_load(t, 1024, "");
	expect_fault(t, "not aligned to 64 bytes");

	t = plain();
	begin(t, false);
	sb_puts(&t->text, "add.s64 %rd3, %rd3, 128;\n");
	write_load(t, 1024, "");
	expect_fault(t, "past the end of the kernel's parameters");

	t = plain();
	begin(t, false);
	copy_image(t, false);
	sb_puts(&t->text, "bar.sync 0;\n@%p1 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group "
		"[%rd3, {%r10, %r11}], [%r20+1024];\n");
	expect_fault(t, "no fence.proxy.async");

	t = plain();
	begin(t, false);
	copy_image(t, false);
	sb_puts(&t->text,
		"fence.proxy.async; bar.sync 0;\n@%p1 cp.reduce.async.bulk.tensor.2d.global.shared::cta.and.bulk_group "
		"[%rd3, {%r10, %r11}], [%r20+1024];\n");
	expect_fault(t, "this reduction does not exist");
}

static void test_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"cp.async.bulk.tensor.6d.shared::cluster.global.mbarrier::complete_tx::bytes "
		"[%r20], [%rd3, {%r1, %r1}], [%r21];",
		"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
		"[%r20], [%rd3, {%r1}], [%r21];",
		"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r20], [%rd3], [%r21];",
		"cp.async.bulk.tensor.2d.shared::cluster.global.bulk_group [%r20], [%rd3, {%r1, %r1}], [%r21];",
		"cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd3, {%r1, %r1}];",
		"cp.async.bulk.tensor.2d.global.shared::cta.mbarrier::complete_tx::bytes "
		"[%rd3, {%r1, %r1}], [%r20], [%r21];",
		"cp.reduce.async.bulk.tensor.2d.global.shared::cta.cas.bulk_group [%rd3, {%r1, %r1}], [%r20];",
		"cp.async.bulk.prefetch.tensor.2d.L2.global [%rd3, {%r1}];",
		"cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r20], [%rd3, "
		"{%r1, %r1, %r1}], [%r21], {%rs1};",
		"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
		"[%r20], [%rd3, {%r1, %r1}], [%r21], %r1;",
	};
	for (u32 n = 0; n < ARRAY_LEN(bad); n++) {
		struct trial *t = plain();
		begin(t, false);
		sb_printf(&t->text, ".reg .b16 %%rs<4>;\n%s\n", bad[n]);
		expect_fault(t, n == 8 ? "only tile mode" : "cp.");
	}
	/* and what does nothing */
	struct trial *t = plain();
	begin(t, false);
	sb_puts(&t->text, "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd3, {%r1, %r1}]; "
		"prefetch.param.tensormap [%rd2];\n");
	assert_string_equal(run(t), "");
	trial_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_promotion),
		cmocka_unit_test(test_loads),    cmocka_unit_test(test_multicasts), cmocka_unit_test(test_stores),
		cmocka_unit_test(test_encoding), cmocka_unit_test(test_device),     cmocka_unit_test(test_faults),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
