/* Bulk copies of consecutive bytes (bulk.c), and tensor copies, which copy TMA tiles (tensor.c). */
#ifndef TL_SIM_BULK_H
#define TL_SIM_BULK_H

#include "runtime/sim/engine.h"
#include "runtime/sim/memory.h"
#include "runtime/sim/tensormap.h"

enum transfer_kind { TO_SHARED, FROM_SHARED, WITHIN_SHARED, FROM_REGISTERS };

/* Operands of a bulk copy; in a tensor copy `to` or `from` is the tensor map. */
enum { TRANSFER_TO, TRANSFER_FROM, TRANSFER_SIZE };
/* Plan of an instruction. */
struct transfer_plan {
	enum transfer_kind kind;
	u32 rank;           /* rank of a tensor copy; else 0 */
	bool reduces;
	u8 mbarrier;        /* operand index */
	u8 mask;            /* operand index of the mask of destination blocks (multicast); 0: none */
	bool own_only;      /* the destination must be in the issuing block */
	apply_fn *apply;    /* operation of a reduction with its type in the opcode */
	u32 element;        /* bytes of a word of that reduction, or of a register of st.async */
};

/* An outstanding bulk copy. A multicast copy has one transfer per destination block. */
struct transfer {
	struct flight flight; /* must be the first field */
	const struct transfer_plan *plan;
	struct cta *to;       /* block with the destination in its shared memory */
	u32 shared, bytes;    /* the range of shared memory that it writes or reads */
	u64 global;
	u32 source;           /* WITHIN_SHARED: address of the source */
	struct mbarrier *mbarrier;
	u32 group;
	char *data;           /* contents of the source, once read */
	bool written, released; /* written: the destination is written; released: the source may be overwritten */
	struct tensor_map map;
	i32 at[TENSOR_MAP_RANK];
	bool whole;           /* the TMA tile lies entirely inside the tensor */
	apply_fn *apply;
	u32 element;
};

/* Callback for a piece of a copy: bytes that are consecutive in both shared and global memory. Returning false stops
 * the iteration. */
typedef bool piece_fn(struct transfer *t, u32 shared, u64 global, u32 bytes);
/* Calls f for each piece of a TMA tile inside the tensor; false if f returned false. */
bool tensor_pieces(struct transfer *t, piece_fn *f);
/* True if the whole TMA tile is outside the tensor. */
bool tensor_is_outside(const struct transfer *t);
/* Fills the destination with the value of elements outside the tensor. */
void tensor_fill(const struct transfer *t);
/* Reads the tensor map and the coordinates of lane `lane`; false after a fault. */
bool tensor_open(struct transfer *t, struct warp *w, const struct instr *i, u32 lane);

/* Called when a warp ends: faults if a copy from shared memory was not waited for, at least for reading its source. */
void bulk_end(struct warp *w);

#endif
