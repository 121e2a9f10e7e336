/* mma.sync. Not supported: m8n8k4 of f16, 4-bit and 1-bit integers, sparse and block-scaled forms. */
#include "support/small_floats.h"
#include "runtime/sim/fragment.h"

enum kind { KIND_F16, KIND_BF16, KIND_TF32, KIND_FP8, KIND_F64, KIND_INT };

static const struct shape {
	const char *name;
	u8 m, k;
	enum kind kind;
	int sm; /* minimum sm version */
} shapes[] = {
	{"m16n8k8", 16, 8, KIND_F16, 75},    {"m16n8k16", 16, 16, KIND_F16, 80}, {"m16n8k8", 16, 8, KIND_BF16, 80},
	{"m16n8k16", 16, 16, KIND_BF16, 80}, {"m16n8k4", 16, 4, KIND_TF32, 80},  {"m16n8k8", 16, 8, KIND_TF32, 80},
	{"m16n8k16", 16, 16, KIND_FP8, 89},  {"m16n8k32", 16, 32, KIND_FP8, 89}, {"m8n8k4", 8, 4, KIND_F64, 80},
	{"m16n8k4", 16, 4, KIND_F64, 90},    {"m16n8k8", 16, 8, KIND_F64, 90},   {"m16n8k16", 16, 16, KIND_F64, 90},
	{"m8n8k16", 8, 16, KIND_INT, 75},    {"m16n8k16", 16, 16, KIND_INT, 80}, {"m16n8k32", 16, 32, KIND_INT, 80},
};

enum { N = 8, MAX_M = 16, MAX_K = 32 };

/* Decoded form of an mma; instr.mods holds its address. */
struct plan {
	u32 m, k;
	const struct element *a, *b, *c;
	struct fragment_map a_map, b_map, c_map;
	bool by_halves;
	struct multiplier by;
};

union cells {
	float f[MAX_M * MAX_K];
	i32 i[MAX_M * MAX_K];
	double d[MAX_M * MAX_K / 2];
};

/* sm_90 executes an fp8 mma as two f16 mmas with half the k: of each four k, the lower two belong to the first. D is
 * added to their sum. */
static void multiply_by_halves(const struct plan *p, const union cells *a, const union cells *b, union cells *d)
{
	float x[MAX_M * MAX_K / 2], y[MAX_K / 2 * N], sum[MAX_M * N] = {0};
	u32 step = p->k / 2, cells = p->m * N;
	for (u32 half = 0; half < 2; half++) {
		for (u32 k = 0; k < step; k++) {
			u32 from = k / 2 * 4 + half * 2 + k % 2;
			for (u32 row = 0; row < p->m; row++)
				x[row * step + k] = a->f[row * p->k + from];
			memcpy(y + k * N, b->f + from * N, N * sizeof *y);
		}
		p->by.run(&p->by, x, y, sum, p->m, N, step);
		if (p->c->type == PT_F16)
			round_to_f16(sum, cells);
	}
	for (u32 c = 0; c < cells; c++)
		d->f[c] += sum[c];
}

static void run_mma(struct warp *w, const struct instr *i, u32 mask)
{
	const struct plan *p = (const struct plan *)(uintptr_t)i->mods;
	union cells a, b, d;
	if (mask != ALL_LANES) {
		fault(w, i, ~mask, "needs all lanes of the warp, and these are not active");
		return;
	}
	p->a->load(w, fragment_regs(&i->ops[1]), &p->a_map, &a);
	p->b->load(w, fragment_regs(&i->ops[2]), &p->b_map, &b);
	p->c->load(w, fragment_regs(&i->ops[3]), &p->c_map, &d);
	if (p->by_halves)
		multiply_by_halves(p, &a, &b, &d);
	else
		p->by.run(&p->by, &a, &b, &d, p->m, N, p->k);
	p->c->store(w, fragment_regs(&i->ops[0]), &p->c_map, &d);
}

/* Kind of the type of operands A and B; -1 if it is not supported. */
static int kind_of(enum ptx_type t)
{
	switch (t) {
	case PT_F16: return KIND_F16;
	case PT_BF16: return KIND_BF16;
	case PT_TF32: return KIND_TF32;
	case PT_E4M3:
	case PT_E5M2: return KIND_FP8;
	case PT_F64: return KIND_F64;
	case PT_S8:
	case PT_U8: return KIND_INT;
	default: return -1;
	}
}

static bool accumulates(enum kind kind, enum ptx_type t)
{
	switch (kind) {
	case KIND_F16:
	case KIND_FP8: return t == PT_F32 || t == PT_F16;
	case KIND_F64: return t == PT_F64;
	case KIND_INT: return t == PT_S32;
	default: return t == PT_F32;
	}
}

static u32 registers(u32 elements, int bits)
{
	return elements * (u32)bits / LANES / (bits == 64 ? 64 : 32);
}

static bool plan_mma(struct decoder *d, const struct shape *s, bool saturates)
{
	struct instr *i = d->i;
	struct plan *p = arena_new(d->arena, struct plan);
	*p = (struct plan){.m = s->m,
			   .k = s->k,
			   .a = element_of(i->type[1]),
			   .b = element_of(i->type[2]),
			   .c = element_of(i->type[0])};
	u32 a_regs = registers(p->m * p->k, p->a->bits), b_regs = registers(p->k * N, p->b->bits),
	    c_regs = registers(p->m * N, p->c->bits);
	int in_bits = p->a->bits == 64 ? 64 : 32, out_bits = p->c->bits == 64 ? 64 : 32;
	if (!want_operands(d, 4, 4))
		return false;
	if (!is_fragment(&i->ops[0], c_regs, out_bits, true) || !is_fragment(&i->ops[1], a_regs, in_bits, false) ||
	    !is_fragment(&i->ops[2], b_regs, in_bits, false) || !is_fragment(&i->ops[3], c_regs, out_bits, false))
		return decode_fail(d, "'%s' takes %u, %u, %u and %u registers", i->opcode, c_regs, a_regs, b_regs,
				   c_regs);
	p->a_map = fragment_map_of(d->arena, fragment_a(p->a->bits), a_regs, p->k);
	p->b_map = fragment_map_of(d->arena, fragment_b(p->b->bits), b_regs, N);
	p->c_map = fragment_map_of(d->arena, fragment_c(p->c->bits), c_regs, N);
	p->by_halves = s->kind == KIND_FP8;
	p->by = multiplier_of(p->by_halves ? PT_F16 : i->type[1], p->by_halves ? PT_F16 : i->type[2], i->type[0],
			      saturates, false);
	i->mods = (u64)(uintptr_t)p;
	i->run = run_mma;
	i->is_sync = true;
	return true;
}

bool decode_mma(struct decoder *d)
{
	enum ptx_type *type = d->i->type; /* types of D, A, B, C */
	bool ok = take(d, "sync") && take(d, "aligned") && take(d, "row") && take(d, "col") &&
		  strstr(d->i->opcode, ".row.col.");
	bool saturates = take(d, "satfinite");
	for (u32 t = 0; t < 4; t++)
		type[t] = take_type(d);
	int kind = kind_of(type[1]);
	if (!ok || kind < 0 || kind_of(type[2]) != kind || !accumulates((enum kind)kind, type[0]) ||
	    type[3] != type[0] || (saturates && kind != KIND_INT))
		return false;
	for (u32 s = 0; s < ARRAY_LEN(shapes); s++)
		if ((int)shapes[s].kind == kind && take(d, shapes[s].name)) {
			if (d->module->sm < shapes[s].sm)
				return decode_fail(d, "'%s' needs sm_%d", d->i->opcode, shapes[s].sm);
			return plan_mma(d, &shapes[s], saturates);
		}
	return false;
}
