/* Thresholds of the passes and of code generation, each with the reason for its value. Limits of a device are in
 * support/target.h. */
#ifndef TLC_SUPPORT_THRESHOLDS_H
#define TLC_SUPPORT_THRESHOLDS_H

enum tuning {
	/* Operations that may be duplicated, of a loop (index-set splitting) or of the rest of a block (versioning).
	 * Bounds the growth of code. Duplicated code in the examples, tests and benchmarks has 3 to 67 operations. The
	 * limit is ten times that, for unrolled loops. */
	MAX_DUPLICATED_OPS = 600,
	/* Operations of a loop body after unrolling. Bounds the compile time. A loop is not unrolled if its unroll
	 * factor times its operations is greater, and a remark reports it. */
	MAX_UNROLLED_OPS = 1 << 15,
	/* Operations of the body of a pipelined loop. Bounds the compile time. The multi-buffers of a longer loop would
	 * not fit in shared memory. */
	MAX_PIPELINED_OPS = 1 << 12,
	/* Operations that a recursive search through index arithmetic visits. Bounds its stack, to about 1 MB. Indices
	 * in the examples, tests and benchmarks have fewer than 100. */
	MAX_INDEX_OPERATIONS = 1 << 10,
	/* A loop that only sums tiles is unrolled until each thread loads UNROLL_LOADED_REGISTERS registers in an
	 * iteration, by a factor of at most MAX_UNROLL_OF_SUM. On an H100, 8 warps then sum columns in 37 instead of 54
	 * µs. */
	UNROLL_LOADED_REGISTERS = 32,
	MAX_UNROLL_OF_SUM = 8,
	/* Strip-mining (transform/strip_mine.c). MAX_ELEMENTS, MAX_TILE_INSTRUCTIONS: elements of a thread in a tile,
	 * and in all tiles of connected operations, above which the operations become loops over parts of the tiles. A
	 * part has from MIN_STRIP_ELEMENTS to MAX_STRIP_ELEMENTS elements a thread, the most that keep an iteration
	 * below MAX_STRIP_INSTRUCTIONS and its loads and accumulators in MAX_STRIP_REGISTERS. A loop repeats loads of
	 * an earlier loop only for tiles of MIN_ELEMENTS_LOADED_AGAIN: the registers hold most of a smaller tile. ptxas
	 * takes 13 s for a mask of 2,048 elements a thread without these loops, and 0.04 s with them. */
	MAX_ELEMENTS = 128,
	MAX_TILE_INSTRUCTIONS = 8192,
	MIN_STRIP_ELEMENTS = 16,
	MAX_STRIP_ELEMENTS = 64,
	MAX_STRIP_INSTRUCTIONS = 2048,
	MAX_STRIP_REGISTERS = 64,
	MIN_ELEMENTS_LOADED_AGAIN = 512,
	/* Registers of a thread other than the values that a loop carries: addresses and the values of the iteration.
	 * Tiles that are carried as unaligned vector loads take more registers than packed words. If they do not fit,
	 * the results are packed into words in the iteration that loads them. Not tuned further. */
	REGISTERS_BESIDE_CARRIED = 51,
	/* Words of partial results of a reduction that some of the threads store by predicated instructions. More words
	 * are stored in a branch: its basic blocks take LLVM much more compile time. */
	MAX_PREDICATED_STORES = 4,
	/* With 2^4 or more partial results of warps, the lanes of a warp share the work of combining them. With fewer,
	 * every thread loads and combines all. */
	LOG2_WARPS_COMBINED_BY_LANES = 4,
	/* Dots by multiply-adds: steps of k, and multiplications of a thread, in one iteration of the loop over k.
	 * ptxas overlaps loads and multiplications within an iteration only: with four steps in each iteration, dots
	 * take 9 % longer. */
	MAX_FMA_STEPS = 16,
	MAX_FMA_PRODUCTS = 1024,
	/* Contiguous bytes of unaligned rows from which loads use .L2::256B. On an H100, cross entropy of rows of
	 * 50,257 floats takes 282.7 instead of 297.7 µs. Tiles of short rows, as in a GEMM, would lose 2 to 7 %. */
	MIN_LONG_ROW_BYTES = 1024,

	/* GPU layouts and pipelining. Registers are 32-bit registers of a thread. */

	/* Registers of a thread that hold no data of tiles: addresses, predicates, intermediate results. */
	REGISTERS_BESIDE_DATA = 40,
	/* An operand of mma.sync with at least so many registers waits in shared memory for its dot. Conversions of
	 * smaller operands are better done early: on an H200, the loop of the backward pass of a delta rule takes 17 %
	 * longer if a dot loads its 16 registers right before. */
	BUFFERED_OPERAND_REGISTERS = 64,
	/* Loads move up until so many registers hold data, if the kernel needs fewer elsewhere, and to at most
	 * MOST_EARLY_LOAD_REGISTERS if it needs more. On an H200, with no upper limit the kernels of
	 * flash-linear-attention spill more, and the slowest loses 20 %. */
	EARLY_LOAD_REGISTERS = 64,
	MOST_EARLY_LOAD_REGISTERS = 128,

	/* Registers other than the tile that a block of a cluster holds: addresses, predicates, intermediate
	 * results. */
	REGISTERS_BESIDE_ROW = 24,
	/* Registers other than the accumulator and operand of a dot with deferred wait and the result of the next
	 * iteration's first dot, which are live at once: the rest of the loop. Not tuned further. */
	REGISTERS_BESIDE_LATE = 79,
	/* Minimum K of a loop's first dot for overlapped asynchronous dots: dots that run while the results of others
	 * are processed. On an H100, the gradients of attention keys gain 10 % with K = 128 and 4 to 5 % with 256, and
	 * lose 2 to 15 % with 64. */
	MIN_K_BESIDE = 128,
	/* Rows of programs in a group (transform/program_order.c). On an H100, a mixture of experts with 16,384 tokens
	 * takes 463 to 470 µs with tiles of 128 x 256 in groups of 4, 8, 16 and 32 rows (582 without groups). With
	 * tiles of 128 x 128 it takes 540, 535, 522 and 522 µs (582 and 896 without). */
	ROWS_IN_GROUP = 16,
	/* Elements of a load in each thread, such as scales or page numbers, that are prefetched into registers while
	 * other loads are copied to shared memory. */
	MAX_FEW_ELEMENTS = 8,
	/* Loads of a loop without dots are issued one iteration ahead if they take from MIN_SUM_REGISTERS to
	 * MAX_SUM_REGISTERS registers. On an H100, sums over rows gain 2 to 10 % (a few configurations a factor of
	 * two). With fewer registers they lose up to 5 %, and loops with exponentials up to 8 %. Loops that would wait
	 * for memory in each iteration (loads_are_awaited) load up to MAX_AWAITED_REGISTERS ahead. The delta rule, a
	 * recurrence, went from 0.94 to 1.57 of Triton's speed. On an H200, 36 launches of loops with reductions take
	 * 0.91 times as long in the median, 0.65 to 1.23 times: gradients of layer norms gain 20 to 55 %. */
	MIN_SUM_REGISTERS = 8,
	MAX_SUM_REGISTERS = 64,
	MAX_AWAITED_REGISTERS = 32,
	/* A kernel gets more registers for its loads ahead if a loop loads at least MIN_LOADED_AHEAD registers in an
	 * iteration. merge_16x16_to_64x64_inverse_kernel, which loads 5, would lose 9 to 15 % by fewer resident
	 * warps. */
	MIN_LOADED_AHEAD = 8,
	/* Registers of a thread for addresses and operands, in addition to those that a loop carries, in the model of
	 * resident blocks. */
	WORKING_REGISTERS = 40,
	/* Resident warps of a multiprocessor that hide each other's latency: four for each scheduler. More of them are
	 * not worth a barrier in each iteration. */
	ENOUGH_WARPS = 16,
	/* Resident blocks that hide each other's copies if each block has one buffer. On an H200, three launches gain
	 * 18 to 36 %, four gain 2 to 9 %, and four lose 1 to 6 %. */
	ENOUGH_BLOCKS = 4,
	/* MAX_TILE_REGISTERS: registers of the loads of the next tile that are issued before the current tile ends,
	 * while its accumulators are live. MAX_CARRIED_OVER_TILES: registers that a loop of dependent dots carries in a
	 * persistent kernel. On an H200, attention with 128 dimensions (68 registers) gains 4 to 10 % with 1024 keys
	 * and 1 to 3 % with 16,384 (the 32 registers of the queries account for 3 %). Attention with 256 dimensions
	 * (132 registers) gains 4 % with 1024 keys and loses 1 to 2 % with more. */
	MAX_TILE_REGISTERS = 32,
	MAX_CARRIED_OVER_TILES = 80,
	/* Elements of a thread that are loaded again in another layout instead of being converted through shared
	 * memory, if at least MIN_COPIES_LOADED_AGAIN threads hold each: a load from the cache takes less time than a
	 * barrier. */
	MAX_LOADED_AGAIN = 4,
	MIN_COPIES_LOADED_AGAIN = 4,
	/* Operations on reloaded elements that are repeated too. The address and the mask of a gather's rows take 2 to
	 * 5. On an H100, a mixture of experts gains 3 to 5 % (docs/internals/kernels.md). */
	MAX_COMPUTED_AGAIN = 8,
	/* Operations of a branch that a loop of dots executes in every iteration, so that its loads can be issued
	 * ahead. The position of a tile in groups of rows, and two index tiles, take 26. On an H100, a GEMM of 4096^3
	 * reaches 0.62 of cuBLAS's speed with them. Otherwise its loads would not be issued ahead. */
	MAX_SELECTED_OPERATIONS = 64,
	/* Operations of index arithmetic that are repeated in each layout that needs the result. Random numbers by
	 * Philox take 90. */
	MAX_REMATERIALIZED = 64,
	/* PRODUCER_WARPS: a producer takes a whole warpgroup, because setmaxnreg works on warpgroups.
	 * MAX_WARPS_BESIDE_PRODUCER: with more consumer warps, each would get too few registers. Of the 65,536
	 * registers for 8 consumer warps and the producer, each consumer thread gets 232 and each producer thread 40,
	 * in steps of 8. Without this, the producer would hold a third of all registers next to two warpgroups. */
	PRODUCER_WARPS = 4,
	MAX_WARPS_BESIDE_PRODUCER = 8,
	PRODUCER_REGISTERS = 40,
	CONSUMER_REGISTERS = 232,
	/* Bytes of shared memory that a pipelined loop leaves for mbarriers and small scratch buffers. */
	SHARED_BESIDE_MULTIBUFFER = 1024,
	/* Accumulator registers of a dot in each thread above which the kernel is refused: such accumulators spill, and
	 * LLVM takes minutes. */
	MAX_SUMS = 512,
	/* Groups of wgmmas with an operand from registers: the registers of one group are filled while the wgmmas of
	 * another run. LOADED_A_GROUPS: the operand is loaded from shared memory. With the other operand transposed
	 * meanwhile, a tf32 GEMM of 4096^3 takes 531 µs on an H200 with two groups and 478 with four.
	 * COMPUTED_A_GROUPS: the operand is computed in registers. A group for each step of k is as fast on an H100,
	 * and ptxas takes twice as long. */
	LOADED_A_GROUPS = 4,
	COMPUTED_A_GROUPS = 2,
};

#endif
