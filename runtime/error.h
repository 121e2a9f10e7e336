/* The text of this thread's last failed call: what tl_error returns. */
#ifndef TL_ERROR_H
#define TL_ERROR_H

#include "base/diag.h"
#include "base/recover.h"
#include "runtime/tl.h"

/* Runs the body; a fault in it becomes a status with its text. */
tl_status caught(void (*body)(void *arg), void *arg);

/* The text is empty from now on, as at the beginning of each call. False: the context is not usable any more. */
bool begin_call(const tl_context *ctx);

/* A call of the API: what guard_begin and guard_caught need. See runtime/api.c. */
struct guard {
	struct recovery recovery;
	tl_context *ctx;
	struct store *store; /* the context's when the call began */
};
/* An error: the context is not usable any more. */
tl_status guard_begin(struct guard *g, tl_context *ctx);
/* The status of the fault that ended the call. */
tl_status guard_caught(struct guard *g);
/* The call's own; where it has succeeded in spite of an error inside, there is no text of that. */
tl_status guard_end(struct guard *g, tl_status s);

/* The same of a call that destroys, and has no status. False: nothing can be destroyed. `text`: for a fault's. */
bool destruction_begin(struct guard *g, const tl_context *ctx, char *text, size_t size);
void destruction_end(const struct guard *g);

/* Sets the text and returns `s`, so that a failing function ends in `return failed(TL_ERR_…, "…", …);`. */
tl_status failed(tl_status s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same for a text that is not a format; a final newline is dropped. */
tl_status failed_text(tl_status s, const char *text);
/* The compiler's errors, and the place of the first of them. */
tl_status failed_compile(const struct diags *d);
/* Adds to the error just set, for tl_error_details: where; whose call of the driver; which kernel, if none is named. */
void failed_at(const struct source_place *place);
void failed_driver(const char *call, int result);
void failed_in(const char *kernel);
/* The error just set, to be kept; free it with free(). NULL: out of memory. And the same error again. */
struct kept_error *error_keep(void);
tl_status error_again(const struct kept_error *e);
/* Adds to the text just set. */
void failed_more(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
