/* The protocol between a tuner and its helper process, over a socket on one machine. A call has bytes; its reply has a
 * text and bytes. */
#ifndef TL_REMOTE_TUNER_RPC_H
#define TL_REMOTE_TUNER_RPC_H

#include "runtime/device/grid.h"

enum { WIRE_VERSION = 1, WIRE_CHUNK = 8 << 20, WIRE_MOST = 1 << 30 };

enum wire_call {
	WIRE_OPEN, /* the device named by the bytes; a: WIRE_VERSION. The first call */
	WIRE_ALLOC,       /* a: size → value: address */
	WIRE_FREE,        /* a: address */
	WIRE_WRITE,       /* a: to, the bytes */
	WIRE_READ,        /* a: from, b: size → the bytes */
	WIRE_FILL,        /* a: to, b: size, c: byte */
	WIRE_COPY,        /* a: to, b: size, c: from */
	WIRE_LOAD,        /* the bytes of an image → value: kernel */
	WIRE_MAP,         /* a struct tensor_map_shape → a tensor map */
	WIRE_TRY,         /* a: limit in ms, a struct wire_launch → value: whether it has ended */
	WIRE_TIME,        /* a: warmup, b: repeats, a struct wire_launch → doubles, ms */
	WIRE_SYNCHRONIZE,
};

struct call {
	enum wire_call what;
	u32 bytes; /* number of bytes that follow */
	u64 a, b, c;
};

struct reply {
	tl_status status;
	u32 text, bytes; /* numbers of bytes that follow */
	u64 value;
};

struct wire_launch {
	u64 kernel;
	u32 grid[3], nargs, nmaps; /* nargs: without maps */
	bool cooperative, pdl, pairs;
	u64 args[MAX_KERNEL_PARAMS + GRID_PARAMS];
	u8 maps[MAX_TENSOR_MAPS][TENSOR_MAP_BYTES];
};

/* False: the other side has closed the connection. */
bool wire_send(int socket, const void *p, size_t n);
/* False: the other side has closed the connection, or has sent nothing for patience_ms; -1 waits forever. */
bool wire_receive(int socket, void *p, size_t n, int patience_ms);

#endif
