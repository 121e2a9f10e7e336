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
 * f32: products are exact (inputs have 11 bits at most), summed in order of k, in f32 to nearest; D is added last. An H100's
 * mma aligns all addends, D too, to the largest exponent (of a product: the sum of its factors'), keeps two bits below the
 * last of 24, and cuts off the rest, as of the sum in the end: the results differ by an ulp or two of the largest addend or
 * of the result. With fp8 inputs wgmma keeps fewer bits still. f64: one fma after the other in order of k. Integers wrap, or
 * saturate at the end. */
typedef void multiply_fn(const void *a, const void *b, void *d, u32 m, u32 n, u32 k);
multiply_fn *multiply_of(enum ptx_type accumulator, bool saturates);

/* Is `o` n registers of `bits` bits, in braces unless it is one alone? A result may be "_". */
bool is_fragment(const struct operand *o, u32 n, int bits, bool is_result);
static inline const struct operand *fragment_regs(const struct operand *o)
{
	return o->kind == O_VECTOR ? o->items : o;
}

bool decode_mma(struct decoder *d);
bool decode_wgmma(struct decoder *d);

#endif
