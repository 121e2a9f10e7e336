/* Debug information of a kernel: source lines, calls, and variables.
 *
 * Only for targets with `lines`. Their code is generated for debuggers: operations stay in place (compile.c,
 * llvm/emit_object.c), each named tile has separate memory from its definition on, and each operation has separate
 * loops (fusion_plan.c). The evaluator inserts operations for debuggers (IR_DEBUG_*, frontend/debug_info.c), which mark
 * statements, variables and calls. All code from one IR_DEBUG_LINE to the next has one source line, and begins with a
 * store of the line number. So a line that computes nothing has code too, and breakpoints are set on that store. To
 * continue from a breakpoint, a debugger executes the instruction at the breakpoint elsewhere. gdb 13 fails to do so
 * for vector instructions with addresses relative to the program counter.
 *
 * A slot is an alloca for a source variable; each value of that name is stored to it, or for a tile its address. When a
 * variable gets its first value, the next line starts a lexical block (of the debug information), which declares all
 * variables again. A variable with a value has its slot as its location. A variable without a value has no location,
 * which debuggers show as <optimized out>. */
#include "cpu/cpu_internal.h"

/* The number of names of a function that each lexical block declares again. Further names are declared once for the
 * function: before they have a value, debuggers show the initial zero of their slot. The limit bounds the number of
 * debug variables, which is names times blocks. */
enum { MAX_APART = 128 };

struct variable {
	const char *name;
	LLVMMetadataRef type;
	LLVMValueRef slot; /* alloca; NULL: a name without a value so far */
	bool deref;        /* the slot holds the address of the value */
};

/* The kernel, or an inlined call. */
struct function {
	struct function *caller;
	LLVMMetadataRef file, scope, call, block, place;
	u32 line;
	bool changed;               /* variables got or lost values since the start of `block` */
	VEC(struct variable) names; /* names that the function assigns */
	/* one for each pair of name and type: a name may be assigned again with another type */
	VEC(struct variable) slots;
	/* Indices in `slots` of the variables that have a value at the current point, by the position of the first
	 * value in the code. Of several with one name, the last is shown. */
	VEC(u32) live;
};

/* A debug variable `about` with its alloca, emitted by cpu_debug_end. */
struct declaration {
	LLVMValueRef slot;
	LLVMMetadataRef about, expression, where;
};

struct debug {
	LLVMDIBuilderRef d;
	struct function *in;
	bool marked; /* the kernel has operations for debuggers */
	/* Alloca that each source line stores its number to, as an instruction for breakpoints. Never read. */
	LLVMValueRef line;
	u32 count; /* number of parameters declared so far */
	VEC(struct declaration) declarations;
};

static LLVMMetadataRef basic(struct debug *g, const char *name, u64 bits, LLVMDWARFTypeEncoding encoding)
{
	return LLVMDIBuilderCreateBasicType(g->d, name, strlen(name), bits, encoding, LLVMDIFlagZero);
}

/* The debug type of an element. bf16 and fp8, which C does not have, are shown as unsigned integers. */
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

static LLVMMetadataRef variable_type(struct debug *g, const struct type *t)
{
	struct buffer plain = {0};
	i64 n = 1;
	for (int d = t->rank - 1; type_is_tensor(t) && d >= 0; d--, n *= t->shape[d + 1])
		plain.stride[d] = n;
	return type_is_tensor(t) ? array_type(g, t, &plain) : element_type(g, t);
}

/* --- functions and their variables ------------------------------------------------------------------------------- */

static void add_name(struct cpu_codegen *h, struct function *f, const char *name, const struct type *t)
{
	for (u32 i = 0; i < f->names.len; i++)
		if (!strcmp(f->names.at[i].name, name))
			return;
	if (f->names.len < MAX_APART)
		vec_push(&h->scratch, &f->names, ((struct variable){.name = name, .type = variable_type(h->debug, t)}));
}

/* Collects the names of variables that f assigns, from o to the end of f, without those of inlined calls. */
static void collect_names(struct cpu_codegen *h, struct function *f, const struct op *o)
{
	u32 calls = 0;
	for (; o; o = o->next) {
		if (o->code == IR_DEBUG_RETURN && !calls)
			return;
		calls += o->code == IR_DEBUG_CALL;
		calls -= o->code == IR_DEBUG_RETURN;
		if (!calls && o->code == IR_DEBUG_VALUE)
			add_name(h, f, o->text, operand(o, 0)->type);
		for (u32 i = 0; !calls && i < o->nblocks; i++)
			collect_names(h, f, o->blocks[i]->first);
	}
}

/* Enters the kernel or an inlined call: makes the function `name` current. o: its first operation. */
static void enter_function(struct cpu_codegen *h, const char *name, struct loc at, const struct op *o)
{
	struct debug *g = h->debug;
	struct function *f = arena_new(&h->scratch, struct function);
	*f = (struct function){.caller = g->in, .line = at.line, .changed = true};
	f->file = debug_file(g->d, h->s->diags->sources.at[at.file]);
	if (g->in)
		f->call = f->place = g->in->place;
	else
		debug_module(g->d, h->mod, f->file, LLVMDWARFEmissionFull);
	f->scope = f->block = debug_function(g->d, f->file, name, at.line);
	g->in = f;
	collect_names(h, f, o);
}

static LLVMMetadataRef local_variable(struct debug *g, LLVMMetadataRef scope, const struct variable *v)
{
	return LLVMDIBuilderCreateAutoVariable(g->d, scope, v->name, strlen(v->name), g->in->file, g->in->line, v->type,
					       true, LLVMDIFlagZero, 0);
}

static void declare(struct cpu_codegen *h, const struct variable *v, LLVMMetadataRef about, LLVMMetadataRef scope)
{
	struct debug *g = h->debug;
	u64 op = 6; /* DW_OP_deref */
	vec_push(&h->scratch, &g->declarations,
		 ((struct declaration){v->slot, about, LLVMDIBuilderCreateExpression(g->d, &op, v->deref),
				       LLVMDIBuilderCreateDebugLocation(h->ctx, g->in->line, 0, scope, g->in->call)}));
}

static const struct variable *latest(const struct function *f, const char *name)
{
	for (u32 i = f->live.len; i-- > 0;)
		if (!strcmp(f->slots.at[f->live.at[i]].name, name))
			return &f->slots.at[f->live.at[i]];
	return NULL;
}

static void begin_block(struct cpu_codegen *h, struct loc at)
{
	struct debug *g = h->debug;
	struct function *f = g->in;
	f->changed = false;
	f->block = LLVMDIBuilderCreateLexicalBlock(g->d, f->scope, f->file, at.line, at.col);
	for (u32 i = 0; i < f->names.len; i++) {
		const struct variable *v = latest(f, f->names.at[i].name);
		LLVMMetadataRef about = local_variable(g, f->block, v ? v : &f->names.at[i]);
		if (v)
			declare(h, v, about, f->block);
	}
}

static bool is_apart(const struct function *f, const char *name)
{
	for (u32 i = 0; i < f->names.len; i++)
		if (!strcmp(f->names.at[i].name, name))
			return true;
	return false;
}

static LLVMValueRef new_slot(struct cpu_codegen *h, LLVMTypeRef t)
{
	LLVMValueRef slot = LLVMBuildAlloca(h->entry, t, "");
	LLVMBuildStore(h->entry, LLVMConstNull(t), slot);
	return slot;
}

/* The index in `slots` of the variable with that name and type, new if necessary. t: LLVM type of the alloca. */
static u32 slot_of(struct cpu_codegen *h, const char *name, LLVMMetadataRef type, LLVMTypeRef t, bool deref)
{
	struct function *f = h->debug->in;
	u32 i = 0;
	while (i < f->slots.len && (strcmp(f->slots.at[i].name, name) != 0 || f->slots.at[i].type != type))
		i++;
	if (i < f->slots.len)
		return i;
	struct variable v = {name, type, new_slot(h, t), deref};
	vec_push(&h->scratch, &f->slots, v);
	if (!is_apart(f, name))
		declare(h, &v, local_variable(h->debug, f->scope, &v), f->scope);
	return i;
}

/* From the current point on, the variable has the value in slots[slot]. */
static void show_slot(struct cpu_codegen *h, u32 slot)
{
	struct function *f = h->debug->in;
	const char *name = f->slots.at[slot].name;
	if (!is_apart(f, name) || latest(f, name) == &f->slots.at[slot])
		return;
	vec_push(&h->scratch, &f->live, slot);
	f->changed = true;
}

u32 cpu_debug_enter(struct cpu_codegen *h)
{
	return h->debug ? h->debug->in->live.len : 0;
}

void cpu_debug_leave(struct cpu_codegen *h, u32 entered)
{
	struct function *f = h->debug ? h->debug->in : NULL;
	if (!f || f->live.len <= entered)
		return;
	f->live.len = entered;
	f->changed = true;
}

/* --- places ------------------------------------------------------------------------------------------------------ */

static void set_place(struct cpu_codegen *h, struct loc at)
{
	struct function *f = h->debug->in;
	f->place = LLVMDIBuilderCreateDebugLocation(h->ctx, at.line, at.col, f->block, f->call);
	LLVMSetCurrentDebugLocation2(h->b, f->place);
}

static void note_mark(struct op *o, void *arg)
{
	*(bool *)arg |= o->code == IR_DEBUG_LINE;
}

void cpu_debug_begin(struct cpu_codegen *h)
{
	struct loc at = h->k->loc;
	if (!h->s->target->lines || !h->s->diags->sources.at[at.file])
		return;
	struct debug *g = h->debug = arena_new(&h->scratch, struct debug);
	*g = (struct debug){.d = LLVMCreateDIBuilder(h->mod)};
	walk(h->k->body, note_mark, &g->marked);
	enter_function(h, h->k->name, at, h->k->body->first);
	LLVMSetSubprogram(h->fn, g->in->scope);
	g->line = LLVMBuildAlloca(h->entry, h->i32, "");
	set_place(h, (struct loc){.line = at.line}); /* the entry block is the prologue; debuggers stop after it */
}

void cpu_debug_location(struct cpu_codegen *h, struct loc at)
{
	if (h->debug && !h->debug->marked && at.file == h->k->loc.file && at.line)
		set_place(h, at);
}

LLVMMetadataRef cpu_debug_here(struct cpu_codegen *h)
{
	return h->debug ? LLVMGetCurrentDebugLocation2(h->b) : NULL;
}

void cpu_debug_back(struct cpu_codegen *h, LLVMMetadataRef here)
{
	if (h->debug)
		LLVMSetCurrentDebugLocation2(h->b, here);
}

void cpu_debug_order(struct cpu_codegen *h)
{
	LLVMBasicBlockRef here = LLVMGetInsertBlock(h->b), last = LLVMGetLastBasicBlock(h->fn);
	if (h->debug && here != last)
		LLVMMoveBasicBlockAfter(here, last);
}

/* --- operations -------------------------------------------------------------------------------------------------- */

void cpu_debug_parameters(struct cpu_codegen *h)
{
	struct debug *g = h->debug;
	if (!g)
		return;
	u32 line = h->k->loc.line;
	LLVMMetadataRef range = LLVMDIBuilderGetOrCreateSubrange(g->d, 0, 3);
	LLVMMetadataRef three = LLVMDIBuilderCreateArrayType(g->d, 96, 32, basic(g, "uint32", 32, 7), &range, 1);
	for (u32 i = 0; i <= h->k->nparams; i++) {
		const struct kernel_param *p = i ? &h->k->params[i - 1] : NULL;
		const struct type *t = p ? p->value->type : NULL;
		LLVMValueRef x = p ? to_memory(h->entry, cpu_scalar(h, p->value)) : h->pid;
		struct variable v = {p ? p->name : "program_id", p ? element_type(g, t) : three,
				     new_slot(h, LLVMTypeOf(x)), !p};
		LLVMBuildStore(h->entry, x, v.slot);
		declare(h, &v,
			LLVMDIBuilderCreateParameterVariable(g->d, g->in->scope, v.name, strlen(v.name), ++g->count,
							     g->in->file, line, v.type, true, LLVMDIFlagZero),
			g->in->scope);
	}
}

enum { STORE = 1, SHOW = 2 };

/* The variable has the scalar x, or the tile in b. `what` selects whether its slot is set, and whether it is shown
 * from here on. */
static void set_variable(struct cpu_codegen *h, const char *name, const struct type *t, LLVMValueRef x,
			 const struct buffer *b, u32 what)
{
	bool is_tile = type_is_tensor(t);
	if (is_tile && (!b || b->operand != DT_COUNT || b->panel))
		return;
	x = is_tile ? b->at : to_memory(h->b, x);
	LLVMMetadataRef type = is_tile ? array_type(h->debug, t, b) : element_type(h->debug, t);
	u32 slot = slot_of(h, name, type, LLVMTypeOf(x), is_tile);
	if (what & STORE)
		LLVMBuildStore(h->b, x, h->debug->in->slots.at[slot].slot);
	if (what & SHOW)
		show_slot(h, slot);
}

static void show_value(struct cpu_codegen *h, const char *name, const struct value *v, bool stored)
{
	const struct info *i = info_of(h, v);
	LLVMValueRef x = type_is_tensor(v->type) ? NULL : cpu_scalar(h, v);
	set_variable(h, name, v->type, x, i->made ? i->buffer : NULL, stored ? SHOW : STORE | SHOW);
}

/* Whether the variable called `name` has the branch result v after the branch. */
static bool is_assigned_by(const struct op *branch, const struct value *v, const char *name)
{
	for (const struct op *o = branch->next; o && o->code == IR_DEBUG_VALUE; o = o->next)
		if (operand(o, 0) == v && !strcmp(o->text, name))
			return true;
	return false;
}

static bool is_stored(const struct value *v, const char *name)
{
	return v->def && v->def->code == IR_IF && is_assigned_by(v->def, v, name);
}

void cpu_debug_yield(struct cpu_codegen *h, const struct op *branch, u32 i, const struct value *x,
		     const struct buffer *b)
{
	const struct value *v = &branch->results[i];
	for (const struct op *o = branch->next; h->debug && o && o->code == IR_DEBUG_VALUE; o = o->next)
		if (operand(o, 0) == v && !is_stored(x, o->text))
			set_variable(h, o->text, v->type, b ? NULL : cpu_scalar(h, x), b, STORE);
}

void cpu_debug_value(struct cpu_codegen *h, const struct value *v)
{
	if (h->debug && !h->debug->marked && v->name && (type_is_tensor(v->type) || info_of(h, v)->scalar))
		show_value(h, v->name, v, false);
}

void cpu_debug_op(struct cpu_codegen *h, const struct op *o)
{
	struct debug *g = h->debug;
	if (!g)
		return;
	switch (o->code) {
	case IR_DEBUG_LINE:
		if (g->in->changed)
			begin_block(h, o->loc);
		set_place(h, o->loc);
		cpu_debug_order(h);
		LLVMSetVolatile(LLVMBuildStore(h->b, cpu_i32(h, o->loc.line), g->line), true);
		return;
	case IR_DEBUG_VALUE:
		show_value(h, o->text, operand(o, 0), is_stored(operand(o, 0), o->text));
		return;
	case IR_DEBUG_CALL:
		if (h->s->diags->sources.at[o->loc.file])
			enter_function(h, o->text, o->loc, o->next);
		return;
	case IR_DEBUG_RETURN:
		if (!g->in->caller)
			return;
		LLVMSetCurrentDebugLocation2(h->b, g->in->call);
		g->in = g->in->caller;
		return;
	default: tl_unreachable("operation for debuggers");
	}
}

void cpu_debug_end(struct cpu_codegen *h)
{
	struct debug *g = h->debug;
	if (!g)
		return;
	LLVMValueRef last = LLVMGetBasicBlockTerminator(LLVMGetInsertBlock(h->entry));
	for (u32 i = 0; i < g->declarations.len; i++) {
		const struct declaration *x = &g->declarations.at[i];
		LLVMDIBuilderInsertDeclareRecordBefore(g->d, x->slot, x->about, x->expression, x->where, last);
	}
	LLVMDIBuilderFinalize(g->d);
	LLVMDisposeDIBuilder(g->d);
}
