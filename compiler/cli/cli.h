/* Declarations shared by the files of the command line. */
#ifndef TLC_CLI_CLI_H
#define TLC_CLI_CLI_H

#include "driver/compile.h"
#include "runtime/tl.h"

/* Exit codes. */
enum { EXIT_DONE = 0, EXIT_USER = 1, EXIT_ENVIRONMENT = 2, EXIT_BUG = 3 };

/* The program tlc, which calls this function alone: the library of the Python package has the function, too. */
TL_API int tlc_main(int argc, char **argv);

/* The command: `tlc FILE`, or the first word. */
enum verb {
	VERB_COMPILE = 1,
	VERB_RUN = 2,
	VERB_BENCH = 4,
	VERB_LIST = 8,
	VERB_SHOW = 16,
	VERB_CACHE = 32,
	VERB_BUILD = 64,
	VERB_TUNE = 128,
	VERB_SERVE = 256,
};

typedef VEC(const char *) text_list;

struct define {
	const char *name, *value;
};

/* The values of an option that `tlc bench` compares, as in --num-warps 4,8; a value of -D includes the name. */
struct compared {
	const char *option; /* NULL: FILE */
	text_list values;
};

struct command {
	struct arena arena;
	int argc; /* of main */
	char **argv;
	enum verb verb;
	const char *file, *kernel, *signature, *target, *emit, *output, *device, *grid, *bytes, *flops, *plot, *against;
	const char *prefix, *depfile; /* tlc build */
	text_list files_read; /* for the depfile */
	bool sim_report;
	tl_config config; /* max_ctas and attributes of launches */
	bool gdb;         /* tlc run: in a debugger */
	VEC(struct define) defines;
	text_list folders; /* -I */
	text_list signatures, targets; /* of each -s and --target */
	bool json, builtins, in_process;
	const char *check; /* the tolerance, as text */
	int rep_ms, warmup_ms, most;
	char *input; /* the contents of standard input, if it has been read */
	size_t input_len;
	VEC(struct compared) compared;
	bool compares_kernels;      /* the compared kernels may have different parameters */
	text_list left_out; /* names of arguments that this kernel lacks */
	text_list args; /* ARG=VALUE of `run` and `bench` */
	struct compile_options options;
};

/* The file's text, NUL-terminated; NULL after a message. */
char *read_file(struct arena *a, const char *path, size_t *len);
/* Prints "tlc: error: …" and returns `code`. */
int complain(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints "tlc: error: …" and returns false. */
bool refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Writes the file atomically: a file at `path` is replaced when the new file is complete. "-" is standard output.
 * Returns an exit code, after a message if it is not EXIT_DONE. */
int write_file(struct arena *a, const char *path, const char *data, size_t len);
/* Reads the value of --target; false after a message. */
bool read_target(const char *text, struct target *out);
/* Reads the argument of each parameter from -s, -D and the kernel's decorators; false after a message. */
bool read_kernel_arguments(struct command *c, struct unit *u, const struct func *f, struct arg_spec *args);
/* The kernel called `name`, or the only one of the file; NULL after a message. */
const struct func *pick_kernel(struct unit *u, const char *name);

/* True if the parameter is annotated as a compile-time value. */
bool is_constexpr(const struct param *p);
/* Checks the pass names of --print-after, --stop-after and --start-after, and options that IR text does not allow;
 * false after a message. */
bool check_request(const struct command *c, const struct unit *u);
/* Appends the text unless the list has it. */
void add_once(struct arena *a, text_list *list, const char *text);
bool list_has(const text_list *list, const char *text);
/* Prints the unit's errors, warnings and remarks to standard error. */
void show_diagnostics(const struct unit *u);
/* Runs `tlc run` in gdb, stopped in the kernel. Returns only after an error. */
int run_in_gdb(const struct command *c);
int command_compile(struct command *c);
int command_run(struct command *c);
int command_bench(struct command *c);
/* Prints the table of configurations. */
struct tuned_choice;
void show_tuning(struct arena *a, const char *kernel, const char *device, const struct tuned_choice *ch);
int command_list(struct command *c);
int command_show(struct command *c);
int command_cache(struct command *c);
int command_build(struct command *c);
/* True for helpers: functions that return a value, or that other functions call. They are not kernels. */
bool is_helper(const struct module *m, const struct func *f);

/* The command of a command line's first word. */
enum verb read_verb(const char *word);
/* Reads the words after the command; false after a message. */
bool read_options(struct command *c, int argc, char **argv);
/* Sets a compared option to one of its values; false after a message. */
bool choose_compared(struct command *c, const char *option, const char *value);
/* Runs the command after its options have been read. */
int run_command(struct command *c);
/* Print --help: of tlc, and of a command. */
void show_help(void);
void show_help_of(const char *word);

#endif
