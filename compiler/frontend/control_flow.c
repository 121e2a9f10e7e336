/* How statements end, and run-time branches.
 *
 * The IR has no jumps. A run-time `if` becomes an scf.if. Each branch is evaluated into its own block with its own copy
 * of the variables, and the variables that differ between the branches become results of the scf.if.
 *
 * Statements end in one or several flows (struct outcome): control continues with the next statement, continues with
 * the next iteration, leaves a loop, or leaves the function. If only one branch of an `if` can reach the next
 * statement, the statements after the `if` are evaluated into that branch. If both branches can, but one of them only
 * on some paths, the statements stay after the `if`, in another scf.if on the flag that tells which path was taken.
 * Either way each statement is evaluated once. The statements that follow, up to the end of the run-time branch, the
 * loop body or the function, are passed along as a list (struct cont).
 *
 * For example, `for …: if c: continue` becomes an scf.for with the rest of its body in the branch of `not c`, without
 * any flag. */
#include "frontend/control_flow.h"

/* --- assigned names ------------------------------------------------------------------------------------------ */

static void add_target(struct eval *e, const struct expr *t, name_vec *out)
{
	if (t->kind == EX_NAME) {
		for (u32 i = 0; i < out->len; i++)
			if (out->at[i] == t->name)
				return;
		vec_push(e->arena, out, t->name);
	}
	for (u32 i = 0; (t->kind == EX_TUPLE || t->kind == EX_LIST) && i < t->nitems; i++)
		add_target(e, t->items[i], out);
}

void add_named(struct eval *e, const struct expr *x, name_vec *out)
{
	if (!x || !e->frame->func->has_named_exprs)
		return;
	if (x->kind == EX_NAMED)
		add_target(e, x->a, out);
	if (expr_has_operands(x->kind)) {
		add_named(e, x->a, out);
		add_named(e, x->b, out);
		add_named(e, x->c, out);
	}
	for (u32 i = 0; i < x->nitems; i++)
		add_named(e, x->items[i], out);
	for (u32 i = 0; i < x->nkeywords; i++)
		add_named(e, x->keywords[i].value, out);
}

void assigned_names(struct eval *e, const struct body *b, name_vec *out)
{
	for (u32 i = 0; i < b->len; i++) {
		const struct stmt *s = b->at[i];
		for (u32 k = 0; k < s->ntargets; k++)
			add_target(e, s->targets[k], out);
		if (s->target && (s->kind == ST_AUG || s->kind == ST_ANN || s->kind == ST_FOR || s->kind == ST_WITH))
			add_target(e, s->target, out);
		add_named(e, s->value, out);
		add_named(e, s->message, out);
		for (u32 k = 0; k < s->narms; k++) {
			add_named(e, s->arms[k].test, out);
			assigned_names(e, &s->arms[k].body, out);
		}
		assigned_names(e, &s->body, out);
		assigned_names(e, &s->orelse, out);
	}
}

void mark_unknown(struct eval *e, const struct body *b)
{
	name_vec names = {0};
	assigned_names(e, b, &names);
	for (u32 i = 0; i < names.len; i++)
		set_var(e, names.at[i], val_error());
}

/* --- flows --------------------------------------------------------------------------------------------------- */

static u32 bit(enum flow w)
{
	return 1u << w;
}

struct outcome goes_on(void)
{
	return (struct outcome){.ways = bit(FLOW_NEXT)};
}

struct outcome gives_up(void)
{
	return (struct outcome){.ways = bit(FLOW_RETURN), .ret = val_error()};
}

static bool is_only(const struct outcome *r, enum flow w)
{
	return r->ways == bit(w);
}

/* True if flow w ends an iteration of a run-time loop. An iteration keeps the same variables for each such flow. */
static bool ends_iteration(const struct loop *l, enum flow w)
{
	return l && l->kept && (w == FLOW_CONTINUE || w == l->leave);
}

/* The variables that survive the flow `to`. */
static scope kept_variables(struct eval *e, enum flow to)
{
	const struct loop *l = e->frame->loop;
	scope kept = {0};
	if (!ends_iteration(l, to))
		return copy_scope(e, &e->frame->vars);
	for (u32 i = 0; i < l->kept->len; i++)
		vec_push(e->arena, &kept, *lookup(&e->frame->vars, l->kept->at[i]));
	return kept;
}

/* The implicit result of a function: the object for __init__, otherwise `otherwise`. */
static struct val own_value(struct eval *e, struct val otherwise)
{
	const struct func *f = e->frame->func;
	return f->is_init ? find_var(e->frame, f->params[0].name)->val : otherwise;
}

static struct outcome leave(struct eval *e, enum flow to)
{
	struct outcome r = {.ways = bit(to)};
	r.ret = own_value(e, (struct val){.kind = V_UNSET, .reason = "the function ends without a return"});
	if (to != FLOW_RETURN)
		r.vars[to] = kept_variables(e, to);
	return r;
}

struct outcome rename_flow(struct eval *e, struct outcome r, enum flow from, enum flow to)
{
	if (!may(&r, from))
		return r;
	r.ways = (r.ways & ~bit(from)) | bit(to);
	r.taken[to] = r.taken[from];
	r.vars[to] = r.vars[from];
	if (to == FLOW_NEXT)
		e->frame->vars = r.vars[to];
	return r;
}

/* r with the knowledge that flow w is not taken. */
static struct outcome without(struct outcome r, enum flow w)
{
	r.ways &= ~bit(w);
	for (u32 k = 0; k < FLOWS; k++)
		if (r.ways == bit(k))
			r.taken[k] = NULL;
	return r;
}

void bind_unset(struct eval *e, scope *vars, const char *name, const char *reason)
{
	struct binding b = {.name = name, .val = {.kind = V_UNSET, .reason = reason}};
	vec_push(e->arena, vars, b);
}

/* --- join of two branches ------------------------------------------------------------------------------------ */

struct builder enter_block(struct eval *e, struct block *b)
{
	struct builder outer = e->b;
	e->b = builder_at_end(e->ctx, b);
	e->b.loc = outer.loc;
	e->b.count = outer.count;
	return outer;
}

void leave_block(struct eval *e, struct builder outer)
{
	outer.count = e->b.count;
	e->b = outer;
}

struct waiting { /* a val or a flag to be set from results of the scf.if */
	struct val *val; /* to be rebuilt from the results, or NULL */
	struct value **flag;
};

struct join {
	struct eval *e;
	struct op *o; /* the scf.if */
	const struct outcome *side[2];
	const scope *before;
	/* side 1 is an empty block: the outcome of these flows was evaluated before the scf.if */
	const struct outcome *pending;
	struct loc at;
	value_vec yields[2];
	VEC(struct waiting) waiting;
	struct outcome out;
};

static struct builder end_of_branch(struct join *j, u32 k)
{
	struct builder b = builder_at_end(j->e->ctx, j->o->blocks[k]);
	b.loc = j->e->b.loc;
	return b;
}

struct value *build_placeholder(struct builder *b, const struct type *t)
{
	if (!type_is_ptr(t))
		return build_constant(b, t, 0);
	const struct type *address = type_scalar(b->ctx, DT_I64);
	if (type_is_tensor(t))
		address = type_with_elem(b->ctx, t, address);
	return build1(b, IR_INT_TO_PTR, t, build_constant(b, address, 0));
}

static void yield_flag(struct join *j, struct value **flag, struct value *x, struct value *y)
{
	vec_push(j->e->arena, &j->yields[0], x);
	vec_push(j->e->arena, &j->yields[1], y);
	vec_push(j->e->arena, &j->waiting, ((struct waiting){.flag = flag}));
}

/* *to (equal to x) becomes a result of the scf.if: x from branch 0, y from branch 1. */
static void yield_both(struct join *j, struct val *to, const struct val *x, const struct val *y)
{
	flatten(j->e, x, &j->yields[0]);
	flatten(j->e, y, &j->yields[1]);
	vec_push(j->e->arena, &j->waiting, ((struct waiting){.val = to}));
}

static bool known_before(const struct join *j, const struct val *v)
{
	if (v->kind == V_TENSOR)
		return value_defined_outside(v->ssa, j->o->blocks[0]) && value_defined_outside(v->ssa, j->o->blocks[1]);
	for (u32 i = 0; val_has_parts(v) && i < v->nitems; i++)
		if (!known_before(j, &v->items[i]))
			return false;
	return true;
}

/* *to is the value v from branch k, and the other branch has no value for it. The other branch yields the old value, or
 * a placeholder. */
static void yield_one(struct join *j, u32 k, struct val *to, const struct val *old)
{
	value_vec parts = {0}, other = {0};
	struct builder b = end_of_branch(j, 1 - k);
	if (known_before(j, to))
		return;
	flatten(j->e, to, &parts);
	if (old && same_type(to, old))
		flatten(j->e, old, &other);
	for (u32 i = 0; i < parts.len; i++) {
		vec_push(j->e->arena, &j->yields[k], parts.at[i]);
		vec_push(j->e->arena, &j->yields[1 - k],
			 other.len ? other.at[i] : build_placeholder(&b, parts.at[i]->type));
	}
	vec_push(j->e->arena, &j->waiting, ((struct waiting){.val = to}));
}

static bool same_number(const struct val *a, const struct val *b)
{
	if (a->kind != b->kind)
		return false;
	return a->kind == V_FLOAT ? !memcmp(&a->real, &b->real, sizeof a->real) : val_equal(a, b);
}

bool is_descriptor(const struct val *v)
{
	return v->kind == V_OBJECT && !v->class->def && !is_block_pointer(v);
}

struct val run_time_flags(struct eval *e, struct val v, const struct val *other, struct loc at)
{
	struct val *items = arena_dup(e->arena, v.items, v.nitems * sizeof *items);
	for (u32 i = 0; i < v.nitems; i++)
		if (items[i].kind == V_BOOL && !(other && same_number(&items[i], &other->items[i])))
			items[i] = to_tensor(e, items[i], at);
	v.items = items;
	return v;
}

/* The descriptor v of branch k, with the flags that differ from the other branch's descriptor as run-time values. */
static struct val descriptor_of(struct join *j, u32 k, struct val v, const struct val *other)
{
	struct builder outer = enter_block(j->e, j->o->blocks[k]);
	v = run_time_flags(j->e, v, other, j->at);
	leave_block(j->e, outer);
	return v;
}

/* The value that the branch with block b yields, where the other branch yields `other`. A number stays a compile-time
 * value only if both branches yield the same number. */
static struct val given_value(struct eval *e, struct val v, const struct val *other, struct block *b, struct loc at)
{
	if (val_has_parts(&v) && other->kind == v.kind && other->nitems == v.nitems) {
		struct val *items = arena_array(e->arena, struct val, v.nitems);
		for (u32 i = 0; i < v.nitems; i++)
			items[i] = given_value(e, v.items[i], &other->items[i], b, at);
		v.items = items;
	}
	if (!val_is_number(&v) || same_number(&v, other))
		return v;
	struct builder outer = enter_block(e, b);
	v = to_tensor(e, v, at);
	leave_block(e, outer);
	return v;
}

static const char *line_of(struct eval *e, const struct val *v)
{
	const struct op *o = v->kind == V_TENSOR ? v->ssa->def : NULL;
	return o && o->loc.line ? arena_printf(e->arena, " (line %u)", o->loc.line) : "";
}

/* The index of an unrolled loop becomes a run-time value if run-time jumps leave the loop in different iterations. */
static bool join_index(struct join *j, struct binding *to, const struct val *x, const struct val *y)
{
	bool index = (x->kind == V_INT && (y->kind == V_INT || y->kind == V_TENSOR)) ||
		     (y->kind == V_INT && x->kind == V_TENSOR);
	if (!index || to->constant)
		return false;
	struct val a = given_value(j->e, *x, y, j->o->blocks[0], j->at),
		   b = given_value(j->e, *y, x, j->o->blocks[1], j->at);
	if (!same_type(&a, &b))
		return false;
	to->val = a;
	yield_both(j, &to->val, &a, &b);
	return true;
}

/* A variable that both branches define for flow w. It keeps its value if both values are equal; otherwise it becomes a
 * result of the scf.if. */
static void join_variable(struct join *j, enum flow w, struct binding *to, const struct val *other)
{
	struct eval *e = j->e;
	struct val x = to->val, z = *other, *y = &z;
	const struct binding *old = lookup(j->before, to->name);
	to->val.list = MAX(x.list, y->list);
	if (val_equal(&x, y))
		return;
	if (is_descriptor(&x) && is_descriptor(y)) {
		x = descriptor_of(j, 0, x, other);
		z = descriptor_of(j, 1, z, &to->val);
		to->val = x;
	}
	if (x.kind == V_ERROR || y->kind == V_ERROR) {
		to->val = val_error();
	} else if (x.kind == V_UNSET || y->kind == V_UNSET) {
		to->val = x.kind == V_UNSET ? x : *y;
	} else if (same_type(&x, y) && has_run_time_part(&x)) {
		yield_both(j, &to->val, &x, y);
	} else if (join_index(j, to, &x, y)) {
		return;
	} else if (!has_run_time_part(&x) && !has_run_time_part(y)) {
		to->val = (struct val){.kind = V_UNSET,
				       .reason = "the branches of a run-time 'if' give it different constants"};
	} else if (!old) {
		const char *reason =
			arena_printf(e->arena, "the branches of the run-time 'if' in line %u give it %s%s and %s%s",
				     j->at.line, describe(e, &x), line_of(e, &x), describe(e, y), line_of(e, y));
		to->val = (struct val){.kind = V_UNSET, .reason = reason};
	} else if (w == FLOW_NEXT) {
		to->val = eval_error(e, E_BRANCH_TYPES, j->at, to->name, describe(e, &x), describe(e, y));
		note_origin(e, &x, j->at);
		note_origin(e, y, j->at);
	} else {
		to->val = eval_error(e, E_JUMP_TYPES, j->at, to->name, describe(e, &x), describe(e, y));
	}
	to->constant = old && old->constant;
}

/* The variables for flow w after the branches, which leave the variables x and y. One of x and y may be NULL. */
static scope join_variables(struct join *j, enum flow w, const scope *x, const scope *y)
{
	const scope *first = x ? x : y;
	scope out = {0};
	out.cap = first->len + (x && y ? y->len : 0); /* so that appending moves no entry */
	out.at = arena_array(j->e->arena, struct binding, out.cap);
	for (u32 i = 0; i < first->len; i++) {
		struct binding *to = &out.at[out.len];
		*to = first->at[i];
		const struct binding *b = x && y ? lookup(y, to->name) : NULL, *old = lookup(j->before, to->name);
		if (!x || !y) {
			yield_one(j, x ? 0 : 1, &to->val, old ? &old->val : NULL);
		} else if (b) {
			join_variable(j, w, to, &b->val);
		} else {
			bind_unset(j->e, &out, to->name, "it is assigned in only one branch of a run-time 'if'");
			continue;
		}
		out.len++;
	}
	for (u32 i = 0; x && y && i < y->len; i++)
		if (!lookup(x, y->at[i].name))
			bind_unset(j->e, &out, y->at[i].name,
				   "it is assigned in only one branch of a run-time 'if'");
	return out;
}

/* The variables of branch k for flow w; NULL if the branch does not take that flow. */
static const scope *left_by(const struct join *j, u32 k, enum flow w)
{
	const struct loop *l = j->e->frame->loop;
	const struct outcome *r = j->side[k];
	if (!may(r, w) && ends_iteration(l, w))
		w = w == FLOW_CONTINUE ? l->leave : FLOW_CONTINUE;
	return may(r, w) ? &r->vars[w] : NULL;
}

/* Sets out.taken[w] if there are several flows. */
static void join_flag(struct join *j, enum flow w)
{
	const struct type *i1 = type_scalar(j->e->ctx, DT_I1);
	struct value *cond = operand(j->o, 0), *flag[2];
	bool here[2] = {may(j->side[0], w), may(j->side[1], w)}, whole[2];
	for (u32 k = 0; k < 2; k++)
		whole[k] = !here[k] || !j->side[k]->taken[w];
	if (whole[0] && whole[1] && here[0] != here[1]) {
		j->out.taken[w] = here[0] ? cond : build2(&j->e->b, IR_XORI, i1, cond, build_int(&j->e->b, i1, 1));
	} else if (j->pending && !here[0]) {
		j->out.taken[w] = j->pending->taken[w]; /* false where branch 0 runs */
	} else {
		for (u32 k = 0; k < 2; k++) {
			struct builder b = end_of_branch(j, k);
			flag[k] = whole[k] ? build_int(&b, i1, here[k]) : j->side[k]->taken[w];
		}
		yield_flag(j, &j->out.taken[w], flag[0], flag[1]);
	}
}

/* The result of the function. A path that reaches the end of the function returns None. If another path returns a
 * value, the result is undefined on the first path, as in Triton. */
static void join_returned(struct join *j)
{
	struct eval *e = j->e;
	struct outcome *out = &j->out;
	bool one[2];
	for (u32 k = 0; k < 2; k++) {
		const struct outcome *r = j->side[k], *other = j->side[1 - k];
		one[k] = may(r, FLOW_RETURN) && (!may(other, FLOW_RETURN) || other->ret.kind == V_UNSET);
	}
	if (one[0] || one[1]) {
		u32 k = one[0] && !(one[1] && j->side[0]->ret.kind == V_UNSET) ? 0 : 1;
		out->ret = j->side[k]->ret;
		bool in_kernel = !e->frame->caller; /* a kernel that returns a value is an error, reported elsewhere */
		if (!in_kernel && one[0] != one[1] && may(j->side[1 - k], FLOW_RETURN) && out->ret.kind != V_NONE &&
		    out->ret.kind != V_ERROR)
			diag(e->diags, W_RETURN_MISSING, j->at, e->frame->func->name, describe(e, &out->ret));
		yield_one(j, k, &out->ret, NULL);
		return;
	}
	const struct val *x = &j->side[0]->ret, *y = &j->side[1]->ret;
	struct val a = given_value(e, *x, y, j->o->blocks[0], j->at), b = given_value(e, *y, x, j->o->blocks[1], j->at);
	out->ret = a;
	if (a.kind == V_ERROR || b.kind == V_ERROR)
		out->ret = val_error();
	else if (!same_type(&a, &b)) /* report the values in the order of the source */
		out->ret = eval_error(e, E_RETURN_TYPES, j->at, describe(e, j->pending ? &b : &a),
				      describe(e, j->pending ? &a : &b));
	else
		yield_both(j, &out->ret, &a, &b);
}

/* Completes the scf.if. */
static struct outcome join(struct join *j)
{
	struct eval *e = j->e;
	const struct loop *l = e->frame->loop;
	struct outcome *out = &j->out;
	value_vec results = {0};
	out->ways = j->side[0]->ways | j->side[1]->ways;
	for (enum flow w = 0; w < FLOWS; w++) {
		if (!may(out, w))
			continue;
		if (!is_only(out, w))
			join_flag(j, w);
		if (w == FLOW_RETURN)
			join_returned(j);
		else if (ends_iteration(l, w) && w != FLOW_CONTINUE && may(out, FLOW_CONTINUE))
			out->vars[w] = out->vars[FLOW_CONTINUE];
		else
			out->vars[w] = join_variables(j, w, left_by(j, 0, w), left_by(j, 1, w));
	}
	op_set_results(e->ctx, j->o, types_of(e, &j->yields[0]), j->yields[0].len);
	build_yield(e, j->o->blocks[0], &j->yields[0]);
	build_yield(e, j->o->blocks[1], &j->yields[1]);
	result_values(e, j->o, &results);
	struct value *const *next = results.at;
	for (u32 i = 0; i < j->waiting.len; i++) {
		struct val *v = j->waiting.at[i].val;
		if (v)
			*v = rebuild(e, *v, &next);
		else
			*j->waiting.at[i].flag = *next++;
	}
	for (enum flow w = 0; w < FLOWS; w++)
		for (u32 i = 0; may(out, w) && i < out->vars[w].len; i++) /* the regions of the branches end here */
			out->vars[w].at[i].region = MIN(out->vars[w].at[i].region, e->region);
	if (may(out, FLOW_NEXT))
		e->frame->vars = out->vars[FLOW_NEXT];
	return *out;
}

/* --- continuations ------------------------------------------------------------------------------------------- */

bool count_branch(struct eval *e, struct loc at)
{
	if (++e->branches <= MAX_BRANCHES)
		return true;
	eval_error(e, E_BRANCHES_TOO_DEEP, at);
	e->stopped = true;
	return false;
}

static struct outcome exec_rest(struct eval *e, const struct cont *c)
{
	for (; c; c = c->outer) {
		struct outcome r = c->loop   ? exec_iterations(e, c->loop, c->over, c->at, c->outer)
				   : c->body ? exec_body(e, c->body, (u32)c->at, c->outer)
					     : leave(e, c->ends);
		if (r.rest_done || !may(&r, FLOW_NEXT))
			return r;
	}
	return goes_on();
}

/* Stores the current variables in r if r includes FLOW_NEXT. */
static struct outcome with_variables(struct eval *e, struct outcome r)
{
	if (may(&r, FLOW_NEXT))
		r.vars[FLOW_NEXT] = e->frame->vars;
	return r;
}

/* continue_with, evaluated into block b with the variables of r. */
static struct outcome continue_in(struct eval *e, struct block *b, struct outcome r, const struct cont *rest)
{
	struct builder outer = enter_block(e, b);
	e->frame->vars = copy_scope(e, &r.vars[FLOW_NEXT]);
	r = with_variables(e, continue_with(e, r, rest));
	leave_block(e, outer);
	return r;
}

struct outcome continue_with(struct eval *e, struct outcome r, const struct cont *rest)
{
	if (!is_only(&r, FLOW_NEXT)) {
		struct outcome goes = goes_on(), pending = without(r, FLOW_NEXT);
		scope before = copy_scope(e, &e->frame->vars);
		if (!count_branch(e, e->b.loc))
			return gives_up();
		struct op *o = build(&e->b, IR_IF, &r.taken[FLOW_NEXT], 1, NULL, 0, 2);
		goes.vars[FLOW_NEXT] = before;
		goes = continue_in(e, o->blocks[0], goes, rest);
		e->branches--;
		struct join j = {.e = e, .o = o, .side = {&goes, &pending}, .before = &before, .pending = &r,
				 .at = o->loc};
		r = join(&j);
	} else {
		r = with_variables(e, exec_rest(e, rest));
	}
	r.rest_done = true;
	return r;
}

/* True if `rest` holds no more code and ends in a flow. False if it ends at the end of a run-time branch: the code
 * after that branch's `if` is still to come. */
static bool only_leads_on(const struct cont *rest)
{
	while (rest && rest->body && rest->at == rest->body->len)
		rest = rest->outer;
	return rest && !rest->body && !rest->loop;
}

struct outcome exec_region(struct eval *e, const struct body *body, enum flow ends)
{
	struct cont end = {.ends = ends};
	struct outcome r = exec_body(e, body, 0, &end);
	if (may(&r, FLOW_NEXT))
		r = leave(e, ends);
	r.rest_done = false;
	return r;
}

struct val exec_function(struct eval *e, const struct body *body)
{
	struct val ret = exec_region(e, body, FLOW_RETURN).ret;
	return ret.kind == V_UNSET ? val_none() : ret;
}

struct outcome exec_jump(struct eval *e, const struct stmt *s)
{
	const struct loop *l = e->frame->loop;
	if (s->kind == ST_RETURN) {
		struct outcome r = {.ways = bit(FLOW_RETURN)};
		r.ret = s->value ? eval_expr(e, s->value) : own_value(e, val_none());
		const struct binding *b =
			s->value && s->value->kind == EX_NAME ? find_var(e->frame, s->value->name) : NULL;
		if (b && (b->val.kind == V_TUPLE || b->val.kind == V_DICT))
			r.ret.list = b->val.list; /* the variable ends here, so the list keeps its owner */
		if (!e->frame->caller && r.ret.kind != V_NONE && r.ret.kind != V_ERROR &&
		    e->frame->func->kind == FUNC_JIT)
			eval_error(e, E_KERNEL_RETURNS, s->loc);
		return r;
	}
	if (l)
		return leave(e, s->kind == ST_BREAK ? l->leave : FLOW_CONTINUE);
	eval_error(e, E_OUTSIDE_LOOP, s->loc, s->kind == ST_BREAK ? "break" : "continue");
	return goes_on();
}

/* --- if ------------------------------------------------------------------------------------------------------ */

/* Evaluates one branch of a run-time `if` into block b, starting from the variables `before`: arm number `arm`
 * (this_arm), or the arms after it. */
static struct outcome run_branch(struct eval *e, struct block *b, const struct stmt *s, u32 arm, bool this_arm,
				 const scope *before)
{
	struct builder outer = enter_block(e, b);
	struct outcome r = goes_on();
	u32 region = enter_region(e);
	e->frame->vars = copy_scope(e, before);
	if (this_arm)
		r = exec_body(e, &s->arms[arm].body, 0, NULL);
	else if (arm + 1 < s->narms)
		r = exec_if(e, s, arm + 1, NULL);
	r.rest_done = false;
	r = with_variables(e, r);
	leave_region(e, region);
	leave_block(e, outer);
	return r;
}

struct outcome exec_if(struct eval *e, const struct stmt *s, u32 arm, const struct cont *rest)
{
	struct value *cond = NULL;
	const struct expr *test = s->arms[arm].test;
	if (arm && test)
		mark_line(e, test->loc);
	int known = test ? truth(e, eval_expr(e, test), test->loc, &cond) : 1;
	if (known == -2) {
		for (; arm < s->narms; arm++)
			mark_unknown(e, &s->arms[arm].body);
		return goes_on();
	}
	if (known == 1)
		return exec_body(e, &s->arms[arm].body, 0, rest);
	if (known == 0)
		return arm + 1 < s->narms ? exec_if(e, s, arm + 1, rest) : goes_on();
	if (!count_branch(e, s->loc))
		return gives_up();
	scope before = copy_scope(e, &e->frame->vars);
	e->b.loc = user_loc(e, s->loc);
	struct op *o = build(&e->b, IR_IF, &cond, 1, NULL, 0, 2);
	struct outcome branch[2];
	bool onward[2], rest_done = false;
	for (u32 k = 0; k < 2; k++) {
		branch[k] = run_branch(e, o->blocks[k], s, arm, k == 0, &before);
		onward[k] = may(&branch[k], FLOW_NEXT);
	}
	bool jumps = !is_only(&branch[0], FLOW_NEXT) || !is_only(&branch[1], FLOW_NEXT);
	for (u32 k = 0; k < 2 && jumps; k++)
		if (onward[k] && (!onward[1 - k] || only_leads_on(rest))) {
			branch[k] = continue_in(e, o->blocks[k], branch[k], rest);
			rest_done = true;
		}
	e->branches--;
	struct join j = {.e = e, .o = o, .side = {&branch[0], &branch[1]}, .before = &before, .at = s->loc};
	struct outcome r = join(&j);
	mark_variables(e, &before);
	r.rest_done = rest_done;
	return r;
}

void forget_assigned(struct eval *e, const scope *before, bool constants, const char *reason)
{
	for (u32 i = 0; i < e->frame->vars.len; i++) {
		struct binding *b = &e->frame->vars.at[i];
		const struct binding *old = lookup(before, b->name);
		if ((!old || !val_equal(&old->val, &b->val)) && !(constants && has_run_time_part(&b->val)))
			b->val = (struct val){.kind = V_UNSET, .reason = reason};
	}
}

/* One side of a run-time conditional, evaluated into block b. */
static struct val ternary_arm(struct eval *e, const struct expr *arm, struct block *b, bool used)
{
	struct builder outer = enter_block(e, b);
	u32 region = enter_region(e);
	scope before = e->frame->func->has_named_exprs ? copy_scope(e, &e->frame->vars) : (scope){0};
	struct val v = eval_expr(e, arm);
	if (!used)
		v = val_none();
	if (v.kind != V_NONE && !val_has_parts(&v)) /* None: the sides are statements */
		v = to_tensor(e, v, arm->loc);
	leave_region(e, region);
	leave_block(e, outer);
	if (e->frame->func->has_named_exprs)
		forget_assigned(e, &before, false, "':=' assigns it on one side of a run-time conditional only");
	return v;
}

struct val eval_ternary(struct eval *e, const struct expr *x, bool used)
{
	struct value *cond;
	int known = truth(e, eval_expr(e, x->b), x->b->loc, &cond);
	if (known == -2)
		return val_error();
	if (known >= 0)
		return eval_expr(e, known ? x->a : x->c);
	struct op *o = build(&e->b, IR_IF, &cond, 1, NULL, 0, 2);
	struct val v[2];
	value_vec parts[2] = {{0}, {0}}, results = {0};
	for (int i = 0; i < 2; i++)
		v[i] = ternary_arm(e, i ? x->c : x->a, o->blocks[i], used);
	for (int i = 0; i < 2; i++) {
		v[i] = given_value(e, v[i], &v[!i], o->blocks[i], x->loc);
		flatten(e, &v[i], &parts[i]);
	}
	bool ok = v[0].kind != V_ERROR && v[1].kind != V_ERROR;
	if (ok && !same_type(&v[0], &v[1])) {
		eval_error(e, E_TERNARY_TYPES, x->loc, describe_type(e, &v[0]), describe_type(e, &v[1]));
		ok = false;
	}
	if (!ok)
		parts[0].len = parts[1].len = 0;
	op_set_results(e->ctx, o, types_of(e, &parts[0]), parts[0].len);
	build_yield(e, o->blocks[0], &parts[0]);
	build_yield(e, o->blocks[1], &parts[1]);
	result_values(e, o, &results);
	struct value *const *next = results.at;
	return ok ? rebuild(e, v[0], &next) : val_error();
}
