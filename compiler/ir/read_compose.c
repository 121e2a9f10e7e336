/* Operations of Triton's text that the IR makes of others. */
#include "ir/read.h"

/* --- maps of several elements at a time --------------------------------------------------------------------------- */

static const struct type *line(struct ir_context *c, const struct type *like, i64 n, int columns)
{
	return type_tensor(c, type_elem(like), columns, (i32[]){(i32)n, 2});
}

/* Halves each of the parts by turns, so that part i + parts has every second element of part i. */
static void build_unpacked(struct builder *b, struct value *tile, i64 pack, value_vec *out)
{
	struct ir_context *c = b->ctx;
	i64 n = type_numel(tile->type);
	u32 first = out->len;
	vec_push(c->arena, out, build1(b, IR_RESHAPE, line(c, tile->type, n, 1), tile));
	for (u32 parts = 1; parts < pack; parts *= 2) {
		n /= 2;
		const struct type *half[] = {line(c, tile->type, n, 1), line(c, tile->type, n, 1)};
		for (u32 i = 0; i < parts; i++) {
			struct value *pairs = build1(b, IR_RESHAPE, line(c, tile->type, n, 2), out->at[first + i]);
			vec_push(c->arena, out, NULL);
			out->at[first + i] = pairs;
		}
		for (u32 i = 0; i < parts; i++) {
			struct op *o = build(b, IR_SPLIT, &out->at[first + i], 1, half, 2, 0);
			out->at[first + i] = &o->results[0];
			out->at[first + parts + i] = &o->results[1];
		}
	}
}

static struct value *build_packed(struct builder *b, struct value *const *parts, i64 pack, const struct type *t)
{
	struct ir_context *c = b->ctx;
	struct value **v = arena_dup(c->arena, parts, (size_t)pack * sizeof *parts);
	i64 n = type_numel(t) / pack;
	for (i64 half = pack / 2; half; half /= 2, n *= 2)
		for (i64 i = 0; i < half; i++) {
			struct value *pairs = build2(b, IR_JOIN, line(c, t, n, 2), v[i], v[i + half]);
			v[i] = build1(b, IR_RESHAPE, line(c, t, 2 * n, 1), pairs);
		}
	return build1(b, IR_RESHAPE, t, v[0]);
}

/* A map that takes `pack` elements of each operand at a time takes one of as many tiles here. */
void unpack_map(struct reader *r, struct builder *b, i64 pack, value_vec *operands)
{
	value_vec tiles = {0};
	for (u32 i = 0; i < operands->len && !r->failed; i++) {
		const struct type *t = operands->at[i]->type;
		if (!is_pow2(pack) || !type_is_tensor(t) || type_numel(t) < pack)
			rd_fail_at(r, b->loc, "tt.map_elementwise: pack is a power of two, at most the tiles' size");
		else
			build_unpacked(b, operands->at[i], pack, &tiles);
	}
	*operands = tiles;
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
	struct value **v = arena_array(r->ctx->arena, struct value *, parts.len);
	for (u32 i = 0; i < parts.len; i++)
		v[i] = &o->results[i];
	for (u32 i = 0; i < types->len; i++)
		vec_push(r->ctx->arena, &r->made, build_packed(b, v + i * pack, pack, types->at[i]));
}

/* --- others ----------------------------------------------------------------------------------------------------- */

/* The sign of numbers of 8 bits, of which arithmetic would take infinities for the largest number. */
struct op *build_sign_change(struct builder *b, enum opcode code, struct value *v)
{
	const struct type *bits = type_with_dtype(b->ctx, v->type, DT_I8);
	struct value *mask = build_constant(b, bits, code == IR_ABSF ? 0x7F : 0x80);
	struct value *x = build1(b, IR_BITCAST, bits, v);
	x = build2(b, code == IR_ABSF ? IR_ANDI : IR_XORI, bits, x, mask);
	return build1(b, IR_BITCAST, v->type, x)->def;
}

/* ttg.barrier all, or of some memory: local|global_read|global_write */
static struct op *read_barrier(struct reader *r, struct builder *b)
{
	struct attrs ignored = {0};
	do
		read_word(r, false);
	while (!r->failed && rd_accept(r, "|"));
	read_dict(r, IR_ADDI, &ignored);
	return build(b, IR_BARRIER, NULL, 0, NULL, 0, 0);
}

/* ub.poison : type, any value at all: zero. */
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

/* tt.cat: the elements of both tiles, of one dimension, in any order; here in that of the operands. */
static struct op *read_cat(struct reader *r, struct builder *b)
{
	value_vec v = {0};
	struct attrs ignored = {0};
	read_values(r, &v);
	read_dict(r, IR_JOIN, &ignored);
	rd_expect(r, ":");
	rd_skip_types(r);
	rd_expect(r, "->");
	const struct type *u = read_type(r), *t = v.len ? v.at[0]->type : u;
	if (!r->failed &&
	    (v.len != 2 || !type_is_tensor(t) || t->rank != 1 || v.at[1]->type != t || !type_is_tensor(u) ||
	     u->rank != 1 || u->elem != t->elem || u->shape[0] != 2 * t->shape[0]))
		rd_fail_at(r, b->loc, "tt.cat: joins two tiles of one dimension and type");
	if (r->failed)
		return NULL;
	struct value *pairs = build2(b, IR_JOIN, type_tensor(r->ctx, t->elem, 2, (i32[]){t->shape[0], 2}), v.at[0],
				     v.at[1]);
	struct value *rows = build1(b, IR_TRANS, type_tensor(r->ctx, t->elem, 2, (i32[]){2, t->shape[0]}), pairs);
	rows->def->attr[ATTR_ORDER] = perm_pack((int[]){1, 0}, 2);
	return build1(b, IR_RESHAPE, u, rows)->def;
}

bool read_composed_op(struct reader *r, struct builder *b, const char *name, struct op **out)
{
	static const struct {
		const char *name;
		struct op *(*read)(struct reader *, struct builder *);
	} composed[] = {{"ttg.barrier", read_barrier}, {"ub.poison", read_poison}, {"tt.cat", read_cat}};
	for (u32 i = 0; i < ARRAY_LEN(composed); i++)
		if (!strcmp(composed[i].name, name)) {
			*out = composed[i].read(r, b);
			return true;
		}
	return false;
}
