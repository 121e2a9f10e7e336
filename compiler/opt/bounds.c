#include "opt/bounds.h"

/* --- forms --------------------------------------------------------------------------------------------------- */

static const struct form unknown;

static struct form constant(i64 c)
{
	return (struct form){.known = true, .constant = c};
}

static bool add_term(struct form *f, const struct value *s, i64 coef)
{
	for (int i = 0; i < f->n; i++)
		if (f->term[i].scalar == s) {
			if (__builtin_add_overflow(f->term[i].coef, coef, &f->term[i].coef))
				return false;
			if (!f->term[i].coef)
				f->term[i] = f->term[--f->n];
			return true;
		}
	if (!coef)
		return true;
	if (f->n == FORM_MAX_TERMS)
		return false;
	f->term[f->n].scalar = s;
	f->term[f->n++].coef = coef;
	return true;
}

struct form form_scaled(const struct form *a, i64 by)
{
	struct form r = *a;
	if (!a->known || __builtin_mul_overflow(a->constant, by, &r.constant))
		return unknown;
	for (int i = 0; i < r.n; i++)
		if (__builtin_mul_overflow(a->term[i].coef, by, &r.term[i].coef))
			return unknown;
	if (!by)
		r.n = 0;
	return r;
}

struct form form_sum(const struct form *a, const struct form *b)
{
	struct form r = *a;
	if (!a->known || !b->known || __builtin_add_overflow(a->constant, b->constant, &r.constant))
		return unknown;
	for (int i = 0; i < b->n; i++)
		if (!add_term(&r, b->term[i].scalar, b->term[i].coef))
			return unknown;
	return r;
}

struct form form_sub(const struct form *a, const struct form *b)
{
	struct form minus = form_scaled(b, -1);
	return form_sum(a, &minus);
}

i64 form_take(struct form *f, const struct value *scalar)
{
	for (int i = 0; i < f->n; i++)
		if (f->term[i].scalar == scalar) {
			i64 c = f->term[i].coef;
			f->term[i] = f->term[--f->n];
			return c;
		}
	return 0;
}

/* --- facts about scalars ------------------------------------------------------------------------------------- */

static void type_range(const struct type *t, i64 *lo, i64 *hi)
{
	int bits = type_elem_bits(t);
	*lo = bits >= 64 ? INT64_MIN / 4 : -(1ll << (bits - 1));
	*hi = bits >= 64 ? INT64_MAX / 4 : (1ll << (bits - 1)) - 1;
	if (bits == 1)
		*lo = 0, *hi = 1;
}

/* Narrows [lo, hi] by tl.assume(v < constant) and the like, where they stand in the kernel's body. */
static void assumed_range(const struct value *v, i64 *lo, i64 *hi)
{
	for (const struct use *u = v->uses; u; u = u->next) {
		const struct op *cmp = u->user;
		i64 c;
		if (cmp->code != IR_CMPI || operand(cmp, 0) != v || !value_const_int(operand(cmp, 1), &c))
			continue;
		bool assumed = false;
		for (const struct use *w = cmp->results[0].uses; w; w = w->next)
			assumed |= w->user->code == IR_ASSUME && !w->user->block->parent;
		if (!assumed)
			continue;
		switch ((enum cmpi_predicate)cmp->attr[ATTR_PREDICATE]) {
		case CMPI_SGT: *lo = MAX(*lo, c + 1); break;
		case CMPI_SGE: *lo = MAX(*lo, c); break;
		case CMPI_SLT: *hi = MIN(*hi, c - 1); break;
		case CMPI_SLE: *hi = MIN(*hi, c); break;
		default: break;
		}
	}
}

static bool is_loop_index(const struct value *v, const struct op **loop)
{
	if (v->def || !v->block->parent || v->block->parent->code != IR_FOR || v->index)
		return false;
	*loop = v->block->parent;
	return true;
}

static void scalar_range(struct bounds_context *c, const struct value *v, i64 *lo, i64 *hi)
{
	const struct op *loop;
	type_range(v->type, lo, hi);
	if (def_if(v, IR_PROGRAM_ID))
		*lo = 0;
	if (def_if(v, IR_NUM_PROGRAMS))
		*lo = 1;
	if (is_loop_index(v, &loop) && c->depth < 8) {
		struct bounds first = bounds_of(c, operand(loop, 0)), last = bounds_of(c, operand(loop, 1));
		i64 x, y;
		c->depth++;
		if (form_range(c, &first.lo, &x, &y))
			*lo = MAX(*lo, x);
		if (form_range(c, &last.hi, &x, &y))
			*hi = MIN(*hi, y - 1);
		c->depth--;
	}
	assumed_range(v, lo, hi);
}

bool form_range(struct bounds_context *c, const struct form *f, i64 *lo, i64 *hi)
{
	i128 a = f->constant, b = f->constant;
	if (!f->known)
		return false;
	for (int i = 0; i < f->n; i++) {
		i64 x, y, k = f->term[i].coef;
		scalar_range(c, f->term[i].scalar, &x, &y);
		a += (i128)k * (k > 0 ? x : y);
		b += (i128)k * (k > 0 ? y : x);
	}
	if (a < INT64_MIN / 2 || b > INT64_MAX / 2)
		return false;
	*lo = (i64)a;
	*hi = (i64)b;
	return true;
}

/* --- bounds of values ---------------------------------------------------------------------------------------- */

static struct bounds symbol(const struct value *v)
{
	struct form f = constant(0);
	add_term(&f, v, 1);
	return (struct bounds){f, f};
}

static struct bounds any(const struct value *v)
{
	if (!type_is_tensor(v->type))
		return symbol(v);
	return (struct bounds){unknown, unknown};
}

static struct bounds product(const struct value *v, const struct bounds *x, const struct bounds *y)
{
	const struct bounds *t = x;
	i64 k;
	if (y->lo.known && y->hi.known && !y->lo.n && !y->hi.n && y->lo.constant == y->hi.constant)
		k = y->lo.constant;
	else if (x->lo.known && x->hi.known && !x->lo.n && !x->hi.n && x->lo.constant == x->hi.constant) {
		k = x->lo.constant;
		t = y;
	} else
		return any(v);
	struct bounds r = {form_scaled(&t->lo, k), form_scaled(&t->hi, k)};
	return k >= 0 ? r : (struct bounds){r.hi, r.lo};
}

/* x % m for x >= 0 and m > 0: 0 … m - 1. */
static struct bounds remainder_bounds(struct bounds_context *c, const struct value *v, const struct bounds *x, const struct bounds *m)
{
	i64 lo, hi, mlo, mhi;
	if (!form_range(c, &x->lo, &lo, &hi) || lo < 0 || !form_range(c, &m->lo, &mlo, &mhi) || mlo <= 0)
		return any(v);
	struct form one = constant(1);
	return (struct bounds){constant(0), form_sub(&m->hi, &one)};
}

/* A carried value that grows by a constant each iteration is affine in the index. */
static struct bounds carried(struct bounds_context *c, const struct value *v)
{
	const struct op *loop = v->block->parent, *next;
	i64 by, step;
	if (!loop || loop->code != IR_FOR || v->index == 0 || c->depth > 8)
		return any(v);
	next = operand(v->block->last, v->index - 1)->def;
	if (!next || next->code != IR_ADDI || next->block != v->block || !value_const_int(operand(loop, 2), &step) || step <= 0)
		return any(v);
	const struct value *inc = operand(next, 0) == v ? operand(next, 1) : operand(next, 1) == v ? operand(next, 0) : NULL;
	if (!inc || !value_const_int(inc, &by) || by < 0 || by % step)
		return any(v);
	struct bounds init = bounds_of(c, operand(loop, 2 + v->index)), i = bounds_of(c, v->block->args[0]);
	struct bounds first = bounds_of(c, operand(loop, 0));
	struct form lo = form_sub(&i.lo, &first.hi), hi = form_sub(&i.hi, &first.lo);
	lo = form_scaled(&lo, by / step);
	hi = form_scaled(&hi, by / step);
	return (struct bounds){form_sum(&init.lo, &lo), form_sum(&init.hi, &hi)};
}

static struct bounds index_bounds(struct bounds_context *c, const struct value *v, const struct op *loop)
{
	if (loop == c->loop)
		return symbol(v);
	struct bounds first = bounds_of(c, operand(loop, 0)), last = bounds_of(c, operand(loop, 1));
	struct form one = constant(1);
	return (struct bounds){first.lo, form_sub(&last.hi, &one)};
}

static struct bounds compute(struct bounds_context *c, const struct value *v)
{
	const struct op *o = v->def, *loop;
	i64 k;
	if (!dtype_is_int(type_dtype(v->type)) || type_is_ptr(v->type))
		return (struct bounds){unknown, unknown};
	if (value_const_int(v, &k))
		return (struct bounds){constant(k), constant(k)};
	if (is_loop_index(v, &loop))
		return index_bounds(c, v, loop);
	if (!o)
		return carried(c, v);
	struct bounds x = {0}, y = {0};
	if (o->noperands >= 1 && o->code != IR_LOAD && !o->nblocks)
		x = bounds_of(c, operand(o, 0));
	if (o->noperands >= 2 && o->code != IR_LOAD && !o->nblocks)
		y = bounds_of(c, operand(o, 1));
	switch (o->code) {
	case IR_MAKE_RANGE: return (struct bounds){constant(o->attr[ATTR_START]), constant(o->attr[ATTR_END] - 1)};
	case IR_SPLAT:
	case IR_BROADCAST:
	case IR_EXPAND_DIMS:
	case IR_TRANS:
	case IR_RESHAPE:
	case IR_EXTSI: return x;
	case IR_ADDI: return (struct bounds){form_sum(&x.lo, &y.lo), form_sum(&x.hi, &y.hi)};
	case IR_SUBI: return (struct bounds){form_sub(&x.lo, &y.hi), form_sub(&x.hi, &y.lo)};
	case IR_MULI: return product(v, &x, &y);
	case IR_REMSI: return remainder_bounds(c, v, &x, &y);
	default: return any(v);
	}
}

struct bounds bounds_of(struct bounds_context *c, const struct value *v)
{
	if (c->depth > 40)
		return any(v);
	c->depth++;
	struct bounds b = compute(c, v);
	c->depth--;
	if (!b.lo.known || !b.hi.known)
		return any(v);
	return b;
}

struct bounds bounds_of_rounded(struct bounds_context *c, const struct value *v)
{
	const struct op *mul = def_if(v, IR_MULI), *div = mul ? def_if(operand(mul, 0), IR_DIVSI) : NULL;
	i64 m, n;
	if (!div || !value_const_int(operand(mul, 1), &m) || !value_const_int(operand(div, 1), &n) || m != n || m <= 0)
		return bounds_of(c, v);
	struct bounds x = bounds_of(c, operand(div, 0));
	struct form most = constant(m - 1); /* toward 0: down or up */
	return (struct bounds){form_sub(&x.lo, &most), form_sum(&x.hi, &most)};
}

/* Is v the end, or that and a constant that is not negative, whichever is greater? */
static bool is_end(const struct value *v, const struct value *end)
{
	const struct op *greater = def_if(v, IR_MAXSI);
	i64 c;
	return v == end || (greater && operand(greater, 0) == end && value_const_int(operand(greater, 1), &c) && c >= 0);
}

/* Where nothing can wrap: between constants, and from end / m * m to the end. */
bool loop_runs_once(const struct op *loop)
{
	const struct value *first = operand(loop, 0), *end = operand(loop, 1);
	const struct op *mul = def_if(first, IR_MULI), *div = mul ? def_if(operand(mul, 0), IR_DIVSI) : NULL;
	i64 lo, hi, step, m, n;
	if (!value_const_int(operand(loop, 2), &step) || step <= 0)
		return false;
	if (value_const_int(first, &lo) && value_const_int(end, &hi))
		return lo >= hi || (u64)hi - (u64)lo <= (u64)step;
	return div && value_const_int(operand(mul, 1), &m) && value_const_int(operand(div, 1), &n) && m == n && m > 0 && m <= step &&
	       is_end(operand(div, 0), end);
}

/* --- rows --------------------------------------------------------------------------------------------------- */

bool row_of(const struct value *x, struct row *r)
{
	const struct op *range = x->def;
	*r = (struct row){0};
	if (range && range->code == IR_ADDI) {
		bool swapped = operand(range, 1)->def && operand(range, 1)->def->code == IR_SPLAT;
		const struct op *splat = operand(range, swapped)->def;
		range = operand(range, !swapped)->def;
		if (!splat || splat->code != IR_SPLAT)
			return false;
		r->start = operand(splat, 0);
	}
	if (!range || range->code != IR_MAKE_RANGE)
		return false;
	r->first = range->attr[ATTR_START];
	r->last = range->attr[ATTR_END] - 1;
	return true;
}
