/* Faults planted in PTX text, one line each. The places come from the instructions that the simulator reads there. */
#include <stdlib.h>

#include "tests/sim/mutants.h"

const char *const kind_names[KINDS] = {"barrier removed", "wait removed or weaker", "commit removed",
				       "wgmma wait", "wgmma fence removed", "proxy fence removed",
				       "wgmma commit removed", "wgmma descriptor",
				       "shared address", "swizzle", "global address", "guard dropped", "shuffle",
				       ".trans dropped", "accumulator", "mbarrier wait", "mbarrier arrival",
				       "mbarrier bytes",
				       "mbarrier initialised", "turn"};

struct listing {
	struct arena *a;
	const struct ptx_kernel *k;
	const char **lines;
	bool *in_shared, *in_global; /* per register: does it feed such an address? */
	bool *in_descriptor;         /* does it feed one through sums and or alone? */
	const struct instr *product_wait; /* the last one before, nothing but straight code between; or NULL */
	mutant_vec *out;
	u32 count[KINDS];
};

static bool starts(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

static void add(struct listing *l, enum kind kind, u32 line, const char *with, const char *what)
{
	struct mutant m = {.kind = kind, .index = l->count[kind]++, .line = line, .with = with, .what = what};
	vec_push(l->a, l->out, m);
}

/* The line with the `len` characters at `at` replaced. */
static const char *spliced(struct listing *l, const char *line, const char *at, size_t len, const char *with)
{
	return arena_printf(l->a, "%.*s%s%s", (int)(at - line), line, with, at + len);
}

/* --- what addresses are made of ---------------------------------------------------------------------------------- */

static bool is_copy(const struct instr *i)
{
	return starts(i->opcode, "cp.async.c") && i->nops >= 3;
}

/* The operand that is the address in shared or in global memory; NULL if there is none. */
static const struct operand *address_in(const struct instr *i, bool shared)
{
	if (is_copy(i))
		return &i->ops[shared ? 0 : 1];
	if (starts(i->opcode, shared ? "st.shared" : "st.global") || (shared && starts(i->opcode, "stmatrix")))
		return &i->ops[0];
	if (starts(i->opcode, shared ? "ld.shared" : "ld.global") || (shared && starts(i->opcode, "ldmatrix")))
		return &i->ops[1];
	return NULL;
}

static bool mark(const struct operand *o, bool *set)
{
	bool is_reg = o->kind == O_REG || (o->kind == O_ADDRESS && o->has_reg), news = is_reg && !set[o->reg];
	if (is_reg)
		set[o->reg] = true;
	return news;
}

static void mark_addresses(const struct ptx_kernel *k, bool shared, bool *set)
{
	for (u32 n = 0; n < k->ncode; n++) {
		const struct operand *o = address_in(&k->code[n], shared);
		if (o)
			mark(o, set);
	}
	for (bool again = true; again;) {
		again = false;
		for (u32 n = 0; n < k->ncode; n++) {
			const struct instr *i = &k->code[n];
			if (i->ops[0].kind == O_REG && set[i->ops[0].reg] && !starts(i->opcode, "ld"))
				for (u32 o = 1; o < i->nops; o++)
					again |= mark(&i->ops[o], set);
		}
	}
}

static void mark_descriptors(const struct ptx_kernel *k, bool *set)
{
	for (u32 n = 0; n < k->ncode; n++)
		for (u32 o = 1; o < 3 && starts(k->code[n].opcode, "wgmma.mma"); o++)
			mark(&k->code[n].ops[o], set);
	for (bool again = true; again;) {
		again = false;
		for (u32 n = 0; n < k->ncode; n++) {
			const struct instr *i = &k->code[n];
			bool passes = starts(i->opcode, "add.s64") || starts(i->opcode, "or.b64") ||
				starts(i->opcode, "mov.");
			for (u32 o = 1; passes && i->ops[0].kind == O_REG && set[i->ops[0].reg] && o < i->nops; o++)
				again |= mark(&i->ops[o], set);
		}
	}
}

/* --- the kinds --------------------------------------------------------------------------------------------------- */

static void add_synchronisation(struct listing *l, const struct instr *i, const char *line)
{
	/* the wait is on the same line */
	if ((starts(i->opcode, "bar.sync") && i->ops[0].kind != O_REG) || starts(i->opcode, "barrier.cluster.arrive"))
		add(l, BARRIER, i->line, "", "removed");
	if (starts(i->opcode, "cp.async.commit_group"))
		add(l, COMMIT, i->line, "", "removed");
	if (starts(i->opcode, "wgmma.fence"))
		add(l, PRODUCT_FENCE, i->line, "", "removed");
	if (starts(i->opcode, "fence.proxy"))
		add(l, PROXY_FENCE, i->line, "", "removed");
	if (starts(i->opcode, "wgmma.commit"))
		add(l, PRODUCT_COMMIT, i->line, "", "removed");
	if (strstr(i->opcode, ".wait_group")) {
		enum kind kind = starts(i->opcode, "wgmma") ? PRODUCT_WAIT : WAIT;
		const char *at = strpbrk(line, "0123456789");
		add(l, kind, i->line, "", "removed");
		add(l, kind, i->line, spliced(l, line, at, strspn(at, "0123456789"),
					      arena_printf(l->a, "%u", atoi(at) + 1)), "one group more is left");
	}
}

/* `line` with the number at its end another. */
static const char *another_number(struct listing *l, const char *line, i64 by)
{
	const char *at = strrchr(line, ',') + 1;
	return spliced(l, line, at, strcspn(at, ";"), arena_printf(l->a, " %lld", (long long)(atoll(at) + by)));
}

static void add_phase(struct listing *l, const struct instr *i, const char *line)
{
	const char *done = strstr(line, ".b64 ") + 5, *parity = strrchr(line, ',') + 1;
	add(l, PHASE, i->line, arena_printf(l->a, "setp.eq.u32 %.*s, 0, 0;", (int)strcspn(done, ","), done), "removed");
	const char *waits = spliced(l, line, parity, strcspn(parity, ";"), " other");
	const char *text = arena_printf(l->a, "{ .reg .b32 other; xor.b32 other,%.*s, 1; %s }",
					(int)strcspn(parity, ";"), parity, waits);
	add(l, PHASE, i->line, text, "for the other parity");
}

/* A buffer is let go of before the products that read it are waited for. */
static void add_early(struct listing *l, const struct instr *i, const char *line)
{
	if (!l->product_wait)
		return;
	u32 from = l->product_wait->line;
	add(l, ARRIVAL, i->line, arena_printf(l->a, "%s %s", line, l->lines[from - 1]), "before the wait for products");
	l->out->at[l->out->len - 1].other_line = from;
	l->out->at[l->out->len - 1].other_with = "";
}

/* The boxes' mbarriers; and named barriers where only some of the threads wait. */
static void add_mbarrier(struct listing *l, const struct instr *i, const char *line)
{
	if (starts(i->opcode, "mbarrier.try_wait"))
		add_phase(l, i, line);
	if (starts(i->opcode, "mbarrier.arrive.expect_tx")) {
		add(l, ARRIVAL, i->line, "", "removed");
		add(l, BYTES, i->line, another_number(l, line, -16), "16 fewer");
		add(l, BYTES, i->line, another_number(l, line, 16), "16 more");
	} else if (starts(i->opcode, "mbarrier.arrive")) {
		add(l, ARRIVAL, i->line, "", "removed");
		add_early(l, i, line);
	}
	if (starts(i->opcode, "mbarrier.init")) {
		add(l, INITIAL, i->line, "", "removed");
		add(l, INITIAL, i->line, another_number(l, line, 1), "one arrival more");
		if (i->ops[1].imm > 1)
			add(l, INITIAL, i->line, another_number(l, line, -1), "one arrival fewer");
	}
	if (starts(i->opcode, "mbarrier.inval"))
		add(l, INITIAL, i->line, "", "not ended");
	if (starts(i->opcode, "bar.arrive") || (starts(i->opcode, "bar.sync") && i->ops[0].kind == O_REG))
		add(l, TURN, i->line, "", "removed");
}

/* Of a constant with a swizzle: that, and the stride; of any the start. */
static void add_descriptor(struct listing *l, const struct instr *i, const char *line)
{
	bool sums = starts(i->opcode, "add.s64") || starts(i->opcode, "or.b64");
	if (!sums || i->ops[0].kind != O_REG || !l->in_descriptor[i->ops[0].reg] || i->ops[2].kind != O_INT)
		return;
	static const struct {
		u64 with;
		const char *what;
	} changes[] = {{(u64)1 << 62, "another swizzle"}, {(u64)1 << 32, "another stride"}, {2, "32 bytes on"}};
	const char *at = strrchr(line, ',') + 1;
	u64 c = i->ops[2].imm;
	for (u32 n = c >> 32 ? 0 : 2; n < ARRAY_LEN(changes); n++)
		add(l, DESCRIPTOR, i->line, spliced(l, line, at, strcspn(at, ";"),
						    arena_printf(l->a, " %lld", (long long)(c ^ changes[n].with))),
		    changes[n].what);
}

/* Adds to the offset of the nth address of the line. */
static const char *shifted(struct listing *l, const char *line, u32 nth, i64 by)
{
	const char *open = strchr(line, '[');
	while (nth--)
		open = strchr(open + 1, '[');
	const char *close = strchr(open, ']'), *plus = memchr(open, '+', (size_t)(close - open));
	const char *from = plus ? plus : close;
	i64 offset = (plus ? atoll(plus + 1) : 0) + by;
	return spliced(l, line, from, (size_t)(close - from), arena_printf(l->a, "+%lld", (long long)offset));
}

static void add_addresses(struct listing *l, const struct instr *i, const char *line)
{
	static const i64 shared[] = {4, 16, 128}, global[] = {16, -16, 1 << 20};
	for (u32 s = 0; s < ARRAY_LEN(shared) && address_in(i, true); s++)
		add(l, SHARED, i->line, shifted(l, line, 0, shared[s]),
		    arena_printf(l->a, "%+lld", (long long)shared[s]));
	for (u32 s = 0; s < ARRAY_LEN(global) && address_in(i, false); s++)
		add(l, GLOBAL, i->line, shifted(l, line, is_copy(i), global[s]),
		    arena_printf(l->a, "%+lld", (long long)global[s]));
}

static void add_swizzle(struct listing *l, const struct instr *i, const char *line)
{
	bool is_xor = starts(i->opcode, "xor.b");
	if ((!is_xor && !starts(i->opcode, "and.b")) || i->ops[0].kind != O_REG || !l->in_shared[i->ops[0].reg] ||
	    l->in_global[i->ops[0].reg])
		return;
	if (i->ops[2].kind == O_INT) {
		const char *at = strrchr(line, ',') + 2;
		u64 c = i->ops[2].imm,
		    changes[] = {c & (c - 1), is_xor ? c ^ (u64)2 << ilog2(c) : c ^ (u64)1 << ilog2(c)};
		for (u32 n = 0; n < (is_xor || changes[0] ? 2 : 1) && (i64)c > 0; n++)
			add(l, SWIZZLE, i->line, spliced(l, line, at, strspn(at, "0123456789"),
							 arena_printf(l->a, "%lld", (long long)changes[n])),
			    arena_printf(l->a, "%lld becomes %lld", (long long)c, (long long)changes[n]));
	} else if (is_xor) {
		add(l, SWIZZLE, i->line, spliced(l, line, strstr(line, "xor"), 3, "or"), "xor becomes or");
	}
}

static void add_guard(struct listing *l, const struct instr *i, const char *line)
{
	const char *at = strchr(line, '@');
	if (i->pred >= 0 && at)
		add(l, GUARD, i->line, spliced(l, line, at, strcspn(at, " \t"), ""), "dropped");
	if (is_copy(i) && i->nops == 4 && i->ops[3].kind == O_REG) {
		at = strrchr(line, ',');
		add(l, GUARD, i->line, spliced(l, line, at, strcspn(at, ";"), ""), "the whole copy always");
	}
}

static void add_shuffle(struct listing *l, const struct instr *i, const char *line)
{
	const char *bfly = strstr(i->opcode, "bfly"), *at = line;
	if (!starts(i->opcode, "shfl"))
		return;
	if (!bfly || i->ops[2].kind != O_INT) {
		const char *mode = bfly ? "bfly" : strstr(i->opcode, "idx") ? "idx" : strstr(i->opcode, "up") ? "up"
			: "down";
		add(l, SHUFFLE, i->line, spliced(l, line, strstr(line, mode), strlen(mode), bfly ? "idx" : "bfly"),
		    "another mode");
		return;
	}
	for (u32 n = 0; n < 2; n++)
		at = strchr(at, ',') + 1;
	u32 distance = (u32)i->ops[2].imm;
	add(l, SHUFFLE, i->line, spliced(l, line, at, strcspn(at, ","),
					 arena_printf(l->a, " %u", distance >= 16 ? 8 : distance * 2)),
						 "another distance");
}

static void add_matrix(struct listing *l, u32 n, const char *line)
{
	const struct instr *i = &l->k->code[n];
	const char *at = strstr(line, ".trans"), *c = strrchr(line, '{');
	if ((starts(i->opcode, "ldmatrix") || starts(i->opcode, "stmatrix")) && at)
		add(l, TRANS, i->line, spliced(l, line, at, 6, ""), "dropped");
	for (u32 m = 1; m < l->k->ncode && starts(i->opcode, "mma"); m++) {
		const struct instr *other = &l->k->code[(n + m) % l->k->ncode];
		const char *another = strrchr(l->lines[other->line - 1], '{');
		if (strcmp(other->opcode, i->opcode) || !strcmp(another, c))
			continue;
		add(l, ACCUMULATE, i->line, spliced(l, line, c, strlen(c), another), "another's");
		return;
	}
}

/* --- all of them ------------------------------------------------------------------------------------------------- */

/* A guard may keep an instruction from ever running, and that may be what is tested. */
static bool is_reached(const struct ptx_kernel *k, const struct counters *counters, u32 n)
{
	return counters[n].executed || (k->code[n].pred >= 0 && ((n && counters[n - 1].executed) ||
								 (n + 1 < k->ncode && counters[n + 1].executed)));
}

void list_mutants(struct arena *a, const char *text, const struct ptx_kernel *k, const struct counters *counters,
		  mutant_vec *out)
{
	struct listing l = {.a = a,
			    .k = k,
			    .out = out,
			    .in_shared = arena_array(a, bool, k->nregs + 1),
			    .in_global = arena_array(a, bool, k->nregs + 1)};
	VEC(const char *) lines = {0};
	for (const char *at = text; *at;) {
		size_t len = strcspn(at, "\n");
		vec_push(a, &lines, arena_str(a, at, len));
		at += len + (at[len] == '\n');
	}
	l.lines = lines.at;
	l.in_descriptor = arena_array(a, bool, k->nregs + 1);
	mark_descriptors(k, l.in_descriptor);
	mark_addresses(k, true, l.in_shared);
	mark_addresses(k, false, l.in_global);
	for (u32 n = 0; n < k->ncode; n++) {
		const struct instr *i = &k->code[n];
		const char *line = lines.at[i->line - 1];
		tl_assert(strstr(line, i->opcode));
		if (starts(i->opcode, "wgmma.wait"))
			l.product_wait = i;
		else if (starts(i->opcode, "bra") || starts(i->opcode, "wgmma"))
			l.product_wait = NULL;
		if (!is_reached(k, counters, n))
			continue;
		add_synchronisation(&l, i, line);
		add_mbarrier(&l, i, line);
		add_descriptor(&l, i, line);
		add_addresses(&l, i, line);
		add_swizzle(&l, i, line);
		add_guard(&l, i, line);
		add_shuffle(&l, i, line);
		add_matrix(&l, n, line);
	}
}

static const char *with_line(struct arena *a, const char *text, u32 line, const char *with)
{
	const char *at = text;
	for (u32 n = 1; n < line; n++)
		at = strchr(at, '\n') + 1;
	return arena_printf(a, "%.*s%s%s", (int)(at - text), text, with, at + strcspn(at, "\n"));
}

const char *mutated(struct arena *a, const char *text, const struct mutant *m)
{
	text = with_line(a, text, m->line, m->with);
	return m->other_line ? with_line(a, text, m->other_line, m->other_with) : text;
}
