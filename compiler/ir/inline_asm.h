/* Inline assembly: the registers of its text, from the constraints in LLVM's notation ("=r,=&f,r,l"). Outputs come
 * first. An operand or result uses one register per element of 32 bits or more. Smaller elements share a register, as
 * many as fit 32 bits and at most packed_element. */
#ifndef TLC_IR_INLINE_ASM_H
#define TLC_IR_INLINE_ASM_H

#include "ir/ir.h"

enum { MAX_ASM_REGISTERS = 256 };

struct asm_form {
	u32 outputs, inputs;
	char class[MAX_ASM_REGISTERS]; /* register class of each register, outputs first: b h r l f d q */
	u8 tied[MAX_ASM_REGISTERS];    /* for an input: 1 + the output in the same register; 0: none */
};

/* A call of inline assembly for execution on the CPU. Code compiled for the device cpu contains such structs. */
struct asm_call {
	const char *text, *constraints;
	const u8 *bits; /* width of an element, for each result and then each operand */
	u64 n;          /* number of elements of each tile; 1 for a scalar */
	u32 pack, nresults, noperands; /* pack: packed_element */
};

/* Fills in the form from the constraints only. Returns an error message, or NULL. */
const char *asm_read_form(const char *constraints, struct asm_form *form);

/* Fills in the form of o. Returns an error message, or NULL. */
const char *inline_asm_form(const struct op *o, struct asm_form *form);
/* The number of registers of the results, or of the operands. */
u32 inline_asm_results(const struct op *o);
u32 inline_asm_operands(const struct op *o);
/* The width in bits of a register of this class. */
int asm_class_bits(char class);
/* The number of elements of `bits` bits that share a register. */
static inline u32 asm_share(int bits, u32 pack) { return MIN(32 / MIN((u32)bits, 32u), pack); }
/* The number of elements of type t that share a register, and the number of registers for `pack` elements. */
static inline u32 asm_elements(const struct type *t, u32 pack) { return asm_share(type_elem_bits(t), pack); }
static inline u32 asm_registers(const struct type *t, u32 pack) { return pack / asm_elements(t, pack); }

/* Known assembly that only reads a clock or the number of the multiprocessor. It does not access memory, and the
 * interpreter implements it. */
enum asm_source { ASM_UNKNOWN, ASM_TIMER, ASM_CLOCK, ASM_SM };
enum asm_source inline_asm_source(const struct op *o);
/* True if o may be assembly that accesses memory, or that orders memory accesses. */
static inline bool op_is_opaque(const struct op *o)
{
	return o->code == IR_INLINE_ASM && inline_asm_source(o) == ASM_UNKNOWN;
}

#endif
