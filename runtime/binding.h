/* A binding: what the arguments of a launch must be for a variant of a kernel, one step an argument, found once so that
 * a launch need not specialise again. A step compares an argument and makes the bits of its parameter.
 *
 * An exact binding takes the arguments whose key is the variant's; others, of prepared handles, all that its code is
 * right for: a multiple of 32 where 16 is counted on, any number where nothing is. */
#ifndef TL_BINDING_H
#define TL_BINDING_H

#include "runtime/conditions.h"
#include "runtime/internal.h"

enum step_kind {
	STEP_WORD, /* a pointer or an integer */
	STEP_F32,
	STEP_OTHER,    /* a number that is converted */
	STEP_CONSTANT, /* no parameter */
	STEP_TEXT,     /* a string or the name of a function, no parameter either */
};

enum { BOUND_BITS = MAX_KERNEL_PARAMS + 1 };

struct step {
	u64 head, flags, flags_mask; /* the first word of a tl_arg, and bits of the second */
	u64 mask, equal;             /* bits of its value, which must be so */
	bool plain;                  /* the next four say nothing */
	u64 some;                    /* one of these must be set, or `always` is */
	u64 always;
	u64 not_least, not_count; /* the value is none of so many */
	u64 least, span;          /* the value lies from `least` to `least + span` */
	u64 keep;                 /* bits of an integer that its parameter has */
	const char *text;
	u32 slot; /* MAX_KERNEL_PARAMS, a spare one, for an argument that the code does not take */
	enum step_kind kind;
	enum dtype dtype; /* of the parameter */
};

/* By what the arguments break: no tensor maps, any size, overlaps. */
enum { BINDING_WAYS = 12 };
static inline u32 way_of(const struct broken *b)
{
	return (u32)b->maps | (u32)b->sizes << 1 | (u32)b->alias << 2;
}

struct binding {
	_Atomic(struct binding *) next; /* of a handle */
	struct options options;
	u32 nargs;
	u32 divisors; /* how much it counts on */
	bool by_key;  /* there are no steps: the arguments' key is made and compared */
	const struct params *params;
	const struct variant *variant;                      /* way 0 */
	_Atomic(const struct variant *) ways[BINDING_WAYS]; /* NULL: not known */
	struct step steps[];
};

/* For the arguments, which the variant was made for. NULL: out of memory. */
struct binding *binding_new(const struct variant *v, const struct options *o, const tl_arg *args, size_t nargs,
			    bool exact);
void binding_free(struct binding *b);
/* Binds a variant that the same arguments take when they break these conditions. */
void binding_add(struct binding *b, u32 way, const struct variant *v);
/* Do the arguments fit? Not of conditions. Then their bits are in `bits`. */
bool binding_takes(const struct binding *b, const tl_arg *args, size_t nargs, u64 *bits);
/* The variant that the arguments take, and their bits; NULL: they do not fit, or it is not bound. `serves`: another
 * that is right for them will do. */
const struct variant *binding_find(const struct binding *b, struct device *dev, const tl_arg *args, size_t nargs,
				   const u32 *grid, bool serves, u64 *bits);
/* Why there was none: which argument does not fit, or which condition does not hold. */
tl_status binding_missed(const struct binding *b, struct device *dev, const tl_arg *args, size_t nargs,
			 const u32 *grid);

#endif
