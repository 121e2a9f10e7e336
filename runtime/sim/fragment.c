#include "runtime/sim/fragment.h"

#include <math.h>
#include <string.h>

#include "ir/scalar_math.h"

/* --- layouts (PTX ISA, "Matrix Fragments for mma") --------------------------------------------------------------- */

static const struct fragment a_layouts[] = {
	/* 8 bits */
	{.lane = {{0, 4}, {0, 8}, {1, 0}, {2, 0}, {4, 0}}, .elem = {{0, 1}, {0, 2}}, .reg = {{8, 0}, {0, 16}}},
	{.lane = {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}}, .elem = {{0, 1}}, .reg = {{8, 0}, {0, 8}}},          /* 16 */
	/* 32, 64 */
	{.lane = {{0, 1}, {0, 2}, {1, 0}, {2, 0}, {4, 0}}, .reg = {{8, 0}, {0, 4}, {0, 8}}},
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
	{.lane = {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}},
	 .reg = {{0, 1}, {8, 0}, {0, 8}, {0, 16}, {0, 32}, {0, 64}, {0, 128}}},
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
	const struct operand *regs = operand_items(o);
	if ((o->kind == O_VECTOR ? o->nitems : 1) != n)
		return false;
	for (u32 r = 0; r < n; r++)
		if (regs[r].kind == O_REG ? ptx_bits(regs[r].reg_type) != bits : !is_result || regs[r].kind != O_SINK)
			return false;
	return true;
}

/* --- elements ---------------------------------------------------------------------------------------------------- */

#define ELEMENT(name, raw, word, cell_type, value)                                                                     \
	static void load_##name(const struct warp *w, const struct operand *regs, const struct fragment_map *map,      \
				void *matrix)                                                                          \
	{                                                                                                              \
		enum { PER_REG = sizeof(word) < 4 ? 4 / sizeof(word) : 1 };                                            \
		for (u32 r = 0; r < map->nregs; r++) {                                                                 \
			const u64 *bits = &w->regs[(size_t)regs[r].reg * LANES];                                       \
			raw v[LANES];                                                                                  \
			for (u32 l = 0; l < LANES; l++)                                                                \
				v[l] = (raw)bits[l];                                                                   \
			for (u32 e = 0; e < PER_REG; e++) {                                                            \
				cell_type cells[LANES], *to = (cell_type *)matrix + map->reg[r] + map->elem[e];        \
				for (u32 l = 0; l < LANES; l++) {                                                      \
					word x = (word)(v[l] >> e * 8 * sizeof(word));                                 \
					cells[l] = (value);                                                            \
				}                                                                                      \
				for (u32 l = 0; l < LANES; l++)                                                        \
					to[map->lane[l]] = cells[l];                                                   \
			}                                                                                              \
		}                                                                                                      \
	}                                                                                                              \
	static void unpack_##name(const void *from, u32 n, void *cells, u32 stride)                                    \
	{                                                                                                              \
		for (u32 k = 0; k < n; k++) {                                                                          \
			word x;                                                                                        \
			memcpy(&x, (const char *)from + k * sizeof x, sizeof x);                                       \
			((cell_type *)cells)[k * stride] = (value);                                                    \
		}                                                                                                      \
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

#define ACCUMULATOR(name, word, cell_type, bits_of)                                                                    \
	static void store_##name(struct warp *w, const struct operand *regs, const struct fragment_map *map,           \
				 const void *matrix)                                                                   \
	{                                                                                                              \
		enum { PER_REG = sizeof(word) < 4 ? 4 / sizeof(word) : 1 };                                            \
		for (u32 r = 0; r < map->nregs; r++) {                                                                 \
			if (regs[r].kind != O_REG)                                                                     \
				continue;                                                                              \
			u64 v[LANES] = {0};                                                                            \
			for (u32 e = 0; e < PER_REG; e++) {                                                            \
				const cell_type *from = (const cell_type *)matrix + map->reg[r] + map->elem[e];        \
				for (u32 l = 0; l < LANES; l++) {                                                      \
					cell_type x = from[map->lane[l]];                                              \
					v[l] |= (u64)(word)(bits_of) << e * 8 * sizeof(word);                          \
				}                                                                                      \
			}                                                                                              \
			memcpy(&w->regs[(size_t)regs[r].reg * LANES], v, sizeof v);                                    \
		}                                                                                                      \
	}

ACCUMULATOR(f32, u32, float, x != x ? 0x7FFFFFFF : fp_bits_f32(x))
ACCUMULATOR(f16, u16, float, fp_to_f16(x))
/* an input NaN is kept, as in scalar operations; a new NaN is that of x86 */
ACCUMULATOR(f64, u64, double, fp_bits_f64(x))
ACCUMULATOR(s32, u32, i32, x)

const struct element *element_of(enum ptx_type t)
{
	static const struct element elements[] = {
		{PT_F32, 32, 4, -126, load_f32, unpack_f32, store_f32},
		{PT_TF32, 32, 4, -126, load_tf32, unpack_tf32, NULL},
		{PT_F16, 16, 4, -14, load_f16, unpack_f16, store_f16},
		{PT_BF16, 16, 4, -126, load_bf16, unpack_bf16, NULL},
		{PT_E4M3, 8, 4, -6, load_e4m3, unpack_e4m3, NULL},
		{PT_E5M2, 8, 4, -14, load_e5m2, unpack_e5m2, NULL},
		{PT_F64, 64, 8, -1022, load_f64, unpack_f64, store_f64},
		{PT_S8, 8, 4, 0, load_s8, unpack_s8, NULL},
		{PT_U8, 8, 4, 0, load_u8, unpack_u8, NULL},
		{PT_S32, 32, 4, 0, load_s32, unpack_s32, store_s32},
	};
	for (u32 k = 0; k < ARRAY_LEN(elements); k++)
		if (elements[k].type == t)
			return &elements[k];
	return NULL;
}

/* --- products ---------------------------------------------------------------------------------------------------- */

/* Strips of eight columns, as explicit vectors, because compilers tend to vectorise the loop over k instead. */
enum { STRIP = 8, ROWS = 4, MAX_CELLS = 32 * 256 };
typedef float f32_strip __attribute__((vector_size(STRIP * 4), aligned(4), may_alias));
typedef i32 i32_strip __attribute__((vector_size(STRIP * 4), aligned(4), may_alias));
typedef float f32_half __attribute__((vector_size(STRIP * 2), aligned(4), may_alias));
typedef i32 i32_half __attribute__((vector_size(STRIP * 2), aligned(4), may_alias));
typedef double f64_half __attribute__((vector_size(STRIP * 4), aligned(8), may_alias));
typedef i64 i64_half __attribute__((vector_size(STRIP * 4), aligned(8), may_alias));

static inline i32 wrapping_add(i32 x, i32 y)
{
	return (i32)((u32)x + (u32)y);
}

static inline i32 saturating_add(i32 x, i32 y)
{
	i64 sum = (i64)x + y;
	return sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : (i32)sum;
}

#define MULTIPLY_INT(name, attributes, add)                                                                            \
	attributes static void name(const struct multiplier *p, const void *a, const void *b, void *d, u32 m, u32 n,   \
				    u32 k)                                                                             \
	{                                                                                                              \
		(void)p;                                                                                               \
		for (u32 row = 0; row < m; row += ROWS)                                                                \
			for (u32 col = 0; col < n; col += STRIP) {                                                     \
				const i32 *x = (const i32 *)a + row * k, *y = (const i32 *)b + col;                    \
				i32_strip sum[ROWS] = {0};                                                             \
				for (u32 j = 0; j < k; j++)                                                            \
					for (u32 r = 0; r < ROWS; r++)                                                 \
						sum[r] += x[r * k + j] * *(const i32_strip *)(y + j * n);              \
				for (u32 r = 0; r < ROWS; r++)                                                         \
					for (u32 c = 0; c < STRIP; c++) {                                              \
						i32 *to = (i32 *)d + (row + r) * n + col + c;                          \
						*to = add(*to, sum[r][c]);                                             \
					}                                                                              \
			}                                                                                              \
	}

#define MULTIPLY_F64(name, attributes)                                                                                 \
	attributes static void name(const struct multiplier *p, const void *a, const void *b, void *d, u32 m, u32 n,   \
				    u32 k)                                                                             \
	{                                                                                                              \
		(void)p;                                                                                               \
		for (u32 row = 0; row < m; row++)                                                                      \
			for (u32 j = 0; j < k; j++) {                                                                  \
				const double *y = (const double *)b + j * n;                                           \
				double x = ((const double *)a)[row * k + j], *to = (double *)d + row * n;              \
				for (u32 c = 0; c < n; c++)                                                            \
					to[c] = fma(x, y[c], to[c]);                                                   \
			}                                                                                              \
	}

enum { NO_EXPONENT = -10000, NOT_FINITE = 100000, LEAST_FAST = -100, MOST_FAST = 120 };

/* Exponent for alignment; that of a subnormal number is `least`, the exponent of the smallest normal number. */
static inline i32 exponent_of(float x, i32 least)
{
	i32 exponent = (i32)(fp_bits_f32(x) >> 23 & 255) - 127;
	return x == 0 ? NO_EXPONENT : exponent == 128 ? NOT_FINITE : MAX(exponent, least);
}

static double cut(const struct multiplier *p, double x)
{
	u64 bits = fp_bits_f64(x), all = ((u64)1 << p->dropped) - 1;
	return fp_f64_bits((bits & ~all) | (p->odd && (bits & all) ? all + 1 : 0));
}

/* One cell of D, for operands of any magnitude. Column `y` has k elements, n apart. */
static float sum_cell(const struct multiplier *p, const float *x, const float *y, float c, u32 n, u32 k)
{
	i32 most = exponent_of(c, p->c->least);
	bool finite = most != NOT_FINITE;
	float plain = c;
	for (u32 j = 0; j < k; j++) {
		i32 ex = exponent_of(x[j], p->a->least), ey = exponent_of(y[j * n], p->b->least);
		most = MAX(most, ex + ey);
		finite &= ex != NOT_FINITE && ey != NOT_FINITE;
		plain += x[j] * y[j * n];
	}
	if (!finite || most < NO_EXPONENT / 2)
		return plain;
	double sum = trunc(ldexp((double)c, p->fraction - most));
	for (u32 j = 0; j < k; j++)
		sum += trunc(ldexp((double)x[j] * (double)y[j * n], p->fraction - most));
	sum = ldexp(cut(p, sum), most - p->fraction);
	return (float)(fabs(sum) < 0x1p-126 ? trunc(sum * 0x1p149) * 0x1p-149 : sum);
}

#define ALWAYS_INLINE static inline __attribute__((always_inline))

#define SELECT(which, yes, no) (((yes) & (which)) | ((no) & ~(which)))

ALWAYS_INLINE void exponents_of(const float *x, i32 least, i32 *to)
{
	i32_strip bits = *(const i32_strip *)x & INT32_MAX, exponent = (bits >> 23) - 127;
	exponent = SELECT(exponent == 128, NOT_FINITE, SELECT(exponent < least, least, exponent));
	*(i32_strip *)to = SELECT(bits == 0, NO_EXPONENT, exponent);
}

/* ROWS rows of a strip. Returns false unless all values are zero or have magnitudes between 2^LEAST_FAST and
 * 2^MOST_FAST. */
ALWAYS_INLINE bool sum_strips(const struct multiplier *p, const float *x, const i32 *ex, const float *y, const i32 *ey,
			      float *d, u32 n, u32 k)
{
	i32_strip most[ROWS], sum[ROWS], addend[ROWS];
	f32_strip scale[ROWS], back[ROWS];
	for (u32 r = 0; r < ROWS; r++)
		exponents_of(d + r * n, p->c->least, (i32 *)&most[r]);
	for (u32 j = 0; j < k; j++)
		for (u32 r = 0; r < ROWS; r++) {
			i32_strip e = ex[r * k + j] + *(const i32_strip *)(ey + j * n);
			most[r] = SELECT(most[r] < e, e, most[r]);
		}
	i32_strip slow = {0};
	for (u32 r = 0; r < ROWS; r++) {
		i32_strip none = most[r] < NO_EXPONENT / 2;
		slow |= ((most[r] < LEAST_FAST) & ~none) | (most[r] > MOST_FAST);
		most[r] &= ~none;
		scale[r] = (f32_strip)((127 + p->fraction - most[r]) << 23);
		back[r] = (f32_strip)((127 - p->fraction + most[r]) << 23);
		addend[r] = __builtin_convertvector(*(const f32_strip *)(d + r * n) * scale[r], i32_strip);
		sum[r] = (i32_strip){0};
	}
	u64 any[STRIP / 2];
	memcpy(any, &slow, sizeof any);
	if (any[0] | any[1] | any[2] | any[3])
		return false;
	for (u32 j = 0; j < k; j++)
		for (u32 r = 0; r < ROWS; r++) {
			f32_strip product = x[r * k + j] * *(const f32_strip *)(y + j * n);
			sum[r] += __builtin_convertvector(product * scale[r], i32_strip);
		}
	i64 all = ((i64)1 << p->dropped) - 1;
	for (u32 r = 0; r < ROWS; r++)
		for (u32 half = 0; half < 2; half++) { /* half a strip of f64 fills a vector */
			i32_half some = ((const i32_half *)&sum[r])[half], one = ((const i32_half *)&addend[r])[half];
			i64_half bits = (i64_half)(__builtin_convertvector(some, f64_half) +
						   __builtin_convertvector(one, f64_half));
			bits = (bits & ~all) | (((bits & all) != 0) & (p->odd ? all + 1 : 0));
			((f32_half *)(d + r * n))[half] =
				__builtin_convertvector((f64_half)bits, f32_half) * ((const f32_half *)&back[r])[half];
		}
	return true;
}

#define MULTIPLY_F32(name, attributes)                                                                                 \
	attributes static void name(const struct multiplier *p, const void *a, const void *b, void *d, u32 m, u32 n,   \
				    u32 k)                                                                             \
	{                                                                                                              \
		i32 ex[ROWS * 32], ey[MAX_CELLS];                                                                      \
		const float *y = b;                                                                                    \
		for (u32 j = 0; j < k * n; j += STRIP)                                                                 \
			exponents_of(y + j, p->b->least, ey + j);                                                      \
		for (u32 row = 0; row < m; row += ROWS) {                                                              \
			const float *x = (const float *)a + row * k;                                                   \
			float *to = (float *)d + row * n;                                                              \
			for (u32 j = 0; j < ROWS * k; j += STRIP)                                                      \
				exponents_of(x + j, p->a->least, ex + j);                                              \
			for (u32 col = 0; col < n; col += STRIP) {                                                     \
				bool done = sum_strips(p, x, ex, y + col, ey + col, to + col, n, k);                   \
				for (u32 cell = 0; cell < ROWS * STRIP && !done; cell++) {                             \
					u32 r = cell / STRIP, c = col + cell % STRIP;                                  \
					to[r * n + c] = sum_cell(p, x + r * k, y + c, to[r * n + c], n, k);            \
				}                                                                                      \
			}                                                                                              \
		}                                                                                                      \
	}

#define MULTIPLY_ALL(suffix, attributes)                                                                               \
	MULTIPLY_INT(multiply_s32##suffix, attributes, wrapping_add)                                                   \
	MULTIPLY_INT(multiply_s32_sat##suffix, attributes, saturating_add)                                             \
	MULTIPLY_F64(multiply_f64##suffix, attributes)                                                                 \
	MULTIPLY_F32(multiply_f32##suffix, attributes)                                                                 \
	static multiply_fn *const multiply##suffix[] = {multiply_s32##suffix, multiply_s32_sat##suffix,                \
							multiply_f64##suffix,                                          \
							multiply_f32##suffix};

MULTIPLY_ALL(, )
#ifdef __x86_64__
MULTIPLY_ALL(_wide, __attribute__((target("avx2,fma")))) /* bit-identical results */
#endif

struct multiplier multiplier_of(enum ptx_type a, enum ptx_type b, enum ptx_type c, bool saturates, bool coarse)
{
	u32 which = c == PT_S32 ? saturates : c == PT_F64 ? 2 : 3;
	multiply_fn *run = multiply[which];
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		run = multiply_wide[which];
#endif
	bool odd = c == PT_F16;
	return (struct multiplier){.run = run,
				   .a = element_of(a),
				   .b = element_of(b),
				   .c = element_of(c),
				   .fraction = coarse ? 13 : 25,
				   .dropped = 53 - (coarse && !odd ? 14 : 24),
				   .odd = odd};
}

void round_to_f16(float *cells, u32 n)
{
	for (u32 k = 0; k < n; k++)
		cells[k] = fp_from_f16(fp_to_f16(cells[k]));
}
