/* Shared by the files of the interpreter.
 *
 * A value is a flat array of elements in row-major order, one element for a scalar; an element takes dtype_bytes, a
 * pointer 8. prepare.c decides once where values live: each has a slot, and env.at[slot] is its array, in the
 * memory of the thread or, for constants, in the program. An instruction is a function and the slots it works on. */
#ifndef TLC_INTERP_INTERP_INTERNAL_H
#define TLC_INTERP_INTERP_INTERNAL_H

#include <stdatomic.h>

#include "support/program_threads.h"
#include "support/recover.h"
#include "interp/interp.h"

/* Elements as memory holds them: a slot is reused for values of any type. */
#define MAY_ALIAS __attribute__((may_alias))
typedef u8 MAY_ALIAS mem8;
typedef u16 MAY_ALIAS mem16;
typedef u32 MAY_ALIAS mem32;
typedef u64 MAY_ALIAS mem64;
typedef float MAY_ALIAS memf32;
typedef double MAY_ALIAS memf64;

/* --- programs ------------------------------------------------------------------------------------------------ */

struct env;
struct inst;
typedef bool run_fn(struct env *e, const struct inst *i); /* false: the program failed or must stop */

struct inst {
	run_fn *run;
	enum opcode code;
	struct loc loc;
	u32 nin, nout;
	const u32 *in, *out;     /* slots; `in` has at least 3 */
	i64 n;                   /* elements of `type`; 0: as many as the region being run has lanes */
	const struct type *type; /* of the first result, or the first operand */
	i64 attr[IR_MAX_ATTRS];
	const char *text;
	const void *plan;        /* the operation's plan, made by its own file */
};

struct code {
	const struct inst *at;
	u32 n;
};

struct slot {
	size_t offset;      /* in the environment's memory */
	const void *data;   /* of a constant; else NULL */
};

struct interp_program {
	const struct diags *diags; /* for the text of sources */
	const struct type **param_types;
	u32 *params; /* slots */
	u32 nparams;
	struct slot *slots;
	u32 nslots;
	size_t memory_size;
	struct code body;
};

/* --- running ------------------------------------------------------------------------------------------------- */

#define NOT_FAILED (~0ull)

/* One interp_run, shared by its threads. */
struct run {
	const struct interp_program *program;
	const struct interp_launch *launch;
	_Atomic u64 failed; /* the lowest program that failed */
	pthread_mutex_t lock; /* of the error */
	struct strbuf *error;
	u32 error_start;
	struct first_fault first_fault; /* out of memory, or a bug, in one of the threads */
	struct program_threads gang;
};

/* One thread of it. */
struct env {
	struct run *run;
	char *memory;
	void **at;
	u64 program; /* linear number */
	u32 pid[3];
	i64 lanes;   /* of the region being run */
	/* Facts: it has divided by a number that is not positive, and no constant (analysis/launch_bounds.h). */
	bool any_divisor;
	const struct mem_range *range; /* where the last access hit; never NULL */
	struct program_threads_waiter waiter;
};

bool run_code(struct env *e, const struct code *c);

/* True after another program's failure. A loop that ends by itself stops only for a program of a lower number, so that
 * the lowest failure is found under every schedule; `waiting` loops, which may wait for the failed program, always
 * stop. */
static inline bool must_stop(const struct env *e, bool waiting)
{
	u64 failed = atomic_load_explicit(&e->run->failed, memory_order_relaxed);
	return failed < (waiting ? NOT_FAILED : e->program);
}

/* Records the failure of this program at `i`, and returns false. `element` is an index into a value of i->type, or
 * negative for none. */
bool fail(struct env *e, const struct inst *i, i64 element, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static inline i64 inst_lanes(const struct env *e, const struct inst *i)
{
	return i->n ? i->n : e->lanes;
}

/* Bytes of an element in memory. */
static inline u32 elem_bytes(const struct type *t)
{
	return (u32)dtype_bytes(type_dtype(t));
}

/* --- planning ------------------------------------------------------------------------------------------------ */

struct planner;
/* Memory that lives as long as the program. */
void *plan_alloc(struct planner *p, size_t size);
/* A temporary slot for the operation being planned, valid while it and its regions run. */
u32 plan_scratch(struct planner *p, size_t size);

/* The threads that would do the operation on a GPU, were it not shared out: a program's, or the one that combines two
 * elements. */
u32 plan_threads(const struct planner *p);

/* The number of the parameter that v is, or -1. */
i32 plan_param(const struct planner *p, const struct value *v);

/* A region that combines two elements, of reduce or scan. If all of it is elementwise it is run on many pairs at once
 * (`wide`), else on one at a time. */
struct region {
	struct code code;
	bool wide;
	const u32 *args;    /* slots: the first elements of all operands, then the second ones. To be set to arrays. */
	const u32 *results; /* slots to read */
};
void plan_region(struct planner *p, const struct block *b, i64 max_lanes, struct region *out);

/* The slot from which v is read. */
u32 plan_slot(struct planner *p, const struct value *v);
/* On floats of type d: in[0] + in[1]; in[0] · in[1] + in[2] with the product rounded. */
void plan_addition(struct planner *p, enum dtype d, struct inst *i);
void plan_multiply_add_apart(struct planner *p, enum dtype d, struct inst *i);
/* The instruction i that compares v's elements with `facts`: those about v; for a scalar, also the promise at its
 * definition; for addresses, the promises about them where the mask, if i reads one, is true. False when there is
 * nothing to compare. */
bool plan_facts(struct planner *p, const struct interp_checks *c, const struct value *v, struct inst *i);
bool plan_promise(struct planner *p, const struct value *v, struct inst *i);
bool plan_access_facts(struct planner *p, const struct interp_checks *c, const struct value *v, struct inst *i);
/* The instruction i that compares the operands of o, which it reads, with what is known of the operation. */
bool plan_operand_facts(struct planner *p, const struct interp_checks *c, const struct op *o, struct inst *i);

/* Each fills in i->run and i->plan for its operations. */
void plan_elementwise(struct planner *p, const struct op *o, struct inst *i);
void plan_memory(struct planner *p, const struct op *o, struct inst *i);
void plan_shape(struct planner *p, const struct op *o, struct inst *i);
void plan_map(struct planner *p, const struct op *o, struct inst *i);
void plan_gather(struct planner *p, const struct op *o, struct inst *i); /* and histograms */
void plan_reduce(struct planner *p, const struct op *o, struct inst *i);
void plan_dot(struct planner *p, const struct op *o, struct inst *i);
void plan_environment(struct planner *p, const struct op *o, struct inst *i);

/* Control flow, whose plans prepare.c makes. Moves happen at once: no source is overwritten before it is read. */
struct moves {
	u32 n;
	const struct move {
		u32 from, to;
		size_t bytes;
	} *at;
	bool staged; /* some source is also a destination: go through `staging` */
	u32 staging; /* slot */
};
struct for_plan {
	struct code body;
	struct moves enter, next; /* into the iteration values, at the start and after each iteration */
	u32 index;                /* slot */
	enum dtype type;          /* of the index */
};
struct if_plan {
	struct code branch[2];
	struct moves leave[2];
};
struct while_plan {
	struct code before, after;
	struct moves enter, decide, next; /* decide: into the results, which the body's arguments share */
	u32 condition;
	bool waits; /* perhaps, for other programs */
};
run_fn run_for, run_if, run_while, run_splat;

/* --- loops over elements ------------------------------------------------------------------------------------- */

/* d[i] = f(x[i], y[i], z[i]); d may be one of the others, if its elements have the same size. */
typedef void elem_loop(void *d, const void *x, const void *y, const void *z, i64 n);

/* The loop of an elementwise operation: on integers of type d, on floats (f32 or f64). NULL for other operations. */
elem_loop *find_int_loop(enum opcode code, enum dtype d, i64 attr);
elem_loop *find_float_loop(enum opcode code, enum dtype d, i64 attr);
/* Conversions between integers, f32 and f64. */
elem_loop *find_int_to_int(enum opcode code, enum dtype from, enum dtype to);
elem_loop *find_int_to_float(enum opcode code, enum dtype from, enum dtype to, bool round_to_odd);
elem_loop *find_float_to_int(enum opcode code, enum dtype from, enum dtype to);
/* From a float format smaller than f32 to f32; from f32 or f64 to any other float format; NULL for no change. */
elem_loop *find_decode(enum dtype d);
elem_loop *find_encode(enum dtype from, enum dtype to, bool toward_zero);

/* Copies a tile of `shape` from a source whose element [i0, i1, …] is at the sum of ik·stride[k]. */
void copy_strided(void *dst, const void *src, int rank, const i32 *shape, const i64 *stride, u32 bytes);
/* n copies of one element. */
void fill(void *dst, const void *elem, u32 bytes, i64 n);

#endif
