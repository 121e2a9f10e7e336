/* Semantic actions of the PTX grammar: declarations, labels and instructions of the current kernel. */
#include "runtime/sim/reader_build.h"

#include <stdlib.h>

void ptx_read_error(struct ptx_reader *r, const char *format, ...)
{
	if (r->error)
		return;
	va_list ap;
	va_start(ap, format);
	r->error = arena_printf(r->arena, "line %u: %s", r->line, arena_vprintf(r->arena, format, ap));
	va_end(ap);
}

void ptx_add_file(struct ptx_reader *r, u64 number, const char *name)
{
	enum { MAX_FILES = 4096 }; /* instructions of further files have no place in a source */
	if (number >= MAX_FILES)
		return;
	while (r->files.len <= number)
		vec_push(r->arena, &r->files, NULL);
	r->files.at[number] = name;
	r->module->files = r->files.at;
	r->module->nfiles = r->files.len;
}

void ptx_set_target(struct ptx_reader *r, const char *name)
{
	if (strncmp(name, "sm_", 3))
		ptx_read_error(r, "unknown target '%s'", name);
	r->module->sm = atoi(name + 3);
	r->module->arch_specific = name[strlen(name) - 1] == 'a';
}

/* --- variables ------------------------------------------------------------------------------------------------- */

static u64 element_bytes(enum ptx_type t)
{
	return (u64)MAX(ptx_bits(t), 8) / 8;
}

static u64 place(u64 *end, u64 size, u64 align)
{
	u64 at = (*end + align - 1) / align * align;
	*end = at + size;
	return at;
}

static const u8 *initial_bytes(struct ptx_reader *r, const struct ptx_var *v, const bits_vec *values)
{
	u64 step = element_bytes(v->type);
	u8 *bytes = arena_alloc(r->arena, v->size);
	if (values->len * step > v->size)
		ptx_read_error(r, "too many initial values of '%s'", v->name);
	for (u32 i = 0; i < values->len && (i + 1) * step <= v->size; i++)
		memcpy(bytes + i * step, &values->at[i], step);
	return bytes;
}

static struct ptx_var make_var(enum ptx_space space, u64 align, enum ptx_type type, const char *name, u64 nelems)
{
	u64 step = element_bytes(type);
	return (struct ptx_var){.name = name,
				.space = space,
				.type = type,
				.size = nelems * step,
				.align = align ? align : step};
}

void ptx_add_var(struct ptx_reader *r, enum ptx_space space, u64 align, enum ptx_type type, const char *name,
		    u64 nelems, const bits_vec *init)
{
	struct ptx_var *v = arena_new(r->arena, struct ptx_var);
	*v = make_var(space, align, type, name, nelems);
	if (nelems > 1u << 28 || v->align > 1024 || (v->align & (v->align - 1)))
		ptx_read_error(r, "the size or alignment of '%s' is impossible", name);
	else if (!nelems && space != SPACE_SHARED)
		ptx_read_error(r, "'%s' has no size", name);
	else if (init)
		v->init = initial_bytes(r, v, init);
	if (r->error)
		return;
	switch (space) {
	case SPACE_GLOBAL:
	case SPACE_CONST:
		v->offset = (u64)(uintptr_t)arena_alloc(r->arena, v->size + v->align);
		v->offset = (v->offset + v->align - 1) / v->align * v->align;
		if (v->init)
			memcpy((void *)(uintptr_t)v->offset, v->init, v->size);
		break;
	case SPACE_SHARED: v->offset = place(&r->kernel.shared_bytes, v->size, v->align); break;
	case SPACE_LOCAL: v->offset = place(&r->kernel.local_bytes, v->size, v->align); break;
	case SPACE_PARAM: v->offset = place(&r->kernel.call_bytes, v->size, v->align); break; /* parameter of a call */
	default: break;
	}
	vec_push(r->arena, &r->vars, v);
}

void ptx_add_param(struct ptx_reader *r, u64 align, enum ptx_type type, const char *name, u64 nelems)
{
	struct ptx_var v = make_var(SPACE_PARAM, align, type, name, nelems);
	vec_push(r->arena, &r->params, v);
}

void ptx_add_function(struct ptx_reader *r, const char *name)
{
	vec_push(r->arena, &r->functions, name);
	r->params.len = 0;
}

/* --- kernels and scopes ---------------------------------------------------------------------------------------- */

void ptx_begin_kernel(struct ptx_reader *r, const char *name)
{
	u64 shared = r->shared_bytes;
	if (!r->nkernels_begun++) {
		r->module_vars = r->vars.len;
		shared = r->shared_bytes = r->kernel.shared_bytes;
	}
	r->kernel = (struct ptx_kernel){.name = name, .shared_bytes = shared};
	r->params.len = 0;
	r->src_file = r->src_line = 0;
	r->code = (instr_vec){0};
	r->labels.len = 0;
	r->decls.len = 0;
	r->reg_types = (type_vec){0};
}

void ptx_end_parameters(struct ptx_reader *r)
{
	struct ptx_kernel *k = &r->kernel;
	k->nparams = r->params.len;
	k->params = arena_array(r->arena, struct ptx_var, k->nparams + 1);
	for (u32 i = 0; i < k->nparams; i++) {
		k->params[i] = r->params.at[i];
		k->params[i].offset = place(&k->param_bytes, k->params[i].size, k->params[i].align);
		k->params[i].is_kernel_param = true;
		struct ptx_var *v = &k->params[i];
		vec_push(r->arena, &r->vars, v);
	}
}

void ptx_begin_scope(struct ptx_reader *r)
{
	vec_push(r->arena, &r->scopes, r->decls.len);
	vec_push(r->arena, &r->scopes, r->vars.len);
	vec_push(r->arena, &r->scopes, r->labels.len);
	vec_push(r->arena, &r->scopes, r->code.len);
}

/* Resolves the branches from index `code` on against the labels from index `label` on. */
static void resolve_labels(struct ptx_reader *r, u32 label, u32 code)
{
	for (; code < r->code.len; code++)
		for (u32 n = 0; n < r->code.at[code].nops; n++) {
			struct operand *o = &r->code.at[code].ops[n];
			for (u32 k = label; k < r->labels.len && o->kind == O_LABEL && o->target == UNRESOLVED; k++)
				if (!strcmp(r->labels.at[k].name, o->name))
					o->target = r->labels.at[k].at;
		}
}

void ptx_end_scope(struct ptx_reader *r)
{
	u32 code = r->scopes.at[--r->scopes.len], label = r->scopes.at[--r->scopes.len];
	resolve_labels(r, label, code);
	r->labels.len = label;
	r->vars.len = r->scopes.at[--r->scopes.len];
	r->decls.len = r->scopes.at[--r->scopes.len];
}

void ptx_add_label(struct ptx_reader *r, const char *name)
{
	struct label l = {name, r->code.len};
	u32 first = r->scopes.len ? r->scopes.at[r->scopes.len - 2] : 0;
	for (u32 k = first; k < r->labels.len; k++)
		if (!strcmp(r->labels.at[k].name, name))
			ptx_read_error(r, "the label '%s' is defined twice", name);
	vec_push(r->arena, &r->labels, l);
}

static void check_label(struct ptx_reader *r, const struct instr *i, const struct operand *o)
{
	if (o->kind != O_LABEL || o->target != UNRESOLVED)
		return;
	r->line = i->line;
	ptx_read_error(r, "'%s' is not declared", o->name);
}

void ptx_end_kernel(struct ptx_reader *r)
{
	struct ptx_kernel *k = &r->kernel;
	resolve_labels(r, 0, 0);
	for (u32 i = 0; i < r->code.len; i++)
		for (u32 n = 0; n < r->code.at[i].nops; n++)
			check_label(r, &r->code.at[i], &r->code.at[i].ops[n]);
	u64 align = 16;
	for (u32 i = 0; i < r->vars.len; i++)
		if (r->vars.at[i]->space == SPACE_SHARED && !r->vars.at[i]->size)
			align = MAX(align, r->vars.at[i]->align);
	k->extern_offset = (k->shared_bytes + align - 1) / align * align;
	k->code = r->code.at;
	k->ncode = r->code.len;
	k->nregs = r->reg_types.len;
	k->reg_types = r->reg_types.at;
	for (u32 i = 0; i < r->vars.len; i++)
		if (r->vars.at[i]->space == SPACE_SHARED && !r->vars.at[i]->size)
			r->vars.at[i]->offset = k->extern_offset;
	vec_push(r->arena, &r->kernels, *k);
	r->vars.len = r->module_vars;
}

/* --- registers and operands ------------------------------------------------------------------------------------ */

void ptx_declare_registers(struct ptx_reader *r, const char *name, bool counted, u64 count)
{
	struct reg_decl d = {name, strlen(name), counted, (u32)count, r->reg_types.len, r->reg_type};
	if (count > 1u << 20) {
		ptx_read_error(r, "%llu registers", (ull)count);
		return;
	}
	for (u32 i = 0; i < count; i++)
		vec_push(r->arena, &r->reg_types, r->reg_type);
	vec_push(r->arena, &r->decls, d);
}

static bool find_reg(const struct ptx_reader *r, const char *name, struct operand *o)
{
	size_t len = strlen(name);
	for (u32 k = r->decls.len; k--;) {
		const struct reg_decl *d = &r->decls.at[k];
		if (d->counted ? len <= d->len : len != d->len)
			continue;
		if (memcmp(name, d->prefix, d->len))
			continue;
		char *end = NULL;
		unsigned long n = d->counted ? strtoul(name + d->len, &end, 10) : 0;
		if (d->counted && (*end || n >= d->count || name[d->len] < '0' || name[d->len] > '9'))
			continue;
		*o = (struct operand){.kind = O_REG, .reg = d->first + (u32)n, .has_reg = true, .reg_type = d->type};
		return true;
	}
	return false;
}

static const struct ptx_var *find_var(const struct ptx_reader *r, const char *name)
{
	for (u32 k = r->vars.len; k--;)
		if (!strcmp(r->vars.at[k]->name, name))
			return r->vars.at[k];
	return NULL;
}

struct operand ptx_named(struct ptx_reader *r, const char *name)
{
	struct operand o;
	if (find_reg(r, name, &o))
		return o;
	if (!strcmp(name, "_"))
		return (struct operand){.kind = O_SINK};
	if (name[0] == '%')
		return (struct operand){.kind = O_SPECIAL, .name = name};
	const struct ptx_var *v = find_var(r, name);
	if (v)
		return (struct operand){.kind = O_SYMBOL, .var = v, .name = name};
	for (u32 i = 0; i < r->functions.len; i++)
		if (!strcmp(r->functions.at[i], name))
			return (struct operand){.kind = O_SYMBOL, .name = r->functions.at[i]};
	/* may be a label defined later */
	return (struct operand){.kind = O_LABEL, .name = name, .target = UNRESOLVED};
}

struct operand ptx_address(struct ptx_reader *r, const char *name, u64 offset)
{
	struct operand o = ptx_named(r, name);
	if (o.kind != O_REG && !o.var)
		ptx_read_error(r, "'%s' is not an address", name);
	o.kind = O_ADDRESS;
	o.imm = offset;
	return o;
}

struct operand ptx_vector(const operand_vec *v)
{
	return (struct operand){.kind = O_VECTOR, .items = v->at, .nitems = v->len};
}

void ptx_add_instr(struct ptx_reader *r, const char *guard, bool negated, const char *opcode, const operand_vec *ops)
{
	struct instr i = {.opcode = opcode,
			  .nops = ops->len,
			  .pred = -1,
			  .pred_negated = negated,
			  .line = r->line,
			  .src_file = r->src_file,
			  .src_line = r->src_line};
	struct operand p;
	if (guard && !find_reg(r, guard, &p))
		ptx_read_error(r, "'%s' is not declared", guard);
	else if (guard)
		i.pred = (i32)p.reg;
	if (ops->len > MAX_OPERANDS)
		ptx_read_error(r, "too many operands");
	if (r->error)
		return;
	for (u32 k = 0; k < ops->len; k++)
		i.ops[k] = ops->at[k];
	vec_push(r->arena, &r->code, i);
}
