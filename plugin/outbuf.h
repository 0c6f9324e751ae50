/* SPDX-License-Identifier: MIT */
/*
 * An output buffer that is written with few calls. It knows a descriptor and
 * bytes, nothing of their meaning.
 *
 * Invariant: bytes reach the descriptor in order and once; EINTR and short
 * writes are handled; after the first error nothing more is written and
 * outbuf_flush() returns that error.
 */
#pragma once

#include "base.h"

struct outbuf {
	int fd;
	int error; /* 0 or the first negative errno */
	size_t len;
	char data[32 * 1024];
};

void outbuf_init(struct outbuf *o, int fd);
void outbuf_write(struct outbuf *o, const void *data, size_t len);
void outbuf_printf(struct outbuf *o, const char *fmt, ...) _printf_(2, 3);

/* Writes out what is left. Returns 0 or the first negative errno so far. */
int outbuf_flush(struct outbuf *o);
