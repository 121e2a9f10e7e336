#include "runtime/launch/argument_guard.h"

#include <stdlib.h>

#include "runtime/launch/composite.h"

_Static_assert(sizeof(tl_arg) == 3 * sizeof(u64), "steps compare the words of an argument");

/* --- making argument guards ---------------------------------------------------------------------------------- */

static void range(struct guard_step *s, i128 least, i128 most)
{
	s->least = (u64)least;
	s->span = (u64)(most - least);
}

/* The smallest and the largest value of an integer type. */
static void limits_of(enum dtype d, i128 *least, i128 *most)
{
	int bits = dtype_bits(d);
	bool is_signed = d != DT_I1 && !dtype_is_unsigned(d);
	*least = is_signed ? -((i128)1 << (bits - 1)) : 0;
	*most = ((i128)1 << (bits - is_signed)) - 1;
}

static void narrow(i128 *least, i128 *most, enum dtype d, bool any_sign)
{
	i128 l, m, unused;
	limits_of(d, &l, &m);
	if (any_sign)
		limits_of(dtype_unsigned(d), &unused, &m);
	*least = MAX(*least, l);
	*most = MIN(*most, m);
}

static void needs(struct guard_step *s, i32 divisor)
{
	if (divisor > 1)
		s->mask |= (u64)divisor - 1;
}

static void one_of(struct guard_step *s, u8 bits)
{
	s->kind = s->kind == STEP_WORD ? STEP_PART : s->kind;
	s->some = bits;
}

static void but_one(struct guard_step *s)
{
	s->kind = s->kind == STEP_WORD ? STEP_PART : s->kind;
	s->but_one = true;
}

static void step_of_pointer(struct guard_step *s, const struct params *ps, const struct tl_param *p, const tl_arg *a,
			    const struct spec *spec, bool exact)
{
	s->kind = STEP_WORD;
	s->keep = ~(u64)0;
	needs(s, (i32)tl_dtype_size(a->dtype));
	needs(s, spec->divisibility);
	if (exact && !takes_any_address(ps, p, a) && (uintptr_t)a->ptr % 16)
		one_of(s, 15);
}

static void step_of_integer(struct guard_step *s, struct step_more *more, const struct params *ps,
			    const struct tl_param *p, const tl_arg *a, const struct spec *spec, bool exact)
{
	i128 v = int_value(a), least = a->kind == TL_ARG_INT ? INT64_MIN : 0,
	     most = a->kind == TL_ARG_INT    ? INT64_MAX
		    : a->kind == TL_ARG_BOOL ? 1
					     : (i128)UINT64_MAX;
	bool truth = spec->dtype == DT_I1 && a->kind != TL_ARG_BOOL;
	bool converted = more->converted = truth || dtype_is_float(spec->dtype);
	s->kind = converted ? STEP_RARE : STEP_WORD;
	s->keep = converted ? 0 : dtype_encode_int(spec->dtype, -1);
	if (a->typed && a->kind != TL_ARG_BOOL)
		narrow(&least, &most, (enum dtype)a->dtype, false);
	if (!converted)
		narrow(&least, &most, spec->dtype, p->exact);
	if (spec->dtype == DT_I32 && a->dtype == TL_I32 && a->kind != TL_ARG_BOOL)
		s->flags_mask &= 0xF0; /* typed and untyped integers are equal */
	if (!a->typed && !p->annotated && exact && !int_fits(DT_I32, v)) {
		if (spec->dtype == DT_U64) {
			least = (i128)INT64_MAX + 1;
		} else {
			s->kind = STEP_RARE;
			more->not_least = (u64)INT32_MIN;
			more->not_count = (u64)1 << 32;
		}
	}
	range(s, least, most);
	needs(s, spec->divisibility);
	if (converted || !exact || spec->dtype == DT_I1 || p->exact)
		return;
	i32 limit = most_divisor(ps, p, (u32)(p - ps->at), a), by = integer_divisor(v, limit);
	if (by == 16 && limit > 16) {
		one_of(s, (u8)(limit - 16));
	} else if (by == 8) {
		needs(s, 16);
		s->equal = 8;
	} else if (!by && limit > 1) {
		one_of(s, 7);
	}
	if (!by && (!p->annotated || p->by_divisor) && !takes_any_value(ps, p, a) && !more->not_count)
		but_one(s);
}

/* False: the argument can only be compared by its key. */
static bool make_step(struct guard_step *s, struct step_more *more, const struct params *ps, const struct tl_param *p,
		      const tl_arg *a, bool exact)
{
	struct spec spec;
	if (is_composite(a) || !argument_spec(ps, p, (u32)(p - ps->at), a, &spec) ||
	    (spec.divisibility & (spec.divisibility - 1)))
		return false;
	*s = (struct guard_step){.head = argument_word(a, 0),
			   .flags = (u8)argument_word(a, 1),
			   .flags_mask = 0xFF,
			   .span = -1,
			   .more = more,
			   .slot = MAX_KERNEL_PARAMS,
			   .dtype = (u8)spec.dtype};
	if (spec.class == SPEC_ONE || spec.class == SPEC_NONE || spec.class == SPEC_CONSTANT) {
		bool text = a->kind == TL_ARG_STR || a->kind == TL_ARG_FUNC,
		     value = a->kind != TL_ARG_NONE && a->kind != TL_ARG_TYPE && !text;
		s->kind = text ? STEP_TEXT : STEP_WORD;
		more->constant = true;
		s->mask = value ? ~(u64)0 : 0;
		s->equal = value ? argument_word(a, 2) : 0;
		more->text = text ? strdup(a->s) : NULL;
		return !text || more->text;
	}
	switch (a->kind) {
	case TL_ARG_PTR: step_of_pointer(s, ps, p, a, &spec, exact); return true;
	case TL_ARG_INT:
	case TL_ARG_UINT:
	case TL_ARG_BOOL: step_of_integer(s, more, ps, p, a, &spec, exact); return true;
	case TL_ARG_FLOAT:
		more->converted = spec.dtype != DT_F32;
		s->kind = more->converted ? STEP_RARE : STEP_F32;
		return true;
	default: return false;
	}
}

static bool make_steps(struct arg_guard *b, const struct params *ps, const tl_arg *args, size_t nargs, bool exact)
{
	const struct image *im = &b->variant->image;
	for (u32 i = 0; i < nargs; i++)
		if (!make_step(&b->steps[i], &b->more[i], ps, &ps->at[i], &args[i], exact))
			return false;
	for (u32 i = 0; i < im->nslots; i++) {
		if (im->slots[i].leaf >= nargs) /* a default */
			return false;
		b->steps[im->slots[i].leaf].slot = (u16)i;
	}
	return true;
}

struct arg_guard *arg_guard_new(const struct variant *v, const struct options *o, const tl_arg *args, size_t nargs,
			    bool exact)
{
	size_t size = sizeof(struct arg_guard) + nargs * sizeof(struct guard_step);
	struct arg_guard *b = aligned_alloc(_Alignof(struct arg_guard), size);
	if (!b)
		return NULL;
	memset(b, 0, size);
	b->options = *o;
	b->nargs = (u32)nargs;
	b->params = v->params;
	b->variant = v;
	b->more = calloc(nargs + 1, sizeof *b->more);
	if (!b->more) {
		free(b);
		return NULL;
	}
	b->by_key = !make_steps(b, v->params, args, nargs, exact);
	for (u32 i = 0; i < v->image.nslots; i++)
		b->divisors += (u32)ilog2((u64)MAX(v->image.slots[i].divisibility, 1));
	arg_guard_add(b, 0, v);
	return b;
}

void arg_guard_free(struct arg_guard *b)
{
	if (!b)
		return;
	for (u32 i = 0; i < b->nargs; i++)
		free((char *)b->more[i].text);
	free(b->more);
	free(b);
}

/* True if arguments have the same bits for both images. */
static bool same_slots(const struct image *x, const struct image *y)
{
	bool same = x->nslots == y->nslots;
	for (u32 i = 0; i < x->nslots && same; i++)
		same = x->slots[i].leaf == y->slots[i].leaf && x->slots[i].dtype == y->slots[i].dtype;
	return same;
}

void arg_guard_add(struct arg_guard *b, u32 way, const struct variant *v)
{
	if (same_slots(&v->image, &b->variant->image))
		atomic_store_explicit(&b->ways[way], v, memory_order_release);
}

/* --- checking arguments -------------------------------------------------------------------------------------- */

bool arg_guard_step_rare(const struct guard_step *s, const tl_arg *a, u64 *bits)
{
	const struct step_more *m = s->more;
	switch (s->kind) {
	case STEP_F32: bits[s->slot] = fp_bits_f32((float)a->f); return true;
	case STEP_TEXT: return a->s && !strcmp(a->s, m->text);
	default: break;
	}
	if ((s->some && !(a->u & s->some)) || (s->but_one && a->u == 1) || a->u - m->not_least < m->not_count)
		return false;
	bits[s->slot] = m->converted ? arg_bits(a, false, (enum dtype)s->dtype) : a->u & s->keep;
	return true;
}

/* Another variant that is correct for these arguments, with fewer assumptions. */
static const struct variant *serving(const struct arg_guard *b, const struct broken *broken)
{
	for (u32 way = 0; way < BINDING_WAYS; way++) {
		if ((way & 1) < broken->maps || (way >> 1 & 3) < broken->sizes || way >> 3 < broken->alias)
			continue;
		const struct variant *v = atomic_load_explicit(&b->ways[way], memory_order_acquire);
		if (v)
			return v;
	}
	return NULL;
}

static bool key_fits(const struct arg_guard *b, const tl_arg *args, size_t nargs)
{
	struct key key;
	const struct variant *v = b->variant;
	key_init(&key, v->keyed.words[0]);
	bool fits = !specialize(b->params, args, nargs, &key) && keyed_by(&v->keyed, &key);
	key_free(&key);
	return fits;
}

bool arg_guard_takes(const struct arg_guard *b, const tl_arg *args, size_t nargs, u64 *bits)
{
	return b->by_key ? key_fits(b, args, nargs) : nargs == b->nargs && arg_guard_take(b, args, bits) == b->nargs;
}

const struct variant *arg_guard_choose(const struct arg_guard *b, struct device *dev, const tl_arg *args, size_t nargs,
				     const u32 *grid, bool serves, bool taken, u64 *bits)
{
	tl_arg leaves[MAX_KERNEL_PARAMS];
	struct arguments a = {args, bits, grid};
	struct broken broken = {0};
	u32 n;
	if (!taken) {
		if (!key_fits(b, args, nargs) || !flatten_arguments(b->params, args, nargs, leaves, NULL, &n))
			return NULL;
		arguments_bits(&b->variant->image, leaves, bits);
		a.at = leaves;
	}
	for (;;) {
		const struct variant *v = atomic_load_explicit(&b->ways[conversion_of(&broken)], memory_order_acquire);
		if (!v && serves)
			v = serving(b, &broken);
		if (!v)
			return NULL;
		struct broken more = conditions_broken(dev, &v->loaded, &a);
		if (!is_broken(&more))
			return v;
		broken_add(&broken, &more);
	}
}

/* --- errors -------------------------------------------------------------------------------------------------- */

static void explain_step(const struct guard_step *s, const tl_arg *a)
{
	static const tl_arg none = {.kind = TL_ARG_NONE};
	char have[ARGUMENT_WORDS], want[ARGUMENT_WORDS];
	tl_arg constant = none;
	argument_text(a, have);
	memcpy(&constant, &s->head, sizeof s->head);
	if (s->more->constant) {
		constant.u = s->equal;
		if (s->kind == STEP_TEXT)
			constant.s = s->more->text;
		constant.typed = s->flags & 15;
		argument_text(&constant, want);
		failed_more("it must be %s", want);
	} else {
		failed_more("it must be %s%s of type %s", constant.kind == TL_ARG_PTR ? "a pointer" : "a number",
			    constant.kind == TL_ARG_PTR ? " to elements" : "", dtype_name((enum dtype)s->dtype));
		if (s->mask)
			failed_more(" and a multiple of %llu", (unsigned long long)s->mask + 1);
	}
	failed_more("; it is %s", have);
}

tl_status arg_guard_missed(const struct arg_guard *b, struct device *dev, const tl_arg *args, size_t nargs,
			   const u32 *grid)
{
	u64 bits[BOUND_BITS];
	tl_arg leaves[MAX_KERNEL_PARAMS];
	const struct params *ps = b->params;
	u32 n;
	tl_status s = check_arguments(ps, args, nargs, false);
	if (s)
		return s;
	failed(TL_ERR_ARGUMENT, "%s was prepared for other arguments: ", ps->kernel);
	if (!b->by_key && nargs != b->nargs) {
		failed_more("for %u arguments, and %zu were given", b->nargs, nargs);
	} else if (!b->by_key && (n = arg_guard_take(b, args, bits)) < b->nargs) {
		failed_more("of argument %u, '%s', ", n + 1, ps->at[n].name);
		explain_step(&b->steps[n], &args[n]);
	} else if (b->by_key && !key_fits(b, args, nargs)) {
		failed_more("for arguments with other types, constants, block shapes or divisors");
	} else if (flatten_arguments(ps, args, nargs, leaves, NULL, &n)) {
		const struct arguments a = {leaves, bits, grid};
		arguments_bits(&b->variant->image, leaves, bits);
		const struct variant *v = b->variant;
		for (u32 way = 0; way < BINDING_WAYS; way++) { /* take the variant with the fewest assumptions */
			const struct variant *w = atomic_load_explicit(&b->ways[way], memory_order_acquire);
			const struct broken breaks = w ? conditions_broken(dev, &w->loaded, &a) : (struct broken){0};
			v = conversion_of(&breaks) ? w : v;
		}
		failed_more("its code ");
		conditions_explain(dev, &v->loaded, &a);
	}
	failed_more("\n      = hint: tl_prepared_add prepares the handle for these arguments, too");
	return TL_ERR_ARGUMENT;
}
