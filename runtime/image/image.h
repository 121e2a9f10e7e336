/* The kernel image: what a launch must know of a compiled kernel, and its code, without anything of the process that
 * compiled it. Devices load it, launches read it, and its text form is what `tlc show` prints.
 *
 * As bytes it is a header (magic, version, length, xxHash of the rest) and fields in the order of code_fields in
 * image.c, little-endian. An image of another version, or damaged, is refused. */
#ifndef TL_IMAGE_IMAGE_H
#define TL_IMAGE_IMAGE_H

#include "driver/compile.h"
#include "runtime/tl.h"

/* A run-time parameter: which argument it takes, counted in leaves where there are tuples and descriptors among them,
 * and how. */
struct slot {
	const char *name;
	u32 leaf;
	i32 pointers;     /* 0: a number; 2: a pointer to pointers */
	enum dtype dtype; /* of a number, or of what is pointed to in the end */
	i32 divisibility; /* that the code counts on, of a number or an address in bytes; 0: none */
	bool reads, writes; /* memory, through the pointer */
	bool always;        /* each program does so */
};

/* A hash of all that a kernel is made from: see runtime/cache/cache.h. */
struct cache_key {
	u64 at[2];
};

struct image_import {
	const char *path;
	u64 hash; /* of its text */
};

struct image {
	u64 key[2]; /* of an entry of the disk cache: what it was asked for by; else 0 */
	/* made from */
	const char *source;    /* a file's name */
	u64 source_hash;       /* of its text */
	struct image_import *imports; /* other files, as they were found */
	const char *signature; /* types and constants of the parameters, as -s and -D take them */
	const char *target;    /* "cuda:sm_90a", "cpu:avx2"; "" without code */
	i32 num_stages, group_pids, maxnreg;
	bool debug, no_tma;
	enum launch_bounds sizes;
	enum aliasing alias;
	/* code */
	const char *name; /* of the kernel, and of its symbol */
	/* PTX, or an object of a CPU, with a NUL behind its end; "" for devices that keep the compilation */
	const char *code;
	u32 code_bytes;
	/* what the driver of a GPU made of the code, so that other processes with this driver need not wait for it;
	 * 0 bytes: nothing yet */
	const char *binary;
	u32 binary_bytes;
	i32 driver; /* the CUDA version that it serves, as cuDriverGetVersion tells it */
	/* a block, and how programs become blocks */
	i32 num_warps, shared_bytes, cluster;
	u64 scratch_bytes; /* of each thread of a CPU */
	bool waits;        /* programs may wait for others */
	bool pairs;        /* two neighbouring blocks along x are faster if launched as a cluster */
	bool persistent;   /* takes the grid as parameters, behind those of the slots */
	bool narrow_offsets; /* counts on few elements behind each pointer: see MOST_NARROW_ELEMENTS */
	u32 grids;           /* bit enum grid_kind: those whose launches the code serves */
	/* parameters: the slots, the grid if it is persistent, the addresses of tensor maps */
	struct slot *slots;
	struct tensor_map_param *maps;
	struct param_pair *apart;  /* slots that the code counts on to be apart */
	struct size_limit *limits; /* of parameters by slot */
	u32 *ones;                 /* the arguments, counted as those of slots, that must be 1 and are no slots */
	u32 nslots, nmaps, napart, nlimits, nimports, nones;

	struct arena arena; /* that all of this lies in */
};

static inline bool serves_grid(const struct image *im, enum grid_kind kind)
{
	return im->grids >> kind & 1;
}

/* From the result of a compilation: copies what it needs. `args`: as they were given to compile; NULL: of IR text. */
void image_make(struct image *im, const struct unit *u, const struct func *f, const struct arg_spec *args,
		const struct compile_options *o, const struct compiled *c);
void image_free(struct image *im);

/* The image as bytes, in `a`. */
char *image_write(const struct image *im, struct arena *a, size_t *len);
/* Do these bytes begin as those of an image? */
bool image_is(const void *bytes, size_t len);
/* The same back. NULL, or why these are no image that can be used. */
const char *image_read(struct image *im, const void *bytes, size_t len);
/* What a size of its limits is called. */
const char *image_size_name(const struct image *im, i16 size);
/* What an image says, for people. */
void image_show(const struct image *im, struct strbuf *out);

#endif
