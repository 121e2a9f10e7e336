/* Registers for loads. By default ptxas takes few registers for straight-line code and moves loads to their uses, each
 * of which then waits for memory. With a number of blocks that must fit a multiprocessor (.minnctapersm), it keeps the
 * loads in front as long as registers last, and takes no more registers than the blocks leave. For the gradient of a
 * batch norm, it takes 62 registers instead of 40, and waits once instead of four times.
 *
 * Two kinds of kernels get the directive: elementwise code without branches, which needs few registers apart from the
 * loaded values; and loops that load an iteration ahead, for which the registers of the tiles that are live at once
 * have been counted (registers_for_loads_ahead). Such code hardly spills. */
#include <string.h>

#include <llvm-c/Target.h>

#include "llvm/emit_ptx.h"

enum {
	/* Registers of loaded values that the resident warps keep in flight together without the directive. On an H200,
	 * gradients of a batch norm with more gain 3 to 13 %. Kernels with fewer gain up to 10 % or lose up to 13 %. */
	LOADED_BY_DEFAULT = 48,
	/* Registers other than loaded values: addresses and intermediate results. */
	REGISTERS_BESIDE_LOADS = 16,
	/* Resident warps, three eighths of all. With fewer, fewer bytes may be in flight. */
	LEAST_WARPS = 24,
	/* Registers for addresses and intermediate results in loops that load ahead. If fewer than WARPS_AHEAD warps
	 * are then resident, none are reserved; with fewer than LEAST_WARPS_AHEAD, there is no directive. On an H200,
	 * 48 launches of such loops take 0.97 times as long in the median, 0.7 to 1.3 times. */
	REGISTERS_BESIDE_LOADS_AHEAD = 24,
	WARPS_AHEAD = 16,
	LEAST_WARPS_AHEAD = 12,
	/* Blocks that a multiprocessor holds, of 32 threads too. */
	MOST_BLOCKS = 32,
};

enum effect { NO_EFFECT, LOADS, WRITES, BRANCHES };

static enum effect effect_of(LLVMValueRef v)
{
	size_t len;
	if (LLVMIsALoadInst(v))
		return LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(v, 0))) == 1 ? LOADS : NO_EFFECT;
	if (LLVMIsAStoreInst(v) || LLVMIsAAtomicRMWInst(v) || LLVMIsAAtomicCmpXchgInst(v))
		return WRITES;
	if (LLVMIsATerminatorInst(v))
		return LLVMGetNumSuccessors(v) > 1 ? BRANCHES : NO_EFFECT;
	if (!LLVMIsACallInst(v))
		return NO_EFFECT;
	LLVMValueRef f = LLVMGetCalledValue(v);
	if (!LLVMIsAInlineAsm(f)) {
		unsigned kind = LLVMGetEnumAttributeKindForName("convergent", 10);
		return LLVMGetEnumAttributeAtIndex(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, kind)
			       ? WRITES
			       : NO_EFFECT;
	}
	return strstr(LLVMGetInlineAsmAsmString(f, &len), "ld.global") ? LOADS
	       : LLVMGetInlineAsmHasSideEffects(f)                     ? WRITES
								       : NO_EFFECT;
}

/* The most registers that hold loaded values if no load waits for another, and the addresses of loads that are not
 * parts of wide rows. Loads do not move across writes and barriers. 0: the code has branches. */
static u32 loaded_registers(const struct session *s, LLVMValueRef f)
{
	enum { WIDE = 4 }; /* words of the widest load */
	u64 words = 0, most = 0;
	for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
		for (LLVMValueRef v = LLVMGetFirstInstruction(b); v; v = LLVMGetNextInstruction(v))
			switch (effect_of(v)) {
			case LOADS: {
				u64 loaded = (LLVMSizeOfTypeInBits(s->data, LLVMTypeOf(v)) + 31) / 32;
				words += loaded + (loaded < WIDE);
				most = MAX(most, words);
				break;
			}
			case WRITES: words = 0; break;
			case BRANCHES: return 0;
			case NO_EFFECT: break;
			}
	return (u32)most;
}

/* The blocks that a multiprocessor should hold at least; 0: the assembler decides. */
static int blocks_for_loads(const struct session *s, LLVMValueRef f, const struct target *target,
			    const struct ptx_kernel *k)
{
	int registers = target->registers / k->threads; /* of a thread, if one block is resident */
	int warps = k->threads / 32;
	if (k->loads_ahead) {
		int blocks = registers / (k->loads_ahead + REGISTERS_BESIDE_LOADS_AHEAD);
		if (blocks * warps < WARPS_AHEAD)
			blocks = MIN(MAX(WARPS_AHEAD / warps, 1), registers / k->loads_ahead);
		return blocks * warps >= LEAST_WARPS_AHEAD ? blocks : 0;
	}
	int loaded = k->elementwise ? (int)loaded_registers(s, f) : 0;
	int blocks = registers / (loaded + REGISTERS_BESIDE_LOADS);
	return loaded > LOADED_BY_DEFAULT && blocks * warps >= LEAST_WARPS ? blocks : 0;
}

void allow_registers_for_loads(const struct session *s, const struct target *target, const struct ptx_kernel *k)
{
	enum { PTX_KERNEL = 71 };
	LLVMValueRef f = LLVMGetFirstFunction(s->mod);
	while (f && LLVMGetFunctionCallConv(f) != PTX_KERNEL)
		f = LLVMGetNextFunction(f);
	int blocks = f ? blocks_for_loads(s, f, target, k) : 0;
	if (!blocks)
		return;
	LLVMContextRef ctx = LLVMGetModuleContext(s->mod);
	LLVMValueRef at_least[] = {f, LLVMMDStringInContext(ctx, "minctasm", 8),
				   LLVMConstInt(LLVMInt32TypeInContext(ctx), (u64)MIN(blocks, MOST_BLOCKS), false)};
	LLVMAddNamedMetadataOperand(s->mod, "nvvm.annotations", LLVMMDNodeInContext(ctx, at_least, 3));
}
