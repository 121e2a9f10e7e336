/* `tlc build FILE -o NAME`: a kernel ahead of time, as a C header and a C source that need no compiler.
 *
 * For each target there are the variants that were asked for, in their order, and behind them a generic one, which
 * takes nothing for granted: the launch runs the first one that its arguments allow. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "runtime/device.h"
#include "runtime/image.h"
#include "runtime/tl.h"
#include "tlc.h"

struct build_state {
	struct command *c;
	struct unit unit;     /* parsed once */
	struct strbuf source; /* NAME.c: the images so far */
	struct strbuf list;   /* the images in it */
	struct strbuf said;   /* the variants, for people */
	u32 nimages;
	struct image generic; /* the last one: its slots are the launcher's parameters */
	const char *types;    /* of the arguments, without what variants are specialised for */
};

/* --- images ------------------------------------------------------------------------------------------------------ */

static void add_image(struct build_state *b, struct image *im, const char *what)
{
	struct arena *a = &b->c->arena;
	size_t len;
	const u8 *bytes = (const u8 *)image_write(im, a, &len);
	sb_printf(&b->source, "\n/* %s, %s%s */\nstatic const unsigned char image_%u[] = {", im->target, what,
		  im->persistent ? ", for many programs" : "", b->nimages);
	for (size_t i = 0; i < len; i++)
		sb_printf(&b->source, "%s%u,", i % 24 ? "" : "\n\t", bytes[i]);
	sb_puts(&b->source, "\n};\n");
	sb_printf(&b->list, "\t{image_%u, sizeof image_%u},\n", b->nimages, b->nimages);
	sb_printf(&b->said, " *   %s: %s%s\n", im->target, *im->signature ? im->signature : "-",
		  im->persistent ? ", for many programs" : "");
	b->nimages++;
}

static bool compile_image(struct build_state *b, const struct arg_spec *args, const struct compile_options *o,
			  struct image *im)
{
	struct unit u;
	struct compiled out = {0};
	bool good = unit_again(&u, &b->unit);
	const struct func *f = good ? pick_kernel(&u, b->c->kernel) : NULL;
	good = f && compile(&u, f, args, o, &out);
	show_diagnostics(&u);
	if (good)
		image_make(im, &u, f, args, o, &out);
	unit_free(&u);
	return good;
}

/* With the kernel for many programs, if that is another one. */
static bool add_variant(struct build_state *b, const struct arg_spec *args, struct compile_options o, const char *what)
{
	struct image few, many;
	if (!compile_image(b, args, &o, &few))
		return false;
	bool good = true;
	o.persistent = true;
	if (!few.for_any_grid && !few.any_size) {
		good = compile_image(b, args, &o, &many);
		if (good && many.persistent)
			add_image(b, &many, what);
		if (good)
			image_free(&many);
	}
	if (good)
		add_image(b, &few, what);
	if (few.any_size) {
		image_free(&b->generic);
		b->generic = few;
	} else {
		image_free(&few);
	}
	return good;
}

/* --- arguments --------------------------------------------------------------------------------------------------- */

/* The types as the command line or the source gives them. */
static bool take_types(struct build_state *b, const struct func *f, const char *signature, struct arg_spec *args)
{
	b->c->signature = signature;
	if (!read_kernel_arguments(b->c, &b->unit, f, args))
		return false;
	for (u32 i = 0; i < f->nparams; i++) {
		const struct expr *note = f->params[i].annotation;
		if (!args[i].type && !args[i].constant && note && note->kind == EX_STR && !is_constexpr(&f->params[i]))
			args[i].type = arena_str(&b->c->arena, note->text, note->text_len);
		struct arg_spec tree;
		if (args[i].type && parse_arg_spec(&b->c->arena, args[i].type, &tree) && tree.shape != ARG_LEAF) {
			complain(0, "'%s': tuples and descriptors are for launches by libtl", f->params[i].name);
			return false;
		}
	}
	return true;
}

/* The same without what they are specialised for. *types: all as text. */
static struct arg_spec *generic_types(struct build_state *b, const struct func *f, const struct arg_spec *args,
				      const char **types)
{
	struct arg_spec *out = arena_dup(&b->c->arena, args, f->nparams * sizeof *args);
	struct strbuf text = {.arena = &b->c->arena};
	sb_puts(&text, "");
	for (u32 i = 0; i < f->nparams; i++) {
		if (out[i].type)
			out[i].type = arena_str(&b->c->arena, out[i].type, strcspn(out[i].type, ":"));
		sb_printf(&text, "%s,", out[i].type ? out[i].type : out[i].constant ? out[i].constant : "");
	}
	*types = text.at;
	return out;
}

static bool build_target(struct build_state *b, const struct func *f, const char *target)
{
	struct command *c = b->c;
	struct compile_options o = c->options;
	o.want_ptx = true;
	if (!description_parse(target, &o.target) || o.target.kind != TARGET_CUDA) {
		complain(0, "--target: '%s' is not one of cuda:sm_75, sm_80, sm_86, sm_87, sm_89, sm_90, sm_90a",
			 target);
		return false;
	}
	c->options.target = o.target;
	struct arg_spec *generic = NULL;
	for (u32 i = 0; i < MAX(c->signatures.len, 1); i++) {
		struct arg_spec *args = arena_array(&c->arena, struct arg_spec, f->nparams + 1);
		const char *types, *signature = c->signatures.len ? c->signatures.at[i] : NULL;
		if (!take_types(b, f, signature, args))
			return false;
		generic = generic_types(b, f, args, &types);
		b->types = b->types ? b->types : types;
		if (strcmp(types, b->types) != 0) {
			complain(0,
				 "-s: the types of '%s' are others than those of '%s'; a launcher has one type for "
				 "each parameter",
				 signature, c->signatures.at[0]);
			return false;
		}
		o.num_warps = c->options.num_warps;
		o.num_stages = c->options.num_stages;
		if (!add_variant(b, args, o, "as given"))
			return false;
	}
	o.alias = ALIAS_ANY;
	o.no_boxes = o.any_size = true;
	return add_variant(b, generic, o, "any arguments");
}

/* --- the files --------------------------------------------------------------------------------------------------- */

static const char *c_type(const struct slot *s)
{
	if (s->pointers > 1)
		return "void";
	switch (s->dtype) {
	case DT_I1: return s->pointers ? "unsigned char" : "bool";
	case DT_I8: return "int8_t";
	case DT_I16: return "int16_t";
	case DT_I32: return "int32_t";
	case DT_I64: return "int64_t";
	case DT_U8: return "uint8_t";
	case DT_U16: return "uint16_t";
	case DT_U32: return "uint32_t";
	case DT_U64: return "uint64_t";
	case DT_F32: return "float";
	case DT_F64: return "double";
	case DT_F16:
	case DT_BF16: return s->pointers ? "void" : "uint16_t"; /* its bits */
	default: return s->pointers ? "void" : "uint8_t";
	}
}

/* A parameter's name, which may be a word of C or C++. */
static const char *c_name(struct arena *a, const char *name)
{
	return arena_printf(a, "%s_", arena_ascii(a, name));
}

static void print_parameters(struct build_state *b, struct strbuf *out)
{
	for (u32 i = 0; i < b->generic.nslots; i++) {
		const struct slot *s = &b->generic.slots[i];
		sb_printf(out, ", %s %s%s", c_type(s), s->pointers ? "*" : "", c_name(&b->c->arena, s->name));
	}
}

static void print_header(struct build_state *b, const char *name, struct strbuf *out)
{
	const char *kernel = b->generic.name;
	sb_printf(out,
		  "/* Made by tlc %s from %s. Variants:\n%s */\n#ifndef TL_%s_H\n#define TL_%s_H\n\n"
		  "#include <tl.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n",
		  TL_VERSION, b->generic.source, b->said.at, name, name);
	sb_printf(out,
		  "/* The kernel on ctx, which frees it; before that tl_compiled_destroy may. */\n"
		  "tl_status %s_load(tl_context *ctx, tl_compiled **out);\n"
		  "/* Of cfg the grid, the stream and max_ctas count. Pointers are device addresses. */\n"
		  "tl_status %s(tl_compiled *kernel, const tl_config *cfg",
		  kernel, kernel);
	print_parameters(b, out);
	sb_puts(out, ");\n\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
}

static void print_launcher(struct build_state *b, struct strbuf *out)
{
	const char *kernel = b->generic.name;
	u32 n = 0;
	sb_printf(out,
		  "\nstatic const tl_blob images[] = {\n%s};\n\n"
		  "tl_status %s_load(tl_context *ctx, tl_compiled **out)\n{\n"
		  "\treturn tl_compiled_load(ctx, images, sizeof images / sizeof *images, out);\n}\n\n"
		  "tl_status %s(tl_compiled *kernel, const tl_config *cfg",
		  b->list.at, kernel, kernel);
	print_parameters(b, out);
	for (u32 i = 0; i < b->generic.nslots; i++)
		n = MAX(n, b->generic.slots[i].leaf + 1);
	sb_printf(out, ")\n{\n\tuint64_t args[%u] = {0};\n", MAX(n, 1));
	for (u32 i = 0; i < b->generic.nslots; i++) {
		const struct slot *s = &b->generic.slots[i];
		const char *x = c_name(&b->c->arena, s->name);
		if (s->pointers)
			sb_printf(out, "\targs[%u] = (uint64_t)(uintptr_t)%s;\n", s->leaf, x);
		else if (s->dtype == DT_F32 || s->dtype == DT_F64)
			sb_printf(out, "\tmemcpy(&args[%u], &%s, sizeof %s);\n", s->leaf, x, x);
		else
			sb_printf(out, "\targs[%u] = (uint64_t)%s;\n", s->leaf, x);
	}
	sb_printf(out, "\treturn tl_compiled_launch(kernel, cfg, args, %u);\n}\n", n);
}

static int write_sources(struct build_state *b)
{
	struct command *c = b->c;
	const char *slash = strrchr(c->output, '/'), *base = slash ? slash + 1 : c->output;
	char *name = arena_str(&c->arena, base, strlen(base));
	for (char *s = name; *s; s++)
		if (!isalnum((u8)*s))
			*s = '_';
	struct strbuf header = {.arena = &c->arena}, source = {.arena = &c->arena};
	print_header(b, name, &header);
	sb_printf(&source, "/* Made by tlc %s. */\n#include \"%s.h\"\n\n#include <string.h>\n%s", TL_VERSION, base,
		  b->source.at);
	print_launcher(b, &source);
	const struct strbuf *texts[] = {&header, &source};
	for (u32 i = 0; i < 2; i++) {
		const char *path = arena_printf(&c->arena, "%s.%c", c->output, "hc"[i]);
		if (!write_file(&c->arena, path, texts[i]->at, texts[i]->len))
			return complain(EXIT_ENVIRONMENT, "cannot write '%s': %s", path, strerror(errno));
	}
	return EXIT_DONE;
}

int build_sources(struct command *c, const char *text, size_t len)
{
	struct build_state *b = arena_new(&c->arena, struct build_state);
	b->c = c;
	b->source.arena = b->list.arena = b->said.arena = &c->arena;
	if (!c->output)
		return complain(EXIT_USER, "-o NAME is missing: what to call the header and the source");
	int r = EXIT_USER;
	bool good = unit_open(&b->unit, c->file, text, len);
	show_diagnostics(&b->unit);
	if (good && !b->unit.module)
		r = complain(EXIT_USER, "'%s' is IR text; tlc build takes kernels in their source", c->file);
	const struct func *f = good && b->unit.module ? pick_kernel(&b->unit, c->kernel) : NULL;
	if (!c->targets.len)
		vec_push(&c->arena, &c->targets, device_default_target(&c->arena));
	good = f;
	for (u32 i = 0; i < c->targets.len && good; i++)
		good = build_target(b, f, c->targets.at[i]);
	if (good)
		r = write_sources(b);
	image_free(&b->generic);
	unit_free(&b->unit);
	return r;
}
