/* Pinned accumulators: PTX registers that hold a wgmma accumulator from before a loop until after it.
 *
 * LLVM does not know of these registers. Inline PTX declares, writes and reads them, and is marked as having effects,
 * so LLVM keeps its order. LLVM therefore cannot copy or read a register while an outstanding wgmma group writes to
 * it, and its passes need not carry a hundred values around a loop through each wgmma and each wait.
 *
 * An accumulator that a loop carries is pinned if its values form a chain: each value from the loop argument to the
 * yielded value has a single use, in the block of its definition, by an operation (wgmma, wait, inner loop) that makes
 * the next value. The registers then hold one value at a time. A value without a next value in the chain, such as the
 * loop's result, is copied to LLVM values where it is defined. */
#include "gpu/codegen/nvptx_internal.h"

/* The next value of the chain after v: the value that v's only use makes in v's registers. NULL if there is none. */
static const struct value *heir(struct lower *l, const struct value *v)
{
	const struct use *u = v->uses;
	if (!u || u->next || u->user->block != (v->def ? v->def->block : v->block))
		return NULL;
	const struct op *o = u->user, *loop = o->block->parent;
	u32 i = (u32)(u - o->operands);
	switch (o->code) {
	case IR_WARP_GROUP_DOT: return i == 2 ? result(o) : NULL;
	case IR_WARP_GROUP_WAIT: return i < o->nresults ? &o->results[i] : NULL;
	case IR_FOR: return i >= FOR_INITS && stays_pinned(l, o, i - FOR_INITS) ? for_arg(o, i - FOR_INITS) : NULL;
	case IR_YIELD: return loop->code == IR_FOR && stays_pinned(l, loop, i) ? for_arg(loop, i) : NULL;
	default: return NULL;
	}
}

/* Whether loop-carried value i of `loop` is such a chain from argument to yield, with at least one wgmma in it. */
static bool find_pinned(struct lower *l, const struct op *loop, u32 i)
{
	const struct value *v = for_arg(loop, i);
	for (bool dot = false;;) {
		const struct use *u = v->uses;
		if (!u || u->next || u->user->block != loop->blocks[0])
			return false;
		const struct op *o = u->user;
		u32 at = (u32)(u - o->operands);
		if (o->code == IR_YIELD)
			return dot && at == i;
		if (o->code == IR_FOR && at >= FOR_INITS && stays_pinned(l, o, at - FOR_INITS)) {
			v = &o->results[at - 3];
			dot = true;
		} else if ((v = heir(l, v))) {
			dot |= o->code == IR_WARP_GROUP_DOT;
		} else {
			return false;
		}
	}
}

bool stays_pinned(struct lower *l, const struct op *loop, u32 i)
{
	enum { YES = 1, NO = 2 };
	uintptr_t known = (uintptr_t)map_get(&l->pinned, for_arg(loop, i));
	if (!known) {
		known = find_pinned(l, loop, i) ? YES : NO;
		map_put(&l->pinned, for_arg(loop, i), (void *)known);
	}
	return known == YES;
}

const struct pin *pin_of(struct lower *l, const struct value *v)
{
	return map_get(&l->pins, v);
}

static const char *constraint(struct lower *l, const struct value *v, const char *output)
{
	struct strbuf s = {.arena = &l->scratch};
	for (u32 i = 0; i < num_accumulators(v); i++)
		sb_printf(&s, "%s%s%s", i ? "," : "", output, accumulator_letter(v));
	sb_puts(&s, ",~{memory}");
	return s.at;
}

const struct pin *pin_down(struct lower *l, const struct value *v)
{
	const struct pin *has = pin_of(l, v);
	if (has)
		return has;
	struct pin *h = arena_new(&l->scratch, struct pin);
	u32 n = num_accumulators(v);
	bool floats = *accumulator_letter(v) == 'f';
	u64 bits;
	h->name = arena_printf(&l->scratch, "%%acc%u_", l->npins++);
	const char *declared = arena_printf(&l->scratch, ".reg .%s %s<%u>;", floats ? "f32" : "b32", h->name, n);
	LLVMBuilderRef here = l->b;
	l->b = l->entry;
	inline_asm(l, declared, "~{memory}", ASM_EFFECT, l->v, NULL, 0);
	l->b = here;
	struct strbuf text = {.arena = &l->scratch};
	if (value_const_bits(v, &bits) && !bits) {
		for (u32 i = 0; i < n; i++)
			sb_printf(&text, "%smov.%s %s%u, %s;", i ? "\n\t" : "", floats ? "f32" : "b32", h->name, i,
				  floats ? "0f00000000" : "0");
		inline_asm(l, text.at, "~{memory}", ASM_CONVERGENT, l->v, NULL, 0);
		return h;
	}
	LLVMValueRef *words = arena_array(&l->scratch, LLVMValueRef, n);
	get_accumulators(l, v, words);
	for (u32 i = 0; i < n; i++)
		sb_printf(&text, "%smov.%s %s%u, $%u;", i ? "\n\t" : "", floats ? "f32" : "b32", h->name, i, i);
	inline_asm(l, text.at, constraint(l, v, ""), ASM_CONVERGENT, l->v, words, n);
	return h;
}

void pass_pin(struct lower *l, const struct pin *h, const struct value *v)
{
	if (heir(l, v)) {
		map_put(&l->pins, v, (void *)h);
		return;
	}
	struct strbuf text = {.arena = &l->scratch};
	for (u32 i = 0; i < num_accumulators(v); i++)
		sb_printf(&text, "%smov.%s $%u, %s%u;", i ? "\n\t" : "", *accumulator_letter(v) == 'f' ? "f32" : "b32",
			  i, h->name, i);
	set_accumulators(l, v, text.at, constraint(l, v, "="), NULL, 0);
}
