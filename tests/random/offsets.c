/* test-random --kind offsets: offsets of addresses that leave 32 bits, from sums, products, quotients, choices and
 * carried values. With much memory behind the pointer an offset and all that it is computed from are the integers that
 * the source says, in masks too; other operations have them modulo 2^32, and with little memory all have. The kernels
 * only tell the addresses, since few machines have the memory. */
#include "random.h"
#include "../run/suite.h"

enum { SIDE = 8, BLOCK = SIDE * SIDE, GRID = 3, VALUES = 24, ARGUMENTS = 4, LANES = GRID * BLOCK, MOST_SHIFT = 7 };
enum operation {
	O_PID,
	O_RANGE,
	O_ARGUMENT,
	O_ADD,
	O_SUB,
	O_MUL,
	O_DIV,
	O_REM,
	O_MIN,
	O_MAX,
	O_WHERE,
	O_SHIFT, /* by the low bits of y */
	O_AND,
	O_SHORT,
	O_WIDE,
	O_TURN,
	O_IF,
	O_FOR,
	O_WHILE,
	O_FINISH
};

struct offset_value {
	enum operation op;
	int x, y, constant; /* operands, constant: of O_DIV to O_AND and loops */
	bool tile, wide;    /* wide: of 64 bits */
	bool joins;         /* the offset is computed from it */
	double bound;       /* of its magnitude, if nothing wraps */
	int64_t at[LANES];
};

struct offsets {
	struct offset_value v[VALUES];
	int n, compared; /* compared: another value that a mask is made of */
	int64_t argument[ARGUMENTS], limit;
};

static double most_held(const struct offset_value *v)
{
	return v->wide ? v->bound : fmax(v->bound, 0x1p31);
}

/* --- making one ---------------------------------------------------------------------------------------------- */

static struct offset_value *new_value(struct offsets *p, enum operation op, double bound)
{
	struct offset_value *v = &p->v[p->n++];
	*v = (struct offset_value){.op = op, .bound = bound, .x = -1, .y = -1};
	return v;
}

static void add_leaves(struct offsets *p)
{
	new_value(p, O_PID, GRID);
	new_value(p, O_RANGE, BLOCK)->tile = true;
	for (int i = 0; i < ARGUMENTS; i++) {
		int64_t most = (int64_t)1 << random_int(4, chance(20) ? 36 : 31);
		int64_t a = p->argument[i] = random_int(2, most - 1) * (chance(20) ? -1 : 1);
		struct offset_value *v = new_value(p, O_ARGUMENT, fabs((double)a));
		v->x = i;
		v->wide = a != (int32_t)a;
	}
}

static double bound_of_operation(enum operation op, double x, double y, int constant)
{
	switch (op) {
	case O_ADD:
	case O_SUB: return x + y;
	case O_MUL: return x * y;
	case O_SHIFT: return x * (1 << MOST_SHIFT);
	case O_FOR:
	case O_WHILE: return x + constant * y;
	case O_AND: return 1 << 30;
	case O_SHORT: return 1 << 15;
	default: return fmax(x, y);
	}
}

static bool fits(const struct offset_value *v, const struct offset_value *x, const struct offset_value *y)
{
	bool same = x->tile == y->tile && x->wide == y->wide;
	switch (v->op) {
	case O_IF: return same;
	case O_FOR:
	case O_WHILE: return x->tile >= y->tile && x->wide >= y->wide;
	case O_WIDE: return !x->wide;
	case O_TURN: return x->tile;
	default: return true;
	}
}

static void add_operation(struct offsets *p)
{
	struct offset_value v = {.op = (enum operation)random_int(O_ADD, O_WHILE), .x = random_below(p->n)};
	bool two = v.op <= O_MUL || v.op == O_MIN || v.op == O_MAX || v.op == O_WHERE || v.op == O_SHIFT ||
		   v.op >= O_IF;
	if (chance(40)) /* chains */
		v.x = p->n - 1;
	v.y = two ? random_below(p->n) : -1;
	const struct offset_value *x = &p->v[v.x], *y = two ? &p->v[v.y] : x;
	v.constant = v.op == O_FOR || v.op == O_WHILE ? random_below(5)
		     : v.op == O_AND                  ? (1 << random_int(3, 30)) - 1
						      : (int)random_int(2, (int64_t)1 << random_int(2, 20));
	v.tile = x->tile || y->tile || v.op == O_WHERE;
	v.wide = v.op != O_SHORT && (x->wide || y->wide || v.op == O_WIDE);
	v.bound = bound_of_operation(v.op, x->bound, y->bound, v.constant);
	if (fits(&v, x, y) && bound_of_operation(v.op, most_held(x), most_held(y), v.constant) <= 0x1p62)
		p->v[p->n++] = v;
}

/* Which values the offset, the last one, is computed from by operations that are widened. */
static void find_joining(struct offsets *p)
{
	p->v[p->n - 1].joins = true;
	for (int i = p->n - 1; i >= 0; i--) {
		const struct offset_value *v = &p->v[i];
		if (!v->joins || v->op < O_ADD || v->op == O_AND || v->op == O_SHORT)
			continue;
		p->v[v->x].joins = true;
		if (v->y >= 0 && v->op != O_SHIFT)
			p->v[v->y].joins = true;
	}
}

static void make_offsets(struct offsets *p)
{
	memset(p, 0, sizeof *p);
	add_leaves(p);
	int most = (int)random_int(ARGUMENTS + 4, VALUES - 1);
	for (int tries = 0; p->n < most && tries < 200; tries++)
		add_operation(p);
	struct offset_value *last = &p->v[p->n - 1], *v = new_value(p, O_FINISH, last->bound + BLOCK);
	v->x = p->n - 2;
	v->y = 1;
	v->tile = true;
	v->wide = last->wide;
	find_joining(p);
	do
		p->compared = random_below(p->n);
	while (!p->v[p->compared].joins);
	p->limit = random_int(-((int64_t)1 << 33), (int64_t)1 << 33);
}

/* --- what it gives ------------------------------------------------------------------------------------------- */

static int64_t apply(const struct offset_value *v, int lane, int64_t x, int64_t y)
{
	switch (v->op) {
	case O_ADD:
	case O_FINISH: return x + y;
	case O_SUB: return x - y;
	case O_MUL: return x * y;
	case O_SHIFT: return x * (1 << (y & MOST_SHIFT));
	case O_DIV: return x / v->constant;
	case O_REM: return x % v->constant;
	case O_MIN: return x < y ? x : y;
	case O_MAX: return x > y ? x : y;
	case O_WHERE: return lane % BLOCK < v->constant % BLOCK ? x : y;
	case O_IF: return lane / BLOCK % 2 ? y : x;
	case O_FOR:
	case O_WHILE: return x + v->constant * y;
	default: return x;
	}
}

/* As the machine holds it where nothing is widened. */
static int64_t held(const struct offset_value *v, int64_t x)
{
	return v->wide ? x : (int32_t)x;
}

/* The lane of a program's tile, as a square of rows and columns, that a transposition puts here. */
static int turned(int lane)
{
	int i = lane % BLOCK;
	return lane - i + i % SIDE * SIDE + i / SIDE;
}

static void evaluate_value(struct offsets *p, struct offset_value *v, int lane, bool much)
{
	bool exact = much && v->joins;
	if (v->op == O_PID) {
		v->at[lane] = lane / BLOCK;
	} else if (v->op == O_RANGE) {
		v->at[lane] = lane % BLOCK;
	} else if (v->op == O_ARGUMENT) {
		v->at[lane] = p->argument[v->x];
	} else {
		const struct offset_value *x = &p->v[v->x], *y = v->y >= 0 ? &p->v[v->y] : x;
		int64_t a = x->at[v->op == O_TURN ? turned(lane) : lane], b = y->at[lane];
		if (v->op == O_AND)
			v->at[lane] = held(x, a) & v->constant;
		else if (v->op == O_SHORT)
			v->at[lane] = (int16_t)a;
		else
			v->at[lane] = exact ? apply(v, lane, a, b) : held(v, apply(v, lane, held(x, a), held(y, b)));
	}
}

/* --- its text ------------------------------------------------------------------------------------------------ */

static void print_value(FILE *f, const struct offset_value *v, int i)
{
	static const char *const infix[] = {[O_ADD] = "+", [O_SUB] = "-", [O_MUL] = "*", [O_FINISH] = "+"};
	static const char *const by[] = {[O_DIV] = "//", [O_REM] = "%", [O_AND] = "&"};
	fprintf(f, "    ");
	switch (v->op) {
	case O_PID: fprintf(f, "v%d = tl.program_id(0)\n", i); break;
	case O_RANGE: fprintf(f, "v%d = tl.arange(0, %d)\n", i, BLOCK); break;
	case O_ARGUMENT: fprintf(f, "v%d = a%d\n", i, v->x); break;
	case O_ADD:
	case O_SUB:
	case O_MUL:
	case O_FINISH: fprintf(f, "v%d = v%d %s v%d\n", i, v->x, infix[v->op], v->y); break;
	case O_DIV:
	case O_REM:
	case O_AND: fprintf(f, "v%d = v%d %s %d\n", i, v->x, by[v->op], v->constant); break;
	case O_MIN:
	case O_MAX: fprintf(f, "v%d = tl.%simum(v%d, v%d)\n", i, v->op == O_MIN ? "min" : "max", v->x, v->y); break;
	case O_WHERE: fprintf(f, "v%d = tl.where(v1 < %d, v%d, v%d)\n", i, v->constant % BLOCK, v->x, v->y); break;
	case O_SHORT: fprintf(f, "v%d = v%d.to(tl.int16).to(tl.int32)\n", i, v->x); break;
	case O_TURN:
		fprintf(f, "v%d = tl.reshape(tl.trans(tl.reshape(v%d, (%d, %d))), (%d,))\n", i, v->x, SIDE, SIDE,
			BLOCK);
		break;
	case O_SHIFT: fprintf(f, "v%d = v%d << (v%d & %d)\n", i, v->x, v->y, MOST_SHIFT); break;
	case O_WIDE: fprintf(f, "v%d = v%d.to(tl.int64)\n", i, v->x); break;
	case O_IF:
		fprintf(f, "if v0 %% 2 == 0:\n        v%d = v%d\n    else:\n        v%d = v%d\n", i, v->x, i, v->y);
		break;
	case O_FOR:
		fprintf(f, "v%d = v%d\n    for i in range(%d):\n        v%d += v%d\n", i, v->x, v->constant, i, v->y);
		break;
	case O_WHILE:
		fprintf(f, "v%d = v%d\n    i = 0\n    while i < %d:\n        v%d += v%d\n        i += 1\n", i, v->x,
			v->constant, i, v->y);
		break;
	}
}

static char *offsets_text(const struct offsets *p)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	fprintf(f, "import triton\nimport triton.language as tl\n\n@triton.jit\n"
		   "def kernel(x, offsets, masks, others, limit, a0, a1, a2, a3):\n");
	for (int i = 0; i < p->n; i++)
		print_value(f, &p->v[i], i);
	fprintf(f, "    at = v0 * %d + v1\n    tl.store(offsets + at, (x + v%d).to(tl.int64) - x.to(tl.int64))\n",
		BLOCK, p->n - 1);
	fprintf(f, "    tl.store(masks + at, v%d < limit)\n    tl.store(others + at, v%d >= limit)\n", p->n - 1,
		p->compared);
	fclose(f);
	return text;
}

/* --- cases --------------------------------------------------------------------------------------------------- */

static void launch_offsets(struct suite *s, struct offsets *p, const char *text, bool much)
{
	struct array *offsets = out(s, much ? "offsets" : "few_offsets", TL_I64, LANES);
	struct array *masks = out(s, much ? "masks" : "few_masks", TL_I8, LANES);
	struct array *others = out(s, much ? "others" : "few_others", TL_I8, LANES);
	for (int i = 0; i < p->n; i++)
		for (int lane = 0; lane < LANES; lane++)
			evaluate_value(p, &p->v[i], lane, much);
	for (int i = 0; i < LANES; i++) {
		want_int(offsets, (size_t)i, p->v[p->n - 1].at[i]);
		want_int(masks, (size_t)i, p->v[p->n - 1].at[i] < p->limit);
		want_int(others, (size_t)i, p->v[p->compared].at[i] >= p->limit);
	}
	tl_arg args[] = {tl_range(TL_I8, address(offsets), much ? (size_t)1 << 33 : LANES),
			 ptr(offsets),
			 ptr(masks),
			 ptr(others),
			 tl_int(p->limit),
			 tl_int(p->argument[0]),
			 tl_int(p->argument[1]),
			 tl_int(p->argument[2]),
			 tl_int(p->argument[3])};
	launch_text(s, text, "kernel", CONFIG(.grid = {GRID}), args, COUNT(args));
}

static void offsets_case(struct suite *s, int64_t seed, const char *left_out)
{
	(void)left_out; /* nothing is left out of these */
	if (!case_begin(s, NULL, "%lld.", (long long)seed))
		return;
	struct offsets *p = calloc(1, sizeof *p);
	random_seed((uint64_t)seed);
	make_offsets(p);
	char *text = offsets_text(p);
	int failed = s->nfailed;
	launch_offsets(s, p, text, true);
	launch_offsets(s, p, text, false);
	case_end(s);
	if (s->nfailed > failed || getenv("RANDOM_TEXT"))
		printf("# limit %lld, arguments %lld %lld %lld %lld\n%s", (long long)p->limit,
		       (long long)p->argument[0], (long long)p->argument[1], (long long)p->argument[2],
		       (long long)p->argument[3], text);
	free(text);
	free(p);
}

void theme_random_offsets(struct suite *s)
{
	each_seed(s, "offsets", 100, offsets_case);
}
