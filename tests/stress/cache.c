/* The disk cache under stress: cold starts of many processes with many threads on one folder, kills at random moments,
 * a disk that is full, a folder that cannot be written, clocks that jump, bits that flip.
 *
 *   cache-stress [--full] [--processes N] [--threads N] [--kernels N] [--kills N] [--seed N]
 *
 * Without --full the sizes are those of `make test`. Each part prints what it counted; the last line is
 * "N passed, N failed". The functions of the library that are counted, and the system's that are made to fail, are
 * wrapped by the linker. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/recover.h"
#include "driver/compile.h"
#include "runtime/cache/cache.h"
#include "runtime/tl.h"

enum { N = 64, MOST_KERNELS = 200 };

/* What processes share. */
static struct shared {
	atomic_int go, compiled[MOST_KERNELS], compiling[MOST_KERNELS], most_at_once;
	_Atomic(long) room;  /* bytes that can still be written; -1: as many as there are */
	_Atomic(long) clock; /* seconds by which the clock is wrong */
	atomic_long launches;
} *shared;

static char folder[64], *source;
static int processes = 6, threads = 4, kernels = 12, kills = 40;
static unsigned seed = 1;
static int passed, failures;

/* --- what is wrapped ------------------------------------------------------------------------------------------- */

bool __real_compile(struct unit *u, const struct func *func, const struct arg_spec *args,
		    const struct compile_options *o, struct compiled *out);
bool __wrap_compile(struct unit *u, const struct func *func, const struct arg_spec *args,
		    const struct compile_options *o, struct compiled *out);
bool __wrap_compile(struct unit *u, const struct func *func, const struct arg_spec *args,
		    const struct compile_options *o, struct compiled *out)
{
	int k = atoi(func->name + 1);
	atomic_fetch_add(&shared->compiled[k], 1);
	int now = atomic_fetch_add(&shared->compiling[k], 1) + 1, most = atomic_load(&shared->most_at_once);
	while (now > most && !atomic_compare_exchange_weak(&shared->most_at_once, &most, now)) {}
	bool good = __real_compile(u, func, args, o, out);
	atomic_fetch_sub(&shared->compiling[k], 1);
	return good;
}

ssize_t __real_write(int fd, const void *bytes, size_t len);
ssize_t __wrap_write(int fd, const void *bytes, size_t len);
ssize_t __wrap_write(int fd, const void *bytes, size_t len)
{
	long room = shared ? atomic_load(&shared->room) : -1;
	if (room < 0 || fd <= 2)
		return __real_write(fd, bytes, len);
	if (!room) {
		errno = ENOSPC;
		return -1;
	}
	ssize_t n = __real_write(fd, bytes, MIN(len, (size_t)room)); /* the last bytes that there is room for */
	if (n > 0)
		atomic_fetch_sub(&shared->room, n);
	return n;
}

time_t __real_time(time_t *out);
time_t __wrap_time(time_t *out);
time_t __wrap_time(time_t *out)
{
	time_t t = __real_time(NULL) + atomic_load(&shared->clock);
	if (out)
		*out = t;
	return t;
}

/* --- what a process does --------------------------------------------------------------------------------------- */

static unsigned long long next(unsigned long long *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

/* Kernel k adds k * i to x[i]: whichever code runs, its result tells which it is. */
static void make_source(void)
{
	size_t size;
	FILE *f = open_memstream(&source, &size);
	fputs("import triton\nimport triton.language as tl\n\n", f);
	for (int k = 0; k < MOST_KERNELS; k++)
		fprintf(f,
			"@triton.jit\ndef k%d(x):\n    i = tl.arange(0, %d)\n"
			"    tl.store(x + i, tl.load(x + i) + %d * i)\n\n",
			k, N, k);
	fclose(f);
}

static bool launch(tl_context *ctx, tl_module *m, int k)
{
	int32_t x[N], is[N];
	char name[16];
	tl_kernel *kernel;
	tl_buffer *b = NULL;
	for (int i = 0; i < N; i++)
		x[i] = i * 7 + k;
	snprintf(name, sizeof name, "k%d", k);
	bool ok = !tl_module_kernel(m, name, &kernel) && !tl_buffer_create(ctx, sizeof x, &b) &&
		  !tl_buffer_write(b, 0, x, sizeof x);
	tl_arg arg = tl_buf(TL_I32, b);
	ok = ok && !tl_launch(kernel, &(tl_config){.grid = {1}, .num_warps = 1}, &arg, 1) &&
	     !tl_buffer_read(b, 0, is, sizeof is);
	if (!ok)
		fprintf(stderr, "k%d: %s\n", k, tl_error(NULL));
	for (int i = 0; i < N && ok; i++)
		if (is[i] != x[i] + k * i) {
			fprintf(stderr, "k%d: [%d] is %d, and not %d\n", k, i, is[i], x[i] + k * i);
			ok = false;
		}
	tl_buffer_destroy(b);
	atomic_fetch_add(&shared->launches, 1);
	return ok;
}

struct user {
	tl_context *ctx; /* shared with other threads; or NULL: one of its own */
	tl_module *module;
	unsigned long long random;
	bool ok;
};

static void *use(void *arg)
{
	struct user *u = arg;
	tl_context *ctx = u->ctx;
	tl_module *m = u->module;
	int order[MOST_KERNELS];
	for (int i = 0; i < kernels; i++) { /* shuffled */
		int j = (int)(next(&u->random) % (unsigned)(i + 1));
		order[i] = order[j];
		order[j] = i;
	}
	u->ok = ctx || (!tl_context_create("sim", &ctx) && !tl_context_threads(ctx, 1) &&
			!tl_module_load_source(ctx, "s.tl", source, strlen(source), &m));
	for (int i = 0; i < kernels && u->ok; i++)
		u->ok = launch(ctx, m, order[i]);
	if (!u->ctx)
		tl_context_destroy(ctx);
	return NULL;
}

/* A process: its threads have contexts of their own, or one together. */
static bool run_threads(int n, int process)
{
	struct user u[64];
	pthread_t t[64];
	tl_context *ctx = NULL;
	tl_module *m = NULL;
	bool ok = true;
	if (process % 2)
		ok = !tl_context_create("sim", &ctx) && !tl_context_threads(ctx, 1) &&
		     !tl_module_load_source(ctx, "s.tl", source, strlen(source), &m);
	int started = 0;
	for (; started < n && ok; started++) {
		u[started] = (struct user){ctx, m, seed * 1000003ull + (unsigned)(process * 64 + started), false};
		if (pthread_create(&t[started], NULL, use, &u[started]))
			break;
	}
	ok &= started == n;
	for (int i = 0; i < started; i++)
		ok &= !pthread_join(t[i], NULL) && u[i].ok;
	tl_context_destroy(ctx);
	return ok;
}

static pid_t start(int n, int process)
{
	pid_t child = fork();
	if (child)
		return child;
	while (!atomic_load(&shared->go))
		usleep(100);
	_exit(!run_threads(n, process));
}

static bool ended_well(pid_t child)
{
	int status;
	return waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status);
}

/* One process of one thread, with all kernels. */
static bool all_right(void)
{
	atomic_store(&shared->go, 1);
	return ended_well(start(1, 0));
}

/* --- the folder ------------------------------------------------------------------------------------------------ */

struct found {
	int usable, damaged;
	const char *paths[MOST_KERNELS];
};

static void note(void *arg, const char *path, i64 bytes, const struct image *im, const char *why)
{
	struct found *f = arg;
	(void)bytes;
	if (im && f->usable < MOST_KERNELS)
		f->paths[f->usable] = strdup(path);
	if (why)
		fprintf(stderr, "%s: %s\n", path, why);
	*(im ? &f->usable : &f->damaged) += 1;
}

static struct found entries(void)
{
	struct found f = {0};
	cache_each(note, &f);
	return f;
}

static void forget(struct found *f)
{
	for (int i = 0; i < f->usable && i < MOST_KERNELS; i++)
		free((void *)f->paths[i]);
}

static int compilations(int *most)
{
	int sum = 0;
	*most = 0;
	for (int k = 0; k < kernels; k++) {
		int n = atomic_exchange(&shared->compiled[k], 0);
		atomic_store(&shared->compiling[k], 0);
		sum += n;
		*most = MAX(*most, n);
	}
	return sum;
}

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void check(const char *what, bool ok)
{
	*(ok ? &passed : &failures) += 1;
	if (!ok)
		printf("FAILED: %s\n", what);
	fflush(stdout);
}

/* --- the parts ------------------------------------------------------------------------------------------------- */

/* Each variant is compiled once by all together: a process waits for another one that compiles it. */
static void cold_start(void)
{
	pid_t child[256];
	int most;
	double begin = seconds();
	cache_clear();
	atomic_store(&shared->go, 0);
	atomic_store(&shared->most_at_once, 0);
	atomic_store(&shared->launches, 0);
	for (int i = 0; i < processes; i++)
		child[i] = start(threads, i);
	atomic_store(&shared->go, 1);
	bool ok = true;
	for (int i = 0; i < processes; i++)
		ok &= ended_well(child[i]);
	struct found f = entries();
	int sum = compilations(&most);
	printf("cold start: %d processes of %d threads, %d kernels: %ld launches, %d compilations, at most %d of a "
	       "kernel; "
	       "%d entries, %d damaged; %.1f s\n",
	       processes, threads, kernels, atomic_load(&shared->launches), sum, most, f.usable, f.damaged,
	       seconds() - begin);
	check("every result is right", ok);
	check("each kernel is compiled at least once, and no more than twice", sum >= kernels && most <= 2);
	check("an entry for each kernel, none damaged", f.usable == kernels && !f.damaged);
	forget(&f);
	check("a second start", all_right());
	check("a second start compiles nothing", compilations(&most) == 0);
}

/* Processes that compile, and processes that only write, which a kill hits in the midst of it more often. */
static _Noreturn void write_again_and_again(void)
{
	struct found f = entries();
	struct image im;
	char key[17] = "";
	for (unsigned n = 0;; n++) {
		struct cache_key to = {{n % 16, n}};
		const char *name = f.usable ? strrchr(f.paths[0], '/') + 1 : "";
		struct cache_key from;
		memcpy(key, name, MIN(strlen(name), 16));
		from.at[0] = strtoull(key, NULL, 16);
		from.at[1] = strtoull(strlen(name) > 16 ? name + 16 : "", NULL, 16);
		if (!f.usable || !cache_read(from, &im, NULL))
			_exit(!f.usable ? 0 : 1);
		cache_write(to, &im);
		image_free(&im);
	}
}

static void killed(void)
{
	unsigned long long random = seed;
	int damaged = 0, dead = 0;
	double begin = seconds();
	atomic_store(&shared->go, 1);
	cache_clear();
	check("a start", all_right());
	int n = 0;
	for (; dead < kills && n < 8 * kills; n++) {
		if (n % 10 == 9)
			cache_clear();
		pid_t child = n % 2 || n % 10 == 9 ? start(2, n) : fork();
		if (!child)
			write_again_and_again();
		usleep((useconds_t)(next(&random) % (n % 2 ? kernels * 4000 : 20000)));
		kill(child, SIGKILL);
		int status;
		waitpid(child, &status, 0);
		dead += WIFSIGNALED(status);
		struct found f = entries();
		damaged += f.damaged;
		forget(&f);
	}
	printf("kills: %d that met a process that ran, of %d; %d damaged entries; %.1f s\n", dead, n, damaged,
	       seconds() - begin);
	check("kills enough met a process that ran", dead == kills);
	check("whole entries after each kill", !damaged);
	check("every result is right afterwards", all_right());
	int most;
	compilations(&most);
	cache_clear();
}

/* At each number of bytes there may be room for, of some: launches are right, and no entry is damaged. */
static void full_disk(void)
{
	int most, damaged = 0, wrong = 0, tried = 0, usable;
	double begin = seconds();
	for (long room = 0; room < 60000; room = room * 2 + 111, tried++) {
		cache_clear();
		atomic_store(&shared->room, room);
		wrong += !all_right();
		struct found f = entries();
		damaged += f.damaged;
		forget(&f);
	}
	atomic_store(&shared->room, -1);
	/* the same by a limit that the system keeps */
	cache_clear();
	pid_t child = fork();
	if (!child) {
		signal(SIGXFSZ, SIG_IGN);
		_exit(setrlimit(RLIMIT_FSIZE, &(struct rlimit){100, 100}) || !run_threads(1, 0));
	}
	wrong += !ended_well(child);
	struct found limited = entries();
	damaged += limited.damaged + limited.usable;
	forget(&limited);
	wrong += !all_right();
	compilations(&most);
	struct found f = entries();
	usable = f.usable;
	forget(&f);
	printf("full disk: %d sizes: %d starts with wrong results, %d damaged entries; %.1f s\n", tried, wrong, damaged,
	       seconds() - begin);
	check("right results on a full disk", !wrong);
	check("no damaged entries on a full disk", !damaged);
	check("entries again when there is room", usable == kernels);
}

/* As another user, if this one may write everywhere: then the folder is a file's, or gone. */
static void no_folder(void)
{
	int most;
	cache_clear();
	compilations(&most);
	chmod(folder, 0500);
	pid_t child = fork();
	if (!child) {
		if (!geteuid() && (setegid(65534) || seteuid(65534)))
			_exit(2);
		_exit(!run_threads(1, 0));
	}
	check("right results with a folder that cannot be written", ended_well(child));
	chmod(folder, 0700);
	struct found f = entries();
	check("nothing was written there", !f.usable && !f.damaged && compilations(&most) == kernels);
	forget(&f);
	check("entries again when it can", all_right());
	chmod(folder, 0000);
	child = fork();
	if (!child) {
		if (!geteuid() && (setegid(65534) || seteuid(65534)))
			_exit(2);
		_exit(!run_threads(1, 0));
	}
	check("right results with a folder that cannot be read", ended_well(child));
	chmod(folder, 0700);
	compilations(&most);
}

/* The clock, and the times of entries, in the past and in the future. */
static void clocks(void)
{
	static const long jumps[] = {-2000000000, -86400 * 365, -3601, 3601, 86400 * 365, 2000000000};
	int most, wrong = 0, compiled = 0;
	check("a start", all_right());
	compilations(&most);
	for (u32 i = 0; i < ARRAY_LEN(jumps); i++)
		for (u32 j = 0; j < ARRAY_LEN(jumps); j++) {
			struct found f = entries();
			struct timespec t[2] = {{2000000000 + jumps[j], 0}, {2000000000 + jumps[j], 0}};
			for (int e = 0; e < f.usable; e++)
				utimensat(0, f.paths[e], t, 0);
			forget(&f);
			atomic_store(&shared->clock, jumps[i]);
			wrong += !all_right();
			compiled += compilations(&most);
		}
	atomic_store(&shared->clock, 0);
	struct found f = entries();
	printf("clocks: %zu jumps: %d starts with wrong results, %d compilations, %d entries\n",
	       ARRAY_LEN(jumps) * ARRAY_LEN(jumps), wrong, compiled, f.usable);
	check("right results whatever the clock says", !wrong);
	check("entries are found whatever the clock says", !compiled && f.usable == kernels && !f.damaged);
	forget(&f);
}

static bool write_file(const char *path, const char *bytes, size_t len)
{
	FILE *f = fopen(path, "wb");
	bool ok = f && fwrite(bytes, 1, len, f) == len;
	return f && !fclose(f) && ok;
}

/* An entry with each of its bits flipped, each length it may be cut to: it is never taken for an entry. Launches of
 * some of them compile the kernel again, are right and leave a whole entry. */
static void flips(void)
{
	struct found f = entries();
	unsigned long long random = seed;
	static char bytes[1 << 20];
	int taken = 0, wrong = 0, launches = 0, most;
	check("there are entries", f.usable == kernels);
	if (!f.usable)
		return;
	FILE *in = fopen(f.paths[0], "rb");
	size_t len = fread(bytes, 1, sizeof bytes, in);
	fclose(in);
	for (size_t i = 0; i < 9 * len; i++) { /* each bit of each byte, then each length */
		size_t at = i % len;
		bool cut = i >= 8 * len;
		char flipped = (char)(1 << i / len % 8);
		bytes[at] ^= cut ? 0 : flipped;
		struct image im;
		if (!image_read(&im, bytes, cut ? at : len)) {
			taken++;
			image_free(&im);
		}
		if (next(&random) % (9 * len) < (unsigned)MAX(kills / 4, 4)) {
			write_file(f.paths[0], bytes, cut ? at : len);
			wrong += !all_right() || compilations(&most) != 1;
			launches++;
		}
		bytes[at] ^= cut ? 0 : flipped;
	}
	struct found after = entries();
	printf("flips: %zu bits, and %zu lengths: %d taken for an entry; %d starts, %d wrong\n", 8 * len, len, taken,
	       launches, wrong);
	check("no damaged entry is taken for one", !taken);
	check("right results, and a compilation each, from damaged entries", !wrong);
	check("whole entries afterwards", after.usable == kernels && !after.damaged);
	forget(&f);
	forget(&after);
}

int main(int argc, char **argv)
{
	struct {
		const char *name;
		int *value;
	} options[] = {{"--processes", &processes},
		       {"--threads", &threads},
		       {"--kernels", &kernels},
		       {"--kills", &kills},
		       {"--seed", (int *)&seed}};
	for (int i = 1; i < argc; i++) {
		bool known = !strcmp(argv[i], "--full");
		if (known)
			processes = 32, threads = 8, kernels = 50, kills = 500;
		for (u32 k = 0; k < ARRAY_LEN(options) && i + 1 < argc && !known; k++)
			if (!strcmp(argv[i], options[k].name)) {
				*options[k].value = atoi(argv[++i]);
				known = true;
			}
		if (!known) {
			fprintf(stderr, "cache-stress: unknown option %s\n", argv[i]);
			return 2;
		}
	}
	if (processes > 256 || threads > 64 || kernels > MOST_KERNELS || processes < 1 || threads < 1 || kernels < 1)
		return 2;
	strcpy(folder, "/tmp/tlc-stress-XXXXXX");
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || !mkdtemp(folder))
		return 2;
	atomic_store(&shared->room, -1);
	setenv("TL_CACHE_DIR", folder, 1);
	unsetenv("TL_CACHE");
	unsetenv("TL_CACHE_MB");
	make_source();
	cold_start();
	killed();
	full_disk();
	no_folder();
	clocks();
	flips();
	char command[100];
	snprintf(command, sizeof command, "rm -rf %s", folder);
	check("nothing is left", system(command) == 0);
	printf("%d passed, %d failed\n", passed, failures);
	return failures != 0;
}
