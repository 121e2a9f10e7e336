/* A launch as a command line of tlc: the same types, divisibility and constants that the library specialises for, so
 * that a variant can be compiled for targets that are not here. The parameters are read off the source of the kernel,
 * which only has to be plain enough: one `def`, annotations without commas. */
#include <ctype.h>

#include "run.h"

struct parameter {
	char name[64];
	bool constant, annotated;
};

/* The parameters of `kernel`; how many. */
static int parameters(const char *text, const char *kernel, struct parameter *out, int max)
{
	char head[128];
	int n = 0, depth = 0, len = 0;
	snprintf(head, sizeof head, "def %s(", kernel);
	const char *p = strstr(text, head);
	if (!p)
		return 0;
	p += strlen(head);
	while (*p && n < max && !(*p == ')' && depth == 0)) {
		const char *end = p;
		for (depth = 0; *end && !((*end == ',' || *end == ')') && depth == 0); end++)
			depth += (*end == '(') - (*end == ')');
		while (isspace((unsigned char)*p))
			p++;
		for (len = 0; isalnum((unsigned char)p[len]) || p[len] == '_'; len++)
			;
		out[n] = (struct parameter){.annotated = p[len] == ':'};
		snprintf(out[n].name, sizeof out[n].name, "%.*s", len, p);
		out[n].constant = out[n].annotated && memmem(p, (size_t)(end - p), "tl.constexpr", 12);
		n += len > 0;
		p = end + (*end == ',');
	}
	return n;
}

static void constant(FILE *f, const tl_arg *a)
{
	switch (a->kind) {
	case TL_ARG_NONE: fprintf(f, "None"); break;
	case TL_ARG_BOOL: fprintf(f, a->i ? "True" : "False"); break;
	case TL_ARG_INT: fprintf(f, "%lld", (long long)a->i); break;
	case TL_ARG_UINT: fprintf(f, "%llu", (unsigned long long)a->u); break;
	case TL_ARG_FLOAT: fprintf(f, "%#.17g", a->f); break;
	case TL_ARG_STR: fprintf(f, "\"%s\"", a->s); break;
	case TL_ARG_TYPE: fprintf(f, "%s", tl_dtype_name(a->dtype)); break;
	case TL_ARG_FUNC: fprintf(f, "%s", a->s); break;
	case TL_ARG_PTR:
	case TL_ARG_TUPLE:
	case TL_ARG_DESCRIPTOR:
	case TL_ARG_OPEN: break;
	}
}

static void descriptor(FILE *f, const tl_descriptor *d)
{
	bool wide = true;
	fprintf(f, "tensordesc<%s[", tl_dtype_name(d->dtype));
	for (int i = 0; i < d->rank; i++) {
		fprintf(f, "%s%d", i ? "," : "", d->block_shape[i]);
		wide &= d->shape[i] % 16 == 0;
	}
	fprintf(f, "]%s%s>", wide ? ":16" : "", d->pads_with_nan ? ",nan" : "");
}

static void type(FILE *f, const tl_arg *a)
{
	bool is_int = a->kind == TL_ARG_INT && !a->constant;
	if (a->kind == TL_ARG_TUPLE) {
		fprintf(f, "(");
		for (size_t i = 0; i < a->tuple->len; i++) {
			if (a->tuple->names)
				fprintf(f, "%s=", a->tuple->names[i]);
			type(f, &a->tuple->items[i]);
			fprintf(f, ",");
		}
		fprintf(f, ")");
	} else if (a->kind == TL_ARG_DESCRIPTOR)
		descriptor(f, a->descriptor);
	else if (a->constant || a->kind == TL_ARG_NONE || a->kind == TL_ARG_STR || a->kind == TL_ARG_TYPE ||
		 a->kind == TL_ARG_FUNC)
		constant(f, a);
	else if (a->kind == TL_ARG_UINT && !a->typed)
		fprintf(f, "%s", a->u <= INT32_MAX ? "i32" : a->u <= INT64_MAX ? "i64" : "u64");
	else if (a->kind == TL_ARG_PTR)
		fprintf(f, "*%s%s", tl_dtype_name(a->dtype), (uintptr_t)a->ptr % 16 ? "" : ":16");
	else if (is_int && !a->typed)
		fprintf(f, "%s", a->i >= INT32_MIN && a->i <= INT32_MAX ? "i32" : "i64");
	else
		fprintf(f, "%s", tl_dtype_name(a->dtype));
	if (is_int && a->dtype != TL_I1)
		fprintf(f, "%s", a->i == 1 ? ":1" : a->i % 8 ? "" : a->i % 16 ? ":8" : ":16");
}

void write_command(FILE *f, const char *path, const char *text, const char *kernel, const tl_config *cfg,
		   const tl_arg *args, size_t nargs)
{
	struct parameter p[64];
	int n = parameters(text, kernel, p, COUNT(p));
	const char *before = " -s '";
	fprintf(f, "%s -k %s", path, kernel);
	for (int i = 0; i < n && i < (int)nargs; i++)
		if (p[i].constant || args[i].kind == TL_ARG_NONE) {
			fprintf(f, " -D '%s=", p[i].name);
			constant(f, &args[i]);
			fprintf(f, "'");
		}
	for (int i = 0; i < n && i < (int)nargs; i++) {
		if (p[i].constant || p[i].annotated || args[i].kind == TL_ARG_NONE)
			continue;
		fprintf(f, "%s%s=", before, p[i].name);
		type(f, &args[i]);
		before = ",";
	}
	fprintf(f, "%s --num-warps %d --num-stages %d", *before == ',' ? "'" : "", cfg->num_warps ? cfg->num_warps : 4,
		cfg->num_stages ? cfg->num_stages : 3);
	if (cfg->group_pids)
		fprintf(f, " --group-pids %d", cfg->group_pids);
	if (cfg->max_ctas > 0)
		fprintf(f, " --persistent");
	if (cfg->debug)
		fprintf(f, " --debug");
	if (cfg->fp_fusion == TL_FP_FUSION_OFF)
		fprintf(f, " --fp-fusion off");
	if (cfg->ftz == TL_FTZ_OFF)
		fprintf(f, " --ftz off");
	fprintf(f, "\n");
}

void constant_parameters(const char *text, const char *kernel, const tl_arg *args, bool *constant, size_t nargs)
{
	struct parameter p[64];
	int n = parameters(text, kernel, p, COUNT(p));
	for (int i = 0; i < (int)nargs; i++)
		constant[i] = i >= n || p[i].constant || args[i].kind == TL_ARG_NONE;
}
