/* Bulk copies, of consecutive bytes (bulk.c) and of boxes of tensors (tensor.c). */
#ifndef TL_SIM_BULK_H
#define TL_SIM_BULK_H

#include "runtime/sim/engine.h"
#include "runtime/sim/memory.h"
#include "runtime/sim/tensormap.h"

enum transfer_kind { TO_SHARED, FROM_SHARED, WITHIN_SHARED, FROM_REGISTERS };

/* What the decoder finds out; instr.mods is its address. */
struct transfer_plan {
	enum transfer_kind kind;
	u32 rank;           /* of a tensor copy; else 0 */
	int op;             /* of ATOMIC_OPERATIONS: a reduction; -1: a copy */
	bool op_noftz;
	u8 to, from, size, mbarrier; /* operands; of a tensor copy one of the first two is the map */
	u8 mask;            /* operand: of the cluster's blocks to which it copies; 0: there is none */
	bool own_only;      /* the destination is in the own block */
	apply_fn *apply;    /* of a reduction whose type the opcode tells */
	u32 element;        /* bytes, likewise; and of each of the registers */
};

/* A copy to several blocks is one of these for each. */
struct transfer {
	struct flight flight; /* first */
	const struct transfer_plan *plan;
	struct cta *to;       /* in whose shared memory the destination is */
	u32 shared, bytes;    /* the part of shared memory that it fills or empties */
	u64 global;
	u32 source;           /* WITHIN_SHARED */
	struct mbarrier *mbarrier;
	u32 group;
	char *data;           /* of its source, once that was read */
	bool written, released; /* the destination; the source, for others to write */
	struct tensor_map map;
	i32 at[TENSOR_MAP_RANK];
	bool whole;           /* no part of the box is outside the tensor */
	apply_fn *apply;
	u32 element;
};

/* Neighbouring bytes that stay together: of shared memory, and of global memory. False stops. */
typedef bool piece_fn(struct transfer *t, u32 shared, u64 global, u32 bytes);
/* Each piece of a box within the tensor; false when f did. */
bool tensor_pieces(struct transfer *t, piece_fn *f);
/* Is no element of the box in the tensor? */
bool tensor_is_outside(const struct transfer *t);
/* What a copy leaves where the box is outside the tensor. */
void tensor_fill(const struct transfer *t);
/* The map and coordinates of lane `lane`; false after a fault. */
bool tensor_open(struct transfer *t, struct warp *w, const struct instr *i, u32 lane);

/* cp.async.bulk and cp.reduce.async.bulk, up to that taken. */
bool decode_bulk(struct decoder *d);
bool decode_bulk_reduce(struct decoder *d);
/* st.async, up to that taken. */
bool decode_st_async(struct decoder *d);
/* Faults if shared memory may be gone before a copy has read it. */
void bulk_end(struct warp *w);

#endif
