/* The abstract syntax of a kernel file.
 *
 * A file is Python, of which only jit functions are parsed. Host code around them is skipped, but imports and top-level
 * assignments are recorded so that kernels can refer to them. Nodes are allocated in the arena of the parse. Names are
 * interned, so equality is pointer equality. */
#ifndef TLC_LANG_AST_H
#define TLC_LANG_AST_H

#include "support/diag.h"
#include "support/map.h"

enum { AST_MAX_DEPTH = 400 }; /* limit on the nesting of expressions */

enum expr_kind {
	EX_NAME,      /* name */
	EX_INT,       /* integer; too_big if it does not fit 64 bits */
	EX_FLOAT,     /* real */
	EX_STR,       /* text, text_len: after replacing escapes */
	/* text: the inside of an f-string as in the source; or items: concatenated strings and f-strings */
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
	EX_COMPREHENSION, /* [a for …], {a: b for …}: items are the clauses, EX_FOR and EX_IF */
	EX_FOR,       /* for a in b */
	EX_IF,        /* if a */
	EX_LAMBDA,    /* func */
};

enum operator {
	OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_FLOORDIV, OP_MOD, OP_POW, OP_MATMUL,
	OP_SHL, OP_SHR, OP_BITAND, OP_BITOR, OP_BITXOR,
	OP_NEG, OP_POS, OP_INVERT, OP_NOT,
	OP_LT, OP_LE, OP_GT, OP_GE, OP_EQ, OP_NE, OP_IS, OP_IS_NOT, OP_IN, OP_NOT_IN,
};
/* The operator as written in the source: "+", "<<", "is not", … */
const char *operator_text(enum operator op);

struct keyword {
	const char *name; /* NULL: **value */
	struct expr *value;
	struct loc loc;
};

/* True if the fields a, b and c of an expression of that kind are operands or NULL. */
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
	bool raw; /* EX_FSTR: a raw string, in which a backslash is literal */
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
	enum operator *ops; /* EX_COMPARE: nitems - 1 operators */
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
	/* name: the Python construct; an error only if a kernel reaches it. Host functions evaluate some of them.
	 * `try`, `except` and `finally`: body. `import`: value as name, or from value import message as name. */
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
	bool star; /* *name: the remaining positional arguments */
	bool rest; /* **name: keyword arguments that match no other parameter; in functions that run at compile time */
	struct expr *annotation, *value; /* either may be NULL; `value` is the default */
	struct loc loc;
};

enum func_kind {
	FUNC_JIT,       /* @triton.jit */
	/* @triton.constexpr_function, and methods without a decorator: evaluated at compile time, without converting
	 * numbers */
	FUNC_CONSTEXPR,
};

/* A decorator of a jit function other than @triton.jit. It is evaluated only on request. */
struct decorator {
	const char *name; /* dotted, with the target of its import as first part */
	struct loc loc;
	u32 start, end;   /* text after the '@', as offsets into the source */
};

struct func {
	enum func_kind kind;
	const char *name;
	struct loc loc; /* location of the name */
	struct param *params;
	u32 nparams;
	struct body body;
	const struct decorator *decorators;
	u32 ndecorators;
	struct decorator
		jit;     /* @triton.jit itself, with its arguments; 0 for functions that are not in a module */
	const char *doc; /* docstring or NULL */
	const struct expr *must_use; /* for a method: its decorator must_use_result, or NULL */
	bool has_named_exprs; /* the function contains ':=' */
	struct module *module;
	bool is_init;    /* the __init__ of a class: it creates the object, its first parameter */
	bool broken; /* the function has a syntax error, which is reported where the function is used */
	u32 start;   /* for a broken function: offset of its `def` in the source */
	bool host; /* a plain Python function, evaluated like FUNC_CONSTEXPR when a kernel needs its value */
};

/* A class that kernels can use: NamedTuple, or @triton.language.core._aggregate. */
struct field {
	const char *name;
	struct loc loc;
	struct expr *annotation, *value; /* annotation NULL: a class value; value NULL: no default */
};

enum method_kind { METHOD, METHOD_STATIC, METHOD_OF_CLASS, METHOD_PROPERTY };

struct method {
	enum method_kind kind;
	struct func *func;
};

struct class_def {
	const char *name;
	struct loc loc; /* location of the name */
	struct expr **bases;
	u32 nbases;
	VEC(struct field) fields;
	VEC(struct method) methods;
	struct module *module;
};

/* A part of a compound statement of host code at module level. */
enum branch_kind { BRANCH_IF, BRANCH_ELSE, BRANCH_TRY, BRANCH_EXCEPT, BRANCH_LOOP, BRANCH_ALWAYS };

struct branch {
	enum branch_kind kind;
	struct loc loc;
	u32 start, end;        /* BRANCH_IF: the condition, as offsets into the source */
	struct branch *before; /* the previous part of the same statement, or NULL */
	struct branch *outer;  /* the enclosing part, or NULL */
	struct tried {         /* BRANCH_TRY: an import in the `try` */
		const char *target;
		bool whole;
		const struct tried *next;
	} *tried;
};

/* The binding of a name by host code at module level. */
enum definition_kind {
	DEF_VALUE,   /* `NAME = expression`, parsed only when a kernel uses it */
	DEF_CHANGED, /* assigned by a statement that is not evaluated */
	DEF_IMPORT,  /* `import target`, a module */
	DEF_FROM,    /* `from … import …`: the last part of the target is a name in a module, or a module */
	DEF_STAR,    /* `from target import *`, under the name "*" */
	DEF_JIT,     /* func */
	DEF_HOST,    /* a plain Python function */
	DEF_CLASS,   /* a class that kernels can use; its text is parsed only when a kernel uses it */
};

struct definition {
	enum definition_kind kind;
	const char *name;
	struct loc loc;
	/* DEF_VALUE, DEF_CLASS: the text (of a class from its name on), as offsets into the source; DEF_HOST: start of
	 * `def` */
	u32 start, end;
	const char *target;  /* imports: dotted, such as "triton.language", "..utils.f" */
	struct func *func;
	const struct branch *branch;     /* the enclosing part of a compound statement; NULL: none */
	const struct definition *before; /* the previous definition of the same name */
};

struct module {
	u16 file;
	bool is_library;        /* a part of the standard library */
	VEC(struct func *) funcs;
	struct map by_name;     /* name → struct func, the last of that name */
	struct map definitions; /* name → its last struct definition */
};
/* The target of the last import of the name, or NULL. */
const char *imported_name(const struct module *m, const char *name);

/* Parses a whole file. Errors are reported in `diags`. The module holds every function without errors. */
struct module *parse_module(struct arena *arena, struct interner *names, struct diags *diags, u16 file);
/* Reports the syntax errors of a broken function again. */
void report_broken(struct arena *arena, struct interner *names, struct diags *diags, const struct func *f);
/* Reports the syntax errors of all broken functions of m. False if there are none. */
bool report_all_broken(struct arena *arena, struct interner *names, struct diags *diags, const struct module *m);
/* Parses the expression in [start, end) of a file; NULL after an error. */
struct expr *parse_expression(struct arena *arena, struct interner *names, struct diags *diags, u16 file, u32 start,
			      u32 end);

/* Parses one class, from its name to its end, with functions that belong to m; NULL after an error. */
struct class_def *parse_class(struct arena *arena, struct interner *names, struct diags *diags, struct module *m,
			      u32 start, u32 end);
/* Parses the plain Python function of m whose `def` is at `start`; NULL after an error. */
struct func *parse_host_function(struct arena *arena, struct interner *names, struct diags *diags, struct module *m,
				 u32 start);

/* Replaces Python's escapes, except \N{…}, in the len bytes at s. Unknown escapes are kept. */
const char *unescape_string(struct arena *a, const char *s, u32 len, u32 *out_len);

/* Finds the module that `from` imports under a dotted name. The name is relative if it begins with dots. NULL if there
 * is no such module. */
struct import_files {
	const struct module *(*find)(void *arg, const struct module *from, const char *dotted);
	void *arg;
};

/* True if f, or a jit function that f refers to, uses `name` of another module ("dot" of tl.dot). Also true if f calls
 * a parameter and a function that f's module has or imports uses the name. Functions of the modules that `others` finds
 * are searched; those of further modules are assumed to use the name. Visited functions are recorded in `a`. */
bool func_calls(struct arena *a, const struct func *f, const char *name, const struct import_files *others);

/* Prints the tree as indented s-expressions (`tlc --emit ast`). */
void ast_print(const struct module *m, FILE *out);
void ast_print_expr(const struct expr *e, struct strbuf *out);

#endif
