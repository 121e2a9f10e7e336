/* The tables of ops.def as the printer, the parser and the verifier read them: attributes, their values, and the text
 * formats of operations. */
#ifndef TLC_IR_TEXT_H
#define TLC_IR_TEXT_H

#include "ir/ir.h"

enum attr_id {
	A_NONE,
#define ATTR(id, ...) A_##id,
#include "ir/ops.def"
};

enum attr_kind {
	KIND_i32, KIND_size, KIND_count, KIND_i64, KIND_bool, KIND_unit, KIND_perm, KIND_bits, KIND_str, KIND_name,
	KIND_dims, KIND_sizes,
#define V(...)
#define ENUM(kind, ...) KIND_##kind,
#define NAMES(kind, ...) KIND_##kind,
#include "ir/ops.def"
	ATTR_KINDS
};

struct attr_info {
	const char *name;
	u8 slot;
	enum attr_kind kind;
};
/* The i-th attribute of an operation; NULL after the last one. */
const struct attr_info *attr_at(enum opcode code, u32 i);
/* The operation's attribute with this name, or NULL. */
const struct attr_info *attr_named(enum opcode code, const char *name, size_t len);
/* The names of an enumeration's values, NULL-terminated. NULL if the kind is not an enumeration. */
const char *const *attr_enum(enum attr_kind kind);

/* The tokens of a format string, in order. */
enum format_kind {
	FMT_END,
	FMT_OPERAND,
	FMT_OPTIONAL,
	FMT_ALL,
	FMT_ATTR,
	FMT_KEYED_ATTR,
	FMT_COMMA_ATTR,
	FMT_DICT,
	FMT_TYPE,
	FMT_RESULT,
	FMT_TYPES,
	FMT_BARE_TYPES,
	FMT_REGION,
	FMT_LITERAL,
	FMT_SPACE
};
struct format_token {
	enum format_kind kind;
	u32 index; /* number of the operand or type */
	const struct attr_info *attr;
	const char *text; /* a literal, or the word before an optional operand: a comma if there is none */
};
/* Reads one token at *at and advances *at. The texts of the token are allocated in `a`. */
struct format_token format_next(struct arena *a, enum opcode code, const char **at);

#endif
