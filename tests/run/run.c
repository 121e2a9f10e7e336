/* Cases, launches, devices, and the summary.
 *
 * One bad kernel must not hide what comes after it. A crash of the compiler, a launch that never ends and a fault on a
 * GPU (after which CUDA gives the process no further launch) fail their case; the program then starts itself again
 * with --resume, behind that case. */
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "suite.h"

enum { SECONDS_PER_CASE = 120 };

static struct {
	char **argv; /* for the next start */
	int argc;
	char resume[80];
	char message[400];
	bool armed; /* a case is running */
} self;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* --- starting again ------------------------------------------------------------------------------------------ */

/* Also called from a signal handler: nothing here allocates. */
static void start_again(void)
{
	self.argv[self.argc - 1] = self.resume;
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execv("/proc/self/exe", self.argv);
	_exit(2);
}

static void on_signal(int sig)
{
	static const char crashed[] = ": crashed\n", hung[] = ": no end in sight\n";
	if (!self.armed)
		_exit(2);
	const char *what = sig == SIGALRM ? hung : crashed;
	bool ok = write(STDOUT_FILENO, self.message, strlen(self.message)) >= 0 &&
		  write(STDOUT_FILENO, what, strlen(what)) >= 0;
	(void)ok;
	start_again();
}

static void catch_signals(void)
{
	static const int signals[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGALRM};
	static char stack[65536];
	sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
	for (int i = 0; i < COUNT(signals); i++) {
		struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_NODEFER};
		sigaction(signals[i], &a, NULL);
	}
}

static int seed_of(const struct suite *s)
{
	return s->seed + s->variation * s->schedules + s->schedule;
}

/* ": seed 2", if a case has several schedules. */
static const char *seed_name(const struct suite *s, char text[32])
{
	snprintf(text, 32, s->schedules > 1 ? ": seed %d" : "", seed_of(s));
	return text;
}

static void arm(struct suite *s)
{
	char seed[32];
	snprintf(self.message, sizeof self.message, "FAIL  %s %s%s%s%s", s->device, s->name, seed_name(s, seed),
		 *s->kernel ? ": kernel " : "", s->kernel);
	snprintf(self.resume, sizeof self.resume, "--resume=%s,%d,%d,%d,%d,%d", s->device, s->index, s->passed,
		 s->nfailed + 1, s->nskipped, s->seed);
	self.armed = true;
}

/* --- cases --------------------------------------------------------------------------------------------------- */

bool on_device(const struct suite *s, const char *kind)
{
	return !strcmp(strcmp(s->device, "cpu:check") ? s->device : "cpu", kind);
}
tl_context *context(const struct suite *s) { return s->ctx; }

static uint64_t hash(const char *text)
{
	uint64_t h = 0xCBF29CE484222325;
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001B3;
	return h;
}

void vary_schedules(struct suite *s, int variation)
{
	s->variation = variation;
}

bool enter_schedule(struct suite *s, int n)
{
	char text[16];
	if (n == s->schedules || s->failed || s->skipped)
		return false;
	s->schedule = n;
	snprintf(text, sizeof text, "%d", seed_of(s));
	setenv("TL_SIM_SEED", text, 1);
	return arrays_upload(s);
}

bool case_begin(struct suite *s, const char *file, const char *format, ...)
{
	int n = snprintf(s->name, sizeof s->name, "%s/", s->theme);
	va_list ap;
	va_start(ap, format);
	vsnprintf(s->name + n, sizeof s->name - (size_t)n, format, ap);
	va_end(ap);
	if (s->pairs >= 0 && !pairs_take(s))
		return false;
	int index = s->index++;
	if (index < s->resume || (s->filter && !strstr(s->name, s->filter)) || index % s->shards != s->shard)
		return false;
	snprintf(s->file, sizeof s->file, "%s", file ? file : "");
	s->kernel[0] = 0;
	s->failed = s->skipped = s->launched = false;
	s->schedule = 0;
	s->start = now();
	random_seed(hash(s->name));
	arm(s);
	alarm(SECONDS_PER_CASE);
	return true;
}

void case_fail(struct suite *s, const char *format, ...)
{
	if (s->failed)
		return;
	s->failed = true;
	char seed[32];
	printf("FAIL  %s %s%s: ", s->device, s->name, seed_name(s, seed));
	if (*s->kernel)
		printf("kernel %s: ", s->kernel);
	va_list ap;
	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
}

void case_skip(struct suite *s, const char *why)
{
	s->skipped = true;
	printf("skip  %s %s: %s\n", s->device, s->name, why);
}

void case_end(struct suite *s)
{
	if (!s->skipped && !s->failed && !s->launched)
		case_fail(s, "nothing was launched");
	if (!s->skipped && !s->failed)
		arrays_check(s);
	alarm(0);
	self.armed = false;
	s->nskipped += s->skipped && !s->failed;
	s->nfailed += s->failed;
	s->passed += s->skipped || s->failed ? 0 : s->schedules;
	if (s->verbose && !s->skipped)
		printf("%s  %s %s (%.0f ms)\n", s->failed ? "fail" : "ok  ", s->device, s->name,
		       (now() - s->start) * 1e3);
	arrays_free(s);
	if (s->lost) { /* self.resume counts this case as failed, which it is */
		fflush(stdout);
		start_again();
	}
}

/* --- launches ------------------------------------------------------------------------------------------------ */

static char *read_text(const char *path)
{
	FILE *f = fopen(path, "rb");
	char *text = calloc(1, 1 << 20);
	if (f && text && fread(text, 1, (1 << 20) - 1, f) == 0)
		text[0] = 0;
	if (f)
		fclose(f);
	return text;
}

static struct module *find_module(struct suite *s, const char *path)
{
	for (struct module *m = s->modules; m; m = m->next)
		if (!strcmp(m->file, s->file))
			return m;
	struct module *m = calloc(1, sizeof *m);
	if (!m || tl_module_load(s->ctx, path, &m->module)) {
		case_fail(s, "%s", tl_error(s->ctx));
		free(m);
		return NULL;
	}
	snprintf(m->file, sizeof m->file, "%s", s->file);
	m->text = read_text(path);
	m->next = s->modules;
	return s->modules = m;
}

static bool seen_before(struct suite *s, const char *line)
{
	uint64_t h = hash(line);
	for (int i = 0; i < s->nseen; i++)
		if (s->seen[i] == h)
			return true;
	s->seen = realloc(s->seen, (size_t)(s->nseen + 1) * sizeof *s->seen);
	if (!s->seen)
		exit(2);
	s->seen[s->nseen++] = h;
	return false;
}

/* The command line for a launch, to be freed. */
static char *command_of(const char *path, const char *text, const char *kernel, const tl_config *cfg,
			const tl_arg *args, size_t nargs)
{
	char *line = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&line, &len);
	write_command(f, path, text, kernel, cfg, args, nargs);
	fclose(f);
	return line;
}

/* One line of the file `commands` for each different variant. */
static void note_command(struct suite *s, const char *path, const char *text, const char *kernel, const tl_config *cfg,
			 const tl_arg *args, size_t nargs)
{
	char *line = command_of(path, text, kernel, cfg, args, nargs);
	if (!seen_before(s, line))
		fputs(line, s->commands);
	free(line);
}

static void launch_from_text(struct suite *s, const char *path, const char *text, const char *kernel,
			     const tl_config *cfg, const tl_arg *args, size_t nargs)
{
	bool constant[64];
	char *line = command_of(path, text, kernel, cfg, args, nargs);
	constant_parameters(text, kernel, args, constant, nargs);
	text_after(s, hash(line), kernel, cfg, args, constant, nargs);
	free(line);
}

/* Each different call of a built-in function that the kernel has, a line. */
static void note_calls(struct suite *s, tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs)
{
	char *text, *line;
	if (tl_kernel_dump(k, cfg, args, nargs, "calls", &text))
		return;
	for (char *rest = text; (line = strsep(&rest, "\n"));)
		if (*line && !seen_before(s, line))
			fprintf(s->calls, "%s\n", line);
	tl_free(text);
}

/* The launch and what it gave; TL_OK also means that it has finished. */
static tl_status try_launch(struct suite *s, tl_module *m, const char *kernel, const tl_config *cfg, const tl_arg *args,
			    size_t nargs)
{
	tl_kernel *k;
	tl_status status = tl_module_kernel(m, kernel, &k);
	snprintf(s->kernel, sizeof s->kernel, "%s", kernel);
	arm(s);
	if (!status)
		status = tl_launch(k, cfg, args, nargs);
	if (!status)
		status = tl_synchronize(s->ctx);
	if (!status && s->calls && !s->schedule)
		note_calls(s, k, cfg, args, nargs);
	s->launched = true;
	s->lost = on_device(s, "cuda") && (status == TL_ERR_DRIVER || status == TL_ERR_KERNEL);
	return status;
}

static bool too_large(const struct suite *s, tl_status status)
{
	return status == TL_ERR_COMPILE && strstr(tl_error(s->ctx), " bytes of shared memory, and a block may use ");
}

/* Kernels are sized for the 227 KiB of sm_90: a GPU with less may refuse some, which says nothing about them. */
static bool small_gpu(const struct suite *s)
{
	tl_device_info d;
	return !tl_device(s->ctx, &d) && d.shared_bytes < 227 * 1024;
}

tl_status launch(struct suite *s, const char *kernel, const tl_config *cfg, const tl_arg *args, size_t nargs)
{
	char path[1024];
	snprintf(path, sizeof path, "%s/%s", s->root, s->file);
	struct module *m = find_module(s, path);
	tl_status status = TL_ERR_FILE;
	if (m && s->commands && !s->failed)
		note_command(s, path, m->text, kernel, cfg, args, nargs);
	for (int n = 0; m && enter_schedule(s, n); n++) {
		if (s->texts)
			text_before(s);
		status = try_launch(s, m->module, kernel, cfg, args, nargs);
		if (s->texts && !status)
			launch_from_text(s, path, m->text, kernel, cfg, args, nargs);
		char *text = strdup(tl_error(s->ctx));
		if (too_large(s, status) && small_gpu(s))
			case_skip(s, "it needs more shared memory than this GPU has");
		else if (status)
			case_fail(s, "%s: %s", tl_status_name(status), text);
		free(text);
	}
	return status;
}

void launch_fails(struct suite *s, tl_status wanted, const char *part, const char *kernel, const tl_config *cfg,
		  const tl_arg *args, size_t nargs)
{
	char path[1024];
	snprintf(path, sizeof path, "%s/%s", s->root, s->file);
	struct module *m = find_module(s, path);
	for (int n = 0; m && enter_schedule(s, n); n++) {
		tl_status status = try_launch(s, m->module, kernel, cfg, args, nargs);
		if (status != wanted || !strstr(tl_error(s->ctx), part))
			case_fail(s, "status '%s' (%s); want '%s' with '%s'", tl_status_name(status),
				  status ? tl_error(s->ctx) : "", tl_status_name(wanted), part);
	}
}

tl_status launch_text(struct suite *s, const char *text, const char *kernel, const tl_config *cfg, const tl_arg *args,
		      size_t nargs)
{
	tl_module *m;
	if (s->failed)
		return TL_ERR_FILE;
	if (s->commands) {
		char path[1024];
		snprintf(path, sizeof path, "%s/%016llx.tl", s->sources, (unsigned long long)hash(text));
		FILE *f = fopen(path, "w");
		if (f) {
			fputs(text, f);
			fclose(f);
			note_command(s, path, text, kernel, cfg, args, nargs);
		}
	}
	tl_status status = tl_module_load_source(s->ctx, "random.tl", text, strlen(text), &m);
	if (!status) {
		for (int n = 0; enter_schedule(s, n); n++) {
			status = try_launch(s, m, kernel, cfg, args, nargs);
			if (too_large(s, status))
				case_skip(s, "it needs more shared memory than this GPU has");
			else if (status)
				case_fail(s, "%s: %s", tl_status_name(status), tl_error(s->ctx));
		}
		if (!s->lost)
			tl_module_destroy(m);
	} else {
		case_fail(s, "%s: %s", tl_status_name(status), tl_error(s->ctx));
	}
	return status;
}

/* --- the program --------------------------------------------------------------------------------------------- */

static void unload_modules(struct suite *s)
{
	while (s->modules) {
		struct module *m = s->modules;
		s->modules = m->next;
		tl_module_destroy(m->module);
		free(m->text);
		free(m);
	}
}

static void run_device(struct suite *s, const struct theme *themes, int n)
{
	s->index = 0;
	s->schedules = strncmp(s->device, "sim", 3) ? 1 : s->simulated;
	for (int i = 0; i < n; i++) {
		s->theme = themes[i].name;
		s->variation = 0;
		themes[i].run(s);
		unload_modules(s); /* what was compiled would fill gigabytes */
	}
	pairs_free(s);
	tl_context_destroy(s->ctx);
}

/* --resume=DEVICE,INDEX,PASSED,FAILED,SKIPPED,SEED */
static bool read_resume(struct suite *s, const char *text, char *device)
{
	return sscanf(text, "%15[^,],%d,%d,%d,%d,%d", device, &s->resume, &s->passed, &s->nfailed, &s->nskipped,
		      &s->seed) == 6;
}

static void usage(void)
{
	printf("usage: test-run [-v] [--every-pass] [--pairs SEED] [--shard I/N] [--schedules N] [--sources DIR] "
	       "[--texts DIR] [--calls FILE] [FILTER]\n"
	       "  FILTER         only cases whose name contains it\n"
	       "  -v             every case, with its time\n"
	       "  --every-pass   on the interpreter: the IR after each pass against the one before "
	       "it, and facts against values\n"
	       "  --pairs SEED   a share of the cases in which all pairs of choices occur; others vary with SEED\n"
	       "  --shard I/N    of the cases, the I-th of N shares (I from 0)\n"
	       "  --schedules N  on the simulator: each case under N seeds, from $TL_SIM_SEED on (0 if not set), "
	       "compiled once\n"
	       "  --sources DIR  writes DIR/commands: for each variant launched, the tlc command that compiles it\n"
	       "  --texts DIR    every launch a second time, from DIR/HASH.ttir, where there is one: see texts.c\n"
	       "  --calls FILE   writes FILE.I, of share I: each different call of a built-in function\n"
	       "Environment: TL_DEVICE, one device instead of all; TL_TESTS, the folder of the kernels.\n");
}

static bool open_calls(struct suite *s, const char *file, bool again)
{
	char path[1024];
	snprintf(path, sizeof path, "%s.%d", file, s->shard);
	s->calls = fopen(path, again ? "a" : "w");
	if (!s->calls)
		fprintf(stderr, "test-run: cannot write %s\n", path);
	return s->calls;
}

static bool read_options(struct suite *s, int argc, char **argv, char *resumed)
{
	const char *calls = NULL;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-v"))
			s->verbose = true;
		else if (!strcmp(argv[i], "--every-pass"))
			setenv("TL_DEVICE", "interp", 1), setenv("TL_INTERP_CHECK", "passes,facts", 0);
		else if (!strcmp(argv[i], "--schedules") && i + 1 < argc) {
			s->simulated = atoi(argv[++i]);
			if (s->simulated < 1 || s->simulated > SCHEDULES)
				return false;
		} else if (!strcmp(argv[i], "--sources") && i + 1 < argc)
			s->sources = argv[++i];
		else if (!strcmp(argv[i], "--texts") && i + 1 < argc)
			s->texts = argv[++i];
		else if (!strcmp(argv[i], "--calls") && i + 1 < argc)
			calls = argv[++i];
		else if (!strcmp(argv[i], "--shard") && i + 1 < argc) {
			if (sscanf(argv[++i], "%d/%d", &s->shard, &s->shards) != 2 || s->shards < 1)
				return false;
		} else if (!strcmp(argv[i], "--pairs") && i + 1 < argc) {
			s->pairs = atoi(argv[++i]) & 0xFFFFFF;
		} else if (!strncmp(argv[i], "--resume=", 9)) {
			if (!read_resume(s, argv[i] + 9, resumed))
				return false;
		} else if (argv[i][0] == '-' || s->filter)
			return false;
		else
			s->filter = argv[i];
	}
	return !calls || open_calls(s, calls, *resumed);
}

static bool open_sources(struct suite *s, bool again)
{
	char path[1024];
	if (!s->sources)
		return true;
	snprintf(path, sizeof path, "%s/commands", s->sources);
	s->commands = fopen(path, again ? "a" : "w");
	if (!s->commands)
		fprintf(stderr, "test-run: cannot write %s\n", path);
	else
		setvbuf(s->commands, NULL, _IOLBF, 0);
	return s->commands;
}

int run_themes(int argc, char **argv, const struct theme *themes, int n)
{
	static const char *const known[] = {"interp", "cpu", "sim", "cuda"};
	setenv("TL_COMPILE_CHECK", "buffers", 0);
	const char *root = getenv("TL_TESTS");
	const char *seed = getenv("TL_SIM_SEED");
	struct suite s = {.shards = 1,
			  .pairs = -1,
			  .simulated = 1,
			  .seed = seed ? atoi(seed) : 0,
			  .root = root ? root : TESTS_ROOT};
	char resumed[16] = "";
	if (!read_options(&s, argc, argv, resumed)) {
		usage();
		return 2;
	}
	const char *only = getenv("TL_DEVICE");
	setvbuf(stdout, NULL, _IOLBF, 0);
	bool again = *resumed;
	self.argv = calloc((size_t)argc + 2, sizeof *self.argv);
	if (!self.argv || !open_sources(&s, again))
		return 2;
	for (int i = 0; i < argc; i++)
		if (strncmp(argv[i], "--resume=", 9))
			self.argv[self.argc++] = argv[i];
	self.argc++;
	catch_signals();
	for (int i = 0; i < COUNT(known); i++) {
		s.device = only ? only : known[i];
		if (*resumed && strcmp(resumed, s.device))
			continue; /* done before the restart */
		bool must = only || *resumed;
		if (!*resumed)
			s.resume = 0;
		*resumed = 0;
		if (!tl_context_create(s.device, &s.ctx))
			run_device(&s, themes, n);
		else if (must) {
			fprintf(stderr, "test-run: %s: %s\n", s.device, tl_error(NULL));
			return 2;
		} else
			printf("no device '%s'\n", s.device);
		if (only)
			break;
	}
	if (s.commands)
		fclose(s.commands);
	if (s.calls)
		fclose(s.calls);
	free(self.argv);
	if (s.texts)
		printf("%d launches from texts with the same bits, %d with others, %d without a text\n", s.same,
		       s.differ, s.notext);
	if (s.nskipped)
		printf("%d skipped\n", s.nskipped);
	printf("%d passed, %d failed\n", s.passed, s.nfailed);
	return s.nfailed || !s.passed;
}
