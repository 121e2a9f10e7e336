/* Shared by the files of the CPU's code generator.
 *
 * A value at an index of its tile is a scalar of LLVM's, or a vector where the index is that of several neighbours:
 * "lanes" is their number, 0 for a scalar. bf16 and fp8 travel as integers of their width, fp16 as half, i1 as i1. */
#ifndef TLC_CPU_CPU_INTERNAL_H
#define TLC_CPU_CPU_INTERNAL_H

#include "support/map.h"
#include "cpu/cpu.h"
#include "analysis/axis.h"
#include "analysis/ranges.h"

/* What multiplies in a dot (dot.c, amx.c). */
enum dot_unit_kind { DOT_MULTIPLY_ADD, DOT_BF16, DOT_INT16, DOT_INT8, DOT_TILES_BF16, DOT_TILES_INT8 };

/* Memory of a tile in the program's scratch memory. The elements of dimension d are stride[d] apart. */
struct buffer {
	LLVMValueRef at;
	LLVMTypeRef elem; /* i8 for i1 */
	i64 stride[MAX_RANK];
	/* of an operand of dots, kept in the form that their unit takes: the type of its elements; else DT_COUNT */
	enum dtype operand;
	enum dot_unit_kind unit;
	bool tf32; /* rounded to it */
	/* Of one that lies in panels: columns of a panel, and elements between panels; else 0. */
	i64 panel, panel_stride;
	u64 bytes;
};

struct cpu_nest;
struct debug;
struct region;

/* An index of a tile: for each dimension an i64, that of the first of the lanes, which are neighbours along `along`.
 * along < 0: a single element. */
struct at {
	LLVMValueRef i[MAX_RANK];
	i32 along;
	u32 lanes;
};

/* What a loop carries of a tile in registers: its lanes at an index. */
struct in_register {
	struct at at;
	LLVMValueRef x;
};

/* What is known of a value beside its type. */
struct info {
	LLVMValueRef scalar;             /* of a scalar */
	struct buffer *buffer;           /* of a tile, or NULL */
	bool free;                       /* computed anew wherever it is needed: indices, masks, constants */
	bool stored;                     /* lies in memory from its definition on */
	bool made;                       /* its memory holds it by now */
	bool in_place;                   /* that is the memory of a tile which it is computed from */
	struct in_register *in_register; /* carried_tiles.c: what it is there; or NULL */
	LLVMValueRef zero;               /* if true (i1), not its memory: all of it is zero; or NULL */
	u32 depth;                       /* operations between it and values in memory */
	u32 last_root;                   /* the last operation of its block for which a nest computes it, by op.mark */
	struct cpu_nest *nest;               /* of its block: the one that computes it, for later ones too; or NULL */
	struct info *same;               /* inner_dimension.c: another value of its class; of the one without: */
	i32 votes[MAX_RANK];             /* for each dimension, the loads and stores that have neighbours in it */
};

/* Something for which a nest is made: the operation (store, reduction), or that the value lies in memory. */
struct root {
	const struct op *op;
	const struct value *v;
	LLVMValueRef part[8];  /* of a reduction along the lanes: the memory of its partial results */
	LLVMValueRef total;    /* of a long sum: that of the parts before */
	struct buffer *turned; /* of an operand of dots whose lanes are rows: its memory before it is transposed */
};

struct cpu_nest {
	i32 rank, lane_dim;
	i32 shape[MAX_RANK];
	u32 lanes;
	VEC(struct root) roots;
	VEC(const struct op *) loads; /* that it carries out */
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
	LLVMBuilderRef b, entry;            /* `entry` adds to the entry block */
	LLVMValueRef fn, call, pid, memory; /* the function, and its parameters */
	LLVMTypeRef i1, i8, i16, i32, i64, f16, f32, f64, v, ptr;
	struct map info;         /* value → struct info */
	struct map memo;         /* in the body of a nest: value → struct memo */
	struct map exact;        /* LLVM's value of a narrow float → the same in fp32, from which it was rounded */
	struct assumed *assumed; /* masks that hold in it */
	bool in_rest;            /* it is the rest of a row, behind what they hold for */
	u64 bytes;               /* of scratch memory */
	u32 nstrings;
	bool tiles;               /* the program has set up the tile registers (amx.c) */
	LLVMValueRef tile_memory; /* of one, or NULL */
	LLVMValueRef spilled[3];  /* checked_access.c */
	LLVMValueRef streams; /* the launch stores much (i1); NULL: the kernel has no store for which that matters */
	struct debug *debug;  /* debug.c; NULL: the code is not for debuggers */
	VEC(struct region *) regions; /* outline.c */
	struct region *region;        /* the one that is being built, or NULL */
};

/* --- debug.c: without effect where the target has no lines ------------------------------------------------------- */

void cpu_debug_begin(struct cpu_codegen *h);
/* What is built next is of this place, in kernels without operations for debuggers. */
void cpu_debug_location(struct cpu_codegen *h, struct loc at);
void cpu_debug_parameters(struct cpu_codegen *h);
/* A variable, in these kernels: a named value, a scalar that is computed by now or a tile that its memory holds. */
void cpu_debug_value(struct cpu_codegen *h, const struct value *v);
/* At the end of one side of a branch: the variables that have its result i, which is x, in b if it is a tile. The code
 * where the sides meet is of no line: a debugger would go back to the branch for it. */
void cpu_debug_yield(struct cpu_codegen *h, const struct op *branch, u32 i, const struct value *x,
		     const struct buffer *b);
/* An operation for debuggers. */
void cpu_debug_op(struct cpu_codegen *h, const struct op *o);
/* The operation's own place, which what is built inside changes; and back to it. */
LLVMMetadataRef cpu_debug_here(struct cpu_codegen *h);
void cpu_debug_back(struct cpu_codegen *h, LLVMMetadataRef here);
/* The block that is being built lies behind all others, as its lines do. A reload at its begin has no line of its own,
 * and counts to the line in front of it. */
void cpu_debug_order(struct cpu_codegen *h);
/* A region: the variables that get their first value in it have none behind it. */
u32 cpu_debug_enter(struct cpu_codegen *h);
void cpu_debug_leave(struct cpu_codegen *h, u32 entered);
void cpu_debug_end(struct cpu_codegen *h);

/* --- elementwise.c, math.c: operations on scalars and vectors ---------------------------------------------------- */

/* The LLVM type of an element; of a vector of so many (0: the element itself). */
LLVMTypeRef cpu_elem_type(struct cpu_codegen *h, const struct type *elem);
LLVMTypeRef cpu_vector_type(LLVMTypeRef elem, u32 lanes);
/* An elementwise operation (op_has(o, ELEM), MAP's and REDUCE's regions consist of them) on operands with so many lanes
 * each. */
LLVMValueRef cpu_elementwise(struct cpu_codegen *h, const struct op *o, const LLVMValueRef *in, u32 lanes);
/* Any float format → f32 (f64 stays), and back, rounded to nearest even. */
LLVMValueRef cpu_widen(struct cpu_codegen *h, LLVMValueRef v, enum dtype d, u32 lanes);
LLVMValueRef cpu_narrow(struct cpu_codegen *h, LLVMValueRef v, enum dtype d, u32 lanes);

/* --- builder.c
 * ------------------------------------------------------------------------------------------------------ */

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
/* x, or a vector of so many copies of it. */
LLVMValueRef cpu_spread(struct cpu_codegen *h, LLVMValueRef x, u32 lanes);
/* Lanes first, first + 1, … of a vector. */
LLVMValueRef cpu_lanes(struct cpu_codegen *h, LLVMValueRef x, u32 first, u32 n);
/* n vectors, a power of two, as one; changes `parts`. */
LLVMValueRef cpu_concat(struct cpu_codegen *h, LLVMValueRef *parts, u32 n);
LLVMValueRef cpu_lane(struct cpu_codegen *h, LLVMValueRef x, u32 lane);
/* 0, 1, 2 … of integer type t */
LLVMValueRef cpu_iota(LLVMTypeRef t, u32 lanes);
LLVMValueRef cpu_gep(struct cpu_codegen *h, LLVMValueRef p, LLVMTypeRef elem, LLVMValueRef index);
LLVMBasicBlockRef cpu_block(struct cpu_codegen *h);

/* for (i = from; i < to; i += step), from < to for the first form: the body follows cpu_loop, and cpu_loop_end leaves
 * it. */
struct cpu_loop {
	LLVMBasicBlockRef head, exit;
	LLVMValueRef index, to, step;
};
struct cpu_loop cpu_loop(struct cpu_codegen *h, LLVMValueRef from, LLVMValueRef to, i64 step, bool may_be_empty);
void cpu_loop_end(struct cpu_codegen *h, struct cpu_loop *l);
/* if (cond) { … } */
LLVMBasicBlockRef cpu_if(struct cpu_codegen *h, LLVMValueRef cond);
void cpu_end_if(struct cpu_codegen *h, LLVMBasicBlockRef end);

/* --- fusion_plan.c: which nests a block is carried out by
 * ---------------------------------------------------------------- */

/* A step: an operation of its own, or a nest. */
struct cpu_step {
	const struct op *op;
	struct cpu_nest *nest;
};
struct steps {
	struct cpu_step *at;
	u32 len, cap;
};
struct info *info_of(struct cpu_codegen *h, const struct value *v);
/* Decides for all values of the kernel which lie in memory. */
void plan_kernel(struct cpu_codegen *h);
void plan_block(struct cpu_codegen *h, const struct block *b, struct steps *out);
/* Can the value that a loop yields for its carried one lie in the same memory? */
bool plan_in_place(struct cpu_codegen *h, const struct value *arg, const struct value *yielded);
bool is_whole_tile(const struct op *o);
/* Computed at single indices, wherever they are needed. */
bool cpu_is_inline(const struct op *o);
/* Is it as cheap to compute an inline value again as to load it? */
bool cpu_cheap_again(struct cpu_codegen *h, const struct value *v);
/* Does o keep its place among accesses to all memory, as an atomic operation that acquires or releases? */
bool cpu_orders(const struct op *o);

/* --- inner_dimension.c
 * ----------------------------------------------------------------------------------------------------- */

void cpu_choose_inner(struct cpu_codegen *h);
/* The dimension of a tile whose neighbours are next to each other in its memory. */
int cpu_inner(struct cpu_codegen *h, const struct value *v);

/* --- cpu.c: blocks, control flow, memory of tiles --------------------------------------------------------------- */

void cpu_emit_block(struct cpu_codegen *h, const struct block *b);
void cpu_emit_scalar(struct cpu_codegen *h, const struct op *o);
/* A for loop. `at`: it carries tiles in registers, the elements at this index, and stores them behind it; NULL: it
 * carries them in memory. */
void cpu_emit_for(struct cpu_codegen *h, const struct op *o, const struct at *at);
LLVMValueRef cpu_scalar(struct cpu_codegen *h, const struct value *v);
void cpu_set_scalar(struct cpu_codegen *h, const struct value *v, LLVMValueRef x);
struct buffer *buffer_of(struct cpu_codegen *h, const struct value *v);
/* For v, or another value of its class. */
struct buffer *buffer_new(struct cpu_codegen *h, const struct value *v);
LLVMValueRef cpu_scratch(struct cpu_codegen *h, u64 bytes);
/* v's elements, however it is there, into memory. */
void cpu_store_tile(struct cpu_codegen *h, const struct value *v, struct buffer *to);
/* Does v lie in memory that is free once o, which takes it, has run? */
bool cpu_ends_at(struct cpu_codegen *h, const struct value *v, const struct op *o);
/* v in memory. */
struct buffer *cpu_in_memory(struct cpu_codegen *h, const struct value *v);
/* The program fails if any lane of `bad` is true. */
void cpu_fail_at(struct cpu_codegen *h, LLVMValueRef bad, const struct op *o, const char *text, const struct type *t,
		  const struct at *at); /* naming the element of a tile of type t */
/* The number of an element in its tile. */
LLVMValueRef cpu_element_number(struct cpu_codegen *h, const struct type *t, const struct at *at);
void cpu_fail_if(struct cpu_codegen *h, LLVMValueRef bad, const struct op *o, const char *text);
LLVMValueRef cpu_string(struct cpu_codegen *h, const char *text);

/* --- outline.c: equal steps of a large kernel become calls of a function ------------------------------------------ */

/* Instructions built between these calls are a step of a block. */
struct region *cpu_region_begin(struct cpu_codegen *h);
void cpu_region_end(struct cpu_codegen *h, struct region *r);
/* Outlines equal steps of the complete kernel. */
void cpu_outline_regions(struct cpu_codegen *h);

/* --- carried_tiles.c: loops inside nests
 * ------------------------------------------------------------------------------- */

/* Does each element of what the loop carries need the other tiles' elements at its own index alone, and nothing that
 * the loop stores? */
bool cpu_carries_elements(struct cpu_codegen *h, const struct op *loop);
void cpu_emit_for_elements(struct cpu_codegen *h, const struct op *loop);

/* --- nest.c: the loops of a nest, and values at an index --------------------------------------------------------- */

void cpu_emit_nest(struct cpu_codegen *h, struct cpu_nest *n);
void nest_choose_lanes(struct cpu_codegen *h, struct cpu_nest *n);
/* Counts the dimensions in which a load or store has neighbours. */
void cpu_count_neighbours(struct cpu_codegen *h, const struct op *o, i32 *votes);
/* Have these accesses neighbours in the same dimension as those of the nest? */
bool nest_agrees(struct cpu_codegen *h, const struct cpu_nest *n, const struct op *const *accesses, u32 naccesses);
LLVMValueRef cpu_eval(struct cpu_codegen *h, const struct value *v, const struct at *at);
/* v into memory by a nest of its own; so many lanes at once, or 0: the usual number. */
void cpu_compute(struct cpu_codegen *h, const struct value *v, struct buffer *to, u32 lanes);
/* Of a comparison index < bound or index <= bound, where the index counts up along at->along: for how many first
 * elements of that row it is true, an i64; NULL: it is none, or costs more than indices do. */
LLVMValueRef cpu_count_true(struct cpu_codegen *h, const struct value *v, const struct at *at);
void cpu_forget(struct cpu_codegen *h); /* values at indices, which are valid in one basic block */
/* In elements. */
LLVMValueRef cpu_offset(struct cpu_codegen *h, const struct buffer *b, int rank, const struct at *at);
/* Loops over a tile, the lanes along the last dimension. */
struct loops {
	struct cpu_loop at[MAX_RANK];
	int rank;
};
struct at cpu_loops(struct cpu_codegen *h, const struct type *t, u32 lanes, struct loops *l);
void cpu_loops_end(struct cpu_codegen *h, struct loops *l);
LLVMValueRef buffer_load(struct cpu_codegen *h, const struct buffer *b, const struct type *t, const struct at *at);
void buffer_store(struct cpu_codegen *h, const struct buffer *b, const struct type *t, const struct at *at,
		  LLVMValueRef x);
/* Runs a region of scalar operations on scalars or vectors. */
void cpu_region(struct cpu_codegen *h, const struct block *b, const LLVMValueRef *args, LLVMValueRef *out, u32 lanes);
bool region_is_wide(const struct block *b);

/* --- memory.c -------------------------------------------------------------------------------------------------- */

LLVMValueRef cpu_eval_load(struct cpu_codegen *h, const struct op *o, const struct at *at);
void cpu_eval_store(struct cpu_codegen *h, const struct op *o, const struct at *at);
LLVMValueRef cpu_eval_atomic(struct cpu_codegen *h, const struct op *o, const struct at *at);

/* --- streaming_stores.c: stores past the caches
 * ---------------------------------------------------------------------------- */

/* Before and behind the program's code. */
void cpu_stream_begin(struct cpu_codegen *h);
void cpu_stream_end(struct cpu_codegen *h);
/* May the store go past the caches, in launches that store much? */
bool cpu_streams(struct cpu_codegen *h, const struct op *o);
/* x, whole vectors of elements of so many bytes, at p: past the caches if the launch stores much and p is aligned. */
void cpu_stream_store(struct cpu_codegen *h, LLVMValueRef x, LLVMValueRef p, u32 bytes);

/* --- pack_operands.c
 * ------------------------------------------------------------------------------------------------------ */

enum { HOST_PANEL_REGISTERS = 2 };
/* What multiplies: the elements of a row of A that one step takes, the bits that each lies in (0: the type of the sum),
 * and what the dot's rows, columns and k are multiples of. */
struct dot_unit {
	i32 group, bits, rows, columns, k;
};
extern const struct dot_unit cpu_dot_units[];
enum dot_unit_kind cpu_dot_unit(const struct cpu_codegen *h, const struct op *dot);
enum dtype cpu_sum_dtype(const struct op *o);
LLVMTypeRef cpu_llvm_dtype(struct cpu_codegen *h, enum dtype d);
LLVMValueRef cpu_to_sum(struct cpu_codegen *h, LLVMValueRef x, enum dtype from, LLVMTypeRef sum, u32 lanes);
/* Do dots alone take v, all as the same operand? */
bool cpu_dot_takes(struct cpu_codegen *h, const struct value *v, const struct op **dot, u32 *which);
/* Memory for operand 0 or 1 of a dot; x as it lies there. */
struct buffer *cpu_dot_buffer(struct cpu_codegen *h, const struct op *o, u32 which);
LLVMValueRef cpu_to_operand(struct cpu_codegen *h, LLVMValueRef x, const struct buffer *to, u32 lanes);
/* How many rows of an operand lie interleaved, for a step of the unit; 1 where rows are apart. */
u32 cpu_dot_group(const struct buffer *b);
/* So many rows of an operand of type t, from `first` on, once they lie there one after the other; all of them. */
void cpu_dot_interleave(struct cpu_codegen *h, const struct type *t, const struct buffer *b, const struct at *first);
void cpu_dot_interleave_all(struct cpu_codegen *h, const struct type *t, const struct buffer *b);
/* A tile of type t, whose neighbours in memory are those along dimension rank - 2, to an operand. */
void cpu_dot_transpose(struct cpu_codegen *h, const struct type *t, const struct buffer *from, const struct buffer *to);
/* Is o a transposition of a tile in memory that dots alone take? Carries it out. */
bool cpu_dot_turns(struct cpu_codegen *h, const struct op *o);
void cpu_dot_turn(struct cpu_codegen *h, const struct op *o);
/* The operand, complete. */
struct buffer *cpu_dot_operand(struct cpu_codegen *h, const struct op *o, u32 which);

/* --- dot.c, amx.c ---------------------------------------------------------------------------------------------- */

/* A dot, when its operands and C are in memory. */
struct product {
	const struct type *type; /* of C */
	struct buffer *a, *b, *c;
	enum dtype sum, result;
	i32 k;
	u32 registers, lanes, rows; /* of the block: registers of `lanes` sums in a row, of one panel or of several */
	struct at at;               /* of C: the block's first row and column */
	LLVMValueRef zero;          /* if true (i1), C is zero before, whatever its memory holds; or NULL */
};
/* Where a row begins, of the block or of a step of k. */
LLVMValueRef cpu_row_address(struct cpu_codegen *h, const struct buffer *b, int rank, const struct at *at);
LLVMValueRef cpu_from_sum(struct cpu_codegen *h, LLVMValueRef x, const struct product *p, u32 lanes);
/* C's first rows and columns, by tile registers: the unit's rows are those of one. */
void cpu_dot_tiles(struct cpu_codegen *h, struct product *p, LLVMValueRef rows, LLVMValueRef columns);
/* Gives the tile registers up, wherever the function returns. */
void cpu_tiles_end(struct cpu_codegen *h);

/* --- demanded_rows.c
 * ---------------------------------------------------------------------------------------------------- */

/* How many first elements along the dimension are asked for of v, which block b computes here: an i64; NULL: all. */
LLVMValueRef cpu_demanded(struct cpu_codegen *h, const struct value *v, int dim, const struct block *b);

/* --- checked_access.c
 * ----------------------------------------------------------------------------------------------------- */

struct checked {
	LLVMValueRef p, mask,
		data; /* an address or one for each lane; NULL: all lanes; of a store: as memory holds it */
	u32 lanes;    /* 0: a single element */
	const struct at *at;
};
/* Tells the runtime of an access, which makes it if it is a store; the program ends if it is an error. */
void cpu_check_access(struct cpu_codegen *h, const struct op *o, const struct checked *c);

/* --- reduce.c, dot.c, whole_tile_ops.c
 * ------------------------------------------------------------------------------------ */

/* Of a reduction in a nest: before the loop along the lanes, in its body, and behind it. `first`: the lanes are the
 * first ones along the axis (i1). */
void reduce_open(struct cpu_codegen *h, struct cpu_nest *n, struct root *r);
void reduce_body(struct cpu_codegen *h, struct cpu_nest *n, struct root *r, const struct at *at, LLVMValueRef first);
void reduce_close(struct cpu_codegen *h, struct cpu_nest *n, struct root *r, const struct at *row);
void cpu_dot(struct cpu_codegen *h, const struct op *o);
/* Does the use belong to a dot that takes C for zero where info.zero says so? */
bool cpu_dot_clears(struct cpu_codegen *h, const struct use *u);
void cpu_whole(struct cpu_codegen *h,
	       const struct op *o); /* scans, gathers, histograms, joins, splits, maps, atomics … */

#endif
