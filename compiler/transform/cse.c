/* Common-subexpression elimination: an operation is replaced by an equal operation that dominates it.
 *
 * Blocks nest, so dominance is scope: an operation is visible in the rest of its block and in the blocks inside. */
#include "ir/graph.h"
#include "ir/pass.h"

struct cse {
	struct arena scratch;
	VEC(struct op *) seen;  /* visible operations, innermost block last */
	VEC(u32) next;          /* for seen[i]: the previous entry in its bucket, + 1 */
	VEC(u32) slot;          /* for seen[i]: its bucket */
	u32 bucket[1024];       /* newest entry of each bucket, + 1; 0 if empty */
};

static u64 op_hash(const struct op *o)
{
	u64 h = hash_bytes(o->attr, sizeof o->attr, o->code);
	h = hash_bytes(&o->results[0].type, sizeof(struct type *), h);
	for (u32 i = 0; i < o->noperands; i++)
		h = hash_bytes(&o->operands[i].value, sizeof(struct value *), h);
	return h;
}

static bool same_hints(const struct hints *a, const struct hints *b)
{
	return a == b || (a && b && !memcmp(a, b, sizeof *a));
}

/* True if a, which dominates b, can replace b. a must have all hints of b. A hint at b need not hold at a. */
static bool same_op(const struct op *a, const struct op *b)
{
	if ((b->hints && !same_hints(a->hints, b->hints)) || !same_operation(a, b))
		return false;
	for (u32 i = 0; i < a->noperands; i++)
		if (operand(a, i) != operand(b, i))
			return false;
	return true;
}

static void cse_block(struct cse *c, struct block *b)
{
	u32 mark = c->seen.len;
	for (struct op *o = b->first, *next; o; o = next) {
		next = o->next;
		for (u32 i = 0; i < o->nblocks; i++)
			cse_block(c, o->blocks[i]);
		if (!op_has(o, PURE) || o->nblocks || !o->nresults)
			continue;
		u32 h = (u32)op_hash(o) & (ARRAY_LEN(c->bucket) - 1), i = c->bucket[h];
		tl_assert(!i || c->seen.at);
		while (i && !same_op(c->seen.at[i - 1], o))
			i = c->next.at[i - 1];
		if (i) {
			struct op *first = c->seen.at[i - 1];
			for (u32 k = 0; k < o->nresults; k++)
				replace_uses(&o->results[k], &first->results[k]);
			op_erase(o);
			continue;
		}
		vec_push(&c->scratch, &c->seen, o);
		vec_push(&c->scratch, &c->next, c->bucket[h]);
		vec_push(&c->scratch, &c->slot, h);
		c->bucket[h] = c->seen.len;
	}
	/* leave the scope */
	while (c->seen.len > mark) {
		u32 i = --c->seen.len;
		c->bucket[c->slot.at[i]] = c->next.at[i];
		c->next.len--;
		c->slot.len--;
	}
}

void pass_cse(struct pass_state *s)
{
	struct cse c = {0};
	cse_block(&c, s->k->body);
	arena_free(&c.scratch);
}
