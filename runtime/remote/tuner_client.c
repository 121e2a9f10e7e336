#include "runtime/remote/tuner_client.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/image/error.h"
#include "runtime/remote/tuner_rpc.h"

extern char **environ;

struct region {
	const char *name;
	char *at; /* on the device */
	size_t size;
	u64 copy; /* in the process */
};

/* A kernel, loaded once for each process. */
struct mirrored {
	const struct image *image;
	u64 kernel; /* the process's handle; 0: not loaded */
};

struct mirror {
	struct device device; /* first */
	struct device *of;
	const char *const *command;
	char spec[32];
	int patience_ms;
	pid_t pid; /* 0: there is no process */
	int socket;
	bool greeted; /* the process has answered */
	struct arena arena;
	VEC(struct region) regions;
	VEC(struct mirrored *) kernels;
};

/* --- the process ------------------------------------------------------------------------------------------------- */

static tl_status start(struct mirror *m)
{
	int ends[2];
	posix_spawn_file_actions_t files;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return failed(TL_ERR_DRIVER, "cannot create a socket for '%s': %s", m->command[0], strerror(errno));
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, ends[1], STDIN_FILENO);
	int error = posix_spawnp(&m->pid, m->command[0], &files, NULL, (char *const *)m->command, environ);
	posix_spawn_file_actions_destroy(&files);
	close(ends[1]);
	m->socket = ends[0];
	m->greeted = false;
	if (error) {
		m->pid = 0;
		close(m->socket);
		return failed(TL_ERR_FILE, "'%s' cannot be started: %s", m->command[0], strerror(error));
	}
	const struct call open = {.what = WIRE_OPEN, .bytes = (u32)strlen(m->spec) + 1, .a = WIRE_VERSION};
	if (wire_send(m->socket, &open, sizeof open)) /* on failure the first call reports the error */
		wire_send(m->socket, m->spec, open.bytes);
	return TL_OK;
}

/* Does not wait for work of the process. Another part of the program may have reaped the process. */
static void stop(struct mirror *m)
{
	close(m->socket);
	kill(m->pid, SIGKILL);
	while (waitpid(m->pid, NULL, 0) < 0 && errno == EINTR)
		;
	m->pid = 0;
	for (u32 i = 0; i < m->kernels.len; i++)
		m->kernels.at[i]->kernel = 0;
}

static tl_status gone(struct mirror *m)
{
	if (m->pid)
		stop(m);
	return failed(TL_ERR_DRIVER, "the helper process '%s' has ended or does not answer", m->command[0]);
}

static tl_status receive(struct mirror *m, void *out, size_t size, u64 *value)
{
	struct reply r;
	if (!wire_receive(m->socket, &r, sizeof r, m->patience_ms))
		return gone(m);
	char *text = malloc((size_t)r.text + 1);
	bool good = text && wire_receive(m->socket, text, r.text, m->patience_ms) && (!r.bytes || r.bytes == size) &&
		    wire_receive(m->socket, out, r.bytes, m->patience_ms);
	tl_status s = r.status;
	if (text)
		text[r.text] = 0;
	if (!good)
		s = gone(m);
	else if (s)
		failed_text(s, text);
	if (value)
		*value = r.value;
	free(text);
	return s;
}

/* A call with its bytes. The reply's bytes go to `out`, and its value to *value, which may be NULL. */
static tl_status request(struct mirror *m, struct call c, const void *bytes, void *out, size_t size, u64 *value)
{
	if (!m->pid)
		return gone(m);
	if (!m->greeted) {
		tl_status s = receive(m, NULL, 0, NULL);
		if (s)
			return s;
		m->greeted = true;
	}
	if (!wire_send(m->socket, &c, sizeof c) || !wire_send(m->socket, bytes, c.bytes))
		return gone(m);
	return receive(m, out, size, value);
}

/* --- addresses -----------------------------------------------------------------------------------------------------
 */

/* Marks addresses of the process, which no device uses. */
static const u64 own = (u64)1 << 63;

static u64 translate(const struct mirror *m, u64 p)
{
	for (u64 end = 0; end < 2; end++) /* the end of a region may be another region's first byte */
		for (u32 i = 0; i < m->regions.len; i++) {
			const struct region *r = &m->regions.at[i];
			u64 off = p - (u64)(uintptr_t)r->at;
			if (off < r->size + end)
				return r->copy + off;
		}
	return p & ~own;
}

static u64 address(const struct mirror *m, const void *p)
{
	return translate(m, (u64)(uintptr_t)p);
}

tl_status mirror_add(struct device *mirror, const char *name, const tl_arg *a)
{
	struct mirror *m = (struct mirror *)mirror;
	struct region new = {.name = name, .at = a->ptr, .size = a->bytes};
	void *base;
	if (!new.at)
		return TL_OK;
	if (!new.size) {
		if (!m->of->ops->allocation || !m->of->ops->allocation(m->of, a->ptr, &base, &new.size))
			return failed(TL_ERR_ARGUMENT,
				      "configurations are tried in a helper process, with a copy of the memory that "
				      "'%s' points to, and its size is not known: pass it with tl_range",
				      name);
		new.at = base;
	}
	for (u32 i = 0; i < m->regions.len; i++) {
		const struct region *r = &m->regions.at[i];
		if (r->at >= new.at + new.size || new.at >= r->at + r->size)
			continue;
		char *end = MAX(new.at + new.size, r->at + r->size);
		new.at = MIN(new.at, r->at);
		new.size = (size_t)(end - new.at);
		m->regions.at[i] = m->regions.at[--m->regions.len];
		i = UINT32_MAX; /* repeat for all other regions */
	}
	vec_push(&m->arena, &m->regions, new);
	return TL_OK;
}

/* --- memory --------------------------------------------------------------------------------------------------------
 */

static tl_status mirror_alloc(struct device *device, size_t size, void **out)
{
	u64 p = 0;
	tl_status s = request((struct mirror *)device, (struct call){.what = WIRE_ALLOC, .a = size}, NULL, NULL, 0, &p);
	*out = (void *)(uintptr_t)(p | own);
	return s;
}

static void mirror_free(struct device *device, void *p)
{
	struct mirror *m = (struct mirror *)device;
	if (m->pid)
		request(m, (struct call){.what = WIRE_FREE, .a = address(m, p)}, NULL, NULL, 0, NULL);
}

static tl_status mirror_write(struct device *device, void *dst, const void *src, size_t size, void *stream)
{
	(void)stream; /* of these functions: NULL */
	struct mirror *m = (struct mirror *)device;
	tl_status s = TL_OK;
	for (size_t at = 0; at < size && !s; at += WIRE_CHUNK) {
		const struct call c = {.what = WIRE_WRITE,
				       .bytes = (u32)MIN(size - at, (size_t)WIRE_CHUNK),
				       .a = address(m, dst) + at};
		s = request(m, c, (const char *)src + at, NULL, 0, NULL);
	}
	return s;
}

static tl_status mirror_read(struct device *device, void *dst, const void *src, size_t size, void *stream)
{
	(void)stream;
	struct mirror *m = (struct mirror *)device;
	tl_status s = TL_OK;
	for (size_t at = 0; at < size && !s; at += WIRE_CHUNK) {
		size_t n = MIN(size - at, (size_t)WIRE_CHUNK);
		const struct call c = {.what = WIRE_READ, .a = address(m, src) + at, .b = n};
		s = request(m, c, NULL, (char *)dst + at, n, NULL);
	}
	return s;
}

static tl_status mirror_fill(struct device *device, void *dst, u64 element, u32 width, size_t count, void *stream)
{
	tl_assert(width == 1 && !stream);
	struct mirror *m = (struct mirror *)device;
	return request(m, (struct call){.what = WIRE_FILL, .a = address(m, dst), .b = count, .c = element}, NULL, NULL,
		       0,
		       NULL);
}

static tl_status mirror_copy(struct device *device, void *dst, struct device *from, const void *src, size_t size,
			     void *stream)
{
	struct mirror *m = (struct mirror *)device;
	tl_assert(from == device && !stream);
	return request(m, (struct call){.what = WIRE_COPY, .a = address(m, dst), .b = size, .c = address(m, src)}, NULL,
		       NULL, 0, NULL);
}

static bool mirror_allocation(struct device *device, const void *p, void **base, size_t *size)
{
	struct device *of = ((struct mirror *)device)->of;
	return of->ops->allocation && of->ops->allocation(of, p, base, size);
}

/* Copies a region with the same alignment as on the device, up to that of its allocations. */
static tl_status copy_region(struct mirror *m, struct region *r, void *through)
{
	enum { ALIGN = 512 };
	u64 block = 0, off = (uintptr_t)r->at % ALIGN;
	tl_status s = request(m, (struct call){.what = WIRE_ALLOC, .a = r->size + off}, NULL, NULL, 0, &block);
	r->copy = block + off;
	for (size_t at = 0; at < r->size && !s; at += WIRE_CHUNK) {
		size_t n = MIN(r->size - at, (size_t)WIRE_CHUNK);
		s = device_read(m->of, through, r->at + at, n);
		if (!s)
			s = mirror_write(&m->device, r->at + at, through, n, NULL);
	}
	return s;
}

tl_status mirror_begin(struct device *mirror)
{
	struct mirror *m = (struct mirror *)mirror;
	tl_status s = m->pid ? TL_OK : start(m);
	void *through = malloc(WIRE_CHUNK);
	if (!s && !through)
		s = failed(TL_ERR_MEMORY, "out of host memory");
	for (u32 i = 0; i < m->regions.len && !s; i++)
		s = copy_region(m, &m->regions.at[i], through);
	free(through);
	return s;
}

/* --- kernels -------------------------------------------------------------------------------------------------------
 */

tl_status mirror_load(struct device *mirror, const struct image *im, void **out)
{
	struct mirror *m = (struct mirror *)mirror;
	struct mirrored *k = NULL;
	for (u32 i = 0; i < m->kernels.len && !k; i++)
		k = m->kernels.at[i]->image == im ? m->kernels.at[i] : NULL;
	if (!k) {
		k = arena_new(&m->arena, struct mirrored);
		k->image = im;
		vec_push(&m->arena, &m->kernels, k);
	}
	*out = k;
	if (k->kernel)
		return TL_OK;
	struct arena a = {0};
	struct cleanup c;
	size_t size;
	cleanup_arena(&c, &a);
	const char *bytes = image_write(im, &a, &size);
	tl_status s = request(m, (struct call){.what = WIRE_LOAD, .bytes = (u32)size}, bytes, NULL, 0, &k->kernel);
	cleanup_run(&c);
	return s;
}

static tl_status mirror_map(struct device *device, const struct tensor_map_shape *box, void *out)
{
	struct mirror *m = (struct mirror *)device;
	struct tensor_map_shape copy = *box;
	copy.base = (void *)(uintptr_t)address(m, box->base);
	return request(m, (struct call){.what = WIRE_MAP, .bytes = sizeof copy}, &copy, out, TENSOR_MAP_BYTES, NULL);
}

static struct wire_launch wired(const struct mirror *m, const struct device_launch *l)
{
	const struct mirrored *k = l->kernel;
	struct wire_launch w = {.kernel = k->kernel,
				.grid = {l->grid[0], l->grid[1], l->grid[2]},
				.nargs = l->nargs - l->nmaps,
				.nmaps = l->nmaps,
				.cooperative = l->cooperative,
				.pdl = l->pdl,
				.pairs = l->pairs};
	for (u32 i = 0; i < w.nargs; i++)
		w.args[i] = i < k->image->nslots && k->image->slots[i].pointers && l->args[i] ? translate(m, l->args[i])
											      : l->args[i];
	for (u32 i = 0; i < w.nmaps; i++)
		memcpy(w.maps[i], (const void *)(uintptr_t)l->args[w.nargs + i], sizeof w.maps[i]);
	return w;
}

static tl_status mirror_try(struct device *device, const struct device_launch *l, int limit_ms, bool *ended)
{
	struct mirror *m = (struct mirror *)device;
	const struct wire_launch w = wired(m, l);
	u64 value = true;
	tl_status s =
		request(m, (struct call){.what = WIRE_TRY, .bytes = sizeof w, .a = (u64)limit_ms}, &w, NULL, 0, &value);
	*ended = value;
	return s;
}

static tl_status mirror_time(struct device *device, const struct device_launch *l, int warmup, int repeats, double *ms)
{
	struct mirror *m = (struct mirror *)device;
	const struct wire_launch w = wired(m, l);
	const struct call c = {.what = WIRE_TIME, .bytes = sizeof w, .a = (u64)warmup, .b = (u64)repeats};
	return request(m, c, &w, ms, (size_t)repeats * sizeof *ms, NULL);
}

static tl_status mirror_synchronize(struct device *device)
{
	return request((struct mirror *)device, (struct call){.what = WIRE_SYNCHRONIZE}, NULL, NULL, 0, NULL);
}

/* --- a mirror ------------------------------------------------------------------------------------------------------
 */

static const struct queue_ops queue = {
	.write = mirror_write, .read = mirror_read, .fill = mirror_fill, .copy = mirror_copy};
static const struct device_ops mirror_ops = {
	.name = "mirror",
	.has_streams = true,
	.queue = &queue,
	.alloc = mirror_alloc,
	.free = mirror_free,
	.time = mirror_time,
	.try = mirror_try,
	.synchronize = mirror_synchronize,
	.allocation = mirror_allocation,
	.tensor_map = mirror_map,
};

tl_status mirror_open(struct device *of, const char *const *command, int patience_ms, struct device **out)
{
	tl_device_info info = {.kind = ""};
	struct mirror *m = calloc(1, sizeof *m);
	if (!m)
		return failed(TL_ERR_MEMORY, "out of host memory");
	of->ops->info(of, &info);
	m->device = (struct device){.ops = &mirror_ops, .num_sms = of->num_sms};
	m->of = of;
	m->command = command;
	m->patience_ms = patience_ms;
	memcpy(m->spec, info.spec, sizeof m->spec);
	tl_status s = start(m);
	if (s)
		free(m);
	else
		*out = &m->device;
	return s;
}

void mirror_end(struct device *mirror)
{
	struct mirror *m = (struct mirror *)mirror;
	if (m->pid)
		stop(m);
}

void mirror_close(struct device *mirror)
{
	struct mirror *m = (struct mirror *)mirror;
	mirror_end(mirror);
	arena_free(&m->arena);
	free(m);
}
