/* Parsed PTX. The reader knows only the syntax (directives, operands, scopes). decode.c decides whether an
 * opcode exists, and its semantics. */
#ifndef TL_SIM_PTX_H
#define TL_SIM_PTX_H

#include "support/arena.h"
#include "support/map.h"

struct warp;
typedef unsigned long long ull; /* for %llu */

enum ptx_type {
	PT_NONE,
#define TYPE(code, name, bits) PT_##code,
#include "runtime/sim/ptx.def"
};
int ptx_bits(enum ptx_type t); /* of a register; 1 for PT_PRED */
const char *ptx_type_name(enum ptx_type t);
/* "f16x2" → PT_F16X2; PT_NONE when there is no such type. */
enum ptx_type ptx_type_named(const char *name);

static inline bool is_bits(enum ptx_type t)
{
	return t >= PT_B8 && t <= PT_B128;
}
static inline bool is_unsigned(enum ptx_type t)
{
	return t >= PT_U8 && t <= PT_U64;
}
static inline bool is_signed(enum ptx_type t)
{
	return t >= PT_S8 && t <= PT_S64;
}
static inline bool is_int(enum ptx_type t)
{
	return is_unsigned(t) || is_signed(t);
}
static inline bool is_half(enum ptx_type t)
{
	return t >= PT_F16 && t <= PT_BF16X2;
}
static inline bool is_bf(enum ptx_type t)
{
	return t == PT_BF16 || t == PT_BF16X2;
}
static inline bool is_packed(enum ptx_type t)
{
	return t == PT_F16X2 || t == PT_BF16X2;
}
static inline bool is_float(enum ptx_type t)
{
	return t >= PT_F16;
}

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

enum modifier {
#define MODIFIER(code, name, choices) M_##code,
#include "runtime/sim/ptx.def"
	NUM_MODIFIERS
};

struct instr {
	/* set by the reader */
	const char *opcode;      /* "add.rn.f32" */
	struct operand ops[MAX_OPERANDS];
	u32 nops;
	i32 pred;                /* guard predicate: register, or -1 */
	bool pred_negated;
	u32 line;                /* of the PTX text */
	u32 src_file, src_line;  /* from .loc: index of the file, and the line; 0: unknown */

	/* set by the decoder */
	void (*run)(struct warp *w, const struct instr *i, u32 mask);
	enum ptx_type type[4];   /* types in the order of the opcode; absent ones are PT_NONE */
	u8 mod[NUM_MODIFIERS];   /* 1 + the index of the choice; 0: absent */
	int operation;           /* of the form, private to `run` */
	enum ptx_space space;    /* of the modifier SPACE */
	const void *plan;        /* made by the check of the form, private to its file */
	bool is_sync;            /* needs all lanes of its warp together: a barrier, ldmatrix, mma … */
	u8 members;              /* index of the operand with the mask of lanes needed together; 0: none */
	bool is_control;         /* `run` sets the program counters of the lanes, or ends lanes */
	bool has_result;         /* the first operand is a result */
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
	u64 shared_bytes;        /* static; the extern array starts after it, at extern_offset */
	u64 extern_offset;
	u64 local_bytes;
	u64 call_bytes;          /* .param variables of calls, per lane */
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
	const char *const *files; /* indexed as in .file and .loc; NULL: no such file */
	u32 nfiles;
};

/* Parses a module into `a`. NULL on failure, with "line 12: …" in *error. */
struct ptx_module *ptx_read(struct arena *a, const char *text, size_t len, const char **error);

#endif
