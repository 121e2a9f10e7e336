/* Devices whose memory is the host's: the interpreter, the simulator and the processor itself. Every allocation is
 * known to them. */
#ifndef TL_DEVICE_HOST_MEMORY_H
#define TL_DEVICE_HOST_MEMORY_H

#include <pthread.h>

#include "support/index_range.h"
#include "runtime/device/device.h"

struct host_device {
	struct device device; /* first */
	pthread_mutex_t lock;
	struct mem_range *ranges; /* the live buffers, by address */
	/* of each, one bit a byte: has it been written? Entries are NULL without tracks_writes */
	u8 **written;
	u32 nranges, cap;
	bool tracks_writes;
	int ordinal;
};

/* `d` is zeroed, and the first member of what host_close frees. */
void host_init(struct host_device *d, const struct device_ops *ops, bool tracks_writes);
tl_status host_open(const struct device_ops *ops, bool tracks_writes, struct device **out);
void host_close(struct device *device);
void host_info(struct device *device, tl_device_info *out);

/* Memory of somebody else's becomes a buffer, and is none any more: see queue_ops. */
tl_status host_wrap(struct device *device, void *p, size_t size, bool fresh);
void host_unwrap(struct device *device, void *p);

/* Passes a text to the log, or to the stream. */
void host_log(const struct device *d, tl_log_kind kind, const char *text, size_t len);
/* For what device_print prints; arg: the device. */
void cpu_print(void *device, const char *text, size_t len);

/* The host has written these bytes, of one buffer. */
void host_mark_written(struct device *device, const char *p, size_t size);
/* Of `size` bytes of a buffer, how many has nobody written? *first: the first of them, counted from p. 0 without
 * tracks_writes. */
u64 host_unwritten(struct host_device *d, const char *p, size_t size, u64 *first);
double host_now_ms(void);

/* Rows of device_ops. */
tl_status host_alloc(struct device *device, size_t size, void **out);
void host_free(struct device *device, void *p);
tl_status host_write(struct device *device, void *dst, const void *src, size_t size);
tl_status host_read(struct device *device, void *dst, const void *src, size_t size);
tl_status host_fill(struct device *device, void *dst, uint8_t byte, size_t size);
tl_status host_synchronize(struct device *device);
bool host_allocation(struct device *device, const void *p, void **base, size_t *size);
/* Refuses a launch that this computer cannot do. */
tl_status host_check(const struct device_launch *l);
tl_status host_time(struct device *device, const struct device_launch *l, int warmup, int repeats, double *ms);

/* The buffers as they are now, in `a`; names are the launch's to set. */
struct mem_range *host_ranges(struct host_device *d, struct arena *a, u32 *n, u8 *const **written);
/* The range that p lies in, or at the end of; NULL if there is none. */
struct mem_range *range_of(struct mem_range *r, u32 n, const char *p);

/* Guard bytes in front of each buffer and behind it: an access there is an error. */
enum { HOST_GUARD = 64 * 1024 };

/* Names the ranges of pointer arguments. True when one points to memory of the caller's own, whose range is not known.
 * Using NULL is an error. homes: NULL, or for each parameter what an access through it may touch, see struct
 * interp_launch. */
bool host_name_ranges(const struct image *im, const u64 *args, struct mem_range *r, u32 n,
		      const struct mem_range **homes);

#endif
