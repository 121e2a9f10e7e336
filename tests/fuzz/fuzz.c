/* Fuzzing with libFuzzer: any bytes in, and tlc must answer with output or with diagnostics. `make fuzz` builds it,
 * run.sh makes the corpora and runs it on them.
 *
 *   build-fuzz/fuzz CORPUS…           source text through every pass to PTX; IR text where it looks like one
 *   FUZZ_STOP=PASS build-fuzz/fuzz …  up to PASS only ("eval": the front end, two hundred times as fast)
 *
 * Placed IR goes through the passes after the pass that its first line names, `// after PASS`, for the GPU of its
 * ttg.target.
 *
 * Parameters get a type by their name, so that ordinary kernels compile and mutations of them go deep. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "driver/compile.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

static bool is_constexpr(const struct param *p)
{
	const struct expr *a = p->annotation;
	return a && (a->kind == EX_NAME || a->kind == EX_ATTR) && !strcmp(a->name, "constexpr");
}

static const char *guess_type(const struct param *p, u32 seed)
{
	static const char *const elements[] = {"*fp32:16", "*fp16:16", "*bf16", "*i32:16", "*fp8e4nv:16", "*i64",
					       "*fp64", "*i8:16"};
	size_t n = strlen(p->name);
	bool pointer = (n >= 3 && !strcmp(p->name + n - 3, "ptr")) ||
		(n == 1 && strchr("xyzabcqkvo", tolower(p->name[0])));
	if (pointer)
		return elements[seed % ARRAY_LEN(elements)];
	return seed % 3 ? "i32:16" : "i32";
}

static void compile_function(struct unit *u, const struct func *f, const struct compile_options *o, u32 seed)
{
	struct arg_spec *args = arena_array(&u->arena, struct arg_spec, f->nparams + 1);
	struct compiled out;
	u32 constants = 0;
	for (u32 i = 0; i < f->nparams; i++)
		constants += is_constexpr(&f->params[i]);
	for (u32 i = 0; i < f->nparams; i++) {
		const struct param *p = &f->params[i];
		if (is_constexpr(p) && !p->value) /* of many, most are lengths of one tile */
			args[i].constant = constants > 4 ? (seed & 1 ? "16" : "4") : seed & 1 ? "64" : "16";
		else if (!is_constexpr(p) && !p->annotation)
			args[i].type = guess_type(p, seed);
	}
	compile(u, f, args, o, &out);
}

/* What the text of placed IR says of itself. */
static void read_start(struct compile_options *o, const char *text, char *pass, size_t size)
{
	const char *target = strstr(text, "ttg.target = \"cuda:");
	if (!target)
		return;
	int sm = (int)strtol(target + strlen("ttg.target = \"cuda:"), NULL, 10);
	if (sm == 80 || sm == 90)
		o->target = cuda_description(sm, sm == 90);
	if (!strncmp(text, "// after ", 9)) {
		snprintf(pass, size, "%.*s", (int)strcspn(text + 9, "\n"), text + 9);
		o->start_after = pass;
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static const int targets[] = {75, 80, 89, 90};
	u32 seed = (u32)hash_bytes(data, size, 0);
	struct compile_options o = {.target = cuda_description(targets[seed % 4], seed % 4 == 3),
				    .codegen.num_warps = 1 << seed / 4 % 4,
				    .codegen.num_stages = 1 + seed / 16 % 4};
	struct unit u;
	/* a copy, so that reading past its end is seen */
	char *text = malloc(size + 1);
	memcpy(text, data, size);
	text[size] = 0;
	bool ir = memmem(data, size, "tt.func", 7) != NULL;
	char pass[40];
	if (ir)
		read_start(&o, text, pass, sizeof pass);
	o.stop_after = getenv("FUZZ_STOP");
	o.want_code = true;
	if (unit_open(&u, ir ? "fuzz.ttir" : "fuzz.tl", text, size)) {
		struct compiled out;
		if (u.parsed)
			compile(&u, NULL, NULL, &o, &out);
		else
			for (u32 i = 0; i < u.module->funcs.len && i < 4; i++)
				if (u.module->funcs.at[i]->kind == FUNC_JIT)
					compile_function(&u, u.module->funcs.at[i], &o, seed >> 8);
	}
	unit_free(&u);
	free(text);
	return 0;
}
