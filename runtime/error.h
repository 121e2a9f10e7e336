/* The text of this thread's last failed call: what tl_error returns. */
#ifndef TL_ERROR_H
#define TL_ERROR_H

#include "runtime/tl.h"

/* Sets the text and returns `s`, so that a failing function ends in `return failed(TL_ERR_…, "…", …);`. */
tl_status failed(tl_status s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same for a text that is not a format; a final newline is dropped. */
tl_status failed_text(tl_status s, const char *text);
/* Adds to the text just set. */
void failed_more(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
