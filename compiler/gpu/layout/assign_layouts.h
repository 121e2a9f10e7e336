/* Shared by the parts of layout assignment: assign_layouts.c decides the home of each value, dot_layouts.c the
 * layouts of dots, epilogue_layout.c which threads store what dots give and load what all iterations multiply,
 * insert_conversions.c rewrites the kernel with them. */
#ifndef TLC_GPU_LAYOUT_ASSIGN_LAYOUTS_H
#define TLC_GPU_LAYOUT_ASSIGN_LAYOUTS_H

#include "ir/graph.h"
#include "gpu/layout/mma.h"
#include "gpu/gpu_passes.h"

/* A dot's share of the block. */
struct dot_plan {
	const struct mma *mma;         /* NULL: wgmma or multiply-adds */
	const struct wgmma *wgmma;     /* its operands lie in shared memory, A perhaps in registers */
	struct wgmma_split split;      /* of wgmma */
	bool computed;                 /* wgmma's A is computed in registers */
	bool fetched;                  /* it lies across k in shared memory, and goes through registers */
	bool transposed;                   /* its B lies across k, and is turned there */
	int bytes;                     /* of an element of A as it is fetched, where it lies across k; or 0 */
	int warps[MAX_RANK];           /* of mma.sync */
	const struct layout *acc, *a, *b; /* a and b: of mma.sync; a: of an A that is computed or fetched, too */
};

/* A unit of work of the inference of homes: an operation, operand i of a control operation or terminator, or result i
 * of a control operation. Parts are numbered in program order. */
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
	struct value_set operands, shaped_operands; /* values from which dots' operands are made element by element;
						     * or by shape operations too */
	struct map assigned;   /* value → layout it is computed in */
	struct map memory; /* load, store or atomic → layout it prefers; absent: it does not care */
	struct map dots;   /* dot → struct dot_plan */
	struct map free;   /* value → is_free's answer */
	/* value → layout of dots' results that it is computed in, from a load (insert_conversions.c) */
	struct map of_load;
	struct map strong; /* layouts that come from tensor cores: others give way to them */
	struct map made;   /* value → its versions in other layouts */
	struct map copied; /* loads of few numbers that cp.async is to bring → themselves */
	const struct layout *common; /* of all tiles of a kernel that runs on several blocks, or NULL */
	bool changed;
	VEC(struct inference) parts; /* an operation's mark is the number of its first part */
	bool *queued;                /* of each part */
	inference_queue now, next;   /* of this sweep, and of the next sweep */
	u32 at;                      /* the part that runs */
};

/* Index arithmetic and constants: recomputed in whatever layout is wanted rather than moved. */
bool is_free(struct placer *p, const struct value *v);
const struct layout *assigned_layout(const struct placer *p, const struct value *v);
void assign_layout(struct placer *p, const struct value *v, const struct layout *l);
const struct layout *default_layout(struct placer *p, const struct type *t);
/* The layout that the operand of a shape operation has when its result has layout l. */
const struct layout *operand_layout(struct placer *p, const struct op *o, const struct layout *l);
/* Dimensions of o's pointers by contiguity, longest runs first; of equal ones the last dimension first. False: nothing
 * is contiguous. */
bool memory_order(const struct placer *p, const struct op *o, int *order);
/* Fragments are held by several threads: a tile is loaded once and goes to its dot through shared memory. `shapes`: or
 * works on one that is. */
bool feeds_dot(const struct placer *p, const struct op *load, bool shapes);
/* Plans for all dots, when accesses have their places. */
void place_dots(struct placer *p);
/* Between places of accesses and of dots, and homes. */
void place_results(struct placer *p);
/* The layout in which a reduction (NULL: its operands have none yet), a scan, or tt.split takes its operands; and that
 * of its results then. */
const struct layout *input_layout(struct placer *p, const struct op *o);
const struct layout *output_layout(struct placer *p, const struct op *o, const struct layout *in);

/* Divides n lanes or warps among dimensions, in this order, as far as each has elements that are not `covered`; the
 * last one takes the rest. */
void divide_among(const struct type *t, const int *order, int ndims, int n, int *covered, int *out);
/* The last dimension first. */
void order_rows(const struct type *t, int *order);
int elements_per_thread(const struct placer *p, const struct type *t);

/* Is this a layout of tensor cores, or made from one? */
bool prefers_mma(const struct placer *p, const struct layout *l);

bool is_memory_op(const struct op *o);
/* Derives homes of values from the homes of other values, until no home changes. */
void infer(struct placer *p);
/* Gives a home to each value that needs a home and has none, in program order, and infers further homes after each
 * (fallback_layout.c). */
void assign_fallback_block(struct placer *p, struct block *b);
void materialize(struct placer *p);

#endif
