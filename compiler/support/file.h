/* Reading whole files and streams into memory. */
#ifndef TLC_SUPPORT_FILE_H
#define TLC_SUPPORT_FILE_H

#include <stdio.h>

#include "support/arena.h"

/* The bytes of a file, followed by a NUL. NULL if the file cannot be read, is not a regular file, or has more than
 * `most` bytes. */
char *file_read(struct arena *a, const char *path, size_t most, size_t *len);
/* Same for an open file descriptor, which is closed. */
char *file_read_open(struct arena *a, int fd, size_t most, size_t *len);
/* The bytes of a stream up to its end, followed by a NUL. NULL: an error, which is in errno; EFBIG: more than `most`
 * bytes. */
char *stream_read(struct arena *a, FILE *f, size_t most, size_t *len);

#endif
