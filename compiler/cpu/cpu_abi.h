/* How a kernel compiled for the CPU is called. Shared by compiler/cpu, which emits the code, and the runtime, which
 * calls it; there is no LLVM here. */
#ifndef TLC_CPU_CPU_ABI_H
#define TLC_CPU_CPU_ABI_H

#include "support/diag.h"
#include "ir/inline_asm.h"

/* The object of a kernel has a constant whose name is the kernel's name followed by HOST_RECORD. It holds the bytes of
 * scratch memory that a program needs (8 bytes), then a byte for each parameter. An image must agree with it. */
#define HOST_RECORD ".kernel"
static inline u8 cpu_record_byte(int pointers, int dtype)
{
	return (u8)(pointers << 6 | dtype);
}

/* A place in the source, in one word: line, column, length and file from 24, 16, 12 and 12 bits. */
static inline u64 cpu_place(struct loc l)
{
	return (u64)l.line << 40 | (u64)l.col << 24 | (u64)MIN(l.len, 0xFFFu) << 12 | MIN(l.file, 0xFFFu);
}
static inline struct loc cpu_place_loc(u64 place)
{
	return (struct loc){(u32)(place >> 40), (u16)(place >> 24), (u16)(place >> 12 & 0xFFF), (u16)(place & 0xFFF)};
}

/* What a tile of device_print holds. */
struct cpu_print_operand {
	u8 dtype; /* enum dtype; DT_I64 for pointers */
	u8 is_signed, is_pointer, rank;
	i32 shape[8];
};
struct cpu_print {
	u64 place;          /* cpu_place() of it */
	const char *prefix; /* NUL-terminated */
	i32 hex, n;
	struct cpu_print_operand at[8];
};

struct cpu_asm {
	u64 place; /* cpu_place() of it */
	struct asm_call call;
};

/* An access to memory in code that is checked: the same for all programs. */
enum cpu_access { HOST_LOAD, HOST_STORE, HOST_ATOMIC };
struct cpu_site {
	u64 place; /* cpu_place() of it */
	i32 kind;  /* enum cpu_access */
	i32 bytes; /* of an element */
	i32 param; /* of the kernel, from which addresses are computed; -1: not known */
	i32 lanes; /* elements, of which `each` has its address, or the first alone, and the others follow */
	i32 each;
	i32 step; /* in the tile, between them */
	i32 rank, shape[8];
};

/* Bytes of a buffer. */
struct cpu_bytes {
	u64 from, size;
};

/* One launch, the same for all its programs and threads. The functions may be called from several threads at once. */
struct cpu_call {
	const u64 *args; /* the bits of each parameter of the kernel, in the low bytes */
	u32 grid[3];
	u32 cache_kib; /* of the last-level cache; 0: not known */
	/* Records that the program fails at this place (cpu_place()); `element` of a tile of this shape, or -1. `text`
	 * is NUL-terminated. */
	void (*fail)(const struct cpu_call *c, const u32 *pid, u64 place, i64 element, const i32 *shape, i32 rank,
		     const char *text);
	/* data: for each operand its elements, row-major, as memory holds them */
	void (*print)(const struct cpu_call *c, const u32 *pid, const struct cpu_print *what,
		      const void *const *data);
	/* Called every so often by a loop that waits (op_may_wait): where all threads wait, a further one begins a
	 * program. Returns 0, or 1 when the wait is in vain. pid: the address that the program was called with. */
	i32 (*wait)(const struct cpu_call *c, const u32 *pid, u64 place);
	/* In code that is checked, before a load or an atomic operation, and in place of a store: `at` is the first
	 * address, or points to all; mask: a byte for each element, 0 where it is left out, or NULL; data: of a store,
	 * the elements. `element` is the first one's number in the tile, -1 of a scalar. Returns 0, or 1 when the
	 * program has failed. */
	i32 (*check)(const struct cpu_call *c, const u32 *pid, const struct cpu_site *site, i64 element,
		     const void *at, const u8 *mask, const void *data);
	void *self;
	/* In code that is checked, for each parameter: bytes that loads of neighbours through it may take unasked. */
	const struct cpu_bytes *good;
	/* Runs inline assembly. tiles: the elements of each result, then of each operand, as memory holds them. Returns
	 * 0, or 1 when the program has failed. */
	i32 (*assembly)(const struct cpu_call *c, const u32 *pid, const struct cpu_asm *what, char *const *tiles);
};

/* Runs one program. `scratch` is memory of the calling thread's own, aligned to 64: as many bytes as the image says.
 * Returns 0, or 1 after a failure. */
typedef i32 cpu_program(const struct cpu_call *c, const u32 *pid, char *scratch);

#endif
