/* Kernel entry, blocks and control flow, and the memory of tiles. */
#include "cpu/cpu_internal.h"

/* --- scalars and memory ------------------------------------------------------------------------------------------ */

LLVMValueRef cpu_scalar(struct cpu_codegen *h, const struct value *v)
{
	u64 bits;
	const struct op *c = v->def;
	if (c && c->code == IR_CONSTANT) {
		const struct type *elem = type_elem(v->type);
		LLVMTypeRef t = cpu_elem_type(h, elem);
		bits = (u64)c->attr[ATTR_VALUE];
		u32 width = (u32)type_elem_bits(elem);
		LLVMValueRef x = LLVMConstInt(LLVMIntTypeInContext(h->ctx, width), bits, false);
		if (type_is_ptr(elem))
			return LLVMConstIntToPtr(x, t);
		return LLVMGetTypeKind(t) == LLVMIntegerTypeKind ? x : LLVMConstBitCast(x, t);
	}
	LLVMValueRef x = info_of(h, v)->scalar;
	tl_assert(x);
	return x;
}

void cpu_set_scalar(struct cpu_codegen *h, const struct value *v, LLVMValueRef x)
{
	info_of(h, v)->scalar = x;
}

LLVMValueRef cpu_scratch(struct cpu_codegen *h, u64 bytes)
{
	LLVMValueRef at = LLVMConstInt(h->i64, h->bytes, false);
	h->bytes += (bytes + 63) & ~63ull;
	return gep(h->entry, h->memory, h->i8, at);
}

/* Type-based alias information: the memory of each tile has a type of its own. */
LLVMValueRef cpu_new_mark(struct cpu_codegen *h)
{
	const char *name = arena_printf(&h->scratch, "tile %u", h->nmarks++);
	LLVMMetadataRef zero = LLVMValueAsMetadata(cpu_i64(h, 0));
	LLVMMetadataRef root = LLVMMDStringInContext2(h->ctx, "tiles", strlen("tiles"));
	root = LLVMMDNodeInContext2(h->ctx, &root, 1);
	LLVMMetadataRef type[] = {LLVMMDStringInContext2(h->ctx, name, strlen(name)), root, zero};
	LLVMMetadataRef node = LLVMMDNodeInContext2(h->ctx, type, ARRAY_LEN(type)), tag[] = {node, node, zero};
	return LLVMMetadataAsValue(h->ctx, LLVMMDNodeInContext2(h->ctx, tag, ARRAY_LEN(tag)));
}

void cpu_mark(struct cpu_codegen *h, const struct buffer *b, LLVMValueRef access)
{
	LLVMSetMetadata(access, LLVMGetMDKindIDInContext(h->ctx, "tbaa", 4), b->mark);
}

struct buffer *buffer_new(struct cpu_codegen *h, const struct value *v)
{
	const struct type *t = v->type;
	struct buffer *b = arena_new(&h->scratch, struct buffer);
	*b = (struct buffer){.elem = memory_type(cpu_elem_type(h, t)), .operand = DT_COUNT};
	int inner = t->rank ? cpu_inner(h, v) : 0;
	i64 n = t->rank ? t->shape[inner] : 1;
	b->stride[inner] = 1;
	for (int d = t->rank - 1; d >= 0; d--)
		if (d != inner) {
			b->stride[d] = n;
			n *= t->shape[d];
		}
	b->bytes = (u64)n * (u64)dtype_bytes(type_dtype(t));
	b->at = cpu_scratch(h, b->bytes);
	b->mark = cpu_new_mark(h);
	return b;
}

struct buffer *buffer_of(struct cpu_codegen *h, const struct value *v)
{
	struct info *i = info_of(h, v);
	if (!i->buffer)
		i->buffer = buffer_new(h, v);
	return i->buffer;
}

static void copy_buffer(struct cpu_codegen *h, const struct buffer *to, const struct buffer *from)
{
	tl_assert(!memcmp(from->stride, to->stride, sizeof to->stride));
	if (to != from)
		LLVMBuildMemCpy(h->b, to->at, 64, from->at, 64, cpu_i64(h, (i64)from->bytes));
}

void cpu_store_tile(struct cpu_codegen *h, const struct value *v, struct buffer *to)
{
	const struct info *i = info_of(h, v);
	if (i->made && !memcmp(i->buffer->stride, to->stride, sizeof to->stride))
		copy_buffer(h, to, i->buffer);
	else
		cpu_compute(h, v, to, 0);
}

struct buffer *cpu_in_memory(struct cpu_codegen *h, const struct value *v)
{
	struct info *i = info_of(h, v);
	if (i->made)
		return i->buffer;
	struct buffer *b = buffer_new(h, v);
	cpu_compute(h, v, b, 0);
	return b;
}

/* --- failures ---------------------------------------------------------------------------------------------------- */

LLVMValueRef cpu_constant(struct cpu_codegen *h, LLVMValueRef c, const char *prefix)
{
	const char *name = arena_printf(&h->scratch, "%s%u", prefix, h->nstrings++);
	return add_constant(h->mod, c, name, LLVMPrivateLinkage, 0);
}

LLVMValueRef cpu_string(struct cpu_codegen *h, const char *text)
{
	return cpu_constant(h, LLVMConstStringInContext2(h->ctx, text, strlen(text), false), ".text_");
}

LLVMValueRef cpu_element_number(struct cpu_codegen *h, const struct type *t, const struct at *at)
{
	LLVMValueRef sum = cpu_i64(h, 0);
	for (int d = 0; d < t->rank; d++)
		sum = LLVMBuildAdd(h->b, LLVMBuildMul(h->b, sum, cpu_i64(h, t->shape[d]), ""), at->i[d], "");
	return sum;
}

static LLVMValueRef shape_constant(struct cpu_codegen *h, const struct type *t)
{
	LLVMValueRef sizes[MAX_RANK];
	for (int d = 0; d < t->rank; d++)
		sizes[d] = cpu_i32(h, t->shape[d]);
	return cpu_constant(h, LLVMConstArray2(h->i32, sizes, (u64)t->rank), ".shape_");
}

LLVMValueRef cpu_call_runtime(struct cpu_codegen *h, size_t function, LLVMTypeRef ret, const LLVMValueRef *args, u32 n)
{
	LLVMValueRef all[7] = {h->call, h->pid};
	LLVMTypeRef types[ARRAY_LEN(all)];
	tl_assert(n + 2 <= ARRAY_LEN(all));
	memcpy(all + 2, args, n * sizeof *all);
	for (u32 i = 0; i < n + 2; i++)
		types[i] = LLVMTypeOf(all[i]);
	LLVMValueRef f = cpu_load_at(h, h->b, h->ptr, h->call, (i64)function);
	return LLVMBuildCall2(h->b, LLVMFunctionType(ret, types, n + 2, false), f, all, n + 2, "");
}

void cpu_return_if(struct cpu_codegen *h, LLVMValueRef failed)
{
	LLVMBasicBlockRef end = new_block(h->b), on = new_block(h->b);
	LLVMBuildCondBr(h->b, LLVMBuildICmp(h->b, LLVMIntNE, failed, cpu_i32(h, 0), ""), end, on);
	LLVMPositionBuilderAtEnd(h->b, end);
	LLVMBuildRet(h->b, cpu_i32(h, 1));
	LLVMPositionBuilderAtEnd(h->b, on);
}

void cpu_fail_at(struct cpu_codegen *h, LLVMValueRef bad, const struct op *o, const char *text, const struct type *t,
		  const struct at *at)
{
	LLVMBasicBlockRef failed = new_block(h->b), on = new_block(h->b);
	LLVMBuildCondBr(h->b, bad, failed, on);
	LLVMPositionBuilderAtEnd(h->b, failed);
	LLVMValueRef number = t ? cpu_element_number(h, t, at) : cpu_i64(h, -1);
	LLVMValueRef shape = t ? shape_constant(h, t) : LLVMConstNull(h->ptr), name = cpu_string(h, text);
	LLVMValueRef args[] = {LLVMConstInt(h->i64, cpu_place(o->loc), false), number, shape,
			       cpu_i32(h, t ? t->rank : 0), name};
	cpu_call_runtime(h, offsetof(struct cpu_call, fail), h->v, args, ARRAY_LEN(args));
	LLVMBuildRet(h->b, cpu_i32(h, 1));
	LLVMPositionBuilderAtEnd(h->b, on);
}

void cpu_fail_if(struct cpu_codegen *h, LLVMValueRef bad, const struct op *o, const char *text)
{
	cpu_fail_at(h, bad, o, text, NULL, NULL);
}

/* --- control flow ------------------------------------------------------------------------------------------------ */

static bool is_tile(const struct value *v)
{
	return type_is_tensor(v->type);
}

static void set_made(struct cpu_codegen *h, const struct value *v, struct buffer *b)
{
	struct info *i = info_of(h, v);
	i->buffer = b;
	i->made = true;
}

/* Stores each tile from[i] to memory to[i], if not NULL, as if all copies ran at the same time: a source whose memory
 * is the destination of another copy is saved first. */
static void move_tiles(struct cpu_codegen *h, struct value **from, struct buffer **to, u32 n)
{
	struct buffer **source = arena_array(&h->scratch, struct buffer *, n + 1u);
	for (u32 i = 0; i < n; i++) {
		source[i] = NULL;
		if (!to[i] || !info_of(h, from[i])->made)
			continue;
		source[i] = info_of(h, from[i])->buffer;
		for (u32 k = 0; k < n; k++)
			if (k != i && to[k] == source[i]) {
				source[i] = buffer_new(h, from[i]);
				copy_buffer(h, source[i], to[k]);
				break;
			}
	}
	for (u32 i = 0; i < n; i++)
		if (source[i])
			copy_buffer(h, to[i], source[i]);
		else if (to[i])
			cpu_compute(h, from[i], to[i], 0);
}

/* Lets v be computed in b, the memory of carried tile `arg`; also the accumulators of a chain of dots up to v. */
static void share_memory(struct cpu_codegen *h, const struct value *arg, struct value *v, struct buffer *b)
{
	info_of(h, v)->buffer = b;
	info_of(h, v)->in_place = true;
	if (v->def->code == IR_DOT && operand(v->def, 2) != arg)
		share_memory(h, arg, operand(v->def, 2), b);
}

bool cpu_ends_at(struct cpu_codegen *h, const struct value *v, const struct op *o)
{
	const struct info *i = info_of(h, v);
	const struct block *home = v->def ? v->def->block : v->block;
	return i->made && i->buffer->operand == DT_COUNT && value_has_one_use(v) && home == o->block;
}

/* Whether carried tile i starts as zero, and its only use is as the accumulator of a dot that clears its registers in
 * the first iteration (info.zero). Its memory is then set to zero only if the loop has no iteration. */
static bool dot_clears(struct cpu_codegen *h, const struct op *o, u32 i)
{
	u64 bits;
	const struct value *arg = for_arg(o, i);
	return !h->debug && value_const_bits(for_init(o, i), &bits) && !bits && value_has_one_use(arg) &&
	       arg->uses->user->block == o->blocks[0] && cpu_dot_clears(h, arg->uses) &&
	       plan_in_place(h, arg, for_yielded(o, i));
}

/* Initializes the memory of tiles that loop o carries: to[i] is the memory of carried tile i, NULL for a scalar. empty:
 * the loop has no iteration (i1). */
static void begin_carried(struct cpu_codegen *h, const struct op *o, struct buffer **to, LLVMValueRef empty)
{
	u32 n = o->nresults;
	struct value **inits = arena_array(&h->scratch, struct value *, n + 1u);
	struct buffer **filled = arena_array(&h->scratch, struct buffer *, n + 1u);
	for (u32 i = 0; i < n; i++) {
		inits[i] = for_init(o, i);
		to[i] = filled[i] = !is_tile(inits[i])             ? NULL
				    : cpu_ends_at(h, inits[i], o) ? info_of(h, inits[i])->buffer
								   : buffer_new(h, inits[i]);
		if (!to[i] || !dot_clears(h, o, i))
			continue;
		filled[i] = NULL;
		struct guarded g = begin_if(h->b, empty);
		cpu_compute(h, inits[i], to[i], 0);
		end_if(h->b, &g);
	}
	move_tiles(h, inits, filled, n);
}

/* Emits the body with carried tile i in memory to[i]. first: this is the first iteration (i1). */
static void emit_carried(struct cpu_codegen *h, const struct op *o, struct buffer **to, LLVMValueRef first)
{
	u32 n = o->nresults;
	struct value **yields = arena_array(&h->scratch, struct value *, n + 1u);
	for (u32 i = 0; i < n; i++) {
		yields[i] = for_yielded(o, i);
		if (!to[i])
			continue;
		set_made(h, for_arg(o, i), to[i]);
		if (dot_clears(h, o, i))
			info_of(h, for_arg(o, i))->zero = first;
		if (plan_in_place(h, for_arg(o, i), yields[i]))
			share_memory(h, for_arg(o, i), yields[i], to[i]);
	}
	cpu_emit_block(h, o->blocks[0]);
	move_tiles(h, yields, to, n);
}

/* The value that a loop carries for v in a register: a scalar, or the elements of a tile at an index. */
static LLVMValueRef in_register(struct cpu_codegen *h, const struct value *v, const struct at *at)
{
	return is_tile(v) ? cpu_spread(h, cpu_eval(h, v, at), at->lanes) : cpu_scalar(h, v);
}

static void set_register(struct cpu_codegen *h, const struct value *v, LLVMValueRef x, const struct at *at)
{
	if (!is_tile(v)) {
		cpu_set_scalar(h, v, x);
		return;
	}
	struct in_register *r = arena_new(&h->scratch, struct in_register);
	*r = (struct in_register){*at, x};
	info_of(h, v)->in_register = r;
}

static void check_step(struct cpu_codegen *h, const struct op *o)
{
	i64 known;
	LLVMValueRef step = cpu_scalar(h, for_step(o));
	if (!value_const_int(for_step(o), &known) || known <= 0)
		cpu_fail_if(h, LLVMBuildICmp(h->b, LLVMIntSLE, step, LLVMConstNull(LLVMTypeOf(step)), ""), o,
			    "loop step is not positive");
}

/* At the start of an iteration: i1, whether this is the first one; with deferred dots, one before or at the first
 * multiplication. next: the next index, which has overflowed if `over`. round: the number of the iteration if loop o
 * has deferred dots; else NULL. */
static LLVMValueRef begin_iteration(struct cpu_codegen *h, const struct op *o, LLVMValueRef next, LLVMValueRef over,
				    LLVMValueRef round)
{
	if (!round)
		return LLVMBuildICmp(h->b, LLVMIntEQ, cpu_scalar(h, for_index(o)), cpu_scalar(h, for_lower(o)), "");
	LLVMValueRef last = LLVMBuildICmp(h->b, LLVMIntSGE, next, cpu_scalar(h, for_upper(o)), "");
	cpu_deferred_begin(h, o, round, LLVMBuildOr(h->b, over, last, ""));
	return LLVMBuildICmp(h->b, LLVMIntULT, round, cpu_i64(h, cpu_deferred(h, o)->slots), "");
}

/* After the loop: stores the tiles that it carried in registers, x[i] if to[i] is NULL. */
static void store_carried(struct cpu_codegen *h, const struct op *o, struct buffer **to, LLVMValueRef *x,
			  const struct at *at)
{
	for (u32 i = 0; i < o->nresults; i++) {
		const struct value *r = &o->results[i];
		if (!to[i] && is_tile(r))
			buffer_store(h, info_of(h, r)->buffer, r->type, at, x[i]);
	}
}

void cpu_emit_for(struct cpu_codegen *h, const struct op *o, const struct at *at)
{
	u32 n = o->nresults;
	struct buffer **to = arena_array(&h->scratch, struct buffer *, n + 1u);
	LLVMValueRef *phis = arena_array(&h->scratch, LLVMValueRef, n + 1u),
		     *x = arena_array(&h->scratch, LLVMValueRef, n + 1u);
	LLVMValueRef lower = cpu_scalar(h, for_lower(o)), upper = cpu_scalar(h, for_upper(o)),
		     step = cpu_scalar(h, for_step(o));
	check_step(h, o);
	if (at)
		memset(to, 0, n * sizeof *to);
	else
		begin_carried(h, o, to, LLVMBuildICmp(h->b, LLVMIntSGE, lower, upper, ""));
	cpu_forget(h);
	for (u32 i = 0; i < n; i++)
		x[i] = to[i] ? NULL : in_register(h, for_init(o, i), at);
	LLVMBasicBlockRef before = LLVMGetInsertBlock(h->b), head = new_block(h->b), inside = new_block(h->b),
			  exit = new_block(h->b);
	LLVMBuildBr(h->b, head);
	LLVMPositionBuilderAtEnd(h->b, head);
	LLVMTypeRef t = LLVMTypeOf(lower);
	LLVMValueRef index = LLVMBuildPhi(h->b, t, "");
	LLVMAddIncoming(index, &lower, &before, 1);
	cpu_set_scalar(h, for_index(o), index);
	LLVMValueRef zero = cpu_i64(h, 0), round = NULL;
	if (!at && cpu_deferred(h, o)) {
		round = LLVMBuildPhi(h->b, h->i64, "");
		LLVMAddIncoming(round, &zero, &before, 1);
	}
	for (u32 i = 0; i < n; i++) {
		if (to[i])
			continue;
		phis[i] = LLVMBuildPhi(h->b, LLVMTypeOf(x[i]), "");
		LLVMAddIncoming(phis[i], &x[i], &before, 1);
		set_register(h, for_arg(o, i), phis[i], at);
	}
	LLVMBuildCondBr(h->b, LLVMBuildICmp(h->b, LLVMIntSLT, index, upper, ""), inside, exit);
	LLVMPositionBuilderAtEnd(h->b, inside);
	cpu_forget(h);
	LLVMMetadataRef here_in_source = cpu_debug_here(h);
	/* the loop ends if index + step overflows */
	LLVMValueRef sum = intrinsic_on(h->b, "llvm.sadd.with.overflow", (LLVMValueRef[]){index, step}, 2);
	LLVMValueRef next = LLVMBuildExtractValue(h->b, sum, 0, ""), over = LLVMBuildExtractValue(h->b, sum, 1, "");
	if (!at)
		emit_carried(h, o, to, begin_iteration(h, o, next, over, round));
	cpu_debug_back(h, here_in_source);
	for (const struct op *p = o->blocks[0]->first; at && !op_has(p, END); p = p->next)
		if (!is_tile(result(p)))
			cpu_emit_scalar(h, p);
	for (u32 i = 0; i < n; i++)
		x[i] = to[i] ? NULL : in_register(h, for_yielded(o, i), at);
	LLVMValueRef more = round ? LLVMBuildAdd(h->b, round, cpu_i64(h, 1), "") : NULL;
	LLVMBasicBlockRef here = LLVMGetInsertBlock(h->b);
	LLVMBasicBlockRef out = new_block(h->b);
	LLVMBuildCondBr(h->b, over, out, head);
	LLVMAddIncoming(index, &next, &here, 1);
	if (round)
		LLVMAddIncoming(round, &more, &here, 1);
	LLVMMoveBasicBlockAfter(out, here);
	LLVMMoveBasicBlockAfter(exit, out);
	LLVMPositionBuilderAtEnd(h->b, out);
	LLVMBuildBr(h->b, exit);
	LLVMPositionBuilderAtEnd(h->b, exit);
	cpu_debug_order(h);
	cpu_forget(h);
	for (u32 i = 0; i < n; i++) {
		if (to[i]) {
			set_made(h, &o->results[i], to[i]);
			continue;
		}
		LLVMBasicBlockRef from[] = {head, out};
		LLVMValueRef last[] = {phis[i], x[i]};
		LLVMAddIncoming(phis[i], &x[i], &here, 1);
		x[i] = LLVMBuildPhi(h->b, LLVMTypeOf(x[i]), "");
		LLVMAddIncoming(x[i], last, from, 2);
		if (!is_tile(&o->results[i]))
			cpu_set_scalar(h, &o->results[i], x[i]);
	}
	store_carried(h, o, to, x, at);
}

static void emit_if(struct cpu_codegen *h, const struct op *o)
{
	u32 n = o->nresults;
	struct buffer **to = arena_array(&h->scratch, struct buffer *, n + 1u);
	LLVMValueRef *x[2] = {arena_array(&h->scratch, LLVMValueRef, n + 1u),
			      arena_array(&h->scratch, LLVMValueRef, n + 1u)};
	LLVMBasicBlockRef then = new_block(h->b), otherwise = new_block(h->b), at[] = {then, otherwise}, from[2],
			  end = new_block(h->b);
	for (u32 i = 0; i < n; i++)
		to[i] = is_tile(&o->results[i]) ? buffer_new(h, &o->results[i]) : NULL;
	LLVMMetadataRef here = cpu_debug_here(h);
	LLVMBuildCondBr(h->b, cpu_scalar(h, operand(o, 0)), at[0], at[1]);
	for (u32 k = 0; k < 2; k++) {
		LLVMPositionBuilderAtEnd(h->b, at[k]);
		cpu_debug_back(h, here);
		struct value **yields = arena_array(&h->scratch, struct value *, n + 1u);
		if (k < o->nblocks && o->blocks[k]->first) {
			cpu_emit_block(h, o->blocks[k]);
			for (u32 i = 0; i < n; i++)
				yields[i] = operand(o->blocks[k]->last, i);
			move_tiles(h, yields, to, n);
			for (u32 i = 0; i < n; i++) {
				x[k][i] = to[i] ? NULL : cpu_scalar(h, yields[i]);
				cpu_debug_yield(h, o, i, yields[i], to[i]);
			}
		}
		from[k] = LLVMGetInsertBlock(h->b);
		LLVMBuildBr(h->b, end);
	}
	LLVMMoveBasicBlockAfter(end, from[1]);
	LLVMPositionBuilderAtEnd(h->b, end);
	cpu_debug_order(h);
	cpu_debug_back(h, NULL);
	for (u32 i = 0; i < n; i++) {
		if (to[i]) {
			set_made(h, &o->results[i], to[i]);
			continue;
		}
		LLVMValueRef phi = LLVMBuildPhi(h->b, LLVMTypeOf(x[0][i]), ""), both[] = {x[0][i], x[1][i]};
		LLVMAddIncoming(phi, both, from, 2);
		cpu_set_scalar(h, &o->results[i], phi);
	}
}

/* At the end of an iteration of loop o, which waits for memory that another program changes (op_may_wait): calls
 * cpu_call.wait every PATIENCE iterations. rounds: memory of the number of iterations, i32. */
static void let_others_run(struct cpu_codegen *h, const struct op *o, LLVMValueRef rounds)
{
	enum { PATIENCE = 256 /* iterations */ };
	LLVMBasicBlockRef ask = new_block(h->b), vain = new_block(h->b), on = new_block(h->b);
	LLVMValueRef n = LLVMBuildAdd(h->b, LLVMBuildLoad2(h->b, h->i32, rounds, ""), cpu_i32(h, 1), "");
	LLVMBuildStore(h->b, n, rounds);
	n = LLVMBuildAnd(h->b, n, cpu_i32(h, PATIENCE - 1), "");
	LLVMBuildCondBr(h->b, LLVMBuildICmp(h->b, LLVMIntNE, n, cpu_i32(h, 0), ""), on, ask);
	LLVMPositionBuilderAtEnd(h->b, ask);
	LLVMValueRef place = LLVMConstInt(h->i64, cpu_place(o->loc), false);
	LLVMValueRef stop = cpu_call_runtime(h, offsetof(struct cpu_call, wait), h->i32, &place, 1);
	LLVMBuildCondBr(h->b, LLVMBuildICmp(h->b, LLVMIntNE, stop, cpu_i32(h, 0), ""), vain, on);
	LLVMPositionBuilderAtEnd(h->b, vain);
	LLVMBuildRet(h->b, cpu_i32(h, 1));
	LLVMPositionBuilderAtEnd(h->b, on);
}

static void emit_while(struct cpu_codegen *h, const struct op *o)
{
	struct block *before = o->blocks[0], *after = o->blocks[1];
	u32 n = before->nargs, m = o->nresults;
	struct buffer **to = arena_array(&h->scratch, struct buffer *, n + 1u),
		      **passed = arena_array(&h->scratch, struct buffer *, m + 1u);
	struct value **from = arena_array(&h->scratch, struct value *, n + m + 1u);
	LLVMValueRef *phis = arena_array(&h->scratch, LLVMValueRef, n + 1u);
	for (u32 i = 0; i < n; i++) {
		from[i] = operand(o, i);
		to[i] = is_tile(from[i]) ? buffer_new(h, from[i]) : NULL;
	}
	LLVMMetadataRef here_in_source = cpu_debug_here(h);
	for (u32 i = 0; i < m; i++)
		passed[i] = is_tile(&o->results[i]) ? buffer_new(h, &o->results[i]) : NULL;
	move_tiles(h, from, to, n);
	LLVMBasicBlockRef start = LLVMGetInsertBlock(h->b), head = new_block(h->b), inside = new_block(h->b),
			  exit = new_block(h->b);
	LLVMBuildBr(h->b, head);
	LLVMPositionBuilderAtEnd(h->b, head);
	for (u32 i = 0; i < n; i++) {
		if (to[i]) {
			set_made(h, before->args[i], to[i]);
			continue;
		}
		LLVMValueRef first = cpu_scalar(h, from[i]);
		phis[i] = LLVMBuildPhi(h->b, LLVMTypeOf(first), "");
		LLVMAddIncoming(phis[i], &first, &start, 1);
		cpu_set_scalar(h, before->args[i], phis[i]);
	}
	cpu_emit_block(h, before);
	for (u32 i = 0; i < m; i++)
		from[i] = operand(before->last, 1 + i);
	move_tiles(h, from, passed, m);
	LLVMBuildCondBr(h->b, cpu_scalar(h, operand(before->last, 0)), inside, exit);
	for (u32 i = 0; i < m; i++) {
		if (passed[i]) {
			set_made(h, after->args[i], passed[i]);
			set_made(h, &o->results[i], passed[i]);
			continue;
		}
		cpu_set_scalar(h, after->args[i], cpu_scalar(h, from[i]));
		cpu_set_scalar(h, &o->results[i], cpu_scalar(h, from[i]));
	}
	LLVMMoveBasicBlockAfter(inside, LLVMGetInsertBlock(h->b));
	LLVMPositionBuilderAtEnd(h->b, inside);
	if (op_may_wait(o)) {
		LLVMValueRef rounds = LLVMBuildAlloca(h->entry, h->i32, "");
		LLVMBuildStore(h->entry, cpu_i32(h, 0), rounds);
		let_others_run(h, o, rounds);
	}
	cpu_emit_block(h, after);
	cpu_debug_back(h, here_in_source);
	for (u32 i = 0; i < n; i++)
		from[i] = operand(after->last, i);
	move_tiles(h, from, to, n);
	LLVMBasicBlockRef here = LLVMGetInsertBlock(h->b);
	LLVMBuildBr(h->b, head);
	for (u32 i = 0; i < n; i++) {
		LLVMValueRef x = to[i] ? NULL : cpu_scalar(h, from[i]);
		if (x)
			LLVMAddIncoming(phis[i], &x, &here, 1);
	}
	LLVMMoveBasicBlockAfter(exit, here);
	LLVMPositionBuilderAtEnd(h->b, exit);
	cpu_debug_order(h);
}

/* --- blocks ------------------------------------------------------------------------------------------------------ */

static LLVMValueRef program_number(struct cpu_codegen *h, const struct op *o)
{
	bool id = o->code == IR_PROGRAM_ID;
	LLVMValueRef base = id ? h->pid : h->call;
	i64 at = (id ? 0 : (i64)offsetof(struct cpu_call, grid)) + 4 * o->attr[ATTR_AXIS];
	return cpu_load_at(h, h->entry, h->i32, base, at);
}

const char *cpu_assert_text(struct cpu_codegen *h, const struct op *o)
{
	bool silent = !o->text || !*o->text;
	return arena_printf(&h->scratch, "device-side assertion failed%s%s", silent ? "" : ": ", silent ? "" : o->text);
}

void cpu_emit_scalar(struct cpu_codegen *h, const struct op *o)
{
	const struct at none = {.along = -1};
	LLVMValueRef in[8];
	switch (o->code) {
	case IR_CONSTANT: return;
	case IR_PROGRAM_ID:
	case IR_NUM_PROGRAMS: cpu_set_scalar(h, result(o), program_number(h, o)); return;
	case IR_LOAD: cpu_set_scalar(h, result(o), cpu_eval_load(h, o, &none)); return;
	case IR_STORE: cpu_eval_store(h, o, &none); return;
	case IR_ATOMIC_RMW:
	case IR_ATOMIC_CAS: cpu_set_scalar(h, result(o), cpu_eval_atomic(h, o, &none)); return;
	case IR_ASSERT:
		if (h->s->options.debug)
			cpu_fail_if(h, LLVMBuildNot(h->b, cpu_scalar(h, operand(o, 0)), ""), o, cpu_assert_text(h, o));
		return;
	case IR_ASSUME:
	case IR_BARRIER:
	case IR_GRID_WAIT:
	case IR_GRID_LAUNCH: return;
	default: break;
	}
	if (!op_has(o, ELEM)) {
		cpu_whole(h, o);
		return;
	}
	for (u32 k = 0; k < o->noperands; k++)
		in[k] = cpu_scalar(h, operand(o, k));
	cpu_set_scalar(h, result(o), cpu_elementwise(h, o, in));
}

static void emit_op(struct cpu_codegen *h, const struct op *o)
{
	cpu_debug_location(h, o->loc);
	switch (o->code) {
	case IR_FOR:
		if (cpu_carries_elements(h, o))
			cpu_emit_for_elements(h, o);
		else
			cpu_emit_for(h, o, NULL);
		return;
	case IR_IF: emit_if(h, o); return;
	case IR_WHILE: emit_while(h, o); return;
	case IR_DOT: cpu_dot(h, o); return;
	case IR_TRANS: cpu_dot_turn(h, o); return;
	case IR_DEBUG_LINE:
	case IR_DEBUG_VALUE:
	case IR_DEBUG_CALL:
	case IR_DEBUG_RETURN: cpu_debug_op(h, o); return;
	default: break;
	}
	if (op_has(o, END))
		return;
	if (is_whole_tile(o))
		cpu_whole(h, o);
	else
		cpu_emit_scalar(h, o);
}

static void debug_results(struct cpu_codegen *h, const struct op *o)
{
	for (u32 i = 0; i < o->nresults; i++)
		cpu_debug_value(h, &o->results[i]);
}

void cpu_emit_block(struct cpu_codegen *h, const struct block *b)
{
	step_vec steps = {0};
	plan_block(h, b, &steps);
	u32 entered = cpu_debug_enter(h);
	for (u32 i = 0; i < b->nargs && b->parent; i++)
		cpu_debug_value(h, b->args[i]);
	for (u32 i = 0; i < steps.len; i++) {
		struct cpu_nest *n = steps.at[i].nest;
		struct region *r = n || is_whole_tile(steps.at[i].op) ? cpu_region_begin(h) : NULL;
		if (n)
			cpu_emit_nest(h, n);
		else
			emit_op(h, steps.at[i].op);
		cpu_region_end(h, r);
		for (u32 k = 0; n && k < n->roots.len; k++)
			debug_results(h, n->roots.at[k].op);
		if (!n)
			debug_results(h, steps.at[i].op);
	}
	cpu_debug_leave(h, entered);
}

static void load_params(struct cpu_codegen *h)
{
	LLVMValueRef args = LLVMBuildLoad2(h->entry, h->ptr, h->call, "");
	for (u32 i = 0; i < h->k->nparams; i++) {
		const struct value *v = h->k->params[i].value;
		LLVMTypeRef t = cpu_elem_type(h, v->type);
		LLVMValueRef x = cpu_load_at(h, h->entry, memory_type(t), args, 8ll * i);
		cpu_set_scalar(h, v, t == h->i1 ? LLVMBuildTrunc(h->entry, x, t, "") : x);
	}
}

/* Adds the constant HOST_RECORD of cpu_abi.h. */
static void add_record(struct cpu_codegen *h)
{
	u32 n = h->k->nparams;
	LLVMValueRef *kinds = arena_array(&h->scratch, LLVMValueRef, n + 1);
	for (u32 i = 0; i < n; i++) {
		const struct type *t = h->k->params[i].value->type;
		int pointers = 0;
		for (; t->kind == TY_PTR; t = t->elem)
			pointers++;
		kinds[i] = LLVMConstInt(h->i8, cpu_record_byte(pointers, (int)t->dtype), false);
	}
	LLVMValueRef parts[] = {cpu_i64(h, (i64)h->bytes), LLVMConstArray2(h->i8, kinds, n)};
	LLVMValueRef record = LLVMConstStructInContext(h->ctx, parts, ARRAY_LEN(parts), true);
	const char *name = arena_printf(&h->scratch, "%s" HOST_RECORD, h->k->name);
	add_constant(h->mod, record, name, LLVMExternalLinkage, 0);
}

u64 cpu_lower(struct pass_state *s, LLVMModuleRef mod)
{
	struct cpu_codegen h = {.s = s, .k = s->k, .mod = mod, .ctx = LLVMGetModuleContext(mod)};
	h.info = h.memo = h.exact = h.deferred = h.ahead = (struct map){.arena = &h.scratch};
	h.i1 = LLVMInt1TypeInContext(h.ctx), h.i8 = LLVMInt8TypeInContext(h.ctx), h.i16 = LLVMInt16TypeInContext(h.ctx);
	h.i32 = LLVMInt32TypeInContext(h.ctx), h.i64 = LLVMInt64TypeInContext(h.ctx);
	h.f16 = LLVMHalfTypeInContext(h.ctx), h.f32 = LLVMFloatTypeInContext(h.ctx);
	h.f64 = LLVMDoubleTypeInContext(h.ctx), h.v = LLVMVoidTypeInContext(h.ctx);
	h.ptr = LLVMPointerTypeInContext(h.ctx, 0);
	LLVMTypeRef params[] = {h.ptr, h.ptr, h.ptr};
	h.fn = LLVMAddFunction(mod, s->k->name, LLVMFunctionType(h.i32, params, 3, false));
	add_attribute(h.fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, "nounwind", 0);
	add_attribute(h.fn, 3, "noalias", 0);
	h.call = LLVMGetParam(h.fn, 0), h.pid = LLVMGetParam(h.fn, 1), h.memory = LLVMGetParam(h.fn, 2);
	LLVMSetParamAlignment(h.memory, 64);
	h.b = LLVMCreateBuilderInContext(h.ctx), h.entry = LLVMCreateBuilderInContext(h.ctx);
	LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(h.ctx, h.fn, ""),
			  body = LLVMAppendBasicBlockInContext(h.ctx, h.fn, "");
	LLVMPositionBuilderAtEnd(h.entry, entry);
	LLVMPositionBuilderAtEnd(h.b, body);
	cpu_debug_begin(&h);
	load_params(&h);
	cpu_debug_parameters(&h);
	plan_kernel(&h);
	cpu_stream_begin(&h);
	cpu_emit_block(&h, s->k->body);
	cpu_stream_end(&h);
	LLVMBuildRet(h.b, cpu_i32(&h, 0));
	LLVMBuildBr(h.entry, body);
	cpu_tiles_end(&h);
	cpu_outline_regions(&h);
	cpu_debug_end(&h);
	add_record(&h);
	LLVMDisposeBuilder(h.b);
	LLVMDisposeBuilder(h.entry);
	arena_free(&h.scratch);
	return h.bytes;
}
