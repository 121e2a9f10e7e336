#include "runtime/device/gdb.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "support/forked.h"

/* The structures of "JIT Compilation Interface" in GDB's manual, with its names, types and order. */
struct jit_code_entry {
	struct jit_code_entry *next_entry, *prev_entry;
	const char *symfile_addr;
	uint64_t symfile_size;
};
enum { JIT_NOACTION, JIT_REGISTER, JIT_UNREGISTER };
struct jit_descriptor {
	uint32_t version, action_flag;
	struct jit_code_entry *relevant_entry, *first_entry;
};
void __jit_debug_register_code(void);
extern struct jit_descriptor __jit_debug_descriptor;

/* The debugger sets a breakpoint here. */
__attribute__((noinline, used)) void __jit_debug_register_code(void)
{
	__asm__ volatile("" ::: "memory");
}
__attribute__((used)) struct jit_descriptor __jit_debug_descriptor = {1, JIT_NOACTION, NULL, NULL};

struct gdb_entry {
	struct jit_code_entry entry;
	char *file;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void tell(struct jit_code_entry *e, uint32_t action)
{
	__jit_debug_descriptor.relevant_entry = e;
	__jit_debug_descriptor.action_flag = action;
	__jit_debug_register_code();
}

struct gdb_entry *gdb_tell(char *file, size_t len)
{
	struct gdb_entry *e = calloc(1, sizeof *e);
	if (!e) {
		free(file);
		return NULL;
	}
	e->file = file;
	e->entry = (struct jit_code_entry){.symfile_addr = file, .symfile_size = len};
	struct fork_section s;
	fork_section_begin(&s);
	pthread_mutex_lock(&lock);
	e->entry.next_entry = __jit_debug_descriptor.first_entry;
	if (e->entry.next_entry)
		e->entry.next_entry->prev_entry = &e->entry;
	__jit_debug_descriptor.first_entry = &e->entry;
	tell(&e->entry, JIT_REGISTER);
	pthread_mutex_unlock(&lock);
	fork_section_end(&s);
	return e;
}

void gdb_forget(struct gdb_entry *e)
{
	if (!e)
		return;
	struct fork_section s;
	fork_section_begin(&s);
	pthread_mutex_lock(&lock);
	if (e->entry.prev_entry)
		e->entry.prev_entry->next_entry = e->entry.next_entry;
	else
		__jit_debug_descriptor.first_entry = e->entry.next_entry;
	if (e->entry.next_entry)
		e->entry.next_entry->prev_entry = e->entry.prev_entry;
	tell(&e->entry, JIT_UNREGISTER);
	pthread_mutex_unlock(&lock);
	fork_section_end(&s);
	free(e->file);
	free(e);
}
