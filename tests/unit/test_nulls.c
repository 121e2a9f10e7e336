/* Each call of tl.h that can fail, with NULL for each of its objects and results: an error that names the call, no
 * crash; those that cannot fail do nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/tl.h"

#define REFUSED(call)                                                                                                  \
	do {                                                                                                           \
		tl_status s_ = (call);                                                                                 \
		size_t len_ = strcspn(#call, "(");                                                                     \
		if (s_ != TL_ERR_ARGUMENT || strncmp(tl_error(NULL), #call, len_) || !strstr(tl_error(NULL), "NULL"))  \
			fail_msg("%s: %s, '%s'", #call, tl_status_name(s_), tl_error(NULL));                           \
		assert_int_equal(tl_error_details()->status, TL_ERR_ARGUMENT);                                         \
	} while (0)

static const char store[] = "@triton.jit\ndef k(x):\n    tl.store(x, 1)\n";

static void objects(void **state)
{
	(void)state;
	char byte = 0;
	tl_module *m;
	tl_kernel *k;
	tl_buffer *b;
	tl_event *e;
	tl_prepared *p;
	tl_tuner *t;
	tl_choice choice;
	tl_compiled *compiled;
	tl_library *library;
	tl_device_info info;
	tl_resources resources;
	tl_estimate estimate;
	double ms;
	char *text;
	REFUSED(tl_context_share(NULL, NULL));
	REFUSED(tl_synchronize(NULL));
	REFUSED(tl_device(NULL, &info));
	REFUSED(tl_context_allocator(NULL, NULL));
	REFUSED(tl_context_threads(NULL, 1));
	REFUSED(tl_context_log(NULL, NULL, NULL));
	REFUSED(tl_context_diagnostics(NULL, NULL, NULL, false));
	REFUSED(tl_module_diagnostics(NULL, &text));
	REFUSED(tl_buffer_create(NULL, 1, &b));
	REFUSED(tl_buffer_create_host(NULL, 1, &b));
	REFUSED(tl_buffer_wrap(NULL, &byte, 1, &b));
	REFUSED(tl_buffer_write(NULL, 0, &byte, 1));
	REFUSED(tl_buffer_read(NULL, 0, &byte, 1));
	REFUSED(tl_buffer_fill(NULL, 1));
	REFUSED(tl_buffer_write_async(NULL, 0, &byte, 1, NULL));
	REFUSED(tl_buffer_read_async(NULL, 0, &byte, 1, NULL));
	REFUSED(tl_buffer_copy_async(NULL, 0, NULL, 0, 1, NULL));
	REFUSED(tl_buffer_fill_async(NULL, 0, &byte, 1, 1, NULL));
	REFUSED(tl_event_create(NULL, &e));
	REFUSED(tl_event_record(NULL, NULL));
	REFUSED(tl_event_wait(NULL, NULL));
	REFUSED(tl_event_synchronize(NULL));
	REFUSED(tl_event_elapsed(NULL, NULL, &ms));
	REFUSED(tl_module_load(NULL, "k.tl", &m));
	REFUSED(tl_module_load_source(NULL, "k.tl", store, sizeof store - 1, &m));
	REFUSED(tl_module_kernel(NULL, "k", &k));
	REFUSED(tl_launch(NULL, NULL, NULL, 0));
	REFUSED(tl_prepare(NULL, NULL, NULL, 0, &p));
	REFUSED(tl_prepared_add(NULL, NULL, NULL, 0));
	REFUSED(tl_prepared_launch(NULL, NULL, NULL, NULL, 0));
	REFUSED(tl_time(NULL, NULL, NULL, 0, 1, 1, &ms));
	REFUSED(tl_kernel_dump(NULL, NULL, NULL, 0, "ttir", &text));
	REFUSED(tl_kernel_resources(NULL, NULL, NULL, 0, &resources));
	REFUSED(tl_kernel_estimate(NULL, NULL, NULL, 0, &estimate));
	REFUSED(tl_tuner_create(NULL, NULL, &t));
	REFUSED(tl_tuner_add(NULL, NULL, NULL, 0));
	REFUSED(tl_tuner_launch(NULL, NULL, NULL, NULL, NULL, 0));
	REFUSED(tl_tuner_choose(NULL, NULL, NULL, NULL, NULL, 0, &choice));
	REFUSED(tl_tuner_report(NULL, &text));
	REFUSED(tl_compiled_load(NULL, NULL, 0, &compiled));
	REFUSED(tl_compiled_launch(NULL, NULL, NULL, 0));
	REFUSED(tl_library_create(NULL, NULL, 0, &library));
	REFUSED(tl_library_launch(NULL, NULL, NULL, NULL, 0));
	assert_int_equal(tl_time_each(NULL, NULL, NULL, 0, 1, 1, &ms), TL_ERR_ARGUMENT); /* as tl_time */
	tl_context_destroy(NULL);
	tl_context_release(NULL);
	tl_module_destroy(NULL);
	tl_buffer_destroy(NULL);
	tl_event_destroy(NULL);
	tl_prepared_destroy(NULL);
	tl_tuner_destroy(NULL);
	tl_compiled_destroy(NULL);
	tl_library_destroy(NULL);
	tl_free(NULL);
	assert_null(tl_buffer_ptr(NULL));
	assert_int_equal(tl_buffer_size(NULL), 0);
	assert_null(tl_context_stream(NULL));
	assert_int_equal(tl_kernel_parameters(NULL), 0);
	assert_null(tl_kernel_parameter(NULL, 0));
	assert_null(tl_kernel_name(NULL));
}

static void results(void **state)
{
	(void)state;
	tl_context *ctx;
	tl_module *m;
	tl_kernel *k;
	tl_buffer *b;
	tl_event *e;
	tl_tuner *t;
	char byte = 0;
	assert_int_equal(tl_context_create("interp", &ctx), TL_OK);
	assert_int_equal(tl_module_load_source(ctx, "k.tl", store, sizeof store - 1, &m), TL_OK);
	assert_int_equal(tl_module_kernel(m, "k", &k), TL_OK);
	assert_int_equal(tl_buffer_create(ctx, 4, &b), TL_OK);
	assert_int_equal(tl_event_create(ctx, &e), TL_OK);
	assert_int_equal(tl_tuner_create(k, NULL, &t), TL_OK);
	const tl_arg x = tl_buf(TL_I32, b);
	const tl_config one = {.grid = {1}};
	REFUSED(tl_context_create("interp", NULL));
	REFUSED(tl_context_from_cuda(NULL, NULL));
	REFUSED(tl_context_share(ctx, NULL));
	REFUSED(tl_device(ctx, NULL));
	REFUSED(tl_device_count(NULL));
	REFUSED(tl_device_at(0, NULL));
	REFUSED(tl_context_allocator(ctx, &(tl_allocator){0}));
	REFUSED(tl_module_diagnostics(m, NULL));
	REFUSED(tl_buffer_create(ctx, 1, NULL));
	REFUSED(tl_buffer_create_host(ctx, 1, NULL));
	REFUSED(tl_buffer_wrap(ctx, &byte, 1, NULL));
	REFUSED(tl_buffer_wrap(ctx, NULL, 1, &b));
	REFUSED(tl_buffer_write(b, 0, NULL, 1));
	REFUSED(tl_buffer_read(b, 0, NULL, 1));
	REFUSED(tl_buffer_write_async(b, 0, NULL, 1, NULL));
	REFUSED(tl_buffer_read_async(b, 0, NULL, 1, NULL));
	REFUSED(tl_buffer_copy_async(b, 0, NULL, 0, 1, NULL));
	REFUSED(tl_buffer_fill_async(b, 0, NULL, 1, 1, NULL));
	REFUSED(tl_event_create(ctx, NULL));
	REFUSED(tl_event_elapsed(e, e, NULL));
	REFUSED(tl_module_load(ctx, NULL, &m));
	REFUSED(tl_module_load(ctx, "k.tl", NULL));
	REFUSED(tl_module_load_source(ctx, "k.tl", NULL, 1, &m));
	REFUSED(tl_module_load_source(ctx, "k.tl", store, 1, NULL));
	REFUSED(tl_module_kernel(m, NULL, &k));
	REFUSED(tl_module_kernel(m, "k", NULL));
	REFUSED(tl_launch(k, NULL, &x, 1));
	REFUSED(tl_launch(k, &one, NULL, 1));
	REFUSED(tl_prepare(k, &one, NULL, 1, NULL));
	REFUSED(tl_time(k, &one, &x, 1, 1, 1, NULL));
	REFUSED(tl_kernel_dump(k, NULL, &x, 1, NULL, NULL));
	REFUSED(tl_kernel_dump(k, NULL, &x, 1, "ttir", NULL));
	REFUSED(tl_kernel_resources(k, NULL, &x, 1, NULL));
	REFUSED(tl_kernel_estimate(k, &one, &x, 1, NULL));
	REFUSED(tl_kernel_estimate(k, NULL, &x, 1, &(tl_estimate){.us = 0}));
	REFUSED(tl_tuner_create(k, NULL, NULL));
	REFUSED(tl_tuner_add(t, NULL, NULL, 1));
	REFUSED(tl_tuner_launch(t, NULL, NULL, NULL, &x, 1));
	REFUSED(tl_tuner_report(t, NULL));
	REFUSED(tl_compiled_load(ctx, NULL, 1, NULL));
	assert_int_equal(tl_error_details()->line, 0);
	assert_int_equal(tl_launch(k, &one, &x, 1), TL_OK); /* all of that has changed nothing */
	assert_string_equal(tl_error(ctx), "");
	tl_tuner_destroy(t);
	tl_context_destroy(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(objects), cmocka_unit_test(results)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
