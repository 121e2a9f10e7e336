/* Random loops of dots as the text of a kernel. Each load and store has a parameter of its own, named by its step. */
#include "dots.h"

static const char *const precisions[PRECISIONS] = {"tf32", "ieee", "tf32x3", "bf16x3", "bf16x6"};

static void print_place(FILE *f, const struct dots *d, const struct dot_step *s, const struct dot_value *x, bool moves)
{
	int down = s->turned ? 1 : x->columns, right = s->turned ? x->rows : 1;
	if (d->batch > 1) {
		fprintf(f, "tl.arange(0, %d)[:, None, None] * %d + tl.arange(0, %d)[None, :, None] * %d + ", d->batch,
			x->rows * x->columns, x->rows, down);
		fprintf(f, "tl.arange(0, %d)[None, None, :] * %d", x->columns, right);
	} else {
		fprintf(f, "tl.arange(0, %d)[:, None] * %d + tl.arange(0, %d)[None, :] * %d", x->rows, down, x->columns,
			right);
	}
	if (moves)
		fprintf(f, " + (%sit) * %d", d->rounds ? "round * n + " : "", d->batch * x->rows * x->columns);
}

int describe(const struct dots *d, const struct dot_step *s, int64_t *shape, int64_t *stride, int32_t *block)
{
	const struct dot_value *x = &d->value[s->to];
	int rows = s->turned ? x->columns : x->rows, columns = s->turned ? x->rows : x->columns, n = 0;
	int tiles = s->early ? 1 : (d->rounds ? d->rounds : 1) * d->trips;
	if (d->batch > 1) {
		shape[n] = (int64_t)(tiles ? tiles : 1) * d->batch;
		stride[n] = rows * columns;
		block[n++] = d->batch;
	}
	shape[n] = d->batch > 1 || !tiles ? s->last : (int64_t)(tiles - 1) * rows + s->last;
	stride[n] = columns;
	block[n++] = rows;
	shape[n] = s->inner;
	stride[n] = 1;
	block[n++] = columns;
	return n;
}

static void print_offsets(FILE *f, const struct dots *d, const struct dot_step *s, const char *tile)
{
	const struct dot_value *x = &d->value[s->to];
	if (d->batch > 1)
		fprintf(f, "(%s * %d, 0, 0)", tile, d->batch);
	else
		fprintf(f, "(%s * %d, 0)", tile, s->turned ? x->columns : x->rows);
}

/* Sizes and strides are arguments where k is even. */
static void print_size(FILE *f, int k, const char *name, int i, int64_t size)
{
	if (k % 2)
		fprintf(f, "%.*s%lld", (int)strlen(name) - 1, name, (long long)size);
	else
		fprintf(f, "%s%d_%d", name, k, i);
}

static void print_tensor(FILE *f, const struct dots *d, int k)
{
	const struct dot_step *s = &d->step[k];
	const char *tile = s->early || s->through == BY_WALK ? "0" : d->rounds ? "(round * n + it)" : "it";
	int64_t shape[3], stride[3];
	int32_t block[3];
	int n = describe(d, s, shape, stride, block);
	bool blocks = s->through != BY_MADE;
	fprintf(f, "tl.make_%s(p%d, (", blocks ? "block_ptr" : "tensor_descriptor", k);
	for (int i = 0; i < n; i++)
		print_size(f, k, i ? ", n" : "n", i, shape[i]);
	fprintf(f, "), (");
	for (int i = 0; i < n - 1; i++)
		print_size(f, k, i ? ", s" : "s", i, stride[i]);
	fprintf(f, ", 1), ");
	if (blocks)
		print_offsets(f, d, s, tile);
	fprintf(f, blocks ? ", (" : "(");
	for (int i = 0; i < n; i++)
		fprintf(f, "%s%d", i ? ", " : "", block[i]);
	fprintf(f, blocks ? n == 2 ? "), (1, 0))" : "), (2, 1, 0))" : "))");
}

static void print_block(FILE *f, const struct dots *d, int k, const char *indent)
{
	const struct dot_step *s = &d->step[k];
	const char *tile = s->early ? "0" : d->rounds ? "(round * n + it)" : "it";
	bool made = s->early || s->through == BY_BLOCKS;
	if (s->through == BY_BLOCKS || (s->early && s->through != BY_GIVEN)) {
		fprintf(f, "h%d = ", k);
		print_tensor(f, d, k);
		fprintf(f, "\n%s", indent);
	}
	if (s->through <= BY_WALK) {
		fprintf(f, "v%d = tl.load(h%d, boundary_check=(0, 1%s), padding_option=\"zero\")", s->to, k,
			d->batch > 1 ? ", 2" : "");
	} else {
		fprintf(f, "v%d = h%d.load(", s->to, k);
		print_offsets(f, d, s, tile);
		fprintf(f, ")");
	}
	if (s->turned)
		fprintf(f, d->batch > 1 ? ".trans(0, 2, 1)" : ".T");
	if (s->through == BY_WALK && !made) {
		fprintf(f, "\n%sh%d = tl.advance(h%d, ", indent, k, k);
		print_offsets(f, d, s, "1");
		fprintf(f, ")");
	}
	fprintf(f, "\n");
}

/* Handles that are made before the loops. */
static void print_handles(FILE *f, const struct dots *d)
{
	for (int k = 0; k < d->n; k++)
		if (!d->step[k].dead && !d->step[k].early &&
		    (d->step[k].through == BY_WALK || d->step[k].through == BY_MADE)) {
			fprintf(f, "    h%d = ", k);
			print_tensor(f, d, k);
			fprintf(f, "\n");
		}
}

/* The scales of both operands of dot_scaled differ from group to group and are 1 together. */
static void print_scaled(FILE *f, const struct dots *d, int v, int rows, int k, char sign)
{
	const char *format = d->type == TL_F8E4M3   ? "e4m3"
			     : d->type == TL_F8E5M2 ? "e5m2"
			     : d->type == TL_F16    ? "fp16"
						    : "bf16";
	fprintf(f, "v%d, (127 %c tl.arange(0, %d)[None, :] %% 3 + tl.zeros((%d, 1), tl.int32)).to(tl.uint8), \"%s\"", v,
		sign, k / 32, rows, format);
}

/* `acc`: text in front of the value that it is added to, or NULL. */
static void print_product(FILE *f, const struct dots *d, const struct dot_step *s, const char *acc)
{
	const struct dot_value *a = &d->value[s->a], *b = &d->value[s->b];
	if (s->way && d->type != TL_F32) {
		fprintf(f, "tl.dot_scaled(");
		print_scaled(f, d, s->a, a->rows, a->columns, '+');
		fprintf(f, ", ");
		print_scaled(f, d, s->b, b->columns, a->columns, '-');
	} else {
		fprintf(f, "tl.dot(v%d, v%d", s->a, s->b);
	}
	if (acc)
		fprintf(f, ", %sv%d", acc, s->to);
	if (d->type == TL_F32)
		fprintf(f, ", input_precision=\"%s\"", precisions[s->way]);
	fprintf(f, ", out_dtype=%s)\n", type_names[d->sum]);
}

static void print_step(FILE *f, const struct dots *d, int k, const char *indent)
{
	const struct dot_step *s = &d->step[k];
	const char *type = type_names[d->type];
	if (s->dead)
		return;
	fprintf(f, "%s", indent);
	if (s->parity >= 0)
		fprintf(f, "if it %% 2 == %d:\n%s    ", s->parity, indent);
	switch (s->kind) {
	case S_LOAD:
		if (s->through) {
			print_block(f, d, k, indent);
			break;
		}
		fprintf(f, "v%d = tl.load(p%d + ", s->to, k);
		print_place(f, d, s, &d->value[s->to], !s->early);
		if (s->bound)
			fprintf(f, ", mask=tl.arange(0, %d)[%s:, None] < %d, other=0", d->value[s->to].rows,
				d->batch > 1 ? "None, " : "", s->bound);
		fprintf(f, ")\n");
		break;
	case S_TURN:
		fprintf(f, d->batch > 1 ? "v%d = tl.trans(v%d, 0, 2, 1)\n" : "v%d = tl.trans(v%d)\n", s->to, s->a);
		break;
	case S_NEGATE: fprintf(f, "v%d = (-v%d.to(%s)).to(%s)\n", s->to, s->a, type_names[d->sum], type); break;
	case S_OPERAND: fprintf(f, "v%d = tl.minimum(tl.maximum(v%d, -2), 2).to(%s)\n", s->to, s->a, type); break;
	case S_DOT:
	case S_SUM:
		fprintf(f, s->kind == S_SUM && s->form == PLUS ? "v%d += " : "v%d = ", s->to);
		print_product(f, d, s, s->kind == S_DOT || s->form == PLUS ? NULL : s->form == NEGATED ? "-" : "");
		break;
	case S_ADD: fprintf(f, "v%d += v%d\n", s->to, s->a); break;
	case S_PAST: fprintf(f, "v%d = v%d * 2\n", s->to, s->a); break;
	case S_KEEP: fprintf(f, "v%d = v%d\n", s->to, s->a); break;
	case S_ROWS:
		fprintf(f, "tl.store(p%d + (%sit) * %d + tl.arange(0, %d), tl.sum(v%d, 1))\n", k,
			d->rounds ? "round * n + " : "", d->value[s->a].rows, d->value[s->a].rows, s->a);
		break;
	case S_STORE:
		fprintf(f, "tl.store(p%d + ", k);
		print_place(f, d, s, &d->value[s->a], !s->behind);
		if (s->behind && d->rounds)
			fprintf(f, " + round * %d", d->value[s->a].rows * d->value[s->a].columns);
		fprintf(f, ", v%d)\n", s->a);
		break;
	case S_WORK: {
		bool rows = s->form & OF_ROWS;
		int n = rows ? d->value[s->a].rows : d->value[s->a].columns;
		fprintf(f,
			s->form & ADDS         ? "v%d += "
			: s->form & MULTIPLIES ? "v%d *= "
					       : "v%d = tl.maximum(v%d, ",
			s->a, s->a);
		fprintf(f, "tl.load(p%d + (%sit) * %d + tl.arange(0, %d))[%s]%s\n", k, d->rounds ? "round * n + " : "",
			n, n, rows ? ":, None" : "None, :", s->form & (ADDS | MULTIPLIES) ? "" : ")");
		break;
	}
	case S_ATOMIC:
		fprintf(f, "tl.atomic_add(p%d + ", k);
		print_place(f, d, s, &d->value[s->a], false);
		fprintf(f, ", v%d, sem=\"relaxed\")\n", s->a);
	}
}

static void print_zeros(FILE *f, const struct dots *d, const char *indent)
{
	for (int v = 0; v < d->nvalues; v++)
		if (d->value[v].kind == CARRIED)
			fprintf(f,
				d->batch > 1 ? "%sv%d = tl.zeros((%d, %d, %d), %s)\n"
					     : "%sv%d = tl.zeros((%.0d%d, %d), %s)\n",
				indent, v, d->batch > 1 ? d->batch : 0, d->value[v].rows, d->value[v].columns,
				type_names[d->sum]);
}

static void print_loops(FILE *f, const struct dots *d, const char *indent)
{
	static const char *const bounds[] = {"0, n", "round, n", "0, round + 1", "round, min(round + 2, n)"};
	char stages[40] = "";
	if (d->rounds)
		fprintf(f, "    for round in range(%s):\n", d->nest ? "n" : "rounds");
	if (d->rounds && d->fresh)
		print_zeros(f, d, "        ");
	if (d->asked)
		snprintf(stages, sizeof stages, ", num_stages=%d", d->stages);
	fprintf(f, "%sfor it in tl.range(%s%s):\n%spass\n", indent + 4, bounds[d->nest], stages, indent);
	for (int k = 0; k < d->n; k++)
		if (!d->step[k].early && !d->step[k].behind)
			print_step(f, d, k, indent);
	for (int k = 0; k < d->n; k++)
		if (d->step[k].behind)
			print_step(f, d, k, indent + 4);
}

char *dots_text(const struct dots *d)
{
	char *text = NULL, indent[16];
	size_t len;
	FILE *f = open_memstream(&text, &len);
	fprintf(f, "import triton\nimport triton.language as tl\n\n@triton.jit\ndef kernel(");
	for (int k = 0; k < d->n; k++) {
		const struct dot_step *s = &d->step[k];
		if (s->array)
			fprintf(f, "p%d, ", k);
		if (s->array && s->through == BY_GIVEN)
			fprintf(f, "h%d, ", k);
		for (int i = 0; s->array && s->through && i < 2 + (d->batch > 1); i++)
			fprintf(f, "n%d_%d, s%d_%d, ", k, i, k, i);
	}
	for (int v = 0; v < d->nvalues; v++)
		if (d->value[v].out)
			fprintf(f, "o%d, ", v);
	fprintf(f, "n, rounds):\n");
	print_handles(f, d);
	for (int k = 0; k < d->n; k++)
		if (d->step[k].early)
			print_step(f, d, k, "    ");
	print_zeros(f, d, "    ");
	snprintf(indent, sizeof indent, "%*s", d->rounds ? 12 : 8, "");
	print_loops(f, d, indent);
	for (int v = 0; v < d->nvalues; v++)
		if (d->value[v].out) {
			fprintf(f, "    tl.store(o%d + ", v);
			print_place(f, d, &(struct dot_step){0}, &d->value[v], false);
			fprintf(f, ", v%d)\n", v);
		}
	fclose(f);
	return text;
}
