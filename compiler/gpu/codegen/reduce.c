/* Reductions and scans, over registers, then lanes, then warps.
 *
 * A reduction combines the registers of a thread, then lanes by shuffles, then warps through shared memory: each warp
 * stores its partial results, and after a barrier each thread combines the partial results that it needs. If these are
 * many, each thread combines some of them and stores the result, which the others load after another barrier. A scan
 * takes the same three steps with prefixes. The combine function is the operation's region, emitted again for each
 * combination. */
#include "support/thresholds.h"
#include "ir/graph.h"
#include "gpu/codegen/nvptx_internal.h"

enum { MAX_VALUES = 8 };

void run_region(struct lower *l, const struct block *b, const LLVMValueRef *args, LLVMValueRef *out)
{
	for (u32 i = 0; i < b->nargs; i++)
		new_tile(l, b->args[i])[0] = args[i];
	lower_block(l, b);
	for (u32 i = 0; i < b->last->noperands; i++)
		out[i] = elem(l, operand(b->last, i), 0);
}

/* out = combine(a, b), by the operation's region; each is one value for each operand of o. */
static void combine(struct lower *l, const struct op *o, LLVMValueRef *a, LLVMValueRef *b, LLVMValueRef *out)
{
	LLVMValueRef args[2 * MAX_VALUES];
	memcpy(args, a, o->noperands * sizeof *args);
	memcpy(args + o->noperands, b, o->noperands * sizeof *args);
	run_region(l, o->blocks[0], args, out);
}

static bool has_effects(const struct lower *l, const struct op *o)
{
	const struct block *r = o->blocks[0];
	return block_has(r, l->s->options.debug ? op_is_report : op_is_print);
}

/* v = combine(a, b) if `cond` (i1; NULL: true); otherwise v is unchanged. */
static void combine_where(struct lower *l, const struct op *o, LLVMValueRef cond, LLVMValueRef *a, LLVMValueRef *b,
			  LLVMValueRef *v)
{
	LLVMValueRef sum[MAX_VALUES];
	bool branch = cond && has_effects(l, o);
	struct guarded g = begin_if(l->b, branch ? cond : NULL);
	combine(l, o, a, b, sum);
	end_if(l->b, &g);
	for (u32 i = 0; i < o->noperands; i++)
		v[i] = branch ? either(l->b, &g, v[i], sum[i])
		       : cond ? LLVMBuildSelect(l->b, cond, sum[i], v[i], "")
			      : sum[i];
}

/* Combines `count` (a power of two) partial results as a balanced tree, adjacent ones first, into part[0]. */
static void combine_tree(struct lower *l, const struct op *o, LLVMValueRef *part, u32 count)
{
	u32 n = o->noperands;
	for (u32 step = 1; step < count; step *= 2)
		for (u32 k = 0; k < count; k += 2 * step)
			combine(l, o, &part[k * n], &part[(k + step) * n], &part[k * n]);
}

/* How a reduction or scan is distributed. A partial result of a warp combines what the warp holds for one position of
 * the result; a slot is its place in shared memory. */
struct ladder {
	const struct layout *in, *out; /* of the operands; of the results (also if the result is a scalar) */
	u32 regs, lanes, warps;        /* register, lane and warp bits of `in` along the axis */
	u32 n;                         /* number of operands */
	u32 results;                   /* number of positions of the result that a thread holds: registers of `out` */
	u32 count;                     /* number of warps along the axis, whose partial results are combined */
	/* Lane bits along the axis that number rows of partial results after combine_rows: a lane holds the partial
	 * results of `results` >> (number of these bits) positions. 0: every lane holds all. */
	u32 row_lanes;
	/* The order of slots. 0: the slots of all warps for one position are adjacent. Otherwise each warp has a row of
	 * slots, and a thread stores `run` adjacent slots as a vector. */
	u32 run;
};

static struct ladder ladder_of(struct lower *l, const struct op *o)
{
	const struct layout *in = operand(o, 0)->type->layout;
	u32 axis = layout_dim_mask(in, (int)o->attr[ATTR_AXIS]);
	struct ladder d = {.in = in,
			   .out = layout_slice(&l->s->ctx->layouts, in, (int)o->attr[ATTR_AXIS]),
			   .regs = layout_bits_in(in, LL_REG, axis),
			   .lanes = layout_bits_in(in, LL_LANE, axis),
			   .warps = layout_bits_in(in, LL_WARP, axis),
			   .n = o->noperands,
			   .count = warps_along_axis(o)};
	d.results = (u32)layout_num_regs(d.out);
	tl_assert(d.n <= MAX_VALUES && layout_num_regs(in) == (int)d.results << __builtin_popcount(d.regs));
	return d;
}

static u32 other_bits(const struct ladder *d)
{
	return ~d->regs & ((u32)layout_num_regs(d->in) - 1);
}

/* Whether combine(a, b) and combine(b, a) are equal to the last bit: the region is a single commutative operation.
 * Otherwise butterfly shuffles, in which the two lanes combine in opposite order, could give them different results
 * (ties of an argmax, rounding in several steps), but lanes with the same element of the result must agree. */
static bool is_commutative(const struct op *o)
{
	const struct op *first = o->blocks[0]->first;
	return op_has(first, COMM) && op_has(first->next, END);
}

/* Allows the sum and the product to become one multiply-add. */
static void allow_contraction(LLVMValueRef v, LLVMOpcode opcode)
{
	if (LLVMIsAInstruction(v) && LLVMGetInstructionOpcode(v) == opcode)
		LLVMSetFastMathFlags(v, LLVMFastMathAllowContract);
}

/* Combines `count` (a power of two) elements of a thread into part[0]. Operations whose operands may be exchanged run
 * as a few chains, each of which combines every CHAINS-th element: a tree needs a register for every second element.
 * Chains of 16-bit floats would round more than a tree. Products of which only the sum is used become multiply-adds. */
static void combine_elements(struct lower *l, const struct op *o, LLVMValueRef *part, u32 count)
{
	enum { CHAINS = 4 }; /* as many as the cycles until a dependent addition is issued */
	const struct op *first = o->blocks[0]->first;
	const struct value *x = operand(o, 0);
	bool contracts = !l->k->cuda.no_fp_fusion && first->code == IR_ADDF && def_if(x, IR_MULF) &&
			 value_has_one_use(x);
	if (o->noperands > 1 || !is_commutative(o) || type_elem_bits(x->type) < 32) {
		combine_tree(l, o, part, count);
		return;
	}
	for (u32 k = 0; k < count && contracts; k++)
		allow_contraction(part[k], LLVMFMul);
	for (u32 k = CHAINS; k < count; k++) {
		LLVMValueRef *sum = &part[k % CHAINS];
		combine(l, o, sum, &part[k], sum);
		if (contracts)
			allow_contraction(*sum, LLVMFAdd);
	}
	combine_tree(l, o, part, MIN(count, CHAINS));
}

/* Combines a thread's registers along the axis for register result_index of the result. */
static void reduce_registers(struct lower *l, const struct op *o, const struct ladder *d, u32 result_index,
			     LLVMValueRef *out)
{
	u32 base = spread(result_index, other_bits(d)), count = 1u << __builtin_popcount(d->regs);
	LLVMValueRef *part = arena_array(&l->scratch, LLVMValueRef, count * d->n);
	for (u32 k = 0; k < count; k++)
		for (u32 i = 0; i < d->n; i++)
			part[k * d->n + i] = elem(l, operand(o, i), base | spread(k, d->regs));
	combine_elements(l, o, part, count);
	for (u32 i = 0; i < d->n; i++)
		out[i] = part[i];
}

/* Combines v of the lanes whose numbers differ in `bits`, by butterfly shuffles. If `all`, these lanes all get the same
 * result. Otherwise only the lane with these bits zero has the result, combined in order. */
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

/* Issue slots of an operation of each kind, for a warp. */
enum { SHUFFLE_SLOTS = 4, SELECT_SLOTS = 2, SHARED_SLOTS = 4, BARRIER_SLOTS = 64 };

static u32 region_slots(const struct op *o)
{
	return count_ops(o->blocks[0]->first, UINT32_MAX) - 1;
}

/* The value of ladder.row_lanes. With 8 positions and 5 lane bits, lanes that exchange halves shuffle 4 + 2 + 1 + 1 + 1
 * partial results, and 8 more if every lane needs all, where butterflies shuffle 8 * 5. Butterflies of rows do not
 * depend on each other, so a few slots less are no gain. */
static u32 row_lanes_of(const struct lower *l, const struct op *o, const struct ladder *d)
{
	bool any_order = is_commutative(o);
	u32 each = d->n * SHUFFLE_SLOTS + region_slots(o), selects = (any_order ? 2 : 3) * d->n * SELECT_SLOTS;
	u32 rows = d->results, chosen = 0, to_all = d->count == 1 ? rows * d->n * SHUFFLE_SLOTS : 0, halves = to_all;
	u32 butterflies = rows * (u32)__builtin_popcount(d->lanes) * each + (any_order ? 0 : to_all);
	if (has_effects(l, o))
		return 0;
	for (u32 lanes = d->lanes; lanes; lanes &= lanes - 1) {
		if (rows > 1) {
			rows /= 2;
			halves += rows * selects;
			chosen |= lanes & -lanes;
		}
		halves += rows * each;
	}
	return 3 * halves <= 2 * butterflies ? chosen : 0;
}

/* Combines the lanes that differ in `bit`. The lane with the bit set gets the results of the upper half of the rows
 * v, the other lane the results of the lower half, from v[0] on. */
static void exchange_halves(struct lower *l, const struct op *o, int bit, u32 rows, LLVMValueRef *v)
{
	u32 n = o->noperands;
	LLVMValueRef upper = lane_bit(l, bit);
	for (u32 r = 0; r < rows / 2; r++) {
		LLVMValueRef first[MAX_VALUES], second[MAX_VALUES];
		for (u32 i = 0; i < n; i++) {
			LLVMValueRef low = v[r * n + i], high = v[(r + rows / 2) * n + i],
				     sent = LLVMBuildSelect(l->b, upper, low, high, ""),
				     got = shuffle_xor(l, sent, 1u << bit);
			bool any_order = is_commutative(o);
			first[i] = LLVMBuildSelect(l->b, upper, any_order ? high : got, low, "");
			second[i] = any_order ? got : LLVMBuildSelect(l->b, upper, high, got, "");
		}
		combine(l, o, first, second, &v[r * n]);
	}
}

/* combine_lanes for the rows of partial results of all positions, where d->row_lanes number the rows at the end. Rows
 * are combined in the same order as by combine_lanes. */
static void combine_rows(struct lower *l, const struct op *o, const struct ladder *d, LLVMValueRef *part)
{
	u32 rows = d->results;
	for (int bit = 0; bit < LANE_BITS; bit++)
		if (d->row_lanes >> bit & 1) {
			exchange_halves(l, o, bit, rows, part);
			rows /= 2;
		}
	for (u32 r = 0; r < rows; r++)
		combine_lanes(l, o, d->lanes & ~d->row_lanes, false, &part[r * d->n]);
}

/* The number of positions of which a lane holds partial results after combine_rows. */
static u32 rows_of_lane(const struct ladder *d)
{
	return d->results >> __builtin_popcount(d->row_lanes);
}

/* The row of a lane with the bits `lane` of d->row_lanes, as the number of its first position. */
static u32 first_row(const struct ladder *d, u32 lane)
{
	u32 row = 0;
	for (u32 bits = d->row_lanes, half = d->results / 2; bits; bits &= bits - 1, half /= 2)
		row |= lane & bits & -bits ? half : 0;
	return row;
}

/* Gives all lanes the results of all rows. */
static void share_rows(struct lower *l, const struct ladder *d, LLVMValueRef *part)
{
	u32 rows = rows_of_lane(d);
	LLVMValueRef *all = arena_array(&l->scratch, LLVMValueRef, d->results * d->n),
		     group = LLVMBuildAnd(l->b, l->lane, c_i32(l, ~d->lanes), "");
	for (u32 lane = 0; lane <= d->row_lanes; lane++) {
		if (lane & ~d->row_lanes)
			continue;
		LLVMValueRef from = LLVMBuildOr(l->b, group, c_i32(l, lane), "");
		for (u32 k = 0; k < rows * d->n; k++)
			all[first_row(d, lane) * d->n + k] = shuffle(l, part[k], from);
	}
	memcpy(part, all, d->results * d->n * sizeof *part);
}

/* The position of the first partial result of this thread. `rows`: after combine_rows. */
static LLVMValueRef thread_result(struct lower *l, const struct ladder *d, bool rows)
{
	u32 lanes[LANE_BITS];
	memcpy(lanes, d->out->basis[LL_LANE], sizeof lanes);
	for (int bit = 0; bit < LANE_BITS; bit++)
		if (rows && d->row_lanes >> bit & 1)
			lanes[bit] = layout_apply(d->out, first_row(d, 1u << bit), 0, 0);
	return thread_map(l, l->b, lanes, d->out->basis[LL_WARP], d->out->bits[LL_WARP]);
}

static LLVMValueRef result_position(struct lower *l, const struct ladder *d, LLVMValueRef thread, u32 r)
{
	return LLVMBuildOr(l->b, thread, c_i32(l, layout_apply(d->out, r, 0, 0)), "");
}

/* Address of the slot, among operand i's slots, for a position of the result and a warp along the axis: number
 * position * count + warp; with d->run, warp * (number of positions) + position. */
static LLVMValueRef slot_address(struct lower *l, const struct op *o, const struct ladder *d, u32 i,
				 LLVMValueRef result_pos, LLVMValueRef warp)
{
	LLVMValueRef base = shared_base(l, o), major = d->run ? warp : result_pos, minor = d->run ? result_pos : warp;
	u32 row = d->run ? 1u << layout_tile_bits(d->out) : d->count;
	LLVMValueRef at = LLVMBuildAdd(l->b, LLVMBuildMul(l->b, major, c_i32(l, row), ""), minor, "");
	at = LLVMBuildMul(l->b, at, c_i32(l, dtype_bytes(type_dtype(operand(o, i)->type))), "");
	return shared_at(l, base, at, (u32)partial_bytes(o, i));
}

/* Stores v at the same address in the shared memory of every block of the program's cluster. */
static void store_slot_to_all(struct lower *l, LLVMValueRef address, LLVMValueRef v)
{
	LLVMValueRef at = LLVMBuildPtrToInt(l->b, address, l->i32, "");
	int bits = MAX(type_bits(LLVMTypeOf(v)), 8);
	v = to_bits(l->b, to_memory(l->b, v));
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

/* Stores n partial results to adjacent slots. */
static void store_slots(struct lower *l, LLVMValueRef address, LLVMValueRef *v, u32 n)
{
	if (l->k->cuda.cluster > 1) {
		store_slot_to_all(l, address, v[0]);
		return;
	}
	v[0] = to_memory(l->b, v[0]); /* n is 1 for an i1 */
	store_vector(l, v, n, address);
}

/* Stores a 32-bit v to shared memory if the predicate is true. */
static void store_word_if(struct lower *l, LLVMValueRef pred, LLVMValueRef address, LLVMValueRef v)
{
	bool is_float = LLVMTypeOf(v) == l->f32;
	LLVMValueRef args[] = {address, is_float ? v : to_bits(l->b, v), pred};
	inline_asm(l, "@$2 st.shared.b32 [$0], $1;", is_float ? "l,f,b,~{memory}" : "l,r,b,~{memory}", ASM_EFFECT, l->v,
		   args, 3);
}

/* This warp's number along the axis, 0 to count - 1. */
static LLVMValueRef axis_warp(struct lower *l, const struct ladder *d)
{
	u32 bases[LAYOUT_MAX_BITS] = {0};
	for (u32 k = 0; 1u << k < d->count; k++)
		bases[ilog2(spread(1u << k, d->warps))] = 1u << k;
	return linear_map(l, l->b, l->warp, bases, d->in->bits[LL_WARP]);
}

/* Whether all lanes of a warp hold the same positions of the result. */
static bool same_in_lanes(const struct ladder *d)
{
	return !layout_bits_in(d->out, LL_LANE, ~0u);
}

/* i1: this thread stores its partial results. Of the lanes along the axis, that is the lane whose lane bits along the
 * axis are `which`; of threads with copies of the same elements, the first. */
static LLVMValueRef writer(struct lower *l, const struct ladder *d, u32 which)
{
	u32 lanes = (1u << d->in->bits[LL_LANE]) - 1, warps = (1u << d->in->bits[LL_WARP]) - 1;
	return is_thread(l, lanes & ~layout_bits_in(d->out, LL_LANE, ~0u) & ~d->row_lanes, which,
			 warps & ~layout_bits_in(d->in, LL_WARP, ~0u));
}

/* Stores this warp's partial results to their slots, by the lanes that writer(which) selects, and synchronizes. A few
 * words are stored with predicates instead of a branch, since LLVM takes much longer with more basic blocks. */
static void leave_results(struct lower *l, const struct op *o, const struct ladder *d, u32 which, LLVMValueRef *part)
{
	LLVMValueRef mine = writer(l, d, which), thread = thread_result(l, d, true), warp = axis_warp(l, d);
	LLVMValueRef words[4];
	u32 rows = rows_of_lane(d), width = MIN(MAX(d->run, 1), rows);
	bool branch = !mine || width > 1 || l->k->cuda.cluster > 1 || rows * d->n > MAX_PREDICATED_STORES;
	for (u32 i = 0; i < d->n; i++)
		branch |= type_bits(LLVMTypeOf(part[i])) != 32;
	struct guarded g = begin_if(l->b, branch ? mine : NULL);
	for (u32 r = 0; r < rows; r += width)
		for (u32 i = 0; i < d->n; i++) {
			LLVMValueRef address = slot_address(l, o, d, i, result_position(l, d, thread, r), warp);
			for (u32 e = 0; e < width; e++)
				words[e] = part[(r + e) * d->n + i];
			if (branch)
				store_slots(l, address, words, width);
			else
				store_word_if(l, mine, address, words[0]);
		}
	end_if(l->b, &g);
	barrier(l);
}

static void load_slot(struct lower *l, const struct op *o, const struct ladder *d, LLVMValueRef pos, LLVMValueRef warp,
		      LLVMValueRef *out)
{
	for (u32 i = 0; i < d->n; i++)
		out[i] = read_element(l, slot_address(l, o, d, i, pos, warp), llvm_type(l, operand(o, i)->type));
}

/* Loads the partial results of all warps along the axis for position pos, and with d->run also for the positions of the
 * run - 1 next slots. out: for each position, its partial results in the order of the warps. Adjacent 32-bit values are
 * loaded up to four at a time. */
static void load_all_slots(struct lower *l, const struct op *o, const struct ladder *d, LLVMValueRef pos,
			   LLVMValueRef *out)
{
	for (u32 i = 0; i < d->n; i++) {
		LLVMTypeRef t = llvm_type(l, operand(o, i)->type);
		u32 warps = d->run || type_bits(t) != 32 ? 1 : MIN(d->count, 4u), width = warps * MAX(d->run, 1);
		for (u32 k = 0; k < d->count; k += warps) {
			LLVMValueRef at = slot_address(l, o, d, i, pos, c_i32(l, k)), v[4];
			if (width > 1)
				load_vector(l, t, width, at, v);
			else
				v[0] = read_element(l, at, t);
			for (u32 e = 0; e < width; e++)
				out[(d->run ? e * d->count + k : k + e) * d->n + i] = v[e];
		}
	}
}

/* Combines the partial results of the warps along the axis. Each thread does so for the positions that it holds.
 * If there are many warps and all lanes hold the same positions, each lane combines a part of the warps' results, and
 * then the lanes combine these. */
static void combine_warps(struct lower *l, const struct op *o, const struct ladder *d, LLVMValueRef *part)
{
	enum { LANES = 32 };
	bool by_lanes = 1u << LOG2_WARPS_COMBINED_BY_LANES <= d->count && same_in_lanes(d);
	u32 count = by_lanes ? MAX(d->count / LANES, 1) : d->count, run = MAX(d->run, 1),
	    lanes = MIN(d->count, LANES) - 1;
	LLVMValueRef thread = thread_result(l, d, false),
		     *all = arena_array(&l->scratch, LLVMValueRef, run * count * d->n);
	for (u32 r = 0; r < d->results; r += run) {
		LLVMValueRef pos = result_position(l, d, thread, r),
			     lane = by_lanes ? LLVMBuildAnd(l->b, l->lane, c_i32(l, lanes), "") : NULL;
		if (!by_lanes)
			load_all_slots(l, o, d, pos, all);
		for (u32 k = 0; k < count && by_lanes; k++)
			load_slot(l, o, d, pos, LLVMBuildAdd(l->b, lane, c_i32(l, k * LANES), ""), &all[k * d->n]);
		for (u32 e = 0; e < run; e++) {
			LLVMValueRef *v = &all[e * count * d->n];
			combine_tree(l, o, v, count);
			if (by_lanes)
				combine_lanes(l, o, lanes, true, v);
			memcpy(&part[(r + e) * d->n], v, d->n * sizeof *v);
		}
	}
}

/* Whether combine_once takes fewer issue slots than combine_warps. */
static bool combines_once(const struct lower *l, const struct op *o, const struct ladder *d)
{
	u32 threads = 32 * (u32)l->k->num_warps, positions = 1u << layout_tile_bits(d->out);
	u32 width = d->run ? d->run : MIN(d->count, 4u), region = (d->count - 1) * region_slots(o);
	u32 each = d->n * d->results * d->count / width * SHARED_SLOTS + d->results * region;
	u32 own = d->n * (d->count + 1) * SHARED_SLOTS + region;
	u32 once = (positions + threads - 1) / threads * own + BARRIER_SLOTS +
		   d->n * d->results / MAX(d->run, 1) * SHARED_SLOTS;
	return once < each && l->k->cuda.cluster == 1 && !has_effects(l, o) &&
	       !(same_in_lanes(d) && 1u << LOG2_WARPS_COMBINED_BY_LANES <= d->count);
}

/* combine_warps with each position combined by one thread, which replaces the first warp's partial result by the
 * result of all warps. The other threads load it after a barrier. */
static void combine_once(struct lower *l, const struct op *o, const struct ladder *d, LLVMValueRef *part)
{
	u32 threads = 32 * (u32)l->k->num_warps, positions = 1u << layout_tile_bits(d->out), run = MAX(d->run, 1);
	LLVMValueRef thread = LLVMBuildOr(l->b, shl(l->b, l->warp, LANE_BITS), l->lane, ""),
		     *all = arena_array(&l->scratch, LLVMValueRef, MAX(d->count, run) * d->n), zero = c_i32(l, 0);
	struct guarded g = begin_if(
		l->b, positions < threads ? LLVMBuildICmp(l->b, LLVMIntULT, thread, c_i32(l, positions), "") : NULL);
	for (u32 first = 0; first < positions; first += threads) {
		LLVMValueRef pos = LLVMBuildOr(l->b, thread, c_i32(l, first), "");
		for (u32 k = 0; k < d->count; k++)
			load_slot(l, o, d, pos, c_i32(l, k), &all[k * d->n]);
		combine_tree(l, o, all, d->count);
		for (u32 i = 0; i < d->n; i++)
			store_slots(l, slot_address(l, o, d, i, pos, zero), &all[i], 1);
	}
	end_if(l->b, &g);
	barrier(l);
	for (u32 r = 0; r < d->results; r += run)
		for (u32 i = 0; i < d->n; i++) {
			LLVMValueRef pos = result_position(l, d, thread_result(l, d, false), r), v[4],
				     at = slot_address(l, o, d, i, pos, zero);
			LLVMTypeRef t = llvm_type(l, operand(o, i)->type);
			if (run > 1)
				load_vector(l, t, run, at, v);
			else
				v[0] = read_element(l, at, t);
			for (u32 e = 0; e < run; e++)
				part[(r + e) * d->n + i] = v[e];
		}
}

/* The value of ladder.run: the number of a thread's 32-bit partial results at successive positions, 4 at most; 0 if
 * there is just one. With the slots of all warps adjacent, the stores of lanes with several results would hit few
 * banks. */
static u32 run_of(struct lower *l, const struct op *o, const struct ladder *d)
{
	u32 run = 1;
	if (d->count == 1 || l->k->cuda.cluster > 1 || same_in_lanes(d))
		return 0;
	for (u32 i = 0; i < d->n; i++)
		if (type_bits(llvm_type(l, operand(o, i)->type)) != 32)
			return 0;
	while (run < 4 && run < d->results && layout_apply(d->out, run, 0, 0) == run &&
	       !layout_bits_in(d->out, LL_LANE, run) && !layout_bits_in(d->out, LL_WARP, run))
		run *= 2;
	return run > 1 ? run : 0;
}

void lower_reduce(struct lower *l, const struct op *o)
{
	struct ladder d = ladder_of(l, o);
	LLVMValueRef *part = arena_array(&l->scratch, LLVMValueRef, d.results * d.n);
	d.row_lanes = row_lanes_of(l, o, &d);
	for (u32 r = 0; r < d.results; r++) {
		reduce_registers(l, o, &d, r, &part[r * d.n]);
		if (!d.row_lanes)
			combine_lanes(l, o, d.lanes, d.count == 1, &part[r * d.n]);
	}
	if (d.row_lanes)
		combine_rows(l, o, &d, part);
	if (d.row_lanes && d.count == 1)
		share_rows(l, &d, part);
	d.run = run_of(l, o, &d);
	bool once = d.count > 1 && combines_once(l, o, &d);
	if (once)
		d.run = MAX(d.run, 1); /* neighbouring threads load neighbouring slots */
	if (d.count > 1)
		leave_results(l, o, &d, 0, part);
	if (once)
		combine_once(l, o, &d, part);
	else if (d.count > 1)
		combine_warps(l, o, &d, part);
	for (u32 i = 0; i < d.n; i++) {
		LLVMValueRef *at = new_tile(l, &o->results[i]);
		tl_assert(num_elems(&o->results[i]) == d.results);
		for (u32 r = 0; r < d.results; r++)
			at[r] = part[r * d.n + i];
	}
}

/* --- scans --------------------------------------------------------------------------------------------------- */

/* Inclusive scan of v over the lanes along the axis, in increasing lane order or in `reverse`. */
static void scan_lanes(struct lower *l, const struct op *o, const struct ladder *d, LLVMValueRef *v, bool reverse)
{
	for (int bit = 0; bit < d->in->bits[LL_LANE]; bit++) {
		if (!(d->lanes >> bit & 1))
			continue;
		/* Lanes are scanned in groups that differ in the axis bits up to `bit`. The lower and the upper half of
		 * a group have been scanned. Lanes of the half that comes later in scan order combine the total of the
		 * other half, which its last lane in scan order holds. */
		LLVMValueRef other[MAX_VALUES];
		u32 below = d->lanes & ((1u << bit) - 1);
		/* lane: the last lane, in scan order, of the other half of the group */
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

/* The number of the preceding lane along the axis in scan order. *has (i1): there is one. NULL: the axis has no
 * lanes. */
static LLVMValueRef previous_lane(struct lower *l, const struct ladder *d, bool reverse, LLVMValueRef *has)
{
	*has = NULL;
	if (!d->lanes)
		return NULL;
	LLVMValueRef along = LLVMBuildAnd(l->b, l->lane, c_i32(l, d->lanes), "");
	*has = LLVMBuildICmp(l->b, LLVMIntNE, along, c_i32(l, reverse ? d->lanes : 0), "");
	i64 one = d->lanes & -d->lanes;
	return LLVMBuildAdd(l->b, l->lane, c_i32(l, reverse ? one : -one), "");
}

/* Scan over warps: stores this warp's totals to their slots, and combines the elements v (per_result of each position)
 * with the totals of the warps before this one in scan order. */
static void scan_warps(struct lower *l, const struct op *o, const struct ladder *d, LLVMValueRef *total,
		       LLVMValueRef *v, u32 per_result, bool reverse)
{
	LLVMValueRef thread = thread_result(l, d, false), warp = axis_warp(l, d);
	leave_results(l, o, d, reverse ? 0 : d->lanes, total);
	for (u32 r = 0; r < d->results; r++) {
		LLVMValueRef pos = result_position(l, d, thread, r), before[MAX_VALUES], other[MAX_VALUES];
		LLVMValueRef have = NULL;
		for (u32 k = 0; k + 1 < d->count; k++) {
			u32 w = reverse ? d->count - 1 - k : k;
			LLVMValueRef counts =
				LLVMBuildICmp(l->b, reverse ? LLVMIntULT : LLVMIntUGT, warp, c_i32(l, w), "");
			load_slot(l, o, d, pos, c_i32(l, w), other);
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
	struct ladder d = ladder_of(l, o);
	bool reverse = o->attr[ATTR_REVERSE];
	u32 per = 1u << __builtin_popcount(d.regs);
	LLVMValueRef *v = arena_array(&l->scratch, LLVMValueRef, d.results * per * d.n),
		     *total = arena_array(&l->scratch, LLVMValueRef, d.results * d.n), has;
	LLVMValueRef lane = previous_lane(l, &d, reverse, &has);
	if (layout_tile_bits(d.out))
		d.run = MAX(run_of(l, o, &d), 1); /* lanes store and load adjacent slots */
	for (u32 r = 0; r < d.results; r++) {
		u32 base = spread(r, other_bits(&d));
		LLVMValueRef *row = &v[r * per * d.n], before[MAX_VALUES];
		for (u32 k = 0; k < per; k++) { /* the thread's elements, in scan order */
			u32 at = reverse ? per - 1 - k : k;
			for (u32 i = 0; i < d.n; i++)
				row[at * d.n + i] = elem(l, operand(o, i), base | spread(at, d.regs));
			if (k)
				combine(l, o, &row[(reverse ? at + 1 : at - 1) * d.n], &row[at * d.n], &row[at * d.n]);
		}
		memcpy(&total[r * d.n], &row[(reverse ? 0 : per - 1) * d.n], d.n * sizeof *total);
		if (!lane)
			continue;
		scan_lanes(l, o, &d, &total[r * d.n], reverse);
		for (u32 i = 0; i < d.n; i++)
			before[i] = shuffle(l, total[r * d.n + i], lane);
		/* combines this lane's elements with the inclusive scan of the preceding lane, `before` */
		for (u32 k = 0; k < per; k++)
			combine_where(l, o, has, before, &row[k * d.n], &row[k * d.n]);
	}
	if (d.count > 1)
		scan_warps(l, o, &d, total, v, per, reverse);
	for (u32 i = 0; i < d.n; i++) {
		LLVMValueRef *at = new_tile(l, &o->results[i]);
		for (u32 r = 0; r < d.results; r++)
			for (u32 k = 0; k < per; k++)
				at[spread(r, other_bits(&d)) | spread(k, d.regs)] = v[(r * per + k) * d.n + i];
	}
}
