/* The walk over the laid-out GPU IR: tiles, control flow, and the table of code generation functions by opcode. */
#include "support/thresholds.h"
#include "support/recover.h"
#include "ir/launch_abi.h"
#include "gpu/codegen/nvptx_internal.h"
#include "analysis/register_pressure.h"
#include "analysis/index_forms.h"
#include "analysis/ranges.h"
#include "gpu/layout/register_operand.h"
#include "gpu/gpu_passes.h"

/* --- values -------------------------------------------------------------------------------------------------- */

LLVMTypeRef llvm_type(struct lower *l, const struct type *t)
{
	t = type_elem(t);
	return t->kind == TY_PTR ? l->gptr : llvm_dtype(l->ctx, t->dtype);
}

u32 num_elems(const struct value *v)
{
	if (v->type->kind == TY_TOKEN)
		return 0;
	return type_is_tensor(v->type) ? (u32)layout_num_regs(v->type->layout) : 1;
}

LLVMValueRef *words_of_tile(struct lower *l, const struct value *v)
{
	struct tile *t = map_get(&l->tiles, v);
	if (t->runs)
		finish_runs(l, t);
	return t->words;
}

static struct tile *tile_of(struct lower *l, const struct value *v)
{
	struct tile *t = map_get(&l->tiles, v);
	tl_assert(t);
	words_of_tile(l, v);
	/* v has only packed words so far. They are unpacked directly after the instruction that computes the last word,
	 * not here, since code on other paths may use the elements too. */
	if (!t->at) {
		LLVMTypeRef e = llvm_type(l, v->type);
		struct insertion_point here = go_behind(l, t->last);
		t->at = arena_array(&l->scratch, LLVMValueRef, t->n);
		unpack(l, t->words, t->n * (u32)type_bits(e) / 32, e, t->n, t->at);
		come_back(l, here);
	}
	return t;
}

LLVMValueRef elem(struct lower *l, const struct value *v, u32 r)
{
	struct tile *t = tile_of(l, v);
	return t->at[t->n == 1 ? 0 : r];
}

LLVMValueRef word_of(struct lower *l, const struct value *v, u32 w)
{
	u32 per_word = 32 / (u32)type_bits(llvm_type(l, v->type));
	LLVMValueRef *words = words_of_tile(l, v), word;
	if (words)
		return words[w];
	pack(l, &tile_of(l, v)->at[w * per_word], per_word, 32, &word);
	return word;
}

void set_tile(struct lower *l, const struct value *v, LLVMValueRef *at, u32 n)
{
	struct tile *t = arena_new(&l->scratch, struct tile);
	*t = (struct tile){.at = at, .n = n};
	map_put(&l->tiles, v, t);
}

void set_words(struct lower *l, const struct value *v, LLVMValueRef *words, u32 n)
{
	struct tile *t = arena_new(&l->scratch, struct tile);
	*t = (struct tile){.n = num_elems(v), .words = words, .last = words[n - 1]};
	map_put(&l->tiles, v, t);
}

LLVMValueRef *new_tile(struct lower *l, const struct value *v)
{
	LLVMValueRef *at = arena_array(&l->scratch, LLVMValueRef, num_elems(v));
	set_tile(l, v, at, num_elems(v));
	return at;
}

/* --- making tiles -------------------------------------------------------------------------------------------- */

static void fill(struct lower *l, const struct value *v, LLVMValueRef x)
{
	LLVMValueRef *at = new_tile(l, v);
	for (u32 i = 0; i < num_elems(v); i++)
		at[i] = x;
}

static void lower_range(struct lower *l, const struct op *o)
{
	const struct layout *lay = result(o)->type->layout;
	LLVMValueRef base = thread_position(l, lay), *at = new_tile(l, result(o));
	for (u32 r = 0; r < num_elems(result(o)); r++) {
		i64 c = (i64)layout_apply(lay, r, 0, 0) + o->attr[ATTR_START];
		at[r] = c ? LLVMBuildNSWAdd(l->b, base, c_i32(l, c), "") : base;
	}
}

/* Shape operations only rename registers: each thread has the result's elements among its operand's elements. Returns
 * the register of the operand that becomes register r of result k. Only tt.split has two results: the elements at even
 * positions of the operand (k = 0) and those at odd positions (k = 1). */
static u32 renamed_from(const struct op *o, u32 k, u32 r)
{
	u32 pos = source_position(o, layout_apply(o->results[k].type->layout, r, 0, 0)) | k;
	return layout_bits_in(operand(o, 0)->type->layout, LL_REG, pos);
}

static void lower_rename(struct lower *l, const struct op *o)
{
	for (u32 k = 0; k < o->nresults; k++) {
		LLVMValueRef *at = new_tile(l, &o->results[k]);
		for (u32 r = 0; r < num_elems(&o->results[k]); r++)
			at[r] = elem(l, operand(o, 0), renamed_from(o, k, r));
	}
}

const struct value *before_renames(const struct value *v, u32 *regs, u32 n)
{
	for (; v->def && op_is_shape(v->def); v = operand(v->def, 0))
		for (u32 i = 0; i < n; i++)
			regs[i] = renamed_from(v->def, 0, regs[i]);
	return v;
}

static void lower_join(struct lower *l, const struct op *o)
{
	const struct layout *to = result(o)->type->layout, *from = operand(o, 0)->type->layout;
	/* i1: this thread's elements come from the second operand, at odd positions; NULL if that depends on the
	 * register only */
	LLVMValueRef *at = new_tile(l, result(o)), odd = NULL;
	if (layout_bits_in(to, LL_LANE, 1) || layout_bits_in(to, LL_WARP, 1))
		odd = LLVMBuildTrunc(l->b, thread_position(l, to), l->i1, "");
	for (u32 r = 0; r < num_elems(result(o)); r++) {
		u32 pos = layout_apply(to, r, 0, 0), reg = layout_bits_in(from, LL_REG, source_position(o, pos));
		at[r] = elem(l, operand(o, pos & 1), reg);
		if (odd)
			at[r] = LLVMBuildSelect(l->b, odd, elem(l, operand(o, ~pos & 1), reg), at[r], "");
	}
}

LLVMValueRef program_number(struct lower *l, i64 axis, bool how_many)
{
	static const char *const cluster[] = {"llvm.nvvm.read.ptx.sreg.clusterid.x",
					      "llvm.nvvm.read.ptx.sreg.nclusterid.x"};
	static const char *const names[2][3] = {
		{"llvm.nvvm.read.ptx.sreg.ctaid.x", "llvm.nvvm.read.ptx.sreg.ctaid.y",
		 "llvm.nvvm.read.ptx.sreg.ctaid.z"},
		{"llvm.nvvm.read.ptx.sreg.nctaid.x", "llvm.nvvm.read.ptx.sreg.nctaid.y",
		 "llvm.nvvm.read.ptx.sreg.nctaid.z"},
	};
	bool spread = l->k->cuda.cluster > 1 && axis == 0;
	return intrinsic(l, spread ? cluster[how_many] : names[how_many][axis], l->i32, NULL, 0);
}

static void lower_program(struct lower *l, const struct op *o)
{
	fill(l, result(o), program_number(l, o->attr[ATTR_AXIS], o->code == IR_NUM_PROGRAMS));
}

static void lower_cluster_size(struct lower *l, const struct op *o)
{
	fill(l, result(o), intrinsic(l, "llvm.nvvm.read.ptx.sreg.cluster.nctarank", l->i32, NULL, 0));
}

/* --- control flow -------------------------------------------------------------------------------------------- */

/* The form in which a loop carries a tile in phis. AS_ELEMENTS: one phi for each element, except for elements that
 * follow from others (told_bits). AS_WORDS: packed 32-bit words, at most half as many phis. AS_RUNS: the parts of an
 * unaligned vector load whose words have not been computed (struct runs). AS_PINNED: no phis, as the tile is in pinned
 * PTX registers (pinned_accumulators.c). */
enum carried_as { AS_ELEMENTS, AS_WORDS, AS_RUNS, AS_PINNED };

/* The n LLVM values that the phis of a carried tile take. */
struct carried {
	enum carried_as as;
	LLVMValueRef *at;
	u32 n;
	const struct runs *shape; /* AS_RUNS: the runs of the initial value */
};

static u32 num_words(struct lower *l, const struct value *v)
{
	return num_elems(v) * (u32)type_bits(llvm_type(l, v->type)) / 32;
}

static LLVMValueRef *packed_words(struct lower *l, const struct value *v)
{
	LLVMValueRef *words = words_of_tile(l, v);
	if (words)
		return words;
	words = arena_array(&l->scratch, LLVMValueRef, num_words(l, v));
	pack(l, tile_of(l, v)->at, num_elems(v), 32, words);
	return words;
}

/* v in the form `as`, as an incoming value of the loop argument `arg`. */
static struct carried carried(struct lower *l, const struct value *v, const struct value *arg, enum carried_as as,
			      const struct runs *shape)
{
	struct carried c = {.as = as, .shape = shape};
	if (as == AS_WORDS) {
		c.at = packed_words(l, v);
		c.n = num_words(l, v);
	} else if (as == AS_RUNS) {
		const struct tile *t = map_get(&l->tiles, v);
		c.at = parts_of_runs(t->runs ? t->runs : runs_of_words(l, packed_words(l, v), shape), &c.n);
	} else {
		u32 told = told_bits(l, arg);
		c.at = arena_array(&l->scratch, LLVMValueRef, num_elems(v));
		for (u32 r = 0; r < num_elems(v); r++)
			if (!(r & told))
				c.at[c.n++] = elem(l, v, r);
	}
	return c;
}

static struct carried first_carried(struct lower *l, const struct op *loop, u32 i)
{
	const struct value *v = for_init(loop, i);
	const struct tile *t = map_get(&l->tiles, v);
	if (stays_pinned(l, loop, i))
		return (struct carried){.as = AS_PINNED, .n = num_accumulators(v)};
	return carried(l, v, for_arg(loop, i),
		       t->runs    ? AS_RUNS
		       : t->words ? AS_WORDS
				  : AS_ELEMENTS,
		       t->runs);
}

/* Chooses the form of the loop's carried tiles. AS_RUNS lets the words of an unaligned vector load be computed as late
 * as at their first use in the next iteration, when the load has completed. But the parts take more registers than the
 * words. So if the carried values exceed the registers, the words are computed before the loop, and AS_WORDS carries
 * them. */
static void choose_carried(struct lower *l, const struct op *loop)
{
	i64 most = registers_for_blocks(l->s->target, l->s->num_warps, 1) - REGISTERS_BESIDE_CARRIED, total = 0;
	for (u32 i = 0; i < loop->nresults; i++) {
		const struct value *v = for_init(loop, i);
		u32 bits = (u32)type_bits(llvm_type(l, v->type));
		total += first_carried(l, loop, i).n * (bits == 64 ? 2 : 1);
	}
	for (u32 i = 0; total > most && i < loop->nresults; i++)
		if (!stays_pinned(l, loop, i))
			words_of_tile(l, for_init(loop, i));
}

/* Makes phis with the incoming values `first` from the basic block `from`, makes v the tile of these phis, and returns
 * them. */
static LLVMValueRef *carry(struct lower *l, const struct value *v, const struct carried *first, LLVMBasicBlockRef from)
{
	struct tile *t = arena_new(&l->scratch, struct tile);
	LLVMValueRef *phis = arena_array(&l->scratch, LLVMValueRef, first->n);
	for (u32 i = 0; i < first->n; i++) {
		t->last = phis[i] = LLVMBuildPhi(l->b, LLVMTypeOf(first->at[i]), "");
		LLVMAddIncoming(phis[i], &first->at[i], &from, 1);
	}
	t->n = num_elems(v);
	if (first->as == AS_RUNS) {
		t->runs = runs_of_parts(l, phis, first->shape);
	} else if (first->as == AS_WORDS) {
		t->words = phis;
	} else {
		u32 told = told_bits(l, v), n = 0;
		t->at = arena_array(&l->scratch, LLVMValueRef, t->n);
		for (u32 r = 0; r < t->n; r++)
			t->at[r] = r & told ? NULL : phis[n++];
	}
	map_put(&l->tiles, v, t);
	return phis;
}

static void carry_on(LLVMValueRef *phis, const struct carried *next, LLVMBasicBlockRef from)
{
	for (u32 i = 0; i < next->n; i++)
		LLVMAddIncoming(phis[i], &next->at[i], &from, 1);
}

/* The first n operands of o in the form AS_ELEMENTS, as incoming values of the n values `to`. */
static struct carried *carried_operands(struct lower *l, const struct op *o, struct value **to, u32 n)
{
	struct carried *all = arena_array(&l->scratch, struct carried, n + 1u);
	for (u32 i = 0; i < n; i++)
		all[i] = carried(l, operand(o, i), to[i], AS_ELEMENTS, NULL);
	return all;
}

static struct value **results_of(struct lower *l, const struct op *o)
{
	struct value **results = arena_array(&l->scratch, struct value *, o->nresults + 1u);
	for (u32 i = 0; i < o->nresults; i++)
		results[i] = &o->results[i];
	return results;
}

/* Forbids LLVM to unroll the loop of this branch. For loops with num_stages 1: the tail of another loop, or by choice
 * of the kernel's author. Unrolling would gain nothing and lengthen the code. */
static void forbid_unrolling(struct lower *l, LLVMValueRef branch)
{
	static const char loop[] = "llvm.loop", disable[] = "llvm.loop.unroll.disable";
	LLVMMetadataRef text = LLVMMDStringInContext2(l->ctx, disable, sizeof disable - 1),
			self = LLVMTemporaryMDNode(l->ctx, NULL, 0);
	LLVMMetadataRef parts[] = {self, LLVMMDNodeInContext2(l->ctx, &text, 1)};
	LLVMMetadataRef node = LLVMMDNodeInContext2(l->ctx, parts, 2);
	LLVMMetadataReplaceAllUsesWith(self, node); /* loop metadata is distinct because it refers to itself */
	LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(l->ctx, loop, sizeof loop - 1),
			LLVMMetadataAsValue(l->ctx, node));
}

/* Calls carry for each of the n values `to`, with the incoming values first[i] from the basic block `from`. phis[i]:
 * the phis of value i. */
static void carry_all(struct lower *l, struct value **to, u32 n, const struct carried *first, LLVMBasicBlockRef from,
		      LLVMValueRef **phis)
{
	for (u32 i = 0; i < n; i++)
		if (first[i].as != AS_PINNED)
			phis[i] = carry(l, to[i], &first[i], from);
	for (u32 i = 0; i < n; i++)
		if (first[i].as == AS_ELEMENTS)
			tell_others(l, to[i], tile_of(l, to[i])->at);
}

/* Whether one of these may exceed the loop index's type: the index after the last iteration, the distance from the
 * first index to the end, which ptxas computes where it unrolls a loop, or, for a constant step, the end minus a
 * multiple of the step, which ptxas computes too (13.0, which unrolls by four, subtracts three steps). */
static bool index_may_wrap(const struct lower *l, const struct op *o)
{
	enum { MOST_UNROLLED = 8 }; /* of ptxas; with a margin for later versions */
	int bits = type_elem_bits(for_index(o)->type);
	i64 most = bits == 64 ? INT64_MAX : ((i64)1 << (bits - 1)) - 1, distance, known,
	    step = value_range(l->s->ranges, for_step(o))->max, first = value_range(l->s->ranges, for_lower(o))->min,
	    end = value_range(l->s->ranges, for_upper(o))->max;
	if (value_const_int(for_step(o), &known) && known > most / MOST_UNROLLED)
		return true;
	return !o->attr[ATTR_NO_WRAP] && (step > most || end > most - (step - 1) ||
					  __builtin_sub_overflow(end, first, &distance) || distance > most);
}

/* The index of the last iteration of a loop that runs at least once. A step of 0, for which there is no last
 * iteration, counts as 1. */
static LLVMValueRef last_index(struct lower *l, const struct op *o, LLVMValueRef lb, LLVMValueRef ub, LLVMValueRef step)
{
	LLVMValueRef one = LLVMConstInt(LLVMTypeOf(lb), 1, false), last = LLVMBuildSub(l->b, ub, one, "");
	if (value_range(l->s->ranges, for_step(o))->min < 1)
		step = LLVMBuildSelect(l->b, LLVMBuildICmp(l->b, LLVMIntSLT, step, one, ""), one, step, "");
	return LLVMBuildSub(l->b, last, LLVMBuildURem(l->b, LLVMBuildSub(l->b, last, lb, ""), step, ""), "");
}

/* Emits a loop with its test before each iteration, so that the phis of the carried values are also its results: a test
 * at the end would need further phis after the loop. ptxas rotates the loop, so this costs nothing. A loop that runs at
 * most once becomes a branch, with phis only after it. */
static void lower_for(struct lower *l, const struct op *o)
{
	const struct block *b = o->blocks[0];
	u32 n = o->nresults;
	bool once = loop_runs_once(o);
	LLVMBasicBlockRef head = once ? NULL : new_block(l->b), body = new_block(l->b), exit = new_block(l->b);
	LLVMValueRef lb = elem(l, for_lower(o), 0), ub = elem(l, for_upper(o), 0), step = elem(l, for_step(o), 0),
		     iv = lb;
	struct carried *first = arena_array(&l->scratch, struct carried, n + 1u),
		       *next = arena_array(&l->scratch, struct carried, n + 1u);
	LLVMValueRef **phis = arena_array(&l->scratch, LLVMValueRef *, n + 1u);
	struct value **results = results_of(l, o);
	choose_carried(l, o);
	for (u32 i = 0; i < n; i++) {
		first[i] = first_carried(l, o, i); /* emits packing or unpacking here, before the loop's branch */
		if (first[i].as == AS_PINNED)
			pass_pin(l, pin_down(l, for_init(o, i)), for_arg(o, i));
	}
	LLVMBasicBlockRef before = LLVMGetInsertBlock(l->b);
	/* If the index may wrap, the loop ends when the index equals the last index, instead of when the next index is
	 * not less than the end: ptxas moves constants from one side of such a comparison to the other, which is wrong
	 * if a sum wraps. */
	bool wraps = !once && index_may_wrap(l, o);
	LLVMValueRef any = wraps ? LLVMBuildICmp(l->b, LLVMIntSLT, lb, ub, "") : NULL, more = NULL;
	LLVMValueRef last = wraps ? last_index(l, o, lb, ub, step) : NULL;
	if (!once) {
		LLVMBuildBr(l->b, head);
		LLVMPositionBuilderAtEnd(l->b, head);
		iv = LLVMBuildPhi(l->b, LLVMTypeOf(lb), "");
		more = wraps ? LLVMBuildPhi(l->b, LLVMTypeOf(any), "") : NULL;
		carry_all(l, b->args + 1, n, first, before, phis);
		/* A result is the phi of the loop argument. It gets a copy of the struct tile: what the body adds to
		 * the argument's struct tile (elements unpacked from words) does not dominate the exit. */
		for (u32 i = 0; i < n; i++)
			if (first[i].as != AS_PINNED)
				map_put(&l->tiles, results[i],
					arena_dup(&l->scratch, map_get(&l->tiles, for_arg(o, i)), sizeof(struct tile)));
	}
	fill(l, for_index(o), iv);
	LLVMBuildCondBr(l->b, more ? more : LLVMBuildICmp(l->b, LLVMIntSLT, iv, ub, ""), body, exit);
	LLVMPositionBuilderAtEnd(l->b, body);
	if (once)
		carry_all(l, b->args + 1, n, first, before, phis);
	lower_block(l, b);
	for (u32 i = 0; i < n; i++)
		if (first[i].as != AS_PINNED)
			next[i] = carried(l, for_yielded(o, i), for_arg(o, i), first[i].as, first[i].shape);
	LLVMValueRef index = once ? NULL : LLVMBuildAdd(l->b, iv, step, "");
	LLVMValueRef again = wraps ? LLVMBuildICmp(l->b, LLVMIntNE, iv, last, "") : NULL;
	LLVMBasicBlockRef latch = LLVMGetInsertBlock(l->b);
	LLVMValueRef branch = LLVMBuildBr(l->b, once ? exit : head);
	if (!once) {
		if (o->attr[ATTR_STAGES] == 1)
			forbid_unrolling(l, branch);
		LLVMAddIncoming(iv, &lb, &before, 1);
		LLVMAddIncoming(iv, &index, &latch, 1);
		if (wraps) {
			LLVMAddIncoming(more, &any, &before, 1);
			LLVMAddIncoming(more, &again, &latch, 1);
		}
	}
	LLVMPositionBuilderAtEnd(l->b, exit);
	if (once)
		carry_all(l, results, n, first, before, phis);
	for (u32 i = 0; i < n; i++)
		if (first[i].as == AS_PINNED)
			pass_pin(l, pin_of(l, for_arg(o, i)), results[i]);
		else
			carry_on(phis[i], &next[i], latch);
}

static void lower_if(struct lower *l, const struct op *o)
{
	LLVMBasicBlockRef then = new_block(l->b), otherwise = new_block(l->b), arm[] = {then, otherwise}, end[2],
			  exit = new_block(l->b);
	struct value **results = results_of(l, o);
	struct carried *given[2];
	LLVMValueRef **phis = arena_array(&l->scratch, LLVMValueRef *, o->nresults + 1u);
	LLVMBuildCondBr(l->b, elem(l, operand(o, 0), 0), arm[0], arm[1]);
	for (u32 k = 0; k < 2; k++) {
		LLVMPositionBuilderAtEnd(l->b, arm[k]);
		lower_block(l, o->blocks[k]);
		given[k] = carried_operands(l, o->blocks[k]->last, results, o->nresults);
		end[k] = LLVMGetInsertBlock(l->b);
		LLVMBuildBr(l->b, exit);
	}
	LLVMPositionBuilderAtEnd(l->b, exit);
	carry_all(l, results, o->nresults, given[0], end[0], phis);
	for (u32 i = 0; i < o->nresults; i++)
		carry_on(phis[i], &given[1][i], end[1]);
}

static void lower_while(struct lower *l, const struct op *o)
{
	const struct block *before = o->blocks[0], *after = o->blocks[1];
	LLVMBasicBlockRef head = new_block(l->b), body = new_block(l->b), exit = new_block(l->b);
	LLVMValueRef **phis = arena_array(&l->scratch, LLVMValueRef *, o->noperands + 1u);
	const struct carried *first = carried_operands(l, o, before->args, o->noperands);
	LLVMBasicBlockRef from = LLVMGetInsertBlock(l->b);
	LLVMBuildBr(l->b, head);
	LLVMPositionBuilderAtEnd(l->b, head);
	carry_all(l, before->args, o->noperands, first, from, phis);
	lower_block(l, before);
	for (u32 i = 0; i < o->nresults; i++) {
		const struct tile *t = tile_of(l, operand(before->last, i + 1));
		set_tile(l, after->args[i], t->at, t->n);
		set_tile(l, &o->results[i], t->at, t->n);
	}
	LLVMBuildCondBr(l->b, elem(l, operand(before->last, 0), 0), body, exit);
	LLVMPositionBuilderAtEnd(l->b, body);
	lower_block(l, after);
	const struct carried *next = carried_operands(l, after->last, before->args, o->noperands);
	LLVMBasicBlockRef latch = LLVMGetInsertBlock(l->b);
	LLVMBuildBr(l->b, head);
	for (u32 i = 0; i < o->noperands; i++)
		carry_on(phis[i], &next[i], latch);
	LLVMPositionBuilderAtEnd(l->b, exit);
}

/* --- operations ---------------------------------------------------------------------------------------------- */

static void lower_assume(struct lower *l, const struct op *o)
{
	LLVMValueRef c = elem(l, operand(o, 0), 0);
	if (!type_is_tensor(operand(o, 0)->type))
		intrinsic(l, "llvm.assume", l->v, &c, 1);
}

static void lower_memdesc_index(struct lower *l, const struct op *o)
{
	const struct type *t = result(o)->type;
	i64 bytes = type_numel(t) * dtype_bytes(type_dtype(t));
	LLVMValueRef off = LLVMBuildMul(l->b, elem(l, operand(o, 1), 0), c_i32(l, bytes), "");
	fill(l, result(o), shared_at(l, elem(l, operand(o, 0), 0), off, 0));
}

static void lower_constant(struct lower *l, const struct op *o)
{
	LLVMTypeRef t = llvm_type(l, result(o)->type);
	LLVMValueRef c = LLVMConstInt(int_type(l, type_bits(t)), (u64)o->attr[ATTR_VALUE], false);
	fill(l, result(o), LLVMGetTypeKind(t) == LLVMIntegerTypeKind ? c : LLVMConstBitCast(c, t));
}

/* The result has the operand's only LLVM value (a scalar, or the address of a buffer) in each register. */
static void lower_same(struct lower *l, const struct op *o)
{
	fill(l, result(o), elem(l, operand(o, 0), 0));
}

static void lower_barrier(struct lower *l, const struct op *o)
{
	(o->attr[ATTR_WARP]        ? warp_barrier
	 : o->attr[ATTR_WARPGROUP] ? warpgroup_barrier
	 : o->attr[ATTR_CLUSTER]   ? cluster_barrier
				   : barrier)(l);
}

static void lower_fence(struct lower *l, const struct op *o)
{
	fence_async(l, o->attr[ATTR_GLOBAL]);
}

/* griddepcontrol (programmatic dependent launch). On targets without the instruction a grid starts only after preceding
 * grids end, so nothing is emitted. */
static void lower_grid_dependency(struct lower *l, const struct op *o)
{
	if (l->s->target->has_grid_dependencies)
		lower_ptx(l, o);
}

static void lower_local_alloc(struct lower *l, const struct op *o)
{
	fill(l, result(o), shared_base(l, o));
}

static void lower_return(struct lower *l, const struct op *o)
{
	(void)o;
	LLVMBuildRetVoid(l->b);
}

void lower_op(struct lower *l, const struct op *o)
{
	static lowering *const lowerings[IR_OPCODES] = {
		[IR_CONSTANT] = lower_constant,
		[IR_MAKE_RANGE] = lower_range,
		[IR_SPLAT] = lower_same,
		[IR_UNSPLAT] = lower_same,
		[IR_EXPAND_DIMS] = lower_rename,
		[IR_BROADCAST] = lower_rename,
		[IR_RESHAPE] = lower_rename,
		[IR_TRANS] = lower_rename,
		[IR_SPLIT] = lower_rename,
		[IR_JOIN] = lower_join,
		[IR_DIVSI] = lower_division,
		[IR_REMSI] = lower_division,
		[IR_LOAD] = lower_load,
		[IR_STORE] = lower_store,
		[IR_ATOMIC_RMW] = lower_atomic,
		[IR_ATOMIC_CAS] = lower_atomic,
		[IR_DOT] = lower_dot,
		[IR_REDUCE] = lower_reduce,
		[IR_SCAN] = lower_scan,
		[IR_MAP] = lower_map,
		[IR_GATHER] = lower_gather,
		[IR_HISTOGRAM] = lower_histogram,
		[IR_PROGRAM_ID] = lower_program,
		[IR_NUM_PROGRAMS] = lower_program,
		[IR_ASSERT] = lower_assert,
		[IR_PRINT] = lower_print,
		[IR_ASSUME] = lower_assume,
		[IR_BARRIER] = lower_barrier,
		[IR_INLINE_ASM] = lower_inline_asm,
		[IR_PURE_ASM] = lower_inline_asm,
		[IR_FOR] = lower_for,
		[IR_IF] = lower_if,
		[IR_WHILE] = lower_while,
		[IR_RETURN] = lower_return,
		[IR_CONVERT_LAYOUT] = lower_convert,
		[IR_LOCAL_ALLOC] = lower_local_alloc,
		[IR_LOCAL_LOAD] = lower_local_load,
		[IR_LOCAL_STORE] = lower_local_store,
		[IR_MEMDESC_INDEX] = lower_memdesc_index,
		[IR_MEMDESC_TRANS] = lower_same,
		[IR_CLUSTER_SIZE] = lower_cluster_size,
		[IR_WARP_GROUP_DOT] = lower_wgmma,
		[IR_WARP_GROUP_WAIT] = lower_wgmma_wait,
		[IR_PINGPONG_WAIT] = lower_turn,
		[IR_PINGPONG_ARRIVE] = lower_turn,
		[IR_ONE_THREAD] = lower_one_thread,
		[IR_PARTITION] = lower_partition,
		[IR_TMA_COPY] = lower_tma_copy,
		[IR_TMA_TENSOR_COPY] = lower_tma_tensor_copy,
		[IR_ARRIVE_BARRIER] = lower_arrive_barrier,
		[IR_FENCE_ASYNC] = lower_fence,
		[IR_ASYNC_COPY] = lower_async_copy,
		[IR_GRID_WAIT] = lower_grid_dependency,
		[IR_GRID_LAUNCH] = lower_grid_dependency,
	};
	debug_location(l, o->loc);
	if (lowerings[o->code])
		lowerings[o->code](l, o);
	else if (op_has(o, ELEM))
		lower_elementwise(l, o);
	else if (!op_has(o, END) && o->code != IR_DONE) /* the parent operation reads the terminator of a region */
		lower_ptx(l, o);
	for (u32 i = 0; i < o->nresults; i++)
		if (o->results[i].type->kind == TY_TOKEN)
			set_tile(l, &o->results[i], NULL, 0);
}

void lower_block(struct lower *l, const struct block *b)
{
	for (const struct op *o = b->first; o; o = o->next)
		if (o->code == IR_WARP_GROUP_DOT && o->attr[ATTR_REGISTER_GROUPS]) {
			op_vec run = operand_run(&l->scratch, o);
			for (u32 i = 0; i < run.len; i++)
				map_put(&l->deferred, run.at[i], run.at[i]);
		}
	for (const struct op *o = b->first; o; o = o->next)
		if (!map_get(&l->deferred, o))
			lower_op(l, o);
}

/* --- the kernel ---------------------------------------------------------------------------------------------- */

static void add_annotation(struct lower *l, const char *name, LLVMValueRef value)
{
	LLVMValueRef vals[] = {l->fn, LLVMMDStringInContext(l->ctx, name, (unsigned)strlen(name)), value};
	LLVMAddNamedMetadataOperand(l->mod, "nvvm.annotations", LLVMMDNodeInContext(l->ctx, vals, 3));
}

/* Marks parameter i as a tensor map: a struct of 128 bytes passed by value, which TMA reads in parameter space. */
static void pass_by_value(struct lower *l, u32 i)
{
	LLVMTypeRef t = LLVMArrayType2(l->i8, 128);
	LLVMAddAttributeAtIndex(l->fn, i + 1,
				LLVMCreateTypeAttribute(l->ctx, LLVMGetEnumAttributeKindForName("byval", 5), t));
	add_attribute(l->fn, i + 1, "align", 64);
	LLVMValueRef number = c_i32(l, i + 1);
	add_annotation(l, "grid_constant", LLVMMDNodeInContext(l->ctx, &number, 1));
}

LLVMValueRef number_below(struct lower *l, const char *name, int end)
{
	LLVMValueRef range[] = {c_i32(l, 0), c_i32(l, end)}, v = intrinsic(l, name, l->i32, NULL, 0);
	LLVMSetMetadata(v, LLVMGetMDKindIDInContext(l->ctx, "range", 5), LLVMMDNodeInContext(l->ctx, range, 2));
	return v;
}

/* The type of a parameter for Triton's launcher. */
static LLVMTypeRef foreign_type(struct lower *l, const struct abi_param *p)
{
	if (p->kind == ABI_PARAM)
		return memory_type(llvm_type(l, l->k->params[p->param].value->type));
	return p->kind == ABI_MAP ? LLVMPointerTypeInContext(l->ctx, 0)
				  : LLVMIntTypeInContext(l->ctx, MAX(8u, (u32)dtype_bits(p->dtype)));
}

/* Adds the function. Its parameters are those of the kernel and then the tensor maps; or those of Triton's launcher,
 * with two pointers of scratch memory at the end. */
static void add_function(struct lower *l)
{
	const struct kernel *k = l->k;
	u32 n = is_foreign(k) ? k->abi.len + ABI_SCRATCH_POINTERS : k->nparams + k->cuda.nmaps;
	LLVMTypeRef *params = arena_array(&l->scratch, LLVMTypeRef, n);
	l->number = arena_array(&l->scratch, u32, k->nparams);
	for (u32 i = is_foreign(k) ? 0 : k->nparams; i < n; i++)
		params[i] = i < k->abi.len ? foreign_type(l, &k->abi.at[i]) : LLVMPointerTypeInContext(l->ctx, 0);
	for (u32 i = 0; i < k->abi.len; i++)
		l->number[k->abi.at[i].param] = k->abi.at[i].kind == ABI_UNUSED ? l->number[k->abi.at[i].param] : i;
	for (u32 i = 0; i < k->nparams && !is_foreign(k); i++) {
		params[i] = memory_type(llvm_type(l, k->params[i].value->type));
		l->number[i] = i;
	}
	l->fn = LLVMAddFunction(l->mod, k->name, LLVMFunctionType(l->v, params, n, false));
	for (u32 i = k->nparams; i < n && !is_foreign(k); i++)
		pass_by_value(l, i);
	for (u32 i = 0; i < k->abi.len; i++)
		if (k->abi.at[i].kind == ABI_MAP)
			pass_by_value(l, i);
}

/* The kernel's parameter i. The base of a descriptor with a tensor map has no value. */
static LLVMValueRef kernel_argument(struct lower *l, u32 i)
{
	const struct kernel *k = l->k;
	LLVMTypeRef t = llvm_type(l, k->params[i].value->type);
	if (is_foreign(k) && k->abi.at[l->number[i]].kind == ABI_MAP)
		return LLVMGetPoison(t);
	LLVMValueRef p = LLVMGetParam(l->fn, l->number[i]);
	return t == l->i1 ? LLVMBuildTrunc(l->b, p, l->i1, "") : p;
}

static void begin_function(struct lower *l)
{
	const struct kernel *k = l->k;
	add_function(l);
	LLVMSetFunctionCallConv(l->fn, 71); /* ptx_kernel */
	add_annotation(l, "kernel", c_i32(l, 1));
	int threads = 32 * warps_of_block(k);
	add_annotation(l, "reqntidx", c_i32(l, threads));
	if (k->cuda.maxnreg)
		add_annotation(l, "maxnreg", c_i32(l, k->cuda.maxnreg));
	debug_begin(l);
	LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(l->ctx, l->fn, "entry");
	LLVMBasicBlockRef start = LLVMAppendBasicBlockInContext(l->ctx, l->fn, "start");
	LLVMPositionBuilderAtEnd(l->b, entry);
	for (u32 i = 0; i < k->nparams; i++)
		fill(l, k->params[i].value, kernel_argument(l, i));
	l->thread = number_below(l, "llvm.nvvm.read.ptx.sreg.tid.x", threads);
	if (k->cuda.cluster > 1) /* thread numbers continue from block to block of the cluster */
		l->thread = LLVMBuildOr(
			l->b, l->thread,
			LLVMBuildMul(l->b, number_below(l, "llvm.nvvm.read.ptx.sreg.cluster.ctarank", k->cuda.cluster),
				     c_i32(l, threads), ""),
			"");
	l->lane = LLVMBuildAnd(l->b, l->thread, c_i32(l, 31), "");
	l->warp = LLVMBuildLShr(l->b, l->thread, c_i32(l, LANE_BITS), "");
	LLVMValueRef br = LLVMBuildBr(l->b, start);
	LLVMPositionBuilderBefore(l->entry, br);
	LLVMPositionBuilderAtEnd(l->b, start);
}

static void dispose_builders(void *lower)
{
	struct lower *l = lower;
	debug_end(l);
	LLVMDisposeBuilder(l->b);
	LLVMDisposeBuilder(l->entry);
}

void lower_kernel(struct pass_state *s, LLVMModuleRef mod)
{
	LLVMContextRef ctx = LLVMGetModuleContext(mod);
	struct lower l = {.s = s, .k = s->k, .ctx = ctx, .mod = mod};
	struct cleanup builders;
	l.tiles.arena = l.positions.arena = l.pins.arena = l.pinned.arena = l.deferred.arena = &l.scratch;
	l.b = LLVMCreateBuilderInContext(ctx);
	l.entry = LLVMCreateBuilderInContext(ctx);
	cleanup_push(&builders, dispose_builders, &l);
	builders.of_llvm = true;
	l.i1 = LLVMInt1TypeInContext(ctx);
	l.i8 = LLVMInt8TypeInContext(ctx);
	l.i16 = LLVMInt16TypeInContext(ctx);
	l.i32 = LLVMInt32TypeInContext(ctx);
	l.i64 = LLVMInt64TypeInContext(ctx);
	l.f16 = LLVMHalfTypeInContext(ctx);
	l.f32 = LLVMFloatTypeInContext(ctx);
	l.f64 = LLVMDoubleTypeInContext(ctx);
	l.v = LLVMVoidTypeInContext(ctx);
	l.gptr = LLVMPointerTypeInContext(ctx, 1);
	if (s->k->shared_bytes) {
		LLVMValueRef g = LLVMAddGlobalInAddressSpace(l.mod, LLVMArrayType2(l.i8, 0), "shared", 3);
		LLVMSetLinkage(g, LLVMExternalLinkage);
		LLVMSetAlignment(g, (unsigned)shared_align(s));
		l.shared = g;
	}
	collect_tensor_maps(s->k);
	begin_function(&l);
	prefetch_tensor_maps(&l);
	lower_block(&l, s->k->body);
	cleanup_run(&builders);
	arena_free(&l.scratch);
}
