/* Inside the code generator.
 *
 * A tile with layout L is an array of 2^(register bits of L) LLVM values, one per register index; a scalar is an array
 * of one. Small floats other than fp16 travel as integers of their width. */
#ifndef TLC_GPU_CODEGEN_NVPTX_INTERNAL_H
#define TLC_GPU_CODEGEN_NVPTX_INTERNAL_H

#include "layout/conversion.h"
#include "gpu/codegen/nvptx.h"
#include "gpu/layout/memory_access.h"
#include "gpu/layout/mma.h"

struct tile {
	LLVMValueRef *at; /* elements; NULL until wanted when only words are known */
	u32 n;
	LLVMValueRef *words; /* the same, packed into 32-bit words in register order; or NULL */
	LLVMValueRef last;   /* the instruction that completed the words */
	/* loaded, but not yet put together to words: that waits for memory, so it is done where they are wanted */
	struct runs *runs;
};

struct lower {
	struct pass_state *s;
	struct kernel *k;
	struct arena scratch;
	LLVMContextRef ctx;
	LLVMModuleRef mod;
	LLVMBuilderRef b, entry; /* `entry` adds to the entry block, for what is the same everywhere */
	LLVMValueRef fn;
	LLVMTypeRef i1, i8, i16, i32, i64, f16, f32, f64, v, gptr;
	struct map tiles;     /* value → struct tile */
	struct map positions; /* layout → the thread's part of a position (i32) */
	bool in_partition;
	int meet;             /* so many threads meet at a barrier; 0: all of the block */
	struct map pins;      /* accumulator → struct pin; see pinned_accumulators.c */
	struct map pinned;    /* argument of a loop → stays_pinned's answer */
	u32 npins;
	struct map deferred; /* operations of runs (operand_run.h), which are lowered with their dots → themselves */
	LLVMValueRef thread, lane, warp; /* thread and warp: numbers within the program */
	LLVMValueRef shared;             /* the block's memory */
	LLVMMetadataRef debug_scope;
	void *debug_builder;
	u32 nstrings;
};

/* nvptx.c */
LLVMTypeRef llvm_type(struct lower *l, const struct type *elem);
/* The words of v, or NULL. */
LLVMValueRef *words_of_tile(struct lower *l, const struct value *v);
/* Element r of v. */
LLVMValueRef elem(struct lower *l, const struct value *v, u32 r);
/* Its elements from w * 32 / (their bits) on, packed into 32 bits. */
LLVMValueRef word_of(struct lower *l, const struct value *v, u32 w);
void set_tile(struct lower *l, const struct value *v, LLVMValueRef *at, u32 n);
/* n words of packed elements, the last one computed last. */
void set_words(struct lower *l, const struct value *v, LLVMValueRef *words, u32 n);
/* What v's elements were before their registers were renamed, and where n of them were. */
const struct value *before_renames(const struct value *v, u32 *regs, u32 n);
/* A new array for v's elements, to be filled in. */
LLVMValueRef *new_tile(struct lower *l, const struct value *v);
u32 num_elems(const struct value *v);
void lower_block(struct lower *l, const struct block *b);
void lower_op(struct lower *l, const struct op *o);
/* Of the program, or how many there are, along an axis. */
LLVMValueRef program_number(struct lower *l, i64 axis, bool how_many);

/* builder.c */
LLVMValueRef c_i32(struct lower *l, i64 x);
LLVMValueRef c_i64(struct lower *l, i64 x);
LLVMValueRef intrinsic(struct lower *l, const char *name, LLVMTypeRef ret, LLVMValueRef *args, u32 n);
static inline LLVMValueRef call1(struct lower *l, const char *name, LLVMValueRef x)
{
	return intrinsic(l, name, LLVMTypeOf(x), &x, 1);
}
/* Inline PTX. Calls with effects or between threads are marked so; see inline_ptx.c for the texts. */
enum asm_kind { ASM_PURE, ASM_EFFECT, ASM_CONVERGENT };
LLVMValueRef inline_asm(struct lower *l, const char *text, const char *constraints, enum asm_kind kind, LLVMTypeRef ret,
			LLVMValueRef *args, u32 n);
/* n values of one type ↔ integers of `bits` bits holding them in order. */
void pack(struct lower *l, LLVMValueRef *in, u32 n, int bits, LLVMValueRef *out);
void unpack(struct lower *l, LLVMValueRef *in, u32 nwords, LLVMTypeRef elem, u32 n, LLVMValueRef *out);
/* XOR of bases[i] over the set bits of `index` (an i32 with `bits` bits). */
LLVMValueRef linear_map(struct lower *l, LLVMBuilderRef b, LLVMValueRef index, const u32 *bases, int bits);
/* The same of this thread's number: the bases of its lane's bits, and of its warp's. */
LLVMValueRef thread_map(struct lower *l, LLVMBuilderRef b, const u32 *lanes, const u32 *warps, int warp_bits);
/* The part of a position in layout `lay` that lane and warp decide. */
LLVMValueRef thread_position(struct lower *l, const struct layout *lay);
/* Is this bit of the lane's number set? */
LLVMValueRef lane_bit(struct lower *l, int bit);
/* The register bits within which v is known to be the same everywhere; and those within which it is, or counts up. */
u32 constant_bits(struct lower *l, const struct value *v);
u32 told_bits(struct lower *l, const struct value *v);
/* Elements of v that these bits tell, from those that are there. */
void tell_others(struct lower *l, const struct value *v, LLVMValueRef *at);
/* So many elements further. */
LLVMValueRef pointer_plus(struct lower *l, const struct type *pointer, LLVMValueRef p, LLVMValueRef by);
/* True in exactly one thread for each element: the one that writes. NULL when every thread is. */
LLVMValueRef owner(struct lower *l, const struct layout *lay);
/* True in threads of which these bits of the lane are `which`, and these of the warp 0; NULL when that is all. */
LLVMValueRef is_thread(struct lower *l, u32 lanes, u32 which, u32 warps);
void barrier(struct lower *l);
void fence_async(struct lower *l, bool global); /* what is stored is there for the copy engine and wgmma too */
void warp_barrier(struct lower *l); /* of the warp's threads */
void warpgroup_barrier(struct lower *l);
/* All threads of all blocks of the cluster. */
void cluster_barrier(struct lower *l);
/* A special register, by the name of its intrinsic, of which LLVM learns the range. */
LLVMValueRef number_below(struct lower *l, const char *name, int end);
LLVMValueRef and_i1(struct lower *l, LLVMValueRef a, LLVMValueRef b); /* either may be NULL: true */
/* Address in shared memory: base + offset (i32 bytes) + constant. */
LLVMValueRef shared_at(struct lower *l, LLVMValueRef base, LLVMValueRef offset, u32 constant);
LLVMValueRef shared_base(struct lower *l, const struct op *o);
/* Code behind the instruction `last` (NULL: here), until come_back: other paths may want what it makes, too. */
struct insertion_point { LLVMBasicBlockRef block; LLVMMetadataRef line; };
struct insertion_point go_behind(struct lower *l, LLVMValueRef last);
void come_back(struct lower *l, struct insertion_point here);
LLVMBasicBlockRef new_block(struct lower *l);
/* Code inside `if (cond)`; NULL cond: always. */
struct guarded { LLVMBasicBlockRef end; };
struct guarded begin_if(struct lower *l, LLVMValueRef cond);
void end_if(struct lower *l, struct guarded g);
/* A phi, where the control flow of two blocks meets. */
LLVMValueRef either(struct lower *l, const LLVMBasicBlockRef *from, LLVMValueRef a, LLVMValueRef b);
/* n elements side by side, aligned to all of them. */
void load_vector(struct lower *l, LLVMTypeRef t, u32 n, LLVMValueRef at, LLVMValueRef *out);
void store_vector(struct lower *l, const LLVMValueRef *in, u32 n, LLVMValueRef at);
LLVMValueRef shuffle(struct lower *l, LLVMValueRef v, LLVMValueRef lane); /* from lane, any type up to 64 bits */
LLVMValueRef shuffle_xor(struct lower *l, LLVMValueRef v, u32 mask);
LLVMTypeRef int_type(struct lower *l, int bits);
int type_bits(LLVMTypeRef t);
LLVMValueRef to_bits(struct lower *l, LLVMValueRef v);                     /* to an integer of its width */
LLVMValueRef from_bits(struct lower *l, LLVMValueRef v, LLVMTypeRef t);

/* What lowers operations of a kind: nvptx.c has the table. */
typedef void lowering(struct lower *l, const struct op *o);
lowering lower_elementwise, lower_division;                       /* elementwise.c, division.c */
lowering lower_load, lower_store, lower_atomic, lower_async_copy; /* memory.c */
lowering lower_convert, lower_local_load, lower_local_store;      /* shared.c */
lowering lower_reduce, lower_scan;                                /* reduce.c */
lowering lower_gather, lower_histogram, lower_map;                /* gather.c */
lowering lower_dot, lower_wgmma, lower_wgmma_wait, lower_turn;    /* dot.c, wgmma.c */
lowering lower_one_thread, lower_partition;                       /* tma.c */
lowering lower_arrive_barrier, lower_tma_copy, lower_tma_tensor_copy;
lowering lower_inline_asm, lower_print, lower_assert;             /* inline_asm.c, debug.c */
lowering lower_ptx;                                               /* inline_ptx.c: what is nothing but a text */
/* Runs a region for one element of each argument: the elements that it gives. reduce.c */
void run_region(struct lower *l, const struct block *b, const LLVMValueRef *args, LLVMValueRef *out);

LLVMValueRef lower_scalar_op(struct lower *l, const struct op *o, LLVMValueRef *in);
LLVMValueRef small_to_f32(struct lower *l, LLVMValueRef v, enum dtype d);
LLVMValueRef f32_to_small(struct lower *l, LLVMValueRef v, enum dtype d, enum rounding r);
/* Two fp32 → fp16 or bf16 in one word (sm_80 on). */
LLVMValueRef cvt_f16x2(struct lower *l, LLVMValueRef lo, LLVMValueRef hi, enum dtype d);
/* fp8 elements 2i and 2i + 1 of v. */
LLVMValueRef fp8_pair_to_f16(struct lower *l, const struct value *v, u32 i);
bool lower_bit_fields(struct lower *l, const struct op *o);     /* bit_fields.c; likewise */
bool lower_small_integers(struct lower *l, const struct op *o); /* small_ints.c; false: as any other conversion */
LLVMValueRef math_f32(struct lower *l, enum opcode code, LLVMValueRef x); /* math.c: log, log2, erf, tanh */
void sin_cos_f32(struct lower *l, bool cosine, const LLVMValueRef *x, u32 n, LLVMValueRef *out); /* of n elements */
void finish_runs(struct lower *l, struct tile *t);
/* What loops carry of runs, *n values, and back; words as runs of the same shape. */
LLVMValueRef *parts_of_runs(const struct runs *r, u32 *n);
struct runs *runs_of_parts(struct lower *l, LLVMValueRef *parts, const struct runs *shape);
struct runs *runs_of_words(struct lower *l, LLVMValueRef *words, const struct runs *shape);
/* Where a thread's registers are in a buffer: offsets of lane and warp computed once, registers as constants. */
struct mapped {
	struct memory_map m;
	LLVMValueRef base, thread; /* thread: i32 elements */
	u32 thread_bits, bytes;
};
struct mapped map_layout(struct lower *l, const struct layout *lay, const struct layout *mem, LLVMValueRef base,
			 u32 bytes);
/* The element at constant offset `at` (elements) from the thread's own part is *rest bytes behind this. */
LLVMValueRef mapped_address(struct lower *l, const struct mapped *p, u32 at, u32 *rest);
/* Register bits outside the vector; all combinations of them visit each vector once. Registers that hold a copy of
 * another's element (zero offset) are visited too. */
u32 vector_base(const struct memory_map *m, u32 i);
/* Element e of the vector that begins with register `base`. */
u32 vector_elem(const struct memory_map *m, u32 base, u32 e);
static inline const struct layout *row_major_of(struct lower *l, const struct type *t)
{
	return layout_row_major(&l->s->ctx->layouts, t->rank, t->shape);
}
void write_shared(struct lower *l, const struct value *v, const struct layout *mem, LLVMValueRef base);
/* The element of type t that write_shared has left at this address. */
LLVMValueRef read_element(struct lower *l, LLVMValueRef at, LLVMTypeRef t);
/* A tile of v's elements, in layout lay. */
struct value *tile_like(struct lower *l, const struct value *v, const struct layout *lay);
void read_shared(struct lower *l, const struct value *v, const struct layout *mem, LLVMValueRef base);
/* Writes the buffer v, whose rows run across dimension k, in layout `to`, where they run along it; for wgmma and all
 * threads. */
void turn_in_place(struct lower *l, const struct value *v, int k, const struct layout *to); /* transpose_operand.c */
/* LLVM's instructions behind one of the block that is built, to be moved to its end. */
struct instructions {
	LLVMValueRef *at;
	u32 n;
	struct map left; /* those that have not been moved */
};
struct instructions instructions_behind(struct lower *l, LLVMValueRef first);
/* Moves those of which `values` are made, in their order; NULL: all that are left. */
void move_to_end(struct lower *l, struct instructions *in, LLVMValueRef *values, u32 n);
/* Registers of an mma operand. */
struct fragments {
	struct lower *l;
	const struct value *v;
	const struct layout *lay;
	int k_dim, other_dim;
	int per_word, k_half;   /* elements of a register; log2 of the k distance between the two halves, or -1 */
	u32 second; /* its registers of the second half of the rows are so many rows further; 0: it has none */
	bool tf32, widened;     /* to fp16: of four elements of k, the first or the last two */
	u32 half;
	LLVMValueRef *cache;    /* of packed words, by register index / per_word; filled on demand */
};
struct fragments fragments_of(struct lower *l, const struct value *v, int operand_index, const struct mma *m);
/* The registers of one fragment, at offsets (other, k) from the thread's own place: rows first, then halves of k. */
u32 load_fragment(struct fragments *f, u32 batch, u32 other, u32 k, LLVMValueRef *out);
/* Accumulators as 32-bit registers: how many, what PTX and inline PTX call their type, and packing and unpacking. */
u32 num_accumulators(const struct value *v);
const char *accumulator_letter(const struct value *v);
void get_accumulators(struct lower *l, const struct value *v, LLVMValueRef *words);
void set_accumulators(struct lower *l, const struct value *v, const char *text, const char *constraints,
		      LLVMValueRef *args, u32 nargs);
/* pinned_accumulators.c: registers of PTX that hold an accumulator from before a loop till behind it */
struct pin { const char *name; }; /* registers NAME0, NAME1… */
bool stays_pinned(struct lower *l, const struct op *loop, u32 i); /* may what the loop carries i-th? */
const struct pin *pin_of(struct lower *l, const struct value *v); /* NULL: v has none, but is a tile */
const struct pin *pin_down(struct lower *l, const struct value *v); /* v's own, or new ones with a copy of v */
void pass_pin(struct lower *l, const struct pin *h, const struct value *v); /* v, just made, is what is in h */
void collect_tensor_maps(struct kernel *k);              /* tma.c */
void prefetch_tensor_maps(struct lower *l); /* by the producer, before it has to wait for anything */
void debug_begin(struct lower *l);
void debug_location(struct lower *l, struct loc at);
void debug_end(struct lower *l);

/* inline_ptx.c: the texts of mma */
struct ptx_mma {
	const char *text, *constraints;
	u8 na, nb, nc;        /* 32-bit (or 64-bit) registers of each fragment */
	enum dtype acc;
};
const struct ptx_mma *ptx_mma(const char *name);

#endif
