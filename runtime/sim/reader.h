/* State of the PTX reader, shared by the scanner and the grammar. */
#ifndef TL_SIM_READER_H
#define TL_SIM_READER_H

#include <string.h>

#include "runtime/sim/ptx.h"

/* A register declaration: %r<5> declares five registers, %SP one. */
struct reg_decl {
	const char *prefix;
	size_t len;
	bool counted;
	u32 count, first;
	enum ptx_type type;
};

enum { UNRESOLVED = UINT32_MAX }; /* target of a branch to a label that is not defined yet */

struct label {
	const char *name;
	u32 at;
};

typedef VEC(struct operand) operand_vec;
typedef VEC(u64) bits_vec;
typedef VEC(struct instr) instr_vec;
typedef VEC(enum ptx_type) type_vec;

struct ptx_reader {
	struct arena *arena;
	u32 line;
	struct ptx_module *module;
	const char *error;

	VEC(struct ptx_kernel) kernels;
	VEC(struct ptx_var *) vars;   /* of the module, then of the kernel; the end of a scope truncates it */
	VEC(struct reg_decl) decls;   /* visible declarations */
	VEC(struct ptx_var) params;
	instr_vec code;
	VEC(struct label) labels;
	type_vec reg_types;
	VEC(const char *) functions;  /* declared ones */
	VEC(u32) scopes;              /* per open scope: decls.len, vars.len, labels.len and code.len at its begin */
	struct ptx_kernel kernel;
	enum ptx_type reg_type;       /* type of the current register declaration */
	u32 module_vars, nkernels_begun, src_file, src_line;
	VEC(const char *) files;      /* indexed as in .file */
	u64 shared_bytes;             /* static shared memory of module-scope variables */
};

#endif
