#include "analysis/register_pressure.h"

i64 registers_of(const struct pass_state *s, const struct value *v)
{
	const struct type *t = v->type;
	if (t->kind == TY_TOKEN)
		return 0;
	i64 elems = !type_is_tensor(t) ? 1
		    : t->layout        ? layout_num_regs(t->layout)
				       : type_numel(t) / (32 * s->num_warps);
	return MAX((elems * type_elem_bits(t) + 31) / 32, 1);
}

i64 carried_registers(const struct pass_state *s, const struct op *loop)
{
	i64 sum = 0;
	for (u32 i = 0; i < loop->nresults; i++)
		sum += registers_of(s, &loop->results[i]);
	return sum;
}
