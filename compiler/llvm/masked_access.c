/* Masked loads and stores that the CPU has no instruction for. LLVM would expand them to a branch for each lane:
 * hundreds of instructions for tiles of fp16, which take longer to compile than the rest of a kernel. They only occur
 * at the ends of rows, so a loop over the lanes, in a function shared by all accesses, suffices. */
#include "llvm/builder.h"
#include "llvm/emit_object.h"

enum { MOST_LANES = 64, SLOT_ALIGN = 16 };

struct expansion {
	LLVMModuleRef mod;
	LLVMContextRef ctx;
	LLVMBuilderRef b;
	LLVMTypeRef i64, ptr, copy_type;
};

static bool has_masked(const struct target *d, int bits)
{
	return d->level == CPU_AVX512 || (d->level == CPU_AVX2 && bits >= 32);
}

/* void copy(ptr to, ptr from, i64 lanes): copies the elements with a set bit in `lanes`. */
static LLVMValueRef copy_function(struct expansion *x, int bits)
{
	char name[24];
	snprintf(name, sizeof name, "copy_lanes_%d", bits);
	LLVMValueRef f = LLVMGetNamedFunction(x->mod, name);
	if (f)
		return f;
	f = LLVMAddFunction(x->mod, name, x->copy_type);
	LLVMSetLinkage(f, LLVMInternalLinkage);
	add_attribute(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, "nounwind", 0);
	LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(x->ctx, f, ""),
			  loop = LLVMAppendBasicBlockInContext(x->ctx, f, ""),
			  done = LLVMAppendBasicBlockInContext(x->ctx, f, "");
	LLVMTypeRef elem = LLVMIntTypeInContext(x->ctx, (unsigned)bits), i1 = LLVMInt1TypeInContext(x->ctx);
	LLVMValueRef zero = LLVMConstInt(x->i64, 0, false), all = LLVMGetParam(f, 2);
	LLVMPositionBuilderAtEnd(x->b, entry);
	LLVMBuildCondBr(x->b, LLVMBuildICmp(x->b, LLVMIntEQ, all, zero, ""), done, loop);
	LLVMPositionBuilderAtEnd(x->b, loop);
	LLVMValueRef left = LLVMBuildPhi(x->b, x->i64, "");
	LLVMValueRef in[] = {left, LLVMConstInt(i1, 1, false)}, lane = intrinsic_on(x->b, "llvm.cttz", in, 2);
	LLVMValueRef v = LLVMBuildLoad2(x->b, elem, gep(x->b, LLVMGetParam(f, 1), elem, lane), "");
	LLVMValueRef store = LLVMBuildStore(x->b, v, gep(x->b, LLVMGetParam(f, 0), elem, lane));
	LLVMSetAlignment(v, 1);
	LLVMSetAlignment(store, 1);
	LLVMValueRef rest = LLVMBuildAnd(x->b, left, LLVMBuildSub(x->b, left, LLVMConstInt(x->i64, 1, false), ""), "");
	LLVMBuildCondBr(x->b, LLVMBuildICmp(x->b, LLVMIntEQ, rest, zero, ""), done, loop);
	LLVMAddIncoming(left, (LLVMValueRef[]){all, rest}, (LLVMBasicBlockRef[]){entry, loop}, 2);
	LLVMPositionBuilderAtEnd(x->b, done);
	LLVMBuildRetVoid(x->b);
	return f;
}

static LLVMValueRef new_slot(struct expansion *x, LLVMValueRef call, LLVMTypeRef type)
{
	LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(LLVMGetBasicBlockParent(LLVMGetInstructionParent(call)));
	LLVMPositionBuilderBefore(x->b, LLVMGetFirstInstruction(entry));
	LLVMValueRef slot = LLVMBuildAlloca(x->b, type, "");
	LLVMSetAlignment(slot, SLOT_ALIGN);
	LLVMPositionBuilderBefore(x->b, call);
	return slot;
}

static void expand(struct expansion *x, LLVMValueRef call, bool is_load)
{
	LLVMValueRef value = LLVMGetOperand(call, is_load ? 3 : 0), address = LLVMGetOperand(call, is_load ? 0 : 1),
		     mask = LLVMGetOperand(call, is_load ? 2 : 3);
	LLVMTypeRef type = LLVMTypeOf(value);
	LLVMValueRef copy = copy_function(x, type_bits(type)), slot = new_slot(x, call, type);
	LLVMSetAlignment(LLVMBuildStore(x->b, value, slot), SLOT_ALIGN);
	LLVMTypeRef lanes = LLVMIntTypeInContext(x->ctx, LLVMGetVectorSize(type));
	mask = LLVMBuildZExt(x->b, LLVMBuildBitCast(x->b, mask, lanes, ""), x->i64, "");
	LLVMValueRef args[] = {is_load ? slot : address, is_load ? address : slot, mask};
	LLVMBuildCall2(x->b, x->copy_type, copy, args, 3, "");
	if (is_load) {
		LLVMValueRef loaded = LLVMBuildLoad2(x->b, type, slot, "");
		LLVMSetAlignment(loaded, SLOT_ALIGN);
		LLVMReplaceAllUsesWith(call, loaded);
	}
	LLVMInstructionEraseFromParent(call);
}

void expand_masked_accesses(LLVMModuleRef mod, const struct target *target)
{
	LLVMContextRef ctx = LLVMGetModuleContext(mod);
	struct expansion x = {.mod = mod,
			      .ctx = ctx,
			      .b = LLVMCreateBuilderInContext(ctx),
			      .i64 = LLVMInt64TypeInContext(ctx),
			      .ptr = LLVMPointerTypeInContext(ctx, 0)};
	x.copy_type = LLVMFunctionType(LLVMVoidTypeInContext(ctx), (LLVMTypeRef[]){x.ptr, x.ptr, x.i64}, 3, false);
	for (LLVMValueRef f = LLVMGetFirstFunction(mod), next; f; f = next) {
		size_t len;
		const char *name = LLVMGetValueName2(f, &len);
		bool is_load = !strncmp(name, "llvm.masked.load.", 17);
		next = LLVMGetNextFunction(f);
		if (!is_load && strncmp(name, "llvm.masked.store.", 18))
			continue;
		LLVMTypeRef type = LLVMGlobalGetValueType(f), params[4];
		LLVMGetParamTypes(type, params);
		type = is_load ? params[3] : params[0];
		if (has_masked(target, type_bits(type)) || LLVMGetVectorSize(type) > MOST_LANES)
			continue;
		for (LLVMUseRef u; (u = LLVMGetFirstUse(f));)
			expand(&x, LLVMGetUser(u), is_load);
	}
	LLVMDisposeBuilder(x.b);
}
