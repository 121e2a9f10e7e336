/* Emits the computation of the number of rows or columns at the start of a tile that its uses need
 * (analysis/demanded_rows.h). Dots do not compute the other rows and columns (dot.c): there the accumulator keeps its
 * value. */
#include "cpu/cpu_internal.h"
#include "analysis/demanded_rows.h"

/* Whether v counts up by 1 along dimension d (if `counts`) or is constant along it, and is constant along all other
 * dimensions, and is rematerializable. */
static bool runs_along(struct cpu_codegen *h, const struct value *v, int d, bool counts)
{
	const struct axis_info *a = axis_proved(h->s->axis, v);
	for (int k = 0; k < v->type->rank; k++)
		if ((k == d && counts ? a->contiguity : a->constancy)[k] < v->type->shape[k])
			return false;
	return info_of(h, v)->free;
}

static bool is_first_part(const struct op *cmp, int d, const void *arg)
{
	struct cpu_codegen *h = (struct cpu_codegen *)arg;
	bool turned = !runs_along(h, operand(cmp, 0), d, true);
	return runs_along(h, operand(cmp, turned), d, true) && runs_along(h, operand(cmp, !turned), d, false);
}

/* Whether the rematerializable value v can be computed at this point of block b. */
static bool is_known(struct cpu_codegen *h, const struct value *v, const struct block *b, u32 walk)
{
	if (!type_is_tensor(v->type)) {
		const struct block *home = v->def ? v->def->block : v->block;
		bool constant = v->def && v->def->code == IR_CONSTANT;
		return constant || (info_of(h, v)->scalar && block_contains(home, b));
	}
	bool again = !first_visit(v, walk);
	for (u32 k = 0; !again && k < v->def->noperands; k++)
		if (!is_known(h, operand(v->def, k), b, walk))
			return false;
	return true;
}

LLVMValueRef cpu_demanded(struct cpu_codegen *h, const struct value *v, int dim, const struct block *b)
{
	struct tile_dim mask = demanded_under(v, dim, is_first_part, h);
	if (!mask.v || h->debug || !is_known(h, mask.v, b, begin_walk(h->k->ctx)))
		return NULL;
	struct at at = {.along = mask.dim, .lanes = 1};
	for (int d = 0; d < mask.v->type->rank; d++)
		at.i[d] = cpu_i64(h, 0);
	cpu_forget(h);
	LLVMValueRef n = cpu_count_true(h, mask.v, &at);
	cpu_forget(h);
	return n;
}
