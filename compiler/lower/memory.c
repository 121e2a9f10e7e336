/* Loads, stores, atomics and asynchronous copies of global memory.
 *
 * Accesses are as wide as axis analysis allows; neighbours that may begin anywhere in a word are loaded in runs of
 * words. An access that is masked, or asks for a cache policy, is inline PTX with a predicate; a plain one is left to
 * LLVM. Of threads that hold the same element only one writes. */
#include <math.h>

#include "lower/internal.h"

/* The registers of one vector, and a way to visit all vectors. */
struct vectors {
	struct access_vector v;
	u32 n;          /* vectors per thread */
	u32 width;      /* elements of each */
	u32 vec_mask;   /* register bits that walk through a vector */
	u32 nregs;
};

/* `sizes`: of the operation's ATTR_VECTOR. */
static struct vectors vectors_of(const struct op *o, i64 sizes)
{
	struct vectors s = {.v = vector_of(o, sizes), .nregs = num_elems(operand(o, 0))};
	s.width = 1u << s.v.bits;
	s.n = s.nregs / s.width;
	for (int i = 0; i < s.v.bits; i++)
		s.vec_mask |= 1u << s.v.reg[i];
	return s;
}

/* Register of element e of vector number i. */
static u32 vector_reg(const struct vectors *s, u32 i, u32 e)
{
	u32 r = spread(i, ~s->vec_mask);
	for (int k = 0; k < s->v.bits; k++)
		if (e >> k & 1)
			r |= 1u << s->v.reg[k];
	return r;
}

/* How a vector travels: n words of so many bits, integers unless the elements are floats as long, and the PTX names of
 * that. */
struct words {
	LLVMTypeRef as;
	int bits;
	u32 n;
	const char *type, *vec;
	char constraint;
};

static struct words words_of(struct lower *l, u32 bytes, LLVMTypeRef elem)
{
	struct words w = {.vec = ""};
	int elem_bits = type_bits(elem);
	w.bits = bytes >= 8 && elem_bits == 64 ? 64 : bytes >= 4 ? 32 : (int)bytes * 8;
	w.n = bytes * 8 / (u32)w.bits;
	w.type = w.bits == 64 ? "b64" : w.bits == 32 ? "b32" : w.bits == 16 ? "b16" : "b8";
	w.as = elem == l->f32 ? elem : int_type(l, w.bits);
	w.constraint = w.bits == 64 ? 'l' : w.bits == 32 ? (elem == l->f32 ? 'f' : 'r') : 'h';
	w.vec = w.n == 4 ? ".v4" : w.n == 2 ? ".v2" : "";
	return w;
}

static const char *load_policy(struct lower *l, const struct op *o)
{
	static const char *const cache[] = {"", ".ca", ".cg", "", ".cs", "", ".cv"};
	if (o->attr[ATTR_VOLATILE])
		return NULL;
	const char *policy = cache[o->attr[ATTR_CACHE]];
	if (o->attr[ATTR_EVICT])
		policy = o->attr[ATTR_EVICT] == EVICT_FIRST ? ".L1::evict_first" : ".L1::evict_last";
	return o->attr[ATTR_PREFETCH] ? arena_printf(&l->scratch, "%s.L2::256B", policy) : policy;
}

static const char *store_policy(const struct op *o)
{
	static const char *const cache[] = {"", "", ".cg", ".wb", ".cs", ".wt", ""};
	if (o->attr[ATTR_EVICT])
		return o->attr[ATTR_EVICT] == EVICT_FIRST ? ".L1::evict_first" : ".L1::evict_last";
	return cache[o->attr[ATTR_CACHE]];
}

/* "{$0, $1, …}" of n operands from `first`, or "$0". */
static const char *operand_list(struct lower *l, u32 first, u32 n)
{
	struct strbuf sb = {.arena = &l->scratch};
	if (n == 1)
		return arena_printf(&l->scratch, "$%u", first);
	for (u32 i = 0; i < n; i++)
		sb_printf(&sb, "%s$%u", i ? ", " : "{", first + i);
	sb_puts(&sb, "}");
	return sb.at;
}

static LLVMTypeRef asm_word(struct lower *l, const struct words *w)
{
	return w->bits == 8 ? l->i16 : w->as;
}

static void pack_words(struct lower *l, LLVMValueRef *elems, u32 n, const struct words *w, LLVMValueRef *words)
{
	if (w->as == l->f32)
		memcpy(words, elems, n * sizeof *words);
	else
		pack(l, elems, n, w->bits, words);
}

/* The bits of a constant word. */
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

/* Loads into words; where the predicate is false they stay as they are. Constants are written to them by the same PTX:
 * LLVM need not know of them. */
static void masked_load(struct lower *l, LLVMValueRef ptr, u32 constant, LLVMValueRef pred, const struct words *w,
			const char *policy, LLVMValueRef *words)
{
	struct strbuf cons = {.arena = &l->scratch}, text = {.arena = &l->scratch};
	LLVMValueRef args[8];
	LLVMTypeRef t = asm_word(l, w), types[4];
	u32 n = 0;
	u64 bits;
	bool known = true;
	for (u32 i = 0; i < w->n && pred; i++)
		known &= is_known(words[i], &bits);
	for (u32 i = 0; i < w->n; i++) {
		sb_printf(&cons, "%s=%s%c", i ? "," : "", known ? "&" : "", w->constraint);
		types[i] = t;
		if (known && pred && is_known(words[i], &bits))
			sb_printf(&text, "mov.b%d $%u, 0x%llX;\n\t", MAX(w->bits, 16), i, (unsigned long long)bits);
	}
	for (u32 i = 0; i < w->n && !known; i++) {
		sb_printf(&cons, ",%u", i);
		args[n++] = w->bits == 8 ? LLVMBuildZExt(l->b, words[i], l->i16, "") : words[i];
	}
	u32 at = w->n + n; /* the address */
	sb_puts(&cons, pred ? ",l,b" : ",l");
	args[n++] = ptr;
	if (pred) {
		args[n++] = pred;
		sb_printf(&text, "@$%u ", at + 1);
	}
	sb_printf(&text, "ld.%s%s%s.%s %s, [$%u", policy ? "global" : "volatile.global", policy ? policy : "", w->vec,
		  w->type, operand_list(l, 0, w->n), at);
	sb_puts(&text, constant ? arena_printf(&l->scratch, "+%u];", constant) : "];");
	LLVMTypeRef ret = w->n == 1 ? t : LLVMStructTypeInContext(l->ctx, types, w->n, false);
	LLVMValueRef v = inline_asm(l, text.at, cons.at, ASM_EFFECT, ret, args, n);
	for (u32 i = 0; i < w->n; i++) {
		words[i] = w->n == 1 ? v : LLVMBuildExtractValue(l->b, v, i, "");
		if (w->bits == 8)
			words[i] = LLVMBuildTrunc(l->b, words[i], l->i8, "");
	}
}

static void plain_load(struct lower *l, LLVMValueRef ptr, const struct words *w, LLVMValueRef *words)
{
	LLVMTypeRef vt = w->n == 1 ? w->as : LLVMVectorType(w->as, w->n);
	LLVMValueRef v = LLVMBuildLoad2(l->b, vt, ptr, "");
	LLVMSetAlignment(v, (unsigned)(w->bits / 8) * w->n);
	for (u32 i = 0; i < w->n; i++)
		words[i] = w->n == 1 ? v : LLVMBuildExtractElement(l->b, v, c_i32(l, i), "");
}

/* An int1 is a byte in memory: 0 or 1 when written, anything but 0 is true when read. */
static LLVMTypeRef memory_type(struct lower *l, const struct type *t)
{
	LLVMTypeRef e = llvm_type(l, t);
	return e == l->i1 ? l->i8 : e;
}

static LLVMValueRef to_memory(struct lower *l, LLVMValueRef v)
{
	return LLVMTypeOf(v) == l->i1 ? LLVMBuildZExt(l->b, v, l->i8, "") : v;
}

static LLVMValueRef from_memory(struct lower *l, LLVMValueRef v, const struct type *t)
{
	return type_dtype(t) == DT_I1 ? LLVMBuildICmp(l->b, LLVMIntNE, v, LLVMConstNull(l->i8), "") : v;
}

/* Threads that hold a copy of an element get it from the one that did the atomic or the load, through memory. */
static void share_results(struct lower *l, const struct op *o, LLVMValueRef mine)
{
	const struct value *v = result(o);
	LLVMValueRef base = shared_base(l, o);
	struct guarded g = begin_if(l, mine);
	if (type_is_tensor(v->type)) {
		const struct layout *flat = row_major_of(l, v->type);
		write_shared(l, v, flat, base);
		end_if(l, g);
		barrier(l);
		read_shared(l, v, flat, base);
	} else {
		LLVMBuildStore(l->b, elem(l, v, 0), base);
		end_if(l, g);
		barrier(l);
		LLVMValueRef *at = new_tile(l, v);
		at[0] = LLVMBuildLoad2(l->b, llvm_type(l, v->type), base, "");
	}
}

/* --- runs ---------------------------------------------------------------------------------------------------- */

/* One piece of memory, less than a vector; zero where the predicate is false. */
static LLVMValueRef load_piece(struct lower *l, LLVMValueRef base, LLVMValueRef offset, u32 constant, int bytes,
			       LLVMValueRef pred, const char *policy)
{
	struct words w = words_of(l, (u32)bytes, int_type(l, bytes * 8));
	LLVMValueRef p = offset ? LLVMBuildGEP2(l->b, l->i8, base, &offset, 1, "") : base, at = c_i64(l, constant),
		     word = LLVMConstNull(int_type(l, w.bits));
	if (pred || *policy)
		masked_load(l, p, constant, pred, &w, policy, &word);
	else
		plain_load(l, LLVMBuildGEP2(l->b, l->i8, p, &at, 1, ""), &w, &word);
	return word;
}

/* n words of memory from any multiple of `unit` bytes, loaded without a byte beside them: p lies s bytes into an
 * aligned word. The n - 1 words behind that one are loaded whole. Of the first, the bytes before p are not ours, but as
 * many of the word behind the last are, at the same places: so one word is put together of pieces from both ends.
 * Shifting each word and the one after it, around in a ring, by s gives the result. */
struct run {
	LLVMValueRef words[4], pieces[4], bytes; /* pieces become words[0]; bytes: which of two words make one */
};

struct runs {
	struct run *at;
	u32 n, words; /* runs; words of each */
	int unit;
	LLVMBasicBlockRef block;
};

static struct run load_run(struct lower *l, LLVMValueRef p, u32 n, int unit, LLVMValueRef pred, const char *policy)
{
	struct run r;
	/* opaque to LLVM, which would make induction variables of all that follows from p, more than there are
	 * registers */
	LLVMValueRef w = inline_asm(l, "and.b64 $0, $1, -4;", "=l,l", ASM_PURE, l->gptr, &p, 1);
	LLVMValueRef s = inline_asm(l, "cvt.u32.u64 $0, $1;", "=r,l", ASM_PURE, l->i32, &p, 1);
	s = LLVMBuildAnd(l->b, s, c_i32(l, 4 - unit), "");
	r.bytes = LLVMBuildAdd(l->b, LLVMBuildMul(l->b, s, c_i32(l, 0x1111), ""), c_i32(l, 0x3210), "");
	for (int at = 0; at < 4; at += unit) {
		LLVMValueRef end = NULL; /* the last of the first word is always ours */
		if (at < 4 - unit) {
			LLVMValueRef before = LLVMBuildICmp(l->b, LLVMIntULT, c_i32(l, at), s, "");
			end = LLVMBuildSelect(l->b, before, c_i64(l, 4 * n), c_i64(l, 0), "");
		}
		r.pieces[at / unit] = load_piece(l, w, end, (u32)at, unit, pred, policy);
	}
	for (u32 i = 1; i < n; i++)
		r.words[i] = load_piece(l, w, NULL, 4 * i, 4, pred, policy);
	return r;
}

static void finish_run(struct lower *l, struct run *r, u32 n, int unit, LLVMValueRef *out)
{
	pack(l, r->pieces, 4 / (u32)unit, 32, r->words);
	for (u32 i = 0; i < n; i++) {
		LLVMValueRef args[] = {r->words[i], r->words[(i + 1) % n], r->bytes};
		out[i] = intrinsic(l, "llvm.nvvm.prmt", l->i32, args, 3);
	}
}

/* Here, if that is in the block of the loads, else behind them, since other paths may want the words too. */
void finish_runs(struct lower *l, struct tile *t)
{
	const struct runs *r = t->runs;
	LLVMBasicBlockRef here = LLVMGetInsertBlock(l->b);
	LLVMValueRef next = here == r->block ? NULL : LLVMGetNextInstruction(t->last);
	while (next && LLVMIsAPHINode(next))
		next = LLVMGetNextInstruction(next);
	if (next)
		LLVMPositionBuilderBefore(l->b, next);
	t->words = arena_array(&l->scratch, LLVMValueRef, r->n * r->words);
	for (u32 i = 0; i < r->n; i++)
		finish_run(l, &r->at[i], r->words, r->unit, t->words + i * r->words);
	t->last = t->words[r->n * r->words - 1];
	t->runs = NULL;
	LLVMPositionBuilderAtEnd(l->b, here);
}

LLVMValueRef *parts_of_runs(struct lower *l, const struct runs *r, u32 *n)
{
	u32 pieces = 4 / (u32)r->unit, each = pieces + r->words;
	LLVMValueRef *parts = arena_array(&l->scratch, LLVMValueRef, r->n * each);
	for (u32 i = 0; i < r->n; i++) {
		const struct run *from = &r->at[i];
		LLVMValueRef *to = parts + i * each;
		memcpy(to, from->pieces, pieces * sizeof *to);
		memcpy(to + pieces, from->words + 1, (r->words - 1) * sizeof *to);
		to[each - 1] = from->bytes;
	}
	*n = r->n * each;
	return parts;
}

struct runs *runs_of_parts(struct lower *l, LLVMValueRef *parts, const struct runs *shape)
{
	struct runs *r = arena_dup(&l->scratch, shape, sizeof *shape);
	u32 pieces = 4 / (u32)r->unit, each = pieces + r->words;
	r->at = arena_array(&l->scratch, struct run, r->n);
	r->block = LLVMGetInsertBlock(l->b);
	for (u32 i = 0; i < r->n; i++) {
		struct run *to = &r->at[i];
		LLVMValueRef *from = parts + i * each;
		memcpy(to->pieces, from, pieces * sizeof *from);
		memcpy(to->words + 1, from + pieces, (r->words - 1) * sizeof *from);
		to->bytes = from[each - 1];
	}
	return r;
}

struct runs *runs_of_words(struct lower *l, LLVMValueRef *words, const struct runs *shape)
{
	struct runs *r = arena_dup(&l->scratch, shape, sizeof *shape);
	r->at = arena_array(&l->scratch, struct run, r->n);
	for (u32 i = 0; i < r->n; i++) {
		struct run *to = &r->at[i];
		memcpy(to->words, words + i * r->words, r->words * sizeof *words);
		unpack(l, to->words, 1, int_type(l, 8 * r->unit), 4 / (u32)r->unit, to->pieces);
		to->bytes = c_i32(l, 0x3210);
	}
	return r;
}

/* Are the words of a load words of its result too: of small elements, in the order of its registers? */
static bool has_words(struct lower *l, const struct op *o, const struct vectors *s, int word_bits)
{
	int bits = type_bits(llvm_type(l, result(o)->type));
	bool in_order = word_bits == 32 && bits >= 8 && bits < 32;
	for (int i = 0; i < s->v.bits; i++)
		in_order &= s->v.reg[i] == i;
	return in_order;
}

static void load_runs(struct lower *l, const struct op *o)
{
	const struct value *ptr = operand(o, 0), *mask = mask_of(o), *other = o->noperands > 2 ? operand(o, 2) : NULL;
	struct vectors s = vectors_of(o, o->attr[ATTR_VECTOR]);
	LLVMTypeRef t = memory_type(l, result(o)->type);
	LLVMValueRef words[4], elems[16];
	int unit = (int)o->attr[ATTR_UNIT];
	u32 n = s.width * (u32)type_bits(t) / 32;
	struct runs r = {.at = arena_array(&l->scratch, struct run, s.n),
			 .n = s.n,
			 .words = n,
			 .unit = unit,
			 .block = LLVMGetInsertBlock(l->b)};
	for (u32 i = 0; i < s.n; i++)
		r.at[i] = load_run(l, elem(l, ptr, vector_reg(&s, i, 0)), n, unit,
				   mask ? elem(l, mask, vector_reg(&s, i, 0)) : NULL, load_policy(l, o));
	if (!other && has_words(l, o, &s, 32)) {
		struct tile *tile = arena_new(&l->scratch, struct tile);
		*tile = (struct tile){.n = s.nregs,
				      .runs = arena_dup(&l->scratch, &r, sizeof r),
				      .last = n > 1 ? r.at[s.n - 1].words[n - 1] : NULL};
		map_put(&l->tiles, result(o), tile);
		return;
	}
	LLVMValueRef *at = new_tile(l, result(o));
	for (u32 i = 0; i < s.n; i++) {
		finish_run(l, &r.at[i], n, unit, words);
		unpack(l, words, n, t, s.width, elems);
		for (u32 e = 0; e < s.width; e++) {
			u32 reg = vector_reg(&s, i, e);
			if (other && mask)
				elems[e] = LLVMBuildSelect(l->b, elem(l, mask, reg), elems[e],
							   to_memory(l, elem(l, other, reg)), "");
			at[reg] = from_memory(l, elems[e], result(o)->type);
		}
	}
}

void lower_load(struct lower *l, const struct op *o)
{
	const struct value *ptr = operand(o, 0), *mask = mask_of(o), *other = o->noperands > 2 ? operand(o, 2) : NULL;
	if (o->attr[ATTR_UNIT]) {
		load_runs(l, o);
		return;
	}
	struct access_vector near = vector_of(o, o->attr[ATTR_ADDRESS]);
	struct vectors s = vectors_of(o, o->attr[ATTR_VECTOR]);
	LLVMTypeRef t = memory_type(l, result(o)->type);
	int eb = type_bits(t);
	struct words w = words_of(l, s.width * (u32)eb / 8, t);
	LLVMValueRef *at = new_tile(l, result(o)), words[16] = {0}, elems[16] = {0};
	const char *policy = load_policy(l, o);
	LLVMValueRef mine = o->scratch_size ? owner(l, type_is_tensor(ptr->type) ? ptr->type->layout : NULL) : NULL;
	bool by_hand = mask || mine || !policy || *policy;
	struct tile *tile = map_get(&l->tiles, result(o));
	if (!mine && has_words(l, o, &s, w.bits))
		tile->words = arena_array(&l->scratch, LLVMValueRef, s.n * w.n);
	u32 again = o->attr[ATTR_VOLATILE] ? 0 : constant_bits(l, result(o)) & ~vector_reg(&s, 0, s.width - 1);
	for (u32 i = 0; i < s.n; i++) {
		u32 reg = vector_reg(&s, i, 0), same = i;
		if (reg & again) { /* has been loaded */
			while (vector_reg(&s, same, 0) != (reg & ~again))
				same--;
			if (tile->words)
				memcpy(tile->words + i * w.n, tile->words + same * w.n, w.n * sizeof *words);
			for (u32 e = 0; e < s.width; e++)
				at[vector_reg(&s, i, e)] = at[vector_reg(&s, same, e)];
			continue;
		}
		if (by_hand) {
			/* one address for all of a run, and distances that are constants */
			u32 first = reg, behind = 0;
			for (int k = 0; k < near.bits; k++)
				if (reg >> near.reg[k] & 1) {
					first ^= 1u << near.reg[k];
					behind |= 1u << k;
				}
			for (u32 e = 0; e < s.width; e++)
				elems[e] =
					other ? to_memory(l, elem(l, other, vector_reg(&s, i, e))) : LLVMConstNull(t);
			pack_words(l, elems, s.width, &w, words);
			masked_load(l, elem(l, ptr, first), behind * (u32)eb / 8,
				    and_i1(l, mine, mask ? elem(l, mask, reg) : NULL), &w, policy, words);
		} else {
			plain_load(l, elem(l, ptr, reg), &w, words);
		}
		if (tile->words)
			memcpy(tile->words + i * w.n, words, w.n * sizeof *words);
		unpack(l, words, w.n, t, s.width, elems);
		for (u32 e = 0; e < s.width; e++)
			at[vector_reg(&s, i, e)] = from_memory(l, elems[e], result(o)->type);
	}
	if (mine)
		share_results(l, o, mine);
}

static void masked_store(struct lower *l, LLVMValueRef ptr, LLVMValueRef pred, const struct words *w,
			 const char *policy, LLVMValueRef *words)
{
	struct strbuf cons = {.arena = &l->scratch};
	LLVMValueRef args[8];
	u32 n = 0;
	args[n++] = ptr;
	sb_puts(&cons, "l");
	for (u32 i = 0; i < w->n; i++) {
		sb_printf(&cons, ",%c", w->constraint);
		args[n++] = w->bits == 8 ? LLVMBuildZExt(l->b, words[i], l->i16, "") : words[i];
	}
	if (pred) {
		sb_puts(&cons, ",b");
		args[n++] = pred;
	}
	sb_puts(&cons, ",~{memory}");
	const char *text = arena_printf(&l->scratch, "%sst.global%s%s.%s [$0], %s;",
					pred ? arena_printf(&l->scratch, "@$%u ", w->n + 1) : "", policy, w->vec,
					w->type, operand_list(l, 1, w->n));
	inline_asm(l, text, cons.at, ASM_EFFECT, l->v, args, n);
}

static void plain_store(struct lower *l, LLVMValueRef ptr, const struct words *w, LLVMValueRef *words)
{
	LLVMValueRef v = words[0];
	if (w->n > 1) {
		v = LLVMGetPoison(LLVMVectorType(w->as, w->n));
		for (u32 i = 0; i < w->n; i++)
			v = LLVMBuildInsertElement(l->b, v, words[i], c_i32(l, i), "");
	}
	LLVMSetAlignment(LLVMBuildStore(l->b, v, ptr), (unsigned)(w->bits / 8) * w->n);
}

void lower_store(struct lower *l, const struct op *o)
{
	const struct value *ptr = operand(o, 0), *val = operand(o, 1), *mask = o->noperands > 2 ? operand(o, 2) : NULL;
	struct vectors s = vectors_of(o, o->attr[ATTR_STORE_VECTOR]);
	LLVMTypeRef t = memory_type(l, val->type);
	struct words w = words_of(l, s.width * (u32)type_bits(t) / 8, t);
	LLVMValueRef words[16] = {0}, elems[16] = {0},
		     mine = owner(l, type_is_tensor(ptr->type) ? ptr->type->layout : NULL);
	const char *policy = store_policy(o);
	for (u32 i = 0; i < s.n; i++) {
		LLVMValueRef p = elem(l, ptr, vector_reg(&s, i, 0));
		LLVMValueRef pred = and_i1(l, mine, mask ? elem(l, mask, vector_reg(&s, i, 0)) : NULL);
		for (u32 e = 0; e < s.width; e++)
			elems[e] = to_memory(l, elem(l, val, vector_reg(&s, i, e)));
		pack_words(l, elems, s.width, &w, words);
		if (pred || *policy)
			masked_store(l, p, pred, &w, policy, words);
		else
			plain_store(l, p, &w, words);
	}
}

/* --- asynchronous copies ------------------------------------------------------------------------------------- */

void lower_async_copy(struct lower *l, const struct op *o)
{
	const struct value *ptr = operand(o, 0), *mask = o->noperands > 2 ? operand(o, 2) : NULL;
	const struct type *mem = operand(o, 1)->type;
	const struct layout *lay = ptr->type->layout;
	u32 bytes = (u32)dtype_bytes(type_dtype(mem));
	struct vectors s = vectors_of(o, o->attr[ATTR_COPY_VECTOR]);
	if (s.width * bytes < 4) { /* in placed text only: the pipeliner asks before it makes a copy */
		diag(l->s->diags, E_COPY_PIECES, o->loc, s.width * bytes, PLURAL(s.width * bytes));
		return;
	}
	struct memory_map m = map_to_memory(lay, mem->layout, s.v.bits);
	LLVMValueRef base = elem(l, operand(o, 1), 0), mine = owner(l, lay);
	LLVMValueRef thread = thread_map(l, l->entry, m.basis[LL_LANE], m.basis[LL_WARP], m.bits[LL_WARP]);
	u32 thread_bits = 0, size = s.width * bytes;
	for (int dim = LL_LANE; dim < LL_DIMS; dim++)
		for (int i = 0; i < m.bits[dim]; i++)
			thread_bits |= m.basis[dim][i];
	tl_assert(m.vec_bits == s.v.bits);
	/* the last operand is true where zeros are to be written */
	const char *text = arena_printf(&l->scratch, "cp.async.%s.shared.global [$0], [$1], %u%s;",
					size == 16 ? "cg" : "ca", size, mask ? ", $2" : "");
	struct guarded g = begin_if(l, mine);
	for (u32 i = 0; i < s.n; i++) {
		u32 reg = vector_reg(&s, i, 0), at = linear(m.basis[LL_REG], reg);
		LLVMValueRef off = thread, p = elem(l, ptr, reg), args[3];
		bool clash = at & thread_bits;
		if (clash)
			off = LLVMBuildXor(l->b, off, c_i32(l, at), "");
		off = LLVMBuildMul(l->b, off, c_i32(l, bytes), "");
		args[0] = shared_at(l, base, off, clash ? 0 : at * bytes);
		args[1] = p;
		if (mask)
			args[2] = LLVMBuildNot(l->b, elem(l, mask, reg), "");
		inline_asm(l, text, mask ? "r,l,b,~{memory}" : "r,l,~{memory}", ASM_EFFECT, l->v, args, mask ? 3 : 2);
	}
	end_if(l, g);
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
static const char *const sem_names[] = {"relaxed", "acquire", "release", "acq_rel"};
static const char *const scope_names[] = {"gpu", "cta", "sys"};

/* One atomic on one element, by the threads for which pred holds; the old value, or 0 elsewhere. */
static LLVMValueRef emit_atomic(struct lower *l, const struct op *o, LLVMValueRef ptr, LLVMValueRef cmp,
				LLVMValueRef val, LLVMValueRef pred)
{
	enum dtype d = type_dtype(result(o)->type);
	LLVMTypeRef t = LLVMTypeOf(val);
	int bits = type_bits(t);
	char c = bits == 64 ? 'l' : bits == 32 ? 'r' : 'h';
	const char *name, *type, *sem, *scope;
	if (cmp) {
		name = "cas";
		type = bits == 64 ? "b64" : bits == 16 ? "b16" : "b32";
		sem = sem_names[o->attr[ATTR_CAS_SEM]];
		scope = scope_names[o->attr[ATTR_CAS_SCOPE]];
	} else {
		name = rmw_names[o->attr[ATTR_RMW]];
		type = atomic_type(d, (enum rmw_kind)o->attr[ATTR_RMW]);
		sem = sem_names[o->attr[ATTR_RMW_SEM]];
		scope = scope_names[o->attr[ATTR_RMW_SCOPE]];
	}
	LLVMValueRef args[5];
	u32 n = 0;
	args[n++] = LLVMConstNull(int_type(l, bits)); /* the result where pred is false */
	args[n++] = ptr;
	if (cmp)
		args[n++] = to_bits(l, cmp);
	args[n++] = to_bits(l, val);
	const char *cons = cmp ? arena_printf(&l->scratch, "=%c,0,l,%c,%c", c, c, c)
			       : arena_printf(&l->scratch, "=%c,0,l,%c", c, c);
	const char *guard = "";
	if (pred) {
		guard = arena_printf(&l->scratch, "@$%u ", n + 1);
		cons = arena_printf(&l->scratch, "%s,b", cons);
		args[n++] = pred;
	}
	const char *text = arena_printf(&l->scratch, "%satom.global.%s.%s.%s.%s $0, [$2], $3%s;", guard, sem, scope,
					name, type, cmp ? ", $4" : "");
	LLVMValueRef r = inline_asm(l, text, arena_printf(&l->scratch, "%s,~{memory}", cons), ASM_EFFECT,
				    int_type(l, bits), args, n);
	return from_bits(l, r, t);
}

/* Adds floats that lie side by side, each atomically. */
static void add_vectors(struct lower *l, const struct op *o, LLVMValueRef mine)
{
	const struct value *ptr = operand(o, 0), *val = operand(o, 1), *mask = o->noperands > 2 ? operand(o, 2) : NULL;
	enum dtype d = type_dtype(val->type);
	struct vectors s = vectors_of(o, o->attr[ATTR_VECTOR]);
	LLVMTypeRef t = memory_type(l, val->type);
	struct words w = words_of(l, s.width * (u32)type_bits(t) / 8, t);
	const char *type = d == DT_F32 ? "f32" : d == DT_F16 ? "f16x2" : "bf16x2", *half = d == DT_F32 ? "" : ".noftz";
	for (u32 i = 0; i < s.n; i++) {
		LLVMValueRef elems[8], args[6];
		u32 n = 0, reg = vector_reg(&s, i, 0);
		for (u32 e = 0; e < s.width; e++)
			elems[e] = to_memory(l, elem(l, val, vector_reg(&s, i, e)));
		LLVMValueRef pred = and_i1(l, mine, mask ? elem(l, mask, reg) : NULL);
		args[n++] = elem(l, ptr, reg);
		pack_words(l, elems, s.width, &w, args + n);
		n += w.n;
		if (pred)
			args[n++] = pred;
		struct strbuf text = {.arena = &l->scratch}, cons = {.arena = &l->scratch};
		sb_printf(&text, "{ .reg .b32 t<%u>; ", w.n);
		if (pred)
			sb_printf(&text, "@$%u ", n - 1);
		sb_printf(&text, "atom.global.%s.%s.add%s%s.%s ", sem_names[o->attr[ATTR_RMW_SEM]],
			  scope_names[o->attr[ATTR_RMW_SCOPE]], half, w.vec, type);
		for (u32 k = 0; k < w.n; k++)
			sb_printf(&text, "%st%u", w.n == 1 ? "" : k ? ", " : "{", k);
		sb_printf(&text, "%s, [$0], %s; }", w.n == 1 ? "" : "}", operand_list(l, 1, w.n));
		sb_puts(&cons, "l");
		for (u32 k = 0; k < w.n; k++)
			sb_printf(&cons, ",%c", w.constraint);
		sb_printf(&cons, "%s,~{memory}", pred ? ",b" : "");
		inline_asm(l, text.at, cons.at, ASM_EFFECT, l->v, args, n);
	}
}

/* Of 16 bits: what the hardware has no instruction for, and a compare-and-swap loop on the element does. */
static bool is_by_cas(struct lower *l, const struct op *o)
{
	enum dtype d = type_dtype(operand(o, 1)->type);
	if (o->code == IR_ATOMIC_CAS || dtype_bits(d) != 16)
		return false;
	return o->attr[ATTR_RMW] != RMW_FADD || (d == DT_BF16 && !l->s->target->has_bf16_atomics);
}

/* The 16 bits that such an atomic leaves where `old` was. */
static LLVMValueRef updated(struct lower *l, const struct op *o, LLVMValueRef old, LLVMValueRef val)
{
	enum dtype d = type_dtype(operand(o, 1)->type);
	enum rmw_kind kind = (enum rmw_kind)o->attr[ATTR_RMW];
	if (kind == RMW_EXCH)
		return to_bits(l, val);
	LLVMValueRef x[] = {small_to_f32(l, from_bits(l, old, LLVMTypeOf(val)), d), small_to_f32(l, val, d)};
	const char *extremum = kind == RMW_MAX ? "llvm.maxnum.f32" : "llvm.minnum.f32";
	LLVMValueRef r = kind == RMW_FADD ? LLVMBuildFAdd(l->b, x[0], x[1], "") : intrinsic(l, extremum, l->f32, x, 2);
	return to_bits(l, f32_to_small(l, r, d, ROUND_DEFAULT));
}

static LLVMValueRef update_by_cas(struct lower *l, const struct op *o, LLVMValueRef ptr, LLVMValueRef val,
				  LLVMValueRef pred)
{
	LLVMBasicBlockRef from, loop, done;
	LLVMValueRef zero = LLVMConstNull(l->i16);
	from = LLVMGetInsertBlock(l->b);
	LLVMBasicBlockRef start = LLVMAppendBasicBlockInContext(l->ctx, l->fn, "");
	loop = LLVMAppendBasicBlockInContext(l->ctx, l->fn, "");
	done = LLVMAppendBasicBlockInContext(l->ctx, l->fn, "");
	if (pred)
		LLVMBuildCondBr(l->b, pred, start, done);
	else
		LLVMBuildBr(l->b, start);
	LLVMPositionBuilderAtEnd(l->b, start);
	LLVMValueRef first = inline_asm(l, "ld.relaxed.gpu.global.b16 $0, [$1];", "=h,l", ASM_EFFECT, l->i16, &ptr, 1);
	LLVMBuildBr(l->b, loop);
	LLVMPositionBuilderAtEnd(l->b, loop);
	LLVMValueRef old = LLVMBuildPhi(l->b, l->i16, "");
	LLVMValueRef args[] = {ptr, old, updated(l, o, old, val)};
	const char *text = arena_printf(&l->scratch, "atom.global.%s.%s.cas.b16 $0, [$1], $2, $3;",
					sem_names[o->attr[ATTR_RMW_SEM]], scope_names[o->attr[ATTR_RMW_SCOPE]]);
	LLVMValueRef seen = inline_asm(l, text, "=h,l,h,h,~{memory}", ASM_EFFECT, l->i16, args, 3);
	LLVMAddIncoming(old, &first, &start, 1);
	LLVMAddIncoming(old, &seen, &loop, 1);
	LLVMBuildCondBr(l->b, LLVMBuildICmp(l->b, LLVMIntEQ, seen, old, ""), done, loop);
	LLVMPositionBuilderAtEnd(l->b, done);
	LLVMValueRef r = LLVMBuildPhi(l->b, l->i16, "");
	LLVMAddIncoming(r, &old, &loop, 1);
	if (pred)
		LLVMAddIncoming(r, &zero, &from, 1);
	return from_bits(l, r, LLVMTypeOf(val));
}

void lower_atomic(struct lower *l, const struct op *o)
{
	bool cas = o->code == IR_ATOMIC_CAS;
	const struct value *ptr = operand(o, 0), *cmp = cas ? operand(o, 1) : NULL, *val = operand(o, cas ? 2 : 1);
	const struct value *mask = !cas && o->noperands > 2 ? operand(o, 2) : NULL;
	bool by_cas = is_by_cas(l, o);
	LLVMValueRef mine = owner(l, type_is_tensor(ptr->type) ? ptr->type->layout : NULL);
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
