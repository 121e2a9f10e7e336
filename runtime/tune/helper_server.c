/* The work of the tuner's helper process. */
#include <stdlib.h>

#include "runtime/tune/helper_protocol.h"

struct loaded_kernel {
	struct image image;
	void *code;
};

struct server {
	int socket;
	struct arena arena;
	struct trials trials; /* the device is NULL until it is opened */
	VEC(u64) origins;     /* the address in the tuner's process, for each of trials.memory */
	VEC(struct loaded_kernel *) kernels;
	bool saved; /* the first run has saved the memory */
	/* the current call */
	struct helper_call call;
	void *bytes;
	struct helper_reply reply;
};

/* The address here of an address in the tuner's process. */
static u64 translate(const struct server *v, u64 p)
{
	for (u64 end = 0; end < 2; end++) /* the end of a region may be another region's first byte */
		for (u32 i = 0; i < v->origins.len; i++) {
			const struct kept *k = &v->trials.memory.at.at[i];
			u64 off = p - v->origins.at[i];
			if (off < k->size + end)
				return (u64)(uintptr_t)k->at + off;
		}
	return p;
}

static tl_status open_device(struct server *v)
{
	tl_status s = device_open(v->call.name, &v->trials.dev);
	v->trials.memory = (struct saved_memory){.dev = v->trials.dev, .arena = &v->arena};
	return s;
}

/* The copy has the same alignment as the memory, up to the alignment of allocations. */
static tl_status add_memory(struct server *v)
{
	enum { ALIGN = 512 };
	struct kept k = v->call.memory;
	size_t off = (uintptr_t)k.at % ALIGN;
	void *block = NULL;
	tl_status s = v->trials.dev->ops->alloc(v->trials.dev, k.size + off, &block);
	if (s)
		return s;
	vec_push(&v->arena, &v->origins, (u64)(uintptr_t)k.at);
	k.at = (char *)block + off;
	k.name = arena_str(&v->arena, v->call.name, strlen(v->call.name));
	vec_push(&v->arena, &v->trials.memory.at, k);
	return TL_OK;
}

static tl_status load(struct server *v)
{
	struct device *dev = v->trials.dev;
	struct loaded_kernel *k = arena_new(&v->arena, struct loaded_kernel);
	const char *why = image_read(&k->image, v->bytes, v->call.bytes);
	if (why)
		return failed(TL_ERR_FILE, "%s", why);
	tl_status s = dev->ops->load(dev, &(struct device_load){.image = &k->image}, &k->code);
	if (s)
		image_free(&k->image);
	else
		vec_push(&v->arena, &v->kernels, k);
	return s;
}

static tl_status run(struct server *v)
{
	struct trial *t = &v->call.trial;
	if (v->call.image >= v->kernels.len)
		return failed(TL_ERR_ARGUMENT, "the helper has no image %u", v->call.image);
	const struct loaded_kernel *k = v->kernels.at[v->call.image];
	tl_status s = v->saved ? TL_OK : memory_save(&v->trials.memory);
	if (s)
		return s;
	v->saved = true;
	t->image = &k->image;
	t->code = k->code;
	t->config.stream = NULL;
	for (u32 i = 0; i < k->image.nslots; i++)
		if (k->image.slots[i].pointers && t->bits[i])
			t->bits[i] = translate(v, t->bits[i]);
	return trial_run(&v->trials, t, &v->reply.cost);
}

static tl_status do_call(struct server *v)
{
	struct device *dev = v->trials.dev;
	if (!dev != (v->call.kind == CALL_OPEN))
		return failed(TL_ERR_ARGUMENT, "the helper's device must be opened once, before all other calls");
	switch (v->call.kind) {
	case CALL_OPEN: return open_device(v);
	case CALL_MEMORY: return add_memory(v);
	case CALL_WRITE:
		return device_write(dev, (void *)(uintptr_t)translate(v, v->call.to), v->bytes, v->call.bytes);
	case CALL_LOAD: return load(v);
	case CALL_RUN: return run(v);
	}
	return failed(TL_ERR_ARGUMENT, "the helper does not know call %d", (int)v->call.kind);
}

static void do_call_body(void *arg)
{
	struct server *v = arg;
	v->reply.status = do_call(v);
}

static void make_reply(struct server *v)
{
	v->reply = (struct helper_reply){.cost = 0};
	v->trials.ended = true;
	tl_status s = caught(do_call_body, v);
	v->reply.status = s ? s : v->reply.status;
	if (!v->reply.status)
		return;
	snprintf(v->reply.text, sizeof v->reply.text, "%s", tl_error(NULL));
	v->reply.broken = v->trials.dev && trials_broken(&v->trials);
}

/* Answers a call. False: the connection is closed. */
static bool answer(struct server *v)
{
	if (!helper_receive(v->socket, &v->call, sizeof v->call, -1) || v->call.bytes > HELPER_MOST)
		return false;
	v->call.name[sizeof v->call.name - 1] = 0;
	v->bytes = malloc((size_t)v->call.bytes + 1);
	bool good = v->bytes && helper_receive(v->socket, v->bytes, v->call.bytes, -1);
	if (good) {
		make_reply(v);
		good = helper_send(v->socket, &v->reply, sizeof v->reply);
	}
	free(v->bytes);
	return good;
}

/* False, after a reply with the error: the tuner belongs to another version of libtl. */
static bool same_version(int socket)
{
	u32 version;
	if (!helper_receive(socket, &version, sizeof version, -1))
		return false;
	if (version == HELPER_VERSION)
		return true;
	struct helper_reply r = {.status = TL_ERR_ARGUMENT, .text = "the helper belongs to another version of libtl"};
	helper_send(socket, &r, sizeof r);
	return false;
}

void tl_tuner_serve(int socket)
{
	struct server v = {.socket = socket};
	if (same_version(socket))
		while (answer(&v))
			;
	arena_free(&v.arena);
}
