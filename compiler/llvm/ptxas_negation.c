/* Forms of integer negation that ptxas compiles correctly. ptxas 12.9 and 13.0 miscompile the plain forms. The driver
 * may compile the PTX of any target for a newer GPU, so all targets use these forms.
 *
 * - For sm_90, min(min(a, -b), c) of signed 32-bit or 16-bit integers becomes one VIMNMX3 that reads b; max alike.
 * - (-a >> n) + b of 32 bits becomes one LEA.HI.SX32 that shifts a, then negates.
 * - The extension of a 16-bit -a becomes the negation of a's extension; these differ for the least number. The same
 *   holds for products, comparisons and shifts of -a.
 * - abs.s32 is assumed to be at least 0, and comparisons are decided by that; abs of the least number is negative.
 *
 * ptxas does not recognize ~x + 1 as a negation, nor max(x, ~x + 1) as an absolute value. It fuses the addition with a
 * 32-bit minimum or maximum. */
#include <stdio.h>
#include <string.h>

#include <llvm-c/Core.h>

#include "llvm/builder.h"
#include "llvm/session.h"

static bool calls(LLVMValueRef v, const char *intrinsic)
{
	size_t len;
	unsigned id = LLVMIsACallInst(v) ? LLVMGetIntrinsicID(LLVMGetCalledValue(v)) : 0;
	return id && !strcmp(LLVMIntrinsicGetName(id, &len), intrinsic);
}

/* x if v is -x, else NULL. To LLVM a product with the negative of a power of two is also a negation. */
static LLVMValueRef negated(LLVMBuilderRef b, LLVMValueRef v)
{
	LLVMOpcode op = LLVMIsAInstruction(v) ? LLVMGetInstructionOpcode(v) : 0;
	if (op == LLVMSub && LLVMIsNull(LLVMGetOperand(v, 0)))
		return LLVMGetOperand(v, 1);
	if (op != LLVMMul || !LLVMIsAConstantInt(LLVMGetOperand(v, 1)))
		return NULL;
	i64 by = LLVMConstIntGetSExtValue(LLVMGetOperand(v, 1));
	if (by >= 0 || by == INT64_MIN || !is_pow2(-by))
		return NULL;
	LLVMTypeRef t = LLVMTypeOf(v);
	LLVMPositionBuilderBefore(b, v);
	return LLVMBuildShl(b, LLVMGetOperand(v, 0), LLVMConstInt(t, (u64)__builtin_ctzll((u64)by), false), "");
}

/* x if v is its absolute value (the least number stays itself), else NULL. */
static LLVMValueRef absolute(LLVMValueRef v)
{
	return calls(v, "llvm.abs") && LLVMIsNull(LLVMGetOperand(v, 1)) ? LLVMGetOperand(v, 0) : NULL;
}

/* -x as ~x + 1 in inline PTX. */
static LLVMValueRef opaque_negation(LLVMBuilderRef b, LLVMValueRef x)
{
	LLVMTypeRef t = LLVMTypeOf(x);
	int bits = type_bits(t);
	char text[64], constraint[8];
	snprintf(text, sizeof text, "not.b%d $0, $1;\n\tadd.s%d $0, $0, 1;", bits, bits);
	char letter = bits == 16 ? 'h' : bits == 32 ? 'r' : 'l';
	snprintf(constraint, sizeof constraint, "=%c,%c", letter, letter);
	return call_asm(b, text, constraint, false, t, &x, 1);
}

static void visit(LLVMBuilderRef b, LLVMValueRef v)
{
	LLVMTypeRef t = LLVMTypeOf(v);
	unsigned bits = LLVMGetTypeKind(t) == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(t) : 0;
	if (bits != 16 && bits != 32 && bits != 64)
		return;
	LLVMValueRef of = absolute(v), x = of ? of : negated(b, v);
	if (!x)
		return;
	LLVMPositionBuilderBefore(b, v);
	LLVMValueRef by = opaque_negation(b, x);
	LLVMReplaceAllUsesWith(v, of ? intrinsic_on(b, "llvm.smax", (LLVMValueRef[]){x, by}, 2) : by);
	LLVMInstructionEraseFromParent(v);
}

void protect_negations(LLVMModuleRef mod)
{
	LLVMBuilderRef b = LLVMCreateBuilderInContext(LLVMGetModuleContext(mod));
	for (LLVMValueRef f = LLVMGetFirstFunction(mod); f; f = LLVMGetNextFunction(f))
		for (LLVMBasicBlockRef bb = LLVMGetFirstBasicBlock(f); bb; bb = LLVMGetNextBasicBlock(bb))
			for (LLVMValueRef v = LLVMGetFirstInstruction(bb), next; v; v = next) {
				next = LLVMGetNextInstruction(v);
				visit(b, v);
			}
	LLVMDisposeBuilder(b);
}
