/* Options that determine a kernel's code, in addition to its source, arguments and target. */
#ifndef TLC_IR_CODEGEN_OPTIONS_H
#define TLC_IR_CODEGEN_OPTIONS_H

#include "support/arena.h"

/* Guarantee of a launch about the memory of its pointer parameters. */
enum aliasing {
	ALIAS_NONE,  /* no parameter that the kernel writes through overlaps another parameter */
	ALIAS_EQUAL, /* such parameters may also be equal to another parameter */
	ALIAS_ANY,   /* no guarantee: parameters may overlap */
};

/* The launcher that the code is for. */
enum abi {
	ABI_LIBTL,
	/* Triton's launcher: parameters as in ir/launch_abi.h. It checks no condition of a launch, so that the code
	 * assumes none: see codegen_options_foreign. */
	ABI_TRITON,
};

/* Contraction of a multiplication and an addition of the source to one fused multiply-add, which rounds once. */
enum fp_fusion {
	FP_FUSION_DEFAULT, /* FP_FUSION_ON */
	FP_FUSION_ON,
	FP_FUSION_OFF, /* tl.fma, dots and the inline code of math functions still fuse */
};

/* Whether the GPU's approximate instructions for exp, exp2, sqrt, rsqrt and the fast_ functions of fp32 take subnormal
 * numbers as 0 and return 0 for them. All other operations keep subnormal numbers. */
enum flush_to_zero {
	FTZ_DEFAULT, /* FTZ_ON */
	FTZ_ON,
	FTZ_OFF,
};

/* Assumptions of compiled code about sizes. */
enum launch_bounds {
	BOUNDS_LIMITED, /* the launch bounds, and few elements after each pointer */
	BOUNDS_ANY,     /* few elements after each pointer: see transform/wide_offsets.h */
	BOUNDS_WIDE,    /* no assumption */
};

/* Kinds of grids for which code may differ: at most as many programs as multiprocessors; more programs; more than
 * MANY_WAVES programs for each multiprocessor; and more than MANY_WAVES in many rows, so that L2 may not hold the data
 * that the rows read. */
enum grid_kind { GRID_FEW, GRID_MANY, GRID_WAVES, GRID_ROWS, GRID_KINDS };
enum { ALL_GRIDS = (1 << GRID_KINDS) - 1, MANY_WAVES = 4 };

enum {
	DEFAULT_WARPS = 4,
	DEFAULT_STAGES = 3,
	MAX_NUM_WARPS = 32,
	MAX_NUM_STAGES = 64,
	MAX_GROUP_PIDS = 1 << 20,
	/* A thread has at most 255 registers. maxnreg=256 means no limit, for ptxas and for tlc. */
	MAX_REGISTERS = 255,
	MAX_MAXNREG = 256,
};

enum {
	CODEGEN_WARPS,
	CODEGEN_STAGES,
	CODEGEN_GROUP_PIDS,
	CODEGEN_MAXNREG,
	CODEGEN_FP_FUSION,
	CODEGEN_FTZ,
	CODEGEN_NUMBERS
};
struct codegen_options {
	/* numbers chosen by the user, a decorator or the tuner; 0: the default */
	union {
		struct {
			int num_warps;  /* warps of a program, a power of two */
			int num_stages; /* stages of software pipelining */
			/* number of rows of a group when a two-dimensional grid is remapped; 1: not remapped; 0: 16 for
			 * GRID_ROWS if that is faster, else not remapped */
			int group_pids;
			int maxnreg;   /* register limit of a thread; 0: ptxas decides */
			int fp_fusion; /* enum fp_fusion */
			int ftz;       /* enum flush_to_zero */
		};
		int numbers[CODEGEN_NUMBERS]; /* the same, as codegen_numbers describes them */
	};
	/* device_assert is emitted also for the GPU, where it traps, and integer operations are checked for overflow */
	bool debug;
	enum abi abi;
	bool wraps; /* with debug: integers may overflow */
	/* The following options are determined by the arguments and the grid of a launch.
	 *
	 * Do not use TMA copies. The launch must give their kernels row strides from 0 to 2^40 bytes and additional
	 * parameters, the tensor maps. */
	bool no_tma;
	enum launch_bounds sizes; /* bounds of launches that the kernel supports: see analysis/launch_bounds.h */
	/* aliasing of pointer parameters; accesses keep their order where parameters may overlap */
	enum aliasing alias;
	enum grid_kind grid; /* all but GRID_FEW allow a persistent kernel if that is faster */
};

/* The numbers among the options. They have the same names in tl_config, triton.Config, manifests and texts of the
 * tuner; on the command line, "-" replaces "_". */
extern const struct codegen_number {
	const char *name;
	int usual; /* the default */
	int least, most;
	const char *rule; /* of its values, for messages: "it must …" */
	/* The words for the values `least` to `most` in texts; NULL: texts have the number itself. The word for a value
	 * of 0 is "default". */
	const char *const *words;
} codegen_numbers[CODEGEN_NUMBERS];

/* Gives numbers that are 0 the values of `other`. */
static inline struct codegen_options codegen_options_or(struct codegen_options o, const struct codegen_options *other)
{
	for (int i = 0; i < CODEGEN_NUMBERS; i++)
		o.numbers[i] = o.numbers[i] ? o.numbers[i] : other->numbers[i];
	return o;
}

/* Replaces numbers of 0 that have another default by it, and maxnreg=256 by 255, the most registers of a thread. */
static inline struct codegen_options codegen_options_complete(struct codegen_options o)
{
	o.num_warps = o.num_warps ? o.num_warps : DEFAULT_WARPS;
	o.num_stages = o.num_stages ? o.num_stages : DEFAULT_STAGES;
	o.maxnreg = o.maxnreg == MAX_MAXNREG ? MAX_REGISTERS : o.maxnreg;
	o.fp_fusion = o.fp_fusion ? o.fp_fusion : FP_FUSION_ON;
	o.ftz = o.ftz ? o.ftz : FTZ_ON;
	return o;
}

/* The options for a launcher that checks no conditions and chooses no variants: parameters of any size, which may
 * overlap, and a grid whose blocks are the programs. */
static inline struct codegen_options codegen_options_foreign(struct codegen_options o)
{
	o.no_tma = true;
	o.sizes = BOUNDS_WIDE;
	o.alias = ALIAS_ANY;
	o.grid = GRID_FEW;
	return o;
}

/* The options that do not depend on a launch. */
static inline struct codegen_options codegen_options_chosen(const struct codegen_options *o)
{
	struct codegen_options out = {.debug = o->debug, .wraps = o->wraps, .abi = o->abi};
	memcpy(out.numbers, o->numbers, sizeof out.numbers);
	return out;
}

/* True if the options are equal, except for options that a launch determines. */
static inline bool codegen_options_same_choice(const struct codegen_options *x, const struct codegen_options *y)
{
	return !memcmp(x->numbers, y->numbers, sizeof x->numbers) && x->debug == y->debug &&
	       x->wraps == y->wraps && x->abi == y->abi;
}

/* The index of the first number that violates its rule; -1: there is none. */
int codegen_options_wrong(const struct codegen_options *o);
/* The value of a number as texts have it: "8", or a word. */
const char *codegen_number_text(struct arena *a, int number, int value);
/* The value that `text` names, a word of the number; -1: it is none of them. */
int codegen_number_of_word(int number, const char *text);
/* Appends the numbers that differ from the numbers of `from`: "num_warps=8 num_stages=2". `separator` comes before each
 * item that is not the first of the text. */
void codegen_options_print(struct strbuf *out, const struct codegen_options *o, const struct codegen_options *from,
			   const char *separator);

#endif
