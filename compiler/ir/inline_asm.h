/* Inline assembly: which registers its text has, by the constraints in LLVM's notation ("=r,=&f,r,l").
 *
 * Outputs come first. An operand or result has a register for each element of 32 bits or more; smaller ones share
 * one, as many as fit 32 bits and packed_element has. */
#ifndef TLC_IR_INLINE_ASM_H
#define TLC_IR_INLINE_ASM_H

#include "ir/ir.h"

enum { MAX_ASM_REGISTERS = 256 };

struct asm_form {
	u32 outputs, inputs;
	char class[MAX_ASM_REGISTERS]; /* of each register, outputs first: b h r l f d q */
	u8 tied[MAX_ASM_REGISTERS];    /* of an input: 1 + the output in the same register; 0: there is none */
};

/* An operation, for its execution on the CPU. Code of the device cpu holds such a struct. */
struct asm_call {
	const char *text, *constraints;
	const u8 *bits; /* of an element: of each result, then of each operand */
	u64 n;          /* elements of each tile; 1 for a scalar */
	u32 pack, nresults, noperands; /* pack: packed_element */
};

/* Fills in the form of the constraints alone. Returns what is wrong with them, or NULL. */
const char *asm_read_form(const char *constraints, struct asm_form *form);

/* Fills in the form of o. Returns what is wrong with it, or NULL. */
const char *inline_asm_form(const struct op *o, struct asm_form *form);
/* How many registers the results, or the operands, have. */
u32 inline_asm_results(const struct op *o);
u32 inline_asm_operands(const struct op *o);
/* Bits of a register of this class. */
int asm_class_bits(char class);
/* How many elements of so many bits share a register. */
static inline u32 asm_share(int bits, u32 pack) { return MIN(32 / MIN((u32)bits, 32u), pack); }
/* How many elements of type t share a register, and how many registers `pack` of them have. */
static inline u32 asm_elements(const struct type *t, u32 pack) { return asm_share(type_elem_bits(t), pack); }
static inline u32 asm_registers(const struct type *t, u32 pack) { return pack / asm_elements(t, pack); }

/* Assembly that only reads a clock or a number of the machine: it touches no memory, and the interpreter knows it. */
enum asm_source { ASM_UNKNOWN, ASM_TIMER, ASM_CLOCK, ASM_SM };
enum asm_source inline_asm_source(const struct op *o);
/* May o be assembly that touches memory, or orders what does? */
static inline bool op_is_opaque(const struct op *o)
{
	return o->code == IR_INLINE_ASM && inline_asm_source(o) == ASM_UNKNOWN;
}

#endif
