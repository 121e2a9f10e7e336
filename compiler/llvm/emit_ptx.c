#include "llvm/emit_ptx.h"

#include <llvm-c/BitReader.h>
#include <llvm-c/Linker.h>

#include "llvm/builder.h"

extern const char embed_math[], embed_math_end[];

/* Replaces in place; `to` has the length of `from`. */
static void rename_all(char *text, const char *from, const char *to)
{
	while ((text = strstr(text, from)))
		for (const char *c = to; *c; c++)
			*text++ = *c;
}

static void drop_line(char *text, const char *beginning)
{
	char *line = strstr(text, beginning), *next = line ? strchr(line, '\n') : NULL;
	if (next)
		memmove(line, next + 1, strlen(next + 1) + 1);
}

/* Whether the module calls libclc functions, by their mangled names. */
static bool needs_math(LLVMModuleRef mod)
{
	for (LLVMValueRef f = LLVMGetFirstFunction(mod); f; f = LLVMGetNextFunction(f)) {
		size_t len;
		const char *name = LLVMGetValueName2(f, &len);
		if (LLVMIsDeclaration(f) && len > 2 && !memcmp(name, "_Z", 2))
			return true;
	}
	return false;
}

/* libclc reads its byte tables 16 bytes at a time, so they must start and end on 16-byte boundaries. */
static void align_tables(LLVMModuleRef math, struct arena *a)
{
	enum { STEP = 16 };
	LLVMContextRef ctx = LLVMGetModuleContext(math);
	for (LLVMValueRef g = LLVMGetFirstGlobal(math), next; g; g = next) {
		next = LLVMGetNextGlobal(g);
		LLVMValueRef init = LLVMGetInitializer(g);
		if (!init || !LLVMIsConstantString(init))
			continue;
		size_t len;
		const char *bytes = LLVMGetAsString(init, &len);
		size_t padded = (len + STEP - 1) / STEP * STEP;
		char *copy = arena_alloc(a, padded);
		memcpy(copy, bytes, len);
		LLVMValueRef data = LLVMConstStringInContext(ctx, copy, (unsigned)padded, true);
		unsigned space = LLVMGetPointerAddressSpace(LLVMTypeOf(g));
		LLVMValueRef wide = add_constant(math, data, "table", LLVMInternalLinkage, space);
		LLVMSetAlignment(wide, STEP);
		LLVMReplaceAllUsesWith(g, wide);
		LLVMDeleteGlobal(g);
	}
}

static bool link_math(LLVMModuleRef mod, const char *layout, struct arena *a, const char **error)
{
	LLVMContextRef ctx = LLVMGetModuleContext(mod);
	LLVMMemoryBufferRef buf =
		LLVMCreateMemoryBufferWithMemoryRange(embed_math, (size_t)(embed_math_end - embed_math), "math", false);
	LLVMModuleRef math;
	bool bad = LLVMParseBitcodeInContext2(ctx, buf, &math);
	LLVMDisposeMemoryBuffer(buf);
	if (bad) {
		*error = arena_printf(a, "the embedded math library cannot be read");
		return false;
	}
	LLVMSetTarget(math, LLVMGetTarget(mod));
	LLVMSetDataLayout(math, layout);
	align_tables(math, a);
	/* deletes the math library's functions that `mod` does not use, before linking */
	unsigned noinline_kind = LLVMGetEnumAttributeKindForName("noinline", 8), cpu = LLVMAttributeFunctionIndex;
	for (LLVMValueRef f = LLVMGetFirstFunction(math), next; f; f = next) {
		next = LLVMGetNextFunction(f);
		if (LLVMIsDeclaration(f))
			continue;
		size_t len;
		const char *name = LLVMGetValueName2(f, &len);
		LLVMValueRef wanted = LLVMGetNamedFunction(mod, name);
		if (LLVMGetLinkage(f) != LLVMInternalLinkage && !wanted) {
			LLVMReplaceAllUsesWith(f, LLVMGetUndef(LLVMTypeOf(f)));
			LLVMDeleteFunction(f);
			continue;
		}
		LLVMRemoveStringAttributeAtIndex(f, cpu, "target-cpu", 10);
		LLVMRemoveStringAttributeAtIndex(f, cpu, "target-features", 15);
		LLVMRemoveEnumAttributeAtIndex(f, cpu, noinline_kind);
		add_attribute(f, cpu, "alwaysinline", 0);
	}
	if (LLVMLinkModules2(mod, math)) {
		*error = arena_printf(a, "linking the math library failed");
		return false;
	}
	for (LLVMValueRef f = LLVMGetFirstFunction(mod); f; f = LLVMGetNextFunction(f)) {
		size_t len;
		const char *name = LLVMGetValueName2(f, &len);
		if (!LLVMIsDeclaration(f) && len > 2 && !memcmp(name, "_Z", 2))
			LLVMSetLinkage(f, LLVMInternalLinkage);
	}
	return true;
}

/* Much shorter than default<O3>: the code, including libclc's, already has the form that O3 produces, and compile time
 * matters. Kernels without loops do not need these passes: the back end and ptxas suffice. */
#define SIMPLIFY "function(early-cse,instcombine<no-verify-fixpoint>,simplifycfg)"

static bool is_pure(LLVMValueRef v)
{
	return LLVMIsAUnaryInstruction(v)
		       ? !LLVMIsALoadInst(v)
		       : LLVMIsABinaryOperator(v) || LLVMIsACmpInst(v) || LLVMIsAGetElementPtrInst(v) ||
				 LLVMIsASelectInst(v) || LLVMIsAInsertElementInst(v) || LLVMIsAExtractElementInst(v);
}

/* Removes pure instructions without uses, last first, such as extracted elements that no operation reads. */
static void drop_unused(LLVMModuleRef mod)
{
	for (LLVMValueRef f = LLVMGetFirstFunction(mod); f; f = LLVMGetNextFunction(f))
		for (LLVMBasicBlockRef b = LLVMGetLastBasicBlock(f); b; b = LLVMGetPreviousBasicBlock(b))
			for (LLVMValueRef v = LLVMGetLastInstruction(b), before; v; v = before) {
				before = LLVMGetPreviousInstruction(v);
				if (!LLVMGetFirstUse(v) && is_pure(v))
					LLVMInstructionEraseFromParent(v);
			}
}

static bool optimize(struct session *s, bool math, bool loops, const char **error)
{
	if (math || loops)
		return session_passes(s, math ? "always-inline,globaldce," SIMPLIFY : SIMPLIFY, error);
	drop_unused(s->mod);
	return true;
}

/* The phi's next value around the loop, if it is the phi plus a step; else NULL. */
static LLVMValueRef recurrence(LLVMValueRef phi)
{
	for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
		LLVMValueRef next = LLVMGetIncomingValue(phi, i);
		if (!LLVMIsAInstruction(next))
			continue;
		LLVMOpcode code = LLVMGetInstructionOpcode(next);
		if ((code == LLVMAdd || code == LLVMGetElementPtr) && LLVMGetOperand(next, 0) == phi)
			return next;
	}
	return NULL;
}

/* Replaces the constant start of a carried 64-bit offset (indices have 32 bits) by inline PTX. With a constant start,
 * LLVM would see that the freeze has no effect. */
static void hide_start(LLVMBuilderRef b, LLVMValueRef phi)
{
	LLVMTypeRef t = LLVMTypeOf(phi);
	bool offset = LLVMGetTypeKind(t) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(t) == 64;
	for (unsigned i = 0; offset && i < LLVMCountIncoming(phi); i++) {
		LLVMValueRef start = LLVMGetIncomingValue(phi, i);
		if (!LLVMIsAConstantInt(start))
			continue;
		char text[40];
		snprintf(text, sizeof text, "mov.b64 $0, %lld;", LLVMConstIntGetSExtValue(start));
		LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(LLVMGetIncomingBlock(phi, i)));
		LLVMSetOperand(phi, i, call_asm(b, text, "=l", false, t, NULL, 0));
	}
}

/* Loops already carry the few offsets that they should (pass_strength_reduction). A freeze, which costs no
 * instruction, hides from LLVM's loop strength reduction that they are linear. That pass would otherwise take up to a
 * third of the time, compute every address of a loop before the loop, and keep the differences in registers. */
static void keep_recurrences(LLVMModuleRef mod)
{
	LLVMBuilderRef b = LLVMCreateBuilderInContext(LLVMGetModuleContext(mod));
	for (LLVMValueRef f = LLVMGetFirstFunction(mod); f; f = LLVMGetNextFunction(f))
		for (LLVMBasicBlockRef bb = LLVMGetFirstBasicBlock(f); bb; bb = LLVMGetNextBasicBlock(bb)) {
			LLVMValueRef first = LLVMGetFirstInstruction(bb), end = first;
			while (LLVMIsAPHINode(end))
				end = LLVMGetNextInstruction(end);
			LLVMPositionBuilderBefore(b, end);
			for (LLVMValueRef phi = first; LLVMIsAPHINode(phi); phi = LLVMGetNextInstruction(phi)) {
				if (!recurrence(phi))
					continue;
				hide_start(b, phi);
				LLVMPositionBuilderBefore(b, end);
				LLVMValueRef frozen = LLVMBuildFreeze(b, phi, "");
				LLVMReplaceAllUsesWith(phi, frozen);
				LLVMSetOperand(frozen, 0, phi);
			}
		}
	LLVMDisposeBuilder(b);
}

const char *ptx_with_directives(struct arena *a, const char *ptx, size_t *len, const char *lines)
{
	const char *at = strstr(ptx, "\n.reqntid");
	at = at ? strchr(at + 1, '\n') : NULL;
	tl_assert(at);
	const char *out = arena_printf(a, "%.*s\n%s%s", (int)(at - ptx), ptx, lines, at);
	*len += strlen(lines) + 1;
	return out;
}

/* LLVM's PTX with corrections. */
static const char *emit(struct session *s, size_t *len, const char **error)
{
	if (LLVMTargetMachineEmitToMemoryBuffer(s->machine.tm, s->mod, LLVMAssemblyFile, &s->text, &s->out)) {
		*error = arena_printf(s->arena, "%s", s->text);
		return NULL;
	}
	char *text = arena_str(s->arena, LLVMGetBufferStart(s->out), LLVMGetBufferSize(s->out));
	drop_line(text, "\t.section\t.debug_loc"); /* an empty section */
	rename_all(text, "\tdiv.approx.f32", "\tdiv.full.f32  ");
	*len = strlen(text);
	return text;
}

enum { MOST_TERMS = 16 }; /* of an integer sum before some are frozen: more than any address has */

const char *emit_ptx(struct session *s, const struct target *target, const struct ptx_kernel *k, const char **llir,
		     size_t *len, const char **error)
{
	struct arena *a = s->arena;
	if (!session_machine(s, target, error))
		return NULL;
	session_verify(s);
	branch_around_unlikely(s->mod);
	separate_shared_operands(s->mod);
	bool math = needs_math(s->mod);
	if ((math && !link_math(s->mod, s->layout, a, error)) || !optimize(s, math, k->loops, error))
		return NULL;
	separate_shared_operands(s->mod);
	keep_recurrences(s->mod);
	freeze_long_sums(s->mod, MOST_TERMS, MOST_TERMS);
	protect_negations(s->mod);
	allow_registers_for_loads(s, target, k);
	if (llir)
		*llir = session_text(s);
	if (len && !k->in_flight && !session_bound_time(s, target, error))
		return NULL;
	const char *ptx = len ? emit(s, len, error) : "";
	if (!ptx || !s->nerrors)
		return ptx;
	*error = arena_printf(a, "%s", s->error);
	return NULL;
}
