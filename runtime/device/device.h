/* A device runs kernels. Its operations are a table of function pointers, so that the rest of the runtime does not
 * depend on particular devices.
 *
 * Several threads may make all calls at once. A call that fails sets the message of its status (see
 * runtime/image/error.h). */
#ifndef TL_DEVICE_DEVICE_H
#define TL_DEVICE_DEVICE_H

#include "driver/compile.h"
#include "runtime/image/image.h"
#include "runtime/image/tensor_map.h"
#include "runtime/tl.h"

struct device {
	const struct device_ops *ops; /* the data of the kind of device follows */
	/* multiprocessors, for persistent kernels with a block on each; 0: grids have a block for each program */
	u32 num_sms;
	int threads; /* CPU threads of a launch; 0: any number */
	tl_log_fn *log;
	void *log_user;
};

/* A variant of a kernel to compile. */
struct build {
	struct unit *unit;
	const struct func *func; /* NULL when the unit is IR text */
	const struct arg_spec *args;
	struct codegen_options codegen;
	bool remarks; /* collect remarks, whatever the stage */
	/* the stage whose text is wanted, or "remarks"; NULL: compile to code */
	const char *stage;
	const struct launch_shape *launch; /* only estimate this launch; NULL: none */
};

struct device_load {
	struct image *image;
	struct source_list sources;  /* of the kernel's module, which outlives the loaded kernel; none for an image */
	/* The compilation, for devices with keeps_unit; else NULL. */
	struct unit *unit;
	const struct compiled *compiled;
};

struct device_launch {
	void *kernel; /* from load */
	u32 grid[3];
	/* The bits of each parameter of the compiled kernel, in the low bytes; for larger parameters their address. */
	const u64 *args;
	u32 nargs;
	u32 nmaps; /* the last nmaps of `args` are addresses of tensor maps */
	void *stream; /* the caller's, or NULL */
	bool cooperative, pdl; /* see tl_config */
	bool pairs;            /* neighbouring blocks along x form clusters of two */
};

/* Operations on a stream (NULL: the device's own), and memory that the device does not own. */
struct queue_ops {
	size_t guard;                      /* bytes of guard memory on both sides of a buffer */
	void *(*stream)(struct device *d); /* the device's own stream; NULL: there are no streams */
	/* Copies between host and device, without waiting, in order with the launches on the stream. */
	tl_status (*write)(struct device *d, void *dst, const void *src, size_t size, void *stream);
	tl_status (*read)(struct device *d, void *dst, const void *src, size_t size, void *stream);
	/* `from`: the device of `src`, with the same queue_ops */
	tl_status (*copy)(struct device *d, void *dst, struct device *from, const void *src, size_t size, void *stream);
	/* `width` is 1, 2, 4 or 8 */
	tl_status (*fill)(struct device *d, void *dst, u64 element, u32 width, size_t count, void *stream);
	/* Waits for the device's own stream. NULL: operations are complete on return. */
	tl_status (*finish)(struct device *d);

	tl_status (*alloc_host)(struct device *d, size_t size, void **out);
	void (*free_host)(struct device *d, void *p);
	/* wrap registers memory of another owner as a buffer; `fresh`: its contents are undefined. unwrap ends the
	 * registration. NULL: the device needs no registration. */
	tl_status (*wrap)(struct device *d, void *p, size_t size, bool fresh);
	void (*unwrap)(struct device *d, void *p);

	tl_status (*event_create)(struct device *d, void **out);
	void (*event_destroy)(struct device *d, void *event);
	tl_status (*event_record)(struct device *d, void *event, void *stream);
	tl_status (*event_wait)(struct device *d, void *event, void *stream);
	tl_status (*event_synchronize)(struct device *d, void *event);
	tl_status (*event_elapsed)(struct device *d, void *from, void *to, double *ms);
};
extern const struct queue_ops cuda_queue, host_queue;

enum { OPTION = -1 }; /* the ordinal of a device that is opened as "name:option" */

struct device_ops {
	const char *name;
	const char *stages; /* the stages of kernel dumps, between spaces: " ttir ptx " */
	bool keeps_unit;    /* loaded kernels refer to the unit of their compilation */
	bool has_streams;
	bool numbered; /* "name:1" is valid */
	const char *option; /* "name:option" opens the device with the ordinal OPTION; or NULL */
	bool faultless; /* launch and tensor_map need no recovery point: they do not allocate memory */
	bool offline;  /* runs nothing: it compiles for the disk cache */

	tl_status (*launch)(struct device *d, const struct device_launch *l);

	const struct queue_ops *queue;

	/* The number of devices, and a description of each, without opening it. */
	tl_status (*count)(int *out);
	tl_status (*at)(int index, tl_device_info *out);
	tl_status (*open)(int ordinal, struct device **out);
	/* Waits for running work. The caller has unloaded and freed everything before. */
	void (*close)(struct device *d);
	void (*info)(struct device *d, tl_device_info *out);

	/* An allocation of 0 bytes has a unique address. */
	tl_status (*alloc)(struct device *d, size_t size, void **out);
	void (*free)(struct device *d, void *p);
	/* Reports bytes that the host reads and that were never written. NULL: no report. */
	void (*check_read)(struct device *d, const void *src, size_t size);

	/* The target of compilation. Images may be kept on disk: they run on every device with the same target. NULL:
	 * the device has no images. */
	struct target (*target)(const struct device *d);
	/* Compiles as far as this device needs. False: an error, which is in b->unit->diags. NULL: device_compile for
	 * the target. */
	bool (*compile)(struct device *d, const struct build *b, struct compiled *out);
	/* Loads the code into the device. May add assembler directives to the image's code. */
	tl_status (*load)(struct device *d, const struct device_load *l, void **out);
	void (*unload)(struct device *d, void *kernel); /* NULL: the unit owns the code, or there is none */
	tl_status (*resources)(struct device *d, void *kernel, tl_resources *out); /* NULL: unknown */
	/* Milliseconds of each of the repeats. */
	tl_status (*time)(struct device *d, const struct device_launch *l, int warmup, int repeats, double *ms);
	/* The estimated cost of a launch, where time is meaningless. Launches once. NULL: the time is the cost. */
	tl_status (*cost)(struct device *d, const struct device_launch *l, double *cost);
	/* Launches and waits for the end for at most limit_ms; else an error. NULL: launches are synchronous. */
	tl_status (*try)(struct device *d, const struct device_launch *l, int limit_ms, bool *ended);
	tl_status (*synchronize)(struct device *d);

	/* True if the caller's stream is being captured into a graph, so that nothing may be loaded. NULL: never. */
	bool (*capturing)(struct device *d, void *stream);

	/* The allocation that contains p. False: unknown. NULL: always unknown. */
	bool (*allocation)(struct device *d, const void *p, void **base, size_t *size);

	/* Encodes the tensor map, 128 bytes aligned to 64, that a kernel takes as a parameter. NULL: the device has no
	 * tensor maps. */
	tl_status (*tensor_map)(struct device *d, const struct tensor_map_shape *box, void *out);
};

extern const struct device_ops cuda_ops, interp_ops, cpu_ops, sim_ops;
/* The devices of this library, cuda first. The second is the default on machines without a GPU. */
extern const struct device_ops *const devices[];
extern const u32 ndevices;

/* Opens "cuda", "cuda:1", "interp"; NULL: the default device. */
tl_status device_open(const char *spec, struct device **out);
/* Opens the device of a CUcontext, for tl_context_from_cuda. */
tl_status cuda_adopt(void *cu_context, struct device **out);
/* The bodies of tl_device_count and tl_device_at. */
tl_status device_count(int *out);
tl_status device_at(int index, tl_device_info *out);
/* Opens a device that compiles for this target and runs nothing. */
tl_status offline_open(const struct target *target, struct device **out);
/* Compiles for the device. */
bool device_build(struct device *d, const struct build *b, struct compiled *out);
/* Compiles to code for the target, or to the stage in b. */
bool device_compile(const struct target *target, const struct build *b, struct compiled *out);
/* The default target: that of the GPU, else "cuda:sm_90a". */
const char *device_default_target(struct arena *a);
/* True if there is no CUDA driver or no GPU. */
bool cuda_absent(void);
/* The target of GPU 0. False: there is no driver or no GPU, or the GPU is too old. */
bool cuda_probe(struct target *out);
/* The median, or the mean of the two middle values. Reorders `x`. */
double median(double *x, int n);

/* --- copies on the device's own stream, complete on return ------------------------------------------------------- */

static inline tl_status device_finish(struct device *d, tl_status s)
{
	return s || !d->ops->queue->finish ? s : d->ops->queue->finish(d);
}

static inline tl_status device_write(struct device *d, void *dst, const void *src, size_t size)
{
	return device_finish(d, d->ops->queue->write(d, dst, src, size, NULL));
}

static inline tl_status device_read(struct device *d, void *dst, const void *src, size_t size)
{
	return device_finish(d, d->ops->queue->read(d, dst, src, size, NULL));
}

static inline tl_status device_fill(struct device *d, void *dst, uint8_t byte, size_t size)
{
	return device_finish(d, d->ops->queue->fill(d, dst, byte, 1, size, NULL));
}

#endif
