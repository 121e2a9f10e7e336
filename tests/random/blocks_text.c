/* Random kernels of block pointers and tensor descriptors as text. */
#include "blocks.h"

static void print_list(FILE *f, const int64_t *v, int n, const char *name, bool last_is_one)
{
	fprintf(f, "(");
	for (int k = 0; k < n; k++)
		if (name && !(last_is_one && k == n - 1))
			fprintf(f, "%s_%d,%s", name, k, k < n - 1 ? " " : "");
		else
			fprintf(f, "%lld,%s", (long long)v[k], k < n - 1 ? " " : "");
	fprintf(f, ")");
}

static void print_offsets(FILE *f, const struct block_step *s, int rank, bool brackets)
{
	fprintf(f, brackets ? "[" : "(");
	for (int k = 0; k < rank; k++) {
		fprintf(f, "%lld", (long long)s->by[k]);
		if (s->each[k])
			fprintf(f, " + i%d * %lld", s->loop, (long long)s->each[k]);
		if (s->program == k)
			fprintf(f, " + pid");
		fprintf(f, k < rank - 1 ? ", " : brackets ? "" : ",");
	}
	fprintf(f, brackets ? "]" : ")");
}

static void print_handle(FILE *f, const struct blocks *d, int k)
{
	const struct handle *h = &d->handle[k];
	const struct tensor *x = &d->tensor[h->tensor];
	const struct block_class *c = &d->class[h->class];
	int64_t block[DIMS];
	char sizes[16], strides[16];
	snprintf(sizes, sizeof sizes, "n%d", h->tensor);
	snprintf(strides, sizeof strides, "s%d", h->tensor);
	for (int i = 0; i < c->rank; i++)
		block[i] = c->block[i];
	fprintf(f, "    h%d = ", k);
	if (h->kind == GIVEN) {
		fprintf(f, "d%d\n", k);
		return;
	}
	fprintf(f, "tl.make_%s(p%d", h->kind == POINTERS ? "block_ptr" : "tensor_descriptor", h->tensor);
	if (x->skew)
		fprintf(f, " + %lld", (long long)x->skew);
	if (x->role == KEPT && d->programs > 1)
		fprintf(f, " + pid * %lld", (long long)x->len);
	fprintf(f, ", ");
	print_list(f, x->shape, x->rank, x->stated[0] ? NULL : sizes, false);
	fprintf(f, ", ");
	print_list(f, x->stride, x->rank, x->stated[1] ? NULL : strides, h->kind == MADE);
	fprintf(f, ", ");
	if (h->kind == POINTERS) {
		print_list(f, h->at, x->rank, NULL, false);
		fprintf(f, ", ");
	}
	print_list(f, block, x->rank, NULL, false);
	if (h->kind == POINTERS) {
		fprintf(f, ", (");
		for (int i = c->rank - 1; i >= 0; i--)
			fprintf(f, "%d,%s", i, i ? " " : ")");
	} else if (c->nan) {
		fprintf(f, ", padding_option=\"nan\"");
	}
	fprintf(f, ")\n");
}

static bool checks(const struct block_step *s, int d)
{
	return (s->outside | s->also) >> d & 1;
}

static void print_checks(FILE *f, const struct blocks *d, const struct block_step *s, bool pads)
{
	const struct block_class *c = &d->class[d->handle[s->handle].class];
	int n = 0;
	for (int k = 0; k < c->rank; k++)
		if (checks(s, k))
			fprintf(f, n++ ? " %d," : ", boundary_check=(%d,", k);
	if (n)
		fprintf(f, ")");
	if (n && pads && s->form)
		fprintf(f, ", padding_option=\"%s\"", s->form == 3 && is_float(c->t) ? "nan" : "zero");
}

/* Floats that are stored stay small. */
static void print_value(FILE *f, const struct blocks *d, int v)
{
	const struct tile *x = &d->tile[v];
	if (x->bound > 3 && is_float(d->class[x->class].t))
		fprintf(f, "tl.minimum(tl.maximum(v%d, -3), 3).to(%s)", v, type_names[d->class[x->class].t]);
	else
		fprintf(f, "v%d", v);
}

static void print_access(FILE *f, const struct blocks *d, const struct block_step *s)
{
	static const char *const atomics[] = {"add", "max", "min", "and", "or", "xor"};
	const struct handle *h = &d->handle[s->handle];
	int rank = d->class[h->class].rank;
	if (s->to >= 0)
		fprintf(f, "v%d = ", s->to);
	if (h->kind == POINTERS) {
		fprintf(f, s->kind == B_LOAD ? "tl.load(h%d" : "tl.store(h%d, ", s->handle);
		if (s->kind == B_STORE)
			print_value(f, d, s->a);
		print_checks(f, d, s, s->kind == B_LOAD);
	} else if (s->kind == B_GATHER || s->kind == B_SCATTER) {
		fprintf(f, s->kind == B_GATHER ? "h%d.gather(" : "h%d.scatter(", s->handle);
		if (s->kind == B_SCATTER) {
			print_value(f, d, s->a);
			fprintf(f, ", ");
		}
		fprintf(f, "rows%d, %lld", s->kind == B_SCATTER, (long long)s->by[1]);
	} else {
		fprintf(f,
			s->kind == B_LOAD    ? "h%d.load("
			: s->kind == B_STORE ? "h%d.store("
					     : "h%d.atomic_%s(",
			s->handle, atomics[s->kind == B_ATOMIC ? s->form : 0]);
		print_offsets(f, s, rank, s->form % 2);
		if (s->kind != B_LOAD) {
			fprintf(f, ", ");
			print_value(f, d, s->a);
		}
	}
	fprintf(f, ")\n");
}

static void print_move(FILE *f, const struct blocks *d, const struct block_step *s, const char *indent)
{
	int k = (int)(s - d->step);
	int h = s->handle, rank = h < 0 ? 0 : d->class[d->handle[h].class].rank;
	if (s->kind == B_ADVANCE) {
		static const char *const starts[] = {"tl.advance(h", "h", "moved(h", "tl.advance(pair"},
					 *const ends[] = {", ", ".advance(", ", *", "[0], "};
		if (s->form == 3)
			fprintf(f, "pair%d = (h%d, 1)\n%s", k, h, indent);
		fprintf(f, "h%d = %s", h, starts[s->form]);
		fprintf(f, "%d%s", s->form < 3 ? h : k, ends[s->form]);
		print_offsets(f, s, rank, s->form == 1);
		fprintf(f, ")\n");
	} else if (s->kind == B_COPY) {
		fprintf(f, "h%d = h%d\n", s->to, s->a);
	} else if (s->form == 0) {
		fprintf(f, "h%d, h%d = h%d, h%d\n", s->to, s->a, s->a, s->to);
	} else if (s->form == 1) {
		fprintf(f, "h%d, h%d = exchanged(h%d, h%d)\n", s->to, s->a, s->to, s->a);
	} else {
		fprintf(f, "pair%d = ((h%d, h%d), 2)\n%sh%d, h%d = pair%d[0]\n", k, s->a, s->to, indent, s->to, s->a,
			k);
	}
}

static void print_for(FILE *f, const struct blocks *d, int k, const char *indent)
{
	const struct block_step *s = &d->step[k];
	switch (s->form) {
	case 0: fprintf(f, "for i%d in range(t%d):\n", k, k); break;
	case 1: fprintf(f, "for i%d in tl.range(0, t%d, num_stages=%d):\n", k, k, 1 + k % 4); break;
	case 2: fprintf(f, "for i%d in tl.static_range(%d):\n", k, s->trips); break;
	case 3: fprintf(f, "for i%d in range(0, %d):\n", k, s->trips); break;
	default: fprintf(f, "i%d = t%d * 0\n%swhile i%d < t%d:\n", k, k, indent, k, k);
	}
}

static void print_step(FILE *f, const struct blocks *d, int k, int *depth)
{
	static const char spaces[] = "                                ";
	const struct block_step *s = &d->step[k];
	if (s->kind == B_END || s->kind == B_ELSE) {
		const struct block_step *o = &d->step[s->opens];
		const char *indent = spaces + sizeof spaces - 1 - 4 * *depth;
		bool ends = s->kind == B_END && o->kind == B_FOR && o->form == 4;
		fprintf(f, ends ? "%si%d += 1\n" : "%spass\n", indent, s->opens);
		--*depth;
		if (s->kind == B_END)
			return;
	}
	const char *indent = spaces + sizeof spaces - 1 - 4 * *depth;
	fprintf(f, "%s", indent);
	switch (s->kind) {
	case B_FOR: print_for(f, d, k, indent); break;
	case B_IF:
		fprintf(f, s->loop >= 0 ? "if i%d %% 2 == %d:\n" : "if (pid + %d) %% 2 == %d:\n",
			s->loop >= 0 ? s->loop : 0, s->form);
		break;
	case B_ELSE: fprintf(f, "else:\n"); break;
	case B_ADD: fprintf(f, "v%d = v%d + v%d\n", s->to, s->a, s->b); break;
	case B_SUM: fprintf(f, "v%d += v%d\n", s->to, s->a); break;
	case B_DOT: {
		const char *type = d->class[d->tile[s->a].class].t == TL_I8 ? ", out_dtype=tl.int32" : "";
		if (s->form)
			fprintf(f, "v%d = tl.dot(v%d, v%d.T, v%d%s)\n", s->to, s->a, s->b, s->to, type);
		else
			fprintf(f, "v%d += tl.dot(v%d, tl.trans(v%d)%s)\n", s->to, s->a, s->b, type);
		break;
	}
	case B_ADVANCE:
	case B_SWAP:
	case B_COPY: print_move(f, d, s, indent); break;
	default: print_access(f, d, s);
	}
	*depth += s->kind == B_FOR || s->kind == B_IF || s->kind == B_ELSE;
}

static void print_zeros(FILE *f, const struct blocks *d, int v)
{
	const struct block_class *c = &d->class[d->tile[v].class];
	bool product = v >= d->nclasses;
	fprintf(f, "    v%d = tl.zeros((", v);
	for (int i = 0; i < c->rank; i++)
		fprintf(f, "%d,", product ? c->block[0] : !i && c->rows ? ROWS : c->block[i]);
	fprintf(f, "), %s)\n", !product ? type_names[c->t] : c->t == TL_I8 ? "tl.int32" : "tl.float32");
}

/* Once for the parameters, in the order of arguments(). */
char *blocks_text(const struct blocks *d)
{
	char *text = NULL;
	size_t len;
	int depth = 1;
	FILE *f = open_memstream(&text, &len);
	fprintf(f, "import triton\nimport triton.language as tl\n\n@triton.jit\ndef moved(x, *by):\n    return "
		   "tl.advance(x, by)\n\n"
		   "@triton.jit\ndef exchanged(x, y):\n    return y, x\n\n@triton.jit\ndef kernel(");
	for (int x = 0; x < d->ntensors; x++) {
		fprintf(f, "p%d, ", x);
		for (int k = 0; k < d->tensor[x].rank; k++)
			fprintf(f, "n%d_%d, s%d_%d, ", x, k, x, k);
	}
	for (int h = 0; h < d->nhandles; h++)
		if (d->handle[h].kind == GIVEN)
			fprintf(f, "d%d, ", h);
	for (int k = 0; k < d->n; k++)
		if (d->step[k].kind == B_FOR)
			fprintf(f, "t%d, ", k);
	for (int c = 0; c < d->nclasses && d->dots; c++)
		fprintf(f, "q%d, ", c);
	fprintf(f, "rows_ptr):\n    pid = tl.program_id(0)\n");
	for (int i = 0; i < 2; i++)
		fprintf(f, "    rows%d = tl.load(rows_ptr + %d + tl.arange(0, %d))\n", i, i * ROWS, ROWS);
	for (int h = 0; h < d->nhandles; h++)
		print_handle(f, d, h);
	for (int v = 0; v < (d->dots ? 2 : 1) * d->nclasses; v++)
		print_zeros(f, d, v);
	for (int k = 0; k < d->n; k++)
		if (!d->step[k].dead)
			print_step(f, d, k, &depth);
	for (int c = 0; c < d->nclasses && d->dots; c++) {
		int m = d->class[c].block[0];
		fprintf(f,
			"    tl.store(q%d + pid * %d + tl.arange(0, %d)[:, None] * %d + tl.arange(0, %d)[None, :], "
			"v%d)\n",
			c, m * m, m, m, m, d->nclasses + c);
	}
	fclose(f);
	return text;
}
