/* The text of this thread's last failed call: what tl_error returns. */
#ifndef TL_IMAGE_ERROR_H
#define TL_IMAGE_ERROR_H

#include "support/diag.h"
#include "support/recover.h"
#include "runtime/tl.h"

/* Runs the body; a fault in it becomes a status with its text. */
tl_status caught(void (*body)(void *arg), void *arg);

/* Empties the text, as at the beginning of each call. */
void error_clear(void);
/* Empties the text if an error inside a call left one and the call has succeeded all the same. */
void error_call_succeeded(void);
/* A fault that is caught by `r` leaves its message in the text. */
void error_recovery(struct recovery *r);
/* The status of a fault, as this thread's error. */
tl_status error_of_fault(enum fault fault);

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
