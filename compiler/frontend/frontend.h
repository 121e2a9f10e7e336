/* Evaluates an AST with a signature and compile-time values, and builds tile IR, by partial evaluation.
 *
 * The evaluator runs the kernel as Python would, except that values known only at run time are SSA values of the IR
 * under construction. Loops and branches over run-time values become structured control flow. Everything else
 * (constexpr branches, tuples, dtypes, calls of jit functions) is evaluated at compile time and leaves no
 * operations. */
#ifndef TLC_FRONTEND_FRONTEND_H
#define TLC_FRONTEND_FRONTEND_H

#include "ir/ir.h"
#include "lang/ast.h"

/* The argument of one parameter, as a tree. Each leaf has a type or a value, as text: a type in Triton's notation
 * ("*fp32:16", "i32", "i32:1", "fp32"), or a Python literal or name for a compile-time value. If both are NULL, the
 * source decides (annotation or default). The type of a parameter may also be the text of a whole tree: see
 * parse_arg_spec. */
enum arg_shape { ARG_LEAF, ARG_TUPLE, ARG_DESCRIPTOR };
enum { MAX_DESCRIPTOR_RANK = 5 };
struct arg_spec {
	const char *type;
	const char *constant;
	enum arg_shape shape;
	/* ARG_TUPLE: the elements. ARG_DESCRIPTOR: the base, the sizes, and all strides but the last, which is 1. */
	const struct arg_spec *items;
	u32 nitems;
	const char *const *fields; /* of a named tuple; else NULL */
	i32 block_shape[MAX_DESCRIPTOR_RANK]; /* ARG_DESCRIPTOR: one entry per dimension */
	bool pads_with_nan, rounds_to_tf32;
	bool padding_given; /* the text states these properties, so that a launcher need not pass them */
};
/* The number of leaves of the tree. */
u32 arg_leaves(const struct arg_spec *a);
static inline u32 descriptor_rank(const struct arg_spec *a) { return a->nitems / 2; }

/* The core of the standard library, which every kernel can use without an import. */
const struct module *library_core(struct arena *a, struct interner *names, struct diags *d);

/* True if the compiler has an own module of this dotted name, so that imports of the name search no other one:
 * "triton.language", "math". */
bool is_own_module(const char *dotted);

/* The decorators to evaluate: all that is known without a launch; or the configurations, or the heuristics, for the
 * arguments of a launch. For a launch an unknown value is an error. */
enum decorators_of { DECORATORS_KNOWN, LAUNCH_CONFIGURATIONS, LAUNCH_HEURISTICS };

struct eval_request {
	const struct module *module;
	const struct module *std;     /* library_core() */
	const struct func *func;
	const struct arg_spec *args;  /* one per parameter */
	struct import_files imports;
	bool remarks;                 /* report options that have no effect */
	bool debug;                   /* check integers for overflow */
	bool lines;                   /* mark statements, variables and calls for debuggers */
	int num_warps;                /* warps per program */
	int capability;               /* compute capability of the target, 90 for sm_90a; 0: unknown */
	struct strbuf *calls;         /* receives one line per call of a built-in function; NULL: off */
	enum decorators_of of;        /* for eval_decorators */
};

/* NULL after an error, which is reported in ctx->diags. */
struct kernel *eval_kernel(struct ir_context *ctx, const struct eval_request *req);

/* The standard library as the reader of IR text uses it: see ir/import/library_calls.h. */
struct text_library;
const struct text_library *text_library_new(struct ir_context *ctx, const struct module *std);

/* Lists every built-in function with its parameters and defaults, one per line. The line of a function that is also a
 * method of tiles ends in "\tmethod". */
void list_builtins(struct ir_context *ctx, struct strbuf *out);

/* The results of a kernel's decorators (triton.autotune, triton.heuristics and similar ones), as far as host code is
 * evaluated. */
struct tuned_value {
	const char *name;
	const char *literal; /* as for the option -D */
	const char *json;
};
struct configuration {
	struct tuned_value *values;
	u32 nvalues;
	struct codegen_options options; /* a number that is 0 is not given */
	int num_ctas;                   /* likewise */
	bool has_hook;             /* a pre_hook is given; only host code can run it */
	const char *pruned;        /* why tuning skips this configuration; NULL: it does not */
};
typedef VEC(const char *) name_list;
struct tuning {
	VEC(struct configuration) configurations;
	name_list keys, reset, restore;     /* names of parameters */
	int warmup_ms, rep_ms;              /* 0: not given */
	VEC(struct tuned_value) heuristics; /* literal and json are NULL where the value is not known */
	name_list any_value, any_alignment; /* parameters that triton.jit is told not to specialise */
	VEC(const char *) unknown;          /* one reason for each item that could not be evaluated */
};
/* With DECORATORS_KNOWN and req->args, heuristics are evaluated for those arguments and the first configuration. The
 * configurations of a launch are pruned by prune_configs_by. Errors of a launch are reported in ctx->diags. */
void eval_decorators(struct ir_context *ctx, const struct eval_request *req, struct tuning *out);

/* A parsed type of the signature notation. */
struct sig_type {
	enum dtype dtype;
	int pointers;      /* 0: a number, 1: a pointer to dtype, 2: a pointer to a pointer, … */
	i32 divisibility;  /* from ":16"; 0: not given */
	bool one;          /* ":1": the integer equals 1 */
	bool constant;     /* the word "constexpr" */
	bool is_const;     /* a pointer to constant data: "*kfp32" */
};
/* False when `text` is not a type. */
bool parse_sig_type(const char *text, struct sig_type *out);
/* Parses an annotation given as text: a type, or several pointer types of which a launch may pass any, as in "*fp16:16
 * | *bf16". A "*" after the first type is a pointer to any type. `out` receives the first type, `dtypes` one bit per
 * element type. */
bool parse_annotation(const char *text, struct sig_type *out, u64 *dtypes);
/* Parses types of composite arguments: "(*fp32, i32:16, None)", "(ptr=*fp32, shape=(i32, i32))", "tensordesc<fp16[64,
 * 64]>", "tensordesc<fp16[64, 64]:16, nan>". In a tuple, text that is not a type is a value. Other text is a leaf.
 * False if the text cannot be parsed. */
bool parse_arg_spec(struct arena *a, const char *text, struct arg_spec *out);
/* Prints the tree in the notation that parse_arg_spec reads. */
void print_arg_spec(struct strbuf *out, const struct arg_spec *a);

#endif
