/* The functions of a text. One is the kernel; the others are inlined into it. Blocks that jump to each other, as Triton
 * prints early returns, become branches with regions: the code after a conditional jump is read into both regions. */
#include "ir/import/import.h"

#include <ctype.h>

enum { MAX_INLINED = 1 << 18 }; /* limit on operations, calls and jumps */

void rd_count(struct reader *r)
{
	if (++r->count > MAX_INLINED)
		rd_fail(r, "the kernel is too long after inlining its functions");
}

/* --- scanning ------------------------------------------------------------------------------------------------- */

/* Notes a label, "^name:" or "^name(arguments):", at the current position. */
static void scan_label(struct reader *r, struct text_function *f)
{
	struct text_label l = {.at = r->pos};
	rd_bump(r, 1);
	l.name = read_word(r, false);
	if (rd_at(r, '('))
		rd_skip_brackets(r);
	if (rd_accept(r, ":"))
		vec_push(r->ctx->arena, &f->labels, l);
}

/* Scans a body up to its '}', starting at the '{' (depth 0) or inside the body (depth 1). */
static void scan_body(struct reader *r, struct text_function *f, int depth)
{
	do {
		rd_skip_space(r);
		char c = *rd_cur(r);
		if (!c || r->failed)
			return;
		if (c == '"') {
			read_string(r);
			continue;
		}
		if (c == '^' && depth == 1) {
			scan_label(r, f);
			continue;
		}
		depth += (c == '{') - (c == '}');
		rd_bump(r, 1);
	} while (depth > 0);
}

/* Reads @name or @"name". */
static const char *read_symbol(struct reader *r)
{
	rd_expect(r, "@");
	return *rd_cur(r) == '"' ? read_string(r) : read_word(r, false);
}

static void scan_function(struct reader *r)
{
	struct text_function *f = arena_new(r->ctx->arena, struct text_function);
	f->end = "tt.return";
	f->is_private = rd_accept(r, "private");
	rd_accept(r, "public");
	rd_skip_space(r);
	f->loc = rd_here(r, 1);
	f->loc.col++;
	f->name = read_symbol(r);
	f->at = r->pos;
	if (rd_at(r, '('))
		rd_skip_brackets(r);
	if (rd_accept(r, "->"))
		rd_skip_types(r);
	if (rd_accept(r, "attributes")) {
		rd_skip_space(r);
		rd_skip_brackets(r);
	}
	scan_body(r, f, 0);
	rd_skip_loc(r);
	if (!r->failed)
		vec_push(r->ctx->arena, &r->functions, f);
}

static struct text_function *find_function(struct reader *r, const char *name)
{
	for (u32 i = 0; i < r->functions.len; i++)
		if (r->functions.at[i]->name == name)
			return r->functions.at[i];
	return NULL;
}

struct text_function *read_functions(struct reader *r)
{
	struct text_function *kernel = NULL;
	while (!r->failed && rd_accept(r, "tt.func")) {
		struct text_position start = r->pos;
		scan_function(r);
		struct text_function *f = r->functions.len ? r->functions.at[r->functions.len - 1] : NULL;
		if (r->failed || f->is_private)
			continue;
		if (kernel) {
			r->pos = start;
			rd_fail(r, "a file has one kernel only: make the functions that it calls private");
		}
		kernel = f;
	}
	if (!r->failed && !kernel)
		rd_fail(r, r->functions.len ? "all functions are private: none is a kernel" : "expected 'tt.func'");
	return kernel;
}

/* --- paths through blocks -------------------------------------------------------------------------------------- */

struct jump {
	struct text_label *to;
	value_vec values;
	struct loc loc;
};

/* Reads ^name(values : types). */
static struct jump read_jump(struct reader *r)
{
	struct jump j = {0};
	rd_expect(r, "^");
	j.loc = rd_here(r, 1);
	const char *name = read_word(r, false);
	for (u32 i = 0; r->function && i < r->function->labels.len; i++)
		if (r->function->labels.at[i].name == name)
			j.to = &r->function->labels.at[i];
	if (!r->failed && !j.to)
		rd_fail_at(r, j.loc, arena_printf(r->ctx->arena, "'^%s' is not a block of this function", name));
	if (rd_accept(r, "(")) {
		read_values(r, &j.values);
		rd_expect(r, ":");
		rd_skip_types(r);
		rd_expect(r, ")");
	}
	return j;
}

/* Binds the names of the arguments of a block or function: "%a: type, %b: type)". */
static void bind_arguments(struct reader *r, const value_vec *values, struct loc loc)
{
	u32 n = 0;
	if (!rd_accept(r, ")")) {
		do {
			const char *name = read_name(r);
			rd_expect(r, ":");
			const struct type *t = read_type(r);
					rd_skip_dict(r);
			rd_skip_loc(r);
			if (!r->failed && (n >= values->len || values->at[n]->type != t))
				rd_fail_at(r, loc, "the values do not match the block's arguments");
			if (!r->failed)
				map_put(&r->values, name, values->at[n++]);
		} while (!r->failed && rd_accept(r, ","));
		rd_expect(r, ")");
	}
	if (!r->failed && n != values->len)
		rd_fail_at(r, loc, "there are more values than block arguments");
}

static void read_path(struct reader *r, struct builder *b, value_vec *out);

static void follow(struct reader *r, struct builder *b, const struct jump *j, value_vec *out)
{
	rd_count(r);
	if (!r->failed && j->to->open)
		rd_fail_at(r, j->loc,
			   "backward jumps between blocks are not supported: loops must be scf.for or scf.while");
	if (++r->depth > 250)
		rd_fail(r, "nested too deeply");
	if (!r->failed) {
		j->to->open = true;
		r->pos = j->to->at;
		rd_expect(r, "^");
		read_word(r, false);
		const value_vec none = {0};
		if (rd_accept(r, "("))
			bind_arguments(r, &j->values, j->loc);
		else if (j->values.len)
			bind_arguments(r, &none, j->loc);
		rd_expect(r, ":");
		read_path(r, b, out);
		j->to->open = false;
	}
	r->depth--;
}

/* Reads cf.cond_br %c, ^then, ^else: the code after each label is read into its region. */
static void read_branch(struct reader *r, struct builder *b, value_vec *out)
{
	const struct type_vec *types = &r->function->results;
	struct loc loc = b->loc;
	struct value *c = read_value(r);
	struct jump to[2];
	for (int i = 0; i < 2; i++) {
		rd_expect(r, ",");
		to[i] = read_jump(r);
	}
	if (r->failed)
		return;
	struct op *o = build(b, IR_IF, &c, 1, types->at, types->len, 2);
	for (int i = 0; i < 2 && !r->failed; i++) {
		struct builder in = builder_at_end(r->ctx, o->blocks[i]);
		value_vec yielded = {0};
		follow(r, &in, &to[i], &yielded);
		in.loc = loc;
		if (!r->failed)
			build(&in, IR_YIELD, yielded.at, yielded.len, NULL, 0, 0);
	}
	for (u32 i = 0; i < o->nresults; i++)
		vec_push(r->ctx->arena, out, &o->results[i]);
}

static void read_return(struct reader *r, value_vec *out)
{
	struct loc loc = rd_here(r, 1);
	const struct type_vec *types = &r->function->results;
	if (types->len) {
		read_values(r, out);
		rd_expect(r, ":");
		rd_skip_types(r);
	}
	rd_skip_loc(r);
	rd_skip_space(r);
	bool fits = out->len == types->len;
	for (u32 i = 0; fits && i < out->len; i++)
		fits = out->at[i]->type == types->at[i];
	if (!r->failed && !fits)
		rd_fail_at(r, loc, "the values do not match the function's result types");
	if (!r->failed && !*rd_cur(r))
		rd_fail(r, "the file ends inside a block");
	if (!r->failed && *rd_cur(r) != '}' && *rd_cur(r) != '^')
		rd_fail(r, "no operation may follow the terminator of a block");
}

/* Reads from the current position to the end of the function, and the values that it returns there. */
static void read_path(struct reader *r, struct builder *b, value_vec *out)
{
	while (!r->failed) {
		rd_skip_space(r);
		b->loc = rd_here(r, 1);
		if (!*rd_cur(r))
			rd_fail(r, "the file ends inside a block");
		else if (*rd_cur(r) == '}' || *rd_cur(r) == '^')
			rd_fail(r, arena_printf(r->ctx->arena, "expected %s or a jump at the end of the block",
						r->function->end));
		else if (rd_accept(r, r->function->end))
			return read_return(r, out);
		else if (rd_accept(r, "cf.cond_br"))
			return read_branch(r, b, out);
		else if (rd_accept(r, "cf.br")) {
			struct jump j = read_jump(r);
			if (!r->failed)
				follow(r, b, &j, out);
			return;
		} else
			read_op(r, b);
	}
}

/* --- bodies --------------------------------------------------------------------------------------------------- */

/* Reads the part after the parameters: the types of the results, attributes, and the body. */
void read_body(struct reader *r, struct text_function *f, struct builder *b, value_vec *out)
{
	struct text_function *outer = r->function;
	r->function = f;
	f->results.len = 0;
	if (rd_accept(r, "->"))
		read_result_types(r, &f->results);
	if (rd_accept(r, "attributes"))
		rd_skip_dict(r);
	rd_expect(r, "{");
	f->open = true;
	read_path(r, b, out);
	f->open = false;
	r->function = outer;
}

/* The types that the region at the current position returns, taken from its first terminator `end`. */
static void find_results(struct reader *r, struct text_function *f)
{
	while (*rd_cur(r) && !rd_accept(r, f->end)) {
		if (*rd_cur(r) == '"')
			read_string(r);
		else
			rd_bump(r, 1);
	}
	while (*rd_cur(r) && *rd_cur(r) != ':')
		rd_bump(r, 1);
	rd_expect(r, ":");
	read_result_types(r, &f->results);
}

bool read_region_blocks(struct reader *r, const char *end, struct builder *b, value_vec *out)
{
	struct text_function region = {.end = end}, *outer = r->function;
	struct text_position start = r->pos;
	scan_body(r, &region, 1);
	struct text_position behind = r->pos;
	r->pos = start;
	if (!region.labels.len)
		return false;
	find_results(r, &region);
	r->pos = start;
	r->function = &region;
	read_path(r, b, out);
	r->function = outer;
	r->pos = behind;
	return true;
}

void read_call(struct reader *r, struct builder *b, value_vec *out)
{
	value_vec args = {0};
	rd_skip_space(r);
	struct loc loc = rd_here(r, 1);
	const char *name = read_symbol(r);
	struct text_function *f = find_function(r, name);
	loc.len = rd_loc_len(name) + 1;
	if (!r->failed && !f)
		rd_fail_at(r, loc, arena_printf(r->ctx->arena, "there is no function '%s'", name));
	else if (!r->failed && f->open)
		rd_fail_at(r, loc, arena_printf(r->ctx->arena, "'%s' calls itself", name));
	rd_expect(r, "(");
	if (rd_at(r, '%'))
		read_values(r, &args);
	rd_expect(r, ")");
	rd_skip_dict(r);
	struct type_vec ignored = {0};
	read_function_type(r, &ignored);
	rd_count(r);
	if (++r->depth > 250)
		rd_fail(r, "nested too deeply");
	if (!r->failed) {
		struct text_position behind = r->pos;
		struct map values = r->values;
		r->values = (struct map){.arena = r->ctx->arena};
		r->pos = f->at;
		rd_expect(r, "(");
		bind_arguments(r, &args, loc);
		read_body(r, f, b, out);
		r->values = values;
		r->pos = behind;
	}
	r->depth--;
}
