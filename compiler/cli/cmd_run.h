/* A kernel on a device with its arguments: `tlc run` launches it, `tlc bench` times several of them side by side. */
#ifndef TLC_CLI_CMD_RUN_H
#define TLC_CLI_CMD_RUN_H

#include "cli/value.h"

struct session {
	struct command *c;
	struct unit *unit;       /* to know the kernel and its parameters */
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
	bool grid_is_wrong; /* and that has been said */
	bool shows_notes;   /* of the last diagnostic */
	bool noted;         /* how it was timed */
	int code;           /* to end with, when the arguments cannot be read */
};

/* Opens what the command asks for, and tunes it where its kernel has configurations to choose from; then it can be
 * launched. Returns an exit code, after a message if that is not EXIT_DONE. The session is to be closed in any case. */
int run_open(struct session *s, struct command *c);
/* Launches it, and waits for the end. */
int run_launch(struct session *s);
/* Reads back its tensors. */
int run_read(struct session *s);
/* Milliseconds of each of n launches, after others that are not timed. */
int run_time(struct session *s, int warmup, int n, double *ms);
/* What the expression of an option is for the arguments of the launch. False after a message. */
bool run_evaluate(struct session *s, const char *option, const char *text, double *out);
void run_close(struct session *s);

/* --check as a number, 0 without it; false after a message. */
bool read_tolerance(const struct command *c, double *out);

#endif
