/* Arithmetic instructions: opcode table, check of operands, mov. */
#include "runtime/sim/alu.h"

/* --- operands --------------------------------------------------------------------------------------------------- */

static bool is_float(enum ptx_type t)
{
	return t >= PT_F16;
}

static bool classes_agree(enum ptx_type declared, enum ptx_type t)
{
	if (is_bits(declared) || is_bits(t))
		return true;
	if (declared == PT_PRED || t == PT_PRED || is_float(declared) || is_float(t))
		return declared == t;
	return true;
}

bool alu_operand(struct decoder *d, const struct operand *o, enum ptx_type t, bool wider)
{
	int bits = ptx_bits(t);
	bool ok = !o->negated;
	switch (o->kind) {
	case O_SINK: return true;
	case O_REG: {
		int have = ptx_bits(o->reg_type);
		ok = ok && classes_agree(o->reg_type, t) && (have == bits || (wider && have > bits && t != PT_PRED));
		break;
	}
	case O_INT: ok = ok && !is_float(t); break;
	case O_FLOAT:
		ok = ok && (o->wide ? t == PT_F32 || bits == 64 : bits == 32) && (is_bits(t) || is_float(t));
		break;
	case O_SPECIAL: ok = ok && !is_float(t) && (t == PT_PRED) == special_is_predicate(o->imm); break;
	case O_SYMBOL: ok = ok && o->var && !is_float(t) && bits >= 32; break;
	default: ok = false;
	}
	return ok || decode_fail(d, "an operand of '%s' is not a .%s", d->i->opcode, ptx_type_name(t));
}

bool alu_operands(struct decoder *d, u32 n, const enum ptx_type *t)
{
	if (!want_operands(d, n, n))
		return false;
	const struct operand *to = &d->i->ops[0];
	if (to->kind != O_REG && to->kind != O_SINK)
		return decode_fail(d, "'%s' needs a register for its result", d->i->opcode);
	for (u32 k = 0; k < n; k++)
		if ((k && d->i->ops[k].kind == O_SINK) || !alu_operand(d, &d->i->ops[k], t[k], false))
			return decode_fail(d, "'%s' has no value to read", d->i->opcode);
	return true;
}

bool need_sm(struct decoder *d, int sm)
{
	return d->module->sm >= sm || decode_fail(d, "'%s' needs sm_%d", d->i->opcode, sm);
}

bool alu_run(struct decoder *d, run_fn *run)
{
	d->i->run = run;
	return run || decode_fail(d, "the simulator has no '%s'", d->i->opcode);
}

/* --- mov -------------------------------------------------------------------------------------------------------- */

static void run_mov(struct warp *w, const struct instr *i, u32 mask)
{
	SOURCE(a, 1, ptx_bits(i->type[0]));
	RESULT(d, 0);
	ALL(l)
	d[l] = a[l];
	FINISH(d, 0);
}

/* mov {a, b, …} → d; the first element is the lowest. */
static void run_pack(struct warp *w, const struct instr *i, u32 mask)
{
	const struct operand *from = &i->ops[1];
	int bits = ptx_bits(i->type[0]) / (int)from->nitems;
	u64 sum[LANES] = {0}, space[LANES];
	for (u32 k = 0; k < from->nitems; k++) {
		const u64 *a = operand_lanes(w, &from->items[k], bits, space);
		int by = bits * (int)k;
		ALL(l)
		sum[l] |= a[l] << by;
	}
	finish(w, &i->ops[0], mask, sum);
}

static void run_unpack(struct warp *w, const struct instr *i, u32 mask)
{
	const struct operand *to = &i->ops[0];
	int bits = ptx_bits(i->type[0]) / (int)to->nitems;
	SOURCE(a, 1, ptx_bits(i->type[0]));
	u64 low = ((u64)1 << bits) - 1;
	for (u32 k = 0; k < to->nitems; k++) {
		u64 space[LANES], *d = begin(w, &to->items[k], mask, space);
		int by = bits * (int)k;
		ALL(l)
		d[l] = a[l] >> by & low;
		finish(w, &to->items[k], mask, d);
	}
}

static bool decode_vector_mov(struct decoder *d, enum ptx_type t)
{
	struct instr *i = d->i;
	bool unpack = i->ops[0].kind == O_VECTOR;
	const struct operand *v = &i->ops[unpack ? 0 : 1], *whole = &i->ops[unpack ? 1 : 0];
	int bits = ptx_bits(t);
	if (t == PT_PRED || !is_bits(t) || bits > 64 || (v->nitems != 2 && v->nitems != 4) || bits / (int)v->nitems < 8)
		return decode_fail(d, "'%s' does not take this vector", i->opcode);
	enum ptx_type part = bits / (int)v->nitems == 8 ? PT_B8 : bits / (int)v->nitems == 16 ? PT_B16 : PT_B32;
	for (u32 k = 0; k < v->nitems; k++) {
		const struct operand *o = &v->items[k];
		if (!alu_operand(d, o, part, false))
			return false;
		if (unpack ? o->kind != O_REG && o->kind != O_SINK : o->kind == O_SINK)
			return decode_fail(d, "an element of '%s' is not a register", i->opcode);
	}
	if (whole->kind == O_SINK || (!unpack && whole->kind != O_REG) || !alu_operand(d, whole, t, false))
		return decode_fail(d, "'%s' does not take this operand", i->opcode);
	i->type[0] = t;
	return alu_run(d, unpack ? run_unpack : run_pack);
}

static bool decode_mov(struct decoder *d)
{
	struct instr *i = d->i;
	enum ptx_type t = i->type[0] = take_type(d);
	if (!want_operands(d, 2, 2))
		return false;
	if (i->ops[0].kind == O_VECTOR || i->ops[1].kind == O_VECTOR)
		return decode_vector_mov(d, t);
	bool known = t == PT_PRED || ((is_bits(t) || is_int(t)) && ptx_bits(t) >= 16 && ptx_bits(t) <= 64) ||
		     t == PT_F32 || t == PT_F64;
	return known && OPERANDS(d, t, t) && alu_run(d, run_mov);
}

/* --- operations of several types -------------------------------------------------------------------------------- */

static bool decode_arith(struct decoder *d, enum arith op)
{
	enum ptx_type t = d->i->type[0] = take_type(d);
	if (t == PT_F32 || t == PT_F64)
		return decode_float_arith(d, op, t);
	if (is_half(t))
		return decode_half_arith(d, op, t);
	return is_int(t) && ptx_bits(t) >= 16 && decode_int_arith(d, op, t);
}

#define ARITH(name, op)                                                                                                \
	static bool decode_##name(struct decoder *d)                                                                   \
	{                                                                                                              \
		return decode_arith(d, op);                                                                            \
	}
ARITH(add, A_ADD)
ARITH(sub, A_SUB)
ARITH(fma, A_FMA)
ARITH(min, A_MIN)
ARITH(max, A_MAX)
ARITH(neg, A_NEG)
ARITH(abs, A_ABS)

const struct isa_row alu_opcodes[] = {
#define ROW(name)                                                                                                      \
	{                                                                                                              \
#name, decode_##name                                                                                                   \
	}
	ROW(add),  ROW(sub),  ROW(mul),  ROW(mad),  ROW(fma),  ROW(mul24), ROW(mad24),    ROW(div),  ROW(rem),
	ROW(sad),  ROW(abs),  ROW(neg),  ROW(min),  ROW(max),  ROW(dp4a),  ROW(dp2a),     ROW(and),  ROW(or),
	ROW(xor),  ROW(not ), ROW(cnot), ROW(shl),  ROW(shr),  ROW(shf),   ROW(bfe),      ROW(bfi),  ROW(bfind),
	ROW(brev), ROW(clz),  ROW(popc), ROW(prmt), ROW(lop3), ROW(szext), ROW(rcp),      ROW(sqrt), ROW(rsqrt),
	ROW(sin),  ROW(cos),  ROW(lg2),  ROW(ex2),  ROW(tanh), ROW(testp), ROW(copysign), ROW(setp), ROW(set),
	ROW(selp), ROW(slct), ROW(mov),  {0},
#undef ROW
};
