/* Loops: run-time loops (scf.for and scf.while), and loops unrolled at compile time.
 *
 * A run-time loop carries the variables that are known before it and assigned in it. It also carries the other flows of
 * its body (struct outcome): whether the loop continues, and whether, and with which value, the function returns. The
 * condition is not evaluated once the loop no longer continues. A `for` loop that its body may leave is rewritten as an
 * scf.while after its body has been evaluated: only then is it known whether the statement that leaves it is
 * reachable. */
#include "frontend/control_flow.h"

struct run_time_loop {
	const struct stmt *s;
	scope before;
	name_vec kept, carried; /* see struct loop; the subset of `kept` with run-time parts */
	bool index_kept;        /* the index is in `kept`, since it is used after the loop */
	struct loop around;     /* the loop as its statements see it */
	value_vec args;         /* the block arguments of the carried values */
};

static bool contains(const struct body *b, enum stmt_kind kind)
{
	for (u32 i = 0; i < b->len; i++) {
		const struct stmt *s = b->at[i];
		bool loop = s->kind == ST_FOR || s->kind == ST_WHILE;
		if (s->kind == kind || contains(&s->orelse, kind) ||
		    ((!loop || kind == ST_RETURN) && contains(&s->body, kind)))
			return true;
		for (u32 k = 0; k < s->narms; k++)
			if (contains(&s->arms[k].body, kind))
				return true;
	}
	return false;
}

static struct loop new_loop(struct eval *e, const name_vec *kept)
{
	const struct loop *outer = e->frame->loop;
	return (struct loop){.outer = outer,
			     .leave = outer && outer->leave == FLOW_BREAK ? FLOW_BREAK_OUTER : FLOW_BREAK,
			     .kept = kept};
}

/* The outcome after a loop: evaluates its `else`, which a break skips. */
static struct outcome past_loop(struct eval *e, const struct stmt *s, const struct loop *l, struct outcome r)
{
	struct cont end = {.ends = l->leave}, orelse = {.body = &s->orelse, .outer = &end};
	e->frame->loop = l->outer;
	if (may(&r, FLOW_NEXT))
		r = continue_with(e, r, &orelse);
	r = rename_flow(e, r, l->leave, FLOW_NEXT);
	r.rest_done = false;
	return r;
}

/* --- carried variables --------------------------------------------------------------------------------------- */

static void begin_loop(struct eval *e, struct run_time_loop *l, const struct stmt *s, bool index_kept)
{
	name_vec names = {0};
	if (index_kept)
		vec_push(e->arena, &names, s->target->name);
	assigned_names(e, &s->body, &names);
	if (s->kind == ST_WHILE)
		add_named(e, s->value, &names);
	for (u32 i = 0; i < names.len; i++) { /* an iteration may change how a descriptor pads or rounds */
		struct binding *b = find_var(e->frame, names.at[i]);
		if (b && is_descriptor(&b->val))
			b->val = run_time_flags(e, b->val, NULL, s->loc);
	}
	*l = (struct run_time_loop){.s = s, .before = copy_scope(e, &e->frame->vars), .index_kept = index_kept};
	for (u32 i = 0; i < names.len; i++) {
		const struct binding *b = find_var(e->frame, names.at[i]);
		bool index = s->target && s->target->kind == EX_NAME && s->target->name == names.at[i];
		if (!b || (index && (!index_kept || i)))
			continue;
		vec_push(e->arena, &l->kept, names.at[i]);
		if (has_run_time_part(&b->val))
			vec_push(e->arena, &l->carried, names.at[i]);
	}
	l->around = new_loop(e, &l->kept);
}

static void append(struct eval *e, value_vec *to, const value_vec *more)
{
	for (u32 i = 0; i < more->len; i++)
		vec_push(e->arena, to, more->at[i]);
}

static void collect(struct eval *e, const name_vec *names, const scope *vars, value_vec *out)
{
	for (u32 i = 0; i < names->len; i++)
		flatten(e, &lookup(vars, names->at[i])->val, out);
}

/* Binds the carried variables to new values (block arguments or results). */
static void rebind(struct eval *e, const name_vec *names, struct value *const *values)
{
	for (u32 i = 0; i < names->len; i++) {
		struct binding *b = find_var(e->frame, names->at[i]);
		struct value *const *start = values;
		b->val = rebuild(e, b->val, &values);
		for (; start < values; start++)
			if (!(*start)->name)
				(*start)->name = names->at[i];
		mark_value(e, names->at[i], &b->val);
	}
}

/* Adds a hint about a carried variable whose type changes: the wider of the two types, or the shape inside the loop. */
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

/* Checks, after the body, that the carried variables have kept their types and that no other old variable has
 * changed. */
static bool check_kept(struct eval *e, const struct run_time_loop *l, const scope *left)
{
	bool ok = true;
	for (u32 i = 0; i < l->kept.len; i++) {
		const struct binding *was = lookup(&l->before, l->kept.at[i]), *now = lookup(left, was->name);
		if (was->val.kind == V_ERROR || now->val.kind == V_ERROR) {
			ok &= !has_run_time_part(&was->val);
			continue;
		}
		if (was->val.kind == V_UNSET) /* local to the body, as after an earlier loop */
			continue;
		if (now->val.kind == V_UNSET) {
			eval_error(e, E_LOOP_UNSET, l->s->loc, was->name, now->val.reason);
			ok = false;
		} else if (!same_type(&was->val, &now->val)) {
			eval_error(e, E_LOOP_TYPE, l->s->loc, was->name, describe(e, &was->val),
				   describe(e, &now->val));
			hint_loop_type(e, was->name, &was->val, &now->val);
			note_origin(e, &was->val, l->s->loc);
			note_origin(e, &now->val, l->s->loc);
			ok = false;
		}
	}
	return ok;
}

/* Restores the scope after the loop: variables first bound inside it become unset. */
static void restore_scope(struct eval *e, const scope *before)
{
	scope inside = e->frame->vars;
	e->frame->vars = copy_scope(e, before);
	for (u32 i = 0; i < inside.len; i++)
		if (!lookup(before, inside.at[i].name))
			bind_unset(e, &e->frame->vars, inside.at[i].name,
			      "it is assigned only inside a run-time loop, which may run zero times");
}

/* Evaluates the body into b with the carried values as block arguments. False after an error: the loop then yields
 * its block arguments, which keeps the IR valid. */
static bool run_body(struct eval *e, struct run_time_loop *l, struct outcome *r)
{
	e->frame->loop = &l->around;
	u32 region = enter_region(e);
	count_branch(e, l->s->loc);
	*r = exec_region(e, &l->s->body, FLOW_CONTINUE);
	e->branches--;
	leave_region(e, region);
	e->frame->loop = l->around.outer;
	if (may(r, FLOW_CONTINUE) || may(r, l->around.leave)) {
		scope *left = &r->vars[may(r, FLOW_CONTINUE) ? FLOW_CONTINUE : l->around.leave];
		for (u32 i = 0; i < l->carried.len; i++) {
			struct binding *b = (struct binding *)lookup(left, l->carried.at[i]);
			if (is_descriptor(&b->val))
				b->val = run_time_flags(e, b->val, NULL, l->s->loc);
		}
		return check_kept(e, l, left);
	}
	return r->ret.kind != V_ERROR;
}

/* The values of the carried variables after the body. */
static void left_behind(struct eval *e, const struct run_time_loop *l, const struct outcome *r, value_vec *out)
{
	enum flow w = may(r, FLOW_CONTINUE) ? FLOW_CONTINUE : l->around.leave;
	if (may(r, w))
		collect(e, &l->carried, &r->vars[w], out);
	else
		append(e, out, &l->args);
}

/* Binds the carried variables after the loop; their values are its results from number `first` on. */
static void end_loop(struct eval *e, struct run_time_loop *l, struct op *o, u32 first)
{
	value_vec results = {0};
	restore_scope(e, &l->before);
	result_values(e, o, &results);
	rebind(e, &l->carried, results.at ? results.at + first : NULL);
	const struct expr *index = l->s->target;
	if (index && index->kind == EX_NAME && !lookup(&l->before, index->name))
		set_var(e, index->name,
			(struct val){.kind = V_UNSET,
				     .reason = "it is the index of a run-time loop, which may run zero times"});
}

/* --- loops with jumps ---------------------------------------------------------------------------------------- */

/* Adds a carried value to the scf.while, with its first and its next value. */
static void carry(struct eval *e, struct op *w, value_vec *nexts, struct value *first, struct value *next)
{
	op_add_operand(e->ctx, w, first);
	op_add_operand(e->ctx, w->blocks[0]->last, block_add_arg(e->ctx, w->blocks[0], first->type));
	block_add_arg(e->ctx, w->blocks[1], first->type);
	vec_push(e->arena, nexts, next);
}

/* Completes an scf.while. Its carried variables are the operands from number `first` on, and r is the outcome of its
 * body. nexts: the next values of its operands. endless: the loop has no condition that ends it. */
static struct outcome close_while(struct eval *e, struct run_time_loop *l, struct op *w, u32 first, value_vec *nexts,
				  const struct outcome *r, bool endless)
{
	const struct type *i1 = type_scalar(e->ctx, DT_I1);
	struct builder before = builder_before(e->ctx, w), end = builder_at_end(e->ctx, w->blocks[1]);
	enum flow leave = l->around.leave;
	bool broken = may(r, leave) && l->s->orelse.len, returns = may(r, FLOW_RETURN);
	u32 flag[FLOWS] = {0}, ret = 0;
	value_vec parts = {0};
	for (enum flow k = 0; k < FLOWS; k++) {
		if (!(k == leave && broken) && !(k == FLOW_RETURN && returns))
			continue;
		flag[k] = w->noperands;
		struct value *way = r->taken[k] ? r->taken[k] : build_int(&end, i1, 1);
		carry(e, w, nexts, build_int(&before, i1, 0), way);
	}
	ret = w->noperands;
	if (returns)
		flatten(e, &r->ret, &parts);
	for (u32 i = 0; i < parts.len; i++)
		carry(e, w, nexts, build_placeholder(&before, parts.at[i]->type), parts.at[i]);
	build_yield(e, w->blocks[1], nexts);
	value_vec inits = {0};
	for (u32 i = 0; i < w->noperands; i++)
		vec_push(e->arena, &inits, operand(w, i));
	op_set_results(e->ctx, w, types_of(e, &inits), inits.len);
	end_loop(e, l, w, first);

	struct outcome out = goes_on();
	struct value *left = NULL; /* true if the loop was left by break or return */
	out.vars[FLOW_NEXT] = out.vars[leave] = e->frame->vars;
	for (enum flow k = 0; k < FLOWS; k++) {
		if (!flag[k])
			continue;
		out.ways |= 1u << k;
		out.taken[k] = &w->results[flag[k]];
		left = left ? build2(&e->b, IR_ORI, i1, left, out.taken[k]) : out.taken[k];
	}
	if (returns) {
		value_vec results = {0};
		result_values(e, w, &results);
		struct value *const *next = results.at + ret;
		out.ret = rebuild(e, r->ret, &next);
	}
	if (endless && (broken || !may(r, leave))) { /* the condition never ends the loop */
		out.ways &= ~(1u << FLOW_NEXT);
		if (!(out.ways & (out.ways - 1)))
			memset(out.taken, 0, sizeof out.taken);
	} else if (left) {
		out.taken[FLOW_NEXT] = build2(&e->b, IR_XORI, i1, left, build_int(&e->b, i1, 1));
	}
	return l->s->orelse.len ? past_loop(e, l->s, &l->around, out) : out;
}

/* Rewrites the scf.for o, of which only the body has been built, as an scf.while. It carries the index and a flag that
 * tells whether the loop continues. The index is compared with the last index for equality, since the index after the
 * last one may wrap. */
static struct outcome for_to_while(struct eval *e, struct run_time_loop *l, struct op *o, const struct outcome *r,
				   bool ok)
{
	const struct type *i1 = type_scalar(e->ctx, DT_I1), *t = for_lower(o)->type;
	struct builder b = builder_before(e->ctx, o), end = builder_at_end(e->ctx, o->blocks[0]);
	struct value *one = build_int(&b, t, 1), *step = for_step(o), *first = for_lower(o);
	i64 known;
	b.loc = end.loc = o->loc;
	if (!value_const_int(step, &known)) /* a step of 0 has no last index and counts as 1 */
		step = build2(&b, IR_MAXSI, t, step, one);
	struct value *any = build_cmpi(&b, CMPI_SLT, first, for_upper(o)),
		     *last = build2(&b, IR_SUBI, t, for_upper(o), one);
	struct value *past = build2(&b, IR_REMUI, t, build2(&b, IR_SUBI, t, last, first), step);
	last = build2(&b, IR_SUBI, t, last, past);
	struct value *more = build_cmpi(&end, CMPI_NE, for_index(o), last),
		     *next = build2(&end, IR_ADDI, t, for_index(o), for_step(o));
	if (!may(r, FLOW_CONTINUE))
		more = build_int(&end, i1, 0);
	else if (r->taken[FLOW_CONTINUE])
		more = build2(&end, IR_ANDI, i1, r->taken[FLOW_CONTINUE], more);

	value_vec inits = {0}, args = {0}, nexts = {0};
	vec_push(e->arena, &inits, first);
	vec_push(e->arena, &nexts, next);
	for (u32 i = FOR_INITS; i < o->noperands; i++)
		vec_push(e->arena, &inits, operand(o, i));
	if (ok)
		left_behind(e, l, r, &nexts);
	else
		append(e, &nexts, &l->args);
	vec_push(e->arena, &inits, any);
	vec_push(e->arena, &nexts, more);
	struct op *w = build(&b, IR_WHILE, inits.at, inits.len, NULL, 0, 2);
	struct block *body = o->blocks[0];
	o->blocks[0] = w->blocks[1];
	o->blocks[0]->parent = o;
	w->blocks[1] = body;
	body->parent = w;
	block_add_arg(e->ctx, body, i1);
	for (u32 i = 0; i < inits.len; i++)
		vec_push(e->arena, &args, block_add_arg(e->ctx, w->blocks[0], inits.at[i]->type));
	struct value **c = arena_array(e->arena, struct value *, args.len + 1);
	c[0] = args.at[args.len - 1];
	memcpy(c + 1, args.at, args.len * sizeof *c);
	struct builder in = builder_at_end(e->ctx, w->blocks[0]);
	in.loc = o->loc;
	build(&in, IR_CONDITION, c, args.len + 1, NULL, 0, 0);
	op_erase(o);
	return close_while(e, l, w, 1, &nexts, r, false);
}

/* --- for ----------------------------------------------------------------------------------------------------- */

/* A bound of a loop as an SSA integer of type d. */
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

/* Replaces ops (lower bound, upper bound, step) by 0, the number of iterations and 1, so that the loop counts its
 * iterations. This is needed unless the step is known to be less than half the range of its unsigned type: scf.for
 * reads larger steps as negative. A step of 0 stays 0, so that devices that check loop steps report it. */
static void count_iterations(struct eval *e, struct value **ops)
{
	struct builder *b = &e->b;
	const struct type *t = ops[0]->type;
	struct value *zero = build_int(b, t, 0), *one = build_int(b, t, 1), *step = ops[2];
	struct value *any = build_cmpi(b, CMPI_ULT, ops[0], ops[1]);
	struct value *way = build2(b, IR_SUBI, t, build2(b, IR_SUBI, t, ops[1], ops[0]), one);
	i64 known;
	bool may_be_zero = !value_const_int(step, &known) || !known;
	struct value *by = may_be_zero ? build2(b, IR_MAXUI, t, step, one) : step;
	struct value *more = build2(b, IR_DIVUI, t, way, by);
	ops[0] = zero;
	ops[1] = build3(b, IR_SELECT, t, any, build2(b, IR_ADDI, t, more, one), zero);
	ops[2] = may_be_zero ? build2(b, IR_MINUI, t, step, one) : one;
}

/* The index of a loop that counts its iterations. */
static struct value *counted_index(struct eval *e, struct value *first, struct value *step, struct value *count)
{
	const struct type *t = first->type;
	struct value *way = build2(&e->b, IR_MULI, t, count, step);
	return build2(&e->b, IR_ADDI, t, first, way);
}

/* Makes the index a carried variable if it is used after the loop. It then has the value of the last iteration, as in
 * Python, and before the first iteration the value before the loop, or 0 if there is none. */
static bool keep_index(struct eval *e, const struct stmt *s, enum dtype d, const struct val *lb, const struct val *ub)
{
	const char *name = s->target->name;
	const struct binding *b = find_var(e->frame, name);
	const struct val old = b ? b->val : val_none();
	bool runs = lb->kind == V_INT && ub->kind == V_INT && lb->integer < ub->integer,
	     integer = b && ((old.kind == V_TENSOR && !old.pointers && !is_tile(&old) && dtype_is_int(old.dtype)) ||
			     (old.kind == V_INT && number_fits(&old, d)));
	if (!index_is_used_behind(e->frame->func, s, &e->used_behind))
		return false;
	struct loc at = s->target->loc;
	struct val first = integer ? cast_to(e, to_tensor(e, old, at), d, ROUND_DEFAULT, at)
				   : const_tensor(e, val_int(0), d);
	if (!runs && !integer)
		diag(e->diags, W_INDEX_BEHIND, user_loc(e, s->target->loc), name);
	else if (!runs && old.kind == V_TENSOR && dtype_bits(old.dtype) > dtype_bits(d))
		diag(e->diags, W_INDEX_NARROW, user_loc(e, s->target->loc), name, dtype_name(d));
	set_var(e, name, first);
	return true;
}

static struct outcome exec_run_time_for(struct eval *e, const struct stmt *s, const struct loop_range *r)
{
	struct val lb = r->start, ub = r->end, by = r->step;
	struct loc at = s->value->loc;
	if (!check_bound(e, &lb, at) || !check_bound(e, &ub, at) || !check_bound(e, &by, at)) {
		mark_unknown(e, &s->body);
		return goes_on();
	}
	bool down = by.kind == V_INT && by.integer < 0;
	if (lb.kind == V_INT && ub.kind == V_INT && by.kind == V_INT && by.integer > 0 && ub.integer > lb.integer &&
	    ub.integer >> 64) /* the end may exceed the type if the last index fits */
		ub.integer = lb.integer + (ub.integer - lb.integer - 1) / by.integer * by.integer + 1;
	if (by.kind == V_INT && by.integer == 0) {
		eval_error(e, E_ZERO_STEP, at);
		return goes_on();
	}
	if (down) { /* count up, and use lb + ub - i */
		by.integer = -by.integer;
		struct val t = lb;
		lb = ub;
		ub = t;
	}
	enum dtype by_type = bound_type(e, by, at), ub_type = bound_type(e, ub, at), lb_type = bound_type(e, lb, at);
	enum dtype d = promote_int(promote_int(lb_type, ub_type), by_type);
	d = d == DT_I1 ? DT_I32 : d;
	value_vec ops = {0};
	vec_push(e->arena, &ops, bound(e, lb, d, at));
	vec_push(e->arena, &ops, bound(e, ub, d, at));
	vec_push(e->arena, &ops, bound(e, by, d, at));
	if (!ops.at[0] || !ops.at[1] || !ops.at[2]) { /* an error was reported */
		mark_unknown(e, &s->body);
		return goes_on();
	}
	/* scf.for compares signed numbers: unsigned bounds are reduced by half the range of their type, unless both are
	 * known to be below half of it */
	enum dtype signed_d = dtype_signless(d);
	bool halves = dtype_is_unsigned(d) && !(is_constant_of(&lb, signed_d) && is_constant_of(&ub, signed_d));
	struct value *first = ops.at[0], *last = ops.at[1], *step = ops.at[2];
	i64 known_step;
	bool counts = dtype_is_unsigned(d) && !(value_const_int(step, &known_step) && known_step > 0);
	if (counts)
		count_iterations(e, ops.at);
	halves |= counts;
	for (u32 k = 0; halves && k < 2; k++)
		ops.at[k] = build_moved_by_half(&e->b, ops.at[k]);
	struct run_time_loop l;
	begin_loop(e, &l, s, keep_index(e, s, d, &lb, &ub));
	collect(e, &l.carried, &l.before, &ops);
	value_vec inits = {.at = ops.at + FOR_INITS, .len = ops.len - FOR_INITS};
	e->b.loc = user_loc(e, s->loc);
	struct op *o = build(&e->b, IR_FOR, ops.at, ops.len, NULL, 0, 1);
	o->attr[ATTR_STAGES] = r->num_stages;
	o->attr[ATTR_UNROLL] = r->unroll;
	o->attr[ATTR_FLATTEN] = r->flatten;
	o->attr[ATTR_WARP_SPECIALIZE] = r->warp_specialize;
	struct value *iv = block_add_arg(e->ctx, o->blocks[0], ops.at[0]->type);
	for (u32 i = 0; i < inits.len; i++)
		vec_push(e->arena, &l.args, block_add_arg(e->ctx, o->blocks[0], inits.at[i]->type));
	struct builder outer = enter_block(e, o->blocks[0]);
	rebind(e, &l.carried, l.args.at);
	struct val i = val_tensor(halves ? build_moved_by_half(&e->b, iv) : iv, d, 0);
	if (counts)
		i.ssa = counted_index(e, first, step, i.ssa);
	if (down) {
		i.ssa = build2(&e->b, IR_SUBI, iv->type, last, i.ssa);
		i.ssa = build2(&e->b, IR_ADDI, iv->type, i.ssa, first);
	} else {
		i.ssa->name = s->target->kind == EX_NAME ? s->target->name : NULL;
	}
	assign(e, s->target, i, at);
	struct outcome left, out = goes_on();
	bool ok = run_body(e, &l, &left);
	leave_block(e, outer);
	if (left.ways == 1u << FLOW_CONTINUE) {
		value_vec nexts = {0};
		if (ok)
			left_behind(e, &l, &left, &nexts);
		build_yield(e, o->blocks[0], ok ? &nexts : &l.args);
		op_set_results(e->ctx, o, types_of(e, &inits), inits.len);
		end_loop(e, &l, o, 0);
		if (s->orelse.len)
			out = past_loop(e, s, &l.around, out);
	} else {
		if (e->remarks && (r->num_stages || r->unroll > 1 || r->flatten))
			diag(e->diags, R_LOOP_IS_LEFT, user_loc(e, s->value->loc));
		out = for_to_while(e, &l, o, &left, ok);
	}
	return out;
}

/* The number of iterations of an unrolled loop. */
static i128 count_of(const struct val *over)
{
	if (over->kind == V_TUPLE)
		return over->nitems;
	i128 length = over->range->end.integer - over->range->start.integer, by = over->range->step.integer;
	if (by < 0)
		length = -length, by = -by;
	return length <= 0 ? 0 : (length + by - 1) / by;
}

static struct val element_of(const struct val *over, i128 at)
{
	return over->kind == V_TUPLE ? over->items[at]
				     : val_int(over->range->start.integer + at * over->range->step.integer);
}

struct outcome exec_iterations(struct eval *e, const struct stmt *s, const struct val *over, i128 at,
			       const struct cont *rest)
{
	u32 errors = e->diags->nerrors;
	bool continues = contains(&s->body, ST_CONTINUE);
	for (i128 n = count_of(over); at < n; at++) {
		if (e->diags->nerrors != errors) { /* later iterations would repeat these errors */
			mark_unknown(e, &s->body);
			return goes_on();
		}
		struct cont next = {.loop = s, .over = over, .at = at + 1, .outer = rest};
		struct outcome r;
		if (!step(e, s->loc))
			return gives_up();
		bind_target(e, s->target, part_of(element_of(over, at)));
		if (continues)
			r = rename_flow(e, exec_region(e, &s->body, FLOW_CONTINUE), FLOW_CONTINUE, FLOW_NEXT);
		else
			r = exec_body(e, &s->body, 0, &next);
		if (r.rest_done || !may(&r, FLOW_NEXT))
			return r;
		if (r.ways != 1u << FLOW_NEXT)
			return continue_with(e, r, &next);
	}
	return goes_on();
}

/* Evaluates an unrolled loop. Without break, continue and else, it is equivalent to the sequence of its iterations.
 * Otherwise the code after an iteration ends at the end of the loop: in FLOW_CONTINUE if an `else` follows. */
static struct outcome exec_unrolled(struct eval *e, const struct stmt *s, const struct val *over,
				    const struct cont *rest)
{
	if (!contains(&s->body, ST_BREAK) && !contains(&s->body, ST_CONTINUE) && !s->orelse.len)
		return exec_iterations(e, s, over, 0, rest);
	struct loop l = new_loop(e, NULL);
	struct cont end = {.ends = s->orelse.len ? FLOW_CONTINUE : l.leave};
	e->frame->loop = &l;
	struct outcome r = exec_iterations(e, s, over, 0, &end);
	e->frame->loop = l.outer;
	if (s->orelse.len)
		return past_loop(e, s, &l, rename_flow(e, r, FLOW_CONTINUE, FLOW_NEXT));
	r = rename_flow(e, r, l.leave, FLOW_NEXT);
	r.rest_done = false;
	return r;
}

struct outcome exec_for(struct eval *e, const struct stmt *s, const struct cont *rest)
{
	struct val over = eval_expr(e, s->value), all;
	if (over.kind != V_RANGE && sequence_items(e, &over, &all))
		over = all;
	if (over.kind != V_RANGE && over.kind != V_TUPLE) {
		if (over.kind != V_ERROR)
			eval_error(e, E_LOOP_OVER, s->value->loc, describe(e, &over));
		if (is_tile(&over))
			diag_hint(e->diags, "operators and functions work on all elements of a tile at once, as in "
					    "x * 2 or tl.sum(x)");
		else if (over.kind == V_TENSOR && over.pointers)
			diag_hint(e->diags, "loop over numbers: for i in range(n), with tl.load(ptr + i)");
		mark_unknown(e, &s->body);
		return goes_on();
	}
	/* the statements after the loop may be evaluated during the loop */
	const struct val *kept = arena_dup(e->arena, &over, sizeof over);
	if (over.kind == V_TUPLE)
		return exec_unrolled(e, s, kept, rest);
	const struct loop_range *r = over.range;
	if (s->target->kind != EX_NAME) {
		eval_error(e, E_LOOP_TARGET, s->target->loc);
		return goes_on();
	}
	if (!r->is_static && e->frame->func->kind == FUNC_JIT)
		return exec_run_time_for(e, s, r);
	const struct val *parts[] = {&r->start, &r->end, &r->step};
	for (u32 i = 0; i < ARRAY_LEN(parts); i++) {
		if (parts[i]->kind == V_INT)
			continue;
		if (parts[i]->kind == V_TENSOR)
			eval_error(e, E_STATIC_RANGE, s->value->loc);
		else
			eval_error(e, E_LOOP_BOUND, s->value->loc, describe(e, parts[i]));
		return goes_on();
	}
	if (!r->step.integer) {
		eval_error(e, E_ZERO_STEP, s->value->loc);
		return goes_on();
	}
	return exec_unrolled(e, s, kept, rest);
}

/* --- while --------------------------------------------------------------------------------------------------- */

/* A `while` in a function that runs at compile time. */
static struct outcome exec_constexpr_while(struct eval *e, const struct stmt *s)
{
	struct value *cond;
	struct loop l = new_loop(e, NULL);
	struct outcome r = goes_on();
	int known = 0;
	while (may(&r, FLOW_NEXT) && step(e, s->loc) &&
	       (known = truth(e, eval_expr(e, s->value), s->value->loc, &cond)) == 1) {
		e->frame->loop = &l;
		r = rename_flow(e, exec_region(e, &s->body, FLOW_CONTINUE), FLOW_CONTINUE, FLOW_NEXT);
		e->frame->loop = l.outer;
		if (r.ways & (r.ways - 1))
			known = -1;
		if (known == -1)
			break;
	}
	if (known == -1)
		eval_error(e, E_CONSTEXPR_CONDITION, s->value->loc);
	return known == -1 ? gives_up() : past_loop(e, s, &l, r);
}

/* Unsets, in the body, the variables that exist only because of := in the loop's condition. */
static void forget_named(struct eval *e, const struct expr *condition)
{
	name_vec names = {0};
	add_named(e, condition, &names);
	for (u32 i = 0; i < names.len; i++)
		if (!find_var(e->frame, names.at[i]))
			bind_unset(e, &e->frame->vars, names.at[i],
				   "':=' in the condition of a run-time 'while' assigns it; also assign it before the "
				   "loop");
}

/* The condition of a loop that jumps can also leave: it is evaluated only while `going` is true. *known: see truth. */
static struct value *guarded_condition(struct eval *e, const struct run_time_loop *l, struct value *going, int *known)
{
	const struct type *i1 = type_scalar(e->ctx, DT_I1);
	const struct expr *x = l->s->value;
	struct value *cond = NULL;
	struct op *o = build(&e->b, IR_IF, &going, 1, NULL, 0, 2);
	struct builder no = builder_at_end(e->ctx, o->blocks[1]);
	value_vec yes = {0}, otherwise = {0}, results = {0};
	no.loc = o->loc;
	vec_push(e->arena, &otherwise, build_int(&no, i1, 0));
	if (e->frame->func->has_named_exprs)
		collect(e, &l->carried, &e->frame->vars, &otherwise);
	struct builder outer = enter_block(e, o->blocks[0]);
	*known = truth(e, eval_expr(e, x), x->loc, &cond);
	vec_push(e->arena, &yes, *known == -1 ? cond : build_int(&e->b, i1, *known == 1));
	leave_block(e, outer);
	bool named = e->frame->func->has_named_exprs && check_kept(e, l, &e->frame->vars);
	if (named)
		collect(e, &l->carried, &e->frame->vars, &yes);
	else
		otherwise.len = 1;
	build_yield(e, o->blocks[0], &yes);
	build_yield(e, o->blocks[1], &otherwise);
	op_set_results(e->ctx, o, types_of(e, &yes), yes.len);
	result_values(e, o, &results);
	if (named)
		rebind(e, &l->carried, results.at + 1);
	return result(o);
}

/* Evaluates the condition of an scf.while into its first block, with block arguments `args`. going: the argument
 * that tells whether the loop continues, or NULL. Returns the state of the condition, as truth does. */
static int run_condition(struct eval *e, const struct run_time_loop *l, const value_vec *args,
			 struct value *going)
{
	const struct expr *x = l->s->value;
	value_vec c = {0};
	struct value *cond = NULL;
	int known;
	if (going)
		cond = guarded_condition(e, l, going, &known);
	else
		known = truth(e, eval_expr(e, x), x->loc, &cond);
	if (!going && known != -1)
		cond = build_int(&e->b, type_scalar(e->ctx, DT_I1), 0);
	vec_push(e->arena, &c, cond);
	if (check_kept(e, l, &e->frame->vars)) {
		collect(e, &l->carried, &e->frame->vars, &c);
	} else {
		known = 0;
		append(e, &c, args);
		c.len = args->len + 1 - (going != NULL);
	}
	if (going)
		vec_push(e->arena, &c, going);
	build(&e->b, IR_CONDITION, c.at, c.len, NULL, 0, 0);
	return known;
}

struct outcome exec_while(struct eval *e, const struct stmt *s)
{
	if (e->frame->func->kind == FUNC_CONSTEXPR)
		return exec_constexpr_while(e, s);
	const struct type *i1 = type_scalar(e->ctx, DT_I1);
	bool jumps = contains(&s->body, ST_BREAK) || contains(&s->body, ST_RETURN);
	struct run_time_loop l;
	value_vec inits = {0}, args = {0}, nexts = {0};
	begin_loop(e, &l, s, false);
	collect(e, &l.carried, &l.before, &inits);
	u32 ncarried = inits.len;
	if (jumps)
		vec_push(e->arena, &inits, build_int(&e->b, i1, 1));
	struct op *o = build(&e->b, IR_WHILE, inits.at, inits.len, NULL, 0, 2);
	for (u32 i = 0; i < inits.len; i++)
		vec_push(e->arena, &args, block_add_arg(e->ctx, o->blocks[0], inits.at[i]->type));
	struct builder outer = enter_block(e, o->blocks[0]);
	rebind(e, &l.carried, args.at);
	u32 region = enter_region(e);
	int known = run_condition(e, &l, &args, jumps ? args.at[ncarried] : NULL);
	leave_region(e, region);
	for (u32 i = 0; i < inits.len; i++)
		vec_push(e->arena, &l.args, block_add_arg(e->ctx, o->blocks[1], inits.at[i]->type));
	leave_block(e, outer);
	outer = enter_block(e, o->blocks[1]);
	e->frame->vars = copy_scope(e, &l.before);
	rebind(e, &l.carried, l.args.at);
	forget_named(e, s->value);
	struct outcome r = {.ways = 1u << FLOW_CONTINUE};
	bool runs = known == -1 || (known == 1 && jumps), ok = runs && run_body(e, &l, &r);
	bool endless = known == 1 && !may(&r, l.around.leave) && !may(&r, FLOW_RETURN);
	if (endless)
		eval_error(e, E_ENDLESS_LOOP, s->value->loc);
	l.args.len = ncarried;
	if (ok)
		left_behind(e, &l, &r, &nexts);
	else
		append(e, &nexts, &l.args);
	struct value *going = r.taken[FLOW_CONTINUE];
	if (jumps)
		vec_push(e->arena, &nexts, going ? going : build_int(&e->b, i1, may(&r, FLOW_CONTINUE)));
	leave_block(e, outer);
	return endless ? gives_up() : close_while(e, &l, o, 0, &nexts, &r, known == 1);
}
