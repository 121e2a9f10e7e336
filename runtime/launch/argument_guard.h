/* An argument guard: the checks that the arguments of a launch must pass for a variant of a kernel. It is made once, so
 * that a launch need not specialise again. It has a step for each argument, which compares the argument and makes its
 * parameter's bits.
 *
 * An exact guard accepts the arguments whose key is the variant's key. Guards of prepared handles accept all arguments
 * for which the code is correct: a multiple of 32 where the code assumes 16, any number where it assumes nothing. */
#ifndef TL_LAUNCH_ARGUMENT_GUARD_H
#define TL_LAUNCH_ARGUMENT_GUARD_H

#include "runtime/device/conditions.h"
#include "runtime/api/objects.h"

enum guard_step_kind {
	STEP_WORD, /* a pointer or an integer; or a constant, which has no parameter */
	STEP_PART, /* an integer with further tests: see `some` and `but_one` */
	STEP_F32,
	STEP_RARE, /* a number with tests in `more`, or that is converted */
	STEP_TEXT, /* a string or the name of a function, which has no parameter */
};

enum { BOUND_BITS = MAX_KERNEL_PARAMS + 1 };

/* Data that launches seldom need. */
struct step_more {
	u64 not_least, not_count; /* the value must not lie in this range */
	const char *text;
	bool converted, constant;
};

/* One cache line. */
struct guard_step {
	_Alignas(64) u64 head; /* the first word of a tl_arg */
	u64 mask, equal;       /* the masked bits of the value must be equal to `equal` */
	u64 least, span;       /* the value must lie in `least` to `least + span` */
	u64 keep;              /* mask of the bits that the parameter has */
	const struct step_more *more;
	u16 slot;             /* MAX_KERNEL_PARAMS, an unused slot, if the argument has no parameter */
	u8 flags, flags_mask; /* bits of the second word */
	u8 some;              /* one of these bits of the value must be set; 0: no test */
	bool but_one;         /* the value must not be 1 */
	u8 kind;              /* enum guard_step_kind */
	u8 dtype;             /* enum dtype, of the parameter */
};
_Static_assert(sizeof(struct guard_step) == 64,
	       "a step is read at each launch, when other code has been in the caches");

/* Variants are indexed by the conditions that the arguments break: tensor maps, sizes, overlaps. */
enum { BINDING_WAYS = 24 };
static inline u32 conversion_of(const struct broken *b)
{
	return (u32)b->maps | (u32)b->sizes << 1 | (u32)b->alias << 3;
}

struct arg_guard {
	_Atomic(struct arg_guard *) next; /* of a handle */
	const struct variant *variant;  /* that of ways[0]: all conditions hold */
	u32 nargs;
	bool by_key; /* there are no steps: compares the arguments' key */
	struct options options;
	u32 divisors; /* sum of the logarithms of the divisors that the code assumes */
	const struct params *params;
	struct step_more *more;
	_Atomic(const struct variant *) ways[BINDING_WAYS]; /* by conversion_of; NULL: unknown */
	struct guard_step steps[];
};

/* A guard for the arguments that the variant was made for. NULL: out of memory. */
struct arg_guard *arg_guard_new(const struct variant *v, const struct options *o, const tl_arg *args, size_t nargs,
			    bool exact);
void arg_guard_free(struct arg_guard *b);
/* Adds the variant for arguments that pass the guard and break these conditions. */
void arg_guard_add(struct arg_guard *b, u32 way, const struct variant *v);
/* True if the arguments pass the guard; conditions are not checked. Then `bits` has their bits. */
bool arg_guard_takes(const struct arg_guard *b, const tl_arg *args, size_t nargs, u64 *bits);

/* --- fast path of every launch --------------------------------------------------------------------------------- */

static inline u64 argument_word(const tl_arg *a, size_t i)
{
	u64 w;
	memcpy(&w, (const char *)a + i * sizeof w, sizeof w);
	return w;
}

/* The slow part of arg_guard_step. */
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

/* The index of the first argument that does not pass; b->nargs: all pass. */
static inline u32 arg_guard_take(const struct arg_guard *b, const tl_arg *args, u64 *bits)
{
	const struct guard_step *s = b->steps, *end = s + b->nargs;
	for (; s < end && arg_guard_step(s, args, bits); s++)
		args++;
	return (u32)(s - b->steps);
}

/* The slow part of arg_guard_find; `taken`: the arguments pass the steps. */
const struct variant *arg_guard_choose(const struct arg_guard *b, struct device *dev, const tl_arg *args, size_t nargs,
				     const u32 *grid, bool serves, bool taken, u64 *bits);

/* The variant for the arguments, and their bits; NULL: the arguments do not pass, or there is no variant. `serves`:
 * accepts another variant that is correct for the arguments. */
static inline const struct variant *arg_guard_find(const struct arg_guard *b, struct device *dev, const tl_arg *args,
						 size_t nargs, const u32 *grid, bool serves, u64 *bits)
{
	bool taken = !b->by_key && nargs == b->nargs && arg_guard_take(b, args, bits) == b->nargs;
	if (taken && conditions_shown(&b->variant->loaded, args, bits))
		return b->variant;
	return taken || b->by_key ? arg_guard_choose(b, dev, args, nargs, grid, serves, taken, bits) : NULL;
}

/* The error of arguments for which there was no variant: the argument that does not pass, or the condition that does
 * not hold. */
tl_status arg_guard_missed(const struct arg_guard *b, struct device *dev, const tl_arg *args, size_t nargs,
			 const u32 *grid);

#endif
