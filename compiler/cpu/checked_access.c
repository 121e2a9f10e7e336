/* Checked code (target.checks): each memory access calls cpu_call.check (cpu_abi.h). The runtime tests the addresses,
 * and performs the stores. */
#include "cpu/cpu_internal.h"
#include "cpu/cpu_abi.h"

static LLVMValueRef site_constant(struct cpu_codegen *h, const struct op *o, const struct cpu_site *s)
{
	LLVMValueRef shape[8], place = LLVMConstInt(h->i64, cpu_place(o->loc), false);
	for (u32 i = 0; i < ARRAY_LEN(shape); i++)
		shape[i] = cpu_i32(h, s->shape[i]);
	LLVMValueRef fields[] = {place,
				 cpu_i32(h, s->kind),
				 cpu_i32(h, s->bytes),
				 cpu_i32(h, s->param),
				 cpu_i32(h, s->lanes),
				 cpu_i32(h, s->each),
				 cpu_i32(h, s->step),
				 cpu_i32(h, s->rank),
				 LLVMConstArray2(h->i32, shape, ARRAY_LEN(shape))};
	LLVMValueRef c = LLVMConstStructInContext(h->ctx, fields, ARRAY_LEN(fields), false);
	return cpu_constant(h, c, ".site_");
}

/* Stores x to scratch memory for the call of the runtime, and returns the address. use: 0 addresses, 1 mask, 2 data;
 * each has separate memory. */
static LLVMValueRef spill(struct cpu_codegen *h, LLVMValueRef x, u32 use)
{
	enum { BYTES = 256 * 8 };
	if (!h->spilled[use])
		h->spilled[use] = cpu_scratch(h, BYTES);
	LLVMSetAlignment(LLVMBuildStore(h->b, x, h->spilled[use]), 1);
	return h->spilled[use];
}

/* i1: a load of successive elements from address p is outside the memory known to be valid (cpu_call.good), or is
 * misaligned. */
static LLVMValueRef needs_check(struct cpu_codegen *h, const struct cpu_site *s, LLVMValueRef p)
{
	LLVMValueRef at[2], bytes = cpu_i64(h, (i64)s->bytes * s->lanes);
	i64 good = s->param * (i64)sizeof(struct cpu_bytes);
	LLVMValueRef all = cpu_load_at(h, h->entry, h->ptr, h->call, offsetof(struct cpu_call, good));
	for (u32 i = 0; i < 2; i++) /* from, size */
		at[i] = cpu_load_at(h, h->entry, h->i64, all, good + 8 * i);
	LLVMValueRef offset = LLVMBuildSub(h->b, LLVMBuildPtrToInt(h->b, p, h->i64, ""), at[0], "");
	LLVMValueRef small = LLVMBuildICmp(h->b, LLVMIntULT, at[1], bytes, "");
	LLVMValueRef out = LLVMBuildICmp(h->b, LLVMIntUGT, offset, LLVMBuildSub(h->b, at[1], bytes, ""), "");
	LLVMValueRef left = LLVMBuildAnd(h->b, offset, cpu_i64(h, s->bytes - 1), "");
	LLVMValueRef split = LLVMBuildICmp(h->b, LLVMIntNE, left, cpu_i64(h, 0), "");
	return LLVMBuildOr(h->b, small, LLVMBuildOr(h->b, out, split, ""), "");
}

void cpu_check_access(struct cpu_codegen *h, const struct op *o, const struct checked *c)
{
	const struct type *t = operand(o, 0)->type, *elem = type_elem(t)->elem;
	u32 lanes = MAX(c->lanes, 1u);
	struct cpu_site s = {.kind = o->code == IR_LOAD    ? HOST_LOAD
				     : o->code == IR_STORE ? HOST_STORE
							   : HOST_ATOMIC,
			     .bytes = dtype_bytes(type_dtype(elem)),
			     .param = param_number(h->k, pointer_base(operand(o, 0))),
			     .lanes = (i32)lanes,
			     .each = lanes_of(c->p) > 0,
			     .step = 1,
			     .rank = type_is_tensor(t) ? t->rank : 0};
	for (int d = 0; d < s.rank; d++) {
		s.shape[d] = t->shape[d];
		if (c->at->along >= 0 && d > c->at->along)
			s.step *= t->shape[d];
	}
	bool may_be_good = s.kind == HOST_LOAD && !s.each && s.param >= 0;
	struct guarded good = begin_if(h->b, may_be_good ? needs_check(h, &s, c->p) : NULL);
	LLVMValueRef none = LLVMConstNull(h->ptr), mask = none;
	struct guarded active = begin_if(h->b, c->mask && !lanes_of(c->mask) ? c->mask : NULL);
	if (c->mask && lanes_of(c->mask))
		mask = spill(h, to_memory(h->b, c->mask), 1);
	LLVMValueRef site = site_constant(h, o, &s);
	LLVMValueRef number = s.rank ? cpu_element_number(h, t, c->at) : cpu_i64(h, -1);
	LLVMValueRef p = s.each ? spill(h, c->p, 0) : c->p;
	LLVMValueRef args[] = {site, number, p, mask, c->data ? spill(h, c->data, 2) : none};
	cpu_return_if(h, cpu_call_runtime(h, offsetof(struct cpu_call, check), h->i32, args, ARRAY_LEN(args)));
	end_if(h->b, &active);
	end_if(h->b, &good);
}
