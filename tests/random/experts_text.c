/* Random kernels of products of mixtures of experts as text. */
#include "experts.h"

/* How many columns there are beside each other. */
static const char *side(const struct experts *t)
{
	return t->pairs == U_TWO ? "N // 2" : "N";
}

/* What masks a tile of weights, whose first dimension is k; "" or ", mask=…". */
static const char *mask_of(char *to, const struct experts *t)
{
	const char *k = t->even ? "" : t->weights == W_MX ? "(pairs < K // 2)[:, None]" : "(k < K)[:, None]";
	char n[32] = "";
	if (!t->wraps)
		sprintf(n, "(n < %s)[None, :]", side(t));
	sprintf(to, *k || *n ? ", mask=%s%s%s, other=0" : "", k, *k && *n ? " & " : "", n);
	return to;
}

/* The numbers of a tile's columns. The second tile of a pair is N / 2 columns behind. */
static const char *columns_text(char c)
{
	return c == 'u' ? "(n + N // 2)" : "n";
}

/* Addresses of a tile of weights, whose first dimension is `k`. */
static const char *place_of(char *to, const struct experts *t, char c, const char *k)
{
	char along[24];
	snprintf(along, sizeof along, is_int4(t) ? "(%s // %d)" : "%s", k, packed(t));
	sprintf(to,
		t->columns ? "matrix + %s[None, :] * w_step + %s[:, None]"
			   : "matrix + %s[None, :] + %s[:, None] * w_step",
		columns_text(c), along);
	return to;
}

/* Where the tile of weights `c` begins, or how it is moved. */
static void print_handle(FILE *f, const struct experts *t, char c, bool move)
{
	bool along = t->columns; /* k is contiguous */
	char place[100];
	const char *behind = c == 'u' ? " + N // 2" : "", *k = t->weights == W_MX ? "K // 2" : "K";
	int deep = t->weights == W_MX ? t->bk / 2 : t->bk;
	if (t->operands == P_CARRIED && move)
		put_line(f, 2, along ? "%cs += %d" : "%cs += %d * w_step", c, t->bk * t->split / packed(t));
	else if (t->operands == P_CARRIED)
		put_line(f, 1, "%cs = %s", c,
			 place_of(place, t, c, t->weights == W_MX ? "(begin // 2 + half)" : "(begin + d)"));
	else if (t->operands == P_BLOCKS && move)
		put_line(f, 2, "%cs = tl.advance(%cs, (%d, 0))", c, c, deep * t->split);
	else if (t->operands == P_BLOCKS)
		put_line(f, 1,
			 "%cs = tl.make_block_ptr(matrix, shape=(%s, N), strides=(%s), offsets=(begin // %d, column * "
			 "%d%s), block_shape=(%d, %d), order=(%s))",
			 c, k, along ? "1, w_step" : "w_step, 1", t->bk / deep, t->bn, behind, deep, t->bn,
			 along ? "0, 1" : "1, 0");
	else if (t->operands == P_DESCRIPTORS && !move && along)
		put_line(f, 1, "%cs = tl.make_tensor_descriptor(matrix, [N, %s], [w_step, 1], [%d, %d])", c, k, t->bn,
			 deep);
	else if (t->operands == P_DESCRIPTORS && !move)
		put_line(f, 1, "%cs = tl.make_tensor_descriptor(matrix, [%s, N], [w_step, 1], [%d, %d])", c, k, deep,
			 t->bn);
}

/* The scales of a tile of weights, or of its columns. */
static void print_scales(FILE *f, const struct experts *t, int depth, char c)
{
	char mask[60] = "", n[60], k[60] = "";
	if (!t->wraps)
		snprintf(mask, sizeof mask, ", mask=(n < %s)[None, :], other=0.0", side(t));
	if (t->scales == C_EXPERT) {
		put_line(f, depth, "%c_scale = tl.load(s_ptr + expert)", c);
		return;
	}
	snprintf(n, sizeof n, t->scales == C_BAND ? "(%s // 16)[None, :] * %d" : "%s[None, :] * %d", columns_text(c),
		 groups(t));
	if (t->scales >= C_GROUP && t->group % t->bk)
		snprintf(k, sizeof k, " + (tl.minimum(k, K - 1) // %d)[:, None]", t->group);
	else if (t->scales >= C_GROUP)
		snprintf(k, sizeof k, " + start // %d", t->group);
	put_line(f, depth, "%c_at = expert * %d + %s%s", c, scales_of(t), n, k);
	put_line(f, depth, "%c_scale = tl.load(s_ptr + %c_at%s)", c, c, mask);
	if (t->points)
		put_line(f, depth, "%c_point = tl.load(zs_ptr + %c_at%s)", c, c, mask);
}

/* Scales of microscaling formats: of a column's groups. */
static void print_mx(FILE *f, const struct experts *t, char c)
{
	char group[60], mask[160] = "";
	snprintf(group, sizeof group, "(start // 32 + tl.arange(0, %d))", t->bk / 32);
	if (!t->wraps)
		sprintf(mask, ", other=0, mask=(n < %s)[:, None]", side(t));
	if (!t->even)
		sprintf(mask + strlen(mask), "%s(%s < %d)[None, :]", *mask ? " & " : ", other=0, mask=", group,
			groups(t));
	put_line(f, 2, "%c_at = expert * %d + %s[:, None] * %d + %s[None, :]", c, scales_of(t), columns_text(c),
		 groups(t), group);
	put_line(f, 2, "%c_scale = tl.load(s_ptr + %c_at%s)", c, c, mask);
}

/* Is each product scaled? */
static bool each(const struct experts *t)
{
	return t->scales >= C_GROUP && !t->before;
}

static void print_weights(FILE *f, const struct experts *t, char c)
{
	char mask[80], place[100];
	const char *behind = c == 'u' ? " + N // 2" : "", *type = t->type == TL_F16 ? "tl.float16" : "tl.bfloat16";
	if (t->operands == P_DESCRIPTORS)
		put_line(f, 2,
			 t->columns ? "%c = %cs.load([column * %d%s, start%s]).T"
				    : "%c = %cs.load([start, column * %d%s])",
			 c, c, t->bn, behind, t->weights == W_MX ? " // 2" : "");
	else if (t->operands == P_BLOCKS)
		put_line(f, 2, "%c = tl.load(%cs, boundary_check=(%s), padding_option=\"zero\"%s)", c, c,
			 t->even ? "1," : "0, 1", t->policy);
	else if (t->operands == P_CARRIED)
		put_line(f, 2, "%c = tl.load(%cs%s%s)", c, c, mask_of(mask, t), t->policy);
	else
		put_line(f, 2, "%c = tl.load(%s%s%s)", c, place_of(place, t, c, t->weights == W_MX ? "pairs" : "k"),
			 mask_of(mask, t), t->policy);
	if (t->weights == W_MX) {
		print_mx(f, t, c);
		return;
	}
	if (t->scales && (t->before || (each(t) && !t->flush)))
		print_scales(f, t, 2, c);
	if (is_int4(t))
		put_line(f, 2, "%c = (%c >> (k %% %d * 4)[:, None]) & 15", c, c, packed(t));
	if (is_int4(t))
		put_line(f, 2, t->points ? "%c = %c.to(tl.float32) - %c_point" : "%c = %c.to(tl.float32) - 8", c, c, c);
	if (t->scales && t->before)
		put_line(f, 2, "%c = (%c.to(tl.float32) * %c_scale).to(%s)", c, c, c, type);
	else if (t->w_type != t->x_type)
		put_line(f, 2, "%c = %c.to(%s)", c, c, type);
}

static bool sums_integers(const struct experts *t)
{
	return t->small && t->weights == W_INT8;
}

static void print_product(FILE *f, const struct experts *t, char c)
{
	const char *type = sums_integers(t) ? "tl.int32" : "tl.float32";
	const char *format = t->small ? "e4m3" : t->type == TL_F16 ? "fp16" : "bf16";
	if (t->weights == W_MX) {
		put_line(f, 2, "%c_sum = tl.dot_scaled(a, None, \"%s\", %c, %c_scale, \"e2m1\", %c_sum)", c, format, c,
			 c, c);
	} else if (t->flush) {
		put_line(f, 2, "%c_part = tl.dot(a, %c, %c_part, out_dtype=%s)", c, c, c, type);
		put_line(f, 2, "if start %% %d == %d:", t->group, t->group - t->bk);
		print_scales(f, t, 3, c);
		put_line(f, 3, "%c_sum += %c_part%s * %c_scale", c, c, sums_integers(t) ? ".to(tl.float32)" : "", c);
		put_line(f, 3, "%c_part = tl.zeros((%d, %d), %s)", c, t->bm, t->bn, type);
	} else if (each(t))
		put_line(f, 2, "%c_sum += tl.dot(a, %c)%s * %c_scale", c, c, sums_integers(t) ? ".to(tl.float32)" : "",
			 c);
	else if (t->numbers)
		put_line(f, 2, "%c_sum += tl.dot(a, %c, out_dtype=%s)", c, c, type);
	else
		put_line(f, 2, "%c_sum = tl.dot(a, %c, %c_sum, out_dtype=%s)", c, c, c, type);
}

/* What becomes of a sum when it is complete. */
static void print_sum(FILE *f, const struct experts *t, char c)
{
	if (sums_integers(t) && !each(t))
		put_line(f, 1, "%c_sum = %c_sum.to(tl.float32)", c, c);
	if (t->scales && !t->before && !each(t)) {
		print_scales(f, t, 1, c);
		put_line(f, 1, "%c_sum *= %c_scale", c, c);
	}
	if (t->row_scale)
		put_line(f, 1, "%c_sum *= tl.load(xs_ptr + rows, mask=seen, other=0.0)[:, None]", c);
	if (t->bias && t->wraps)
		put_line(f, 1, "%c_sum += tl.load(bias_ptr + expert * N + %s)[None, :]", c, columns_text(c));
	else if (t->bias)
		put_line(f, 1, "%c_sum += tl.load(bias_ptr + expert * N + %s, mask=n < %s, other=0.0)[None, :]", c,
			 columns_text(c), side(t));
}

static const char names[] =
	"x_ptr, w_ptr, out_ptr, s_ptr, xs_ptr, zs_ptr, bias_ptr, routes_ptr, N, K, x_step, w_step, w_size, out_step";

static void print_tile(FILE *f, const struct experts *t)
{
	const char *type = sums_integers(t) && !each(t) ? "tl.int32" : "tl.float32";
	const char *seen = t->first_row ? "" : "seen[:, None]", *inside = t->even ? "" : "(k < K)[None, :]";
	int out = t->pairs == U_SPLIT ? t->bn / 2 : t->bn, step = t->bk * t->split;
	fprintf(f, "\n@triton.jit\ndef multiply(expert, slots, seen, column, %s):\n", names);
	put_line(f, 1, "n = column * %d + tl.arange(0, %d)\n    d = tl.arange(0, %d)", t->bn, t->bn, t->bk);
	if (t->weights == W_MX)
		put_line(f, 1, "half = tl.arange(0, %d)", t->bk / 2);
	if (t->wraps)
		put_line(f, 1, "n = n %% (%s)", side(t));
	put_line(f, 1, t->split > 1 ? "begin = tl.program_id(2) * %d" : "begin = 0", t->bk);
	put_line(f, 1, t->own ? "rows = slots" : "rows = slots // %d", t->top);
	if (t->first_row)
		put_line(f, 1, "rows = tl.where(seen, rows, 0)");
	put_line(f, 1, "matrix = w_ptr + expert%s * w_size", t->flatten ? ".to(tl.int64)" : "");
	if (t->gathered)
		put_line(f, 1, "xs = tl.make_tensor_descriptor(x_ptr, [%d, K], [x_step, 1], [1, %d])",
			 t->own ? slots_of(t) : t->tokens, t->bk);
	else if (t->operands == P_CARRIED)
		put_line(f, 1, "xs = x_ptr + rows[:, None] * x_step + (begin + d)[None, :]");
	print_handle(f, t, 'w', false);
	if (t->pairs == U_TWO)
		print_handle(f, t, 'u', false);
	put_line(f, 1, "w_sum = tl.zeros((%d, %d), %s)\n    u_sum = w_sum", t->bm, t->bn, type);
	if (t->flush)
		put_line(f, 1, "w_part = tl.zeros((%d, %d), %s)\n    u_part = w_part", t->bm, t->bn,
			 sums_integers(t) ? "tl.int32" : "tl.float32");
	if (t->numbers)
		put_line(f, 1,
			 "for number in tl.range(0, tl.cdiv(K - begin, %d)%s):\n        start = begin + number * %d",
			 step, t->asked, step);
	else
		put_line(f, 1, "for start in tl.range(begin, K, %d%s):", step, t->asked);
	put_line(f, 2, "k = start + d");
	if (t->weights == W_MX)
		put_line(f, 2, "pairs = start // 2 + half");
	if (t->gathered)
		put_line(f, 2, "a = xs.gather(rows, start)");
	else
		put_line(f, 2, *seen || *inside ? "a = tl.load(%s, mask=%s%s%s, other=0)" : "a = tl.load(%s)",
			 t->operands == P_CARRIED ? "xs" : "x_ptr + rows[:, None] * x_step + k[None, :]", seen,
			 *seen && *inside ? " & " : "", inside);
	for (int i = 0; i <= (t->pairs == U_TWO); i++)
		print_weights(f, t, "wu"[i]), print_product(f, t, "wu"[i]);
	if (t->operands == P_CARRIED && !t->gathered)
		put_line(f, 2, "xs += %d", step);
	print_handle(f, t, 'w', true);
	if (t->pairs == U_TWO)
		print_handle(f, t, 'u', true);
	for (int i = 0; i <= (t->pairs == U_TWO); i++)
		print_sum(f, t, "wu"[i]);
	if (t->pairs == U_SPLIT)
		put_line(f, 1, "w_sum, u_sum = tl.split(tl.reshape(w_sum, (%d, %d, 2)))", t->bm, t->bn / 2);
	if (t->pairs)
		put_line(f, 1, "w_sum = w_sum / (1.0 + tl.exp(-w_sum)) * u_sum");
	if (t->routed)
		put_line(f, 1, "w_sum = w_sum * tl.load(routes_ptr + slots, mask=seen, other=0.0)[:, None]");
	put_line(f, 1, "to = column * %d + tl.arange(0, %d)", out, out);
	put_line(f, 1,
		 "%s(out_ptr + slots[:, None] * out_step + to[None, :], w_sum.to(out_ptr.dtype.element_ty), "
		 "mask=seen[:, None] & (to < %s)[None, :])",
		 t->split > 1 ? "tl.atomic_add" : "tl.store", t->pairs ? "N // 2" : "N");
}

/* A program's tile of slots and of columns, by its number. */
static void print_order(FILE *f, const struct experts *t, int depth, const char *tiles)
{
	if (t->order == O_COLUMNS) {
		put_line(f, depth, "tile = number // columns\n%*scolumn = number %% columns", 4 * depth, "");
	} else if (t->order == O_AXES) {
		put_line(f, depth, "tile = number %% %s\n%*scolumn = number // %s", tiles, 4 * depth, "", tiles);
	} else {
		put_line(f, depth, "first_tile = number // (%d * columns) * %d", t->group_m, t->group_m);
		put_line(f, depth, "group = tl.minimum(%s - first_tile, %d)", tiles, t->group_m);
		put_line(f, depth, "tile = first_tile + number %% (%d * columns) %% group", t->group_m);
		put_line(f, depth, "column = number %% (%d * columns) // group", t->group_m);
	}
}

static void print_sorted(FILE *f, const struct experts *t, int depth)
{
	int width = t->pairs == U_SPLIT ? t->bn / 2 : t->bn;
	if (!t->exact)
		put_line(f, depth, "count = tl.load(counts_ptr)");
	if (!t->exact && t->returns)
		put_line(f, depth, "if tile * %d >= count:\n        return", t->bm);
	else if (!t->exact)
		put_line(f, depth++, "if tile * %d < count:", t->bm);
	put_line(f, depth, "slots = tl.load(slots_ptr + tile * %d + tl.arange(0, %d))", t->bm, t->bm);
	put_line(f, depth, "expert = tl.load(ids_ptr + tile)");
	put_line(f, depth, "seen = slots < valid");
	if (t->exact) {
		put_line(f, depth, "multiply(expert, slots, seen, column, %s)", names);
		return;
	}
	put_line(f, depth++, "if expert == -1:");
	if (t->zeros) {
		put_line(f, depth, "n = column * %d + tl.arange(0, %d)", width, width);
		put_line(f, depth,
			 "tl.store(out_ptr + slots[:, None] * out_step + n[None, :], tl.zeros((%d, %d), tl.float32), "
			 "mask=seen[:, None] & (n < out_step)[None, :])",
			 t->bm, width);
	}
	if (t->returns)
		put_line(f, depth--, "return");
	else
		put_line(f, depth - 1, t->zeros ? "else:" : "    pass\n%*selse:", 4 * depth - 4, "");
	put_line(f, depth, "multiply(expert, slots, seen, column, %s)", names);
}

/* Rows of `expert`, from the first one of `tile`. */
static void print_run(FILE *f, const struct experts *t, int depth)
{
	put_line(f, depth, "place = first + tile * %d + tl.arange(0, %d)\n%*sseen = place < last", t->bm, t->bm,
		 4 * depth, "");
	put_line(f, depth, t->ordered ? "slots = place" : "slots = tl.load(slots_ptr + place, mask=seen, other=0)");
	put_line(f, depth, "multiply(expert, slots, seen, column, %s)", names);
}

static void print_runs(FILE *f, const struct experts *t, int depth)
{
	put_line(f, depth, "first = tl.load(counts_ptr + expert)\n%*slast = tl.load(counts_ptr + expert + 1)",
		 4 * depth, "");
	if (t->returns)
		put_line(f, depth, "if first + tile * %d >= last:\n        return", t->bm);
	else
		put_line(f, depth++, "if first + tile * %d < last:", t->bm);
	print_run(f, t, depth);
}

static void print_all(FILE *f, const struct experts *t)
{
	put_line(f, 1, "number_of_all = tl.program_id(0)\n    before = 0");
	put_line(f, 1,
		 t->flatten ? "for expert in tl.range(0, %d):" : "for expert in tl.static_range(%d):", t->experts);
	put_line(f, 2, "first = tl.load(counts_ptr + expert)\n        last = tl.load(counts_ptr + expert + 1)");
	put_line(f, 2, "high = tl.cdiv(last - first, %d)", t->bm);
	put_line(f, 2, "while number_of_all >= before and number_of_all < before + high * columns:");
	put_line(f, 3, "number = number_of_all - before");
	print_order(f, t, 3, "high");
	print_run(f, t, 3);
	put_line(f, 3, "number_of_all += %d", t->programs);
	put_line(f, 2, "before += high * columns");
}

char *experts_text(const struct experts *t)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	int depth = 1;
	fprintf(f, "import triton\nimport triton.language as tl\n");
	print_tile(f, t);
	fprintf(f, "\n@triton.jit\ndef kernel(%s, slots_ptr, ids_ptr, counts_ptr, valid, tiles):\n", names);
	if (t->literal)
		put_line(f, 1, "N = %d\n    K = %d", t->n, t->k);
	put_line(f, 1, "columns = tl.cdiv(%s, %d)", side(t), t->bn);
	if (t->find == S_LOOP) {
		print_all(f, t);
	} else {
		if (t->programs)
			put_line(f, depth++,
				 "for number in tl.range(tl.program_id(0), tiles * columns, %d%s):", t->programs,
				 t->flatten ? ", flatten=True" : "");
		else
			put_line(f, depth, "number = tl.program_id(0)");
		print_order(f, t, depth, "tiles");
		if (t->find == S_RUNS)
			put_line(f, depth, "expert = tl.program_id(1)");
		t->find == S_SORTED ? print_sorted(f, t, depth) : print_runs(f, t, depth);
	}
	fclose(f);
	return text;
}
