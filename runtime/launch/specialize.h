/* From the arguments of a launch to the variant of the kernel that serves them: pure functions, no device.
 *
 * Triton's rules, and a little more. A pointer or integer divisible by 16 says so (0 counts), in kernels with dots an
 * integer divisible by 256, a multiple of their tiles' sides, does too, but only where that can change the code
 * (analysis/divisors.h); an integer equal to 1 becomes a compile-time constant, None and jit functions too; floats
 * and bools are never specialised. An annotation fixes the type, and then an integer equal to 1 stays a run-time
 * value; but one in the notation of signatures ("*fp32:16", "i32:1"), which Triton does not read either, is only the
 * type where no arguments give it: for `tlc FILE`. */
#ifndef TL_LAUNCH_SPECIALIZE_H
#define TL_LAUNCH_SPECIALIZE_H

#include "driver/compile.h"
#include "analysis/divisors.h"
#include "runtime/image/params.h"
#include "runtime/tl.h"

enum { MOST_DIVISOR = DIVISOR_TILE };

void params_of_func(struct arena *a, const struct func *f, struct params *out);
void params_of_ir(struct arena *a, const struct kernel *k, struct params *out);
/* The run-time parameters. */
void params_of_image(struct arena *a, const struct image *im, struct params *out);

/* The key of a variant, in words. The first word is the caller's. */
struct key {
	u64 *at;
	u32 len, cap;
	u32 leaves;          /* of the arguments so far */
	bool has_composites; /* among the arguments: slots count their leaves */
	u64 small[128];
};
void key_init(struct key *k, u64 first);
void key_free(struct key *k);
static inline bool key_equals(const struct key *k, const u64 *at, u32 len)
{
	return k->len == len && !memcmp(k->at, at, len * sizeof *at);
}

u64 *key_extend(struct key *k, u32 n);
/* What the first word of each part of a key begins with. */
enum spec_class { SPEC_TYPED, SPEC_ONE, SPEC_NONE, SPEC_CONSTANT, SPEC_DEFAULT, SPEC_TUPLE, SPEC_DESCRIPTOR };
/* A text and, in its first word, `word`. */
void key_add_text(struct key *key, u64 word, const char *s);
/* False when the parameter cannot take the argument, which is no composite. */
bool key_add_leaf(struct key *key, const struct params *ps, const struct tl_param *p, const tl_arg *a);
/* Goes on with a message that names the argument: what it must be and what it is. */
tl_status refuse_more(const struct tl_param *p, const tl_arg *a);

/* What an argument that is no composite is compiled as. */
struct spec {
	enum spec_class class;
	enum dtype dtype;
	i32 divisibility;
};
/* False when the parameter, which is this leaf, cannot take it. */
bool argument_spec(const struct params *ps, const struct tl_param *p, u32 leaf, const tl_arg *a, struct spec *out);
enum arg_constant { ARG_CONSTEXPR = 1, ARG_UNSPECIALIZED = 2 }; /* tl_arg.constant */
/* Is nothing of its value or address compiled in? */
static inline bool takes_any_value(const struct params *ps, const struct tl_param *p, const tl_arg *a)
{
	return ps->any_value || p->any_value || p->exact || a->constant == ARG_UNSPECIALIZED;
}
static inline bool takes_any_address(const struct params *ps, const struct tl_param *p, const tl_arg *a)
{
	return takes_any_value(ps, p, a) || ps->any_alignment || p->any_alignment;
}
/* The most that this leaf, an integer, is specialised by; 1: it is not. */
static inline i32 most_divisor(const struct params *ps, const struct tl_param *p, u32 leaf, const tl_arg *a)
{
	return takes_any_address(ps, p, a) ? 1 : ps->most ? ps->most[leaf] : MOST_DIVISOR;
}
/* The divisor by which an integer is specialised, of 8, 16 and `most`, which is 1, 16 or more; 0: none. */
i32 integer_divisor(i128 v, i32 most);
/* "the integer 5 as i64" */
enum { ARGUMENT_WORDS = 200 };
void argument_text(const tl_arg *a, char *out);

/* Checks the arguments and appends their key. */
tl_status specialize(const struct params *p, const tl_arg *args, size_t nargs, struct key *key);
/* The same where parameters may be open that have no default. */
tl_status specialize_some(const struct params *p, const tl_arg *args, size_t nargs, struct key *key);
/* A literal as an argument, whose text lies in `a`; false: it is none. The other way round: literal_text(). */
bool literal_argument(struct arena *a, const struct expr *x, tl_arg *out);
/* The same as text for the evaluator, p->len specs. Only for arguments that specialize() accepted. */
struct arg_spec *specialize_text(struct arena *a, const struct params *p, const tl_arg *args, size_t nargs);

/* Of an argument that is no composite, and the next leaf. */
struct arg_spec leaf_spec(struct arena *a, const struct params *ps, const struct tl_param *p, const tl_arg *x,
			  u32 *leaf);
#endif
