/* SPDX-License-Identifier: MIT */
/*
 * One array that fills and is written out whole. A descriptor that somebody
 * else made non-blocking (a pipe that is shared with another process) is
 * waited for: it is a slow reader, not an error.
 *
 * Invariant: bytes that were handed to write(2) are never handed to it again.
 */
#include "outbuf.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>

void outbuf_init(struct outbuf *o, int fd)
{
	o->fd = fd;
	o->error = 0;
	o->len = 0;
}

static void write_all(struct outbuf *o, const char *data, size_t len)
{
	while (len > 0 && !o->error) {
		ssize_t n = write(o->fd, data, len);

		if (n > 0) {
			data += n;
			len -= (size_t)n;
		} else if (n == 0) {
			o->error = -EIO;
		} else if (errno == EAGAIN) {
			struct pollfd p = {.fd = o->fd, .events = POLLOUT};

			if (poll(&p, 1, -1) < 0 && errno != EINTR)
				o->error = -errno;
		} else if (errno != EINTR) {
			o->error = -errno;
		}
	}
}

int outbuf_flush(struct outbuf *o)
{
	write_all(o, o->data, o->len);
	o->len = 0;
	return o->error;
}

void outbuf_write(struct outbuf *o, const void *data, size_t len)
{
	if (len > sizeof(o->data) - o->len)
		outbuf_flush(o);
	if (o->error)
		return;
	if (len > sizeof(o->data)) {
		write_all(o, data, len);
		return;
	}
	if (len > 0)
		memcpy(o->data + o->len, data, len);
	o->len += len;
}

/* For what does not even fit into an empty buffer. */
_printf_(2, 0) static void print_long(struct outbuf *o, const char *fmt,
				      va_list ap)
{
	_cleanup_free_ char *text = NULL;
	int n = vasprintf(&text, fmt, ap);

	if (n < 0) {
		text = NULL;
		o->error = -ENOMEM;
		return;
	}
	outbuf_write(o, text, (size_t)n);
}

/* Returns false if there is not enough space for it. */
_printf_(2, 0) static bool print_short(struct outbuf *o, const char *fmt,
				       va_list ap)
{
	size_t space = sizeof(o->data) - o->len;
	int n = vsnprintf(o->data + o->len, space, fmt, ap);

	if (n < 0)
		o->error = -errno;
	else if ((size_t)n < space)
		o->len += (size_t)n;
	return n < 0 || (size_t)n < space;
}

void outbuf_printf(struct outbuf *o, const char *fmt, ...)
{
	va_list ap, again, once_more;

	if (o->error)
		return;
	va_start(ap, fmt);
	va_copy(again, ap);
	va_copy(once_more, ap);
	if (!print_short(o, fmt, ap) &&
	    (outbuf_flush(o) < 0 || !print_short(o, fmt, again)) && !o->error)
		print_long(o, fmt, once_more);
	va_end(once_more);
	va_end(again);
	va_end(ap);
}
