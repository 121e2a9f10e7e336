/* The options of the command line: a table for reading them, for --help, and for errors about misplaced options. */
#include <stddef.h>
#include <stdlib.h>

#include "support/span.h"
#include "support/suggest.h"
#include "cli/cli.h"

enum {
	LAUNCH = VERB_RUN | VERB_BENCH | VERB_TUNE,
	COMPARED = 1 << 16, /* tlc bench takes several values, separated by commas */
};

enum value_kind { TEXT, FLAG, NUMBER, WARPS, DEFINE, FOLDER };

static const struct option {
	const char *name;
	enum value_kind value;
	u32 verbs;
	size_t to; /* offset in struct command */
	int lo, hi;
	const char *shown, *help; /* in --help; lines of help are separated by newlines */
	const char *instead;      /* hint in the error for commands without the option */
} options[] = {
#define AT(field) offsetof(struct command, field)
	{"-k", TEXT, VERB_COMPILE | VERB_BUILD | LAUNCH | COMPARED, AT(kernel), 0, 0, "-k KERNEL",
	 "the jit function to compile; optional if the file has one kernel", NULL},
	{"-s", TEXT, VERB_COMPILE | VERB_BUILD, AT(signature), 0, 0, "-s SIGNATURE",
	 "types of the parameters that are not constexpr: '*fp16:16,*fp16:16,i32,i32:16,fp32',\n"
	 "or name=type pairs; :16 means divisible by 16, i32:1 means equal to 1; tlc build takes one -s\n"
	 "for each variant",
	 "the types are those of the arguments, as in i64:42"},
	{"-D", DEFINE, VERB_COMPILE | VERB_BUILD | LAUNCH | COMPARED, AT(defines), 0, 0, "-D NAME=VALUE",
	 "value of a constexpr parameter: a Python literal, a dtype or a jit function", NULL},
	{"-I", FOLDER, VERB_COMPILE | VERB_BUILD | VERB_LIST | LAUNCH, AT(folders), 0, 0, "-I FOLDER",
	 "folder to search for imported modules, in addition to those around the file and PYTHONPATH", NULL},
	{"--json", FLAG, VERB_LIST | VERB_TUNE | VERB_BENCH, AT(json), 0, 0, "--json",
	 "prints JSON: tlc list an object, tlc tune and tlc bench an array",
	 "tlc list, tlc tune and tlc bench have it"},
	{"--builtins", FLAG, VERB_LIST, AT(builtins), 0, 0, "--builtins",
	 "lists the built-in functions with parameters and defaults; tlc list without FILE", "tlc list has it"},
	{"--target", TEXT, VERB_COMPILE | VERB_BUILD, AT(target), 0, 0, "--target T",
	 "cuda:sm_75, sm_80, sm_86, sm_87, sm_89, sm_90 or sm_90a; cpu for this machine's CPU, or\n"
	 "cpu:baseline, avx2, avx512 or neon; default: this machine's GPU, else sm_90a; tlc build takes\n"
	 "one or several",
	 "--device D selects the target"},
	{"--emit", TEXT, VERB_COMPILE, AT(emit), 0, 0, "--emit KIND,...",
	 "stages to write: ast ttir ttgir llir ptx cubin; asm and obj for cpu; image (for tlc show),\n"
	 "calls of built-ins, schedule of loops; default ptx, for cpu asm",
	 "tlc FILE --emit … writes the stages"},
	{"-o", TEXT, VERB_COMPILE | VERB_BUILD, AT(output), 0, 0, "-o PATH",
	 "output file; - is standard output, the default for one text KIND; several KINDs are written\n"
	 "to PATH.KIND each, by default KERNEL.KIND; tlc build writes PATH.h and PATH.c",
	 "a tensor is saved with ARG=VALUE:>out.npy"},
	{"--prefix", TEXT, VERB_BUILD, AT(prefix), 0, 0, "--prefix TEXT",
	 "prefix of the names of all functions and tables that tlc build writes", "tlc build has it"},
	{"--depfile", TEXT, VERB_BUILD, AT(depfile), 0, 0, "--depfile PATH",
	 "writes the files that tlc build has read, as a rule for make and ninja", "tlc build has it"},
	{"--num-warps", WARPS, VERB_COMPILE | VERB_BUILD | LAUNCH | COMPARED, AT(options.num_warps), 1, 32,
	 "--num-warps N", "warps of a program: a power of two up to 32; default 4", NULL},
	{"--num-stages", NUMBER, VERB_COMPILE | VERB_BUILD | LAUNCH | COMPARED, AT(options.num_stages), 1, 64,
	 "--num-stages N", "stages of software pipelining; default 3", NULL},
	{"--maxnreg", NUMBER, VERB_COMPILE | VERB_BUILD | LAUNCH, AT(options.maxnreg), 1, 256, "--maxnreg N",
	 "the most registers of a thread; more are spilled to memory; default: ptxas decides", NULL},
	{"--group-pids", NUMBER, VERB_COMPILE | VERB_BUILD | LAUNCH | COMPARED, AT(options.group_pids), 0, 1 << 20,
	 "--group-pids N", "walks a two-dimensional grid in groups of N rows, for L2 reuse; 1: no groups;\n"
	 "default: 16 with --persistent, for GEMMs whose rows and columns share loads", NULL},
	{"--persistent", FLAG, VERB_COMPILE, AT(persistent), 0, 0, "--persistent",
	 "persistent kernel for grids of more programs than the GPU has multiprocessors: a block on each\n"
	 "runs several programs, if that is faster (GEMMs); tlc run and libtl choose by the grid",
	 "a launch chooses by its grid; --max-ctas -1 prevents a persistent kernel"},
	{"--may-overlap", FLAG, VERB_COMPILE, AT(may_overlap), 0, 0, "--may-overlap",
	 "pointer parameters may point to the same memory: loads and stores keep their order",
	 "a launch checks its arguments"},
	{"--any-size", FLAG, VERB_COMPILE, AT(any_size), 0, 0, "--any-size",
	 "arguments may have any size: offsets of addresses are computed in 64 bits", "a launch checks its arguments"},
	{"--max-ctas", NUMBER, LAUNCH | COMPARED, AT(max_ctas), -1, 1 << 20, "--max-ctas N",
	 "the most blocks of a persistent kernel; -1: a block for each program; default: the number of\n"
	 "the GPU's multiprocessors",
	 "--persistent compiles a persistent kernel"},
	{"--launch-cooperative-grid", FLAG, LAUNCH, AT(cooperative), 0, 0, "--launch-cooperative-grid",
	 "runs all blocks at the same time, so that they may wait for one another (GPU)", "only launches have it"},
	{"--launch-pdl", FLAG, LAUNCH, AT(pdl), 0, 0, "--launch-pdl",
	 "programmatic dependent launch: the kernel calls gdc_wait()", "only launches have it"},
	{"--debug", FLAG, VERB_COMPILE | VERB_BUILD | LAUNCH, AT(options.debug), 0, 0, "--debug",
	 "device_assert stops the kernel on the GPU too, and so does an integer overflow", NULL},
	{"--remarks", FLAG, VERB_COMPILE | LAUNCH, AT(options.remarks), 0, 0, "--remarks",
	 "prints the compiler's choices: for loads, stores, dots and loops, with the reason if one is\n"
	 "not the fastest; for a cubin, and on a GPU, registers too",
	 NULL},
	{"--time", FLAG, VERB_COMPILE, AT(options.time), 0, 0, "--time", "time of each pass",
	 "tlc bench times the kernel, tlc FILE --time its compilation"},
	{"--print-after", TEXT, VERB_COMPILE, AT(options.print_after), 0, 0, "--print-after P",
	 "prints the IR after pass P, or after all passes", "tlc FILE --print-after P shows it"},
	{"--stop-after", TEXT, VERB_COMPILE, AT(options.stop_after), 0, 0, "--stop-after P",
	 "stops after pass P; without --emit, writes the IR of that pass",
	 "a kernel runs only after all passes"},
	{"--start-after", TEXT, VERB_COMPILE, AT(options.start_after), 0, 0, "--start-after P",
	 "starts after pass P, for IR text that was printed after P", "a kernel runs only after all passes"},
	{"--device", TEXT, LAUNCH | COMPARED, AT(device), 0, 0, "--device D",
	 "cuda[:N]; cpu (compiled for this machine's CPU) or cpu:check (with each access checked);\n"
	 "interp (the reference interpreter); sim[:80] (runs the PTX on a simulator with checks);\n"
	 "default: cuda if there is a driver and a GPU, else cpu",
	 "--target T selects the target"},
	{"--gdb", FLAG, VERB_RUN, AT(gdb), 0, 0, "--gdb",
	 "runs in gdb on the device cpu, up to the kernel's first line, with its lines and variables",
	 "tlc run has it"},
	{"--sim-report", FLAG, VERB_RUN, AT(sim_report), 0, 0, "--sim-report",
	 "prints instructions, memory traffic and bank conflicts by source line, with --device sim", "tlc run has it"},
	{"-g", TEXT, LAUNCH, AT(grid), 0, 0, "-g X[,Y[,Z]]",
	 "the grid, programs along each axis: numbers, or arithmetic on number arguments and\n"
	 "constexprs, as in 'cdiv(n, BLOCK)'",
	 "a compiled kernel runs on any grid"},
	{"--rep", NUMBER, LAUNCH, AT(rep_ms), 1, 1 << 20, "--rep MS",
	 "milliseconds for which tlc tune times each configuration, default 10, and tlc bench the\n"
	 "kernel; default of tlc bench: 50 launches",
	 "tlc tune and tlc bench have it"},
	{"--warmup", NUMBER, LAUNCH, AT(warmup_ms), 1, 1 << 20, "--warmup MS",
	 "milliseconds for which each configuration of tlc tune, default 5, and the kernel of tlc bench\n"
	 "run before they are timed; default of tlc bench: 5 launches",
	 "tlc tune and tlc bench have it"},
	{"--check", TEXT, LAUNCH, AT(check), 0, 0, "--check TOLERANCE",
	 "compares the results of all configurations, or of all kernels of tlc bench, with those of the\n"
	 "first; a difference of TOLERANCE * (1 + |x|) is allowed",
	 "tlc tune has it"},
	{"--in-process", FLAG, LAUNCH, AT(in_process), 0, 0, "--in-process",
	 "runs configurations in this process; a configuration that fails on a GPU ends it", "tlc tune has it"},
	{"--against", TEXT, VERB_BENCH, AT(against), 0, 0, "--against FILE2",
	 "another version of FILE, timed alternately with it; -k, -D, --num-warps, --num-stages,\n"
	 "--group-pids, --max-ctas and --device take several values to compare, separated by commas",
	 "tlc bench has it"},
	{"--plot", TEXT, VERB_BENCH, AT(plot), 0, 0, "--plot PATH",
	 "plots the times of a range as .svg or .png, with gnuplot: GB/s with --bytes, else TFLOPS or ms",
	 "tlc bench has it"},
	{"--bytes", TEXT, VERB_BENCH, AT(bytes), 0, 0, "--bytes EXPR",
	 "bytes that a launch reads and writes, for GB/s: an expression of the arguments, as in '8*n'",
	 "tlc bench has it"},
	{"--flops", TEXT, VERB_BENCH, AT(flops), 0, 0, "--flops EXPR",
	 "operations of a launch, for TFLOPS: an expression of the arguments", "tlc bench has it"},
#undef AT
};

static const struct {
	const char *word, *called;
	enum verb verb;
	const char *about, *example; /* for --help */
} verbs[] = {
	{NULL, "compiling", VERB_COMPILE, "compiles a kernel and writes any stage of it",
	 "tlc examples/softmax.tl --target sm_90a --emit ttir,ptx -o softmax"},
	{"run", "tlc run", VERB_RUN, "runs a kernel and prints the tensors",
	 "tlc run examples/vector_add.tl -g 3 x_ptr=fp32[3000]:arange y_ptr=fp32[3000]:ones out_ptr=fp32[3000] n=3000"},
	{"bench", "tlc bench", VERB_BENCH, "times a kernel for one size or a range of sizes, or compares kernels",
	 "tlc bench examples/vector_add.tl -g 'cdiv(n, BLOCK)' x_ptr=fp32[n] y_ptr=fp32[n] out_ptr=fp32[n] "
	 "n=1024..65536:x4"},
	{"tune", "tlc tune", VERB_TUNE, "times the configurations of a kernel's triton.autotune, and ranks them",
	 "tlc tune kernel.py -k kernel -g 'cdiv(n, BLOCK)' x=fp32[8192]:rand:1 y=fp32[8192] n=8192"},
	{"list", "tlc list", VERB_LIST, "lists the kernels of a file, or the built-in functions",
	 "tlc list examples/softmax.tl"},
	{"show", "tlc show", VERB_SHOW, "prints the contents of a kernel image",
	 "tlc examples/softmax.tl --emit image && tlc show softmax_kernel.image"},
	{"cache", "tlc cache", VERB_CACHE, "lists, verifies or removes the kernels in the disk cache",
	 "tlc cache list"},
	{"build", "tlc build", VERB_BUILD, "compiles kernels ahead of time",
	 "tlc build examples/vector_add.tl --target sm_80 --target cpu -o vector_add"},
	{"serve", "tlc serve", VERB_SERVE, "runs configurations for the tuner of another process", NULL},
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

/* Prints the lines of the usage that begin with these words, and their continuation lines. */
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

/* --- errors -------------------------------------------------------------------------------------------------- */

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

/* Sets an option to its value; false after a message. */
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

/* Adds the values of an option that tlc bench compares, separated by commas. False: there is only one value. */
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

/* The option in `text`: "-k", "-kNAME", "--emit", "--emit=ptx". *value: the rest of the text, or NULL. */
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
