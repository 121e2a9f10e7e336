/* Checks of facts: the results of the axis analysis about a value must hold for each element that occurs.
 *
 * Facts are copied when the program is prepared, as passes go on to change the kernel. A further fact is one more line
 * in broken_by_element, or along a dimension in broken_along. */
#include "interp/internal.h"
#include "opt/axis.h"
#include "opt/ranges.h"

enum { LONGEST_ACCESS = 16 }; /* bytes that a thread loads or stores at once */

/* c + Σ coef·scalar, with the slots of the scalars. */
struct bound {
	i64 constant;
	int n;
	struct bound_term {
		i64 coef;
		u32 slot;
		enum dtype dtype;
	} term[AFFINE_MAX_TERMS];
};

struct fact_plan {
	struct axis_info facts;
	struct range range;
	struct bound lo, hi; /* of the ideal value */
	bool same;           /* they are: the value is lo modulo 2^width even where it wraps */
	bool per_element;    /* there are facts about each element by itself */
	bool promised;       /* a promise of the user's: a failure is not the compiler's */
	const char *name;    /* of the operation that defines the value */
	enum dtype dtype;
	i64 unit; /* between neighbours of a run: 1, of pointers the bytes of an element */
};

/* An element and the one before it along a dimension, as bits, extended by zeros. */
struct element {
	u64 bits, before;
	i32 at; /* index along the dimension */
};

static u64 bits_at(const char *from, u32 bytes, i64 k)
{
	switch (bytes) {
	case 1: return ((const mem8 *)from)[k];
	case 2: return ((const mem16 *)from)[k];
	case 4: return ((const mem32 *)from)[k];
	default: return ((const mem64 *)from)[k];
	}
}

static u64 width_mask(enum dtype d)
{
	return dtype_bits(d) == 64 ? ~0ull : (1ull << dtype_bits(d)) - 1;
}

static i128 evaluate(const struct env *e, const struct bound *b)
{
	i128 sum = b->constant;
	for (int k = 0; k < b->n; k++) {
		const struct bound_term *t = &b->term[k];
		sum += (i128)t->coef *
		       dtype_decode_int(t->dtype, bits_at(e->at[t->slot], (u32)dtype_bytes(t->dtype), 0));
	}
	return sum;
}

/* The fact about single elements that the element breaks; NULL: none. lo and hi: the current values of the bounds. */
static const char *broken_by_element(const struct fact_plan *w, u64 bits, i128 lo, i128 hi)
{
	const struct axis_info *f = &w->facts;
	i64 x = dtype_decode_int(w->dtype, bits);
	if (f->is_constant && ((u64)x ^ (u64)f->constant) & width_mask(w->dtype))
		return "a constant";
	if (x < w->range.min || x > w->range.max)
		return "its interval";
	if (!w->range.wraps && (x < lo || x > hi))
		return "its affine bounds";
	if (w->same && ((u64)x ^ (u64)lo) & width_mask(w->dtype))
		return "its affine form";
	return NULL;
}

/* The fact that the element breaks along dimension d; NULL: none. *claim is its number. */
static const char *broken_along(const struct fact_plan *w, int d, const struct element *x, i32 *claim)
{
	const struct axis_info *f = &w->facts;
	u64 mask = width_mask(w->dtype);
	bool inside = x->at & (f->contiguity[d] - 1); /* of a run */
	*claim = f->constancy[d];
	if (x->at & (*claim - 1) && x->bits != x->before)
		return "constancy";
	*claim = f->contiguity[d];
	if (inside && x->bits != ((x->before + (u64)w->unit) & mask))
		return "contiguity";
	*claim = f->divisibility[d];
	if (!inside && x->bits & (u64)(*claim - 1) & mask)
		return "divisibility";
	return NULL;
}

static bool fail_along(struct env *e, const struct inst *i, i64 k, int d, const struct element *x, const char *fact,
		       i32 claim)
{
	const struct fact_plan *w = i->plan;
	unsigned long long now = x->bits, before = x->before;
	return fail(e, i, k,
		    "%s %s is wrong: %s %d along dimension %d, but element %d is 0x%llx and the one before it 0x%llx",
		    w->promised ? "what the kernel promises of" : "what is known of", w->name, fact, claim, d, x->at,
		    now, before);
}

static bool check_dimension(struct env *e, const struct inst *i, int d)
{
	const struct fact_plan *w = i->plan;
	const char *from = e->at[i->in[0]];
	const mem8 *mask = i->nin > 1 ? e->at[i->in[1]] : NULL;
	const struct type *t = i->type;
	i64 stride = 1;
	for (int k = d + 1; k < t->rank; k++)
		stride *= t->shape[k];
	i32 size = t->rank ? t->shape[d] : 1;
	u32 bytes = elem_bytes(t);
	for (i64 k = 0; k < i->n; k++) {
		struct element x = {.bits = bits_at(from, bytes, k), .at = (i32)(k / stride % size)};
		x.before = x.at ? bits_at(from, bytes, k - stride) : x.bits;
		if (mask && (!mask[k] || (x.at && !mask[k - stride])))
			continue;
		i32 claim;
		const char *fact = broken_along(w, d, &x, &claim);
		if (fact)
			return fail_along(e, i, k, d, &x, fact, claim);
	}
	return true;
}

static bool says_anything_along(const struct axis_info *f, int d)
{
	return f->constancy[d] > 1 || f->contiguity[d] > 1 || f->divisibility[d] > 1;
}

static bool fail_element(struct env *e, const struct inst *i, i64 k, const char *fact, u64 bits, i128 lo, i128 hi)
{
	const struct fact_plan *w = i->plan;
	const struct range *r = &w->range;
	return fail(
		e, i, k,
		"what is known of %s is wrong: %s; it is 0x%llx, known from %lld to %lld%s, affine from %lld to %lld",
		w->name, fact, (unsigned long long)bits, (long long)r->min, (long long)r->max,
		r->wraps ? " (wraps)" : "", (long long)lo, (long long)hi);
}

static bool run_facts(struct env *e, const struct inst *i)
{
	const struct fact_plan *w = i->plan;
	const char *from = e->at[i->in[0]];
	u32 bytes = elem_bytes(i->type);
	i128 lo = evaluate(e, &w->lo), hi = evaluate(e, &w->hi);
	for (i64 k = 0; k < i->n && w->per_element; k++) {
		u64 bits = bits_at(from, bytes, k);
		const char *fact = broken_by_element(w, bits, lo, hi);
		if (fact)
			return fail_element(e, i, k, fact, bits, lo, hi);
	}
	for (int d = 0; d < MAX(i->type->rank, 1); d++)
		if (says_anything_along(&w->facts, d) && !check_dimension(e, i, d))
			return false;
	return true;
}

static struct fact_plan *plan(struct planner *p, const struct axis_info *f, const struct value *v, struct inst *i)
{
	const struct type *elem = type_elem(v->type);
	struct fact_plan *w = plan_alloc(p, sizeof *w);
	*w = (struct fact_plan){.facts = *f,
				.name = v->def ? op_info[v->def->code].name : "a block argument",
				.dtype = type_dtype(v->type),
				.unit = 1};
	if (elem->kind == TY_PTR)
		w->unit = dtype_bytes(type_dtype(elem->elem));
	for (int d = 0; d < MAX(v->type->rank, 1) && dtype_is_float(w->dtype);
	     d++) /* for which constancy is the only fact */
		w->facts.contiguity[d] = w->facts.divisibility[d] = 1;
	i->plan = w;
	i->run = run_facts;
	return w;
}

static bool says_anything(const struct fact_plan *w, const struct type *t)
{
	bool some = w->per_element;
	for (int d = 0; d < MAX(t->rank, 1); d++)
		some |= says_anything_along(&w->facts, d);
	return some;
}

static void plan_bound(struct planner *p, const struct affine *a, struct bound *out)
{
	*out = (struct bound){.constant = a->constant, .n = a->n};
	for (int k = 0; k < a->n; k++)
		out->term[k] = (struct bound_term){a->term[k].coef, plan_slot(p, a->term[k].scalar),
						   type_dtype(a->term[k].scalar->type)};
}

static bool same_bound(const struct bound *a, const struct bound *b)
{
	bool same = a->constant == b->constant && a->n == b->n;
	for (int k = 0; k < a->n && same; k++)
		same = a->term[k].slot == b->term[k].slot && a->term[k].coef == b->term[k].coef;
	return same;
}

bool plan_facts(struct planner *p, const struct interp_checks *c, const struct value *v, struct inst *i)
{
	struct fact_plan *w = plan(p, axis_of(c->facts, v), v, i);
	if (type_elem(v->type)->kind == TY_SCALAR && dtype_is_int(w->dtype)) {
		w->range = *value_range(c->ranges, v);
		w->per_element = true;
		if (w->range.lo->known && w->range.hi->known) {
			plan_bound(p, w->range.lo, &w->lo);
			plan_bound(p, w->range.hi, &w->hi);
			w->same = same_bound(&w->lo, &w->hi);
		} else {
			w->range.wraps = true;
		}
	}
	return says_anything(w, v->type);
}

bool plan_promise(struct planner *p, const struct value *v, struct inst *i)
{
	struct axis_info f = {.contiguity = {1}, .constancy = {1}};
	if (!v->def || !v->def->hints || v->type->rank)
		return false;
	f.divisibility[0] = MAX(v->def->hints->divisibility[0], 1);
	struct fact_plan *w = plan(p, &f, v, i);
	w->promised = true;
	return says_anything(w, v->type);
}

bool plan_access_facts(struct planner *p, const struct interp_checks *c, const struct value *v, struct inst *i)
{
	struct axis_info f = *axis_of(c->promised, v);
	i32 bytes = dtype_bytes(type_dtype(type_elem(v->type)->elem)), most = LONGEST_ACCESS / bytes;
	for (int d = 0; d < MAX_RANK; d++) /* a promise need hold within each access only */
		if (f.contiguity[d] > most) {
			f.contiguity[d] = most;
			f.divisibility[d] = MIN(f.divisibility[d], LONGEST_ACCESS);
		}
	struct fact_plan *w = plan(p, &f, v, i);
	w->promised = true;
	return says_anything(w, v->type);
}
