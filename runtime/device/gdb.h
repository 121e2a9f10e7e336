/* Tells a debugger of code that is made at run time, through GDB's interface for that, which LLDB knows too. */
#ifndef TL_DEVICE_GDB_H
#define TL_DEVICE_GDB_H

#include <stddef.h>

struct gdb_entry;
/* Of an ELF object whose sections have the addresses that they were loaded to; `file` is kept and freed. NULL: out of
 * memory. */
struct gdb_entry *gdb_tell(char *file, size_t len);
/* The code goes away. NULL is allowed. */
void gdb_forget(struct gdb_entry *e);

#endif
