#include "support/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/recover.h"

static void close_file(void *fd)
{
	close(*(int *)fd);
}

char *file_read_open(struct arena *a, int fd, size_t most, size_t *len)
{
	struct stat st;
	struct cleanup c;
	cleanup_push(&c, close_file, &fd);
	bool whole = !fstat(fd, &st) && S_ISREG(st.st_mode) && (u64)st.st_size <= most;
	size_t size = whole ? (size_t)st.st_size : 0;
	char *text = whole ? arena_alloc(a, size + 1) : NULL;
	*len = 0;
	for (ssize_t n; *len < size && (n = read(fd, text + *len, size - *len)) > 0;)
		*len += (size_t)n;
	cleanup_run(&c);
	return text;
}

char *file_read(struct arena *a, const char *path, size_t most, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* without O_NONBLOCK, opening a FIFO
									    * blocks */
	return fd < 0 ? NULL : file_read_open(a, fd, most, len);
}

char *stream_read(struct arena *a, FILE *f, size_t most, size_t *len)
{
	struct strbuf text = {.arena = a};
	char some[4096];
	sb_puts(&text, "");
	errno = 0;
	for (size_t n; text.len <= most && (n = fread(some, 1, sizeof some, f));)
		sb_add(&text, some, n);
	*len = text.len;
	if (text.len > most)
		errno = EFBIG;
	else if (ferror(f) && !errno)
		errno = EIO;
	return text.len > most || ferror(f) ? NULL : text.at;
}
