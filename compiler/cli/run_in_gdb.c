/* `tlc run --gdb`: runs the command in gdb. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"

int run_in_gdb(const struct command *c)
{
	if (c->device && strcmp(c->device, "cpu") != 0 && strcmp(c->device, "cpu:check") != 0)
		return complain(EXIT_USER, "--gdb is for the devices cpu and cpu:check, and this is %s", c->device);
	if (!c->kernel)
		return complain(EXIT_USER, "--gdb stops in a kernel: -k KERNEL says in which one");
	struct arena a = {0};
	const char *begin[] = {
		"gdb", "-q",  "-iex",  "set debuginfod enabled off", "-ex", "set breakpoint pending on", "-ex", NULL,
		"-ex", "run", "--args"};
	const char **args = arena_array(&a, const char *, ARRAY_LEN(begin) + (u32)c->argc + 3);
	u32 n = 0;
	for (; n < ARRAY_LEN(begin); n++)
		args[n] = begin[n] ? begin[n] : arena_printf(&a, "break %s:%s", base_name(c->file), c->kernel);
	for (int i = 0; i < c->argc; i++)
		if (strcmp(c->argv[i], "--gdb") != 0)
			args[n++] = c->argv[i];
	if (!c->device) {
		args[n++] = "--device";
		args[n++] = "cpu";
	}
	setenv("TL_GDB", "1", 1);
	execvp("gdb", (char **)args);
	complain(EXIT_ENVIRONMENT, "gdb cannot be started: %s", strerror(errno));
	arena_free(&a);
	return EXIT_ENVIRONMENT;
}
