/* The elements of reading IR text: words, types, values, attributes. Each function skips white space and comments and
 * advances the reader. The first failure is reported, and later calls do nothing. */
#ifndef TLC_IR_IMPORT_IMPORT_H
#define TLC_IR_IMPORT_IMPORT_H

#include "ir/import/library_calls.h"
#include "ir/text.h"

/* A layout as written in the text: the coordinates of each bit. The shape of the tile is that of the type that refers
 * to the layout. */
struct alias {
	const char *name;
	bool shared;
	int rank; /* number of coordinates of a basis vector; 0: no basis vectors */
	u8 bits[LL_DIMS];
	i32 at[LL_DIMS][LAYOUT_MAX_BITS][MAX_RANK];
};

/* A position in the text. */
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
	bool open; /* the block is being read */
};

struct text_function {
	const char *name;
	struct loc loc;
	struct text_position at; /* position of the '(' before the parameters */
	bool is_private, open;
	VEC(struct text_label) labels;
	const char *end; /* the terminator: tt.return, or the terminator of a region */
	struct type_vec results;
};

struct reader {
	struct ir_context *ctx;
	struct diags *diags;
	const struct source *src;
	u16 file;
	struct text_position pos;
	bool failed;
	const struct text_library *library; /* NULL: no library */
	struct map descriptors; /* interned name → struct descriptor */
	struct map values; /* interned name → value, or the first of several results */
	int depth, type_depth;
	VEC(struct text_function *) functions;
	struct text_function *function; /* the function under the reader */
	value_vec made; /* results of the last statement, if they are not the results of one operation */
	u32 count; /* operations, calls and jumps read so far */
	VEC(struct alias) aliases;
	struct kernel module; /* attributes of the module about its kernel */
};

struct attrs {
	i64 slot[IR_MAX_ATTRS];
	const char *text;
	struct hints *hints;
	bool allocated; /* the operation has shared memory at scratch_offset */
	i32 scratch_offset;
};

struct loc rd_here(const struct reader *r, u32 len);
void rd_fail_at(struct reader *r, struct loc at, const char *what);
void rd_fail(struct reader *r, const char *what);

/* The text from the current position on; 0 at its end. */
const char *rd_cur(const struct reader *r);
void rd_bump(struct reader *r, u32 n);
void rd_skip_space(struct reader *r);
void rd_skip_loc(struct reader *r);
/* Skips `word` if it is next. False otherwise. */
bool rd_accept(struct reader *r, const char *word);
void rd_expect(struct reader *r, const char *word);
/* True if the next character is c. */
bool rd_at(struct reader *r, char c);
const char *read_word(struct reader *r, bool dash);
const char *read_string(struct reader *r);
/* Read a word, or also a string, and its location. */
const char *read_word_at(struct reader *r, struct loc *at);
const char *read_name_or_string(struct reader *r, struct loc *at);
/* The length of a location that covers the word. */
u16 rd_loc_len(const char *word);
/* Skips balanced brackets that start at the current position. */
void rd_skip_brackets(struct reader *r);
i64 read_int(struct reader *r);

const struct type *read_type(struct reader *r);
/* Reads one type, or several types with or without parentheses. */
void read_result_types(struct reader *r, struct type_vec *out);
void rd_skip_types(struct reader *r);
/* Reads : types -> types. `out` receives the types of the results. */
void read_function_type(struct reader *r, struct type_vec *out);
/* Reads : types -> type. */
const struct type *read_only_result(struct reader *r);
/* Reads #name = … before the module: layouts, and locations, which are skipped. */
void read_aliases(struct reader *r);
/* Reads the rest of the type of a laid-out tile or buffer after shape and element: ", #name", and for a buffer ",
 * #smem, mutable". */
const struct type *read_placed_type(struct reader *r, const struct type *elem, int rank, const i32 *shape, bool memory);
/* Reads the attributes of a module. */
void read_module_attributes(struct reader *r);

/* Reads %name. If no value has that name, an error is reported and the value is NULL. */
const char *read_name(struct reader *r);
struct value *read_value(struct reader *r);
/* Read one value; values, separated by commas; and values : types, which may be absent. */
void read_operand(struct reader *r, value_vec *out);
void read_values(struct reader *r, value_vec *out);
void read_typed_values(struct reader *r, value_vec *out);
void rd_define(struct reader *r, const char *name, struct value *v);
/* Defines one name for all results of a call. */
void rd_define_all(struct reader *r, const char *name, const value_vec *v);

/* Reads an operation with its regions, at the end of b's block. */
void read_op(struct reader *r, struct builder *b);

/* Finds the functions of the text, starting with the next one. Returns the kernel. */
struct text_function *read_functions(struct reader *r);
/* Reads the part after a function's parameters. `out` receives the returned values. */
void read_body(struct reader *r, struct text_function *f, struct builder *b, value_vec *out);
/* Reads the blocks of a region, after the arguments of the first block, up to and including the '}'. `out` receives the
 * values that `end` returns. False, without reading, if there is only one block. */
bool read_region_blocks(struct reader *r, const char *end, struct builder *b, value_vec *out);
/* Reads @name(values) : (types) -> types and inlines the body of the function. */
void read_call(struct reader *r, struct builder *b, value_vec *out);
/* Fails if calls and jumps have expanded the text beyond the limit. */
void rd_count(struct reader *r);

/* library_ops.c: operations that are calls of library functions. False if `name` is not such an operation. *out: the
 * operation with the result, or NULL. */
bool read_library_op(struct reader *r, struct builder *b, const char *name, struct op **out);
struct text_arg text_of_value(struct value *v, bool is_unsigned);
struct text_arg text_of_list(const struct text_arg *items, u32 n);
/* Builds a call of a library function and adds its results to *out. Fails if there is no library. */
void call_library(struct reader *r, struct builder *b, const char *function, const struct text_arg *args, u32 n,
		  const struct type *t, value_vec *out);
/* Reads tt.make_tensor_descriptor with the result name `name`. */
void read_make_descriptor(struct reader *r, const char *name, struct loc loc);
/* Reads !tt.tensordesc<…> of a parameter: the result is the type of its pointer, and *out the descriptor. NULL if the
 * text has another type. */
struct descriptor;
const struct type *read_descriptor_param(struct reader *r, struct descriptor **out);
/* Takes the parts of the descriptor from the parameters p[0], p[1], …. */
void descriptor_of_params(struct reader *r, struct descriptor *d, const char *name, struct kernel_param *p, u32 n,
			  struct loc loc);
/* For Triton's launcher: adds the parameters of the descriptor whose base is the kernel's parameter `base`. */
void add_foreign_descriptor(struct kernel *k, u32 base, struct descriptor *d);

/* composed_ops.c: operations that are built from several others. False if `name` is not such an operation. */
bool read_composed_op(struct reader *r, struct builder *b, const char *name, struct op **out);
/* arith.negf or math.absf of 8-bit floats. */
struct op *build_sign_change(struct builder *b, enum opcode code, struct value *v);
/* Converts a map over `pack` elements of each operand at a time to a map over `pack` tiles. pack_map puts its results
 * into r->made. */
void unpack_map(struct reader *r, struct builder *b, i64 pack, value_vec *operands);
void pack_map(struct reader *r, struct builder *b, i64 pack, struct op *o, const struct type_vec *types);

u64 read_scalar_bits(struct reader *r, enum dtype d);
i64 read_enum(struct reader *r, const char *const *values);
void read_attr_value(struct reader *r, const struct attr_info *a, struct attrs *out);
void read_dict(struct reader *r, enum opcode code, struct attrs *out);
void rd_skip_dict(struct reader *r);

#endif
