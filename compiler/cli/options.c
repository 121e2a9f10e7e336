/* The options of the command line: one table, from which they are read, explained and refused where they mean
 * nothing. */
#include <stddef.h>
#include <stdlib.h>

#include "support/suggest.h"
#include "cli/cli.h"

enum {
	LAUNCH = VERB_RUN | VERB_BENCH | VERB_TUNE,
	COMPARED = 1 << 16, /* tlc bench takes several values, between commas */
};

enum value_kind { TEXT, FLAG, NUMBER, WARPS, DEFINE, FOLDER };

static const struct option {
	const char *name;
	enum value_kind value;
	u32 verbs;
	size_t to; /* offset in struct command */
	int lo, hi;
	const char *shown, *help; /* in --help; lines of help are separated by newlines */
	const char *instead;      /* for who gives it to another verb */
} options[] = {
#define AT(field) offsetof(struct command, field)
	{"-k", TEXT, VERB_COMPILE | VERB_BUILD | LAUNCH | COMPARED, AT(kernel), 0, 0, "-k KERNEL",
	 "the jit function to compile; may be left out when the file has one kernel", NULL},
	{"-s", TEXT, VERB_COMPILE | VERB_BUILD, AT(signature), 0, 0, "-s SIGNATURE",
	 "types of the parameters that are not constexpr: '*fp16:16,*fp16:16,i32,i32:16,fp32',\n"
	 "or name=type pairs; :16 means divisible by 16, i32:1 an integer that is 1; for tlc build one\n"
	 "for each variant",
	 "the types are those of the arguments, as in i64:42"},
	{"-D", DEFINE, VERB_COMPILE | VERB_BUILD | LAUNCH | COMPARED, AT(defines), 0, 0, "-D NAME=VALUE",
	 "value of a constexpr parameter: a Python literal, a dtype or a jit function", NULL},
	{"-I", FOLDER, VERB_COMPILE | VERB_BUILD | VERB_LIST | LAUNCH, AT(folders), 0, 0, "-I FOLDER",
	 "where to look for modules that the file imports, besides around it and on PYTHONPATH", NULL},
	{"--json", FLAG, VERB_LIST | VERB_TUNE | VERB_BENCH, AT(json), 0, 0, "--json",
	 "of tlc list: one JSON object; of tlc tune and tlc bench: an array",
	 "tlc list, tlc tune and tlc bench have it"},
	{"--builtins", FLAG, VERB_LIST, AT(builtins), 0, 0, "--builtins",
	 "of tlc list, without FILE: the built-in functions, with parameters and defaults", "tlc list has it"},
	{"--target", TEXT, VERB_COMPILE | VERB_BUILD, AT(target), 0, 0, "--target T",
	 "cuda:sm_75, sm_80, sm_86, sm_87, sm_89, sm_90 or sm_90a; cpu for the processor here, or\n"
	 "cpu:baseline, avx2, avx512 or neon; default: the GPU here, else sm_90a; for tlc build one or\n"
	 "several",
	 "the device is what is compiled for: --device D"},
	{"--emit", TEXT, VERB_COMPILE, AT(emit), 0, 0, "--emit KIND,...",
	 "ast ttir ttgir llir ptx cubin; asm and obj of cpu; image (as tlc show reads it), calls of\n"
	 "built-ins, schedule of loops; default ptx, of cpu asm",
	 "tlc FILE --emit … shows what is compiled"},
	{"-o", TEXT, VERB_COMPILE | VERB_BUILD, AT(output), 0, 0, "-o PATH",
	 "where to; - is standard output, the default for one text KIND; with several KINDs,\n"
	 "PATH.KIND each, by default KERNEL.KIND; for tlc build PATH.h and PATH.c",
	 "a tensor is saved with ARG=VALUE:>out.npy"},
	{"--prefix", TEXT, VERB_BUILD, AT(prefix), 0, 0, "--prefix TEXT",
	 "of tlc build: in front of the names of all functions and tables", "tlc build has it"},
	{"--depfile", TEXT, VERB_BUILD, AT(depfile), 0, 0, "--depfile PATH",
	 "of tlc build: the files it has read, as a rule for make and ninja", "tlc build has it"},
	{"--num-warps", WARPS, VERB_COMPILE | VERB_BUILD | LAUNCH | COMPARED, AT(options.num_warps), 1, 32,
	 "--num-warps N", "warps of a program: a power of two up to 32; default 4", NULL},
	{"--num-stages", NUMBER, VERB_COMPILE | VERB_BUILD | LAUNCH | COMPARED, AT(options.num_stages), 1, 64,
	 "--num-stages N", "stages of software pipelining; default 3", NULL},
	{"--maxnreg", NUMBER, VERB_COMPILE | VERB_BUILD | LAUNCH, AT(options.maxnreg), 1, 256, "--maxnreg N",
	 "the most registers of a thread; others are kept in memory; default: ptxas decides", NULL},
	{"--group-pids", NUMBER, VERB_COMPILE | VERB_BUILD | LAUNCH | COMPARED, AT(options.group_pids), 0, 1 << 20,
	 "--group-pids N", "walk a two-dimensional grid in groups of N rows; 1: not; default: 16 with\n"
	 "--persistent, where loads of a product share both axes", NULL},
	{"--persistent", FLAG, VERB_COMPILE, AT(persistent), 0, 0, "--persistent",
	 "for launches of more programs than the GPU has multiprocessors, which as many blocks then\n"
	 "run one after the other, if that is faster (products); tlc run and libtl decide themselves",
	 "a launch decides itself; --max-ctas -1 keeps it from that"},
	{"--may-overlap", FLAG, VERB_COMPILE, AT(may_overlap), 0, 0, "--may-overlap",
	 "pointer parameters may point into the same memory: loads and stores keep their order",
	 "a launch looks at its arguments"},
	{"--any-size", FLAG, VERB_COMPILE, AT(any_size), 0, 0, "--any-size",
	 "for launches of any size: offsets of addresses are computed in 64 bits", "a launch looks at its arguments"},
	{"--max-ctas", NUMBER, LAUNCH | COMPARED, AT(max_ctas), -1, 1 << 20, "--max-ctas N",
	 "most blocks for a kernel whose blocks run several programs each; -1: a block for each\n"
	 "program; default: the GPU's multiprocessors",
	 "--persistent compiles for few blocks"},
	{"--launch-cooperative-grid", FLAG, LAUNCH, AT(cooperative), 0, 0, "--launch-cooperative-grid",
	 "all blocks at the same time, so that they may wait for one another (GPU)", "it is of a launch"},
	{"--launch-pdl", FLAG, LAUNCH, AT(pdl), 0, 0, "--launch-pdl",
	 "programmatic dependent launch: the kernel calls gdc_wait()", "it is of a launch"},
	{"--debug", FLAG, VERB_COMPILE | VERB_BUILD | LAUNCH, AT(options.debug), 0, 0, "--debug",
	 "device_assert stops the kernel on the GPU too, and so does an overflow", NULL},
	{"--remarks", FLAG, VERB_COMPILE | LAUNCH, AT(options.remarks), 0, 0, "--remarks",
	 "what was chosen for loads, stores, dots and loops, and why not better; of a cubin, and on a\n"
	 "GPU, registers too",
	 NULL},
	{"--time", FLAG, VERB_COMPILE, AT(options.time), 0, 0, "--time", "time of each pass",
	 "tlc bench times the kernel, tlc FILE --time its compilation"},
	{"--print-after", TEXT, VERB_COMPILE, AT(options.print_after), 0, 0, "--print-after P",
	 "the IR after pass P, or after all", "tlc FILE --print-after P shows it"},
	{"--stop-after", TEXT, VERB_COMPILE, AT(options.stop_after), 0, 0, "--stop-after P",
	 "goes no further than pass P; without --emit, the IR as it is then",
	 "a kernel runs when all of it is compiled"},
	{"--start-after", TEXT, VERB_COMPILE, AT(options.start_after), 0, 0, "--start-after P",
	 "of IR text: goes on behind pass P, after which it was printed", "a kernel runs when all of it is compiled"},
	{"--device", TEXT, LAUNCH | COMPARED, AT(device), 0, 0, "--device D",
	 "cuda[:N]; cpu (compiled for the processor here) or cpu:check (and each access checked);\n"
	 "interp (the reference interpreter); sim[:80] (the PTX on a checking simulator);\n"
	 "default: cuda where there is a driver and a GPU, else cpu",
	 "--target T says what to compile for"},
	{"--gdb", FLAG, VERB_RUN, AT(gdb), 0, 0, "--gdb",
	 "runs in gdb on the device cpu, up to the kernel's first line, with its lines and variables",
	 "it is for tlc run"},
	{"--sim-report", FLAG, VERB_RUN, AT(sim_report), 0, 0, "--sim-report",
	 "with --device sim: instructions, memory traffic and bank conflicts, by source line", "tlc run has it"},
	{"-g", TEXT, LAUNCH, AT(grid), 0, 0, "-g X[,Y[,Z]]",
	 "the grid: how many programs along each axis; numbers, or arithmetic on number arguments and\n"
	 "constexprs, as in 'cdiv(n, BLOCK)'",
	 "a compiled kernel runs on any grid"},
	{"--rep", NUMBER, LAUNCH, AT(rep_ms), 1, 1 << 20, "--rep MS",
	 "how long each configuration is timed, default 10; of tlc bench: how long the kernel is, in\n"
	 "place of 50 launches",
	 "tlc tune and tlc bench have it"},
	{"--warmup", NUMBER, LAUNCH, AT(warmup_ms), 1, 1 << 20, "--warmup MS",
	 "how long each configuration runs before, default 5; of tlc bench: the kernel, in place of 5\n"
	 "launches",
	 "tlc tune and tlc bench have it"},
	{"--check", TEXT, LAUNCH, AT(check), 0, 0, "--check TOLERANCE",
	 "configurations, and what tlc bench compares, are to write what the first one does, within\n"
	 "that part of 1 + |x|",
	 "tlc tune has it"},
	{"--in-process", FLAG, LAUNCH, AT(in_process), 0, 0, "--in-process",
	 "configurations are tried in this process, which one that fails on a GPU ends", "tlc tune has it"},
	{"--against", TEXT, VERB_BENCH, AT(against), 0, 0, "--against FILE2",
	 "another version of FILE, to be timed in turns with it; -k, -D, --num-warps, --num-stages,\n"
	 "--group-pids, --max-ctas and --device take several values to compare, between commas",
	 "tlc bench has it"},
	{"--plot", TEXT, VERB_BENCH, AT(plot), 0, 0, "--plot PATH",
	 "of a range: curves, .svg or .png, drawn by gnuplot: GB/s with --bytes, else TFLOPS, else ms",
	 "tlc bench has it"},
	{"--bytes", TEXT, VERB_BENCH, AT(bytes), 0, 0, "--bytes EXPR",
	 "what one launch moves, for GB/s: an expression of the arguments, as in --bytes '8*n'", "tlc bench has it"},
	{"--flops", TEXT, VERB_BENCH, AT(flops), 0, 0, "--flops EXPR", "what one launch computes, for TFLOPS",
	 "tlc bench has it"},
#undef AT
};

static const struct {
	const char *word, *called;
	enum verb verb;
	const char *about, *example; /* for --help */
} verbs[] = {
	{NULL, "compiling", VERB_COMPILE, "compiles a kernel and shows any step of it",
	 "tlc examples/softmax.tl --target sm_90a --emit ttir,ptx -o softmax"},
	{"run", "tlc run", VERB_RUN, "runs a kernel and shows the tensors",
	 "tlc run examples/vector_add.tl -g 3 x_ptr=fp32[3000]:arange y_ptr=fp32[3000]:ones out_ptr=fp32[3000] n=3000"},
	{"bench", "tlc bench", VERB_BENCH, "times a kernel, for one size, for a range, or against others",
	 "tlc bench examples/vector_add.tl -g 'cdiv(n, BLOCK)' x_ptr=fp32[n] y_ptr=fp32[n] out_ptr=fp32[n] "
	 "n=1024..65536:x4"},
	{"tune", "tlc tune", VERB_TUNE, "tries the configurations of a kernel under triton.autotune, and ranks them",
	 "tlc tune kernel.py -k kernel -g 'cdiv(n, BLOCK)' x=fp32[8192]:rand:1 y=fp32[8192] n=8192"},
	{"list", "tlc list", VERB_LIST, "lists the kernels of a file, or the built-in functions",
	 "tlc list examples/softmax.tl"},
	{"show", "tlc show", VERB_SHOW, "shows what is in a kernel image",
	 "tlc examples/softmax.tl --emit image && tlc show softmax_kernel.image"},
	{"cache", "tlc cache", VERB_CACHE, "lists, verifies or removes the kernels on disk", "tlc cache list"},
	{"build", "tlc build", VERB_BUILD, "compiles kernels ahead of time",
	 "tlc build examples/vector_add.tl --target sm_80 --target cpu -o vector_add"},
	{"serve", "tlc serve", VERB_SERVE, "tries configurations for the tuner of another process", NULL},
};

enum verb read_verb(const char *word)
{
	for (u32 i = 1; i < ARRAY_LEN(verbs); i++)
		if (!strcmp(word, verbs[i].word))
			return verbs[i].verb;
	return VERB_COMPILE;
}

void list_options(FILE *out, u32 of)
{
	for (u32 i = 0; i < ARRAY_LEN(options); i++) {
		if (!(options[i].verbs & of))
			continue;
		for (const char *name = options[i].shown, *line = options[i].help; *line; name = "") {
			int n = (int)strcspn(line, "\n");
			fprintf(out, "  %-18s %.*s\n", name, n, line);
			line += n + (line[n] != 0);
		}
	}
}

/* The lines of the usage that begin with these words, and those that go on behind them. */
static void list_usage(FILE *out, const char *usage, const char *begin)
{
	bool mine = false;
	for (size_t n; *usage; usage += n) {
		n = strcspn(usage, "\n") + 1;
		if (strncmp(usage, "       ", 7) != 0)
			mine = !strncmp(usage, begin, strlen(begin));
		if (mine)
			fprintf(out, "%.*s", (int)n, usage);
	}
}

void help_of_command(FILE *out, const char *word, const char *usage)
{
	u32 i = 1;
	char begin[32];
	while (i < ARRAY_LEN(verbs) && strcmp(word, verbs[i].word) != 0)
		i++;
	fprintf(out, "tlc %s: %s\n\n", word, verbs[i].about);
	snprintf(begin, sizeof begin, "  tlc %s ", word);
	list_usage(out, usage, begin);
	if (verbs[i].example)
		fprintf(out, "\nExample: %s\n", verbs[i].example);
	if (verbs[i].verb & ~(VERB_SERVE | VERB_SHOW | VERB_CACHE))
		fputs("\n", out);
	if (verbs[i].verb & (LAUNCH | VERB_BUILD | VERB_LIST))
		list_usage(out, usage, "  FILE ");
	if (verbs[i].verb & LAUNCH)
		list_usage(out, usage, "  ARG=VALUE ");
	list_options(out, verbs[i].verb);
}

/* --- what is wrong ------------------------------------------------------------------------------------------- */

static void unknown_option(const struct command *c, const char *name)
{
	const char *names[ARRAY_LEN(options) + 2] = {"--help", "--version"};
	u32 n = 2;
	for (u32 i = 0; i < ARRAY_LEN(options); i++)
		if (options[i].verbs & c->verb)
			names[n++] = options[i].name;
	const char *like = strlen(name) > 2 ? did_you_mean(name, names, n) : NULL;
	if (like)
		complain(0, "unknown option '%s'; did you mean '%s'?", name, like);
	else
		complain(0, "unknown option '%s'; see tlc --help", name);
}

static void misplaced(const struct command *c, const struct option *o)
{
	const char *here = "";
	for (u32 i = 0; i < ARRAY_LEN(verbs); i++)
		if (verbs[i].verb == c->verb)
			here = verbs[i].called;
	if (c->verb == VERB_LIST || !o->instead)
		complain(0, "%s takes no option '%s'", here, o->name);
	else
		complain(0, "%s takes no option '%s': %s", here, o->name, o->instead);
}

static void unexpected(const struct command *c, const char *word)
{
	const char *words[ARRAY_LEN(verbs)];
	u32 n = 0;
	for (u32 i = 1; i < ARRAY_LEN(verbs); i++)
		words[n++] = verbs[i].word;
	const char *like = c->verb == VERB_COMPILE ? did_you_mean(c->file, words, n) : NULL;
	if (c->verb & LAUNCH)
		complain(0, "expected ARG=VALUE, not '%s'", word);
	else if (like)
		complain(0, "unexpected '%s' after '%s'; did you mean 'tlc %s'?", word, c->file, like);
	else if (c->verb == VERB_COMPILE && strchr(word, '='))
		complain(0, "unexpected '%s'; -D gives constexpr parameters their values, -s the others their types",
			 word);
	else
		complain(0, "unexpected '%s'; see tlc --help", word);
}

/* --- reading ------------------------------------------------------------------------------------------------- */

static bool read_number(const struct option *o, const char *value, int *out)
{
	char *end;
	long n = strtol(value, &end, 10);
	if (*end || end == value || n < o->lo || n > o->hi) {
		complain(0, "%s: expected a number from %d to %d, not '%s'", o->name, o->lo, o->hi, value);
		return false;
	}
	if (o->value == WARPS && !is_pow2(n)) {
		complain(0, "%s: %s is not a power of two", o->name, value);
		return false;
	}
	*out = (int)n;
	return true;
}

static bool add_define(struct command *c, const char *text)
{
	const char *eq = strchr(text, '=');
	if (!eq || eq == text) {
		complain(0, "-D: expected NAME=VALUE, not '%s'", text);
		return false;
	}
	vec_push(&c->arena, &c->defines, ((struct define){arena_str(&c->arena, text, (size_t)(eq - text)), eq + 1}));
	return true;
}

/* One option with its value; false after a message. */
static bool set_option(struct command *c, const struct option *o, const char *value)
{
	void *to = (char *)c + o->to;
	switch (o->value) {
	case FLAG: *(bool *)to = true; return true;
	case TEXT:
		*(const char **)to = value;
		if (to == &c->signature)
			vec_push(&c->arena, &c->signatures, value);
		if (to == &c->target)
			vec_push(&c->arena, &c->targets, value);
		return true;
	case DEFINE: return add_define(c, value);
	case FOLDER: vec_push(&c->arena, &c->folders, value); return true;
	default: return read_number(o, value, to);
	}
}

/* Values between commas, of tlc bench: each is chosen later. False: it is one value. */
static bool add_compared(struct command *c, const struct option *o, const char *text)
{
	const char *eq = o->value == DEFINE ? strchr(text, '=') : NULL, *at = eq ? eq + 1 : text;
	if (!(o->verbs & COMPARED) || c->verb != VERB_BENCH || !at[span_outside(at, ",")])
		return false;
	struct compared x = {.option = o->name};
	for (;; at++) {
		size_t len = span_outside(at, ",");
		vec_push(&c->arena, &x.values,
			 arena_printf(&c->arena, "%.*s%.*s", (int)(eq ? eq + 1 - text : 0), text, (int)len, at));
		at += len;
		if (!*at)
			break;
	}
	vec_push(&c->arena, &c->compared, x);
	return true;
}

bool choose_compared(struct command *c, const char *option, const char *value)
{
	for (u32 i = 0; option && i < ARRAY_LEN(options); i++)
		if (!strcmp(options[i].name, option))
			return set_option(c, &options[i], value);
	c->file = value;
	return true;
}

/* The option that `text` is or begins with: "-k", "-kNAME", "--emit", "--emit=ptx". *value is what is joined to it, or
 * NULL. */
static const struct option *find_option(const char *text, const char **value)
{
	size_t len = text[1] == '-' ? strcspn(text, "=") : 2;
	*value = text[len] ? text + len + (text[1] == '-') : NULL;
	for (u32 i = 0; i < ARRAY_LEN(options); i++)
		if (strlen(options[i].name) == len && !memcmp(options[i].name, text, len))
			return &options[i];
	return NULL;
}

bool read_options(struct command *c, int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		const char *text = argv[i], *value;
		if (text[0] != '-' || !text[1]) {
			if (!c->file) {
				c->file = text;
			} else if (c->verb & LAUNCH && strchr(text, '=')) {
				vec_push(&c->arena, &c->args, text);
			} else {
				unexpected(c, text);
				return false;
			}
			continue;
		}
		const struct option *o = find_option(text, &value);
		if (!o) {
			unknown_option(c, arena_str(&c->arena, text, strcspn(text, "=")));
			return false;
		}
		if (!(o->verbs & c->verb)) {
			misplaced(c, o);
			return false;
		}
		if (o->value == FLAG ? value != NULL : !value && i + 1 == argc) {
			complain(0,
				 o->value == FLAG ? "option '%s' takes no value"
						  : "option '%s' needs a value; see tlc --help",
				 o->name);
			return false;
		}
		if (o->value != FLAG && !value)
			value = argv[++i];
		if (!(value && add_compared(c, o, value)) && !set_option(c, o, value))
			return false;
	}
	if (!c->file && !c->builtins)
		complain(0, c->verb == VERB_CACHE ? "tlc cache: list, verify, clear or path?"
						  : "no input file; see tlc --help");
	return c->file || c->builtins;
}
