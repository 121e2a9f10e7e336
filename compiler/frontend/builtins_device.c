/* Builtins that use features of the device: assertions and printing, barriers, inline assembly, clocks. */
#include "frontend/builtin_args.h"
#include "ir/inline_asm.h"

/* --- assertions and prints ----------------------------------------------------------------------------------- */

struct val bi_device_assert(struct eval *e, const struct args *a)
{
	struct val v, mask = a->at[2];
	if (!arg_tensor(e, a, 0, &v))
		return v;
	v = cast_to(e, v, DT_I1, ROUND_DEFAULT, a->loc[0]);
	if (mask.kind != V_NONE && v.kind != V_ERROR) {
		if (!arg_tensor(e, a, 2, &mask))
			return val_error();
		mask = cast_to(e, mask, DT_I1, ROUND_DEFAULT, a->loc[2]);
		v = mask.kind == V_ERROR
			    ? mask
			    : binary_op(e, OP_BITOR, v, unary_op(e, OP_INVERT, mask, a->loc[2]), a->loc[0]);
	}
	if (v.kind == V_ERROR)
		return v;
	struct op *o = build(&e->b, IR_ASSERT, &v.ssa, 1, NULL, 0, 0);
	o->text = a->at[1].kind == V_STR ? a->at[1].text : "";
	return val_none();
}

/* The prefix as Triton prints it: before values it ends in ": ", which replaces a final blank. */
static const char *print_prefix(struct eval *e, const char *text, bool values)
{
	size_t n = strlen(text);
	const char *end = "";
	if (values) {
		n -= n && text[n - 1] == ' ';
		n -= n && text[n - 1] == ':';
		end = ": ";
	}
	bool space = n + strlen(end) > 2 && *text != ' ';
	return arena_printf(e->arena, "%s%.*s%s", space ? " " : "", (int)n, text, end);
}

struct val bi_device_print(struct eval *e, const struct args *a)
{
	struct value *ops[8];
	struct val v, list = a->at[1];
	i64 is_signed = 0;
	bool hex;
	if (a->at[0].kind != V_STR) {
		wrong_kind(e, a, 0, "a string");
		diag_hint(e->diags, "the first argument is a string: %s(\"x:\", x)", a->b->name);
		return val_error();
	}
	if (!arg_bool(e, a, 2, &hex))
		return val_error();
	if (list.nitems > ARRAY_LEN(ops))
		return eval_error(e, E_TOO_MANY_ARGS, a->loc[1], a->b->name, 9u, list.nitems + 1);
	for (u32 i = 0; i < list.nitems; i++) {
		v = to_tensor(e, list.items[i], a->loc[1]);
		if (v.kind == V_ERROR)
			return v;
		ops[i] = v.ssa;
		if (v.dtype == DT_E4B15 && !v.pointers)
			ops[i] = cast_to(e, v, DT_F16, ROUND_DEFAULT, a->loc[1]).ssa;
		is_signed |= (i64)dtype_is_signed(v.dtype) << i;
	}
	struct op *o = build(&e->b, IR_PRINT, ops, list.nitems, NULL, 0, 0);
	o->text = print_prefix(e, a->at[0].text, list.nitems != 0);
	o->attr[ATTR_HEX] = hex;
	o->attr[ATTR_SIGNED] = is_signed;
	return val_none();
}

struct val bi_barrier(struct eval *e, const struct args *a)
{
	(void)a;
	build(&e->b, IR_BARRIER, NULL, 0, NULL, 0, 0);
	return val_none();
}

/* The operators as functions, with an argument that disables the overflow check. The result is a run-time value. */
struct val bi_add(struct eval *e, const struct args *a)
{
	struct val v;
	bool check, debug = e->debug;
	if (!arg_bool(e, a, 2, &check))
		return val_error();
	for (u32 i = 0; i < 2; i++)
		if (!val_is_number(&a->at[i]) && !arg_tensor(e, a, i, &v)) /* reports the error */
			return val_error();
	e->debug &= check;
	v = binary_op(e, (enum operator)a->b->code, a->at[0], a->at[1], a->loc[0]);
	e->debug = debug;
	return v;
}

/* --- inline assembly ----------------------------------------------------------------------------------------- */

/* Broadcasts all arguments to their common shape. */
static bool asm_arguments(struct eval *e, const struct args *a, struct val **out, u32 *n)
{
	const struct val *items = items_of(&a->at[2], n);
	struct val *v = arena_array(e->arena, struct val, *n + 1);
	struct val shape = val_none();
	for (u32 i = 0; i < *n; i++) {
		struct args one = {.b = a->b, .at = (struct val *)&items[i], .loc = a->loc + 2, .n = 1};
		if (!arg_tensor(e, &one, 0, &v[i]))
			return false;
		struct val x = v[i];
		if (shape.kind != V_NONE && !broadcast_pair(e, &shape, &x, a->loc[2]))
			return false;
		shape = shape.kind == V_NONE ? x : shape;
	}
	for (u32 i = 0; i < *n && is_tile(&shape); i++) {
		const struct type *t = shape.ssa->type;
		while (is_tile(&v[i]) && v[i].ssa->type->rank < t->rank)
			v[i] = expand_dim(e, v[i], 0);
		v[i] = broadcast_to(e, v[i], t->rank, t->shape, a->loc[2]);
		if (v[i].kind == V_ERROR)
			return false;
	}
	*out = v;
	return true;
}

static bool asm_results(struct eval *e, const struct args *a, const struct type *shape, struct val **out, u32 *n,
			const struct type **types)
{
	const struct val *items = items_of(&a->at[3], n);
	*out = arena_array(e->arena, struct val, *n + 1);
	if (!*n || *n > MAX_ASM_REGISTERS) {
		wrong_kind(e, a, 3, "a dtype, or several");
		return false;
	}
	for (u32 i = 0; i < *n; i++) {
		struct args one = {.b = a->b, .at = (struct val *)&items[i], .loc = a->loc + 3, .n = 1};
		struct val t;
		if (!arg_type(e, &one, 0, &t))
			return false;
		const struct type *elem = type_with_pointers(e, t.dtype, t.pointers);
		types[i] = shape ? type_with_elem(e->ctx, shape, elem) : elem;
		(*out)[i] = val_tensor(NULL, t.dtype, t.pointers);
	}
	return true;
}

static bool arg_text(struct eval *e, const struct args *a, u32 i)
{
	if (a->at[i].kind == V_STR)
		return true;
	wrong_kind(e, a, i, "a string");
	return false;
}

struct val bi_inline_asm(struct eval *e, const struct args *a)
{
	struct val *in, *out;
	const struct type *types[MAX_ASM_REGISTERS];
	u32 nin, nout;
	bool pure;
	i64 pack;
	if (!arg_text(e, a, 0) || !arg_text(e, a, 1) || !arg_bool(e, a, 4, &pure) || !arg_int(e, a, 5, &pack) ||
	    !asm_arguments(e, a, &in, &nin) ||
	    !asm_results(e, a, nin ? in[0].ssa->type : NULL, &out, &nout, types))
		return val_error();
	struct value **ops = arena_array(e->arena, struct value *, nin + 1);
	for (u32 i = 0; i < nin; i++)
		ops[i] = in[i].ssa;
	struct op *o = build(&e->b, pure ? IR_PURE_ASM : IR_INLINE_ASM, ops, nin, types, nout, 0);
	o->text = intern(e->ctx->names, a->at[0].text, a->at[0].len);
	o->attr[ATTR_CONSTRAINTS] = (i64)(uintptr_t)intern(e->ctx->names, a->at[1].text, a->at[1].len);
	o->attr[ATTR_PACK] = pack;
	o->attr[ATTR_PURE] = pure;
	struct asm_form form;
	const char *wrong = inline_asm_form(o, &form);
	if (wrong) {
		struct val r = eval_error(e, E_INLINE_ASM, a->loc[1], wrong);
		u32 results = is_pow2(pack) ? inline_asm_results(o) : form.outputs,
		    operands = is_pow2(pack) ? inline_asm_operands(o) : form.inputs;
		if (form.outputs && (results != form.outputs || operands != form.inputs))
			diag_hint(e->diags, "outputs: %u given, %u needed; inputs: %u given, %u needed", form.outputs,
				  results, form.inputs, operands);
		op_erase(o);
		return r;
	}
	for (u32 i = 0; i < nout; i++)
		out[i].ssa = &o->results[i];
	return a->at[3].kind == V_TUPLE ? val_tuple(out, nout) : out[0];
}

/* --- tl.extra.cuda ------------------------------------------------------------------------------------------- */

/* Returns a compile-time value: the number of warps of a program, or of their threads. */
struct val bi_num_threads(struct eval *e, const struct args *a)
{
	return val_int(a->b->code * e->num_warps);
}

struct val bi_grid_dependency(struct eval *e, const struct args *a)
{
	build(&e->b, (enum opcode)a->b->code, NULL, 0, NULL, 0, 0);
	return val_none();
}

/* --- target queries ------------------------------------------------------------------------------------------ */

struct val bi_target(struct eval *e, const struct args *a)
{
	(void)e;
	return val_bool(a->b->code);
}

struct val bi_capability(struct eval *e, const struct args *a)
{
	i64 major, minor;
	if (!arg_int(e, a, 0, &major) || !arg_int(e, a, 1, &minor))
		return val_error();
	return val_bool((i64)e->capability >= major * 10 + minor);
}
