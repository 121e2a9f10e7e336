/* Thresholds of the passes and of the code generator, each with the reason for its value. Limits of a device are in
 * support/target.h. */
#ifndef TLC_SUPPORT_THRESHOLDS_H
#define TLC_SUPPORT_THRESHOLDS_H

enum tuning {
	/* Operations of a loop (index-set splitting) or of the rest of a block (versioning) that may get a second copy:
	 * bounds the growth of code. Those copied in the examples, tests and benchmarks have 3 to 67 operations; ten
	 * times as many leave room for unrolled ones. */
	MAX_DUPLICATED_OPS = 600,
	/* Operations of a loop's body after unrolling: bounds the time of compiling. A greater product of factor and
	 * body is left alone, with a remark. */
	MAX_UNROLLED_OPS = 1 << 15,
	/* Operations of a loop's body that is pipelined: bounds the time of compiling. Rings of so many loads would not
	 * fit in shared memory. */
	MAX_PIPELINED_OPS = 1 << 12,
	/* A loop that only sums tiles is unrolled until a thread loads so many registers in an iteration, at most so
	 * often: on an H100, 8 warps then sum columns in 37 instead of 54 µs. */
	UNROLL_LOADED_REGISTERS = 32,
	MAX_UNROLL_OF_SUM = 8,
	/* Registers of a thread that one hoisted load may hold, and all of them together. On an H200 a layer
	 * normalisation of 8192 columns with more took 94 µs in place of 72: fewer rows were on a multiprocessor at
	 * once. */
	MAX_HOISTED_REGISTERS = 4,
	MAX_HOISTED_REGISTERS_IN_ALL = 8,
	/* The same for loads of the prologues of pipelined loops, for which all iterations wait. */
	MAX_PROLOGUE_REGISTERS = 16,
	MAX_PROLOGUE_REGISTERS_IN_ALL = 32,
	/* Registers of a load that moves above a whole loop, and holds them while the loop runs. */
	MAX_REGISTERS_OVER_LOOP = 2,
	/* Beside what a loop carries while tiles loaded in unaligned runs keep the form of the loads, which takes more
	 * registers than words: addresses and the iteration's own values. If they do not fit, the loads' results become
	 * words in the same iteration. Not measured more closely. */
	REGISTERS_BESIDE_CARRIED = 51,
	/* Partial results of a reduction, in words, that a part of the threads stores by predicated instructions. More
	 * are stored in a branch, whose basic blocks cost LLVM much more time. */
	MAX_PREDICATED_STORES = 4,
	/* From 2^4 warps on, the lanes of a warp share the work of combining the warps' partial results; of fewer,
	 * every thread loads and combines all. */
	LOG2_WARPS_COMBINED_BY_LANES = 4,
	/* Dots on multiply-adds: steps of k, and products of a thread, in one turn of the loop over k. ptxas overlaps
	 * loads and products inside a turn only: turns of four steps take 9 % longer. */
	MAX_FMA_STEPS = 16,
	MAX_FMA_PRODUCTS = 1024,
	/* Bytes of contiguous, unaligned rows from which on loads use .L2::256B: on an H100, cross entropy of rows of
	 * 50,257 floats takes 282.7 in place of 297.7 µs; tiles of short rows, as products have, would lose 2 to 7
	 * %. */
	MIN_LONG_ROW_BYTES = 1024,

	/* Placement. Registers are 32 bits of a thread. */

	/* Beside a tile that a block of a cluster holds: addresses, predicates, intermediate results. */
	REGISTERS_BESIDE_ROW = 24,
	/* Beside a loop's operands and carried values: addresses, what is loaded, results of dots. Operands that do not
	 * fit stay in shared memory. */
	REGISTERS_BESIDE_OPERANDS = 96,
	/* Beside a late dot's sum and operand and the result of the next iteration's first dot, which are held at once:
	 * the rest of the loop. Not measured more closely. */
	REGISTERS_BESIDE_LATE = 79,
	/* Elements along k of a loop's first dot, for others to run beside what works on results. On an H100 the
	 * gradients of keys gain 10 % where these are 128, 4 to 5 % where they are 256, and lose 2 to 15 % where they
	 * are 64. */
	MIN_K_BESIDE = 128,
	/* Rows of programs at a time (transform/program_order.c). On an H100 experts with 16,384 tokens take 463 to
	 * 470 us by 4, 8, 16 and 32 of 128 x 256 (582 by all), 540, 535, 522 and 522 of 128 x 128 (582 and 896). */
	ROWS_IN_GROUP = 16,
	/* Elements of a load in each thread, such as scales or numbers of pages, for which there are registers beside
	 * what is copied to shared memory. */
	MAX_FEW_ELEMENTS = 8,
	/* Loads of a loop without dots are issued an iteration ahead if they take so many registers. On an H100 sums
	 * over rows gain 2 to 10 % (a few configurations a factor of two); with less they lose up to 5 %, and loops
	 * with exponentials up to 8 %. A recurrence would wait for memory in each iteration: by its loads ahead the
	 * delta rule went from 0.94 to 1.57 of Triton's speed. */
	MIN_SUM_REGISTERS = 8,
	MAX_SUM_REGISTERS = 64,
	MAX_RECURRENCE_REGISTERS = 32,
	/* Registers of what a tile loads while the one before it ends, its sums being there still; and of the sums of
	 * an attention whose blocks run several programs. On an H200 one of 128 dimensions gains 4 to 10 % with 1024
	 * keys and 1 to 3 % with 16,384 (the queries' 32 registers 3 %); one of 256, with 128 of sums, gains 4 % with
	 * 1024 keys and loses 1 to 2 % with more. */
	MAX_TILE_REGISTERS = 32,
	MAX_SUMS_OF_TILES = 64,
	/* Elements of a thread that are loaded again in another layout rather than passed on through shared memory, if
	 * so many threads hold each: what is in the cache comes sooner than a barrier. */
	MAX_LOADED_AGAIN = 4,
	MIN_COPIES_LOADED_AGAIN = 4,
	/* Operations on these that are repeated too: the address and the mask of a gather's rows are 2 to 5. On an H100
	 * experts gain 3 to 5 % by it (design/kernels.md). */
	MAX_COMPUTED_AGAIN = 8,
	/* Operations of a branch that a loop of products executes in every iteration, so that its loads can be issued
	 * ahead: a tile's place in groups of rows and two tiles of indices are 26. On an H100 a product of 4096^3
	 * runs at 0.62 of cuBLAS's speed with them; without, none of its loads would be on their way. */
	MAX_SELECTED_OPERATIONS = 64,
	/* A producer's warpgroup, since registers are handed on by whole ones, and the warps that work beside it: more
	 * of them would get too few registers. Of 65,536 for 8 warps and it, each thread of theirs gets 232 and of its
	 * 40, by steps of 8; beside two warpgroups it would have a third of all otherwise. */
	PRODUCER_WARPS = 4,
	MAX_WARPS_BESIDE_PRODUCER = 8,
	PRODUCER_REGISTERS = 40,
	CONSUMER_REGISTERS = 232,
	/* Bytes of shared memory that a pipelined loop leaves for mbarriers and small scratch. */
	SHARED_BESIDE_MULTIBUFFER = 1024,
	/* Sums of one dot in a thread that are compiled at all: of more, which spill anyway, LLVM takes minutes. */
	MAX_SUMS = 512,
	/* Groups of wgmma whose operand is fetched into registers: while the products of one run, those of another are
	 * filled. With two groups, where the other operand is turned meanwhile, 4096^3 of tf32 takes 531 us on an H200,
	 * and 478 with four. Where it is computed there, a group for each step of k takes as long on an H100, and ptxas
	 * twice as long. */
	FETCHED_GROUPS = 4,
	COMPUTED_GROUPS = 2,
};

#endif
