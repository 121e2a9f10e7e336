/* What a running program says: the text of its failure, and what device_print prints. Shared by all that run programs
 * on the host. */
#ifndef TLC_SUPPORT_DEVICE_TEXT_H
#define TLC_SUPPORT_DEVICE_TEXT_H

#include "support/diag.h"
#include "support/dtype.h"

struct program_failure {
	const struct source *source; /* NULL: not known */
	struct loc loc;
	const u32 *pid;
	const i32 *shape; /* of the tile that `element` is counted in, row-major */
	i32 rank;
	i64 element; /* negative: of none */
};
/* Appends "file:3:5: error: … (tile element [7], program (0, 0, 0))" with the line of the source. *place, unless NULL,
 * gets the place, where it is known. */
void program_failure_text(struct strbuf *out, const struct program_failure *f, struct source_place *place,
			  const char *format, va_list ap) __attribute__((format(printf, 4, 0)));

struct printed_tile {
	enum dtype dtype; /* of pointers DT_I64 */
	bool is_signed, is_pointer, hex;
	i32 rank;
	const i32 *shape;
	const void *data; /* row-major */
};
/* A line for each element: "pid (0, 0, 0) idx ( 3) x: 1.500000". operand: its number where there are several, else -1.
 */
void printed_tile_text(struct strbuf *out, const struct printed_tile *t, const u32 *pid, const char *prefix,
		       i32 operand);

#endif
