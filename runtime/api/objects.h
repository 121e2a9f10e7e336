/* The objects behind the handles of tl.h, and their ownership: a context owns its modules and buffers, a module its
 * kernels, a kernel its variants. The lock of an owner protects the list of its objects. */
#ifndef TL_API_OBJECTS_H
#define TL_API_OBJECTS_H

#include <locale.h>
#include <pthread.h>
#include <stdatomic.h>

#include "runtime/device/device.h"
#include "runtime/image/error.h"
#include "runtime/image/image.h"
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
	char *name, *text;
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

/* The last tensor map of a variant, for later launches with the same map. Read and written without a lock: the version
 * is odd while the words change. */
struct map_memo {
	_Atomic(u64) version, of[4], map[16];
};

/* A kernel compiled for one key. Immutable once it is ready, except for atomic members. */
struct variant {
	void *code;               /* the device's handle */
	u32 nslots;               /* of the image */
	bool plain;               /* a launch passes the slots only: no grid and no tensor maps */
	bool conditions;          /* the image has conditions: see runtime/device/conditions.h */
	enum variant_state state; /* under the kernel's lock */
	u64 hash;
	u64 *key;
	u32 key_len;
	const struct params *params; /* with the specialisation of its arguments */
	bool has_composites; /* some arguments are tuples or descriptors */
	struct image image;
	struct map_memo *memos;            /* one for each of its tensor maps */
	_Atomic(struct arg_guard *) binding; /* exact; NULL: not needed yet, or impossible */
	bool keeps; /* the disk cache may keep it, because every process would compile the same code */
	/* Another variant of the kernel, for another kind of grid, whose code runs this variant's kind of grid too. It
	 * owns the code, and this variant has only a key and a state. NULL: this variant has its own code. */
	struct variant *same;
	struct unit *unit; /* of devices with keeps_unit, else NULL */
	tl_status status;  /* of VARIANT_FAILED */
	struct kept_error *error;
};

enum { RECENT = 8, SHAPE_LISTS = 16 };
struct arg_guard;
struct shape;

struct tl_kernel {
	tl_module *module;
	tl_kernel *next;
	const char *name;
	struct params params, general;     /* general: for launches without specialisation */
	struct shape *shapes[SHAPE_LISTS]; /* see runtime/launch/divisibility.c; under the lock */
	bool has_dots; /* in the kernel or the functions it calls: only GEMMs are faster as persistent kernels */
	bool decorated;
	/* Read without the lock: argument guards of recently launched variants, and the variant launched last. */
	_Atomic(struct arg_guard *) recent[RECENT];
	atomic_uint turn; /* the next index of `recent` to replace */
	_Atomic(struct variant *) last;
	struct link prepared; /* handles */
	pthread_mutex_t lock;
	pthread_cond_t ready; /* signals that a variant is compiled */
	struct variant **table; /* open addressing by hash */
	u32 nvariants, cap;
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
/* unit_open in the C locale. */
bool open_unit(struct unit *u, const char *name, const char *text, size_t len);

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
					.debug = c->debug};
}
static inline void set_options_of_config(tl_config *c, const struct codegen_options *o)
{
	c->num_warps = o->num_warps;
	c->num_stages = o->num_stages;
	c->group_pids = o->group_pids;
	c->maxnreg = o->maxnreg;
	c->debug = o->debug;
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

/* The bodies of the functions of tl.h, called under a guard: see runtime/launch/api_module.c. */
tl_status context_create(const char *device, tl_context **out);
tl_status context_share(tl_context *ctx, tl_context *with);
tl_status context_from_cuda(void *cu_context, tl_context **out);
void context_destroy(tl_context *ctx);
tl_status context_synchronize(tl_context *ctx);
tl_status context_device(tl_context *ctx, tl_device_info *out);
tl_status buffer_create(tl_context *ctx, size_t bytes, tl_buffer **out);
void buffer_destroy(tl_buffer *b);
tl_status buffer_write(tl_buffer *b, size_t offset, const void *src, size_t bytes);
tl_status buffer_read(tl_buffer *b, size_t offset, void *dst, size_t bytes);
tl_status buffer_fill(tl_buffer *b, uint8_t byte);
/* Checks a call's buffer and host address: neither is NULL, and the bytes lie inside the buffer. */
tl_status check_range(const char *call, const tl_buffer *b, size_t offset, const void *host, size_t bytes);
tl_status buffer_create_host(tl_context *ctx, size_t bytes, tl_buffer **out);
tl_status buffer_wrap(tl_context *ctx, void *p, size_t bytes, tl_buffer **out);
tl_status buffer_write_async(tl_buffer *b, size_t offset, const void *src, size_t bytes, void *stream);
tl_status buffer_read_async(tl_buffer *b, size_t offset, void *dst, size_t bytes, void *stream);
tl_status buffer_copy_async(tl_buffer *dst, size_t dst_offset, const tl_buffer *src, size_t src_offset, size_t bytes,
			    void *stream);
tl_status buffer_fill_async(tl_buffer *b, size_t offset, const void *element, size_t size, size_t count, void *stream);
tl_status event_create(tl_context *ctx, tl_event **out);
void event_destroy(tl_event *e);
/* Frees the event with its device event, while the context is being freed. */
void event_free(tl_event *e);
tl_status event_record(tl_event *e, void *stream);
tl_status event_wait(tl_event *e, void *stream);
tl_status event_synchronize(tl_event *e);
tl_status event_elapsed(const tl_event *from, const tl_event *to, double *ms);
void context_release(tl_context *ctx);
tl_status context_allocator(tl_context *ctx, const tl_allocator *a);
tl_status context_threads(tl_context *ctx, int threads);
tl_status context_log(tl_context *ctx, tl_log_fn *fn, void *user);
tl_status device_count(int *out);
tl_status device_at(int index, tl_device_info *out);
tl_status module_load(tl_context *ctx, const char *path, tl_module **out);
tl_status module_load_source(tl_context *ctx, const char *name, const char *text, size_t len, tl_module **out);
void module_destroy(tl_module *m);
tl_status module_kernel(tl_module *m, const char *name, tl_kernel **out);
tl_status context_diagnostics(tl_context *ctx, tl_diagnostic_fn *fn, void *user, bool remarks);
tl_status module_diagnostics(tl_module *m, char **text);
tl_status kernel_launch(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs);
/* Launches if a recent launch had the same kind of arguments. False: there was no such launch, or a launch on
 * the device may fault and the caller has not begun a guarded call (api_guard.h; `guarded`: it has). Without a guarded
 * call this function never faults. */
bool launch_known(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, bool guarded, tl_status *s);
tl_status kernel_prepare(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, tl_prepared **out);
tl_status prepared_add(tl_prepared *p, const uint32_t *grid, const tl_arg *args, size_t nargs);
bool prepared_known(const tl_prepared *p, const uint32_t *grid, void *stream, const tl_arg *args, size_t nargs,
		    bool guarded, tl_status *s);
tl_status prepared_launch(const tl_prepared *p, const uint32_t *grid, void *stream, const tl_arg *args, size_t nargs);
void prepared_destroy(tl_prepared *p);
/* Frees a handle of kernel_prepare. The caller holds the kernel's lock, or no other thread uses the handle. */
void prepared_free(tl_prepared *p);
enum { MAX_REPEATS = 1000000 };
tl_status kernel_time_each(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, int warmup,
			   int repeats, double *ms);
tl_status kernel_time(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, int warmup, int repeats,
		      double *median_ms);
tl_status kernel_stage(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, const char *stage,
		       char **text);
tl_status kernel_resources(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, tl_resources *out);

/* For the tuner: the variant for a launch, compiled if needed; its loaded code, and the bits of its slots, of which
 * there are at most MAX_KERNEL_PARAMS. */
tl_status kernel_variant(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs,
			 const struct image **image, void **code, u64 *bits);
/* Calls fn for each pointer argument of the kernel, including the leaves of tuples and descriptors. */
tl_status kernel_pointers(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs,
			  void (*fn)(void *arg, const struct slot *s, const tl_arg *a), void *arg);
tl_status tuner_create(tl_kernel *k, const tl_tuning *t, tl_tuner **out);
void tuner_destroy(tl_tuner *t);
tl_status tuner_add(tl_tuner *t, const tl_config *options, const tl_named_arg *values, size_t n);
tl_status tuner_launch(tl_tuner *t, const tl_config *cfg, tl_plan_fn *plan, void *user, const tl_arg *args,
		       size_t nargs);
tl_status tuner_choose(tl_tuner *t, const tl_config *cfg, tl_plan_fn *plan, void *user, const tl_arg *args,
		       size_t nargs, tl_choice *out);
tl_status tuner_report(tl_tuner *t, char **json);
tl_context *tuner_context(const tl_tuner *t);

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
void module_free(tl_module *m);
void kernel_free(tl_kernel *k);
/* Opens the device of a CUcontext, for tl_context_from_cuda. */
tl_status cuda_adopt(void *cu_context, struct device **out);

#endif
