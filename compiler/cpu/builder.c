/* Vectors, loads at a byte offset, and loops. */
#include "cpu/cpu_internal.h"

LLVMValueRef cpu_concat(struct cpu_codegen *h, LLVMValueRef *parts, u32 n)
{
	LLVMValueRef at[256];
	for (; n > 1; n /= 2) {
		u32 lanes = 2 * lanes_of(parts[0]);
		for (u32 i = 0; i < lanes; i++)
			at[i] = cpu_i32(h, i);
		for (u32 i = 0; i < n / 2; i++)
			parts[i] = LLVMBuildShuffleVector(h->b, parts[2 * i], parts[2 * i + 1],
							  LLVMConstVector(at, lanes), "");
	}
	return parts[0];
}

LLVMValueRef cpu_lanes(struct cpu_codegen *h, LLVMValueRef x, u32 first, u32 n)
{
	LLVMValueRef at[256];
	u32 lanes = lanes_of(x);
	if (n == lanes)
		return x;
	for (u32 i = 0; i < n; i++)
		at[i] = cpu_i32(h, (first + i) % lanes);
	return LLVMBuildShuffleVector(h->b, x, LLVMGetPoison(LLVMTypeOf(x)), LLVMConstVector(at, n), "");
}

LLVMValueRef cpu_lane(struct cpu_codegen *h, LLVMValueRef x, u32 lane)
{
	return LLVMBuildExtractElement(h->b, x, cpu_i32(h, lane), "");
}

LLVMValueRef cpu_spread(struct cpu_codegen *h, LLVMValueRef x, u32 lanes)
{
	if (!lanes || lanes_of(x))
		return x;
	LLVMTypeRef t = LLVMVectorType(LLVMTypeOf(x), lanes);
	if (LLVMIsConstant(x)) {
		LLVMValueRef at[256];
		for (u32 i = 0; i < lanes; i++)
			at[i] = x;
		return LLVMConstVector(at, lanes);
	}
	LLVMValueRef one = LLVMBuildInsertElement(h->b, LLVMGetPoison(t), x, cpu_i32(h, 0), "");
	return LLVMBuildShuffleVector(h->b, one, LLVMGetPoison(t), LLVMConstNull(LLVMVectorType(h->i32, lanes)), "");
}

LLVMValueRef cpu_iota(LLVMTypeRef t, u32 lanes)
{
	LLVMValueRef at[256];
	for (u32 i = 0; i < lanes; i++)
		at[i] = LLVMConstInt(t, i, false);
	return LLVMConstVector(at, lanes);
}

LLVMValueRef cpu_any_lane(struct cpu_codegen *h, LLVMValueRef mask, bool all)
{
	return lanes_of(mask) ? intrinsic1(h->b, all ? "llvm.vector.reduce.and" : "llvm.vector.reduce.or", mask) : mask;
}

LLVMValueRef cpu_load_at(struct cpu_codegen *h, LLVMBuilderRef b, LLVMTypeRef t, LLVMValueRef p, i64 offset)
{
	return LLVMBuildLoad2(b, t, gep(b, p, h->i8, cpu_i64(h, offset)), "");
}

struct cpu_loop cpu_loop(struct cpu_codegen *h, LLVMValueRef from, LLVMValueRef to, i64 step, bool may_be_empty)
{
	struct cpu_loop l = {
		.head = new_block(h->b), .to = to, .step = LLVMConstInt(LLVMTypeOf(from), (u64)step, true)};
	LLVMBasicBlockRef before = LLVMGetInsertBlock(h->b);
	l.exit = new_block(h->b);
	if (may_be_empty)
		LLVMBuildCondBr(h->b, LLVMBuildICmp(h->b, LLVMIntSLT, from, to, ""), l.head, l.exit);
	else
		LLVMBuildBr(h->b, l.head);
	LLVMPositionBuilderAtEnd(h->b, l.head);
	l.index = LLVMBuildPhi(h->b, LLVMTypeOf(from), "");
	LLVMAddIncoming(l.index, &from, &before, 1);
	return l;
}

void cpu_loop_end(struct cpu_codegen *h, struct cpu_loop *l)
{
	LLVMBasicBlockRef here = LLVMGetInsertBlock(h->b);
	LLVMValueRef next = LLVMBuildNSWAdd(h->b, l->index, l->step, "");
	LLVMBuildCondBr(h->b, LLVMBuildICmp(h->b, LLVMIntSLT, next, l->to, ""), l->head, l->exit);
	LLVMAddIncoming(l->index, &next, &here, 1);
	LLVMMoveBasicBlockAfter(l->exit, here);
	LLVMPositionBuilderAtEnd(h->b, l->exit);
}
