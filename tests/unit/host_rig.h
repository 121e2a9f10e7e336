/* Elementwise operations compiled for this processor, for tests: each becomes a function over arrays. */
#ifndef TEST_HOST_RIG_H
#define TEST_HOST_RIG_H

#include <dlfcn.h>
#include <llvm-c/Analysis.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cpu/cpu_internal.h"

/* Operands of the operation, one array for each; n is a multiple of the lanes. An i1 is a byte. */
typedef void rig_function(void *out, const void *const *in, i64 n);

struct rig {
	struct arena arena;
	struct interner names;
	struct diags diags;
	struct ir_context ctx;
	struct kernel *kernel;
	struct pass_state state;
	struct target target;
	struct cpu_codegen host;
	const char *cpu, *features;
	LLVMOrcThreadSafeContextRef context;
	LLVMOrcLLJITRef jit;
	u32 nfunctions;
};

static inline void rig_error(LLVMErrorRef e)
{
	if (e)
		fail_msg("%s", LLVMGetErrorMessage(e));
}

/* baseline: what every x86-64 has; else all that is here. */
static inline struct rig *rig_new(bool baseline)
{
	struct rig *r = calloc(1, sizeof *r);
	struct cpu_codegen *h = &r->host;
	LLVMInitializeNativeTarget();
	LLVMInitializeNativeAsmPrinter();
	dlopen("libmvec.so.1", RTLD_NOW | RTLD_GLOBAL);
	r->names.arena = &r->arena;
	diags_init(&r->diags, &r->arena);
	ir_context_init(&r->ctx, &r->arena, &r->names, &r->diags);
	r->kernel = kernel_new(&r->ctx, "k");
	assert_true(target_parse(baseline ? "cpu:baseline" : "cpu", &r->target));
	r->cpu = baseline ? "x86-64" : LLVMGetHostCPUName();
	r->features = baseline ? "" : LLVMGetHostCPUFeatures();
	r->state = (struct pass_state){.k = r->kernel, .ctx = &r->ctx, .diags = &r->diags, .target = &r->target};
	r->context = LLVMOrcCreateNewThreadSafeContext();
	LLVMContextRef c = LLVMOrcThreadSafeContextGetContext(r->context);
	*h = (struct cpu_codegen){.s = &r->state, .k = r->kernel, .ctx = c, .b = LLVMCreateBuilderInContext(c)};
	h->exact.arena = &r->arena;
	r->state.ranges = ranges_analyze(r->kernel); /* of values made later it knows the type */
	h->mod = LLVMModuleCreateWithNameInContext("rig", c);
	h->i1 = LLVMInt1TypeInContext(c);
	h->i8 = LLVMInt8TypeInContext(c);
	h->i16 = LLVMInt16TypeInContext(c);
	h->i32 = LLVMInt32TypeInContext(c);
	h->i64 = LLVMInt64TypeInContext(c);
	h->f16 = LLVMHalfTypeInContext(c);
	h->f32 = LLVMFloatTypeInContext(c);
	h->f64 = LLVMDoubleTypeInContext(c);
	h->v = LLVMVoidTypeInContext(c);
	h->ptr = LLVMPointerTypeInContext(c, 0);
	return r;
}

static inline void rig_free(struct rig *r)
{
	LLVMDisposeBuilder(r->host.b);
	if (r->jit)
		rig_error(LLVMOrcDisposeLLJIT(r->jit));
	LLVMOrcDisposeThreadSafeContext(r->context);
	arena_free(&r->host.scratch);
	arena_free(&r->arena);
	free(r);
}

/* An operation whose operands, the first one of type `first`, give `to`. */
static inline struct op *rig_op(struct rig *r, enum opcode code, i64 attr, const struct type *first,
				const struct type *others, const struct type *to)
{
	struct builder b = builder_at_end(&r->ctx, r->kernel->body);
	struct value *in[3];
	u32 n = (u32)op_info[code].min_operands;
	for (u32 k = 0; k < n; k++)
		in[k] = block_add_arg(&r->ctx, r->kernel->body, k ? others : first);
	struct op *o = build(&b, code, in, n, &to, 1, 0);
	o->attr[0] = attr;
	return o;
}

static inline LLVMValueRef rig_load(struct cpu_codegen *h, const struct type *t, LLVMValueRef at, u32 lanes)
{
	LLVMTypeRef elem = cpu_elem_type(h, t), kept = elem == h->i1 ? h->i8 : elem;
	LLVMValueRef v = LLVMBuildLoad2(h->b, cpu_vector_type(kept, lanes), at, "");
	LLVMSetAlignment(v, (u32)MAX(type_elem_bits(t) / 8, 1));
	return kept == elem ? v : LLVMBuildTrunc(h->b, v, cpu_vector_type(elem, lanes), "");
}

static inline void rig_store(struct cpu_codegen *h, const struct type *t, LLVMValueRef v, LLVMValueRef at, u32 lanes)
{
	if (cpu_elem_type(h, t) == h->i1)
		v = LLVMBuildZExt(h->b, v, cpu_vector_type(h->i8, lanes), "");
	LLVMSetAlignment(LLVMBuildStore(h->b, v, at), (u32)MAX(type_elem_bits(t) / 8, 1));
}

struct rig_how {
	u32 lanes;
	const u64 *constant;   /* the last operand, in all elements */
	bool scalar_condition; /* of SELECT: that of the first lane */
};

static inline LLVMValueRef rig_constant(struct cpu_codegen *h, const struct type *t, u64 bits, u32 lanes)
{
	LLVMValueRef c = LLVMConstInt(LLVMIntTypeInContext(h->ctx, (u32)type_elem_bits(t)), bits, false), all[64];
	c = LLVMConstBitCast(c, cpu_elem_type(h, t));
	for (u32 i = 0; i < lanes; i++)
		all[i] = c;
	return lanes ? LLVMConstVector(all, lanes) : c;
}

/* The number of the function that applies o. */
static inline u32 rig_add(struct rig *r, const struct op *o, struct rig_how how)
{
	struct cpu_codegen *h = &r->host;
	LLVMTypeRef params[] = {h->ptr, h->ptr, h->i64};
	char name[20];
	snprintf(name, sizeof name, "f%u", r->nfunctions);
	LLVMValueRef f = LLVMAddFunction(h->mod, name, LLVMFunctionType(h->v, params, 3, false)), in[3], arrays[3];
	LLVMAddTargetDependentFunctionAttr(f, "target-cpu", r->cpu);
	LLVMAddTargetDependentFunctionAttr(f, "target-features", r->features);
	LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(h->ctx, f, "");
	LLVMBasicBlockRef loop = LLVMAppendBasicBlockInContext(h->ctx, f, "");
	LLVMBasicBlockRef end = LLVMAppendBasicBlockInContext(h->ctx, f, "");
	LLVMPositionBuilderAtEnd(h->b, entry);
	h->fn = f;
	for (u32 k = 0; k < o->noperands; k++) {
		LLVMValueRef at = LLVMConstInt(h->i64, k, false);
		at = LLVMBuildGEP2(h->b, h->ptr, LLVMGetParam(f, 1), &at, 1, "");
		arrays[k] = LLVMBuildLoad2(h->b, h->ptr, at, "");
	}
	LLVMBuildBr(h->b, loop);
	LLVMPositionBuilderAtEnd(h->b, loop);
	LLVMValueRef i = LLVMBuildPhi(h->b, h->i64, ""), zero = LLVMConstInt(h->i64, 0, false);
	for (u32 k = 0; k < o->noperands; k++) {
		const struct type *t = operand(o, k)->type;
		LLVMTypeRef elem = cpu_elem_type(h, t);
		u32 lanes = !k && how.scalar_condition ? 0 : how.lanes;
		LLVMValueRef at = LLVMBuildGEP2(h->b, elem == h->i1 ? h->i8 : elem, arrays[k], &i, 1, "");
		in[k] = how.constant && k + 1 == o->noperands ? rig_constant(h, t, *how.constant, lanes)
							      : rig_load(h, t, at, lanes);
	}
	LLVMValueRef v = cpu_elementwise(h, o, in);
	LLVMTypeRef elem = cpu_elem_type(h, result(o)->type);
	assert_true(LLVMTypeOf(v) == cpu_vector_type(elem, how.lanes));
	LLVMValueRef at = LLVMBuildGEP2(h->b, elem == h->i1 ? h->i8 : elem, LLVMGetParam(f, 0), &i, 1, "");
	rig_store(h, result(o)->type, v, at, how.lanes);
	LLVMValueRef next = LLVMBuildAdd(h->b, i, LLVMConstInt(h->i64, MAX(how.lanes, 1u), false), "");
	LLVMBasicBlockRef last = LLVMGetInsertBlock(h->b);
	LLVMAddIncoming(i, (LLVMValueRef[]){zero, next}, (LLVMBasicBlockRef[]){entry, last}, 2);
	LLVMBuildCondBr(h->b, LLVMBuildICmp(h->b, LLVMIntULT, next, LLVMGetParam(f, 2), ""), loop, end);
	LLVMPositionBuilderAtEnd(h->b, end);
	LLVMBuildRetVoid(h->b);
	return r->nfunctions++;
}

/* What code may call: nothing that only a compiler's own library has. */
static inline int rig_may_call(void *unused, LLVMOrcSymbolStringPoolEntryRef symbol)
{
	static const char *const library[] = {"fma",  "fmod",  "floor", "ceil", "rint",
					      "trunc", "sin", "cos",   "erf",  "tanh"};
	const char *name = LLVMOrcSymbolStringPoolEntryStr(symbol);
	(void)unused;
	for (u32 i = 0; i < ARRAY_LEN(library); i++) {
		size_t n = strlen(library[i]);
		if (!strncmp(name, library[i], n) && (!name[n] || !strcmp(name + n, "f")))
			return true;
	}
	return !strncmp(name, "_ZGV", 4);
}

/* After all have been added. */
static inline void rig_compile(struct rig *r)
{
	char *message = NULL;
	if (LLVMVerifyModule(r->host.mod, LLVMReturnStatusAction, &message))
		fail_msg("%s", message);
	LLVMDisposeMessage(message);
	LLVMTargetRef target;
	char *triple = LLVMGetDefaultTargetTriple();
	assert_false(LLVMGetTargetFromTriple(triple, &target, &message));
	LLVMTargetMachineRef machine = LLVMCreateTargetMachine(
		target, triple, r->cpu, r->features, LLVMCodeGenLevelDefault, LLVMRelocDefault, LLVMCodeModelDefault);
	LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
	LLVMSetTarget(r->host.mod, triple);
	LLVMSetModuleDataLayout(r->host.mod, layout);
	LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
	LLVMPassBuilderOptionsSetLoopVectorization(options, false);
	LLVMPassBuilderOptionsSetLoopUnrolling(options, false);
	rig_error(LLVMRunPasses(r->host.mod, "default<O2>", machine, options));
	LLVMDisposePassBuilderOptions(options);
	if (getenv("RIG_DUMP"))
		LLVMPrintModuleToFile(r->host.mod, getenv("RIG_DUMP"), &message);
	LLVMDisposeTargetData(layout);
	LLVMDisposeTargetMachine(machine);
	LLVMDisposeMessage(triple);
	rig_error(LLVMOrcCreateLLJIT(&r->jit, NULL));
	LLVMOrcDefinitionGeneratorRef symbols;
	rig_error(LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(&symbols, LLVMOrcLLJITGetGlobalPrefix(r->jit),
								       rig_may_call, NULL));
	LLVMOrcJITDylibAddGenerator(LLVMOrcLLJITGetMainJITDylib(r->jit), symbols);
	LLVMOrcThreadSafeModuleRef m = LLVMOrcCreateNewThreadSafeModule(r->host.mod, r->context);
	rig_error(LLVMOrcLLJITAddLLVMIRModule(r->jit, LLVMOrcLLJITGetMainJITDylib(r->jit), m));
}

static inline rig_function *rig_get(struct rig *r, u32 number)
{
	char name[20];
	LLVMOrcExecutorAddress at;
	snprintf(name, sizeof name, "f%u", number);
	rig_error(LLVMOrcLLJITLookup(r->jit, &at, name));
	return (rig_function *)(uintptr_t)at;
}

#endif
