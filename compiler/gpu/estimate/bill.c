#include <math.h>

#include "analysis/register_pressure.h"
#include "gpu/estimate/known_values.h"
#include "gpu/layout/access_cost.h"
#include "gpu/layout/memory_access.h"
#include "gpu/layout/mma.h"
#include "ir/graph.h"

/* Cycles between an operation and the use of its result. */
enum {
	ARITHMETIC_LATENCY = 5,
	SPECIAL_LATENCY = 24,
	SHUFFLE_LATENCY = 26,
	SHARED_LATENCY = 32,
	BARRIER_LATENCY = 40,
	MMA_LATENCY = 34,
	MEMORY_LATENCY = 750, /* of L2 and DRAM in a kernel that loads much */
	ATOMIC_LATENCY = 900,
	PARTITION_LATENCY = 700, /* from the start of a block with mbarriers and tensor maps to its first copy */
};
/* Multiply-adds of a multiprocessor in a cycle: tensor cores with 16-bit operands, by wgmma and by mma.sync; fp32. */
enum { WGMMA_RATE = 2048, MMA_RATE = 1024, FMA_RATE = 128 };
enum {
	SCHEDULERS = 4,
	WAVEFRONT = 128,
	L2_BYTES = 64 /* in a cycle */,
	SECTOR = 32,
	SPECIAL_CYCLES = 2 /* of a warp's instruction */
};
enum {
	GUESSED_ELEMENTS = 2048, /* of a loop whose bounds are not known */
	GUESSED_ITERATIONS = 16, /* of a loop whose step is not known either */
	MOST_ITERATIONS = 1 << 30,
	SAMPLES = 32,         /* programs, or blocks of a persistent kernel */
	MOST_VISITS = 200000, /* operations visited, for all samples, except the first one */
};
/* Index arithmetic and masks: the elements of a thread mostly share them. */
static const double index_share = 0.25;
/* Probability that a branch is taken whose condition is not known: equality is rare. */
static const double probable = 0.5, improbable = 0.125;
static const double golden = 0.6180339887; /* multiples of it, without their integer part, are spread evenly */

struct walk {
	struct arena scratch;
	struct pass_state *s;
	struct known_values known;
	struct bill bill;
	double *ready;                  /* by value->mark: when the value is there, in cycles */
	bool *data;                     /* by value->mark: the value depends on loaded data */
	double now;                     /* of the warps that run the walked block */
	double weight;                  /* how often the walked block runs */
	double tensor_free, dot_cycles; /* when the tensor cores have finished the dots so far; of the last dot */
	int warps;                      /* of a block, without producer warps */
	double memory_wait;             /* latency of a copy that was issued before, for each iteration of the loop */
	bool producer;                  /* the producer warps' partition */
	u64 visits;                     /* operations visited, for all samples */
};

static void visit(struct walk *w, const struct block *b);

/* --- numbering --------------------------------------------------------------------------------------------------- */

static u32 number_values(const struct block *b, u32 n)
{
	for (u32 i = 0; i < b->nargs; i++)
		b->args[i]->mark = n++;
	for (const struct op *o = b->first; o; o = o->next) {
		for (u32 i = 0; i < o->nresults; i++)
			o->results[i].mark = n++;
		for (u32 i = 0; i < o->nblocks; i++)
			n = number_values(o->blocks[i], n);
	}
	return n;
}

/* --- amounts ----------------------------------------------------------------------------------------------------- */

/* Elements of a thread. */
static double elements(const struct value *v)
{
	const struct type *t = v->type;
	return type_is_tensor(t) && t->layout ? layout_num_regs(t->layout) : 1;
}

static double tile_bytes(const struct walk *w, const struct type *t)
{
	const struct type *of = type_elem(t)->kind == TY_PTR ? type_elem(t)->elem : type_elem(t);
	int bits = of->kind == TY_PTR ? 64 : dtype_bits(of->dtype);
	return (double)type_numel(t) * bits / 8 / w->s->k->cuda.cluster;
}

/* Instructions that each warp of the block issues, which takes the block's warps this time. */
static void issue(struct walk *w, double instructions)
{
	double warps = w->producer ? 1 : w->warps;
	w->bill.issue += w->weight * instructions * warps / SCHEDULERS;
	w->now += instructions;
}

static void wavefronts(struct walk *w, double n)
{
	w->bill.shared += w->weight * n;
}

/* Traffic with L2. Each line, or part of a line, takes a cycle in addition to those of its bytes: on an H200, copies of
 * rows of 64 bytes reach three quarters of the rate of rows of 128 bytes. */
static void moves(struct walk *w, double bytes, double lines)
{
	w->bill.bytes += w->weight * bytes;
	w->bill.l2 += w->weight * (bytes / L2_BYTES + MAX(lines, bytes / CACHE_LINE));
}

static double operands_ready(const struct walk *w, const struct op *o, u32 n)
{
	double t = w->now;
	for (u32 i = 0; i < n; i++)
		t = MAX(t, w->ready[operand(o, i)->mark]);
	return t;
}

static void finish(struct walk *w, const struct op *o, double at)
{
	for (u32 i = 0; i < o->nresults; i++)
		w->ready[o->results[i].mark] = at;
}

/* --- elementwise operations -------------------------------------------------------------------------------------- */

struct cost {
	double instructions, special; /* for an element */
};

static struct cost cost_of(const struct op *o)
{
	switch (o->code) {
	case IR_DIVSI:
	case IR_DIVUI:
	case IR_REMSI:
	case IR_REMUI: return (struct cost){18, 1};
	case IR_DIVF: return (struct cost){7, 1};
	case IR_PRECISE_DIVF:
	case IR_PRECISE_SQRT: return (struct cost){9, 1};
	case IR_REMF: return (struct cost){20, 1};
	case IR_EXP:
	case IR_EXP2: return (struct cost){2, 1};
	case IR_LOG:
	case IR_LOG2: return (struct cost){5, 1};
	case IR_SQRT:
	case IR_RSQRT: return (struct cost){3, 1};
	case IR_SIN:
	case IR_COS: return (struct cost){16, 0};
	case IR_TAN: return (struct cost){30, 1};
	case IR_ERF: return (struct cost){18, 1};
	case IR_TANH: return (struct cost){9, 2};
	case IR_LOG2_APPROX:
	case IR_SIN_APPROX:
	case IR_COS_APPROX:
	case IR_TANH_APPROX: return (struct cost){1, 1};
	case IR_BITCAST: return (struct cost){0, 0};
	default: return (struct cost){1, 0};
	}
}

/* Instructions of a thread for the element type: two halves are one register, 64 bits are two. */
static double width_factor(const struct op *o)
{
	int bits = type_elem_bits(result(o)->type);
	enum dtype d = type_dtype(result(o)->type);
	return bits == 64 ? 2 : dtype_is_float(d) && bits == 16 ? 0.5 : 1;
}

static void visit_elementwise(struct walk *w, const struct op *o)
{
	struct cost c = cost_of(o);
	double n = elements(result(o)),
	       part = type_is_tensor(result(o)->type) && !w->data[result(o)->mark] ? index_share : 1;
	w->now = operands_ready(w, o, o->noperands);
	issue(w, n * part * c.instructions * width_factor(o));
	w->bill.special += w->weight * n * part * c.special * w->warps * SPECIAL_CYCLES;
	finish(w, o, w->now + (c.special > 0 ? SPECIAL_LATENCY : ARITHMETIC_LATENCY));
}

/* --- memory ------------------------------------------------------------------------------------------------------ */

/* Instructions of a thread that access memory through `p`, by vectors. */
static double instructions_of(const struct op *o, const struct value *p)
{
	bool vectors = o->code == IR_LOAD || o->code == IR_STORE || o->code == IR_ASYNC_COPY;
	return MAX(elements(p) / (vectors ? 1 << vector_of(o, o->attr[ATTR_VECTOR]).bits : 1), 1);
}

/* The part of the elements that are accessed under the mask, or NULL. */
static double share_of_mask(const struct walk *w, const struct value *mask)
{
	double share;
	return mask && known_share(&w->known, mask, &share) ? share : 1;
}

/* An access of global memory by the threads: through pointers `p`, under the mask at operand `mask`. */
static void access_memory(struct walk *w, const struct op *o, const struct value *p, const struct value *mask,
			  double latency)
{
	double bytes = tile_bytes(w, p->type), share = share_of_mask(w, mask), lines = 1;
	if (type_is_tensor(p->type) && p->type->layout)
		lines = (double)load_cost(w->s->axis, p, mask, p->type->layout);
	w->now = operands_ready(w, o, o->noperands);
	issue(w, 2 * instructions_of(o, p));
	wavefronts(w, lines * w->warps * share);
	double touched = MIN(lines * w->warps, 32.0 * w->warps * elements(p));
	moves(w, share * MAX(bytes, touched * SECTOR), share * touched);
	double transfer = share * (bytes / L2_BYTES + touched);
	if (o->code == IR_STORE) /* a block ends when its stores have left */
		w->now += transfer;
	finish(w, o, w->now + latency + transfer);
}

/* The part of a TMA tile that lies in the tensor. */
static double inside(const struct walk *w, const struct op *o)
{
	const struct type *t = operand(o, 1)->type;
	double share = 1;
	for (u32 d = 0; d < 2 && o->code == IR_TMA_TENSOR_COPY; d++) {
		i64 offset, size;
		if (single_number(&w->known, operand(o, 3 + d), &offset) &&
		    single_number(&w->known, operand(o, 5 + d), &size))
			share *= fmin(fmax(((double)size - (double)offset) / t->shape[t->rank - 2 + (int)d], 0), 1);
	}
	return share;
}

/* Bytes of a TMA tile that are contiguous in memory. */
static double row_bytes(const struct op *o)
{
	const struct type *t = operand(o, 1)->type;
	return (double)t->shape[t->rank - 2 + o->attr[ATTR_ALONG]] * type_elem_bits(t) / 8;
}

static void visit_copy(struct walk *w, const struct op *o)
{
	double bytes = tile_bytes(w, operand(o, 1)->type);
	w->now = operands_ready(w, o, o->noperands);
	if (o->code == IR_ASYNC_COPY) {
		const struct value *p = operand(o, 0), *mask = o->noperands > 2 ? operand(o, 2) : NULL;
		double share = share_of_mask(w, mask);
		issue(w, 2 * instructions_of(o, p));
		double lines = p->type->layout ? (double)load_cost(w->s->axis, p, NULL, p->type->layout) * w->warps : 0;
		moves(w, share * MAX(bytes, lines * SECTOR), share * lines);
	} else {
		double share = inside(w, o) * (o->attr[ATTR_COPY_PAIR] && w->s->k->cuda.pairs ? 0.5 : 1);
		moves(w, bytes * share, bytes / MIN(row_bytes(o), CACHE_LINE) * share);
		issue(w, 4);
	}
	wavefronts(w, bytes / WAVEFRONT);
	finish(w, o, w->now);
}

static void visit_shared(struct walk *w, const struct op *o)
{
	const struct value *v = o->code == IR_LOCAL_LOAD ? result(o) : operand(o, 0);
	double bytes = elements(v) * type_elem_bits(v->type) / 8 * 32 * w->warps;
	w->now = operands_ready(w, o, o->noperands);
	issue(w, MAX(bytes / (16.0 * 32 * w->warps), 1));
	wavefronts(w, bytes / WAVEFRONT);
	finish(w, o, w->now + SHARED_LATENCY);
}

static void visit_conversion(struct walk *w, const struct op *o)
{
	const struct type *from = operand(o, 0)->type, *to = result(o)->type;
	int bits = type_elem_bits(to);
	w->now = operands_ready(w, o, 1);
	double cost = (double)conversion_cost(from->layout, to->layout, MAX(bits / 8, 1));
	if (cost > 0) {
		wavefronts(w, cost * w->warps);
		issue(w, (double)conversion_instructions(&w->s->ctx->layouts, from->layout, to->layout, bits));
	}
	finish(w, o, w->now + (cost > 0 ? SHARED_LATENCY + BARRIER_LATENCY : 0));
}

/* --- dots -------------------------------------------------------------------------------------------------------- */

static double multiply_adds(const struct walk *w, const struct op *o)
{
	const struct type *a = operand(o, 0)->type, *r = result(o)->type;
	return (double)type_numel(r) * a->shape[a->rank - 1] / w->s->k->cuda.cluster;
}

/* Operands of 8 bits have twice the rate of 16 bits, 32 bits half of it. */
static double rate_of(const struct op *o, double rate16)
{
	return rate16 * 16 / MAX(type_elem_bits(operand(o, 0)->type), 8);
}

/* Each instruction of a warpgroup reads its rows of A, if they are in shared memory, and its columns of B. */
static double dot_wavefronts(const struct walk *w, const struct op *o)
{
	const struct type *r = result(o)->type;
	int first = o->attr[ATTR_EXCHANGED] != 0, bits = type_elem_bits(operand(o, 0)->type);
	double m = r->shape[first], n = r->shape[1 - first], k = multiply_adds(w, o) * w->s->k->cuda.cluster / (m * n);
	double columns = MAX(dims_get(o->attr[ATTR_INSTR], 1), 8);
	double a = operand(o, (u32)first)->type->kind == TY_MEMDESC ? m * k * n / columns : 0, b = n * k * m / 64;
	return (a + b) * bits / 8 / WAVEFRONT / w->s->k->cuda.cluster;
}

static void visit_dot(struct walk *w, const struct op *o)
{
	double madds = multiply_adds(w, o), groups = MAX(w->warps / SCHEDULERS, 1), cycles, begin;
	if (o->code == IR_WARP_GROUP_DOT) {
		double reads = dot_wavefronts(w, o);
		cycles = madds / rate_of(o, WGMMA_RATE);
		wavefronts(w, reads);
		w->bill.tensor += w->weight * cycles;
		w->now = operands_ready(w, o, 2);
		issue(w, 8);
		begin = MAX(w->now, w->tensor_free);
		w->dot_cycles = MAX(cycles, reads) / groups;
		w->tensor_free = begin + w->dot_cycles;
		finish(w, o, w->tensor_free + (o->attr[ATTR_ASYNC] ? 0 : MMA_LATENCY));
		w->now = o->attr[ATTR_ASYNC] ? w->now : w->tensor_free + MMA_LATENCY;
		return;
	}
	w->now = operands_ready(w, o, 3);
	if (mma_of_dot(o)) {
		const struct mma *m = mma_of_dot(o);
		cycles = madds / rate_of(o, MMA_RATE);
		w->bill.tensor += w->weight * cycles;
		issue(w, madds / (m->m * m->n * m->k) / w->warps);
		w->now += MAX(cycles / groups - madds / (m->m * m->n * m->k) / w->warps, 0);
	} else {
		issue(w, madds / FMA_RATE * SCHEDULERS / w->warps);
	}
	finish(w, o, w->now + MMA_LATENCY);
}

/* --- reductions -------------------------------------------------------------------------------------------------- */

static double region_operations(const struct op *o)
{
	double n = 0;
	for (const struct op *x = o->blocks[0]->first; x; x = x->next)
		n += !op_has(x, END);
	return MAX(n, 1);
}

static void visit_reduction(struct walk *w, const struct op *o)
{
	const struct value *in = operand(o, 0);
	double n = elements(in), kept = o->nresults && type_is_tensor(result(o)->type) ? elements(result(o)) : 1;
	double each = region_operations(o), steps = o->code == IR_SCAN ? 2 : 1;
	bool across = warps_along_axis(o) > 1;
	w->now = operands_ready(w, o, o->noperands);
	issue(w, steps * each * (n + 5 * kept) + 5 * kept * o->noperands);
	wavefronts(w, across ? 2 * kept * w->warps : 0);
	w->now +=
		5 * (SHUFFLE_LATENCY + each * ARITHMETIC_LATENCY) + log2(MAX(n / kept, 1)) * each * ARITHMETIC_LATENCY;
	w->now += across ? 2 * (SHARED_LATENCY + BARRIER_LATENCY) : 0;
	finish(w, o, w->now + ARITHMETIC_LATENCY);
}

/* --- control flow ------------------------------------------------------------------------------------------------ */

static bool waits_for_copies(const struct block *b)
{
	for (const struct op *o = b->first; o; o = o->next)
		if (o->code == IR_ASYNC_WAIT || o->code == IR_WAIT_BARRIER)
			return true;
	return false;
}

static double iterations(const struct walk *w, const struct op *loop, i64 *lower, i64 *step)
{
	i64 upper;
	bool from = single_number(&w->known, for_lower(loop), lower),
	     to = single_number(&w->known, for_upper(loop), &upper);
	bool by = single_number(&w->known, for_step(loop), step) && *step > 0;
	if (!from || !to)
		return by ? ceil(GUESSED_ELEMENTS / (double)*step) : GUESSED_ITERATIONS;
	return by ? fmin(fmax(ceil(((double)upper - (double)*lower) / (double)*step), 0), MOST_ITERATIONS) : 0;
}

static void set_value(struct walk *w, const struct value *v, struct known k, double ready, bool data)
{
	w->known.at[v->mark] = k;
	w->ready[v->mark] = ready;
	w->data[v->mark] = data;
}

static void copy_value(struct walk *w, const struct value *to, const struct value *from, bool is_known)
{
	set_value(w, to, is_known ? known_of(&w->known, from) : (struct known){0}, w->ready[from->mark],
		  w->data[from->mark]);
}

/* Passes the yielded values to the next iteration, `delay` cycles later. A yielded value may be another carried value.
 */
static void yield_values(struct walk *w, const struct op *loop, double delay)
{
	u32 n = loop->nresults;
	double *ready = arena_array(&w->scratch, double, n + 1);
	bool *data = arena_array(&w->scratch, bool, n + 1);
	for (u32 i = 0; i < n; i++) {
		ready[i] = w->ready[for_yielded(loop, i)->mark] + delay;
		data[i] = w->data[for_yielded(loop, i)->mark];
	}
	for (u32 i = 0; i < n; i++)
		set_value(w, for_arg(loop, i), (struct known){0}, ready[i], data[i]);
}

/* The first iteration fills the pipeline; the second stands for all others. */
static void visit_for(struct walk *w, const struct op *loop)
{
	i64 lower = 0, step = 1;
	const struct block *body = loop->blocks[0];
	double outer = w->weight, n = iterations(w, loop, &lower, &step), begin = w->now, wait = w->memory_wait;
	bool copies = waits_for_copies(body);
	for (u32 i = 0; i < loop->nresults; i++)
		copy_value(w, for_arg(loop, i), for_init(loop, i), n <= 1);
	for (int pass = 0; pass < (n > 1 ? 2 : n > 0); pass++) {
		double first = w->now;
		struct known index = one_number(pass ? (i64)((u64)lower + (u64)step) : lower);
		if (pass) {
			index.advance = step;
			index.iterations = (i64)n - 1;
			index.loop = for_index(loop)->mark + 1;
		}
		set_value(w, for_index(loop), index, w->now, false);
		w->weight = outer * (pass ? n - 1 : 1);
		w->memory_wait = !copies ? wait : pass ? 0 : MEMORY_LATENCY;
		visit(w, body);
		if (copies && pass) /* a buffer is filled again after its last use */
			w->now = MAX(w->now, first + MEMORY_LATENCY / (double)MAX(w->s->cuda.stages - 1, 1));
		double rest = pass ? (n - 2) * (w->now - first) : 0;
		w->now += rest;
		w->tensor_free += rest;
		yield_values(w, loop, rest);
	}
	for (u32 i = 0; i < loop->nresults; i++)
		copy_value(w, &loop->results[i], for_arg(loop, i), n < 1);
	w->weight = outer;
	w->memory_wait = wait;
	w->now = MAX(w->now, begin);
}

static void visit_while(struct walk *w, const struct op *o)
{
	double outer = w->weight, begin = w->now;
	w->weight = outer * GUESSED_ITERATIONS;
	for (u32 i = 0; i < o->nblocks; i++) {
		for (u32 k = 0; k < o->blocks[i]->nargs; k++)
			set_value(w, o->blocks[i]->args[k], (struct known){0}, w->now, true);
		visit(w, o->blocks[i]);
	}
	w->weight = outer;
	w->now = begin + (w->now - begin) * GUESSED_ITERATIONS;
	for (u32 i = 0; i < o->nresults; i++)
		set_value(w, &o->results[i], (struct known){0}, w->now, true);
}

static double probability(const struct walk *w, const struct value *condition)
{
	double share;
	if (known_share(&w->known, condition, &share))
		return share;
	const struct op *test = def_if(condition, IR_CMPI);
	bool equal = test && test->attr[ATTR_PREDICATE] == CMPI_EQ,
	     unequal = test && test->attr[ATTR_PREDICATE] == CMPI_NE;
	return equal ? improbable : unequal ? 1 - improbable : probable;
}

static void visit_if(struct walk *w, const struct op *o)
{
	double p = probability(w, operand(o, 0)), outer = w->weight, begin = operands_ready(w, o, 1), end = begin;
	for (u32 i = 0; i < o->nblocks; i++) {
		double chance = i ? 1 - p : p;
		const struct op *last = o->blocks[i]->last;
		if (chance <= 0)
			continue;
		w->now = begin;
		w->weight = outer * chance;
		visit(w, o->blocks[i]);
		/* of a branch that is not in a loop, some block takes the longer way, and the launch waits for it */
		end = outer < 1 || outer > 1 ? end + chance * (w->now - begin) : MAX(end, w->now);
		for (u32 k = 0; k < o->nresults && last && k < last->noperands; k++)
			copy_value(w, &o->results[k], operand(last, k), chance >= 1);
	}
	w->weight = outer;
	w->now = end;
}

/* The producer warps run beside the others. */
static void visit_partition(struct walk *w, const struct op *o)
{
	double now = w->now + PARTITION_LATENCY, tensor_free = w->tensor_free;
	w->producer = true;
	visit(w, o->blocks[0]);
	w->producer = false;
	w->now = now;
	w->tensor_free = tensor_free;
}

/* --- operations -------------------------------------------------------------------------------------------------- */

static bool any_data(const struct walk *w, const struct op *o)
{
	bool any = o->code == IR_LOAD || o->code == IR_LOCAL_LOAD || op_is_dot(o) || o->code == IR_ATOMIC_RMW;
	for (u32 i = 0; i < o->noperands; i++)
		any |= w->data[operand(o, i)->mark];
	return any || (o->nresults && dtype_is_float(type_dtype(result(o)->type)));
}

static void visit_op(struct walk *w, const struct op *o)
{
	switch (o->code) {
	case IR_LOAD:
		access_memory(w, o, operand(o, 0), o->noperands > 1 ? operand(o, 1) : NULL, MEMORY_LATENCY);
		return;
	case IR_STORE: access_memory(w, o, operand(o, 0), o->noperands > 2 ? operand(o, 2) : NULL, 0); return;
	case IR_ATOMIC_RMW:
	case IR_ATOMIC_CAS:
		access_memory(w, o, operand(o, 0), o->code == IR_ATOMIC_RMW && o->noperands > 2 ? operand(o, 2) : NULL,
			      ATOMIC_LATENCY);
		return;
	case IR_ASYNC_COPY:
	case IR_TMA_COPY:
	case IR_TMA_TENSOR_COPY: visit_copy(w, o); return;
	case IR_LOCAL_LOAD:
	case IR_LOCAL_STORE: visit_shared(w, o); return;
	case IR_CONVERT_LAYOUT: visit_conversion(w, o); return;
	case IR_DOT:
	case IR_WARP_GROUP_DOT: visit_dot(w, o); return;
	case IR_REDUCE:
	case IR_SCAN: visit_reduction(w, o); return;
	case IR_BARRIER: w->now += BARRIER_LATENCY; return;
	case IR_WAIT_BARRIER:
	case IR_ASYNC_WAIT:
		w->now += w->memory_wait;
		w->memory_wait = 0;
		return;
	case IR_WARP_GROUP_WAIT:
		w->now = MAX(w->now, w->tensor_free - (double)o->attr[ATTR_PENDING_DOTS] * w->dot_cycles);
		finish(w, o, w->now);
		return;
	case IR_FOR: visit_for(w, o); return;
	case IR_WHILE: visit_while(w, o); return;
	case IR_IF: visit_if(w, o); return;
	case IR_PARTITION: visit_partition(w, o); return;
	default: break;
	}
	for (u32 i = 0; i < o->nblocks && !op_runs_on_elements(o); i++)
		visit(w, o->blocks[i]);
	if (op_has(o, ELEM) && o->nresults) {
		visit_elementwise(w, o);
		return;
	}
	double at = operands_ready(w, o, o->noperands);
	if (o->code == IR_GATHER || o->code == IR_HISTOGRAM || o->code == IR_MAP || o->code == IR_PURE_ASM ||
	    o->code == IR_INLINE_ASM) {
		w->now = at;
		issue(w, o->nresults ? 4 * elements(result(o)) : 1);
		at = w->now + SHARED_LATENCY;
	}
	finish(w, o, at);
}

static void visit(struct walk *w, const struct block *b)
{
	for (const struct op *o = b->first; o; o = o->next) {
		w->visits++;
		know_results(&w->known, o);
		bool data = any_data(w, o);
		for (u32 i = 0; i < o->nresults; i++)
			w->data[o->results[i].mark] = data;
		visit_op(w, o);
	}
}

/* --- the sample -------------------------------------------------------------------------------------------------- */

static void set_parameters(struct walk *w, const struct launch_shape *l)
{
	const struct kernel *k = w->s->k;
	u32 own = k->nparams - (k->cuda.persistent ? GRID_PARAMS : 0);
	for (u32 i = 0; i < k->nparams; i++) {
		u32 leaf = k->params[i].leaf;
		struct known v = {0};
		if (i >= own)
			v = one_number(l->grid[i - own]);
		else if (leaf < l->nleaves && l->is_known[leaf])
			v = one_number(l->leaf[leaf]);
		set_value(w, k->params[i].value, v, 0, false);
	}
}

struct bill average_bill(struct pass_state *s, const struct launch_shape *l)
{
	struct bill sum = {0};
	double longest = 0, shortest = 0;
	u32 n = number_values(s->k->body, 0);
	u64 all = (u64)l->grid[0] * l->grid[1] * l->grid[2];
	struct walk w = {.s = s, .known.launch = l, .warps = MAX(s->k->num_warps / s->k->cuda.cluster, 1)};
	u64 programs = l->blocks ? l->blocks : all,
	    samples = MIN(programs, SAMPLES); /* of programs, or persistent blocks */
	w.known.at = arena_array(&w.scratch, struct known, n + 1);
	w.ready = arena_array(&w.scratch, double, n + 1);
	w.data = arena_array(&w.scratch, bool, n + 1);
	for (u64 i = 0; i < samples; i++) {
		if (i == 1) /* the first sample tells how long one takes */
			samples = MIN(samples, MAX(MOST_VISITS / w.visits, 1));
		u64 number = (2 * i + 1) * programs / (2 * samples);
		u32 x = (u32)(number % l->grid[0]), rest = (u32)(number / l->grid[0]);
		u32 at[3] = {x, rest % l->grid[1], rest / l->grid[1]}, block[3] = {(u32)number, 0, 0};
		memcpy(w.known.program, l->blocks ? block : at, sizeof at);
		w.known.iteration = fmod(0.5 + (double)i * golden, 1);
		w.now = w.tensor_free = 0;
		w.weight = 1;
		set_parameters(&w, l);
		visit(&w, s->k->body);
		w.bill.alone += w.now;
		double own = w.now / ceil((double)(all - number) / (double)programs);
		longest = MAX(longest, own);
		shortest = i ? MIN(shortest, own) : own;
	}
	sum = w.bill;
	sum.longest = longest;
	sum.shortest = shortest;
	double *parts[] = {&sum.tensor, &sum.shared, &sum.issue, &sum.special, &sum.l2, &sum.bytes, &sum.alone};
	for (u32 i = 0; i < ARRAY_LEN(parts); i++)
		*parts[i] /= (double)MAX(samples, 1);
	arena_free(&w.scratch);
	return sum;
}
