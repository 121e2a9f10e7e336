/* Objects of JSON: what is written is read back, laid out anyhow, and what is cut or changed is refused or read, never
 * past its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/json.h"
#include "random_bits.h"

enum { MOST = 8 };

static const char *random_text(struct arena *a)
{
	static const char some[] = "\"\\{}[]:, \t\n\ra\x01\x1Fé/u0041";
	char *out = arena_alloc(a, 33);
	u32 len = random_bits() % 33;
	for (u32 i = 0; i < len; i++)
		out[i] = some[random_bits() % (sizeof some - 1)];
	out[len] = 0;
	return out;
}

static void space(struct strbuf *out)
{
	static const char *const some[] = {"", "", " ", "\t", "\r", "  "};
	sb_puts(out, some[random_bits() % ARRAY_LEN(some)]);
}

static void read_back(void **state)
{
	(void)state;
	for (u32 round = 0; round < 5000; round++) {
		struct arena a = {0};
		struct strbuf out = {.arena = &a};
		const char *text[MOST];
		struct json_member m[MOST];
		u32 n = random_bits() % (MOST + 1), got;
		sb_puts(&out, "{");
		for (u32 i = 0; i < n; i++) {
			sb_printf(&out, "%s", i ? "," : "");
			space(&out);
			sb_printf(&out, "\"m%u\"", i);
			space(&out);
			sb_puts(&out, ":");
			space(&out);
			text[i] = random_bits() % 3 ? random_text(&a) : NULL;
			if (text[i])
				sb_json(&out, text[i]);
			else
				sb_printf(&out, i % 2 ? "{ \"x\" : [%u , \"}]\"] }" : "-%u.5e3", i);
			space(&out);
		}
		sb_puts(&out, "}\n");
		assert_true(json_read(&a, out.at, out.len, m, MOST, &got));
		assert_int_equal(got, n);
		for (u32 i = 0; i < n; i++) {
			const char *value = json_value(m, n, arena_printf(&a, "m%u", i)), *s = json_text(&a, value);
			if (text[i])
				assert_string_equal(s, text[i]);
			else
				assert_null(s);
			if (!text[i] && i % 2)
				assert_string_equal(value, arena_printf(&a, "{\"x\":[%u,\"}]\"]}", i));
		}
		assert_null(json_value(m, n, "other"));
		if (n)
			assert_false(json_read(&a, out.at, out.len, m, n - 1, &got));
		for (u32 len = 0; len + 2 < out.len; len++) /* cut */
			assert_false(json_read(&a, out.at, len, m, MOST, &got));
		for (u32 i = 0; i < 20; i++) { /* changed: whatever it is, strings of it can be asked for */
			char *bad = arena_str(&a, out.at, out.len);
			bad[random_bits() % out.len] = (char)(random_bits() % 127 + 1);
			if (json_read(&a, bad, out.len, m, MOST, &got))
				for (u32 k = 0; k < got; k++)
					json_text(&a, m[k].value);
		}
		arena_free(&a);
	}
}

static void refused(void **state)
{
	static const char *const objects[] = {"",         "[]",    "{\"a\":1,}",  "{\"a\"1}",
					      "{\"a\":}", "{a:1}", "{\"a\":1} x", "{,}"};
	static const char *const strings[] = {"a",         "\"a",         "\"\\x\"", "\"\\u00zz\"",
					      "\"\\u12\"", "\"\\u0100\"", "1",       ""};
	struct arena a = {0};
	struct json_member m[MOST];
	u32 n;
	(void)state;
	for (u32 i = 0; i < ARRAY_LEN(objects); i++)
		assert_false(json_read(&a, objects[i], strlen(objects[i]), m, MOST, &n));
	for (u32 i = 0; i < ARRAY_LEN(strings); i++)
		assert_null(json_text(&a, strings[i]));
	assert_null(json_text(&a, NULL));
	assert_string_equal(json_text(&a, "\"\\u0041\\n\\\\\\/é\""), "A\n\\/é");
	arena_free(&a);
}

static void arrays(void **state)
{
	(void)state;
	struct arena a = {0};
	u32 n;
	const char *const *x = json_array(&a, "[1,\"],[\",[2,[3]],{\"a\":[4]}]", 4, &n);
	assert_non_null(x);
	assert_int_equal(n, 4);
	assert_string_equal(x[0], "1");
	assert_string_equal(x[1], "\"],[\"");
	assert_string_equal(x[2], "[2,[3]]");
	assert_string_equal(x[3], "{\"a\":[4]}");
	assert_non_null(json_array(&a, "[]", 0, &n));
	assert_int_equal(n, 0);
	static const char *const bad[] = {"",     "[",    "]",    "1",    "{}",    "[1",  "[1,",  "[1,]",       "[,1]",
					  "[,]",  "[1]2", "[]]",  "[[1]", "[1]]",  "[1}", "[\"]", "[1,2,3,4,5]"};
	for (u32 i = 0; i < ARRAY_LEN(bad); i++)
		if (json_array(&a, bad[i], 4, &n))
			fail_msg("%s", bad[i]);
	assert_null(json_array(&a, NULL, 4, &n));
	arena_free(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(read_back), cmocka_unit_test(arrays),
					   cmocka_unit_test(refused)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
