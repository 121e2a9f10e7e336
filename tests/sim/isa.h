/* The simulator's arithmetic against a GPU's: what isa.c (the program), forms.c (the table of instructions), operands.c
 * (what they are tried on) and compare.c (what counts as equal) share. */
#ifndef TEST_SIM_ISA_H
#define TEST_SIM_ISA_H

#include "base/arena.h"
#include "runtime/sim/ptx.h"

enum { MAX_SOURCES = 16, MAX_RESULTS = 8, BLOCK = 128, MAX_CASES = 512 };

enum {               /* kinds of sources that are no PTX types; they follow those */
       V_COUNT = 64, /* u32: distances of shifts, positions, mostly below 80 */
       V_NONZERO,    /* an integer, never 0 */
       V_SELECTOR,   /* u32: of prmt */
       V_CLAMP,      /* u32: the last number of shfl */
};

/* How far results may be apart: |got - expected| <= rel * |expected| + abs. */
struct bound {
	double rel, abs;
	double near_abs, near; /* instead of abs for inputs up to `near` */
	double reach;          /* inputs beyond are not compared; 0: all are */
	bool of_tile;          /* of the largest addend of a matrix product */
};

struct source {
	enum ptx_type type;
	int kind; /* a type, or V_… */
};

struct form {
	const char *name; /* the opcode, and operands that are constant */
	const char *ptx;  /* a module with the kernel "k" */
	u64 id;           /* hash of the kernel and its operands */
	u32 ncases;       /* threads */
	u32 nsources, nresults;
	struct source sources[MAX_SOURCES];
	enum ptx_type result; /* PT_PRED: a u32 */
	u32 result_bytes;     /* of a slot, that count */
	bool exact;
	struct bound bound;
	u32 m, k;   /* of a matrix product: else 0 */
	u32 na, nb; /* its registers of A and B, C is the rest */
	enum ptx_type a, b;
	u64 *in; /* [source][case] */
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

#endif
