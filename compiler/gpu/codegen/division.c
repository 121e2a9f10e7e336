/* Quotients and remainders of 32-bit integers with a fast path for the usual case.
 *
 * A program computes its tile index before its first load, by divisions. A division by a number known only at launch
 * takes about 30 dependent instructions. The usual results are cheap:
 *
 *     operation                         usual result            example
 *     x / y, x % y                      0 and x, if 0 <= x < y  indices that wrap around at the edge; the first group
 *                                                               of tiles
 *     x / min(z, C), x % min(z, C)      x / C, x % C            groups of tiles; only the last one may be smaller
 *
 * The code tests whether the usual case holds, once for all elements of up to MAX_TOGETHER such divisions in a block,
 * and divides otherwise. The quotient and the remainder of the same operands share the test. Innermost loops have no
 * test: it would run as often as the division that it saves. */
#include "gpu/codegen/nvptx_internal.h"
#include "analysis/index_forms.h"

enum { MAX_TOGETHER = 8 /* pairs of operands that share one test */ };

struct division {
	const struct op *ops[2]; /* quotient and remainder of the same operands; NULL: absent */
	const struct value *x;
	LLVMValueRef by, usual; /* divisor; the constant that it usually is, or NULL: usually 0 <= x < by */
	LLVMValueRef *at[2];    /* phis of the elements of the two results */
};

/* Whether o is outside innermost loops: in straight-line code, in a branch, or in a loop that contains loops. */
static bool runs_seldom(const struct op *o)
{
	const struct op *in = o->block->parent;
	return !in || !op_is_loop(in) || block_has(o->block, op_is_loop);
}

static bool is_lowered(const struct lower *l, const struct value *v)
{
	return map_get(&l->tiles, v);
}

/* i1: 0 <= x < y for all numbers x of the row. */
static LLVMValueRef all_less(struct lower *l, const struct row *row, LLVMValueRef y)
{
	LLVMBuilderRef b = l->b;
	LLVMValueRef last = c_i32(l, row->last), zero = c_i32(l, 0);
	LLVMValueRef left = LLVMBuildSub(b, y, last, "");
	LLVMValueRef room = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSGT, y, last, ""), left, zero, "");
	return LLVMBuildICmp(b, LLVMIntULT, row->start ? elem(l, row->start, 0) : zero, room, "");
}

/* Describes o in *d, together with the remainder or quotient of the same operands, if there is one. Returns the
 * condition of the usual case (i1); NULL if o has no usual case. */
static LLVMValueRef as_division(struct lower *l, const struct op *o, struct division *d)
{
	const struct value *x = operand(o, 0), *y = operand(o, 1);
	if (type_is_tensor(y->type) && def_if(y, IR_SPLAT))
		y = operand(y->def, 0);
	i64 c;
	struct row row = {.start = operand(o, 0)};
	if (type_is_tensor(y->type) || type_elem_bits(y->type) != 32 || value_const_int(y, &c) || !is_lowered(l, x) ||
	    !is_lowered(l, y))
		return NULL;
	*d = (struct division){.x = x, .by = elem(l, y, 0)};
	for (const struct use *u = x->uses; u; u = u->next)
		if ((u->user->code == IR_DIVSI || u->user->code == IR_REMSI) && u->user->block == o->block &&
		    operand(u->user, 0) == x && operand(u->user, 1) == operand(o, 1))
			d->ops[u->user->code == IR_REMSI] = u->user;
	const struct op *min = def_if(y, IR_MINSI);
	if (min && value_const_int(operand(min, 1), &c) && c > 0) {
		d->usual = c_i32(l, c);
		return LLVMBuildICmp(l->b, LLVMIntEQ, d->by, d->usual, "");
	}
	if (type_is_tensor(x->type) && (!row_of(x, &row) || row.first < 0))
		return NULL;
	return all_less(l, &row, d->by);
}

static LLVMValueRef divided(struct lower *l, bool remainder, LLVMValueRef x, LLVMValueRef y)
{
	if (!y)
		return remainder ? x : c_i32(l, 0);
	return remainder ? LLVMBuildSRem(l->b, x, y, "") : LLVMBuildSDiv(l->b, x, y, "");
}

/* A new basic block that computes the results of the n divisions d, in the usual case or (`usual` false) in general,
 * and jumps to `end`. */
static LLVMBasicBlockRef results(struct lower *l, const struct division *d, u32 n, LLVMBasicBlockRef end, bool usual)
{
	LLVMBasicBlockRef block = new_block(l->b);
	LLVMPositionBuilderAtEnd(l->b, block);
	for (u32 k = 0; k < 2 * n; k++) {
		const struct division *of = &d[k / 2];
		for (u32 r = 0; of->at[k % 2] && r < num_elems(of->x); r++) {
			LLVMValueRef v = divided(l, k % 2, elem(l, of->x, r), usual ? of->usual : of->by);
			LLVMAddIncoming(of->at[k % 2][r], &v, &block, 1);
		}
	}
	LLVMBuildBr(l->b, end);
	return block;
}

static void divide(struct lower *l, struct division *d, u32 n, LLVMValueRef is_usual)
{
	LLVMBasicBlockRef here = LLVMGetInsertBlock(l->b), end = new_block(l->b);
	LLVMPositionBuilderAtEnd(l->b, end);
	for (u32 k = 0; k < 2 * n; k++) {
		const struct op *o = d[k / 2].ops[k % 2];
		d[k / 2].at[k % 2] = o ? new_tile(l, result(o)) : NULL;
		for (u32 r = 0; o && r < num_elems(result(o)); r++)
			d[k / 2].at[k % 2][r] = LLVMBuildPhi(l->b, l->i32, "");
	}
	LLVMBasicBlockRef yes = results(l, d, n, end, true), no = results(l, d, n, end, false);
	LLVMPositionBuilderAtEnd(l->b, here);
	LLVMValueRef weights[] = {LLVMMDStringInContext(l->ctx, "branch_weights", 14), c_i32(l, 1000), c_i32(l, 1)};
	LLVMSetMetadata(LLVMBuildCondBr(l->b, is_usual, yes, no), LLVMGetMDKindIDInContext(l->ctx, "prof", 4),
			LLVMMDNodeInContext(l->ctx, weights, 3));
	LLVMPositionBuilderAtEnd(l->b, end);
}

void lower_division(struct lower *l, const struct op *o)
{
	if (is_lowered(l, result(o)))
		return; /* emitted together with an earlier division */
	struct division d[MAX_TOGETHER];
	LLVMValueRef usual = runs_seldom(o) ? as_division(l, o, &d[0]) : NULL;
	u32 n = 1;
	if (!usual) {
		lower_elementwise(l, o);
		return;
	}
	/* further divisions of tiles in this block, if code for their operands has been emitted already, share the
	 * test */
	for (const struct op *other = o->next; type_is_tensor(result(o)->type) && other && n < MAX_TOGETHER;
	     other = other->next) {
		if ((other->code != IR_DIVSI && other->code != IR_REMSI) || !type_is_tensor(result(other)->type))
			continue;
		bool taken = false;
		for (u32 k = 0; k < n; k++)
			taken |= d[k].ops[0] == other || d[k].ops[1] == other;
		LLVMValueRef c = taken ? NULL : as_division(l, other, &d[n]);
		if (c) {
			usual = and_i1(l, usual, c);
			n++;
		}
	}
	divide(l, d, n, usual);
}
