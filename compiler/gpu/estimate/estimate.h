/* An estimate of the time of a launch, from laid-out GPU IR: for ranking configurations of a kernel before code is
 * generated.
 *
 * The bill of a block (bill.c) counts what its operations demand of each unit of a multiprocessor, with the iterations
 * of loops and the shares of masks that follow from the arguments (known_values.c), and how long the block takes if it
 * waits for nothing but its own operations. launch_time.c distributes the blocks over the multiprocessors. */
#ifndef TLC_GPU_ESTIMATE_ESTIMATE_H
#define TLC_GPU_ESTIMATE_ESTIMATE_H

#include "ir/pass.h"

/* A launch. Leaves are the arguments with tuples flattened. */
struct launch_shape {
	u32 grid[3]; /* programs */
	u32 blocks;  /* of a persistent kernel: the number of its blocks; else 0 */
	u32 nleaves;
	const i64 *leaf;      /* values of integers */
	const bool *is_known; /* the leaf is an integer */
	/* bytes of memory that the pointers refer to, all together; 0: not known */
	u64 bytes;
};

/* What a block demands, in cycles of the unit of a multiprocessor unless noted otherwise. */
struct bill {
	double tensor;            /* tensor cores */
	double shared;            /* shared memory and L1, wavefronts of 128 bytes */
	double issue;             /* instructions of warps, four at a time */
	double special;           /* special functions, such as exp2 */
	double l2;                /* the path to L2 */
	double bytes;             /* from and to L2, in bytes */
	double alone;             /* duration in cycles if no other block delays it */
	double longest, shortest; /* durations of a program in the sample */
};

/* No padding: estimates compare as bytes. */
struct launch_estimate {
	struct bill bill; /* of an average block */
	double blocks;    /* of the launch */
	double us;        /* the expected time */
	i32 registers;    /* of a thread */
	i32 resident;     /* blocks of a multiprocessor at once */
	i32 shared_bytes; /* of a block */
	i32 threads;      /* of a block */
};

/* The average of a sample of the launch's blocks. */
struct bill average_bill(struct pass_state *s, const struct launch_shape *l);
/* For a kernel after all GPU passes; s->axis must be valid. */
struct launch_estimate estimate_launch(struct pass_state *s, const struct launch_shape *l);

#endif
