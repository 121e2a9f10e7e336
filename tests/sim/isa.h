/* The simulator's arithmetic against a GPU's: what isa.c (the program), forms.c and tensor.c (the tables of
 * instructions), operands.c (what they are tried on) and compare.c (what counts as equal) share. */
#ifndef TEST_SIM_ISA_H
#define TEST_SIM_ISA_H

#include "support/arena.h"
#include "runtime/sim/ptx.h"

enum { MAX_SOURCES = 192, MAX_RESULTS = 128, BLOCK = 128, MAX_CASES = 512 };

enum {               /* kinds of sources that are no PTX types; they follow those */
       V_COUNT = 64, /* u32: distances of shifts, positions, mostly below 80 */
       V_NONZERO,    /* an integer, never 0 */
       V_SELECTOR,   /* u32: of prmt */
       V_CLAMP,      /* u32: the last number of shfl */
};

enum values {
	BY_TILE,   /* the next four, in one warp each */
	IN_BINADE, /* magnitudes in [1, 2); random integers */
	SMALL,     /* integers whose sums are exact; integers near overflow */
	SPREAD,    /* many exponents */
	SPECIAL,   /* zeros, subnormals, infinities and NaNs among them */
	WIDE,      /* integers of up to 11 bits */
	IDENTITY,  /* A is 1 where its row, of those of a warp, is k */
	TINY,      /* subnormal products, and nearly */
	HUGE,      /* sums that overflow, and nearly */
	ZEROS,     /* few others */
};

/* How far results may be apart: |got - expected| <= rel * |expected| + abs. */
struct bound {
	double rel, abs;
	double near_abs, near; /* instead of abs for inputs up to `near` */
	double reach;          /* inputs beyond are not compared; 0: all are */
};

struct input {
	enum ptx_type type;
	int kind; /* a type, or V_… */
};

/* A tensor map of the form's memory, the second parameter: cuTensorMapEncodeTiled's arguments. */
struct tensor_spec {
	int type, swizzle, fill;
	u32 rank, offset; /* of the tensor in bytes, from the sources behind the image, or from the results */
	u32 box[5], steps[5];
	u64 sizes[5], strides[5], bytes; /* the stride of each dimension to the next */
	bool to_results;
};

struct form {
	const char *name;    /* the opcode, and operands that are constant */
	const char *ptx;     /* a module with the kernel "k" */
	const char *version; /* of PTX; NULL: 8.4 */
	u64 id;              /* hash of the kernel and its operands */
	u32 ncases;          /* threads */
	u32 nsources, nresults;
	struct input sources[MAX_SOURCES];
	enum ptx_type result; /* PT_PRED: a u32 */
	u32 result_bytes;     /* of a slot, that count */
	bool exact;
	struct bound bound;
	u32 image;       /* so many sources are the contents of shared memory, 1 KB each; they come first */
	bool is_product; /* of matrices: the kinds of its sources are types */
	u32 na, nb;      /* its sources of A and B; C is the last */
	u32 a0, b0;      /* the first of them */
	enum values values;
	const struct tensor_spec *map; /* or NULL */
	u64 *in;                       /* [source][case] */
};

/* Calls `visit` for each form, which lives in `a` until the next. */
typedef void visit_fn(void *context, struct form *f);
void each_form(struct arena *a, visit_fn *visit, void *context);

/* Fills f->in. */
void make_operands(struct arena *a, struct form *f);
u64 random_u64(u64 *state);

/* Is `got` right where the GPU gave `expected`? */
bool same_result(const struct form *f, u32 thread, u64 got, u64 expected);
double float_value(enum ptx_type t, u64 bits);

/* --- tables of forms --------------------------------------------------------------------------------------------- */

struct row {
	const char *pattern, *signature;
	struct bound bound;
	const char *version; /* of PTX; NULL: 8.4 */
};

struct expansion {
	struct arena *arena;
	const struct row *row;
	visit_fn *visit;
	void *context;
	void (*make)(struct expansion *e, const char *name);
};

/* Calls make for each name of each row's pattern: "{add,sub}{,.ftz}.f32" is four. */
void each_of(struct expansion *e, const struct row *rows, u32 n, void (*make)(struct expansion *, const char *));
/* What follows " key=" in a name; NULL: nothing. */
const char *option(const char *name, const char *key);
u32 field_number(const char *name, const char *key, u32 otherwise);
/* A new form of the row. */
struct form *new_form(struct expansion *e, const char *name);
/* The types in an opcode, in order. */
u32 types_of(const char *name, enum ptx_type types[8]);
/* Registers, and %d0: the address of this thread's first slot, %r0: the thread's number in the grid, %r2: in the
 * block. */
void begin_kernel(struct strbuf *out, const struct form *f);
/* Of a source, or (from nsources on) a result: what to add to %d0. */
u32 slot_at(const struct form *f, u32 slot);
void set_sources(struct form *f, u32 first, u32 n, enum ptx_type t);
/* Shared memory `image`, and its contents; %r5 is its address, %r6 that of this thread's 8 bytes of each source. */
void fill_image(struct strbuf *out, const struct form *f);
/* Makes the operands and visits the form. */
void finish_form(struct expansion *e, struct form *f, const struct strbuf *text);

void each_tensor_form(struct expansion *e); /* tensor.c */
void each_bulk_form(struct expansion *e);   /* bulk.c */

#endif
