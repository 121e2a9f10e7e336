/* Shared declarations of CPU code generation.
 *
 * A nest is a set of fused loops over the elements of a tile shape. Each iteration of its innermost loop computes each
 * value at an index: an LLVM scalar, or a vector of neighbours, elements with successive indices along one dimension.
 * "lanes" is the number of neighbours, 0 for a scalar. A load or store "has neighbours along" a dimension if successive
 * elements along it have successive addresses. "Memory" of a tile is a part of the program's scratch memory. bf16 and
 * fp8 are integers of their width, fp16 is half, i1 is i1. */
#ifndef TLC_CPU_CPU_INTERNAL_H
#define TLC_CPU_CPU_INTERNAL_H

#include "support/map.h"
#include "cpu/cpu.h"
#include "analysis/axis.h"
#include "analysis/ranges.h"
#include "llvm/builder.h"

/* The kind of instruction that computes a dot (cpu_dot_units): a multiply-add, a dot-product instruction of the vector
 * unit, or an instruction on AMX tile registers. */
enum dot_unit_kind { DOT_MULTIPLY_ADD, DOT_BF16, DOT_INT16, DOT_INT8, DOT_TILES_BF16, DOT_TILES_INT8 };

/* Memory of a tile in the program's scratch memory. stride[d]: distance of neighbours along dimension d, in
 * elements. */
struct buffer {
	LLVMValueRef at;
	LLVMTypeRef elem; /* type of an element in memory: i8 for i1 */
	i64 stride[MAX_RANK];
	/* for a dot operand, stored in the format that `unit` reads (pack_operands.c): the dtype before conversion to
	 * that format; else DT_COUNT */
	enum dtype operand;
	enum dot_unit_kind unit;
	bool tf32; /* elements are truncated to TF32 */
	/* for operand B of a dot, stored in panels of some columns (pack_operands.c): columns of a panel, and elements
	 * from one panel to the next; else 0 */
	i64 panel, panel_stride;
	/* for a dot operand with several slots (deferred_dots.c): the memory of the first slot, and elements from one
	 * slot to the next; `at` is the slot of the current iteration */
	LLVMValueRef first_slot;
	i64 slot_stride;
	u64 bytes; /* size of the tile */
	/* metadata of loads and stores of this memory (cpu_mark): they are of no other tile's memory */
	LLVMValueRef mark;
};

struct cpu_nest;
struct debug;
struct region;

/* An index of a tile: for each dimension the i64 index of the first lane. Lanes are neighbours along dimension
 * `along`. along < 0: a single element. */
struct at {
	LLVMValueRef i[MAX_RANK];
	i32 along;
	u32 lanes;
};

/* The part of a tile that a loop carries in registers (carried_tiles.c): x is its lanes at index `at`. */
struct in_register {
	struct at at;
	LLVMValueRef x;
};

/* Code generation state of a value. */
struct info {
	LLVMValueRef scalar;             /* value of a scalar */
	struct buffer *buffer;           /* memory of a tile, or NULL */
	bool free;                       /* rematerializable: recomputed at each use, as indices, masks and constants */
	bool stored;                     /* stored in memory at its definition */
	bool made;                       /* `buffer` holds the tile at the current point of code generation */
	bool in_place;                   /* `buffer` is the memory of a carried tile which the value is computed from */
	struct in_register *in_register; /* carried_tiles.c: the value in registers, or NULL */
	/* i1 at run time, or NULL. If true, all elements are zero, and `buffer` is not initialized. */
	LLVMValueRef zero;
	u32 depth;                       /* longest chain of operations from values in memory to the value */
	u32 last_root;                   /* op.mark of the last operation in its block that reads it */
	struct cpu_nest *nest;           /* the first nest in the value's block that computes it, or NULL */
	/* inner_dimension.c: values with a common contiguous dimension form a class, by union-find. same: the parent;
	 * NULL in the class's representative, which alone has valid `votes`. */
	struct info *same;
	i32 votes[MAX_RANK]; /* for each dimension, the number of loads and stores with neighbours along it */
};

/* A root of a nest: an operation (store, reduction), or a value that is stored in memory. */
struct root {
	const struct op *op;
	const struct value *v;
	LLVMValueRef part[8];  /* reduction along the lanes: for each operand, the alloca of its partial results */
	LLVMValueRef total;    /* long sum (reduce.c): the alloca of the sum of earlier segments */
	struct buffer *turned; /* dot operand with lanes along dimension rank - 2: its memory before transposition */
};

struct cpu_nest {
	i32 rank, lane_dim; /* lane_dim: dimension of the innermost loop, whose neighbours are the lanes */
	i32 shape[MAX_RANK];
	u32 lanes;
	VEC(struct root) roots;
	VEC(const struct op *) loads; /* loads that the nest executes */
};

/* A value already computed at an index; a list for each value. */
struct memo {
	struct at at;
	LLVMValueRef x;
	struct memo *next;
};

struct cpu_codegen {
	struct pass_state *s;
	struct kernel *k;
	struct arena scratch;
	LLVMContextRef ctx;
	LLVMModuleRef mod;
	LLVMBuilderRef b, entry;            /* `entry` appends to the entry block */
	LLVMValueRef fn, call, pid, memory; /* the function and its parameters (cpu_program) */
	LLVMTypeRef i1, i8, i16, i32, i64, f16, f32, f64, v, ptr;
	struct map info;         /* value → struct info */
	struct map memo;         /* value → struct memo: what the current basic block has computed */
	struct map ahead;        /* load → i64: bytes to what the next iteration loads (prefetch.c) */
	struct map deferred;     /* loop → struct deferred */
	struct map exact;        /* LLVM value of a narrow float → the fp32 value that it was rounded from */
	struct assumed *assumed; /* masks known to be true in the nest's body under construction (nest.c) */
	/* that body is for the end of a row, after the elements for which the masks are known to be true */
	bool in_rest;
	u64 bytes;               /* size of scratch memory so far */
	u32 nmarks;              /* number of cpu_new_mark so far */
	u32 nstrings;            /* number of global constants so far, to name them */
	bool tiles;               /* the program has configured the tile registers (amx.c) */
	LLVMValueRef tile_memory; /* scratch memory to convert the contents of a tile register (amx.c), or NULL */
	LLVMValueRef spilled[3];  /* scratch memory of addresses, mask and data for the runtime (checked_access.c) */
	/* i1 at run time: all programs of the launch together store more than a part of the cache (streaming_stores.c).
	 * NULL: the kernel has no store that may bypass the caches. */
	LLVMValueRef streams;
	struct debug *debug;          /* debug.c; NULL: not compiled for debuggers */
	VEC(struct region *) regions; /* outline.c */
	struct region *region;        /* the region under construction, or NULL */
};

/* --- debug.c: no effect without debug information -------------------------------------------------------------- */

void cpu_debug_begin(struct cpu_codegen *h);
/* Sets the source location of the following code. No effect in kernels with operations for debuggers (IR_DEBUG_*),
 * which set it. */
void cpu_debug_location(struct cpu_codegen *h, struct loc at);
void cpu_debug_parameters(struct cpu_codegen *h);
/* Makes a named value visible as a variable: a scalar already computed, or a tile in memory. No effect in kernels with
 * operations for debuggers. */
void cpu_debug_value(struct cpu_codegen *h, const struct value *v);
/* At the end of one side of an IR_IF: sets the variables that have the branch's result i after it. x is the value that
 * this side yields, b its memory if it is a tile. They are set here because code after the branch would have the line
 * of the branch, and a debugger would step back to it. */
void cpu_debug_yield(struct cpu_codegen *h, const struct op *branch, u32 i, const struct value *x,
		     const struct buffer *b);
/* Emits an operation for debuggers. */
void cpu_debug_op(struct cpu_codegen *h, const struct op *o);
/* Get and set the builder's source location: to restore that of an operation after the code of its blocks. */
LLVMMetadataRef cpu_debug_here(struct cpu_codegen *h);
void cpu_debug_back(struct cpu_codegen *h, LLVMMetadataRef here);
/* Moves the current basic block after all others, so that blocks have the order of the source lines. A register reload
 * at a block's start has no line: debuggers count it to the line before it in the code. */
void cpu_debug_order(struct cpu_codegen *h);
/* Begin and end of a block of the IR: variables that get their first value in it have no value after it. `entered`: the
 * result of cpu_debug_enter. */
u32 cpu_debug_enter(struct cpu_codegen *h);
void cpu_debug_leave(struct cpu_codegen *h, u32 entered);
void cpu_debug_end(struct cpu_codegen *h);

/* --- elementwise.c, math.c: operations on scalars and vectors ---------------------------------------------------- */

/* The LLVM type of an element of a tile; the type of a vector of `lanes` elements, or `elem` itself if lanes is 0. */
LLVMTypeRef cpu_elem_type(struct cpu_codegen *h, const struct type *t);
LLVMTypeRef cpu_vector_type(LLVMTypeRef elem, u32 lanes);
/* An elementwise operation (op_has(o, ELEM)), of a block or of the region of a map or reduction, on operands with
 * equally many lanes. */
LLVMValueRef cpu_elementwise(struct cpu_codegen *h, const struct op *o, const LLVMValueRef *in);
/* Any float format to f32 (f64 stays f64), and back, rounded to nearest even. */
LLVMValueRef cpu_widen(struct cpu_codegen *h, LLVMValueRef v, enum dtype d);
LLVMValueRef cpu_narrow(struct cpu_codegen *h, LLVMValueRef v, enum dtype d);

/* --- builder.c ----------------------------------------------------------------------------------------------- */

static inline LLVMValueRef cpu_i32(struct cpu_codegen *h, i64 x)
{
	return LLVMConstInt(h->i32, (u64)x, true);
}
static inline LLVMValueRef cpu_i64(struct cpu_codegen *h, i64 x)
{
	return LLVMConstInt(h->i64, (u64)x, true);
}
/* x, or a vector of `lanes` copies of it. */
LLVMValueRef cpu_spread(struct cpu_codegen *h, LLVMValueRef x, u32 lanes);
/* n lanes of a vector from number `first` on; after the last lane, the first ones again. */
LLVMValueRef cpu_lanes(struct cpu_codegen *h, LLVMValueRef x, u32 first, u32 n);
/* Concatenates n vectors (n a power of two); overwrites `parts`. */
LLVMValueRef cpu_concat(struct cpu_codegen *h, LLVMValueRef *parts, u32 n);
LLVMValueRef cpu_lane(struct cpu_codegen *h, LLVMValueRef x, u32 lane);
/* The vector 0, 1, 2 … of integer type t. */
LLVMValueRef cpu_iota(LLVMTypeRef t, u32 lanes);
/* i1: any lane of the mask is true; if `all`: all lanes are true. */
LLVMValueRef cpu_any_lane(struct cpu_codegen *h, LLVMValueRef mask, bool all);
/* Loads a t from p plus `offset` bytes. */
LLVMValueRef cpu_load_at(struct cpu_codegen *h, LLVMBuilderRef b, LLVMTypeRef t, LLVMValueRef p, i64 offset);

/* Emits for (i = from; i < to; i += step). Code built between cpu_loop and cpu_loop_end is the body. may_be_empty: the
 * loop tests from < to before the first iteration. */
struct cpu_loop {
	LLVMBasicBlockRef head, exit;
	LLVMValueRef index, to, step;
};
struct cpu_loop cpu_loop(struct cpu_codegen *h, LLVMValueRef from, LLVMValueRef to, i64 step, bool may_be_empty);
void cpu_loop_end(struct cpu_codegen *h, struct cpu_loop *l);

/* --- fusion_plan.c: the nests of a block --------------------------------------------------------------------- */

/* A step of a block's code, in order of emission: a single operation, or a nest. */
struct cpu_step {
	const struct op *op;
	struct cpu_nest *nest;
};
typedef VEC(struct cpu_step) step_vec;
struct info *info_of(struct cpu_codegen *h, const struct value *v);
/* Decides for all values of the kernel whether they are stored in memory. */
void plan_kernel(struct cpu_codegen *h);
void plan_block(struct cpu_codegen *h, const struct block *b, step_vec *out);
/* Whether the value that a loop yields for carried tile `arg` can be computed in the memory of `arg`. */
bool plan_in_place(struct cpu_codegen *h, const struct value *arg, const struct value *yielded);
bool is_whole_tile(const struct op *o);
/* Whether the result of o can be computed at one index of the tile, in the nests that use it. */
bool cpu_is_inline(const struct op *o);
/* Whether recomputing an inline value is as cheap as loading it. */
bool cpu_cheap_again(struct cpu_codegen *h, const struct value *v);
/* Whether no memory access may move across o, as with an acquire or release atomic. */
bool cpu_orders(const struct op *o);

/* --- inner_dimension.c --------------------------------------------------------------------------------------- */

void cpu_choose_inner(struct cpu_codegen *h);
/* The dimension of a tile that is contiguous in its memory. */
int cpu_inner(struct cpu_codegen *h, const struct value *v);

/* --- cpu.c: blocks, control flow, memory of tiles --------------------------------------------------------------- */

void cpu_emit_block(struct cpu_codegen *h, const struct block *b);
void cpu_emit_scalar(struct cpu_codegen *h, const struct op *o);
/* A for loop. at: the loop carries tiles in registers, as elements at this index, and stores them after the loop.
 * NULL: it carries them in memory. */
void cpu_emit_for(struct cpu_codegen *h, const struct op *o, const struct at *at);
LLVMValueRef cpu_scalar(struct cpu_codegen *h, const struct value *v);
void cpu_set_scalar(struct cpu_codegen *h, const struct value *v, LLVMValueRef x);
struct buffer *buffer_of(struct cpu_codegen *h, const struct value *v);
/* Marks a load or store of b's memory, so that LLVM moves it past accesses of other tiles' memory. */
void cpu_mark(struct cpu_codegen *h, const struct buffer *b, LLVMValueRef access);
LLVMValueRef cpu_new_mark(struct cpu_codegen *h);
/* New memory for v, contiguous along cpu_inner(v). */
struct buffer *buffer_new(struct cpu_codegen *h, const struct value *v);
LLVMValueRef cpu_scratch(struct cpu_codegen *h, u64 bytes);
/* Stores v's elements to memory, by a copy or by computing them. */
void cpu_store_tile(struct cpu_codegen *h, const struct value *v, struct buffer *to);
/* Whether o may overwrite the memory of its operand v: o is the only use of v, in the same block. */
bool cpu_ends_at(struct cpu_codegen *h, const struct value *v, const struct op *o);
/* The memory of v. Computes v into new memory unless its memory holds it. */
struct buffer *cpu_in_memory(struct cpu_codegen *h, const struct value *v);
/* Emits: if `bad` (i1), the program reports `text` at the location of o and returns. The report names element `at` of a
 * tile of type t; cpu_fail_if: no element. */
void cpu_fail_at(struct cpu_codegen *h, LLVMValueRef bad, const struct op *o, const char *text, const struct type *t,
		  const struct at *at);
/* The row-major number of an element in its tile. */
LLVMValueRef cpu_element_number(struct cpu_codegen *h, const struct type *t, const struct at *at);
void cpu_fail_if(struct cpu_codegen *h, LLVMValueRef bad, const struct op *o, const char *text);
/* The address of a constant; its name begins with `prefix`. cpu_string: of a NUL-terminated text. */
LLVMValueRef cpu_constant(struct cpu_codegen *h, LLVMValueRef c, const char *prefix);
LLVMValueRef cpu_string(struct cpu_codegen *h, const char *text);
/* The report of a device_assert that fails. */
const char *cpu_assert_text(struct cpu_codegen *h, const struct op *o);
/* Calls the function at byte `function` of the launch's cpu_call, with the launch, the program and n further
 * arguments. */
LLVMValueRef cpu_call_runtime(struct cpu_codegen *h, size_t function, LLVMTypeRef ret, const LLVMValueRef *args, u32 n);
/* Emits: if `failed` (i32) is not 0, the program returns 1. */
void cpu_return_if(struct cpu_codegen *h, LLVMValueRef failed);

/* --- outline.c: equal steps of a large kernel become calls of a function ------------------------------------------ */

/* Instructions built between these calls are one step of a block, a candidate for outlining. */
struct region *cpu_region_begin(struct cpu_codegen *h);
void cpu_region_end(struct cpu_codegen *h, struct region *r);
/* Outlines equal regions after the kernel is complete. */
void cpu_outline_regions(struct cpu_codegen *h);

/* --- carried_tiles.c: loops inside nests --------------------------------------------------------------------- */

/* Whether `loop` can run inside a nest: in each iteration, an element of a carried tile depends only on elements of
 * carried tiles at the same index, and on no store of the loop. */
bool cpu_carries_elements(struct cpu_codegen *h, const struct op *loop);
void cpu_emit_for_elements(struct cpu_codegen *h, const struct op *loop);

/* --- nest.c: the loops of a nest, and values at an index --------------------------------------------------------- */

void cpu_emit_nest(struct cpu_codegen *h, struct cpu_nest *n);
void nest_choose_lanes(struct cpu_codegen *h, struct cpu_nest *n);
/* Adds 1 to votes[d] for each dimension d along which load or store o has neighbours. */
void cpu_count_neighbours(struct cpu_codegen *h, const struct op *o, i32 *votes);
/* Whether these accesses have neighbours along the same dimension as the nest's accesses. */
bool nest_agrees(struct cpu_codegen *h, const struct cpu_nest *n, const struct op *const *accesses, u32 naccesses);
LLVMValueRef cpu_eval(struct cpu_codegen *h, const struct value *v, const struct at *at);
/* Stores v to memory by a separate nest. lanes: number of lanes; 0: LANE_REGISTERS vector registers (nest.c). */
void cpu_compute(struct cpu_codegen *h, const struct value *v, struct buffer *to, u32 lanes);
/* For a comparison v = (index < bound) or (index <= bound), where the index counts up along at->along: the number of
 * elements at the start of row `at` for which v is true, as i64. NULL if v is no such comparison, or its operands are
 * not rematerializable. */
LLVMValueRef cpu_count_true(struct cpu_codegen *h, const struct value *v, const struct at *at);
void cpu_forget(struct cpu_codegen *h); /* empties cpu_codegen.memo: its values are valid in one basic block */
/* The offset of the element at an index from b->at, in elements. */
LLVMValueRef cpu_offset(struct cpu_codegen *h, const struct buffer *b, int rank, const struct at *at);
/* Loops over a tile, with lanes along the last dimension. */
struct loops {
	struct cpu_loop at[MAX_RANK];
	int rank;
};
struct at cpu_loops(struct cpu_codegen *h, const struct type *t, u32 lanes, struct loops *l);
void cpu_loops_end(struct cpu_codegen *h, struct loops *l);
LLVMValueRef buffer_load(struct cpu_codegen *h, const struct buffer *b, const struct type *t, const struct at *at);
void buffer_store(struct cpu_codegen *h, const struct buffer *b, const struct type *t, const struct at *at,
		  LLVMValueRef x);
/* Emits the region of a map or reduction, for scalars, or for vectors of `lanes` lanes if region_is_elementwise. */
void cpu_region(struct cpu_codegen *h, const struct block *b, const LLVMValueRef *args, LLVMValueRef *out, u32 lanes);

/* --- memory.c -------------------------------------------------------------------------------------------------- */

LLVMValueRef cpu_eval_load(struct cpu_codegen *h, const struct op *o, const struct at *at);
void cpu_eval_store(struct cpu_codegen *h, const struct op *o, const struct at *at);
LLVMValueRef cpu_eval_atomic(struct cpu_codegen *h, const struct op *o, const struct at *at);

/* --- load_patterns.c: lanes with addresses of a known pattern ------------------------------------------------ */

/* N if the addresses p along dimension d are N times the first one, N times the next one, and so on; 0 if they are not
 * known to be. N is a power of two less than the size of d. */
u32 cpu_repeats(struct cpu_codegen *h, const struct value *p, int d);
/* Each element of x `times` times. */
LLVMValueRef cpu_repeat(struct cpu_codegen *h, LLVMValueRef x, u32 times);
/* Elements of a few vector registers at the address `base`, of which each lane loads element `index`. */
struct table {
	const struct value *base, *index;
	LLVMTypeRef elem;     /* integer as wide as an element */
	u32 lanes, registers; /* lanes: elements of a register */
};
/* Whether the lanes of a load at index `at` are elements of a table. */
bool cpu_find_table(struct cpu_codegen *h, const struct op *load, const struct at *at, struct table *t);
/* i1: all registers of the table at p can be read if one element of it can. */
LLVMValueRef cpu_table_is_readable(struct cpu_codegen *h, const struct table *t, LLVMValueRef p);
/* The elements of type `elem` of the table at p with these indices. */
LLVMValueRef cpu_look_up(struct cpu_codegen *h, const struct table *t, LLVMValueRef p, LLVMValueRef index,
			 LLVMTypeRef elem);

/* --- prefetch.c: what the next iteration of a loop loads -------------------------------------------------------- */

/* At the start of a nest: computes the distances of the loads that prefetch. */
void cpu_prefetch_begin(struct cpu_codegen *h, const struct cpu_nest *n);
/* Where `load` loads `bytes` bytes from p for index `at`: prefetches a part of what the next iteration loads there. */
void cpu_prefetch(struct cpu_codegen *h, const struct op *load, const struct at *at, LLVMValueRef p, u32 bytes);

/* --- wide_atomics.c: atomic additions to several neighbours at once ---------------------------------------------- */

/* The number of neighbours of tile operation o that one addition takes; 0 if each element takes one. */
u32 cpu_wide_atomic(struct cpu_codegen *h, const struct op *o);
void cpu_emit_wide_atomic(struct cpu_codegen *h, const struct op *o, u32 lanes);

/* Where the next iteration (or the next ones, for deferred dots) will load an operand of a dot: `total` cache lines,
 * `lines` of them in each row, and rows `pitch` bytes apart. */
struct next_tile {
	LLVMValueRef first, pitch;
	i64 lines, total;
};
/* False if operand `which` of the dot is not loaded in each iteration of a loop, by rows. */
bool cpu_next_tile(struct cpu_codegen *h, const struct op *dot, u32 which, struct next_tile *t);
/* Prefetches the lines of turn `turn` (i64) of `turns`, a power of two. */
void cpu_fetch_next(struct cpu_codegen *h, const struct next_tile *t, LLVMValueRef turn, i64 turns);

/* --- streaming_stores.c: stores that bypass the caches ------------------------------------------------------- */

/* cpu_stream_begin emits the test cpu_codegen.streams into the entry block. cpu_stream_end emits a store fence at the
 * end of the program, if the test is true. */
void cpu_stream_begin(struct cpu_codegen *h);
void cpu_stream_end(struct cpu_codegen *h);
/* Whether store o bypasses the caches in launches for which cpu_codegen.streams is true. */
bool cpu_streams(struct cpu_codegen *h, const struct op *o);
/* Stores x, whole vector registers with elements of `bytes` bytes, to address p. Bypasses the caches if
 * cpu_codegen.streams is true and p is aligned to a vector register. */
void cpu_stream_store(struct cpu_codegen *h, LLVMValueRef x, LLVMValueRef p, u32 bytes);

/* --- pack_operands.c ----------------------------------------------------------------------------------------- */

enum { HOST_PANEL_REGISTERS = 2 };
/* Properties of a dot_unit_kind. group: products along k that the instruction adds to each accumulator. bits: size of
 * an operand element in memory; 0: as the accumulator. A dot can use the instruction if its number of rows, number of
 * columns and k are multiples of `rows`, `columns` and `k`. */
struct dot_unit {
	i32 group, bits, rows, columns, k;
};
extern const struct dot_unit cpu_dot_units[];
enum dot_unit_kind cpu_dot_unit(const struct cpu_codegen *h, const struct op *dot);
enum dtype cpu_sum_dtype(const struct op *o);
LLVMValueRef cpu_to_sum(struct cpu_codegen *h, LLVMValueRef x, enum dtype from, LLVMTypeRef sum);
/* Whether all uses of v are dots that take it as the same operand. */
bool cpu_dot_takes(struct cpu_codegen *h, const struct value *v, const struct op **dot, u32 *which);
/* cpu_dot_buffer: new memory for operand `which` (0: A, 1: B) of dot o, in the format of its dot_unit. cpu_to_operand:
 * converts elements x to the format of that memory. */
struct buffer *cpu_dot_buffer(struct cpu_codegen *h, const struct op *o, u32 which);
LLVMValueRef cpu_to_operand(struct cpu_codegen *h, LLVMValueRef x, const struct buffer *to);
/* The number of rows of operand B that are interleaved in memory: dot_unit.group; 1 for other memory. */
u32 cpu_dot_group(const struct buffer *b);
/* Interleaves, in memory, the cpu_dot_group(b) rows from `first` on of an operand of type t; until then they lie one
 * after another. cpu_dot_interleave_all: each such group of rows. */
void cpu_dot_interleave(struct cpu_codegen *h, const struct type *t, const struct buffer *b, const struct at *first);
void cpu_dot_interleave_all(struct cpu_codegen *h, const struct type *t, const struct buffer *b);
/* Copies a tile of type t, which is contiguous along dimension rank - 2 in `from`, to dot operand memory `to`. */
void cpu_dot_transpose(struct cpu_codegen *h, const struct type *t, const struct buffer *from, const struct buffer *to);
/* Whether o is a transposition (IR_TRANS) whose result only dots take, and whose operand is in memory and contiguous
 * along the result's dimension rank - 2. cpu_dot_turn emits it. */
bool cpu_dot_turns(struct cpu_codegen *h, const struct op *o);
void cpu_dot_turn(struct cpu_codegen *h, const struct op *o);
/* Operand `which` of dot o in memory in the format of its dot_unit, computed now if necessary. */
struct buffer *cpu_dot_operand(struct cpu_codegen *h, const struct op *o, u32 which);

/* --- deferred_dots.c: dots that run once for several iterations of a loop -------------------------------------- */

struct deferred {
	i64 slots;           /* the number of iterations for which a dot runs once, a power of two */
	LLVMValueRef filled; /* i64: slots that hold operands after this iteration */
	LLVMValueRef due;    /* i1: the dots run in this iteration */
};
/* How the dots of `loop` are deferred; NULL if they run in each iteration. */
struct deferred *cpu_deferred(struct cpu_codegen *h, const struct op *loop);
/* At the start of an iteration of a loop with deferred dots. round: number of the iteration, from 0 (i64). last: this
 * is the last iteration (i1). */
void cpu_deferred_begin(struct cpu_codegen *h, const struct op *loop, LLVMValueRef round, LLVMValueRef last);

/* --- dot.c, amx.c ---------------------------------------------------------------------------------------------- */

/* A dot with its operands and C in memory. */
struct product {
	const struct type *type; /* type of C */
	struct buffer *a, *b, *c;
	enum dtype sum, result;
	i32 k; /* number of products of an accumulator that one slot of the operands holds */
	struct next_tile next[2]; /* operands of the next iterations, prefetched during the dot */
	u32 nnext;
	LLVMValueRef all_k; /* the same for all slots that hold operands (i64) */
	/* Block of C that stays in registers: its number of rows, vector registers of each row (from one or several
	 * panels of B), and accumulators of a register. */
	u32 registers, lanes, rows;
	struct at at;      /* first row and column of the block in C */
	LLVMValueRef zero; /* if true (i1), C is zero whatever its memory holds; or NULL */
};
/* The address of the element at index `at` in b. */
LLVMValueRef cpu_row_address(struct cpu_codegen *h, const struct buffer *b, int rank, const struct at *at);
/* Accumulators x as elements of C's type. */
LLVMValueRef cpu_from_sum(struct cpu_codegen *h, LLVMValueRef x, const struct product *p);
/* Emits the dot with AMX tile registers,
 * for the first `rows` rows (NULL: all) and `columns` columns of C. */
void cpu_dot_tiles(struct cpu_codegen *h, struct product *p, LLVMValueRef rows, LLVMValueRef columns);
/* Emits the release of the tile registers before each return, if the program has configured them. */
void cpu_tiles_end(struct cpu_codegen *h);

/* --- demanded_rows.c ----------------------------------------------------------------------------------------- */

/* The number n of elements along dimension `dim`, as i64: the uses of v need no elements from n on (analysis/
 * demanded_rows.h). NULL: the uses need all elements, or n cannot be computed in block b. */
LLVMValueRef cpu_demanded(struct cpu_codegen *h, const struct value *v, int dim, const struct block *b);

/* --- checked_access.c ---------------------------------------------------------------------------------------- */

struct checked {
	LLVMValueRef p, mask,
		/* p: an address, or one for each lane. mask: NULL if all lanes are active. data: the elements that a
		 * store writes, i1 as i8; else NULL. */
		data;
	u32 lanes;    /* 0: a single element */
	const struct at *at;
};
/* Reports an access to the runtime, which performs a store. The program ends if the access is an error. */
void cpu_check_access(struct cpu_codegen *h, const struct op *o, const struct checked *c);

/* --- reduce.c, dot.c, whole_tile_ops.c ----------------------------------------------------------------------- */

/* The three parts of a reduction in a nest: before the innermost loop, in its body, and after it. The first and the
 * last are only for reductions along the lanes. first (i1): the body runs for the first time in this row. */
void reduce_open(struct cpu_codegen *h, struct cpu_nest *n, struct root *r);
void reduce_body(struct cpu_codegen *h, struct cpu_nest *n, struct root *r, const struct at *at, LLVMValueRef first);
void reduce_close(struct cpu_codegen *h, struct cpu_nest *n, struct root *r, const struct at *row);
/* out = combine(a, b), by the region of a reduction or scan; each is one value for each operand of o. */
void cpu_combine(struct cpu_codegen *h, const struct op *o, const LLVMValueRef *a, const LLVMValueRef *b,
		 LLVMValueRef *out, u32 lanes);
void cpu_dot(struct cpu_codegen *h, const struct op *o);
/* Whether the use is operand C of a dot that reads info.zero (dots on tile registers do). */
bool cpu_dot_clears(struct cpu_codegen *h, const struct use *u);
void cpu_whole(struct cpu_codegen *h,
	       const struct op *o); /* scans, gathers, histograms, joins, splits, maps, atomics … */

#endif
