/* Persistent programs: where a launch has more programs than the GPU has multiprocessors, as many blocks as these are
 * launched, and each runs one program after the other.
 *
 * A product's block has a multiprocessor for itself: nobody computes while it stores its tile and the next block's
 * first copies are on their way. So all of the kernel becomes the body of a loop over programs, like the one that
 * kernels with `flatten=True` write themselves, and the pipeliner lets the copies go on from one program to the next.
 * If it cannot, the loop is taken away again: programs of their own are as fast then, and the hardware shares them out
 * better.
 *
 *     for p in range(program_id(0), programs, num_programs(0), flatten=True)
 *         x = p % grid.x;  y = p // grid.x % grid.y;  z = p // grid.x // grid.y;  the kernel
 *
 * The grid that the launch asked for is passed in three parameters behind the kernel's own. Programs are started in the
 * same order as without. Kernels whose programs may talk to each other (atomics, volatile loads) are left alone. */
#include "pipeline/schedule.h"
#include "pipeline/persist.h"

struct programs {
	struct op *loop;
	/* what stands for the program's number along each axis; how many there are */
	struct value *index[3], *count[3];
	/* what these and the loop's bounds are computed by, users after what they use */
	VEC(struct op *) made;
};

/* Does the loop do nothing but one product? */
static bool sums_products(const struct op *loop)
{
	const struct block *body = loop->blocks[0];
	u32 dots = 0;
	bool yes = loop->code == IR_FOR;
	for (const struct op *o = body->first; o && yes; o = o->next) {
		yes = !o->nblocks && o->code != IR_DOT && o->code != IR_STORE;
		if (o->code != IR_WARP_GROUP_DOT)
			continue;
		const struct value *acc = operand(o, 2);
		dots++;
		yes &= !acc->def && acc->block == body && value_has_one_use(result(o)) &&
		       result(o)->uses->user == body->last;
	}
	return yes && dots == 1;
}

static bool may_talk(const struct op *o)
{
	return o->code == IR_ATOMIC_RMW || o->code == IR_ATOMIC_CAS || o->code == IR_BARRIER ||
	       o->code == IR_INLINE_ASM || o->code == IR_GRID_WAIT || o->code == IR_GRID_LAUNCH ||
	       (o->code == IR_LOAD && o->attr[ATTR_VOLATILE]);
}

bool kernel_talks(const struct kernel *k)
{
	return block_has(k->body, may_talk);
}

bool may_persist(const struct pass_state *s)
{
	bool product = false;
	for (const struct op *o = s->k->body->first; o; o = o->next) {
		product |= op_is_loop(o) && sums_products(o);
		if (o->code == IR_FOR && o->attr[ATTR_FLATTEN])
			return false;
	}
	return product && s->k->cuda.cluster == 1 && !kernel_talks(s->k);
}

static struct value *made(struct programs *g, struct arena *a, struct value *v)
{
	vec_push(a, &g->made, v->def);
	return v;
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

void join_programs(struct pass_state *s)
{
	struct kernel *k = s->k;
	struct arena *a = s->ctx->arena;
	struct programs *g = arena_new(a, struct programs);
	const struct type *t = type_scalar(s->ctx, DT_I32);
	add_grid(k, g);
	struct builder before = builder_before(s->ctx, k->body->first);
	before.loc = k->loc;
	struct value *plane = made(g, a, build2(&before, IR_MULI, t, g->count[0], g->count[1]));
	struct value *all = made(g, a, build2(&before, IR_MULI, t, plane, g->count[2]));
	struct value *bounds[] = {of_axis(&before, IR_PROGRAM_ID, 0), all, of_axis(&before, IR_NUM_PROGRAMS, 0)};
	g->loop = build(&before, IR_FOR, bounds, 3, NULL, 0, 1);
	g->loop->attr[ATTR_FLATTEN] = true;
	g->loop->attr[ATTR_NO_WRAP] = true; /* libtl launches so up to 2^30 programs only */
	struct block *body = g->loop->blocks[0];
	struct value *index = block_add_arg(s->ctx, body, t);
	struct builder in = builder_at_end(s->ctx, body);
	in.loc = k->loc;
	struct op *end = build(&in, IR_YIELD, NULL, 0, NULL, 0, 0);
	while (g->loop->next != k->body->last)
		op_insert_before(g->loop->next, end);
	in = builder_before(s->ctx, body->first);
	g->index[0] = made(g, a, build2(&in, IR_REMSI, t, index, g->count[0]));
	struct value *row = made(g, a, build2(&in, IR_DIVSI, t, index, g->count[0]));
	g->index[1] = made(g, a, build2(&in, IR_REMSI, t, row, g->count[1]));
	g->index[2] = made(g, a, build2(&in, IR_DIVSI, t, row, g->count[1]));
	for (int i = 0; i < GRID_PARAMS; i++)
		g->index[i]->def->attr[ATTR_PROGRAM] = i + 1;
	walk(body, replace_number, g);
	s->cuda.programs = g;
}

void part_programs(struct pass_state *s)
{
	struct programs *g = s->cuda.programs;
	struct kernel *k = s->k;
	s->cuda.programs = NULL;
	struct builder before = builder_before(s->ctx, g->loop);
	for (int i = 0; i < GRID_PARAMS; i++)
		replace_uses(g->index[i], of_axis(&before, IR_PROGRAM_ID, i));
	op_set_operand(g->loop, FOR_UPPER, for_lower(g->loop));
	for (u32 i = g->made.len; i--;)
		op_erase(g->made.at[i]);
	before = builder_before(s->ctx, k->body->first); /* what uses the counts has been moved out of the loop */
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

bool is_loop_of_programs(const struct pass_state *s, const struct op *loop)
{
	return s->cuda.programs && s->cuda.programs->loop == loop;
}
