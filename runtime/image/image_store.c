#include "runtime/image/image_store.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "support/file.h"
#include "support/forked.h"
#include "support/recover.h"

enum { MAX_IMPORT_BYTES = 1 << 28 };

struct entry {
	struct entry *next;
	struct cache_key key;
	const struct image *image; /* NULL: being compiled */
};

struct store {
	atomic_uint owners;
	fork_calls calls;
	pthread_mutex_t lock;
	pthread_cond_t settled;
	struct entry *entries;
};

struct store *store_new(void)
{
	struct store *s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	atomic_init(&s->owners, 1);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->settled, NULL);
	return s;
}

struct store *store_keep(struct store *s)
{
	atomic_fetch_add(&s->owners, 1);
	return s;
}

void store_drop(struct store *s)
{
	if (atomic_fetch_sub(&s->owners, 1) > 1)
		return;
	for (struct entry *e = s->entries, *next; e; e = next) {
		next = e->next;
		free(e);
	}
	pthread_cond_destroy(&s->settled);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

bool store_enter(struct store *s)
{
	return fork_enter(&store_keep(s)->calls);
}

void store_leave(struct store *s)
{
	fork_leave(&s->calls);
	store_drop(s);
}

bool store_empty(struct store *s)
{
	pthread_mutex_lock(&s->lock);
	bool empty = !s->entries;
	pthread_mutex_unlock(&s->lock);
	return empty;
}

static struct entry **find(struct store *s, struct cache_key key)
{
	struct entry **at = &s->entries;
	while (*at && memcmp(&(*at)->key, &key, sizeof key) != 0)
		at = &(*at)->next;
	return at;
}

static void copy_image(const struct image *im, struct image *out)
{
	struct arena a = {0};
	struct cleanup c;
	size_t len;
	cleanup_arena(&c, &a);
	const char *bytes = image_write(im, &a, &len), *why = image_read(out, bytes, len);
	tl_assert(!why);
	cleanup_run(&c);
}

/* Marks the image as being compiled. If memory for the entry runs out, other contexts compile the image too. */
static void claim(struct store *s, struct cache_key key)
{
	struct entry *e = calloc(1, sizeof *e);
	if (!e)
		return;
	*e = (struct entry){.next = s->entries, .key = key};
	s->entries = e;
}

bool store_imports_same(const struct image *im)
{
	struct arena a = {0};
	struct cleanup c;
	cleanup_arena(&c, &a);
	bool same = true;
	for (u32 i = 0; i < im->nimports && same; i++) {
		size_t len = 0;
		const char *text = file_read(&a, im->imports[i].path, MAX_IMPORT_BYTES, &len);
		same = text && hash_bytes(text, len, 0) == im->imports[i].hash;
	}
	cleanup_run(&c);
	return same;
}

bool store_take(struct store *s, struct cache_key key, struct image *out)
{
	struct held h;
	const struct entry *e;
	lock_hold(&h, &s->lock);
	while ((e = *find(s, key)) && !e->image)
		pthread_cond_wait(&s->settled, &s->lock);
	if (e)
		copy_image(e->image, out);
	else
		claim(s, key);
	lock_release(&h);
	if (e && !store_imports_same(out)) {
		image_free(out);
		return false;
	}
	return e;
}

static void remove_entry(struct entry **at)
{
	struct entry *e = *at;
	*at = e->next;
	free(e);
}

void store_settle(struct store *s, struct cache_key key, const struct image *im)
{
	pthread_mutex_lock(&s->lock);
	struct entry **at = find(s, key);
	if (*at && !(*at)->image) {
		(*at)->image = im;
		if (!im)
			remove_entry(at);
	}
	pthread_cond_broadcast(&s->settled);
	pthread_mutex_unlock(&s->lock);
}

void store_forget(struct store *s, const struct image *im)
{
	pthread_mutex_lock(&s->lock);
	for (struct entry **at = &s->entries; *at;)
		if ((*at)->image == im)
			remove_entry(at);
		else
			at = &(*at)->next;
	pthread_mutex_unlock(&s->lock);
}
