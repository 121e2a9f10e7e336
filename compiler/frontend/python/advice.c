/* Hints for names that users of other languages and libraries try: names of CUDA, functions of torch and numpy. */
#include "frontend/frontend_internal.h"

struct advice {
	const char *name, *instead;
};

static const char *find_advice(const struct advice *list, u32 n, const char *name)
{
	for (u32 i = 0; i < n; i++)
		if (!strcmp(list[i].name, name))
			return list[i].instead;
	return NULL;
}

/* Undefined names. */
static const struct advice names[] = {
	{"blockIdx", "tl.program_id(0) is the program's number along the first axis of the grid"},
	{"gridDim", "tl.num_programs(0) is the grid's length along the first axis"},
	{"threadIdx", "a program works on whole tiles, not threads: tl.arange(0, BLOCK) numbers a tile's elements"},
	{"blockDim", "a program works on tiles whose length is a parameter, as in BLOCK: tl.constexpr"},
	{"warpSize", "a program works on whole tiles: the compiler distributes them over the warps"},
	{"__syncthreads", "leave it out: the compiler inserts the barriers that the threads of a program need"},
	{"atomicAdd", "write tl.atomic_add(pointer, value)"},
	{"atomicCAS", "write tl.atomic_cas(pointer, compare, value)"},
	{"printf", "write tl.device_print(\"text\", x)"},
	{"inf", "write float(\"inf\")"},
	{"nan", "write float(\"nan\")"},
	{"pow", "write libdevice.pow(x, y)"},
};

/* Functions and tile attributes of torch or numpy that tl does not have under that name. Only operations. */
static const struct advice members[] = {
	{"relu", "write tl.maximum(x, 0.0)"},
	{"gelu", "write 0.5 * x * (1 + tl.erf(x * 0.70710678))"},
	{"silu", "write x * tl.sigmoid(x)"},
	{"tanh", "write libdevice.tanh(x); libdevice comes from triton.language.extra"},
	{"pow", "write libdevice.pow(x, y); libdevice comes from triton.language.extra"},
	{"power", "write libdevice.pow(x, y); libdevice comes from triton.language.extra"},
	{"round", "write libdevice.rint(x); libdevice comes from triton.language.extra"},
	{"isnan", "write x != x, which is true of NaN only"},
	{"isinf", "write libdevice.isinf(x); libdevice comes from triton.language.extra"},
	{"mean", "write tl.sum(x, axis) / n"},
	{"prod", "write tl.reduce(x, axis, f) with a jit function f(a, b) that multiplies"},
	{"any", "write tl.max(x.to(tl.int32), axis) != 0"},
	{"all", "write tl.min(x.to(tl.int32), axis) != 0"},
	{"square", "write x * x"},
	{"matmul", "write tl.dot(a, b)"},
	{"mm", "write tl.dot(a, b)"},
	{"bmm", "write tl.dot(a, b)"},
	{"transpose", "write tl.trans(x), or x.T"},
	{"t", "write x.T"},
	{"concat", "write tl.cat(x, y), or tl.join(x, y) for a new dimension"},
	{"concatenate", "write tl.cat(x, y), or tl.join(x, y) for a new dimension"},
	{"stack", "write tl.join(x, y)"},
	{"empty", "write tl.zeros(shape, dtype)"},
	{"ones", "write tl.full(shape, 1, dtype)"},
	{"tensor", "write tl.full(shape, value, dtype), or the number alone"},
	{"clip", "write tl.clamp(x, low, high)"},
	{"astype", "write x.to(dtype)"},
	{"type_as", "write x.to(y.dtype)"},
	{"float", "write x.to(tl.float32)"},
	{"half", "write x.to(tl.float16)"},
	{"double", "write x.to(tl.float64)"},
	{"int", "write x.to(tl.int32)"},
	{"long", "write x.to(tl.int64)"},
	{"bool", "write x != 0"},
	{"size", "x.shape is the tuple of a tile's dimensions"},
	{"ndim", "write len(x.shape)"},
	{"dim", "write len(x.shape)"},
	{"len", "write x.shape[0]"},
	{"stride", "a pointer has no strides: pass them as parameters"},
	{"clone", "leave it out: tiles are immutable values"},
	{"copy", "leave it out: tiles are immutable values"},
	{"contiguous", "leave it out: a tile has no strides"},
	{"thread_id", "a program works on whole tiles, not threads: tl.arange(0, BLOCK) numbers a tile's elements"},
	{"syncthreads", "leave it out: the compiler inserts the barriers that the threads of a program need"},
	{"shared", "leave it out: the compiler manages shared memory"},
	{"printf", "write tl.device_print(\"text\", x)"},
	{"print", "write tl.device_print(\"text\", x)"},
};

/* Members of triton.language and its modules that exist in some version of Triton and that tlc lacks. */
static const char *const only_triton[] = {
	"slice", "str_to_ty", "tensor_descriptor_type", "void", "convert_custom_float8_sm70",
	"convert_custom_float8_sm80",
	"experimental_device_tensormap_create1d", "experimental_device_tensormap_create2d",
	"experimental_tensormap_fenceproxy_acquire", "_experimental_reinterpret_tensor_descriptor",
};

bool triton_has(const char *name)
{
	for (u32 i = 0; i < ARRAY_LEN(only_triton); i++)
		if (!strcmp(only_triton[i], name))
			return true;
	return false;
}

/* The type that torch or numpy call by that name, or NULL. */
static const char *type_name(const char *name)
{
	static const struct advice aliases[] = {
		{"float", "float32"}, {"half", "float16"}, {"double", "float64"}, {"int", "int32"}, {"long", "int64"},
		{"short", "int16"}, {"bool", "int1"}, {"bool_", "int1"}, {"float8_e4m3fn", "float8e4nv"},
		{"float8_e5m2", "float8e5"}};
	const char *alias = find_advice(aliases, ARRAY_LEN(aliases), name);
	return alias ? alias : dtype_parse(name, strlen(name)) != DT_COUNT ? name : NULL;
}

static bool in_tl(struct eval *e, const char *name)
{
	const struct builtin *b = builtin_find(NS_TL, name, strlen(name));
	return name[0] != '_' && (b || library_function(e, name));
}

bool advise_member(struct eval *e, const char *name)
{
	const char *instead = find_advice(members, ARRAY_LEN(members), name);
	enum dtype d = dtype_parse(name, strlen(name));
	if (!instead && d != DT_COUNT)
		instead = arena_printf(e->arena, "write tl.%s", dtype_tl_name(d));
	if (instead)
		diag_hint(e->diags, "%s", instead);
	return instead != NULL;
}

/* Advice for `module.name` of a host module. */
bool advise_host(struct eval *e, const char *module, const char *name)
{
	static const char *const arrays[] = {"torch", "np", "numpy", "jnp", "jax", "cupy", "F"};
	const char *type = name ? type_name(name) : NULL;
	bool known = false;
	for (u32 i = 0; i < ARRAY_LEN(arrays); i++)
		known |= !strcmp(module, arrays[i]) || !strcmp(module, "math");
	if (!known || !name)
		return false;
	if (type)
		diag_hint(e->diags, "kernels use the types of triton.language: tl.%s", type);
	else if (in_tl(e, name))
		diag_hint(e->diags, "write tl.%s: %s works on tensors of the host, and a kernel on tiles", name,
			  module);
	else
		return advise_member(e, name);
	return true;
}

bool advise_name(struct eval *e, const char *name)
{
	const char *instead = find_advice(names, ARRAY_LEN(names), name);
	if (instead)
		diag_hint(e->diags, "%s", instead);
	else if (in_tl(e, name))
		diag_hint(e->diags, "did you mean 'tl.%s'?", name);
	else
		return false;
	return true;
}

/* Advice for a call that lacks an argument: an example of a correct call. */
bool advise_call(struct eval *e, const char *function)
{
	static const struct advice calls[] = {
		{"arange", "write tl.arange(0, N), which counts from 0 to N - 1"},
		{"program_id", "write tl.program_id(0), the program's number along the grid's first axis"},
		{"num_programs", "write tl.num_programs(0), the length of the grid's first axis"},
		{"zeros", "write tl.zeros((M, N), tl.float32)"},
		{"full", "write tl.full((M, N), value, tl.float32)"},
		{"store", "write tl.store(pointer, value, mask=…)"},
		{"where", "write tl.where(condition, x, y), with values for both cases"},
	};
	const char *how = find_advice(calls, ARRAY_LEN(calls), function);
	if (how)
		diag_hint(e->diags, "%s", how);
	return how != NULL;
}

void advise_value(struct eval *e, const struct val *v)
{
	static const struct advice types[] = {{"float", "tl.float32"}, {"int", "tl.int32"}, {"bool", "tl.int1"}};
	const char *type = v->kind == V_BUILTIN ? find_advice(types, ARRAY_LEN(types), v->builtin->name) : NULL;
	if (type)
		diag_hint(e->diags, "the type of numbers is %s", type);
	else if (v->kind == V_FUNC || v->kind == V_BUILTIN || v->kind == V_METHOD)
		diag_hint(e->diags, "call a function with parentheses around its arguments");
	else if (v->kind == V_FLOAT)
		diag_hint(e->diags, "// divides integers, as in BLOCK // 2");
	else if (v->kind == V_INT && v->integer == -1)
		diag_hint(
			e->diags,
			"write out the length: the number of elements divided by the product of the other dimensions");
}

void note_origin(struct eval *e, const struct val *v, struct loc at)
{
	const struct op *o = v->kind == V_TENSOR ? v->ssa->def : NULL;
	struct loc here = user_loc(e, at);
	while (o && o->noperands == 1 && !o->nblocks && o->loc.line == here.line && o->loc.file == here.file)
		o = operand(o, 0)->def;
	if (!o || !o->loc.file || (o->loc.line == here.line && o->loc.file == here.file))
		return;
	diag(e->diags, N_ORIGIN, o->loc, describe_type(e, v));
}
