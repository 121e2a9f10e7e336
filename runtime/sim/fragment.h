/* Matrices in the registers of a warp: where the elements are, how they get out and in, and products.
 *
 * A fragment's layout is linear: the position of an element is the sum of what each bit of the lane, of the element's
 * number within its register and of the register's number contributes. */
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
/* A and B of mma by the bits of their elements, and of wgmma's A; B has a row for each k. */
const struct fragment *fragment_a(int bits);
const struct fragment *fragment_b(int bits);
/* C and D, of wgmma too. */
const struct fragment *fragment_c(int bits);

/* A fragment's positions in a matrix stored row by row: an element is at lane[] + elem[] + reg[]. */
struct fragment_map {
	u32 nregs;
	u16 lane[LANES], elem[4];
	u16 *reg;
};
struct fragment_map fragment_map_of(struct arena *a, const struct fragment *f, u32 nregs, u32 row_length);

/* A type of elements. In matrices they are cells: float, double or i32. */
struct element {
	enum ptx_type type;
	int bits;
	size_t cell; /* bytes */
	i32 least;   /* exponent of a normal float */
	/* `regs`: as many operands as the places have registers. */
	void (*load)(const struct warp *w, const struct operand *regs, const struct fragment_map *map, void *matrix);
	/* From n elements in memory to cells, `stride` cells apart. */
	void (*unpack)(const void *from, u32 n, void *cells, u32 stride);
	void (*store)(struct warp *w, const struct operand *regs, const struct fragment_map *map,
		      const void *matrix); /* accumulators only */
};
/* NULL: not a type of matrix elements. */
const struct element *element_of(enum ptx_type t);

/* D[m][n] += A[m][k]·B[k][n], n a multiple of 8.
 *
 * f32 and f16, as on an H100, to the last bit: products are exact; all addends, D too, are aligned to the largest
 * exponent (of a product: the sum of its factors'), cut off 25 bits below it, and added; of the sum 24 bits are kept,
 * or it is rounded to f16. Coarse, as wgmma of fp8: cut off 13 bits below, and 14 bits are kept. f64: one fma after the
 * other in order of k. Integers wrap, or saturate at the end.
 *
 * For f16 the results are still to be rounded: storing does it, or round_to_f16. */
struct multiplier;
typedef void multiply_fn(const struct multiplier *p, const void *a, const void *b, void *d, u32 m, u32 n, u32 k);
struct multiplier {
	multiply_fn *run;
	const struct element *a, *b, *c;
	int fraction; /* bits below the largest exponent */
	int dropped;  /* of a double's bits, from the sum */
	/* the last bit that is kept says whether any dropped one was set: a conversion to f16 then rounds rightly */
	bool odd;
};
struct multiplier multiplier_of(enum ptx_type a, enum ptx_type b, enum ptx_type c, bool saturates, bool coarse);
void round_to_f16(float *cells, u32 n);

/* Is `o` n registers of `bits` bits, in braces unless it is one alone? A result may be "_". */
bool is_fragment(const struct operand *o, u32 n, int bits, bool is_result);
static inline const struct operand *fragment_regs(const struct operand *o)
{
	return o->kind == O_VECTOR ? o->items : o;
}

bool decode_mma(struct decoder *d);
bool decode_wgmma(struct decoder *d);
/* Notes in k->in_products what a decoded instruction names, if it is a product. */
void wgmma_registers(struct arena *a, struct ptx_kernel *k, const struct instr *i);

#endif
