/* Hostile files in the places of the library's own: renamed entries of the disk cache, FIFOs, symbolic links, folders
 * and files that other users may write, locks of stopped processes. Each launch runs in a process of its own. Its
 * result must be right and arrive soon, no file elsewhere may change, an untrusted entry must not run, and the user
 * must be told once. As root the tests use real other users. */
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "cache_folder.h"
#include "runtime/tl.h"

enum { N = 64, HANGS = 25, SOON = 15, STRANGER = 12345, CONTAINER = 1000670000 };

#define SOURCE(slope)                                                                                                  \
	"import triton\nimport triton.language as tl\n\n"                                                              \
	"@triton.jit\ndef affine(x, FACTOR: tl.constexpr):\n    i = tl.arange(0, 64)\n"                                \
	"    tl.store(x + i, tl.load(x + i) * FACTOR + " #slope " * i)\n\n"                                            \
	"@triton.jit\ndef other(x, FACTOR: tl.constexpr):\n    i = tl.arange(0, 64)\n"                                 \
	"    tl.store(x + i, tl.load(x + i) * FACTOR - i)\n"
static const char *const sources[] = {SOURCE(1), SOURCE(2)};

struct job {
	int source;
	const char *kernel;
	int factor, num_warps;
	const char *device; /* NULL: sim */
	bool tunes;
};
static const struct job usual = {0, "affine", 3, 4, NULL, false};

/* What a process found. */
static struct outcome {
	tl_status status;
	bool ended, right;
	int warnings;
	double seconds;
	char said[4000], map[40];
} *shared;

static void hear(void *user, const tl_diagnostic *d)
{
	(void)user;
	shared->warnings += d->severity == TL_SEVERITY_WARNING;
	strncat(shared->said, d->shown, sizeof shared->said - strlen(shared->said) - 1);
}

static tl_status start(tl_context *ctx, tl_kernel *k, const struct job *job, tl_buffer *b)
{
	const tl_arg args[] = {tl_buf(TL_I32, b), tl_int(job->factor)};
	const tl_config one = {.grid = {1}, .num_warps = job->num_warps};
	if (!job->tunes)
		return tl_launch(k, &one, args, 2);
	tl_tuner *t;
	tl_choice c;
	(void)ctx;
	tl_status s = tl_tuner_create(k, NULL, &t);
	for (int warps = 1; warps <= 2 && !s; warps++)
		s = tl_tuner_add(t, &(tl_config){.num_warps = warps}, NULL, 0);
	s = s ? s : tl_tuner_choose(t, &(tl_config){.grid = {1}}, NULL, NULL, args, 2, &c);
	return s ? s : tl_tuner_launch(t, &(tl_config){.grid = {1}}, NULL, NULL, args, 2);
}

static void launch(const struct job *job)
{
	int32_t x[N];
	tl_context *ctx;
	tl_module *m;
	tl_kernel *k;
	tl_buffer *b;
	const char *text = sources[job->source];
	int slope = !strcmp(job->kernel, "other") ? -1 : job->source + 1;
	for (int i = 0; i < N; i++)
		x[i] = 7 * i + 5;
	if (tl_context_create(job->device ? job->device : "sim", &ctx) ||
	    tl_context_diagnostics(ctx, hear, NULL, false) ||
	    tl_module_load_source(ctx, "a.tl", text, strlen(text), &m) || tl_module_kernel(m, job->kernel, &k) ||
	    tl_buffer_create(ctx, sizeof x, &b) || tl_buffer_write(b, 0, x, sizeof x))
		_exit(1);
	shared->status = start(ctx, k, job, b);
	shared->right = !shared->status && !tl_buffer_read(b, 0, x, sizeof x);
	for (int i = 0; i < N && shared->right; i++)
		shared->right = x[i] == (7 * i + 5) * job->factor + slope * i;
	if (shared->status)
		snprintf(shared->said, sizeof shared->said, "%s", tl_error(ctx));
	tl_context_destroy(ctx);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* In a process that `before` prepares; user: -1: as this one. */
static struct outcome run_as(long user, long group, void (*before)(void), const struct job *job)
{
	double begin = now();
	memset(shared, 0, sizeof *shared);
	pid_t child = fork();
	if (!child) {
		gid_t g = (gid_t)group;
		if (user >= 0 && (setgroups(1, &g) || setgid(g) || setuid((uid_t)user)))
			_exit(1);
		if (before)
			before();
		alarm(HANGS);
		launch(job);
		_exit(0);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	shared->ended = WIFEXITED(status) && !WEXITSTATUS(status);
	shared->seconds = now() - begin;
	return *shared;
}

static struct outcome run(const struct job *job)
{
	return run_as(-1, -1, NULL, job);
}

/* The result is right and arrives soon, with so many warnings, which contain `says`. */
static void expect(struct outcome o, int warnings, const char *says)
{
	if (!o.ended || !o.right || o.seconds > SOON || o.warnings != warnings || (says && !strstr(o.said, says)))
		fail_msg("ended %d, status %d, right %d, %.1f s, %d warnings (%d wanted, '%s'): %s", o.ended, o.status,
			 o.right, o.seconds, o.warnings, warnings, says ? says : "", o.said);
}

/* --- files ------------------------------------------------------------------------------------------------------- */

static const char *in(const char *name)
{
	static char path[4][300];
	static int n;
	char *p = path[n++ % 4];
	assert_in_range(snprintf(p, 300, "%s/%s", folder, name), 1, 299);
	return p;
}

/* The one file of the folder that ends so; in memory of its own. */
static const char *find(const char *end)
{
	static char path[4][300];
	static int n;
	char *p = path[n++ % 4];
	DIR *d = opendir(folder);
	assert_non_null(d);
	*p = 0;
	for (const struct dirent *e; (e = readdir(d));) {
		size_t len = strlen(e->d_name);
		if (len > strlen(end) && !strcmp(e->d_name + len - strlen(end), end))
			snprintf(p, 300, "%s/%s", folder, e->d_name);
	}
	closedir(d);
	if (!*p)
		fail_msg("no %s in %s", end, folder);
	return p;
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static char *read_file(const char *path, size_t *len)
{
	static char bytes[1 << 16];
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	*len = fread(bytes, 1, sizeof bytes - 1, f);
	bytes[*len] = 0;
	fclose(f);
	return bytes;
}

static void expect_text(const char *path, const char *text)
{
	size_t len;
	assert_string_equal(read_file(path, &len), text);
}

/* Launches the job, and moves its entry to `to`. */
static void keep_entry(const struct job *job, const char *to)
{
	expect(run(job), 0, NULL);
	assert_int_equal(rename(find(".image"), to), 0);
}

/* --- entries ----------------------------------------------------------------------------------------------------- */

static void entries_of_others(void **state)
{
	(void)state;
	static const struct job others[] = {{0, "other", 3, 4, NULL, false},  {0, "affine", 4, 4, NULL, false},
					    {0, "affine", 3, 2, NULL, false}, {1, "affine", 3, 4, NULL, false},
					    {0, "affine", 3, 4, "sim:80", false}};
	char mine[300];
	expect(run(&usual), 0, NULL);
	snprintf(mine, sizeof mine, "%s", find(".image"));
	assert_int_equal(unlink(mine), 0);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		keep_entry(&others[i], mine);
		expect(run(&usual), 1, "belongs to another kernel");
		expect(run(&usual), 0, NULL); /* it has been replaced */
		assert_int_equal(unlink(mine), 0);
	}
}

/* An entry of an older format is replaced without a message. */
static void older_entries(void **state)
{
	(void)state;
	enum { VERSION_AT = 8 };
	size_t len;
	expect(run(&usual), 0, NULL);
	char *bytes = read_file(find(".image"), &len);
	bytes[VERSION_AT]--;
	FILE *f = fopen(find(".image"), "w");
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	fclose(f);
	expect(run(&usual), 0, NULL);
}

static void no_files_in_place_of_entries(void **state)
{
	(void)state;
	char mine[300];
	expect(run(&usual), 0, NULL);
	snprintf(mine, sizeof mine, "%s", find(".image"));
	assert_int_equal(rename(mine, in("kept")), 0);
	assert_int_equal(mkfifo(mine, 0600), 0);
	expect(run(&usual), 1, "not a regular file");
	assert_int_equal(unlink(mine), 0);
	assert_int_equal(symlink(in("kept"), mine), 0);
	expect(run(&usual), 1, "symbolic link");
	assert_int_equal(rename(in("kept"), mine), 0);
	assert_int_equal(chmod(mine, 0666), 0);
	expect(run(&usual), 1, "every user may write it");
	assert_int_equal(unlink(mine), 0);
	assert_int_equal(mkdir(mine, 0700), 0);
	expect(run(&usual), 1, "not a regular file");
	assert_int_equal(rmdir(mine), 0);
	if (geteuid())
		return;
	expect(run(&usual), 0, NULL);
	assert_int_equal(chown(mine, STRANGER, STRANGER), 0);
	expect(run(&usual), 1, "it belongs to user 12345");
	expect(run(&usual), 0, NULL);
}

/* --- claims ------------------------------------------------------------------------------------------------------ */

/* The file by which a process claims the usual job's key. */
static const char *claim(void)
{
	static char path[300];
	expect(run(&usual), 0, NULL);
	const char *entry = find(".image"), *name = strrchr(entry, '/') + 1;
	snprintf(path, sizeof path, "%s/new-%.32s", folder, name);
	assert_int_equal(unlink(entry), 0);
	return path;
}

static void nothing_under_a_claims_name(void **state)
{
	(void)state;
	const char *c = claim();
	assert_int_equal(symlink(in("elsewhere"), c), 0);
	expect(run(&usual), 0, NULL);
	assert_int_not_equal(access(in("elsewhere"), F_OK), 0);
	unlink(find(".image"));
	write_file(in("elsewhere"), "mine");
	expect(run(&usual), 0, NULL);
	expect_text(in("elsewhere"), "mine");
	unlink(find(".image"));
	unlink(c);
	assert_int_equal(mkfifo(c, 0600), 0);
	expect(run(&usual), 0, NULL);
	unlink(find(".image"));
	unlink(c);
	assert_int_equal(mkdir(c, 0700), 0);
	expect(run(&usual), 0, NULL);
}

/* A process that holds the lock of the file and is stopped. */
static pid_t stopped(const char *path)
{
	pid_t child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		int fd = open(path, O_RDWR | O_CREAT, 0600);
		flock(fd, LOCK_EX);
		raise(SIGSTOP);
		_exit(0);
	}
	int status;
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	assert_true(WIFSTOPPED(status));
	return child;
}

static void end(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static void stopped_processes_are_not_waited_for(void **state)
{
	(void)state;
	pid_t child = stopped(claim());
	expect(run(&usual), 0, NULL);
	end(child);
	setenv("TL_MANIFEST", in("manifest"), 1);
	child = stopped(in("manifest"));
	expect(run(&usual), 0, NULL);
	end(child);
	unsetenv("TL_MANIFEST");
	struct job tuned = usual;
	tuned.tunes = true;
	expect(run(&tuned), 0, NULL);
	write_file(find(".tuning"), "");
	child = stopped(find(".tuning"));
	expect(run(&tuned), 0, NULL);
	end(child);
}

/* --- tunings and manifests --------------------------------------------------------------------------------------- */

static void no_files_in_place_of_tunings(void **state)
{
	(void)state;
	char mine[300];
	struct job tuned = usual;
	tuned.tunes = true;
	expect(run(&tuned), 0, NULL);
	snprintf(mine, sizeof mine, "%s", find(".tuning"));
	unlink(mine);
	assert_int_equal(mkfifo(mine, 0600), 0);
	expect(run(&tuned), 0, NULL);
	unlink(mine);
	write_file(in("elsewhere"), "mine\n");
	assert_int_equal(symlink(in("elsewhere"), mine), 0);
	expect(run(&tuned), 0, NULL);
	expect_text(in("elsewhere"), "mine\n");
	unlink(mine);
	write_file(mine, "{\"kernel\":\"aff"); /* torn */
	expect(run(&tuned), 0, NULL);
	size_t len;
	assert_non_null(strstr(read_file(mine, &len), "aff\n{\"kernel\":\"affine\""));
}

static void manifests(void **state)
{
	(void)state;
	size_t len;
	setenv("TL_MANIFEST", in("manifest"), 1);
	write_file(in("manifest"), "{\"source\": \"a.t");
	expect(run(&usual), 0, NULL);
	assert_non_null(strstr(read_file(in("manifest"), &len), "a.t\n{\"source\": \"a.tl\""));
	expect(run(&usual), 0, NULL); /* once */
	size_t again;
	read_file(in("manifest"), &again);
	assert_int_equal(again, len);
	unlink(in("manifest"));
	assert_int_equal(mkfifo(in("manifest"), 0600), 0);
	expect(run(&usual), 1, "not a regular file");
	unlink(in("manifest"));
	write_file(in("elsewhere"), "mine\n");
	assert_int_equal(symlink(in("elsewhere"), in("manifest")), 0);
	expect(run(&usual), 1, "symbolic link");
	expect_text(in("elsewhere"), "mine\n");
	unlink(in("manifest"));
	assert_int_equal(link(in("elsewhere"), in("manifest")), 0);
	expect(run(&usual), 1, "another name");
	expect_text(in("elsewhere"), "mine\n");
	unlink(in("manifest"));
	assert_int_equal(mkdir(in("open"), 0700), 0);
	assert_int_equal(chmod(in("open"), 0777), 0);
	setenv("TL_MANIFEST", in("open/manifest"), 1);
	expect(run(&usual), 1, "every user may write its folder");
	assert_int_equal(chmod(in("open"), 01777), 0); /* as /tmp is */
	expect(run(&usual), 0, NULL);
	assert_non_null(strstr(read_file(in("open/manifest"), &len), "affine"));
	if (!geteuid()) {
		assert_int_equal(chown(in("open/manifest"), STRANGER, STRANGER), 0);
		expect(run(&usual), 1, "belongs to another user");
	}
	unsetenv("TL_MANIFEST");
}

/* --- folders ----------------------------------------------------------------------------------------------------- */

static void without_compiling(void)
{
	setenv("TL_NO_JIT", "1", 1);
}

/* A launch by this user uses the entry in the folder; why: it does not, and a warning contains this reason. */
static void folder_is_used(long user, long group, const char *why)
{
	struct outcome o = run_as(user, group, without_compiling, &usual);
	assert_true(o.ended);
	if (why && (o.status != TL_ERR_NOT_BUILT))
		fail_msg("the folder is used: %s", why);
	if (!why && !o.right)
		fail_msg("the folder is not used: %s", o.said);
	if (why)
		expect(run_as(user, group, NULL, &usual), 1, why);
}

static void trust(const char *whom)
{
	if (whom)
		setenv("TL_CACHE_TRUST", whom, 1);
	else
		unsetenv("TL_CACHE_TRUST");
}

static void folders_of_others(void **state)
{
	(void)state;
	trust(NULL);
	expect(run(&usual), 0, NULL);
	folder_is_used(-1, -1, NULL);
	chmod(folder, 0770);
	folder_is_used(-1, -1, "TL_CACHE_TRUST=group");
	trust("group");
	folder_is_used(-1, -1, NULL);
	trust("everybody");
	folder_is_used(-1, -1, "must be user, group or all");
	chmod(folder, 0777);
	trust("group");
	folder_is_used(-1, -1, "every user may write it");
	trust(NULL);
	folder_is_used(-1, -1, folder);
	chmod(folder, 01777);
	folder_is_used(-1, -1, "every user may write it");
	trust("all");
	folder_is_used(-1, -1, NULL);
	trust(NULL);
	chmod(folder, 0755);
	folder_is_used(-1, -1, NULL);
	char link[300];
	snprintf(link, sizeof link, "%s-link", folder);
	assert_int_equal(symlink(folder, link), 0);
	setenv("TL_CACHE_DIR", link, 1);
	folder_is_used(-1, -1, NULL); /* a link of one's own */
	if (!geteuid()) {
		assert_int_equal(lchown(link, STRANGER, STRANGER), 0);
		folder_is_used(-1, -1, "symbolic link of another user");
		strcat(link, "/");
		setenv("TL_CACHE_DIR", link, 1);
		folder_is_used(-1, -1, "symbolic link of another user");
		link[strlen(link) - 1] = 0;
		setenv("TL_CACHE_DIR", folder, 1);
		assert_int_equal(chown(folder, STRANGER, STRANGER), 0);
		folder_is_used(-1, -1, "it belongs to user 12345");
	}
	unlink(link);
}

/* Users of containers have no name, and the group of root; folders in images of containers belong to another user. Two
 * such users share a folder. */
static void users_of_containers(void **state)
{
	(void)state;
	if (geteuid())
		return; /* other users are needed */
	trust(NULL);
	assert_int_equal(chmod(folder, 02770), 0);
	trust("group");
	expect(run_as(CONTAINER, 0, NULL, &usual), 0, NULL);
	folder_is_used(CONTAINER, 0, NULL);
	folder_is_used(CONTAINER + 1, 0, NULL);
	struct stat st;
	assert_int_equal(stat(find(".image"), &st), 0);
	assert_int_equal(st.st_uid, CONTAINER);
	trust(NULL);
	folder_is_used(CONTAINER, 0, "the members of group 0 may write it");
	folder_is_used(-1, -1, "the members of group 0 may write it");
	trust("group");
	chown(folder, 0, STRANGER);
	chmod(folder, 02777);
	folder_is_used(CONTAINER, 0, "every user may write it");
	trust(NULL);
	/* one's own folder, as a user without rights */
	assert_int_equal(chown(folder, STRANGER, STRANGER), 0);
	assert_int_equal(chmod(folder, 0700), 0);
	assert_int_equal(unlink(find(".image")), 0);
	expect(run_as(STRANGER, STRANGER, NULL, &usual), 0, NULL);
	folder_is_used(STRANGER, STRANGER, NULL);
}

/* --- profilers --------------------------------------------------------------------------------------------------- */

static void map_is_a_link(void)
{
	setenv("TL_PERF_MAP", "1", 1);
	snprintf(shared->map, sizeof shared->map, "/tmp/perf-%d.map", (int)getpid());
	unlink(shared->map);
	if (symlink(in("elsewhere"), shared->map))
		_exit(1);
}

static void maps_for_perf(void **state)
{
	(void)state;
	struct job job = usual;
	job.device = "cpu";
	write_file(in("elsewhere"), "mine\n");
	expect(run_as(-1, -1, map_is_a_link, &job), 0, NULL);
	unlink(shared->map);
	expect_text(in("elsewhere"), "mine\n");
}

static int set_up(void **state)
{
	(void)state;
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return shared == MAP_FAILED || unsetenv("TL_NO_JIT") || unsetenv("TL_MANIFEST") || unsetenv("TL_CACHE_TRUST");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, new_folder, remove_folder)
	const struct CMUnitTest tests[] = {TEST(entries_of_others),
					   TEST(older_entries),
					   TEST(no_files_in_place_of_entries),
					   TEST(nothing_under_a_claims_name),
					   TEST(stopped_processes_are_not_waited_for),
					   TEST(no_files_in_place_of_tunings),
					   TEST(manifests),
					   TEST(folders_of_others),
					   TEST(users_of_containers),
					   TEST(maps_for_perf)};
	return cmocka_run_group_tests(tests, set_up, NULL);
}
