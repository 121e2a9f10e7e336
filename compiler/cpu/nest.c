/* The loops of a nest, and the values of tiles at an index.
 *
 * The innermost loop runs along nest.lane_dim and computes vectors of `lanes` neighbours; a row is all elements along
 * that dimension. If masks of loads and stores are true for the elements at the start of a row (index < size), these
 * have a separate loop without masks, and the rest of the row has another loop. */
#include "cpu/cpu_internal.h"

/* Vector registers of a value at an index: `lanes` is chosen accordingly. Several registers give independent
 * operations, whose latencies overlap. */
enum { LANE_REGISTERS = 4 };

/* --- lanes ------------------------------------------------------------------------------------------------------ */

void cpu_count_neighbours(struct cpu_codegen *h, const struct op *o, i32 *votes)
{
	const struct value *p = operand(o, 0);
	const struct axis_info *a = axis_of(h->s->axis, p);
	for (int d = 0; d < p->type->rank; d++)
		votes[d] += (a->contiguity[d] > 1 && p->type->shape[d] > 1) ||
			    (o->code == IR_LOAD && cpu_repeats(h, p, d));
}

/* The dimension along which most of the n loads and stores have neighbours (successive addresses), or -1. */
static int preferred(struct cpu_codegen *h, const struct op *const *accesses, u32 n, int rank)
{
	int votes[MAX_RANK] = {0}, best = -1;
	for (u32 i = 0; i < n; i++)
		if (operand(accesses[i], 0)->type->rank == rank)
			cpu_count_neighbours(h, accesses[i], votes);
	for (int d = rank - 1; d >= 0; d--)
		if (votes[d] > (best < 0 ? 0 : votes[best]))
			best = d;
	return best;
}

bool nest_agrees(struct cpu_codegen *h, const struct cpu_nest *n, const struct op *const *accesses, u32 naccesses)
{
	int mine = preferred(h, n->loads.at, n->loads.len, n->rank), other = preferred(h, accesses, naccesses, n->rank);
	return mine < 0 || other < 0 || mine == other;
}

/* The minimum of the element size, in bytes, that determines the number of lanes: 4, for 32-bit indices and sums. Less
 * for nests that only copy loaded elements to dot operands of smaller elements. */
static u32 least_bytes(struct cpu_codegen *h, const struct cpu_nest *n)
{
	u32 bytes = 1;
	for (u32 i = 0; i < n->roots.len; i++) {
		const struct root *r = &n->roots.at[i];
		const struct buffer *b = r->v ? info_of(h, r->v)->buffer : NULL;
		bool moved = r->op->code == IR_LOAD && b && cpu_dot_units[b->unit].bits;
		bytes = MAX(bytes, moved ? (u32)cpu_dot_units[b->unit].bits / 8 : 4);
	}
	return bytes;
}

void nest_choose_lanes(struct cpu_codegen *h, struct cpu_nest *n)
{
	int votes[MAX_RANK] = {0}, best = n->rank - 1;
	u32 bytes = least_bytes(h, n);
	for (u32 i = 0; i < n->loads.len; i++)
		if (operand(n->loads.at[i], 0)->type->rank == n->rank)
			cpu_count_neighbours(h, n->loads.at[i], votes);
	for (u32 i = 0; i < n->roots.len; i++) {
		const struct op *o = n->roots.at[i].op;
		if (o->code == IR_STORE)
			cpu_count_neighbours(h, o, votes);
		const struct value *v = o->code == IR_STORE    ? operand(o, 1)
					: o->code == IR_REDUCE ? operand(o, 0)
							       : n->roots.at[i].v;
		bytes = MAX(bytes, (u32)type_elem_bits(v->type) / 8);
		const struct buffer *b = info_of(h, v)->buffer;
		votes[cpu_inner(h, v)] += !b || b->operand == DT_COUNT; /* operands are transposed after the nest */
	}
	for (int d = n->rank - 1; d >= 0; d--)
		if (n->shape[best] == 1 || (votes[d] > votes[best] && n->shape[d] > 1))
			best = d;
	n->lane_dim = best;
	u32 most = (u32)h->s->target->vector_bytes * LANE_REGISTERS / bytes;
	n->lanes = MIN(most, (u32)n->shape[best]);
}

/* --- memory of tiles --------------------------------------------------------------------------------------------- */

static LLVMValueRef add_scaled(struct cpu_codegen *h, LLVMValueRef sum, LLVMValueRef x, i64 by)
{
	if (LLVMIsConstant(x) && LLVMIsNull(x))
		return sum;
	x = LLVMBuildNSWMul(h->b, x, cpu_i64(h, by), "");
	return sum ? LLVMBuildNSWAdd(h->b, sum, x, "") : x;
}

LLVMValueRef cpu_offset(struct cpu_codegen *h, const struct buffer *b, int rank, const struct at *at)
{
	LLVMValueRef sum = NULL;
	for (int d = 0; d < rank - (b->panel > 0); d++)
		sum = add_scaled(h, sum, at->i[d], b->stride[d]);
	if (b->panel) {
		LLVMValueRef column = at->i[rank - 1], shift = cpu_i64(h, __builtin_ctzll((u64)b->panel));
		sum = add_scaled(h, sum, LLVMBuildLShr(h->b, column, shift, ""), b->panel_stride);
		sum = add_scaled(h, sum, LLVMBuildAnd(h->b, column, cpu_i64(h, b->panel - 1), ""), 1);
	}
	return sum ? sum : cpu_i64(h, 0);
}

/* Loads the lanes of a vector one by one, from addresses that differ by `stride` elements. */
static LLVMValueRef load_strided(struct cpu_codegen *h, const struct buffer *b, LLVMValueRef p, i64 stride, u32 lanes)
{
	LLVMTypeRef elem = b->elem;
	LLVMValueRef x = LLVMGetPoison(LLVMVectorType(elem, lanes));
	for (u32 k = 0; k < lanes; k++) {
		LLVMValueRef one = LLVMBuildLoad2(h->b, elem, gep(h->b, p, elem, cpu_i64(h, k * stride)), "");
		cpu_mark(h, b, one);
		x = LLVMBuildInsertElement(h->b, x, one, cpu_i32(h, k), "");
	}
	return x;
}

static void set_alignment(LLVMValueRef access, LLVMTypeRef elem)
{
	LLVMSetAlignment(access, (unsigned)type_bits(elem) / 8);
}

LLVMValueRef buffer_load(struct cpu_codegen *h, const struct buffer *b, const struct type *t, const struct at *at)
{
	LLVMValueRef p = gep(h->b, b->at, b->elem, cpu_offset(h, b, t->rank, at)), x;
	u32 lanes = at->along < 0 ? 0 : at->lanes;
	i64 stride = lanes ? b->stride[at->along] : 0;
	if (lanes && stride != 1) {
		x = load_strided(h, b, p, stride, lanes);
	} else {
		x = LLVMBuildLoad2(h->b, cpu_vector_type(b->elem, lanes), p, "");
		set_alignment(x, b->elem);
		cpu_mark(h, b, x);
	}
	return from_memory(h->b, x, cpu_elem_type(h, t));
}

static void store_lanes(struct cpu_codegen *h, const struct buffer *b, const struct type *t, const struct at *at,
			LLVMValueRef x)
{
	LLVMValueRef p = gep(h->b, b->at, b->elem, cpu_offset(h, b, t->rank, at));
	u32 lanes = lanes_of(x);
	if (!lanes || b->stride[at->along] == 1) {
		LLVMValueRef store = LLVMBuildStore(h->b, x, p);
		set_alignment(store, b->elem);
		cpu_mark(h, b, store);
		return;
	}
	for (u32 k = 0; k < lanes; k++) {
		LLVMValueRef to = gep(h->b, p, b->elem, cpu_i64(h, k * b->stride[at->along]));
		cpu_mark(h, b, LLVMBuildStore(h->b, cpu_lane(h, x, k), to));
	}
}

void buffer_store(struct cpu_codegen *h, const struct buffer *b, const struct type *t, const struct at *at,
		  LLVMValueRef x)
{
	u32 lanes = at->along < 0 ? 0 : at->lanes;
	x = cpu_spread(h, x, lanes);
	if (b->operand != DT_COUNT)
		x = cpu_to_operand(h, x, b);
	else
		x = to_memory(h->b, x);
	if (!b->panel || at->along != t->rank - 1 || lanes <= (u32)b->panel) {
		store_lanes(h, b, t, at, x);
		return;
	}
	struct at part = *at;
	part.lanes = (u32)b->panel;
	for (u32 k = 0; k < lanes; k += part.lanes) {
		part.i[at->along] = LLVMBuildAdd(h->b, at->i[at->along], cpu_i64(h, k), "");
		store_lanes(h, b, t, &part, cpu_lanes(h, x, k, part.lanes));
	}
}

/* --- loops over a tile ------------------------------------------------------------------------------------------- */

static struct at loops_along(struct cpu_codegen *h, const struct type *t, int along, u32 lanes, struct loops *l)
{
	struct at at = {.along = -1};
	l->rank = t->rank;
	for (int d = 0; d < t->rank; d++) {
		bool vector = d == along && lanes > 1;
		l->at[d] = cpu_loop(h, cpu_i64(h, 0), cpu_i64(h, t->shape[d]), vector ? lanes : 1, false);
		at.i[d] = l->at[d].index;
		if (vector) {
			at.along = d;
			at.lanes = lanes;
		}
	}
	cpu_forget(h);
	return at;
}

struct at cpu_loops(struct cpu_codegen *h, const struct type *t, u32 lanes, struct loops *l)
{
	return loops_along(h, t, t->rank - 1, lanes, l);
}

void cpu_loops_end(struct cpu_codegen *h, struct loops *l)
{
	cpu_forget(h);
	for (int d = l->rank - 1; d >= 0; d--)
		cpu_loop_end(h, &l->at[d]);
}

void cpu_compute(struct cpu_codegen *h, const struct value *v, struct buffer *to, u32 lanes)
{
	struct loops l;
	const struct type *t = v->type;
	int along = t->rank - 1;
	for (int d = 0; d < t->rank && !to->panel; d++)
		if (to->stride[d] == 1 && t->shape[d] > 1)
			along = d;
	u32 bytes = MAX((u32)type_elem_bits(t) / 8, 4), row = (u32)t->shape[along];
	if (!lanes)
		lanes = MIN(row, (u32)h->s->target->vector_bytes * LANE_REGISTERS / bytes);
	struct at at = loops_along(h, t, along, lanes, &l);
	buffer_store(h, to, t, &at, cpu_eval(h, v, &at));
	cpu_loops_end(h, &l);
}

/* --- values at an index ------------------------------------------------------------------------------------------ */

static bool same_index(const struct at *a, const struct at *b, int rank, int but)
{
	if (a->along != b->along || (a->along >= 0 && a->lanes != b->lanes))
		return false;
	for (int d = 0; d < rank; d++)
		if (d != but && a->i[d] != b->i[d])
			return false;
	return true;
}

/* A mask that is true for all lanes in the body under construction; a list. */
struct assumed {
	const struct value *v;
	struct at at;
	struct assumed *next;
};

static bool is_assumed(const struct cpu_codegen *h, const struct value *v, const struct at *at)
{
	for (const struct assumed *a = h->assumed; a; a = a->next)
		if (a->v == v && same_index(&a->at, at, v->type->rank, at->along))
			return true;
	return false;
}

static void set_along(struct at *at, int along, u32 lanes)
{
	at->along = along;
	at->lanes = along < 0 ? 0 : lanes;
}

/* The operand's index for an index of a shape operation's result. False if the lanes are not neighbours in the
 * operand. */
static bool view_index(struct cpu_codegen *h, const struct op *o, const struct at *at, struct at *out)
{
	const struct type *from = operand(o, 0)->type, *to = result(o)->type;
	LLVMValueRef zero = cpu_i64(h, 0), linear = NULL;
	set_along(out, -1, 0);
	for (int d = 0; o->code != IR_RESHAPE && d < to->rank; d++) {
		int k = operand_dim(o, d);
		if (o->code == IR_BROADCAST && from->shape[d] == 1) {
			out->i[d] = zero;
		} else if (k >= 0) {
			out->i[k] = at->i[d];
			if (d == at->along)
				set_along(out, k, at->lanes);
		}
	}
	if (o->code != IR_RESHAPE)
		return true;
	i64 size = 1;
	for (int d = to->rank - 1; d >= 0; size *= to->shape[d--]) {
		LLVMValueRef x = LLVMBuildMul(h->b, at->i[d], cpu_i64(h, size), "");
		linear = linear ? LLVMBuildAdd(h->b, linear, x, "") : x;
	}
	linear = linear ? linear : zero;
	for (int d = from->rank - 1; d >= 0; d--) {
		i64 n = from->shape[d];
		out->i[d] = n == 1 ? zero : d ? LLVMBuildAnd(h->b, linear, cpu_i64(h, n - 1), "") : linear;
		linear = LLVMBuildLShr(h->b, linear, cpu_i64(h, __builtin_ctzll((u64)n)), "");
	}
	if (at->along < 0)
		return true;
	/* lanes along the innermost dimension longer than 1 are neighbours along that dimension of the operand */
	for (int d = to->rank - 1; d > at->along; d--)
		if (to->shape[d] > 1)
			return false;
	for (int d = from->rank - 1; d >= 0; d--)
		if (from->shape[d] > 1) {
			set_along(out, d, at->lanes);
			return (u32)from->shape[d] >= at->lanes;
		}
	return true;
}

/* cpu_eval for each lane, as a scalar. */
static LLVMValueRef eval_each(struct cpu_codegen *h, const struct value *v, const struct at *at)
{
	LLVMValueRef x = LLVMGetPoison(LLVMVectorType(cpu_elem_type(h, v->type), at->lanes));
	for (u32 k = 0; k < at->lanes; k++) {
		struct at one = *at;
		set_along(&one, -1, 0);
		one.i[at->along] = LLVMBuildAdd(h->b, at->i[at->along], cpu_i64(h, k), "");
		x = LLVMBuildInsertElement(h->b, x, cpu_eval(h, v, &one), cpu_i32(h, k), "");
	}
	return x;
}

static LLVMValueRef eval_range(struct cpu_codegen *h, const struct op *o, const struct at *at)
{
	LLVMValueRef i = LLVMBuildTrunc(h->b, at->i[0], h->i32, "");
	if (o->attr[ATTR_START])
		i = LLVMBuildAdd(h->b, i, cpu_i32(h, o->attr[ATTR_START]), "");
	if (at->along < 0)
		return i;
	return LLVMBuildAdd(h->b, cpu_spread(h, i, at->lanes), cpu_iota(h->i32, at->lanes), "");
}

/* AND (`all`) or OR of the scalar mask `one` and the mask x of any number of lanes, by a select that needs no splat of
 * `one`. */
static LLVMValueRef combine_truth(struct cpu_codegen *h, bool all, LLVMValueRef one, LLVMValueRef x)
{
	if (LLVMIsConstant(one) && LLVMIsNull(one) == !all)
		return x;
	LLVMValueRef other = all ? LLVMConstNull(LLVMTypeOf(x)) : LLVMConstAllOnes(LLVMTypeOf(x));
	return all ? LLVMBuildSelect(h->b, one, x, other, "") : LLVMBuildSelect(h->b, one, other, x, "");
}

static LLVMValueRef eval_elementwise(struct cpu_codegen *h, const struct op *o, const struct at *at)
{
	LLVMValueRef in[8];
	u32 lanes = 0;
	tl_assert(o->noperands <= ARRAY_LEN(in));
	for (u32 k = 0; k < o->noperands; k++) {
		const struct value *v = operand(o, k);
		in[k] = type_is_tensor(v->type) ? cpu_eval(h, v, at) : cpu_scalar(h, v);
		lanes = MAX(lanes, lanes_of(in[k]));
	}
	if (o->noperands == 2 && type_elem_bits(result(o)->type) == 1)
		for (u32 k = 0; k < 2; k++)
			if (!lanes_of(in[k]) && (o->code == IR_ANDI || o->code == IR_ORI))
				return combine_truth(h, o->code == IR_ANDI, in[k], in[!k]);
	for (u32 k = 0; k < o->noperands; k++)
		in[k] = cpu_spread(h, in[k], lanes);
	return cpu_elementwise(h, o, in);
}

static LLVMValueRef eval_new(struct cpu_codegen *h, const struct value *v, const struct at *at)
{
	const struct op *o = v->def;
	struct at from;
	switch (o->code) {
	case IR_CONSTANT: return cpu_scalar(h, v);
	case IR_SPLAT: return cpu_scalar(h, operand(o, 0));
	case IR_MAKE_RANGE: return eval_range(h, o, at);
	case IR_LOAD: return cpu_eval_load(h, o, at);
	default: break;
	}
	if (!op_is_shape(o))
		return eval_elementwise(h, o, at);
	if (!view_index(h, o, at, &from))
		return eval_each(h, v, at);
	return cpu_eval(h, operand(o, 0), &from);
}

LLVMValueRef cpu_eval(struct cpu_codegen *h, const struct value *v, const struct at *at)
{
	if (!type_is_tensor(v->type))
		return cpu_scalar(h, v);
	const struct in_register *r = info_of(h, v)->in_register;
	if (r && same_index(&r->at, at, v->type->rank, -1))
		return r->x;
	struct memo *first = map_get(&h->memo, v);
	for (const struct memo *m = first; m; m = m->next)
		if (same_index(&m->at, at, v->type->rank, -1))
			return m->x;
	if (is_assumed(h, v, at))
		return LLVMConstInt(h->i1, 1, false);
	const struct info *i = info_of(h, v);
	struct memo *m = arena_new(&h->scratch, struct memo);
	*m = (struct memo){.at = *at, .next = first};
	m->x = i->made ? buffer_load(h, i->buffer, v->type, at) : eval_new(h, v, at);
	m->next = map_get(&h->memo, v);
	map_put(&h->memo, v, m);
	return m->x;
}

void cpu_forget(struct cpu_codegen *h)
{
	h->memo = (struct map){.arena = &h->scratch};
}

/* --- masks that are true for a first part of a row --------------------------------------------------------------- */

/* The elements at the start of a row for which masks are true. row: length of the row. */
struct prefix {
	struct cpu_codegen *h;
	LLVMValueRef count; /* number of the row's elements for which all assumed masks are true; NULL: all */
	struct assumed *assumed;
	i64 row;
};

static void shorten(struct prefix *p, LLVMValueRef n)
{
	struct cpu_codegen *h = p->h;
	if (p->count)
		n = LLVMBuildSelect(h->b, LLVMBuildICmp(h->b, LLVMIntSLT, n, p->count, ""), n, p->count, "");
	p->count = n;
}

static void assume(struct prefix *p, const struct value *v, const struct at *at)
{
	struct assumed *a = arena_new(&p->h->scratch, struct assumed);
	*a = (struct assumed){v, *at, p->assumed};
	p->assumed = a;
}

LLVMValueRef cpu_count_true(struct cpu_codegen *h, const struct value *v, const struct at *at)
{
	const struct op *o = v->def;
	i64 code = o->attr[ATTR_PREDICATE], row = v->type->shape[at->along];
	bool turned = code == CMPI_SGT || code == CMPI_SGE || code == CMPI_UGT || code == CMPI_UGE,
	     no_sign = code >= CMPI_ULT,
	     or_equal = code == CMPI_SLE || code == CMPI_SGE || code == CMPI_ULE || code == CMPI_UGE;
	if (code == CMPI_EQ || code == CMPI_NE || type_is_ptr(operand(o, 0)->type))
		return NULL;
	const struct value *index = operand(o, turned), *bound = operand(o, !turned);
	if (axis_proved(h->s->axis, index)->contiguity[at->along] < row ||
	    axis_proved(h->s->axis, bound)->constancy[at->along] < row || !info_of(h, index)->free ||
	    !info_of(h, bound)->free)
		return NULL;
	struct at first = *at;
	set_along(&first, -1, 0);
	LLVMValueRef x = cpu_eval(h, index, &first), y = cpu_eval(h, bound, &first);
	if (LLVMTypeOf(x) != h->i64) {
		x = no_sign ? LLVMBuildZExt(h->b, x, h->i64, "") : LLVMBuildSExt(h->b, x, h->i64, "");
		y = no_sign ? LLVMBuildZExt(h->b, y, h->i64, "") : LLVMBuildSExt(h->b, y, h->i64, "");
	}
	LLVMValueRef diff = LLVMBuildSub(h->b, y, x, "");
	LLVMIntPredicate less = no_sign ? LLVMIntULT : LLVMIntSLT, or_less = no_sign ? LLVMIntULE : LLVMIntSLE;
	LLVMValueRef more = LLVMBuildICmp(h->b, or_equal ? or_less : less, x, y, "");
	/* an overflow of the 64-bit difference makes it negative, which also is UGE */
	LLVMValueRef far = LLVMBuildICmp(h->b, LLVMIntUGE, diff, cpu_i64(h, row), "");
	LLVMValueRef n = or_equal ? LLVMBuildAdd(h->b, diff, cpu_i64(h, 1), "") : diff;
	n = LLVMBuildSelect(h->b, far, cpu_i64(h, row), n, "");
	return LLVMBuildSelect(h->b, more, n, cpu_i64(h, 0), "");
}

static void assume_compare(struct prefix *p, const struct value *v, const struct at *at)
{
	LLVMValueRef n = cpu_count_true(p->h, v, at);
	if (!n)
		return;
	shorten(p, n);
	assume(p, v, at);
}

static void assume_mask(struct prefix *p, const struct value *v, const struct at *at)
{
	struct cpu_codegen *h = p->h;
	const struct op *o = v->def;
	struct at from;
	if (!type_is_tensor(v->type) || !o || !info_of(h, v)->free || is_assumed(h, v, at))
		return;
	if (o->code == IR_ANDI) {
		assume_mask(p, operand(o, 0), at);
		assume_mask(p, operand(o, 1), at);
	} else if (op_is_shape(o)) {
		if (o->code != IR_RESHAPE && view_index(h, o, at, &from))
			assume_mask(p, operand(o, 0), &from);
	} else if (at->along < 0 && o->code != IR_CONSTANT) {
		LLVMValueRef x = cpu_eval(h, v, at);
		shorten(p, LLVMBuildSelect(h->b, x, cpu_i64(h, p->row), cpu_i64(h, 0), ""));
		assume(p, v, at);
	} else if (at->along >= 0 && o->code == IR_CMPI) {
		assume_compare(p, v, at);
	}
}

/* Finds the elements at the start of the row for which the masks of the nest's loads and stores are true at the nest's
 * index. A load at another index, since a shape operation separates it from the nest, does not match the assumption
 * (is_assumed). */
static void find_prefix(struct prefix *p, struct cpu_nest *n, const struct at *at)
{
	for (u32 i = 0; i < n->loads.len; i++) {
		const struct op *o = n->loads.at[i];
		if (mask_of(o) && operand(o, 0)->type->rank == n->rank)
			assume_mask(p, mask_of(o), at);
	}
	for (u32 i = 0; i < n->roots.len; i++) {
		const struct op *o = n->roots.at[i].op;
		if (o->code == IR_STORE && mask_of(o))
			assume_mask(p, mask_of(o), at);
	}
}

/* --- the loops --------------------------------------------------------------------------------------------------- */

static bool along_lanes(const struct cpu_nest *n, const struct root *r)
{
	return r->op->code == IR_REDUCE && r->op->attr[ATTR_AXIS] == n->lane_dim;
}

/* Computes root r at an index and stores it. A root with info.in_place overwrites an element of the tile that it is
 * computed from. The following roots must not recompute it from that element: info.made makes them load it. */
static void store_root(struct cpu_codegen *h, struct root *r, const struct at *at)
{
	struct info *i = info_of(h, r->v);
	LLVMValueRef x = cpu_eval(h, r->v, at);
	buffer_store(h, r->turned ? r->turned : buffer_of(h, r->v), r->v->type, at, x);
	i->made = i->in_place;
}

static void emit_body(struct cpu_codegen *h, struct cpu_nest *n, const struct at *at)
{
	LLVMValueRef first = LLVMBuildICmp(h->b, LLVMIntEQ, at->i[n->lane_dim], cpu_i64(h, 0), "");
	cpu_forget(h);
	for (u32 i = 0; i < n->roots.len; i++) {
		struct root *r = &n->roots.at[i];
		cpu_debug_location(h, r->op->loc);
		if (r->op->code == IR_STORE)
			cpu_eval_store(h, r->op, at);
		else if (r->op->code == IR_REDUCE)
			reduce_body(h, n, r, at, first);
		else
			store_root(h, r, at);
	}
	for (u32 i = 0; i < n->roots.len; i++)
		if (n->roots.at[i].v && info_of(h, n->roots.at[i].v)->in_place)
			info_of(h, n->roots.at[i].v)->made = false;
	cpu_forget(h);
}

static void emit_range(struct cpu_codegen *h, struct cpu_nest *n, struct at *at, LLVMValueRef from, LLVMValueRef to,
		       bool may_be_empty)
{
	i64 row = n->shape[n->lane_dim];
	if (row == n->lanes) {
		LLVMValueRef some = may_be_empty ? LLVMBuildICmp(h->b, LLVMIntSLT, from, to, "") : NULL;
		struct guarded g = begin_if(h->b, some);
		at->i[n->lane_dim] = cpu_i64(h, 0);
		emit_body(h, n, at);
		end_if(h->b, &g);
		return;
	}
	struct cpu_loop l = cpu_loop(h, from, to, n->lanes, may_be_empty);
	at->i[n->lane_dim] = l.index;
	emit_body(h, n, at);
	cpu_loop_end(h, &l);
}

static void emit_row(struct cpu_codegen *h, struct cpu_nest *n, struct at *at)
{
	i64 row = n->shape[n->lane_dim];
	LLVMValueRef zero = cpu_i64(h, 0), end = cpu_i64(h, row);
	struct prefix p = {.h = h, .row = row};
	set_along(at, n->lanes > 1 ? n->lane_dim : -1, n->lanes);
	at->i[n->lane_dim] = zero;
	for (u32 i = 0; i < n->roots.len; i++)
		if (along_lanes(n, &n->roots.at[i]))
			reduce_open(h, n, &n->roots.at[i]);
	cpu_forget(h);
	find_prefix(&p, n, at);
	if (p.count) {
		LLVMValueRef whole = LLVMBuildAnd(h->b, p.count, cpu_i64(h, -(i64)n->lanes), "");
		h->assumed = p.assumed;
		emit_range(h, n, at, zero, whole, true);
		h->assumed = NULL;
		h->in_rest = true;
		emit_range(h, n, at, whole, end, true);
		h->in_rest = false;
	} else {
		emit_range(h, n, at, zero, end, false);
	}
	at->i[n->lane_dim] = zero;
	for (u32 i = 0; i < n->roots.len; i++)
		if (along_lanes(n, &n->roots.at[i]))
			reduce_close(h, n, &n->roots.at[i], at);
}

static void transpose_operand(struct cpu_codegen *h, const struct cpu_nest *n, struct root *r)
{
	const struct buffer *to = info_of(h, r->v)->buffer;
	if (!to || to->operand == DT_COUNT || n->lane_dim != n->rank - 2 || n->lanes == 1)
		return;
	r->turned = buffer_new(h, r->v);
	r->turned->stride[n->rank - 2] = 1;
	r->turned->stride[n->rank - 1] = n->shape[n->rank - 2];
}

/* The number of rows that are computed before one interleaving of rows: dot_unit.group if the nest stores a dot's
 * operand B; otherwise 1. */
static i64 rows_together(struct cpu_codegen *h, const struct cpu_nest *n)
{
	u32 rows = 1;
	for (u32 i = 0; i < n->roots.len && n->rank > 1 && n->lane_dim == n->rank - 1; i++)
		if (n->roots.at[i].v)
			rows = MAX(rows, cpu_dot_group(info_of(h, n->roots.at[i].v)->buffer));
	return rows;
}

static void emit_rows(struct cpu_codegen *h, struct cpu_nest *n, struct at *at, i64 together)
{
	int d = n->rank - 2;
	if (together == 1) {
		emit_row(h, n, at);
		return;
	}
	LLVMValueRef first = at->i[d];
	struct cpu_loop l = cpu_loop(h, first, LLVMBuildAdd(h->b, first, cpu_i64(h, together), ""), 1, false);
	at->i[d] = l.index;
	emit_row(h, n, at);
	cpu_loop_end(h, &l);
	at->i[d] = first;
	for (u32 i = 0; i < n->roots.len; i++) {
		const struct value *v = n->roots.at[i].v;
		if (v && cpu_dot_group(info_of(h, v)->buffer) == together)
			cpu_dot_interleave(h, v->type, info_of(h, v)->buffer, at);
	}
}

void cpu_emit_nest(struct cpu_codegen *h, struct cpu_nest *n)
{
	struct cpu_loop loops[MAX_RANK];
	struct at at = {.along = -1};
	for (u32 i = 0; i < n->roots.len; i++) {
		const struct op *o = n->roots.at[i].op;
		for (u32 k = 0; k < o->nresults; k++)
			if (type_is_tensor(o->results[k].type))
				buffer_of(h, &o->results[k]);
		if (n->roots.at[i].v)
			transpose_operand(h, n, &n->roots.at[i]);
	}
	i64 together = rows_together(h, n);
	cpu_prefetch_begin(h, n);
	for (int d = 0; d < n->rank; d++) {
		at.i[d] = cpu_i64(h, 0);
		if (d == n->lane_dim || n->shape[d] == 1)
			continue;
		loops[d] =
			cpu_loop(h, cpu_i64(h, 0), cpu_i64(h, n->shape[d]), d == n->rank - 2 ? together : 1, false);
		at.i[d] = loops[d].index;
	}
	emit_rows(h, n, &at, together);
	for (int d = n->rank - 1; d >= 0; d--)
		if (d != n->lane_dim && n->shape[d] != 1)
			cpu_loop_end(h, &loops[d]);
	cpu_forget(h);
	for (u32 i = 0; i < n->roots.len; i++) {
		const struct op *o = n->roots.at[i].op;
		for (u32 k = 0; k < o->nresults; k++)
			info_of(h, &o->results[k])->made = type_is_tensor(o->results[k].type);
		if (n->roots.at[i].turned)
			cpu_dot_transpose(h, result(o)->type, n->roots.at[i].turned, info_of(h, result(o))->buffer);
		else if (n->roots.at[i].v && cpu_dot_group(info_of(h, n->roots.at[i].v)->buffer) != together)
			cpu_dot_interleave_all(h, n->roots.at[i].v->type, info_of(h, n->roots.at[i].v)->buffer);
	}
}

/* --- regions --------------------------------------------------------------------------------------------------- */

void cpu_region(struct cpu_codegen *h, const struct block *b, const LLVMValueRef *args, LLVMValueRef *out, u32 lanes)
{
	for (u32 i = 0; i < b->nargs; i++)
		cpu_set_scalar(h, b->args[i], args[i]);
	if (!lanes && !region_is_elementwise(b)) {
		cpu_emit_block(h, b);
	} else {
		for (const struct op *o = b->first; !op_has(o, END); o = o->next) {
			LLVMValueRef in[8];
			if (o->code == IR_CONSTANT)
				continue;
			for (u32 k = 0; k < o->noperands; k++)
				in[k] = cpu_spread(h, cpu_scalar(h, operand(o, k)), lanes);
			cpu_set_scalar(h, result(o), cpu_elementwise(h, o, in));
		}
	}
	for (u32 i = 0; i < b->last->noperands; i++)
		out[i] = cpu_spread(h, cpu_scalar(h, operand(b->last, i)), lanes);
}
