/* The form of every loop over elements, and the names that the expressions of elementwise.def use. Only for
 * element_loops.c and casts.c. */
#ifndef TLC_INTERP_ELEMENT_LOOP_H
#define TLC_INTERP_ELEMENT_LOOP_H

#include "interp/interp_internal.h"
#include "ir/scalar_math.h"

/* Arrays are either identical or disjoint, so iterations are independent. */
#ifdef __clang__
#define INDEPENDENT
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

/* The loop r[i] = e, where `names` declares pointers to the operands and `load` reads them. */
#define LOOP(name, Tr, names, load, e)                                                \
	static void name(void *d, const void *x, const void *y, const void *z, i64 n) \
	{                                                                             \
		Tr *r = d;                                                            \
		names;                                                                \
		(void)y, (void)z;                                                     \
		INDEPENDENT for (i64 i = 0; i < n; i++)                               \
		{                                                                     \
			load;                                                         \
			r[i] = (Tr)(e);                                               \
		}                                                                     \
	}

#define UNUSED __attribute__((unused))

/* Integers by width. An i1 is a byte of 0 or 1, and as a signed number 0 or -1. */
#define SIGNED_1(x) (-(i32)(x))
#define SIGNED_8(x) ((i8)(x))
#define SIGNED_16(x) ((i16)(x))
#define SIGNED_32(x) ((i32)(x))
#define SIGNED_64(x) ((i64)(x))
#define CUT_1(x) ((x) & 1)
#define CUT_8(x) (x)
#define CUT_16(x) (x)
#define CUT_32(x) (x)
#define CUT_64(x) (x)
#define MEM_1 mem8
#define MEM_8 mem8
#define MEM_16 mem16
#define MEM_32 mem32
#define MEM_64 mem64

/* The types in which integers are computed. */
#define U_32 u32
#define S_32 i32
#define WIDE_32 u64
#define U_64 u64
#define S_64 i64
#define WIDE_64 unsigned __int128
#define INT_TYPES(comp)            \
	typedef U_##comp U UNUSED; \
	typedef S_##comp S UNUSED; \
	typedef WIDE_##comp WIDE UNUSED

#define LOAD_INT(v, p, bits) U v UNUSED = p[i]; S s##v UNUSED = SIGNED_##bits(p[i])
#define LOAD_FLOAT(v, p) T v = p[i]

#endif
