#include "runtime/emulate/divisor_check.h"

#include "support/compile_checks.h"
#include "support/recover.h"
#include "analysis/divisors.h"
#include "runtime/launch/specialize.h"

/* The argument's types with a divisor for each integer that has an entry above 1 in `useful`; NULL: for all integers.
 * *leaf: the number of the next leaf. The strides of descriptors keep the divisors that a tensor map needs. */
static struct arg_spec with_divisors(struct arena *a, struct arg_spec s, const i16 *useful, bool inside, u32 *leaf)
{
	struct sig_type t;
	struct arg_spec *items = arena_array(a, struct arg_spec, s.nitems + 1);
	for (u32 i = 0; i < s.nitems; i++)
		items[i] = with_divisors(a, s.items[i], useful, s.shape == ARG_DESCRIPTOR, leaf);
	s.items = items;
	if (s.shape != ARG_LEAF)
		return s;
	bool one = !useful || useful[*leaf] > DIVISOR_NONE;
	++*leaf;
	if (!s.type || s.constant || !parse_sig_type(s.type, &t) || t.pointers || t.one || !dtype_is_int(t.dtype) ||
	    t.dtype == DT_I1 || (inside && !one))
		return s;
	const char *name = arena_str(a, s.type, strcspn(s.type, ":"));
	s.type = one ? arena_printf(a, "%s:%d", name, DIVISOR_TILE) : name;
	return s;
}

static const char *ptx_with(struct unit *u, const struct target *target, const struct build *b, const i16 *useful)
{
	struct build other = *b;
	struct compiled out;
	struct arg_spec *args = arena_array(&u->arena, struct arg_spec, b->func->nparams + 1);
	u32 leaf = 0;
	unit_again(u, b->unit);
	for (u32 i = 0; i < b->func->nparams; i++)
		args[i] = with_divisors(&u->arena, b->args[i], useful, false, &leaf);
	other.unit = u;
	other.args = args;
	return device_compile(target, &other, &out) ? out.code : "it does not compile";
}

/* True if the codes are equal except for comments, in which LLVM counts the calls of a process. */
static bool same_code(const char *x, const char *y)
{
	for (; *x && *x == *y; x += *x != 0, y += *y != 0)
		if (x[0] == '/' && x[1] == '/') {
			x += strcspn(x, "\n");
			y += strcspn(y, "\n");
		}
	return *x == *y;
}

static void free_units(void *units)
{
	for (int i = 0; i < 3; i++)
		unit_free((struct unit *)units + i);
}

void check_divisors(const struct target *target, const struct build *b)
{
	if (!compile_check("divisors") || b->stage || !b->func)
		return;
	struct unit u[3] = {0};
	struct cleanup c;
	i16 useful[MAX_KERNEL_PARAMS];
	cleanup_push(&c, free_units, u);
	const struct compile_options o = {.target = *target, .codegen = b->codegen};
	unit_again(&u[0], b->unit);
	if (unit_divisors(&u[0], b->func, b->args, &o, useful, MAX_KERNEL_PARAMS))
		tl_assert(same_code(ptx_with(&u[1], target, b, NULL), ptx_with(&u[2], target, b, useful)));
	cleanup_run(&c);
}
