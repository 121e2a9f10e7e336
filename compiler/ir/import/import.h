/* The elements of reading IR text: words, types, values, attributes. Each function skips white space and comments and
 * advances the reader. The first failure is reported; after it the functions do nothing. */
#ifndef TLC_IR_IMPORT_IMPORT_H
#define TLC_IR_IMPORT_IMPORT_H

#include "ir/import/library_calls.h"
#include "ir/text.h"

/* A layout as in the text: the coordinates of each bit. The tile's shape is that of the type that names the layout. */
struct alias {
	const char *name;
	bool shared;
	int rank; /* 0: it has no bits */
	u8 bits[LL_DIMS];
	i32 at[LL_DIMS][LAYOUT_MAX_BITS][MAX_RANK];
};

/* A place in the text. */
struct text_position {
	u32 at, line, line_at;
};

struct type_vec {
	const struct type **at;
	u32 len, cap;
};

struct text_label {
	const char *name;
	struct text_position at;
	bool open; /* its block is being read */
};

struct text_function {
	const char *name;
	struct loc loc;
	struct text_position at; /* of the '(' in front of its parameters */
	bool is_private, open;
	VEC(struct text_label) labels;
	const char *end; /* the operation that ends it: tt.return, or of a region */
	struct type_vec results;
};

struct reader {
	struct ir_context *ctx;
	struct diags *diags;
	const struct source *src;
	u16 file;
	u32 at, line, line_at;
	bool failed;
	const struct text_library *library; /* NULL: none */
	struct map descriptors; /* interned name → struct descriptor */
	struct map values; /* interned name → value, or the first of several results */
	int depth, type_depth;
	VEC(struct text_function *) functions;
	struct text_function *function; /* whose body is being read */
	value_vec made; /* the results of what was read last, where they are not those of one operation */
	u32 count; /* operations, calls and jumps read */
	VEC(struct alias) aliases;
	struct kernel module; /* the module's attributes about its kernel */
};

struct attrs {
	i64 slot[IR_MAX_ATTRS];
	const char *text;
	struct hints *hints;
	bool allocated; /* the operation has shared memory of its own, from here on: */
	i32 scratch_offset;
};

struct loc rd_here(const struct reader *r, u32 len);
void rd_fail_at(struct reader *r, struct loc at, const char *what);
void rd_fail(struct reader *r, const char *what);

/* The text from here on; 0 at its end. */
const char *rd_cur(const struct reader *r);
void rd_bump(struct reader *r, u32 n);
void rd_skip_space(struct reader *r);
void rd_skip_loc(struct reader *r);
/* Moves past `word` if it comes next. */
bool rd_accept(struct reader *r, const char *word);
void rd_expect(struct reader *r, const char *word);
const char *read_word(struct reader *r, bool dash);
const char *read_string(struct reader *r);
/* Skips over balanced brackets that start here. */
void rd_skip_brackets(struct reader *r);
i64 read_int(struct reader *r);

const struct type *read_type(struct reader *r);
/* One type, or several in parentheses or without. */
void read_result_types(struct reader *r, struct type_vec *out);
void rd_skip_types(struct reader *r);
/* #name = …, before the module: layouts, and locations, which are skipped. */
void read_aliases(struct reader *r);
/* The rest of a placed tile's or buffer's type behind shape and element: ", #name" and, of a buffer, ", #smem,
 * mutable". */
const struct type *read_placed_type(struct reader *r, const struct type *elem, int rank, const i32 *shape, bool memory);
/* The attributes of a module. */
void read_module_attributes(struct reader *r);

/* %name; a value is NULL when nothing of that name is defined, which is reported. */
const char *read_name(struct reader *r);
struct value *read_value(struct reader *r);
void read_values(struct reader *r, value_vec *out);
void rd_define(struct reader *r, const char *name, struct value *v);
/* The results of a call, one name for all of them. */
void rd_define_all(struct reader *r, const char *name, const value_vec *v);

/* An operation with its regions, at the end of b's block. */
void read_op(struct reader *r, struct builder *b);

/* Finds the functions of the text, the next of which begins here; the one that is the kernel. */
struct text_function *read_functions(struct reader *r);
/* What follows a function's parameters; `out`: the values that it returns. */
void read_body(struct reader *r, struct text_function *f, struct builder *b, value_vec *out);
/* The blocks of a region, behind the arguments of the first, and the values that `end` returns; the '}' is consumed.
 * False, and nothing is read, if there is only one. */
bool read_region_blocks(struct reader *r, const char *end, struct builder *b, value_vec *out);
/* @name(values) : (types) -> types, with the function's body in its place. */
void read_call(struct reader *r, struct builder *b, value_vec *out);
/* Fails when a text has become too long by calls and jumps. */
void rd_count(struct reader *r);

/* library_ops.c: operations that are calls of the library; false if `name` is none of them. *out: the operation with
 * the result, or NULL. */
bool read_library_op(struct reader *r, struct builder *b, const char *name, struct op **out);
struct text_arg text_of_value(struct value *v, bool is_unsigned);
struct text_arg text_of_list(const struct text_arg *items, u32 n);
/* Builds what a function of the library does and adds its results to *out; fails where there is no library. */
void call_library(struct reader *r, struct builder *b, const char *function, const struct text_arg *args, u32 n,
		  const struct type *t, value_vec *out);
/* tt.make_tensor_descriptor, the result of which is called `name`. */
void read_make_descriptor(struct reader *r, const char *name, struct loc loc);
/* !tt.tensordesc<…> of a parameter, which is a pointer here, and the descriptor; NULL if it does not come next. */
struct descriptor;
const struct type *read_descriptor_param(struct reader *r, struct descriptor **out);
/* The descriptor's parts are the parameters from its own, p[0], on. */
void descriptor_of_params(struct reader *r, struct descriptor *d, const char *name, const struct kernel_param *p, u32 n,
			  struct loc loc);

/* composed_ops.c: operations that are made of others; false if `name` is none of them. */
bool read_composed_op(struct reader *r, struct builder *b, const char *name, struct op **out);
/* arith.negf or math.absf of numbers of 8 bits. */
struct op *build_sign_change(struct builder *b, enum opcode code, struct value *v);
/* A map of `pack` elements of each operand at a time becomes one of as many tiles; its results go to r->made. */
void unpack_map(struct reader *r, struct builder *b, i64 pack, value_vec *operands);
void pack_map(struct reader *r, struct builder *b, i64 pack, struct op *o, const struct type_vec *types);

u64 read_scalar_bits(struct reader *r, enum dtype d);
i64 read_enum(struct reader *r, const char *const *values);
void read_attr_value(struct reader *r, enum opcode code, int slot, struct attrs *out);
void read_dict(struct reader *r, enum opcode code, struct attrs *out);

#endif
