#include "gpu/layout/access_cost.h"

#include "ir/graph.h"
#include "ir/scalar.h"
#include "layout/conversion.h"
#include "gpu/layout/memory_access.h"

enum { BARRIER = 16 /* wavefronts */, MAX_OPERATIONS = 64 /* that compute an address */ };

/* --- distances between elements ---------------------------------------------------------------------------------- */

struct step {
	bool known;
	i64 by;
};

static const struct step unknown = {0};

static struct step of(i64 by)
{
	return (struct step){true, by};
}

static struct step step_along(const struct axis_analysis *a, const struct value *v, int d, int *left);

static struct step sum(struct step x, struct step y, i64 times)
{
	i64 by;
	if (!x.known || !y.known || __builtin_mul_overflow(y.by, times, &by) || __builtin_add_overflow(x.by, by, &by))
		return unknown;
	return of(by);
}

static struct step step_of_operation(const struct axis_analysis *a, const struct op *o, int d, int *left)
{
	struct value *x = operand(o, 0), *y = o->noperands > 1 ? operand(o, 1) : NULL;
	const struct axis_info *c = y ? axis_of(a, y) : NULL;
	switch (o->code) {
	case IR_ADDI: return sum(step_along(a, x, d, left), step_along(a, y, d, left), 1);
	case IR_SUBI: return sum(step_along(a, x, d, left), step_along(a, y, d, left), -1);
	case IR_ADDPTR:
		return sum(step_along(a, x, d, left), step_along(a, y, d, left), (i64)pointee_bytes(x->type));
	case IR_MULI: {
		bool first = axis_of(a, x)->is_constant;
		c = first ? axis_of(a, x) : c;
		return c->is_constant ? sum(of(0), step_along(a, first ? y : x, d, left), c->constant) : unknown;
	}
	case IR_SHLI:
		if (!c->is_constant || c->constant < 0 || c->constant > 30)
			return unknown;
		return sum(of(0), step_along(a, x, d, left), 1ll << c->constant);
	case IR_REMSI:
	case IR_REMUI:
	case IR_EXTSI:
	case IR_EXTUI:
	case IR_TRUNCI:
	case IR_CONVERT_LAYOUT: return step_along(a, x, d, left);
	case IR_BITCAST:
		return type_is_ptr(x->type) || x->type == result(o)->type ? step_along(a, x, d, left) : unknown;
	case IR_EXPAND_DIMS:
		return d == o->attr[ATTR_AXIS] ? of(0) : step_along(a, x, d - (d > o->attr[ATTR_AXIS]), left);
	case IR_BROADCAST: return x->type->shape[d] == 1 ? of(0) : step_along(a, x, d, left);
	case IR_TRANS: return step_along(a, x, perm_get(o->attr[ATTR_ORDER], d), left);
	default: return unknown;
	}
}

/* The difference between neighbours along d, found in at most *left operations. */
static struct step step_along(const struct axis_analysis *a, const struct value *v, int d, int *left)
{
	if (!type_is_tensor(v->type) || v->type->shape[d] == 1 || axis_of(a, v)->constancy[d] == v->type->shape[d])
		return of(0);
	const struct op *o = v->def, *loop = o ? NULL : v->block->parent;
	if (loop && loop->code == IR_FOR && v->index && --*left >= 0)
		return step_along(a, for_init(loop, for_arg_number(v)), d, left);
	if (def_if(v, IR_MAKE_RANGE))
		return of(1);
	return o && o->noperands && --*left >= 0 ? step_of_operation(a, o, d, left) : unknown;
}

i64 address_step(const struct axis_analysis *a, const struct value *ptr, int d)
{
	int left = MAX_OPERATIONS;
	struct step s = step_along(a, ptr, d, &left);
	return s.known && s.by >= 0 ? s.by : -1;
}

/* --- accesses ---------------------------------------------------------------------------------------------------- */

/* An address as the number of its line. Addresses with different numbers of rows are never in one line. */
struct line {
	i64 row, line;
};

struct address_map {
	int rank;
	i64 step[MAX_RANK];                /* bytes; -1: not known */
	i32 run[MAX_RANK], same[MAX_RANK]; /* along an unknown step: contiguous elements, and equal elements */
	i64 bytes;
};

static struct address_map map_addresses(const struct axis_analysis *a, const struct value *ptr)
{
	struct address_map m = {.rank = ptr->type->rank, .bytes = (i64)pointee_bytes(ptr->type)};
	for (int d = 0; d < m.rank; d++) {
		m.step[d] = address_step(a, ptr, d);
		m.run[d] = axis_of(a, ptr)->contiguity[d];
		m.same[d] = axis_of(a, ptr)->constancy[d];
	}
	return m;
}

static struct line line_at(const struct address_map *m, const struct layout *l, u32 position)
{
	struct line at = {0};
	for (int d = 0; d < m->rank; d++) {
		i64 i = (position & layout_dim_mask(l, d)) >> layout_dim_shift(l, d);
		if (m->step[d] >= 0) {
			at.line += i * m->step[d];
			continue;
		}
		at.row = (at.row << l->log2_size[d]) + i / MAX(m->run[d], m->same[d]);
		at.line += i % m->run[d] * m->bytes;
	}
	at.line /= CACHE_LINE;
	return at;
}

/* The number of lines that the lanes of a warp access with the register at `position`. */
static int count_lines(const struct address_map *m, const struct layout *l, u32 position)
{
	struct line seen[1 << LANE_BITS];
	int n = 0;
	for (u32 lane = 0; lane < 1u << l->bits[LL_LANE]; lane++) {
		struct line at = line_at(m, l, position ^ linear(l->basis[LL_LANE], lane));
		int k = 0;
		while (k < n && (seen[k].row != at.row || seen[k].line != at.line))
			k++;
		if (k == n)
			seen[n++] = at;
	}
	return n;
}

i64 load_cost(const struct axis_analysis *a, const struct value *ptr, const struct value *mask, const struct layout *l)
{
	struct address_map m = map_addresses(a, ptr);
	return (i64)count_lines(&m, l, 0) * (layout_num_regs(l) >> vector_in_layout(a, ptr, mask, l).bits);
}

i64 conversion_cost(const struct layout *from, const struct layout *to, int bytes)
{
	i64 words = MAX((i64)(layout_num_regs(from) + layout_num_regs(to)) * bytes / 4, 2);
	switch (plan_conversion(from, to).kind) {
	case CONVERSION_REGISTERS: return 0;
	case CONVERSION_MEMORY: return words + BARRIER;
	default: return words;
	}
}

i64 conversion_instructions(struct layout_pool *p, const struct layout *from, const struct layout *to, int bits)
{
	struct conversion c = plan_conversion(from, to);
	struct shared_plan shared = plan_shared(p, from, to, bits, false);
	i64 words = MAX((i64)layout_num_regs(to) * bits / 32, 1);
	switch (c.kind) {
	case CONVERSION_REGISTERS: return 0;
	case CONVERSION_MEMORY: return shared.stores + shared.loads + BARRIER;
	default: return words * (1 + count_selects(&c));
	}
}
