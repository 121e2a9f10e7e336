/* Short cuts to LLVM's builder. */
#include "cpu/cpu_internal.h"

LLVMValueRef host_concat(struct host *h, LLVMValueRef *parts, u32 n)
{
	LLVMValueRef at[256];
	for (; n > 1; n /= 2) {
		u32 lanes = 2 * lanes_of(parts[0]);
		for (u32 i = 0; i < lanes; i++)
			at[i] = host_i32(h, i);
		for (u32 i = 0; i < n / 2; i++)
			parts[i] = LLVMBuildShuffleVector(h->b, parts[2 * i], parts[2 * i + 1],
							  LLVMConstVector(at, lanes), "");
	}
	return parts[0];
}

u32 lanes_of(LLVMValueRef x)
{
	LLVMTypeRef t = LLVMTypeOf(x);
	return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetVectorSize(t) : 0;
}

LLVMValueRef host_lanes(struct host *h, LLVMValueRef x, u32 first, u32 n)
{
	LLVMValueRef at[256];
	if (n == lanes_of(x))
		return x;
	for (u32 i = 0; i < n; i++)
		at[i] = host_i32(h, first + i);
	return LLVMBuildShuffleVector(h->b, x, LLVMGetPoison(LLVMTypeOf(x)), LLVMConstVector(at, n), "");
}

LLVMValueRef host_lane(struct host *h, LLVMValueRef x, u32 lane)
{
	return LLVMBuildExtractElement(h->b, x, host_i32(h, lane), "");
}

LLVMValueRef host_spread(struct host *h, LLVMValueRef x, u32 lanes)
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
	LLVMValueRef one = LLVMBuildInsertElement(h->b, LLVMGetPoison(t), x, host_i32(h, 0), "");
	return LLVMBuildShuffleVector(h->b, one, LLVMGetPoison(t), LLVMConstNull(LLVMVectorType(h->i32, lanes)), "");
}

LLVMValueRef host_iota(LLVMTypeRef t, u32 lanes)
{
	LLVMValueRef at[256];
	for (u32 i = 0; i < lanes; i++)
		at[i] = LLVMConstInt(t, i, false);
	return LLVMConstVector(at, lanes);
}

LLVMValueRef host_gep(struct host *h, LLVMValueRef p, LLVMTypeRef elem, LLVMValueRef index)
{
	return LLVMBuildGEP2(h->b, elem, p, &index, 1, "");
}

LLVMBasicBlockRef host_block(struct host *h)
{
	return LLVMAppendBasicBlockInContext(h->ctx, h->fn, "");
}

struct loop host_loop(struct host *h, LLVMValueRef from, LLVMValueRef to, i64 step, bool may_be_empty)
{
	struct loop l = {.head = host_block(h), .to = to, .step = LLVMConstInt(LLVMTypeOf(from), (u64)step, true)};
	LLVMBasicBlockRef before = LLVMGetInsertBlock(h->b);
	l.exit = host_block(h);
	if (may_be_empty)
		LLVMBuildCondBr(h->b, LLVMBuildICmp(h->b, LLVMIntSLT, from, to, ""), l.head, l.exit);
	else
		LLVMBuildBr(h->b, l.head);
	LLVMPositionBuilderAtEnd(h->b, l.head);
	l.index = LLVMBuildPhi(h->b, LLVMTypeOf(from), "");
	LLVMAddIncoming(l.index, &from, &before, 1);
	return l;
}

void host_loop_end(struct host *h, struct loop *l)
{
	LLVMBasicBlockRef here = LLVMGetInsertBlock(h->b);
	LLVMValueRef next = LLVMBuildNSWAdd(h->b, l->index, l->step, "");
	LLVMBuildCondBr(h->b, LLVMBuildICmp(h->b, LLVMIntSLT, next, l->to, ""), l->head, l->exit);
	LLVMAddIncoming(l->index, &next, &here, 1);
	LLVMMoveBasicBlockAfter(l->exit, here);
	LLVMPositionBuilderAtEnd(h->b, l->exit);
}

LLVMBasicBlockRef host_if(struct host *h, LLVMValueRef cond)
{
	LLVMBasicBlockRef then = host_block(h), end = host_block(h);
	LLVMBuildCondBr(h->b, cond, then, end);
	LLVMPositionBuilderAtEnd(h->b, then);
	return end;
}

void host_end_if(struct host *h, LLVMBasicBlockRef end)
{
	LLVMBuildBr(h->b, end);
	LLVMPositionBuilderAtEnd(h->b, end);
}
