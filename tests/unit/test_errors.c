/* Errors as structures: the diagnostics of tl_error_details against what the callback receives and against the text. */
#include <pthread.h>
#include <stdio.h>

#include "fixture.h"
#include "support/base.h"

static const char source[] = "import triton\nimport triton.language as tl\n\n\n"
			     "@triton.jit\ndef inner(v):\n    return v + missing\n\n\n"
			     "@triton.jit\ndef outer(v):\n    return inner(v) * 2\n\n\n"
			     "@triton.jit\ndef bad(x, n):\n"
			     "    tl.store(x, nothing)\n"
			     "    tl.stroe(x, 1)\n"
			     "    v = tl.load(x)\n"
			     "    tl.store(x, outer(v))\n\n\n"
			     "@triton.jit\ndef outside(x, n):\n    tl.store(x + n, 1.0)\n\n\n"
			     "@triton.jit\ndef fails(x, n):\n    tl.device_assert(n < 3, \"n is large\")\n";

struct copied {
	tl_severity severity;
	u32 line, column, length;
	char file[40], text[300], hint[300], shown[600];
};
struct list {
	struct copied at[32];
	u32 n;
};

static void copy(void *list, const tl_diagnostic *d)
{
	struct list *l = list;
	assert_true(l->n < ARRAY_LEN(l->at));
	struct copied *c = &l->at[l->n++];
	*c = (struct copied){d->severity, d->line, d->column, d->length, "", "", "", ""};
	snprintf(c->file, sizeof c->file, "%s", d->file ? d->file : "NULL");
	snprintf(c->text, sizeof c->text, "%s", d->text);
	snprintf(c->hint, sizeof c->hint, "%s", d->hint ? d->hint : "NULL");
	snprintf(c->shown, sizeof c->shown, "%s", d->shown);
}

static void copy_details(struct list *l)
{
	const tl_error_info *e = tl_error_details();
	memset(l, 0, sizeof *l);
	for (size_t i = 0; i < e->ndiagnostics; i++)
		copy(l, e->diagnostics[i]);
}

static int open_interp(void **state)
{
	struct fixture *f = *state = calloc(1, sizeof *f);
	return tl_context_create("interp", &f->ctx) || tl_module_load_source(f->ctx, "e.py", source, sizeof source - 1,
									     &f->module);
}

static tl_status launch(const struct fixture *f, const char *name, int n)
{
	tl_buffer *x;
	ok(tl_buffer_create(f->ctx, 64, &x));
	const tl_arg args[] = {tl_buf(TL_F32, x), tl_int(n)};
	return tl_launch(get(f, name), &(tl_config){.grid = {1, 1, 1}}, args, ARRAY_LEN(args));
}

static void expect(const struct copied *c, tl_severity s, u32 line, u32 column, u32 length, const char *text,
		   const char *hint)
{
	if (c->severity != s || c->line != line || c->column != column || c->length != length ||
	    !strstr(c->text, text) || !strstr(c->hint, hint) || strcmp(c->file, "e.py") != 0 || strchr(c->text, '\n'))
		fail_msg("%d %s:%u:%u+%u '%s' '%s'; expected %d %u:%u+%u '%s' '%s'", c->severity, c->file, c->line,
			 c->column, c->length, c->text, c->hint, s, line, column, length, text, hint);
}

static void compilation(void **state)
{
	const struct fixture *f = *state;
	struct list told = {.n = 0}, got;
	ok(tl_context_diagnostics(f->ctx, copy, &told, true));
	assert_error(launch(f, "bad", 1), TL_ERR_COMPILE, "nothing");
	copy_details(&got);
	assert_int_equal(got.n, 5);
	expect(&got.at[0], TL_SEVERITY_ERROR, 17, 17, 7, "'nothing' is not defined", "kernels see their parameters");
	expect(&got.at[1], TL_SEVERITY_ERROR, 18, 5, 8, "stroe", "did you mean");
	expect(&got.at[2], TL_SEVERITY_ERROR, 7, 16, 7, "'missing' is not defined", "kernels see their parameters");
	expect(&got.at[3], TL_SEVERITY_NOTE, 12, 12, 8, "in 'inner', called from here", "NULL");
	expect(&got.at[4], TL_SEVERITY_NOTE, 20, 17, 8, "in 'outer', called from here", "NULL");
	assert_memory_equal(&got, &told, sizeof got);
	/* the text of the error is that of its parts */
	char all[4000] = "";
	for (u32 i = 0; i < got.n; i++)
		strcat(all, got.at[i].shown);
	assert_int_equal(all[strlen(all) - 1], '\n');
	all[strlen(all) - 1] = 0;
	assert_string_equal(all, tl_error(NULL));
	const tl_error_info *e = tl_error_details();
	assert_true(e->line == 17 && e->column == 17 && !strcmp(e->file, "e.py") && !strcmp(e->kernel, "bad"));
	ok(tl_synchronize(f->ctx)); /* a call that succeeds leaves none */
	assert_int_equal(tl_error_details()->ndiagnostics, 0);
	assert_null(tl_error_details()->diagnostics);
}

static void *launch_again(void *fixture)
{
	static struct list got;
	if (launch(fixture, "bad", 1) == TL_ERR_COMPILE)
		copy_details(&got);
	return &got;
}

/* The error of a kernel that is known not to compile, in other threads. */
static void threads(void **state)
{
	const struct fixture *f = *state;
	static struct list first, again;
	assert_error(launch(f, "bad", 1), TL_ERR_COMPILE, "nothing");
	copy_details(&first);
	const tl_diagnostic *const *mine = tl_error_details()->diagnostics;
	for (int i = 0; i < 3; i++) {
		pthread_t t;
		void *got;
		pthread_create(&t, NULL, launch_again, *state);
		pthread_join(t, &got);
		assert_memory_equal(&first, got, sizeof first);
	}
	assert_true(mine == tl_error_details()->diagnostics); /* other threads do not change it */
	copy_details(&again);
	assert_memory_equal(&first, &again, sizeof first);
	tl_module_destroy(f->module); /* nor does the end of the kernel */
	copy_details(&again);
	assert_memory_equal(&first, &again, sizeof first);
}

static void kernels(void **state)
{
	const struct fixture *f = *state;
	struct list got;
	assert_error(launch(f, "outside", 1000), TL_ERR_KERNEL, "e.py:25:5: error: ");
	copy_details(&got);
	assert_int_equal(got.n, 1);
	expect(&got.at[0], TL_SEVERITY_ERROR, 25, 5, 0, "program (0, 0, 0)", "NULL");
	assert_true(strncmp(got.at[0].text, "e.py", 4) && strncmp(got.at[0].text, "error", 5));
	assert_string_equal(got.at[0].shown, tl_error(NULL));
	assert_error(launch(f, "fails", 3), TL_ERR_KERNEL, "n is large");
	copy_details(&got);
	assert_int_equal(got.n, 1);
	expect(&got.at[0], TL_SEVERITY_ERROR, 30, 5, 0, "n is large", "NULL");
	ok(launch(f, "fails", 2));
	assert_int_equal(tl_error_details()->ndiagnostics, 0);
}

static void calls(void **state)
{
	const struct fixture *f = *state;
	struct list got;
	tl_kernel *k;
	tl_buffer *b;
	assert_error(tl_module_kernel(f->module, "ba", &k), TL_ERR_ARGUMENT, "has no kernel");
	copy_details(&got);
	assert_int_equal(got.n, 1);
	assert_string_equal(got.at[0].text, "e.py has no kernel 'ba'; it has inner, outer, bad, outside, fails");
	assert_string_equal(got.at[0].hint, "did you mean 'bad'?");
	assert_string_equal(got.at[0].file, "NULL");
	assert_string_equal(got.at[0].shown, tl_error(NULL));
	assert_int_equal(got.at[0].severity, TL_SEVERITY_ERROR);
	assert_int_equal(got.at[0].line, 0);
	assert_int_equal(tl_buffer_create(f->ctx, SIZE_MAX / 4, &b), TL_ERR_MEMORY);
	copy_details(&got);
	assert_int_equal(got.n, 1);
	assert_string_equal(got.at[0].hint, "NULL");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(compilation, open_interp, shut),
		cmocka_unit_test_setup_teardown(threads, open_interp, shut),
		cmocka_unit_test_setup_teardown(kernels, open_interp, shut),
		cmocka_unit_test_setup_teardown(calls, open_interp, shut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
