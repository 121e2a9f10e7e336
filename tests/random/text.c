/* Random kernels as text. */
#include "moves.h"

const char *const type_names[] = {"tl.int1",     "tl.int8",       "tl.int16",    "tl.int32",
				  "tl.int64",    "tl.uint8",      "tl.uint16",   "tl.uint32",
				  "tl.uint64",   "tl.float8e4nv", "tl.float8e5", "tl.float16",
				  "tl.bfloat16", "tl.float32",    "tl.float64",  "tl.float8e4b15"};

struct printer {
	FILE *f;
	const struct program *p;
	int depth;
};

static void line(struct printer *o)
{
	fprintf(o->f, "\n%*s", 4 * (o->depth + 1), "");
}

static const char *num(char *text, struct number n)
{
	sprintf(text, n.param < 0 ? "%lld" : "p%lld", n.param < 0 ? (long long)n.value : (long long)n.param);
	return text;
}

static void shape(struct printer *o, int rank, const int *dims)
{
	for (int d = 0; d < rank; d++)
		fprintf(o->f, "%s%d", d ? ", " : "(", dims[d]);
	fprintf(o->f, rank == 1 ? ",)" : ")");
}

static void axes(struct printer *o, int rank, int axis, const char *on, const char *off)
{
	for (int d = 0; rank > 1 && d < rank; d++)
		fprintf(o->f, "%s%s", d ? ", " : "[", d == axis ? on : off);
	fprintf(o->f, rank > 1 ? "]" : "");
}

/* --- places -------------------------------------------------------------------------------------------------- */

static void coordinate(struct printer *o, int rank, int axis, int n)
{
	fprintf(o->f, "tl.arange(0, %d)", n);
	axes(o, rank, axis, ":", "None");
}

static void times(struct printer *o, struct number n)
{
	char text[32];
	if (n.param >= 0 || n.value != 1)
		fprintf(o->f, " * %s", num(text, n));
}

/* " + variable * n" where that is not 0. */
static void term(struct printer *o, struct number n, const char *variable)
{
	if (n.param < 0 && !n.value)
		return;
	fprintf(o->f, " + %s", variable);
	times(o, n);
}

static void offset_text(struct printer *o, const struct node *v, bool loop)
{
	const struct place *at = &v->place;
	char text[32], name[32];
	fprintf(o->f, "p%d", o->p->memory[at->memory].param);
	if (at->base.param >= 0 || at->base.value)
		fprintf(o->f, " + %s", num(text, at->base));
	term(o, at->program, at->wide ? "pid.to(tl.int64)" : "pid");
	if (loop && at->loop >= 0 && snprintf(name, sizeof name, "i%d", at->loop))
		term(o, at->step, name);
	if (at->index >= 0) {
		fprintf(o->f, " + (v%d & %d)", at->index, at->range - 1);
		times(o, at->stride[0]);
		return;
	}
	fprintf(o->f, v->rank ? " + (" : "");
	for (int d = 0; d < v->rank; d++) {
		int n = v->shape[d];
		static const char *const before[] = {"", "(%d - ", "(", "("}, *const after[] = {"", ")", " ^ %d)",
												" * %d %% %d)"};
		fprintf(o->f, d ? " + " : "");
		fprintf(o->f, before[at->twist[d]], n - 1);
		coordinate(o, v->rank, d, n);
		fprintf(o->f, after[at->twist[d]], at->by[d], n);
		times(o, at->stride[d]);
	}
	fprintf(o->f, v->rank ? ")" : "");
}

static void mask(struct printer *o, const struct node *v)
{
	const struct place *at = &v->place;
	const char *before = ", mask=";
	char text[32], name[32];
	for (int d = 0; d < v->rank; d++)
		if (at->masked[d]) {
			fprintf(o->f, "%s(", before);
			coordinate(o, v->rank, d, v->shape[d]);
			if (at->mask_loop[d] >= 0 && snprintf(name, sizeof name, "i%d", at->mask_loop[d]))
				term(o, (struct number){at->scale[d], -1}, name);
			fprintf(o->f, " < %s)", num(text, at->bound[d]));
			before = " & ";
		}
	if (at->some_programs) {
		fprintf(o->f, "%s(pid < %s)", before, num(text, at->programs));
		before = " & ";
	}
	if (at->condition >= 0)
		fprintf(o->f, "%sv%d", before, at->condition);
}

static void pointer(struct printer *o, int k)
{
	const struct node *v = &o->p->node[k];
	if (v->place.walks)
		fprintf(o->f, "q%d", k);
	else
		offset_text(o, v, true);
}

static void walkers(struct printer *o, int loop, bool start)
{
	char text[32];
	for (int k = 0; k < o->p->n; k++) {
		const struct node *v = &o->p->node[k];
		bool moves = v->op == LOAD || v->op == STORE || v->op == ATOMIC;
		if (!moves || v->dead || !v->place.walks || v->place.loop != loop)
			continue;
		line(o);
		fprintf(o->f, start ? "q%d = " : "q%d += ", k);
		if (start)
			offset_text(o, v, false);
		else
			fprintf(o->f, "%s", num(text, v->place.step));
	}
}

/* --- expressions --------------------------------------------------------------------------------------------- */

/* %a %b %c: operands, %n: the literal attr[0], %t: the type. */
/* clang-format off */
static const char *const forms[] = {
	[NEG] = "-%a", [NOT] = "~%a", [ABS] = "tl.abs(%a)", [CAST] = "%a.to(%t)",
	[BITCAST] = "%a.to(%t, bitcast=True)", [EXP] = "tl.exp(tl.minimum(%a, 2.0))",
	[SQRT] = "tl.sqrt(tl.abs(%a) + 1.0)", [SIN] = "tl.sin(tl.clamp(%a, -4.0, 4.0))",
	[SIGMOID] = "tl.sigmoid(%a)", [LOG] = "tl.log(tl.abs(%a) + 1.0)", [ADD] = "%a + %b", [SUB] = "%a - %b",
	[MUL] = "%a * %b", [DIV] = "%a // %b", [REM] = "%a %% %b", [AND] = "%a & %b", [OR] = "%a | %b",
	[XOR] = "%a ^ %b", [SHL] = "%a << %b", [SHR] = "%a >> %b", [MIN] = "tl.minimum(%a, %b).to(%t)",
	[MAX] = "tl.maximum(%a, %b).to(%t)", [UMULHI] = "tl.umulhi(%a, %b)", [FDIV] = "(%a / %b).to(%t)",
	[LT] = "%a < %b", [LE] = "%a <= %b", [GT] = "%a > %b", [GE] = "%a >= %b", [EQ] = "%a == %b",
	[NE] = "%a != %b", [WHERE] = "tl.where(%a, %b, %c)", [FMA] = "tl.fma(%a, %b, %c)",
	[CLAMP] = "tl.clamp(%a, -3.0, 3.0).to(%t)", [JOIN] = "tl.join(%a, %b)", [VAR] = "%a",
};
/* clang-format on */

/* The second operand: a literal, or the node so that the operation is defined. */
static void second(struct printer *o, const struct node *v)
{
	int b = v->in[1];
	bool floats = b >= 0 ? is_float(o->p->node[b].dtype) : is_float(o->p->node[v->in[0]].dtype);
	if (v->flag)
		fprintf(o->f, floats ? "%d.0" : "%d", v->attr[0]);
	else if (v->op == SHL || v->op == SHR)
		fprintf(o->f, "(v%d & %d)", b, bits_of(v->dtype) - 1);
	else if (v->op == FDIV || (v->op == REM && floats))
		fprintf(o->f, "(tl.abs(v%d) + 1.0)", b);
	else if (v->op == DIV || v->op == REM)
		fprintf(o->f, v->attr[1] ? "((v%d & 7) - 9)" : "((v%d & 7) + 1)", b);
	else
		fprintf(o->f, "v%d", b);
}

static void form(struct printer *o, const struct node *v)
{
	for (const char *c = forms[v->op]; *c; c++) {
		if (*c != '%') {
			fputc(*c, o->f);
			continue;
		}
		switch (*++c) {
		case 'a': fprintf(o->f, "v%d", v->in[0]); break;
		case 'b': second(o, v); break;
		case 'c': fprintf(o->f, "v%d", v->in[2]); break;
		case 't': fprintf(o->f, "%s", type_names[v->dtype]); break;
		default: fputc('%', o->f);
		}
	}
}

static void cast(struct printer *o, const struct node *v)
{
	tl_dtype from = o->p->node[v->in[0]].dtype;
	bool low = is_float(v->dtype) && !is_float(from) && from != TL_I1,
	     size = is_float(from) && !is_float(v->dtype) && !is_signed(v->dtype);
	fprintf(o->f,
		low            ? "(v%d & 7).to(%s)"
		: size         ? "tl.abs(v%d).to(%s)"
		: v->in[0] % 2 ? "tl.cast(v%d, %s)"
			       : "v%d.to(%s)",
		v->in[0], type_names[v->dtype]);
}

static void dot(struct printer *o, const struct node *v, int a, int b, int acc)
{
	static const char *const precisions[] = {"", ", input_precision=\"ieee\"", ", input_precision=\"tf32\"",
						 ", input_precision=\"tf32x3\""};
	fprintf(o->f, "tl.dot(v%d, v%d", a, b);
	if (acc >= 0)
		fprintf(o->f, ", v%d", acc);
	fprintf(o->f, "%s%s)", precisions[v->attr[0]], v->dtype == TL_F16 ? ", out_dtype=tl.float16" : "");
}

static void whole(struct printer *o, const struct node *v)
{
	static const char *const reductions[] = {"sum", "max", "min", "argmax", "argmin", "xor_sum", "reduce"};
	static const char *const scans[] = {[SUM] = "cumsum", [LARGE] = "associative_scan", [PRODUCT] = "cumprod"};
	enum reduction kind = v->attr[0];
	/* sums and products of bf16 are rounded to bf16 at each step, in an order that the reference does not know */
	bool widened = v->op == SCAN && o->p->node[v->in[0]].dtype == TL_BF16 && v->dtype == TL_F32;
	fprintf(o->f, "tl.%s(v%d%s", v->op == SCAN ? scans[kind] : reductions[kind], v->in[0],
		widened ? ".to(tl.float32)" : "");
	if (v->attr[1] >= 0)
		fprintf(o->f, ", %d", v->attr[1]);
	if (v->op == SCAN ? kind == LARGE : kind == PRODUCT)
		fprintf(o->f, v->op == SCAN ? ", larger" : ", product");
	fprintf(o->f, !v->flag ? ")" : v->op == SCAN ? ", reverse=True)" : ", keep_dims=True)");
}

static void expression(struct printer *o, int k)
{
	const struct node *v = &o->p->node[k];
	char text[32];
	switch (v->op) {
	case RANGE:
		fprintf(o->f, "tl.arange(%d, %d)", v->attr[1], v->attr[1] + v->size);
		axes(o, v->rank, v->attr[0], ":", "None");
		break;
	case FULL:
		if (!v->rank) { /* stands for what was left out */
			fprintf(o->f, "zero.to(%s)", type_names[v->dtype]);
			break;
		}
		fprintf(o->f, v->attr[0] ? "tl.full(" : "tl.zeros(");
		shape(o, v->rank, v->shape);
		if (v->attr[0])
			fprintf(o->f, ", %d", v->attr[0]);
		fprintf(o->f, ", %s)", type_names[v->dtype]);
		break;
	case SCALAR: fprintf(o->f, "zero + %s", num(text, v->from)); break;
	case PID: fprintf(o->f, "pid"); break;
	case LOAD:
		fprintf(o->f, "tl.load(");
		pointer(o, k);
		mask(o, v);
		if (v->in[0] >= 0)
			fprintf(o->f, ", other=v%d", v->in[0]);
		else if (v->flag)
			fprintf(o->f, is_float(v->dtype) ? ", other=%d.0" : ", other=%d", v->attr[0]);
		fprintf(o->f, ")");
		break;
	case CAST: cast(o, v); break;
	case EXPAND:
		fprintf(o->f, k % 2 ? "tl.expand_dims(v%d, %d)" : "v%d", v->in[0], v->attr[0]);
		if (k % 2 == 0)
			axes(o, v->rank, v->attr[0], "None", ":");
		break;
	case BROADCAST:
	case RESHAPE:
		fprintf(o->f, v->op == RESHAPE ? "tl.reshape(v%d, " : "tl.broadcast_to(v%d, ", v->in[0]);
		shape(o, v->rank, v->shape);
		fprintf(o->f, ")");
		break;
	case PERMUTE:
		fprintf(o->f, v->rank == 2 && v->attr[0] && k % 2 ? "tl.trans(v%d" : "tl.permute(v%d, ", v->in[0]);
		if (!(v->rank == 2 && v->attr[0] && k % 2))
			shape(o, v->rank, v->attr);
		fprintf(o->f, ")");
		break;
	case REDUCE:
	case SCAN: whole(o, v); break;
	case DOT: dot(o, v, v->in[0], v->in[1], v->in[2]); break;
	default:
		if (is_move(v->op))
			move_print(o->f, o->p, k);
		else
			form(o, v);
	}
}

/* --- statements ---------------------------------------------------------------------------------------------- */

static void head(struct printer *o, int k)
{
	static const char *const compare[] = {"<", "<=", ">", ">=", "==", "!="};
	const struct node *v = &o->p->node[k];
	char a[32], b[32], c[32];
	num(a, v->from), num(b, v->to), num(c, v->step);
	if (v->op == IF) {
		bool flag = v->in[0] >= 0 && o->p->node[v->in[0]].dtype == TL_I1;
		if (v->in[0] >= 0)
			sprintf(a, "v%d", v->in[0]);
		fprintf(o->f, flag ? "if %s:" : "if %s %s %s:", a, compare[v->attr[0] - LT], b);
		return;
	}
	switch ((enum loop)v->attr[0]) {
	case WHILE:
		fprintf(o->f, "i%d = zero", k);
		line(o);
		fprintf(o->f, "while i%d < %s:", k, b);
		break;
	case RANGE_TO: fprintf(o->f, "for i%d in range(%s):", k, b); break;
	case RANGE_FROM: fprintf(o->f, "for i%d in range(%s, %s):", k, a, b); break;
	case STATIC_RANGE: fprintf(o->f, "for i%d in tl.static_range(%s):", k, b); break;
	case TL_RANGE: 
		fprintf(o->f, "for i%d in tl.range(%s, %s, %s, num_stages=%d, loop_unroll_factor=%d):", k, a, b, c,
			v->attr[1], 1 + (k + v->attr[1]) % 4);
		break;
	default: fprintf(o->f, "for i%d in range(%s, %s, %s):", k, a, b, c);
	}
	o->depth++;
	line(o);
	fprintf(o->f, v->attr[0] == STATIC_RANGE ? "v%d = zero + i%d" : "v%d = i%d", k, k);
	o->depth--;
}

static void end(struct printer *o, int block)
{
	const struct node *b = &o->p->node[block];
	if (b->op == FOR) {
		walkers(o, block, false);
		if (b->attr[0] == WHILE) {
			line(o);
			fprintf(o->f, "i%d += 1", block);
		}
	} else {
		line(o);
		fprintf(o->f, "pass");
	}
}

static void assign(struct printer *o, const struct node *v)
{
	int var = v->in[0], in = v->in[1];
	if (v->op == ACCUMULATE && v->flag) {
		fprintf(o->f, in % 2 ? "v%d = " : "v%d += ", var);
		dot(o, v, in, v->in[2], in % 2 ? var : -1);
	} else if (v->op == ACCUMULATE) {
		fprintf(o->f, "v%d += v%d", var, in);
	} else {
		fprintf(o->f, is_float(v->dtype) ? "v%d = tl.minimum(tl.maximum(v%d, -%.1f), %.1f).to(%s)"
			: "v%d = v%d", var, in,
			v->bound, v->bound, type_names[v->dtype]);
	}
}

static void statement(struct printer *o, int k)
{
	static const char *const orders[] = {"relaxed", "acquire", "release", "acq_rel"};
	static const char *const atomics[] = {"add", "max", "min", "and", "or", "xor"};
	const struct node *v = &o->p->node[k];
	if (v->op == FOR)
		walkers(o, k, true);
	if (v->op == END || v->op == ELSE) {
		end(o, v->opens);
		o->depth--;
		if (v->op == END)
			return;
	}
	line(o);
	switch (v->op) {
	case ELSE: fprintf(o->f, "else:"); break;
	case FOR:
	case IF: head(o, k); break;
	case ASSIGN:
	case ACCUMULATE: assign(o, v); break;
	case SPLIT: fprintf(o->f, v->attr[0] ? "u%d, v%d = tl.split(v%d)" : "v%d, u%d = tl.split(v%d)", k, k, v->in[0]);
		break;
	case STORE:
	case ATOMIC:
		fprintf(o->f, v->op == STORE ? "tl.store(" : "tl.atomic_%s(", atomics[v->attr[0]]);
		pointer(o, k);
		fprintf(o->f, ", v%d", v->in[0]);
		mask(o, v);
		if (v->op == ATOMIC && o->p->moves && k % 2)
			fprintf(o->f, ", sem=\"%s\", scope=\"%s\"", orders[k / 2 % 4], k % 3 ? "gpu" : "sys");
		fprintf(o->f, ")");
		break;
	default: fprintf(o->f, "v%d = ", k); expression(o, k);
	}
	o->depth += v->op == FOR || v->op == IF || v->op == ELSE;
}

char *program_text(const struct program *p)
{
	char *text = NULL;
	size_t len;
	struct printer o = {.f = open_memstream(&text, &len), .p = p};
	fprintf(o.f,
		"import triton\nimport triton.language as tl\n\n\n@triton.jit\n"
		"def larger(a, b):\n    return tl.where(a > "
		"b, a, b)\n\n\n"
		"@triton.jit\ndef product(a, b):\n    return a * b\n\n\n%s@triton.jit\ndef kernel(",
		p->moves ? move_functions : "");
	for (int i = 0; i < p->nparams; i++)
		fprintf(o.f, "%sp%d%s", i ? ", " : "", i, p->param[i].kind == CONSTANT ? ": tl.constexpr" : "");
	fprintf(o.f, "):\n    pid = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)\n"
		"    zero = tl.program_id(2)");
	for (int k = 0; k < p->n; k++)
		if (!p->node[k].dead)
			statement(&o, k);
	fprintf(o.f, "\n");
	fclose(o.f);
	return text;
}
