/* Kernel images: what is written is read back, and nothing damaged does harm or is taken for an image. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "random_bits.h"
#include "runtime/image/image.h"
#include "runtime/launch/specialize.h"

enum { HEADER_BYTES = 32, HASH_AT = 24 };

/* An image with something in every field, of random sizes. */
static struct image random_image(void)
{
	struct image im = {.source = "a.tl",
			   .source_hash = random_bits(),
			   .signature = "x=*fp32:16, N=64",
			   .target = "cuda:sm_90a",
			   .codegen = {.num_stages = 1 + (int)(random_bits() % 7),
				       .group_pids = (int)(random_bits() % 9),
				       .maxnreg = (int)(random_bits() % 256),
				       .fp_fusion = (int)(1 + random_bits() % 2),
				       .ftz = (int)(1 + random_bits() % 2),
				       .debug = random_bits() & 1,
				       .wraps = random_bits() & 1,
				       .no_tma = random_bits() & 1,
				       .sizes = (enum launch_bounds)(random_bits() % 3),
				       .alias = (enum aliasing)(random_bits() % 3)},
			   .name = "kernel",
			   .code_bytes = (u32)(random_bits() % 300),
			   .num_warps = 1 + (i32)(random_bits() % 36),
			   .shared_bytes = (i32)(random_bits() % 200000),
			   .cluster = 1 + (i32)(random_bits() % 16),
			   .pairs = random_bits() & 1,
			   .persistent = random_bits() & 1,
			   .grids = 1 + random_bits() % 7,
			   .narrow_offsets = random_bits() & 1,
			   .nslots = 1 + (u32)(random_bits() % 9),
			   .nmaps = (u32)(random_bits() % (MAX_TENSOR_MAPS + 1)),
			   .napart = (u32)(random_bits() % 5),
			   .nlimits = (u32)(random_bits() % (MAX_SIZE_LIMITS + 1))};
	char *code = arena_array(&im.arena, char, im.code_bytes + 1);
	for (u32 i = 0; i < im.code_bytes; i++) /* NULs too: it is binary */
		code[i] = (char)random_bits();
	im.code = code;
	im.slots = arena_array(&im.arena, struct slot, im.nslots);
	for (u32 i = 0; i < im.nslots; i++) {
		enum dtype d = (enum dtype)(random_bits() % DT_COUNT);
		im.slots[i] = (struct slot){.name = arena_printf(&im.arena, "p%u", i),
					    .leaf = (u32)(random_bits() % MAX_KERNEL_PARAMS),
					    .pointers = (i32)(random_bits() % 3),
					    .dtype = dtype_has_values(d) ? d : DT_I32,
					    .divisibility = (i32)((1u << random_bits() % 9) & ~1u)};
	}
	im.maps = arena_array(&im.arena, struct tensor_map_param, im.nmaps + 1);
	for (u32 i = 0; i < im.nmaps; i++)
		im.maps[i] = (struct tensor_map_param){
			.distance = {.times = (i64)random_bits()},
			.sizes = {{.times = (i64)random_bits()},
				  {.times = (i64)random_bits(),
				   .nparams = 2,
				   .params = {(i16)(random_bits() % im.nslots), (i16)(random_bits() % im.nslots)}}},
			.tensor = (i32)(random_bits() % im.nslots),
			.box = {64, (i32)(random_bits() % 257), 2},
			.elem_bytes = 2,
			.swizzle = 128};
	im.apart = arena_array(&im.arena, struct param_pair, im.napart + 1);
	for (u32 i = 0; i < im.napart; i++)
		im.apart[i] = (struct param_pair){.a = (u32)(random_bits() % im.nslots),
						  .b = (u32)(random_bits() % im.nslots),
						  .equal_is_fine = random_bits() & 1};
	im.limits = arena_array(&im.arena, struct size_limit, im.nlimits + 1);
	for (u32 i = 0; i < im.nlimits; i++)
		im.limits[i] = (struct size_limit){.most = (i64)random_bits(),
						   .a = (i16)(random_bits() % im.nslots),
						   .b = i % 2 ? SIZE_NONE : SIZE_PROGRAMS - 2,
						   .least = (i32)random_bits()};
	return im;
}

static void assert_same(const struct image *x, const struct image *y)
{
	assert_string_equal(x->source, y->source);
	assert_string_equal(x->signature, y->signature);
	assert_string_equal(x->target, y->target);
	assert_string_equal(x->name, y->name);
	assert_true(codegen_options_same_choice(&x->codegen, &y->codegen));
	assert_true(x->codegen.no_tma == y->codegen.no_tma && x->codegen.sizes == y->codegen.sizes &&
		    x->codegen.alias == y->codegen.alias);
	assert_true(x->source_hash == y->source_hash);
	assert_true(x->num_warps == y->num_warps && x->shared_bytes == y->shared_bytes && x->cluster == y->cluster &&
		    x->pairs == y->pairs && x->persistent == y->persistent && x->grids == y->grids &&
		    x->narrow_offsets == y->narrow_offsets);
	assert_int_equal(x->code_bytes, y->code_bytes);
	assert_memory_equal(x->code, y->code, x->code_bytes + 1);
	assert_true(x->nslots == y->nslots && x->nmaps == y->nmaps && x->napart == y->napart &&
		    x->nlimits == y->nlimits);
	for (u32 i = 0; i < x->nslots; i++) {
		const struct slot *a = &x->slots[i], *b = &y->slots[i];
		assert_string_equal(a->name, b->name);
		assert_true(a->leaf == b->leaf && a->pointers == b->pointers && a->dtype == b->dtype &&
			    a->divisibility == b->divisibility);
	}
	assert_memory_equal(x->maps, y->maps, x->nmaps * sizeof *x->maps + 1);
	for (u32 i = 0; i < x->napart; i++)
		assert_true(x->apart[i].a == y->apart[i].a && x->apart[i].b == y->apart[i].b &&
			    x->apart[i].equal_is_fine == y->apart[i].equal_is_fine);
	for (u32 i = 0; i < x->nlimits; i++)
		assert_true(x->limits[i].most == y->limits[i].most && x->limits[i].a == y->limits[i].a &&
			    x->limits[i].b == y->limits[i].b && x->limits[i].least == y->limits[i].least);
}

/* From memory of exactly that size, so that a read past the end is seen by the sanitizer. */
static const char *read_exactly(struct image *im, const char *bytes, size_t len)
{
	char *exact = malloc(len ? len : 1);
	memcpy(exact, bytes, len);
	const char *why = image_read(im, exact, len);
	free(exact);
	return why;
}

static void what_is_written_is_read(void **state)
{
	(void)state;
	for (int n = 0; n < 200; n++) {
		struct arena a = {0};
		size_t len, again;
		struct image im = random_image(), read;
		const char *bytes = image_write(&im, &a, &len);
		assert_null(read_exactly(&read, bytes, len));
		assert_same(&im, &read);
		assert_memory_equal(bytes, image_write(&read, &a, &again), len);
		assert_int_equal(len, again);
		image_free(&im);
		image_free(&read);
		arena_free(&a);
	}
}

static void damage_is_noticed(void **state)
{
	(void)state;
	struct arena a = {0};
	size_t len;
	struct image im = random_image(), read;
	char *bytes = image_write(&im, &a, &len);
	for (size_t i = 0; i < len; i++) {
		bytes[i] ^= (char)(1 << i % 8);
		assert_non_null(read_exactly(&read, bytes, len));
		bytes[i] ^= (char)(1 << i % 8);
		assert_non_null(read_exactly(&read, bytes, i));
	}
	image_free(&im);
	arena_free(&a);
}

/* Whoever writes the hash too gets no further than to fields that a launch can use. */
static void nonsense_does_no_harm(void **state)
{
	(void)state;
	struct arena a = {0};
	size_t len;
	struct image im = random_image(), read;
	char *bytes = image_write(&im, &a, &len), *damaged = arena_array(&a, char, len);
	u32 refused = 0;
	for (int n = 0; n < 20000; n++) {
		memcpy(damaged, bytes, len);
		for (u64 k = random_bits() % 3 + 1; k--;)
			damaged[HEADER_BYTES + random_bits() % (len - HEADER_BYTES)] = (char)random_bits();
		u64 hash = hash_bytes(damaged + HEADER_BYTES, len - HEADER_BYTES, 0);
		memcpy(damaged + HASH_AT, &hash, sizeof hash);
		if (read_exactly(&read, damaged, len)) {
			refused++;
			continue;
		}
		for (u32 i = 0; i < read.nslots; i++)
			assert_true(read.slots[i].leaf < MAX_KERNEL_PARAMS && read.slots[i].dtype < DT_COUNT);
		for (u32 i = 0; i < read.nmaps; i++)
			assert_true(read.maps[i].tensor < (i32)read.nslots &&
				    read.maps[i].distance.params[0] < (i32)read.nslots);
		struct strbuf text = {.arena = &a};
		image_show(&read, &text);
		image_free(&read);
	}
	assert_in_range(refused, 1000, 19999);
	image_free(&im);
	arena_free(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_written_is_read),
					   cmocka_unit_test(damage_is_noticed),
					   cmocka_unit_test(nonsense_does_no_harm)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
