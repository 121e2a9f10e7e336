/* When a result of the simulator is that of the GPU. */
#include <math.h>

#include "support/small_floats.h"
#include "tests/sim/isa.h"

double float_value(enum ptx_type t, u64 bits)
{
	switch (t) {
	case PT_F64: return fp_f64_bits(bits);
	case PT_F32:
	case PT_TF32: return (double)fp_f32_bits((u32)bits);
	case PT_F16: return (double)fp_from_f16((u16)bits);
	case PT_BF16: return (double)fp_from_bf16((u16)bits);
	case PT_E4M3: return fp_decode(FP_E4M3, (u32)bits);
	case PT_E5M2: return fp_decode(FP_E5M2, (u32)bits);
	default: return (double)bits;
	}
}

static double allowed(const struct form *f, u32 thread, double expected)
{
	bool near = f->bound.near > 0 && fabs(float_value(f->sources[0].type, f->in[thread])) <= f->bound.near;
	return f->bound.rel * fabs(expected) + (near ? f->bound.near_abs : f->bound.abs);
}

static bool same_number(const struct form *f, u32 thread, enum ptx_type t, u64 got, u64 expected)
{
	double x = float_value(t, got), y = float_value(t, expected);
	double least = t == PT_F64 ? 0x1p-1022 : 0x1p-126, most = t == PT_F64   ? 0x1.FFFFFp1023
								  : t == PT_F16 ? 65503
										: 0x1.FEp127;
	if (got == expected)
		return true;
	if (isnan(x) || isnan(y))
		return false;
	if (isinf(x) || isinf(y))
		return signbit(x) == signbit(y) && fabs(x) >= most && fabs(y) >= most;
	if (fabs(x - y) <= allowed(f, thread, y))
		return true;
	/* flushed or not, just below the smallest normal number */
	return (x == 0 || y == 0) && signbit(x) == signbit(y) && fabs(x + y) <= least * (1 + 0x1p-20);
}

bool same_result(const struct form *f, u32 thread, u64 got, u64 expected)
{
	if (got == expected)
		return true;
	if (f->exact)
		return false;
	if (f->bound.reach > 0 && isfinite(float_value(f->sources[0].type, f->in[thread])) &&
	    fabs(float_value(f->sources[0].type, f->in[thread])) > f->bound.reach)
		return true;
	enum ptx_type t = f->result;
	if (t == PT_F16X2 || t == PT_BF16X2) {
		enum ptx_type half = t == PT_BF16X2 ? PT_BF16 : PT_F16;
		return same_number(f, thread, half, got & 0xFFFF, expected & 0xFFFF) &&
		       same_number(f, thread, half, got >> 16, expected >> 16);
	}
	return same_number(f, thread, t, got, expected);
}
