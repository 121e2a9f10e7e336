/* The tile IR: SSA over scalars and tiles, with structured control flow.
 *
 * One struct kernel is one compiled function: jit functions it calls were inlined while it was built. Operations are
 * listed in ops.def; their attributes sit in fixed slots, in the order of that table. Regions are single blocks that
 * end in a terminator. Types and layouts are interned, so equal means same pointer. Uses are linked, so replacing a
 * value or asking whether it is dead costs nothing. */
#ifndef TLC_IR_IR_H
#define TLC_IR_IR_H

#include "support/diag.h"
#include "support/dtype.h"
#include "layout/layout.h"

/* --- types --------------------------------------------------------------------------------------------------- */

enum type_kind {
	TY_SCALAR,
	TY_PTR,
	TY_TENSOR,
	TY_MEMDESC,
	TY_TOKEN, /* the completion of something asynchronous; no value at run time */
};

struct type {
	enum type_kind kind;
	enum dtype dtype;           /* of TY_SCALAR; never an unsigned one */
	const struct type *elem;    /* pointee, or element of a tensor or memdesc */
	i32 rank;
	i32 shape[MAX_RANK];        /* powers of two; a memdesc may have a leading count of buffers, see nbuf */
	const struct layout *layout; /* of a placed tensor; of a memdesc: offset → position; else NULL */
	i32 nbuf;                    /* TY_MEMDESC: buffers of `shape`, one after the other; 0 = a single one */
	i32 zero;                    /* explicit, so that types compare and hash as bytes without padding */
};

enum { IR_MAX_NUMEL = 1 << 20 };

/* Shared by a compilation: memory, names, types, layouts. */
struct ir_context {
	struct arena *arena;
	struct interner *names;
	struct diags *diags;
	struct layout_pool layouts;
	const struct type **types;
	u32 ntypes, cap_types;
	u32 walks; /* begun so far */
	bool reads_environment; /* evaluating has asked for a variable of the process's */
};
void ir_context_init(struct ir_context *c, struct arena *arena, struct interner *names, struct diags *diags);

const struct type *type_scalar(struct ir_context *c, enum dtype d);
const struct type *type_ptr(struct ir_context *c, const struct type *pointee);
const struct type *type_tensor(struct ir_context *c, const struct type *elem, int rank, const i32 *shape);
const struct type *type_memdesc(struct ir_context *c, const struct type *elem, int rank, const i32 *shape,
				const struct layout *layout, int nbuf);
const struct type *type_token(struct ir_context *c);
/* The same shape (and layout) with another element; a scalar for a scalar. */
const struct type *type_with_elem(struct ir_context *c, const struct type *t, const struct type *elem);
const struct type *type_with_dtype(struct ir_context *c, const struct type *t, enum dtype d);
const struct type *type_with_layout(struct ir_context *c, const struct type *t, const struct layout *l);

/* The element of a tensor; a scalar or pointer itself. */
__attribute__((returns_nonnull)) const struct type *type_elem(const struct type *t);
static inline bool type_is_tensor(const struct type *t) { return t->kind == TY_TENSOR; }
static inline bool type_is_ptr(const struct type *t) { return type_elem(t)->kind == TY_PTR; }
/* The element's dtype; DT_I64 for pointers. */
enum dtype type_dtype(const struct type *t);
i64 type_numel(const struct type *t);
int type_elem_bits(const struct type *t);

/* --- operations ---------------------------------------------------------------------------------------------- */

enum opcode {
#define OP(code, name, lo, hi, results, traits, rule, format, attrs) IR_##code,
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

struct op_info {
	const char *name;
	i16 min_operands, max_operands, results; /* max_operands < 0, results < 0: any number */
	u8 traits;
	enum ir_rule rule;
	const char *format, *attrs;
};
extern const struct op_info op_info[IR_OPCODES];

/* Attribute values; the order is that of the ENUM lists in ops.def. */
enum cmpi_predicate {
	CMPI_EQ,
	CMPI_NE,
	CMPI_SLT,
	CMPI_SLE,
	CMPI_SGT,
	CMPI_SGE,
	CMPI_ULT,
	CMPI_ULE,
	CMPI_UGT,
	CMPI_UGE
};
enum cmpf_predicate {
	CMPF_OEQ, CMPF_ONE, CMPF_OLT, CMPF_OLE, CMPF_OGT, CMPF_OGE, CMPF_ORD,
	CMPF_UEQ, CMPF_UNE, CMPF_ULT, CMPF_ULE, CMPF_UGT, CMPF_UGE, CMPF_UNO,
};
enum rounding { ROUND_DEFAULT, ROUND_RTNE, ROUND_RTZ };
enum cache_modifier { CACHE_NONE, CACHE_CA, CACHE_CG, CACHE_WB, CACHE_CS, CACHE_WT, CACHE_CV };
enum evict_policy { EVICT_NORMAL, EVICT_FIRST, EVICT_LAST };
enum rmw_kind { RMW_AND, RMW_OR, RMW_XOR, RMW_ADD, RMW_FADD, RMW_MAX, RMW_MIN, RMW_UMAX, RMW_UMIN, RMW_EXCH };
enum mem_sem { SEM_RELAXED, SEM_ACQUIRE, SEM_RELEASE, SEM_ACQ_REL };
enum mem_scope { SCOPE_GPU, SCOPE_CTA, SCOPE_SYS };
enum dot_precision { PRECISION_IEEE, PRECISION_TF32, PRECISION_TF32X3, PRECISION_BF16X3, PRECISION_BF16X6 };

/* Slots of the attributes that code refers to, by operation. */
enum {
	ATTR_VALUE = 0, /* CONSTANT: bits of the element */
	ATTR_START = 0,
	ATTR_END = 1,       /* MAKE_RANGE */
	ATTR_PREDICATE = 0, /* CMPI, CMPF */
	/* DIVSI, REMSI, EXTSI, ADDPTR's offset: in launches within the kernel's limits no element of the first operand
	 * (offset) is negative; printed of placed kernels */
	ATTR_NNEG = 0,
	/* DIVSI, REMSI; ADDI: it is the program's number along this axis + 1, made by persist.c or swizzle.c */
	ATTR_PROGRAM = 1,
	ATTR_SUM_PROGRAM = 0,
	ATTR_AXIS = 0,     /* EXPAND_DIMS, REDUCE, SCAN, GATHER, PROGRAM_ID… */
	ATTR_MAP_PACK = 0, /* MAP */
	ATTR_REVERSE = 1,  /* SCAN */
	ATTR_ORDER = 0,    /* TRANS, MEMDESC_TRANS: see perm_get */
	ATTR_ROUNDING = 0, /* FP_TO_FP */
	ATTR_NAN = 0,      /* CLAMPF: 1 = propagate */
	ATTR_CACHE = 0,
	ATTR_EVICT = 1,
	ATTR_VOLATILE = 2, /* LOAD, STORE */
	/* LOAD, placed: the elements of one vector along each dimension, or of a run whose pieces of so many bytes are
	 * aligned; those for which one address is computed; L2 fetches lines in pairs. See gpu/layout/memory_access.h
	 * */
	ATTR_VECTOR = 3,
	ATTR_UNIT = 4,
	ATTR_ADDRESS = 5,
	ATTR_PREFETCH = 6,
	ATTR_STORE_VECTOR = 2,
	ATTR_COPY_VECTOR = 1, /* STORE; ASYNC_COPY; ATOMIC_RMW has it where LOAD has */
	ATTR_RMW = 0,
	ATTR_RMW_SEM = 1,
	ATTR_RMW_SCOPE = 2,
	ATTR_CAS_SEM = 0,
	ATTR_CAS_SCOPE = 1,
	ATTR_PRECISION = 0,
	ATTR_IMPRECISE = 1, /* DOT, WARP_GROUP_DOT */
	/* placed: the instruction's m, n, k (0: multiply-adds) and the warps along its rows, columns;
	 * gpu/layout/mma.h */
	ATTR_INSTR = 2,
	ATTR_WARPS = 3,
	/* WARP_GROUP_DOT: B is the instruction's A; that is fetched into registers for so many groups of products; a
	 * later wait completes it; the instruction's B is turned where it lies */
	ATTR_EXCHANGED = 4,
	ATTR_FETCHED = 5,
	ATTR_ASYNC = 6,
	ATTR_TRANSPOSED = 7,
	ATTR_CONVERSION = 0,
	ATTR_PIECES = 1, /* CONVERT_LAYOUT, set by `allocate`; through memory */
	ATTR_HEX = 1,
	ATTR_SIGNED = 2, /* PRINT; bit i of SIGNED: operand i */
	ATTR_STAGES = 0,
	ATTR_UNROLL = 1,
	ATTR_FLATTEN = 2,
	ATTR_WARP_SPECIALIZE = 3, /* FOR */
	/* BARRIER: of a warp's lanes only; of a warpgroup's warps; of all blocks of the cluster */
	ATTR_WARP = 0,
	ATTR_WARPGROUP = 1,
	ATTR_CLUSTER = 2,
	ATTR_CONSTRAINTS = 1,
	ATTR_PACK = 2,
	ATTR_PURE = 3, /* INLINE_ASM, PURE_ASM */
	ATTR_ASYNC_EVICT = 0,
	ATTR_PENDING = 0, /* ASYNC_COPY; ASYNC_WAIT, WARP_GROUP_WAIT */
	/* INIT_BARRIER: arrivals of a phase; BARRIER_EXPECT: bytes */
	ATTR_COUNT = 0,
	ATTR_SIZE = 0,
	ATTR_GLOBAL = 1, /* FENCE_ASYNC: of global memory too */
	ATTR_ONLY = 0,
	ATTR_FIRST = 0, /* PINGPONG_ARRIVE; PINGPONG_WAIT: only the first warpgroup */
	ATTR_MORE_WARPS = 0,
	ATTR_REGISTERS = 1,
	ATTR_OTHER_REGISTERS = 2, /* PARTITION */
	/* TMA_COPY, TMA_TENSOR_COPY: dimension of rows; bytes between them, or times the last operand; the tensor's
	 * offsets are of 31 bits; the last operand tells whether the other block of a pair asks for the same box */
	ATTR_ALONG = 0,
	ATTR_STRIDE = 1,
	ATTR_NARROW = 2,
	ATTR_COPY_PAIR = 3,
	/* FOR: in launches within the kernel's limits the index behind the last one fits the type */
	ATTR_NO_WRAP = 5,
	IR_MAX_ATTRS = 8,
};

/* The user's promises about a value (tl.multiple_of and the like), per dimension; 0 = none. Copies of an operation
 * share them, so they are never changed in place. A promise holds where control has passed it: an operation has hints
 * only if every execution of the operation passes the promise, and passes do not move it to where more executions come
 * (value_with_hints, LICM). */
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
	u32 index;            /* among the results or arguments */
	u32 mark;             /* scratch of the current walk */
	u32 walk;             /* the last walk that came here: first_visit */
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
	const char *text;     /* the attribute of kind str; of a pure operation interned */
	struct hints *hints;  /* or NULL */
	i32 scratch_offset, scratch_size; /* shared memory of its own, in bytes; set by placement, -1 before */
	u32 mark;
};

struct block {
	struct value **args;
	u32 nargs, cap_args;
	struct op *first, *last, *parent; /* parent is NULL for a kernel's body */
};

struct kernel_param {
	const char *name;
	struct value *value;
	i32 divisibility; /* 0 unknown; of the address in bytes for pointers, of the value for integers */
	bool is_unsigned; /* of an integer, for the host */
	u32 leaf;         /* which leaf of the kernel's arguments it is, counted over all of them */
	bool reads, writes; /* the kernel may read, or write, memory through this pointer; see kernel_note_uses */
	bool always; /* whatever its arguments are */
};

/* A number that the host knows at a launch: `times` a product of the kernel's integer parameters, by their numbers from
 * the least on, and `plus`. See launch_product.h. */
enum { PRODUCT_PARAMS = 3 };
struct launch_product {
	i64 times;
	i16 nparams, params[PRODUCT_PARAMS]; /* 0 behind them: products compare as bytes */
	i64 plus;                            /* of sizes alone */
};

/* A tensor map that the host makes at each launch and passes after the parameters: see gpu/codegen/tma.c. */
struct tensor_map_param {
	struct launch_product distance; /* of a row from the one before, in bytes */
	struct launch_product sizes[2]; /* of a tensor, in elements: of a row, and how many rows */
	i32 tensor; /* the parameter that points to it, or to memory in front of it; -1: the map is of all memory */
	i32 box[3];    /* elements of a piece of a row as wide as the swizzle, rows, pieces */
	i32 elem_bytes, swizzle; /* bytes */
	i32 narrow;              /* the offset of the tensor's last element must fit 31 bits */
	i32 moved;               /* it begins behind where the parameter points */
};
_Static_assert(sizeof(struct tensor_map_param) == 3 * sizeof(struct launch_product) + 8 * sizeof(i32),
	       "no padding: they compare as bytes");
enum {
	MAX_TENSOR_MAPS = 8,
	TENSOR_MAP_LOG2_PAGE = 24,
	TENSOR_MAP_LOG2_UNIT = 4, /* by which tensors are moved in a page */
	SWIZZLE_ROWS = 8,         /* of a box, after which the order of its pieces repeats */
	SECTOR_BYTES = 32,        /* of memory: rows that begin within one take more of L2's time */
	GRID_PARAMS = 3,
	MAX_PARTITION_WARPS = 4
};

/* A launch's promise about the memory of pointer parameters. */
enum aliasing {
	ALIAS_NONE,  /* each parameter written to has memory of its own */
	ALIAS_EQUAL, /* or the same address as another */
	ALIAS_ANY,   /* nothing: they may overlap */
};

/* Two parameters, by number, that the code assumes not to overlap. */
struct param_pair {
	u32 a, b;
	bool equal_is_fine; /* the code is right too where both are the same address */
};

enum { MAX_PENDING_DOTS = 7 /* groups of products that a wait can leave running */ };
enum { MAX_SIZE_LIMITS = 16, SIZE_NONE = -1, SIZE_PROGRAMS = -2 };
/* An assumption of compiled code about a launch: the sizes a and b are not negative, and their product, where
 * each counts as `least` at least, is at most `most` (or a alone: b may be SIZE_NONE). A size is an
 * integer parameter, by its index, or SIZE_PROGRAMS - axis, the programs along an axis. See analysis/launch_bounds.h.
 * */
struct size_limit {
	i64 most;
	i16 a, b;
	i32 least;
};
/* Do the sizes a and b keep it? */
static inline bool size_limit_kept(const struct size_limit *l, i64 a, i64 b)
{
	if (l->b == SIZE_NONE)
		return a >= 0 && a <= l->most;
	return a >= 0 && b >= 0 && (i128)MAX(a, l->least) * MAX(b, l->least) <= l->most;
}
/* What compiled code counts on of sizes. */
enum launch_bounds {
	BOUNDS_LIMITED, /* the limits, and few elements behind each pointer */
	BOUNDS_ANY,     /* few elements behind each pointer: see transform/wide_offsets.h */
	BOUNDS_WIDE,    /* nothing */
};

/* The grids for which code may differ: of at most as many programs as multiprocessors; of more; and of so many rows of
 * programs, too, that L2 may not hold what these read. */
enum grid_kind { GRID_FEW, GRID_MANY, GRID_ROWS, GRID_KINDS };

/* Placement's decisions about a kernel for CUDA, beside its layouts. */
struct cuda_placement {
	int cluster;      /* blocks that a program runs on: 1, or several that form a cluster */
	u32 grids;        /* bit enum grid_kind: those for which the code would be the same; 0: all */
	bool persistent;  /* they do; the last parameters are the programs' grid */
	bool pairs;       /* two neighbouring blocks share boxes where they are launched as a cluster */
	i32 more_warps;   /* of a block beside num_warps: its partition's */
	i32 maxnreg;      /* the most registers of a thread; 0: not set */
	struct tensor_map_param maps[MAX_TENSOR_MAPS];
	u32 nmaps;
};

struct kernel {
	struct ir_context *ctx;
	const char *name;
	struct loc loc;
	struct kernel_param *params;
	u32 nparams;
	struct block *body;
	VEC(struct param_pair) apart; /* see analysis/alias.h */
	struct size_limit limits[MAX_SIZE_LIMITS];
	u32 nlimits;
	enum launch_bounds sizes;
	bool narrow_offsets; /* counts on few elements behind each pointer: see transform/wide_offsets.h */
	int num_warps; /* of all blocks that a program runs on */
	/* set by placement */
	i32 shared_bytes;
	struct cuda_placement cuda;
	const char *target; /* "cuda:90" in the ttgir dump; NULL before placement */
};

/* Warps that a block is launched with. */
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
/* A walk along operands or uses that visits each value once takes time linear in the kernel's size, however many
 * operations share a value. */
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
/* Has the operation a region on scalars that runs for elements, or pairs of elements, of its operands? */
static inline bool op_runs_on_elements(const struct op *o)
{
	return o->code == IR_REDUCE || o->code == IR_SCAN || o->code == IR_MAP;
}
static inline struct op *terminator(const struct block *b) { return b->last; }
/* Of an scf.for: the bounds and the step, the initial value of each carried value, and in the body the index, the
 * carried values, their numbers, and the values that the next iteration gets. */
enum { FOR_LOWER, FOR_UPPER, FOR_STEP, FOR_INITS /* first */ }; /* operands, for op_set_operand */
static inline struct value *for_lower(const struct op *loop) { return operand(loop, FOR_LOWER); }
static inline struct value *for_upper(const struct op *loop) { return operand(loop, FOR_UPPER); }
static inline struct value *for_step(const struct op *loop) { return operand(loop, FOR_STEP); }
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
/* Permutations are packed 4 bits an entry. */
static inline int perm_get(i64 perm, int i) { return (int)(perm >> (4 * i) & 15); }
i64 perm_pack(const int *perm, int n);
/* Lists of up to MAX_DIMS numbers below 2^15, packed 16 bits an entry; 0: none. */
enum { MAX_DIMS = 4 };
static inline int dims_get(i64 dims, int i) { return (int)(dims >> (16 * i) & 0xFFFF); }
i64 dims_pack(const int *dims, int n);

/* The number of the parameter that v is; -1: it is none. */
i32 param_number(const struct kernel *k, const struct value *v);

/* --- building ------------------------------------------------------------------------------------------------ */

struct kernel *kernel_new(struct ir_context *c, const char *name);
struct block *block_new(struct ir_context *c, struct op *parent);
struct value *block_add_arg(struct ir_context *c, struct block *b, const struct type *t);
void block_remove_arg(struct block *b, u32 index); /* it must be unused */
void for_remove_carried(struct op *loop, u32 i);   /* its argument and result must be unused */

/* Where new operations go: before `before`, or at the end of `block` when that is NULL. */
struct builder {
	struct ir_context *ctx;
	struct block *block;
	struct op *before;
	struct loc loc;
	u32 count; /* operations made so far */
};
struct builder builder_at_end(struct ir_context *c, struct block *b);
struct builder builder_before(struct ir_context *c, struct op *o);
struct builder builder_after(struct ir_context *c, struct op *o);

struct op *build(struct builder *b, enum opcode code, struct value *const *operands, u32 noperands,
		 const struct type *const *results, u32 nresults, u32 nblocks);
/* One result of type t. Trailing NULL operands are left out. */
struct value *build1(struct builder *b, enum opcode code, const struct type *t, struct value *x);
struct value *build2(struct builder *b, enum opcode code, const struct type *t, struct value *x, struct value *y);
struct value *build3(struct builder *b, enum opcode code, const struct type *t, struct value *x, struct value *y,
		     struct value *z);
/* A scalar, or a tensor filled with it. `bits` is the element's memory representation. */
struct value *build_constant(struct builder *b, const struct type *t, u64 bits);
struct value *build_int(struct builder *b, const struct type *t, i64 x);
struct value *build_i64(struct builder *b, struct value *v); /* a scalar integer, sign-extended */
struct value *build_cmpi(struct builder *b, enum cmpi_predicate p, struct value *x, struct value *y);
/* x minus half the range of its type: maps unsigned numbers to signed ones in the same order, and back. scf.for
 * compares signed numbers, so loops over unsigned bounds count in moved ones. */
struct value *build_moved_by_half(struct builder *b, struct value *x);
/* v with hints that hold at b: on v's operation, if execution always reaches b from there, else on a tt.bitcast of v to
 * its own type at b. */
struct value *value_with_hints(struct builder *b, struct value *v, const struct hints *h);
struct value *build_splat(struct builder *b, struct value *scalar, int rank, const i32 *shape);

/* --- changing ------------------------------------------------------------------------------------------------ */

void op_set_operand(struct op *o, u32 i, struct value *v);
void op_add_operand(struct ir_context *c, struct op *o, struct value *v);
void op_remove_operand(struct op *o, u32 i);
void op_remove_result(struct op *o, u32 i); /* it must be unused */
/* Gives an operation made without results its results. */
void op_set_results(struct ir_context *c, struct op *o, const struct type *const *types, u32 n);
void op_unlink(struct op *o);
void op_insert_before(struct op *o, struct op *at);
/* Unlinks the operation and drops its uses, those of its regions included. Its results must be unused. */
void op_erase(struct op *o);
/* Erases the operations of the block itself that have no effects and no used results. */
void block_erase_unused(struct block *b);
void replace_uses(struct value *from, struct value *to);
static inline bool value_unused(const struct value *v) { return !v->uses; }
bool value_has_one_use(const struct value *v);

/* A copy of o at b, its regions included. Operands found in `map` (value → value) are replaced by what it holds; the
 * copy's results and block arguments are added to it. */
struct op *op_clone(struct builder *b, const struct op *o, struct map *map);
/* The loop again, with more carried values: `inits` are their first values. The new values must be yielded later. */
struct op *extend_loop(struct ir_context *ctx, struct arena *scratch, struct op *loop, const value_vec *inits);
struct value *mapped(const struct map *map, struct value *v);

/* --- asking -------------------------------------------------------------------------------------------------- */

/* Is v a constant (a splat counts)? */
bool value_const_bits(const struct value *v, u64 *bits);
bool value_const_int(const struct value *v, i64 *x);
bool value_is_int(const struct value *v, i64 x);
/* Are they the same, or the same constant? NULL is none. */
bool equal_values(const struct value *x, const struct value *y);
/* Is `v` defined outside `b` and the blocks nested in it? */
bool value_defined_outside(const struct value *v, const struct block *b);
bool block_contains(const struct block *outer, const struct block *inner);
/* Is o, or what contains it, `first` or an operation behind it in its block? */
bool comes_behind(const struct op *o, const struct op *first);
/* Does an operation of the block, or one nested inside, pass the test? */
bool block_has(const struct block *b, bool (*test)(const struct op *));
/* May it wait for another program, or the host, to change memory (ir/waiting_loops.c)? */
bool op_may_wait(const struct op *o);
/* Kinds of operations: loops; with branches; dots; shape operations, which only move elements. op_may_trap: may end the
 * program for some operands (a division). */
static inline bool op_is_loop(const struct op *o) { return o->code == IR_FOR || o->code == IR_WHILE; }
static inline bool op_is_control(const struct op *o)
{
	return op_is_loop(o) || o->code == IR_IF;
}
static inline bool op_is_dot(const struct op *o) { return o->code == IR_DOT || o->code == IR_WARP_GROUP_DOT; }
/* By the copy engine, into the buffer that is operand 1. */
static inline bool op_is_tensor_copy(const struct op *o)
{
	return o->code == IR_TMA_COPY || o->code == IR_TMA_TENSOR_COPY;
}
static inline bool block_is_empty(const struct block *b) { return b->first == b->last; }
/* Does the program end behind o, in one of its branches at once? */
static inline bool op_ends_early(const struct op *o)
{
	return o->code == IR_IF && o->next == o->block->last && !o->nresults &&
	       (block_is_empty(o->blocks[0]) || block_is_empty(o->blocks[1])) &&
	       (!o->block->parent || op_ends_early(o->block->parent));
}
/* The axis along which o's result is a program's number; -1: it is none. */
static inline int program_axis(const struct op *o)
{
	switch (o->code) {
	case IR_PROGRAM_ID: return (int)o->attr[ATTR_AXIS];
	case IR_ADDI: return (int)o->attr[ATTR_SUM_PROGRAM] - 1;
	case IR_DIVSI:
	case IR_REMSI: return (int)o->attr[ATTR_PROGRAM] - 1;
	default: return -1;
	}
}
static inline void set_program_axis(struct op *o, int axis)
{
	o->attr[o->code == IR_ADDI ? ATTR_SUM_PROGRAM : ATTR_PROGRAM] = axis + 1;
}
static inline bool op_is_shape(const struct op *o)
{
	return o->code == IR_EXPAND_DIMS || o->code == IR_BROADCAST || o->code == IR_TRANS || o->code == IR_RESHAPE;
}
/* May it stand wherever its operands are there and its results are not yet needed: it has no effects, and brings no
 * threads together? */
static inline bool op_is_orderless(const struct op *o)
{
	return op_has(o, PURE) && !op_has(o, SYNC) && !o->nblocks;
}
bool op_may_trap(const struct op *o);
static inline bool op_is_print(const struct op *o) { return o->code == IR_PRINT; }
static inline bool op_is_report(const struct op *o) { return o->code == IR_ASSERT || o->code == IR_PRINT; }
/* Does a reduction, scan or map do more than give its results? */
bool op_reports_inside(const struct op *o);
static inline bool op_is_asm(const struct op *o) { return o->code == IR_INLINE_ASM || o->code == IR_PURE_ASM; }
/* May the program end or loop forever inside o, so that the operations behind o are not always reached? */
bool op_may_not_return(const struct op *o);
/* Does every execution of `from` (NULL: of the block) reach `to`, a later operation of the block (NULL: its end)? */
bool always_reaches(const struct block *b, const struct op *from, const struct op *to);
/* The value that operand i of o, a control operation or the end of one of its regions, becomes: an argument of a
 * region, or a result. NULL: none (bounds, conditions). Results of loops are what such an argument is at the end. */
struct value *value_passed_to(const struct op *o, u32 i);
struct value *result_passed_by(const struct op *o, u32 i);
/* Are the load's masked-off elements zero or undefined? */
bool load_fills_zero(const struct op *load);
/* The parameter that v's addresses are computed from, through offsets, tiles and loops; NULL when it may be several. */
const struct value *pointer_base(const struct value *v);
/* Notes which parameters the evaluated kernel reads and writes memory through; of memory that pointers in memory lead
 * to nothing is known. */
void kernel_note_uses(struct kernel *k);
/* Numbers (op.mark) the operations of a block and of the regions inside, in order, from `first` on; the number behind
 * the last one. And the last number in an operation. */
u32 number_ops(struct block *b, u32 first);
u32 last_mark(const struct op *o);
/* Calls f for each operation, regions after the operation that holds them. */
void walk(struct block *b, void (*f)(struct op *o, void *arg), void *arg);

/* --- text ---------------------------------------------------------------------------------------------------- */

void kernel_print(const struct kernel *k, struct strbuf *out);
void kernel_dump(const void *kernel, FILE *out); /* for crash_scope */
/* Reads the text of one kernel (TTIR, or placed as tlc prints it); NULL after an error. library: see
 * ir/import/library_calls.h; it may be NULL. */
struct text_library;
struct kernel *kernel_parse(struct ir_context *c, u16 file, const struct text_library *library);

/* Checks every operation against the table. The first violation is a bug in tlc: `what` names the culprit pass. For
 * text from a user (`report` set) violations are diagnosed instead, and false is returned. */
bool kernel_verify(const struct kernel *k, const char *what, struct diags *report);

#endif
