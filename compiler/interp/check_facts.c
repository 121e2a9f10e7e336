/* Checks of analysis facts: the results of the axis analysis about a value must hold for each element that occurs.
 *
 * Facts are copied when the program is prepared, since passes change the kernel afterwards. A new kind of fact is one
 * more line in broken_by_element, or in broken_along for facts along a dimension. */
#include "interp/interp_internal.h"
#include "analysis/axis.h"
#include "analysis/launch_bounds.h"

enum { LONGEST_ACCESS = 16 }; /* the most bytes that a thread loads or stores in one access */
enum { MOST_CLAIMS = 32 };    /* limit on size claims about a value */

/* A bound c + Σ coef·scalar, with the slots of the scalars. */
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
	struct bound lo, hi; /* bounds of the ideal value, without wrapping */
	struct size_claim *claims;
	u32 nclaims;
	struct size_bound by_size; /* valid within the limits of the first claim */
	bool same;           /* lo equals hi: the value is lo modulo 2^width even where it wraps */
	bool per_element;    /* `facts` or `range` bounds elements one by one, not only along a dimension */
	bool promised;       /* the fact is a hint of the user: a violation is not a bug of the compiler */
	const char *name;    /* name of the operation that defines the value */
	enum dtype dtype;
	/* difference between neighbours of a contiguous group: 1, or for pointers the size of an element in bytes */
	i64 unit;
};

/* An element and its predecessor along a dimension, as zero-extended bits. */
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

/* --- launch bounds ----------------------------------------------------------------------------------------------- */

static i64 size_now(const struct env *e, i16 size)
{
	const struct interp_launch *l = e->run->launch;
	if (size <= SIZE_PROGRAMS)
		return l->grid[SIZE_PROGRAMS - size];
	return size == SIZE_NONE ? 0 : dtype_decode_int(type_dtype(e->run->program->param_types[size]), l->args[size]);
}

static bool is_within(const struct env *e, const struct size_limit *limits, u32 n)
{
	for (u32 i = 0; i < n; i++)
		if (!size_limit_kept(&limits[i], size_now(e, limits[i].a), size_now(e, limits[i].b)))
			return false;
	return !e->any_divisor;
}

/* The claims and the bound about an element that apply in this launch. */
struct claimed {
	i64 least, most;
};

static struct claimed claimed_now(const struct env *e, const struct fact_plan *w)
{
	struct claimed now = {INT64_MIN, INT64_MAX};
	for (u32 i = w->nclaims; i-- > 0 && now.least == INT64_MIN;) /* the tightest claims come last */
		if (is_within(e, w->claims[i].limits, w->claims[i].nlimits))
			now = (struct claimed){w->claims[i].least, w->claims[i].most};
	const struct size_bound *b = &w->by_size;
	i64 size = size_now(e, b->size);
	if (b->size == SIZE_NONE || size < 0 || !is_within(e, w->claims->limits, w->claims->nlimits))
		return now;
	i128 most = (i128)b->times * size + b->plus;
	most = most >= 0 ? most / b->by : (most - b->by + 1) / b->by;
	now.most = (i64)MIN(most, now.most);
	return now;
}

/* --- values ------------------------------------------------------------------------------------------------------ */

/* The bounds evaluated for the current values of the scalars. */
struct bounds_now {
	i128 lo, hi;
	struct claimed sizes;
};

/* The fact about single elements that the element violates; NULL if none. */
static const char *broken_by_element(const struct fact_plan *w, u64 bits, const struct bounds_now *now)
{
	i128 lo = now->lo, hi = now->hi;
	i64 x = dtype_decode_int(w->dtype, bits);
	if (x < w->range.min || x > w->range.max)
		return "its interval";
	if (!w->range.wraps && (x < lo || x > hi))
		return "its affine bounds";
	if (w->same && ((u64)x ^ (u64)lo) & width_mask(w->dtype))
		return "its affine form";
	if (x < now->sizes.least || x > now->sizes.most)
		return "its launch bounds";
	return NULL;
}

/* The fact that the element violates along dimension d; NULL if none. *claim is the number stated by the fact. */
static const char *broken_along(const struct fact_plan *w, int d, const struct element *x, i32 *claim)
{
	const struct axis_info *f = &w->facts;
	u64 mask = width_mask(w->dtype);
	bool inside = x->at & (f->contiguity[d] - 1); /* not the first element of a contiguous group */
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
	return fail(
		e, i, k,
		"%s %s is wrong: %s %d along dimension %d, but element %d is 0x%llx and the preceding element 0x%llx",
		w->promised ? "the kernel's hint for" : "the analysis result for", w->name, fact, claim, d, x->at, now,
		before);
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

static bool fail_element(struct env *e, const struct inst *i, i64 k, const char *fact, u64 bits,
			 const struct bounds_now *now)
{
	const struct fact_plan *w = i->plan;
	const struct range *r = &w->range;
	return fail(e, i, k,
		    "the analysis result for %s is wrong: %s; the element is 0x%llx, its interval %lld to %lld%s, its "
		    "affine bounds %lld to %lld, its launch bounds %lld to %lld",
		    w->name, fact, (unsigned long long)bits, (long long)r->min, (long long)r->max,
		    r->wraps ? " (wraps)" : "", (long long)now->lo, (long long)now->hi, (long long)now->sizes.least,
		    (long long)now->sizes.most);
}

static bool run_facts(struct env *e, const struct inst *i)
{
	const struct fact_plan *w = i->plan;
	const char *from = e->at[i->in[0]];
	u32 bytes = elem_bytes(i->type);
	struct bounds_now now = {evaluate(e, &w->lo), evaluate(e, &w->hi), claimed_now(e, w)};
	for (i64 k = 0; k < i->n && w->per_element; k++) {
		u64 bits = bits_at(from, bytes, k);
		const char *fact = broken_by_element(w, bits, &now);
		if (fact)
			return fail_element(e, i, k, fact, bits, &now);
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
				.by_size = {.size = SIZE_NONE},
				.dtype = type_dtype(v->type),
				.unit = 1};
	if (elem->kind == TY_PTR)
		w->unit = dtype_bytes(type_dtype(elem->elem));
	for (int d = 0; d < MAX(v->type->rank, 1) && dtype_is_float(w->dtype);
	     d++) /* dimensions for which constancy is the only fact */
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

/* At most `most` size claims about v. */
static struct size_claim *plan_claims(struct planner *p, const struct interp_checks *c, const struct value *v, u32 most,
				      u32 *n, struct size_bound *bound)
{
	struct size_claim some[MOST_CLAIMS];
	struct arena scratch = {0};
	*n = bounds_claim(c->ranges, v, &scratch, some, most, bound);
	struct size_claim *kept = plan_alloc(p, *n * sizeof *kept);
	for (u32 i = 0; i < *n; i++) {
		size_t size = some[i].nlimits * sizeof *some[i].limits;
		kept[i] = some[i];
		kept[i].limits = memcpy(plan_alloc(p, size), some[i].limits, size);
	}
	arena_free(&scratch);
	return kept;
}

bool plan_facts(struct planner *p, const struct interp_checks *c, const struct value *v, struct inst *i)
{
	struct fact_plan *w = plan(p, axis_of(c->facts, v), v, i);
	if (type_elem(v->type)->kind == TY_SCALAR && dtype_is_int(w->dtype)) {
		w->range = *value_range(c->ranges, v);
		w->per_element = true;
		if (dtype_bits(w->dtype) > 1)
			w->claims = plan_claims(p, c, v, MOST_CLAIMS, &w->nclaims, &w->by_size);
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
	for (int d = 0; d < MAX_RANK; d++) /* a hint has to hold only within each access */
		if (f.contiguity[d] > most) {
			f.contiguity[d] = most;
			f.divisibility[d] = MIN(f.divisibility[d], LONGEST_ACCESS);
		}
	struct fact_plan *w = plan(p, &f, v, i);
	w->promised = true;
	return says_anything(w, v->type);
}

/* --- operands ---------------------------------------------------------------------------------------------------- */

/* Facts about an operation on integers, or about a loop. */
struct operand_plan {
	const struct size_claim *exact; /* NULL: a sum or product may wrap */
	enum dtype dtype;
	int positive; /* the operand that is marked as not negative (tlc.nneg); -1: none */
	bool divides; /* a division by a value that is not a constant */
	bool no_wrap; /* the loop is marked tlc.no_wrap */
};

static i128 exact_result(enum opcode code, i64 x, i64 y)
{
	switch (code) {
	case IR_ADDI: return (i128)x + y;
	case IR_SUBI: return (i128)x - y;
	case IR_MULI: return (i128)x * y;
	default: return y < 0 || y > 63 ? INT64_MAX : (i128)x * ((i128)1 << y);
	}
}

static i64 int_at(const struct env *e, const struct inst *i, u32 in, enum dtype d, i64 k)
{
	return dtype_decode_int(d, bits_at(e->at[i->in[in]], (u32)dtype_bytes(d), k));
}

/* True if the index after the last iteration, and the difference between the bounds, fit the type. */
static bool loop_fits(i64 from, i64 to, i64 step, enum dtype d)
{
	i128 most = (i128)(width_mask(d) >> 1);
	return from >= to || step <= 0 ||
	       ((i128)to - from <= most && from + ((i128)to - from + step - 1) / step * step <= most);
}

static bool run_operand_facts(struct env *e, const struct inst *i)
{
	const struct operand_plan *w = i->plan;
	if (w->no_wrap && !e->any_divisor &&
	    !loop_fits(int_at(e, i, 0, w->dtype, 0), int_at(e, i, 1, w->dtype, 0), int_at(e, i, 2, w->dtype, 0),
		       w->dtype))
		return fail(e, i, -1, "the analysis result for a loop is wrong: its index wraps");
	bool exact = w->exact && is_within(e, w->exact->limits, w->exact->nlimits);
	for (i64 k = 0; k < i->n; k++) {
		if (w->positive >= 0 && !e->any_divisor && int_at(e, i, (u32)w->positive, w->dtype, k) < 0)
			return fail(e, i, k, "the analysis result for %s is wrong: its operand is negative, 0x%llx",
				    op_info[i->code].name,
				    (unsigned long long)int_at(e, i, (u32)w->positive, w->dtype, k));
		if (w->divides)
			e->any_divisor |= int_at(e, i, 1, w->dtype, k) <= 0;
		if (!exact)
			continue;
		i64 x = int_at(e, i, 0, w->dtype, k), y = int_at(e, i, 1, w->dtype, k);
		i128 r = exact_result(i->code, x, y), most = (i128)(width_mask(w->dtype) >> 1);
		if (r > most || r < -most - 1)
			return fail(e, i, k,
				    "the analysis result for %s is wrong: it wraps within the launch bounds; the "
				    "operands are 0x%llx and 0x%llx",
				    op_info[i->code].name, (unsigned long long)x, (unsigned long long)y);
	}
	return true;
}

bool plan_operand_facts(struct planner *p, const struct interp_checks *c, const struct op *o, struct inst *i)
{
	struct operand_plan *w = plan_alloc(p, sizeof *w);
	struct size_bound unused;
	u32 n = 0;
	i64 constant;
	*w = (struct operand_plan){.dtype = type_dtype(operand(o, 0)->type), .positive = -1};
	switch (o->code) {
	case IR_ADDI:
	case IR_SUBI:
	case IR_MULI:
	case IR_SHLI:
		if (dtype_bits(w->dtype) > 1)
			w->exact = plan_claims(p, c, result(o), 1, &n, &unused);
		if (!n)
			w->exact = NULL;
		break;
	case IR_DIVSI:
	case IR_REMSI: w->divides = !value_const_int(operand(o, 1), &constant); [[fallthrough]];
	case IR_EXTSI:
		if (o->attr[ATTR_NNEG])
			w->positive = 0;
		break;
	case IR_ADDPTR:
		w->dtype = type_dtype(operand(o, 1)->type);
		if (o->attr[ATTR_NNEG])
			w->positive = 1;
		break;
	case IR_FOR:
		w->no_wrap = o->attr[ATTR_NO_WRAP];
		i->n = 0;
		break;
	default: return false;
	}
	i->plan = w;
	i->run = run_operand_facts;
	return w->exact || w->positive >= 0 || w->divides || w->no_wrap;
}
