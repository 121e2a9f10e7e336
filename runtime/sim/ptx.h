/* Parsed PTX. The reader knows only the syntax (directives, operands, scopes). The decoders of sim.h decide whether an
 * opcode exists, and its semantics. */
#ifndef TL_SIM_PTX_H
#define TL_SIM_PTX_H

#include "support/arena.h"
#include "support/map.h"

struct warp;

enum ptx_type {
	PT_NONE, PT_PRED,
	PT_B8, PT_B16, PT_B32, PT_B64, PT_B128,
	PT_U8, PT_U16, PT_U32, PT_U64,
	PT_S8, PT_S16, PT_S32, PT_S64,
	PT_F16, PT_F16X2, PT_BF16, PT_BF16X2, PT_TF32, PT_F32, PT_F64,
	PT_E4M3, PT_E5M2, PT_E4M3X2, PT_E5M2X2,
};
int ptx_bits(enum ptx_type t); /* of a register; 1 for PT_PRED */
const char *ptx_type_name(enum ptx_type t);
/* "f16x2" → PT_F16X2; PT_NONE when there is no such type. */
enum ptx_type ptx_type_named(const char *name);

enum ptx_space { SPACE_GENERIC, SPACE_GLOBAL, SPACE_SHARED, SPACE_PARAM, SPACE_LOCAL, SPACE_CONST, SPACE_CLUSTER };

enum operand_kind {
	O_NONE,
	O_REG,    /* reg */
	O_SINK,   /* "_": a discarded result */
	O_INT,    /* imm: an integer, two's complement */
	O_FLOAT,  /* imm: the bits of an f32 (0f…) or an f64 (0d…, decimals), according to `wide` */
	O_SPECIAL,/* name: %tid.x and the like; imm: its number, after decoding */
	O_ADDRESS,/* [base + offset]: the base is a register, a variable or absent */
	O_SYMBOL, /* var: the address of a variable, or a function */
	O_VECTOR, /* items */
	O_LABEL,  /* target: index of an instruction */
};

struct ptx_var {
	const char *name;
	enum ptx_space space;
	enum ptx_type type; /* of an element */
	u64 size, align;    /* bytes; size 0: extern .shared, sized by the launch */
	/* within its state space, aligned, in order of declaration; global and const: a host address */
	u64 offset;
	const u8 *init;     /* size bytes, or NULL */
	u32 nelems;         /* elements of an array, else 1 */
	bool is_kernel_param; /* SPACE_PARAM: parameter of the kernel; false: of a call within the kernel */
};

struct operand {
	enum operand_kind kind;
	bool negated;      /* !%p */
	bool wide;         /* O_FLOAT: imm is an f64 */
	u32 reg;           /* O_REG; O_ADDRESS with a register base: has_reg */
	bool has_reg;
	enum ptx_type reg_type; /* as declared */
	u64 imm;           /* O_INT, O_FLOAT; O_ADDRESS: the offset */
	const char *name;  /* O_SPECIAL; O_SYMBOL: name of the function */
	const struct ptx_var *var; /* variable of an O_SYMBOL, or base of an O_ADDRESS; else NULL */
	struct operand *items;     /* O_VECTOR; O_ADDRESS of a tensor: the coordinates after the comma */
	u32 nitems;
	u32 target;        /* O_LABEL */
};

enum { MAX_OPERANDS = 8 };

struct instr {
	/* set by the reader */
	const char *opcode;      /* "add.rn.f32" */
	struct operand ops[MAX_OPERANDS];
	u32 nops;
	i32 pred;                /* guard predicate: register, or -1 */
	bool pred_negated;
	u32 line;                /* of the PTX text */
	u32 src_line;            /* line of the .tl file, from .loc; 0: unknown */

	/* set by the decoder */
	void (*run)(struct warp *w, const struct instr *i, u32 mask);
	enum ptx_type type[4];   /* types in the order of the opcode; absent ones are PT_NONE */
	u64 mods;                /* private to the decoder and `run` */
	bool is_sync;            /* needs all lanes of its warp together: a barrier, ldmatrix, mma … */
	u8 members;              /* index of the operand with the mask of lanes needed together; 0: none */
	bool is_control;         /* `run` sets the program counters of the lanes, or ends lanes */
};

struct ptx_kernel {
	const char *name;
	struct ptx_var *params;
	u32 nparams;
	u64 param_bytes;
	struct instr *code;
	u32 ncode;
	u32 nregs;               /* registers of all types are numbered together */
	const enum ptx_type *reg_types;
	const char *const *reg_names;
	u64 shared_bytes;        /* static; the extern array starts after it, at extern_offset */
	u64 extern_offset;
	u64 local_bytes;
	u64 call_bytes;          /* .param variables of calls, per lane */
	u32 max_threads[3];      /* .reqntid or .maxntid; 0: not given */
	u32 cluster[3];          /* .reqnctapercluster; 0: none */
	u32 max_cluster;         /* .maxclusterrank; 0: none */
	bool explicit_cluster;   /* .explicitcluster: the launch must give the cluster shape */
	bool has_fences;         /* it has fence or membar instructions */
	/* per register: true if it is an accumulator or an A operand of a wgmma; NULL: no wgmma */
	bool *in_products;
};

struct ptx_module {
	const char *text;
	int sm;                  /* number of .target sm_N */
	bool arch_specific;
	struct ptx_kernel *kernels;
	u32 nkernels;
	struct ptx_var **vars;   /* module-scope variables: shared, global, const */
	u32 nvars;
};

/* Parses a module into `a`. NULL on failure, with "line 12: …" in *error. */
struct ptx_module *ptx_read(struct arena *a, const char *text, size_t len, const char **error);

#endif
