/* Builtins that access memory: loads, stores, atomics. */
#include "frontend/builtin_args.h"
#include "ir/text.h"

static bool arg_pointer(struct eval *e, const struct args *a, struct val *out)
{
	*out = a->at[0];
	if (out->kind == V_TENSOR && out->pointers)
		return true;
	eval_error(e, E_NOT_A_POINTER, a->loc[0], a->b->name, describe(e, out));
	if (out->kind == V_NONE)
		diag_hint(e->diags, "if a pointer may be None, guard its use: `if ptr is not None:`");
	return false;
}

/* A compile-time constant such as True is converted to an i1 value, like a computed mask. */
bool arg_mask(struct eval *e, const struct args *a, u32 i, struct val *out)
{
	*out = a->at[i];
	if (out->kind == V_NONE)
		return true;
	if (!arg_tensor(e, a, i, out))
		return false;
	if (out->dtype != DT_I1 || out->pointers) {
		*out = eval_error(e, E_MASK_TYPE, a->loc[i], describe(e, out));
		return false;
	}
	return true;
}

static bool no_block_pointer_options(struct eval *e, const struct args *a, u32 boundary, u32 padding)
{
	for (u32 k = 0; k < 2; k++) {
		u32 i = k ? padding : boundary;
		if (!i || (a->at[i].kind == V_TUPLE && !a->at[i].nitems) || (a->at[i].kind == V_STR && !a->at[i].len) ||
		    a->at[i].kind == V_NONE)
			continue;
		eval_error(e, E_BLOCK_POINTER_OPTION, a->loc[i], arg_name(e, a, i));
		return false;
	}
	return true;
}

/* Views a pointer to int1 as a pointer to int8: in memory an int1 occupies a byte. */
static struct val memory_pointer(struct eval *e, struct val p, struct loc at)
{
	if (p.pointers == 1 && p.dtype == DT_I1)
		return bitcast_to(e, p, (struct val){.kind = V_TYPE, .dtype = DT_I8, .pointers = 1}, at);
	return p;
}

struct val bi_load(struct eval *e, const struct args *a)
{
	/* in the order of the enum; stores have other modifiers */
	static const char *const caches[] = {"", ".ca", ".cg", "", ".cs", "", ".cv", NULL};
	struct val p, mask, other = a->at[2];
	i64 cache, evict;
	bool is_volatile;
	if (a->at[0].kind == V_OBJECT)
		return load_block(e, a);
	if (!arg_pointer(e, a, &p) || !arg_mask(e, a, 1, &mask) || !arg_choice(e, a, 5, caches, &cache) ||
	    !arg_choice(e, a, 6, attr_enum(KIND_evict), &evict) || !arg_bool(e, a, 7, &is_volatile) ||
	    !no_block_pointer_options(e, a, 3, 4))
		return val_error();

	if (mask.kind == V_NONE && other.kind != V_NONE)
		return eval_error(e, E_OTHER_WITHOUT_MASK, a->loc[2]);
	if (other.kind != V_NONE && !arg_tensor(e, a, 2, &other))
		return val_error();
	if (!is_tile(&p) && (is_tile(&mask) || is_tile(&other)))
		return eval_error(e, E_SCALAR_POINTER_MASK, is_tile(&mask) ? a->loc[1] : a->loc[2],
				  is_tile(&mask) ? "mask" : "other");
	if (is_tile(&p) && mask.kind != V_NONE && !broadcast_pair(e, &p, &mask, a->loc[1]))
		return val_error();
	if (is_tile(&p) && other.kind != V_NONE && !broadcast_pair(e, &p, &other, a->loc[2]))
		return val_error();
	if (is_tile(&p) && mask.kind != V_NONE) /* `other` may have broadcast the pointer */
		mask = broadcast_to(e, mask, p.ssa->type->rank, p.ssa->type->shape, a->loc[1]);
	bool boolean = p.pointers == 1 && p.dtype == DT_I1;
	p = memory_pointer(e, p, a->loc[0]);
	if (p.pointers > 1 && other.kind != V_NONE)
		return eval_error(e, E_POINTER_OTHER, a->loc[2]);
	if (other.kind != V_NONE)
		other = cast_to(e, other, p.dtype, ROUND_DEFAULT, a->loc[2]);
	if (other.kind == V_ERROR || mask.kind == V_ERROR)
		return val_error();
	const struct type *t = type_with_elem(e->ctx, p.ssa->type, type_elem(p.ssa->type)->elem);
	struct value *v = build3(&e->b, IR_LOAD, t, p.ssa, mask.kind == V_NONE ? NULL : mask.ssa,
				 other.kind == V_NONE ? NULL : other.ssa);
	v->def->attr[ATTR_CACHE] = cache;
	v->def->attr[ATTR_EVICT] = evict;
	v->def->attr[ATTR_VOLATILE] = is_volatile;
	struct val r = val_tensor(v, p.dtype, p.pointers - 1);
	return boolean ? cast_to(e, r, DT_I1, ROUND_DEFAULT, a->loc[0]) : r;
}

/* A pointer argument that may be stored through. */
static bool arg_target(struct eval *e, const struct args *a, struct val *p)
{
	if (!arg_pointer(e, a, p))
		return false;
	if (p->is_const)
		eval_error(e, E_STORE_CONST, a->loc[0], a->b->name, describe_type(e, p));
	return !p->is_const;
}

/* True if the shapes fit: stores and atomics never broadcast a scalar pointer. */
static bool fits_pointer(struct eval *e, const struct args *a, const struct val *p, const struct val *v,
			 const struct val *mask)
{
	if (is_tile(p) || !(is_tile(v) || is_tile(mask)))
		return true;
	eval_error(e, E_STORE_SCALAR_POINTER, is_tile(v) ? a->loc[1] : a->loc[2],
		   describe_type(e, is_tile(v) ? v : mask));
	diag_hint(e->diags, "a store never widens its pointer: add offsets to it, as in ptr + tl.arange(0, N)");
	return false;
}

struct val bi_store(struct eval *e, const struct args *a)
{
	static const char *const caches[] = {"", "", ".cg", ".wb", ".cs", ".wt", "", NULL};
	struct val p, v, mask;
	i64 cache, evict;
	if (a->at[0].kind == V_OBJECT)
		return store_block(e, a);
	if (!arg_target(e, a, &p) || !arg_tensor(e, a, 1, &v) || !arg_mask(e, a, 2, &mask) ||
	    !arg_choice(e, a, 4, caches, &cache) || !arg_choice(e, a, 5, attr_enum(KIND_evict), &evict) ||
	    !no_block_pointer_options(e, a, 3, 0))
		return val_error();

	if (!fits_pointer(e, a, &p, &v, &mask))
		return val_error();
	const struct type *t = p.ssa->type;
	v = broadcast_to(e, v, t->rank, t->shape, a->loc[1]);
	if (mask.kind != V_NONE)
		mask = broadcast_to(e, mask, t->rank, t->shape, a->loc[2]);
	/* the stored byte is 1 unless v is 0: int1 is a byte in memory */
	if (p.pointers == 1 && p.dtype == DT_I1 && v.kind != V_ERROR)
		v = cast_to(e, v, DT_I1, ROUND_DEFAULT, a->loc[1]);
	p = memory_pointer(e, p, a->loc[0]);
	if (v.kind == V_ERROR || mask.kind == V_ERROR || p.kind == V_ERROR)
		return val_error();
	if (p.pointers > 1)
		v = bitcast_to(e, v, (struct val){.kind = V_TYPE, .dtype = p.dtype, .pointers = p.pointers - 1},
			       a->loc[1]);
	else
		v = cast_to(e, v, p.dtype, ROUND_DEFAULT, a->loc[1]);
	if (v.kind == V_ERROR && a->at[1].kind == V_TENSOR && a->at[1].pointers)
		diag_hint(e->diags, "to store the value at a pointer, load it first: tl.store(q, tl.load(p))");
	if (v.kind == V_ERROR)
		return v;
	struct value *ops[] = {p.ssa, v.ssa, mask.kind == V_NONE ? NULL : mask.ssa};
	struct op *o = build(&e->b, IR_STORE, ops, mask.kind == V_NONE ? 2 : 3, NULL, 0, 0);
	o->attr[ATTR_CACHE] = cache;
	o->attr[ATTR_EVICT] = evict;
	return val_none();
}

static bool arg_ordering(struct eval *e, const struct args *a, u32 i, i64 *sem, i64 *scope)
{
	if (!arg_choice(e, a, i, attr_enum(KIND_sem), sem) || !arg_choice(e, a, i + 1, attr_enum(KIND_scope), scope))
		return false;
	if (a->at[i].kind == V_NONE)
		*sem = SEM_ACQ_REL;
	return true;
}

/* True if the hardware has this atomic, or if a 16-bit compare-and-swap can emulate it. */
static bool atomic_type(struct eval *e, const struct args *a, const struct val *p)
{
	int bits = dtype_bits(p->dtype), code = a->b->code;
	bool is_float = dtype_is_float(p->dtype), ok;
	switch (code) {
	case RMW_AND:
	case RMW_OR:
	case RMW_XOR: ok = bits >= 32 && !is_float; break;
	case RMW_EXCH: ok = bits >= 16; break; /* also compare-and-swap */
	default: ok = bits >= (is_float ? 16 : 32); break;
	}
	ok &= p->pointers == 1;
	if (!ok)
		eval_error(e, E_ATOMIC_TYPE, a->loc[0], a->b->name, describe_type(e, p));
	return ok;
}

/* An atomic maximum or minimum of 32-bit or 64-bit floats. The hardware has none, so the library builds it from integer
 * atomics. */
static struct val float_extremum(struct eval *e, const struct args *a, struct val p, struct val v)
{
	const struct val in[] = {p, v, a->at[2], a->at[3], a->at[4], val_bool(a->b->code == RMW_MAX)};
	return call_std(e, "_atomic_extremum", in, ARRAY_LEN(in));
}

struct val bi_atomic(struct eval *e, const struct args *a)
{
	struct val p, v, mask;
	i64 sem, scope;
	if (!arg_target(e, a, &p) || !arg_tensor(e, a, 1, &v) || !arg_mask(e, a, 2, &mask) ||
	    !arg_ordering(e, a, 3, &sem, &scope) || !atomic_type(e, a, &p) || !fits_pointer(e, a, &p, &v, &mask))
		return val_error();
	bool f = dtype_is_float(p.dtype), u = dtype_is_unsigned(p.dtype);
	const struct type *t = p.ssa->type;
	v = cast_to(e, broadcast_to(e, v, t->rank, t->shape, a->loc[1]), p.dtype, ROUND_DEFAULT, a->loc[1]);
	if (mask.kind != V_NONE)
		mask = broadcast_to(e, mask, t->rank, t->shape, a->loc[2]);
	if (v.kind == V_ERROR || mask.kind == V_ERROR)
		return val_error();
	enum rmw_kind k = (enum rmw_kind)a->b->code;
	if (f && dtype_bits(p.dtype) >= 32 && (k == RMW_MAX || k == RMW_MIN))
		return float_extremum(e, a, p, v);
	k = k == RMW_ADD && f ? RMW_FADD : k == RMW_MAX && u ? RMW_UMAX : k == RMW_MIN && u ? RMW_UMIN : k;
	const struct type *r = type_with_elem(e->ctx, t, type_elem(t)->elem);
	struct value *x = build3(&e->b, IR_ATOMIC_RMW, r, p.ssa, v.ssa, mask.kind == V_NONE ? NULL : mask.ssa);
	x->def->attr[ATTR_RMW] = k;
	x->def->attr[ATTR_SEM] = sem;
	x->def->attr[ATTR_SCOPE] = scope;
	return val_tensor(x, p.dtype, 0);
}

struct val bi_atomic_cas(struct eval *e, const struct args *a)
{
	struct val p, c, v;
	i64 sem, scope;
	if (!arg_target(e, a, &p) || !arg_tensor(e, a, 1, &c) || !arg_tensor(e, a, 2, &v) ||
	    !arg_ordering(e, a, 3, &sem, &scope) || !atomic_type(e, a, &p))
		return val_error();
	const struct type *t = p.ssa->type;
	bool same_width = dtype_is_int(v.dtype) && dtype_is_int(p.dtype) && dtype_bits(v.dtype) == dtype_bits(p.dtype);
	enum dtype d = same_width && !v.pointers ? v.dtype : p.dtype; /* the signedness of the new value */
	c = cast_to(e, broadcast_to(e, c, t->rank, t->shape, a->loc[1]), p.dtype, ROUND_DEFAULT, a->loc[1]);
	v = cast_to(e, broadcast_to(e, v, t->rank, t->shape, a->loc[2]), p.dtype, ROUND_DEFAULT, a->loc[2]);
	if (c.kind == V_ERROR || v.kind == V_ERROR)
		return val_error();
	const struct type *r = type_with_elem(e->ctx, t, type_elem(t)->elem);
	struct value *x = build3(&e->b, IR_ATOMIC_CAS, r, p.ssa, c.ssa, v.ssa);
	x->def->attr[ATTR_SEM] = sem;
	x->def->attr[ATTR_SCOPE] = scope;
	return val_tensor(x, d, 0);
}
