/* Shorthands for LLVM's builder, for both code generators. Values are scalars or vectors: types and constants have the
 * lanes of the value or type that they follow. */
#ifndef TLC_LLVM_BUILDER_H
#define TLC_LLVM_BUILDER_H

#include <llvm-c/Core.h>
#include <llvm-c/DebugInfo.h>

#include "support/diag.h"
#include "support/dtype.h"

/* --- types and constants ------------------------------------------------------------------------------------- */

u32 lanes_of(LLVMValueRef v);       /* 0: a scalar */
LLVMTypeRef elem_of(LLVMTypeRef t); /* the type of a lane; t itself if it is no vector type */
int type_bits(LLVMTypeRef t);       /* width of a lane */
/* `elem`, or a vector of it with the lanes of type t, or of value v. */
LLVMTypeRef type_like(LLVMTypeRef t, LLVMTypeRef elem);
LLVMTypeRef type_as(LLVMValueRef v, LLVMTypeRef elem);
/* Integers of this width, with the lanes of v. */
LLVMTypeRef ints_as(LLVMValueRef v, int bits);
/* The type of a number: bf16 and fp8 are integers of their width. */
LLVMTypeRef llvm_dtype(LLVMContextRef ctx, enum dtype d);
/* n, or x, as a constant of type t, or of the type of v. */
LLVMValueRef int_like(LLVMTypeRef t, u64 n);
LLVMValueRef int_as(LLVMValueRef v, u64 n);
LLVMValueRef real_as(LLVMValueRef v, double x);

/* In memory an i1 is a byte: 0 or 1 when it is written; anything but 0 is true when it is read. Other elements are
 * unchanged. memory_type: for scalar types. */
LLVMTypeRef memory_type(LLVMTypeRef t);
LLVMValueRef to_memory(LLVMBuilderRef b, LLVMValueRef v);
LLVMValueRef from_memory(LLVMBuilderRef b, LLVMValueRef v, LLVMTypeRef elem);

/* --- instructions -------------------------------------------------------------------------------------------- */

LLVMValueRef shl(LLVMBuilderRef b, LLVMValueRef v, int n);
LLVMValueRef lshr(LLVMBuilderRef b, LLVMValueRef v, int n);
/* Lane by lane: the bits of v as integers, and integers as the bits of values of type `elem`. */
LLVMValueRef to_bits(LLVMBuilderRef b, LLVMValueRef v);
LLVMValueRef from_bits(LLVMBuilderRef b, LLVMValueRef v, LLVMTypeRef elem);
/* p plus `index` elements of type `elem`. */
LLVMValueRef gep(LLVMBuilderRef b, LLVMValueRef p, LLVMTypeRef elem, LLVMValueRef index);
/* Calls an intrinsic, which is overloaded on `types`; intrinsic_on: on the type of its first argument. */
LLVMValueRef call_intrinsic(LLVMBuilderRef b, const char *name, LLVMTypeRef *types, u32 ntypes, LLVMValueRef *args,
			    u32 n);
LLVMValueRef intrinsic_on(LLVMBuilderRef b, const char *name, LLVMValueRef *args, u32 n);
LLVMValueRef intrinsic1(LLVMBuilderRef b, const char *name, LLVMValueRef x);

/* Inline assembly. effects: it does more than compute its result. */
LLVMValueRef call_asm(LLVMBuilderRef b, const char *text, const char *constraints, bool effects, LLVMTypeRef ret,
		      LLVMValueRef *args, u32 n);

/* --- control flow -------------------------------------------------------------------------------------------- */

/* A new basic block at the end of the builder's function. */
LLVMBasicBlockRef new_block(LLVMBuilderRef b);
/* Marks a selection whose condition is rarely true, for branch_around_unlikely in session.h. */
void mark_unlikely(LLVMValueRef select);
/* Code between begin_if and end_if is executed if `cond` (i1) is true. cond NULL: always, without a branch. */
struct guarded {
	LLVMBasicBlockRef from[2], end; /* the blocks that jump to `end`: before and in the branch */
};
struct guarded begin_if(LLVMBuilderRef b, LLVMValueRef cond);
void end_if(LLVMBuilderRef b, struct guarded *g);
/* After end_if: x if the branch was executed, else `otherwise`. */
LLVMValueRef either(LLVMBuilderRef b, const struct guarded *g, LLVMValueRef otherwise, LLVMValueRef x);

/* --- the module ---------------------------------------------------------------------------------------------- */

/* Adds a global variable with the constant value c. */
LLVMValueRef add_constant(LLVMModuleRef mod, LLVMValueRef c, const char *name, LLVMLinkage linkage, u32 address_space);
/* Adds an enumeration attribute with this value to a function, its result or a parameter. */
void add_attribute(LLVMValueRef f, LLVMAttributeIndex index, const char *name, u64 value);

/* --- debug information --------------------------------------------------------------------------------------- */

LLVMMetadataRef debug_file(LLVMDIBuilderRef d, const struct source *src);
/* Begins the debug information of a module. */
void debug_module(LLVMDIBuilderRef d, LLVMModuleRef mod, LLVMMetadataRef file, LLVMDWARFEmissionKind kind);
LLVMMetadataRef debug_function(LLVMDIBuilderRef d, LLVMMetadataRef file, const char *name, u32 line);

#endif
