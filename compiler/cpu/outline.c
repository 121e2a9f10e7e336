/* Outlining: equal steps of a large kernel share a function, since LLVM's compile time grows with the number of
 * instructions.
 *
 * The code of a step of a block (cpu_step: a loop nest, or an operation on whole tiles) is a region of basic blocks
 * with a single entry and a single exit. Large kernels repeat steps: dots of equal shape, the iterations of an unrolled
 * loop. Regions are candidates if their instructions differ only in captured values, which are defined outside the
 * region. Each candidate becomes a function with the captured values as parameters. A hash finds the candidates; LLVM's
 * mergefunc compares their functions exactly and merges equal functions. Small kernels are not changed. */
#include "cpu/cpu_internal.h"

enum {
	LARGE = 3000, /* LLVM instructions of the smallest kernel with outlined regions, compiled in about 0.1 s */
	LEAST = 80,   /* LLVM instructions of the smallest outlined region, so that the cost of a call is small */
	CAPTURED = 8, /* added to LEAST for each argument of the call */
};

struct region {
	LLVMBasicBlockRef begin, end; /* the entry block, and the block after the exit */
	VEC(LLVMBasicBlockRef) blocks;
	VEC(LLVMValueRef) captured; /* values defined outside the region, in the order of their first use in it */
	VEC(LLVMValueRef) escaping; /* values defined in the region and used outside */
	u64 hash;                   /* of the instructions, in which captured values count by their position */
	u32 size;                   /* number of instructions */
	bool outlined;
};

struct region *cpu_region_begin(struct cpu_codegen *h)
{
	if (h->debug || h->region)
		return NULL;
	struct region *r = h->region = arena_new(&h->scratch, struct region);
	*r = (struct region){.begin = new_block(h->b)};
	LLVMBuildBr(h->b, r->begin);
	LLVMPositionBuilderAtEnd(h->b, r->begin);
	cpu_forget(h);
	return r;
}

void cpu_region_end(struct cpu_codegen *h, struct region *r)
{
	if (!r)
		return;
	r->end = new_block(h->b);
	LLVMMoveBasicBlockAfter(r->end, LLVMGetInsertBlock(h->b));
	LLVMBuildBr(h->b, r->end);
	LLVMPositionBuilderAtEnd(h->b, r->end);
	cpu_forget(h);
	vec_push(&h->scratch, &h->regions, r);
	h->region = NULL;
}

/* --- contents of a region ----------------------------------------------------------------------------------------- */

/* Numbers the blocks, instructions and captured values of a region, from 1; 0: not numbered. */
struct numbers {
	struct map of;
	uintptr_t last;
};

static uintptr_t number_of(const struct numbers *n, const void *x)
{
	return (uintptr_t)map_get(&n->of, x);
}

static void number(struct numbers *n, const void *x)
{
	map_put(&n->of, x, (void *)++n->last);
}

/* Collects the blocks of the region. False if one of them returns from the kernel: the region cannot be outlined. */
static bool find_blocks(struct cpu_codegen *h, struct region *r, struct numbers *n)
{
	number(n, r->begin);
	vec_push(&h->scratch, &r->blocks, r->begin);
	for (u32 i = 0; i < r->blocks.len; i++) {
		LLVMValueRef last = LLVMGetBasicBlockTerminator(r->blocks.at[i]);
		if (!last || LLVMGetInstructionOpcode(last) != LLVMBr)
			return false;
		for (u32 k = 0; k < LLVMGetNumSuccessors(last); k++) {
			LLVMBasicBlockRef to = LLVMGetSuccessor(last, k);
			if (to == r->end || number_of(n, to))
				continue;
			number(n, to);
			vec_push(&h->scratch, &r->blocks, to);
		}
	}
	return true;
}

u32 cpu_instruction_count(LLVMValueRef x, const struct target *target)
{
	LLVMTypeRef t = LLVMTypeOf(LLVMGetInstructionOpcode(x) == LLVMStore ? LLVMGetOperand(x, 0) : x);
	if (LLVMGetTypeKind(t) != LLVMVectorTypeKind)
		return 1;
	return MAX(1, (u32)type_bits(t) * LLVMGetVectorSize(t) / (8 * (u32)target->vector_bytes));
}

static bool is_local(LLVMValueRef x)
{
	return LLVMIsAInstruction(x) || LLVMIsAArgument(x);
}

static void mix(struct region *r, u64 x)
{
	r->hash = (r->hash ^ x) * 0x9E3779B97F4A7C15;
	r->hash ^= r->hash >> 29;
}

/* Adds operand x of an instruction to the region's hash, and to `captured` if it is defined outside. Constants and
 * types hash by address: LLVM makes each one once. */
static void mix_operand(struct cpu_codegen *h, struct region *r, struct numbers *n, LLVMValueRef x)
{
	if (is_local(x) && !number_of(n, x)) {
		number(n, x);
		vec_push(&h->scratch, &r->captured, x);
		mix(r, (uintptr_t)LLVMTypeOf(x));
	}
	uintptr_t k = number_of(n, x);
	mix(r, k ? k : (uintptr_t)x);
}

static void read_instruction(struct cpu_codegen *h, struct region *r, struct numbers *n, LLVMValueRef x)
{
	LLVMOpcode code = LLVMGetInstructionOpcode(x);
	mix(r, code);
	mix(r, (uintptr_t)LLVMTypeOf(x));
	if (code == LLVMICmp)
		mix(r, LLVMGetICmpPredicate(x));
	if (code == LLVMFCmp)
		mix(r, LLVMGetFCmpPredicate(x));
	for (u32 i = 0; i < (u32)LLVMGetNumOperands(x); i++) {
		LLVMValueRef in = LLVMGetOperand(x, i);
		if (!LLVMValueIsBasicBlock(in))
			mix_operand(h, r, n, in);
		else
			mix(r, number_of(n, LLVMValueAsBasicBlock(in)));
	}
	for (LLVMUseRef u = LLVMGetFirstUse(x); u; u = LLVMGetNextUse(u))
		if (!number_of(n, LLVMGetInstructionParent(LLVMGetUser(u)))) {
			vec_push(&h->scratch, &r->escaping, x);
			break;
		}
	r->size += cpu_instruction_count(x, h->s->target);
}

/* Whether no code outside the region uses the allocas that the region uses: they move into the function. */
static bool slots_are_own(const struct region *r, const struct numbers *n)
{
	for (u32 i = 0; i < r->captured.len; i++) {
		LLVMValueRef x = r->captured.at[i];
		if (!LLVMIsAAllocaInst(x))
			continue;
		for (LLVMUseRef u = LLVMGetFirstUse(x); u; u = LLVMGetNextUse(u))
			if (!number_of(n, LLVMGetInstructionParent(LLVMGetUser(u))))
				return false;
	}
	return true;
}

static bool read_region(struct cpu_codegen *h, struct region *r)
{
	struct numbers n = {.of = {.arena = &h->scratch}};
	if (!find_blocks(h, r, &n))
		return false;
	for (u32 i = 0; i < r->blocks.len; i++)
		for (LLVMValueRef x = LLVMGetFirstInstruction(r->blocks.at[i]); x; x = LLVMGetNextInstruction(x))
			number(&n, x);
	for (u32 i = 0; i < r->blocks.len; i++)
		for (LLVMValueRef x = LLVMGetFirstInstruction(r->blocks.at[i]); x; x = LLVMGetNextInstruction(x))
			read_instruction(h, r, &n, x);
	return slots_are_own(r, &n);
}

/* --- functions of regions ----------------------------------------------------------------------------------------- */

/* Whether x is the address of a tile in scratch memory (cpu_scratch). Its parameter can be noalias: no other captured
 * value points to the tile. */
static bool is_scratch(const struct cpu_codegen *h, LLVMValueRef x)
{
	return LLVMIsAGetElementPtrInst(x) && LLVMGetOperand(x, 0) == h->memory;
}

/* Declares the region's function. Its parameters are the captured values, except allocas. `inside` maps captured values
 * to parameters. */
static LLVMValueRef new_function(struct cpu_codegen *h, const struct region *r, struct map *inside)
{
	u32 n = 0;
	LLVMTypeRef *types = arena_array(&h->scratch, LLVMTypeRef, r->captured.len + r->escaping.len + 1u);
	for (u32 i = 0; i < r->escaping.len; i++)
		types[i] = LLVMTypeOf(r->escaping.at[i]);
	LLVMTypeRef out = r->escaping.len ? LLVMStructTypeInContext(h->ctx, types, r->escaping.len, false) : h->v;
	for (u32 i = 0; i < r->captured.len; i++)
		if (!LLVMIsAAllocaInst(r->captured.at[i]))
			types[n++] = LLVMTypeOf(r->captured.at[i]);
	LLVMValueRef f = LLVMAddFunction(h->mod, "outlined", LLVMFunctionType(out, types, n, false));
	LLVMSetLinkage(f, LLVMInternalLinkage);
	add_attribute(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, "nounwind", 0);
	for (u32 i = 0, k = 0; i < r->captured.len; i++) {
		if (LLVMIsAAllocaInst(r->captured.at[i]))
			continue;
		map_put(inside, r->captured.at[i], LLVMGetParam(f, k++));
		if (is_scratch(h, r->captured.at[i]))
			add_attribute(f, k, "noalias", 0);
	}
	return f;
}

/* Replaces the region by a call, and the escaping values by the results of the call. */
static void build_call(struct cpu_codegen *h, const struct region *r, LLVMValueRef f, LLVMBasicBlockRef from,
		       struct map *inside, struct map *replaced)
{
	u32 n = 0;
	LLVMValueRef *args = arena_array(&h->scratch, LLVMValueRef, r->captured.len + 1u);
	for (u32 i = 0; i < r->captured.len; i++)
		if (!LLVMIsAAllocaInst(r->captured.at[i]))
			args[n++] = r->captured.at[i];
	LLVMInstructionEraseFromParent(LLVMGetBasicBlockTerminator(from));
	LLVMPositionBuilderAtEnd(h->b, from);
	LLVMValueRef call = LLVMBuildCall2(h->b, LLVMGlobalGetValueType(f), f, args, n, "");
	for (u32 i = 0; i < r->escaping.len; i++) {
		LLVMValueRef x = LLVMBuildExtractValue(h->b, call, i, "");
		LLVMReplaceAllUsesWith(r->escaping.at[i], x);
		map_put(inside, x, r->escaping.at[i]);
		map_put(replaced, r->escaping.at[i], x);
	}
	LLVMBuildBr(h->b, r->end);
}

/* Equal regions access different tiles' memory: without the marks of cpu_mark, their functions are equal. */
static void move_blocks(struct cpu_codegen *h, const struct region *r, LLVMValueRef f, const struct map *inside)
{
	LLVMPositionBuilderAtEnd(h->b, LLVMAppendBasicBlockInContext(h->ctx, f, ""));
	for (u32 i = 0; i < r->captured.len; i++)
		if (LLVMIsAAllocaInst(r->captured.at[i])) {
			LLVMInstructionRemoveFromParent(r->captured.at[i]);
			LLVMInsertIntoBuilder(h->b, r->captured.at[i]);
		}
	LLVMBuildBr(h->b, r->begin);
	for (u32 i = 0; i < r->blocks.len; i++) {
		LLVMBasicBlockRef b = r->blocks.at[i];
		LLVMRemoveBasicBlockFromParent(b);
		LLVMAppendExistingBasicBlock(f, b);
		for (LLVMValueRef x = LLVMGetFirstInstruction(b); x; x = LLVMGetNextInstruction(x)) {
			LLVMSetMetadata(x, LLVMGetMDKindIDInContext(h->ctx, "tbaa", 4), NULL);
			for (u32 k = 0; k < (u32)LLVMGetNumOperands(x); k++) {
				LLVMValueRef to = map_get(inside, LLVMGetOperand(x, k));
				if (to)
					LLVMSetOperand(x, k, to);
			}
		}
	}
}

static void build_return(struct cpu_codegen *h, const struct region *r, LLVMBasicBlockRef last)
{
	LLVMInstructionEraseFromParent(LLVMGetBasicBlockTerminator(last));
	LLVMPositionBuilderAtEnd(h->b, last);
	if (r->escaping.len)
		LLVMBuildAggregateRet(h->b, r->escaping.at, r->escaping.len);
	else
		LLVMBuildRetVoid(h->b);
}

/* A predecessor of block b. */
static LLVMBasicBlockRef block_before(LLVMBasicBlockRef b)
{
	for (LLVMUseRef u = LLVMGetFirstUse(LLVMBasicBlockAsValue(b)); u; u = LLVMGetNextUse(u))
		if (LLVMIsATerminatorInst(LLVMGetUser(u)))
			return LLVMGetInstructionParent(LLVMGetUser(u));
	tl_unreachable("a block without a predecessor");
}

/* Moves the region's blocks to a new function and calls it. `replaced` maps escaping values of regions outlined before
 * to the results of their calls. */
static void to_function(struct cpu_codegen *h, struct region *r, struct map *replaced)
{
	struct map inside = {.arena = &h->scratch};
	for (u32 i = 0; i < r->captured.len; i++) {
		LLVMValueRef x = map_get(replaced, r->captured.at[i]);
		r->captured.at[i] = x ? x : r->captured.at[i];
	}
	LLVMBasicBlockRef from = block_before(r->begin), last = block_before(r->end);
	LLVMValueRef f = new_function(h, r, &inside);
	build_call(h, r, f, from, &inside, replaced);
	move_blocks(h, r, f, &inside);
	build_return(h, r, last);
}

static bool is_worth_it(const struct region *r)
{
	return r->size >= LEAST + CAPTURED * r->captured.len;
}

static u32 size_of_kernel(const struct cpu_codegen *h)
{
	u32 size = 0;
	for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(h->fn); b; b = LLVMGetNextBasicBlock(b))
		for (LLVMValueRef x = LLVMGetFirstInstruction(b); x; x = LLVMGetNextInstruction(x))
			size += cpu_instruction_count(x, h->s->target);
	return size;
}

/* Sets `outlined` of regions that share their hash with another one. */
static void find_equal(struct cpu_codegen *h)
{
	struct map first = {.arena = &h->scratch};
	for (u32 i = 0; i < h->regions.len; i++) {
		struct region *r = h->regions.at[i];
		if (!read_region(h, r) || !is_worth_it(r))
			continue;
		const void *key = (const void *)(uintptr_t)(r->hash | 1);
		struct region *same = map_get(&first, key);
		if (same)
			r->outlined = same->outlined = true;
		else
			map_put(&first, key, r);
	}
}

void cpu_outline_regions(struct cpu_codegen *h)
{
	struct map replaced = {.arena = &h->scratch};
	if (size_of_kernel(h) < LARGE)
		return;
	find_equal(h);
	for (u32 i = 0; i < h->regions.len; i++)
		if (h->regions.at[i]->outlined)
			to_function(h, h->regions.at[i], &replaced);
}
