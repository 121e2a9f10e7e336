/* The parameters of a kernel for a launch, and the argument of each. */
#ifndef TL_IMAGE_PARAMS_H
#define TL_IMAGE_PARAMS_H

#include "frontend/frontend.h"
#include "runtime/image/argument.h"
#include "runtime/image/image.h"
#include "runtime/tl.h"

enum { MAX_KERNEL_PARAMS = 512 };

enum param_default {
	DEFAULT_NONE,
	DEFAULT_VALUE, /* a literal: treated as if it had been passed */
	DEFAULT_TEXT,  /* an expression that the evaluator computes */
};

struct tl_param {
	const char *name;
	bool constant;  /* tl.constexpr */
	bool annotated; /* the source gives `type` */
	/* the type annotation states a divisor: as without an annotation, the value of an argument decides on the
	 * specialisation by a divisor and by equality to 1 */
	bool by_divisor;
	bool exact;     /* of IR text or an image: no specialisation; the declared divisibility must hold */
	bool any_value, any_alignment; /* do_not_specialize; do_not_specialize_on_alignment */
	struct sig_type type;
	u64 dtypes; /* of an annotated pointer: a bit for each allowed element type */
	enum param_default has_default;
	tl_arg value;
	const char *text;
	tl_parameter shown;
};

struct params {
	const char *kernel; /* for messages */
	struct tl_param *at;
	u32 len;
	bool any_value, any_alignment; /* of all parameters */
	/* by leaf of the arguments: the largest divisor that an integer is specialised by; NULL: MOST_DIVISOR */
	const i16 *most;
};

/* The index of the parameter; -1: there is none of this name. */
static inline i32 param_index(const struct params *ps, const char *name)
{
	for (u32 i = 0; name && i < ps->len; i++)
		if (!strcmp(ps->at[i].name, name))
			return (i32)i;
	return -1;
}
/* True if the call has an argument for parameter i. */
static inline bool is_given(const tl_arg *args, size_t nargs, u32 i)
{
	return i < nargs && args[i].kind != TL_ARG_OPEN;
}
/* The argument of parameter i: given, or a literal default; else NULL. */
static inline const tl_arg *argument(const struct params *p, const tl_arg *args, size_t nargs, u32 i)
{
	if (is_given(args, nargs, i))
		return &args[i];
	return p->at[i].has_default == DEFAULT_VALUE ? &p->at[i].value : NULL;
}

#endif
