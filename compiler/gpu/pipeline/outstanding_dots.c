/* Outstanding dots: the dots that return tokens, the iter args for these tokens, and the waits in the loop and after
 * it. The number of wgmma groups that a wait leaves pending follows from its tokens (gpu/smem/completion.c). */
#include "gpu/pipeline/schedule.h"

/* Replaces the dot with an asynchronous one, which returns a token. */
static struct op *run_on(struct schedule *p, struct op *old)
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

void let_dots_run_on(struct schedule *p)
{
	struct op *first = first_dot(p->loop->blocks[0]);
	if (p->late && !stays_in_flight(p, first) && !runs_beside(p, first))
		run_on(p, first);
	for (u32 i = 0; i < p->dots.len; i++)
		p->dots.at[i] = run_on(p, p->dots.at[i]);
	for (u32 i = 0; i < p->beside.len; i++)
		p->beside.at[i] = run_on(p, p->beside.at[i]);
	if (p->late)
		p->late = run_on(p, p->late);
}

void carry_flights(struct schedule *p)
{
	struct builder b = builder_before(p->ctx, p->loop);
	if (p->late)
		vec_push(&p->scratch, &p->dots, p->late);
	p->flights = p->carried.len;
	for (u32 i = 0; i < p->dots.len; i++)
		carry(p, build1(&b, IR_DONE, type_token(p->ctx), NULL));
}

void next_flights(struct schedule *p)
{
	for (u32 i = 0; i < p->dots.len; i++)
		p->carried.at[p->flights + i].next = &p->dots.at[i]->results[1];
}

/* --- waits --------------------------------------------------------------------------------------------------- */

/* Builds a wait for the dots of the tokens. tiles: accumulators of these dots; the wait's results replace them in all
 * later users. */
static void wait_for(struct schedule *p, struct builder *b, const value_vec *tiles, const value_vec *tokens)
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

void await_result(struct schedule *p, struct builder *b, const struct schedule_step *s)
{
	value_vec tile = {0}, token = {0};
	vec_push(&p->scratch, &tile, &s->dot->results[0]);
	vec_push(&p->scratch, &token, &s->dot->results[1]);
	wait_for(p, b, &tile, &token);
}

/* The accumulator of the dot with deferred wait (p->late) is an operand and a result of the wait, and so is that of the
 * first dot unless that dot stays outstanding too: their users must not move before the wait. The accumulators of
 * p->dots need not be, since only dots use them. */
void finish_earlier_dots(struct schedule *p, struct builder *b)
{
	value_vec tiles = {0}, tokens = {0};
	struct op *first = first_dot(p->loop->blocks[0]);
	if (p->late && !stays_in_flight(p, first)) {
		vec_push(&p->scratch, &tiles, &first->results[0]);
		vec_push(&p->scratch, &tokens, &first->results[1]);
	}
	if (p->late)
		vec_push(&p->scratch, &tiles, late_sum(p));
	for (u32 i = 0; i < p->dots.len; i++)
		vec_push(&p->scratch, &tokens, carried_now(p, p->flights + i));
	wait_for(p, b, &tiles, &tokens);
}

/* The tokens of the dots that are outstanding when the loop ends. */
static value_vec flights_behind(struct schedule *p)
{
	value_vec tokens = {0};
	for (u32 i = 0; i < p->dots.len; i++)
		vec_push(&p->scratch, &tokens, carried_last(p, p->flights + i));
	return tokens;
}

void wait_dots(struct schedule *p, struct builder *b)
{
	value_vec tokens = flights_behind(p), none = {0};
	wait_for(p, b, &none, &tokens);
}

void finish_dots(struct schedule *p, struct builder *b)
{
	const struct op *yield = p->loop->blocks[0]->last;
	value_vec sums = {0}, tokens = flights_behind(p);
	for (u32 i = 0; i < p->dots.len; i++)
		vec_push(&p->scratch, &sums, &p->loop->results[result(p->dots.at[i])->uses - yield->operands]);
	if (sums.len)
		wait_for(p, b, &sums, &tokens);
}
