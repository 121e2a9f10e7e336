/* Bindings against the keys that they stand for: on random arguments, what an exact binding takes has the variant's
 * key, and what a handle's binding takes is what the variant's code is right for; their bits are those of a launch
 * without bindings. */
#include "test_runtime.h"

#include "random_bits.h"
#include "runtime/launch/argument_guard.h"
#include "runtime/launch/specialize.h"

static const char text[] =
	"import triton\nimport triton.language as tl\n\n"
	"@triton.jit\ndef k(a, b: tl.int64, c: tl.uint8, d: \"*fp16\", e: tl.float32, f: tl.constexpr, "
	"g: tl.int1, h: tl.float16):\n    pass\n";
enum { NPARAMS = 8 };

static tl_arg random_integer(void)
{
	static const int64_t near[] = {0,   1,         2,         8,         16,        24, 255,
				       256, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 48, 4096};
	u64 around = random_bits() % 4 ? 0 : random_bits() % 5 - 2;
	int64_t v = (int64_t)((u64)near[random_bits() % ARRAY_LEN(near)] + around);
	if (random_bits() % 8 == 0)
		v = (int64_t)((u64)v << random_bits() % 60);
	switch (random_bits() % 5) {
	case 0: return tl_int_typed((tl_dtype)(random_bits() % (TL_U64 + 1)), v);
	case 1: return tl_uint((u64)v);
	case 2: return tl_uint_typed((tl_dtype)(random_bits() % (TL_U64 + 1)), (u64)v);
	default: return tl_int(v);
	}
}

static tl_arg random_pointer(void)
{
	static const tl_dtype types[] = {TL_F32, TL_F16, TL_I8, TL_I64};
	u64 address = 0x1000 + (random_bits() % 3 ? 16 * (random_bits() % 4) : random_bits() % 64);
	return tl_range(types[random_bits() % ARRAY_LEN(types)], (void *)(uintptr_t)address, random_bits() % 2 * 64);
}

static tl_arg random_argument(void)
{
	static const char *const words[] = {"relu", "relu2", ""};
	switch (random_bits() % 10) {
	case 0: return tl_none();
	case 1: return tl_bool(random_bits() & 1);
	case 2: return tl_float(random_bits() % 2 ? 0.1 : -0.0);
	case 3: return tl_float_typed(random_bits() % 2 ? TL_F16 : TL_F64, 1.5);
	case 4: return tl_str(words[random_bits() % ARRAY_LEN(words)]);
	case 5: return tl_constexpr(random_integer());
	case 6: return random_pointer();
	case 7: return tl_type((tl_dtype)(random_bits() % 3));
	default: return random_integer();
	}
}

/* Mostly what the parameters can take. */
static void random_arguments(tl_arg *args)
{
	args[0] = random_bits() % 2 ? random_integer() : random_argument();
	args[1] = random_integer();
	args[2] = tl_int((i64)(random_bits() % 256));
	args[3] = random_pointer();
	args[3].dtype = TL_F16;
	args[3].ptr = (void *)((uintptr_t)args[3].ptr & ~(uintptr_t)1);
	args[4] = random_bits() % 2 ? random_integer() : tl_float(3.25);
	args[5] = random_argument();
	args[6] = random_bits() % 2 ? tl_bool(random_bits() & 1) : random_integer();
	args[7] = tl_float(0.3);
}

static struct params params;
static struct slot slots[NPARAMS];

/* A variant for the arguments with a slot for each that is left at run time. False: the parameters cannot take them. */
static bool make_variant(struct variant *v, const tl_arg *args, struct key *key)
{
	key_init(key, 0);
	if (specialize(&params, args, NPARAMS, key))
		return false;
	*v = (struct variant){
		.params = &params, .keyed = {.words = key->at, .len = key->len}, .image = {.slots = slots}};
	for (u32 i = 0; i < NPARAMS; i++) {
		struct spec s;
		assert_true(argument_spec(&params, &params.at[i], i, &args[i], &s));
		if (s.class == SPEC_TYPED)
			slots[v->image.nslots++] = (struct slot){.name = params.at[i].name,
								 .leaf = i,
								 .pointers = args[i].kind == TL_ARG_PTR,
								 .dtype = s.dtype,
								 .divisibility = s.divisibility};
	}
	return true;
}

static bool same_key(const struct key *a, const struct key *b)
{
	return a->len == b->len && !memcmp(a->at, b->at, a->len * sizeof *a->at);
}

/* Is code for `of` right for `is`? */
static bool right_for(const tl_arg *of, const tl_arg *is, u32 i)
{
	struct spec x, y;
	if (!argument_spec(&params, &params.at[i], i, is, &y))
		return false;
	argument_spec(&params, &params.at[i], i, of, &x);
	struct key a, b;
	key_init(&a, 0);
	key_init(&b, 0);
	a.leaves = b.leaves = i;
	key_add_leaf(&a, &params, &params.at[i], of);
	key_add_leaf(&b, &params, &params.at[i], is);
	if (x.class != SPEC_TYPED)
		return same_key(&a, &b);
	i32 by = MAX(x.divisibility, 1);
	if (is->kind == TL_ARG_PTR)
		return of->kind == TL_ARG_PTR && x.dtype == y.dtype && (uintptr_t)is->ptr % (u32)by == 0;
	if (is->kind == TL_ARG_FLOAT)
		return of->kind == TL_ARG_FLOAT && x.dtype == y.dtype;
	bool numbers = is->kind == TL_ARG_INT || is->kind == TL_ARG_UINT || is->kind == TL_ARG_BOOL;
	return numbers && (dtype_is_float(x.dtype) ? params.at[i].annotated
						   : int_converts(x.dtype, int_value(is)) && int_value(is) % by == 0);
}

/* The arguments, of which some are others. */
static void vary(tl_arg *to, const tl_arg *from)
{
	tl_arg others[NPARAMS];
	random_arguments(others);
	u64 which = random_bits();
	for (u32 i = 0; i < NPARAMS; i++)
		to[i] = which >> 2 * i & 3 ? from[i] : others[i];
}

static void check_bits(const struct variant *v, const tl_arg *args, const u64 *bits)
{
	u64 expected[MAX_KERNEL_PARAMS];
	arguments_bits(&v->image, args, expected);
	for (u32 i = 0; i < v->image.nslots; i++)
		if (bits[i] != expected[i])
			fail_msg("slot %u: %llx, not %llx", i, (unsigned long long)bits[i],
				 (unsigned long long)expected[i]);
}

static void as_the_key_says(void **state)
{
	(void)state;
	struct unit u;
	assert_true(unit_open(&u, "t.tl", text, sizeof text - 1));
	params_of_func(&u.arena, u.module->funcs.at[0], &params);
	u32 made = 0, same = 0, taken = 0, loose = 0, right = 0;
	for (int n = 0; n < 20000; n++) {
		tl_arg args[NPARAMS], others[NPARAMS];
		struct variant v;
		struct key key;
		static const i16 limits[] = {1, 16, 256};
		i16 most[NPARAMS];
		for (u32 i = 0; i < NPARAMS; i++) {
			most[i] = limits[random_bits() % ARRAY_LEN(limits)];
			params.at[i].any_value = random_bits() % 8 == 0;
			params.at[i].any_alignment = random_bits() % 8 == 0;
		}
		params.most = n % 4 ? most : NULL;
		params.any_value = n % 16 == 1;
		params.any_alignment = n % 16 == 2;
		random_arguments(args);
		if (!make_variant(&v, args, &key)) {
			key_free(&key);
			continue;
		}
		made++;
		struct options o = {.codegen.num_warps = 4};
		struct arg_guard *exact = arg_guard_new(&v, &o, args, NPARAMS, true),
			       *handle = arg_guard_new(&v, &o, args, NPARAMS, false);
		assert_false(exact->by_key || handle->by_key);
		u64 bits[BOUND_BITS];
		assert_true(arg_guard_takes(exact, args, NPARAMS, bits));
		check_bits(&v, args, bits);
		assert_true(arg_guard_takes(handle, args, NPARAMS, bits));
		check_bits(&v, args, bits);
		for (int m = 0; m < 20; m++) {
			struct key other;
			vary(others, args);
			key_init(&other, 0);
			bool fits =
				!specialize(&params, others, NPARAMS, &other) && same_key(&other, &key);
			key_free(&other);
			same += fits;
			if (arg_guard_takes(exact, others, NPARAMS, bits)) {
				taken++;
				assert_true(fits);
				check_bits(&v, others, bits);
			}
			bool all = true;
			for (u32 i = 0; i < NPARAMS; i++)
				all &= right_for(&args[i], &others[i], i);
			right += all;
			if (arg_guard_takes(handle, others, NPARAMS, bits)) {
				loose++;
				assert_true(all);
				check_bits(&v, others, bits);
			} else {
				assert_false(fits && arg_guard_takes(exact, others, NPARAMS, bits));
			}
		}
		arg_guard_free(exact);
		arg_guard_free(handle);
		key_free(&key);
	}
	/* they miss only numbers of the same type that are given in another way */
	print_message("%u variants; of %u arguments of their keys %u taken, of %u that are right %u\n", made, same,
		      taken, right, loose);
	assert_true(made > 3000 && taken > 10000 && taken > same * 6 / 10 && loose > taken && loose > right * 6 / 10);
	unit_free(&u);
}

/* --- conditions -------------------------------------------------------------------------------------------------- */

static const char conditions_text[] = "import triton\nimport triton.language as tl\n\n"
				      "@triton.jit\ndef k(x, y, z, a, b: tl.int64, c: tl.uint32):\n    pass\n";
enum { POINTERS = 3, ALL = 6 };

static i64 random_number(u64 i)
{
	static const i64 near[] = {0, 8, 16, 4096, 65535, INT32_MAX, 1ll << 33, 1ll << 40, -1, -16};
	i64 v = near[random_bits() % ARRAY_LEN(near)] + (i64)(random_bits() % 3) - 1;
	return i == 3 ? (i32)v : i == 5 ? (i64)(u32)v : v;
}

static void random_launch(tl_arg *args)
{
	for (u32 i = 0; i < POINTERS; i++)
		args[i] = tl_range(TL_F32, (void *)(uintptr_t)(4096 + 64 * (random_bits() % 8)),
				   random_bits() % 8   ? (u64)64 << random_bits() % 2
				   : random_bits() % 2 ? (u64)4 * (MOST_NARROW_ELEMENTS + random_bits() % 3 - 1)
						       : 0);
	args[3] = tl_int(random_number(3));
	args[4] = tl_int_typed(TL_I64, random_number(4));
	args[5] = tl_uint_typed(TL_U32, (u64)random_number(5));
}

static void random_conditions(struct image *im, struct tensor_map_param *maps, struct size_limit *limits,
			      struct param_pair *pairs)
{
	static const i64 factors[] = {1, 2, 4, 6, 16, 48, 1 << 20, 0, -16};
	im->nmaps = (u32)(random_bits() % 3);
	for (u32 i = 0; i < im->nmaps; i++)
		maps[i] = (struct tensor_map_param){.distance = {.times = factors[random_bits() % ARRAY_LEN(factors)],
								 .nparams = random_bits() % 8 != 0},
						    .elem_bytes = 1 << random_bits() % 4,
						    .tensor = random_bits() % 8 ? -1 : 0,
						    .sizes = {{.times = 8}, {.times = 8}}};
	for (u32 i = 0; i < im->nmaps; i++)
		maps[i].distance.params[0] = (i16)(maps[i].distance.nparams ? 3 + random_bits() % 3 : 0);
	im->nlimits = (u32)(random_bits() % 3);
	for (u32 i = 0; i < im->nlimits; i++)
		limits[i] = (struct size_limit){
			.most = random_number(4),
			.a = (i16)(random_bits() % 8 ? 3 + (int)(random_bits() % 3) : SIZE_PROGRAMS),
			.b = (i16)(random_bits() % 8 ? SIZE_NONE : 3)};
	im->narrow_offsets = random_bits() & 1;
	im->napart = (u32)(random_bits() % 3);
	for (u32 i = 0; i < im->napart; i++)
		pairs[i] = (struct param_pair){i, i + 1, random_bits() & 1};
}

/* True if each condition has a test of the arguments alone. */
static bool all_have_tests(const struct loaded *k)
{
	for (u32 i = 0; i < k->nconditions; i++)
		if (k->conditions[i].kind <= CONDITION_SIZE && !k->conditions[i].limit)
			return false;
	return true;
}

/* A launch whose arguments show that all conditions hold breaks no condition, and most launches that break none show
 * it. */
static void as_conditions_say(void **state)
{
	(void)state;
	static struct slot all[ALL];
	static struct tensor_map_param maps[2];
	static struct size_limit limits[2];
	static struct param_pair pairs[2];
	static const struct device_ops ops;
	struct device dev = {.ops = &ops};
	const u32 grid[3] = {40000, 1, 1};
	const struct options o = {.codegen.num_warps = 4};
	struct unit u;
	u32 shown = 0, fine = 0, held = 0;
	assert_true(unit_open(&u, "t.tl", conditions_text, sizeof conditions_text - 1));
	struct params ps = {.len = 0};
	params_of_func(&u.arena, u.module->funcs.at[0], &ps);
	for (u32 i = 0; i < ALL; i++)
		all[i] = (struct slot){.name = ps.at[i].name,
				       .leaf = i,
				       .pointers = i < POINTERS,
				       .dtype = i < POINTERS ? DT_F32
						: i == 3     ? DT_I32
						: i == 4     ? DT_I64
							     : DT_U32};
	for (int n = 0; n < 5000; n++) {
		struct variant v = {
			.params = &ps,
			.image = {.slots = all, .nslots = ALL, .maps = maps, .limits = limits, .apart = pairs}};
		tl_arg args[ALL];
		u64 bits[BOUND_BITS];
		random_conditions(&v.image, maps, limits, pairs);
		random_launch(args);
		args[3] = tl_int(7);
		struct arg_guard *b = arg_guard_new(&v, &o, args, ALL, false);
		assert_false(b->by_key);
		v.loaded.image = &v.image;
		v.loaded.conditions = conditions_make(&v.image, &v.loaded.nconditions);
		bool can = all_have_tests(&v.loaded);
		shown += can;
		for (int m = 0; m < 20; m++) {
			random_launch(args);
			if (!arg_guard_takes(b, args, ALL, bits))
				continue;
			const struct arguments a = {args, bits, grid};
			struct broken broken = conditions_broken(&dev, &v.loaded, &a);
			bool none = !is_broken(&broken), holds = conditions_shown(&v.loaded, args, bits);
			assert_true(none || !holds);
			fine += can && none;
			held += can && holds;
		}
		free(v.loaded.conditions);
		arg_guard_free(b);
	}
	print_message("%u of 5000 have tests; of %u launches that break nothing %u are found\n", shown, fine, held);
	assert_true(shown > 1000 && fine > 5000 && held > fine * 8 / 10);
	unit_free(&u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(as_the_key_says), cmocka_unit_test(as_conditions_say)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
