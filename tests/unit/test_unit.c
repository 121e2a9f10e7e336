/* Units: names and sources that a compilation shares with what was parsed before it, and what it keeps to itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "driver/compile.h"

static const char text[] = "import triton\n\n\n@triton.jit\ndef first(p, n):\n    pass\n\n\n"
	"@triton.jit\ndef second(p):\n    pass\n";

/* Random names, each told to one of three interners in a chain: found by those behind it, and never twice. */
static void names_in_a_chain(void **state)
{
	(void)state;
	enum { N = 2000 };
	struct arena arena = {0};
	struct interner chain[3] = {
		{&arena, NULL, NULL, 0, 0}, {&arena, &chain[0], NULL, 0, 0}, {&arena, &chain[1], NULL, 0, 0}};
	const char *at[N];
	u32 of[N];
	srand(7);
	for (u32 c = 0; c < 3; c++) /* one that is a parent no longer grows */
		for (u32 i = c; i < N; i += 3) {
			char name[32];
			snprintf(name, sizeof name, "n%u_%d", i, rand() % 10);
			at[i] = intern_str(&chain[c], name);
			of[i] = c;
			assert_string_equal(at[i], name);
		}
	u32 len = chain[2].len;
	for (u32 i = 0; i < N; i++) {
		char name[32];
		snprintf(name, sizeof name, "%s", at[i]);
		assert_ptr_equal(intern_str(&chain[2], name), at[i]);
		for (u32 c = 0; c < 3; c++)
			assert_ptr_equal(intern_find(&chain[c], name), c >= of[i] ? at[i] : NULL);
		name[0] = 'm';
		assert_null(intern_find(&chain[2], name));
	}
	assert_int_equal(chain[2].len, len);
	arena_free(&arena);
}

static void same_source_again(void **state)
{
	(void)state;
	struct unit *u = calloc(3, sizeof *u);
	assert_true(unit_open(&u[0], "two.tl", text, strlen(text)));
	u32 known = u[0].names.len;
	for (u32 i = 1; i < 3; i++) {
		assert_true(unit_again(&u[i], &u[0]));
		const struct func *f = map_get(&u[i].module->by_name, intern_str(&u[i].names, "second"));
		assert_non_null(f);
		assert_ptr_equal(f, map_get(&u[0].module->by_name, intern_find(&u[0].names, "second")));
		assert_non_null(intern_str(&u[i].names, "of this unit only"));
		diag(&u[i].diags, E_UNKNOWN_NAME, f->loc, "second");
		assert_non_null(strstr(u[i].diags.text.at, "two.tl:10:5"));
		assert_non_null(strstr(u[i].diags.text.at, "def second(p):"));
	}
	assert_int_equal(u[0].names.len, known);
	assert_null(intern_find(&u[0].names, "of this unit only"));
	assert_int_equal(u[0].diags.nerrors, 0);
	assert_ptr_not_equal(intern_find(&u[1].names, "of this unit only"),
			     intern_find(&u[2].names, "of this unit only"));
	unit_free(&u[1]);
	assert_non_null(intern_find(&u[2].names, "second"));
	unit_free(&u[2]);
	unit_free(&u[0]);
	free(u);
}

/* Passes change parsed IR: each compilation has its own. */
static void ir_again(void **state)
{
	(void)state;
	static const char ir[] = "module {\n  tt.func public @k(%p: !tt.ptr<f32>) {\n    tt.return\n  }\n}\n";
	struct unit *u = calloc(2, sizeof *u);
	assert_true(unit_open(&u[0], "k.ttir", ir, strlen(ir)));
	assert_true(unit_again(&u[1], &u[0]));
	assert_non_null(u[1].parsed);
	assert_ptr_not_equal(u[0].parsed, u[1].parsed);
	assert_string_equal(u[1].parsed->name, "k");
	unit_free(&u[0]);
	assert_string_equal(u[1].parsed->name, "k");
	unit_free(&u[1]);
	free(u);
}

/* Each kernel parses the parts of the standard library that it uses, once, and no other. */
static void parts_of_the_library(void **state)
{
	(void)state;
	static const char kernels[] =
		"@triton.jit\ndef none(p: '*fp32'):\n    tl.store(p, tl.max(tl.load(p + tl.arange(0, 16)), 0))\n\n\n"
		"@triton.jit\ndef order(p: '*fp32'):\n    i = tl.arange(0, 16)\n"
		"    tl.store(p + i, tl.flip(tl.sort(tl.load(p + i))))\n";
	enum { OPENED = 3 }; /* unused, core.tl, the kernels */
	struct unit u[3];
	assert_true(unit_open(&u[0], "parts.tl", kernels, strlen(kernels)));
	assert_int_equal(u[0].diags.sources.len, OPENED);
	for (u32 i = 0; i < 2; i++) {
		struct unit *again = &u[1 + i];
		assert_true(unit_again(again, &u[0]));
		const char *name = intern_str(&again->names, i ? "order" : "none");
		const struct func *f = map_get(&again->module->by_name, name);
		assert_non_null(compile_ir(again, f, (struct arg_spec[]){{0}}, &(struct compile_options){0}));
		assert_int_equal(again->diags.sources.len, OPENED + i);
	}
	for (u32 i = 3; i-- > 0;)
		unit_free(&u[i]);
}

/* A kernel with an error fails each time it is compiled in a unit, and its message is shown once. */
static void an_error_again(void **state)
{
	(void)state;
	static const char kernel[] = "@triton.jit\ndef k(p: '*fp32'):\n    tl.store(p, nothing)\n";
	struct unit u;
	assert_true(unit_open(&u, "again.tl", kernel, strlen(kernel)));
	const struct func *f = u.module->funcs.at[0];
	for (u32 i = 1; i <= 3; i++) {
		assert_null(compile_ir(&u, f, (struct arg_spec[]){{0}}, &(struct compile_options){0}));
		assert_int_equal(u.diags.nerrors, i);
		assert_int_equal(u.diags.messages.len, 1);
	}
	unit_free(&u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_in_a_chain),
		cmocka_unit_test(same_source_again),
		cmocka_unit_test(ir_again),
		cmocka_unit_test(parts_of_the_library),
		cmocka_unit_test(an_error_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
