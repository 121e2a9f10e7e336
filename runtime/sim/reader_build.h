/* Semantic actions of the PTX grammar (ptx.y). */
#ifndef TL_SIM_READER_BUILD_H
#define TL_SIM_READER_BUILD_H

#include "runtime/sim/reader.h"

/* Records an error with its line; later errors are ignored. */
void ptx_read_error(struct ptx_reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* `name` is the file of that number in .loc. */
void ptx_add_file(struct ptx_reader *r, u64 number, const char *name);
void ptx_set_target(struct ptx_reader *r, const char *name);
void ptx_add_var(struct ptx_reader *r, enum ptx_space space, u64 align, enum ptx_type type, const char *name,
		 u64 nelems, const bits_vec *init);
void ptx_add_param(struct ptx_reader *r, u64 align, enum ptx_type type, const char *name, u64 nelems);
void ptx_add_function(struct ptx_reader *r, const char *name);
void ptx_begin_kernel(struct ptx_reader *r, const char *name);
void ptx_end_parameters(struct ptx_reader *r);
void ptx_begin_scope(struct ptx_reader *r);
void ptx_end_scope(struct ptx_reader *r);
void ptx_add_label(struct ptx_reader *r, const char *name);
void ptx_end_kernel(struct ptx_reader *r);
void ptx_declare_registers(struct ptx_reader *r, const char *name, bool counted, u64 count);
struct operand ptx_named(struct ptx_reader *r, const char *name);
struct operand ptx_address(struct ptx_reader *r, const char *name, u64 offset);
struct operand ptx_vector(const operand_vec *v);
void ptx_add_instr(struct ptx_reader *r, const char *guard, bool negated, const char *opcode, const operand_vec *ops);

#endif
