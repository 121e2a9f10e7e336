#include "cli/crash.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"

#define SECOND "TLC_AFTER_FAULT"

/* Data of the signal handler, which may call only async-signal-safe functions. */
static char **again, **environment; /* the command on the interpreter, or NULL */

static void say(const char *text)
{
	if (write(STDERR_FILENO, text, strlen(text)) < 0)
		_exit(EXIT_ENVIRONMENT);
}

static void on_fault(int signal)
{
	(void)signal;
	say("tlc: error: the kernel has accessed memory that is none of its arguments', and the device cpu checks "
	    "nothing\n");
	if (again) {
		say("tlc: note: once more with --device interp, which says where:\n");
		execve("/proc/self/exe", again, environment);
	}
	say("      = hint: tlc run with --device interp says where\n");
	_exit(EXIT_USER);
}

/* The same arguments with another device. */
static char **with_interpreter(struct command *c)
{
	char **argv = arena_array(&c->arena, char *, (size_t)c->argc + 3);
	int n = 0;
	for (int i = 0; i < c->argc; i++)
		if (!strcmp(c->argv[i], "--device"))
			i++;
		else if (strncmp(c->argv[i], "--device=", strlen("--device=")) != 0)
			argv[n++] = c->argv[i];
	argv[n++] = "--device";
	argv[n++] = "interp";
	argv[n] = NULL;
	return argv;
}

static char **with_mark(struct command *c)
{
	size_t n = 0;
	while (environ[n])
		n++;
	char **all = arena_array(&c->arena, char *, n + 2);
	memcpy(all, environ, n * sizeof *all);
	all[n] = SECOND "=1";
	all[n + 1] = NULL;
	return all;
}

void crash_watch(struct command *c)
{
	/* standard input cannot be read a second time */
	again = c->verb == VERB_RUN && strcmp(c->file, "-") != 0 ? with_interpreter(c) : NULL;
	environment = with_mark(c);
	const struct sigaction fault = {.sa_handler = on_fault, .sa_flags = SA_NODEFER};
	sigaction(SIGSEGV, &fault, NULL);
	sigaction(SIGBUS, &fault, NULL);
}

void crash_end_watch(void)
{
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
}

bool crash_is_second(void)
{
	return getenv(SECOND);
}
