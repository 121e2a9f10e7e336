#include "analysis/alias.h"

static void rely_on_no_overlap(struct kernel *k, const struct value *x, const struct value *y, bool equal_is_fine)
{
	struct param_pair p = {(u32)param_number(k, x), (u32)param_number(k, y), equal_is_fine};
	if (p.a > p.b)
		p = (struct param_pair){p.b, p.a, equal_is_fine};
	for (u32 i = 0; i < k->apart.len; i++)
		if (k->apart.at[i].a == p.a && k->apart.at[i].b == p.b) {
			k->apart.at[i].equal_is_fine &= equal_is_fine;
			return;
		}
	vec_push(k->ctx->arena, &k->apart, p);
}

bool may_overlap(struct pass_state *s, const struct value *x, const struct value *y, bool equal_is_fine)
{
	if (!x || !y || x == y)
		return true;
	if (s->options.alias == ALIAS_ANY || (s->options.alias == ALIAS_EQUAL && !equal_is_fine))
		return true;
	rely_on_no_overlap(s->k, x, y, equal_is_fine);
	return false;
}
