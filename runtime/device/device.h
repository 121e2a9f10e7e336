/* A device: where kernels run. A table of function pointers, so that the rest of the runtime knows no device by name.
 *
 * All calls may come from several threads at once. Each returns a status with its text set (see
 * runtime/image/error.h). */
#ifndef TL_DEVICE_DEVICE_H
#define TL_DEVICE_DEVICE_H

#include "driver/compile.h"
#include "runtime/image/image.h"
#include "runtime/image/tensor_map.h"
#include "runtime/tl.h"

struct device {
	const struct device_ops *ops; /* the device's own data follows */
	u32 num_sms; /* multiprocessors, which one block each may fill; 0: programs need no blocks */
	int threads; /* of the host, in a launch; 0: any number */
	tl_log_fn *log;
	void *log_user;
};

/* One variant of a kernel to compile. */
struct build {
	struct unit *unit;
	const struct func *func; /* NULL when the unit is IR text */
	const struct arg_spec *args;
	int num_warps, num_stages, group_pids, maxnreg;
	bool no_tma;
	enum grid_kind grid;
	enum launch_bounds sizes;
	enum aliasing alias;
	bool debug; /* device_assert stops the kernel */
	bool remarks; /* are wanted, whatever the stage */
	const char *stage; /* the text wanted instead of code to run, or "remarks"; NULL: code */
};

struct device_load {
	const struct image *image;
	const struct source *source; /* of the kernel's module, which outlives what is loaded; or NULL */
	/* the compilation, for devices that keep it; else NULL */
	struct unit *unit;
	const struct compiled *compiled;
};

struct device_launch {
	void *kernel; /* from load */
	u32 grid[3];
	/* the bits of each parameter of the compiled kernel, in the low bytes; its address if it is larger */
	const u64 *args;
	u32 nargs;
	u32 nmaps; /* the last of them, which are addresses of tensor maps */
	void *stream; /* the caller's, or NULL */
	bool cooperative, pdl; /* see tl_config */
	bool pairs;            /* neighbouring blocks along x are clusters of two */
};

/* Work that is queued on a stream (NULL: the device's own), and memory that is not the device's own. */
struct queue_ops {
	size_t guard;                      /* bytes that the memory of a buffer needs on both sides */
	void *(*stream)(struct device *d); /* its own; NULL: there are no streams */
	/* `src` and `dst`: one is the host's. Without a wait. */
	tl_status (*write)(struct device *d, void *dst, const void *src, size_t size, void *stream);
	tl_status (*read)(struct device *d, void *dst, const void *src, size_t size, void *stream);
	/* `from`: the device of `src`, which has the same table */
	tl_status (*copy)(struct device *d, void *dst, struct device *from, const void *src, size_t size, void *stream);
	/* `width` is 1, 2, 4 or 8 */
	tl_status (*fill)(struct device *d, void *dst, u64 element, u32 width, size_t count, void *stream);

	tl_status (*alloc_host)(struct device *d, size_t size, void **out);
	void (*free_host)(struct device *d, void *p);
	/* Memory that somebody else allocated becomes a buffer, `fresh`: without contents; and is none any more. NULL:
	 * the device need not know. */
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

enum { OPTION = -1 }; /* the ordinal of a device that is opened with its option */

struct device_ops {
	const char *name;
	const char *stages; /* the stages that kernel dumps may name, between spaces: " ttir ptx " */
	bool keeps_unit;    /* loaded kernels refer to the unit they were compiled in */
	bool has_streams;
	bool numbered; /* "name:1" is meaningful */
	const char *option; /* "name:option" opens it with OPTION for the ordinal; or NULL */
	bool faultless; /* launch and tensor_map need no recovery point: they allocate nothing that could run out */
	bool offline;  /* it runs nothing: what it compiles is for the disk cache */

	tl_status (*launch)(struct device *d, const struct device_launch *l);

	const struct queue_ops *queue;

	/* The devices there are, and each of them, without opening it. */
	tl_status (*count)(int *out);
	tl_status (*at)(int index, tl_device_info *out);
	tl_status (*open)(int ordinal, struct device **out);
	/* Waits for what is running. Everything loaded and allocated has been given back. */
	void (*close)(struct device *d);
	void (*info)(struct device *d, tl_device_info *out);

	/* An allocation of 0 bytes has an address of its own. Copies are ordered after the launches on the device's own
	 * stream, and complete on return. */
	tl_status (*alloc)(struct device *d, size_t size, void **out);
	void (*free)(struct device *d, void *p);
	tl_status (*write)(struct device *d, void *dst, const void *src, size_t size);
	tl_status (*read)(struct device *d, void *dst, const void *src, size_t size);
	tl_status (*fill)(struct device *d, void *dst, uint8_t byte, size_t size);

	/* What it compiles for. Images may be kept on disk: they run on every device of the same target. NULL: there
	 * are none. */
	struct target (*target)(const struct device *d);
	/* As much of the pipeline as this device needs. False after an error, which is in b->unit->diags. NULL:
	 * device_compile for the target. */
	bool (*compile)(struct device *d, const struct build *b, struct compiled *out);
	/* Adds to the image the binary of this device's driver, for it to be kept on disk; false where it has that, or
	 * there can be none. NULL: devices without one. */
	bool (*link)(struct device *d, struct image *im);
	tl_status (*load)(struct device *d, const struct device_load *l, void **out);
	void (*unload)(struct device *d, void *kernel);
	tl_status (*resources)(struct device *d, void *kernel, tl_resources *out); /* NULL: there are none */
	/* Milliseconds of each of the repeats. */
	tl_status (*time)(struct device *d, const struct device_launch *l, int warmup, int repeats, double *ms);
	/* What a launch costs by what it does, where time says nothing; NULL: time says it. It runs once. */
	tl_status (*cost)(struct device *d, const struct device_launch *l, double *cost);
	/* Launches and waits for the end, at most so long; an error if it has not ended then. NULL: launches end. */
	tl_status (*try)(struct device *d, const struct device_launch *l, int limit_ms, bool *ended);
	tl_status (*synchronize)(struct device *d);

	/* Is the caller's stream being captured into a graph, so that nothing may be loaded? NULL: it never is. */
	bool (*capturing)(struct device *d, void *stream);

	/* The allocation that p lies in. False where that is not known; NULL: it never is. */
	bool (*allocation)(struct device *d, const void *p, void **base, size_t *size);

	/* The 128 bytes, aligned to 64, that a kernel takes as a parameter of its own. NULL: the device copies no
	 * tensors. */
	tl_status (*tensor_map)(struct device *d, const struct tensor_map_shape *box, void *out);
};

extern const struct device_ops cuda_ops, interp_ops, cpu_ops, sim_ops;
/* Those of this library, cuda first; the second one serves where there is no GPU. */
extern const struct device_ops *const devices[];
extern const u32 ndevices;

/* "cuda", "cuda:1", "interp"; NULL: the best one here. */
tl_status device_open(const char *spec, struct device **out);
/* A device that compiles for this target, and runs nothing. */
tl_status offline_open(const struct target *target, struct device **out);
/* Compiles for the device. */
bool device_build(struct device *d, const struct build *b, struct compiled *out);
/* Compiles to code for the target, or to the stage that b asks for. */
bool device_compile(const struct target *target, const struct build *b, struct compiled *out);
/* The default target: the GPU present, else "cuda:sm_90a". */
const char *device_default_target(struct arena *a);
/* Is there no CUDA driver here, or no GPU? */
bool cuda_absent(void);
/* The target of GPU 0; false without a driver, a GPU, or one that is new enough. */
bool cuda_probe(struct target *out);
/* The median, which reorders `x`; the mean of the middle two of an even number. */
double median(double *x, int n);

#endif
