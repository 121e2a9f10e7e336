#include "runtime/tune/tune_memory.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/image/error.h"

static bool overlap(const struct kept *a, const struct kept *b)
{
	return a->at < b->at + b->size && b->at < a->at + a->size;
}

tl_status memory_add(struct saved_memory *m, const struct touched *t)
{
	void *base = t->arg->ptr;
	size_t size = t->arg->bytes;
	bool saves = t->writes || t->reset || t->restore;
	if ((!saves && !m->reads) || !t->arg->ptr)
		return TL_OK;
	bool known = size || (m->dev->ops->allocation && m->dev->ops->allocation(m->dev, t->arg->ptr, &base, &size));
	if (!known)
		return failed(TL_ERR_ARGUMENT,
			      "tuning copies the memory that '%s' points to, and its size is not known: pass it with "
			      "tl_range",
			      t->name);
	struct kept new = {.name = t->name,
			   .at = base,
			   .size = size,
			   .dtype = (enum dtype)t->arg->dtype,
			   .saves = saves,
			   .renews = saves && (t->reads || t->restore),
			   .resets = t->reset};
	for (u32 i = 0; i < m->at.len; i++) {
		struct kept *k = &m->at.at[i];
		if (!overlap(k, &new))
			continue;
		/* replace both by a range that spans them */
		if (k->saves || !new.saves) {
			new.dtype = k->dtype;
			new.name = k->name;
		}
		new.saves |= k->saves;
		new.renews |= k->renews;
		new.resets |= k->resets;
		char *end = MAX(new.at + new.size, k->at + k->size);
		new.at = MIN(new.at, k->at);
		new.size = (size_t)(end - new.at);
		*k = m->at.at[--m->at.len];
		i = UINT32_MAX; /* repeat for all other ranges */
	}
	vec_push(m->arena, &m->at, new);
	return TL_OK;
}

/* Copies within the device, for devices with separate memory. */
static tl_status copy(struct saved_memory *m, void *dst, const void *src, size_t size)
{
	tl_status s = m->dev->ops->queue->copy(m->dev, dst, m->dev, src, size, NULL);
	return s ? s : m->dev->ops->synchronize(m->dev);
}

static tl_status save(struct saved_memory *m, struct kept *k)
{
	const struct device_ops *ops = m->dev->ops;
	if (!k->saves || k->saved)
		return TL_OK;
	if (ops->has_streams && !ops->alloc(m->dev, k->size, &k->saved)) {
		k->on_device = true;
		return copy(m, k->saved, k->at, k->size);
	}
	k->saved = malloc(k->size + 1);
	if (!k->saved)
		return failed(TL_ERR_MEMORY, "out of memory to save the %zu bytes of '%s' during tuning", k->size,
			      k->name);
	return device_read(m->dev, k->saved, k->at, k->size);
}

tl_status memory_save(struct saved_memory *m)
{
	tl_status s = TL_OK;
	for (u32 i = 0; i < m->at.len && !s; i++)
		s = save(m, &m->at.at[i]);
	return s;
}

static tl_status restore(struct saved_memory *m, const struct kept *k)
{
	if (!k->saved || !k->size)
		return TL_OK;
	return k->on_device ? copy(m, k->at, k->saved, k->size)
			    : device_write(m->dev, k->at, k->saved, k->size);
}

tl_status memory_renew(struct saved_memory *m)
{
	tl_status s = TL_OK;
	for (u32 i = 0; i < m->at.len && !s; i++) {
		const struct kept *k = &m->at.at[i];
		if (k->resets && k->size)
			s = device_fill(m->dev, k->at, 0, k->size);
		else if (k->renews)
			s = restore(m, k);
	}
	return s;
}

tl_status memory_restore(struct saved_memory *m)
{
	tl_status s = TL_OK;
	for (u32 i = 0; i < m->at.len; i++) {
		tl_status r = restore(m, &m->at.at[i]);
		s = s ? s : r;
	}
	return s;
}

static tl_status read_all(struct saved_memory *m, const struct kept *k, char **out)
{
	*out = malloc(k->size + 1);
	if (!*out)
		return failed(TL_ERR_MEMORY, "out of memory to compare the %zu bytes of '%s'", k->size, k->name);
	return k->size ? device_read(m->dev, *out, k->at, k->size) : TL_OK;
}

tl_status memory_keep_result(struct saved_memory *m)
{
	tl_status s = TL_OK;
	for (u32 i = 0; i < m->at.len && !s; i++)
		if (m->at.at[i].saves)
			s = read_all(m, &m->at.at[i], &m->at.at[i].result);
	return s;
}

static double number(enum dtype d, const char *at)
{
	u64 bits = 0;
	memcpy(&bits, at, (size_t)dtype_bytes(d));
	return dtype_decode_number(d, bits);
}

static const char *compare(struct arena *a, const struct kept *k, const char *is, double tolerance)
{
	size_t size = (size_t)dtype_bytes(k->dtype);
	for (size_t i = 0; i + size <= k->size; i += size) {
		if (!memcmp(is + i, k->result + i, size))
			continue;
		double x = number(k->dtype, is + i), y = number(k->dtype, k->result + i);
		bool both_nan = isnan(x) && isnan(y);
		if (!both_nan && !(fabs(x - y) <= tolerance * (1 + fabs(y))))
			return arena_printf(a, "element %zu of '%s' is %g, but %g with the first configuration",
					    i / size, k->name, x, y);
	}
	return NULL;
}

tl_status memory_compare(struct saved_memory *m, double tolerance, const char **difference)
{
	tl_status s = TL_OK;
	*difference = NULL;
	for (u32 i = 0; i < m->at.len && !s && !*difference; i++) {
		char *is = NULL;
		if (!m->at.at[i].result)
			continue;
		s = read_all(m, &m->at.at[i], &is);
		if (!s)
			*difference = compare(m->arena, &m->at.at[i], is, tolerance);
		free(is);
	}
	return s;
}

void memory_free(struct saved_memory *m)
{
	for (u32 i = 0; i < m->at.len; i++) {
		struct kept *k = &m->at.at[i];
		if (!k->on_device)
			free(k->saved);
		else if (!m->lost)
			m->dev->ops->free(m->dev, k->saved);
		free(k->result);
	}
	m->at.len = 0;
}
