/* Run-time control flow: scf.if, scf.for, scf.while; and loops unrolled at compile time.
 *
 * Variables are merged by comparing scopes. A branch or body is evaluated into its own block with a copy of the
 * scope; variables that differ afterwards become results of the operation. A run-time `if` that returns takes the rest
 * of the function into its branches, so the IR needs no jumps. */
#include "eval/internal.h"

/* --- flattening: tuples and objects travel as their parts ------------------------------------------------------ */

typedef VEC(struct value *) value_vec;

static void flatten(struct eval *e, const struct val *v, value_vec *out)
{
	if (v->kind == V_TENSOR)
		vec_push(e->arena, out, v->ssa);
	for (u32 i = 0; val_has_parts(v) && i < v->nitems; i++)
		flatten(e, &v->items[i], out);
}

/* v with its run-time parts replaced, in order, by the values at *next. */
static struct val rebuild(struct eval *e, struct val v, struct value *const **next)
{
	if (v.kind == V_TENSOR)
		v.ssa = *(*next)++;
	if (val_has_parts(&v)) {
		struct val *items = arena_array(e->arena, struct val, v.nitems);
		for (u32 i = 0; i < v.nitems; i++)
			items[i] = rebuild(e, v.items[i], next);
		v.items = items;
	}
	return v;
}

static bool has_run_time_part(const struct val *v)
{
	if (v->kind == V_TENSOR)
		return true;
	for (u32 i = 0; val_has_parts(v) && i < v->nitems; i++)
		if (has_run_time_part(&v->items[i]))
			return true;
	return false;
}

/* Same structure and types, so that one SSA value can replace either. */
static bool same_type(const struct val *a, const struct val *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == V_TENSOR)
		return a->ssa->type == b->ssa->type && a->dtype == b->dtype && a->pointers == b->pointers &&
		       a->is_const == b->is_const;
	if (val_has_parts(a)) {
		if (a->nitems != b->nitems || a->class != b->class)
			return false;
		for (u32 i = 0; i < a->nitems; i++)
			if (!same_type(&a->items[i], &b->items[i]))
				return false;
		return true;
	}
	return val_equal(a, b);
}

static scope copy_scope(struct eval *e, const scope *s)
{
	scope c = {0};
	c.at = arena_dup(e->arena, s->at, s->len * sizeof *s->at);
	c.len = c.cap = s->len;
	return c;
}

static const struct binding *lookup(const scope *s, const char *name)
{
	for (u32 i = s->len; i-- > 0;)
		if (s->at[i].name == name)
			return &s->at[i];
	return NULL;
}

static void build_yield(struct eval *e, struct block *b, const value_vec *v)
{
	struct builder at = builder_at_end(e->ctx, b);
	at.loc = e->b.loc;
	build(&at, IR_YIELD, v->at, v->len, NULL, 0, 0);
}

static const struct type **types_of(struct eval *e, const value_vec *v)
{
	const struct type **t = arena_array(e->arena, const struct type *, v->len);
	for (u32 i = 0; i < v->len; i++)
		t[i] = v->at[i]->type;
	return t;
}

static void result_values(struct eval *e, struct op *o, value_vec *out)
{
	for (u32 i = 0; i < o->nresults; i++)
		vec_push(e->arena, out, &o->results[i]);
}

/* --- the names that statements assign ------------------------------------------------------------------------ */

typedef VEC(const char *) name_vec;

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

/* The names that := assigns in x. */
static void add_named(struct eval *e, const struct expr *x, name_vec *out)
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

/* Every name that the statements of b may assign. */
static void assigned_names(struct eval *e, const struct body *b, name_vec *out)
{
	for (u32 i = 0; i < b->len; i++) {
		const struct stmt *s = b->at[i];
		for (u32 k = 0; k < s->ntargets; k++)
			add_target(e, s->targets[k], out);
		if (s->target && (s->kind == ST_AUG || s->kind == ST_ANN || s->kind == ST_FOR))
			add_target(e, s->target, out);
		add_named(e, s->value, out);
		add_named(e, s->message, out);
		for (u32 k = 0; k < s->narms; k++) {
			add_named(e, s->arms[k].test, out);
			assigned_names(e, &s->arms[k].body, out);
		}
		assigned_names(e, &s->body, out);
	}
}

/* After an error in a condition or a bound: the variables that the statements assign become V_ERROR, so that their
 * uses report nothing. */
static void mark_unknown(struct eval *e, const struct body *b)
{
	name_vec names = {0};
	assigned_names(e, b, &names);
	for (u32 i = 0; i < names.len; i++)
		set_var(e, names.at[i], val_error());
}

/* --- if ------------------------------------------------------------------------------------------------------ */

static bool contains_return(const struct body *b)
{
	for (u32 i = 0; i < b->len; i++) {
		const struct stmt *s = b->at[i];
		if (s->kind == ST_RETURN || contains_return(&s->body))
			return true;
		for (u32 k = 0; k < s->narms; k++)
			if (contains_return(&s->arms[k].body))
				return true;
	}
	return false;
}

static bool if_returns(const struct stmt *s, u32 arm)
{
	for (; arm < s->narms; arm++)
		if (contains_return(&s->arms[arm].body))
			return true;
	return false;
}

struct outcome {
	scope vars;
	struct val ret;
	enum flow flow;
};

/* Evaluates one branch of a run-time `if` into block b, starting from the variables `before`: the arm itself
 * (this_arm), or the arms behind it; to_the_end: and then the rest of the function. */
static struct outcome run_branch(struct eval *e, struct block *b, const struct stmt *s, u32 arm, bool this_arm,
				const scope *before, const struct cont *rest, bool to_the_end)
{
	struct builder outer = e->b;
	e->b = builder_at_end(e->ctx, b);
	e->b.loc = outer.loc;
	e->b.count = outer.count;
	e->frame->vars = copy_scope(e, before);
	e->frame->ret = val_none();
	struct outcome r;
	if (this_arm)
		r.flow = exec_body(e, &s->arms[arm].body, 0, rest);
	else
		r.flow = arm + 1 < s->narms ? exec_if(e, s, arm + 1, rest) : FLOW_NEXT;
	if (to_the_end && r.flow == FLOW_NEXT && exec_rest(e, rest) == FLOW_NEXT)
		e->frame->ret = val_none();
	r.vars = e->frame->vars;
	r.ret = e->frame->ret;
	outer.count = e->b.count;
	e->b = outer;
	return r;
}

static bool same_number(const struct val *a, const struct val *b)
{
	if (a->kind != b->kind)
		return false;
	return a->kind == V_FLOAT ? !memcmp(&a->real, &b->real, sizeof a->real) : val_equal(a, b);
}

/* What the branch with block b returns, of which the other branch returns `other`: numbers stay compile-time values
 * only where both return the same ones. */
static struct val returned_value(struct eval *e, struct val v, const struct val *other, struct block *b,
				 struct loc at)
{
	if (val_has_parts(&v) && other->kind == v.kind && other->nitems == v.nitems) {
		struct val *items = arena_array(e->arena, struct val, v.nitems);
		for (u32 i = 0; i < v.nitems; i++)
			items[i] = returned_value(e, v.items[i], &other->items[i], b, at);
		v.items = items;
	}
	if (!val_is_number(&v) || same_number(&v, other))
		return v;
	struct builder outer = e->b;
	e->b = builder_at_end(e->ctx, b);
	e->b.loc = outer.loc;
	v = to_tensor(e, v, at);
	e->b = outer;
	return v;
}

/* Both branches run to the end of the function: their return values are merged. */
static enum flow finish_returning(struct eval *e, struct op *o, const struct outcome *yes, const struct outcome *no,
				  const struct stmt *s)
{
	value_vec v[2] = {{0}, {0}}, results = {0};
	struct val ret = returned_value(e, yes->ret, &no->ret, o->blocks[0], s->loc),
		   other = returned_value(e, no->ret, &yes->ret, o->blocks[1], s->loc);
	if (ret.kind == V_ERROR || other.kind == V_ERROR) {
		ret = val_error();
	} else if (!same_type(&ret, &other)) {
		ret = eval_error(e, E_RETURN_TYPES, s->loc, describe(e, &ret), describe(e, &other));
	} else {
		flatten(e, &ret, &v[0]);
		flatten(e, &other, &v[1]);
	}
	op_set_results(e->ctx, o, types_of(e, &v[0]), v[0].len);
	build_yield(e, o->blocks[0], &v[0]);
	build_yield(e, o->blocks[1], &v[1]);
	result_values(e, o, &results);
	struct value *const *next = results.at;
	e->frame->ret = rebuild(e, ret, &next);
	return FLOW_RETURN;
}

static void bind_unset(struct eval *e, scope *vars, const char *name, const char *reason)
{
	struct binding b = {.name = name, .val = {.kind = V_UNSET, .reason = reason}};
	vec_push(e->arena, vars, b);
}

/* Both branches go on: variables on which they differ become results. */
static void finish_merging(struct eval *e, struct op *o, const scope *before, const struct outcome *yes,
			   const struct outcome *no, const struct stmt *s)
{
	value_vec v[2] = {{0}, {0}}, results = {0};
	VEC(struct binding) merged = {0};
	scope vars = copy_scope(e, before);
	for (u32 i = 0; i < yes->vars.len; i++) {
		const struct binding *a = &yes->vars.at[i], *b = lookup(&no->vars, a->name),
				     *old = lookup(before, a->name);
		if (!b) {
			bind_unset(e, &vars, a->name, "it is assigned in only one branch of a run-time 'if'");
			continue;
		}
		if (val_equal(&a->val, &b->val)) {
			if (!old)
				vec_push(e->arena, &vars, *a);
			else
				*(struct binding *)lookup(&vars, a->name) = *a;
			continue;
		}
		struct val x = a->val, y = b->val;
		if (x.kind == V_ERROR || y.kind == V_ERROR || x.kind == V_UNSET || y.kind == V_UNSET) {
			x = x.kind == V_ERROR || y.kind == V_ERROR ? val_error() : x.kind == V_UNSET ? x : y;
		} else if (!same_type(&x, &y) || !has_run_time_part(&x)) {
			bool constants = !has_run_time_part(&x) && !has_run_time_part(&y);
			if (old && !constants)
				x = eval_error(e, E_BRANCH_TYPES, s->loc, a->name, describe(e, &x), describe(e, &y));
			else
				x = (struct val){.kind = V_UNSET,
						 .reason = constants ?
							 "the branches of a run-time 'if' give it different constants" :
							 "the branches of a run-time 'if' give it different types"};
		} else {
			flatten(e, &x, &v[0]);
			flatten(e, &y, &v[1]);
			struct binding m = {.name = a->name, .val = x, .constant = a->constant};
			vec_push(e->arena, &merged, m);
			continue;
		}
		if (old)
			((struct binding *)lookup(&vars, a->name))->val = x;
		else
			vec_push(e->arena, &vars, ((struct binding){.name = a->name, .val = x}));
	}
	for (u32 i = 0; i < no->vars.len; i++)
		if (!lookup(&yes->vars, no->vars.at[i].name))
			bind_unset(e, &vars, no->vars.at[i].name,
				   "it is assigned in only one branch of a run-time 'if'");
	op_set_results(e->ctx, o, types_of(e, &v[0]), v[0].len);
	build_yield(e, o->blocks[0], &v[0]);
	build_yield(e, o->blocks[1], &v[1]);
	result_values(e, o, &results);
	e->frame->vars = vars;
	struct value *const *next = results.at;
	for (u32 i = 0; i < merged.len; i++)
		set_var(e, merged.at[i].name, rebuild(e, merged.at[i].val, &next));
}

/* Counts one more run-time branch or loop around the statements that follow; false when there are too many. */
static bool count_branch(struct eval *e, struct loc at)
{
	if (++e->branches <= MAX_BRANCHES)
		return true;
	eval_error(e, E_BRANCHES_TOO_DEEP, at);
	e->stopped = true;
	return false;
}

enum flow exec_if(struct eval *e, const struct stmt *s, u32 arm, const struct cont *rest)
{
	struct value *cond = NULL;
	const struct expr *test = s->arms[arm].test;
	int known = test ? truth(e, eval_expr(e, test), test->loc, &cond) : 1;
	if (known == -2) {
		for (; arm < s->narms; arm++)
			mark_unknown(e, &s->arms[arm].body);
		return FLOW_NEXT;
	}
	if (known == 1)
		return exec_body(e, &s->arms[arm].body, 0, rest);
	if (known == 0)
		return arm + 1 < s->narms ? exec_if(e, s, arm + 1, rest) : FLOW_NEXT;
	bool returns = if_returns(s, arm);
	if (returns && e->frame->loops) {
		eval_error(e, E_RETURN_IN_LOOP, s->loc);
		return FLOW_NEXT;
	}
	if (!count_branch(e, s->loc))
		return FLOW_RETURN;
	scope before = copy_scope(e, &e->frame->vars);
	e->b.loc = user_loc(e, s->loc);
	struct op *o = build(&e->b, IR_IF, &cond, 1, NULL, 0, 2);
	struct outcome yes = run_branch(e, o->blocks[0], s, arm, true, &before, rest, returns);
	struct outcome no = run_branch(e, o->blocks[1], s, arm, false, &before, rest, returns);
	e->branches--;
	if (returns)
		return finish_returning(e, o, &yes, &no, s);
	finish_merging(e, o, &before, &yes, &no, s);
	return FLOW_NEXT;
}

/* After the code that ran into a block of its own: what it assigned is not known behind it. */
static void forget_assigned(struct eval *e, const scope *before, const char *reason)
{
	for (u32 i = 0; i < e->frame->vars.len; i++) {
		struct binding *b = &e->frame->vars.at[i];
		const struct binding *old = lookup(before, b->name);
		if (!old || !val_equal(&old->val, &b->val))
			b->val = (struct val){.kind = V_UNSET, .reason = reason};
	}
}

/* One side of a run-time conditional, evaluated into block b. */
static struct val ternary_arm(struct eval *e, const struct expr *arm, struct block *b)
{
	struct builder outer = e->b;
	scope before = e->frame->func->has_named_exprs ? copy_scope(e, &e->frame->vars) : (scope){0};
	e->b = builder_at_end(e->ctx, b);
	e->b.count = outer.count;
	struct val v = eval_expr(e, arm);
	if (v.kind != V_NONE && !val_has_parts(&v)) /* None: the sides are statements */
		v = to_tensor(e, v, arm->loc);
	outer.count = e->b.count;
	e->b = outer;
	if (e->frame->func->has_named_exprs)
		forget_assigned(e, &before, "':=' assigns it on one side of a run-time conditional only");
	return v;
}

struct val eval_ternary(struct eval *e, const struct expr *x)
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
		v[i] = ternary_arm(e, i ? x->c : x->a, o->blocks[i]);
	for (int i = 0; i < 2; i++) {
		v[i] = returned_value(e, v[i], &v[!i], o->blocks[i], x->loc);
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

/* --- loops --------------------------------------------------------------------------------------------------- */

/* The variables a loop carries around: known before it, and assigned in it. */
static void find_carried(struct eval *e, const struct stmt *s, name_vec *out)
{
	name_vec names = {0};
	assigned_names(e, &s->body, &names);
	if (s->kind == ST_WHILE)
		add_named(e, s->value, &names);
	for (u32 i = 0; i < names.len; i++) {
		const struct binding *b = find_var(e->frame, names.at[i]);
		if (b && has_run_time_part(&b->val) &&
		    !(s->target && s->target->kind == EX_NAME && s->target->name == names.at[i]))
			vec_push(e->arena, out, names.at[i]);
	}
}

static void collect(struct eval *e, const name_vec *names, value_vec *out)
{
	for (u32 i = 0; i < names->len; i++)
		flatten(e, &find_var(e->frame, names->at[i])->val, out);
}

/* Gives the carried variables new values (block arguments or results). */
static void rebind(struct eval *e, const name_vec *names, struct value *const *values)
{
	for (u32 i = 0; i < names->len; i++) {
		struct binding *b = find_var(e->frame, names->at[i]);
		struct value *const *start = values;
		tl_assert(values);
		b->val = rebuild(e, b->val, &values);
		for (; start < values; start++)
			if (!(*start)->name)
				(*start)->name = names->at[i];
	}
}

/* The hint for a carried variable whose type changes: the wider of the two types, or the loop's shape. */
static void hint_loop_type(struct eval *e, const char *name, const struct val *was, const struct val *now)
{
	if (was->kind != V_TENSOR || now->kind != V_TENSOR || was->pointers || now->pointers)
		return;
	const char *type = dtype_tl_name(now->dtype);
	bool wider = dtype_is_float(now->dtype) != dtype_is_float(was->dtype)
			     ? dtype_is_float(now->dtype)
			     : dtype_bits(now->dtype) > dtype_bits(was->dtype);
	if (is_tile(now) && !is_tile(was))
		diag_hint(e->diags, "give it that shape before the loop, as in %s = tl.zeros(…, dtype=tl.%s)", name,
			  type);
	else if (is_tile(now) == is_tile(was) && wider)
		diag_hint(e->diags, "give it that type before the loop, as in %s = (…).to(tl.%s)", name, type);
	else if (is_tile(now) == is_tile(was) && now->dtype != was->dtype)
		diag_hint(e->diags, "keep its type in the loop, as in %s = (…).to(tl.%s)", name,
			  dtype_tl_name(was->dtype));
}

/* After the body: the carried variables must have kept their types; other old variables must not have changed. */
static bool check_carried(struct eval *e, const struct stmt *s, const scope *entry, const name_vec *names)
{
	bool ok = true;
	for (u32 i = 0; i < entry->len; i++) {
		const struct binding *was = &entry->at[i], *now = find_var(e->frame, was->name);
		bool carried = false;
		for (u32 k = 0; k < names->len; k++)
			carried |= names->at[k] == was->name;
		if (was->val.kind == V_ERROR || now->val.kind == V_ERROR) {
			ok &= !carried;
			continue;
		}
		if (s->target && s->target->kind == EX_NAME && s->target->name == was->name)
			continue;
		if (was->val.kind == V_UNSET) /* the body's own, as in an earlier loop */
			continue;
		if (now->val.kind == V_UNSET) {
			eval_error(e, E_LOOP_UNSET, s->loc, was->name, now->val.reason);
			ok = false;
		} else if (!same_type(&was->val, &now->val)) {
			eval_error(e, E_LOOP_TYPE, s->loc, was->name, describe(e, &was->val), describe(e, &now->val));
			hint_loop_type(e, was->name, &was->val, &now->val);
			ok = false;
		}
	}
	return ok;
}

/* Leaves the loop: variables first bound inside it are gone. */
static void restore_scope(struct eval *e, const scope *before)
{
	scope inside = e->frame->vars;
	e->frame->vars = copy_scope(e, before);
	for (u32 i = 0; i < inside.len; i++)
		if (!lookup(before, inside.at[i].name))
			bind_unset(e, &e->frame->vars, inside.at[i].name,
			      "it is assigned only inside a run-time loop, which may run zero times");
}

/* An operand of a loop's bounds as an SSA integer of type d. */
static struct value *bound(struct eval *e, struct val v, enum dtype d, struct loc at)
{
	v = cast_to(e, to_tensor(e, v, at), d, ROUND_DEFAULT, at);
	return v.kind == V_ERROR ? NULL : v.ssa;
}

static bool check_bound(struct eval *e, struct val *v, struct loc at)
{
	if (v->kind == V_ERROR)
		return false;
	if ((v->kind == V_TENSOR && !v->pointers && dtype_is_int(v->dtype) && !is_tile(v)) || v->kind == V_INT ||
	    v->kind == V_BOOL)
		return true;
	eval_error(e, E_LOOP_BOUND, at, describe(e, v));
	return false;
}

static enum dtype bound_type(struct eval *e, struct val v, struct loc at)
{
	return to_tensor(e, v, at).dtype;
}

static bool is_constant_of(const struct val *v, enum dtype d)
{
	return v->kind == V_INT && number_fits(v, d);
}

/* Operations go into b from here on. Returns the builder of the outer block. */
static struct builder enter_block(struct eval *e, struct block *b)
{
	struct builder outer = e->b;
	e->b = builder_at_end(e->ctx, b);
	e->b.loc = outer.loc;
	e->b.count = outer.count;
	return outer;
}

/* Evaluates the loop's body (or nothing, where its condition was an error) into `b`, and yields the carried
 * variables. */
static void loop_body(struct eval *e, const struct stmt *s, struct block *b, const name_vec *carried,
		      const value_vec *args, bool run)
{
	value_vec out = {0};
	scope entry = copy_scope(e, &e->frame->vars);
	e->frame->loops++;
	count_branch(e, s->loc);
	if (run)
		exec_body(e, &s->body, 0, NULL);
	e->branches--;
	e->frame->loops--;
	if (run && check_carried(e, s, &entry, carried)) {
		collect(e, carried, &out);
		build_yield(e, b, &out);
	} else {
		build_yield(e, b, args); /* keeps the IR whole; compilation fails anyway */
	}
}

static void leave_loop(struct eval *e, struct op *o, struct builder outer, const scope *before, const name_vec *carried)
{
	outer.count = e->b.count;
	e->b = outer;
	restore_scope(e, before);
	value_vec results = {0};
	result_values(e, o, &results);
	rebind(e, carried, results.at);
}

static void exec_run_time_for(struct eval *e, const struct stmt *s, const struct loop_range *r)
{
	struct val lb = r->start, ub = r->end, by = r->step;
	struct loc at = s->value->loc;
	if (!check_bound(e, &lb, at) || !check_bound(e, &ub, at) || !check_bound(e, &by, at)) {
		mark_unknown(e, &s->body);
		return;
	}
	bool down = by.kind == V_INT && by.integer < 0;
	if (lb.kind == V_INT && ub.kind == V_INT && by.kind == V_INT && by.integer > 0 && ub.integer > lb.integer &&
	    ub.integer >> 64) /* the end need not fit a type, if the last index does */
		ub.integer = lb.integer + (ub.integer - lb.integer - 1) / by.integer * by.integer + 1;
	if (by.kind == V_INT && by.integer == 0) {
		eval_error(e, E_ZERO_STEP, at);
		return;
	}
	if (down) { /* count up, and use lb + ub - i */
		by.integer = -by.integer;
		struct val t = lb;
		lb = ub;
		ub = t;
	}
	enum dtype d = promote_int(promote_int(bound_type(e, lb, at), bound_type(e, ub, at)), bound_type(e, by, at));
	d = d == DT_I1 ? DT_I32 : d;
	value_vec ops = {0}, args = {0};
	vec_push(e->arena, &ops, bound(e, lb, d, at));
	vec_push(e->arena, &ops, bound(e, ub, d, at));
	vec_push(e->arena, &ops, bound(e, by, d, at));
	if (!ops.at[0] || !ops.at[1] || !ops.at[2]) { /* diagnosed */
		mark_unknown(e, &s->body);
		return;
	}
	/* scf.for compares signed numbers: unsigned bounds are moved down by half their range, unless they are known
	 * to be less than half of it */
	enum dtype signed_d = dtype_signless(d);
	bool halves = dtype_is_unsigned(d) && !(is_constant_of(&lb, signed_d) && is_constant_of(&ub, signed_d));
	struct value *first = ops.at[0], *last = ops.at[1];
	for (u32 k = 0; halves && k < 2; k++)
		ops.at[k] = build_moved_by_half(&e->b, ops.at[k]);
	name_vec carried = {0};
	find_carried(e, s, &carried);
	scope before = copy_scope(e, &e->frame->vars);
	collect(e, &carried, &ops);
	value_vec inits = {.at = ops.at + 3, .len = ops.len - 3};
	e->b.loc = user_loc(e, s->loc);
	struct op *o = build(&e->b, IR_FOR, ops.at, ops.len, types_of(e, &inits), inits.len, 1);
	o->attr[ATTR_STAGES] = r->num_stages;
	o->attr[ATTR_UNROLL] = r->unroll;
	o->attr[ATTR_FLATTEN] = r->flatten;
	o->attr[ATTR_WARP_SPECIALIZE] = r->warp_specialize;
	struct value *iv = block_add_arg(e->ctx, o->blocks[0], ops.at[0]->type);
	for (u32 i = 0; i < inits.len; i++)
		vec_push(e->arena, &args, block_add_arg(e->ctx, o->blocks[0], inits.at[i]->type));
	struct builder outer = enter_block(e, o->blocks[0]);
	rebind(e, &carried, args.at);
	struct val i = val_tensor(halves ? build_moved_by_half(&e->b, iv) : iv, d, 0);
	if (down) {
		i.ssa = build2(&e->b, IR_SUBI, iv->type, last, i.ssa);
		i.ssa = build2(&e->b, IR_ADDI, iv->type, i.ssa, first);
	} else {
		iv->name = s->target->kind == EX_NAME ? s->target->name : NULL;
	}
	assign(e, s->target, i, at);
	loop_body(e, s, o->blocks[0], &carried, &args, true);
	leave_loop(e, o, outer, &before, &carried);
	if (s->target->kind == EX_NAME && !lookup(&before, s->target->name))
		set_var(e, s->target->name,
			(struct val){.kind = V_UNSET,
				     .reason = "it is the index of a run-time loop, which may run zero times"});
}

enum flow exec_static_loop(struct eval *e, const struct stmt *s, i128 at, const struct loop_range *r,
			   const struct cont *rest)
{
	i128 end = r->end.integer, by = r->step.integer;
	u32 errors = e->diags->nerrors;
	for (; by > 0 ? at < end : at > end; at += by) {
		if (e->diags->nerrors != errors) { /* the others would have them too */
			mark_unknown(e, &s->body);
			return FLOW_NEXT;
		}
		struct cont next = {.loop = s, .next = at + by, .range = r, .outer = rest};
		if (!step(e, s->loc))
			return FLOW_RETURN;
		if (r->items)
			bind_target(e, s->target, r->items[at]);
		else
			set_var(e, s->target->name, val_int(at));
		if (exec_body(e, &s->body, 0, &next) == FLOW_RETURN)
			return FLOW_RETURN;
	}
	return FLOW_NEXT;
}

enum flow exec_for(struct eval *e, const struct stmt *s, const struct cont *rest)
{
	struct val over = eval_expr(e, s->value), all;
	if (over.kind != V_RANGE && sequence_items(e, &over, &all)) {
		struct loop_range *r = arena_new(e->arena, struct loop_range);
		*r = (struct loop_range){.is_static = true, .items = all.items, .start = val_int(0),
					 .end = val_int(all.nitems), .step = val_int(1)};
		return exec_static_loop(e, s, 0, r, rest);
	}
	if (over.kind != V_RANGE) {
		if (over.kind != V_ERROR)
			eval_error(e, E_LOOP_OVER, s->value->loc, describe(e, &over));
		mark_unknown(e, &s->body);
		return FLOW_NEXT;
	}
	const struct loop_range *r = over.range;
	if (s->target->kind != EX_NAME) {
		eval_error(e, E_LOOP_TARGET, s->target->loc);
		return FLOW_NEXT;
	}
	if (!r->is_static && e->frame->func->kind == FUNC_JIT) {
		exec_run_time_for(e, s, r);
		return FLOW_NEXT;
	}
	const struct val *parts[] = {&r->start, &r->end, &r->step};
	for (u32 i = 0; i < ARRAY_LEN(parts); i++) {
		if (parts[i]->kind == V_INT)
			continue;
		if (parts[i]->kind == V_TENSOR)
			eval_error(e, E_STATIC_RANGE, s->value->loc);
		else
			eval_error(e, E_LOOP_BOUND, s->value->loc, describe(e, parts[i]));
		return FLOW_NEXT;
	}
	if (!r->step.integer) {
		eval_error(e, E_ZERO_STEP, s->value->loc);
		return FLOW_NEXT;
	}
	return exec_static_loop(e, s, r->start.integer, r, rest);
}

/* In a function that runs at compile time. */
static void exec_constexpr_while(struct eval *e, const struct stmt *s)
{
	struct value *cond;
	while (step(e, s->loc) && truth(e, eval_expr(e, s->value), s->value->loc, &cond) == 1)
		if (exec_body(e, &s->body, 0, NULL) == FLOW_RETURN)
			return;
}

/* Variables that exist only since := in a loop's condition are not known in its body. */
static void forget_named(struct eval *e, const struct expr *condition)
{
	name_vec names = {0};
	add_named(e, condition, &names);
	for (u32 i = 0; i < names.len; i++)
		if (!find_var(e->frame, names.at[i]))
			bind_unset(e, &e->frame->vars, names.at[i],
				   "':=' in the condition of a run-time 'while' assigns it; assign it before the loop, "
				   "too");
}

void exec_while(struct eval *e, const struct stmt *s)
{
	if (e->frame->func->kind == FUNC_CONSTEXPR) {
		exec_constexpr_while(e, s);
		return;
	}
	name_vec carried = {0};
	value_vec inits = {0}, args = {0};
	find_carried(e, s, &carried);
	scope before = copy_scope(e, &e->frame->vars);
	collect(e, &carried, &inits);
	struct op *o = build(&e->b, IR_WHILE, inits.at, inits.len, types_of(e, &inits), inits.len, 2);
	for (u32 i = 0; i < inits.len; i++)
		vec_push(e->arena, &args, block_add_arg(e->ctx, o->blocks[0], inits.at[i]->type));
	struct builder outer = enter_block(e, o->blocks[0]);
	rebind(e, &carried, args.at);
	scope entry = copy_scope(e, &e->frame->vars);
	struct value *cond = NULL;
	int known = truth(e, eval_expr(e, s->value), s->value->loc, &cond);
	if (known == 1)
		eval_error(e, E_ENDLESS_LOOP, s->value->loc);
	if (known != -1)
		cond = build_int(&e->b, type_scalar(e->ctx, DT_I1), 0);
	value_vec c = {0};
	vec_push(e->arena, &c, cond);
	if (check_carried(e, s, &entry, &carried)) {
		collect(e, &carried, &c);
	} else {
		known = 0;
		for (u32 i = 0; i < args.len; i++)
			vec_push(e->arena, &c, args.at[i]);
	}
	build(&e->b, IR_CONDITION, c.at, c.len, NULL, 0, 0);

	args.len = 0;
	for (u32 i = 0; i < inits.len; i++)
		vec_push(e->arena, &args, block_add_arg(e->ctx, o->blocks[1], inits.at[i]->type));
	enter_block(e, o->blocks[1]);
	e->frame->vars = copy_scope(e, &before);
	rebind(e, &carried, args.at);
	forget_named(e, s->value);
	loop_body(e, s, o->blocks[1], &carried, &args, known == -1);
	leave_loop(e, o, outer, &before, &carried);
}
