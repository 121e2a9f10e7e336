/* The kernel image: a kernel's code and the data that a launch needs, independent of the process that compiled it.
 * Devices load it, launches read it, and `tlc show` prints its text form.
 *
 * The bytes are a header (magic, version, length, xxHash of the rest) and fields in the order of code_fields in
 * image.c, little-endian. Readers refuse a damaged image, and an image of another version. */
#ifndef TL_IMAGE_IMAGE_H
#define TL_IMAGE_IMAGE_H

#include "driver/compile.h"
#include "runtime/tl.h"

/* A run-time parameter of the code and the argument it takes. Arguments are counted in leaves: each element of a tuple
 * or descriptor counts. */
struct slot {
	const char *name;
	u32 leaf;
	i32 pointers;     /* levels of indirection: 0 is a number, 1 a pointer, 2 a pointer to pointers */
	enum dtype dtype; /* of a number, or of the final pointee */
	i32 divisibility; /* assumed by the code: of an integer, or of an address in bytes; 0: none */
	bool reads, writes; /* memory through the pointer */
	bool always;        /* each program reads or writes through it */
};

/* A hash of everything that determines a kernel's code: see runtime/cache/cache.h. */
struct cache_key {
	u64 at[2];
};

struct image_import {
	const char *path;
	u64 hash; /* of the file's text */
};

struct image {
	u64 key[2]; /* key of the disk cache's entry, else 0 */
	/* the sources */
	const char *source;    /* a file's name */
	u64 source_hash;       /* of the file's text */
	struct image_import *imports; /* imported files and the hashes of their texts */
	const char *signature; /* types and constants of the parameters, in the syntax of -s and -D */
	const char *target;    /* "cuda:sm_90a", "cpu:avx2"; "" without code */
	/* num_warps and grid are not stored: see the image's num_warps and grids */
	struct codegen_options codegen;
	/* the code */
	const char *name; /* of the kernel, and of the code's symbol */
	/* PTX, or an ELF object for a CPU, NUL-terminated; "" for devices that keep the compilation */
	const char *code;
	u32 code_bytes;
	/* the block, and the mapping of programs to blocks */
	i32 num_warps, shared_bytes, cluster;
	u64 scratch_bytes; /* of each CPU thread */
	bool waits;        /* programs may wait for other programs */
	bool pairs;        /* two neighbouring blocks along x are faster when launched as a cluster */
	bool persistent;   /* a persistent kernel: the grid is passed as parameters after the slots */
	bool narrow_offsets; /* offsets have 32 bits: each pointer must have few elements, see MOST_NARROW_ELEMENTS */
	u32 grids;           /* bit enum grid_kind: kinds of grids that the code can run */
	/* parameters: the slots, the grid of a persistent kernel, the addresses of tensor maps */
	struct slot *slots;
	struct tensor_map_param *maps;
	struct param_pair *apart;  /* pairs of slots whose memory must not overlap */
	struct size_limit *limits; /* upper bounds of parameters, by slot */
	u32 *ones;                 /* leaves of arguments that must be 1 and have no slot */
	u32 nslots, nmaps, napart, nlimits, nimports, nones;

	struct arena arena; /* owns all of the above */
};

static inline bool serves_grid(const struct image *im, enum grid_kind kind)
{
	return im->grids >> kind & 1;
}

/* Makes an image of the result of a compilation, and copies all data. `args`: the arguments of the compilation; NULL:
 * of IR text. */
void image_make(struct image *im, const struct unit *u, const struct func *f, const struct arg_spec *args,
		const struct codegen_options *o, const struct compiled *c);
void image_free(struct image *im);

/* The image's bytes, in `a`. */
char *image_write(const struct image *im, struct arena *a, size_t *len);
/* True if these bytes begin like an image. */
bool image_is(const void *bytes, size_t len);
/* Reads an image. NULL, or the reason why the bytes are not a usable image. */
const char *image_read(struct image *im, const void *bytes, size_t len);
/* The name of a size in the image's limits. */
const char *image_size_name(const struct image *im, i16 size);
/* Writes the image's text form. */
void image_show(const struct image *im, struct strbuf *out);

#endif
