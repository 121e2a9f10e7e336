/* The calling interface of kernels compiled for the CPU. compiler/cpu emits the code and the runtime calls it; this
 * header does not depend on LLVM. */
#ifndef TLC_CPU_CPU_ABI_H
#define TLC_CPU_CPU_ABI_H

#include "support/diag.h"
#include "ir/inline_asm.h"

/* The object code of a kernel has a constant named as the kernel with the suffix HOST_RECORD. It holds the size in
 * bytes of a program's scratch memory (8 bytes), then cpu_record_byte() of each parameter. The runtime refuses a kernel
 * image that states other parameters. */
#define HOST_RECORD ".kernel"
/* pointers: levels of indirection of the parameter's type. dtype: enum dtype of the innermost element. */
static inline u8 cpu_record_byte(int pointers, int dtype)
{
	return (u8)(pointers << 6 | dtype);
}

/* A source location in one word: line, column, length and file in 24, 16, 12 and 12 bits. */
static inline u64 cpu_place(struct loc l)
{
	return (u64)l.line << 40 | (u64)l.col << 24 | (u64)MIN(l.len, 0xFFFu) << 12 | MIN(l.file, 0xFFFu);
}
static inline struct loc cpu_place_loc(u64 place)
{
	return (struct loc){(u32)(place >> 40), (u16)(place >> 24), (u16)(place >> 12 & 0xFFF), (u16)(place & 0xFFF)};
}

/* An operand of device_print. */
struct cpu_print_operand {
	u8 dtype; /* enum dtype; DT_I64 for pointers */
	u8 is_signed, is_pointer, rank;
	i32 shape[8];
};
struct cpu_print {
	u64 place;          /* source location, by cpu_place() */
	const char *prefix; /* NUL-terminated */
	i32 hex, n;
	struct cpu_print_operand at[8];
};

struct cpu_asm {
	u64 place; /* source location, by cpu_place() */
	struct asm_call call;
};

/* A memory access in checked code (every access is reported to `check` below): its properties that are the same in all
 * programs. */
enum cpu_access { HOST_LOAD, HOST_STORE, HOST_ATOMIC };
struct cpu_site {
	u64 place; /* source location, by cpu_place() */
	i32 kind;  /* enum cpu_access */
	i32 bytes; /* bytes of an element */
	i32 param; /* kernel parameter that addresses are computed from; -1: unknown */
	/* lanes: number of elements. each: every element has an address; otherwise only the first element has, and the
	 * others follow it without gaps. */
	i32 lanes;
	i32 each;
	i32 step; /* difference of the row-major numbers of successive elements in the tile */
	i32 rank, shape[8];
};

/* A range of memory: start address, and size in bytes. */
struct cpu_bytes {
	u64 from, size;
};

/* A launch; shared by all its programs and threads. Several threads may call the functions at the same time. */
struct cpu_call {
	const u64 *args; /* the bits of each kernel parameter, in the low bytes */
	u32 grid[3];
	u32 cache_kib; /* size of the last-level cache; 0: unknown */
	/* Records that the program fails at this location (cpu_place()). `element` is an element of a tile with this
	 * shape, or -1. `text` is NUL-terminated. */
	void (*fail)(const struct cpu_call *c, const u32 *pid, u64 place, i64 element, const i32 *shape, i32 rank,
		     const char *text);
	/* data: for each operand the address of its elements, row-major, i1 as a byte */
	void (*print)(const struct cpu_call *c, const u32 *pid, const struct cpu_print *what,
		      const void *const *data);
	/* Called every few hundred iterations by a loop that waits for memory to change (op_may_wait). If all threads
	 * wait, the runtime adds a thread that starts another program. Returns 0, or 1 if the wait cannot end. pid: the
	 * address that the program was called with. */
	i32 (*wait)(const struct cpu_call *c, const u32 *pid, u64 place);
	/* In checked code, called before a load or an atomic operation, and instead of a store. at: the first address,
	 * or a pointer to all addresses. mask: a byte for each element, 0 if it is masked off; or NULL. data: elements
	 * of a store. element: number of the first element in the tile, -1 for a scalar. Returns 0, or 1 if the
	 * program has failed. */
	i32 (*check)(const struct cpu_call *c, const u32 *pid, const struct cpu_site *site, i64 element,
		     const void *at, const u8 *mask, const void *data);
	void *self;
	/* In checked code, for each parameter: memory known to be valid. Aligned loads of consecutive elements within
	 * it do not call `check`. */
	const struct cpu_bytes *good;
	/* Runs inline assembly. tiles: addresses of the elements of each result, then of each operand, i1 as a byte.
	 * Returns 0, or 1 if the program has failed. */
	i32 (*assembly)(const struct cpu_call *c, const u32 *pid, const struct cpu_asm *what, char *const *tiles);
};

/* Runs one program. `scratch` is memory of the calling thread, aligned to 64 bytes, of the size in HOST_RECORD.
 * Returns 0, or 1 after a failure. */
typedef i32 cpu_program(const struct cpu_call *c, const u32 *pid, char *scratch);

#endif
