/* A kernel on a device with its arguments: `tlc run` launches it, and `tlc bench` times several of them. */
#ifndef TLC_CLI_CMD_RUN_H
#define TLC_CLI_CMD_RUN_H

#include "cli/value.h"

struct session {
	struct command *c;
	struct unit *unit;       /* has the kernel and its parameters */
	const struct func *func; /* NULL: IR text */
	const char *kernel_name;
	struct argument *args; /* one for each parameter */
	u32 nargs;
	tl_context *ctx;
	tl_device_info device;
	tl_module *module;
	tl_kernel *kernel;
	tl_tuner *tuner; /* or NULL */
	tl_config config;
	tl_arg *launched; /* the arguments of the launch, in the order of the parameters */
	size_t nlaunched;
	const struct expr *grid[3];
	bool grid_is_wrong; /* and the error has been reported */
	bool shows_notes;   /* for notes of the last diagnostic */
	bool noted;         /* the note about timing has been shown */
	int code;           /* exit code if the arguments cannot be read */
};

/* Opens the kernel and the device of the command, and tunes the kernel if it has configurations to choose from. Returns
 * an exit code, after a message if it is not EXIT_DONE. The caller closes the session in any case. */
int run_open(struct session *s, struct command *c);
/* Launches the kernel, and waits for its end. */
int run_launch(struct session *s);
/* Reads back the tensors. */
int run_read(struct session *s);
/* Writes the milliseconds of n launches to `ms`, after `warmup` launches that are not timed. */
int run_time(struct session *s, int warmup, int n, double *ms);
/* Evaluates an option's expression for the arguments of the launch. False after a message. */
bool run_evaluate(struct session *s, const char *option, const char *text, double *out);
void run_close(struct session *s);

/* --check as a number, 0 without it; false after a message. */
bool read_tolerance(const struct command *c, double *out);

#endif
