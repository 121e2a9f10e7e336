/* Loads, stores and atomics at an index (of one element, or of a vector of lanes).
 *
 * Lanes with successive addresses are one access at the address of the first lane. Otherwise each lane has an address.
 * If a mask is true for all lanes, the access is unmasked; otherwise it is one of LLVM's masked intrinsics. */
#include "cpu/cpu_internal.h"

static struct at first_lane(const struct at *at)
{
	struct at a = *at;
	a.along = -1;
	a.lanes = 0;
	return a;
}

static bool is_true(LLVMValueRef mask)
{
	return !mask || (LLVMIsConstant(mask) && !lanes_of(mask) && !LLVMIsNull(mask));
}

struct element_access {
	const struct value *pointer, *mask_value;
	LLVMValueRef p;    /* address of the first lane, or vector of the addresses of all lanes */
	LLVMValueRef mask; /* NULL: true for all lanes */
	LLVMTypeRef type;  /* type of an element in memory */
	u32 bytes, lanes;  /* bytes: size of an element */
	u32 run;      /* each `run` lanes have successive addresses; 1: each lane has an address */
	bool uniform; /* all lanes have the same address */
};

/* element_access.run along dimension d. Contiguity that the user's hints (tl.max_contiguous and so on) state need not
 * hold for masked-off elements, and users state it even for tiles that extend past the edge of a tensor. So hints count
 * only up to the width of the vectors that GPU code would access because of them (axis_vector_width). */
static u32 run_along(struct cpu_codegen *h, const struct element_access *a, int d)
{
	u32 promised = (u32)axis_vector_width(h->s->axis, a->pointer, a->mask ? a->mask_value : NULL, d);
	return MIN(MAX((u32)axis_proved(h->s->axis, a->pointer)->contiguity[d], promised), a->lanes);
}

static struct element_access access_of(struct cpu_codegen *h, const struct value *p, const struct value *mask,
				       const struct at *at)
{
	const struct type *elem = type_elem(p->type)->elem;
	struct element_access a = {.pointer = p,
				   .mask_value = mask,
				   .type = memory_type(cpu_elem_type(h, elem)),
				   .bytes = (u32)dtype_bytes(type_dtype(elem))};
	a.mask = mask ? cpu_eval(h, mask, at) : NULL;
	a.mask = is_true(a.mask) ? NULL : a.mask;
	a.lanes = at->along < 0 ? 0 : at->lanes;
	const struct at first = first_lane(at);
	if (!a.lanes) {
		a.p = cpu_eval(h, p, at);
		return a;
	}
	a.uniform = axis_proved(h->s->axis, p)->constancy[at->along] >= (i32)a.lanes;
	a.run = run_along(h, &a, at->along);
	bool each = !a.uniform && a.run == 1;
	a.p = each ? cpu_spread(h, cpu_eval(h, p, at), a.lanes) : cpu_eval(h, p, &first);
	return a;
}

static bool is_one_access(const struct element_access *a)
{
	return a->uniform || a->run == a->lanes;
}

static LLVMValueRef plain_load(struct cpu_codegen *h, const struct element_access *a, bool is_volatile)
{
	LLVMValueRef x = LLVMBuildLoad2(h->b, cpu_vector_type(a->type, a->uniform ? 0 : a->lanes), a->p, "");
	LLVMSetAlignment(x, a->bytes);
	LLVMSetVolatile(x, is_volatile);
	return x;
}

/* A part of an access, as wide as one vector register of elements or addresses. The parts are made here because LLVM 19
 * splits wider masked loads wrongly: it treats lanes that it knows to be masked off as undefined, and loads them
 * (tests/lit/codegen/cpu-masks.tl). */
struct piece {
	u32 lanes;
	LLVMValueRef p;    /* first address, or vector of all addresses */
	LLVMValueRef mask; /* NULL: true for all lanes */
	bool none;         /* the mask is known to be false for all lanes */
};

static u32 piece_lanes(const struct cpu_codegen *h, const struct element_access *a)
{
	u32 most = (u32)h->s->target->vector_bytes / (a->run == 1 ? (u32)sizeof(u64) : a->bytes);
	return MIN(a->run == 1 ? a->lanes : a->run, most);
}

static struct piece piece_of(struct cpu_codegen *h, const struct element_access *a, const struct at *at, u32 first)
{
	struct piece c = {.lanes = piece_lanes(h, a)};
	struct at part = *at;
	part.lanes = c.lanes;
	part.i[at->along] = LLVMBuildAdd(h->b, at->i[at->along], cpu_i64(h, first), "");
	const struct at lane = first_lane(&part);
	c.p = a->run == 1         ? cpu_lanes(h, a->p, first, c.lanes)
	      : a->run < a->lanes ? cpu_eval(h, a->pointer, &lane)
				  : gep(h->b, a->p, a->type, cpu_i64(h, first));
	if (!a->mask)
		return c;
	c.mask = cpu_eval(h, a->mask_value, &part);
	c.none = LLVMIsConstant(c.mask) && LLVMIsNull(c.mask);
	c.mask = is_true(c.mask) ? NULL : cpu_spread(h, c.mask, c.lanes);
	return c;
}

static LLVMValueRef piece_mask(struct cpu_codegen *h, const struct piece *c)
{
	return c->mask ? c->mask : cpu_spread(h, LLVMConstInt(h->i1, 1, false), c->lanes);
}

static LLVMValueRef load_pieces(struct cpu_codegen *h, const struct element_access *a, const struct at *at,
				LLVMValueRef other)
{
	LLVMValueRef parts[256];
	u32 n = 0, w = piece_lanes(h, a);
	for (u32 k = 0; k < a->lanes; k += w, n++) {
		struct piece c = piece_of(h, a, at, k);
		LLVMValueRef rest = cpu_lanes(h, other, k, w);
		LLVMTypeRef types[] = {LLVMTypeOf(rest), LLVMTypeOf(c.p)};
		LLVMValueRef args[] = {c.p, cpu_i32(h, a->bytes), piece_mask(h, &c), rest};
		if (c.none) {
			parts[n] = rest;
		} else if (c.mask || a->run == 1) {
			parts[n] = call_intrinsic(h->b, a->run == 1 ? "llvm.masked.gather" : "llvm.masked.load", types,
						  2, args, 4);
		} else {
			parts[n] = LLVMBuildLoad2(h->b, types[0], c.p, "");
			LLVMSetAlignment(parts[n], a->bytes);
		}
	}
	return cpu_concat(h, parts, n);
}

static void store_pieces(struct cpu_codegen *h, const struct element_access *a, const struct at *at, LLVMValueRef x)
{
	u32 w = piece_lanes(h, a);
	for (u32 k = 0; k < a->lanes; k += w) {
		struct piece c = piece_of(h, a, at, k);
		LLVMValueRef part = cpu_lanes(h, x, k, w);
		LLVMTypeRef types[] = {LLVMTypeOf(part), LLVMTypeOf(c.p)};
		LLVMValueRef args[] = {part, c.p, cpu_i32(h, a->bytes), piece_mask(h, &c)};
		if (c.none)
			continue;
		if (c.mask || a->run == 1)
			call_intrinsic(h->b, a->run == 1 ? "llvm.masked.scatter" : "llvm.masked.store", types, 2, args,
				       4);
		else
			LLVMSetAlignment(LLVMBuildStore(h->b, part, c.p), a->bytes);
	}
}

/* load_pieces on one side of a branch. Values that it evaluates do not stay in cpu_codegen.memo, since they are not
 * available after the branch. */
static LLVMValueRef load_pieces_here(struct cpu_codegen *h, const struct element_access *a, const struct at *at,
				     LLVMValueRef other)
{
	struct map outside = h->memo;
	cpu_forget(h);
	LLVMValueRef x = load_pieces(h, a, at, other);
	h->memo = outside;
	return x;
}

/* In checked code (target.checks): emits the report of an access to the runtime before a load or atomic operation, or
 * instead of a store of x. */
static void check_access(struct cpu_codegen *h, const struct op *o, const struct element_access *a, const struct at *at,
			 LLVMValueRef x)
{
	const struct at first = first_lane(at);
	bool alone = (a->uniform && !x) || !a->lanes;
	struct checked c = {
		.p = a->p, .mask = a->mask, .data = x, .lanes = alone ? 0 : a->lanes, .at = alone ? &first : at};
	if (alone && c.mask)
		c.mask = cpu_any_lane(h, c.mask, false);
	else if (a->uniform)
		c.p = cpu_spread(h, c.p, a->lanes);
	else if (a->run < a->lanes && a->run > 1)
		c.p = cpu_spread(h, cpu_eval(h, a->pointer, at), a->lanes);
	cpu_check_access(h, o, &c);
}

/* A load whose addresses have a pattern along the lanes (load_patterns.c), without a mask; NULL: it has none. */
static LLVMValueRef load_by_pattern(struct cpu_codegen *h, const struct op *o, const struct at *at)
{
	const struct value *p = operand(o, 0), *mask = mask_of(o);
	const struct at first = first_lane(at);
	struct table table;
	if (o->attr[ATTR_VOLATILE])
		return NULL;
	u32 times = at->along < 0 || h->s->target->checks ? 0 : cpu_repeats(h, p, at->along);
	bool is_table = !times && cpu_find_table(h, o, at, &table);
	if ((!is_table && (!times || times >= at->lanes)) || (mask && !is_true(cpu_eval(h, mask, at))))
		return NULL;
	LLVMTypeRef elem = memory_type(cpu_elem_type(h, result(o)->type));
	if (times) {
		LLVMTypeRef part = LLVMVectorType(elem, at->lanes / times);
		LLVMValueRef x = LLVMBuildLoad2(h->b, part, cpu_eval(h, p, &first), "");
		LLVMSetAlignment(x, type_bits(elem) / 8);
		return cpu_repeat(h, x, times);
	}
	LLVMValueRef base = cpu_eval(h, table.base, &first), index = cpu_eval(h, table.index, at), x[2];
	LLVMBasicBlockRef from[2], one = new_block(h->b), each = new_block(h->b), end = new_block(h->b);
	LLVMBuildCondBr(h->b, cpu_table_is_readable(h, &table, base), one, each);
	LLVMPositionBuilderAtEnd(h->b, one);
	x[0] = cpu_look_up(h, &table, base, cpu_spread(h, index, at->lanes), elem);
	from[0] = LLVMGetInsertBlock(h->b);
	LLVMBuildBr(h->b, end);
	LLVMPositionBuilderAtEnd(h->b, each);
	struct map outside = h->memo;
	cpu_forget(h);
	struct element_access a = access_of(h, p, NULL, at);
	x[1] = is_one_access(&a) ? cpu_spread(h, plain_load(h, &a, false), a.lanes)
				 : load_pieces(h, &a, at, LLVMConstNull(cpu_vector_type(elem, a.lanes)));
	h->memo = outside;
	from[1] = LLVMGetInsertBlock(h->b);
	LLVMBuildBr(h->b, end);
	LLVMPositionBuilderAtEnd(h->b, end);
	LLVMValueRef phi = LLVMBuildPhi(h->b, LLVMTypeOf(x[0]), "");
	LLVMAddIncoming(phi, x, from, 2);
	return phi;
}

LLVMValueRef cpu_eval_load(struct cpu_codegen *h, const struct op *o, const struct at *at)
{
	const struct value *p = operand(o, 0), *mask = mask_of(o);
	LLVMTypeRef t = cpu_elem_type(h, result(o)->type);
	LLVMValueRef by_pattern = load_by_pattern(h, o, at);
	if (by_pattern)
		return from_memory(h->b, by_pattern, t);
	struct element_access a = access_of(h, p, mask, at);
	bool one = is_one_access(&a);
	if (h->s->target->checks)
		check_access(h, o, &a, at, NULL);
	if (!a.mask && one && !a.uniform && a.lanes)
		cpu_prefetch(h, o, at, a.p, a.lanes * a.bytes);
	if (!a.mask && one)
		return from_memory(h->b, plain_load(h, &a, o->attr[ATTR_VOLATILE]), t);
	LLVMValueRef other = o->noperands > 2 ? cpu_eval(h, operand(o, 2), at) : NULL;
	bool vector = !one || lanes_of(a.mask) > 0;
	bool one_value = a.uniform && !vector && !(other && lanes_of(other));
	u32 lanes = one_value ? 0 : a.lanes;
	other = other ? to_memory(h->b, cpu_spread(h, other, lanes)) : LLVMConstNull(cpu_vector_type(a.type, lanes));
	if (!one)
		return from_memory(h->b, load_pieces(h, &a, at, other), t);
	/* Three paths: no lane is loaded (`other`), all lanes are loaded by a plain load, or some lanes by masked
	 * loads. In the rest of a row (in_rest) some lanes are masked off, so there is no plain load. The path without
	 * a load is needed: with all lanes masked off, the address may be invalid, and then even masked loads take
	 * long. */
	bool rest = h->in_rest && vector && !a.uniform;
	LLVMBasicBlockRef from[3], end = new_block(h->b), plain = new_block(h->b),
				   part = vector && !a.uniform && !rest ? new_block(h->b) : NULL;
	LLVMValueRef x[3] = {other};
	from[0] = LLVMGetInsertBlock(h->b);
	LLVMBuildCondBr(h->b, cpu_any_lane(h, a.mask, !a.uniform && !rest), plain, part ? part : end);
	LLVMPositionBuilderAtEnd(h->b, plain);
	x[1] = rest ? load_pieces_here(h, &a, at, other)
		    : cpu_spread(h, plain_load(h, &a, o->attr[ATTR_VOLATILE]), lanes);
	if (vector && a.uniform)
		x[1] = LLVMBuildSelect(h->b, a.mask, x[1], other, "");
	from[1] = LLVMGetInsertBlock(h->b);
	LLVMBuildBr(h->b, end);
	u32 n = 2;
	if (part) {
		LLVMPositionBuilderAtEnd(h->b, part);
		x[0] = load_pieces_here(h, &a, at, other);
		from[0] = LLVMGetInsertBlock(h->b);
		LLVMBuildBr(h->b, end);
	}
	LLVMPositionBuilderAtEnd(h->b, end);
	LLVMValueRef phi = LLVMBuildPhi(h->b, LLVMTypeOf(x[0]), "");
	LLVMAddIncoming(phi, x, from, n);
	return from_memory(h->b, phi, t);
}

void cpu_eval_store(struct cpu_codegen *h, const struct op *o, const struct at *at)
{
	const struct value *p = operand(o, 0), *mask = mask_of(o);
	struct element_access a = access_of(h, p, mask, at);
	LLVMValueRef x = to_memory(h->b, cpu_spread(h, cpu_eval(h, operand(o, 1), at), a.lanes));
	struct guarded g = {0};
	if (h->s->target->checks) {
		check_access(h, o, &a, at, x);
		return;
	}
	if (a.uniform) { /* all lanes store to one address: a scatter leaves the value of the last lane */
		a.p = cpu_spread(h, a.p, a.lanes);
		a.uniform = false;
		a.run = 1;
	}
	if (!is_one_access(&a)) {
		store_pieces(h, &a, at, x);
		return;
	}
	if (a.mask && lanes_of(a.mask)) {
		LLVMBasicBlockRef whole = h->in_rest ? NULL : new_block(h->b), part = new_block(h->b);
		g.end = new_block(h->b);
		if (whole)
			LLVMBuildCondBr(h->b, cpu_any_lane(h, a.mask, true), whole, part);
		else
			LLVMBuildCondBr(h->b, cpu_any_lane(h, a.mask, false), part, g.end);
		LLVMPositionBuilderAtEnd(h->b, part);
		struct map outside = h->memo;
		cpu_forget(h);
		store_pieces(h, &a, at, x);
		h->memo = outside;
		LLVMBuildBr(h->b, g.end);
		if (!whole) {
			LLVMPositionBuilderAtEnd(h->b, g.end);
			return;
		}
		LLVMPositionBuilderAtEnd(h->b, whole);
	} else if (a.mask) {
		g = begin_if(h->b, a.mask);
	}
	if (a.lanes && a.lanes * a.bytes % (u32)h->s->target->vector_bytes == 0 && cpu_streams(h, o))
		cpu_stream_store(h, x, a.p, a.bytes);
	else
		LLVMSetAlignment(LLVMBuildStore(h->b, x, a.p), a.bytes);
	end_if(h->b, &g);
}

/* --- atomics ----------------------------------------------------------------------------------------------------- */

static LLVMAtomicRMWBinOp rmw_op(enum rmw_kind k, bool is_float)
{
	static const LLVMAtomicRMWBinOp ints[] = {
		[RMW_AND] = LLVMAtomicRMWBinOpAnd,   [RMW_OR] = LLVMAtomicRMWBinOpOr,
		[RMW_XOR] = LLVMAtomicRMWBinOpXor,   [RMW_ADD] = LLVMAtomicRMWBinOpAdd,
		[RMW_FADD] = LLVMAtomicRMWBinOpFAdd, [RMW_MAX] = LLVMAtomicRMWBinOpMax,
		[RMW_MIN] = LLVMAtomicRMWBinOpMin,   [RMW_UMAX] = LLVMAtomicRMWBinOpUMax,
		[RMW_UMIN] = LLVMAtomicRMWBinOpUMin, [RMW_EXCH] = LLVMAtomicRMWBinOpXchg,
	};
	if (is_float && k == RMW_MAX)
		return LLVMAtomicRMWBinOpFMax;
	if (is_float && k == RMW_MIN)
		return LLVMAtomicRMWBinOpFMin;
	return ints[k];
}

static LLVMTypeRef bits_type(struct cpu_codegen *h, const struct type *elem)
{
	return LLVMIntTypeInContext(h->ctx, 8 * (u32)dtype_bytes(type_dtype(elem)));
}

/* Atomic addition, maximum or minimum of a float, by a compare-and-swap loop that computes in f32. */
static LLVMValueRef update_small(struct cpu_codegen *h, enum rmw_kind kind, LLVMValueRef p, LLVMValueRef x,
				 const struct type *elem)
{
	enum dtype d = type_dtype(elem);
	LLVMTypeRef bits = bits_type(h, elem), t = cpu_elem_type(h, elem);
	LLVMBasicBlockRef loop = new_block(h->b), end = new_block(h->b), before = LLVMGetInsertBlock(h->b);
	LLVMValueRef first = LLVMBuildLoad2(h->b, bits, p, "");
	LLVMSetAlignment(first, (u32)dtype_bytes(type_dtype(elem)));
	LLVMBuildBr(h->b, loop);
	LLVMPositionBuilderAtEnd(h->b, loop);
	LLVMValueRef old = LLVMBuildPhi(h->b, bits, "");
	LLVMAddIncoming(old, &first, &before, 1);
	LLVMValueRef a = cpu_widen(h, LLVMBuildBitCast(h->b, old, t, ""), d), b = cpu_widen(h, x, d), c;
	LLVMValueRef both[] = {a, b};
	c = kind == RMW_FADD ? LLVMBuildFAdd(h->b, a, b, "")
			     : intrinsic_on(h->b, kind == RMW_MAX ? "llvm.maxnum" : "llvm.minnum", both, 2);
	if (kind != RMW_FADD) { /* llvm.maxnum and minnum may return either zero: -0 must be less than +0 */
		LLVMValueRef x = LLVMBuildBitCast(h->b, a, h->i32, ""), y = LLVMBuildBitCast(h->b, b, h->i32, "");
		LLVMValueRef z = kind == RMW_MAX ? LLVMBuildAnd(h->b, x, y, "") : LLVMBuildOr(h->b, x, y, "");
		LLVMValueRef equal = LLVMBuildFCmp(h->b, LLVMRealOEQ, a, b, "");
		c = LLVMBuildSelect(h->b, equal, LLVMBuildBitCast(h->b, z, h->f32, ""), c, "");
	}
	LLVMValueRef next = LLVMBuildBitCast(h->b, cpu_narrow(h, c, d), bits, "");
	LLVMValueRef swap = LLVMBuildAtomicCmpXchg(h->b, p, old, next, LLVMAtomicOrderingSequentiallyConsistent,
						   LLVMAtomicOrderingSequentiallyConsistent, false);
	LLVMValueRef seen = LLVMBuildExtractValue(h->b, swap, 0, "");
	LLVMBasicBlockRef here = LLVMGetInsertBlock(h->b);
	LLVMBuildCondBr(h->b, LLVMBuildExtractValue(h->b, swap, 1, ""), end, loop);
	LLVMAddIncoming(old, &seen, &here, 1);
	LLVMPositionBuilderAtEnd(h->b, end);
	return LLVMBuildBitCast(h->b, seen, t, "");
}

static LLVMValueRef atomic(struct cpu_codegen *h, const struct op *o, LLVMValueRef p, const struct at *at)
{
	const struct type *elem = type_elem(result(o)->type);
	LLVMValueRef x = cpu_eval(h, operand(o, 1), at);
	LLVMTypeRef t = cpu_elem_type(h, elem), bits = bits_type(h, elem);
	enum dtype d = type_dtype(elem);
	bool is_float = dtype_is_float(d) && !type_is_ptr(elem);
	if (h->s->target->checks)
		cpu_check_access(h, o, &(struct checked){.p = p, .at = at});
	if (o->code == IR_ATOMIC_CAS) {
		LLVMValueRef y = cpu_eval(h, operand(o, 2), at);
		y = LLVMBuildBitCast(h->b, y, bits, "");
		x = LLVMBuildBitCast(h->b, x, bits, "");
		LLVMValueRef both =
			LLVMBuildAtomicCmpXchg(h->b, p, x, y, LLVMAtomicOrderingSequentiallyConsistent,
					       LLVMAtomicOrderingSequentiallyConsistent, false);
		return LLVMBuildBitCast(h->b, LLVMBuildExtractValue(h->b, both, 0, ""), t, "");
	}
	enum rmw_kind kind = (enum rmw_kind)o->attr[ATTR_RMW];
	if (is_float && kind != RMW_EXCH && d != DT_F32 && d != DT_F64)
		return update_small(h, kind, p, x, elem);
	if (kind == RMW_EXCH)
		x = LLVMBuildBitCast(h->b, x, bits, "");
	LLVMValueRef old =
		LLVMBuildAtomicRMW(h->b, rmw_op(kind, is_float), p, x, LLVMAtomicOrderingSequentiallyConsistent, false);
	return kind == RMW_EXCH ? LLVMBuildBitCast(h->b, old, t, "") : old;
}

/* Emits an atomic operation on one element. Returns the old value of the element, or zero if it is masked off. */
LLVMValueRef cpu_eval_atomic(struct cpu_codegen *h, const struct op *o, const struct at *at)
{
	LLVMValueRef p = cpu_eval(h, operand(o, 0), at), mask = mask_of(o) ? cpu_eval(h, mask_of(o), at) : NULL;
	if (is_true(mask))
		return atomic(h, o, p, at);
	struct guarded g = begin_if(h->b, mask);
	LLVMValueRef old = atomic(h, o, p, at);
	end_if(h->b, &g);
	return either(h->b, &g, LLVMConstNull(LLVMTypeOf(old)), old);
}
