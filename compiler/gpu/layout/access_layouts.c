/* Layout assignment: layouts of accesses to memory.
 *
 * Loads, stores and atomics prefer the contiguous dimension of their pointers across adjacent threads, in wide vectors
 * (from axis analysis). Accesses of tiles of one shape and order share a vector, and so do the accesses between which
 * values pass. Loads without a contiguous dimension follow their users, or the stride of their addresses. */
#include "ir/scalar.h"
#include "analysis/axis.h"
#include "gpu/layout/access_cost.h"
#include "gpu/layout/assign_layouts.h"
#include "gpu/layout/memory_access.h"

/* --- properties of accesses ---------------------------------------------------------------------------------- */

bool memory_order(const struct placer *p, const struct op *o, int *order)
{
	const struct value *ptr = operand(o, 0);
	const struct axis_info *a = axis_of(p->s->axis, ptr);
	int n = ptr->type->rank;
	order_rows(ptr->type, order);
	for (int i = 1; i < n; i++)
		for (int k = i; k > 0 && a->contiguity[order[k]] > a->contiguity[order[k - 1]]; k--) {
			int t = order[k];
			order[k] = order[k - 1];
			order[k - 1] = t;
		}
	return a->contiguity[order[0]] > 1;
}

bool is_memory_op(const struct op *o)
{
	return o->code == IR_LOAD || o->code == IR_STORE || o->code == IR_ATOMIC_RMW || o->code == IR_ATOMIC_CAS;
}

/* --- accesses with a contiguous dimension ---------------------------------------------------------------------- */

struct layout_access {
	struct op *op;
	int order[MAX_RANK], vec;
	int run; /* elements of its unaligned vector loads, which other accesses do not share; 0: none */
	u32 group;
	u32 same; /* an access whose elements stay in the same threads, or this access; see join_values */
	int most; /* elements of a vector */
};
struct accesses {
	struct placer *p;
	VEC(struct layout_access) at;
	VEC(struct layout_access) groups; /* one for each shape and order */
	VEC(const struct op *) scans;
};

static bool is_elementwise(const struct op *o)
{
	return op_has(o, ELEM) || o->code == IR_TRANS;
}

static bool is_elementwise_or_shape(const struct op *o)
{
	return op_has(o, ELEM) || op_is_shape(o);
}

static void note_operands(struct op *o, void *arg)
{
	struct placer *p = arg;
	for (u32 i = 0; i < 2 && o->code == IR_DOT; i++) {
		add_sources(&p->operands, operand(o, i), is_elementwise);
		add_sources(&p->shaped_operands, operand(o, i), is_elementwise_or_shape);
	}
}

bool feeds_dot(const struct placer *p, const struct op *load, bool shapes)
{
	return load->code == IR_LOAD && set_has(shapes ? &p->shaped_operands : &p->operands, result(load));
}

bool may_be_copied(struct placer *p, const struct op *load, int stages)
{
	const struct op *loop = load->block->parent;
	bool yes = loop && loop->code == IR_FOR && stages_of(p->s, loop) >= stages && p->s->target->has_async_copy &&
		   p->s->k->cuda.cluster == 1 && !load->attr[ATTR_VOLATILE] && load_fills_zero(load) &&
		   !may_be_written(p->s, load->block, pointer_base(operand(load, 0)));
	for (u32 i = 0; yes && i < load->noperands; i++)
		yes = is_free(p, operand(load, i));
	return yes;
}

/* The elements of one copy if o is a load of few elements, in a loop, that is combined with a dot's operand, and that
 * cp.async can issue as far ahead as the operand itself; otherwise 0. Registers hold such elements only one iteration
 * ahead, which is less than the memory latency. */
static int copied_ahead(struct placer *p, const struct op *o, const int *order)
{
	enum { LEAST = 4, MOST = 16 }; /* bytes of a copy */
	if (!feeds_dot(p, o, true) || type_numel(result(o)->type) > 32 * p->s->num_warps || !may_be_copied(p, o, 3))
		return 0;
	int bytes = dtype_bytes(type_dtype(result(o)->type)),
	    width = axis_vector_width(p->s->axis, operand(o, 0), mask_of(o), order[0]);
	return width * bytes < LEAST ? 0 : MIN(width, MOST / bytes);
}

/* True if threads outnumber the elements, or the tile is a row with an element for each thread: in any layout, a warp
 * accesses consecutive elements of a row. */
static bool are_few(const struct placer *p, const struct type *t)
{
	i64 threads = 32 * p->s->num_warps;
	bool is_row = false;
	for (int d = 0; d < t->rank; d++)
		is_row |= t->shape[d] == type_numel(t);
	return type_numel(t) < threads + is_row;
}

static void note_access(struct op *o, void *arg)
{
	struct accesses *all = arg;
	if (o->code == IR_SCAN)
		vec_push(&all->p->scratch, &all->scans, o);
	if (!is_memory_op(o) || !type_is_tensor(operand(o, 0)->type))
		return;
	struct layout_access a = {.op = o};
	bool feeds = feeds_dot(all->p, o, false);
	if (!memory_order(all->p, o, a.order) && o->code == IR_LOAD && !feeds)
		return; /* scattered: any layout will do */
	int most = elements_per_thread(all->p, operand(o, 0)->type), copied = copied_ahead(all->p, o, a.order), unit;
	bool few = are_few(all->p, operand(o, 0)->type) && all->p->s->k->cuda.cluster == 1 && !copied;
	if (few && (o->code == IR_STORE || (o->code == IR_LOAD && !feeds)))
		return; /* a few redundant accesses cost less than a conversion through other threads */
	a.vec = axis_vector_width(all->p->s->axis, operand(o, 0), mask_of(o), a.order[0]);
	a.vec = copied ? copied : MIN(a.vec, most);
	if (copied)
		map_put(&all->p->copied, o, o);
	/* on the way to a dot, elements are packed anyway; elements of other loads would be stored one by one */
	if (feeds)
		a.run = axis_run_length(all->p->s->axis, operand(o, 0), NULL, a.order[0], &unit);
	a.run = a.run <= most ? a.run : 0;
	vec_push(&all->p->scratch, &all->at, a);
}

static bool same_group(const struct layout_access *a, const struct layout_access *b)
{
	const struct type *s = operand(a->op, 0)->type, *t = operand(b->op, 0)->type;
	return s->rank == t->rank && !memcmp(s->shape, t->shape, sizeof s->shape) &&
	       !memcmp(a->order, b->order, sizeof a->order);
}

/* Finds the group of an access. Its first access stands for a group: groups are few, accesses may be many. */
static void add_to_group(struct accesses *all, struct layout_access *a)
{
	u32 i = 0;
	while (i < all->groups.len && !same_group(&all->groups.at[i], a))
		i++;
	if (i == all->groups.len)
		vec_push(&all->p->scratch, &all->groups, *a);
	a->group = i;
	all->groups.at[i].vec = MAX(all->groups.at[i].vec, a->vec);
}

/* The layout of a scan of a tile of this shape, if it suits the access as well as a blocked layout; or NULL. */
static const struct layout *layout_of_scan(const struct accesses *all, const struct layout_access *a, int vec)
{
	const struct type *t = operand(a->op, 0)->type;
	for (u32 i = 0; i < all->scans.len; i++) {
		const struct type *s = operand(all->scans.at[i], 0)->type;
		const struct layout *l = scan_layout(all->p, all->scans.at[i]);
		if (s->rank != 2 || t->rank != 2 || memcmp(s->shape, t->shape, sizeof s->shape) || a->order[0] != 1 ||
		    l->bits[LL_REG] < __builtin_ctz((u32)vec))
			continue;
		bool suits = true;
		for (int k = 0; 1 << k < vec; k++)
			suits &= l->basis[LL_REG][k] == 1u << (layout_dim_shift(l, 1) + k);
		if (suits)
			return l;
	}
	return NULL;
}

/* The elements that a thread may hold next to each other. An instruction accesses 16 bytes of a thread. If a thread
 * holds more, each of its instructions covers a part of every sector: stores then take twice the transactions, and
 * loads find the second half of a sector in the L1 cache. */
enum { BYTES_OF_INSTRUCTION = 16, MOST_READ = 32 };

static int most_elements(const struct op *o)
{
	int bytes = pointee_bytes(operand(o, 0)->type);
	return MAX((o->code == IR_LOAD ? MOST_READ : BYTES_OF_INSTRUCTION) / bytes, 1);
}

/* cp.async of 16 bytes bypasses the L1 cache, so that a sector whose halves are copied by two instructions comes twice
 * from the L2 cache. If threads hold more than 16 bytes, the copy has a layout different from the layout in which the
 * tile is read from shared memory. */
static void place_copy(struct accesses *all, const struct layout_access *a, int vec)
{
	struct placer *p = all->p;
	int most = BYTES_OF_INSTRUCTION / pointee_bytes(operand(a->op, 0)->type);
	if (vec > most && most > 0 && !a->run && feeds_dot(p, a->op, true) && may_be_copied(p, a->op, 2))
		map_put(&p->copies, a->op, (void *)blocked_layout(p, operand(a->op, 0)->type, a->order, most));
}

static struct layout_access *representative(struct accesses *all, struct layout_access *a)
{
	while (&all->at.at[a->same] != a)
		a = &all->at.at[a->same];
	return a;
}

/* Joins a write with the accesses of its group from which elementwise operations compute the written values. Their
 * vector is the smallest of their limits: a conversion costs more than narrower loads. */
static void join_values(struct accesses *all, struct layout_access *a)
{
	struct value_set values = {0};
	if (a->op->code == IR_LOAD)
		return;
	add_sources(&values, operand(a->op, 1), is_elementwise);
	for (u32 i = 0; i < all->at.len; i++) {
		struct layout_access *b = &all->at.at[i];
		if (b->group != a->group || !b->op->nresults || !set_has(&values, result(b->op)))
			continue;
		struct layout_access *x = representative(all, a), *y = representative(all, b);
		x->most = MIN(x->most, y->most);
		y->same = x->same;
	}
	arena_free(&values.scratch);
}

/* Accesses of one shape and order share the widest vector among them, so that values pass between them without
 * conversion. */
void place_accesses(struct placer *p)
{
	struct accesses all = {.p = p};
	walk(p->s->k->body, note_operands, p);
	walk(p->s->k->body, note_access, &all);
	for (u32 i = 0; i < all.at.len; i++) {
		all.at.at[i].same = i;
		all.at.at[i].most = most_elements(all.at.at[i].op);
		add_to_group(&all, &all.at.at[i]);
	}
	for (u32 i = 0; i < all.at.len; i++)
		join_values(&all, &all.at.at[i]);
	for (u32 i = 0; i < all.at.len; i++) {
		int widest = MIN(all.groups.at[all.at.at[i].group].vec, representative(&all, &all.at.at[i])->most),
		    vec = MAX(MAX(all.at.at[i].run, 1), widest);
		const struct op *o = all.at.at[i].op;
		const struct layout *l = layout_of_scan(&all, &all.at.at[i], vec);
		if (!l)
			l = blocked_layout(p, operand(o, 0)->type, all.at.at[i].order, vec);
		map_put(&p->memory, o, (void *)l);
		place_copy(&all, &all.at.at[i], vec);
		if (p->s->k->cuda.cluster > 1)
			p->common = l;
	}
}

/* --- loads with a stride ----------------------------------------------------------------------------------------- */

/* The dimension of the least distance between neighbours, if that is less than a line of the cache; otherwise -1. */
static int closest_dim(const struct placer *p, const struct value *ptr)
{
	i64 least = CACHE_LINE;
	int best = -1;
	for (int d = 0; d < ptr->type->rank; d++) {
		i64 step = address_step(p->s->axis, ptr, d);
		if (step > 0 && step < least)
			best = d, least = step;
	}
	return best;
}

/* Gives a load without a preferred layout another layout than its users if that takes less time, with the conversion.
 * If neighbours are some bytes apart, neighbouring lanes read several of them from one line of the cache. Loops issue
 * their loads ahead, and a conversion would wait for them. Few elements are loaded by several threads, as in
 * note_access. */
static void place_strided_load(struct op *o, void *arg)
{
	struct placer *p = arg;
	if (o->code != IR_LOAD || !type_is_tensor(result(o)->type) || map_get(&p->memory, o) || p->common ||
	    o->block != p->s->k->body || type_numel(result(o)->type) < 32 * p->s->num_warps)
		return;
	const struct value *ptr = operand(o, 0), *mask = mask_of(o);
	const struct layout *l = assigned_layout(p, result(o));
	int first = closest_dim(p, ptr), order[MAX_RANK], n = 0;
	if (!l || first < 0)
		return;
	order[n++] = first;
	for (int d = ptr->type->rank - 1; d >= 0; d--)
		if (d != first)
			order[n++] = d;
	const struct layout *near = blocked_layout(p, ptr->type, order, 1);
	i64 conversion = conversion_cost(near, l, dtype_bytes(type_dtype(result(o)->type)));
	if (load_cost(p->s->axis, ptr, mask, near) + conversion < load_cost(p->s->axis, ptr, mask, l)) {
		map_put(&p->memory, o, (void *)near);
		map_put(&p->assigned, result(o), (void *)near);
	}
}

void place_strided_loads(struct placer *p)
{
	walk(p->s->k->body, place_strided_load, p);
}
