/* The tile IR: SSA over scalars and tiles, with structured control flow.
 *
 * One struct kernel is one compiled function. Calls of jit functions are inlined while it is built. Operations and
 * their attributes, which are stored in fixed slots, are listed in ops.def. Each region is a single block that ends in
 * a terminator. Types and layouts are interned, so equality is pointer equality. The uses of a value are linked, so
 * replacing a value and testing whether it is dead need no search. */
#ifndef TLC_IR_IR_H
#define TLC_IR_IR_H

#include "support/diag.h"
#include "support/dtype.h"
#include "layout/layout.h"
#include "ir/codegen_options.h"

/* --- types --------------------------------------------------------------------------------------------------- */

enum type_kind {
	TY_SCALAR,
	TY_PTR,
	TY_TENSOR,
	TY_MEMDESC,
	TY_TOKEN, /* completion of an asynchronous operation; no value at run time */
};

struct type {
	enum type_kind kind;
	enum dtype dtype;           /* of TY_SCALAR; never an unsigned dtype */
	const struct type *elem;    /* pointee, or element of a tensor or memdesc */
	i32 rank;
	i32 shape[MAX_RANK];        /* powers of two; a memdesc may have several buffers of this shape: see nbuf */
	const struct layout *layout; /* of a laid-out tensor; of a memdesc: offset → position; else NULL */
	i32 nbuf;                    /* TY_MEMDESC: number of consecutive buffers of `shape`; 0: a single buffer */
	i32 zero;                    /* explicit padding, so that types compare and hash as bytes */
};

enum { IR_MAX_NUMEL = 1 << 20 };

/* How the launcher passes tensor descriptors: see ir/launch_abi.h. */
enum descriptor_form {
	DESCRIPTORS_LIBTL, /* base, sizes, and all strides but the last; kernels have no list of parameters, `abi` */
	DESCRIPTORS_PARTS,
	DESCRIPTORS_MAPS,
};

/* State of one compilation: memory, names, types, layouts. */
struct ir_context {
	enum descriptor_form abi;
	struct arena *arena;
	struct interner *names;
	struct diags *diags;
	struct layout_pool layouts;
	const struct type **types;
	u32 ntypes, cap_types;
	u32 walks; /* number of walks started (begin_walk) */
	bool reads_environment; /* host code has read an environment variable of the process */
};
void ir_context_init(struct ir_context *c, struct arena *arena, struct interner *names, struct diags *diags);

const struct type *type_scalar(struct ir_context *c, enum dtype d);
const struct type *type_ptr(struct ir_context *c, const struct type *pointee);
const struct type *type_tensor(struct ir_context *c, const struct type *elem, int rank, const i32 *shape);
const struct type *type_memdesc(struct ir_context *c, const struct type *elem, int rank, const i32 *shape,
				const struct layout *layout, int nbuf);
const struct type *type_token(struct ir_context *c);
/* A type with the shape (and layout) of t and another element type. A scalar gives a scalar. */
const struct type *type_with_elem(struct ir_context *c, const struct type *t, const struct type *elem);
const struct type *type_with_dtype(struct ir_context *c, const struct type *t, enum dtype d);
const struct type *type_with_layout(struct ir_context *c, const struct type *t, const struct layout *l);

/* The element type of a tensor; the type itself for a scalar or pointer. */
__attribute__((returns_nonnull)) const struct type *type_elem(const struct type *t);
static inline bool type_is_tensor(const struct type *t) { return t->kind == TY_TENSOR; }
static inline bool type_is_ptr(const struct type *t) { return type_elem(t)->kind == TY_PTR; }
/* The element's dtype; DT_I64 for pointers. */
enum dtype type_dtype(const struct type *t);
i64 type_numel(const struct type *t);
int type_elem_bits(const struct type *t);

/* --- operations ---------------------------------------------------------------------------------------------- */

enum opcode {
#define OP(code, ...) IR_##code,
#include "ir/ops.def"
	IR_OPCODES
};

enum ir_trait { PURE = 1, ELEM = 2, COMM = 4, READ = 8, WRITE = 16, END = 32, SYNC = 64, PLACED = 128 };

enum ir_rule {
	R_ALONE,
	R_INT,
	R_FLOAT,
	R_CMPI,
	R_CMPF,
	R_SELECT,
	R_WIDEN_INT,
	R_NARROW_INT,
	R_INT_TO_FLOAT,
	R_FLOAT_TO_INT,
	R_WIDEN_FLOAT,
	R_NARROW_FLOAT,
	R_FLOAT_TO_FLOAT,
	R_BITCAST,
	R_PTR_TO_INT,
	R_INT_TO_PTR,
	R_CONSTANT,
	R_MAKE_RANGE,
	R_SPLAT,
	R_UNSPLAT,
	R_EXPAND_DIMS,
	R_BROADCAST,
	R_RESHAPE,
	R_TRANS,
	R_JOIN,
	R_SPLIT,
	R_ADDPTR,
	R_LOAD,
	R_STORE,
	R_ATOMIC,
	R_DOT,
	R_REDUCE,
	R_SCAN,
	R_MAP,
	R_HISTOGRAM,
	R_GATHER,
	R_PROGRAM,
	R_MASK,
	R_PRINT,
	R_FOR,
	R_IF,
	R_WHILE,
	R_COMBINED,
	R_YIELD,
	R_CONDITION,
	R_RETURN,
	R_CONVERT,
	R_LOCAL,
	R_ALLOC,
	R_MEMDESC_INDEX,
	R_MEMDESC_TRANS,
	R_ASYNC_COPY,
	R_TOKEN,
	R_ASYNC_WAIT,
	R_WARP_GROUP_DOT,
	R_WARP_GROUP_WAIT,
	R_REGION,
	R_MBARRIER,
	R_TMA_COPY,
	R_INLINE_ASM,
};

enum { IR_MAX_ATTRS = 8 };

struct op_info {
	const char *name;
	i16 min_operands, max_operands, results; /* max_operands < 0, results < 0: any number */
	u8 traits;
	enum ir_rule rule;
	const char *format;
	u8 attrs[IR_MAX_ATTRS]; /* enum attr_id of ir/text.h; the list ends in 0 */
};
extern const struct op_info op_info[IR_OPCODES];

/* The values of attributes. */
#define NAMES(...)
#define V(value, name) value
#define ENUM(kind, type, ...) enum type { __VA_ARGS__ };
#include "ir/ops.def"

/* The slots of attributes in struct op. */
enum {
#define ATTR(id, slot, name, kind) ATTR_##id = slot,
#include "ir/ops.def"
};

/* Hints of the user about a value (tl.multiple_of and similar), per dimension; 0: no hint. Copies of an operation share
 * the struct, so it is never changed in place. A hint holds only after control has passed it: an operation has hints
 * only if every execution of the operation passes the hint, and passes do not move such an operation to a place that
 * executes more often (value_with_hints, LICM). */
struct hints {
	i32 divisibility[MAX_RANK], contiguity[MAX_RANK], constancy[MAX_RANK];
};

struct use {
	struct value *value;
	struct op *user;
	struct use *next, **link;
};

struct value {
	const struct type *type;
	struct op *def;       /* NULL for a block argument */
	struct block *block;  /* of a block argument */
	struct use *uses;
	const char *name;     /* for the printer; may be NULL */
	u32 index;            /* number among the results or block arguments */
	u32 mark;             /* scratch space of the current walk */
	u32 walk;             /* number of the last walk that visited the value: first_visit */
};
typedef VEC(struct value *) value_vec;
typedef VEC(struct op *) op_vec;

struct op {
	enum opcode code;
	struct loc loc;
	u32 noperands, nresults, nblocks;
	struct op *prev, *next;
	struct block *block;
	struct use *operands;
	struct value *results;
	struct block **blocks;
	i64 attr[IR_MAX_ATTRS];
	const char *text;     /* the attribute of kind str; interned for a pure operation */
	struct hints *hints;  /* may be NULL */
	/* shared memory used by this operation, in bytes; set by layout assignment, -1 before */
	i32 scratch_offset, scratch_size;
	u32 mark;
};

struct block {
	struct value **args;
	u32 nargs, cap_args;
	struct op *first, *last, *parent; /* parent is NULL for the body of the kernel */
};

struct kernel_param {
	const char *name;
	struct value *value;
	i32 divisibility; /* 0: unknown; of the address in bytes for pointers, of the value for integers */
	bool is_unsigned; /* signedness of an integer, for the host */
	u32 leaf;         /* number of the leaf among all leaves of the kernel's arguments */
	bool reads, writes; /* the kernel may read or write memory through this pointer; see kernel_note_uses */
	bool always; /* every program accesses memory through this pointer, whatever the arguments are */
};

/* A number that the host computes at each launch: `times` × a product of integer parameters of the kernel + `plus`.
 * `params` holds their indices in ascending order. See launch_product.h. */
enum { PRODUCT_PARAMS = 3 };
struct launch_product {
	i64 times;
	i16 nparams, params[PRODUCT_PARAMS]; /* unused entries are 0, so that products compare as bytes */
	i64 plus;                            /* only for the sizes of a tensor */
};

/* A tensor map that the host encodes at each launch and passes after the parameters: see gpu/codegen/tma.c. */
struct tensor_map_param {
	struct launch_product distance; /* row stride, in bytes */
	struct launch_product sizes[2]; /* of a tensor: elements per row, number of rows */
	i32 tensor; /* the parameter that points to the tensor, or to memory before it; -1: the map covers all memory */
	i32 box[3];    /* TMA tile: elements of a piece of a row (one swizzle width), rows, pieces */
	i32 elem_bytes, swizzle; /* both in bytes */
	i32 narrow;              /* the offset of the tensor's last element must fit 31 bits */
	i32 moved;               /* the tensor begins after the address that the parameter holds */
};
_Static_assert(sizeof(struct tensor_map_param) == 3 * sizeof(struct launch_product) + 8 * sizeof(i32),
	       "no padding: they compare as bytes");
enum {
	MAX_TENSOR_MAPS = 8,
	TENSOR_MAP_LOG2_PAGE = 24,
	/* log2 of the granularity in bytes at which a tensor's start is moved within a page */
	TENSOR_MAP_LOG2_UNIT = 4,
	SWIZZLE_ROWS = 8,         /* number of rows of a TMA tile after which the swizzle pattern repeats */
	SECTOR_BYTES = 32,        /* memory sector: rows that start inside a sector cost more L2 time */
	GRID_PARAMS = 3,
	MAX_PARTITION_WARPS = 4
};

/* Two parameters, by index, that the code assumes not to overlap. */
struct param_pair {
	u32 a, b;
	bool equal_is_fine; /* the code is also correct if both are the same address */
};

enum { MAX_PENDING_DOTS = 7 /* the most wgmma groups that a wait can leave outstanding */ };
enum { MAX_SIZE_LIMITS = 16, SIZE_NONE = -1, SIZE_PROGRAMS = -2 };
/* A launch bound: an assumption of compiled code about a launch. The sizes a and b are not negative, and their product
 * is at most `most`, where each factor counts as at least `least`. With b = SIZE_NONE, a is at most `most`. A size is
 * the index of an integer parameter, or SIZE_PROGRAMS - axis for the number of programs along an axis. See
 * analysis/launch_bounds.h. */
struct size_limit {
	i64 most;
	i16 a, b;
	i32 least;
};
/* True if the sizes a and b satisfy the bound. */
static inline bool size_limit_kept(const struct size_limit *l, i64 a, i64 b)
{
	if (l->b == SIZE_NONE)
		return a >= 0 && a <= l->most;
	return a >= 0 && b >= 0 && (i128)MAX(a, l->least) * MAX(b, l->least) <= l->most;
}
/* The launch bounds of a kernel. */
struct size_limits {
	struct size_limit at[MAX_SIZE_LIMITS];
	u32 n;
};
/* Decisions of layout assignment and later GPU passes about a CUDA kernel, in addition to its layouts. */
struct cuda_placement {
	int cluster;      /* CTAs per program: 1, or several CTAs that form a cluster */
	u32 grids;        /* bit mask of enum grid_kind: grids for which the code would be the same; 0: all */
	bool persistent;  /* the kernel is persistent; the last parameters are the grid of programs */
	bool pairs;       /* two neighbouring CTAs share TMA tiles if they are launched as a cluster */
	i32 more_warps;   /* warps of a CTA in addition to num_warps: its producer warps */
	i32 maxnreg;      /* register limit per thread; 0: not set */
	bool no_fp_fusion; /* products and sums are not contracted: FP_FUSION_OFF */
	struct tensor_map_param maps[MAX_TENSOR_MAPS];
	u32 nmaps;
};

/* A parameter of the function of a kernel for Triton's launcher, in its order. */
enum abi_kind {
	ABI_PARAM,  /* the kernel's parameter `param` */
	ABI_UNUSED, /* a number of type `dtype`, which the code does not read */
	/* the tensor map of a descriptor. `param` is the descriptor's base, which the launcher does not pass */
	ABI_MAP,
};
enum { MAX_ABI_RANK = 5 };
struct abi_param {
	enum abi_kind kind;
	u32 param;
	enum dtype dtype;
	/* of a tensor map: the box of its copies and their swizzle in bytes. Before abi_fill_maps: the descriptor's
	 * block */
	u32 rank;
	i32 block[MAX_ABI_RANK], swizzle;
};

struct kernel {
	struct ir_context *ctx;
	const char *name;
	struct loc loc;
	struct kernel_param *params;
	u32 nparams;
	struct block *body;
	VEC(struct abi_param) abi; /* parameters of the function for Triton's launcher; empty for libtl */
	VEC(u32) ones; /* leaves of arguments that must be 1, for which there are no parameters */
	VEC(struct param_pair) apart; /* see analysis/alias.h */
	struct size_limits limits;
	enum launch_bounds sizes;
	bool narrow_offsets; /* assumes few elements after each pointer: see transform/wide_offsets.h */
	int num_warps; /* warps per program, over all its CTAs */
	/* set by layout assignment and later GPU passes */
	i32 shared_bytes;
	struct cuda_placement cuda;
	const char *target; /* "cuda:90" in the ttgir dump; NULL before layout assignment */
};

/* True if the function's parameters are those of Triton's launcher. */
static inline bool is_foreign(const struct kernel *k) { return k->ctx->abi != DESCRIPTORS_LIBTL; }
/* The number of warps per CTA at launch. */
static inline int warps_of_block(const struct kernel *k)
{
	return k->num_warps / k->cuda.cluster + k->cuda.more_warps;
}
__attribute__((returns_nonnull)) static inline struct value *operand(const struct op *o, u32 i)
{
	debug_assert(i < o->noperands);
	return o->operands[i].value;
}
__attribute__((returns_nonnull)) static inline struct value *result(const struct op *o)
{
	debug_assert(o->nresults);
	return &((struct op *)o)->results[0];
}
/* Support for walks over operands or uses that visit each value once. Such a walk takes time linear in the size of the
 * kernel, even if many operations share a value. */
static inline u32 begin_walk(struct ir_context *c) { return ++c->walks; }
static inline bool first_visit(const struct value *v, u32 walk)
{
	bool first = v->walk != walk;
	((struct value *)v)->walk = walk;
	return first;
}
static inline bool op_has(const struct op *o, enum ir_trait t) { return (op_info[o->code].traits & t) != 0; }
static inline bool op_is_debug(const struct op *o)
{
	return o->code == IR_DEBUG_LINE || o->code == IR_DEBUG_VALUE || o->code == IR_DEBUG_CALL ||
	       o->code == IR_DEBUG_RETURN;
}
/* True if the operation has a region on scalars that runs for elements, or pairs of elements, of its operands. */
static inline bool op_runs_on_elements(const struct op *o)
{
	return o->code == IR_REDUCE || o->code == IR_SCAN || o->code == IR_MAP;
}
static inline struct op *terminator(const struct block *b) { return b->last; }
/* Parts of an scf.for: the bounds, the step and the initial value of each carried value; in the body the index, the
 * carried values, their numbers, and the values yielded to the next iteration. */
enum { FOR_LOWER, FOR_UPPER, FOR_STEP, FOR_INITS /* first */ }; /* operands, for op_set_operand */
static inline struct value *for_lower(const struct op *loop) { return operand(loop, FOR_LOWER); }
static inline struct value *for_upper(const struct op *loop) { return operand(loop, FOR_UPPER); }
static inline struct value *for_step(const struct op *loop) { return operand(loop, FOR_STEP); }
/* The number of iterations if the bounds and the step are constants; else -1. */
i64 for_iterations(const struct op *loop);
static inline struct value *for_init(const struct op *loop, u32 i) { return operand(loop, FOR_INITS + i); }
static inline struct value *for_index(const struct op *loop) { return loop->blocks[0]->args[0]; }
static inline struct value *for_arg(const struct op *loop, u32 i) { return loop->blocks[0]->args[1 + i]; }
static inline u32 for_arg_number(const struct value *arg) { return arg->index - 1; }
static inline struct value *for_yielded(const struct op *loop, u32 i) { return operand(loop->blocks[0]->last, i); }
/* The operation that defines v if it has opcode `code`, else NULL. */
static inline struct op *def_if(const struct value *v, enum opcode code)
{
	return v->def && v->def->code == code ? v->def : NULL;
}
/* A permutation is packed with 4 bits per entry. */
static inline int perm_get(i64 perm, int i) { return (int)(perm >> (4 * i) & 15); }
i64 perm_pack(const int *perm, int n);
/* A list of up to MAX_DIMS numbers below 2^15 is packed with 16 bits per entry; 0: no list. */
enum { MAX_DIMS = 4 };
static inline int dims_get(i64 dims, int i) { return (int)(dims >> (16 * i) & 0xFFFF); }
i64 dims_pack(const int *dims, int n);

/* The index of the parameter that v is; -1 if v is not a parameter. */
i32 param_number(const struct kernel *k, const struct value *v);

/* --- building ------------------------------------------------------------------------------------------------ */

struct kernel *kernel_new(struct ir_context *c, const char *name);
struct value *block_add_arg(struct ir_context *c, struct block *b, const struct type *t);
void block_remove_arg(struct block *b, u32 index); /* the argument must be unused */
void for_remove_carried(struct op *loop, u32 i);   /* its argument and result must be unused */

/* Insertion point of new operations: before `before`, or at the end of `block` if that is NULL. */
struct builder {
	struct ir_context *ctx;
	struct block *block;
	struct op *before;
	struct loc loc;
	u32 count; /* operations built so far */
};
struct builder builder_at_end(struct ir_context *c, struct block *b);
struct builder builder_before(struct ir_context *c, struct op *o);
struct builder builder_after(struct ir_context *c, struct op *o);

struct op *build(struct builder *b, enum opcode code, struct value *const *operands, u32 noperands,
		 const struct type *const *results, u32 nresults, u32 nblocks);
/* Builds an operation with one result of type t. Trailing NULL operands are left out. */
struct value *build1(struct builder *b, enum opcode code, const struct type *t, struct value *x);
struct value *build2(struct builder *b, enum opcode code, const struct type *t, struct value *x, struct value *y);
struct value *build3(struct builder *b, enum opcode code, const struct type *t, struct value *x, struct value *y,
		     struct value *z);
/* Builds a scalar, or a tensor filled with a scalar. `bits` is the memory representation of the element. */
struct value *build_constant(struct builder *b, const struct type *t, u64 bits);
struct value *build_int(struct builder *b, const struct type *t, i64 x);
/* The constant x, of type i32. */
struct value *build_i32(struct builder *b, i64 x);
struct value *build_i64(struct builder *b, struct value *v); /* a scalar integer, sign-extended to 64 bits */
struct value *build_cmpi(struct builder *b, enum cmpi_predicate p, struct value *x, struct value *y);
/* x minus half the range of its type. This maps unsigned numbers to signed ones in the same order, and back. scf.for
 * compares signed numbers, so a loop over unsigned bounds counts in mapped numbers. */
struct value *build_moved_by_half(struct builder *b, struct value *x);
/* v with hints that hold at b. The hints are put on v's operation if execution always reaches b from there, otherwise
 * on a tt.bitcast of v to its own type at b. */
struct value *value_with_hints(struct builder *b, struct value *v, const struct hints *h);
struct value *build_splat(struct builder *b, struct value *scalar, int rank, const i32 *shape);

/* --- changing ------------------------------------------------------------------------------------------------ */

void op_set_operand(struct op *o, u32 i, struct value *v);
void op_add_operand(struct ir_context *c, struct op *o, struct value *v);
void op_remove_operand(struct op *o, u32 i);
void op_remove_result(struct op *o, u32 i); /* the result must be unused */
/* Gives results to an operation that was built without results. */
void op_set_results(struct ir_context *c, struct op *o, const struct type *const *types, u32 n);
void op_insert_before(struct op *o, struct op *at);
/* Unlinks the operation and removes its uses, including those in its regions. Its results must be unused. */
void op_erase(struct op *o);
/* Erases the operations of the block itself, not of nested blocks, that have no effects and no used results. */
void block_erase_unused(struct block *b);
void replace_uses(struct value *from, struct value *to);
static inline bool value_unused(const struct value *v) { return !v->uses; }
bool value_has_one_use(const struct value *v);

/* A copy of o at b, including its regions. Operands found in `map` (value → value) are replaced. The results and block
 * arguments of the copy are added to `map`. */
struct op *op_clone(struct builder *b, const struct op *o, struct map *map);
/* Builds a loop (IR_FOR) with n carried values. Its body has the index and the carried values as arguments, and no
 * operations: the caller must add the yield. */
struct op *build_for(struct builder *b, struct value *lower, struct value *upper, struct value *step,
		     struct value *const *inits, u32 n);
/* Replaces the loop by a copy with more carried values, whose initial values are `inits`. The caller must add the new
 * values to the yield. */
struct op *extend_loop(struct ir_context *ctx, struct arena *scratch, struct op *loop, const value_vec *inits);
struct value *mapped(const struct map *map, struct value *v);

/* --- queries ------------------------------------------------------------------------------------------------- */

/* True if v is a constant, or a splat of a constant. */
bool value_const_bits(const struct value *v, u64 *bits);
bool value_const_int(const struct value *v, i64 *x);
bool value_is_int(const struct value *v, i64 x);
/* True if both are the same value or equal constants. NULL equals only NULL. */
bool equal_values(const struct value *x, const struct value *y);
/* The predicate q for which x p y equals y q x. */
enum cmpi_predicate mirrored_predicate(enum cmpi_predicate p);
/* True if `v` is defined outside `b` and the blocks nested in it. */
bool value_defined_outside(const struct value *v, const struct block *b);
bool block_contains(const struct block *outer, const struct block *inner);
/* True if o, or an operation that contains it, is `first` or comes after `first` in its block. */
bool comes_behind(const struct op *o, const struct op *first);
/* True if an operation of the block, or of a nested block, passes the test. */
bool block_has(const struct block *b, bool (*test)(const struct op *));
/* True if o may wait for another program or the host to change memory (ir/waiting_loops.c). */
bool op_may_wait(const struct op *o);
/* Kinds of operations: loops; control flow with branches; dots; shape operations, which only move elements.
 * op_may_trap: the operation may end the program for some operands (a division). */
static inline bool op_is_loop(const struct op *o) { return o->code == IR_FOR || o->code == IR_WHILE; }
static inline bool op_is_control(const struct op *o)
{
	return op_is_loop(o) || o->code == IR_IF;
}
static inline bool op_is_dot(const struct op *o) { return o->code == IR_DOT || o->code == IR_WARP_GROUP_DOT; }
/* True if o is a TMA copy. Operand 1 is the destination buffer. */
static inline bool op_is_tensor_copy(const struct op *o)
{
	return o->code == IR_TMA_COPY || o->code == IR_TMA_TENSOR_COPY;
}
static inline bool block_is_empty(const struct block *b) { return b->first == b->last; }
/* True if the program ends right after o in one of its branches. */
static inline bool op_ends_early(const struct op *o)
{
	return o->code == IR_IF && o->next == o->block->last && !o->nresults &&
	       (block_is_empty(o->blocks[0]) || block_is_empty(o->blocks[1])) &&
	       (!o->block->parent || op_ends_early(o->block->parent));
}
/* The scf.for whose index v is; NULL if v is not an index. */
static inline const struct op *loop_of_index(const struct value *v)
{
	const struct op *loop = v->def ? NULL : v->block->parent;
	return loop && loop->code == IR_FOR && !v->index ? loop : NULL;
}
/* The axis along which the result of o is a program index; -1 if it is not a program index. */
static inline int program_axis(const struct op *o)
{
	switch (o->code) {
	case IR_PROGRAM_ID: return (int)o->attr[ATTR_AXIS];
	case IR_ADDI:
	case IR_DIVSI:
	case IR_REMSI: return (int)o->attr[ATTR_PROGRAM] - 1;
	default: return -1;
	}
}
static inline void set_program_axis(struct op *o, int axis)
{
	o->attr[ATTR_PROGRAM] = axis + 1;
}
static inline bool op_is_shape(const struct op *o)
{
	return o->code == IR_EXPAND_DIMS || o->code == IR_BROADCAST || o->code == IR_TRANS || o->code == IR_RESHAPE;
}
/* The operand's dimension that becomes dimension d of the result of a shape operation; -1 if none. */
int operand_dim(const struct op *o, int d);
/* The dimension of the result that dimension d of the operand of a shape operation becomes; -1 if none. */
int result_dim(const struct op *o, int d);
/* True if the operation may be placed anywhere between its operands and the uses of its results: it has no effects and
 * does not synchronise threads. */
static inline bool op_is_orderless(const struct op *o)
{
	return op_has(o, PURE) && !op_has(o, SYNC) && !o->nblocks;
}
bool op_may_trap(const struct op *o);
static inline bool op_is_print(const struct op *o) { return o->code == IR_PRINT; }
static inline bool op_is_report(const struct op *o) { return o->code == IR_ASSERT || o->code == IR_PRINT; }
/* True if the region of a reduction, scan or map has an effect (an assertion or a print). */
bool op_reports_inside(const struct op *o);
static inline bool op_is_asm(const struct op *o) { return o->code == IR_INLINE_ASM || o->code == IR_PURE_ASM; }
/* True if every execution of `from` (NULL: of the block) reaches `to`, a later operation of the block (NULL: its
 * end). */
bool always_reaches(const struct block *b, const struct op *from, const struct op *to);
/* The value that receives operand i of o, a control operation or a terminator of one of its regions: an argument of a
 * region, or a result. NULL for bounds and conditions. */
struct value *value_passed_to(const struct op *o, u32 i);
/* The inverse of value_passed_to: the operands whose values v receives, at most two. Returns their number. It is 0 if v
 * is the index of a loop, or neither a region argument nor a result of a control operation. */
u32 operands_passed_to(const struct value *v, struct use *from[2]);
/* The region argument whose last value is result i of a loop; for other operations the result itself. */
struct value *result_passed_by(const struct op *o, u32 i);
/* True if the masked-off elements of the load are zero or undefined. */
bool load_fills_zero(const struct op *load);
/* The mask of a load, store, asynchronous copy or atomic operation. NULL: none, or another operation. */
struct value *mask_of(const struct op *o);
/* The memory order of an atomic operation; SEM_RELAXED for other operations. */
enum mem_sem memory_order_of(const struct op *o);
/* True if the region consists of elementwise operations on scalars, so that it can run on many elements at once. */
bool region_is_elementwise(const struct block *b);
/* The parameter from which the addresses v are computed, through offsets, tiles and loops. NULL if there may be
 * several. */
const struct value *pointer_base(const struct value *v);
/* Determines through which parameters the evaluated kernel reads and writes memory. Memory reached through pointers
 * that are loaded from memory is not tracked. */
void kernel_note_uses(struct kernel *k);
/* Numbers (op.mark) the operations of a block and its nested regions in order, starting at `first`. Returns the number
 * after the last one. last_mark: the last number inside an operation. */
u32 number_ops(struct block *b, u32 first);
u32 last_mark(const struct op *o);
/* Calls f for each operation. The operations of a region come after the operation that holds the region. */
void walk(struct block *b, void (*f)(struct op *o, void *arg), void *arg);

/* --- text ---------------------------------------------------------------------------------------------------- */

void kernel_print(const struct kernel *k, struct strbuf *out);
void kernel_dump(const void *kernel, FILE *out); /* for crash_scope */
/* Reads the text of one kernel (TTIR, or TTGIR as tlc prints it); NULL after an error. `library` may be NULL: see
 * ir/import/library_calls.h. */
struct text_library;
struct kernel *kernel_parse(struct ir_context *c, u16 file, const struct text_library *library);

/* Checks every operation against the table of operations. A violation is a bug in tlc, and `what` names the pass that
 * caused it. For text from a user (`report` is set) violations are diagnosed instead, and the result is false. */
bool kernel_verify(const struct kernel *k, const char *what, struct diags *report);

#endif
