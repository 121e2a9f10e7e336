/* AST + signature + compile-time values → tile IR, by partial evaluation.
 *
 * The evaluator runs the kernel like Python would, except that values known only at run time are SSA values of the IR
 * being built. Loops and branches over run-time values become structured control flow; everything else (constexpr
 * branches, tuples, dtypes, calls of jit functions) happens here and leaves no trace. */
#ifndef TLC_FRONTEND_FRONTEND_H
#define TLC_FRONTEND_FRONTEND_H

#include "ir/ir.h"
#include "lang/ast.h"

/* What one parameter gets: a tree, of which the leaves have a type or a value, as text: a type in Triton's notation
 * ("*fp32:16", "i32", "i32:1", "fp32") or a Python literal / name for a compile-time value. Both NULL: look at the
 * source. The type of a parameter may also be text of a whole tree: see parse_arg_spec. */
enum arg_shape { ARG_LEAF, ARG_TUPLE, ARG_DESCRIPTOR };
enum { MAX_DESCRIPTOR_RANK = 5 };
struct arg_spec {
	const char *type;
	const char *constant;
	enum arg_shape shape;
	/* ARG_TUPLE: its elements. ARG_DESCRIPTOR: the base, the sizes, the strides but the last, which is 1 */
	const struct arg_spec *items;
	u32 nitems;
	const char *const *fields; /* of a named tuple; else NULL */
	i32 block_shape[MAX_DESCRIPTOR_RANK]; /* ARG_DESCRIPTOR: as many as the rank */
	bool pads_with_nan, rounds_to_tf32;
};
/* The number of leaves. */
u32 arg_leaves(const struct arg_spec *a);
static inline u32 descriptor_rank(const struct arg_spec *a) { return a->nitems / 2; }

/* The part of the standard library that is always there. */
const struct module *library_core(struct arena *a, struct interner *names, struct diags *d);

/* Finds the module of another file that `from` imports by a dotted name, relative if it begins with dots, or NULL. */
struct import_files {
	const struct module *(*find)(void *arg, const struct module *from, const char *dotted);
	void *arg;
};

/* What is asked of decorators: all that is known without a launch; or the one or the other for the arguments of a
 * launch, where what is not known is an error. */
enum decorators_of { DECORATORS_KNOWN, LAUNCH_CONFIGURATIONS, LAUNCH_HEURISTICS };

struct eval_request {
	const struct module *module;
	const struct module *std;     /* library_core() */
	const struct func *func;
	const struct arg_spec *args;  /* one per parameter */
	struct import_files imports;
	bool remarks;                 /* say which options have no effect */
	bool debug;                   /* check integers for overflow */
	bool lines;                   /* mark statements, variables and calls for debuggers */
	int num_warps;                /* of a program */
	int capability;               /* of the target, 90 of sm_90a; 0: not known */
	struct strbuf *calls;         /* gets a line for each call of a built-in function; or NULL */
	enum decorators_of of;        /* of eval_decorators */
};

/* NULL after an error, which is in ctx->diags. */
struct kernel *eval_kernel(struct ir_context *ctx, const struct eval_request *req);

/* For the reader of IR text: see ir/import/library_calls.h. */
struct text_library;
const struct text_library *text_library_new(struct ir_context *ctx, const struct module *std);

/* Every built-in function with its parameters and defaults, a line each; those that are methods of tiles too end in
 * "\tmethod". */
void list_builtins(struct ir_context *ctx, struct strbuf *out);

/* What the decorators of a kernel say, triton.autotune and triton.heuristics and those like them, as far as host code
 * is evaluated. */
struct tuned_value {
	const char *name;
	const char *literal; /* as for -D */
	const char *json;
};
struct configuration {
	struct tuned_value *values;
	u32 nvalues;
	int num_warps, num_stages; /* 0: not given */
	int num_ctas, maxnreg;     /* likewise */
	bool has_hook;             /* pre_hook, which is the host's */
	const char *pruned;        /* why it need not be tried; NULL: it is to be */
};
typedef VEC(const char *) name_list;
struct tuning {
	VEC(struct configuration) configurations;
	name_list keys, reset, restore;     /* of parameters */
	int warmup_ms, rep_ms;              /* 0: not given */
	VEC(struct tuned_value) heuristics; /* literal and json are NULL where the value is not known */
	name_list any_value, any_alignment; /* parameters that triton.jit is told not to specialise */
	VEC(const char *) unknown;          /* why something is not */
};
/* Of DECORATORS_KNOWN, where req->args is not NULL, heuristics are evaluated with them and the first configuration.
 * Those of a launch are pruned by prune_configs_by, and errors are in ctx->diags. */
void eval_decorators(struct ir_context *ctx, const struct eval_request *req, struct tuning *out);

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
/* An annotation written as text: a type, or pointers of which a launch takes any, "*fp16:16 | *bf16"; "*" after the
 * first is a pointer to any type. `out` is the first, `dtypes` a bit for each element type. */
bool parse_annotation(const char *text, struct sig_type *out, u64 *dtypes);
/* Types of composite arguments: "(*fp32, i32:16, None)", "(ptr=*fp32, shape=(i32, i32))", "tensordesc<fp16[64, 64]>",
 * "tensordesc<fp16[64, 64]:16, nan>"; what is no type in a tuple is a value. Others are a leaf. False: it is none. */
bool parse_arg_spec(struct arena *a, const char *text, struct arg_spec *out);
/* The same as text. */
void print_arg_spec(struct strbuf *out, const struct arg_spec *a);

#endif
