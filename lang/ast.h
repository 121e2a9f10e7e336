/* The abstract syntax of a kernel file.
 *
 * A file is Python; only its jit functions are parsed. Host code around them is skipped, but imports and top-level
 * assignments are remembered so that kernels can refer to them. Nodes live in the arena of the parse; names are
 * interned, so they compare by address. */
#ifndef TLC_LANG_AST_H
#define TLC_LANG_AST_H

#include "support/diag.h"
#include "support/map.h"

enum { AST_MAX_DEPTH = 400 }; /* of nested expressions; deeper ones are rejected */

enum expr_kind {
	EX_NAME,      /* name */
	EX_INT,       /* integer; too_big when it does not fit 64 bits */
	EX_FLOAT,     /* real */
	EX_STR,       /* text, text_len: after escapes */
	/* text: the inside of an f-string, as it stands in the source; or items: strings and f-strings joined */
	EX_FSTR,
	EX_NONE,
	EX_TRUE,
	EX_FALSE,
	EX_ELLIPSIS,
	EX_TUPLE,     /* items */
	EX_LIST,      /* items */
	EX_DICT,      /* items: each key followed by its value */
	EX_ATTR,      /* a.name */
	EX_SUBSCRIPT, /* a[b] */
	EX_SLICE,     /* a:b:c, each may be NULL */
	EX_CALL,      /* a(items..., keywords...) */
	EX_STAR,      /* *a, in calls */
	EX_UNARY,     /* op a */
	EX_BINARY,    /* a op b */
	EX_AND,       /* items */
	EX_OR,        /* items */
	EX_COMPARE,   /* items[0] ops[0] items[1] ops[1] ... */
	EX_IFEXP,     /* a if b else c */
	EX_NAMED,     /* a := b */
	EX_COMPREHENSION, /* [a for …], {a: b for …}: items are its clauses, EX_FOR and EX_IF */
	EX_FOR,       /* for a in b */
	EX_IF,        /* if a */
	EX_LAMBDA,    /* func */
	EX_UNSUPPORTED, /* name: what Python calls it; an error only if it is reached */
};

enum operator {
	OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_FLOORDIV, OP_MOD, OP_POW, OP_MATMUL,
	OP_SHL, OP_SHR, OP_BITAND, OP_BITOR, OP_BITXOR,
	OP_NEG, OP_POS, OP_INVERT, OP_NOT,
	OP_LT, OP_LE, OP_GT, OP_GE, OP_EQ, OP_NE, OP_IS, OP_IS_NOT, OP_IN, OP_NOT_IN,
};
/* As written in the source: "+", "<<", "is not", … */
const char *operator_text(enum operator op);

struct keyword {
	const char *name; /* NULL: **value */
	struct expr *value;
	struct loc loc;
};

/* Do the fields a, b and c of an expression of that kind hold operands, or NULL? */
static inline bool expr_has_operands(enum expr_kind k)
{
	return k == EX_ATTR || k == EX_SUBSCRIPT || k == EX_SLICE || k == EX_CALL || k == EX_STAR || k == EX_UNARY ||
	       k == EX_BINARY || k == EX_IFEXP || k == EX_NAMED || k == EX_COMPREHENSION || k == EX_FOR || k == EX_IF;
}

struct expr {
	enum expr_kind kind;
	enum operator op;
	u16 depth;
	bool too_big;
	bool in_parentheses;
	bool raw; /* of EX_FSTR: a backslash is a backslash */
	struct loc loc;
	const char *name;
	union {
		i128 integer;
		double real;
		struct {
			const char *text;
			u32 text_len;
		};
		struct {
			struct expr *a, *b, *c;
		};
	};
	struct expr **items;
	u32 nitems;
	struct keyword *keywords;
	u32 nkeywords;
	enum operator *ops; /* of EX_COMPARE: nitems - 1 */
	struct func *func;
};

enum stmt_kind {
	ST_EXPR,     /* value */
	ST_ASSIGN,   /* targets = value */
	ST_AUG,      /* target op= value */
	ST_ANN,      /* target: annotation = value; value may be NULL */
	ST_IF,       /* arms */
	ST_FOR,      /* for target in value: body else: orelse */
	ST_WHILE,    /* while value: body else: orelse */
	ST_WITH,     /* with value as target: body; target may be NULL */
	ST_RETURN,   /* value may be NULL */
	ST_ASSERT,   /* assert value, message */
	ST_PASS,
	ST_RAISE,    /* value may be NULL */
	ST_BREAK,
	ST_CONTINUE,
	/* name: what Python calls it; an error only if a kernel reaches it. Host functions know: `try`, `except` and
	 * `finally`: body; `import`: value as name, or from value import message as name */
	ST_UNSUPPORTED,
};

struct body {
	struct stmt **at;
	u32 len;
};

struct arm { /* `if`/`elif` test: body; the last arm's test is NULL for `else` */
	struct expr *test;
	struct body body;
};

struct stmt {
	enum stmt_kind kind;
	enum operator op;
	struct loc loc;
	const char *name;
	struct expr *target, *value, *annotation, *message;
	struct expr **targets;
	u32 ntargets;
	struct arm *arms;
	u32 narms;
	struct body body, orelse;
};

struct param {
	const char *name;
	bool star; /* *name: the arguments left over */
	bool rest; /* **name: those given by names that no other parameter has; of functions at compile time */
	struct expr *annotation, *value; /* either may be NULL; `value` is the default */
	struct loc loc;
};

enum func_kind {
	FUNC_JIT,       /* @triton.jit */
	/* @triton.constexpr_function, and methods without a decorator: run at compile time, keep numbers as they are */
	FUNC_CONSTEXPR,
};

/* What stands in front of a jit function besides @triton.jit: not evaluated unless asked for. */
struct decorator {
	const char *name; /* dotted, with an imported first part resolved */
	struct loc loc;
	u32 start, end;   /* all behind the '@', as offsets into the source */
};

struct func {
	enum func_kind kind;
	const char *name;
	struct loc loc; /* of the name */
	struct param *params;
	u32 nparams;
	struct body body;
	const struct decorator *decorators;
	u32 ndecorators;
	struct decorator
		jit;     /* @triton.jit itself, with its arguments; 0 where it is not one of a module's functions */
	const char *doc; /* docstring or NULL */
	const struct expr *must_use; /* of a method: its decorator must_use_result, or NULL */
	bool has_named_exprs; /* ':=' stands in it */
	struct module *module;
	bool is_init;    /* the __init__ of a class: makes its first parameter */
	bool broken; /* it cannot be read: an error where it is used */
	u32 start;   /* of a broken one: its `def`, as an offset into the source */
	bool host; /* a plain Python function, of which FUNC_CONSTEXPR is the meaning where its value is asked for */
};

/* A class that kernels know: NamedTuple, or @triton.language.core._aggregate. */
struct field {
	const char *name;
	struct loc loc;
	struct expr *annotation, *value; /* annotation NULL: a value of the class; value NULL: no default */
};

enum method_kind { METHOD, METHOD_STATIC, METHOD_OF_CLASS, METHOD_PROPERTY };

struct method {
	enum method_kind kind;
	struct func *func;
};

struct class_def {
	const char *name;
	struct loc loc; /* of the name */
	struct expr **bases;
	u32 nbases;
	VEC(struct field) fields;
	VEC(struct method) methods;
	struct module *module;
};

/* A part of a compound statement of host code at the margin. */
enum branch_kind { BRANCH_IF, BRANCH_ELSE, BRANCH_TRY, BRANCH_EXCEPT, BRANCH_LOOP, BRANCH_ALWAYS };

struct branch {
	enum branch_kind kind;
	struct loc loc;
	u32 start, end;        /* BRANCH_IF: the condition, as offsets into the source */
	struct branch *before; /* the part before of the same statement, or NULL */
	struct branch *outer;  /* that it stands in, or NULL */
	struct tried {         /* BRANCH_TRY: what it imports */
		const char *target;
		bool whole;
		const struct tried *next;
	} *tried;
};

/* What host code at the margin binds a name to. */
enum definition_kind {
	DEF_VALUE,   /* `NAME = expression`; parsed only when a kernel uses it */
	DEF_CHANGED, /* a statement that is not evaluated gives it a value */
	DEF_IMPORT,  /* `import target`, a module */
	DEF_FROM,    /* `from … import …`: the target's last part is a name of a module, or a module */
	DEF_STAR,    /* `from target import *`, under the name "*" */
	DEF_JIT,     /* func */
	DEF_HOST,    /* a plain Python function */
	DEF_CLASS,   /* a class that kernels know: from its name to its end; parsed only when a kernel uses it */
};

struct definition {
	enum definition_kind kind;
	const char *name;
	struct loc loc;
	u32 start, end;      /* DEF_VALUE, DEF_CLASS: the text, as offsets into the source; DEF_HOST: start of `def` */
	const char *target;  /* of imports, dotted: "triton.language", "..utils.f" */
	struct func *func;
	const struct branch *branch;     /* that it stands in; NULL: none */
	const struct definition *before; /* of the same name */
};

struct module {
	u16 file;
	bool is_library;        /* of the standard library */
	VEC(struct func *) funcs;
	struct map by_name;     /* name → struct func: of one name, the last */
	struct map definitions; /* name → its last struct definition */
};
/* The target of the name's last import, or NULL. */
const char *imported_name(const struct module *m, const char *name);

/* Parses a whole file. Errors go to `diags`; the module holds every function that parsed. */
struct module *parse_module(struct arena *arena, struct interner *names, struct diags *diags, u16 file);
/* Says again why the function, which is broken, cannot be read. */
void report_broken(struct arena *arena, struct interner *names, struct diags *diags, const struct func *f);
/* The same of all broken functions of m. False: there are none. */
bool report_all_broken(struct arena *arena, struct interner *names, struct diags *diags, const struct module *m);
/* Parses one expression out of [start, end) of a file; NULL after an error. */
struct expr *parse_expression(struct arena *arena, struct interner *names, struct diags *diags, u16 file, u32 start,
			      u32 end);

/* Parses one class, from its name to its end; NULL after an error. Its functions are of m. */
struct class_def *parse_class(struct arena *arena, struct interner *names, struct diags *diags, struct module *m,
			      u32 start, u32 end);
/* Parses the plain Python function of m whose `def` begins at `start`; NULL after an error. */
struct func *parse_host_function(struct arena *arena, struct interner *names, struct diags *diags, struct module *m,
				 u32 start);

/* Python's escapes in the len bytes at s, except \N{…}; unknown ones stay as they are. */
const char *unescape_string(struct arena *a, const char *s, u32 len, u32 *out_len);

/* Does f, or a jit function that f names, refer to `name` of another module ("dot" of tl.dot)? True also where f calls
 * a parameter and a function of its module does. The visited functions are noted in `a`. */
bool func_calls(struct arena *a, const struct func *f, const char *name);

/* Writes the tree as indented s-expressions (`tlc --emit ast`). */
void ast_print(const struct module *m, FILE *out);
void ast_print_expr(const struct expr *e, struct strbuf *out);

#endif
