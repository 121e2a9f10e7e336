/* When a result of the simulator is that of the GPU. */
#include <math.h>

#include "base/fp.h"
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

/* The largest finite magnitude in the registers [first, first + n) of a thread's tile. */
static double largest(const struct form *f, u32 thread, u32 first, u32 n, enum ptx_type t)
{
	double most = 0;
	int bits = ptx_bits(t);
	u64 all = bits > 63 ? ~(u64)0 : ((u64)1 << bits) - 1;
	for (u32 s = first; s < first + n; s++)
		for (u32 l = 0; l < 32; l++)
			for (int at = 0; at < MAX(bits, 32); at += bits) {
				double x = fabs(float_value(t, f->in[s * f->ncases + thread / 32 * 32 + l] >> at & all));
				if (isfinite(x))
					most = fmax(most, x);
			}
	return most;
}

static double allowed(const struct form *f, u32 thread, double expected)
{
	if (!f->bound.of_tile) {
		bool near = f->bound.near > 0 && fabs(float_value(f->sources[0].type, f->in[thread])) <= f->bound.near;
		return f->bound.rel * fabs(expected) + (near ? f->bound.near_abs : f->bound.abs);
	}
	u32 nc = f->nsources - f->na - f->nb;
	double product = largest(f, thread, 0, f->na, f->a) * largest(f, thread, f->na, f->nb, f->b);
	return f->bound.rel * fmax(fabs(expected), fmax(product, largest(f, thread, f->na + f->nb, nc, f->result)));
}

static bool same_number(const struct form *f, u32 thread, enum ptx_type t, u64 got, u64 expected)
{
	double x = float_value(t, got), y = float_value(t, expected);
	double least = t == PT_F64 ? 0x1p-1022 : 0x1p-126, most = t == PT_F64 ? 0x1.FFFFFp1023 : t == PT_F16 ? 65503 : 0x1.FEp127;
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
	if (t == PT_F16X2 || t == PT_BF16X2 || (f->m && t == PT_F16)) {
		enum ptx_type half = t == PT_BF16X2 ? PT_BF16 : PT_F16;
		return same_number(f, thread, half, got & 0xFFFF, expected & 0xFFFF) &&
		       same_number(f, thread, half, got >> 16, expected >> 16);
	}
	return same_number(f, thread, t, got, expected);
}
