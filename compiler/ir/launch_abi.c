#include "ir/launch_abi.h"

void abi_add(struct kernel *k, enum abi_kind kind, u32 param, enum dtype d)
{
	if (k->ctx->abi)
		vec_push(k->ctx->arena, &k->abi, ((struct abi_param){.kind = kind, .param = param, .dtype = d}));
}

/* A parameter for a property of a descriptor, or an unused one. */
static i32 add_property(struct kernel *k, const char *of, const char *property, bool has)
{
	u32 n = k->nparams;
	if (!has) {
		abi_add(k, ABI_UNUSED, 0, DT_I1);
		return -1;
	}
	struct value *v = block_add_arg(k->ctx, k->body, type_scalar(k->ctx, DT_I1));
	v->name = arena_printf(k->ctx->arena, "%s.%s", of, property);
	k->params[k->nparams++] = (struct kernel_param){.name = v->name, .value = v, .is_unsigned = true};
	abi_add(k, ABI_PARAM, n, DT_I1);
	return (i32)n;
}

void abi_add_descriptor(struct kernel *k, u32 base, u32 rank, const i32 *block, bool properties, i32 *nan, i32 *tf32)
{
	const struct type *elem = k->params[base].value->type->elem;
	*nan = *tf32 = -1;
	if (k->ctx->abi == DESCRIPTORS_PARTS) {
		bool scalar = elem->kind == TY_SCALAR;
		for (u32 i = 0; i < 2 * rank; i++)
			abi_add(k, ABI_UNUSED, 0, DT_I64);
		*nan = add_property(k, k->params[base].name, "nan",
				    properties && scalar && dtype_is_float(elem->dtype));
		*tf32 = add_property(k, k->params[base].name, "tf32", properties && scalar && elem->dtype == DT_F32);
	}
	if (k->ctx->abi != DESCRIPTORS_MAPS)
		return;
	struct abi_param *p = &k->abi.at[k->abi.len - 1];
	p->kind = ABI_MAP;
	p->rank = rank;
	memcpy(p->block, block, rank * sizeof *block);
}

bool abi_needs_map(const struct kernel *k, const struct value *ptr)
{
	if (!k->abi.len)
		return false;
	while (ptr->def && (ptr->def->code == IR_ADDPTR || ptr->def->code == IR_SPLAT || op_is_shape(ptr->def)))
		ptr = operand(ptr->def, 0);
	for (u32 i = 0; i < k->abi.len; i++)
		if (k->abi.at[i].kind == ABI_MAP && k->params[k->abi.at[i].param].value == ptr)
			return true;
	return false;
}

/* --- tensor maps ------------------------------------------------------------------------------------------------- */

/* The box of a descriptor whose tensor map no copy reads. */
static void unused_box(struct abi_param *p)
{
	p->swizzle = 0;
	for (u32 i = 0; i < p->rank; i++)
		p->block[i] = MIN(p->block[i], 256);
}

static const char *fill_map(struct kernel *k, struct abi_param *p)
{
	const struct value *base = k->params[p->param].value;
	const struct tensor_map_param *found = NULL;
	if (k->params[p->param].writes)
		return "the kernel writes through it";
	for (const struct use *u = base->uses; u; u = u->next)
		if (u->user->code != IR_TMA_TENSOR_COPY)
			return "not all its loads are TMA copies";
	for (u32 i = 0; i < k->cuda.nmaps; i++) {
		const struct tensor_map_param *m = &k->cuda.maps[i];
		if (m->tensor != (i32)p->param)
			continue;
		if (found || m->moved)
			return "its loads need several tensor maps";
		found = m;
	}
	if (!found) {
		unused_box(p);
		return NULL;
	}
	p->swizzle = found->swizzle;
	p->block[0] = found->box[1];
	p->block[1] = found->box[0];
	return NULL;
}

const char *abi_fill_maps(struct kernel *k)
{
	for (u32 i = 0; i < k->abi.len; i++) {
		struct abi_param *p = &k->abi.at[i];
		const char *why = p->kind == ABI_MAP ? fill_map(k, p) : NULL;
		if (why)
			return arena_printf(k->ctx->arena, "'%s': %s", k->params[p->param].name, why);
	}
	return NULL;
}
