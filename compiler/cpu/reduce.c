/* Reductions inside a nest.
 *
 * Along the dimension of the lanes: a vector of partial results, one for each lane, stays in registers. At the end of
 * the row, its upper half is combined with its lower half until one element remains. Along another dimension: the
 * result in memory is combined with the elements of one index after another. */
#include <math.h>

#include "cpu/cpu_internal.h"

enum { MOST = 8 };

static bool has_identity(const struct op *o)
{
	const struct block *b = o->blocks[0];
	return o->noperands == 1 && b->first->next == b->last && b->first->noperands == 2 && b->first->nresults == 1 &&
	       operand(b->last, 0) == result(b->first) && operand(b->first, 0) != operand(b->first, 1);
}

/* The identity element of the operation that the reduction combines with; NULL if it has no known one. */
static LLVMValueRef identity(struct cpu_codegen *h, const struct op *o)
{
	if (!has_identity(o))
		return NULL;
	const struct op *c = o->blocks[0]->first;
	const struct type *elem = type_elem(operand(o, 0)->type);
	enum dtype d = type_dtype(elem);
	LLVMTypeRef t = cpu_elem_type(h, elem);
	if (d == DT_F32 || d == DT_F64)
		switch (c->code) {
		case IR_ADDF: return LLVMConstReal(t, -0.0);
		case IR_MULF: return LLVMConstReal(t, 1);
		case IR_MAXNUMF:
		case IR_MINNUMF: return LLVMConstReal(t, NAN);
		case IR_MAXIMUMF: return LLVMConstReal(t, -INFINITY);
		case IR_MINIMUMF: return LLVMConstReal(t, INFINITY);
		default: return NULL;
		}
	u64 ones = ~0ull, sign = 1ull << (type_elem_bits(elem) - 1);
	switch (c->code) {
	case IR_ADDI:
	case IR_ORI:
	case IR_XORI:
	case IR_MAXUI: return LLVMConstNull(t);
	case IR_ANDI:
	case IR_MINUI: return LLVMConstInt(t, ones, true);
	case IR_MULI: return LLVMConstInt(t, 1, false);
	case IR_MAXSI: return LLVMConstInt(t, sign, false);
	case IR_MINSI: return LLVMConstInt(t, sign - 1, false);
	default: return NULL;
	}
}

void cpu_combine(struct cpu_codegen *h, const struct op *o, const LLVMValueRef *a, const LLVMValueRef *b,
		 LLVMValueRef *out, u32 lanes)
{
	LLVMValueRef args[2 * MOST], one[2 * MOST], sum[MOST];
	u32 n = o->noperands;
	memcpy(args, a, n * sizeof *args);
	memcpy(args + n, b, n * sizeof *args);
	if (!lanes || region_is_elementwise(o->blocks[0])) {
		cpu_region(h, o->blocks[0], args, out, lanes);
		return;
	}
	for (u32 i = 0; i < n; i++)
		out[i] = LLVMGetPoison(LLVMTypeOf(a[i]));
	for (u32 k = 0; k < lanes; k++) {
		for (u32 i = 0; i < 2 * n; i++)
			one[i] = cpu_lane(h, args[i], k);
		cpu_region(h, o->blocks[0], one, sum, 0);
		for (u32 i = 0; i < n; i++)
			out[i] = LLVMBuildInsertElement(h->b, out[i], sum[i], cpu_i32(h, k), "");
	}
}

static bool in_registers(const struct cpu_nest *n, const struct root *r)
{
	return r->op->attr[ATTR_AXIS] == n->lane_dim;
}

static u32 nest_lanes(const struct cpu_nest *n)
{
	return n->lanes > 1 ? n->lanes : 0;
}

/* Vectors of a segment. Float sums along the lanes with more vectors are split into segments that are summed separately
 * and then added: rounding errors grow with the number of successive additions. */
enum { SUMMED = 64 };

static bool in_segments(struct cpu_codegen *h, const struct cpu_nest *n, const struct root *r)
{
	return in_registers(n, r) && identity(h, r->op) && r->op->blocks[0]->first->code == IR_ADDF &&
	       n->shape[n->lane_dim] / (i64)n->lanes > SUMMED;
}

/* Adds the sum of the current segment to r->total, and sets it to zero. */
static void close_segment(struct cpu_codegen *h, struct cpu_nest *n, struct root *r)
{
	LLVMValueRef none = cpu_spread(h, identity(h, r->op), nest_lanes(n));
	LLVMValueRef part = LLVMBuildLoad2(h->b, LLVMTypeOf(none), r->part[0], ""),
		     total = LLVMBuildLoad2(h->b, LLVMTypeOf(none), r->total, "");
	LLVMBuildStore(h->b, LLVMBuildFAdd(h->b, total, part, ""), r->total);
	LLVMBuildStore(h->b, none, r->part[0]);
}

void reduce_open(struct cpu_codegen *h, struct cpu_nest *n, struct root *r)
{
	LLVMValueRef none = identity(h, r->op);
	for (u32 i = 0; i < r->op->noperands; i++) {
		LLVMTypeRef t = cpu_vector_type(cpu_elem_type(h, operand(r->op, i)->type), nest_lanes(n));
		r->part[i] = LLVMBuildAlloca(h->entry, t, "");
		if (none)
			LLVMBuildStore(h->b, cpu_spread(h, none, nest_lanes(n)), r->part[i]);
		if (in_segments(h, n, r)) {
			r->total = LLVMBuildAlloca(h->entry, t, "");
			LLVMBuildStore(h->b, cpu_spread(h, none, nest_lanes(n)), r->total);
		}
	}
}

/* The index of the result for index `at` of the operand: without the reduction's axis. */
static struct at result_index(const struct op *o, const struct at *at)
{
	struct at out = {.along = -1};
	int axis = (int)o->attr[ATTR_AXIS], rank = operand(o, 0)->type->rank;
	for (int d = 0, k = 0; d < rank; d++) {
		if (d == axis)
			continue;
		if (d == at->along) {
			out.along = k;
			out.lanes = at->lanes;
		}
		out.i[k++] = at->i[d];
	}
	return out;
}

static void collect(struct cpu_codegen *h, const struct op *o, u32 i, const struct at *to, LLVMValueRef x)
{
	const struct value *v = &o->results[i];
	buffer_store(h, buffer_of(h, v), v->type, to, x);
}

void reduce_body(struct cpu_codegen *h, struct cpu_nest *n, struct root *r, const struct at *at, LLVMValueRef first)
{
	const struct op *o = r->op;
	bool wide = in_registers(n, r), known = wide && identity(h, o);
	u32 lanes = at->along < 0 ? 0 : at->lanes;
	struct at to = result_index(o, at);
	LLVMValueRef x[MOST], sum[MOST];
	LLVMBasicBlockRef start = NULL, more = NULL, end = NULL;
	for (u32 i = 0; i < o->noperands; i++)
		x[i] = cpu_spread(h, cpu_eval(h, operand(o, i), at), lanes);
	if (!wide)
		first = LLVMBuildICmp(h->b, LLVMIntEQ, at->i[o->attr[ATTR_AXIS]], cpu_i64(h, 0), "");
	if (!known) {
		start = new_block(h->b), more = new_block(h->b), end = new_block(h->b);
		LLVMBuildCondBr(h->b, first, start, more);
		LLVMPositionBuilderAtEnd(h->b, start);
		for (u32 i = 0; i < o->noperands; i++)
			if (wide)
				LLVMBuildStore(h->b, x[i], r->part[i]);
			else
				collect(h, o, i, &to, x[i]);
		LLVMBuildBr(h->b, end);
		LLVMPositionBuilderAtEnd(h->b, more);
	}
	LLVMValueRef before[MOST];
	for (u32 i = 0; i < o->noperands; i++)
		before[i] = wide ? LLVMBuildLoad2(h->b, LLVMTypeOf(x[i]), r->part[i], "")
				 : buffer_load(h, buffer_of(h, &o->results[i]), o->results[i].type, &to);
	cpu_combine(h, o, before, x, sum, lanes);
	for (u32 i = 0; i < o->noperands; i++)
		if (wide)
			LLVMBuildStore(h->b, sum[i], r->part[i]);
		else
			collect(h, o, i, &to, sum[i]);
	if (!known) {
		LLVMBuildBr(h->b, end);
		LLVMPositionBuilderAtEnd(h->b, end);
	}
	if (in_segments(h, n, r)) {
		LLVMValueRef last = cpu_i64(h, (SUMMED - 1) * n->lanes);
		LLVMValueRef here = LLVMBuildAnd(h->b, at->i[n->lane_dim], last, "");
		struct guarded g = begin_if(h->b, LLVMBuildICmp(h->b, LLVMIntEQ, here, last, ""));
		close_segment(h, n, r);
		end_if(h->b, &g);
	}
}

void reduce_close(struct cpu_codegen *h, struct cpu_nest *n, struct root *r, const struct at *row)
{
	const struct op *o = r->op;
	LLVMValueRef x[MOST], low[MOST], high[MOST];
	struct at at = *row;
	at.along = -1;
	at.lanes = 0;
	struct at to = result_index(o, &at);
	bool segments = in_segments(h, n, r);
	if (segments)
		close_segment(h, n, r);
	for (u32 i = 0; i < o->noperands; i++) {
		LLVMTypeRef t = cpu_vector_type(cpu_elem_type(h, operand(o, i)->type), nest_lanes(n));
		x[i] = LLVMBuildLoad2(h->b, t, segments ? r->total : r->part[i], "");
	}
	for (u32 half = nest_lanes(n) / 2; half; half /= 2) {
		for (u32 i = 0; i < o->noperands; i++) {
			low[i] = cpu_lanes(h, x[i], 0, half);
			high[i] = cpu_lanes(h, x[i], half, half);
		}
		cpu_combine(h, o, low, high, x, half);
	}
	for (u32 i = 0; i < o->noperands; i++) {
		LLVMValueRef one = lanes_of(x[i]) ? cpu_lane(h, x[i], 0) : x[i];
		if (type_is_tensor(o->results[i].type))
			buffer_store(h, buffer_of(h, &o->results[i]), o->results[i].type, &to, one);
		else
			cpu_set_scalar(h, &o->results[i], one);
	}
}
