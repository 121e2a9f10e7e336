#include <math.h>

#include "gpu/estimate/estimate.h"
#include "gpu/pipeline/resource_use.h"

/* Bytes from DRAM for a multiprocessor in a cycle, if all of them load. */
static const double dram_bytes = 18;
/* The tensor cores' part of their highest rate, which their power limits. */
static const double tensor_share = 0.75;
/* Cycles of the GPU to start a block of at most warps_of_start warps, alone or in a cluster. */
static const double start_cycles = 1.03, cluster_start_cycles = 10.3, warps_of_start = 7;
/* If the durations of programs differ by this factor, a persistent kernel distributes them evenly over its blocks. */
static const double uneven = 2;
static const double launch_cycles = 3500; /* of an empty kernel */
static const double cycles_per_us = 1700;
/* Registers of a thread without data of tiles: fewer than REGISTERS_BESIDE_DATA, with which no kernel spills. */
enum { OTHER_REGISTERS = 20 };
enum { MOST_WARPS = 64, MOST_BLOCKS = 32, GUESSED_MULTIPROCESSORS = 132 };

static int registers_of_thread(const struct pass_state *s)
{
	struct arena scratch = {0};
	i64 n = count_live_registers(s, &scratch).most + OTHER_REGISTERS;
	arena_free(&scratch);
	return (int)MIN(MAX(n, 32), s->target->thread_registers);
}

static int resident_blocks(const struct pass_state *s, int registers)
{
	const struct kernel *k = s->k;
	int warps = warps_of_block(k), by_warps = MOST_WARPS / warps;
	int by_registers = s->target->registers / (32 * warps * ((registers + 7) / 8 * 8));
	int n = MIN(MIN(by_warps, by_registers), MOST_BLOCKS);
	return MAX(k->shared_bytes ? MIN(n, blocks_for_memory(s->target, k->shared_bytes)) : n, 1);
}

static double root_of_squares(double x, double y)
{
	return sqrt(x * x + y * y); /* the symbol hypot needs glibc 2.35 */
}

/* The time of two activities that overlap: hardly more than the longer one, unless they take equally long. */
static double overlap(double x, double y)
{
	return sqrt(root_of_squares(x * x, y * y));
}

struct launch_estimate estimate_launch(struct pass_state *s, const struct launch_shape *launch)
{
	struct launch_shape l = *launch;
	int multiprocessors = s->target->multiprocessors > 0 ? s->target->multiprocessors : GUESSED_MULTIPROCESSORS;
	double programs = (double)l.grid[0] * l.grid[1] * l.grid[2];
	if (s->k->cuda.persistent)
		l.blocks = (u32)fmin(programs, multiprocessors);
	struct launch_estimate e = {.bill = average_bill(s, &l),
				    .registers = registers_of_thread(s),
				    .shared_bytes = s->k->shared_bytes,
				    .threads = 32 * warps_of_block(s->k)};
	e.resident = resident_blocks(s, e.registers);
	e.blocks = l.blocks ? l.blocks : programs * s->k->cuda.cluster;
	const struct bill *b = &e.bill;
	double computing = root_of_squares(b->tensor / tensor_share, fmax(b->issue, b->special));
	double busy = fmax(computing, fmax(b->shared, b->l2));
	double most = ceil(e.blocks / multiprocessors); /* blocks of the busiest multiprocessor */
	double waves = floor(most / e.resident), rest = most - waves * e.resident;
	double cycles = waves * fmax(b->alone, e.resident * busy) + (rest > 0 ? fmax(b->alone, rest * busy) : 0);
	if (!l.blocks) /* at least the time of the longest block */
		cycles = fmax(cycles, fmax(b->alone, busy) * b->longest / fmax(b->alone, 1));
	else if (b->longest < uneven * b->shortest) /* that of a block with more programs than the average */
		cycles *= ceil(programs / l.blocks) / (programs / l.blocks);
	double bytes = l.bytes ? fmin(e.blocks * b->bytes, (double)l.bytes) : e.blocks * b->bytes;
	double starts = e.blocks * fmax(1, warps_of_block(s->k) / warps_of_start) *
			(s->k->cuda.cluster > 1 ? cluster_start_cycles : start_cycles);
	e.us = (launch_cycles + overlap(overlap(cycles, starts), bytes / multiprocessors / dram_bytes)) / cycles_per_us;
	return e;
}
