/* The tuner's helper process: executes the calls of the tuner's mirror (tuner_client.c) on its device. */
#include <stdlib.h>

#include "runtime/remote/tuner_rpc.h"

struct server {
	struct device *dev; /* NULL until it is opened */
	int socket;
};

/* A call and its reply. */
struct answer {
	struct server *server;
	struct call call;
	void *bytes, *out; /* malloc'ed; bytes end in a 0 */
	struct reply reply;
};

static void *address(u64 p)
{
	return (void *)(uintptr_t)p;
}

static tl_status room(struct answer *a, size_t size)
{
	a->out = malloc(size);
	if (!a->out)
		return failed(TL_ERR_MEMORY, "out of host memory");
	a->reply.bytes = (u32)size;
	return TL_OK;
}

static tl_status open_device(struct answer *a)
{
	if (a->call.a != WIRE_VERSION)
		return failed(TL_ERR_ARGUMENT, "it belongs to another version of libtl");
	return device_open(a->bytes, &a->server->dev);
}

/* The image is not kept, because the device has loaded it. */
static tl_status load(struct answer *a)
{
	struct image im;
	void *kernel = NULL;
	const char *why = image_read(&im, a->bytes, a->call.bytes);
	if (why)
		return failed(TL_ERR_FILE, "%s", why);
	struct device *dev = a->server->dev;
	tl_status s = dev->ops->load(dev, &(struct device_load){.image = &im}, &kernel);
	a->reply.value = (u64)(uintptr_t)kernel;
	image_free(&im);
	return s;
}

static tl_status run(struct answer *a, tl_status (*body)(struct answer *a, const struct device_launch *l))
{
	const struct wire_launch *w = a->bytes;
	_Alignas(TENSOR_MAP_ALIGN) u8 maps[MAX_TENSOR_MAPS][TENSOR_MAP_BYTES];
	u64 args[MAX_KERNEL_PARAMS + GRID_PARAMS + MAX_TENSOR_MAPS];
	memcpy(maps, w->maps, sizeof maps);
	memcpy(args, w->args, w->nargs * sizeof *args);
	for (u32 i = 0; i < w->nmaps; i++)
		args[w->nargs + i] = (u64)(uintptr_t)maps[i];
	return body(a, &(struct device_launch){.kernel = address(w->kernel),
					       .grid = {w->grid[0], w->grid[1], w->grid[2]},
					       .args = args,
					       .nargs = w->nargs + w->nmaps,
					       .nmaps = w->nmaps,
					       .cooperative = w->cooperative,
					       .pdl = w->pdl,
					       .pairs = w->pairs});
}

static tl_status try(struct answer *a, const struct device_launch *l)
{
	struct device *dev = a->server->dev;
	bool ended = true;
	tl_status s = dev->ops->try(dev, l, (int)a->call.a, &ended);
	a->reply.value = ended;
	return s;
}

static tl_status time_it(struct answer *a, const struct device_launch *l)
{
	struct device *dev = a->server->dev;
	tl_status s = room(a, a->call.b * sizeof(double));
	return s ? s : dev->ops->time(dev, l, (int)a->call.a, (int)a->call.b, a->out);
}

static tl_status do_call(struct answer *a)
{
	const struct call *c = &a->call;
	struct device *dev = a->server->dev;
	const struct device_ops *ops = dev ? dev->ops : NULL;
	tl_status s;
	void *p = NULL;
	if (!dev != (c->what == WIRE_OPEN))
		return failed(TL_ERR_ARGUMENT, "its device must be opened once, before all other calls");
	switch (c->what) {
	case WIRE_OPEN: return open_device(a);
	case WIRE_ALLOC:
		s = ops->alloc(dev, c->a, &p);
		a->reply.value = (u64)(uintptr_t)p;
		return s;
	case WIRE_FREE: ops->free(dev, address(c->a)); return TL_OK;
	case WIRE_WRITE: return device_write(dev, address(c->a), a->bytes, c->bytes);
	case WIRE_READ: return (s = room(a, c->b)) ? s : device_read(dev, a->out, address(c->a), c->b);
	case WIRE_FILL: return device_fill(dev, address(c->a), (u8)c->c, c->b);
	case WIRE_COPY: return ops->queue->copy(dev, address(c->a), dev, address(c->c), c->b, NULL);
	case WIRE_LOAD: return load(a);
	case WIRE_MAP: return (s = room(a, TENSOR_MAP_BYTES)) ? s : ops->tensor_map(dev, a->bytes, a->out);
	case WIRE_TRY: return run(a, try);
	case WIRE_TIME: return run(a, time_it);
	case WIRE_SYNCHRONIZE: return ops->synchronize(dev);
	}
	return failed(TL_ERR_ARGUMENT, "it does not know call %d", (int)c->what);
}

static void answer_body(void *arg)
{
	struct answer *a = arg;
	a->reply.status = do_call(a);
}

/* Answers a call. False: the connection is closed. */
static bool answer(struct server *server)
{
	struct answer a = {.server = server};
	if (!wire_receive(server->socket, &a.call, sizeof a.call, -1) || a.call.bytes > WIRE_MOST)
		return false;
	a.bytes = calloc(1, (size_t)a.call.bytes + 1);
	bool good = a.bytes && wire_receive(server->socket, a.bytes, a.call.bytes, -1);
	if (good) {
		tl_status s = caught(answer_body, &a);
		a.reply.status = s ? s : a.reply.status;
		const char *text = a.reply.status ? tl_error(NULL) : "";
		a.reply.text = (u32)strlen(text);
		a.reply.bytes = a.reply.status ? 0 : a.reply.bytes;
		good = wire_send(server->socket, &a.reply, sizeof a.reply) &&
		       wire_send(server->socket, text, a.reply.text) && wire_send(server->socket, a.out, a.reply.bytes);
	}
	free(a.bytes);
	free(a.out);
	return good;
}

void tl_tuner_serve(int socket)
{
	struct server s = {.socket = socket};
	while (answer(&s))
		;
}
