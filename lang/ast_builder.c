/* Construction of AST nodes, with the checks of the grammar's actions. */
#include "lang/ast_builder.h"

static u16 depth_of(const struct expr *e)
{
	return e ? e->depth : 0;
}

/* Sets the depth of a node. The depth is bounded, so later recursion over the tree is safe. A node that is nested too
 * deeply becomes a None without operands, after an error. */
static void set_depth(struct parser *p, struct expr *e, u32 child_depth)
{
	e->depth = (u16)(child_depth + 1);
	if (e->depth > AST_MAX_DEPTH) {
		diag(p->diags, E_NESTED_TOO_DEEP, e->loc);
		e->kind = EX_NONE;
		e->depth = 1;
	}
}

static struct expr *new_node(struct parser *p, enum expr_kind kind, struct loc loc, u32 child_depth)
{
	struct expr *e = arena_new(p->arena, struct expr);
	e->kind = kind;
	e->loc = loc;
	set_depth(p, e, child_depth);
	return e;
}

struct expr *ast_leaf(struct parser *p, enum expr_kind kind, struct loc loc)
{
	return new_node(p, kind, loc, 0);
}

struct expr *ast_name(struct parser *p, const char *name, struct loc loc)
{
	struct expr *e = ast_leaf(p, EX_NAME, loc);
	e->name = name;
	return e;
}

struct expr *ast_node(struct parser *p, enum expr_kind kind, struct expr *a, struct expr *b, struct expr *c,
		      struct loc loc)
{
	struct expr *e = new_node(p, kind, loc, MAX(depth_of(a), MAX(depth_of(b), depth_of(c))));
	if (e->kind == kind) {
		e->a = a;
		e->b = b;
		e->c = c;
	}
	return e;
}

struct expr *ast_unary(struct parser *p, enum operator op, struct expr *a, struct loc loc)
{
	struct expr *e = ast_node(p, EX_UNARY, a, NULL, NULL, loc);
	e->op = op;
	return e;
}

struct expr *ast_binary(struct parser *p, enum operator op, struct expr *a, struct expr *b, struct loc loc)
{
	struct expr *e = ast_node(p, EX_BINARY, a, b, NULL, loc);
	e->op = op;
	return e;
}

struct expr *ast_attribute(struct parser *p, struct expr *a, const char *name, struct loc loc)
{
	struct expr *e = ast_node(p, EX_ATTR, a, NULL, NULL, loc);
	e->name = name;
	return e;
}

struct expr *ast_named(struct parser *p, const char *name, struct loc name_loc, struct expr *value, struct loc loc)
{
	p->has_named_exprs = true;
	return ast_node(p, EX_NAMED, ast_name(p, name, name_loc), value, NULL, loc);
}

struct expr *ast_clause(struct parser *p, enum expr_kind kind, struct expr *a, struct expr *b, struct loc loc)
{
	if (kind == EX_FOR)
		check_target(p, a, false);
	return ast_node(p, kind, a, b, NULL, loc);
}

expr_vec *expr_list(struct parser *p, struct expr *first)
{
	expr_vec *v = arena_new(p->arena, expr_vec);
	vec_push(p->arena, v, first);
	return v;
}

static u32 deepest(const expr_vec *v)
{
	u32 depth = 0;
	for (u32 i = 0; v && i < v->len; i++)
		depth = MAX(depth, depth_of(v->at[i]));
	return depth;
}

struct expr *ast_sequence(struct parser *p, enum expr_kind kind, const expr_vec *rest, struct expr *first,
			  struct loc loc)
{
	struct expr *e = new_node(p, kind, loc, MAX(deepest(rest), depth_of(first)));
	expr_vec all = {0};
	if (first)
		vec_push(p->arena, &all, first);
	for (u32 i = 0; rest && i < rest->len; i++)
		vec_push(p->arena, &all, rest->at[i]);
	e->items = all.at;
	e->nitems = all.len;
	return e;
}

struct expr *ast_comprehension(struct parser *p, struct expr *element, struct expr *value, const expr_vec *clauses,
			       struct loc loc)
{
	u32 depth = MAX(deepest(clauses), MAX(depth_of(element), depth_of(value)));
	struct expr *e = new_node(p, EX_COMPREHENSION, loc, depth);
	if (e->kind != EX_COMPREHENSION)
		return e;
	e->a = element;
	e->b = value;
	e->items = clauses->at;
	e->nitems = clauses->len;
	return e;
}

struct expr *ast_compare(struct parser *p, enum operator op, struct expr *a, struct expr *b, struct loc loc)
{
	struct expr *e = ast_sequence(p, EX_COMPARE, expr_list(p, b), a, loc);
	e->ops = arena_array(p->arena, enum operator, e->nitems);
	e->ops[0] = op;
	return e;
}

struct expr *ast_extend_compare(struct parser *p, struct expr *chain, enum operator op, struct expr *b, struct loc loc)
{
	if (chain->kind != EX_COMPARE) /* nested too deeply, which has been reported */
		return chain;
	u32 n = chain->nitems;
	if (is_pow2(n)) { /* both arrays are full */
		struct expr **items = arena_array(p->arena, struct expr *, 2 * n);
		enum operator *ops = arena_array(p->arena, enum operator, 2 * n);
		chain->items = memcpy(items, chain->items, n * sizeof *items);
		chain->ops = memcpy(ops, chain->ops, (n - 1) * sizeof *ops);
	}
	chain->items[n] = b;
	chain->ops[n - 1] = op;
	chain->nitems = n + 1;
	chain->loc = loc;
	set_depth(p, chain, MAX(chain->depth - 1u, depth_of(b)));
	return chain;
}

void warn_of_bits_in_chain(struct parser *p, const struct expr *chain)
{
	for (u32 i = 0; chain->kind == EX_COMPARE && chain->nitems > 2 && i < chain->nitems; i++) {
		const struct expr *x = chain->items[i];
		if (x->kind == EX_BINARY && !x->in_parentheses && (x->op == OP_BITAND || x->op == OP_BITOR)) {
			diag(p->diags, W_BITS_IN_CHAIN, x->loc, operator_text(x->op));
			diag_hint(p->diags, "write (a < b) %s (c < d)", operator_text(x->op));
			return;
		}
	}
}

struct expr *ast_call(struct parser *p, struct expr *f, const struct call_args *args, struct loc loc)
{
	u32 depth = MAX(depth_of(f), deepest(&args->items));
	for (u32 i = 0; i < args->keywords.len; i++)
		depth = MAX(depth, depth_of(args->keywords.at[i].value));
	struct expr *e = new_node(p, EX_CALL, loc, depth);
	if (e->kind != EX_CALL)
		return e;
	e->a = f;
	e->items = args->items.at;
	e->nitems = args->items.len;
	e->keywords = args->keywords.at;
	e->nkeywords = args->keywords.len;
	return e;
}

void add_argument(struct parser *p, struct call_args *args, const char *name, struct expr *value, struct loc loc)
{
	if (name) {
		for (u32 i = 0; i < args->keywords.len; i++)
			if (args->keywords.at[i].name == name)
				diag(p->diags, E_REPEATED_ARG, loc, name);
		vec_push(p->arena, &args->keywords, ((struct keyword){name, value, loc}));
	} else {
		if (args->keywords.len && value->kind != EX_STAR)
			diag(p->diags, E_POSITIONAL_AFTER_KEYWORD, loc);
		vec_push(p->arena, &args->items, value);
	}
}

void add_keywords(struct parser *p, struct call_args *args, struct expr *value, struct loc loc)
{
	vec_push(p->arena, &args->keywords, ((struct keyword){NULL, value, loc}));
}

static void push_parts(struct parser *p, expr_vec *parts, struct expr *e)
{
	for (u32 i = 0; i < e->nitems; i++)
		vec_push(p->arena, parts, e->items[i]);
	if (!e->nitems)
		vec_push(p->arena, parts, e);
}

struct expr *ast_join_strings(struct parser *p, struct expr *a, struct expr *b)
{
	struct loc loc = loc_join(a->loc, b->loc);
	if (a->kind == EX_FSTR || b->kind == EX_FSTR) {
		expr_vec parts = {0};
		push_parts(p, &parts, a);
		push_parts(p, &parts, b);
		return ast_sequence(p, EX_FSTR, &parts, NULL, loc);
	}
	struct expr *e = ast_leaf(p, EX_STR, loc);
	char *text = arena_alloc(p->arena, (size_t)a->text_len + b->text_len + 1);
	memcpy(text, a->text, a->text_len);
	memcpy(text + a->text_len, b->text, b->text_len);
	text[a->text_len + b->text_len] = 0;
	e->text = text;
	e->text_len = a->text_len + b->text_len;
	return e;
}

struct stmt *ast_stmt(struct parser *p, enum stmt_kind kind, struct loc loc)
{
	struct stmt *s = arena_new(p->arena, struct stmt);
	s->kind = kind;
	s->loc = loc;
	return s;
}

struct stmt *ast_unsupported_stmt(struct parser *p, const char *what, struct loc loc)
{
	struct stmt *s = ast_stmt(p, ST_UNSUPPORTED, loc);
	s->name = what;
	return s;
}

struct expr *ast_lambda(struct parser *p, const param_vec *params, struct expr *body, struct loc loc)
{
	struct expr *e = new_node(p, EX_LAMBDA, loc, depth_of(body));
	struct stmt *result = ast_stmt(p, ST_RETURN, body->loc);
	result->value = body;
	e->func = arena_new(p->arena, struct func);
	*e->func = (struct func){.kind = FUNC_CONSTEXPR,
				 .name = "a lambda",
				 .loc = loc,
				 .params = params->at,
				 .nparams = params->len,
				 .body = single_body(p, result),
				 .module = p->module,
				 .host = true};
	return e;
}

struct stmt *ast_import(struct parser *p, struct expr *base, struct expr *what, const char *alias, struct loc loc)
{
	struct stmt *s = ast_unsupported_stmt(p, "import", loc);
	s->value = base ? base : what;
	s->message = base ? what : NULL;
	s->target = alias ? ast_name(p, alias, loc) : NULL;
	return s;
}

void check_target(struct parser *p, const struct expr *e, bool augmented)
{
	switch (e->kind) {
	case EX_NAME: return;
	case EX_TUPLE:
	case EX_LIST:
		if (augmented)
			break;
		for (u32 i = 0; i < e->nitems; i++)
			check_target(p, e->items[i], false);
		return;
	case EX_SUBSCRIPT:
	case EX_ATTR: return;
	default: break;
	}
	diag(p->diags, E_ASSIGN_TARGET, e->loc);
}

struct stmt *ast_annotated(struct parser *p, struct expr *target, struct expr *type, struct expr *value, struct loc loc)
{
	if (target->kind != EX_SUBSCRIPT && target->kind != EX_ATTR && target->kind != EX_NAME)
		diag(p->diags, E_ASSIGN_TARGET, target->loc);
	struct stmt *s = ast_stmt(p, ST_ANN, loc);
	s->target = target;
	s->annotation = type;
	s->value = value;
	return s;
}

struct stmt *ast_line(struct parser *p, const stmt_vec *list)
{
	if (list->len == 1)
		return list->at[0];
	struct stmt *s = ast_stmt(p, ST_IF, list->at[0]->loc); /* an `if True:` without the test */
	s->arms = arena_new(p->arena, struct arm);
	s->narms = 1;
	s->arms[0].body = (struct body){list->at, list->len};
	return s;
}

struct body single_body(struct parser *p, struct stmt *s)
{
	struct stmt **at = arena_new(p->arena, struct stmt *);
	*at = s;
	return (struct body){at, 1};
}

void finish_if(struct parser *p, struct stmt *s, struct arm first, const arm_vec *more, struct body otherwise)
{
	arm_vec all = {0};
	vec_push(p->arena, &all, first);
	for (u32 i = 0; i < more->len; i++)
		vec_push(p->arena, &all, more->at[i]);
	if (otherwise.len)
		vec_push(p->arena, &all, ((struct arm){NULL, otherwise}));
	s->arms = all.at;
	s->narms = all.len;
}

param_vec *add_parameter(struct parser *p, param_vec *list, struct param q)
{
	if (q.name)
		vec_push(p->arena, list, q);
	return list;
}

struct func *new_function(struct parser *p, const char *name, struct loc loc, param_vec *params, struct body body)
{
	struct func *f = arena_new(p->arena, struct func);
	*f = (struct func){.name = name,
			   .loc = loc,
			   .params = params->at,
			   .nparams = params->len,
			   .body = body,
			   .has_named_exprs = p->has_named_exprs,
			   .module = p->module,
			   .host = p->function_only};
	p->has_named_exprs = false;
	for (u32 i = 0; i < f->nparams; i++)
		for (u32 j = 0; j < i; j++)
			if (f->params[i].name == f->params[j].name && strcmp(f->params[i].name, "..."))
				diag(p->diags, E_REPEATED_PARAM, f->params[i].loc, f->params[i].name);
	if (body.len && body.at[0]->kind == ST_EXPR && body.at[0]->value->kind == EX_STR) {
		f->doc = body.at[0]->value->text;
		f->body.at++;
		f->body.len--;
	}
	return f;
}

/* Errors in a function concern the kernels that call it. They are dropped here, and reported again if the function is
 * used. */
static void set_broken_aside(struct parser *p, struct func *f)
{
	struct def_start *s = NULL;
	for (u32 i = 0; i < p->starts.len && p->starts.at[i].line <= f->loc.line; i++)
		s = &p->starts.at[i];
	if (!s || p->diags->nerrors == s->before.errors)
		return;
	f->broken = true;
	f->start = s->at;
	f->body.len = 0;
	diags_rewind(p->diags, s->before);
	p->diags->full = false;
	/* tokens that were read ahead */
	for (struct def_start *next = s + 1; next < p->starts.at + p->starts.len; next++)
		next->before = s->before;
}

void add_function(struct parser *p, enum func_kind kind, const struct branch *branch, const char *name,
		  struct loc loc, param_vec *params, struct body body)
{
	struct func *f = new_function(p, name, loc, params, body);
	f->kind = kind;
	for (u32 i = 0; i < f->nparams && !p->function_only && kind == FUNC_JIT; i++)
		if (f->params[i].rest)
			diag(p->diags, E_STAR_PARAM, f->params[i].loc, "**", f->params[i].name);
	if (p->function_only) {
		p->function = f;
		return;
	}
	set_broken_aside(p, f);
	f->decorators = arena_dup(p->arena, p->decorators.at, p->decorators.len * sizeof *f->decorators);
	f->ndecorators = p->decorators.len;
	f->jit = p->jit;
	p->decorators.len = 0;
	const struct func *earlier = map_get(&p->module->by_name, name); /* the last function of a name applies */
	u32 at = 0;
	while (at < p->module->funcs.len && p->module->funcs.at[at] != earlier)
		at++;
	if (at < p->module->funcs.len)
		p->module->funcs.at[at] = f;
	else
		vec_push(p->arena, &p->module->funcs, f);
	map_put(&p->module->by_name, name, f);
	struct definition *d = arena_new(p->arena, struct definition);
	*d = (struct definition){.kind = DEF_JIT, .name = name, .loc = loc, .func = f, .branch = branch,
				 .before = map_get(&p->module->definitions, name)};
	map_put(&p->module->definitions, name, d);
}

/* --- classes ------------------------------------------------------------------------------------------------- */

void add_class_statement(struct parser *p, const struct stmt *s)
{
	struct class_def *c = p->class;
	if (s->kind == ST_ANN && s->target->kind == EX_NAME)
		vec_push(p->arena, &c->fields, ((struct field){s->target->name, s->loc, s->annotation, s->value}));
	else if (s->kind == ST_ASSIGN && s->ntargets == 1 && s->targets[0]->kind == EX_NAME)
		vec_push(p->arena, &c->fields, ((struct field){s->targets[0]->name, s->loc, NULL, s->value}));
	else if (s->kind != ST_PASS && s->kind != ST_EXPR)
		diag(p->diags, E_CLASS_STATEMENT, s->loc, c->name);
}

void add_method(struct parser *p, struct func *f, const expr_vec *decorators)
{
	static const struct {
		const char *name;
		enum method_kind kind;
	} known[] = {{"staticmethod", METHOD_STATIC}, {"classmethod", METHOD_OF_CLASS}, {"property", METHOD_PROPERTY}};
	struct method m = {METHOD, f};
	f->kind = FUNC_CONSTEXPR;
	for (u32 i = 0; i < decorators->len; i++) {
		const struct expr *x = decorators->at[i];
		const struct expr *decorator = x;
		x = x->kind == EX_CALL ? x->a : x;
		const char *name = x->kind == EX_NAME || x->kind == EX_ATTR ? x->name : "";
		for (u32 k = 0; k < ARRAY_LEN(known); k++)
			m.kind = strcmp(known[k].name, name) ? m.kind : known[k].kind;
		if (!strcmp(name, "jit"))
			f->kind = FUNC_JIT;
		if (!strcmp(name, "must_use_result"))
			f->must_use = decorator;
	}
	f->is_init = m.kind == METHOD && !strcmp(f->name, "__init__") && f->nparams;
	vec_push(p->arena, &p->class->methods, m);
}

struct stmt *nest_with(struct parser *p, const stmt_vec *items, struct body body)
{
	for (u32 i = items->len; i-- > 0;) {
		items->at[i]->body = body;
		body = single_body(p, items->at[i]);
	}
	return items->at[0];
}
