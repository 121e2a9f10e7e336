/* `tlc build FILE -o NAME`: compiles kernels ahead of time to a C header and a C source, which need no compiler at run
 * time.
 *
 * For each target the source has the variants of the command line, in their order, and after them a generic variant
 * without assumptions. A launch uses the first variant that its arguments allow. */
#include <ctype.h>
#include <stdlib.h>

#include "support/span.h"
#include "runtime/image/bundle.h"
#include "runtime/device/device.h"
#include "runtime/image/image.h"
#include "runtime/launch/manifest.h"
#include "cli/cmd_build.h"

struct build_state {
	struct command *c;
	struct strbuf header, source; /* text of NAME.h and NAME.c so far */
	struct strbuf table;          /* rows of the table of a manifest's launchers */
	const char *name;             /* the base name of the files as a C identifier */
	text_list symbols;            /* the functions in the files: for each kernel the launcher, then the loader */
	text_list given;              /* of a manifest: the targets of the command line */
	u32 nbundles;
	/* the current kernel */
	struct unit unit;     /* parsed once */
	VEC(tl_blob) images;  /* its images for the current target */
	struct strbuf list;   /* the list of its bundles */
	struct strbuf said;   /* the list of its variants, for the header's comment */
	struct image generic; /* its generic image, whose slots are the launcher's parameters */
	const char *types;    /* of the arguments, without specialisation */
};

/* --- images ------------------------------------------------------------------------------------------------------ */

static void add_image(struct build_state *b, struct image *im)
{
	tl_blob blob;
	blob.bytes = image_write(im, &b->c->arena, &blob.size);
	vec_push(&b->c->arena, &b->images, blob);
	sb_printf(&b->said, " *   %s: %s%s\n", im->target, *im->signature ? im->signature : "-",
		  serves_grid(im, GRID_FEW) ? "" : ", for many programs");
}

/* Adds the bundle of the images for one target. */
static bool add_bundle(struct build_state *b)
{
	size_t len;
	const struct image *im = &b->generic;
	const u8 *bytes =
		(const u8 *)bundle_write(&b->c->arena, im->name, im->target, b->images.at, b->images.len, &len);
	if (!bytes)
		return refuse("%s has too much code for %s", im->name, im->target);
	sb_printf(&b->source,
		  "\n/* %u variants of %s for %s, compressed */\nstatic const unsigned char tl_images_%u[] = {",
		  b->images.len, im->name, im->target, b->nbundles);
	for (size_t i = 0; i < len; i++)
		sb_printf(&b->source, "%s%u,", i % 24 ? "" : "\n\t", bytes[i]);
	sb_puts(&b->source, "\n};\n");
	sb_printf(&b->list, "\t{tl_images_%u, sizeof tl_images_%u},\n", b->nbundles, b->nbundles);
	b->nbundles++;
	b->images.len = 0;
	return true;
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
	note_imports(b->c, &u);
	if (good)
		image_make(im, &u, f, args, &o->codegen, &out);
	unit_free(&u);
	return good;
}

/* Adds the images of a variant. If the kernel for grids of many programs differs, it is added first, for all grids that
 * the kernel for few programs does not serve. If it refuses the arguments, the kernel for few programs runs. */
static bool add_variant(struct build_state *b, const struct arg_spec *args, struct compile_options o)
{
	struct image few, many;
	if (!compile_image(b, args, &o, &few))
		return false;
	bool good = true;
	o.codegen.grid = GRID_ROWS;
	if (!serves_grid(&few, GRID_ROWS) && few.codegen.sizes == BOUNDS_LIMITED) {
		good = compile_image(b, args, &o, &many);
		if (good && !serves_grid(&many, GRID_FEW)) {
			many.grids = ALL_GRIDS & ~few.grids;
			add_image(b, &many);
		}
		if (good)
			image_free(&many);
	}
	few.grids = ALL_GRIDS;
	if (good)
		add_image(b, &few);
	if (few.codegen.sizes == BOUNDS_WIDE) {
		image_free(&b->generic);
		b->generic = few;
	} else {
		image_free(&few);
	}
	return good;
}

/* --- arguments --------------------------------------------------------------------------------------------------- */

/* Reads the types from the command line or the source. */
static bool take_types(struct build_state *b, const struct func *f, const char *signature, struct arg_spec *args)
{
	b->c->signature = signature;
	if (!read_kernel_arguments(b->c, &b->unit, f, args))
		return false;
	for (u32 i = 0; i < f->nparams; i++) {
		const struct expr *note = f->params[i].annotation;
		if (!args[i].type && !args[i].constant && note && note->kind == EX_STR && !is_constexpr(&f->params[i]))
			args[i].type = arena_str(&b->c->arena, note->text, strcspn(note->text, "|"));
	}
	return true;
}

/* A type without its specialisation: "(*fp32:16, i32)" → "(*fp32, i32)". */
static const char *unspecialised(struct arena *a, const char *type)
{
	struct strbuf out = sb_empty(a);
	for (char quote = 0; *type; type++) {
		quote = quote ? *type == quote ? 0 : quote : *type == '"' || *type == '\'' ? *type : 0;
		if (!quote && *type == ':' && isdigit((u8)type[1]))
			type += strspn(type + 1, "0123456789");
		else
			sb_add(&out, type, 1);
	}
	return out.at;
}

/* The arguments without their specialisation. *types: all types as text. */
static struct arg_spec *generic_types(struct build_state *b, const struct func *f, const struct arg_spec *args,
				      const char **types)
{
	struct arg_spec *out = arena_dup(&b->c->arena, args, f->nparams * sizeof *args);
	struct strbuf text = sb_empty(&b->c->arena);
	for (u32 i = 0; i < f->nparams; i++) {
		if (out[i].type)
			out[i].type = unspecialised(&b->c->arena, out[i].type);
		sb_printf(&text, "%s,", out[i].type ? out[i].type : out[i].constant ? out[i].constant : "");
	}
	*types = text.at;
	return out;
}

static bool build_target(struct build_state *b, const struct func *f, const char *target)
{
	struct command *c = b->c;
	struct compile_options o = c->options;
	o.want_code = true;
	if (!read_target(target, &o.target))
		return false;
	c->options.target = o.target;
	struct arg_spec *generic = NULL;
	for (u32 i = 0; i < MAX(c->signatures.len, 1); i++) {
		struct arg_spec *args = arena_array(&c->arena, struct arg_spec, f->nparams + 1);
		const char *types, *signature = c->signatures.len ? c->signatures.at[i] : NULL;
		if (!take_types(b, f, signature, args))
			return false;
		generic = generic_types(b, f, args, &types);
		b->types = b->types ? b->types : types;
		if (strcmp(types, b->types) != 0)
			return refuse(
				"-s: the types of '%s' are others than those of '%s'; a launcher has one type for "
				"each parameter",
				signature, c->signatures.at[0]);
		o.codegen = c->options.codegen; /* take_types has added those of the decorators */
		if (!add_variant(b, args, o))
			return false;
	}
	o.codegen.alias = ALIAS_ANY;
	o.codegen.no_tma = true;
	o.codegen.sizes = BOUNDS_WIDE;
	return add_variant(b, generic, o) && add_bundle(b);
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
	case DT_BF16: return s->pointers ? "void" : "uint16_t"; /* the bits */
	default: return s->pointers ? "void" : "uint8_t";
	}
}

/* The C name of the parameter for slot i of the generic image. The slot may be an element of a tuple or a descriptor:
 * "shape.0" → shape_0_. */
static const char *c_name(struct build_state *b, u32 i)
{
	struct arena *a = &b->c->arena;
	const char *name = c_parameter_name(a, b->generic.slots[i].name);
	for (u32 k = 0; k < i; k++)
		if (!strcmp(c_parameter_name(a, b->generic.slots[k].name), name))
			return arena_printf(a, "%s%u", name, i);
	return name;
}

static void print_parameters(struct build_state *b, struct strbuf *out)
{
	for (u32 i = 0; i < b->generic.nslots; i++) {
		const struct slot *s = &b->generic.slots[i];
		sb_printf(out, ", %s %s%s", c_type(s), s->pointers ? "*" : "", c_name(b, i));
	}
}

/* Text for a C comment, in which no comment begins or ends. */
static const char *commented(struct arena *a, const char *text)
{
	struct strbuf out = sb_empty(a);
	for (char before = 0; *text; before = *text++) {
		bool mark = (before == '*' && *text == '/') || (before == '/' && *text == '*');
		sb_printf(&out, mark ? " %c" : "%c", *text);
	}
	return out.at;
}

static void print_declarations(struct build_state *b, const char *symbol)
{
	struct arena *a = &b->c->arena;
	sb_printf(&b->header,
		  "/* %s of %s, in variants:\n%s * On ctx, which frees it; before that tl_compiled_destroy may. */\n"
		  "tl_status %s_load(tl_context *ctx, tl_compiled **out);\n"
		  "/* Of cfg the grid, the stream, max_ctas and launch_... count. Pointers are device addresses. */\n"
		  "tl_status %s(tl_compiled *kernel, const tl_config *cfg",
		  b->generic.name, commented(a, b->generic.source), commented(a, b->said.at), symbol, symbol);
	print_parameters(b, &b->header);
	sb_puts(&b->header, ");\n\n");
}

static void print_launcher(struct build_state *b, const char *symbol)
{
	struct strbuf *out = &b->source;
	u32 n = 0;
	sb_printf(out,
		  "\nstatic const tl_blob tl_images_of_%s[] = {\n%s};\n\n"
		  "tl_status %s_load(tl_context *ctx, tl_compiled **out)\n{\n"
		  "\treturn tl_compiled_load(ctx, tl_images_of_%s, sizeof tl_images_of_%s / sizeof *tl_images_of_%s, "
		  "out);\n}\n\n"
		  "tl_status %s(tl_compiled *kernel, const tl_config *cfg",
		  symbol, b->list.at, symbol, symbol, symbol, symbol, symbol);
	print_parameters(b, out);
	for (u32 i = 0; i < b->generic.nslots; i++)
		n = MAX(n, b->generic.slots[i].leaf + 1);
	sb_printf(out, ")\n{\n\tuint64_t args[%u] = {0};\n", MAX(n, 1));
	for (u32 i = 0; i < b->generic.nslots; i++) {
		const struct slot *s = &b->generic.slots[i];
		const char *x = c_name(b, i);
		if (s->pointers)
			sb_printf(out, "\targs[%u] = (uint64_t)(uintptr_t)%s;\n", s->leaf, x);
		else if (s->dtype == DT_F32 || s->dtype == DT_F64)
			sb_printf(out, "\tmemcpy(&args[%u], &%s, sizeof %s);\n", s->leaf, x, x);
		else
			sb_printf(out, "\targs[%u] = (uint64_t)%s;\n", s->leaf, x);
	}
	sb_printf(out, "\treturn tl_compiled_launch(kernel, cfg, args, %u);\n}\n", n);
}

/* A new function name: the prefix and the kernel's name. A number follows if another function has this name, or this
 * name with _load. NULL after a message: a program cannot have such a function. */
static const char *new_symbol(struct build_state *b, const char *kernel)
{
	struct arena *a = &b->c->arena;
	const char *name = c_function_name(a, b->c->prefix, kernel), *symbol = name, *load, *why;
	for (u32 n = 2;
	     load = arena_printf(a, "%s_load", symbol), list_has(&b->symbols, symbol) || list_has(&b->symbols, load);
	     n++)
		symbol = arena_printf(a, "%s_%u", name, n);
	if ((why = c_name_taken(a, symbol)) || (why = c_name_taken(a, load))) {
		refuse("the launcher of '%s' cannot have the name '%s', which %s; --prefix my_ makes it my_%s", kernel,
		       symbol, why, symbol);
		return NULL;
	}
	vec_push(a, &b->symbols, symbol);
	vec_push(a, &b->symbols, load);
	return symbol;
}

static int write_sources(struct build_state *b)
{
	struct command *c = b->c;
	const char *name = b->name, *base = base_name(c->output);
	if (b->table.len) {
		sb_printf(&b->header,
			  "/* All launchers above. */\nextern const tl_built %s_table[];\n"
			  "extern const size_t %s_table_len;\n\n",
			  name, name);
		sb_printf(&b->source,
			  "\nconst tl_built %s_table[] = {\n%s};\n"
			  "const size_t %s_table_len = sizeof %s_table / sizeof *%s_table;\n",
			  name, b->table.at, name, name, name);
	}
	/* headers of the same name in two folders have different guards */
	u64 hash = hash_bytes(b->header.at, b->header.len, 0);
	const char *guard = arena_printf(&c->arena, "TL_%s_%016llx_H", name, (unsigned long long)hash),
		   *header =
			   arena_printf(&c->arena,
					"/* Made by tlc %s. */\n#ifndef %s\n#define %s\n\n#include <tl.h>\n\n"
					"#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n%s"
					"#ifdef __cplusplus\n}\n#endif\n\n#endif\n",
					TL_VERSION, guard, guard, b->header.at),
		   *source = arena_printf(&c->arena,
					  "/* Made by tlc %s. */\n#include \"%s.h\"\n\n#include <string.h>\n%s",
					  TL_VERSION, base, b->source.at);
	int r = write_file(&c->arena, arena_printf(&c->arena, "%s.h", c->output), header, strlen(header));
	if (!r)
		r = write_file(&c->arena, arena_printf(&c->arena, "%s.c", c->output), source, strlen(source));
	return r || !c->depfile ? r : write_depfile(c);
}

/* --- kernels ----------------------------------------------------------------------------------------------------- */

/* Replaces "cpu" by all levels of this kind of CPU: a program selects a level at run time. */
static void take_targets(struct command *c)
{
	static const char *const levels[] = {"cpu:baseline", "cpu:avx2", "cpu:avx512"};
	struct target here;
	bool neon = cpu_here(&here) && here.level == CPU_NEON;
	const text_list given = c->targets;
	c->targets = (text_list){0};
	for (u32 i = 0; i < given.len; i++) {
		bool levelless = !strcmp(given.at[i], "cpu");
		if (!levelless || neon)
			vec_push(&c->arena, &c->targets, levelless ? "cpu:neon" : given.at[i]);
		for (u32 k = 0; levelless && !neon && k < ARRAY_LEN(levels); k++)
			vec_push(&c->arena, &c->targets, levels[k]);
	}
}

/* Builds the kernel that the command selects, from n source texts. */
static int build_kernel(struct build_state *b, const struct unit_source *sources, u32 n)
{
	struct command *c = b->c;
	int r = EXIT_USER;
	b->list = b->said = (struct strbuf){.arena = &c->arena};
	b->types = NULL;
	bool good = unit_open_sources(&b->unit, sources, n);
	show_diagnostics(&b->unit);
	if (good && !b->unit.module)
		refuse("'%s' is IR text; tlc build takes kernels in their source", sources->file);
	const struct func *f = good && b->unit.module ? pick_kernel(&b->unit, c->kernel) : NULL;
	const char *symbol = f ? new_symbol(b, f->name) : NULL;
	good = symbol;
	for (u32 i = 0; i < c->targets.len && good; i++)
		good = build_target(b, f, c->targets.at[i]);
	if (good) {
		print_declarations(b, symbol);
		print_launcher(b, symbol);
		r = EXIT_DONE;
	}
	image_free(&b->generic);
	note_imports(c, &b->unit);
	unit_free(&b->unit);
	return r;
}

/* NULL after a message. */
static struct build_state *begin_sources(struct command *c)
{
	struct build_state *b = arena_new(&c->arena, struct build_state);
	const char *base = c->output ? base_name(c->output) : NULL;
	b->c = c;
	b->header.arena = b->source.arena = b->table.arena = &c->arena;
	sb_puts(&b->header, "");
	if (!base)
		refuse("-o NAME is missing: what to call the header and the source");
	else if (!*base || strpbrk(base, "\"\\\n"))
		refuse("-o: '%s' is no name of a header", c->output);
	else if (c->prefix && strcmp(c->prefix, c_function_name(&c->arena, NULL, c->prefix)) != 0)
		refuse("--prefix: '%s' is no beginning of a name in C", c->prefix);
	else
		b->name = c_function_name(&c->arena, c->prefix, base);
	return b->name ? b : NULL;
}

int build_sources(struct command *c, const char *text, size_t len)
{
	struct build_state *b = begin_sources(c);
	if (!b)
		return EXIT_USER;
	if (!c->targets.len)
		vec_push(&c->arena, &c->targets, device_default_target(&c->arena));
	take_targets(c);
	if (strcmp(c->file, "-") != 0)
		note_file(c, c->file);
	int r = build_kernel(b, &(struct unit_source){.file = c->file, .first_line = 1, .text = text, .len = len}, 1);
	return r ? r : write_sources(b);
}

/* --- the kernels of a manifest ----------------------------------------------------------------------------------- */

/* Entries with one launcher. */
struct group {
	const struct manifest_entry *first;
	const char *types; /* of the arguments, without specialisation */
	VEC(const struct manifest_entry *) entries;
};

/* "x=*fp32:16, n=i32:16" → "x=*fp32, n=i32" */
static const char *types_of(struct arena *a, const char *arguments)
{
	struct strbuf out = sb_empty(a);
	for (struct argument_span one; next_argument(a, &arguments, &one);) {
		struct arg_spec s;
		bool typed = one.value && parse_arg_spec(a, one.value, &s);
		sb_printf(&out, "%s, ", typed ? unspecialised(a, one.text) : one.text);
	}
	return out.at;
}

static bool belongs(const struct group *g, const struct manifest_entry *e, const char *types)
{
	return !strcmp(g->first->source, e->source) && !strcmp(g->first->hash, e->hash) &&
	       !strcmp(g->first->kernel, e->kernel) && !strcmp(g->types, types) &&
	       codegen_options_same_choice(&g->first->options.codegen, &e->options.codegen);
}

/* Adds the entry's arguments as if they were given with -s and -D. */
static void take_entry(struct command *c, const struct manifest_entry *e, bool first)
{
	struct arena *a = &c->arena;
	struct strbuf types = sb_empty(a);
	const char *list = e->arguments;
	for (struct argument_span one; next_argument(a, &list, &one);) {
		struct arg_spec s;
		if (one.value && parse_arg_spec(a, one.value, &s))
			sb_printf(&types, "%s%s", types.len ? "," : "", one.text);
		else if (one.value && first)
			vec_push(a, &c->defines, ((struct define){one.name, one.value}));
	}
	add_once(&c->arena, &c->signatures, types.at);
}

/* The targets of --target that have the kind of the entry's device; if there are none, the entry's target. */
static void take_entry_targets(struct build_state *b, const struct manifest_entry *e)
{
	struct command *c = b->c;
	bool given = false;
	for (u32 i = 0; i < b->given.len; i++) {
		struct target t;
		if (!target_parse(b->given.at[i], &t) || t.kind != e->target.kind)
			continue;
		add_once(&c->arena, &c->targets, b->given.at[i]);
		given = true;
	}
	if (!given)
		add_once(&c->arena, &c->targets, target_name(&c->arena, &e->target));
}

/* The specialisation of a signature as a number: launches try more specialised variants first. */
static int weight(const char *signature)
{
	int sum = 0;
	for (const char *at = signature; (at = strchr(at, ':')); at++) {
		int divisor = atoi(at + 1);
		sum += divisor == 1 ? 16 : ilog2((u64)MAX(divisor, 1));
	}
	return sum;
}

static int by_weight(const void *x, const void *y)
{
	const char *a = *(const char *const *)x, *b = *(const char *const *)y;
	int more = weight(b) - weight(a);
	return more ? more : strcmp(a, b);
}

/* Adds the last launcher to the table. */
static void add_row(struct build_state *b, const struct group *g)
{
	sb_printf(&b->table, "\t{\"%s\", \"", g->first->kernel);
	for (const char *s = g->types; *s && strcmp(s, ", ") != 0; s++)
		sb_printf(&b->table, strchr("\"\\?", *s) ? "\\%c" : (u8)*s < ' ' ? "\\%03o" : "%c", *s);
	sb_printf(&b->table, "\", %s_load},\n", b->symbols.at[b->symbols.len - 2]);
}

const struct unit_source *manifest_sources(struct arena *a, const struct manifest_entry *e, u32 *n)
{
	struct unit_source file = {.file = e->source, .first_line = 1, .text = e->text};
	const struct unit_source *sources = e->nsources ? e->sources : arena_dup(a, &file, sizeof file);
	*n = MAX(e->nsources, 1u);
	if (!e->nsources) {
		struct unit_source *s = (struct unit_source *)(uintptr_t)sources;
		s->len = s->text ? strlen(s->text) : 0;
		if (!s->text && !(s->text = read_file(a, e->source, &s->len)))
			return NULL;
	}
	const char *hash = arena_printf(a, "%016llx", (unsigned long long)hash_sources(sources, *n));
	if (!strcmp(hash, e->hash))
		return sources;
	refuse("'%s' has changed since the manifest was written", e->source);
	return NULL;
}

static int build_group(struct build_state *b, const struct group *g)
{
	struct command *c = b->c;
	u32 n;
	const struct unit_source *sources = manifest_sources(&c->arena, g->first, &n);
	if (!sources)
		return EXIT_USER;
	if (!g->first->text && !g->first->nsources)
		note_file(c, g->first->source);
	c->kernel = g->first->kernel;
	c->options.codegen = codegen_options_chosen(&g->first->options.codegen);
	c->defines.len = c->signatures.len = c->targets.len = 0;
	for (u32 i = 0; i < g->entries.len; i++) {
		take_entry(c, g->entries.at[i], !i);
		take_entry_targets(b, g->entries.at[i]);
	}
	qsort(c->signatures.at, c->signatures.len, sizeof *c->signatures.at, by_weight);
	int r = build_kernel(b, sources, n);
	if (!r)
		add_row(b, g);
	return r;
}

/* Makes the names of the table, which launchers must not have. */
static bool name_table(struct build_state *b)
{
	struct arena *a = &b->c->arena;
	const char *table = arena_printf(a, "%s_table", b->name), *why = c_name_taken(a, table);
	if (why)
		refuse("the table cannot have the name '%s', which %s; --prefix my_ makes it my_%s", table, why, table);
	vec_push(a, &b->symbols, table);
	vec_push(a, &b->symbols, arena_printf(a, "%s_table_len", b->name));
	return !why;
}

int build_manifest_sources(struct command *c, const struct manifest_entry *entries, u32 n)
{
	struct build_state *b = begin_sources(c);
	VEC(struct group) groups = {0};
	int r = EXIT_DONE;
	if (!b || !name_table(b))
		return EXIT_USER;
	take_targets(c);
	b->given = c->targets;
	c->targets = (text_list){0};
	for (u32 i = 0; i < b->given.len; i++)
		if (!read_target(b->given.at[i], &(struct target){0}))
			return EXIT_USER;
	for (u32 i = 0; i < n; i++) {
		const char *types = types_of(&c->arena, entries[i].arguments);
		u32 g = 0;
		while (g < groups.len && !belongs(&groups.at[g], &entries[i], types))
			g++;
		if (g == groups.len)
			vec_push(&c->arena, &groups, ((struct group){.first = &entries[i], .types = types}));
		vec_push(&c->arena, &groups.at[g].entries, &entries[i]);
	}
	for (u32 g = 0; g < groups.len && !r; g++)
		r = build_group(b, &groups.at[g]);
	return r ? r : write_sources(b);
}
