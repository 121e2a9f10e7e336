#include "runtime/tune/helper.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/tune/helper_protocol.h"

enum { BYTES_PER_MS = 64 << 10 }; /* saved, renewed and compared in the helper; an equal element takes 3.5 ns */

extern char **environ;

struct helper {
	struct device *dev; /* of the tuner */
	const char *const *command;
	int patience_ms;
	int copying_ms; /* the time that a run may take to save, renew and compare the memory */
	pid_t pid; /* 0: there is no process */
	int socket;
	bool broken;
	struct arena arena;
	VEC(const struct image *) loaded; /* in the process, by number */
};

/* --- the process ------------------------------------------------------------------------------------------------- */

static void send_open(struct helper *h)
{
	tl_device_info info = {.kind = ""};
	struct helper_call c = {.kind = CALL_OPEN};
	u32 version = HELPER_VERSION;
	h->dev->ops->info(h->dev, &info);
	snprintf(c.name, sizeof c.name, "%s", info.spec);
	if (helper_send(h->socket, &version, sizeof version))
		helper_send(h->socket, &c, sizeof c); /* on failure helper_begin reports the error */
}

static tl_status start(struct helper *h)
{
	int ends[2];
	posix_spawn_file_actions_t files;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return failed(TL_ERR_DRIVER, "cannot create a socket for '%s': %s", h->command[0], strerror(errno));
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, ends[1], STDIN_FILENO);
	int error = posix_spawnp(&h->pid, h->command[0], &files, NULL, (char *const *)h->command, environ);
	posix_spawn_file_actions_destroy(&files);
	close(ends[1]);
	h->socket = ends[0];
	h->broken = false;
	if (error) {
		h->pid = 0;
		close(h->socket);
		return failed(TL_ERR_FILE, "'%s' cannot be started: %s", h->command[0], strerror(error));
	}
	send_open(h);
	return TL_OK;
}

/* Does not wait for work of the process. Another part of the program may have reaped the process. */
static void end(struct helper *h)
{
	if (!h->pid)
		return;
	close(h->socket);
	kill(h->pid, SIGKILL);
	while (waitpid(h->pid, NULL, 0) < 0 && errno == EINTR)
		;
	h->pid = 0;
	h->loaded.len = 0;
}

bool helper_broken(const struct helper *h)
{
	return !h->pid || h->broken;
}

static tl_status gone(struct helper *h)
{
	end(h);
	return failed(TL_ERR_DRIVER, "the helper process '%s' has ended or does not answer", h->command[0]);
}

static tl_status receive(struct helper *h, double *cost, int patience_ms)
{
	struct helper_reply r;
	if (!helper_receive(h->socket, &r, sizeof r, patience_ms))
		return gone(h);
	r.text[sizeof r.text - 1] = 0;
	h->broken = r.broken;
	if (cost)
		*cost = r.cost;
	return r.status ? failed_text(r.status, r.text) : TL_OK;
}

/* A call with its bytes. *cost, which may be NULL, receives the cost in the reply. */
static tl_status request(struct helper *h, const struct helper_call *c, const void *bytes, double *cost)
{
	if (!h->pid || !helper_send(h->socket, c, sizeof *c) || !helper_send(h->socket, bytes, c->bytes))
		return gone(h);
	return receive(h, cost, h->patience_ms + (c->kind == CALL_RUN ? h->copying_ms : 0));
}

/* --- memory ------------------------------------------------------------------------------------------------------ */

static tl_status copy_memory(struct helper *h, const struct kept *k, void *through)
{
	struct helper_call c = {.kind = CALL_MEMORY, .memory = *k};
	snprintf(c.name, sizeof c.name, "%s", k->name);
	tl_status s = request(h, &c, NULL, NULL);
	for (size_t at = 0; at < k->size && !s; at += HELPER_CHUNK) {
		c = (struct helper_call){.kind = CALL_WRITE,
					 .bytes = (u32)MIN(k->size - at, (size_t)HELPER_CHUNK),
					 .to = (u64)(uintptr_t)k->at + at};
		s = device_read(h->dev, through, k->at + at, c.bytes);
		if (!s)
			s = request(h, &c, through, NULL);
	}
	return s;
}

tl_status helper_begin(struct helper *h, const struct saved_memory *m)
{
	if (h->broken)
		end(h);
	tl_status s = h->pid ? TL_OK : start(h);
	void *through = malloc(HELPER_CHUNK);
	if (!s && !through)
		s = failed(TL_ERR_MEMORY, "out of host memory");
	if (!s)
		s = receive(h, NULL, h->patience_ms); /* the answer to CALL_OPEN */
	u64 bytes = 0;
	for (u32 i = 0; i < m->at.len && !s; i++) {
		s = copy_memory(h, &m->at.at[i], through);
		bytes += m->at.at[i].size;
	}
	h->copying_ms = (int)MIN(bytes / BYTES_PER_MS, (u64)INT_MAX / 2);
	free(through);
	return s;
}

/* --- kernels ----------------------------------------------------------------------------------------------------- */

/* Loads the image in the process if it is not loaded yet. */
static tl_status load(struct helper *h, const struct image *im, u32 *number)
{
	for (*number = 0; *number < h->loaded.len; ++*number)
		if (h->loaded.at[*number] == im)
			return TL_OK;
	struct arena a = {0};
	struct cleanup c;
	size_t size;
	cleanup_arena(&c, &a);
	const char *bytes = image_write(im, &a, &size);
	tl_status s = request(h, &(struct helper_call){.kind = CALL_LOAD, .bytes = (u32)size}, bytes, NULL);
	cleanup_run(&c);
	if (!s)
		vec_push(&h->arena, &h->loaded, im);
	return s;
}

tl_status helper_run(struct helper *h, const struct trial *t, double *cost)
{
	struct helper_call c = {.kind = CALL_RUN, .trial = *t};
	tl_status s = load(h, t->image, &c.image);
	return s ? s : request(h, &c, NULL, cost);
}

/* --- a helper ---------------------------------------------------------------------------------------------------- */

tl_status helper_open(struct device *dev, const char *const *command, int patience_ms, struct helper **out)
{
	struct helper *h = calloc(1, sizeof *h);
	if (!h)
		return failed(TL_ERR_MEMORY, "out of host memory");
	h->dev = dev;
	h->command = command;
	h->patience_ms = patience_ms;
	tl_status s = start(h);
	if (s)
		free(h);
	else
		*out = h;
	return s;
}

void helper_close(struct helper *h)
{
	end(h);
	arena_free(&h->arena);
	free(h);
}
