/* Chooses the dimension of a tile that is contiguous in scratch memory.
 *
 * Tiles of one shape that are connected by elementwise operations, loads, stores and control flow form a class with a
 * common answer: the dimension along which most of the class's loads and stores access successive addresses. A nest
 * then need not gather from scratch memory the elements that it loads or stores as vectors. Operations on whole tiles
 * (scans, dots, gathers) work row by row, so they fix the last dimension. */
#include "cpu/cpu_internal.h"

/* Votes of an operation on whole tiles for the last dimension of its tiles (a load or store has one vote for each
 * dimension along which it has neighbours). So large that the loads and stores of a kernel do not outvote it. */
enum { WHOLE = 1000 };

/* The representative of v's class. */
static struct info *class_of(struct cpu_codegen *h, const struct value *v)
{
	struct info *i = info_of(h, v);
	while (i->same)
		i = i->same;
	return i;
}

static bool is_matrix(const struct value *v)
{
	return type_is_tensor(v->type) && v->type->rank > 1;
}

static void join(struct cpu_codegen *h, const struct value *a, const struct value *b)
{
	if (!is_matrix(a) || !is_matrix(b) || a->type->rank != b->type->rank ||
	    memcmp(a->type->shape, b->type->shape, (size_t)a->type->rank * sizeof *a->type->shape))
		return;
	struct info *x = class_of(h, a), *y = class_of(h, b);
	if (x == y)
		return;
	for (int d = 0; d < a->type->rank; d++)
		x->votes[d] += y->votes[d];
	y->same = x;
}

static void join_all(struct cpu_codegen *h, const struct op *o)
{
	const struct value *first = NULL;
	for (u32 i = 0; i < o->noperands + o->nresults; i++) {
		const struct value *v = i < o->noperands ? operand(o, i) : &o->results[i - o->noperands];
		if (first)
			join(h, first, v);
		else if (is_matrix(v))
			first = v;
	}
}

static void take_rows(struct cpu_codegen *h, const struct op *o)
{
	for (u32 i = 0; i < o->noperands + o->nresults; i++) {
		const struct value *v = i < o->noperands ? operand(o, i) : &o->results[i - o->noperands];
		if (is_matrix(v))
			class_of(h, v)->votes[v->type->rank - 1] += WHOLE;
	}
}

/* Joins the class of each operand of o, a control operation or terminator, with that of the value it is passed to. */
static void join_passed(struct cpu_codegen *h, const struct op *o)
{
	for (u32 i = 0; i < o->noperands; i++) {
		const struct value *to = value_passed_to(o, i);
		if (to)
			join(h, to, operand(o, i));
	}
}

static void visit(struct cpu_codegen *h, const struct op *o)
{
	if (op_is_control(o)) {
		for (u32 i = 0; i < o->nblocks; i++)
			for (const struct op *p = o->blocks[i]->first; p; p = p->next)
				visit(h, p);
		join_passed(h, o);
		for (u32 i = 0; i < o->nresults; i++)
			join(h, &o->results[i], result_passed_by(o, i));
	} else if (op_has(o, END)) {
		join_passed(h, o);
	} else if (is_whole_tile(o)) {
		take_rows(h, o);
	} else if (op_has(o, ELEM) || o->code == IR_LOAD || o->code == IR_STORE) {
		join_all(h, o);
		const struct value *p = operand(o, 0);
		if (!op_has(o, ELEM) && is_matrix(p))
			cpu_count_neighbours(h, o, class_of(h, p)->votes);
	}
}

void cpu_choose_inner(struct cpu_codegen *h)
{
	for (const struct op *o = h->k->body->first; o; o = o->next)
		visit(h, o);
}

int cpu_inner(struct cpu_codegen *h, const struct value *v)
{
	int last = v->type->rank - 1, best = last;
	const i32 *votes = class_of(h, v)->votes;
	for (int d = last - 1; d >= 0; d--)
		if (votes[d] > votes[best])
			best = d;
	return best;
}
