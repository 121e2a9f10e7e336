/* Machine code of a kernel. The driver assembles the PTX of an image when it loads it, and keeps the machine code in
 * its disk cache: only the first process waits for the assembler. The driver's linker could produce machine code for
 * libtl's disk cache, but it assembles PTX as a relocatable part of a program, and kernels then take up to 1.7 times
 * the registers.
 *
 * The assembler chooses the registers of a thread, and thereby the number of blocks that are resident on a
 * multiprocessor. The PTX is assembled again in two cases.
 *
 * - The assembler has given up the allocation of registers, which happens in some large functions: a thread has 32
 *   registers, and all other values are in local memory. At level 1 of optimization, the assembler allocates 255
 *   registers, and spills about a fifth of the bytes.
 * - Few warps are resident, so that they do not hide the latency of memory, and a few registers less would leave room
 *   for another block; or registers are unused, although loads then wait for each other. The directive .minnctapersm
 *   sets the least number of resident blocks, and the assembler uses all registers that these blocks leave. The new
 *   code is kept if it spills at most a few bytes more. The image keeps the directive, so that later processes
 *   assemble it once.
 *
 * More resident blocks need many programs, so that only images for many programs get them, which only kernels with dots
 * have (kind_of_grid). Other images get the registers that their resident blocks leave unused. Kernels in which warps
 * exchange registers (setmaxnreg) are excluded: with fewer registers for the block, a consumer warp would wait for
 * registers without end. */
#include "runtime/device/dev_cuda.h"
#include "runtime/image/error.h"

enum { JIT_LOG = 8192, FULL_OPTIMIZATION = 4, LEAST_OPTIMIZATION = 1 };

/* The registers and the local memory of a thread. */
struct allocation {
	int registers, local; /* local: in bytes */
};

static bool find_allocation(const struct cuda *d, const struct image *im, CUmodule m, struct allocation *out)
{
	CUfunction f;
	return !d->api.module_function(&f, m, im->name) &&
	       !d->api.func_get_attribute(&out->registers, CU_FUNC_NUM_REGS, f) &&
	       !d->api.func_get_attribute(&out->local, CU_FUNC_LOCAL_SIZE_BYTES, f);
}

static CUresult load_code(struct cuda *d, const char *ptx, int level, char log[JIT_LOG], CUmodule *out)
{
	const int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_OPTIMIZATION_LEVEL};
	void *values[] = {log, (void *)(uintptr_t)JIT_LOG, (void *)(uintptr_t)level};
	return d->api.module_load(out, ptx, ARRAY_LEN(options), options, values);
}

static void replace_module(struct cuda *d, CUmodule *m, CUmodule by)
{
	d->api.module_unload(*m);
	*m = by;
}

/* --- registers that are not allocated ------------------------------------------------------------------------ */

enum { GIVEN_UP_CODE = 64 << 10 }; /* bytes of PTX, at least */

static bool is_given_up(const struct image *im, const struct allocation *a)
{
	enum {
		REGISTERS = 32, /* at most */
		LOCAL = 4096    /* bytes of a thread, at least */
	};
	return im->code_bytes >= GIVEN_UP_CODE && a->registers <= REGISTERS && a->local >= LOCAL;
}

/* --- resident blocks ------------------------------------------------------------------------------------------ */

enum { MOST_ATTEMPTS = 3 }; /* to assemble an image for other numbers of resident blocks */

/* The registers that the assembler gives a thread if `blocks` blocks are resident. */
static int registers_for(const struct cuda *d, const struct image *im, int blocks)
{
	enum { UNIT = 8 }; /* of the hardware's allocation */
	int n = registers_for_blocks(&d->target, im->num_warps, blocks);
	return n < d->target.thread_registers ? n - n % UNIT : n;
}

/* The numbers of resident blocks to assemble the PTX for, the first preferred; returns how many there are. `many`: the
 * image is for many programs. */
static int wanted_blocks(const struct cuda *d, const struct image *im, int registers, bool many,
			 int out[MOST_ATTEMPTS])
{
	enum { MOST_BLOCKS = 32, STEP = 2, FEW_WARPS = 16 };
	enum { MOST_CODE = 192 << 10 }; /* bytes: bounds the time of the attempts */
	int most = MIN(blocks_for_memory(&d->target, im->shared_bytes), MOST_BLOCKS), now = 0, n = 0;
	while (now < most && registers_for(d, im, now + 1) >= registers)
		now++;
	if (!now || now * im->num_warps > FEW_WARPS || im->cluster > 1 || im->persistent ||
	    im->code_bytes > MOST_CODE || strstr(im->code, "\n.minnctapersm") || strstr(im->code, "\n.maxnreg") ||
	    strstr(im->code, "setmaxnreg"))
		return 0;
	/* with less than three quarters of its registers, code spills */
	for (int more = MIN(now + STEP, most); many && more > now; more--)
		if (4 * registers_for(d, im, more) >= 3 * registers)
			out[n++] = more;
	int left = registers_for(d, im, now);
	if (100 * registers < 85 * left && left < d->target.thread_registers) /* many registers are unused */
		out[n++] = now;
	return n;
}

/* The PTX with a directive for at least `blocks` resident blocks; NULL: it has no line for the block's size. */
static const char *with_blocks(struct arena *a, const struct image *im, int blocks)
{
	const char *line = strstr(im->code, "\n.reqntid"), *end = line ? strchr(line + 1, '\n') : NULL;
	return end ? arena_printf(a, "%.*s\n.minnctapersm %d%s", (int)(end - im->code), im->code, blocks, end) : NULL;
}

/* Replaces *m, which has the allocation *first, by better machine code, if it can be made. */
static void improve(struct cuda *d, struct image *im, const struct allocation *first, bool many, CUmodule *m)
{
	enum { SPILLED = 16 }; /* further bytes that a thread may spill: more resident warps outweigh them */
	int blocks[MOST_ATTEMPTS], n = wanted_blocks(d, im, first->registers, many, blocks);
	bool done = false;
	for (int i = 0; i < n && !done; i++) {
		struct arena scratch = {0};
		struct allocation other;
		CUmodule better;
		char log[JIT_LOG];
		const char *ptx = with_blocks(&scratch, im, blocks[i]);
		if (ptx && !load_code(d, ptx, FULL_OPTIMIZATION, log, &better)) {
			done = find_allocation(d, im, better, &other) && other.local <= first->local + SPILLED;
			if (done) {
				replace_module(d, m, better);
				im->code_bytes = (u32)strlen(ptx);
				im->code = arena_str(&im->arena, ptx, im->code_bytes);
			} else {
				d->api.module_unload(better);
			}
		}
		arena_free(&scratch);
	}
}

/* --- loading --------------------------------------------------------------------------------------------------- */

static tl_status load_failed(struct cuda *d, CUresult r, char log[JIT_LOG])
{
	tl_status s = driver_error(&d->api, "cuModuleLoadDataEx", r);
	log[JIT_LOG - 1] = 0;
	if (*log)
		failed_more("\n%s", log);
	if (r == CUDA_ERROR_UNSUPPORTED_PTX_VERSION) {
		int version = 0;
		d->api.driver_version(&version);
		failed_more("\n      = hint: this driver supports CUDA %d.%d and does not know the generated PTX "
			    "version; update it",
			    version / 1000, version % 1000 / 10);
	}
	return s;
}

tl_status cuda_assemble(struct cuda *d, const struct device_load *l, CUmodule *out)
{
	struct image *im = l->image;
	char log[JIT_LOG] = "";
	CUmodule least;
	struct allocation a;
	CUresult r = load_code(d, im->code, FULL_OPTIMIZATION, log, out);
	if (r)
		return load_failed(d, r, log);
	/* images from files were assembled when they were compiled, except for images compiled without a GPU */
	if ((!l->compiled && im->code_bytes < GIVEN_UP_CODE) || !find_allocation(d, im, *out, &a))
		return TL_OK;
	if (!is_given_up(im, &a) && l->compiled)
		improve(d, im, &a, im->codegen.grid != GRID_FEW, out);
	else if (is_given_up(im, &a) && !load_code(d, im->code, LEAST_OPTIMIZATION, log, &least))
		replace_module(d, out, least); /* if it gives up again, the code is no worse */
	return TL_OK;
}
