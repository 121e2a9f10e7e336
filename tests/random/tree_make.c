/* Random trees: making them, and leaving parts out. */
#include "tree.h"

struct grower {
	struct tree *t;
	int visible[VARS], nvisible;
	int counters[VARS], ncounters; /* not to be assigned to */
	int depth;                     /* of blocks */
	int loops;                     /* around, in this function */
	bool in_helper;
	struct helper *helper; /* whose body is made */
};

int type_index(tl_dtype t)
{
	for (int k = 0; k < INT_TYPES; k++)
		if (int_types[k] == t)
			return k;
	return 0;
}

tl_dtype arg_type(int64_t v)
{
	return v >= INT32_MIN && v <= INT32_MAX ? TL_I32 : TL_I64;
}

static tl_dtype any_type(void)
{
	return chance(45) ? TL_I32 : int_types[random_below(INT_TYPES)];
}

/* A number of the type: the ends, around zero, powers of two and their neighbours. */
int64_t tree_corner(tl_dtype t)
{
	int bits = bits_of(t);
	switch (random_below(7)) {
	case 0: return wrap(t, least(t) + random_below(3));
	case 1: return wrap(t, (int64_t)((uint64_t)most(t) - (uint64_t)random_below(3)));
	case 2: return wrap(t, random_below(9) - 4);
	case 3: return wrap(t, (int64_t)((1ull << random_below(bits)) + (uint64_t)random_below(3) - 1));
	case 4: return wrap(t, random_below(2) ? 16 * random_below(9) : -16 * random_below(9));
	case 5: return wrap(t, random_below(100));
	default: return wrap(t, (int64_t)random_bits());
	}
}

/* --- expressions --------------------------------------------------------------------------------------------- */

static int add_expr(struct grower *g, int op, tl_dtype t, bool tile)
{
	struct tree *p = g->t;
	if (p->nexprs == EXPRS)
		exit(3);
	p->expr[p->nexprs] = (struct expr){.op = op, .t = t, .tile = tile, .in = {-1, -1, -1}};
	return p->nexprs++;
}

static int unary(struct grower *g, int op, tl_dtype t, int x)
{
	int k = add_expr(g, op, t, g->t->expr[x].tile);
	g->t->expr[k].in[0] = x;
	return k;
}

static int constant(struct grower *g, tl_dtype t, bool tile, int64_t value)
{
	int k = add_expr(g, FULL, t, tile);
	g->t->expr[k].value = value;
	return k;
}

static int expression(struct grower *g, tl_dtype t, bool tile, int depth);

static int variable(struct grower *g, int var)
{
	int k = add_expr(g, VAR, g->t->var[var].t, g->t->var[var].tile);
	g->t->expr[k].value = var;
	return k;
}

static int leaf(struct grower *g, tl_dtype t, bool tile)
{
	for (int tries = 0; tries < 6 && g->nvisible; tries++) {
		int var = g->visible[g->nvisible - 1 - random_below(chance(60) && g->nvisible > 5 ? 5 : g->nvisible)];
		bool same = g->t->var[var].t == t;
		if (g->t->var[var].tile == tile && (same || (tries > 2 && t != TL_I1)))
			return same ? variable(g, var) : unary(g, CAST, t, variable(g, var));
	}
	int form = random_below(10), k;
	if (t == TL_I1)
		return constant(g, t, tile, random_below(2));
	if (form < 3)
		return constant(g, t, tile, tree_corner(t));
	if (tile && form < 6)
		k = add_expr(g, RANGE, TL_I32, true);
	else if (tile || g->in_helper)
		return constant(g, t, tile, tree_corner(t));
	else if (form < 8) {
		int a = random_below(g->t->nargs);
		k = add_expr(g, SCALAR, arg_type(g->t->arg[a]), false);
		g->t->expr[k].value = a;
	} else
		k = add_expr(g, PID, TL_I32, false);
	return g->t->expr[k].t == t ? k : unary(g, CAST, t, k);
}

/* Operands of a tile's operation may be scalars, but one is a tile. */
static void operands(struct grower *g, int k, int n, tl_dtype t, bool tile, int depth)
{
	int whole = random_below(n);
	for (int i = 0; i < n; i++) {
		int x = expression(g, t, tile && (i == whole || chance(75)), depth - 1);
		g->t->expr[k].in[i] = x;
	}
}

static int condition(struct grower *g, bool tile, int depth)
{
	tl_dtype t = any_type();
	int form = random_below(10), k;
	if (form < 2) {
		k = add_expr(g, AND + random_below(3), TL_I1, tile);
		operands(g, k, 2, TL_I1, tile, depth);
	} else if (form < 4 && !tile) {
		k = add_expr(g, CHAIN, TL_I1, tile);
		g->t->expr[k].value = random_below(4) * 4 + random_below(4); /* of LT, LE, GT, GE */
		operands(g, k, 3, t, tile, depth);
		int first = leaf(g, t, tile);
		g->t->expr[k].in[0] = first;
	} else {
		k = add_expr(g, LT + random_below(6), TL_I1, tile);
		operands(g, k, 1, t, tile, depth);
		if ((g->t->expr[k].literal = chance(50) && !(t == TL_U64)))
			g->t->expr[k].value = tree_corner(t);
		else
			operands(g, k, 2, t, tile, depth);
	}
	return k;
}

/* An element at an index of any integer type. */
static int load(struct grower *g, tl_dtype t, bool tile, int depth)
{
	int k = add_expr(g, LOAD, t, tile), form = random_below(3);
	tl_dtype it = chance(60) ? TL_I32 : chance(50) ? TL_I64 : int_types[random_below(INT_TYPES)];
	if (form == 2 && (!is_signed(it) || bits_of(it) < 16))
		form = 0;
	g->t->expr[k].value = form;
	int x = expression(g, it, tile, form == 1 ? 1 : depth - 1);
	g->t->expr[k].in[0] = x;
	return k;
}

static int binary(struct grower *g, tl_dtype t, bool tile, int depth)
{
	static const int ops[] = {ADD, ADD, ADD, SUB, SUB, MUL, MUL, DIV, REM, AND, OR, XOR, SHL, SHR, MIN, MAX};
	int op = ops[random_below(COUNT(ops))], k = add_expr(g, op, t, tile);
	bool literal = op != MIN && op != MAX && chance(40); /* a function's argument has a type of its own */
	g->t->expr[k].literal = literal;
	operands(g, k, literal ? 1 : 2, t, tile, depth);
	if (literal && (op == SHL || op == SHR))
		g->t->expr[k].value = random_below(bits_of(t));
	else if (literal && (op == DIV || op == REM))
		g->t->expr[k].value = is_signed(t) && chance(30) ? -2 - random_below(40) : 1 + random_below(100);
	else if (literal)
		g->t->expr[k].value = t == TL_U64 ? random_below(1000) : tree_corner(t);
	return k;
}

static int whole_tile(struct grower *g, tl_dtype t, bool tile, int depth)
{
	static const int wide[] = {SUM, LARGE, SMALL, XOR_SUM, PRODUCT}, narrow[] = {PRODUCT, LARGE};
	int k = add_expr(g, tile ? SCAN : REDUCE, t, tile);
	bool small = bits_of(t) < 32 || tile;
	g->t->expr[k].value = small ? narrow[tile ? random_below(2) : 0] : wide[random_below(COUNT(wide))];
	int x = expression(g, t, true, depth - 1);
	g->t->expr[k].in[0] = x;
	return k;
}

static int expression(struct grower *g, tl_dtype t, bool tile, int depth)
{
	if (depth <= 0 || g->t->nexprs > EXPRS - 200)
		return leaf(g, t, tile);
	if (t == TL_I1)
		return condition(g, tile, depth);
	int form = random_below(100), k;
	if (form < 15)
		return leaf(g, t, tile);
	if (form < 60)
		return binary(g, t, tile, depth);
	if (form < 72) {
		int x = expression(g, chance(8) ? TL_I1 : any_type(), tile, depth - 1);
		return g->t->expr[x].t == t ? x : unary(g, CAST, t, x);
	}
	if (form < 77) {
		int x = expression(g, t, tile, depth - 1);
		return unary(g, NEG + random_below(3), t, x);
	}
	if (form < 85) {
		k = add_expr(g, tile || chance(50) ? WHERE : CHOOSE, t, tile);
		int c = condition(g, tile, depth - 1), x = expression(g, t, tile, depth - 1),
		    y = expression(g, t, tile, depth - 1);
		memcpy(g->t->expr[k].in, (int[]){c, x, y}, sizeof g->t->expr[k].in);
		return k;
	}
	if (form < 94 && !g->in_helper)
		return load(g, t, tile, depth);
	if (form < 96 && tile && t == TL_I32) {
		k = add_expr(g, HINTED, t, true);
		int x = expression(g, t, false, depth - 1);
		g->t->expr[k].in[0] = x;
		return k;
	}
	return whole_tile(g, t, tile, depth);
}

/* --- statements ---------------------------------------------------------------------------------------------- */

static int add_stmt(struct grower *g, enum stmt_kind kind)
{
	struct tree *t = g->t;
	t->stmt[t->nstmts] = (struct stmt){
		.kind = kind, .var = -1, .second = -1, .e = {-1, -1}, .body = -1, .other = -1, .next = -1};
	return t->nstmts++;
}

static int new_var(struct grower *g, tl_dtype t, bool tile)
{
	g->t->var[g->t->nvars].t = t;
	g->t->var[g->t->nvars].tile = tile;
	return g->t->nvars++;
}

static bool is_counter(const struct grower *g, int var)
{
	for (int k = 0; k < g->ncounters; k++)
		if (g->counters[k] == var)
			return true;
	return false;
}

static int some_var(struct grower *g, tl_dtype t, int tile) /* tile: 0, 1, or -1: either. t: TL_I1 for any integer */
{
	for (int tries = 0; tries < 12 && g->nvisible; tries++) {
		int var = g->visible[random_below(g->nvisible)];
		if (!is_counter(g, var) && g->t->var[var].t != TL_I1 && (t == TL_I1 || g->t->var[var].t == t) &&
		    (tile < 0 || g->t->var[var].tile == tile))
			return var;
	}
	return -1;
}

static int assignment(struct grower *g, int var, bool declares)
{
	int k = add_stmt(g, SET), depth = 1 + random_below(4);
	g->t->stmt[k].var = var;
	g->t->stmt[k].declares = declares;
	g->t->stmt[k].e[0] = expression(g, g->t->var[var].t, g->t->var[var].tile, depth);
	return k;
}

static int declare(struct grower *g)
{
	int var = new_var(g, chance(8) ? TL_I1 : any_type(), chance(55)), k = assignment(g, var, true);
	g->visible[g->nvisible++] = var;
	return k;
}

static int block(struct grower *g, int n);

/* A block whose new variables end with it. */
static int inner(struct grower *g, int n)
{
	int visible = g->nvisible;
	g->depth++;
	int first = block(g, n);
	g->depth--;
	g->nvisible = visible;
	return first;
}

static void append(struct tree *t, int *first, int k)
{
	while (*first >= 0)
		first = &t->stmt[*first].next;
	*first = k;
}

/* A statement that leaves something, if there is something to leave. */
static int make_jump(struct grower *g)
{
	int form = random_below(10), jump = !g->loops || form < 2 ? RETURN : form < 6 ? OUT : TO_NEXT;
	if (g->t->nstmts > STMTS - 20 || (jump == RETURN && !g->in_helper && chance(60)))
		return -1;
	int k = add_stmt(g, JUMP);
	g->t->stmt[k].form = jump;
	for (int i = 0; jump == RETURN && g->in_helper && i < 2; i++) {
		int x = expression(g, g->helper->t, g->helper->tile, 1);
		g->t->stmt[k].e[i] = x;
	}
	return k;
}

/* The body of a loop, and sometimes its `else`, which does not know the body's variables. */
static void make_loop(struct grower *g, int k, int n, int visible)
{
	g->loops++;
	int body = inner(g, n);
	g->loops--;
	g->t->stmt[k].body = body;
	g->nvisible = visible;
	g->ncounters--;
	if (!chance(20))
		return;
	int other = inner(g, 1 + random_below(2));
	g->t->stmt[k].other = other;
}

static int make_when(struct grower *g)
{
	int k = add_stmt(g, WHEN);
	g->t->stmt[k].e[0] = condition(g, false, 2);
	int body = inner(g, 1 + random_below(3));
	g->t->stmt[k].body = body;
	bool fresh = chance(40);
	if (!fresh && chance(g->loops || g->in_helper ? 50 : 15)) {
		int jump = make_jump(g);
		if (jump >= 0)
			append(g->t, &g->t->stmt[k].body, jump);
	}
	if (!fresh && chance(40))
		return k;
	int other = inner(g, 1 + random_below(3));
	g->t->stmt[k].other = other;
	if (fresh) { /* a variable that both branches make */
		int var = new_var(g, any_type(), chance(50)), x = assignment(g, var, true),
		    y = assignment(g, var, true);
		append(g->t, &g->t->stmt[k].body, x);
		append(g->t, &g->t->stmt[k].other, y);
		g->t->stmt[k].declares = true;
		g->t->stmt[k].var = var;
		g->visible[g->nvisible++] = var;
	}
	return k;
}

static int make_count(struct grower *g)
{
	int k = add_stmt(g, COUNT_UP), form = random_below(5);
	tl_dtype t = TL_I32;
	g->t->stmt[k].form = form;
	g->t->stmt[k].n = random_below(5);
	g->t->stmt[k].step = 1 + random_below(3);
	if (form == 1 || form == 2 || form == 4) {
		t = chance(70) ? TL_I32 : TL_I64;
		g->t->stmt[k].e[0] = chance(40) ? constant(g, t, false, tree_corner(t)) : leaf(g, t, false);
	}
	bool kept = chance(40);
	int old = kept && chance(50) ? some_var(g, t, 0) : -1, visible = g->nvisible;
	bool fresh = old < 0 || g->t->var[old].t != t;
	int var = fresh ? new_var(g, t, false) : old;
	if (kept && fresh && form == 3) /* an unrolled loop without iterations gives it no value */
		g->t->stmt[k].n += !g->t->stmt[k].n;
	g->t->stmt[k].kept = kept;
	g->t->stmt[k].declares = kept && fresh;
	g->t->stmt[k].var = var;
	g->counters[g->ncounters++] = var;
	g->visible[g->nvisible++] = var;
	if (kept && chance(30)) /* its body may assign to it */
		g->counters[g->ncounters - 1] = -1;
	make_loop(g, k, 2 + random_below(3), visible);
	if (kept && fresh)
		g->visible[g->nvisible++] = var;
	return k;
}

static int make_while(struct grower *g)
{
	int k = add_stmt(g, LOOP_WHILE), var = new_var(g, TL_I32, false), visible = g->nvisible;
	g->t->stmt[k].n = random_below(5);
	g->t->stmt[k].var = var;
	g->counters[g->ncounters++] = var;
	g->visible[g->nvisible++] = var;
	g->t->stmt[k].e[0] = condition(g, false, 1);
	make_loop(g, k, 2 + random_below(2), visible);
	return k;
}

static int make_promise(struct grower *g)
{
	int var = some_var(g, chance(70) ? TL_I32 : TL_I64, 0);
	if (var < 0)
		return -1;
	int k = add_stmt(g, PROMISE);
	g->t->stmt[k].var = var;
	g->t->stmt[k].n = 4 << random_below(4);
	int body = inner(g, 1 + random_below(3));
	g->t->stmt[k].body = body;
	return k;
}

static int make_assume(struct grower *g)
{
	int k = add_stmt(g, ASSUME);
	g->t->stmt[k].e[0] = condition(g, false, 1);
	int body = inner(g, 1 + random_below(3));
	g->t->stmt[k].body = body;
	return k;
}

static int make_rounds(struct grower *g)
{
	tl_dtype t = int_types[random_below(INT_TYPES)];
	int a = some_var(g, t, -1), b = a < 0 ? -1 : some_var(g, t, g->t->var[a].tile);
	if (b < 0 || a == b)
		return -1;
	int k = add_stmt(g, ROUNDS);
	g->t->stmt[k].var = a;
	g->t->stmt[k].second = b;
	g->t->stmt[k].n = g->depth ? 4 : 32;
	return k;
}

static int make_call(struct grower *g)
{
	const struct helper *h = g->t->nhelpers ? &g->t->helper[random_below(g->t->nhelpers)] : NULL;
	if (!h || g->in_helper)
		return -1;
	int k = add_stmt(g, CALL);
	g->t->stmt[k].form = (int)(h - g->t->helper);
	for (int i = 0; i < 2; i++)
		g->t->stmt[k].e[i] = expression(g, h->t, h->tile, 2);
	int a = new_var(g, h->t, h->tile), b = new_var(g, h->t, h->tile);
	g->t->stmt[k].var = a;
	g->t->stmt[k].second = b;
	g->t->stmt[k].declares = true;
	g->visible[g->nvisible++] = a;
	g->visible[g->nvisible++] = b;
	return k;
}

static int make_write(struct grower *g, int var, bool masked)
{
	if (var < 0 || g->in_helper || g->t->nouts == 24)
		return -1;
	int k = add_stmt(g, WRITE);
	g->t->stmt[k].var = var;
	g->t->stmt[k].form = g->t->nouts;
	g->t->out_var[g->t->nouts++] = var;
	if (masked)
		g->t->stmt[k].e[0] = condition(g, g->t->var[var].tile, 2);
	return k;
}

static int statement(struct grower *g)
{
	int form = random_below(100), var = some_var(g, TL_I1, -1);
	if (g->loops && chance(5))
		return make_jump(g);
	bool deep = g->depth > 2 || g->t->nstmts > STMTS - 80 || g->t->nvars > VARS - 30;
	if (form < 30 && var >= 0)
		return assignment(g, var, false);
	if (form < 40 || deep)
		return g->t->nvars < VARS - 20 ? declare(g) : -1;
	return form < 55   ? make_when(g)
	       : form < 67 ? make_count(g)
	       : form < 73 ? make_while(g)
	       : form < 80 ? make_promise(g)
	       : form < 86 ? make_assume(g)
	       : form < 89 ? make_rounds(g)
	       : form < 95 ? make_call(g)
			   : make_write(g, var, true);
}

static int block(struct grower *g, int n)
{
	int first = -1;
	for (int i = 0; i < n && g->t->nstmts < STMTS - 40; i++) {
		int k = statement(g);
		if (k >= 0)
			append(g->t, &first, k);
	}
	return first;
}

static void make_helper(struct grower *g)
{
	struct helper h = {.t = any_type(), .tile = chance(50)};
	g->helper = &h;
	for (int i = 0; i < 2; i++) {
		h.param[i] = new_var(g, h.t, h.tile);
		g->visible[g->nvisible++] = h.param[i];
	}
	h.body = block(g, 1 + random_below(3));
	for (int i = 0; i < 2; i++)
		h.result[i] = expression(g, h.t, h.tile, 2);
	g->nvisible = 0;
	g->t->helper[g->t->nhelpers++] = h;
}

void tree_make(struct tree *t)
{
	memset(t, 0, sizeof *t);
	struct grower g = {.t = t, .in_helper = true};
	t->lanes = 16 << random_below(4);
	t->programs = 1 + random_below(3);
	t->warps = 1 << random_below(3);
	t->nargs = 2 + random_below(4);
	for (int k = 0; k < t->nargs; k++)
		t->arg[k] = tree_corner(chance(75) ? TL_I32 : TL_I64);
	for (int k = random_below(HELPERS + 1); k > 0; k--)
		make_helper(&g);
	g.in_helper = false;
	t->body = -1;
	for (int k = 2 + random_below(3); k > 0; k--)
		append(t, &t->body, declare(&g));
	append(t, &t->body, block(&g, 3 + random_below(6)));
	for (int k = g.nvisible - 1; k >= 0 && t->nouts < 20; k--)
		append(t, &t->body, make_write(&g, g.visible[k], chance(20)));
}

/* --- leaving parts out --------------------------------------------------------------------------------------- */

static void use_expr(struct tree *t, int k)
{
	const struct expr *x = k < 0 ? NULL : &t->expr[k];
	if (!x || x->dead)
		return;
	if (x->op == VAR)
		t->var[x->value].used = true;
	for (int i = 0; i < 3; i++)
		if (!(x->literal && i == 1))
			use_expr(t, x->in[i]);
}

static void use_block(struct tree *t, int k)
{
	for (; k >= 0; k = t->stmt[k].next) {
		const struct stmt *s = &t->stmt[k];
		if (s->dead)
			continue;
		use_expr(t, s->e[0]), use_expr(t, s->e[1]);
		if (s->kind != SET && s->kind != CALL && s->var >= 0)
			t->var[s->var].used = true;
		if (s->second >= 0 && s->kind == ROUNDS)
			t->var[s->second].used = true;
		use_block(t, s->body), use_block(t, s->other);
	}
}

/* A statement that makes variables somebody reads stays, and makes zeros. */
static void revive(struct tree *t, struct stmt *s)
{
	s->dead = false;
	if (s->kind == WHEN)
		return;
	for (int i = 0; i < 2; i++)
		if (s->e[i] >= 0)
			t->expr[s->e[i]].dead = true;
	s->form = s->kind == CALL ? -1 : s->form;
}

/* What is left out: an expression is 0, a statement is gone; so are assignments to variables that nobody reads. */
void tree_leave_out(struct tree *t, const char *list)
{
	for (const char *s = list + strspn(list, ","); *s; s += strcspn(s, ","), s += strspn(s, ",")) {
		int k = atoi(s);
		if (k < EXPRS)
			t->expr[k].dead = true;
		else
			t->stmt[k - EXPRS].dead = true;
	}
	bool changed = true;
	for (int round = 0; round < 40 && changed; round++) {
		changed = false;
		for (int k = 0; k < t->nvars; k++)
			t->var[k].used = false;
		use_block(t, t->body);
		for (int k = 0; k < t->nhelpers; k++) {
			use_block(t, t->helper[k].body);
			use_expr(t, t->helper[k].result[0]), use_expr(t, t->helper[k].result[1]);
		}
		for (int k = 0; k < t->nstmts; k++) {
			struct stmt *s = &t->stmt[k];
			bool unread =
				!(s->var >= 0 && t->var[s->var].used) && !(s->second >= 0 && t->var[s->second].used);
			if (!s->dead && (s->kind == SET || s->kind == CALL) && unread)
				s->dead = changed = true;
			else if (s->dead && s->declares && !unread) {
				revive(t, s);
				changed = true;
			}
		}
	}
}

static bool inside(const struct tree *t, int k, int wanted)
{
	if (k < 0 || k == wanted)
		return k == wanted;
	const struct expr *x = &t->expr[k];
	for (int i = 0; i < 3 && !x->dead; i++)
		if (!(x->literal && i == 1) && inside(t, x->in[i], wanted))
			return true;
	return false;
}

bool expr_is_used(const struct tree *t, int expr)
{
	for (int k = 0; k < t->nstmts; k++)
		if (!t->stmt[k].dead && (inside(t, t->stmt[k].e[0], expr) || inside(t, t->stmt[k].e[1], expr)))
			return true;
	for (int k = 0; k < t->nhelpers; k++)
		if (inside(t, t->helper[k].result[0], expr) || inside(t, t->helper[k].result[1], expr))
			return true;
	return false;
}
