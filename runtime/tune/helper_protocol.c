#include "runtime/tune/helper_protocol.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

bool helper_send(int socket, const void *p, size_t n)
{
	for (const char *at = p; n;) {
		ssize_t sent = send(socket, at, n, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return false;
		at += sent;
		n -= (size_t)sent;
	}
	return true;
}

bool helper_receive(int socket, void *p, size_t n, int patience_ms)
{
	for (char *at = p; n;) {
		struct pollfd one = {.fd = socket, .events = POLLIN};
		int ready = poll(&one, 1, patience_ms);
		ssize_t got = ready > 0 ? recv(socket, at, n, 0) : ready;
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		at += got;
		n -= (size_t)got;
	}
	return true;
}
