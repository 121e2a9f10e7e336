/* Links object files in memory to functions of this process, with the C library and its math functions. It does not use
 * LLVM. */
#ifndef TL_DEVICE_OBJECT_LINKER_H
#define TL_DEVICE_OBJECT_LINKER_H

#include "support/arena.h"

struct linked;

/* Links a relocatable ELF object of LLVM for this CPU: position-independent, without thread-local variables. *address:
 * the address of function `name`. Any thread may call it. NULL: an error; *error is its text, in `a`. */
struct linked *link_object(struct arena *a, const void *object, size_t len, const char *name, void **address,
			   const char **error);
/* The bytes of constant `name` in the object; NULL: there is none. */
const u8 *object_constant(const void *object, size_t len, const char *name, size_t *bytes);
/* A copy of the object with the load addresses of its sections, for debuggers; the caller frees it. NULL: out of
 * memory. */
char *linked_file(const struct linked *linked, const void *object, size_t len);
/* The size of the code, which starts at *from and has all functions of the object. */
size_t linked_code(const struct linked *linked, const void **from);
/* Frees the code. No thread may be running it. */
void unlink_object(struct linked *linked);

#endif
