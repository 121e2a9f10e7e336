/* Weights as a folder of files NAME.npy, one for each tensor, in NumPy's format: 6 bytes of magic, the version, the
 * length of the header; the header, a Python dict with type, order and shape; the elements.
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html */
#include "files.h"
#include "program.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[6] = "\x93NUMPY";

/* --- reading ------------------------------------------------------------------------------------------------- */

/* The value of 'key' in the header; NULL: there is none. */
static const char *value_of(const char *header, const char *key)
{
	const char *at = strstr(header, key);
	at = at ? strchr(at, ':') : NULL;
	return at ? at + 1 + strspn(at + 1, " ") : NULL;
}

/* False if the header is malformed, or the type of the elements is not supported. */
static bool read_header(const char *header, struct entry *e, int64_t *count)
{
	const char *type = value_of(header, "'descr'"), *order = value_of(header, "'fortran_order'"),
		   *shape = value_of(header, "'shape'");
	if (!type || !order || !shape || strncmp(order, "False", 5) || *shape != '(')
		return false;
	strcpy(e->type, !strncmp(type, "'<f4'", 5) ? "F32" : !strncmp(type, "'<f2'", 5) ? "F16" : "");
	*count = 1;
	for (char *at = (char *)shape + 1; *at != ')';) {
		int64_t size = strtoll(at, &at, 10);
		if (e->rank == 4 || size < 0 || size > 1 << 30 || __builtin_mul_overflow(*count, size, count))
			return false;
		e->shape[e->rank++] = size;
		at += strspn(at, ", ");
		if (*at != ')' && (*at < '0' || *at > '9'))
			return false;
	}
	return *e->type && e->rank;
}

static void read_file_of(struct reader *r, const char *name)
{
	char path[4096], header[1024] = "";
	struct stat status;
	struct entry e = {0};
	int64_t count = 0;
	snprintf(path, sizeof path, "%s/%s", r->json.path, name);
	int file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0 || fstat(file, &status))
		die("%s: %s", path, strerror(errno));
	size_t size = (size_t)status.st_size, start = 0, len = 0;
	const char *bytes = size >= 12 ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0) : NULL;
	if (bytes == MAP_FAILED)
		die("%s: %s", path, strerror(errno));
	close(file);
	if (bytes && !memcmp(bytes, magic, sizeof magic)) {
		uint32_t n;
		memcpy(&n, bytes + 8, sizeof n);
		len = bytes[6] == 1 ? n & 0xFFFF : n;
		start = bytes[6] == 1 ? 10 : 12;
	}
	if (!start || len >= sizeof header || len > size - start)
		die("%s is no file of NumPy's\nhint: it may be truncated", path);
	memcpy(header, bytes + start, len);
	if (!read_header(header, &e, &count))
		die("%s: numbers of type <f4 or <f2 in C's order can be read, and this has %s", path, header);
	e.data = bytes + start + len;
	e.end = count * (strcmp(e.type, "F32") ? 2 : 4);
	if ((uint64_t)e.end > size - start - len)
		die("%s has %zu bytes of numbers, and its shape says %" PRId64 "\nhint: the file is truncated", path,
		    size - start - len, e.end);
	snprintf(e.name, sizeof e.name, "%.*s", (int)strlen(name) - 4, name);
	reader_add(r, &e);
}

void npy_open(struct reader *r)
{
	DIR *folder = opendir(r->json.path);
	if (!folder)
		die("%s: %s", r->json.path, strerror(errno));
	for (const struct dirent *d; (d = readdir(folder));) {
		size_t len = strlen(d->d_name);
		if (len > 4 && len < 64 && !strcmp(d->d_name + len - 4, ".npy"))
			read_file_of(r, d->d_name);
	}
	closedir(folder);
}

/* --- writing ------------------------------------------------------------------------------------------------- */

static bool write_tensor(FILE *f, const struct place *p, const float *data)
{
	char header[128];
	int n = snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': False, 'shape': (%d,", p->shape[0]);
	n += snprintf(header + n, sizeof header - (size_t)n, p->rank == 2 ? " %d), }" : "), }", p->shape[1]);
	uint16_t len = (uint16_t)((10 + n + 1 + 63) / 64 * 64 - 10); /* the elements are aligned to 64 bytes */
	fwrite(magic, 1, sizeof magic, f);
	fwrite("\1", 1, 2, f);
	fwrite(&len, sizeof len, 1, f);
	fprintf(f, "%-*s\n", len - 1, header);
	fwrite(data, sizeof *data, p->len, f);
	return !fflush(f) && !ferror(f);
}

int export(const struct options *o)
{
	struct checkpoint c;
	char path[4096];
	int n;
	size_t size, decayed;
	checkpoint_read(&c, o->file, o->heads);
	struct place *places = gpt_places(&c.config, &n, &size, &decayed);
	const char *folder = o->out ? o->out : "weights";
	if (mkdir(folder, 0777) && errno != EEXIST)
		die("%s: %s", folder, strerror(errno));
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof path, "%s/%s.npy", folder, places[i].name);
		FILE *f = fopen(path, "wb");
		bool written = f && write_tensor(f, &places[i], c.weights + places[i].first);
		if (f && fclose(f))
			written = false;
		if (!written)
			die("%s: %s", path, strerror(errno));
	}
	printf("%d tensors in %s, of %d heads\n", n, folder, c.config.heads);
	free(places);
	checkpoint_free(&c);
	return 0;
}
