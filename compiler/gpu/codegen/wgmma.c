/* wgmma: all instructions of a dot are one piece of inline PTX, so that LLVM carries the accumulators past it only
 * once.
 *
 * A matrix descriptor describes an operand in shared memory to the instruction: its start address and two strides,
 * which follow from the buffer's layout (layout_swizzled). PTX ISA, "Matrix Descriptor Format".
 *
 * "Step" below is a step of k: the elements of K that one instruction multiplies (wgmma.k). The instructions of a step
 * differ in the rows and columns of the result. A wgmma group is what one wgmma.commit_group covers.
 *
 * Also ping-pong scheduling of two warpgroups with named barriers. */
#include "support/thresholds.h"
#include "gpu/codegen/nvptx_internal.h"
#include "gpu/layout/register_operand.h"

/* An operand in shared memory. */
struct matrix {
	const struct layout *mem;
	u32 bytes;              /* size of an element */
	int mn_dim;             /* dimension M or N; the other dimension is K */
	bool mn_major;          /* rows in memory run along mn_dim */
	u64 fields;             /* descriptor without the address */
	LLVMValueRef start;     /* descriptor (i64) of the first element that this warpgroup reads */
	u32 arg;                /* number of `start` among the operands of the inline PTX */
};

struct gemm {
	struct lower *l;
	const struct wgmma *w;
	const struct layout *acc;
	/* dimension of the result that the instruction's rows run along; number of columns of an instruction */
	int row_dim, n;
	u32 words, count;      /* number of accumulator registers of an instruction; of instructions of a step */
	struct matrix a, b;    /* a.mem NULL: A is in registers, `regs` */
	struct fragments regs;
	const struct pin *pin; /* pinned accumulators; NULL: accumulators are operands of the inline PTX */
	struct strbuf text, constraints; /* of the inline PTX */
	LLVMValueRef *args;
	u32 nargs, noutputs;   /* numbers of its input and output operands */
};

/* Bytes in shared memory from the matrix's first element to the element at coordinate c of dimension d. 0 if d has no
 * coordinate c: wgmma does not use that stride. */
static u32 byte_offset(const struct matrix *m, int d, u32 c)
{
	struct gf2 g = {0};
	u32 at;
	if (c >> m->mem->log2_size[d])
		return 0;
	for (int i = 0; i < m->mem->bits[LL_OFFSET]; i++)
		gf2_add(&g, m->mem->basis[LL_OFFSET][i]);
	tl_assert(gf2_solve(&g, c << layout_dim_shift(m->mem, d), &at));
	return at * m->bytes;
}

/* Describes a buffer of type t, whose layout is a layout_swizzled, K-major or MN-major. */
static struct matrix describe(struct lower *l, const struct type *t, int mn_dim)
{
	/* the descriptor's swizzle mode, by bytes of a row / 32: none, 32 bytes, 64 bytes, (no such row), 128 bytes */
	static const u8 modes[] = {0, 3, 2, 0, 1};
	struct matrix m = {.mem = t->layout, .bytes = (u32)dtype_bytes(type_dtype(t)), .mn_dim = mn_dim};
	m.mn_major = m.mem->basis[LL_OFFSET][0] == 1u << layout_dim_shift(m.mem, mn_dim);
	int along = m.mn_major ? mn_dim : 1 - mn_dim;
	u32 row = MIN((u32)t->shape[along] * m.bytes, 128u);
	tl_assert(m.mem == layout_swizzled(&l->s->ctx->layouts, 2, t->shape, along, (int)m.bytes * 8));
	/* stride: from 8 rows to the next 8; leading: to the next 128-byte piece of the same rows */
	u64 stride = byte_offset(&m, 1 - along, 8), leading = byte_offset(&m, along, row / m.bytes);
	m.fields = (leading >> 4) << 16 | (stride >> 4) << 32 | (u64)modes[row / 32] << 62;
	return m;
}

enum { FRAGMENT = 4 /* 32-bit registers of A that each thread passes to an instruction */ };

static u32 coordinate_of(const struct layout *lay, int d, u32 pos)
{
	return (pos & layout_dim_mask(lay, d)) >> layout_dim_shift(lay, d);
}

/* The number of this thread's warpgroup, by a shuffle so that ptxas knows it to be warp-uniform. */
static LLVMValueRef warpgroup(struct lower *l)
{
	return shuffle(l, LLVMBuildLShr(l->b, l->warp, c_i32(l, 2), ""), c_i32(l, 0));
}

/* Sets m->start for the operand in buffer v: the address in the descriptor depends on the rows or columns of the result
 * that this warpgroup computes. */
static void locate(struct gemm *g, struct matrix *m, const struct value *v)
{
	struct lower *l = g->l;
	u32 bases[LAYOUT_MAX_BITS] = {0}, any = 0;
	int n = g->acc->bits[LL_WARP] - 2;
	for (int i = 0; i < n; i++)
		any |= bases[i] =
			byte_offset(m, m->mn_dim, coordinate_of(g->acc, m->mn_dim, g->acc->basis[LL_WARP][2 + i])) >> 4;
	LLVMValueRef at = LLVMBuildPtrToInt(l->b, elem(l, v, 0), l->i32, "");
	at = LLVMBuildAnd(l->b, LLVMBuildLShr(l->b, at, c_i32(l, 4), ""), c_i32(l, 0x3FFF), "");
	if (any)
		at = LLVMBuildAdd(l->b, at, linear_map(l, l->b, warpgroup(l), bases, n), "");
	m->start = LLVMBuildOr(l->b, LLVMBuildZExt(l->b, at, l->i64, ""), LLVMConstInt(l->i64, m->fields, false), "");
}

static u32 add_input(struct gemm *g, const char *constraint, LLVMValueRef v)
{
	sb_printf(&g->constraints, "%s%s", g->constraints.len ? "," : "", constraint);
	g->args[g->nargs++] = v;
	return g->noutputs + g->nargs - 1;
}

/* Describes operand v in shared memory, and makes its descriptor an input of the inline PTX. transposed: v is MN-major
 * and is transposed in place first. */
static struct matrix describe_operand(struct gemm *g, const struct value *v, int mn_dim, bool transposed)
{
	const struct type *t = v->type;
	struct ir_context *ctx = g->l->s->ctx;
	if (transposed) {
		const struct layout *to = layout_swizzled(&ctx->layouts, 2, t->shape, 1 - mn_dim, type_elem_bits(t));
		turn_in_place(g->l, v, 1 - mn_dim, to);
		t = type_memdesc(ctx, t->elem, 2, t->shape, to, 0);
	}
	struct matrix m = describe(g->l, t, mn_dim);
	locate(g, &m, v);
	m.arg = add_input(g, "l", m.start);
	return m;
}

static void print_descriptor(struct gemm *g, const struct matrix *m, const char *reg, u32 mn, u32 k)
{
	u32 at = byte_offset(m, m->mn_dim, mn) + byte_offset(m, 1 - m->mn_dim, k);
	sb_printf(&g->text, "add.s64 %s, $%u, %u;\n\t", reg, m->arg, at >> 4);
}

/* The first row of the result that instruction i of a step computes, in warpgroup 0. */
static u32 first_row(const struct gemm *g, u32 i)
{
	return coordinate_of(g->acc, g->row_dim, layout_apply(g->acc, i * (u32)g->n / 2, 0, 0));
}

/* Prints instruction i of the step that begins at index k along K: D += A·B, or D = A·B if the PTX predicate named
 * `add` is false. */
static void print_product(struct gemm *g, u32 i, u32 k, const char *add)
{
	u32 pos = layout_apply(g->acc, i * (u32)g->n / 2, 0, 0), a = 0;
	u32 row = coordinate_of(g->acc, g->row_dim, pos), col = coordinate_of(g->acc, 1 - g->row_dim, pos);
	print_descriptor(g, &g->b, "db", col, k);
	if (g->a.mem) {
		print_descriptor(g, &g->a, "da", row, k);
	} else {
		LLVMValueRef words[4];
		load_fragment(&g->regs, 0, row, k, words);
		for (u32 w = 0; w < 4; w++)
			a = add_input(g, "r", words[w]);
	}
	sb_printf(&g->text, "wgmma.mma_async.sync.aligned.m64n%dk%u.%s ", g->n, g->w->k, g->w->types);
	sb_printf(&g->text, "%s, %s, db, %s", register_list(g->l, g->pin ? g->pin->name : "$", i * g->words, g->words),
		  g->a.mem ? "da" : register_list(g->l, "$", a - 3, 4), add);
	if (g->w->acc != DT_I32)
		sb_puts(&g->text, ", 1, 1");
	if (g->w->any_major && g->a.mem)
		sb_printf(&g->text, ", %d", g->a.mn_major);
	if (g->w->any_major)
		sb_printf(&g->text, ", %d", g->b.mn_major);
	sb_puts(&g->text, ";\n\t");
}

/* Prints a wgmma group of n steps, from step number `first` on. zero: the accumulators are zero before step 0. */
static void print_group(struct gemm *g, u32 first, u32 n, bool zero)
{
	sb_puts(&g->text, "wgmma.fence.sync.aligned;\n\t");
	for (u32 k = first; k < first + n; k++)
		for (u32 i = 0; i < g->count; i++)
			print_product(g, i, k * g->w->k, zero && !k ? "no" : "yes");
	sb_puts(&g->text, "wgmma.commit_group.sync.aligned;\n\t");
}

/* The number of accumulators in a 32-bit register. */
static u32 per_word(const struct value *v)
{
	return type_dtype(v->type) == DT_F16 ? 2 : 1;
}

u32 num_accumulators(const struct value *v)
{
	return num_elems(v) / per_word(v);
}

const char *accumulator_letter(const struct value *v)
{
	return type_dtype(v->type) == DT_F32 ? "f" : "r";
}

void get_accumulators(struct lower *l, const struct value *v, LLVMValueRef *words)
{
	u32 per = per_word(v);
	LLVMValueRef e[2];
	for (u32 i = 0; i < num_accumulators(v); i++) {
		for (u32 k = 0; k < per; k++)
			e[k] = elem(l, v, i * per + k);
		if (per == 1)
			words[i] = e[0];
		else
			pack(l, e, per, 32, &words[i]);
	}
}

/* Emits inline PTX whose results are the accumulators v. */
void set_accumulators(struct lower *l, const struct value *v, const char *text, const char *constraints,
		      LLVMValueRef *args, u32 nargs)
{
	u32 n = num_accumulators(v), per = per_word(v);
	LLVMTypeRef t = type_dtype(v->type) == DT_F32 ? l->f32 : l->i32,
		    *types = arena_array(&l->scratch, LLVMTypeRef, n);
	LLVMValueRef *at = new_tile(l, v);
	for (u32 i = 0; i < n; i++)
		types[i] = t;
	/* A separate named type. Otherwise instruction combining would make one phi of the structs of two wgmmas, and
	 * each extraction from that phi costs as much as all registers. */
	LLVMTypeRef ret = LLVMStructCreateNamed(l->ctx, "wgmma");
	LLVMStructSetBody(ret, types, n, false);
	LLVMValueRef all = inline_asm(l, text, constraints, ASM_CONVERGENT, ret, args, nargs);
	for (u32 i = 0; i < n; i++) {
		LLVMValueRef w = LLVMBuildExtractValue(l->b, all, i, "");
		if (per == 1)
			at[i] = w;
		else
			unpack(l, &w, 1, llvm_type(l, v->type), per, &at[i * per]);
	}
}

/* Makes the accumulators v results of the inline PTX. They are early-clobber, as the text writes them before it has
 * read all of A: even if an A register has the same value as an accumulator, LLVM must not give both one register. */
static void name_results(struct gemm *g, const struct value *v)
{
	g->noutputs = num_accumulators(v);
	for (u32 i = 0; i < g->noutputs; i++)
		sb_printf(&g->constraints, "%s=&%s", i ? "," : "", accumulator_letter(v));
}

/* Makes the accumulators v inputs too, in the registers of the results (constraints "0", "1", …). */
static void tie_accumulators(struct gemm *g, const struct value *v)
{
	get_accumulators(g->l, v, g->args + g->nargs);
	g->nargs += num_accumulators(v);
	for (u32 i = 0; i < num_accumulators(v); i++)
		sb_printf(&g->constraints, ",%u", i);
}

static void begin_text(struct gemm *g)
{
	sb_puts(&g->text,
		"{\n\t.reg .b64 da, db;\n\t.reg .pred yes, no;\n\tsetp.ne.b32 yes, 1, 0;\n\tsetp.ne.b32 no, 0, 0;\n\t");
}

static void wait_groups(struct lower *l, u32 pending)
{
	const char *wait = arena_printf(&l->scratch, "wgmma.wait_group.sync.aligned %u;", pending);
	inline_asm(l, wait, "~{memory}", ASM_CONVERGENT, l->v, NULL, 0);
}

/* Emits the operations that load and compute operand A of dot o in registers (operand_run, which lower_block skips),
 * and the packing of its fragments for all `steps` steps, which g->regs caches. Returns the LLVM instructions emitted,
 * so that the caller can move the instructions of each wgmma group to directly before the group. */
static struct instructions compute_operand(struct gemm *g, const struct op *o, u32 steps)
{
	struct lower *l = g->l;
	const struct value *a = operand(o, (u32)g->row_dim);
	struct mma shape = {.m = 16, .k = g->w->k};
	LLVMBasicBlockRef block = LLVMGetInsertBlock(l->b);
	LLVMValueRef before = LLVMGetLastInstruction(block), words[FRAGMENT];
	op_vec run = operand_run(&l->scratch, o);
	for (u32 i = 0; i < run.len; i++)
		lower_op(l, run.at[i]);
	g->regs = fragments_of(l, a, 0, &shape);
	g->regs.k_dim = 1 - g->row_dim;
	g->regs.other_dim = g->row_dim;
	g->regs.second = coordinate_of(g->acc, g->row_dim, g->acc->basis[LL_REG][1]);
	for (u32 k = 0; k < steps; k++)
		for (u32 i = 0; i < g->count; i++)
			load_fragment(&g->regs, 0, first_row(g, i), k * g->w->k, words);
	tl_assert(block == LLVMGetInsertBlock(l->b));
	return instructions_behind(l, before);
}

/* The wgmmas of a dot with A computed in registers: one inline PTX for each wgmma group (wgmma_groups). The steps of k
 * are distributed evenly to the groups. The A registers of a group are computed directly before its inline PTX. An
 * asynchronous dot first waits for the same group of the previous iteration, which may still read these registers. */
static void lower_groups(struct gemm *g, const struct op *o, u32 steps, bool zero)
{
	struct lower *l = g->l;
	u32 groups = (u32)wgmma_groups(o), per = steps / groups, n = FRAGMENT * g->count;
	struct instructions in = compute_operand(g, o, steps);
	LLVMValueRef *words = arena_array(&l->scratch, LLVMValueRef, per * n);
	for (u32 first = 0; first < steps; first += per) {
		if (o->attr[ATTR_ASYNC])
			wait_groups(l, groups - 1);
		for (u32 i = 0; i < per * g->count; i++)
			load_fragment(&g->regs, 0, first_row(g, i % g->count), (first + i / g->count) * g->w->k,
				      words + FRAGMENT * i);
		move_to_end(l, &in, words, per * n);
		g->nargs = 0;
		g->text.len = g->constraints.len = 0;
		g->b.arg = add_input(g, "l", g->b.start);
		begin_text(g);
		print_group(g, first, per, zero);
		sb_puts(&g->text, "}");
		sb_puts(&g->constraints, ",~{memory}");
		inline_asm(l, g->text.at, g->constraints.at, ASM_CONVERGENT, l->v, g->args, g->nargs);
	}
	move_to_end(l, &in, NULL, 0);
	if (!o->attr[ATTR_ASYNC])
		wait_groups(l, 0);
	pass_pin(l, g->pin, result(o));
}

void lower_wgmma(struct lower *l, const struct op *o)
{
	const struct value *v = result(o), *acc = operand(o, 2);
	u64 bits;
	bool zero = value_const_bits(acc, &bits) && !bits;
	struct gemm g = {.l = l,
			 .w = wgmma_of_dot(o),
			 .acc = v->type->layout,
			 .row_dim = (int)o->attr[ATTR_EXCHANGED],
			 .n = dims_get(o->attr[ATTR_INSTR], 1),
			 .text.arena = &l->scratch,
			 .constraints.arena = &l->scratch};
	u32 nk = (u32)operand(o, 1)->type->shape[0] / g.w->k, total = num_accumulators(v);
	const struct value *a = operand(o, (u32)g.row_dim), *b = operand(o, 1 - (u32)g.row_dim);
	g.count = num_elems(v) / ((u32)g.n / 2);
	g.words = total / g.count;
	g.pin = pin_of(l, acc);
	g.args = arena_array(&l->scratch, LLVMValueRef, 2 + (u32)4 * nk * g.count + total);
	if (!g.pin)
		name_results(&g, v);
	bool fetched = o->attr[ATTR_REGISTER_GROUPS];
	if (fetched && g.pin) {
		g.b = describe_operand(&g, b, 1 - g.row_dim, o->attr[ATTR_TRANSPOSED]);
		lower_groups(&g, o, nk, zero);
		return;
	}
	if (fetched) {
		if (o->attr[ATTR_ASYNC])
			wait_groups(l, 0);
		compute_operand(&g, o, nk);
	} else if (a->type->kind == TY_MEMDESC) {
		g.a = describe_operand(&g, a, g.row_dim, false);
	} else {
		struct mma shape = {.m = 16, .k = g.w->k};
		g.regs = fragments_of(l, a, 0, &shape);
	}
	g.b = describe_operand(&g, b, 1 - g.row_dim, o->attr[ATTR_TRANSPOSED]);
	begin_text(&g);
	for (u32 k = 0, per = nk / (u32)wgmma_groups(o); k < nk; k += per)
		print_group(&g, k, per, zero);
	if (!o->attr[ATTR_ASYNC])
		sb_puts(&g.text, "wgmma.wait_group.sync.aligned 0;\n\t");
	sb_puts(&g.text, "}");
	if (!zero && !g.pin)
		tie_accumulators(&g, acc);
	sb_puts(&g.constraints, ",~{memory}");
	if (g.pin) {
		inline_asm(l, g.text.at, g.constraints.at, ASM_CONVERGENT, l->v, g.args, g.nargs);
		pass_pin(l, g.pin, v);
	} else {
		set_accumulators(l, v, g.text.at, g.constraints.at, g.args, g.nargs);
	}
}

/* Accumulators that are LLVM values are operands and results of the wait's inline PTX, so that LLVM moves no use of
 * them before it. Pinned accumulators need not be: LLVM does not reorder inline PTX with side effects. */
void lower_wgmma_wait(struct lower *l, const struct op *o)
{
	const char *wait = arena_printf(&l->scratch, "wgmma.wait_group.sync.aligned %d;", (int)o->attr[ATTR_PENDING]);
	bool waited = false;
	for (u32 r = 0; r < o->nresults; r++) {
		const struct value *v = operand(o, r);
		struct gemm g = {.l = l, .text.arena = &l->scratch, .constraints.arena = &l->scratch};
		if (pin_of(l, v))
			continue;
		g.args = arena_array(&l->scratch, LLVMValueRef, num_accumulators(v));
		name_results(&g, v);
		tie_accumulators(&g, v);
		sb_puts(&g.constraints, ",~{memory}");
		set_accumulators(l, &o->results[r], waited ? "" : wait, g.constraints.at, g.args, g.nargs);
		waited = true;
	}
	if (!waited)
		inline_asm(l, wait, "~{memory}", ASM_CONVERGENT, l->v, NULL, 0);
	for (u32 r = 0; r < o->nresults; r++)
		if (pin_of(l, operand(o, r)))
			pass_pin(l, pin_of(l, operand(o, r)), &o->results[r]);
}

/* Numbers of the named barriers of warpgroup w: FIRST_TURN + w for ping-pong scheduling, FIRST_OF_WARPGROUP + w for
 * warpgroup_barrier. Barrier 0 is for all threads. */
enum { FIRST_TURN = 1, FIRST_OF_WARPGROUP = 3 };

/* Synchronizes the warps of the warpgroup. */
void warpgroup_barrier(struct lower *l)
{
	LLVMValueRef id = LLVMBuildAdd(l->b, warpgroup(l), c_i32(l, FIRST_OF_WARPGROUP), "");
	inline_asm(l, "bar.sync $0, 128;", "r,~{memory}", ASM_CONVERGENT, l->v, &id, 1);
}

/* Ping-pong scheduling: at IR_PINGPONG_WAIT warpgroup w waits at named barrier FIRST_TURN + w; at IR_PINGPONG_ARRIVE
 * the other warpgroup arrives there.
 *
 * ptxas moves arithmetic past a barrier freely. Arithmetic moved after this barrier runs while the other warpgroup
 * waits, and an attention kernel takes up to 12 % longer. So the barrier is made a separate basic block, past which
 * ptxas moves nothing: a loop that repeats while the barrier's number exceeds 15. It never does, but ptxas cannot know
 * that of a number that comes from a shuffle. */
void lower_turn(struct lower *l, const struct op *o)
{
	bool wait = o->code == IR_PINGPONG_WAIT;
	i64 only = wait ? o->attr[ATTR_FIRST] : o->attr[ATTR_ONLY];
	LLVMValueRef w = warpgroup(l), id = wait ? LLVMBuildAdd(l->b, w, c_i32(l, FIRST_TURN), "")
						 : LLVMBuildSub(l->b, c_i32(l, FIRST_TURN + 1), w, "");
	struct guarded g = begin_if(l->b, only ? LLVMBuildICmp(l->b, LLVMIntEQ, w, c_i32(l, only - 1), "") : NULL);
	const char *text =
		wait ? "{\n\t.reg .pred again;\n\tsetp.gt.u32 again, $0, 15;\nturn${:uid}:\n\tbar.sync $0, %d;\n\t"
		       "@again bra.uni turn${:uid};\n\t}"
		     : "bar.arrive $0, %d;";
	inline_asm(l, arena_printf(&l->scratch, text, 32 * l->k->num_warps), "r,~{memory}", ASM_CONVERGENT, l->v, &id,
		   1);
	end_if(l->b, &g);
}
