/* Shared by the files of `tlc bench`. */
#ifndef TLC_CLI_CMD_BENCH_H
#define TLC_CLI_CMD_BENCH_H

#include "cli/cmd_run.h"

/* --- ranges: sweep.c ------------------------------------------------------------------------------------- */

/* "n=1024..32768:x2", of an argument or of -D: the name, from, to, and how to go on. */
struct sweep {
	const char *name;
	size_t len; /* of the name; 0: there is none */
	i64 first, last, step;
	bool multiplies;
};

/* The command's range, of which there may be one; false after a message. */
bool find_sweep(struct command *c, struct sweep *out);
bool next_value(const struct sweep *s, i64 *v);
/* The command for one value of the range, with memory of its own. */
struct command command_for(struct command *c, const struct sweep *s, i64 v);

/* --- what the device can do: device_rates.c --------------------------------------------------------------------- */

/* Measured in the same run: a copy of more than its cache holds, reads and writes together, and products of tiles that
 * stay on the multiprocessors. */
struct rates {
	const char *device; /* its spec */
	double copy;        /* GB/s; 0: not measured */
	double dots;        /* TFLOPS */
	tl_dtype dtype;     /* of the products */
};

/* What of it --bytes and --flops are compared with, on the session's device. What fails is said, and stays 0. */
void measure_rates(struct command *c, const struct session *s, struct rates *out);

/* --- what is timed: cmd_bench.c ------------------------------------------------------------------------------ */

/* One of those that are compared, for one value of the range. */
struct contender {
	struct command command;
	struct session session;
	const char *label; /* what it differs in: "add num_warps=8"; "" where nothing is compared */
	int warmup, launches;
	double *each;         /* milliseconds of each launch */
	double ms, low, high; /* the median, and the quantiles of 20 and 80 % */
	double gbps, tflops;  /* 0: not asked for, or not known */
	double speedup;       /* how many times as fast as the first one; 0: not known */
	const struct rates *rates;
};

/* --- how it is shown: bench_report.c ----------------------------------------------------------------------- */

/* Lines of the plot: of each contender a point for each value. */
struct points {
	VEC(double) x;
	VEC(double) y; /* as many for each x as there are contenders */
};

bool is_simulated(const struct contender *x);
/* All contenders for a value: a sentence, rows of a table or JSON. `first`: nothing has been shown yet. */
void show_measured(const struct command *c, const struct sweep *s, i64 v, const struct contender *at, u32 n,
		   bool first);
/* Is there something to draw, and a format? False after a message. */
bool can_plot(const struct command *c, const struct sweep *s);
void add_points(struct command *c, struct points *p, i64 v, const struct contender *at, u32 n);
/* An exit code. `labels`: of the n lines. */
int plot(const struct command *c, const struct sweep *s, const struct points *p, const char *const *labels, u32 n);
/* Where standard error is a terminal: how far it is. `total` 0: it is taken away. */
void show_progress(u32 done, u32 total);

#endif
