/* Files as a whole. */
#ifndef TLC_SUPPORT_FILE_H
#define TLC_SUPPORT_FILE_H

#include "support/arena.h"

/* The bytes of a file, and a NUL behind them; NULL if it cannot be read, is no regular file, or has more than `most`
 * bytes. */
char *file_read(struct arena *a, const char *path, size_t most, size_t *len);
/* The same of a file that is open, which is closed. */
char *file_read_open(struct arena *a, int fd, size_t most, size_t *len);

#endif
