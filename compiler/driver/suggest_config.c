/* Search for the nearest configuration that fits shared memory, by compiling other configurations. */
#include "driver/suggest_config.h"

#include <stdlib.h>

/* A round compiles the configurations that differ from the best so far by one change. SMALLEST_BLOCK: the least value
 * to which a constexpr parameter is halved. */
enum { MAX_ROUNDS = 3, MAX_CHANGES = 16, SMALLEST_BLOCK = 16 };

struct launch_config {
	struct codegen_options options;
	struct arg_spec *args;
	i32 bytes; /* shared memory of a block, in bytes; -1: the configuration does not compile */
	bool fits;
};

struct config_search {
	struct unit *u;
	const struct func *func;
	const struct compile_options *o;
	/* the requested configuration; that from which the current round makes one change; the round's best result */
	struct launch_config start, now, best;
};

/* The value of the constexpr parameter i if it is a power of two, else 0. */
static i64 constant_of(const struct config_search *s, const struct arg_spec *args, u32 i)
{
	const struct param *p = &s->func->params[i];
	const char *text = args[i].constant;
	char *end = NULL;
	i64 v = 0;
	if (text)
		v = strtoll(text, &end, 10);
	else if (p->value && p->value->kind == EX_INT && !args[i].type && !p->value->too_big && p->value->integer > 0)
		return is_pow2((u64)p->value->integer) ? (i64)p->value->integer : 0;
	return end && end != text && !*end && v > 0 && is_pow2((u64)v) ? v : 0;
}

static void try_candidate(struct config_search *s, struct launch_config *c)
{
	struct diags said = s->u->diags;
	struct compile_options o = {
		.target = s->o->target, .codegen = c->options, .want_ttgir = true, .no_advice = true};
	struct compiled out;
	c->fits = compile(s->u, s->func, c->args, &o, &out);
	c->bytes = c->fits || out.shared_bytes ? out.shared_bytes : -1;
	diags_restore(&s->u->diags, &said); /* drops the messages of the candidate */
	bool better = c->bytes >= 0 && (s->best.bytes < 0 || (c->fits && !s->best.fits) ||
					(c->fits == s->best.fits && c->bytes < s->best.bytes));
	if (better && !(s->best.fits && c->fits)) /* the first candidate that fits stays */
		s->best = *c;
}

/* Tries the configurations that differ from s->now by one stage less, a constexpr parameter halved, or twice the
 * warps. */
static void try_neighbours(struct config_search *s)
{
	struct launch_config c = s->now;
	if (c.options.num_stages > 1) {
		c.options.num_stages--;
		try_candidate(s, &c);
	}
	for (u32 i = 0; i < s->func->nparams && !s->best.fits; i++) {
		i64 v = constant_of(s, s->now.args, i);
		if (v < 2 * SMALLEST_BLOCK)
			continue;
		c = s->now;
		c.args = arena_dup(&s->u->arena, s->now.args, s->func->nparams * sizeof *c.args);
		c.args[i].constant = arena_printf(&s->u->arena, "%lld", (long long)v / 2);
		try_candidate(s, &c);
	}
	if (s->now.options.num_warps < 16 && !s->best.fits) {
		c = s->now;
		c.options.num_warps *= 2;
		try_candidate(s, &c);
	}
}

static const char *describe(const struct config_search *s, const struct launch_config *c)
{
	struct strbuf out = {.arena = &s->u->arena};
	for (u32 i = 0; i < s->func->nparams; i++) {
		i64 v = constant_of(s, c->args, i);
		if (v != constant_of(s, s->start.args, i))
			sb_printf(&out, "%s%s=%lld", out.len ? ", " : "", s->func->params[i].name, (long long)v);
	}
	codegen_options_print(&out, &c->options, &s->start.options, ", ");
	return out.at;
}

void advise_fit(struct unit *u, const struct func *func, const struct arg_spec *args, const struct compile_options *o,
		i32 bytes)
{
	struct config_search s = {.u = u, .func = func, .o = o, .start = {.options = o->codegen, .bytes = bytes}};
	if (func) {
		s.start.args = arena_dup(&u->arena, args, func->nparams * sizeof *args);
		s.now = s.start;
	}
	for (int round = 0; func && round < MAX_ROUNDS && !s.best.fits; round++) {
		s.best.bytes = -1;
		try_neighbours(&s);
		if (s.best.bytes < 0 || s.best.bytes > s.now.bytes)
			break;
		s.now = s.best;
	}
	if (s.best.fits)
		diag_hint(&u->diags, "with %s, the kernel fits: it needs %d bytes", describe(&s, &s.best),
			  s.best.bytes);
	else
		diag_hint(&u->diags, "use smaller tiles, fewer num_stages, or more num_warps");
}
