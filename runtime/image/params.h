/* The parameters of a kernel, as a launch sees them, and the argument of each. */
#ifndef TL_IMAGE_PARAMS_H
#define TL_IMAGE_PARAMS_H

#include "frontend/frontend.h"
#include "runtime/image/argument.h"
#include "runtime/image/image.h"
#include "runtime/tl.h"

enum { MAX_KERNEL_PARAMS = 512 };

enum param_default {
	DEFAULT_NONE,
	DEFAULT_VALUE, /* a literal: as if it had been passed */
	DEFAULT_TEXT,  /* an expression, which the evaluator computes */
};

struct tl_param {
	const char *name;
	bool constant;  /* tl.constexpr */
	bool annotated; /* `type` is given by the source */
	bool by_divisor; /* the annotation names a divisor: arguments decide on divisors and on being 1 */
	bool exact;     /* of IR text or an image: no specialisation; its divisibility must hold */
	bool any_value, any_alignment; /* not to be specialised: by anything; by divisors */
	struct sig_type type;
	u64 dtypes; /* of an annotated pointer: a bit for each element type that it may have */
	enum param_default has_default;
	tl_arg value;
	const char *text;
	tl_parameter shown;
};

struct params {
	const char *kernel; /* for messages */
	struct tl_param *at;
	u32 len;
	bool any_value, any_alignment; /* of all, as of a parameter */
	const i16 *most; /* by leaf of the arguments: what an integer is specialised by at most; NULL: MOST_DIVISOR */
};

/* Has the call an argument for parameter i? */
static inline bool is_given(const tl_arg *args, size_t nargs, u32 i)
{
	return i < nargs && args[i].kind != TL_ARG_OPEN;
}
/* The argument of parameter i: given, or a default that is a literal; else NULL. */
static inline const tl_arg *argument(const struct params *p, const tl_arg *args, size_t nargs, u32 i)
{
	if (is_given(args, nargs, i))
		return &args[i];
	return p->at[i].has_default == DEFAULT_VALUE ? &p->at[i].value : NULL;
}

#endif
