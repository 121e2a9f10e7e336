/* Objects in memory → functions of this process, linked to the C library and its math functions. No LLVM. */
#ifndef TL_DEVICE_OBJECT_LINKER_H
#define TL_DEVICE_OBJECT_LINKER_H

#include "support/arena.h"

struct linked;

/* Links a relocatable ELF object for this processor, as LLVM makes it: position-independent, without thread-local
 * variables. *address: of its function `name`. From any thread. NULL after an error, whose text is in *error, in `a`.
 */
struct linked *link_object(struct arena *a, const void *object, size_t len, const char *name, void **address,
			   const char **error);
/* The bytes of its constant `name`, in the object; NULL: there is none. */
const u8 *object_constant(const void *object, size_t len, const char *name, size_t *bytes);
/* A copy of the object whose sections have their addresses in memory, for debuggers; the caller frees it. NULL: out of
 * memory. */
char *linked_file(const struct linked *linked, const void *object, size_t len);
/* The bytes of its code, from *from on: all functions of the object. */
size_t linked_code(const struct linked *linked, const void **from);
/* The function is not running, and not called any more. */
void unlink_object(struct linked *linked);

#endif
