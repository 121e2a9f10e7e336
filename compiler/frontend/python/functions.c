/* Python's built-in functions that are evaluated at compile time: on sequences and on numbers. */
#include <math.h>
#include <stdlib.h>

#include "frontend/builtin_args.h"

typedef VEC(struct val) val_vec;

struct val bi_python_sum(struct eval *e, const struct args *a);
struct val bi_python_any(struct eval *e, const struct args *a);

/* --- sequences ----------------------------------------------------------------------------------------------- */

/* Converts argument i, v, to a tuple. */
static bool arg_sequence(struct eval *e, const struct args *a, u32 i, const struct val *v, struct val *out)
{
	if (sequence_items(e, v, out))
		return true;
	if (v->kind != V_ERROR) {
		eval_error(e, E_COMPREHENSION_OVER, a->loc[i], describe(e, v));
		if (is_tile(v) && (a->b->run == bi_python_sum || a->b->run == bi_python_any))
			diag_hint(e->diags, "%s",
				  a->b->run == bi_python_sum ? "tl.sum(x, axis) adds the elements of a tile"
							     : "of a tile write tl.max(x.to(tl.int32), axis) != 0");
	}
	return false;
}

static struct val list_of(struct eval *e, val_vec *items, struct loc at)
{
	struct val v = val_tuple(items->at, items->len);
	v.list = LIST_OWNED;
	return count_made(e, items->len, at) ? v : val_error();
}

static struct val call_with(struct eval *e, struct val f, const struct val *args, u32 n, struct loc at)
{
	return call_value(e, f, &(struct call){.pos = args, .npos = n, .at = at});
}

/* The truth of v: 1 or 0; -1 after an error, such as for a run-time value. */
static int known_truth(struct eval *e, struct val v, const struct args *a, struct loc at)
{
	struct value *unused;
	int t = truth(e, known_number(v), at, &unused);
	if (t == -1)
		eval_error(e, E_ARG_KIND, at, "items", a->b->name, "compile-time values", describe(e, &v));
	return t < 0 ? -1 : t;
}

/* any (code 0) and all (code 1) */
struct val bi_python_any(struct eval *e, const struct args *a)
{
	struct val items;
	bool all = a->b->code;
	if (!arg_sequence(e, a, 0, &a->at[0], &items))
		return val_error();
	for (u32 i = 0; i < items.nitems; i++) {
		int t = known_truth(e, items.items[i], a, a->loc[0]);
		if (t < 0)
			return val_error();
		if (t != all)
			return val_bool(!all);
	}
	return val_bool(all);
}

struct val bi_python_sum(struct eval *e, const struct args *a)
{
	struct val items, sum = a->at[1];
	if (!arg_sequence(e, a, 0, &a->at[0], &items))
		return val_error();
	for (u32 i = 0; i < items.nitems && sum.kind != V_ERROR; i++)
		sum = step(e, a->loc[0]) ? binary_values(e, OP_ADD, sum, items.items[i], a->loc[0]) : val_error();
	return sum;
}

struct val bi_python_enumerate(struct eval *e, const struct args *a)
{
	struct val items;
	val_vec out = {0};
	i64 start;
	if (!arg_sequence(e, a, 0, &a->at[0], &items) || !arg_int(e, a, 1, &start) ||
	    !count_made(e, 2ull * items.nitems, a->loc[0]))
		return val_error();
	for (u32 i = 0; i < items.nitems; i++) {
		struct val pair[] = {val_int((i128)start + i), part_of(items.items[i])};
		vec_push(e->arena, &out, val_tuple(arena_dup(e->arena, pair, sizeof pair), 2));
	}
	return list_of(e, &out, a->loc[0]);
}

/* Collects the k-th items of all sequences for each k, up to the end of the shortest sequence. */
static bool zipped(struct eval *e, const struct args *a, u32 i, val_vec *out)
{
	const struct val *all = a->at[i].items;
	u32 n = a->at[i].nitems, len = n ? UINT32_MAX : 0;
	struct val *sequences = arena_array(e->arena, struct val, MAX(n, 1));
	for (u32 s = 0; s < n; s++) {
		if (!arg_sequence(e, a, i, &all[s], &sequences[s]))
			return false;
		len = MIN(len, sequences[s].nitems);
	}
	if (!count_made(e, (u64)len * n, a->loc[i]))
		return false;
	for (u32 k = 0; k < len; k++) {
		struct val *one = arena_array(e->arena, struct val, n);
		for (u32 s = 0; s < n; s++)
			one[s] = part_of(sequences[s].items[k]);
		vec_push(e->arena, out, val_tuple(one, n));
	}
	return true;
}

struct val bi_python_zip(struct eval *e, const struct args *a)
{
	val_vec out = {0};
	return zipped(e, a, 0, &out) ? list_of(e, &out, a->loc[0]) : val_error();
}

struct val bi_python_map(struct eval *e, const struct args *a)
{
	val_vec out = {0}, in = {0};
	if (!zipped(e, a, 1, &in))
		return val_error();
	for (u32 i = 0; i < in.len; i++) {
		struct val v = call_with(e, a->at[0], in.at[i].items, in.at[i].nitems, a->loc[0]);
		if (v.kind == V_ERROR || !step(e, a->loc[0]))
			return val_error();
		vec_push(e->arena, &out, v);
	}
	return list_of(e, &out, a->loc[0]);
}

struct val bi_python_filter(struct eval *e, const struct args *a)
{
	struct val items;
	val_vec out = {0};
	if (!arg_sequence(e, a, 1, &a->at[1], &items))
		return val_error();
	for (u32 i = 0; i < items.nitems; i++) {
		struct val v = items.items[i];
		if (a->at[0].kind != V_NONE)
			v = call_with(e, a->at[0], &items.items[i], 1, a->loc[0]);
		int t = v.kind == V_ERROR || !step(e, a->loc[1]) ? -1 : known_truth(e, v, a, a->loc[1]);
		if (t < 0)
			return val_error();
		if (t)
			vec_push(e->arena, &out, part_of(items.items[i]));
	}
	return list_of(e, &out, a->loc[1]);
}

struct val bi_python_reversed(struct eval *e, const struct args *a)
{
	struct val items;
	val_vec out = {0};
	if (!arg_sequence(e, a, 0, &a->at[0], &items))
		return val_error();
	for (u32 i = items.nitems; i-- > 0;)
		vec_push(e->arena, &out, part_of(items.items[i]));
	return list_of(e, &out, a->loc[0]);
}

/* --- order --------------------------------------------------------------------------------------------------- */

/* The result of a < b: 1 or 0; -1 after an error, such as for run-time values. */
static int is_less(struct eval *e, const struct val *a, const struct val *b, struct loc at)
{
	struct val r = compare_values(e, OP_LT, known_number(*a), known_number(*b), at);
	if (r.kind == V_BOOL)
		return r.boolean;
	if (r.kind != V_ERROR)
		eval_error(e, E_ORDER_RUN_TIME, at, describe(e, a->kind == V_TENSOR ? a : b));
	return -1;
}

/* Merges the sorted ranges [from, mid) and [mid, to) of item numbers, by the keys of the items. */
static bool merge(struct eval *e, const struct val *keys, u32 *at, u32 *spare, u32 from, u32 mid, u32 to,
		  bool reverse, struct loc loc)
{
	u32 i = from, j = mid;
	for (u32 k = from; k < to; k++) {
		bool second = i == mid;
		if (i < mid && j < to) { /* stable: equal items stay in order, with reverse too */
			int less = reverse ? is_less(e, &keys[at[i]], &keys[at[j]], loc)
					   : is_less(e, &keys[at[j]], &keys[at[i]], loc);
			if (less < 0)
				return false;
			second = less;
		}
		spare[k] = second ? at[j++] : at[i++];
	}
	memcpy(at + from, spare + from, (to - from) * sizeof *at);
	return true;
}

struct val sort_values(struct eval *e, const struct val *v, const struct named_val *named, u32 nnamed, struct loc at)
{
	struct val *keys = arena_dup(e->arena, v->items, v->nitems * sizeof *keys), key = val_none();
	struct value *unused;
	bool reverse = false;
	for (u32 i = 0; i < nnamed; i++) {
		if (!strcmp(named[i].name, "key"))
			key = named[i].val;
		else if (!strcmp(named[i].name, "reverse"))
			reverse = truth(e, known_number(named[i].val), named[i].loc, &unused) == 1;
		else
			return eval_error(e, E_UNKNOWN_KEYWORD, named[i].loc, "sort", named[i].name);
	}
	u32 n = v->nitems, *places = arena_array(e->arena, u32, MAX(n, 1)),
	    *spare = arena_array(e->arena, u32, MAX(n, 1));
	for (u32 i = 0; i < n; i++) {
		places[i] = i;
		if (key.kind != V_NONE)
			keys[i] = call_with(e, key, &v->items[i], 1, at);
		if (keys[i].kind == V_ERROR || !step(e, at))
			return val_error();
	}
	for (u32 run = 1; run < n; run *= 2)
		for (u32 from = 0; from + run < n; from += 2 * run)
			if (!merge(e, keys, places, spare, from, from + run, MIN(from + 2 * run, n), reverse, at))
				return val_error();
	val_vec out = {0};
	for (u32 i = 0; i < n; i++)
		vec_push(e->arena, &out, part_of(v->items[places[i]]));
	return list_of(e, &out, at);
}

/* The entries of a dict as named values. Returns their number. */
static u32 keywords_of(struct eval *e, const struct val *dict, struct loc at, struct named_val **out)
{
	struct named_val *named = arena_array(e->arena, struct named_val, MAX(dict->nitems / 2, 1));
	for (u32 i = 0; i < dict->nitems / 2; i++)
		named[i] = (struct named_val){dict->items[2 * i].text, dict->items[2 * i + 1], at};
	*out = named;
	return dict->nitems / 2;
}

struct val bi_python_sorted(struct eval *e, const struct args *a)
{
	struct val items;
	struct named_val *named;
	if (!arg_sequence(e, a, 0, &a->at[0], &items))
		return val_error();
	u32 n = keywords_of(e, &a->at[1], a->loc[0], &named);
	return sort_values(e, &items, named, n, a->loc[0]);
}

/* min(x, …, key=f, default=v) and max, of one sequence or of values that are not numbers. */
struct val extreme_value(struct eval *e, const struct val *items, u32 n, const struct val *options, bool largest,
			 struct loc at)
{
	const struct val name = val_str("key", 3), otherwise = val_str("default", 7);
	const struct val *key = dict_find(options, &name), *none = dict_find(options, &otherwise);
	if (!n && none)
		return *none;
	struct val best = items[0], rank = key ? call_with(e, *key, &best, 1, at) : best;
	for (u32 i = 1; i < n && rank.kind != V_ERROR; i++) {
		struct val r = key ? call_with(e, *key, &items[i], 1, at) : items[i];
		int less = r.kind == V_ERROR ? -1 : largest ? is_less(e, &rank, &r, at) : is_less(e, &r, &rank, at);
		if (less < 0)
			return val_error();
		if (less)
			best = items[i], rank = r;
	}
	return rank.kind == V_ERROR ? rank : part_of(best);
}

/* --- numbers ------------------------------------------------------------------------------------------------- */

struct val bi_python_divmod(struct eval *e, const struct args *a)
{
	struct val quotient = binary_values(e, OP_FLOORDIV, a->at[0], a->at[1], a->loc[0]);
	struct val pair[] = {quotient, binary_values(e, OP_MOD, a->at[0], a->at[1], a->loc[0])};
	if (pair[0].kind == V_ERROR || pair[1].kind == V_ERROR)
		return val_error();
	return val_tuple(arena_dup(e->arena, pair, sizeof pair), 2);
}

/* round(x, n): rounds to nearest, ties to even. printf rounds decimal digits correctly, as Python does. */
struct val bi_python_round(struct eval *e, const struct args *a)
{
	const struct val *v = &a->at[0];
	bool whole = a->at[1].kind == V_NONE;
	i64 digits = 0;
	if (!val_is_number(v)) {
		wrong_kind(e, a, 0, "a compile-time number");
		if (v->kind == V_TENSOR)
			diag_hint(e->diags, "write libdevice.rint(x)");
		return val_error();
	}
	if (!whole && !arg_int(e, a, 1, &digits))
		return val_error();
	if (v->kind != V_FLOAT) {
		i128 n = v->kind == V_INT ? v->integer : v->boolean, unit = 1;
		for (i64 i = digits; i < 0 && unit < (i128)1 << 100; i++)
			unit *= 10;
		i128 rest = n % unit;
		rest += rest < 0 ? unit : 0;
		n -= rest;
		bool up = 2 * rest > unit || (2 * rest == unit && n / unit % 2 != 0);
		return val_int(up ? n + unit : n);
	}
	if (whole) {
		double r = nearbyint(v->real);
		return fabs(r) < 0x1p100 ? val_int((i128)r) : eval_error(e, E_INT_TOO_BIG, a->loc[0]);
	}
	if (digits > 323 || !isfinite(v->real))
		return *v;
	if (digits >= 0)
		return val_float(strtod(arena_printf(e->arena, "%.*f", (int)digits, v->real), NULL));
	double unit = pow(10, (double)MIN(-digits, 308));
	return val_float(digits < -308 ? 0 * v->real : nearbyint(v->real / unit) * unit);
}
