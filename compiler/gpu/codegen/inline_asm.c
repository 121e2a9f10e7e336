/* The user's inline assembly (inline_asm_elementwise): each thread runs the text for its elements, ATTR_PACK elements
 * at a time. */
#include "ir/inline_asm.h"
#include "gpu/codegen/nvptx_internal.h"

/* The LLVM type of a PTX register of this class, the letter of a constraint. */
static LLVMTypeRef class_type(struct lower *l, char class)
{
	switch (class) {
	case 'f': return l->f32;
	case 'd': return l->f64;
	default: return int_type(l, asm_class_bits(class));
	}
}

/* n elements (together at most 32 bits, or a single element) in a PTX register of this class, zero-extended. */
static LLVMValueRef to_register(struct lower *l, LLVMValueRef *in, u32 n, char class)
{
	LLVMValueRef v;
	pack(l, in, n, (int)n * type_bits(LLVMTypeOf(in[0])), &v);
	LLVMTypeRef whole = int_type(l, asm_class_bits(class));
	return from_bits(l->b, LLVMTypeOf(v) == whole ? v : LLVMBuildZExt(l->b, v, whole, ""), class_type(l, class));
}

static void from_register(struct lower *l, LLVMValueRef v, u32 n, LLVMTypeRef elem_type, LLVMValueRef *out)
{
	LLVMTypeRef part = int_type(l, (int)n * type_bits(elem_type));
	v = to_bits(l->b, v);
	v = LLVMTypeOf(v) == part ? v : LLVMBuildTrunc(l->b, v, part, "");
	unpack(l, &v, 1, elem_type, n, out);
}

/* The constraints without blanks, which LLVM does not accept. */
static const char *constraints_of(struct lower *l, const struct op *o)
{
	struct strbuf sb = {.arena = &l->scratch};
	for (const char *s = (const char *)(uintptr_t)o->attr[ATTR_CONSTRAINTS]; *s; s++)
		if (!strchr(" \t\n", *s))
			sb_add(&sb, s, 1);
	while (sb.len && sb.at[sb.len - 1] == ',')
		sb.at[--sb.len] = 0;
	bool memory = o->code == IR_INLINE_ASM && !strstr(sb.at, "~{memory}") && inline_asm_source(o) == ASM_UNKNOWN;
	sb_puts(&sb, memory ? ",~{memory}" : "");
	return sb.at;
}

/* What all calls of the text of one operation have in common. */
struct call {
	struct asm_form form;
	const char *constraints;
	LLVMTypeRef type; /* of the result */
};

/* Runs the text on ATTR_PACK elements from register `first` on. If the thread has fewer elements, the last one is
 * repeated. */
static void run_text(struct lower *l, const struct op *o, const struct call *c, u32 first, LLVMValueRef **results)
{
	u32 size = (u32)o->attr[ATTR_PACK], n = num_elems(&o->results[0]), at = 0;
	LLVMValueRef args[MAX_ASM_REGISTERS], *in = arena_array(&l->scratch, LLVMValueRef, size);
	for (u32 i = 0; i < o->noperands; i++) {
		u32 per = asm_elements(operand(o, i)->type, size);
		for (u32 k = 0; k < size; k++)
			in[k] = elem(l, operand(o, i), MIN(first + k, n - 1));
		for (u32 k = 0; k < size; k += per, at++)
			args[at] = to_register(l, in + k, per, c->form.class[c->form.outputs + at]);
	}
	LLVMValueRef v = inline_asm(l, o->text, c->constraints, o->code == IR_PURE_ASM ? ASM_PURE : ASM_EFFECT, c->type,
				    args, at);
	at = 0;
	for (u32 i = 0; i < o->nresults; i++) {
		u32 per = asm_elements(o->results[i].type, size);
		for (u32 k = 0; k < size; k += per, at++) {
			LLVMValueRef part = c->form.outputs == 1 ? v : LLVMBuildExtractValue(l->b, v, at, "");
			from_register(l, part, per, llvm_type(l, o->results[i].type), in + k);
		}
		for (u32 k = 0; k < size && first + k < n; k++)
			results[i][first + k] = in[k];
	}
}

void lower_inline_asm(struct lower *l, const struct op *o)
{
	struct call c = {.constraints = constraints_of(l, o)};
	const char *wrong = inline_asm_form(o, &c.form);
	tl_assert(!wrong);
	LLVMTypeRef outputs[MAX_ASM_REGISTERS];
	for (u32 i = 0; i < c.form.outputs; i++)
		outputs[i] = class_type(l, c.form.class[i]);
	c.type = c.form.outputs == 1 ? outputs[0]
				     : LLVMStructTypeInContext(l->ctx, outputs, c.form.outputs, false);
	u32 n = num_elems(&o->results[0]);
	LLVMValueRef **results = arena_array(&l->scratch, LLVMValueRef *, o->nresults);
	for (u32 i = 0; i < o->nresults; i++)
		results[i] = arena_array(&l->scratch, LLVMValueRef, n);
	for (u32 first = 0; first < n; first += (u32)o->attr[ATTR_PACK])
		run_text(l, o, &c, first, results);
	for (u32 i = 0; i < o->nresults; i++)
		set_tile(l, &o->results[i], results[i], n);
}
