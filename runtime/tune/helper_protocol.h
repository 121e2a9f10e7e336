/* The protocol between the tuner and its helper process, over a local socket: the tuner sends HELPER_VERSION as u32,
 * then calls, records of fixed size, each followed by bytes. Each call has a reply. After another version the helper
 * replies once and ends. */
#ifndef TL_TUNE_HELPER_PROTOCOL_H
#define TL_TUNE_HELPER_PROTOCOL_H

#include "runtime/tune/trials.h"

enum { HELPER_VERSION = 3, HELPER_CHUNK = 8 << 20, HELPER_MOST = 1 << 30, HELPER_TEXT = 1000 };

enum helper_call_kind {
	CALL_OPEN,   /* the first call: name */
	CALL_MEMORY, /* allocates and keeps a copy of memory: memory, name */
	CALL_WRITE,  /* the bytes go to address `to` */
	CALL_LOAD,   /* the bytes of an image; images are numbered from 0 */
	CALL_RUN,    /* trial, with image number `image` */
};

/* Addresses are valid in the tuner's process. */
struct helper_call {
	enum helper_call_kind kind;
	u32 bytes; /* the number of bytes after the call */
	u32 image;
	u64 to;
	char name[64]; /* of the device; of the memory's parameter */
	struct kept memory;
	struct trial trial;
};

struct helper_reply {
	tl_status status;
	bool broken; /* the device has become unusable */
	double cost; /* of a run */
	char text[HELPER_TEXT]; /* of the error, cut to this size */
};

/* False: the peer has closed the connection. */
bool helper_send(int socket, const void *p, size_t n);
/* False: the peer has closed the connection, or has sent nothing for patience_ms; -1 waits forever. */
bool helper_receive(int socket, void *p, size_t n, int patience_ms);

#endif
