/* Workaround for LLVM 19. It simplifies a minimum or maximum of two intrinsics with the same first two operands as if
 * both were minima or maxima, and crashes on max(fma(x, y, z), max(x, y)). So an operand that is such an intrinsic but
 * no minimum or maximum (here the fma) is passed through an inline PTX mov, which hides the intrinsic. */
#include <string.h>

#include <llvm-c/Core.h>

#include "llvm/builder.h"
#include "llvm/session.h"

static bool is_intrinsic(LLVMValueRef v)
{
	return LLVMIsACallInst(v) && LLVMGetIntrinsicID(LLVMGetCalledValue(v)) && LLVMGetNumArgOperands(v) >= 2;
}

static bool is_float_min_max(LLVMValueRef v)
{
	size_t len;
	if (!is_intrinsic(v))
		return false;
	const char *name = LLVMIntrinsicGetName(LLVMGetIntrinsicID(LLVMGetCalledValue(v)), &len);
	return !strcmp(name, "llvm.minnum") || !strcmp(name, "llvm.maxnum") || !strcmp(name, "llvm.minimum") ||
	       !strcmp(name, "llvm.maximum");
}

static bool share_operands(LLVMValueRef a, LLVMValueRef b)
{
	LLVMValueRef x = LLVMGetOperand(a, 0), y = LLVMGetOperand(a, 1);
	LLVMValueRef p = LLVMGetOperand(b, 0), q = LLVMGetOperand(b, 1);
	return (x == p && y == q) || (x == q && y == p);
}

static LLVMValueRef moved(LLVMBuilderRef b, LLVMValueRef v)
{
	LLVMTypeRef t = LLVMTypeOf(v);
	bool is_double = LLVMGetTypeKind(t) == LLVMDoubleTypeKind, is_float = LLVMGetTypeKind(t) == LLVMFloatTypeKind;
	const char *text = is_double ? "mov.b64 $0, $1;" : is_float ? "mov.b32 $0, $1;" : "mov.b16 $0, $1;";
	const char *constraint = is_double ? "=d,d" : is_float ? "=f,f" : "=h,h";
	return call_asm(b, text, constraint, false, t, &v, 1);
}

void separate_shared_operands(LLVMModuleRef mod)
{
	LLVMBuilderRef b = LLVMCreateBuilderInContext(LLVMGetModuleContext(mod));
	for (LLVMValueRef f = LLVMGetFirstFunction(mod); f; f = LLVMGetNextFunction(f))
		for (LLVMBasicBlockRef bb = LLVMGetFirstBasicBlock(f); bb; bb = LLVMGetNextBasicBlock(bb))
			for (LLVMValueRef v = LLVMGetFirstInstruction(bb); v; v = LLVMGetNextInstruction(v))
				for (unsigned i = 0; is_float_min_max(v) && i < 2; i++) {
					LLVMValueRef x = LLVMGetOperand(v, i), y = LLVMGetOperand(v, 1 - i);
					if (!is_intrinsic(x) || !is_intrinsic(y) || is_float_min_max(x) ||
					    !share_operands(x, y))
						continue;
					LLVMPositionBuilderBefore(b, v);
					LLVMSetOperand(v, i, moved(b, x));
				}
	LLVMDisposeBuilder(b);
}
