/* Tensors in files: of one in safetensors' format (files.c), or of a folder of .npy files (npy.c). */
#ifndef FILES_H
#define FILES_H

#include "json.h"

/* A tensor that has been found. */
struct entry {
	char name[64], type[8]; /* F32, F16 or BF16 can be read */
	int rank;
	int64_t shape[4], begin, end; /* bytes of the data */
	const char *data;
};

struct reader {
	struct json json; /* its path is that of the file or the folder */
	struct entry *entries;
	size_t n;
	struct checkpoint *out; /* for what __metadata__ says */
};

void reader_add(struct reader *r, const struct entry *e);
/* All of NAME.npy in the folder, mapped for the process. Ends it where a file is damaged. */
void npy_open(struct reader *r);

#endif
