/* The diagnostics of an error, for tl_error_details: immutable lists, shared by threads that get the same error. */
#ifndef TL_IMAGE_DIAGNOSTIC_LIST_H
#define TL_IMAGE_DIAGNOSTIC_LIST_H

#include <string.h>

#include "runtime/tl.h"

struct diagnostic_list;
/* A text that is not terminated. `at` is NULL: there is none. */
struct text {
	const char *at;
	size_t len;
};
static inline struct text text_of(const char *s) { return (struct text){s, s ? strlen(s) : 0}; }
/* A diagnostic: the numbers of `d`, and texts. */
struct diagnostic_parts {
	tl_diagnostic d;
	struct text file, text, hint, shown;
};
/* Copies the texts. NULL: memory runs out, or n is 0. */
struct diagnostic_list *list_new(const struct diagnostic_parts *parts, size_t n);
/* The error with its hint, and its notes ("= note: …"), from its text and place. NULL: memory runs out. */
struct diagnostic_list *list_of_error(const tl_error_info *e);
/* list_keep adds a reference, and list_drop removes one. NULL is allowed. */
struct diagnostic_list *list_keep(struct diagnostic_list *l);
void list_drop(struct diagnostic_list *l);
const tl_diagnostic *const *list_diagnostics(const struct diagnostic_list *l, size_t *n);

/* This thread's list, which list_set replaces; it takes over the caller's reference. The list is dropped when the
 * thread ends. */
struct diagnostic_list *list_get(void);
void list_set(struct diagnostic_list *l);

#endif
