/* Products of matrices, and what moves matrices between shared memory and registers.
 *
 * Behind a wgmma's opcode come, each as "name=value":
 *   a, b     where the matrix is: "regs", or K or M (M- or N-major) and the width of the swizzle: K0 K32 K64 K128 M0 …
 *   al bl    leading byte offset      as bs  stride byte offset         if they are not those of a dense matrix
 *   ao bo    start of the matrix      ab bb  base offset                astep bstep  added to the start for each
 *   product
 *   steps    products                 accs   accumulators, in turn      wait   commit each product, leave so many in
 *   flight
 *   d=0      scale-d is false         neg    bits: 1 A, 2 B
 *   values   enum values, behind any product */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/isa.h"

enum { KB = 1024, MAX_IMAGE = 48, M = 64, FIRST = 10 /* register of mma */ };

#define WGMMA "wgmma.mma_async.sync.aligned.m64n"
#define TYPES8 "{e4m3,e5m2}.{e4m3,e5m2}"
#define INTS8 "{s8,u8}.{s8,u8}"
#define LAYOUTS "{K0,K32,K64,K128,M0,M32,M64,M128}"
#define K_LAYOUTS "{K0,K32,K64,K128}"
static const struct row wgmma_rows[] = {
	/* shapes and types */
	{.pattern = WGMMA "{8,16,24,64,96,128,192,256}k16.{f32,f16}.f16.f16 a={regs,K128} b=K128"},
	{.pattern = WGMMA "{8,16,24,64,96,128,192,256}k16.f32.bf16.bf16 a={regs,K128} b=K128"},
	{.pattern = WGMMA "{8,16,24,64,96,128,192,256}k8.f32.tf32.tf32 a={regs,K128} b=K128"},
	{.pattern = WGMMA "{8,24,96,256}k32.{f32,f16}." TYPES8 " a={regs,K128} b=K128"},
	{.pattern = WGMMA "{8,16,24,32,64,96,192,256}k32.s32." INTS8 " a={regs,K128} b=K128"},
	{.pattern = WGMMA "{8,64}k32.satfinite.s32." INTS8 " a={regs,K128} b=K128 values={1,2}"},
	{.pattern = WGMMA "{4,12}k16.f32.f16.f16 a=regs b=K128"},
	{.pattern = WGMMA "{40,56,120,200}k32.s32.s8.s8 a=regs b=K128"},
	{.pattern = WGMMA "{40,56,120,200}k16.f32.f16.f16 a=regs b=K128"},
	{.pattern = WGMMA "8k{8,32}.f32.f16.f16 a=regs b=K128"},
	{.pattern = WGMMA "8k16.f16.bf16.bf16 a=regs b=K128"},
	{.pattern = WGMMA "8k16.f32.{f16.bf16,e4m3.e4m3} a=regs b=K128"},
	{.pattern = WGMMA "8k8.f32.tf32.tf32 a=regs b={K32,M128}"},
	{.pattern = WGMMA "8k32.{f32.e4m3.e4m3,s32.s8.s8} a=regs b={K32,M128}"},
	{.pattern = WGMMA "8k32.{f32.e4m3.s8,s32.s8.e4m3,f32.s8.s8,s32.e4m3.e4m3} a=regs b=K32"},
	/* layouts */
	{.pattern = WGMMA "64k16.f32.f16.f16 a=" LAYOUTS " b=" LAYOUTS},
	{.pattern = WGMMA "{8,24,96,192,256}k16.f32.bf16.bf16 a=regs b=" LAYOUTS},
	{.pattern = WGMMA "{16,64}k16.f32.f16.f16 a=regs b=" LAYOUTS " values=6"},
	{.pattern = WGMMA "16k8.f32.tf32.tf32 a=" K_LAYOUTS " b=" K_LAYOUTS},
	{.pattern = WGMMA "16k32.f32.e4m3.e5m2 a=" K_LAYOUTS " b=" K_LAYOUTS},
	{.pattern = WGMMA "16k32.s32.s8.u8 a=" K_LAYOUTS " b=" K_LAYOUTS},
	/* strides, those of the dense matrix among them */
	{.pattern = WGMMA "32k16.f32.f16.f16 a=regs b=K0 bl={16,128,144,512,1040} bs={16,128,256,272,2048} values=6"},
	{.pattern = WGMMA "32k16.f32.f16.f16 a=regs b=M0 bl={16,128,144,512,1040} bs={16,128,256,272,2048} values=6"},
	{.pattern = WGMMA "32k16.f32.f16.f16 a=regs b=K32 bl={0,16,32,256} bs={16,128,256,384,512} values=6"},
	{.pattern = WGMMA "32k16.f32.f16.f16 a=regs b=K64 bl={0,16,64,512} bs={16,128,512,640,1024} values=6"},
	{.pattern = WGMMA "32k16.f32.f16.f16 a=regs b=K128 bl={0,16,64,1024} bs={16,128,1024,1280,2048} values=6"},
	{.pattern = WGMMA "64k16.f32.f16.f16 a=regs b=M32 bl={16,256,512,640,2048} bs={16,128,256,512,1024} values=6"},
	{.pattern = WGMMA "128k16.f32.f16.f16 a=regs b=M64 bl={16,512,1024,1152,2048} "
	 "bs={16,128,512,1024,2048} values=6"},
	{.pattern = WGMMA "128k16.f32.f16.f16 a=regs b=M128 bl={16,1024,2048,2304} "
	 "bs={16,128,1024,2048,4096} values=6"},
	{.pattern = WGMMA "8k16.f32.f16.f16 a={K0,M0} al={128,512,1040} as={128,256,272,2048} b=K32"},
	{.pattern = WGMMA "8k16.f32.f16.f16 a={K32,K64,K128} al={16,512} as={128,1024,2048} b=K32"},
	{.pattern = WGMMA "8k16.f32.f16.f16 a={M32,M64,M128} al={1024,2048,2176} as={128,1024,2048} b=K32"},
	{.pattern = WGMMA "16k8.f32.tf32.tf32 a=K0 al={128,512} as={128,256,1040} b=K0 bl={128,272} bs={512,144}"},
	{.pattern = WGMMA "16k32.s32.u8.s8 a=K0 al={128,512} as={128,256,1040} b=K0 bl={128,272} bs={512,144}"},
	/* where the matrix starts, and the base offset */
	{.pattern = WGMMA
	 "16k16.f32.f16.f16 a=regs b={K0,K32,K64,K128,M32,M64,M128} bo={16,32,64,96,112,128,256,384,512,640,896,1040} "
	 "values=6"},
	{.pattern = WGMMA "16k16.f32.f16.f16 a=regs b=K32 bo={0,128,384,1024} bb={1,2,7} values=6"},
	{.pattern = WGMMA "16k16.f32.f16.f16 a=regs b=K64 bo={0,128,384,1024} bb={1,2,3,4,7} values=6"},
	{.pattern = WGMMA "16k16.f32.f16.f16 a=regs b=K128 bo={0,32,128,256,640,896,1024} bb={1,2,3,4,5,6,7} values=6"},
	{.pattern = WGMMA "16k16.f32.f16.f16 a=regs b={M32,M64,M128} bo={0,128,384,640} bb={1,3,5,7} values=6"},
	{.pattern = WGMMA "16k16.f32.f16.f16 a=regs b={K0,M0} bo={0,128} bb={1,5} values=6"},
	{.pattern = WGMMA "8k16.f32.f16.f16 a={K32,K64,K128,M32,M64,M128} ao={16,128,256,640} ab={0,1,2,5} b=K32"},
	/* steps through k, inside and outside of the swizzled rows; products in flight */
	{.pattern = WGMMA "64k16.f32.f16.f16 a=K128 astep=32 b=K128 bstep=32 steps=4 wait={0,1,2,3}"},
	{.pattern = WGMMA "64k16.f32.bf16.bf16 a=K64 astep=32 b=K64 bstep=32 steps=2 d={0,1}"},
	{.pattern = WGMMA "64k16.f16.f16.f16 a=M128 astep=2048 b=M128 bstep=2048 steps=3 wait={0,1}"},
	{.pattern = WGMMA "64k16.f32.f16.f16 a=regs b=M64 bstep=1024 steps=4 accs=2 wait={0,1,2}"},
	{.pattern =
		 WGMMA "16k16.f32.f16.f16 a=K0 al=1024 as=128 astep=2048 b=K0 bl=256 bs=128 "
			 "bstep=512 steps=4 accs=4 wait={0,2}"},
	{.pattern = WGMMA "32k8.f32.tf32.tf32 a=K128 astep=32 b=K128 bstep=32 steps=4 wait=1"},
	{.pattern = WGMMA "32k32.f32." TYPES8 " a=K128 astep=32 b=K128 bstep=32 steps=4 wait=1"},
	{.pattern = WGMMA "32k32.s32." INTS8 " a=K128 astep=32 b=K128 bstep=32 steps=4 d={0,1}"},
	/* flags */
	{.pattern = WGMMA "16k16.{f32,f16}.f16.f16 a={regs,K128} b=M128 d={0,1} neg={1,2,3}"},
	{.pattern = WGMMA "16k16.f32.bf16.bf16 a={regs,M64} b=K128 d={0,1} neg={1,2,3}"},
	{.pattern = WGMMA "16k8.f32.tf32.tf32 a={regs,K128} b=K128 d={0,1} neg={1,2,3}"},
	{.pattern = WGMMA "16k32.{f32,f16}.e4m3.e5m2 a={regs,K128} b=K128 d={0,1} neg={1,2,3}"},
	{.pattern = WGMMA "16k32.s32.s8.u8 a={regs,K128} b=K128 d=0"},
	/* rounding */
	{.pattern = WGMMA "16k16.f32.{f16.f16,bf16.bf16} a={regs,K128} b=K128 d={0,1} values={1,3,4,7,9}"},
	{.pattern = WGMMA "16k16.f16.f16.f16 a={regs,K128} b=K128 d={0,1} values={1,3,4,7,8,9}"},
	{.pattern = WGMMA "16k8.f32.tf32.tf32 a={regs,K128} b=K128 d={0,1} values={1,3,4,7,8,9}"},
	{.pattern = WGMMA "16k16.f32.bf16.bf16 a=regs b=K128 d={0,1} values=8"},
	{.pattern = WGMMA "16k32.f32." TYPES8 " a={regs,K128} b=K128 d={0,1} values={1,3,4,7,9}"},
	{.pattern = WGMMA "16k32.f16." TYPES8 " a={regs,K128} b=K128 d={0,1} values={1,3,4,7,8,9}"},
	{.pattern = WGMMA "16k16.f32.f16.f16 a=K128 astep=32 b=K128 bstep=32 steps=4 values={1,3}"},
	{.pattern = WGMMA "16k16.f16.f16.f16 a=K128 astep=32 b=K128 bstep=32 steps=4 values={1,3}"},
	{.pattern = WGMMA "16k32.{f32,f16}.e4m3.e4m3 a=K128 astep=32 b=K128 bstep=32 steps=4 values={1,3}"},
};

#define MMA "mma.sync.aligned."
static const struct row mma_rows[] = {
	{.pattern = MMA "m16n8k{8,16}.row.col.f32.{f16.f16,bf16.bf16}.f32{, values=7, values=8, values=9}"},
	{.pattern = MMA "m16n8k{8,16}.row.col.f16.f16.f16.f16{, values=7, values=8, values=9}"},
	{.pattern = MMA "m16n8k{4,8}.row.col.f32.tf32.tf32.f32{, values=7, values=8, values=9}"},
	{.pattern = MMA "{m8n8k4,m16n8k4,m16n8k8,m16n8k16}.row.col.f64.f64.f64.f64"},
	{.pattern = MMA "{m8n8k16,m16n8k16,m16n8k32}.row.col{,.satfinite}.s32.{u8,s8}.{u8,s8}.s32"},
	{.pattern = MMA "m16n8k32.row.col.f32.{e4m3,e5m2}.{e4m3,e5m2}.f32{, values=7, values=8, values=9}"},
	{.pattern = MMA "m16n8k16.row.col.f32.{e4m3.e4m3,e5m2.e5m2}.f32{, values=7, values=9}", .version = "8.7"},
	{.pattern = MMA "m16n8k{16,32}.row.col.f16.{e4m3.e4m3,e4m3.e5m2,e5m2.e5m2}.f16{, values=7, values=8, values=9}",
	 .version = "8.7"},
};

static const struct row matrix_rows[] = {
	{.pattern = "ldmatrix.sync.aligned.m8n8.{x1,x2,x4}{,.trans}{,.shared,.shared::cta}.b16"},
	{.pattern = "stmatrix.sync.aligned.m8n8.{x1,x2,x4}{,.trans}{,.shared,.shared::cta}.b16"},
	{.pattern = "movmatrix.sync.aligned.m8n8.trans.b16"},
};

/* --- registers ----------------------------------------------------------------------------------------------- */

static void load_registers(struct strbuf *out, const struct form *f, u32 source, char letter, u32 n)
{
	for (u32 r = 0; r < n; r++)
		sb_printf(out, "ld.global.b32 %%%c%u, [%%d0+%u];\n", letter, r, slot_at(f, source + r));
}

static void print_registers(struct strbuf *out, char letter, u32 first, u32 n, const char *end)
{
	for (u32 r = 0; r < n; r++)
		sb_printf(out, "%s%%%c%u", r ? ", " : "{", letter, first + r);
	sb_printf(out, "}%s", end);
}

static void store_registers(struct strbuf *out, const struct form *f, char letter, u32 first)
{
	for (u32 r = 0; r < f->nresults; r++)
		sb_printf(out, "st.global.b%u [%%d0+%u], %%%c%u;\n", f->result_bytes * 8, slot_at(f, f->nsources + r),
			  letter, first + r);
	sb_puts(out, "ret;\n}\n");
}

/* --- wgmma ------------------------------------------------------------------------------------------------------ */

struct place {
	bool in_regs, mn_major;
	u32 width; /* of a swizzled row in bytes; 0: not swizzled */
	u32 leading, stride, start, base, step;
	u32 at; /* of the image, in bytes */
};

struct product {
	const char *opcode;
	u32 bits; /* of A's and B's elements */
	bool is_int, waits_late;
	struct place a, b;
	u32 steps, accs, acc_regs, negated, in_flight;
};

/* Of A or B, by the first letter of their options. */
static struct place place_of(const char *name, char letter)
{
	char start[] = {letter, 'o', 0}, leading[] = {letter, 'l', 0}, stride[] = {letter, 's', 0},
	     base[] = {letter, 'b', 0}, step[] = {letter, 's', 't', 'e', 'p', 0}, matrix[] = {letter, 0};
	const char *layout = option(name, matrix);
	u32 width = (u32)strtoul(layout + 1, NULL, 10);
	bool mn_major = *layout == 'M';
	u32 dense_leading = !width ? 128 : mn_major ? 16 * width : 16, dense_stride = width ? 8 * width : 256;
	return (struct place){.in_regs = *layout == 'r',
			      .mn_major = mn_major,
			      .width = width,
			      .leading = field_number(name, leading, dense_leading),
			      .stride = field_number(name, stride, dense_stride),
			      .start = field_number(name, start, 0),
			      .base = field_number(name, base, 0),
			      .step = field_number(name, step, 0)};
}

/* Sources that hold a matrix of mn rows or columns, whichever of the strides may be which. */
static u32 place_image(struct place *p, u32 mn, u32 steps, u32 at)
{
	u32 groups = p->mn_major && p->width ? (mn * 2 + p->width - 1) / p->width : mn / 8;
	u32 last = groups ? groups - 1 : 0;
	u32 far = MAX(last * p->stride + p->leading, last * p->leading + p->stride);
	p->at = at * KB;
	return (p->start + (steps - 1) * p->step + far + 8 * MAX(p->width, 16u) + KB - 1) / KB;
}

static u64 descriptor(const struct place *p)
{
	u64 swizzle = p->width == 128 ? 1 : p->width == 64 ? 2 : p->width == 32 ? 3 : 0;
	return (p->at + p->start) / 16 | (u64)(p->leading / 16) << 16 | (u64)(p->stride / 16) << 32 |
	       (u64)p->base << 49 | swizzle << 62;
}

static void print_product(struct strbuf *out, const struct product *p, u32 step)
{
	u32 acc = step % p->accs;
	sb_printf(out, "%s ", p->opcode);
	print_registers(out, 'c', acc * p->acc_regs, p->acc_regs, ", ");
	if (p->a.in_regs)
		print_registers(out, 'a', 0, 4, ", ");
	sb_printf(out, "%s%%m1, %s", p->a.in_regs ? "" : "%m0, ", step < p->accs ? "%p0" : "%p1");
	if (!p->is_int)
		sb_printf(out, ", %d, %d", p->negated & 1 ? -1 : 1, p->negated & 2 ? -1 : 1);
	if (!p->a.in_regs && (p->bits == 16 || p->a.mn_major))
		sb_printf(out, ", %d", p->a.mn_major);
	if (p->bits == 16 || p->b.mn_major)
		sb_printf(out, ", %d", p->b.mn_major);
	sb_printf(out, ";\nadd.u64 %%m0, %%m0, %u;\nadd.u64 %%m1, %%m1, %u;\n", p->a.step / 16, p->b.step / 16);
}

static void print_products(struct strbuf *out, const struct form *f, const struct product *p)
{
	begin_kernel(out, f);
	sb_puts(out, ".reg .b32 %c<128>, %a<4>;\n.reg .b64 %m<2>;\n");
	fill_image(out, f);
	load_registers(out, f, f->a0, 'a', p->a.in_regs ? 4 : 0);
	load_registers(out, f, f->na + f->nb, 'c', f->nresults);
	sb_printf(out,
		  "shr.u32 %%r5, %%r5, 4;\ncvt.u64.u32 %%d3, %%r5;\n"
		  "add.u64 %%m0, %%d3, 0x%llx;\nadd.u64 %%m1, %%d3, 0x%llx;\n"
		  "setp.%s.s32 %%p0, %%r2, 0;\nsetp.ge.s32 %%p1, %%r2, 0;\nwgmma.fence.sync.aligned;\n",
		  (unsigned long long)descriptor(&p->a), (unsigned long long)descriptor(&p->b),
		  field_number(f->name, "d", 1) ? "ge" : "lt");
	for (u32 s = 0; s < p->steps; s++) {
		print_product(out, p, s);
		if (p->waits_late)
			sb_printf(out, "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned %u;\n",
				  p->in_flight);
	}
	sb_puts(out, "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n");
	store_registers(out, f, 'c', 0);
}

static void make_wgmma(struct expansion *e, const char *name)
{
	struct form *f = new_form(e, name);
	struct strbuf text = {.arena = e->arena};
	enum ptx_type t[8];
	u32 n = (u32)strtoul(strstr(name, ".m64n") + 5, NULL, 10);
	types_of(name, t);
	f->is_product = true;
	f->result = t[0];
	f->result_bytes = 4;
	f->ncases = BLOCK;
	struct product p = {.opcode = arena_str(e->arena, name, strcspn(name, " ")),
			    .bits = (u32)ptx_bits(t[1]),
			    .is_int = t[0] == PT_S32,
			    .waits_late = option(name, "wait"),
			    .a = place_of(name, 'a'),
			    .b = place_of(name, 'b'),
			    .steps = field_number(name, "steps", 1),
			    .accs = field_number(name, "accs", 1),
			    .acc_regs = n * (u32)ptx_bits(t[0]) / 64,
			    .negated = field_number(name, "neg", 0),
			    .in_flight = field_number(name, "wait", 0)};
	f->values = (enum values)field_number(name, "values", p.is_int ? IN_BINADE : SMALL);
	f->na = p.a.in_regs ? 4 : place_image(&p.a, M, p.steps, 0);
	f->b0 = p.a.in_regs ? 0 : f->na;
	f->nb = place_image(&p.b, n, p.steps, f->b0);
	f->a0 = p.a.in_regs ? f->nb : 0;
	f->image = f->b0 + f->nb;
	f->nresults = p.accs * p.acc_regs;
	f->nsources = f->na + f->nb + f->nresults;
	tl_assert(f->image <= MAX_IMAGE && f->nresults <= MAX_RESULTS);
	set_sources(f, f->a0, f->na, t[1]);
	set_sources(f, f->b0, f->nb, t[2]);
	set_sources(f, f->na + f->nb, f->nresults, t[0]);
	print_products(&text, f, &p);
	finish_form(e, f, &text);
}

/* --- mma -------------------------------------------------------------------------------------------------------- */

static void make_mma(struct expansion *e, const char *name)
{
	struct form *f = new_form(e, name);
	struct strbuf text = {.arena = e->arena};
	enum ptx_type t[8];
	u32 m, k;
	types_of(name, t);
	sscanf(strstr(name, ".m") + 1, "m%un8k%u", &m, &k);
	bool wide = t[0] == PT_F64;
	u32 size = wide ? 2048 : 1024; /* bits of a register of all lanes */
	f->is_product = true;
	f->values = (enum values)field_number(name, "values", BY_TILE);
	f->result = t[0];
	f->na = f->b0 = m * k * (u32)ptx_bits(t[1]) / size;
	f->nb = k * 8 * (u32)ptx_bits(t[2]) / size;
	f->nresults = m * 8 * (u32)ptx_bits(t[0]) / size;
	f->nsources = f->na + f->nb + f->nresults;
	f->ncases = BLOCK;
	f->result_bytes = size / 256;
	for (u32 s = 0; s < f->nsources; s++) {
		enum ptx_type is = s < f->na ? t[1] : s < f->na + f->nb ? t[2] : t[3];
		f->sources[s] = (struct input){wide ? PT_B64 : PT_B32, (int)is};
	}
	begin_kernel(&text, f);
	char letter = wide ? 'd' : 'r';
	for (u32 s = 0; s < f->nsources; s++)
		sb_printf(&text, "ld.global.b%u %%%c%u, [%%d0+%u];\n", size / 32, letter, FIRST + s, slot_at(f, s));
	sb_printf(&text, "%.*s ", (int)strcspn(name, " "), name);
	print_registers(&text, letter, FIRST + f->na + f->nb, f->nresults, ", ");
	print_registers(&text, letter, FIRST, f->na, ", ");
	print_registers(&text, letter, FIRST + f->na, f->nb, ", ");
	print_registers(&text, letter, FIRST + f->na + f->nb, f->nresults, ";\n");
	store_registers(&text, f, letter, FIRST + f->na + f->nb);
	finish_form(e, f, &text);
}

/* --- ldmatrix, stmatrix, movmatrix ------------------------------------------------------------------------------ */

/* The address of a row in each lane, of the warp's 512 bytes: %r7. */
static void print_address(struct strbuf *out, const char *name)
{
	sb_puts(out, "and.b32 %r7, %r2, 31;\nmad.lo.u32 %r7, %r7, 5, 3;\nand.b32 %r7, %r7, 31;\nand.b32 %r8, %r2, 96;\n"
		     "add.u32 %r7, %r7, %r8;\nshl.b32 %r7, %r7, 4;\nadd.u32 %r7, %r7, %r5;\n");
	if (!strstr(name, "shared"))
		sb_puts(out, "cvt.u64.u32 %d4, %r7;\ncvta.shared.u64 %d4, %d4;\n");
}

static void make_matrix(struct expansion *e, const char *name)
{
	struct form *f = new_form(e, name);
	struct strbuf text = {.arena = e->arena};
	const char *number_text = strstr(name, ".x"), *address = strstr(name, "shared") ? "%r7" : "%d4";
	u32 regs = number_text ? (u32)strtoul(number_text + 2, NULL, 10) : 1;
	bool loads = *name == 'l', stores = *name == 's';
	f->ncases = BLOCK;
	f->image = loads || stores ? 2 : 0;
	f->nsources = f->image + (loads ? 0 : regs);
	f->nresults = stores ? 2 : regs;
	f->result = stores ? PT_B64 : PT_B32;
	f->result_bytes = stores ? 8 : 4;
	set_sources(f, 0, f->image, PT_B64);
	set_sources(f, f->image, f->nsources - f->image, PT_B32);
	begin_kernel(&text, f);
	sb_puts(&text, ".reg .b32 %a<4>, %c<4>;\n.reg .b64 %m<2>;\n");
	if (f->image) {
		fill_image(&text, f);
		print_address(&text, name);
	}
	load_registers(&text, f, f->image, 'a', f->nsources - f->image);
	sb_printf(&text, "%s ", name);
	if (stores)
		sb_printf(&text, "[%s], ", address);
	if (*name == 'm')
		sb_puts(&text, "%c0, %a0");
	else
		print_registers(&text, loads ? 'c' : 'a', 0, regs, "");
	if (loads)
		sb_printf(&text, ", [%s]", address);
	sb_puts(&text, ";\n");
	if (stores)
		sb_puts(&text, "bar.sync 0;\nld.shared.b64 %m0, [%r6];\nld.shared.b64 %m1, [%r6+1024];\n");
	store_registers(&text, f, stores ? 'm' : 'c', 0);
	finish_form(e, f, &text);
}

void each_tensor_form(struct expansion *e)
{
	each_of(e, mma_rows, ARRAY_LEN(mma_rows), make_mma);
	each_of(e, wgmma_rows, ARRAY_LEN(wgmma_rows), make_wgmma);
	each_of(e, matrix_rows, ARRAY_LEN(matrix_rows), make_matrix);
}
