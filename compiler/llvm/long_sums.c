/* Freezes parts of long integer sums, since the time of two LLVM passes grows with the cube of the number of terms.
 * Loop strength reduction searches the ways to split the sum of each address of a loop for the cheapest one (96 terms:
 * 42 seconds). Reassociation in the NVPTX back end compares each part of a sum with all its terms (2,048 terms of a
 * reduction in a thread: minutes). A frozen value counts as a single term. Of the two operands of a sum, this file
 * prefers a loop-invariant one. A freeze costs no instruction. */
#include "support/map.h"
#include "llvm/session.h"

struct sum {
	u32 terms;
	bool varies; /* depends on a phi */
};

struct sums {
	struct arena scratch;
	struct map known;  /* value → struct sum */
	struct map frozen; /* value → frozen value */
	u32 most, most_invariant;
	LLVMBuilderRef b;
};

static struct sum sum_of(const struct sums *s, LLVMValueRef v)
{
	const struct sum *known = map_get(&s->known, v);
	return known ? *known : (struct sum){.terms = !LLVMIsConstant(v)};
}

static LLVMValueRef frozen(struct sums *s, LLVMValueRef v)
{
	LLVMValueRef f = map_get(&s->frozen, v);
	if (f)
		return f;
	LLVMPositionBuilderBefore(s->b, LLVMGetNextInstruction(v));
	f = LLVMBuildFreeze(s->b, v, "");
	map_put(&s->frozen, v, f);
	return f;
}

/* Freezes one operand with several terms. False if there is none. */
static bool freeze_operand(struct sums *s, LLVMValueRef i)
{
	int best = -1, n = LLVMGetNumOperands(i);
	struct sum most = {0};
	for (int k = 0; k < n; k++) {
		struct sum x = sum_of(s, LLVMGetOperand(i, (unsigned)k));
		if (x.terms > 1 && (best < 0 || x.varies < most.varies ||
				    (x.varies == most.varies && x.terms > most.terms))) {
			best = k;
			most = x;
		}
	}
	if (best >= 0)
		LLVMSetOperand(i, (unsigned)best, frozen(s, LLVMGetOperand(i, (unsigned)best)));
	return best >= 0;
}

/* The number of terms of i in LLVM's scalar evolution, from its operands. 1: i is a term itself. */
static u32 terms_of(const struct sums *s, LLVMValueRef i)
{
	u32 all = 0;
	switch (LLVMGetInstructionOpcode(i)) {
	case LLVMMul:
	case LLVMShl:
		if (!LLVMIsConstant(LLVMGetOperand(i, 0)) && !LLVMIsConstant(LLVMGetOperand(i, 1)))
			return 1;
		break;
	case LLVMAdd:
	case LLVMSub:
	case LLVMOr:
	case LLVMTrunc:
	case LLVMSExt:
	case LLVMZExt:
	case LLVMGetElementPtr: break;
	default: return 1;
	}
	for (int k = 0; k < LLVMGetNumOperands(i); k++)
		all += sum_of(s, LLVMGetOperand(i, (unsigned)k)).terms;
	return all;
}

static void visit(struct sums *s, LLVMValueRef i)
{
	LLVMTypeKind kind = LLVMGetTypeKind(LLVMTypeOf(i));
	if (kind != LLVMIntegerTypeKind && kind != LLVMPointerTypeKind)
		return;
	struct sum *x = arena_new(&s->scratch, struct sum);
	x->varies = LLVMGetInstructionOpcode(i) == LLVMPHI;
	for (int k = 0; !x->varies && k < LLVMGetNumOperands(i); k++)
		x->varies = sum_of(s, LLVMGetOperand(i, (unsigned)k)).varies;
	u32 most = x->varies ? s->most : s->most_invariant;
	while ((x->terms = terms_of(s, i)) > most && freeze_operand(s, i))
		;
	map_put(&s->known, i, x);
}

void freeze_long_sums(LLVMModuleRef mod, u32 most, u32 most_invariant)
{
	struct sums s = {.most = most, .most_invariant = most_invariant};
	s.b = LLVMCreateBuilderInContext(LLVMGetModuleContext(mod));
	s.known.arena = s.frozen.arena = &s.scratch;
	for (LLVMValueRef f = LLVMGetFirstFunction(mod); f; f = LLVMGetNextFunction(f))
		for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
			for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
				visit(&s, i);
	LLVMDisposeBuilder(s.b);
	arena_free(&s.scratch);
}
