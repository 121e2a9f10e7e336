#include "gpu/pipeline/resource_use.h"

#include "analysis/register_pressure.h"
#include "gpu/gpu_passes.h"
#include "support/thresholds.h"

i64 data_registers(const struct pass_state *s, const struct value *v)
{
	const struct op *o = v->def;
	enum opcode code = o ? o->code : IR_OPCODES;
	bool copy = code == IR_CONSTANT || code == IR_SPLAT || code == IR_BROADCAST || code == IR_EXPAND_DIMS;
	bool data = code == IR_LOAD || (dtype_is_float(type_dtype(v->type)) && !copy);
	i64 n = type_is_tensor(v->type) && data ? registers_of(s, v) : 0;
	return code == IR_LOCAL_LOAD ? MIN(n, BUFFERED_OPERAND_REGISTERS) : n; /* ptxas loads it in parts */
}

static void add_lifetime(const struct pass_state *s, i64 *change, const struct value *v, const struct block *home,
			 u32 begin)
{
	i64 n = data_registers(s, v);
	if (n) {
		change[begin + 1] += n;
		change[last_use(v, home, begin) + 1] -= n;
	}
}

static void add_lifetimes(const struct pass_state *s, i64 *change, const struct block *b, u32 begin)
{
	for (u32 i = 0; i < b->nargs; i++)
		add_lifetime(s, change, b->args[i], b, begin);
	for (const struct op *o = b->first; o; o = o->next) {
		for (u32 i = 0; i < o->nblocks && !op_runs_on_elements(o); i++)
			add_lifetimes(s, change, o->blocks[i], o->mark);
		for (u32 i = 0; i < o->nresults; i++)
			add_lifetime(s, change, &o->results[i], b, last_mark(o));
	}
}

struct live_registers count_live_registers(const struct pass_state *s, struct arena *a)
{
	struct live_registers live = {.n = number_ops(s->k->body, 0)};
	live.at = arena_array(a, i64, live.n + 2);
	add_lifetimes(s, live.at, s->k->body, 0);
	i64 sum = 0;
	for (u32 i = 0; i <= live.n; i++) {
		live.at[i] = sum += live.at[i];
		live.most = MAX(live.most, sum);
	}
	return live;
}

struct loads_ahead {
	const struct pass_state *s;
	i64 most; /* registers that hold loaded tiles from one iteration of a loop to the next */
};

static void add_loads_ahead(struct op *loop, void *arg)
{
	struct loads_ahead *l = arg;
	i64 n = 0;
	if (loop->code != IR_FOR)
		return;
	const struct op *yield = terminator(loop->blocks[0]);
	for (u32 i = 0; i < yield->noperands; i++) {
		const struct op *load = def_if(operand(yield, i), IR_LOAD);
		n += load && load->block == yield->block ? registers_of(l->s, result(load)) : 0;
	}
	l->most = MAX(l->most, n);
}

i64 registers_for_loads_ahead(const struct pass_state *s)
{
	struct loads_ahead l = {.s = s};
	struct arena scratch = {0};
	walk(s->k->body, add_loads_ahead, &l);
	if (l.most < MIN_LOADED_AHEAD || block_has(s->k->body, op_is_dot))
		return 0;
	i64 live = count_live_registers(s, &scratch).most;
	arena_free(&scratch);
	return live + l.most;
}

void use_memory(struct used_memory *m, u32 first, u32 last, i64 bytes)
{
	for (u32 i = first; i <= last; i++)
		m->at[i] += bytes;
}

i64 most_used(const struct used_memory *m, u32 first, u32 last)
{
	i64 most = 0;
	for (u32 i = first; i <= last; i++)
		most = MAX(most, m->at[i]);
	return most;
}

static void add_used_memory(struct used_memory *m, const struct pass_state *s, const struct block *b)
{
	for (const struct op *o = b->first; o; o = o->next) {
		u32 last = o->code == IR_LOCAL_ALLOC ? last_use(result(o), b, o->mark) : o->mark;
		use_memory(m, o->mark, last, own_bytes(s, o));
		for (u32 i = 0; i < o->nblocks; i++)
			add_used_memory(m, s, o->blocks[i]);
	}
}

struct used_memory count_used_memory(const struct pass_state *s, const struct live_registers *live, struct arena *a)
{
	i64 registers = live->most + REGISTERS_BESIDE_DATA;
	i64 blocks = s->target->registers / (32 * s->num_warps * MIN(registers, s->target->thread_registers));
	struct used_memory m = {arena_array(a, i64, live->n + 1), s->target->shared_bytes / MAX(blocks, 1)};
	add_used_memory(&m, s, s->k->body);
	return m;
}
