/* Weights in the safetensors format: 8 bytes with the length of the header; the header, JSON with the type, shape and
 * place of each tensor; the tensors. https://huggingface.co/docs/safetensors */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the header ---------------------------------------------------------------------------------------------- */

void reader_add(struct reader *r, const struct entry *e)
{
	struct entry *more = realloc(r->entries, (r->n + 1) * sizeof *e);
	if (!more)
		die("out of memory");
	r->entries = more;
	r->entries[r->n++] = *e;
}

static int integers(struct json *j, int64_t *out, int most)
{
	int n = 0;
	json_expect(j, '[');
	if (json_accept(j, ']'))
		return 0;
	do {
		if (n == most)
			json_damaged(j, "too many numbers");
		out[n++] = json_integer(j);
	} while (json_accept(j, ','));
	json_expect(j, ']');
	return n;
}

static void metadata(struct reader *r)
{
	struct checkpoint *c = r->out;
	json_expect(&r->json, '{');
	if (json_accept(&r->json, '}'))
		return;
	do {
		char key[64], value[sizeof c->tokenizer];
		json_string(&r->json, key, sizeof key);
		json_expect(&r->json, ':');
		json_string(&r->json, value, sizeof value);
		if (!strcmp(key, "heads"))
			c->config.heads = atoi(value);
		else if (!strcmp(key, "step"))
			c->step = atoi(value);
		else if (!strcmp(key, "seed"))
			c->seed = strtoull(value, NULL, 10);
		else if (!strcmp(key, "tokenizer"))
			memcpy(c->tokenizer, value, sizeof value);
	} while (json_accept(&r->json, ','));
	json_expect(&r->json, '}');
}

static void tensor(struct reader *r, struct entry *e)
{
	int64_t offsets[2] = {-1, -1};
	char key[32];
	json_expect(&r->json, '{');
	do {
		json_string(&r->json, key, sizeof key);
		json_expect(&r->json, ':');
		if (!strcmp(key, "dtype"))
			json_string(&r->json, e->type, sizeof e->type);
		else if (!strcmp(key, "shape"))
			e->rank = integers(&r->json, e->shape, 4);
		else if (!strcmp(key, "data_offsets") && integers(&r->json, offsets, 2) == 2)
			e->begin = offsets[0], e->end = offsets[1];
		else
			json_damaged(&r->json, "dtype, shape or two data_offsets expected");
	} while (json_accept(&r->json, ','));
	json_expect(&r->json, '}');
	if (offsets[1] < 0 || e->begin > e->end)
		json_damaged(&r->json, "a tensor without a place");
}

static void header(struct reader *r)
{
	json_expect(&r->json, '{');
	if (json_accept(&r->json, '}'))
		return;
	do {
		struct entry e = {0};
		json_string(&r->json, e.name, sizeof e.name);
		json_expect(&r->json, ':');
		if (!strcmp(e.name, "__metadata__")) {
			metadata(r);
			continue;
		}
		tensor(r, &e);
		if (!strncmp(e.name, "transformer.", 12)) /* prefix in files of complete language models */
			memmove(e.name, e.name + 12, sizeof e.name - 12);
		reader_add(r, &e);
	} while (json_accept(&r->json, ','));
	json_expect(&r->json, '}');
	if (json_peek(&r->json))
		json_damaged(&r->json, "text behind the header's end");
}

/* --- reading ------------------------------------------------------------------------------------------------- */

static const struct entry *find(const struct reader *r, const char *name)
{
	for (size_t i = 0; i < r->n; i++)
		if (!strcmp(r->entries[i].name, name))
			return &r->entries[i];
	return NULL;
}

/* The tensor for this place, checked; the data has `size` bytes after the header. */
static const struct entry *entry_of(const struct reader *r, const struct place *p, size_t size)
{
	const struct entry *e = find(r, p->name);
	if (!e)
		die("%s has no tensor %s\nhint: names and shapes are those of GPT-2", r->json.path, p->name);
	if (e->rank != p->rank || e->shape[0] != p->shape[0] || (p->rank == 2 && e->shape[1] != p->shape[1]))
		die("%s: %s is not of shape %d x %d", r->json.path, p->name, p->shape[0], p->shape[1]);
	if (strcmp(e->type, "F32") && strcmp(e->type, "BF16") && strcmp(e->type, "F16"))
		die("%s: %s has type %s; F32, F16 and BF16 can be read", r->json.path, e->name, e->type);
	if ((uint64_t)e->end > size)
		die("%s: %s ends at byte %" PRId64 " behind the header, the file already at %zu\n"
		    "hint: the file is truncated",
		    r->json.path, e->name, e->end, size);
	if ((uint64_t)(e->end - e->begin) != p->len * (strcmp(e->type, "F32") ? 2 : 4))
		die("%s: %s has %" PRId64 " bytes, but %zu numbers of type %s", r->json.path, e->name,
		    e->end - e->begin, p->len, e->type);
	return e;
}

static void numbers(const struct entry *e, float *out, size_t len)
{
	const char *data = e->data + e->begin;
	if (!strcmp(e->type, "F32")) {
		memcpy(out, data, len * sizeof *out);
		return;
	}
	for (size_t i = 0; i < len; i++) {
		uint16_t half;
		memcpy(&half, data + 2 * i, sizeof half);
		if (!strcmp(e->type, "BF16")) {
			uint32_t u = (uint32_t)half << 16;
			memcpy(&out[i], &u, sizeof u);
		} else {
			_Float16 h;
			memcpy(&h, &half, sizeof h);
			out[i] = (float)h;
		}
	}
}

static void configure(const struct reader *r, struct config *c, int heads)
{
	const struct entry *tokens = find(r, "wte.weight"), *positions = find(r, "wpe.weight");
	char name[64];
	if (!tokens || !positions || tokens->rank != 2 || positions->rank != 2)
		die("%s has no matrices wte.weight and wpe.weight\nhint: it is no GPT-2", r->json.path);
	for (int i = 0; i < 2; i++)
		if (tokens->shape[i] < 1 || tokens->shape[i] > 1 << 24 || positions->shape[i] < 1 ||
		    positions->shape[i] > 1 << 24)
			die("%s: wte.weight or wpe.weight has an impossible shape", r->json.path);
	c->vocabulary = (int)tokens->shape[0];
	c->channels = (int)tokens->shape[1];
	c->context = (int)positions->shape[0];
	do
		snprintf(name, sizeof name, "h.%d.ln_1.weight", c->layers++);
	while (find(r, name));
	if (!--c->layers)
		die("%s has no layer: no tensor h.0.ln_1.weight", r->json.path);
	if (heads)
		c->heads = heads;
	else if (!c->heads)
		c->heads = c->channels / 64;
	if (c->heads < 1 || c->channels % c->heads)
		die("%s: %d channels are not divisible by %d heads\nhint: --heads says how many there are",
		    r->json.path, c->channels, c->heads);
}

/* Opens the file and reads its header. Returns the number of bytes after the header. */
static size_t open_file(struct reader *r, char **bytes, size_t *size)
{
	const char *path = r->json.path;
	struct stat status;
	int file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0 || fstat(file, &status))
		die("%s: %s", path, strerror(errno));
	*size = (size_t)status.st_size;
	if (*size < 16)
		die("%s has %zu bytes: that is no file of weights", path, *size);
	*bytes = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, file, 0);
	if (*bytes == MAP_FAILED)
		die("%s: %s", path, strerror(errno));
	close(file);
	uint64_t len;
	memcpy(&len, *bytes, sizeof len);
	if (len > *size - 8)
		die("%s: a header of %" PRIu64 " bytes in a file of %zu\n"
		    "hint: the file is truncated, or not in the format safetensors",
		    path, len, *size);
	r->json = (struct json){path, *bytes, *bytes + 8, *bytes + 8 + len};
	const char *data = r->json.end;
	header(r);
	for (size_t i = 0; i < r->n; i++)
		r->entries[i].data = data;
	return *size - 8 - (size_t)len;
}

void checkpoint_read(struct checkpoint *c, const char *path, int heads)
{
	*c = (struct checkpoint){0};
	struct reader r = {.json.path = path, .out = c};
	struct stat status;
	char *bytes = NULL;
	size_t size = 0, rest = SIZE_MAX; /* files of a folder have been checked */
	if (!stat(path, &status) && S_ISDIR(status.st_mode))
		npy_open(&r);
	else
		rest = open_file(&r, &bytes, &size);
	configure(&r, &c->config, heads);

	int n;
	size_t total, decayed;
	struct place *places = gpt_places(&c->config, &n, &total, &decayed);
	for (int i = 0; i < n; i++) /* before memory for the tensors is allocated */
		entry_of(&r, &places[i], rest);
	float **const arenas[] = {&c->weights, &c->moment1, &c->moment2};
	static const char *const moments[] = {NULL, "optimizer.m", "optimizer.v"};
	for (size_t i = 0; i < (find(&r, moments[1]) ? COUNT(arenas) : 1); i++) {
		*arenas[i] = calloc(total, sizeof(float));
		if (!*arenas[i])
			die("out of memory");
		if (!i)
			continue;
		struct place all = {.rank = 1, .shape = {(int)total, 1}, .len = total};
		snprintf(all.name, sizeof all.name, "%s", moments[i]);
		numbers(entry_of(&r, &all, rest), *arenas[i], total);
	}
	for (int i = 0; i < n; i++)
		numbers(entry_of(&r, &places[i], rest), c->weights + places[i].first, places[i].len);
	if (!c->moment1)
		c->step = 0;
	free(places);
	free(r.entries);
	if (bytes)
		munmap(bytes, size);
}

void checkpoint_free(struct checkpoint *c)
{
	free(c->weights);
	free(c->moment1);
	free(c->moment2);
}

/* --- writing ------------------------------------------------------------------------------------------------- */

static void put_tensor(FILE *f, const char *name, int rank, size_t rows, size_t columns, size_t *offset)
{
	size_t bytes = rows * columns * sizeof(float);
	fprintf(f, ",\"%s\":{\"dtype\":\"F32\",\"shape\":[%zu", name, rows);
	if (rank == 2)
		fprintf(f, ",%zu", columns);
	fprintf(f, "],\"data_offsets\":[%zu,%zu]}", *offset, *offset + bytes);
	*offset += bytes;
}

static void put_header(FILE *f, const struct checkpoint *c, const struct place *places, int n, size_t size)
{
	size_t offset = 0;
	fprintf(f, "{\"__metadata__\":{\"heads\":\"%d\",\"step\":\"%d\",\"seed\":\"%" PRIu64 "\",\"tokenizer\":\"",
		c->config.heads, c->step, c->seed);
	for (const char *s = c->tokenizer; *s; s++)
		fprintf(f, strchr("\"\\", *s) ? "\\%c" : "%c", *s);
	fputs("\"}", f);
	for (int i = 0; i < n; i++)
		put_tensor(f, places[i].name, places[i].rank, (size_t)places[i].shape[0], (size_t)places[i].shape[1],
			   &offset);
	if (c->moment1) {
		put_tensor(f, "optimizer.m", 1, size, 1, &offset);
		put_tensor(f, "optimizer.v", 1, size, 1, &offset);
	}
	fputc('}', f);
}

/* Writes the file and flushes it to the disk. */
static bool put_all(FILE *f, const struct checkpoint *c)
{
	int n;
	size_t size, decayed, len = 0;
	char *text = NULL;
	struct place *places = gpt_places(&c->config, &n, &size, &decayed);
	FILE *memory = open_memstream(&text, &len);
	if (!memory)
		die("out of memory");
	put_header(memory, c, places, n, size);
	while (ftello(memory) % 8)
		fputc(' ', memory);
	if (fclose(memory))
		die("out of memory");
	uint64_t bytes = len;
	fwrite(&bytes, sizeof bytes, 1, f);
	fwrite(text, 1, len, f);
	for (int i = 0; i < n; i++)
		fwrite(c->weights + places[i].first, sizeof(float), places[i].len, f);
	if (c->moment1) {
		fwrite(c->moment1, sizeof(float), size, f);
		fwrite(c->moment2, sizeof(float), size, f);
	}
	free(text);
	free(places);
	return !fflush(f) && !ferror(f) && !fsync(fileno(f));
}

const char *checkpoint_write(const struct checkpoint *c, const char *path)
{
	static char message[5000];
	char new[4096];
	if ((size_t)snprintf(new, sizeof new, "%s.new", path) >= sizeof new)
		return "the file's name is too long";
	FILE *f = fopen(new, "wb");
	errno = f ? 0 : errno;
	bool written = f && put_all(f, c);
	int error = errno;
	if (f && fclose(f) && written) {
		error = errno;
		written = false;
	}
	if (written && !rename(new, path)) {
		char *slash = strrchr(new, '/'); /* the directory entry must survive a crash too */
		strcpy(slash ? slash : new, slash ? "" : ".");
		int folder = open(*new ? new : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (folder >= 0) {
			fsync(folder);
			close(folder);
		}
		return NULL;
	}
	snprintf(message, sizeof message, "%s: %s", new, strerror(written ? errno : error));
	if (f)
		unlink(new);
	return message;
}
