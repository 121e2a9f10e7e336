/* Reading tensors from a file in the safetensors format (files.c), or from a folder of .npy files (npy.c). */
#ifndef FILES_H
#define FILES_H

#include "json.h"

/* A tensor of the file or folder. */
struct entry {
	char name[64], type[8]; /* F32, F16 and BF16 are supported */
	int rank;
	int64_t shape[4], begin, end; /* bytes of the data */
	const char *data;
};

struct reader {
	struct json json; /* its path is the file or the folder */
	struct entry *entries;
	size_t n;
	struct checkpoint *out; /* receives __metadata__ */
};

void reader_add(struct reader *r, const struct entry *e);
/* Maps all NAME.npy files of the folder into memory. Ends the program if a file is damaged. */
void npy_open(struct reader *r);

#endif
