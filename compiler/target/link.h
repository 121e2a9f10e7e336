/* Objects in memory → functions of this process, linked by LLVM's ORC to the C library and its math functions. */
#ifndef TLC_TARGET_LINK_H
#define TLC_TARGET_LINK_H

#include "base/arena.h"

struct linker;
struct linked;

/* May be used from several threads at once. NULL after an error, whose text is in *error, in `a`. */
struct linker *linker_open(struct arena *a, const char **error);
void linker_close(struct linker *l);
/* *address: of the object's function `name`. NULL after an error. */
struct linked *linker_add(struct linker *l, struct arena *a, const char *object, size_t len, const char *name,
			  void **address, const char **error);
/* The function is not running, and not called any more. */
void linker_remove(struct linker *l, struct linked *linked);

#endif
