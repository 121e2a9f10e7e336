/* Kernels of a table, by name: examples/vector_add.tl as aot.sh's manifest has it, fp32 and, in blocks of 512, fp16. */
#include "vector_add.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 3001 };

static tl_context *ctx;
static tl_library *library;
static int wrong;

static void must(tl_status s)
{
	if (!s)
		return;
	fprintf(stderr, "%s: %s\n", tl_status_name(s), tl_error(ctx));
	exit(1);
}

static void says(tl_status s, const char *words)
{
	if (s && strstr(tl_error(ctx), words))
		return;
	printf("in place of '%s': %s\n", words, s ? tl_error(ctx) : "no error");
	wrong++;
}

/* x + x, for x in 0, 1, 2 … 7, 0 …: exact in every type. */
static void sum(tl_dtype t, uint32_t block, const tl_arg *rest, size_t nrest)
{
	uint16_t halves[] = {0, 0x3C00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700}, h[N], h2[N];
	float f[N], f2[N];
	size_t bytes = t == TL_F32 ? sizeof f : sizeof h;
	void *from = t == TL_F32 ? (void *)f : h, *to = t == TL_F32 ? (void *)f2 : h2;
	tl_buffer *x, *out;
	for (int i = 0; i < N; i++) {
		f[i] = (float)(i % 8);
		h[i] = halves[i % 8];
	}
	must(tl_buffer_create(ctx, bytes, &x));
	must(tl_buffer_create(ctx, bytes, &out));
	must(tl_buffer_write(x, 0, from, bytes));
	must(tl_buffer_fill(out, 0xFF));
	tl_arg args[5] = {tl_buf(t, x), tl_buf(t, x), tl_buf(t, out)};
	memcpy(args + 3, rest, nrest * sizeof *rest);
	must(tl_library_launch(library, "add_kernel", &(tl_config){.grid = {(N + block - 1) / block}}, args,
			       3 + nrest));
	must(tl_buffer_read(out, 0, to, bytes));
	for (int i = 0; i < N; i++) /* one more in the exponent */
		wrong += t == TL_F32 ? f2[i] != 2 * f[i] : h2[i] != (h[i] ? h[i] + 0x400 : 0);
	tl_buffer_destroy(x);
	tl_buffer_destroy(out);
}

static tl_status launch(const char *kernel, tl_dtype t, tl_arg n, tl_arg block)
{
	static _Alignas(16) char memory[16];
	tl_arg args[] = {tl_ptr(t, memory), tl_ptr(t, memory), tl_ptr(t, memory), n, block};
	return tl_library_launch(library, kernel, &(tl_config){.grid = {1}}, args, 5);
}

int main(int argc, char **argv)
{
	must(tl_context_create(argc > 1 ? argv[1] : "cuda", &ctx));
	must(tl_library_create(ctx, vector_add_table, vector_add_table_len, &library));
	for (int turn = 0; turn < 2; turn++) {
		sum(TL_F32, 1024, (tl_arg[]){tl_int(N), tl_int(1024)}, 2);
		sum(TL_F32, 1024, (tl_arg[]){tl_int_typed(TL_I32, N), tl_open()}, 2);
		sum(TL_F32, 1024, (tl_arg[]){tl_int(N)}, 1);
		sum(TL_F16, 512, (tl_arg[]){tl_int(N), tl_int(512)}, 2);
		sum(TL_F16, 512, (tl_arg[]){tl_uint(N)}, 1);
	}
	says(launch("add_kernels", TL_F32, tl_int(1), tl_open()), "did you mean 'add_kernel'?");
	says(launch("sub", TL_F32, tl_int(1), tl_open()), "has no 'sub'");
	says(launch("add_kernel", TL_BF16, tl_int(1), tl_open()),
	     "add_kernel was not compiled for the arguments (*bf16, *bf16, *bf16, 1, open)");
	says(launch("add_kernel", TL_F16, tl_int(1), tl_int(256)),
	     "it was compiled for (x_ptr=*fp16, y_ptr=*fp16, out_ptr=*fp16, n=i32, BLOCK=512), and 1 other\n");
	says(launch("add_kernel", TL_F32, tl_int_typed(TL_I64, 1), tl_open()), "was not compiled for");
	says(launch("add_kernel", TL_F32, tl_int(1ll << 40), tl_open()), "was not compiled for");
	says(launch("add_kernel", TL_F32, tl_none(), tl_open()), "None");
	says(tl_library_launch(library, "add_kernel", &(tl_config){.grid = {1}}, (tl_arg[]){tl_int(1)}, 1),
	     "TL_MANIFEST");
	says(launch("add_kernel", TL_F32, tl_str(NULL), tl_open()), "add_kernel: argument 3 is not valid");
	says(launch("add_kernel", (tl_dtype)99, tl_int(1), tl_open()), "add_kernel: argument 0 is not valid");
	says(launch("add_kernel", TL_F32, tl_float(1), tl_open()), "was not compiled for");
	says(tl_library_launch(library, NULL, NULL, NULL, 0), "the kernel's name is NULL");
	says(tl_library_create(ctx, NULL, 0, &library), "the table is NULL");
	printf("%d wrong\n", wrong);
	tl_library_destroy(NULL);
	tl_context_destroy(ctx); /* with the first library */
	return wrong != 0;
}
