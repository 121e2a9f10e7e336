/* Inline assembly on the CPU: the simulator runs it in a generated PTX kernel. Each thread of that kernel runs the
 * assembly text once, for packed_element elements of each operand. A record in memory holds the registers of a thread,
 * 8 bytes each. The thread loads its inputs from its record and stores its outputs there.
 *
 * Elements of a tile are not assigned to threads on the CPU. Assembly that reads the number of its thread, or exchanges
 * data with other threads, would give other results than on a GPU, and is refused. */
#include "runtime/device/inline_asm_run.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/sim/sim.h"

enum { REGISTER_BYTES = 8, MOST_WARPS = 8, MOST_STEPS = 1 << 24 };

struct runner {
	struct arena *a;
	const struct asm_call *c;
	char *const *tiles;
	struct asm_form form;
	u32 nregisters;
	u32 first_line; /* line of the generated kernel at which the inline assembly begins */
};

/* --- the kernel -------------------------------------------------------------------------------------------------- */

static void declare(struct strbuf *out, const char *type, const char *name, u32 n)
{
	sb_printf(out, ".reg .%s %%tlc_%s%u;\n", type, name, n);
}

static void add_loads(const struct runner *r, struct strbuf *out)
{
	for (u32 k = 0; k < r->nregisters; k++) {
		char class = r->form.class[k];
		declare(out, class == 'b' ? "pred" : arena_printf(r->a, "b%d", asm_class_bits(class)), "r", k);
		if (k < r->form.outputs)
			continue;
		if (class == 'b')
			sb_printf(out,
				  "ld.global.u8 %%tlc_byte, [%%tlc_at+%u];\nsetp.ne.u16 %%tlc_r%u, %%tlc_byte, 0;\n",
				  k * REGISTER_BYTES, k);
		else
			sb_printf(out, "ld.global.b%d %%tlc_r%u, [%%tlc_at+%u];\n", asm_class_bits(class), k,
				  k * REGISTER_BYTES);
		if (r->form.tied[k])
			sb_printf(out, "mov.%s%d %%tlc_r%u, %%tlc_r%u;\n", class == 'b' ? "pred" : "b",
				  asm_class_bits(class), r->form.tied[k] - 1u, k);
	}
}

static void add_text(const struct runner *r, struct strbuf *out)
{
	for (const char *s = r->c->text; *s;) {
		size_t len = strcspn(s, "$");
		sb_add(out, s, len);
		s += len;
		if (!*s++)
			break;
		if (*s == '$') {
			sb_add(out, s++, 1);
			continue;
		}
		bool braced = *s == '{';
		u32 n = (u32)strtoul(s + braced, (char **)&s, 10);
		s += braced;
		u32 at = n >= r->form.outputs && r->form.tied[n] ? r->form.tied[n] - 1u : n;
		sb_printf(out, "%%tlc_r%u", at);
	}
}

static u32 count_lines(const char *s)
{
	u32 n = 1;
	while ((s = strchr(s, '\n')))
		s++, n++;
	return n;
}

static const char *kernel_text(struct runner *r)
{
	struct strbuf out = {.arena = r->a};
	sb_puts(&out, ".version 8.5\n.target sm_90a\n.address_size 64\n"
		      ".visible .entry assembly(.param .u64 records, .param .u32 count)\n{\n"
		      ".reg .b64 %tlc_at;\n.reg .b32 %tlc_thread;\n.reg .b32 %tlc_count;\n.reg .b16 %tlc_byte;\n"
		      ".reg .pred %tlc_off;\n"
		      "mov.u32 %tlc_thread, %tid.x;\nld.param.u32 %tlc_count, [count];\n"
		      "setp.ge.u32 %tlc_off, %tlc_thread, %tlc_count;\n@%tlc_off bra $tlc_end;\n"
		      "ld.param.u64 %tlc_at, [records];\n");
	sb_printf(&out, "mad.wide.u32 %%tlc_at, %%tlc_thread, %u, %%tlc_at;\n", r->nregisters * REGISTER_BYTES);
	add_loads(r, &out);
	r->first_line = count_lines(out.at);
	add_text(r, &out);
	sb_puts(&out, "\n");
	for (u32 k = 0; k < r->form.outputs; k++)
		if (r->form.class[k] == 'b')
			sb_printf(&out,
				  "selp.u16 %%tlc_byte, 1, 0, %%tlc_r%u;\nst.global.u8 [%%tlc_at+%u], %%tlc_byte;\n", k,
				  k * REGISTER_BYTES);
		else
			sb_printf(&out, "st.global.b%d [%%tlc_at+%u], %%tlc_r%u;\n", asm_class_bits(r->form.class[k]),
				  k * REGISTER_BYTES, k);
	sb_puts(&out, "$tlc_end:\nret;\n}\n");
	return out.at;
}

/* An instruction or special register of the text whose result depends on the position of its thread; or NULL. */
static const char *depends_on_threads(const struct ptx_kernel *k)
{
	bool own = true; /* the kernel reads the number of its thread, once */
	for (u32 i = 0; i < k->ncode; i++) {
		const struct instr *in = &k->code[i];
		if (in->is_sync || in->members)
			return in->opcode;
		for (u32 n = 0; n < in->nops; n++) {
			const char *name = in->ops[n].kind == O_SPECIAL ? in->ops[n].name : NULL;
			if (name && !own && strncmp(name, "%clock", 6) && strncmp(name, "%globaltimer", 12))
				return name;
			own = own && !name;
		}
	}
	return NULL;
}

/* Renumbers the line of a reader's error, "line 21: …", from the kernel's lines to the text's. */
static const char *error_in_text(const struct runner *r, const char *error)
{
	char *rest;
	if (strncmp(error, "line ", 5))
		return error;
	u32 line = (u32)strtoul(error + 5, &rest, 10) - r->first_line + 1;
	return arena_printf(r->a, "line %u%s", MIN(line, count_lines(r->c->text)), rest);
}

/* --- records ----------------------------------------------------------------------------------------------------- */

/* Copies the elements of an operand or result between its tile and the records of `n` threads, from thread `first` on.
 * If the last thread has fewer than packed_element elements, it gets copies of the last element. */
static void copy_elements(const struct runner *r, char *records, u64 first, u32 n, char *tile, int bits, u32 reg,
			  bool to_tile)
{
	u32 per = asm_share(bits, r->c->pack), bytes = (u32)bits > 8 ? (u32)bits / 8 : 1;
	for (u32 t = 0; t < n; t++)
		for (u32 k = 0; k < r->c->pack; k++) {
			u64 element = (first + t) * r->c->pack + k;
			u64 place = (u64)t * r->nregisters + reg + k / per;
			char *at = records + place * REGISTER_BYTES + k % per * bytes;
			if (!to_tile)
				memcpy(at, tile + MIN(element, r->c->n - 1) * bytes, bytes);
			else if (element < r->c->n)
				memcpy(tile + element * bytes, at, bytes);
		}
}

static void copy_all(const struct runner *r, char *records, u64 first, u32 n, bool to_tiles)
{
	const struct asm_call *c = r->c;
	u32 reg = 0;
	for (u32 i = 0; i < c->nresults + c->noperands; i++) {
		if (to_tiles == (i < c->nresults))
			copy_elements(r, records, first, n, r->tiles[i], c->bits[i], reg, to_tiles);
		reg += c->pack / asm_share(c->bits[i], c->pack);
	}
}

/* --- running ----------------------------------------------------------------------------------------------------- */

/* The memory that the PTX kernel may access, by address: the buffers of the launch, and the records of its threads
 * (`more`). */
static struct mem_range *ranges_with(struct arena *a, const struct mem_range *ranges, u32 n, struct mem_range more)
{
	struct mem_range *all = arena_array(a, struct mem_range, n + 1u);
	u32 at = ranges_below(ranges, n, range_start(&more));
	for (u32 i = 0; i <= n; i++)
		all[i] = i < at ? ranges[i] : i == at ? more : ranges[i - 1];
	return all;
}

const char *assembly_run(struct arena *a, const struct asm_call *c, char *const *tiles, const struct mem_range *ranges,
			 u32 nranges, u64 guard)
{
	struct runner r = {.a = a, .c = c, .tiles = tiles};
	const char *error = asm_read_form(c->constraints, &r.form);
	r.nregisters = r.form.outputs + r.form.inputs;
	const char *text = error ? NULL : kernel_text(&r);
	struct ptx_module *m = error ? NULL : ptx_read(a, text, strlen(text), &error);
	if (!m || !sim_decode(a, m, &error))
		return error_in_text(&r, error);
	const char *part = depends_on_threads(&m->kernels[0]);
	if (part)
		return arena_printf(a,
				    "'%s' depends on the assignment of elements to the threads of a GPU: launch on "
				    "cuda or sim",
				    part);
	u64 threads = (c->n + c->pack - 1) / c->pack;
	u32 most = (u32)MIN(threads, MOST_WARPS * LANES);
	size_t size = (size_t)most * r.nregisters * REGISTER_BYTES;
	char *records = arena_alloc(a, size);
	struct {
		char *records;
		u32 count;
	} params = {.records = records};
	struct launch l = {.module = m,
			   .kernel = &m->kernels[0],
			   .grid = {1, 1, 1},
			   .num_warps = (most + LANES - 1) / LANES,
			   .params = (const char *)&params,
			   .ranges = ranges_with(a, ranges, nranges, (struct mem_range){NULL, records, size}),
			   .nranges = nranges + 1,
			   .open = true,
			   .guard = guard,
			   .max_steps = MOST_STEPS,
			   .threads = 1,
			   .independent = true};
	struct strbuf failure = {.arena = a};
	for (u64 first = 0; first < threads; first += most) {
		params.count = (u32)MIN(threads - first, most);
		memset(records, 0, size);
		copy_all(&r, records, first, params.count, false);
		if (sim_run(&l, &failure) != SIM_OK)
			return failure.at;
		copy_all(&r, records, first, params.count, true);
	}
	return NULL;
}
