/* Declarations shared by the files of `tlc bench`. */
#ifndef TLC_CLI_CMD_BENCH_H
#define TLC_CLI_CMD_BENCH_H

#include "cli/cmd_run.h"

/* --- ranges: sweep.c ------------------------------------------------------------------------------------- */

/* "n=1024..32768:x2", of an argument or of -D: the name, the first and last value, and the step. */
struct sweep {
	const char *name;
	size_t len; /* of the name; 0: there is no range */
	i64 first, last, step;
	bool multiplies;
};

/* Finds the command's range, at most one; false after a message. */
bool find_sweep(struct command *c, struct sweep *out);
bool next_value(const struct sweep *s, i64 *v);
/* The command for one value of the range, with a separate arena. */
struct command command_for(struct command *c, const struct sweep *s, i64 v);

/* --- rates of the device: device_rates.c ------------------------------------------------------------------------- */

/* The device's rates, measured in the same run. The copy is larger than the device's cache; its reads and writes both
 * count. The dots use tiles that stay in shared memory. */
struct rates {
	const char *device; /* its spec */
	double copy;        /* GB/s; 0: not measured */
	double dots;        /* TFLOPS; 0: not measured */
	tl_dtype dtype;     /* of the dots' operands */
};

/* Measures the rates that --bytes and --flops are compared with, on the session's device. A failure is reported, and
 * the rate stays 0. */
void measure_rates(struct command *c, const struct session *s, struct rates *out);

/* --- contenders: cmd_bench.c --------------------------------------------------------------------------------- */

/* A kernel or configuration that is timed, for one value of the range. */
struct contender {
	struct command command;
	struct session session;
	const char *label; /* the compared values: "add num_warps=8"; "" without comparison */
	int warmup, launches;
	double *each;         /* milliseconds of each launch */
	double ms, low, high; /* the median, and the quantiles of 20 and 80 % */
	double gbps, tflops;  /* 0: not requested, or unknown */
	double speedup;       /* time of the first contender / time of this one; 0: unknown */
	const struct rates *rates;
};

/* --- output: bench_report.c ---------------------------------------------------------------------------------- */

/* Lines of the plot: for each contender a point for each value. */
struct points {
	VEC(double) x;
	VEC(double) y; /* for each x one for each contender */
};

bool is_simulated(const struct contender *x);
/* Shows all contenders for a value: a sentence, rows of a table or JSON. `first`: nothing has been shown yet. */
void show_measured(const struct command *c, const struct sweep *s, i64 v, const struct contender *at, u32 n,
		   bool first);
/* Checks that there is a range to plot, and a known format. False after a message. */
bool can_plot(const struct command *c, const struct sweep *s);
void add_points(struct command *c, struct points *p, i64 v, const struct contender *at, u32 n);
/* Returns an exit code. `labels`: of the n lines. */
int plot(const struct command *c, const struct sweep *s, const struct points *p, const char *const *labels, u32 n);
/* Shows the progress, if standard error is a terminal. `total` 0: removes it. */
void show_progress(u32 done, u32 total);

#endif
