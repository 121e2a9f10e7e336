/* Shared declarations of NVPTX code generation.
 *
 * A tile with layout L is an array of 2^(register bits of L) LLVM values, the elements that a thread holds, indexed by
 * their register index in L ("register" below). A scalar is an array of one value. Small floats other than fp16 are
 * integers of their width. A word is 32 bits. A position is the row-major number of an element in its tile; a layout
 * maps register, lane and warp numbers to positions (layout/layout.h). */
#ifndef TLC_GPU_CODEGEN_NVPTX_INTERNAL_H
#define TLC_GPU_CODEGEN_NVPTX_INTERNAL_H

#include "layout/conversion.h"
#include "gpu/codegen/nvptx.h"
#include "gpu/layout/memory_access.h"
#include "gpu/layout/mma.h"
#include "llvm/builder.h"

struct tile {
	LLVMValueRef *at; /* elements; NULL until an element is used if only `words` exist */
	u32 n;               /* number of elements */
	LLVMValueRef *words; /* the elements packed into 32-bit words in register order; or NULL */
	LLVMValueRef last;   /* the last of the instructions that compute `words`, or the loads of `runs` */
	/* An unaligned vector load (memory.c) whose words have not been computed from the loaded parts; or NULL. The
	 * computation waits for memory, so it is emitted at the first use. */
	struct runs *runs;
};

struct lower {
	struct pass_state *s;
	struct kernel *k;
	struct arena scratch;
	LLVMContextRef ctx;
	LLVMModuleRef mod;
	LLVMBuilderRef b, entry; /* `entry` appends to the entry block, for values that the whole kernel uses */
	LLVMValueRef fn;
	u32 *number; /* for each parameter of the kernel, the number of the function's parameter with it */
	LLVMTypeRef i1, i8, i16, i32, i64, f16, f32, f64, v, gptr;
	struct map tiles;     /* value → struct tile */
	struct map positions; /* layout → result of thread_position */
	bool in_partition;    /* the code under construction is the producer warp's */
	int meet;             /* number of threads that synchronize at a barrier; 0: all threads of the block */
	struct map pins;      /* accumulator → struct pin; see pinned_accumulators.c */
	struct map pinned;    /* loop argument → result of stays_pinned */
	u32 npins;            /* number of struct pin so far, to name their registers */
	/* set of the operations that compute a wgmma's A operand in registers (operand_run of gpu/layout). lower_block
	 * skips them; lower_wgmma emits them with their dot. */
	struct map deferred;
	LLVMValueRef thread, lane, warp; /* i32: thread and warp number within the program; lane number */
	LLVMValueRef shared;             /* address of the block's shared memory */
	LLVMMetadataRef debug_scope;
	void *debug_builder;
	u32 nstrings;                    /* number of global strings so far, to name them */
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
/* Makes n words the tile v. words[n - 1] is the last of the instructions that compute them. */
void set_words(struct lower *l, const struct value *v, LLVMValueRef *words, u32 n);
/* The value from which shape operations that only rename registers make v. Replaces the n register indices of v at
 * `regs` by the indices in that value. */
const struct value *before_renames(const struct value *v, u32 *regs, u32 n);
/* A new array for v's elements, to be filled by the caller. */
LLVMValueRef *new_tile(struct lower *l, const struct value *v);
u32 num_elems(const struct value *v);
void lower_block(struct lower *l, const struct block *b);
void lower_op(struct lower *l, const struct op *o);
/* program_id(axis), or num_programs(axis) if how_many. */
LLVMValueRef program_number(struct lower *l, i64 axis, bool how_many);

/* builder.c */
LLVMValueRef c_i32(struct lower *l, i64 x);
LLVMValueRef c_i64(struct lower *l, i64 x);
LLVMValueRef intrinsic(struct lower *l, const char *name, LLVMTypeRef ret, LLVMValueRef *args, u32 n);
static inline LLVMValueRef call1(struct lower *l, const char *name, LLVMValueRef x)
{
	return intrinsic(l, name, LLVMTypeOf(x), &x, 1);
}
/* Inline PTX without side effects, with side effects, or with communication between threads (LLVM then keeps it in
 * uniform control flow). inline_ptx.c has the texts of common operations. */
enum asm_kind { ASM_PURE, ASM_EFFECT, ASM_CONVERGENT };
LLVMValueRef inline_asm(struct lower *l, const char *text, const char *constraints, enum asm_kind kind, LLVMTypeRef ret,
			LLVMValueRef *args, u32 n);
/* The text "{$0, $1, …}" for n operands of inline PTX from number `first` on. name: "$", or the name of registers that
 * the inline PTX declares. */
const char *register_list(struct lower *l, const char *name, u32 first, u32 n);
/* prmt: a word of four bytes of low and high, numbered 0 to 7, selected by the nibbles of `selector`. */
LLVMValueRef permute_bytes(struct lower *l, LLVMValueRef low, LLVMValueRef high, LLVMValueRef selector);
/* pack: n values of one type to integers of `bits` bits that hold them in order, the first value lowest. unpack:
 * integers to n values of type `elem`. */
void pack(struct lower *l, LLVMValueRef *in, u32 n, int bits, LLVMValueRef *out);
void unpack(struct lower *l, LLVMValueRef *in, u32 nwords, LLVMTypeRef elem, u32 n, LLVMValueRef *out);
/* XOR of bases[i] over the set bits of `index` (an i32 with `bits` bits). */
LLVMValueRef linear_map(struct lower *l, LLVMBuilderRef b, LLVMValueRef index, const u32 *bases, int bits);
/* linear_map of this thread's lane and warp number, with the bases `lanes` and `warps` (warp_bits bases). */
LLVMValueRef thread_map(struct lower *l, LLVMBuilderRef b, const u32 *lanes, const u32 *warps, int warp_bits);
/* The position, in a tile of layout `lay`, of this thread's register 0 (i32). The position of register r is its XOR
 * with layout_apply(lay, r, 0, 0). */
LLVMValueRef thread_position(struct lower *l, const struct layout *lay);
/* i1: bit `bit` of the lane number is set. */
LLVMValueRef lane_bit(struct lower *l, int bit);
/* Sets of register bits, from the axis analysis. constant_bits: v has equal elements in registers that differ only in
 * these bits. told_bits: also the bits in which pointers of one 16-byte access count up. */
u32 constant_bits(struct lower *l, const struct value *v);
u32 told_bits(struct lower *l, const struct value *v);
/* Fills in the elements at[r] of v in registers r with any of told_bits set, from the elements in the other
 * registers. */
void tell_others(struct lower *l, const struct value *v, LLVMValueRef *at);
/* p plus `by` elements of the type that `pointer` points to. */
LLVMValueRef pointer_plus(struct lower *l, const struct type *pointer, LLVMValueRef p, LLVMValueRef by);
/* i1: this thread writes its elements of a tile of layout `lay`. If several threads hold the same elements, it is true
 * in one of them. NULL: no element has copies, so it is true in all threads. lay NULL: a scalar. */
LLVMValueRef owner(struct lower *l, const struct layout *lay);
/* i1: (lane & lanes) == which and (warp & warps) == 0. NULL if both masks are 0. */
LLVMValueRef is_thread(struct lower *l, u32 lanes, u32 which, u32 warps);
void barrier(struct lower *l);
/* Proxy fence: makes the thread's stores to shared memory (to global memory too if `global`) visible to TMA and
 * wgmma. */
void fence_async(struct lower *l, bool global);
/* Synchronize the threads of a warp, of a warpgroup. */
void warp_barrier(struct lower *l);
void warpgroup_barrier(struct lower *l);
/* Synchronizes all threads of all blocks of the cluster. */
void cluster_barrier(struct lower *l);
/* The special register read by the intrinsic `name`, with the range [0, end) as metadata. */
LLVMValueRef number_below(struct lower *l, const char *name, int end);
LLVMValueRef and_i1(struct lower *l, LLVMValueRef a, LLVMValueRef b); /* NULL as operand or result: true */
/* Address in shared memory: base + offset (i32, bytes; NULL: 0) + constant (bytes). */
LLVMValueRef shared_at(struct lower *l, LLVMValueRef base, LLVMValueRef offset, u32 constant);
/* The address of operation o's scratch memory in shared memory. */
LLVMValueRef shared_base(struct lower *l, const struct op *o);
/* go_behind moves the builder to after the instruction `last` (NULL: leaves it where it is), until come_back returns
 * it. Values built between the calls are available wherever `last` is. */
struct insertion_point { LLVMBasicBlockRef block; LLVMMetadataRef line; };
struct insertion_point go_behind(struct lower *l, LLVMValueRef last);
void come_back(struct lower *l, struct insertion_point here);
/* A vector of n values; the value itself if n is 1. */
LLVMValueRef as_vector(struct lower *l, const LLVMValueRef *in, u32 n);
/* Load or store n consecutive elements at `at`, which is aligned to n elements. */
void load_vector(struct lower *l, LLVMTypeRef t, u32 n, LLVMValueRef at, LLVMValueRef *out);
void store_vector(struct lower *l, const LLVMValueRef *in, u32 n, LLVMValueRef at);
/* The value that v has in lane `lane`, or in lane (this lane ^ mask). Any type up to 64 bits. */
LLVMValueRef shuffle(struct lower *l, LLVMValueRef v, LLVMValueRef lane);
LLVMValueRef shuffle_xor(struct lower *l, LLVMValueRef v, u32 mask);
LLVMTypeRef int_type(struct lower *l, int bits);

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
/* reduce.c: emits the region b of a reduction, scan or map for scalars: args are its arguments, *out what it yields. */
void run_region(struct lower *l, const struct block *b, const LLVMValueRef *args, LLVMValueRef *out);

LLVMValueRef lower_scalar_op(struct lower *l, const struct op *o, LLVMValueRef *in);
LLVMValueRef small_to_f32(struct lower *l, LLVMValueRef v, enum dtype d);
LLVMValueRef f32_to_small(struct lower *l, LLVMValueRef v, enum dtype d, enum rounding r);
/* Converts two fp32 to fp16 or bf16, in one word with `lo` in its lower half (sm_80 on). */
LLVMValueRef cvt_f16x2(struct lower *l, LLVMValueRef lo, LLVMValueRef hi, enum dtype d);
/* fp8 elements 2i and 2i + 1 of v, as two fp16 in one word. */
LLVMValueRef fp8_pair_to_f16(struct lower *l, const struct value *v, u32 i);
/* bit_fields.c: emits o if it converts bit fields of words to floats; else false. */
bool lower_bit_fields(struct lower *l, const struct op *o);
/* small_ints.c: emits o if it converts small integers to floats; else false. */
bool lower_small_integers(struct lower *l, const struct op *o);
LLVMValueRef math_f32(struct lower *l, enum opcode code, LLVMValueRef x); /* math.c: log, log2, erf, tanh */
LLVMValueRef math_f64(struct lower *l, enum opcode code, LLVMValueRef x); /* exp, exp2 and the operations of math_f32 */
LLVMValueRef fmod_float(struct lower *l, LLVMValueRef x, LLVMValueRef y);
/* sin, cos or tan of n elements. */
void trigonometric(struct lower *l, enum opcode code, const LLVMValueRef *x, u32 n, LLVMValueRef *out);
/* memory.c: computes t->words from t->runs. */
void finish_runs(struct lower *l, struct tile *t);
/* Unaligned vector loads as loop-carried values: the parts of r, their number in *n; runs made of such parts; and runs
 * equal to words that have been computed already. shape: the runs of the loop's initial value. */
LLVMValueRef *parts_of_runs(const struct runs *r, u32 *n);
struct runs *runs_of_parts(struct lower *l, LLVMValueRef *parts, const struct runs *shape);
struct runs *runs_of_words(struct lower *l, LLVMValueRef *words, const struct runs *shape);
/* Addresses of a thread's elements in a buffer in shared memory. The element of register r is at element offset
 * thread ^ linear(m.basis[LL_REG], r): the part of lane and warp is computed once, that of a register is a constant. */
struct mapped {
	struct memory_map m;
	LLVMValueRef base, thread; /* base: address of the buffer; thread: part of lane and warp (i32, elements) */
	/* thread_bits: offset bits that `thread` may set; in other bits XOR is addition. bytes: size of an element. */
	u32 thread_bits, bytes;
};
/* lay: the tile's layout; mem: the buffer's layout. */
struct mapped map_layout(struct lower *l, const struct layout *lay, const struct layout *mem, LLVMValueRef base,
			 u32 bytes);
/* The address of element offset p->thread ^ at. For register r, `at` is linear(p->m.basis[LL_REG], r). */
LLVMValueRef mapped_address(struct lower *l, const struct mapped *p, u32 at);
/* Offset bits that depend on the lane or warp. */
u32 thread_bits(const struct memory_map *m);
/* The first register of the thread's vector i, where a vector is the registers that differ in bits m->vec_reg. The
 * other register bits number the vectors, also bits that only distinguish copies of an element. */
u32 vector_base(const struct memory_map *m, u32 i);
/* The register of element e of the vector whose first register is `base`. */
u32 vector_elem(const struct memory_map *m, u32 base, u32 e);
static inline const struct layout *row_major_of(struct lower *l, const struct type *t)
{
	return layout_row_major(&l->s->ctx->layouts, t->rank, t->shape);
}
/* Stores tile v to a buffer of layout `mem` at `base`; read_shared makes v of its elements. */
void write_shared(struct lower *l, const struct value *v, const struct layout *mem, LLVMValueRef base);
/* The element of type t that write_shared stored at this address. */
LLVMValueRef read_element(struct lower *l, LLVMValueRef at, LLVMTypeRef t);
/* A new value without definition, with v's element type, and the shape and layout of `lay`. */
struct value *tile_like(struct lower *l, const struct value *v, const struct layout *lay);
void read_shared(struct lower *l, const struct value *v, const struct layout *mem, LLVMValueRef base);
/* Transposes the wgmma operand in buffer v in place: from MN-major to K-major, in layout `to`. k: the dimension K. All
 * threads of the block must execute it. It ends with the fence and barrier that wgmma needs before reading the
 * buffer. */
void turn_in_place(struct lower *l, const struct value *v, int k, const struct layout *to); /* transpose_operand.c */
/* The LLVM instructions after `first` in the current block (`first` NULL: all), to be moved to the block's end in
 * parts. */
struct instructions {
	LLVMValueRef *at;
	u32 n;
	struct map left; /* instructions not moved yet */
};
struct instructions instructions_behind(struct lower *l, LLVMValueRef first);
/* Moves the instructions that the n `values` depend on, in their order. values NULL: all that are left. */
void move_to_end(struct lower *l, struct instructions *in, LLVMValueRef *values, u32 n);
/* An operand of mma or wgmma in registers. A fragment is the part of the operand that one instruction takes: for each
 * thread up to four 32-bit PTX registers, which hold a first and a second half of rows, and of k (PTX ISA, "Matrix
 * fragments for mma"). */
struct fragments {
	struct lower *l;
	const struct value *v;
	const struct layout *lay;
	int k_dim, other_dim;
	/* elements of a PTX register; log2 of the distance in elements along k from the first to the second half, -1:
	 * no second half */
	int per_word, k_half;
	u32 second; /* distance in rows from the first to the second half of the rows; 0: no second half */
	/* Four fp8 elements along k are converted to two PTX registers of fp16; `half` (0, 1) selects the register. */
	bool widened;
	u32 half;
	LLVMValueRef *cache; /* PTX registers already built, by (register index / per_word) */
};
struct fragments fragments_of(struct lower *l, const struct value *v, int operand_index, const struct mma *m);
/* Stores to `out` the PTX registers of the fragment that begins at coordinates (other, k) plus the coordinates of the
 * thread's register 0, batch `batch`: for each half of k, the halves of rows. Returns their number. */
u32 load_fragment(struct fragments *f, u32 batch, u32 other, u32 k, LLVMValueRef *out);
/* The accumulators v of wgmma as 32-bit PTX registers: the number of registers, their constraint letter in inline
 * assembly, v packed to registers, and v as the results of inline PTX. */
u32 num_accumulators(const struct value *v);
const char *accumulator_letter(const struct value *v);
void get_accumulators(struct lower *l, const struct value *v, LLVMValueRef *words);
void set_accumulators(struct lower *l, const struct value *v, const char *text, const char *constraints,
		      LLVMValueRef *args, u32 nargs);
/* pinned_accumulators.c: named PTX registers, declared by inline PTX and unknown to LLVM, that hold an accumulator from
 * before a loop until after it. */
struct pin { const char *name; }; /* the registers NAME0, NAME1… */
/* Whether loop-carried value i of `loop` can stay in such registers. */
bool stays_pinned(struct lower *l, const struct op *loop, u32 i);
/* The registers that hold v; NULL: v is a tile of LLVM values. */
const struct pin *pin_of(struct lower *l, const struct value *v);
/* pin_of(v); if v is a tile of LLVM values, declares registers and copies v to them. */
const struct pin *pin_down(struct lower *l, const struct value *v);
/* Called when v has been computed into the registers h: sets pin_of(v), or copies v to LLVM values if no operation
 * continues with v in these registers. */
void pass_pin(struct lower *l, const struct pin *h, const struct value *v);
/* Prefetches the descriptors of all tensor maps, in the producer warp, before its first wait. */
void prefetch_tensor_maps(struct lower *l);
void debug_begin(struct lower *l);
void debug_location(struct lower *l, struct loc at);
void debug_end(struct lower *l);

/* inline_ptx.c: the texts of mma */
struct ptx_mma {
	const char *text, *constraints;
	u8 na, nb, nc; /* PTX registers (32-bit, or 64-bit for fp64) of the fragments of A, B and the accumulator */
	enum dtype acc; /* type of an accumulator register */
};
const struct ptx_mma *ptx_mma(const char *name);

#endif
