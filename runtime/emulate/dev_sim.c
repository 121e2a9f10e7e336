/* The device of the simulator: runs the PTX for a GPU on the CPU, and checks everything.
 *
 * "sim" is a GPU of sm_90a, "sim:80" one of sm_80. $TL_SIM_SEED chooses the order in which warps run, and the arrival
 * of asynchronous copies: as late as allowed (0, 3, 6 …), at once (1, 4 …), or a mixture (2, 5 …). $TL_SIM_MAX_STEPS
 * limits the instructions of a warp. With $TL_SIM_REPORT set, each launch writes its counters, by source line, to
 * standard error. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/image/error.h"
#include "runtime/device/host_memory.h"
#include "runtime/sim/sim.h"
#include "runtime/sim/tensormap.h"

enum {
	NUM_SMS = 132,        /* as an H100 has */
	MOST_STEPS = 1 << 24, /* of a warp, on average over its block: some seconds of simulation */
};

struct sim_kernel {
	struct arena arena;
	const struct image *image;
	struct source_list sources;
	struct ptx_module *module;
	const struct ptx_kernel *ptx;
};

static struct target target_of(const struct device *device)
{
	int sm = ((const struct host_device *)device)->ordinal;
	struct target d = cuda_description(sm ? sm : 90, sm == 0 || sm == 90);
	d.multiprocessors = NUM_SMS;
	return d;
}

static const int known[] = {90, 89, 87, 86, 80, 75};

static tl_status sim_open(int ordinal, struct device **out)
{
	bool found = ordinal == 0;
	for (u32 i = 0; i < ARRAY_LEN(known); i++)
		found |= known[i] == ordinal;
	if (!found)
		return failed(TL_ERR_DEVICE,
			      "the simulator has no sm_%d; there are sim:75, sim:80, sim:86, sim:87, sim:89 and sim:90",
			      ordinal);
	tl_status s = host_open(&sim_ops, true, out);
	if (!s) {
		((struct host_device *)*out)->ordinal = ordinal;
		(*out)->num_sms = NUM_SMS;
	}
	return s;
}

static void sim_info(struct device *device, tl_device_info *out)
{
	struct target t = target_of(device);
	host_info(device, out);
	snprintf(out->name, sizeof out->name, "simulated sm_%d%s", t.sm, t.arch_specific ? "a" : "");
	snprintf(out->target, sizeof out->target, "cuda:sm_%d%s", t.sm, t.arch_specific ? "a" : "");
	snprintf(out->spec, sizeof out->spec, "sim:%d", t.sm);
	out->shared_bytes = (u64)t.shared_bytes;
	out->capability = t.sm;
}

static tl_status count(int *out)
{
	*out = ARRAY_LEN(known);
	return TL_OK;
}

static tl_status at(int index, tl_device_info *out)
{
	sim_info(&(struct host_device){.device.ops = &sim_ops, .ordinal = known[index]}.device, out);
	return TL_OK;
}

/* The number of bytes that a launch passes as parameter i; *float_type: the type of a float parameter, or PT_NONE. */
static u64 passed_bytes(const struct image *im, u32 i, enum ptx_type *float_type)
{
	*float_type = PT_NONE;
	if (i < im->nslots) {
		const struct slot *s = &im->slots[i];
		if (s->dtype == DT_COUNT) /* a tensor map among the parameters, which the simulated driver took */
			return TENSOR_MAP_BYTES;
		if (!s->pointers)
			*float_type = s->dtype == DT_F32 ? PT_F32 : s->dtype == DT_F64 ? PT_F64 : PT_NONE;
		return s->pointers ? sizeof(void *) : (u64)dtype_bytes(s->dtype);
	}
	return i < im->nslots + (im->persistent ? GRID_PARAMS : 0) ? sizeof(u32) : TENSOR_MAP_BYTES;
}

/* Compares the parameters of the image and of its PTX. */
static tl_status check_parameters(const struct image *im, const struct ptx_kernel *k)
{
	u32 n = im->nslots + (im->persistent ? GRID_PARAMS : 0) + im->nmaps;
	if (k->nparams != n)
		return failed(TL_ERR_COMPILE, "%s: the image has %u parameters, but its PTX has %u", im->name, n,
			      k->nparams);
	for (u32 i = 0; i < n; i++) {
		const struct ptx_var *p = &k->params[i];
		enum ptx_type as_float;
		u64 bytes = passed_bytes(im, i, &as_float);
		bool is_float = p->type == PT_F32 || p->type == PT_F64;
		if (p->size != bytes || (is_float ? p->type : PT_NONE) != as_float)
			return failed(TL_ERR_COMPILE,
				      "%s: parameter %u of the image has %llu bytes%s, but in its PTX it has %llu%s",
				      im->name, i, (unsigned long long)bytes, as_float ? " of a float" : "",
				      (unsigned long long)p->size, is_float ? " of a float" : "");
	}
	return TL_OK;
}

static tl_status read_code(struct device *device, const struct device_load *l, struct sim_kernel *k)
{
	const struct image *im = l->image;
	struct target t = target_of(device);
	const char *error = NULL;
	k->image = im;
	k->sources = l->sources;
	k->module = ptx_read(&k->arena, im->code, im->code_bytes, &error);
	if (!k->module || !sim_decode(&k->arena, k->module, &error))
		return failed(TL_ERR_COMPILE, "%s: the simulator cannot run this PTX: %s", im->name, error);
	if (im->shared_bytes > t.shared_bytes)
		return failed(TL_ERR_COMPILE,
			      "%s needs %d bytes of shared memory per block, and sm_%d has %llu\n      = hint: use "
			      "smaller tiles or a smaller num_stages",
			      im->name, im->shared_bytes, t.sm, (unsigned long long)(u64)t.shared_bytes);
	if (im->num_warps > MAX_WARPS)
		return failed(TL_ERR_COMPILE, "%s: a block of %d warps; the limit of a GPU is %d", im->name,
			      im->num_warps, MAX_WARPS);
	for (u32 i = 0; i < k->module->nkernels; i++)
		if (!strcmp(k->module->kernels[i].name, im->name))
			k->ptx = &k->module->kernels[i];
	return k->ptx ? check_parameters(im, k->ptx)
		      : failed(TL_ERR_COMPILE, "%s: the image's PTX does not contain the kernel", im->name);
}

static void sim_unload(struct device *device, void *kernel)
{
	(void)device;
	struct sim_kernel *k = kernel;
	arena_free(&k->arena);
	free(k);
}

static void unload(void *kernel)
{
	sim_unload(NULL, kernel);
}

static tl_status sim_load(struct device *device, const struct device_load *l, void **out)
{
	struct sim_kernel *k = calloc(1, sizeof *k);
	if (!k)
		return failed(TL_ERR_MEMORY, "out of host memory");
	struct cleanup c;
	cleanup_push(&c, unload, k);
	tl_status s = read_code(device, l, k);
	cleanup_drop(&c);
	if (s)
		unload(k);
	else
		*out = k;
	return s;
}

static tl_status sim_resources(struct device *device, void *kernel, tl_resources *out)
{
	(void)device;
	const struct sim_kernel *k = kernel;
	*out = (tl_resources){.threads = 32 * k->image->num_warps,
			      .shared_bytes = (size_t)k->image->shared_bytes,
			      .blocks = k->image->cluster};
	return TL_OK;
}

/* Merges the variables of the module into the list of buffers. */
static void add_variables(struct arena *a, const struct ptx_module *m, struct launch *l, struct mem_range *ranges,
			  u8 *const *written)
{
	struct mem_range *all = arena_array(a, struct mem_range, l->nranges + m->nvars + 1);
	u8 **bits = arena_array(a, u8 *, l->nranges + m->nvars + 1);
	u32 n = 0;
	for (; n < l->nranges; n++) {
		all[n] = ranges[n];
		bits[n] = written[n];
	}
	for (u32 i = 0; i < m->nvars; i++) {
		const struct ptx_var *v = m->vars[i];
		char *base = (char *)(uintptr_t)v->offset;
		if (v->space != SPACE_GLOBAL && v->space != SPACE_CONST)
			continue;
		u32 at = n++;
		for (; at && all[at - 1].base > base; at--) {
			all[at] = all[at - 1];
			bits[at] = bits[at - 1];
		}
		all[at] = (struct mem_range){v->name, base, v->size};
		bits[at] = NULL;
	}
	l->ranges = all;
	l->written = bits;
	l->nranges = n;
}

static void add_counters(struct counters *to, const struct counters *from)
{
	to->executed += from->executed;
	to->bytes += from->bytes;
	to->transactions += from->transactions;
	to->conflicts += from->conflicts;
}

static void report_row(struct strbuf *out, const struct counters *c, const char *line, size_t len)
{
	typedef unsigned long long ull;
	sb_printf(out, "%12llu %14llu %12llu %10llu  %.*s\n", (ull)c->executed, (ull)c->bytes, (ull)c->transactions,
		  (ull)c->conflicts, (int)len, line);
}

/* Writes a row for each line of s that instructions come from. texts[i]: the text that instruction i comes from. */
static void report_lines(struct strbuf *out, const struct sim_kernel *k, const struct launch *l,
			 const struct source *const *texts, const struct source *s)
{
	for (u32 n = 0; n < s->nlines; n++) {
		struct counters sum = {0};
		u32 line = s->first_line + n;
		for (u32 i = 0; i < k->ptx->ncode; i++)
			if (texts[i] == s && k->ptx->code[i].src_line == line)
				add_counters(&sum, &l->counters[i]);
		const char *text = source_line(s, line);
		if (sum.executed) {
			sb_printf(out, "%4u ", line);
			report_row(out, &sum, text, strcspn(text, "\n"));
		}
	}
}

/* Writes the counters of a launch, by source line. The source of an image is not available. */
static void report(const struct device *device, const struct sim_kernel *k, const struct launch *l)
{
	struct counters total = {0};
	struct arena a = {0};
	struct strbuf out = {.arena = &a};
	const struct source **texts = arena_array(&a, const struct source *, k->ptx->ncode + 1);
	const struct source *last = NULL;
	bool several = false;
	sb_printf(&out, "line %12s %14s %12s %10s  %s, grid (%u, %u, %u), %u warps\n", "instructions", "global bytes",
		  "transactions", "conflicts", k->image->name, l->grid[0], l->grid[1], l->grid[2], l->num_warps);
	for (u32 i = 0; i < k->ptx->ncode; i++) {
		place_of(l, &k->ptx->code[i], &texts[i]);
		several |= last && texts[i] && texts[i] != last;
		last = texts[i] ? texts[i] : last;
		add_counters(&total, &l->counters[i]);
	}
	for (u32 n = 0; n < k->sources.len; n++) {
		u32 before = out.len;
		if (k->sources.at[n])
			report_lines(&out, k, l, texts, k->sources.at[n]);
		if (several && out.len > before) {
			const char *rows = arena_str(&a, out.at + before, out.len - before);
			out.len = before;
			sb_printf(&out, "%s:\n%s", k->sources.at[n]->name, rows);
		}
	}
	sb_puts(&out, " all ");
	report_row(&out, &total, "", 0);
	host_log(device, TL_LOG_REPORT, out.at, out.len);
	arena_free(&a);
}

/* Estimates the cycles of the launch from the counters, without stalls, for the busiest multiprocessor. An instruction
 * takes a quarter of a cycle, because four warps issue at once. A wavefront of shared memory takes one cycle. A sector
 * of global memory takes two, which is a multiprocessor's share of the memory bandwidth. */
static double cycles_of(const struct sim_kernel *k, const struct launch *l)
{
	double cycles = 0, blocks = (double)l->grid[0] * l->grid[1] * l->grid[2];
	for (u32 i = 0; i < k->ptx->ncode; i++) {
		const struct counters *c = &l->counters[i];
		cycles += (double)c->executed / 4 + (double)c->transactions * (c->bytes ? 2 : 1);
	}
	return cycles / blocks * ceil(blocks / NUM_SMS);
}

/* cycles: receives the estimated cycles; or NULL. */
static tl_status run(struct device *device, const struct device_launch *d, double *cycles)
{
	const struct sim_kernel *k = d->kernel;
	const char *seed = getenv("TL_SIM_SEED"), *max_steps = getenv("TL_SIM_MAX_STEPS");
	tl_status refused = host_check(d);
	if (refused)
		return refused;
	struct arena a = {0};
	struct launch l = {.module = k->module,
			   .kernel = k->ptx,
			   .num_warps = (u32)k->image->num_warps,
			   .dynamic_shared = (u64)k->image->shared_bytes,
			   .sources = k->sources};
	l.seed = seed ? strtoull(seed, NULL, 0) : 0;
	l.timing = (enum async_timing)(l.seed % 3);
	l.strict_proxies = getenv("TL_SIM_STRICT");
	l.max_steps = l.num_warps * (max_steps ? strtoull(max_steps, NULL, 0) : MOST_STEPS);
	memcpy(l.grid, d->grid, sizeof l.grid);
	if (d->pairs)
		memcpy(l.cluster, (u32[]){2, 1, 1}, sizeof l.cluster);
	struct cleanup c;
	u32 cluster = (u32)k->image->cluster;
	if (l.grid[0] > INT32_MAX / cluster)
		return failed(TL_ERR_ARGUMENT, "%s: a grid of %u programs along x, each on %u blocks, is too large",
			      k->image->name, l.grid[0], cluster);
	l.grid[0] *= cluster;
	cleanup_arena(&c, &a);
	char *params = arena_alloc(&a, k->ptx->param_bytes + 8);
	for (u32 i = 0; i < k->ptx->nparams; i++) { /* nparams equals d->nargs: check_parameters */
		const struct ptx_var *p = &k->ptx->params[i];
		memcpy(params + p->offset, p->size > 8 ? (const void *)(uintptr_t)d->args[i] : &d->args[i], p->size);
	}
	l.params = params;
	u8 *const *written;
	struct mem_range *ranges = host_ranges((struct host_device *)device, &a, &l.nranges, &written);
	l.open = host_name_ranges(k->image, d->args, ranges, l.nranges, NULL);
	l.guard = HOST_GUARD;
	l.threads = (u32)device->threads;
	l.independent = !k->image->waits;
	l.print = cpu_print;
	l.print_arg = device;
	struct source_place place = {0};
	l.place = &place;
	add_variables(&a, k->module, &l, ranges, written);
	bool counts = getenv("TL_SIM_REPORT");
	if (counts || cycles)
		l.counters = arena_array(&a, struct counters, k->ptx->ncode + 1);
	struct strbuf error = {.arena = &a};
	sb_printf(&error, "%s: ", k->image->name);
	u32 shape[3];
	static const tl_status statuses[] = {[SIM_OK] = TL_OK, [SIM_RACED] = TL_ERR_RACE, [SIM_FAULT] = TL_ERR_KERNEL};
	tl_status s = cluster_shape(&l, shape, &error) ? statuses[sim_run(&l, &error)] : TL_ERR_ARGUMENT;
	if (s) {
		failed_text(s, error.at);
		failed_at(&place);
	}
	if (counts)
		report(device, k, &l);
	if (cycles)
		*cycles = cycles_of(k, &l);
	cleanup_run(&c);
	return s;
}

static tl_status sim_launch(struct device *device, const struct device_launch *d)
{
	return run(device, d, NULL);
}

static tl_status sim_cost(struct device *device, const struct device_launch *d, double *cost)
{
	return run(device, d, cost);
}

static tl_status sim_tensor_map(struct device *device, const struct tensor_map_shape *b, void *out)
{
	static const u32 steps[TENSOR_MAP_RANK] = {1, 1, 1, 1, 1};
	int sm = target_of(device).sm, swizzle = tensor_swizzle_mode(b->swizzle);
	if (sm < 90)
		return failed(TL_ERR_DEVICE, "sm_%d has no tensor maps, which need sm_90", sm);
	if (b->swizzle &&
	    (b->swizzle & (b->swizzle - 1) || swizzle < TENSOR_SWIZZLE_32B || swizzle > TENSOR_SWIZZLE_128B))
		return failed(TL_ERR_ARGUMENT, "tensor map: a swizzle of %u bytes: 32, 64 or 128", b->swizzle);
	struct arena a = {0};
	struct strbuf error = {.arena = &a};
	sb_puts(&error, "tensor map: ");
	tl_status s = TL_OK;
	if (!tensor_map_encode(out, tensor_map_type(b->dtype), b->rank, b->base, b->sizes, b->strides, b->box, steps, 0,
			       swizzle, 0, b->fills_nan ? TENSOR_FILL_NAN : TENSOR_FILL_ZERO, &error))
		s = failed_text(TL_ERR_ARGUMENT, error.at);
	arena_free(&a);
	return s;
}

const struct device_ops sim_ops = {
	.name = "sim",
	.stages = " ttir ttgir llir ptx remarks calls accesses schedule metadata ",
	.numbered = true,
	.target = target_of,
	.queue = &host_queue,
	.count = count,
	.at = at,
	.open = sim_open,
	.close = host_close,
	.info = sim_info,
	.alloc = host_alloc,
	.free = host_free,
	.load = sim_load,
	.unload = sim_unload,
	.resources = sim_resources,
	.launch = sim_launch,
	.time = host_time,
	.cost = sim_cost,
	.synchronize = host_synchronize,
	.allocation = host_allocation,
	.tensor_map = sim_tensor_map,
};
