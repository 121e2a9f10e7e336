/* The model's arenas, its forward and backward pass, and the optimiser's step. */
#include "gpt.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	ALIGNMENT = 64, /* of the starts of tensors, in elements */
	PARTS = 256,    /* programs that sum squares */
	SLICES = 32,    /* parts of the rows, whose columns are summed in parallel */
};

void die(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fputs("gpt: error: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(2);
}

void must(tl_status s)
{
	if (s)
		die("%s: %s", tl_status_name(s), tl_error(NULL));
}

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

static unsigned tiles(size_t n, size_t block)
{
	return (unsigned)((n + block - 1) / block);
}

/* The smallest power of two that is at least n, within bounds. */
static int block_of(int n, int least, int most)
{
	int block = least;
	while (block < n && block < most)
		block *= 2;
	return block;
}

uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9E3779B97F4A7C15u;
	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return z ^ z >> 31;
}

/* --- parameters ---------------------------------------------------------------------------------------------- */

static const char *const names[PARAMETERS] = {
	"ln_1.weight", "ln_1.bias",  "attn.c_attn.weight", "attn.c_attn.bias", "attn.c_proj.weight", "attn.c_proj.bias",
	"ln_2.weight", "ln_2.bias",  "mlp.c_fc.weight",    "mlp.c_fc.bias",    "mlp.c_proj.weight",  "mlp.c_proj.bias",
	"wte.weight",  "wpe.weight", "ln_f.weight",        "ln_f.bias",
};

static void shape_of(const struct config *c, enum parameter p, struct place *out)
{
	int n = c->channels, rows[PARAMETERS] = {0}, columns[PARAMETERS];
	for (int i = 0; i < PARAMETERS; i++)
		columns[i] = n;
	columns[QKV_WEIGHT] = columns[QKV_BIAS] = 3 * n;
	columns[UP_WEIGHT] = columns[UP_BIAS] = 4 * n;
	rows[QKV_WEIGHT] = rows[OUT_WEIGHT] = rows[UP_WEIGHT] = n;
	rows[DOWN_WEIGHT] = 4 * n;
	rows[TOKEN_WEIGHT] = c->vocabulary;
	rows[POSITION_WEIGHT] = c->context;
	out->rank = rows[p] ? 2 : 1;
	out->shape[0] = rows[p] ? rows[p] : columns[p];
	out->shape[1] = rows[p] ? columns[p] : 1;
	out->len = (size_t)out->shape[0] * (size_t)out->shape[1];
}

struct place *gpt_places(const struct config *c, int *n, size_t *size, size_t *decayed)
{
	*n = c->layers * LAYER_PARAMETERS + PARAMETERS - LAYER_PARAMETERS;
	struct place *places = calloc((size_t)*n, sizeof *places);
	if (!places)
		die("out of memory");
	for (int i = 0; i < *n; i++) {
		int layer = i / LAYER_PARAMETERS;
		enum parameter p = i % LAYER_PARAMETERS + (layer == c->layers ? LAYER_PARAMETERS : 0);
		if (layer < c->layers)
			snprintf(places[i].name, sizeof places[i].name, "h.%d.%s", layer, names[p]);
		else
			snprintf(places[i].name, sizeof places[i].name, "%s", names[p]);
		shape_of(c, p, &places[i]);
	}
	*size = 0;
	for (int rank = 2; rank; rank--) { /* matrices first */
		for (int i = 0; i < *n; i++) {
			if (places[i].rank != rank)
				continue;
			places[i].first = *size;
			*size += round_up(places[i].len, ALIGNMENT);
		}
		if (rank == 2)
			*decayed = *size;
	}
	return places;
}

static const struct place *place_of(const struct gpt *g, int layer, enum parameter p)
{
	return &g->places[p < LAYER_PARAMETERS ? layer * LAYER_PARAMETERS + p
					       : (g->config.layers - 1) * LAYER_PARAMETERS + p];
}

static struct view weight(const struct gpt *g, int layer, enum parameter p)
{
	const struct place *place = place_of(g, layer, p);
	return (struct view){g->type, (char *)tl_buffer_ptr(g->rounded) + place->first * tl_dtype_size(g->type),
			     place->len};
}

static struct view gradient(const struct gpt *g, int layer, enum parameter p)
{
	const struct place *place = place_of(g, layer, p);
	return (struct view){TL_F32, (char *)tl_buffer_ptr(g->gradients) + place->first * sizeof(float), place->len};
}

/* --- memory -------------------------------------------------------------------------------------------------- */

static tl_buffer *allocate(struct gpt *g, size_t bytes)
{
	tl_buffer *b;
	tl_status s = tl_buffer_create(g->ctx, bytes, &b);
	if (s)
		die("%zu MB more than the %zu MB of device memory that the model has so far: %s\n"
		    "hint: a smaller --batch, --context or --channels needs less",
		    bytes >> 20, g->bytes >> 20, tl_error(g->ctx));
	g->bytes += bytes;
	return b;
}

/* Takes `len` elements from the arena of activations and adds them to *used. The layout runs twice: without an arena it
 * only computes the size. */
static struct view take(const struct gpt *g, size_t *used, tl_dtype type, size_t len)
{
	char *base = g->activations ? tl_buffer_ptr(g->activations) : NULL;
	struct view v = {type, base ? base + *used : NULL, len};
	*used += round_up(len * tl_dtype_size(type), 256);
	return v;
}

static size_t lay_out(struct gpt *g)
{
	size_t used = 0, c = (size_t)g->config.channels, heads = (size_t)g->config.heads;
	size_t rows = (size_t)g->batch * (size_t)g->length, v = (size_t)g->config.vocabulary;
	/* tokens and the views after it have the layout of gpt->host */
	size_t ints = round_up(rows + 1, ALIGNMENT);
	struct view *const integers[] = {&g->tokens, &g->targets, &g->sorted_rows, &g->sorted_tokens,
					 &g->sorted_starts};
	for (size_t i = 0; i < COUNT(integers); i++)
		*integers[i] = take(g, &used, TL_I32, ints);
	g->state = take(g, &used, TL_I32, 2);
	g->embedded = take(g, &used, g->type, rows * c);
	struct layer first = {0};
	for (int i = 0; i < g->config.layers; i++) {
		struct layer *l = &g->layers[i];
		*l = first;
		l->qkv = take(g, &used, g->type, rows * 3 * c);
		if (i && !g->training)
			continue; /* generation needs only the keys and values */
		struct view *const narrow[] = {&l->norm1, &l->attention, &l->middle, &l->norm2, &l->out};
		for (size_t n = 0; n < COUNT(narrow); n++)
			*narrow[n] = take(g, &used, g->type, rows * c);
		struct view *const sums[] = {&l->mean1, &l->rstd1, &l->mean2, &l->rstd2};
		for (size_t n = 0; n < COUNT(sums); n++)
			*sums[n] = take(g, &used, TL_F32, rows);
		l->before = take(g, &used, g->type, rows * 4 * c);
		l->up = take(g, &used, g->type, rows * 4 * c);
		l->lse = take(g, &used, TL_F32, rows * heads);
		first = *l;
	}
	if (g->training) {
		g->norm = take(g, &used, g->type, rows * c);
		g->mean = take(g, &used, TL_F32, rows);
		g->rstd = take(g, &used, TL_F32, rows);
		g->logits = take(g, &used, g->type, rows * round_up(v, ALIGNMENT));
		g->loss = take(g, &used, TL_F32, rows);
		g->dx = take(g, &used, g->type, rows * c);
		g->dnorm = take(g, &used, g->type, rows * c);
		g->dattention = take(g, &used, g->type, rows * c);
		g->dwide = take(g, &used, g->type, rows * 4 * c);
		g->delta = take(g, &used, TL_F32, rows * heads);
		g->parts = take(g, &used, TL_F32, PARTS * 2 * c);
		g->slices = take(g, &used, TL_F32, SLICES * 4 * c);
		g->squares = take(g, &used, TL_F32, PARTS);
	} else {
		g->x = take(g, &used, g->type, c);
		g->attended = take(g, &used, g->type, c);
		g->up = take(g, &used, g->type, 4 * c);
		g->logits = take(g, &used, TL_F32, v);
	}
	return used;
}

void gpt_create(struct gpt *g, const char *device, const char *kernels, const struct config *c, tl_dtype type,
		int batch, int length, bool training)
{
	*g = (struct gpt){.config = *c,
			  .type = type,
			  .precision = "ieee",
			  .batch = batch,
			  .length = length,
			  .training = training};
	int head = c->channels / c->heads;
	if (c->channels % c->heads || (head != 16 && head != 32 && head != 64 && head != 128))
		die("%d channels in %d heads: a head must have 16, 32, 64 or 128 channels", c->channels, c->heads);
	if ((int64_t)batch * length > 1 << 26)
		die("%d sequences of %d tokens at once are too many\nhint: --accumulate computes them in parts", batch,
		    length);
	must(tl_context_create(device, &g->ctx));
	must(tl_device(g->ctx, &g->device));
	g->kernels = kernels_open(g->ctx, kernels);
	g->places = gpt_places(c, &g->nplaces, &g->size, &g->decayed);
	g->layers = calloc((size_t)c->layers, sizeof *g->layers);
	g->host = calloc(round_up((size_t)batch * (size_t)length + 1, ALIGNMENT) * 5 + (size_t)c->vocabulary,
			 sizeof *g->host);
	if (!g->layers || !g->host)
		die("out of memory");
	tl_buffer **const arenas[] = {&g->weights, &g->gradients, &g->moment1, &g->moment2};
	for (size_t i = 0; i < (training ? COUNT(arenas) : 1); i++) {
		*arenas[i] = allocate(g, g->size * sizeof(float));
		must(tl_buffer_fill(*arenas[i], 0));
	}
	g->rounded = g->weights;
	if (type != TL_F32) {
		g->rounded = allocate(g, g->size * tl_dtype_size(type));
		must(tl_buffer_fill(g->rounded, 0));
	}
	g->activations = allocate(g, lay_out(g));
	lay_out(g);
}

void gpt_destroy(struct gpt *g)
{
	graph_destroy(&g->graph);
	kernels_close(g->kernels);
	tl_context_destroy(g->ctx);
	free(g->places);
	free(g->layers);
	free(g->host);
}

void gpt_set_weights(struct gpt *g, const float *w)
{
	must(tl_buffer_write(g->weights, 0, w, g->size * sizeof *w));
	if (g->type == TL_F32)
		return;
	uint16_t *rounded = malloc(g->size * sizeof *rounded);
	if (!rounded)
		die("out of memory");
	for (size_t i = 0; i < g->size; i++) { /* rounds to nearest, ties to even */
		uint32_t u;
		memcpy(&u, &w[i], sizeof u);
		rounded[i] = (uint16_t)((u + 0x7FFF + (u >> 16 & 1)) >> 16);
	}
	must(tl_buffer_write(g->rounded, 0, rounded, g->size * sizeof *rounded));
	free(rounded);
}

void gpt_get(struct gpt *g, tl_buffer *arena, float *out)
{
	must(tl_buffer_read(arena, 0, out, g->size * sizeof *out));
}

void gpt_random_weights(struct gpt *g, uint64_t seed)
{
	float *w = calloc(g->size, sizeof *w);
	if (!w)
		die("out of memory");
	for (int i = 0; i < g->nplaces; i++) {
		const struct place *p = &g->places[i];
		bool residual = strstr(p->name, "c_proj"), gain = strstr(p->name, "ln_") && strstr(p->name, "weight");
		double scale = p->rank == 1 ? 0 : residual ? 0.02 / sqrt(2.0 * g->config.layers) : 0.02;
		for (size_t k = 0; k < p->len; k++) {
			/* the sum of four uniform numbers is approximately normal */
			uint64_t z = scale > 0 ? next_random(&seed) : 0;
			double sum = (double)((z & 0xFFFF) + (z >> 16 & 0xFFFF) + (z >> 32 & 0xFFFF) + (z >> 48));
			w[p->first + k] = gain ? 1 : (float)(scale * (sum * 0x1p-16 - 2) * sqrt(3));
		}
	}
	gpt_set_weights(g, w);
	free(w);
}

/* --- launches ------------------------------------------------------------------------------------------------ */

static tl_arg arg(struct view v)
{
	return tl_range(v.type, v.at, v.len * tl_dtype_size(v.type));
}

static tl_arg arena(const tl_buffer *b)
{
	return tl_buf(TL_F32, b);
}

static bool on_gpu(const struct gpt *g)
{
	return !strcmp(g->device.kind, "cuda") || !strcmp(g->device.kind, "sim");
}

/* True for GEMMs of fp32 in IEEE precision, which tensor cores do not support: their operands fill most of shared
 * memory. */
static bool by_multiply_adds(const struct gpt *g)
{
	return on_gpu(g) && g->type == TL_F32 && !strcmp(g->precision, "ieee");
}

static void launch(struct gpt *g, enum kernel k, int warps, unsigned x, unsigned y, const tl_arg *args, size_t n)
{
	tl_config config = {.grid = {x, y}, .grid_dims = 2, .num_warps = warps};
	if (by_multiply_adds(g))
		config.num_stages = 2;
	kernels_launch(g->kernels, k, &config, args, n);
}
#define LAUNCH(g, kernel, warps, x, y, ...)                                                                            \
	launch(g, kernel, warps, x, y, (tl_arg[]){__VA_ARGS__}, COUNT(((tl_arg[]){__VA_ARGS__})))

/* A matrix operand of a GEMM: element (i, j) is at i · row + j · column. */
struct matrix {
	struct view view;
	size_t row, column;
};

static struct matrix plain(struct view v, size_t columns)
{
	return (struct matrix){v, columns, 1};
}

static struct matrix transposed(struct view v, size_t columns)
{
	return (struct matrix){v, 1, columns};
}

/* The epilogue of a GEMM; see product_kernel. Views with at == NULL are None. */
struct epilogue {
	struct view bias, add, before, gate;
};

static tl_arg optional(struct view v)
{
	return v.at ? arg(v) : tl_none();
}

/* The tile size along a dimension of n elements: `wide` if only a small part of the last tile is outside. */
static int tile(int n, int usual, int wide)
{
	return block_of(n, 16, n % wide == 0 || n > 8 * wide ? wide : usual);
}

/* A GEMM. Prompts may be short, and should not need further variants: their tiles have 32 rows. */
static void product(struct gpt *g, struct matrix a, struct matrix b, struct view out, size_t stride, int m, int n,
		    int k, struct epilogue e)
{
	bool gpu = on_gpu(g), narrow = gpu && g->type == TL_F32; /* without tensor cores, loops are unrolled */
	int most = narrow ? 64 : 128, wide = !gpu && g->type == TL_BF16 ? 256 : most;
	int deep = narrow ? 16 : gpu ? 32 : 128, bm = g->training ? block_of(m, 16, most) : 32;
	int bn = tile(n, most, wide), bk = tile(k, deep, gpu ? deep : wide);
	LAUNCH(g, PRODUCT, gpu && !narrow ? 8 : 4, tiles((size_t)m, (size_t)bm) * tiles((size_t)n, (size_t)bn), 1,
	       arg(a.view), arg(b.view), arg(out), optional(e.bias), optional(e.add), optional(e.before),
	       optional(e.gate), tl_int(m), tl_int(n), tl_int(k), tl_int((int64_t)a.row), tl_int((int64_t)a.column),
	       tl_int((int64_t)b.row), tl_int((int64_t)b.column), tl_int((int64_t)stride), tl_int(bm), tl_int(bn),
	       tl_int(bk), tl_int(8), tl_str(g->precision));
}

/* out = the sums of x's columns. With many rows, the columns of SLICES parts of the rows are summed first. */
static void column_sum(struct gpt *g, struct view x, int m, int n, int stride, struct view out, bool add)
{
	int bm = on_gpu(g) ? 32 : 8, bn = on_gpu(g) ? 64 : 256;
	unsigned columns = tiles((size_t)n, (size_t)bn), slices = m > 2 * SLICES ? SLICES : 1;
	struct view sums = slices > 1 ? g->slices : out;
	LAUNCH(g, COLUMN_SUM, 4, columns, slices, arg(x), arg(sums), tl_int(m), tl_int(n), tl_int(stride),
	       tl_bool(add && slices == 1), tl_int(bm), tl_int(bn));
	if (slices > 1)
		LAUNCH(g, COLUMN_SUM, 4, columns, 1, arg(sums), arg(out), tl_int(SLICES), tl_int(n), tl_int(n),
		       tl_bool(add), tl_int(bm), tl_int(bn));
}

static int width(const struct gpt *g)
{
	return block_of(g->config.channels, 16, 1 << 16);
}

static void layer_norm(struct gpt *g, int rows, struct view x, int layer, enum parameter w, struct view out,
		       struct view mean, struct view rstd)
{
	LAUNCH(g, LAYER_NORM, 4, (unsigned)rows, 1, arg(x), arg(weight(g, layer, w)), arg(weight(g, layer, w + 1)),
	       arg(out), arg(mean), arg(rstd), tl_int(g->config.channels), tl_int(width(g)));
}

/* `add_x`: adds to dx; `add`: adds to the gradients of the weights. */
static void layer_norm_gradient(struct gpt *g, int rows, struct view x, int layer, enum parameter w, struct view mean,
				struct view rstd, struct view dout, bool add_x, bool add)
{
	int c = g->config.channels, parts = on_gpu(g) ? PARTS : 32;
	if (parts > rows)
		parts = rows;
	LAUNCH(g, LAYER_NORM_GRADIENT, 4, (unsigned)parts, 1, arg(x), arg(weight(g, layer, w)), arg(mean), arg(rstd),
	       arg(dout), arg(g->dx), arg(g->parts), tl_int(rows), tl_int(c), tl_bool(add_x), tl_int(width(g)));
	struct view second = g->parts;
	second.at += (size_t)c * sizeof(float);
	second.len -= (size_t)c;
	column_sum(g, g->parts, parts, c, 2 * c, gradient(g, layer, w), add);
	column_sum(g, second, parts, c, 2 * c, gradient(g, layer, w + 1), add);
}

/* --- forward ------------------------------------------------------------------------------------------------- */

struct attention_blocks {
	int head, most;
	double scale;
};

static struct attention_blocks attention_blocks(const struct gpt *g, int length)
{
	int head = g->config.channels / g->config.heads;
	int most = !on_gpu(g) ? 128 : g->type == TL_F32 && (head > 64 || !by_multiply_adds(g)) ? 32 : 64;
	most = g->training ? block_of(length, 16, most) : 32;
	return (struct attention_blocks){head, most, 1 / sqrt(head)};
}

/* The forward pass up to the last layer's output, for the tokens on the device. */
static void forward(struct gpt *g, int batch, int length)
{
	int rows = batch * length, c = g->config.channels;
	size_t n = (size_t)c;
	LAUNCH(g, EMBED, 4, (unsigned)rows, 1, arg(g->tokens), tl_none(), arg(weight(g, 0, TOKEN_WEIGHT)),
	       arg(weight(g, 0, POSITION_WEIGHT)), arg(g->embedded), tl_int(length), tl_int(c), tl_int(width(g)));
	struct view x = g->embedded;
	struct attention_blocks b = attention_blocks(g, length);
	for (int i = 0; i < g->config.layers; i++) {
		struct layer *l = &g->layers[i];
		layer_norm(g, rows, x, i, LN1_WEIGHT, l->norm1, l->mean1, l->rstd1);
		product(g, plain(l->norm1, n), plain(weight(g, i, QKV_WEIGHT), 3 * n), l->qkv, 3 * n, rows, 3 * c, c,
			(struct epilogue){.bias = weight(g, i, QKV_BIAS)});
		LAUNCH(g, ATTENTION, 4, tiles((size_t)length, (size_t)b.most), (unsigned)(batch * g->config.heads),
		       arg(l->qkv), arg(l->attention), arg(l->lse), tl_int(length), tl_int(c), tl_int(g->config.heads),
		       tl_float(b.scale), tl_int(b.head), tl_int(b.most), tl_int(b.most), tl_str(g->precision));
		product(g, plain(l->attention, n), plain(weight(g, i, OUT_WEIGHT), n), l->middle, n, rows, c, c,
			(struct epilogue){.bias = weight(g, i, OUT_BIAS), .add = x});
		layer_norm(g, rows, l->middle, i, LN2_WEIGHT, l->norm2, l->mean2, l->rstd2);
		product(g, plain(l->norm2, n), plain(weight(g, i, UP_WEIGHT), 4 * n), l->up, 4 * n, rows, 4 * c, c,
			(struct epilogue){.bias = weight(g, i, UP_BIAS), .before = l->before});
		product(g, plain(l->up, 4 * n), plain(weight(g, i, DOWN_WEIGHT), n), l->out, n, rows, c, 4 * c,
			(struct epilogue){.bias = weight(g, i, DOWN_BIAS), .add = l->middle});
		x = l->out;
	}
}

/* --- backward ------------------------------------------------------------------------------------------------ */

/* The gradients of w and bias in out = in w + bias, from dout, rows × n; in is rows × k. */
static void weight_gradient(struct gpt *g, int rows, struct view in, int k, struct view dout, int n, int layer,
			    enum parameter w, bool add)
{
	struct view dw = gradient(g, layer, w);
	product(g, transposed(in, (size_t)k), plain(dout, (size_t)n), dw, (size_t)n, k, n, rows,
		(struct epilogue){.add = add ? dw : (struct view){0}});
	column_sum(g, dout, rows, n, n, gradient(g, layer, w + 1), add);
}

/* din = dout wᵀ */
static void input_gradient(struct gpt *g, int rows, struct view dout, int n, int layer, enum parameter w, int k,
			   struct view din, struct epilogue e)
{
	product(g, plain(dout, (size_t)n), transposed(weight(g, layer, w), (size_t)n), din, (size_t)k, rows, k, n, e);
}

static void attention_gradient(struct gpt *g, int batch, int length, const struct layer *l)
{
	int c = g->config.channels, heads = g->config.heads;
	struct attention_blocks b = attention_blocks(g, length);
	unsigned x = tiles((size_t)length, (size_t)b.most), y = (unsigned)(batch * heads);
	LAUNCH(g, ATTENTION_DELTA, 4, x, y, arg(l->attention), arg(g->dattention), arg(g->delta), tl_int(length),
	       tl_int(c), tl_int(heads), tl_int(b.head), tl_int(b.most));
	for (int i = 0; i < 2; i++)
		LAUNCH(g, i ? QUERY_GRADIENT : KEY_GRADIENT, 4, x, y, arg(l->qkv), arg(g->dattention), arg(l->lse),
		       arg(g->delta), arg(g->dwide), tl_int(length), tl_int(c), tl_int(heads), tl_float(b.scale),
		       tl_int(b.head), tl_int(b.most), tl_int(b.most), tl_str(g->precision));
}

/* Sorts the rows by token, for token_gradient_kernel. Returns the number of different tokens. */
static unsigned sort_tokens(struct gpt *g, const uint32_t *tokens, size_t rows)
{
	size_t ints = g->tokens.len;
	int32_t *sorted = g->host + 2 * ints, *unique = sorted + ints, *starts = unique + ints, *at = starts + ints;
	unsigned found = 0;
	memset(at, 0, (size_t)g->config.vocabulary * sizeof *at);
	for (size_t i = 0; i < rows; i++)
		at[tokens[i]]++;
	starts[0] = 0;
	for (int t = 0; t < g->config.vocabulary; t++) {
		if (!at[t])
			continue;
		unique[found] = t;
		starts[found + 1] = starts[found] + at[t];
		at[t] = starts[found++];
	}
	for (size_t i = 0; i < rows; i++)
		sorted[at[tokens[i]]++] = (int32_t)i;
	return found;
}

static void no_reduction(void *user, size_t first, size_t len)
{
	(void)user, (void)first, (void)len;
}

double gpt_loss(struct gpt *g, const uint32_t *tokens, const uint32_t *targets, int batch, int length, double share,
		bool add, void (*reduce)(void *user, size_t first, size_t len), void *user)
{
	int rows = batch * length, c = g->config.channels, v = g->config.vocabulary;
	size_t n = (size_t)c, stride = round_up((size_t)v, ALIGNMENT), len = (size_t)rows;
	const struct view none = {0};
	if (!reduce)
		reduce = no_reduction;
	unsigned unique = sort_tokens(g, tokens, len);
	for (size_t i = 0; i < len; i++) {
		g->host[i] = (int32_t)tokens[i];
		g->host[g->tokens.len + i] = (int32_t)targets[i];
	}
	must(tl_buffer_write(g->activations, 0, g->host, 5 * g->tokens.len * sizeof *g->host));

	forward(g, batch, length);
	int last = g->config.layers - 1;
	struct view x = g->layers[last].out, tokens_weight = weight(g, 0, TOKEN_WEIGHT);
	layer_norm(g, rows, x, 0, LN_WEIGHT, g->norm, g->mean, g->rstd);
	product(g, plain(g->norm, n), transposed(tokens_weight, n), g->logits, stride, rows, v, c,
		(struct epilogue){0});
	LAUNCH(g, CROSS_ENTROPY, on_gpu(g) ? 8 : 4, (unsigned)rows, 1, arg(g->logits), arg(g->targets), arg(g->loss),
	       tl_int(v), tl_int((int64_t)stride), tl_float(share / rows), tl_bool(share > 0),
	       tl_int(block_of(v, 16, on_gpu(g) ? 4096 : 1024)));

	if (share > 0) {
		struct view dtokens = gradient(g, 0, TOKEN_WEIGHT);
		product(g, plain(g->logits, stride), plain(tokens_weight, n), g->dnorm, n, rows, c, v,
			(struct epilogue){0});
		product(g, transposed(g->logits, stride), plain(g->norm, n), dtokens, n, v, c, rows,
			(struct epilogue){.add = add ? dtokens : none});
		layer_norm_gradient(g, rows, x, 0, LN_WEIGHT, g->mean, g->rstd, g->dnorm, false, add);
		for (int i = last; i >= 0; i--) {
			struct layer *l = &g->layers[i];
			x = i ? g->layers[i - 1].out : g->embedded;
			input_gradient(g, rows, g->dx, c, i, DOWN_WEIGHT, 4 * c, g->dwide,
				       (struct epilogue){.gate = l->before});
			weight_gradient(g, rows, l->up, 4 * c, g->dx, c, i, DOWN_WEIGHT, add);
			input_gradient(g, rows, g->dwide, 4 * c, i, UP_WEIGHT, c, g->dnorm, (struct epilogue){0});
			weight_gradient(g, rows, l->norm2, c, g->dwide, 4 * c, i, UP_WEIGHT, add);
			layer_norm_gradient(g, rows, l->middle, i, LN2_WEIGHT, l->mean2, l->rstd2, g->dnorm, true, add);
			input_gradient(g, rows, g->dx, c, i, OUT_WEIGHT, c, g->dattention, (struct epilogue){0});
			weight_gradient(g, rows, l->attention, c, g->dx, c, i, OUT_WEIGHT, add);
			attention_gradient(g, batch, length, l);
			input_gradient(g, rows, g->dwide, 3 * c, i, QKV_WEIGHT, c, g->dnorm, (struct epilogue){0});
			weight_gradient(g, rows, l->norm1, c, g->dwide, 3 * c, i, QKV_WEIGHT, add);
			layer_norm_gradient(g, rows, x, i, LN1_WEIGHT, l->mean1, l->rstd1, g->dnorm, true, add);
			size_t first = place_of(g, i, QKV_WEIGHT)->first; /* the layer's matrices are adjacent */
			const struct place *end = place_of(g, i, DOWN_WEIGHT);
			reduce(user, first, end->first + end->len - first);
		}
		LAUNCH(g, POSITION_GRADIENT, 4, (unsigned)g->config.context, 1, arg(g->dx),
		       arg(gradient(g, 0, POSITION_WEIGHT)), tl_int(batch), tl_int(length), tl_int(c), tl_bool(add),
		       tl_int(width(g)));
		LAUNCH(g, TOKEN_GRADIENT, 4, unique, 1, arg(g->dx), arg(g->sorted_rows), arg(g->sorted_starts),
		       arg(g->sorted_tokens), arg(dtokens), tl_int(c), tl_int(width(g)));
		size_t embeddings = place_of(g, 0, TOKEN_WEIGHT)->first;
		reduce(user, embeddings, g->decayed - embeddings);
		reduce(user, g->decayed, g->size - g->decayed);
		reduce(user, 0, 0);
	}
	float *losses = malloc(len * sizeof *losses);
	if (!losses)
		die("out of memory");
	must(tl_buffer_read(g->activations, (size_t)(g->loss.at - (char *)tl_buffer_ptr(g->activations)), losses,
			    len * sizeof *losses));
	double sum = 0;
	for (size_t i = 0; i < len; i++)
		sum += losses[i];
	free(losses);
	return sum / rows;
}

/* --- the optimiser ------------------------------------------------------------------------------------------- */

void gpt_update(struct gpt *g, const struct adamw *a, int step)
{
	size_t block = on_gpu(g) ? 1024 : 4096;
	LAUNCH(g, SQUARE_SUM, 4, PARTS, 1, arena(g->gradients), arg(g->squares), tl_int((int64_t)g->size),
	       tl_int((int64_t)block));
	LAUNCH(g, ADAMW, 4, tiles(g->size, block), 1, arena(g->weights), arena(g->gradients), arena(g->moment1),
	       arena(g->moment2), g->type == TL_F32 ? tl_none() : tl_buf(g->type, g->rounded), arg(g->squares),
	       tl_int((int64_t)g->size), tl_int((int64_t)g->decayed), tl_float(a->rate), tl_float(a->beta1),
	       tl_float(a->beta2), tl_float(1 - pow(a->beta1, step)), tl_float(1 - pow(a->beta2, step)),
	       tl_float(a->epsilon), tl_float(a->decay), tl_float(a->clip), tl_int(PARTS), tl_int((int64_t)block));
}

double gpt_norm(struct gpt *g)
{
	float squares[PARTS];
	double sum = 0;
	must(tl_buffer_read(g->activations, (size_t)(g->squares.at - (char *)tl_buffer_ptr(g->activations)), squares,
			    sizeof squares));
	for (int i = 0; i < PARTS; i++)
		sum += squares[i];
	return sqrt(sum);
}

/* --- generation ---------------------------------------------------------------------------------------------- */

void gpt_prefill(struct gpt *g, const uint32_t *tokens, int n)
{
	for (int i = 0; i < n; i++)
		g->host[i] = (int32_t)tokens[i];
	must(tl_buffer_write(g->activations, 0, g->host, (size_t)n * sizeof *g->host));
	forward(g, 1, n);
}

void gpt_put(struct gpt *g, uint32_t token, int position, int drawn)
{
	int32_t state[] = {position, drawn};
	must(tl_buffer_write(g->activations, 0, &(int32_t){(int32_t)token}, sizeof(int32_t)));
	must(tl_buffer_write(g->activations, (size_t)(g->state.at - (char *)tl_buffer_ptr(g->activations)), state,
			     sizeof state));
}

/* out = x w + bias; with ln ≥ 0 it uses x's layer normalisation with these weights. */
static void vector_product(struct gpt *g, struct view x, int layer, int ln, enum parameter w, struct view add,
			   struct view out, bool at_position, int k, int n)
{
	bool tied = w == TOKEN_WEIGHT; /* a row for each output, and no bias */
	int bn = on_gpu(g) || tied ? 16 : 64, bk = on_gpu(g) ? 256 : tied ? block_of(k, 16, 1024) : 128;
	struct view none = {0};
	LAUNCH(g, VECTOR_PRODUCT, 4, tiles((size_t)n, (size_t)bn), 1, arg(x),
	       optional(ln < 0 ? none : weight(g, layer, (enum parameter)ln)),
	       optional(ln < 0 ? none : weight(g, layer, (enum parameter)(ln + 1))), arg(weight(g, layer, w)),
	       optional(tied ? none : weight(g, layer, w + 1)), optional(add), arg(out),
	       at_position ? arg(g->state) : tl_none(), tl_int(k), tl_int(n), tl_bool(w == UP_WEIGHT), tl_bool(tied),
	       tl_int(bn), tl_int(bk), tl_int(width(g)));
}

static void queue_step(struct gpt *g)
{
	int c = g->config.channels;
	struct view none = {0};
	struct attention_blocks b = attention_blocks(g, 64);
	const struct drawing *d = &g->drawing;
	LAUNCH(g, EMBED, 4, 1, 1, arg(g->tokens), arg(g->state), arg(weight(g, 0, TOKEN_WEIGHT)),
	       arg(weight(g, 0, POSITION_WEIGHT)), arg(g->x), tl_int(1), tl_int(c), tl_int(width(g)));
	for (int i = 0; i < g->config.layers; i++) {
		struct layer *l = &g->layers[i];
		vector_product(g, g->x, i, LN1_WEIGHT, QKV_WEIGHT, none, l->qkv, true, c, 3 * c);
		LAUNCH(g, VECTOR_ATTENTION, 4, (unsigned)g->config.heads, 1, arg(l->qkv), arg(g->attended),
		       arg(g->state), tl_int(c), tl_float(b.scale), tl_int(b.head), tl_int(64));
		vector_product(g, g->attended, i, -1, OUT_WEIGHT, g->x, g->x, false, c, c);
		vector_product(g, g->x, i, LN2_WEIGHT, UP_WEIGHT, none, g->up, false, c, 4 * c);
		vector_product(g, g->up, i, -1, DOWN_WEIGHT, g->x, g->x, false, 4 * c, c);
	}
	vector_product(g, g->x, 0, LN_WEIGHT, TOKEN_WEIGHT, none, g->logits, false, c, g->config.vocabulary);
	LAUNCH(g, SAMPLE, 4, 1, 1, arg(g->logits), arg(g->tokens), arg(g->state), tl_int(g->config.vocabulary),
	       tl_float(d->temperature > 0 ? 1 / d->temperature : 0), tl_int(d->top_k), tl_int(d->seed), tl_int(1024));
}

/* On a GPU the launches of a token are captured into a graph after they have run once, and so are compiled. */
uint32_t gpt_step(struct gpt *g, double temperature, int top_k, int seed)
{
	uint32_t token;
	void *stream = tl_context_stream(g->ctx);
	struct drawing d = {temperature, top_k, seed};
	if (temperature != g->drawing.temperature || top_k != g->drawing.top_k || seed != g->drawing.seed) {
		graph_destroy(&g->graph); /* its launches have other arguments */
		g->stepped = false;
	}
	g->drawing = d;
	if (!graph_launch(&g->graph, stream)) {
		bool capturing = g->stepped && graph_begin(&g->graph, stream);
		queue_step(g);
		if (capturing) {
			graph_end(&g->graph, stream);
			graph_launch(&g->graph, stream);
		}
		g->stepped = true;
	}
	must(tl_buffer_read(g->activations, 0, &token, sizeof token));
	return token;
}
