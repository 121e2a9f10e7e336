/* Registers run-time generated code with a debugger, through GDB's JIT interface, which LLDB supports too. */
#ifndef TL_DEVICE_GDB_H
#define TL_DEVICE_GDB_H

#include <stddef.h>

struct gdb_entry;
/* Registers an ELF object with the load addresses of its sections. The entry owns and frees `file`. NULL: out of
 * memory. */
struct gdb_entry *gdb_tell(char *file, size_t len);
/* Unregisters the code before it is freed. NULL is allowed. */
void gdb_forget(struct gdb_entry *e);

#endif
