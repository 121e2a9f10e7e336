/* The verifier checks every operation against its row of ops.def, and the structure of the kernel. */
#include "support/recover.h"
#include "ir/launch_product.h"
#include "ir/inline_asm.h"
#include "ir/text.h"

static bool same_shape(const struct type *a, const struct type *b)
{
	if (a->kind == TY_MEMDESC || b->kind == TY_MEMDESC)
		return false;
	return a->rank == b->rank && a->layout == b->layout && !memcmp(a->shape, b->shape, sizeof a->shape);
}

static bool is_int(const struct type *t)
{
	return t->kind != TY_MEMDESC && type_elem(t)->kind == TY_SCALAR && dtype_is_int(type_elem(t)->dtype);
}

static bool is_float(const struct type *t)
{
	return t->kind != TY_MEMDESC && type_elem(t)->kind == TY_SCALAR && dtype_is_float(type_elem(t)->dtype);
}

static bool is_i1(const struct type *t)
{
	return is_int(t) && type_elem(t)->dtype == DT_I1;
}

static bool is_scalar_int(const struct type *t, int bits)
{
	return t->kind == TY_SCALAR && is_int(t) && dtype_bits(t->dtype) == bits;
}

/* True if the shapes are equal, regardless of layouts and element types. */
static bool same_sides(const struct type *a, const struct type *b)
{
	return a->rank == b->rank && !memcmp(a->shape, b->shape, sizeof a->shape);
}

#define NEED(cond, what)             \
	do {                         \
		if (!(cond))         \
			return what; \
	} while (0)

static const char *check_cast(const struct op *o, const struct type *from, const struct type *to)
{
	int a = type_elem_bits(from), b = type_elem_bits(to);
	NEED(same_shape(from, to), "operand and result differ in shape or layout");
	switch (op_info[o->code].rule) {
	case R_WIDEN_INT: NEED(is_int(from) && is_int(to) && a < b, "must widen an integer"); break;
	case R_NARROW_INT: NEED(is_int(from) && is_int(to) && a > b, "must narrow an integer"); break;
	case R_INT_TO_FLOAT: NEED(is_int(from) && is_float(to), "must convert integers to floats"); break;
	case R_FLOAT_TO_INT: NEED(is_float(from) && is_int(to), "must convert floats to integers"); break;
	case R_WIDEN_FLOAT: NEED(is_float(from) && is_float(to) && a < b, "must widen a float"); break;
	case R_NARROW_FLOAT: NEED(is_float(from) && is_float(to) && a > b, "must narrow a float"); break;
	case R_FLOAT_TO_FLOAT:
		NEED(is_float(from) && is_float(to) && from != to, "must change the float format");
		break;
	case R_BITCAST: NEED(a == b && type_is_ptr(from) == type_is_ptr(to), "must keep the width"); break;
	case R_PTR_TO_INT: NEED(type_is_ptr(from) && is_int(to) && b == 64, "must convert pointers to i64"); break;
	case R_INT_TO_PTR: NEED(is_int(from) && a == 64 && type_is_ptr(to), "must convert i64 to pointers"); break;
	default: tl_unreachable("not a conversion");
	}
	return NULL;
}

/* Checks that r has the dimensions of t in the order of the operation. */
static const char *check_permutation(const struct op *o, const struct type *t, const struct type *r)
{
	u32 seen = 0;
	NEED(r->rank == t->rank, "wrong rank");
	for (int i = 0; i < t->rank; i++) {
		int from = perm_get(o->attr[ATTR_ORDER], i);
		NEED(from < t->rank && !(seen >> from & 1) && r->shape[i] == t->shape[from], "wrong permutation");
		seen |= 1u << from;
	}
	NEED(!(o->attr[ATTR_ORDER] >> (4 * t->rank)), "wrong permutation");
	return NULL;
}

static const char *check_shape_op(const struct op *o, const struct type *t, const struct type *r)
{
	i64 axis = o->attr[ATTR_AXIS];
	NEED(type_is_tensor(r), "the result must be a tile");
	if (o->code == IR_SPLAT) {
		NEED(!type_is_tensor(t) && r->elem == t, "needs a scalar of the result's element type");
		return NULL;
	}
	NEED(type_is_tensor(t) && t->elem == r->elem, "operand and result differ in element type");
	switch (o->code) {
	case IR_EXPAND_DIMS:
		NEED(r->rank == t->rank + 1 && axis >= 0 && axis < r->rank && r->shape[axis] == 1, "wrong axis");
		for (int i = 0; i < t->rank; i++)
			NEED(r->shape[i + (i >= axis)] == t->shape[i], "wrong shape");
		break;
	case IR_BROADCAST:
		NEED(r->rank == t->rank, "wrong rank");
		for (int i = 0; i < t->rank; i++)
			NEED(r->shape[i] == t->shape[i] || t->shape[i] == 1, "wrong shape");
		break;
	case IR_RESHAPE: NEED(type_numel(t) == type_numel(r), "the number of elements changes"); break;
	case IR_TRANS: return check_permutation(o, t, r);
	default: tl_unreachable("not a shape operation");
	}
	return NULL;
}

/* Checks that `pair` has the shape of `half` and an additional last dimension of 2. Tiles of one dimension cannot be
 * split into scalars. */
static const char *check_pair(const struct type *half, const struct type *pair)
{
	NEED(type_is_tensor(half) && type_is_tensor(pair) && half->elem == pair->elem,
	     "needs tiles of one element type");
	NEED(pair->rank == half->rank + 1 && pair->shape[half->rank] == 2 &&
		     !memcmp(pair->shape, half->shape, (size_t)half->rank * sizeof(i32)),
	     "the joined tile has the shape of a half and a new last dimension of 2");
	return NULL;
}

static const char *check_memory(const struct op *o)
{
	const struct type *p = operand(o, 0)->type;
	NEED(type_is_ptr(p) && p->kind != TY_MEMDESC, "the first operand must be a pointer");
	const struct type *elem = type_elem(p)->elem;
	u32 value = o->code == IR_LOAD ? 2 : 1, mask = o->code == IR_LOAD ? 1 : 2, last = 3;
	if (o->code == IR_ATOMIC_CAS)
		mask = last;
	if (value < o->noperands) {
		const struct type *v = operand(o, value)->type;
		NEED(type_elem(v) == elem && same_shape(v, p), "the value does not fit the pointer");
	}
	if (mask < last && mask < o->noperands)
		NEED(is_i1(operand(o, mask)->type) && same_shape(operand(o, mask)->type, p),
		     "the mask does not fit the pointer");
	if (o->nresults)
		NEED(type_elem(result(o)->type) == elem && same_shape(result(o)->type, p), "wrong result type");
	return NULL;
}

/* Checks the types of atomics: integers of 32 and 64 bits; floats of at least 16 bits for additions, of 16 bits for
 * maximum and minimum; any number of at least 16 bits for exchange and compare-and-swap. */
static const char *check_atomic(const struct op *o)
{
	const char *what = check_memory(o);
	if (what)
		return what;
	const struct type *t = operand(o, 1)->type;
	int bits = type_elem_bits(t);
	bool swaps = o->code == IR_ATOMIC_CAS || o->attr[ATTR_RMW] == RMW_EXCH;
	if (o->code == IR_ATOMIC_CAS)
		NEED(operand(o, 2)->type == t, "the two values differ in type");
	if (swaps) {
		NEED(type_elem(t)->kind == TY_SCALAR && bits >= 16, "needs numbers of 16 bits or more");
		return NULL;
	}
	switch (o->attr[ATTR_RMW]) {
	case RMW_FADD: NEED(is_float(t) && bits >= 16, "needs floats of 16 bits or more"); break;
	case RMW_MAX:
	case RMW_MIN:
		if (is_float(t) && bits == 16)
			break;
		/* fallthrough */
	default: NEED(is_int(t) && bits >= 32, "needs integers of 32 or 64 bits"); break;
	}
	return NULL;
}

static const char *check_dot(const struct op *o)
{
	const struct type *a = operand(o, 0)->type, *b = operand(o, 1)->type, *c = operand(o, 2)->type;
	bool tiles = type_is_tensor(a) && type_is_tensor(b), memory = a->kind == TY_MEMDESC && b->kind == TY_MEMDESC;
	NEED((tiles || memory) && type_is_tensor(c), "needs tiles");
	int r = a->rank;
	NEED((r == 2 || r == 3) && b->rank == r && c->rank == r, "needs tiles of rank 2 or 3");
	NEED(a->shape[r - 1] == b->shape[r - 2] && c->shape[r - 2] == a->shape[r - 2] &&
		     c->shape[r - 1] == b->shape[r - 1],
	     "the shapes do not match");
	NEED(r == 2 || (a->shape[0] == b->shape[0] && a->shape[0] == c->shape[0]), "the batch sizes differ");
	NEED(c == result(o)->type, "accumulator and result differ in type");
	NEED(is_int(a) == is_int(c) && is_int(b) == is_int(c) && type_elem_bits(a) == type_elem_bits(b),
	     "operand and accumulator types do not match");
	return NULL;
}

static const char *check_reduce(const struct op *o)
{
	const struct type *t = operand(o, 0)->type;
	const struct block *b = o->blocks[0];
	i64 axis = o->attr[ATTR_AXIS];
	NEED(o->nresults == o->noperands && b->nargs == 2 * o->noperands, "wrong number of results or arguments");
	NEED(b->last->code == (o->code == IR_REDUCE ? IR_REDUCE_RETURN : IR_SCAN_RETURN) &&
		     b->last->noperands == o->noperands,
	     "the region must return one value per operand");
	for (u32 i = 0; i < o->noperands; i++) {
		const struct type *x = operand(o, i)->type, *r = o->results[i].type;
		NEED(type_is_tensor(x) && axis >= 0 && axis < x->rank && same_shape(x, t), "operands differ in shape");
		NEED(type_elem(r) == x->elem && b->args[i]->type == x->elem &&
			     b->args[i + o->noperands]->type == x->elem && operand(b->last, i)->type == x->elem,
		     "the region's types do not match");
		if (o->code == IR_SCAN) {
			NEED(r == x, "a scan keeps its operand's type");
			continue;
		}
		NEED(r->rank == x->rank - 1, "a reduction drops one dimension");
		for (int d = 0; d < r->rank; d++)
			NEED(r->shape[d] == x->shape[d + (d >= axis)], "wrong result shape");
	}
	return NULL;
}

static const char *check_map(const struct op *o)
{
	const struct block *b = o->blocks[0];
	NEED(o->attr[0] == 1, "pack must be 1 here");
	NEED(b->last->code == IR_MAP_RETURN && b->nargs == o->noperands && b->last->noperands == o->nresults &&
		     o->nresults,
	     "the region must take one value per operand and return one per result");
	for (u32 i = 0; i < o->noperands; i++)
		NEED(type_is_tensor(operand(o, i)->type) && same_shape(operand(o, i)->type, operand(o, 0)->type) &&
			     b->args[i]->type == operand(o, i)->type->elem,
		     "operands and the region's arguments do not match");
	for (u32 i = 0; i < o->nresults; i++)
		NEED(type_is_tensor(o->results[i].type) && same_shape(o->results[i].type, operand(o, 0)->type) &&
			     operand(b->last, i)->type == o->results[i].type->elem,
		     "results and the values that the region returns do not match");
	return NULL;
}

static const char *check_histogram(const struct op *o)
{
	const struct type *t = operand(o, 0)->type, *r = result(o)->type;
	NEED(type_is_tensor(t) && t->rank == 1 && is_int(t) && type_elem_bits(t) == 32,
	     "the operand must be a one-dimensional tile of 32-bit integers");
	NEED(type_is_tensor(r) && r->rank == 1 && is_int(r) && type_elem_bits(r) == 32,
	     "the result must be a one-dimensional tile of 32-bit integers");
	if (o->noperands > 1)
		NEED(is_i1(operand(o, 1)->type) && same_shape(operand(o, 1)->type, t), "the mask does not fit");
	return NULL;
}

static const char *check_gather(const struct op *o)
{
	const struct type *from = operand(o, 0)->type, *index = operand(o, 1)->type;
	i64 axis = o->attr[ATTR_AXIS];
	NEED(type_is_tensor(from) && type_is_tensor(index) && is_int(index), "needs a tile, and a tile of integers");
	NEED(from->rank == index->rank && axis < from->rank,
	     "tile and index must have the same rank, greater than the axis");
	for (int d = 0; d < from->rank; d++)
		NEED(d == axis || from->shape[d] == index->shape[d],
		     "the shapes differ in a dimension other than the axis");
	NEED(type_is_tensor(result(o)->type) && result(o)->type->elem == from->elem &&
		     same_shape(result(o)->type, index),
	     "the result must have the shape of the index");
	return NULL;
}

static const char *check_for(const struct op *o)
{
	const struct block *b = o->blocks[0];
	NEED(b->nargs && b->args[0]->type->kind == TY_SCALAR && type_elem_bits(b->args[0]->type) >= 8,
	     "the index must be a scalar integer");
	NEED(o->noperands == FOR_INITS + o->nresults && b->nargs == 1u + o->nresults,
	     "wrong number of iteration values");
	NEED(b->last && b->last->code == IR_YIELD && b->last->noperands == o->nresults,
	     "must yield the iteration values");
	for (u32 i = 0; i < FOR_INITS; i++)
		NEED(operand(o, i)->type == for_index(o)->type && is_int(for_index(o)->type), "bounds differ in type");
	for (u32 i = 0; i < o->nresults; i++) {
		const struct type *t = o->results[i].type;
		NEED(for_init(o, i)->type == t && for_arg(o, i)->type == t && for_yielded(o, i)->type == t,
		     "an iteration value changes type");
	}
	return NULL;
}

static const char *check_if(const struct op *o)
{
	NEED(operand(o, 0)->type->kind == TY_SCALAR && is_i1(operand(o, 0)->type), "needs a scalar i1");
	for (u32 k = 0; k < 2; k++) {
		const struct op *y = o->blocks[k]->last;
		NEED(y && y->code == IR_YIELD && y->noperands == o->nresults, "both branches must yield the results");
		for (u32 i = 0; i < o->nresults; i++)
			NEED(operand(y, i)->type == o->results[i].type, "a branch yields another type");
	}
	return NULL;
}

static const char *check_while(const struct op *o)
{
	const struct block *before = o->blocks[0], *after = o->blocks[1];
	const struct op *c = before->last, *y = after->last;
	NEED(c && c->code == IR_CONDITION && y && y->code == IR_YIELD, "needs a condition and a yield");
	NEED(is_i1(operand(c, 0)->type) && !type_is_tensor(operand(c, 0)->type), "needs a scalar i1 condition");
	NEED(before->nargs == o->noperands && y->noperands == o->noperands && c->noperands == o->nresults + 1u &&
		     after->nargs == o->nresults,
	     "wrong number of iteration values");
	for (u32 i = 0; i < o->noperands; i++)
		NEED(before->args[i]->type == operand(o, i)->type && operand(y, i)->type == operand(o, i)->type,
		     "an iteration value changes type");
	for (u32 i = 0; i < o->nresults; i++)
		NEED(operand(c, i + 1)->type == o->results[i].type && after->args[i]->type == o->results[i].type,
		     "an iteration value changes type");
	return NULL;
}

static const char *check_same(const struct op *o, bool integer, const struct type *r)
{
	const struct type *t = operand(o, 0)->type;
	NEED(integer ? is_int(t) : is_float(t), integer ? "needs integers" : "needs floats");
	for (u32 i = 1; i < o->noperands; i++)
		NEED(operand(o, i)->type == t, "operands differ in type");
	if (op_info[o->code].rule == R_CMPI || op_info[o->code].rule == R_CMPF)
		NEED(is_i1(r) && same_shape(r, t), "the result of a comparison must be i1");
	else
		NEED(r == t, "operands and result differ in type");
	return NULL;
}

/* --- memory of laid-out kernels -------------------------------------------------------------------------------- */

static bool is_buffer(const struct type *t)
{
	return t->kind == TY_MEMDESC && !t->nbuf;
}

static bool is_mbarrier(const struct type *t)
{
	return is_buffer(t) && t->rank == 1 && t->shape[0] == 1 && t->elem->kind == TY_SCALAR &&
	       t->elem->dtype == DT_I64;
}

static const char *check_local(const struct op *o)
{
	bool load = o->code == IR_LOCAL_LOAD;
	const struct type *mem = operand(o, load ? 0 : 1)->type, *tile = load ? result(o)->type : operand(o, 0)->type;
	NEED(is_buffer(mem) && type_is_tensor(tile) && mem->elem == tile->elem && same_sides(mem, tile),
	     "tile and buffer do not match");
	return NULL;
}

static const char *check_memdesc(const struct op *o)
{
	const struct type *r = result(o)->type, *t = o->noperands ? operand(o, 0)->type : r;
	NEED(t->kind == TY_MEMDESC && r->kind == TY_MEMDESC && t->elem == r->elem && t->rank == r->rank,
	     "needs a buffer");
	if (o->code == IR_MEMDESC_INDEX) {
		NEED(is_scalar_int(operand(o, 1)->type, 32), "the index must be an i32");
		NEED(t->nbuf && !r->nbuf && same_sides(t, r) && t->layout == r->layout,
		     "the result must be one buffer of a multi-buffer");
	} else if (o->code == IR_MEMDESC_TRANS) {
		NEED(t->nbuf == r->nbuf, "the number of buffers changes");
		return check_permutation(o, t, r);
	}
	return NULL;
}

static const char *check_async_copy(const struct op *o)
{
	const struct type *p = operand(o, 0)->type, *mem = operand(o, 1)->type;
	NEED(type_is_tensor(p) && type_is_ptr(p), "the source must be a tile of pointers");
	NEED(is_buffer(mem) && same_sides(p, mem) && mem->elem == type_elem(p)->elem, "tile and buffer do not match");
	if (o->noperands > 2)
		NEED(is_i1(operand(o, 2)->type) && same_shape(operand(o, 2)->type, p),
		     "the mask does not fit the pointers");
	if (o->noperands > 3)
		NEED(same_shape(operand(o, 3)->type, p) && operand(o, 3)->type->elem == mem->elem,
		     "the value of masked elements does not fit the pointers");
	return NULL;
}

static bool is_parameter(const struct value *v)
{
	return !v->def && !v->block->parent;
}

static const char *check_tma_copy(const struct op *o)
{
	const struct type *p = operand(o, 0)->type, *mem = operand(o, 1)->type;
	NEED(p->kind == TY_PTR && is_buffer(mem) && mem->elem == p->elem,
	     "the operands must be a pointer and a buffer of its element type");
	NEED(is_mbarrier(operand(o, 2)->type), "needs an mbarrier");
	if (o->code == IR_TMA_COPY && mem->rank == 1) {
		NEED(o->noperands == 3, "a copy of one row has no row stride");
		NEED(type_numel(mem) * dtype_bytes(type_dtype(mem)) % 16 == 0,
		     "the size of a row must be a multiple of 16 bytes");
		return NULL;
	}
	NEED(mem->rank == 2, "the buffer must have one or two dimensions");
	NEED(o->attr[ATTR_ALONG] < 2 && o->attr[ATTR_STRIDE] > 0,
	     "rows must be along dimension 0 or 1, with a positive stride");
	bool bounded = o->code == IR_TMA_TENSOR_COPY;
	NEED(!bounded || is_parameter(operand(o, 0)), "the tensor must be a parameter");
	for (u32 i = 3; bounded && i < 5; i++)
		NEED(is_scalar_int(operand(o, i)->type, 32), "the coordinates in the tensor must be i32");
	bool pair = bounded && o->attr[ATTR_COPY_PAIR], moved = o->noperands > 8u + pair;
	NEED(!pair || (o->noperands > 8 && is_scalar_int(operand(o, o->noperands - 1)->type, 1)),
	     "the multicast flag of a CTA pair must be an i1");
	NEED(!pair || mem->shape[1 - o->attr[ATTR_ALONG]] >= 2 * SWIZZLE_ROWS,
	     "a multicast copy to a CTA pair needs at least 16 rows");
	NEED(!moved || operand(o, 8)->type == p, "the start of the tensor must be a pointer of the same type");
	NEED(o->noperands <= 9u + pair, "wrong number of operands");
	return NULL;
}

static const char *check_mbarrier(const struct op *o)
{
	NEED(is_mbarrier(operand(o, 0)->type), "needs an mbarrier, a buffer of one i64");
	if (o->code == IR_WAIT_BARRIER)
		NEED(is_scalar_int(operand(o, 1)->type, 32), "the parity must be an i32");
	if (o->code == IR_ARRIVE_BARRIER && o->noperands > 1)
		NEED(is_scalar_int(operand(o, 1)->type, 1), "the flag of a CTA pair must be an i1");
	return NULL;
}

static const char *check_warp_group_dot(const struct op *o)
{
	const struct type *a = operand(o, 0)->type, *b = operand(o, 1)->type, *c = operand(o, 2)->type;
	const struct type *second = o->attr[ATTR_EXCHANGED] ? a : b;
	NEED(o->nresults == 1 + !!o->attr[ATTR_ASYNC] && (o->nresults == 1 || o->results[1].type->kind == TY_TOKEN),
	     "the results must be a tile and, if it is asynchronous, a token");
	NEED((is_buffer(a) || type_is_tensor(a)) && (is_buffer(b) || type_is_tensor(b)) && is_buffer(second) &&
		     type_is_tensor(c) && c == result(o)->type,
	     "the operands must be a tile or buffer, a buffer, and a tile");
	NEED(a->rank == 2 && b->rank == 2 && c->rank == 2 && a->shape[1] == b->shape[0] && c->shape[0] == a->shape[0] &&
		     c->shape[1] == b->shape[1],
	     "the shapes do not match");
	NEED(type_elem_bits(a) == type_elem_bits(b) && o->attr[ATTR_PRECISION] <= PRECISION_BF16X6,
	     "operand types do not match");
	return NULL;
}

static const char *check_tokens(const struct op *o, u32 first)
{
	for (u32 i = first; i < o->noperands; i++)
		NEED(operand(o, i)->type->kind == TY_TOKEN, "needs tokens");
	return NULL;
}

static const char *check_warp_group_wait(const struct op *o)
{
	NEED(o->nresults <= o->noperands && o->attr[ATTR_PENDING] <= MAX_PENDING_DOTS,
	     "the results must be its tiles, and at most 7 groups of dots may stay pending");
	for (u32 i = 0; i < o->nresults; i++)
		NEED(type_is_tensor(operand(o, i)->type) && o->results[i].type == operand(o, i)->type,
		     "operands and results differ in type");
	return check_tokens(o, o->nresults);
}

/* Checks a region for one thread or warp, which has neither arguments nor results. */
static const char *check_region(const struct op *o)
{
	const struct block *b = o->blocks[0];
	NEED(!b->nargs && b->last->code == IR_YIELD && !b->last->noperands, "the region takes and yields nothing");
	if (o->code != IR_PARTITION)
		return NULL;
	const i64 *a = o->attr;
	NEED(!o->block->parent || op_ends_early(o->block->parent),
	     "must be in the kernel's body, or in a branch that contains the rest of the body");
	NEED(a[ATTR_MORE_WARPS] >= 1 && a[ATTR_MORE_WARPS] <= MAX_PARTITION_WARPS, "must have 1 to 4 warps");
	NEED(!a[ATTR_REGISTERS] == !a[ATTR_OTHER_REGISTERS],
	     "must set the register counts of both partitions, or of neither");
	for (int i = ATTR_REGISTERS; i <= ATTR_OTHER_REGISTERS; i++)
		NEED(!a[i] || (a[i] >= 24 && a[i] <= 256 && a[i] % 8 == 0),
		     "register counts must be multiples of 8 from 24 to 256");
	return NULL;
}

/* --- placement of operations in regions ------------------------------------------------------------------------ */

static const char *check_terminator(const struct op *o)
{
	const struct op *in = o->block->parent;
	switch (op_info[o->code].rule) {
	case R_RETURN: NEED(!in, "must end the kernel, not a region"); break;
	case R_COMBINED:
		NEED(in && in->code == (o->code == IR_REDUCE_RETURN ? IR_REDUCE
					: o->code == IR_SCAN_RETURN ? IR_SCAN
								    : IR_MAP),
		     "must end a region of the operation that it belongs to");
		break;
	case R_CONDITION:
		NEED(in && in->code == IR_WHILE && o->block == in->blocks[0], "must end the first region of scf.while");
		break;
	default:
		NEED(in && (in->code == IR_FOR || in->code == IR_IF || op_info[in->code].rule == R_REGION ||
			    (in->code == IR_WHILE && o->block == in->blocks[1])),
		     "must end a loop, a branch or a region");
		break;
	}
	return NULL;
}

/* Checks the region of a reduction, scan or map. It runs for elements in any order, on any thread. Its only possible
 * effects are reports about elements (prints and assertions, which may stop the kernel). */
static const char *check_combine_region(const struct op *o)
{
	const struct op *in = o->block->parent;
	while (in && !op_runs_on_elements(in))
		in = in->block->parent;
	if (!in)
		return NULL;
	bool control = op_is_loop(o) || o->code == IR_IF || op_has(o, END);
	NEED(control || op_is_report(o) || (op_has(o, PURE) && !op_has(o, SYNC)),
	     "is not allowed in a region that runs on elements, which must be pure");
	for (u32 i = 0; i < o->noperands; i++)
		NEED(operand(o, i)->type->kind == TY_SCALAR || operand(o, i)->type->kind == TY_PTR,
		     "has a tile operand in a region that runs on elements");
	for (u32 i = 0; i < o->nresults; i++)
		NEED(o->results[i].type->kind == TY_SCALAR || o->results[i].type->kind == TY_PTR,
		     "has a tile result in a region that runs on elements");
	return NULL;
}

/* Checks attributes against their kinds. */
static const char *check_attributes(const struct op *o)
{
	const struct attr_info *a;
	for (u32 i = 0; (a = attr_at(o->code, i)); i++) {
		const char *const *values = attr_enum(a->kind);
		i64 v = o->attr[a->slot], most = 0;
		while (values && values[most])
			most++;
		NEED(!values || (v >= 0 && v < most), "an attribute has an unknown value");
		switch (a->kind) {
		case KIND_unit:
		case KIND_bool: NEED(v == 0 || v == 1, "a boolean attribute must be true or false"); break;
		case KIND_size: NEED(v >= 0 && v <= INT32_MAX, "an attribute is out of range"); break;
		case KIND_count: NEED(v >= 1 && v <= INT32_MAX, "an attribute is out of range"); break;
		case KIND_i32: NEED(v >= INT32_MIN && v <= INT32_MAX, "an attribute is out of range"); break;
		case KIND_str: NEED(o->text, "its text is missing"); break;
		case KIND_name: NEED(v, "its text is missing"); break;
		default: break;
		}
	}
	return NULL;
}

static const char *check_constant(const struct op *o)
{
	const struct type *r = result(o)->type;
	NEED(r->kind != TY_MEMDESC && !type_is_ptr(r), "must be a number");
	NEED(type_elem_bits(r) == 64 || !((u64)o->attr[ATTR_VALUE] >> type_elem_bits(r)),
	     "the number does not fit its type");
	return NULL;
}

static const char *check_print(const struct op *o)
{
	for (u32 i = 0; i < o->noperands; i++)
		NEED(operand(o, i)->type->kind != TY_MEMDESC, "prints numbers and pointers");
	return NULL;
}

static const char *check_inline_asm(const struct op *o)
{
	NEED((o->code == IR_PURE_ASM) == o->attr[ATTR_PURE], "'pure' does not fit the operation");
	NEED(o->nresults, "must have a result");
	for (u32 i = 0; i < o->noperands; i++)
		NEED(same_shape(operand(o, i)->type, o->results[0].type), "operands and results differ in shape");
	for (u32 i = 1; i < o->nresults; i++)
		NEED(same_shape(o->results[i].type, o->results[0].type), "the results differ in shape");
	struct asm_form form;
	return inline_asm_form(o, &form);
}

/* True if o may take tokens: waits, and loops and branches that carry them. */
static bool takes_tokens(const struct op *o)
{
	switch (op_info[o->code].rule) {
	case R_FOR:
	case R_WHILE:
	case R_YIELD:
	case R_CONDITION:
	case R_ASYNC_WAIT:
	case R_WARP_GROUP_WAIT: return true;
	default: return false;
	}
}

static const char *check_types(const struct op *o)
{
	for (u32 i = 0; i < o->noperands; i++)
		NEED(operand(o, i)->type->kind != TY_TOKEN || takes_tokens(o),
		     "only waits, and loops and branches that carry it, may use a token");
	static const struct type none = {.kind = TY_SCALAR};
	const struct type *r = o->nresults ? o->results[0].type : &none;
	const struct type *t = o->noperands ? operand(o, 0)->type : &none;
	switch (op_info[o->code].rule) {
	case R_ALONE:
		NEED(o->code != IR_PINGPONG_ARRIVE || o->attr[ATTR_ONLY] <= 2, "the warpgroup must be 1 or 2");
		NEED(o->code != IR_BARRIER ||
			     !!o->attr[ATTR_WARP] + !!o->attr[ATTR_WARPGROUP] + !!o->attr[ATTR_CLUSTER] <= 1,
		     "a barrier has one scope: warp, warpgroup or cluster");
		return NULL;
	case R_INT:
	case R_CMPI: return check_same(o, true, r);
	case R_FLOAT:
	case R_CMPF: return check_same(o, false, r);
	case R_SELECT:
		NEED(operand(o, 1)->type == r && operand(o, 2)->type == r && r->kind != TY_MEMDESC,
		     "the values differ in type");
		NEED(is_i1(t) && (!type_is_tensor(t) || same_shape(t, r)),
		     "the condition must be i1 of the same shape");
		return NULL;
	case R_CONSTANT: return check_constant(o);
	case R_MAKE_RANGE:
		NEED(type_is_tensor(r) && r->rank == 1 && r->elem->kind == TY_SCALAR && r->elem->dtype == DT_I32 &&
			     o->attr[ATTR_END] - o->attr[ATTR_START] == r->shape[0],
		     "the range does not fit the result");
		return NULL;
	case R_UNSPLAT:
		NEED(type_is_tensor(t) && type_numel(t) == 1 && t->elem == r, "needs a one-element tile");
		return NULL;
	case R_SPLAT:
	case R_EXPAND_DIMS:
	case R_BROADCAST:
	case R_RESHAPE:
	case R_TRANS: return check_shape_op(o, t, r);
	case R_JOIN: NEED(operand(o, 1)->type == t, "the halves differ in type"); return check_pair(t, r);
	case R_SPLIT: NEED(o->results[1].type == r, "the halves differ in type"); return check_pair(r, t);
	case R_ADDPTR:
		NEED(type_is_ptr(t) && is_int(operand(o, 1)->type) && same_shape(t, operand(o, 1)->type) && r == t,
		     "the operands must be pointers and integers of one shape");
		return NULL;
	case R_LOAD:
	case R_STORE: return check_memory(o);
	case R_ATOMIC: return check_atomic(o);
	case R_DOT: return check_dot(o);
	case R_REDUCE:
	case R_SCAN: return check_reduce(o);
	case R_MAP: return check_map(o);
	case R_HISTOGRAM: return check_histogram(o);
	case R_GATHER: return check_gather(o);
	case R_PROGRAM: NEED(is_scalar_int(r, 32), "the result must be an i32"); return NULL;
	case R_MASK: NEED(is_i1(t), "needs i1"); return NULL;
	case R_PRINT: return check_print(o);
	case R_FOR: return check_for(o);
	case R_IF: return check_if(o);
	case R_WHILE: return check_while(o);
	case R_COMBINED:
	case R_YIELD:
	case R_CONDITION:
	case R_RETURN: return check_terminator(o);
	case R_CONVERT:
		NEED(type_is_tensor(t) && type_is_tensor(r) && t->elem == r->elem && same_sides(t, r),
		     "may change the layout only");
		return NULL;
	case R_LOCAL: return check_local(o);
	case R_ALLOC:
	case R_MEMDESC_INDEX:
	case R_MEMDESC_TRANS: return check_memdesc(o);
	case R_ASYNC_COPY: return check_async_copy(o);
	case R_TOKEN: NEED(r->kind == TY_TOKEN, "the result must be a token"); return NULL;
	case R_ASYNC_WAIT: return check_tokens(o, 0);
	case R_WARP_GROUP_DOT: return check_warp_group_dot(o);
	case R_WARP_GROUP_WAIT: return check_warp_group_wait(o);
	case R_REGION: NEED(!o->noperands || is_scalar_int(t, 1), "needs a scalar i1"); return check_region(o);
	case R_MBARRIER: return check_mbarrier(o);
	case R_TMA_COPY: return check_tma_copy(o);
	case R_INLINE_ASM: return check_inline_asm(o);
	default: return check_cast(o, t, r);
	}
}

/* True if v's definition is visible at o: it comes earlier in o's block, or in an enclosing block. */
static bool visible(const struct value *v, const struct op *o)
{
	const struct block *b = v->def ? v->def->block : v->block;
	while (o && o->block != b)
		o = o->block->parent;
	return o && (!v->def || v->def->mark < o->mark);
}

struct checker {
	const struct kernel *k;
	struct diags *report;
	const struct type *tile; /* the first tile found */
	bool ok;
	const char *op, *what; /* otherwise the operation and the error message */
};

/* The number of regions of an operation. */
static u32 num_regions(const struct op *o)
{
	switch (op_info[o->code].rule) {
	case R_IF:
	case R_WHILE: return 2;
	case R_FOR:
	case R_REGION:
	case R_REDUCE:
	case R_SCAN:
	case R_MAP: return 1;
	default: return 0;
	}
}

/* True for layouts and buffers, which exist only in laid-out kernels. */
static bool is_placed(const struct type *t)
{
	return t->kind == TY_MEMDESC || t->layout;
}

static const char *check_unplaced(const struct op *o)
{
	NEED(!op_has(o, PLACED) && (o->code != IR_BARRIER || (!o->attr[ATTR_WARPGROUP] && !o->attr[ATTR_CLUSTER])),
	     "is allowed in laid-out GPU IR only, whose module has a ttg.target");
	for (u32 i = 0; i < o->nresults; i++)
		NEED(!is_placed(o->results[i].type),
		     "its result is a buffer or has a layout, but the module has no ttg.target");
	for (u32 i = 0; i < o->nblocks; i++)
		for (u32 j = 0; j < o->blocks[i]->nargs; j++)
			NEED(!is_placed(o->blocks[i]->args[j]->type),
			     "a region argument is a buffer or has a layout, but the module has no ttg.target");
	return NULL;
}

/* Checks that either all tiles of a kernel have layouts or none has. */
static const char *check_like_others(struct checker *c, const struct op *o)
{
	for (u32 i = 0; i < o->nresults; i++) {
		const struct type *t = o->results[i].type;
		if (!type_is_tensor(t))
			continue;
		c->tile = c->tile ? c->tile : t;
		NEED(!t->layout == !c->tile->layout, "some tiles have layouts, and others do not");
	}
	return NULL;
}

/* Checks the operands from which the host builds the copy's tensor map. */
static const char *check_tensor_map(const struct kernel *k, const struct op *o)
{
	for (u32 i = o->code == IR_TMA_TENSOR_COPY ? 5 : 3; i < MIN(o->noperands, 8); i++) {
		struct launch_product unused;
		struct value *v = operand(o, i);
		bool size = o->code == IR_TMA_TENSOR_COPY && i < 7;
		NEED(v->type->kind == TY_SCALAR && (size ? is_host_sum : is_launch_product)(k, v, &unused),
		     "sizes and row stride must be integer parameters, constants, or products of these; a positive "
		     "constant may be added to a size");
	}
	return NULL;
}

static const char *check_op(const struct kernel *k, const struct op *o)
{
	const struct op_info *info = &op_info[o->code];
	const char *what;
	NEED(o->noperands >= (u32)info->min_operands, "wrong number of operands");
	NEED(info->max_operands < 0 || o->noperands <= (u32)info->max_operands, "wrong number of operands");
	NEED(info->results < 0 || o->nresults == (u32)info->results, "wrong number of results");
	NEED(op_has(o, END) == (o->next == NULL), "a block must end in its terminator, and only there");
	NEED(o->nblocks == num_regions(o), "wrong number of regions");
	for (u32 i = 0; i < o->noperands; i++)
		NEED(visible(operand(o, i), o), "uses a value before its definition");
	for (u32 i = 0; i < o->nblocks; i++)
		NEED(o->blocks[i]->parent == o && o->blocks[i]->last && op_has(o->blocks[i]->last, END),
		     "a region does not end in a terminator");
	if ((what = check_attributes(o)) || (what = check_combine_region(o)))
		return what;
	if (!k->target && (what = check_unplaced(o)))
		return what;
	if (op_is_tensor_copy(o) && (what = check_tensor_map(k, o)))
		return what;
	return check_types(o);
}

static void check_block(struct checker *c, const struct block *b)
{
	for (const struct op *o = b->first; o && c->ok; o = o->next) {
		const char *what = check_op(c->k, o);
		what = what ? what : check_like_others(c, o);
		if (what) {
			c->ok = false;
			c->op = op_info[o->code].name;
			c->what = what;
			if (c->report)
				diag(c->report, E_IR_INVALID, o->loc, c->op, what);
			return;
		}
		for (u32 i = 0; i < o->nblocks; i++)
			check_block(c, o->blocks[i]);
	}
}

bool kernel_verify(const struct kernel *k, const char *what, struct diags *report)
{
	struct checker c = {.k = k, .report = report, .ok = true};
	number_ops(k->body, 1); /* turns "defined before" into a comparison of numbers */
	check_block(&c, k->body);
	if (!c.ok && !report) {
		struct crash_scope s = {.what = what, .dump = kernel_dump, .arg = k};
		crash_enter(&s);
		fault_raise(FAULT_BUG, "internal error: invalid IR: %s: %s", c.op, c.what);
	}
	return c.ok;
}
