/* The grammar's actions: small functions that make AST nodes. Included by parser.y alone. */

static u16 depth_of(const struct expr *e)
{
	return e ? e->depth : 0;
}

/* Every node is made here, so nesting is bounded in one place and later recursion over the tree is safe. */
static struct expr *new_node(struct parser *p, enum expr_kind kind, struct loc loc, u32 child_depth)
{
	struct expr *e = arena_new(p->arena, struct expr);
	e->kind = kind;
	e->loc = loc;
	e->depth = (u16)(child_depth + 1);
	if (e->depth > AST_MAX_DEPTH) {
		diag(p->diags, E_NESTED_TOO_DEEP, loc);
		e->kind = EX_NONE;
		e->depth = 1;
	}
	return e;
}

static struct expr *new_expr(struct parser *p, enum expr_kind kind, struct loc loc)
{
	return new_node(p, kind, loc, 0);
}

static struct expr *name_expr(struct parser *p, const char *name, struct loc loc)
{
	struct expr *e = new_expr(p, EX_NAME, loc);
	e->name = name;
	return e;
}

/* A node with up to three children; `kind` survives only if it is not nested too deeply. */
static struct expr *node3(struct parser *p, enum expr_kind kind, struct loc loc, struct expr *a, struct expr *b,
			  struct expr *c)
{
	struct expr *e = new_node(p, kind, loc, MAX(depth_of(a), MAX(depth_of(b), depth_of(c))));
	if (e->kind == kind) {
		e->a = a;
		e->b = b;
		e->c = c;
	}
	return e;
}

static struct expr *unary(struct parser *p, enum operator op, struct expr *a, struct loc loc)
{
	struct expr *e = node3(p, EX_UNARY, loc, a, NULL, NULL);
	e->op = op;
	return e;
}

static struct expr *binary(struct parser *p, enum operator op, struct expr *a, struct expr *b, struct loc loc)
{
	struct expr *e = node3(p, EX_BINARY, loc, a, b, NULL);
	e->op = op;
	return e;
}

static struct expr *ternary(struct parser *p, struct expr *cond, struct expr *yes, struct expr *no, struct loc loc)
{
	return node3(p, EX_IFEXP, loc, yes, cond, no);
}

static struct expr *attribute(struct parser *p, struct expr *a, const char *name, struct loc loc)
{
	struct expr *e = node3(p, EX_ATTR, loc, a, NULL, NULL);
	e->name = name;
	return e;
}

static struct expr *subscript(struct parser *p, struct expr *a, struct expr *index, struct loc loc)
{
	return node3(p, EX_SUBSCRIPT, loc, a, index, NULL);
}

static struct expr *slice(struct parser *p, struct expr *a, struct expr *b, struct expr *c, struct loc loc)
{
	return node3(p, EX_SLICE, loc, a, b, c);
}

static struct expr *star(struct parser *p, struct expr *a, struct loc loc)
{
	return node3(p, EX_STAR, loc, a, NULL, NULL);
}

static expr_vec *exprs(struct parser *p, struct expr *first)
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

/* A tuple or list of `first` (if any) and then `rest` (if any). */
static struct expr *list_expr(struct parser *p, enum expr_kind kind, const expr_vec *rest, struct expr *first,
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

static struct expr *bool_expr(struct parser *p, enum expr_kind kind, const expr_vec *items, struct loc loc)
{
	return list_expr(p, kind, items, NULL, loc);
}

static struct expr *compare(struct parser *p, enum operator op, struct expr *a, struct expr *b, struct loc loc)
{
	struct expr *e = list_expr(p, EX_COMPARE, exprs(p, b), a, loc);
	e->ops = arena_array(p->arena, enum operator, 1);
	e->ops[0] = op;
	return e;
}

/* `a < b < c`, of `a < b`: one comparison of three operands, as Python reads it. */
static struct expr *extend_comparison(struct parser *p, struct expr *chain, enum operator op, struct expr *b,
				      struct loc loc)
{
	if (chain->kind != EX_COMPARE) /* nested too deeply: reported */
		return chain;
	u32 n = chain->nitems - 1;
	expr_vec items = {.at = chain->items + 1, .len = n, .cap = n};
	enum operator *ops = arena_array(p->arena, enum operator, n + 1);
	vec_push(p->arena, &items, b);
	memcpy(ops, chain->ops, n * sizeof *ops);
	ops[n] = op;
	struct expr *e = list_expr(p, EX_COMPARE, &items, chain->items[0], loc);
	e->ops = ops;
	return e;
}

/* `m < M & n < N` compares m < (M & n) and (M & n) < N: Python's meaning, and seldom what the author had in mind. */
static void warn_of_bits_in_chain(struct parser *p, const struct expr *chain)
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

static struct expr *call(struct parser *p, struct expr *f, const struct call_args *args, struct loc loc)
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

static void add_argument(struct parser *p, struct call_args *args, const char *name, struct expr *value, struct loc loc)
{
	if (name) {
		for (u32 i = 0; i < args->keywords.len; i++)
			if (args->keywords.at[i].name == name)
				diag(p->diags, E_REPEATED_ARG, loc, name);
		vec_push(p->arena, &args->keywords, ((struct keyword){name, value, loc}));
	} else {
		if (args->keywords.len)
			diag(p->diags, E_POSITIONAL_AFTER_KEYWORD, loc);
		vec_push(p->arena, &args->items, value);
	}
}

static void push_parts(struct parser *p, expr_vec *parts, struct expr *e)
{
	for (u32 i = 0; i < e->nitems; i++)
		vec_push(p->arena, parts, e->items[i]);
	if (!e->nitems)
		vec_push(p->arena, parts, e);
}

/* Strings side by side are one; an f-string among them keeps its own text, which is evaluated later. */
static struct expr *join_strings(struct parser *p, struct expr *a, struct expr *b)
{
	struct loc loc = loc_join(a->loc, b->loc);
	if (a->kind == EX_FSTR || b->kind == EX_FSTR) {
		expr_vec parts = {0};
		push_parts(p, &parts, a);
		push_parts(p, &parts, b);
		return list_expr(p, EX_FSTR, &parts, NULL, loc);
	}
	struct expr *e = new_expr(p, EX_STR, loc);
	char *text = arena_alloc(p->arena, (size_t)a->text_len + b->text_len + 1);
	memcpy(text, a->text, a->text_len);
	memcpy(text + a->text_len, b->text, b->text_len);
	text[a->text_len + b->text_len] = 0;
	e->text = text;
	e->text_len = a->text_len + b->text_len;
	return e;
}

static struct stmt *new_stmt(struct parser *p, enum stmt_kind kind, struct loc loc)
{
	struct stmt *s = arena_new(p->arena, struct stmt);
	s->kind = kind;
	s->loc = loc;
	return s;
}

static struct stmt *unsupported(struct parser *p, const char *what, struct loc loc)
{
	struct stmt *s = new_stmt(p, ST_UNSUPPORTED, loc);
	s->name = what;
	return s;
}

static struct expr *unsupported_expr(struct parser *p, const char *what, struct loc loc)
{
	struct expr *e = new_expr(p, EX_UNSUPPORTED, loc);
	e->name = what;
	return e;
}

/* An element or an attribute is a target in Python: that a kernel cannot assign to it is said if it is reached. */
static void check_target(struct parser *p, const struct expr *e, bool augmented)
{
	switch (e->kind) {
	case EX_NAME:
		return;
	case EX_TUPLE:
	case EX_LIST:
		if (augmented)
			break;
		for (u32 i = 0; i < e->nitems; i++)
			check_target(p, e->items[i], false);
		return;
	case EX_SUBSCRIPT:
	case EX_ATTR: return;
	default:
		break;
	}
	diag(p->diags, E_ASSIGN_TARGET, e->loc);
}

static struct stmt *annotated(struct parser *p, struct expr *target, struct expr *type, struct expr *value,
			      struct loc loc)
{
	if (target->kind != EX_SUBSCRIPT && target->kind != EX_ATTR && target->kind != EX_NAME)
		diag(p->diags, E_ASSIGN_TARGET, target->loc);
	struct stmt *s = new_stmt(p, ST_ANN, loc);
	s->target = target;
	s->annotation = type;
	s->value = value;
	return s;
}

/* Statements on one line, separated by ';', as one statement. */
static struct stmt *sequence(struct parser *p, const stmt_vec *list)
{
	if (list->len == 1)
		return list->at[0];
	struct stmt *s = new_stmt(p, ST_IF, list->at[0]->loc); /* an `if True:` without the test */
	s->arms = arena_new(p->arena, struct arm);
	s->narms = 1;
	s->arms[0].body = (struct body){list->at, list->len};
	return s;
}

static struct body block_of(struct parser *p, struct stmt *s)
{
	struct stmt **at = arena_new(p->arena, struct stmt *);
	*at = s;
	return (struct body){at, 1};
}

static void finish_if(struct parser *p, struct stmt *s, struct arm first, const arm_vec *more, struct body otherwise)
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

/* The markers '*' and '/' have no name and are left out. */
static param_vec *add_parameter(struct parser *p, param_vec *list, struct param q)
{
	if (q.name)
		vec_push(p->arena, list, q);
	return list;
}

static void add_function(struct parser *p, enum func_kind kind, const char *name, struct loc loc, param_vec *params,
			 struct body body)
{
	struct func *f = arena_new(p->arena, struct func);
	*f = (struct func){.kind = kind, .name = name, .loc = loc, .params = params->at, .nparams = params->len,
			   .body = body, .module = p->module};
	for (u32 i = 0; i < f->nparams; i++)
		for (u32 j = 0; j < i; j++)
			if (f->params[i].name == f->params[j].name && strcmp(f->params[i].name, "..."))
				diag(p->diags, E_REPEATED_PARAM, f->params[i].loc, f->params[i].name);
	if (body.len && body.at[0]->kind == ST_EXPR && body.at[0]->value->kind == EX_STR) {
		f->doc = body.at[0]->value->text;
		f->body.at++;
		f->body.len--;
	}
	const struct func *earlier = map_get(&p->module->by_name, name); /* of one name, the last counts */
	u32 at = 0;
	while (at < p->module->funcs.len && p->module->funcs.at[at] != earlier)
		at++;
	if (at < p->module->funcs.len)
		p->module->funcs.at[at] = f;
	else
		vec_push(p->arena, &p->module->funcs, f);
	map_put(&p->module->by_name, name, f);
}

/* "unexpected 'x'"; bison's names of tokens are turned into what a reader of the kernel would call them. */
static const char *readable(struct parser *p, const char *symbol)
{
	static const struct {
		const char *symbol, *text;
	} names[] = {
		{"NEWLINE", "end of line"}, {"INDENT", "indentation"}, {"DEDENT", "end of the indented block"},
		{"NAME", "a name"}, {"NUMBER", "a number"}, {"STRING", "a string"}, {"end of file", "end"},
		{"JIT_DEF", "the start of a new function"}, {"CONSTEXPR_DEF", "the start of a new function"},
	};
	for (u32 i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(names[i].symbol, symbol))
			return names[i].text;
	if (*symbol == '\'')
		return symbol;
	return arena_printf(p->arena, "'%s'", symbol);
}

static const char *line_text(const struct parser *p, u32 line)
{
	return p->src->text + p->src->line_start[MAX(line, 1u) - 1];
}

static void bad_character(struct parser *p, struct loc at)
{
	const char *s = line_text(p, at.line) + at.col - 1;
	unsigned char c = (unsigned char)*s;
	if (c > 32 && c < 127) {
		diag(p->diags, E_BAD_CHARACTER, at, arena_printf(p->arena, "the character '%c'", c));
		if (c == '?')
			diag_hint(p->diags, "write `a if condition else b`");
		else if (c == '!')
			diag_hint(p->diags, "write `not condition`, or ~tile");
		return;
	}
	u32 code = c < 0x80   ? c
		   : c < 0xE0 ? (c & 31u) << 6 | (s[1] & 63u)
			      : (c & 15u) << 12 | (s[1] & 63u) << 6 | (s[2] & 63u);
	diag(p->diags, E_BAD_CHARACTER, at, arena_printf(p->arena, "the character U+%04X", code));
	if (c >= 0x80)
		diag_hint(p->diags, code >= 0x2010 && code < 0x2030
					    ? "it looks like a quote or a dash: type \" or ' or - instead"
					    : "it looks like a space: type one instead");
}

/* A bracket is open, and the error is at what looks like the next statement or at the end of what can be read. */
static bool bracket_was_left_open(const struct parser *p, struct loc at, const char *got)
{
	if (p->depth <= (p->expression_only ? 1 : 0)) /* a lone expression is read as if inside one */
		return false;
	struct loc open = p->open[MIN(p->depth, (int)ARRAY_LEN(p->open)) - 1];
	if (!strcmp(got, "NEWLINE") || !strcmp(got, "end of file") || !strcmp(got, "DEDENT"))
		return true;
	const char *line = line_text(p, at.line);
	size_t indent = strspn(line, " \t");
	return at.line > open.line && indent <= strspn(line_text(p, open.line), " \t") && !strchr(")]}", line[indent]);
}

/* What other languages write here, and what Python has for it. */
static const char *instead(const struct parser *p, struct loc at, const char *got)
{
	static const struct {
		const char *got, *before, *hint;
	} habits[] = {
		{"'&'", "&", "write `and` between conditions, & between tiles"},
		{"'|'", "|", "write `or` between conditions, | between tiles"},
		{"NEWLINE", "++", "write x += 1"},
		{"NEWLINE", "--", "write x -= 1"},
		{"if", "else ", "write elif"},
	};
	const char *s = line_text(p, at.line);
	for (u32 i = 0; i < ARRAY_LEN(habits); i++) {
		size_t n = strlen(habits[i].before);
		if (!strcmp(got, habits[i].got) && at.col > n && !memcmp(s + at.col - 1 - n, habits[i].before, n))
			return habits[i].hint;
	}
	return NULL;
}

static void syntax_error(struct parser *p, struct loc at, const char *got, const char *wanted)
{
	got = got ? got : "end of file";
	bool said = p->was_unclosed && !strcmp(got, "NEWLINE");
	p->was_unclosed = false;
	if (said)
		return;
	if (!strcmp(got, "UNTERMINATED_STRING")) {
		diag(p->diags, E_UNTERMINATED_STRING, at);
	} else if (!strcmp(got, "BAD_TOKEN")) {
		bad_character(p, at);
	} else if (!strcmp(got, "INDENT")) {
		diag(p->diags, E_UNEXPECTED_INDENT, at);
	} else if (!strcmp(got, ":=")) {
		diag(p->diags, E_UNSUPPORTED_SYNTAX, at, ":=");
		diag_hint(p->diags, "assign on a line of its own first");
	} else if (bracket_was_left_open(p, at, got)) {
		diag(p->diags, E_UNCLOSED_BRACKET, p->open[MIN(p->depth, (int)ARRAY_LEN(p->open)) - 1]);
	} else {
		const char *hint = instead(p, at, got);
		bool named = !strcmp(got, "NAME") || !strcmp(got, "NUMBER") || !strcmp(got, "STRING");
		diag(p->diags, E_SYNTAX, at,
		     named ? arena_printf(p->arena, "'%.*s'", MIN(at.len, 40), line_text(p, at.line) + at.col - 1)
			   : readable(p, got));
		bool closes = wanted && (!strcmp(wanted, "')'") || !strcmp(wanted, "']'") || !strcmp(wanted, "'}'"));
		if (!hint && wanted && !strcmp(wanted, "':'") && !strcmp(got, "'='"))
			hint = "write == to compare";
		if (!hint && !strcmp(got, "'@'") && at.col == strspn(line_text(p, at.line), " \t") + 1)
			hint = "a function cannot hold another one: start it at the left margin";
		if (hint)
			diag_hint(p->diags, "%s", hint);
		else if (closes && !strcmp(got, "','"))
			diag_hint(p->diags, "something is missing before this comma");
		else if (closes && strcmp(got, "')'") && strcmp(got, "']'") && strcmp(got, "'}'"))
			diag_hint(p->diags, "expected ',' or %s here", wanted);
		else if (wanted && strcmp(wanted, "NEWLINE"))
			diag_hint(p->diags, "expected %s here", readable(p, wanted));
	}
}
