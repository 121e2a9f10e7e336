/* Bulk copies, of consecutive bytes and of boxes of tensors, and mbarriers.
 *
 * Behind the opcode of a copy come, each as "name=value", and lists as "4x5x6", innermost first; in bytes what is said
 * of the innermost dimension:
 *   bytes                of consecutive ones               so  start in shared memory       go  start in global memory
 *   type swizzle fill    numbers of cuTensorMapEncodeTiled's enumerations
 *   sizes box at steps   of the tensor, the box, its coordinates, the element strides       pad  behind each row of the
 *   tensor
 *
 * The tensor, or the consecutive bytes, is what a form's sources behind the image hold; of copies to global memory what
 * its results do. */
#include <stdlib.h>
#include <string.h>

#include "runtime/sim/tensormap.h"
#include "tests/sim/isa.h"

enum { KB = 1024, COORDINATES = 20 /* registers */ };

#define LOAD(rank) "cp.async.bulk.tensor." rank ".shared::cluster.global.mbarrier::complete_tx::bytes "
#define STORE(rank) "cp.async.bulk.tensor." rank ".global.shared::cta.bulk_group "
#define REDUCE(rank, op) "cp.reduce.async.bulk.tensor." rank ".global.shared::cta." op ".bulk_group "
static const struct row rows[] = {
	/* consecutive bytes */
	{.pattern = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
	 "bytes={16,48,1024,4080} so={0,16,144} "
		    "go={0,48}"},
	{.pattern = "cp.async.bulk.global.shared::cta.bulk_group bytes={16,48,1024,4080} so={0,16,144} go={0,48}"},
	{.pattern =
	 "cp.reduce.async.bulk.global.shared::cta.bulk_group.{add,min,max,inc,dec,and,or,xor}.{u32,s32,u64,s64,b32,"
		    "b64} bytes=1024"},
	{.pattern = "cp.reduce.async.bulk.global.shared::cta.bulk_group.{add,min,max}{,.noftz}.{f16,bf16,f32,f64} "
	 "bytes=1024"},
	/* types, swizzles, coordinates */
	{.pattern = LOAD("2d") "type={0,1,2,3,4,5,6,7,8,9,10,11,12} swizzle=0 sizes=208x24 "
	 "box=48x5 at={0x0,-16x-2,176x22,32x7} "
			       "fill={0,1}"},
	{.pattern = LOAD("2d") "type={0,1,2,3,4,5,6,7,8,9,10,11,12} swizzle=1 sizes=208x24 "
	 "box=32x9 at={0x0,-16x-2,192x20}"},
	{.pattern = LOAD("2d") "type={0,1,2,3,4,5,6,7,8,9,10,11,12} swizzle=2 sizes=208x24 "
	 "box=64x9 at={0x0,-16x-2,192x20}"},
	{.pattern = LOAD("2d") "type={0,1,2,3,4,5,6,7,8,9,10,11,12} swizzle=3 sizes=208x24 "
	 "box=128x9 at={0x0,-16x-2,192x20}"},
	{.pattern = LOAD("2d") "type={0,6} swizzle=0 sizes=200x24 pad=8 box=32x8 "
			       "at={0x0,-24x3,-8x3,8x3,24x3,-16x3,16x-3,184x-7,800x0,0x40,-800x0}"},
	{.pattern =
		 LOAD("2d") "type={1,7} swizzle=1 sizes=200x24 pad=8 box=32x8 "
			 "at={0x0,-16x3,-24x3,8x3,192x-7,800x0,0x40,-800x0}"},
	/* starts of shared memory; element strides */
	{.pattern = LOAD("2d") "type=6 swizzle={0,1} sizes=256x24 box=32x8 at=64x3 so={128,256,384,512,896}"},
	{.pattern =
		 LOAD("2d") "type={0,6,7} swizzle=0 sizes=256x40 box={32x8,48x9} "
			 "steps={1x2,1x3,2x1,4x2} at={0x0,16x-3,224x30}"},
	{.pattern = LOAD("2d") "type=6 swizzle=3 sizes=256x40 box=128x9 steps={1x2,2x1} at={0x0,16x-3}"},
	/* ranks */
	{.pattern = LOAD("1d") "type={0,6,7,8} swizzle={0,3} sizes=1000 box=128 at={0,-64,960,16} go={0,16}"},
	{.pattern = LOAD(
		 "3d") "type={0,9} swizzle={0,2} sizes=160x6x5 box=64x4x3 at={0x0x0,-32x-1x-1,128x4x3,0x6x0,64x1x2} "
		 "fill={0,1}"},
	{.pattern =
		 LOAD("3d") "type=6 swizzle=3 sizes=160x6x5 box=128x4x3 "
			 "at={0x0x0,-32x-1x-1,128x4x3} steps={1x1x1,1x2x1,1x1x2}"},
	{.pattern = LOAD("4d") "type={2,6} swizzle={0,3} sizes=144x3x4x3 box=128x2x2x2 "
	 "at={0x0x0x0,16x-1x3x2,-128x2x-1x0}"},
	{.pattern =
		 LOAD("5d") "type={6,8} swizzle={0,3} sizes=144x3x2x3x2 box=128x2x2x1x2 "
			 "at={0x0x0x0x0,16x-1x1x2x1,0x2x-1x0x-1}"},
	{.pattern = LOAD("2d") "type=6 swizzle=0 sizes=32x300 box=16x256 at={0x0,16x100}"},
	{.pattern = LOAD("2d") "type=6 swizzle=0 sizes={256x8,250x8} box={16x1,128x257,144x4,40x4} at=0x0"},
	{.pattern = LOAD("2d") "type=6 swizzle=3 sizes={256x8,250x8} box={128x257,144x4,40x4} at=0x0"},
	/* stores */
	{.pattern = STORE("2d") "type={0,1,4,6,7,9,10,11,12} swizzle=3 sizes=208x24 box=128x9 at={0x0,-16x-2,192x20}"},
	{.pattern = STORE("2d") "type={0,6} swizzle=0 sizes=200x24 pad=8 box=32x8 "
				"at={0x0,-16x0,-16x3,8x3,-8x3,0x-2,192x20,184x20,800x0,0x40,-800x0,0x-40}"},
	{.pattern = STORE("2d") "type=7 swizzle=1 sizes=200x24 pad=8 box=32x8 at={0x0,16x3,192x20}"},
	{.pattern = STORE("1d") "type={0,6} swizzle=0 sizes=1000 box=128 at={0,-64,960} go={0,16}"},
	{.pattern = STORE("3d") "type={0,9} swizzle={0,2} sizes=160x6x5 box=64x4x3 at={0x0x0,-32x-1x-1,128x4x3}"},
	{.pattern = STORE("4d") "type=6 swizzle=3 sizes=144x3x4x3 box=128x2x2x2 at={0x0x0x0,16x-1x3x2}"},
	{.pattern = STORE("5d") "type=6 swizzle={0,3} sizes=144x3x2x3x2 box=128x2x2x1x2 at={0x0x0x0x0,16x-1x1x2x1}"},
	{.pattern = STORE("2d") "type=6 swizzle=0 sizes=256x40 box=32x8 steps={1x2,2x1} at={0x0,16x-3}"},
	/* reductions */
	{.pattern = REDUCE("2d", "add") "type={2,3,4} swizzle=0 sizes=208x24 box=64x9 at={0x0,-16x-2}"},
	{.pattern = REDUCE("2d", "{min,max,and,or,xor}") "type={2,3,4,5} swizzle=0 "
	 "sizes=208x24 box=64x9 at={0x0,-16x-2}"},
	{.pattern = REDUCE("2d", "{inc,dec}") "type=2 swizzle=3 sizes=208x24 box=128x9 at=16x2"},
	{.pattern = REDUCE("2d", "add") "type={6,7,9,10} swizzle={0,3} sizes=208x24 box=128x9 at={0x0,-16x-2}"},
	{.pattern = REDUCE("2d", "{min,max}") "type={6,9} swizzle=0 sizes=208x24 box=128x9 at={0x0,-16x-2}"},
	{.pattern = REDUCE("3d", "add") "type=7 swizzle=2 sizes=160x6x5 box=64x4x3 at=-32x-1x-1"},
};

/* Random operations. */
static const struct row mbarrier_rows[] = {
	{.pattern = "mbarrier count={1,2,3,5} seed={1,2,3,4,5,6,7,8,9,10,11,12}"},
};

/* --- the form ----------------------------------------------------------------------------------------------------- */

struct copy {
	char opcode[128];
	struct tensor_spec *map;
	u32 coords, bytes, shared, global;
	i32 at[TENSOR_MAP_RANK];
	bool loads;
};

static u32 list(const char *name, const char *key, i64 *out)
{
	const char *text = option(name, key);
	u32 n = 0;
	for (char *end; text && n < TENSOR_MAP_RANK; text = *end == 'x' ? end + 1 : NULL)
		out[n++] = strtoll(text, &end, 10);
	return n;
}

static u32 element_bytes(int type)
{
	static const u8 bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
	return bytes[type];
}

/* What the contents of memory are made of. */
static enum ptx_type contents(const struct copy *c)
{
	static const enum ptx_type types[] = {PT_U8,  PT_U16, PT_U32,  PT_S32, PT_U64, PT_S64, PT_F16,
					      PT_F32, PT_F64, PT_BF16, PT_F32, PT_F32, PT_F32};
	enum ptx_type t[8];
	if (c->map)
		return types[c->map->type];
	return types_of(c->opcode, t) ? t[0] : PT_U8;
}

static void read_map(struct expansion *e, struct copy *c, const char *name)
{
	struct tensor_spec *m = c->map = arena_new(e->arena, struct tensor_spec);
	i64 sizes[TENSOR_MAP_RANK], box[TENSOR_MAP_RANK], steps[TENSOR_MAP_RANK] = {1, 1, 1, 1, 1}, at[TENSOR_MAP_RANK];
	m->rank = c->coords = list(name, "sizes", sizes);
	list(name, "box", box);
	list(name, "at", at);
	list(name, "steps", steps);
	m->type = (int)field_number(name, "type", 0);
	m->swizzle = (int)field_number(name, "swizzle", 0);
	m->fill = (int)field_number(name, "fill", 0);
	m->to_results = !c->loads;
	m->offset = c->global;
	u32 size = element_bytes(m->type);
	u64 stride = (u64)sizes[0] + field_number(name, "pad", 0);
	c->bytes = size;
	for (u32 n = 0; n < m->rank; n++) {
		u32 unit = n ? 1 : size;
		m->sizes[n] = (u64)sizes[n] / unit;
		m->box[n] = (u32)box[n] / unit;
		m->steps[n] = (u32)steps[n];
		c->at[n] = (i32)at[n] / (i32)unit;
		m->strides[n] = stride;
		stride *= n + 1 < m->rank ? (u64)sizes[n + 1] : 1;
		c->bytes *= n ? (m->box[n] + m->steps[n] - 1) / m->steps[n] : m->box[n];
	}
	m->bytes = stride;
}

static void print_place(struct strbuf *out, const struct copy *c, const char *shared)
{
	if (shared)
		sb_printf(out, "[%s+%u]", shared, c->shared);
	else if (!c->map)
		sb_printf(out, "[%%d5+%u]", c->global);
	for (u32 n = 0; !shared && n < c->coords; n++)
		sb_printf(out, "%s%%r%u%s", n ? ", " : "[%d4, {", COORDINATES + n, n + 1 < c->coords ? "" : "}]");
}

/* By thread 0. */
static void print_copy(struct strbuf *out, const struct copy *c)
{
	sb_printf(out, "@%%p0 %s ", c->opcode);
	print_place(out, c, c->loads ? "%r5" : NULL);
	sb_puts(out, ", ");
	print_place(out, c, c->loads ? NULL : "%r5");
	if (!c->map)
		sb_printf(out, ", %u", c->bytes);
	sb_puts(out, c->loads ? ", [bar];\n" : ";\n");
}

/* Waits for a time at most, for nobody knows what a copy counts that is not as expected. */
static void print_wait(struct strbuf *out)
{
	sb_puts(out, "mov.u32 %r8, 0;\nWAIT: mbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], 0;\n"
		"add.u32 %r8, %r8, 1;\n"
		     "setp.gt.u32 %p2, %r8, 500000;\nor.pred %p1, %p1, %p2;\n@!%p1 bra WAIT;\n");
}

static void print_form(struct strbuf *out, const struct form *f, const struct copy *c)
{
	u32 globals = f->nsources - f->image;
	begin_kernel(out, f);
	fill_image(out, f);
	sb_printf(out, ".shared .align 8 .b64 bar;\nsetp.eq.u32 %%p0, %%r2, 0;\nadd.u64 %%d5, %%d0, %u;\n",
		  slot_at(f, c->loads ? f->image : f->nsources));
	if (c->map)
		sb_puts(out, "mov.b64 %d4, map;\ncvta.param.u64 %d4, %d4;\n");
	for (u32 n = 0; n < c->coords; n++)
		sb_printf(out, "add.s32 %%r%u, %%r2, %d;\n", COORDINATES + n, c->at[n]);
	for (u32 s = 0; !c->loads && s < globals; s++)
		sb_printf(out, "ld.global.b64 %%d2, [%%d0+%u];\nst.global.b64 [%%d0+%u], %%d2;\n",
			  slot_at(f, f->image + s),
			  slot_at(f, f->nsources + s));
	if (c->loads)
		sb_puts(out, "@%p0 mbarrier.init.shared::cta.b64 [bar], 1;\n");
	sb_puts(out, "fence.proxy.async;\nbar.sync 0;\n");
	if (c->loads)
		sb_printf(out, "@%%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], %u;\n", c->bytes);
	print_copy(out, c);
	if (!c->loads) {
		sb_puts(out, "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nret;\n}\n");
		return;
	}
	print_wait(out);
	for (u32 s = 0; s < f->image; s++)
		sb_printf(out, "ld.shared.b64 %%d2, [%%r6+%u];\nst.global.b64 [%%d0+%u], %%d2;\n", s * KB,
			  slot_at(f, f->nsources + s));
	sb_puts(out, "ret;\n}\n");
}

static void make_copy(struct expansion *e, const char *name)
{
	struct form *f = new_form(e, name);
	struct strbuf text = {.arena = e->arena};
	struct copy c = {.shared = field_number(name, "so", 0), .global = field_number(name, "go", 0),
			 .bytes = field_number(name, "bytes", 0)};
	snprintf(c.opcode, sizeof c.opcode, "%.*s", (int)strcspn(name, " "), name);
	c.loads = strstr(c.opcode, "mbarrier::");
	if (strstr(c.opcode, ".tensor."))
		read_map(e, &c, name);
	u32 globals = (u32)(c.global + (c.map ? c.map->bytes : c.bytes) + KB - 1) / KB;
	f->map = c.map;
	f->ncases = BLOCK;
	f->image = (c.shared + c.bytes + 2 * KB - 1) / KB;
	f->nsources = f->image + globals;
	f->nresults = c.loads ? f->image : globals;
	f->result = PT_B64;
	f->result_bytes = 8;
	set_sources(f, 0, f->nsources, contents(&c));
	for (u32 s = f->image; s < f->nsources; s++)
		f->sources[s].type = PT_B64;
	print_form(&text, f, &c);
	finish_form(e, f, &text);
}

/* --- mbarriers ---------------------------------------------------------------------------------------------------- */

static const struct operation {
	const char *text;
	u32 arrivals, least; /* of those pending */
	bool drops;
	i32 bytes; /* expected, or that have come */
} operations[] = {
	{"mbarrier.arrive.shared::cta.b64 %d3, [%r6];\n", 1, 1, false, 0},
	{"mbarrier.arrive.shared::cta.b64 %d3, [%r6], 2;\n", 2, 2, false, 0},
	{"mbarrier.arrive.noComplete.shared::cta.b64 %d3, [%r6], 1;\n", 1, 2, false, 0},
	{"mbarrier.arrive_drop.shared::cta.b64 %d3, [%r6];\n", 1, 1, true, 0},
	{"mbarrier.arrive.expect_tx.shared::cta.b64 %d3, [%r6], 32;\n", 1, 1, false, 32},
	{"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r6], 32;\n", 0, 0, false, 32},
	{"mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r6], 16;\n", 0, 0, false, -16},
	{"mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r6], 32;\n", 0, 0, false, -32},
};

struct counts {
	u32 expected, pending;
	i32 bytes;
};

static bool is_allowed(const struct operation *o, const struct counts *c)
{
	return c->pending >= o->least && (!o->drops || c->expected > 1);
}

/* One that is allowed, in the end one that brings the bytes that are expected, or the other way round. */
static const struct operation *next_operation(struct counts *c, bool ends, u64 *state)
{
	const struct operation *o = &operations[c->bytes < 0 ? 5 : c->bytes % 32 ? 6 : 7];
	while (!ends && !is_allowed(o = &operations[random_u64(state) % ARRAY_LEN(operations)], c))
		;
	c->expected -= o->drops;
	c->pending -= o->arrivals;
	c->bytes += o->bytes;
	if (!c->pending && !c->bytes)
		c->pending = c->expected;
	return o;
}

/* Each thread has an mbarrier of its own. After each operation: have the even and the odd phase completed, and the one
 * of the operation's state, and how many arrivals did that lack. */
static void print_look(struct strbuf *out, const struct operation *o)
{
	sb_puts(out, "mbarrier.test_wait.parity.shared::cta.b64 %p1, [%r6], 0;\n"
		"mbarrier.test_wait.parity.shared::cta.b64 %p2, "
		     "[%r6], 1;\n"
		     "selp.u32 %r7, 1, 0, %p1;\nselp.u32 %r8, 2, 0, %p2;\nor.b32 %r7, %r7, %r8;\n");
	if (o->arrivals)
		sb_puts(out,
			"mbarrier.test_wait.shared::cta.b64 %p3, [%r6], %d3;\n"
			"selp.u32 %r8, 4, 0, %p3;\nor.b32 %r7, %r7, %r8;\n"
			"mbarrier.pending_count.b64 %r8, %d3;\nshl.b32 %r8, %r8, 8;\nor.b32 %r7, %r7, %r8;\n");
}

static void make_mbarrier(struct expansion *e, const char *name)
{
	enum { OPERATIONS = 24, MOST = 40 };
	struct form *f = new_form(e, name);
	struct strbuf text = {.arena = e->arena};
	u32 count = field_number(name, "count", 1);
	u64 state = count * 100 + field_number(name, "seed", 0);
	struct counts c = {count, count, 0};
	f->ncases = BLOCK;
	f->result = PT_B32;
	f->result_bytes = 4;
	begin_kernel(&text, f);
	sb_printf(&text,
		  ".shared .align 8 .b64 bars[%d];\nmov.u32 %%r5, bars;\n"
		  "shl.b32 %%r6, %%r2, 3;\nadd.u32 %%r6, %%r6, %%r5;\n"
		  "mbarrier.init.shared::cta.b64 [%%r6], %u;\n"
		  "mbarrier.arrive.noComplete.shared::cta.b64 %%d3, [%%r6], 1;\n"
		  "mbarrier.inval.shared::cta.b64 [%%r6];\nmbarrier.init.shared::cta.b64 [%%r6], %u;\n",
		  BLOCK, count + 1, count);
	while (f->nresults < OPERATIONS || (c.bytes && f->nresults < MOST)) {
		const struct operation *o = next_operation(&c, f->nresults >= OPERATIONS, &state);
		sb_puts(&text, o->text);
		print_look(&text, o);
		sb_printf(&text, "st.global.b32 [%%d0+%u], %%r7;\n", slot_at(f, f->nresults++));
	}
	sb_puts(&text, "ret;\n}\n");
	finish_form(e, f, &text);
}

void each_bulk_form(struct expansion *e)
{
	each_of(e, rows, ARRAY_LEN(rows), make_copy);
	each_of(e, mbarrier_rows, ARRAY_LEN(mbarrier_rows), make_mbarrier);
}
