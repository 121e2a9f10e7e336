/* Forms of integer negation that ptxas compiles rightly (12.9 and 13.0 do not the plain ones). The driver may compile
 * the PTX of any target for a newer GPU, so every target gets them.
 *
 * - For sm_90, min(min(a, -b), c) of signed integers of 32 or 16 bits becomes one VIMNMX3 that reads b; max alike.
 * - abs.s32 is taken to be at least 0, and comparisons are decided by that; abs of the least number is negative.
 *
 * ptxas does not recognise ~x + 1 as a negation, nor max(x, ~x + 1) as an absolute value, and joins the addition with
 * the minimum or maximum of 32 bits. */
#include <stdio.h>
#include <string.h>

#include <llvm-c/Core.h>

#include "base/base.h"
#include "target/session.h"

static bool calls(LLVMValueRef v, const char *intrinsic)
{
	size_t len;
	unsigned id = LLVMIsACallInst(v) ? LLVMGetIntrinsicID(LLVMGetCalledValue(v)) : 0;
	return id && !strcmp(LLVMIntrinsicGetName(id, &len), intrinsic);
}

/* x, where v is -x; else NULL. */
static LLVMValueRef negated(LLVMValueRef v)
{
	bool negation =
		LLVMIsAInstruction(v) && LLVMGetInstructionOpcode(v) == LLVMSub && LLVMIsNull(LLVMGetOperand(v, 0));
	return negation ? LLVMGetOperand(v, 1) : NULL;
}

/* The comparison of a select, if signed; else NULL. */
static LLVMValueRef signed_compare(LLVMValueRef v)
{
	LLVMValueRef compare = LLVMIsASelectInst(v) ? LLVMGetOperand(v, 0) : NULL;
	return compare && LLVMIsAICmpInst(compare) && LLVMGetICmpPredicate(compare) >= LLVMIntSGT ? compare : NULL;
}

/* The operation that compares the two operands of v, a signed minimum or maximum: v itself, an intrinsic, or the
 * comparison of v, a select; else NULL. */
static LLVMValueRef min_max(LLVMValueRef v)
{
	if (calls(v, "llvm.smin") || calls(v, "llvm.smax"))
		return v;
	LLVMValueRef compare = signed_compare(v);
	if (!compare)
		return NULL;
	LLVMValueRef l = LLVMGetOperand(compare, 0), r = LLVMGetOperand(compare, 1);
	LLVMValueRef yes = LLVMGetOperand(v, 1), no = LLVMGetOperand(v, 2);
	return (l == yes && r == no) || (l == no && r == yes) ? compare : NULL;
}

/* x, where v is its absolute value: an intrinsic that gives the least number for itself, or a select by a signed
 * comparison between x and -x; else NULL. */
static LLVMValueRef absolute(LLVMValueRef v)
{
	if (calls(v, "llvm.abs"))
		return LLVMIsNull(LLVMGetOperand(v, 1)) ? LLVMGetOperand(v, 0) : NULL;
	LLVMValueRef compare = signed_compare(v);
	LLVMValueRef yes = compare ? LLVMGetOperand(v, 1) : NULL, no = compare ? LLVMGetOperand(v, 2) : NULL;
	if (!compare || LLVMGetICmpPredicate(compare) != LLVMIntSLT || LLVMGetOperand(compare, 0) != no ||
	    !LLVMIsNull(LLVMGetOperand(compare, 1)))
		return NULL;
	return negated(yes) == no ? no : NULL;
}

/* -x as ~x + 1 in inline PTX. */
static LLVMValueRef opaque_negation(LLVMBuilderRef b, LLVMValueRef x)
{
	LLVMTypeRef t = LLVMTypeOf(x), type = LLVMFunctionType(t, &t, 1, false);
	unsigned bits = LLVMGetIntTypeWidth(t);
	char text[64], constraint[8];
	int n = snprintf(text, sizeof text, "not.b%u $0, $1;\n\tadd.s%u $0, $0, 1;", bits, bits);
	char letter = bits == 16 ? 'h' : bits == 32 ? 'r' : 'l';
	int c = snprintf(constraint, sizeof constraint, "=&%c,%c", letter, letter);
	LLVMValueRef code = LLVMGetInlineAsm(type, text, (size_t)n, constraint, (size_t)c, false, false,
					     LLVMInlineAsmDialectATT, false);
	return LLVMBuildCall2(b, type, code, &x, 1, "");
}

static void replace_operand(LLVMValueRef user, LLVMValueRef old, LLVMValueRef by)
{
	for (unsigned i = 0; i < (unsigned)LLVMGetNumOperands(user); i++)
		if (LLVMGetOperand(user, i) == old)
			LLVMSetOperand(user, i, by);
}

static void protect_operands(LLVMBuilderRef b, LLVMValueRef v, LLVMValueRef compare)
{
	for (unsigned i = 0; i < 2; i++) {
		LLVMValueRef old = LLVMGetOperand(compare, i), x = negated(old);
		if (!x)
			continue;
		LLVMPositionBuilderBefore(b, compare);
		LLVMValueRef by = opaque_negation(b, x);
		replace_operand(compare, old, by);
		replace_operand(v, old, by);
	}
}

static void replace_absolute(LLVMBuilderRef b, LLVMValueRef v, LLVMValueRef x)
{
	LLVMModuleRef mod = LLVMGetGlobalParent(LLVMGetBasicBlockParent(LLVMGetInstructionParent(v)));
	LLVMTypeRef t = LLVMTypeOf(x);
	LLVMPositionBuilderBefore(b, v);
	unsigned max = LLVMLookupIntrinsicID("llvm.smax", strlen("llvm.smax"));
	LLVMValueRef f = LLVMGetIntrinsicDeclaration(mod, max, &t, 1), in[] = {x, opaque_negation(b, x)};
	LLVMReplaceAllUsesWith(v, LLVMBuildCall2(b, LLVMGlobalGetValueType(f), f, in, 2, ""));
	LLVMInstructionEraseFromParent(v);
}

static void visit(LLVMBuilderRef b, LLVMValueRef v)
{
	LLVMTypeRef t = LLVMTypeOf(v);
	unsigned bits = LLVMGetTypeKind(t) == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(t) : 0;
	if (bits != 16 && bits != 32 && bits != 64)
		return;
	LLVMValueRef x = absolute(v), compare = x || bits == 64 ? NULL : min_max(v);
	if (x)
		replace_absolute(b, v, x);
	else if (compare)
		protect_operands(b, v, compare);
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
