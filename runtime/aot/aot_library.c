/* Kernels compiled ahead of time, by name: the rows of a table that `tlc build MANIFEST` wrote. A launch uses the row
 * of the kernel that was recorded with arguments of these types and these compile-time values. */
#include <stdlib.h>

#include "support/span.h"
#include "support/suggest.h"
#include "runtime/image/argument.h"
#include "runtime/image/error.h"
#include "runtime/device/grid.h"
#include "runtime/api/api_guard.h"

/* An argument in a row. */
struct given {
	const char *constant; /* a compile-time value in the language's syntax; NULL: a run-time value */
	enum dtype dtype;     /* of the run-time value, or of its pointee */
	bool pointer;
	bool is_int; /* the constant is `value` */
	i64 value;
};

struct row {
	const tl_built *built;
	const struct given *given;
	u32 ngiven;
	_Atomic(tl_compiled *) compiled; /* NULL: not loaded yet */
	atomic_bool elsewhere;           /* it has no image for this device */
};

struct tl_library {
	struct link link; /* first */
	tl_context *ctx;
	struct arena arena;
	struct row *rows; /* sorted by kernel name */
	u32 len;
	pthread_mutex_t lock; /* of loading */
};

/* --- creating a library ------------------------------------------------------------------------------------------ */

static struct given read_given(const char *text)
{
	size_t len = strlen(text);
	struct given g = {.pointer = *text == '*'};
	g.dtype = dtype_parse(text + g.pointer, len - g.pointer);
	if (g.dtype != DT_COUNT)
		return g;
	char *end;
	g.constant = text;
	g.value = strtoll(text, &end, 10);
	g.is_int = len && len < 19 && !*end;
	return g;
}

static void read_row(struct arena *a, struct row *r)
{
	VEC(struct given) given = {0};
	const char *list = r->built->arguments;
	for (struct argument_span one; next_argument(a, &list, &one);)
		if (one.value)
			vec_push(a, &given, read_given(one.value));
	r->given = given.at;
	r->ngiven = given.len;
}

static int by_kernel(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int order = strcmp(x->built->kernel, y->built->kernel);
	return order ? order : (x->built > y->built) - (x->built < y->built);
}

static void library_free(void *library)
{
	struct tl_library *l = library;
	pthread_mutex_destroy(&l->lock);
	arena_free(&l->arena);
	free(l);
}

static void free_owned(struct link *l)
{
	library_free(l); /* the context frees the kernels */
}

static void read_table(struct tl_library *l, const tl_built *table, size_t n)
{
	l->rows = arena_array(&l->arena, struct row, n + 1);
	memset(l->rows, 0, (n + 1) * sizeof *l->rows);
	l->len = (u32)n;
	for (size_t i = 0; i < n; i++) {
		l->rows[i].built = &table[i];
		read_row(&l->arena, &l->rows[i]);
	}
	qsort(l->rows, n, sizeof *l->rows, by_kernel);
}

API_FUNCTION(tl_library_create, ctx, (tl_context *ctx, const tl_built *table, size_t n, tl_library **out),
	     (ctx, table, n, out))
{
	if (out)
		*out = NULL;
	if (!ctx || !table || !out)
		return failed(TL_ERR_ARGUMENT, "tl_library_create: %s NULL",
			      !ctx    ? "the context is"
			      : table ? "out is"
				      : "the table is");
	struct tl_library *l = tl_calloc(sizeof *l);
	*l = (struct tl_library){.link.free = free_owned, .ctx = ctx, .lock = PTHREAD_MUTEX_INITIALIZER};
	struct cleanup cleanup;
	cleanup_push(&cleanup, library_free, l);
	read_table(l, table, n);
	cleanup_drop(&cleanup);
	context_enter(ctx, &ctx->owned, &l->link);
	*out = l;
	return TL_OK;
}

API_DESTRUCTOR(tl_library_destroy, l ? l->ctx : NULL, (tl_library *l), (l))
{
	if (!l)
		return;
	tl_context *ctx = l->ctx;
	for (u32 i = 0; i < l->len; i++)
		tl_compiled_destroy(l->rows[i].compiled);
	context_remove(ctx, &l->link);
	library_free(l);
	context_leave(ctx);
}

/* --- launching --------------------------------------------------------------------------------------------------- */

/* The first row of a kernel, and the number of its rows. */
static u32 rows_of(const struct tl_library *l, const char *kernel, u32 *first)
{
	u32 lo = 0, hi = l->len, n = 0;
	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;
		if (strcmp(l->rows[mid].built->kernel, kernel) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	*first = lo;
	while (lo + n < l->len && !strcmp(l->rows[lo + n].built->kernel, kernel))
		n++;
	return n;
}

static bool is_integer(const tl_arg *x)
{
	return x->kind == TL_ARG_INT || x->kind == TL_ARG_UINT || x->kind == TL_ARG_BOOL;
}

/* True if the argument has the type that a launch would give it. If not `exact`, any type that can hold the value
 * matches. */
static bool has_type(const tl_arg *x, const struct given *g, bool exact)
{
	if (g->pointer || x->kind == TL_ARG_PTR)
		return g->pointer && x->kind == TL_ARG_PTR && (enum dtype)x->dtype == g->dtype;
	if (!is_integer(x) && x->kind != TL_ARG_FLOAT)
		return false;
	if (x->kind == TL_ARG_FLOAT && !exact)
		return (enum dtype)x->dtype == DT_F32 && g->dtype == DT_F64;
	if (x->typed || exact) {
		enum dtype d = x->typed || int_fits(DT_I32, int_value(x)) ? (enum dtype)x->dtype
			       : int_fits(DT_I64, int_value(x))           ? DT_I64
									  : DT_U64;
		return d == g->dtype;
	}
	return dtype_is_float(g->dtype) || int_converts(g->dtype, int_value(x));
}

/* True if a tl_arg, which the caller may have made without the functions of tl.h, is valid. */
static bool is_argument(const tl_arg *x)
{
	bool text = x->kind == TL_ARG_STR || x->kind == TL_ARG_FUNC;
	return (unsigned)x->kind <= TL_ARG_OPEN && (unsigned)x->dtype < DT_COUNT && (!text || x->s);
}

static bool has_value(struct arena *a, const tl_arg *x, const struct given *g)
{
	if (x->kind == TL_ARG_INT && g->is_int)
		return x->i == g->value;
	if (x->kind == TL_ARG_PTR || x->kind == TL_ARG_TUPLE || x->kind == TL_ARG_DESCRIPTOR)
		return false;
	return !strcmp(literal_text(a, x), g->constant);
}

/* The number of leading arguments that match the row. An open argument matches a compile-time value. */
static u32 fitting(struct arena *a, const struct row *r, const tl_arg *args, size_t n, bool exact)
{
	u32 i = 0;
	for (; i < r->ngiven; i++) {
		const struct given *g = &r->given[i];
		bool open = i >= n || args[i].kind == TL_ARG_OPEN;
		if (open ? !g->constant : !(g->constant ? has_value(a, &args[i], g) : has_type(&args[i], g, exact)))
			break;
	}
	return i;
}

static bool fits(struct arena *a, const struct row *r, const tl_arg *args, size_t n, bool exact)
{
	return n <= r->ngiven && fitting(a, r, args, n, exact) == r->ngiven;
}

static tl_status no_kernel(const struct tl_library *l, struct arena *a, const char *kernel)
{
	const char **names = arena_array(a, const char *, l->len + 1u);
	for (u32 i = 0; i < l->len; i++)
		names[i] = l->rows[i].built->kernel;
	const char *like = did_you_mean(kernel, names, l->len);
	return failed(TL_ERR_ARGUMENT, "the table of compiled kernels has no '%s'%s%s%s", kernel,
		      like ? "\n      = hint: did you mean '" : "", like ? like : "", like ? "'?" : "");
}

static tl_status none_fits(struct arena *a, const struct row *r, u32 nrows, const tl_arg *args, size_t n)
{
	failed(TL_ERR_ARGUMENT, "%s was not compiled for the arguments (", r->built->kernel);
	for (size_t i = 0; i < n; i++) {
		const tl_arg *x = &args[i];
		failed_more("%s", i ? ", " : "");
		if (x->kind == TL_ARG_PTR)
			failed_more("*%s", dtype_name((enum dtype)x->dtype));
		else if (x->kind == TL_ARG_TUPLE || x->kind == TL_ARG_DESCRIPTOR || x->kind == TL_ARG_OPEN)
			failed_more(x->kind == TL_ARG_TUPLE  ? "a tuple"
				    : x->kind == TL_ARG_OPEN ? "open"
							     : "a descriptor");
		else
			failed_more("%s", literal_text(a, x));
	}
	const struct row *nearest = r; /* the row with the most matching leading arguments */
	for (u32 i = 1; i < nrows; i++)
		if (fitting(a, &r[i], args, n, false) > fitting(a, nearest, args, n, false))
			nearest = &r[i];
	failed_more(")\n      = note: it was compiled for (%s)", nearest->built->arguments);
	if (nrows > 1)
		failed_more(", and %u other%s", nrows - 1, nrows > 2 ? "s" : "");
	failed_more("\n      = hint: record a launch with these arguments (TL_MANIFEST), and build the table again");
	return TL_ERR_ARGUMENT;
}

/* Loads the row's kernel on the device, at its first launch. */
static tl_status loaded(struct tl_library *l, struct row *r, tl_compiled **out)
{
	*out = r->compiled;
	if (*out)
		return TL_OK;
	struct held h;
	lock_hold(&h, &l->lock);
	tl_compiled *made = r->compiled;
	tl_status s = made ? TL_OK : r->built->load(l->ctx, &made);
	*out = made;
	if (!s)
		r->compiled = made;
	else if (s == TL_ERR_DEVICE)
		r->elsewhere = true;
	lock_release(&h);
	return s;
}

static tl_status launch_row(struct tl_library *l, struct row *r, const tl_config *cfg, const tl_arg *args, size_t n)
{
	u64 bits[MAX_KERNEL_PARAMS] = {0};
	tl_compiled *compiled;
	tl_status s = loaded(l, r, &compiled);
	for (u32 k = 0; k < MIN(n, MAX_KERNEL_PARAMS); k++)
		if (!r->given[k].constant)
			bits[k] = arg_bits(&args[k], r->given[k].pointer, r->given[k].dtype);
	return s ? s : tl_compiled_launch(compiled, cfg, bits, MIN(r->ngiven, MAX_KERNEL_PARAMS));
}

/* Launches a matching row for this device. Rows with the same arguments may be for other devices. */
static tl_status launch(struct tl_library *l, struct arena *a, const char *kernel, const tl_config *cfg,
			const tl_arg *args, size_t n)
{
	u32 first, nrows = rows_of(l, kernel, &first);
	struct row *rows = l->rows + first, *other = NULL;
	if (!nrows)
		return no_kernel(l, a, kernel);
	for (u32 i = 0; i < 2 * nrows; i++) { /* exact types first */
		struct row *r = &rows[i % nrows];
		if (!fits(a, r, args, n, i < nrows))
			continue;
		tl_status s = r->elsewhere ? TL_ERR_DEVICE : launch_row(l, r, cfg, args, n);
		if (!r->elsewhere)
			return s;
		other = r;
	}
	return other ? launch_row(l, other, cfg, args, n) : none_fits(a, rows, nrows, args, n);
}

API_FUNCTION(tl_library_launch, l ? l->ctx : NULL,
	     (tl_library *l, const char *kernel, const tl_config *cfg, const tl_arg *args, size_t n),
	     (l, kernel, cfg, args, n))
{
	if (!l || !kernel || !cfg || (!args && n))
		return failed(TL_ERR_ARGUMENT, "tl_library_launch: %s NULL",
			      !l        ? "the library is"
			      : !kernel ? "the kernel's name is"
			      : cfg     ? "the arguments are"
					: "the config is");
	for (size_t i = 0; i < n; i++)
		if (!is_argument(&args[i]))
			return failed(TL_ERR_ARGUMENT,
				      "%s: argument %zu is not valid: an unknown kind or type, or a NULL text", kernel,
				      i);
	struct arena a = {0};
	struct cleanup cleanup;
	cleanup_arena(&cleanup, &a);
	tl_status s = launch(l, &a, kernel, cfg, args, n);
	cleanup_drop(&cleanup);
	arena_free(&a);
	return s;
}
