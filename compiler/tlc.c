/* The command line: options, dumps of every stage, and lists. tlc_run.c has `run` and `bench`. */
#include "tlc.h"

#include <errno.h>
#include <llvm-c/ErrorHandling.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/device.h"

static const char usage[] =
	"tlc compiles Triton kernels.\n"
	"\n"
	"  tlc FILE [-k KERNEL] [-s SIGNATURE] [-D NAME=VALUE]... [--target T] [--emit KIND,...] [-o PATH]\n"
	"  tlc run FILE -k KERNEL -g X[,Y[,Z]] [--device D] [-D NAME=VALUE]... ARG=VALUE...\n"
	"  tlc bench FILE ...as run... [--bytes EXPR] [--flops EXPR]\n"
	"  tlc list FILE\n"
	"\n"
	"  FILE               a .tl or .py file, or IR text in a .ttir file; - is standard input\n"
	"  -k KERNEL          the jit function to compile; may be left out when the file has one kernel\n"
	"  -s SIGNATURE       types of the parameters that are not constexpr: '*fp16:16,*fp16:16,i32,i32:16,fp32',\n"
	"                     or name=type pairs; :16 means divisible by 16, i32:1 an integer that is 1\n"
	"  -D NAME=VALUE      value of a constexpr parameter: a Python literal, a dtype or a jit function\n"
	"  --target T         cuda:sm_75, sm_80, sm_86, sm_87, sm_89, sm_90 or sm_90a; default: the GPU here, else sm_90a\n"
	"  --emit KIND,...    ast ttir ttgir llir ptx cubin; default ptx\n"
	"  -o PATH            where to; - is standard output, the default for one text KIND; with several KINDs,\n"
	"                     PATH.KIND each, by default KERNEL.KIND\n"
	"  --num-warps N      warps of a program: a power of two up to 32; default 4\n"
	"  --num-stages N     stages of software pipelining; default 3\n"
	"  --group-pids N     remap a two-dimensional grid in groups of N rows\n"
	"  --debug            device_assert stops the kernel on the GPU too\n"
	"  --remarks          what was chosen for loads, stores, dots and loops, and why not better\n"
	"  --time             time of each pass\n"
	"  --print-after P    the IR after pass P, or after all; --stop-after P goes no further\n"
	"  --device D         cuda[:N], interp, or sim[:80] (the PTX on a checking simulator); default: cuda where a driver\n"
	"                     and a device answer, else interp\n"
	"  --sim-report       with --device sim: instructions, memory traffic and bank conflicts, by source line\n"
	"  -g X[,Y[,Z]]       the grid: how many programs along each axis\n"
	"  ARG=VALUE          42, 0.5, i64:42, fp16[128,64]:randn:0 (zeros ones arange rand:SEED randn:SEED), @in.npy,\n"
	"                     bf16@in.npy, None; a tensor may end in :>out.npy to save it after the launch\n"
	"  --bytes, --flops   what one launch moves or computes, as an expression of the arguments: --bytes '8*n'\n"
	"\n"
	"Passes:\n";

int complain(int code, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	fputs("tlc: error: ", stderr);
	vfprintf(stderr, format, ap);
	fputc('\n', stderr);
	va_end(ap);
	return code;
}

/* Standard input, whose length is not known before its end. */
static char *read_stdin(struct arena *a, size_t *len)
{
	enum { LIMIT = 64 << 20 };
	char *text = malloc(LIMIT);
	*len = text ? fread(text, 1, LIMIT, stdin) : 0;
	char *copy = !text || ferror(stdin) ? NULL : *len == LIMIT ? NULL : arena_str(a, text, *len);
	if (!copy)
		complain(0, "cannot read standard input: %s", *len == LIMIT ? "too large to be a kernel" : strerror(errno));
	free(text);
	return copy;
}

char *read_file(struct arena *a, const char *path, size_t *len)
{
	if (!strcmp(path, "-"))
		return read_stdin(a, len);
	FILE *f = fopen(path, "rb");
	struct stat st;
	if (!f || fstat(fileno(f), &st) || !S_ISREG(st.st_mode)) {
		complain(0, "cannot read '%s': %s", path, f ? "not a regular file" : strerror(errno));
		if (f)
			fclose(f);
		return NULL;
	}
	if (st.st_size > 64 << 20) {
		complain(0, "'%s' is too large to be a kernel", path);
		fclose(f);
		return NULL;
	}
	char *text = arena_alloc(a, (size_t)st.st_size + 1);
	*len = fread(text, 1, (size_t)st.st_size, f);
	fclose(f);
	return text;
}

/* --- kernels and their arguments ----------------------------------------------------------------------------- */

static bool mentions(const struct expr *e, const char *name)
{
	if (!e)
		return false;
	if (e->kind == EX_NAME)
		return e->name == name;
	bool found = false;
	if (e->kind != EX_INT && e->kind != EX_FLOAT && e->kind != EX_STR && e->kind != EX_FSTR)
		found = mentions(e->a, name) || mentions(e->b, name) || mentions(e->c, name);
	for (u32 i = 0; i < e->nitems; i++)
		found = found || mentions(e->items[i], name);
	for (u32 i = 0; i < e->nkeywords; i++)
		found = found || mentions(e->keywords[i].value, name);
	return found;
}

static bool body_mentions(const struct body *b, const char *name)
{
	for (u32 i = 0; i < b->len; i++) {
		const struct stmt *s = b->at[i];
		if (mentions(s->value, name) || mentions(s->message, name) || body_mentions(&s->body, name))
			return true;
		for (u32 k = 0; k < s->narms; k++)
			if (mentions(s->arms[k].test, name) || body_mentions(&s->arms[k].body, name))
				return true;
	}
	return false;
}

static bool returns_value(const struct body *b)
{
	for (u32 i = 0; i < b->len; i++) {
		const struct stmt *s = b->at[i];
		if ((s->kind == ST_RETURN && s->value) || returns_value(&s->body))
			return true;
		for (u32 k = 0; k < s->narms; k++)
			if (returns_value(&s->arms[k].body))
				return true;
	}
	return false;
}

/* A function that returns something or that others call is a helper, not a kernel. */
static bool is_helper(const struct module *m, const struct func *f)
{
	if (f->kind != FUNC_JIT || returns_value(&f->body))
		return true;
	for (u32 i = 0; i < m->funcs.len; i++)
		if (m->funcs.at[i] != f && body_mentions(&m->funcs.at[i]->body, f->name))
			return true;
	return false;
}

const struct func *pick_kernel(struct unit *u, const char *name)
{
	const struct module *m = u->module;
	const struct func *only = NULL;
	u32 n = 0;
	for (u32 i = 0; i < m->funcs.len; i++) {
		const struct func *f = m->funcs.at[i];
		if (name && f->kind == FUNC_JIT && !strcmp(f->name, name))
			return f;
		if (!name && !is_helper(m, f)) {
			only = f;
			n++;
		}
	}
	if (n == 1)
		return only;
	const char *file = u->diags.sources.at[m->file]->name;
	if (!m->funcs.len)
		complain(0, "'%s' has no jit functions (a function under @triton.jit)", file);
	else if (name)
		complain(0, "'%s' has no jit function '%s'", file, name);
	else
		complain(0, "'%s' has several kernels; choose one with -k", file);
	for (u32 i = 0; i < m->funcs.len; i++)
		if (!is_helper(m, m->funcs.at[i]))
			fprintf(stderr, "  %s\n", m->funcs.at[i]->name);
	return NULL;
}

static bool is_constexpr(const struct param *p)
{
	const struct expr *a = p->annotation;
	if (a && a->kind == EX_STR) /* "tl.constexpr" */
		return a->text_len >= 9 && !strcmp(a->text + a->text_len - 9, "constexpr");
	return a && (a->kind == EX_NAME || a->kind == EX_ATTR) && !strcmp(a->name, "constexpr");
}

static int find_param(const struct func *f, const char *name, size_t len)
{
	for (u32 i = 0; i < f->nparams; i++)
		if (strlen(f->params[i].name) == len && !memcmp(f->params[i].name, name, len))
			return (int)i;
	return -1;
}

/* Distributes -s over the parameters: in order, skipping constexprs and those given by -D; or by name. */
static bool read_signature(struct command *c, const struct func *f, struct arg_spec *args)
{
	const char *s = c->signature;
	u32 next = 0, given = 0;
	while (s && *s) {
		size_t len = strcspn(s, ",");
		const char *eq = memchr(s, '=', len);
		given++;
		if (eq) {
			int i = find_param(f, s, (size_t)(eq - s));
			if (i < 0) {
				complain(0, "-s: '%s' has no parameter '%.*s'", f->name, (int)(eq - s), s);
				return false;
			}
			args[i].type = arena_str(&c->arena, eq + 1, len - (size_t)(eq + 1 - s));
		} else {
			while (next < f->nparams && (is_constexpr(&f->params[next]) || args[next].constant))
				next++;
			if (next == f->nparams) {
				complain(0, "-s: more types than parameters of '%s': '%s' is left over", f->name, s);
				return false;
			}
			args[next++].type = arena_str(&c->arena, s, len);
		}
		s += len + (s[len] == ',');
	}
	return true;
}

static bool read_arguments(struct command *c, const struct func *f, struct arg_spec *args)
{
	for (u32 i = 0; i < c->defines.len; i++) {
		int k = find_param(f, c->defines.at[i].name, strlen(c->defines.at[i].name));
		if (k < 0) {
			complain(0, "-D: '%s' has no parameter '%s'", f->name, c->defines.at[i].name);
			return false;
		}
		args[k].constant = c->defines.at[i].value;
	}
	return read_signature(c, f, args);
}

/* --- output -------------------------------------------------------------------------------------------------- */

static int write_output(struct command *c, const char *kernel, const char *kind, const char *data, size_t len, bool several)
{
	const char *path = c->output;
	bool to_stdout = path && !strcmp(path, "-");
	if (!to_stdout && (several || (!path && !strcmp(kind, "cubin")))) /* no binary on a terminal */
		path = arena_printf(&c->arena, "%s.%s", path ? path : kernel, kind);
	else if (!path)
		path = "-";
	bool to_file = strcmp(path, "-");
	FILE *f = to_file ? fopen(path, "wb") : stdout;
	if (!f)
		return complain(EXIT_ENVIRONMENT, "cannot write '%s': %s", path, strerror(errno));
	bool ok = fwrite(data, 1, len, f) == len;
	ok &= (to_file ? fclose(f) : fflush(f)) == 0;
	return ok ? EXIT_DONE : complain(EXIT_ENVIRONMENT, "cannot write '%s': %s", path, strerror(errno));
}

/* Runs ptxas on the PTX; the result is read back from `cubin`. */
static int assemble(struct command *c, const char *ptx, size_t len, const char **cubin, size_t *cubin_len)
{
	static const char *const places[] = {"ptxas", "/usr/local/cuda/bin/ptxas"};
	char in[] = "/tmp/tlc-XXXXXX";
	int fd = mkstemp(in);
	if (fd < 0 || write(fd, ptx, len) != (ssize_t)len)
		return complain(EXIT_ENVIRONMENT, "cannot write a temporary file: %s", strerror(errno));
	close(fd);
	const char *out = arena_printf(&c->arena, "%s.cubin", in), *arch = arena_printf(&c->arena, "-arch=%s", target_name(&c->arena, &c->options.target));
	int status = -1;
	for (u32 i = 0; i < ARRAY_LEN(places) && status; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			execlp(places[i], "ptxas", arch, in, "-o", out, (char *)NULL);
			_exit(127);
		}
		if (pid < 0 || waitpid(pid, &status, 0) < 0)
			status = -1;
		if (WIFEXITED(status) && WEXITSTATUS(status) != 127)
			break;
	}
	unlink(in);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return complain(EXIT_ENVIRONMENT, "cubin needs ptxas (of the CUDA toolkit) in PATH; --emit ptx works without it");
	if (status)
		return complain(EXIT_BUG, "ptxas rejected the generated PTX");
	*cubin = read_file(&c->arena, out, cubin_len);
	unlink(out);
	return *cubin ? EXIT_DONE : EXIT_ENVIRONMENT;
}

/* --- compile ------------------------------------------------------------------------------------------------- */

struct kinds {
	const char *at[8];
	u32 n;
};

static int read_kinds(struct command *c, struct kinds *k)
{
	static const char *const known[] = {"ast", "ttir", "ttgir", "llir", "ptx", "cubin"};
	const char *s = c->emit ? c->emit : "ptx";
	while (*s) {
		size_t len = strcspn(s, ",");
		u32 i = 0;
		while (i < ARRAY_LEN(known) && (strlen(known[i]) != len || memcmp(known[i], s, len)))
			i++;
		if (i == ARRAY_LEN(known))
			return complain(EXIT_USER, "--emit: '%.*s' is none of ast ttir ttgir llir ptx cubin", (int)len, s);
		if (k->n < ARRAY_LEN(k->at))
			k->at[k->n++] = known[i];
		c->options.want_ttir |= i == 1;
		c->options.want_ttgir |= i == 2;
		c->options.want_llir |= i == 3;
		c->options.want_ptx |= i >= 4;
		s += len + (s[len] == ',');
	}
	return k->n ? EXIT_DONE : complain(EXIT_USER, "--emit needs a KIND");
}

static void show_diagnostics(const struct unit *u)
{
	if (u->diags.text.len)
		fputs(u->diags.text.at, stderr);
}

static int emit_ast(struct command *c, const struct unit *u, const char *name, bool several)
{
	char *text = NULL;
	size_t len = 0;
	if (!u->module)
		return complain(EXIT_USER, "--emit ast: IR text has no AST");
	FILE *f = open_memstream(&text, &len);
	ast_print(u->module, f);
	fclose(f);
	int r = write_output(c, name, "ast", text, len, several);
	free(text);
	return r;
}

static int emit(struct command *c, struct unit *u, const struct compiled *out, const struct kinds *k)
{
	bool several = k->n > 1;
	for (u32 i = 0; i < k->n; i++) {
		const char *kind = k->at[i], *data = NULL;
		size_t len = 0;
		int r = EXIT_DONE;
		if (!strcmp(kind, "ast")) {
			r = emit_ast(c, u, out->kernel ? out->kernel->name : "module", several);
			if (r)
				return r;
			continue;
		}
		data = !strcmp(kind, "ttir") ? out->ttir : !strcmp(kind, "ttgir") ? out->ttgir : !strcmp(kind, "llir") ? out->llir : out->ptx;
		if (!data) /* --stop-after came first */
			continue;
		len = strlen(data);
		if (!strcmp(kind, "cubin"))
			r = assemble(c, out->ptx, out->ptx_len, &data, &len);
		if (!r)
			r = write_output(c, out->kernel->name, kind, data, len, several);
		if (r)
			return r;
	}
	return EXIT_DONE;
}

/* The names given to --print-after and --stop-after, and what does not go with IR text. */
static bool check_request(const struct command *c, const struct unit *u)
{
	const char *names[] = {c->options.print_after, c->options.stop_after};
	for (u32 i = 0; i < ARRAY_LEN(names); i++)
		if (names[i] && !compile_has_step(names[i]) && (i || strcmp(names[i], "all"))) {
			complain(0, "--%s-after: there is no pass '%s'; see tlc --help", i ? "stop" : "print", names[i]);
			return false;
		}
	if (!u->parsed)
		return true;
	if (c->kernel && strcmp(c->kernel, u->parsed->name)) {
		complain(0, "'%s' has the kernel '%s', not '%s'", c->file, u->parsed->name, c->kernel);
		return false;
	}
	if (c->signature || c->defines.len) {
		complain(0, "%s: the kernel of IR text has its types and values already", c->signature ? "-s" : "-D");
		return false;
	}
	return true;
}

static int command_compile(struct command *c)
{
	struct kinds kinds = {0};
	struct unit *u = arena_new(&c->arena, struct unit);
	struct compiled out = {0};
	size_t len;
	int r = read_kinds(c, &kinds);
	if (r)
		return r;
	if (!c->target)
		c->target = device_default_target(&c->arena);
	if (!target_parse(c->target, &c->options.target)) {
		complain(0, "--target: '%s' is not one of cuda:sm_75, sm_80, sm_86, sm_87, sm_89, sm_90, sm_90a", c->target);
		return EXIT_USER;
	}
	char *text = read_file(&c->arena, c->file, &len);
	if (!text)
		return EXIT_ENVIRONMENT;
	bool ok = unit_open(u, c->file, text, len);
	const struct func *f = NULL;
	struct arg_spec *args = NULL;
	bool only_ast = !c->options.want_ttir && !c->options.want_ttgir && !c->options.want_llir && !c->options.want_ptx;
	r = EXIT_USER;
	ok = ok && check_request(c, u);
	if (ok && u->module && !only_ast) {
		f = pick_kernel(u, c->kernel);
		ok = f != NULL;
		if (ok) {
			args = arena_array(&c->arena, struct arg_spec, f->nparams);
			ok = read_arguments(c, f, args);
		}
	}
	if (ok && !only_ast)
		ok = compile(u, f, args, &c->options, &out);
	show_diagnostics(u);
	if (ok)
		r = emit(c, u, &out, &kinds);
	unit_free(u);
	return r;
}

/* --- list ---------------------------------------------------------------------------------------------------- */

static void list_param(const struct param *p, struct strbuf *out)
{
	sb_printf(out, "    %-24s", p->name);
	if (p->annotation)
		ast_print_expr(p->annotation, out);
	if (p->value) {
		sb_puts(out, " = ");
		ast_print_expr(p->value, out);
	}
	sb_puts(out, "\n");
}

static int command_list(struct command *c)
{
	struct unit *u = arena_new(&c->arena, struct unit);
	size_t len;
	char *text = read_file(&c->arena, c->file, &len);
	if (!text)
		return EXIT_ENVIRONMENT;
	bool ok = unit_open(u, c->file, text, len);
	show_diagnostics(u);
	struct strbuf out = {.arena = &c->arena};
	sb_puts(&out, "");
	for (u32 i = 0; u->module && i < u->module->funcs.len; i++) {
		const struct func *f = u->module->funcs.at[i];
		sb_printf(&out, "%s:%u: %s %s\n", c->file, f->loc.line, is_helper(u->module, f) ? "helper" : "kernel", f->name);
		for (u32 k = 0; k < f->nparams; k++)
			list_param(&f->params[k], &out);
	}
	fputs(out.at, stdout);
	unit_free(u);
	return ok ? EXIT_DONE : EXIT_USER;
}

/* --- options ------------------------------------------------------------------------------------------------- */

static bool read_int(const char *option, const char *value, int lo, int hi, int *out)
{
	char *end;
	long n = strtol(value, &end, 10);
	if (*end || end == value || n < lo || n > hi) {
		complain(0, "%s: expected a number from %d to %d, not '%s'", option, lo, hi, value);
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
static bool set_option(struct command *c, const char *name, const char *value)
{
	const struct {
		const char *name;
		const char **to;
	} texts[] = {{"-k", &c->kernel}, {"-s", &c->signature}, {"-o", &c->output}, {"-g", &c->grid}, {"--target", &c->target},
		     {"--emit", &c->emit}, {"--device", &c->device}, {"--bytes", &c->bytes}, {"--flops", &c->flops},
		     {"--print-after", &c->options.print_after}, {"--stop-after", &c->options.stop_after}};
	for (u32 i = 0; i < ARRAY_LEN(texts); i++)
		if (!strcmp(name, texts[i].name)) {
			*texts[i].to = value;
			return true;
		}
	if (!strcmp(name, "-D"))
		return add_define(c, value);
	if (!strcmp(name, "--num-stages"))
		return read_int(name, value, 1, 64, &c->options.num_stages);
	if (!strcmp(name, "--group-pids"))
		return read_int(name, value, 0, 1 << 20, &c->options.group_pids);
	if (!strcmp(name, "--num-warps")) {
		if (!read_int(name, value, 1, 32, &c->options.num_warps))
			return false;
		if (is_pow2(c->options.num_warps))
			return true;
		complain(0, "--num-warps: %s is not a power of two", value);
		return false;
	}
	complain(0, "unknown option '%s'; see tlc --help", name);
	return false;
}

static bool set_flag(struct command *c, const char *name)
{
	const struct {
		const char *name;
		bool *to;
	} flags[] = {{"--time", &c->options.time}, {"--remarks", &c->options.remarks}, {"--debug", &c->options.debug}, {"--sim-report", &c->sim_report}};
	for (u32 i = 0; i < ARRAY_LEN(flags); i++)
		if (!strcmp(name, flags[i].name)) {
			*flags[i].to = true;
			return true;
		}
	return false;
}

/* Does an option of this name take a value? */
static bool takes_value(const char *name)
{
	static const char *const names[] = {"-k", "-s", "-o", "-g", "-D", "--target", "--emit", "--device", "--bytes", "--flops", "--print-after",
					    "--stop-after", "--num-stages", "--num-warps", "--group-pids"};
	for (u32 i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static bool read_options(struct command *c, int argc, char **argv, bool with_args)
{
	for (int i = 0; i < argc; i++) {
		const char *a = argv[i];
		if (a[0] != '-' || !a[1]) {
			if (!c->file) {
				c->file = a;
			} else if (with_args && strchr(a, '=')) {
				vec_push(&c->arena, &c->args, a);
			} else {
				complain(0, with_args ? "expected ARG=VALUE, not '%s'" : "unexpected '%s'; see tlc --help", a);
				return false;
			}
			continue;
		}
		if (set_flag(c, a))
			continue;
		const char *eq = a[1] == '-' ? strchr(a, '=') : NULL, *name = a, *value;
		if (eq) {
			name = arena_str(&c->arena, a, (size_t)(eq - a));
			value = eq + 1;
		} else if ((a[1] == 'D' || a[1] == 'k' || a[1] == 's' || a[1] == 'o' || a[1] == 'g') && a[2]) {
			name = arena_str(&c->arena, a, 2);
			value = a + 2;
		} else if (i + 1 < argc) {
			value = argv[++i];
		} else {
			complain(0, takes_value(a) ? "option '%s' needs a value; see tlc --help" : "unknown option '%s'; see tlc --help", a);
			return false;
		}
		if (!set_option(c, name, value))
			return false;
	}
	if (!c->file)
		complain(0, "no input file; see tlc --help");
	return c->file != NULL;
}

/* tl_assert has said what is wrong: a status for scripts instead of a signal. */
static void on_abort(int signal)
{
	(void)signal;
	_exit(EXIT_BUG);
}

static void on_llvm_error(const char *reason)
{
	tl_assert_failed("LLVM", 0, reason);
}

int main(int argc, char **argv)
{
	signal(SIGABRT, on_abort);
	LLVMInstallFatalErrorHandler(on_llvm_error);
	struct command c = {.options = {.print_to = stderr}};
	const char *verb = argc > 1 ? argv[1] : "--help";
	bool run = !strcmp(verb, "run"), bench = !strcmp(verb, "bench"), list = !strcmp(verb, "list");
	if (!strcmp(verb, "--help") || !strcmp(verb, "-h")) {
		fputs(usage, stdout);
		compile_list_passes(stdout);
		return argc > 1 ? EXIT_DONE : EXIT_USER;
	}
	int skip = run || bench || list ? 2 : 1, r = EXIT_USER;
	if (read_options(&c, argc - skip, argv + skip, run || bench))
		r = run || bench ? command_run(&c, bench) : list ? command_list(&c) : command_compile(&c);
	arena_free(&c.arena);
	return r;
}
