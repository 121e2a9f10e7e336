#include "runtime/sim/fragment.h"

#include <math.h>

#include "ir/scalar_math.h"

/* --- layouts (PTX ISA, "Matrix Fragments for mma") --------------------------------------------------------------- */

static const struct fragment a_layouts[] = {
	{.lane = {{0, 4}, {0, 8}, {1, 0}, {2, 0}, {4, 0}}, .elem = {{0, 1}, {0, 2}}, .reg = {{8, 0}, {0, 16}}}, /* 8 bits */
	{.lane = {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}}, .elem = {{0, 1}}, .reg = {{8, 0}, {0, 8}}},          /* 16 */
	{.lane = {{0, 1}, {0, 2}, {1, 0}, {2, 0}, {4, 0}}, .reg = {{8, 0}, {0, 4}, {0, 8}}},                    /* 32, 64 */
};
static const struct fragment b_layouts[] = {
	{.lane = {{4, 0}, {8, 0}, {0, 1}, {0, 2}, {0, 4}}, .elem = {{1, 0}, {2, 0}}, .reg = {{16, 0}}},
	{.lane = {{2, 0}, {4, 0}, {0, 1}, {0, 2}, {0, 4}}, .elem = {{1, 0}}, .reg = {{8, 0}}},
	{.lane = {{1, 0}, {2, 0}, {0, 1}, {0, 2}, {0, 4}}, .reg = {{4, 0}, {8, 0}}},
};
static const struct fragment c_layouts[] = {
	{.lane = {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}},
	 .elem = {{0, 1}},
	 .reg = {{8, 0}, {0, 8}, {0, 16}, {0, 32}, {0, 64}, {0, 128}}},
	{.lane = {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}}, .reg = {{0, 1}, {8, 0}, {0, 8}, {0, 16}, {0, 32}, {0, 64}, {0, 128}}},
};

static u32 by_bits(int bits)
{
	return bits == 8 ? 0 : bits == 16 ? 1 : 2;
}

const struct fragment *fragment_a(int bits)
{
	return &a_layouts[by_bits(bits)];
}

const struct fragment *fragment_b(int bits)
{
	return &b_layouts[by_bits(bits)];
}

const struct fragment *fragment_c(int bits)
{
	return &c_layouts[bits == 16 ? 0 : 1];
}

static u16 place(const struct coord *basis, u32 index, u32 row_length)
{
	u32 at = 0;
	for (u32 bit = 0; index >> bit; bit++)
		if (index >> bit & 1)
			at += basis[bit].row * row_length + basis[bit].col;
	return (u16)at;
}

struct fragment_map fragment_map_of(struct arena *a, const struct fragment *f, u32 nregs, u32 row_length)
{
	struct fragment_map map = {.nregs = nregs, .reg = arena_array(a, u16, nregs)};
	for (u32 l = 0; l < LANES; l++)
		map.lane[l] = place(f->lane, l, row_length);
	for (u32 e = 0; e < ARRAY_LEN(map.elem); e++)
		map.elem[e] = place(f->elem, e, row_length);
	for (u32 r = 0; r < nregs; r++)
		map.reg[r] = place(f->reg, r, row_length);
	return map;
}

bool is_fragment(const struct operand *o, u32 n, int bits, bool is_result)
{
	const struct operand *regs = fragment_regs(o);
	if ((o->kind == O_VECTOR ? o->nitems : 1) != n)
		return false;
	for (u32 r = 0; r < n; r++)
		if (regs[r].kind == O_REG ? ptx_bits(regs[r].reg_type) != bits : !is_result || regs[r].kind != O_SINK)
			return false;
	return true;
}

/* --- elements ---------------------------------------------------------------------------------------------------- */

#define ELEMENT(name, raw, word, cell_type, value)                                                                               \
	static void load_##name(const struct warp *w, const struct operand *regs, const struct fragment_map *map, void *matrix)  \
	{                                                                                                                        \
		enum { PER_REG = sizeof(word) < 4 ? 4 / sizeof(word) : 1 };                                                      \
		for (u32 r = 0; r < map->nregs; r++) {                                                                           \
			const u64 *bits = &w->regs[(size_t)regs[r].reg * LANES];                                                 \
			raw v[LANES];                                                                                            \
			for (u32 l = 0; l < LANES; l++)                                                                          \
				v[l] = (raw)bits[l];                                                                             \
			for (u32 e = 0; e < PER_REG; e++) {                                                                      \
				cell_type cells[LANES], *to = (cell_type *)matrix + map->reg[r] + map->elem[e];                  \
				for (u32 l = 0; l < LANES; l++) {                                                                \
					word x = (word)(v[l] >> e * 8 * sizeof(word));                                           \
					cells[l] = (value);                                                                      \
				}                                                                                                \
				for (u32 l = 0; l < LANES; l++)                                                                  \
					to[map->lane[l]] = cells[l];                                                             \
			}                                                                                                        \
		}                                                                                                                \
	}                                                                                                                        \
	static void unpack_##name(const void *from, u32 n, void *cells, u32 stride)                                              \
	{                                                                                                                        \
		for (u32 k = 0; k < n; k++) {                                                                                    \
			word x;                                                                                                  \
			memcpy(&x, (const char *)from + k * sizeof x, sizeof x);                                                 \
			((cell_type *)cells)[k * stride] = (value);                                                              \
		}                                                                                                                \
	}

ELEMENT(f32, u32, u32, float, fp_f32_bits(x))
ELEMENT(tf32, u32, u32, float, fp_f32_bits(x & ~(u32)0x1FFF))
ELEMENT(f16, u32, u16, float, fp_from_f16(x))
ELEMENT(bf16, u32, u16, float, fp_from_bf16(x))
ELEMENT(e4m3, u32, u8, float, fp_from_e4m3(x))
ELEMENT(e5m2, u32, u8, float, fp_from_e5m2(x))
ELEMENT(f64, u64, u64, double, fp_f64_bits(x))
ELEMENT(s8, u32, u8, i32, (i8)x)
ELEMENT(u8, u32, u8, i32, x)
ELEMENT(s32, u32, u32, i32, (i32)x)

#define ACCUMULATOR(name, word, cell_type, bits_of)                                                                              \
	static void store_##name(struct warp *w, const struct operand *regs, const struct fragment_map *map, const void *matrix) \
	{                                                                                                                        \
		enum { PER_REG = sizeof(word) < 4 ? 4 / sizeof(word) : 1 };                                                      \
		for (u32 r = 0; r < map->nregs; r++) {                                                                           \
			if (regs[r].kind != O_REG)                                                                               \
				continue;                                                                                        \
			u64 v[LANES] = {0};                                                                                      \
			for (u32 e = 0; e < PER_REG; e++) {                                                                      \
				const cell_type *from = (const cell_type *)matrix + map->reg[r] + map->elem[e];                  \
				for (u32 l = 0; l < LANES; l++) {                                                                \
					cell_type x = from[map->lane[l]];                                                        \
					v[l] |= (u64)(word)(bits_of) << e * 8 * sizeof(word);                                    \
				}                                                                                                \
			}                                                                                                        \
			memcpy(&w->regs[(size_t)regs[r].reg * LANES], v, sizeof v);                                              \
		}                                                                                                                \
	}

ACCUMULATOR(f32, u32, float, x != x ? 0x7FFFFFFF : fp_bits_f32(x))
ACCUMULATOR(f16, u16, float, fp_to_f16(x))
ACCUMULATOR(f64, u64, double, fp_bits_f64(x)) /* a NaN that came in stays, as with scalars; a new one is that of x86 */
ACCUMULATOR(s32, u32, i32, x)

const struct element *element_of(enum ptx_type t)
{
	static const struct element elements[] = {
		{PT_F32, 32, 4, load_f32, unpack_f32, store_f32}, {PT_TF32, 32, 4, load_tf32, unpack_tf32, NULL},
		{PT_F16, 16, 4, load_f16, unpack_f16, store_f16}, {PT_BF16, 16, 4, load_bf16, unpack_bf16, NULL},
		{PT_E4M3, 8, 4, load_e4m3, unpack_e4m3, NULL},    {PT_E5M2, 8, 4, load_e5m2, unpack_e5m2, NULL},
		{PT_F64, 64, 8, load_f64, unpack_f64, store_f64}, {PT_S8, 8, 4, load_s8, unpack_s8, NULL},
		{PT_U8, 8, 4, load_u8, unpack_u8, NULL},          {PT_S32, 32, 4, load_s32, unpack_s32, store_s32},
	};
	for (u32 k = 0; k < ARRAY_LEN(elements); k++)
		if (elements[k].type == t)
			return &elements[k];
	return NULL;
}

/* --- products ---------------------------------------------------------------------------------------------------- */

/* Eight columns of a few rows at a time; explicit vectors, for compilers like to vectorise the loop over k instead. */
enum { STRIP = 8, ROWS = 4 };
typedef float f32_strip __attribute__((vector_size(STRIP * 4), aligned(4), may_alias));
typedef i32 i32_strip __attribute__((vector_size(STRIP * 4), aligned(4), may_alias));

static inline i32 wrapping_add(i32 x, i32 y)
{
	return (i32)((u32)x + (u32)y);
}

static inline i32 saturating_add(i32 x, i32 y)
{
	i64 sum = (i64)x + y;
	return sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : (i32)sum;
}

static inline float float_add(float x, float y)
{
	return x + y;
}

#define MULTIPLY(name, attributes, cell_type, strip, add)                                                                        \
	attributes static void name(const void *a, const void *b, void *d, u32 m, u32 n, u32 k)                                  \
	{                                                                                                                        \
		for (u32 row = 0; row < m; row += ROWS)                                                                          \
			for (u32 col = 0; col < n; col += STRIP) {                                                               \
				const cell_type *x = (const cell_type *)a + row * k, *y = (const cell_type *)b + col;            \
				strip sum[ROWS] = {0};                                                                           \
				for (u32 j = 0; j < k; j++)                                                                      \
					for (u32 r = 0; r < ROWS; r++)                                                           \
						sum[r] += x[r * k + j] * *(const strip *)(y + j * n);                            \
				for (u32 r = 0; r < ROWS; r++)                                                                   \
					for (u32 c = 0; c < STRIP; c++) {                                                        \
						cell_type *to = (cell_type *)d + (row + r) * n + col + c;                        \
						*to = add(*to, sum[r][c]);                                                       \
					}                                                                                        \
			}                                                                                                        \
	}

#define MULTIPLY_F64(name, attributes)                                                                                           \
	attributes static void name(const void *a, const void *b, void *d, u32 m, u32 n, u32 k)                                  \
	{                                                                                                                        \
		for (u32 row = 0; row < m; row++)                                                                                \
			for (u32 j = 0; j < k; j++) {                                                                            \
				const double *y = (const double *)b + j * n;                                                     \
				double x = ((const double *)a)[row * k + j], *to = (double *)d + row * n;                        \
				for (u32 c = 0; c < n; c++)                                                                      \
					to[c] = fma(x, y[c], to[c]);                                                             \
			}                                                                                                        \
	}

MULTIPLY(multiply_s32, , i32, i32_strip, wrapping_add)
MULTIPLY(multiply_s32_sat, , i32, i32_strip, saturating_add)
MULTIPLY(multiply_f32, , float, f32_strip, float_add)
MULTIPLY_F64(multiply_f64, )
#ifdef __x86_64__
/* The same results. */
#define WIDE __attribute__((target("avx2,fma")))
MULTIPLY(multiply_s32_wide, WIDE, i32, i32_strip, wrapping_add)
MULTIPLY(multiply_f32_wide, WIDE, float, f32_strip, float_add)
MULTIPLY_F64(multiply_f64_wide, WIDE)
#endif

multiply_fn *multiply_of(enum ptx_type accumulator, bool saturates)
{
	if (saturates)
		return multiply_s32_sat;
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		return accumulator == PT_S32 ? multiply_s32_wide : accumulator == PT_F64 ? multiply_f64_wide : multiply_f32_wide;
#endif
	return accumulator == PT_S32 ? multiply_s32 : accumulator == PT_F64 ? multiply_f64 : multiply_f32;
}
