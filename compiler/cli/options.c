/* The options of the command line: a table for reading them, for --help, and for errors about misplaced options. */
#include <stddef.h>
#include <stdlib.h>

#include "support/span.h"
#include "support/suggest.h"
#include "cli/cli.h"

enum {
	COMPILES = VERB_COMPILE | VERB_BUILD,
	LAUNCH = VERB_RUN | VERB_BENCH | VERB_TUNE,
	COMPARED = 1 << 16, /* tlc bench takes several values, separated by commas */
};

/* CHOICE: an option without value, which sets an enumeration to `lo`. WORD: a word of codegen_numbers[lo] */
enum value_kind { TEXT, FLAG, CHOICE, NUMBER, WARPS, WORD, LAUNCHER, DEFINE, FOLDER };

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
	{"-k", TEXT, COMPILES | LAUNCH | COMPARED, AT(kernel), 0, 0, "-k KERNEL",
	 "the jit function to compile; optional if the file has one kernel", NULL},
	{"-s", TEXT, COMPILES, AT(signature), 0, 0, "-s SIGNATURE",
	 "types of the parameters that are not constexpr: '*fp16:16,*fp16:16,i32,i32:16,fp32',\n"
	 "or name=type pairs; :16 means divisible by 16, i32:1 means equal to 1; tlc build takes one -s\n"
	 "for each variant",
	 "the types are those of the arguments, as in i64:42"},
	{"-D", DEFINE, COMPILES | LAUNCH | COMPARED, AT(defines), 0, 0, "-D NAME=VALUE",
	 "value of a constexpr parameter: a Python literal, a dtype or a jit function", NULL},
	{"-I", FOLDER, COMPILES | VERB_LIST | LAUNCH, AT(folders), 0, 0, "-I FOLDER",
	 "folder to search for imported modules, in addition to those around the file and PYTHONPATH", NULL},
	{"--json", FLAG, VERB_LIST | VERB_TUNE | VERB_BENCH, AT(json), 0, 0, "--json",
	 "prints JSON: tlc list an object, tlc tune and tlc bench an array",
	 "tlc list, tlc tune and tlc bench have it"},
	{"--builtins", FLAG, VERB_LIST, AT(builtins), 0, 0, "--builtins",
	 "lists the built-in functions with parameters and defaults; tlc list without FILE", "tlc list has it"},
	{"--target", TEXT, COMPILES, AT(target), 0, 0, "--target T",
	 "cuda:sm_75, sm_80, sm_86, sm_87, sm_89, sm_90 or sm_90a; cpu for this machine's CPU, or\n"
	 "cpu:baseline, avx2, avx512 or neon; default: this machine's GPU, else sm_90a; tlc build takes\n"
	 "one or several",
	 "--device D selects the target"},
	{"--emit", TEXT, VERB_COMPILE, AT(emit), 0, 0, "--emit KIND,...",
	 "stages to write: ast ttir ttgir llir ptx cubin; asm and obj for cpu; image (for tlc show),\n"
	 "calls of built-ins, schedule of loops, metadata for --abi triton; default ptx, for cpu asm",
	 "tlc FILE --emit … writes the stages"},
	{"-o", TEXT, COMPILES, AT(output), 0, 0, "-o PATH",
	 "output file; - is standard output, the default for one text KIND; several KINDs are written\n"
	 "to PATH.KIND each, by default KERNEL.KIND; tlc build writes PATH.h and PATH.c",
	 "a tensor is saved with ARG=VALUE:>out.npy"},
	{"--prefix", TEXT, VERB_BUILD, AT(prefix), 0, 0, "--prefix TEXT",
	 "prefix of the names of all functions and tables that tlc build writes", "tlc build has it"},
	{"--depfile", TEXT, VERB_BUILD, AT(depfile), 0, 0, "--depfile PATH",
	 "writes the files that tlc build has read, as a rule for make and ninja", "tlc build has it"},
	{"--num-warps", WARPS, COMPILES | LAUNCH | COMPARED, AT(options.codegen.num_warps), 1, MAX_NUM_WARPS,
	 "--num-warps N", "warps of a program: a power of two up to 32; default 4", NULL},
	{"--num-stages", NUMBER, COMPILES | LAUNCH | COMPARED, AT(options.codegen.num_stages), 1, MAX_NUM_STAGES,
	 "--num-stages N", "stages of software pipelining; default 3", NULL},
	{"--maxnreg", NUMBER, COMPILES | LAUNCH, AT(options.codegen.maxnreg), 1, MAX_MAXNREG,
	 "--maxnreg N", "the most registers of a thread; more are spilled to memory; default: ptxas decides", NULL},
	{"--fp-fusion", WORD, COMPILES | LAUNCH | COMPARED, AT(options.codegen.fp_fusion), CODEGEN_FP_FUSION, 0,
	 "--fp-fusion on|off",
	 "contracts x * y + z to a fused multiply-add, which rounds once; default on; off, all devices give\n"
	 "the same bits (tl.fma, dots and math functions still fuse)",
	 NULL},
	{"--ftz", WORD, COMPILES | LAUNCH | COMPARED, AT(options.codegen.ftz), CODEGEN_FTZ, 0, "--ftz on|off",
	 "exp, exp2, sqrt, rsqrt and the fast_ functions of fp32 on a GPU take subnormal numbers as 0 and\n"
	 "return 0 for them; default on; off costs instructions",
	 NULL},
	{"--group-pids", NUMBER, COMPILES | LAUNCH | COMPARED, AT(options.codegen.group_pids), 0, MAX_GROUP_PIDS,
	 "--group-pids N", "walks a two-dimensional grid in groups of N rows, for L2 reuse; 1: no groups;\n"
	 "default: 16 with --persistent, for GEMMs whose rows and columns share loads", NULL},
	{"--persistent", CHOICE, VERB_COMPILE, AT(options.codegen.grid), GRID_ROWS, 0, "--persistent",
	 "persistent kernel for grids of more programs than the GPU has multiprocessors: a block on each\n"
	 "runs several programs, if that is faster (GEMMs); tlc run and libtl choose by the grid",
	 "a launch chooses by its grid; --max-ctas -1 prevents a persistent kernel"},
	{"--may-overlap", CHOICE, VERB_COMPILE, AT(options.codegen.alias), ALIAS_ANY, 0, "--may-overlap",
	 "pointer parameters may point to the same memory: loads and stores keep their order",
	 "a launch checks its arguments"},
	{"--any-size", CHOICE, VERB_COMPILE, AT(options.codegen.sizes), BOUNDS_WIDE, 0, "--any-size",
	 "arguments may have any size: offsets of addresses are computed in 64 bits", "a launch checks its arguments"},
	{"--abi", LAUNCHER, VERB_COMPILE, AT(options.codegen.abi), 0, 0, "--abi libtl|triton",
	 "the launcher: libtl's by default, or Triton's, for any sizes, overlap and grid; --emit metadata\n"
	 "writes what it must know",
	 "tlc FILE --abi triton compiles for Triton's launcher"},
	{"--max-ctas", NUMBER, LAUNCH | COMPARED, AT(config.max_ctas), -1, 1 << 20, "--max-ctas N",
	 "the most blocks of a persistent kernel; -1: a block for each program; default: the number of\n"
	 "the GPU's multiprocessors",
	 "--persistent compiles a persistent kernel"},
	{"--launch-cooperative-grid", FLAG, LAUNCH, AT(config.launch_cooperative_grid), 0, 0,
	 "--launch-cooperative-grid",
	 "runs all blocks at the same time, so that they may wait for one another (GPU)", "only launches have it"},
	{"--launch-pdl", FLAG, LAUNCH, AT(config.launch_pdl), 0, 0, "--launch-pdl",
	 "programmatic dependent launch: the kernel calls gdc_wait()", "only launches have it"},
	{"--debug", FLAG, COMPILES | LAUNCH, AT(options.codegen.debug), 0, 0, "--debug",
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
	{"--most", NUMBER, LAUNCH, AT(most), 1, 1 << 20, "--most N",
	 "tries only the N configurations that a model of the GPU expects to be the fastest; with 1\n"
	 "none runs; default: all",
	 "tlc tune has it"},
	{"--in-process", FLAG, LAUNCH, AT(in_process), 0, 0, "--in-process",
	 "runs configurations in this process; a configuration that fails on a GPU ends it", "tlc tune has it"},
	{"--against", TEXT, VERB_BENCH, AT(against), 0, 0, "--against FILE2",
	 "another version of FILE, timed alternately with it; -k, -D, --num-warps, --num-stages,\n"
	 "--group-pids, --fp-fusion, --ftz, --max-ctas and --device take several values to compare,\n"
	 "separated by commas",
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

static const struct verb_info {
	const char *word, *called;
	enum verb verb;
	int (*run)(struct command *c);
	const char *usage, *about, *example; /* for --help */
} verbs[] = {
	{NULL, "compiling", VERB_COMPILE, command_compile,
	 "  tlc FILE [-k KERNEL] [-s SIGNATURE] [-D NAME=VALUE]... [--target T] [--emit KIND,...] [-o PATH]\n",
	 "compiles a kernel and writes any stage of it",
	 "tlc examples/softmax.tl --target sm_90a --emit ttir,ptx -o softmax"},
	{"run", "tlc run", VERB_RUN, command_run,
	 "  tlc run FILE -k KERNEL -g X[,Y[,Z]] [--device D] [-D NAME=VALUE]... ARG=VALUE...\n",
	 "runs a kernel and prints the tensors",
	 "tlc run examples/vector_add.tl -g 3 x_ptr=fp32[3000]:arange y_ptr=fp32[3000]:ones out_ptr=fp32[3000] n=3000"},
	{"bench", "tlc bench", VERB_BENCH, command_bench,
	 "  tlc bench FILE ...as run... [--bytes EXPR] [--flops EXPR] [--rep MS] [--json]\n"
	 "            [--against FILE2] [--check TOLERANCE] [--plot PATH]\n",
	 "times a kernel for one size or a range of sizes, or compares kernels",
	 "tlc bench examples/vector_add.tl -g 'cdiv(n, BLOCK)' x_ptr=fp32[n] y_ptr=fp32[n] out_ptr=fp32[n] "
	 "n=1024..65536:x4"},
	{"tune", "tlc tune", VERB_TUNE, command_run,
	 "  tlc tune FILE ...as run... [--check TOLERANCE] [--rep MS] [--json]\n",
	 "times the configurations of a kernel's triton.autotune, and ranks them",
	 "tlc tune kernel.py -k kernel -g 'cdiv(n, BLOCK)' x=fp32[8192]:rand:1 y=fp32[8192] n=8192"},
	{"list", "tlc list", VERB_LIST, command_list, "  tlc list FILE [--json]\n  tlc list --builtins\n",
	 "lists the kernels of a file, or the built-in functions", "tlc list examples/softmax.tl"},
	{"show", "tlc show", VERB_SHOW, command_show, "  tlc show IMAGE\n", "prints the contents of a kernel image",
	 "tlc examples/softmax.tl --emit image && tlc show softmax_kernel.image"},
	{"cache", "tlc cache", VERB_CACHE, command_cache, "  tlc cache list|verify|clear|path\n",
	 "lists, verifies or removes the kernels in the disk cache", "tlc cache list"},
	{"build", "tlc build", VERB_BUILD, command_build,
	 "  tlc build FILE [-k KERNEL] [-s SIGNATURE]... [-D NAME=VALUE]... [--target T]... -o NAME\n"
	 "            [--prefix TEXT] [--depfile PATH]\n"
	 "  tlc build MANIFEST [--target T]... [-o NAME]\n",
	 "compiles kernels ahead of time",
	 "tlc build examples/vector_add.tl --target sm_80 --target cpu -o vector_add"},
	{"serve", "tlc serve", VERB_SERVE, NULL,
	 "  tlc serve          (runs configurations for a tuner: tl_tuning.helper)\n",
	 "runs configurations for the tuner of another process", NULL},
};

static const char about_file[] =
	"  FILE               a .tl or .py file, or IR text in a .ttir or .ttgir file; - is standard input\n";
static const char about_values[] =
	"  ARG=VALUE          42, 0.5, i64:42, fp16[128,64]:randn:0 (zeros ones arange empty "
	"rand:SEED randn:SEED), @in.npy,\n"
	"                     bf16@in.npy, None; a tensor may end in :>out.npy to save it after the launch;\n"
	"                     tuples (1, fp32[8]) and (x=1, y=2); descriptors desc[64,64]:fp16[128,256]:rand:1\n";

/* The row of the command line's first word. */
static const struct verb_info *find_verb(const char *word)
{
	for (u32 i = 1; i < ARRAY_LEN(verbs); i++)
		if (!strcmp(word, verbs[i].word))
			return &verbs[i];
	return &verbs[0];
}

static const struct verb_info *info_of(const struct command *c)
{
	u32 i = 0;
	while (verbs[i].verb != c->verb)
		i++;
	return &verbs[i];
}

enum verb read_verb(const char *word)
{
	return find_verb(word)->verb;
}

int run_command(struct command *c)
{
	return info_of(c)->run(c);
}

/* Lists the options of the commands in `of`. */
static void list_options(u32 of)
{
	for (u32 i = 0; i < ARRAY_LEN(options); i++) {
		if (!(options[i].verbs & of))
			continue;
		for (const char *name = options[i].shown, *line = options[i].help; *line; name = "") {
			int n = (int)strcspn(line, "\n");
			printf("  %-18s %.*s\n", name, n, line);
			line += n + (line[n] != 0);
		}
	}
}

void show_help(void)
{
	puts("tlc compiles Triton kernels.\n");
	for (u32 i = 0; i < ARRAY_LEN(verbs); i++)
		fputs(verbs[i].usage, stdout);
	printf("\n%s%s", about_file, about_values);
	list_options(~0u);
	puts("  --help, --version  prints this text, or with tlc COMMAND --help that of a command; prints the\n"
	     "                     versions of tlc and of its LLVM\n\nPasses:");
	compile_list_passes(stdout);
}

void show_help_of(const char *word)
{
	const struct verb_info *v = find_verb(word);
	printf("tlc %s: %s\n\n%s", word, v->about, v->usage);
	if (v->example)
		printf("\nExample: %s\n", v->example);
	if (v->verb & ~(VERB_SERVE | VERB_SHOW | VERB_CACHE))
		puts("");
	if (v->verb & (LAUNCH | VERB_BUILD | VERB_LIST))
		fputs(about_file, stdout);
	if (v->verb & LAUNCH)
		fputs(about_values, stdout);
	list_options(v->verb);
}

/* --- errors -------------------------------------------------------------------------------------------------- */

static bool unknown_option(const struct command *c, const char *name)
{
	const char *names[ARRAY_LEN(options) + 2] = {"--help", "--version"};
	u32 n = 2;
	for (u32 i = 0; i < ARRAY_LEN(options); i++)
		if (options[i].verbs & c->verb)
			names[n++] = options[i].name;
	const char *like = strlen(name) > 2 ? did_you_mean(name, names, n) : NULL;
	if (like)
		return refuse("unknown option '%s'; did you mean '%s'?", name, like);
	return refuse("unknown option '%s'; see tlc --help", name);
}

static bool misplaced(const struct command *c, const struct option *o)
{
	const char *here = info_of(c)->called;
	if (c->verb == VERB_LIST || !o->instead)
		return refuse("%s takes no option '%s'", here, o->name);
	return refuse("%s takes no option '%s': %s", here, o->name, o->instead);
}

static bool unexpected(const struct command *c, const char *word)
{
	const char *words[ARRAY_LEN(verbs)];
	u32 n = 0;
	for (u32 i = 1; i < ARRAY_LEN(verbs); i++)
		words[n++] = verbs[i].word;
	const char *like = c->verb == VERB_COMPILE ? did_you_mean(c->file, words, n) : NULL;
	if (c->verb & LAUNCH)
		return refuse("expected ARG=VALUE, not '%s'", word);
	if (like)
		return refuse("unexpected '%s' after '%s'; did you mean 'tlc %s'?", word, c->file, like);
	if (c->verb == VERB_COMPILE && strchr(word, '='))
		return refuse("unexpected '%s'; -D gives constexpr parameters their values, -s the others their types",
			      word);
	return refuse("unexpected '%s'; see tlc --help", word);
}

/* --- reading ------------------------------------------------------------------------------------------------- */

static bool read_number(const struct option *o, const char *value, int *out)
{
	char *end;
	long n = strtol(value, &end, 10);
	if (*end || end == value || n < o->lo || n > o->hi)
		return refuse("%s: expected a number from %d to %d, not '%s'", o->name, o->lo, o->hi, value);
	if (o->value == WARPS && !is_pow2(n))
		return refuse("%s: %s is not a power of two", o->name, value);
	*out = (int)n;
	return true;
}

static bool read_word(const struct option *o, const char *value, int *out)
{
	int v = codegen_number_of_word(o->lo, value);
	if (v <= 0)
		return refuse("%s: expected %s, not '%s'", o->name, strchr(o->shown, ' ') + 1, value);
	*out = v;
	return true;
}

static bool read_launcher(const struct option *o, const char *value, enum abi *out)
{
	bool triton = !strcmp(value, "triton");
	if (!triton && strcmp(value, "libtl") != 0)
		return refuse("%s: expected libtl or triton, not '%s'", o->name, value);
	*out = triton ? ABI_TRITON : ABI_LIBTL;
	return true;
}

static bool add_define(struct command *c, const char *text)
{
	const char *eq = strchr(text, '=');
	if (!eq || eq == text)
		return refuse("-D: expected NAME=VALUE, not '%s'", text);
	vec_push(&c->arena, &c->defines, ((struct define){arena_str(&c->arena, text, (size_t)(eq - text)), eq + 1}));
	return true;
}

/* Sets an option to its value; false after a message. */
static bool set_option(struct command *c, const struct option *o, const char *value)
{
	void *to = (char *)c + o->to;
	switch (o->value) {
	case FLAG: *(bool *)to = true; return true;
	case CHOICE: *(int *)to = o->lo; return true;
	case TEXT:
		*(const char **)to = value;
		if (to == &c->signature)
			vec_push(&c->arena, &c->signatures, value);
		if (to == &c->target)
			vec_push(&c->arena, &c->targets, value);
		return true;
	case WORD: return read_word(o, value, to);
	case LAUNCHER: return read_launcher(o, value, to);
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
		if (word_is(text, len, options[i].name))
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
				return unexpected(c, text);
			}
			continue;
		}
		const struct option *o = find_option(text, &value);
		if (!o)
			return unknown_option(c, arena_str(&c->arena, text, strcspn(text, "=")));
		if (!(o->verbs & c->verb))
			return misplaced(c, o);
		bool bare = o->value == FLAG || o->value == CHOICE;
		if (bare ? value != NULL : !value && i + 1 == argc)
			return refuse(bare ? "option '%s' takes no value"
						  : "option '%s' needs a value; see tlc --help",
				 o->name);
		if (!bare && !value)
			value = argv[++i];
		if (!(value && add_compared(c, o, value)) && !set_option(c, o, value))
			return false;
	}
	if (!c->file && !c->builtins)
		refuse(c->verb == VERB_CACHE ? "tlc cache: list, verify, clear or path?"
						  : "no input file; see tlc --help");
	return c->file || c->builtins;
}
