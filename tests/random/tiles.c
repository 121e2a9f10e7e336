/* test-random --kind tiles: products whose program works on several tiles, in one loop over all slices of all tiles,
 * with a counter that tells where a tile begins and ends, or in a loop around another one; the tile's number is
 * carried, too, or is of one of several matrices. Bounds are arguments: products of them may wrap, and there may be no
 * slices or no tiles.
 *
 * All numbers are small integers; sums are exact in every order. */
#include "random.h"
#include "../run/suite.h"

enum form {
	F_BEFORE,  /* one loop: the counter begins at -1 and is moved first of all */
	F_BEHIND,  /* it begins at 0 and is moved last */
	F_IF,      /* the same by a branch */
	F_END,     /* the same by the branch of a tile's end */
	F_NEST,    /* two loops; the tile's number is carried */
	F_TILES,   /* two loops, over tiles and slices; another number is carried beside the tile's */
	F_BATCHES, /* two loops; a tile is a number's remainder, and the number's quotient the matrix that it is of */
	FORMS
};
/* What rows, and columns, beyond a matrix are */
enum outside {
	O_MASK,  /* none, under a mask */
	O_FIRST, /* the first one */
	O_WRAP,  /* the first ones again */
	O_LAST,  /* the last one */
	OUTSIDES
};
enum { PROGRAMS = 3, MOST_TILES = 4, MOST_SLICES = 5, LEFT = 6, MOST_ROUNDS = MOST_TILES * MOST_SLICES + 1 };
/* What else the loop does, and what it does otherwise: bits */
enum {
	X_MIX = 1,        /* a number changes in each slice */
	X_TOTAL = 2,      /* the tile's number is added up in each slice */
	X_KEPT = 4,       /* the sum is not cleared behind a tile */
	X_OLD = 8,        /* the tile's number is read in front of where it is moved */
	X_MOVED = 16,     /* the tile's number is moved in the last slice, too */
	X_LOG = 32,       /* each slice stores into a log */
	X_DONE = 64,      /* tiles that have ended are counted */
	X_ONE_MORE = 256, /* a slice is missing: the last tile does not end */
	X_ELSE = 512,     /* the branch of a tile's end has another side; the bound is a product from the left */
	X_SWAPPED = 1024, /* the bound is tiles * slices */
	X_PARTS = 2048,   /* the number of tiles is chosen by the program's number, as tutorials do */
	X_LITERAL = 4096, /* the number of slices is a literal, and of a matrix's rows of tiles */
	X_CDIV = 128,     /* it is computed from the numbers of a row */
	X_SIZES = 8192,   /* the matrices' sizes are literals */
	X_ASKED = 16384,  /* the innermost loop asks for a producer */
};

struct tiles {
	enum form form;
	int extras, m, n, k, rows, columns, step, warps, stages, slices, programs;
	int32_t tiles;   /* argument: of each program, or with X_PARTS of all; of F_BATCHES: matrices */
	int limit, high; /* rows of each matrix, and how many rows the next one's begin behind its own */
	int wide, deep;  /* columns, and numbers of a row */
	enum outside rows_outside, columns_outside;
	bool even; /* nothing masks what is behind a row's numbers */
	struct array *a, *b, *c, *numbers, *log;
};

/* Of a program, as it runs. */
struct state {
	int32_t tile, counter, mix, total, done, round, beside;
	double acc[64 * 64];
};

static bool has(const struct tiles *t, int extra)
{
	return (t->extras & extra) != 0;
}

static bool is_flat(const struct tiles *t)
{
	return t->form < F_NEST;
}

/* How much of a tile is behind a matrix's edge; often so that rows begin at multiples of 16. */
static int left_out(int tile)
{
	return chance(50) ? 0 : chance(70) ? 16 * random_below(tile / 16) : random_below(tile);
}

/* Matrices of one column of tiles, or more; as many as make the tiles MOST_TILES a program. */
static void make_batches(struct tiles *t)
{
	bool wraps = chance(15);
	int down = wraps ? 3 : (int)random_int(1, MOST_TILES * t->programs / t->columns);
	if (wraps)
		t->columns = 1;
	t->extras &= ~X_PARTS;
	t->step = t->programs;
	t->high = down * t->m;
	t->limit = t->high - random_below(t->m);
	t->rows = t->high * (MOST_TILES * PROGRAMS / down + 1);
	t->tiles = wraps        ? 1431655766
		   : chance(85) ? (int)random_int(1, MOST_TILES * t->programs / (down * t->columns))
				: (int)random_int(-2, 0);
}

static void make_tiles(struct tiles *t)
{
	static const int all[] = {X_MIX,      X_TOTAL, X_KEPT,    X_OLD,     X_MOVED, X_LOG,   X_DONE,
				  X_ONE_MORE, X_ELSE,  X_SWAPPED, X_LITERAL, X_CDIV,  X_SIZES, X_ASKED};
	static const int chances[] = {30, 25, 10, 10, 6, 15, 30, 6, 10, 50, 20, 50, 15, 60};
	memset(t, 0, sizeof *t);
	t->form = random_below(FORMS);
	for (int i = 0; i < COUNT(all); i++)
		t->extras |= chance(chances[i]) ? all[i] : 0;
	t->warps = 1 << random_int(1, 3);
	t->m = chance(50) ? 64 : 1 << random_int(4, 6);
	t->n = 1 << random_int(4, 6);
	t->k = 1 << random_int(4, 6);
	t->stages = (int)random_int(1, 4);
	t->programs = (int)random_int(1, PROGRAMS);
	t->step = chance(70) ? t->programs : (int)random_int(1, 2);
	t->columns = (int)random_int(1, 3);
	if (t->step != t->programs || has(t, X_MOVED)) /* two of them would store the same tile */
		t->programs = 1;
	t->slices = chance(85) ? (int)random_int(1, MOST_SLICES) : 0;
	t->tiles = chance(85) ? (int)random_int(1, MOST_TILES) : (int)random_int(-2, 0);
	if (chance(30)) {
		t->extras |= X_PARTS;
		t->tiles = (int)random_int(0, MOST_TILES * t->programs);
	} else if (is_flat(t) && chance(15)) { /* 3 * 1431655766 is 2^32 + 2 */
		t->slices = 3;
		t->tiles = 1431655766;
	}
	t->rows_outside = chance(50) ? O_MASK : random_below(OUTSIDES);
	t->columns_outside = chance(50) ? O_MASK : random_below(OUTSIDES);
	t->even = chance(50);
	t->wide = t->columns * t->n - left_out(t->n);
	t->deep = t->slices ? t->slices * t->k - left_out(t->k) : 0;
	t->high = (MOST_TILES + 2) * PROGRAMS * t->m;
	t->limit = t->rows = t->high - random_below(t->m);
	if (t->form == F_BATCHES)
		make_batches(t);
}

/* --- text ---------------------------------------------------------------------------------------------------- */

static void print_outside(FILE *f, const char *in, enum outside how, char index, char size)
{
	static const char *const ways[OUTSIDES] = {NULL, "tl.where(%c < %c, %c, 0)", "%c %% %c",
						   "tl.minimum(%c, %c - 1)"};
	if (how == O_MASK)
		return;
	fprintf(f, "%s%c = ", in, index);
	fprintf(f, ways[how], index, size, index);
	fprintf(f, "\n");
}

/* A load's mask: of its index into a matrix of so many, and of the numbers of a row. */
static void print_mask(FILE *f, bool masked, const char *index, bool even, const char *place)
{
	if (masked || !even)
		fprintf(f, ", mask=%s%s%s, other=0.0", masked ? index : "", masked && !even ? " & " : "",
			even ? "" : place);
	fprintf(f, ")\n");
}

static void print_begin(FILE *f, const struct tiles *t, const char *in)
{
	if (t->form == F_BATCHES)
		fprintf(f, "%sz = number // per\n%stile = number %% per\n", in, in);
	else
		fprintf(f, "%stile += %d\n", in, t->step);
	fprintf(f, "%srow = tile // %d * %d\n%scolumn = tile %% %d * %d\n", in, t->columns, t->m, in, t->columns, t->n);
	fprintf(f, "%si = row + tl.arange(0, %d)\n%sj = column + tl.arange(0, %d)\n", in, t->m, in, t->n);
	print_outside(f, in, t->rows_outside, 'i', 'M');
	print_outside(f, in, t->columns_outside, 'j', 'N');
}

static void print_slice(FILE *f, const struct tiles *t, const char *in, const char *k)
{
	fprintf(f, "%sd = %s * %d + tl.arange(0, %d)\n", in, k, t->k, t->k);
	fprintf(f, "%sx = tl.load(a_ptr%s + i[:, None] * (%d * %d) + d[None, :]", in,
		t->form == F_BATCHES ? " + z * sa" : "", MOST_SLICES, t->k);
	print_mask(f, t->rows_outside == O_MASK, "(i < M)[:, None]", t->even, "(d < K)[None, :]");
	fprintf(f, "%sy = tl.load(b_ptr + d[:, None] * (%d * %d) + j[None, :]", in, t->columns, t->n);
	print_mask(f, t->columns_outside == O_MASK, "(j < N)[None, :]", t->even, "(d < K)[:, None]");
	fprintf(f, "%sacc = tl.dot(x, y, acc)\n", in);
	if (has(t, X_MIX))
		fprintf(f, "%smix = mix * 31 + %s\n", in, k);
	if (has(t, X_TOTAL))
		fprintf(f, "%stotal += tile\n", in);
	if (has(t, X_LOG))
		fprintf(f, "%stl.store(log_ptr + pid * %d + round, tile * 8 + %s)\n%sround += 1\n", in, MOST_ROUNDS, k,
			in);
}

static void print_end(FILE *f, const struct tiles *t, const char *in, const char *number)
{
	fprintf(f, "%sci = %s // %d * %d + tl.arange(0, %d)\n%scj = %s %% %d * %d + tl.arange(0, %d)\n", in, number,
		t->columns, t->m, t->m, in, number, t->columns, t->n, t->n);
	fprintf(f,
		"%stl.store(c_ptr%s + ci[:, None] * (%d * %d) + cj[None, :], acc, mask=(ci < M)[:, None] & (cj < "
		"N)[None, :])\n",
		in, t->form == F_BATCHES ? " + z * sc" : "", t->columns, t->n);
	if (!has(t, X_KEPT))
		fprintf(f, "%sacc = tl.zeros((%d, %d), tl.float32)\n", in, t->m, t->n);
	if (has(t, X_DONE))
		fprintf(f, "%sdone += %s\n", in, is_flat(t) ? "k + 1" : "1");
	if (has(t, X_MOVED))
		fprintf(f, "%stile += 1\n", in);
}

static void print_flat(FILE *f, const struct tiles *t, const char *last)
{
	const char *in = "        ", *deep = "            ";
	char move[120];
	snprintf(move, sizeof move, "%sk = tl.where(k == %s, 0, k + 1)\n", in, last);
	fprintf(f, "    for _ in tl.range(0, %s%s%s):\n", has(t, X_SWAPPED) ? "tiles * slices" : "slices * tiles",
		has(t, X_ONE_MORE) ? " - 1" : "", has(t, X_ASKED) ? ", warp_specialize=True" : "");
	if (t->form == F_BEFORE)
		fprintf(f, "%s", move);
	if (has(t, X_OLD))
		fprintf(f, "%stotal += tile * 3\n", in);
	fprintf(f, "%sif k == 0:\n", in);
	print_begin(f, t, deep);
	print_slice(f, t, in, "k");
	fprintf(f, "%sif k == %s:\n", in, last);
	print_end(f, t, deep, "tile");
	if (t->form == F_END)
		fprintf(f, "%sk = 0\n", deep);
	if (t->form == F_END || has(t, X_ELSE))
		fprintf(f, "%selse:\n", in);
	if (has(t, X_ELSE))
		fprintf(f, "%stl.store(log_ptr + pid * %d + %d, k)\n", deep, MOST_ROUNDS, MOST_ROUNDS - 1);
	if (has(t, X_ELSE) && has(t, X_TOTAL))
		fprintf(f, "%stotal += 1\n", deep);
	if (t->form == F_END)
		fprintf(f, "%sk += 1\n", deep);
	if (t->form == F_BEHIND)
		fprintf(f, "%s", move);
	if (t->form == F_IF)
		fprintf(f, "%sif k == %s:\n%sk = 0\n%selse:\n%sk += 1\n", in, last, deep, in, deep);
}

static void print_nest(FILE *f, const struct tiles *t)
{
	const char *in = "        ";
	bool over_tiles = t->form == F_TILES;
	if (t->form == F_BATCHES) {
		fprintf(f, has(t, X_LITERAL) ? "    down = %d\n" : "    down = tl.cdiv(M, %d)\n",
			has(t, X_LITERAL) ? t->high / t->m : t->m);
		fprintf(f,
			"    columns = %d\n    per = down * columns\n"
			"    for number in tl.range(pid, %s, %d, flatten=True):\n",
			t->columns,
			has(t, X_SWAPPED) ? "per * tiles"
			: has(t, X_ELSE)  ? "tiles * down * columns"
					  : "tiles * per",
			t->programs);
	} else if (over_tiles)
		fprintf(f, "    for number in tl.range(tile + %d, tile + %d + %d * tiles, %d, flatten=True):\n",
			t->step, t->step, t->step, t->step);
	else
		fprintf(f, "    for t in tl.range(0, tiles, flatten=True):\n");
	if (has(t, X_OLD))
		fprintf(f, "%stotal += tile * 3\n", in);
	print_begin(f, t, in);
	fprintf(f, "%sfor k in tl.range(0, slices%s):\n", in, has(t, X_ASKED) ? ", warp_specialize=True" : "");
	print_slice(f, t, "            ", "k");
	if (over_tiles)
		fprintf(f, "%sbeside += %d\n", in, t->step);
	print_end(f, t, in, over_tiles && !has(t, X_MOVED) ? "beside" : "tile");
}

static char *tiles_text(const struct tiles *t)
{
	static const char *const names[LEFT] = {"tile", "k", "mix", "total", "done", "round"};
	char *text = NULL, last[24] = "slices - 1";
	size_t len;
	FILE *f = open_memstream(&text, &len);
	fprintf(f, "import triton\nimport triton.language as tl\n\n@triton.jit\n"
		   "def kernel(a_ptr, b_ptr, c_ptr, numbers_ptr, log_ptr, M, slices, tiles, sa, sc, N, K):\n"
		   "    pid = tl.program_id(0)\n");
	if (has(t, X_SIZES))
		fprintf(f, "    M = %d\n    N = %d\n    K = %d\n", t->limit, t->wide, t->deep);
	if (has(t, X_CDIV))
		fprintf(f, "    slices = tl.cdiv(K, %d)\n", t->k);
	if (has(t, X_LITERAL)) {
		fprintf(f, "    slices = %d\n", t->slices);
		snprintf(last, sizeof last, "%d", t->slices - 1);
	}
	if (has(t, X_PARTS))
		fprintf(f,
			"    parts = tiles // %d\n    if pid < tiles %% %d:\n        parts += 1\n    tiles = parts\n",
			t->programs, t->programs);
	fprintf(f,
		"    tile = pid - %d\n    beside = tile\n    k = %d\n    mix = 1\n    total = 0\n    done = 0\n    "
		"round = 0\n",
		t->step, t->form == F_BEFORE ? -1 : 0);
	fprintf(f, "    i = tl.arange(0, %d)\n    j = tl.arange(0, %d)\n    acc = tl.zeros((%d, %d), tl.float32)\n",
		t->m, t->n, t->m, t->n);
	if (is_flat(t))
		print_flat(f, t, last);
	else
		print_nest(f, t);
	for (int i = 0; i < LEFT; i++)
		if (is_flat(t) || i != 1)
			fprintf(f, "    tl.store(numbers_ptr + pid * %d + %d, %s)\n", LEFT, i, names[i]);
	fclose(f);
	return text;
}

/* --- numbers ------------------------------------------------------------------------------------------------- */

static int32_t add(int32_t x, int32_t y)
{
	return (int32_t)((uint32_t)x + (uint32_t)y);
}

static int32_t times(int32_t x, int32_t y)
{
	return (int32_t)((uint32_t)x * (uint32_t)y);
}

static bool is_inside(const struct tiles *t, int row)
{
	return row % t->high < t->limit;
}

/* The one of `size` that number i is; -1: none. */
static int found(int i, int size, enum outside how)
{
	return i < size ? i : how == O_FIRST ? 0 : how == O_WRAP ? i % size : how == O_LAST ? size - 1 : -1;
}

static void run_slice(const struct tiles *t, struct state *s, int pid, int k, int32_t begun)
{
	int first = begun / t->columns * t->m, column = begun % t->columns * t->n, end = (k + 1) * t->k;
	for (int i = 0; i < t->m; i++) {
		int row = found((first + i) % t->high, t->limit, t->rows_outside);
		int base = first + i - (first + i) % t->high;
		for (int j = 0; j < t->n; j++) {
			int n = found(column + j, t->wide, t->columns_outside);
			for (int d = k * t->k; d < (t->even || t->deep > end ? end : t->deep) && row >= 0 && n >= 0;
			     d++)
				s->acc[i * t->n + j] += value(t->a, (size_t)((base + row) * MOST_SLICES * t->k + d)) *
							value(t->b, (size_t)(d * t->columns * t->n + n));
		}
	}
	if (has(t, X_MIX))
		s->mix = add(times(s->mix, 31), k);
	if (has(t, X_TOTAL))
		s->total = add(s->total, s->tile);
	if (has(t, X_LOG))
		want_int(t->log, (size_t)(pid * MOST_ROUNDS + s->round++), add(times(s->tile, 8), k));
}

static void run_end(const struct tiles *t, struct state *s, int32_t tile)
{
	int first = tile / t->columns * t->m, column = tile % t->columns * t->n;
	for (int i = 0; i < t->m && is_inside(t, first + i); i++)
		for (int j = 0; j < t->n && column + j < t->wide; j++)
			want(t->c, (size_t)((first + i) * t->columns * t->n + column + j), s->acc[i * t->n + j]);
	if (!has(t, X_KEPT))
		memset(s->acc, 0, sizeof s->acc);
	s->done += has(t, X_DONE) ? is_flat(t) ? t->slices : 1 : 0;
	s->tile += has(t, X_MOVED);
}

static void run_flat(const struct tiles *t, struct state *s, int pid, int32_t tiles)
{
	int32_t all = add(times(t->slices, tiles), -has(t, X_ONE_MORE)), begun = 0, other = -1;
	for (int32_t round = 0; round < all; round++) {
		int32_t next = s->counter == t->slices - 1 ? 0 : s->counter + 1;
		if (t->form == F_BEFORE)
			s->counter = next;
		if (has(t, X_OLD))
			s->total = add(s->total, times(s->tile, 3));
		if (s->counter == 0)
			begun = s->tile += t->step;
		run_slice(t, s, pid, s->counter, begun);
		if (s->counter == t->slices - 1)
			run_end(t, s, s->tile);
		else if (has(t, X_ELSE))
			s->total += has(t, X_TOTAL), other = s->counter;
		if (t->form != F_BEFORE)
			s->counter = next;
	}
	if (other >= 0)
		want_int(t->log, (size_t)(pid * MOST_ROUNDS + MOST_ROUNDS - 1), other);
}

static void run_nest(const struct tiles *t, struct state *s, int pid, int32_t tiles)
{
	for (int n = 0; n < tiles; n++) {
		if (has(t, X_OLD))
			s->total = add(s->total, times(s->tile, 3));
		int32_t begun = s->tile += t->step;
		for (int k = 0; k < t->slices; k++)
			run_slice(t, s, pid, k, begun);
		run_end(t, s, s->tile);
	}
}

static void run_batches(const struct tiles *t, struct state *s, int pid)
{
	int32_t per = t->high / t->m * t->columns, all = times(t->tiles, per);
	for (int32_t number = pid; number < all; number += t->programs) {
		if (has(t, X_OLD))
			s->total = add(s->total, times(s->tile, 3));
		s->tile = number % per;
		for (int k = 0; k < t->slices; k++)
			run_slice(t, s, pid, k, number);
		run_end(t, s, number);
	}
}

static void evaluate_tiles(const struct tiles *t)
{
	struct state *s = malloc(sizeof *s);
	for (int pid = 0; pid < t->programs; pid++) {
		int32_t tiles = t->tiles;
		if (has(t, X_PARTS))
			tiles = tiles / t->programs + (pid < tiles % t->programs);
		*s = (struct state){.tile = pid - t->step, .counter = t->form == F_BEFORE ? -1 : 0, .mix = 1};
		if (is_flat(t))
			run_flat(t, s, pid, tiles);
		else if (t->form == F_BATCHES)
			run_batches(t, s, pid);
		else
			run_nest(t, s, pid, tiles);
		const int32_t numbers[LEFT] = {s->tile, s->counter, s->mix, s->total, s->done, s->round};
		for (int i = 0; i < LEFT; i++)
			if (is_flat(t) || i != 1)
				want_int(t->numbers, (size_t)(pid * LEFT + i), numbers[i]);
	}
	free(s);
}

static void tiles_case(struct suite *s, int64_t seed, const char *left_out)
{
	(void)left_out; /* nothing is left out of these */
	if (!case_begin(s, NULL, "%lld.", (long long)seed))
		return;
	struct tiles made, *t = &made;
	random_seed((uint64_t)seed);
	make_tiles(t);
	int all = MOST_SLICES * t->k, width = t->columns * t->n;
	t->a = in(s, "a", TL_F16, (size_t)(t->rows * all));
	t->b = in(s, "b", TL_F16, (size_t)(all * width));
	fill_whole(t->a, 2), fill_whole(t->b, 2);
	t->c = out(s, "c", TL_F32, (size_t)(t->rows * width));
	t->numbers = out(s, "numbers", TL_I32, PROGRAMS * LEFT);
	t->log = out(s, "log", TL_I32, PROGRAMS * MOST_ROUNDS);
	evaluate_tiles(t);
	char *text = tiles_text(t);
	tl_arg args[] = {
		ptr(t->a),        ptr(t->b),         ptr(t->c),        ptr(t->numbers),       ptr(t->log),
		tl_int(t->limit), tl_int(t->slices), tl_int(t->tiles), tl_int(t->high * all), tl_int(t->high * width),
		tl_int(t->wide),  tl_int(t->deep)};
	tl_config config = {.grid = {(uint32_t)t->programs}, .num_warps = t->warps, .num_stages = t->stages};
	run_text(s, text, &config, args, COUNT(args), "%d programs, M = %d, slices = %d, tiles = %d, N = %d, K = %d",
		 t->programs, t->limit, t->slices, t->tiles, t->wide, t->deep);
}

void theme_random_tiles(struct suite *s)
{
	each_seed(s, "tiles", 100, tiles_case);
}
