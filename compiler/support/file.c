#include "support/file.h"

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
