#include "llvm/builder.h"

/* --- types and constants ------------------------------------------------------------------------------------- */

u32 lanes_of(LLVMValueRef v)
{
	LLVMTypeRef t = LLVMTypeOf(v);
	return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetVectorSize(t) : 0;
}

LLVMTypeRef elem_of(LLVMTypeRef t)
{
	return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetElementType(t) : t;
}

int type_bits(LLVMTypeRef t)
{
	t = elem_of(t);
	switch (LLVMGetTypeKind(t)) {
	case LLVMHalfTypeKind:
	case LLVMBFloatTypeKind: return 16;
	case LLVMFloatTypeKind: return 32;
	case LLVMDoubleTypeKind:
	case LLVMPointerTypeKind: return 64;
	case LLVMIntegerTypeKind: return (int)LLVMGetIntTypeWidth(t);
	default: tl_unreachable("type without a width");
	}
}

LLVMTypeRef type_like(LLVMTypeRef t, LLVMTypeRef elem)
{
	return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMVectorType(elem, LLVMGetVectorSize(t)) : elem;
}

LLVMTypeRef type_as(LLVMValueRef v, LLVMTypeRef elem)
{
	return type_like(LLVMTypeOf(v), elem);
}

LLVMTypeRef ints_as(LLVMValueRef v, int bits)
{
	return type_as(v, LLVMIntTypeInContext(LLVMGetTypeContext(LLVMTypeOf(v)), (unsigned)bits));
}

LLVMTypeRef llvm_dtype(LLVMContextRef ctx, enum dtype d)
{
	switch (d) {
	case DT_F16: return LLVMHalfTypeInContext(ctx);
	case DT_F32: return LLVMFloatTypeInContext(ctx);
	case DT_F64: return LLVMDoubleTypeInContext(ctx);
	default: return LLVMIntTypeInContext(ctx, (unsigned)dtype_bits(d));
	}
}

LLVMValueRef int_like(LLVMTypeRef t, u64 n)
{
	enum { MOST = 1024 };
	LLVMValueRef elems[MOST];
	if (LLVMGetTypeKind(t) != LLVMVectorTypeKind)
		return LLVMConstInt(t, n, false);
	u32 lanes = LLVMGetVectorSize(t);
	tl_assert(lanes <= MOST);
	for (u32 i = 0; i < lanes; i++)
		elems[i] = LLVMConstInt(LLVMGetElementType(t), n, false);
	return LLVMConstVector(elems, lanes);
}

LLVMValueRef int_as(LLVMValueRef v, u64 n)
{
	return int_like(LLVMTypeOf(v), n);
}

LLVMValueRef real_as(LLVMValueRef v, double x)
{
	return LLVMConstReal(LLVMTypeOf(v), x);
}

LLVMTypeRef memory_type(LLVMTypeRef t)
{
	return type_bits(t) == 1 ? LLVMInt8TypeInContext(LLVMGetTypeContext(t)) : t;
}

LLVMValueRef to_memory(LLVMBuilderRef b, LLVMValueRef v)
{
	return type_bits(LLVMTypeOf(v)) == 1 ? LLVMBuildZExt(b, v, ints_as(v, 8), "") : v;
}

LLVMValueRef from_memory(LLVMBuilderRef b, LLVMValueRef v, LLVMTypeRef elem)
{
	return type_bits(elem) == 1 ? LLVMBuildICmp(b, LLVMIntNE, v, LLVMConstNull(LLVMTypeOf(v)), "") : v;
}

/* --- instructions -------------------------------------------------------------------------------------------- */

LLVMValueRef shl(LLVMBuilderRef b, LLVMValueRef v, int n)
{
	return LLVMBuildShl(b, v, int_as(v, (u64)n), "");
}

LLVMValueRef lshr(LLVMBuilderRef b, LLVMValueRef v, int n)
{
	return LLVMBuildLShr(b, v, int_as(v, (u64)n), "");
}

LLVMValueRef to_bits(LLVMBuilderRef b, LLVMValueRef v)
{
	LLVMTypeRef t = LLVMTypeOf(v), bits = ints_as(v, type_bits(t));
	bool is_pointer = LLVMGetTypeKind(elem_of(t)) == LLVMPointerTypeKind;
	return is_pointer ? LLVMBuildPtrToInt(b, v, bits, "") : LLVMBuildBitCast(b, v, bits, "");
}

LLVMValueRef from_bits(LLVMBuilderRef b, LLVMValueRef v, LLVMTypeRef elem)
{
	LLVMTypeRef t = type_as(v, elem);
	bool is_pointer = LLVMGetTypeKind(elem) == LLVMPointerTypeKind;
	return is_pointer ? LLVMBuildIntToPtr(b, v, t, "") : LLVMBuildBitCast(b, v, t, "");
}

LLVMValueRef gep(LLVMBuilderRef b, LLVMValueRef p, LLVMTypeRef elem, LLVMValueRef index)
{
	return LLVMBuildGEP2(b, elem, p, &index, 1, "");
}

static LLVMValueRef function_of(LLVMBuilderRef b)
{
	return LLVMGetBasicBlockParent(LLVMGetInsertBlock(b));
}

LLVMValueRef call_intrinsic(LLVMBuilderRef b, const char *name, LLVMTypeRef *types, u32 ntypes, LLVMValueRef *args,
			    u32 n)
{
	unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
	tl_assert(id);
	LLVMValueRef f = LLVMGetIntrinsicDeclaration(LLVMGetGlobalParent(function_of(b)), id, types, ntypes);
	return LLVMBuildCall2(b, LLVMGlobalGetValueType(f), f, args, n, "");
}

LLVMValueRef intrinsic_on(LLVMBuilderRef b, const char *name, LLVMValueRef *args, u32 n)
{
	LLVMTypeRef t = LLVMTypeOf(args[0]);
	return call_intrinsic(b, name, &t, 1, args, n);
}

LLVMValueRef intrinsic1(LLVMBuilderRef b, const char *name, LLVMValueRef x)
{
	return intrinsic_on(b, name, &x, 1);
}

LLVMValueRef call_asm(LLVMBuilderRef b, const char *text, const char *constraints, bool effects, LLVMTypeRef ret,
		      LLVMValueRef *args, u32 n)
{
	enum { MOST = 1024 };
	LLVMTypeRef types[MOST];
	tl_assert(n <= MOST);
	for (u32 i = 0; i < n; i++)
		types[i] = LLVMTypeOf(args[i]);
	LLVMTypeRef t = LLVMFunctionType(ret, types, n, false);
	LLVMValueRef code = LLVMGetInlineAsm(t, text, strlen(text), constraints, strlen(constraints), effects, false,
					     LLVMInlineAsmDialectATT, false);
	return LLVMBuildCall2(b, t, code, args, n, "");
}

/* --- control flow -------------------------------------------------------------------------------------------- */

LLVMBasicBlockRef new_block(LLVMBuilderRef b)
{
	LLVMValueRef f = function_of(b);
	return LLVMAppendBasicBlockInContext(LLVMGetTypeContext(LLVMTypeOf(f)), f, "");
}

struct guarded begin_if(LLVMBuilderRef b, LLVMValueRef cond)
{
	struct guarded g = {.from = {LLVMGetInsertBlock(b)}};
	if (!cond)
		return g;
	LLVMBasicBlockRef yes = new_block(b);
	g.end = new_block(b);
	LLVMBuildCondBr(b, cond, yes, g.end);
	LLVMPositionBuilderAtEnd(b, yes);
	return g;
}

void end_if(LLVMBuilderRef b, struct guarded *g)
{
	if (!g->end)
		return;
	g->from[1] = LLVMGetInsertBlock(b);
	LLVMBuildBr(b, g->end);
	LLVMPositionBuilderAtEnd(b, g->end);
}

LLVMValueRef either(LLVMBuilderRef b, const struct guarded *g, LLVMValueRef otherwise, LLVMValueRef x)
{
	LLVMValueRef values[] = {otherwise, x}, phi = LLVMBuildPhi(b, LLVMTypeOf(x), "");
	LLVMAddIncoming(phi, values, (LLVMBasicBlockRef *)g->from, 2);
	return phi;
}

/* --- the module ---------------------------------------------------------------------------------------------- */

LLVMValueRef add_constant(LLVMModuleRef mod, LLVMValueRef c, const char *name, LLVMLinkage linkage, u32 address_space)
{
	LLVMValueRef g = LLVMAddGlobalInAddressSpace(mod, LLVMTypeOf(c), name, address_space);
	LLVMSetInitializer(g, c);
	LLVMSetGlobalConstant(g, true);
	LLVMSetLinkage(g, linkage);
	return g;
}

void add_attribute(LLVMValueRef f, LLVMAttributeIndex index, const char *name, u64 value)
{
	LLVMContextRef ctx = LLVMGetTypeContext(LLVMTypeOf(f));
	unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
	LLVMAddAttributeAtIndex(f, index, LLVMCreateEnumAttribute(ctx, kind, value));
}

/* --- debug information --------------------------------------------------------------------------------------- */

LLVMMetadataRef debug_file(LLVMDIBuilderRef d, const struct source *src)
{
	const char *slash = strrchr(src->name, '/'), *base = slash ? slash + 1 : src->name;
	return LLVMDIBuilderCreateFile(d, base, strlen(base), slash ? src->name : ".",
				       slash ? (size_t)(slash - src->name) : 1);
}

void debug_module(LLVMDIBuilderRef d, LLVMModuleRef mod, LLVMMetadataRef file, LLVMDWARFEmissionKind kind)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(LLVMGetModuleContext(mod));
	LLVMDIBuilderCreateCompileUnit(d, LLVMDWARFSourceLanguageC, file, "tlc", 3, true, "", 0, 0, "", 0, kind, 0,
				       false, false, "", 0, "", 0);
	LLVMAddModuleFlag(mod, LLVMModuleFlagBehaviorWarning, "Debug Info Version", 18,
			  LLVMValueAsMetadata(LLVMConstInt(i32, LLVMDebugMetadataVersion(), false)));
}

LLVMMetadataRef debug_function(LLVMDIBuilderRef d, LLVMMetadataRef file, const char *name, u32 line)
{
	LLVMMetadataRef t = LLVMDIBuilderCreateSubroutineType(d, file, NULL, 0, LLVMDIFlagZero);
	return LLVMDIBuilderCreateFunction(d, file, name, strlen(name), name, strlen(name), file, line, t, false, true,
					   line, LLVMDIFlagZero, true);
}
