/* The message of this thread's last failed call, which tl_error returns. */
#ifndef TL_IMAGE_ERROR_H
#define TL_IMAGE_ERROR_H

#include "support/diag.h"
#include "support/recover.h"
#include "runtime/tl.h"

/* Runs the body. A fault in it is returned as a status, with a message. */
tl_status caught(void (*body)(void *arg), void *arg);

/* Empties the message, at the beginning of each call. */
void error_clear(void);
/* Empties the message that an error inside a successful call has left. */
void error_call_succeeded(void);
/* Makes a fault that `r` catches write its message to this thread's message. */
void error_recovery(struct recovery *r);
/* The status of a fault, as this thread's error. */
tl_status error_of_fault(enum fault fault);

/* Sets the message and returns `s`, so that a failing function ends in `return failed(TL_ERR_…, "…", …);`. */
tl_status failed(tl_status s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Like failed, with a text that is not a format; a final newline is dropped. */
tl_status failed_text(tl_status s, const char *text);
/* Add details to the error just set, for tl_error_details: the place in a source; the driver call and its result; the
 * kernel, if no kernel has been set. */
void failed_at(const struct source_place *place);
void failed_driver(const char *call, int result);
void failed_in(const char *kernel);
/* error_keep copies the error just set, or returns NULL if memory runs out; error_drop frees the copy. error_again sets
 * the same error again. */
struct kept_error *error_keep(void);
tl_status error_again(const struct kept_error *e);
void error_drop(struct kept_error *e);
/* Appends to the message just set. */
void failed_more(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
