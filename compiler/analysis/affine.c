#include "analysis/affine.h"

static const struct affine unknown;

struct affine affine_constant(i64 c)
{
	return (struct affine){.known = true, .constant = c};
}

static bool add_term(struct affine *f, const struct value *s, i64 coef)
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
	if (f->n == AFFINE_MAX_TERMS)
		return false;
	f->term[f->n].scalar = s;
	f->term[f->n++].coef = coef;
	return true;
}

struct affine affine_scaled(const struct affine *a, i64 by)
{
	struct affine r = affine_constant(0);
	if (!a->known || __builtin_mul_overflow(a->constant, by, &r.constant))
		return unknown;
	r.n = by ? a->n : 0;
	for (int i = 0; i < r.n; i++) {
		r.term[i].scalar = a->term[i].scalar;
		if (__builtin_mul_overflow(a->term[i].coef, by, &r.term[i].coef))
			return unknown;
	}
	return r;
}

struct affine affine_copied(const struct affine *a)
{
	return affine_scaled(a, 1);
}

struct affine affine_sum(const struct affine *a, const struct affine *b)
{
	struct affine r = affine_copied(a);
	if (!r.known || !b->known || __builtin_add_overflow(r.constant, b->constant, &r.constant))
		return unknown;
	for (int i = 0; i < b->n; i++)
		if (!add_term(&r, b->term[i].scalar, b->term[i].coef))
			return unknown;
	return r;
}

struct affine affine_difference(const struct affine *a, const struct affine *b)
{
	struct affine minus = affine_scaled(b, -1);
	return affine_sum(a, &minus);
}

i64 affine_take(struct affine *f, const struct value *scalar)
{
	for (int i = 0; i < f->n; i++)
		if (f->term[i].scalar == scalar) {
			i64 c = f->term[i].coef;
			f->term[i] = f->term[--f->n];
			return c;
		}
	return 0;
}

struct affine affine_scalar(const struct value *v)
{
	struct affine f = affine_constant(0);
	add_term(&f, v, 1);
	return f;
}

bool affine_equals(const struct affine *a, const struct affine *b)
{
	return a->constant == b->constant && a->n == b->n &&
	       !memcmp(a->term, b->term, (size_t)a->n * sizeof a->term[0]);
}
