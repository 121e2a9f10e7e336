/* test-random --kind edges: products of which only the first rows or columns are stored, since the tile hangs over the
 * edge of a matrix or has more rows than there are, wrapped around or not, and what else may need the others: sums over
 * rows, second products, stores under other masks. Memory has all rows, so what is not stored differs from zero.
 *
 * All numbers are small integers; sums are exact in every order. */
#include "random.h"
#include "../run/suite.h"

enum { STEPS = 6, STORES = 3, IN_LOOP = 2, GRID = 2 };
enum step_kind {
	E_SCALE,    /* v = v * 2 - 1 */
	E_TURN,     /* v = (v.T + 1).T */
	E_IF,       /* if m > 3: v += 1 */
	E_LOOP,     /* for t in range(2): store v; v += t */
	E_WHERE,    /* v = where(i % 2 == 0, v, -v) */
	E_GREATEST, /* v -= max(v, 1)[:, None] */
	E_ROWS,     /* v += sum(v, 0)[None, :], of v between -2 and 2 */
	E_LEFT,     /* v = v · c, of v between -2 and 2 */
	E_RIGHT,    /* v += eᵀ · v, of v between -2 and 2 */
	E_KINDS
};
enum { M_NONE, M_ROWS, M_COLUMNS, M_BOTH, M_MORE }; /* M_MORE: and (i + j) % 3 != 0 */

struct edges {
	int rows, columns, inner, steps, most[2]; /* most: rows and columns that are stored, of all programs */
	enum step_kind step[STEPS];
	int nsteps, nstores, mask[STORES], form[STORES][2], less[STORES], warps, stages; /* less: rows than `most` */
	bool literal, before; /* before: v is stored in front of the steps, too */
	int wraps[2];         /* loads take rows, columns, modulo this, or otherwise below it; 0: as they are */
	enum { BY_MODULO, BY_WHERE, BY_MINIMUM, WAYS } way[2];
	bool wide;                                                          /* loads take rows and columns in 64 bits */
	int batches;                                                        /* programs along axis 1 */
	enum { BATCH_IN_FRONT, BATCH_LAST, BATCH_WIDE, BATCH_FORMS } batch; /* where their distance is added */
	tl_dtype type, sum;
	struct array *a, *b, *c, *e, *o[STORES];
};

static void make_edges(struct edges *d)
{
	static const tl_dtype types[] = {TL_F16, TL_BF16, TL_F32, TL_I8};
	memset(d, 0, sizeof *d);
	d->type = types[random_below(COUNT(types))];
	d->sum = d->type == TL_I8 ? TL_I32 : TL_F32;
	int least = d->type == TL_I8 ? 5 : 4;
	d->rows = 1 << random_int(least, 6);
	d->columns = 1 << random_int(least, 7);
	d->inner = 1 << random_int(least, 6);
	d->steps = (int)random_int(chance(90), 3);
	d->most[0] = chance(30) ? (int)random_int(0, 5) : (int)random_int(1, GRID * d->rows + 3);
	d->most[1] = (int)random_int(0, d->columns + 3);
	d->nsteps = random_below(STEPS);
	bool dots = false;
	for (int k = 0; k < d->nsteps; k++) {
		d->step[k] = random_below(E_KINDS);
		if (d->step[k] >= E_LEFT && dots) /* each takes memory of its own */
			d->step[k] = E_SCALE;
		dots |= d->step[k] >= E_LEFT;
	}
	d->nstores = 1 + chance(40);
	for (int k = 0; k < STORES; k++) {
		bool same = k && chance(50);
		d->mask[k] = same ? d->mask[0] : chance(80) ? (int)random_int(M_ROWS, M_MORE) : M_NONE;
		d->less[k] = random_below(3);
		d->form[k][0] = same ? d->form[0][0] : random_below(chance(25) ? 9 : 5);
		d->form[k][1] = same ? d->form[0][1] : random_below(chance(25) ? 9 : 5);
	}
	d->literal = chance(30);
	d->before = chance(30);
	for (int k = 0; k < 2; k++)
		d->way[k] = chance(50) ? BY_MODULO : random_below(WAYS);
	for (int k = 0; k < 2; k++)
		d->wraps[k] = chance(30) ? (int)fmax(d->most[k] - (k ? 0 : random_below(3)), 0) : 0;
	d->warps = 1 << random_int(1, 3);
	d->stages = (int)random_int(1, 4);
	d->wide = chance(20);
	d->batches = 1 + chance(30);
	d->batch = random_below(BATCH_FORMS);
}

/* Elements of a batch. */
static int len_of_a(const struct edges *d)
{
	return GRID * d->rows * d->inner * d->steps;
}

static int len_of_b(const struct edges *d)
{
	return d->inner * d->steps * d->columns;
}

static int len_of_o(const struct edges *d)
{
	return GRID * d->rows * d->columns;
}

/* --- text ---------------------------------------------------------------------------------------------------- */

static void print_limit(FILE *f, const struct edges *d, int form, bool column, int less)
{
	const char *index = column ? "j[None, :]" : "i[:, None]", *end = column ? "[None, :]" : "[:, None]";
	char limit[24], c = column ? 'j' : 'i';
	if (d->literal)
		snprintf(limit, sizeof limit, "%d", d->most[column] - less);
	else
		snprintf(limit, sizeof limit, "%c%d", column ? 'n' : 'm', less);
	switch (form) {
	case 0: fprintf(f, "(%s < %s)", index, limit); return;
	case 1: fprintf(f, "(%s > %s)", limit, index); return;
	case 2: fprintf(f, "(%s <= %s - 1)", index, limit); return;
	case 3: fprintf(f, "(%c < %s)%s", c, limit, end); return;
	case 4: fprintf(f, "(%s - 1 >= %c)%s", limit, c, end); return;
	case 5: fprintf(f, "(2 * %c < %s)%s", c, limit, end); return;
	case 6: fprintf(f, "(%c %% 16 < %s)%s", c, limit, end); return;
	case 7: fprintf(f, "(%c - 1 < %s)%s", c, limit, end); return;
	default: fprintf(f, column ? "(j[None, :] - i[:, None] < %s)" : "(i[:, None] - j[None, :] < %s)", limit);
	}
}

/* Is index i, where the other one is j, below the limit that has this form? */
static bool is_below(int form, int i, int j, int limit)
{
	return (form == 5 ? 2 * i : form == 6 ? i % 16 : form == 7 ? i - 1 : form == 8 ? i - j : i) < limit;
}

/* The rows or columns that loads take. */
static void print_index(FILE *f, const struct edges *d, bool column)
{
	static const char *const ways[] = {"(%c %% %s)", "tl.where(%c < %s, %c, 0)", "tl.minimum(%c, %s - 1)"};
	char c = column ? d->wide ? 'q' : 'j' : d->wide ? 'p' : 'i', size[24];
	if (d->literal)
		snprintf(size, sizeof size, "%d", d->wraps[column]);
	else
		snprintf(size, sizeof size, "%c%d", column ? 'n' : 'm', d->most[column] - d->wraps[column]);
	if (d->wraps[column])
		fprintf(f, ways[d->way[column]], c, size, c);
	else
		fprintf(f, "%c", c);
}

static int index_read(const struct edges *d, bool column, int i)
{
	int size = d->wraps[column];
	if (!size || i < size)
		return i;
	return d->way[column] == BY_MODULO ? i % size : d->way[column] == BY_WHERE ? 0 : size - 1;
}

/* An address behind what `name` points to, in the program's batch. */
static void begin_address(FILE *f, const struct edges *d, const char *name, int len)
{
	fprintf(f, "%s_ptr + ", name);
	if (d->batches > 1 && d->batch == BATCH_IN_FRONT)
		fprintf(f, "z * %d + ", len);
	fprintf(f, "(");
}

static void end_address(FILE *f, const struct edges *d, int len)
{
	if (d->batches > 1 && d->batch == BATCH_LAST)
		fprintf(f, " + z * %d", len);
	if (d->batches > 1 && d->batch == BATCH_WIDE)
		fprintf(f, " + z.to(tl.int64) * %d", len);
	fprintf(f, ")");
}

static void print_store(FILE *f, const struct edges *d, int k)
{
	char name[16];
	snprintf(name, sizeof name, "o%d", k);
	fprintf(f, "    tl.store(");
	begin_address(f, d, name, len_of_o(d));
	fprintf(f, "i[:, None] * %d + j[None, :]", d->columns);
	end_address(f, d, len_of_o(d));
	fprintf(f, ", v");
	if (d->mask[k] != M_NONE)
		fprintf(f, ", mask=");
	if (d->mask[k] != M_COLUMNS && d->mask[k] != M_NONE)
		print_limit(f, d, d->form[k][0], false, d->less[k]);
	if (d->mask[k] >= M_BOTH)
		fprintf(f, " & ");
	if (d->mask[k] >= M_COLUMNS)
		print_limit(f, d, d->form[k][1], true, 0);
	if (d->mask[k] == M_MORE)
		fprintf(f, " & ((i[:, None] + j[None, :]) %% 3 != 0)");
	fprintf(f, ")\n");
}

static char *edges_text(const struct edges *d)
{
	static const char *const steps[] = {[E_SCALE] = "v = v * 2 - 1",
					    [E_TURN] = "v = tl.trans(tl.trans(v) + 1)",
					    [E_IF] = "if m > 3:\n        v += 1",
					    [E_LOOP] = "for t in range(2):\n        v += t",
					    [E_GREATEST] = "v -= tl.max(v, 1)[:, None]",
					    [E_ROWS] = "v += tl.sum(tl.minimum(tl.maximum(v, -2), 2), 0)[None, :]",
					    [E_LEFT] = "v = tl.dot(tl.minimum(tl.maximum(v, -2), 2).to(x_type), "
						       "tl.load(c_ptr + j[:, None] * N + j[None, :]))",
					    [E_RIGHT] =
						    "r = tl.arange(0, M)\n    v += tl.dot(tl.load(e_ptr + r[:, None] * "
						    "M + r[None, :]), tl.minimum(tl.maximum(v, -2), 2).to(x_type))"};
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	fprintf(f,
		"import triton\nimport triton.language as tl\n\n@triton.jit\ndef kernel(a_ptr, b_ptr, c_ptr, e_ptr, "
		"o0_ptr, "
		"o1_ptr, o2_ptr, m, n, steps%s, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):\n"
		"    x_type: tl.constexpr = %s\n    z = tl.program_id(1)\n"
		"    i = tl.program_id(0) * M + tl.arange(0, M)\n    j = tl.arange(0, N)\n    d = tl.arange(0, K)\n"
		"    p = i.to(tl.int64)\n    q = j.to(tl.int64)\n"
		"    v = tl.zeros((M, N), %s)\n    m0 = m\n    m1 = m - 1\n    m2 = m - 2\n    n0 = n\n    for s in "
		"range(0, steps):\n"
		"        x = tl.load(",
		d->literal ? ": tl.constexpr" : "", type_names[d->type], type_names[d->sum]);
	begin_address(f, d, "a", len_of_a(d));
	print_index(f, d, false);
	fprintf(f, "[:, None] * (K * steps) + (s * K + d)[None, :]");
	end_address(f, d, len_of_a(d));
	fprintf(f, ")\n        y = tl.load(");
	begin_address(f, d, "b", len_of_b(d));
	fprintf(f, "(s * K + d)[:, None] * N + ");
	print_index(f, d, true);
	fprintf(f, "[None, :]");
	end_address(f, d, len_of_b(d));
	fprintf(f, ")\n        v = tl.dot(x, y, v)\n");
	if (d->before)
		print_store(f, d, 0);
	for (int k = 0; k < d->nsteps; k++) {
		if (d->step[k] == E_LOOP) {
			fprintf(f, "    for t in range(2):\n    ");
			print_store(f, d, IN_LOOP);
		}
		if (d->step[k] == E_WHERE) {
			fprintf(f, "    v = tl.where(");
			print_index(f, d, false);
			fprintf(f, "[:, None] %% 2 == 0, v, -v)\n");
		} else {
			fprintf(f, "    %s\n", steps[d->step[k]]);
		}
	}
	for (int k = 0; k < d->nstores; k++)
		print_store(f, d, k);
	fclose(f);
	return text;
}

/* --- numbers ------------------------------------------------------------------------------------------------- */

static int row_of(const struct edges *d, int i)
{
	return index_read(d, false, i);
}

static double clamped(double x)
{
	return fmin(fmax(x, -2), 2);
}

static void evaluate_step(const struct edges *d, enum step_kind kind, int first, double *v)
{
	int m = d->rows, n = d->columns;
	double *old = malloc((size_t)(m * n) * sizeof *old);
	memcpy(old, v, (size_t)(m * n) * sizeof *old);
	for (int i = 0; i < m; i++)
		for (int j = 0; j < n; j++) {
			double *x = &v[i * n + j], sum = 0;
			switch (kind) {
			case E_SCALE: *x = 2 * *x - 1; break;
			case E_TURN: *x += 1; break;
			case E_IF: *x += d->most[0] > 3; break;
			case E_LOOP: *x += 1; break;
			case E_WHERE: *x *= row_of(d, first + i) % 2 ? -1 : 1; break;
			case E_GREATEST:
				for (int k = 0; k < n; k++)
					sum = k ? fmax(sum, old[i * n + k]) : old[i * n];
				*x -= sum;
				break;
			case E_ROWS:
				for (int k = 0; k < m; k++)
					sum += clamped(old[k * n + j]);
				*x += sum;
				break;
			case E_LEFT:
				for (int k = 0; k < n; k++)
					sum += clamped(old[i * n + k]) * value(d->c, (size_t)(k * n + j));
				*x = sum;
				break;
			default:
				for (int k = 0; k < m; k++)
					sum += value(d->e, (size_t)(i * m + k)) * clamped(old[k * n + j]);
				*x += sum;
			}
		}
	free(old);
}

static void want_stored(const struct edges *d, int k, int z, int first, const double *v)
{
	for (int i = 0; i < d->rows; i++)
		for (int j = 0; j < d->columns; j++) {
			int row = first + i, mask = d->mask[k], most = d->most[0] - d->less[k];
			if (((mask == M_ROWS || mask >= M_BOTH) && !is_below(d->form[k][0], row, j, most)) ||
			    (mask >= M_COLUMNS && !is_below(d->form[k][1], j, row, d->most[1])) ||
			    (mask == M_MORE && (row + j) % 3 == 0))
				continue;
			size_t at = (size_t)(z * len_of_o(d) + row * d->columns + j);
			if (is_float(d->sum))
				want(d->o[k], at, v[i * d->columns + j]);
			else
				want_int(d->o[k], at, (int64_t)v[i * d->columns + j]);
		}
}

static void evaluate_batch(const struct edges *d, int z)
{
	int all = d->inner * d->steps;
	double *v = malloc((size_t)(d->rows * d->columns) * sizeof *v);
	for (int first = 0; first < GRID * d->rows; first += d->rows) {
		for (int i = 0; i < d->rows; i++)
			for (int j = 0; j < d->columns; j++) {
				double sum = 0;
				int row = row_of(d, first + i), column = index_read(d, true, j);
				for (int k = 0; k < all; k++)
					sum += value(d->a, (size_t)(z * len_of_a(d) + row * all + k)) *
					       value(d->b, (size_t)(z * len_of_b(d) + k * d->columns + column));
				v[i * d->columns + j] = sum;
			}
		for (int k = 0; k < d->nsteps; k++) {
			if (d->step[k] == E_LOOP)
				want_stored(d, IN_LOOP, z, first, v);
			evaluate_step(d, d->step[k], first, v);
		}
		for (int k = 0; k < d->nstores; k++)
			want_stored(d, k, z, first, v);
	}
	free(v);
}

static void evaluate_edges(const struct edges *d)
{
	for (int z = 0; z < d->batches; z++)
		evaluate_batch(d, z);
}

static struct array *random_array(struct suite *s, const char *name, tl_dtype type, int len)
{
	struct array *a = in(s, name, type, (size_t)(len ? len : 1));
	fill_whole(a, 2);
	return a;
}

static void edges_case(struct suite *s, int64_t seed, const char *left_out)
{
	(void)left_out; /* nothing is left out of these */
	if (!case_begin(s, NULL, "%lld.", (long long)seed))
		return;
	static const char *const names[STORES] = {"o0", "o1", "o2"};
	struct edges e, *d = &e;
	random_seed((uint64_t)seed);
	make_edges(d);
	d->a = random_array(s, "a", d->type, d->batches * len_of_a(d));
	d->b = random_array(s, "b", d->type, d->batches * len_of_b(d));
	d->c = random_array(s, "c", d->type, d->columns * d->columns);
	d->e = random_array(s, "e", d->type, d->rows * d->rows);
	for (int k = 0; k < STORES; k++)
		d->o[k] = out(s, names[k], d->sum, (size_t)(d->batches * len_of_o(d)));
	evaluate_edges(d);
	char *text = edges_text(d);
	tl_arg args[] = {ptr(d->a),       ptr(d->b),          ptr(d->c),          ptr(d->e),          ptr(d->o[0]),
			 ptr(d->o[1]),    ptr(d->o[2]),       tl_int(d->most[0]), tl_int(d->most[1]), tl_int(d->steps),
			 tl_int(d->rows), tl_int(d->columns), tl_int(d->inner)};
	tl_config config = {.grid = {GRID, (uint32_t)d->batches}, .num_warps = d->warps, .num_stages = d->stages};
	run_text(s, text, &config, args, COUNT(args), "m = %d, n = %d, steps = %d, M, N, K = %d, %d, %d", d->most[0],
		 d->most[1], d->steps, d->rows, d->columns, d->inner);
}

void theme_random_edges(struct suite *s)
{
	each_seed(s, "edges", 100, edges_case);
}
