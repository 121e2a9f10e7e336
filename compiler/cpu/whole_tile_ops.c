/* Operations on whole tiles in scratch memory: scans, gathers, histograms, joins, splits, maps, atomics, assertions,
 * prints and inline assembly. */
#include "cpu/cpu_internal.h"
#include "ir/inline_asm.h"

enum { MOST = 8 };

static u32 lanes_for(struct cpu_codegen *h, const struct type *t)
{
	u32 bytes = MAX((u32)type_elem_bits(t) / 8, 4);
	return MIN((u32)t->shape[t->rank - 1], (u32)h->s->target->vector_bytes / bytes);
}

static void made(struct cpu_codegen *h, const struct op *o)
{
	for (u32 i = 0; i < o->nresults; i++)
		info_of(h, &o->results[i])->made = true;
}

/* --- scans ------------------------------------------------------------------------------------------------------- */

/* x with each lane moved up by `by`: lane i gets lane i - by; lanes below `by` keep their elements. */
static LLVMValueRef shifted(struct cpu_codegen *h, LLVMValueRef x, u32 by)
{
	LLVMValueRef mask[64];
	u32 n = lanes_of(x);
	for (u32 i = 0; i < n; i++)
		mask[i] = cpu_i32(h, i < by ? i : i - by);
	return LLVMBuildShuffleVector(h->b, x, x, LLVMConstVector(mask, n), "");
}

static LLVMValueRef reversed(struct cpu_codegen *h, LLVMValueRef x)
{
	LLVMValueRef mask[64];
	u32 n = lanes_of(x);
	for (u32 i = 0; i < n; i++)
		mask[i] = cpu_i32(h, n - 1 - i);
	return LLVMBuildShuffleVector(h->b, x, x, LLVMConstVector(mask, n), "");
}

static LLVMValueRef lanes_from(struct cpu_codegen *h, u32 first, u32 lanes)
{
	LLVMValueRef x[64];
	for (u32 i = 0; i < lanes; i++)
		x[i] = LLVMConstInt(h->i1, i >= first, false);
	return LLVMConstVector(x, lanes);
}

/* Combines `before` and x by the scan's region, and replaces the lanes of x for which `where` is true. */
static void combine(struct cpu_codegen *h, const struct op *o, const LLVMValueRef *before, LLVMValueRef *x,
		    LLVMValueRef where)
{
	LLVMValueRef sum[MOST];
	cpu_combine(h, o, before, x, sum, lanes_of(x[0]));
	for (u32 i = 0; i < o->noperands; i++)
		x[i] = LLVMBuildSelect(h->b, where, sum[i], x[i], "");
}

/* A scan along the last dimension, by vectors: each is scanned in log2(lanes) steps, then combined with the last result
 * of the preceding vector. */
static void scan_vectors(struct cpu_codegen *h, const struct op *o, struct buffer *const *from, u32 lanes)
{
	const struct type *t = operand(o, 0)->type;
	int axis = t->rank - 1;
	u32 n = o->noperands;
	struct type one = *t;
	one.shape[axis] = 1;
	struct loops l;
	struct at at = cpu_loops(h, &one, 0, &l);
	LLVMValueRef zero = cpu_i64(h, 0), carried[MOST], x[MOST], before[MOST];
	LLVMBasicBlockRef start = LLVMGetInsertBlock(h->b);
	struct cpu_loop along = cpu_loop(h, zero, cpu_i64(h, t->shape[axis]), lanes, false);
	for (u32 i = 0; i < n; i++) {
		LLVMTypeRef elem = cpu_elem_type(h, operand(o, i)->type);
		LLVMValueRef none = LLVMConstNull(elem);
		carried[i] = LLVMBuildPhi(h->b, elem, "");
		LLVMAddIncoming(carried[i], &none, &start, 1);
	}
	bool reverse = o->attr[ATTR_REVERSE];
	at.i[axis] = reverse ? LLVMBuildSub(h->b, cpu_i64(h, t->shape[axis] - lanes), along.index, "") : along.index;
	at.along = axis;
	at.lanes = lanes;
	for (u32 i = 0; i < n; i++) {
		x[i] = buffer_load(h, from[i], operand(o, i)->type, &at);
		x[i] = reverse ? reversed(h, x[i]) : x[i];
	}
	for (u32 by = 1; by < lanes; by *= 2) {
		for (u32 i = 0; i < n; i++)
			before[i] = shifted(h, x[i], by);
		combine(h, o, before, x, lanes_from(h, by, lanes));
	}
	for (u32 i = 0; i < n; i++)
		before[i] = cpu_spread(h, carried[i], lanes);
	LLVMValueRef more = LLVMBuildICmp(h->b, LLVMIntNE, along.index, zero, "");
	combine(h, o, before, x, cpu_spread(h, more, lanes));
	LLVMBasicBlockRef end = LLVMGetInsertBlock(h->b);
	for (u32 i = 0; i < n; i++) {
		LLVMValueRef last = cpu_lane(h, x[i], lanes - 1);
		LLVMAddIncoming(carried[i], &last, &end, 1);
		x[i] = reverse ? reversed(h, x[i]) : x[i];
		buffer_store(h, buffer_of(h, &o->results[i]), o->results[i].type, &at, x[i]);
	}
	cpu_loop_end(h, &along);
	cpu_loops_end(h, &l);
}

/* A scan. scan_vectors is for the last dimension and regions that can be emitted for vectors (region_is_elementwise).
 * Otherwise elements are combined with the result at the preceding index along the axis, read from memory. */
static void emit_scan(struct cpu_codegen *h, const struct op *o)
{
	const struct type *t = operand(o, 0)->type;
	int axis = (int)o->attr[ATTR_AXIS];
	i64 length = t->shape[axis];
	struct type one = *t;
	one.shape[axis] = 1;
	struct loops l;
	struct buffer *from[MOST];
	for (u32 i = 0; i < o->noperands; i++)
		from[i] = cpu_in_memory(h, operand(o, i));
	u32 lanes = region_is_elementwise(o->blocks[0]) ? lanes_for(h, t) : 0;
	if (axis == t->rank - 1 && lanes >= 4) {
		scan_vectors(h, o, from, lanes);
		return;
	}
	lanes = axis != t->rank - 1 && lanes > 1 ? lanes : 0;
	struct at at = cpu_loops(h, &one, lanes, &l);
	struct cpu_loop along = cpu_loop(h, cpu_i64(h, 0), cpu_i64(h, length), 1, false);
	bool reverse = o->attr[ATTR_REVERSE];
	LLVMValueRef here = reverse ? LLVMBuildSub(h->b, cpu_i64(h, length - 1), along.index, "") : along.index,
		     x[MOST];
	struct at before = at;
	at.i[axis] = here;
	before.i[axis] = LLVMBuildAdd(h->b, here, cpu_i64(h, reverse ? 1 : -1), "");
	for (u32 i = 0; i < o->noperands; i++)
		x[i] = buffer_load(h, from[i], operand(o, i)->type, &at);
	LLVMBasicBlockRef start = new_block(h->b), more = new_block(h->b), end = new_block(h->b);
	LLVMBuildCondBr(h->b, LLVMBuildICmp(h->b, LLVMIntEQ, along.index, cpu_i64(h, 0), ""), start, more);
	LLVMPositionBuilderAtEnd(h->b, start);
	for (u32 i = 0; i < o->nresults; i++)
		buffer_store(h, buffer_of(h, &o->results[i]), o->results[i].type, &at, x[i]);
	LLVMBuildBr(h->b, end);
	LLVMPositionBuilderAtEnd(h->b, more);
	LLVMValueRef sum[MOST];
	for (u32 i = 0; i < o->noperands; i++)
		sum[i] = buffer_load(h, buffer_of(h, &o->results[i]), o->results[i].type, &before);
	cpu_combine(h, o, sum, x, sum, lanes);
	for (u32 i = 0; i < o->nresults; i++)
		buffer_store(h, buffer_of(h, &o->results[i]), o->results[i].type, &at, sum[i]);
	LLVMBuildBr(h->b, end);
	LLVMPositionBuilderAtEnd(h->b, end);
	cpu_loop_end(h, &along);
	cpu_loops_end(h, &l);
}

/* --- moving elements --------------------------------------------------------------------------------------------- */

static void emit_gather(struct cpu_codegen *h, const struct op *o)
{
	const struct type *t = result(o)->type, *source = operand(o, 0)->type;
	int axis = (int)o->attr[ATTR_AXIS];
	struct buffer *from = cpu_in_memory(h, operand(o, 0)), *to = buffer_of(h, result(o));
	struct loops l;
	struct at at = cpu_loops(h, t, 0, &l), there = at;
	LLVMValueRef index = LLVMBuildSExtOrBitCast(h->b, cpu_eval(h, operand(o, 1), &at), h->i64, "");
	there.i[axis] = LLVMBuildAnd(h->b, index, cpu_i64(h, source->shape[axis] - 1), "");
	buffer_store(h, to, t, &at, buffer_load(h, from, source, &there));
	cpu_loops_end(h, &l);
}

static void emit_histogram(struct cpu_codegen *h, const struct op *o)
{
	const struct type *t = operand(o, 0)->type, *bins = result(o)->type;
	struct buffer *to = buffer_of(h, result(o));
	LLVMBuildMemSet(h->b, to->at, LLVMConstInt(h->i8, 0, false), cpu_i64(h, (i64)to->bytes), 4);
	struct loops l;
	struct at at = cpu_loops(h, t, 0, &l);
	LLVMValueRef bin = cpu_eval(h, operand(o, 0), &at);
	LLVMValueRef ok = LLVMBuildICmp(h->b, LLVMIntULT, bin, cpu_i32(h, bins->shape[0]), "");
	if (o->noperands > 1)
		ok = LLVMBuildAnd(h->b, ok, cpu_eval(h, operand(o, 1), &at), "");
	struct guarded g = begin_if(h->b, ok);
	struct at there = {.i = {LLVMBuildZExt(h->b, bin, h->i64, "")}, .along = -1};
	LLVMValueRef n = buffer_load(h, to, bins, &there);
	buffer_store(h, to, bins, &there, LLVMBuildAdd(h->b, n, cpu_i32(h, 1), ""));
	end_if(h->b, &g);
	cpu_loops_end(h, &l);
}

static void emit_join(struct cpu_codegen *h, const struct op *o)
{
	const struct type *t = operand(o, 0)->type, *pair = result(o)->type;
	struct loops l;
	u32 lanes = lanes_for(h, t);
	struct at at = cpu_loops(h, t, lanes, &l);
	for (u32 k = 0; k < 2; k++) {
		struct at there = at;
		there.i[t->rank] = cpu_i64(h, k);
		LLVMValueRef x = cpu_eval(h, operand(o, k), &at);
		buffer_store(h, buffer_of(h, result(o)), pair, &there, x);
	}
	cpu_loops_end(h, &l);
}

static void emit_split(struct cpu_codegen *h, const struct op *o)
{
	const struct type *t = o->results[0].type, *pair = operand(o, 0)->type;
	struct loops l;
	struct buffer *from = cpu_in_memory(h, operand(o, 0));
	struct at at = cpu_loops(h, t, lanes_for(h, t), &l);
	for (u32 k = 0; k < 2; k++) {
		struct at there = at;
		there.i[t->rank] = cpu_i64(h, k);
		LLVMValueRef x = buffer_load(h, from, pair, &there);
		buffer_store(h, buffer_of(h, &o->results[k]), t, &at, x);
	}
	cpu_loops_end(h, &l);
}

static void emit_map(struct cpu_codegen *h, const struct op *o)
{
	const struct type *t = operand(o, 0)->type;
	LLVMValueRef *args = arena_array(&h->scratch, LLVMValueRef, o->noperands),
		     *out = arena_array(&h->scratch, LLVMValueRef, o->nresults);
	struct loops l;
	bool wide = region_is_elementwise(o->blocks[0]);
	u32 lanes = wide ? lanes_for(h, t) : 0;
	lanes = lanes > 1 ? lanes : 0;
	struct at at = cpu_loops(h, t, lanes, &l);
	for (u32 i = 0; i < o->noperands; i++)
		args[i] = cpu_spread(h, cpu_eval(h, operand(o, i), &at), lanes);
	cpu_region(h, o->blocks[0], args, out, lanes);
	for (u32 i = 0; i < o->nresults; i++)
		buffer_store(h, buffer_of(h, &o->results[i]), o->results[i].type, &at, out[i]);
	cpu_loops_end(h, &l);
}

/* Atomics and volatile loads, one element after another. */
static void emit_each(struct cpu_codegen *h, const struct op *o)
{
	const struct value *v = result(o);
	u32 lanes = cpu_wide_atomic(h, o);
	struct loops l;
	if (lanes) {
		cpu_emit_wide_atomic(h, o, lanes);
		return;
	}
	struct at at = cpu_loops(h, v->type, 0, &l);
	LLVMValueRef x = o->code == IR_LOAD ? cpu_eval_load(h, o, &at) : cpu_eval_atomic(h, o, &at);
	buffer_store(h, buffer_of(h, v), v->type, &at, x);
	cpu_loops_end(h, &l);
}

static void emit_unsplat(struct cpu_codegen *h, const struct op *o)
{
	struct at at = {.along = -1};
	for (int d = 0; d < MAX_RANK; d++)
		at.i[d] = cpu_i64(h, 0);
	cpu_forget(h);
	cpu_set_scalar(h, result(o), cpu_eval(h, operand(o, 0), &at));
	cpu_forget(h);
}

/* --- reports ----------------------------------------------------------------------------------------------------- */

static void emit_assert(struct cpu_codegen *h, const struct op *o)
{
	if (!h->s->options.debug || o->code == IR_ASSUME)
		return;
	const struct type *t = operand(o, 0)->type;
	struct loops l;
	struct at at = cpu_loops(h, t, 0, &l);
	LLVMValueRef bad = LLVMBuildNot(h->b, cpu_eval(h, operand(o, 0), &at), "");
	cpu_fail_at(h, bad, o, cpu_assert_text(h, o), t, &at);
	cpu_loops_end(h, &l);
}

static LLVMValueRef constant_struct(struct cpu_codegen *h, LLVMValueRef *fields, u32 n, const char *name)
{
	LLVMValueRef c = LLVMConstStructInContext(h->ctx, fields, n, false);
	LLVMValueRef g = LLVMAddGlobal(h->mod, LLVMTypeOf(c), arena_printf(&h->scratch, "%s%u", name, h->nstrings++));
	LLVMSetInitializer(g, c);
	LLVMSetLinkage(g, LLVMInternalLinkage);
	return g;
}

static LLVMValueRef print_plan(struct cpu_codegen *h, const struct op *o)
{
	struct cpu_print p = {.place = cpu_place(o->loc), .hex = (i32)o->attr[ATTR_HEX], .n = (i32)o->noperands};
	for (u32 k = 0; k < o->noperands; k++) {
		const struct type *t = operand(o, k)->type;
		struct cpu_print_operand *q = &p.at[k];
		q->dtype = (u8)type_dtype(t);
		q->is_signed = o->attr[ATTR_SIGNED] >> k & 1;
		q->is_pointer = type_is_ptr(t);
		q->rank = (u8)t->rank;
		for (int d = 0; d < t->rank; d++)
			q->shape[d] = t->shape[d];
	}
	LLVMValueRef bytes = LLVMConstStringInContext2(h->ctx, (const char *)&p.hex,
						       sizeof p - offsetof(struct cpu_print, hex), true);
	LLVMValueRef fields[] = {LLVMConstInt(h->i64, p.place, false), cpu_string(h, o->text ? o->text : ""), bytes};
	return constant_struct(h, fields, 3, ".print_");
}

/* The address of the elements of a tile in scratch memory; a scalar is stored there first. */
static LLVMValueRef elements_of(struct cpu_codegen *h, const struct value *v)
{
	if (type_is_tensor(v->type))
		return cpu_in_memory(h, v)->at;
	LLVMValueRef p = cpu_scratch(h, 8);
	LLVMBuildStore(h->b, to_memory(h->b, cpu_scalar(h, v)), p);
	return p;
}

static void store_pointer(struct cpu_codegen *h, LLVMValueRef data, u32 k, LLVMValueRef p)
{
	LLVMBuildStore(h->b, p, gep(h->b, data, h->ptr, cpu_i64(h, k)));
}

static void emit_print(struct cpu_codegen *h, const struct op *o)
{
	LLVMValueRef data = cpu_scratch(h, 8 * MOST);
	for (u32 k = 0; k < o->noperands; k++)
		store_pointer(h, data, k, elements_of(h, operand(o, k)));
	LLVMValueRef args[] = {print_plan(h, o), data};
	cpu_call_runtime(h, offsetof(struct cpu_call, print), h->v, args, 2);
}

static LLVMValueRef asm_constant(struct cpu_codegen *h, const struct op *o)
{
	u32 n = o->nresults + o->noperands;
	char *bits = arena_alloc(&h->scratch, n + 1u);
	u64 elements = 1;
	for (int d = 0; d < o->results[0].type->rank; d++)
		elements *= (u64)o->results[0].type->shape[d];
	for (u32 k = 0; k < n; k++)
		bits[k] = (char)type_elem_bits(k < o->nresults ? o->results[k].type
							       : operand(o, k - o->nresults)->type);
	bits[n] = 0;
	LLVMValueRef text = cpu_string(h, o->text);
	LLVMValueRef constraints = cpu_string(h, (const char *)(uintptr_t)o->attr[ATTR_CONSTRAINTS]);
	LLVMValueRef sizes = cpu_string(h, bits);
	/* struct cpu_asm */
	LLVMValueRef fields[] = {LLVMConstInt(h->i64, cpu_place(o->loc), false),
				 text,
				 constraints,
				 sizes,
				 LLVMConstInt(h->i64, elements, false),
				 cpu_i32(h, (i32)o->attr[ATTR_PACK]),
				 cpu_i32(h, (i32)o->nresults),
				 cpu_i32(h, (i32)o->noperands)};
	return constant_struct(h, fields, ARRAY_LEN(fields), ".asm_");
}

static void emit_unknown_asm(struct cpu_codegen *h, const struct op *o)
{
	LLVMValueRef data = cpu_scratch(h, 8 * (o->nresults + o->noperands));
	LLVMValueRef *made = arena_array(&h->scratch, LLVMValueRef, o->nresults);
	for (u32 k = 0; k < o->noperands; k++)
		store_pointer(h, data, o->nresults + k, elements_of(h, operand(o, k)));
	for (u32 k = 0; k < o->nresults; k++) {
		const struct value *v = &o->results[k];
		made[k] = type_is_tensor(v->type) ? buffer_of(h, v)->at : cpu_scratch(h, 8);
		store_pointer(h, data, k, made[k]);
	}
	LLVMValueRef args[] = {asm_constant(h, o), data};
	cpu_return_if(h, cpu_call_runtime(h, offsetof(struct cpu_call, assembly), h->i32, args, 2));
	for (u32 k = 0; k < o->nresults; k++) {
		const struct value *v = &o->results[k];
		if (type_is_tensor(v->type))
			continue;
		LLVMTypeRef t = cpu_elem_type(h, v->type);
		LLVMValueRef x = LLVMBuildLoad2(h->b, memory_type(t), made[k], "");
		cpu_set_scalar(h, v, t == h->i1 ? LLVMBuildTrunc(h->b, x, t, "") : x);
	}
}

/* Inline assembly. Known texts have equivalents: clock registers read the CPU's cycle counter, and %smid is 0. Other
 * texts run in the runtime's PTX simulator (runtime/device/inline_asm_run.h). */
static void emit_asm(struct cpu_codegen *h, const struct op *o)
{
	enum asm_source source = inline_asm_source(o);
	if (source == ASM_UNKNOWN || o->nresults != 1) {
		emit_unknown_asm(h, o);
		return;
	}
	LLVMValueRef x =
		source == ASM_SM ? cpu_i64(h, 0) : call_intrinsic(h->b, "llvm.readcyclecounter", NULL, 0, NULL, 0);
	const struct value *v = result(o);
	x = LLVMBuildTruncOrBitCast(h->b, x, cpu_elem_type(h, v->type), "");
	if (!type_is_tensor(v->type)) {
		cpu_set_scalar(h, v, x);
		return;
	}
	struct loops l;
	struct at at = cpu_loops(h, v->type, 0, &l);
	buffer_store(h, buffer_of(h, v), v->type, &at, x);
	cpu_loops_end(h, &l);
}

void cpu_whole(struct cpu_codegen *h, const struct op *o)
{
	switch (o->code) {
	case IR_SCAN: emit_scan(h, o); break;
	case IR_GATHER: emit_gather(h, o); break;
	case IR_HISTOGRAM: emit_histogram(h, o); break;
	case IR_JOIN: emit_join(h, o); break;
	case IR_SPLIT: emit_split(h, o); break;
	case IR_MAP: emit_map(h, o); break;
	case IR_LOAD:
	case IR_ATOMIC_RMW:
	case IR_ATOMIC_CAS: emit_each(h, o); break;
	case IR_UNSPLAT: emit_unsplat(h, o); return;
	case IR_ASSERT:
	case IR_ASSUME: emit_assert(h, o); return;
	case IR_PRINT: emit_print(h, o); return;
	case IR_INLINE_ASM:
	case IR_PURE_ASM: emit_asm(h, o); break;
	default: tl_unreachable("operation on whole tiles");
	}
	for (u32 i = 0; i < o->nresults; i++)
		if (!type_is_tensor(o->results[i].type))
			return;
	made(h, o);
}
