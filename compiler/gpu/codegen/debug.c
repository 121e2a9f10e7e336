/* Debugging support: device_print, device_assert, and source lines in the PTX. */
#include "gpu/codegen/nvptx_internal.h"

/* arguments of a line: three program indices, the element's indices, its value */
enum { MOST_PRINTED = 3 + MAX_RANK + 1 };

/* --- text ---------------------------------------------------------------------------------------------------- */

static LLVMValueRef global_string(struct lower *l, const char *s)
{
	LLVMValueRef c = LLVMConstStringInContext2(l->ctx, s, strlen(s), false);
	const char *name = arena_printf(&l->scratch, "text_%u", l->nstrings++);
	LLVMValueRef g = add_constant(l->mod, c, name, LLVMInternalLinkage, 1);
	return LLVMBuildAddrSpaceCast(l->b, g, LLVMPointerTypeInContext(l->ctx, 0), "");
}

/* vprintf(format, args). args points to a buffer with each argument at its natural alignment (CUDA C++ guide,
 * "Formatted output"). */
static void emit_printf(struct lower *l, const char *format, LLVMValueRef *args, u32 n)
{
	LLVMTypeRef types[MOST_PRINTED];
	for (u32 i = 0; i < n; i++)
		types[i] = LLVMTypeOf(args[i]);
	LLVMTypeRef pack_type = LLVMStructTypeInContext(l->ctx, types, n, false);
	LLVMValueRef buffer = LLVMBuildAlloca(l->entry, pack_type, "");
	for (u32 i = 0; i < n; i++)
		LLVMBuildStore(l->b, args[i], LLVMBuildStructGEP2(l->b, pack_type, buffer, i, ""));
	LLVMValueRef call[] = {global_string(l, format), buffer};
	intrinsic(l, "vprintf", l->i32, call, 2);
}

/* v converted as C converts variadic arguments (to 32 bits at least, floats to double). Sets *spec to the format
 * specifier. */
static LLVMValueRef promoted(struct lower *l, LLVMValueRef v, enum dtype d, bool is_signed, bool hex, const char **spec)
{
	int bits = type_bits(LLVMTypeOf(v));
	if (LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMPointerTypeKind) {
		*spec = "%p";
		return v;
	}
	if (dtype_is_float(d)) {
		*spec = hex ? "%a" : "%f";
		return d == DT_F64 ? v : LLVMBuildFPExt(l->b, small_to_f32(l, v, d), l->f64, "");
	}
	if (hex) {
		*spec = bits == 64 ? "0x%016llx" : bits == 32 ? "0x%08x" : bits == 16 ? "0x%04x" : "0x%02x";
		return bits < 32 ? LLVMBuildZExt(l->b, v, l->i32, "") : v;
	}
	*spec = bits == 64 ? (is_signed ? "%lld" : "%llu") : is_signed ? "%d" : "%u";
	if (bits >= 32)
		return v;
	return is_signed ? LLVMBuildSExt(l->b, v, l->i32, "") : LLVMBuildZExt(l->b, v, l->i32, "");
}

/* The number of digits of the largest index along dimension d. */
static int index_digits(const struct layout *lay, int d)
{
	return snprintf(NULL, 0, "%d", (1 << lay->log2_size[d]) - 1);
}

/* Prints one line, "pid (0, 0, 0) idx (3, 4) x: 1.500000", for element r of v, which is operand `index`. Without v it
 * prints only the program indices and the text. */
static void print_line(struct lower *l, const struct op *o, const struct value *v, u32 index, u32 r)
{
	const struct layout *lay = v && type_is_tensor(v->type) ? v->type->layout : NULL;
	struct strbuf f = {.arena = &l->scratch};
	LLVMValueRef args[MOST_PRINTED];
	const char *spec = "";
	u32 n = 0;
	sb_puts(&f, v ? "pid (%u, %u, %u) idx (" : "pid (%u, %u, %u)");
	for (int axis = 0; axis < 3; axis++)
		args[n++] = program_number(l, axis, false);
	for (int d = 0; lay && d < lay->rank; d++) {
		LLVMValueRef c = LLVMBuildOr(l->b, thread_position(l, lay), c_i32(l, layout_apply(lay, r, 0, 0)), "");
		c = LLVMBuildLShr(l->b, c, c_i32(l, layout_dim_shift(lay, d)), "");
		args[n++] = LLVMBuildAnd(l->b, c, c_i32(l, (1 << lay->log2_size[d]) - 1), "");
		sb_printf(&f, d ? ", %%%du" : "%%%du", index_digits(lay, d));
	}
	if (v) {
		sb_puts(&f, ")");
		args[n++] = promoted(l, elem(l, v, r), type_dtype(v->type), o->attr[ATTR_SIGNED] >> index & 1,
				     o->attr[ATTR_HEX], &spec);
	}
	for (const char *s = o->text; *s; s++)
		sb_puts(&f, *s == '%' ? "%%" : (char[]){*s, 0});
	if (o->noperands > 1)
		sb_printf(&f, "(operand %u) ", index);
	sb_printf(&f, "%s\n", spec);
	emit_printf(l, f.at, args, n);
}

/* device_print: one line for each element of each operand, printed by the thread that owns the element (owner). Every
 * thread prints a scalar. */
void lower_print(struct lower *l, const struct op *o)
{
	for (u32 i = 0; i < o->noperands; i++) {
		const struct value *v = operand(o, i);
		struct guarded g = begin_if(l->b, type_is_tensor(v->type) ? owner(l, v->type->layout) : NULL);
		for (u32 r = 0; r < num_elems(v); r++)
			print_line(l, o, v, i, r);
		end_if(l->b, &g);
	}
	if (!o->noperands)
		print_line(l, o, NULL, 0, 0);
}

/* device_assert. With codegen_options.debug, a false condition stops the kernel and reports the message, file and line.
 * Otherwise it emits nothing. */
void lower_assert(struct lower *l, const struct op *o)
{
	const struct value *v = operand(o, 0);
	LLVMValueRef all = NULL;
	if (!l->s->options.debug)
		return;
	for (u32 r = 0; r < num_elems(v); r++)
		all = and_i1(l, all, elem(l, v, r));
	struct guarded g = begin_if(l->b, LLVMBuildNot(l->b, all, ""));
	const struct source *src = l->s->diags->sources.at[o->loc.file];
	LLVMValueRef text = global_string(l, o->text ? o->text : ""), file = global_string(l, src ? src->name : "?");
	LLVMValueRef args[] = {text, file, c_i32(l, o->loc.line), global_string(l, l->k->name), c_i64(l, 1)};
	intrinsic(l, "__assertfail", l->v, args, 5);
	end_if(l->b, &g);
}

/* --- source lines -------------------------------------------------------------------------------------------- */

/* Debug information that becomes line directives (.loc) only: ptxas does not optimize PTX with DWARF sections. */
void debug_begin(struct lower *l)
{
	enum { DIRECTIVES_ONLY = 3 }; /* DICompileUnit::DebugDirectivesOnly, which LLVM's C interface does not name */
	const struct source *src = l->s->diags->sources.at[l->k->loc.file];
	if (!src)
		return;
	LLVMDIBuilderRef d = LLVMCreateDIBuilder(l->mod);
	l->debug_builder = d;
	LLVMMetadataRef file = debug_file(d, src);
	/* NOLINT(clang-analyzer-optin.core.EnumCastOutOfRange) */
	debug_module(d, l->mod, file, (LLVMDWARFEmissionKind)DIRECTIVES_ONLY);
	l->debug_scope = debug_function(d, file, l->k->name, l->k->loc.line);
	LLVMSetSubprogram(l->fn, l->debug_scope);
}

/* The scope of a location: the kernel, or for functions of another file a block of that file. NULL: the
 * source is not known. */
static LLVMMetadataRef scope_of(const struct lower *l, struct loc at)
{
	const struct source *here = l->s->diags->sources.at[at.file];
	const struct source *kernel = l->s->diags->sources.at[l->k->loc.file];
	if (!here)
		return NULL;
	if (here == kernel || !strcmp(here->name, kernel->name))
		return l->debug_scope;
	return LLVMDIBuilderCreateLexicalBlockFile(l->debug_builder, l->debug_scope, debug_file(l->debug_builder, here),
						   0);
}

void debug_location(struct lower *l, struct loc at)
{
	LLVMMetadataRef scope = l->debug_scope && at.file && at.line ? scope_of(l, at) : NULL;
	if (!scope)
		return;
	LLVMMetadataRef loc = LLVMDIBuilderCreateDebugLocation(l->ctx, at.line, at.col, scope, NULL);
	LLVMSetCurrentDebugLocation2(l->b, loc);
}

void debug_end(struct lower *l)
{
	if (!l->debug_builder)
		return;
	LLVMDIBuilderFinalize(l->debug_builder);
	LLVMDisposeDIBuilder(l->debug_builder);
}
