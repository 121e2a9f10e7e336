/* Layout assignment: assign_layouts.c chooses the assigned layout of each value, access_layouts.c the layouts of
 * accesses to memory, dot_layouts.c the layouts of dots,
 * epilogue_layout.c the layouts in which dot results are stored and loop-invariant operands are loaded,
 * fallback_layout.c the layouts of values that inference does not reach. insert_conversions.c rewrites the kernel with
 * them. */
#ifndef TLC_GPU_LAYOUT_ASSIGN_LAYOUTS_H
#define TLC_GPU_LAYOUT_ASSIGN_LAYOUTS_H

#include "ir/graph.h"
#include "gpu/layout/mma.h"
#include "gpu/gpu_passes.h"

/* The instruction and the layouts of a dot. */
struct dot_plan {
	const struct mma *mma;         /* NULL: wgmma or multiply-adds */
	const struct wgmma *wgmma;     /* operands in shared memory, A perhaps in registers; NULL: no wgmma */
	struct wgmma_split split;      /* of wgmma */
	bool computed;                 /* wgmma's A is computed in registers */
	bool fetched;                  /* wgmma's A is MN-major in shared memory, and loaded into registers */
	bool transposed;                   /* wgmma's B is MN-major, and transposed in place in shared memory */
	int bytes;                     /* element size of an MN-major A that is loaded into registers; or 0 */
	int warps[MAX_RANK];           /* along each dimension, for mma.sync */
	const struct layout *acc, *a, *b; /* a and b: for mma.sync; a: also for an A that is computed or fetched */
};

/* A unit of work of layout inference: an operation, operand i of a control operation or terminator, or result i of a
 * control operation. Parts are numbered in program order. */
struct inference {
	struct op *op;
	u32 i;
	bool result;
};

/* The numbers of parts to run: a binary heap, the least number first. */
typedef VEC(u32) inference_queue;

struct placer {
	struct pass_state *s;
	struct ir_context *ctx;
	struct layout_pool *pool;
	struct arena scratch;
	/* values from which operands of dots are computed elementwise, or (the second) by shape operations, too */
	struct value_set operands, shaped_operands;
	struct map assigned;   /* value → its assigned layout, in which it is computed */
	struct map memory; /* load, store or atomic → layout it prefers; absent: no preference */
	struct map copies; /* load → layout of its copy to shared memory, unless it is read in that layout */
	struct map dots;   /* dot → struct dot_plan */
	struct map free;   /* value → FREE or NOT_FREE */
	/* value computed from loads to buffers in another layout than the assigned one → that layout */
	struct map of_load;
	struct map strong; /* layout → enum layout_strength */
	struct map dotless; /* loop → itself, if it contains no dot */
	bool enter; /* layouts of dots may spread into loops without dots */
	struct map made;   /* value → its versions in other layouts */
	struct map originals; /* version → the value of which it is one */
	struct map copied; /* loads of few elements that cp.async is to execute → themselves */
	const struct layout *common; /* layout of all tiles of a kernel on several blocks, or NULL */
	bool changed;
	VEC(struct inference) parts; /* an operation's mark is the number of its first part */
	bool *queued;                /* for each part: it is in a queue */
	inference_queue now, next;   /* of this sweep, and of the next sweep */
	u32 at;                      /* the part that runs */
};

/* True if v is rematerializable: index arithmetic or a constant, which is recomputed in each layout needed rather than
 * converted. */
bool is_free(struct placer *p, const struct value *v);
const struct layout *assigned_layout(const struct placer *p, const struct value *v);
void assign_layout(struct placer *p, const struct value *v, const struct layout *l);
const struct layout *default_layout(struct placer *p, const struct type *t);
/* The blocked layout: `vec` elements a thread along order[0], then lanes, then warps, in order. */
const struct layout *blocked_layout(struct placer *p, const struct type *t, const int *order, int vec);
/* The layout of a scan. The axis runs through registers, then lanes, then warps, so that the scan combines partial
 * results in the same order. Rows are held as memory accesses hold them, in whole vectors, and columns by as few
 * threads as possible. */
const struct layout *scan_layout(struct placer *p, const struct op *o);
/* The layout of a shape operation's operand if the result has layout l. */
const struct layout *operand_layout(struct placer *p, const struct op *o, const struct layout *l);
/* Orders the dimensions of o's pointers by contiguity, the most contiguous first. Among equals, the last dimension
 * comes first. False: no dimension is contiguous. */
bool memory_order(const struct placer *p, const struct op *o, int *order);
/* True if the load's tile becomes a dot's operand by elementwise operations (`shapes`: and shape operations). Several
 * threads hold the same fragments, so such a tile is loaded once and goes to its dot through shared memory. */
bool feeds_dot(const struct placer *p, const struct op *load, bool shapes);
/* True if a pipelined loop executes o: the result of a load may come from a buffer in shared memory. */
bool is_in_pipelined_loop(const struct placer *p, const struct op *o);
/* True if cp.async may copy the load's tile to shared memory ahead of its iteration: its loop has at least `stages`
 * stages, addresses and mask are index arithmetic, and the loop does not write the memory. */
bool may_be_copied(struct placer *p, const struct op *load, int stages);
/* Chooses the layouts of accesses with a contiguous dimension, and notes the operands of dots. */
void place_accesses(struct placer *p);
/* Chooses the layouts of other loads. All values must have their assigned layouts. */
void place_strided_loads(struct placer *p);
/* Chooses plans for all dots. Accesses must have their layouts. */
void place_dots(struct placer *p);
/* Chooses epilogue layouts. Accesses and dots must have their layouts; inference comes later. */
void place_results(struct placer *p);
/* The layout in which a reduction (NULL: its operands have none yet), a scan, or tt.split takes its operands; and the
 * layout of the results for operands in layout `in`. */
const struct layout *input_layout(struct placer *p, const struct op *o);
const struct layout *output_layout(struct placer *p, const struct op *o, const struct layout *in);

/* Divides n lanes or warps among dimensions, in this order, as far as each dimension has elements that are not
 * `covered`. The last dimension takes the rest. */
void divide_among(const struct type *t, const int *order, int ndims, int n, int *covered, int *out);
/* Row-major order: the last dimension first. */
void order_rows(const struct type *t, int *order);
int elements_per_thread(const struct placer *p, const struct type *t);

/* Where two layouts of a value compete, the stronger one wins: a layout of a dot, or derived from one. An accumulator
 * of several dots has the layout of the dot on tensor cores. */
enum layout_strength { OF_NO_DOT, OF_MULTIPLY_ADDS, OF_TENSOR_CORES };
enum layout_strength strength_of(const struct placer *p, const struct layout *l);
void set_strength(struct placer *p, const struct layout *l, enum layout_strength strength);

bool is_memory_op(const struct op *o);
/* Warns if the tiles that are live at once do not fit the registers: cluster.c. */
void warn_of_spills(struct pass_state *s);
/* Derives assigned layouts from the assigned layouts of other values, until none changes. */
void infer(struct placer *p);
/* Assigns a fallback layout to each value that needs a layout and has none, in program order, and infers further
 * layouts after each (fallback_layout.c). */
void assign_fallback_block(struct placer *p, struct block *b);
void materialize(struct placer *p);

#endif
