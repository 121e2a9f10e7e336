#include "gpu/codegen/nvptx.h"

/* Limit, for a block of the IR, of the tile elements per thread, summed over its operations (each counts with its
 * largest tile): beyond it the user is warned. LLVM's compile time grows with the square of the instructions of a
 * block: a store of 32,768 different elements takes half a minute, other code of that size less. */
enum { MUCH = 32768 };

struct amount {
	const struct kernel *k;
	i64 all;               /* elements per thread, in the block with the most of them */
	const struct op *most; /* operation with the most elements in that block */
};

static i64 elements_of(const struct kernel *k, const struct op *o)
{
	i64 most = 0;
	if (o->code == IR_CONSTANT || op_is_shape(o) || op_is_control(o) || op_has(o, END))
		return 0;
	for (u32 i = 0; i < o->nresults + o->noperands; i++) {
		const struct type *t = i < o->nresults ? o->results[i].type : operand(o, i - o->nresults)->type;
		if (type_is_tensor(t))
			most = MAX(most, type_numel(t) / (32 * k->num_warps));
	}
	return most;
}

static void visit(struct amount *a, const struct block *b)
{
	const struct op *most = NULL;
	i64 all = 0, highest = 0;
	for (const struct op *o = b->first; o; o = o->next) {
		for (u32 i = 0; i < o->nblocks; i++)
			visit(a, o->blocks[i]);
		i64 n = elements_of(a->k, o);
		all += n;
		if (n > highest) {
			highest = n;
			most = o;
		}
	}
	if (all > a->all) {
		a->all = all;
		a->most = most;
	}
}

void warn_of_amount(struct pass_state *s)
{
	struct amount a = {.k = s->k};
	visit(&a, s->k->body);
	if (a.all > MUCH)
		diag(s->diags, W_MUCH_CODE, a.most->loc, (long long)a.all);
}
