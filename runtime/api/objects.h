/* The objects behind the handles of tl.h, and their ownership: a context owns its modules and buffers, a module its
 * kernels, a kernel its variants. The lock of an owner protects the list of its objects. */
#ifndef TL_API_OBJECTS_H
#define TL_API_OBJECTS_H

#include <locale.h>
#include <pthread.h>
#include <stdatomic.h>

#include "runtime/device/loaded.h"
#include "runtime/image/error.h"
#include "runtime/image/image.h"
#include "runtime/image/key.h"
#include "runtime/image/params.h"
#include "runtime/image/image_store.h"

/* An element of a doubly linked list, which can be removed in constant time. */
struct link {
	struct link *prev, *next;
	void (*free)(struct link *l); /* frees an object that the list owns */
};
static inline void link_init(struct link *head) { head->prev = head->next = head; }
static inline void link_add(struct link *head, struct link *l)
{
	l->prev = head;
	l->next = head->next;
	head->next->prev = l;
	head->next = l;
}
static inline void link_remove(struct link *l)
{
	l->prev->next = l->next;
	l->next->prev = l->prev;
}

struct tl_context {
	struct device *dev;
	atomic_uint refs;     /* the caller's handle, and the objects in the lists */
	pthread_mutex_t lock; /* of the lists */
	struct link owned, buffers, events; /* owned: modules and compiled kernels */
	struct store *store;        /* private, or shared with other contexts */
	tl_allocator allocator;     /* for buffers; alloc is NULL: the device allocates */
	/* set by an internal error that may have left the context inconsistent; broken: `why` is written */
	atomic_bool marked, broken;
	char why[200];
	/* the warning that the cache, or a manifest, is not trusted has been given */
	atomic_bool said_cache, said_manifest;
	tl_diagnostic_fn *tell; /* this and the next two: under the lock */
	void *user;
	bool remarks;
};

struct tl_buffer {
	struct link link; /* must be the first member: a pointer to the list element is a pointer to the buffer */
	tl_context *ctx;
	void *ptr;
	size_t size;
	enum { BUFFER_OWN, BUFFER_HOST, BUFFER_LENT, BUFFER_WRAPPED } kind; /* LENT: from the allocator */
	tl_allocator allocator;                                             /* of BUFFER_LENT */
};

struct tl_event {
	struct link link; /* first */
	tl_context *ctx;
	void *event; /* the device's event */
};

struct tl_module {
	struct link link; /* first */
	tl_context *ctx;
	struct arena arena; /* of the names and the texts */
	struct unit_source *sources; /* the module's own one first */
	u32 nsources;
	u64 hash;           /* of the sources */
	const char *name, *text; /* of the first source */
	size_t len;
	bool compiled; /* the text is the bytes of this kernel image, and the unit is empty */
	struct image image;
	struct unit unit; /* parsed once, for the kernels and their parameters */
	pthread_mutex_t lock; /* of the kernels */
	tl_kernel *kernels;
	pthread_mutex_t said_lock;
	char *said; /* the text of tl_module_diagnostics; NULL: empty */
	size_t said_len;
};

enum variant_state { VARIANT_COMPILING, VARIANT_READY, VARIANT_FAILED };

/* A kernel compiled for one key. Immutable once it is ready, except for atomic members. */
struct variant {
	struct keyed keyed; /* first */
	const tl_kernel *kernel;
	struct loaded loaded;
	enum variant_state state; /* under the kernel's lock */
	const struct params *params; /* with the specialisation of its arguments */
	struct image image;
	_Atomic(struct arg_guard *) binding; /* exact; NULL: not needed yet, or impossible */
	bool keeps; /* the disk cache may keep it, because every process would compile the same code */
	/* Another variant of the kernel, for another kind of grid, whose code runs this variant's kind of grid too. It
	 * owns the code, and this variant has only a key and a state. NULL: this variant has its own code. */
	struct variant *same;
	struct unit *unit; /* of devices with keeps_unit, else NULL */
	tl_status status;  /* of VARIANT_FAILED */
	struct kept_error *error;
};

enum { RECENT = 8 };
struct arg_guard;

struct tl_kernel {
	tl_module *module;
	tl_kernel *next;
	const char *name;
	struct params params, general;     /* general: for launches without specialisation */
	struct key_table shapes; /* see runtime/launch/divisibility.c; under the lock */
	bool has_dots; /* in the kernel or the functions it calls: only GEMMs are faster as persistent kernels */
	bool decorated;
	/* Read without the lock: argument guards of recently launched variants, and the variant launched last. */
	_Atomic(struct arg_guard *) recent[RECENT];
	atomic_uint turn; /* the next index of `recent` to replace */
	_Atomic(struct variant *) last;
	struct link prepared; /* handles */
	pthread_mutex_t lock;
	pthread_cond_t ready; /* signals that a variant is compiled */
	struct key_table variants;
	_Atomic(struct computed *) computed; /* see runtime/launch/decorated.c; NULL: not computed yet */
};

/* A handle: a kernel's argument guards for some arguments, the most specialised first. They are added under the
 * kernel's lock and read without it. */
struct tl_prepared {
	struct link link; /* first */
	tl_kernel *kernel;
	_Atomic(struct arg_guard *) bindings;
	u32 grid[3]; /* of the config, all axes */
	tl_config config;
};

/* The C locale for strtod and printf: in the host program's locale they may use a decimal comma. */
struct c_locale {
	locale_t c, before;
	struct cleanup cleanup;
};
void enter_c_locale(struct c_locale *l);
void leave_c_locale(struct c_locale *l);
/* A unit for a compilation; out of memory is a fault. unit_delete frees it. */
struct unit *unit_new(void);
void unit_delete(void *unit);
/* The function of this name in the unit; NULL: there is none, or the unit is IR text. */
const struct func *unit_function(const struct unit *u, const char *name);
/* A hash of the texts and the names by which they are imported. */
u64 hash_sources(const struct unit_source *sources, size_t n);
/* unit_open_sources in the C locale. */
bool open_unit(struct unit *u, const struct unit_source *sources, size_t n);

struct options {
	struct codegen_options codegen;
	bool general; /* without specialisation */
	void *stream; /* of the launch; not part of the variant */
};
/* The options that the config sets. */
static inline struct codegen_options options_of_config(const tl_config *c)
{
	return (struct codegen_options){.num_warps = c->num_warps,
					.num_stages = c->num_stages,
					.group_pids = c->group_pids,
					.maxnreg = c->maxnreg,
					.fp_fusion = (int)c->fp_fusion,
					.ftz = (int)c->ftz,
					.debug = c->debug,
					.wraps = c->debug && c->wraps,
					.abi = (enum abi)c->abi};
}
static inline void set_options_of_config(tl_config *c, const struct codegen_options *o)
{
	c->num_warps = o->num_warps;
	c->num_stages = o->num_stages;
	c->group_pids = o->group_pids;
	c->maxnreg = o->maxnreg;
	c->fp_fusion = (tl_fp_fusion)o->fp_fusion;
	c->ftz = (tl_ftz)o->ftz;
	c->debug = o->debug;
	c->abi = (tl_abi)o->abi;
	c->wraps = o->wraps;
}
/* The variant for these arguments, which is compiled if it is new. */
tl_status variant_get(tl_kernel *k, const struct options *o, const tl_arg *args, size_t nargs, struct variant **out);
static inline bool is_captured(struct device *dev, void *stream)
{
	return stream && dev->ops->capturing && dev->ops->capturing(dev, stream);
}
/* True if the disk cache has the variant. */
bool variant_on_disk(const tl_kernel *k, const struct variant *v);
/* The resources of a block of the variant; all 0 if unknown. */
tl_status variant_resources(const tl_kernel *k, const struct variant *v, tl_resources *out);
/* Compiles again, for the text of a stage. `v`: the variant of that compilation, or NULL if it failed. */
tl_status variant_dump(tl_kernel *k, const struct options *o, const struct variant *v, const tl_arg *args, size_t nargs,
		       const char *stage, char **text);

/* Checks a call's buffer and host address: neither is NULL, and the bytes lie inside the buffer. */
tl_status check_range(const char *call, const tl_buffer *b, size_t offset, const void *host, size_t bytes);
/* Frees a handle. The caller holds the kernel's lock, or no other thread uses the handle. */
void prepared_free(tl_prepared *p);
enum { MAX_REPEATS = 1000000 };

/* For the tuner: the variant for a launch, compiled if needed; its loaded code, and the bits of its slots, of which
 * there are at most MAX_KERNEL_PARAMS. */
tl_status kernel_variant(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs,
			 const struct image **image, void **code, u64 *bits);
/* The compiler's estimate of a launch: see tl_kernel_estimate. */
tl_status kernel_estimate(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs,
			  struct launch_estimate *out);
/* Calls fn for each pointer argument of the kernel, including the leaves of tuples and descriptors. */
tl_status kernel_pointers(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs,
			  void (*fn)(void *arg, const struct slot *s, const tl_arg *a), void *arg);

/* Sets the compiler's messages as the error of the call, and the place of the first of its errors. */
tl_status failed_compile(const struct diags *d);
/* Passes a unit's diagnostics to the callback, and its errors and warnings to the module's text. */
void report(tl_module *m, const struct unit *u);
/* Passes on a warning without a place in a source. */
void report_warning(tl_module *m, const char *text, const char *hint);
/* Warns that a file or folder is not trusted, unless *said is set, and sets it. */
void report_distrust(tl_module *m, atomic_bool *said, const char *text);
/* True if the disk cache is trusted. If it is not, the context warns once. */
bool cache_trusted(tl_module *m);
/* True if the diagnostics callback receives remarks. */
bool wants_remarks(tl_context *ctx);

/* An object in one of the context's lists keeps the context alive. context_remove takes it out of its list. After the
 * object has been freed, context_leave drops the object's reference, and frees the context if it was the last. */
void context_enter(tl_context *ctx, struct link *list, struct link *object);
void context_remove(tl_context *ctx, struct link *object);
void context_leave(tl_context *ctx);
/* The context owns `dev`, also after an error. */
tl_status context_new(struct device *dev, tl_context **out);
void kernel_free(tl_kernel *k);

#endif
