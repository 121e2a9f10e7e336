/* Does the simulator find faults? Kernels as they are compiled must run without one and give right results, under every
 * schedule; then each is run with one fault planted in its PTX, and another, and another.
 *
 * A mutant is `reported` when the simulator faults, `wrong` when it does not but the result is another, else
 * `harmless`. Faults of synchronisation must be reported by every schedule; those of addresses and guards may be wrong
 * instead, since an access of the wrong element is one that memory allows; and so may faults of arithmetic. What is
 * harmless must be in the list below.
 *
 *   mutants [-v]        -v: every mutant, with the first line of its report
 *   mutants -s I/N      of the kernels, the I-th of N shares (I from 0)
 *   mutants -p KERNEL   the PTX whose lines are named, of one of the kernels */
#include <math.h>
#include <stdlib.h>

#include "support/small_floats.h"
#include "runtime/sim/tensormap.h"
#include "tests/sim/mutants.h"

enum { SEEDS = 3, ALL_SEEDS = (1 << SEEDS) - 1, GAP = 4096, MAX_STEPS = 200000 };
enum verdict { REPORTED, WRONG, HARMLESS, VERDICTS };
static const char *const verdict_names[VERDICTS] = {"reported", "wrong", "harmless"};

/* --- what does no harm ------------------------------------------------------------------------------------------- */

static const struct {
	const char *workload;
	enum kind kind;
	u32 first, last; /* of that kind */
	const char *reason;
} harmless[] = {
#define DRAINED "between the barrier behind the drained pipeline and the next nothing is in "                          \
	"shared memory: one of them is enough"
#define ALIKE "all lanes hold the value that one of them stores"
#define UNIFORM "all lanes hold the same value"
#define LAST "nothing is stored there behind the loop: the block could as well end while the last "                    \
	"copies, of zeros, are on their way"
#define DIVIDED "a division gives the usual answer too"
	{"matmul", GUARD, 0, 0, DIVIDED},
	{"matmul Bt 90a", GUARD, 0, 0, DIVIDED},
	{"matmul Bt 90a", SHUFFLE, 0, 0, UNIFORM},
	{"matmul Bt 90a", WAIT, 2, 3, LAST},
	{"matmul tf32 90a", GUARD, 0, 0, DIVIDED},
	{"matmul tf32 90a", GUARD, 2, 2, DIVIDED},
	{"matmul tf32 90a", WAIT, 2, 3, LAST},
	{"matmul bytes 90a", GUARD, 0, 0, DIVIDED},
	{"matmul turned 90a", GUARD, 0, 0, DIVIDED},
	{"matmul turned 90a", SWIZZLE, 5, 5, "of both operands the same neighbours along k are exchanged"},
	{"matmul tail 90a", GUARD, 0, 0, DIVIDED},
	{"matmul tail 90a", SHUFFLE, 0, 1, UNIFORM},
	{"matmul tail 90a", BARRIER, 4, 4, "the loop over what is left runs once, and nothing is stored behind it"},
#define OVER "no tile comes behind that would use the buffers"
	{"matmul persistent 90a", GUARD, 1, 1, DIVIDED},
	{"matmul persistent 90a", GUARD, 8, 8, DIVIDED},
	{"matmul persistent 90a", GUARD, 16, 16, DIVIDED},
	{"matmul persistent 90a", GUARD, 18, 18, DIVIDED},
	{"matmul persistent 90a", BARRIER, 2, 2,
	 "between two tiles' results are the barriers of the loop over k, where it is not empty"},
	{"matmul persistent 90a", WAIT, 2, 3, OVER},
	{"matmul produced 90a", GUARD, 0, 0, "a prefetch changes nothing"},
	{"matmul produced 90a", GUARD, 5, 5, DIVIDED},
	{"matmul produced 90a", GUARD, 7, 8, DIVIDED},
	{"matmul produced 90a", GUARD, 16, 16, DIVIDED},
	{"matmul produced 90a", GUARD, 19, 22, "all tiles are whole"},
	{"matmul produced 90a", INITIAL, 16, 17, "nobody waits until the buffer that is none is empty"},
	{"attention", BARRIER, 6, 6, "the loop over what is left runs once, and what is "
	 "stored behind it goes elsewhere"},
	{"attention", GUARD, 0, 0, DIVIDED},
	{"attention causal", GUARD, 0, 0, DIVIDED},
#define ENDED "nothing is stored there any more"
#define AGAIN "the next loop waits for these products too, before anything needs them"
	{"attention causal", BARRIER, 0, 0, "the thread that makes the mbarriers asks for the first boxes; "
	 "others come behind the barrier after q"},
	{"attention causal", BARRIER, 3, 3, DRAINED},
	{"attention causal", PRODUCT_COMMIT, 1, 1, "the next loop's first products are committed together with these"},
	{"attention causal", PRODUCT_WAIT, 2, 3, AGAIN},
	{"attention causal", INITIAL, 15, 20, ENDED},
#define FIRST_TURN "all threads wait for their first turn, which the one that makes the mbarriers is behind"
#define LAST_TURN "all warps are done with the mbarriers before the last turn"
#define READ                                                                                                           \
	"a buffer is filled by the warpgroup that has the turn, and before it got that all warps "                     \
	"had waited for the products that "                                                                            \
	"read the buffer"
	{"attention boxes", BARRIER, 0, 0, FIRST_TURN},
	{"attention boxes", BARRIER, 1, 1, "all threads have stored q when they wait for their first turn"},
	{"attention boxes", BARRIER, 2, 2, LAST_TURN},
	{"attention boxes", BARRIER, 3, 3, DRAINED},
	{"attention boxes", PRODUCT_WAIT, 2, 3, AGAIN},
	{"attention boxes", TURN, 8, 8, "turns are for speed: the mbarriers keep the buffers in order"},
	{"attention boxes", PHASE, 2, 2, READ},
	{"attention boxes", PHASE, 6, 6, READ},
	{"attention boxes", ARRIVAL, 3, 3, READ},
	{"attention boxes", ARRIVAL, 6, 6, READ},
	{"attention boxes", INITIAL, 15, 20, ENDED},
	{"attention tiles", INITIAL, 16, 17, "it stands for a buffer that nobody has read, and nobody waits for"},
	{"attention tiles", TURN, 5, 5, "it is the turn that the last tile leaves, which goes with the block"},
#define DISJOINT "no bit is in both"
#define ABOVE "a thread's number has no such bit"
	{"softmax", GUARD, 4, 5, ALIKE},
	{"softmax cluster", SWIZZLE, 3, 3, ABOVE},
	{"layer_norm", GUARD, 4, 4, ALIKE},
	{"layer_norm", GUARD, 9, 11, ALIKE},
	{"gram", PRODUCT_FENCE, 1, 1, "no operand of the second product is in registers, and its sums begin at zero"},
	{"gram", SWIZZLE, 7, 8, DISJOINT},
	{"gram", SWIZZLE, 24, 24, DISJOINT},
	{"gram", SWIZZLE, 29, 30, DISJOINT},
	{"gram", SWIZZLE, 33, 33, DISJOINT},
	{"columns", GUARD, 2, 2, ALIKE},
	{"columns", SWIZZLE, 6, 6, DISJOINT},
	{"columns", SWIZZLE, 8, 8, DISJOINT},
	{"columns", SWIZZLE, 17, 17, DISJOINT},
	{"columns", SWIZZLE, 19, 19, DISJOINT},
	{"columns", SWIZZLE, 22, 22, DISJOINT},
	{"columns", SWIZZLE, 24, 24, DISJOINT},
	{"columns", SWIZZLE, 26, 26, DISJOINT},
};

/* The entry of the list, or -1. */
static int harmless_entry(const struct workload *w, const struct mutant *m)
{
	for (u32 k = 0; k < ARRAY_LEN(harmless); k++)
		if (!strcmp(harmless[k].workload, w->name) && harmless[k].kind == m->kind &&
		    m->index >= harmless[k].first && m->index <= harmless[k].last)
			return (int)k;
	return -1;
}

/* --- running ----------------------------------------------------------------------------------------------------- */

struct subject {
	const struct workload *w;
	const char *text;
	u64 shared_bytes;
	u32 num_warps; /* of a block */
	struct tensor_map_param maps[MAX_TENSOR_MAPS]; /* behind the problem's parameters */
	u32 nmaps;
	struct problem *problems;
};

struct outcome {
	u32 reported, wrong; /* masks of seeds */
	const char *report;  /* the first one's first line */
};

static bool same_values(const struct buffer *b, const char *bytes)
{
	if (!b->want)
		return !memcmp(bytes, b->initial, (size_t)b->elem * b->len);
	for (u32 k = 0; k < b->len; k++) {
		float f;
		u16 h;
		memcpy(&f, bytes + k * 4, b->elem == 4 ? 4 : 0);
		memcpy(&h, bytes + k * 2, b->elem == 2 ? 2 : 0);
		double got = (double)(b->elem == 2 ? fp_from_f16(h) : f);
		bool same = isnan(b->want[k]) ? isnan(got)
					      : fabs(got - b->want[k]) <= b->absolute + b->relative * fabs(b->want[k]);
		if (!same)
			return false;
	}
	return true;
}

/* Puts copies of the buffers into one allocation, gaps between them. */
static char *place_buffers(struct arena *a, const struct problem *p, struct mem_range *ranges, u8 **written)
{
	size_t at[ARRAY_LEN(p->buffers)], total = GAP;
	for (u32 k = 0; k < p->nbuffers; k++) {
		at[k] = total;
		total += ((size_t)p->buffers[k].elem * p->buffers[k].len + 2 * GAP) / GAP * GAP;
	}
	char *memory = aligned_alloc(GAP, total);
	tl_assert(memory);
	for (u32 k = 0; k < p->nbuffers; k++) {
		const struct buffer *b = &p->buffers[k];
		size_t size = (size_t)b->elem * b->len;
		ranges[k] = (struct mem_range){b->name, memory + at[k], size};
		memcpy(ranges[k].base, b->initial, size);
		written[k] = arena_alloc(a, size / 8 + 1);
		memset(written[k], b->want ? 0 : 0xFF, size / 8 + 1);
	}
	return memory;
}

/* The parameters' place in memory is not aligned like a tensor map. */
static void make_map(const struct tensor_map_param *m, const struct problem *p, char *to)
{
	static const u32 steps[] = {1, 1, 1, 1};
	_Alignas(TENSOR_MAP_ALIGN) char map[TENSOR_MAP_BYTES];
	u64 distance = (u64)m->distance.times;
	for (int i = 0; i < m->distance.nparams; i++)
		distance *= p->params[m->distance.params[i]].bits;
	struct tensor_map_shape b = tensor_map_shape_of(m, &(struct map_values){.distance = distance});
	struct arena a = {0};
	struct strbuf error = {.arena = &a};
	bool ok = tensor_map_encode(map, tensor_map_type(b.dtype), b.rank, b.base, b.sizes, b.strides, b.box, steps,
				    TENSOR_INTERLEAVE_NONE, tensor_swizzle_mode(b.swizzle), TENSOR_PROMOTION_NONE,
				    TENSOR_FILL_ZERO, &error);
	tl_assert(ok);
	memcpy(to, map, sizeof map);
	arena_free(&a);
}

static void run_problem(struct arena *a, const struct subject *s, const struct ptx_module *m, const struct problem *p,
			u32 seed, struct counters *counters, struct outcome *out)
{
	struct mem_range ranges[ARRAY_LEN(p->buffers)];
	u8 *written[ARRAY_LEN(p->buffers)];
	char *memory = place_buffers(a, p, ranges, written);
	const struct ptx_kernel *k = &m->kernels[0];
	char *params = arena_alloc(a, k->param_bytes + 8);
	tl_assert(k->nparams == p->nparams + s->nmaps);
	for (u32 n = 0; n < s->nmaps; n++)
		make_map(&s->maps[n], p, params + k->params[p->nparams + n].offset);
	for (u32 n = 0; n < p->nparams; n++) {
		u64 v = p->params[n].is_buffer ? (u64)(uintptr_t)ranges[p->params[n].bits].base : p->params[n].bits;
		memcpy(params + k->params[n].offset, &v, k->params[n].size);
	}
	struct launch l = {.module = m,
			   .kernel = k,
			   .num_warps = s->num_warps,
			   .dynamic_shared = s->shared_bytes,
			   .params = params,
			   .ranges = ranges,
			   .written = written,
			   .nranges = p->nbuffers,
			   .seed = seed,
			   .timing = (enum async_timing)(seed % 3),
			   .max_steps = MAX_STEPS,
			   .counters = counters};
	for (u32 n = 0; n < 3; n++)
		l.grid[n] = MAX(p->grid[n], 1u) * MAX(k->cluster[n], 1u);
	struct strbuf error = {.arena = a};
	if (sim_run(&l, &error)) {
		out->reported |= 1u << seed;
		out->report = out->report ? out->report : arena_str(a, error.at, strcspn(error.at, "\n"));
	}
	for (u32 n = 0; n < p->nbuffers; n++)
		if (!same_values(&p->buffers[n], ranges[n].base))
			out->wrong |= 1u << seed;
	free(memory);
}

/* *counters: per instruction, in the arena; may be NULL. */
static struct outcome run_text(struct arena *a, const struct subject *s, const char *text, struct counters **counters)
{
	struct outcome out = {0};
	const char *error = NULL;
	struct ptx_module *m = ptx_read(a, text, strlen(text), &error);
	if (!m || !sim_decode(a, m, &error)) {
		out.reported = ALL_SEEDS;
		out.report = arena_printf(a, "not decoded: %s", error);
		return out;
	}
	if (counters)
		*counters = arena_array(a, struct counters, m->kernels[0].ncode);
	for (u32 seed = 0; seed < SEEDS; seed++)
		for (u32 n = 0; n < s->w->nproblems && !(out.reported >> seed & 1); n++)
			run_problem(a, s, m, &s->problems[n], seed, counters ? *counters : NULL, &out);
	return out;
}

/* --- compiling --------------------------------------------------------------------------------------------------- */

static const char *file_text(struct arena *a, const struct workload *w)
{
	char buffer[1 << 16];
	if (w->source)
		return w->source;
	FILE *f = fopen(w->file, "r");
	size_t n = f ? fread(buffer, 1, sizeof buffer, f) : 0;
	if (f)
		fclose(f);
	return n ? arena_str(a, buffer, n) : NULL;
}

/* False after an error, which is printed. */
static bool compile_workload(struct arena *a, struct subject *s)
{
	const struct workload *w = s->w;
	struct compile_options o = {.target = cuda_description(w->target.sm, w->target.arch_specific),
				    .codegen = {.num_warps = w->num_warps, .num_stages = 3},
				    .want_code = true};
	struct unit u;
	struct compiled c;
	const struct func *func = NULL;
	const char *source = file_text(a, w);
	if (!source) {
		printf("%s cannot be read\n", w->file);
		return false;
	}
	bool ok = unit_open(&u, w->file ? w->file : "mutants.tl", source, strlen(source));
	for (u32 n = 0; ok && n < u.module->funcs.len; n++)
		if (!strcmp(u.module->funcs.at[n]->name, w->func))
			func = u.module->funcs.at[n];
	ok = func && compile(&u, func, w->args, &o, &c);
	if (ok) {
		s->text = arena_str(a, c.code, c.code_len);
		s->shared_bytes = (u64)c.shared_bytes;
		s->num_warps = (u32)c.num_warps;
		s->nmaps = c.kernel->cuda.nmaps;
		memcpy(s->maps, c.kernel->cuda.maps, sizeof s->maps);
	} else {
		printf("%s: does not compile\n", w->name);
	}
	unit_free(&u);
	s->problems = arena_array(a, struct problem, w->nproblems);
	for (u32 n = 0; n < w->nproblems; n++)
		w->make(a, &s->problems[n], n);
	return ok;
}

/* --- verdicts ---------------------------------------------------------------------------------------------------- */

struct tally {
	u32 mutants, verdicts[VERDICTS], always; /* reported under every schedule */
};

struct session {
	bool verbose;
	u32 share, shares; /* of the workloads */
	u32 passed, failed;
	u32 found[ARRAY_LEN(harmless)];
};

static enum verdict verdict_of(const struct outcome *o)
{
	return o->reported ? REPORTED : o->wrong ? WRONG : HARMLESS;
}

static bool is_allowed(const struct mutant *m, const struct outcome *o, bool listed)
{
	bool synchronises = m->kind == BARRIER || m->kind == WAIT || m->kind == COMMIT || m->kind == PHASE ||
			    m->kind == ARRIVAL || m->kind == BYTES || m->kind == TURN;
	enum verdict v = verdict_of(o);
	if (listed)
		return v == HARMLESS;
	return synchronises ? o->reported == ALL_SEEDS : v != HARMLESS;
}

static void judge(struct session *t, const struct workload *w, const struct mutant *m, const struct outcome *o,
		  struct tally *row)
{
	enum verdict v = verdict_of(o);
	int entry = harmless_entry(w, m);
	bool allowed = is_allowed(m, o, entry >= 0);
	row->mutants++;
	row->verdicts[v]++;
	row->always += o->reported == ALL_SEEDS;
	t->passed += allowed;
	t->failed += !allowed;
	if (entry >= 0)
		t->found[entry]++;
	if (allowed && !t->verbose)
		return;
	printf("%s%s: %s %u, line %u, %s: %s", allowed ? "" : "FAILED: ", w->name, kind_names[m->kind], m->index,
	       m->line, m->what, verdict_names[v]);
	printf("%s%s\n", v == REPORTED ? ": " : "", v == REPORTED ? o->report : "");
}

static bool in_share(const struct session *t, const char *workload)
{
	for (u32 n = 0; n < nworkloads; n++)
		if (!strcmp(workloads[n].name, workload))
			return n % t->shares == t->share;
	return true;
}

static void print_harmless(struct session *t)
{
	printf("\nharmless:\n");
	for (u32 k = 0; k < ARRAY_LEN(harmless); k++) {
		if (!in_share(t, harmless[k].workload))
			continue;
		bool all = t->found[k] == harmless[k].last - harmless[k].first + 1;
		printf("%s%s, %s %u", all ? "" : "FAILED: no longer there: ", harmless[k].workload,
		       kind_names[harmless[k].kind], harmless[k].first);
		if (harmless[k].last != harmless[k].first)
			printf("–%u", harmless[k].last);
		printf(": %s\n", harmless[k].reason);
		t->failed += !all;
	}
}

static void print_row(const char *name, const char *kind, const struct tally *r)
{
	printf("%-18s %-24s %8u %9u %8u %8u %9u\n", name, kind, r->mutants, r->verdicts[REPORTED], r->always,
	       r->verdicts[WRONG], r->verdicts[HARMLESS]);
}

static void print_tables(const struct workload *w, struct tally rows[KINDS], struct tally totals[KINDS])
{
	for (u32 k = 0; k < KINDS; k++) {
		if (!rows[k].mutants)
			continue;
		print_row(w->name, kind_names[k], &rows[k]);
		totals[k].mutants += rows[k].mutants;
		totals[k].always += rows[k].always;
		for (u32 v = 0; v < VERDICTS; v++)
			totals[k].verdicts[v] += rows[k].verdicts[v];
	}
}

/* Of barriers that the list calls harmless in a row, each alone is; not all of them together. */
static void test_rows(struct session *t, struct arena *a, const struct subject *s, const mutant_vec *mutants)
{
	for (u32 k = 0; k < ARRAY_LEN(harmless); k++) {
		const char *text = s->text;
		if (strcmp(harmless[k].workload, s->w->name) || harmless[k].kind != BARRIER ||
		    harmless[k].first == harmless[k].last)
			continue;
		for (u32 n = 0; n < mutants->len; n++)
			if (harmless_entry(s->w, &mutants->at[n]) == (int)k)
				text = mutated(a, text, &mutants->at[n]);
		struct outcome o = run_text(a, s, text, NULL);
		bool found = o.reported == ALL_SEEDS;
		t->passed += found;
		t->failed += !found;
		if (!found || t->verbose)
			printf("%s%s: barriers %u–%u removed: %s\n", found ? "" : "FAILED: ", s->w->name,
			       harmless[k].first, harmless[k].last,
			       o.report ? o.report : "not reported");
	}
}

static void test_workload(struct session *t, const struct workload *w, struct tally totals[KINDS])
{
	struct arena a = {0};
	struct subject s = {.w = w};
	struct counters *counters;
	const char *error;
	if (!compile_workload(&a, &s)) {
		t->failed++;
		return;
	}
	struct outcome original = run_text(&a, &s, s.text, &counters);
	if (original.reported || original.wrong) {
		printf("FAILED: %s as it is compiled: %s\n", w->name, original.reported ? original.report : "wrong");
		t->failed++;
		return;
	}
	t->passed++;
	mutant_vec mutants = {0};
	struct ptx_module *m = ptx_read(&a, s.text, strlen(s.text), &error);
	list_mutants(&a, s.text, &m->kernels[0], counters, &mutants);
	u32 kept = 0;
	for (u32 n = 0; n < mutants.len; n++)
		if (w->kinds >> mutants.at[n].kind & 1)
			mutants.at[kept++] = mutants.at[n];
	mutants.len = kept;
	struct outcome *outcomes = arena_array(&a, struct outcome, mutants.len);
	struct arena *arenas = arena_array(&a, struct arena, mutants.len); /* what reports live in */
#pragma omp parallel for schedule(dynamic)
	for (u32 n = 0; n < mutants.len; n++) {
		struct arena own = {0};
		outcomes[n] = run_text(&own, &s, mutated(&own, s.text, &mutants.at[n]), NULL);
		if (outcomes[n].report)
			outcomes[n].report = arena_printf(&arenas[n], "%s", outcomes[n].report);
		arena_free(&own);
	}
	struct tally rows[KINDS] = {0};
	for (u32 n = 0; n < mutants.len; n++) {
		judge(t, w, &mutants.at[n], &outcomes[n], &rows[mutants.at[n].kind]);
		arena_free(&arenas[n]);
	}
	print_tables(w, rows, totals);
	test_rows(t, &a, &s, &mutants);
	arena_free(&a);
}

static int print_text(const char *name)
{
	struct arena a = {0};
	const char *text = NULL;
	for (u32 n = 0; n < nworkloads; n++) {
		struct subject s = {.w = &workloads[n]};
		if (!strcmp(workloads[n].name, name) && compile_workload(&a, &s))
			text = s.text;
	}
	fputs(text ? text : "no such kernel\n", stdout);
	arena_free(&a);
	return !text;
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "-p"))
		return print_text(argv[2]);
	struct session t = {.verbose = argc > 1 && !strcmp(argv[1], "-v"), .shares = 1};
	if (argc > 2 && !strcmp(argv[1], "-s") && (sscanf(argv[2], "%u/%u", &t.share, &t.shares) != 2 || !t.shares))
		return 2;
	struct tally totals[KINDS] = {0};
	printf("%-18s %-24s %8s %9s %8s %8s %9s\n", "kernel", "fault", "mutants", "reported", "always", "wrong",
	       "harmless");
	for (u32 n = 0; n < nworkloads; n++)
		if (n % t.shares == t.share)
			test_workload(&t, &workloads[n], totals);
	for (u32 k = 0; k < KINDS; k++)
		print_row("all", kind_names[k], &totals[k]);
	print_harmless(&t);
	printf("%u passed, %u failed\n", t.passed, t.failed);
	return t.failed != 0;
}
