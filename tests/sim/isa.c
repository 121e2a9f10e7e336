/* isa record FILE [NAME]      runs the forms (whose names begin so) on the GPU and writes all that it answers
 * isa pack TO FILE...         makes a small file of such files and small ones; of two answers the last holds
 * isa check FILE [NAME]       runs the forms on the simulator and compares; ends in "N passed, N failed"
 * isa text [NAME]             prints the kernels
 *
 * The file: "tlisa 2\n", the GPU's name and "\n", then for each form its id (u32, little-endian), a kind, the number of
 * bytes that follow (u32) and these:
 *   'R'  none: the driver refuses the form, and so must the simulator
 *   'F'  none: running it is an error, and must be one here
 *   'V'  the results: of all threads the first, of all threads the second … in as many bytes as they have
 *   'H'  of each 16 threads a hash (u32) of their results
 * Only forms that need not be equal bit by bit have 'V', unless the recording is full. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/device/cuda_api.h"
#include "runtime/image/error.h"
#include "runtime/sim/sim.h"
#include "runtime/sim/tensormap.h"
#include "tests/sim/isa.h"

enum { GROUP = 16, FAULTED = 99, ALIGN = 1024, HEAD = 9, MAX_BYTES = MAX_RESULTS * MAX_CASES * 8 };

struct record {
	u32 id;
	char kind;
	u32 bytes;
	const u8 *data;
};

struct file {
	struct arena arena;
	const char *device;
	VEC(struct record) records;
};

typedef CUresult encode_fn(void *map, int type, u32 rank, void *tensor, const u64 *sizes, const u64 *strides,
			   const u32 *box, const u32 *steps, int interleave, int swizzle, int l2_promotion, int fill);

struct session {
	/* what is written */
	FILE *out;
	/* the GPU */
	struct cuda_api api;
	encode_fn *encode;
	u32 seen, *done; /* forms; by all processes */
	CUdeviceptr memory;
	/* what was read */
	struct file *file;
	const char *only;
	u32 passed, failed, rejected, cases;
};

/* --- the file --------------------------------------------------------------------------------------------------- */

static void die(const char *what, const char *detail)
{
	fprintf(stderr, "isa: %s%s%s\n", what, detail ? ": " : "", detail ? detail : "");
	exit(2);
}

static void put_record(FILE *out, u32 id, char kind, const u8 *data, u32 bytes)
{
	fwrite(&id, sizeof id, 1, out);
	fputc(kind, out);
	fwrite(&bytes, sizeof bytes, 1, out);
	if (bytes)
		fwrite(data, 1, bytes, out);
}

static void read_file(struct file *file, const char *path)
{
	FILE *in = fopen(path, "rb");
	if (!in)
		die("cannot read", path);
	enum { MOST = 16 << 20 };
	u8 *text = arena_alloc(&file->arena, MOST);
	size_t n = fread(text, 1, MOST, in), at = 8;
	fclose(in);
	u8 *end = n > 8 && !memcmp(text, "tlisa 2\n", 8) ? memchr(text + 8, '\n', n - 8) : NULL;
	if (!end)
		die("not a recording", path);
	*end = 0;
	file->device = (const char *)text + 8;
	for (at = (size_t)(end - text) + 1; at + HEAD <= n;) {
		struct record r = {.kind = (char)text[at + 4], .data = text + at + HEAD};
		memcpy(&r.id, text + at, 4);
		memcpy(&r.bytes, text + at + 5, 4);
		if (at + HEAD + r.bytes > n)
			die("cut off", path);
		vec_push(&file->arena, &file->records, r);
		at += HEAD + r.bytes;
	}
}

static const struct record *find(const struct file *file, const struct form *f)
{
	for (u32 k = file->records.len; k-- > 0;)
		if (file->records.at[k].id == (u32)f->id)
			return &file->records.at[k];
	return NULL;
}

/* --- results ---------------------------------------------------------------------------------------------------- */

static u64 value_at(const struct form *f, const u8 *values, u32 result, u32 thread)
{
	u64 v = 0;
	memcpy(&v, values + ((size_t)result * f->ncases + thread) * f->result_bytes, f->result_bytes);
	return v;
}

/* From slots of 8 bytes. */
static u32 to_values(const struct form *f, const u64 *slots, u8 *values)
{
	u32 n = f->nresults * f->ncases;
	for (u32 k = 0; k < n; k++)
		memcpy(values + (size_t)k * f->result_bytes, &slots[k], f->result_bytes);
	return n * f->result_bytes;
}

static u32 to_hashes(const struct form *f, const u8 *values, u8 *hashes)
{
	for (u32 g = 0; g < f->ncases / GROUP; g++) {
		u64 h = 0xCBF29CE484222325;
		for (u32 r = 0; r < f->nresults; r++)
			for (u32 t = g * GROUP; t < (g + 1) * GROUP; t++)
				h = (h ^ value_at(f, values, r, t)) * 0x9E3779B97F4A7C15, h ^= h >> 29;
		u32 h32 = (u32)(h ^ h >> 32);
		memcpy(hashes + (size_t)4 * g, &h32, 4);
	}
	return f->ncases / GROUP * 4;
}

static void put_form(FILE *out, const struct form *f, const u8 *values, bool full)
{
	u8 hashes[MAX_CASES];
	u32 bytes = f->nresults * f->ncases * f->result_bytes;
	if (full || !f->exact)
		put_record(out, (u32)f->id, 'V', values, bytes);
	else
		put_record(out, (u32)f->id, 'H', hashes, to_hashes(f, values, hashes));
}

/* --- the GPU ---------------------------------------------------------------------------------------------------- */

static void check_driver(struct session *s, const char *what, CUresult r)
{
	const char *text = NULL;
	if (r && s->api.error_string(r, &text))
		text = NULL;
	if (r)
		die(what, text ? text : "unknown error");
}

static bool is_wanted(const struct session *s, const struct form *f)
{
	return !s->only || !strncmp(f->name, s->only, strlen(s->only));
}

static char *tensor_of(const struct form *f, char *memory)
{
	size_t slot = (size_t)f->ncases * 8;
	return memory + slot * (f->map->to_results ? f->nsources : f->image) + f->map->offset;
}

static CUresult encode(const struct session *s, const struct form *f, void *map)
{
	const struct tensor_spec *m = f->map;
	void *tensor = tensor_of(f, (char *)(uintptr_t)s->memory);
	return s->encode(map, m->type, m->rank, tensor, m->sizes, m->strides, m->box, m->steps, 0, m->swizzle, 0,
			 m->fill);
}

static void refused(struct session *s, const struct form *f, char kind, const char *log)
{
	const char *line = strstr(log, "error");
	printf("refused: %s: %.*s\n", f->name, (int)strcspn(line ? line : log, "\n"), line ? line : log);
	put_record(s->out, (u32)f->id, kind, NULL, 0);
	s->rejected++;
}

static CUresult run_form(struct session *s, const struct form *f, CUmodule module, char *map, u64 *slots)
{
	size_t in = (size_t)f->nsources * f->ncases * 8, out = (size_t)f->nresults * f->ncases * 8;
	void *params[] = {&s->memory, map};
	CUfunction function;
	check_driver(s, "function", s->api.module_function(&function, module, "k"));
	check_driver(s, "copy", s->api.copy_to_device(s->memory, f->in, in, NULL));
	check_driver(s, "clear", s->api.mem_set(s->memory + in, 0, out, NULL));
	CUresult r = s->api.launch(function, f->ncases / BLOCK, 1, 1, BLOCK, 1, 1, 0, NULL, params, NULL);
	r = r ? r : s->api.copy_to_host(slots, s->memory + in, out, NULL);
	return r ? r : s->api.ctx_synchronize();
}

static void record_form(void *context, struct form *f)
{
	struct session *s = context;
	static u64 slots[MAX_RESULTS * MAX_CASES];
	static u8 values[MAX_BYTES];
	char log[1024] = "";
	_Alignas(TENSOR_MAP_ALIGN) char map[TENSOR_MAP_BYTES];
	int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *option_values[] = {log, (void *)(uintptr_t)sizeof log};
	CUmodule module;
	if (!is_wanted(s, f) || s->seen++ < *s->done)
		return;
	++*s->done;
	CUresult r = s->api.module_load(&module, f->ptx, 2, options, option_values);
	if (r || (f->map && encode(s, f, map))) {
		refused(s, f, 'R', r ? log : "error: no such tensor map");
		return;
	}
	if (run_form(s, f, module, map, slots)) {
		refused(s, f, 'F', "error: when it runs");
		fflush(NULL);
		_exit(FAULTED);
	}
	check_driver(s, "unload", s->api.module_unload(module));
	to_values(f, slots, values);
	put_form(s->out, f, values, true);
	s->passed++;
}

static void record_forms(struct session *s, bool first)
{
	struct arena a = {0};
	CUdevice device;
	CUcontext ctx;
	char name[256] = "";
	int version = 0;
	bool absent;
	if (cuda_api_open(&s->api, &absent))
		die("no CUDA driver", NULL);
	check_driver(s, "cuInit", s->api.init(0));
	check_driver(s, "device", s->api.device_get(&device, 0));
	check_driver(s, "context", s->api.primary_retain(&ctx, device));
	check_driver(s, "context", s->api.ctx_push(ctx));
	check_driver(s, "name", s->api.device_name(name, sizeof name, device));
	check_driver(s, "version", s->api.driver_version(&version));
	check_driver(s, "memory", s->api.mem_alloc(&s->memory, 1 << 20));
	*(void **)&s->encode = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuTensorMapEncodeTiled");
	if (!s->encode)
		die("the CUDA driver knows no tensor maps", NULL);
	if (first)
		fprintf(s->out, "tlisa 2\n%s, CUDA %d.%d\n", name, version / 1000, version % 1000 / 10);
	each_form(&a, record_form, s);
	printf("%s: %u forms\n", name, *s->done);
}

/* After a form that is an error nothing runs in its process any more: the next one goes on. */
static int record(const char *path, const char *only)
{
	struct session s = {.out = fopen(path, "wb"), .only = only};
	int status = 0;
	if (!s.out)
		die("cannot write", path);
	s.done = mmap(NULL, sizeof *s.done, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (bool first = true; first || (WIFEXITED(status) && WEXITSTATUS(status) == FAULTED); first = false) {
		pid_t child = fork();
		if (!child) {
			record_forms(&s, first);
			fflush(NULL);
			_exit(0);
		}
		if (child < 0 || waitpid(child, &status, 0) != child)
			die("cannot start a process", NULL);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

/* --- packing ---------------------------------------------------------------------------------------------------- */

static void pack_form(void *context, struct form *f)
{
	struct session *s = context;
	const struct record *r = find(s->file, f);
	if (!r)
		printf("not recorded: %s\n", f->name);
	else if (r->kind == 'V')
		put_form(s->out, f, r->data, false);
	else
		put_record(s->out, r->id, r->kind, r->data, r->bytes);
}

static int pack(const char *to, int n, char **from)
{
	struct file file = {0};
	struct arena a = {0};
	for (int k = 0; k < n; k++)
		read_file(&file, from[k]);
	struct session s = {.out = fopen(to, "wb"), .file = &file};
	if (!s.out)
		die("cannot write", to);
	fprintf(s.out, "tlisa 2\n%s\n", file.device);
	each_form(&a, pack_form, &s);
	fclose(s.out);
	arena_free(&file.arena);
	return 0;
}

/* --- the simulator ---------------------------------------------------------------------------------------------- */

static bool simulated_map(struct arena *a, const struct form *f, void *memory, void *param, const char **error)
{
	_Alignas(TENSOR_MAP_ALIGN) char map[TENSOR_MAP_BYTES];
	const struct tensor_spec *m = f->map;
	struct strbuf text = {.arena = a};
	bool ok = tensor_map_encode(map, m->type, m->rank, tensor_of(f, memory), m->sizes, m->strides, m->box, m->steps,
				    0, m->swizzle, 0, m->fill, &text);
	*error = text.at;
	memcpy(param, map, sizeof map);
	return ok;
}

static bool simulate(struct arena *a, const struct form *f, enum async_timing timing, u8 *values, const char **error)
{
	u32 in = f->nsources * f->ncases, out = f->nresults * f->ncases;
	u64 *memory = (u64 *)(((uintptr_t)arena_array(a, u64, in + out + ALIGN / 8) + ALIGN - 1) / ALIGN * ALIGN);
	struct ptx_module *m = ptx_read(a, f->ptx, strlen(f->ptx), error);
	if (!m || !sim_decode(a, m, error))
		return false;
	memcpy(memory, f->in, in * sizeof *memory);
	struct mem_range range = {"data", (char *)memory, (in + out) * sizeof *memory};
	u8 *const written[] = {NULL};
	char *params = arena_alloc(a, m->kernels[0].param_bytes + 8);
	memcpy(params, &memory, sizeof memory);
	if (f->map && !simulated_map(a, f, memory, params + m->kernels[0].params[1].offset, error))
		return false;
	struct launch l = {.module = m,
			   .kernel = m->kernels,
			   .grid = {f->ncases / BLOCK, 1, 1},
			   .num_warps = BLOCK / LANES,
			   .params = params,
			   .ranges = &range,
			   .nranges = 1,
			   .written = written,
			   .timing = timing};
	struct strbuf text = {.arena = a};
	if (sim_run(&l, &text)) {
		*error = text.at;
		return false;
	}
	to_values(f, memory + in, values);
	return true;
}

static void print_case(const struct form *f, u32 r, u32 t, u64 got, const u64 *expected)
{
	printf("  [%u]", t);
	for (u32 s = 0; s < f->nsources && !f->is_product; s++)
		printf(" %0*llx", ptx_bits(f->sources[s].type) < 8 ? 1 : ptx_bits(f->sources[s].type) / 4,
		       (unsigned long long)f->in[s * f->ncases + t]);
	if (f->nresults > 1)
		printf(" result %u", r);
	printf(": got %0*llx", (int)f->result_bytes * 2, (unsigned long long)got);
	if (expected)
		printf(", expected %0*llx", (int)f->result_bytes * 2, (unsigned long long)*expected);
	printf("\n");
}

static u32 compare_values(const struct form *f, const u8 *got, const u8 *expected)
{
	u32 wrong = 0;
	for (u32 r = 0; r < f->nresults; r++)
		for (u32 t = 0; t < f->ncases; t++) {
			u64 x = value_at(f, got, r, t), y = value_at(f, expected, r, t);
			if (same_result(f, t, x, y))
				continue;
			if (!wrong)
				printf("%s differs\n", f->name);
			if (wrong++ < 12)
				print_case(f, r, t, x, &y);
		}
	if (wrong)
		printf("  %u of %u\n", wrong, f->nresults * f->ncases);
	return wrong;
}

static u32 compare_hashes(const struct form *f, const u8 *got, const u8 *expected)
{
	u8 hashes[MAX_CASES];
	u32 wrong = 0;
	to_hashes(f, got, hashes);
	for (u32 g = 0; g < f->ncases / GROUP; g++)
		if (memcmp(hashes + (size_t)4 * g, expected + (size_t)4 * g, 4) && !wrong++) {
			printf("%s differs in one of\n", f->name);
			for (u32 t = g * GROUP; t < (g + 1) * GROUP; t++)
				for (u32 r = 0; r < f->nresults; r++)
					print_case(f, r, t, value_at(f, got, r, t), NULL);
		}
	return wrong;
}

/* 0: as recorded. */
static u32 check_one(struct session *s, const struct form *f)
{
	static u8 values[MAX_BYTES], early[MAX_BYTES];
	struct arena a = {0};
	const char *error = NULL;
	const struct record *r = find(s->file, f);
	bool runs = simulate(&a, f, ASYNC_LATE, values, &error);
	u32 wrong = 0, bytes = f->nresults * f->ncases * f->result_bytes;
	if (!r) {
		printf("%s is not in the recording%s%s\n", f->name, runs ? "" : ": ", runs ? "" : error);
		wrong = 1;
	} else if (!r->bytes || !runs) {
		wrong = !r->bytes != !runs;
		if (wrong)
			printf("%s: %s%s\n", f->name, runs ? "refused by the GPU" : "runs on the GPU: ",
			       runs ? "" : error);
		s->rejected += !runs;
	} else {
		if (r->bytes != (r->kind == 'V' ? bytes : f->ncases / GROUP * 4))
			die("a wrong length", f->name);
		wrong = r->kind == 'V' ? compare_values(f, values, r->data) : compare_hashes(f, values, r->data);
		s->cases += f->ncases;
		if (f->image && simulate(&a, f, ASYNC_EARLY, early, &error) && memcmp(values, early, bytes)) {
			printf("%s differs if done at once\n", f->name);
			wrong++;
		}
	}
	arena_free(&a);
	return wrong;
}

static void check_form(void *context, struct form *f)
{
	struct session *s = context;
	if (!is_wanted(s, f))
		return;
	if (check_one(s, f))
		s->failed++;
	else
		s->passed++;
}

static int check(const char *path, const char *only)
{
	struct file file = {0};
	struct arena a = {0};
	read_file(&file, path);
	struct session s = {.file = &file, .only = only};
	each_form(&a, check_form, &s);
	printf("recorded on %s; %u cases, %u forms refused by both\n", file.device, s.cases, s.rejected);
	printf("%u passed, %u failed\n", s.passed, s.failed);
	arena_free(&file.arena);
	return s.failed ? 1 : 0;
}

static void print_form(void *context, struct form *f)
{
	if (!strncmp(f->name, context, strlen(context)))
		printf("// %s\n%s\n", f->name, f->ptx);
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	if (!strcmp(what, "record"))
		return record(argv[2], argc > 3 ? argv[3] : NULL);
	if (!strcmp(what, "pack") && argc > 3)
		return pack(argv[2], argc - 3, argv + 3);
	if (!strcmp(what, "check"))
		return check(argv[2], argc > 3 ? argv[3] : NULL);
	if (argc > 1 && !strcmp(argv[1], "text")) {
		struct arena a = {0};
		each_form(&a, print_form, argc > 2 ? argv[2] : "");
		return 0;
	}
	fprintf(stderr, "isa record FILE [NAME] | isa pack TO FILE... | isa check FILE [NAME] | isa text [NAME]\n");
	return 2;
}
