/* test_two_gpus [DEVICE DEVICE]: copies between two devices, and kernels that share images, against the same on the
 * host. By default the first two GPUs. Ends in "N passed, N failed". */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tl.h"

enum { N = 1 << 20, ROUNDS = 60 };

static const char text[] = "import triton\nimport triton.language as tl\n"
			   "@triton.jit\ndef step(x, n, a, BLOCK: tl.constexpr):\n"
			   "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
			   "    tl.store(x + i, tl.load(x + i, mask=i < n) * a + i, mask=i < n)\n";

static int passed, failed;

static void check(bool good, const char *what)
{
	good ? passed++ : failed++;
	if (!good)
		printf("FAIL %s: %s\n", what, tl_error(NULL));
}

static void must(tl_status s, const char *what)
{
	if (!s)
		return;
	fprintf(stderr, "%s: %s\n", what, tl_error(NULL));
	exit(2);
}

static uint64_t state = 0x9E3779B97F4A7C15u;
static uint32_t random_bits(void)
{
	state ^= state << 13, state ^= state >> 7, state ^= state << 17;
	return (uint32_t)(state >> 20);
}

struct side {
	tl_context *ctx;
	tl_module *module;
	tl_kernel *step;
	tl_buffer *buffer;
	tl_event *ready;
	uint32_t *want; /* what the buffer holds */
};

static void open_side(struct side *s, const char *device, const struct side *share)
{
	must(tl_context_create(device, &s->ctx), device);
	if (share)
		must(tl_context_share(s->ctx, share->ctx), "sharing images");
	must(tl_module_load_source(s->ctx, "step.tl", text, sizeof text - 1, &s->module), "the module");
	must(tl_module_kernel(s->module, "step", &s->step), "the kernel");
	must(tl_buffer_create(s->ctx, N * sizeof(uint32_t), &s->buffer), "a buffer");
	must(tl_event_create(s->ctx, &s->ready), "an event");
	s->want = malloc(N * sizeof *s->want);
	for (size_t i = 0; i < N; i++)
		s->want[i] = random_bits();
	must(tl_buffer_write(s->buffer, 0, s->want, N * sizeof *s->want), "writing");
}

static void close_side(struct side *s)
{
	tl_event_destroy(s->ready);
	tl_buffer_destroy(s->buffer);
	tl_module_destroy(s->module);
	tl_context_destroy(s->ctx);
	free(s->want);
}

static tl_status launch_step(struct side *s, uint32_t n, uint32_t a)
{
	const tl_config cfg = {.grid = {(n + 1023) / 1024}};
	return tl_launch(s->step, &cfg,
			 (tl_arg[]){tl_buf(TL_U32, s->buffer), tl_int(n), tl_uint_typed(TL_U32, a), tl_int(1024)}, 4);
}

static void step_on_host(struct side *s, uint32_t n, uint32_t a)
{
	for (uint32_t i = 0; i < n; i++)
		s->want[i] = s->want[i] * a + i;
}

static bool holds(const struct side *s)
{
	uint32_t *have = malloc(N * sizeof *have);
	must(tl_buffer_read(s->buffer, 0, have, N * sizeof *have), "reading");
	bool same = !memcmp(have, s->want, N * sizeof *have);
	free(have);
	return same;
}

/* A kernel on one device, what it wrote to the other, a kernel there: nothing waits on the host. */
static void hand_over(struct side *from, struct side *to)
{
	uint32_t n = 1 + random_bits() % N, a = random_bits() | 1;
	size_t count = 1 + random_bits() % N, at = random_bits() % (N - count + 1),
	       target = random_bits() % (N - count + 1);
	bool good = !launch_step(from, n, a) && !tl_event_record(from->ready, NULL) &&
		    !tl_event_wait(from->ready, tl_context_stream(to->ctx)) &&
		    !tl_buffer_copy_async(to->buffer, target * 4, from->buffer, at * 4, count * 4, NULL) &&
		    !tl_event_record(to->ready, NULL) && !tl_event_wait(to->ready, tl_context_stream(from->ctx)) &&
		    !launch_step(to, n, a);
	step_on_host(from, n, a);
	memcpy(to->want + target, from->want + at, count * sizeof *to->want);
	step_on_host(to, n, a);
	check(good, "launches and a copy");
}

static void *many_steps(void *side)
{
	struct side *s = side;
	for (uint32_t i = 0; i < 200; i++)
		if (launch_step(s, N - i, 2 * i + 1))
			return NULL;
	return tl_synchronize(s->ctx) ? NULL : side;
}

int main(int argc, char **argv)
{
	struct side a, b;
	pthread_t threads[2];
	open_side(&a, argc > 2 ? argv[1] : "cuda:0", NULL);
	open_side(&b, argc > 2 ? argv[2] : "cuda:1", &a);
	for (int i = 0; i < ROUNDS; i++) {
		hand_over(i % 2 ? &a : &b, i % 2 ? &b : &a);
		if (random_bits() % 4 == 0)
			check(holds(&a) && holds(&b), "contents after a copy");
	}
	check(holds(&a), "the first device's memory");
	check(holds(&b), "the second one's");
	struct side *sides[] = {&a, &b};
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, many_steps, sides[i]);
	for (int i = 0; i < 2; i++) {
		void *good;
		pthread_join(threads[i], &good);
		check(good, "a thread for each device");
		for (uint32_t k = 0; k < 200; k++)
			step_on_host(sides[i], N - k, 2 * k + 1);
		check(holds(sides[i]), "what it left");
	}
	close_side(&a);
	must(tl_buffer_write(b.buffer, 0, b.want, 4), "writing when the first context has ended");
	check(holds(&b), "the second device when the first context has ended");
	close_side(&b);
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
