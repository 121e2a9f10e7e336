/* wgmma: each warp of a warpgroup computes its 16 rows of D.
 *
 * With late timing (see async_timing), a wgmma is computed when a wgmma.wait_group covers it, and its accumulators hold
 * a NaN until then. Its operands in shared memory are also read at issue and must not change before the wait, nor may
 * the registers of A. */
#include "support/small_floats.h"
#include "runtime/sim/fragment.h"
#include "runtime/sim/memory.h"

#include <stdlib.h>
#include <string.h>

enum { M = 16, MAX_N = 256, MAX_K = 32, UNIT = 16 };
#define POISON 0x7FFA7FFAu /* a NaN as an f32 and as two f16 */

/* Plan of an instruction. */
struct plan {
	u32 n, k;
	const struct element *a, *b, *c;
	u32 a_regs; /* 0: A is in shared memory */
	bool a_transposed, b_transposed, a_negated, b_negated;
	struct fragment_map a_map, c_map;
	struct multiplier by;
};

enum acc_state { ACC_FREE, ACC_PENDING, ACC_DELIVERED };

struct accumulator {
	enum acc_state state;
	const struct plan *plan; /* plan of the last wgmma into it */
	const struct operand *regs;
	u32 pending;                         /* outstanding wgmmas */
	u64 bits[MAX_FRAGMENT_REGS * LANES]; /* contents of the registers at delivery */
	union {
		float f[M * MAX_N];
		i32 i[M * MAX_N];
	} cells;
};

struct job {
	const struct instr *i;
	u64 a, b;  /* matrix descriptors */
	bool adds; /* scale-d */
	bool done; /* computed at issue; its inputs must still stay unchanged until the wait */
	u64 hash;  /* hash of the inputs at issue */
	struct accumulator *acc;
	u32 group;
};

struct wgmma {
	bool fenced; /* a wgmma.fence was executed */
	u32 group;   /* number of the group that is open */
	VEC(struct job) jobs;
	VEC(struct accumulator *) accumulators;
	u8 *in_flight; /* per register: 1 for a pending accumulator */
	u64 *at_fence; /* contents of the registers of wgmmas at the last fence */
};

static const struct plan *plan_of(const struct instr *i)
{
	return i->plan;
}

static struct wgmma *state_of(struct warp *w)
{
	struct arena *a = &w->block->arena;
	if (!w->wgmma) {
		w->wgmma = arena_new(a, struct wgmma);
		w->wgmma->in_flight = arena_array(a, u8, w->block->launch->kernel->nregs);
		w->wgmma->at_fence = arena_array(a, u64, (size_t)w->block->launch->kernel->nregs * LANES);
	}
	return w->wgmma;
}

/* --- matrices in shared memory ----------------------------------------------------------------------------------- */

/* Location of the 16-byte units of a matrix (PTX ISA, "Strides" and "Canonical Layouts" of wgmma). A K-major unit holds
 * elements of one row of A or column of B; an MN-major unit holds eight rows or columns at one k. */
struct matrix {
	u32 start, leading, stride, base; /* bytes; base: 128-byte rows */
	u32 width;                        /* units of a swizzled row: 1, 2, 4, 8 */
	bool mn_major;
};

static bool read_descriptor(struct warp *w, const struct instr *i, u64 d, bool mn_major, struct matrix *m)
{
	static const u8 widths[] = {1, 8, 4, 2};
	const u64 reserved = (u64)3 << 14 | (u64)3 << 30 | (u64)7 << 46 | (u64)0x3FF << 52;
	if (d & reserved)
		return fault(w, i, ALL_LANES, "the matrix descriptor 0x%llx has reserved bits set", (ull)d);
	*m = (struct matrix){.start = (u32)(d & 0x3FFF) * UNIT,
			     .leading = (u32)(d >> 16 & 0x3FFF) * UNIT,
			     .stride = (u32)(d >> 32 & 0x3FFF) * UNIT,
			     .base = (u32)(d >> 49 & 7),
			     .width = widths[d >> 62],
			     .mn_major = mn_major};
	return true;
}

static u32 swizzled(const struct matrix *m, u32 address)
{
	return address ^ (((address >> 7) - m->base) & (m->width - 1)) * UNIT;
}

/* Address of unit `u` of row or column mn; K-major. */
static u32 k_unit(const struct matrix *m, u32 mn, u32 u)
{
	return swizzled(m, m->start + mn / 8 * m->stride + mn % 8 * m->width * UNIT +
				   u * (m->width == 1 ? m->leading : UNIT));
}

/* Address of unit `u` of the rows or columns at k; MN-major. */
static u32 mn_unit(const struct matrix *m, u32 u, u32 k)
{
	u32 within = k % 8 * m->width * UNIT;
	if (m->width == 1)
		return m->start + u * m->stride + within + k / 8 * m->leading;
	return swizzled(m, m->start + u % m->width * UNIT + u / m->width * m->leading + within + k / 8 * m->stride);
}

/* Reads up to 32 units at once. False after a fault. */
static bool read_units(struct warp *w, const struct instr *i, const struct places *p, u32 n, u64 *hash)
{
	for (u32 u = 0; u < n; u++)
		if (p->at[u] + UNIT > w->block->shared_bytes)
			return fault(w, i, ALL_LANES,
				     "reads beyond shared memory: address 0x%llx, and there are %llu bytes",
				     (ull)p->at[u], (ull)w->block->shared_bytes);
	shadow_lanes(w, i, (u32)(((u64)1 << n) - 1), p->at, UNIT, A_READ | A_ASYNC | A_PRODUCT);
	for (u32 u = 0; u < n; u++) {
		u64 half[2];
		memcpy(half, p->host[u], sizeof half);
		*hash = (*hash ^ half[0]) * 0x9E3779B97F4A7C15u;
		*hash = ((*hash ^ *hash >> 29) + half[1]) * 0xBF58476D1CE4E5B9u;
	}
	return !w->block->failed;
}

/* Reads rows or columns [mn, mn + n) into cells, unless `cells` is NULL, and hashes their bits. False after a fault. */
static bool read_matrix(struct warp *w, const struct instr *i, const struct matrix *m, const struct element *e, u32 mn,
			u32 n, u32 k, void *cells, u32 mn_step, u32 k_step, u64 *hash)
{
	u32 per_unit = UNIT / ((u32)e->bits / 8), across = (m->mn_major ? n : k) / per_unit,
	    units = across * (m->mn_major ? k : n);
	u32 line_step = m->mn_major ? k_step : mn_step, step = m->mn_major ? mn_step : k_step;
	struct places p = {0};
	u32 line = 0, unit = 0, cell[LANES];
	for (u32 first = 0; first < units; first += LANES) {
		u32 some = MIN(units - first, (u32)LANES);
		for (u32 u = 0; u < some; u++) {
			p.at[u] = m->mn_major ? mn_unit(m, mn / per_unit + unit, line) : k_unit(m, mn + line, unit);
			p.host[u] = w->block->shared + p.at[u];
			cell[u] = line * line_step + unit * per_unit * step;
			unit = unit + 1 == across ? 0 : unit + 1;
			line += !unit;
		}
		if (!read_units(w, i, &p, some, hash))
			return false;
		for (u32 u = 0; u < some && cells; u++)
			e->unpack(p.host[u], per_unit, (char *)cells + cell[u] * e->cell, step);
	}
	return true;
}

/* --- one wgmma --------------------------------------------------------------------------------------------------- */

struct inputs {
	union {
		float f[M * MAX_K];
		i32 i[M * MAX_K];
	} a;
	union {
		float f[MAX_K * MAX_N];
		i32 i[MAX_K * MAX_N];
	} b;
};

/* Reads the rows of A. The warp computes its own 16 rows. But wgmma is an instruction of the warpgroup, and no rule
 * says which warp reads which row, so the race check covers all 64 rows. */
static bool read_rows(struct warp *w, const struct job *j, const struct matrix *m, struct inputs *in, u64 *hash)
{
	const struct plan *p = plan_of(j->i);
	u32 own = w->id % GROUP_WARPS;
	u64 others = 0;
	bool good = read_matrix(w, j->i, m, p->a, own * M, M, p->k, in ? &in->a : NULL, p->k, 1, hash);
	for (u32 i = 0; i < GROUP_WARPS && good; i++)
		good = i == own || read_matrix(w, j->i, m, p->a, i * M, M, p->k, NULL, p->k, 1, &others);
	return good;
}

/* Reads A and B. `in` may be NULL, for the checks and the hash only. */
static bool read_inputs(struct warp *w, const struct job *j, struct inputs *in, u64 *hash)
{
	const struct plan *p = plan_of(j->i);
	struct matrix m;
	*hash = 0;
	if (p->a_regs) {
		const struct operand *regs = operand_items(&j->i->ops[1]);
		if (in)
			p->a->load(w, regs, &p->a_map, &in->a);
		for (u32 r = 0; r < p->a_regs; r++)
			*hash = hash_bytes(reg(w, &regs[r]), LANES * sizeof(u64), *hash);
	} else if (!read_descriptor(w, j->i, j->a, p->a_transposed, &m) || !read_rows(w, j, &m, in, hash)) {
		return false;
	}
	return read_descriptor(w, j->i, j->b, p->b_transposed, &m) &&
	       read_matrix(w, j->i, &m, p->b, 0, p->n, p->k, in ? &in->b : NULL, 1, p->n, hash);
}

static void multiply(struct job *j, struct inputs *in)
{
	const struct plan *p = plan_of(j->i);
	struct accumulator *acc = j->acc;
	if (!j->adds)
		memset(&acc->cells, 0, sizeof acc->cells);
	if (p->a_negated != p->b_negated)
		for (u32 k = 0; k < M * p->k; k++)
			/* NOLINT(clang-analyzer-core.uninitialized.Assign): read_inputs fills M × k */
			in->a.f[k] = -in->a.f[k];
	p->by.run(&p->by, &in->a, &in->b, &acc->cells, M, p->n, p->k);
	if (p->c->type == PT_F16)
		round_to_f16(acc->cells.f, M * p->n);
}

/* --- accumulators ------------------------------------------------------------------------------------------------ */

static u32 acc_regs(const struct accumulator *acc)
{
	return acc->plan->c_map.nregs;
}

static bool same_registers(const struct accumulator *acc, const struct plan *p, const struct operand *regs)
{
	if (acc->plan->c != p->c || acc->plan->n != p->n)
		return false;
	for (u32 r = 0; r < p->c_map.nregs; r++)
		if (acc->regs[r].reg != regs[r].reg)
			return false;
	return true;
}

static struct accumulator *find_accumulator(struct wgmma *s, enum acc_state state, const struct plan *p,
					    const struct operand *regs)
{
	for (u32 k = 0; k < s->accumulators.len; k++) {
		struct accumulator *acc = s->accumulators.at[k];
		if (acc->state == state && (state == ACC_FREE || same_registers(acc, p, regs)))
			return acc;
	}
	return NULL;
}

static bool any_in_flight(const struct wgmma *s, const struct operand *regs, u32 n)
{
	for (u32 r = 0; r < n; r++)
		if (s->in_flight[regs[r].reg])
			return true;
	return false;
}

static bool is_poison(struct warp *w, const struct accumulator *acc)
{
	for (u32 r = 0; r < acc_regs(acc); r++)
		for (u32 l = 0; l < LANES; l++)
			if (reg(w, &acc->regs[r])[l] != POISON)
				return false;
	return true;
}

static bool is_untouched(struct warp *w, const struct accumulator *acc)
{
	for (u32 r = 0; r < acc_regs(acc); r++)
		if (memcmp(&acc->bits[r * LANES], reg(w, &acc->regs[r]), LANES * sizeof(u64)))
			return false;
	return true;
}

static bool are_fenced(struct warp *w, const struct operand *regs, u32 n)
{
	for (u32 r = 0; r < n; r++)
		if (memcmp(&state_of(w)->at_fence[(size_t)regs[r].reg * LANES], reg(w, &regs[r]), LANES * sizeof(u64)))
			return false;
	return true;
}

/* Accumulator of the wgmma being issued, with the current values of its registers; `adds`: the wgmma adds to them. NULL
 * after a fault. */
static struct accumulator *open_accumulator(struct warp *w, const struct instr *i, bool adds)
{
	struct wgmma *s = state_of(w);
	const struct plan *p = plan_of(i);
	const struct operand *regs = operand_items(&i->ops[0]);
	struct accumulator *acc = find_accumulator(s, ACC_PENDING, p, regs);
	if (acc) {
		acc->plan = p;
		return acc;
	}
	if (any_in_flight(s, regs, p->c_map.nregs)) {
		fault(w, i, ALL_LANES, "accumulates in registers of another wgmma that was not waited for");
		return NULL;
	}
	acc = find_accumulator(s, ACC_DELIVERED, p, regs);
	if (acc && !is_untouched(w, acc)) {
		fault(w, i, ALL_LANES, "the accumulators were changed without a wgmma.fence afterwards");
		return NULL;
	}
	if (!acc && adds && !are_fenced(w, regs, p->c_map.nregs)) {
		fault(w, i, ALL_LANES, "the accumulators were written without a wgmma.fence afterwards");
		return NULL;
	}
	acc = acc ? acc : find_accumulator(s, ACC_FREE, p, regs);
	if (!acc) {
		acc = arena_new(&w->block->arena, struct accumulator);
		vec_push(&w->block->arena, &s->accumulators, acc);
	}
	acc->state = ACC_PENDING;
	acc->plan = p;
	acc->regs = regs;
	acc->pending = 0;
	p->c->load(w, regs, &p->c_map, &acc->cells);
	return acc;
}

static void poison(struct warp *w, const struct accumulator *acc)
{
	for (u32 r = 0; r < acc_regs(acc); r++) {
		state_of(w)->in_flight[acc->regs[r].reg] = 1;
		for (u32 l = 0; l < LANES; l++)
			reg(w, &acc->regs[r])[l] = POISON;
	}
}

static void deliver(struct warp *w, struct accumulator *acc)
{
	acc->plan->c->store(w, acc->regs, &acc->plan->c_map, &acc->cells);
	acc->state = ACC_DELIVERED;
	for (u32 r = 0; r < acc_regs(acc); r++) {
		state_of(w)->in_flight[acc->regs[r].reg] = 0;
		memcpy(&acc->bits[r * LANES], reg(w, &acc->regs[r]), LANES * sizeof(u64));
	}
}

/* --- instructions ------------------------------------------------------------------------------------------------ */

void run_wgmma_fence(struct warp *w, const struct instr *i, u32 mask)
{
	struct wgmma *s = state_of(w);
	if (!needs_warpgroup(w, i, mask))
		return;
	s->fenced = true;
	const struct ptx_kernel *k = w->block->launch->kernel;
	for (size_t r = 0; r < k->nregs && k->in_products; r++)
		if (k->in_products[r])
			memcpy(&s->at_fence[r * LANES], &w->regs[r * LANES], LANES * sizeof *w->regs);
	for (u32 n = 0; n < s->accumulators.len; n++)
		if (s->accumulators.at[n]->state == ACC_DELIVERED)
			s->accumulators.at[n]->state = ACC_FREE;
}

void run_wgmma_commit(struct warp *w, const struct instr *i, u32 mask)
{
	if (needs_warpgroup(w, i, mask))
		state_of(w)->group++;
}

static bool finish_one(struct warp *w, struct job *j)
{
	struct inputs in;
	u64 hash;
	if (!read_inputs(w, j, j->done ? NULL : &in, &hash))
		return false;
	if (hash != j->hash)
		return fault(w, j->i, ALL_LANES, "%s changed before a wait for this wgmma",
			     plan_of(j->i)->a_regs ? "registers of A, or shared memory," : "shared memory");
	if (j->done)
		return true;
	multiply(j, &in);
	if (--j->acc->pending)
		return true;
	if (!is_poison(w, j->acc))
		return fault(w, j->i, ALL_LANES, "accumulators were written before a wait for this wgmma");
	deliver(w, j->acc);
	return true;
}

/* Completes the wgmmas of groups below `end`. */
static void finish(struct warp *w, u32 end)
{
	struct wgmma *s = state_of(w);
	u32 done = 0;
	for (; done < s->jobs.len && s->jobs.at[done].group < end; done++)
		if (!finish_one(w, &s->jobs.at[done]))
			return;
	s->jobs.len -= done;
	if (done && s->jobs.len)
		memmove(s->jobs.at, s->jobs.at + done, s->jobs.len * sizeof *s->jobs.at);
}

void run_wgmma_wait(struct warp *w, const struct instr *i, u32 mask)
{
	struct wgmma *s = state_of(w);
	u32 left = (u32)i->ops[0].imm;
	if (needs_warpgroup(w, i, mask) && s->group > left)
		finish(w, s->group - left);
}

static bool is_uniform(struct warp *w, const struct instr *i, const struct operand *o, int bits, u64 *value)
{
	*value = operand_value(w, o, 0, bits);
	for (u32 l = 1; l < LANES; l++)
		if (operand_value(w, o, l, bits) != *value)
			return fault(w, i, 1u << l, "this lane's %s differs from lane 0's",
				     bits == 1 ? "scale-d" : "matrix descriptor");
	return true;
}

static bool is_late(struct cta *b)
{
	if (b->launch->timing != ASYNC_MIXED)
		return b->launch->timing == ASYNC_LATE;
	b->random = b->random * 6364136223846793005u + 1442695040888963407u;
	return b->random >> 63;
}

/* Checks the fence before a wgmma, and the registers of A. */
static bool check_fence(struct warp *w, const struct instr *i)
{
	const struct operand *regs = operand_items(&i->ops[1]);
	u32 n = plan_of(i)->a_regs;
	if (!state_of(w)->fenced)
		return fault(w, i, ALL_LANES, "no wgmma.fence precedes it");
	if (n && any_in_flight(state_of(w), regs, n))
		return fault(w, i, ALL_LANES, "A is in registers of a wgmma that was not waited for");
	return !n || are_fenced(w, regs, n) ||
	       fault(w, i, ALL_LANES, "the registers of A were written without a wgmma.fence afterwards");
}

void run_wgmma(struct warp *w, const struct instr *i, u32 mask)
{
	const struct plan *p = plan_of(i);
	struct wgmma *s = state_of(w);
	struct job j = {.i = i, .group = s->group};
	struct inputs in;
	u64 adds;
	if (!needs_warpgroup(w, i, mask) || !is_uniform(w, i, &i->ops[2], 64, &j.b) ||
	    !is_uniform(w, i, &i->ops[3], 1, &adds) || !check_fence(w, i) ||
	    (!p->a_regs && !is_uniform(w, i, &i->ops[1], 64, &j.a)))
		return;
	j.adds = adds;
	bool late = is_late(w->block);
	if (!read_inputs(w, &j, late ? NULL : &in, &j.hash) || !(j.acc = open_accumulator(w, i, j.adds)))
		return;
	j.done = !late && !j.acc->pending;
	if (j.done) {
		multiply(&j, &in);
		deliver(w, j.acc);
	} else {
		j.acc->pending++;
		poison(w, j.acc);
	}
	vec_push(&w->block->arena, &s->jobs, j);
}

void wgmma_end(struct warp *w)
{
	const struct wgmma *s = w->wgmma;
	if (s && s->jobs.len)
		fault(w, s->jobs.at[0].i, ALL_LANES, "the warp ends without having waited for this wgmma");
}

/* --- plans ------------------------------------------------------------------------------------------------------- */

static bool is_flag(const struct operand *o, i64 no, bool *flag)
{
	*flag = (i64)o->imm != no && (i64)o->imm == 1;
	return o->kind == O_INT && ((i64)o->imm == no || (i64)o->imm == 1);
}

/* Decodes the immediates after scale-d. */
static bool decode_flags(struct instr *i, struct plan *p)
{
	bool is_int = p->c->type == PT_S32, is_half = p->a->bits == 16, plus_a = true, plus_b = true;
	u32 want = is_int ? 4 : !is_half ? 6 : p->a_regs ? 7 : 8, at = 6;
	bool ok = i->nops == want;
	if (ok && !is_int)
		ok = is_flag(&i->ops[4], -1, &plus_a) && is_flag(&i->ops[5], -1, &plus_b);
	if (ok && is_half && !p->a_regs)
		ok = is_flag(&i->ops[at++], 0, &p->a_transposed);
	if (ok && is_half)
		ok = is_flag(&i->ops[at], 0, &p->b_transposed);
	p->a_negated = !plus_a;
	p->b_negated = !plus_b;
	return ok;
}

/* Marks the accumulators and the registers of A in kernel->in_products. */
static void mark_registers(struct decoder *d)
{
	struct ptx_kernel *k = d->kernel;
	if (!k->in_products)
		k->in_products = arena_array(d->arena, bool, k->nregs);
	for (u32 o = 0; o < 2; o++)
		for (u32 r = 0; r < d->i->ops[o].nitems; r++)
			k->in_products[d->i->ops[o].items[r].reg] = true;
}

bool plan_wgmma(struct decoder *d)
{
	struct instr *i = d->i;
	struct plan *p = arena_new(d->arena, struct plan);
	u32 shape[3];
	if (!opcode_shape(d, shape))
		return false;
	p->n = shape[1];
	p->k = shape[2];
	p->a = element_of(i->type[1]);
	p->b = element_of(i->type[2]);
	p->c = element_of(i->type[0]);
	bool n_exists =
		p->n >= 8 && p->n <= MAX_N && p->n % 8 == 0 && (i->type[0] != PT_S32 || p->n <= 32 || p->n % 16 == 0);
	if (shape[0] != GROUP_WARPS * M || !n_exists || p->k * (u32)p->a->bits != 256)
		return decode_fail(d, "'%s': this shape does not exist for these types", i->opcode);
	const struct operand *scale_d = &i->ops[3];
	u32 c_regs = M * p->n * (u32)p->c->bits / 32 / LANES;
	if (i->nops < 4 || !is_fragment(&i->ops[0], c_regs, 32, false))
		return decode_fail(d, "'%s' has %u accumulator registers", i->opcode, c_regs);
	p->a_regs = i->ops[1].kind == O_VECTOR ? 4 : 0;
	if (!is_fragment(&i->ops[1], p->a_regs ? 4 : 1, p->a_regs ? 32 : 64, false) ||
	    !is_fragment(&i->ops[2], 1, 64, false) ||
	    (scale_d->kind == O_REG ? scale_d->reg_type != PT_PRED : scale_d->kind != O_INT) || !decode_flags(i, p))
		return false;
	if (p->a_regs)
		p->a_map = fragment_map_of(d->arena, fragment_a(p->a->bits), p->a_regs, p->k);
	p->c_map = fragment_map_of(d->arena, fragment_c(p->c->bits), c_regs, p->n);
	p->by = multiplier_of(i->type[1], i->type[2], i->type[0], i->mod[M_SATFINITE], p->a->bits == 8);
	i->plan = p;
	mark_registers(d);
	return true;
}
