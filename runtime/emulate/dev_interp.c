/* The device of the reference interpreter: host memory, with checks.
 *
 * A launch runs on the calling thread (the interpreter adds threads) and has finished when it returns. The interpreter
 * knows every buffer, so the error of an access outside a buffer names the parameter.
 *
 * $TL_INTERP_CHECK makes a launch check the compiler too: see every_pass.h. */
#include <string.h>

#include "interp/interp.h"
#include "runtime/device/inline_asm_run.h"
#include "runtime/image/error.h"
#include "runtime/emulate/every_pass.h"
#include "runtime/device/host_memory.h"

struct interp_kernel {
	const struct image *image;
	const struct interp_program *program;
	const struct every_pass *passes; /* set if the launch checks the compiler; `program` is unused then */
};

static tl_status interp_open(int ordinal, struct device **out)
{
	(void)ordinal;
	return host_open(&interp_ops, false, out);
}

static tl_status count(int *out)
{
	*out = 1;
	return TL_OK;
}

static tl_status at(int index, tl_device_info *out)
{
	(void)index;
	host_info(&(struct device){.ops = &interp_ops}, out);
	return TL_OK;
}

/* --- kernels ------------------------------------------------------------------------------------------------- */

static bool interp_compile(struct device *device, const struct build *b, struct compiled *out)
{
	(void)device;
	if (every_pass_wanted() && !b->stage)
		return every_pass_compile(b, out);
	const struct compile_options o = {.codegen = b->codegen, .want_calls = b->stage != NULL};
	out->kernel = compile_ir(b->unit, b->func, b->args, &o);
	if (out->kernel && b->stage) {
		struct strbuf sb = {.arena = &b->unit->arena};
		kernel_print(out->kernel, &sb);
		out->ttir = sb.at;
	}
	return out->kernel;
}

static tl_status interp_load(struct device *device, const struct device_load *l, void **out)
{
	(void)device;
	struct arena *a = &l->unit->arena;
	struct interp_kernel *k = arena_new(a, struct interp_kernel);
	k->image = l->image;
	k->passes = l->compiled->for_load;
	if (!k->passes)
		k->program = interp_prepare(a, l->compiled->kernel);
	*out = k;
	return TL_OK;
}

static tl_status interp_launch(struct device *device, const struct device_launch *l)
{
	const struct interp_kernel *k = l->kernel;
	tl_status refused = host_check(l);
	if (refused)
		return refused;
	struct arena a = {0};
	struct cleanup c;
	cleanup_arena(&c, &a);
	u32 n;
	struct mem_range *ranges = host_ranges((struct host_device *)device, &a, &n, NULL);
	struct interp_launch launch = {.args = l->args, .ranges = ranges, .nranges = n};
	memcpy(launch.grid, l->grid, sizeof launch.grid);
	const struct mem_range **homes = arena_array(&a, const struct mem_range *, k->image->nslots + 1);
	launch.open = host_name_ranges(k->image, l->args, ranges, n, homes);
	launch.guard = HOST_GUARD;
	launch.threads = device->threads;
	launch.print = cpu_print;
	launch.print_arg = device;
	launch.assembly = assembly_run;
	struct source_place place = {0};
	launch.place = &place;
	launch.homes = homes;
	struct strbuf error = {.arena = &a};
	tl_status s = TL_OK;
	if (!(k->passes ? every_pass_run(k->passes, &launch, &error) : interp_run(k->program, &launch, &error)))
		s = failed_text(TL_ERR_KERNEL, error.at ? error.at : "the kernel failed");
	if (s)
		failed_at(&place);
	cleanup_run(&c);
	return s;
}

const struct device_ops interp_ops = {
	.name = "interp",
	.stages = " ttir calls accesses ",
	.keeps_unit = true,
	.queue = &host_queue,
	.count = count,
	.at = at,
	.open = interp_open,
	.close = host_close,
	.info = host_info,
	.alloc = host_alloc,
	.free = host_free,
	.compile = interp_compile,
	.load = interp_load,
	.launch = interp_launch,
	.time = host_time,
	.synchronize = host_synchronize,
	.allocation = host_allocation,
};
