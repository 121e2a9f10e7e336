/* Interface between the files of the evaluator: values, frames and shared functions. */
#ifndef TLC_FRONTEND_FRONTEND_INTERNAL_H
#define TLC_FRONTEND_FRONTEND_INTERNAL_H

#include "frontend/frontend.h"

enum {
	MAX_CALL_DEPTH = 60,
	MAX_NESTING = 1500,       /* nesting of expressions under evaluation, over all calls: bounds the C stack */
	MAX_BRANCHES = 200,       /* nesting of run-time branches and loops: bounds the C stack */
	MAX_OPS = 1 << 20,        /* operations in one kernel: stops runaway unrolling */
	MAX_STEPS = 20 * 1000000, /* statements and expressions evaluated, and parts of values built */
	MAX_PARTS = 1 << 20,      /* items of a tuple, list or dict, including nested items, or bytes of a string */
	MAX_REPEATED_ERRORS = 1000, /* including errors that are not shown: a loop that repeats an error may not end */
};

/* --- values -------------------------------------------------------------------------------------------------- */

enum val_kind {
	V_ERROR,  /* after an error: operations on it give V_ERROR without a message */
	V_UNSET,  /* no single value; `reason` explains why */
	V_NONE,
	V_BOOL,
	V_INT,
	V_FLOAT,
	V_STR,
	V_TYPE,      /* a dtype, pointer type or tile type */
	V_CONSTEXPR_TYPE, /* self: a compile-time value, of which this is the type */
	V_TUPLE_TYPE,     /* items: the types of the elements */
	V_TUPLE,     /* also lists and sets */
	V_DICT,      /* items: each key followed by its value */
	V_OBJECT,    /* items: the fields of its class */
	V_SLICE,     /* ':' */
	V_ELLIPSIS,
	V_TENSOR,    /* a run-time scalar or tile: SSA */
	V_FUNC,      /* a jit function, constexpr function or host function */
	V_BUILTIN,
	V_METHOD,    /* a builtin or function bound to its first argument */
	V_NAMESPACE,     /* a namespace */
	V_MODULE,    /* another source file */
	V_HOST,      /* text: the dotted path of a host Python object that is not evaluated; in host code only */
	V_CLASS,     /* class */
	V_CONSTEXPR, /* tl.constexpr itself */
	V_RANGE,     /* range(…), tl.range(…), tl.static_range(…) */
	V_CONTEXT,   /* a context manager of `with` that does nothing on entry and exit */
};

/* Lists and dicts can change during compilation; see frontend/python/mutation.c. */
enum list_kind {
	LIST_NOT,    /* a tuple */
	LIST_OWNED,  /* a list or dict that exactly one variable holds, which may change */
	LIST_SHARED, /* a list or dict that may be held elsewhere too */
};

enum namespace_ {
	NS_TRITON,    /* triton.* */
	NS_TL,        /* triton.language.* */
	NS_MATH,      /* tl.math.* */
	NS_EXTRA,     /* tl.extra.cuda.* */
	NS_LIBDEVICE,
	NS_INDUCTOR,  /* triton_helpers of TorchInductor */
	NS_PYMATH,    /* Python's math */
	NS_PYTHON,    /* Python's builtins */
	NS_TYPE,      /* methods of dtypes */
	NS_PROPAGATE_NAN, /* tl.PropagateNan: ALL, NONE */
	NS_PROFILER,  /* triton.profiler.language.* */
	NS_TARGET,    /* tl.target_info.* */
};

/* The class of an object or of a named tuple. */
struct class {
	const char *name;
	const char *const *fields;
	u32 nfields;
	/* the definition in the source, or NULL */
	const struct class_def *def;
	const struct field **declared; /* one entry per field; NULL: no field has a default or type */
	const struct class *base;      /* the class that this one inherits from, or NULL */
	bool makes_tuples;
};

struct builtin;
struct loop_range;

struct val {
	enum val_kind kind : 8;
	enum dtype dtype : 8; /* V_TENSOR, V_TYPE: element type as the language sees it (with signedness) */
	u8 pointers;          /* V_TENSOR, V_TYPE: levels of pointer above dtype */
	bool is_const;        /* V_TENSOR, V_TYPE: pointers to constant data, which reject stores */
	bool to_block;        /* V_TYPE: a pointer to a block of that shape, rather than a tile of pointers */
	enum list_kind list : 8; /* V_TUPLE, V_DICT */
	/* likewise, in a function that runs at compile time: log2 of the capacity in items, or 0 */
	u8 log_room;
	const struct class *class; /* V_OBJECT, V_CLASS; V_TUPLE: the class of a named tuple, else NULL */
	union {
		bool boolean;
		i128 integer;
		double real;
		struct {
			const char *text;
			u32 len;
		};
		struct {
			const struct val *items; /* V_TUPLE, V_DICT, V_OBJECT; V_TYPE: the shape, as V_INT */
			u32 nitems;
		};
		struct value *ssa;
		const struct func *func;
		const struct builtin *builtin;
		struct {
			const struct val *self, *callee;
		};
		enum namespace_ namespace_;
		const struct module *module;
		const struct loop_range *range;
		const char *reason; /* V_UNSET */
	};
};

struct loop_range {
	bool is_static;
	const struct val *items; /* loop over a tuple: its items, and start to end are their indices; else NULL */
	struct val start, end, step;
	i64 num_stages, unroll;
	bool flatten, warp_specialize;
};

static inline struct val val_error(void) { return (struct val){.kind = V_ERROR}; }
static inline struct val val_none(void) { return (struct val){.kind = V_NONE}; }
static inline struct val val_bool(bool b) { return (struct val){.kind = V_BOOL, .boolean = b}; }
static inline struct val val_int(i128 i) { return (struct val){.kind = V_INT, .integer = i}; }
static inline struct val val_float(double d) { return (struct val){.kind = V_FLOAT, .real = d}; }
static inline struct val val_str(const char *s, u32 n) { return (struct val){.kind = V_STR, .text = s, .len = n}; }
static inline struct val val_dtype(enum dtype d) { return (struct val){.kind = V_TYPE, .dtype = d}; }
static inline struct val val_tuple(const struct val *v, u32 n)
{
	return (struct val){.kind = V_TUPLE, .items = v, .nitems = n};
}
static inline struct val val_tensor(struct value *v, enum dtype d, int pointers)
{
	return (struct val){.kind = V_TENSOR, .ssa = v, .dtype = d, .pointers = (u8)pointers};
}
/* True if v consists of items, which may be run-time values. */
static inline bool val_has_parts(const struct val *v) { return v->kind == V_TUPLE || v->kind == V_OBJECT; }
static inline bool val_is_number(const struct val *v)
{
	return v->kind == V_BOOL || v->kind == V_INT || v->kind == V_FLOAT;
}
/* The value of a number; int_of is for numbers other than floats. */
static inline double double_of(const struct val *v)
{
	return v->kind == V_FLOAT ? v->real : v->kind == V_INT ? (double)v->integer : v->boolean;
}
static inline i128 int_of(const struct val *v)
{
	return v->kind == V_INT ? v->integer : v->boolean;
}
static inline bool is_tile(const struct val *v) { return v->kind == V_TENSOR && type_is_tensor(v->ssa->type); }

/* --- evaluation state ---------------------------------------------------------------------------------------- */

struct binding {
	const char *name;
	struct val val;
	bool constant; /* declared `x: tl.constexpr` */
	bool declared; /* declared without a value, which the next assignment gives */
	u32 region;    /* region where the value was assigned: see struct eval */
};
typedef VEC(struct binding) scope;

struct loop; /* see control_flow.h */

struct frame {
	struct frame *caller;
	struct loc call; /* the call's location */
	const struct func *func;
	scope vars;
	const struct loop *loop; /* innermost loop around the current statement in this function; NULL: none */
	struct loc margin; /* location of the module statement under evaluation; file 0: a function is evaluated */
	int depth;
};

struct eval {
	struct ir_context *ctx;
	struct arena *arena;
	struct diags *diags;
	const struct module *module, *std;
	struct builder b;
	struct frame *frame;
	struct kernel *kernel;
	u32 steps, nesting;
	bool remarks;
	bool debug;    /* check integer operations for overflow */
	bool lines;    /* mark statements, variables and calls for debuggers */
	int num_warps;
	bool stopped; /* the evaluation stopped because the kernel is too large */
	VEC(const struct definition *) resolving; /* globals under evaluation, to detect cycles */
	struct map globals; /* struct definition → the value of the global, a struct val */
	struct map branches_run; /* struct branch → see branch_runs */
	struct import_files imports;
	VEC(const struct class *) tuple_classes;
	struct map library; /* text of a part of the standard library → its struct module */
	u32 host; /* nesting depth of host code under evaluation */
	u32 raised; /* errors so far that are exceptions of the host code itself, which its `try` can catch */
	int capability; /* compute capability of the target, 90 for sm_90a; 0: unknown */
	struct map host_functions; /* struct definition → its struct func */
	const char *attribute; /* the attribute requested of the name under evaluation, or NULL */
	struct strbuf *calls; /* receives one line per call of a built-in function; NULL: off */
	u32 branches; /* nesting depth of run-time branches and loops around the current statement, over all calls */
	/* The current region: code of which all parts run together, such as one side of a run-time branch or the body
	 * of a run-time loop. Regions are numbered in the order in which they begin. */
	u32 region, regions;
	struct map used_behind; /* see index_is_used_behind */
	struct map fstrings; /* text of a field of an f-string → its struct expr */
};

/* Where control goes after a statement. */
enum flow {
	FLOW_NEXT,     /* next statement */
	FLOW_CONTINUE, /* next iteration of the loop */
	FLOW_BREAK, FLOW_BREAK_OUTER, /* after the loop: see struct loop */
	FLOW_RETURN,   /* end of the function */
	FLOWS,
};

/* How statements end: in one flow, or in one of several flows that is chosen at run time. */
struct outcome {
	u32 ways;                   /* bit mask of enum flow */
	/* the statements after them are already evaluated, up to the end of the run-time branch */
	bool rest_done;
	struct value *taken[FLOWS]; /* with several flows: an i1 per flow, true if it is taken */
	/* the variables at the end of each flow; if FLOW_NEXT is the only flow, the frame holds them */
	scope vars[FLOWS];
	struct val ret;             /* the returned value of FLOW_RETURN */
};
struct cont; /* the continuation of a statement: see control_flow.h */

/* params.c: the values of the kernel's parameters, and the parameters of the IR function */
void bind_params(struct eval *e, const struct eval_request *req);
struct eval eval_new(struct ir_context *ctx, const struct eval_request *req);

/* frontend.c: statements */
struct outcome exec_body(struct eval *e, const struct body *body, u32 from, const struct cont *outer);
/* Makes b the block that receives new operations. Returns the builder of the outer block, for leave_block. */
struct builder enter_block(struct eval *e, struct block *b);
void leave_block(struct eval *e, struct builder outer);
/* Evaluates the body of a function and returns its result. */
struct val exec_function(struct eval *e, const struct body *body);
struct binding *find_var(struct frame *f, const char *name);
/* Evaluates x in the scope of f's module, without f's variables. */
struct val eval_in_module(struct eval *e, const struct func *f, const struct expr *x);
/* The value of a parameter given as text, as by the option -D. */
struct val constant_argument(struct eval *e, const char *name, const char *literal);
/* True if the annotation x, a name or a string, is tl.constexpr. */
bool is_constexpr_annotation(const struct expr *x);
void set_var(struct eval *e, const char *name, struct val v);
/* Assigns v to the target, at location `at`. Numbers become run-time values, as in Triton, except in variables declared
 * `x: tl.constexpr`. */
void assign(struct eval *e, const struct expr *target, struct val v, struct loc at);
/* Reports a Python construct that kernels cannot use, with advice on a replacement. */
struct val unsupported_syntax(struct eval *e, const char *what, struct loc at);
/* Counts one step of the evaluation. False once the evaluation has stopped: too many steps or too many errors. */
bool step(struct eval *e, struct loc at);

/* control_flow.c: how statements end, run-time branches */
struct outcome exec_if(struct eval *e, const struct stmt *s, u32 arm, const struct cont *rest);
/* break, continue, return */
struct outcome exec_jump(struct eval *e, const struct stmt *s);
/* used: the value is needed. */
struct val eval_ternary(struct eval *e, const struct expr *x, bool used);

/* loops.c */
struct outcome exec_for(struct eval *e, const struct stmt *s, const struct cont *rest);
struct outcome exec_while(struct eval *e, const struct stmt *s);

/* frontend/python/advice.c: each adds a hint to the last message if there is advice for the case */
bool advise_name(struct eval *e, const char *name);   /* an undefined name */
bool advise_member(struct eval *e, const char *name); /* a missing member of a tile or of triton.language */
bool advise_host(struct eval *e, const char *module, const char *name);
/* A value used in a place that does not accept it: a function that is not called, a Python type, a fraction as a
 * length. */
void advise_value(struct eval *e, const struct val *v);
bool advise_call(struct eval *e, const char *function); /* a call that lacks an argument */
/* True if Triton has a function of that name that tlc lacks. */
bool triton_has(const char *name);
/* Adds a note to the last message, reported at `at`: where the tile or number v was computed, if on another line. */
void note_origin(struct eval *e, const struct val *v, struct loc at);

/* debug_info.c: builds operations for debuggers if the kernel is compiled with lines. Code of the standard library,
 * host code and functions that run on elements are not marked. */
void mark_line(struct eval *e, struct loc at);
void mark_value(struct eval *e, const char *name, const struct val *v);
/* Marks the variables of the frame that differ from `before` (NULL: all). */
void mark_variables(struct eval *e, const scope *before);
void mark_call(struct eval *e);   /* a call of the frame's function, after its parameters are bound */
void mark_return(struct eval *e);

/* unused_values.c */
/* True if x is a name or an attribute chain of a name. Evaluating such an expression again builds no operations. */
bool is_name_path(const struct expr *x);
void warn_of_unused(struct eval *e, const struct expr *x, const struct val *v, const struct op *before);
/* The call expression after the '@'; NULL if the decorator is not a call. */
const struct expr *decorator_call(struct eval *e, const struct module *m, const struct decorator *d);
/* x is a call used as a statement and already evaluated. Reports an error if the function has
 * @triton.must_use_result. */
void check_must_use(struct eval *e, const struct expr *x);
/* Reports tl.constexpr parameters of the kernel f in the lists do_not_specialize… of @triton.jit. */
void check_unspecialized(struct eval *e, const struct func *f);

/* frontend/python/names.c */
struct val eval_name(struct eval *e, const char *name, struct loc at);
/* The value that host code of m gives the name, or an error value if it is unknown. False if m does not define the
 * name. */
bool module_name(struct eval *e, const struct module *m, const char *name, struct loc at, struct val *out);
struct val module_attribute(struct eval *e, struct val v, const char *name, struct loc at);
/* False if the import is unknown; *out is then a host value. */
bool import_value(struct eval *e, const struct module *m, const char *target, bool whole, struct loc at,
		  struct val *out);
/* True if Python would find the module or name. A name of triton.language exists if tlc has it. Common host libraries
 * exist. */
bool is_importable(struct eval *e, const struct module *m, const struct tried *t);

/* frontend/python/host_values.c: host Python whose value is known */
struct val host_val(const char *path);
/* The value of the path. False if nothing is known about it and its attributes. */
bool host_path(struct eval *e, const char *path, struct val *out);
struct val host_attribute(struct eval *e, struct val v, const char *name);
struct call;
struct val host_call(struct eval *e, struct val callee, const struct call *c);
/* The fields of the class of triton.Config(…). After the fields the tuple has an integer with one bit per field that
 * was given. */
enum {
	CONFIG_KWARGS,
	CONFIG_WARPS,
	CONFIG_STAGES,
	CONFIG_CTAS,
	CONFIG_MAXNREG,
	CONFIG_HOOK,
	CONFIG_FIELDS,
	CONFIG_GIVEN = CONFIG_FIELDS,
};
extern const struct class config_class;
#define ARGUMENT "argument " /* path prefix of a host value that is an argument of a kernel */
/* True if the value is known to be neither None nor false. */
bool host_is_something(const struct val *v);
/* A plain Python function as a value, or an unknown host value if the function does not parse. */
struct val host_function(struct eval *e, const struct module *m, const struct definition *d);
/* The result v of a call of f, whose frame this is. Errors of the call are dropped if the name of f tells the result:
 * is_hip, Version. `before`: the point in the messages before the call. */
struct val host_function_result(struct eval *e, const struct func *f, struct val v,
				struct diags_point before);
/* Evaluates a statement that only host code may contain. Returns the index of its last part in the body. */
u32 exec_host_stmt(struct eval *e, const struct body *body, u32 i, struct outcome *out);

/* expr.c: expressions */
struct val eval_expr(struct eval *e, const struct expr *x);
/* `v` as a condition: 1 true, 0 false, -1 known only at run time (*cond is then an i1), -2 error. */
int truth(struct eval *e, struct val v, struct loc at, struct value **cond);
struct val get_attribute(struct eval *e, struct val v, const char *name, struct loc at);
/* Reports an attribute that v does not have. */
struct val unknown_attribute(struct eval *e, const struct val *v, const char *name, struct loc at);
struct val get_item(struct eval *e, struct val v, struct val index, struct loc at);
/* The value for a key of a dict, or NULL. */
const struct val *dict_find(const struct val *dict, const struct val *key);
struct val bind_method(struct eval *e, struct val self, struct val callee);

/* frontend/python/sequences.c: compile-time tuples and lists */
bool sequence_items(struct eval *e, const struct val *v, struct val *tuple);
struct val slice_tuple(struct eval *e, struct val v, const struct expr *slice);
struct val eval_comprehension(struct eval *e, const struct expr *x);
/* Binds the target of a compile-time loop to v, without converting v. */
void bind_target(struct eval *e, const struct expr *target, struct val v);

/* frontend/python/mutation.c: changes of lists, dicts and objects */
/* Evaluates a method call such as name.append(…) where the variable holds a list or dict. False if x is not such a
 * call. */
bool change_list(struct eval *e, const struct expr *x, struct val *out);
/* Assignment to an item: name[index] = v. */
void assign_item(struct eval *e, const struct expr *target, struct val v);
/* True if `what` may change the state that the variable holds. Reports an error if a run-time branch or loop contains
 * the change but not the creation of the state. */
bool may_change(struct eval *e, const struct binding *b, const char *what, struct loc at);
/* The statement name += … or name *= …, where the variable holds a list. Python changes the list in place. */
void extend_list(struct eval *e, const struct stmt *s);
/* Starts a region; returns the enclosing region, for leave_region. */
u32 enter_region(struct eval *e);
void leave_region(struct eval *e, u32 outer);
/* The items of a tuple, or v itself. */
static inline const struct val *items_of(const struct val *v, u32 *n)
{
	*n = v->kind == V_TUPLE ? v->nitems : 1;
	return v->kind == V_TUPLE ? v->items : v;
}
/* v as a part of another value. */
static inline struct val part_of(struct val v)
{
	v.list = v.list ? LIST_SHARED : LIST_NOT;
	return v;
}
/* Prepares v for being stored: variables that hold the same list share it. False if v has too many parts. */
bool keep_value(struct eval *e, const struct val *v, struct loc at);
/* Each counts work at compile time as steps: n parts, the parts of v, len bytes of text. False if there are too
 * many. */
bool count_made(struct eval *e, u64 n, struct loc at);
bool count_parts(struct eval *e, const struct val *v, struct loc at);
bool count_text(struct eval *e, u64 len, struct loc at);

/* std_library.c */
#define LIBDEVICE_PREFIX "_libdevice_" /* prefix of functions that belong to libdevice and tl.math rather than to tl */
#define CUDA_PREFIX "_cuda_"           /* likewise, to tl.extra.cuda */
#define INDUCTOR_PREFIX "_inductor_"   /* likewise, to triton_helpers */
/* The function of the standard library with that name, or NULL. */
const struct func *library_function(struct eval *e, const char *name);
/* Collects the names of library functions with that prefix, without the prefix, at most max. Names that begin with '_'
 * are internal and left out. */
u32 library_names(struct eval *e, const char *prefix, const char **names, u32 max);
/* Calls `each` for all library functions in order, including internal ones. */
void library_each(struct arena *a, struct interner *names, struct diags *d,
		  void (*each)(void *arg, const struct func *f), void *arg);

/* objects.c */
bool is_block_pointer(const struct val *v); /* Triton represents a block pointer as a tl.tensor, like a pointer */
/* The index of the field of that name; -1 if there is none. */
int class_field(const struct class *c, const char *name);
/* The class shared by all named tuples with these fields. */
const struct class *tuple_class(struct eval *e, const char *const *fields, u32 n);
struct val object_attribute(struct eval *e, struct val v, const char *name); /* V_ERROR: no such attribute */

/* classes.c: types as values */
struct val type_of(struct eval *e, const struct val *v);
struct val type_attribute(struct eval *e, struct val v, const char *name); /* V_ERROR: no such attribute */

/* aggregates.c: classes defined in the source */
/* The class that d defines; V_ERROR after an error. */
struct val class_value(struct eval *e, const struct module *m, const struct definition *d);
/* The class made by namedtuple(name, "x y"), namedtuple(name, ["x", "y"]) or NamedTuple(name, [("x", type), …]).
 * V_ERROR if the arguments do not fit. */
struct val named_tuple_class(struct eval *e, const struct val *name, const struct val *fields);
/* An attribute of a class or of an object: a field, a method or a class value. */
struct val class_attribute(struct eval *e, struct val v, const char *name, struct loc at);
/* The method of that name, bound to the object v; V_ERROR without a message if there is none. */
struct val find_special(struct eval *e, struct val v, const char *name, struct loc at);
/* True if the class has a field or method of that name. */
bool class_has(const struct class *c, const char *name);
/* True if v is an object of the class or of a class that inherits from it. */
bool is_object_of(const struct val *v, const struct class *c);
/* Collects the names of the class's fields and methods, at most max. */
u32 class_names(const struct class *c, const char **names, u32 max);
/* The value of super().name in a method of a class. False if x has another form. *object is the variable whose fields
 * the call sets, or NULL. */
bool super_method(struct eval *e, const struct expr *x, struct val *out, const char **object);
/* The object or tuple that a call of the class creates. */
struct val make_object(struct eval *e, const struct class *c, const struct call *call);
/* The assignment object.name = v in the object's __init__. */
void assign_field(struct eval *e, const struct expr *target, struct val v);
/* Calls the method of a or b that implements the operator. False if there is none. */
bool object_operator(struct eval *e, enum operator op, struct val a, struct val b, struct loc at, struct val *out);

/* frontend/python/functions.c: Python's built-in functions */
struct named_val;
/* The least or the largest item, with the options key= and default=. */
struct val extreme_value(struct eval *e, const struct val *items, u32 n, const struct val *options, bool largest,
			 struct loc at);
/* Sorts the items of a sequence, with Python's arguments key= and reverse= if given. */
struct val sort_values(struct eval *e, const struct val *v, const struct named_val *named, u32 nnamed, struct loc at);

/* frontend/python/fstring.c */
struct val eval_fstring(struct eval *e, const struct expr *x);
/* Formats v by Python's format specification, as after the ':' of a field. False if it does not apply to v. */
bool format_val(struct eval *e, struct strbuf *out, const struct val *v, const char *spec, u32 len);

/* frontend/python/strings.c: methods of strings, lists and dicts that do not change them */
/* The method as a value; V_ERROR without a message if there is none. */
struct val python_method(struct eval *e, struct val v, const char *name);
/* Reports that n arguments were passed to a method that takes `least` to `most`. */
struct val wrong_count(struct eval *e, const char *method, u32 least, u32 most, u32 n, struct loc at);
/* Calls the method; path is "str.upper", "dict.get", … The first argument is the object. */
struct val call_python_method(struct eval *e, const char *path, const struct call *c);
/* The operation text % values. */
struct val format_percent(struct eval *e, const struct val *text, const struct val *values, struct loc at);

/* call.c: calls */
struct named_val {
	const char *name;
	struct val val;
	struct loc loc;
};
/* The arguments of a call as written. */
struct call {
	const struct val *pos;
	const struct loc *pos_loc; /* NULL: all at `at` */
	u32 npos;
	const struct named_val *named;
	u32 nnamed;
	struct loc at;
};
/* A parameter of a builtin or a function, or a field of a class. */
struct formal {
	const char *name;
	u32 len;
	bool star;    /* "*name" takes the remaining arguments, as a tuple */
	bool rest;    /* "**name" takes the remaining keywords, as a dict */
	bool spreads; /* a star parameter for which f((a, b)) is the same as f(a, b) */
	bool by_name; /* a keyword argument may set it */
};

/* For each parameter: its value, the location of its argument, and whether the call gives it. If not given, `at` has
 * kind 0. */
struct bound {
	struct val *at;
	struct loc *loc;
	bool *given;
};
/* Assigns the arguments to the n parameters. False after an error. Parameters without an argument have no value. */
bool bind_arguments(struct eval *e, const char *callee, const struct formal *f, u32 n, const struct call *c,
		    struct bound *b);
struct val missing_argument(struct eval *e, const char *callee, const char *name, struct loc at);
struct val call_value(struct eval *e, struct val callee, const struct call *c);
struct val eval_call(struct eval *e, const struct expr *x);
struct val call_func(struct eval *e, const struct func *f, const struct val *args, u32 nargs,
		     const struct named_val *named, u32 nnamed);
struct val call_std(struct eval *e, const char *name, const struct val *args, u32 nargs);
/* The arguments of a builtin's handler, bound to the parameters of its signature. */
struct args {
	const struct builtin *b;
	struct val *at;
	struct loc *loc;
	u32 n;
};
/* The value of a name in a namespace; V_ERROR without a message if there is none. */
struct val namespace_lookup(struct eval *e, enum namespace_ s, const char *name);

/* builtins.c */
struct builtin {
	const char *name;
	const char *signature; /* "pointer, mask=None, *shape": see parse_signature in call.c */
	struct val (*run)(struct eval *e, const struct args *a);
	int code;              /* distinguishes the builtins that share a handler */
	bool method;           /* also a method of tiles, x.name(…) */
	enum namespace_ namespace_;
};
const struct builtin *builtin_find(enum namespace_ s, const char *name, size_t len);
u32 builtin_names(enum namespace_ s, const char **out, u32 max);
void builtin_each(void (*each)(void *arg, const struct builtin *b), void *arg);

/* list_builtins.c: appends a line to e->calls, if that is set, for a call that is not internal to the library */
bool builtin_named(const char *name); /* name as kernels write it: "tl.load" */
void tell_builtin_call(struct eval *e, const struct builtin *b, const struct val *bound, const bool *given);
void tell_library_call(struct eval *e, const struct func *f, const struct val *bound, const bool *given);

/* promotion.c: operators on run-time values */
struct val to_tensor(struct eval *e, struct val v, struct loc at);
/* The number that a run-time scalar is known to equal, for places that need a compile-time number; otherwise v. */
struct val known_number(struct val v);
struct val known_numbers(struct eval *e, struct val v); /* also for the parts of a tuple */
struct val cast_to(struct eval *e, struct val v, enum dtype d, enum rounding r, struct loc at);
/* The type of elements d behind `pointers` levels of pointers. */
const struct type *type_with_pointers(struct eval *e, enum dtype d, int pointers);
struct val bitcast_to(struct eval *e, struct val v, struct val type, struct loc at);
struct val binary_op(struct eval *e, enum operator op, struct val a, struct val b, struct loc at);
struct val compare_op(struct eval *e, enum operator op, struct val a, struct val b, struct loc at);
/* A comparison as written, of constants or run-time values, including `is` and `in`. In expr.c. */
struct val binary_values(struct eval *e, enum operator op, struct val a, struct val b, struct loc at);
struct val compare_values(struct eval *e, enum operator op, struct val a, struct val b, struct loc at);
struct val unary_op(struct eval *e, enum operator op, struct val a, struct loc at);
struct val logical_op(struct eval *e, bool is_and, struct val a, struct val b, struct loc at);
/* The usual conversions of two operands: to one element type, then to one shape. Constants are weak: they take the type
 * of the other operand. */
enum promote_flags { PROMOTE_DIV = 1, PROMOTE_PTR = 2 };
bool promote(struct eval *e, struct val *a, struct val *b, int flags, struct loc at, const char *what);
/* Likewise for three operands, independent of their order: constants take the common type of the run-time operands. */
bool promote_three(struct eval *e, struct val *v, struct loc at, const char *what);
bool broadcast_pair(struct eval *e, struct val *a, struct val *b, struct loc at);
struct val broadcast_to(struct eval *e, struct val v, int rank, const i32 *shape, struct loc at);
struct val expand_dim(struct eval *e, struct val v, int axis);
/* A tuple of integers. */
struct val shape_tuple(struct eval *e, int rank, const i32 *shape);
enum dtype promote_int(enum dtype a, enum dtype b);
/* True if the number n is a value of type d. Every number fits a float type, which rounds, and int1. */
bool number_fits(const struct val *n, enum dtype d);
struct val const_tensor(struct eval *e, struct val number, enum dtype d);

/* describe.c: text that describes values, for messages */
const char *describe(struct eval *e, const struct val *v);
const char *describe_type(struct eval *e, const struct val *v); /* "fp32[128, 64]", "*fp16", "int" */
bool val_equal(const struct val *a, const struct val *b);
void print_val(struct strbuf *out, const struct val *v);
/* The source text at `at`, for an assertion without a message. */
const char *source_text(struct eval *e, struct loc at);

/* The location to report for `at`: the user's call if `at` is in the standard library. */
struct loc user_loc(const struct eval *e, struct loc at);
#define eval_error(e, id, at, ...) (                                                                                   \
	__extension__({ diag((e)->diags, id, user_loc((e), (at)), ##__VA_ARGS__); val_error(); }))

#endif
