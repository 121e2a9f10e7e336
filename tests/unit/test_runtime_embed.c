/* What programs that embed the library use: queued copies, events, wrapped memory, hooks, enumeration, metadata, errors
 * as data, objects that outlive their context's handle. On the devices of the host; the GPU's part is in
 * test_runtime_cuda.c. */
#include <pthread.h>

#include "test_runtime.h"

static const char *const both[] = {"interp", "sim"};

static tl_context *open_context(const char *device)
{
	tl_context *ctx;
	if (tl_context_create(device, &ctx))
		fail_msg("%s", tl_error(NULL));
	return ctx;
}

static tl_kernel *kernel_of(tl_context *ctx, const char *text, const char *name)
{
	tl_module *m;
	tl_kernel *k;
	if (tl_module_load_source(ctx, "t.tl", text, strlen(text), &m) || tl_module_kernel(m, name, &k))
		fail_msg("%s", tl_error(NULL));
	return k;
}

#define HEAD "import triton\nimport triton.language as tl\n\n@triton.jit\n"
static const char twice[] =
	HEAD "def twice(x, y):\n    i = tl.arange(0, 16)\n    tl.store(y + i, 2 * tl.load(x + i))\n";

static void versions(void **state)
{
	(void)state;
	int major, minor;
	assert_int_equal(tl_version(), TL_VERSION_NUMBER);
	assert_string_equal(tl_version_text(), TL_VERSION);
	assert_int_equal(sscanf(TL_VERSION, "%d.%d", &major, &minor), 2);
	assert_int_equal(TL_VERSION_NUMBER, major * 10000 + minor * 100);
}

static void copies(void **state)
{
	(void)state;
	for (u32 d = 0; d < ARRAY_LEN(both); d++) {
		tl_context *ctx = open_context(both[d]), *other = open_context("interp");
		tl_buffer *x, *y, *host, *far;
		float in[16], out[16] = {0};
		assert_null(tl_context_stream(ctx));
		assert_int_equal(tl_buffer_create(ctx, sizeof in, &x), TL_OK);
		assert_int_equal(tl_buffer_create(ctx, sizeof in, &y), TL_OK);
		assert_int_equal(tl_buffer_create_host(ctx, sizeof in, &host), TL_OK);
		assert_int_equal(tl_buffer_create(other, sizeof in, &far), TL_OK);
		for (int i = 0; i < 16; i++)
			((float *)tl_buffer_ptr(host))[i] = in[i] = (float)i;
		assert_int_equal(tl_buffer_write_async(x, 0, tl_buffer_ptr(host), sizeof in, NULL), TL_OK);
		tl_kernel *k = kernel_of(ctx, twice, "twice");
		tl_arg args[] = {tl_buf(TL_F32, x), tl_buf(TL_F32, y)};
		assert_int_equal(tl_launch(k, &(tl_config){.grid = {1}}, args, 2), TL_OK);
		assert_int_equal(tl_buffer_copy_async(x, 0, y, 32, 32, NULL), TL_OK);
		assert_int_equal(tl_buffer_copy_async(far, 0, x, 0, sizeof in, NULL), TL_OK);
		assert_int_equal(tl_buffer_read_async(far, 0, out, sizeof out, NULL), TL_OK);
		for (int i = 0; i < 16; i++)
			assert_true(out[i] == (i < 8 ? 2 * in[i + 8] : in[i]));
		assert_error(tl_buffer_copy_async(x, 40, y, 0, 32, NULL), TL_ERR_ARGUMENT, "outside");
		assert_error(tl_buffer_copy_async(x, 0, y, 40, 32, NULL), TL_ERR_ARGUMENT, "outside");
		assert_error(tl_buffer_copy_async(x, 0, x, 16, 32, NULL), TL_ERR_ARGUMENT, "overlap");
		assert_error(tl_buffer_copy_async(NULL, 0, x, 16, 32, NULL), TL_ERR_ARGUMENT, "the buffer is NULL");
		assert_error(tl_buffer_write_async(x, 0, in, 4, in), TL_ERR_ARGUMENT, "has no streams");
		assert_error(tl_buffer_read_async(x, 0, NULL, 4, NULL), TL_ERR_ARGUMENT, "NULL");
		tl_context_destroy(ctx);
		tl_context_destroy(other);
	}
}

static void fills(void **state)
{
	(void)state;
	static const u64 element = 0x8877665544332211;
	for (u32 d = 0; d < ARRAY_LEN(both); d++) {
		tl_context *ctx = open_context(both[d]);
		tl_buffer *x, *y;
		u8 out[64];
		assert_int_equal(tl_buffer_create(ctx, 64, &x), TL_OK);
		assert_int_equal(tl_buffer_create(ctx, 64, &y), TL_OK);
		for (size_t size = 1; size <= 8; size *= 2) {
			assert_int_equal(tl_buffer_fill(x, 0), TL_OK);
			assert_int_equal(tl_buffer_fill_async(x, size, &element, size, 56 / size, NULL), TL_OK);
			assert_int_equal(tl_buffer_read(x, 0, out, 64), TL_OK);
			for (size_t i = 0; i < 64; i++)
				assert_int_equal(out[i], i < size || i >= size + 56 / size * size
								 ? 0
								 : ((const u8 *)&element)[i % size]);
		}
		/* it has been written, as the simulator sees */
		float one = 1;
		assert_int_equal(tl_buffer_fill_async(y, 0, &one, 4, 16, NULL), TL_OK);
		tl_kernel *k = kernel_of(ctx, twice, "twice");
		tl_arg args[] = {tl_buf(TL_F32, y), tl_buf(TL_F32, x)};
		assert_int_equal(tl_launch(k, &(tl_config){.grid = {1}}, args, 2), TL_OK);
		assert_error(tl_buffer_fill_async(x, 0, &one, 3, 1, NULL), TL_ERR_ARGUMENT, "1, 2, 4 and 8");
		assert_error(tl_buffer_fill_async(x, 2, &one, 4, 1, NULL), TL_ERR_ARGUMENT, "aligned to their size");
		assert_error(tl_buffer_fill_async(x, 0, &one, 4, 17, NULL), TL_ERR_ARGUMENT, "outside");
		assert_error(tl_buffer_fill_async(x, 0, &one, 4, SIZE_MAX / 2, NULL), TL_ERR_ARGUMENT, "too many");
		assert_error(tl_buffer_fill_async(x, 0, NULL, 4, 1, NULL), TL_ERR_ARGUMENT, "the element is NULL");
		tl_context_destroy(ctx);
	}
}

static void wrapping(void **state)
{
	(void)state;
	for (u32 d = 0; d < ARRAY_LEN(both); d++) {
		tl_context *ctx = open_context(both[d]);
		tl_buffer *x, *y, *z;
		static _Alignas(16) float memory[20], out[17];
		float *in = memory + 4;
		for (int i = 0; i < 16; i++)
			in[i] = (float)i;
		out[16] = -1;
		assert_int_equal(tl_buffer_wrap(ctx, in, 64, &x), TL_OK);
		assert_int_equal(tl_buffer_wrap(ctx, out, 64, &y), TL_OK);
		assert_ptr_equal(tl_buffer_ptr(x), in);
		tl_kernel *k = kernel_of(ctx, twice, "twice");
		tl_arg args[] = {tl_buf(TL_F32, x), tl_buf(TL_F32, y)};
		assert_int_equal(tl_launch(k, &(tl_config){.grid = {1}}, args, 2), TL_OK);
		assert_true(out[15] == 30 && out[16] == -1);
		assert_error(tl_buffer_wrap(ctx, in + 2, 8, &z), TL_ERR_ARGUMENT, "overlaps a buffer");
		assert_null(z);
		assert_error(tl_buffer_wrap(ctx, in - 1, 8, &z), TL_ERR_ARGUMENT, "overlaps a buffer");
		assert_error(tl_buffer_wrap(ctx, in, 0, &z), TL_ERR_ARGUMENT, "overlaps a buffer");
		assert_error(tl_buffer_wrap(ctx, NULL, 8, &z), TL_ERR_ARGUMENT, "the address is NULL");
		assert_error(tl_buffer_wrap(ctx, in, SIZE_MAX, &z), TL_ERR_ARGUMENT, "exceed the address space");
		tl_buffer_destroy(x); /* the memory stays */
		assert_true(in[3] == 3);
		assert_int_equal(tl_buffer_wrap(ctx, in + 2, 8, &z), TL_OK);
		tl_context_destroy(ctx);
	}
}

static void events(void **state)
{
	(void)state;
	for (u32 d = 0; d < ARRAY_LEN(both); d++) {
		tl_context *ctx = open_context(both[d]), *other = open_context(both[d]);
		tl_event *from, *to, *far;
		double ms = -1;
		assert_int_equal(tl_event_create(ctx, &from), TL_OK);
		assert_int_equal(tl_event_create(ctx, &to), TL_OK);
		assert_int_equal(tl_event_create(other, &far), TL_OK);
		assert_error(tl_event_elapsed(from, to, &ms), TL_ERR_ARGUMENT, "has not been recorded");
		assert_int_equal(tl_event_record(from, NULL), TL_OK);
		assert_int_equal(tl_event_record(to, NULL), TL_OK);
		assert_int_equal(tl_event_wait(to, NULL), TL_OK);
		assert_int_equal(tl_event_synchronize(to), TL_OK);
		assert_int_equal(tl_event_elapsed(from, to, &ms), TL_OK);
		assert_true(ms >= 0 && ms < 60e3);
		assert_error(tl_event_elapsed(from, far, &ms), TL_ERR_ARGUMENT, "different contexts");
		assert_error(tl_event_record(from, &ms), TL_ERR_ARGUMENT, "has no streams");
		assert_error(tl_event_record(NULL, NULL), TL_ERR_ARGUMENT, "the event is NULL");
		tl_event_destroy(from);
		tl_event_destroy(NULL);
		tl_context_destroy(ctx);
		tl_context_destroy(other);
	}
}

static void enumeration(void **state)
{
	(void)state;
	int n = 0, found = 0;
	tl_device_info info, opened;
	tl_synchronize(NULL); /* its error is not the next call's, nor is one that a call gets over: no driver */
	assert_int_equal(tl_device_count(&n), TL_OK);
	assert_string_equal(tl_error(NULL), "");
	assert_int_equal(tl_error_details()->status, TL_OK);
	assert_true(n >= 7);
	for (int i = 0; i < n; i++) {
		tl_context *ctx;
		assert_int_equal(tl_device_at(i, &info), TL_OK);
		if (tl_context_create(info.spec, &ctx))
			fail_msg("%s: %s", info.spec, tl_error(NULL));
		assert_int_equal(tl_device(ctx, &opened), TL_OK);
		assert_memory_equal(&info, &opened, sizeof info);
		found += !strcmp(info.spec, "interp") && info.capability == 0;
		found += !strcmp(info.spec, "sim:80") && info.capability == 80 && !strcmp(info.target, "cuda:sm_80");
		tl_context_destroy(ctx);
	}
	assert_int_equal(found, 2);
	assert_error(tl_device_at(n, &info), TL_ERR_ARGUMENT, "there is no device");
	assert_error(tl_device_at(-1, &info), TL_ERR_ARGUMENT, "there is no device -1");
	assert_error(tl_device_at(0, NULL), TL_ERR_ARGUMENT, "NULL");
	assert_error(tl_device_count(NULL), TL_ERR_ARGUMENT, "NULL");
}

static void parameters(void **state)
{
	(void)state;
	static const char text[] =
		HEAD "def k(x, n: tl.int64, s=-0.5, BLOCK: tl.constexpr = 64, ACT: tl.constexpr = None):\n"
		     "    pass\n";
	static const tl_parameter expected[] = {{"x", false, NULL, NULL},
						{"n", false, "tl.int64", NULL},
						{"s", false, NULL, "(-0.5)"},
						{"BLOCK", true, "tl.constexpr", "64"},
						{"ACT", true, "tl.constexpr", "None"}};
	tl_context *ctx = open_context("interp");
	tl_kernel *k = kernel_of(ctx, text, "k");
	assert_string_equal(tl_kernel_name(k), "k");
	assert_int_equal(tl_kernel_parameters(k), ARRAY_LEN(expected));
	for (u32 i = 0; i < ARRAY_LEN(expected); i++) {
		const tl_parameter *p = tl_kernel_parameter(k, i), *e = &expected[i];
		assert_string_equal(p->name, e->name);
		assert_int_equal(p->is_constexpr, e->is_constexpr);
		assert_string_equal(p->annotation ? p->annotation : "", e->annotation ? e->annotation : "");
		assert_string_equal(p->default_value ? p->default_value : "", e->default_value ? e->default_value : "");
	}
	assert_null(tl_kernel_parameter(k, ARRAY_LEN(expected)));
	assert_int_equal(tl_kernel_parameters(NULL), 0);
	tl_context_destroy(ctx);
}

/* --- hooks --------------------------------------------------------------------------------------------------- */

struct pool {
	int taken, given;
	size_t bytes;
	bool empty, crooked;
};

static void *pool_alloc(void *user, size_t bytes, size_t alignment)
{
	struct pool *p = user;
	if (p->empty)
		return NULL;
	p->taken++;
	p->bytes += bytes;
	char *at = aligned_alloc(alignment, (bytes / alignment + 2) * alignment);
	return p->crooked ? at + 8 : at;
}

static void pool_free(void *user, void *at, size_t bytes)
{
	struct pool *p = user;
	p->given++;
	p->bytes -= bytes;
	free((char *)at - (p->crooked ? 8 : 0));
}

static void allocator(void **state)
{
	(void)state;
	for (u32 d = 0; d < ARRAY_LEN(both); d++) {
		tl_context *ctx = open_context(both[d]);
		struct pool pool = {0};
		tl_allocator a = {pool_alloc, pool_free, &pool};
		tl_buffer *x, *y, *z, *own;
		float one = 1, out[16];
		assert_int_equal(tl_context_allocator(ctx, &a), TL_OK);
		assert_int_equal(tl_buffer_create(ctx, 64, &x), TL_OK);
		assert_int_equal(tl_buffer_create(ctx, 64, &y), TL_OK);
		assert_int_equal(tl_buffer_create(ctx, 0, &z), TL_OK);
		assert_int_equal(pool.taken, 3);
		assert_int_equal(tl_buffer_fill_async(x, 0, &one, 4, 16, NULL), TL_OK);
		tl_kernel *k = kernel_of(ctx, twice, "twice");
		tl_arg args[] = {tl_buf(TL_F32, x), tl_buf(TL_F32, y)};
		assert_int_equal(tl_launch(k, &(tl_config){.grid = {1}}, args, 2), TL_OK);
		assert_int_equal(tl_buffer_read(y, 0, out, sizeof out), TL_OK);
		assert_true(out[7] == 2);
		pool.empty = true;
		assert_error(tl_buffer_create(ctx, 64, &z), TL_ERR_MEMORY, "the program's allocator has no");
		assert_null(z);
		assert_error(tl_buffer_create(ctx, SIZE_MAX - 10, &z), TL_ERR_MEMORY, "the program's allocator has no");
		pool.empty = false;
		tl_buffer_destroy(x);
		assert_int_equal(pool.given, 1);
		assert_int_equal(tl_context_allocator(ctx, NULL), TL_OK); /* the others still go back to the pool */
		assert_int_equal(tl_buffer_create(ctx, 64, &own), TL_OK);
		assert_int_equal(pool.taken, 3);
		tl_context_destroy(ctx);
		assert_int_equal(pool.given, 3);
		assert_int_equal(pool.bytes, 0);
		ctx = open_context(both[d]);
		pool.crooked = true;
		assert_int_equal(tl_context_allocator(ctx, &a), TL_OK);
		assert_error(tl_buffer_create(ctx, 64, &x), TL_ERR_ARGUMENT, "at a multiple of 256");
		assert_int_equal(pool.bytes, 0);
		assert_error(tl_context_allocator(ctx, &(tl_allocator){pool_alloc, NULL, NULL}), TL_ERR_ARGUMENT,
			     "a function of the allocator is NULL");
		tl_context_destroy(ctx);
	}
}

struct seen {
	pthread_mutex_t lock;
	pthread_t threads[64];
	int nthreads, texts;
	size_t bytes;
	char first[256];
	tl_log_kind kind;
};

static void log_it(void *user, tl_log_kind kind, const char *text, size_t len)
{
	struct seen *s = user;
	pthread_mutex_lock(&s->lock);
	int i = 0;
	while (i < s->nthreads && !pthread_equal(s->threads[i], pthread_self()))
		i++;
	if (i == s->nthreads)
		s->threads[s->nthreads++] = pthread_self();
	if (!s->texts++)
		snprintf(s->first, sizeof s->first, "%s", text);
	assert_int_equal(strlen(text), len);
	s->bytes += len;
	s->kind = kind;
	pthread_mutex_unlock(&s->lock);
}

static void logs(void **state)
{
	(void)state;
	static const char text[] = HEAD "def k(x):\n    tl.device_print(\"pid\", tl.program_id(0))\n";
	for (u32 d = 0; d < ARRAY_LEN(both); d++)
		for (int threads = 1; threads <= 2; threads++) {
			tl_context *ctx = open_context(both[d]);
			struct seen seen = {.lock = PTHREAD_MUTEX_INITIALIZER};
			tl_buffer *x;
			assert_int_equal(tl_context_log(ctx, log_it, &seen), TL_OK);
			assert_int_equal(tl_context_threads(ctx, threads), TL_OK);
			assert_int_equal(tl_buffer_create(ctx, 64, &x), TL_OK);
			tl_arg arg = tl_buf(TL_F32, x);
			tl_kernel *k = kernel_of(ctx, text, "k");
			assert_int_equal(tl_launch(k, &(tl_config){.grid = {64}, .num_warps = 1}, &arg, 1), TL_OK);
			assert_true(seen.texts >= 64);
			assert_non_null(strstr(seen.first, "pid"));
			assert_int_equal(seen.kind, TL_LOG_PRINT);
			assert_true(seen.nthreads <= threads);
			tl_context_destroy(ctx);
		}
	assert_error(tl_context_threads(NULL, 1), TL_ERR_ARGUMENT, "NULL");
	tl_context *ctx = open_context("sim");
	assert_error(tl_context_threads(ctx, -1), TL_ERR_ARGUMENT, "-1 threads");
	/* the simulator's report goes there too */
	struct seen seen = {.lock = PTHREAD_MUTEX_INITIALIZER};
	tl_buffer *x;
	float one[16] = {0};
	assert_int_equal(tl_context_log(ctx, log_it, &seen), TL_OK);
	assert_int_equal(tl_buffer_create(ctx, 64, &x), TL_OK);
	assert_int_equal(tl_buffer_write(x, 0, one, 64), TL_OK);
	tl_arg args[] = {tl_buf(TL_F32, x), tl_buf(TL_F32, x)};
	setenv("TL_SIM_REPORT", "1", 1);
	assert_int_equal(tl_launch(kernel_of(ctx, twice, "twice"), &(tl_config){.grid = {1}}, args, 2), TL_OK);
	unsetenv("TL_SIM_REPORT");
	assert_int_equal(seen.kind, TL_LOG_REPORT);
	assert_int_equal(seen.texts, 1);
	assert_non_null(strstr(seen.first, "transactions"));
	tl_context_destroy(ctx);
}

/* --- errors as data ------------------------------------------------------------------------------------------ */

static void details(void **state)
{
	(void)state;
	static const char bad[] = HEAD "def k(x):\n    y = 1\n    tl.store(x, undefined_name)\n";
	static const char fails[] = HEAD "def k(x):\n    i = tl.arange(0, 16)\n    tl.store(x + i * 100, 1.0)\n";
	for (u32 d = 0; d < ARRAY_LEN(both); d++) {
		tl_context *ctx = open_context(both[d]);
		tl_module *m;
		tl_buffer *x;
		assert_string_equal(tl_error_details()->text, "");
		assert_int_equal(tl_error_details()->status, TL_OK);
		assert_int_equal(tl_buffer_create(ctx, 64, &x), TL_OK);
		tl_arg arg = tl_buf(TL_F32, x);
		assert_error(tl_module_load_source(ctx, "bad.tl", "@triton.jit\ndef f(x:\n  pass\n", 28, &m),
			     TL_ERR_COMPILE, "bad.tl:3:");
		assert_string_equal(tl_error_details()->file, "bad.tl");
		assert_int_equal(tl_error_details()->line, 3);
		tl_kernel *k = kernel_of(ctx, bad, "k");
		for (int again = 0; again < 2; again++) { /* the second time it is remembered */
			assert_error(tl_launch(k, &(tl_config){.grid = {1}}, &arg, 1), TL_ERR_COMPILE,
				     "undefined_name");
			const tl_error_info *e = tl_error_details();
			assert_int_equal(e->status, TL_ERR_COMPILE);
			assert_string_equal(e->file, "t.tl");
			assert_string_equal(e->kernel, "k");
			assert_int_equal(e->line, 7);
			assert_int_equal(e->column, 17);
			assert_int_equal(e->driver_result, 0);
			assert_null(e->driver_call);
			assert_string_equal(e->text, tl_error(NULL));
		}
		k = kernel_of(ctx, fails, "k");
		assert_int_equal(tl_launch(k, &(tl_config){.grid = {1}}, &arg, 1), TL_ERR_KERNEL);
		assert_string_equal(tl_error_details()->kernel, "k");
		assert_string_equal(tl_error_details()->file, "t.tl");
		assert_int_equal(tl_error_details()->line, 7);
		assert_int_equal(tl_launch(k, &(tl_config){.grid = {1}}, &arg, 3), TL_ERR_ARGUMENT);
		assert_string_equal(tl_error_details()->kernel, "k");
		assert_null(tl_error_details()->file);
		assert_int_equal(tl_error_details()->line, 0);
		tl_config later = {.grid = {1}, .reserved = {1}};
		assert_error(tl_launch(k, &later, &arg, 1), TL_ERR_ARGUMENT, "a reserved field of tl_config is not 0");
		tl_context_destroy(ctx);
	}
}

/* --- objects that outlive the context's handle --------------------------------------------------------------- */

static void released(void **state)
{
	(void)state;
	for (u32 d = 0; d < ARRAY_LEN(both); d++)
		for (int order = 0; order < 6; order++) {
			static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
							{1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
			tl_context *ctx = open_context(both[d]);
			tl_buffer *x;
			tl_event *e;
			float one = 1, out[16];
			assert_int_equal(tl_buffer_create(ctx, 64, &x), TL_OK);
			assert_int_equal(tl_event_create(ctx, &e), TL_OK);
			assert_int_equal(tl_buffer_fill_async(x, 0, &one, 4, 16, NULL), TL_OK);
			tl_module *m;
			tl_kernel *k;
			assert_int_equal(tl_module_load_source(ctx, "t.tl", twice, sizeof twice - 1, &m), TL_OK);
			assert_int_equal(tl_module_kernel(m, "twice", &k), TL_OK);
			tl_context_release(ctx);
			tl_arg args[] = {tl_buf(TL_F32, x), tl_buf(TL_F32, x)};
			assert_int_equal(tl_launch(k, &(tl_config){.grid = {1}}, args, 2), TL_OK);
			assert_int_equal(tl_buffer_read(x, 0, out, sizeof out), TL_OK);
			assert_true(out[15] == 2);
			for (int i = 0; i < 3; i++)
				switch (orders[order][i]) {
				case 0: tl_buffer_destroy(x); break;
				case 1: tl_module_destroy(m); break;
				case 2: tl_event_destroy(e); break;
				}
		}
	tl_context_release(open_context("interp")); /* nothing is left */
	tl_context_release(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions),   cmocka_unit_test(copies),    cmocka_unit_test(fills),
		cmocka_unit_test(wrapping),   cmocka_unit_test(events),    cmocka_unit_test(enumeration),
		cmocka_unit_test(parameters), cmocka_unit_test(allocator), cmocka_unit_test(logs),
		cmocka_unit_test(details),    cmocka_unit_test(released),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
