#include "runtime/image/argument.h"

#include <math.h>

i128 int_value(const tl_arg *a)
{
	return a->kind == TL_ARG_UINT ? (i128)a->u : a->kind == TL_ARG_BOOL ? a->i != 0 : (i128)a->i;
}

bool int_fits(enum dtype d, i128 v)
{
	int bits = dtype_bits(d);
	if (d == DT_I1)
		return v == 0 || v == 1;
	if (dtype_is_unsigned(d))
		return v >= 0 && v < (i128)1 << bits;
	return v >= -((i128)1 << (bits - 1)) && v < (i128)1 << (bits - 1);
}

bool int_converts(enum dtype d, i128 v)
{
	return d == DT_I1 || int_fits(d, v);
}

static const char *float_text(struct arena *a, double f)
{
	if (isnan(f))
		return "float('nan')";
	if (isinf(f))
		return f < 0 ? "float('-inf')" : "float('inf')";
	char *text = arena_printf(a, "%.17g", f);
	for (char *c = text; *c; c++) /* the host program's locale may write a decimal comma */
		if (*c == ',')
			*c = '.';
	return strpbrk(text, ".e") ? text : arena_printf(a, "%s.0", text);
}

static const char *string_text(struct arena *a, const char *s)
{
	struct strbuf sb = {.arena = a};
	sb_puts(&sb, "\"");
	for (; *s; s++)
		if (*s == '"' || *s == '\\')
			sb_printf(&sb, "\\%c", *s);
		else if ((u8)*s < ' ' || *s == 0x7F)
			sb_printf(&sb, "\\x%02x", (u8)*s);
		else
			sb_add(&sb, s, 1);
	sb_puts(&sb, "\"");
	return sb.at;
}

const char *literal_text(struct arena *a, const tl_arg *x)
{
	switch (x->kind) {
	case TL_ARG_NONE: return "None";
	case TL_ARG_INT: return arena_printf(a, "%lld", (long long)x->i);
	case TL_ARG_UINT: return arena_printf(a, "%llu", (unsigned long long)x->u);
	case TL_ARG_BOOL: return x->i ? "True" : "False";
	case TL_ARG_FLOAT: return float_text(a, x->f);
	case TL_ARG_STR: return string_text(a, x->s);
	case TL_ARG_TYPE: return arena_printf(a, "tl.%s", dtype_tl_name((enum dtype)x->dtype));
	case TL_ARG_FUNC: return arena_str(a, x->s, strlen(x->s));
	default: tl_unreachable("kind of constant");
	}
}

u64 arg_bits(const tl_arg *a, bool pointer, enum dtype d)
{
	if (pointer)
		return (u64)(uintptr_t)a->ptr;
	if (dtype_is_float(d))
		return dtype_encode_float(d, a->kind == TL_ARG_FLOAT ? a->f : (double)int_value(a));
	return d == DT_I1 ? int_value(a) != 0 : dtype_encode_int(d, (i64)int_value(a));
}
