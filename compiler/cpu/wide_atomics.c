/* Atomic additions of floats to several neighbours at once.
 *
 * x86 has no atomic addition of floats: each takes a compare-and-swap, some 20 cycles. It compares and swaps up to 16
 * bytes, which hold several elements. Each element is still added atomically, since no other access of the 16 bytes
 * comes between the comparison and the swap. Elements that are masked off or not aligned are added one by one. */
#include "cpu/vector_ops.h"

enum { SWAPPED = 16 /* bytes */ };

u32 cpu_wide_atomic(struct cpu_codegen *h, const struct op *o)
{
	const struct value *v = result(o);
	if (o->code != IR_ATOMIC_RMW || o->attr[ATTR_RMW] != RMW_FADD || v->uses || h->s->target->checks || h->debug ||
	    h->s->target->level == CPU_NEON)
		return 0;
	i32 lanes = SWAPPED / dtype_bytes(type_dtype(v->type)), last = v->type->rank - 1;
	return axis_proved(h->s->axis, operand(o, 0))->contiguity[last] >= lanes ? (u32)lanes : 0;
}

/* Adds x to the elements at p, which is a multiple of SWAPPED. */
static void add_at_once(struct cpu_codegen *h, LLVMValueRef p, LLVMValueRef x, enum dtype d)
{
	LLVMTypeRef all = LLVMIntTypeInContext(h->ctx, 8 * SWAPPED), t = LLVMTypeOf(x);
	LLVMBasicBlockRef loop = new_block(h->b), end = new_block(h->b), before = LLVMGetInsertBlock(h->b);
	/* the load need not be atomic: if another access comes between its parts, the comparison fails */
	LLVMValueRef first = LLVMBuildLoad2(h->b, all, p, "");
	LLVMSetAlignment(first, SWAPPED);
	LLVMBuildBr(h->b, loop);
	LLVMPositionBuilderAtEnd(h->b, loop);
	LLVMValueRef old = LLVMBuildPhi(h->b, all, ""), a = LLVMBuildBitCast(h->b, old, t, "");
	LLVMAddIncoming(old, &first, &before, 1);
	LLVMValueRef present = cpu_widen(h, a, d), added = cpu_widen(h, x, d);
	LLVMValueRef sum = LLVMBuildFAdd(h->b, present, added, "");
	LLVMValueRef next = LLVMBuildBitCast(h->b, cpu_narrow(h, sum, d), all, "");
	LLVMValueRef swap = LLVMBuildAtomicCmpXchg(h->b, p, old, next, LLVMAtomicOrderingSequentiallyConsistent,
						   LLVMAtomicOrderingSequentiallyConsistent, false);
	LLVMSetAlignment(swap, SWAPPED);
	LLVMValueRef seen = LLVMBuildExtractValue(h->b, swap, 0, "");
	LLVMBasicBlockRef here = LLVMGetInsertBlock(h->b);
	LLVMBuildCondBr(h->b, LLVMBuildExtractValue(h->b, swap, 1, ""), end, loop);
	LLVMAddIncoming(old, &seen, &here, 1);
	LLVMPositionBuilderAtEnd(h->b, end);
}

void cpu_emit_wide_atomic(struct cpu_codegen *h, const struct op *o, u32 lanes)
{
	struct loops l;
	const struct type *t = result(o)->type;
	int last = t->rank - 1;
	struct at at = cpu_loops(h, t, lanes, &l), one = at;
	one.along = -1;
	one.lanes = 0;
	LLVMValueRef x = cpu_spread(h, cpu_eval(h, operand(o, 1), &at), lanes), p = cpu_eval(h, operand(o, 0), &one);
	LLVMValueRef low = LLVMBuildAnd(h->b, LLVMBuildPtrToInt(h->b, p, h->i64, ""), cpu_i64(h, SWAPPED - 1), "");
	LLVMValueRef whole = LLVMBuildICmp(h->b, LLVMIntEQ, low, cpu_i64(h, 0), "");
	if (mask_of(o))
		whole = LLVMBuildAnd(h->b, whole, cpu_any_lane(h, cpu_eval(h, mask_of(o), &at), true), "");
	LLVMBasicBlockRef all = new_block(h->b), each = new_block(h->b), end = new_block(h->b);
	LLVMBuildCondBr(h->b, whole, all, each);
	LLVMPositionBuilderAtEnd(h->b, all);
	add_at_once(h, p, x, type_dtype(t));
	LLVMBuildBr(h->b, end);
	LLVMPositionBuilderAtEnd(h->b, each);
	cpu_forget(h);
	LLVMValueRef to = LLVMBuildAdd(h->b, at.i[last], cpu_i64(h, lanes), "");
	struct cpu_loop k = cpu_loop(h, at.i[last], to, 1, false);
	one.i[last] = k.index;
	cpu_eval_atomic(h, o, &one);
	cpu_loop_end(h, &k);
	LLVMBuildBr(h->b, end);
	LLVMPositionBuilderAtEnd(h->b, end);
	cpu_loops_end(h, &l);
}
