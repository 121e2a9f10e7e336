/* Output of running programs: the text of a program's failure, and the lines of device_print. Used by the CPU runtime,
 * the interpreter and the simulator. */
#ifndef TLC_SUPPORT_DEVICE_TEXT_H
#define TLC_SUPPORT_DEVICE_TEXT_H

#include "support/diag.h"
#include "support/dtype.h"

struct program_failure {
	const struct source *source; /* NULL if not known */
	struct loc loc;
	const u32 *pid;
	const i32 *shape; /* shape of the tile that `element` indexes, row-major */
	i32 rank;
	i64 element; /* flat index of the failing element; negative if none */
};
/* Appends "file:3:5: error: … (tile element [7], program (0, 0, 0))" and the source line. If the place is known and
 * `place` is not NULL, *place is set to it. */
void program_failure_text(struct strbuf *out, const struct program_failure *f, struct source_place *place,
			  const char *format, va_list ap) __attribute__((format(printf, 4, 0)));

struct printed_tile {
	enum dtype dtype; /* DT_I64 for pointers */
	bool is_signed, is_pointer, hex;
	i32 rank;
	const i32 *shape;
	const void *data; /* row-major */
};
/* Appends a line for each element: "pid (0, 0, 0) idx ( 3) x: 1.500000". `operand` is the number of the operand if
 * device_print has several, else -1. */
void printed_tile_text(struct strbuf *out, const struct printed_tile *t, const u32 *pid, const char *prefix,
		       i32 operand);

#endif
