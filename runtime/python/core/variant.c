/* The properties of a launch that tell variants of a kernel apart: a hash of the types, the compile-time values and the
 * specialisation of its arguments, and of its options. A launcher remembers the hashes of its launches. The first
 * launch of each variant goes through Python code, which knows the hooks; the library itself decides which
 * code is compiled. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9E3779B97F4A7C15u;
	return h ^ h >> 29;
}

static uint64_t mix_text(uint64_t h, const char *s)
{
	for (; *s; s++)
		h = mix(h, (unsigned char)*s);
	return mix(h, 256);
}

/* An integer: its value, if it is a compile-time value; else its type, and the facts that specialise the code. */
static uint64_t mix_integer(uint64_t h, const tl_arg *x, unsigned flags)
{
	uint64_t v = (uint64_t)x->i;
	if (x->constant == 1 || flags & PARAMETER_CONSTEXPR)
		return mix(mix(h, v), x->kind);
	bool wide = x->kind == TL_ARG_UINT ? v > INT32_MAX : x->i < INT32_MIN || x->i > INT32_MAX;
	unsigned type = x->typed ? x->dtype : !wide ? TL_I32 : x->kind == TL_ARG_UINT ? TL_U64 : TL_I64;
	unsigned properties = (v == 1) | (v % 16 == 0) << 1;
	if (flags & PARAMETER_ANY_ALIGNMENT)
		properties &= 1;
	if (x->constant == 2 && !(flags & PARAMETER_ANY_ALIGNMENT))
		properties = 0;
	return mix(h, type << 8 | properties);
}

static uint64_t mix_descriptor(uint64_t h, const tl_descriptor *d)
{
	h = mix(h, (unsigned)d->dtype << 8 | (unsigned)d->rank);
	for (int i = 0; i < d->rank && i < TL_MAX_RANK; i++)
		h = mix(h, (uint64_t)d->block_shape[i]);
	return mix(h, d->pads_with_nan | d->rounds_to_tf32 << 1);
}

static uint64_t mix_arg(uint64_t h, const tl_arg *x, unsigned flags)
{
	bool integer = x->kind == TL_ARG_INT || x->kind == TL_ARG_UINT;
	h = mix(h, (unsigned)x->kind << 16 | (integer ? 0u : (unsigned)x->dtype << 8) | x->constant);
	switch (x->kind) {
	case TL_ARG_PTR: return mix(h, x->constant != 2 && (uintptr_t)x->ptr % 16 == 0);
	case TL_ARG_INT:
	case TL_ARG_UINT: return mix_integer(h, x, flags);
	case TL_ARG_FLOAT:
	case TL_ARG_BOOL: {
		uint64_t v = x->kind == TL_ARG_BOOL ? x->i != 0 : 0;
		if (x->kind == TL_ARG_FLOAT)
			memcpy(&v, &x->f, sizeof v);
		return x->constant == 1 || flags & PARAMETER_CONSTEXPR ? mix(h, v) : h;
	}
	case TL_ARG_STR:
	case TL_ARG_FUNC: return x->s ? mix_text(h, x->s) : h;
	case TL_ARG_TUPLE:
		h = mix(h, x->tuple->len);
		for (size_t i = 0; i < x->tuple->len; i++)
			h = mix_arg(h, &x->tuple->items[i], flags);
		for (size_t i = 0; x->tuple->names && i < x->tuple->len; i++)
			h = mix_text(h, x->tuple->names[i]);
		return h;
	case TL_ARG_DESCRIPTOR: return mix_descriptor(h, x->descriptor);
	case TL_ARG_NONE:
	case TL_ARG_TYPE:
	case TL_ARG_OPEN: return h;
	}
	return h;
}

uint64_t variant_of(const struct arguments *a, const char *flags, const tl_config *c)
{
	uint64_t h = mix(0, a->place == PLACE_CUDA ? (uint64_t)a->device + 1 : 0);
	h = mix(h, (uint64_t)(c->num_warps ? c->num_warps : 4));
	h = mix(h, (uint64_t)(c->num_stages ? c->num_stages : 3));
	h = mix(h, (uint64_t)(uint32_t)c->maxnreg << 32 | (uint32_t)c->group_pids);
	h = mix(h, (uint64_t)(uint32_t)c->max_ctas);
	h = mix(h, (unsigned)c->debug | (unsigned)c->launch_cooperative_grid << 1 | (unsigned)c->launch_pdl << 2);
	h = mix(h, (unsigned)(c->wraps != 0) | (unsigned)(c->fp_fusion == TL_FP_FUSION_OFF) << 1 |
			   (unsigned)(c->ftz == TL_FTZ_OFF) << 2);
	for (Py_ssize_t i = 0; i < a->len; i++)
		h = mix_arg(h, &a->at[i], (unsigned char)flags[i]);
	return h ? h : 1; /* 0 is an empty slot */
}

/* --- the set of hashes -------------------------------------------------------------------------------------------- */

bool variants_have(const struct variants *v, uint64_t h)
{
	if (!v->size)
		return false;
	for (size_t i = (size_t)h & (v->size - 1); v->slots[i]; i = (i + 1) & (v->size - 1))
		if (v->slots[i] == h)
			return true;
	return false;
}

static void insert(struct variants *v, uint64_t h)
{
	size_t i = (size_t)h & (v->size - 1);
	while (v->slots[i])
		i = (i + 1) & (v->size - 1);
	v->slots[i] = h;
	v->len++;
}

void variants_add(struct variants *v, uint64_t h)
{
	if (variants_have(v, h))
		return;
	if (2 * (v->len + 1) > v->size) {
		struct variants larger = {NULL, 0, v->size ? 2 * v->size : 16};
		larger.slots = calloc(larger.size, sizeof *larger.slots);
		if (!larger.slots)
			return; /* the next launch goes through Python code again */
		for (size_t i = 0; i < v->size; i++)
			if (v->slots[i])
				insert(&larger, v->slots[i]);
		free(v->slots);
		*v = larger;
	}
	insert(v, h);
}

void variants_clear(struct variants *v)
{
	free(v->slots);
	*v = (struct variants){NULL, 0, 0};
}
