/* Remarks about memory: how loads, stores, reductions and layout conversions are executed, and if that is not the best,
 * the reason, and what the author of the kernel can do. The passes before decide; this pass only reports. */
#include "ir/scalar.h"
#include "gpu/layout/memory_access.h"
#include "gpu/layout/mma.h"
#include "layout/conversion.h"
#include "gpu/gpu_passes.h"

enum { WIDEST = 16 /* bytes */ };

/* --- causes of narrow accesses ---------------------------------------------------------------------------------- */

/* The value that makes an access narrow: it is not known to be a multiple of `multiple`, or to be 1. */
struct culprit {
	const struct value *value; /* NULL: nothing */
	i64 multiple;              /* it should be a multiple of this; 0: it should be 1 */
};

static bool is_param(const struct pass_state *s, const struct value *v)
{
	return param_number(s->k, v) >= 0;
}

/* The initial value of a loop's argument or result, and its next value (for the index: the step). False if v is
 * neither. */
static bool carried(const struct value *v, const struct value **start, const struct value **next)
{
	const struct op *loop = v->def ? v->def : v->block->parent;
	if (!loop || loop->code != IR_FOR)
		return false;
	bool index = !v->def && !v->index;
	u32 i = v->def ? v->index : for_arg_number(v);
	*start = index ? for_lower(loop) : for_init(loop, i);
	*next = index ? for_step(loop) : for_yielded(loop, i);
	return true;
}

/* The number that an offset must be a multiple of, so that the sum is a multiple of `need`. */
static i64 offset_multiple(const struct op *sum, i64 need)
{
	return sum->code == IR_ADDPTR ? need / MAX(type_elem_bits(type_elem(result(sum)->type)->elem) / 8, 1) : need;
}

/* The factor of a product that the kernel's caller chooses. */
static struct culprit blame_factor(const struct pass_state *s, const struct op *o, i64 need)
{
	for (u32 i = 0; i < 2; i++) {
		const struct value *v = operand(o, 1 - i);
		while (v->def && (v->def->code == IR_SPLAT || v->def->code == IR_EXTSI || v->def->code == IR_BROADCAST))
			v = operand(v->def, 0);
		if (is_param(s, v))
			return (struct culprit){v, need};
	}
	return (struct culprit){result(o), need};
}

/* The dimension of o's operand that is dimension d of its result. */
static int dim_of_operand(const struct op *o, int d)
{
	int axis = (int)o->attr[ATTR_AXIS];
	return o->code != IR_EXPAND_DIMS ? d : d > axis ? d - 1 : d == axis ? 0 : d;
}

/* A value that may be the culprit. */
struct suspect {
	const struct value *value;
	int d;
	i64 need;
	bool last; /* it is the culprit if no value that it is computed from is */
};

/* A stack of suspects, and the need for which each suspect has been examined. */
struct remark_search {
	const struct pass_state *s;
	struct arena scratch;
	VEC(struct suspect) at;
	struct map seen; /* value plus dimension → need */
};

static void suspect(struct remark_search *q, const struct value *v, int d, i64 need, bool last)
{
	vec_push(&q->scratch, &q->at, ((struct suspect){v, d, need, last}));
}

/* True if the value has been examined before, along the same dimension and for at least the same need. */
static bool was_seen(struct remark_search *q, const struct suspect *at)
{
	const void *key = (const char *)at->value + at->d;
	q->seen.arena = &q->scratch;
	bool seen = (i64)(intptr_t)map_get(&q->seen, key) >= at->need;
	if (!seen)
		map_put(&q->seen, key, (void *)(intptr_t)at->need);
	return seen;
}

/* Adds suspects for a loop-carried value, to be examined in this order: its initial value, its next value, the value
 * itself. */
static bool suspect_carried(struct remark_search *q, const struct suspect *at)
{
	const struct value *v = at->value, *start, *next;
	if (!carried(v, &start, &next))
		return false;
	bool grows =
		next->def && (next->def->code == IR_ADDPTR || next->def->code == IR_ADDI) && operand(next->def, 0) == v;
	suspect(q, v, at->d, at->need, true);
	if (grows) /* by the other operand; v itself would be examined again */
		suspect(q, operand(next->def, 1), at->d, offset_multiple(next->def, at->need), false);
	else
		suspect(q, next, at->d, at->need, false);
	suspect(q, start, at->d, at->need, false);
	return true;
}

/* Adds the operands of the value's definition as suspects, the first operand to be examined first. False if the
 * definition does not explain the missing divisibility or contiguity: the value itself makes the access narrow. */
static bool suspect_operands(struct remark_search *q, const struct suspect *at)
{
	const struct op *o = at->value->def;
	switch (o->code) {
	case IR_ADDI:
	case IR_SUBI:
	case IR_REMSI:
	case IR_ADDPTR:
		suspect(q, operand(o, 1), at->d, offset_multiple(o, at->need), false);
		suspect(q, operand(o, 0), at->d, at->need, false);
		return true;
	case IR_SPLAT: suspect(q, operand(o, 0), 0, at->need, false); return true;
	case IR_EXTSI:
	case IR_EXTUI:
	case IR_TRUNCI:
	case IR_BROADCAST:
	case IR_CONVERT_LAYOUT:
	case IR_EXPAND_DIMS: suspect(q, operand(o, 0), dim_of_operand(o, at->d), at->need, false); return true;
	default: return false;
	}
}

/* Searches for the culprit, starting from v. `look` returns the culprit, or nothing after it has added the values that
 * the suspect is computed from. */
static struct culprit find_culprit(const struct pass_state *s, const struct value *v, int d, i64 need,
				   struct culprit (*look)(struct remark_search *q, const struct suspect *at))
{
	struct remark_search q = {.s = s};
	struct culprit found = {0};
	suspect(&q, v, d, need, false);
	while (q.at.len && !found.value) {
		struct suspect at = q.at.at[--q.at.len];
		found = at.last ? (struct culprit){at.value, at.need} : look(&q, &at);
	}
	arena_free(&q.scratch);
	return found;
}

static struct culprit look_for_multiple(struct remark_search *q, const struct suspect *at)
{
	const struct op *o = at->value->def;
	if (at->need <= 1 || axis_of(q->s->axis, at->value)->divisibility[at->d] >= at->need || was_seen(q, at))
		return (struct culprit){0};
	bool param = is_param(q->s, at->value);
	if (!param && o && o->code == IR_MULI)
		return blame_factor(q->s, o, at->need);
	if (!param && (!o || o->code == IR_FOR ? suspect_carried(q, at) : suspect_operands(q, at)))
		return (struct culprit){0};
	return (struct culprit){at->value, at->need};
}

/* The value that keeps the start of each contiguous stretch of v along d from being known as a multiple of `need`
 * (bytes of pointers). */
static struct culprit blame_multiple(const struct pass_state *s, const struct value *v, int d, i64 need)
{
	return find_culprit(s, v, d, need, look_for_multiple);
}

/* The value that keeps v from counting up along d. */
static struct culprit blame_stride(const struct pass_state *s, const struct value *v, int d)
{
	for (;;) {
		const struct value *start, *next;
		const struct op *o = v->def;
		if (carried(v, &start, &next)) {
			v = start;
			continue;
		}
		if (!o || axis_of(s->axis, v)->contiguity[d] > 1)
			return (struct culprit){v, 0};
		switch (o->code) {
		case IR_ADDPTR:
		case IR_ADDI: {
			const struct value *x = operand(o, 0);
			bool varies = type_is_tensor(x->type) && axis_of(s->axis, x)->constancy[d] < x->type->shape[d];
			v = varies ? x : operand(o, 1);
			break;
		}
		case IR_MULI: return (struct culprit){blame_factor(s, o, 0).value, 0};
		case IR_EXTSI:
		case IR_EXTUI:
		case IR_BROADCAST:
		case IR_CONVERT_LAYOUT:
		case IR_EXPAND_DIMS:
			v = operand(o, 0);
			d = dim_of_operand(o, d);
			break;
		default: return (struct culprit){v, 0};
		}
	}
}

/* The culprit in a comparison of a mask that changes within a vector: the edge is not known to be a multiple. */
static struct culprit look_for_edge(struct remark_search *q, const struct suspect *at)
{
	const struct op *o = at->value->def;
	struct culprit found = {0};
	if (!o || axis_of(q->s->axis, at->value)->constancy[at->d] >= at->need || was_seen(q, at))
		return found;
	switch (o->code) {
	case IR_CMPI:
		found = blame_multiple(q->s, operand(o, 1), at->d, at->need);
		return found.value ? found : blame_multiple(q->s, operand(o, 0), at->d, at->need);
	case IR_ANDI:
	case IR_ORI: suspect(q, operand(o, 1), at->d, at->need, false); /* fallthrough */
	case IR_BROADCAST:
	case IR_CONVERT_LAYOUT:
	case IR_EXPAND_DIMS: suspect(q, operand(o, 0), dim_of_operand(o, at->d), at->need, false); return found;
	default: return (struct culprit){at->value, at->need};
	}
}

/* --- loads and stores ---------------------------------------------------------------------------------------- */

struct teller {
	struct pass_state *s;
	struct arena scratch;
};

static const char *name_of(struct teller *t, const struct value *v)
{
	if (v->def && v->def->code == IR_LOAD)
		return "the loaded index";
	if (v->name && *v->name)
		return arena_printf(&t->scratch, "'%s'", v->name);
	return v->def && v->def->code == IR_PROGRAM_ID ? "the program id" : "the offset";
}

static const char *words(struct teller *t, u32 bytes, u32 elem)
{
	u32 word = bytes >= 8 && elem == 8 ? 8 : MIN(bytes, 4), n = bytes / word;
	return arena_printf(&t->scratch, "%sb%u", n > 1 ? arena_printf(&t->scratch, "v%u.", n) : "", word * 8);
}

/* The dimension of greatest contiguity. */
static int fastest(const struct pass_state *s, const struct value *ptr)
{
	int best = ptr->type->rank - 1;
	for (int d = best; d >= 0; d--)
		if (axis_of(s->axis, ptr)->contiguity[d] > axis_of(s->axis, ptr)->contiguity[best])
			best = d;
	return best;
}

static const char *hint_multiple(struct teller *t, const struct culprit *c)
{
	if (!is_param(t->s, c->value))
		return NULL;
	const char *hint = type_is_ptr(c->value->type)
				   ? "pass an address that is a multiple of %lld, written in a signature as *type:%lld"
				   : "pass a multiple of %lld (pad rows if necessary), written in a signature as "
				     "i32:%lld, in the kernel as tl.multiple_of";
	return arena_printf(&t->scratch, hint, (long long)c->multiple, (long long)c->multiple);
}

/* Reports why an access takes `width` elements at a time and not `want`. */
static void explain(struct teller *t, const struct op *o, const char *what, u32 width, u32 want, u32 elem)
{
	const struct pass_state *s = t->s;
	const struct value *ptr = operand(o, 0), *mask = mask_of(o);
	int d = fastest(s, ptr);
	u32 regs = (u32)layout_num_regs(ptr->type->layout);
	const struct axis_info *a = axis_of(s->axis, ptr);
	struct culprit c = {0};
	const char *why = "", *hint = NULL;
	if ((u32)a->contiguity[d] < want) {
		c = blame_stride(s, ptr, d);
		why = arena_printf(&t->scratch, ": %s is not known to be %s", name_of(t, c.value),
				   c.value->def && c.value->def->code == IR_LOAD ? "contiguous" : "1");
		if (is_param(s, c.value))
			hint = "elements along the last dimension should be contiguous in memory; write a stride that "
			       "is always 1 as i32:1 in the signature, or leave the multiplication out";
	} else if ((u32)a->divisibility[d] / elem < want && (c = blame_multiple(s, ptr, d, (i64)want * elem)).value) {
		why = arena_printf(&t->scratch, ": %s is not known to be a multiple of %lld%s", name_of(t, c.value),
				   (long long)c.multiple, type_elem(c.value->type)->kind == TY_PTR ? " bytes" : "");
		hint = hint_multiple(t, &c);
	} else if (mask && (u32)axis_of(s->axis, mask)->constancy[d] < want) {
		c = find_culprit(s, mask, d, want, look_for_edge);
		why = ": the mask may differ within a vector";
		if (c.value) {
			why = arena_printf(&t->scratch, "%s, because %s is not known to be a multiple of %u", why,
					   name_of(t, c.value), want);
			hint = hint_multiple(t, &c);
		}
	} else if (regs < want && type_numel(ptr->type) >= 32 * want) {
		why = arena_printf(&t->scratch, ": the tile has only %u element%s per thread", regs, PLURAL(regs));
		hint = "use fewer num_warps, or a larger tile";
	} else if (width < MIN(want, regs)) {
		why = ": the tile's layout is chosen for its users";
	}
	diag(s->diags, R_ACCESS, o->loc, what, why);
	if (hint)
		diag_hint(s->diags, "%s", hint);
}

/* The most elements that one access could take. */
static u32 wanted(const struct teller *t, const struct value *ptr, u32 elem)
{
	return MIN(WIDEST / elem, (u32)ptr->type->shape[fastest(t->s, ptr)]);
}

static void tell_access(struct teller *t, const struct op *o, const char *name, const char *instruction)
{
	struct pass_state *s = t->s;
	const struct value *ptr = operand(o, 0);
	if (!type_is_tensor(ptr->type))
		return;
	bool load = o->code == IR_LOAD, copy = o->code == IR_ASYNC_COPY;
	i64 sizes = o->attr[ATTR_VECTOR], unit = load ? o->attr[ATTR_UNIT] : 0;
	u32 elem = (u32)pointee_bytes(ptr->type), width = 1u << vector_of(o, sizes).bits, bytes = width * elem,
	    want = wanted(t, ptr, elem);
	const char *what = arena_printf(&t->scratch, "%s: %u byte%s per thread and access", name, bytes, PLURAL(bytes));
	if (unit)
		what = arena_printf(
			&t->scratch, "%s, assembled from %u word%s (ld.global.b32) and %lld pieces (ld.global.b%lld)",
			what, bytes / 4 - 1, PLURAL(bytes / 4 - 1), (long long)(4 / unit), (long long)(8 * unit));
	else
		what = arena_printf(&t->scratch, "%s (%s%s)", what, instruction, copy ? "" : words(t, bytes, elem));
	if (width >= want && !unit)
		diag(s->diags, R_ACCESS, o->loc, what, "");
	else
		explain(t, o, what, width, want, elem);
}

static void tell_atomic(struct teller *t, const struct op *o)
{
	const struct pass_state *s = t->s;
	const struct value *ptr = operand(o, 0);
	if (!type_is_tensor(ptr->type))
		return;
	u32 elem = (u32)pointee_bytes(ptr->type), want = wanted(t, ptr, elem),
	    width = o->code == IR_ATOMIC_RMW ? 1u << vector_of(o, o->attr[ATTR_VECTOR]).bits : 1;
	bool adds = o->code == IR_ATOMIC_RMW && o->attr[ATTR_RMW] == RMW_FADD && elem < 8,
	     used = !value_unused(result(o));
	const char *what = arena_printf(&t->scratch, "atomic: %u bytes per thread and access", width * elem);
	if (width >= want || !adds)
		diag(s->diags, R_ACCESS, o->loc, what,
		     width >= want ? "" : ": only additions of floats are vectorized");
	else if (used || !s->target->has_vector_atomics)
		diag(s->diags, R_ACCESS, o->loc, what,
		     used ? ": its result is used" : ": vectorized atomics need sm_90");
	else
		explain(t, o, what, width, want, elem);
}

static void tell_gather(struct teller *t, const struct op *o)
{
	const char *how = "by shuffles within each warp";
	if (o->scratch_size)
		how = arena_printf(&t->scratch, "through %d bytes of shared memory", o->scratch_size);
	diag(t->s->diags, R_ACCESS, o->loc, o->code == IR_GATHER ? "gather: " : "histogram: ", how);
}

static void remark_tma_tile(struct teller *t, const struct op *o)
{
	const struct type *tile = operand(o, 1)->type;
	i32 along = (i32)o->attr[ATTR_ALONG], bytes = tile->shape[along] * dtype_bytes(type_dtype(tile));
	if (tile->rank == 1) {
		diag(t->s->diags, R_ACCESS, o->loc,
		     arena_printf(&t->scratch, "load: TMA copy of a row of %d bytes (cp.async.bulk)", bytes), "");
		return;
	}
	diag(t->s->diags, R_ACCESS, o->loc,
	     arena_printf(&t->scratch, "load: TMA copy of %d rows of %d bytes%s%s (cp.async.bulk.tensor)",
			  tile->shape[1 - along], bytes,
			  o->code == IR_TMA_TENSOR_COPY ? ", zeros outside the tensor" : "",
			  o->attr[ATTR_COPY_PAIR] ? ", multicast to both blocks of a CTA pair" : ""),
	     "");
}

/* --- between threads ----------------------------------------------------------------------------------------- */

static void tell_reduction(struct teller *t, const struct op *o)
{
	const struct type *in = operand(o, 0)->type;
	int axis = (int)o->attr[ATTR_AXIS];
	u32 mask = layout_dim_mask(in->layout, axis), n[LL_DIMS];
	for (int dim = 0; dim < LL_DIMS; dim++)
		n[dim] = 1u << __builtin_popcount(layout_bits_in(in->layout, (enum layout_dim)dim, mask));
	u32 regs = n[LL_REG], lanes = n[LL_LANE], warps = n[LL_WARP];
	struct strbuf text = {.arena = &t->scratch};
	sb_printf(&text, "%u in each thread", regs);
	if (lanes > 1)
		sb_printf(&text, ", %u lanes by shuffles", lanes);
	if (warps > 1)
		sb_printf(&text, ", %u warps through %d bytes of shared memory%s", warps, o->scratch_size,
			  t->s->k->cuda.cluster > 1 ? " of each block" : "");
	diag(t->s->diags, R_REDUCTION, o->loc, o->code == IR_SCAN ? "scan" : "reduction", in->shape[axis], text.at);
	if (warps > 1 && regs == 1 && in->shape[axis] < 32 * t->s->num_warps)
		diag_hint(t->s->diags,
			  "the tile is small for %d warps; with fewer num_warps the reduction needs no shared memory",
			  t->s->num_warps);
}

/* The dimension along which registers, then lanes, run. */
static int runs_along(const struct layout *l)
{
	u32 first = l->bits[LL_REG] && l->basis[LL_REG][0] ? l->basis[LL_REG][0] : l->basis[LL_LANE][0];
	for (int d = 0; d < l->rank; d++)
		if (first & layout_dim_mask(l, d))
			return d;
	return 0;
}

static void tell_conversion(struct teller *t, const struct op *o)
{
	const struct value *v = result(o);
	const struct layout *from = operand(o, 0)->type->layout, *to = v->type->layout;
	int pieces = (int)o->attr[ATTR_PIECES];
	if (o->attr[ATTR_CONVERSION] == CONVERSION_REGISTERS || !v->uses)
		return;
	const char *way = o->attr[ATTR_CONVERSION] == CONVERSION_SHUFFLES
				  ? "by shuffles"
				  : arena_printf(&t->scratch, "through %d bytes of shared memory%s", o->scratch_size,
						 pieces > 1 ? arena_printf(&t->scratch, " in %d pieces", pieces) : "");
	int was = runs_along(from), is = runs_along(to);
	diag(t->s->diags, R_CONVERSION, o->loc, way, v->uses->user->loc.line,
	     was != is ? arena_printf(&t->scratch, ", which reads it along dimension %d, not %d", is, was) : "");
}

/* Dots by multiply-adds, and the reason for them, are reported where that is decided (legalize_dots.c). */
static void tell_dot(struct teller *t, const struct op *o)
{
	struct pass_state *s = t->s;
	const char *from = dtype_name(type_dtype(operand(o, 0)->type)), *to = dtype_name(type_dtype(result(o)->type)),
		   *how;
	if (o->code == IR_WARP_GROUP_DOT) {
		i64 first = o->attr[ATTR_EXCHANGED], instr = o->attr[ATTR_INSTR];
		const struct value *v = operand(o, (u32)first);
		const char *a = v->type->kind == TY_MEMDESC ? "shared memory"
				: !o->attr[ATTR_REGISTER_GROUPS]    ? "registers"
				: def_if(v, IR_LOCAL_LOAD)
					? "shared memory through registers, because it is not contiguous along k"
					: "registers, in which it is computed";
		how = arena_printf(&t->scratch, "wgmma m64n%dk%d, %s from %s%s", dims_get(instr, 1), dims_get(instr, 2),
				   first ? "operands exchanged: B" : "A", a,
				   o->attr[ATTR_ASYNC] && result(o)->uses->user->code != IR_WARP_GROUP_WAIT
					   ? "; its wait is in the next iteration"
					   : "");
	} else {
		const struct mma *m = mma_of_dot(o);
		if (!m)
			return;
		how = m->operands == TO_F16 ? "mma.sync m16n8k16 of fp16, with fragments widened to fp16"
					    : arena_printf(&t->scratch, "mma.sync m%dn%dk%d", m->m, m->n, m->k);
	}
	diag(s->diags, R_DOT_BY, o->loc, from, to, how);
}

static void tell(struct op *o, void *arg)
{
	struct teller *t = arg;
	switch (o->code) {
	case IR_LOAD: tell_access(t, o, "load", "ld.global."); return;
	case IR_STORE: tell_access(t, o, "store", "st.global."); return;
	case IR_ATOMIC_RMW:
	case IR_ATOMIC_CAS: tell_atomic(t, o); return;
	case IR_ASYNC_COPY: tell_access(t, o, "load", "cp.async"); return;
	case IR_TMA_COPY:
	case IR_TMA_TENSOR_COPY: remark_tma_tile(t, o); return;
	case IR_REDUCE:
	case IR_SCAN: tell_reduction(t, o); return;
	case IR_GATHER:
	case IR_HISTOGRAM: tell_gather(t, o); return;
	case IR_CONVERT_LAYOUT: tell_conversion(t, o); return;
	case IR_DOT:
	case IR_WARP_GROUP_DOT: tell_dot(t, o); return;
	default: return;
	}
}

void pass_remarks(struct pass_state *s)
{
	struct teller t = {.s = s};
	if (s->remarks)
		walk(s->k->body, tell, &t);
	arena_free(&t.scratch);
}
