/* A binding: what the arguments of a launch must be for a variant of a kernel, one step an argument, found once so that
 * a launch need not specialise again. A step compares an argument and makes the bits of its parameter.
 *
 * An exact binding takes the arguments whose key is the variant's; others, of prepared handles, all that its code is
 * right for: a multiple of 32 where 16 is counted on, any number where nothing is. */
#ifndef TL_LAUNCH_ARGUMENT_GUARD_H
#define TL_LAUNCH_ARGUMENT_GUARD_H

#include "runtime/device/conditions.h"
#include "runtime/api/objects.h"

enum guard_step_kind {
	STEP_WORD, /* a pointer or an integer; or a constant, which has no parameter */
	STEP_PART, /* an integer, not all of them: see `some` and `but_one` */
	STEP_F32,
	STEP_RARE, /* a number that `more` says more of, or that is converted */
	STEP_TEXT, /* a string or the name of a function, no parameter either */
};

enum { BOUND_BITS = MAX_KERNEL_PARAMS + 1 };

/* What launches seldom look at. */
struct step_more {
	u64 not_least, not_count; /* the value is none of so many */
	const char *text;
	bool converted, constant;
};

/* One cache line. */
struct guard_step {
	_Alignas(64) u64 head; /* the first word of a tl_arg */
	u64 mask, equal;       /* bits of its value, which must be so */
	u64 least, span;       /* the value lies from `least` to `least + span` */
	u64 keep;              /* bits of a word that its parameter has */
	const struct step_more *more;
	u16 slot;             /* MAX_KERNEL_PARAMS, a spare one, for an argument that the code does not take */
	u8 flags, flags_mask; /* bits of the second word */
	u8 some;              /* one of these bits of the value must be set; 0: none need be */
	bool but_one;         /* the value is not 1 */
	u8 kind;              /* enum guard_step_kind */
	u8 dtype;             /* enum dtype, of the parameter */
};
_Static_assert(sizeof(struct guard_step) == 64,
	       "a step is read at each launch, when other code has been in the caches");

/* Two arguments, pointers that must not overlap. */
struct apart {
	u16 a, b;
	bool equal_is_fine;
};

/* An argument, a pointer with at most so many bytes behind it. */
struct few {
	u64 most;
	u32 arg;
};

/* Bits of a slot, which are at most so much, without these. */
struct bound {
	u64 most, mask;
	u32 slot;
};

/* By what the arguments break: tensor maps, sizes, overlaps. */
enum { BINDING_WAYS = 24 };
static inline u32 conversion_of(const struct broken *b)
{
	return (u32)b->maps | (u32)b->sizes << 1 | (u32)b->alias << 3;
}

struct arg_guard {
	_Atomic(struct arg_guard *) next; /* of a handle */
	const struct variant *variant;  /* way 0 */
	u32 nargs;
	bool by_key; /* there are no steps: the arguments' key is made and compared */
	bool plain;  /* these are all that the variant counts on */
	u32 napart, nbounds, nfew;
	struct apart *apart;
	struct few *few;
	struct bound *bounds;
	struct options options;
	u32 divisors; /* how much it counts on */
	const struct params *params;
	struct step_more *more;
	_Atomic(const struct variant *) ways[BINDING_WAYS]; /* NULL: not known */
	struct guard_step steps[];
};

/* For the arguments, which the variant was made for. NULL: out of memory. */
struct arg_guard *arg_guard_new(const struct variant *v, const struct options *o, const tl_arg *args, size_t nargs,
			    bool exact);
void arg_guard_free(struct arg_guard *b);
/* Binds a variant that the same arguments take when they break these conditions. */
void arg_guard_add(struct arg_guard *b, u32 way, const struct variant *v);
/* Do the arguments fit? Not of conditions. Then their bits are in `bits`. */
bool arg_guard_takes(const struct arg_guard *b, const tl_arg *args, size_t nargs, u64 *bits);

/* --- part of every launch ---------------------------------------------------------------------------------------- */

static inline u64 argument_word(const tl_arg *a, size_t i)
{
	u64 w;
	memcpy(&w, (const char *)a + i * sizeof w, sizeof w);
	return w;
}

/* The rest of arg_guard_step. */
bool arg_guard_step_rare(const struct guard_step *s, const tl_arg *a, u64 *bits);

static inline bool arg_guard_step(const struct guard_step *s, const tl_arg *a, u64 *bits)
{
	u64 value = argument_word(a, 2);
	u8 flags = (u8)((u8)argument_word(a, 1) ^ s->flags) & s->flags_mask;
	if ((argument_word(a, 0) ^ s->head) | ((value & s->mask) ^ s->equal) | flags || value - s->least > s->span)
		return false;
	if (s->kind > STEP_PART)
		return arg_guard_step_rare(s, a, bits);
	bits[s->slot] = value & s->keep;
	return s->kind == STEP_WORD || ((!s->some || value & s->some) && !(s->but_one & (value == 1)));
}

/* The first argument that does not fit; b->nargs: all do. */
static inline u32 arg_guard_take(const struct arg_guard *b, const tl_arg *args, u64 *bits)
{
	const struct guard_step *s = b->steps, *end = s + b->nargs;
	for (; s < end && arg_guard_step(s, args, bits); s++)
		args++;
	return (u32)(s - b->steps);
}

/* Does all hold that a plain one counts on? Also false where pointers do not say how much memory they mean. */
static inline bool arg_guard_holds(const struct arg_guard *b, const tl_arg *args, const u64 *bits)
{
	for (const struct bound *x = b->bounds, *end = x + b->nbounds; x < end; x++)
		if (bits[x->slot] > x->most || bits[x->slot] & x->mask)
			return false;
	for (const struct few *x = b->few, *end = x + b->nfew; x < end; x++)
		if (args[x->arg].bytes - 1ULL >= x->most)
			return false;
	for (const struct apart *p = b->apart, *end = p + b->napart; p < end; p++) {
		const tl_arg *x = &args[p->a], *y = &args[p->b];
		u64 from_x = (u64)y->u - x->u, from_y = x->u - y->u;
		if ((from_x <= x->bytes - 1ULL || from_y <= y->bytes - 1ULL) && (from_x || !p->equal_is_fine))
			return false;
	}
	return true;
}

/* The rest of arg_guard_find; `taken`: the arguments fit. */
const struct variant *arg_guard_choose(const struct arg_guard *b, struct device *dev, const tl_arg *args, size_t nargs,
				     const u32 *grid, bool serves, bool taken, u64 *bits);

/* The variant that the arguments take, and their bits; NULL: they do not fit, or it is not bound. `serves`: another
 * that is right for them will do. */
static inline const struct variant *arg_guard_find(const struct arg_guard *b, struct device *dev, const tl_arg *args,
						 size_t nargs, const u32 *grid, bool serves, u64 *bits)
{
	bool taken = !b->by_key && nargs == b->nargs && arg_guard_take(b, args, bits) == b->nargs;
	if (taken && b->plain && arg_guard_holds(b, args, bits))
		return b->variant;
	return taken || b->by_key ? arg_guard_choose(b, dev, args, nargs, grid, serves, taken, bits) : NULL;
}

/* Why there was none: which argument does not fit, or which condition does not hold. */
tl_status arg_guard_missed(const struct arg_guard *b, struct device *dev, const tl_arg *args, size_t nargs,
			 const u32 *grid);

#endif
