/* SPDX-License-Identifier: MIT */
/*
 * Makes the calls that a tick consists of fail one after the other: system
 * calls, memory, threads. The source has two shapes. Linked into a test with
 * --wrap it lets the n-th call of a kind fail with a chosen errno, and counts.
 * As a library that is preloaded into collectd it lets each n-th call of the
 * plugin fail, with one errno after the other, for as long as it is told to.
 *
 * It knows nothing of what is tested. A call that fails is not made, except
 * close(), which closes all the same, as it does on Linux.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

enum fault_call {
	FAULT_OPEN,
	FAULT_READ,
	FAULT_PREAD,
	FAULT_GETDENTS,
	FAULT_LSEEK,
	FAULT_STAT,
	FAULT_STATX,
	FAULT_READLINK,
	FAULT_FCNTL,
	FAULT_CLOSE,
	FAULT_ACCESS,
	FAULT_CLOCK, /* of a process */
	FAULT_KCMP,
	FAULT_RLIMIT,
	FAULT_MEMORY,
	FAULT_THREAD,
	FAULT_WAIT, /* for a condition: wakes up for no reason */
	FAULT_POLL,
	FAULT_SOCKET, /* and bind, setsockopt, getsockopt */
	FAULT_SEND,
	FAULT_RECV,
	FAULT_N,
};

/* Instead of an errno: what else may happen. */
enum {
	FAULT_SHORT = -1, /* half of the bytes */
	FAULT_EMPTY = -2, /* no byte */
};

const char *fault_name(enum fault_call call);

/* "EIO", "short" or "empty". */
const char *fault_err_name(int err);

/* The i-th of what can happen to such a call; 0 if there are no more. */
int fault_err(enum fault_call call, unsigned i);

/*
 * From now on the n-th such call (from 1) fails; with n = 0 every one,
 * or every other one if it is EINTR or ENOBUFS.
 */
void fault_arm(enum fault_call call, unsigned n, int err);

/* Returns how many calls failed since it was armed. */
unsigned fault_disarm(void);

/* Such calls made since it was armed. */
unsigned fault_calls(enum fault_call call);
