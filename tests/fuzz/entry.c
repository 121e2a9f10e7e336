/* Fuzzing entries of the disk cache: any image in the place of a kernel's entry, under the kernel's key, and the launch
 * runs it on the simulator or refuses it. `make fuzz` builds it.
 *
 *   build-fuzz/fuzz-entry CORPUS…      the corpus: what `tlc --emit image` writes; the entry itself is an input too */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mutate.h"
#include "temporary.h"
#include "runtime/tl.h"

enum { N = 64, KEY_BYTES = 16 };

static const char source[] = "import triton\nimport triton.language as tl\n\n"
			     "@triton.jit\ndef affine(x, y, n, s):\n"
			     "    i = tl.program_id(0) * 64 + tl.arange(0, 64)\n"
			     "    tl.store(y + i, tl.load(x + i, mask=i < n) * s, mask=i < n)\n";
static char folder[200], entry[300];
static u8 key[KEY_BYTES];
static tl_context *ctx;
static tl_buffer *buffers[2];

static tl_status launch(void)
{
	tl_module *m;
	tl_kernel *k;
	tl_status s = tl_module_load_source(ctx, "a.tl", source, sizeof source - 1, &m);
	if (s || tl_module_kernel(m, "affine", &k))
		abort();
	const tl_arg args[] = {tl_buf(TL_F32, buffers[0]), tl_buf(TL_F32, buffers[1]), tl_int(50), tl_float(2)};
	s = tl_launch(k, &(tl_config){.grid = {1}}, args, 4);
	tl_module_destroy(m);
	return s;
}

/* The entry as the compiler makes it. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	u8 bytes[IMAGE_HEADER + KEY_BYTES];
	(void)argc;
	(void)argv;
	temporary(folder, sizeof folder);
	if (!mkdtemp(folder) || setenv("TL_CACHE_DIR", folder, 1) || setenv("TL_SIM_MAX_STEPS", "3000", 1) ||
	    unsetenv("TL_CACHE") || unsetenv("TL_NO_JIT") || tl_context_create("sim", &ctx) ||
	    tl_context_threads(ctx, 1))
		abort();
	for (int i = 0; i < 2; i++)
		if (tl_buffer_create(ctx, N * sizeof(float), &buffers[i]) || tl_buffer_fill(buffers[i], 0))
			abort();
	if (launch())
		abort();
	DIR *d = opendir(folder);
	for (const struct dirent *e; d && (e = readdir(d));)
		if (strstr(e->d_name, ".image"))
			snprintf(entry, sizeof entry, "%s/%s", folder, e->d_name);
	if (d)
		closedir(d);
	int fd = open(entry, O_RDONLY);
	if (fd < 0 || read(fd, bytes, sizeof bytes) != sizeof bytes)
		abort();
	close(fd);
	memcpy(key, bytes + IMAGE_HEADER, sizeof key);
	return setenv("TL_NO_JIT", "1", 1); /* what is refused need not be compiled */
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	u8 *copy = malloc(size + !size);
	memcpy(copy, data, size);
	if (size >= IMAGE_HEADER + sizeof key)
		memcpy(copy + IMAGE_HEADER, key, sizeof key);
	mend_image(copy, size);
	int fd = open(entry, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || write(fd, copy, size) != (ssize_t)size)
		abort();
	close(fd);
	if (launch() == TL_ERR_INTERNAL)
		abort();
	free(copy);
	return 0;
}

size_t LLVMFuzzerCustomMutator(u8 *data, size_t size, size_t most, unsigned seed)
{
	size_t fields = seed % 2 ? mutate_image(data, size, most, seed) : 0;
	return fields ? fields : LLVMFuzzerMutate(data, size, most);
}
