#include "llvm/emit_object.h"

/* The passes remove stack slots, equal address arithmetic and loop-invariant values. Loops are neither vectorized nor
 * unrolled: code generation has done both. InstCombine would take twice the time of all of these passes, and the code
 * would be no faster. */
static const char passes[] = "mergefunc,function(sroa,early-cse<memssa>,loop-mssa(licm),early-cse,simplifycfg)";

/* Terms of a sum before some are frozen: more than addresses usually have. */
enum { MOST_TERMS = 8, MOST_INVARIANT = 4 };

bool optimize_for_cpu(struct session *s, const struct target *target, const char **error)
{
	session_verify(s);
	branch_around_unlikely(s->mod);
	if (!session_machine(s, target, error) || (!target->lines && !session_passes(s, passes, error)))
		return false;
	expand_masked_accesses(s->mod, target);
	freeze_long_sums(s->mod, MOST_TERMS, MOST_INVARIANT);
	session_verify(s);
	return session_bound_time(s, target, error);
}

const char *emit_for_cpu(struct session *s, LLVMCodeGenFileType type, size_t *len, const char **error)
{
	/* the back end changes the module, which is needed again after the assembly */
	LLVMModuleRef from = type == LLVMAssemblyFile ? LLVMCloneModule(s->mod) : s->mod;
	bool bad = LLVMTargetMachineEmitToMemoryBuffer(s->machine.tm, from, type, &s->text, &s->out);
	if (from != s->mod)
		LLVMDisposeModule(from);
	if (bad || s->nerrors) {
		*error = arena_printf(s->arena, "%s", bad ? s->text : s->error);
		return NULL;
	}
	size_t size = LLVMGetBufferSize(s->out);
	const char *out = arena_str(s->arena, LLVMGetBufferStart(s->out), size);
	LLVMDisposeMemoryBuffer(s->out);
	s->out = NULL;
	if (len)
		*len = size;
	return out;
}
