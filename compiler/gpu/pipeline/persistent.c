/* Persistent blocks: where a launch has more programs than the GPU has multiprocessors, one block for each
 * multiprocessor is launched, and each block runs several programs in sequence.
 *
 * Where a GEMM's block fills a multiprocessor, nothing is computed while the block stores its tile and the first copies
 * of the next block are in progress. So the whole kernel becomes the body of a loop over programs, like the loop that
 * kernels with `flatten=True` contain, and the pipeliner lets the copies run ahead across programs. If it cannot, the
 * loop is removed again: a block for each program is as fast then, and the hardware distributes the programs better.
 *
 *     for p in range(program_id(0), programs, num_programs(0), flatten=True)
 *         x = p % grid.x;  y = p // grid.x % grid.y;  z = p // grid.x // grid.y;  the kernel
 *
 * Loops with dependent dots, such as attention's, gain too. If the time of a program depends on its number along x, the
 * programs run in another order (struct program_order).
 *
 * The grid that the launch requested is passed in three parameters after the kernel's. Apart from that order, programs
 * start in the same order as without the loop, that of transform/program_order.c. Kernels with programs that may
 * communicate (atomics, volatile loads) are left unchanged. */
#include "support/thresholds.h"
#include "analysis/register_pressure.h"
#include "ir/graph.h"
#include "transform/program_order.h"
#include "gpu/pipeline/plan.h"
#include "gpu/pipeline/persistent.h"

struct programs {
	struct op *loop;
	/* what replaces program_id(axis) and num_programs(axis) in the kernel */
	struct value *index[3], *count[3];
};

/* True if the loop does nothing but independent dots and arithmetic with their results. */
static bool has_independent_dots(const struct pass_state *s, const struct op *loop)
{
	u32 dots = 0;
	bool yes = true;
	for (const struct op *o = loop->blocks[0]->first; o && yes; o = o->next) {
		yes = !o->nblocks && o->code != IR_DOT && o->code != IR_STORE;
		dots += o->code == IR_WARP_GROUP_DOT;
	}
	return yes && dots && dots_are_independent(s->ctx, loop->blocks[0]);
}

/* True if the loop has asynchronous dots only, one of which needs the result of another, and carries at most
 * MAX_CARRIED_OVER_TILES registers. Attention is an example. */
static bool has_dependent_dots(const struct pass_state *s, const struct op *loop)
{
	const struct block *body = loop->blocks[0];
	return carried_registers(s, loop) <= MAX_CARRIED_OVER_TILES && !block_has(body, is_synchronous_dot) &&
	       chains_dots(s->ctx, body);
}

/* Whether persistent blocks can run all programs, and distribute them as well as the hardware would. */
enum distribution {
	NOT_PERSISTENT,
	ROUND_ROBIN, /* block b runs programs b, b + blocks …: all programs take the same time */
	/* by struct program_order: trip counts depend on program_id(0) alone; the time is assumed to be monotonic in
	 * it, as in causal attention */
	BY_DURATION,
};

static enum distribution distribution_of(const struct pass_state *s)
{
	enum { ALL_AXES = 7 };
	bool independent = false, dependent = false;
	u32 axes = 0; /* on which the trip counts depend */
	for (const struct op *o = s->k->body->first; o; o = o->next) {
		if (o->code != IR_FOR)
			continue;
		if (o->attr[ATTR_FLATTEN])
			return NOT_PERSISTENT;
		if (has_dependent_dots(s, o))
			dependent = true;
		else if (has_independent_dots(s, o))
			independent = true;
		else
			continue;
		for (u32 i = 0; i < FOR_INITS; i++)
			axes |= axes_behind(s->ctx, operand(o, i), ALL_AXES);
	}
	if ((!independent && !dependent) || s->k->cuda.cluster > 1 || kernel_talks(s->k))
		return NOT_PERSISTENT;
	if (axes && (independent || axes != 1)) {
		if (s->options.grid != GRID_FEW && s->remarks)
			diag(s->diags, R_NOT_PERSISTENT, s->k->loc, "programs may take different times");
		return NOT_PERSISTENT;
	}
	return axes ? BY_DURATION : ROUND_ROBIN;
}

bool may_persist(const struct pass_state *s)
{
	return distribution_of(s) != NOT_PERSISTENT;
}

static struct value *make(struct builder *b, enum opcode code, struct value *x, struct value *y)
{
	return build2(b, code, x->type, x, y);
}

static void add_grid(struct kernel *k, struct programs *g)
{
	static const char *const names[] = {"grid.x", "grid.y", "grid.z"};
	struct kernel_param *all = arena_array(k->ctx->arena, struct kernel_param, k->nparams + GRID_PARAMS);
	memcpy(all, k->params, k->nparams * sizeof *all);
	k->params = all;
	for (int i = 0; i < GRID_PARAMS; i++) {
		g->count[i] = block_add_arg(k->ctx, k->body, type_scalar(k->ctx, DT_I32));
		g->count[i]->name = names[i];
		k->params[k->nparams++] = (struct kernel_param){.name = names[i], .value = g->count[i]};
	}
	k->cuda.persistent = true;
}

static struct value *of_axis(struct builder *b, enum opcode code, int axis)
{
	struct value *v = build1(b, code, type_scalar(b->ctx, DT_I32), NULL);
	v->def->attr[ATTR_AXIS] = axis;
	return v;
}

static void replace_number(struct op *o, void *arg)
{
	const struct programs *g = arg;
	if (o->code == IR_PROGRAM_ID)
		replace_uses(result(o), g->index[o->attr[ATTR_AXIS]]);
	else if (o->code == IR_NUM_PROGRAMS)
		replace_uses(result(o), g->count[o->attr[ATTR_AXIS]]);
}

/* Sets g->index, the program's numbers by axis, from its linear number `index`. x varies fastest (group 0). With
 * `group`, the rows (programs of one y) of a z are taken in groups of that number, and y varies fastest in a group.
 * plane: number of programs of a z. */
static void split_index(struct programs *g, struct builder *b, struct value *index, struct value *plane, i64 group)
{
	if (!group) {
		g->index[0] = make(b, IR_REMSI, index, g->count[0]);
		struct value *row = make(b, IR_DIVSI, index, g->count[0]);
		g->index[1] = make(b, IR_REMSI, row, g->count[1]);
		g->index[2] = make(b, IR_DIVSI, row, g->count[1]);
		return;
	}
	g->index[2] = make(b, IR_DIVSI, index, plane);
	struct value *in_plane = make(b, IR_REMSI, index, plane);
	split_by_groups(b, in_plane, g->count[0], g->count[1], group, &g->index[0], &g->index[1]);
}

/* The value blocks - 1 - v if `odd` is odd; otherwise v. */
static struct value *mirror_if_odd(struct builder *b, struct value *odd, struct value *blocks, struct value *v)
{
	struct value *last = make(b, IR_SUBI, blocks, build_i32(b, 1)), *other = make(b, IR_SUBI, last, v);
	struct value *is_odd = make(b, IR_ANDI, odd, build_i32(b, 1));
	return build3(b, IR_SELECT, v->type, build_cmpi(b, CMPI_NE, is_odd, build_i32(b, 0)), other, v);
}

/* Programs in the order of the time that they take, which depends on their number along x. Each round gives each
 * persistent block one program. Every other round distributes them to blocks in reverse, so each block gets long and
 * short programs. The programs of a row, with the same y and z, read the same keys. Rows are taken in groups, whose
 * programs fill a whole number of pairs of rounds, since the keys of all rows exceed the cache. */
struct program_order {
	/* number of persistent blocks, of whole rounds; this block's place in the first round; number of rows; of rows
	 * of a group */
	struct value *blocks, *rounds, *first, *rows, *together;
};

/* The largest power of two that divides v. */
static struct value *lowest_bit(struct builder *b, struct value *v)
{
	return make(b, IR_ANDI, v, make(b, IR_SUBI, build_i32(b, 0), v));
}

static struct program_order begin_order(struct programs *g, struct builder *b, struct value *all, struct value *block)
{
	struct program_order o = {.blocks = of_axis(b, IR_NUM_PROGRAMS, 0)};
	o.rounds = make(b, IR_DIVSI, all, o.blocks);
	/* the direction of the first round is chosen so that the last round, in which not every block has a program,
	 * begins with block 0 */
	o.first = mirror_if_odd(b, o.rounds, o.blocks, block);
	o.rows = make(b, IR_MULI, g->count[1], g->count[2]);
	struct value *pair = make(b, IR_ADDI, o.blocks, o.blocks);
	struct value *bit = lowest_bit(b, g->count[0]);
	struct value *common = make(b, IR_MINSI, lowest_bit(b, pair), bit);
	o.together = make(b, IR_MINSI, make(b, IR_DIVSI, pair, common), o.rows);
	return o;
}

static void split_in_order(struct programs *g, struct builder *b, struct value *index, const struct program_order *o)
{
	struct value *round = make(b, IR_DIVSI, index, o->blocks);
	struct value *begin = make(b, IR_SUBI, index, o->first);
	struct value *odd = make(b, IR_XORI, round, o->rounds);
	struct value *place = make(b, IR_ADDI, begin, mirror_if_odd(b, odd, o->blocks, o->first));
	struct value *programs = make(b, IR_MULI, o->together, g->count[0]);
	struct value *part = make(b, IR_DIVSI, place, programs), *within = make(b, IR_REMSI, place, programs);
	struct value *row = make(b, IR_MULI, part, o->together);
	struct value *rows = make(b, IR_MINSI, o->together, make(b, IR_SUBI, o->rows, row));
	g->index[0] = make(b, IR_DIVSI, within, rows);
	row = make(b, IR_ADDI, row, make(b, IR_REMSI, within, rows));
	g->index[1] = make(b, IR_REMSI, row, g->count[1]);
	g->index[2] = make(b, IR_DIVSI, row, g->count[1]);
}

bool add_program_loop(struct pass_state *s, i64 group)
{
	struct kernel *k = s->k;
	struct programs *g = arena_new(s->ctx->arena, struct programs);
	bool by_duration = distribution_of(s) == BY_DURATION;
	add_grid(k, g);
	struct builder before = builder_before(s->ctx, k->body->first);
	before.loc = k->loc;
	struct value *plane = make(&before, IR_MULI, g->count[0], g->count[1]);
	struct value *all = make(&before, IR_MULI, plane, g->count[2]);
	struct value *block = of_axis(&before, IR_PROGRAM_ID, 0);
	struct program_order order = {0};
	if (by_duration)
		order = begin_order(g, &before, all, block);
	struct value *step = of_axis(&before, IR_NUM_PROGRAMS, 0);
	g->loop = build_for(&before, by_duration ? order.first : block, all, step, NULL, 0);
	g->loop->attr[ATTR_FLATTEN] = true;
	g->loop->attr[ATTR_NO_WRAP] = true; /* libtl launches persistent blocks for up to 2^30 programs only */
	struct block *body = g->loop->blocks[0];
	struct value *index = for_index(g->loop);
	struct builder in = builder_at_end(s->ctx, body);
	in.loc = k->loc;
	struct op *end = build(&in, IR_YIELD, NULL, 0, NULL, 0, 0);
	while (g->loop->next != k->body->last)
		op_insert_before(g->loop->next, end);
	in = builder_before(s->ctx, body->first);
	if (by_duration)
		split_in_order(g, &in, index, &order);
	else
		split_index(g, &in, index, plane, group);
	for (int i = 0; i < GRID_PARAMS; i++)
		set_program_axis(g->index[i]->def, i);
	walk(body, replace_number, g);
	s->cuda.programs = g;
	return group && !by_duration;
}

void remove_program_loop(struct pass_state *s)
{
	struct programs *g = s->cuda.programs;
	struct kernel *k = s->k;
	s->cuda.programs = NULL;
	struct builder before = builder_before(s->ctx, g->loop);
	for (int i = 0; i < GRID_PARAMS; i++)
		replace_uses(g->index[i], of_axis(&before, IR_PROGRAM_ID, i));
	replace_uses(for_index(g->loop), build_i32(&before, 0)); /* of operations that are dead now */
	before = builder_before(s->ctx, k->body->first); /* users of the counts may have been hoisted out of the loop */
	for (int i = GRID_PARAMS; i--;) {
		replace_uses(g->count[i], of_axis(&before, IR_NUM_PROGRAMS, i));
		block_remove_arg(k->body, --k->nparams);
	}
	struct block *body = g->loop->blocks[0];
	while (body->first != body->last)
		op_insert_before(body->first, g->loop);
	op_erase(g->loop);
	k->cuda.persistent = false;
}

bool is_program_loop(const struct pass_state *s, const struct op *loop)
{
	return s->cuda.programs && s->cuda.programs->loop == loop;
}
