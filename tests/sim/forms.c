/* The table of instructions, and their kernels.
 *
 * A row stands for many opcodes: "{add,sub}{,.ftz}.f32" is four. Behind a space come constant operands. The signature
 * names the result and the sources by letters:
 *   T, F   the last and the first type of the opcode       W   an integer twice as wide as T
 *   w      32 bits        p, N   a predicate, and one that is negated        P   two predicates, p|q
 *   n      T, never zero  s      a number like a distance  q   of prmt       V   32 bits and a predicate, of shfl
 *   c      of shfl: segment and clamp */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/isa.h"

#define ALL_INTS "{u8,s8,u16,s16,u32,s32,u64,s64}"
#define INTS "{u16,s16,u32,s32,u64,s64}"
#define UNSIGNED "{u16,u32,u64}"
#define SIGNED "{s16,s32,s64}"
#define BITS "{b16,b32,b64}"
#define RND "{.rn,.rz,.rm,.rp}"
#define MAYBE_RND "{,.rn,.rz,.rm,.rp}"
#define COMPARES "{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}"

/* Bounds are those of the PTX ISA and half an ulp for the simulator, which rounds correctly. For f64 the ISA has none:
 * one in the last place. */
#define EXACT .bound = {.rel = 0}
#define HALF_ULP 0x1p-24
#define REL(r) .bound = {.rel = (r) + HALF_ULP}
static const struct row rows[] = {
	/* f32 and f64 */
	{"{add,sub,mul}" MAYBE_RND "{,.ftz}{,.sat}.f32", "TTT", EXACT},
	{"{add,sub,mul}" MAYBE_RND ".f64", "TTT", EXACT},
	{"fma" RND "{,.ftz}{,.sat}.f32", "TTTT", EXACT},
	{"{fma,mad}" RND ".f64", "TTTT", EXACT},
	{"mad" RND "{,.ftz}.f32", "TTTT", EXACT},
	{"{div}" RND "{,.ftz}.f32", "TTT", EXACT},
	{"div" RND ".f64", "TTT", EXACT},
	{"{rcp,sqrt}" RND "{,.ftz}.f32", "TT", EXACT},
	{"{rcp,sqrt}" RND ".f64", "TT", EXACT},
	{"{min,max}{,.ftz}{,.NaN}{,.xorsign.abs}.f32", "TTT", EXACT},
	{"{min,max}.f64", "TTT", EXACT},
	{"{abs,neg}{,.ftz}.f32", "TT", EXACT},
	{"{abs,neg}.f64", "TT", EXACT},
	{"copysign.{f32,f64}", "TTT", EXACT},
	{"testp.{finite,infinite,number,notanumber,normal,subnormal}.{f32,f64}", "pT", EXACT},
	/* approximations */
	{"div.{approx,full}{,.ftz}.f32", "TTT", REL(0x1p-22)},
	{"{rcp,sqrt}.approx{,.ftz}.f32", "TT", REL(0x1p-23)},
	{"rsqrt.approx{,.ftz}.f32", "TT", REL(0x1.12p-23)},
	{"rcp.approx.ftz.f64", "TT", .bound = {.rel = 0x1p-20}},
	{"rsqrt.approx.ftz.f64", "TT", .bound = {.rel = 0x1p-20}},
	{"rsqrt.approx.f64", "TT", .bound = {.rel = 0x1p-52}},
	{"{sin,cos}.approx{,.ftz}.f32", "TT",
	 .bound = {.abs = 0x1.3bp-15, .near_abs = 0x1.6ap-21, .near = 6.2831, .reach = 314.159}},
	{"lg2.approx{,.ftz}.f32", "TT", .bound = {.rel = 0x1p-22 + HALF_ULP, .abs = 0x1p-22}},
	{"ex2.approx{,.ftz}.f32", "TT", REL(0x1p-22)},
	{"ex2.approx.{f16,f16x2}", "TT", .bound = {.rel = 0x1.12p-10 + 0x1p-11, .abs = 0x1p-24}},
	{"ex2.approx.ftz.{bf16,bf16x2}", "TT", .bound = {.rel = 0x1p-7 + 0x1p-9}},
	{"tanh.approx.f32", "TT", REL(0x1p-11)},
	{"tanh.approx.{f16,f16x2}", "TT", .bound = {.abs = 0x1.03p-11 + 0x1p-12}},
	{"tanh.approx.{bf16,bf16x2}", "TT", .bound = {.abs = 0x1p-8 + 0x1p-9}},
	/* f16 and bf16 */
	{"{add,sub,mul}{,.rn}{,.ftz}{,.sat}.{f16,f16x2,bf16,bf16x2}", "TTT", EXACT},
	{"fma{,.rn,.rz}{,.ftz}{,.sat,.relu}.{f16,f16x2}", "TTTT", EXACT},
	{"fma{,.rn}{,.ftz}{,.sat,.relu}.{bf16,bf16x2}", "TTTT", EXACT},
	{"{min,max}{,.ftz}{,.NaN}{,.xorsign.abs}.{f16,f16x2,bf16,bf16x2}", "TTT", EXACT},
	{"{abs,neg}{,.ftz}.{f16,f16x2,bf16,bf16x2}", "TT", EXACT},
	{"{div,rem}{,.rn}.{f16,bf16}", "TTT", EXACT},
	/* integers */
	{"{add,sub}." INTS, "TTT", EXACT},
	{"{add,sub}.sat.{s16,u32,s32,s64}", "TTT", EXACT},
	{"mul{.lo,.hi}." INTS, "TTT", EXACT},
	{"mul.wide." INTS, "WTT", EXACT},
	{"mad{.lo,.hi}{,.sat}." INTS, "TTTT", EXACT},
	{"mad.wide.{u16,s16,u32,s32}", "WTTW", EXACT},
	{"mul24.{lo,hi}.{u32,s32}", "TTT", EXACT},
	{"mad24.{lo,hi}{,.sat}.{u32,s32}", "TTTT", EXACT},
	{"{div,rem}." INTS, "TTn", EXACT},
	{"{div,rem}." INTS, "TTT", EXACT},
	{"{min,max}{,.relu}." INTS, "TTT", EXACT},
	{"{abs,neg}." INTS, "TT", EXACT},
	{"sad." INTS, "TTTT", EXACT},
	{"dp4a.{u32,s32}.{u32,s32}", "wwww", EXACT},
	{"dp2a.{lo,hi}.{u32,s32}.{u32,s32}", "wwww", EXACT},
	{"add.{s32,u64} , {7,-5,0x7fffffff}", "TT", EXACT},
	{"add.{s16,u16} , {7,-5}", "TT", EXACT},
	{"mul.wide.{u16,s16,u32,s32} , {3,-7}", "WT", EXACT},
	/* bits */
	{"{and,or,xor}." BITS, "TTT", EXACT},
	{"{and,or,xor}.{b16,b32,b64} , {-16,255}", "TT", EXACT},
	{"{and,or,xor}.pred", "ppp", EXACT},
	{"{not,cnot}." BITS, "TT", EXACT},
	{"not.pred", "pp", EXACT},
	{"shl." BITS, "TTs", EXACT},
	{"shr.{b16,b32,b64,u16,u32,u64,s16,s32,s64}", "TTs", EXACT},
	{"{shl,shr}.{b16,b32,b64} , {0,1,15,16,31,32,40,63,64,200}", "TT", EXACT},
	{"shr.{s16,s32,s64} , {0,1,15,16,31,32,40,63,64,200}", "TT", EXACT},
	{"shf.{l,r}.{clamp,wrap}.b32", "wwws", EXACT},
	{"bfe.{u32,s32,u64,s64}", "TTss", EXACT},
	{"bfe.{u32,s32,u64,s64} , {0,5,12,24}, {0,1,8,27}", "TT", EXACT},
	{"bfi.{b32,b64}", "TTTss", EXACT},
	{"bfi.{b32,b64} , {0,5,24}, {0,1,8,27}", "TTT", EXACT},
	{"bfind{,.shiftamt}.{u32,s32,u64,s64}", "wT", EXACT},
	{"{popc,clz}.{b32,b64}", "wT", EXACT},
	{"brev.{b32,b64}", "TT", EXACT},
	{"szext.{clamp,wrap}.{u32,s32}", "TTs", EXACT},
	{"prmt.b32", "wwwq", EXACT},
	{"prmt.b32.{f4e,b4e,rc8,ecl,ecr,rc16}", "wwws", EXACT},
	{"prmt.b32 , 0x{3210,5410,7632,1032,6420,7531,ba98,c4f1}", "www", EXACT},
	{"lop3.b32 , 0x{00,01,96,e8,ca,1b,80,fe,f8,6a}", "wwww", EXACT},
	/* comparisons */
	{"setp." COMPARES "{,.ftz}.{f16,f32,bf16}", "pTT", EXACT},
	{"setp." COMPARES ".f64", "pTT", EXACT},
	{"setp." COMPARES ".{f16x2,bf16x2}", "PTT", EXACT},
	{"setp.{eq,ne,lt,le,gt,ge,lo,ls,hi,hs}." INTS, "pTT", EXACT},
	{"setp.{eq,ne,lt}." BITS, "pTT", EXACT},
	{"setp.{lt,ne}.{and,or,xor}.{s32,f32,f16}", "PTTp", EXACT},
	{"setp.{lt,ne,geu}.{and,or,xor}{,.ftz}.f16", "pTTp", EXACT},
	{"setp.{lt,ne,geu}.{and,or,xor}.bf16", "pTTN", EXACT},
	{"setp.{ge,neu}.{and,or,xor}.{f32,f64}", "PTTN", EXACT},
	{"setp.{gt,equ}.{and,or,xor}.{f16x2,bf16x2}", "PTTp", EXACT},
	{"set.{lt,neu}{,.ftz}.{u32,s32,f32}.{f32,s32,f64}", "FTT", EXACT},
	{"set.{ge,ne}.{u32,s32,f32}." INTS, "FTT", EXACT},
	{"set.{gt,equ}.{u16,s16,u32,s32,f16}.f16", "FTT", EXACT},
	{"set.{gt,equ}.{u16,s16,u32,s32,bf16}.bf16", "FTT", EXACT},
	{"set.{le,nan}{,.ftz}.f16x2.f16x2", "TTT", EXACT},
	{"set.{le,nan}.bf16x2.bf16x2", "TTT", EXACT},
	{"selp.{b16,b32,b64,u16,s16,u32,s32,u64,s64,f32,f64}", "TTTp", EXACT},
	{"slct.{b16,b32,b64,u16,s32,u64,f32,f64}.s32", "FFFT", EXACT},
	{"slct{,.ftz}.{b32,u64,f32}.f32", "FFFT", EXACT},
	/* conversions */
	{"cvt{,.sat}." ALL_INTS "." ALL_INTS, "FT", EXACT},
	{"cvt{,.rn,.rz,.rm,.rp}.{f16,bf16,f32,f64}." ALL_INTS, "FT", EXACT},
	{"cvt{.rn,.rz}.sat.{f16,bf16,f32,f64}.{s16,u32}", "FT", EXACT},
	{"cvt{.rni,.rzi,.rmi,.rpi}." ALL_INTS ".{f16,bf16,f32,f64}", "FT", EXACT},
	{"cvt{.rni,.rzi}{.ftz,.sat,.ftz.sat}." ALL_INTS ".f32", "FT", EXACT},
	{"cvt{.rzi}.sat.{s8,u16,s32,u64}.{f16,f64}", "FT", EXACT},
	{"cvt{,.rn,.rz,.rm,.rp,.rni,.rzi,.rmi,.rpi}{,.ftz}{,.sat}.{f16,f32,f64}.{f16,f32,f64}", "FT", EXACT},
	{"cvt{,.rn,.rz,.rm,.rp,.rni,.rzi,.rmi,.rpi}{,.sat}.bf16.{f16,bf16,f32,f64}", "FT", EXACT},
	{"cvt{,.rn,.rz,.rm,.rp,.rni,.rzi,.rmi,.rpi}{,.ftz}{,.sat}.{f16,f32,f64}.bf16", "FT", EXACT},
	{"cvt{.rn,.rz}{,.relu}{,.satfinite}.{f16,bf16}.f32", "FT", EXACT},
	{"cvt{.rn,.rz}{,.relu}{,.satfinite}.{f16x2,bf16x2}.f32", "FTT", EXACT},
	{"cvt{,.rna,.rn,.rz}{,.relu}.tf32.f32", "FT", EXACT},
	{"cvt{.rna,.rn,.rz}{,.relu}.satfinite.tf32.f32", "FT", EXACT, "8.6"},
	{"cvt.{u8,s8,u16,s16}.{u16,s16,u32,s32,u64}", "wT", EXACT},
	{"cvt.rzi.{u8,s8,u16,s16}.{f32,f64}", "wT", EXACT},
	{"cvt.{u16,s16,u32,s32,u64,s64}.{u8,s8,u16,s16}", "Fw", EXACT},
	{"cvt.rn.{f16,f32,f64}.{u8,s8,u16,s16}", "Fw", EXACT},
	{"cvt.rn{,.satfinite}{,.relu}.{e4m3x2,e5m2x2}.f32", "FTT", EXACT},
	{"cvt.rn{,.satfinite}{,.relu}.{e4m3x2,e5m2x2}.f16x2", "FT", EXACT},
	{"cvt.rn{,.relu}.f16x2.{e4m3x2,e5m2x2}", "FT", EXACT},
	{"cvt.pack.sat.{u16,s16}.s32", "wTT", EXACT},
	{"cvt.pack.sat.{u8,s8}.s32.b32", "wwww", EXACT},
	/* warps */
	{"shfl.sync.{up,down,bfly,idx}.b32 , -1", "Vwsc", EXACT},
	{"redux.sync.{add,min,max}.{u32,s32} , -1", "wT", EXACT},
	{"redux.sync.{and,or,xor}.b32 , -1", "wT", EXACT},
	{"vote.sync.ballot.b32 , -1", "wp", EXACT},
	{"vote.sync.{all,any,uni}.pred , -1", "pp", EXACT},
};

/* --- names ------------------------------------------------------------------------------------------------------ */

static void expand(struct expansion *e, const char *pattern)
{
	const char *open = strchr(pattern, '{');
	if (!open) {
		e->make(e, pattern);
		arena_free(e->arena);
		return;
	}
	const char *close = strchr(open, '}');
	for (const char *at = open + 1; at <= close;) {
		size_t len = strcspn(at, ",}");
		char text[512];
		snprintf(text, sizeof text, "%.*s%.*s%s", (int)(open - pattern), pattern, (int)len, at, close + 1);
		expand(e, text);
		at += len + 1;
	}
}

u32 types_of(const char *name, enum ptx_type types[8])
{
	u32 n = 0;
	char text[256];
	snprintf(text, sizeof text, "%.*s", (int)strcspn(name, " "), name);
	for (char *save, *part = strtok_r(text, ".", &save); part; part = strtok_r(NULL, ".", &save)) {
		enum ptx_type t = ptx_type_named(part);
		if (t && n < 8)
			types[n++] = t;
	}
	return n;
}

const char *option(const char *name, const char *key)
{
	size_t n = strlen(key);
	for (const char *at = strchr(name, ' '); at; at = strchr(at + 1, ' '))
		if (!strncmp(at + 1, key, n) && at[1 + n] == '=')
			return at + 2 + n;
	return NULL;
}

u32 field_number(const char *name, const char *key, u32 otherwise)
{
	const char *text = option(name, key);
	return text ? (u32)strtoul(text, NULL, 10) : otherwise;
}

/* --- kernels ---------------------------------------------------------------------------------------------------- */

void begin_kernel(struct strbuf *out, const struct form *f)
{
	sb_printf(out,
		  ".version %s\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p%s)\n{\n"
		  ".reg .pred %%p<9>;\n.reg .b16 %%h<9>;\n.reg .b32 %%r<40>;\n.reg .b64 %%d<40>;\n"
		  "ld.param.u64 %%d0, [p];\nmov.u32 %%r0, %%ctaid.x;\nmov.u32 %%r1, %%ntid.x;\nmov.u32 %%r2, %%tid.x;\n"
		  "mad.lo.u32 %%r0, %%r0, %%r1, %%r2;\nmul.wide.u32 %%d1, %%r0, 8;\nadd.u64 %%d0, %%d0, %%d1;\n",
		  f->version ? f->version : "8.4", f->map ? ", .param .align 64 .b8 map[128]" : "");
}

u32 slot_at(const struct form *f, u32 slot)
{
	return slot * f->ncases * 8;
}

void fill_image(struct strbuf *out, const struct form *f)
{
	sb_printf(out,
		  ".shared .align 1024 .b8 image[%u];\nmov.u32 %%r5, image;\n"
		  "shl.b32 %%r6, %%r2, 3;\nadd.u32 %%r6, %%r6, %%r5;\n",
		  f->image * 1024);
	for (u32 s = 0; s < f->image; s++)
		sb_printf(out, "ld.global.b64 %%d2, [%%d0+%u];\nst.shared.b64 [%%r6+%u], %%d2;\n", slot_at(f, s),
			  s * 1024);
	sb_puts(out, "fence.proxy.async;\nbar.sync 0;\n");
}

void set_sources(struct form *f, u32 first, u32 n, enum ptx_type t)
{
	tl_assert(first + n <= MAX_SOURCES);
	for (u32 s = first; s < first + n; s++)
		f->sources[s] = (struct input){s < f->image ? PT_B64 : PT_B32, (int)t};
}

/* A register of type t; the number is that of a source, or 8 for the result. */
static const char *register_name(struct arena *a, enum ptx_type t, u32 n)
{
	int bits = ptx_bits(t);
	return arena_printf(a, "%%%s%u",
			    t == PT_PRED ? "p"
			    : bits <= 16 ? "h"
			    : bits == 32 ? "r"
					 : "d",
			    t == PT_PRED || bits <= 16 ? n : 10 + n);
}

static void load_source(struct strbuf *out, const struct form *f, u32 s)
{
	enum ptx_type t = f->sources[s].type;
	if (t == PT_PRED)
		sb_printf(out, "ld.global.u32 %%r3, [%%d0+%u];\nand.b32 %%r3, %%r3, 1;\nsetp.ne.u32 %%p%u, %%r3, 0;\n",
			  slot_at(f, s), s);
	else
		sb_printf(out, "ld.global.b%d %s, [%%d0+%u];\n", MAX(ptx_bits(t), 16), register_name(out->arena, t, s),
			  slot_at(f, s));
}

static void store_predicate(struct strbuf *out, const char *p, u32 at)
{
	sb_printf(out, "selp.u32 %%r4, 1, 0, %s;\nst.global.u32 [%%d0+%u], %%r4;\n", p, at);
}

static void write_kernel(struct form *f, struct strbuf *out, const char *signature)
{
	const char *space = strchr(f->name, ' ');
	char result = signature[0];
	bool negated = strchr(signature, 'N');
	size_t len = space ? (size_t)(space - f->name) : strlen(f->name);
	u32 at = slot_at(f, f->nsources);
	begin_kernel(out, f);
	for (u32 s = 0; s < f->nsources; s++)
		load_source(out, f, s);
	const char *d = register_name(out->arena, f->result, 8);
	if (result == 'P')
		d = "%p7|%p8";
	else if (result == 'V')
		d = "%r18|%p8";
	sb_printf(out, "%.*s %s", (int)len, f->name, d);
	for (u32 s = 0; s < f->nsources; s++)
		sb_printf(out, ", %s%s", negated && s == f->nsources - 1 ? "!" : "",
			  register_name(out->arena, f->sources[s].type, s));
	sb_printf(out, "%s;\n", space ? space + 1 : "");
	if (result == 'P' || f->result == PT_PRED)
		store_predicate(out, result == 'P' ? "%p7" : d, at);
	else
		sb_printf(out, "st.global.b%d [%%d0+%u], %s;\n", MAX(ptx_bits(f->result), 16), at,
			  result == 'V' ? "%r18" : d);
	if (result == 'P' || result == 'V')
		store_predicate(out, "%p8", at + 4);
	sb_puts(out, "ret;\n}\n");
	f->result_bytes = result == 'P' || result == 'V' ? 8
			  : f->result == PT_PRED         ? 4
							 : (u32)MAX(ptx_bits(f->result), 16) / 8;
}

static enum ptx_type twice(enum ptx_type t)
{
	return t == PT_U64 || t == PT_S64 ? t : (enum ptx_type)(t + 1);
}

static struct input source_of(char letter, enum ptx_type first, enum ptx_type last)
{
	switch (letter) {
	case 'T': return (struct input){last, (int)last};
	case 'F': return (struct input){first, (int)first};
	case 'W': return (struct input){twice(last), (int)twice(last)};
	case 'n': return (struct input){last, V_NONZERO};
	case 's': return (struct input){PT_B32, V_COUNT};
	case 'q': return (struct input){PT_B32, V_SELECTOR};
	case 'c': return (struct input){PT_B32, V_CLAMP};
	case 'p':
	case 'P':
	case 'N': return (struct input){PT_PRED, PT_PRED};
	default: return (struct input){PT_B32, PT_B32};
	}
}

static u64 hash(u64 h, const void *data, size_t n)
{
	for (const u8 *at = data; n--; at++)
		h = (h ^ *at) * 0x100000001B3;
	return h;
}

void finish_form(struct expansion *e, struct form *f, const struct strbuf *text)
{
	f->ptx = text->at;
	f->exact = !f->bound.rel && !f->bound.abs;
	make_operands(e->arena, f);
	f->id = hash(0xCBF29CE484222325, f->ptx, strlen(f->ptx));
	f->id = hash(f->id, f->in, (size_t)f->nsources * f->ncases * sizeof *f->in);
	f->id = f->map ? hash(f->id, f->name, strlen(f->name)) : f->id;
	e->visit(e->context, f);
}

struct form *new_form(struct expansion *e, const char *name)
{
	struct form *f = arena_new(e->arena, struct form);
	f->name = arena_str(e->arena, name, strlen(name));
	f->bound = e->row->bound;
	f->version = e->row->version;
	return f;
}

static void make_form(struct expansion *e, const char *name)
{
	struct form *f = new_form(e, name);
	struct strbuf text = {.arena = e->arena};
	enum ptx_type types[8] = {PT_NONE};
	const char *signature = e->row->signature;
	u32 n = types_of(name, types);
	f->nresults = 1;
	f->nsources = (u32)strlen(signature) - 1;
	for (u32 s = 0; s < f->nsources; s++)
		f->sources[s] = source_of(signature[s + 1], types[0], types[n ? n - 1 : 0]);
	f->result = source_of(signature[0], types[0], types[n ? n - 1 : 0]).type;
	f->ncases = f->nsources == 1 || !(f->bound.rel == 0 && f->bound.abs == 0) ? MAX_CASES / 2 : MAX_CASES;
	write_kernel(f, &text, signature);
	finish_form(e, f, &text);
}

void each_of(struct expansion *e, const struct row *rows, u32 n, void (*make)(struct expansion *, const char *))
{
	e->make = make;
	for (u32 r = 0; r < n; r++) {
		e->row = &rows[r];
		expand(e, rows[r].pattern);
	}
}

void each_form(struct arena *a, visit_fn *visit, void *context)
{
	struct expansion e = {.arena = a, .visit = visit, .context = context};
	each_of(&e, rows, ARRAY_LEN(rows), make_form);
	each_tensor_form(&e);
	each_bulk_form(&e);
}
