/* Shared declarations of CPU code generation.
 *
 * A value at an index of its tile is an LLVM scalar, or a vector of several neighbours. "lanes" is the number of
 * neighbours, 0 for a scalar. bf16 and fp8 are integers of their width, fp16 is half, i1 is i1. */
#ifndef TLC_CPU_CPU_INTERNAL_H
#define TLC_CPU_CPU_INTERNAL_H

#include "support/map.h"
#include "cpu/cpu.h"
#include "analysis/axis.h"
#include "analysis/ranges.h"

/* The multiplication unit of a dot (dot.c, amx.c). */
enum dot_unit_kind { DOT_MULTIPLY_ADD, DOT_BF16, DOT_INT16, DOT_INT8, DOT_TILES_BF16, DOT_TILES_INT8 };

/* Memory of a tile in the program's scratch memory. Elements along dimension d are stride[d] apart. */
struct buffer {
	LLVMValueRef at;
	LLVMTypeRef elem; /* i8 for i1 */
	i64 stride[MAX_RANK];
	/* for a dot operand stored in the form of its unit: the element type of the operand; else DT_COUNT */
	enum dtype operand;
	enum dot_unit_kind unit;
	bool tf32; /* rounded to TF32 */
	/* Operand in panels: columns of a panel, and elements between panels; else 0. */
	i64 panel, panel_stride;
	u64 bytes;
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

/* A tile that a loop carries in registers: its lanes at an index. */
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
	bool made;                       /* its memory holds it at this point */
	bool in_place;                   /* its memory is that of a tile which it is computed from */
	struct in_register *in_register; /* carried_tiles.c: the value in registers, or NULL */
	/* if true (i1), all of the tile is zero and its memory is not initialized; or NULL */
	LLVMValueRef zero;
	u32 depth;                       /* operations between it and values in memory */
	u32 last_root;                   /* op.mark of the last operation of its block for which a nest computes it */
	struct cpu_nest *nest;           /* the nest of its block that computes it, for later nests too; or NULL */
	/* inner_dimension.c: another value of its class; the representative, where `same` is NULL, has the votes */
	struct info *same;
	i32 votes[MAX_RANK]; /* for each dimension, the loads and stores with neighbours along it */
};

/* A root of a nest: an operation (store, reduction), or a value that is stored in memory. */
struct root {
	const struct op *op;
	const struct value *v;
	LLVMValueRef part[8];  /* reduction along the lanes: memory of the partial results */
	LLVMValueRef total;    /* long sum: memory of the total of earlier segments */
	struct buffer *turned; /* dot operand with lanes along rank - 2: memory before the transposition */
};

struct cpu_nest {
	i32 rank, lane_dim;
	i32 shape[MAX_RANK];
	u32 lanes;
	VEC(struct root) roots;
	VEC(const struct op *) loads; /* loads that the nest executes */
};

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
	LLVMValueRef fn, call, pid, memory; /* the function and its parameters */
	LLVMTypeRef i1, i8, i16, i32, i64, f16, f32, f64, v, ptr;
	struct map info;         /* value → struct info */
	struct map memo;         /* in the body of a nest: value → struct memo */
	struct map exact;        /* LLVM value of a narrow float → the fp32 value that it was rounded from */
	struct assumed *assumed; /* masks known to be true in the body */
	/* the body is the rest of a row, after the elements for which the masks are known to be true */
	bool in_rest;
	u64 bytes;               /* of scratch memory */
	u32 nstrings;
	bool tiles;               /* the program has configured the tile registers (amx.c) */
	LLVMValueRef tile_memory; /* memory of a tile register, or NULL */
	LLVMValueRef spilled[3];  /* checked_access.c */
	/* the launch stores much (i1); NULL: the kernel has no store that may bypass the caches */
	LLVMValueRef streams;
	struct debug *debug;          /* debug.c; NULL: not compiled for debuggers */
	VEC(struct region *) regions; /* outline.c */
	struct region *region;        /* the region under construction, or NULL */
};

/* --- debug.c: no effect unless the target has lines -------------------------------------------------------------- */

void cpu_debug_begin(struct cpu_codegen *h);
/* Sets the location of the following code, in kernels without operations for debuggers. */
void cpu_debug_location(struct cpu_codegen *h, struct loc at);
void cpu_debug_parameters(struct cpu_codegen *h);
/* Shows a variable, in kernels without operations for debuggers: a named value, either a scalar already computed or a
 * tile in memory. */
void cpu_debug_value(struct cpu_codegen *h, const struct value *v);
/* At the end of one side of a branch: sets the variables that get the branch's result i. x is the value, b its memory
 * if it is a tile. The code after the branch has no line; otherwise a debugger would go back to the branch for it. */
void cpu_debug_yield(struct cpu_codegen *h, const struct op *branch, u32 i, const struct value *x,
		     const struct buffer *b);
/* Emits an operation for debuggers. */
void cpu_debug_op(struct cpu_codegen *h, const struct op *o);
/* Saves the location of an operation, which code inside it changes, and restores it. */
LLVMMetadataRef cpu_debug_here(struct cpu_codegen *h);
void cpu_debug_back(struct cpu_codegen *h, LLVMMetadataRef here);
/* Moves the current block after all others, into the order of lines. A reload at its start has no line and counts to
 * the preceding line. */
void cpu_debug_order(struct cpu_codegen *h);
/* A region: variables that get their first value in it have no value after it. */
u32 cpu_debug_enter(struct cpu_codegen *h);
void cpu_debug_leave(struct cpu_codegen *h, u32 entered);
void cpu_debug_end(struct cpu_codegen *h);

/* --- elementwise.c, math.c: operations on scalars and vectors ---------------------------------------------------- */

/* The LLVM type of an element; of a vector with this number of lanes (0: the element itself). */
LLVMTypeRef cpu_elem_type(struct cpu_codegen *h, const struct type *elem);
LLVMTypeRef cpu_vector_type(LLVMTypeRef elem, u32 lanes);
/* An elementwise operation (op_has(o, ELEM), as also in regions of MAP and REDUCE) on operands with `lanes` lanes. */
LLVMValueRef cpu_elementwise(struct cpu_codegen *h, const struct op *o, const LLVMValueRef *in, u32 lanes);
/* Any float format to f32 (f64 stays f64), and back, rounded to nearest even. */
LLVMValueRef cpu_widen(struct cpu_codegen *h, LLVMValueRef v, enum dtype d, u32 lanes);
LLVMValueRef cpu_narrow(struct cpu_codegen *h, LLVMValueRef v, enum dtype d, u32 lanes);

/* --- builder.c ----------------------------------------------------------------------------------------------- */

static inline LLVMValueRef cpu_i32(struct cpu_codegen *h, i64 x)
{
	return LLVMConstInt(h->i32, (u64)x, true);
}
static inline LLVMValueRef cpu_i64(struct cpu_codegen *h, i64 x)
{
	return LLVMConstInt(h->i64, (u64)x, true);
}
LLVMValueRef cpu_intrinsic(struct cpu_codegen *h, const char *name, LLVMTypeRef *types, u32 ntypes, LLVMValueRef *args,
			    u32 n);
u32 lanes_of(LLVMValueRef x);
/* x, or a vector of `lanes` copies of it. */
LLVMValueRef cpu_spread(struct cpu_codegen *h, LLVMValueRef x, u32 lanes);
/* n lanes of a vector from number `first` on. */
LLVMValueRef cpu_lanes(struct cpu_codegen *h, LLVMValueRef x, u32 first, u32 n);
/* Concatenates n vectors (n a power of two); changes `parts`. */
LLVMValueRef cpu_concat(struct cpu_codegen *h, LLVMValueRef *parts, u32 n);
LLVMValueRef cpu_lane(struct cpu_codegen *h, LLVMValueRef x, u32 lane);
/* 0, 1, 2 … of integer type t */
LLVMValueRef cpu_iota(LLVMTypeRef t, u32 lanes);
LLVMValueRef cpu_gep(struct cpu_codegen *h, LLVMValueRef p, LLVMTypeRef elem, LLVMValueRef index);
LLVMBasicBlockRef cpu_block(struct cpu_codegen *h);

/* for (i = from; i < to; i += step). may_be_empty: tests from < to first. The body is between cpu_loop and
 * cpu_loop_end. */
struct cpu_loop {
	LLVMBasicBlockRef head, exit;
	LLVMValueRef index, to, step;
};
struct cpu_loop cpu_loop(struct cpu_codegen *h, LLVMValueRef from, LLVMValueRef to, i64 step, bool may_be_empty);
void cpu_loop_end(struct cpu_codegen *h, struct cpu_loop *l);
/* if (cond) { … } */
LLVMBasicBlockRef cpu_if(struct cpu_codegen *h, LLVMValueRef cond);
void cpu_end_if(struct cpu_codegen *h, LLVMBasicBlockRef end);

/* --- fusion_plan.c: the nests of a block --------------------------------------------------------------------- */

/* A step of a block: a single operation, or a nest. */
struct cpu_step {
	const struct op *op;
	struct cpu_nest *nest;
};
struct steps {
	struct cpu_step *at;
	u32 len, cap;
};
struct info *info_of(struct cpu_codegen *h, const struct value *v);
/* Decides for all values of the kernel whether they are stored in memory. */
void plan_kernel(struct cpu_codegen *h);
void plan_block(struct cpu_codegen *h, const struct block *b, struct steps *out);
/* Whether the value yielded for a carried tile can use the same memory. */
bool plan_in_place(struct cpu_codegen *h, const struct value *arg, const struct value *yielded);
bool is_whole_tile(const struct op *o);
/* Whether o is computed at single indices, at each use. */
bool cpu_is_inline(const struct op *o);
/* Whether recomputing an inline value is as cheap as loading it. */
bool cpu_cheap_again(struct cpu_codegen *h, const struct value *v);
/* Whether o is ordered with respect to accesses of all memory, as an acquire or release atomic is. */
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
/* New memory, in the order of v's class. */
struct buffer *buffer_new(struct cpu_codegen *h, const struct value *v);
LLVMValueRef cpu_scratch(struct cpu_codegen *h, u64 bytes);
/* Stores v's elements to memory, by a copy or by computing them. */
void cpu_store_tile(struct cpu_codegen *h, const struct value *v, struct buffer *to);
/* Whether the memory of v can be reused after o, its only use. */
bool cpu_ends_at(struct cpu_codegen *h, const struct value *v, const struct op *o);
/* The memory of v, computed now if necessary. */
struct buffer *cpu_in_memory(struct cpu_codegen *h, const struct value *v);
/* The program fails if any lane of `bad` is true. The message names the element of a tile of type t. */
void cpu_fail_at(struct cpu_codegen *h, LLVMValueRef bad, const struct op *o, const char *text, const struct type *t,
		  const struct at *at);
/* The row-major number of an element in its tile. */
LLVMValueRef cpu_element_number(struct cpu_codegen *h, const struct type *t, const struct at *at);
void cpu_fail_if(struct cpu_codegen *h, LLVMValueRef bad, const struct op *o, const char *text);
LLVMValueRef cpu_string(struct cpu_codegen *h, const char *text);

/* --- outline.c: equal steps of a large kernel become calls of a function ------------------------------------------ */

/* Instructions built between these calls are a step of a block. */
struct region *cpu_region_begin(struct cpu_codegen *h);
void cpu_region_end(struct cpu_codegen *h, struct region *r);
/* Outlines equal regions after the kernel is complete. */
void cpu_outline_regions(struct cpu_codegen *h);

/* --- carried_tiles.c: loops inside nests --------------------------------------------------------------------- */

/* Whether each element of the carried tiles depends only on elements of carried tiles at its index, and on no store of
 * the loop. */
bool cpu_carries_elements(struct cpu_codegen *h, const struct op *loop);
void cpu_emit_for_elements(struct cpu_codegen *h, const struct op *loop);

/* --- nest.c: the loops of a nest, and values at an index --------------------------------------------------------- */

void cpu_emit_nest(struct cpu_codegen *h, struct cpu_nest *n);
void nest_choose_lanes(struct cpu_codegen *h, struct cpu_nest *n);
/* Counts the dimensions along which a load or store has neighbours. */
void cpu_count_neighbours(struct cpu_codegen *h, const struct op *o, i32 *votes);
/* Whether these accesses have neighbours along the same dimension as the nest's accesses. */
bool nest_agrees(struct cpu_codegen *h, const struct cpu_nest *n, const struct op *const *accesses, u32 naccesses);
LLVMValueRef cpu_eval(struct cpu_codegen *h, const struct value *v, const struct at *at);
/* Stores v to memory by a separate nest. lanes: number of lanes, or 0: the default. */
void cpu_compute(struct cpu_codegen *h, const struct value *v, struct buffer *to, u32 lanes);
/* For a comparison index < bound or index <= bound, where the index counts up along at->along: the number of first
 * elements of that row for which it is true, as i64. NULL if v is no such comparison, or costs more than index
 * arithmetic. */
LLVMValueRef cpu_count_true(struct cpu_codegen *h, const struct value *v, const struct at *at);
void cpu_forget(struct cpu_codegen *h); /* forgets values at indices, which are valid in one basic block */
/* The offset of an index, in elements. */
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
/* Emits a region of scalar operations on scalars or vectors. */
void cpu_region(struct cpu_codegen *h, const struct block *b, const LLVMValueRef *args, LLVMValueRef *out, u32 lanes);
bool region_is_wide(const struct block *b);

/* --- memory.c -------------------------------------------------------------------------------------------------- */

LLVMValueRef cpu_eval_load(struct cpu_codegen *h, const struct op *o, const struct at *at);
void cpu_eval_store(struct cpu_codegen *h, const struct op *o, const struct at *at);
LLVMValueRef cpu_eval_atomic(struct cpu_codegen *h, const struct op *o, const struct at *at);

/* --- streaming_stores.c: stores that bypass the caches ------------------------------------------------------- */

/* Called before and after the program's code. */
void cpu_stream_begin(struct cpu_codegen *h);
void cpu_stream_end(struct cpu_codegen *h);
/* Whether the store may bypass the caches in launches that store much. */
bool cpu_streams(struct cpu_codegen *h, const struct op *o);
/* Stores x, whole vectors with elements of `bytes` bytes, to p. Bypasses the caches if the launch stores much and p is
 * aligned. */
void cpu_stream_store(struct cpu_codegen *h, LLVMValueRef x, LLVMValueRef p, u32 bytes);

/* --- pack_operands.c ----------------------------------------------------------------------------------------- */

enum { HOST_PANEL_REGISTERS = 2 };
/* A multiplication unit: elements of a row of A per step, bits of each in memory (0: the type of the sum), and the
 * divisors of the dot's rows, columns and k. */
struct dot_unit {
	i32 group, bits, rows, columns, k;
};
extern const struct dot_unit cpu_dot_units[];
enum dot_unit_kind cpu_dot_unit(const struct cpu_codegen *h, const struct op *dot);
enum dtype cpu_sum_dtype(const struct op *o);
LLVMTypeRef cpu_llvm_dtype(struct cpu_codegen *h, enum dtype d);
LLVMValueRef cpu_to_sum(struct cpu_codegen *h, LLVMValueRef x, enum dtype from, LLVMTypeRef sum, u32 lanes);
/* Whether all uses of v are dots that take it as the same operand. */
bool cpu_dot_takes(struct cpu_codegen *h, const struct value *v, const struct op **dot, u32 *which);
/* Memory for operand 0 or 1 of a dot; x in the format of that memory. */
struct buffer *cpu_dot_buffer(struct cpu_codegen *h, const struct op *o, u32 which);
LLVMValueRef cpu_to_operand(struct cpu_codegen *h, LLVMValueRef x, const struct buffer *to, u32 lanes);
/* The number of rows of an operand that are interleaved for a step of the unit; 1: none. */
u32 cpu_dot_group(const struct buffer *b);
/* Interleaves a group of rows of an operand of type t from `first` on, stored one after another so far; all rows. */
void cpu_dot_interleave(struct cpu_codegen *h, const struct type *t, const struct buffer *b, const struct at *first);
void cpu_dot_interleave_all(struct cpu_codegen *h, const struct type *t, const struct buffer *b);
/* Transposes a tile of type t, contiguous along dimension rank - 2, to an operand. */
void cpu_dot_transpose(struct cpu_codegen *h, const struct type *t, const struct buffer *from, const struct buffer *to);
/* Whether o transposes a tile in memory for dots only. Emits the transposition. */
bool cpu_dot_turns(struct cpu_codegen *h, const struct op *o);
void cpu_dot_turn(struct cpu_codegen *h, const struct op *o);
/* The complete operand. */
struct buffer *cpu_dot_operand(struct cpu_codegen *h, const struct op *o, u32 which);

/* --- dot.c, amx.c ---------------------------------------------------------------------------------------------- */

/* A dot with its operands and C in memory. */
struct product {
	const struct type *type; /* type of C */
	struct buffer *a, *b, *c;
	enum dtype sum, result;
	i32 k;
	/* of a block: registers of a row with `lanes` sums each, from one or several panels; lanes; rows */
	u32 registers, lanes, rows;
	struct at at;      /* first row and column of the block in C */
	LLVMValueRef zero; /* if true (i1), C is zero whatever its memory holds; or NULL */
};
/* The address of the start of a row, of the block or of a step of k. */
LLVMValueRef cpu_row_address(struct cpu_codegen *h, const struct buffer *b, int rank, const struct at *at);
LLVMValueRef cpu_from_sum(struct cpu_codegen *h, LLVMValueRef x, const struct product *p, u32 lanes);
/* The first rows and columns of C by tile registers. */
void cpu_dot_tiles(struct cpu_codegen *h, struct product *p, LLVMValueRef rows, LLVMValueRef columns);
/* Releases the tile registers at each return. */
void cpu_tiles_end(struct cpu_codegen *h);

/* --- demanded_rows.c ----------------------------------------------------------------------------------------- */

/* The number of first elements along dimension `dim` that uses of v demand, as i64, computable in block b. NULL:
 * all. */
LLVMValueRef cpu_demanded(struct cpu_codegen *h, const struct value *v, int dim, const struct block *b);

/* --- checked_access.c ---------------------------------------------------------------------------------------- */

struct checked {
	LLVMValueRef p, mask,
		/* p: an address, or one for each lane. mask: NULL if all lanes are active. data: elements of a store
		 * in memory format. */
		data;
	u32 lanes;    /* 0: a single element */
	const struct at *at;
};
/* Reports an access to the runtime, which performs a store. The program ends if the access is an error. */
void cpu_check_access(struct cpu_codegen *h, const struct op *o, const struct checked *c);

/* --- reduce.c, dot.c, whole_tile_ops.c ----------------------------------------------------------------------- */

/* The three parts of a reduction in a nest: before the loop along the lanes, in its body, and after it. first: the
 * lanes are the first along the axis (i1). */
void reduce_open(struct cpu_codegen *h, struct cpu_nest *n, struct root *r);
void reduce_body(struct cpu_codegen *h, struct cpu_nest *n, struct root *r, const struct at *at, LLVMValueRef first);
void reduce_close(struct cpu_codegen *h, struct cpu_nest *n, struct root *r, const struct at *row);
void cpu_dot(struct cpu_codegen *h, const struct op *o);
/* Whether the use is the C operand of a dot that tests info.zero. */
bool cpu_dot_clears(struct cpu_codegen *h, const struct use *u);
void cpu_whole(struct cpu_codegen *h,
	       const struct op *o); /* scans, gathers, histograms, joins, splits, maps, atomics … */

#endif
