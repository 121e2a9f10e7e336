/* Makes the key of a variant, and the texts from which the evaluator compiles it, from parameters and arguments.
 *
 * Launches that no argument guard accepts make the key, so it is binary and made in one pass: a word for a run-time
 * parameter (class, type, divisibility), a word and the value for a constexpr. Keys contain strings as a whole, so two
 * variants are equal exactly if their keys are equal, without relying on a hash. Texts are made for new variants only.
 *
 * The checks are Python's as far as C can have them. An argument that the parameter cannot take is refused. A number
 * that does not fit its annotated type is refused too, whereas Triton drops its upper bits. */
#include "runtime/launch/specialize.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/launch/composite.h"
#include "runtime/image/error.h"

/* --- parameters ---------------------------------------------------------------------------------------------- */

/* True if `x` names triton.language. */
static bool is_tl(const struct module *m, const struct expr *x)
{
	if (x->kind == EX_ATTR)
		return !strcmp(x->name, "language");
	if (x->kind != EX_NAME)
		return false;
	const char *target = imported_name(m, x->name);
	return target ? !strcmp(target, "triton.language") : !strcmp(x->name, "tl");
}

static bool is_constexpr(const struct expr *x)
{
	if (x->kind == EX_STR)
		return x->text_len >= 9 && !strcmp(x->text + x->text_len - 9, "constexpr");
	return (x->kind == EX_NAME || x->kind == EX_ATTR) && !strcmp(x->name, "constexpr");
}

static bool tl_dtype_named(const char *name, struct sig_type *out)
{
	for (int d = 0; d < DT_COUNT; d++)
		if (!strcmp(dtype_tl_name((enum dtype)d), name)) {
			*out = (struct sig_type){.dtype = (enum dtype)d};
			return true;
		}
	return false;
}

/* A type as an annotation: "*fp32", "i32:16", "*fp16 | *bf16", int, tl.int64, tl.pointer_type(tl.float16). Other
 * annotations, such as torch.Tensor, give no type. `dtypes`: all types that a pointer's text allows. */
static bool annotated_type(const struct module *m, const struct expr *x, struct sig_type *out, u64 *dtypes)
{
	switch (x->kind) {
	case EX_STR: return parse_annotation(x->text, out, dtypes) && !out->constant;
	case EX_NAME: {
		*out = (struct sig_type){0};
		bool found = true;
		if (!strcmp(x->name, "int"))
			out->dtype = DT_I32;
		else if (!strcmp(x->name, "float"))
			out->dtype = DT_F32;
		else if (!strcmp(x->name, "bool"))
			out->dtype = DT_I1;
		else
			found = false;
		const char *target = imported_name(m, x->name);
		if (!found && target && !strncmp(target, "triton.language.", 16))
			found = tl_dtype_named(target + 16, out);
		return found;
	}
	case EX_ATTR: return is_tl(m, x->a) && tl_dtype_named(x->name, out);
	case EX_CALL:
		if (x->a->kind != EX_ATTR || strcmp(x->a->name, "pointer_type") || !is_tl(m, x->a->a) ||
		    x->nitems != 1 || !annotated_type(m, x->items[0], out, dtypes))
			return false;
		out->pointers++;
		return out->pointers <= 2;
	default: return false;
	}
}

bool literal_argument(struct arena *a, const struct expr *x, tl_arg *out)
{
	bool negative = x->kind == EX_UNARY && x->op == OP_NEG;
	if (negative)
		x = x->a;
	switch (x->kind) {
	case EX_INT: {
		i128 v = negative ? -x->integer : x->integer;
		*out = v > INT64_MAX ? tl_uint((uint64_t)v) : tl_int((int64_t)v);
		return !x->too_big && v >= INT64_MIN && v <= (i128)UINT64_MAX;
	}
	case EX_FLOAT: *out = tl_float(negative ? -x->real : x->real); return true;
	case EX_NONE: *out = tl_none(); return !negative;
	case EX_TRUE:
	case EX_FALSE: *out = tl_bool(x->kind == EX_TRUE); return !negative;
	case EX_STR:
		*out = tl_str(arena_str(a, x->text, x->text_len));
		return !negative && strlen(out->s) == x->text_len;
	default: return false;
	}
}

/* The text of "float('nan')"; NULL: another expression. */
static const char *float_call(const struct expr *x)
{
	bool is = x->kind == EX_CALL && x->a->kind == EX_NAME && !strcmp(x->a->name, "float") && x->nitems == 1 &&
		  x->items[0]->kind == EX_STR;
	return is ? x->items[0]->text : NULL;
}

/* A bare name is a dtype only if it is the dtype's own name: functions may be called half or double. */
bool argument_of_text(struct arena *a, const char *text, tl_arg *out)
{
	struct interner names = {.arena = a};
	struct diags quiet;
	diags_init(&quiet, a);
	u16 file = diags_add_source(&quiet, "value", text, strlen(text));
	const struct expr *x = parse_expression(a, &names, &quiet, file, 0, (u32)strlen(text));
	if (!x)
		return false;
	enum dtype d = x->kind == EX_NAME || x->kind == EX_ATTR ? dtype_parse(x->name, strlen(x->name)) : DT_COUNT;
	bool is_type = d != DT_COUNT && (x->kind == EX_ATTR || !strcmp(x->name, dtype_name(d)));
	if (is_type)
		*out = tl_type((tl_dtype)d);
	else if (x->kind == EX_NAME)
		*out = tl_func(x->name);
	else if (float_call(x))
		*out = tl_float(strtod(float_call(x), NULL));
	else
		return literal_argument(a, x, out);
	return true;
}

/* "*fp32:16", "i32:1": an annotation in the notation of signatures. A launch checks the type only, since the arguments
 * give the divisors. The divisor is used by `tlc FILE`. */
static bool has_divisor(const struct expr *x)
{
	return x->kind == EX_STR && memchr(x->text, ':', x->text_len);
}

void params_of_func(struct arena *a, const struct func *f, struct params *out)
{
	*out = (struct params){.kernel = f->name, .at = arena_array(a, struct tl_param, f->nparams), .len = f->nparams};
	for (u32 i = 0; i < f->nparams; i++) {
		const struct param *src = &f->params[i];
		struct tl_param *p = &out->at[i];
		p->name = src->name;
		p->constant = src->annotation && is_constexpr(src->annotation);
		p->annotated = src->annotation && !p->constant &&
			       annotated_type(f->module, src->annotation, &p->type, &p->dtypes);
		p->by_divisor = p->annotated && has_divisor(src->annotation);
		p->type.divisibility = 0;
		p->shown = (tl_parameter){.name = p->name, .is_constexpr = p->constant};
		if (src->annotation) {
			struct strbuf text = {.arena = a};
			ast_print_expr(src->annotation, &text);
			p->shown.annotation = text.at;
		}
		if (!src->value)
			continue;
		p->has_default = literal_argument(a, src->value, &p->value) ? DEFAULT_VALUE : DEFAULT_TEXT;
		struct strbuf sb = {.arena = a};
		ast_print_expr(src->value, &sb);
		p->text = p->shown.default_value = sb.at;
	}
}

void params_of_ir(struct arena *a, const struct kernel *k, struct params *out)
{
	*out = (struct params){.kernel = k->name, .at = arena_array(a, struct tl_param, k->nparams), .len = k->nparams};
	for (u32 i = 0; i < k->nparams; i++) {
		struct tl_param *p = &out->at[i];
		const struct type *t = k->params[i].value->type;
		*p = (struct tl_param){.name = k->params[i].name, .annotated = true, .exact = true};
		if (!p->name)
			p->name = arena_printf(a, "arg%u", i);
		for (; t->kind == TY_PTR; t = t->elem)
			p->type.pointers++;
		p->type.dtype = t->dtype;
		p->type.divisibility = k->params[i].divisibility;
		p->shown.name = p->name;
	}
}

void params_of_image(struct arena *a, const struct image *im, struct params *out)
{
	*out = (struct params){.kernel = arena_str(a, im->name, strlen(im->name)),
			       .at = arena_array(a, struct tl_param, im->nslots),
			       .len = im->nslots};
	for (u32 i = 0; i < im->nslots; i++) {
		const struct slot *s = &im->slots[i];
		out->at[i] = (struct tl_param){
			.name = arena_str(a, s->name, strlen(s->name)),
			.annotated = true,
			.exact = true,
			.type = {.dtype = s->dtype, .pointers = s->pointers, .divisibility = s->divisibility}};
	}
}

/* --- arguments ----------------------------------------------------------------------------------------------- */

static bool valid_dtype(tl_dtype t)
{
	return (unsigned)t < DT_COUNT;
}

/* For IR text, whose integers are signless. */
static bool bits_fit(enum dtype d, i128 v)
{
	return int_fits(d, v) || int_fits(dtype_unsigned(d), v);
}

static bool resolve_pointer(const struct params *ps, const struct tl_param *p, const tl_arg *a, struct spec *out)
{
	u64 address = (u64)(uintptr_t)a->ptr;
	out->dtype = (enum dtype)a->dtype;
	if (address & ((u64)dtype_bytes(out->dtype) - 1))
		return false;
	if (p->annotated) {
		enum dtype given = p->exact ? dtype_signless(out->dtype) : out->dtype;
		bool of_pointers = p->type.pointers == 2 && dtype_signless(given) == DT_I64;
		bool other = p->type.pointers == 1 && p->dtypes >> given & 1;
		if (!p->type.pointers || (p->type.pointers == 1 ? given != p->type.dtype && !other : !of_pointers))
			return false;
		out->dtype = other ? given : p->type.dtype;
		out->divisibility = p->type.divisibility;
		if (out->divisibility > 1 && address & ((u64)out->divisibility - 1))
			return false;
	}
	if (address % 16 == 0 && !takes_any_address(ps, p, a))
		out->divisibility = MAX(out->divisibility, 16);
	return true;
}

/* The divisor 8 is useful: a row of 8 halves is a vector of 16 bytes. */
i32 integer_divisor(i128 v, i32 most)
{
	/* for both signs; `most` is a power of two, and a division of 128 bits at each launch would be expensive */
	u32 low = (u32)v | (u32)most;
	i32 divisor = (i32)(low & -low);
	return divisor >= 8 ? (divisor == most ? most : divisor >= 16 ? 16 : 8) : 0;
}

static bool resolve_int(const struct params *ps, const struct tl_param *p, u32 leaf, const tl_arg *a, bool typed,
			enum dtype d, struct spec *out)
{
	i128 v = int_value(a);
	out->dtype = typed ? d : int_fits(DT_I32, v) ? DT_I32 : int_fits(DT_I64, v) ? DT_I64 : DT_U64;
	if (typed && (!dtype_is_int(d) || !int_fits(d, v)))
		return false;
	if (p->annotated) {
		out->dtype = p->type.dtype;
		if (p->type.pointers)
			return false;
		if (dtype_is_float(out->dtype))
			return true;
		if (p->exact ? !bits_fit(out->dtype, v) : !int_converts(out->dtype, v))
			return false;
		out->divisibility = p->type.divisibility;
		if (out->divisibility > 1 && v % out->divisibility)
			return false;
	}
	if (out->dtype == DT_I1 || p->exact)
		return true;
	if (v == 1 && (!p->annotated || p->by_divisor) && !takes_any_value(ps, p, a))
		out->class = SPEC_ONE;
	else
		out->divisibility = MAX(out->divisibility, integer_divisor(v, most_divisor(ps, p, leaf, a)));
	return true;
}

static bool resolve_constant(const tl_arg *a)
{
	switch (a->kind) {
	case TL_ARG_INT:
	case TL_ARG_UINT:
		return !a->typed ||
		       (dtype_is_int((enum dtype)a->dtype) && int_fits((enum dtype)a->dtype, int_value(a)));
	case TL_ARG_STR: return a->s != NULL;
	case TL_ARG_FUNC: return a->s && *a->s;
	case TL_ARG_PTR: return false;
	default: return true;
	}
}

/* False if the parameter cannot take the argument. Inline: on the path of every launch that makes a key. */
static inline __attribute__((always_inline)) bool resolve(const struct params *ps, const struct tl_param *p, u32 leaf,
							  const tl_arg *a, struct spec *out)
{
	*out = (struct spec){.class = SPEC_TYPED};
	if ((unsigned)a->kind > TL_ARG_UINT || !valid_dtype(a->dtype))
		return false;
	if (p->constant || a->constant == ARG_CONSTEXPR) {
		out->class = SPEC_CONSTANT;
		return resolve_constant(a);
	}
	switch (a->kind) {
	case TL_ARG_PTR: return resolve_pointer(ps, p, a, out);
	case TL_ARG_INT:
	case TL_ARG_UINT: return resolve_int(ps, p, leaf, a, a->typed, (enum dtype)a->dtype, out);
	case TL_ARG_BOOL: return resolve_int(ps, p, leaf, a, true, DT_I1, out) && !dtype_is_float(out->dtype);
	case TL_ARG_FLOAT:
		out->dtype = p->annotated ? p->type.dtype : (enum dtype)a->dtype;
		return !p->type.pointers && dtype_is_float(out->dtype) && dtype_is_float((enum dtype)a->dtype);
	case TL_ARG_NONE: out->class = SPEC_NONE; return !p->exact;
	case TL_ARG_FUNC: out->class = SPEC_CONSTANT; return !p->annotated && resolve_constant(a);
	default: return false;
	}
}

bool argument_spec(const struct params *ps, const struct tl_param *p, u32 leaf, const tl_arg *a, struct spec *out)
{
	return resolve(ps, p, leaf, a, out);
}

/* --- messages ------------------------------------------------------------------------------------------------ */

enum { WORDS = ARGUMENT_WORDS, TYPE_WORDS = 40 };

static void describe_type(const struct sig_type *t, char *out)
{
	char suffix[24] = "";
	if (t->divisibility > 1)
		snprintf(suffix, sizeof suffix, ":%d", t->divisibility);
	snprintf(out, TYPE_WORDS, "%.*s%s%s", t->pointers, "**", dtype_name(t->dtype), suffix);
}

static void expected(const struct tl_param *p, char *out)
{
	char type[TYPE_WORDS];
	if (p->constant) {
		snprintf(out, WORDS, "a compile-time value (a number, bool, string, dtype, jit function or None)");
	} else if (p->annotated) {
		describe_type(&p->type, type);
		int len = snprintf(out, WORDS, "a %s of type %s", p->type.pointers ? "pointer" : "number", type);
		for (int d = 0; d < DT_COUNT && p->type.pointers == 1 && len < WORDS - TYPE_WORDS; d++)
			if (p->dtypes >> d & 1 && d != (int)p->type.dtype)
				len += snprintf(out + len, WORDS - (size_t)len, " or *%s", dtype_name((enum dtype)d));
	} else {
		snprintf(out, WORDS, "a pointer or a number; strings and dtypes are for tl.constexpr parameters");
	}
}

void argument_text(const tl_arg *a, char *out)
{
	const char *type = valid_dtype(a->dtype) ? dtype_name((enum dtype)a->dtype) : "an unknown type";
	switch (a->kind) {
	case TL_ARG_NONE: snprintf(out, WORDS, "None"); return;
	case TL_ARG_PTR: snprintf(out, WORDS, "the pointer %p to %s", a->ptr, type); return;
	case TL_ARG_INT:
		snprintf(out, WORDS, "the integer %lld%s%s", (long long)a->i, a->typed ? " as " : "",
			 a->typed ? type : "");
		return;
	case TL_ARG_UINT:
		snprintf(out, WORDS, "the integer %llu%s%s", (unsigned long long)a->u, a->typed ? " as " : "",
			 a->typed ? type : "");
		return;
	case TL_ARG_FLOAT: snprintf(out, WORDS, "the float %g as %s", a->f, type); return;
	case TL_ARG_BOOL: snprintf(out, WORDS, "a bool"); return;
	case TL_ARG_STR: snprintf(out, WORDS, "the string \"%.100s\"", a->s ? a->s : "(NULL)"); return;
	case TL_ARG_TYPE: snprintf(out, WORDS, "the dtype %s", type); return;
	case TL_ARG_FUNC: snprintf(out, WORDS, "the function '%.100s'", a->s ? a->s : "(NULL)"); return;
	case TL_ARG_TUPLE: snprintf(out, WORDS, "a tuple"); return;
	case TL_ARG_DESCRIPTOR: snprintf(out, WORDS, "a descriptor"); return;
	case TL_ARG_OPEN: snprintf(out, WORDS, "left open"); return;
	}
	snprintf(out, WORDS, "an argument of unknown kind %d", (int)a->kind);
}

tl_status refuse_more(const struct tl_param *p, const tl_arg *a)
{
	char want[WORDS], have[WORDS];
	expected(p, want);
	argument_text(a, have);
	failed_more(", must be %s; it is %s", want, have);
	if (a->kind == TL_ARG_PTR && valid_dtype(a->dtype) && ((uintptr_t)a->ptr & (tl_dtype_size(a->dtype) - 1)))
		failed_more(", which is not aligned to its elements of %zu bytes", tl_dtype_size(a->dtype));
	else if ((a->kind == TL_ARG_INT || a->kind == TL_ARG_UINT) && a->typed && valid_dtype(a->dtype) &&
		 !int_fits((enum dtype)a->dtype, int_value(a)))
		failed_more(a->kind == TL_ARG_INT && (enum dtype)a->dtype == DT_U64
				    ? ", which does not fit; use tl_uint_typed for values from 2^63 on"
				    : ", which does not fit");
	return TL_ERR_ARGUMENT;
}

static tl_status refuse(const struct params *ps, u32 i, const tl_arg *a)
{
	failed(TL_ERR_ARGUMENT, "%s: argument %u, '%s'", ps->kernel, i + 1, ps->at[i].name);
	return refuse_more(&ps->at[i], a);
}

static tl_status wrong_count(const struct params *ps, size_t nargs)
{
	return failed(TL_ERR_ARGUMENT, "%s takes %u arguments, and %zu were given", ps->kernel, ps->len, nargs);
}

static tl_status missing(const struct params *ps, u32 i, size_t nargs)
{
	if (i < nargs)
		return failed(TL_ERR_ARGUMENT, "%s: argument %u, '%s', is left open: it has no default", ps->kernel,
			      i + 1, ps->at[i].name);
	return failed(TL_ERR_ARGUMENT, "%s: argument %u, '%s', is missing: it has no default; %zu of %u were given",
		      ps->kernel, i + 1, ps->at[i].name, nargs, ps->len);
}

/* --- the key ------------------------------------------------------------------------------------------------- */

static void add_constant(struct key *key, const tl_arg *a)
{
	tl_arg_kind kind = a->kind == TL_ARG_UINT && int_fits(DT_I64, int_value(a)) ? TL_ARG_INT : a->kind;
	u64 word = SPEC_CONSTANT | (u64)kind << 8;
	switch (a->kind) {
	case TL_ARG_STR:
	case TL_ARG_FUNC: key_add_text(key, word, a->s); return;
	case TL_ARG_NONE: *key_extend(key, 1) = word; return;
	case TL_ARG_TYPE: *key_extend(key, 1) = word | (u64)a->dtype << 16; return;
	default: break;
	}
	u64 *p = key_extend(key, 2);
	p[0] = word;
	p[1] = a->kind == TL_ARG_FLOAT ? fp_bits_f64(a->f) : (u64)int_value(a);
}

static inline void add_spec(struct key *key, const struct spec *s, const tl_arg *a)
{
	if (s->class == SPEC_CONSTANT)
		add_constant(key, a);
	else
		*key_extend(key, 1) = (u64)s->class | (u64)s->dtype << 8 | (u64)s->divisibility << 32;
}

bool key_add_leaf(struct key *key, const struct params *ps, const struct tl_param *p, const tl_arg *a)
{
	struct spec s;
	if (!resolve(ps, p, key->leaves++, a, &s))
		return false;
	add_spec(key, &s, a);
	return true;
}

static inline tl_status add_arguments(const struct params *p, const tl_arg *args, size_t nargs, bool some,
				      struct key *key)
{
	if (nargs > p->len)
		return wrong_count(p, nargs);
	for (u32 i = 0; i < p->len; i++) {
		const tl_arg *a = argument(p, args, nargs, i);
		struct spec s = {.class = SPEC_DEFAULT};
		if (!a && !p->at[i].has_default && !some)
			return missing(p, i, nargs);
		if (!a || resolve(p, &p->at[i], key->leaves, a, &s)) {
			add_spec(key, &s, a);
			key->leaves++;
			continue;
		}
		tl_status status = is_composite(a) ? specialize_composite(p, i, a, key) : refuse(p, i, a);
		if (status)
			return status;
	}
	return TL_OK;
}

tl_status specialize(const struct params *p, const tl_arg *args, size_t nargs, struct key *key)
{
	return add_arguments(p, args, nargs, false, key);
}

tl_status check_arguments(const struct params *p, const tl_arg *args, size_t nargs, bool some)
{
	struct key key;
	key_init(&key, 0);
	tl_status s = add_arguments(p, args, nargs, some, &key);
	key_free(&key);
	return s;
}

/* --- texts --------------------------------------------------------------------------------------------------- */

static const char *type_text(struct arena *a, const struct tl_param *p, const tl_arg *x, const struct spec *s)
{
	int pointers = p->annotated ? p->type.pointers : x->kind == TL_ARG_PTR;
	const char *name = arena_printf(a, "%.*s%s", pointers, "**", dtype_name(s->dtype));
	if (s->class == SPEC_ONE)
		return arena_printf(a, "%s:1", name);
	return s->divisibility > 1 ? arena_printf(a, "%s:%d", name, s->divisibility) : name;
}

struct arg_spec leaf_spec(struct arena *a, const struct params *ps, const struct tl_param *p, const tl_arg *x,
			  u32 *leaf)
{
	struct spec s;
	bool fits = resolve(ps, p, (*leaf)++, x, &s), constant = s.class == SPEC_CONSTANT || s.class == SPEC_NONE;
	tl_assert(fits);
	return constant ? (struct arg_spec){.constant = literal_text(a, x)}
			: (struct arg_spec){.type = type_text(a, p, x, &s)};
}

struct arg_spec *specialize_text(struct arena *a, const struct params *ps, const tl_arg *args, size_t nargs)
{
	struct arg_spec *out = arena_array(a, struct arg_spec, ps->len);
	u32 leaf = 0;
	for (u32 i = 0; i < ps->len; i++) {
		const struct tl_param *p = &ps->at[i];
		const tl_arg *x = argument(ps, args, nargs, i);
		if (x)
			out[i] = is_composite(x) ? composite_spec(a, ps, p, x, &leaf) : leaf_spec(a, ps, p, x, &leaf);
		else /* the evaluator reads defaults, but treats an annotated parameter as a run-time value */
			out[i].constant = p->annotated ? p->text : NULL;
		leaf += !x;
	}
	return out;
}
