#include "support/device_text.h"

#include <string.h>

/* The coordinate along `dim` of a flat, row-major index. */
static i64 coordinate(const i32 *shape, i32 rank, i64 element, i32 dim)
{
	for (i32 k = rank - 1; k > dim; k--)
		element /= shape[k];
	return element % shape[dim];
}

void program_failure_text(struct strbuf *out, const struct program_failure *f, struct source_place *place,
			  const char *format, va_list ap)
{
	const struct source *s = f->source;
	if (s)
		sb_printf(out, "%s:%u:%u: ", s->name, f->loc.line, f->loc.col);
	if (s && place)
		*place = (struct source_place){s->name, f->loc.line, f->loc.col};
	sb_puts(out, "error: ");
	sb_vprintf(out, format, ap);
	sb_puts(out, " (");
	if (f->element >= 0 && f->rank) {
		for (i32 k = 0; k < f->rank; k++)
			sb_printf(out, k ? ", %lld" : "tile element [%lld",
				  (long long)coordinate(f->shape, f->rank, f->element, k));
		sb_puts(out, "], ");
	}
	sb_printf(out, "program (%u, %u, %u))\n", f->pid[0], f->pid[1], f->pid[2]);
	if (s)
		source_show(s, f->loc, out);
}

static void print_element(struct strbuf *out, const struct printed_tile *t, const char *elem)
{
	u64 bits = 0;
	memcpy(&bits, elem, (size_t)dtype_bytes(t->dtype));
	if (t->hex && dtype_is_float(t->dtype) && !t->is_pointer)
		sb_printf(out, "%a", dtype_decode_float(t->dtype, bits));
	else if (t->hex)
		sb_printf(out, "0x%0*llx", dtype_bytes(t->dtype) * 2, (unsigned long long)bits);
	else if (t->is_pointer)
		sb_printf(out, "0x%llx", (unsigned long long)bits);
	else if (dtype_is_float(t->dtype))
		sb_printf(out, "%f", dtype_decode_float(t->dtype, bits));
	else if (t->is_signed)
		sb_printf(out, "%lld", (long long)dtype_decode_int(t->dtype, bits));
	else
		sb_printf(out, "%llu", (unsigned long long)bits);
}

void printed_tile_text(struct strbuf *out, const struct printed_tile *t, const u32 *pid, const char *prefix,
		       i32 operand)
{
	const char *elem = t->data;
	i64 n = 1;
	for (i32 k = 0; k < t->rank; k++)
		n *= t->shape[k];
	for (i64 x = 0; x < n; x++, elem += dtype_bytes(t->dtype)) {
		sb_printf(out, "pid (%u, %u, %u) idx (", pid[0], pid[1], pid[2]);
		for (i32 k = 0; k < t->rank; k++)
			sb_printf(out, k ? ", %*d" : "%*d", snprintf(NULL, 0, "%d", t->shape[k] - 1),
				  (i32)coordinate(t->shape, t->rank, x, k));
		sb_printf(out, ")%s", prefix);
		if (operand >= 0)
			sb_printf(out, "(operand %d) ", operand);
		print_element(out, t, elem);
		sb_puts(out, "\n");
	}
}
