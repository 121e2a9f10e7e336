/* The constructors of AST nodes for the grammar's actions. Only for files of lang/. */
#ifndef TLC_LANG_AST_BUILDER_H
#define TLC_LANG_AST_BUILDER_H

#include "lang/parse.h"

/* --- expressions --------------------------------------------------------------------------------------------- */

/* A node without operands, such as None. */
struct expr *ast_leaf(struct parser *p, enum expr_kind kind, struct loc loc);
/* A node with up to three operands; the others are NULL. */
struct expr *ast_node(struct parser *p, enum expr_kind kind, struct expr *a, struct expr *b, struct expr *c,
		      struct loc loc);
struct expr *ast_name(struct parser *p, const char *name, struct loc loc);
struct expr *ast_unary(struct parser *p, enum operator op, struct expr *a, struct loc loc);
struct expr *ast_binary(struct parser *p, enum operator op, struct expr *a, struct expr *b, struct loc loc);
struct expr *ast_attribute(struct parser *p, struct expr *a, const char *name, struct loc loc);
struct expr *ast_named(struct parser *p, const char *name, struct loc name_loc, struct expr *value, struct loc loc);
/* A clause of a comprehension: `for a in b`, `if a`. */
struct expr *ast_clause(struct parser *p, enum expr_kind kind, struct expr *a, struct expr *b, struct loc loc);
/* element: value in a dict comprehension; otherwise value is NULL. */
struct expr *ast_comprehension(struct parser *p, struct expr *element, struct expr *value, const expr_vec *clauses,
			       struct loc loc);
expr_vec *expr_list(struct parser *p, struct expr *first);
/* A node with any number of operands (tuple, list, `and`, `or`): `first`, if not NULL, then `rest`, if not NULL. */
struct expr *ast_sequence(struct parser *p, enum expr_kind kind, const expr_vec *rest, struct expr *first,
			  struct loc loc);
struct expr *ast_compare(struct parser *p, enum operator op, struct expr *a, struct expr *b, struct loc loc);
/* Adds an operand to the comparison `a < b`: `a < b < c` is one comparison of three operands, as in Python. */
struct expr *ast_extend_compare(struct parser *p, struct expr *chain, enum operator op, struct expr *b,
				struct loc loc);
/* Warns about `m < M & n < N`, which in Python means m < (M & n) and (M & n) < N and is rarely intended. */
void warn_of_bits_in_chain(struct parser *p, const struct expr *chain);
struct expr *ast_call(struct parser *p, struct expr *f, const struct call_args *args, struct loc loc);
/* Adds a keyword argument, or a positional argument if `name` is NULL. */
void add_argument(struct parser *p, struct call_args *args, const char *name, struct expr *value, struct loc loc);
/* Adds the argument **value. */
void add_keywords(struct parser *p, struct call_args *args, struct expr *value, struct loc loc);
/* Adjacent string literals form one string. If one is an f-string, they are joined at evaluation. */
struct expr *ast_join_strings(struct parser *p, struct expr *a, struct expr *b);
struct expr *ast_lambda(struct parser *p, const param_vec *params, struct expr *body, struct loc loc);

/* --- statements ---------------------------------------------------------------------------------------------- */

struct stmt *ast_stmt(struct parser *p, enum stmt_kind kind, struct loc loc);
/* Python syntax that kernels cannot use. It is an error only if the evaluator reaches it. */
struct stmt *ast_unsupported_stmt(struct parser *p, const char *what, struct loc loc);
/* `import what as alias` or `from base import what as alias`; `what` is NULL for '*'. */
struct stmt *ast_import(struct parser *p, struct expr *base, struct expr *what, const char *alias, struct loc loc);
struct stmt *ast_annotated(struct parser *p, struct expr *target, struct expr *type, struct expr *value,
			   struct loc loc);
/* Reports expressions to which Python cannot assign. Subscripts and attributes pass; the evaluator reports invalid ones
 * when it reaches the assignment. */
void check_target(struct parser *p, const struct expr *e, bool augmented);
/* The statements of one line, separated by ';', as one statement. */
struct stmt *ast_line(struct parser *p, const stmt_vec *list);
struct body single_body(struct parser *p, struct stmt *s);
/* A `with` of several items, as nested statements. */
struct stmt *nest_with(struct parser *p, const stmt_vec *items, struct body body);
void finish_if(struct parser *p, struct stmt *s, struct arm first, const arm_vec *more, struct body otherwise);

/* --- functions ----------------------------------------------------------------------------------------------- */

/* Appends a parameter. The markers '*' and '/', which have no name, are left out. */
param_vec *add_parameter(struct parser *p, param_vec *list, struct param q);
void add_function(struct parser *p, enum func_kind kind, const struct branch *branch, const char *name,
		  struct loc loc, param_vec *params, struct body body);

/* A function that is not added to the module. */
struct func *new_function(struct parser *p, const char *name, struct loc loc, param_vec *params, struct body body);
/* Adds a statement of the class under the parser: a field, a value or a docstring. */
void add_class_statement(struct parser *p, const struct stmt *s);
void add_method(struct parser *p, struct func *f, const expr_vec *decorators);

/* --- errors (syntax_error.c) --------------------------------------------------------------------------------- */

/* Reports the unexpected token `got` at `at`. `wanted`, if not NULL, is the only token that would be valid. Both are
 * bison's token names. `got` is NULL at the end of the file. */
void syntax_error(struct parser *p, struct loc at, const char *got, const char *wanted);

#endif
