/* AST + signature + compile-time values → tile IR, by partial evaluation.
 *
 * The evaluator runs the kernel like Python would, except that values known only at run time are SSA values of the IR
 * being built. Loops and branches over run-time values become structured control flow; everything else (constexpr
 * branches, tuples, dtypes, calls of jit functions) happens here and leaves no trace. */
#ifndef TLC_EVAL_EVAL_H
#define TLC_EVAL_EVAL_H

#include "ir/ir.h"
#include "lang/ast.h"

/* The type or the value of one parameter, as text: a type in Triton's notation ("*fp32:16", "i32", "i32:1", "fp32") or
 * a Python literal / name for a compile-time value. Both NULL: look at the source. */
struct arg_spec {
	const char *type;
	const char *constant;
};

/* The part of the standard library that is always there. */
const struct module *library_core(struct arena *a, struct interner *names, struct diags *d);

/* Finds the module of another file that `from` imports by a dotted name, relative if it begins with dots, or NULL. */
struct import_files {
	const struct module *(*find)(void *arg, const struct module *from, const char *dotted);
	void *arg;
};

struct eval_request {
	const struct module *module;
	const struct module *std;     /* library_core() */
	const struct func *func;
	const struct arg_spec *args;  /* one per parameter */
	struct import_files imports;
	bool remarks;                 /* say which options have no effect */
	bool debug;                   /* check integers for overflow */
	int num_warps;                /* of a program */
};

/* NULL after an error, which is in ctx->diags. */
struct kernel *eval_kernel(struct ir_context *ctx, const struct eval_request *req);

/* A parsed type of the signature notation. */
struct sig_type {
	enum dtype dtype;
	int pointers;      /* 0 number, 1 pointer to dtype, … */
	i32 divisibility;  /* from ":16"; 0 when not given */
	bool one;          /* ":1": the integer is 1 */
	bool constant;     /* the word "constexpr" */
	bool is_const;     /* a pointer to constant data: "*kfp32" */
};
/* False when `text` is not a type. */
bool parse_sig_type(const char *text, struct sig_type *out);

#endif
