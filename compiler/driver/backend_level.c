/* Back-end optimization level of very large modules. The time of LLVM's register allocation grows with the square of
 * the number of instructions of a basic block, and that of its scalar evolution analysis with the cube of the number of
 * loops. Modules that would take LLVM's back end longer than about ten seconds are compiled without optimizations, in
 * time linear in the code. */
#include "support/compile_checks.h"
#include "support/map.h"
#include "cpu/cpu.h"
#include "llvm/session.h"

enum {
	MOST_INSTRUCTIONS = 40000, /* CPU: LLVM instructions of a module, optimized in 5 to 15 s */
	MOST_LOOPS = 384,          /* GPU: loops of a module, optimized in 1 to 8 s */
};

static u32 count_instructions(const struct session *s, const struct target *target)
{
	u32 n = 0;
	for (LLVMValueRef f = LLVMGetFirstFunction(s->mod); f; f = LLVMGetNextFunction(f))
		for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
			for (LLVMValueRef x = LLVMGetFirstInstruction(b); x; x = LLVMGetNextInstruction(x))
				n += cpu_instruction_count(x, target);
	return n;
}

/* The number of loops of the module: branches to the same or an earlier basic block. */
static u32 count_loops(struct session *s)
{
	struct map before = {.arena = s->arena};
	u32 n = 0;
	for (LLVMValueRef f = LLVMGetFirstFunction(s->mod); f; f = LLVMGetNextFunction(f))
		for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b)) {
			LLVMValueRef last = LLVMGetBasicBlockTerminator(b);
			map_put(&before, b, b);
			for (u32 i = 0; i < LLVMGetNumSuccessors(last); i++)
				n += map_get(&before, LLVMGetSuccessor(last, i)) != NULL;
		}
	return n;
}

bool session_bound_time(struct session *s, const struct target *target, const char **error)
{
	bool cuda = target->kind == TARGET_CUDA;
	u32 n = cuda ? count_loops(s) : count_instructions(s, target);
	u32 most = compile_check("quick") ? 0 : cuda ? MOST_LOOPS : MOST_INSTRUCTIONS;
	if (target->lines || n <= most)
		return true;
	s->unoptimized = n;
	return session_quick_machine(s, target, error);
}
