/* The reader of IR text: Triton's TTIR of one inlined kernel, as printed by tlc or Triton. Locations (loc(…)) and
 * unknown attributes are skipped. Laid-out kernels (TTGIR) are read as printed by tlc: see gpu_ir.c. */
#include "ir/import/import.h"
#include "ir/launch_abi.h"

static void read_block(struct reader *r, struct block *b);

struct parsed {
	value_vec operands;
	struct type_vec results;
	struct attrs attrs;
};

static const struct type *infer_type(struct reader *r, enum opcode code, const value_vec *v)
{
	const struct type *t = v->len ? v->at[0]->type : NULL;
	switch (op_info[code].rule) {
	case R_CMPI:
	case R_CMPF: return type_with_dtype(r->ctx, t, DT_I1);
	case R_LOAD: return type_is_ptr(t) ? type_with_elem(r->ctx, t, type_elem(t)->elem) : t;
	case R_UNSPLAT: return type_elem(t);
	case R_TOKEN: return type_token(r->ctx);
	default: return t;
	}
}

/* Reads up to the end of the format, or to a region. */
static void read_format(struct reader *r, enum opcode code, const char *at, struct parsed *out)
{
	while (!r->failed) {
		struct format_token t = format_next(r->ctx->arena, code, &at);
		switch (t.kind) {
		case FMT_END:
		case FMT_REGION: return;
		case FMT_SPACE: break;
		case FMT_OPERAND: read_operand(r, &out->operands); break;
		case FMT_OPTIONAL:
			if (out->operands.len == t.index && rd_accept(r, t.text))
				read_operand(r, &out->operands);
			break;
		case FMT_ALL:
			if (!rd_at(r, '%')) { /* without values there are no types */
				read_dict(r, code, &out->attrs);
				return;
			}
			read_values(r, &out->operands);
			break;
		case FMT_ATTR:
			if (t.attr->kind == KIND_unit)
				out->attrs.slot[t.attr->slot] = rd_accept(r, t.attr->name);
			else
				read_attr_value(r, t.attr, &out->attrs);
			break;
		case FMT_COMMA_ATTR:
		case FMT_KEYED_ATTR:
			if (!rd_accept(r, t.kind == FMT_COMMA_ATTR ? "," : t.attr->name))
				break;
			if (t.kind == FMT_COMMA_ATTR)
				rd_expect(r, t.attr->name);
			rd_expect(r, "=");
			read_attr_value(r, t.attr, &out->attrs);
			break;
		case FMT_DICT: read_dict(r, code, &out->attrs); break;
		case FMT_TYPE: read_type(r); break;
		case FMT_RESULT: vec_push(r->ctx->arena, &out->results, read_type(r)); break;
		case FMT_TYPES:
		case FMT_BARE_TYPES: rd_skip_types(r); break;
		case FMT_LITERAL: rd_expect(r, t.text); break;
		}
	}
}

static void set_attrs(struct op *o, const struct attrs *from)
{
	memcpy(o->attr, from->slot, sizeof o->attr);
	o->text = from->text;
	o->hints = from->hints;
	o->scratch_offset = from->allocated ? from->scratch_offset : -1;
}

static struct op *make(struct builder *b, enum opcode code, const struct parsed *p, u32 nblocks)
{
	struct op *o = build(b, code, p->operands.at, p->operands.len, p->results.at, p->results.len, nblocks);
	set_attrs(o, &p->attrs);
	return o;
}

/* Reads the operations of a region up to its '}'. Adds a missing scf.yield. */
static void read_region(struct reader *r, struct block *b, bool yields)
{
	rd_expect(r, "{");
	read_block(r, b);
	if (yields && !r->failed && (!b->last || b->last->code != IR_YIELD)) {
		struct builder at = builder_at_end(r->ctx, b);
		build(&at, IR_YIELD, NULL, 0, NULL, 0, 0);
	}
}

typedef VEC(const char *) name_list;

/* Reads the loop-carried values of scf.for and scf.while, after '(': `%a = %b, %c = %d)`. Adds %a and %c to names, and
 * %b and %d to the operands. */
static void read_bindings(struct reader *r, name_list *names, struct parsed *p)
{
	do {
		vec_push(r->ctx->arena, names, read_name(r));
		rd_expect(r, "=");
		read_operand(r, &p->operands);
	} while (!r->failed && rd_accept(r, ","));
	rd_expect(r, ")");
}

static bool operand_types_are(const struct parsed *p, const struct type *t)
{
	return p->operands.at[0]->type == t && p->operands.at[1]->type == t;
}

static struct op *read_for(struct reader *r, struct builder *b)
{
	struct parsed p = {0};
	name_list args = {0};
	bool is_unsigned = rd_accept(r, "unsigned");
	const char *iv = read_name(r);
	static const char *const words[] = {"=", "to", "step"};
	for (int i = 0; i < FOR_INITS; i++) {
		rd_expect(r, words[i]);
		read_operand(r, &p.operands);
	}
	if (rd_accept(r, "iter_args")) {
		rd_expect(r, "(");
		read_bindings(r, &args, &p);
		rd_expect(r, "->");
		read_result_types(r, &p.results);
	}
	const struct type *iv_type = rd_accept(r, ":") ? read_type(r) : type_scalar(r->ctx, DT_I32);
	if (!r->failed && (p.operands.len != FOR_INITS + args.len || p.results.len != args.len))
		rd_fail(r, "the numbers of iter_args and of result types differ");
	if (r->failed)
		return NULL;
	/* other types are reported by the verifier */
	is_unsigned &= iv_type->kind == TY_SCALAR && dtype_is_int(iv_type->dtype) && operand_types_are(&p, iv_type);
	for (u32 i = 0; is_unsigned && i < 2; i++)
		p.operands.at[i] = build_moved_by_half(b, p.operands.at[i]);
	struct op *o = make(b, IR_FOR, &p, 1);
	struct value *index = block_add_arg(r->ctx, o->blocks[0], iv_type);
	struct builder in = builder_at_end(r->ctx, o->blocks[0]);
	rd_define(r, iv, is_unsigned ? build_moved_by_half(&in, index) : index);
	for (u32 i = 0; i < args.len; i++)
		rd_define(r, args.at[i], block_add_arg(r->ctx, o->blocks[0], p.results.at[i]));
	read_region(r, o->blocks[0], true);
	read_dict(r, IR_FOR, &p.attrs);
	set_attrs(o, &p.attrs);
	return o;
}

static struct op *read_if(struct reader *r, struct builder *b)
{
	struct parsed p = {0};
	read_operand(r, &p.operands);
	if (rd_accept(r, "->"))
		read_result_types(r, &p.results);
	if (r->failed)
		return NULL;
	struct op *o = make(b, IR_IF, &p, 2);
	read_region(r, o->blocks[0], true);
	if (rd_accept(r, "else")) {
		read_region(r, o->blocks[1], true);
	} else {
		struct builder at = builder_at_end(r->ctx, o->blocks[1]);
		build(&at, IR_YIELD, NULL, 0, NULL, 0, 0);
	}
	return o;
}

static void read_block_args(struct reader *r, struct block *b)
{
	rd_expect(r, "^");
	read_word(r, false);
	rd_expect(r, "(");
	if (!rd_accept(r, ")")) {
		do {
			const char *name = read_name(r);
			rd_expect(r, ":");
			const struct type *t = read_type(r);
			rd_skip_loc(r);
			if (!r->failed)
				rd_define(r, name, block_add_arg(r->ctx, b, t));
		} while (!r->failed && rd_accept(r, ","));
		rd_expect(r, ")");
	}
	rd_expect(r, ":");
}

static struct op *read_while(struct reader *r, struct builder *b)
{
	struct parsed p = {0};
	name_list args = {0};
	if (rd_accept(r, "(") && !rd_accept(r, ")"))
		read_bindings(r, &args, &p);
	read_function_type(r, &p.results);
	if (r->failed)
		return NULL;
	struct op *o = make(b, IR_WHILE, &p, 2);
	for (u32 i = 0; i < args.len; i++)
		rd_define(r, args.at[i], block_add_arg(r->ctx, o->blocks[0], p.operands.at[i]->type));
	read_region(r, o->blocks[0], false);
	rd_expect(r, "do");
	rd_expect(r, "{");
	if (rd_at(r, '^'))
		read_block_args(r, o->blocks[1]);
	read_block(r, o->blocks[1]);
	return o;
}

/* Reads "tt.reduce"(%a, %b) <{axis = 0 : i32}> ({ ^bb0(…): … }) {…} : (types) -> types. */
static struct op *read_generic(struct reader *r, struct builder *b, enum opcode code)
{
	struct parsed p = {0};
	rd_expect(r, "(");
	read_values(r, &p.operands);
	rd_expect(r, ")");
	if (rd_accept(r, "<"))
		read_dict(r, code, &p.attrs), rd_expect(r, ">");
	rd_expect(r, "(");
	rd_expect(r, "{");
	i64 pack = code == IR_MAP ? p.attrs.slot[ATTR_MAP_PACK] : 1;
	if (pack > 1)
		unpack_map(r, b, pack, &p.operands), p.attrs.slot[ATTR_MAP_PACK] = 1;
	if (r->failed)
		return NULL;
	struct op *o = make(b, code, &p, 1);
	read_block_args(r, o->blocks[0]);
	enum opcode end = code == IR_REDUCE ? IR_REDUCE_RETURN : code == IR_SCAN ? IR_SCAN_RETURN : IR_MAP_RETURN;
	struct builder in = builder_at_end(r->ctx, o->blocks[0]);
	value_vec returned = {0};
	if (!read_region_blocks(r, op_info[end].name, &in, &returned))
		read_block(r, o->blocks[0]);
	else if (!r->failed)
		build(&in, end, returned.at, returned.len, NULL, 0, 0);
	block_erase_unused(o->blocks[0]); /* inlined calls of Triton leave unused tiles */
	rd_expect(r, ")");
	read_dict(r, code, &p.attrs);
	read_function_type(r, &p.results);
	set_attrs(o, &p.attrs);
	if (pack > 1)
		pack_map(r, b, pack, o, &p.results);
	else
		op_set_results(r->ctx, o, p.results.at, p.results.len);
	return o;
}

static struct op *read_constant(struct reader *r, struct builder *b)
{
	struct parsed p = {0};
	bool dense = rd_accept(r, "dense<");
	rd_skip_space(r);
	struct text_position at = r->pos;
	bool boolean = !dense && (rd_accept(r, "true") || rd_accept(r, "false"));
	if (boolean) {
		p.attrs.slot[ATTR_VALUE] = r->src->text[at.at] == 't';
		vec_push(r->ctx->arena, &p.results, type_scalar(r->ctx, DT_I1));
	} else {
		/* the type comes after the value that depends on it, so the value is read twice */
		while (*rd_cur(r) && *rd_cur(r) != '>' && *rd_cur(r) != ':')
			rd_bump(r, 1);
		if (dense)
			rd_expect(r, ">");
		rd_expect(r, ":");
		const struct type *t = read_type(r);
		struct text_position end = r->pos;
		r->pos = at;
		if (!r->failed && type_is_ptr(t))
			rd_fail(r, "a constant cannot be a pointer");
		if (!r->failed)
			p.attrs.slot[ATTR_VALUE] = (i64)read_scalar_bits(r, type_dtype(t));
		r->pos = end;
		vec_push(r->ctx->arena, &p.results, t);
	}
	return r->failed ? NULL : make(b, IR_CONSTANT, &p, 0);
}

/* Reads "text" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %a : type -> type. */
static struct op *read_inline_asm(struct reader *r, struct builder *b)
{
	struct parsed p = {0};
	p.attrs.text = read_string(r);
	read_dict(r, IR_INLINE_ASM, &p.attrs);
	read_typed_values(r, &p.operands);
	rd_expect(r, "->");
	read_result_types(r, &p.results);
	return r->failed ? NULL : make(b, p.attrs.slot[ATTR_PURE] ? IR_PURE_ASM : IR_INLINE_ASM, &p, 0);
}

static struct op *read_special(struct reader *r, struct builder *b, enum opcode code)
{
	struct parsed p = {0};
	switch (code) {
	case IR_CONSTANT: return read_constant(r, b);
	case IR_FOR: return read_for(r, b);
	case IR_WHILE: return read_while(r, b);
	case IR_IF: return read_if(r, b);
	case IR_REDUCE:
	case IR_SCAN:
	case IR_MAP: return read_generic(r, b, code);
	case IR_INLINE_ASM: return read_inline_asm(r, b);
	case IR_PRINT:
		p.attrs.text = read_string(r);
		rd_expect(r, "{");
		while (!r->failed && !rd_accept(r, "}")) {
			if (rd_accept(r, "hex =")) {
				p.attrs.slot[ATTR_HEX] = (i64)read_scalar_bits(r, DT_I1);
			} else if (rd_accept(r, "isSigned = array<i32")) {
				for (int i = 0; !rd_accept(r, ">") && !r->failed; i++) {
					rd_accept(r, i ? "," : ":");
					p.attrs.slot[ATTR_SIGNED] |= (read_int(r) & 1) << (i & 31);
				}
			} else {
				rd_expect(r, "}");
			}
			rd_accept(r, ",");
		}
		if (rd_accept(r, ":"))
			read_typed_values(r, &p.operands);
		break;
	case IR_SELECT:
		read_values(r, &p.operands);
		read_dict(r, code, &p.attrs);
		rd_expect(r, ":");
		vec_push(r->ctx->arena, &p.results, read_type(r));
		if (rd_accept(r, ","))
			p.results.at[0] = read_type(r);
		break;
	case IR_CONDITION:
		rd_expect(r, "(");
		read_operand(r, &p.operands);
		rd_expect(r, ")");
		read_typed_values(r, &p.operands);
		break;
	default: tl_unreachable("operation without a reader");
	}
	return r->failed ? NULL : make(b, code, &p, 0);
}

/* Operations with another name or format in the IR. */
static const struct {
	const char *name;
	enum opcode code;
	const char *format;
} spellings[] = {
	{"arith.bitcast", IR_BITCAST, "$0 {} : t0 to r"},
};

static struct op *read_formatted(struct reader *r, struct builder *b, enum opcode code, const char *format)
{
	struct parsed p = {0};
	read_format(r, code, format, &p);
	if (r->failed)
		return NULL;
	const struct type *first = p.operands.len ? p.operands.at[0]->type : NULL;
	if ((code == IR_ABSF || code == IR_NEGF) && dtype_is_fp8(type_dtype(first)) && !type_is_ptr(first))
		return build_sign_change(b, code, p.operands.at[0]);
	/* indices are unsigned: indices of less than 32 bits are zero-extended to 32 bits */
	if (code == IR_GATHER && p.operands.len == 2 && type_elem_bits(p.operands.at[1]->type) < 32) {
		const struct type *wide = type_with_dtype(r->ctx, p.operands.at[1]->type, DT_I32);
		p.operands.at[1] = build1(b, IR_EXTUI, wide, p.operands.at[1]);
	}
	if (op_info[code].results == 2 && p.results.len == 1)
		vec_push(r->ctx->arena, &p.results, p.results.at[0]);
	bool infers = op_info[code].results == 1 && !p.results.len;
	if (infers && (p.operands.len || op_info[code].rule == R_TOKEN))
		vec_push(r->ctx->arena, &p.results, infer_type(r, code, &p.operands));
	for (u32 i = 0; code == IR_WARP_GROUP_WAIT && i < p.operands.len; i++)
		if (p.operands.at[i]->type->kind != TY_TOKEN)
			vec_push(r->ctx->arena, &p.results, p.operands.at[i]->type);
	if (code == IR_WARP_GROUP_DOT && p.attrs.slot[ATTR_ASYNC])
		vec_push(r->ctx->arena, &p.results, type_token(r->ctx));
	bool region = op_info[code].rule == R_REGION;
	struct op *o = make(b, code, &p, region);
	if (code == IR_PARTITION)
		r->module.cuda.more_warps += (i32)o->attr[ATTR_MORE_WARPS];
	if (region)
		read_region(r, o->blocks[0], true);
	return o;
}

/* Reads the rest of the operation called `name`. NULL after an error. */
static struct op *read_named(struct reader *r, struct builder *b, const char *name, u32 start)
{
	struct op *o;
	if (read_composed_op(r, b, name, &o) || read_library_op(r, b, name, &o))
		return o;
	int code = -1;
	const char *format = NULL;
	for (u32 i = 0; i < ARRAY_LEN(spellings) && code < 0; i++)
		if (!strcmp(spellings[i].name, name))
			code = (int)spellings[i].code, format = spellings[i].format;
	for (int i = 0; i < IR_OPCODES && code < 0; i++)
		if (!strcmp(op_info[i].name, name))
			code = i, format = op_info[i].format;
	if (code < 0) {
		r->pos.at = start;
		rd_fail_at(r, b->loc, arena_printf(r->ctx->arena, "unknown operation '%s'", name));
		return NULL;
	}
	return format[0] == '!' ? read_special(r, b, (enum opcode)code)
				: read_formatted(r, b, (enum opcode)code, format);
}

struct op_names { /* %a, %b = …; or %a:2 = …, where one name denotes all results */
	const char *at[8];
	i64 n, nresults;
};

static void read_op_names(struct reader *r, struct op_names *out)
{
	if (!rd_at(r, '%'))
		return;
	do
		out->at[out->n++] = read_name(r);
	while (out->n < (i64)ARRAY_LEN(out->at) && rd_accept(r, ","));
	out->nresults = out->n;
	if (*rd_cur(r) == ':') {
		rd_bump(r, 1);
		out->nresults = read_int(r);
	}
	rd_expect(r, "=");
}

/* Names results that are not the results of one operation. */
static void name_results(struct reader *r, const struct op_names *names, const value_vec *v)
{
	if (r->failed || !names->n)
		return;
	if (names->n == 1)
		rd_define_all(r, names->at[0], v);
	for (u32 i = 0; names->n > 1 && i < v->len && i < names->n; i++)
		rd_define_all(r, names->at[i], &(value_vec){.at = &v->at[i], .len = 1});
}

void read_op(struct reader *r, struct builder *b)
{
	struct op_names names = {0};
	rd_count(r);
	read_op_names(r, &names);
	rd_skip_space(r);
	u32 start = r->pos.at;
	const char *word = read_name_or_string(r, &b->loc);
	struct loc loc = b->loc;
	value_vec returned = {0};
	bool call = !strcmp(word, "tt.call");
	struct op *o = NULL;
	if (!strcmp(word, "tt.make_tensor_descriptor")) {
		read_make_descriptor(r, names.n ? names.at[0] : "", loc);
		return;
	}
	if (call)
		read_call(r, b, &returned);
	else
		o = read_named(r, b, word, start);
	if (r->failed)
		return;
	if (r->made.len) {
		o = NULL;
		returned = r->made;
		r->made = (value_vec){0};
	}
	rd_skip_loc(r);
	i64 n = o ? o->nresults : returned.len; /* an operation built from others may have no result to count */
	if (n != names.nresults && !r->failed && (names.nresults || (o && op_info[o->code].results >= 0)))
		rd_fail_at(r, loc,
			   arena_printf(r->ctx->arena, "'%s' has %lld result%s, but %lld are named here", word,
					(long long)n, n == 1 ? "" : "s", (long long)names.nresults));
	if (!o)
		name_results(r, &names, &returned);
	for (i64 i = 0; o && i < names.n && !r->failed; i++)
		rd_define(r, names.at[i], &o->results[i]);
}

/* Reads operations up to and including the closing '}'. */
static void read_block(struct reader *r, struct block *b)
{
	struct builder at = builder_at_end(r->ctx, b);
	if (++r->depth > 250)
		rd_fail(r, "nested too deeply");
	while (!r->failed && !rd_accept(r, "}")) {
		if (!*rd_cur(r))
			rd_fail(r, "the file ends inside a block");
		else if (b->last && op_has(b->last, END))
			rd_fail(r, "no operation may follow the terminator of a block");
		else
			read_op(r, &at);
	}
	r->depth--;
}

/* Reads the parameters, starting at the current position. */
static void read_params(struct reader *r, struct kernel *k)
{
	VEC(struct kernel_param) params = {0};
	struct noted {
		struct descriptor *d;
		struct loc loc;
	};
	VEC(struct noted) descriptors = {0};
	rd_expect(r, "(");
	if (!rd_accept(r, ")")) {
		do {
			struct kernel_param q = {.name = read_name(r)};
			struct attrs attrs = {0};
			rd_expect(r, ":");
			struct noted d;
			rd_skip_space(r);
			d.loc = rd_here(r, 1);
			const struct type *t = read_descriptor_param(r, &d.d);
			t = t ? t : read_type(r);
			if (!r->failed && t->kind != TY_SCALAR && t->kind != TY_PTR)
				rd_fail(r, "a kernel takes scalars, pointers and descriptors");
			read_dict(r, IR_ADDI, &attrs);
			rd_skip_loc(r);
			if (r->failed)
				return;
			q.value = block_add_arg(r->ctx, k->body, t);
			q.divisibility = attrs.hints ? attrs.hints->divisibility[0] : d.d ? 16 : 0;
			if (!d.d)
				rd_define(r, q.name, q.value);
			vec_push(r->ctx->arena, &descriptors, d);
			q.value->name = q.name;
			q.leaf = params.len;
			vec_push(r->ctx->arena, &params, q);
		} while (rd_accept(r, ","));
		rd_expect(r, ")");
	}
	for (u32 i = 0; i < params.len && !r->failed; i++)
		if (descriptors.at[i].d)
			descriptor_of_params(r, descriptors.at[i].d, params.at[i].name, &params.at[i], params.len - i,
					     descriptors.at[i].loc);
	k->params = params.at;
	k->nparams = params.len;
	if (!r->ctx->abi || r->failed)
		return;
	k->params = arena_array(r->ctx->arena, struct kernel_param, 3 * params.len);
	memcpy(k->params, params.at, params.len * sizeof *params.at);
	for (u32 i = 0; i < params.len; i++) {
		abi_add(k, ABI_PARAM, i, DT_COUNT);
		if (descriptors.at[i].d)
			add_foreign_descriptor(k, i, descriptors.at[i].d);
	}
}

static struct kernel *read_kernel(struct reader *r, struct text_function *f)
{
	struct kernel *k = kernel_new(r->ctx, f->name);
	struct text_position end = r->pos;
	value_vec returned = {0};
	k->loc = f->loc;
	k->loc.len = rd_loc_len(k->name);
	r->pos = f->at;
	read_params(r, k);
	struct builder b = builder_at_end(r->ctx, k->body);
	read_body(r, f, &b, &returned);
	if (!r->failed && returned.len)
		rd_fail_at(r, k->loc, "a kernel returns nothing");
	b.loc = k->loc;
	if (!r->failed)
		build(&b, IR_RETURN, NULL, 0, NULL, 0, 0);
	r->pos = end;
	return r->failed ? NULL : k;
}

struct kernel *kernel_parse(struct ir_context *c, u16 file, const struct text_library *library)
{
	struct reader r = {.ctx = c, .diags = c->diags, .src = c->diags->sources.at[file], .file = file};
	r.pos.line = r.src->first_line;
	r.library = library;
	r.values.arena = r.descriptors.arena = c->arena;
	read_aliases(&r);
	bool module = rd_accept(&r, "module");
	if (module) {
		if (rd_accept(&r, "attributes"))
			read_module_attributes(&r);
		rd_expect(&r, "{");
	}
	struct text_function *f = read_functions(&r);
	struct kernel *k = f ? read_kernel(&r, f) : NULL;
	if (module)
		rd_expect(&r, "}");
	if (r.failed)
		return NULL;
	const struct kernel *m = &r.module;
	if (m->target) {
		k->target = m->target;
		k->cuda = m->cuda;
		k->num_warps = m->num_warps;
		k->shared_bytes = m->shared_bytes;
	}
	return kernel_verify(k, "reading", c->diags) ? k : NULL;
}
