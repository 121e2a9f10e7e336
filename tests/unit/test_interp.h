/* What the tests of the interpreter share: a kernel from TTIR text, its arguments, a run. */
#ifndef TEST_INTERP_H
#define TEST_INTERP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/map.h"
#include "interp/interp.h"
#include "tests/unit/random_bits.h"

struct test {
	struct arena arena, errors;
	struct interner names;
	struct diags diags;
	struct ir_context ir;
	struct kernel *kernel;
	struct interp_program *program;
	struct mem_range ranges[16];
	u32 nranges;
	u64 args[16];
	u32 nargs;
	bool open;
	int threads;
	struct strbuf error;
};

/* `body` is what stands between the braces; `params` the parameter list. */
static inline struct test *test_open(const char *params, const char *body)
{
	struct test *t = calloc(1, sizeof *t);
	t->names.arena = &t->arena;
	diags_init(&t->diags, &t->arena);
	ir_context_init(&t->ir, &t->arena, &t->names, &t->diags);
	const char *text = arena_printf(&t->arena, "tt.func public @k(%s) {\n%s\ntt.return\n}\n", params, body);
	t->kernel = kernel_parse(&t->ir, diags_add_source(&t->diags, "k.ttir", text, strlen(text)), NULL);
	if (!t->kernel)
		fail_msg("%s\n%s", t->diags.text.at, text);
	t->program = interp_prepare(&t->arena, t->kernel);
	return t;
}

/* In params and body, $0 to $9 stand for the further arguments. */
#define test_open_with(params, body, ...) test_substitute((params), (body), (const char *const[]){__VA_ARGS__})

static inline struct test *test_substitute(const char *params, const char *body, const char *const *with)
{
	char text[2][8192];
	const char *from[2] = {params, body};
	for (int k = 0; k < 2; k++) {
		char *to = text[k];
		for (const char *s = from[k]; *s; s++)
			if (*s == '$')
				to += sprintf(to, "%s", with[*++s - '0']);
			else
				*to++ = *s;
		*to = 0;
	}
	return test_open(text[0], text[1]);
}

static inline void test_close(struct test *t)
{
	arena_free(&t->errors);
	arena_free(&t->arena);
	free(t);
}

static inline void arg_bits(struct test *t, u64 bits)
{
	t->args[t->nargs++] = bits;
}

static inline void arg_buffer(struct test *t, const char *name, void *base, size_t size)
{
	u32 at = t->nranges++;
	for (; at && t->ranges[at - 1].base > (char *)base; at--)
		t->ranges[at] = t->ranges[at - 1];
	t->ranges[at] = (struct mem_range){name, base, size};
	arg_bits(t, (u64)(uintptr_t)base);
}

static inline bool test_run(struct test *t, u32 x, u32 y, u32 z)
{
	struct interp_launch l = {.args = t->args,
				  .grid = {x, y, z},
				  .ranges = t->ranges,
				  .nranges = t->nranges,
				  .open = t->open,
				  .threads = t->threads};
	t->error = (struct strbuf){.arena = &t->errors};
	return interp_run(t->program, &l, &t->error);
}

static inline void expect_ok(struct test *t, u32 x, u32 y, u32 z)
{
	if (!test_run(t, x, y, z))
		fail_msg("%s", t->error.at);
}

/* The run must fail with exactly this text, in which "@" stands for any hexadecimal number. */
static inline void expect_error(struct test *t, u32 x, u32 y, u32 z, const char *want)
{
	assert_false(test_run(t, x, y, z));
	const char *got = t->error.at;
	for (; *want; want++) {
		if (*want != '@') {
			if (*got++ != *want)
				fail_msg("%s\n"
					 "expected at the end of '%.*s': '%s'",
					 t->error.at, (int)(got - t->error.at), t->error.at, want);
			continue;
		}
		got += strspn(got, "0123456789abcdefx");
	}
	if (*got)
		fail_msg("%s\nmore than expected: '%s'", t->error.at, got);
}

static inline u32 test_random(void)
{
	return (u32)(random_bits() >> 32);
}

static inline float random_float(void)
{
	return ((float)test_random() - 0x1p31f) * 0x1p-31f;
}

#endif
