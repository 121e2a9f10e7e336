/* TMA tiles: mapping of the bytes of a tile between global and shared memory (PTX ISA, "Tensors"; "Swizzling
 * modes"). */
#include "runtime/sim/bulk.h"

#include <string.h>

enum { UNIT = 16, PARAM_WINDOW_LOG2 = 52 };
/* --- opening ----------------------------------------------------------------------------------------------------- */

/* Host address of a tensor map in a kernel parameter, or in constant or global memory. False after a fault. */
static bool map_at(struct warp *w, const struct instr *i, u32 lane, u64 at, enum ptx_space space, const char **map)
{
	const struct launch *l = w->block->launch;
	if (at % TENSOR_MAP_ALIGN)
		return fault(w, i, 1u << lane, "the tensor map at address 0x%llx is not aligned to %d bytes", (ull)at,
			     TENSOR_MAP_ALIGN);
	if (space == SPACE_GLOBAL || space == SPACE_CONST) {
		*map = global_memory_at(w, i, lane, at, TENSOR_MAP_BYTES, TENSOR_MAP_ALIGN, false);
		return *map;
	}
	if (space != SPACE_PARAM)
		return fault(w, i, 1u << lane,
			     "a tensor map is a parameter of the kernel, or in constant or global memory");
	if (at > l->kernel->param_bytes || l->kernel->param_bytes - at < TENSOR_MAP_BYTES)
		return fault(w, i, 1u << lane, "the tensor map reaches past the end of the kernel's parameters");
	*map = l->params + at;
	return true;
}

/* An H100 reports these copies as illegal instructions, which no manual mentions. */
static bool check_coordinate(const struct transfer *t, u32 n)
{
	const struct flight *f = &t->flight;
	if (t->plan->kind == FROM_SHARED && t->at[n] < 0)
		fault(f->w, f->i, 1u << f->lane,
		      "coordinate %d of dimension %u: only loads may begin before the tensor", t->at[n], n);
	else if (!n && t->at[0] * (i64)t->map.strides[0] % UNIT)
		fault(f->w, f->i, 1u << f->lane,
		      "coordinate %d of the innermost dimension is at byte %lld of the row, not a multiple of %d",
		      t->at[0], t->at[0] * (long long)t->map.strides[0], UNIT);
	return !f->w->block->failed;
}

bool tensor_open(struct transfer *t, struct warp *w, const struct instr *i, u32 lane)
{
	const struct operand *o = &i->ops[t->plan->kind == TO_SHARED ? TRANSFER_FROM : TRANSFER_TO];
	enum ptx_space space = SPACE_GENERIC;
	u64 at = address_of(w, o, lane, &space);
	const char *map = NULL;
	if (!map_at(w, i, lane, at, space, &map))
		return false;
	if (!tensor_map_decode(map, &t->map))
		return fault(w, i, 1u << lane,
			     "there is no tensor map at address 0x%llx: no encoding function wrote these bytes",
			     (ull)at);
	if (t->map.rank != t->plan->rank)
		return fault(w, i, 1u << lane, "the tensor map has %u dimensions, and the copy has %u", t->map.rank,
			     t->plan->rank);
	t->bytes = t->map.box_bytes;
	t->whole = true;
	for (u32 n = 0; n < t->map.rank; n++) {
		t->at[n] = (i32)operand_value(w, &o->items[n], lane, 32);
		if (!check_coordinate(t, n))
			return false;
		i64 last = t->at[n] + (i64)(t->map.box[n] - 1) * t->map.steps[n];
		t->whole &= t->at[n] >= 0 && last < (i64)t->map.sizes[n];
	}
	return true;
}

/* --- pieces ------------------------------------------------------------------------------------------------------ */

static u32 swizzled(const struct tensor_map *m, u32 address)
{
	u32 units = (1u << m->swizzle) - 1; /* 0, 1, 3, 7 */
	return address ^ ((address >> 7 & units) * UNIT);
}

/* Calls f for the bytes [from, to) of a row of the TMA tile. The row begins at `shared`, before swizzling; `global` is
 * the global address of its byte 0. */
static bool row_pieces(struct transfer *t, piece_fn *f, u32 shared, u64 global, u32 from, u32 to)
{
	if (!t->map.swizzle)
		return f(t, shared + from, global + from, to - from);
	for (u32 stop; from < to; from = stop) {
		stop = MIN(to, (from | (UNIT - 1)) + 1);
		if (!f(t, swizzled(&t->map, shared + from), global + from, stop - from))
			return false;
	}
	return true;
}

bool tensor_pieces(struct transfer *t, piece_fn *f)
{
	const struct tensor_map *m = &t->map;
	u32 element = (u32)m->strides[0], index[TENSOR_MAP_RANK] = {0};
	i64 first = MAX(0, -(i64)t->at[0]), end = MIN((i64)m->box[0], (i64)m->sizes[0] - t->at[0]);
	if (first >= end)
		return true;
	u32 last = (u32)end * element;
	if (t->plan->kind == FROM_SHARED && !t->apply)
		/* a row that ends within a 16-byte unit is written up to the end of the unit */
		last = (last + UNIT - 1) / UNIT * UNIT;
	for (u32 row = 0; row < m->box_bytes / m->row_bytes; row++) {
		bool inside = true;
		u64 global = m->base + (u64)(i64)t->at[0] * element;
		for (u32 n = 1; n < m->rank; n++) {
			i64 x = t->at[n] + (i64)index[n] * m->steps[n];
			inside &= x >= 0 && x < (i64)m->sizes[n];
			global += (u64)x * m->strides[n];
		}
		if (inside && !row_pieces(t, f, t->shared + row * m->row_bytes, global, (u32)first * element, last))
			return false;
		for (u32 n = 1; n < m->rank && ++index[n] == m->box[n]; n++)
			index[n] = 0;
	}
	return true;
}

bool tensor_is_outside(const struct transfer *t)
{
	const struct tensor_map *m = &t->map;
	bool outside = false;
	for (u32 n = 0; n < m->rank; n++)
		outside |= t->at[n] >= (i64)m->sizes[n] || t->at[n] + (i64)(m->box[n] - 1) * (i64)m->steps[n] < 0;
	return outside;
}

void tensor_fill(const struct transfer *t)
{
	u64 with = t->map.fill == TENSOR_FILL_NAN ? 0x7FF77FF77FF77FF7 : 0; /* the same bits for every type */
	char *to = t->to->shared + t->shared;
	for (u32 at = 0; at < t->bytes; at += sizeof with)
		memcpy(to + at, &with, sizeof with);
}
