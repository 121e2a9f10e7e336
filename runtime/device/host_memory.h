/* Devices with host memory: the interpreter, the simulator and the CPU. They record every allocation. */
#ifndef TL_DEVICE_HOST_MEMORY_H
#define TL_DEVICE_HOST_MEMORY_H

#include <pthread.h>

#include "support/index_range.h"
#include "runtime/device/device.h"

struct host_device {
	struct device device; /* first */
	pthread_mutex_t lock;
	struct mem_range *ranges; /* the live buffers, by address */
	/* For each buffer one bit for each byte: set if the byte has been written. Entries are NULL without
	 * tracks_writes. */
	u8 **written;
	u32 nranges, cap;
	bool tracks_writes;
	int ordinal;
};

/* `d` is zeroed, and is the first member of the structure that host_close frees. */
void host_init(struct host_device *d, const struct device_ops *ops, bool tracks_writes);
tl_status host_open(const struct device_ops *ops, bool tracks_writes, struct device **out);
void host_close(struct device *device);
void host_info(struct device *device, tl_device_info *out);

/* Register memory of another owner as a buffer, and end the registration: see queue_ops. */
tl_status host_wrap(struct device *device, void *p, size_t size, bool fresh);
void host_unwrap(struct device *device, void *p);

/* Passes a text to the log callback, or to the standard stream. */
void host_log(const struct device *d, tl_log_kind kind, const char *text, size_t len);
/* The callback for the output of device_print; `device` is a struct device. */
void cpu_print(void *device, const char *text, size_t len);

/* Records that the host has written these bytes of a buffer. */
void host_mark_written(struct device *device, const char *p, size_t size);
/* The number of bytes of a buffer, from p on, that have never been written. *first: the first of them, counted from p.
 * 0 without tracks_writes. */
u64 host_unwritten(struct host_device *d, const char *p, size_t size, u64 *first);
double host_now_ms(void);

/* Members of device_ops. */
tl_status host_alloc(struct device *device, size_t size, void **out);
void host_free(struct device *device, void *p);
tl_status host_synchronize(struct device *device);
bool host_allocation(struct device *device, const void *p, void **base, size_t *size);
/* Refuses launches that need a GPU. */
tl_status host_check(const struct device_launch *l);
tl_status host_time(struct device *device, const struct device_launch *l, int warmup, int repeats, double *ms);

/* A copy of the buffers, in `a`; the launch sets the names. */
struct mem_range *host_ranges(struct host_device *d, struct arena *a, u32 *n, u8 *const **written);
/* The range that contains p or ends at p; NULL if there is none. */
struct mem_range *range_of(struct mem_range *r, u32 n, const char *p);

/* Guard bytes before and after each buffer: an access there is an error. */
enum { HOST_GUARD = 64 * 1024 };

/* Names the ranges of pointer arguments. True if an argument points to the caller's own memory, whose range is unknown.
 * Accesses through NULL are errors. homes: NULL, or an array for the range that each parameter may access, see struct
 * interp_launch. */
bool host_name_ranges(const struct image *im, const u64 *args, struct mem_range *r, u32 n,
		      const struct mem_range **homes);

#endif
