/* Inside the evaluator: values, frames and the functions its files share. */
#ifndef TLC_FRONTEND_FRONTEND_INTERNAL_H
#define TLC_FRONTEND_FRONTEND_INTERNAL_H

#include "frontend/frontend.h"

enum {
	MAX_CALL_DEPTH = 60,
	MAX_NESTING = 1500,       /* of expressions being evaluated, over all calls: bounds the C stack */
	MAX_BRANCHES = 200,       /* of run-time branches and loops inside each other, likewise */
	MAX_OPS = 1 << 20,        /* operations in one kernel: stops runaway unrolling */
	MAX_STEPS = 20 * 1000000, /* statements and expressions evaluated, and parts of values made */
	MAX_PARTS = 1 << 20,      /* of a tuple, list or dict, nested ones counted, and bytes of a text */
	MAX_REPEATED_ERRORS = 1000, /* shown or not: a loop that repeats one may not end */
};

/* --- values -------------------------------------------------------------------------------------------------- */

enum val_kind {
	V_ERROR,  /* after an error: operations on it give V_ERROR without a message */
	V_UNSET,  /* no single value: reason says why */
	V_NONE,
	V_BOOL,
	V_INT,
	V_FLOAT,
	V_STR,
	V_TYPE,      /* a dtype, pointer type or tile type */
	V_CONSTEXPR_TYPE, /* self: the type of that compile-time value */
	V_TUPLE_TYPE,     /* items: their types */
	V_TUPLE,     /* lists and sets too */
	V_DICT,      /* items: each key followed by its value */
	V_OBJECT,    /* items: the fields of its class */
	V_SLICE,     /* ':' */
	V_ELLIPSIS,
	V_TENSOR,    /* a run-time scalar or tile: SSA */
	V_FUNC,      /* a jit function */
	V_BUILTIN,
	V_METHOD,    /* builtin or function bound to its first argument */
	V_NAMESPACE,     /* a namespace */
	V_MODULE,    /* another file */
	V_HOST,      /* text: the dotted path of host Python that is not evaluated; in host code only */
	V_CLASS,     /* class */
	V_CONSTEXPR, /* tl.constexpr itself */
	V_RANGE,     /* range(…), tl.range(…), tl.static_range(…) */
	V_CONTEXT,   /* what `with` takes: nothing happens before and behind its statements */
};

/* Lists and dicts change while the kernel is compiled; see frontend/python/mutation.c. */
enum list_kind {
	LIST_NOT,    /* a tuple */
	LIST_OWNED,  /* a list or dict that nothing but one variable holds, which can change */
	LIST_SHARED, /* … that something else may hold, too */
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

/* Of objects and of named tuples. */
struct class {
	const char *name;
	const char *const *fields;
	u32 nfields;
	/* of the source; else NULL */
	const struct class_def *def;
	const struct field **declared; /* each field; NULL: all without default and type */
	const struct class *base;      /* that it inherits from, or NULL */
	bool makes_tuples;
};

struct builtin;
struct loop_range;

struct val {
	enum val_kind kind : 8;
	enum dtype dtype : 8; /* V_TENSOR, V_TYPE: element type as the language sees it (with signedness) */
	u8 pointers;          /* V_TENSOR, V_TYPE: levels of pointer above dtype */
	bool is_const;        /* V_TENSOR, V_TYPE: pointers that are not stored through */
	bool to_block;        /* V_TYPE: a pointer to a block of that shape, not a tile of pointers */
	enum list_kind list : 8; /* V_TUPLE, V_DICT */
	u8 log_room;          /* … of a function that runs at compile time: 0, or log2 of the items it has room for */
	const struct class *class; /* V_OBJECT, V_CLASS; V_TUPLE: of a named one; else NULL */
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
	const struct val *items; /* of a loop over a tuple; start to end are its indices. Else NULL */
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
/* Is it made of items, which may be run-time values? */
static inline bool val_has_parts(const struct val *v) { return v->kind == V_TUPLE || v->kind == V_OBJECT; }
static inline bool val_is_number(const struct val *v)
{
	return v->kind == V_BOOL || v->kind == V_INT || v->kind == V_FLOAT;
}
static inline bool is_tile(const struct val *v) { return v->kind == V_TENSOR && type_is_tensor(v->ssa->type); }

/* --- evaluation state ---------------------------------------------------------------------------------------- */

struct binding {
	const char *name;
	struct val val;
	bool constant; /* declared `x: tl.constexpr` */
	bool declared; /* … without a value, which the next assignment gives */
	u32 region;    /* where the value was assigned: see struct eval */
};
typedef VEC(struct binding) scope;

struct loop; /* see control_flow.h */

struct frame {
	struct frame *caller;
	struct loc call; /* the call's location */
	const struct func *func;
	scope vars;
	const struct loop *loop; /* around the current statement, in this function; NULL: none */
	struct loc margin; /* of the statement of a module that is evaluated; line 0: a function is */
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
	bool debug;    /* integers are checked for overflow */
	bool lines;    /* statements, variables and calls are marked for debuggers */
	int num_warps;
	bool stopped; /* gave up: too large */
	VEC(const struct definition *) resolving; /* globals being evaluated, to catch cycles */
	struct map globals; /* struct definition → its value, a struct val */
	struct map branches_run; /* struct branch → see branch_runs */
	struct import_files imports;
	VEC(const struct class *) tuple_classes;
	struct map library; /* text of a part of the standard library → its struct module */
	u32 host; /* of host code being evaluated: how deep */
	u32 raised; /* errors so far that are exceptions of the host code itself, which its `try` catches */
	int capability; /* compute capability of the target, 90 of sm_90a; 0: not known */
	struct map host_functions; /* struct definition → its struct func */
	const char *attribute; /* the attribute of the name that is being evaluated, or NULL */
	struct strbuf *calls; /* where calls of built-in functions are told; NULL: they are not */
	u32 branches; /* run-time branches and loops around the current statement, over all calls */
	/* The code that is evaluated, of which each part runs if the others do: the side of a run-time branch, the body
	 * of a run-time loop. Regions are numbered as they begin. */
	u32 region, regions;
	struct map used_behind; /* see index_is_used_behind */
	struct map fstrings; /* the text of a field of an f-string → its struct expr */
};

/* Where control goes from a statement. */
enum flow {
	FLOW_NEXT,     /* to the next one */
	FLOW_CONTINUE, /* to the loop's next iteration */
	FLOW_BREAK, FLOW_BREAK_OUTER, /* out of the loop: see struct loop */
	FLOW_RETURN,   /* out of the function */
	FLOWS,
};

/* How statements have ended: in one way, or in several, of which one is taken at run time. */
struct outcome {
	u32 ways;                   /* a bit for each flow */
	bool rest_done;             /* what follows them has been evaluated too, up to the end of the run-time branch */
	struct value *taken[FLOWS]; /* an i1 for each way of several: is it this one? */
	scope vars[FLOWS];          /* the variables then; if FLOW_NEXT is the only way, those of the frame */
	struct val ret;             /* by FLOW_RETURN */
};
struct cont; /* what runs behind a statement: see control_flow.h */

/* params.c: the parameters' values, and the parameters of the IR function */
void bind_params(struct eval *e, const struct eval_request *req);
struct eval eval_new(struct ir_context *ctx, const struct eval_request *req);

/* frontend.c: statements */
struct outcome exec_body(struct eval *e, const struct body *body, u32 from, const struct cont *outer);
/* The body of a function: returns what it does. */
struct val exec_function(struct eval *e, const struct body *body);
struct binding *find_var(struct frame *f, const char *name);
/* Evaluates x in the scope of f's module, without f's variables. */
struct val eval_in_module(struct eval *e, const struct func *f, const struct expr *x);
/* The value of a parameter given as text, as by -D. */
struct val constant_argument(struct eval *e, const char *name, const char *literal);
/* Does the annotation x, written as a name or as text, say tl.constexpr? */
bool is_constexpr_annotation(const struct expr *x);
void set_var(struct eval *e, const char *name, struct val v);
/* The value of an assignment from the place `at`: numbers become run-time values, as in Triton, except in variables
 * that were declared `x: tl.constexpr`. */
void assign(struct eval *e, const struct expr *target, struct val v, struct loc at);
/* The error for a construct of Python that kernels cannot use, with what to write instead. */
struct val unsupported_syntax(struct eval *e, const char *what, struct loc at);
/* Counts one step of the evaluation; false once it is given up, as too large or after too many errors. */
bool step(struct eval *e, struct loc at);

/* control_flow.c: how statements end, run-time branches */
struct outcome exec_if(struct eval *e, const struct stmt *s, u32 arm, const struct cont *rest);
/* break, continue, return */
struct outcome exec_jump(struct eval *e, const struct stmt *s);
/* used: its value is. */
struct val eval_ternary(struct eval *e, const struct expr *x, bool used);

/* loops.c */
struct outcome exec_for(struct eval *e, const struct stmt *s, const struct cont *rest);
struct outcome exec_while(struct eval *e, const struct stmt *s);

/* frontend/python/advice.c: each adds a hint to the last message, if it has one */
bool advise_name(struct eval *e, const char *name);   /* that is not defined */
bool advise_member(struct eval *e, const char *name); /* of a tile, or of triton.language, which has none */
bool advise_host(struct eval *e, const char *module, const char *name);
/* Of a value that cannot be used as it is: a function that is not called, a Python type, a fraction as a length. */
void advise_value(struct eval *e, const struct val *v);
bool advise_call(struct eval *e, const char *function); /* for which an argument is missing */
/* Has Triton a function of that name that is missing here? */
bool triton_has(const char *name);
/* A note to the last message, which is about `at`: where the tile or number v was computed, if on another line. */
void note_origin(struct eval *e, const struct val *v, struct loc at);

/* debug_info.c: operations for debuggers, where the kernel is compiled for them. Nothing is marked in the standard
 * library, in host code and in functions that run on elements. */
void mark_line(struct eval *e, struct loc at);
void mark_value(struct eval *e, const char *name, const struct val *v);
/* The variables of the frame that are not what they were in `before` (NULL: all). */
void mark_variables(struct eval *e, const scope *before);
void mark_call(struct eval *e);   /* of the frame's function, whose parameters are bound */
void mark_return(struct eval *e);

/* unused_values.c */
/* v is what the statement x has given, for which the operations behind `before` (NULL: of the block) were made. */
/* A name, or attributes of one: evaluated again, it makes no operations. */
bool is_name_path(const struct expr *x);
void warn_of_unused(struct eval *e, const struct expr *x, const struct val *v, const struct op *before);
/* The expression after the '@'; NULL: it is no call. */
const struct expr *decorator_call(struct eval *e, const struct module *m, const struct decorator *d);
/* x is an evaluated call that is a statement: refuses it where the function has @triton.must_use_result. */
void check_must_use(struct eval *e, const struct expr *x);
/* Refuses tl.constexpr parameters of the kernel f in the lists do_not_specialize… of @triton.jit. */
void check_unspecialized(struct eval *e, const struct func *f);

/* frontend/python/names.c */
struct val eval_name(struct eval *e, const char *name, struct loc at);
/* What host code of m gives the name; an error's value, if it is not known. False: nothing does. */
bool module_name(struct eval *e, const struct module *m, const char *name, struct loc at, struct val *out);
struct val module_attribute(struct eval *e, struct val v, const char *name, struct loc at);
/* False when nothing is known of it: *out is then host Python. */
bool import_value(struct eval *e, const struct module *m, const char *target, bool whole, struct loc at,
		  struct val *out);
/* Would Python find it? A name of triton.language is there if it is here; of host libraries the usual ones are. */
bool is_importable(struct eval *e, const struct module *m, const struct tried *t);

/* frontend/python/host_values.c: host Python whose value is known */
struct val host_val(const char *path);
struct val host_attribute(struct eval *e, struct val v, const char *name);
struct named_val;
struct val host_call(struct eval *e, struct val callee, const struct val *args, u32 n, const struct named_val *named,
		     u32 nnamed, struct loc at);
/* The class of triton.Config(…). Behind the fields stands an integer with a bit for each one that was given. */
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
#define ARGUMENT "argument " /* of a kernel: a host value's path */
/* Is it known that the value is neither None nor false? */
bool host_is_something(const struct val *v);
/* A plain Python function as a value; what is not known of it, where it does not parse. */
struct val host_function(struct eval *e, const struct module *m, const struct definition *d);
/* The error of a call of f, whose frame this is, is forgotten where f's name says what it asks for: is_hip, Version. */
struct val host_function_result(struct eval *e, const struct func *f, struct val v, u32 text, u32 errors);
/* A statement that only host code may have; returns the index of the last one that belongs to it. */
u32 exec_host_stmt(struct eval *e, const struct body *body, u32 i, struct outcome *out);

/* expr.c: expressions */
struct val eval_expr(struct eval *e, const struct expr *x);
/* `v` as a condition: 1 true, 0 false, -1 known only at run time (*cond is then the i1), -2 error. */
int truth(struct eval *e, struct val v, struct loc at, struct value **cond);
struct val get_attribute(struct eval *e, struct val v, const char *name, struct loc at);
/* The error for an attribute that v does not have. */
struct val unknown_attribute(struct eval *e, const struct val *v, const char *name, struct loc at);
struct val get_item(struct eval *e, struct val v, struct val index, struct loc at);
/* The value of a dict's key, or NULL. */
const struct val *dict_find(const struct val *dict, const struct val *key);
struct val bind_method(struct eval *e, struct val self, struct val callee);

/* frontend/python/sequences.c: tuples and lists at compile time */
bool sequence_items(struct eval *e, const struct val *v, struct val *tuple);
struct val slice_tuple(struct eval *e, struct val v, const struct expr *slice);
struct val eval_comprehension(struct eval *e, const struct expr *x);
/* Gives the target of a loop at compile time the value v, which stays as it is. */
void bind_target(struct eval *e, const struct expr *target, struct val v);

/* frontend/python/mutation.c: lists, dicts and objects that change */
/* A method such as name.append(…), where the variable holds a list or a dict. False: x is no such call. */
bool change_list(struct eval *e, const struct expr *x, struct val *out);
/* name[index] = v */
void assign_item(struct eval *e, const struct expr *target, struct val v);
/* May `what` change the state that the variable holds? An error where a run-time branch or loop is around the change
 * and not around the state. */
bool may_change(struct eval *e, const struct binding *b, const char *what, struct loc at);
/* The statement name += … or name *= …, where the variable holds a list: Python changes the list. */
void extend_list(struct eval *e, const struct stmt *s);
/* What runs now is the beginning of a region; returns the region around it, for leave_region. */
u32 enter_region(struct eval *e);
void leave_region(struct eval *e, u32 outer);
/* v, which is part of something else. */
static inline struct val part_of(struct val v)
{
	v.list = v.list ? LIST_SHARED : LIST_NOT;
	return v;
}
/* v will be stored: variables that hold the same list share it. False where v has too many parts. */
bool keep_value(struct eval *e, const struct val *v, struct loc at);
/* Each counts what is made or looked through while compiling, as steps: n parts, the parts of v, len bytes of text.
 * False: too many. */
bool count_made(struct eval *e, u64 n, struct loc at);
bool count_parts(struct eval *e, const struct val *v, struct loc at);
bool count_text(struct eval *e, u64 len, struct loc at);

/* std_library.c */
#define LIBDEVICE_PREFIX "_libdevice_" /* of functions that belong to libdevice and tl.math, not to tl */
#define CUDA_PREFIX "_cuda_"           /* to tl.extra.cuda */
#define INDUCTOR_PREFIX "_inductor_"   /* to triton_helpers */
/* The function of the standard library with that name, or NULL. */
const struct func *library_function(struct eval *e, const char *name);
/* The names of its functions behind that prefix, at most max; without those that begin with '_', which are its own. */
u32 library_names(struct eval *e, const char *prefix, const char **names, u32 max);
/* All its functions, in order, those of its own too. */
void library_each(struct arena *a, struct interner *names, struct diags *d,
		  void (*each)(void *arg, const struct func *f), void *arg);

/* objects.c */
bool is_block_pointer(const struct val *v); /* to Triton that is a tl.tensor, as a pointer is */
/* The field of that name; -1: there is none. */
int class_field(const struct class *c, const char *name);
/* The class of all named tuples with these fields. */
const struct class *tuple_class(struct eval *e, const char *const *fields, u32 n);
struct val object_attribute(struct eval *e, struct val v, const char *name); /* V_ERROR: there is none */

/* classes.c: types as values */
struct val type_of(struct eval *e, const struct val *v);
struct val type_attribute(struct eval *e, struct val v, const char *name); /* V_ERROR: there is none */

struct call;
/* aggregates.c: classes of the source */
/* The class that d defines; V_ERROR after an error. */
struct val class_value(struct eval *e, const struct module *m, const struct definition *d);
/* namedtuple(name, "x y"), namedtuple(name, ["x", "y"]), NamedTuple(name, [("x", type), …]); V_ERROR: it is none. */
struct val named_tuple_class(struct eval *e, const struct val *name, const struct val *fields);
/* An attribute of a class or of an object of it: a field, a method, a value. */
struct val class_attribute(struct eval *e, struct val v, const char *name, struct loc at);
/* The method of that name, for the object v; V_ERROR without a message: there is none. */
struct val find_special(struct eval *e, struct val v, const char *name, struct loc at);
/* Has it a field or method of that name? */
bool class_has(const struct class *c, const char *name);
/* Is v an object of the class, or of one that inherits from it? */
bool is_object_of(const struct val *v, const struct class *c);
/* The names of its fields and methods, at most max. */
u32 class_names(const struct class *c, const char **names, u32 max);
/* What super().name in a method of a class means; false: x is none. *object is NULL, or the variable that holds the
 * object which the call sets the fields of. */
bool super_method(struct eval *e, const struct expr *x, struct val *out, const char **object);
/* The object or tuple that a call of the class makes. */
struct val make_object(struct eval *e, const struct class *c, const struct call *call);
/* object.name = v in the object's __init__. */
void assign_field(struct eval *e, const struct expr *target, struct val v);
/* A method of a's or b's for the operator, called; false: there is none. */
bool object_operator(struct eval *e, enum operator op, struct val a, struct val b, struct loc at, struct val *out);

/* frontend/python/functions.c: functions of Python's own */
struct named_val;
/* The items of a sequence in order, by Python's key= and reverse= if they are given. */
/* The least or the largest item, by what options say: key=, default=. */
struct val extreme_value(struct eval *e, const struct val *items, u32 n, const struct val *options, bool largest,
			 struct loc at);
struct val sort_values(struct eval *e, const struct val *v, const struct named_val *named, u32 nnamed, struct loc at);

/* frontend/python/fstring.c */
struct val eval_fstring(struct eval *e, const struct expr *x);
/* v by Python's format specification, as behind the ':' of a field. False: it does not apply to v. */
bool format_val(struct eval *e, struct strbuf *out, const struct val *v, const char *spec, u32 len);

/* frontend/python/strings.c: methods of texts, lists and dicts that change nothing */
/* The method as a value; V_ERROR without a message: there is none. */
struct val python_method(struct eval *e, struct val v, const char *name);
/* Its call; path is "str.upper", "dict.get", … */
/* An error for n arguments of a method that takes `least` to `most`. */
struct val wrong_count(struct eval *e, const char *method, u32 least, u32 most, u32 n, struct loc at);
struct val call_python_method(struct eval *e, const char *path, const struct val *args, u32 n,
			      const struct named_val *named, u32 nnamed, struct loc at);
/* text % values */
struct val format_percent(struct eval *e, const struct val *text, const struct val *values, struct loc at);

/* call.c: calls */
struct named_val {
	const char *name;
	struct val val;
	struct loc loc;
};
/* What stands in the parentheses of a call. */
struct call {
	const struct val *pos;
	const struct loc *pos_loc;
	u32 npos;
	const struct named_val *named;
	u32 nnamed;
	struct loc at;
};
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
/* A name of a namespace; V_ERROR without a message when there is none. */
struct val namespace_lookup(struct eval *e, enum namespace_ s, const char *name);

/* builtins.c */
struct builtin {
	const char *name;
	const char *signature; /* "pointer, mask=None, *shape": see parse_signature in call.c */
	struct val (*run)(struct eval *e, const struct args *a);
	int code;              /* for handlers that serve several builtins */
	bool method;           /* also x.name(…) on tiles */
	enum namespace_ namespace_;
};
const struct builtin *builtin_find(enum namespace_ s, const char *name, size_t len);
u32 builtin_names(enum namespace_ s, const char **out, u32 max);
void builtin_each(void (*each)(void *arg, const struct builtin *b), void *arg);

/* list_builtins.c: a line of e->calls, if they are wanted, for a call that is not the library's own */
bool builtin_named(const char *name); /* as kernels write it: "tl.load" */
void tell_builtin_call(struct eval *e, const struct builtin *b, const struct val *bound, const bool *given);
void tell_library_call(struct eval *e, const struct func *f, const struct val *bound, const bool *given);

/* promotion.c: what operators mean on run-time values */
struct val to_tensor(struct eval *e, struct val v, struct loc at);
/* The number that a run-time scalar is known to be, for places that need a compile-time number; else v. */
struct val known_number(struct val v);
struct val known_numbers(struct eval *e, struct val v); /* of a tuple's parts, too */
struct val cast_to(struct eval *e, struct val v, enum dtype d, enum rounding r, struct loc at);
struct val bitcast_to(struct eval *e, struct val v, struct val type, struct loc at);
struct val binary_op(struct eval *e, enum operator op, struct val a, struct val b, struct loc at);
struct val compare_op(struct eval *e, enum operator op, struct val a, struct val b, struct loc at);
/* A comparison as written: constants, `is`, `in`, run-time values. In expr.c. */
struct val binary_values(struct eval *e, enum operator op, struct val a, struct val b, struct loc at);
struct val compare_values(struct eval *e, enum operator op, struct val a, struct val b, struct loc at);
struct val unary_op(struct eval *e, enum operator op, struct val a, struct loc at);
struct val logical_op(struct eval *e, bool is_and, struct val a, struct val b, struct loc at);
/* The usual conversions: both to one element type, then to one shape. Constants are weak: they take the other's
 * type. */
enum promote_flags { PROMOTE_DIV = 1, PROMOTE_PTR = 2 };
bool promote(struct eval *e, struct val *a, struct val *b, int flags, struct loc at, const char *what);
/* The same for three operands, whatever their order: constants take the common type of the run-time operands. */
bool promote_three(struct eval *e, struct val *v, struct loc at, const char *what);
bool broadcast_pair(struct eval *e, struct val *a, struct val *b, struct loc at);
struct val broadcast_to(struct eval *e, struct val v, int rank, const i32 *shape, struct loc at);
struct val expand_dim(struct eval *e, struct val v, int axis);
enum dtype promote_int(enum dtype a, enum dtype b);
/* Is the number n a value of type d? Every one is for a float type, which rounds, and for int1. */
bool number_fits(const struct val *n, enum dtype d);
struct val const_tensor(struct eval *e, struct val number, enum dtype d);

/* describe.c: values in words, for messages */
const char *describe(struct eval *e, const struct val *v);
const char *describe_type(struct eval *e, const struct val *v); /* "fp32[128, 64]", "*fp16", "int" */
bool val_equal(const struct val *a, const struct val *b);
void print_val(struct strbuf *out, const struct val *v);
/* The source text at `at`, for an assertion without a message. */
const char *source_text(struct eval *e, struct loc at);

/* The location to report for `at`: for code of the standard library, the user's call of it. */
struct loc user_loc(const struct eval *e, struct loc at);
#define eval_error(e, id, at, ...) (                                                                                   \
	__extension__({ diag((e)->diags, id, user_loc((e), (at)), ##__VA_ARGS__); val_error(); }))

#endif
