/* Random kernels of products of mixtures of experts, made and evaluated. */
#include <math.h>

#include "experts.h"
#include "../run/suite.h"

static void make_slots(struct experts *t)
{
	int at = 0;
	bool same = chance(30);
	t->experts = (int)random_int(1, MOST_EXPERTS);
	t->top = (int)random_int(1, t->experts < 3 ? t->experts : 3);
	t->tokens = (int)random_int(1, MOST_SLOTS / 3);
	for (int i = 0; i < slots_of(t); i++)
		t->expert_of[i] = i % t->top ? (t->expert_of[i - 1] + 1) % t->experts
				  : same     ? 0
					     : random_below(t->experts);
	for (int i = 0; i < slots_of(t) && t->ordered; i++)
		t->expert_of[i] = i * t->experts / slots_of(t);
	for (int e = 0; e < t->experts; e++) {
		for (int i = 0; i < slots_of(t); i++)
			if (t->expert_of[i] == e)
				t->sorted[at++] = i;
		t->start[e + 1] = at;
		t->blocks += (at - t->start[e] + t->bm - 1) / t->bm;
	}
	t->missing = t->find == S_SORTED && !t->exact && chance(40) ? random_below(t->experts) : -1;
}

static void make_matrices(struct experts *t)
{
	bool whole = t->operands == P_DESCRIPTORS || chance(50);
	t->n = 2 * (int)random_int(8, 64);
	t->k = round_up((int)random_int(4, 160), t->flush ? t->group : t->even ? t->bk : packed(t));
	t->k += t->k % 2;
	t->x_step = t->gathered ? round_up(t->k, 16) : t->k + (chance(50) ? 0 : 16);
	int row = t->columns ? t->k / packed(t) : t->n;
	t->w_step = whole ? round_up(row, 16) : row;
}

static void make_experts(struct experts *t)
{
	static const char *const loops[] = {"", ", warp_specialize=True", ", num_stages=2", ", num_stages=3",
					    ", loop_unroll_factor=2"},
				 *const policies[] = {"", ", eviction_policy=\"evict_first\"",
						      ", cache_modifier=\".cg\""};
	memset(t, 0, sizeof *t);
	t->find = chance(60) ? S_SORTED : random_below(FINDS);
	t->weights = chance(50) ? W_SAME : random_below(WEIGHTS);
	t->operands = chance(40) ? P_CARRIED : random_below(OPERANDS);
	t->gathered = chance(15);
	t->scales = t->weights == W_SAME ? C_NONE : random_below(SCALES);
	t->pairs = chance(60) ? U_NONE : random_below(PAIRS);
	t->order = random_below(ORDERS);
	t->type = chance(60) ? TL_F16 : TL_BF16;
	t->small = chance(40) && t->weights >= W_FP8 && !is_int4(t);
	t->w_type = t->weights == W_SAME    ? t->type
		    : t->weights == W_FP8   ? chance(70) ? TL_F8E4M3 : TL_F8E5M2
		    : t->weights == W_INT8  ? TL_I8
		    : t->weights == W_WORDS ? TL_I32
					    : TL_U8;
	t->x_type = !t->small ? t->type : t->weights == W_MX ? TL_F8E4M3 : t->w_type;
	t->result = chance(80) ? t->type : TL_F32;
	t->index = chance(70) || t->gathered ? TL_I32 : TL_I64;
	t->bm = (chance(10) ? 32 : 16) << random_below(3);
	t->bn = 16 << random_below(4);
	t->bk = (t->small || t->weights == W_MX ? 32 : 16) << random_below(3);
	t->ctas = chance(40) ? (int)random_int(1, 3) : 0;
	/* a block has a multiprocessor for itself, and may run several programs */
	bool alone = t->ctas && t->find == S_SORTED;
	if (alone)
		t->bm = t->bk = 64, t->bn = 128;
	t->group = chance(60) ? t->bk << random_below(2) : 16 << random_below(2);
	t->warps = chance(80) || alone ? 4 << random_below(2) : 1 << random_below(3);
	while (t->bm * t->bn > 4096 * t->warps) /* a thread has registers for its part of the sum */
		t->bn /= 2;
	t->stages = alone ? 5 : (int)random_int(1, 5);
	t->group_m = (int)random_int(1, 3);
	t->programs = alone || (chance(70) && t->find != S_LOOP) ? 0 : (int)random_int(1, 4);
	t->row_scale = chance(t->small ? 70 : 10);
	t->columns = chance(60);
	if (is_int4(t) && t->operands >= P_BLOCKS)
		t->operands = P_POINTERS;
	t->before = !t->small && (t->scales < C_GROUP ? chance(50) : t->group % t->bk != 0 || chance(50));
	if (!t->before && t->group % t->bk)
		t->group = t->bk;
	if (t->weights == W_MX) {
		t->scales = C_GROUP;
		t->group = 32;
		t->before = false;
		t->columns = true;
	}
	t->flush = t->scales >= C_GROUP && !t->before && t->group > t->bk;
	t->points = chance(50) && is_int4(t) && t->scales >= C_COLUMN && t->before;
	t->split = alone || chance(85) || t->pairs || t->flush ? 1 : (int)random_int(2, 3);
	t->bias = chance(20) && t->split == 1;
	if (t->split > 1)
		t->result = TL_F32;
	t->even = chance(40);
	t->wraps = chance(50) && t->operands < P_BLOCKS;
	t->first_row = chance(20);
	t->own = chance(30);
	t->ordered = t->find != S_SORTED && chance(50);
	t->routed = chance(40);
	t->zeros = chance(60);
	t->exact = chance(alone ? 80 : 20);
	t->returns = chance(60) && !t->programs;
	t->numbers = chance(50);
	t->literal = chance(20);
	t->asked = loops[chance(50) ? 0 : random_below(COUNT(loops))];
	t->policy = policies[chance(70) ? 0 : random_below(COUNT(policies))];
	t->flatten = chance(40);
	make_slots(t);
	make_matrices(t);
}

/* --- numbers ------------------------------------------------------------------------------------------------- */

static size_t scale_at(const struct experts *t, int expert, int n, int k)
{
	int at = t->scales == C_EXPERT ? 0 : (t->scales == C_BAND ? n / BAND : n) * groups(t);
	if (t->scales >= C_GROUP)
		at += k / t->group;
	return (size_t)(expert * scales_of(t) + at);
}

static double weight_of(const struct experts *t, int expert, int n, int k)
{
	size_t base = (size_t)(expert * w_rows(t) * t->w_step);
	int to = packed(t), row = k / to;
	size_t at = base + (size_t)(t->columns ? n * t->w_step + row : row * t->w_step + n);
	if (to == 1)
		return value(t->w, at);
	int code = (int)(value_int(t->w, at) >> k % to * 4) & 15;
	if (t->weights == W_MX)
		return (code & 8 ? -1 : 1) * e2m1_numbers[code & 7];
	return code - (t->points ? value(t->zs, scale_at(t, expert, n, k)) : 8);
}

static double scale_of(const struct experts *t, int expert, int n, int k)
{
	size_t at = scale_at(t, expert, n, k);
	return !t->scales ? 1 : t->weights == W_MX ? ldexp(1, (int)value_int(t->s, at) - 127) : value(t->s, at);
}

static double product_of(const struct experts *t, int slot, int n)
{
	int row = t->own ? slot : slot / t->top, expert = t->expert_of[slot];
	double sum = 0;
	for (int k = 0; k < t->k; k++)
		sum += value(t->x, (size_t)(row * t->x_step + k)) * weight_of(t, expert, n, k) *
		       scale_of(t, expert, n, k);
	if (t->row_scale)
		sum *= value(t->xs, (size_t)row);
	return t->bias ? sum + value(t->biases, (size_t)(expert * t->n + n)) : sum;
}

static void evaluate_slot(const struct experts *t, int slot)
{
	for (int n = 0; n < width(t); n++) {
		double v = 0;
		if (t->expert_of[slot] == t->missing && !t->zeros)
			return;
		if (t->expert_of[slot] != t->missing) {
			v = product_of(t, slot, t->pairs == U_SPLIT ? 2 * n : n);
			if (t->pairs)
				v = v / (1 + exp(-v)) *
				    product_of(t, slot, t->pairs == U_SPLIT ? 2 * n + 1 : n + t->n / 2);
			if (t->routed)
				v *= value(t->routes, (size_t)slot);
		}
		want(t->out, (size_t)(slot * width(t) + n), v);
	}
}

static void fill_powers(struct array *a)
{
	for (size_t i = 0; i < a->len; i++) {
		int power = (int)random_int(-1, 1);
		if (a->dtype == TL_U8)
			set_int(a, i, 127 + power);
		else
			set(a, i, ldexp(1, power));
	}
}

/* Where the slots of each expert are. What is behind the last tile of sorted ones is of no matter. */
static void fill_places(const struct experts *t)
{
	int block = 0;
	if (t->find != S_SORTED) {
		for (int i = 0; i < slots_of(t); i++)
			set_int(t->slots, (size_t)i, t->sorted[i]);
		for (int e = 0; e <= t->experts; e++)
			set_int(t->counts, (size_t)e, t->start[e]);
		return;
	}
	for (int e = 0; e < t->experts; e++)
		for (int i = t->start[e]; i < t->start[e + 1]; i += t->bm, block++) {
			for (int k = 0; k < t->bm; k++)
				set_int(t->slots, (size_t)(block * t->bm + k),
					i + k < t->start[e + 1] ? t->sorted[i + k] : slots_of(t));
			set_int(t->ids, (size_t)block, e == t->missing ? -1 : e);
		}
	set_int(t->counts, 0, block * t->bm);
}

static void make_arrays(struct suite *s, struct experts *t)
{
	int slots = slots_of(t), tiles = t->find == S_SORTED ? tiles_of(t) * t->bm : slots;
	t->x = in(s, "x", t->x_type, (size_t)((t->own ? slots : t->tokens) * t->x_step));
	t->w = in(s, "w", t->w_type, (size_t)(t->experts * w_rows(t) * t->w_step));
	t->out = t->split > 1 ? inout(s, "out", t->result, (size_t)(slots * width(t)))
			      : out(s, "out", t->result, (size_t)(slots * width(t)));
	if (t->split > 1)
		fill(t->out, 0, 0);
	t->s = in(s, "s", t->weights == W_MX ? TL_U8 : TL_F32, (size_t)(t->experts * scales_of(t)));
	t->zs = in(s, "zs", TL_I8, (size_t)(t->experts * scales_of(t)));
	for (size_t i = 0; i < t->zs->len; i++)
		set_int(t->zs, i, random_int(0, 15));
	t->biases = in(s, "bias", TL_F32, (size_t)(t->experts * t->n));
	fill_whole(t->biases, 9);
	t->xs = in(s, "xs", TL_F32, (size_t)(t->own ? slots : t->tokens));
	t->routes = in(s, "routes", TL_F32, (size_t)slots);
	t->slots = in(s, "slots", t->index, (size_t)tiles);
	t->ids = in(s, "ids", TL_I32, MOST_BLOCKS);
	t->counts = in(s, "counts", TL_I32, MOST_EXPERTS + 1);
	fill_whole(t->x, 2);
	if (packed(t) == 1)
		fill_whole(t->w, 2);
	fill_powers(t->s), fill_powers(t->xs), fill_powers(t->routes);
	fill_places(t);
}

static void experts_case(struct suite *s, int64_t seed, const char *left_out)
{
	(void)left_out; /* nothing is left out of these */
	if (!case_begin(s, NULL, "%lld.", (long long)seed))
		return;
	struct experts made, *t = &made;
	random_seed((uint64_t)seed);
	make_experts(t);
	make_arrays(s, t);
	for (int i = 0; i < slots_of(t); i++)
		evaluate_slot(t, i);
	if (t->pairs) /* exp has fewer exact bits, the farther its argument is from 0 */
		tolerance(t->out, 1e-6, 0x1p-15);
	char *text = experts_text(t);
	tl_arg args[] = {ptr(t->x),
			 ptr(t->w),
			 ptr(t->out),
			 ptr(t->s),
			 ptr(t->xs),
			 ptr(t->zs),
			 ptr(t->biases),
			 ptr(t->routes),
			 tl_int(t->n),
			 tl_int(t->k),
			 tl_int(t->x_step),
			 tl_int(t->w_step),
			 tl_int(w_rows(t) * t->w_step),
			 tl_int(width(t)),
			 ptr(t->slots),
			 ptr(t->ids),
			 ptr(t->counts),
			 tl_int(slots_of(t)),
			 tl_int(tiles_of(t))};
	uint32_t programs = (uint32_t)(t->programs ? t->programs : tiles_of(t) * columns_of(t));
	tl_config config = {.grid = {programs, t->find == S_RUNS ? (uint32_t)t->experts : 1, (uint32_t)t->split},
			    .num_warps = t->warps,
			    .num_stages = t->stages,
			    .max_ctas = t->ctas};
	run_text(s, text, &config, args, COUNT(args),
		 "max_ctas %d, %d experts, %d slots, N = %d, K = %d, steps %d and %d", t->ctas, t->experts, slots_of(t),
		 t->n, t->k, t->x_step, t->w_step);
}

void theme_random_experts(struct suite *s)
{
	each_seed(s, "experts", 60, experts_case);
}
