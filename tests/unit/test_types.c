/* The types of results against those that Triton gives: tests/types/types.txt, which tests/types/record.py wrote. Each
 * combination of operands of each operation there is a statement of a kernel, which prints the type when it is
 * evaluated. Where tlc means to differ, tests/types/differences.txt says so; a line there that no result needs is a
 * failure. */
#include <ctype.h>
#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/file.h"
#include "driver/compile.h"

enum { MAX_OPERANDS = 3, WORD = 6, NAME = 16, AT_ONCE = 18, MOST_ERRORS = 19 };

static const char letters[] = "bcsilCSILnmvhyfdPQ"; /* as in record.py */
static const char *const types[] = {"i1",  "i8",      "i16",   "i32",	   "i64",  "u8",   "u16",  "u32",  "u64",
				    "fp8e4nv", "fp8e5", "fp8e4b15", "fp16", "bf16", "fp32", "fp64", "*fp32", "*i32"};
static const char *const constants[] = {"True", "2", "-1", "300", "2147483648", "4294967296", "0.5", "1e300"};
static const struct fixed {
	const char *word, *scalar, *type;
} fixed[] = {{"pf", "PF", "*fp32"}, {"PF", "PF", "*fp32"}, {"pi", "PI", "*i32"}, {"I", "I", "i32"}, {"i", "I", "i32"}};

struct row {
	char key[MAX_OPERANDS];
	const char *results;
};
struct operation {
	const char *text; /* the line */
	char flag;
	const char *expression;
	int operands;
	const char *last; /* the letters of the last operand, one for each result of a row */
	VEC(struct row) rows;
};
struct difference {
	char *expression, *operands, *result;
	int line;
	u32 used;
};

struct table {
	struct arena arena;
	VEC(struct operation) operations;
	VEC(struct difference) differences;
	u32 cells, same, wrong;
};

/* --- reading ------------------------------------------------------------------------------------------------- */

static char *read_text(struct arena *a, const char *path)
{
	FILE *f = fopen(path, "rb");
	if (!f)
		fail_msg("cannot read %s", path);
	size_t len = 0, n;
	char *text = arena_alloc(a, 1 << 22);
	while ((n = fread(text + len, 1, (1 << 22) - 1 - len, f)) > 0)
		len += n;
	fclose(f);
	text[len] = 0;
	return text;
}

static const struct operation *find_operation(const struct table *t, const char *text)
{
	for (u32 i = 0; i < t->operations.len; i++)
		if (!strcmp(t->operations.at[i].text, text))
			return &t->operations.at[i];
	fail_msg("types.txt: no operation '%s'", text);
	return NULL;
}

static void begin_operation(struct table *t, char *line)
{
	struct operation o = {.text = line, .expression = line};
	if (line[1] == ' ' && strchr("@>", line[0])) {
		o.flag = line[0];
		o.expression += 2;
	}
	const char *sets = strrchr(line, ';');
	o.expression = arena_str(&t->arena, o.expression, (size_t)(sets - o.expression) - 1);
	for (const char *s = sets + 1; *s; s++)
		o.operands += *s == ' ' && s[1];
	vec_push(&t->arena, &t->operations, o);
}

static void read_types(struct table *t)
{
	char *text = read_text(&t->arena, "tests/types/types.txt");
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		if (*line == '#')
			continue;
		if (*line != ' ') {
			begin_operation(t, line);
			continue;
		}
		struct operation *o = &t->operations.at[t->operations.len - 1];
		char *words = line + strspn(line, " ");
		if (!strncmp(words, "as ", 3)) {
			const struct operation *from = find_operation(t, words + 3);
			o->last = from->last;
			o->rows = from->rows;
			continue;
		}
		if (o->operands && !o->last) {
			o->last = words;
			continue;
		}
		struct row r = {.results = words};
		if (o->operands > 1) {
			memcpy(r.key, words, (size_t)o->operands - 1);
			r.results += o->operands;
		}
		vec_push(&t->arena, &o->rows, r);
	}
}

static char *trimmed(char *s)
{
	s += strspn(s, " ");
	for (size_t n = strlen(s); n && s[n - 1] == ' '; n--)
		s[n - 1] = 0;
	return s;
}

static void read_differences(struct table *t)
{
	char *text = read_text(&t->arena, "tests/types/differences.txt"), *rest = text;
	for (int n = 1; rest; n++) {
		char *line = strsep(&rest, "\n");
		if (!*line || *line == '#')
			continue;
		char *result = strrchr(line, ';'), *operands;
		*result++ = 0;
		operands = strrchr(line, ';');
		*operands++ = 0;
		vec_push(&t->arena, &t->differences,
			 ((struct difference){trimmed(line), trimmed(operands), trimmed(result), n, 0}));
	}
}

/* --- kernels ------------------------------------------------------------------------------------------------- */

static bool is_word(char c)
{
	return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

struct cell {
	struct strbuf params, lines, body;
	char known[512][NAME];
	u32 nknown;
};

static bool is_known(struct cell *c, const char *word)
{
	for (u32 i = 0; i < c->nknown; i++)
		if (!strcmp(c->known[i], word))
			return true;
	strcpy(c->known[c->nknown++], word);
	return false;
}

/* A parameter, and the tile that is made of it unless the word is the scalar's. */
static void add_operand(struct cell *c, const char *word, const char *scalar, const char *type, bool square)
{
	if (!is_known(c, scalar))
		sb_printf(&c->params, "%s%s: \"%s\"", c->params.len ? ", " : "", scalar, type);
	if (strcmp(word, scalar) != 0 && !is_known(c, word))
		sb_printf(&c->lines, "    %s = tl.broadcast_to(%s, [32%s])\n", word, scalar, square ? ", 32" : "");
}

/* Word of an expression: an operand, whose text is appended to `out`; false: none. */
static bool operand_text(struct cell *c, const char *word, const char *operands, struct strbuf *out)
{
	size_t n = strlen(word);
	bool pointer = *word == 'p' || *word == 'P', type = *word == 'T';
	char slot = word[n - 1];
	bool tile = slot >= 'a' && slot <= 'c', square = n == 2 && word[0] == slot && tile;
	slot = (char)(tile ? slot - 'a' : slot - 'A');
	if (slot < 0 || slot > 2 || !(n == 1 || (n == 2 && (pointer || type || square))))
		return false;
	char letter = operands[(int)slot], name[NAME], scalar[NAME], whole[16];
	const char *at = strchr(letters, letter);
	if (type) {
		sb_printf(out, "tl.%s", dtype_tl_name(dtype_parse(types[at - letters], strlen(types[at - letters]))));
		return true;
	}
	if (!at) {
		sb_printf(out, "(%s)", constants[letter - '0']);
		return true;
	}
	snprintf(name, sizeof name, "%s_%c", word, letter);
	snprintf(scalar, sizeof scalar, "%s%c_%c", pointer ? "P" : "", 'A' + slot, letter);
	snprintf(whole, sizeof whole, "%s%s", pointer ? "*" : "", types[at - letters]);
	add_operand(c, name, scalar, whole, square);
	sb_puts(out, name);
	return true;
}

/* The statement that evaluates o for these operands and prints the type; the first line is line 1 of c->body. */
static void add_statement(struct arena *a, struct cell *c, const struct operation *o, const char *operands)
{
	struct strbuf text = {.arena = a};
	for (const char *s = o->expression, *end; *s; s = end) {
		char word[WORD];
		end = s + 1;
		if (!is_word(*s)) {
			sb_printf(&text, "%c", *s);
			continue;
		}
		while (is_word(*end))
			end++;
		size_t n = (size_t)(end - s);
		snprintf(word, sizeof word, "%.*s", (int)n, s);
		if (n <= 2 && operand_text(c, word, operands, &text))
			continue;
		for (u32 i = 0; i < ARRAY_LEN(fixed) && n <= 2; i++)
			if (!strcmp(fixed[i].word, word))
				add_operand(c, word, fixed[i].scalar, fixed[i].type, false);
		sb_printf(&text, "%.*s", (int)n, s);
	}
	bool observes = strstr(text.at, "index_");
	sb_printf(&c->body, observes ? "    %s\n" : "    tl.static_print(kind_of(%s))\n", text.at);
}

/* --- results ------------------------------------------------------------------------------------------------- */

static char integer_letter(int bits, bool is_unsigned)
{
	char letter = bits == 1 ? 'b' : "csil"[ilog2((u64)bits) - 3];
	return bits > 1 && is_unsigned ? (char)toupper(letter) : letter;
}

struct batch {
	char flag;
	u32 first, n; /* lines of the statements */
	char *got;
};

static char *letter_at(const struct batch *b, struct loc at)
{
	return at.line >= b->first && at.line < b->first + b->n ? &b->got[at.line - b->first] : NULL;
}

/* The type that a comparison is computed in, or the sign of a shift. */
static void look_at(struct op *o, void *arg)
{
	const struct batch *b = arg;
	char *letter = letter_at(b, o->loc);
	if (!letter || *letter == 'k')
		return;
	if (b->flag == '>' && (o->code == IR_SHRUI || o->code == IR_SHRSI))
		*letter = o->code == IR_SHRUI ? 'u' : 's';
	if (b->flag != '@' || (o->code != IR_CMPF && o->code != IR_CMPI))
		return;
	enum dtype d = type_elem(operand(o, 0)->type)->dtype;
	if (o->code == IR_CMPF)
		*letter = letters[9 + (d == DT_E4M3 ? 0 : d == DT_E5M2 ? 1 : d == DT_E4B15 ? 2 : 3 + (int)d - DT_F16)];
	else
		*letter = integer_letter(dtype_bits(d), o->attr[ATTR_PREDICATE] >= CMPI_ULT);
}

static char printed(const char *s)
{
	for (u32 i = 0; i < ARRAY_LEN(types); i++)
		if (!strncmp(s, types[i], strlen(types[i])) && !is_word(s[strlen(types[i])]))
			return letters[i];
	return !strncmp(s, "constant", 8) ? 'k' : !strncmp(s, "nothing", 7) ? 'o' : *s == '*' ? '*' : '?';
}

/* What tlc makes of n combinations of operands, `at` each, in one kernel. False: there are too many errors in it. */
static bool evaluate(const struct operation *o, const char (*at)[MAX_OPERANDS + 1], u32 n, const char *helpers,
		     char *got)
{
	static const char mark[] = "static_print: ";
	struct arena a = {0};
	struct cell c = {.params = {.arena = &a}, .lines = {.arena = &a}, .body = {.arena = &a}};
	struct strbuf source = {.arena = &a};
	for (u32 i = 0; i < n; i++)
		add_statement(&a, &c, o, at[i]);
	sb_printf(&source, "%s@triton.jit\ndef k(%s):\n%s", helpers, c.params.at ? c.params.at : "",
		  c.lines.at ? c.lines.at : "");
	struct batch b = {.flag = o->flag, .first = 1, .n = n, .got = got};
	for (const char *s = source.at; (s = strchr(s, '\n')); s++)
		b.first++;
	sb_puts(&source, c.body.at);
	struct unit u;
	if (!unit_open(&u, "types.tl", source.at, source.len))
		fail_msg("%s", u.diags.text.at);
	const struct func *f = map_get(&u.module->by_name, intern_str(&u.names, "k"));
	memset(got, '.', n);
	struct arg_spec *args = arena_array(&a, struct arg_spec, f->nparams + 1);
	struct kernel *k = compile_ir(&u, f, args, &(struct compile_options){0});
	for (u32 i = 0; i < u.diags.messages.len; i++) {
		const struct message *m = &u.diags.messages.at[i];
		char *letter = letter_at(&b, m->loc);
		if (!strncmp(m->text, mark, strlen(mark)) && (letter || n == 1)) /* n == 1: a helper prints */
			*(letter ? letter : got) = printed(m->text + strlen(mark));
	}
	for (u32 i = 0; i < u.diags.messages.len; i++) { /* errors, and notes that a helper with one was called here */
		const struct message *m = &u.diags.messages.at[i];
		char *letter = letter_at(&b, m->loc);
		if (letter && (m->severity == DIAG_ERROR || m->severity == DIAG_NOTE))
			*letter = '.';
	}
	if (n == 1 && u.diags.nerrors)
		*got = '.';
	bool good = !u.diags.nerrors || n == 1 || (u.diags.nerrors <= MOST_ERRORS && !u.diags.full);
	if (o->flag && k)
		walk(k->body, look_at, &b);
	else if (o->flag && n > 1)
		good = false; /* no IR to look at */
	unit_free(&u);
	arena_free(&a);
	return good;
}

/* Those that Triton takes are one kernel, since they make few errors; others are a few at a time. */
static void evaluate_all(const struct operation *o, const char (*at)[MAX_OPERANDS + 1], u32 n, const char *helpers,
			 char *got)
{
	if (n && !evaluate(o, at, n, helpers, got)) {
		evaluate_all(o, at, n / 2, helpers, got);
		evaluate_all(o, at + n / 2, n - n / 2, helpers, got + n / 2);
	}
}

static bool is_meant(struct table *t, const struct operation *o, const char *operands, char want, char got)
{
	char letters_of[] = {want, '>', got, 0};
	bool found = false;
	for (u32 i = 0; i < t->differences.len; i++) {
		struct difference *d = &t->differences.at[i];
		if (!fnmatch(d->expression, o->expression, 0) && !fnmatch(d->operands, operands, 0) &&
		    !fnmatch(d->result, letters_of, 0)) {
			d->used++;
			found = true;
		}
	}
	return found;
}

static void check_cell(struct table *t, const struct operation *o, const char *operands, char want, char got)
{
	bool no_sign = strstr(o->expression, "==") || strstr(o->expression, "!=");
	t->cells++;
	if (o->flag == '@' && no_sign && strchr("CSIL", want))
		want = "csil"[strchr("CSIL", want) - "CSIL"];
	if (want == got)
		t->same++;
	else if (!is_meant(t, o, operands, want, got)) {
		t->wrong++;
		print_message("%s with %s: Triton gives %c, tlc %c\n", o->text, operands, want, got);
	}
}

/* Errors inside a function of helpers.py are shown once in a kernel: one combination at a time. */
static bool calls_helper(const struct operation *o)
{
	size_t name = strspn(o->expression, "abcdefghijklmnopqrstuvwxyz_");
	bool method = o->expression[name] == '.', builtin = !strncmp(o->expression, "m", 1) && name == 3; /* min, max */
	return strstr(o->expression, "combine_") || (o->expression[name] == '(' && name && !method && !builtin);
}

static void check_operation(struct table *t, const struct operation *o, const char *helpers)
{
	struct arena a = {0};
	u32 columns = o->last ? (u32)strlen(o->last) : 1, n = o->rows.len * columns, len[2] = {0};
	char(*at[2])[MAX_OPERANDS + 1], *got = arena_array(&a, char, n + 1), *want[2];
	for (int k = 0; k < 2; k++) {
		at[k] = arena_alloc(&a, (n + 1) * sizeof *at[k]);
		want[k] = arena_array(&a, char, n + 1);
	}
	for (u32 i = 0; i < n; i++) {
		char letter = o->rows.at[i / columns].results[i % columns], *operands;
		bool refused = letter == '.' || n <= AT_ONCE || strstr(o->expression, "index_");
		operands = at[refused][len[refused]];
		memcpy(operands, o->rows.at[i / columns].key, MAX_OPERANDS);
		if (o->operands)
			operands[o->operands - 1] = o->last[i % columns];
		want[refused][len[refused]++] = letter;
	}
	u32 some = calls_helper(o) ? 1 : AT_ONCE;
	evaluate_all(o, (const char(*)[MAX_OPERANDS + 1])at[0], len[0], helpers, got);
	for (u32 i = 0; i < len[0]; i++)
		check_cell(t, o, at[0][i], want[0][i], got[i]);
	for (u32 i = 0; i < len[1]; i += some)
		evaluate_all(o, (const char(*)[MAX_OPERANDS + 1])at[1] + i, MIN(some, len[1] - i), helpers, got + i);
	for (u32 i = 0; i < len[1]; i++)
		check_cell(t, o, at[1][i], want[1][i], got[i]);
	arena_free(&a);
}

static void types_of_results(void **state)
{
	(void)state;
	static struct table t;
	static const char observe[] = "\n@triton.jit\ndef kind_of(x):\n    if isinstance(x, tl.tensor):\n"
				      "        return x.type\n    else:\n"
				      "        return 'nothing' if x is None else 'constant'\n\n\n"
				      "@triton.jit\ndef observe(x):\n    tl.static_print(kind_of(x))\n\n\n";
	read_types(&t);
	read_differences(&t);
	char *helpers = read_text(&t.arena, "tests/types/helpers.py");
	strcat(helpers, observe);
	const char *only = getenv("TYPES_OF");
	for (u32 i = 0; i < t.operations.len; i++)
		if (!only || strstr(t.operations.at[i].text, only))
			check_operation(&t, &t.operations.at[i], helpers);
	for (u32 i = 0; i < t.differences.len && !only; i++)
		if (!t.differences.at[i].used) {
			t.wrong++;
			print_message("differences.txt:%d: nothing differs so\n", t.differences.at[i].line);
		}
	print_message("%u operations, %u results: %u as Triton's, %u that differ\n", t.operations.len, t.cells, t.same,
		      t.cells - t.same);
	arena_free(&t.arena);
	assert_int_equal(t.wrong, 0);
	assert_true(only || t.cells > 60000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(types_of_results)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
