/* The specialisation of a kernel for the arguments of a launch: pure functions, independent of the device.
 *
 * The rules are Triton's, with additions. A pointer or an integer divisible by 16 (0 counts) is specialised. An integer
 * divisible by 256, a multiple of the sides of tiles, is specialised in kernels with dots. Divisors count only where
 * they can change the code (analysis/divisors.h). An integer equal to 1 is a compile-time constant, and so are None and
 * jit functions. Floats and bools are never specialised. An annotation fixes the type, and then an integer equal to 1
 * remains a run-time value. An annotation in the notation of signatures ("*fp32:16", "i32:1"), which Triton does not
 * read either, gives the type for launches, and the divisor only for `tlc FILE`. */
#ifndef TL_LAUNCH_SPECIALIZE_H
#define TL_LAUNCH_SPECIALIZE_H

#include "driver/compile.h"
#include "analysis/divisors.h"
#include "runtime/image/key.h"
#include "runtime/image/params.h"
#include "runtime/tl.h"

enum { MOST_DIVISOR = DIVISOR_TILE };

void params_of_func(struct arena *a, const struct func *f, struct params *out);
void params_of_ir(struct arena *a, const struct kernel *k, struct params *out);
/* The run-time parameters of an image. */
void params_of_image(struct arena *a, const struct image *im, struct params *out);

/* The kind of each part of a key, in the part's first word. */
enum spec_class { SPEC_TYPED, SPEC_ONE, SPEC_NONE, SPEC_CONSTANT, SPEC_DEFAULT, SPEC_TUPLE, SPEC_DESCRIPTOR };
/* False: the parameter cannot take the argument, which is not composite. */
bool key_add_leaf(struct key *key, const struct params *ps, const struct tl_param *p, const tl_arg *a);
/* Appends to a message that names the argument: the required value and the given value. */
tl_status refuse_more(const struct tl_param *p, const tl_arg *a);

/* The specialisation of an argument that is not composite. */
struct spec {
	enum spec_class class;
	enum dtype dtype;
	i32 divisibility;
};
/* False: the parameter, with this leaf, cannot take the argument. */
bool argument_spec(const struct params *ps, const struct tl_param *p, u32 leaf, const tl_arg *a, struct spec *out);
enum arg_constant { ARG_CONSTEXPR = 1, ARG_UNSPECIALIZED = 2 }; /* tl_arg.constant */
/* True if the code must not depend on the argument's value or address. */
static inline bool takes_any_value(const struct params *ps, const struct tl_param *p, const tl_arg *a)
{
	return ps->any_value || p->any_value || p->exact || a->constant == ARG_UNSPECIALIZED;
}
static inline bool takes_any_address(const struct params *ps, const struct tl_param *p, const tl_arg *a)
{
	return takes_any_value(ps, p, a) || ps->any_alignment || p->any_alignment;
}
/* The largest divisor by which this leaf, an integer, is specialised; 1: none. */
static inline i32 most_divisor(const struct params *ps, const struct tl_param *p, u32 leaf, const tl_arg *a)
{
	return takes_any_address(ps, p, a) ? 1 : ps->most ? ps->most[leaf] : MOST_DIVISOR;
}
/* The divisor for an integer's specialisation: 8, 16 or `most`, which is 1, 16 or more; 0: none. */
i32 integer_divisor(i128 v, i32 most);
/* "the integer 5 as i64" */
enum { ARGUMENT_WORDS = 200 };
void argument_text(const tl_arg *a, char *out);

/* Checks the arguments and appends their key. */
tl_status specialize(const struct params *p, const tl_arg *args, size_t nargs, struct key *key);
/* Checks the arguments only. `some`: parameters without a default may be open. */
tl_status check_arguments(const struct params *p, const tl_arg *args, size_t nargs, bool some);
/* A literal as an argument, whose text belongs to `a`; false: it is not a literal. The inverse is literal_text(). */
bool literal_argument(struct arena *a, const struct expr *x, tl_arg *out);
/* A value in the notation of literal_text(): also a dtype, a float that is not finite, and the name of a function.
 * Texts of the argument are in `a`. False: it is not a value. */
bool argument_of_text(struct arena *a, const char *text, tl_arg *out);
/* The arguments for the evaluator, p->len specs. Only for arguments that specialize() has accepted. */
struct arg_spec *specialize_text(struct arena *a, const struct params *p, const tl_arg *args, size_t nargs);

/* The evaluator's argument for an argument that is not composite. *leaf: its number, then the next leaf's number. */
struct arg_spec leaf_spec(struct arena *a, const struct params *ps, const struct tl_param *p, const tl_arg *x,
			  u32 *leaf);
#endif
