/* Elementwise operations: the choice of the loop for each operation and type. Loops exist for integers, f32 and f64.
 * Smaller floats are processed in chunks: decoded to f32, computed, and rounded once when stored. */
#include "interp/element_loop.h"
#include "ir/scalar.h"

enum { CHUNK = 256 };

struct elementwise {
	elem_loop *loop;
	elem_loop *decode[3], *encode; /* NULL: the operand or result needs no conversion */
	u32 in_bytes[3], out_bytes;
};

static bool run_loop(struct env *e, const struct inst *i)
{
	const struct elementwise *w = i->plan;
	w->loop(e->at[i->out[0]], e->at[i->in[0]], e->at[i->in[1]], e->at[i->in[2]], inst_lanes(e, i));
	return true;
}

/* Computes n elements, at most CHUNK. */
static void compute(const struct elementwise *w, void *out, const void *const *from, u32 nin, i64 n)
{
	_Alignas(64) float decoded[3][CHUNK], computed[CHUNK];
	const void *in[3] = {NULL, NULL, NULL};
	for (u32 k = 0; k < nin; k++) {
		in[k] = from[k];
		if (w->decode[k]) {
			w->decode[k](decoded[k], in[k], NULL, NULL, n);
			in[k] = decoded[k];
		}
	}
	w->loop(w->encode ? computed : out, in[0], in[1], in[2], n);
	if (w->encode)
		w->encode(out, computed, NULL, NULL, n);
}

static bool run_chunks(struct env *e, const struct inst *i)
{
	const struct elementwise *w = i->plan;
	i64 total = inst_lanes(e, i);
	for (i64 at = 0; at < total; at += CHUNK) {
		const void *in[3] = {NULL, NULL, NULL};
		for (u32 k = 0; k < i->nin; k++)
			in[k] = (const char *)e->at[i->in[k]] + at * w->in_bytes[k];
		compute(w, (char *)e->at[i->out[0]] + at * w->out_bytes, in, i->nin, MIN(total - at, (i64)CHUNK));
	}
	return true;
}

struct apart {
	struct elementwise multiply, add;
};

static bool run_multiply_add_apart(struct env *e, const struct inst *i)
{
	const struct apart *w = i->plan;
	_Alignas(64) double product[CHUNK];
	i64 total = inst_lanes(e, i);
	for (i64 at = 0; at < total; at += CHUNK) {
		i64 n = MIN(total - at, (i64)CHUNK), offset = at * w->add.out_bytes;
		const void *factors[] = {(const char *)e->at[i->in[0]] + offset,
					 (const char *)e->at[i->in[1]] + offset};
		const void *terms[] = {product, (const char *)e->at[i->in[2]] + offset};
		compute(&w->multiply, product, factors, 2, n);
		compute(&w->add, (char *)e->at[i->out[0]] + offset, terms, 2, n);
	}
	return true;
}

/* --- select and addptr --------------------------------------------------------------------------------------- */

#define SELECT_LOOP(name, T)                                                      \
	LOOP(name, T, const mem8 *p = x; const T *q = y; const T *s = z,          \
	     u8 c = p[i]; T a = q[i]; T b = s[i], c ? a : b)
SELECT_LOOP(select_1, mem8)
SELECT_LOOP(select_2, mem16)
SELECT_LOOP(select_4, mem32)
SELECT_LOOP(select_8, mem64)

/* A select with a scalar condition copies a whole tile. */
static bool run_select_tile(struct env *e, const struct inst *i)
{
	const u8 *condition = e->at[i->in[0]];
	memmove(e->at[i->out[0]], e->at[i->in[*condition ? 1 : 2]], (size_t)i->n * elem_bytes(i->type));
	return true;
}

/* z points to the shift that scales offsets to bytes. */
#define ADDPTR_LOOP(bits)                                                                                     \
	LOOP(addptr_##bits, mem64, const mem64 *p = x; const MEM_##bits *q = y; const u32 shift = *(const u32 *)z, \
	     u64 base = p[i]; i64 offset = SIGNED_##bits(q[i]), base + ((u64)offset << shift))
ADDPTR_LOOP(1)
ADDPTR_LOOP(8)
ADDPTR_LOOP(16)
ADDPTR_LOOP(32)
ADDPTR_LOOP(64)

struct addptr {
	elem_loop *loop;
	u32 shift;
};

static bool run_addptr(struct env *e, const struct inst *i)
{
	const struct addptr *w = i->plan;
	w->loop(e->at[i->out[0]], e->at[i->in[0]], e->at[i->in[1]], &w->shift, inst_lanes(e, i));
	return true;
}

/* --- planning ------------------------------------------------------------------------------------------------ */

static void plan_addptr(struct planner *p, const struct op *o, struct inst *i)
{
	static elem_loop *const loops[] = {addptr_1, addptr_8, addptr_16, addptr_32, addptr_64};
	struct addptr *w = plan_alloc(p, sizeof *w);
	w->loop = loops[type_dtype(operand(o, 1)->type) - DT_I1];
	w->shift = (u32)ilog2(pointee_bytes(operand(o, 0)->type));
	i->run = run_addptr;
	i->plan = w;
}

static bool is_small(enum dtype d)
{
	return dtype_is_float(d) && d < DT_F32;
}

/* The loop for `o`, to run between the conversions decode and encode. */
static elem_loop *choose_loop(const struct op *o, enum dtype from, enum dtype to, struct elementwise *w)
{
	static elem_loop *const select[] = {select_1, select_2, select_4, select_8};
	bool toward_zero = o->code == IR_FP_TO_FP && o->attr[ATTR_ROUNDING] == ROUND_RTZ;
	enum dtype computed = from == DT_F64 ? DT_F64 : DT_F32; /* the type in which floats are computed */
	switch (op_info[o->code].rule) {
	case R_INT:
	case R_CMPI: return find_int_loop(o->code, from, o->attr[ATTR_PREDICATE]);
	case R_FLOAT:
	case R_CMPF: return find_float_loop(o->code, computed, o->attr[ATTR_PREDICATE]);
	case R_SELECT: return select[ilog2(w->out_bytes)];
	case R_WIDEN_INT:
	case R_NARROW_INT: return find_int_to_int(o->code, from, to);
	case R_INT_TO_FLOAT: return find_int_to_float(o->code, from, to, is_small(to));
	case R_FLOAT_TO_INT: return find_float_to_int(o->code, computed, to);
	case R_WIDEN_FLOAT:
	case R_NARROW_FLOAT:
	case R_FLOAT_TO_FLOAT:
		if (to == DT_F32 && is_small(from)) { /* the operation is just the conversion `decode` */
			w->decode[0] = NULL;
			return find_decode(from);
		}
		w->encode = NULL; /* the conversion is the loop itself */
		return find_encode(computed, to, toward_zero);
	default: tl_unreachable("elementwise operation");
	}
}

void plan_elementwise(struct planner *p, const struct op *o, struct inst *i)
{
	if (o->code == IR_ADDPTR) {
		plan_addptr(p, o, i);
		return;
	}
	enum dtype from = type_dtype(operand(o, 0)->type), to = type_dtype(result(o)->type);
	struct elementwise *w = plan_alloc(p, sizeof *w);
	bool moves_bits = o->code == IR_SELECT, direct = true;
	w->out_bytes = elem_bytes(result(o)->type);
	for (u32 k = 0; k < o->noperands; k++) {
		enum dtype d = type_dtype(operand(o, k)->type);
		w->in_bytes[k] = elem_bytes(operand(o, k)->type);
		w->decode[k] = is_small(d) && !moves_bits ? find_decode(d) : NULL;
	}
	w->encode = is_small(to) && !moves_bits ? find_encode(DT_F32, to, false) : NULL;
	w->loop = choose_loop(o, from, to, w);
	tl_assert(w->loop);
	for (u32 k = 0; k < o->noperands; k++)
		direct &= !w->decode[k];
	i->run = direct && !w->encode ? run_loop : run_chunks;
	if (moves_bits && type_is_tensor(result(o)->type) && !type_is_tensor(operand(o, 0)->type))
		i->run = run_select_tile;
	i->plan = w;
}

/* The loop of an operation on two floats of type d with a result of type d. */
static struct elementwise float_operation(enum opcode code, enum dtype d)
{
	u32 bytes = (u32)dtype_bytes(d);
	struct elementwise w = {.loop = find_float_loop(code, d == DT_F64 ? DT_F64 : DT_F32, 0),
				.in_bytes = {bytes, bytes},
				.out_bytes = bytes};
	w.decode[0] = w.decode[1] = is_small(d) ? find_decode(d) : NULL;
	w.encode = is_small(d) ? find_encode(DT_F32, d, false) : NULL;
	return w;
}

void plan_addition(struct planner *p, enum dtype d, struct inst *i)
{
	struct elementwise *w = plan_alloc(p, sizeof *w);
	*w = float_operation(IR_ADDF, d);
	i->run = run_chunks;
	i->plan = w;
}

void plan_multiply_add_apart(struct planner *p, enum dtype d, struct inst *i)
{
	struct apart *w = plan_alloc(p, sizeof *w);
	*w = (struct apart){float_operation(IR_MULF, d), float_operation(IR_ADDF, d)};
	i->run = run_multiply_add_apart;
	i->plan = w;
}
