/* The compiler as one call: source → tile IR → laid-out GPU IR → LLVM IR → PTX, or source → tile IR → LLVM IR → object
 * file of a CPU. tlc and libtl use it. */
#ifndef TLC_DRIVER_COMPILE_H
#define TLC_DRIVER_COMPILE_H

#include "support/target.h"
#include "frontend/frontend.h"
#include "gpu/estimate/estimate.h"

struct compile_options {
	struct target target;
	struct codegen_options codegen;
	bool remarks;
	/* if the kernel needs too much shared memory: neither compile it with less pipelining, nor search for a
	 * configuration that fits (suggest_config.c) */
	bool no_advice;
	bool time;                            /* print the time of each pass to print_to */
	const char *print_after, *stop_after; /* pass name, or "all"; or NULL */
	/* IR text as input: the pass after which it was written, so that passes up to it do not run. NULL: for TTGIR
	 * the last pass that changes it, otherwise no pass. */
	const char *start_after;
	FILE *print_to;
	/* Called with the evaluated IR ("eval") and with the IR after each tile pass. NULL: not called. */
	void (*after_pass)(void *arg, const char *pass, struct kernel *k);
	void *after_pass_arg;
	/* the texts to return */
	bool want_ttir, want_ttgir, want_llir, want_code, want_asm;
	bool want_calls;     /* fills in the unit's `calls` */
	bool want_metadata;  /* the JSON text for Triton's launcher (codegen.abi) */
	bool want_schedules; /* fills in the unit's `schedules` */
	/* For GPUs: fills in the estimate of this launch. NULL: none. */
	const struct launch_shape *launch;
};

/* A source text of a unit. The caller keeps the texts until unit_free. */
struct unit_source {
	const char *name; /* dotted, for imports; NULL: it is not imported */
	const char *file; /* for messages; a name ending in ".ttir" or ".ttgir" means IR text */
	u32 first_line;   /* number of the text's first line in `file` */
	u32 indent;       /* bytes that were removed from the start of each line */
	const char *text;
	size_t len;
};

/* A module in several source texts, or one source file, with the memory and results of its compilation. */
struct unit {
	struct arena arena;
	struct interner names;
	struct diags diags;
	struct ir_context ir;
	const struct module *module, *std;
	struct map imported;   /* path → struct module of another file */
	struct map given;      /* dotted name → struct module of a source text of the unit */
	struct map packages;   /* dotted name → struct module without a text, for a package that contains such a name */
	struct map given_names; /* struct module → its dotted name */
	struct strbuf schedules; /* on request: a schedule table for each pipelined loop */
	struct strbuf calls;     /* on request: a line for each call of a built-in function, with its arguments */
	double parse_ms;         /* time to parse the source */
	struct kernel *parsed;   /* IR text: TTGIR (parsed->target is set) or TTIR; else NULL */
};
/* For struct import_files: imports a source text of the unit, or else a file in the folder of `from`, in the packages
 * around it, or in the folder of the unit's own file (imports.c). */
const struct module *import_module(void *unit, const struct module *from, const char *dotted);
/* The same, for the source texts of the unit only. */
const struct module *import_given(void *unit, const struct module *from, const char *dotted);
static inline bool is_ir_text(const char *file)
{
	return ends_in(file, ".ttir") || ends_in(file, ".ttgir");
}
/* Parses the texts. The first one is the unit's module; the others are found by imports, and have different names.
 * False after an error, which is in u->diags. */
bool unit_open_sources(struct unit *u, const struct unit_source *sources, size_t n);
/* The same for a whole file. */
bool unit_open(struct unit *u, const char *name, const char *text, size_t len);
/* Initializes u as a unit of the same source as `from`, with separate memory, for a further compilation. `from` is only
 * read, so that several threads may do this at the same time; it must outlive u. */
bool unit_again(struct unit *u, const struct unit *from);
void unit_free(struct unit *u);

struct compiled {
	struct kernel *kernel;   /* the IR after the last pass that ran */
	const char *ttir, *ttgir, *llir;
	const char *metadata; /* of the launch by Triton's launcher */
	struct launch_estimate estimate;
	const char *code; /* PTX, or an object file of a CPU */
	size_t code_len;
	const char *assembly; /* assembly of a CPU */
	struct target target; /* target of the code */
	i32 shared_bytes;
	u64 scratch_bytes; /* scratch memory of a CPU thread */
	bool waits;        /* a program may wait for memory that another program changes: see op_may_wait */
	int num_warps;     /* warps of a block */
	int cluster;       /* blocks of a program; a launch multiplies the grid's first dimension by it */
	const char *no_maps; /* why Triton's launcher cannot pass the descriptors as tensor maps; NULL: it can */
	void *for_load;    /* passed from a device's compile function to its load function */
};

/* Evaluates `func` of u (or takes the parsed IR), and runs the passes that the requested texts need. If the
 * shared-memory model checker (pass prove-buffers) cannot prove that accesses to multi-buffers are synchronised, or the
 * kernel does not fit shared memory, the passes run again with less pipelining. The results live in u. False after an
 * error. */
bool compile(struct unit *u, const struct func *func, const struct arg_spec *args, const struct compile_options *o,
	     struct compiled *out);
/* Emits a remark on the resources of the machine code, as ptxas or the driver reports them: registers and bytes of
 * local memory of a thread, and resident blocks of a multiprocessor (0: unknown). */
void remark_resources(struct unit *u, const struct compiled *c, int registers, i64 local_bytes, int resident);
/* Prints the names and descriptions of all passes, for --help. */
void compile_list_passes(FILE *out);
/* The compute capability that a TTGIR kernel is for, as in sm_<N>; 0 for other kernels. */
int target_of_text(const struct kernel *k);
/* Whether `name` can be given to --print-after and similar options: a pass, or one of the steps eval, lower and
 * llvm. */
bool compile_has_step(const char *name);
/* Evaluates the decorators of `func`. args may be NULL if there is no launch. */
void unit_tuning(struct unit *u, const struct func *func, const struct arg_spec *args, int capability,
		 enum decorators_of of, struct tuning *out);
/* Only the first step: the tile IR before any pass, for the interpreter. */
struct kernel *compile_ir(struct unit *u, const struct func *func, const struct arg_spec *args,
			  const struct compile_options *o);

/* Sets at[i], for each of the kernel's n arguments (members of tuples count separately), to the largest divisor of an
 * integer argument that can change the kernel's code (analysis/divisors.h), or to DIVISOR_NONE. False after an
 * error. */
bool unit_divisors(struct unit *u, const struct func *func, const struct arg_spec *args,
		   const struct compile_options *o, i16 *at, u32 n);

#endif
