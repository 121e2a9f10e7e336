/* Modules of several source texts: imports among them, the places of messages, the keys of compiled kernels. */
#include <stdio.h>
#include <unistd.h>

#include "cache_folder.h"
#include "fixture.h"
#include "runtime/api/objects.h"

#define HEAD "import triton, triton.language as tl\n"
#define SOURCE(n, f, line, in, t)                                                                                      \
	{                                                                                                              \
		.name = (n), .file = (f), .first_line = (line), .indent = (in), .text = (t), .len = strlen(t)          \
	}
enum { N = 64 };

static const char *const kinds[] = {"interp", "cpu", "cpu:check", "sim"};

static tl_context *open_context(const char *device)
{
	tl_context *ctx;
	ok(tl_context_create(device, &ctx));
	return ctx;
}

static tl_kernel *kernel_in(tl_context *ctx, const tl_source *s, size_t n, const char *name)
{
	tl_module *m;
	tl_kernel *k;
	ok(tl_module_load_sources(ctx, s, n, &m));
	ok(tl_module_kernel(m, name, &k));
	return k;
}

/* The kernels of this file take x and y, of N elements each. */
static tl_status launch(tl_kernel *k, const float *x, float *y, tl_arg last)
{
	const tl_arg args[] = {tl_range(TL_F32, (void *)(uintptr_t)x, N * 4), tl_range(TL_F32, y, N * 4), tl_int(N),
			       last};
	return tl_launch(k, &(tl_config){.grid = {1, 1, 1}}, args, ARRAY_LEN(args));
}

static void fill(float *x, float *y)
{
	for (int i = 0; i < N; i++) {
		x[i] = (float)(rand() % 2001 - 1000) / 16;
		y[i] = -12345;
	}
}

/* y = f(x), with the function's text. */
#define KERNEL(imports, f)                                                                                             \
	imports "\n@triton.jit\ndef k(x, y, n, F: tl.constexpr = None):\n    i = tl.arange(0, 64)\n"                   \
		"    v = tl.load(x + i, mask=i < n)\n    tl.store(y + i, " f ", mask=i < n)\n"

static void assert_computes(tl_kernel *k, tl_arg last, float factor, float add)
{
	_Alignas(16) float x[N], y[N];
	fill(x, y);
	ok(launch(k, x, y, last));
	for (int i = 0; i < N; i++)
		assert_true(y[i] == x[i] * factor + add);
}

/* --- imports ------------------------------------------------------------------------------------------------- */

static void imports(void **state)
{
	(void)state;
	/* a cycle, packages, a relative import, `;`, other names, kernels of the same name */
	static const char of_k[] =
		KERNEL("import triton; import triton.language as tl; from m3 import f as g; import m4 as helpers; "
		       "import pkg.deep as deep, pkg.deep\n",
		       "g(v) + helpers.two(v) * deep.C + pkg.deep.C");
	static const char of_m3[] = "import triton; from m4 import two; SCALE = 4\n@triton.jit\ndef f(v):\n"
				    "    return two(v) * SCALE + 1\n@triton.jit\ndef h(v):\n    return v\n"
				    "@triton.jit\ndef k(x):\n    pass\n";
	static const char of_m4[] = "import triton; import m3\n@triton.jit\ndef two(v):\n    return m3.h(v) * 2\n";
	static const char of_deep[] = "from .flat import C; from . import flat\n";
	const tl_source all[] = {SOURCE("k", "k.py", 1, 0, of_k), SOURCE("m3", "m3.py", 1, 0, of_m3),
				 SOURCE("m4", "m4.py", 1, 0, of_m4), SOURCE("pkg.deep", "pkg/deep.py", 1, 0, of_deep),
				 SOURCE("pkg.flat", "pkg/flat.py", 1, 0, "from .. import k\nC = 3\n")};
	const tl_source package[] = {SOURCE(NULL, "k.py", 1, 0, KERNEL(HEAD "from a import f\n", "f(v)")),
				     SOURCE("a", "a/__init__.py", 1, 0, "from .b import f\n"),
				     SOURCE("a.b", "a/b.py", 1, 0, HEAD "@triton.jit\ndef f(v):\n    return v * 5\n")};
	static const char of_missing[] = KERNEL(HEAD "import pkg.flat\n", "v * pkg.none");
	const tl_source missing[] = {SOURCE(NULL, "k.py", 1, 0, of_missing), all[4]};
	for (u32 d = 0; d < ARRAY_LEN(kinds); d++) {
		_Alignas(16) float x[N] = {0}, y[N];
		tl_context *ctx = open_context(kinds[d]);
		assert_error(launch(kernel_in(ctx, missing, 2, "k"), x, y, tl_none()), TL_ERR_COMPILE,
			     "k.py:8:25: error: pkg has no 'none'");
		assert_computes(kernel_in(ctx, all, ARRAY_LEN(all), "k"), tl_none(), 8 + 6, 1 + 3);
		assert_computes(kernel_in(ctx, package, ARRAY_LEN(package), "k"), tl_none(), 5, 0);
		tl_context_destroy(ctx);
	}
}

static void functions(void **state)
{
	(void)state;
	const tl_source all[] = {SOURCE(NULL, "k.py", 1, 0, KERNEL(HEAD "from m3 import f as g, N\n", "F(v)")),
				 SOURCE("m3", "m3.py", 1, 0, HEAD "N = 3\n@triton.jit\ndef f(v):\n    return v * 8\n")};
	const tl_source star[] = {SOURCE(NULL, "k.py", 1, 0, KERNEL(HEAD "from m3 import *\n", "F(v)")), all[1]};
	const tl_source value[] = {SOURCE(NULL, "k.py", 1, 0, KERNEL(HEAD "from m3 import N\n", "v * F")), all[1]};
	_Alignas(16) float x[N] = {0}, y[N];
	for (u32 d = 0; d < ARRAY_LEN(kinds); d++) {
		tl_context *ctx = open_context(kinds[d]);
		tl_kernel *k = kernel_in(ctx, all, ARRAY_LEN(all), "k");
		assert_computes(k, tl_func("g"), 8, 0);
		assert_computes(kernel_in(ctx, star, ARRAY_LEN(star), "k"), tl_func("f"), 8, 0);
		assert_error(launch(k, x, y, tl_func("f")), TL_ERR_ARGUMENT, "has no function 'f'");
		assert_error(launch(k, x, y, tl_func("N")), TL_ERR_COMPILE, "cannot be called");
		assert_computes(kernel_in(ctx, value, ARRAY_LEN(value), "k"), tl_func("N"), 3, 0);
		tl_context_destroy(ctx);
	}
}

/* Files of the names of sources are not read. */
static void no_files(void **state)
{
	(void)state;
	char path[80], main[80];
	snprintf(path, sizeof path, "%s/m3.py", folder);
	snprintf(main, sizeof main, "%s/k.py", folder);
	FILE *f = fopen(path, "w");
	fputs(HEAD "@triton.jit\ndef f(v):\n    return v * 3\n", f);
	fclose(f);
	static const char text[] = KERNEL(HEAD "from m3 import f\n", "f(v)");
	const tl_source all[] = {SOURCE(NULL, main, 1, 0, text),
				 SOURCE("m3", path, 1, 0, HEAD "@triton.jit\ndef f(v):\n    return v * 2\n")};
	tl_context *ctx = open_context("cpu");
	assert_computes(kernel_in(ctx, all, 2, "k"), tl_none(), 2, 0);
	assert_computes(kernel_in(ctx, all, 1, "k"), tl_none(), 3, 0); /* there is no such source: the file */
	tl_context_destroy(ctx);
}

/* Whether a kernel uses tl.dot is known from its text: kernels with dots have variants that others do not need. */
static void dots(void **state)
{
	(void)state;
	static const char plain[] = HEAD "@triton.jit\ndef f(v):\n    return v\n";
	static const char dot[] = HEAD "@triton.jit\ndef g(v):\n    return tl.dot(v, v)\n"
				       "@triton.jit\ndef f(v):\n    return g(v)\nALIAS = f\n";
	static const char again[] = "from dot import f\nfrom plain import f as plain, f as dots\n";
	static const struct {
		const char *imports, *body;
		bool has;
	} cases[] = {
		{"from plain import f\n", "f(x)", false},
		{"from dot import f\n", "f(x)", true},
		{"from dot import f as h\n", "h(x)", true},
		{"from again import f\n", "f(x)", true},
		{"from again import plain, dots\n", "plain(x) + dots(x)", false},
		{"import plain as p\n", "p.f(x)", false},
		{"import dot as d\n", "d.f(x)", true},
		{"from dot import ALIAS\n", "ALIAS(x)", true},
		{"from plain import f\n", "F(x)", false},
		{"from dot import f\n", "F(x)", true},
		{"from elsewhere import f\n", "f(x)", true}, /* not known */
	};
	tl_context *ctx = open_context("interp");
	for (u32 i = 0; i < ARRAY_LEN(cases); i++) {
		char text[500];
		snprintf(text, sizeof text, HEAD "%s@triton.jit\ndef k(x, F: tl.constexpr):\n    %s\n",
			 cases[i].imports, cases[i].body);
		const tl_source all[] = {SOURCE(NULL, "k.py", 1, 0, text), SOURCE("plain", "p.py", 1, 0, plain),
					 SOURCE("dot", "d.py", 1, 0, dot), SOURCE("again", "a.py", 1, 0, again)};
		if (kernel_in(ctx, all, ARRAY_LEN(all), "k")->has_dots != cases[i].has)
			fail_msg("%s%s", cases[i].imports, cases[i].body);
	}
	tl_context_destroy(ctx);
}

/* --- places -------------------------------------------------------------------------------------------------- */

struct told {
	u32 line, column;
	char file[64], shown[1000];
	int n;
};

static void note(void *user, const tl_diagnostic *d)
{
	struct told *t = user;
	if (d->severity != TL_SEVERITY_ERROR || !d->file)
		return;
	*t = (struct told){.line = d->line, .column = d->column, .n = t->n + 1};
	snprintf(t->file, sizeof t->file, "%s", d->file);
	snprintf(t->shown, sizeof t->shown, "%s", d->shown);
}

static void check_place(const struct told *t, const char *file, u32 line, u32 column, const char *shown)
{
	const tl_error_info *e = tl_error_details();
	assert_string_equal(e->file, file);
	assert_int_equal(e->line, line);
	assert_int_equal(e->column, column);
	assert_non_null(strstr(e->text, shown));
	assert_string_equal(t->file, file);
	assert_int_equal(t->line, line);
	assert_int_equal(t->column, column);
	assert_non_null(strstr(t->shown, shown));
}

static void compile_errors(void **state)
{
	(void)state;
	static const char text[] = KERNEL(HEAD "from m3 import f, g, h\n", "F(v)");
	/* line 40 of the file holds the definitions; the function was indented by 4 */
	static const char bad[] = "import triton; import triton.language as tl; TYPE = tl.nothing\n@triton.jit\n"
				  "def f(v):\n    return v + undefined\n";
	static const char bad_definition[] = "import triton; import triton.language as tl; TYPE = tl.nothing\n"
					     "@triton.jit\ndef g(v):\n    return v.to(TYPE)\n";
	static const char bad_syntax[] = "import triton\n@triton.jit\ndef h(v):\n    return v +\n";
	_Alignas(16) float x[N] = {0}, y[N];
	for (u32 d = 0; d < ARRAY_LEN(kinds); d++) {
		tl_context *ctx = open_context(kinds[d]);
		struct told told = {0};
		ok(tl_context_diagnostics(ctx, note, &told, false));
		const tl_source all[] = {SOURCE(NULL, "k.py", 1, 0, text), SOURCE("m3", "m3.py", 40, 4, bad)};
		tl_kernel *k = kernel_in(ctx, all, 2, "k");
		assert_error(launch(k, x, y, tl_func("f")), TL_ERR_COMPILE, "undefined");
		check_place(&told, "m3.py", 43, 20, "m3.py:43:20: error: ");
		check_place(&told, "m3.py", 43, 20, "   43 |     return v + undefined\n"
						    "      |                ^~~~~~~~~\n");
		const tl_source first[] = {all[0], SOURCE("m3", "m3.py", 0, 0, bad_definition)};
		k = kernel_in(ctx, first, 2, "k");
		assert_error(launch(k, x, y, tl_func("g")), TL_ERR_COMPILE, "nothing");
		check_place(&told, "m3.py", 0, 53, "    0 | import triton; import");
		const tl_source syntax[] = {all[0], SOURCE("m3", "m3.py", 7, 2, bad_syntax)};
		tl_module *m;
		assert_error(tl_module_load_sources(ctx, syntax, 2, &m), TL_ERR_COMPILE, "m3.py:10:");
		assert_null(m);
		check_place(&told, "m3.py", 10, 17, "   10 |     return v +\n      |               ^");
		assert_int_equal(told.n, 3);
		tl_context_destroy(ctx);
	}
}

/* The function of the second source fails in line 102 of m3.py. */
static void kernel_errors(void **state)
{
	(void)state;
	static const char text[] = KERNEL(HEAD "from m3 import check, outside\n", "F(v, y)");
	static const char helpers[] = HEAD "@triton.jit\ndef check(v, y):\n"
					   "    tl.device_assert(v < 0, \"negative\")\n    return v\n"
					   "@triton.jit\ndef outside(v, y):\n"
					   "    return tl.load(y + 1000000)\n";
	static const char *const checked[] = {"interp", "cpu:check", "sim"};
	_Alignas(16) float x[N], y[N] = {0};
	for (int i = 0; i < N; i++)
		x[i] = 1;
	for (u32 d = 0; d < ARRAY_LEN(kinds); d++) {
		tl_context *ctx = open_context(kinds[d]);
		const tl_source all[] = {SOURCE(NULL, "k.py", 1, 0, text), SOURCE("m3", "./m3.py", 100, 4, helpers)};
		tl_kernel *k = kernel_in(ctx, all, 2, "k");
		const tl_arg args[] = {tl_range(TL_F32, x, sizeof x), tl_range(TL_F32, y, sizeof y), tl_int(N),
				       tl_func("check")};
		tl_config c = {.grid = {1, 1, 1}, .debug = true};
		assert_error(tl_launch(k, &c, args, ARRAY_LEN(args)), TL_ERR_KERNEL, "negative");
		assert_string_equal(tl_error_details()->file, "./m3.py");
		assert_int_equal(tl_error_details()->line, 103);
		if (strcmp(kinds[d], "sim")) {
			assert_int_equal(tl_error_details()->column, 9);
			assert_non_null(strstr(tl_error(NULL), "  103 |     tl.device_assert(v < 0, \"negative\")\n"));
		}
		tl_context_destroy(ctx);
	}
	for (u32 d = 0; d < ARRAY_LEN(checked); d++) {
		tl_context *ctx = open_context(checked[d]);
		tl_buffer *b[2];
		const tl_source all[] = {SOURCE(NULL, "k.py", 1, 0, text), SOURCE("m3", "m3.py", 100, 4, helpers)};
		tl_kernel *k = kernel_in(ctx, all, 2, "k");
		for (int i = 0; i < 2; i++)
			ok(tl_buffer_create(ctx, N * 4, &b[i]));
		ok(tl_buffer_write(b[0], 0, x, sizeof x));
		const tl_arg args[] = {tl_buf(TL_F32, b[0]), tl_buf(TL_F32, b[1]), tl_int(N), tl_func("outside")};
		assert_error(tl_launch(k, &(tl_config){.grid = {1, 1, 1}}, args, ARRAY_LEN(args)), TL_ERR_KERNEL, "");
		assert_string_equal(tl_error_details()->file, "m3.py");
		assert_int_equal(tl_error_details()->line, 107);
		assert_non_null(strstr(tl_error(NULL), "return tl.load(y + 1000000)"));
		tl_context_destroy(ctx);
	}
}

/* Two programs store different values in functions of two sources. */
static void races(void **state)
{
	(void)state;
	static const char text[] = HEAD "from m3 import put\n@triton.jit\ndef k(x):\n    p = tl.program_id(0)\n"
				   "    if p == 0:\n        tl.store(x, p)\n    else:\n        put(x, p)\n";
	static const char helper[] = HEAD "@triton.jit\ndef put(x, p):\n    tl.store(x, p)\n";
	static const char *const files[] = {"m3.py", "k.py"}, *const wanted[] = {"in line 6 of k.py, ", "in line 6, "};
	for (u32 i = 0; i < ARRAY_LEN(files); i++) {
		tl_context *ctx = open_context("cpu:check");
		tl_buffer *b;
		const tl_source all[] = {SOURCE(NULL, "k.py", 0, 0, text), SOURCE("m3", files[i], 100, 0, helper)};
		ok(tl_context_threads(ctx, 1));
		ok(tl_buffer_create(ctx, 64, &b));
		assert_error(tl_launch(kernel_in(ctx, all, 2, "k"), &(tl_config){.grid = {2, 1, 1}},
				       (tl_arg[]){tl_buf(TL_I32, b)}, 1),
			     TL_ERR_KERNEL, wanted[i]);
		assert_string_equal(tl_error_details()->file, files[i]);
		assert_int_equal(tl_error_details()->line, 103);
		tl_context_destroy(ctx);
	}
}

/* Parts of one file, as of a program that passes each function with its own text. */
static void parts_of_a_file(void **state)
{
	(void)state;
	static const char text[] = KERNEL("import triton.language as tl; import triton; from m1 import f\n", "f(v, y)");
	static const char helper[] = "import triton.language as tl; import triton\n@triton.jit\ndef f(v, y):\n"
				     "    return tl.load(y + 1000000)\n";
	const tl_source all[] = {SOURCE("m0", "dir/all.py", 6, 0, text), SOURCE("m1", "dir/all.py", 2, 0, helper)};
	tl_context *ctx = open_context("sim");
	tl_kernel *k = kernel_in(ctx, all, 2, "k");
	tl_buffer *b[2];
	char *ptx;
	for (int i = 0; i < 2; i++)
		ok(tl_buffer_create(ctx, N * 4, &b[i]));
	const tl_arg args[] = {tl_buf(TL_F32, b[0]), tl_buf(TL_F32, b[1]), tl_int(N), tl_none()};
	assert_error(tl_launch(k, &(tl_config){.grid = {1, 1, 1}}, args, ARRAY_LEN(args)), TL_ERR_KERNEL, "");
	assert_string_equal(tl_error_details()->file, "dir/all.py");
	assert_int_equal(tl_error_details()->line, 5);
	assert_non_null(strstr(tl_error(NULL), "dir/all.py:5, PTX line "));
	ok(tl_kernel_dump(k, NULL, args, ARRAY_LEN(args), "ptx", &ptx));
	const char *file = strstr(ptx, ".file"), *loc = strstr(ptx, ".loc\t1 5 ");
	assert_non_null(file);
	assert_null(strstr(file + 1, ".file")); /* one file, whatever the number of its parts */
	assert_non_null(strstr(file, "\"dir/all.py\""));
	assert_non_null(loc);
	assert_non_null(strstr(ptx, ".loc\t1 12 ")); /* of the kernel: tl.store */
	tl_free(ptx);
	tl_context_destroy(ctx);
}

static void remark(void *user, const tl_diagnostic *d)
{
	if (d->severity == TL_SEVERITY_REMARK && d->file && !strcmp(d->file, "m3.py") && d->line == 53 &&
	    strstr(d->shown, "   53 |     return tl.load(y + tl.arange(0, 64)) + v"))
		++*(int *)user;
}

static void remarks(void **state)
{
	(void)state;
	const tl_source all[] = {SOURCE(NULL, "k.py", 1, 0, KERNEL(HEAD "from m3 import f\n", "f(v, y)")),
				 SOURCE("m3", "m3.py", 50, 4, HEAD "@triton.jit\ndef f(v, y):\n"
					"    return tl.load(y + tl.arange(0, 64)) + v\n")};
	tl_context *ctx = open_context("sim");
	int n = 0;
	_Alignas(16) float x[N], y[N];
	ok(tl_context_diagnostics(ctx, remark, &n, true));
	fill(x, y);
	ok(launch(kernel_in(ctx, all, 2, "k"), x, y, tl_none()));
	assert_true(n > 0);
	char *ptx;
	tl_module *m;
	tl_kernel *k;
	ok(tl_module_load_sources(ctx, all, 2, &m));
	ok(tl_module_kernel(m, "k", &k));
	const tl_arg args[] = {tl_ptr(TL_F32, x), tl_ptr(TL_F32, y), tl_int(N), tl_none()};
	ok(tl_kernel_dump(k, NULL, args, ARRAY_LEN(args), "ptx", &ptx));
	const char *file = strstr(ptx, "/m3.py\""); /* .file N "./m3.py", and .loc N 53 */
	assert_non_null(file);
	while (*file != '\t' || file[1] < '0' || file[1] > '9')
		file--;
	char loc[32];
	snprintf(loc, sizeof loc, ".loc%.3s53 ", (char[]){'\t', file[1], ' ', 0});
	assert_non_null(strstr(ptx, loc));
	tl_free(ptx);
	tl_context_destroy(ctx);
}

/* Debug information of the CPU: the functions with their files and lines. */
static void debug_lines(void **state)
{
	(void)state;
	static const char helper[] = "import triton\n@triton.jit\ndef f(v, y):\n    w = v * v\n    return w + v\n";
	const tl_source all[] = {SOURCE(NULL, "k.py", 20, 0, KERNEL(HEAD "from m3 import f\n", "f(v, y)")),
				 SOURCE("m3", "dir/m3.py", 50, 4, helper)};
	setenv("TL_GDB", "1", 1);
	tl_context *ctx = open_context("cpu");
	unsetenv("TL_GDB");
	const tl_arg args[] = {tl_ptr(TL_F32, NULL), tl_ptr(TL_F32, NULL), tl_int(N), tl_none()};
	char *llir;
	ok(tl_kernel_dump(kernel_in(ctx, all, 2, "k"), NULL, args, ARRAY_LEN(args), "llir", &llir));
	static const char *const wanted[] = {"!DIFile(filename: \"m3.py\", directory: \"dir\")",
					     "!DIFile(filename: \"k.py\"", "!DILocation(line: 53, ",
					     "!DILocation(line: 54, ", "!DILocation(line: 26, "};
	for (u32 i = 0; i < ARRAY_LEN(wanted); i++)
		if (!strstr(llir, wanted[i]))
			fail_msg("no %s in\n%s", wanted[i], strstr(llir, "!llvm"));
	const char *f = strstr(llir, "!DISubprogram(name: \"f\"");
	assert_non_null(f);
	assert_non_null(strstr(f, "line: 52"));
	assert_true(strcspn(f, "\n") > (size_t)(strstr(f, "line: 52") - f));
	tl_free(llir);
	tl_context_destroy(ctx);
}

/* --- keys ---------------------------------------------------------------------------------------------------- */

/* The number of kernels on disk. */
static int files(void)
{
	char command[100];
	int n = -1;
	snprintf(command, sizeof command, "find %s -type f -size +0 | wc -l", folder);
	FILE *p = popen(command, "r");
	assert_int_equal(fscanf(p, "%d", &n), 1);
	pclose(p);
	return n;
}

/* Contexts that share their kernels, and the disk cache: other sources, other code. */
static void keys(void **state)
{
	(void)state;
	static const char text[] = KERNEL(HEAD "from m3 import f\n", "f(v)");
	char texts[3][128];
	for (int i = 0; i < 3; i++)
		snprintf(texts[i], sizeof texts[i], HEAD "@triton.jit\ndef f(v):\n    return v * %d\n", 2 + i);
	for (int round = 0; round < 2; round++) { /* the second one finds the kernels on disk */
		tl_context *first = open_context("cpu"), *second = open_context("cpu");
		ok(tl_context_share(second, first));
		for (int i = 0; i < 3; i++) {
			const tl_source all[] = {SOURCE(NULL, "k.py", 1, 0, text),
						 SOURCE("m3", "m3.py", 1, 0, texts[i])};
			int before = files();
			assert_computes(kernel_in(first, all, 2, "k"), tl_none(), (float)(2 + i), 0);
			assert_int_equal(files() - before, round ? 0 : 1);
			before = files();
			assert_computes(kernel_in(second, all, 2, "k"), tl_none(), (float)(2 + i), 0);
			assert_int_equal(files(), before);
		}
		tl_context_destroy(first);
		tl_context_destroy(second);
	}
}

/* IR texts of the same kernel name, parameters and file name. */
static void keys_of_ir(void **state)
{
	(void)state;
	tl_context *ctx = open_context("cpu");
	for (int i = 1; i < 4; i++) {
		char text[400];
		float x[4] = {-1, -1, -1, -1};
		snprintf(text, sizeof text, "tt.func @k(%%x: !tt.ptr<f32>) {\n  %%c = arith.constant %d.0 : f32\n"
			 "  tt.store %%x, %%c : !tt.ptr<f32>\n  tt.return\n}\n", i);
		const tl_source s = SOURCE(NULL, "k.ttir", 1, 0, text);
		ok(tl_launch(kernel_in(ctx, &s, 1, "k"), &(tl_config){.grid = {1, 1, 1}},
			     (tl_arg[]){tl_range(TL_F32, x, sizeof x)}, 1));
		assert_true(x[0] == (float)i && x[1] == -1);
	}
	tl_context_destroy(ctx);
}

/* A manifest has the texts: another process compiles the kernels from it. */
static void manifests(void **state)
{
	(void)state;
	static const char of_k[] = KERNEL(HEAD "from m3 import f as g\n", "F(v) + g(v)");
	static const char of_m3[] = HEAD "@triton.jit\ndef f(v):\n    return v * 2\n";
	const tl_source all[] = {SOURCE("k", "no/such/file.py", 7, 4, of_k),
				 SOURCE("m3", "no/such/file.py", 0, 0, of_m3)};
	char command[1000], self[500], manifest[100], other[100];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	assert_true(n > 0);
	self[n] = 0;
	*strrchr(self, '/') = 0; /* build/tests */
	snprintf(manifest, sizeof manifest, "%s/manifest", folder);
	snprintf(other, sizeof other, "%s/other", folder);
	setenv("TL_MANIFEST", manifest, 1);
	tl_context *ctx = open_context("cpu");
	assert_computes(kernel_in(ctx, all, 2, "k"), tl_func("g"), 4, 0);
	tl_context_destroy(ctx);
	unsetenv("TL_MANIFEST");
	snprintf(command, sizeof command, "TL_CACHE_DIR=%s %s/../tlc build %s 2>&1 | grep -q '1 of 1 variants'", other,
		 self, manifest);
	assert_int_equal(system(command), 0);
	snprintf(command, sizeof command,
		 "cd %s && %s/../tlc build manifest -o all 2>&1 && grep -q 'tl_status k(tl_compiled' all.h", folder,
		 self);
	setenv("TL_CACHE_DIR", other, 1);
	setenv("TL_NO_JIT", "1", 1);
	ctx = open_context("cpu");
	assert_computes(kernel_in(ctx, all, 2, "k"), tl_func("g"), 4, 0);
	_Alignas(16) float x[N], y[N];
	assert_error(launch(kernel_in(ctx, all, 2, "k"), x, y, tl_none()), TL_ERR_NOT_BUILT, "the missing variant is");
	tl_context_destroy(ctx);
	unsetenv("TL_NO_JIT");
	setenv("TL_CACHE_DIR", folder, 1);
	assert_int_equal(system(command), 0);
}

static void hashes(void **state)
{
	(void)state;
	/* the same texts in all, divided otherwise */
	const struct unit_source first[] = {{.text = "ab", .len = 2}, {.name = "m", .text = "c", .len = 1}};
	const struct unit_source second[] = {{.text = "a", .len = 1}, {.name = "m", .text = "bc", .len = 2}};
	assert_true(hash_sources(first, 2) != hash_sources(second, 2));
	assert_true(hash_sources(first, 2) == hash_sources(first, 2));
}

/* --- refused ------------------------------------------------------------------------------------------------- */

static void refused(void **state)
{
	(void)state;
	static const char ir[] = "tt.func @k() {\n  tt.return\n}\n";
	tl_context *ctx = open_context("interp");
	tl_module *m = (void *)&ctx;
	const tl_source good = SOURCE("m", "m.py", 1, 0, HEAD);
	tl_source two[] = {SOURCE("k", "k.py", 1, 0, HEAD), good};
	assert_error(tl_module_load_sources(NULL, two, 2, &m), TL_ERR_ARGUMENT, "the context is NULL");
	assert_error(tl_module_load_sources(ctx, NULL, 2, &m), TL_ERR_ARGUMENT, "the array of sources is NULL");
	assert_error(tl_module_load_sources(ctx, two, 2, NULL), TL_ERR_ARGUMENT, "out is NULL");
	assert_error(tl_module_load_sources(ctx, two, 0, &m), TL_ERR_ARGUMENT, "0 sources");
	assert_null(m);
	two[1].name = "k";
	assert_error(tl_module_load_sources(ctx, two, 2, &m), TL_ERR_ARGUMENT, "0 and 1 have the same name, 'k'");
	static const char *const bad[] = {"", ".", "a.", ".a", "a..b", "1a", "a.1", "a b", "a/b"};
	for (u32 i = 0; i < ARRAY_LEN(bad); i++) {
		two[1].name = bad[i];
		assert_error(tl_module_load_sources(ctx, two, 2, &m), TL_ERR_ARGUMENT, "is not a dotted name");
	}
	static const char *const own[] = {"math", "triton", "triton.language", "triton.x", "pkg.tl"};
	for (u32 i = 0; i < ARRAY_LEN(own); i++) {
		two[1].name = own[i];
		assert_error(tl_module_load_sources(ctx, two, 2, &m), TL_ERR_ARGUMENT, "a module of the compiler");
	}
	two[1] = good;
	two[1].text = NULL;
	assert_error(tl_module_load_sources(ctx, two, 2, &m), TL_ERR_ARGUMENT, "the text of source 1 is NULL");
	two[1] = good;
	two[1].reserved[1] = 1;
	assert_error(tl_module_load_sources(ctx, two, 2, &m), TL_ERR_ARGUMENT, "source 1: a reserved member is not 0");
	two[1] = good;
	two[1].first_line = UINT32_MAX;
	assert_error(tl_module_load_sources(ctx, two, 2, &m), TL_ERR_ARGUMENT, "source 1: lines up to 4294967296");
	two[1] = good;
	two[1].indent = 65536;
	assert_error(tl_module_load_sources(ctx, two, 2, &m), TL_ERR_ARGUMENT, "an indentation of 65536 bytes");
	two[1] = good;
	two[0] = (tl_source)SOURCE("k", "k.ttir", 1, 0, ir);
	assert_error(tl_module_load_sources(ctx, two, 2, &m), TL_ERR_ARGUMENT, "IR text, which imports nothing");
	ok(tl_module_load_sources(ctx, two, 1, &m));
	tl_context_destroy(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(imports),
		cmocka_unit_test(functions),
		cmocka_unit_test_setup_teardown(no_files, new_folder, remove_folder),
		cmocka_unit_test(dots),
		cmocka_unit_test(compile_errors),
		cmocka_unit_test(kernel_errors),
		cmocka_unit_test(parts_of_a_file),
		cmocka_unit_test(races),
		cmocka_unit_test(remarks),
		cmocka_unit_test(debug_lines),
		cmocka_unit_test_setup_teardown(keys, new_folder, remove_folder),
		cmocka_unit_test_setup_teardown(keys_of_ir, new_folder, remove_folder),
		cmocka_unit_test_setup_teardown(manifests, new_folder, remove_folder),
		cmocka_unit_test(hashes),
		cmocka_unit_test(refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
