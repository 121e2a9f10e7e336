/* Interface between printer and parser of the IR text: reading the format and attribute columns of ops.def. */
#ifndef TLC_IR_TEXT_H
#define TLC_IR_TEXT_H

#include "ir/ir.h"

/* The i-th attribute of an operation, with its name and kind as written in ops.def. False after the last one. */
struct attr_spec {
	const char *name, *kind;
	u32 name_len, kind_len;
};
bool attr_spec_at(enum opcode code, u32 i, struct attr_spec *out);
bool attr_kind_is(const struct attr_spec *spec, const char *kind);
/* The slot of the attribute with the name name[0..len), or -1. */
int attr_slot(enum opcode code, const char *name, size_t len);

/* The values of an enumeration kind ("cmpi", …), NULL-terminated. NULL if the kind is not an enumeration. */
const char *const *attr_enum(const char *kind, size_t len);

/* The tokens of a format string, in order. */
enum format_kind {
	FMT_END,
	FMT_OPERAND,
	FMT_OPTIONAL,
	FMT_ALL,
	FMT_ATTR,
	FMT_KEYED_ATTR,
	FMT_DICT,
	FMT_TYPE,
	FMT_RESULT,
	FMT_TYPES,
	FMT_BARE_TYPES,
	FMT_LITERAL,
	FMT_SPACE
};
struct format_token {
	enum format_kind kind;
	int index;        /* number of the operand or type, or slot of the attribute */
	const char *text; /* text of a literal */
	u32 len;
};
/* Reads one token at *at and advances *at. */
struct format_token format_next(enum opcode code, const char **at);

#endif
