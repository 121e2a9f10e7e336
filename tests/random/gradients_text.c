/* Random kernels of gradients of attentions as text. */
#include "gradients.h"

/* The tile of queries, keys, values or gradients, or its transpose. `keys`: in a loop over keys. */
static const char *tile(char *to, const struct gradients *t, bool keys, char c, bool turned)
{
	bool moves = keys == (c == 'k' || c == 'v'), columns = moves && t->columns[c == 'g' || c == 'v'];
	sprintf(to, turned == columns ? "%c" : t->base2 ? "tl.trans(%c)" : "%c.T", c);
	return to;
}

/* What runs along the scores' queries, or keys, as it is broadcast. */
static const char *along(const struct gradients *t, bool keys)
{
	return keys == t->upright ? "[None, :]" : "[:, None]";
}

/* Handles of the loop's tiles, which `move` moves on. */
static void print_handle(FILE *f, const struct gradients *t, bool keys, char c, bool move)
{
	int step = row_step(t, keys), d = t->d, width = t->width;
	bool columns = t->columns[c == 'g' || c == 'v'];
	char size = keys ? 'n' : 'm';
	if (t->operands == P_CARRIED && move)
		put_line(f, 2, "%cs += BLOCK * %d", c, step);
	else if (t->operands == P_CARRIED)
		put_line(f, 1, "%cs = %c_ptr + (lo + tl.arange(0, BLOCK))[%s] * %d + d[%s]", c, c,
			 columns ? "None, :" : ":, None", step, columns ? ":, None" : "None, :");
	else if (t->operands == P_BLOCKS && move)
		put_line(f, 2, "%cs = tl.advance(%cs, %s)", c, c, columns ? "(0, BLOCK)" : "(BLOCK, 0)");
	else if (t->operands == P_BLOCKS && columns)
		put_line(f, 1,
			 "%cs = tl.make_block_ptr(%c_ptr, shape=(%d, %c), strides=(1, %d), offsets=(0, lo), "
			 "block_shape=(%d, BLOCK), order=(0, 1))",
			 c, c, width, size, step, d);
	else if (t->operands == P_BLOCKS)
		put_line(f, 1,
			 "%cs = tl.make_block_ptr(%c_ptr, shape=(%c, %d), strides=(%d, 1), offsets=(lo, 0), "
			 "block_shape=(BLOCK, %d), order=(1, 0))",
			 c, c, size, width, step, d);
	else if (t->operands == P_DESCRIPTORS && !move)
		put_line(f, 1, "%cs = tl.make_tensor_descriptor(%c_ptr, [%c, %d], [%d, 1], [BLOCK, %d])", c, c, size,
			 width, step, d);
}

/* The mask of a number for each query. */
static const char *line_mask(const struct gradients *t, bool infinite)
{
	return t->even_m || t->padded ? ""
	       : infinite             ? ", mask=i < m, other=float(\"inf\")"
				      : ", mask=i < m, other=0.0";
}

/* The mask of a tile: of its rows, if they need one, and of what a row has. */
static const char *mask_of(char *to, const struct gradients *t, const char *rows, bool columns, bool loads)
{
	const char *across = columns ? "[None, :]" : "[:, None]", *inside = columns ? "[:, None]" : "[None, :]";
	char deep[32] = "";
	if (t->width < t->d)
		snprintf(deep, sizeof deep, "(d < %d)%s", t->width, inside);
	*to = 0;
	if (*rows && *deep)
		sprintf(to, ", mask=(%s)%s & %s", rows, across, deep);
	else if (*rows)
		sprintf(to, ", mask=(%s)%s", rows, across);
	else if (*deep)
		sprintf(to, ", mask=%s", deep);
	if (*to && loads)
		strcat(to, ", other=0.0");
	return to;
}

/* A loop's tile. Where a part of it is seen as a whole, keys need a mask in the other one only. */
static void print_load(FILE *f, const struct gradients *t, int depth, bool keys, char c)
{
	char index = keys ? 'j' : 'i', mask[80], whole[80], place[80];
	bool columns = t->columns[c == 'g' || c == 'v'], masked = t->ahead || (keys ? !t->even_n : !t->even_m);
	bool deep = t->width < t->d;
	const char *across = columns ? "None, :" : ":, None", *inside = columns ? ":, None" : "None, :";
	if (t->operands == P_DESCRIPTORS) {
		put_line(f, depth, "%c = %cs.load([start, 0])", c, c);
		return;
	}
	if (t->operands == P_BLOCKS) {
		snprintf(mask, sizeof mask, ", boundary_check=(%s), padding_option=\"zero\"",
			 deep      ? "0, 1"
			 : columns ? "1,"
				   : "0,");
		snprintf(whole, sizeof whole, deep ? ", boundary_check=(%d,), padding_option=\"zero\"" : "", !columns);
	} else {
		mask_of(mask, t, keys ? "j < n" : "i < m", columns, true);
		mask_of(whole, t, "", columns, true);
	}
	if (t->operands == P_POINTERS)
		snprintf(place, sizeof place, "%c_ptr + %c[%s] * %d + d[%s]", c, index, across, row_step(t, keys),
			 inside);
	else
		snprintf(place, sizeof place, "%cs", c);
	if (masked && keys && t->keys == K_SPLIT && !t->ahead) {
		put_line(f, depth, "if MASK:\n%*s%c = tl.load(%s%s)\n%*selse:", 4 * depth + 4, "", c, place, mask,
			 4 * depth, "");
		depth++;
		masked = false;
	}
	put_line(f, depth, "%c = tl.load(%s%s)", c, place, masked ? mask : whole);
}

static void print_seen(FILE *f, const struct gradients *t, bool keys)
{
	const char *i = along(t, false), *j = along(t, true);
	if (t->keys == K_ALL && (t->even_n || (!keys && !sums_queries(t))))
		return;
	put_line(f, t->in, "if MASK:");
	if (t->keys == K_ALL)
		put_line(f, t->in + 1, "seen = (j < n)%s", j);
	else if (t->keys == K_WINDOW)
		put_line(f, t->in + 1, "seen = (j%s <= i%s + behind) & (i%s + behind - j%s < window)", j, i, i, j);
	else
		put_line(f, t->in + 1, "seen = j%s <= i%s + behind", j, i);
	put_line(f, t->in + 1, t->scores ? "s = tl.where(seen, s, float(\"-inf\"))" : "p = tl.where(seen, p, 0.0)");
}

static void print_product(FILE *f, const struct gradients *t, const char *sum, const char *a, bool turned,
			  const char *b)
{
	char precision[40] = "";
	if (t->precision)
		snprintf(precision, sizeof precision, ", input_precision=\"%s\"", t->precision);
	const char *from = turned ? "tl.trans(" : "", *to = turned ? ")" : "";
	if (t->apart)
		put_line(f, t->in, "%s += tl.dot(%s%s%s, %s%s)", sum, from, a, to, b, precision);
	else
		put_line(f, t->in, "%s = tl.dot(%s%s%s, %s, %s%s)", sum, from, a, to, b, sum, precision);
}

/* Probabilities p and gradients ds of scores, and what they add to the sums. */
static void print_body(FILE *f, const struct gradients *t, bool keys)
{
	char a[16], b[16], mask[80], precision[40] = "";
	bool u = t->upright;
	const char *i = along(t, false), *exp2 = "p = tl.exp2(s * 1.4426950408889634 - lse%s)";
	if (t->precision)
		snprintf(precision, sizeof precision, ", input_precision=\"%s\"", t->precision);
	if (!keys)
		put_line(f, t->in, "lse = tl.load(lse_ptr + i%s)", line_mask(t, t->infinite));
	put_line(f, t->in, "s = tl.dot(%s, %s%s)%s", tile(a, t, keys, u ? 'q' : 'k', false),
		 tile(b, t, keys, u ? 'k' : 'q', true), precision, t->early ? "" : " * scale");
	if (t->capped)
		put_line(f, t->in, "bend = 2.0 / (1.0 + tl.exp(s * (-2.0 / %g))) - 1.0", cap),
			put_line(f, t->in, "s = bend * %g", cap);
	if (t->bias)
		put_line(f, t->in, "s += tl.load(bias_ptr + i%s * n + j%s, mask=(i < m)%s & (j < n)%s, other=0.0)", i,
			 along(t, true), i, along(t, true));
	if (t->distance)
		put_line(f, t->in, "s += (j%s - i%s) * 0.125", along(t, true), i);
	if (t->scores)
		print_seen(f, t, keys);
	put_line(f, t->in, t->base2 ? exp2 : "p = tl.exp(s - lse%s)", i);
	if (!t->scores)
		print_seen(f, t, keys);
	if (t->segments) {
		put_line(f, t->in, "of_queries = tl.load(segments_ptr + i + behind, mask=i < m, other=-1)");
		put_line(f, t->in, "of_keys = tl.load(segments_ptr + j, mask=j < n, other=-1)");
		put_line(f, t->in, "p = tl.where(of_queries%s == of_keys%s, p, 0.0)", i, along(t, true));
	}
	print_load(f, t, t->in, keys, keys ? 'v' : 'g');
	if (!keys)
		print_product(f, t, "dv", "p.to(k.dtype)", u, tile(b, t, keys, 'g', false));
	if (!keys)
		put_line(f, t->in, "delta = tl.load(delta_ptr + i%s)", line_mask(t, false));
	put_line(f, t->in, "dp = tl.dot(%s, %s%s)", tile(a, t, keys, u ? 'g' : 'v', false),
		 tile(b, t, keys, u ? 'v' : 'g', true), precision);
	put_line(f, t->in, "ds = (p * (dp - delta%s)%s%s).to(q.dtype)", i, t->capped ? " * (1.0 - bend * bend)" : "",
		 t->late ? "" : " * scale");
	if (t->stored)
		put_line(f, t->in, "tl.store(ds_ptr + i%s * n + j%s, ds, mask=(i < m)%s & (j < n)%s)", i,
			 along(t, true), i, along(t, true));
	if (keys)
		print_product(f, t, "dq", "ds", !u, tile(b, t, keys, 'k', false));
	else
		print_product(f, t, "dk", "ds", u, tile(b, t, keys, 'q', false));
	if (sums_queries(t))
		put_line(f, t->in, "to = dq_ptr + i[:, None] * %d + d[None, :]", row_step(t, false));
	if (t->part == G_ATOMICS) {
		put_line(f, t->in, "dq = tl.zeros((BLOCK, %d), tl.float32)", t->d);
		print_product(f, t, "dq", "ds", !u, "k");
		put_line(f, t->in, "tl.atomic_add(to, dq%s%s)", mask_of(mask, t, "i < m", false, false),
			 t->swapped ? ", sem=\"relaxed\"" : "");
	} else if (t->part == G_COLUMNS) {
		put_line(f, t->in, "dq = tl.load(to%s)", mask_of(mask, t, "i < m", false, true));
		print_product(f, t, "dq", "ds", !u, "k");
		put_line(f, t->in, "tl.store(to, dq%s)", mask_of(mask, t, "i < m", false, false));
	}
}

/* A loop over the tiles of queries of all heads that share keys. */
static void print_one(FILE *f, const struct gradients *t, const char *asked)
{
	static const char *const each[] = {"q", "g", "dq", "lse", "delta", "ds"};
	const int sizes[] = {t->m * t->width, t->m * t->width, t->m * t->width, lse_size(t), lse_size(t), t->m * t->n};
	for (int k = 0; k < COUNT(each); k++)
		put_line(f, 1, "%s_base = %s_ptr", each[k], each[k]);
	put_line(f, 1, "steps = tl.cdiv(hi - lo, BLOCK)\n    for number in tl.range(0, steps * %d%s):", t->share,
		 asked);
	for (int k = 0; k < COUNT(each); k++)
		put_line(f, 2, "%s_ptr = %s_base + number // steps * %d", each[k], each[k],
			 t->rows && k < 3 ? t->width : sizes[k]);
	put_line(f, 2, "start = lo + number %% steps * BLOCK");
}

static void print_visit(FILE *f, const struct gradients *t, bool keys)
{
	const char *asked = t->asked;
	char index = keys ? 'j' : 'i', first = keys ? 'k' : 'q', second = keys ? 'v' : 'g';
	fprintf(f,
		"\n@triton.jit\ndef %s, bias_ptr, segments_ptr, ds_ptr, m, n, scale, window, lo, hi, "
		"BLOCK: tl.constexpr, MASK: tl.constexpr):\n",
		keys ? "visit_keys(dq, q, g, lse, delta, i, k_ptr, v_ptr"
		     : "visit_queries(dk, dv, k, v, j, q_ptr, g_ptr, lse_ptr, delta_ptr, dq_ptr");
	put_line(f, 1, "behind = n - m\n    d = tl.arange(0, %d)", t->d);
	print_handle(f, t, keys, first, false);
	print_handle(f, t, keys, second, false);
	if (t->ahead) {
		put_line(f, 1, "%c = lo + tl.arange(0, BLOCK)", index);
		print_load(f, t, 1, keys, first);
	}
	if (is_one(t, keys))
		print_one(f, t, asked);
	else if (t->loop == W_STARTS)
		put_line(f, 1, "for start in tl.range(lo, hi, BLOCK%s):", asked);
	else if (t->loop == W_STEPS)
		put_line(f, 1, "start = lo\n    for number in tl.range(0, tl.cdiv(hi - lo, BLOCK)%s):", asked);
	else if (t->loop == W_DOWN)
		put_line(f, 1, "for start in tl.range(lo + tl.cdiv(hi - lo, BLOCK) * BLOCK - BLOCK, lo - 1, -BLOCK%s):",
			 asked);
	else
		put_line(f, 1, "start = lo\n    while start < hi:");
	if (t->hints)
		put_line(f, 2, "start = tl.multiple_of(start, BLOCK)");
	put_line(f, 2, "%c = start + tl.arange(0, BLOCK)", index);
	if (!t->ahead)
		print_load(f, t, 2, keys, first);
	if (t->in > 2)
		put_line(f, 2,
			 keys ? "if start <= tl.max(i, 0) + behind:" : "if start + BLOCK + behind > tl.min(j, 0):");
	print_body(f, t, keys);
	print_handle(f, t, keys, first, true);
	print_handle(f, t, keys, second, true);
	if (t->ahead) {
		put_line(f, 2, "%c = start + BLOCK + tl.arange(0, BLOCK)", index);
		print_load(f, t, 2, keys, first);
	}
	if ((t->loop == W_STEPS || t->loop == W_WHILE) && !is_one(t, keys))
		put_line(f, 2, "start += BLOCK");
	put_line(f, 1, "return %s", keys ? "dq" : "dk, dv");
}

/* One loop, or the one over what is seen in part and the one over the rest. */
static void print_loops(FILE *f, const struct gradients *t, bool keys, int depth, const char *call)
{
	int still = t->blocks[keys].still, moving = t->blocks[keys].moving, fine = t->fine && moving > 16 ? 2 : 1;
	char part[120], rest[120];
	bool bound = t->keys >= K_BOUND;
	put_line(f, depth, "behind = n - m\n%*slo = 0\n%*shi = %c", 4 * depth, "", 4 * depth, "", keys ? 'n' : 'm');
	if (bound && keys)
		put_line(f, depth, "hi = tl.minimum((tile + 1) * %d + behind, n)", still);
	if (t->keys == K_WINDOW && keys)
		put_line(f, depth, "lo = tl.maximum(tile * %d + behind - window + 1, 0) // %d * %d", still, moving,
			 moving);
	if (bound && !keys)
		put_line(f, depth, "lo = tl.maximum(tile * %d - behind, 0) // %d * %d", still, moving, moving);
	if (t->keys == K_WINDOW && !keys)
		put_line(f, depth, "hi = tl.minimum((tile + 1) * %d - 1 + window - behind, m)", still);
	if (t->keys != K_SPLIT) {
		put_line(f, depth, "%s, lo, hi, %d, True)", call, moving);
		return;
	}
	if (keys)
		put_line(f, depth, "clear = (tile * %d + behind + 1) // %d * %d", still, moving, moving);
	else
		put_line(f, depth, "clear = tl.cdiv(tl.maximum((tile + 1) * %d - 1 - behind, 0), %d) * %d", still,
			 moving, moving);
	snprintf(part, sizeof part, keys ? "clear, hi, %d, True" : "lo, tl.minimum(clear, hi), %d, True",
		 moving / fine);
	snprintf(rest, sizeof rest, keys ? "lo, clear, %d, False" : "clear, hi, %d, False", moving);
	put_line(f, depth, "%s, %s)", call, t->swapped ? rest : part);
	put_line(f, depth, "%s, %s)", call, t->swapped ? part : rest);
}

static const char names[] = "q_ptr, k_ptr, v_ptr, g_ptr, o_ptr, lse_ptr, delta_ptr, dq_ptr, dk_ptr, dv_ptr, "
			    "bias_ptr, segments_ptr, ds_ptr, first, scale, m, n, q_size, k_size, lse_size, window";

/* Where the rows of a head begin. */
static void print_place(FILE *f, const struct gradients *t, int depth, const char *head, bool keys)
{
	char c = keys ? 'k' : 'q';
	const char *wide = t->wide ? ".to(tl.int64)" : "";
	if (t->packed || t->rows)
		put_line(f, depth, "%c_at = %s%s * %d", c, t->packed ? "first" : head, wide, t->width);
	else
		put_line(f, depth, "%c_at = %s%s * %c_size", c, head, wide, c);
	if (!keys && t->packed)
		put_line(f, depth, "lse_at = first");
	else if (!keys)
		put_line(f, depth, "lse_at = %s * lse_size", head);
}

/* A tile that a program keeps. */
static void print_kept(FILE *f, const struct gradients *t, bool keys, char c)
{
	char mask[80];
	const char *rows = keys ? t->even_n ? "" : "j < n" : t->even_m ? "" : "i < m";
	put_line(f, 1, "%c = tl.load(%c_ptr + %c_at + %c[:, None] * %d + d[None, :]%s)", c, c, keys ? 'k' : 'q',
		 keys ? 'j' : 'i', row_step(t, keys), mask_of(mask, t, rows, false, true));
}

static void print_result(FILE *f, const struct gradients *t, bool keys, const char *sum)
{
	char mask[80];
	if (t->late && strcmp(sum, "dv") != 0)
		put_line(f, 1, "%s *= scale", sum);
	put_line(f, 1, "tl.store(%s_ptr + %c_at + %c[:, None] * %d + d[None, :], %s.to(%s_ptr.dtype.element_ty)%s)",
		 sum, keys ? 'k' : 'q', keys ? 'j' : 'i', row_step(t, keys), sum, sum,
		 mask_of(mask, t, keys ? "j < n" : "i < m", false, false));
}

static void print_keys(FILE *f, const struct gradients *t)
{
	static const char *const ranges[] = {"tl.range(0, %d)", "tl.static_range(%d)", "tl.range(0, %d, flatten=True)",
					     "%d"};
	bool inner = t->share > 1 && !is_one(t, false);
	int still = t->blocks[0].still, depth = inner ? 2 : 1;
	char range[40];
	fprintf(f, "\n@triton.jit\ndef gradient_of_keys(tile, head, %s):\n", names);
	put_line(f, 1, "j = tile * %d + tl.arange(0, %d)\n    d = tl.arange(0, %d)", still, still, t->d);
	print_place(f, t, 1, "head", true);
	print_kept(f, t, true, 'k');
	print_kept(f, t, true, 'v');
	if (t->early)
		put_line(f, 1, "k = (k * scale).to(k.dtype)");
	put_line(f, 1, "dk = tl.zeros((%d, %d), tl.float32)\n    dv = tl.zeros((%d, %d), tl.float32)", still, t->d,
		 still, t->d);
	snprintf(range, sizeof range, ranges[t->around], t->share);
	if (inner)
		put_line(f, 1, "for member in %s:", range);
	put_line(f, depth, inner ? "query_head = head * %d + member" : "query_head = head * %d", t->share);
	print_place(f, t, depth, "query_head", false);
	print_loops(f, t, false, depth,
		    "dk, dv = visit_queries(dk, dv, k, v, j, q_ptr + q_at, g_ptr + q_at, lse_ptr + lse_at, "
		    "delta_ptr + lse_at, dq_ptr + q_at, bias_ptr, segments_ptr, ds_ptr + query_head * m * n, m, n, "
		    "scale, window");
	print_result(f, t, true, "dk");
	print_result(f, t, true, "dv");
}

static void print_queries(FILE *f, const struct gradients *t)
{
	int still = t->blocks[1].still;
	fprintf(f, "\n@triton.jit\ndef gradient_of_queries(tile, head, %s):\n", names);
	put_line(f, 1, "i = tile * %d + tl.arange(0, %d)\n    d = tl.arange(0, %d)", still, still, t->d);
	print_place(f, t, 1, "head", false);
	put_line(f, 1, "key_head = head // %d", t->share);
	print_place(f, t, 1, "key_head", true);
	print_kept(f, t, false, 'q');
	print_kept(f, t, false, 'g');
	put_line(f, 1, "lse = tl.load(lse_ptr + lse_at + i%s)", line_mask(t, t->infinite));
	if (t->own) {
		print_kept(f, t, false, 'o');
		put_line(f, 1, "delta = tl.sum(o.to(tl.float32) * g.to(tl.float32), 1)");
	} else {
		put_line(f, 1, "delta = tl.load(delta_ptr + lse_at + i%s)", line_mask(t, false));
	}
	if (t->early)
		put_line(f, 1, "q = (q * scale).to(q.dtype)");
	put_line(f, 1, "dq = tl.zeros((%d, %d), tl.float32)", still, t->d);
	print_loops(f, t, true, 1,
		    "dq = visit_keys(dq, q, g, lse, delta, i, k_ptr + k_at, v_ptr + k_at, bias_ptr, segments_ptr, "
		    "ds_ptr + head * m * n, m, n, scale, window");
	print_result(f, t, false, "dq");
}

/* A program's tiles of keys, or of queries, if it has any. */
static void print_call(FILE *f, const struct gradients *t, int depth, bool keys)
{
	if (t->packed || t->part == G_BOTH)
		put_line(f, depth++, "if tile * %d < %c:", t->blocks[!keys].still, keys ? 'n' : 'm');
	put_line(f, depth, "gradient_of_%s(tile, head, %s)", keys ? "keys" : "queries", names);
}

char *gradients_text(const struct gradients *t)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	int depth = 1;
	fprintf(f, "import triton\nimport triton.language as tl\n");
	for (int keys = 0; keys < 2; keys++)
		if (t->part == G_BOTH || (t->part == G_QUERIES) == keys) {
			print_visit(f, t, keys);
			keys ? print_queries(f, t) : print_keys(f, t);
		}
	fprintf(f, "\n@triton.jit\ndef kernel(%s, starts_ptr, tiles):\n", names);
	if (t->literal)
		put_line(f, 1, "m = %d\n    n = %d", t->m, t->n);
	if (t->programs) {
		put_line(f, depth++, "for number in tl.range(tl.program_id(0), tiles * %d, %d%s):", heads_of(t),
			 t->programs, t->swapped ? ", flatten=True" : "");
		put_line(f, depth, "tile = number %% tiles\n        head = number // tiles");
	} else {
		put_line(f, depth, "tile = tl.program_id(0)\n    head = tl.program_id(1)");
	}
	if (t->packed) {
		put_line(f, depth, "first = tl.load(starts_ptr + head)");
		put_line(f, depth, "n = tl.load(starts_ptr + head + 1) - first");
		put_line(f, depth, "m = n");
	}
	if (t->part == G_COLUMNS)
		put_line(f, depth++, "for tile in range(0, tl.cdiv(n, %d)):", t->blocks[0].still);
	if (t->part != G_QUERIES)
		print_call(f, t, depth, true);
	if (t->part == G_QUERIES || t->part == G_BOTH)
		print_call(f, t, depth, false);
	fclose(f);
	return text;
}
