/* Random kernels of tuples and objects as text. */
#include "values.h"

static void print_zero(FILE *f, const struct values *d, int type)
{
	const struct value_type *t = &d->type[type];
	if (type < 2) {
		fprintf(f, type ? "none" : "zero");
		return;
	}
	fprintf(f, t->kind == TUPLE ? "(" : "C%d(", type);
	for (int i = 0; i < t->n; i++) {
		print_zero(f, d, t->field[i]);
		fprintf(f, ", ");
	}
	fprintf(f, ")");
}

static void print_x(FILE *f, const struct values *d, int k);

static void print_all(FILE *f, const struct values *d, const struct expression *x, int from, const char *keyword)
{
	for (int i = from; i < x->n; i++) {
		if (keyword && i)
			fprintf(f, "%s%d=", keyword, i);
		print_x(f, d, x->in[i]);
		fprintf(f, ", ");
	}
}

static void print_call(FILE *f, const struct values *d, const struct expression *x)
{
	const struct function *to = &d->f[x->value];
	fprintf(f, "f%d(", x->value);
	for (int i = 0; i < x->n; i++) {
		const struct expression *y = &d->x[x->in[i]];
		bool rest = to->variadic && i == x->n - 1;
		if (rest && y->kind == X_MAKE) {
			print_all(f, d, y, 0, NULL);
			continue;
		}
		fprintf(f, rest ? "*" : "");
		print_x(f, d, x->in[i]);
		fprintf(f, ", ");
	}
	fprintf(f, ")");
}

static void print_operation(FILE *f, const struct values *d, const struct expression *x)
{
	static const char *const names[] = {
		[ADD] = "+",  [SUB] = "-", [MUL] = "*", [AND] = "&", [OR] = "|",  [XOR] = "^", [MIN] = ", ",
		[MAX] = ", ", [LT] = "<",  [LE] = "<=", [GT] = ">",  [GE] = ">=", [EQ] = "==", [NE] = "!="};
	bool function = x->value == MIN || x->value == MAX;
	fprintf(f, function ? "tl.%s(" : "(", x->value == MIN ? "minimum" : "maximum");
	print_x(f, d, x->in[0]);
	fprintf(f, function ? "%s" : " %s ", names[x->value]);
	print_x(f, d, x->in[1]);
	fprintf(f, ")");
}

/* The number in one of the ways in which it can be computed at compile time. */
static void print_constant(FILE *f, int v, int way)
{
	int q = v / SEVEN - (v % SEVEN < 0);
	switch (way) {
	case 1: fprintf(f, "(SEVEN * %d + %d)", q, v - SEVEN * q); break;
	case 2: fprintf(f, "(%d // SEVEN)", v * SEVEN + 3); break;
	case 3: fprintf(f, "(%d if SEVEN > 3 and not None else \"other\")", v); break;
	case 4: fprintf(f, "numbers(%d)[%d]", v, v < 0 ? 0 : v); break;
	case 5: fprintf(f, "[j - 20 for j in range(41) if j >= %d][0]", v + 20); break;
	default: fprintf(f, "%d", v);
	}
}

/* Parts of an expression between texts. */
static void print_parts(FILE *f, const struct values *d, const struct expression *x, const char *const *texts,
			const int *order)
{
	for (int i = 0; i < x->n; i++) {
		fprintf(f, "%s", texts[i]);
		print_x(f, d, x->in[order[i]]);
	}
	fprintf(f, "%s", texts[x->n]);
}

static void print_x(FILE *f, const struct values *d, int k)
{
	const struct expression *x = &d->x[k];
	const struct value_type *t = &d->type[x->type];
	static const int straight[] = {0, 1, 2}, chosen[] = {1, 0, 2};
#define PARTS(order, ...) print_parts(f, d, x, (const char *const[]){__VA_ARGS__}, order)
	switch (x->kind) {
	case X_ZERO: print_zero(f, d, x->type); break;
	case X_LITERAL:
		fprintf(f, x->type ? "(none + " : "(zero + ");
		print_constant(f, x->value, k % 6);
		fprintf(f, ")");
		break;
	case X_VARIABLE: fprintf(f, "v%d", x->value); break;
	case X_FIELD:
		print_x(f, d, x->in[0]);
		fprintf(f, d->type[d->x[x->in[0]].type].kind == TUPLE ? "[%d]" : ".m%d", x->value);
		break;
	case X_BINARY:
	case X_COMPARE: print_operation(f, d, x); break;
	case X_CHOOSE: PARTS(chosen, "(", " if ", " else ", ")"); break;
	case X_MAKE:
		if (t->kind == TUPLE)
			fprintf(f, "(");
		else
			fprintf(f, "C%d(", x->type);
		print_all(f, d, x, 0, t->kind != TUPLE && x->flag ? "m" : NULL);
		fprintf(f, ")");
		break;
	case X_CALL: print_call(f, d, x); break;
	case X_PLUS: PARTS(straight, "", ".plus(", ")"); break;
	case X_CAPPED: PARTS(straight, "", ".capped(", ")"); break;
	case X_ADD: PARTS(straight, "(", " + ", ")"); break;
	case X_REPLACE:
		fprintf(f, "tl.aggregate_replace(");
		print_x(f, d, x->in[0]);
		fprintf(f, ", m%d=", x->value);
		print_x(f, d, x->in[1]);
		fprintf(f, ")");
		break;
	case X_EACH:
		if (k % 3 == 0) {
			fprintf(f, "listed(%d, *", x->value);
			print_x(f, d, x->in[0]);
			fprintf(f, ")");
			break;
		}
		fprintf(f, "tl.tuple([e%d * %d + 1 for e%d in ", k, x->value, k);
		print_x(f, d, x->in[0]);
		fprintf(f, x->flag ? "])" : " if True])");
		break;
	case X_TOTAL: PARTS(straight, "total(*", ")"); break;
	case X_SUM: PARTS(straight, "tl.sum(", ", 0)"); break;
	case X_BOTH: PARTS(straight, "(", x->value ? " and " : " or ", ")"); break;
	case X_NOT: PARTS(straight, "(not ", ")"); break;
	}
#undef PARTS
}

static void print_class(FILE *f, const struct values *d, int k)
{
	const struct value_type *t = &d->type[k];
	bool object = t->kind == OBJECT;
	if (t->kind < NAMED)
		return;
	fprintf(f, object ? "@triton.language.core._aggregate\nclass C%d:\n" : "class C%d(NamedTuple):\n", k);
	for (int i = 0; i < t->n; i++) {
		const struct value_type *u = &d->type[t->field[i]];
		fprintf(f,
			u->kind == OBJECT ? "    m%d: C%d\n"
			: u->kind < TUPLE ? "    m%d: tl.tensor\n"
					  : "    m%d: tl.tuple\n",
			i, t->field[i]);
	}
	for (int way = 0; way < 2 && object; way++) {
		fprintf(f,
			way ? "\n    @triton.jit\n    def __add__(self, other):\n        return C%d(self.m0 - "
			      "other.m0, "
			    : "\n    @triton.jit\n    def plus(self, by):\n        return C%d(self.m0 + by, ",
			k);
		for (int i = 1; i < t->n; i++)
			fprintf(f, way ? "other.m%d, " : "self.m%d, ", i);
		fprintf(f, ")\n");
	}
	if (object)
		fprintf(f, "\n    @triton.jit\n    def capped(self, most):\n        if self.m0 > most:\n            "
			   "return most\n"
			   "        return self.m0\n");
	fprintf(f, "\n\n");
}

static void print_s(FILE *f, const struct values *d, int k, int *depth)
{
	const struct statement *s = &d->s[k];
	if (s->kind == V_END || s->kind == V_ELSE) {
		fprintf(f, "%*spass\n", 4 * *depth, "");
		--*depth;
		if (s->kind == V_END)
			return;
	}
	int indent = 4 * *depth;
	fprintf(f, "%*s", indent, "");
	switch (s->kind) {
	case V_FOR: fprintf(f, "for v%d in range(", s->var[0]); break;
	case V_WHILE:
		fprintf(f, "v%d = zero\n%*swhile v%d < %d:\n%*sv%d += 1\n", s->var[0], indent, "", s->var[0], s->trips,
			indent + 4, "", s->var[0]);
		break;
	case V_UNROLLED:
		fprintf(f, "for w%d in tl.static_range(%d):\n%*sv%d = zero + w%d\n", s->var[0], s->trips, indent + 4,
			"", s->var[0], s->var[0]);
		break;
	case V_EACH: fprintf(f, "for v%d in ", s->var[0]); break;
	case V_IF: fprintf(f, "if "); break;
	case V_ELSE: fprintf(f, "else:\n"); break;
	case V_BREAK: fprintf(f, "break\n"); break;
	case V_CONTINUE: fprintf(f, "continue\n"); break;
	case V_RETURN: fprintf(f, "return "); break;
	case V_UNPACK:
		for (int i = 0; i < s->n; i++)
			fprintf(f, "v%d, ", s->var[i]);
		fprintf(f, "= ");
		break;
	default: fprintf(f, "v%d = ", s->var[0]);
	}
	bool has_x = s->kind <= V_FOR || s->kind == V_EACH || s->kind == V_IF || s->kind == V_RETURN;
	if (has_x)
		print_x(f, d, s->e);
	if (has_x)
		fprintf(f,
			s->kind == V_FOR                       ? " & %d):\n"
			: s->kind == V_EACH || s->kind == V_IF ? ":\n"
							       : "\n",
			s->trips);
	*depth += opens_block(s->kind) || s->kind == V_ELSE;
}

static void print_function(FILE *f, const struct values *d, int k)
{
	const struct function *to = &d->f[k];
	int depth = 1;
	bool kernel = k == FUNCTIONS - 1;
	fprintf(f, "@triton.jit\ndef ");
	fprintf(f, kernel ? "kernel(out, " : "f%d(", k);
	for (int i = 0; i < to->nparams; i++)
		fprintf(f, to->variadic && i == to->nparams - 1 ? "*v%d" : "v%d, ", to->param[i]);
	for (int i = 0; kernel && i < d->ngiven; i++)
		fprintf(f, "v%d, ", d->given[i]);
	fprintf(f, "):\n    zero = tl.program_id(1)\n    none = tl.arange(0, %d) * 0\n", LANES);
	for (int i = to->from; i < to->to; i++)
		if (!d->s[i].dead)
			print_s(f, d, i, &depth);
}

static void print_stores(FILE *f, const struct values *d, int type, char *path, int *leaf)
{
	const struct value_type *t = &d->type[type];
	size_t len = strlen(path);
	if (type < 2) {
		fprintf(f, type ? "    tl.store(out + %d + tl.arange(0, 16), %s)\n" : "    tl.store(out + %d, %s)\n",
			*leaf * LANES, path);
		++*leaf;
	}
	for (int i = 0; i < t->n; i++) {
		sprintf(path + len, t->kind == TUPLE ? "[%d]" : ".m%d", i);
		print_stores(f, d, t->field[i], path, leaf);
	}
	path[len] = 0;
}

char *values_text(const struct values *d)
{
	char *text = NULL, path[200];
	size_t len;
	int leaf = 0;
	FILE *f = open_memstream(&text, &len);
	fprintf(f, "from typing import NamedTuple\n\nimport triton\nimport triton.language as tl\n\n\n");
	for (int k = 0; k < d->ntypes; k++)
		print_class(f, d, k);
	fprintf(f,
		"SEVEN = tl.constexpr(%d)\n\n\n@triton.constexpr_function\ndef numbers(n):\n    xs = [min(n, 0)]\n"
		"    while xs[-1] < n:\n        xs.append(xs[-1] + 1)\n    return xs\n\n\n",
		SEVEN);
	fprintf(f, "@triton.jit\ndef listed(by: tl.constexpr, *xs):\n    ys = [xs[0] * by + 1]\n    for x in xs[1:]:\n"
		   "        ys.append(x * by + 1)\n    return tl.tuple(ys)\n\n\n");
	fprintf(f, "@triton.jit\ndef total(*xs):\n    s = xs[0]\n    for x in xs[1:]:\n        s += x\n    return "
		   "s\n\n\n");
	for (int k = 0; k < FUNCTIONS; k++) {
		print_function(f, d, k);
		fprintf(f, k < FUNCTIONS - 1 ? "\n\n" : "");
	}
	for (int i = 0; i < d->nvisible; i++) {
		sprintf(path, "v%d", d->visible[i]);
		print_stores(f, d, d->var[d->visible[i]], path, &leaf);
	}
	fclose(f);
	return text;
}
