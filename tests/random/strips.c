/* test-random --kind strips: tiles with up to 2,048 elements a thread, which become loops over parts of them. A kernel
 * is a list of loads, elementwise operations, reductions and stores of such tiles. All of its memory is read and
 * written at shifted places, through pointers that may be equal or overlap, so that the order of parts shows. */
#include "random.h"
#include "../run/suite.h"

enum { LIST = 16, POINTERS = 4, MOST_SHIFT = 3, ROOM = 16 };
enum step_kind {
	S_LOAD,
	S_COMBINE, /* of two tiles */
	S_SCALAR,  /* of a tile and the result of a reduction to a number */
	S_ROW,     /* of a tile and the result of a reduction along an axis */
	S_TOTAL,
	S_ALONG,
	S_STORE,
	S_STORE_TOTAL, /* a number, after the tile's memory */
	STEP_KINDS
};
enum combination { C_ADD, C_SUB, C_MUL, C_AND, C_MIN, C_MAX, C_WHERE, COMBINATIONS };
static const char *const combinations[] = {"%s + %s",           "%s - %s",           "%s * %s", "%s & %s",
					   "tl.minimum(%s, %s)", "tl.maximum(%s, %s)", "tl.where(i %% 3 == 1, %s, %s)"};
static const char *const reductions[] = {"sum", "max", "min", "xor_sum", "argmax"};
enum { R_SUM, R_MAX, R_MIN, R_XOR, R_ARGMAX };

struct step {
	enum step_kind kind;
	int x, y;      /* its operands: numbers of steps */
	int how, axis; /* a combination or reduction; of S_ALONG */
	int pointer, shift, other;
	bool masked;
	int32_t *v; /* its result: a tile, a number, or a vector along the other axis */
};

struct strips {
	int rank, rows, columns, stride, repeats, turn, warps, limit; /* rank 1: rows is 1. stride: between rows */
	struct step step[LIST];
	int n;
	int array[POINTERS], at[POINTERS]; /* the array and the offset of each pointer */
	int32_t *memory[POINTERS];
	size_t len;
};

static int size_of(const struct strips *p)
{
	return p->rows * p->columns;
}

/* --- making -------------------------------------------------------------------------------------------------- */

/* The number of a step with a tile, a number or a vector as its result; -1 if there is none. */
static int earlier(const struct strips *p, enum step_kind least, enum step_kind most)
{
	for (int tries = 0; tries < 20 && p->n; tries++) {
		int k = p->n - 1 - random_below(tries < 10 && p->n > 4 ? 4 : p->n);
		if (p->step[k].kind >= least && p->step[k].kind <= most)
			return k;
	}
	return -1;
}

static void add_step(struct strips *p, enum step_kind kind)
{
	struct step v = {.kind = kind, .x = -1, .y = -1, .how = random_below(COMBINATIONS)};
	v.pointer = random_below(POINTERS);
	v.shift = chance(60) ? 0 : random_below(MOST_SHIFT + 1);
	v.masked = chance(40);
	v.other = (int)random_int(-9, 9);
	v.axis = random_below(2);
	bool reduces = kind == S_TOTAL || kind == S_ALONG;
	if (reduces)
		v.how = random_below(kind == S_TOTAL && p->rank == 1 ? R_ARGMAX + 1 : R_ARGMAX);
	if (kind != S_LOAD && kind != S_STORE_TOTAL && (v.x = earlier(p, S_LOAD, S_ROW)) < 0)
		return;
	if (kind == S_COMBINE && (v.y = earlier(p, S_LOAD, S_ROW)) < 0)
		return;
	if ((kind == S_SCALAR || kind == S_STORE_TOTAL) && (v.y = earlier(p, S_TOTAL, S_TOTAL)) < 0)
		return;
	if (kind == S_ROW && (v.y = earlier(p, S_ALONG, S_ALONG)) < 0)
		return;
	if (p->rank == 1 && (kind == S_ROW || kind == S_ALONG))
		return;
	p->step[p->n++] = v;
}

static void make_strips(struct strips *p)
{
	static const int chances[STEP_KINDS] = {20, 25, 10, 10, 8, 8, 20, 4};
	memset(p, 0, sizeof *p);
	p->rank = (int)random_int(1, 2);
	int log2 = chance(20) ? 16 : (int)random_int(12, 14), rows = p->rank == 2 ? (int)random_int(1, log2 - 1) : 0;
	p->warps = log2 > 13 && chance(30) ? 2 : 1;
	p->rows = 1 << rows;
	p->columns = 1 << (log2 - rows);
	p->stride = p->columns + (chance(30) ? (int)random_int(1, 9) : 0);
	p->limit = (int)random_int(1, p->rank == 2 && chance(50) ? p->rows : p->rows * p->stride);
	p->repeats = chance(25) ? 2 : 1;
	p->turn = chance(20) && p->rows > 1;
	p->len = (size_t)p->rows * (size_t)p->stride + 2 * ROOM;
	for (int i = 0; i < POINTERS; i++) {
		bool shares = i && chance(25);
		p->array[i] = shares ? p->array[i - 1] : i;
		p->at[i] = shares && chance(50) ? random_below(ROOM - MOST_SHIFT) : 0;
	}
	int most = (int)random_int(4, log2 > 14 ? 8 : LIST - 1);
	add_step(p, S_LOAD);
	for (int tries = 0; p->n < most && tries < 100; tries++) {
		int k = 0, at = random_below(105);
		while (k < STEP_KINDS - 1 && (at -= chances[k]) >= 0)
			k++;
		add_step(p, (enum step_kind)k);
	}
	while (p->step[p->n - 1].kind != S_STORE)
		add_step(p, S_STORE);
}

/* --- evaluating ---------------------------------------------------------------------------------------------- */

static int32_t combine(enum combination how, int32_t x, int32_t y, int i)
{
	switch (how) {
	case C_ADD: return (int32_t)((uint32_t)x + (uint32_t)y);
	case C_SUB: return (int32_t)((uint32_t)x - (uint32_t)y);
	case C_MUL: return (int32_t)((uint32_t)x * (uint32_t)y);
	case C_AND: return x & y;
	case C_MIN: return x < y ? x : y;
	case C_MAX: return x > y ? x : y;
	default: return i % 3 == 1 ? x : y;
	}
}

/* The offset of an element. */
static int offset_of(const struct strips *p, int k)
{
	return k / p->columns * p->stride + k % p->columns;
}

static bool is_on(const struct strips *p, const struct step *v, int k)
{
	return !v->masked || (p->rank == 2 && p->limit <= p->rows ? k / p->columns : offset_of(p, k)) < p->limit;
}

/* Reduces n elements of x that are `by` apart. */
static int32_t reduced(int how, const int32_t *x, int n, int by)
{
	int32_t r = x[0], first = 0;
	for (int k = 1; k < n; k++) {
		int32_t y = x[(size_t)k * (size_t)by];
		if (how == R_ARGMAX && y > r)
			first = k;
		r = how == R_SUM   ? combine(C_ADD, r, y, 0)
		    : how == R_XOR ? r ^ y
				   : combine(how == R_MIN ? C_MIN : C_MAX, r, y, 0);
	}
	return how == R_ARGMAX ? first : r;
}

static void evaluate_step(struct strips *p, struct step *v, int round)
{
	const int32_t *x = v->x >= 0 ? p->step[v->x].v : NULL, *y = v->y >= 0 ? p->step[v->y].v : NULL;
	int32_t *m = p->memory[p->array[v->pointer]] + p->at[v->pointer] + v->shift + round;
	int n = size_of(p), along = v->y >= 0 ? p->step[v->y].axis : 0;
	for (int k = 0; k < n && v->kind <= S_ROW; k++) {
		int32_t other = v->kind == S_SCALAR ? y[0]
				: v->kind == S_ROW  ? y[along ? k / p->columns : k % p->columns]
				: v->kind == S_COMBINE ? y[k]
						       : 0;
		v->v[k] = v->kind != S_LOAD ? combine((enum combination)v->how, x[k], other, offset_of(p, k))
			  : is_on(p, v, k)  ? m[offset_of(p, k)]
					    : v->other;
	}
	for (int k = 0; k < n && v->kind == S_STORE; k++)
		if (is_on(p, v, k))
			m[offset_of(p, k)] = x[k];
	if (v->kind == S_TOTAL)
		v->v[0] = reduced(v->how, x, n, 1);
	for (int k = 0; k < (v->axis ? p->rows : p->columns) && v->kind == S_ALONG; k++)
		v->v[k] = v->axis ? reduced(v->how, x + (size_t)k * (size_t)p->columns, p->columns, 1)
				  : reduced(v->how, x + k, p->rows, p->columns);
	if (v->kind == S_STORE_TOTAL)
		m[p->rows * p->stride] = y[0];
}

/* --- the text ------------------------------------------------------------------------------------------------ */

static void put_step(const struct strips *p, FILE *f, int k)
{
	const struct step *v = &p->step[k];
	char x[16], y[40], place[64], mask[16] = "";
	int depth = p->repeats > 1 ? 2 : 1;
	snprintf(x, sizeof x, "v%d", v->x);
	snprintf(y, sizeof y, "v%d%s", v->y,
		 v->kind != S_ROW                ? ""
		 : p->step[v->y].axis ? "[:, None]"
				      : "[None, :]");
	snprintf(place, sizeof place, "p%d + i + %d%s", v->pointer, v->shift, p->repeats > 1 ? " + t" : "");
	if (v->masked)
		snprintf(mask, sizeof mask, ", mask=on");
	if (v->kind == S_LOAD && v->masked)
		put_line(f, depth, "v%d = tl.load(%s%s, other=%d)", k, place, mask, v->other);
	else if (v->kind == S_LOAD)
		put_line(f, depth, "v%d = tl.load(%s)", k, place);
	else if (v->kind == S_STORE)
		put_line(f, depth, "tl.store(%s, %s%s)", place, x, mask);
	else if (v->kind == S_STORE_TOTAL)
		put_line(f, depth, "tl.store(p%d + R * stride + %d%s, %s)", v->pointer, v->shift,
			 p->repeats > 1 ? " + t" : "", y);
	else if (v->kind == S_ALONG)
		put_line(f, depth, "v%d = tl.%s(%s, %d)", k, reductions[v->how], x, v->axis);
	else if (v->kind == S_TOTAL && p->rank == 2 && v->how == R_XOR)
		put_line(f, depth, "v%d = tl.xor_sum(tl.xor_sum(%s, %d), 0)", k, x, v->axis);
	else if (v->kind == S_TOTAL)
		put_line(f, depth, p->rank == 1 ? "v%d = tl.%s(%s, 0)" : "v%d = tl.%s(%s)", k, reductions[v->how], x);
	else {
		char text[80];
		snprintf(text, sizeof text, combinations[v->how], x, y);
		put_line(f, depth, "v%d = %s", k, text);
	}
}

static char *strips_text(const struct strips *p)
{
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	fprintf(f, "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"
		   "def kernel(p0, p1, p2, p3, stride, limit, R: tl.constexpr, C: tl.constexpr):\n");
	if (p->rank == 1)
		put_line(f, 1, "i = tl.arange(0, C)");
	else if (p->turn)
		put_line(f, 1, "i = tl.trans(tl.arange(0, C)[:, None] + tl.arange(0, R)[None, :] * stride)");
	else
		put_line(f, 1, "i = tl.arange(0, R)[:, None] * stride + tl.arange(0, C)[None, :]");
	put_line(f, 1, "on = %s < limit",
		 p->rank == 2 && p->limit <= p->rows ? "tl.arange(0, R)[:, None] + tl.zeros([R, C], tl.int32)" : "i");
	if (p->repeats > 1)
		put_line(f, 1, "for t in range(0, %d):", p->repeats);
	for (int k = 0; k < p->n; k++)
		put_step(p, f, k);
	fclose(f);
	return text;
}

static void strips_case(struct suite *s, int64_t seed, const char *left_out)
{
	(void)left_out; /* nothing is left out of these */
	if (!case_begin(s, NULL, "%lld.", (long long)seed))
		return;
	static const char *const names[POINTERS] = {"m0", "m1", "m2", "m3"};
	struct strips made, *p = &made;
	struct array *arrays[POINTERS];
	tl_arg args[POINTERS + 4];
	random_seed((uint64_t)seed);
	make_strips(p);
	for (int i = 0; i < POINTERS; i++) {
		arrays[i] = inout(s, names[i], TL_I32, p->len);
		p->memory[i] = calloc(p->len, sizeof *p->memory[i]);
		for (size_t k = 0; k < p->len; k++) {
			p->memory[i][k] = (int32_t)random_int(-1000, 1000);
			set_int(arrays[i], k, p->memory[i][k]);
		}
	}
	for (int i = 0; i < p->n; i++)
		p->step[i].v = calloc((size_t)size_of(p), sizeof(int32_t));
	for (int round = 0; round < p->repeats; round++)
		for (int i = 0; i < p->n; i++)
			evaluate_step(p, &p->step[i], round);
	for (int i = 0; i < POINTERS; i++) {
		args[i] = tl_ptr(TL_I32, (const char *)address(arrays[p->array[i]]) + 4 * p->at[i]);
		for (size_t k = 0; k < p->len; k++)
			want_int(arrays[i], k, p->memory[i][k]);
	}
	args[POINTERS] = tl_int(p->stride);
	args[POINTERS + 1] = tl_int(p->limit);
	args[POINTERS + 2] = tl_int(p->rows);
	args[POINTERS + 3] = tl_int(p->columns);
	tl_config config = {.grid = {1}, .num_warps = p->warps};
	run_text(s, strips_text(p), &config, args, COUNT(args), "R = %d, C = %d, stride %d, limit %d", p->rows,
		 p->columns, p->stride, p->limit);
	for (int i = 0; i < p->n; i++)
		free(p->step[i].v);
	for (int i = 0; i < POINTERS; i++)
		free(p->memory[i]);
}

void theme_random_strips(struct suite *s)
{
	each_seed(s, "strips", 60, strips_case);
}
