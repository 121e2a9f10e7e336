/* Random kernels: nested loops and branches around operations that compute, rearrange, reduce and scan integer tiles,
 * run by the interpreter and by a plain walk over the IR that gives every value an array of its own. What this finds is
 * values that share memory while both are needed. */
#include "test_interp.h"

#include "ir/scalar.h"

enum { KERNELS = 1500, STORED = 16, NUMEL = 32 };
enum kind { SCALAR, ROWS, WIDE, TALL, FLAT, KINDS }; /* i32, tensor<8>, <4x8>, <8x4>, <32> */

/* --- making a kernel ----------------------------------------------------------------------------------------- */

struct pool {
	struct value *at[KINDS][400];
	u32 n[KINDS];
};

struct generator {
	struct arena arena;
	struct interner names;
	struct diags diags;
	struct ir_context ctx;
	struct builder b;
	const struct type *types[KINDS];
	struct pool pool;
	u32 ops;
};

static void offer(struct generator *g, enum kind k, struct value *v)
{
	if (g->pool.n[k] < ARRAY_LEN(g->pool.at[k]))
		g->pool.at[k][g->pool.n[k]++] = v;
}

static struct value *constant(struct generator *g, enum kind k)
{
	return build_int(&g->b, g->types[k], (i32)(test_random() % 7));
}

/* One of the values of this kind, mostly a recent one. */
static struct value *pick(struct generator *g, enum kind k)
{
	u32 n = g->pool.n[k];
	if (!n || test_random() % 12 == 0)
		return constant(g, k);
	u32 back = test_random() % 2 ? test_random() % MIN(n, 3u) : test_random() % n;
	return g->pool.at[k][n - 1 - back];
}

static enum kind random_kind(void)
{
	return (enum kind)(test_random() % KINDS);
}

static struct value *with_attr(struct value *v, i64 attr)
{
	v->def->attr[0] = attr;
	return v;
}

static void make_elementwise(struct generator *g)
{
	static const enum opcode codes[] = {IR_ADDI, IR_SUBI, IR_MULI, IR_XORI, IR_MAXSI, IR_MINUI, IR_ANDI};
	enum kind k = random_kind();
	if (test_random() % 4) {
		offer(g, k,
		      build2(&g->b, codes[test_random() % ARRAY_LEN(codes)], g->types[k], pick(g, k), pick(g, k)));
		return;
	}
	struct value *c = build_cmpi(&g->b, CMPI_SLT, pick(g, k), pick(g, k));
	offer(g, k, build3(&g->b, IR_SELECT, g->types[k], c, pick(g, k), pick(g, k)));
}

static void make_reduce(struct generator *g, bool scan)
{
	struct value *in[] = {pick(g, WIDE), pick(g, WIDE)};
	const struct type *t[] = {g->types[scan ? WIDE : ROWS], g->types[scan ? WIDE : ROWS]}, *i32t = g->types[SCALAR];
	u32 n = 1 + test_random() % 2;
	struct value *outer = pick(g, SCALAR);
	struct op *o = build(&g->b, scan ? IR_SCAN : IR_REDUCE, in, n, t, n, 1);
	struct builder b = builder_at_end(&g->ctx, o->blocks[0]);
	struct value *r[2], *arg[4];
	for (u32 k = 0; k < 2 * n; k++)
		arg[k] = block_add_arg(&g->ctx, o->blocks[0], i32t);
	for (u32 k = 0; k < n; k++) {
		r[k] = build2(&b, k ? IR_SUBI : IR_ADDI, i32t, arg[k], arg[test_random() % 2 ? n + k : 2 * n - 1]);
		r[k] = build2(&b, IR_XORI, i32t, r[k], test_random() % 2 ? outer : arg[0]);
	}
	if (n == 2 && test_random() % 3 == 0)
		r[0] = arg[3];
	build(&b, scan ? IR_SCAN_RETURN : IR_REDUCE_RETURN, r, n, NULL, 0, 0);
	o->attr[ATTR_REVERSE] = scan && test_random() % 2;
	o->attr[ATTR_AXIS] = scan ? test_random() % 2 : 0;
	for (u32 k = 0; k < n; k++)
		offer(g, scan ? WIDE : ROWS, &o->results[k]);
}

static void make_shape(struct generator *g)
{
	static const i32 one_row[] = {1, 8};
	int swap[] = {1, 0};
	const struct type *i32t = g->types[SCALAR];
	switch (test_random() % 7) {
	case 0:
		offer(g, TALL, with_attr(build1(&g->b, IR_TRANS, g->types[TALL], pick(g, WIDE)), perm_pack(swap, 2)));
		break;
	case 1:
		offer(g, WIDE, with_attr(build1(&g->b, IR_TRANS, g->types[WIDE], pick(g, TALL)), perm_pack(swap, 2)));
		break;
	case 2: offer(g, WIDE, build1(&g->b, IR_RESHAPE, g->types[WIDE], pick(g, FLAT))); break;
	case 3: offer(g, FLAT, build1(&g->b, IR_RESHAPE, g->types[FLAT], pick(g, TALL))); break;
	case 4: offer(g, TALL, build1(&g->b, IR_SPLAT, g->types[TALL], pick(g, SCALAR))); break;
	case 5: {
		struct value *v = build1(&g->b, IR_EXPAND_DIMS, type_tensor(&g->ctx, i32t, 2, one_row), pick(g, ROWS));
		offer(g, WIDE, build1(&g->b, IR_BROADCAST, g->types[WIDE], v));
		break;
	}
	default: {
		struct op *r = build(&g->b, IR_MAKE_RANGE, NULL, 0, &g->types[FLAT], 1, 0);
		r->attr[ATTR_START] = test_random() % 3;
		r->attr[ATTR_END] = r->attr[ATTR_START] + NUMEL;
		offer(g, FLAT, result(r));
	}
	}
}

static void make_block(struct generator *g, int depth, u32 n);

/* Fills a nested block and yields values of the kinds; `extra` goes in front. */
static void fill_block(struct generator *g, struct block *b, int depth, enum opcode end, struct value *extra,
		       const enum kind *kinds, u32 n)
{
	struct builder outer = g->b;
	struct value *v[12];
	u32 at = 0;
	g->b = builder_at_end(&g->ctx, b);
	if (extra && extra->block == b) { /* a while loop's counter goes up */
		extra = build2(&g->b, IR_ADDI, g->types[SCALAR], extra, build_int(&g->b, g->types[SCALAR], 1));
	}
	make_block(g, depth + 1, 1 + test_random() % 6);
	if (extra)
		v[at++] = extra;
	for (u32 k = 0; k < n; k++)
		v[at++] = pick(g, kinds[k]);
	build(&g->b, end, v, at, NULL, 0, 0);
	g->b = outer;
}

static void make_for(struct generator *g, int depth)
{
	enum kind kinds[4];
	const struct type *types[4];
	struct value *in[7] = {build_int(&g->b, g->types[SCALAR], 0),
			       build_int(&g->b, g->types[SCALAR], test_random() % 4),
			       build_int(&g->b, g->types[SCALAR], 1 + test_random() % 2)};
	u32 n = test_random() % 5;
	for (u32 k = 0; k < n; k++) {
		kinds[k] = k && test_random() % 2 ? kinds[k - 1] : random_kind();
		types[k] = g->types[kinds[k]];
		in[3 + k] = pick(g, kinds[k]);
	}
	struct op *o = build(&g->b, IR_FOR, in, 3 + n, types, n, 1);
	struct pool *saved = arena_dup(&g->arena, &g->pool, sizeof g->pool);
	offer(g, SCALAR, block_add_arg(&g->ctx, o->blocks[0], g->types[SCALAR]));
	for (u32 k = 0; k < n; k++)
		offer(g, kinds[k], block_add_arg(&g->ctx, o->blocks[0], types[k]));
	fill_block(g, o->blocks[0], depth, IR_YIELD, NULL, kinds, n);
	g->pool = *saved;
	for (u32 k = 0; k < n; k++)
		offer(g, kinds[k], &o->results[k]);
}

static void make_if(struct generator *g, int depth)
{
	enum kind kinds[3] = {random_kind(), random_kind(), random_kind()};
	const struct type *types[3] = {g->types[kinds[0]], g->types[kinds[1]], g->types[kinds[2]]};
	struct value *c = build_cmpi(&g->b, CMPI_SLT, pick(g, SCALAR), pick(g, SCALAR));
	u32 n = test_random() % 4;
	struct op *o = build(&g->b, IR_IF, &c, 1, types, n, 2);
	struct pool *saved = arena_dup(&g->arena, &g->pool, sizeof g->pool);
	for (u32 k = 0; k < 2; k++) {
		fill_block(g, o->blocks[k], depth, IR_YIELD, NULL, kinds, n);
		g->pool = *saved;
	}
	for (u32 k = 0; k < n; k++)
		offer(g, kinds[k], &o->results[k]);
}

/* while (counter < limit): the counter comes first everywhere. */
static void make_while(struct generator *g, int depth)
{
	enum kind in_kinds[3] = {SCALAR, random_kind(), random_kind()}, out_kinds[2] = {random_kind(), random_kind()};
	const struct type *i32t = g->types[SCALAR], *types[3] = {i32t, g->types[out_kinds[0]], g->types[out_kinds[1]]};
	struct value *in[3] = {build_int(&g->b, i32t, test_random() % 3)}, *limit = build_int(&g->b, i32t, 3);
	u32 n = 1 + test_random() % 3, m = 1 + test_random() % 3;
	for (u32 k = 1; k < n; k++)
		in[k] = pick(g, in_kinds[k]);
	struct op *o = build(&g->b, IR_WHILE, in, n, types, m, 2);
	struct pool *saved = arena_dup(&g->arena, &g->pool, sizeof g->pool);
	struct value *counter = block_add_arg(&g->ctx, o->blocks[0], i32t);
	for (u32 k = 1; k < n; k++)
		offer(g, in_kinds[k], block_add_arg(&g->ctx, o->blocks[0], g->types[in_kinds[k]]));
	struct builder outer = g->b;
	g->b = builder_at_end(&g->ctx, o->blocks[0]);
	struct value *go = build_cmpi(&g->b, CMPI_SLT, counter, limit), *pass[4] = {go, counter};
	make_block(g, depth + 1, test_random() % 4);
	for (u32 k = 1; k < m; k++)
		pass[k + 1] = pick(g, out_kinds[k - 1]);
	build(&g->b, IR_CONDITION, pass, m + 1, NULL, 0, 0);
	g->b = outer;
	g->pool = *saved;
	counter = block_add_arg(&g->ctx, o->blocks[1], i32t);
	for (u32 k = 1; k < m; k++)
		offer(g, out_kinds[k - 1], block_add_arg(&g->ctx, o->blocks[1], types[k]));
	fill_block(g, o->blocks[1], depth, IR_YIELD, counter, in_kinds + 1, n - 1);
	g->pool = *saved;
	for (u32 k = 0; k < m; k++)
		offer(g, k ? out_kinds[k - 1] : SCALAR, &o->results[k]);
}

static void make_block(struct generator *g, int depth, u32 n)
{
	for (u32 k = 0; k < n; k++) {
		u32 what = test_random() % 20;
		if (what < 9 || depth > 3)
			make_elementwise(g);
		else if (what < 14)
			make_shape(g);
		else if (what < 16)
			make_reduce(g, what == 15);
		else if (what < 18)
			make_for(g, depth);
		else if (what == 18)
			make_if(g, depth);
		else
			make_while(g, depth);
	}
}

static struct kernel *make_kernel(struct generator *g)
{
	static const i32 shapes[KINDS][2] = {{0, 0}, {8, 0}, {4, 8}, {8, 4}, {NUMEL, 0}};
	g->names.arena = &g->arena;
	diags_init(&g->diags, &g->arena);
	ir_context_init(&g->ctx, &g->arena, &g->names, &g->diags);
	struct kernel *k = kernel_new(&g->ctx, "k");
	const struct type *i32t = g->types[SCALAR] = type_scalar(&g->ctx, DT_I32);
	for (int t = ROWS; t < KINDS; t++)
		g->types[t] = type_tensor(&g->ctx, i32t, shapes[t][1] ? 2 : 1, shapes[t]);
	k->params = arena_array(&g->arena, struct kernel_param, 2);
	k->nparams = 2;
	for (u32 i = 0; i < 2; i++)
		k->params[i].value = block_add_arg(&g->ctx, k->body, i ? i32t : type_ptr(&g->ctx, i32t));
	g->b = builder_at_end(&g->ctx, k->body);
	offer(g, SCALAR, k->params[1].value);
	struct op *range = build(&g->b, IR_MAKE_RANGE, NULL, 0, &g->types[FLAT], 1, 0);
	range->attr[ATTR_END] = NUMEL;
	offer(g, FLAT, result(range));
	make_block(g, 0, 12);
	const struct type *pointers = type_with_elem(&g->ctx, g->types[FLAT], type_ptr(&g->ctx, i32t));
	for (i32 i = 0; i < STORED; i++) {
		struct value *v = pick(g, (enum kind)(ROWS + 1 + i % 3)),
			     *p = build_splat(&g->b, k->params[0].value, 1, shapes[FLAT]);
		if (v->type != g->types[FLAT])
			v = build1(&g->b, IR_RESHAPE, g->types[FLAT], v);
		p = build2(&g->b, IR_ADDPTR, pointers, p,
			   build2(&g->b, IR_ADDI, g->types[FLAT], result(range),
				  build_int(&g->b, g->types[FLAT], i * NUMEL)));
		struct value *store[] = {p, v};
		build(&g->b, IR_STORE, store, 2, NULL, 0, 0);
	}
	build(&g->b, IR_RETURN, NULL, 0, NULL, 0, 0);
	kernel_verify(k, "test", NULL);
	return k;
}

/* --- the plain way ------------------------------------------------------------------------------------------- */

struct walker {
	struct arena arena;
	struct map values; /* value → u64 array */
	i32 *out;
};

static u64 *value_at(struct walker *w, const struct value *v)
{
	u64 *at = map_get(&w->values, v);
	tl_assert(at);
	return at;
}

static u64 *define(struct walker *w, const struct value *v)
{
	u64 *at = arena_array(&w->arena, u64, type_numel(v->type));
	map_put(&w->values, v, at);
	return at;
}

/* At once: all are read before any is defined. */
static void assign(struct walker *w, struct value *const *to, const struct op *o, u32 first, u32 n)
{
	u64 *from[12];
	for (u32 k = 0; k < n; k++)
		from[k] = value_at(w, operand(o, first + k));
	for (u32 k = 0; k < n; k++)
		map_put(&w->values, to[k],
			arena_dup(&w->arena, from[k], sizeof(u64) * (size_t)type_numel(to[k]->type)));
}

static void assign_results(struct walker *w, const struct op *to, const struct op *o, u32 first)
{
	struct value *v[12];
	for (u32 k = 0; k < to->nresults; k++)
		v[k] = &((struct op *)to)->results[k];
	assign(w, v, o, first, to->nresults);
}

static void walk_block(struct walker *w, const struct block *b);

/* (a…, b…) → a */
static void combine(struct walker *w, const struct block *b, u64 *a, const u64 *x, u32 n)
{
	for (u32 k = 0; k < 2 * n; k++)
		*define(w, b->args[k]) = k < n ? a[k] : x[k - n];
	walk_block(w, b);
	for (u32 k = 0; k < n; k++)
		a[k] = *value_at(w, operand(b->last, k));
}

/* One column (or row) of a 4×8 tile: `count` elements, `stride` apart, as a tree or one after the other. */
static void walk_line(struct walker *w, const struct op *o, i64 start, i64 stride, int count, i64 out)
{
	u64 line[8][2];
	u32 n = o->noperands;
	bool scan = o->code == IR_SCAN, reverse = scan && o->attr[ATTR_REVERSE];
	for (int i = 0; i < count; i++)
		for (u32 k = 0; k < n; k++)
			line[i][k] = value_at(w, operand(o, k))[start + (reverse ? count - 1 - i : i) * stride];
	for (int half = count / 2; half && !scan; half /= 2)
		for (int i = 0; i < half; i++)
			combine(w, o->blocks[0], line[i], line[i + half], n);
	for (int i = 1; i < count && scan; i++) {
		u64 sum[2] = {line[i - 1][0], line[i - 1][1]};
		combine(w, o->blocks[0], sum, line[i], n);
		memcpy(line[i], sum, sizeof sum);
	}
	for (int i = 0; i < (scan ? count : 1); i++)
		for (u32 k = 0; k < n; k++)
			value_at(w, &o->results[k])[scan ? start + (reverse ? count - 1 - i : i) * stride : out] =
				line[i][k];
}

static void walk_reduce(struct walker *w, const struct op *o)
{
	for (u32 k = 0; k < o->nresults; k++)
		define(w, &o->results[k]);
	for (int i = 0; i < (o->attr[ATTR_AXIS] ? 4 : 8); i++)
		walk_line(w, o, o->attr[ATTR_AXIS] ? i * 8 : i, o->attr[ATTR_AXIS] ? 1 : 8, o->attr[ATTR_AXIS] ? 8 : 4,
			  i);
}

static void walk_control(struct walker *w, const struct op *o)
{
	const struct block *b = o->blocks[0];
	if (o->code == IR_IF) {
		b = o->blocks[*value_at(w, operand(o, 0)) ? 0 : 1];
		walk_block(w, b);
		assign_results(w, o, b->last, 0);
	} else if (o->code == IR_FOR) {
		assign(w, b->args + 1, o, 3, o->nresults);
		assign_results(w, o, o, 3);
		for (u64 i = *value_at(w, operand(o, 0)); i < *value_at(w, operand(o, 1));
		     i += *value_at(w, operand(o, 2))) {
			*define(w, b->args[0]) = i;
			walk_block(w, b);
			assign_results(w, o, b->last, 0);
			assign(w, b->args + 1, b->last, 0, o->nresults);
		}
	} else {
		for (assign(w, b->args, o, 0, b->nargs);; assign(w, b->args, o->blocks[1]->last, 0, b->nargs)) {
			walk_block(w, b);
			assign_results(w, o, b->last, 1);
			if (!*value_at(w, operand(b->last, 0)))
				break;
			assign(w, o->blocks[1]->args, b->last, 1, o->nresults);
			walk_block(w, o->blocks[1]);
		}
	}
}

static void walk_elements(struct walker *w, const struct op *o)
{
	const struct type *t = o->results[0].type;
	u64 *r = define(w, &o->results[0]), *x = o->noperands ? value_at(w, operand(o, 0)) : NULL;
	for (i64 i = 0; i < type_numel(t); i++) {
		u64 in[3];
		for (u32 k = 0; k < o->noperands && op_has(o, ELEM); k++)
			in[k] = value_at(w, operand(o, k))[i];
		switch (o->code) {
		case IR_CONSTANT: r[i] = (u64)o->attr[ATTR_VALUE]; break;
		case IR_MAKE_RANGE: r[i] = (u64)(o->attr[ATTR_START] + i); break;
		case IR_SPLAT: r[i] = x[0]; break;
		case IR_EXPAND_DIMS:
		case IR_RESHAPE: r[i] = x[i]; break;
		case IR_BROADCAST: r[i] = x[i % 8]; break;
		case IR_TRANS: r[i] = x[i % t->shape[1] * t->shape[0] + i / t->shape[1]]; break;
		default: assert_true(scalar_eval(o, in, &r[i])); break;
		}
	}
}

static void walk_block(struct walker *w, const struct block *b)
{
	for (const struct op *o = b->first; o; o = o->next) {
		if (op_has(o, END))
			return;
		if (o->code == IR_REDUCE || o->code == IR_SCAN)
			walk_reduce(w, o);
		else if (o->nblocks)
			walk_control(w, o);
		else if (o->code == IR_STORE)
			for (u32 i = 0; i < NUMEL; i++)
				((i32 *)(uintptr_t)value_at(w, operand(o, 0))[i])[0] =
					(i32)value_at(w, operand(o, 1))[i];
		else
			walk_elements(w, o);
	}
}

/* ------------------------------------------------------------------------------------------------------------- */

static void check_kernel(void)
{
	struct generator *g = calloc(1, sizeof *g);
	struct kernel *k = make_kernel(g);
	i32 want[STORED * NUMEL], got[STORED * NUMEL];
	memset(got, 0xEE, sizeof got);
	struct walker w = {.out = want};
	w.values.arena = &w.arena;
	*define(&w, k->params[0].value) = (u64)(uintptr_t)want;
	*define(&w, k->params[1].value) = 5;
	walk_block(&w, k->body);
	arena_free(&w.arena);
	u64 args[] = {(u64)(uintptr_t)got, 5};
	struct mem_range range = {"got", (char *)got, sizeof got};
	struct interp_launch l = {.args = args, .grid = {3, 1, 1}, .ranges = &range, .nranges = 1, .threads = 1};
	struct strbuf error = {.arena = &g->arena};
	if (!interp_run(interp_prepare(&g->arena, k), &l, &error))
		fail_msg("%s", error.at);
	if (memcmp(want, got, sizeof want)) {
		kernel_dump(k, stderr);
		fail_msg("the results differ");
	}
	arena_free(&g->arena);
	free(g);
}

static void test_random_kernels(void **state)
{
	(void)state;
	for (int k = 0; k < KERNELS; k++)
		check_kernel();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_kernels)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
