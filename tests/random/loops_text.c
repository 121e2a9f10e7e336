/* Random nests of loops: the text. */
#include "loops.h"

static void print_literal(FILE *f, tl_dtype t, int64_t v)
{
	if (t == TL_U64)
		fprintf(f, "%llu", (unsigned long long)v);
	else
		fprintf(f, v < 0 ? "(%lld)" : "%lld", (long long)v);
}

static void print_typed(FILE *f, tl_dtype t, int64_t v)
{
	fprintf(f, "tl.cast(");
	print_literal(f, t, v);
	fprintf(f, ", %s)", type_names[t]);
}

static void print_number(FILE *f, const struct loops *l, int k)
{
	if (l->number[k].form == LITERAL)
		print_literal(f, l->number[k].t, l->number[k].value);
	else
		fprintf(f, "m%d", k);
}

static void define_number(FILE *f, const struct loops *l, int k)
{
	const struct loop_number *x = &l->number[k];
	if (x->form == LITERAL)
		return;
	fprintf(f, "    m%d = ", k);
	switch (x->form) {
	case TYPED: print_typed(f, x->t, x->value); break;
	case ARGUMENT: fprintf(f, "a%d", k); break;
	case FROM_MEMORY: fprintf(f, "tl.load(q%d)", k); break;
	case BETWEEN:
		fprintf(f, "tl.minimum(tl.maximum(tl.load(q%d), ", k);
		print_typed(f, x->t, x->low);
		fprintf(f, "), ");
		print_typed(f, x->t, x->high);
		fprintf(f, ")");
		break;
	default: fprintf(f, "a%d + ", k); print_literal(f, x->t, x->high);
	}
	fprintf(f, "\n");
}

/* scale · index + shift + arange, a row of LANES or SIDE elements, against the bound. */
static void print_mask(FILE *f, const struct loops *l, const struct loop_statement *s, int lanes)
{
	static const char *const names[] = {"<", "<=", ">", ">="}, *const turned[] = {">", ">=", "<", "<="};
	const struct loop_mask *m = &s->mask;
	char *left = NULL;
	size_t len;
	FILE *g = open_memstream(&left, &len);
	fprintf(g, "i%d", s->loop);
	if (m->scale != 1)
		fprintf(g, " * %d", m->scale);
	if (m->shift)
		fprintf(g, " + %d", m->shift);
	fprintf(g, " + tl.arange(0, %d)", lanes);
	fclose(g);
	fprintf(f, "(");
	if (m->mirrored) {
		print_number(f, l, m->bound);
		fprintf(f, " %s %s)", turned[m->op - LT], left);
	} else {
		fprintf(f, "%s %s ", left, names[m->op - LT]);
		print_number(f, l, m->bound);
		fprintf(f, ")");
	}
	free(left);
}

/* The distance of each index from its loop's first one, or the number of iterations so far. */
static void print_offset(FILE *f, const struct loops *l, const struct loop_statement *s, int scale)
{
	if (!s->by_distance) {
		fprintf(f, "c%d * %d", s->loop, scale);
		return;
	}
	for (int k = s->loop; k >= 0; k = l->loop[k].parent) {
		const struct loop_nest *x = &l->loop[k];
		if (x->down) {
			fprintf(f, "(");
			print_number(f, l, x->upper);
			fprintf(f, " - i%d)", k);
		} else {
			fprintf(f, "(i%d - ", k);
			print_number(f, l, x->lower);
			fprintf(f, ")");
		}
		fprintf(f, " * %d%s", scale, x->parent >= 0 ? " + " : "");
	}
}

static void print_loop(FILE *f, const struct loops *l, int k, const char *indent)
{
	const struct loop_nest *x = &l->loop[k];
	fprintf(f, "%sfor i%d in %s(", indent, k, x->tl_range ? "tl.range" : "range");
	print_number(f, l, x->down ? x->upper : x->lower);
	fprintf(f, ", ");
	print_number(f, l, x->down ? x->lower : x->upper);
	if (x->step >= 0) {
		fprintf(f, x->down ? ", -" : ", ");
		print_number(f, l, x->step);
	}
	if (x->stages)
		fprintf(f, ", num_stages=%d", x->stages);
	if (x->unroll)
		fprintf(f, ", loop_unroll_factor=%d", x->unroll);
	if (x->flatten)
		fprintf(f, ", flatten=True");
	fprintf(f, "):\n%s    c%d += 1\n", indent, k);
}

static void print_load(FILE *f, const struct loops *l, const struct loop_statement *s)
{
	fprintf(f, "tl.load(p + ");
	print_offset(f, l, s, 1);
	fprintf(f, " + tl.arange(0, %d)", LANES);
	if (s->masked) {
		fprintf(f, ", mask=");
		print_mask(f, l, s, LANES);
		fprintf(f, ", other=%d", s->constant);
	}
	fprintf(f, ")");
}

static void print_rows(FILE *f, const struct loops *l, const struct loop_statement *s)
{
	fprintf(f, "rows += tl.load(p + ");
	print_offset(f, l, s, 1);
	fprintf(f, " + tl.arange(0, %d)[:, None] * 64 + tl.arange(0, %d)[None, :]", ROWS, LANES);
	if (s->masked) {
		fprintf(f, ", mask=(tl.arange(0, %d)[:, None] < %d) & ", ROWS, s->constant % (ROWS + 1));
		print_mask(f, l, s, LANES);
		fprintf(f, "[None, :], other=0");
	}
	fprintf(f, ")\n");
}

static void print_dot(FILE *f, const struct loops *l, const struct loop_statement *s)
{
	for (int k = 0; k < 2; k++) {
		fprintf(f, k ? ", " : "dots += tl.dot(");
		fprintf(f, "tl.load(%c + ", k ? 'b' : 'a');
		print_offset(f, l, s, SIDE);
		fprintf(f, " + tl.arange(0, %d)[:, None] * %d + tl.arange(0, %d)[None, :]", SIDE, SIDE, SIDE);
		if (s->masked) {
			fprintf(f, ", mask=");
			print_mask(f, l, s, SIDE);
			fprintf(f, "[%s], other=0", k ? ":, None" : "None, :");
		}
		fprintf(f, ")");
	}
	fprintf(f, ")\n");
}

static void print_statement(FILE *f, const struct loops *l, int k, const char *indent)
{
	const struct loop_statement *s = &l->statement[k];
	fprintf(f, "%s", indent);
	switch (s->kind) {
	case L_COUNT: fprintf(f, "count += %d\n", s->constant); break;
	case L_MIX: fprintf(f, "mix = mix * 31 + i%d.to(tl.int32)\n", s->loop); break;
	case L_WIDE: fprintf(f, "wide = wide * 5 + i%d.to(tl.int64)\n", s->loop); break;
	case L_OWN: fprintf(f, "own%d = (own%d ^ i%d) + i%d\n", s->loop, s->loop, s->loop, s->loop); break;
	case L_GROW: fprintf(f, "grow += %d\n%smix ^= grow\n", s->constant, indent); break;
	case L_MASKS:
		fprintf(f, "count += tl.sum(");
		print_mask(f, l, s, LANES);
		fprintf(f, ".to(tl.int32))\n");
		break;
	case L_LOAD:
		fprintf(f, "acc += ");
		print_load(f, l, s);
		fprintf(f, "\n");
		break;
	case L_LOAD_ROWS: print_rows(f, l, s); break;
	case L_STORE:
		fprintf(f, "tl.store(o%d + c%d * %d + tl.arange(0, %d), acc + mix", k, s->loop, LANES, LANES);
		if (s->masked) {
			fprintf(f, ", mask=");
			print_mask(f, l, s, LANES);
		}
		fprintf(f, ")\n");
		break;
	case L_DOT: print_dot(f, l, s); break;
	case L_NEST:
		fprintf(f, "for t in range(c%d %% 3):\n", s->loop);
		fprintf(f, "%s    sum = %d\n", indent, s->constant);
		fprintf(f, "%s    for u in range(c%d %% 4 + 1):\n", indent, s->loop);
		fprintf(f, "%s        sum += u\n%s        acc += sum\n", indent, indent);
		break;
	default: fprintf(f, "if i%d %% 2 == 0:\n%s    mix += %d\n", s->loop, indent, s->constant); break;
	}
}

static void print_body(FILE *f, const struct loops *l)
{
	char indent[64] = "    ";
	for (int k = 0; k < l->n; k++) {
		const struct loop_statement *s = &l->statement[k];
		if (s->kind == L_END)
			indent[strlen(indent) - 4] = 0;
		else if (s->kind == L_FOR && s->dead)
			while (l->statement[k].kind != L_END || l->statement[k].loop != s->loop)
				k++;
		else if (s->kind == L_FOR)
			print_loop(f, l, s->loop, indent), strcat(indent, "    ");
		else if (!s->dead)
			print_statement(f, l, k, indent);
	}
}

char *loops_text(const struct loops *l)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	fprintf(f, "import triton\nimport triton.language as tl\n\n@triton.jit\ndef kernel(");
	for (int k = 0; k < l->nnumbers; k++)
		if (l->number[k].array)
			fprintf(f, "q%d, ", k);
		else if (l->number[k].form == ARGUMENT || l->number[k].form == SUM_OF_TWO)
			fprintf(f, "a%d, ", k);
	for (int k = 0; k < l->n; k++)
		if (l->statement[k].array)
			fprintf(f, "o%d, ", k);
	fprintf(f, "p, a, b, out, wide_out, own_out, acc_out, rows_out, dots_out):\n");
	for (int k = 0; k < l->nnumbers; k++)
		define_number(f, l, k);
	fprintf(f, "    sum = 0\n    count = 0\n    mix = 1\n    grow = -3\n    wide = tl.cast(0, tl.int64)\n");
	for (int k = 0; k < l->nloops; k++)
		fprintf(f, "    c%d = -1\n    own%d = tl.cast(0, %s)\n", k, k, type_names[l->loop[k].t]);
	fprintf(f, "    acc = tl.zeros((%d,), tl.int32)\n    rows = tl.zeros((%d, %d), tl.int32)\n", LANES, ROWS,
		LANES);
	fprintf(f, "    dots = tl.zeros((%d, %d), tl.float32)\n", SIDE, SIDE);
	print_body(f, l);
	fprintf(f, "    tl.store(out, count)\n    tl.store(out + 1, mix)\n    tl.store(out + 2, grow)\n");
	fprintf(f, "    tl.store(wide_out, wide)\n    tl.store(acc_out + tl.arange(0, %d), acc)\n", LANES);
	for (int k = 0; k < l->nloops; k++)
		fprintf(f, "    tl.store(own_out + %d, own%d.to(tl.int64))\n    tl.store(out + %d, c%d)\n", k, k, 3 + k,
			k);
	fprintf(f, "    tl.store(rows_out + tl.arange(0, %d)[:, None] * %d + tl.arange(0, %d)[None, :], rows)\n", ROWS,
		LANES, LANES);
	fprintf(f, "    tl.store(dots_out + tl.arange(0, %d)[:, None] * %d + tl.arange(0, %d)[None, :], dots)\n", SIDE,
		SIDE, SIDE);
	fclose(f);
	return text;
}
