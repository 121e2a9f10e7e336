/* Lines of manifests: what is printed is read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "random_bits.h"
#include "runtime/launch/manifest.h"

static struct manifest_entry random_entry(void)
{
	static const char *const targets[] = {"cuda:sm_80", "cuda:sm_90a", "cpu:avx2", "cpu:avx512+bf16"};
	struct manifest_entry e = {.source = "a \"b\".tl",
				   .hash = "0123456789abcdef",
				   .kernel = "kernel",
				   .arguments = "x=*fp32:16, n=i32, KIND=\"relu\"",
				   .path = random_bits() & 1 ? "/lib" : NULL,
				   .text = random_bits() & 1 ? "def k():\n\tpass\n" : NULL,
				   .options.codegen = {
					   .num_warps = 1 << random_bits() % 6,
					   .num_stages = 1 + (int)(random_bits() % 7),
					   .group_pids = (int)(random_bits() % 9),
					   .maxnreg = (int)(random_bits() % 256),
					   .fp_fusion = (int)(1 + random_bits() % 2),
					   .ftz = (int)(1 + random_bits() % 2),
					   .debug = random_bits() & 1,
					   .wraps = random_bits() & 1,
					   .no_tma = random_bits() & 1,
					   .grid = (enum grid_kind)(random_bits() % GRID_KINDS),
					   .sizes = (enum launch_bounds)(random_bits() % (BOUNDS_WIDE + 1)),
					   .alias = (enum aliasing)(random_bits() % (ALIAS_ANY + 1))}};
	static const struct unit_source sources[] = {{NULL, "a.py", 1, 0, "def k():\n\tpass\n", 15},
						     {"b.\u00e9", "\"b\".py", 0, 70000, "[{x: ']'}, \"\n", 13},
						     {"c", "", UINT32_MAX, 4, "", 0}};
	e.sources = sources;
	e.nsources = random_bits() % 4;
	assert_true(target_parse(targets[random_bits() % ARRAY_LEN(targets)], &e.target));
	return e;
}

static void same_text(const char *x, const char *y)
{
	assert_true(!x == !y);
	if (x)
		assert_string_equal(x, y);
}

static void what_is_printed_is_read(void **state)
{
	(void)state;
	for (int n = 0; n < 2000; n++) {
		struct arena a = {0};
		struct strbuf line = {.arena = &a};
		struct manifest_entry e = random_entry(), read;
		manifest_print(&line, &e);
		assert_null(manifest_read(&a, line.at, line.len, &read));
		same_text(e.source, read.source);
		same_text(e.hash, read.hash);
		same_text(e.kernel, read.kernel);
		same_text(e.arguments, read.arguments);
		same_text(e.path, read.path);
		same_text(e.text, read.text);
		assert_int_equal(e.nsources, read.nsources);
		for (u32 i = 0; i < e.nsources; i++) {
			same_text(e.sources[i].name, read.sources[i].name);
			same_text(e.sources[i].file, read.sources[i].file);
			same_text(e.sources[i].text, read.sources[i].text);
			assert_int_equal(e.sources[i].first_line, read.sources[i].first_line);
			assert_int_equal(e.sources[i].indent, read.sources[i].indent);
			assert_int_equal(e.sources[i].len, read.sources[i].len);
		}
		same_text(target_name(&a, &e.target), target_name(&a, &read.target));
		const struct codegen_options *x = &e.options.codegen, *y = &read.options.codegen;
		assert_true(codegen_options_same_choice(x, y) && x->no_tma == y->no_tma && x->grid == y->grid);
		assert_true(x->sizes == y->sizes && x->alias == y->alias);
		arena_free(&a);
	}
}

static void others_are_refused(void **state)
{
	(void)state;
	static const char *const lines[][2] = {
		{"\"sizes\": \"huge\"", "its value of \"sizes\" is not valid"},
		{"\"sizes\": 1", "its value of \"sizes\" is not valid"},
		{"\"overlap\": \"some\"", "its value of \"overlap\" is not valid"},
		{"\"num_warps\": 12", "its value of \"num_warps\" is not valid"},
		{"\"num_stages\": 0", "its value of \"num_stages\" is not valid"},
		{"\"maxnreg\": 4294967296", "its value of \"maxnreg\" is not valid"},
		{"\"no_boxes\": 2", "its value of \"no_boxes\" is not valid"},
		{"\"sources\": []", "its value of \"sources\" is not valid"},
		{"\"sources\": {}", "its value of \"sources\" is not valid"},
		{"\"sources\": [{\"file\": \"a\", \"text\": \"\", \"indent\": 0}]",
		 "its value of \"sources\" is not valid"},
		{"\"sources\": [{\"file\": \"a\", \"text\": \"\", \"indent\": 0, \"first_line\": 4294967296}]",
		 "its value of \"sources\" is not valid"},
		{"\"sources\": [{\"file\": \"a\", \"text\": \"\", \"indent\": 0, \"first_line\": 1},]",
		 "its value of \"sources\" is not valid"},
		{"\"any\": 0", "its value of \"any\" is not valid"},
	};
	for (u32 i = 0; i < ARRAY_LEN(lines); i++) {
		struct arena a = {0};
		struct manifest_entry e;
		const char *line = arena_printf(&a,
						"{\"source\": \"a.tl\", \"hash\": \"0\", \"kernel\": \"k\", "
						"\"arguments\": \"\", \"target\": \"sm_80\", %s}",
						lines[i][0]);
		assert_string_equal(manifest_read(&a, line, strlen(line), &e), lines[i][1]);
		arena_free(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_printed_is_read),
					   cmocka_unit_test(others_are_refused)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
