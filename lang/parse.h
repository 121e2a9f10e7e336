/* Interface between the scanner, the line structure and the grammar. Only for files of lang/.
 *
 *   text → scanner (lexer.l) → logical lines, INDENT/DEDENT, host code skipped (logical_lines.c) → grammar (parser.y)
 *        → AST */
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
	int kind; /* a token kind of parser.y; 0 at the end of the file */
	struct loc loc;
	u32 start, end; /* offsets into the source */
	union token_value value;
};

/* The `def` of a jit function, with the state of the diagnostics when it was read. */
struct def_start {
	u32 line, at;
	struct diags_point before; /* the messages before it */
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
	int depth; /* number of open brackets */
	struct loc open[64];
	/* the scanner has just reported an open bracket, so the grammar reports no second error */
	bool was_unclosed;
	struct token peeked[4];
	int npeeked;

	/* line structure */
	bool same_line; /* the last NEWLINE was a ';' in a line of host code */
	int host_indent; /* of that line */
	bool in_kernel, expression_only, class_only, function_only, line_start, at_end;
	enum func_kind kind;
	int base_indent;
	int indents[100], alt_indents[100], nindents;
	int pending_dedents;
	/* the part of a compound statement that contains the current line of host code; NULL: none */
	struct branch *branch;
	struct open_branch {
		int indent;
		struct branch *branch;
	} open_branches[50];
	int nopen;
	int host_scope; /* indentation of the host function or class around the current line; -1: none */
	bool has_named_exprs; /* of the function under the parser */
	bool pending_kind, pending_class;
	VEC(struct decorator) decorators; /* decorators of the next function */
	VEC(struct def_start) starts;
	struct decorator jit;             /* the decorator that makes the next function a kernel */
	/* the class that may contain the current line: its indentation, or -1, and its definition */
	int class_indent;
	struct definition *class_line;
	int last_kind;
	struct loc last_loc;

	/* results */
	struct module *module;
	struct expr *expression;
	struct class_def *class;
	struct func *function; /* for function_only */
};

/* The index of the line of the text that contains the offset. */
u32 line_of_offset(const struct source *s, u32 at);

/* scanner: returns the next raw token. NEWLINE ends each physical line outside brackets. */
struct token scan_token(struct parser *p);
void scan_open(struct parser *p, u32 start, u32 end);
void scan_close(struct parser *p);

/* line structure: returns the tokens of the grammar */
struct token next_token(struct parser *p);
struct token raw_token(struct parser *p);
void unread_token(struct parser *p, struct token t);
/* The width of the white space before the first token of a line, with tabs of 8 columns and (*alt) of 1. */
int indentation(const struct parser *p, const struct token *t, int *alt);

/* Reads one logical line of host code. True if it starts a jit function, whose tokens follow. */
bool host_line(struct parser *p, struct token t);

#endif
