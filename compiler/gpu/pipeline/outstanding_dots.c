/* Outstanding dots: the dots that return tokens, the iter args for these tokens, and the waits in the loop and after
 * it. The number of wgmma groups that a wait leaves pending follows from its tokens (gpu/smem/completion.c). */
#include "gpu/pipeline/expand.h"

/* Replaces the dot with an asynchronous one, which returns a token. */
static struct op *make_dot_async(struct plan *p, struct op *old)
{
	struct builder b = builder_before(p->ctx, old);
	struct value *ops[] = {operand(old, 0), operand(old, 1), operand(old, 2)};
	const struct type *types[] = {result(old)->type, type_token(p->ctx)};
	b.loc = old->loc;
	struct op *o = build(&b, IR_WARP_GROUP_DOT, ops, 3, types, 2, 0);
	memcpy(o->attr, old->attr, sizeof o->attr);
	o->attr[ATTR_ASYNC] = true;
	o->results[0].name = old->results[0].name;
	replace_uses(result(old), result(o));
	op_erase(old);
	return o;
}

void make_dots_async(struct plan *p)
{
	struct op *first = first_dot(p->loop->blocks[0]);
	if (p->deferred && !is_outstanding(p, first) && !is_overlapped(p, first))
		make_dot_async(p, first);
	for (u32 i = 0; i < p->outstanding.len; i++)
		p->outstanding.at[i] = make_dot_async(p, p->outstanding.at[i]);
	for (u32 i = 0; i < p->overlapped.len; i++)
		p->overlapped.at[i] = make_dot_async(p, p->overlapped.at[i]);
	if (p->deferred)
		p->deferred = make_dot_async(p, p->deferred);
}

void carry_dot_tokens(struct plan *p)
{
	struct builder b = builder_before(p->ctx, p->loop);
	if (p->deferred)
		vec_push(&p->scratch, &p->outstanding, p->deferred);
	p->code->dot_tokens = p->code->carried.len;
	for (u32 i = 0; i < p->outstanding.len; i++)
		carry(p, build1(&b, IR_DONE, type_token(p->ctx), NULL));
}

void yield_dot_tokens(struct plan *p)
{
	for (u32 i = 0; i < p->outstanding.len; i++)
		p->code->carried.at[p->code->dot_tokens + i].next = &p->outstanding.at[i]->results[1];
}

/* --- waits --------------------------------------------------------------------------------------------------- */

/* Builds a wait for the dots of the tokens. tiles: accumulators of these dots; the wait's results replace them in all
 * later users. */
static void wait_for(struct plan *p, struct builder *b, const value_vec *tiles, const value_vec *tokens)
{
	value_vec all = {0};
	VEC(const struct type *) types = {0};
	for (u32 i = 0; i < tiles->len; i++) {
		vec_push(&p->scratch, &all, tiles->at[i]);
		vec_push(&p->scratch, &types, tiles->at[i]->type);
	}
	for (u32 i = 0; i < tokens->len; i++)
		vec_push(&p->scratch, &all, tokens->at[i]);
	struct op *wait = build(b, IR_WARP_GROUP_WAIT, all.at, all.len, types.at, types.len, 0);
	for (u32 i = 0; i < tiles->len; i++) {
		replace_uses(tiles->at[i], &wait->results[i]);
		op_set_operand(wait, i, tiles->at[i]);
	}
}

void wait_for_dot(struct plan *p, struct builder *b, const struct schedule_step *s)
{
	value_vec tile = {0}, token = {0};
	vec_push(&p->scratch, &tile, &s->op->results[0]);
	vec_push(&p->scratch, &token, &s->op->results[1]);
	wait_for(p, b, &tile, &token);
}

/* The accumulator of the dot with deferred wait (p->deferred) is an operand and a result of the wait, and so is that of
 * the first dot unless that dot stays outstanding too: their users must not move before the wait. The accumulators of
 * p->outstanding need not be, since only dots use them. */
void wait_for_previous_dots(struct plan *p, struct builder *b)
{
	value_vec tiles = {0}, tokens = {0};
	struct op *first = first_dot(p->loop->blocks[0]);
	if (p->deferred && !is_outstanding(p, first)) {
		vec_push(&p->scratch, &tiles, &first->results[0]);
		vec_push(&p->scratch, &tokens, &first->results[1]);
	}
	if (p->deferred)
		vec_push(&p->scratch, &tiles, deferred_accumulator(p));
	for (u32 i = 0; i < p->outstanding.len; i++)
		vec_push(&p->scratch, &tokens, carried_now(p, p->code->dot_tokens + i));
	wait_for(p, b, &tiles, &tokens);
}

/* The tokens of the dots that are outstanding when the loop ends. */
static value_vec dot_tokens_after(struct plan *p)
{
	value_vec tokens = {0};
	for (u32 i = 0; i < p->outstanding.len; i++)
		vec_push(&p->scratch, &tokens, carried_last(p, p->code->dot_tokens + i));
	return tokens;
}

void wait_dots(struct plan *p, struct builder *b)
{
	value_vec tokens = dot_tokens_after(p), none = {0};
	wait_for(p, b, &none, &tokens);
}

void finish_dots(struct plan *p, struct builder *b)
{
	const struct op *yield = p->loop->blocks[0]->last;
	value_vec sums = {0}, tokens = dot_tokens_after(p);
	for (u32 i = 0; i < p->outstanding.len; i++)
		vec_push(&p->scratch, &sums, &p->loop->results[result(p->outstanding.at[i])->uses - yield->operands]);
	if (sums.len)
		wait_for(p, b, &sums, &tokens);
}
