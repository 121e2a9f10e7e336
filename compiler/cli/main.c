/* The command line's main function, and `tlc FILE`, which compiles a kernel and writes its stages. The other commands
 * are in cmd_run.c (`run`), cmd_bench.c (`bench`), cmd_list.c (`list`), cmd_cache.c (`show` and `cache`), and
 * cmd_build.c and aot_emit.c (`build`). The options are in options.c. */
#include "cli/cli.h"

#include <errno.h>
#include <llvm-c/Core.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/file.h"
#include "support/span.h"
#include "support/suggest.h"
#include "runtime/device/device.h"
#include "runtime/image/image.h"
#include "runtime/tl.h"

static void print_message(const char *kind, const char *format, va_list ap)
{
	fprintf(stderr, "tlc: %s: ", kind);
	vfprintf(stderr, format, ap);
	fputc('\n', stderr);
}

int complain(int code, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	print_message("error", format, ap);
	va_end(ap);
	return code;
}

bool refuse(const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	print_message("error", format, ap);
	va_end(ap);
	return false;
}

void warn(const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	print_message("warning", format, ap);
	va_end(ap);
}

bool list_has(const text_list *list, const char *text)
{
	for (u32 i = 0; i < list->len; i++)
		if (!strcmp(list->at[i], text))
			return true;
	return false;
}

void add_once(struct arena *a, text_list *list, const char *text)
{
	if (!list_has(list, text))
		vec_push(a, list, text);
}

bool read_target(const char *text, struct target *out)
{
	return target_parse(text, out) || refuse("--target: '%s' is not one of %s", text, target_names);
}

char *read_file(struct arena *a, const char *path, size_t *len)
{
	enum { LIMIT = 64 << 20 };
	bool is_stdin = !strcmp(path, "-");
	FILE *f = is_stdin ? stdin : fopen(path, "rb");
	struct stat st;
	bool readable = is_stdin || (f && !fstat(fileno(f), &st) && S_ISREG(st.st_mode));
	char *text = readable ? stream_read(a, f, LIMIT, len) : NULL;
	if (!text)
		refuse("cannot read %s: %s", is_stdin ? "standard input" : arena_printf(a, "'%s'", path),
		       f && !readable   ? "not a regular file"
		       : errno == EFBIG ? "too large to be a kernel"
					: strerror(errno));
	if (f && !is_stdin)
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

/* The line of a return statement with a value; 0: there is none. */
static u32 returns_value(const struct body *b)
{
	u32 line = 0;
	for (u32 i = 0; i < b->len && !line; i++) {
		const struct stmt *s = b->at[i];
		line = s->kind == ST_RETURN && s->value ? s->loc.line : returns_value(&s->body);
		for (u32 k = 0; k < s->narms && !line; k++)
			line = returns_value(&s->arms[k].body);
	}
	return line;
}

static const struct func *caller_of(const struct module *m, const struct func *f)
{
	for (u32 i = 0; i < m->funcs.len; i++)
		if (m->funcs.at[i]->name != f->name && body_mentions(&m->funcs.at[i]->body, f->name))
			return m->funcs.at[i];
	return NULL;
}

bool is_helper(const struct module *m, const struct func *f)
{
	return f->kind != FUNC_JIT || returns_value(&f->body) || caller_of(m, f);
}

/* Lists the functions to choose from; if there are no kernels, the reason why each function is not one. */
static void show_choice(const struct module *m, u32 nkernels)
{
	for (u32 i = 0; i < m->funcs.len; i++) {
		const struct func *f = m->funcs.at[i];
		u32 line = returns_value(&f->body);
		if (nkernels) {
			if (!is_helper(m, f))
				fprintf(stderr, "  %s\n", f->name);
		} else if (f->kind != FUNC_JIT) {
			fprintf(stderr, "  %s is a constexpr_function\n", f->name);
		} else if (line) {
			fprintf(stderr, "  %s returns a value in line %u\n", f->name, line);
		} else {
			fprintf(stderr, "  %s is called by %s\n", f->name, caller_of(m, f)->name);
		}
	}
}

const struct func *pick_kernel(struct unit *u, const char *name)
{
	const struct module *m = u->module;
	const struct func *only = NULL;
	const char **names = arena_array(&u->arena, const char *, m->funcs.len + 1), *like = NULL;
	u32 nkernels = 0, njit = 0;
	for (u32 i = 0; i < m->funcs.len; i++) {
		const struct func *f = m->funcs.at[i];
		if (name && f->kind == FUNC_JIT && !strcmp(f->name, name))
			return f;
		bool kernel = !is_helper(m, f);
		if (f->kind == FUNC_JIT)
			names[njit++] = f->name;
		if (kernel || (f->kind == FUNC_JIT && !nkernels))
			only = f;
		nkernels += kernel;
	}
	/* for a single function the evaluator reports why it is not a kernel */
	if (!name && (nkernels == 1 || njit == 1))
		return only;
	if (!name && report_all_broken(&u->arena, &u->names, &u->diags, m))
		return NULL;
	const char *file = u->diags.sources.at[m->file]->name;
	if (!njit)
		refuse("'%s' has no jit functions (a function under @triton.jit)", file);
	else if (name && (like = did_you_mean(name, names, njit)))
		refuse("'%s' has no jit function '%s'; did you mean '%s'?", file, name, like);
	else if (name)
		refuse("'%s' has no jit function '%s'%s", file, name, nkernels ? "; its kernels are" : "");
	else if (nkernels)
		refuse("'%s' has several kernels; choose one with -k", file);
	else
		refuse("'%s' has only helpers; a kernel returns nothing, and -k can choose one that others call", file);
	if (!like)
		show_choice(m, nkernels);
	return NULL;
}

bool is_constexpr(const struct param *p)
{
	const struct expr *a = p->annotation;
	if (a && a->kind == EX_STR) /* "tl.constexpr" */
		return a->text_len >= 9 && !strcmp(a->text + a->text_len - 9, "constexpr");
	return a && (a->kind == EX_NAME || a->kind == EX_ATTR) && !strcmp(a->name, "constexpr");
}

static int find_param(const struct func *f, const char *name, size_t len)
{
	for (u32 i = 0; i < f->nparams; i++)
		if (word_is(name, len, f->params[i].name))
			return (int)i;
	return -1;
}

/* Distributes -s over the parameters: in order, skipping constexprs and those given by -D; or by name. */
static bool read_signature(struct command *c, const struct func *f, struct arg_spec *args)
{
	const char *s = c->signature;
	u32 next = 0, given = 0;
	while (s && *s) {
		size_t len = span_outside(s, ",");
		const char *eq = s[span_outside(s, ",=")] == '=' ? s + span_outside(s, ",=") : NULL;
		given++;
		if (eq) {
			int i = find_param(f, s, (size_t)(eq - s));
			if (i < 0)
				return refuse("-s: '%s' has no parameter '%.*s'", f->name, (int)(eq - s), s);
			args[i].type = arena_str(&c->arena, eq + 1, len - (size_t)(eq + 1 - s));
		} else {
			while (next < f->nparams && (is_constexpr(&f->params[next]) || args[next].constant))
				next++;
			if (next == f->nparams)
				return refuse("-s: more types than parameters of '%s': '%s' is left over", f->name, s);
			args[next++].type = arena_str(&c->arena, s, len);
		}
		s += len + (s[len] == ',');
	}
	return true;
}

/* Hints for options that Triton takes as launch arguments. */
static const char *option_of(const char *name)
{
	if (!strcmp(name, "num_warps"))
		return "; the number of warps is --num-warps N";
	if (!strcmp(name, "enable_fp_fusion"))
		return "; contraction to fused multiply-adds is --fp-fusion on|off";
	if (!strcmp(name, "enable_reflect_ftz"))
		return "; flushing of subnormal numbers is --ftz on|off";
	return strcmp(name, "num_stages") ? "" : "; the number of stages is --num-stages N";
}

static bool read_arguments(struct command *c, const struct func *f, struct arg_spec *args)
{
	for (u32 i = 0; i < c->defines.len; i++) {
		int k = find_param(f, c->defines.at[i].name, strlen(c->defines.at[i].name));
		if (k < 0)
			return refuse("-D: '%s' has no parameter '%s'%s", f->name, c->defines.at[i].name,
				      option_of(c->defines.at[i].name));
		if (args[k].constant)
			return refuse("-D: '%s' is given twice", c->defines.at[i].name);
		args[k].constant = c->defines.at[i].value;
	}
	return read_signature(c, f, args);
}

static bool check_numbers(const struct func *f, struct codegen_options o)
{
	o = codegen_options_complete(o);
	int wrong = codegen_options_wrong(&o);
	if (wrong >= 0)
		refuse("the configuration of '%s' sets %s to %d; it must %s", f->name, codegen_numbers[wrong].name,
		       o.numbers[wrong], codegen_numbers[wrong].rule);
	return wrong < 0;
}

/* Sets constexprs without a value from the first configuration of the kernel's decorators, and from its heuristics.
 * That configuration also sets the launch options that the command line does not set. False after a message. */
static bool fill_from_decorators(struct command *c, struct unit *u, const struct func *f, struct arg_spec *args)
{
	bool open = false;
	struct tuning t;
	for (u32 i = 0; i < f->nparams; i++)
		open |= args[i].shape == ARG_LEAF && !args[i].constant && !args[i].type && !f->params[i].value;
	if (!open || !f->ndecorators)
		return true;
	unit_tuning(u, f, args, target_capability(&c->options.target), DECORATORS_KNOWN, &t);
	const struct configuration *first = t.configurations.len ? &t.configurations.at[0] : NULL;
	struct strbuf said = sb_empty(&c->arena);
	for (u32 i = 0; i < t.heuristics.len + (first ? first->nvalues : 0); i++) {
		const struct tuned_value *v =
			i < t.heuristics.len ? &t.heuristics.at[i] : &first->values[i - t.heuristics.len];
		int k = find_param(f, v->name, strlen(v->name));
		if (k < 0 || args[k].constant || args[k].type || !v->literal)
			continue;
		args[k].constant = v->literal;
		if (i >= t.heuristics.len)
			sb_printf(&said, "%s%s=%s", said.len ? " " : "", v->name, v->literal);
	}
	for (u32 i = 0; i < t.unknown.len; i++)
		diag(&u->diags, N_DECORATOR_UNKNOWN, f->loc, t.unknown.at[i]);
	if (!said.len)
		return true;
	const struct codegen_options given = c->options.codegen, all = codegen_options_or(given, &first->options);
	codegen_options_print(&said, &all, &given, " ");
	diag(&u->diags, N_CONFIGURATION, f->loc, said.at, t.configurations.len);
	c->options.codegen = all;
	return check_numbers(f, all);
}

bool read_kernel_arguments(struct command *c, struct unit *u, const struct func *f, struct arg_spec *args)
{
	return read_arguments(c, f, args) && fill_from_decorators(c, u, f, args);
}

/* --- output -------------------------------------------------------------------------------------------------- */

static bool write_stream(FILE *f, const char *data, size_t len)
{
	if (!f)
		return false;
	bool ok = fwrite(data, 1, len, f) == len;
	return !fclose(f) && ok;
}

static bool replace_file(struct arena *a, const char *path, const char *data, size_t len)
{
	struct stat st;
	bool exists = !stat(path, &st);
	if (exists && !S_ISREG(st.st_mode)) /* a device, a pipe */
		return write_stream(fopen(path, "wb"), data, len);
	if (exists && access(path, W_OK))
		return false;
	char *resolved = realpath(path, NULL); /* keep a symbolic link */
	char *beside = arena_printf(a, "%s.XXXXXX", resolved ? resolved : path);
	int fd = mkstemp(beside);
	mode_t mask = umask(0);
	umask(mask);
	bool ok = fd >= 0 && !fchmod(fd, exists ? st.st_mode & 0777 : 0666 & ~mask) &&
		  write_stream(fdopen(fd, "wb"), data, len) && !rename(beside, resolved ? resolved : path);
	int error = errno;
	if (fd >= 0 && !ok)
		unlink(beside);
	free(resolved);
	errno = error;
	return ok;
}

int write_file(struct arena *a, const char *path, const char *data, size_t len)
{
	errno = 0;
	bool ok = strcmp(path, "-") ? replace_file(a, path, data, len)
				    : fwrite(data, 1, len, stdout) == len && !fflush(stdout);
	return ok ? EXIT_DONE : complain(EXIT_ENVIRONMENT, "cannot write '%s': %s", path, strerror(errno));
}

static int write_output(struct command *c, const char *kernel, const char *kind, bool binary, const char *data,
			size_t len, bool several)
{
	const char *path = c->output;
	bool to_stdout = path && !strcmp(path, "-");
	if (!to_stdout && (several || (!path && binary))) /* binary data is not written to a terminal */
		path = arena_printf(&c->arena, "%s.%s", path ? path : kernel, kind);
	else if (!path)
		path = "-";
	return write_file(&c->arena, path, data, len);
}

/* Reads registers and local memory from the output of ptxas -v; other output goes to standard error. */
static void read_report(struct command *c, struct unit *u, const struct compiled *k, const char *report)
{
	static const char *const usual[] = {"bytes gmem",        "Compiling entry", "Function properties",
					    "bytes stack frame", "Used ",           "Compile time"};
	int registers = 0, local = 0;
	for (const char *line = report; *line;) {
		size_t len = strcspn(line, "\n");
		const char *text = arena_str(&c->arena, line, len), *used = strstr(text, "Used "),
			   *frame = strstr(text, "bytes stack frame");
		bool known = false;
		for (u32 i = 0; i < ARRAY_LEN(usual); i++)
			known |= strstr(text, usual[i]) != NULL;
		if (used)
			sscanf(used, "Used %d registers", &registers);
		if (frame)
			sscanf(text, "%d bytes stack frame", &local);
		if (!known)
			fprintf(stderr, "%s\n", text);
		line += len + (line[len] != 0);
	}
	if (c->options.remarks && registers)
		remark_resources(u, k, registers, local, 0);
}

/* Runs ptxas. Returns its status of pclose, or -1; *report is its output. */
static int run_ptxas(struct command *c, const char *program, const char *arch, const char *in, const char *out,
		     const char **report)
{
	FILE *f = popen(arena_printf(&c->arena, "exec %s %s %s -o %s -v 2>&1", program, arch, in, out), "r");
	if (!f)
		return -1;
	struct strbuf said = sb_empty(&c->arena);
	char part[4096];
	for (size_t n; (n = fread(part, 1, sizeof part, f)) > 0;)
		sb_add(&said, part, n);
	*report = said.at;
	return pclose(f);
}

/* True if the shell has not found the program, or cannot execute it. */
static bool cannot_start(int status)
{
	return WIFEXITED(status) && (WEXITSTATUS(status) == 126 || WEXITSTATUS(status) == 127);
}

/* Runs ptxas on the PTX; the result is read back from `cubin`. */
static int assemble(struct command *c, struct unit *u, const struct compiled *k, const char **cubin, size_t *cubin_len)
{
	static const char *const places[] = {"ptxas", "/usr/local/cuda/bin/ptxas"};
	char in[] = "/tmp/tlc-XXXXXX";
	int fd = mkstemp(in);
	if (fd < 0 || !write_stream(fdopen(fd, "wb"), k->code, k->code_len)) {
		refuse("cannot write '%s': %s", in, strerror(errno));
		if (fd >= 0)
			unlink(in);
		return EXIT_ENVIRONMENT;
	}
	const char *out = arena_printf(&c->arena, "%s.cubin", in),
		   *arch = arena_printf(&c->arena, "-arch=sm_%d%s", c->options.target.sm,
					c->options.target.arch_specific ? "a" : "");
	const char *report = "";
	int status = -1;
	for (u32 i = 0; i < ARRAY_LEN(places) && status; i++) {
		status = run_ptxas(c, places[i], arch, in, out, &report);
		if (WIFEXITED(status) && !cannot_start(status))
			break;
	}
	unlink(in);
	if (cannot_start(status))
		return complain(EXIT_ENVIRONMENT,
				"cubin needs ptxas (of the CUDA toolkit) in PATH; --emit ptx works without it");
	read_report(c, u, k, report);
	if (status)
		return complain(EXIT_BUG, "ptxas rejected the generated PTX");
	*cubin = read_file(&c->arena, out, cubin_len);
	unlink(out);
	return *cubin ? EXIT_DONE : EXIT_ENVIRONMENT;
}

/* --- compile ------------------------------------------------------------------------------------------------- */

/* The kinds of output, and their targets. */
static const struct kind {
	const char *name;
	size_t wants; /* offset of its `want_` member in struct compile_options, or 0 */
	bool cuda, cpu, binary;
} all_kinds[] = {
#define WANTS(what) offsetof(struct compile_options, want_##what)
	{"ast", 0, true, true, false},
	{"ttir", WANTS(ttir), true, true, false},
	{"ttgir", WANTS(ttgir), true, false, false},
	{"llir", WANTS(llir), true, true, false},
	{"ptx", WANTS(code), true, false, false},
	{"cubin", WANTS(code), true, false, true},
	{"asm", WANTS(asm), false, true, false},
	{"obj", WANTS(code), false, true, true},
	{"calls", WANTS(calls), true, true, false},
	{"schedule", WANTS(schedules), true, false, false},
	{"image", WANTS(code), true, true, true},
	{"metadata", WANTS(metadata), true, false, false},
#undef WANTS
};

struct kinds {
	const struct kind *at[ARRAY_LEN(all_kinds)]; /* NULL: the IR after the last pass */
	u32 n;
	bool only_ast;
};

static const struct kind *find_kind(const char *name, size_t len)
{
	for (u32 i = 0; i < ARRAY_LEN(all_kinds); i++)
		if (word_is(name, len, all_kinds[i].name))
			return &all_kinds[i];
	return NULL;
}

/* The kinds of the target, or all kinds. */
static const char *kind_names(struct arena *a, const struct target *target)
{
	struct strbuf out = {.arena = a};
	for (u32 i = 0; i < ARRAY_LEN(all_kinds); i++)
		if (!target || (target->kind == TARGET_CPU ? all_kinds[i].cpu : all_kinds[i].cuda))
			sb_printf(&out, "%s%s", out.len ? " " : "", all_kinds[i].name);
	return out.at;
}

static int read_kinds(struct command *c, struct kinds *k)
{
	const char *stop = c->options.stop_after;
	const struct target *target = &c->options.target;
	bool cpu = target->kind == TARGET_CPU;
	if (!c->emit && stop && strcmp(stop, "lower") != 0 && strcmp(stop, "llvm") != 0) {
		c->options.want_ttir = c->options.want_ttgir = true;
		k->at[k->n++] = NULL;
		return EXIT_DONE;
	}
	k->only_ast = true;
	for (const char *s = c->emit ? c->emit : cpu ? "asm" : "ptx"; *s;) {
		size_t len = strcspn(s, ",");
		const struct kind *kind = find_kind(s, len);
		if (!kind)
			return complain(EXIT_USER, "--emit: '%.*s' is none of %s", (int)len, s,
					kind_names(&c->arena, NULL));
		if (!(cpu ? kind->cpu : kind->cuda))
			return complain(EXIT_USER, "--emit %s: of %s there are only %s", kind->name,
					target_name(&c->arena, target), kind_names(&c->arena, target));
		if (c->options.codegen.abi == ABI_TRITON && !strcmp(kind->name, "image"))
			return complain(EXIT_USER, "--emit image: an image is for libtl, not for --abi triton, whose "
						   "launcher needs --emit ptx,metadata");
		if (c->options.codegen.abi != ABI_TRITON && !strcmp(kind->name, "metadata"))
			return complain(EXIT_USER, "--emit metadata: it is for Triton's launcher, with --abi triton");
		if (k->n < ARRAY_LEN(k->at))
			k->at[k->n++] = kind;
		if (kind->wants)
			*(bool *)((char *)&c->options + kind->wants) = true;
		k->only_ast &= !kind->wants;
		s += len + (s[len] == ',');
	}
	return k->n ? EXIT_DONE : complain(EXIT_USER, "--emit needs a KIND");
}

void show_diagnostics(const struct unit *u)
{
	if (u->diags.text.len)
		fputs(u->diags.text.at, stderr);
}

static int emit_ast(struct command *c, struct unit *u, const char *name, bool several)
{
	char *text = NULL;
	size_t len = 0;
	if (!u->module)
		return complain(EXIT_USER, "--emit ast: IR text has no AST");
	if (report_all_broken(&u->arena, &u->names, &u->diags, u->module)) {
		show_diagnostics(u);
		return EXIT_USER;
	}
	FILE *f = open_memstream(&text, &len);
	ast_print(u->module, f);
	fclose(f);
	int r = write_output(c, name, "ast", false, text, len, several);
	free(text);
	return r;
}

/* The kernel's source, and the arguments of its compilation. */
struct origin {
	const struct func *func;
	const struct arg_spec *args;
};

static const char *image_bytes(struct command *c, const struct unit *u, const struct origin *from,
			       const struct compiled *out, size_t *len)
{
	struct image im;
	image_make(&im, u, from->func, from->args, &c->options.codegen, out);
	const char *bytes = image_write(&im, &c->arena, len);
	image_free(&im);
	return bytes;
}

static int emit(struct command *c, struct unit *u, const struct origin *from, const struct compiled *out,
		const struct kinds *k)
{
	bool several = k->n > 1;
	for (u32 i = 0; i < k->n; i++) {
		const char *reached = out->ttgir ? "ttgir" : "ttir", *kind = k->at[i] ? k->at[i]->name : reached,
			   *data = NULL;
		size_t len = 0;
		int r = EXIT_DONE;
		if (!strcmp(kind, "ast")) {
			r = emit_ast(c, u, out->kernel ? out->kernel->name : "module", several);
			if (r)
				return r;
			continue;
		}
		data = !strcmp(kind, "ttir")       ? out->ttir
		       : !strcmp(kind, "ttgir")    ? out->ttgir
		       : !strcmp(kind, "llir")     ? out->llir
		       : !strcmp(kind, "calls")    ? u->calls.at
		       : !strcmp(kind, "schedule") ? u->schedules.at
		       : !strcmp(kind, "asm")      ? out->assembly
		       : !strcmp(kind, "metadata") ? out->metadata
						   : out->code;
		if (!data)
			return complain(EXIT_USER,
					"--emit %s: --stop-after=%s ends before it; without --emit the IR as it is "
					"then is shown",
					kind, c->options.stop_after);
		len = data == out->code ? out->code_len : strlen(data);
		if (!strcmp(kind, "image"))
			data = image_bytes(c, u, from, out, &len);
		if (!strcmp(kind, "cubin"))
			r = assemble(c, u, out, &data, &len);
		if (!r)
			r = write_output(c, out->kernel->name, kind, k->at[i] && k->at[i]->binary, data, len, several);
		if (r)
			return r;
	}
	return EXIT_DONE;
}

bool check_request(const struct command *c, const struct unit *u)
{
	if (c->options.codegen.abi == ABI_TRITON && c->options.codegen.grid != GRID_FEW)
		return refuse("--persistent: with --abi triton each program has a block of its own");
	static const char *const options[] = {"print", "stop", "start"};
	const char *names[] = {c->options.print_after, c->options.stop_after, c->options.start_after};
	for (u32 i = 0; i < ARRAY_LEN(names); i++)
		if (names[i] && !compile_has_step(names[i]) && (i || strcmp(names[i], "all")))
			return refuse("--%s-after: there is no pass '%s'; see tlc --help", options[i], names[i]);
	if (!u->parsed && c->options.start_after)
		refuse("--start-after: '%s' is source; IR text starts after a pass", c->file);
	if (!u->parsed)
		return !c->options.start_after;
	if (c->kernel && strcmp(c->kernel, u->parsed->name))
		return refuse("'%s' has the kernel '%s', not '%s'", c->file, u->parsed->name, c->kernel);
	if (c->signature || c->defines.len)
		return refuse("%s: the kernel of IR text has its types and values already", c->signature ? "-s" : "-D");
	if (c->options.codegen.sizes && u->parsed->target)
		return refuse("--any-size: the offsets in '%s' are those that were placed", c->file);
	return true;
}

/* Finds the kernel of the source and its arguments. False after a message. */
static bool find_origin(struct command *c, struct unit *u, struct origin *out)
{
	out->func = pick_kernel(u, c->kernel);
	if (!out->func)
		return false;
	struct arg_spec *args = arena_array(&c->arena, struct arg_spec, out->func->nparams);
	out->args = args;
	return read_kernel_arguments(c, u, out->func, args);
}

/* `parsed`: the unit has no errors. */
static int compile_and_emit(struct command *c, struct unit *u, bool parsed, const struct kinds *kinds)
{
	struct compiled out = {0};
	struct origin from = {NULL, NULL};
	bool ok = parsed && check_request(c, u);
	if (ok && !kinds->only_ast)
		ok = (!u->module || find_origin(c, u, &from)) && compile(u, from.func, from.args, &c->options, &out);
	show_diagnostics(u);
	u32 shown = u->diags.text.len;
	int r = ok ? emit(c, u, &from, &out, kinds) : EXIT_USER;
	if (u->diags.text.len > shown)
		fputs(u->diags.text.at + shown, stderr);
	return r;
}

int command_compile(struct command *c)
{
	struct kinds kinds = {0};
	struct unit *u = arena_new(&c->arena, struct unit);
	size_t len;
	char *text = read_file(&c->arena, c->file, &len);
	if (!text)
		return EXIT_ENVIRONMENT;
	bool ok = unit_open(u, c->file, text, len);
	int placed = u->parsed ? target_of_text(u->parsed) : 0;
	if (!c->target)
		c->target = placed ? arena_printf(&c->arena, "sm_%d%s", placed, placed == 90 ? "a" : "")
				   : device_default_target(&c->arena);
	int r = EXIT_USER;
	if (read_target(c->target, &c->options.target) && !(r = read_kinds(c, &kinds)))
		r = compile_and_emit(c, u, ok, &kinds);
	unit_free(u);
	return r;
}

/* Adds the folders of -I before the folders of PYTHONPATH, where the library searches for modules. */
static void prepend_folders(struct command *c)
{
	for (u32 i = c->folders.len; i-- > 0;) {
		const char *path = getenv("PYTHONPATH");
		const char *first = c->folders.at[i];
		setenv("PYTHONPATH", path ? arena_printf(&c->arena, "%s:%s", first, path) : first, 1);
	}
}

/* --- tlc_main ---------------------------------------------------------------------------------------------------- */

/* tl_assert has printed its message: exit with a status, for scripts, instead of a signal. */
static void on_abort(int signal)
{
	(void)signal;
	_exit(EXIT_BUG);
}

static void version(void)
{
	unsigned major, minor, patch;
	LLVMGetVersion(&major, &minor, &patch);
	printf("tlc %s, LLVM %u.%u.%u\n", TL_VERSION, major, minor, patch);
}

int tlc_main(int argc, char **argv)
{
	signal(SIGABRT, on_abort);
	if (argc < 2) {
		show_help();
		return EXIT_USER;
	}
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			read_verb(argv[1]) == VERB_COMPILE ? show_help() : show_help_of(argv[1]);
		else if (!strcmp(argv[i], "--version"))
			version();
		else
			continue;
		return EXIT_DONE;
	}
	if (!strcmp(argv[1], "serve")) {
		if (argc > 2)
			return complain(EXIT_USER, "unexpected '%s': tlc serve takes nothing", argv[2]);
		tl_tuner_serve(STDIN_FILENO);
		_exit(EXIT_DONE);
	}
	struct command c = {.argc = argc, .argv = argv, .verb = read_verb(argv[1]), .options = {.print_to = stderr}};
	int skip = c.verb == VERB_COMPILE ? 1 : 2, r = EXIT_USER;
	bool ok = read_options(&c, argc - skip, argv + skip);
	prepend_folders(&c);
	if (ok)
		r = run_command(&c);
	arena_free(&c.arena);
	return r;
}
