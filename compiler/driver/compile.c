#include "driver/compile.h"

#include <limits.h>
#include <stdlib.h>
#include <time.h>

#include "support/forked.h"
#include "driver/passes.h"
#include "driver/suggest_config.h"
#include "cpu/cpu.h"
#include "gpu/codegen/nvptx.h"
#include "ir/launch_abi.h"
#include "driver/launch_metadata.h"
#include "analysis/axis.h"
#include "analysis/divisors.h"
#include "ir/pass.h"
#include "analysis/ranges.h"
#include "analysis/undefined.h"
#include "transform/wide_offsets.h"
#include "gpu/gpu_passes.h"
#include "gpu/pipeline/pipeline.h"
#include "gpu/pipeline/resource_use.h"
#include "gpu/smem/model_checker.h"
#include "llvm/emit_object.h"
#include "llvm/emit_ptx.h"

/* --- units --------------------------------------------------------------------------------------------------- */

/* Holds the core of the standard library, which every module includes. It is parsed once in a process. */
static struct unit standard;

enum { TEXT_FILE = 2 /* source number of a unit's own file, after the standard library */ };

static double milliseconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void unit_init(struct unit *u, const struct interner *names)
{
	const struct map empty = {.arena = &u->arena};
	*u = (struct unit){.names = {.arena = &u->arena, .parent = names}, .imported = empty, .given = empty,
			   .packages = empty, .given_names = empty};
	diags_init(&u->diags, &u->arena);
	ir_context_init(&u->ir, &u->arena, &u->names, &u->diags);
}

static void parse_standard(void)
{
	struct unit *u = &standard;
	unit_free(u); /* frees a first attempt that ran out of memory */
	unit_init(u, NULL);
	u->std = library_core(&u->arena, &u->names, &u->diags);
}

/* Appends the sources of `from` to those of u, so that locations are valid in both. */
static void share_sources(struct unit *u, const struct unit *from)
{
	for (u32 i = u->diags.sources.len; i < from->diags.sources.len; i++)
		vec_push(&u->arena, &u->diags.sources, from->diags.sources.at[i]);
}

static u16 add_source(struct unit *u, const struct unit_source *s)
{
	struct source part = {.name = s->file, .text = s->text, .len = s->len, .first_line = s->first_line,
			      .indent = s->indent};
	if (part.len >= 3 && !memcmp(part.text, "\xEF\xBB\xBF", 3)) /* a byte order mark */
		part.text += 3, part.len -= 3;
	return diags_add_part(&u->diags, &part);
}

/* Makes a module without a text for each package that contains the source `name`: for "a.b.c" the packages "a" and
 * "a.b". */
static void add_packages(struct unit *u, const char *name)
{
	for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.')) {
		const char *package = intern(&u->names, name, (size_t)(dot - name));
		if (map_get(&u->packages, package))
			continue;
		struct module *m = arena_new(&u->arena, struct module);
		const struct map empty = {.arena = &u->arena};
		u16 file = diags_add_source(&u->diags, package, "", 0);
		*m = (struct module){file, .by_name = empty, .definitions = empty};
		map_put(&u->packages, package, m);
		map_put(&u->given_names, m, (void *)(uintptr_t)package);
	}
}

static const struct module *parse_source(struct unit *u, const struct unit_source *s, u16 file)
{
	struct module *m = parse_module(&u->arena, &u->names, &u->diags, file);
	if (!s->name)
		return m;
	const char *name = intern_str(&u->names, s->name);
	map_put(&u->given, name, m);
	map_put(&u->given_names, m, (void *)(uintptr_t)name);
	add_packages(u, name);
	return m;
}

bool unit_open(struct unit *u, const char *name, const char *text, size_t len)
{
	return unit_open_sources(u, &(struct unit_source){.file = name, .first_line = 1, .text = text, .len = len}, 1);
}

bool unit_open_sources(struct unit *u, const struct unit_source *sources, size_t n)
{
	static struct once parsed = ONCE_INIT;
	double start = milliseconds();
	once(&parsed, parse_standard);
	unit_init(u, &standard.names);
	share_sources(u, &standard);
	for (size_t i = 0; i < n; i++)
		add_source(u, &sources[i]);
	u->std = standard.std;
	if (is_ir_text(sources[0].file)) {
		u->parsed = kernel_parse(&u->ir, TEXT_FILE, text_library_new(&u->ir, u->std));
		return !u->diags.nerrors;
	}
	for (size_t i = 0; i < n; i++) {
		const struct module *m = parse_source(u, &sources[i], (u16)(TEXT_FILE + i));
		u->module = i ? u->module : m;
	}
	u->parse_ms = milliseconds() - start;
	return !u->diags.nerrors;
}

bool unit_again(struct unit *u, const struct unit *from)
{
	const struct source *s = from->diags.sources.at[TEXT_FILE];
	if (from->parsed) /* passes change parsed IR, so the text is parsed again */
		return unit_open_sources(u, &(struct unit_source){.file = s->name, .first_line = s->first_line,
								  .indent = s->indent, .text = s->text, .len = s->len},
					 1);
	unit_init(u, &from->names);
	share_sources(u, from);
	u->std = from->std;
	u->module = from->module;
	u->given = from->given;
	u->packages = from->packages;
	u->given_names = from->given_names;
	return true;
}

void unit_free(struct unit *u)
{
	struct arena a = u->arena;
	arena_free(&a);
}

static void set_offsets(struct kernel *k, const struct compile_options *o)
{
	if (o->codegen.sizes == BOUNDS_WIDE)
		widen_offsets(k);
	else
		k->narrow_offsets = has_narrow_offsets(k);
}

/* Removes operations for debuggers (IR_DEBUG_*): IR text may contain them although the target has no debug
 * information. */
static void remove_marks(struct block *b)
{
	for (struct op *o = b->first, *next; o; o = next) {
		next = o->next;
		for (u32 i = 0; i < o->nblocks; i++)
			remove_marks(o->blocks[i]);
		if (op_is_debug(o))
			op_erase(o);
	}
}

struct kernel *compile_ir(struct unit *u, const struct func *func, const struct arg_spec *args,
			  const struct compile_options *o)
{
	int num_warps = codegen_options_complete(o->codegen).num_warps;
	if (u->parsed && !u->parsed->target)
		u->parsed->num_warps = num_warps;
	if (u->parsed) {
		if (!o->target.lines)
			remove_marks(u->parsed->body);
		kernel_note_uses(u->parsed);
		if (!u->parsed->target)
			set_offsets(u->parsed, o);
		return u->parsed;
	}
	u->calls = (struct strbuf){.arena = &u->arena};
	sb_puts(&u->calls, "");
	struct eval_request req = {.module = u->module,
				   .std = u->std,
				   .func = func,
				   .args = args,
				   .imports = {import_module, u},
				   .calls = o->want_calls ? &u->calls : NULL,
				   .remarks = o->remarks,
				   .debug = o->codegen.debug && !o->codegen.wraps,
				   .lines = o->target.lines,
				   .num_warps = num_warps,
				   .capability = target_capability(&o->target)};
	struct kernel *k = eval_kernel(&u->ir, &req);
	if (k) {
		k->num_warps = num_warps;
		kernel_note_uses(k);
		set_offsets(k, o);
	}
#ifndef NDEBUG
	if (k)
		kernel_verify(k, "eval", NULL);
#endif
	return k;
}

void unit_tuning(struct unit *u, const struct func *func, const struct arg_spec *args, int capability,
		 enum decorators_of of, struct tuning *out)
{
	struct eval_request req = {.module = u->module,
				   .std = u->std,
				   .func = func,
				   .args = args,
				   .imports = {import_module, u},
				   .capability = capability,
				   .of = of};
	eval_decorators(&u->ir, &req, out);
}

bool unit_divisors(struct unit *u, const struct func *func, const struct arg_spec *args,
		   const struct compile_options *o, i16 *at, u32 n)
{
	struct kernel *k = compile_ir(u, func, args, o);
	for (u32 i = 0; i < n; i++)
		at[i] = DIVISOR_NONE;
	if (!k)
		return false;
	i16 *most = arena_array(&u->arena, i16, k->nparams + 1);
	useful_divisors(k, most);
	for (u32 i = 0; i < k->nparams; i++)
		if (k->params[i].leaf < n)
			at[k->params[i].leaf] = most[i];
	return true;
}

/* --- running passes ------------------------------------------------------------------------------------------ */

struct run {
	struct unit *u;
	const struct compile_options *o;
	struct gpu_limits limits;
	struct pass_state s;
	bool stopped; /* by --stop-after */
	/* passes up to this one are skipped, as they ran before the IR text was written; NULL: none, or no further
	 * one */
	const char *start_after;
};

static void after_step(struct run *r, const char *name, double start)
{
	const struct compile_options *o = r->o;
	if (o->time)
		fprintf(o->print_to, "%-20s %8.3f ms\n", name, milliseconds() - start);
	if (o->print_after && (!strcmp(o->print_after, name) || !strcmp(o->print_after, "all"))) {
		fprintf(o->print_to, "// after %s\n", name);
		kernel_dump(r->s.k, o->print_to);
	}
	r->stopped |= o->stop_after && !strcmp(o->stop_after, name);
}

static void tell(const struct run *r, const char *name)
{
	if (r->o->after_pass)
		r->o->after_pass(r->o->after_pass_arg, name, r->s.k);
}

static void analyze(struct run *r, u32 needs)
{
	if (needs && !r->s.ranges)
		r->s.ranges = ranges_analyze(r->s.k);
	if (needs == ANALYSIS_AXIS && !r->s.axis)
		r->s.axis = axis_analyze(r->s.k, r->s.ranges);
}

static bool run_passes(struct run *r, u32 groups)
{
	for (u32 i = 0; i < npasses && !r->stopped; i++) {
		const struct pass *p = &passes[i];
		if (!(p->groups & groups))
			continue;
		if (r->start_after) {
			if (!strcmp(r->start_after, p->name))
				r->start_after = NULL;
			continue;
		}
		double start = milliseconds();
		struct crash_scope scope = {.what = p->name, .dump = kernel_dump, .arg = r->s.k};
		crash_enter(&scope);
		analyze(r, p->needs);
		p->run(&r->s);
		if (!p->keeps_analyses)
			r->s.ranges = NULL, r->s.axis = NULL;
#ifndef NDEBUG
		kernel_verify(r->s.k, p->name, NULL);
		gpu_ir_verify(&r->s, pass_stage(i), p->name, NULL);
#endif
		crash_leave(&scope);
		after_step(r, p->name, start);
		if (r->s.failed)
			return false;
		if (groups != PASSES_TTGIR)
			tell(r, p->name);
	}
	return true;
}

static const char *print_kernel(struct unit *u, const struct kernel *k)
{
	struct strbuf sb = {.arena = &u->arena};
	kernel_print(k, &sb);
	return sb.at;
}

static const char *size_name(struct arena *a, const struct kernel *k, int size)
{
	return size <= SIZE_PROGRAMS ? arena_printf(a, "programs along %c", "xyz"[SIZE_PROGRAMS - size])
				     : arena_ascii(a, k->params[size].name);
}

static const char *product_text(struct arena *a, const struct kernel *k, const struct launch_product *p)
{
	struct strbuf sb = {.arena = a};
	if (p->times != 1 || !p->nparams)
		sb_printf(&sb, "%lld", (long long)p->times);
	for (int i = 0; i < p->nparams; i++)
		sb_printf(&sb, "%s%s", sb.len ? " * " : "", k->params[p->params[i]].name);
	if (p->plus)
		sb_printf(&sb, " + %lld", (long long)p->plus);
	return sb.at;
}

/* Prints the comment of directives() on tensor map number i, of a tensor that a parameter points to. */
static void describe_tensor(struct strbuf *sb, const struct kernel *k, u32 i)
{
	const struct tensor_map_param *m = &k->cuda.maps[i];
	sb_printf(sb,
		  "%s// parameter %u: tensor map of uint%d: address %s, sizes %s and %s%s, stride %s bytes%s, box %d, "
		  "%d%s, swizzle %d bytes",
		  sb->len ? "\n" : "", k->nparams + i, m->elem_bytes * 8, k->params[m->tensor].name,
		  product_text(sb->arena, k, &m->sizes[0]), product_text(sb->arena, k, &m->sizes[1]),
		  m->moved ? ", 2^31 and 2^31" : "", product_text(sb->arena, k, &m->distance),
		  m->moved ? arena_printf(sb->arena, ", %d and 2^%d", 1 << TENSOR_MAP_LOG2_UNIT, TENSOR_MAP_LOG2_PAGE)
			   : "",
		  m->box[0], m->box[1], m->moved ? ", 1, 1" : "", m->swizzle);
}

/* The cluster directive of the PTX, and comments on its additional parameters, for hosts that launch the kernel without
 * libtl. */
static const char *directives(struct arena *a, const struct kernel *k)
{
	struct strbuf sb = {.arena = a};
	if (k->cuda.cluster > 1)
		sb_printf(&sb,
			  ".explicitcluster\n.reqnctapercluster %d, 1, 1\n// each program runs on %d blocks: the grid "
			  "along x is %d times the number of programs",
			  k->cuda.cluster, k->cuda.cluster, k->cuda.cluster);
	if (k->cuda.persistent)
		sb_printf(&sb,
			  "// parameters %u to %u: number of programs along each axis; number of blocks along x: the "
			  "smaller of the number of multiprocessors and the number of programs",
			  k->nparams - GRID_PARAMS, k->nparams - 1);
	if (k->cuda.pairs)
		sb_printf(&sb, "%s// faster if every two blocks along x are launched as a cluster", sb.len ? "\n" : "");
	for (u32 i = 0; i < k->limits.n; i++) {
		const struct size_limit *l = &k->limits.at[i];
		sb_printf(&sb, "%s// for launches with %s", sb.len ? "\n" : "", size_name(a, k, l->a));
		if (l->b != SIZE_NONE)
			sb_printf(&sb, " * %s%s", size_name(a, k, l->b),
				  l->least > 1 ? arena_printf(a, ", each at least %d,", l->least) : "");
		sb_printf(&sb, " from 0 to %lld", (long long)l->most);
	}
	for (u32 i = 0; i < k->cuda.nmaps; i++) {
		const struct tensor_map_param *m = &k->cuda.maps[i];
		if (m->tensor >= 0) {
			describe_tensor(&sb, k, i);
			continue;
		}
		sb_printf(&sb,
			  "%s// parameter %u: tensor map of uint%d: address 0, sizes 2^31 each, strides %s, %d and "
			  "2^%d bytes, box %d, %d, %d, 1, swizzle %d bytes",
			  sb.len ? "\n" : "", k->nparams + i, m->elem_bytes * 8, product_text(a, k, &m->distance),
			  m->swizzle, TENSOR_MAP_LOG2_PAGE, m->box[0], m->box[1], m->box[2], m->swizzle);
	}
	return sb.at;
}

static bool is_wgmma(const struct op *o)
{
	return o->code == IR_WARP_GROUP_DOT;
}

/* Whether an element of the result depends on other elements. */
static bool combines_elements(const struct op *o)
{
	return o->nblocks || op_is_dot(o) || o->code == IR_GATHER || o->code == IR_HISTOGRAM;
}

/* Emits PTX, and LLVM IR if requested, from the session's module. */
static bool emit_cuda(struct run *r, struct session *session, struct compiled *out, const char **error)
{
	const struct compile_options *o = r->o;
	const struct kernel *k = r->s.k;
	struct ptx_kernel facts = {.loops = block_has(k->body, op_is_loop),
				   .in_flight = block_has(k->body, is_wgmma),
				   .threads = 32 * warps_of_block(k),
				   .elementwise = !k->cuda.maxnreg && !block_has(k->body, combines_elements),
				   .loads_ahead = k->cuda.maxnreg ? 0 : (int)registers_for_loads_ahead(&r->s)};
	const char *ptx = emit_ptx(session, &o->target, &facts, o->want_llir ? &out->llir : NULL,
				   o->want_code ? &out->code_len : NULL, error);
	if (ptx && o->want_code && (k->cuda.cluster > 1 || k->cuda.persistent || k->cuda.nmaps || k->limits.n))
		ptx = ptx_with_directives(&r->u->arena, ptx, &out->code_len, directives(&r->u->arena, k));
	out->code = o->want_code ? ptx : NULL;
	return ptx;
}

static bool emit_cpu(struct run *r, struct session *session, struct compiled *out, const char **error)
{
	const struct compile_options *o = r->o;
	if (!optimize_for_cpu(session, &o->target, error))
		return false;
	if (o->want_llir)
		out->llir = session_text(session);
	if (o->want_asm)
		out->assembly = emit_for_cpu(session, LLVMAssemblyFile, NULL, error);
	if (o->want_code)
		out->code = emit_for_cpu(session, LLVMObjectFile, &out->code_len, error);
	return !*error;
}

static bool generate(struct run *r, struct compiled *out)
{
	const struct compile_options *o = r->o;
	bool cuda = o->target.kind == TARGET_CUDA;
	const char *error = NULL;
	if (cuda)
		warn_of_amount(&r->s);
	double start = milliseconds();
	struct crash_scope scope = {.what = "lower", .dump = kernel_dump, .arg = r->s.k};
	crash_enter(&scope);
	analyze(r, ANALYSIS_AXIS);
	struct session session;
	struct fork_section section;
	fork_section_begin(&section);
	session_open(&session, &r->u->arena, r->s.k->name);
	if (cuda)
		lower_kernel(&r->s, session.mod);
	else
		out->scratch_bytes = cpu_lower(&r->s, session.mod);
	after_step(r, "lower", start);
	if (r->u->diags.nerrors) {
		session_close(&session);
		fork_section_end(&section);
		crash_leave(&scope);
		return false;
	}
	start = milliseconds();
	bool good = cuda ? emit_cuda(r, &session, out, &error) : emit_cpu(r, &session, out, &error);
	after_step(r, "llvm", start);
	session_close(&session);
	fork_section_end(&section);
	crash_leave(&scope);
	if (session.unoptimized)
		diag(&r->u->diags, W_UNOPTIMIZED, r->s.k->loc, session.unoptimized, cuda ? "loops" : "instructions");
	if (*session.warning)
		diag(&r->u->diags, W_LLVM, r->s.k->loc, session.warning);
	if (!good)
		diag(&r->u->diags, E_LLVM, r->s.k->loc, error);
	out->target = o->target;
	out->waits = block_has(r->s.k->body, op_may_wait);
	return good;
}

/* --- starting from text -------------------------------------------------------------------------------------- */

int target_of_text(const struct kernel *k)
{
	return k->target ? (int)strtol(k->target + strlen("cuda:"), NULL, 10) : 0;
}

static void find_tile(struct op *o, void *arg)
{
	const struct type **found = arg;
	for (u32 i = 0; i < o->nresults; i++)
		if (type_is_tensor(o->results[i].type))
			*found = o->results[i].type;
}

/* For IR text: checks that it can be the IR after the pass that --start-after names: whether its tiles have layouts,
 * and its target. */
static bool check_start(struct run *r, const struct kernel *k)
{
	const struct target *target = &r->o->target;
	const char *after = r->o->start_after;
	int tile = pass_index(tile_passes(target), after ? after : "");
	int start = pass_index(gpu_passes(target), after ? after : "prove-buffers");
	struct diags *d = &r->u->diags;
	const struct type *any = NULL;
	if (!k->target) {
		r->start_after = tile >= 0 ? after : NULL;
		if (after && tile < 0)
			diag(d, E_START_AFTER, k->loc, after, "tile IR without a target (TTIR)");
		return !after || tile >= 0;
	}
	walk(k->body, find_tile, &any);
	if (target_of_text(k) != r->o->target.sm) {
		diag(d, E_TEXT_TARGET, k->loc, k->target, r->o->target.sm);
		return false;
	}
	if (k->cuda.cluster > 1 && !r->o->target.has_clusters) {
		diag(d, E_TEXT_CLUSTER, k->loc, k->cuda.cluster, k->target);
		return false;
	}
	if (start < 0 || (any && (pass_stage((u32)start) >= GPU_LAID_OUT) != (any->layout != NULL))) {
		diag(d, E_START_AFTER, k->loc, after ? after : "barriers",
		     any && !any->layout ? "IR without layouts" : "laid-out GPU IR (TTGIR)");
		return false;
	}
	r->start_after = passes[start].name;
	return true;
}

/* Initializes r->s, the pass state, for the evaluated or parsed kernel. */
static bool begin(struct run *r, struct kernel *k, struct compiled *out)
{
	const struct compile_options *o = r->o;
	r->s = (struct pass_state){.k = k,
				   .ctx = &r->u->ir,
				   .diags = &r->u->diags,
				   .remarks = o->remarks,
				   .target = &o->target,
				   .options = o->codegen,
				   .cuda.limits = r->limits};
	out->kernel = k;
	k->sizes = o->codegen.sizes;
	if (o->codegen.sizes && o->remarks)
		diag(&r->u->diags, R_ANY_SIZE, k->loc,
		     o->codegen.sizes == BOUNDS_WIDE ? "address offsets are computed in 64 bits"
					     : "no access relies on an index that is not proved to fit 32 bits");
	if (!check_start(r, k))
		return false;
	if (!k->target) {
		k->num_warps = out->num_warps;
		k->cuda.cluster = 1;
		k->cuda.maxnreg = o->codegen.maxnreg;
		k->cuda.no_fp_fusion = o->codegen.fp_fusion == FP_FUSION_OFF;
	}
	r->s.num_warps = k->num_warps;
	out->cluster = k->cuda.cluster;
	if (k->target) {
		enum gpu_stage stage = pass_stage((u32)pass_index(PASSES_TTGIR, r->start_after));
		analyze(r, ANALYSIS_AXIS);
		if (!gpu_ir_verify(&r->s, stage, NULL, &r->u->diags))
			return false;
		measure_shared(&r->s, stage >= GPU_ALLOCATED);
		struct unproved u = {0};
		if (!r->s.failed && stage >= GPU_SYNCHRONIZED)
			u = checker_prove(&r->s);
		if (!gpu_ir_report(&r->s, NULL, &r->u->diags, u.op, u.what))
			return false;
	}
	return !r->s.failed;
}

/* --- compiling ----------------------------------------------------------------------------------------------- */

static bool run_gpu_passes(struct run *r, struct compiled *out)
{
	struct unit *u = r->u;
	struct kernel *k = r->s.k;
	const struct compile_options *o = r->o;
	if (!k->target)
		k->target = arena_printf(&u->arena, "cuda:%d", o->target.sm);
	u->schedules = (struct strbuf){.arena = &u->arena};
	sb_puts(&u->schedules, "");
	r->s.cuda.schedules = o->want_schedules ? &u->schedules : NULL;
	bool done = run_passes(r, PASSES_TTGIR);
	out->shared_bytes = k->shared_bytes;
	if (!done)
		return false;
	out->cluster = k->cuda.cluster;
	out->num_warps = warps_of_block(k);
	if (o->want_ttgir)
		out->ttgir = print_kernel(u, k);
	if (o->launch && !r->stopped) {
		analyze(r, ANALYSIS_AXIS);
		out->estimate = estimate_launch(&r->s, o->launch);
	}
	return true;
}

static bool compile_within(struct run *r, const struct func *func, const struct arg_spec *args, struct compiled *out)
{
	struct unit *u = r->u;
	const struct compile_options *o = r->o;
	double start = milliseconds();
	*out = (struct compiled){.num_warps = o->codegen.num_warps};
	struct kernel *k = compile_ir(u, func, args, o);
	if (!k || !begin(r, k, out))
		return false;
	if (!u->parsed)
		warn_of_undefined(k, &u->diags);
	if (o->time)
		fprintf(o->print_to, "%-20s %8.3f ms\n", "parse", u->parse_ms);
	after_step(r, "eval", start);
	tell(r, "eval");
	if (!k->target && !run_passes(r, tile_passes(&o->target)))
		return false;
	if (o->want_ttir)
		out->ttir = print_kernel(u, k);
	bool generates = o->want_llir || o->want_asm || o->want_code || o->want_metadata;
	if (r->stopped || !(o->want_ttgir || o->want_schedules || o->launch || generates))
		return true;
	if (gpu_passes(&o->target) && !run_gpu_passes(r, out))
		return false;
	if (is_foreign(k) && !r->stopped) {
		collect_tensor_maps(k);
		out->no_maps = abi_fill_maps(k);
		out->metadata = launch_metadata(&u->arena, k, &o->codegen);
		if (out->no_maps)
			return true;
	}
	return r->stopped || !generates || generate(r, out);
}

/* Whether the pipeline pass runs in this compilation (it does not for IR text written after it). */
static bool is_pipelined_here(const struct unit *u, const struct compile_options *o)
{
	u32 groups = gpu_passes(&o->target);
	const char *after = o->start_after ? o->start_after : u->parsed && u->parsed->target ? "barriers" : "";
	return pass_index(groups, after) < pass_index(groups, "pipeline");
}

/* Tightens the limits after the attempt `failed`. False if no further attempt is possible. */
static bool limit_more(const struct run *failed, struct gpu_limits *l)
{
	const struct cuda_state *c = &failed->s.cuda;
	if (c->unproved.op)
		return l->pipelining++ < PIPELINE_NONE;
	if (!c->too_large || failed->o->no_advice)
		return false;
	if (c->operands_moved && !l->operands_in_place)
		return l->operands_in_place = true;
	if (c->stages == 2 && !l->few_buffers)
		l->few_buffers = true;
	else if (c->stages <= 2 && !l->few_operands && failed->o->target.has_wgmma)
		l->few_operands = true;
	else if (c->stages <= 1 && !l->no_warpgroups && failed->o->target.has_wgmma)
		l->no_warpgroups = true;
	else
		l->most_stages = c->stages - 1;
	return l->most_stages > 0;
}

static void remark_limits(const struct run *r, const struct unproved *why, i32 bytes)
{
	static const char *const without[] = {
		[PIPELINE_CP_ASYNC] =
			"without TMA, without asynchronous dots, and without buffers shared by consecutive loops",
		[PIPELINE_NONE] = "without pipelining",
	};
	const struct compile_options *o = r->o;
	const struct gpu_limits *l = &r->limits;
	struct diags *d = &r->u->diags;
	if (o->remarks && l->pipelining)
		diag(d, R_UNPROVED, gpu_ir_loc(why->op), op_info[why->op->code].name, why->what,
		     without[l->pipelining]);
	if (o->remarks && l->operands_in_place)
		diag(d, R_OPERANDS_IN_PLACE, r->s.k->loc, bytes, o->target.shared_bytes);
	if (o->remarks && l->few_buffers && l->most_stages > 1)
		diag(d, R_FEW_BUFFERS, r->s.k->loc, bytes, o->target.shared_bytes);
	if (o->remarks && l->no_warpgroups)
		diag(d, R_NO_WARPGROUPS, r->s.k->loc, bytes, o->target.shared_bytes);
	else if (o->remarks && l->few_operands)
		diag(d, R_FEW_OPERANDS, r->s.k->loc, bytes, o->target.shared_bytes);
	if (o->remarks && l->most_stages < INT_MAX)
		diag(d, R_FEWER_STAGES, r->s.k->loc, l->most_stages, PLURAL(l->most_stages), bytes,
		     o->target.shared_bytes);
}

/* The options are complete: no number that has a default is 0.
 *
 * If the model checker cannot prove that the multi-buffers in shared memory are synchronised (no copy overwrites a
 * buffer that may still be read, no read comes before its copy), or shared memory does not suffice, the kernel is
 * compiled again within tighter limits. The messages are those of the last attempt or, if no attempt succeeds, of the
 * first attempt. */
static bool compile_complete(struct unit *u, const struct func *func, const struct arg_spec *args,
			     const struct compile_options *o, struct compiled *out)
{
	struct gpu_limits limits = {PIPELINE_ALL, INT_MAX, false, false, false, false};
	struct diags before = diags_copy(&u->diags);
	bool again = is_pipelined_here(u, o);
	struct run first = {.u = u, .o = o, .limits = limits}, now;
	bool good = compile_within(&first, func, args, out);
	struct diags said = u->diags;
	struct compiled failed = *out;
	struct unproved why = first.s.cuda.unproved;
	for (now = first; !good && again && limit_more(&now, &limits);) {
		struct diags fresh = diags_copy(&before);
		diags_restore(&u->diags, &fresh);
		if (u->parsed) /* passes changed it */
			u->parsed = kernel_parse(&u->ir, TEXT_FILE, text_library_new(&u->ir, u->std));
		now = (struct run){.u = u, .o = o, .limits = limits};
		good = compile_within(&now, func, args, out);
		why = now.s.cuda.unproved.op ? now.s.cuda.unproved : why;
	}
	if (good) {
		remark_limits(&now, &why, failed.shared_bytes);
		return true;
	}
	diags_restore(&u->diags, &said);
	*out = failed;
	if (first.s.cuda.too_large && !o->no_advice)
		advise_fit(u, u->parsed ? NULL : func, args, o, failed.shared_bytes);
	return gpu_ir_report(&first.s, NULL, &u->diags, why.op, why.what) && good;
}

/* The kernel of IR text again, for descriptors that are passed in another form. */
static bool read_again(struct unit *u, enum descriptor_form form)
{
	u->ir.abi = form;
	if (u->parsed)
		u->parsed = kernel_parse(&u->ir, TEXT_FILE, text_library_new(&u->ir, u->std));
	return !u->parsed || !u->diags.nerrors;
}

/* Compiles for Triton's launcher: with tensor maps if they suffice for all descriptors, else without. */
static bool compile_foreign(struct unit *u, const struct func *func, const struct arg_spec *args,
			    struct compile_options *o, struct compiled *out)
{
	struct loc at = u->parsed ? u->parsed->loc : func->loc;
	bool cuda = o->target.kind == TARGET_CUDA, laid_out = u->parsed && u->parsed->target;
	if (!cuda || laid_out) {
		diag(&u->diags, E_FOREIGN, at,
		     cuda ? "this IR has been laid out for libtl's launches" : "it launches kernels on GPUs only");
		return false;
	}
	struct diags before = diags_copy(&u->diags);
	o->codegen = codegen_options_foreign(o->codegen);
	bool maps = o->target.has_tensor_copy;
	o->codegen.no_tma = !maps;
	if (!read_again(u, maps ? DESCRIPTORS_MAPS : DESCRIPTORS_PARTS) || !compile_complete(u, func, args, o, out))
		return false;
	const char *why = out->no_maps;
	if (why) {
		diags_restore(&u->diags, &before);
		o->codegen.no_tma = true;
		if (!read_again(u, DESCRIPTORS_PARTS) || !compile_complete(u, func, args, o, out))
			return false;
	}
	const struct kernel *k = out->kernel; /* conditions of a launch, which nobody would check */
	tl_assert(!k->limits.n && !k->apart.len && !k->narrow_offsets && !k->cuda.persistent && !k->cuda.pairs);
	if (o->remarks)
		diag(&u->diags, R_FOREIGN, at);
	if (o->remarks && why)
		diag(&u->diags, R_NO_MAPS, at, why);
	return true;
}

bool compile(struct unit *u, const struct func *func, const struct arg_spec *args, const struct compile_options *o,
	     struct compiled *out)
{
	struct compile_options complete = *o;
	complete.codegen = codegen_options_complete(o->codegen);
	if (complete.codegen.abi == ABI_TRITON)
		return compile_foreign(u, func, args, &complete, out);
	return compile_complete(u, func, args, &complete, out);
}

void remark_resources(struct unit *u, const struct compiled *c, int registers, i64 local_bytes, int resident)
{
	struct arena *a = &u->arena;
	diag(&u->diags, R_RESOURCES, c->kernel->loc, registers,
	     local_bytes ? arena_printf(a, " and %lld bytes of local memory", (long long)local_bytes) : "",
	     32 * c->num_warps, c->shared_bytes,
	     resident ? arena_printf(a, "; %d resident block%s per multiprocessor", resident, PLURAL(resident)) : "");
	if (local_bytes)
		diag_hint(&u->diags, "local memory is slow: use smaller tiles, or another num_warps");
}
