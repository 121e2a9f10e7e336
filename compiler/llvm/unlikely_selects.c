/* Branches around operands of selections that are rarely needed. Code generation computes both operands of a selection.
 * If its condition is unlikely (IR_UNLIKELY), this file moves the instructions that only the first operand needs to a
 * block of their own, which a branch skips if the condition is false: for all lanes, if it is a vector. Instructions of
 * other blocks, and those with effects, stay. */
#include "llvm/builder.h"
#include "llvm/session.h"
#include "support/map.h"

/* An operand of fewer instructions costs less than the branch. */
enum { FEWEST = 6 };

struct branches {
	struct arena scratch;
	LLVMBuilderRef b;
	unsigned mark;
	unsigned memory, convergent; /* kinds of attributes */
};

static unsigned mark_kind(LLVMContextRef ctx)
{
	static const char name[] = "unlikely";
	return LLVMGetMDKindIDInContext(ctx, name, sizeof name - 1);
}

void mark_unlikely(LLVMValueRef select)
{
	if (!LLVMIsASelectInst(select))
		return; /* folded */
	LLVMContextRef ctx = LLVMGetTypeContext(LLVMTypeOf(select));
	LLVMSetMetadata(select, mark_kind(ctx), LLVMMetadataAsValue(ctx, LLVMMDNodeInContext2(ctx, NULL, 0)));
}

/* Whether a call computes its result from its arguments and does nothing else, alone in its thread. */
static bool is_pure_call(const struct branches *s, LLVMValueRef call)
{
	LLVMValueRef f = LLVMGetCalledValue(call);
	if (LLVMIsAInlineAsm(f))
		return !LLVMGetInlineAsmHasSideEffects(f);
	if (!LLVMIsAFunction(f) || !LLVMGetIntrinsicID(f))
		return false;
	const LLVMAttributeIndex function = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
	LLVMAttributeRef memory = LLVMGetEnumAttributeAtIndex(f, function, s->memory);
	return memory && !LLVMGetEnumAttributeValue(memory) &&
	       !LLVMGetEnumAttributeAtIndex(f, function, s->convergent);
}

static bool is_movable(const struct branches *s, LLVMValueRef v)
{
	if (LLVMIsACallInst(v))
		return is_pure_call(s, v);
	return LLVMIsABinaryOperator(v) || LLVMIsACmpInst(v) || LLVMIsASelectInst(v) || LLVMIsAFreezeInst(v) ||
	       LLVMIsAInsertElementInst(v) || LLVMIsAExtractElementInst(v) || LLVMIsAShuffleVectorInst(v) ||
	       (LLVMIsAUnaryInstruction(v) && !LLVMIsALoadInst(v) && !LLVMIsAAllocaInst(v) && !LLVMIsAVAArgInst(v));
}

static uintptr_t number_of_uses(LLVMValueRef v)
{
	uintptr_t n = 0;
	for (LLVMUseRef u = LLVMGetFirstUse(v); u; u = LLVMGetNextUse(u))
		n++;
	return n;
}

struct tree {
	VEC(LLVMValueRef) instructions; /* each before its operands */
};

/* The instructions of the block of `select` that only its first operand needs. */
static struct tree tree_of(struct branches *s, LLVMValueRef select)
{
	struct tree t = {0};
	struct map seen = {.arena = &s->scratch}; /* value → number of its uses in the tree */
	LLVMBasicBlockRef block = LLVMGetInstructionParent(select);
	LLVMValueRef root = LLVMGetOperand(select, 1);
	if (LLVMIsAInstruction(root) && LLVMGetInstructionParent(root) == block && is_movable(s, root) &&
	    number_of_uses(root) == 1)
		vec_push(&s->scratch, &t.instructions, root);
	for (u32 i = 0; i < t.instructions.len; i++) {
		LLVMValueRef of = t.instructions.at[i];
		for (int k = 0; k < LLVMGetNumOperands(of); k++) {
			LLVMValueRef v = LLVMGetOperand(of, (unsigned)k);
			if (!LLVMIsAInstruction(v) || LLVMGetInstructionParent(v) != block || !is_movable(s, v))
				continue;
			uintptr_t uses = (uintptr_t)map_get(&seen, v) + 1;
			map_put(&seen, v, (void *)uses);
			if (uses == number_of_uses(v))
				vec_push(&s->scratch, &t.instructions, v);
		}
	}
	return t;
}

static void move_to_end(LLVMBuilderRef b, LLVMBasicBlockRef block, LLVMValueRef v)
{
	LLVMInstructionRemoveFromParent(v);
	LLVMPositionBuilderAtEnd(b, block);
	LLVMInsertIntoBuilder(b, v);
}

/* Moves the instructions before `at` to a new block, which takes the jumps to the block of `at`. */
static LLVMBasicBlockRef split_before(struct branches *s, LLVMValueRef at)
{
	LLVMBasicBlockRef block = LLVMGetInstructionParent(at);
	LLVMBasicBlockRef head = LLVMInsertBasicBlockInContext(LLVMGetTypeContext(LLVMTypeOf(at)), block, "");
	LLVMUseRef use;
	while ((use = LLVMGetFirstUse(LLVMBasicBlockAsValue(block)))) {
		LLVMValueRef jump = LLVMGetUser(use);
		for (unsigned i = 0; i < LLVMGetNumSuccessors(jump); i++)
			if (LLVMGetSuccessor(jump, i) == block)
				LLVMSetSuccessor(jump, i, head);
	}
	for (LLVMValueRef v = LLVMGetFirstInstruction(block); v != at; v = LLVMGetFirstInstruction(block))
		move_to_end(s->b, head, v);
	return head;
}

/* A scalar condition: whether c is true in a lane. */
static LLVMValueRef any_lane(LLVMBuilderRef b, LLVMValueRef c)
{
	return lanes_of(c) ? intrinsic1(b, "llvm.vector.reduce.or", c) : c;
}

static void visit_block(struct branches *s, LLVMBasicBlockRef block);

/* Whether `select` was replaced. Its block begins with the result then; the blocks before it were visited. */
static bool visit(struct branches *s, LLVMValueRef select)
{
	struct tree t = tree_of(s, select);
	if (t.instructions.len < FEWEST)
		return false;
	LLVMBuilderRef b = s->b;
	LLVMBasicBlockRef block = LLVMGetInstructionParent(select), head = split_before(s, select);
	LLVMBasicBlockRef rare = LLVMInsertBasicBlockInContext(LLVMGetTypeContext(LLVMTypeOf(select)), block, "");
	for (u32 i = t.instructions.len; i--;)
		move_to_end(b, rare, t.instructions.at[i]);
	LLVMValueRef c = LLVMGetOperand(select, 0), values[] = {LLVMGetOperand(select, 2), LLVMGetOperand(select, 1)};
	LLVMPositionBuilderAtEnd(b, rare);
	if (lanes_of(c))
		values[1] = LLVMBuildSelect(b, c, values[1], values[0], "");
	LLVMBuildBr(b, block);
	LLVMPositionBuilderAtEnd(b, head);
	LLVMBuildCondBr(b, any_lane(b, c), rare, block);
	LLVMPositionBuilderBefore(b, select);
	LLVMValueRef phi = LLVMBuildPhi(b, LLVMTypeOf(select), "");
	LLVMAddIncoming(phi, values, (LLVMBasicBlockRef[]){head, rare}, 2);
	LLVMReplaceAllUsesWith(select, phi);
	LLVMInstructionEraseFromParent(select);
	visit_block(s, rare);
	visit_block(s, head);
	return true;
}

static void visit_block(struct branches *s, LLVMBasicBlockRef block)
{
	for (LLVMValueRef v = LLVMGetLastInstruction(block); v; v = LLVMGetPreviousInstruction(v))
		if (LLVMIsASelectInst(v) && LLVMGetMetadata(v, s->mark) && visit(s, v))
			return;
}

static unsigned attribute_kind(const char *name)
{
	return LLVMGetEnumAttributeKindForName(name, strlen(name));
}

void branch_around_unlikely(LLVMModuleRef mod)
{
	LLVMContextRef ctx = LLVMGetModuleContext(mod);
	struct branches s = {.b = LLVMCreateBuilderInContext(ctx),
			     .mark = mark_kind(ctx),
			     .memory = attribute_kind("memory"),
			     .convergent = attribute_kind("convergent")};
	for (LLVMValueRef f = LLVMGetFirstFunction(mod); f; f = LLVMGetNextFunction(f)) {
		LLVMBasicBlockRef next;
		for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = next) {
			next = LLVMGetNextBasicBlock(b); /* new blocks precede b */
			visit_block(&s, b);
		}
	}
	LLVMDisposeBuilder(s.b);
	arena_free(&s.scratch);
}
