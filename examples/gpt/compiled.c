/* Kernels compiled ahead of time, those that a manifest lists: tlc build MANIFEST -o gpt_kernels. */
#include "gpt.h"

#include "gpt_kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kernels {
	tl_context *ctx;
	tl_compiled **loaded; /* of each in gpt_kernels_table, as soon as it is launched */
};

struct kernels *kernels_open(tl_context *ctx, const char *path)
{
	(void)path;
	struct kernels *k = malloc(sizeof *k);
	tl_compiled **loaded = calloc(gpt_kernels_table_len, sizeof *loaded);
	if (!k || !loaded)
		die("out of memory");
	*k = (struct kernels){ctx, loaded};
	return k;
}

void kernels_close(struct kernels *k)
{
	free(k->loaded);
	free(k);
}

/* Is this argument of the type, or the value at compile time, that `text` says? */
static bool is(const tl_arg *a, const char *text, size_t len)
{
	char said[64] = "";
	switch (a->kind) {
	case TL_ARG_PTR: snprintf(said, sizeof said, "*%s", tl_dtype_name(a->dtype)); break;
	case TL_ARG_NONE: snprintf(said, sizeof said, "None"); break;
	case TL_ARG_BOOL: snprintf(said, sizeof said, a->i ? "True" : "False"); break;
	case TL_ARG_STR: snprintf(said, sizeof said, "\"%s\"", a->s); break;
	case TL_ARG_FLOAT: snprintf(said, sizeof said, "fp32"); break;
	case TL_ARG_INT:
		if (len == 3 && !memcmp(text, "i32", 3))
			return true;
		snprintf(said, sizeof said, "%lld", (long long)a->i);
		break;
	default: break;
	}
	return strlen(said) == len && !memcmp(said, text, len);
}

/* "x=*fp32, n=i32, BLOCK=128" against arguments in this order. */
static bool fits(const char *arguments, const tl_arg *args, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *value = strchr(arguments, '=');
		if (!value)
			return false;
		size_t len = strcspn(++value, ",");
		if (!is(&args[i], value, len))
			return false;
		arguments = value + len;
	}
	return true;
}

void kernels_launch(struct kernels *k, enum kernel kernel, const tl_config *config, const tl_arg *args, size_t n)
{
	size_t i = 0;
	while (i < gpt_kernels_table_len && (strcmp(gpt_kernels_table[i].kernel, kernel_names[kernel]) != 0 ||
					     !fits(gpt_kernels_table[i].arguments, args, n)))
		i++;
	if (i == gpt_kernels_table_len)
		die("%s was not compiled for a model of these sizes and types", kernel_names[kernel]);
	if (!k->loaded[i])
		must(gpt_kernels_table[i].load(k->ctx, &k->loaded[i]));
	uint64_t bits[PRODUCT_PARAMETERS] = {0};
	for (size_t a = 0; a < n; a++) {
		float f = (float)args[a].f;
		if (args[a].kind == TL_ARG_FLOAT)
			memcpy(&bits[a], &f, sizeof f);
		else if (args[a].kind == TL_ARG_PTR)
			bits[a] = (uint64_t)(uintptr_t)args[a].ptr;
		else if (args[a].kind == TL_ARG_INT)
			bits[a] = (uint64_t)args[a].i;
	}
	must(tl_compiled_launch(k->loaded[i], config, bits, n));
}
