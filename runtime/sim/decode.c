/* Decoding of opcode text into functions. */
#include "runtime/sim/fragment.h"

#include <string.h>

static const struct {
	const char *name;
	int bits;
} types[] = {
	[PT_PRED] = {"pred", 1},      [PT_B8] = {"b8", 8},      [PT_B16] = {"b16", 16},
	[PT_B32] = {"b32", 32},       [PT_B64] = {"b64", 64},   [PT_B128] = {"b128", 128},
	[PT_U8] = {"u8", 8},          [PT_U16] = {"u16", 16},   [PT_U32] = {"u32", 32},
	[PT_U64] = {"u64", 64},       [PT_S8] = {"s8", 8},      [PT_S16] = {"s16", 16},
	[PT_S32] = {"s32", 32},       [PT_S64] = {"s64", 64},   [PT_F16] = {"f16", 16},
	[PT_F16X2] = {"f16x2", 32},   [PT_BF16] = {"bf16", 16}, [PT_BF16X2] = {"bf16x2", 32},
	[PT_TF32] = {"tf32", 32},     [PT_F32] = {"f32", 32},   [PT_F64] = {"f64", 64},
	[PT_E4M3] = {"e4m3", 8},      [PT_E5M2] = {"e5m2", 8},  [PT_E4M3X2] = {"e4m3x2", 16},
	[PT_E5M2X2] = {"e5m2x2", 16},
};

int ptx_bits(enum ptx_type t)
{
	return types[t].bits;
}

const char *ptx_type_name(enum ptx_type t)
{
	return t ? types[t].name : "no type";
}

enum ptx_type ptx_type_named(const char *name)
{
	for (u32 t = PT_PRED; t < ARRAY_LEN(types); t++)
		if (!strcmp(types[t].name, name))
			return (enum ptx_type)t;
	return PT_NONE;
}

/* --- parts of an opcode ---------------------------------------------------------------------------------------- */

bool take(struct decoder *d, const char *part)
{
	for (u32 i = 0; i < d->nparts; i++)
		if (!d->taken[i] && !strcmp(d->part[i], part))
			return d->taken[i] = true;
	return false;
}

enum ptx_type take_type(struct decoder *d)
{
	for (u32 i = 0; i < d->nparts; i++) {
		enum ptx_type t = d->taken[i] ? PT_NONE : ptx_type_named(d->part[i]);
		if (t) {
			d->taken[i] = true;
			return t;
		}
	}
	return PT_NONE;
}

int take_one_of(struct decoder *d, const char *names)
{
	int index = 0;
	for (const char *at = names; *at; index++) {
		size_t len = strcspn(at, " ");
		for (u32 i = 0; i < d->nparts; i++)
			if (!d->taken[i] && strlen(d->part[i]) == len && !memcmp(d->part[i], at, len)) {
				d->taken[i] = true;
				return index;
			}
		at += len;
		at += strspn(at, " ");
	}
	return -1;
}

bool decode_fail(struct decoder *d, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	if (!d->error)
		d->error = arena_vprintf(d->arena, format, ap);
	va_end(ap);
	return false;
}

bool want_operands(struct decoder *d, u32 least, u32 most)
{
	if (d->i->nops >= least && d->i->nops <= most)
		return true;
	return decode_fail(d, "'%s' has %u operands", d->i->opcode, d->i->nops);
}

/* --- instructions ---------------------------------------------------------------------------------------------- */

static bool split(struct decoder *d, const char **base)
{
	char *text = arena_str(d->arena, d->i->opcode, strlen(d->i->opcode));
	*base = text;
	d->nparts = 0;
	for (char *dot = strchr(text, '.'); dot; dot = strchr(dot, '.')) {
		*dot++ = 0;
		if (d->nparts == ARRAY_LEN(d->part))
			return decode_fail(d, "'%s' has too many parts", d->i->opcode);
		d->taken[d->nparts] = false;
		d->part[d->nparts++] = dot;
	}
	return true;
}

/* Replaces the name of a special register by its number. */
static bool number_specials(struct decoder *d, struct operand *o)
{
	if (o->kind == O_SPECIAL) {
		int n = special_register(o->name);
		if (n < 0)
			return decode_fail(d, "'%s' is not declared and is not a known special register", o->name);
		o->imm = (u64)n;
	}
	for (u32 i = 0; i < o->nitems; i++)
		if (!number_specials(d, &o->items[i]))
			return false;
	return true;
}

static bool decode_one(struct decoder *d)
{
	static const struct isa_row *const tables[] = {alu_opcodes,   convert_opcodes,  memory_opcodes,
						       async_opcodes, mbarrier_opcodes, matrix_opcodes,
						       warp_opcodes,  sync_opcodes,     cluster_opcodes};
	struct instr *i = d->i;
	const char *base;
	if (!split(d, &base))
		return false;
	for (u32 k = 0; k < i->nops; k++)
		if (!number_specials(d, &i->ops[k]))
			return false;
	for (u32 t = 0; t < ARRAY_LEN(tables); t++)
		for (const struct isa_row *o = tables[t]; o->name; o++)
			if (!strcmp(o->name, base)) {
				if (!o->decode(d))
					return decode_fail(d, "the simulator has no '%s' with these operands",
							   i->opcode);
				for (u32 p = 0; p < d->nparts; p++)
					if (!d->taken[p])
						return decode_fail(d, "the simulator does not know '.%s' of '%s'",
								   d->part[p], i->opcode);
				tl_assert(i->run);
				return true;
			}
	return decode_fail(d, "the simulator has no instruction '%s'", i->opcode);
}

bool sim_decode(struct arena *a, struct ptx_module *m, const char **error)
{
	for (u32 k = 0; k < m->nkernels; k++) {
		struct ptx_kernel *kernel = &m->kernels[k];
		if ((kernel->cluster[0] || kernel->explicit_cluster) && m->sm < 90) {
			*error = arena_printf(a, "line %u: '%s' runs in clusters, which begin with sm_90",
					      kernel->ncode ? kernel->code[0].line : 1, kernel->name);
			return false;
		}
		for (u32 n = 0; n < m->kernels[k].ncode; n++) {
			struct decoder d = {
				.arena = a, .module = m, .kernel = &m->kernels[k], .i = &m->kernels[k].code[n]};
			if (!decode_one(&d)) {
				*error = arena_printf(a, "line %u: %s", d.i->line, d.error);
				return false;
			}
			wgmma_registers(a, kernel, d.i);
			kernel->has_fences |= !strncmp(d.i->opcode, "fence", 5) || !strncmp(d.i->opcode, "membar", 6);
		}
	}
	return true;
}
