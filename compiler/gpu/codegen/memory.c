/* Loads, stores, atomics and asynchronous copies of global memory.
 *
 * Accesses are as wide as the axis analysis allows. Neighbouring elements whose address may be any multiple of their
 * size within a 32-bit word are loaded by unaligned vector loads, called runs here. A masked access, or one with a
 * cache policy, is inline PTX with a predicate. Other accesses are LLVM loads and stores. If several threads hold the
 * same element, only one of them writes it. */
#include <math.h>

#include "gpu/codegen/nvptx_internal.h"
#include "ir/text.h"

/* The form in which an instruction loads or stores a vector: n "words" of `bits` bits (8 to 64), their LLVM type `as`,
 * and the vector suffix and constraint letter in PTX. Words are integers, except that fp32 elements stay floats. */
struct words {
	LLVMTypeRef as;
	int bits;
	u32 n;
	const char *vec;
	char constraint;
};

static struct words words_of(struct lower *l, u32 bytes, LLVMTypeRef elem)
{
	struct words w = {.vec = ""};
	int elem_bits = type_bits(elem);
	w.bits = bytes >= 8 && elem_bits == 64 ? 64 : bytes >= 4 ? 32 : (int)bytes * 8;
	w.n = bytes * 8 / (u32)w.bits;
	w.as = elem == l->f32 ? elem : int_type(l, w.bits);
	w.constraint = w.bits == 64 ? 'l' : w.bits == 32 ? (elem == l->f32 ? 'f' : 'r') : 'h';
	w.vec = w.n == 4 ? ".v4" : w.n == 2 ? ".v2" : "";
	return w;
}

/* The accesses of an operation: each thread makes n of them, one for each of its vectors. */
struct lane_access {
	const struct value *ptr, *mask;
	const struct type *type; /* of the tile loaded or stored */
	LLVMTypeRef elem;        /* element type in memory */
	LLVMValueRef mine;       /* true in the accessing threads; NULL: all */
	struct access_vector v;
	/* number of vectors of a thread; elements of a vector; register bits that number the elements of a vector */
	u32 n, width, vec_mask;
	struct words w; /* the words of a vector */
};

/* sizes: the attribute of o that holds its vector sizes, as for vector_of (gpu/layout/memory_access.h). */
static struct lane_access access_of(struct lower *l, const struct op *o, const struct type *type, i64 sizes)
{
	struct lane_access a = {.ptr = operand(o, 0),
				.mask = mask_of(o),
				.type = type,
				.elem = memory_type(llvm_type(l, type)),
				.v = vector_of(o, sizes)};
	a.width = 1u << a.v.bits;
	a.n = num_elems(a.ptr) / a.width;
	for (int i = 0; i < a.v.bits; i++)
		a.vec_mask |= 1u << a.v.reg[i];
	a.w = words_of(l, a.width * (u32)type_bits(a.elem) / 8, a.elem);
	return a;
}

/* The register of element e of vector i. */
static u32 vector_reg(const struct lane_access *a, u32 i, u32 e)
{
	u32 r = spread(i, ~a->vec_mask);
	for (int k = 0; k < a->v.bits; k++)
		if (e >> k & 1)
			r |= 1u << a->v.reg[k];
	return r;
}

static LLVMValueRef owner_of(struct lower *l, const struct value *v)
{
	return owner(l, type_is_tensor(v->type) ? v->type->layout : NULL);
}

/* The predicate (i1) of the access of vector i. NULL: it is always made. */
static LLVMValueRef predicate(struct lower *l, const struct lane_access *a, u32 i)
{
	return and_i1(l, a->mine, a->mask ? elem(l, a->mask, vector_reg(a, i, 0)) : NULL);
}

/* The words of vector i of v; zeros if v is NULL. */
static void words_of_vector(struct lower *l, const struct lane_access *a, const struct value *v, u32 i,
			    LLVMValueRef *words)
{
	LLVMValueRef elems[16] = {0};
	for (u32 e = 0; e < a->width; e++)
		elems[e] = v ? to_memory(l->b, elem(l, v, vector_reg(a, i, e))) : LLVMConstNull(a->elem);
	if (a->w.as == l->f32)
		memcpy(words, elems, a->width * sizeof *words);
	else
		pack(l, elems, a->width, a->w.bits, words);
}

/* Unpacks vector i from `words` to at[], by register. A masked-off element is taken from tile `other`, if given. */
static void elements_of_vector(struct lower *l, const struct lane_access *a, LLVMValueRef *words,
			       const struct value *other, u32 i, LLVMValueRef *at)
{
	LLVMValueRef elems[16] = {0};
	unpack(l, words, a->w.n, a->elem, a->width, elems);
	for (u32 e = 0; e < a->width; e++) {
		u32 reg = vector_reg(a, i, e);
		if (other && a->mask) {
			LLVMValueRef x = to_memory(l->b, elem(l, other, reg));
			elems[e] = LLVMBuildSelect(l->b, elem(l, a->mask, reg), elems[e], x, "");
		}
		at[reg] = from_memory(l->b, elems[e], llvm_type(l, a->type));
	}
}

/* --- inline PTX ---------------------------------------------------------------------------------------------- */

/* A call of inline PTX under construction. */
struct ptx {
	struct strbuf constraints;
	LLVMValueRef args[8];
	u32 nargs, n; /* number of inputs; number of all operands */
};

/* Appends an operand: the input v, or an output if v is NULL. Returns its number. */
static u32 add_operand(struct lower *l, struct ptx *p, const char *kind, char constraint, LLVMValueRef v)
{
	p->constraints.arena = &l->scratch;
	sb_printf(&p->constraints, "%s%s%c", p->n ? "," : "", kind, constraint);
	if (v)
		p->args[p->nargs++] = LLVMTypeOf(v) == l->i8 ? LLVMBuildZExt(l->b, v, l->i16, "") : v;
	return p->n++;
}

static void add_words(struct lower *l, struct ptx *p, const struct words *w, LLVMValueRef *words)
{
	for (u32 i = 0; i < w->n; i++)
		add_operand(l, p, "", w->constraint, words[i]);
}

/* The predicate prefix of an instruction that is guarded by pred; empty if pred is NULL. */
static const char *guard(struct lower *l, struct ptx *p, LLVMValueRef pred)
{
	return pred ? arena_printf(&l->scratch, "@$%u ", add_operand(l, p, "", 'b', pred)) : "";
}

/* Emits the inline PTX, with side effects. */
static LLVMValueRef finish(struct lower *l, struct ptx *p, const char *text, LLVMTypeRef ret)
{
	sb_puts(&p->constraints, ",~{memory}");
	return inline_asm(l, text, p->constraints.at, ASM_EFFECT, ret, p->args, p->nargs);
}

/* --- loads and stores ---------------------------------------------------------------------------------------- */

/* The cache modifier, eviction priority and L2 prefetch size of o as PTX suffixes. NULL: the access is volatile. */
static const char *policy_of(struct lower *l, const struct op *o)
{
	static const char *const loads[] = {"", ".ca", ".cg", "", ".cs", "", ".cv"}, *const stores[] = {
											     "",    "",    ".cg", ".wb",
											     ".cs", ".wt", ""};
	bool load = o->code == IR_LOAD;
	if (load && o->attr[ATTR_VOLATILE])
		return NULL;
	const char *policy = (load ? loads : stores)[o->attr[ATTR_CACHE]];
	if (o->attr[ATTR_EVICT])
		policy = o->attr[ATTR_EVICT] == EVICT_FIRST ? ".L1::evict_first" : ".L1::evict_last";
	return load && o->attr[ATTR_PREFETCH] ? arena_printf(&l->scratch, "%s.L2::256B", policy) : policy;
}

/* A scalar or vector operand, of n registers. */
static const char *list(struct lower *l, const char *name, u32 first, u32 n)
{
	return n == 1 ? arena_printf(&l->scratch, "%s%u", name, first) : register_list(l, name, first, n);
}

/* Whether v is a constant. Sets *bits to its value. */
static bool is_known(LLVMValueRef v, u64 *bits)
{
	if (LLVMIsAConstantInt(v)) {
		*bits = LLVMConstIntGetZExtValue(v);
		return true;
	}
	LLVMBool inexact;
	float f = LLVMIsAConstantFP(v) ? (float)LLVMConstRealGetDouble(v, &inexact) : NAN;
	u32 word;
	memcpy(&word, &f, sizeof word);
	*bits = word;
	return !isnan(f);
}

/* Loads the words of a vector from ptr + constant bytes. If the predicate is false, words[] keeps the values passed in.
 * If these are constants, the inline PTX sets them itself, which keeps the moves out of LLVM IR. */
static void masked_load(struct lower *l, LLVMValueRef ptr, u32 constant, LLVMValueRef pred, const struct words *w,
			const char *policy, LLVMValueRef *words)
{
	struct ptx p = {0};
	struct strbuf text = {.arena = &l->scratch};
	LLVMTypeRef t = w->bits == 8 ? l->i16 : w->as, types[4];
	u64 bits;
	bool known = true;
	for (u32 i = 0; i < w->n && pred; i++)
		known &= is_known(words[i], &bits);
	for (u32 i = 0; i < w->n; i++) {
		add_operand(l, &p, known ? "=&" : "=", w->constraint, NULL);
		types[i] = t;
		if (known && pred && is_known(words[i], &bits))
			sb_printf(&text, "mov.b%d $%u, 0x%llX;\n\t", MAX(w->bits, 16), i, (unsigned long long)bits);
	}
	for (u32 i = 0; i < w->n && !known; i++)
		add_operand(l, &p, "", (char)('0' + i), words[i]);
	u32 at = add_operand(l, &p, "", 'l', ptr);
	sb_printf(&text, "%sld.%s%s%s.b%d %s, [$%u", guard(l, &p, pred), policy ? "global" : "volatile.global",
		  policy ? policy : "", w->vec, w->bits, list(l, "$", 0, w->n), at);
	sb_puts(&text, constant ? arena_printf(&l->scratch, "+%u];", constant) : "];");
	LLVMTypeRef ret = w->n == 1 ? t : LLVMStructTypeInContext(l->ctx, types, w->n, false);
	LLVMValueRef v = inline_asm(l, text.at, p.constraints.at, ASM_EFFECT, ret, p.args, p.nargs);
	for (u32 i = 0; i < w->n; i++) {
		words[i] = w->n == 1 ? v : LLVMBuildExtractValue(l->b, v, i, "");
		if (w->bits == 8)
			words[i] = LLVMBuildTrunc(l->b, words[i], l->i8, "");
	}
}

/* For an operation that only some threads execute (`mine`): passes the elements of its result to the other threads that
 * hold copies of them, through shared memory. */
static void share_results(struct lower *l, const struct op *o, LLVMValueRef mine)
{
	const struct value *v = result(o);
	LLVMValueRef base = shared_base(l, o);
	struct guarded g = begin_if(l->b, mine);
	if (type_is_tensor(v->type)) {
		const struct layout *flat = row_major_of(l, v->type);
		write_shared(l, v, flat, base);
		end_if(l->b, &g);
		barrier(l);
		read_shared(l, v, flat, base);
	} else {
		LLVMBuildStore(l->b, elem(l, v, 0), base);
		end_if(l->b, &g);
		barrier(l);
		LLVMValueRef *at = new_tile(l, v);
		at[0] = LLVMBuildLoad2(l->b, llvm_type(l, v->type), base, "");
	}
}

/* --- unaligned vector loads ---------------------------------------------------------------------------------- */

/* Loads a piece of a run, 1, 2 or 4 bytes, from base + offset + constant, in bytes. Zero if the predicate is false. */
static LLVMValueRef load_piece(struct lower *l, LLVMValueRef base, LLVMValueRef offset, u32 constant, int bytes,
			       LLVMValueRef pred, const char *policy)
{
	struct words w = words_of(l, (u32)bytes, int_type(l, bytes * 8));
	LLVMValueRef p = offset ? gep(l->b, base, l->i8, offset) : base, word = LLVMConstNull(int_type(l, w.bits));
	if (pred || *policy)
		masked_load(l, p, constant, pred, &w, policy, &word);
	else
		load_vector(l, w.as, 1, gep(l->b, p, l->i8, c_i64(l, constant)), &word);
	return word;
}

/* Unaligned vector loads. A run is a load of `words` 32-bit words from an address p that is a multiple of `unit` bytes.
 * It reads no byte outside them. p is s bytes after the start of an aligned word, the first word. The words - 1 aligned
 * words after the first word are loaded whole. The s bytes of the first word before p do not belong to the run, but s
 * bytes after the last aligned word do, at the same places within a word. So pieces of both ends make up a single word.
 * A funnel shift of each word with the next one, the last with the first, by s bytes gives the result. */
struct runs {
	/* for each run: the pieces of the single word that its two ends make up, the other words - 1 words, and the
	 * prmt selector of the shift */
	LLVMValueRef *parts;
	u32 n, words, pieces; /* number of runs; words of a run; pieces of the word that its ends make up */
	int unit;             /* bytes of a piece */
	LLVMBasicBlockRef block; /* the basic block of the loads */
};

static u32 parts_of_each(const struct runs *r)
{
	return r->pieces + r->words;
}

static void load_run(struct lower *l, const struct runs *r, LLVMValueRef p, LLVMValueRef pred, const char *policy,
		     LLVMValueRef *parts)
{
	/* Inline PTX hides p from LLVM. Otherwise LLVM makes induction variables of all values computed from p, more
	 * than there are registers. */
	LLVMValueRef w = inline_asm(l, "and.b64 $0, $1, -4;", "=l,l", ASM_PURE, l->gptr, &p, 1);
	LLVMValueRef s = inline_asm(l, "cvt.u32.u64 $0, $1;", "=r,l", ASM_PURE, l->i32, &p, 1);
	s = LLVMBuildAnd(l->b, s, c_i32(l, 4 - r->unit), "");
	parts[parts_of_each(r) - 1] =
		LLVMBuildAdd(l->b, LLVMBuildMul(l->b, s, c_i32(l, 0x1111), ""), c_i32(l, 0x3210), "");
	for (u32 i = 0; i < r->pieces; i++) {
		u32 at = i * (u32)r->unit;
		LLVMValueRef end = NULL; /* the last piece of the first word always belongs to the run */
		if (i < r->pieces - 1) {
			LLVMValueRef before = LLVMBuildICmp(l->b, LLVMIntULT, c_i32(l, at), s, "");
			end = LLVMBuildSelect(l->b, before, c_i64(l, 4 * r->words), c_i64(l, 0), "");
		}
		parts[i] = load_piece(l, w, end, at, r->unit, pred, policy);
	}
	for (u32 i = 1; i < r->words; i++)
		parts[r->pieces + i - 1] = load_piece(l, w, NULL, 4 * i, 4, pred, policy);
}

static void finish_run(struct lower *l, const struct runs *r, u32 i, LLVMValueRef *out)
{
	LLVMValueRef *parts = r->parts + i * parts_of_each(r), words[4];
	pack(l, parts, r->pieces, 32, words);
	memcpy(words + 1, parts + r->pieces, (r->words - 1) * sizeof *words);
	for (u32 k = 0; k < r->words; k++)
		out[k] = permute_bytes(l, words[k], words[(k + 1) % r->words], parts[parts_of_each(r) - 1]);
}

/* The shifts are emitted at the current point if it is in the basic block of the loads. Otherwise they are emitted
 * directly after the loads, since code on other paths may use the words too. */
void finish_runs(struct lower *l, struct tile *t)
{
	const struct runs *r = t->runs;
	struct insertion_point here = go_behind(l, LLVMGetInsertBlock(l->b) == r->block ? NULL : t->last);
	t->words = arena_array(&l->scratch, LLVMValueRef, r->n * r->words);
	for (u32 i = 0; i < r->n; i++)
		finish_run(l, r, i, t->words + i * r->words);
	t->last = t->words[r->n * r->words - 1];
	t->runs = NULL;
	come_back(l, here);
}

LLVMValueRef *parts_of_runs(const struct runs *r, u32 *n)
{
	*n = r->n * parts_of_each(r);
	return r->parts;
}

struct runs *runs_of_parts(struct lower *l, LLVMValueRef *parts, const struct runs *shape)
{
	struct runs *r = arena_dup(&l->scratch, shape, sizeof *shape);
	r->parts = parts;
	r->block = LLVMGetInsertBlock(l->b);
	return r;
}

struct runs *runs_of_words(struct lower *l, LLVMValueRef *words, const struct runs *shape)
{
	u32 each = parts_of_each(shape);
	LLVMValueRef *parts = arena_array(&l->scratch, LLVMValueRef, shape->n * each);
	for (u32 i = 0; i < shape->n; i++, words += shape->words) {
		LLVMValueRef *to = parts + i * each;
		unpack(l, words, 1, int_type(l, 8 * shape->unit), shape->pieces, to);
		memcpy(to + shape->pieces, words + 1, (shape->words - 1) * sizeof *words);
		to[each - 1] = c_i32(l, 0x3210);
	}
	return runs_of_parts(l, parts, shape);
}

/* Whether the words that a load gives are those of struct tile: 32 bits, elements of 8 or 16 bits, in register
 * order. */
static bool has_words(struct lower *l, const struct lane_access *a, int word_bits)
{
	int bits = type_bits(llvm_type(l, a->type));
	bool in_order = word_bits == 32 && bits >= 8 && bits < 32;
	for (int i = 0; i < a->v.bits; i++)
		in_order &= a->v.reg[i] == i;
	return in_order;
}

static void load_runs(struct lower *l, const struct op *o)
{
	const struct value *other = o->noperands > 2 ? operand(o, 2) : NULL;
	struct lane_access a = access_of(l, o, result(o)->type, o->attr[ATTR_VECTOR]);
	LLVMValueRef words[4];
	int unit = (int)o->attr[ATTR_UNIT];
	struct runs r = {.n = a.n,
			 .words = a.width * (u32)type_bits(a.elem) / 32,
			 .pieces = 4 / (u32)unit,
			 .unit = unit,
			 .block = LLVMGetInsertBlock(l->b)};
	u32 each = parts_of_each(&r);
	r.parts = arena_array(&l->scratch, LLVMValueRef, r.n * each);
	for (u32 i = 0; i < a.n; i++) {
		const char *policy = policy_of(l, o);
		LLVMValueRef pred = predicate(l, &a, i);
		load_run(l, &r, elem(l, a.ptr, vector_reg(&a, i, 0)), pred, policy, r.parts + i * each);
	}
	if (!other && has_words(l, &a, 32)) {
		struct tile *tile = arena_new(&l->scratch, struct tile);
		*tile = (struct tile){.n = num_elems(result(o)),
				      .runs = arena_dup(&l->scratch, &r, sizeof r),
				      .last = r.words > 1 ? r.parts[r.n * each - 2] : NULL};
		map_put(&l->tiles, result(o), tile);
		return;
	}
	LLVMValueRef *at = new_tile(l, result(o));
	for (u32 i = 0; i < a.n; i++) {
		finish_run(l, &r, i, words);
		elements_of_vector(l, &a, words, other, i, at);
	}
}

void lower_load(struct lower *l, const struct op *o)
{
	if (o->attr[ATTR_UNIT]) {
		load_runs(l, o);
		return;
	}
	const struct value *other = o->noperands > 2 ? operand(o, 2) : NULL;
	struct access_vector near = vector_of(o, o->attr[ATTR_ADDRESS]);
	struct lane_access a = access_of(l, o, result(o)->type, o->attr[ATTR_VECTOR]);
	LLVMValueRef *at = new_tile(l, result(o)), words[16] = {0};
	const char *policy = policy_of(l, o);
	a.mine = o->scratch_size ? owner_of(l, a.ptr) : NULL;
	bool by_hand = a.mask || a.mine || !policy || *policy;
	struct tile *tile = map_get(&l->tiles, result(o));
	if (!a.mine && has_words(l, &a, a.w.bits))
		tile->words = arena_array(&l->scratch, LLVMValueRef, a.n * a.w.n);
	u32 again = o->attr[ATTR_VOLATILE] ? 0 : constant_bits(l, result(o)) & ~a.vec_mask;
	for (u32 i = 0; i < a.n; i++) {
		u32 reg = vector_reg(&a, i, 0), same = i;
		if (reg & again) { /* a load of the same element precedes */
			while (vector_reg(&a, same, 0) != (reg & ~again))
				same--;
			if (tile->words)
				memcpy(tile->words + i * a.w.n, tile->words + same * a.w.n, a.w.n * sizeof *words);
			for (u32 e = 0; e < a.width; e++)
				at[vector_reg(&a, i, e)] = at[vector_reg(&a, same, e)];
			continue;
		}
		if (by_hand) {
			/* elements with successive addresses: one address register, and constant offsets from it */
			u32 first = reg, behind = 0;
			for (int k = 0; k < near.bits; k++)
				if (reg >> near.reg[k] & 1) {
					first ^= 1u << near.reg[k];
					behind |= 1u << k;
				}
			words_of_vector(l, &a, other, i, words);
			LLVMValueRef pred = predicate(l, &a, i);
			masked_load(l, elem(l, a.ptr, first), behind * (u32)type_bits(a.elem) / 8, pred, &a.w, policy,
				    words);
		} else {
			load_vector(l, a.w.as, a.w.n, elem(l, a.ptr, reg), words);
		}
		if (tile->words)
			memcpy(tile->words + i * a.w.n, words, a.w.n * sizeof *words);
		elements_of_vector(l, &a, words, NULL, i, at);
	}
	if (a.mine)
		share_results(l, o, a.mine);
}

void lower_store(struct lower *l, const struct op *o)
{
	struct lane_access a = access_of(l, o, operand(o, 1)->type, o->attr[ATTR_VECTOR]);
	const char *policy = policy_of(l, o);
	a.mine = owner_of(l, a.ptr);
	for (u32 i = 0; i < a.n; i++) {
		LLVMValueRef at = elem(l, a.ptr, vector_reg(&a, i, 0)), pred = predicate(l, &a, i), words[16] = {0};
		words_of_vector(l, &a, operand(o, 1), i, words);
		if (!pred && !*policy) {
			store_vector(l, words, a.w.n, at);
			continue;
		}
		struct ptx p = {0};
		add_operand(l, &p, "", 'l', at);
		add_words(l, &p, &a.w, words);
		finish(l, &p,
		       arena_printf(&l->scratch, "%sst.global%s%s.b%d [$0], %s;", guard(l, &p, pred), policy, a.w.vec,
				    a.w.bits, list(l, "$", 1, a.w.n)),
		       l->v);
	}
}

/* --- asynchronous copies ------------------------------------------------------------------------------------- */

void lower_async_copy(struct lower *l, const struct op *o)
{
	const struct type *mem = operand(o, 1)->type;
	struct lane_access a = access_of(l, o, mem, o->attr[ATTR_VECTOR]);
	const struct layout *lay = a.ptr->type->layout;
	u32 bytes = (u32)dtype_bytes(type_dtype(mem)), size = a.width * bytes;
	if (size < 4) { /* only in TTGIR text: the pipeliner checks the size before it makes a copy */
		diag(l->s->diags, E_COPY_PIECES, o->loc, size, PLURAL(size));
		return;
	}
	struct memory_map m = map_to_memory(lay, mem->layout, a.v.bits);
	LLVMValueRef base = elem(l, operand(o, 1), 0), mine = owner(l, lay);
	LLVMValueRef thread = thread_map(l, l->entry, m.basis[LL_LANE], m.basis[LL_WARP], m.bits[LL_WARP]);
	tl_assert(m.vec_bits == a.v.bits);
	/* the last operand (ignore-src) is true if zeros are written instead: the vector is masked off */
	const char *text = arena_printf(&l->scratch, "cp.async.%s.shared.global [$0], [$1], %u%s;",
					size == 16 ? "cg" : "ca", size, a.mask ? ", $2" : "");
	struct guarded g = begin_if(l->b, mine);
	for (u32 i = 0; i < a.n; i++) {
		u32 reg = vector_reg(&a, i, 0), at = linear(m.basis[LL_REG], reg);
		bool clash = at & thread_bits(&m);
		LLVMValueRef off = clash ? LLVMBuildXor(l->b, thread, c_i32(l, at), "") : thread;
		struct ptx p = {0};
		off = LLVMBuildMul(l->b, off, c_i32(l, bytes), "");
		add_operand(l, &p, "", 'r', shared_at(l, base, off, clash ? 0 : at * bytes));
		add_operand(l, &p, "", 'l', elem(l, a.ptr, reg));
		if (a.mask)
			add_operand(l, &p, "", 'b', LLVMBuildNot(l->b, elem(l, a.mask, reg), ""));
		finish(l, &p, text, l->v);
	}
	end_if(l->b, &g);
}

/* --- atomics ------------------------------------------------------------------------------------------------- */

static const char *atomic_type(enum dtype d, enum rmw_kind k)
{
	int bits = dtype_bits(d);
	switch (k) {
	case RMW_FADD: return d == DT_F16 ? "noftz.f16" : d == DT_BF16 ? "noftz.bf16" : bits == 64 ? "f64" : "f32";
	case RMW_MAX:
	case RMW_MIN: return bits == 64 ? "s64" : "s32";
	case RMW_ADD:
	case RMW_UMAX:
	case RMW_UMIN: return bits == 64 ? "u64" : "u32";
	default: return bits == 64 ? "b64" : bits == 16 ? "b16" : "b32";
	}
}

static const char *const rmw_names[] = {"and", "or", "xor", "add", "add", "max", "min", "max", "min", "exch"};

static const char *order_of(struct lower *l, const struct op *o)
{
	return arena_printf(&l->scratch, "%s.%s", attr_enum(KIND_sem)[o->attr[ATTR_SEM]],
			    attr_enum(KIND_scope)[o->attr[ATTR_SCOPE]]);
}

/* An atomic operation on one element, under the predicate pred. The result is the old value, or 0 if pred is false. */
static LLVMValueRef emit_atomic(struct lower *l, const struct op *o, LLVMValueRef ptr, LLVMValueRef cmp,
				LLVMValueRef val, LLVMValueRef pred)
{
	enum dtype d = type_dtype(result(o)->type);
	LLVMTypeRef t = LLVMTypeOf(val);
	int bits = type_bits(t);
	char c = bits == 64 ? 'l' : bits == 32 ? 'r' : 'h';
	enum rmw_kind kind = cmp ? RMW_EXCH : (enum rmw_kind)o->attr[ATTR_RMW];
	struct ptx p = {0};
	add_operand(l, &p, "=", c, NULL);
	add_operand(l, &p, "", '0', LLVMConstNull(int_type(l, bits))); /* result if pred is false */
	add_operand(l, &p, "", 'l', ptr);
	if (cmp)
		add_operand(l, &p, "", c, to_bits(l->b, cmp));
	add_operand(l, &p, "", c, to_bits(l->b, val));
	const char *text =
		arena_printf(&l->scratch, "%satom.global.%s.%s.%s $0, [$2], $3%s;", guard(l, &p, pred), order_of(l, o),
			     cmp ? "cas" : rmw_names[kind], atomic_type(d, kind), cmp ? ", $4" : "");
	return from_bits(l->b, finish(l, &p, text, int_type(l, bits)), t);
}

/* Atomic additions of vectors of floats, one instruction for each vector; each element is atomic separately. */
static void add_vectors(struct lower *l, const struct op *o, LLVMValueRef mine)
{
	struct lane_access a = access_of(l, o, operand(o, 1)->type, o->attr[ATTR_VECTOR]);
	enum dtype d = type_dtype(a.type);
	const char *type = d == DT_F32 ? "f32" : d == DT_F16 ? "f16x2" : "bf16x2", *half = d == DT_F32 ? "" : ".noftz";
	a.mine = mine;
	for (u32 i = 0; i < a.n; i++) {
		LLVMValueRef words[8];
		struct ptx p = {0};
		words_of_vector(l, &a, operand(o, 1), i, words);
		LLVMValueRef pred = predicate(l, &a, i);
		add_operand(l, &p, "", 'l', elem(l, a.ptr, vector_reg(&a, i, 0)));
		add_words(l, &p, &a.w, words);
		finish(l, &p,
		       arena_printf(&l->scratch, "{ .reg .b32 t<%u>; %satom.global.%s.add%s%s.%s %s, [$0], %s; }",
				    a.w.n, guard(l, &p, pred), order_of(l, o), half, a.w.vec, type,
				    list(l, "t", 0, a.w.n), list(l, "$", 1, a.w.n)),
		       l->v);
	}
}

/* Whether o is an atomic operation on 16 bits for which the target has no instruction, so that a compare-and-swap loop
 * on the element replaces it. */
static bool is_by_cas(struct lower *l, const struct op *o)
{
	enum dtype d = type_dtype(operand(o, 1)->type);
	if (o->code == IR_ATOMIC_CAS || dtype_bits(d) != 16)
		return false;
	return o->attr[ATTR_RMW] != RMW_FADD || (d == DT_BF16 && !l->s->target->has_bf16_atomics);
}

/* The 16-bit value that such an atomic operation stores if the element is `old`. */
static LLVMValueRef updated(struct lower *l, const struct op *o, LLVMValueRef old, LLVMValueRef val)
{
	enum dtype d = type_dtype(operand(o, 1)->type);
	enum rmw_kind kind = (enum rmw_kind)o->attr[ATTR_RMW];
	if (kind == RMW_EXCH)
		return to_bits(l->b, val);
	LLVMValueRef before = small_to_f32(l, from_bits(l->b, old, LLVMTypeOf(val)), d);
	LLVMValueRef x[] = {before, small_to_f32(l, val, d)};
	const char *extremum = kind == RMW_MAX ? "llvm.maxnum" : "llvm.minnum";
	LLVMValueRef r = kind == RMW_FADD ? LLVMBuildFAdd(l->b, x[0], x[1], "") : intrinsic_on(l->b, extremum, x, 2);
	return to_bits(l->b, f32_to_small(l, r, d, ROUND_DEFAULT));
}

static LLVMValueRef update_by_cas(struct lower *l, const struct op *o, LLVMValueRef ptr, LLVMValueRef val,
				  LLVMValueRef pred)
{
	struct guarded g = begin_if(l->b, pred);
	LLVMBasicBlockRef start = LLVMGetInsertBlock(l->b), loop = new_block(l->b),
			  done = pred ? g.end : new_block(l->b);
	g.from[1] = loop;
	LLVMMoveBasicBlockAfter(done, loop); /* fall-through, without a jump */
	LLVMValueRef first = inline_asm(l, "ld.relaxed.gpu.global.b16 $0, [$1];", "=h,l", ASM_EFFECT, l->i16, &ptr, 1);
	LLVMBuildBr(l->b, loop);
	LLVMPositionBuilderAtEnd(l->b, loop);
	LLVMValueRef old = LLVMBuildPhi(l->b, l->i16, "");
	LLVMValueRef args[] = {ptr, old, updated(l, o, old, val)};
	LLVMValueRef seen =
		inline_asm(l, arena_printf(&l->scratch, "atom.global.%s.cas.b16 $0, [$1], $2, $3;", order_of(l, o)),
			   "=h,l,h,h,~{memory}", ASM_EFFECT, l->i16, args, 3);
	LLVMAddIncoming(old, &first, &start, 1);
	LLVMAddIncoming(old, &seen, &loop, 1);
	LLVMBuildCondBr(l->b, LLVMBuildICmp(l->b, LLVMIntEQ, seen, old, ""), done, loop);
	LLVMPositionBuilderAtEnd(l->b, done);
	return from_bits(l->b, pred ? either(l->b, &g, LLVMConstNull(l->i16), old) : old, LLVMTypeOf(val));
}

void lower_atomic(struct lower *l, const struct op *o)
{
	bool cas = o->code == IR_ATOMIC_CAS;
	const struct value *ptr = operand(o, 0), *cmp = cas ? operand(o, 1) : NULL, *val = operand(o, cas ? 2 : 1);
	const struct value *mask = mask_of(o);
	bool by_cas = is_by_cas(l, o);
	LLVMValueRef mine = owner_of(l, ptr);
	if (!cas && o->attr[ATTR_VECTOR]) {
		add_vectors(l, o, mine);
		return;
	}
	LLVMValueRef *at = new_tile(l, result(o));
	for (u32 r = 0; r < num_elems(ptr); r++) {
		LLVMValueRef pred = and_i1(l, mine, mask ? elem(l, mask, r) : NULL), p = elem(l, ptr, r),
			     x = elem(l, val, r);
		at[r] = by_cas ? update_by_cas(l, o, p, x, pred)
			       : emit_atomic(l, o, p, cas ? elem(l, cmp, r) : NULL, x, pred);
	}
	if (o->scratch_size)
		share_results(l, o, mine);
}
