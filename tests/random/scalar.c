/* Random kernels: operations on one element. */
#include "random.h"

bool compare(enum op op, bool less, bool equal)
{
	switch (op) {
	case LT: return less;
	case LE: return less || equal;
	case GT: return !less && !equal;
	case GE: return !less;
	case EQ: return equal;
	default: return !equal;
	}
}

bool below(tl_dtype t, int64_t a, int64_t b)
{
	return is_signed(t) ? a < b : (uint64_t)a < (uint64_t)b;
}

static int64_t high_half(tl_dtype t, int64_t a, int64_t b)
{
	int bits = bits_of(t);
	uint64_t mask = bits == 64 ? ~0ull : (1ull << bits) - 1;
	return (int64_t)(uint64_t)((unsigned __int128)((uint64_t)a & mask) * ((uint64_t)b & mask) >> bits);
}

int64_t int_op(enum op op, tl_dtype t, int64_t a, int64_t b)
{
	uint64_t x = (uint64_t)a, y = (uint64_t)b;
	switch (op) {
	case NEG: return (int64_t)(0 - x);
	case NOT: return ~a;
	case ABS: return is_signed(t) && a < 0 ? (int64_t)(0 - x) : a;
	case ADD: return (int64_t)(x + y);
	case SUB: return (int64_t)(x - y);
	case MUL: return (int64_t)(x * y);
	case DIV: return is_signed(t) ? a / b : (int64_t)(x / y);
	case REM: return is_signed(t) ? a % b : (int64_t)(x % y);
	case AND: return a & b;
	case OR: return a | b;
	case XOR: return a ^ b;
	case SHL: return (int64_t)(x << y);
	case SHR: return is_signed(t) ? a >> b : (int64_t)(x >> y);
	case MIN: return below(t, b, a) ? b : a;
	case MAX: return below(t, a, b) ? b : a;
	case UMULHI: return high_half(t, a, b);
	default: return compare(op, below(t, a, b), a == b);
	}
}

double float_op(enum op op, double x, double y, double z)
{
	switch (op) {
	case NEG: return -x;
	case ABS: return fabs(x);
	case EXP: return exp(fmin(x, 2));
	case SQRT: return sqrt(fabs(x) + 1);
	case SIN: return sin(fmax(-4, fmin(x, 4)));
	case SIGMOID: return 1 / (1 + exp(-x));
	case LOG: return log(fabs(x) + 1);
	case ADD: return x + y;
	case SUB: return x - y;
	case MUL: return x * y;
	case MIN: return fmin(x, y);
	case MAX: return fmax(x, y);
	case REM: return fmod(x, y);
	case FDIV: return x / y;
	case FMA: return x * y + z;
	case CLAMP: return fmax(-3, fmin(x, 3));
	default: return compare(op, x < y, x == y);
	}
}

double float_error(enum op op, tl_dtype t, double x, double y, double r, double ex, double ey, double ez)
{
	double round = 2 * unit_roundoff(t) * fabs(r) + fmax(ulp(t, 0), 1e-36);
	switch (op) {
	case ADD:
	case SUB: return ex + ey + round;
	case MUL: return fabs(x) * ey + fabs(y) * ex + ex * ey + round;
	case FMA: return fabs(x) * ey + fabs(y) * ex + ex * ey + ez + round + 2 * unit_roundoff(t) * fabs(x * y);
	case MIN:
	case MAX: return fmax(ex, ey);
	case FDIV: return ex + 2 * fabs(x) * ey + 5 * round;
	case EXP: return r * expm1(ex) + 10 * round;
	case SQRT:
	case SIN:
	case SIGMOID:
	case LOG: return ex + 4 * round + 2e-6;
	default: return ex;
	}
}

int64_t update(int kind, tl_dtype t, int64_t a, int64_t b)
{
	static const enum op ops[] = {ADD, MAX, MIN, AND, OR, XOR};
	return wrap(t, int_op(ops[kind], t, a, b));
}
