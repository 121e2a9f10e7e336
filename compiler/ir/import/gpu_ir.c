/* Reading the parts of the IR text that only laid-out kernels (TTGIR) have: layouts, buffers, and attributes of the
 * module. */
#include "ir/import/import.h"

#include <ctype.h>

/* --- layouts ------------------------------------------------------------------------------------------------- */

/* Reads coordinates such as [1, 0]. */
static void read_coordinates(struct reader *r, struct alias *a, i32 *at)
{
	int n = 0;
	rd_expect(r, "[");
	do {
		i64 x = read_int(r);
		if (n == MAX_RANK || x < 0 || x >= IR_MAX_NUMEL)
			rd_fail(r, "a basis vector has up to five coordinates, each within the tile");
		else
			at[n++] = (i32)x;
	} while (!r->failed && rd_accept(r, ","));
	rd_expect(r, "]");
	if (a->rank && n != a->rank)
		rd_fail(r, "the basis vectors of a layout differ in rank");
	a->rank = n;
}

/* Reads bits such as register = [[1, 0], [2, 0]]: the coordinates of each bit. With `dim` LL_DIMS the list must be
 * empty. */
static void read_bits(struct reader *r, struct alias *a, const char *name, int dim)
{
	rd_expect(r, name);
	rd_expect(r, "=");
	rd_expect(r, "[");
	if (rd_accept(r, "]"))
		return;
	do {
		if (dim == LL_DIMS || a->bits[dim] == LAYOUT_MAX_BITS)
			rd_fail(r, "the layout has too many basis vectors");
		else
			read_coordinates(r, a, a->at[dim][a->bits[dim]++]);
	} while (!r->failed && rd_accept(r, ","));
	rd_expect(r, "]");
}

static void read_alias(struct reader *r)
{
	struct alias a = {0};
	rd_expect(r, "#");
	a.name = read_word(r, false);
	rd_expect(r, "=");
	if (rd_accept(r, "#ttg.linear")) {
		rd_expect(r, "<{");
		read_bits(r, &a, "register", LL_REG);
		rd_expect(r, ",");
		read_bits(r, &a, "lane", LL_LANE);
		rd_expect(r, ",");
		read_bits(r, &a, "warp", LL_WARP);
		rd_expect(r, ",");
		read_bits(r, &a, "block", LL_DIMS);
		rd_expect(r, "}>");
	} else if (rd_accept(r, "#ttg.shared_linear")) {
		a.shared = true;
		rd_expect(r, "<{");
		read_bits(r, &a, "offset", LL_OFFSET);
		rd_expect(r, "}, alignment = 16>");
	} else if (rd_accept(r, "#ttg.shared_memory")) {
		return;
	} else {
		rd_fail(r, "tlc reads TTGIR with its own layouts only: #ttg.linear and #ttg.shared_linear");
	}
	if (!r->failed)
		vec_push(r->ctx->arena, &r->aliases, a);
}

void read_aliases(struct reader *r)
{
	for (rd_skip_space(r); !r->failed && *rd_cur(r) == '#'; rd_skip_space(r)) {
		const char *s = rd_cur(r);
		if (!strncmp(s, "#loc", 4) || !strchr(s, '=')) {
			while (*rd_cur(r) && *rd_cur(r) != '\n')
				rd_bump(r, 1);
		} else {
			read_alias(r);
		}
	}
}

static const struct layout *layout_of(struct reader *r, const struct alias *a, int rank, const i32 *shape)
{
	struct layout l = layout_empty(rank, shape);
	for (int dim = 0; dim < LL_DIMS; dim++) {
		l.bits[dim] = a->bits[dim];
		for (int i = 0; i < a->bits[dim]; i++)
			for (int d = 0; d < rank; d++) {
				if (a->at[dim][i][d] >= shape[d])
					rd_fail(r, "the layout does not fit the tile");
				l.basis[dim][i] |= (u32)a->at[dim][i][d] << layout_dim_shift(&l, d);
			}
	}
	return r->failed ? NULL : layout_intern(&r->ctx->layouts, &l);
}

/* True if the layout gives each element a location. */
static bool covers(const struct layout *l)
{
	struct gf2 g = {0};
	for (int dim = 0; dim < LL_DIMS; dim++)
		for (int i = 0; i < l->bits[dim]; i++)
			gf2_add(&g, l->basis[dim][i]);
	return g.n == layout_tile_bits(l);
}

static const struct alias *read_alias_name(struct reader *r, bool shared)
{
	rd_skip_space(r);
	struct loc at = rd_here(r, 1);
	rd_expect(r, "#");
	const char *name = read_word(r, false);
	at.len = rd_loc_len(name) + 1;
	for (u32 i = 0; i < r->aliases.len; i++)
		if (r->aliases.at[i].name == name && r->aliases.at[i].shared == shared)
			return &r->aliases.at[i];
	rd_fail_at(r, at,
		   arena_printf(r->ctx->arena, "there is no layout '#%s' %s", name,
				shared ? "of shared memory" : "of tiles"));
	return NULL;
}

static int distributed_warps(const struct reader *r)
{
	return ilog2((u64)r->module.num_warps);
}

static bool all_pow2(int rank, const i32 *shape)
{
	i64 numel = 1;
	for (int d = 0; d < rank; d++) {
		if (!is_pow2(shape[d]) || (numel *= shape[d]) > IR_MAX_NUMEL)
			return false;
	}
	return true;
}

const struct type *read_placed_type(struct reader *r, const struct type *elem, int rank, const i32 *shape, bool memory)
{
	if (!r->module.target)
		rd_fail(r, "layouts and buffers are allowed in laid-out GPU IR only, whose module has a ttg.target");
	rd_expect(r, ",");
	const struct alias *a = r->failed ? NULL : read_alias_name(r, memory);
	if (memory)
		rd_expect(r, ", #smem, mutable");
	if (r->failed)
		return NULL;
	/* a memdesc with several buffers has one dimension more than its layout */
	int own = a->rank ? a->rank : 1;
	bool several = memory && rank == own + 1;
	if (rank != own + several || !all_pow2(own, shape + several)) {
		rd_fail(r, "the layout does not fit the tile");
		return NULL;
	}
	const struct layout *l = layout_of(r, a, own, shape + several);
	if (l && (!covers(l) || (!memory && (l->bits[LL_LANE] != 5 || l->bits[LL_WARP] != distributed_warps(r)))))
		rd_fail(r,
			"the layout does not distribute all elements of the tile over 32 lanes and the module's warps");
	if (r->failed)
		return NULL;
	if (memory)
		return type_memdesc(r->ctx, elem, own, shape + several, l, several ? shape[0] : 0);
	return type_with_layout(r->ctx, type_tensor(r->ctx, elem, rank, shape), l);
}

/* --- module -------------------------------------------------------------------------------------------------- */

static i32 read_positive(struct reader *r, i64 most)
{
	i64 x = read_int(r);
	if (x < 0 || x > most)
		rd_fail(r, "this number is out of range");
	return (i32)x;
}

static void read_module_attribute(struct reader *r, const char *name)
{
	struct kernel *k = &r->module;
	if (!strcmp(name, "ttg.num-ctas"))
		k->cuda.cluster = read_positive(r, 16);
	else if (!strcmp(name, "ttg.num-warps"))
		k->num_warps = read_positive(r, 32);
	else if (!strcmp(name, "ttg.maxnreg"))
		k->cuda.maxnreg = read_positive(r, 255);
	else if (!strcmp(name, "tlc.grids"))
		k->cuda.grids = (u32)read_positive(r, ALL_GRIDS);
	else if (!strcmp(name, "ttg.shared"))
		k->shared_bytes = read_positive(r, 1 << 24);
	else if (!strcmp(name, "ttg.target"))
		k->target = read_string(r);
	else if (*rd_cur(r) == '"' || (rd_skip_space(r), *rd_cur(r) == '"'))
		read_string(r);
	else
		read_int(r);
}

void read_module_attributes(struct reader *r)
{
	struct kernel *k = &r->module;
	rd_expect(r, "{");
	while (!r->failed && !rd_accept(r, "}")) {
		rd_skip_space(r);
		const char *name = *rd_cur(r) == '"' ? read_string(r) : read_word(r, true);
		if (rd_accept(r, "="))
			read_module_attribute(r, name);
		else if (!strcmp(name, "tlc.persistent"))
			k->cuda.persistent = true;
		else if (!strcmp(name, "tlc.pairs"))
			k->cuda.pairs = true;
		else if (!strcmp(name, "tlc.no_fp_fusion"))
			k->cuda.no_fp_fusion = true;
		else if (!*name)
			rd_fail(r, "expected an attribute's name");
		if (rd_accept(r, ":"))
			read_type(r);
		rd_accept(r, ",");
	}
	if (k->target && !r->failed &&
	    (!is_pow2(k->num_warps) || k->num_warps * k->cuda.cluster > 1024 || !is_pow2(k->cuda.cluster) ||
	     strncmp(k->target, "cuda:", 5)))
		rd_fail(r, "a module of laid-out GPU IR needs a cuda ttg.target, and ttg.num-ctas and ttg.num-warps "
			   "that are powers of two");
	if (k->target)
		k->num_warps *= k->cuda.cluster;
}
