/* Shared declarations of NVPTX code generation.
 *
 * A tile with layout L is an array of 2^(register bits of L) LLVM values, one for each register index. A scalar is an
 * array of one value. Small floats other than fp16 are integers of their width. */
#ifndef TLC_GPU_CODEGEN_NVPTX_INTERNAL_H
#define TLC_GPU_CODEGEN_NVPTX_INTERNAL_H

#include "layout/conversion.h"
#include "gpu/codegen/nvptx.h"
#include "gpu/layout/memory_access.h"
#include "gpu/layout/mma.h"

struct tile {
	LLVMValueRef *at; /* elements; NULL until first use if only words are known */
	u32 n;
	LLVMValueRef *words; /* the elements packed into 32-bit words in register order; or NULL */
	LLVMValueRef last;   /* last instruction of the words */
	/* An unaligned vector load before its words are put together. That waits for memory, so it is done at the
	 * first use. */
	struct runs *runs;
};

struct lower {
	struct pass_state *s;
	struct kernel *k;
	struct arena scratch;
	LLVMContextRef ctx;
	LLVMModuleRef mod;
	LLVMBuilderRef b, entry; /* `entry` appends to the entry block, for values that are the same everywhere */
	LLVMValueRef fn;
	LLVMTypeRef i1, i8, i16, i32, i64, f16, f32, f64, v, gptr;
	struct map tiles;     /* value → struct tile */
	struct map positions; /* layout → lane and warp part of a position (i32) */
	bool in_partition;
	int meet;             /* threads that synchronize at a barrier; 0: all of the block */
	struct map pins;      /* accumulator → struct pin; see pinned_accumulators.c */
	struct map pinned;    /* loop argument → result of stays_pinned */
	u32 npins;
	/* set of the operations that compute a register operand A (operand_run of gpu/layout); emitted with their
	 * dots */
	struct map deferred;
	LLVMValueRef thread, lane, warp; /* thread and warp: numbers within the program */
	LLVMValueRef shared;             /* shared memory of the block */
	LLVMMetadataRef debug_scope;
	void *debug_builder;
	u32 nstrings;
};

/* nvptx.c */
LLVMTypeRef llvm_type(struct lower *l, const struct type *elem);
/* The packed words of v, or NULL. */
LLVMValueRef *words_of_tile(struct lower *l, const struct value *v);
/* Element r of v. */
LLVMValueRef elem(struct lower *l, const struct value *v, u32 r);
/* Word w of v: the elements from w * 32 / (element bits) on, packed into 32 bits. */
LLVMValueRef word_of(struct lower *l, const struct value *v, u32 w);
void set_tile(struct lower *l, const struct value *v, LLVMValueRef *at, u32 n);
/* n words of packed elements, in the order of computation. */
void set_words(struct lower *l, const struct value *v, LLVMValueRef *words, u32 n);
/* The value that shape operations renamed to v. Replaces n registers of v at `regs` by its registers. */
const struct value *before_renames(const struct value *v, u32 *regs, u32 n);
/* A new array for v's elements, to be filled by the caller. */
LLVMValueRef *new_tile(struct lower *l, const struct value *v);
u32 num_elems(const struct value *v);
void lower_block(struct lower *l, const struct block *b);
void lower_op(struct lower *l, const struct op *o);
/* The program's index along an axis, or the number of programs if how_many. */
LLVMValueRef program_number(struct lower *l, i64 axis, bool how_many);

/* builder.c */
LLVMValueRef c_i32(struct lower *l, i64 x);
LLVMValueRef c_i64(struct lower *l, i64 x);
LLVMValueRef intrinsic(struct lower *l, const char *name, LLVMTypeRef ret, LLVMValueRef *args, u32 n);
static inline LLVMValueRef call1(struct lower *l, const char *name, LLVMValueRef x)
{
	return intrinsic(l, name, LLVMTypeOf(x), &x, 1);
}
/* A call of inline PTX: without side effects, with effects, or with communication between threads. See inline_ptx.c
 * for the texts. */
enum asm_kind { ASM_PURE, ASM_EFFECT, ASM_CONVERGENT };
LLVMValueRef inline_asm(struct lower *l, const char *text, const char *constraints, enum asm_kind kind, LLVMTypeRef ret,
			LLVMValueRef *args, u32 n);
/* n values of one type ↔ integers of `bits` bits that hold them in order. */
void pack(struct lower *l, LLVMValueRef *in, u32 n, int bits, LLVMValueRef *out);
void unpack(struct lower *l, LLVMValueRef *in, u32 nwords, LLVMTypeRef elem, u32 n, LLVMValueRef *out);
/* XOR of bases[i] over the set bits of `index` (an i32 with `bits` bits). */
LLVMValueRef linear_map(struct lower *l, LLVMBuilderRef b, LLVMValueRef index, const u32 *bases, int bits);
/* linear_map of this thread's number, from the bases of its lane bits and of its warp bits. */
LLVMValueRef thread_map(struct lower *l, LLVMBuilderRef b, const u32 *lanes, const u32 *warps, int warp_bits);
/* The part of a position in layout `lay` that lane and warp determine. */
LLVMValueRef thread_position(struct lower *l, const struct layout *lay);
/* Whether this bit of the lane number is set. */
LLVMValueRef lane_bit(struct lower *l, int bit);
/* The register bits within which v is known to be constant, and those within which it is constant or counts up. */
u32 constant_bits(struct lower *l, const struct value *v);
u32 told_bits(struct lower *l, const struct value *v);
/* Computes the elements of v in registers with any of told_bits set, from the other elements. */
void tell_others(struct lower *l, const struct value *v, LLVMValueRef *at);
/* p advanced by `by` elements. */
LLVMValueRef pointer_plus(struct lower *l, const struct type *pointer, LLVMValueRef p, LLVMValueRef by);
/* True in exactly one thread for each element, the thread that writes it. NULL: every thread owns its elements. */
LLVMValueRef owner(struct lower *l, const struct layout *lay);
/* True in threads with the value `which` in the bits `lanes` of the lane, and 0 in the bits `warps` of the warp. NULL:
 * all threads. */
LLVMValueRef is_thread(struct lower *l, u32 lanes, u32 which, u32 warps);
void barrier(struct lower *l);
void fence_async(struct lower *l, bool global); /* makes stores visible to TMA and wgmma */
void warp_barrier(struct lower *l);             /* threads of the warp */
void warpgroup_barrier(struct lower *l);
/* Synchronizes all threads of all blocks of the cluster. */
void cluster_barrier(struct lower *l);
/* The special register read by the intrinsic `name`, with the range [0, end) as metadata. */
LLVMValueRef number_below(struct lower *l, const char *name, int end);
LLVMValueRef and_i1(struct lower *l, LLVMValueRef a, LLVMValueRef b); /* NULL means true */
/* Address in shared memory: base + offset (i32 bytes) + constant. */
LLVMValueRef shared_at(struct lower *l, LLVMValueRef base, LLVMValueRef offset, u32 constant);
LLVMValueRef shared_base(struct lower *l, const struct op *o);
/* Moves the builder to after the instruction `last` (NULL: leaves it) until come_back. The code is then available on
 * all paths that `last` dominates. */
struct insertion_point { LLVMBasicBlockRef block; LLVMMetadataRef line; };
struct insertion_point go_behind(struct lower *l, LLVMValueRef last);
void come_back(struct lower *l, struct insertion_point here);
LLVMBasicBlockRef new_block(struct lower *l);
/* Code inside `if (cond)`; NULL: unconditional. */
struct guarded { LLVMBasicBlockRef end; };
struct guarded begin_if(struct lower *l, LLVMValueRef cond);
void end_if(struct lower *l, struct guarded g);
/* A phi of a from from[0] and b from from[1]. */
LLVMValueRef either(struct lower *l, const LLVMBasicBlockRef *from, LLVMValueRef a, LLVMValueRef b);
/* n consecutive elements, aligned to the whole vector. */
void load_vector(struct lower *l, LLVMTypeRef t, u32 n, LLVMValueRef at, LLVMValueRef *out);
void store_vector(struct lower *l, const LLVMValueRef *in, u32 n, LLVMValueRef at);
/* v of another lane; any type up to 64 bits */
LLVMValueRef shuffle(struct lower *l, LLVMValueRef v, LLVMValueRef lane);
LLVMValueRef shuffle_xor(struct lower *l, LLVMValueRef v, u32 mask);
LLVMTypeRef int_type(struct lower *l, int bits);
int type_bits(LLVMTypeRef t);
LLVMValueRef to_bits(struct lower *l, LLVMValueRef v); /* bitcast to an integer of its width */
LLVMValueRef from_bits(struct lower *l, LLVMValueRef v, LLVMTypeRef t);

/* Code generation functions of an opcode; nvptx.c has the table. */
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
/* inline_ptx.c: operations that are a single PTX text */
lowering lower_ptx;
/* Emits a region for one element of each argument and returns the elements that it yields. reduce.c */
void run_region(struct lower *l, const struct block *b, const LLVMValueRef *args, LLVMValueRef *out);

LLVMValueRef lower_scalar_op(struct lower *l, const struct op *o, LLVMValueRef *in);
LLVMValueRef small_to_f32(struct lower *l, LLVMValueRef v, enum dtype d);
LLVMValueRef f32_to_small(struct lower *l, LLVMValueRef v, enum dtype d, enum rounding r);
/* Two fp32 to fp16 or bf16 in one word (sm_80 on). */
LLVMValueRef cvt_f16x2(struct lower *l, LLVMValueRef lo, LLVMValueRef hi, enum dtype d);
/* fp8 elements 2i and 2i + 1 of v, as two fp16 in one word. */
LLVMValueRef fp8_pair_to_f16(struct lower *l, const struct value *v, u32 i);
bool lower_bit_fields(struct lower *l, const struct op *o);     /* bit_fields.c; false: not such a conversion */
bool lower_small_integers(struct lower *l, const struct op *o); /* small_ints.c; false: not such a conversion */
LLVMValueRef math_f32(struct lower *l, enum opcode code, LLVMValueRef x); /* math.c: log, log2, erf, tanh */
void sin_cos_f32(struct lower *l, bool cosine, const LLVMValueRef *x, u32 n, LLVMValueRef *out); /* n elements */
void finish_runs(struct lower *l, struct tile *t);
/* Unaligned vector loads as loop-carried values: the *n parts of r, runs made of parts, and runs made of words already
 * put together. */
LLVMValueRef *parts_of_runs(const struct runs *r, u32 *n);
struct runs *runs_of_parts(struct lower *l, LLVMValueRef *parts, const struct runs *shape);
struct runs *runs_of_words(struct lower *l, LLVMValueRef *words, const struct runs *shape);
/* The place of a thread's registers in a buffer. The offsets of lane and warp are computed once; offsets of registers
 * are constants. */
struct mapped {
	struct memory_map m;
	LLVMValueRef base, thread; /* thread: i32, in elements */
	u32 thread_bits, bytes;
};
struct mapped map_layout(struct lower *l, const struct layout *lay, const struct layout *mem, LLVMValueRef base,
			 u32 bytes);
/* An address such that the element at constant offset `at` (in elements) from the thread's part is *rest bytes after
 * it. */
LLVMValueRef mapped_address(struct lower *l, const struct mapped *p, u32 at, u32 *rest);
/* The first register of vector i. Register bits outside the vector count vectors; registers that hold a copy of
 * another's element (zero offset) are visited too. */
u32 vector_base(const struct memory_map *m, u32 i);
/* The register of element e of the vector whose first register is `base`. */
u32 vector_elem(const struct memory_map *m, u32 base, u32 e);
static inline const struct layout *row_major_of(struct lower *l, const struct type *t)
{
	return layout_row_major(&l->s->ctx->layouts, t->rank, t->shape);
}
void write_shared(struct lower *l, const struct value *v, const struct layout *mem, LLVMValueRef base);
/* The element of type t that write_shared stored at this address. */
LLVMValueRef read_element(struct lower *l, LLVMValueRef at, LLVMTypeRef t);
/* A value with v's element type and the layout lay. */
struct value *tile_like(struct lower *l, const struct value *v, const struct layout *lay);
void read_shared(struct lower *l, const struct value *v, const struct layout *mem, LLVMValueRef base);
/* Transposes the buffer v in place: from MN-major to K-major, in layout `to`. All threads take part, and wgmma may
 * read the buffer afterwards. */
void turn_in_place(struct lower *l, const struct value *v, int k, const struct layout *to); /* transpose_operand.c */
/* LLVM instructions after a given one in the current block, to be moved to its end. */
struct instructions {
	LLVMValueRef *at;
	u32 n;
	struct map left; /* instructions not moved yet */
};
struct instructions instructions_behind(struct lower *l, LLVMValueRef first);
/* Moves the instructions that compute `values`, in their order. NULL: all that are left. */
void move_to_end(struct lower *l, struct instructions *in, LLVMValueRef *values, u32 n);
/* Registers of an mma operand. */
struct fragments {
	struct lower *l;
	const struct value *v;
	const struct layout *lay;
	int k_dim, other_dim;
	int per_word, k_half; /* elements of a register; log2 of the distance along k between the two halves, or -1 */
	u32 second;           /* distance in rows of the registers of the second half of the rows; 0: none */
	/* widened: fp8 to fp16, where `half` selects the first or last two of four elements of k */
	bool tf32, widened;
	u32 half;
	LLVMValueRef *cache; /* packed words by register index / per_word; filled on demand */
};
struct fragments fragments_of(struct lower *l, const struct value *v, int operand_index, const struct mma *m);
/* The registers of one fragment at offsets (other, k) from the thread's part: rows first, then halves of k. Returns
 * their number. */
u32 load_fragment(struct fragments *f, u32 batch, u32 other, u32 k, LLVMValueRef *out);
/* Accumulators of wgmma as 32-bit registers: their number, their constraint letter, and packing and unpacking. */
u32 num_accumulators(const struct value *v);
const char *accumulator_letter(const struct value *v);
void get_accumulators(struct lower *l, const struct value *v, LLVMValueRef *words);
void set_accumulators(struct lower *l, const struct value *v, const char *text, const char *constraints,
		      LLVMValueRef *args, u32 nargs);
/* pinned_accumulators.c: PTX registers that hold an accumulator from before a loop until after it */
struct pin { const char *name; }; /* registers NAME0, NAME1… */
bool stays_pinned(struct lower *l, const struct op *loop, u32 i); /* whether carried value i can be pinned */
const struct pin *pin_of(struct lower *l, const struct value *v); /* NULL: v is a tile of LLVM values */
/* the registers of v, or new ones with a copy of v */
const struct pin *pin_down(struct lower *l, const struct value *v);
/* v, just computed, is in the registers h */
void pass_pin(struct lower *l, const struct pin *h, const struct value *v);
void collect_tensor_maps(struct kernel *k);              /* tma.c */
void prefetch_tensor_maps(struct lower *l);              /* by the producer warp, before its first wait */
void debug_begin(struct lower *l);
void debug_location(struct lower *l, struct loc at);
void debug_end(struct lower *l);

/* inline_ptx.c: the texts of mma */
struct ptx_mma {
	const char *text, *constraints;
	u8 na, nb, nc; /* registers (32-bit, or 64-bit for fp64) of each fragment */
	enum dtype acc;
};
const struct ptx_mma *ptx_mma(const char *name);

#endif
