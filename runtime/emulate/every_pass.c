#include "runtime/emulate/every_pass.h"

#include "support/recover.h"

#include <stdlib.h>

#include "analysis/axis.h"
#include "analysis/ranges.h"

/* The IR after one pass. */
struct stage {
	const char *pass, *text;
	const struct interp_program *program;
};

struct every_pass {
	const struct kernel *kernel;
	VEC(struct stage) stages;
	/* the IR as evaluated, with separate rounding; it gives the launch's results */
	const struct interp_program *plain;
	bool has_atomics, print;
	/* while the passes run */
	struct arena *arena;
	bool passes, facts, promises;
};

static bool wanted(const char *what)
{
	const char *list = getenv("TL_INTERP_CHECK");
	size_t n = strlen(what);
	for (; list && *list; list += strcspn(list, ","), list += strspn(list, ","))
		if (strcspn(list, ",") == n && !strncmp(list, what, n))
			return true;
	return false;
}

bool every_pass_wanted(void)
{
	return wanted("passes") || wanted("facts") || wanted("promises");
}

/* --- compiling ----------------------------------------------------------------------------------------------- */

static bool is_atomic(const struct op *o)
{
	return o->code == IR_ATOMIC_RMW || o->code == IR_ATOMIC_CAS;
}

static void take_hints(struct op *o, void *arg)
{
	if (o->hints)
		map_put(arg, o, o->hints);
	o->hints = NULL;
}

static void give_hints(struct op *o, void *arg)
{
	o->hints = map_get(arg, o);
}

/* The facts that the analyses find without the user's hints. */
static void analyze_without_hints(struct kernel *k, struct interp_checks *out)
{
	struct arena a = {0};
	struct map hints = {.arena = &a};
	walk(k->body, take_hints, &hints);
	struct ranges *ranges = ranges_analyze(k);
	out->ranges = ranges;
	out->facts = axis_analyze(k, ranges);
	walk(k->body, give_hints, &hints);
	arena_free(&a);
}

static void add_stage(void *arg, const char *pass, struct kernel *k)
{
	struct every_pass *p = arg;
	struct strbuf text = {.arena = p->arena};
	struct interp_checks checks = {.apart = true};
	kernel_print(k, &text);
	bool same = p->stages.len && !strcmp(p->stages.at[p->stages.len - 1].text, text.at);
	if (same || (p->stages.len && !p->passes))
		return;
	if (!p->stages.len) {
		p->plain = interp_prepare(p->arena, k);
		p->has_atomics = block_has(k->body, is_atomic);
	}
	if (p->facts)
		analyze_without_hints(k, &checks);
	if (p->promises)
		checks.promised = axis_analyze(k, ranges_analyze(k));
	struct stage s = {pass, text.at, interp_prepare_checked(p->arena, k, &checks)};
	vec_push(p->arena, &p->stages, s);
}

bool every_pass_compile(const struct build *b, struct compiled *out)
{
	struct arena *a = &b->unit->arena;
	struct every_pass *p = arena_new(a, struct every_pass);
	*p = (struct every_pass){.arena = a,
				 .passes = wanted("passes"),
				 .facts = wanted("facts"),
				 .promises = wanted("promises"),
				 .print = wanted("print")};
	struct compile_options o = {.target = cuda_description(90, true),
				    .codegen = b->codegen,
				    .want_ttir = true,
				    .after_pass = add_stage,
				    .after_pass_arg = p};
	if (!compile(b->unit, b->func, b->args, &o, out))
		return false;
	p->kernel = out->kernel;
	out->for_load = p;
	return true;
}

/* --- running ------------------------------------------------------------------------------------------------- */

/* The bytes of all buffers together. save and restore copy the contents of the buffers, concatenated. */
static size_t total_size(const struct interp_launch *l)
{
	size_t size = 0;
	for (u32 i = 0; i < l->nranges; i++)
		size += l->ranges[i].size;
	return size;
}

static void save(const struct interp_launch *l, char *to)
{
	for (u32 i = 0; i < l->nranges; to += l->ranges[i++].size)
		memcpy(to, l->ranges[i].base, l->ranges[i].size);
}

static void restore(const struct interp_launch *l, const char *from)
{
	for (u32 i = 0; i < l->nranges; from += l->ranges[i++].size)
		memcpy(l->ranges[i].base, from, l->ranges[i].size);
}

/* A type of pointer with which the kernel accesses this memory, for the type of its elements. */
static const struct type *pointer_into(const struct every_pass *p, const struct interp_launch *l,
				       const struct mem_range *r)
{
	for (u32 i = 0; i < p->kernel->nparams; i++) {
		const struct type *t = p->kernel->params[i].value->type;
		if (t->kind == TY_PTR && range_has(r, l->args[i], 1))
			return t->elem;
	}
	return NULL;
}

/* The bits of a NaN result are unspecified: all NaNs are equal here. */
static bool same_element(enum dtype d, u64 x, u64 y)
{
	if (x == y)
		return true;
	if (!dtype_is_float(d))
		return false;
	double a = dtype_decode_float(d, x), b = dtype_decode_float(d, y);
	return a != a && b != b;
}

/* Reports the first element of the range that differs from `want`. */
static bool compare_range(const struct every_pass *p, const struct interp_launch *l, const struct mem_range *r,
			  const char *want, const char *pass, struct strbuf *error)
{
	const struct type *t = pointer_into(p, l, r);
	enum dtype d = t ? type_dtype(t) : DT_I8;
	size_t bytes = (size_t)dtype_bytes(d);
	for (size_t at = 0; at < r->size; at += bytes) {
		u64 x = 0, y = 0;
		size_t n = MIN(bytes, r->size - at);
		memcpy(&x, want + at, n);
		memcpy(&y, r->base + at, n);
		if (same_element(d, x, y))
			continue;
		sb_printf(error,
			  "error: pass '%s' changes what %s does: element %zu of '%s', %zu bytes from its start, was "
			  "0x%llx and is 0x%llx\n",
			  pass, p->kernel->name, at / bytes, r->name ? r->name : "?", at, (unsigned long long)x,
			  (unsigned long long)y);
		return false;
	}
	return true;
}

static bool compare(const struct every_pass *p, const struct interp_launch *l, const char *want, const char *pass,
		    struct strbuf *error)
{
	for (u32 i = 0; i < l->nranges; want += l->ranges[i++].size)
		if (memcmp(want, l->ranges[i].base, l->ranges[i].size) &&
		    !compare_range(p, l, &l->ranges[i], want, pass, error))
			return false;
	return true;
}

static void show(const struct every_pass *p, u32 i, struct strbuf *error)
{
	for (u32 k = i ? i - 1 : 0; k <= i && p->print; k++)
		sb_printf(error, "// after %s\n%s", p->stages.at[k].pass, p->stages.at[k].text);
}

/* Runs each stage from the memory in `before`, and compares its results with the first stage's, which are copied to
 * `expected`. */
static bool run_stages(const struct every_pass *p, struct interp_launch *l, const char *before, char *expected,
		       struct strbuf *error)
{
	u32 len = error->len;
	for (u32 i = 0; i < p->stages.len; i++) {
		const struct stage *s = &p->stages.at[i];
		sb_printf(error, "after pass '%s': ", s->pass);
		restore(l, before);
		bool good = interp_run(s->program, l, error);
		if (good)
			error->len = len;
		if (good && !i)
			save(l, expected);
		else if (good)
			good = compare(p, l, expected, s->pass, error);
		if (!good) {
			show(p, i, error);
			return false;
		}
	}
	return true;
}

bool every_pass_run(const struct every_pass *p, struct interp_launch *l, struct strbuf *error)
{
	if (l->open)
		return interp_run(p->plain, l, error);
	size_t size = total_size(l);
	char *before = size < SIZE_MAX / 4 ? malloc(3 * (size + 1)) : NULL, *results = before + size + 1,
	     *expected = results + size + 1;
	if (!before)
		tl_out_of_memory(size);
	struct cleanup c;
	cleanup_push(&c, free, before);
	if (p->has_atomics) /* their order may differ in each run */
		l->threads = 1;
	save(l, before);
	/* first: it reports the user's errors, such as a false assumption */
	bool good = interp_run(p->plain, l, error);
	save(l, results);
	l->quiet = true;
	if (good)
		good = run_stages(p, l, before, expected, error);
	if (good)
		restore(l, results);
	cleanup_run(&c);
	return good;
}
