/* Verifies the invariants of layouts in laid-out GPU IR that code generation relies on. ir/verify.c checks that the
 * operands of an operation that belong together have one layout. This file checks that shape operations, which only
 * rename registers, keep each element in its thread, and that operands and results of dots have the layouts of their
 * instructions. Layout conversions, and loads and stores of shared memory, connect any two layouts, so they need no
 * check. */
#include "support/recover.h"
#include "gpu/layout/memory_access.h"
#include "gpu/layout/register_operand.h"
#include "gpu/smem/completion.h"
#include "gpu/gpu_passes.h"

#define NEED(condition, what) \
	do { \
		if (!(condition)) \
			return what; \
	} while (0)

struct verifier {
	struct pass_state *s;
	enum gpu_stage stage;
	struct diags *report;
	const struct op *bad;
	const char *what;
};

static const struct layout *layout_of_value(const struct value *v)
{
	return type_is_tensor(v->type) ? v->type->layout : NULL;
}

/* --- renaming registers ---------------------------------------------------------------------------------------- */

/* NULL if each thread has the result's elements among its operand's elements; else the fault. It suffices to
 * compare lane and warp bits: the registers hold the remaining position bits in both layouts. */
static const char *check_rename(const struct op *o)
{
	const struct layout *from = layout_of_value(operand(o, 0)), *to = layout_of_value(&o->results[0]);
	if (!from || !to) /* scalars */
		return NULL;
	for (int dim = LL_LANE; dim <= LL_WARP; dim++)
		for (int i = 0; i < to->bits[dim]; i++)
			NEED(source_position(o, to->basis[dim][i]) == from->basis[dim][i],
			     "its result is not distributed over the threads like its operand");
	return NULL;
}

/* --- dots ------------------------------------------------------------------------------------------------------ */

/* Sets warps[d] to the number of warps along dimension d of the dot's result. False if their product is not
 * num_warps. */
static bool get_warps(const struct verifier *v, const struct op *o, int *warps)
{
	i64 n = 1;
	int rank = result(o)->type->rank;
	for (int d = 0; d < rank; d++) {
		warps[d] = dims_get(o->attr[ATTR_WARPS], d);
		n *= is_pow2(warps[d]) ? warps[d] : 0;
	}
	return n == v->s->num_warps && o->attr[ATTR_WARPS] == dims_pack(warps, rank);
}

static const char *check_mma(const struct verifier *v, const struct op *o)
{
	const struct mma *m = mma_for_dot(v->s->target, o);
	const struct type *t = result(o)->type, *a = operand(o, 0)->type, *b = operand(o, 1)->type;
	struct layout_pool *p = &v->s->ctx->layouts;
	int warps[MAX_RANK];
	if (!o->attr[ATTR_INSTR]) {
		NEED(v->stage < GPU_FMA_OPERANDS || !type_is_tensor(a),
		     "operands of a dot by multiply-adds must be in shared memory");
		return NULL;
	}
	NEED(m && o->attr[ATTR_INSTR] == mma_shape(m),
	     "the target has no mma.sync of this shape for operands of these types, or a better one");
	NEED(type_is_tensor(a) && type_is_tensor(b), "operands of mma.sync must be in registers");
	NEED(get_warps(v, o, warps), "its warps along the dimensions are not all warps");
	NEED(t->layout == layout_mma(p, t->rank, t->shape, warps, m->m, 8) &&
		     a->layout == mma_operand(p, a, 0, warps, m, mma_run(a, 0)) &&
		     b->layout == mma_operand(p, b, 1, warps, m, mma_run(a, 0)),
	     "its tiles do not have the layouts of mma.sync's fragments");
	return NULL;
}

/* Whether a wgmma matrix descriptor can describe a buffer of type t with rows along dimension d: the layout is
 * swizzled, and a row has at least 32 bytes. */
static bool is_swizzled(const struct verifier *v, const struct type *t, int d)
{
	return t->shape[d] * type_elem_bits(t) >= 256 &&
	       t->layout == layout_swizzled(&v->s->ctx->layouts, 2, t->shape, d, type_elem_bits(t));
}

static const char *check_wgmma_operand(const struct verifier *v, const struct op *o, const struct wgmma *w,
				       const struct wgmma_split *split, int bytes, u32 i)
{
	const struct type *t = operand(o, i)->type;
	int k = 1 - (int)i;
	bool first = (int)i == split->row_dim;
	if (type_is_tensor(t)) {
		NEED(first && (o->attr[ATTR_REGISTER_GROUPS] || i == 0) &&
			     t->layout == wgmma_operand(&v->s->ctx->layouts, t, split, bytes),
		     "operand A in registers does not have the layout of wgmma's fragments");
		return NULL;
	}
	bool along_k = is_swizzled(v, t, k), across = is_swizzled(v, t, 1 - k);
	NEED(!(first && o->attr[ATTR_REGISTER_GROUPS]), "its operand A must come from registers");
	NEED(!first && o->attr[ATTR_TRANSPOSED] ? across && !along_k : along_k || (w->any_major && across),
	     "a buffer's layout is not one that wgmma's descriptors describe");
	return NULL;
}

/* Whether the loads of a dot's A operand in registers are in its run (gpu/layout/register_operand.h). Asynchronous
 * wgmmas of the previous iteration may still read these registers. Only loads in the run are emitted after the wait for
 * them. */
static bool loads_operand(const struct op *dot)
{
	struct arena scratch = {0};
	op_vec run = operand_run(&scratch, dot);
	bool yes = false;
	for (u32 i = 0; i < run.len; i++)
		yes |= run.at[i]->code == IR_LOCAL_LOAD;
	arena_free(&scratch);
	return yes;
}

static const char *check_wgmma(const struct verifier *v, const struct op *o)
{
	const struct wgmma *w = wgmma_for_dot(v->s, o);
	const struct type *t = result(o)->type;
	struct wgmma_split split;
	bool fetched = o->attr[ATTR_REGISTER_GROUPS];
	struct op expected = *o;
	bool transposed = o->attr[ATTR_TRANSPOSED];
	NEED(w && !(transposed && w->any_major), "the target's wgmma takes no operands of these types and sizes");
	u32 second = !o->attr[ATTR_EXCHANGED];
	NEED(!transposed || wgmma_turns(operand(o, second)->type, second, v->s->num_warps),
	     "an operand is too small to be transposed in shared memory");
	NEED(wgmma_split(v->s->num_warps, t, (int)o->attr[ATTR_EXCHANGED], &split), "its result is too small");
	int groups = (int)o->attr[ATTR_REGISTER_GROUPS];
	wgmma_set(&expected, w, &split, groups);
	NEED(!groups || (is_pow2(groups) && expected.attr[ATTR_REGISTER_GROUPS] == groups),
	     "its steps along k cannot be divided into this number of groups");
	NEED(!memcmp(expected.attr, o->attr, sizeof o->attr), "its instruction shape or warps are not those of wgmma");
	int bytes = fetched ? w->any_major ? 1 : dtype_bytes(w->a) : 0;
	if (fetched && w->any_major && t->layout == wgmma_accumulator(&v->s->ctx->layouts, t, &split, 0))
		bytes = 0; /* this form of the layout: A is K-major in shared memory */
	NEED(t->layout == wgmma_accumulator(&v->s->ctx->layouts, t, &split, bytes),
	     "its result does not have the layout of wgmma's accumulators");
	NEED(!o->attr[ATTR_ASYNC] || !fetched || loads_operand(o),
	     "its operand A is not loaded from a buffer immediately before it");
	const char *what = check_wgmma_operand(v, o, w, &split, bytes, 0);
	return what ? what : check_wgmma_operand(v, o, w, &split, bytes, 1);
}

/* --- operations ------------------------------------------------------------------------------------------------ */

static const char *check_reduction(const struct verifier *v, const struct op *o)
{
	for (u32 i = 0; i < o->nresults; i++) {
		const struct layout *l = layout_of_value(&o->results[i]);
		NEED(!l || l == layout_slice(&v->s->ctx->layouts, operand(o, 0)->type->layout, (int)o->attr[ATTR_AXIS]),
		     "its result does not have its operand's layout without the axis");
	}
	return NULL;
}

static const char *check_conversion(const struct verifier *v, const struct op *o)
{
	struct op chosen = *o;
	if (!o->attr[ATTR_CONVERSION] && v->stage < GPU_ALLOCATED)
		return NULL;
	choose_conversion(v->s, &chosen, scratch_bytes(v->s, o));
	NEED(chosen.attr[ATTR_CONVERSION] == o->attr[ATTR_CONVERSION] &&
		     chosen.attr[ATTR_PIECES] == o->attr[ATTR_PIECES],
	     "its conversion kind or number of pieces is not possible for its layouts");
	return NULL;
}

/* For TTGIR that the user has written: NULL if the vector attributes of an access are those that its addresses allow;
 * else the fault. */
static const char *check_vectors(const struct verifier *v, const struct op *o)
{
	struct op chosen = *o;
	if (!v->report || v->stage < GPU_VECTORIZED)
		return NULL;
	choose_vectors(&chosen, v->s);
	NEED(!memcmp(chosen.attr, o->attr, sizeof o->attr), "its vector widths are not those that its addresses allow");
	return NULL;
}

/* NULL if the operands from number `first` on, and the first nresults results, have the layout of t; else the
 * fault. */
static const char *check_one_layout(const struct op *o, const struct type *t, u32 first, u32 nresults)
{
	bool same = true;
	for (u32 i = first; i < o->noperands; i++)
		same &= operand(o, i)->type->layout == t->layout;
	for (u32 i = 0; i < nresults; i++)
		same &= o->results[i].type->layout == t->layout;
	NEED(same, "its operands and results differ in layout");
	return NULL;
}

static const char *check_warpgroups(const struct verifier *v)
{
	NEED(v->s->num_warps == 8 && v->s->target->has_tensor_copy, "it needs two warpgroups: 8 warps, on sm_90a");
	return NULL;
}

static const char *check_layouts(const struct verifier *v, const struct op *o)
{
	switch (o->code) {
	case IR_EXPAND_DIMS:
	case IR_BROADCAST:
	case IR_RESHAPE:
	case IR_TRANS:
	case IR_JOIN:
	case IR_SPLIT: return check_rename(o);
	case IR_LOAD:
	case IR_STORE:
	case IR_ASYNC_COPY:
	case IR_ATOMIC_RMW: return check_vectors(v, o);
	case IR_REDUCE: return check_reduction(v, o);
	case IR_CONVERT_LAYOUT: return check_conversion(v, o);
	case IR_MAP: return check_one_layout(o, operand(o, 0)->type, 0, o->nresults);
	case IR_PINGPONG_WAIT:
	case IR_PINGPONG_ARRIVE: return check_warpgroups(v);
	case IR_BARRIER: return o->attr[ATTR_WARPGROUP] ? check_warpgroups(v) : NULL;
	case IR_GATHER: return check_one_layout(o, operand(o, 1)->type, 1, 1);
	case IR_HISTOGRAM: return check_one_layout(o, operand(o, 0)->type, 0, 0);
	case IR_DOT: return check_mma(v, o);
	case IR_WARP_GROUP_DOT: return check_wgmma(v, o);
	case IR_MEMDESC_TRANS: {
		const struct layout *from = operand(o, 0)->type->layout, *to = result(o)->type->layout;
		NEED(to == transposed(&v->s->ctx->layouts, o, from),
		     "its result does not have its operand's layout with permuted dimensions");
		return NULL;
	}
	default: return NULL;
	}
}

/* NULL if each position bit is the basis vector of exactly one register, lane or warp bit of the layout; else the
 * fault. Threads that differ in other lane and warp bits hold copies. */
static const char *check_distributed(const struct op *o)
{
	for (u32 k = 0; k < o->nresults; k++) {
		const struct layout *l = layout_of_value(&o->results[k]);
		u32 seen = 0;
		for (int dim = 0; l && dim < LL_DIMS; dim++)
			for (int i = 0; i < l->bits[dim]; i++) {
				u32 b = l->basis[dim][i];
				NEED(!(b & (b - 1)) && !(b & seen) && (b || dim != LL_REG),
				     "its layout has a position bit twice, or a register bit without a position bit");
				seen |= b;
			}
	}
	return NULL;
}

static void check(struct op *o, void *arg)
{
	struct verifier *v = arg;
	const char *what = v->bad ? NULL : check_distributed(o);
	what = v->bad || what ? what : check_layouts(v, o);
	if (what)
		v->bad = o, v->what = what;
}

struct loc gpu_ir_loc(const struct op *o)
{
	struct loc at = o->loc;
	for (; o && !at.file; o = o->block->parent)
		at = o->loc;
	return at;
}

bool gpu_ir_report(struct pass_state *s, const char *pass, struct diags *report, const struct op *bad, const char *what)
{
	if (!bad)
		return true;
	struct loc at = gpu_ir_loc(bad);
	if (report) {
		diag(report, E_IR_INVALID, at, op_info[bad->code].name, what);
		return false;
	}
	struct crash_scope scope = {.what = pass, .dump = kernel_dump, .arg = s->k};
	crash_enter(&scope);
	fault_raise(FAULT_BUG, "internal error: invalid laid-out GPU IR: %s:%u: %s: %s",
		    s->diags->sources.at[at.file]->name, at.line, op_info[bad->code].name, what);
}

bool gpu_ir_verify(struct pass_state *s, enum gpu_stage stage, const char *pass, struct diags *report)
{
	struct verifier v = {.s = s, .stage = stage, .report = report};
	if (stage < GPU_LAID_OUT)
		return true;
	walk(s->k->body, check, &v);
	if (!v.bad)
		v.bad = find_incomplete(s->k, &v.what);
	return gpu_ir_report(s, pass, report, v.bad, v.what);
}
