/* test-random: random kernels of eighteen kinds on every device, against evaluations of their own: "random" (random.h)
 * over whole tiles, "tree" (tree.h) with control flow and integers at the ends of their types, "dots" (dots.c)
 * with loops of dots, "loops" (loops.h) with loops whose bounds lie at the ends of their types, "blocks"
 * (blocks.h) with block pointers and tensor descriptors, "products" (dots.c) with dots of blocks, "moves"
 * (moves.c), which are "random" with gathers, sorts, reductions of pairs and mapped functions, "values"
 * (values.h) with tuples, objects and lists, "scaled" (scaled.c) with dots in microscaling formats,
 * "pipelines" (pipelines.h) with loops of loads and dots in all the ways they are pipelined, "offsets"
 * (offsets.c) with addresses beyond 32 bits, "edges" (edges.c) with products that are stored in part,
 * "tiles" (tiles.c) with programs that work on several tiles, "attention" (attention.c) with attentions,
 * "gradients" (gradients.c) with those of attentions, "experts" (experts.c) with products of mixtures of
 * experts, "pairs" (pairs.c) with products of which neighbouring blocks share boxes, "weights"
 * (weights.c) with products by packed weights.
 *
 *   test-random                          the usual number of them
 *   test-random --kind tree              of one kind only
 *   test-random --seed 17 --count 1      one again, with its text when it fails
 *   test-random --seed 17 --shrink [CMD] the smallest kernel that still fails: drops statements as long as CMD (the
 *                                        program itself, if not given) ends with another status than 0
 *   test-random --every-pass             on the interpreter: each pass against the one before it, facts against values
 *   test-random --passes build/tlc       launches what `tlc --emit ttir` makes of each kernel instead
 *
 * Other options are those of test-run. */
#include <stdarg.h>
#include <unistd.h>

#include "../run/suite.h"
#include "tree.h"

enum { MANY = 2000, SOME = 1000, FEW = 500 }; /* where each takes 0.01 s, 0.03 s, and 0.1 s */

int64_t setting(const char *name, int64_t otherwise)
{
	const char *text = getenv(name);
	return text && *text ? strtoll(text, NULL, 10) : otherwise;
}

/* --- leaving statements out ---------------------------------------------------------------------------------- */

static int last_of(const struct program *p, int k)
{
	bool block = p->node[k].op == FOR || p->node[k].op == IF;
	for (int j = k + 1; block && j < p->n; j++)
		if (p->node[j].op == END && p->node[j].opens == k)
			return j;
	return k;
}

/* Values become zeros, everything else disappears, and what nobody needs too. */
static void leave_out(struct program *p, const char *list)
{
	for (const char *s = list + strspn(list, ","); *s; s += strcspn(s, ","), s += strspn(s, ",")) {
		int k = atoi(s);
		struct node *v = &p->node[k];
		if (is_statement(v->op)) {
			for (int j = k; j <= last_of(p, k); j++)
				p->node[j].dead = true;
		} else if (v->op != VAR) {
			v->op = FULL;
			memset(v->attr, 0, sizeof v->attr);
			memset(v->in, -1, sizeof v->in);
		}
	}
	for (int k = 0; k < p->n; k++)
		p->node[k].used = p->node[k].op == STORE || p->node[k].op == ATOMIC || p->node[k].op >= FOR;
	for (int round = 0; round < 8; round++)
		for (int k = p->n - 1; k >= 0; k--) {
			struct node *v = &p->node[k];
			v->used |= (v->op == ASSIGN || v->op == ACCUMULATE) && p->node[v->in[0]].used;
			if (!v->used || v->dead)
				continue;
			for (int i = 0; i < 3; i++)
				if (v->in[i] >= 0)
					p->node[v->in[i]].used = true;
			if (v->op == LOAD || v->op == STORE || v->op == ATOMIC) {
				if (v->place.index >= 0)
					p->node[v->place.index].used = true;
				if (v->place.condition >= 0)
					p->node[v->place.condition].used = true;
			}
		}
	for (int k = 0; k < p->n; k++)
		p->node[k].dead |= !p->node[k].used;
}

bool fails(const char *command, const char *list)
{
	setenv("RANDOM_LEAVE_OUT", list, 1);
	return system(command) != 0;
}

int shrink_list(const char *command, int n)
{
	char *list = calloc((size_t)n + 1, 8), *longer = calloc((size_t)n + 2, 8), item[16];
	strcpy(list, ",");
	for (int round = 0; round < 2; round++)
		for (int k = n - 1; k >= 0; k--) {
			snprintf(item, sizeof item, ",%d,", k);
			sprintf(longer, "%s%d,", list, k);
			if (!strstr(list, item) && fails(command, longer))
				strcpy(list, longer);
		}
	setenv("RANDOM_LEAVE_OUT", list, 1);
	setenv("RANDOM_TEXT", "1", 1);
	printf("RANDOM_LEAVE_OUT=%s\n", list);
	return 1;
}

static void print_text(const char *text, const tl_config *config, const char *about)
{
	printf("# num_warps %d, num_stages %d%s%s\n%s", config->num_warps, config->num_stages, *about ? ", " : "",
	       about, text);
}

void run_text(struct suite *s, char *text, const tl_config *config, const tl_arg *args, size_t nargs, const char *about,
	      ...)
{
	char line[200];
	va_list values;
	va_start(values, about);
	vsnprintf(line, sizeof line, about, values);
	va_end(values);
	bool asked = getenv("RANDOM_TEXT");
	int failed = s->nfailed;
	if (asked) /* the launch may not end */
		print_text(text, config, line);
	launch_text(s, text, "kernel", config, args, nargs);
	case_end(s);
	if (s->nfailed > failed && !asked)
		print_text(text, config, line);
	free(text);
}

void put_line(FILE *f, int depth, const char *format, ...)
{
	va_list args;
	fprintf(f, "%*s", 4 * depth, "");
	va_start(args, format);
	vfprintf(f, format, args);
	va_end(args);
	fprintf(f, "\n");
}

bool only(const char *kind)
{
	const char *name = getenv("RANDOM_KIND");
	return !name || !strcmp(name, kind);
}

void each_seed(struct suite *s, const char *kind, int64_t usual,
	       void (*make)(struct suite *s, int64_t seed, const char *left_out))
{
	int64_t first = setting("RANDOM_SEED", 1), n = setting("RANDOM_COUNT", usual);
	for (int64_t seed = first; seed < first + n && only(kind); seed++)
		make(s, seed, getenv("RANDOM_LEAVE_OUT"));
}

/* Statements first, outer ones before inner ones, then expressions. */
static int shrink_tree(const char *command)
{
	char *list = calloc(EXPRS + STMTS, 8), *longer = calloc(EXPRS + STMTS + 1, 8);
	struct tree *t = calloc(1, sizeof *t);
	strcpy(list, ",");
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < EXPRS + STMTS; i++) {
			int k = i < STMTS ? EXPRS + i : i - STMTS;
			random_seed((uint64_t)setting("RANDOM_SEED", 1));
			tree_make(t);
			tree_leave_out(t, list);
			bool there = k < EXPRS ? k < t->nexprs && t->expr[k].op != FULL && !t->expr[k].dead &&
							 expr_is_used(t, k)
					       : k - EXPRS < t->nstmts && !t->stmt[k - EXPRS].dead;
			sprintf(longer, "%s%d,", list, k);
			if (there && fails(command, longer))
				strcpy(list, longer);
		}
	random_seed((uint64_t)setting("RANDOM_SEED", 1));
	tree_make(t);
	tree_leave_out(t, list);
	printf("%sRANDOM_LEAVE_OUT=%s\n", tree_text(t), list);
	return 1;
}

/* `options` of the harness, such as --every-pass, are those with which a kernel fails. */
static int shrink(char **options, const char *command)
{
	char text[1024] = "", *list = calloc(NODES, 8), *longer = calloc(NODES + 1, 8);
	struct program *p = calloc(1, sizeof *p);
	for (; *options; options++)
		snprintf(text + strlen(text), sizeof text - strlen(text), "%s ", *options);
	snprintf(text + strlen(text), sizeof text - strlen(text), "--seed %lld --count 1 >/dev/null 2>&1",
		 (long long)setting("RANDOM_SEED", 1));
	command = command ? command : text;
	if (!fails(command, ",")) {
		printf("it does not fail\n");
		return 0;
	}
	static const struct {
		const char *kind;
		int (*shrink)(const char *command);
	} lists[] = {{"dots", shrink_dots},
		     {"loops", shrink_loops},
		     {"blocks", shrink_blocks},
		     {"products", shrink_dots},
		     {"values", shrink_values},
		     {"pipelines", shrink_pipelines}};
	if (getenv("RANDOM_KIND") &&
	    (only("scaled") || only("offsets") || only("edges") || only("tiles") || only("attention") ||
	     only("gradients") || only("experts") || only("pairs") || only("weights") || only("strips"))) {
		printf("a list of values, or one loop of one dot: there is nothing to leave out\n");
		return 1;
	}
	for (int i = 0; getenv("RANDOM_KIND") && i < COUNT(lists); i++)
		if (only(lists[i].kind))
			return lists[i].shrink(command);
	bool moves = getenv("RANDOM_KIND") && only("moves");
	if (!only("random") && !moves)
		return shrink_tree(command);
	random_seed((uint64_t)setting("RANDOM_SEED", 1));
	make_program(p, moves);
	strcpy(list, ",");
	for (int round = 0; round < 2; round++)
		for (int k = p->n - 1; k >= 0; k--) {
			leave_out(p, list);
			if (p->node[k].dead || p->node[k].op == ELSE || p->node[k].op == END)
				continue;
			sprintf(longer, "%s%d,", list, k);
			if (fails(command, longer))
				strcpy(list, longer);
		}
	leave_out(p, list);
	char *kernel = program_text(p);
	printf("%sRANDOM_LEAVE_OUT=%s\n", kernel, list);
	return 1;
}

/* --- a case -------------------------------------------------------------------------------------------------- */

static void create(struct suite *s, struct program *p, int k)
{
	static char names[MEMORIES][16];
	struct memory *a = &p->memory[k];
	snprintf(names[k], sizeof names[k], "p%d", a->param);
	a->array = a->updated   ? inout(s, names[k], a->dtype, a->len)
		   : a->written ? out_at(s, names[k], a->dtype, a->len, a->skew)
				: in_at(s, names[k], a->dtype, a->len, a->skew);
	a->i = calloc(a->len, sizeof *a->i);
	a->f = calloc(a->len, sizeof *a->f);
	a->error = calloc(a->len, sizeof *a->error);
	a->touched = calloc(a->len, 1);
	for (size_t i = 0; i < a->len && (a->updated || !a->written); i++) {
		if (a->updated || (is_float(a->dtype) && !a->inexact))
			set(a->array, i, (double)random_int(a->updated ? 0 : -(int64_t)a->bound, (int64_t)a->bound));
		if (is_float(a->dtype))
			a->f[i] = value(a->array, i);
		else
			a->i[i] = value_int(a->array, i);
	}
}

static void expect(struct memory *a)
{
	double error = 0;
	for (size_t i = 0; i < a->len && a->written; i++) {
		if (!a->touched[i])
			continue;
		if (is_float(a->dtype))
			want(a->array, i, a->f[i]);
		else
			want_int(a->array, i, a->i[i]);
		error = fmax(error, a->error[i]);
	}
	if (error > 0)
		tolerance(a->array, error, 0);
	free(a->i), free(a->f), free(a->error), free(a->touched);
}

static tl_arg argument(const struct program *p, const struct param *x)
{
	return x->kind == POINTER ? ptr(p->memory[x->value].array) : tl_int(x->value);
}

/* Through a file of IR. It has no constexpr parameters, nor integers that are 1. */
static void launch_ir(struct suite *s, const struct program *p, const char *text, const tl_config *config,
		      const tl_arg *args)
{
	char dir[] = "/tmp/test-random-XXXXXX", source[64], ir[64], *command = NULL;
	size_t len, n = 0;
	tl_arg left[PARAMS];
	tl_module *m = NULL;
	tl_kernel *k;
	if (!mkdtemp(dir))
		exit(2);
	snprintf(source, sizeof source, "%s/kernel.tl", dir);
	snprintf(ir, sizeof ir, "%s/kernel.ttir", dir);
	FILE *f = fopen(source, "w");
	fputs(text, f);
	fclose(f);
	f = open_memstream(&command, &len);
	fprintf(f, "%s --emit ttir -o %s ", getenv("RANDOM_PASSES"), ir);
	write_command(f, source, text, "kernel", config, args, (size_t)p->nparams);
	fclose(f);
	for (int i = 0; i < p->nparams; i++)
		if (p->param[i].kind == POINTER || (p->param[i].kind == INTEGER && p->param[i].value != 1))
			left[n++] = args[i];
	if (system(command))
		case_fail(s, "tlc failed");
	else if (tl_module_load(s->ctx, ir, &m) || tl_module_kernel(m, "kernel", &k))
		case_fail(s, "after the passes: %s", tl_error(s->ctx));
	for (int i = 0; enter_schedule(s, i); i++)
		if (tl_launch(k, config, left, n) || tl_synchronize(s->ctx))
			case_fail(s, "after the passes: %s", tl_error(s->ctx));
	s->launched = true;
	tl_module_destroy(m);
	unlink(source), unlink(ir), rmdir(dir);
	free(command);
}

static void random_case(struct suite *s, int64_t seed, const char *left_out, bool moves)
{
	if (!case_begin(s, NULL, "%lld.", (long long)seed))
		return;
	struct program *p = calloc(1, sizeof *p);
	random_seed((uint64_t)seed);
	make_program(p, moves);
	if (left_out)
		leave_out(p, left_out);
	for (int k = 0; k < p->nmemories; k++)
		create(s, p, k);
	evaluate(p);
	for (int k = 0; k < p->nmemories; k++)
		expect(&p->memory[k]);
	tl_arg args[PARAMS];
	for (int i = 0; i < p->nparams; i++)
		args[i] = argument(p, &p->param[i]);
	char *text = program_text(p);
	tl_config config = {.grid = {(uint32_t)p->grid[0], (uint32_t)p->grid[1]},
			    .num_warps = p->warps,
			    .num_stages = p->stages,
			    .group_pids = p->group};
	if (getenv("RANDOM_PASSES"))
		launch_ir(s, p, text, &config, args);
	else
		launch_text(s, text, "kernel", &config, args, (size_t)p->nparams);
	int failed = s->nfailed;
	case_end(s);
	if (s->nfailed > failed || getenv("RANDOM_TEXT"))
		printf("%s", text);
	free(text);
	free(p);
}

static void tree_arrays(struct suite *s, struct tree *t, struct array **in, struct array **o)
{
	static char names[INT_TYPES + VARS][16];
	for (int k = 0; k < INT_TYPES; k++) {
		snprintf(names[k], sizeof names[k], "in%d", k);
		in[k] = inout(s, names[k], int_types[k], LEN);
		t->in[k] = calloc(LEN, sizeof *t->in[k]);
		for (int i = 0; i < LEN; i++) {
			t->in[k][i] = tree_corner(int_types[k]);
			set_int(in[k], (size_t)i, t->in[k][i]);
		}
	}
	for (int k = 0; k < t->nouts; k++) {
		int var = t->out_var[k];
		size_t len = (size_t)(t->programs * (t->var[var].tile ? t->lanes : 1));
		snprintf(names[INT_TYPES + k], sizeof names[k], "o%d", k);
		o[k] = out(s, names[INT_TYPES + k], t->var[var].t, len);
		t->out[k] = calloc(len, sizeof *t->out[k]);
		t->touched[k] = calloc(len, 1);
	}
}

static void tree_case(struct suite *s, int64_t seed, const char *left_out)
{
	if (!case_begin(s, NULL, "%lld.", (long long)seed))
		return;
	struct tree *t = calloc(1, sizeof *t);
	struct array *in[INT_TYPES], *o[VARS];
	tl_arg args[INT_TYPES + 6 + VARS];
	size_t n = 0;
	random_seed((uint64_t)seed);
	tree_make(t);
	if (left_out)
		tree_leave_out(t, left_out);
	tree_arrays(s, t, in, o);
	tree_evaluate(t);
	for (int k = 0; k < INT_TYPES; k++)
		args[n++] = ptr(in[k]);
	for (int k = 0; k < t->nargs; k++)
		args[n++] = tl_int(t->arg[k]);
	for (int k = 0; k < t->nouts; k++) {
		args[n++] = ptr(o[k]);
		for (size_t i = 0; i < o[k]->len; i++)
			if (t->touched[k][i])
				want_int(o[k], i, t->out[k][i]);
	}
	char *text = tree_text(t);
	tl_config config = {.grid = {(uint32_t)t->programs, 1, 1}, .num_warps = t->warps};
	run_text(s, text, &config, args, n, "%d programs", t->programs);
	for (int k = 0; k < INT_TYPES; k++)
		free(t->in[k]);
	for (int k = 0; k < t->nouts; k++)
		free(t->out[k]), free(t->touched[k]);
	free(t);
}

static void theme_tree(struct suite *s)
{
	each_seed(s, "tree", on_device(s, "interp") ? MANY : FEW, tree_case);
}

static void tile_case(struct suite *s, int64_t seed, const char *left_out)
{
	random_case(s, seed, left_out, false);
}

static void moves_case(struct suite *s, int64_t seed, const char *left_out)
{
	random_case(s, seed, left_out, true);
}

static void theme_random(struct suite *s)
{
	each_seed(s, "random", on_device(s, "interp") ? MANY : on_device(s, "cuda") ? FEW : SOME, tile_case);
}

static void theme_moves(struct suite *s)
{
	each_seed(s, "moves", 100, moves_case);
}

/* The harness's options stay; ours are passed on in the environment, which a restart after a crash keeps. */
int main(int argc, char **argv)
{
	static const struct theme themes[] = {{"random", theme_random},
					      {"tree", theme_tree},
					      {"dots", theme_dots},
					      {"loops", theme_loops},
					      {"blocks", theme_random_blocks},
					      {"products", theme_products},
					      {"moves", theme_moves},
					      {"values", theme_random_values},
					      {"scaled", theme_random_scaled},
					      {"pipelines", theme_random_pipelines},
					      {"offsets", theme_random_offsets},
					      {"edges", theme_random_edges},
					      {"tiles", theme_random_tiles},
					      {"attention", theme_random_attention},
					      {"gradients", theme_random_gradients},
					      {"experts", theme_random_experts},
					      {"pairs", theme_random_pairs},
					      {"weights", theme_random_weights},
					      {"strips", theme_random_strips}};
	static const char *const ours[][2] = {{"--seed", "RANDOM_SEED"},
					      {"--count", "RANDOM_COUNT"},
					      {"--kind", "RANDOM_KIND"},
					      {"--device", "TL_DEVICE"},
					      {"--passes", "RANDOM_PASSES"}};
	const char *command = NULL;
	bool shrinks = false;
	int n = 1;
	for (int i = 1; i < argc; i++) {
		bool taken = false;
		if ((taken = !strcmp(argv[i], "--shrink"))) {
			shrinks = true;
			command = i + 1 < argc && argv[i + 1][0] != '-' ? argv[++i] : NULL;
		}
		for (int k = 0; k < COUNT(ours) && i + 1 < argc && !taken; k++)
			if ((taken = !strcmp(argv[i], ours[k][0])))
				setenv(ours[k][1], argv[++i], 1);
		if (!taken)
			argv[n++] = !strcmp(argv[i], "--verbose") ? "-v" : argv[i];
	}
	argv[n] = NULL;
	if (shrinks)
		return shrink(argv, command);
	return run_themes(n, argv, themes, COUNT(themes));
}
