/* The CPU device: kernels are compiled to native code, and one thread runs a program.
 *
 * A launch has finished when it returns. The threads of cpu_pool.h share the programs of a grid. Memory is host memory.
 * Accesses are not checked, except by code for "cpu:check" (cpu_check.h). */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/thread_team.h"
#include "cpu/cpu_abi.h"
#include "support/device_text.h"
#include "runtime/device/inline_asm_run.h"
#include "runtime/device/cpu_check.h"
#include "runtime/device/cpu_pool.h"
#include "runtime/image/error.h"
#include "runtime/image/cache_folder.h"
#include "runtime/device/gdb.h"
#include "runtime/device/host_memory.h"
#include "runtime/device/object_linker.h"

struct cpu_device {
	struct host_device host; /* first */
	struct target target;
	struct pool *pool;
	u32 cache_kib;          /* of the last-level cache, or $TL_CPU_CACHE; 0: unknown */
	struct outputs outputs; /* of checked launches */
	struct kept_bytes kept;
};

struct cpu_kernel {
	const struct image *image;
	struct source_list sources;
	struct linked *linked;
	struct gdb_entry *gdb; /* NULL: the debugger has not been told */
	cpu_program *run;
	_Atomic u32 cost; /* see pool_job */
};

static bool is_set(const char *name)
{
	const char *value = getenv(name);
	return value && !strcmp(value, "1");
}

/* The target of compilation: this CPU, or the part of its extensions that $TL_CPU names. */
static tl_status processor(struct target *out)
{
	struct target part;
	struct arena a = {0};
	const char *level = getenv("TL_CPU");
	if (!cpu_here(out))
		return failed(TL_ERR_DEVICE, "the cpu device needs a CPU with x86-64-v2 or ARMv8");
	if (!level || !*level)
		return TL_OK;
	tl_status s = TL_OK;
	if (!target_parse(arena_printf(&a, "cpu:%s", level), &part))
		s = failed(TL_ERR_DEVICE, "TL_CPU=%s is not a CPU level: there are %s", level, cpu_names);
	else if (!target_runs(out, &part))
		s = failed(TL_ERR_DEVICE, "TL_CPU=%s needs more than this CPU has, which is %s", level,
			   target_name(&a, out));
	else
		*out = part;
	arena_free(&a);
	return s;
}

/* The size of the last-level cache, in KiB, from Linux. The C library's number may be the sum of all caches of a
 * computer, even if a virtual machine has only one of them. */
static u32 cache_here(void)
{
	unsigned kib = 0, size;
	for (int i = 0; i < 8; i++) {
		char name[64];
		snprintf(name, sizeof name, "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
		FILE *f = fopen(name, "r");
		if (!f)
			break;
		if (fscanf(f, "%uK", &size) == 1 && size > kib)
			kib = size;
		fclose(f);
	}
	return kib;
}

/* cache_here, or the size in $TL_CPU_CACHE. */
static tl_status last_cache(u32 *kib)
{
	const char *given = getenv("TL_CPU_CACHE");
	char *end;
	if (!given || !*given) {
		*kib = cache_here();
		return TL_OK;
	}
	unsigned long x = strtoul(given, &end, 10);
	*kib = (u32)x;
	if (*end || *given < '0' || *given > '9' || x > UINT32_MAX)
		return failed(TL_ERR_DEVICE,
			      "TL_CPU_CACHE=%s is not a number of KiB: 32768 for a cache of 32 MB, 0 for none", given);
	return TL_OK;
}

static tl_status cpu_open(int ordinal, struct device **out)
{
	struct target target;
	u32 cache_kib;
	bool checks = ordinal == OPTION;
	tl_status s = processor(&target);
	if (!s)
		s = last_cache(&cache_kib);
	if (s)
		return s;
	target.checks = checks;
	target.lines |= is_set("TL_GDB");
	struct cpu_device *d = calloc(1, sizeof *d);
	if (d)
		d->pool = pool_open();
	if (!d || !d->pool) {
		free(d);
		return failed(TL_ERR_MEMORY, "out of host memory");
	}
	host_init(&d->host, &cpu_ops, checks);
	kept_init(&d->kept);
	d->target = target;
	d->cache_kib = cache_kib;
	*out = &d->host.device;
	return TL_OK;
}

static void cpu_close(struct device *device)
{
	struct cpu_device *d = (struct cpu_device *)device;
	kept_free(&d->kept);
	pool_close(d->pool);
	host_close(device);
}

static tl_status count(int *out)
{
	struct target target;
	*out = cpu_here(&target);
	return TL_OK;
}

static void tell(struct device *device, const struct target *target, tl_device_info *out)
{
	struct arena a = {0};
	host_info(device, out);
	if (target->checks)
		snprintf(out->spec, sizeof out->spec, "%s:%s", cpu_ops.name, cpu_ops.option);
	snprintf(out->target, sizeof out->target, "%s", target_name(&a, target));
	arena_free(&a);
}

static void cpu_info(struct device *device, tl_device_info *out)
{
	tell(device, &((struct cpu_device *)device)->target, out);
}

static tl_status at(int index, tl_device_info *out)
{
	struct target target;
	tl_status s = processor(&target);
	(void)index;
	if (!s)
		tell(&(struct device){.ops = &cpu_ops}, &target, out);
	return s;
}

static struct target cpu_target(const struct device *device)
{
	return ((const struct cpu_device *)device)->target;
}

/* --- kernels ------------------------------------------------------------------------------------------------- */

/* With TL_PERF_MAP=1, writes the kernel's name and address to the file in which `perf report` looks up run-time
 * generated code. */
static void tell_perf(const struct cpu_kernel *k)
{
	struct arena a = {0};
	struct cleanup c;
	const char *why;
	const void *from;
	if (!is_set("TL_PERF_MAP"))
		return;
	cleanup_arena(&c, &a);
	size_t bytes = linked_code(k->linked, &from);
	const char *line =
		arena_printf(&a, "%llx %zx %s\n", (unsigned long long)(uintptr_t)from, bytes, k->image->name);
	int fd = own_file(&a, arena_printf(&a, "/tmp/perf-%d.map", (int)getpid()), &why);
	if (fd >= 0) {
		add_line(fd, line, strlen(line));
		close(fd);
	}
	cleanup_run(&c);
}

/* Compares the parameters and the scratch memory of the image with the record in its object. */
static bool is_of_code(struct arena *a, const struct image *im)
{
	const void *code = (uintptr_t)im->code % 8 ? arena_dup(a, im->code, im->code_bytes) : im->code;
	size_t bytes;
	u64 scratch;
	const u8 *record = object_constant(code, im->code_bytes, arena_printf(a, "%s" HOST_RECORD, im->name), &bytes);
	if (!record || bytes != sizeof scratch + im->nslots || im->persistent || im->nmaps)
		return false;
	memcpy(&scratch, record, sizeof scratch);
	bool same = scratch == im->scratch_bytes;
	for (u32 i = 0; i < im->nslots; i++)
		same &= record[sizeof scratch + i] ==
			cpu_record_byte(im->slots[i].pointers, (int)im->slots[i].dtype);
	return same;
}

static tl_status cpu_load(struct device *device, const struct device_load *l, void **out)
{
	const struct image *im = l->image;
	struct arena a = {0};
	const char *error = NULL;
	void *address = NULL;
	struct cpu_kernel *k = calloc(1, sizeof *k);
	if (!k)
		return failed(TL_ERR_MEMORY, "out of host memory");
	struct cleanup c;
	cleanup_push(&c, free, k);
	if (is_of_code(&a, im))
		k->linked = link_object(&a, im->code, im->code_bytes, im->name, &address, &error);
	else
		error = "the image's parameters differ from those of its code";
	cleanup_drop(&c);
	k->image = im;
	k->sources = l->sources;
	k->run = (cpu_program *)address;
	tl_status s = k->linked ? TL_OK : failed(TL_ERR_COMPILE, "%s: %s", im->name, error);
	arena_free(&a);
	if (s) {
		free(k);
		return s;
	}
	tell_perf(k);
	if (((struct cpu_device *)device)->target.lines) {
		char *file = linked_file(k->linked, im->code, im->code_bytes);
		k->gdb = file ? gdb_tell(file, im->code_bytes) : NULL;
	}
	*out = k;
	return TL_OK;
}

static void cpu_unload(struct device *device, void *kernel)
{
	struct cpu_kernel *k = kernel;
	(void)device;
	gdb_forget(k->gdb);
	unlink_object(k->linked);
	free(k);
}

/* --- launches ------------------------------------------------------------------------------------------------ */

#define NOT_FAILED UINT64_MAX

/* A launch, shared by its threads. */
struct run {
	struct cpu_call call;
	const struct cpu_kernel *kernel;
	struct device *device;
	_Atomic u64 failed;   /* the lowest program that failed */
	struct program_threads *gang;    /* for kernels whose programs may wait */
	pthread_mutex_t lock; /* of the error */
	struct arena arena;
	struct strbuf error;
	struct source_place place;
	struct first_fault fault; /* out of memory in a callback */
	struct checker *checker;  /* or NULL */
};

static u64 number_of(const struct cpu_call *c, const u32 *pid)
{
	return pid[0] + (u64)c->grid[0] * (pid[1] + (u64)c->grid[1] * pid[2]);
}

struct failure {
	struct run *run;
	struct program_failure at;
	const char *text;
};

static void describe(struct strbuf *out, const struct program_failure *f, struct source_place *place,
		     const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	program_failure_text(out, f, place, format, ap);
	va_end(ap);
}

static void note_failure(void *failure)
{
	const struct failure *f = failure;
	struct run *r = f->run;
	struct held h;
	u64 program = number_of(&r->call, f->at.pid);
	lock_hold(&h, &r->lock);
	if (program < atomic_load(&r->failed)) {
		r->error.len = 0;
		describe(&r->error, &f->at, &r->place, "%s", f->text);
		atomic_store(&r->failed, program);
	}
	lock_release(&h);
}

static void on_fail(const struct cpu_call *c, const u32 *pid, u64 place, i64 element, const i32 *shape, i32 rank,
		    const char *text)
{
	struct run *r = c->self;
	struct failure f = {r, {NULL, cpu_place_loc(place), pid, shape, rank, element}, text};
	const struct source_list *all = &r->kernel->sources; /* the texts of imported files are not available */
	if (f.at.loc.file < all->len)
		f.at.source = all->at[f.at.loc.file];
	if (!fault_catch(&r->fault, note_failure, &f))
		atomic_store(&r->failed, 0);
}

/* A program that a thread runs. The kernel passes `pid` back to the functions of cpu_call. */
struct program {
	u32 pid[3]; /* first */
	struct program_threads_waiter waiter;
};

/* Called by a program that waits for other programs: one of those may have failed. */
static i32 on_wait(const struct cpu_call *c, const u32 *pid, u64 place)
{
	struct run *r = c->self;
	char text[160];
	if (atomic_load(&r->failed) != NOT_FAILED)
		return 1;
	if (program_threads_wait(r->gang, &((struct program *)pid)->waiter))
		return 0;
	snprintf(text, sizeof text, GANG_VAIN, (unsigned long long)program_threads_left(r->gang),
		 atomic_load(&r->gang->alive));
	on_fail(c, pid, place, -1, NULL, 0, text);
	return 1;
}

struct check {
	struct run *run;
	const u32 *pid;
	const struct cpu_site *site;
	i64 element;
	const void *at;
	const u8 *mask;
	const void *data;
	bool good;
};

static void check_access(void *check)
{
	struct check *k = check;
	struct run *r = k->run;
	struct arena a = {0};
	struct strbuf text = {.arena = &a};
	i64 element = k->element;
	k->good = checker_access(r->checker, number_of(&r->call, k->pid), k->site, &element, k->at, k->mask, k->data,
				 &text);
	if (!k->good)
		on_fail(&r->call, k->pid, k->site->place, element, k->site->shape, k->site->rank, text.at);
	arena_free(&a);
}

static i32 on_check(const struct cpu_call *c, const u32 *pid, const struct cpu_site *site, i64 element,
		    const void *at, const u8 *mask, const void *data)
{
	struct run *r = c->self;
	if (checker_quick(r->checker, number_of(c, pid), site, at, mask, data))
		return 0;
	struct check k = {r, pid, site, element, at, mask, data, false};
	fault_catch(&r->fault, check_access, &k);
	return !k.good;
}

struct print {
	struct run *run;
	const u32 *pid;
	const struct cpu_print *what;
	const void *const *data;
};

static void print_operand(struct strbuf *out, const struct print *p, i32 i)
{
	const struct cpu_print_operand *o = &p->what->at[i];
	const struct printed_tile t = {.dtype = (enum dtype)o->dtype,
				       .is_signed = o->is_signed,
				       .is_pointer = o->is_pointer,
				       .hex = p->what->hex,
				       .rank = o->rank,
				       .shape = o->shape,
				       .data = p->data[i]};
	printed_tile_text(out, &t, p->pid, p->what->prefix, p->what->n > 1 ? i : -1);
}

static void print_lines(void *print)
{
	const struct print *p = print;
	struct arena a = {0};
	struct strbuf out = {.arena = &a};
	i32 threads = 32 * p->run->kernel->image->num_warps; /* as on a GPU, where each thread prints the scalars */
	for (i32 t = 0; t < threads; t++) {
		for (i32 i = 0; i < p->what->n; i++)
			if (!t || !p->what->at[i].rank)
				print_operand(&out, p, i);
		if (!p->what->n)
			sb_printf(&out, "pid (%u, %u, %u)%s\n", p->pid[0], p->pid[1], p->pid[2], p->what->prefix);
	}
	cpu_print(p->run->device, out.at, out.len);
	arena_free(&a);
}

static void on_print(const struct cpu_call *c, const u32 *pid, const struct cpu_print *what, const void *const *data)
{
	struct run *r = c->self;
	fault_catch(&r->fault, print_lines, &(struct print){r, pid, what, data});
}

struct assembly {
	struct run *run;
	const u32 *pid;
	const struct cpu_asm *what;
	char *const *tiles;
	bool good;
};

static void run_assembly(void *assembly)
{
	struct assembly *s = assembly;
	const struct cpu_asm *w = s->what;
	struct arena a = {0};
	struct cleanup c;
	cleanup_arena(&c, &a);
	const char *wrong = assembly_run(&a, &w->call, s->tiles, NULL, 0, 0);
	s->good = !wrong;
	if (wrong)
		on_fail(&s->run->call, s->pid, w->place, -1, NULL, 0, arena_printf(&a, "inline assembly: %s", wrong));
	cleanup_run(&c);
}

static i32 on_assembly(const struct cpu_call *c, const u32 *pid, const struct cpu_asm *what, char *const *tiles)
{
	struct run *r = c->self;
	struct assembly s = {.run = r, .pid = pid, .what = what, .tiles = tiles};
	return !fault_catch(&r->fault, run_assembly, &s) || !s.good;
}

static void run_programs(void *run, u64 from, u64 to, char *scratch)
{
	struct run *r = run;
	const u32 *grid = r->call.grid;
	cpu_program *f = r->kernel->run;
	struct program p = {
		.pid = {(u32)(from % grid[0]), (u32)(from / grid[0] % grid[1]), (u32)(from / grid[0] / grid[1])}};
	u32 *pid = p.pid;
	for (; from < to && from < atomic_load_explicit(&r->failed, memory_order_relaxed); from++) {
		f(&r->call, pid, scratch);
		if (++pid[0] < grid[0])
			continue;
		pid[0] = 0;
		if (++pid[1] == grid[1])
			pid[1] = 0, pid[2]++;
	}
}

static tl_status finish(struct run *r)
{
	tl_status s = TL_OK;
	if (atomic_load(&r->failed) != NOT_FAILED && r->error.at) {
		s = failed_text(TL_ERR_KERNEL, r->error.at);
		failed_at(&r->place);
	}
	arena_free(&r->arena);
	pthread_mutex_destroy(&r->lock);
	fault_pass_on(&r->fault);
	return s;
}

/* Refuses NULL for pointers that every program accesses. Nothing else catches such accesses. NULL is right for a tensor
 * of no elements that is not accessed. */
static tl_status check_pointers(const struct image *im, const u64 *args)
{
	for (u32 i = 0; i < im->nslots; i++) {
		const struct slot *s = &im->slots[i];
		if (s->pointers && !args[i] && s->always)
			return failed(TL_ERR_ARGUMENT,
				      "%s: '%s' is NULL, and the kernel %s memory through it\n      = hint: pass None, "
				      "or a constexpr that is False, to leave an access out",
				      im->name, s->name, s->reads ? "reads" : "writes");
	}
	return TL_OK;
}

static tl_status cpu_launch(struct device *device, const struct device_launch *l)
{
	struct cpu_device *d = (struct cpu_device *)device;
	struct cpu_kernel *k = l->kernel;
	tl_status refused = host_check(l);
	if (!refused)
		refused = check_pointers(k->image, l->args);
	if (refused)
		return refused;
	struct run r = {.call = {.args = l->args, .fail = on_fail, .print = on_print, .assembly = on_assembly,
				 .wait = on_wait, .self = &r},
			.kernel = k,
			.device = device,
			.failed = NOT_FAILED,
			.lock = PTHREAD_MUTEX_INITIALIZER,
			.fault = FIRST_FAULT_NONE};
	if (d->target.checks && !(r.checker = checker_open(&d->host, &d->kept, l, k->image, &k->sources)))
		return failed(TL_ERR_MEMORY, "out of host memory");
	r.call.check = on_check;
	r.call.good = r.checker ? checker_good(r.checker) : NULL;
	memcpy(r.call.grid, l->grid, sizeof r.call.grid);
	r.call.cache_kib = d->cache_kib;
	r.error.arena = &r.arena;
	const struct pool_job job = {.total = (u64)l->grid[0] * l->grid[1] * l->grid[2],
				     /* with a debugger one thread: it steps through one program while no other runs */
				     .threads = d->target.lines      ? 1
						: device->threads > 0 ? (u32)device->threads : thread_team_most(),
				     .scratch_bytes = (size_t)k->image->scratch_bytes,
				     .gang = k->image->waits ? &r.gang : NULL,
				     .cost = &k->cost,
				     .run = run_programs,
				     .arg = &r};
	bool ran = pool_run(d->pool, &job);
	if (r.checker) {
		checker_close(r.checker);
		outputs_note(&d->outputs, &d->host, l, k->image);
	}
	if (!ran)
		return failed(TL_ERR_MEMORY, "%s: out of memory for the %llu bytes that each thread needs",
			      k->image->name, (unsigned long long)k->image->scratch_bytes);
	return finish(&r);
}

static void check_read(struct device *device, const void *src, size_t size)
{
	struct cpu_device *d = (struct cpu_device *)device;
	if (d->target.checks)
		outputs_read(&d->outputs, &d->host, src, size);
}

const struct device_ops cpu_ops = {
	.name = "cpu",
	.option = "check",
	.stages = " ttir llir asm calls accesses ",
	.queue = &host_queue,
	.count = count,
	.at = at,
	.open = cpu_open,
	.close = cpu_close,
	.info = cpu_info,
	.alloc = host_alloc,
	.free = host_free,
	.check_read = check_read,
	.target = cpu_target,
	.load = cpu_load,
	.unload = cpu_unload,
	.launch = cpu_launch,
	.time = host_time,
	.synchronize = host_synchronize,
	.allocation = host_allocation,
};
