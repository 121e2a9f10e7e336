/* What a debugger knows of a kernel: source lines, and variables.
 *
 * Only for targets with `lines`, whose code is made for it: nothing is moved (compile.c, target/cpu.c), each named tile
 * lies in memory of its own from where it is computed on, and each operation has loops of its own (plan.c). A variable
 * has a slot of the stack, which gets each value of that name in turn. */
#include <llvm-c/DebugInfo.h>

#include "host/internal.h"

struct variable {
	const char *name;
	LLVMMetadataRef type;
	LLVMValueRef slot;
	LLVMMetadataRef about, expression, where;
};

struct debug {
	LLVMDIBuilderRef d;
	LLVMMetadataRef file, scope;
	VEC(struct variable) variables;
	u32 count; /* of parameters */
};

void host_debug_begin(struct host *h)
{
	const struct source *src = h->s->diags->sources.at[h->k->loc.file];
	if (!h->s->target->lines || !src)
		return;
	struct debug *g = h->debug = arena_new(&h->scratch, struct debug);
	const char *slash = strrchr(src->name, '/'), *base = slash ? slash + 1 : src->name;
	g->d = LLVMCreateDIBuilder(h->mod);
	g->file = LLVMDIBuilderCreateFile(g->d, base, strlen(base), slash ? src->name : ".",
					  slash ? (size_t)(slash - src->name) : 1);
	LLVMDIBuilderCreateCompileUnit(g->d, LLVMDWARFSourceLanguageC, g->file, "tlc", 3, true, "", 0, 0, "", 0,
				       LLVMDWARFEmissionFull, 0, false, false, "", 0, "", 0);
	LLVMMetadataRef t = LLVMDIBuilderCreateSubroutineType(g->d, g->file, NULL, 0, LLVMDIFlagZero);
	u32 line = h->k->loc.line;
	const char *name = h->k->name;
	g->scope = LLVMDIBuilderCreateFunction(g->d, g->file, name, strlen(name), name, strlen(name), g->file, line, t,
					       false, true, line, LLVMDIFlagZero, true);
	LLVMSetSubprogram(h->fn, g->scope);
	LLVMAddModuleFlag(h->mod, LLVMModuleFlagBehaviorWarning, "Debug Info Version", 18,
			  LLVMValueAsMetadata(host_i32(h, LLVMDebugMetadataVersion())));
	LLVMMetadataRef begin = LLVMDIBuilderCreateDebugLocation(h->ctx, line, 0, g->scope, NULL);
	LLVMSetCurrentDebugLocation2(h->b, begin); /* the entry is the prologue, behind which debuggers stop */
}

void host_debug_location(struct host *h, struct loc at)
{
	if (h->debug && at.file == h->k->loc.file && at.line)
		LLVMSetCurrentDebugLocation2(
			h->b, LLVMDIBuilderCreateDebugLocation(h->ctx, at.line, at.col, h->debug->scope, NULL));
}

static LLVMMetadataRef basic(struct debug *g, const char *name, u64 bits, LLVMDWARFTypeEncoding encoding)
{
	return LLVMDIBuilderCreateBasicType(g->d, name, strlen(name), bits, encoding, LLVMDIFlagZero);
}

/* Formats that C does not have are shown as their bits. */
static LLVMMetadataRef element_type(struct debug *g, const struct type *t)
{
	enum { BOOLEAN = 2, FLOAT = 4, SIGNED = 5, UNSIGNED = 7 }; /* DW_ATE_* */
	if (t->kind == TY_PTR)
		return LLVMDIBuilderCreatePointerType(g->d, element_type(g, t->elem), 64, 64, 0, "", 0);
	enum dtype d = t->dtype;
	if (d == DT_I1)
		return basic(g, "bool", 8, BOOLEAN);
	bool plain = d == DT_F16 || d == DT_F32 || d == DT_F64;
	return basic(g, dtype_name(d), (u64)dtype_bits(d), plain ? FLOAT : dtype_is_float(d) ? UNSIGNED : SIGNED);
}

static LLVMMetadataRef array_type(struct debug *g, const struct type *t, const struct buffer *b)
{
	LLVMMetadataRef elem = element_type(g, type_elem(t)), ranges[MAX_RANK];
	i64 n = 1;
	bool plain = true;
	for (int d = t->rank - 1; d >= 0; d--) {
		plain &= b->stride[d] == n || t->shape[d] == 1;
		ranges[d] = LLVMDIBuilderGetOrCreateSubrange(g->d, 0, t->shape[d]);
		n *= t->shape[d];
	}
	LLVMMetadataRef all = LLVMDIBuilderGetOrCreateSubrange(g->d, 0, n);
	bool shaped = plain && t->rank;
	u64 bits = (u64)n * (u64)((type_elem_bits(t) + 7) / 8) * 8;
	return LLVMDIBuilderCreateArrayType(g->d, bits, 8, elem, shaped ? ranges : &all, shaped ? (u32)t->rank : 1);
}

/* The slot of a variable whose value it has, or with `deref` points to. Names are assigned to more than once. */
static LLVMValueRef slot_for(struct host *h, const char *name, LLVMMetadataRef type, LLVMTypeRef t, bool deref,
			     u32 line, bool parameter)
{
	struct debug *g = h->debug;
	for (u32 i = 0; i < g->variables.len; i++)
		if (!strcmp(g->variables.at[i].name, name) && g->variables.at[i].type == type)
			return g->variables.at[i].slot;
	LLVMValueRef slot = LLVMBuildAlloca(h->entry, t, "");
	LLVMBuildStore(h->entry, LLVMConstNull(t), slot);
	u64 op = 6; /* DW_OP_deref */
	LLVMMetadataRef about =
		parameter ? LLVMDIBuilderCreateParameterVariable(g->d, g->scope, name, strlen(name), ++g->count,
								 g->file, line, type, true, LLVMDIFlagZero)
			  : LLVMDIBuilderCreateAutoVariable(g->d, g->scope, name, strlen(name), g->file, line, type,
							    true, LLVMDIFlagZero, 0);
	vec_push(&h->scratch, &g->variables,
		 ((struct variable){name, type, slot, about, LLVMDIBuilderCreateExpression(g->d, &op, deref),
				    LLVMDIBuilderCreateDebugLocation(h->ctx, line, 0, g->scope, NULL)}));
	return slot;
}

void host_debug_parameters(struct host *h)
{
	struct debug *g = h->debug;
	if (!g)
		return;
	u32 line = h->k->loc.line;
	LLVMMetadataRef range = LLVMDIBuilderGetOrCreateSubrange(g->d, 0, 3);
	LLVMMetadataRef three = LLVMDIBuilderCreateArrayType(g->d, 96, 32, basic(g, "uint32", 32, 7), &range, 1);
	LLVMBuildStore(h->entry, h->pid, slot_for(h, "program_id", three, h->ptr, true, line, true));
	for (u32 i = 0; i < h->k->nparams; i++) {
		const struct kernel_param *p = &h->k->params[i];
		LLVMValueRef x = host_scalar(h, p->value);
		if (type_elem_bits(p->value->type) == 1)
			x = LLVMBuildZExt(h->entry, x, h->i8, "");
		LLVMBuildStore(h->entry, x,
			       slot_for(h, p->name, element_type(g, p->value->type), LLVMTypeOf(x), false, line, true));
	}
}

void host_debug_value(struct host *h, const struct value *v, struct loc at)
{
	if (!h->debug || !v->name)
		return;
	const struct info *i = info_of(h, v);
	LLVMMetadataRef type;
	LLVMValueRef x;
	if (type_is_tensor(v->type)) {
		if (!i->made || i->buffer->operand != DT_COUNT || i->buffer->panel)
			return;
		x = i->buffer->at;
		type = array_type(h->debug, v->type, i->buffer);
	} else {
		x = i->scalar;
		if (!x)
			return;
		if (type_elem_bits(v->type) == 1)
			x = LLVMBuildZExt(h->b, x, h->i8, "");
		type = element_type(h->debug, v->type);
	}
	LLVMBuildStore(h->b, x, slot_for(h, v->name, type, LLVMTypeOf(x), type_is_tensor(v->type), at.line, false));
}

void host_debug_end(struct host *h)
{
	struct debug *g = h->debug;
	if (!g)
		return;
	LLVMValueRef last = LLVMGetBasicBlockTerminator(LLVMGetInsertBlock(h->entry));
	for (u32 i = 0; i < g->variables.len; i++) {
		const struct variable *v = &g->variables.at[i];
		LLVMDIBuilderInsertDeclareRecordBefore(g->d, v->slot, v->about, v->expression, v->where, last);
	}
	LLVMDIBuilderFinalize(g->d);
	LLVMDisposeDIBuilder(g->d);
}
