#include "runtime/image/image.h"

#include "runtime/image/params.h"
#include "runtime/image/tensor_map.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "images are little-endian, and written as they lie in memory");

enum { IMAGE_VERSION = 20, MAX_IMPORTS = UINT16_MAX };
static const char magic[8] = "tlimage";

struct header {
	char magic[8];
	u32 version, reserved;
	u64 bytes, hash; /* of the bytes after the header */
};

/* --- bytes ----------------------------------------------------------------------------------------------------- */

/* Writes or reads fields: one set of functions describes the format for both directions. */
struct coder {
	struct strbuf *out;   /* when writing */
	const char *at, *end; /* when reading */
	struct arena *arena;  /* of the data that is read */
	bool bad;
};

static void code_bytes(struct coder *c, void *p, size_t n)
{
	if (c->out) {
		sb_add(c->out, p, n);
	} else if (c->bad || (size_t)(c->end - c->at) < n) {
		c->bad = true;
		memset(p, 0, n);
	} else {
		memcpy(p, c->at, n);
		c->at += n;
	}
}

#define CODE(c, field) code_bytes(c, &(field), sizeof(field))

/* An integer field of any type, with a value from `least` to `most`. */
#define CODE_RANGE(c, field, least, most)                                                                              \
	do {                                                                                                           \
		i64 v_ = (c)->out ? (i64)(field) : 0;                                                                  \
		CODE(c, v_);                                                                                           \
		(c)->bad |= v_ < (i64)(least) || v_ > (i64)(most);                                                     \
		if (!(c)->out) /* when writing, other threads may be reading the field */                              \
			(field) = (c)->bad ? 0 : (__typeof__(field))v_;                                                \
	} while (0)

/* Text of *len bytes, NUL-terminated. */
static void code_block(struct coder *c, const char **s, u32 *len)
{
	CODE(c, *len);
	size_t n = (size_t)*len + 1;
	if (c->out) {
		sb_add(c->out, *s, n);
		return;
	}
	c->bad |= (size_t)(c->end - c->at) < n || c->at[n - 1];
	*s = c->bad ? "" : arena_dup(c->arena, c->at, n);
	*len = c->bad ? 0 : *len;
	c->at += c->bad ? 0 : n;
}

static void code_text(struct coder *c, const char **s)
{
	u32 len = c->out ? (u32)strlen(*s) : 0;
	code_block(c, s, &len);
}

/* The number of elements of an array; when reading, allocates the array. */
#define CODE_ARRAY(c, array, n, most)                                                                                  \
	do {                                                                                                           \
		CODE_RANGE(c, n, 0, most);                                                                             \
		if (!(c)->out)                                                                                         \
			(array) = arena_alloc((c)->arena, ((size_t)(n) + 1) * sizeof *(array));                        \
	} while (0)

static void code_slot(struct coder *c, struct slot *s)
{
	code_text(c, &s->name);
	CODE_RANGE(c, s->leaf, 0, MAX_KERNEL_PARAMS - 1);
	CODE_RANGE(c, s->pointers, 0, 2);
	CODE_RANGE(c, s->dtype, 0, DT_COUNT - 1);
	if (!dtype_has_values((enum dtype)s->dtype))
		c->bad = true;
	CODE_RANGE(c, s->divisibility, 0, INT32_MAX);
	c->bad |= s->divisibility && !is_pow2((u64)s->divisibility);
	CODE_RANGE(c, s->reads, 0, 1);
	CODE_RANGE(c, s->writes, 0, 1);
	CODE_RANGE(c, s->always, 0, 1);
}

static void code_product(struct coder *c, struct launch_product *p, i32 nslots)
{
	CODE(c, p->times);
	CODE_RANGE(c, p->nparams, 0, PRODUCT_PARAMS);
	for (int i = 0; i < PRODUCT_PARAMS; i++)
		CODE_RANGE(c, p->params[i], 0, i < p->nparams ? nslots - 1 : 0);
	CODE_RANGE(c, p->plus, 0, INT32_MAX);
}

static void code_map(struct coder *c, struct tensor_map_param *m, i32 nslots)
{
	code_product(c, &m->distance, nslots);
	for (int i = 0; i < 2; i++)
		code_product(c, &m->sizes[i], nslots);
	CODE_RANGE(c, m->tensor, -1, nslots - 1);
	for (int i = 0; i < 3; i++)
		CODE_RANGE(c, m->box[i], 0, 256);
	CODE_RANGE(c, m->elem_bytes, 1, 8);
	CODE_RANGE(c, m->swizzle, 0, 128);
	CODE_RANGE(c, m->narrow, 0, 1);
	CODE_RANGE(c, m->moved, 0, 1);
}

static void code_limit(struct coder *c, struct size_limit *l, i32 sizes)
{
	CODE(c, l->most);
	CODE_RANGE(c, l->a, SIZE_PROGRAMS - 2, sizes - 1);
	CODE_RANGE(c, l->b, SIZE_PROGRAMS - 2, sizes - 1);
	c->bad |= l->a == SIZE_NONE;
	CODE(c, l->least);
}

static void code_fields(struct coder *c, struct image *im)
{
	CODE(c, im->key);
	code_text(c, &im->source);
	CODE(c, im->source_hash);
	CODE_ARRAY(c, im->imports, im->nimports, MAX_IMPORTS);
	for (u32 i = 0; i < im->nimports; i++) {
		code_text(c, &im->imports[i].path);
		CODE(c, im->imports[i].hash);
	}
	code_text(c, &im->signature);
	code_text(c, &im->target);
	CODE_RANGE(c, im->codegen.num_stages, 0, MAX_NUM_STAGES);
	CODE_RANGE(c, im->codegen.group_pids, 0, INT32_MAX);
	CODE_RANGE(c, im->codegen.maxnreg, 0, MAX_REGISTERS);
	CODE_RANGE(c, im->codegen.fp_fusion, FP_FUSION_ON, FP_FUSION_OFF);
	CODE_RANGE(c, im->codegen.ftz, FTZ_ON, FTZ_OFF);
	CODE_RANGE(c, im->codegen.debug, 0, 1);
	CODE_RANGE(c, im->codegen.wraps, 0, 1);
	CODE_RANGE(c, im->codegen.no_tma, 0, 1);
	CODE_RANGE(c, im->codegen.sizes, BOUNDS_LIMITED, BOUNDS_WIDE);
	CODE_RANGE(c, im->codegen.alias, ALIAS_NONE, ALIAS_ANY);
	code_text(c, &im->name);
	code_block(c, &im->code, &im->code_bytes);
	CODE_RANGE(c, im->num_warps, 1, MAX_NUM_WARPS + MAX_PARTITION_WARPS);
	CODE_RANGE(c, im->shared_bytes, 0, 1 << 20);
	CODE_RANGE(c, im->scratch_bytes, 0, (i64)1 << 40);
	CODE_RANGE(c, im->waits, 0, 1);
	CODE_RANGE(c, im->cluster, 1, 16);
	CODE_RANGE(c, im->pairs, 0, 1);
	CODE_RANGE(c, im->persistent, 0, 1);
	CODE_RANGE(c, im->grids, 1, ALL_GRIDS);
	CODE_RANGE(c, im->narrow_offsets, 0, 1);
	CODE_ARRAY(c, im->slots, im->nslots, MAX_KERNEL_PARAMS);
	for (u32 i = 0; i < im->nslots; i++)
		code_slot(c, &im->slots[i]);
	CODE_ARRAY(c, im->maps, im->nmaps, MAX_TENSOR_MAPS);
	for (u32 i = 0; i < im->nmaps; i++)
		code_map(c, &im->maps[i], (i32)im->nslots);
	CODE_ARRAY(c, im->apart, im->napart, MAX_KERNEL_PARAMS * MAX_KERNEL_PARAMS);
	for (u32 i = 0; i < im->napart; i++) {
		CODE_RANGE(c, im->apart[i].a, 0, (i64)im->nslots - 1);
		CODE_RANGE(c, im->apart[i].b, 0, (i64)im->nslots - 1);
		CODE_RANGE(c, im->apart[i].equal_is_fine, 0, 1);
	}
	CODE_ARRAY(c, im->limits, im->nlimits, MAX_SIZE_LIMITS);
	for (u32 i = 0; i < im->nlimits; i++)
		code_limit(c, &im->limits[i], (i32)im->nslots + (im->persistent ? GRID_PARAMS : 0));
	CODE_ARRAY(c, im->ones, im->nones, MAX_KERNEL_PARAMS);
	for (u32 i = 0; i < im->nones; i++)
		CODE_RANGE(c, im->ones[i], 0, MAX_KERNEL_PARAMS - 1);
}

char *image_write(const struct image *im, struct arena *a, size_t *len)
{
	struct strbuf out = {.arena = a};
	struct header h = {.version = IMAGE_VERSION};
	sb_add(&out, (const char *)&h, sizeof h);
	struct coder c = {.out = &out};
	code_fields(&c, (struct image *)im); /* writing does not change the image */
	tl_assert(!c.bad);
	memcpy(h.magic, magic, sizeof h.magic);
	h.bytes = out.len - sizeof h;
	h.hash = hash_bytes(out.at + sizeof h, (size_t)h.bytes, 0);
	memcpy(out.at, &h, sizeof h);
	*len = out.len;
	return out.at;
}

bool image_is(const void *bytes, size_t len)
{
	return len >= sizeof magic && !memcmp(bytes, magic, sizeof magic);
}

const char *image_read(struct image *im, const void *bytes, size_t len)
{
	struct header h;
	*im = (struct image){0};
	if (!image_is(bytes, len) || len < sizeof h)
		return "it is not a kernel image";
	memcpy(&h, bytes, sizeof h);
	const char *rest = (const char *)bytes + sizeof h;
	if (h.version != IMAGE_VERSION)
		return "it was written by another version of tlc";
	if (h.reserved || h.bytes != len - sizeof h || h.hash != hash_bytes(rest, (size_t)h.bytes, 0))
		return "it is damaged";
	struct coder c = {.at = rest, .end = rest + h.bytes, .arena = &im->arena};
	code_fields(&c, im);
	if (!c.bad && c.at == c.end)
		return NULL;
	image_free(im);
	return "it is damaged";
}

void image_free(struct image *im)
{
	arena_free(&im->arena);
	*im = (struct image){0};
}

/* --- text form -------------------------------------------------------------------------------------------------- */

const char *image_size_name(const struct image *im, i16 size)
{
	static const char *const programs[] = {"programs along x", "programs along y", "programs along z"};
	return size <= SIZE_PROGRAMS     ? programs[SIZE_PROGRAMS - size]
	       : (u32)size >= im->nslots ? programs[(u32)size - im->nslots]
					 : im->slots[size].name;
}

static void show_limits(const struct image *im, struct strbuf *out)
{
	if (im->narrow_offsets)
		sb_puts(out, "assumes      fewer than 2^31 - 2^24 elements in the memory of each pointer\n");
	for (u32 i = 0; i < im->napart; i++)
		sb_printf(out, "assumes      %s and %s do not overlap%s\n", im->slots[im->apart[i].a].name,
			  im->slots[im->apart[i].b].name, im->apart[i].equal_is_fine ? ", unless they are equal" : "");
	for (u32 i = 0; i < im->nlimits; i++) {
		const struct size_limit *l = &im->limits[i];
		sb_printf(out, "assumes      0 <= %s", image_size_name(im, l->a));
		if (l->b != SIZE_NONE)
			sb_printf(out, " * %s", image_size_name(im, l->b));
		sb_printf(out, " <= %lld\n", (long long)l->most);
	}
}

static void show_map(const struct image *im, struct strbuf *out, const struct tensor_map_param *m)
{
	sb_printf(out, "tensor map   of %s: box %d x %d x %d elements of %d bytes, swizzle %d, row stride ",
		  m->tensor < 0 ? "all memory" : im->slots[m->tensor].name, m->box[0], m->box[1], m->box[2],
		  m->elem_bytes, m->swizzle);
	sb_printf(out, "%lld", (long long)m->distance.times);
	for (int i = 0; i < m->distance.nparams; i++)
		sb_printf(out, " * %s", im->slots[m->distance.params[i]].name);
	sb_puts(out, " bytes\n");
}

static void show_blocks(const struct image *im, struct strbuf *out)
{
	sb_printf(out, "block        %d threads, %d bytes of shared memory\n", 32 * im->num_warps, im->shared_bytes);
	if (im->persistent)
		sb_puts(out, "grid         persistent: one block per multiprocessor runs programs one after another\n");
	else
		sb_printf(out, "grid         %d block%s per program\n", im->cluster, PLURAL(im->cluster));
	if (im->pairs)
		sb_puts(out, "             CTA pairs: two blocks along x form a cluster with multicast copies if their "
			     "number is even\n");
}

void image_show(const struct image *im, struct strbuf *out)
{
	static const char *const sizes[] = {"", ", any grid and integers", ", any size"};
	static const char *const overlaps[] = {"", ", equal pointers", ", overlapping pointers"};
	sb_printf(out, "kernel       %s\nsource       %s, xxHash %016llx\n", im->name, im->source,
		  (unsigned long long)im->source_hash);
	for (u32 i = 0; i < im->nimports; i++)
		sb_printf(out, "imports      %s, xxHash %016llx\n", im->imports[i].path,
			  (unsigned long long)im->imports[i].hash);
	sb_printf(out, "arguments    %s\n", *im->signature ? im->signature : "-");
	sb_printf(out, "options      num_stages %d%s%s%s%s%s", im->codegen.num_stages,
		  im->codegen.debug ? ", debug" : "", im->codegen.wraps ? ", wraps" : "",
		  im->codegen.no_tma ? ", no TMA" : "", sizes[im->codegen.sizes], overlaps[im->codegen.alias]);
	if (im->codegen.group_pids)
		sb_printf(out, ", group_pids %d", im->codegen.group_pids);
	if (im->codegen.maxnreg)
		sb_printf(out, ", maxnreg %d", im->codegen.maxnreg);
	if (im->codegen.fp_fusion == FP_FUSION_OFF)
		sb_puts(out, ", fp_fusion off");
	if (im->codegen.ftz == FTZ_OFF)
		sb_puts(out, ", ftz off");
	bool cpu = !strncmp(im->target, "cpu", 3);
	sb_printf(out, "\ncode         %u bytes of %s for %s\n", im->code_bytes, cpu ? "an object" : "PTX", im->target);
	if (cpu)
		sb_printf(out, "scratch      %llu bytes per thread\n", (unsigned long long)im->scratch_bytes);
	else
		show_blocks(im, out);
	for (u32 i = 0; i < im->nslots; i++) {
		const struct slot *s = &im->slots[i];
		sb_printf(out, "parameter    %s: %.*s%s", s->name, s->pointers, "**", dtype_name(s->dtype));
		if (s->divisibility > 1)
			sb_printf(out, ", a multiple of %d", s->divisibility);
		if (s->pointers)
			sb_printf(out, ", %s",
				  s->reads && s->writes ? "read and written"
				  : s->reads            ? "read"
				  : s->writes           ? "written"
							: "not used");
		sb_puts(out, "\n");
	}
	for (u32 i = 0; i < im->nmaps; i++)
		show_map(im, out, &im->maps[i]);
	show_limits(im, out);
}
