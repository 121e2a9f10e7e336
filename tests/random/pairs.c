/* test-random --kind pairs: products in which neighbouring programs read the same TMA tiles of one operand, or of
 * neither. The order of programs, the distance of rows, the first slice of the loop, the number of programs in a block
 * and the number of programs are random. The last program may have no neighbour. Programs may count tiles by an atomic
 * addition after the loop.
 *
 * All numbers are small integers; sums are exact in every order. */
#include "random.h"
#include "../run/suite.h"
#include "../run/themes.h"

enum order {
	D_ROWS,    /* along a row of tiles first */
	D_COLUMNS, /* along a column */
	D_GROUPS,  /* along columns of so many rows */
	D_GRID,    /* rows along x, columns along y */
	D_ACROSS,  /* columns along x, rows along y */
	ORDERS
};
enum walk {
	W_ONE,    /* a tile a program */
	W_STEP,   /* a loop over tiles, with a literal step */
	W_BLOCKS, /* in steps of the number of programs */
	WALKS
};
enum end { E_ARGUMENT, E_LOADED, E_ROW /* the row of tiles tells how far the loop goes */ };
enum begin { B_FIRST, B_LITERAL /* at some slice */, B_ROW /* at the slice with the number of the row of tiles */ };
enum { MOST_TILES = 5, MOST_BATCHES = 3, ROW_STEP = 100 };

struct pairs {
	enum order order;
	enum walk walk;
	enum operands operands;
	enum end end;
	enum begin begin;
	tl_dtype type;
	int bm, bn, bk, m, n, k, group, batches, warps, stages, blocks, programs;
	int sa, sb;              /* from row to row of a and b */
	bool a_turned, b_turned; /* they lie transposed */
	bool second;             /* two products share a */
	bool asked, flatten;
	bool turned; /* the result is stored transposed, too */
	bool rest;   /* masks compare with the rest of K */
	bool back;   /* carried pointers begin at the first slice, wherever the loop begins */
	bool counts; /* each tile takes a number when it is done */
	struct array *a, *b, *c, *end_at, *counter, *taken;
};

/* At most `most` tiles; the last tile may be partial. Mostly a multiple of 16, as rows of TMA tiles are. */
static int make_size(int block, int most)
{
	int size = block * (int)random_int(1, most);
	return size - (chance(30) ? 0 : chance(80) ? random_below(block / 16) * 16 : random_below(block));
}

/* At least `width` elements from row to row, a multiple of 16 bytes, mostly of no more. */
static int make_stride(tl_dtype t, int width)
{
	int unit = (int)(16 / tl_dtype_size(t)), units = (width + unit - 1) / unit;
	return unit * (chance(70) ? units | 1 : units + random_below(3));
}

static void make_pairs(struct pairs *t)
{
	static const tl_dtype types[] = {TL_F16, TL_F16, TL_F16, TL_BF16, TL_F8E5M2};
	memset(t, 0, sizeof *t);
	t->order = random_below(ORDERS);
	t->walk = t->order >= D_GRID || chance(40) ? W_ONE : random_below(WALKS);
	t->operands = chance(40) ? P_POINTERS : random_below(OPERANDS);
	t->type = types[random_below(COUNT(types))];
	t->warps = chance(80) ? 4 << random_below(2) : 1 << random_below(2);
	t->bm = 64 << random_below(2);
	t->bn = 16 << random_below(4);
	t->bk = (t->type == TL_F8E5M2 ? 32 : 16) << random_below(3);
	t->m = make_size(t->bm, MOST_TILES);
	t->n = make_size(t->bn, MOST_TILES);
	t->k = chance(90) ? make_size(t->bk, 8) : 0;
	t->group = (int)random_int(2, 4);
	t->batches = chance(75) || t->walk != W_ONE || t->operands == P_DESCRIPTORS ? 1 : MOST_BATCHES;
	t->stages = (int)random_int(2, 4);
	t->blocks = chance(40) ? 0 : (int)random_int(1, 6);
	t->a_turned = chance(25);
	t->b_turned = chance(40);
	t->sa = make_stride(t->type, t->a_turned ? t->m : t->k);
	t->sb = make_stride(t->type, t->b_turned ? t->k : t->n);
	t->second = chance(20);
	t->asked = chance(95);
	t->flatten = chance(50);
	t->end = chance(60) ? E_ARGUMENT : chance(25) ? E_LOADED : E_ROW;
	t->turned = chance(20);
	t->programs = t->walk == W_ONE ? cdiv(t->m, t->bm) * cdiv(t->n, t->bn) : (int)random_int(1, 8);
	t->begin = chance(50) ? B_FIRST : chance(50) ? B_LITERAL : B_ROW;
	t->rest = chance(30);
	t->counts = chance(40);
	t->back = t->operands == P_CARRIED && chance(50);
}

/* The slice at which the loop of this row of tiles begins. */
static int first_slice(const struct pairs *t, int row)
{
	return t->begin == B_FIRST ? 0 : t->begin == B_LITERAL ? 2 : row;
}

/* --- text ---------------------------------------------------------------------------------------------------- */

static void print_place(FILE *f, const struct pairs *t, int depth)
{
	switch (t->order) {
	case D_ROWS: put_line(f, depth, "x = tile // columns\n%*sy = tile %% columns", 4 * depth, ""); return;
	case D_COLUMNS: put_line(f, depth, "x = tile %% rows\n%*sy = tile // rows", 4 * depth, ""); return;
	case D_GROUPS:
		put_line(f, depth, "first = tile // (%d * columns) * %d", t->group, t->group);
		put_line(f, depth, "high = min(rows - first, %d)", t->group);
		put_line(f, depth, "x = first + tile %% (%d * columns) %% high", t->group);
		put_line(f, depth, "y = tile %% (%d * columns) // high", t->group);
		return;
	case D_GRID: put_line(f, depth, "x = tile\n%*sy = tl.program_id(1)", 4 * depth, ""); return;
	default: put_line(f, depth, "x = tl.program_id(1)\n%*sy = tile", 4 * depth, ""); return;
	}
}

/* Of a and b, `rows` and `columns` of a tile that begins there, as they lie in memory. */
static void print_handle(FILE *f, const struct pairs *t, int depth, char c)
{
	bool a = c == 'a', turned = a ? t->a_turned : t->b_turned;
	const char *starts = a ? "x * %d, begin" : "begin, y * %d", *sizes = a ? "M, K" : "K, N";
	char start[40], block[40];
	snprintf(start, sizeof start, starts, a ? t->bm : t->bn);
	snprintf(block, sizeof block, "%d, %d", a ? t->bm : t->bk, a ? t->bk : t->bn);
	if (t->operands == P_BLOCKS)
		put_line(f, depth,
			 "%c_in = tl.make_block_ptr(%c_at, shape=(%s), strides=(%s), offsets=(%s), block_shape=(%s), "
			 "order=(%s))",
			 c, c, sizes,
			 turned ? a ? "1, sa" : "1, sb"
			 : a    ? "sa, 1"
				: "sb, 1",
			 start, block, turned ? "0, 1" : "1, 0");
	else if (t->operands == P_DESCRIPTORS && turned)
		put_line(f, depth, "%c_in = tl.make_tensor_descriptor(%c_at, [%s], [s%c, 1], [%d, %d])", c, c,
			 a ? "K, M" : "N, K", c, a ? t->bk : t->bn, a ? t->bm : t->bk);
	else if (t->operands == P_DESCRIPTORS)
		put_line(f, depth, "%c_in = tl.make_tensor_descriptor(%c_at, [%s], [s%c, 1], [%s])", c, c, sizes, c,
			 block);
	else if (t->operands == P_CARRIED && a)
		put_line(f, depth, "a_in = a_at + i[:, None] * %s + (%sd)[None, :] * %s", turned ? "1" : "sa",
			 t->back ? "" : "begin + ", turned ? "sa" : "1");
	else if (t->operands == P_CARRIED)
		put_line(f, depth, "b_in = b_at + (%sd)[:, None] * %s + j[None, :] * %s", t->back ? "" : "begin + ",
			 turned ? "1" : "sb", turned ? "sb" : "1");
}

static void print_load(FILE *f, const struct pairs *t, int depth, char c)
{
	bool a = c == 'a', turned = a ? t->a_turned : t->b_turned;
	char first[24], mask[80];
	snprintf(mask, sizeof mask, a ? "mask=(i < M)[:, None] & (%s)[None, :], other=0.0"
				      : "mask=(%s)[:, None] & (j < N)[None, :], other=0.0",
		 t->rest ? "d < K - start" : "start + d < K");
	snprintf(first, sizeof first, a ? "x * %d" : "y * %d", a ? t->bm : t->bn);
	if (t->operands == P_BLOCKS)
		put_line(f, depth, "%c = tl.load(%c_in, boundary_check=(0, 1), padding_option=\"zero\")", c, c);
	else if (t->operands == P_DESCRIPTORS)
		put_line(f, depth, "%c = %c_in.load([%s, %s])%s", c, c, a == turned ? "start" : first,
			 a == turned ? first : "start", turned ? ".T" : "");
	else if (t->operands == P_CARRIED)
		put_line(f, depth, "%c = tl.load(%c_in, %s)", c, c, mask);
	else if (a)
		put_line(f, depth, "a = tl.load(a_at + i[:, None]%s + (start + d)[None, :]%s, %s)",
			 turned ? "" : " * sa", turned ? " * sa" : "", mask);
	else
		put_line(f, depth, "b = tl.load(b_at + (start + d)[:, None]%s + j[None, :]%s, %s)",
			 turned ? "" : " * sb", turned ? " * sb" : "", mask);
}

/* The next slice's place. */
static void print_moves(FILE *f, const struct pairs *t, int depth)
{
	if (t->operands == P_BLOCKS)
		put_line(f, depth, "a_in = tl.advance(a_in, (0, %d))\n%*sb_in = tl.advance(b_in, (%d, 0))", t->bk,
			 4 * depth, "", t->bk);
	if (t->operands == P_CARRIED)
		put_line(f, depth, "a_in += %d * %s\n%*sb_in += %d * %s", t->bk, t->a_turned ? "sa" : "1", 4 * depth,
			 "", t->bk, t->b_turned ? "1" : "sb");
}

static void print_tile(FILE *f, const struct pairs *t, int depth)
{
	print_place(f, t, depth);
	put_line(f, depth, "i = x * %d + tl.arange(0, %d)\n%*sj = y * %d + tl.arange(0, %d)", t->bm, t->bm, 4 * depth,
		 "", t->bn, t->bn);
	if (t->begin == B_ROW)
		put_line(f, depth, "begin = x * %d", t->bk);
	else
		put_line(f, depth, "begin = %d", first_slice(t, 0) * t->bk);
	print_handle(f, t, depth, 'a');
	print_handle(f, t, depth, 'b');
	put_line(f, depth, "acc = tl.zeros((%d, %d), tl.float32)", t->bm, t->bn);
	if (t->second)
		put_line(f, depth, "more = tl.zeros((%d, %d), tl.float32)", t->bm, t->bn);
	if (t->end == E_ROW)
		put_line(f, depth, "end = tl.minimum(K, (x + 1) * %d)", ROW_STEP);
	put_line(f, depth, "for start in tl.range(begin, end, %d%s):", t->bk, t->asked ? ", warp_specialize=True" : "");
	print_load(f, t, depth + 1, 'a');
	print_load(f, t, depth + 1, 'b');
	put_line(f, depth + 1, "acc = tl.dot(a, b, acc)");
	if (t->second)
		put_line(f, depth + 1, "more = tl.dot(a, b, more)");
	print_moves(f, t, depth + 1);
	if (t->second)
		put_line(f, depth, "acc = acc * 2 + more");
	put_line(f, depth, "inside = (i < M)[:, None] & (j < N)[None, :]");
	put_line(f, depth, "tl.store(c_at + i[:, None] * N + j[None, :], acc, mask=inside)");
	if (t->turned)
		put_line(f, depth,
			 "tl.store(c_at + size + j[:, None] * M + i[None, :], acc.T + 1, mask=(j < N)[:, None] & (i < "
			 "M)[None, :])");
	if (t->counts)
		put_line(f, depth, "number = tl.atomic_add(counter_ptr, 1)\n%*stl.store(taken_ptr + number, 1)",
			 4 * depth, "");
}

static char *pairs_text(const struct pairs *t)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	fprintf(f, "import triton\nimport triton.language as tl\n\n@triton.jit\n"
		   "def kernel(a_ptr, b_ptr, c_ptr, end_ptr, counter_ptr, taken_ptr, M, N, K, sa, sb, a_size, b_size, "
		   "size):\n");
	put_line(f, 1, "tile = tl.program_id(0)\n    batch = tl.program_id(2)");
	put_line(f, 1, "rows = tl.cdiv(M, %d)\n    columns = tl.cdiv(N, %d)", t->bm, t->bn);
	put_line(f, 1, "end = %s", t->end == E_LOADED ? "tl.load(end_ptr)" : "K");
	put_line(f, 1, "d = tl.arange(0, %d)", t->bk);
	put_line(f, 1, "a_at = a_ptr%s\n    b_at = b_ptr%s\n    c_at = c_ptr%s",
		 t->batches > 1 ? " + batch * a_size" : "", t->batches > 1 ? " + batch * b_size" : "",
		 t->batches > 1 ? " + batch * size * 2" : "");
	if (t->walk == W_ONE) {
		print_tile(f, t, 1);
	} else {
		char step[32] = "tl.num_programs(0)";
		if (t->walk == W_STEP)
			snprintf(step, sizeof step, "%d", t->programs);
		put_line(f, 1, "for tile in tl.range(tl.program_id(0), rows * columns, %s%s):", step,
			 t->flatten ? ", flatten=True" : "");
		print_tile(f, t, 2);
	}
	fclose(f);
	return text;
}

/* --- numbers ------------------------------------------------------------------------------------------------- */

/* How many products a sum of this row of tiles has. */
static int sums(const struct pairs *t, int row)
{
	int end = cdiv((row + 1) * ROW_STEP, t->bk) * t->bk;
	return t->end == E_ROW && end < t->k ? end : t->k;
}

static void evaluate_pairs(const struct pairs *t, size_t a_size, size_t b_size)
{
	size_t size = (size_t)(t->m * t->n);
	for (int z = 0; z < t->batches; z++)
		for (int i = 0; i < t->m; i++)
			for (int j = 0; j < t->n; j++) {
				double sum = 0;
				int begin = first_slice(t, i / t->bm) * t->bk, end = sums(t, i / t->bm),
				    back = t->back ? begin : 0;
				for (int d = begin - back; d < end - back; d++)
					sum += value(t->a, (size_t)z * a_size + (size_t)(t->a_turned ? d * t->sa + i
												     : i * t->sa + d)) *
					       value(t->b, (size_t)z * b_size + (size_t)(t->b_turned ? j * t->sb + d
												     : d * t->sb + j));
				sum *= t->second ? 3 : 1;
				want(t->c, 2 * (size_t)z * size + (size_t)(i * t->n + j), sum);
				if (t->turned)
					want(t->c, (2 * (size_t)z + 1) * size + (size_t)(j * t->m + i), sum + 1);
			}
}

static void pairs_case(struct suite *s, int64_t seed, const char *left_out)
{
	(void)left_out; /* nothing is left out of these */
	if (!case_begin(s, NULL, "%lld.", (long long)seed))
		return;
	struct pairs made, *t = &made;
	random_seed((uint64_t)seed);
	make_pairs(t);
	size_t a_size = (size_t)(t->sa * (t->a_turned ? t->k : t->m)),
	       b_size = (size_t)(t->sb * (t->b_turned ? t->n : t->k));
	size_t size = (size_t)(t->m * t->n);
	t->a = in(s, "a", t->type, a_size * (size_t)t->batches + 1);
	t->b = in(s, "b", t->type, b_size * (size_t)t->batches + 1);
	fill_whole(t->a, 2), fill_whole(t->b, 2);
	t->c = out(s, "c", TL_F32, 2 * size * (size_t)t->batches);
	t->end_at = in(s, "end", TL_I32, 1);
	set_int(t->end_at, 0, t->k);
	evaluate_pairs(t, a_size, b_size);
	uint32_t rows = (uint32_t)cdiv(t->m, t->bm), columns = (uint32_t)cdiv(t->n, t->bn), tiles = rows * columns;
	t->counter = inout(s, "counter", TL_I32, 1);
	t->taken = out(s, "taken", TL_I32, tiles * (size_t)t->batches);
	set_int(t->counter, 0, 0);
	want_int(t->counter, 0, t->counts ? (int64_t)t->taken->len : 0);
	for (size_t i = 0; t->counts && i < t->taken->len; i++)
		want_int(t->taken, i, 1);
	char *text = pairs_text(t);
	tl_arg args[] = {ptr(t->a),
			 ptr(t->b),
			 ptr(t->c),
			 ptr(t->end_at),
			 ptr(t->counter),
			 ptr(t->taken),
			 tl_int(t->m),
			 tl_int(t->n),
			 tl_int(t->k),
			 tl_int(t->sa),
			 tl_int(t->sb),
			 tl_int((int64_t)a_size),
			 tl_int((int64_t)b_size),
			 tl_int((int64_t)size)};
	tl_config config = {.grid = {(uint32_t)t->programs, 1, (uint32_t)t->batches},
			    .grid_dims = 3,
			    .num_warps = t->warps,
			    .num_stages = t->stages,
			    .max_ctas = t->blocks};
	if (t->order >= D_GRID)
		config.grid[0] = t->order == D_GRID ? rows : columns,
		config.grid[1] = t->order == D_GRID ? columns : rows;
	run_text(s, text, &config, args, COUNT(args),
		 "max_ctas %d, %d by %d tiles, M = %d, N = %d, K = %d, %d and %d apart", t->blocks, (int)rows,
		 (int)columns, t->m, t->n, t->k, t->sa, t->sb);
}

void theme_random_pairs(struct suite *s)
{
	each_seed(s, "pairs", 60, pairs_case);
}
