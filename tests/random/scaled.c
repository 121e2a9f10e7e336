/* test-random --kind scaled: loops that sum dots of numbers in microscaling formats, of all pairs of formats, packed
 * along either dimension, in either order in memory, with rows and numbers along k masked off.
 *
 * Numbers and scales are such that all sums are exact. */
#include "random.h"
#include "../run/suite.h"

enum { LEFT, RIGHT };
enum format { E2M1, E4M3, E5M2, BF16, FP16, FORMATS };

static const char *const format_names[] = {"e2m1", "e4m3", "e5m2", "bf16", "fp16"};
static const tl_dtype format_types[] = {TL_U8, TL_F8E4M3, TL_F8E5M2, TL_BF16, TL_F16};

struct factor {
	enum format format;
	int side;          /* M or N */
	int rows, columns; /* of the tile as it is loaded: those of the matrix, or half of one of them */
	int kept;          /* of `side` that are loaded; 0: all, without a mask */
	bool turned, bits, scaled, along_k,
		scale_turned; /* bits: given as unsigned integers; along_k: e2m1 is packed so */
	struct array *array, *scales;
	double *number, *scale; /* step, side, k; step, side, group */
};

struct scaled {
	struct factor f[2];
	int k, group, steps, length, warps, stages, form,
		batch; /* length: of all k together, which may end in a tile */
	bool fast, asked;
	struct array *out;
};

const double e2m1_numbers[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};

static void make_factor(struct scaled *d, struct factor *f, bool right)
{
	f->format = random_below(FORMATS);
	f->side = 16 << random_below(4);
	f->bits = chance(50);
	f->scaled = chance(75);
	f->turned = chance(50);
	f->scale_turned = chance(20);
	f->along_k = f->format != E2M1 || chance(50);
	f->kept = chance(25) ? (int)random_int(1, f->side / 2) * 2 : 0;
	int side = f->side / (f->format == E2M1 && !f->along_k ? 2 : 1),
	    k = d->k / (f->format == E2M1 && f->along_k ? 2 : 1);
	f->rows = right ? k : side;
	f->columns = right ? side : k;
}

static void make_scaled(struct scaled *d)
{
	memset(d, 0, sizeof *d);
	d->k = 32 << random_below(3);
	d->group = chance(30) ? 16 : 32;
	d->steps = random_below(5);
	d->length = d->steps * d->k - (d->steps && chance(30) ? 2 * random_below(d->k / 2) : 0);
	d->warps = 1 << random_below(4);
	d->stages = (int)random_int(1, 4);
	d->form = random_below(3);
	d->fast = chance(30);
	d->asked = chance(30);
	for (int i = 0; i < 2; i++)
		make_factor(d, &d->f[i], i == RIGHT);
}

/* Tiles that no block has room for are no fault. */
static bool too_much(const struct scaled *d)
{
	return (d->f[LEFT].side + d->f[RIGHT].side) * d->k > 12288;
}

/* --- text ---------------------------------------------------------------------------------------------------- */

static void print_loads(FILE *f, const struct scaled *d, int i)
{
	const struct factor *x = &d->f[i];
	char c = i == LEFT ? 'a' : 'b';
	int along = x->format == E2M1 && x->along_k ? 2 : 1, across = x->format == E2M1 && !x->along_k ? 2 : 1;
	int down = x->turned ? 1 : x->columns, right = x->turned ? x->rows : 1;
	fprintf(f,
		"        %c = tl.load(%c_ptr + s * %d + tl.arange(0, %d)[:, None] * %d + tl.arange(0, %d)[None, :] * "
		"%d",
		c, c, x->rows * x->columns, x->rows, down, x->columns, right);
	bool masked = x->kept || d->length < d->steps * d->k;
	if (masked)
		fprintf(f, ", mask=(tl.arange(0, %d)[%s] < %d) & (s * %d + tl.arange(0, %d)[%s] < %d), other=0",
			x->side / across, i == LEFT ? ":, None" : "None, :", (x->kept ? x->kept : x->side) / across,
			d->k / along, d->k / along, i == LEFT ? "None, :" : ":, None", d->length / along);
	fprintf(f, ")\n");
	int groups = d->k / d->group;
	if (x->scaled)
		fprintf(f,
			"        %c_scale = tl.load(%cs_ptr + s * %d + tl.arange(0, %d)[:, None] * %d + tl.arange(0, "
			"%d)[None, :] * %d)\n",
			c, c, x->side * groups, x->side, x->scale_turned ? 1 : groups, groups,
			x->scale_turned ? x->side : 1);
	else
		fprintf(f, "        %c_scale = None\n", c);
}

static char *scaled_text(const struct scaled *d)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	int m = d->f[LEFT].side, n = d->f[RIGHT].side;
	fprintf(f,
		"import triton\nimport triton.language as tl\n\n@triton.jit\ndef kernel(a_ptr, as_ptr, b_ptr, bs_ptr, "
		"o_ptr, n):\n"
		"    acc = tl.zeros((%d, %d), tl.float32)\n    for s in tl.range(0, n",
		m, n);
	fprintf(f, d->asked ? ", num_stages=%d):\n" : "):\n", d->stages);
	print_loads(f, d, LEFT);
	print_loads(f, d, RIGHT);
	fprintf(f, d->form == 0   ? "        acc = tl.dot_scaled("
		   : d->form == 1 ? "        acc += tl.dot_scaled("
				  : "        acc = acc + tl.dot_scaled(");
	fprintf(f, "a, a_scale, \"%s\", b, b_scale, \"%s\"%s, fast_math=%s, lhs_k_pack=%s, rhs_k_pack=%s)\n",
		format_names[d->f[LEFT].format], format_names[d->f[RIGHT].format], d->form == 0 ? ", acc" : "",
		d->fast ? "True" : "False", d->f[LEFT].along_k ? "True" : "False",
		d->f[RIGHT].along_k ? "True" : "False");
	fprintf(f, "    tl.store(o_ptr + tl.arange(0, %d)[:, None] * %d + tl.arange(0, %d)[None, :], acc)\n", m, n, n);
	fclose(f);
	return text;
}

/* --- numbers ------------------------------------------------------------------------------------------------- */

/* Element (i, k) of step s, where i runs along the side. */
static void put(const struct scaled *d, struct factor *f, int which, int s, int i, int k)
{
	size_t at = (size_t)((s * f->side + i) * d->k + k);
	bool packed = f->format == E2M1;
	int code = random_below(16), half = f->along_k ? k % 2 : i % 2;
	double v = packed ? (code & 8 ? -1 : 1) * e2m1_numbers[code & 7] : (double)random_int(-4, 4);
	int x = packed && !f->along_k ? i / 2 : i, y = packed && f->along_k ? k / 2 : k;
	int row = which == LEFT ? x : y, column = which == LEFT ? y : x;
	size_t to =
		(size_t)(s * f->rows * f->columns + (f->turned ? column * f->rows + row : row * f->columns + column));
	bool there = (!f->kept || i < f->kept) && s * d->k + k < d->length;
	f->number[at] = there ? v : 0;
	if (packed) {
		int64_t old = half ? value_int(f->array, to) & 15 : 0;
		set_int(f->array, to, old | code << 4 * half);
	} else if (is_float(f->array->dtype)) {
		set(f->array, to, v);
	} else {
		set_int(f->array, to, wrap(f->array->dtype, (int64_t)encode(format_types[f->format], v)));
	}
}

static void create_factor(struct suite *s, struct scaled *d, int which)
{
	struct factor *f = &d->f[which];
	int groups = d->k / d->group, steps = d->steps ? d->steps : 1;
	tl_dtype bits = f->format >= BF16 ? TL_U16 : TL_U8;
	f->array = inout(s, which ? "b" : "a", f->bits ? bits : format_types[f->format],
			 (size_t)(steps * f->rows * f->columns));
	f->scales = inout(s, which ? "bs" : "as", TL_U8, (size_t)(steps * f->side * groups));
	f->number = calloc((size_t)(steps * f->side * d->k), sizeof *f->number);
	f->scale = calloc((size_t)(steps * f->side * groups), sizeof *f->scale);
	for (int step = 0; step < steps; step++)
		for (int i = 0; i < f->side; i++) {
			for (int k = 0; k < d->k; k++)
				put(d, f, which, step, i, k);
			for (int g = 0; g < groups; g++) {
				int e = (int)random_int(-1, 1);
				int at = step * f->side * groups + (f->scale_turned ? g * f->side + i : i * groups + g);
				set_int(f->scales, (size_t)at, 127 + e);
				f->scale[(step * f->side + i) * groups + g] = f->scaled ? ldexp(1, e) : 1;
			}
		}
}

static void scaled_case(struct suite *s, int64_t seed, const char *left_out)
{
	(void)left_out; /* nothing is left out of these */
	if (!case_begin(s, NULL, "%lld.", (long long)seed))
		return;
	struct scaled *d = calloc(1, sizeof *d);
	random_seed((uint64_t)seed);
	do
		make_scaled(d);
	while (too_much(d));
	create_factor(s, d, LEFT);
	create_factor(s, d, RIGHT);
	const struct factor *a = &d->f[LEFT], *b = &d->f[RIGHT];
	int groups = d->k / d->group;
	d->out = out(s, "o", TL_F32, (size_t)(a->side * b->side));
	for (int i = 0; i < a->side; i++)
		for (int j = 0; j < b->side; j++) {
			double sum = 0;
			for (int e = 0; e < d->steps * d->k; e++) {
				int x = e / d->k * a->side + i, y = e / d->k * b->side + j, k = e % d->k,
				    g = k / d->group;
				sum += a->number[x * d->k + k] * a->scale[x * groups + g] * b->number[y * d->k + k] *
				       b->scale[y * groups + g];
			}
			want(d->out, (size_t)(i * b->side + j), sum);
		}
	char *text = scaled_text(d);
	tl_arg args[] = {ptr(a->array), a->scaled ? ptr(a->scales) : tl_none(),
			 ptr(b->array), b->scaled ? ptr(b->scales) : tl_none(),
			 ptr(d->out),   tl_int(d->steps)};
	tl_config config = {.grid = {1}, .num_warps = d->warps, .num_stages = d->stages};
	run_text(s, text, &config, args, COUNT(args), "n = %d", d->steps);
	for (int i = 0; i < 2; i++)
		free(d->f[i].number), free(d->f[i].scale);
	free(d);
}

void theme_random_scaled(struct suite *s)
{
	each_seed(s, "scaled", 60, scaled_case);
}
