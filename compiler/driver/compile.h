/* The pipeline in one call: source → tile IR → placed IR → LLVM IR → PTX, or → LLVM IR → an object of the CPU. Used by
 * tlc and by libtl. */
#ifndef TLC_DRIVER_COMPILE_H
#define TLC_DRIVER_COMPILE_H

#include "support/target.h"
#include "frontend/frontend.h"

enum { DEFAULT_WARPS = 4, DEFAULT_STAGES = 3 };
/* A thread has 255 registers; maxnreg=256 is no limit, to ptxas and here. */
enum { MAX_REGISTERS = 255, MOST_MAXNREG = 256 };

struct compile_options {
	struct target target;
	int num_warps, num_stages; /* 0: the default */
	int group_pids;            /* remap a two-dimensional grid in groups of this many rows; 0: not */
	int maxnreg;               /* the most registers of a thread; 0: ptxas decides */
	/* no copies by TMA: they take distances of rows from 0 to 2^40 bytes only, and parameters of their own */
	bool no_tma;
	enum launch_bounds sizes; /* of a launch, which it is for: see analysis/launch_bounds.h */
	enum grid_kind grid; /* of launches: for GRID_MANY and GRID_ROWS a persistent kernel, if that is faster */
	enum aliasing alias;       /* of pointer parameters: where they may overlap, accesses keep their order */
	/* device_assert traps on the GPU too, and integers are checked for overflow */
	bool debug;
	bool remarks;
	bool no_advice;            /* when it needs too much shared memory, do not look for a configuration that fits */
	bool time;                 /* report time per pass through diags */
	const char *print_after, *stop_after; /* pass name, or "all"; NULL */
	/* the pass whose IR was read; NULL: for placed text the last one that changes it, else none ran */
	const char *start_after;
	FILE *print_to;
	/* Called with the evaluated IR ("eval") and the IR after each pass before placement; NULL: not called. */
	void (*after_pass)(void *arg, const char *pass, struct kernel *k);
	void *after_pass_arg;
	/* which texts to keep */
	bool want_ttir, want_ttgir, want_llir, want_code, want_asm;
	bool want_calls;     /* the unit's `calls` */
	bool want_schedules; /* the unit's `schedules` */
};

/* One source file, and the memory and results of its compilation. */
struct unit {
	struct arena arena;
	struct interner names;
	struct diags diags;
	struct ir_context ir;
	const struct module *module, *std;
	struct map imported;   /* path → struct module of another file */
	struct strbuf schedules; /* if wanted: of the loops that were pipelined, a table each */
	struct strbuf calls;   /* if wanted: a line for each call of a built-in function, with the arguments given */
	double parse_ms;       /* of the source, and of the library if it was the process's first */
	struct kernel *parsed; /* when the file was IR text, placed (parsed->target) or not */
};
/* For struct import_files: a module beside `from`, in the packages around it, or beside the unit's own file. */
const struct module *import_module(void *unit, const struct module *from, const char *dotted);
/* Parses `text` (kept by the caller until unit_free). `name` ending in ".ttir" means IR text. False after an error,
 * which is in u->diags. */
bool unit_open(struct unit *u, const char *name, const char *text, size_t len);
/* A unit of the same source with memory of its own, for one more compilation. `from` is only read, from several threads
 * at once, and must outlive the new unit. */
bool unit_again(struct unit *u, const struct unit *from);
void unit_free(struct unit *u);

struct compiled {
	struct kernel *kernel;   /* the IR after the last pass that ran */
	const char *ttir, *ttgir, *llir;
	const char *code; /* PTX, or an object of a CPU */
	size_t code_len;
	const char *assembly;      /* of a CPU */
	struct target target; /* of the code */
	i32 shared_bytes;
	u64 scratch_bytes; /* of a thread of a CPU */
	bool waits;        /* programs may wait for others: see op_may_wait */
	int num_warps; /* of a block */
	int cluster;   /* blocks a program runs on: the grid's first dimension is to be multiplied by it */
	void *for_load; /* what a device's compile hands to its load */
};

/* Evaluates `func` of u (or takes the parsed IR), and runs the passes that the wanted texts need. Where the proof of
 * its buffers fails, or these do not fit, they run again with less pipelining. The results live in u. False after an
 * error. */
bool compile(struct unit *u, const struct func *func, const struct arg_spec *args, const struct compile_options *o,
	     struct compiled *out);
/* A remark on the machine code's resources, as ptxas or the driver reports them: registers and bytes of local memory of
 * a thread, and blocks that a multiprocessor holds at once (0: not known). */
void remark_resources(struct unit *u, const struct compiled *c, int registers, i64 local_bytes, int resident);
/* The names of all passes and what they do, for --help. */
void compile_list_passes(FILE *out);
/* The compute capability that a placed kernel's text is for, as in sm_<N>; 0 for others. */
int target_of_text(const struct kernel *k);
/* Is `name` a pass, or one of the steps eval, lower and llvm? */
bool compile_has_step(const char *name);
/* What the decorators of `func` say; args may be NULL, if no launch is meant. */
void unit_tuning(struct unit *u, const struct func *func, const struct arg_spec *args, int capability,
		 enum decorators_of of, struct tuning *out);
/* Only the first step: the tile IR as it is before any pass, for the interpreter. */
struct kernel *compile_ir(struct unit *u, const struct func *func, const struct arg_spec *args,
			  const struct compile_options *o);

/* Of the kernel's integer arguments, by leaf, the largest divisors that can change its code: see analysis/divisors.h.
 * 1: of others. `at` has room for n. False after an error. */
bool unit_divisors(struct unit *u, const struct func *func, const struct arg_spec *args,
		   const struct compile_options *o, i16 *at, u32 n);

#endif
