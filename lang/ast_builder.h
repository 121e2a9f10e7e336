/* The nodes of the AST as the grammar's actions make them; nothing outside lang/ includes this. */
#ifndef TLC_LANG_AST_BUILDER_H
#define TLC_LANG_AST_BUILDER_H

#include "lang/parse.h"

/* --- expressions --------------------------------------------------------------------------------------------- */

/* A node without operands, such as None. */
struct expr *ast_leaf(struct parser *p, enum expr_kind kind, struct loc loc);
struct expr *ast_name(struct parser *p, const char *name, struct loc loc);
struct expr *ast_unary(struct parser *p, enum operator op, struct expr *a, struct loc loc);
struct expr *ast_binary(struct parser *p, enum operator op, struct expr *a, struct expr *b, struct loc loc);
struct expr *ast_conditional(struct parser *p, struct expr *cond, struct expr *yes, struct expr *no, struct loc loc);
struct expr *ast_attribute(struct parser *p, struct expr *a, const char *name, struct loc loc);
struct expr *ast_subscript(struct parser *p, struct expr *a, struct expr *index, struct loc loc);
struct expr *ast_slice(struct parser *p, struct expr *a, struct expr *b, struct expr *c, struct loc loc);
struct expr *ast_star(struct parser *p, struct expr *a, struct loc loc);
struct expr *ast_named(struct parser *p, const char *name, struct loc name_loc, struct expr *value, struct loc loc);
/* A clause of a comprehension: `for a in b`, `if a`. */
struct expr *ast_clause(struct parser *p, enum expr_kind kind, struct expr *a, struct expr *b, struct loc loc);
/* Of a dict, element: value; value is NULL otherwise. */
struct expr *ast_comprehension(struct parser *p, struct expr *element, struct expr *value, const expr_vec *clauses,
			       struct loc loc);
expr_vec *expr_list(struct parser *p, struct expr *first);
/* A node with any number of operands (tuple, list, `and`, `or`): `first`, if any, then `rest`, if any. */
struct expr *ast_sequence(struct parser *p, enum expr_kind kind, const expr_vec *rest, struct expr *first,
			  struct loc loc);
struct expr *ast_compare(struct parser *p, enum operator op, struct expr *a, struct expr *b, struct loc loc);
/* `a < b` and another operand: `a < b < c` is one comparison of three operands, as in Python. */
struct expr *ast_extend_compare(struct parser *p, struct expr *chain, enum operator op, struct expr *b,
				struct loc loc);
/* `m < M & n < N` means m < (M & n) and (M & n) < N in Python, seldom the author's intention: warns. */
void warn_of_bits_in_chain(struct parser *p, const struct expr *chain);
struct expr *ast_call(struct parser *p, struct expr *f, const struct call_args *args, struct loc loc);
/* A positional argument where `name` is NULL. */
void add_argument(struct parser *p, struct call_args *args, const char *name, struct expr *value, struct loc loc);
/* **value */
void add_keywords(struct parser *p, struct call_args *args, struct expr *value, struct loc loc);
/* Adjacent string literals are one string. With an f-string among them, the parts stay apart until evaluation. */
struct expr *ast_join_strings(struct parser *p, struct expr *a, struct expr *b);
/* Python syntax without a meaning in kernels: an error only if the evaluator reaches it. */
struct expr *ast_unsupported(struct parser *p, const char *what, struct loc loc);

struct expr *ast_lambda(struct parser *p, const param_vec *params, struct expr *body, struct loc loc);

/* --- statements ---------------------------------------------------------------------------------------------- */

struct stmt *ast_stmt(struct parser *p, enum stmt_kind kind, struct loc loc);
struct stmt *ast_unsupported_stmt(struct parser *p, const char *what, struct loc loc);
/* `import what as alias`, `from base import what as alias`; what is NULL for '*'. */
struct stmt *ast_import(struct parser *p, struct expr *base, struct expr *what, const char *alias, struct loc loc);
struct stmt *ast_annotated(struct parser *p, struct expr *target, struct expr *type, struct expr *value,
			   struct loc loc);
/* Refuses expressions that Python cannot assign to. Elements and attributes pass: the evaluator refuses them where
 * it reaches the assignment. */
void check_target(struct parser *p, const struct expr *e, bool augmented);
/* The statements of one line, separated by ';', as one statement. */
struct stmt *ast_line(struct parser *p, const stmt_vec *list);
struct body single_body(struct parser *p, struct stmt *s);
/* `with` of several items, as one inside the other. */
struct stmt *nest_with(struct parser *p, const stmt_vec *items, struct body body);
void finish_if(struct parser *p, struct stmt *s, struct arm first, const arm_vec *more, struct body otherwise);

/* --- functions ----------------------------------------------------------------------------------------------- */

/* Leaves out the markers '*' and '/', which have no name. */
param_vec *add_parameter(struct parser *p, param_vec *list, struct param q);
void add_function(struct parser *p, enum func_kind kind, const struct branch *branch, const char *name,
		  struct loc loc, param_vec *params, struct body body);

/* A function that is not entered into the module. */
struct func *new_function(struct parser *p, const char *name, struct loc loc, param_vec *params, struct body body);
/* A statement in the class that is being parsed: a field, a value, a docstring. */
void add_class_statement(struct parser *p, const struct stmt *s);
void add_method(struct parser *p, struct func *f, const expr_vec *decorators);

/* --- errors (syntax_error.c) --------------------------------------------------------------------------------- */

/* Reports the token `got` at `at`; `wanted`, if not NULL, is the only token that would fit. Both are bison's names of
 * tokens; got is NULL at the end of the file. */
void syntax_error(struct parser *p, struct loc at, const char *got, const char *wanted);

#endif
