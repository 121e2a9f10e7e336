/* Interface between the files of the interpreter.
 *
 * A value is a flat array of elements in row-major order, with one element for a scalar. An element occupies
 * dtype_bytes, a pointer 8 bytes. prepare.c assigns each value a slot. env.at[slot] is its array, in the memory of the
 * thread or, for constants, in the program. An instruction is a function and the slots that it operates on. */
#ifndef TLC_INTERP_INTERP_INTERNAL_H
#define TLC_INTERP_INTERP_INTERNAL_H

#include <stdatomic.h>

#include "support/program_threads.h"
#include "support/recover.h"
#include "interp/interp.h"

/* Element types in memory. They may alias, since a slot is reused for values of any type. */
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
	const u32 *in, *out;     /* slots; `in` has at least 3 entries */
	i64 n;                   /* number of elements of `type`; 0: the number of lanes of the current region */
	const struct type *type; /* type of the first result, or of the first operand if there is no result */
	i64 attr[IR_MAX_ATTRS];
	const char *text;
	const void *plan;        /* data of the operation, built by its plan function */
};

struct code {
	const struct inst *at;
	u32 n;
};

struct slot {
	size_t offset;      /* offset in the memory of the environment */
	const void *data;   /* the data of a constant; else NULL */
};

struct interp_program {
	const struct diags *diags; /* provides the text of sources */
	const struct type **param_types;
	u32 *params; /* slots of the parameters */
	u32 nparams;
	struct slot *slots;
	u32 nslots;
	size_t memory_size;
	struct code body;
};

/* --- running ------------------------------------------------------------------------------------------------- */

#define NOT_FAILED (~0ull)

/* One call of interp_run, shared by its threads. */
struct run {
	const struct interp_program *program;
	const struct interp_launch *launch;
	_Atomic u64 failed; /* lowest number of a failed program */
	pthread_mutex_t lock; /* protects the error text */
	struct strbuf *error;
	u32 error_start;
	struct first_fault first_fault; /* out of memory, or an internal error, in one of the threads */
	struct program_threads gang;
};

/* The state of one thread of a run. */
struct env {
	struct run *run;
	char *memory;
	void **at;
	u64 program; /* linear program number */
	u32 pid[3];
	i64 lanes;   /* lanes of the current region */
	/* For facts: the program has divided by a value that is not positive and not a constant
	 * (analysis/launch_bounds.h). */
	bool any_divisor;
	const struct mem_range *range; /* the range of the last access; never NULL */
	struct program_threads_waiter waiter;
};

bool run_code(struct env *e, const struct code *c);

/* True after another program's failure. A loop that always terminates stops only for a program with a lower number, so
 * that the lowest failure is found under every schedule. `waiting` loops, which may wait for the failed program, always
 * stop. */
static inline bool must_stop(const struct env *e, bool waiting)
{
	u64 failed = atomic_load_explicit(&e->run->failed, memory_order_relaxed);
	return failed < (waiting ? NOT_FAILED : e->program);
}

/* Records the failure of this program at instruction `i`, and returns false. `element` is an index into a value of
 * i->type, or negative if there is no element. */
bool fail(struct env *e, const struct inst *i, i64 element, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static inline i64 inst_lanes(const struct env *e, const struct inst *i)
{
	return i->n ? i->n : e->lanes;
}

/* The size of an element in memory, in bytes. */
static inline u32 elem_bytes(const struct type *t)
{
	return (u32)dtype_bytes(type_dtype(t));
}

/* --- planning ------------------------------------------------------------------------------------------------ */

struct planner;
/* Allocates memory with the lifetime of the interp_program. */
void *plan_alloc(struct planner *p, size_t size);
/* A temporary slot for the operation under planning, valid while the operation and its regions run. */
u32 plan_scratch(struct planner *p, size_t size);

/* The number of GPU threads that would each execute the operation: the threads of a program, or, inside a combine
 * region, the one thread that combines two elements. */
u32 plan_threads(const struct planner *p);

/* The index of the parameter that v is, or -1. */
i32 plan_param(const struct planner *p, const struct value *v);

/* A region of a reduction or scan that combines two elements. If all its operations are elementwise, it runs on many
 * pairs at once (`wide`), otherwise on one pair at a time. */
struct region {
	struct code code;
	bool wide;
	/* slots of the first elements of all operands, then of the second ones; to be pointed at arrays */
	const u32 *args;
	const u32 *results; /* slots of the results */
};
void plan_region(struct planner *p, const struct block *b, i64 max_lanes, struct region *out);

/* The slot that holds v. */
u32 plan_slot(struct planner *p, const struct value *v);
/* Instructions on floats of type d: in[0] + in[1]; in[0] · in[1] + in[2] with a rounded product. */
void plan_addition(struct planner *p, enum dtype d, struct inst *i);
void plan_multiply_add_apart(struct planner *p, enum dtype d, struct inst *i);
/* Plan the instruction i that compares v's elements with facts: the facts about v; for a scalar also the hint at its
 * definition; for addresses the hints about them, where the mask, if i reads one, is true. False if there is nothing to
 * compare. */
bool plan_facts(struct planner *p, const struct interp_checks *c, const struct value *v, struct inst *i);
bool plan_promise(struct planner *p, const struct value *v, struct inst *i);
bool plan_access_facts(struct planner *p, const struct interp_checks *c, const struct value *v, struct inst *i);
/* Plans the instruction i that compares the operands of o with the facts about the operation. */
bool plan_operand_facts(struct planner *p, const struct interp_checks *c, const struct op *o, struct inst *i);

/* Each sets i->run and i->plan for the operations of its file. */
void plan_elementwise(struct planner *p, const struct op *o, struct inst *i);
void plan_memory(struct planner *p, const struct op *o, struct inst *i);
void plan_shape(struct planner *p, const struct op *o, struct inst *i);
void plan_map(struct planner *p, const struct op *o, struct inst *i);
void plan_gather(struct planner *p, const struct op *o, struct inst *i); /* gathers and histograms */
void plan_reduce(struct planner *p, const struct op *o, struct inst *i);
void plan_dot(struct planner *p, const struct op *o, struct inst *i);
void plan_environment(struct planner *p, const struct op *o, struct inst *i);

/* Control flow, planned by prepare.c. Moves are parallel: no source is overwritten before it is read. */
struct moves {
	u32 n;
	const struct move {
		u32 from, to;
		size_t bytes;
	} *at;
	bool staged; /* a source is also a destination, so the moves go through `staging` */
	u32 staging; /* temporary slot */
};
struct for_plan {
	struct code body;
	struct moves enter, next; /* into the iteration values: before the first and after each iteration */
	u32 index;                /* slot of the index */
	enum dtype type;          /* type of the index */
};
struct if_plan {
	struct code branch[2];
	struct moves leave[2];
};
struct while_plan {
	struct code before, after;
	/* decide: into the results, which share slots with the arguments of the body */
	struct moves enter, decide, next;
	u32 condition;
	bool waits; /* the loop may wait for other programs */
};
run_fn run_for, run_if, run_while, run_splat;

/* --- loops over elements ------------------------------------------------------------------------------------- */

/* d[i] = f(x[i], y[i], z[i]). d may equal another pointer if the elements have the same size. */
typedef void elem_loop(void *d, const void *x, const void *y, const void *z, i64 n);

/* The loop of an elementwise operation on integers of type d, or on floats (f32 or f64). NULL for other operations. */
elem_loop *find_int_loop(enum opcode code, enum dtype d, i64 attr);
elem_loop *find_float_loop(enum opcode code, enum dtype d, i64 attr);
/* Conversion loops between integers, f32 and f64. */
elem_loop *find_int_to_int(enum opcode code, enum dtype from, enum dtype to);
elem_loop *find_int_to_float(enum opcode code, enum dtype from, enum dtype to, bool round_to_odd);
elem_loop *find_float_to_int(enum opcode code, enum dtype from, enum dtype to);
/* Conversion loops from a float format smaller than f32 to f32, and from f32 or f64 to any other float format. NULL if
 * no conversion is needed. */
elem_loop *find_decode(enum dtype d);
elem_loop *find_encode(enum dtype from, enum dtype to, bool toward_zero);

/* Copies a tile of `shape` from a source in which element [i0, i1, …] is at the sum of ik·stride[k]. */
void copy_strided(void *dst, const void *src, int rank, const i32 *shape, const i64 *stride, u32 bytes);
/* Stores n copies of one element. */
void fill(void *dst, const void *elem, u32 bytes, i64 n);

#endif
