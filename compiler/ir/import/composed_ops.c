/* Operations of Triton's text that the reader builds from several operations of the IR. */
#include "ir/import/import.h"

/* --- maps over several elements at a time ------------------------------------------------------------------------- */

/* Converts the operands of a tt.map_elementwise that takes `pack` elements of each operand at a time. Each operand
 * becomes `pack` tiles, and the map takes one element of each tile at a time. */
void unpack_map(struct reader *r, struct builder *b, i64 pack, value_vec *operands)
{
	value_vec tiles = {0};
	for (u32 i = 0; i < operands->len && !r->failed; i++) {
		const struct type *t = operands->at[i]->type;
		const struct text_arg args[] = {text_of_value(operands->at[i], false),
						{.kind = TEXT_INT, .integer = pack}};
		if (!is_pow2(pack) || !type_is_tensor(t) || type_numel(t) < pack)
			rd_fail_at(r, b->loc,
				   "tt.map_elementwise: pack must be a power of two, at most the tiles' number of "
				   "elements");
		call_library(r, b, "_unpack", args, 2, NULL, &tiles);
	}
	*operands = tiles;
}

/* Joins the `pack` parts of a result, the results of o from number `first` on, into one tile of type t. */
static void pack_result(struct reader *r, struct builder *b, i64 pack, struct op *o, u32 first, const struct type *t)
{
	struct text_arg *parts = arena_array(r->ctx->arena, struct text_arg, pack), shape[MAX_RANK];
	for (i64 i = 0; i < pack; i++)
		parts[i] = text_of_value(&o->results[first + i], false);
	for (int d = 0; d < t->rank; d++)
		shape[d] = (struct text_arg){.kind = TEXT_INT, .integer = t->shape[d]};
	const struct text_arg args[] = {text_of_list(parts, (u32)pack), text_of_list(shape, (u32)t->rank)};
	call_library(r, b, "_pack", args, 2, t, &r->made);
}

void pack_map(struct reader *r, struct builder *b, i64 pack, struct op *o, const struct type_vec *types)
{
	struct type_vec parts = {0};
	bool fits = o->noperands && !r->failed;
	i64 n = fits ? type_numel(operand(o, 0)->type) : 0;
	for (u32 i = 0; i < types->len && fits; i++) {
		const struct type *t = types->at[i];
		fits = type_is_tensor(t) && type_numel(t) == n * pack;
		for (i64 j = 0; j < pack && fits; j++)
			vec_push(r->ctx->arena, &parts, type_tensor(r->ctx, t->elem, 1, (i32[]){(i32)n}));
	}
	if (!fits && !r->failed)
		rd_fail_at(r, o->loc, "tt.map_elementwise: the results differ from the operands in shape");
	if (r->failed)
		return;
	op_set_results(r->ctx, o, parts.at, parts.len);
	for (u32 i = 0; i < types->len; i++)
		pack_result(r, b, pack, o, i * (u32)pack, types->at[i]);
}

/* --- other operations ------------------------------------------------------------------------------------------- */

/* Negation or absolute value of 8-bit floats, as an integer operation on the sign bit. Float arithmetic would turn
 * infinities into the largest number. */
struct op *build_sign_change(struct builder *b, enum opcode code, struct value *v)
{
	const struct type *bits = type_with_dtype(b->ctx, v->type, DT_I8);
	struct value *mask = build_constant(b, bits, code == IR_ABSF ? 0x7F : 0x80);
	struct value *x = build1(b, IR_BITCAST, bits, v);
	x = build2(b, code == IR_ABSF ? IR_ANDI : IR_XORI, bits, x, mask);
	return build1(b, IR_BITCAST, v->type, x)->def;
}

/* Reads ttg.barrier all, or with a list of memory: local|global_read|global_write. */
static struct op *read_barrier(struct reader *r, struct builder *b)
{
	do
		read_word(r, false);
	while (!r->failed && rd_accept(r, "|"));
	rd_skip_dict(r);
	return build(b, IR_BARRIER, NULL, 0, NULL, 0, 0);
}

/* Reads ub.poison : type. Any value is allowed, and the reader builds zero. */
static struct op *read_poison(struct reader *r, struct builder *b)
{
	rd_expect(r, ":");
	const struct type *t = read_type(r);
	if (r->failed)
		return NULL;
	if (!type_is_ptr(t))
		return build_constant(b, t, 0)->def;
	struct value *zero = build_constant(b, type_with_dtype(r->ctx, t, DT_I64), 0);
	return build1(b, IR_INT_TO_PTR, t, zero)->def;
}

bool read_composed_op(struct reader *r, struct builder *b, const char *name, struct op **out)
{
	static const struct {
		const char *name;
		struct op *(*read)(struct reader *, struct builder *);
	} composed[] = {{"ttg.barrier", read_barrier}, {"ub.poison", read_poison}};
	for (u32 i = 0; i < ARRAY_LEN(composed); i++)
		if (!strcmp(composed[i].name, name)) {
			*out = composed[i].read(r, b);
			return true;
		}
	return false;
}
