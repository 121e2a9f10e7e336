/* Statements, variables, and the evaluation of a whole kernel. */
#include "frontend/control_flow.h"

struct loc user_loc(const struct eval *e, struct loc at)
{
	const struct frame *f = e->frame;
	while (f && f->func->module->is_library && f->caller) {
		at = f->call;
		f = f->caller;
	}
	return at;
}

bool step(struct eval *e, struct loc at)
{
	if (e->stopped || e->diags->full || e->diags->nerrors > MAX_REPEATED_ERRORS)
		return false;
	if (++e->steps > MAX_STEPS || e->b.count > MAX_OPS) {
		bool endless = e->b.count <= MAX_OPS && e->frame->func->kind == FUNC_CONSTEXPR;
		if (endless)
			eval_error(e, E_ENDLESS, at, e->frame->func->name, MAX_STEPS / 1000000);
		else
			eval_error(e, E_TOO_LARGE, at);
		e->stopped = true;
		return false;
	}
	e->b.loc = user_loc(e, at);
	return true;
}

/* True if an inner frame of a recursion has the same call site as f, so that the note has already been printed. */
static bool said_before(const struct frame *inner, const struct frame *f)
{
	for (; inner != f; inner = inner->caller)
		if (loc_equals(inner->call, f->call))
			return true;
	return false;
}

/* Prints "called from here" notes, innermost first, without the frames of the standard library. */
static void backtrace(void *arg, struct diags *d)
{
	const struct eval *e = arg;
	for (const struct frame *f = e->frame; f && f->caller; f = f->caller)
		if (!f->func->module->is_library && f->call.file && !said_before(e->frame, f))
			diag(d, N_CALLED_FROM, user_loc(&(struct eval){.frame = f->caller}, f->call),
			     f->func->name);
}

/* --- variables ----------------------------------------------------------------------------------------------- */

struct binding *find_var(struct frame *f, const char *name)
{
	for (u32 i = f->vars.len; i-- > 0;)
		if (f->vars.at[i].name == name)
			return &f->vars.at[i];
	return NULL;
}

void set_var(struct eval *e, const char *name, struct val v)
{
	struct binding *b = find_var(e->frame, name);
	if (v.kind == V_TENSOR && !v.ssa->name && v.ssa->def && v.ssa->def->code != IR_CONSTANT)
		v.ssa->name = name;
	if (b) {
		b->val = v;
		b->region = e->region;
	} else {
		vec_push(e->arena, &e->frame->vars,
			 ((struct binding){.name = name, .val = v, .region = e->region}));
	}
	mark_value(e, name, &v);
}

static bool has_number(const struct val *v)
{
	bool found = val_is_number(v);
	for (u32 i = 0; v->kind == V_TUPLE && i < v->nitems && !found; i++)
		found = has_number(&v->items[i]);
	return found;
}

/* Converts numbers to run-time values. Functions that run at compile time keep numbers. */
static struct val numbers_to_tensors(struct eval *e, struct val v, struct loc at)
{
	if (e->frame->func->kind == FUNC_CONSTEXPR || !has_number(&v))
		return v;
	if (val_is_number(&v))
		return to_tensor(e, v, at);
	struct val *items = arena_array(e->arena, struct val, v.nitems);
	for (u32 i = 0; i < v.nitems; i++)
		items[i] = numbers_to_tensors(e, v.items[i], at);
	v.items = items;
	v.log_room = 0;
	return v;
}

static void assign_name(struct eval *e, const char *name, struct val v, struct loc at)
{
	struct binding *b = find_var(e->frame, name);
	bool keep = b && b->declared;
	if (b) {
		b->constant = keep;
		b->declared = false;
	}
	set_var(e, name, keep ? v : numbers_to_tensors(e, v, at));
}

static void unpack_error(struct eval *e, const struct expr *target, u32 nvalues)
{
	eval_error(e, E_UNPACK_COUNT, target->loc, target->nitems, PLURAL(target->nitems), nvalues, PLURAL(nvalues));
	if (!nvalues)
		diag_hint(e->diags, "a pointer has no shape: pass the sizes of its tensor as separate parameters");
}

void assign(struct eval *e, const struct expr *target, struct val v, struct loc at)
{
	if (!keep_value(e, &v, at))
		return;
	if (target->kind == EX_NAME) {
		assign_name(e, target->name, v, at);
		return;
	}
	if (target->kind == EX_ATTR) {
		assign_field(e, target, v);
		return;
	}
	if (target->kind == EX_SUBSCRIPT)
		assign_item(e, target, v);
	else if (target->kind != EX_TUPLE && target->kind != EX_LIST)
		eval_error(e, E_ASSIGN_TARGET, target->loc);
	if (target->kind != EX_TUPLE && target->kind != EX_LIST)
		return;
	bool fits = v.kind == V_TUPLE && v.nitems == target->nitems;
	if (!fits && v.kind != V_ERROR) {
		if (v.kind == V_TUPLE)
			unpack_error(e, target, v.nitems);
		else
			eval_error(e, E_UNPACK, target->loc, target->nitems, PLURAL(target->nitems), describe(e, &v));
	}
	for (u32 i = 0; i < target->nitems; i++)
		assign(e, target->items[i], fits ? v.items[i] : val_error(), at);
}

/* v, and the items of a tuple v, marked as shared with other variables. */
static struct val shared_parts(struct eval *e, struct val v)
{
	struct val *items = v.kind == V_TUPLE ? arena_dup(e->arena, v.items, v.nitems * sizeof *items) : NULL;
	for (u32 i = 0; items && i < v.nitems; i++)
		items[i] = part_of(items[i]);
	v.items = items ? items : v.items;
	return part_of(v);
}

/* x = y = …: all targets get the same run-time value. */
static void assign_all(struct eval *e, const struct stmt *s, struct val v)
{
	bool several = s->ntargets > 1;
	v = several ? numbers_to_tensors(e, v, s->value->loc) : v;
	if (several || (s->value->kind != EX_TUPLE && v.kind == V_TUPLE && s->targets[0]->kind != EX_NAME))
		v = shared_parts(e, v);
	for (u32 i = 0; i < s->ntargets; i++)
		assign(e, s->targets[i], v, s->value->loc);
}

/* --- statements ---------------------------------------------------------------------------------------------- */

bool is_constexpr_annotation(const struct expr *x)
{
	if (x->kind == EX_STR)
		return x->text_len >= 9 && !strcmp(x->text + x->text_len - 9, "constexpr");
	return (x->kind == EX_ATTR || x->kind == EX_NAME) && !strcmp(x->name, "constexpr");
}

struct val eval_in_module(struct eval *e, const struct func *f, const struct expr *x)
{
	struct frame *inner = e->frame;
	struct frame outside = {.caller = inner->caller, .call = inner->call, .func = f, .depth = inner->depth};
	e->frame = &outside;
	struct val v = eval_expr(e, x);
	e->frame = inner;
	return v;
}

/* A declaration without a value: `x: tl.constexpr`. */
static void declare(struct eval *e, const char *name)
{
	if (!find_var(e->frame, name))
		set_var(e, name, (struct val){.kind = V_UNSET, .reason = "it is declared, and has no value yet"});
	find_var(e->frame, name)->declared = true;
}

static void exec_annotated(struct eval *e, const struct stmt *s)
{
	const char *name = s->target->name;
	bool constant = is_constexpr_annotation(s->annotation);
	if (!s->value) {
		if (constant && s->target->kind == EX_NAME)
			declare(e, name);
		return;
	}
	struct val v = s->target->kind == EX_SUBSCRIPT ? val_error() : eval_expr(e, s->value);
	if (s->target->kind != EX_NAME) {
		assign(e, s->target, v, s->value->loc);
		return;
	}
	if (!constant) {
		assign(e, s->target, v, s->value->loc);
		return;
	}
	if (find_var(e->frame, name) && !e->frame->func->module->is_library)
		diag(e->diags, E_CONSTEXPR_REDEFINED, user_loc(e, s->loc), name);
	if (!keep_value(e, &v, s->value->loc))
		return;
	set_var(e, name, v);
	find_var(e->frame, name)->constant = true;
}

static void exec_assert(struct eval *e, const struct stmt *s)
{
	struct val v = eval_expr(e, s->value), message = s->message ? eval_expr(e, s->message) : val_str("", 0);
	struct value *cond;
	if (v.kind == V_TENSOR) {
		struct val args[] = {v, message};
		call_std(e, "device_assert", args, 2);
	} else if (truth(e, v, s->value->loc, &cond) == 0) {
		eval_error(e, E_STATIC_ASSERT, s->loc,
			   message.kind == V_STR && message.len ? message.text : source_text(e, s->value->loc));
	}
}

static void exec_raise(struct eval *e, const struct stmt *s)
{
	struct strbuf sb = sb_empty(e->arena);
	const struct expr *x = s->value;
	if (x && x->kind == EX_CALL && x->nitems && (x->items[0]->kind == EX_STR || x->items[0]->kind == EX_FSTR)) {
		struct val v = eval_expr(e, x->items[0]);
		print_val(&sb, &v);
	} else if (x) {
		ast_print_expr(x, &sb);
	}
	e->raised++;
	eval_error(e, E_RAISED, s->loc, sb.at);
}

struct val unsupported_syntax(struct eval *e, const char *what, struct loc at)
{
	static const struct {
		const char *what, *instead;
	} hints[] = {
		{"import", "import at the top of the file"},
		{"a nested def", "move it to the top level of the file, under its own @triton.jit"},
		{"class", "kernels use functions, tuples and tiles"},
		{"try", "kernels do not raise exceptions; check with tl.static_assert or tl.device_assert"},
		{"except", "kernels do not raise exceptions; check with tl.static_assert or tl.device_assert"},
		{"finally", "kernels do not raise exceptions; check with tl.static_assert or tl.device_assert"},
		{"del", "leave it out: variables need not be deleted"},
		{"global", "pass the value as a parameter, and store results with tl.store"},
		{"nonlocal", "pass the value as a parameter, and store results with tl.store"},
		{"yield", "return a tuple, or store results with tl.store"},
		{"lambda", "write a function under @triton.jit"},
		{"a comprehension", "write a list of values, or a loop over tl.static_range"},
	};
	eval_error(e, E_UNSUPPORTED_SYNTAX, at, what);
	for (u32 i = 0; i < ARRAY_LEN(hints); i++)
		if (!strcmp(hints[i].what, what))
			diag_hint(e->diags, "%s", hints[i].instead);
	return val_error();
}

/* True for a call of host Python made for a side effect (a print, a breakpoint). It has no meaning in a compiled
 * kernel. */
static bool is_host_call(struct eval *e, const struct expr *x)
{
	if (e->frame->func->host) {
		const struct expr *f = x->kind == EX_CALL ? x->a : NULL;
		while (f && f->kind == EX_ATTR)
			f = f->a;
		const struct binding *b = f && f->kind == EX_NAME ? find_var(e->frame, f->name) : NULL;
		return f && f->kind == EX_NAME && (!b || b->val.kind == V_HOST);
	}
	if (x->kind != EX_CALL || x->a->kind != EX_NAME || find_var(e->frame, x->a->name))
		return false;
	const struct definition *d = map_get(&e->frame->func->module->definitions, x->a->name);
	return d && d->kind == DEF_HOST;
}

/* Evaluates the statements of a `with` as if there were no `with`. */
static struct outcome exec_with(struct eval *e, const struct stmt *s, const struct cont *rest)
{
	struct val v = eval_expr(e, s->value);
	if (v.kind != V_CONTEXT && v.kind != V_ERROR)
		v = eval_error(e, E_WITH, s->value->loc, describe(e, &v));
	if (s->target)
		assign(e, s->target, v, s->loc);
	return exec_body(e, &s->body, 0, rest);
}

/* Evaluates an expression used as a statement. */
static void exec_expr(struct eval *e, const struct expr *x)
{
	const struct op *before = e->b.block->last;
	u32 errors = e->diags->nerrors;
	struct val v;
	if (is_host_call(e, x)) {
		if (!e->frame->func->host)
			diag(e->diags, W_HOST_CALL, user_loc(e, x->loc), x->a->name);
	} else if (x->kind == EX_IFEXP) {
		eval_ternary(e, x, false);
	} else if (x->kind == EX_CALL && change_list(e, x, &v)) {
		return;
	} else {
		v = eval_expr(e, x);
		if (e->diags->nerrors == errors && x->kind == EX_CALL && is_name_path(x->a))
			check_must_use(e, x);
		if (e->diags->nerrors == errors)
			warn_of_unused(e, x, &v, before);
	}
}

static struct outcome exec_stmt(struct eval *e, const struct stmt *s, const struct cont *rest)
{
	switch (s->kind) {
	case ST_EXPR: exec_expr(e, s->value); break;
	case ST_ASSIGN: assign_all(e, s, eval_expr(e, s->value)); break;
	case ST_AUG: {
		struct expr sum = {.kind = EX_BINARY, .op = s->op, .loc = s->loc, .a = s->target, .b = s->value};
		const struct binding *b = s->target->kind == EX_NAME ? find_var(e->frame, s->target->name) : NULL;
		if (b && b->val.kind == V_TUPLE && b->val.list) {
			extend_list(e, s);
			break;
		}
		if (s->target->kind != EX_SUBSCRIPT || e->frame->func->kind == FUNC_CONSTEXPR)
			assign(e, s->target, eval_expr(e, &sum), s->loc);
		else
			assign(e, s->target, val_error(), s->loc);
		break;
	}
	case ST_ANN: exec_annotated(e, s); break;
	case ST_IF: return exec_if(e, s, 0, rest);
	case ST_FOR: return exec_for(e, s, rest);
	case ST_WHILE: return exec_while(e, s);
	case ST_ASSERT: exec_assert(e, s); break;
	case ST_PASS: break;
	case ST_WITH: return exec_with(e, s, rest);
	case ST_RAISE: exec_raise(e, s); break;
	case ST_BREAK:
	case ST_CONTINUE:
	case ST_RETURN: return exec_jump(e, s);
	case ST_UNSUPPORTED: unsupported_syntax(e, s->name, s->loc); break;
	}
	return goes_on();
}

struct outcome exec_body(struct eval *e, const struct body *body, u32 from, const struct cont *outer)
{
	for (u32 i = from; i < body->len; i++) {
		struct cont rest = {.body = body, .at = i + 1, .outer = outer};
		if (!step(e, body->at[i]->loc))
			return gives_up();
		mark_line(e, body->at[i]->loc);
		struct outcome r = goes_on();
		if (body->at[i]->kind == ST_UNSUPPORTED && e->frame->func->host)
			i = exec_host_stmt(e, body, i, &r);
		else
			r = exec_stmt(e, body->at[i], &rest);
		rest.at = i + 1;
		if (r.rest_done || !(r.ways & 1u << FLOW_NEXT))
			return r;
		if (r.ways != 1u << FLOW_NEXT)
			return continue_with(e, r, &rest);
	}
	return goes_on();
}

/* --- kernels ------------------------------------------------------------------------------------------------- */

static void note_effect(struct op *o, void *arg)
{
	bool *found = arg;
	*found |= op_has(o, WRITE) && o->code != IR_ASSUME && o->code != IR_BARRIER && !op_is_debug(o);
}

static void warn_of_no_effect(struct eval *e)
{
	bool found = false;
	walk(e->kernel->body, note_effect, &found);
	if (!found)
		diag(e->diags, W_WRITES_NOTHING, e->kernel->loc, e->kernel->name);
}

/* A hint whose result is unused is a hint about the operand itself. Later uses of the operand are replaced by the
 * result of the hint. */
static void spread_promise(struct op *o, void *arg)
{
	(void)arg;
	if (o->code != IR_BITCAST || !o->hints || !value_unused(result(o)))
		return;
	for (struct use *u = operand(o, 0)->uses, *next; u; u = next) {
		next = u->next;
		if (u->user != o && !op_has(u->user, END) && comes_behind(u->user, o))
			op_set_operand(u->user, (u32)(u - u->user->operands), result(o));
	}
}

struct eval eval_new(struct ir_context *ctx, const struct eval_request *req)
{
	struct map empty = {.arena = ctx->arena};
	return (struct eval){.ctx = ctx, .arena = ctx->arena, .diags = ctx->diags, .module = req->module,
			     .std = req->std, .remarks = req->remarks, .debug = req->debug, .lines = req->lines,
			     .num_warps = req->num_warps, .calls = req->calls, .globals = empty, .branches_run = empty,
			     .imports = req->imports, .library = empty, .host_functions = empty,
			     .capability = req->capability, .used_behind = empty, .fstrings = empty};
}

struct kernel *eval_kernel(struct ir_context *ctx, const struct eval_request *req)
{
	struct eval e = eval_new(ctx, req);
	u32 errors = ctx->diags->nerrors;
	if (req->func->broken) {
		report_broken(ctx->arena, ctx->names, ctx->diags, req->func);
		return NULL;
	}
	e.kernel = kernel_new(ctx, req->func->name);
	e.kernel->loc = req->func->loc;
	e.b = builder_at_end(ctx, e.kernel->body);
	struct frame f = {.func = req->func};
	e.frame = &f;
	ctx->diags->backtrace = backtrace;
	ctx->diags->backtrace_arg = &e;
	check_unspecialized(&e, req->func);
	bind_params(&e, req);
	if (ctx->diags->nerrors == errors)
		exec_function(&e, &req->func->body);
	ctx->diags->backtrace = NULL;
	e.b = builder_at_end(ctx, e.kernel->body);
	e.b.loc = req->func->loc;
	build(&e.b, IR_RETURN, NULL, 0, NULL, 0, 0);
	if (ctx->diags->nerrors != errors)
		return NULL;
	warn_of_no_effect(&e);
	walk(e.kernel->body, spread_promise, NULL);
	return e.kernel;
}
