/* Reductions and scans: up the ladder of registers, lanes and warps.
 *
 * A reduction first combines the registers of a thread, then lanes by butterfly shuffles, then warps through shared
 * memory: each warp leaves its partial results, and after a barrier every thread combines those it needs. A scan climbs
 * the same ladder with prefixes. The combine function is the operation's region, emitted anew for each combination. */
#include "base/tuning.h"
#include "lower/internal.h"

enum { MAX_VALUES = 8 };

/* combine(a, b) → out: the region with its arguments bound to one element each. */
static void combine(struct lower *l, const struct op *o, LLVMValueRef *a, LLVMValueRef *b, LLVMValueRef *out)
{
	const struct block *r = o->blocks[0];
	u32 n = o->noperands;
	for (u32 i = 0; i < n; i++) {
		LLVMValueRef *x = arena_array(&l->scratch, LLVMValueRef, 2);
		x[0] = a[i];
		x[1] = b[i];
		set_tile(l, r->args[i], &x[0], 1);
		set_tile(l, r->args[i + n], &x[1], 1);
	}
	lower_block(l, r);
	for (u32 i = 0; i < n; i++)
		out[i] = elem(l, operand(r->last, i), 0);
}

static bool has_effects(const struct lower *l, const struct op *o)
{
	const struct block *r = o->blocks[0];
	return block_has(r, l->s->debug ? op_is_report : op_is_print);
}

/* combine(a, b) → v where `cond` is true (NULL: everywhere); else v stays as it is. */
static void combine_where(struct lower *l, const struct op *o, LLVMValueRef cond, LLVMValueRef *a, LLVMValueRef *b,
			  LLVMValueRef *v)
{
	LLVMValueRef sum[MAX_VALUES];
	bool branch = cond && has_effects(l, o);
	LLVMBasicBlockRef from[] = {LLVMGetInsertBlock(l->b), NULL};
	struct guarded g = begin_if(l, branch ? cond : NULL);
	combine(l, o, a, b, sum);
	from[1] = LLVMGetInsertBlock(l->b);
	end_if(l, g);
	for (u32 i = 0; i < o->noperands; i++) {
		LLVMValueRef either[] = {v[i], sum[i]};
		v[i] = branch ? LLVMBuildPhi(l->b, LLVMTypeOf(sum[i]), "")
		       : cond ? LLVMBuildSelect(l->b, cond, sum[i], v[i], "")
			      : sum[i];
		if (branch)
			LLVMAddIncoming(v[i], either, from, 2);
	}
}

/* Combines `count` (a power of two) partial results in their order, neighbours first, into the first. */
static void combine_tree(struct lower *l, const struct op *o, LLVMValueRef *part, u32 count)
{
	u32 n = o->noperands;
	for (u32 step = 1; step < count; step *= 2)
		for (u32 k = 0; k < count; k += 2 * step)
			combine(l, o, &part[k * n], &part[(k + step) * n], &part[k * n]);
}

struct ladder {
	const struct layout *in, *out; /* out: NULL when the result is a scalar */
	u32 axis_mask, reg_axis;       /* position bits, register bits along the axis */
	u8 warp_bits[LAYOUT_MAX_BITS], nwarp; /* warp bits along the axis */
	u32 n;                         /* operands */
	u32 results;                   /* partial results a thread has */
	/* so many of them lie side by side in a row of each warp's in shared memory; 0: all warps' of one do */
	u32 run;
};

static struct ladder ladder_of(const struct op *o)
{
	const struct type *t = operand(o, 0)->type;
	struct ladder d = {.in = t->layout, .n = o->noperands};
	d.axis_mask = layout_dim_mask(d.in, (int)o->attr[ATTR_AXIS]);
	for (int i = 0; i < d.in->bits[LL_REG]; i++)
		if (d.in->basis[LL_REG][i] & d.axis_mask)
			d.reg_axis |= 1u << i;
	for (int i = 0; i < d.in->bits[LL_WARP]; i++)
		if (d.in->basis[LL_WARP][i] & d.axis_mask)
			d.warp_bits[d.nwarp++] = (u8)i;
	d.results = (u32)layout_num_regs(d.in) >> __builtin_popcount(d.reg_axis);
	return d;
}

static u32 other_bits(const struct ladder *d)
{
	return ~d->reg_axis & ((u32)layout_num_regs(d->in) - 1);
}

/* Combines a thread's registers along the axis, as a tree. */
static void reduce_registers(struct lower *l, const struct op *o, const struct ladder *d, u32 result_index,
			     LLVMValueRef *out)
{
	u32 base = spread(result_index, other_bits(d)), count = 1u << __builtin_popcount(d->reg_axis);
	LLVMValueRef *part = arena_array(&l->scratch, LLVMValueRef, count * d->n);
	for (u32 k = 0; k < count; k++)
		for (u32 i = 0; i < d->n; i++)
			part[k * d->n + i] = elem(l, operand(o, i), base | spread(k, d->reg_axis));
	combine_tree(l, o, part, count);
	for (u32 i = 0; i < d->n; i++)
		out[i] = part[i];
}

/* Is the combination one commutative operation, and so to the last bit? Others may not be (on ties of an argmax, in the
 * rounding of several steps), and lanes that hold the same element must agree. */
static bool is_commutative(const struct op *o)
{
	const struct op *first = o->blocks[0]->first;
	return op_has(first, COMM) && op_has(first->next, END);
}

/* Combines the lanes that differ in these bits of their numbers, by butterfly. All get the result if `all`, else those
 * of them whose bits are 0, who have combined everything in order. */
static void combine_lanes(struct lower *l, const struct op *o, u32 bits, bool all, LLVMValueRef *v)
{
	LLVMValueRef other[MAX_VALUES] = {0};
	for (int bit = 0; bit < LANE_BITS; bit++) {
		for (u32 i = 0; i < o->noperands && bits >> bit & 1; i++)
			other[i] = shuffle_xor(l, v[i], 1u << bit);
		if (bits >> bit & 1)
			combine(l, o, v, other, v);
	}
	if (!bits || !all || is_commutative(o))
		return;
	LLVMValueRef first = LLVMBuildAnd(l->b, l->lane, c_i32(l, ~bits), "");
	for (u32 i = 0; i < o->noperands; i++)
		v[i] = shuffle(l, v[i], first);
}

static void reduce_lanes(struct lower *l, const struct op *o, const struct ladder *d, LLVMValueRef *v)
{
	u32 bits = 0;
	for (int bit = 0; bit < d->in->bits[LL_LANE]; bit++)
		if (d->in->basis[LL_LANE][bit] & d->axis_mask)
			bits |= 1u << bit;
	combine_lanes(l, o, bits, !d->nwarp, v);
}

/* Position of partial result r among the results of the tile, without the axis: this thread's part and a constant. */
static u32 drop_axis(const struct ladder *d, u32 pos)
{
	if (!d->axis_mask) /* an axis of one element has no bits */
		return pos;
	int shift = __builtin_ctz(d->axis_mask), width = __builtin_popcount(d->axis_mask);
	u32 low = pos & ((1u << shift) - 1);
	return pos >> (shift + width) << shift | low;
}

static void result_bases(const struct ladder *d, enum layout_dim dim, u32 *out)
{
	for (int i = 0; i < d->in->bits[dim]; i++)
		out[i] = drop_axis(d, d->in->basis[dim][i] & ~d->axis_mask);
}

/* Address of slot (result, warp) of operand i's partial results: result * warps + warp, or in rows warp * results +
 * result, in elements. */
static LLVMValueRef slot_address(struct lower *l, const struct op *o, const struct ladder *d, u32 i,
				 LLVMValueRef result_pos, LLVMValueRef warp)
{
	LLVMValueRef base = shared_base(l, o);
	u32 offset = 0, warps = 1u << d->nwarp;
	i64 total = type_numel(operand(o, 0)->type) >> __builtin_popcount(d->axis_mask);
	u32 bytes = 1;
	for (u32 k = 0; k <= i; k++) {
		bytes = (u32)dtype_bytes(type_dtype(operand(o, k)->type));
		if (k < i)
			offset += (u32)((total * warps * bytes + 15) & ~15);
	}
	LLVMValueRef major = d->run ? warp : result_pos, minor = d->run ? result_pos : warp;
	LLVMValueRef at =
		LLVMBuildAdd(l->b, LLVMBuildMul(l->b, major, c_i32(l, d->run ? total : warps), ""), minor, "");
	return shared_at(l, base, LLVMBuildMul(l->b, at, c_i32(l, bytes), ""), offset);
}

static LLVMValueRef load_slot(struct lower *l, LLVMValueRef address, LLVMTypeRef t)
{
	if (t == l->i1)
		return LLVMBuildTrunc(l->b, LLVMBuildLoad2(l->b, l->i8, address, ""), l->i1, "");
	return LLVMBuildLoad2(l->b, t, address, "");
}

/* To the shared memory of every block of the program. */
static void store_slot_to_all(struct lower *l, LLVMValueRef address, LLVMValueRef v)
{
	LLVMValueRef at = LLVMBuildPtrToInt(l->b, address, l->i32, "");
	int bits = MAX(type_bits(LLVMTypeOf(v)), 8);
	v = LLVMTypeOf(v) == l->i1 ? LLVMBuildZExt(l->b, v, l->i8, "") : to_bits(l, v);
	if (bits == 8)
		v = LLVMBuildZExt(l->b, v, l->i16, "");
	const char *text = arena_printf(
		&l->scratch,
		"{\n\t.reg .b32 a;\n\tmapa.shared::cluster.u32 a, $0, $1;\n\tst.shared::cluster.b%d [a], $2;\n\t}",
		bits);
	const char *constraints = bits == 64 ? "r,n,l,~{memory}" : bits == 32 ? "r,n,r,~{memory}" : "r,n,h,~{memory}";
	for (int rank = 0; rank < l->k->cuda.cluster; rank++) {
		LLVMValueRef args[] = {at, c_i32(l, rank), v};
		inline_asm(l, text, constraints, ASM_EFFECT, l->v, args, 3);
	}
}

static void store_slot(struct lower *l, LLVMValueRef address, LLVMValueRef v)
{
	if (l->k->cuda.cluster > 1) {
		store_slot_to_all(l, address, v);
		return;
	}
	LLVMBuildStore(l->b, LLVMTypeOf(v) == l->i1 ? LLVMBuildZExt(l->b, v, l->i8, "") : v, address);
}

/* By a predicate. */
static void store_word_if(struct lower *l, LLVMValueRef pred, LLVMValueRef address, LLVMValueRef v)
{
	bool is_float = LLVMTypeOf(v) == l->f32;
	LLVMValueRef args[] = {address, is_float ? v : to_bits(l, v), pred};
	inline_asm(l, "@$2 st.shared.b32 [$0], $1;", is_float ? "l,f,b,~{memory}" : "l,r,b,~{memory}", ASM_EFFECT, l->v,
		   args, 3);
}

/* This warp's number among those that share results. */
static LLVMValueRef axis_warp(struct lower *l, const struct ladder *d)
{
	u32 bases[LAYOUT_MAX_BITS] = {0};
	for (int k = 0; k < d->nwarp; k++)
		bases[d->warp_bits[k]] = 1u << k;
	return linear_map(l, l->b, l->warp, bases, d->in->bits[LL_WARP]);
}

/* The thread's part of a partial result's position, and the constant part of result r. */
static LLVMValueRef thread_result(struct lower *l, const struct ladder *d)
{
	u32 lanes[LAYOUT_MAX_BITS], warps[LAYOUT_MAX_BITS];
	result_bases(d, LL_LANE, lanes);
	result_bases(d, LL_WARP, warps);
	return thread_map(l, l->b, lanes, warps, d->in->bits[LL_WARP]);
}

static LLVMValueRef result_position(struct lower *l, const struct ladder *d, LLVMValueRef thread, u32 r)
{
	u32 pos = drop_axis(d, layout_apply(d->in, spread(r, other_bits(d)), 0, 0));
	return LLVMBuildOr(l->b, thread, c_i32(l, pos), "");
}

/* Of the threads that hold the same partial result one writes it: along the axis the lane whose bits equal `which`,
 * of copies the first. */
static LLVMValueRef writer(struct lower *l, const struct ladder *d, u32 which)
{
	u32 lanes = 0, warps = 0;
	LLVMValueRef ok = NULL;
	for (int i = 0; i < d->in->bits[LL_LANE]; i++)
		if (!(d->in->basis[LL_LANE][i] & ~d->axis_mask))
			lanes |= 1u << i;
	for (int i = 0; i < d->in->bits[LL_WARP]; i++)
		if (!d->in->basis[LL_WARP][i])
			warps |= 1u << i;
	if (lanes)
		ok = LLVMBuildICmp(l->b, LLVMIntEQ, LLVMBuildAnd(l->b, l->lane, c_i32(l, lanes), ""), c_i32(l, which),
				   "");
	if (warps)
		ok = and_i1(l, ok,
			    LLVMBuildICmp(l->b, LLVMIntEQ, LLVMBuildAnd(l->b, l->warp, c_i32(l, warps), ""),
					  c_i32(l, 0), ""));
	return ok;
}

/* Stores the partial results of the threads for which `mine` (NULL: all). A few words without a branch: LLVM takes much
 * longer for more blocks. */
static void store_slots(struct lower *l, const struct op *o, const struct ladder *d, LLVMValueRef mine,
			LLVMValueRef *part)
{
	LLVMValueRef thread = thread_result(l, d), warp = axis_warp(l, d);
	bool branch = !mine || l->k->cuda.cluster > 1 || d->results * d->n > MAX_PREDICATED_STORES;
	for (u32 i = 0; i < d->n; i++)
		branch |= type_bits(LLVMTypeOf(part[i])) != 32;
	struct guarded g = begin_if(l, branch ? mine : NULL);
	for (u32 r = 0; r < d->results; r++)
		for (u32 i = 0; i < d->n; i++) {
			LLVMValueRef address = slot_address(l, o, d, i, result_position(l, d, thread, r), warp);
			if (branch)
				store_slot(l, address, part[r * d->n + i]);
			else
				store_word_if(l, mine, address, part[r * d->n + i]);
		}
	end_if(l, g);
}

static void load_slots(struct lower *l, const struct op *o, const struct ladder *d, LLVMValueRef pos, LLVMValueRef warp,
		       LLVMValueRef *out)
{
	for (u32 i = 0; i < d->n; i++)
		out[i] = load_slot(l, slot_address(l, o, d, i, pos, warp), llvm_type(l, operand(o, i)->type));
}

/* The results of all warps, which lie side by side; words up to four at a time. */
static void load_all_slots(struct lower *l, const struct op *o, const struct ladder *d, LLVMValueRef pos, u32 warps,
			   LLVMValueRef *out)
{
	for (u32 i = 0; i < d->n; i++) {
		LLVMTypeRef t = llvm_type(l, operand(o, i)->type);
		u32 width = type_bits(t) == 32 ? MIN(warps, 4u) : 1;
		for (u32 k = 0; k < warps; k += width) {
			LLVMValueRef at = slot_address(l, o, d, i, pos, c_i32(l, k));
			LLVMValueRef v = load_slot(l, at, width > 1 ? LLVMVectorType(t, width) : t);
			if (width > 1)
				LLVMSetAlignment(v, 4 * width);
			for (u32 e = 0; e < width; e++)
				out[(k + e) * d->n + i] =
					width > 1 ? LLVMBuildExtractElement(l->b, v, c_i32(l, e), "") : v;
		}
	}
}

/* Do all lanes of a warp hold the same results? */
static bool same_in_lanes(const struct ladder *d)
{
	for (int i = 0; i < d->in->bits[LL_LANE]; i++)
		if (d->in->basis[LL_LANE][i] & ~d->axis_mask)
			return false;
	return true;
}

/* Combines the warps' results for position pos: each thread all of them, or when there are many and all lanes want the
 * same, each lane its share and then the lanes' among them. */
static void combine_warps(struct lower *l, const struct op *o, const struct ladder *d, LLVMValueRef pos,
			  LLVMValueRef *v)
{
	enum { LANES = 32 };
	u32 warps = 1u << d->nwarp;
	bool by_lanes = d->nwarp >= LOG2_WARPS_COMBINED_BY_LANES && same_in_lanes(d);
	u32 count = by_lanes ? MAX(warps / LANES, 1) : warps;
	LLVMValueRef *part = arena_array(&l->scratch, LLVMValueRef, count * d->n);
	LLVMValueRef lane = by_lanes ? LLVMBuildAnd(l->b, l->lane, c_i32(l, MIN(warps, LANES) - 1), "") : NULL;
	if (!by_lanes)
		load_all_slots(l, o, d, pos, warps, part);
	for (u32 k = 0; k < count && by_lanes; k++)
		load_slots(l, o, d, pos, LLVMBuildAdd(l->b, lane, c_i32(l, k * LANES), ""), &part[k * d->n]);
	combine_tree(l, o, part, count);
	if (by_lanes)
		combine_lanes(l, o, MIN(warps, LANES) - 1, true, part);
	memcpy(v, part, d->n * sizeof *v);
}

/* How many results of a thread are neighbours, as words of a vector; 0 if that is no use. With the warps' side by side,
 * lanes that each have a run of results would meet in few banks. */
static u32 run_of(struct lower *l, const struct op *o, const struct ladder *d)
{
	u32 run = 1, bases[LAYOUT_MAX_BITS], others = 0;
	if (!d->nwarp || l->k->cuda.cluster > 1 || same_in_lanes(d))
		return 0;
	for (u32 i = 0; i < d->n; i++)
		if (type_bits(llvm_type(l, operand(o, i)->type)) != 32)
			return 0;
	for (int dim = LL_LANE; dim <= LL_WARP; dim++) {
		result_bases(d, (enum layout_dim)dim, bases);
		for (int i = 0; i < d->in->bits[dim]; i++)
			others |= bases[i];
	}
	while (run < 4 && run < d->results && !(others & run) &&
	       drop_axis(d, layout_apply(d->in, spread(run, other_bits(d)), 0, 0)) == run)
		run *= 2;
	return run > 1 ? run : 0;
}

/* Rows of results, one a warp. */
static void store_runs(struct lower *l, const struct op *o, const struct ladder *d, LLVMValueRef *part)
{
	LLVMValueRef thread = thread_result(l, d), warp = axis_warp(l, d);
	struct guarded g = begin_if(l, writer(l, d, 0));
	for (u32 r = 0; r < d->results; r += d->run)
		for (u32 i = 0; i < d->n; i++) {
			LLVMValueRef v = LLVMGetPoison(LLVMVectorType(LLVMTypeOf(part[i]), d->run));
			for (u32 e = 0; e < d->run; e++)
				v = LLVMBuildInsertElement(l->b, v, part[(r + e) * d->n + i], c_i32(l, e), "");
			LLVMSetAlignment(
				LLVMBuildStore(l->b, v,
					       slot_address(l, o, d, i, result_position(l, d, thread, r), warp)),
				4 * d->run);
		}
	end_if(l, g);
}

static void combine_runs(struct lower *l, const struct op *o, const struct ladder *d, LLVMValueRef *part)
{
	LLVMValueRef thread = thread_result(l, d);
	u32 warps = 1u << d->nwarp;
	LLVMValueRef *all = arena_array(&l->scratch, LLVMValueRef, d->run * warps * d->n);
	for (u32 r = 0; r < d->results; r += d->run) {
		LLVMValueRef pos = result_position(l, d, thread, r);
		for (u32 w = 0; w < warps; w++)
			for (u32 i = 0; i < d->n; i++) {
				LLVMTypeRef t = LLVMTypeOf(part[i]);
				LLVMValueRef v = LLVMBuildLoad2(l->b, LLVMVectorType(t, d->run),
								slot_address(l, o, d, i, pos, c_i32(l, w)), "");
				LLVMSetAlignment(v, 4 * d->run);
				for (u32 e = 0; e < d->run; e++)
					all[(e * warps + w) * d->n + i] =
						LLVMBuildExtractElement(l->b, v, c_i32(l, e), "");
			}
		for (u32 e = 0; e < d->run; e++) {
			combine_tree(l, o, &all[e * warps * d->n], warps);
			memcpy(&part[(r + e) * d->n], &all[e * warps * d->n], d->n * sizeof *part);
		}
	}
}

static void reduce_warps(struct lower *l, const struct op *o, const struct ladder *d, LLVMValueRef *part)
{
	LLVMValueRef thread = thread_result(l, d);
	if (d->run) {
		store_runs(l, o, d, part);
		barrier(l);
		combine_runs(l, o, d, part);
		return;
	}
	store_slots(l, o, d, writer(l, d, 0), part);
	barrier(l);
	for (u32 r = 0; r < d->results; r++)
		combine_warps(l, o, d, result_position(l, d, thread, r), &part[r * d->n]);
}

/* Gives each register of the results its partial result. They are indexed like the operand's registers with the axis
 * left out, which is what a slice is; registers that only held copies are gone from it. */
static void spread_results(struct lower *l, const struct op *o, const struct ladder *d, LLVMValueRef *part)
{
	struct map at = {.arena = &l->scratch}; /* a position → its partial result, from 1 */
	for (u32 k = d->results; k-- > 0;) {
		u32 pos = drop_axis(d, layout_apply(d->in, spread(k, other_bits(d)), 0, 0));
		map_put(&at, (void *)(uintptr_t)(pos + 1), (void *)(uintptr_t)(k + 1));
	}
	for (u32 i = 0; i < d->n; i++) {
		const struct value *v = &o->results[i];
		LLVMValueRef *tile = new_tile(l, v);
		for (u32 r = 0; r < num_elems(v); r++) {
			u32 pos = type_is_tensor(v->type) ? layout_apply(v->type->layout, r, 0, 0) : 0;
			uintptr_t k = (uintptr_t)map_get(&at, (void *)(uintptr_t)(pos + 1));
			tl_assert(k);
			tile[r] = part[(k - 1) * d->n + i];
		}
	}
}

void lower_reduce(struct lower *l, const struct op *o)
{
	struct ladder d = ladder_of(o);
	LLVMValueRef *part = arena_array(&l->scratch, LLVMValueRef, d.results * d.n);
	tl_assert(d.n <= MAX_VALUES);
	for (u32 r = 0; r < d.results; r++) {
		reduce_registers(l, o, &d, r, &part[r * d.n]);
		reduce_lanes(l, o, &d, &part[r * d.n]);
	}
	d.run = run_of(l, o, &d);
	if (d.nwarp)
		reduce_warps(l, o, &d, part);
	spread_results(l, o, &d, part);
}

/* --- scans --------------------------------------------------------------------------------------------------- */

/* Inclusive scan of v over the lanes along the axis, in the axis' order (or against it). */
static void scan_lanes(struct lower *l, const struct op *o, const struct ladder *d, LLVMValueRef *v, bool reverse)
{
	for (int bit = 0; bit < d->in->bits[LL_LANE]; bit++) {
		if (!(d->in->basis[LL_LANE][bit] & d->axis_mask))
			continue;
		/* the layout gives the axis consecutive lane bits, so the neighbours at distance 2^k along it are at
		 * lane distance 2^bit; blocks of lanes below this bit end in their last (first) lane */
		LLVMValueRef other[MAX_VALUES];
		u32 below = 0;
		for (int k = 0; k < bit; k++)
			if (d->in->basis[LL_LANE][k] & d->axis_mask)
				below |= 1u << k;
		/* partner: the other half-block's last element in scan order */
		LLVMValueRef lane = reverse ? LLVMBuildAnd(l->b, l->lane, c_i32(l, ~below), "")
					    : LLVMBuildOr(l->b, l->lane, c_i32(l, below), "");
		lane = LLVMBuildXor(l->b, lane, c_i32(l, 1u << bit), "");
		LLVMValueRef upper =
			LLVMBuildICmp(l->b, reverse ? LLVMIntEQ : LLVMIntNE,
				      LLVMBuildAnd(l->b, l->lane, c_i32(l, 1u << bit), ""), c_i32(l, 0), "");
		for (u32 i = 0; i < d->n; i++)
			other[i] = shuffle(l, v[i], lane);
		combine_where(l, o, upper, other, v, v);
	}
}

/* The lane before this one along the axis, and whether there is one. */
static LLVMValueRef previous_lane(struct lower *l, const struct ladder *d, bool reverse, LLVMValueRef *has)
{
	u32 mask = 0;
	for (int i = 0; i < d->in->bits[LL_LANE]; i++)
		if (d->in->basis[LL_LANE][i] & d->axis_mask)
			mask |= 1u << i;
	*has = NULL;
	if (!mask)
		return NULL;
	LLVMValueRef along = LLVMBuildAnd(l->b, l->lane, c_i32(l, mask), "");
	*has = LLVMBuildICmp(l->b, LLVMIntNE, along, c_i32(l, reverse ? mask : 0), "");
	i64 one = mask & -mask;
	return LLVMBuildAdd(l->b, l->lane, c_i32(l, reverse ? one : -one), "");
}

/* Warps: totals through shared memory, then each warp adds those before it. */
static void scan_warps(struct lower *l, const struct op *o, const struct ladder *d, LLVMValueRef *total,
		       LLVMValueRef *v, u32 per_result, bool reverse)
{
	LLVMValueRef thread = thread_result(l, d), warp = axis_warp(l, d);
	u32 warps = 1u << d->nwarp, lane_mask = 0;
	for (int i = 0; i < d->in->bits[LL_LANE]; i++)
		if (d->in->basis[LL_LANE][i] & d->axis_mask)
			lane_mask |= 1u << i;
	store_slots(l, o, d, writer(l, d, reverse ? 0 : lane_mask), total);
	barrier(l);
	for (u32 r = 0; r < d->results; r++) {
		LLVMValueRef pos = result_position(l, d, thread, r), before[MAX_VALUES], other[MAX_VALUES];
		LLVMValueRef have = NULL;
		for (u32 k = 0; k + 1 < warps; k++) {
			u32 w = reverse ? warps - 1 - k : k;
			LLVMValueRef counts =
				LLVMBuildICmp(l->b, reverse ? LLVMIntULT : LLVMIntUGT, warp, c_i32(l, w), "");
			for (u32 i = 0; i < d->n; i++)
				other[i] = load_slot(l, slot_address(l, o, d, i, pos, c_i32(l, w)),
						     llvm_type(l, operand(o, i)->type));
			if (!have) {
				memcpy(before, other, sizeof before);
				have = counts;
				continue;
			}
			combine_where(l, o, counts, before, other, before);
		}
		for (u32 k = 0; k < per_result; k++) {
			LLVMValueRef *own = &v[(r * per_result + k) * d->n];
			combine_where(l, o, have, before, own, own);
		}
	}
}

void lower_scan(struct lower *l, const struct op *o)
{
	struct ladder d = ladder_of(o);
	bool reverse = o->attr[ATTR_REVERSE];
	u32 per = 1u << __builtin_popcount(d.reg_axis);
	LLVMValueRef *v = arena_array(&l->scratch, LLVMValueRef, d.results * per * d.n),
		     *total = arena_array(&l->scratch, LLVMValueRef, d.results * d.n), has;
	LLVMValueRef lane = previous_lane(l, &d, reverse, &has);
	for (u32 r = 0; r < d.results; r++) {
		u32 base = spread(r, other_bits(&d));
		LLVMValueRef *row = &v[r * per * d.n], before[MAX_VALUES];
		for (u32 k = 0; k < per; k++) { /* the thread's own run, in scan order */
			u32 at = reverse ? per - 1 - k : k;
			for (u32 i = 0; i < d.n; i++)
				row[at * d.n + i] = elem(l, operand(o, i), base | spread(at, d.reg_axis));
			if (k)
				combine(l, o, &row[(reverse ? at + 1 : at - 1) * d.n], &row[at * d.n], &row[at * d.n]);
		}
		memcpy(&total[r * d.n], &row[(reverse ? 0 : per - 1) * d.n], d.n * sizeof *total);
		if (!lane)
			continue;
		scan_lanes(l, o, &d, &total[r * d.n], reverse);
		for (u32 i = 0; i < d.n; i++)
			before[i] = shuffle(l, total[r * d.n + i], lane);
		/* to the total of what comes before this lane's part: the inclusive scan of the previous lane */
		for (u32 k = 0; k < per; k++)
			combine_where(l, o, has, before, &row[k * d.n], &row[k * d.n]);
	}
	if (d.nwarp)
		scan_warps(l, o, &d, total, v, per, reverse);
	for (u32 i = 0; i < d.n; i++) {
		LLVMValueRef *at = new_tile(l, &o->results[i]);
		for (u32 r = 0; r < d.results; r++)
			for (u32 k = 0; k < per; k++)
				at[spread(r, other_bits(&d)) | spread(k, d.reg_axis)] = v[(r * per + k) * d.n + i];
	}
}
