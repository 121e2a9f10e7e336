/* PTX text as instructions. The reader knows the shape of the language only (directives, operands, scopes); what an
 * opcode means, and whether it exists at all, is decided by sim.h's decoders. */
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
	O_SINK,   /* "_": a result nobody wants */
	O_INT,    /* imm: an integer, two's complement */
	O_FLOAT,  /* imm: the bits of an f32 (0f…) or an f64 (0d…, decimals); see `wide` */
	O_SPECIAL,/* name: %tid.x … */
	O_ADDRESS,/* [base + offset]: base is a register or a variable or nothing */
	O_SYMBOL, /* var: the address of a variable, or a function */
	O_VECTOR, /* items */
	O_LABEL,  /* target: index of an instruction */
};

struct ptx_var {
	const char *name;
	enum ptx_space space;
	enum ptx_type type; /* of an element */
	u64 size, align;    /* bytes; size 0: extern .shared, as large as the launch says */
	/* in its space: parameters in order; shared, local and const memory packed with alignment */
	u64 offset;
	const u8 *init;     /* size bytes, or NULL */
	u32 nelems;         /* of an array, else 1 */
	bool is_kernel_param; /* SPACE_PARAM: else of a call within the kernel */
};

struct operand {
	enum operand_kind kind;
	bool negated;      /* !%p */
	bool wide;         /* O_FLOAT: imm is an f64 */
	u32 reg;           /* O_REG; O_ADDRESS with a register base: has_reg */
	bool has_reg;
	enum ptx_type reg_type; /* as declared */
	u64 imm;           /* O_INT, O_FLOAT; O_ADDRESS: the offset */
	const char *name;  /* O_SPECIAL; O_SYMBOL: a function's */
	const struct ptx_var *var; /* O_SYMBOL of a variable, O_ADDRESS based on one; else NULL */
	struct operand *items;     /* O_VECTOR; O_ADDRESS of a tensor: the coordinates behind the comma */
	u32 nitems;
	u32 target;        /* O_LABEL */
};

enum { MAX_OPERANDS = 8 };

struct instr {
	/* by the reader */
	const char *opcode;      /* "add.rn.f32" */
	struct operand ops[MAX_OPERANDS];
	u32 nops;
	i32 pred;                /* register, or -1 */
	bool pred_negated;
	u32 line;                /* of the PTX text */
	u32 src_line;            /* of the .tl file by .loc; 0: unknown */

	/* by the decoder */
	void (*run)(struct warp *w, const struct instr *i, u32 mask);
	enum ptx_type type[4];   /* in the order of the opcode; what is not there is PT_NONE */
	u64 mods;                /* bits that the decoder and `run` agree on */
	bool is_sync;            /* needs all lanes of its warp at once: a barrier, ldmatrix, mma … */
	u8 members;              /* operand that holds the mask of lanes needed at once; 0: none */
	bool is_control;         /* `run` sets the lanes' program counters, or ends them */
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
	u64 shared_bytes;        /* static; the extern array begins behind, at a multiple of its alignment */
	u64 extern_offset;
	u64 local_bytes;
	u64 call_bytes;          /* .param variables of calls, for each lane */
	u32 max_threads[3];      /* .reqntid or .maxntid; 0: not given */
	u32 cluster[3];          /* .reqnctapercluster; 0: none */
	u32 max_cluster;         /* .maxclusterrank; 0: none */
	bool explicit_cluster;   /* .explicitcluster: the launch must say how many blocks */
	bool has_fences;         /* of memory */
	bool *in_products;       /* per register: does a wgmma add to it or read it? NULL: there is none */
};

struct ptx_module {
	const char *text;
	int sm;                  /* of .target */
	bool arch_specific;
	struct ptx_kernel *kernels;
	u32 nkernels;
	struct ptx_var **vars;   /* of the module: shared, global, const */
	u32 nvars;
};

/* Reads a module into `a`. NULL on failure, with "line 12: …" in *error. */
struct ptx_module *ptx_read(struct arena *a, const char *text, size_t len, const char **error);

#endif
