/* Loop-invariant operands of dots stay in shared memory if the registers cannot hold them.
 *
 * mma.sync takes operands from registers, and a conversion before the loop would occupy them for the whole loop: the
 * queries of a decoding step, 16 × 512, take 128 registers in each thread. Instead, the operand is stored once, and
 * loaded right before the dot, a few elements at a time. */
#include "support/thresholds.h"
#include "layout/conversion.h"
#include "analysis/register_pressure.h"
#include "gpu/layout/mma.h"
#include "gpu/gpu_passes.h"

/* The conversion through shared memory, before the loop, that gives v its layout for dots only; or NULL. Operands of
 * multiply-adds go to shared memory anyway. */
static struct op *brought(const struct op *loop, const struct value *v)
{
	struct op *o = def_if(v, IR_CONVERT_LAYOUT);
	bool yes = o && value_defined_outside(v, loop->blocks[0]) &&
		   plan_conversion(operand(o, 0)->type->layout, v->type->layout).kind == CONVERSION_MEMORY;
	for (const struct use *u = v->uses; u && yes; u = u->next)
		yes = u->user->code == IR_DOT && u - u->user->operands < 2 && u->user->attr[ATTR_INSTR];
	return yes ? o : NULL;
}

static void keep_in_memory(struct pass_state *s, struct op *convert)
{
	const struct type *t = result(convert)->type;
	const struct layout *from = operand(convert, 0)->type->layout;
	const struct layout *mem = plan_shared(&s->ctx->layouts, from, t->layout, MAX(type_elem_bits(t), 8), false).mem;
	struct builder before = builder_before(s->ctx, convert);
	before.loc = convert->loc;
	struct value *buffer = store_shared(&before, operand(convert, 0), mem);
	buffer->name = result(convert)->name;
	while (result(convert)->uses) {
		const struct use *u = result(convert)->uses;
		struct builder at = builder_before(s->ctx, u->user);
		at.loc = u->user->loc;
		op_set_operand(u->user, (u32)(u - u->user->operands), build1(&at, IR_LOCAL_LOAD, t, buffer));
	}
	if (s->remarks)
		diag(s->diags, R_OPERAND_STAYS, convert->loc, (long long)type_numel(t) * dtype_bytes(type_dtype(t)),
		     (long long)registers_of(s, result(convert)));
	op_erase(convert);
}

static void visit(struct op *loop, void *arg)
{
	struct pass_state *s = arg;
	if (loop->code != IR_FOR || block_has(loop->blocks[0], op_is_loop))
		return;
	i64 held = carried_registers(s, loop) + REGISTERS_BESIDE_OPERANDS;
	for (const struct op *o = loop->blocks[0]->first; o; o = o->next)
		for (u32 i = 0; o->code == IR_DOT && i < 2; i++)
			held += brought(loop, operand(o, i)) ? registers_of(s, operand(o, i)) : 0;
	for (struct op *o = loop->blocks[0]->first; o; o = o->next)
		for (u32 i = 0; o->code == IR_DOT && i < 2 && held > most_registers(s, s->num_warps, 1); i++) {
			struct op *convert = brought(loop, operand(o, i));
			if (convert) {
				held -= registers_of(s, operand(o, i));
				keep_in_memory(s, convert);
			}
		}
}

void pass_promote_operands(struct pass_state *s)
{
	walk(s->k->body, visit, s);
}
