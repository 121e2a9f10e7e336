/* Reading operations that are calls of library functions: see library_calls.h. Tensor descriptors are not values of the
 * IR: the parts of a descriptor are stored under its name, and passed to each call. */
#include "ir/import/import.h"
#include "ir/launch_abi.h"

struct descriptor {
	struct value *base;
	struct text_arg shape[MAX_RANK], strides[MAX_RANK], block[MAX_RANK];
	struct text_arg pads_with_nan, rounds_to_tf32;
	int rank;
	bool is_unsigned;
};

struct descriptor_type {
	const struct type *elem;
	int rank;
	i32 block[MAX_RANK];
	bool is_unsigned;
};

/* Reads the dimensions and the element type of <16x32xf32>. Integers may have a sign: si32 or ui32. */
static void read_block_type(struct reader *r, struct descriptor_type *out)
{
	*out = (struct descriptor_type){.elem = type_scalar(r->ctx, DT_I32)};
	rd_expect(r, "<");
	bool nested = rd_accept(r, "tensor<"); /* the form before Triton 3.9 */
	rd_skip_space(r);
	while (!r->failed && *rd_cur(r) >= '0' && *rd_cur(r) <= '9') {
		i64 n = 0;
		for (; *rd_cur(r) >= '0' && *rd_cur(r) <= '9' && n < IR_MAX_NUMEL; rd_bump(r, 1))
			n = n * 10 + *rd_cur(r) - '0';
		if (out->rank == 5 || !is_pow2(n) || n > IR_MAX_NUMEL)
			rd_fail(r, "a descriptor's block has at most 5 dimensions, each a power of two");
		else
			out->block[out->rank++] = (i32)n;
		if (*rd_cur(r) != 'x')
			rd_fail(r, "expected 'x'");
		rd_bump(r, 1);
	}
	if (!out->rank)
		rd_fail(r, "a descriptor's block needs at least one dimension");
	out->is_unsigned = *rd_cur(r) == 'u';
	if (!strncmp(rd_cur(r), "ui", 2) || !strncmp(rd_cur(r), "si", 2))
		rd_bump(r, 1);
	out->elem = read_type(r);
	if (nested)
		rd_expect(r, ">");
	rd_expect(r, ">");
	if (!r->failed && out->elem->kind != TY_SCALAR)
		rd_fail(r, "expected an element type");
}

static struct descriptor *new_descriptor(struct reader *r, const struct descriptor_type *t)
{
	struct descriptor *d = arena_new(r->ctx->arena, struct descriptor);
	d->rank = t->rank;
	d->is_unsigned = t->is_unsigned;
	for (int i = 0; i < t->rank; i++)
		d->block[i] = (struct text_arg){.kind = TEXT_INT, .integer = t->block[i]};
	/* the rows of a descriptor are contiguous, independent of the operand */
	d->strides[t->rank - 1] = (struct text_arg){.kind = TEXT_INT, .integer = 1};
	d->pads_with_nan = d->rounds_to_tf32 = (struct text_arg){.kind = TEXT_BOOL};
	return d;
}

struct text_arg text_of_value(struct value *v, bool is_unsigned)
{
	return (struct text_arg){.kind = TEXT_VALUE, .value = v, .is_unsigned = is_unsigned};
}

struct text_arg text_of_list(const struct text_arg *items, u32 n)
{
	return (struct text_arg){.kind = TEXT_TUPLE, .items = items, .nitems = n};
}

void call_library(struct reader *r, struct builder *b, const char *function, const struct text_arg *args, u32 n,
		  const struct type *t, value_vec *out)
{
	struct loc loc = b->loc;
	if (r->failed)
		return;
	if (!r->library)
		rd_fail_at(r, loc, "this operation needs the language's library, which is not available");
	else if (!r->library->call(r->library->arg, b, function, args, n, t, out))
		r->failed = true;
	b->loc = loc;
}

/* Calls a library function. Returns the operation that defines its result, so that the result can be named. */
static struct op *call(struct reader *r, struct builder *b, const char *function, const struct text_arg *args, u32 n,
		       const struct type *t)
{
	value_vec v = {0};
	call_library(r, b, function, args, n, t, &v);
	if (r->failed || !t)
		return NULL;
	if (v.len != 1 || v.at[0]->type != t) {
		rd_fail_at(r, b->loc,
			   arena_printf(r->ctx->arena, "%s returns another type than the text states", function));
		return NULL;
	}
	/* a separate result, also if the function returns one of several results or an argument */
	return build1(b, IR_BITCAST, t, v.at[0])->def;
}

/* Skips a dictionary {…}. Returns its start, for `says`. */
static struct text_position read_ignored_dict(struct reader *r)
{
	struct text_position p = r->pos;
	rd_skip_dict(r);
	return p;
}

/* True if the text between `from` and the current position contains these words. */
static bool says(const struct reader *r, struct text_position from, const char *words)
{
	return memmem(r->src->text + from.at, r->pos.at - from.at, words, strlen(words));
}

/* --- descriptors ----------------------------------------------------------------------------------------------- */

static bool read_descriptor_type(struct reader *r, struct descriptor_type *out)
{
	if (!rd_accept(r, "!tt.tensordesc"))
		return false;
	read_block_type(r, out);
	return true;
}

const struct type *read_descriptor_param(struct reader *r, struct descriptor **out)
{
	struct descriptor_type t;
	*out = NULL;
	if (!read_descriptor_type(r, &t))
		return NULL;
	if (!r->failed)
		*out = new_descriptor(r, &t);
	return type_ptr(r->ctx, t.elem);
}

void descriptor_of_params(struct reader *r, struct descriptor *d, const char *name, struct kernel_param *p, u32 n,
			  struct loc loc)
{
	/* the strides of a descriptor, but for the last, are multiples of 16 bytes */
	i32 by = 16 / dtype_bytes(type_dtype(type_elem(p->value->type)->elem));
	bool fits = n > 2 * (u32)d->rank;
	for (int i = 0; fits && i < d->rank; i++) {
		const struct type *size = p[1 + i].value->type, *stride = p[1 + d->rank + i].value->type;
		fits = size == type_scalar(r->ctx, DT_I32) && stride == type_scalar(r->ctx, DT_I64);
		d->shape[i] = text_of_value(p[1 + i].value, false);
		if (i + 1 >= d->rank)
			break;
		d->strides[i] = text_of_value(p[1 + d->rank + i].value, false);
		p[1 + d->rank + i].divisibility = MAX(p[1 + d->rank + i].divisibility, by);
	}
	if (!fits)
		rd_fail_at(r, loc, "a descriptor must be followed by its sizes (i32) and its strides (i64)");
	d->base = p->value;
	map_put(&r->descriptors, name, d);
}

void add_foreign_descriptor(struct kernel *k, u32 base, struct descriptor *d)
{
	i32 block[MAX_RANK], nan, tf32;
	for (int i = 0; i < d->rank; i++)
		block[i] = (i32)d->block[i].integer;
	k->params[base].is_unsigned = d->is_unsigned;
	abi_add_descriptor(k, base, (u32)d->rank, block, true, &nan, &tf32);
	if (nan >= 0)
		d->pads_with_nan = text_of_value(k->params[nan].value, true);
	if (tf32 >= 0)
		d->rounds_to_tf32 = text_of_value(k->params[tf32].value, true);
}

/* Reads a list such as [%a, %b]. */
static void read_list(struct reader *r, value_vec *out)
{
	rd_expect(r, "[");
	read_values(r, out);
	rd_expect(r, "]");
}

/* Reads %base, [sizes], [strides] {padding = 2 : i32} : <f32>, <16x32xf32>. */
void read_make_descriptor(struct reader *r, const char *name, struct loc loc)
{
	struct descriptor_type t = {0};
	value_vec sizes = {0}, strides = {0};
	struct value *base = read_value(r);
	rd_expect(r, ",");
	read_list(r, &sizes);
	rd_expect(r, ",");
	read_list(r, &strides);
	struct text_position dict = read_ignored_dict(r);
	bool nan = says(r, dict, "padding = 2");
	rd_expect(r, ":");
	rd_accept(r, "!tt.ptr");
	rd_expect(r, "<");
	read_type(r);
	rd_expect(r, ">");
	rd_expect(r, ",");
	rd_accept(r, "!tt.tensordesc");
	read_block_type(r, &t);
	rd_skip_loc(r);
	if (r->failed)
		return;
	if (sizes.len != (u32)t.rank || strides.len != (u32)t.rank || base->type != type_ptr(r->ctx, t.elem)) {
		rd_fail_at(r, loc, "sizes, strides, base and block of the descriptor do not match");
		return;
	}
	struct descriptor *d = new_descriptor(r, &t);
	d->base = base;
	d->pads_with_nan.integer = nan;
	for (int i = 0; i < t.rank; i++) {
		d->shape[i] = text_of_value(sizes.at[i], false);
		if (i + 1 < t.rank)
			d->strides[i] = text_of_value(strides.at[i], false);
	}
	map_put(&r->descriptors, name, d);
}

/* Reads the kind of a reduction, which is the last part of the library function's name. */
static const char *read_kind(struct reader *r)
{
	struct loc loc;
	const char *kind = read_word_at(r, &loc);
	static const char *const known[] = {"add", "min", "max", "and", "or", "xor"};
	rd_expect(r, ",");
	for (u32 i = 0; i < ARRAY_LEN(known); i++)
		if (!strcmp(known[i], kind))
			return kind;
	rd_fail_at(r, loc, "a reduction into a descriptor must be add, min, max, and, or or xor");
	return kind;
}

/* Reads load %d[%i, %j] : type -> tile. store, reduce and scatter have a value after the brackets; gather and scatter
 * have a tile inside them. `what` is the last part of the operation's name. */
static struct op *read_access(struct reader *r, struct builder *b, const char *what)
{
	bool reads = !strcmp(what, "load") || !strcmp(what, "gather");
	struct text_arg offsets[MAX_RANK] = {0}, args[9];
	const struct type *t = NULL;
	value_vec at = {0};
	const char *kind = !strcmp(what, "reduce") ? read_kind(r) : "";
	rd_skip_space(r);
	struct loc loc = rd_here(r, 1);
	const char *name = read_name(r);
	const struct descriptor *d = r->failed ? NULL : map_get(&r->descriptors, name);
	if (!r->failed && !d)
		rd_fail_at(r, loc,
			   arena_printf(r->ctx->arena, "'%%%s' is not a descriptor that is defined before this", name));
	read_list(r, &at);
	struct value *v = reads || !rd_accept(r, ",") ? NULL : read_value(r);
	rd_skip_dict(r);
	rd_expect(r, ":");
	rd_skip_types(r);
	if (reads) {
		rd_expect(r, "->");
		t = read_type(r);
	}
	if (!r->failed && (at.len > MAX_RANK || (!reads && !v)))
		rd_fail_at(r, b->loc, "wrong number of operands");
	if (r->failed)
		return NULL;
	for (u32 i = 0; i < at.len; i++)
		offsets[i] = text_of_value(at.at[i], false);
	args[0] = text_of_value(d->base, d->is_unsigned);
	args[1] = text_of_list(d->shape, (u32)d->rank);
	args[2] = text_of_list(d->strides, (u32)d->rank);
	args[3] = text_of_list(d->block, (u32)d->rank);
	args[4] = d->pads_with_nan;
	args[5] = d->rounds_to_tf32;
	args[6] = text_of_list(offsets, at.len);
	args[7] = text_of_value(v, d->is_unsigned);
	return call(r, b, arena_printf(r->ctx->arena, "_text_descriptor_%s%s", what, kind), args, reads ? 7 : 8, t);
}

/* --- other operations ------------------------------------------------------------------------------------------- */

/* Reads %a scale %x, %b scale %y, %c lhs = e2m1 rhs = e2m1 {fastMath = true} : types -> type. The scales are
 * optional. */
static struct op *read_dot_scaled(struct reader *r, struct builder *b)
{
	struct text_arg a[10] = {{0}};
	static const char *const sides[] = {"lhs", "rhs"};
	for (int i = 0; i < 2; i++) {
		a[3 * i] = text_of_value(read_value(r), true);
		if (rd_accept(r, "scale"))
			a[3 * i + 1] = text_of_value(read_value(r), true);
		rd_expect(r, ",");
	}
	a[6] = text_of_value(read_value(r), false);
	for (int i = 0; i < 2; i++) {
		rd_expect(r, sides[i]);
		rd_expect(r, "=");
		a[3 * i + 2] = (struct text_arg){.kind = TEXT_STR, .text = read_word(r, false)};
	}
	struct text_position dict = read_ignored_dict(r);
	a[7] = (struct text_arg){.kind = TEXT_BOOL, .integer = says(r, dict, "fastMath = true")};
	a[8] = (struct text_arg){.kind = TEXT_BOOL, .integer = !says(r, dict, "lhs_k_pack = false")};
	a[9] = (struct text_arg){.kind = TEXT_BOOL, .integer = !says(r, dict, "rhs_k_pack = false")};
	rd_expect(r, ":");
	rd_skip_types(r);
	rd_expect(r, "*");
	rd_skip_types(r);
	rd_expect(r, "->");
	const struct type *t = read_type(r);
	return call(r, b, "dot_scaled", a, 10, t);
}

/* Reads %a, %b {libname = "", libpath = "", pure = true, symbol = "__nv_powf"} : (types) -> type. */
static struct op *read_extern(struct reader *r, struct builder *b)
{
	value_vec v = {0};
	struct text_arg args[8];
	const char *symbol = "", *function = NULL;
	struct loc loc = b->loc;
	if (rd_at(r, '%'))
		read_values(r, &v);
	rd_expect(r, "{");
	while (!r->failed && !rd_accept(r, "}")) {
		const char *name = read_word(r, false);
		rd_expect(r, "=");
		rd_skip_space(r);
		if (!strcmp(name, "symbol"))
			loc = rd_here(r, 1);
		const char *text = *rd_cur(r) == '"' ? read_string(r) : read_word(r, false);
		if (!strcmp(name, "symbol")) {
			symbol = text;
			loc.len = rd_loc_len(text) + 2;
		}
		rd_accept(r, ",");
	}
	const struct type *t = read_only_result(r);
	if (!r->failed && r->library)
		function = r->library->extern_function(r->library->arg, symbol);
	if (!r->failed && (!function || v.len > ARRAY_LEN(args)))
		rd_fail_at(r, loc, arena_printf(r->ctx->arena, "there is no function '%s' of libdevice here", symbol));
	for (u32 i = 0; !r->failed && i < v.len; i++)
		args[i] = text_of_value(v.at[i], !strncmp(symbol, "__nv_u", 6));
	return call(r, b, function, args, v.len, t);
}

/* Reads %a, %b : tile -> tile. The result may hold the elements in any order. The reader keeps the
 * order of the operands. */
static struct op *read_cat(struct reader *r, struct builder *b)
{
	value_vec v = {0};
	read_values(r, &v);
	read_ignored_dict(r);
	const struct type *t = read_only_result(r);
	if (!r->failed && v.len != 2)
		rd_fail_at(r, b->loc, "tt.cat: joins two tiles");
	if (r->failed)
		return NULL;
	const struct text_arg args[] = {text_of_value(v.at[0], false), text_of_value(v.at[1], false)};
	return call(r, b, "cat", args, 2, t);
}

/* Reads %a, %b : type. */
static struct op *read_approximate_division(struct reader *r, struct builder *b)
{
	value_vec v = {0};
	read_values(r, &v);
	read_ignored_dict(r);
	rd_expect(r, ":");
	const struct type *t = read_type(r);
	if (!r->failed && v.len != 2)
		rd_fail_at(r, b->loc, "wrong number of operands");
	if (r->failed)
		return NULL;
	const struct text_arg args[] = {text_of_value(v.at[0], false), text_of_value(v.at[1], false),
					{.kind = TEXT_BOOL}, {.kind = TEXT_BOOL, .integer = true}};
	return call(r, b, "fdiv", args, 4, t);
}

/* Reads acquire, gpu, %pointer, … : types -> type, for atomic_load and atomic_store, which may have a mask as last
 * operand, and for atomic_poll. `what` is the library function. */
static struct op *read_atomic(struct reader *r, struct builder *b, const char *what)
{
	bool stores = !strcmp(what, "atomic_store"), masked = strcmp(what, "atomic_poll") != 0;
	u32 operands = strcmp(what, "atomic_load") ? 2 : 1, n = 0;
	struct text_arg args[5] = {{0}};
	const char *words[2];
	value_vec v = {0};
	for (int i = 0; i < 2; i++) {
		words[i] = read_word(r, false);
		rd_expect(r, ",");
	}
	read_values(r, &v);
	read_ignored_dict(r);
	rd_expect(r, ":");
	rd_skip_types(r);
	if (!stores)
		rd_expect(r, "->");
	const struct type *t = stores ? NULL : read_type(r);
	if (!r->failed && (v.len < operands || v.len > operands + masked))
		rd_fail_at(r, b->loc, "wrong number of operands");
	if (r->failed)
		return NULL;
	for (; n < v.len; n++)
		args[n] = text_of_value(v.at[n], false);
	n = operands + masked;
	for (int i = 0; i < 2; i++)
		args[n++] = (struct text_arg){.kind = TEXT_STR, .text = words[i]};
	return call(r, b, what, args, n, t);
}

bool read_library_op(struct reader *r, struct builder *b, const char *name, struct op **out)
{
	static const struct {
		const char *name;
		struct op *(*read)(struct reader *, struct builder *);
	} others[] = {{"tt.dot_scaled", read_dot_scaled}, {"tt.cat", read_cat}, {"tt.extern_elementwise", read_extern},
		      {"tt.approx_divf", read_approximate_division}};
	static const struct {
		const char *prefix;
		const char *const names[5];
		struct op *(*read)(struct reader *, struct builder *, const char *what);
	} kinds[] = {{"tt.descriptor_", {"load", "store", "reduce", "gather", "scatter"}, read_access},
		     {"tt.", {"atomic_load", "atomic_store", "atomic_poll"}, read_atomic}};
	for (u32 i = 0; i < ARRAY_LEN(others); i++)
		if (!strcmp(name, others[i].name))
			return *out = others[i].read(r, b), true;
	for (u32 i = 0; i < ARRAY_LEN(kinds); i++) {
		size_t n = strlen(kinds[i].prefix);
		for (u32 k = 0; !strncmp(name, kinds[i].prefix, n) && k < ARRAY_LEN(kinds[i].names); k++)
			if (kinds[i].names[k] && !strcmp(name + n, kinds[i].names[k]))
				return *out = kinds[i].read(r, b, kinds[i].names[k]), true;
	}
	return false;
}
