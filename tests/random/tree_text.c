/* Random trees as text. */
#include "tree.h"

struct printer {
	FILE *f;
	const struct tree *t;
	int depth;
};

static void line(struct printer *o)
{
	fprintf(o->f, "\n%*s", 4 * o->depth, "");
}

static void constant(struct printer *o, const struct expr *x, int64_t value)
{
	char shape[16] = "()";
	if (x->tile)
		snprintf(shape, sizeof shape, "(%d,)", o->t->lanes);
	if (x->t == TL_I1)
		fprintf(o->f, "tl.full(%s, %d, tl.int1)", shape, value != 0);
	else if (x->t == TL_U64)
		fprintf(o->f, "tl.full(%s, %llu, tl.uint64)", shape, (unsigned long long)value);
	else
		fprintf(o->f, "tl.full(%s, %lld, %s)", shape, (long long)value, type_names[x->t]);
}

static const char *const symbols[] = {
	[ADD] = "+",  [SUB] = "-",  [MUL] = "*", [DIV] = "//", [REM] = "%", [AND] = "&", [OR] = "|",  [XOR] = "^",
	[SHL] = "<<", [SHR] = ">>", [LT] = "<",  [LE] = "<=",  [GT] = ">",  [GE] = ">=", [EQ] = "==", [NE] = "!="};

static void expression(struct printer *o, int k);

static void second(struct printer *o, const struct expr *x)
{
	if (x->literal) {
		fprintf(o->f, "%lld", (long long)x->value);
		return;
	}
	tl_dtype t = o->t->expr[x->in[1]].t;
	bool divides = x->op == DIV || x->op == REM, shifts = x->op == SHL || x->op == SHR;
	fprintf(o->f, divides || shifts ? "((" : "");
	expression(o, x->in[1]);
	if (shifts)
		fprintf(o->f, " & %d))", bits_of(t) - 1);
	else if (divides)
		fprintf(o->f, is_signed(t) && x->in[1] % 2 ? " & 7) - 9)" : " & 7) + 1)");
}

static void load(struct printer *o, const struct expr *x)
{
	tl_dtype it = o->t->expr[x->in[0]].t;
	fprintf(o->f,
		x->value == 2 ? "tl.load((in%d + %d) + (("
		: x->value    ? "tl.load(in%d + "
			      : "tl.load(in%d + (",
		type_index(x->t), LEN / 2);
	expression(o, x->in[0]);
	if (x->value != 1) {
		fprintf(o->f, x->value ? " & %d) - %d))" : " & %d))", LEN - 1, LEN / 2);
		return;
	}
	fprintf(o->f, ", mask=(");
	expression(o, x->in[0]);
	fprintf(o->f, " < %d)", LEN);
	if (is_signed(it)) {
		fprintf(o->f, " & (");
		expression(o, x->in[0]);
		fprintf(o->f, " >= 0)");
	}
	fprintf(o->f, ", other=7)");
}

static void call1(struct printer *o, const char *before, int x, const char *after)
{
	fprintf(o->f, "%s", before);
	expression(o, x);
	fprintf(o->f, "%s", after);
}

static void joined(struct printer *o, const char *const *parts, const struct expr *x)
{
	for (int i = 0; i < 3; i++) {
		fprintf(o->f, "%s", parts[i]);
		expression(o, x->in[i]);
	}
	fprintf(o->f, ")");
}

static void whole_tile(struct printer *o, const struct expr *x)
{
	static const char *const reductions[] = {[SUM] = "tl.sum(",
						 [LARGE] = "tl.max(",
						 [SMALL] = "tl.min(",
						 [XOR_SUM] = "tl.xor_sum(",
						 [PRODUCT] = "tl.reduce("};
	if (x->op == SCAN)
		call1(o, "tl.associative_scan(", x->in[0], x->value == LARGE ? ", 0, larger)" : ", 0, product)");
	else
		call1(o, reductions[x->value], x->in[0], x->value == PRODUCT ? ", 0, product)" : ", 0)");
}

static void expression(struct printer *o, int k)
{
	const struct expr *x = &o->t->expr[k];
	char text[40];
	if (x->dead) {
		constant(o, x, 0);
		return;
	}
	switch (x->op) {
	case FULL: constant(o, x, x->value); break;
	case RANGE: fprintf(o->f, "tl.arange(0, %d)", o->t->lanes); break;
	case PID: fprintf(o->f, "tl.program_id(0)"); break;
	case SCALAR: /* an argument that is 1 is a constant of Python's, whose // floors */
		fprintf(o->f, o->t->arg[x->value] == 1 ? "tl.cast(a%lld, tl.int32)" : "a%lld", (long long)x->value);
		break;
	case VAR: fprintf(o->f, "v%lld", (long long)x->value); break;
	case LOAD: load(o, x); break;
	case NEG: call1(o, "(-", x->in[0], ")"); break;
	case NOT: call1(o, "(~", x->in[0], ")"); break;
	case ABS: call1(o, "tl.abs(", x->in[0], ")"); break;
	case CAST:
		snprintf(text, sizeof text, ", %s)", type_names[x->t]);
		call1(o, "tl.cast(", x->in[0], text);
		break;
	case HINTED:
		snprintf(text, sizeof text, " & -16) + tl.arange(0, %d), 16), 16)", o->t->lanes);
		call1(o, "tl.max_contiguous(tl.multiple_of((", x->in[0], text);
		break;
	case MIN:
	case MAX:
		call1(o, x->op == MIN ? "tl.minimum(" : "tl.maximum(", x->in[0], ", ");
		second(o, x);
		fprintf(o->f, ")");
		break;
	case WHERE: joined(o, (const char *[]){"tl.where(", ", ", ", "}, x); break;
	case CHOOSE:
		call1(o, "(", x->in[1], " if ");
		call1(o, "", x->in[0], " else ");
		call1(o, "", x->in[2], ")");
		break;
	case CHAIN:
		call1(o, "(", x->in[0], " ");
		call1(o, symbols[LT + x->value / 4], x->in[1], " ");
		call1(o, symbols[LT + x->value % 4], x->in[2], ")");
		break;
	case REDUCE:
	case SCAN: whole_tile(o, x); break;
	default:
		call1(o, "(", x->in[0], " ");
		fprintf(o->f, "%s ", symbols[x->op]);
		second(o, x);
		fprintf(o->f, ")");
	}
}

/* --- statements ---------------------------------------------------------------------------------------------- */

static void block(struct printer *o, int k);

static void body(struct printer *o, int k)
{
	o->depth++;
	line(o);
	fprintf(o->f, "pass");
	block(o, k);
	o->depth--;
}

static void otherwise(struct printer *o, const struct stmt *s)
{
	if (s->other < 0)
		return;
	line(o);
	fprintf(o->f, "else:");
	body(o, s->other);
}

static void count(struct printer *o, const struct stmt *s)
{
	/* The index of an unrolled loop is a constant. It has a name of this loop only, since a run-time loop around
	 * two such loops may not change it. */
	bool unrolled = s->form == 3;
	int index = unrolled ? (int)(s - o->t->stmt) : s->var;
	fprintf(o->f, "for %c%d in %s(", unrolled ? 'n' : s->kept ? 'v' : 'i', index,
		s->form == 2 ? "tl.range" : s->form == 3 ? "tl.static_range" : "range");
	if (s->e[0] < 0) {
		fprintf(o->f, "%d):", s->n);
	} else {
		expression(o, s->e[0]);
		fprintf(o->f, s->form == 4 ? " + %d, " : ", ", s->n);
		expression(o, s->e[0]);
		fprintf(o->f, s->form == 4 ? ", -1):" : " + %d, %d", s->n, s->step);
		if (s->form != 4)
			fprintf(o->f, s->form == 2 ? ", num_stages=%d, loop_unroll_factor=%d):" : "):", 1 + s->n % 3,
				1 + (s->n + s->step) % 4);
	}
	o->depth++;
	line(o);
	if (unrolled || !s->kept)
		fprintf(o->f, unrolled ? "v%d = tl.full((), n%d, tl.int32)" : "v%d = i%d", s->var, index);
	else
		fprintf(o->f, "pass");
	o->depth--;
	body(o, s->body);
	otherwise(o, s);
}

static void rounds(struct printer *o, const struct stmt *s)
{
	fprintf(o->f, "for r in tl.static_range(%d):", s->n);
	o->depth++;
	line(o);
	fprintf(o->f, "v%d, v%d = v%d, v%d + (((v%d << 4) + r) ^ (v%d >> 5))", s->var, s->second, s->second, s->var,
		s->second, s->second);
	o->depth--;
}

static void write_out(struct printer *o, const struct stmt *s)
{
	bool tile = o->t->var[s->var].tile;
	fprintf(o->f, "tl.store(o%d + ", s->form);
	fprintf(o->f, tile ? "(tl.program_id(0) * %d + tl.arange(0, %d))" : "tl.program_id(0)", o->t->lanes,
		o->t->lanes);
	fprintf(o->f, ", v%d", s->var);
	if (s->e[0] >= 0)
		call1(o, ", mask=", s->e[0], "");
	fprintf(o->f, ")");
}

static void statement(struct printer *o, const struct stmt *s)
{
	switch (s->kind) {
	case SET:
		fprintf(o->f, "v%d = ", s->var);
		expression(o, s->e[0]);
		break;
	case CALL:
		fprintf(o->f, "v%d, v%d = ", s->var, s->second);
		if (s->form >= 0)
			fprintf(o->f, "helper%d", s->form);
		fprintf(o->f, "(");
		expression(o, s->e[0]);
		call1(o, ", ", s->e[1], ")");
		break;
	case WHEN:
		call1(o, "if ", s->e[0], ":");
		body(o, s->body);
		otherwise(o, s);
		break;
	case COUNT_UP: count(o, s); break;
	case LOOP_WHILE:
		fprintf(o->f, "v%d = tl.full((), 0, tl.int32)", s->var);
		line(o);
		fprintf(o->f, "while (v%d < %d) & ", s->var, s->n);
		call1(o, "", s->e[0], ":");
		o->depth++;
		line(o);
		fprintf(o->f, "v%d += 1", s->var);
		o->depth--;
		body(o, s->body);
		otherwise(o, s);
		break;
	case PROMISE:
		fprintf(o->f, "if (v%d & %d) == 0:", s->var, s->n - 1);
		o->depth++;
		line(o);
		fprintf(o->f, "v%d = tl.multiple_of(v%d, %d)", s->var, s->var, s->n);
		o->depth--;
		body(o, s->body);
		break;
	case ASSUME:
		call1(o, "if ", s->e[0], ":");
		o->depth++;
		line(o);
		call1(o, "tl.assume(", s->e[0], ")");
		o->depth--;
		body(o, s->body);
		break;
	case ROUNDS: rounds(o, s); break;
	case JUMP:
		fprintf(o->f, s->form == OUT ? "break" : s->form == TO_NEXT ? "continue" : "return ");
		if (s->e[0] >= 0) {
			expression(o, s->e[0]);
			call1(o, ", ", s->e[1], "");
		}
		break;
	case WRITE: write_out(o, s); break;
	}
}

static void block(struct printer *o, int k)
{
	for (; k >= 0; k = o->t->stmt[k].next)
		if (!o->t->stmt[k].dead) {
			line(o);
			statement(o, &o->t->stmt[k]);
		}
}

static bool helper_is_called(const struct tree *t, int helper)
{
	for (int k = 0; k < t->nstmts; k++)
		if (t->stmt[k].kind == CALL && !t->stmt[k].dead && t->stmt[k].form == helper)
			return true;
	return false;
}

char *tree_text(const struct tree *t)
{
	char *text = NULL;
	size_t len;
	struct printer o = {.f = open_memstream(&text, &len), .t = t, .depth = 1};
	fprintf(o.f, "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef larger(a, b):\n    return "
		     "tl.maximum(a, b)\n\n\n"
		     "@triton.jit\ndef product(a, b):\n    return a * b\n");
	for (int k = 0; k < t->nhelpers; k++) {
		if (!helper_is_called(t, k))
			continue;
		const struct helper *h = &t->helper[k];
		fprintf(o.f, "\n\n@triton.jit\ndef helper%d(v%d, v%d):", k, h->param[0], h->param[1]);
		block(&o, h->body);
		line(&o);
		call1(&o, "return ", h->result[0], ", ");
		expression(&o, h->result[1]);
		fprintf(o.f, "\n");
	}
	fprintf(o.f, "\n\n@triton.jit\ndef kernel(");
	for (int k = 0; k < INT_TYPES; k++)
		fprintf(o.f, "in%d, ", k);
	for (int k = 0; k < t->nargs; k++)
		fprintf(o.f, "a%d, ", k);
	for (int k = 0; k < t->nouts; k++)
		fprintf(o.f, "o%d%s", k, k + 1 < t->nouts ? ", " : "");
	fprintf(o.f, "):\n    pass");
	block(&o, t->body);
	fprintf(o.f, "\n");
	fclose(o.f);
	return text;
}
