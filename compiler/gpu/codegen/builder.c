/* Small sequences of LLVM IR that the other files of this folder build code from. */
#include "gpu/codegen/nvptx_internal.h"

LLVMValueRef c_i32(struct lower *l, i64 x)
{
	return LLVMConstInt(l->i32, (u64)x & 0xFFFFFFFF, false);
}

LLVMValueRef c_i64(struct lower *l, i64 x)
{
	return LLVMConstInt(l->i64, (u64)x, false);
}

LLVMValueRef intrinsic(struct lower *l, const char *name, LLVMTypeRef ret, LLVMValueRef *args, u32 n)
{
	LLVMTypeRef types[8];
	tl_assert(n <= ARRAY_LEN(types));
	for (u32 i = 0; i < n; i++)
		types[i] = LLVMTypeOf(args[i]);
	LLVMTypeRef t = LLVMFunctionType(ret, types, n, false);
	LLVMValueRef f = LLVMGetNamedFunction(l->mod, name);
	if (!f)
		f = LLVMAddFunction(l->mod, name, t);
	return LLVMBuildCall2(l->b, t, f, args, n, "");
}

static void mark(struct lower *l, LLVMValueRef call, const char *name)
{
	unsigned id = LLVMGetEnumAttributeKindForName(name, strlen(name));
	LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
				 LLVMCreateEnumAttribute(l->ctx, id, 0));
}

LLVMValueRef inline_asm(struct lower *l, const char *text, const char *constraints, enum asm_kind kind, LLVMTypeRef ret,
			LLVMValueRef *args, u32 n)
{
	LLVMValueRef call = call_asm(l->b, text, constraints, kind != ASM_PURE, ret, args, n);
	mark(l, call, "nounwind");
	if (kind == ASM_CONVERGENT)
		mark(l, call, "convergent");
	if (kind == ASM_PURE) {
		mark(l, call, "memory"); /* 0: no access to memory */
		mark(l, call, "willreturn");
	}
	return call;
}

LLVMTypeRef int_type(struct lower *l, int bits)
{
	return bits == 32   ? l->i32
	       : bits == 64 ? l->i64
	       : bits == 16 ? l->i16
	       : bits == 8  ? l->i8
			    : LLVMIntTypeInContext(l->ctx, (unsigned)bits);
}

/* The word that the `per` values at `in`, of `bits` bits, were extracted from, if they are all its elements in order;
 * else NULL. */
static LLVMValueRef packed_before(struct lower *l, LLVMValueRef *in, u32 per, int bits)
{
	LLVMValueRef v = LLVMIsAExtractElementInst(in[0]) ? LLVMGetOperand(in[0], 0) : NULL, word;
	if (!v || !LLVMIsABitCastInst(v))
		return NULL;
	word = LLVMGetOperand(v, 0);
	u64 first = LLVMConstIntGetZExtValue(LLVMGetOperand(in[0], 1));
	if (LLVMGetTypeKind(LLVMTypeOf(word)) != LLVMIntegerTypeKind || type_bits(LLVMTypeOf(word)) < bits ||
	    first % per)
		return NULL;
	for (u32 i = 0; i < per; i++)
		if (!LLVMIsAExtractElementInst(in[i]) || LLVMGetOperand(in[i], 0) != v ||
		    LLVMConstIntGetZExtValue(LLVMGetOperand(in[i], 1)) != first + i)
			return NULL;
	if (first)
		word = LLVMBuildLShr(l->b, word, LLVMConstInt(LLVMTypeOf(word), first * (u64)bits / per, 0), "");
	return type_bits(LLVMTypeOf(word)) == bits ? word : LLVMBuildTrunc(l->b, word, int_type(l, bits), "");
}

LLVMValueRef as_vector(struct lower *l, const LLVMValueRef *in, u32 n)
{
	LLVMValueRef v = n > 1 ? LLVMGetPoison(LLVMVectorType(LLVMTypeOf(in[0]), n)) : in[0];
	for (u32 i = 0; i < n && n > 1; i++)
		v = LLVMBuildInsertElement(l->b, v, in[i], c_i32(l, i), "");
	return v;
}

void pack(struct lower *l, LLVMValueRef *in, u32 n, int bits, LLVMValueRef *out)
{
	int eb = type_bits(LLVMTypeOf(in[0]));
	if (eb == bits) {
		for (u32 i = 0; i < n; i++)
			out[i] = to_bits(l->b, in[i]);
		return;
	}
	tl_assert(eb < bits && (int)n * eb % bits == 0);
	u32 per = (u32)(bits / eb);
	for (u32 w = 0; w < n / per; w++) {
		if ((out[w] = packed_before(l, in + w * per, per, bits)))
			continue;
		LLVMValueRef halves[2] = {NULL, NULL};
		if (eb == 8 && bits == 32 && (halves[0] = packed_before(l, in + 4 * w, 2, 16)) &&
		    (halves[1] = packed_before(l, in + 4 * w + 2, 2, 16))) {
			pack(l, halves, 2, 32, &out[w]);
			continue;
		}
		/* LLVM bitcasts two bytes that are not part of a word through local memory */
		if (bits == 16 && !LLVMIsAExtractElementInst(in[2 * w])) {
			LLVMValueRef low = LLVMBuildZExt(l->b, to_bits(l->b, in[2 * w]), l->i16, ""),
				     high = LLVMBuildZExt(l->b, to_bits(l->b, in[2 * w + 1]), l->i16, "");
			out[w] = LLVMBuildOr(l->b, low, LLVMBuildShl(l->b, high, LLVMConstInt(l->i16, 8, 0), ""), "");
			continue;
		}
		out[w] = LLVMBuildBitCast(l->b, as_vector(l, in + w * per, per), int_type(l, bits), "");
	}
}

void unpack(struct lower *l, LLVMValueRef *in, u32 nwords, LLVMTypeRef elem_type, u32 n, LLVMValueRef *out)
{
	int eb = type_bits(elem_type), bits = type_bits(LLVMTypeOf(in[0]));
	u32 per = (u32)(bits / eb);
	for (u32 w = 0; w < nwords; w++) {
		if (per == 1) {
			out[w] = from_bits(l->b, in[w], elem_type);
			continue;
		}
		LLVMValueRef v = LLVMBuildBitCast(l->b, in[w], LLVMVectorType(elem_type, per), "");
		for (u32 i = 0; i < per && w * per + i < n; i++)
			out[w * per + i] = LLVMBuildExtractElement(l->b, v, c_i32(l, i), "");
	}
}

LLVMValueRef linear_map(struct lower *l, LLVMBuilderRef b, LLVMValueRef index, const u32 *bases, int bits)
{
	u32 all = (1u << bits) - 1;
	LLVMValueRef sum = NULL;
	/* for each shift distance: the index bits that move by it to a bit of the result take one AND and one shift */
	for (int shift = -LAYOUT_MAX_BITS; shift < 32; shift++) {
		u32 mask = 0;
		for (int i = 0; i < bits; i++)
			if (i + shift >= 0 && i + shift < 32 && bases[i] >> (i + shift) & 1)
				mask |= 1u << i;
		if (!mask)
			continue;
		u32 stays = shift < 0 ? all >> -shift << -shift : all;
		LLVMValueRef part = mask == stays ? index : LLVMBuildAnd(b, index, c_i32(l, mask), "");
		if (shift > 0)
			part = LLVMBuildShl(b, part, c_i32(l, shift), "");
		else if (shift < 0)
			part = LLVMBuildLShr(b, part, c_i32(l, -shift), "");
		sum = sum ? LLVMBuildXor(b, sum, part, "") : part;
	}
	return sum ? sum : c_i32(l, 0);
}

LLVMValueRef thread_map(struct lower *l, LLVMBuilderRef b, const u32 *lanes, const u32 *warps, int warp_bits)
{
	u32 bases[LANE_BITS + LAYOUT_MAX_BITS] = {0};
	memcpy(bases, lanes, LANE_BITS * sizeof *bases);
	memcpy(bases + LANE_BITS, warps, (size_t)warp_bits * sizeof *bases);
	return linear_map(l, b, l->thread, bases, LANE_BITS + ilog2((u64)l->k->num_warps));
}

LLVMValueRef thread_position(struct lower *l, const struct layout *lay)
{
	LLVMValueRef v = map_get(&l->positions, lay);
	if (v)
		return v;
	v = thread_map(l, l->entry, lay->basis[LL_LANE], lay->basis[LL_WARP], lay->bits[LL_WARP]);
	map_put(&l->positions, lay, v);
	return v;
}

LLVMValueRef is_thread(struct lower *l, u32 lanes, u32 which, u32 warps)
{
	LLVMValueRef ok = NULL;
	if (lanes)
		ok = LLVMBuildICmp(l->b, LLVMIntEQ, LLVMBuildAnd(l->b, l->lane, c_i32(l, lanes), ""), c_i32(l, which),
				   "");
	if (warps)
		ok = and_i1(l, ok,
			    LLVMBuildICmp(l->b, LLVMIntEQ, LLVMBuildAnd(l->b, l->warp, c_i32(l, warps), ""),
					  c_i32(l, 0), ""));
	return ok;
}

LLVMValueRef owner(struct lower *l, const struct layout *lay)
{
	u32 lanes = 31, warps = (u32)l->k->num_warps - 1;
	if (lay)
		layout_redundant(lay, &lanes, &warps);
	return is_thread(l, lanes, 0, warps);
}

void cluster_barrier(struct lower *l)
{
	inline_asm(l, "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;", "~{memory}", ASM_CONVERGENT,
		   l->v, NULL, 0);
}

/* Synchronizes all threads of the program (without the producer warp) and makes their writes to shared memory visible
 * to each other. */
void barrier(struct lower *l)
{
	if (l->k->cuda.cluster > 1)
		cluster_barrier(l);
	else if (l->meet)
		inline_asm(l, arena_printf(&l->scratch, "bar.sync 0, %d;", l->meet), "~{memory}", ASM_CONVERGENT, l->v,
			   NULL, 0);
	else
		intrinsic(l, "llvm.nvvm.barrier0", l->v, NULL, 0);
}

void fence_async(struct lower *l, bool global)
{
	inline_asm(l, global ? "fence.proxy.async;" : "fence.proxy.async.shared::cta;", "~{memory}", ASM_EFFECT, l->v,
		   NULL, 0);
}

void warp_barrier(struct lower *l)
{
	inline_asm(l, "bar.warp.sync 0xffffffff;", "~{memory}", ASM_CONVERGENT, l->v, NULL, 0);
}

LLVMValueRef and_i1(struct lower *l, LLVMValueRef a, LLVMValueRef b)
{
	return !a ? b : !b ? a : LLVMBuildAnd(l->b, a, b, "");
}

static LLVMValueRef byte_offset(struct lower *l, LLVMValueRef base, LLVMValueRef offset)
{
	return LLVMBuildInBoundsGEP2(l->b, l->i8, base, &offset, 1, "");
}

LLVMValueRef shared_at(struct lower *l, LLVMValueRef base, LLVMValueRef offset, u32 constant)
{
	if (offset)
		base = byte_offset(l, base, offset);
	return constant ? byte_offset(l, base, c_i32(l, constant)) : base;
}

LLVMValueRef shared_base(struct lower *l, const struct op *o)
{
	tl_assert(o->scratch_offset >= 0);
	return shared_at(l, l->shared, NULL, (u32)o->scratch_offset);
}

struct insertion_point go_behind(struct lower *l, LLVMValueRef last)
{
	struct insertion_point here = {LLVMGetInsertBlock(l->b), LLVMGetCurrentDebugLocation2(l->b)};
	LLVMValueRef next = last ? LLVMGetNextInstruction(last) : NULL;
	while (next && LLVMIsAPHINode(next))
		next = LLVMGetNextInstruction(next);
	if (next)
		LLVMPositionBuilderBefore(l->b, next);
	return here;
}

void come_back(struct lower *l, struct insertion_point here)
{
	LLVMPositionBuilderAtEnd(l->b, here.block);
	LLVMSetCurrentDebugLocation2(l->b, here.line);
}

void load_vector(struct lower *l, LLVMTypeRef t, u32 n, LLVMValueRef at, LLVMValueRef *out)
{
	LLVMValueRef v = LLVMBuildLoad2(l->b, n > 1 ? LLVMVectorType(t, n) : t, at, "");
	LLVMSetAlignment(v, (unsigned)type_bits(t) / 8 * n);
	for (u32 i = 0; i < n; i++)
		out[i] = n > 1 ? LLVMBuildExtractElement(l->b, v, c_i32(l, i), "") : v;
}

void store_vector(struct lower *l, const LLVMValueRef *in, u32 n, LLVMValueRef at)
{
	LLVMValueRef v = as_vector(l, in, n);
	LLVMSetAlignment(LLVMBuildStore(l->b, v, at), (unsigned)type_bits(LLVMTypeOf(v)) / 8 * n);
}

const char *register_list(struct lower *l, const char *name, u32 first, u32 n)
{
	struct strbuf sb = {.arena = &l->scratch};
	for (u32 i = 0; i < n; i++)
		sb_printf(&sb, "%s%s%u", i ? ", " : "{", name, first + i);
	sb_puts(&sb, "}");
	return sb.at;
}

LLVMValueRef permute_bytes(struct lower *l, LLVMValueRef low, LLVMValueRef high, LLVMValueRef selector)
{
	LLVMValueRef args[] = {low, high, selector};
	return intrinsic(l, "llvm.nvvm.prmt", l->i32, args, 3);
}

LLVMValueRef lane_bit(struct lower *l, int bit)
{
	return LLVMBuildICmp(l->b, LLVMIntNE, LLVMBuildAnd(l->b, l->lane, c_i32(l, 1u << bit), ""), c_i32(l, 0), "");
}

/* The i32 or float v of another lane: lane `lane`, or (this lane ^ lane) if by_xor. */
static LLVMValueRef shuffle_word(struct lower *l, LLVMValueRef v, LLVMValueRef lane, bool by_xor)
{
	static const char *const names[2][2] = {{"llvm.nvvm.shfl.sync.idx.i32", "llvm.nvvm.shfl.sync.idx.f32"},
						{"llvm.nvvm.shfl.sync.bfly.i32", "llvm.nvvm.shfl.sync.bfly.f32"}};
	LLVMValueRef args[] = {c_i32(l, 0xFFFFFFFF), v, lane, c_i32(l, 31)};
	return intrinsic(l, names[by_xor][LLVMTypeOf(v) == l->f32], LLVMTypeOf(v), args, 4);
}

static LLVMValueRef shuffle_any(struct lower *l, LLVMValueRef v, LLVMValueRef lane, bool by_xor)
{
	LLVMTypeRef t = LLVMTypeOf(v);
	int bits = type_bits(t);
	if (t == l->f32)
		return shuffle_word(l, v, lane, by_xor);
	LLVMValueRef x = to_bits(l->b, v);
	if (bits == 64) {
		LLVMValueRef words[2] = {0}, both = NULL;
		unpack(l, &x, 1, l->i32, 2, words);
		words[0] = shuffle_word(l, words[0], lane, by_xor);
		words[1] = shuffle_word(l, words[1], lane, by_xor);
		pack(l, words, 2, 64, &both);
		return from_bits(l->b, both, t);
	}
	if (bits < 32)
		x = LLVMBuildZExt(l->b, x, l->i32, "");
	x = shuffle_word(l, x, lane, by_xor);
	if (bits < 32)
		x = LLVMBuildTrunc(l->b, x, int_type(l, bits), "");
	return from_bits(l->b, x, t);
}

LLVMValueRef shuffle(struct lower *l, LLVMValueRef v, LLVMValueRef lane)
{
	return shuffle_any(l, v, lane, false);
}

LLVMValueRef shuffle_xor(struct lower *l, LLVMValueRef v, u32 mask)
{
	return shuffle_any(l, v, c_i32(l, mask), true);
}

/* --- registers that determine others ------------------------------------------------------------------------- */

/* The register bits that move the coordinate along a dimension d by less than run[d] and less than `most`. */
static u32 bits_within(const struct value *v, const i32 *run, i32 most)
{
	const struct layout *lay = type_is_tensor(v->type) ? v->type->layout : NULL;
	u32 bits = 0;
	for (int d = 0; lay && d < lay->rank; d++)
		for (int i = 0; i < lay->bits[LL_REG]; i++) {
			u32 at = lay->basis[LL_REG][i] >> layout_dim_shift(lay, d);
			if (lay->basis[LL_REG][i] & layout_dim_mask(lay, d) && at < (u32)MIN(run[d], most))
				bits |= 1u << i;
		}
	return bits;
}

u32 constant_bits(struct lower *l, const struct value *v)
{
	return bits_within(v, axis_proved(l->s->axis, v)->constancy, INT32_MAX);
}

/* If v has pointers: the register bits within which the pointers count up by one element, at most 16 bytes far. */
static u32 following_bits(struct lower *l, const struct value *v)
{
	const struct type *t = type_elem(v->type);
	enum { VECTOR = 16 }; /* bytes */
	return type_is_ptr(t) && t->elem->kind == TY_SCALAR
		       ? bits_within(v, axis_proved(l->s->axis, v)->contiguity, VECTOR / dtype_bytes(t->elem->dtype))
		       : 0;
}

u32 told_bits(struct lower *l, const struct value *v)
{
	return constant_bits(l, v) | following_bits(l, v);
}

void tell_others(struct lower *l, const struct value *v, LLVMValueRef *at)
{
	u32 told = told_bits(l, v), following = following_bits(l, v);
	for (u32 r = 0; told && r < num_elems(v); r++) {
		const struct layout *lay = v->type->layout;
		u32 place = layout_apply(lay, r & following, 0, 0);
		u64 distance = 0;
		for (int d = 0; d < lay->rank; d++)
			distance += (place & layout_dim_mask(lay, d)) >> layout_dim_shift(lay, d);
		if (r & told)
			at[r] = at[r & ~told];
		if (distance)
			at[r] = pointer_plus(l, type_elem(v->type), at[r], c_i64(l, (i64)distance));
	}
}

LLVMValueRef pointer_plus(struct lower *l, const struct type *pointer, LLVMValueRef p, LLVMValueRef by)
{
	const struct type *to = pointer->elem;
	LLVMTypeRef t = to->kind == TY_PTR ? l->i64 : int_type(l, MAX(dtype_bits(to->dtype), 8));
	if (type_bits(LLVMTypeOf(by)) < 64)
		by = LLVMBuildSExt(l->b, by, l->i64, "");
	return gep(l->b, p, t, by);
}

/* --- the order of LLVM's instructions ------------------------------------------------------------------------- */

struct instructions instructions_behind(struct lower *l, LLVMValueRef first)
{
	struct instructions in = {.left = {.arena = &l->scratch}};
	LLVMValueRef begin = first ? LLVMGetNextInstruction(first) : LLVMGetFirstInstruction(LLVMGetInsertBlock(l->b));
	for (LLVMValueRef i = begin; i; i = LLVMGetNextInstruction(i)) {
		map_put(&in.left, i, i);
		in.n++;
	}
	in.at = arena_array(&l->scratch, LLVMValueRef, in.n);
	for (u32 k = 0; k < in.n; k++, begin = LLVMGetNextInstruction(begin))
		in.at[k] = begin;
	return in;
}

void move_to_end(struct lower *l, struct instructions *in, LLVMValueRef *values, u32 n)
{
	struct map needed = {.arena = &l->scratch};
	VEC(LLVMValueRef) work = {0};
	for (u32 i = 0; i < n; i++)
		vec_push(&l->scratch, &work, values[i]);
	while (work.len) {
		LLVMValueRef v = work.at[--work.len];
		if (!map_get(&in->left, v) || map_get(&needed, v))
			continue;
		map_put(&needed, v, v);
		for (int i = 0; i < LLVMGetNumOperands(v); i++)
			vec_push(&l->scratch, &work, LLVMGetOperand(v, (unsigned)i));
	}
	for (u32 i = 0; i < in->n; i++) {
		LLVMValueRef v = in->at[i];
		if (!map_get(&in->left, v) || (values && !map_get(&needed, v)))
			continue;
		LLVMInstructionRemoveFromParent(v);
		LLVMInsertIntoBuilder(l->b, v);
		map_put(&in->left, v, NULL);
	}
}
