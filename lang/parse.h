/* Shared by the scanner, the line structure and the grammar; nothing outside lang/ includes it.
 *
 *   text → scanner (lexer.l) → logical lines, INDENT/DEDENT, host code skipped (logical_lines.c) → grammar (parser.y)
 * → AST */
#ifndef TLC_LANG_PARSE_H
#define TLC_LANG_PARSE_H

#include "lang/ast.h"

typedef VEC(struct expr *) expr_vec;
typedef VEC(struct stmt *) stmt_vec;
typedef VEC(struct arm) arm_vec;
typedef VEC(struct param) param_vec;

struct call_args {
	expr_vec items;
	VEC(struct keyword) keywords;
};

union token_value {
	const char *name;
	struct expr *expr;
	const struct branch *branch; /* of JIT_DEF */
};

struct token {
	int kind; /* a token kind of parser.y; 0 at the end */
	struct loc loc;
	u32 start, end; /* offsets into the source */
	union token_value value;
};

/* The `def` of a jit function, and what had been said when it was read. */
struct def_start {
	u32 line, at, nerrors, text;
};

struct parser {
	struct arena *arena;
	struct interner *names;
	struct diags *diags;
	struct source *src;
	u16 file;
	u32 limit; /* offset at which scanning stops */

	/* scanner state */
	void *scanner;
	u32 at; /* offset of the next character */
	u32 line, line_at;
	int depth; /* of open brackets */
	struct loc open[64];
	/* the scanner has just reported an open bracket: the grammar reports no second error for it */
	bool was_unclosed;
	struct token peeked[4];
	int npeeked;

	/* line structure */
	bool in_kernel, expression_only, class_only, function_only, line_start, at_end;
	enum func_kind kind;
	int base_indent;
	int indents[100], alt_indents[100], nindents;
	int pending_dedents;
	struct branch *branch; /* that the current line of host code stands in; NULL: none */
	struct open_branch {
		int indent;
		struct branch *branch;
	} open_branches[50];
	int nopen;
	int host_scope; /* indentation of the host's def or class that the current line is inside of; -1: of none */
	bool has_named_exprs; /* in the function being parsed */
	bool pending_kind, pending_class;
	VEC(struct decorator) decorators; /* in front of the next function */
	VEC(struct def_start) starts;
	struct decorator jit;             /* the one that makes it a kernel */
	/* the class that the current line may be in: its indentation, or -1, and its definition */
	int class_indent;
	struct definition *class_line;
	int last_kind;
	struct loc last_loc;

	/* results */
	struct module *module;
	struct expr *expression;
	struct class_def *class;
	struct func *function; /* of function_only */
};

/* scanner: the next raw token; NEWLINE ends each physical line outside brackets. */
struct token scan_token(struct parser *p);
void scan_open(struct parser *p, u32 start, u32 end);
void scan_close(struct parser *p);

/* line structure: the grammar's tokens */
struct token next_token(struct parser *p);
struct token raw_token(struct parser *p);
void unread_token(struct parser *p, struct token t);
/* Width of the white space before a line's first token, with tabs of 8 and of 1. */
int indentation(const struct parser *p, const struct token *t, int *alt);

/* One logical line of host code. True when it opens a jit function, whose tokens follow. */
bool host_line(struct parser *p, struct token t);

#endif
