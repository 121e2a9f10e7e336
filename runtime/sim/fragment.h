/* Matrix fragments in the registers of a warp: layouts, conversion of elements, and matrix multiplication.
 *
 * A fragment layout is linear: the position of an element is the sum of the contributions of each bit of the lane, of
 * the element index within a register, and of the register index. */
#ifndef TL_SIM_FRAGMENT_H
#define TL_SIM_FRAGMENT_H

#include "runtime/sim/sim.h"

enum { MAX_FRAGMENT_REGS = 128 };

struct coord {
	u8 row, col;
};
struct fragment {
	struct coord lane[5], elem[2], reg[7];
};
/* Layouts of A and B of mma by the bits of an element, also of A of wgmma; B has a row for each k. */
const struct fragment *fragment_a(int bits);
const struct fragment *fragment_b(int bits);
/* Layout of C and D, also of wgmma. */
const struct fragment *fragment_c(int bits);

/* Positions of a fragment in a row-major matrix: an element is at index lane[] + elem[] + reg[]. */
struct fragment_map {
	u32 nregs;
	u16 lane[LANES], elem[4];
	u16 *reg;
};
struct fragment_map fragment_map_of(struct arena *a, const struct fragment *f, u32 nregs, u32 row_length);

/* An element type. In a host matrix an element is a cell: a float, double or i32. */
struct element {
	enum ptx_type type;
	int bits;
	size_t cell; /* bytes */
	i32 least;   /* least exponent of a normal number */
	/* Reads a fragment; `regs` has map->nregs operands. */
	void (*load)(const struct warp *w, const struct operand *regs, const struct fragment_map *map, void *matrix);
	/* Converts n elements in memory to cells, `stride` cells apart. */
	void (*unpack)(const void *from, u32 n, void *cells, u32 stride);
	void (*store)(struct warp *w, const struct operand *regs, const struct fragment_map *map,
		      const void *matrix); /* accumulators only */
};
/* NULL if `t` is not a type of matrix elements. */
const struct element *element_of(enum ptx_type t);

/* D[m][n] += A[m][k]·B[k][n], n a multiple of 8.
 *
 * f32 and f16 accumulation matches an H100 bit for bit. Products are exact. All addends, including D, are aligned to
 * the largest exponent (of a product: the sum of the exponents of its factors), truncated 25 bits below it, and added.
 * 24 bits of the sum are kept, or it is rounded to f16. Coarse, as in wgmma of fp8: truncation 13 bits below, and 14
 * bits kept. f64: one fma after another in order of k. Integers wrap, or saturate at the end.
 *
 * The results for f16 are not rounded yet: storing them or round_to_f16 rounds. */
struct multiplier;
typedef void multiply_fn(const struct multiplier *p, const void *a, const void *b, void *d, u32 m, u32 n, u32 k);
struct multiplier {
	multiply_fn *run;
	const struct element *a, *b, *c;
	int fraction; /* bits below the largest exponent */
	int dropped;  /* low bits of a double that are dropped from the sum */
	/* the last kept bit is set if any dropped bit was set, so that a conversion to f16 rounds correctly */
	bool odd;
};
struct multiplier multiplier_of(enum ptx_type a, enum ptx_type b, enum ptx_type c, bool saturates, bool coarse);
void round_to_f16(float *cells, u32 n);

/* True if `o` has n registers of `bits` bits, in braces if n > 1. A result may be "_". */
bool is_fragment(const struct operand *o, u32 n, int bits, bool is_result);

#endif
